#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is asked of a run that is under way, here and by ssh: set, algo, loglevel, one rank.
. "$(dirname "$0")/cli.sh"
export ETUDE_CONFIG_DIR="$dir/config" XDG_RUNTIME_DIR="$dir/r"
mkdir -m 700 r
cat >r.yaml <<'R'
max_duration: 100000000ba
seed: 3
model: {name: mlp, hidden: 16, layers: 1}
train_data: {name: synthetic_images, batch_size: 8, num_samples: 32, workers: 0}
optimizer: {name: sgd, lr: 0.001}
algorithms: {mixup: {alpha: 0.2}}
checkpoint: {interval: 100000000ba, keep: 1}
R
state() { sed -n 's/.*"state": "\([a-z-]*\)".*/\1/p' here/run.json; }
supervisor() { sed -n 's/.*"pid": \([0-9]*\).*/\1/p' here/run.json; }
# A hub takes ten commands a second of one user. Commands wait for their turn; what a
# screen was refused is not asked again.
rest() { sleep 1.2; }
# A run trains for ever: what a failed test leaves is ended with it.
clean() {
    pid=$(supervisor 2>/dev/null)
    # shellcheck disable=SC2046
    [ -z "$pid" ] || kill -9 "$pid" $(family "$pid") 2>/dev/null
    until_true 'rm -rf "$dir" 2>/dev/null'
}
trap clean EXIT

run train r.yaml -d --run_directory here --run_name brisk-otter
exits 0 "a run"
until_true 'run checkpoint brisk-otter; [ $code = 0 ]'
exits 0 "that answers"

run set brisk-otter optimizer.lr=0.05
exits 0 "set changes an option"
says out "brisk-otter has optimizer.lr=0.05, was 0.001, after batch " "and says what it was, and when"
run set brisk-otter algorithms.mixup.alpha=0.3 optimizer.lr=0.01 --json
exits 0 "set takes several"
says out '"text": "was 0.05"' "each of which has its answer"
says out '"key": "algorithms.mixup.alpha"' "in JSON"
run set brisk-otter optimizer.lr=0.02 optimizer.lr=-1
exits 65 "one that breaks the option's rules is refused"
says out "has optimizer.lr=0.02" "those before it stay"
says err "optimizer.lr" "and the key is named"
run set brisk-otter optimizer.lr=1e9
exits 65 "a rate that would end the run is refused"
says err "optimizer.lr 1e9 outside (0, 10]" "with what it may be"
run set brisk-otter optimizer.lr=0.03 algorithms.mixup.alpha=0.25 optimizer.lr=-1 optimizer.lr=0.04 --json
exits 65 "the first that is refused ends it"
is "$(tr -d ' \n' <out | sed -E 's/"(ba|rev)":[0-9]+/"\1":_/g')" "$(tr -d '\n' <<'J'
[{"name":"brisk-otter","op":"set","key":"optimizer.lr","value":"0.03","ba":_,"rev":_,"text":"was0.02"},
{"name":"brisk-otter","op":"set","key":"algorithms.mixup.alpha","value":"0.25","ba":_,"rev":_,"text":"was0.3"}]
J
)" "and --json has those before it, each with its own value"
is "$(sed -n 's/.*"rev": \([0-9]*\).*/\1/p' out | awk 'NR == 1 { a = $1 } NR == 2 { print ($1 == a + 1) }')" 1 \
    "numbered in their order"
run set brisk-otter optimizer.lr=0.02 -q
is "$code $(cat out)" "0 " "-q says nothing"
run set brisk-otter seed=4
exits 65 "so is one that cannot change"
says err "seed cannot be set while a run is under way" "with the reason"
run set brisk-otter
exits 64 "set without a setting: exit 64"
run set brisk-otter optimizer.lr=
exits 64 "and one without a value"
run set nobody optimizer.lr=1
exits 66 "a run that there is not: exit 66"

run algo brisk-otter mixup off
exits 0 "algo switches an algorithm"
says out "brisk-otter has mixup off, after batch " "and says so"
run algo brisk-otter mixup on --json
says out '"text": "was off"' "in JSON with what it was"
run algo brisk-otter ema off
exits 65 "one that the run has not is refused"
says err "the run has no algorithm ema" "by name"
run algo brisk-otter mixup maybe
exits 64 "on or off, nothing else"
run algo brisk-otter mixup off alpha=0.4
exits 64 "what is switched off takes no options"
run algo brisk-otter mixup on 'alpha=0. 4'
exits 64 "an option has no blanks"
run algo brisk-otter mixup on "alpha=0.$(printf '%0250d' 4)"
exits 64 "and an end"
run algo brisk-otter label_smoothing on smoothing=0.4 --json
is "$(tr -d ' \n' <out | sed -E 's/"(ba|rev)":[0-9]+/"\1":_/g; s/,"text":.*//')" \
    '{"name":"brisk-otter","op":"algo","key":"label_smoothing","value":"onsmoothing=0.4","ba":_,"rev":_' "one that is new may be given options"
run set brisk-otter algorithms.label_smoothing.smoothing=0.3
says out "algorithms.label_smoothing.smoothing=0.3, was 0.4" "which it then has"
run loglevel brisk-otter debug
exits 0 "loglevel changes what is logged"
says out "logs what is debug or worse" "and says it"
run loglevel brisk-otter loud
exits 64 "a level that is none: exit 64"
logged='grep -aq "set optimizer.lr 0.05 -> was 0.001" here/events.log && grep -aq "algo mixup off -> was on" here/events.log'
until_true "$logged"
eval "$logged"
ok $? "all of it is among the run's events"

# Somebody else's machine, by an ssh that is none.
mkdir bin
cat >bin/ssh <<R
#!/bin/sh
[ "\$1 \$2 \$3" = "-T -- lab-c" ] || exit 255
shift 3
shift
exec "$etude" "\$@"
R
chmod +x bin/ssh
PATH="$dir/bin:$PATH"
run worker add near ssh://lab-c
exits 0 "a worker"
run set brisk-otter@near optimizer.lr=0.5
exits 0 "set RUN@WORKER"
says out "brisk-otter@near has optimizer.lr=0.5, was 0.02" "is the same, elsewhere"
run pause ssh://lab-c/brisk-otter
exits 0 "and so are the others, by an address"
run pause near
exits 64 "a worker alone is not enough"
says err "RUN@near" "and that is said"
run stop nobody@near
exits 69 "a run that the worker does not know: exit 69"
says err "no run of that name is known" "in its words"
run continue brisk-otter@near --json
says out '"op": "continue"' "--json has the operation"

# Notes, which everybody sees.
run annotate brisk-otter 'by hand: "so"'
exits 0 "a run that goes on can be annotated"
run annotate brisk-otter@near "from afar" --json
exits 0 "one elsewhere, too"
says out '"text": "from afar"' "--json has the note"
run annotate brisk-otter "$(head -c 1025 /dev/zero | tr '\0' x)"
exits 0 "one that is too long"
[ "$(grep -ac "x\{1021\}\.\.\." here/events.log)" = 1 ]
ok $? "is cut, which shows"
rest
run attach brisk-otter --dump-screen 100x30 --keys 'aseen here<enter>'
exits 0 "the key a in Monitor"
says out "done after batch" "says that it is noted"
run attach brisk-otter@near --dump-screen 100x30 --keys 'afrom a screen afar<enter>'
says out "done after batch" "of a run elsewhere, too"
run attach brisk-otter --dump-screen 100x30
says out "from a screen afar" "every viewer is shown it"
for note in 'by hand: "so"' "from afar" "seen here" "from a screen afar"; do
    is "$(grep -aoF "$note" here/events.log | wc -l | tr -d ' ')" 1 "it is in the log once: $note"
done
grep -qa "uid:[^ ]* annotate -> noted" here/events.log
ok $? "which says whose they are"
run attach brisk-otter --dump-screen 100x30 --readonly --keys 'a'
says out "no note can be made: started with --readonly" "a viewer makes none"
pids=
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
    "$etude" annotate brisk-otter "note $i of many" >/dev/null 2>&1 &
    pids="$pids $!"
done
refused=0
for pid in $pids; do wait "$pid" || refused=$((refused + 1)); done
is $refused 0 "more commands than are taken in a second wait for their turn"
rest
# (11 s: twice as long as whoever connects waits for a first word, and more than a hub
# that is not there is given.)
hub=$(pgrep -f __hub -P "$(supervisor)")
kill -STOP "$hub"
"$etude" annotate brisk-otter "in spite of that" >out 2>err &
late=$!
sleep 11
kill -CONT "$hub"
wait $late
is $? 0 "a hub that takes its time is waited for"

# Who steers it.
run attach brisk-otter@near --dump-screen 100x30 --keys 'c'
says out "Nobody has taken it." "the control menu says who has taken the run"
run attach brisk-otter --dump-screen 100x30 --keys 'ct'
says out "done after batch" "which one can"
run attach brisk-otter@near --dump-screen 100x30 --keys 'c'
says out "uid:$(id -u) has taken it, for 30 s at most." "others are told"
says out "pause before the next batch (frees nothing)  (taken)" "and cannot steer it"
run attach brisk-otter --dump-screen 100x30 --keys 'c'
says out "You have taken it: nobody else steers it." "the holder can"
run take brisk-otter # for 30 s more
exits 0 "so does the command take"
says out "brisk-otter is yours to steer, for 30 s, after batch " "and says for how long"
run attach brisk-otter --dump-screen 100x30 --keys '4'
says out "brisk-otter: You have taken it" "Workers says it, too"
run attach brisk-otter --dump-screen 100x30 --keys 'ct'
run pause brisk-otter@near
exits 77 "nor by a command"
run attach brisk-otter --dump-screen 100x30 --keys '4v2c'
says out "You watch this run as a viewer." "of a viewer control asks whether to operate"
run attach brisk-otter --dump-screen 100x30 --keys '4v2co'
says out "pause before the next batch" "who then gets the menu"

run stop brisk-otter --rank 0
exits 64 "stop takes no rank"
says err "all ranks of a run do that after the same batch" "and says why"
run kill brisk-otter --rank 5
exits 65 "a rank that there is not is not killed"
says err "the ranks here are 0 to 0" "and it is said which there are"
is "$(state)" running "and nothing has ended"
run kill brisk-otter --rank 0
exits 0 "kill --rank ends a rank"
says out "brisk-otter has lost rank 0" "and says which"
until_true '[ "$(state)" = failed ]'
is "$(state)" failed "as if the system had: the run has failed"
grep -aq "kill 0 -> killed" here/events.log
ok $? "who did it is among its events"
run set brisk-otter optimizer.lr=1
exits 69 "nothing is asked of a run that has ended"
run annotate brisk-otter "it was rank 0"
exits 0 "but it can be annotated"
run show brisk-otter
says out "it was rank 0" "all the same"
run annotate brisk-otter@near "too late"
exits 69 "from here alone: a worker has no hub for it"
finish
