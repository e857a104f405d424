#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `etude generate` and the callback generate: text of a language model.
. "$(dirname "$0")/cli.sh"
seq 1 400 >numbers.txt
cat >text.yaml <<'R'
max_duration: 8ba
seed: 3
model: {name: gpt2, n_layers: 1, d_model: 16, n_heads: 2, max_seq_len: 16, vocab_size: 256}
train_data: {name: text_bytes, path: numbers.txt, seq_len: 16, batch_size: 4, workers: 0}
eval_data: {name: text_bytes, path: numbers.txt, seq_len: 16, workers: 0, subset_num_batches: 2}
eval_interval: 4ba
optimizer: {name: adamw, lr: 1.0e-3}
callbacks: {generate: {prompt: "12", length: 5}}
loggers: {tensorboard: }
R
run train text.yaml --run_name fond-lynx --run_directory runs/text --progress none
exits 0 "a language model with the callback"
run logs fond-lynx
is "$(grep -c 'generate: 12' out)" 2 "writes a text after each evaluation"
grep -q generate runs/text/tb/events*
ok $? "which TensorBoard has, too"
run generate fond-lynx 12 --length 20
exits 0 "generate RUN PROMPT: exit 0"
cp out text
is "$(head -c 2 out)" 12 "the text begins with the prompt"
run generate fond-lynx 12 --length 20
cmp -s text out
ok $? "and is the same each time"
run generate fond-lynx 12 --length 20 --seed 5
cmp -s text out
is $? 1 "but for another seed"
run generate fond-lynx 12 --length 20 --temperature 0 --seed 5
cp out text
run generate fond-lynx 12 --length 20 --top-k 1
cmp -s text out
ok $? "the most likely of one is what a temperature of 0 takes"
run generate fond-lynx "a prompt that is longer than what the model can look back to" --length 5
exits 0 "a prompt may be longer than the model looks back"
tiny one.yaml
run train one.yaml --run_name calm-heron --run_directory runs/there --progress none
run generate calm-heron 12
exits 69 "a model of images: exit 69"
says err "it has no text" "says why"
run generate fond-lynx
exits 64 "without a prompt: exit 64"
run generate fond-lynx 12 --length=-1
exits 64 "a length below 0: exit 64"
finish
