#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Passes of plugins, which order the training methods of a recipe.
. "$(dirname "$0")/cli.sh"
export ETUDE_CONFIG_DIR="$dir/user"
cc=${CC:-cc}
command -v "${cc%% *}" >/dev/null || { echo "1..0 # SKIP no compiler"; exit 0; }
# build NAME SOURCE: a plugin, which is then allowed
build() {
    $cc -Wall -Wextra -Werror -shared -fPIC "-I$ET_SRCDIR/include" "-I$ET_BUILDDIR/include" \
        -o "$1.so" "$2" >out 2>err || return 1
    "$etude" config set "plugins.$1" \
        "{path: $dir/$1.so, sha256: '$(sha256sum <"$1.so" | cut -d ' ' -f 1)'}" >out 2>err
}
says() {
    grep -qF -- "$2" "$1"
    ok $? "$3"
}
build by_name "$ET_SRCDIR/examples/plugin_pass.c"
ok $? 'examples/plugin_pass.c is built from the headers alone'
cat >r.yaml <<'R'
max_duration: 4ba
seed: 3
model: {name: resnet8, num_classes: 10}
train_data: {name: synthetic_images, batch_size: 8, num_samples: 32, workers: 0}
optimizer: {name: sgd, lr: 0.1}
loggers: {jsonl: }
R
one='mixup: {alpha: 0.3}, colout: {}, cutout: {}'
other='cutout: {}, mixup: {alpha: 0.3}, colout: {}'
run explain r.yaml "algorithms={$one}"
cp out plain
run explain r.yaml 'plugins=[by_name]' "algorithms={$one}"
exits 0 'a recipe that names the plugin is explained'
says out "by a plugin's pass" 'with what the pass has moved'
grep -q "by a plugin's pass" plain
is $? 1 'which is nothing where the recipe does not name it'
sed "s/^loggers.*/plugins: [by_name]/; \$a algorithms: {$one}" r.yaml >compose.yaml
run --ascii compose compose.yaml --dump-screen 200x50
acts=$(sed -n 's/.*AFTER_DATALOADER//p' out)
sed '/^plugins/d' compose.yaml >alone.yaml
run --ascii compose alone.yaml --dump-screen 200x50
exits 0 'Compose shows who acts at which event'
[ -n "$acts" ] && [ "$acts" != "$(sed -n 's/.*AFTER_DATALOADER//p' out)" ]
ok $? 'in the order that the pass makes'
# losses DIRECTORY
losses() {
    sed -nE 's|.*"ev":"batch".*"loss/train/total":([^,}]*).*|\1|p' "$1/metrics.jsonl"
}
i=0
for list in "$one" "$other"; do
    i=$((i + 1))
    run train r.yaml "algorithms={$list}" 'plugins=[by_name]' --progress none --run_directory "with$i"
    exits 0 "recipe $i trains with the pass"
    run train r.yaml "algorithms={$list}" --progress none --run_directory "without$i"
    exits 0 'and without'
done
is "$(losses with1)" "$(losses with2)" 'two recipes with the same methods are the same run'
[ -n "$(losses with1)" ] && [ "$(losses without1)" != "$(losses without2)" ]
ok $? 'which they are not without it'

# ---- passes that are wrong ----

# wrong NAME FIELDS: a plugin with such a pass
wrong() {
    cat >"$1.c" <<C
#include <etude/etude.h>
static void drop(struct et_algorithm **list, int n, enum et_event event)
{
    (void)event;
    list[0] = list[n - 1];
}
static void keep(struct et_algorithm **list, int n, enum et_event event)
{
    (void)list, (void)n, (void)event;
}
static const struct et_pass a = {$2}, b = {.name = "other", .summary = "s", .run = drop};
static const struct et_pass *const passes[] = {&a, NULL};
const void *used[] = {&b, (void *)keep, (void *)drop};
ET_PLUGIN(.passes = passes)
C
    build "$1" "$1.c" || { cat err; return 1; }
    run train r.yaml "algorithms={$one}" "plugins=[$1]" --progress none --run_directory "$1"
}
wrong thief '.name = "thief", .summary = "s", .run = drop'
[ "$code" != 0 ]
ok $? 'a pass that loses an algorithm ends the run'
says err "pass 'thief' has dropped an algorithm or added one at " 'and is named'
wrong nowhere '.name = "nowhere", .summary = "s", .run = keep, .after = "nobody"'
[ "$code" != 0 ]
ok $? 'one behind a pass that is not there is refused'
says err "pass 'nowhere' comes behind 'nobody', and no pass is called that" 'with both names'
wrong capital '.name = "Capital", .summary = "s", .run = keep'
exits 65 'a name that is none is refused as the plugin is loaded'
says err "pass 'Capital' is no name: a-z, 0-9 and _" 'which is said'
wrong empty '.name = "empty", .summary = "s"'
exits 65 'a pass without a function is refused'
says err "pass 'empty' lacks a function or summary" 'likewise'
build twin "$ET_SRCDIR/examples/plugin_pass.c"
run validate r.yaml 'plugins=[by_name, twin]'
exits 65 'a name that another plugin has is refused'
says err "pass 'by_name' is a name that is taken" 'likewise'
finish
