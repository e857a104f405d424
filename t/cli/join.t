#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# An algorithm that the recipe does not name joins a run of two ranks: what is said of it,
# what cannot, and that a run that was killed goes on with it to the same weights.
. "$(dirname "$0")/cli.sh"
export ETUDE_CONFIG_DIR="$dir/config" XDG_RUNTIME_DIR="$dir/r"
mkdir -m 700 r
cat >r.yaml <<'R'
max_duration: 400ba
seed: 3
model: {name: mlp, hidden: 16, layers: 1}
train_data: {name: synthetic_images, batch_size: 8, num_samples: 32, workers: 0}
optimizer: {name: sgd, lr: 0.01}
algorithms: {label_smoothing: {}}
checkpoint: {interval: 20ba, keep: 100}
R
supervisor() { sed -n 's/.*"pid": \([0-9]*\).*/\1/p' "$1/run.json"; }
state() { sed -n 's/.*"state": "\([a-z-]*\)".*/\1/p' "$1/run.json"; }
# Whatever is left of a test that failed ends with it.
clean() {
    for one in whole killed; do
        pid=$(supervisor $one 2>/dev/null)
        # shellcheck disable=SC2046
        [ -z "$pid" ] || [ "$(state $one)" = finished ] || kill -9 "$pid" $(family "$pid") 2>/dev/null
    done
    until_true 'rm -rf "$dir" 2>/dev/null'
}
trap clean EXIT

# join FOLDER NAME: a run that is held after some batches, and joined there
join() {
    run train r.yaml -d -n 2 --run_directory "$1" --run_name "$2"
    until_true "[ -e $1/checkpoints/step-000000000020/MANIFEST ]"
    until_true "run pause $2; [ \$code = 0 ]"
    run algo "$2" ema on half_life=5ba
}
# weights FOLDER: a digest of its last checkpoint's
weights() {
    sha256sum <"$(ls "$1"/checkpoints/step-*400/model-00000.safetensors)"
}
# back FOLDER BATCH: what came after that batch is taken away, as if it had never been
back() {
    for step in "$1"/checkpoints/step-*; do
        its=$(basename "$step" | sed 's/step-0*//')
        [ "$its" -le "$2" ] || rm -r "$step"
    done
}

join whole brisk-otter
exits 0 "an algorithm that the recipe does not name joins two ranks"
says out "brisk-otter has ema on, after batch " "after the same batch"
joined=$(sed -n 's/.*after batch //p' out)
run algo brisk-otter mixup on --json
says out '"text": "joined, behind label_smoothing: ' "one that is not meant to stand there joins, and that is said"
run set brisk-otter algorithms.mixup.alpha=0.5
exits 0 "what may change of it is set like any other's"
run set brisk-otter algorithms.ema.half_life=3ba
exits 65 "and what may not is not"
run show brisk-otter
says out "label_smoothing ema mixup" "show lists them behind the recipe's"
says out "after ${joined}ba  uid:$(id -u) algo ema on half_life=5ba -> joined" "and says when each came, and how"
run attach brisk-otter --dump-screen 200x50
says out "mixup on -> joined" "Monitor's events have it"
sed -n '/algorithms now/,$p' out | cut -c1-200 >panel
grep -q 'mixup ' panel && grep -q 'ema ' panel
ok $? "and so have the algorithms now"

run algo brisk-otter sam on interval=2
exits 0 "one that takes other steps joins"
run algo brisk-otter factorize on min_features=8 latent_features=2
exits 0 "so does one that changes the model"
run algo brisk-otter alibi on max_sequence_length=8
exits 0 "and one that finds nothing of its kind, which is said"
run algo brisk-otter gated_linear_units on
exits 65 "one that needs another model is refused"
run algo brisk-otter cutmixx on
exits 65 "and one that no version has: exit 65"
run algo brisk-otter gradient_clipping on
exits 65 "one that has to be told something"
says err "gradient_clipping on clipping_type=VALUE clipping_threshold=VALUE" "says what"
run algo brisk-otter gradient_clipping on clipping_type=norm clipping_threshold=1
exits 0 "and joins when it is"
run algo brisk-otter gradient_clipping off clipping_type=norm
exits 64 "options are for what is switched on"
run algo brisk-otter gradient_clipping on clipping_type='norm '
exits 64 "and have no blanks"
run algo brisk-otter selective_backprop on keep=2
exits 65 "options keep to their rules"
run algo brisk-otter ema off
exits 0 "it is switched off like any other"
run algo brisk-otter ema on
exits 0 "and on again"
run continue brisk-otter
until_true '[ "$(state whole)" = finished ]'
is "$(state whole)" finished "the run goes on to its end"
whole=$(weights whole)
[ ${#whole} -gt 64 ]
ok $? "which is saved"

# The same again from a checkpoint of before it, and of after it.
grep -q '"joined": true' whole/checkpoints/step-000000000400/MANIFEST
ok $? "a checkpoint says what had joined"
for at in $((joined / 20 * 20)) $((joined / 20 * 20 + 60)); do
    rm -rf again
    cp -r whole again
    back again "$at"
    run train --resume again -n 2 -v --progress none
    exits 0 "joined after batch $joined, gone on from batch $at"
    says err "resumed from step-$(printf %012d $at) at batch $at" "which it is"
    is "$(weights again)" "$whole" "it ends with the same weights"
done
run show again
says out "label_smoothing ema mixup sam factorize alibi gradient_clipping" "and has them all"

# lost FILES BATCH: without them the run goes on from there, and has all that had joined
lost() {
    rm -rf again
    cp -r whole again
    back again "$2"
    # shellcheck disable=SC2086
    (cd again && rm $1)
    run train --resume again -n 2 --progress none
    exits 0 "a run without $1 goes on from batch $2"
    run show again
    says out "label_smoothing ema mixup sam factorize alibi gradient_clipping" "and has all that had joined"
}
lost run.json $((joined / 20 * 20))    # as the log of events knows, before any had joined
lost "run.json events.log" 380         # as a checkpoint knows

# Killed, without a word.
join killed calm-heron
exits 0 "another run is joined"
step=$(sed -n 's/.*after batch //p' out)
run continue calm-heron
until_true "[ -e killed/checkpoints/step-$(printf %012d $((step / 20 * 20 + 40)))/MANIFEST ]"
pid=$(supervisor killed)
# shellcheck disable=SC2046
kill -9 "$pid" $(family "$pid") 2>/dev/null
rm -rf apart
cp -r killed apart
back apart "$((step / 20 * 20))"
until_true 'run train r.yaml -n 2 --autoresume --run_directory killed --run_name calm-heron --progress none; [ $code = 0 ]'
exits 0 "--autoresume goes on with a run that was killed after it"
run train --resume apart -n 2 --progress none
exits 0 "and another from before it"
killed=$(weights killed)
[ ${#killed} -gt 64 ] && [ "$killed" = "$(weights apart)" ]
ok $? "to the same weights"
run explain ema
says out "switched     while a run goes on: etude algo RUN NAME on|off" "explain says of an algorithm that it can join"
run explain blurpool --json
says out '"joins": true' "in JSON, too, of one that changes the model"
run algorithms ema --json
says out '"joins": true' "as algorithms does"
finish
