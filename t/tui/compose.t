#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The screen Compose: as it is drawn, what its keys do to the recipe, and its files.
. "$(dirname "$0")/screens.sh"
cp "$ET_SRCDIR/t/tui/mild.yaml" .
compose() {
    name=$1 sentence=$2 size=$3 keys=$4
    shows "compose-$name" "$sentence" compose mild.yaml --dump-screen "$size" --keys "$keys"
}

compose 80x24 "it opens on the recipe, with the algorithms in it" 80x24 ''
compose 80x24-key "a key: what it does, its range, where it stands" 80x24 'jjjjjjjj'
compose 80x24-mixup "an algorithm with its options, and a warning with what mends it" 80x24 '/mixup<enter>'
compose 80x24-timeline "who acts when, in place of what is selected" 80x24 '/ema<enter><tab><tab>'
compose 80x24-launch "what a launch says before it is one" 80x24 'L'
compose 80x24-diff "what differs from the file" 80x24 '/mixup<enter> d'
compose 80x24-changes "and key by key" 80x24 'jjjjjjjje<bksp>1<enter>'
compose 200x50 "everything at once" 200x50 '<tab>jj<tab>j'
compose 120x36 "recipe, algorithms, and what is selected" 120x36 '<tab>jj'
compose 100x30 "two columns of panels" 100x30 '<tab>jj'
compose 60x16 "one panel at a time" 60x16 ''
compose 60x16-timeline "tab leads to the next" 60x16 '<tab>'
compose 40x10 "in too small a place the status alone" 40x10 ''
glyphs='' TERM=xterm-256color
export TERM
shows compose-utf8 "the same in UTF-8" compose mild.yaml --dump-screen 80x24 --keys '/mixup<enter>'
glyphs=--ascii
shows compose-empty "without a recipe: where to begin" compose --dump-screen 80x24
for file in README.md recipes/first_minute.yaml; do
    grep -q 'under a minute' "$ET_SRCDIR/$file"
    ok $? "the first recipe takes as long as $file says"
done
has 'under a minute..' "in a narrow place its texts are cut with a sign" compose --dump-screen 40x10
says out '   what, and how. Begin with' "and its sentence is broken"
has '  one on' "so is what stands for no timeline" compose --dump-screen 80x24 --keys 'bi<tab>'
run --ascii compose mild.yaml --dump-screen 40x10
is "$(sed -n 2p out)" ' mild.yaml   ! valid, 1 warning' "an estimate that has no room is left out"
printf 'start: {blank: B}\n' >keys.yaml
ETUDE_CONFIG_DIR=$PWD "$etude" compose --dump-screen 80x24 --keys B >out 2>err
says out "a new recipe, of" "its keys are among those that keys.yaml changes"
says out " B      a blank one" "and the page tells the changed one"
rm keys.yaml
sed 's/^optimizer:/optimizer: {/' mild.yaml >bad.yaml
shows compose-broken "a text that is no YAML: the line, and what is wrong" \
    compose bad.yaml --dump-screen 80x24

# Faults: the line, what may have been meant, and m, which does it.
cat >faults.yaml <<'EOF'
max_duration: 1ep
model: {name: resnet8, num_classes: 10}
train_data:
  name: synthetic_images
optimizer:
  name: decoupled_sgdw
  lrr: 0.3
scheduler:
  name: cosin_with_warmup
EOF
shows compose-faults "a recipe with faults: lines, words, and m" \
    compose faults.yaml --dump-screen 80x24
mends() {
    has "$2" "$3" compose faults.yaml --dump-screen 80x24 --keys "$1"
}
mends '' 'batch_size          x needed' "a key that is missing has a row"
mends '' 'scheduler             x cosin_with' "a value that is wrong is shown as it is written"
mends 'm' 'batch_size: of all ranks' "m asks for what is missing"
mends 'm64<enter>m' 'mended: lr' "a misspelt key gets its name, and is not asked for"
mends 'm64<enter>mm' 'mended: cosine_with_warmup' "a misspelt name likewise"
mends 'm64<enter>mmm' 't_warmup: length of the linear warmup' "and then what that needs is asked for"
mends 'm64<enter>mmm5ba<enter>' 't_warmup          + 5ba' "and set where it belongs"
mends 'x<down><enter>' 'fault 2 of' "x leads to another fault"

typed() {
    has "$1" "$2" compose mild.yaml --dump-screen 80x24 --keys "$3"
}
typed 'x alpha: expected number' "a value is refused while it is typed" '/mixup<enter>ex'
typed '>alpha           ~ 0.5' "a value that fits is set, and marked as changed" \
    '/mixup<enter>e<bksp>5<enter>'
typed 'max_duration has no default: e gives' "but to what needs a value it gives none" 'mjjjjjjjjjjjj<bksp>'
says out '+ valid  ' "which it keeps"
typed '! batch_size is needed; u brings it back' "what is needed beside others goes, and is said to be needed" 'jjj<bksp>'
typed 'batch_size has no default' "and has no default" 'jjj<bksp><bksp>'
typed 'model is resnet8 already' "the component that is there may be chosen again" 'e<enter>'
has 'none: the file says the same' "which changes nothing, nor a comment behind it" \
    compose "$ET_SRCDIR/recipes/first_minute.yaml" --dump-screen 80x24 --keys 'e<enter>d'
typed 'default again' "backspace gives the default" '/mixup<enter><tab><bksp>'
typed 'undone: algorithms.mixup.alpha 0.5' "undo says what" '/mixup<enter>e<bksp>5<enter>u'
typed 'nothing to undo' "and where there is nothing" 'u'
typed 'mixup acts earlier now' "m mends the first warning" 'm'
typed '+ valid  ' "and then there is none" 'm'
typed 'ignored for now' "i ignores it" 'i'
typed 'gradient_clipping is on; it needs more: ' "an algorithm that needs more says so" \
    '/gradient_c<enter> '
typed 'BEFORE_LOSS: 1 label_smoothing (as in the recipe), 2 mixup' "enter says why" \
    '<tab>jjj<enter>'
typed 'INIT: 1 blurpool (as in the recipe), 2 ema (after the model is' "for each event" \
    '<tab><enter>'
typed 'decoupled_adamw' "names are chosen from a list" 'jjjjjjje'
typed 'etude train mild.yaml algorithms.mixup=null' "y shows the command line" \
    '/mixup<enter><tab><bksp>y'

# What is found: algorithms, and keys, also those that are folded away.
typed '>    weight_decay        5.0e-4 ' "/ finds a key" '/weight_dec<enter>'
typed '>    nesterov            false ' "also one that is not set" '/nest<enter>'
typed 'optimizer.nesterov ---' "which is selected" '/nest<enter>'
typed '>    nesterov          + true ' "and can be changed there" '/nest<enter> '
is "$(grep -c weight_decay out)" 0 "keys of other names are not listed"
typed '>    nesterov            false ' "esc lists all, and stays there" '/nest<enter><esc>'
says out '     momentum            0.9 ' "in its section"
typed '>    nesterov            false ' "also while it is typed" '/nest<esc>'
typed '>    [x] label_smoothing ' "an algorithm comes before a key" '/label<enter>'
says out '     label ' "which is found as well"
has '>    nesterov            false ' "beside a panel of algorithms keys are found, too" \
    compose mild.yaml --dump-screen 120x36 --keys '/nest<enter>'
has 'batch_size: of all ranks' "what asks for a key leaves the search" \
    compose faults.yaml --dump-screen 80x24 --keys '/momentum<enter>m'

# What stands in lists: of several evaluations each has its own options.
typed 't_warmup            5ba' "the schedule opens to what is set in it" 'jjjjjjjjjjj<enter>'
typed '~ scheduler.0.t_warmup  5ba' "which can be changed" 'jjjjjjjjjjj<enter>je<bksp><bksp><bksp>9ba<enter>'
typed 'num_samples         128' "so does the evaluation" 'jjjjjj<enter>'
sed '/^eval_data:/,/num_samples/d' mild.yaml >several.yaml
cat >>several.yaml <<'EOF'
eval_data:
  - {name: synthetic_images, label: few, num_samples: 64}
  - {name: synthetic_images, label: many, num_samples: 256}
EOF
has 'num_samples       64' "of several evaluations the first" \
    compose several.yaml --dump-screen 80x24 --keys 'jjjjjj<enter>'
says out 'num_samples       256' "and the second"

# A recipe that is well written, and yet cannot start.
cat >heads.yaml <<'EOF'
max_duration: 1ba
model: {name: gpt2, n_layers: 1, d_model: 32, n_heads: 5, max_seq_len: 8, vocab_size: 16}
train_data: {name: synthetic_tokens, vocab_size: 16, seq_len: 8, batch_size: 2}
optimizer: {name: sgd, lr: 0.1}
EOF
has 'x cannot start' "what training would find is not called valid" compose heads.yaml --dump-screen 80x24
says out '5 heads do not divide d_model' "and what that is"

# Algorithms that cannot act are a line; enter brings them, in two steps.
has '> 3 cannot act here' "those that cannot act here are folded into a line" \
    compose mild.yaml --dump-screen 120x36
has '4 of 25 on, all' "f lists all of them" compose mild.yaml --dump-screen 120x36 --keys ff
has '> 21 more, 3 cannot act here' "and a recipe's section has them too" \
    compose faults.yaml --dump-screen 80x24
has '[-] alibi' "enter unfolds them" compose mild.yaml --dump-screen 120x36 --keys '<tab>G<enter>'
has '3 cannot act here' "and folds them again" \
    compose mild.yaml --dump-screen 120x36 --keys '<tab>G<enter>G<enter>'

# Files.
run --ascii compose mild.yaml --dump-screen 80x24 --keys '/mixup<enter>e<bksp>5<enter>w'
says out 'saved: mild.yaml' "w saves"
diff "$ET_SRCDIR/t/tui/mild.yaml" mild.yaml >changes
is "$(grep -c '^[<>]' changes)" 2 "one line is another, and no comment is lost"
says changes '>     alpha: 0.5                 # weak' "the one that was edited"
run --ascii compose mild.yaml --dump-screen 80x24 --keys 'Wother.yaml<enter>'
has 'mild.yamlother.yaml' "W asks for a name, beginning with the one it has" \
    compose mild.yaml --dump-screen 80x24 --keys 'Wother.yaml'
run --ascii compose mild.yaml --dump-screen 80x24 --keys '/mixup<enter> W<ctrl-u>other.yaml<enter>'
[ -e other.yaml ] && ! grep -q mixup other.yaml
ok $? "and writes it there"
has 'other.yaml is there already' "what is there is not written over unasked" \
    compose mild.yaml --dump-screen 80x24 --keys 'W<ctrl-u>other.yaml<enter>'

# What would lose changes asks, and enter loses none.
cp mild.yaml asked.yaml
asked() {
    run --ascii compose asked.yaml --dump-screen 80x24 --keys "$1"
}
asked '/mixup<enter> q'
says out '> n  stay' "q asks before changes are lost, with staying selected"
says out 'save, then leave' "and saving before that as a way"
asked '/mixup<enter> q<enter>5'
says out '[5 Logs]' "enter stays"
asked '/mixup<enter> R<enter>'
says out '*1 unsaved' "also where R asks"
asked '/mixup<enter> W<ctrl-u>mild.yaml<enter><enter>'
says out 'save as' "nor is another file written over"
asked '/mixup<enter> qs5'
says out 'saved: asked.yaml' "s saves"
says out '[1 Compose]' "and leaves: keys behind it are not read"
! grep -q mixup asked.yaml
ok $? "the file is written"
has '[1 Compose]' "a recipe that has no file gets one first" \
    compose --dump-screen 80x24 --keys 'biqs<ctrl-u>asked-too.yaml<enter>5'
[ -s asked-too.yaml ]
ok $? "of the name that was asked for"
has '[5 Logs]' "without a name it is not left" \
    compose --dump-screen 80x24 --keys 'biqs<esc>w<ctrl-u>asked-else.yaml<enter>5'

# Another recipe, while one is open.
sed 's/^max_duration: .*/max_duration: 9ep/' mild.yaml >nine.yaml
another() {
    has "$1" "$2" compose mild.yaml --dump-screen 80x24 --keys "$3"
}
another 'a blank one, for images or for text' "n tells the ways to another recipe" n
another ' new recipe ' "one of which is gone" nbi
another ' nine.yaml ' "a file is one" 'nonine.yaml<enter>'
says out '9ep' "that is read"
another 'x cannot read none.yaml' "which may not be there" 'nonone.yaml<enter>'
says out ' mild.yaml ' "and then nothing is lost"
another '> n  stay' "where there are changes they are told of" '/mixup<enter> n'
another ' mild.yaml *1 unsaved' "and stay by enter" '/mixup<enter> n<enter>'
another ' nine.yaml ' "or go" '/mixup<enter> nyonine.yaml<enter>'
another '    [x] mixup ' "with them what was found" '/mixup<enter> nyonine.yaml<enter>'
cp mild.yaml saved.yaml
run --ascii compose saved.yaml --dump-screen 80x24 --keys '/mixup<enter> nsonine.yaml<enter>'
says out ' nine.yaml ' "or are saved first"
! grep -q mixup saved.yaml
ok $? "in their file"

# Launching: a run of its own, which goes on when the screen has gone.
tiny tiny.yaml
export XDG_RUNTIME_DIR="$dir/rt"
mkdir -p rt && chmod 700 rt
has '[2 Monitor]' "L starts it, and leads to Monitor" \
    compose tiny.yaml --dump-screen 80x24 --keys '/label<enter> L<enter>'
until_true "grep -q '\"state\": *\"finished\"' runs/*/run.json 2>/dev/null"
run runs --json
says out '"state": "finished"' "the run ends as it should"
says out '"label_smoothing"' "with what was changed and not saved"
has 'like this recipe, already run' "and it is shown beside its recipe" \
    compose tiny.yaml --dump-screen 200x50
says out '(with label_smoothing' "with what it has otherwise"
has '! it cannot be launched' "a recipe with faults is not" \
    compose bad.yaml --dump-screen 80x24 --keys 'L'

sed -i 's/"microbatches": 1,/"microbatches": 4,/' runs/*/report.json
has 'to 4: save that?' "what grad_accum auto came to in the last run is offered" \
    compose tiny.yaml --dump-screen 200x50
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
says out ' mlp  ' "so that Monitor calls it by its model"

# Own data: paths begin beside the recipe, also where its text has no file yet.
mkdir -p own/data
cat >own/r.yaml <<'EOF'
max_duration: 1ba
model: {name: lenet, num_classes: 2}
train_data:
  name: idx   # mine
  path: data
  batch_size: 4
eval_data:
  - {name: synthetic_images, num_samples: 8, num_classes: 2, channels: 1, resolution: 28}
optimizer: {name: sgd, lr: 0.1}
EOF
images() { # N: that many in IDX files of 28x28
    { printf '\000\000\010\003\000\000\000\010\000\000\000\034\000\000\000\034'
      head -c 6272 /dev/zero; } >"own/data/$1-images-idx3-ubyte"
    { printf '\000\000\010\001\000\000\000\010'; printf '\000\001\000\001\000\001\000\001'; } \
        >"own/data/$1-labels-idx1-ubyte"
}
own() {
    has "$1" "$2" compose own/r.yaml --dump-screen "${4:-80x24}" --keys "$3"
}
own 'x cannot read ' "data that cannot be read keep a run from starting" '' 200x50
own 'ignored for now: eval_data is' "which is no warning that i ignores: it takes the next" i
own 'estimate   cannot read' "it is told in a sentence where a run is launched" L
says out 'start it  (it cannot start here)' "and there the run cannot be started"
own 'start it  (it cannot start here)' "also not by enter" 'L<enter>'
images train
own 'idx: 8 images, 2 classes' "data beside the recipe are found" '' 200x50
own 'idx: 8 images, 2 classes' "also where the command line cannot say the changes" \
    '/label<enter> /blur<enter> [' 200x50
own 'eval_data is synthetic_images, train_data is idx' "data that differ are warned of" '' 200x50
own 'x needed' "another dataset: what it needs is shown" 'jjecifar10<enter><esc>'
own 'path: folder of the binary version' "and asked for" 'jjecifar10<enter>'
own '-   name: idx   # mine' "and the old one's comment goes with it" 'jjetokens<enter><esc>d' 120x36
run train own/r.yaml
mkdir else
(cd else && "$etude" --ascii compose --dump-screen 200x50 --keys 'r<enter>') >out 2>err
says out 'idx: 8 images, 2 classes' "nor are they lost with the recipe of a run, begun elsewhere"
run estimate own/r.yaml --recipe-folder own
exits 0 "--recipe-folder says where paths begin"
run estimate own/r.yaml --recipe-folder nowhere
exits 64 "a folder that is not there is refused"

# Installed recipes are for reading.
mkdir -p share/etude/recipes
sed 's/num_samples: 640/num_samples: 320/' mild.yaml >share/etude/recipes/mine.yaml
cp share/etude/recipes/mine.yaml before.yaml
XDG_DATA_DIRS=$PWD/share
export XDG_DATA_DIRS
has 'save as' "w on an installed recipe asks for another name" \
    compose -m mine --dump-screen 80x24 --keys '/mixup<enter> w'
has 'saved: mine.yaml' "which is one of the working directory" \
    compose -m mine --dump-screen 80x24 --keys '/mixup<enter> w<enter>'
has 'installed recipes stay as they are' "its own name is refused" compose -m mine \
    --dump-screen 80x24 --keys "/mixup<enter> W<ctrl-u>share/etude/recipes/mine.yaml<enter>"
run compose -m mine --dump-screen 80x24 --keys '/mixup<enter> L'
! grep -q 'save, then start it' out
ok $? "nor is it saved on the way to a launch"
cmp -s before.yaml share/etude/recipes/mine.yaml
ok $? "it is as it was"
unset XDG_DATA_DIRS

# What a recipe includes goes along to another folder.
mkdir away taken
printf 'include: [r.yaml]\nseed: 5\n' >own/top.yaml
has 'saved: away/top.yaml, with r.yaml' "saved in another folder, a recipe takes along" \
    compose own/top.yaml --dump-screen 80x24 --keys 'W<ctrl-u>away/top.yaml<enter>'
cmp -s own/r.yaml away/r.yaml
ok $? "what it includes"
echo '# another' >taken/r.yaml
has 'cannot write taken/r.yaml: File exists' "where another file has that name" \
    compose own/top.yaml --dump-screen 80x24 --keys 'W<ctrl-u>taken/top.yaml<enter>'
[ ! -e taken/top.yaml ] && [ "$(cat taken/r.yaml)" = '# another' ]
ok $? "nothing is saved"
has 'saved: own/other.yaml' "in its own folder nothing is copied" \
    compose own/top.yaml --dump-screen 80x24 --keys 'W<ctrl-u>own/other.yaml<enter>'
! grep -q 'with r.yaml' out
ok $? "nor told of"

# Commands.
run compose mild.yaml
exits 64 "compose needs a terminal"
run compose missing.yaml --dump-screen 80x24
exits 66 "a recipe that is not there"
says err 'etude recipes lists the installed ones' "with what there is"
run compose first_minute --dump-screen 80x24
exits 66 "an installed one needs -m"
says err 'etude compose -m first_minute' "which is said"
run train first_minute
says err 'etude train -m first_minute' "where it is trained, too"
run compose mild.yaml --dump-screen 80
exits 64 "a size that is none"
run compose mild.yaml --dump-screen 80x24 --keys '<nokey>'
exits 64 "a key that is none"

# What is said takes the lines that it needs, and is cut with a sign in the third.
deep=$(printf 'a%.0s/' $(seq 45))
refused() { # KEYS...: after a path of many folders that are not there
    run --ascii compose mild.yaml --dump-screen "$1" --keys "W<ctrl-u>${deep}x.yaml<enter>$2"
}
refused 80x24 ''
says out 'No such file or directory' "an error that is long is read to its end"
! grep -q 'half_life 100ba' out
ok $? "above the last line of the screen"
refused 80x24 j
says out 'half_life 100ba' "and the next key has its lines back"
refused 40x10 ''
is "$(tail -3 out | cut -c1-16; tail -c4 out)" "$(printf ' x cannot write\n a/a/a/a/a/a/a/a\n a/a/a/a/a/a/a/a\n/..')" \
    "in a narrow place it is cut in the third line, with a sign"

# A key that finds nothing to do says so.
says_of() {
    has "$2" "$3" compose "$ET_SRCDIR/recipes/first_minute.yaml" --dump-screen 80x24 --keys "$1"
}
says_of 'Gkke' 'has parts: enter shows them' "e on a section: how it is opened"
says_of '<tab>e' 'there is no value to edit here' "on the timeline: that it has no values"
says_of '<tab> ' 'space turns algorithms and switches on and off' "space there: what it does elsewhere"
says_of 'i' 'there is no warning to ignore' "i without a warning"
says_of 'R' 'was read again' "R that the file is as it was"
has 'no file to read again' "or that there is none" compose --dump-screen 80x24 --keys 'biR'

# What is said below the panels: nothing twice, and of keys those that hold.
first() {
    run --ascii compose "$ET_SRCDIR/recipes/first_minute.yaml" --dump-screen "$@"
}
hints() {
    tail -1 out
}
first 80x24 --keys 'jjj'
says out 'of all ranks and microbatches' "what is selected is told in its panel"
is "$(tail -2 out | head -1)" '' "and not below it again"
first 60x16 --keys 'jjj'
[ -n "$(tail -2 out | head -1)" ]
ok $? "where there is no such panel it is told there"
first 80x24 --keys 'jjje'
is "$(hints)" ' enter set  esc leave it as it was  ctrl-u delete to the cursor' \
    "while a value is typed the hints are those for that"
says out ' was ' "and what it was is told"
first 80x24 --keys 'jjje<ctrl-u>7<esc>'
is "$(hints | cut -c1-15)" ' space toggle  ' "and no longer"
first 80x24 --keys 'jjje<ctrl-u>7'
grep -q '^> .*batch_size  *7 ' out
ok $? "a key that is told deletes up to the cursor"
mkdir typing && printf 'typing: {leave: F6}\n' >typing/keys.yaml
ETUDE_CONFIG_DIR=$PWD/typing first 80x24 --keys 'jjje<F6>'
is "$(hints | cut -c1-15)" ' space toggle  ' "keys.yaml may give them others"

# Titles of recipes are cut between words.
has 'small GPT on the bytes of the King James Bib..' "installed recipes say what they are" \
    compose --dump-screen 80x24 --keys a

# Everything that is wrong, not only the first of it.
printf 'max_duration: 1ep\nwrong_a: 1\nwrong_b: 2\n' >wrong.yaml
has 'fault 1 of ' "of several faults the first is shown, and how many there are" \
    compose wrong.yaml --dump-screen 80x24
has 'x (x lists all' "also where there is one panel" compose wrong.yaml --dump-screen 60x16
has "line 3: unknown key 'wrong_b'" "x lists them" compose wrong.yaml --dump-screen 80x24 --keys x
has 'the recipe has no faults' "and says where there are none" \
    compose "$ET_SRCDIR/recipes/first_minute.yaml" --dump-screen 80x24 --keys x
finish
