#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The programs of examples/ run, say what they do, and end well.
. "$(dirname "$0")/../tap.sh"
own_folder etude-examples
for program in own_loop functional custom_algorithm custom_op distillation; do
    "$ET_BUILDDIR/examples/$program" >out 2>&1
    ok $? "examples/$program trains and learns"
    sed 's/^/# /' out
done
"$ET_BUILDDIR/examples/own_epoch" >out 2>&1
ok $? "examples/own_epoch trains by an epoch of its own"
grep -q 'ends after [0-9]* batches' out
ok $? 'which ends early'
sed 's/^/# /' out
# The same twice: the second goes on where the first has ended.
cat >r.yaml <<'R'
max_duration: 4ba
seed: 3
model: {name: mlp, hidden: 16, layers: 1}
train_data: {name: synthetic_images, channels: 1, resolution: 8, batch_size: 8, num_samples: 32}
eval_data: {name: synthetic_images, channels: 1, resolution: 8, num_samples: 16}
optimizer: {name: sgd, lr: 0.1}
R
for time in first second; do
    "$ET_BUILDDIR/examples/from_recipe" r.yaml run >out.$time 2>&1
    ok $? "examples/from_recipe trains and asks, the $time time"
    sed 's/^/# /' out.$time
done
is "$(grep class out.first)" "$(grep class out.second)" "and what was trained already says the same"
grep -q 'trained for 4 batches' out.second
ok $? "after as many batches"
finish
