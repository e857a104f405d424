#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Data that change under a run: it saves, ends with 65 and no signal, and goes on from
# there once they are back, to the same losses (RELIABILITY.md R29).
. "$(dirname "$0")/cli.sh"
head -c 60000 "$etude" | base64 -w 0 | head -c 60000 >text
cp text whole
cat >text.yaml <<'R'
max_duration: 60ba
record_interval: 1ba
seed: 5
model: {name: gpt2, n_layers: 1, d_model: 8, n_heads: 1, max_seq_len: 8, vocab_size: 256}
train_data: {name: text_bytes, path: text, seq_len: 8, batch_size: 4, workers: 0}
optimizer: {name: sgd, lr: 0.1, momentum: 0.9}
R
sed 's/text_bytes/tokens/; s/workers: 0/workers: 0, vocab_size: 32768/; s/vocab_size: 256}/vocab_size: 32768}/' \
    text.yaml >tokens.yaml

# losses RUN: "batch loss" of every batch, the last line of each
losses() {
    sed -nE 's|.*"ev":"batch".*"ba":([0-9]+).*"loss/train/total":([^,}]*).*|\1 \2|p' "$1/metrics.jsonl" |
        awk '{ v[$1] = $2 } END { for (i = 1; i in v; i++) print i, v[i] }'
}
# batches RUN N: waits until it has had so many
batches() {
    until_true '[ "$(cat "'"$1"'/metrics.jsonl" 2>/dev/null | grep -c "\"ev\":\"batch\"")" -ge '"$2"' ]'
}

for recipe in text tokens; do
    cp -p whole text
    run train $recipe.yaml --run_directory $recipe-whole --progress none
    exits 0 "$recipe: a run whose data stay"
    for harm in truncate empty grow write touch replace remove; do
        cp whole text
        rm -rf hurt
        # Long enough that the harm comes in its middle.
        "$etude" train $recipe.yaml max_duration=100000000ba --run_directory hurt --progress none \
            >out 2>err </dev/null &
        pid=$!
        batches hurt 20
        case $harm in
        truncate)
            truncate -s 30000 text
            says="text shrank from 58.6 KiB to 29.3 KiB while training"
            ;;
        empty)
            : >text
            says="text shrank from 58.6 KiB to 0 bytes while training"
            ;;
        grow)
            echo more >>text
            says="text grew from 58.6 KiB to 58.6 KiB while training"
            ;;
        write)
            printf x | dd of=text bs=1 seek=3 conv=notrunc 2>/dev/null
            says="text was changed while training"
            ;;
        touch)
            touch text
            says="text was changed while training"
            ;;
        replace)
            cp whole next
            mv next text
            says="text was removed or replaced while training"
            ;;
        remove)
            rm text
            says="text was removed or replaced while training"
            ;;
        esac
        wait $pid
        code=$?
        exits 65 "$recipe: $harm: exit 65"
        says err "etude: error E2002: $dir/$says" "is said"
        says err "with the data as they were: etude train --resume hurt" "and how to go on"
        last=$(losses hurt | tail -n 1)
        says hurt/run.json '"state": "failed"' "the run has failed"
        step=$(printf 'step-%012d' "${last%% *}")
        [ -s "hurt/checkpoints/$step/MANIFEST" ]
        ok $? "with a checkpoint of its last batch, $step"
        cp whole text
        run train --resume hurt max_duration="$((${last%% *} + 3))ba"
        exits 0 "it goes on when the data are back"
        most=$((${last%% *} + 3))
        [ $most -le 60 ] || most=60
        is "$(losses hurt | head -n $most)" "$(losses $recipe-whole | head -n $most)" \
            "and had the losses of the other"
    done
done

# Images are in memory from the start: what becomes of their files is of no matter.
mkdir d
{ printf '\0\0\010\003\0\0\0\040\0\0\0\004\0\0\0\004'; head -c 512 "$etude"; } >d/x
{ printf '\0\0\010\001\0\0\0\040'; head -c 32 /dev/zero; } >d/y
cat >idx.yaml <<'R'
max_duration: 60ba
record_interval: 1ba
seed: 3
model: {name: mlp, hidden: 16, layers: 1}
train_data: {name: idx, path: d, images: x, labels: y, batch_size: 2, workers: 2, num_classes: 10}
optimizer: {name: sgd, lr: 0.1}
R
run train idx.yaml --run_directory idx-whole --progress none
exits 0 "idx: a run whose data stay"
"$etude" train idx.yaml max_duration=4000ba --run_directory idx-hurt --progress none >out 2>err </dev/null &
pid=$!
batches idx-hurt 20
: >d/x
rm d/y
wait $pid
code=$?
exits 0 "idx: images that are gone while the run has them in memory are not missed"
is "$(losses idx-hurt | head -n 60)" "$(losses idx-whole)" "and its losses are the same"
finish
