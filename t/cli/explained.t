#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `etude explain` and `etude estimate`, letter for letter, where everything there is to say
# of a recipe, a model or a key is there.
. "$(dirname "$0")/cli.sh"
. "$ET_SRCDIR/t/cli/prints.sh"
most=500

cat >all.yaml <<'R'
max_duration: 1ep
seed: 3
grad_accum: 2
model: {name: mlp, hidden: 16, layers: 2, initializer: [xavier_uniform, linear_zero_bias]}
loss: soft_cross_entropy
train_data:
  name: synthetic_images
  batch_size: 8
  num_samples: 40
  num_classes: 5
  workers: 0
  transforms: [{random_crop: {size: 32, padding: 4}}, {normalize: {mean: [0.5], std: [0.25]}}]
eval_data:
  - {name: synthetic_images, num_samples: 24, num_classes: 5, workers: 0}
  - {name: synthetic_images, num_samples: 16, num_classes: 5, workers: 0, label: more}
metrics: [Accuracy, CrossEntropy]
optimizer:
  name: adamw
  lr: 0.01
  weight_decay: 0.35
  groups:
    - {match: fc1.bias, weight_decay: 0, scheduler: [constant, {name: step, step_size: 2ba}]}
    - {match: weight, lr: 0.5x}
    - {match: bias, lr: 0.2, weight_decay: 0.1}
scheduler: [{name: linear_with_warmup, t_warmup: 0.4 * NUM_UPDATE_STEPS_PER_EPOCH ba}, {name: cosine, t_max: 1dur}]
algorithms:
  ema: {half_life: 4ba}
  label_smoothing: {smoothing: 0.1}
  blurpool: false
  mixup: {alpha: 0.2}
  gradient_clipping: {clipping_type: norm, clipping_threshold: 1}
callbacks: {lr_monitor: {}, speed_monitor: {}, memory_monitor: false}
loggers: {tensorboard: {}, csv: {}}
R
prints explained "explain says all that is in a recipe" --ascii explain all.yaml
prints explained-json "in JSON as well" explain all.yaml --json
prints explained-apart "what cannot be known without the data is said" --ascii explain all.yaml \
    train_data='{name: idx, path: nowhere, batch_size: 8}'
prints explained-apart-json "in JSON as well" explain all.yaml --json \
    train_data='{name: idx, path: nowhere, batch_size: 8}'
prints explained-curve "a rate that is small, falls by half and ends within an epoch is drawn from 0" \
    --ascii explain all.yaml max_duration=56sp optimizer.lr=1.25e-05 scheduler='{name: linear, alpha_f: 0.5}'
prints explained-long "a long run has its length below" \
    --ascii explain all.yaml max_duration=1234567ba scheduler='{name: cosine_warm_restarts, t_0: 0.4dur}'
run explain all.yaml max_duration=7ba scheduler=constant --json
is "$(grep -c '"batches_per_epoch": null' out) $(grep -c '"batches": 7' out)" "1 1" "a run in batches has no epochs to tell"
mkdir user && echo 'ui: {plot: block}' >user/config.yaml
ETUDE_CONFIG_DIR=$dir/user prints explained-blocks "the configuration has it drawn in blocks" \
    explain all.yaml scheduler='[{name: cosine_warm_restarts, t_0: 2ba}, {name: linear}]' max_duration=9ba
for name in sam swa; do
    prints explained-$name-json "whether $name may be switched while a run goes on" explain $name --json
done
prints explained-model "a model is drawn by its parts, with the shape of its data" \
    explain mlp --model height=4 width=6 in_channels=2 hidden=5
gpt="gpt2 --model n_layers=2 d_model=8 n_heads=2 max_seq_len=8 vocab_size=10 seq_len=6"
# shellcheck disable=SC2086
{
    prints explained-depth "to the second level" explain $gpt
    prints explained-depth-verbose "or all of them with -v" explain $gpt -v
    prints explained-depth-json "in JSON as well" explain $gpt --json
}
prints explained-recipe-model "so is a recipe's" explain all.yaml --model
prints explained-recipe-model-eval "which may have data to evaluate with alone" \
    explain all.yaml --model train_data=null \
    'eval_data={name: synthetic_images, num_samples: 4, num_classes: 5, batch_size: 4}'
prints explained-key "a key has its place" explain keep
prints explained-key-json "in JSON as well" explain keep --json
prints explained-option "an option has who takes it" explain label_smoothing.smoothing
prints explained-options "all of them" explain max_norm
prints explained-options-json "in JSON as well" explain max_norm --json

# ---- algorithms, by a pattern ----

# named PATTERN: the names of those that fit it
named() {
    "$etude" algorithms "$1" | sed -n 's/^\([a-z][a-z0-9_]*\)  *[^ ].*/\1/p' | tr '\n' ' '
}
is "$(named 'em?')" "ema " "a ? in a pattern is any letter"
is "$(named '[ms][iw]*')" "mixup swa " "brackets are one of several"
is "$(named 'cut*')" "cutmix cutout " "a * is anything"
is "$(named '*_smoothing')" "label_smoothing " "also before the end"
is "$(named mooth)" "label_smoothing " "a part of a name needs none"
is "$(named ema)" "ema " "nor does a name"
prints explained-algorithm "options have their defaults, or must be given" algorithms gradient_clipping

# ---- estimate ----

# What does not depend on the device, and on what its kernels are.
run estimate all.yaml train_data.transforms=[] --json
exits 0 "estimate"
numbers() { # KEY...: what `out` has there
    for key in "$@"; do
        tr -d ' \n' <out | grep -o "\"$key\":[0-9.]*" | cut -d: -f2 | tr '\n' ' '
    done
}
is "$(numbers params grad_accum weights_bytes)" "$((3072 * 16 + 16 + 16 * 16 + 16 + 16 * 5 + 5)) 2 $((4 * 49525)) " \
    "has the parameters, the pieces of a batch and the bytes of the weights"
is "$(tr -d ' \n' <out | grep -o '"data":.*\],')" \
    '"data":[{"name":"synthetic_images","samples":40,"classes":5},{"name":"synthetic_images","samples":24,"classes":5},{"name":"synthetic_images","samples":16,"classes":5}],' \
    "and all data"
json=$(tr -d ' \n' <out)
of() { # OBJECT KEY: what it has in the estimate, in JSON; OBJECT "": all of it
    echo "$json" | sed "s/.*\"$1\":{//" | grep -o "\"$2\":[0-9.]*" | head -n 1 | cut -d: -f2
}
run estimate all.yaml train_data.transforms=[]
# like NAME TEXT NUMBER: "592 kB" is the number, to three digits
like() {
    is "$(echo "$2" | awk -v n="$3" '{ u = index("kMG", substr($2, 1, 1)); r = $1 * 1000 ^ u / n
        print (r > 0.994 && r < 1.006) || ($1 == 0 && n == 0) }')" 1 "$1: $2 is $3"
}
line() { sed -n "s/^ *$1  *//p" out; }
like "operations of a sample" "$(line 'FLOPs a sample')" "$(of '' flops_per_sample)"
like "peak memory" "$(line 'peak memory')" "$(of '' peak_bytes)"
like "intermediates" "$(line step)" "$(of train slab_bytes)"
like "workspace" "$(line step | sed 's/.*, //')" "$(of train workspace_bytes)"
like "a checkpoint" "$(line checkpoint)" "$(of '' checkpoint_bytes)"
like "the model's part of it" "$(line checkpoint | sed 's/.*, //')" "$(of '' weights_bytes)"
like "a copy of it" "$(line copy)" "$(of '' checkpoint_bytes)"
is "$(line microbatches) $(line 'nodes, kernels')" "2 $(of train nodes), $(of train kernels)" \
    "pieces, nodes and kernels"
[ "$(of train kernels)" != "$(of eval kernels)" ] && [ "$(of train nodes)" != "$(of eval nodes)" ]
ok $? "an evaluation has others"
is "$(line 'time a batch' | sed 's/ ms at least//' | awk -v s="$(of '' seconds_per_batch)" \
    '{ print ($1 > 10 * s && $1 < 100000 * s) }')" 1 "a batch takes milliseconds, where JSON has seconds"
run estimate all.yaml train_data.transforms=[] grad_accum=1 --json
json=$(tr -d ' \n' <out)
is "$(of train flops)" "$(of '' flops_per_sample | awk '{ printf "%.0f", 8 * $1 }')" \
    "a batch in one piece has the operations of its eight samples"
[ "$(of train output_bytes)" -lt "$(of train slab_bytes)" ]
ok $? "and few of its values are asked for"
finish
