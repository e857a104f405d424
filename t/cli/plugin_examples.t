#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The examples of a layer, a model and a schedule from a library; and what people are told
# who write one: what its class lacks, which layer does not fit where, which options are
# refused, before a run is made of it.
. "$(dirname "$0")/cli.sh"
. "$ET_SRCDIR/t/cli/plugin.sh"
tiny r.yaml

# changed FILE.c SED EXAMPLE: the example with what somebody else would have written
changed() {
    sed "$2" "$ET_SRCDIR/examples/$3" >"$1"
    ! cmp -s "$1" "$ET_SRCDIR/examples/$3"
    ok $? "$1 is another than $3"
}
# value RUN NAME BATCH: of metrics.jsonl
value() {
    sed -n "s|.*\"ba\":$3,.*\"$2\":\\([^,}]*\\).*|\\1|p" "$1/metrics.jsonl" | head -n 1
}

# ---- a schedule ----

build noam.so examples/plugin_schedule.c -lm
ok $? "examples/plugin_schedule.c builds as its comment says"
allow noam noam.so
cat >s.yaml <<'R'
include: [r.yaml]
plugins: [noam]
max_duration: 4ba
scheduler: {name: inverse_sqrt, warmup: 2ba}
R
run validate s.yaml
exits 0 "a recipe with it is valid"
run train s.yaml --progress none --run_directory runs/noam
exits 0 "and trains"
rates=
for ba in 1 2 3 4; do
    rates="$rates$(value runs/noam lr-SGD/group0 $ba | cut -c 1-8) "
done
is "$rates" "0.05 0.1 0.081649 0.070710 " "at the rates of the paper"
run explain inverse_sqrt --ascii
exits 0 "explain draws it"
run validate s.yaml scheduler.warmup=0.0001dur
exits 65 "an option that its check refuses: exit 65"
says err "scheduler: warmup is 0 updates in this run: at least 1 is needed" "with the key"
sed 's/2ba}/0.0001dur}/' s.yaml >bad.yaml
run validate bad.yaml
says err "bad.yaml:4:41: scheduler: warmup is 0 updates" "with the place of the option in its file"
run train bad.yaml --progress none --run_directory runs/bad
exits 65 "train refuses it"
says err "bad.yaml:4:41: scheduler: warmup is 0 updates" "likewise"
[ ! -e runs/bad ]
ok $? "and makes no directory for a run"
run validate s.yaml max_duration=10ep scheduler.warmup=500ba
exits 0 "what depends on how long the data are is not refused by validate"

# ---- a model ----

build all_conv.so examples/plugin_model.c
ok $? "examples/plugin_model.c builds"
allow all_conv all_conv.so
cat >m.yaml <<'R'
include: [r.yaml]
plugins: [all_conv]
model: {name: all_conv, width: 4}
R
run train m.yaml --progress none --run_directory runs/all_conv
exits 0 "its model trains"
run weights ls runs/all_conv
says out "conv9.weight" "its parameters are called by their paths"
run explain all_conv
says out "beginning    He et al. 2015" "explain says how it begins"
run validate m.yaml train_data.resolution=3 eval_data=null
exits 65 "images that it does not take: exit 65"
says err "m.yaml:3:8: model: all_conv takes images of at least 4 x 4, not 3 x 3" \
    "with the place of the model"

# ---- a layer ----

build response.so examples/plugin_layer.c
ok $? "examples/plugin_layer.c builds"
allow response response.so
cat >l.yaml <<'R'
include: [r.yaml]
plugins: [response]
model:
  name: layers
  layers:
    - conv2d: {out: 4, kernel: 3}
    - relu
    - response_norm
    - flatten
    - linear: {out: 10}
R
run train l.yaml --progress none --run_directory runs/layer
exits 0 "its layer trains"
run weights ls runs/layer
says out "2.weight" "its parameters are called by its place"
sed 's/    - response_norm/    - identity/' l.yaml >plain.yaml
run train plain.yaml --progress none --run_directory runs/plain
is "$(value runs/layer loss/train/total 1)" "$(value runs/plain loss/train/total 1)" \
    "with weights of 0 it changes nothing, as the paper wants"
[ "$(value runs/layer loss/train/total 2)" != "$(value runs/plain loss/train/total 2)" ]
ok $? "and then learns"
sed 's/    - flatten/    - flatten\n    - response_norm/; 0,/    - response_norm/{//d}' l.yaml >flat.yaml
run validate flat.yaml
exits 65 "behind flatten it does not fit: exit 65"
says err "flat.yaml:9:7: layer response_norm: it normalises images, and not vectors; " \
    "said with its place"
says err " numbers come in" "and what came in"

# misfits SED TEXT NAME: the layer with another line, in l.yaml
misfits() {
    changed other.c "$1" plugin_layer.c
    build other.so other.c -Wno-unused-parameter
    allow other other.so
    run validate l.yaml 'plugins=[other]'
    exits 65 "$3: exit 65"
    says err "$2" "said with place and shapes"
    run train l.yaml 'plugins=[other]' --progress none --run_directory runs/misfit
    exits 65 "by train likewise"
    says err "$2" "said with place and shapes"
    rm -rf runs/misfit
}
misfits '/o->channels = shape\[0\];/s/$/ shape[0] *= 2;/' \
    "l.yaml:8:7: layer response_norm makes f32[8,4,30,30] of f32[8,4,30,30], and f32[8,8,30,30] is what was wanted" \
    "a layer that gives other shapes than its adapt says"
misfits 's/ET_SHAPE(o->channels, 1, 1)/ET_SHAPE(o->channels + 1, 1, 1)/' \
    "l.yaml:8:7: layer response_norm, of f32[8,4,30,30]: " "one whose formula fails"
misfits '/return et_add(g, y, x);/s/et_add(g, y, x)/NULL/' \
    "l.yaml:8:7: layer response_norm makes nothing of f32[8,4,30,30]" "one that gives nothing"
misfits 's/if (shape\[1\] == 0)/if (shape[1] != 0)/; s/return ET_FAIL(cx, ET_ESHAPE, .*/return ET_ESHAPE;/' \
    "l.yaml:8:7: layer response_norm does not take 4 x 30 x 30" "one that refuses without a word"

# ---- checks of other parts ----

build kinds.so t/cli/plugin.c -DREFUSES
allow kinds kinds.so
cat >k.yaml <<'R'
include: [r.yaml]
plugins: [kinds]
R
# refuses SETTING TEXT NAME
refuses() {
    run validate k.yaml "$1"
    exits 65 "validate refuses $3: exit 65"
    says err "$2" "and says which"
    run train k.yaml "$1" --progress none --run_directory runs/refused
    [ "$code" = 65 ] && [ ! -e runs/refused ]
    ok $? "train, too, and makes no run of it"
}
refuses 'scheduler=test_harmonic' "scheduler: power is of another day" "a scheduler's options"
refuses 'algorithms={test_count: }' \
    "algorithms: test_count does not take these options, and says no more than 'invalid value'" \
    "an algorithm's, for which it has no sentence"
refuses 'loggers={test_lines: }' \
    "loggers.test_lines: test_lines does not take these options" "a logger's"

# ---- classes that lack something ----

cat >f.yaml <<'R'
include: [r.yaml]
plugins: [fault]
R
# lacks EXAMPLE SED TEXT
lacks() {
    changed fault.c "$2" "$1"
    build fault.so fault.c -Wno-unused -lm
    allow fault fault.so
    run validate f.yaml
    exits 65 "a class without what it needs: exit 65"
    says err "error E4003: f.yaml:2:11: plugins: $dir/fault.so: $3" "as '$3'"
}
lacks plugin.c '/\.update = /d' "optimizer 'sign_sgd': the field .update is missing"
lacks plugin.c '/\.moments = /d' "optimizer 'sign_sgd': the field .moments is missing"
lacks plugin.c '/\.run = /d' "callback 'worst_loss': the field .run is missing, which .events needs"
lacks plugin.c '/\.options_size = /d' \
    "optimizer 'sign_sgd': the field .info.options_size is missing, which .info.options needs"
lacks plugin.c '/\.summary = "the largest/d' "callback 'worst_loss': the field .info.summary is missing"
lacks plugin_adafactor.c '/\.states = states/d' \
    "optimizer 'adafactor': the field .states is missing, which .state_shape needs"
lacks plugin_adafactor.c '/\.state_shape = /d' \
    "optimizer 'adafactor': the field .state_shape is missing, which .states needs"
lacks plugin_adafactor.c '/\.by_tensor = /d' \
    "optimizer 'adafactor': the field .by_tensor is missing, which .states needs"
lacks plugin_layer.c '/\.size = sizeof/d' "layer 'response_norm': the field .size is missing"
lacks plugin_layer.c '/\.forward = /d' "layer 'response_norm': the field .forward is missing"
lacks plugin_model.c '/\.build = /d' "model 'all_conv': the field .build is missing"
lacks plugin_schedule.c '/\.alpha = /d' "scheduler 'inverse_sqrt': the field .alpha is missing"
lacks plugin_data.c '/\.sample = /d' "dataset 'waves': the field .sample or .tokens is missing"
lacks plugin_data.c '/\.compute = /d' "metric 'WithinTolerance': the field .compute is missing"
lacks plugin_data.c '/\.each = /d' "loss 'trusted_mse': the field .each or .whole is missing"

# ---- explain, beside plugins under development ----

rm -r user
for name in noam response; do
    "$etude" config set "plugins.$name" "{path: $dir/$name.so, develop: true}" >out 2>err
done
run explain inverse_sqrt --ascii
is "$(grep -c development err)" 1 "explain warns of one plugin under development"
says err "plugin noam is under development" "that which has what it explains"
run explain sgd
is "$(grep -c development err)" 0 "and of none for the core's own"
run algorithms
is "$(grep -c development err)" 2 "a list of what all have warns of all"
finish
