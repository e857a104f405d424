#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Models to hubs and back: `etude weights export`, `model: {from: FOLDER}` in a recipe, and
# `etude export --to onnx`.
. "$(dirname "$0")/cli.sh"
export ETUDE_DEVICE=ref OMP_NUM_THREADS=1

cat >gpt.yaml <<'END'
max_duration: 1ba
seed: 3
model: {name: gpt2, n_layers: 1, d_model: 16, n_heads: 2, max_seq_len: 8, dropout: 0.25}
train_data: {name: synthetic_tokens, num_samples: 8, seq_len: 8, batch_size: 4, vocab_size: 32}
eval_data: {name: synthetic_tokens, num_samples: 8, seq_len: 8, batch_size: 4, vocab_size: 32}
optimizer: {name: adamw}
END
run train gpt.yaml --run_directory first --progress none
exits 0 "a run"

run weights export first --as hf -o folder
exits 0 "its model is written as Hugging Face has it"
says out "folder: gpt2 as hf" "and that is said"
says err "no token begins or ends texts in folder" "as is that nobody knows its tokens"
grep -q '"resid_pdrop": 0.25' folder/config.json
ok $? "with its options in config.json"
run weights diff first folder
exits 0 "the values are the same"
grep -q '"eos_token_id": null' folder/config.json
ok $? "no token ends its texts"
grep -q '"eos_token_id": null' folder/generation_config.json
ok $? "in generation_config.json, too"

# Tokens that begin and end texts.
tokenizers=$ET_SRCDIR/t/golden/tokenizers
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    echo "{\"text\": \"the heaven\"}"
done >texts.jsonl
cat >pairs.yaml <<END
max_duration: 1ba
seed: 3
model: {name: gpt2, n_layers: 1, d_model: 16, n_heads: 2, max_seq_len: 16}
train_data: {name: packed_text, path: texts.jsonl, tokenizer: $tokenizers/gpt2.json, seq_len: 16, batch_size: 1, workers: 0}
optimizer: {name: adamw}
END
run train pairs.yaml --run_directory pairs --progress none
run weights export pairs --as hf -o gpt
exits 0 "a model whose tokenizer is known is written"
for file in config generation_config; do
    is "$(grep -c '"[be]os_token_id": 0' gpt/$file.json)" 2 "$file.json has the tokens that begin and end texts"
    grep -q '"pad_token_id": null' gpt/$file.json
    ok $? "and that there is none that fills rows"
done
is "$(cmp gpt/tokenizer.json "$tokenizers/gpt2.json" && echo same)" same "the tokenizer is written beside it"
grep -q '"tokenizer_class": "PreTrainedTokenizerFast"' gpt/tokenizer_config.json
ok $? "with the class that AutoTokenizer makes of it"
grep -q '"eos_token": "<|endoftext|>"' gpt/tokenizer_config.json
ok $? "the token that ends texts"
grep -q '"model_max_length": 16' gpt/tokenizer_config.json
ok $? "and how long texts may be"
grep -q token_type_ids gpt/tokenizer_config.json
[ $? = 1 ]
ok $? "a GPT reads no types of tokens"

# tokens_of TOKENIZER: of texts.jsonl, as numbers
tokens_of() {
    rm -rf tokens
    run data tokenize texts.jsonl --tokenizer "$1" --end '' -o tokens
    od -An -v -tu2 -w2 tokens/train.bin | head -n 50 | tr -d '\n'
}
sed "s|tokenizer: [^,]*, ||" pairs.yaml >bytes.yaml
run train bytes.yaml --run_directory bytes --progress none
run weights export bytes --as hf -o bytes_hf
exits 0 "a model of bytes has a tokenizer, too"
is "$(tokens_of bytes_hf/tokenizer.json)" "$(tokens_of bytes)" "whose tokens are the bytes"
sed "s|name: gpt2|name: bert|; s|packed_text|masked_text|; s|$tokenizers/gpt2.json|words.txt|" pairs.yaml >masked.yaml
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the heaven >words.txt
run train masked.yaml --run_directory masked --progress none
run weights export masked --as hf -o masked_hf
exits 0 "so has a BERT"
is "$(tokens_of masked_hf/vocab.txt)" "$(tokens_of words.txt)" "which is its vocabulary"
for line in '"BertTokenizer"' '"token_type_ids"' '"mask_token": "\[MASK\]"' '"do_lower_case": true'; do
    grep -q "$line" masked_hf/tokenizer_config.json
    ok $? "its tokenizer_config.json has $line"
done
sed "s|$tokenizers/gpt2.json|$tokenizers/pieces-bpe.model|" pairs.yaml >pieces.yaml
run train pieces.yaml --run_directory pieces --progress none
run weights export pieces --as hf -o pieces_hf
is "$(cmp pieces_hf/tokenizer.model "$tokenizers/pieces-bpe.model" && echo same)" same "a model of SentencePiece is copied"
grep -q '"tokenizer_class": "PreTrainedTokenizerFast"' pieces_hf/tokenizer_config.json
ok $? "with the class by which AutoTokenizer finds it"
grep -q '"split_special_tokens": true' pieces_hf/tokenizer_config.json
ok $? "which takes what spells a special token as text"
is "$(tokens_of pieces_hf/tokenizer.json)" "$(tokens_of pieces_hf/tokenizer.model)" "and a tokenizer.json with its ids"
mkdir own
cp "$tokenizers/gpt2.json" own/tokenizer.json
echo '{"tokenizer_class": "GPT2TokenizerFast"}' >own/tokenizer_config.json
sed "s|$tokenizers/gpt2.json|own|" pairs.yaml >own.yaml
run train own.yaml --run_directory owned --progress none
run weights export owned --as hf -o own_hf
is "$(cat own_hf/tokenizer_config.json)" "$(cat own/tokenizer_config.json)" "what a tokenizer's folder says is kept"
tokenize() {
    rm -rf tokens
    run data tokenize texts.jsonl --tokenizer named -o tokens
}
mkdir named
cp "$tokenizers/split.json" named/tokenizer.json
tokenize
says tokens/tokens.json '"end": null' "a tokenizer's folder may name no token that ends texts"
echo '{"bos_token_id": 0, "eos_token_id": [1, 0]}' >named/generation_config.json
tokenize
says tokens/tokens.json '"end": 1' "generation_config.json has its id"
mv named/generation_config.json named/config.json
tokenize
says tokens/tokens.json '"end": 1' "or config.json"
echo '{"eos_token_id": 381}' >named/config.json
tokenize
says tokens/tokens.json '"end": null' "an id without a token is none"
echo '{"eos_token_id": 1' >named/config.json
tokenize
exits 65 "a file that is cut off: exit 65"
says err "config.json:2:0: " "is told with its place"

# What the config says is below what the recipe says.
cat >more.yaml <<'END'
max_duration: 1ba
seed: 4
model: {from: folder, dropout: 0.5}
train_data: {name: synthetic_tokens, num_samples: 8, seq_len: 8, batch_size: 4, vocab_size: 32}
eval_data: {name: synthetic_tokens, num_samples: 8, seq_len: 8, batch_size: 4, vocab_size: 32}
optimizer: {name: adamw, lr: 0}
END
run validate more.yaml
exits 0 "a recipe may begin from the folder"
run explain more.yaml --origin
says out "model.d_model = 16" "its options are the folder's"
says out "model.dropout = 0.5" "but for what the recipe says"
says out "folder/config.json" "and it is said where they are from"
run train more.yaml --run_directory second --progress none
exits 0 "it trains"
run weights diff folder second
exits 0 "and began with these values: without a rate they stay"
sed 's/dropout: 0.5}/weights: null}/' more.yaml >null.yaml
run explain null.yaml --origin
grep -q '^model.weights = .*folder' out
ok $? "weights that are null are the folder's"
rm -r folder/config.json
run validate more.yaml
exits 66 "without config.json: exit 66"
says err "model.from: cannot read" "with the key"
is "$(grep -c error err)" 1 "and no more than that"
run rerun second --run_directory third --progress none
exits 0 "a run goes without it: it is in its recipe"
run eval second
exits 0 "a run keeps what the config said"

run weights export first --as etude -o plain --json
is "$(tr -d ' \n' <out)" '{"path":"plain","as":"etude","model":"gpt2"}' "--json says what is written, and as what"
run weights export first --as timm -o x
exits 69 "a form that the model has not: exit 69"
says err "its forms: hf etude" "with those it has"
run weights export first -o x
exits 64 "without a form: exit 64"
run weights export first --as hf
exits 64 "without a place: exit 64"
run weights convert first --as hf -o x
exits 64 "--as is for export alone"

run export first --to onnx -o m.onnx
exits 0 "a model is written as ONNX"
said=$(cat out)
run export first --to onnx -o n.onnx --json
exits 0 "or told as JSON"
number() { sed -n "s/^  \"$1\": \([0-9]*\),*/\1/p" out; }
is "$(tr -d ' \n' <out | sed -E 's/"(opset|nodes|tensors)":[0-9]+/"\1":_/g')" \
    "{\"path\":\"n.onnx\",\"opset\":_,\"nodes\":_,\"tensors\":_,\"bytes\":$(wc -c <n.onnx | tr -d ' '),\"data_bytes\":0}" \
    "with the bytes that the file has"
cmp -s m.onnx n.onnx
ok $? "which is the same"
is "$(echo "$said" | sed -E 's/, [0-9.]+ [kM]?B$//')" "m.onnx: $(number nodes) operations, $(number tensors) weights" "in words it is the same"
is "$(echo "$said" | sed -n 's/.*, \([0-9.]*\) kB$/\1/p')" "$(awk -v n="$(wc -c <m.onnx)" 'BEGIN { printf "%.*f", n < 99950 ? 1 : 0, n / 1000 }')" "with its size"
run export first --to onnx -o q.onnx -q
is "$code$(cat out)" 0 "-q says nothing"
run export first --to onnx
exits 64 "but not without a file"
run export first --to onnx -o nowhere/m.onnx
exits 73 "a folder that is not there: exit 73"
finish
