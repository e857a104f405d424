#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The workbench as a person has it: in a terminal that is typed into, resized, left, killed
# and opened again, while a run goes on. Needs tmux.
. "$(dirname "$0")/../cli/cli.sh"
command -v tmux >/dev/null 2>&1 || { echo "1..0 # SKIP there is no tmux"; exit 0; }
terminals=0 tmux=false
# Runs go on for ever: what a failed test leaves is ended with it.
clean() {
    $tmux kill-server 2>/dev/null
    for pid in $(sed -n 's/.*"pid": \([0-9]*\).*/\1/p' here/run.json there/run.json 2>/dev/null); do
        # shellcheck disable=SC2046
        grep -qs train "/proc/$pid/cmdline" && kill -9 "$pid" $(family "$pid") 2>/dev/null
    done
    until_true 'rm -rf "$dir" 2>/dev/null'
}
trap clean EXIT
export LC_ALL=C.UTF-8 TZ=UTC SHELL=/bin/sh

stands() {
    $tmux capture-pane -p -t w >screen 2>/dev/null
    grep -qF -e "$1" screen
}
# shows TEXT: waits until it stands on the terminal
shows() {
    text=$1
    until_true 'stands "$text"'
    tail -n 20 screen >out # with the last lines, which say why
    : >err
    grep -qF -e "$text" screen
}
# hides TEXT: waits until it does not. (A key that comes with the escape before it is
# another key.)
hides() {
    text=$1
    until_true '! stands "$text"'
}

# sees TEXT NAME
sees() {
    shows "$1"
    ok $? "$2"
}

keys() {
    $tmux send-keys -t w "$@"
}

# A terminal with a shell. Its server is another each time: one that was told to end may
# still take a session, and end with it.
begin_terminal() {
    terminals=$((terminals + 1))
    tmux="tmux -L etude-$$-$terminals -f /dev/null"
    $tmux new-session -d -s w -x 80 -y 24 "cd '$dir' && PS1='ready ' exec sh" && shows ready
}

cat >long.yaml <<'R'
max_duration: 100000000ba
seed: 3
model: {name: mlp, hidden: 16, layers: 1}
train_data: {name: synthetic_images, batch_size: 8, num_samples: 320, workers: 0}
optimizer: {name: sgd, lr: 0.1}
R
"$etude" train long.yaml --run_directory here --run_name quiet-owl --progress none >trained 2>&1 &
train=$!
until_true '[ -f here/run.json ]'

begin_terminal || { echo "1..0 # SKIP tmux shows no terminal"; kill $train; exit 0; }
keys "'$etude' attach here" Enter
sees "[2 Monitor]" "attach opens Monitor"
sees "quiet-owl" "with the run's name"
sees "RUNNING" "which goes on"
keys '?'
sees "help: Monitor" "? is help"
keys Escape
hides "help: Monitor"
keys 5
sees "following" "5 is Logs"
$tmux resize-window -t w -x 200 -y 50
sees "q leave" "a wider window has room for more hints"
keys 2
sees "algorithms now" "and for more of Monitor"
$tmux resize-window -t w -x 50 -y 12
sees "total" "a small one has the bars"
$tmux resize-window -t w -x 80 -y 24
sees "samples" "and all is back"
keys C-z
shows ready
ok $? "ctrl-z gives the shell back"
keys "fg" Enter
sees "where the step goes" "and fg the screen"
keys q
sees "quiet-owl goes on" "q leaves, and says that the run goes on"
kill -0 $train
ok $? "which it does"

keys clear Enter
keys "'$etude' attach here" Enter
shows "[2 Monitor]"
pid=$(pgrep -P "$($tmux list-panes -t w -F '#{pane_pid}')" | head -1)
kill -SEGV "$pid"
sees "the screen ended by signal 11; runs go on" "a screen that crashes says so on a usable terminal"
kill -0 $train
ok $? "and the run goes on"
keys "'$etude' attach here" Enter
sees "[2 Monitor]" "it can be opened again"
$tmux kill-server
sleep 0.5
kill -0 "$train"
ok $? "a terminal that is killed takes nothing with it"

# Colours: what the terminal is sent, by what it says that it can show.
# paints N WANTED NAME ENVIRONMENT...: is what is sent for colours of the form N there?
paints() {
    form=$1 wanted=$2 sentence=$3
    shift 3
    begin_terminal
    keys "env -u COLORTERM -u NO_COLOR $* '$etude' attach here" Enter
    shows "[2 Monitor]"
    $tmux capture-pane -p -e -t w >out
    hits=$(grep -c "$(printf '\033')\\[[0-9;]*$form" out)
    if [ "$wanted" = yes ]; then [ "$hits" -gt 0 ]; else [ "$hits" -eq 0 ]; fi
    ok $? "$sentence"
    keys q
    $tmux kill-server
}
paints '38;5;' yes "colours are sent where there are 256" TERM=xterm-256color
paints '3[1-7][;m]' yes "and where there are 8" TERM=xterm
paints '38;5;' no "which are no others" TERM=xterm
paints '[34][0-7][;m]' no "with NO_COLOR none are" TERM=xterm-256color NO_COLOR=1
paints '38;5;' no "of no kind" TERM=xterm-256color NO_COLOR=1
for name in linux screen; do
    paints '3[1-7][;m]' yes "$name has colours" TERM=$name
    paints '38;5;' no "of its own eight" TERM=$name COLORTERM=
done
if [ -f "$ET_BUILDDIR/terminfo/e/etude-direct" ]; then
    paints '38;2;' yes "all of them are sent where the terminal says that it has them" TERM=xterm-256color COLORTERM=truecolor
    paints '38;5;' no "and then none of the 256" TERM=xterm-256color COLORTERM=24bit
    paints '38;2;' no "not through GNU screen" TERM=screen-256color COLORTERM=truecolor STY=1 TMUX=
fi

# A theme of one's own, and one that is not there.
mkdir -p themed/themes
echo 'ui: {theme: mine}' >themed/config.yaml
begin_terminal
keys "ETUDE_CONFIG_DIR='$dir/themed' '$etude' attach here" Enter
sees "there is no theme 'mine': auto, dark, light" "a theme that is not there is told, with those that are"
$tmux kill-server
echo 'section: 201' >themed/themes/mine.yaml
paints '38;5;201' yes "a theme is a file beside the configuration" TERM=xterm-256color \
    "ETUDE_CONFIG_DIR='$dir/themed'"

# A recipe while its window grows.
printf 'scheduler: {name: linear_with_warmup, t_warmup: 3ba}\n' | cat long.yaml - >warm.yaml
begin_terminal
keys "'$etude' compose warm.yaml" Enter
sees "linear_with_warmup" "a schedule is folded in a small window"
! grep -q t_warmup screen
ok $? "as there is little room"
$tmux resize-window -t w -x 90 -y 40
sees "t_warmup" "and open in a larger one"
keys q
$tmux kill-server

# Started from within a terminal: the screen is a viewer, and asks for what it wants.
begin_terminal
keys "'$etude' train long.yaml --run_directory there --run_name tall-fox" Enter
sees "[2 Monitor]" "train on a terminal opens Monitor"
sees "tall-fox" "with the run that it started"
sees "RUNNING" "when that is under way"
i=0
while [ $i -lt 400 ]; do # its hub is there a moment after it
    keys c
    shows "p  pause"
    grep -qF "Nobody has taken it" screen && break # above, so drawn before
    keys Escape
    hides "p  pause"
    sleep 0.3
    i=$((i + 1))
done
grep -qF "Nobody has taken it" screen
ok $? "c offers what can be asked of it"
keys p
sees "PAUSED" "p pauses it"
keys c
shows "it is"
keys c
sees "RUNNING" "c lets it go on"
keys c
shows "stop after"
keys s
sees "stop it" "s asks again before it ends a run"
keys Enter
sees "STOPPED" "and then it stops"
sees "etude train --resume tall-fox" "and says how it can go on"
keys q
shows ready
keys 'echo code $?' Enter
sees "code 75" "leaving gives the code of a run that has ended"
$tmux kill-server

# What a run came to is told at its end also to who has watched it from its beginning.
sed 's/^max_duration.*/max_duration: 4ep/' long.yaml >short.yaml
echo 'eval_data: {name: synthetic_images, batch_size: 8, num_samples: 32, workers: 0}' >>short.yaml
begin_terminal
keys "'$etude' train short.yaml --run_name red-newt" Enter
sees "What next" "a run that finishes under one's eyes says what can be done"
grep -q '^ accuracy .* best, ep' screen
ok $? "and what it came to"
keys q
$tmux kill-server

# The program is replaced while its screen is open, as by an update.
cp "$etude" ./older
begin_terminal
keys "./older attach here" Enter
if shows "[2 Monitor]"; then
    rm older
    keys 4
    sees "runs here need no worker" "what a screen starts is the program that it is"
    keys q
else
    ok 1 "a copy opens it"
fi
$tmux kill-server

kill -TERM $train
wait $train
is $? 75 "the run ends when it is told to, with a checkpoint"
finish
