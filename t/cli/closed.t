#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Standard descriptors that are closed, files that may not grow: nothing of a run goes where
# something else was meant to be, and nobody is ended without a word.
. "$(dirname "$0")/cli.sh"
cat >r.yaml <<'R'
max_duration: 20ba
seed: 3
model: {name: mlp, hidden: 16, layers: 1}
train_data: {name: synthetic_images, batch_size: 8, num_samples: 32, workers: 0}
optimizer: {name: sgd, lr: 0.001}
R
tell() { "$etude" train r.yaml --progress none --run_directory "$1"; }
# ended RUN NAME: it trained to its end, and its files have what they should
ended() {
    is "$code" 0 "$2"
    says "$1/run.json" '"state": "finished"' "the run ends as it should"
    is "$(grep -c '"ev":"batch"' "$1/metrics.jsonl")" 20 "and its files have what is theirs"
}
tell a >&- 2>err
code=$?
ended a "without standard output a run trains: 0"
tell b >&- 2>&-
code=$?
ended b "without standard output and error, too"
tell c >out 2>err <&-
code=$?
ended c "without standard input"
says out 'finished after 20 batches' "it says how it ended"
tell d <&- >&- 2>&-
code=$?
ended d "without any"
"$etude" version >&- 2>err
is $? 73 "a result that cannot be written is an error: 73"
says err 'error E7002: cannot write the result' "and that is said"

# ---- ulimit -f ----

(
    ulimit -f 16
    "$etude" train r.yaml --progress none --run_directory e model.hidden=64 checkpoint.interval=10ba >out 2>err
)
code=$?
is $code 73 "files that may not grow are a full disk: 73"
says err 'File too large' "which is said"
says e/run.json '"exit_code": 73' "also in what is left of the run"
finish
