#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Going on with a run: --resume, --autoresume, rerun; what may change; what is wrong.
. "$(dirname "$0")/cli.sh"
cat >r.yaml <<'R'
max_duration: 40ba
seed: 3
model: {name: mlp, hidden: 16, layers: 1}
train_data: {name: synthetic_images, batch_size: 8, num_samples: 64, workers: 2}
eval_data: {name: synthetic_images, num_samples: 16, workers: 0}
optimizer: {name: sgd, lr: 0.1, momentum: 0.9}
algorithms: {ema: {half_life: 4ba}}
checkpoint: {interval: 6ba}
R

# losses RUN: "batch loss" of every batch, the last line of each
losses() {
    sed -nE 's|.*"ev":"batch".*"ba":([0-9]+).*"loss/train/total":([^,}]*).*|\1 \2|p' "$1/metrics.jsonl" |
        awk '{ v[$1] = $2 } END { for (i = 1; i in v; i++) print i, v[i] }'
}
# state RUN: its state and exit code
state() {
    sed -nE 's/^ *"(state|exit_code|incarnation)": (.*[^,]),?$/\2/p' "$1/run.json" | tr '\n' ' '
}

run train r.yaml --run_directory whole
exits 0 "a run that nobody stops"
is "$(ls whole/checkpoints | tr '\n' ' ')" \
    "step-000000000030 step-000000000036 step-000000000040 " "the three newest checkpoints are kept"
is "$(ls whole/checkpoints/step-000000000036 | tr '\n' ' ')" \
    "MANIFEST model-00000.safetensors optim-00000.safetensors state-00000.safetensors " \
    "each has a MANIFEST and three files"
says whole/checkpoints/step-000000000036/MANIFEST '"label": "ep4-ba36"' "and a label"

# ---- shorter, then on ----

run train r.yaml --run_directory short max_duration=17ba
run train --resume short max_duration=40ba
exits 0 "a run goes on without a recipe, and longer than it was to be"
is "$(losses short)" "$(losses whole)" "its losses are those of the run that nobody stopped"
is "$(state short)" '2 "finished" 0 ' "run.json counts how often it was started"
is "$(grep -c '"ev":"resume"' short/metrics.jsonl)" 1 "metrics.jsonl says where it went on"
is "$(losses short | wc -l)" 40 "and has every batch"
run train r.yaml --resume short
exits 0 "a finished run that is resumed is finished"

# ---- a rest between two starts ----

run train r.yaml --run_directory rested max_duration=9ba
perl -pi -e 's/^( *"(?:started|ended)": )(\d+)/$1 . ($2 - 7200)/e' rested/run.json
run train --resume rested max_duration=18ba
run show rested
grep -qE ', for [0-9]{1,3}(s|m[0-9]{2}s), and 2h00m between its starts' out
ok $? "what a run rested is none of the time that it took"
grep -q '^[a-z-]*: finished, exit 0$' out
ok $? "and how it ended is said, with its code, which is 0"

# ---- what the run drew for itself ----

grep -v '^seed' r.yaml >drawn.yaml
run train drawn.yaml --run_directory drawn max_duration=9ba
cp -R drawn drawn-too
run train --resume drawn max_duration=20ba
run train drawn.yaml --resume drawn-too max_duration=20ba
exits 0 "a run whose recipe has no seed goes on with the recipe"
is "$(losses drawn-too)" "$(losses drawn)" "as without it: with the seed that it drew"

# ---- back to an earlier checkpoint ----

run train --resume whole/ep4-ba36
exits 0 "a label names a checkpoint"
is "$(losses whole | tail -1)" "$(losses short | tail -1)" "from there it comes to the same end"
is "$(ls -A whole/checkpoints | grep -c '^.old-000000000040')" 1 "what came later is kept aside"
run train --resume whole/checkpoints/step-000000000036
exits 0 "so does its folder"
run train --resume whole/ep9-ba99
exits 66 "a label that is none: exit 66"
says err "whole has no checkpoint called 'ep9-ba99'" "in one line"

# ---- damage ----

damage short/checkpoints/step-000000000040/optim-00000.safetensors 700
run train --resume short -v --progress none
exits 0 "a damaged checkpoint is passed over"
says err "step-000000000040: optim-00000: digest mismatch; using step-000000000036" "which is said"
is "$(ls -A short/checkpoints | grep -c '^.bad-000000000040')" 1 "and it is kept aside"
is "$(losses short)" "$(losses whole)" "the end is the same"
for step in short/checkpoints/step-*; do : >"$step/MANIFEST"; done
run train --resume short
exits 65 "where none is left the run does not begin afresh: exit 65"
says err "error E3001" "the error has a number"
says err "no valid checkpoint under short/checkpoints" "and a sentence"
cp short/metrics.jsonl before
run train r.yaml --autoresume --run_directory short
exits 65 "nor does it with --autoresume"
cmp -s before short/metrics.jsonl
ok $? "and what there is of it stays"
rm -r short/checkpoints
run train --resume short
exits 65 "one that has saved nothing does not go on where --resume insists"

# ---- a run that is kept elsewhere ----

mkdir far
ln -s far near
run train r.yaml --run_directory near max_duration=5ba
exits 0 "a run's directory may be a link"
run train --resume near max_duration=7ba
exits 0 "also when it goes on"
mv far/checkpoints apart && ln -s ../apart far/checkpoints
run train --resume near max_duration=9ba
exits 0 "and so may the folder of its checkpoints"
is "$(ls apart | tail -1)" step-000000000009 "which are written there"

# ---- what may change ----

run train --resume whole optimizer.lr=0.2 train_data.batch_size=4
exits 65 "what a resume cannot change is refused: exit 65"
says err "error E1214: optimizer.lr is 0.2, saved run has 0.1; resume cannot change it, rerun can" \
    "with both values"
says err "train_data.batch_size is 4, saved run has 8" "for each of them"
sed 's/lr: 0.1/lr: 0.3/' r.yaml >faster.yaml
run train faster.yaml --resume whole
exits 65 "nor does it when a recipe beside --resume says it: exit 65"
says err "optimizer.lr is 0.3, saved run has 0.1" "with its value"
run train --resume whole 'callbacks.lr_monitor=false' eval_interval=10ba
exits 0 "callbacks and evaluations may change"
before=$(state whole)
for shorter in 39ba 3ep; do
    run train --resume whole max_duration=$shorter
    exits 65 "less than is trained is refused ($shorter): exit 65"
done
says err "error E1214: max_duration is 3ep, but the saved run has trained 4ep" "with both lengths"
is "$(state whole)" "$before" "and nothing is changed"
run train --resume whole max_duration=40ba --progress plain
exits 0 "what is trained already is enough"
says err "finished ep=5 ba=40 total=100% time=" "and its end is told as it is"
run train --resume nowhere
exits 66 "a run that is not there: exit 66"
run train --resume whole --autoresume
exits 64 "--resume and --autoresume exclude each other: exit 64"
run train r.yaml --run_directory whole
exits 73 "a directory that holds a run is not used for another: exit 73"

# ---- other data ----

i=0
while [ $i -lt 400 ]; do i=$((i + 1)); echo "line $i of a text"; done >text
cat >t.yaml <<'R'
max_duration: 4ba
seed: 1
model: {name: gpt2, n_layers: 1, d_model: 16, n_heads: 2, max_seq_len: 16, vocab_size: 256}
train_data: {name: text_bytes, path: text, seq_len: 16, batch_size: 4, workers: 1}
optimizer: {name: adamw, lr: 0.001}
R
run train t.yaml --run_directory text_run
exits 0 "a run on a file"
run train --resume text_run max_duration=6ba
exits 0 "goes on with the same file"
tr a-y b-z <text >other && mv other text
run train --resume text_run max_duration=8ba
exits 65 "with as many other bytes it does not: exit 65"
says err "the training data are" "which is said"

# ---- a run whose run.json or events.log is lost ----

# lost HOW FILE: what became of FILE of a run that has 17 batches of 40
lost() {
    rm -rf lost
    cp -r seventeen lost
    case $1 in
    missing) rm "lost/$2" ;;
    empty) : >"lost/$2" ;;
    zeroed) head -c "$(wc -c <"lost/$2")" /dev/zero >lost/zeros && mv lost/zeros "lost/$2" ;;
    torn) head -c 20 "lost/$2" >lost/part && mv lost/part "lost/$2" ;;
    folder) rm "lost/$2" && mkdir "lost/$2" ;;
    esac
}
# goes_on HOW FILE WORDS: it does, and the warning begins with WORDS
goes_on() {
    is "$code" 0 "a run whose $2 is $1 goes on"
    is "$(grep -c "warn: $3" err) $(grep -c warn: err)" "1 1" "which is told in one line: $3"
    is "$(losses lost)" "$(losses whole)" "to the end that it would have had"
    is "$(ls -d "lost/$2.bad-"* 2>/dev/null)" "$([ "$1" = missing ] || echo "lost/$2.bad-1")" \
        "what was there is kept"
    is "$(grep -c "warn $3" lost/logs/rank0.txt)" 1 "its log says it, too"
    run show lost
    exits 0 "and it can be looked at"
}
run train r.yaml --run_directory seventeen max_duration=17ba
name=$(sed -n 's/^  "name": "\(.*\)",/\1/p' seventeen/run.json)
id=$(sed -n 's/^  "id": "\(.*\)",/\1/p' seventeen/run.json)
for how in missing empty zeroed torn; do
    case $how in
    missing) words="is missing; a new one" ;;
    empty) words="is empty: it is kept as FILE.bad-1; a new one" ;;
    *) words="is not .*: it is kept as FILE.bad-1; a new one" ;;
    esac
    for file in events.log run.json; do
        lost $how $file
        run train --resume lost --progress none max_duration=40ba
        goes_on $how $file "$file $(echo "$words" | sed "s/FILE/$file/")"
        is "$(grep -c -e "\"name\": \"$name\"" -e "\"id\": \"$id\"" lost/run.json)" 2 \
            "it is the run that it was"
        says lost/run.json '"incarnation": 2' "started for the second time"
    done
done
lost folder events.log
run train r.yaml --autoresume --run_directory lost --progress none
goes_on folder events.log "events.log: Is a directory: it is kept as events.log.bad-1; a new one"
rm -rf lost && cp -r seventeen lost && rm lost/run.json lost/events.log
run train r.yaml --run_directory lost
exits 73 "a folder with checkpoints alone is that of a run, too: another one is refused"
says err "lost holds a run (in an unknown state): use --resume" "with what to do"
run train r.yaml --autoresume --run_directory lost --progress none
exits 0 "--autoresume goes on with it"
is "$(losses lost)" "$(losses whole)" "to the same end"
is "$(grep -c warn: err)" 2 "with a line about each"
run rerun lost --run_directory lost-again max_duration=1ba
exits 0 "and rerun begins it again"

rm -rf lost && cp -r seventeen lost
sed -i 's/"incarnation": 1/"incarnation": 9223372036854775807/' lost/run.json
run train --resume lost --progress none max_duration=40ba
exits 0 "a run that claims to have begun 2^63 - 1 times goes on"
says lost/run.json '"incarnation": 2' "and counts from the second time"

# What can be read of a log with damage behind it stays: charts, and what was set meanwhile.
cp -r seventeen half
size=$(wc -c <half/events.log)
head -c $((size - 300)) half/events.log >half/log
head -c 300 /dev/zero | tr '\0' x >>half/log
mv half/log half/events.log
run train --resume half --progress none max_duration=40ba
exits 0 "a log that is spoilt towards its end forbids nothing"
says err "is kept as events.log.bad-1; a new one begins with the" "what could be read begins another"
is "$(losses half)" "$(losses whole)" "the end is the same"
run show half --json
is "$(grep -c '"loss/train/total"' out)" 1 "its series go on"
says out '"n": 40' "with the batches of before"

# The names of what is kept end some time.
rm -rf lost && cp -r seventeen lost
seq -f 'lost/events.log.bad-%.0f' 9999 | xargs touch
echo kept before >lost/events.log.bad-10000
for i in 1 2; do
    echo "damage $i" >lost/events.log
    run train --resume lost --progress none max_duration=$((17 + i))ba
    exits 0 "a run beside whose log 9,999 are kept goes on"
    says err "it is kept as events.log.bad-last" "and the last takes one name"
done
is "$(cat lost/events.log.bad-last lost/events.log.bad-10000)" "damage 2
kept before" "which has the newest, and nothing else was replaced"

# A line that a full disk or a crash cut off is ended, also where no checkpoint is loaded.
run train r.yaml --run_directory cut max_duration=3ba
rm -r cut/checkpoints
truncate -s -9 cut/metrics.jsonl
run train r.yaml --autoresume --run_directory cut max_duration=3ba
exits 0 "a run without a checkpoint begins again"
is "$(grep -c '"t":.*"t":' cut/metrics.jsonl)" 0 "no line goes on behind one that was cut off"

# ---- again, or from the start ----

# (A name that is never drawn: one in three thousand others would be the same again.)
run train r.yaml --autoresume --run_directory auto --run_name first max_duration=9ba
exits 0 "--autoresume begins where there is nothing"
run train r.yaml --autoresume --run_directory auto
exits 0 "and goes on where there is something"
is "$(losses auto)" "$(losses whole)" "to the same end"
run train r.yaml --autoresume
exits 64 "it needs a directory: exit 64"
run rerun auto --run_directory again
exits 0 "rerun trains the same recipe"
is "$(losses again)" "$(losses auto)" "as a new run with the same losses"
[ "$(sed -n 's/^  "name": //p' again/run.json)" != "$(sed -n 's/^  "name": //p' auto/run.json)" ]
ok $? "under a name of its own"
run show again
is "$(awk '$1 == "recipe" {print $2}' out)" r "whose recipe has the name that it had"
run rerun again --run_directory thrice max_duration=1ba
run train --resume thrice max_duration=2ba
run show thrice
is "$(awk '$1 == "recipe" {print $2}' out)" r "also a rerun of a rerun that was resumed"
run train r.yaml load.path=again load.weights_only=true --run_directory warm max_duration=1ba
exits 0 "a run may begin with another's weights"
mv again away
run train --resume warm max_duration=2ba
exits 0 "and go on when those are gone"
mv away again
run rerun again --run_directory named max_duration=1ba run_name=chosen
run rerun named --run_directory option max_duration=1ba --run_name given
run rerun named --run_directory drawn2 max_duration=1ba
is "$(sed -n 's/^  "name": //p' named/run.json option/run.json | tr -d '\n')" '"chosen","given",' "rerun takes a name"
grep -q '"name": "chosen"' drawn2/run.json
is $? 1 "and does not keep one"
run train r.yaml load.path=nothing --run_directory no
exits 66 "which must be there: exit 66"
ls no >/dev/null 2>&1
is $? 2 "or no run is made"

# ---- killed ----

for at in 0.12 0.2 0.3; do
    rm -rf killed
    "$etude" train r.yaml --run_directory killed max_duration=4000ba record_interval=1ba --progress none >out 2>err &
    pid=$!
    sleep $at
    kill_run $pid
    run train r.yaml --autoresume --run_directory killed max_duration=4010ba record_interval=1ba
    [ "$code" -eq 0 ] || break
done
exits 0 "kill -9 at some instant, and it goes on"
is "$(losses killed | head -40)" "$(losses whole)" "bit for bit"
is "$(losses killed | wc -l)" 4010 "no batch is missing from metrics.jsonl"
is "$(ls -A killed/checkpoints | grep -c -e '^.tmp')" 0 "nothing half written is left"
# held FILE ARGS...: the command, while the lock of FILE is held half a second
held() {
    rm -f held
    perl -e 'open my $f, "<", $ARGV[0] or die; flock $f, 2 or die; open my $m, ">", "held";
        select undef, undef, undef, 0.5' "$1" &
    until_true '[ -e held ]'
    shift
    run "$@"
    wait
}
held again train --resume again max_duration=41ba
exits 0 "what is left of a run that has ended may go on for a moment: it is waited for"
held again/events.log train --resume again max_duration=42ba
exits 0 "also where it is the log that is held"
held again/events.log annotate again "so it was"
exits 0 "as it is by who adds a note"
"$etude" train r.yaml --run_directory busy max_duration=100000000ba --progress none >/dev/null 2>&1 &
pid=$!
until_true '[ -s busy/run.json ]' # which comes last: before, it is no run
run train r.yaml --autoresume --run_directory busy max_duration=100000000ba
exits 69 "a run that is active is not started twice: exit 69"
says err "is active (pid $(ps -o pid= --ppid $pid | tr -d ' ') since 20" "its process is named"
kill_run $pid
# A key that came after runs had been saved without it does not make theirs another recipe:
# this digest was written before optimizer.groups.
cat >pinned.yaml <<'R'
run_name: pinned
max_duration: 2ba
seed: 3
model: {name: mlp, hidden: 8, layers: 1, num_classes: 10}
train_data: {name: synthetic_images, batch_size: 8, num_samples: 32, workers: 0}
optimizer: {name: adamw, lr: 0.01}
R
run train pinned.yaml --progress none --run_directory runs/pinned
is "$(sed -n 's/.*"recipe": *"\([0-9a-f]*\)".*/\1/p' runs/pinned/checkpoints/*/MANIFEST)" \
    7120ef2ae1099b75ee39571ee0bce941d5d4bc2e4bb5e23e6cfbf5bf9d85f392 \
    "a recipe has the digest that it always had"
finish
