#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `train --on`: a recipe is sent to a worker, and is a run there. The worker is reached by
# an ssh that is none, as another user of this machine with folders of his own.
. "$(dirname "$0")/cli.sh"
export ETUDE_CONFIG_DIR="$dir/config"
mkdir -p there/r there/home bin && chmod 700 there/r
cat >bin/ssh <<R
#!/bin/sh
[ "\$1 \$2 \$3" = "-T -- lab" ] || exit 255
[ ! -e "$dir/away" ] || exit 255
[ ! -e "$dir/broken" ] || { rm "$dir/broken"; exit 255; }
shift 4
cd "$dir/there/home" || exit 1
for name in \$(env | sed -n 's/^\(ETUDE_SET_[a-z_]*\)=.*/\1/p'); do unset "\$name"; done
export ETUDE_CONFIG_DIR="$dir/there/conf" XDG_STATE_HOME="$dir/there/state" \\
    XDG_RUNTIME_DIR="$dir/there/r"
[ ! -e "$dir/cut" ] || exec perl "$dir/cut.pl" "$etude" "\$@"
exec "$etude" "\$@"
R
chmod +x bin/ssh
# Passes WELCOME on, and is gone when the command is RECEIVED: each message has its length
# before it.
cat >cut.pl <<'R'
unlink "$ENV{HOME}/cut";
open my $relay, '-|', @ARGV or die;
sub message { read $relay, my $n, 4; read $relay, my $body, unpack 'V', $n; return $n . $body }
syswrite STDOUT, message();
message();
kill 'KILL', $$;
R
export HOME="$dir"
PATH="$dir/bin:$PATH"
tiny small.yaml
cp small.yaml long.yaml
pids() { sed -n 's/.*"pid": \([0-9]*\).*/\1/p' there/home/runs/*/run.json 2>/dev/null; }
clean() {
    for pid in $(pids); do
        # shellcheck disable=SC2046
        grep -qs "train" "/proc/$pid/cmdline" && kill -9 "$pid" $(family "$pid") 2>/dev/null
    done
    until_true 'rm -rf "$dir" 2>/dev/null'
}
trap clean EXIT
# there STATE: do so many runs of that state stand there?
count() { cat there/home/runs/*/run.json 2>/dev/null | grep -c "\"state\": \"$1\""; }
run worker add lab ssh://lab
exits 0 "a worker"

# (Which is no name that is drawn.)
run train small.yaml -d --on lab --run_name calm-yak optimizer.lr=0.05 --alg mixup
exits 0 "train --on starts a run there"
says out "calm-yak goes on at lab. etude attach calm-yak@lab" "and says how to see it"
until_true '[ "$(count finished)" = 1 ]'
is "$(count finished)" 1 "it trains there, to its end"
[ ! -e runs ]
ok $? "and nothing is here"
set -- there/home/runs/*
says "$1/recipe.resolved.yaml" "lr: 0.05" "settings are sent along"
says "$1/recipe.resolved.yaml" "mixup" "as are algorithms"
says "$1/run.json" '"recipe": "small"' "it knows what the recipe is called here"
until_true 'run worker runs lab; [ $code = 0 ]'
says out "calm-yak" "the worker tells of it"
run train long.yaml -d --on ssh://lab --json max_duration=100000000ba
exits 0 "an address will do"
says out '"worker": "ssh://lab"' "--json has the worker and the name"
name=$(sed -n 's/.*"name": "\([^"]*\)".*/\1/p' out)
pid=$(sed -n 's/.*"pid": \([0-9]*\).*/\1/p' "$(grep -l "\"$name\"" there/home/runs/*/run.json)")
is "$(tr '\0' '\n' <"/proc/$pid/cmdline" | head -n 1)" etude "its processes are called etude"
until_true 'run stop "$name@lab"; [ $code = 0 ]'
exits 0 "the run can be stopped from here"
until_true '[ "$(count stopped)" = 1 ]'
is "$(count stopped)" 1 "which it is"

# Warnings come before the answer.
grep -v '^optimizer:' small.yaml >bare.yaml
run train bare.yaml -d --on lab --run_name bare
exits 0 "a recipe that is warned about"
says out "bare goes on at lab" "is started all the same"
until_true '[ "$(count finished)" = 2 ]'

# What it includes goes along, and is what it is here.
mkdir -p parts/deep
printf 'optimizer: {name: sgd, lr: 0.25}\ninclude: parts/deep/seed.yaml\n' >parts/rate.yaml
sed -i 's|parts/deep|deep|' parts/rate.yaml
echo 'seed: 77' >parts/deep/seed.yaml
{
    echo '# as I wrote it'
    echo 'include: [parts/rate.yaml, parts/deep/seed.yaml]'
    grep -v '^seed:\|^optimizer:' small.yaml
} >made.yaml
ETUDE_SET_train_data__batch_size=4 run train made.yaml -d --on lab --run_name made
exits 0 "a recipe of several files"
until_true '[ "$(count finished)" = 3 ]'
at=$(grep -l '"name": "made"' there/home/runs/*/run.json)
at=${at%/run.json}
cmp -s made.yaml "$at/recipe.yaml"
ok $? "its text stays as it was written"
says "$at/recipe.resolved.yaml" "0.25" "what it includes is in it"
grep 'seed: 77' "$at/recipe.resolved.yaml" | grep -q 'parts/deep/seed.yaml:1:'
ok $? "from where it is here, file and line"
says "$at/recipe.resolved.yaml" "batch_size: 4" "ETUDE_SET_... of here sets it there"
echo 'nonsense: 1' >>parts/rate.yaml
run train made.yaml -d --on lab
exits 65 "a fault in what it includes"
says err "lab: parts/rate.yaml:3:1: unknown key 'nonsense'" "has its file and line"
rm parts/deep/seed.yaml
run train made.yaml -d --on lab
exits 66 "a file that is not here"
says err "made.yaml:2:28: cannot read parts/deep/seed.yaml" "is missed here"
echo 'api_token: ghp_0123456789012345678901234567' >secret.yaml
run train secret.yaml -d --on lab
exits 65 "what looks like a secret"
says err "secret" "is not sent"
head -c 150000 /dev/zero | tr '\0' '#' >parts/long.yaml
{
    echo 'include: parts/long.yaml'
    head -c 60000 /dev/zero | tr '\0' '#'
} >large.yaml
run train large.yaml -d --on lab
exits 64 "more than 200 KiB in all"
says err "with what they include" "is said to be"

# A line that breaks before anything is asked is a worker that is not reached.
touch broken
run train small.yaml --on lab
exits 69 "a worker that does not answer: exit 69"
touch cut
run train small.yaml -d --on lab --run_name once
exits 0 "one whose answer is lost is asked again"
says out "once goes on at lab" "for what it was asked"
[ ! -e cut ]
ok $? "(the line was cut)"
until_true '[ "$(count finished)" = 4 ]'
is "$(cat there/home/runs/*/run.json | grep -c '"name": "once"')" 1 "and it is one run"
run train nothing.yaml --on lab
exits 66 "a recipe that is not there: exit 66"
run train small.yaml --on lab optimizer.lrr=1
exits 65 "what is wrong is found there"
says err "lab: " "which is said"
says err "unknown key 'optimizer.lrr'" "in the words of train"
sed 's|^train_data:.*|train_data: {name: fashion_mnist, path: /no/such/folder, batch_size: 8}|; /^eval_data/d' small.yaml >gone.yaml
run train gone.yaml --on lab
[ $code = 65 ] || [ $code = 66 ]
ok $? "so are data that are not there"
says err "/no/such/folder" "with their place"
says err "hint: data are the worker's: copy them there" "and what to do"
says err "train_data.path=/..." "with a path that begins at the root, as one beside the recipe is never there"
run train small.yaml --on lab:64
exits 69 "GPUs that are not there: exit 69"
says err "lab: 64 GPUs are wanted, and there are " "with how many there are"
run train small.yaml --on lab:2 -n 3
exits 64 "GPUs and ranks that differ"
run train small.yaml --on elsewhere
exits 65 "a worker that nobody knows"
run train small.yaml --on lab:none
exits 64 "a number of GPUs that is none"
head -c 210000 /dev/zero | tr '\0' '#' >large.yaml
run train large.yaml --on lab
exits 64 "a recipe of more than 200 KiB"
for option in "--run_directory x" "--resume x" "--autoresume" "--dry-run" "--stdout x" "--stderr x" \
    "--world_size 2" "--base_rank 1" "--node_rank 1" "--master_addr localhost" "--master_port 5000"; do
    # shellcheck disable=SC2086
    run train small.yaml --on lab $option
    exits 64 "$option does not go with --on"
    says err "does not go with --on" "which is said"
done
is "$(cat there/home/runs/*/run.json | grep -c '"state"')" 5 "and nothing was started by any of these"

# Where the recipe says it.
echo 'launch: {worker: lab}' >>small.yaml
run train small.yaml -d
exits 0 "launch.worker of a recipe is as good"
says out "goes on at lab" "as --on"
until_true '[ "$(count finished)" = 5 ]'
is "$(count finished)" 5 "and means nothing to the worker itself"
run train small.yaml --unset launch.worker --quiet
exits 0 "without it the run is here"
[ -e runs ]
ok $? "in its own folder"
run rerun last -d --on lab --run_name twin
exits 0 "rerun takes --on, too"
says out "twin goes on at lab" "with a name"

until_true '[ "$(count finished)" = 6 ]'

# What a worker says of itself.
run worker test lab --json
exits 0 "a worker is tested"
is "$(grep -o '"[a-z_]*":' out | tr -d '\n')" \
    '"worker":"host":"version":"role":"cores":"gpus":"rtt_ms":"uptime_s":"disk_free":"runs":"run":"driver":"bandwidth":"gpu":' \
    "and says all there is to it"
is "$(sed -n 's/^ *"\(worker\|role\|gpus\)": \(.*\),$/\2/p' out | tr '\n' ' ')" '"lab" "operator" 0 ' "what it is called, and may be asked"
run worker list lab --json
is "$(tr -d ' \n' <out | sed 's/"rtt_ms":[0-9.e-]*/"rtt_ms":T/; s/"host":"[^"]*"/"host":"H"/; s/"cores":[0-9]*/"cores":N/; s/"version":"[^"]*"/"version":"V"/')" \
    '[{"name":"lab","address":"ssh://lab","state":"ready","why":"","host":"H","version":"V","role":"operator","cores":N,"gpus":0,"rtt_ms":T}]' \
    "the list has it in JSON"
# (Nothing goes to another process and back in five microseconds.)
is "$(sed -n 's/^ *"rtt_ms": \([0-9.e-]*\).*/\1/p' out | awk '{ print ($1 > 0.005) }')" 1 "with its time there and back in ms"
run worker runs lab --json
is "$(grep -c '"state": "finished"' out)" 6 "and its runs, with their states"

# What is fetched of a run for a comparison goes, however that ends.
mkdir copies
for target in 'Accuracy>=0' 'nothing>=1'; do
    TMPDIR=$dir/copies run compare once@lab twin@lab --target "$target"
    exits "$([ "$target" = 'nothing>=1' ] && echo 66 || echo 0)" "two runs of a worker are compared: $target"
    is "$(ls -A copies)" "" "and nothing of them stays here"
done

TMPDIR=$dir/copies run compare once@lab nobody@lab
exits 77 "a run that the worker does not have is not compared"
says err "nobody@lab: no run of that name is known here" "and is named"
touch away
TMPDIR=$dir/copies run compare once@lab twin@lab
exits 69 "nor is one of a worker that does not answer"
says err "once@lab: " "which is the first that was asked for"
rm away
TMPDIR=$dir/nowhere run compare once@lab twin@lab
exits 73 "where there is no folder for copies"
says err "cannot make $dir/nowhere/etude-run-" "it is said which"
is "$(ls -A copies)" "" "nothing of these stays here either"

# A run of a worker, again.
mkdir copies2
TMPDIR=$dir/copies2 run rerun twin@lab --run_name again
exits 0 "rerun of a run on a worker trains it again there"
run worker runs lab
says out "again" "as a run of the worker's"
run rerun nobody@lab
[ "$code" != 0 ]
ok $? "of one that the worker does not have it does not"
says err "nobody@lab" "which is said"
run rerun twin@lab --run_directory here
exits 64 "what means nothing to a worker is refused"
is "$(ls -A copies2)" "" "and nothing of its copies stays here"

# Without -d the run is shown as one of here is, and its end is the end.
run train small.yaml --run_name seen
exits 0 "a run that is watched to its end"
says out "seen: finished after 2 batches, eval/" "has its result on standard output"
says out "lab:$dir/there/home/runs/" "with where it is"
says err "start seen in lab:$dir/there/home/runs/" "and plain lines like one of here"
says err "end seen finished" "to the last"
run train small.yaml --run_name missed --target 'Accuracy>=1.5'
exits 6 "its exit code is the run's"
says err "error E6003: lab: the run is finished after batch 2" "and it is said which"
run rerun last --on lab --run_name triple --json --progress none
exits 0 "rerun waits as well"
says out '"exit_code": 0' "with --json there is one document, where no line was wanted"
says out '"metrics/eval/' "with the results"

# One that is slow enough not to leave the hub's memory while nobody looks.
cat >slow.yaml <<'R'
max_duration: 100000000ba
seed: 3
model: {name: mlp, hidden: 512, layers: 3}
train_data: {name: synthetic_images, batch_size: 64, num_samples: 128, workers: 0}
optimizer: {name: sgd, lr: 0.01}
checkpoint: {interval: 100000000ba}
R
# watch NAME ARGS...: shows a run in the background: process $front, files shown and told
watch() {
    rm -f shown told # what is begun beside this empties them when it comes to it
    "$etude" train slow.yaml --on lab --run_name "$@" >shown 2>told </dev/null &
    front=$!
    until_true 'grep -qs "\"ev\":\"batch\"" shown'
}
ends() {
    wait "$front"
    is "$?" "$1" "$2"
}
# The processes that its line to the worker is.
line() { ps -o pid= --ppid "$front"; }
# sever: the worker cannot be reached any more; waits until this is told. (It may have been
# told before, of a run that had no hub yet.)
sever() {
    before=$(grep -c "lab does not answer" shown)
    touch away
    # shellcheck disable=SC2046
    kill -9 $(line) # what ssh has become
    until_true '[ "$(grep -c "lab does not answer" shown)" -gt "$before" ]'
}
# Every batch is there once, in order, from the first on.
in_order() {
    sed -n 's/.*"ev":"batch","ep":[0-9]*,"ba":\([0-9]*\).*/\1/p' shown |
        awk '$1 != NR { exit 1 } END { exit NR < 2 }'
    ok $? "$1"
}
watch steered --progress json
at=$(dirname "$(grep -l '"name": "steered"' there/home/runs/*/run.json)")
is "$(ls "$at/checkpoints" 2>/dev/null)" "" "nothing is saved by itself"
kill -USR1 $front
until_true 'ls "$at"/checkpoints/step-* >/dev/null 2>&1'
is "$(ls "$at/checkpoints" | grep -c step)" 1 "USR1 saves it there"
kill -INT $front
ends 75 "INT stops it, and its exit code is 75"
says shown '"state":"stopped","exit_code":75' "as the last line has it"
says told "lab: the run is stopped after batch " "and the error"
says told "etude train --resume $dir/there/home/runs/" "and how to go on"
in_order "all its batches were shown, each once"

watch severed --progress json
sever
[ "$(grep -c "lab does not answer" shown)" -gt "$before" ]
ok $? "a worker that is away is waited for"
kill -0 $front
ok $? "for as long as it takes"
before=$(grep -c "lab answers again, gap filled: " shown)
rm away
until_true '[ "$(grep -c "lab answers again, gap filled: " shown)" -gt "$before" ]'
says shown "lab answers again, gap filled: " "until it is back"
kill -TERM $front
ends 75 "TERM stops it"
in_order "and of what came meanwhile nothing is missing"

# A line that is dead takes what is written into it, and breaks off.
watch doomed --progress json
dead=$(line)
# shellcheck disable=SC2086
kill -STOP $dead
kill -TERM $front
# shellcheck disable=SC2086
kill -9 $dead
ends 75 "TERM that went with a line that broke off is said again"
in_order "and all is there"

watch alone --progress json
sever
kill -INT $front
ends 69 "a run that cannot be told to stop is left"
says told "lab does not answer: alone goes on there" "as it says"
rm away
is "$(count running)" 1 "and it does"
until_true 'run stop alone@lab; [ $code = 0 ]'

# Plugins are those that the worker's user allows, whose bytes are known.
printf 'include: [small.yaml]\nplugins: [signs]\noptimizer: {name: sign_sgd, lr: 0.01}\n' >signs.yaml
${CC:-cc} -shared -fPIC "-I$ET_SRCDIR/include" "-I$ET_BUILDDIR/include" -o there/signs.so "$ET_SRCDIR/examples/plugin.c" >out 2>err
ok $? "a plugin is built"
run train signs.yaml -d --on lab --run_name signs
exits 77 "one that the worker's user does not allow is refused: exit 77"
says err "lab: signs.yaml:2:11: plugins: 'signs' is not in plugins: of config.yaml" "in the words of train"
mkdir -p there/conf
entry="path: $dir/there/signs.so"
printf 'plugins: {signs: {%s, develop: true}}\n' "$entry" >there/conf/config.yaml
run train signs.yaml -d --on lab --run_name signs
exits 77 "one that is under development there, likewise"
says err "signs.so: a worker loads no plugin that is under development" "which is said"
printf "plugins: {signs: {%s, sha256: '%s'}}\n" "$entry" \
    "$(sha256sum <there/signs.so | cut -d ' ' -f 1)" >there/conf/config.yaml
run train signs.yaml -d --on lab --run_name signs
exits 0 "one that is allowed by its digest trains"
until_true 'grep -l "\"name\": \"signs\"" there/home/runs/*/run.json | xargs grep -q "\"finished\""'
at=$(grep -l '"name": "signs"' there/home/runs/*/run.json)
says "${at%/run.json}/metrics.jsonl" "lr-SignSGD/group0" "with its optimizer"

# What is sent with a recipe is each setting of here, as `train` would take it here.
ETUDE_SET_optimizer__lr=0.5 ETUDE_SET_optimizer__momentum=0.75 \
    ETUDE_SET_eval_data__label=own__set run train small.yaml -d --on lab --run_name words \
    optimizer.lr=0.05 --alg label_smoothing --alg mixup --no-alg mixup --unset seed --timeout 77s
exits 0 "settings of each kind go along"
until_true 'grep -l "\"name\": \"words\"" there/home/runs/*/run.json | xargs grep -q "\"finished\""'
at=$(grep -l '"name": "words"' there/home/runs/*/run.json)
sed 's/^ *//; s/ *#.*//' "${at%/run.json}/recipe.resolved.yaml" >words
for line in 'lr: 0.05' 'momentum: 0.75' 'label: own__set' 'smoothing: 0.1' 'timeout: 77s'; do
    says words "$line" "which are in the recipe there: $line"
done
is "$(grep -c 'mixup: false\|seed: 3$' words)$(grep -c 'mixup: false' words)" 11 "and what is left out is not"
# long N: N bytes
long() { head -c "$1" /dev/zero | tr '\0' x; }
# some N: N settings of a key that there is not
some() { i=0; while [ $i -lt "$1" ]; do echo "nonsense=$i"; i=$((i + 1)); done; }
# shellcheck disable=SC2046
run train small.yaml --on lab $(some 32)
exits 65 "32 settings are sent"
# shellcheck disable=SC2046
run train small.yaml --on lab $(some 33)
exits 64 "33 are not"
run train small.yaml --on lab "nonsense=$(long 1014)"
exits 65 "nor is one of more than 1023 bytes: this has as many"
run train small.yaml --on lab "nonsense=$(long 1015)"
exits 64 "this has one more"
ETUDE_SET_nonsense=$(long 1014) run train small.yaml --on lab
exits 65 "a variable may be as long"
ETUDE_SET_nonsense=$(long 1015) run train small.yaml --on lab
exits 64 "and no longer"
says err "a worker takes 32 settings of at most 1023 bytes" "which is said"
run train small.yaml --on lab -n none
exits 64 "a number of ranks goes along, and is read there"
says err "lab: --nproc: expected" "which says that it is none"
run train small.yaml --on lab:64 -n 64
exits 69 "GPUs and ranks that are as many are asked for"
says err "lab: 64 GPUs are wanted" "as GPUs"
for where in lab:0 lab:2x lab: :2 lab:65537 lab,lab words@lab; do
    run train small.yaml --on $where
    is "$code $(grep -c 'error E[0-9]*: lab: ' err)" "$([ $where = lab,lab ] && echo 69 || echo 64) 0" "--on $where is refused here"
done
: >empty.yaml
run train empty.yaml --on lab
exits 64 "an empty recipe is not sent"



# What is told of the end are the run's own numbers.
cat >falls.yaml <<'R'
max_duration: 7ba
eval_interval: 1ba
seed: 3
model: {name: mlp, hidden: 16, layers: 1}
train_data: {name: synthetic_images, batch_size: 8, num_samples: 32, workers: 0}
eval_data: {name: synthetic_images, num_samples: 16, workers: 0}
optimizer: {name: sgd, lr: 3}
R
# last METRIC: of the run's evaluations
last() { grep -o "\"metrics/eval/$1\":[0-9.e-]*" "$at/metrics.jsonl" | tail -n 1 | cut -d : -f 2; }
run train falls.yaml --on lab --run_name told
exits 0 "a run that is watched to its end"
cp out told
at=$(dirname "$(grep -l '"name": "told"' there/home/runs/*/run.json)")
run worker runs lab --json
seconds=$(sed -n '/"name": "told"/,/"train_seconds"/s/.*"train_seconds": \([0-9.e-]*\),/\1/p' out)
is "$(cat told)" "$(LC_ALL=C awk -v s="$seconds" -v a="$(last Accuracy)" -v e="$(last CrossEntropy)" 'BEGIN {
    printf "told: finished after 7 batches, eval/Accuracy %.4f, eval/CrossEntropy %.4f, ", a, e
    printf "%.1f s of training, %.0f samples/s on average", s, 56 / s }')
lab:$dir/$at" "is told with its batches, last results, time and speed"
run train falls.yaml --on lab --run_name document --json --progress none
exits 0 "one that is told as JSON"
at=$(dirname "$(grep -l '"name": "document"' there/home/runs/*/run.json)")
cp out document
is "$(tr -d ' \n' <document | sed 's/\(train_seconds\|Accuracy\|Entropy\)":[0-9.e-]*/\1":N/g')" \
    '{"name":"document","worker":"lab","directory":"'"$dir/$at"'","state":"finished","exit_code":0,"ba":7,"sp":56,"train_seconds":N,"metrics":{"metrics/eval/Accuracy":N,"metrics/eval/CrossEntropy":N}}' \
    "has each field"
run train falls.yaml --on lab --run_name still --quiet --progress none
is "$code $(cat out err)" "0 " "one that is to be quiet tells nothing"
run train falls.yaml --on lab --run_name wild optimizer.lr=1e38 max_duration=40ba eval_interval=40ba nonfinite.grace=25
exits 3 "a run that diverged there: exit 3"
says err "end wild diverged ep=6 ba=26" "is told to have ended where it did"
says err "error E6002: lab: the run is diverged after batch 26: the loss or gradient was not finite" "and why"
finish
