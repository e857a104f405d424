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
run generate fond-lynx 12 --length 20 --temperature 0
cp out text
run generate fond-lynx 12 --length 20 --top-p 0
cmp -s text out
ok $? "as are the fewest that have a probability of 0"
run generate fond-lynx 12 --length 20 --top-p 0.9
cp out text
run generate fond-lynx 12 --length 20
cmp -s text out
is $? 1 "top-p changes what is drawn"
printf '12\n\n1 2 3\n' >prompts.txt
run generate fond-lynx --prompts prompts.txt --length 3 --json
exits 0 "prompts from a file"
is "$(grep -c '"prompt": ' out)" 2 "are its lines, but for empty ones"
says out '"prompt": "1 2 3"' "each as it stands"
printf '{"prompt": "7\\n8"}\n' >prompts.jsonl
run generate fond-lynx --prompts prompts.jsonl --length 3
is "$(head -n 1 out)" 7 "or those of JSONL, with lines of their own"
printf '{"prompt": 7}\n' >prompts.jsonl
run generate fond-lynx --prompts prompts.jsonl
exits 65 "a number is no prompt: exit 65"
says err "prompts.jsonl:1: no text called 'prompt'" "is told with its line"
printf '{"prompt": "7"}\n\n{"prompt": 7\n' >prompts.jsonl
run generate fond-lynx --prompts prompts.jsonl
says err "prompts.jsonl:3:" "lines that are empty count among lines"
printf '12\r\n\r\n7\r\n' >prompts.txt
run generate fond-lynx --prompts prompts.txt --length 3 --json
is "$(grep -o '"prompt": .*' out | tr '\n' ' ')" '"prompt": "12", "prompt": "7", ' \
    "lines may end as those of Windows do"
run generate fond-lynx --prompts prompts.txt --length 0
is "$(cat out)" "$(printf '12\n\n7')" "an empty line is between two texts"
run generate fond-lynx 12 --top-p 1.5
exits 64 "a probability above 1: exit 64"
run generate fond-lynx 123 --length 20 --json
is "$(sed -nE 's/^ *("[a-z_]*"): ([0-9a-z"]*).*/\1 \2/p' out | tr '\n' ' ')" \
    '"prompt" "123" "text" "123 "prompt_tokens" 3 "tokens" 20 "ended" false ' "generate --json prints the tokens of the prompt and those after it"
run generate fond-lynx 123
cp out text
run generate fond-lynx 123 --length 200 --temperature 0.8 --top-k 0 --top-p 1 --seed 17
cmp -s text out
ok $? "generate's defaults are 200 tokens, temperature 0.8, no top-k or top-p, and seed 17"
for option in '--length 199' '--temperature 0.9' '--top-k 3' '--top-p 0.9' '--seed 18'; do
    # shellcheck disable=SC2086
    run generate fond-lynx 123 $option
    cmp -s text out
    is "$code $?" "0 1" "$option changes the text"
done
for option in '--temperature 101' '--top-k 1000000001' '--seed 4294967296' '--top-p 1.01' '--top-k 2x'; do
    # shellcheck disable=SC2086
    run generate fond-lynx 123 $option
    exits 64 "$option: exit 64"
done
run generate fond-lynx 123 --length 1 --temperature 100 --top-k 1000000000 --top-p 1 --seed 4294967295
exits 0 "generate takes the largest value of each option"
printf '\033[31m\342\200\256x\ty' >prompts.txt
run generate fond-lynx --prompts prompts.txt --length 0
is "$(cat out)" "$(printf '\\x1b[31m\\u202ex\ty')" "generate shows a text's control characters instead of sending them to the terminal"
printf '{"prompt": "7"}' >prompts.ndjson
run generate fond-lynx --prompts prompts.ndjson --length 0
is "$(cat out)" 7 "the last line of a file of prompts may lack its line end"
printf '\n\r\n' >prompts.txt
run generate fond-lynx --prompts prompts.txt
exits 65 "a file without a prompt: exit 65"

# Tokens of a tokenizer: a text of two kinds of documents, which ends.
tokenizers=$ET_SRCDIR/t/golden/tokenizers
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    echo "{\"text\": \"the heaven\"}"
done >texts.jsonl
cat >pairs.yaml <<R
max_duration: 40ba
seed: 3
model: {name: gpt2, n_layers: 1, d_model: 32, n_heads: 2, max_seq_len: 16}
train_data: {name: packed_text, path: texts.jsonl, tokenizer: $tokenizers/gpt2.json, seq_len: 16, batch_size: 4, workers: 0}
eval_data: {name: packed_text, path: texts.jsonl, tokenizer: $tokenizers/gpt2.json, seq_len: 16, workers: 0}
eval_interval: 20ba
optimizer: {name: adamw, lr: 1.0e-2}
callbacks: {generate: {prompt: "the", length: 50, temperature: 0}}
R
run train pairs.yaml --run_name calm-otter --run_directory runs/pairs --progress none
exits 0 "a model of byte pairs is trained"
run logs calm-otter
is "$(grep -c 'generate: the heaven$' out)" 2 "the callback has its text, up to the token that ends it"
run generate calm-otter the --temperature 0 --json
says out '"text": "the heaven",' "as generate has"
says out '"ended": true' "which says that it ended"
run generate calm-otter the --temperature 0 --tokenizer bytes
exits 0 "another tokenizer may be named"
run generate calm-otter the --tokenizer "$tokenizers/llama.json"
exits 69 "one with more tokens than the model: exit 69"
says err "the model has " "says how many"
run generate calm-otter the --tokenizer none.json
exits 66 "one that is not there: exit 66"
run train pairs.yaml model.name=bert --progress none
exits 69 "a model that guesses masked tokens cannot learn the next ones: exit 69"
tiny one.yaml
run train one.yaml --run_name calm-heron --run_directory runs/there --progress none
run generate calm-heron 12
exits 69 "a model of images: exit 69"
says err "only a language model writes text" "says why"
run generate fond-lynx
exits 64 "without a prompt: exit 64"
run generate fond-lynx 12 --length=-1
exits 64 "a length below 0: exit 64"
finish
