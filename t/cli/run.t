#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A run from its start to its end: what it prints, what it leaves behind, how it ends.
. "$(dirname "$0")/cli.sh"
tiny r.yaml

# field FILE KEY...: values of an indented JSON file, side by side
field() {
    file=$1
    shift
    for key; do sed -nE "s/^ *\"$key\": (.*[^,]),?\$/\\1/p" "$file"; done | tr '\n' ' '
}

# lines FILE KEYS: of each JSON line the values of these keys, - where there is none
lines() {
    while read -r line; do
        shown=
        for key in $2; do
            value=$(echo "$line" | sed -nE "s|.*\"$key\":\"?([^\",}]*)[\",}].*|\\1|p")
            shown="$shown ${value:--}"
        done
        echo "$shown"
    done <"$1" | sed 's/^ //'
}

# ---- the run directory ----

run train r.yaml --run_name brisk-otter --run_directory here/it optimizer.lr=0.2 seed=7
exits 0 "a run that ends well: exit 0"
# (control.log comes with the hub, which so short a run may end without.)
is "$(ls -A here/it | grep -v control.log | tr '\n' ' ')" \
    "checkpoints events.log logs metrics.jsonl recipe.resolved.yaml recipe.yaml report.json run.json " \
    "the run directory holds what it should, and nothing half written"
is "$(ls -A here/it/logs)" "rank0.txt" "the rank has its log"
is "$(stat -c %a here/it here/it/run.json | tr '\n' ' ')" "700 600 " "both are their owner's alone"
cmp -s r.yaml here/it/recipe.yaml
ok $? "recipe.yaml is the user's text, byte for byte"
is "$(field here/it/run.json name state exit_code threads)" '"brisk-otter" "finished" 0 1 ' \
    "run.json says who it is and how it ended"
is "$(sed -nE 's/^    "(.*)",?$/\1/p' here/it/run.json | tail -n +2 | tr '\n' ' ')" \
    "train r.yaml --run_name brisk-otter --run_directory here/it optimizer.lr=0.2 seed=7 " \
    "with the command line"
is "$(sed -nE 's/^  "([a-z_]*)": .*/\1/p' here/it/run.json | tr '\n' ' ')" \
    "name id recipe incarnation state exit_code started ended pid pid_started boot_id version command threads " "and nothing else"
mkdir folder.of
cp r.yaml folder.of/small.v2.yml
run train folder.of/small.v2.yml -q --run_directory named
is "$(field named/run.json recipe)" '"small.v2" ' "and its recipe's name, without folder and ending"
is "$(field here/it/report.json ba sp)" "2 16 " "report.json says how far it came"
grep -qE '"metrics/eval/Accuracy": 0\.[0-9]+' here/it/report.json
ok $? "and what the last evaluation gave"
is "$(lines here/it/metrics.jsonl "ev ep ba sp")" "batch 0 1 8
batch 0 2 16
eval 0 2 16" "metrics.jsonl has a line per batch and per evaluation"
for name in loss/train/total lr-SGD/group0 time/batch memory/peak_allocated_mem; do
    says here/it/metrics.jsonl "\"$name\":" "with $name"
done
is "$(head -c 6 here/it/events.log)" "etude." "events.log is a log of events"
says here/it/logs/rank0.txt "finished, exit 0" "the rank's log tells the end"
grep -q '^  lr: 0.2  *# command line' here/it/recipe.resolved.yaml
ok $? "recipe.resolved.yaml has every value and its origin"
grep -q '^device: cpu  *# chosen' here/it/recipe.resolved.yaml
ok $? "what auto chose is in it"
grep -q '^precision: fp32  *# chosen' here/it/recipe.resolved.yaml
ok $? "precision auto came to fp32"
for precision in amp_bf16 amp_fp16; do
    run train r.yaml --run_directory $precision precision=$precision
    exits 0 "$precision trains"
    grep -q "^precision: $precision " $precision/recipe.resolved.yaml
    ok $? "the resolved recipe says so"
done
grep -q '"trainer/loss_scale":65536' amp_fp16/metrics.jsonl
ok $? "amp_fp16 logs its loss scale"
run train here/it/recipe.resolved.yaml --run_directory again
exits 0 "it is a recipe"
is "$(lines again/metrics.jsonl loss/train/total)" "$(lines here/it/metrics.jsonl loss/train/total)" \
    "that gives the same losses, to the last bit"

run train r.yaml profiler='{warmup: 1, active: 1}' --run_directory traced
exits 0 "profiler: traces a run"
is "$(ls traced/traces)" "ep0-ba2-rank0.json" "its second batch, the first one being warmup"
is "$(head -c 2 traced/traces/*.json; tail -n 1 traced/traces/*.json)" "[
]" "as a list of events"

run train r.yaml loggers='{tensorboard: , console: , file: }' --run_directory logged
exits 0 "loggers: as many as one likes"
is "$(ls logged/tb | grep -c '^events.out.tfevents.')" 1 "tensorboard: a file in tb/"
says err "[batch=2/2]:" "console: lines on stderr, beside those of progress"
says logged/logs-rank0.txt "[metric][batch=2]: loss/train/total: " "file: numbers"
says logged/logs-rank0.txt "[stderr]: [batch=2/2]:" "what was printed"
says logged/logs-rank0.txt "[log][info]: finished, exit 0" "and what the log said"
grep -q ' info train ep=0 ba=1/4 ' err
ok $? "and stderr has it all the same"
run train r.yaml loggers='{file: {filename: "{rang}.txt"}}' --run_directory unmade
exits 65 "a file's name that no run can fill in: exit 65"
# on_terminal ARGS: a run on a terminal of 80 columns, to typescript. (script leaves 10 ms
# after what it runs, also while the kernel has still to hand over what that has printed.)
on_terminal() {
    script -qefc "stty cols 80; '$etude' train $1; patience=0
        until grep -q 'finished[ ]after' typescript || [ \$patience -gt 1200 ]; do
            patience=\$((patience + 1))
            sleep 0.1
        done" typescript >/dev/null 2>&1 </dev/null
}
if command -v script >/dev/null; then
    on_terminal "r.yaml max_duration=2ep loggers='{file: }' --run_directory tty2"
    tr '\r' '\n' <typescript >out
    is "$(grep -cE '^(train|eval)  .*ETA' out | awk '{print ($1 > 0)}')$(awk 'length > 79' out | grep -c '^train')" 10 \
        "while stderr is captured the bar is as wide as the terminal"
    is "$(grep -c '^\[stderr\]: train  Epoch' tty2/logs-rank0.txt)" 0 "but it is another process that draws it"
fi

run train r.yaml --run_directory here/it
exits 73 "a directory that holds a run: exit 73"
says err "here/it holds brisk-otter (finished): use --resume, --autoresume or another directory" \
    "with what is there"
says err "hint: etude show here/it tells of it" "and how to look at it"
run train r.yaml
is "$(ls runs | grep -cE '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}(-[0-9]+)?$')" 1 \
    "without --run_directory it is runs/ and the time"
grep -qE '^run_name: [a-z]+-[a-z]+ ' runs/*/recipe.resolved.yaml
ok $? "without --run_name it is two words"
ETUDE_RUN_NAME=from-outside "$etude" train r.yaml --run_directory e >out 2>err
is "$(field e/run.json name)" '"from-outside" ' "ETUDE_RUN_NAME names it"
ETUDE_LIMIT_BATCHES=3 "$etude" train r.yaml max_duration=2ep --run_directory few >out 2>err
is "$(grep -c '"ev":"batch"' few/metrics.jsonl)" 6 "ETUDE_LIMIT_BATCHES cuts every epoch short"
ETUDE_LIMIT_BATCHES=none "$etude" train r.yaml --run_directory bad >out 2>err
is "$? $(grep -c 'ETUDE_LIMIT_BATCHES: expected a number' err)" "64 1" "and is refused where it is no number"
run train r.yaml --run_name "a/b" --run_directory bad
exits 65 "a name that is no name: exit 65"
run train r.yaml train_data.num_samples=0 --run_directory bad
ls bad >/dev/null 2>&1
is $? 2 "a recipe that is refused leaves no directory"
run train --dry-run r.yaml --run_directory bad
exits 0 "--dry-run only checks"
is "$(cat out)" "r.yaml: the recipe, its data and its model fit" "and says what fits"
run train --dry-run r.yaml --run_directory bad --json
is "$(tr -d ' \n' <out)" '{"recipe":"r.yaml","fits":true}' "as JSON, too"
run train --dry-run r.yaml --run_directory bad -q
is "$code$(cat out)" 0 "-q says nothing"
run train r.yaml --run_directory "$(printf 'ab\377c')"
exits 64 "a directory whose name is no text is refused"
says err 'byte 3 is not UTF-8' "by the byte"
ls bad >/dev/null 2>&1
is $? 2 "and leaves none either"
run eval here/it
exits 0 "a run can be evaluated"
is "$(sed -nE 's|metrics/eval/CrossEntropy (.*)|\1|p' out | cut -c 1-6)" \
    "$(sed -nE 's|.*"metrics/eval/CrossEntropy": (.*)|\1|p' here/it/report.json | cut -c 1-6)" \
    "and is what it was at its end"
run train r.yaml --run_directory r.yaml/below
exits 73 "a directory that cannot be made: exit 73"

# ---- progress ----

run train r.yaml --run_directory p --every 1ba --run_name calm-heron
is "$(sed -E 's/^[0-9T:Z-]+ //; s/(samples\/s|mem|eta|time)=[0-9a-zA-Z.-]+/\1=_/g; s/=[0-9]\.[0-9]+/=_/g' err)" \
    "info start calm-heron in p
info train ep=0 ba=1/4 total=50% loss/train=_ lr=_ samples/s=_ mem=_ eta=_
info train ep=0 ba=2/4 total=100% loss/train=_ lr=_ samples/s=_ mem=_ eta=_
info eval ep=0 ba=2 accuracy=_ ce=_ time=_
info end calm-heron finished ep=0 ba=2 total=100% loss/train=_ time=_" "in a pipe, plain lines on stderr"
is "$(sed -E 's/[0-9.]+/_/g' out)" "calm-heron: finished after _ batches, eval/Accuracy _, eval/CrossEntropy _, _ s of training, _ samples/s on average
p" "on stdout the result, and where it is"
grep -q "$(printf '[\033\r]')" out err
is $? 1 "no escape code, no carriage return"

run train r.yaml --progress json --run_directory j
is "$(lines out "level ev state ba")" "info run starting -
info batch - 1
info batch - 2
info eval - 2
info run finished 2" "--progress json: a line of JSON for each record"
is "$(grep -cE '^\{"t":[0-9]+\.[0-9]{3},.*\}$' out)" 5 "an object each, with the time"
is "$(lines out "directory exit_code" | sed -n '1p;$p')" "j -
j 0" "the run's lines say where, and how it ended"
is "$(wc -c <err)" 0 "and nothing on stderr"
run train r.yaml --json --run_directory j2
is "$(wc -l <out)" 5 "--json is the same"
run train r.yaml --json --progress none --run_directory j3
sed -n 1p out | grep -q '^{$'
ok $? "--json without progress prints the result alone"
run train r.yaml --quiet --run_directory q
is "$(cat out err)" "" "--quiet says nothing"
run train r.yaml --progress bar --run_directory line
grep -qE 'train  Epoch   0: 100%\|={25}\| 2/2 \[[0-9:]+<00:00, ' err
ok $? "--progress bar draws one line"
if command -v script >/dev/null; then
    rm typescript
    on_terminal "r.yaml max_duration=2ep --run_directory tty"
    tr '\r' '\n' <typescript >out
    grep -qE '^train  Epoch   1: 100%\|=+\| 4/4 \[[0-9.]+ba/s, loss/train=[0-9.]+\]  ETA [0-9]+s' out
    ok $? "on a terminal of 80 columns, the bar with rate, loss and time to go"
    is "$(grep -E '^(train|eval)  ' out | awk 'length > 79' | wc -l)" 0 "never in the last column"
    is "$(grep -c '^eval   Epoch   [12]: accuracy=' out)" 2 "evaluations stay above it"
fi
run train r.yaml --progress tui
exits 69 "the monitor is not available: exit 69"
run train r.yaml -v --progress none --run_directory v
says err "etude: info: " "-v shows more of the log"
ETUDE_DUMP=plan "$etude" train r.yaml -v --progress plain --run_directory v2 >out 2>err
says err " info plan: " "also between lines of progress"

# ---- how runs end ----

run train r.yaml optimizer.lr=1e30 max_duration=20ba --run_directory nan
exits 3 "a loss that is not finite, three times: exit 3"
says err "etude: error E6002: rank 0: the run diverged" "what happened, and to which rank"
says err "hint: lower optimizer.lr" "what to try"
says err "warn batch 4: loss nan" "the last lines of its log"
says err "its log: nan/logs/rank0.txt" "and where the rest is"
is "$(field nan/run.json state exit_code)$(field nan/report.json ba reason)" \
    '"diverged" 3 4 "the loss or gradient was not finite" ' "run.json and report.json say so"
is "$(lines nan/metrics.jsonl loss/train/total | sed -n 2p)" null "in JSON what is not finite is null"
run train r.yaml optimizer.lr=1e30 max_duration=20ba nonfinite.grace=1 --run_directory nan1
is "$code $(field nan1/report.json ba)" "3 2 " "nonfinite.grace says how many"
run train r.yaml optimizer.lr=1e30 max_duration=20ba nonfinite.action=skip --run_directory nan2
is "$code $(field nan2/report.json ba)" "0 20 " "nonfinite.action: skip goes on"
for action in stop skip; do
    run train r.yaml 'train_data.transforms=[{normalize: {mean: [0], std: [1e-300]}}]' \
        max_duration=2ba nonfinite.action=$action --run_directory nan-$action
    exits 3 "a run none of whose batches was finite has not finished ($action): exit 3"
    is "$(field nan-$action/run.json state)$(field nan-$action/report.json reason)" \
        '"diverged" "the loss or gradient of every batch was not finite" ' "which its files say"
    is "$(ls -A nan-$action/checkpoints 2>/dev/null)" "" "and it saves nothing"
done

run train r.yaml --target 'accuracy>=2' --run_directory miss
exits 6 "a target that is not reached: exit 6"
says err "the target accuracy>=2 was not reached" "which one"
is "$(field miss/run.json state exit_code)" '"finished" 6 ' "the run has finished all the same"
run train r.yaml --target 'accuracy>=0' eval_interval=1ba max_duration=20ba --run_directory hit
is "$code $(field hit/run.json state)$(field hit/report.json ba)" '0 "reached-target" 1 ' \
    "one that is reached ends the run: exit 0"
stopper='{threshold_stopper: {monitor: Accuracy, dataloader_label: train, threshold: -1, stop_on_batch: true}}'
run train r.yaml callbacks="$stopper" max_duration=20ba --run_directory early
is "$code $(field early/run.json state)$(field early/report.json ba)" '0 "finished" 1 ' \
    "a stopper ends the run: exit 0"
says early/report.json "the watched metric passed its threshold" "the report says why"
run train r.yaml callbacks='{threshold_stopper: {monitor: Accuracy, dataloader_label: train}}' --run_directory no
exits 65 "a stopper without its threshold: exit 65"
says err "threshold" "which option is missing"

# signalled NAME EXTRA...: a long run in the folder NAME, to its first batch
signalled() {
    folder=$1
    shift
    rm -f out
    "$etude" train r.yaml max_duration=1000000ba eval_interval=1000000ba --progress json --run_directory "$folder" "$@" \
        >out 2>err </dev/null &
    pid=$!
    until_true "grep -qs '\"ev\":\"batch\"' out"
}

for signal in INT TERM; do
    # A shell starts what it puts in the background with SIGINT ignored; etude sets its own.
    signalled "$signal"
    kill -s "$signal" $pid
    wait $pid
    is $? 75 "SIG$signal ends a run after its batch, saved: exit 75"
    is "$(field "$signal/run.json" state exit_code)" "\"preempted\" 75 " "it is preempted"
    is "$(tail -n 1 out >end; lines end "ev state") $(grep -c '"ev":"eval"' out)" "run preempted 0" \
        "without an evaluation at the end"
    ba=$(field "$signal/report.json" ba)
    is "$(tail -n 1 "$signal/metrics.jsonl" >end; lines end ba) " "$ba" "every batch is in metrics.jsonl"
    # shellcheck disable=SC2086
    is "$(ls "$signal/checkpoints" | tail -1)" "$(printf step-%012d $ba)" "and the last one is saved"
    says err "stopped by signal" "it says so"
    says err "etude train --resume $signal" "and how to go on"
done
signalled usr checkpoint.interval=1000000ba
kill -s USR1 $pid
kill -s HUP $pid
until_true 'ls usr/checkpoints 2>/dev/null | grep -q step'
is "$(ls usr/checkpoints | grep -c step)" 1 "SIGUSR1 saves, and the run goes on"
kill -s USR2 $pid
wait $pid
is $? 75 "SIGUSR2 ends a run; SIGHUP and SIGUSR1 do not"
# A hub that stands still is not waited for longer than some seconds; its supervisor is.
signalled hub
supervisor=$(ps -o pid= --ppid $pid | tr -d ' ')
hub=
until_true 'hub=$(for p in $(ps -o pid= --ppid $supervisor); do grep -qs __hub /proc/$p/cmdline && echo $p; done); [ -n "$hub" ]'
kill -s STOP "$hub"
kill -s TERM $pid
wait $pid
is $? 75 "a run whose hub stands still ends, too"
kill -s 0 "$supervisor" 2>/dev/null
is $? 1 "and what has shown it ends after its last process"
signalled long eval_data.num_samples=100000000 eval_interval=1ba
kill -s TERM $pid
wait $pid
is $? 75 "a signal does not wait for the end of an evaluation"
is "$(grep -c '"ev":"eval"' long/metrics.jsonl)" 0 "which then has no result"
"$etude" train r.yaml --progress json --run_directory pipe 2>/dev/null | head -1 >out
until_true '[ "$(field pipe/run.json state)" = "\"finished\" " ]'
is "$(field pipe/run.json state)" '"finished" ' "a reader that leaves does not end a run"

# ---- the summary of a run, for a program

tiny one.yaml
run train one.yaml --run_name brief-owl --run_directory brief --json --progress none
is "$(tr -d ' \n' <out | sed -E 's/(seconds|Accuracy|CrossEntropy)":[0-9.e+-]+/\1":_/g')" \
    "{\"name\":\"brief-owl\",\"directory\":\"brief\",\"state\":\"finished\",\"exit_code\":0,\"ba\":2,\"sp\":16,\"train_seconds\":_,\"metrics\":{\"metrics/eval/Accuracy\":_,\"metrics/eval/CrossEntropy\":_}}" \
    "train --json prints a summary of the run as one document"
is "$(sed -nE 's|^ *"metrics/eval/Accuracy": ([0-9.]*).*|\1|p' out | cut -c 1-6)" \
    "$(sed -nE 's|.*"metrics/eval/Accuracy": ([0-9.]*).*|\1|p' brief/report.json | cut -c 1-6)" "the summary gives each metric its own value"
is "$(sed -nE 's|^ *"metrics/eval/CrossEntropy": ([0-9.]*).*|\1|p' out | cut -c 1-6)" \
    "$(sed -nE 's|.*"metrics/eval/CrossEntropy": ([0-9.]*).*|\1|p' brief/report.json | cut -c 1-6)" "each of them"
is "$(sed -nE 's|^ *"train_seconds": ([0-9.e-]*),|\1|p' out | cut -c 1-8)" \
    "$(sed -nE 's|^ *"train_seconds": ([0-9.e-]*),|\1|p' brief/report.json | cut -c 1-8)" "and the time of its training"
run train one.yaml --run_name brief-yak --run_directory yak --progress none max_duration=3ep grad_accum=2
is "$(field yak/report.json microbatches)$(field brief/report.json microbatches)" "2 1 " "report.json says how many pieces a batch had"
is "$(head -n 1 out)" "$(perl -0ne '
    my $all = $_; my %v = map { $_ => $all =~ /"$_": ([0-9.e-]+)/ } qw(ba sp train_seconds metrics/eval/Accuracy metrics/eval/CrossEntropy);
    printf "brief-yak: finished after %d batches, eval/Accuracy %.4f, eval/CrossEntropy %.4f, %.1f s of training, %.0f samples/s on average",
        @v{qw(ba metrics/eval/Accuracy metrics/eval/CrossEntropy train_seconds)}, $v{sp} / $v{train_seconds}' yak/report.json)" \
    "train says how far the run came, what each metric is, and how fast it was"
run train one.yaml --run_name brief-elk --run_directory elk --progress none -q
is "$(cat out)" "" "train -q prints nothing"
run train one.yaml --run_name brief-asp --run_directory asp --progress none --until 3ba --json max_duration=9ba
exits 75 "a run that --until ends before its max_duration exits 75"
is "$(tr -d ' \n' <out | grep -o '"state":.*"sp":[0-9]*')" '"state":"preempted","exit_code":75,"ba":4,"sp":32' "the summary of a run that was stopped tells how far the run has come"
says err 'etude train --resume asp' "a run that was stopped says how to resume it"
seq -f 'an old line %g' 40 >asp/logs/rank0.txt
run train --resume asp --progress none --until 6ba
is "$(sed -n 's/^    //p' err)" "$(sed '/stopped after batch/,$d' asp/logs/rank0.txt | tail -n 20)" \
    "a run that is stopped prints the last twenty lines of its log from before the stop"
says err '    an old line 40' "the lines that a stop prints include those of an earlier session"
finish
