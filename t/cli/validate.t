#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is found before a run begins: validate and --dry-run say what the run would end
# with, and name what a later version brings.
. "$(dirname "$0")/cli.sh"

# recipe NAME MODEL DATA [LINE...]
recipe() {
    name=$1 model=$2 data=$3
    shift 3
    { echo 'max_duration: 1ba'
      echo "model: $model"
      echo "train_data: $data"
      echo 'optimizer: {name: sgd, lr: 0.1}'
      for line; do echo "$line"; done; } >"$name.yaml"
}
images='{name: synthetic_images, num_samples: 16, num_unique: 16, batch_size: 4, resolution: 32}'
tokens='{name: synthetic_tokens, num_samples: 16, seq_len: 8, batch_size: 4, vocab_size: 32}'
small='n_layers: 1, d_model: 16, n_heads: 2, max_seq_len: 8, vocab_size: 32'

recipe good lenet "$images"
run validate good.yaml
exits 0 "a recipe whose model fits its data"
says out 'good.yaml: fits the schema, and its model fits its data' "is said to"
recipe far lenet '{name: cifar10, path: nowhere, batch_size: 256}' 'grad_accum: 4'
run validate far.yaml
exits 0 "so is one whose data are not here"
recipe unknown lenet '{name: idx, path: nowhere, batch_size: 4}'
run validate unknown.yaml
exits 0 "where the data alone say their shapes"
says out 'its data are not known here' "that is said"

# refuses NAME CODE TEXT SENTENCE: validate, --dry-run and train say the same
refuses() {
    for words in validate 'train --dry-run' train; do
        # shellcheck disable=SC2086
        run $words "$1.yaml"
        exits "$2" "$4: $words"
        says err "$3" "and says why"
    done
}
recipe classes '{name: lenet, num_classes: 3}' "$images"
refuses classes 65 "train_data has 10 classes (labels 0 to 9), the model's num_classes is 3" \
    "labels that the model has no output for"
recipe others '{name: lenet, num_classes: 10}' "$images" \
    'eval_data: {name: synthetic_images, num_samples: 8, num_classes: 11, resolution: 32}'
refuses others 65 "eval_data has 11 classes (labels 0 to 10), the model's num_classes is 10" \
    "such labels of what is evaluated"
recipe fewer '{name: lenet, num_classes: 20}' "$images"
run validate fewer.yaml
exits 0 "a model may have outputs for more"
recipe kinds "{name: gpt2, $small}" "$images"
refuses kinds 65 'kinds.yaml:3:13: train_data: model gpt2 reads tokens, synthetic_images gives images' \
    "a model of text on images"
recipe unet '{name: unet}' "$images"
refuses unet 65 'model unet learns a class for each pixel' "a model of masks on classes"
recipe tokens '{name: lenet}' "$images" 'scheduler: {name: multistep, milestones: [5tok]}'
refuses tokens 65 "multistep: milestones 5tok counts tokens, and the training data have none" \
    "a schedule by tokens, of images"
recipe iterations '{name: lenet}' "$images" 'callbacks: {weights_saver: {interval: 2iter}}'
refuses iterations 65 "weights_saver: interval 2iter counts iterations: it needs an iteration_length" \
    "a callback by iterations, where none are counted"
recipe layers '{name: layers, layers: [{linearr: {out: 10}}]}' "$images"
refuses layers 65 "error E1205: layers.yaml:2:33: model.layers.0.linearr: unknown layer 'linearr' (did you mean 'linear'?)" \
    "a layer that is none, by its place"
recipe strange '{name: layers, layers: [zzz, {linear: {out: 10, outt: 3}}, {conv2d: {kernel: -1}}, {relu: 1}, [relu]]}' "$images"
refuses strange 65 "strange.yaml:2:32: model.layers.0.zzz: unknown layer 'zzz'" "one that is near to none"
says err "  hint: known: " "with those that there are"
says err "strange.yaml:2:56: model.layers.1.linear: unknown key 'outt'" "a bad option of a layer, by its place"
says err "strange.yaml:2:85: model.layers.2.conv2d.kernel: expected integer" "a value that it cannot have"
says err "strange.yaml:2:76: model.layers.2.conv2d: key 'out' is missing" "one that it needs"
says err "strange.yaml:2:98: model.layers.3.relu: expected mapping of options, got 1" "options that are none"
says err "strange.yaml:2:102: model.layers.4: expected name, or one name with its options" "and what is no layer"
recipe empty '{name: layers, layers: []}' "$images"
refuses empty 65 'empty.yaml:2:31: model.layers: expected list of layers' "no layers at all"
recipe shapes '{name: layers, layers: [flatten, {linear: {in: 7, out: 10}}]}' "$images"
refuses shapes 65 'shapes.yaml:2:42: linear has in: 7, but 3072 numbers come in' "layers that do not fit the images, by the place of the first"
recipe last '{name: layers, layers: [flatten, linear: {out: 7}]}' "$images"
refuses last 65 'last.yaml:2:41: the last layer gives a vector of 7, but 10 classes are to be told apart' \
    "a last layer that does not fit the classes"
says err "  hint: end with linear: {out: 10}" "with what would"
recipe ways '{name: layers, layers: [{relu: , as: early}, {residual: [conv2d: {out: 8, kernell: 1}]}, {add: erly}, {form: early}]}' "$images"
refuses ways 65 "ways.yaml:2:82: model.layers.1.residual.0.conv2d: unknown key 'kernell' (did you mean 'kernel'?)" \
    "what is wrong in a residual, by its place"
says err "ways.yaml:2:103: model.layers.2.add: unknown name 'erly' (did you mean 'early'?)" "a name that no layer has"
says err "ways.yaml:2:111: model.layers.3.form: unknown layer 'form' (did you mean 'from'?)" "a word that is misspelt"
recipe sum '{name: layers, layers: [{residual: [conv2d: {out: 8, kernel: 1, stride: 2}]}, flatten, linear: {out: 10}]}' "$images"
refuses sum 65 'sum.yaml:2:33: the layers give 8 x 16 x 16, but 3 x 32 x 32 come in' "a sum of two sizes, by its place"
says err "  hint: shortcut: [conv2d: {out: 8, kernel: 1, stride: 2}]" "with the shortcut that fits"
recipe field '{name: layers, layers: [{add: weight}, flatten, linear: {out: 10}]}' "$images"
refuses field 65 "field.yaml:2:33: no layer before is called 'weight', and the data have no such field" "a field that the data do not have"
recipe itself '{name: layers, blocks: {a: [b], b: [a], c: [relu]}, layers: [a, flatten, linear: {out: 10}]}' "$images"
refuses itself 65 'the block a is made of itself, by way of b' "blocks that are made of one another"
says err "itself.yaml:2:48: model.blocks.c: the block c is used nowhere" "and one that is used nowhere"
recipe mse '{name: lenet, loss: mse}' "$images"
refuses mse 65 'loss mse takes numbers' "a loss of numbers on classes"
recipe start '{name: lenet, initializer: [zzz]}' "$images"
refuses start 65 'there is no initializer zzz' "an initializer that is none"
recipe eval lenet "$images" "eval_data: $tokens"
refuses eval 65 'eval_data: model lenet reads images, synthetic_tokens gives tokens' \
    "evaluation on another kind of data"
recipe bert "{name: bert, $small}" "$tokens"
refuses bert 69 'model bert learns tokens that were masked' "BERT on next tokens, which it would copy"

recipe typo lenet "$images" 'algorithms: {mixupp: {}}'
refuses typo 65 "unknown algorithm 'mixupp' (did you mean 'mixup'?)" "what no version brings"

# Times as Composer writes them.
sed 's/1ba/1e+3ba/' good.yaml >plus.yaml
run validate plus.yaml
exits 0 "1e+3ba is a time"
run explain plus.yaml
says out '1000ba' "of a thousand batches"

# Texts that are not here have no lengths yet, and may be asked to go by them.
cat >bucket.yaml <<R
max_duration: 1ba
model: {name: bert_classifier, n_layers: 1, d_model: 8, n_heads: 2, max_seq_len: 16, num_classes: 3}
train_data: {name: labelled_text, path: none.tsv, tokenizer: none.json, seq_len: 16, bucket: true, batch_size: 4}
optimizer: {name: sgd, lr: 0.1}
R
run validate bucket.yaml
exits 0 "buckets of data that are not here are no fault"
cat >length.yaml <<'R'
max_duration: 2ep
model: {name: gpt2, n_layers: 1, d_model: 16, n_heads: 2}
train_data: {name: synthetic_tokens, seq_len: 64, batch_size: 16}
eval_data: {name: synthetic_tokens, seq_len: 64, batch_size: 16}
optimizer: {name: adamw, lr: 0.001}
algorithms: {seq_length_warmup: {duration: 0.5}}
R
run validate length.yaml
exits 0 "a method that counts on the run's length is given it"
# ---- a cache of pictures ----

mkdir -p pictures/a pictures/b
for name in a b; do
    cp "$ET_SRCDIR/t/fuzz/pictures-seeds/444.jpg" pictures/$name/1.jpg
done
cat >kept.yaml <<R
max_duration: 1ep
model: {name: mlp, hidden: 4}
train_data: {name: imagefolder, path: pictures, cache: kept, batch_size: 2, workers: 0, resolution: 8}
optimizer: {name: sgd, lr: 0.1}
R
run validate kept.yaml
is "$code $(ls -d kept 2>/dev/null)" "0 " "validate reads no samples: a cache of pictures is not filled"
told="2 pictures would be decoded once, with short sides of at most 256 pixels, into $dir/kept: about 10.9 KiB; nothing is written now"
for how in "train --dry-run" estimate; do
    # shellcheck disable=SC2086
    run $how kept.yaml
    is "$code $(ls -d kept 2>/dev/null)" "0 " "$how does not, either"
    says err "$told" "$how says how large it would be"
done
run train kept.yaml --run_directory kept_run --progress none
says err "2 pictures are decoded once, with short sides of at most 256 pixels, into" "train fills it, and says so first"
is "$code $(ls -d kept)" "0 kept" "into the folder that was asked for"

is "$(cat kept/pictures-* | wc -c | awk '{printf "%.1f KiB", $1 / 1024}')" "10.9 KiB" "as large as was said"
run train --dry-run kept.yaml
is "$code $(grep -c decoded err)" "0 0" "a dry run takes a cache that is there"
sed 's|cache: kept|cache: /proc/kept|' kept.yaml >nowhere.yaml
run train --dry-run nowhere.yaml
says err "and /proc/kept has 0 bytes free" "a dry run says where there is no room for one"

finish
