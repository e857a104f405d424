#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `etude explain` draws: the learning rate over a run, as text and as JSON.
. "$(dirname "$0")/cli.sh"
unset LC_ALL LC_CTYPE LANG TERM
cat >r.yaml <<'R'
max_duration: 10ep
seed: 3
model: {name: mlp, hidden: 16, layers: 1}
train_data: {name: synthetic_images, batch_size: 8, num_samples: 32, workers: 0}
optimizer: {name: sgd, lr: 0.1}
scheduler:
  - {name: linear_with_warmup, t_warmup: 1ep, alpha_f: 0.5}
  - {name: multistep, milestones: [5ep, 8ep], gamma: 0.5}
R

# plot ARGS...: the last lines of explain, in out
plot() {
    run explain "$@"
    sed -n '/^learning rate/,$p' out >plot
    mv plot out
}

# draws NAME: out is what standard input holds
draws() {
    cat >want
    diff want out >err
    ok $? "$1"
}

plot r.yaml
exits 0 "explain draws the learning rate"
draws "two schedules multiply: a warm-up, a line, two steps" <<'P'
learning rate        set at each batch
    0.1|        **********
       |        *        *****************
  0.075|      ***                        ****
       |      *                             *
   0.05|    ***                             *
       |    *                               ***********************
  0.025|  ***                                                     *
       |  *                                                       **************
      0|***
       +- 0 ------------------------------------------------------ 40ba = 10ep -
        first 0, highest 0.1 at 4ba (1ep), last 0.01285 at 39ba (9.75ep)
P
LC_ALL=C.UTF-8 plot r.yaml scheduler.0.step_every=epoch scheduler.1.step_every=epoch
draws "where the locale is UTF-8 in braille; stepping by epochs shows as steps" <<'P'
learning rate        set at each epoch
    0.1│       ⢸⠉⠉⠉⠉⠉⠉⠹⠤⠤⠤⠤⠤⠤⠤⡄
       │       ⢸              ⠉⠉⠉⠉⠉⠉⠉⠧⠤⠤⠤⠤⠤⠤⡄
  0.075│       ⢸                            ⡇
       │       ⢸                            ⡇
   0.05│       ⢸                            ⡇
       │       ⢸                            ⠓⠒⠒⠒⠒⠒⠒⠲⠤⠤⠤⠤⠤⠤⢤⣀⣀⣀⣀⣀⣀⣀⡀
  0.025│       ⢸                                                  ⡇
       │       ⢸                                                  ⠧⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤
      0│⣀⣀⣀⣀⣀⣀⣀⣸
       └─ 0 ────────────────────────────────────────────────────── 40ba = 10ep ─
        first 0, highest 0.1 at 4ba (1ep), last 0.01389 at 39ba (9.75ep)
P
for i in 0 1; do
    run explain r.yaml scheduler="[{name: linear, step_every: epoch}, {name: linear}]" \
        scheduler.$i.step_every=epoch scheduler.$((1 - i)).step_every=batch --json
    # Of 40 batches 5 are done, and of the epoch that began after 4 of them one.
    says out '"set_at_each": "batch"' "of two schedules of which one steps by epochs the rate is set at each batch"
    tr -d ' \n' <out | grep -q '{"ba":5,"lr":0.07875' && tr -d ' \n' <out | grep -q '{"ba":7,"lr":0.07425'
    ok $? "each keeps its own pace"
done
LC_ALL=C.UTF-8 plot r.yaml --ascii
says out "+- 0 ---" "--ascii is stronger than the locale"
is "$(wc -L <out)" 80 "and is 80 columns wide"
TERM=linux LC_ALL=C.UTF-8 plot r.yaml
says out "+- 0 ---" "and so is a console without braille"
plot r.yaml scheduler=constant max_duration=3000000ba
says out "3,000,000ba -" "a long run is drawn too"
says out "first 0.1, last 0.1 at 2,999,999ba" "with its last update"
plot r.yaml scheduler=cosine max_duration=90sp
says out "12ba = 3ep" "a run in samples has as many batches as the trainer would take"
plot r.yaml scheduler=cosine max_duration=90s
exits 0 "a run in seconds is explained"
says out "not drawn: how many batches 90sec are is not known before the run" \
    "without the rate, and why is said"
plot r.yaml scheduler=cosine train_data='{name: fashion_mnist, path: /nowhere, batch_size: 8}'
exits 0 "so is one whose data are elsewhere"
says out "not drawn: cannot read /nowhere/" "and why is said"

run explain cosine --ascii
says out "with its defaults    set at each batch" "a schedule alone is drawn with its defaults"
says out "first 1, last 2.467e-06 at 999ba (9.99ep)" "over ten epochs of a hundred batches"
run explain step
grep -q defaults out
is $? 1 "but not where an option has none"
run explain cosine --json
says out '"curve": {' "--json has the curve"

# A key, by its name or another that it has.
run explain kernel_size
exits 0 "explain finds an option by PyTorch's name for it"
says out "conv2d, layer" "with the layer that has it"
says out "  kernel               " "under our name"
says out "max_pool2d, layer" "and the others"
run explain conv2d.kernel
is "$(grep -c ', layer' out)" 1 "or that of one component"
run explain keep
says out "recipe" "a key of a recipe is explained"
says out "  checkpoint.keep      " "with its path"
run explain checkpoint.keep --json
is "$(tr -d ' \n' <out | cut -c 1-63)" '[{"name":null,"kind":"recipe","option":{"name":"checkpoint.keep' \
    "as JSON, too"
run explain kernal_size
exits 66 "what is near to a key is no recipe"
says err "no file, component or key is called 'kernal_size' (did you mean 'kernel_size'?)" "and is said"
run explain nothing_like_it.yaml
says err "E1201: cannot read nothing_like_it.yaml" "what looks like a file is a file that is missing"

# What an initializer that is not set means.
run explain resnet50
says out "beginning    convolutions N(0, 2/fan_out), norms 1 and 0, the head U(+-1/sqrt(fan_in)), as torchvision" \
    "of a model explain says how its first weights are drawn"
run explain vit_s16 --json
says out '"beginning": "linear layers and positions N(0, 0.02^2), their biases 0' \
    "--json does so too"
run explain r.yaml
says out "beginning            linear and convolution layers U(+-1/sqrt(fan_in))" \
    "so it does of a recipe's model"
grep -q "^initializer" out
is $? 1 "where the recipe names no initializer"
# A model as a table: what each part gives, two levels deep.
run explain resnet50
grep -q '^conv1  *Conv2d  *64 x 112 x 112  *9,408 ' out
ok $? "a convolution gives channels, height and width of one sample"
is "$(sed '1,/^part/d' out | grep -c '^    *[a-z0-9]')" 0 "two levels of parts are shown"
run explain resnet50 -v
sed '1,/^part/d' out | grep -q '^    conv1  *Conv2d '
ok $? "all of them with -v"
run explain resnet50 height=64 width=128
grep -q '^conv1  *Conv2d  *64 x 32 x 64  *9,408 ' out
ok $? "of images of another height and width"
for change in height=0 width=-1 width=65537 seq_len=x height=; do
    run explain resnet50 $change
    exits 64 "$change is refused: exit 64"
    says err "$change: expected a length" "and is named"
done

run explain r.yaml model.initializer='[kaiming_normal, bn_uniform]'
says out "initializer          kaiming_normal, bn_uniform" "and those that it names"

# What is off is part of no plan.
run explain r.yaml algorithms='[mixup, label_smoothing, ema]' algorithms.label_smoothing=false
exits 0 "a recipe one of whose algorithms is off is explained"
grep -qx "algorithms           mixup, ema" out
ok $? "without it"
run explain r.yaml algorithms='[mixup]' algorithms.mixup=false
grep -qx "algorithms           none" out
ok $? "and where it was the only one there is none"

# Parameter groups: counted, with their rates, decays and schedules.
cat >groups.yaml <<'R'
max_duration: 1ep
model: {name: mlp, hidden: 16, layers: 1, num_classes: 10}
train_data: {name: synthetic_images, batch_size: 8, num_samples: 32, workers: 0}
optimizer:
  name: adamw
  lr: 0.01
  groups:
    - {match: bias, weight_decay: 0}
    - {match: weight, lr: 0.5x, scheduler: constant}
scheduler: cosine
R
run explain groups.yaml
says out "parameter groups       parameters     numbers       lr weight_decay  schedule" \
    "explain lists the groups of an optimizer"
grep "^   (the rest)\|^0  bias\|^1  " out >rows
is "$(wc -l <rows)" 3 "each, and the rest"
says rows "0  bias                         2          26     0.01            0  as the rest" \
    "with what is in it, and the optimizer's rate where it has none of its own"
says rows "0.005         0.01  constant" "or its own"
run explain groups.yaml --json
says out '"match": "bias"' "--json does so too"
says out '"parameters": 2' "with numbers"
run explain groups.yaml train_data=null
says out "0  bias                         ?           ?     0.01            0  as the rest" \
    "where the model cannot be made nothing is counted"
run train groups.yaml 'optimizer.groups.0.match=nothing'
exits 65 "a group that has no parameter is refused"
says err "optimizer.groups.0: 'nothing' fits no parameter that an earlier group does not have; there are 4, such as" \
    "with names that there are"

# What was drawn is what a run does: the rates of all 40 updates.
run train r.yaml --progress none --run_directory runs/x
exits 0 "the run that was drawn trains"
sed -n 's/.*"ev":"batch".*"lr-SGD\/group0":\([^,}]*\).*/\1/p' runs/x/metrics.jsonl >trained
run explain r.yaml --json
sed -n '/"points"/,$ s/.*"lr": \(.*\)/\1/p' out >drawn
is "$(wc -l <trained)" 40 "its 40 rates are in the metrics"
# Nine digits are kept there: half a unit of the ninth, of rates down to a tenth of 0.1.
paste trained drawn | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-9) bad = 1 } END { exit bad || NR != 40 }'
ok $? "and each is the one that --json draws"
finish
