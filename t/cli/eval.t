#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `etude eval`: every evaluator, its own data and metrics, in words and as JSON.
. "$(dirname "$0")/cli.sh"
tiny one.yaml
sed '/^eval_data/d' one.yaml >many.yaml
cat >>many.yaml <<'R'
eval_data:
  - {name: synthetic_images, num_samples: 16, workers: 0, metrics: [accuracy]}
  - {name: synthetic_images, num_samples: 64, workers: 0, label: large}
  - {name: synthetic_images, num_samples: 64, workers: 0, label: part, subset_num_batches: 2,
     metrics: [cross, nothing]}
R

run eval one.yaml
exits 0 "one evaluator: exit 0"
is "$(cut -d' ' -f1 out | tr '\n' ' ')" "metrics/eval/Accuracy metrics/eval/CrossEntropy " \
    "a line for each metric"
run eval many.yaml
exits 0 "several evaluators: exit 0"
is "$(cut -d' ' -f1 out | tr '\n' ' ')" \
    "metrics/eval/Accuracy metrics/large/Accuracy metrics/large/CrossEntropy metrics/part/CrossEntropy " \
    "each with its label and the metrics its expressions choose"
cp out text
run eval many.yaml --json
exits 0 "as JSON: exit 0"
is "$(sed -nE 's/^ *"([^"]*)": [-0-9.e+]*,?$/\1/p' out | tr '\n' ' ')" "$(cut -d' ' -f1 text | tr '\n' ' ')" \
    "the same names, each with a number"
# 16 samples are the first two batches of 64: the same model on the same images.
run eval many.yaml eval_data.0.metrics=[CrossEntropy]
is "$(sed -n 's|^metrics/eval/CrossEntropy ||p' out)" "$(sed -n 's|^metrics/part/CrossEntropy ||p' out)" \
    "a subset is the first batches"
run eval many.yaml eval_data.1.label=eval
exits 65 "two of one label: exit 65"
says err "are both called 'eval'" "and a sentence"
run eval many.yaml eval_data.2.metrics=[bleu]
exits 65 "an expression that fits no metric: exit 65"
says err "no metric of evaluator 'part' matches" "and a sentence"

run train one.yaml --run_name calm-heron --run_directory runs/there --progress none
exits 0 "a run to evaluate"
run eval runs/there
cp out text
for name in calm-heron last; do
    run eval $name
    exits 0 "eval $name: exit 0"
    is "$(cat out)" "$(cat text)" "the metrics of the run that is called so"
done
sed 's/layers: 1/layers: 2/' one.yaml >deeper.yaml
run eval deeper.yaml --load runs/there
exits 65 "weights that do not fit the model: exit 65"
run eval deeper.yaml --load runs/there load.strict=false
exits 0 "load.strict: false takes those that do"
is "$(cut -d' ' -f1 out)" "$(cut -d' ' -f1 text)" "and there are metrics"
run eval one.yaml --load runs/there load.strict=false
is "$(cat out)" "$(cat text)" "those of the run where all fit"
run train one.yaml seed=4 --run_name other --run_directory runs/other --progress none
run weights convert runs/other -o other.safetensors
run eval runs/other
cp out other
run eval runs/there --load other.safetensors
is "$(cat out)" "$(cat other)" "of a run with --load FILE the file's weights are evaluated"
cmp -s other text
is $? 1 "which are others"
run eval nobody
exits 66 "a name that no run has: exit 66"
says err "nobody" "and a sentence"
run eval nowhere.yaml
says err "cannot read nowhere.yaml" "what looks like a recipe's path is one"

# Each checkpoint is evaluated as it was when it was saved.
run train one.yaml --run_name each --run_directory runs/each --progress none max_duration=4ba eval_interval=1ba \
    checkpoint.interval=1ba checkpoint.keep=-1 optimizer.lr=0.7
# saved BATCH: what the run has recorded of its evaluation then
saved() {
    grep '"ev":"eval"' runs/each/metrics.jsonl | grep "\"ba\":$1[,}]" |
        sed 's|.*"metrics/eval/CrossEntropy":\([0-9.e+-]*\).*|\1|' | awk '{ printf "%.4f", $1 }'
}
# entropy: what the last evaluation printed
entropy() {
    sed -n 's|^metrics/eval/CrossEntropy ||p' out | awk '{ printf "%.4f", $1 }'
}
for batch in 1 2 3 4; do
    at=$(ls -d runs/each/checkpoints/step-*$batch)
    run eval "$at"
    is "$code $(entropy)" "0 $(saved $batch)" "a run's checkpoint of batch $batch is what it was"
    run eval one.yaml --load "$at"
    is "$code $(entropy)" "0 $(saved $batch)" "so it is with --load"
done
is "$(for batch in 1 2 3 4; do saved $batch; echo; done | sort -u | wc -l)" 4 "each of them is another"
run eval runs/each
is "$(entropy)" "$(saved 4)" "a run is its last checkpoint"
run eval one.yaml --load runs/each
is "$(entropy)" "$(saved 4)" "with --load, too"
run eval runs/each load.path="$(ls -d runs/each/checkpoints/step-*2)"
is "$(entropy)" "$(saved 4)" "load.path of its recipe is not asked for"
run eval one.yaml load.path="$(ls -d runs/each/checkpoints/step-*2)"
is "$(entropy)" "$(saved 2)" "that of a recipe is"
run eval one.yaml load.path="$(ls -d runs/each/checkpoints/step-*2)" --load "$(ls -d runs/each/checkpoints/step-*3)"
is "$(entropy)" "$(saved 3)" "but for --load"
run eval runs/each eval_data.0.num_samples=8 eval_data.0.label=less
is "$code $(cut -d' ' -f1 out | tr '\n' ' ')" "0 metrics/less/Accuracy metrics/less/CrossEntropy " \
    "a run's recipe may be changed for it"
run eval one.yaml --load ""
says err "an empty path is neither a run's directory nor a checkpoint" "--load '' names nothing, and not what is in /"
exits 66 "which is not there: exit 66"
finish
