#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A worker that listens on the network, and the screens of another user of this machine,
# who knows nothing of its folders: tested, its runs, attached to, steered; and keys.
. "$(dirname "$0")/screens.sh"
mkdir -p there/bin there/r here/r && chmod 700 there/r here/r
# at PLACE ARGS...: the program as the user of that place
at() {
    place=$1
    shift
    (cd "$dir/$place" && ETUDE_CONFIG_DIR="$dir/$place/conf" XDG_STATE_HOME="$dir/$place/state" \
        XDG_RUNTIME_DIR="$dir/$place/r" PATH="$dir/$place/bin:$PATH" "$ET_BUILDDIR/etude" "$@")
}
# sees TEXT NAME KEYS: here, on the screen Workers once KEYS were pressed
sees() {
    at here runs --dump-screen 100x32 --keys "4$3" >out 2>err </dev/null
    says out "$1" "$2"
}
public() { sed -n 's/^public //p' "$dir/$1/conf/curve.key"; }
run_pid() { sed -n 's/.*"pid": \([0-9]*\).*/\1/p' there/run/run.json 2>/dev/null; }
worker='' tmux=''
# What a failed test leaves would train for ever.
clean() {
    [ -z "$tmux" ] || $tmux kill-server 2>/dev/null
    for pid in $(sed -n 's/.*"pid": \([0-9]*\).*/\1/p' there/run/run.json there/runs/*/run.json 2>/dev/null); do
        # shellcheck disable=SC2046
        grep -qs train "/proc/$pid/cmdline" && kill -9 "$pid" $(family "$pid") 2>/dev/null
    done
    [ -z "$worker" ] || kill -9 "$worker" 2>/dev/null
    until_true 'rm -rf "$dir" 2>/dev/null'
}
trap clean EXIT

cat >there/bin/nvidia-smi <<'R'
#!/bin/sh
echo "NVIDIA H100 80GB HBM3, 88, 61035, 81559, 580.95"
echo "NVIDIA H100 80GB HBM3, 0, 4, 81559, 580.95"
R
chmod +x there/bin/nvidia-smi
cat >there/r.yaml <<'R'
max_duration: 100000000ba
seed: 3
model: {name: mlp, hidden: 16, layers: 1}
train_data: {name: synthetic_images, batch_size: 8, num_samples: 32, workers: 0}
optimizer: {name: sgd, lr: 0.001}
R
at there worker keygen >out 2>err && at here worker keygen >out 2>err
ok $? "two users with keys"
(umask 077 && echo "operator $(public here) me" >there/conf/authorized_keys)
(cd there && ETUDE_CONFIG_DIR="$dir/there/conf" XDG_STATE_HOME="$dir/there/state" \
    XDG_RUNTIME_DIR="$dir/there/r" PATH="$dir/there/bin:$PATH" exec "$ET_BUILDDIR/etude" \
    worker serve --listen tcp://127.0.0.1:0 >"$dir/served" 2>&1) &
worker=$!
# The process that serves, which its keeper has begun.
serving() { cat /proc/$worker/task/$worker/children; }
until_true 'grep -q "listening at" served'
address=$(sed -n 's/^listening at \([^,]*\),.*/\1/p' served)
at there train r.yaml -d --run_directory run --run_name far-otter >out 2>err
ok $? "one serves, and trains"
until_true 'grep -q "\"state\": \"running\"" there/run/run.json'
until_true 'at there checkpoint far-otter >out 2>err'

sees "lab is $address, pinned to SHA256:" "the other adds it" "+lab $address $dir/there/conf/curve.key<enter>"
sees '● lab' "it is ready" ''
sees '2 workers, 2 reachable' "and counted" ''
sees 'as operator' "with the role of this key" 'j'
sees 'lab answers in' "t tests it" 'jt'
says out 'from there   driver 580.95   far-otter' "bandwidth, driver, and the run that goes on"
says out ' 88%' "and what each GPU does"
says out '64/86G' "and how full it is"
at here worker test lab >out 2>err
says out "GPU 1  NVIDIA H100 80GB HBM3  0%" "as the command says"
at here worker test lab --json >out 2>err
says out '"bandwidth": ' "also in JSON"

sees 'far-otter' "enter shows its runs" 'j<enter>'
is "$(grep -c 'asking lab' out)" 0 "which are not being asked for any more"
sees ' live' "one of which is attached to" 'j<enter><enter>'
says out '[2 Monitor]' "in Monitor"
says out ' far-otter@lab ' "which says where it runs"
sees ' live' "as by its name in the form" 'afar-otter@lab<enter>'
sees 'done after batch' "and steered" 'afar-otter@lab<enter>ck'
sees 'done after batch' "annotated" 'afar-otter@lab<enter>aseen from here<enter>'
grep -qa 'seen from here' there/run/events.log
ok $? "in its log"
grep -qa 'uid:[0-9]*/SHA256:[^ ]* annotate -> noted' there/run/events.log
ok $? "under the fingerprint of the key"
sees 'done after batch' "and taken, by v" 'afar-otter@lab<enter>4vv'
# (For 30 s, of which a slow machine may need more for its next step: then once more.)
shows_taken() {
    text=$1
    shift
    "$@" >out 2>err </dev/null
    grep -qF -e "$text" out && return
    at here runs --dump-screen 100x32 --keys '4afar-otter@lab<enter>4vv' >again 2>&1 </dev/null
    false
}
mine='You have taken it: nobody else steers it.'
until_true 'shows_taken "$mine" at here runs --dump-screen 100x32 --keys "4afar-otter@lab<enter>4"'
says out "$mine" "which the form shows"
his='has taken it, for 30 s at most.'
until_true 'shows_taken "$his" at there attach far-otter --dump-screen 100x32 --keys c'
says out "$his" "and its owner is told"

# Launched from here.
cp there/r.yaml here/long.yaml
launches() {
    at here compose "$1" --dump-screen 100x32 --keys "$2" >out 2>err </dev/null
    says out "$3" "$4"
}
# The run's name, on the first line.
name_shown() { head -1 out | tr -s ' ' '\n' | sed -n 's/^\([a-z]*-[a-z]*\)@lab$/\1/p'; }
launches long.yaml L 'o  start it on another machine...' "L of Compose offers other machines"
launches long.yaml Lo 'launch on' "which are those of Workers"
says out "$address" "with their addresses"
launches long.yaml 'Lo<enter>' '[2 Monitor]' "one starts there, and Monitor shows it"
says out ' live' "as it goes on"
name=$(name_shown)
until_true 'at here stop "$name@lab" >out 2>err'
[ -e "$(echo there/runs/*/run.json)" ] && [ ! -e here/runs ]
ok $? "its directory is the worker's"
grep -q "\"name\": \"$name\"" there/runs/*/run.json
ok $? "under the name that was drawn here"
cat there/runs/*/run.json | grep -q '"recipe": "long"'
ok $? "with the recipe's"
sed 's|^train_data:.*|train_data: {name: fashion_mnist, path: /no/such/folder, batch_size: 8}|' \
    there/r.yaml >here/gone.yaml
launches gone.yaml 'Lo<enter>' 'x not started: ' "data that are not there are said"
says out '/no/such/folder' "in one line"
echo 'launch: {worker: lab}' >>here/long.yaml
launches long.yaml L 'on lab' "a worker that the recipe names is said"
launches long.yaml 'L<enter>' '[2 Monitor]' "and is where it starts"
name=$(name_shown)
until_true 'at here stop "$name@lab" >out 2>err'
is "$(ls there/runs | wc -l | tr -d ' ')" 2 "so there are two runs there"

# Runs that have ended.
# (STOPPED is in its facts before its hub is gone.)
until_true 'grep -l "\"name\": \"$name\"" there/runs/*/run.json | xargs grep -q "\"exit_code\": 75"'
until_true 'at here attach "$name@lab" --dump-screen 100x32 >out 2>err </dev/null; grep -q STOPPED out'
# hides FILE TEXT SENTENCE
hides() {
    ! grep -qF -e "$2" "$1"
    ok $? "$3"
}
over() {
    at here attach "$name@lab" --dump-screen 100x32 --keys "$1" >out 2>err </dev/null
    says out "$2" "$3"
}
over '' ' STOPPED ' "a run that has ended is shown as it ended"
grep -q 'STOPPED .* at [0-9][0-9]:[0-9][0-9]' out
ok $? "as one of which nothing more comes, and when"
hides out STARTING "not as one that starts,"
hides out damaged "nor as damaged: its directory is whole"
over 5 'exit 75' "Logs has what its ranks wrote there"
# (It has done thousands of epochs: those of a short run are compared below.)
written='5&kind=log<enter>'
until_true 'at there attach "$name" --dump-screen 100x400 --keys "$written" >told 2>&1'
at here attach "$name@lab" --dump-screen 100x400 --keys "$written" >out 2>err </dev/null
grep ' info ' told >wrote
grep ' info ' out | cmp -s - wrote && [ "$(grep -c saved wrote)" -gt 2 ]
ok $? "all that they have written"
over '<esc>c' 'the run has ended' "nothing can be asked of it, and why"
at here attach no-such@lab --dump-screen 100x32 >out 2>err </dev/null
says out 'no-such cannot be shown.' "a run that the worker does not know is a page"
says out 'no run of that name is known here' "with the worker's reason"
says out 'enter on the worker lists the runs that it has' "and what can be done"
hides out damaged "and nothing is said to be damaged"

# Beside runs of this machine.
cat >here/short.yaml <<'R'
max_duration: 3ep
seed: 3
model: {name: mlp, hidden: 16, layers: 1}
train_data: {name: synthetic_images, batch_size: 8, num_samples: 64, workers: 0}
eval_data: {name: synthetic_images, batch_size: 8, num_samples: 32, workers: 0}
optimizer: {name: sgd, lr: 0.1}
R
cp here/short.yaml there/
at here train short.yaml --run_directory short --run_name near-owl >out 2>err &&
    at there train short.yaml optimizer.lr=0.2 --run_directory short --run_name far-owl >out 2>err
ok $? "a run here and one there"
mkdir here/tmp
TMPDIR=$dir/here/tmp at here compare near-owl far-owl@lab >out 2>err
is $? 0 "are compared"
says out 'far-owl@lab' "by their names"
says out 'optimizer.lr ' "with what differs"
best=$(at there show far-owl --json | sed -n 's/.*"best": \([0-9.]*\).*/\1/p' | head -1)
[ -n "$best" ] && at here compare near-owl far-owl@lab --json >out 2>err
is $? 0 "and the values that it has there"
TMPDIR=$dir/here/tmp at here compare near-owl far-owl@lab --dump-screen 100x32 >out 2>err </dev/null
says out 'far-owl@lab' "on the screen Compare too,"
says out 'best accuracy' "with its curve"
# Its log, and one that is longer than what is sent of it.
at there attach far-owl --dump-screen 100x200 --keys 5 >told 2>err </dev/null
at here attach far-owl@lab --dump-screen 100x200 --keys 5 >out 2>err </dev/null
tail -n +4 told >wrote
tail -n +4 out | cmp - wrote
ok $? "Logs shows of it there what it shows here"
is "$(grep -c ' epoch  *ep ' out)" 3 "with its epochs, which no snapshot has"
at there train short.yaml max_duration=4000ba record_interval=1ba --run_directory full \
    --run_name far-elk >out 2>err
[ "$(wc -c <there/full/events.log)" -gt 2097152 ]
ok $? "a run with a log of more than 2 MiB"
at here attach far-elk@lab --dump-screen 100x400 --keys '5&kind=epoch<enter>' >out 2>err </dev/null
last=$(grep ' epoch  *ep ' out | tail -1)
case $last in *' ep 500  4000ba'*) true ;; *) false ;; esac
ok $? "is shown with its last epoch"
told=$(grep -c ' epoch  *ep ' out)
[ "$told" -gt 20 ] && [ "$told" -lt 390 ]
ok $? "and those that its last MiB tells of"
at here attach far-elk@lab --dump-screen 100x32 --keys 5 >out 2>err </dev/null
says out 'epochs are told from ' "which is said"
# While the log comes. (A dump waits for it: in a terminal.)
if command -v tmux >/dev/null 2>&1; then
    tmux="tmux -L etude-remote-$$ -f /dev/null"
    pane() { $tmux capture-pane -p -t w 2>/dev/null; }
    (cd here && ETUDE_CONFIG_DIR="$dir/here/conf" XDG_STATE_HOME="$dir/here/state" LC_ALL=C.UTF-8 \
        XDG_RUNTIME_DIR="$dir/here/r" $tmux new-session -d -s w -x 100 -y 30 \
        "exec '$ET_BUILDDIR/etude' attach far-owl@lab")
    until_true 'pane | grep -q "[+] FINISHED"'
    kill -STOP $(serving)
    $tmux send-keys -t w 5
    until_true "pane | grep -q \"no line has come yet\""
    pane >out
    is "$(grep -c 'nothing was logged' out)" 0 "a log that is still to come is not said to be empty"
    kill -CONT $(serving)
    until_true 'pane | grep -q "finished, exit 0"'
    pane >out
    says out 'finished, exit 0' "and then it comes"
    $tmux kill-server
fi
(
    ulimit -f 0
    TMPDIR=$dir/here/tmp at here compare far-owl@lab near-owl 2>&1
    echo "exit $?"
) | cat >out
says out 'exit 73' "where no file may be written: exit 73"
says out '/run.json: File too large' "with the file, and why"
is "$(ls here/tmp | wc -l | tr -d ' ')" 0 "nothing of it stays behind"
cp there/short/recipe.yaml whole
truncate -s 5M there/short/recipe.yaml
TMPDIR=$dir/here/tmp at here compare near-owl far-owl@lab >out 2>err
is $? 77 "a recipe that is said to be longer than there are is not copied: exit 77"
says err 'recipe.yaml is said to have 5.24 MB' "with its length"
says err '4.19 MB are not copied' "and how much is"
cp whole there/short/recipe.yaml
is "$(ls here/tmp | wc -l | tr -d ' ')" 0 "nothing of that stays behind"
kill -STOP $(serving)
(cd here && ETUDE_CONFIG_DIR="$dir/here/conf" XDG_STATE_HOME="$dir/here/state" TMPDIR="$dir/here/tmp" \
    XDG_RUNTIME_DIR="$dir/here/r" exec "$ET_BUILDDIR/etude" compare near-owl far-owl@lab >out 2>err) &
asking=$!
until_true '[ -n "$(ls here/tmp)" ]'
kill -TERM $asking
wait $asking
status=$?
kill -CONT $(serving)
[ $status -ge 128 ]
ok $? "a signal ends it while it waits for a worker"
is "$(ls here/tmp | wc -l | tr -d ' ')" 0 "and nothing of it stays behind either"
at here compare near-owl no-such@lab >out 2>err
is $? 77 "one that is not there is refused: exit 77"
says err 'no run of that name is known here' "with the reason"

# Another role, from one moment to the next.
(umask 077 && echo "viewer $(public here) me" >there/conf/new && mv there/conf/new there/conf/authorized_keys)
until_true 'at here worker list lab --json 2>err | grep -q "\"role\": \"viewer\""'
sees 'as viewer' "a key that is a viewer's now" 'j'
sees 'your key may watch, not control' "controls nothing" 'afar-otter@lab<enter>c'
sees 'no note can be made: your key may watch' "and notes nothing" 'afar-otter@lab<enter>a'
at here set far-otter@lab optimizer.lr=1 >out 2>err
is $? 77 "by no command either: exit 77"

# Keys that are wrong.
sees "odd is $address" "the same address with another key" "+odd $address $dir/here/conf/curve.key<enter>"
sees '✗ odd' "is not spoken to" ''
rm here/conf/curve.key && at here worker keygen >out 2>err
sees 'key refused' "a key of ours that is not let in is refused" 'j'
says out "k copies the command that lets this key in there" "with what to do"
kill $worker
wait $worker
is $? 0 "the worker ends"
worker=
sees '✗ lab' "and is not reachable" 'j'
kill -0 "$(run_pid)"
ok $? "while its run goes on"
finish
