#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Files of every source that are cut, empty, or begin as another format does, through
# `etude train` and `etude data show`: one line that names the file, the documented exit
# code, and no run that is left. A sample that is damaged is skipped or refused, by choice,
# and the batches are the same otherwise.
. "$(dirname "$0")/cli.sh"
seeds=$ET_SRCDIR/t/fuzz
export ETUDE_CACHE_DIR="$dir/cache"

# ---- sources, each with good files ----

# bytes N CHARACTER: N of them
bytes() {
    head -c "$1" /dev/zero | tr '\000' "$2"
}

mkdir idx cifar npy words tsv jsonl instructions pictures pictures/a pictures/b tars masks masks/images masks/masks
{ printf '\000\000\010\003\000\000\000\010\000\000\000\004\000\000\000\004'; bytes 128 A; } >idx/images
{ printf '\000\000\010\001\000\000\000\010'; printf '\000\001\000\001\000\001\000\001'; } >idx/labels
for part in data_batch_1 data_batch_2 data_batch_3 data_batch_4 data_batch_5 test_batch; do
    for label in '\001' '\002' '\003'; do
        printf "$label"
        bytes 3072 B
    done >cifar/$part.bin
done
# array FILE DTYPE SHAPE: the header of a .npy file
array() {
    head="{'descr': '$2', 'fortran_order': False, 'shape': ($3), }"
    printf '\223NUMPY\001\000v\000%-117s\n' "$head" >"$1"
}
array npy/x.npy '<f4' '8, 3'
bytes 96 '\000' >>npy/x.npy
array npy/y.npy '|u1' '8,'
printf '\000\001\000\001\000\001\000\001' >>npy/y.npy
tail -c +2 "$seeds/sets-seeds/npz" >arrays.npz
printf 'a,b,kind\n' >table.csv
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "$i,0.$i,k$((i % 2))"; done >>table.csv
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "the $i words of line $i are these"; done >words/a.txt
printf 'label\tsentence\n' >rows.tsv
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do printf '%s\ta sentence of %s\n' $((i % 2)) "$i"; done >>rows.tsv
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
    echo "{\"text\": \"a text, the $i of them\", \"label\": $((i % 2))}"
done >rows.jsonl
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
    echo "{\"prompt\": \"what is $i?\", \"response\": \"it is $i\"}"
done >asks.jsonl
"$etude" data tokenize words/a.txt --tokenizer bytes -o shards >out 2>&1
cp "$ET_SRCDIR/t/golden/tokenizers/gpt2.json" "$ET_SRCDIR/t/golden/tokenizers/pieces-unigram.model" .
mkdir mds
tail -c +2 "$seeds/shards-seeds/mds-images" >mds/shard.00000.mds
tail -c +2 "$seeds/shards-seeds/mds-index" >mds/index.json
mkdir mds_tokens
tail -c +2 "$seeds/shards-seeds/mds-bytes" >mds_tokens/shard.00000.mds
tail -c +2 "$seeds/shards-seeds/mds-bytes-index" >mds_tokens/index.json
i=0
for name in 420 422 444 progressive; do
    i=$((i + 1))
    cp "$seeds/pictures-seeds/$name.jpg" pictures/a/$i.jpg
done
i=0
for name in rgb alpha palette interlaced; do
    i=$((i + 1))
    cp "$seeds/pictures-seeds/$name.png" pictures/b/$i.png
done
printf 'file,label\n' >pictures.csv
for i in 1 2 3 4; do printf 'pictures/a/%s.jpg,0\npictures/b/%s.png,1\n' $i $i; done >>pictures.csv
mkdir members
for i in 1 2 3 4; do
    cp pictures/a/$i.jpg members/00$i.jpg
    echo $((i % 2)) >members/00$i.cls
done
repack() {
    tar -C members -cf tars/shard-000.tar 001.cls 001.jpg 002.cls 002.jpg 003.cls 003.jpg 004.cls 004.jpg
}
repack
i=0
for name in rgb alpha palette interlaced; do
    i=$((i + 1))
    cp "$seeds/pictures-seeds/$name.png" masks/images/$i.png
    cp "$seeds/pictures-seeds/grey.png" masks/masks/$i.png
done
tiny weights.yaml
"$etude" train weights.yaml --run_directory origin --progress none >out 2>&1
"$etude" weights convert origin -o w.safetensors >out 2>&1

pixels='resolution: 4, batch_size: 2, workers: 0'
mlp='{name: mlp, hidden: 8}'
gpt='{name: gpt2, n_layers: 1, d_model: 8, n_heads: 2, max_seq_len: 32}'
bert='{name: bert_classifier, n_layers: 1, d_model: 8, n_heads: 2, max_seq_len: 8}'
text='seq_len: 8, batch_size: 2, workers: 0'

# recipe MODEL DATA: r.yaml
recipe() {
    cat >r.yaml <<R
max_duration: 2ba
seed: 3
model: $1
train_data: {$2}
optimizer: {name: sgd, lr: 0.1}
R
}

# ---- one file ----

# complains CODE FILE NAME ARGS...: one error, which names the file, and no run
complains() {
    want=$1 file=$2 name=$3
    shift 3
    run "$@"
    errors=$(grep -c '^etude: error' err)
    line=$(grep -m 1 '^etude: error' err)
    case "$code $errors $line" in
    "$want 1 "*"${file##*/}"*) good=0 ;;
    *) good=1 ;;
    esac
    ! grep -q "$(printf '[\001-\010\013-\037\177]')" err || good=1
    ok $good "$name: exit $want, one line that names the file"
    rm -rf run
}

# breaks NAME FILE [WHERE] [train]: the recipe r.yaml, which reads FILE, with FILE cut, empty
# and of another format. WHERE it is cut: in the middle, in its last row, or nowhere, since
# any text is one. Weights matter to train alone.
breaks() {
    cp "$2" kept
    size=$(wc -c <kept)
    for how in cut empty foreign; do
        case $how-${3:-middle} in
        cut-middle) head -c $((size / 2 + 1)) kept >"$2" ;;
        cut-in_a_row) sed '$s/[,[:space:]].*//' kept >"$2" ;;
        cut-nowhere) continue ;;
        empty-*) : >"$2" ;;
        foreign-nowhere) continue ;;
        foreign-*) { printf 'GIF89a\000\377 no file of that kind\n\000\001\002\003' && bytes 600 '\377'; } >"$2" ;;
        esac
        complains 65 "$2" "$1, $how: train" train r.yaml --run_directory run --progress none
        [ "$4" = train ] || complains 65 "$2" "$1, $how: data show" data show r.yaml
    done
    cp kept "$2"
    run train r.yaml --run_directory run --progress none
    exits 0 "$1, whole: trains"
    rm -rf run
}

recipe "$mlp" "name: idx, path: idx, images: images, labels: labels, batch_size: 2, workers: 0"
breaks "IDX images" idx/images
breaks "IDX labels" idx/labels
gzip -c idx/images >idx/images.gz
recipe "$mlp" "name: idx, path: idx, images: images.gz, labels: labels, batch_size: 2, workers: 0"
breaks "IDX images, packed" idx/images.gz
recipe "$mlp" "name: cifar10, path: cifar, batch_size: 2, workers: 0"
breaks "CIFAR" cifar/data_batch_2.bin
recipe "$mlp" "name: npy, path: npy, batch_size: 2, workers: 0"
breaks "npy" npy/x.npy
breaks "npy of targets" npy/y.npy
recipe "$mlp" "name: npy, path: arrays.npz, batch_size: 1, workers: 0"
breaks "npz" arrays.npz
recipe "$mlp" "name: table, path: table.csv, batch_size: 2, workers: 0"
breaks "a table" table.csv in_a_row
gzip -c table.csv >table.csv.gz
recipe "$mlp" "name: table, path: table.csv.gz, batch_size: 2, workers: 0"
breaks "a table, packed" table.csv.gz
recipe "$gpt" "name: text, path: words/a.txt, $text"
breaks "text" words/a.txt nowhere
recipe "$gpt" "name: text, path: rows.jsonl, $text"
breaks "JSONL" rows.jsonl
recipe "$bert" "name: labelled_text, path: rows.tsv, text: sentence, label: label, tokenizer: gpt2.json, $text"
breaks "TSV" rows.tsv in_a_row
recipe "$gpt" "name: instructions, path: asks.jsonl, seq_len: 32, batch_size: 2, workers: 0"
breaks "instructions" asks.jsonl
recipe "$gpt" "name: tokens, path: shards, $text"
breaks "token shards" shards/train.bin
breaks "what token shards say of themselves" shards/tokens.json
recipe "$gpt" "name: packed_text, path: words, document: line, tokenizer: gpt2.json, $text"
breaks "a tokenizer.json" gpt2.json
recipe "$gpt" "name: packed_text, path: words, document: line, tokenizer: pieces-unigram.model, $text"
breaks "a SentencePiece model" pieces-unigram.model
recipe "$mlp" "name: mds_images, path: mds, image: image, target: label, $pixels"
breaks "MDS" mds/shard.00000.mds
breaks "the index of MDS" mds/index.json
recipe "$gpt" "name: mds_tokens, path: mds_tokens, $text"
breaks "MDS of tokens" mds_tokens/shard.00000.mds
breaks "the index of MDS of tokens" mds_tokens/index.json
sed -i 's/path: mds_tokens/&, vocab_size: 40/' r.yaml
complains 65 mds_tokens/shard.00000.mds "a token of MDS beyond the vocabulary" train r.yaml --run_directory run --progress none
says err "the token at byte " "and where it stands"
recipe "$mlp" "name: csv_images, path: pictures.csv, $pixels"
breaks "a list of pictures" pictures.csv
recipe "$mlp" "name: tar_shards, path: tars, $pixels"
breaks "a tar shard" tars/shard-000.tar
sed 's|layers: 1|layers: 1, weights: w.safetensors|' weights.yaml >r.yaml
breaks "safetensors" w.safetensors middle train
sed 's|layers: 1|layers: 1, weights: w.pth|' weights.yaml >r.yaml
for how in "head -c 200" "head -c 0" "tail -c 200"; do
    $how "$seeds/pth-seeds/plain" >w.pth
    complains 65 w.pth "a .pth, $how" train r.yaml --run_directory run --progress none
done

# ---- one sample of several ----

# losses NAME: what the run r.yaml, batches of one sample, had for each
losses() {
    rm -rf run
    run train r.yaml --run_directory run --progress none
    sed -n 's/.*"ev":"batch".*"ba":\([0-9]*\),.*"loss\/train\/total":\([^,}]*\).*/\1 \2/p' run/metrics.jsonl >"$1"
}

# damages NAME FILE SAMPLES: the recipe r.yaml, an epoch in batches of one sample and without
# learning, whose file of one sample among SAMPLES is cut
damages() {
    cp r.yaml whole.yaml
    losses before
    cp "$2" kept
    head -c $(($(wc -c <kept) / 3)) kept >"$2"
    repack
    losses after
    exits 0 "$1, one sample damaged: trains"
    says err "${2##*/}" "$1: a warning names it"
    is "$(wc -l <after)" "$3" "$1: as many batches"
    is "$(diff before after | grep -c '^>')" "${4:-1}" "$1: all others are as they were"
    rm -rf run
    sed 's/max_corrupt: 0.5/max_corrupt: 0/' whole.yaml >r.yaml
    complains 65 "$2" "$1: where none may be" train r.yaml --run_directory run --progress none
    cp kept "$2"
}

# still MODEL DATA: r.yaml, which learns nothing in one epoch
still() {
    cat >r.yaml <<R
max_duration: 1ep
seed: 3
model: $1
train_data: {$2, batch_size: 1, workers: 0, resolution: 4, max_corrupt: 0.5}
optimizer: {name: sgd, lr: 0}
R
}

still "$mlp" "name: imagefolder, path: pictures"
damages "imagefolder" pictures/a/3.jpg 8
still "$mlp" "name: csv_images, path: pictures.csv"
damages "csv_images" pictures/b/2.png 8
still "{name: unet, width: 2, depth: 1}" "name: segmentation, path: masks, num_classes: 255"
damages "segmentation, a picture" masks/images/2.png 4
still "{name: unet, width: 2, depth: 1}" "name: segmentation, path: masks, num_classes: 255"
damages "segmentation, a mask" masks/masks/2.png 4
still "$mlp" "name: tar_shards, path: tars"
damages "tar_shards" members/003.jpg 4

# ---- one sample of a shard ----

# broken_at NAME CODE WORDS: train and data show end with CODE and one line about the shard
# of mds that has WORDS, whatever may be skipped
broken_at() {
    for cmd in "train r.yaml --run_directory run --progress none" "data show r.yaml"; do
        # shellcheck disable=SC2086
        complains "$2" mds/shard.0000 "$1: ${cmd%% r.yaml*}" $cmd
        says err "$3" "$1: which, and where"
    done
    cp good.mds mds/shard.00000.mds
    cp good.json mds/index.json
}

# put AT BYTES: in the shard of three pictures; sample 1 has its sizes at 612, then its JPEG
put() {
    printf "$2" | dd of=mds/shard.00000.mds bs=1 seek="$1" conv=notrunc 2>/dev/null
}

cp mds/shard.00000.mds good.mds
cp mds/index.json good.json
still "$mlp" "name: mds_images, path: mds, image: image, target: label"
cp r.yaml whole.yaml
losses before
put 700 "$(printf '\\377%.0s' 1 2 3 4 5 6 7 8 9 10 11 12)"
losses after
exits 0 "a picture of MDS is damaged: trains"
says err "mds/shard.00000.mds: sample 1 of shard 0: a JPEG" "a warning names the shard and the sample"
is "$(wc -l <after) $(diff before after | grep -c '^>')" "3 1" "as many batches, of which one is other"
rm -rf run
sed 's/max_corrupt: 0.5/max_corrupt: 0/' whole.yaml >r.yaml
broken_at "a picture of MDS, where none may be damaged" 65 "mds/shard.00000.mds: sample 1"
cp whole.yaml r.yaml
put 8 '\377\377\377\377'
broken_at "an offset behind the shard's end" 65 "mds/shard.00000.mds: sample 1 begins at byte 4294967295"
put 12 '\160\001\000\000'
broken_at "an offset before the last" 65 "mds/shard.00000.mds: sample 2 begins at byte 368"
put 16 '\001\000\000\000'
broken_at "the last sample's end before it" 65 "mds/shard.00000.mds: sample 2 ends at byte 1"
put 8 '\145\002'
broken_at "an offset that is one too large" 65 "mds/shard.00000.mds: sample 0 has 381 bytes, and its columns 380"
put 612 '\001\000'
broken_at "the size of a column" 65 "mds/shard.00000.mds: sample 1 has 2775 bytes"
sed -i 's/"samples": 3/"samples": 4/' mds/index.json
broken_at "an index of other samples" 65 "mds/shard.00000.mds: 3 samples, and its index says 4"
head -c 3000 good.mds >mds/shard.00000.mds
broken_at "a shard that is cut" 65 "mds/shard.00000.mds: 3000 bytes, and its index says 3793"
sed -i 's/shard.00000/shard.00007/' mds/index.json
broken_at "an index that lists a file that is not there" 66 "mds/shard.00007.mds"

# ---- one line of several ----

# line NAME FILE TEXT: the fifth line of FILE, which the recipe reads, is TEXT
line() {
    cp "$2" kept
    sed "5s/.*/$3/" kept >"$2"
    complains 65 "$2:5" "$1: train" train r.yaml --run_directory run --progress none
    complains 65 "$2:5" "$1: data show" data show r.yaml
    cp kept "$2"
}

recipe "$gpt" "name: text, path: rows.jsonl, $text"
line "a line of JSONL that is cut" rows.jsonl '{"text": "a te'
line "a line of JSONL without a text" rows.jsonl '{"txt": "a text"}'
recipe "$bert" "name: labelled_text, path: rows.tsv, text: sentence, label: label, tokenizer: gpt2.json, $text"
line "a row of TSV without a column" rows.tsv '1'
recipe "$gpt" "name: instructions, path: asks.jsonl, seq_len: 32, batch_size: 2, workers: 0"
line "an instruction without a response" asks.jsonl '{"prompt": "what is 5?"}'
recipe "$mlp" "name: table, path: table.csv, batch_size: 2, workers: 0"
line "a row of a table with a cell that is no number" table.csv '4,x,k1'
line "a row of a table with a cell too many" table.csv '4,0.4,k1,2'

# ---- of several ranks ----

mkdir -p wide/a wide/b
for i in 1 2 3 4 5 6; do
    cp "$seeds/pictures-seeds/444.jpg" wide/a/$i.jpg
    cp "$seeds/pictures-seeds/rgb.png" wide/b/$i.png
done
for i in 5 6; do
    head -c 60 "$seeds/pictures-seeds/rgb.png" >wide/b/$i.png
done
cat >r.yaml <<R
max_duration: 1ep
seed: 3
model: {name: mlp, hidden: 8}
train_data: {name: imagefolder, path: wide, batch_size: 6, resolution: 4, workers: 0, max_corrupt: 0.17}
optimizer: {name: sgd, lr: 0.01}
R
run train r.yaml -n 3 --run_directory run --progress none
exits 0 "three ranks skip what they cannot read"
for i in 5 6; do
    grep -q "warn: rank [012]: .*/b/$i.png" err
    ok $? "b/$i.png is named, with the rank that met it"
done
is "$(grep -h skipped run/logs/rank[12].txt | sed 's/^warn //' | sort)" \
    "$(sed -n 's/^etude: warn: \(rank [12]: .*skipped.*\)/\1/p' err | sort)" "the log of the rank has it, too"
run train --resume run -n 3 max_duration=12ep --progress none
exits 0 "resumed, each knows what it has skipped and counts no other"
run weights ls run
is "$(sed -n 's/.*unreadable .* \([0-9]*\) B$/\1/p' out | tr '\n' ' ')" "16 16 16 " "which in the end are the same two of all"
sed 's/max_corrupt: 0.17/max_corrupt: 0.09/; s/1ep/6ep/' r.yaml >strict.yaml
rm -rf run
"$etude" train strict.yaml -n 3 --run_directory run --progress none >out 2>err &
until_true "! kill -0 $! 2>/dev/null" || kill_run $!
wait $!
is $? 65 "one of three ranks that may skip no more ends the run, without a wait for its peers"
grep -q 'error E6001: rank [12]: E2002: .*/wide/b/.*allowed by max_corrupt' err
ok $? "and the run's end says why"

finish
