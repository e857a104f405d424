#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Training from a file of weights: another head, names that begin as keys do, and every
# way to say what may be left out.
. "$(dirname "$0")/cli.sh"

# recipe CLASSES EXTRA
recipe() {
    cat <<R
max_duration: 2ba
seed: 3
model: {name: resnet8, stem: strided$2}
train_data: {name: synthetic_images, num_classes: $1, channels: 1, resolution: 16, batch_size: 8, num_samples: 32, workers: 0}
optimizer: {name: sgd, lr: 0.1}
R
}

mkdir files
recipe 10 "" >ten.yaml
run train ten.yaml --progress none --run_directory runs/ten
exits 0 "a net of ten classes is trained"
weights=hf_resnet8_ten_classes.safetensors
run weights convert runs/ten -o files/$weights
exits 0 "its weights are written to a file whose name begins as a key of Hugging Face"

recipe 10 ", weights: $weights" >files/again.yaml
run train files/again.yaml --progress none --run_directory runs/again
exits 0 "that name is no secret; it is looked for in the recipe's folder"
recipe 10 ", weights: hf_abcdefghijklmnopqrstuvwxyzABCDEFGH" >key.yaml
run validate key.yaml
exits 65 "a key is one: exit 65"
says err "looks like a secret" "is told"


# What train would find of the file, validate finds, at its place.
run validate files/again.yaml
exits 0 "validate reads the file's header"
recipe 10 ", weights: files/none.safetensors" >none.yaml
run validate none.yaml
exits 66 "and has no use for one that is not there: exit 66"
says err "error E2001: none.yaml:3:48: model.weights: cannot read $dir/files/none.safetensors: No such file" "which it says, with the place that names it"
head -c 20000 files/$weights >files/cut.safetensors
recipe 10 ", weights: {path: files/cut.safetensors, strict: false}" >cut.yaml
run validate cut.yaml
exits 65 "nor for one that was cut off: exit 65"
says err "error E2002: cut.yaml:3:55: model.weights: $dir/files/cut.safetensors: tensor '" "likewise"
run validate ten.yaml model.weights=files/none.safetensors
exits 66 "also where the command line names it"
run validate none.yaml --json
says err '"code":"E2001","file":"none.yaml","line":3,"column":48' "as JSON, too"

recipe 5 ", weights: files/$weights" >strict.yaml
run train strict.yaml --progress none --run_directory runs/strict
exits 65 "the head of ten classes does not fit five: exit 65"
says err "'fc.bias' is [10], model wants [5] (and 1 more that do not fit)" "is told"
says err "weights: {path: FILE, strict: false}" "with what can be done"

recipe 5 ", weights: {path: files/$weights, strict: false}" >five.yaml
run train five.yaml optimizer.lr=0 --progress none --run_directory runs/five
exits 0 "strict: false takes what fits"
is "$(grep -c "left out" err)" 1 "one line lists what was left out"
says err "45 of the model's 47 tensors are loaded; left out: 'fc.bias' is [10], model wants [5]; 'fc.weight' is [10,64], model wants [5,64]" \
    "by name and shape"
# With a rate of 0 only batch norm's statistics move.
run weights diff runs/five files/$weights --json
sed -n '/"different"/,$ s/.*"name": "\([^"]*\)".*/\1/p' out | grep -v running_ | sort >differ
is "$(tr '\n' ' ' <differ)" "fc.bias fc.weight " "all else is the file's"
grep -q "strict: false" runs/five/recipe.resolved.yaml
ok $? "the resolved recipe says so"
run train runs/five/recipe.resolved.yaml --progress none --run_directory runs/resolved
exits 0 "and can be trained"
run train five.yaml --progress none --run_directory runs/tuned max_duration=4ba
exits 0 "it is fine-tuned"
run train five.yaml --resume runs/tuned --progress none max_duration=6ba
exits 0 "and goes on after that"

run train strict.yaml model.weights.ignore='[fc.*]' --progress none --run_directory runs/ignore
exits 0 "ignore leaves out what a pattern names"
says err "left out: 'fc.bias' is ignored; 'fc.weight' is ignored" "which is told too"
run train strict.yaml model.weights.ignore='[head.*]' --progress none --run_directory runs/no
exits 65 "a pattern that matches nothing: exit 65"
says err "matches 'head.*'" "is told"
run train ten.yaml model.weights=files/$weights --progress none --run_directory runs/set
exits 0 "a path alone may be set"
run train ten.yaml model.weights.strict=false --progress none --run_directory runs/none
exits 65 "strict without a path: exit 65"
says err "model.weights names no file" "is told"
run validate ten.yaml model.weights.pth=x
exits 65 "an unknown key: exit 65"
says err "did you mean 'model.weights.path'?" "with the one that was meant"
run explain five.yaml --origin
says out "model.weights.strict = false" "explain --origin shows each key"
run explain resnet8
says out "pattern" "explain MODEL shows what weights takes"
finish
