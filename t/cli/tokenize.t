#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `etude data tokenize`: texts become a folder of tokens, whole or not at all.
. "$(dirname "$0")/cli.sh"
tokenizers=$(cd "$ET_SRCDIR/t/golden/tokenizers" && pwd)
gpt2=$tokenizers/gpt2.json

# tokens FOLDER SPLIT: what the data set `tokens` finds there
tokens() {
    "$etude" data inspect tokens "path=$1" "split=$2" seq_len=2 --json 2>&1 |
        tr -d ' \n' | grep -o '"n_tokens":[0-9]*,"vocab_size":[0-9]*'
}
# ends FILE: where its documents end
ends() {
    od -An -v -t d8 "$1" | tr -s ' \n' ' '
}

printf 'one two\n\nthree\n' >a.txt
run data tokenize a.txt --tokenizer bytes -o byte
exits 0 'a text is tokenized'
is "$(tokens byte train)" '"n_tokens":15,"vocab_size":256' 'the data set finds its tokens and vocabulary'
is "$(ends byte/train.ends)" ' 15 ' 'and the end of its document is kept'
grep -q '^train  *15 tokens of 1 document$' out
ok $? 'what is written is told'

# Documents, and the token behind each.
run data tokenize a.txt --tokenizer "$gpt2" -o lines --document line
exits 0 'lines can be documents'
is "$(od -An -v -t u2 lines/train.bin | tr -s ' \n' '\n' | grep -c '^0$')" 2 \
    'behind each is the end of a text'
run data tokenize a.txt --tokenizer "$gpt2" -o blank --document blank --end ''
exits 0 'or what is between blank lines'
is "$(ends blank/train.ends | wc -w)" 2 'with no token behind them where none is asked for'
cmp -s "$gpt2" lines/tokenizer.json
ok $? 'the tokenizer is kept beside its tokens'
run data tokenize a.txt --tokenizer lines -o again --document line
cmp -s lines/train.bin again/train.bin
ok $? 'and can be used from there'

# The threads do not show.
awk 'BEGIN { for (i = 0; i < 60000; i++) print "line " i " of some text, " i % 7 " words" }' >long.txt
run data tokenize long.txt a.txt --tokenizer "$gpt2" -o one --threads 1 --val-fraction 0.2 --document line
run data tokenize long.txt a.txt --tokenizer "$gpt2" -o three --threads 3 --val-fraction 0.2 --document line
cmp -s one/train.bin three/train.bin && cmp -s one/val.ends three/val.ends
ok $? 'several threads write what one does'
share=$(($(wc -c <one/val.ends) / 8))
[ $share -gt 11000 ] && [ $share -lt 13000 ]
ok $? 'a fifth of the documents is set apart'
run data tokenize long.txt --tokenizer "$gpt2" -o whole --end ''
run data tokenize long.txt --tokenizer "$gpt2" -o cut --val-fraction 0.25 --end ''
cat cut/train.bin cut/val.bin | cmp -s - whole/train.bin
ok $? 'of an only document the end is set apart, and its tokens are those of the whole'

printf 'a\n\nb\n\nc\n' >few.txt
for share in 0.999:all 0.001:none; do
    run data tokenize few.txt --tokenizer bytes -o parts --document blank --val-fraction ${share%:*}
    exits 65 "${share#*:} of three documents set apart: exit 65"
    says err "of 3 documents ${share#*:} are set apart" 'and why'
    [ ! -e parts ]
    ok $? 'and nothing is written'
done

# Folders, packed files, JSONL.
mkdir -p in/b in/.hidden
printf '{"text": "x y", "id": 1}\n\n{"text": "z"}\n' >in/b/c.jsonl
gzip -c a.txt >in/a.txt.gz
printf 'a\000b' >in/picture
printf 'no' >in/.hidden/d.txt
run data tokenize in --tokenizer bytes -o folder --json
exits 0 'folders are read'
is "$(tr -d ' \n' <out | grep -o '"files":.*"tokens":[0-9]*')" \
    '"files":3,"skipped":1,"text_bytes":55,"documents":3,"tokens":19' \
    'with packed files and JSONL in them, and without what is no text'
is "$(ends folder/train.ends)" ' 15 18 19 ' 'in the order of their names'

run data tokenize in --tokenizer "$gpt2" -o json --json --val-fraction 0.5
is "$(tr -d ' \n' <out | sed 's/"seconds":[0-9.e-]*/"seconds":_/')" "$(tr -d '\n' <<J
{"folder":"json","model":"bpe","vocab_size":$(sed -n 's/.*"vocab_size":\([0-9]*\).*/\1/p' <<I
$(tokens json train)
I
),"files":3,"skipped":1,"text_bytes":55,"documents":3,"tokens":$((($(wc -c <json/train.bin) + $(wc -c <json/val.bin)) / 2)),
"val_documents":$(ends json/val.ends | wc -w | tr -d ' '),"val_tokens":$(($(wc -c <json/val.bin) / 2)),"seconds":_}
J
)" 'as JSON it is told what there is and what was set apart'
run data tokenize in --tokenizer bytes -o said --val-fraction 0.5
is "$(cat out)" 'tokenizer  bytes, vocabulary 256
text       55 B of 2 files
skipped    1, which hold no text
train      15 tokens of 1 document
val        4 tokens of 2 documents
written    said' 'and in words'
printf '{"text": "x y", "body": "long one"}\n' >body.jsonl
run data tokenize body.jsonl --tokenizer bytes -o body --field body --val-fraction 0
is "$(cat body/train.bin) $(ls body/val.bin 2>/dev/null)" 'long one ' '--field is the text of a line of JSON; a fraction of 0 sets nothing apart'
run data tokenize body.jsonl --tokenizer bytes -o body2 --val-fraction 1
exits 64 'a fraction of 1 leaves nothing to train on'

# More than 65,536 tokens take four bytes each.
{ echo '[UNK]'; seq 70000; } >vocab.txt
echo '69999 70000 7' >numbers.txt
run data tokenize numbers.txt --tokenizer vocab.txt -o wide --end ''
is "$(od -An -v -t u4 wide/train.bin | tr -s ' \n' ' ')" ' 69999 70000 7 ' \
    'a large vocabulary has four bytes a token'
is "$(tokens wide train)" '"n_tokens":3,"vocab_size":70001' 'which the data set reads'

# What is refused leaves nothing.
printf '{"text": "x"}\n{"text": 5}\n' >bad.jsonl
run data tokenize bad.jsonl --tokenizer bytes -o out.folder
exits 65 'a line without a text is refused'
grep -q 'bad.jsonl:2: no text called text' err
ok $? 'by file and line'
printf '{"text": "x"}\n{"text" "y"}\n' >bad.jsonl
run data tokenize bad.jsonl --tokenizer bytes -o out.folder
grep -q 'bad.jsonl:2:' err
ok $? 'as is one that is no JSON'
run data tokenize a.txt --tokenizer bytes -o lines
exits 65 'a folder with files in it is refused'
run data tokenize nothing.txt --tokenizer bytes -o out.folder
exits 66 'a file that is not there is named'
run data tokenize a.txt --tokenizer bytes -o out.folder --val-fraction 1.5
exits 64 'a fraction is below 1'
run data tokenize a.txt --tokenizer bytes -o out.folder --end '<eos>'
exits 65 'the token behind documents is one'
run data tokenize a.txt --tokenizer bytes
exits 64 'a place to write to is asked for'
head -c 20 in/a.txt.gz >short.txt.gz
run data tokenize short.txt.gz --tokenizer bytes -o out.folder
grep -q 'short.txt.gz: packed, and cut short' err
ok $? 'a packed file that is cut short is refused'
is "$(ls -d out.folder .out.folder* 2>/dev/null)" '' 'nothing is left of any of these'

# Interrupted: stopped while it writes, then told to end.
yes 'a line of text that comes again and again' | head -c 80000000 >large.txt
"$etude" data tokenize large.txt --tokenizer "$gpt2" -o stopped --threads 1 >out 2>err </dev/null &
pid=$!
until_true 'ls -d .stopped.* >/dev/null 2>&1'
kill -STOP $pid
ls -d .stopped.* >/dev/null 2>&1
ok $? 'until it is whole, the folder has another name'
kill -INT $pid
kill -CONT $pid
wait $pid
is $? 130 'a signal ends it'
is "$(ls -d stopped .stopped.* 2>/dev/null)" '' 'and nothing is left of it'
finish
