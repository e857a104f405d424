#!/bin/sh
# The screen Compose: as it is drawn, what its keys do to the recipe, and its files.
. "$(dirname "$0")/screens.sh"
cp "$ET_SRCDIR/t/tui/mild.yaml" .
compose() {
    name=$1 sentence=$2 size=$3 keys=$4
    shows "compose-$name" "$sentence" compose mild.yaml --dump-screen "$size" --keys "$keys"
}

compose 80x24 "algorithms, options, the timeline with who is selected" 80x24 '/ema<enter>jj'
compose 80x24-mixup "a warning, with what mends it" 80x24 'jjjj'
compose 80x24-recipe "the recipe as a form" 80x24 '<s-tab>jj'
compose 80x24-launch "what a launch says before it is one" 80x24 'L'
compose 80x24-diff "what differs from the file" 80x24 'jjjj <tab>jjd'
compose 200x50 "everything at once" 200x50 'jjjj<tab>j'
compose 120x36 "with room for what options mean" 120x36 'jjjj'
compose 100x30 "and sizes between" 100x30 'jjjj'
compose 60x16 "one panel at a time" 60x16 ''
compose 60x16-timeline "tab leads to the next" 60x16 '<tab><tab>'
compose 40x10 "in too small a place the status alone" 40x10 ''
glyphs='' TERM=xterm-256color
export TERM
shows compose-utf8 "the same in UTF-8" compose mild.yaml --dump-screen 80x24 --keys 'jjjj'
glyphs=--ascii
shows compose-empty "without a recipe: where to begin" compose --dump-screen 80x24
printf 'start: {blank: B}\n' >keys.yaml
ETUDE_CONFIG_DIR=$PWD "$etude" compose --dump-screen 80x24 --keys B >out 2>err
says out "a new recipe, of" "its keys are among those that keys.yaml changes"
says out " B      a blank one" "and the page tells the changed one"
rm keys.yaml
sed 's/^optimizer:/optimizer: {/' mild.yaml >bad.yaml
shows compose-broken "a text that is no YAML: the line, and what is wrong" \
    compose bad.yaml --dump-screen 80x24

typed() {
    has "$1" "$2" compose mild.yaml --dump-screen 80x24 --keys "$3"
}
typed 'x alpha: expected number' "a value is refused while it is typed" 'jjjjex'
typed '>alpha             0.5' "a value that fits is set" 'jjjje<bksp>5<enter>'
typed 'default again' "backspace gives the default" 'jjjj<tab><bksp>'
typed 'undone: algorithms.mixup.alpha 0.5' "undo says what" 'jjjje<bksp>5<enter>u'
typed 'nothing to undo' "and where there is nothing" 'u'
typed 'mixup acts earlier now' "m mends the first warning" 'm'
typed 'valid  ' "and then there is none" 'm'
typed 'ignored for now' "i ignores it" 'i'
typed 'alibi comes with a later version' "what is not built is said so" '/alibi<enter> '
typed 'gradient_clipping is on; it needs more: ' "an algorithm that needs more says so" 'jj '
typed 'BEFORE_LOSS: 1 label_smoothing (as in the recipe), 2 mixup' "enter says why" \
    'jjjj<tab><tab>jjj<enter>'
typed 'INIT: 1 blurpool (as in the recipe), 2 ema (after the model is' "for each event" \
    '<tab><tab><enter>'
typed 'decoupled_adamw' "names are chosen from a list" '<s-tab>jjjjjjjjjje'
typed 'etude train mild.yaml algorithms.mixup=null' "y shows the command line" 'jjjj<tab><bksp>y'

# Files.
run --ascii compose mild.yaml --dump-screen 80x24 --keys 'jjjje<bksp>5<enter>w'
says out 'saved: mild.yaml' "w saves"
diff "$ET_SRCDIR/t/tui/mild.yaml" mild.yaml >changes
is "$(grep -c '^[<>]' changes)" 2 "one line is another, and no comment is lost"
says changes '>     alpha: 0.5                 # weak' "the one that was edited"
run --ascii compose mild.yaml --dump-screen 80x24 --keys 'Wother.yaml<enter>'
has 'mild.yamlother.yaml' "W asks for a name, beginning with the one it has" \
    compose mild.yaml --dump-screen 80x24 --keys 'Wother.yaml'
run --ascii compose mild.yaml --dump-screen 80x24 --keys 'jjjj W<ctrl-u>other.yaml<enter>'
[ -e other.yaml ] && ! grep -q mixup other.yaml
ok $? "and writes it there"
has 'other.yaml is there already' "what is there is not written over unasked" \
    compose mild.yaml --dump-screen 80x24 --keys 'W<ctrl-u>other.yaml<enter>'

# Launching: a run of its own, which goes on when the screen has gone.
tiny tiny.yaml
export XDG_RUNTIME_DIR="$dir/rt"
mkdir -p rt && chmod 700 rt
has '[2 Monitor]' "L starts it, and leads to Monitor" \
    compose tiny.yaml --dump-screen 80x24 --keys 'jjj L<enter>'
until_true "grep -q '\"state\": *\"finished\"' runs/*/run.json 2>/dev/null"
run runs --json
says out '"state": "finished"' "the run ends as it should"
says out '"label_smoothing"' "with what was changed and not saved"
has 'like this recipe, already run' "and it is shown beside its recipe" \
    compose tiny.yaml --dump-screen 200x50
says out '(lr' "with what it came to"
has '! it cannot be launched' "a recipe with faults is not" \
    compose bad.yaml --dump-screen 80x24 --keys 'L'

sed -i 's/"microbatches": 1,/"microbatches": 4,/' runs/*/report.json
has 'to 4: save that?' "what grad_accum auto came to in the last run is offered" \
    compose tiny.yaml --dump-screen 80x24
has 'grad_accum is 4 now; w saves it' "m takes it" compose tiny.yaml --dump-screen 80x24 --keys m

# A recipe without a file: the run's directory keeps it.
has 'in no file' "a recipe that has no file may be launched" \
    compose --dump-screen 80x24 --keys 'r<enter>L'
has 'save as' "or saved first" compose --dump-screen 80x24 --keys 'r<enter>Ls'
before=$(ls runs | wc -l)
has '[2 Monitor]' "L starts it" compose --dump-screen 80x24 --keys 'r<enter>L<enter>'
until_true "[ \"\$(grep -l '\"state\": *\"finished\"' runs/*/run.json 2>/dev/null | wc -l)\" -gt $before ]"
newest=$(ls -td runs/*/ | head -1)
cmp -s "${newest}recipe.yaml" tiny.yaml
ok $? "with its text beside what the run leaves"
says "${newest}run.json" '"recipe": null' "and without a name that it has not"
run attach last --dump-screen 80x24
says out ' mlp  1 rank' "so that Monitor calls it by its model"

# Commands.
run compose mild.yaml
exits 64 "compose needs a terminal"
run compose missing.yaml --dump-screen 80x24
exits 66 "a recipe that is not there"
run compose mild.yaml --dump-screen 80
exits 64 "a size that is none"
run compose mild.yaml --dump-screen 80x24 --keys '<nokey>'
exits 64 "a key that is none"

# A key that finds nothing to do says so.
says_of() {
    has "$2" "$3" compose "$ET_SRCDIR/recipes/first_minute.yaml" --dump-screen 80x24 --keys "$1"
}
says_of '<tab><tab><tab>e' 'has parts: enter shows them' "e on a section: how it is opened"
says_of '<tab><tab>e' 'there is no value to edit here' "on the timeline: that it has no values"
says_of '<tab><tab> ' 'space turns algorithms and switches on and off' "space there: what it does elsewhere"
says_of 'i' 'there is no warning to ignore' "i without a warning"
says_of 'R' 'was read again' "R that the file is as it was"
has 'no file to read again' "or that there is none" compose --dump-screen 80x24 --keys 'biR'

# Titles of recipes are cut between words.
has 'small GPT on the bytes of the King James..' "installed recipes say what they are" \
    compose --dump-screen 80x24 --keys a

# Everything that is wrong, not only the first of it.
printf 'max_duration: 1ep\nwrong_a: 1\nwrong_b: 2\n' >wrong.yaml
has 'x (x lists all' "of several faults the first is shown, and how to see all" \
    compose wrong.yaml --dump-screen 80x24
has "line 3: unknown key 'wrong_b'" "x lists them" compose wrong.yaml --dump-screen 80x24 --keys x
has 'the recipe has no faults' "and says where there are none" \
    compose "$ET_SRCDIR/recipes/first_minute.yaml" --dump-screen 80x24 --keys x
finish
