#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The palette: everything from everywhere. With tmux, a theme is seen before it is taken.
. "$(dirname "$0")/screens.sh"
mkdir -p conf/themes
export ETUDE_CONFIG_DIR="$dir/conf" XDG_STATE_HOME="$dir/state"
"$ET_BUILDDIR/t/tui/rivals" >out 2>err
ok $? "runs of several recipes"
printf 'ground: dark\ntext: 250\n' >conf/themes/dusk.yaml

run --ascii --dump-screen 80x24 --keys ':'
exits 0 "the palette opens"
for heading in screens runs themes; do
    says out "| $heading " "with a group $heading"
done
is "$(sed -n '/go to, or do/,/^...+/p' out | grep -c '^...| ')" 13 "of 12 rows, below what is typed"
for screen in 1 2 3 4 5; do
    has '> Workers ' "from screen $screen it finds screens" --dump-screen 80x24 --keys "$screen:workers"
    has '> calm-heron ' "runs by name" --dump-screen 80x24 --keys "$screen:calm-heron"
    has '> ui.theme ' "settings" --dump-screen 80x24 --keys "$screen:ui.theme"
    has '> theme gruvbox ' "themes" --dump-screen 80x24 --keys "$screen:gruvbox"
    has '> compare the marked runs ' "commands of Runs" --dump-screen 80x24 --keys "$screen:compare the"
done
has 'your own' "a theme of one's own too" --dump-screen 80x24 --keys ':dusk'
has '> new recipe: a blank one' "ways to begin a recipe" --dump-screen 80x24 --keys '3:new recipe blank'
has 'a new recipe, of' "which lead there" --dump-screen 80x24 --keys '3:new recipe blank<enter>'
says out '[1 Compose]' "to Compose"
mkdir -p share/etude/recipes
cp "$ET_SRCDIR/t/tui/mild.yaml" share/etude/recipes/mine.yaml
export XDG_DATA_DIRS="$dir/share"
has '> recipe mine ' "recipes that are installed" --dump-screen 80x24 --keys '3:mine'
has ' mine.yaml ' "are opened" --dump-screen 80x24 --keys '3:mine<enter>'
has ' mine.yaml ' "also where another one is" compose share/etude/recipes/mine.yaml --dump-screen 80x24 --keys ' :new recipe blank<enter>i:mine<enter>y'
has 'stay' "of which no changes are lost unasked" compose share/etude/recipes/mine.yaml --dump-screen 80x24 --keys 'jjjjjjjje<bksp>1<enter>:mine<enter>'
unset XDG_DATA_DIRS
has 'now auto' "a setting with its value" --dump-screen 80x24 --keys ':ui.plot'
has '[3 Runs]' "a screen is gone to" --dump-screen 80x24 --keys '1:runs<enter>'
has 'calm-heron' "a run is watched" --dump-screen 80x24 --keys '1:calm-heron<enter>'
says out '[2 Monitor]' "in Monitor"
has '! freeze the view: no run is watched' "a command that needs a run says so" \
    --dump-screen 80x24 --keys '3:freeze<enter>'
has '[2 Monitor]' "one of another screen is done there" --dump-screen 80x24 --keys '1:calm-heron<enter>3:freeze<enter>'
has 'frozen' "with that run" --dump-screen 80x24 --keys '1:calm-heron<enter>3:freeze<enter>'
has 'nothing is called so' "what is not there is said" --dump-screen 80x24 --keys ':zzzz'
has '> Monitor ' "down goes on from row to row" --dump-screen 80x24 --keys ':<down>'
has '> calm' "over headings" --dump-screen 80x24 --keys ':calm<down><up>'
cp -r runs/dry-finch runs/calm && sed -i 's/dry-finch/calm/g' runs/calm/run.json
has '> calm  ' "what is called as it was typed is selected" --dump-screen 80x24 --keys ':calm'
is "$(grep -o ' calm[a-z-]*' out | tr -d '\n')" ' calm calm calm-heron' \
    "and stands before what only begins so, though it is older"
has '> theme dark' "what begins so comes before what has it inside" --dump-screen 80x24 --keys ':theme d'
has '> Logs ' "the group of what fits best comes first" --dump-screen 80x24 --keys ':logs'
rm -r runs/calm
run --dump-screen 80x24+roles --keys ':gruv'
grep -q 'key@select' out
ok $? "the letters that were typed are of the role key"
run --ascii --dump-screen 80x24 --keys ':theme light<enter>'
says out 'ui.theme: light' "a theme is kept"
is "$(grep -c 'next start' out)" 0 "and there at once, as it was in the preview"
run config set ui.theme auto
run --ascii --dump-screen 80x24 --keys ':ui.plot<enter><bksp><bksp><bksp><bksp>block<enter>'
says out 'ui.plot: block, from the next start on' "a setting is asked for and saved"
is "$("$etude" config get ui.plot 2>&1)" block "where etude config has it"
for size in 60x16 50x12 80x24 120x36 200x50; do
    run --ascii --dump-screen $size --keys ':'
    exits 0 "it opens at $size"
done

if ! command -v tmux >/dev/null 2>&1; then
    echo "# no tmux: previews are not looked at"
    finish
    exit 0
fi
tmux="tmux -L palette-$$ -f /dev/null"
trap '$tmux kill-server 2>/dev/null; rm -rf "$dir"' EXIT
colours() { $tmux capture-pane -p -e -t w 2>/dev/null | grep -o '[34]8;5;[0-9]*' | sort -u | tr '\n' ' '; }
# The ground of the selected row in the theme contrast.
is_contrast() { colours | grep -q '48;5;231 '; }
$tmux new-session -d -s w -x 100 -y 30 "env TERM=tmux-256color COLORTERM= '$etude' runs >/dev/null; exec '$etude' --color always"
until_true '$tmux capture-pane -p -t w | grep -q calm-heron'
$tmux send-keys -t w ':'
until_true '$tmux capture-pane -p -t w | grep -q "go to, or do"'
$tmux send-keys -t w -l 'theme contrast'
until_true is_contrast
is_contrast
ok $? "a theme is seen while its row is selected"
$tmux send-keys -t w Escape
until_true '! $tmux capture-pane -p -t w | grep -q "go to, or do" && colours | grep -q "38;5;81 "'
colours | grep -q '38;5;81 ' && ! is_contrast
ok $? "esc brings the other back"
$tmux send-keys -t w ':'
until_true '$tmux capture-pane -p -t w | grep -q "go to, or do"'
$tmux send-keys -t w -l 'theme contrast'
until_true is_contrast
$tmux send-keys -t w Enter
until_true '[ "$("$etude" config get ui.theme)" = contrast ]'
is "$("$etude" config get ui.theme)" contrast "enter takes it, for later as well"
until_true '$tmux capture-pane -p -t w | grep -q "ui.theme: contrast"'
is_contrast
ok $? "and at once"
$tmux send-keys -t w q
finish
