#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Plugins: a library built with the public headers alone adds components; what is not
# allowed, not safe or not a plugin is refused before anything of it runs (RELIABILITY.md
# 7.6, section 9, R34).
. "$(dirname "$0")/cli.sh"
. "$ET_SRCDIR/t/cli/plugin.sh"

# ---- the example ----

build signs.so examples/plugin.c
ok $? "examples/plugin.c is built with the flags that pkg-config gives"
# Nothing but the headers: what it lacks is the C API's or the C library's.
nm -D --undefined-only signs.so | sed 's/.* //' | grep -v '^et_' | grep -qv '^_'
is $? 1 "and wants public functions only"
tiny r.yaml
cat >p.yaml <<'R'
include: [r.yaml]
plugins: [signs]
optimizer: {name: sign_sgd, lr: 0.01}
callbacks: {worst_loss: }
R
run validate p.yaml
exits 77 "a plugin that the user does not allow: exit 77"
says err "error E4001: p.yaml:2:11: plugins: 'signs' is not in plugins: of config.yaml" \
    "with the place that names it"
is "$(grep -c error err)" 1 "and no word of what it would have brought"
allow signs signs.so
run validate p.yaml
exits 0 "config set allows it"
run train p.yaml max_duration=8ba --progress none --run_directory runs/signs
exits 0 "a run trains with its optimizer"
says runs/signs/metrics.jsonl '"loss/train/worst"' "and its callback"
says runs/signs/metrics.jsonl '"lr-SignSGD/group0":0.01' "which have their names in metrics"
says runs/signs/recipe.resolved.yaml "name: sign_sgd" "the resolved recipe names them"
run validate runs/signs/recipe.resolved.yaml
exits 0 "and is one"
run validate p.yaml optimizer.lrr=1
exits 65 "its options are checked"
says err "unknown key 'optimizer.lrr' (did you mean 'optimizer.lr'?)" "against its table"
run validate p.yaml optimizer=sign_sdg
says err "unknown optimizer 'sign_sdg' (did you mean 'sign_sgd'?)" "and names near its own are known"
run validate r.yaml optimizer=sign_sgd
exits 65 "a recipe that does not name the plugin knows nothing of it"
run validate r.yaml 'plugins=[sings]'
says err "'sings' is not in plugins: of config.yaml (did you mean 'signs'?)" \
    "a near name is suggested"
run explain sign_sgd
says out "sign_sgd, optimizer: steps of one size" "explain shows one of its components"
says out "learning rate before the schedule" "with its options"
run explain p.yaml --json
says out '"optimizer": "sign_sgd"' "explain shows a recipe that has one"

# ---- one that is being written ----

cp signs.so work.so
"$etude" config set plugins.work "{path: $dir/work.so, develop: true}" >out 2>err
sed 's/signs/work/; /worst_loss/d' p.yaml >w.yaml
run validate w.yaml
exits 0 "a plugin under development needs no digest"
says err "plugin work is under development: $dir/work.so is loaded as it is (SHA-256 $(sha256sum <work.so | cut -c 1-12)...)" \
    "and it is said which bytes were loaded"
is "$(grep -c development err)" 1 "in one line"
printf 'x' >>work.so
run validate w.yaml
exits 0 "nor another one when it has changed"
says err "(SHA-256 $(sha256sum <work.so | cut -c 1-12)...)" "which is said of the new bytes"
run train w.yaml max_duration=2ba --progress none --run_directory runs/work
exits 0 "a run trains with it"
is "$(grep -c development err)" 1 "and says so once"
chmod 666 work.so
run validate w.yaml
exits 77 "others must not be able to write to it either"
chmod 600 work.so
ETUDE_SERVED=1 run validate w.yaml
exits 77 "what a worker starts refuses it: exit 77"
says err "$dir/work.so: a worker loads no plugin that is under development" "and says why"
ETUDE_SERVED=1 run validate p.yaml
exits 0 "but not one with a digest"

# ---- every kind ----

build kinds.so t/cli/plugin.c
ok $? "a plugin with a component of each kind builds"
allow kinds kinds.so
cat >k.yaml <<'R'
max_duration: 2ep
seed: 1
plugins: [kinds, signs]
model: test_line
train_data: {name: test_shades, batch_size: 8, transforms: [test_mirror]}
optimizer: {name: sign_sgd, lr: 0.1}
scheduler: {name: test_harmonic, power: 0.5}
algorithms: {test_count: , label_smoothing: {smoothing: 0.01}}
loggers: {test_lines: }
R
run train k.yaml --progress none --run_directory runs/kinds
exits 0 "a model, data, a transform, a schedule, an algorithm and a logger of a plugin train"
is "$(tail -n 1 runs/kinds/lines.txt)" "8 8" "and the logger saw what the algorithm counted"
run algorithms 'test*'
says out "counts the batches it sees" "algorithms lists what allowed plugins have"
run explain test_harmonic --ascii
says out "with its defaults" "explain draws a plugin's schedule"
run data ls
says out "images whose brightness is their label" "data ls lists a plugin's data"
run data inspect test_shades
says out "images     32 of 4 x 4" "and data inspect reads them"
run explain k.yaml
says out "before_forward       1  test_count" "explain has a plugin's algorithm in the timeline"

# Metrics, a loss and layers: their values are what the core's own are.
cat >u.yaml <<'R'
max_duration: 2ep
seed: 1
plugins: [kinds, signs]
model: {name: layers, layers: [conv2d: {out: 3, kernel: 3}, relu, flatten, linear: {out: 4}]}
train_data: {name: test_shades, batch_size: 8}
eval_data: {name: test_shades, batch_size: 8}
optimizer: {name: sgd, lr: 0.1}
R
value() { sed -n 's/.*"'"$(echo "$2" | sed 's|/|\\/|g')"'":\([^,}]*\).*/\1/p' "$1/metrics.jsonl" | tail -n 1; }
run train u.yaml --progress none --run_directory on/plain
run train u.yaml --progress none --run_directory on/measured 'metrics={Height_test: {shift: 1}, Loss: }' \
    'loss={name: test_scaled, scale: 1}'
exits 0 "a metric and a loss of a plugin train"
is "$(value on/measured metrics/eval/CrossEntropy)" "$(value on/plain metrics/eval/CrossEntropy)" \
    "a loss that is the core's formula gives the core's run"
height=$(value on/measured metrics/eval/Height_test)
[ -n "$height" ]
ok $? "the metric is measured on eval_data ($height)"
[ -n "$(value on/measured metrics/train/Height_test)" ]
ok $? "and of the batches that are trained on"
is "$(value on/measured metrics/eval/Loss)" "$(value on/measured metrics/eval/CrossEntropy)" \
    "a metric of the core's that the task does not have is measured, too"
run train u.yaml --progress none --run_directory on/higher metrics.Height_test.shift=0 'eval_data.metrics=[height]'
is "$(value on/higher metrics/eval/Height_test | cut -c 1-6)" "$(echo "$height" | awk '{ print $1 + 1 }' | cut -c 1-6)" \
    "its option is read"
is "$(value on/higher metrics/eval/Accuracy)" "" "an evaluator's patterns choose among all"
run train u.yaml --progress none --run_directory on/twice 'loss={name: test_scaled, scale: 2}' optimizer.lr=0.05
is "$(value on/twice metrics/eval/CrossEntropy)" "$(value on/plain metrics/eval/CrossEntropy)" \
    "a loss twice as large at half the rate is the same run"
run validate u.yaml loss=mse
exits 65 "a loss of the core's is one, too: mse does not go with classes"
run validate u.yaml loss=test_scald
says err "unknown loss 'test_scald' (did you mean 'test_scaled'?)" "a name near a plugin's loss is suggested"
run validate u.yaml 'metrics={Heigth_test: }'
says err "unknown metric 'Heigth_test' (did you mean 'Height_test'?)" "likewise of metrics"
run validate u.yaml loss=test_scaled model.loss=dice
exits 65 "two losses exclude each other"
says err "loss test_scaled excludes model.loss" "and that is said"
run train u.yaml --progress none --run_directory on/gain \
    'model.layers=[conv2d: {out: 3, kernel: 3}, test_gain: {power: 2}, relu, flatten, linear: {out: 4}]'
exits 0 "a layer of a plugin trains"
run weights ls on/gain
says out "1.weight" "and has its parameters in the model"
run validate u.yaml 'model.layers=[test_gian, flatten, linear: {out: 4}]'
exits 65 "a layer that is not there"
says err "model.layers.0.test_gian: unknown layer 'test_gian' (did you mean 'test_gain'?)" \
    "is told from one that is near"
run validate u.yaml 'model.layers=[test_gain: {power: 9}, flatten, linear: {out: 4}]'
says err "model.layers.0.test_gain.power: expected integer" "its options are checked"
for name in Height_test test_scaled test_gain; do
    run explain $name
    exits 0 "explain knows $name"
done
run explain u.yaml loss=test_scaled 'metrics={Height_test: }' --json
says out '"loss": "test_scaled"' "explain shows a recipe's loss"
says out '"Height_test"' "and its metrics"
run __complete --line "etude explain Heig"
says out "Height_test" "completion offers a plugin's metric"
run __complete --line "etude train u.yaml loss="
says out "test_scaled" "and its loss for the recipe that names it"
printf 'model: {name: layers, layers: [flatten, linear: {out: 4}]}\n' >layers.yaml
grep -v '^model' u.yaml >>layers.yaml
run __complete --line "etude train layers.yaml model.layers.0=test"
says out "test_gain" "and its layer"
run __complete --line "etude train layers.yaml model.layers.0.test_gain.po"
says out "model.layers.0.test_gain.power=" "with its options"
# Two with a component of each kind and a third: each is asked behind those before it.
build more.so t/cli/plugin.c '-DWORD="more"'
ok $? "a second plugin with components of each kind builds"
allow more more.so
run algorithms '*_count*' --json
is "$(grep -o '"name": "[a-z_]*"' out | cut -d '"' -f 4 | tr '\n' ' ')" \
    "test_count test_count_too more_count more_count_too " \
    "algorithms lists what each of two plugins has"
sed 's/test_/more_/; s/kinds/kinds, more/' k.yaml >m.yaml
run train m.yaml --progress none --run_directory runs/more
exits 0 "components of the second plugin and the third train"
run train m.yaml --progress none --run_directory runs/both --alg test_count_too
exits 0 "beside one of the first"

build fault.so t/cli/plugin.c -DLOSS_OF_ALL '-DWORD="fault"'
allow fault fault.so
run train u.yaml 'plugins=[kinds,fault]' loss=fault_scaled --progress none --run_directory on/fault
exits 65 "a loss that gives one number for all samples is refused"
says err "loss fault_scaled gives f32[], not f32 with one value or more for each of 8 samples" "and says so"

# ---- a run that goes on ----

# series RUN: what its components logged of each batch, the last line of each
series() {
    sed -nE '/"ev":"batch"/{
        s/.*"ba":([0-9]+),.*"test\/calls":([^,]+),"loss\/train\/total":([^,]+),(.*)/\1 \2 \3 \4/
        s/^(.*) .*"lr-SignSGD\/group0":([^,]+),.*"loss\/train\/worst":([^,}]+).*/\1 \2 \3/p
    }' "$1/metrics.jsonl" | awk '{ v[$1] = $0 } END { for (i = 1; i in v; i++) print v[i] }'
}
# same_end RUN: the weights of its last checkpoint and what it logged are those of on/whole
same_end() {
    cmp -s on/whole/checkpoints/step-000000000012/model-00000.safetensors \
        "$1/checkpoints/step-000000000012/model-00000.safetensors"
    ok $? "$2, with the weights of the run that nobody stopped, bit for bit"
    series "$1" >one
    series on/whole >two
    is "$(wc -l <one) $(awk 'NF != 5' one) $(diff one two | head -3)" "12  " \
        "and what it logged of each batch"
}
cat >g.yaml <<'R'
include: [k.yaml]
max_duration: 12ba
callbacks: {worst_loss: }
checkpoint: {interval: 3ba}
R
run train g.yaml --progress none --run_directory on/whole
exits 0 "a run with plugins that nobody stops"
run train g.yaml --progress none --run_directory on/named max_duration=5ba
run train g.yaml --progress none --resume on/named
exits 0 "one that was shorter goes on, by its recipe"
same_end on/named "it ends"
is "$(tail -n 1 on/named/lines.txt)" "12 12" "its algorithm has gone on counting"
run train g.yaml --progress none --run_directory on/alone max_duration=5ba
run train --resume on/alone --progress none max_duration=12ba
exits 0 "or by itself"
same_end on/alone "it ends"
# An algorithm of a plugin joins a run as the core's do.
run train k.yaml -d max_duration=100000000ba checkpoint=false --no-alg test_count --run_directory on/joined --run_name joined-one
exits 0 "a run without the plugin's algorithm"
until_true 'run algo joined-one test_count on; [ $code = 0 ]'
exits 0 "which joins it"
says out "joined-one has test_count on, after batch " "and that is said"
run kill joined-one
until_true 'grep -q "\"state\": \"killed\"" on/joined/run.json'
run train g.yaml --progress none --autoresume --run_directory on/auto max_duration=5ba
run train g.yaml --progress none --autoresume --run_directory on/auto
exits 0 "or with --autoresume"
same_end on/auto "it ends"
run train g.yaml --progress none --run_directory on/there load.path=on/whole/checkpoints/step-000000000006
exits 0 "or as a new run that begins at its checkpoint"
cmp -s on/whole/checkpoints/step-000000000012/model-00000.safetensors \
    on/there/checkpoints/step-000000000012/model-00000.safetensors
ok $? "it ends with the same weights, bit for bit"
run rerun on/whole --progress none --run_directory on/again
exits 0 "rerun trains with the plugins of the run"
same_end on/again "it ends"
cp kinds.so kept.so
printf 'x' >>kinds.so
for how in "train --resume on/auto" "train g.yaml --autoresume --run_directory on/auto" "rerun on/whole"; do
    # shellcheck disable=SC2086
    run $how max_duration=13ba
    exits 77 "$how does not go on with other bytes of a plugin: exit 77"
    says err "plugins: $dir/kinds.so: is not in plugins: of config.yaml (SHA-256 " "which is said"
    says err "etude config set plugins.kinds.sha256 '\"$(sha256sum <kinds.so | cut -d ' ' -f 1)\"'" "with the way out"
done
cp kept.so kinds.so
export PLUGIN_ONCE="$dir/once"
build once.so t/cli/plugin.c -DCRASH_ONCE
allow once once.so
run train g.yaml 'plugins=[once,signs]' --progress none --autoresume --run_directory on/once
exits 0 "one whose plugin crashed once is started again"
[ -e once ]
ok $? "since it did"
same_end on/once "it ends"
run train --resume on/auto 'plugins=[once,signs]' max_duration=13ba
exits 65 "a resume does not exchange plugins: exit 65"
says err "error E1214: plugins is [once, signs], saved run has [kinds, signs]" "and says so"
mv user/config.yaml user/kept.yaml
allow kinds kinds.so
run train --resume on/auto max_duration=13ba
exits 77 "one that the user no longer allows is refused: exit 77"
says err "'signs' is not in plugins: of config.yaml" "by its name"
mv user/kept.yaml user/config.yaml

# ---- an optimizer that keeps states of its own shapes ----

build adafactor.so examples/plugin_adafactor.c
ok $? "examples/plugin_adafactor.c builds"
allow adafactor adafactor.so
cat >a.yaml <<'R'
include: [r.yaml]
plugins: [adafactor]
model: {name: lenet}
optimizer: {name: adafactor, lr: 0.05, weight_decay: 0.001}
max_duration: 12ba
checkpoint: {interval: 4ba}
R
run train a.yaml --progress none --run_directory ada/whole
exits 0 "a convolutional network trains with it"
run train a.yaml --progress none --run_directory ada/cut max_duration=5ba
run train a.yaml --progress none --resume ada/cut
exits 0 "a run that was shorter goes on"
unlike=
for file in ada/whole/checkpoints/step-000000000012/[mo]*.safetensors; do # not state: clocks
    cmp -s "$file" "ada/cut/checkpoints/step-000000000012/${file##*/}" || unlike="$unlike $file"
done
is "$unlike" "" "to the weights and states of the whole one, bit for bit"
cat ada/cut/checkpoints/step-000000000012/*.safetensors >all
for state in exp_avg_sq_row exp_avg_sq_col exp_avg_sq; do
    says all "optimizer/$state/" "$state is saved under its name"
done

# ---- a data set with a loss and a metric that read more than its target ----

build waves.so examples/plugin_data.c
ok $? "examples/plugin_data.c builds"
allow waves waves.so
cat >w.yaml <<'R'
plugins: [waves]
model: {name: mlp, hidden: 64}
train_data: {name: waves, batch_size: 64}
eval_data: {name: waves, batch_size: 64}
loss: trusted_mse
metrics: [{WithinTolerance: {tolerance: 0.1}}]
optimizer: {name: adamw, lr: 5e-3}
scheduler: cosine
max_duration: 4ep
device: cpu
checkpoint: false
R
run validate w.yaml
exits 0 "a step of it is built without its data"
run train w.yaml --progress none --run_directory waves
exits 0 "an MLP learns its numbers"
run show waves --json
within=$(sed -n '/WithinTolerance/,/last/s/.*"last": *\([0-9.]*\).*/\1/p' out | tail -n 1)
ok "$(awk -v w="$within" 'BEGIN { print !(w > 0.5 && w <= 1) }')" \
    "and is within the tolerance for most by its metric ($within)"
run validate w.yaml loss=masked_language
exits 65 "a loss of tokens is refused"
says err "loss masked_language takes tokens, and the data's target is numbers" "in a sentence"

# ---- what is refused: nothing of it runs ----

export PLUGIN_MARK="$dir/mark"
cat >f.yaml <<'R'
include: [r.yaml]
plugins: [fault]
R
# refuses CODE E-NUMBER TEXT NAME
refuses() {
    rm -f mark
    run validate f.yaml
    exits "$1" "$4: exit $1"
    says err "error $2" "as $2"
    says err "$3" "says what is wrong"
    [ ! -e mark ]
    ok $? "and nothing of it ran"
}
cp kinds.so fault.so
allow fault fault.so
run validate f.yaml
exits 0 "the library itself is good"
[ -e mark ]
ok $? "and it is seen when one is loaded"
printf 'x' >>fault.so
refuses 77 E4001 "$dir/fault.so: is not in plugins: of config.yaml (SHA-256 " "a byte more than was allowed"
says err "etude config set plugins.fault.sha256" "and how to allow it"
cp kinds.so fault.so
chmod 666 fault.so
refuses 77 E4001 "fault.so: mode 0666, must not be group/other writable" "a file that others can write"
chmod 620 fault.so
refuses 77 E4001 "mode 0620" "or the group"
chmod 602 fault.so
refuses 77 E4001 "mode 0602" "or everybody but the group"
rm fault.so
refuses 66 E4002 "fault.so: No such file" "no file"
mkfifo fault.so
refuses 65 E4003 "fault.so: not a regular file" "a pipe"
rm fault.so
echo "not a library" >fault.so
allow fault fault.so
refuses 65 E4003 "fault.so: is no ELF file" "a text"
head -c 3000 kinds.so >fault.so
allow fault fault.so
refuses 65 E4003 "fault.so: " "a library that is cut off"
abi=$(sed -n 's/.*ET_PLUGIN_ABI = \([0-9]*\).*/\1/p' "$ET_SRCDIR/include/etude/plugin.h")
for row in "WRONG_ABI 76 E4004 built_for_plugin_ABI_$((abi + 1)),_this_is_$abi" \
    "WRONG_SIZE 65 E4003 et_plugin_says" \
    "NO_LAYOUTS 65 E4003 exports_no_et_plugin_layouts" \
    "NO_SYMBOL 65 E4003 exports_no_et_plugin" \
    "FUNCTION_SYMBOL 65 E4003 but_as_no_object"; do
    # shellcheck disable=SC2086
    set -- $row
    build fault.so t/cli/plugin.c "-D$1"
    allow fault fault.so
    refuses "$2" "$3" "$(echo "$4" | tr _ ' ' | sed 's/et plugin/et_plugin/; s/plugin layouts/plugin_layouts/')" "$1"
done

# Built with the headers of another Etude, whose lists or structs are others.
# (What a list holds is known when the library is mapped.)
build fault.so t/cli/plugin.c -DLONGER=algorithms
allow fault fault.so
run validate f.yaml
exits 76 "a plugin with a list that this Etude does not know: exit 76"
says err "error E4004: f.yaml:2:11: plugins: $dir/fault.so: et_plugin has lists that this etude does not know" \
    "with a sentence"
build fault.so t/cli/plugin.c -DLONGER=NULL
allow fault fault.so
run validate f.yaml
exits 0 "a list that this Etude does not know may be empty"
build fault.so t/cli/plugin.c -DSHORTER '-DWORD="short"'
allow fault fault.so
run data ls
says out short_shades "of an older plugin the lists that it has are read"
run algorithms 'short*'
! grep -q short_count out
ok $? "and those that it does not have are empty"
# other_headers SED: as if a struct had been changed by it
other_headers() {
    rm -rf other && mkdir other && cp -r "$ET_SRCDIR/include/etude" other/etude
    chmod -R u+w other && sed -i "$1" other/etude/nn.h
    # shellcheck disable=SC2046
    awk -f "$ET_SRCDIR/build-aux/layouts.awk" \
        $(find other/etude -name '*.h' ! -name abi.h ! -name plugin.h | sort) >other/etude/layouts.h
    build fault.so t/cli/plugin.c -Iother
    allow fault fault.so
}
own_flags=$flags
flags="-I$dir/other $flags"
other_headers 's/bool no_bias;/&/'
run validate f.yaml
exits 0 "headers with the same structs are the same headers"
other_headers '/^struct et_conv2d_options/s/$/ int64_t more;/'
refuses 76 E4004 "struct et_conv2d_options is 72 bytes there, 64 here" "a field was put into a struct"
other_headers 's/int64_t in_features, out_features; .. required/int64_t out_features, in_features; \/* required/'
refuses 76 E4004 "struct et_linear_options has other fields there than here" "two fields changed places"
flags=$own_flags
build fault.so t/cli/plugin.c -DMISSING_FUNCTION
allow fault fault.so
refuses 65 E4003 "fault.so: undefined symbol: nobody_has_this" "a function that nobody has"
build fault.so t/cli/plugin.c -DTAKEN_NAME
allow fault fault.so
run validate f.yaml
exits 65 "a name that the core has: exit 65"
says err "fault.so: algorithm 'mixup' is a name that is taken" "says which"
build fault.so t/cli/plugin.c -DNO_CLASS_SIZE
allow fault fault.so
run validate f.yaml
exits 65 "a class that a later Etude could misread: exit 65"
says err "fault.so: algorithm 'test_count' does not say the size of its class" "is said"
build fault.so t/cli/plugin.c -DTAKEN_NAME
allow fault fault.so
run algorithms
exits 0 "commands without a recipe leave a bad plugin out"
says err "plugin fault: " "and say so"
run validate f.yaml --json
says err '"code":"E4003"' "errors are JSON where --json stands"
rm -f mark
run validate r.yaml
[ ! -e mark ]
ok $? "a plugin that no recipe names is not loaded"
if [ "$(id -u)" -eq 0 ]; then
    cp kinds.so fault.so
    allow fault fault.so
    chown 12345 fault.so
    refuses 77 E4001 "fault.so: owner is uid 12345, must be you or root" "a stranger's file"
fi

# A file that is exchanged while it is checked: what is mapped is what was checked.
cp kinds.so good.so
build evil.so t/cli/plugin.c -DEXIT_AT_LOAD
cp good.so fault.so
allow fault fault.so
(
    while [ ! -e done ]; do
        cp evil.so next.so && mv next.so fault.so
        cp good.so next.so && mv next.so fault.so
        cat evil.so >fault.so
        cat good.so >fault.so
    done
) &
swapper=$!
seen=
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    run validate f.yaml
    case $code in 0 | 65 | 66 | 77) ;; *) seen="$seen $code" ;; esac
done
touch done
wait $swapper
is "$seen" "" "in twenty tries beside a file that changes, the other one never runs"

# ---- what fails later is named ----

# fails FLAG TEXT NAME: k.yaml with that plugin
fails() {
    rm -rf runs/f fault.so
    build fault.so t/cli/plugin.c "-D$1"
    allow fault fault.so
    run train k.yaml 'plugins=[fault,signs]' --progress none --run_directory runs/f
    exits 1 "$3: exit 1"
    says err "error E4005: plugin $dir/fault.so $2" "and the plugin is named"
}
fails CRASH_IN_CALL "crashed (SIGSEGV), rank 0, step 2" "a crash in a call"
fails CRASH_IN_WORKER "crashed (SIGSEGV), rank 0, step " "a crash in a loader's thread"
fails EXIT_IN_CALL "ended the program, rank 0, step 2" "exit(0) in a call"
says runs/f/run.json '"state": "failed"' "and the run did not finish"
build fault.so t/cli/plugin.c -DCRASH_AT_LOAD
allow fault fault.so
run validate f.yaml
exits 1 "a crash as it is loaded: exit 1"
says err "error E4005: plugin fault crashed (SIGABRT) while it was loaded" "and the plugin is named"
build fault.so t/cli/plugin.c -DEXIT_AT_LOAD
allow fault fault.so
run validate f.yaml
exits 1 "exit(0) as it is loaded: exit 1"
says err "error E4005: plugin fault ended the program while it was loaded" "named likewise"
finish
