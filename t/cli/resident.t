#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A small set of images stays on the GPU, and a run sees the same bits as where its
# batches are sent, whatever algorithms make of them. The GPU is t/gpusim's.
. "$(dirname "$0")/cli.sh"
if [ ! -e "$ET_BUILDDIR/libetude-gpusim.la" ]; then
    echo "1..0 # SKIP the simulated GPU was not built"
    exit 0
fi
export ETUDE_DEVICE=gpusim
export ETUDE_TUNE=0 # what is timed, in memory that differs, may choose other kernels
cat >r.yaml <<'R'
max_duration: 5ba
seed: 17
model: {name: resnet8}
train_data:
  name: synthetic_images
  num_samples: 20000
  num_unique: 50
  type: separable
  resolution: 16
  batch_size: 8
  workers: 0
  transforms:
    - random_crop: {size: 12, padding: 2}
    - horizontal_flip
    - normalize: {mean: [0.5, 0.5, 0.5], std: [0.25, 0.25, 0.25]}
eval_data: {name: synthetic_images, num_samples: 20, resolution: 12, workers: 0}
eval_interval: 3ba
optimizer: {name: sgd, lr: 0.01, momentum: 0.9}
R

# numbers RUN: the loss of every batch, and what evaluations came to
numbers() {
    sed -nE 's|.*"ev":"batch".*"ba":([0-9]+).*"loss/train/total":([^,}]*).*|\1 \2|p
s|.*"ev":"eval".*"ba":([0-9]+).*"metrics/eval/CrossEntropy":([^,}]*).*|eval \1 \2|p' "$1/metrics.jsonl"
}

# 15 MB of images are more than an eighth of 100 MB.
compare() {
    what=$1
    shift
    run train r.yaml --run_directory stays -vv --progress none "$@"
    exits 0 "$what"
    says err "20000 images lie on the device (14.6 MiB)" "the images lie on the device"
    export GPUSIM_MEMORY=100000000
    run train r.yaml --run_directory sent -vv --progress none "$@"
    unset GPUSIM_MEMORY
    exits 0 "with less memory"
    is "$(grep -c '20000 images lie' err)" 0 "they do not"
    is "$(numbers stays | wc -l)" 7 "five batches and two evaluations"
    is "$(numbers stays)" "$(numbers sent)" "and came to the same"
    rm -rf stays sent
}

compare "a run"
compare "in pieces, with mixup" grad_accum=2 algorithms.mixup.alpha=0.2
compare "batches that are chosen and resized" algorithms.selective_backprop.start=0 \
    algorithms.progressive_resizing.initial_scale=0.5
finish
