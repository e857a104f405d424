#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A network that a recipe spells out, with blocks, is changed by methods as one of the core's
# is: layers in blocks too, and a run that is resumed goes on as it would have.
. "$(dirname "$0")/cli.sh"
export ETUDE_DEVICE=ref
cat >r.yaml <<'R'
max_duration: 4ba
seed: 5
model:
  name: layers
  blocks:
    stage:
      - conv2d: {out: 8, kernel: 3, padding: 1, stride: 2}
      - batch_norm
      - relu
  layers:
    - conv2d: {out: 8, kernel: 3, padding: 1}
    - relu
    - max_pool2d: {kernel: 2}
    - residual: {layers: [conv2d: {out: 8, kernel: 3, padding: 1}]}
    - stage
    - flatten
    - linear: {out: 10}
train_data: {name: synthetic_images, num_samples: 16, num_unique: 16, resolution: 8, batch_size: 4, workers: 0}
optimizer: {name: sgd, lr: 0.1}
checkpoint: {interval: 2ba, keep: -1}
R
run explain r.yaml --model
exits 0 "the network is drawn as a table"
is "$(awk '$1 == 4 { print $2 }' out)" stage "which names the block that a part is"
is "$(awk '$1 == 0 { print $2 }' out | head -n 1)" Conv2d "and the class of a layer"
run explain r.yaml --model --json
is "$(grep -c '"stage"' out)" 1 "as JSON does"

# method NAME PARAMETER...: trains with it, and has these parameters; goes on from the middle
method() {
    alg=$1
    shift
    name=$(echo "$alg" | sed 's/(.*//')
    run train r.yaml --alg "$alg" --run_directory "whole-$name" --progress none
    exits 0 "$name changes it"
    run weights ls "whole-$name"
    for parameter; do
        says out " $parameter " "$name: there is $parameter"
    done
    run train r.yaml --alg "$alg" --run_directory "half-$name" --progress none --until 2ba
    run train --resume "half-$name" --progress none
    exits 0 "$name: it is resumed"
    run weights diff "whole-$name" "half-$name"
    exits 0 "$name: and gives the same weights"
}
method "blurpool(min_channels=1)" 2.filt2d 4.0.blur_filter 4.0.conv.weight
method "squeeze_excite(min_channels=8)" 3.residual.0.conv.weight \
    4.0.se.pool_and_mlp.2.weight
method "factorize(min_channels=8,latent_channels=2)" 3.residual.0.module0.weight \
    4.0.module1.weight
method weight_standardization 3.residual.0.parametrizations.weight.original \
    4.0.parametrizations.weight.original
method "ghost_batchnorm(ghost_batch_size=2)" 4.1.batchnorm.running_mean
finish
