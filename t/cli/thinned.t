#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Records of a fast run: record_interval makes them fewer, and whoever reads them sees the
# same numbers as of a log with every batch.
. "$(dirname "$0")/cli.sh"
cat >r.yaml <<'R'
max_duration: 3000ba
seed: 3
model: {name: mlp, hidden: 4, layers: 1}
train_data: {name: synthetic_images, batch_size: 8, num_samples: 12000, workers: 1}
eval_data: {name: synthetic_images, num_samples: 16, workers: 0}
eval_interval: 1500ba
optimizer: {name: sgd, lr: 0.1}
callbacks: [lr_monitor]
R

# train NAME SETTINGS...
train() {
    into=$1
    shift
    run train r.yaml --progress none --run_directory "$into" --run_name "$into" "$@"
}
# batches RUN: lines of metrics.jsonl for batches
batches() {
    grep -c '"ev":"batch"' "$1/metrics.jsonl"
}
# fact RUN SERIES KEY: of what show says of a series
fact() {
    run show "$1" --json
    sed -n "/\"$(echo "$2" | sed 's|/|.|g')\"/,/}/s/^ *\"$3\": \(.*[^,]\),*$/\1/p" out
}

train every record_interval=1ba
exits 0 "a run that keeps every batch"
is "$(batches every)" 3000 "has a line for each of them"
is "$(grep -c '"of":' every/metrics.jsonl)" 0 "that stands for itself alone"
train hundred record_interval=100ba
exits 0 "one with a record for a hundred"
is "$(batches hundred)" 30 "has thirty lines"
is "$(grep -c '"ev":"batch".*"of":100,"from":[0-9]*1,.*"min":.*"max":.*"mean":' hundred/metrics.jsonl)" \
    30 "which say what they stand for, with least, greatest and mean"
is "$(wc -c <hundred/events.log | awk '{print ($1 < 150000)}')" 1 "its log is small"
says hundred/recipe.resolved.yaml "record_interval: 100ba" "the resolved recipe says it"
is "$(fact hundred loss/train/total n)" 3000 "show counts all batches"
for key in n min max last best; do
    is "$(fact hundred loss/train/total $key)" "$(fact every loss/train/total $key)" \
        "show has the same $key of the loss"
done
is "$(fact hundred metrics/eval/Accuracy n)" 2 "evaluations are all there"
is "$(tail -n 2 hundred/metrics.jsonl | sed 's/.*"ev":"\([a-z]*\)".*"ba":\([0-9]*\).*/\1 \2/' | tr '\n' ' ')" \
    "batch 3000 eval 3000 " "and stand behind the batches before them"

run export hundred --to csv -o h.csv
exits 0 "export writes it as a table"
run export hundred --to jsonl -o h.jsonl
# Where a checkpoint is ready a record ends, too: one of a single batch stands for itself.
alone=$(grep '"ev":"batch"' h.jsonl | grep -vc '"of":')
is "$(sed -n 's/.*"ev":"batch".*"of":\([0-9]*\).*/\1/p' h.jsonl |
    awk -v n="$alone" '{ n += $1 } END { print n }')" \
    3000 "and as lines, for all batches"
rows=$(grep -c ',loss/train/total,' h.csv)
is "$((rows < 50)) $(grep -c ',max(loss/train/total),' h.csv)" "1 $((rows - alone))" \
    "the table has the greatest of each record"
run export hundred --to svg -o h.svg
exits 0 "and as a chart"
run compare every hundred
exits 0 "compare puts both beside each other"
run logs hundred
exits 0 "logs reads it"
for name in every hundred; do
    run attach $name --dump-screen 120x36
    exits 0 "the Monitor draws the run with a record for $([ $name = every ] && echo each || echo 'a hundred')"
    mv out $name.txt
done
is "$(grep -c '3,000' hundred.txt)" "$(grep -c '3,000' every.txt)" "as far as it has come"

train both record_interval=100ba loggers.jsonl.record_interval=1ba
is "$(batches both)" 3000 "the logger of metrics.jsonl may have its own"
train hundred2 record_interval=100ba max_duration=250ba
run train --resume hundred2 max_duration=500ba record_interval=50ba --progress none
exits 0 "a resume may change it"
is "$(grep -o '"of":[0-9]*' hundred2/metrics.jsonl | tr '\n' ' ')" \
    '"of":100 "of":100 "of":50 "of":50 "of":50 "of":50 "of":50 "of":50 ' \
    "a checkpoint ends a record"
run validate r.yaml record_interval=1ep
exits 65 "other units are refused: exit 65"
says err "record_interval" "by name"
run validate r.yaml record_interval=0ba
exits 65 "so is none at all"
finish
