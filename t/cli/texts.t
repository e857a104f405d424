#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What commands that only look print, letter for letter.
. "$(dirname "$0")/cli.sh"
. "$ET_SRCDIR/t/cli/prints.sh"

# ---- runs ----

"$ET_BUILDDIR/t/tui/rivals" || { echo "Bail out! no runs"; exit 99; }
for name in calm-heron early-mole brisk-otter grim-toad; do
    prints "show-$name" "show says of $name what is known of it" show "$name"
done
sed -i 's/"pid": 1/"exit_code": 75, "ended": 1763700000, "rested": 3600, "reason": "SIGTERM", "device": "cpu", "pid": 1/' \
    runs/fond-lynx/run.json
echo 'precision: fp32' >>runs/fond-lynx/recipe.resolved.yaml
prints show-more "what there is more of a run has its lines" show runs/fond-lynx
prints show-json "in JSON as well" show calm-heron --json
prints runs "runs lists them" runs
prints runs-filter "those that pass a filter" runs 'state=finished' 'optimizer.lr<2.2'
prints runs-sort "in any order" runs --sort=-Accuracy --limit 3
prints runs-json "with all facts in JSON" runs --json --sort name --limit 2
prints compare "compare says what differs and who was better" \
    compare calm-heron base-r50 early-mole fond-lynx
prints compare-target "by when they were at a target" \
    compare calm-heron base-r50 early-mole --target 'accuracy>=.765' --pareto samples
prints compare-json "in JSON, with the front" \
    compare calm-heron base-r50 early-mole --target 'accuracy>=.765' --pareto time --json
prints compare-energy "and by what they drew" \
    compare calm-heron base-r50 early-mole --target 'accuracy>=.765' --pareto energy
most=20
for format in csv jsonl; do
    prints "export-$format" "export --to $format has what was recorded" \
        export grim-toad --to $format --metrics 'loss|eval'
done
most=125
"$ET_BUILDDIR/t/tui/example" otter 700
prints logs "logs prints the lines of a rank" logs otter --rank 3
prints logs-warn "those of a level" logs otter --rank 5 --level warn
prints logs-json "in JSON with their parts" logs otter --rank 5 --json

# ---- components and recipes ----

for name in ema cosine_with_warmup adamw fashion_mnist \
    early_stopper csv; do
    prints "explain-$name" "explain says what $name is, and what may be set" --ascii explain $name
done
prints explain-json "in JSON as well" explain multistep_with_warmup --json
prints algorithms "algorithms lists what fits a pattern" algorithms 's*'
prints algorithms-json "in JSON with their events" algorithms label --json
prints data-ls "data ls lists datasets" data ls
cat >r.yaml <<'R'
max_duration: 3ep
seed: 3
model: {name: mlp, hidden: 16, layers: 1}
train_data: {name: synthetic_images, batch_size: 8, num_samples: 40, workers: 0}
eval_data: {name: synthetic_images, num_samples: 16, workers: 0}
optimizer: {name: sgd, lr: 0.1, momentum: 0.5}
scheduler: [{name: multistep, milestones: [1ep, 2ep], gamma: 0.5}]
algorithms: {label_smoothing: {smoothing: 0.1}, mixup: false, ema: {half_life: 4ba}}
callbacks: {lr_monitor: false}
R
prints explain-recipe "explain says who acts when in a recipe, and draws its rate" --ascii explain r.yaml
prints explain-recipe-json "in JSON with each point" explain r.yaml --json
prints explain-origin "and where each value is from" explain r.yaml optimizer.lr=0.2 --origin
prints explain-origin-json "in JSON by path" explain r.yaml --unset seed --origin --json
prints explain-restarts "and one that changes within a column has all of its range there" \
    --ascii explain r.yaml max_duration=200ep 'scheduler={name: cosine_warm_restarts, t_0: 50ba, t_mult: 2}'
prints explain-seconds "a rate that follows no batches is not drawn" --ascii explain r.yaml max_duration=90s
prints inspect-images "data inspect says what images there are" \
    data inspect synthetic_images num_samples=30 num_unique=3 channels=2 num_classes=4
prints inspect-images-json "in JSON as well" \
    data inspect synthetic_images num_samples=30 num_unique=3 channels=2 num_classes=4 --json
printf 'in the beginning was the word, and the word' >w.txt
prints inspect-tokens "and what tokens" data inspect text_bytes path=w.txt seq_len=8
prints inspect-tokens-json "in JSON as well" data inspect text_bytes path=w.txt seq_len=8 --json
npy() { # FILE TYPE SHAPE: an array of what is read
    perl -e 'my ($type, $shape) = @ARGV; @ARGV = (); binmode STDIN; binmode STDOUT; local $/;
        my $head = "{\x27descr\x27: \x27$type\x27, \x27fortran_order\x27: False, \x27shape\x27: $shape, }";
        $head .= " " x (63 - (10 + length $head) % 64) . "\n";
        print "\x93NUMPY\x01\x00", pack("v", length $head), $head, <STDIN>' "$2" "$3" >"$1"
}
mkdir sides
perl -e 'binmode STDOUT; print pack "C*", map { $_ * 40 } 1 .. 6, 0 .. 5' | npy sides/x.npy '|u1' '(2, 2, 3)'
printf '\001\000' | npy sides/y.npy '|u1' '(2,)'
for how in "" --json; do
    prints "inspect-sides${how#-}" "images may be wider than high${how:+, in JSON as well}" data inspect npy path=sides $how
done
perl -e 'binmode STDOUT; print pack "f<*", 1.5, 2.5, 3.5, 4.5' | npy sides/y.npy '<f4' '(2, 2)'
prints inspect-numbers "and have several numbers to learn" data inspect npy path=sides
printf 'size,town,tea\n1,U,yes\n3,A,no\n5,U,yes\n9,B,no\n' >rows.csv
printf 'label\tsentence\nlong\tin the beginning\nshort\tgo\n' >rows.tsv
for how in "" --json; do
    prints "inspect-samples${how#-}" "samples that are neither have their fields${how:+, in JSON as well}" \
        data inspect table path=rows.csv categorical='[town]' test_fraction=0 $how
    prints "inspect-labelled${how#-}" "those of texts, too${how:+, in JSON as well}" \
        data inspect labelled_text path=rows.tsv tokenizer=bytes seq_len=8 $how
    prints "data-show${how#-}" "data show shows numbers${how:+, in JSON as well}" \
        data show table path=rows.csv categorical='[town]' test_fraction=0 --limit 2 --from 2 $how
    prints "data-show-labelled${how#-}" "and texts with what pads them${how:+, in JSON as well}" \
        data show labelled_text path=rows.tsv tokenizer=bytes seq_len=8 pad_to_multiple=4 $how
done
prints validate "validate says what is wrong, with its place" validate r.yaml optimizer.lrr=1 seed=x
prints validate-json "in JSON, one fault a line" validate r.yaml optimizer.lrr=1 --json

most=20
prints data-ls-json "data ls lists datasets and their options in JSON" data ls --json
prints config-json "config get has origins in JSON" config get --json
prints recipes "recipes lists those of a folder" recipes
cat >long.yaml <<R
max_duration: 1ba
model: {name: gpt2, n_layers: 1, d_model: 8, n_heads: 2, max_seq_len: 8, vocab_size: 256}
train_data: {name: text_bytes, path: w.txt, seq_len: 8, batch_size: 2}
optimizer: {name: adamw, lr: 0.001}
R
run estimate long.yaml --json
is "$(tr -d ' \n' <out | grep -o '"data":.*"train"')" \
    '"data":[{"name":"text_bytes","tokens":39,"vocab_size":256}],"train"' "estimate says what data there are"

# ---- weights ----

run train r.yaml -q --run_directory trained --run_name fond-newt --alg 'ema(half_life=2ba)' max_duration=2ba
exits 0 "a run to look into"
most=40
prints weights-convert "weights convert says what it wrote" weights convert trained -o x.safetensors
prints weights-convert-json "in JSON as well" weights convert trained -o y.safetensors --dtype bf16 --json
prints weights-ls "weights ls lists the tensors of files" weights ls x.safetensors y.safetensors
prints weights-ls-json "in JSON as well" weights ls x.safetensors --json
prints weights-diff "files that are the same do not differ" weights diff y.safetensors y.safetensors
run weights ls trained --json
is "$(tr -d ' \n' <out | grep -o '"checkpoint":{[^}]*}')" \
    '"checkpoint":{"label":"ep0-ba2","ep":0,"ba":2,"run":"fond-newt","weights_only":false}' "a checkpoint says whose it is"
run weights diff x.safetensors y.safetensors --json
is "$(tr -d ' \n' <out | grep -o '"name":"fc.bias".*"shape":\[\[10\],\[10\]\]' | cut -c 1-60)" \
    '"name":"fc.bias","dtype":["f32","bf16"],"shape":[[10],[10]]' "what differs says in which type"
most=20

# ---- what is refused ----

# Each line is a command's words; what it says and how it ends stand below it in the file.
while read -r words; do
    eval "run $words"
    echo "\$ etude $words"
    sed 's/^/  /' err
    echo "  exit $code"
done >all <<'R'
frobnicate
-Z runs
--color sometimes runs
--progress maybe train r.yaml
--log-level loud runs
runs --sortt name
runs --limit
runs --limit x
runs --limit 1x
runs --limit=-1
runs --reindex=yes
algorithms a b
algorithms nothing
attach a b
annotate calm-heron
compare calm-heron
compare calm-heron nobody
compare calm-heron base-r50 --pareto speed
compare calm-heron base-r50 --pareto cost
compare calm-heron base-r50 --target Accuracy
compare calm-heron base-r50 --target 'nothing>=1'
completion
completion tcsh
compose a b
config
config get colour
config set color
config set color blue
data
data inspect
data inspect nothing
data inspect mnist
data inspect synthetic_images colour=1
data prepare
estimate
estimate nothing.yaml
explain
explain nothing
export calm-heron
export calm-heron --to cvs
export calm-heron --to csv --metrics '['
export nobody --to csv
help a b
help frobnicate
logs
logs a b
logs calm-heron
logs otter --rank 9
recipes a b
recipes nothing
recipes --copy .
rerun
rerun nobody
show
show a b
show nobody
stop
stop nobody
stop calm-heron
set calm-heron
set calm-heron lr
algo calm-heron ema
algo calm-heron ema maybe
loglevel calm-heron
loglevel calm-heron loud
train
train nothing.yaml
train r.yaml -n 0
train r.yaml --world_size 2 --dry-run
train r.yaml --every 0s
train r.yaml --timeout soon
validate
validate nothing.yaml
validate r.yaml parallel.zero=1
validate r.yaml precision=amp_fp8
weights
weights frobnicate
weights ls
weights ls nothing
weights diff a
weights convert a
worker
worker frobnicate
worker add x
worker remove x
worker test x
sweep r.yaml
R
sed "s|$dir|DIR|g" all >got
[ -z "${ETUDE_UPDATE:-}" ] || cp got "$texts/refusals.txt"
diff "$texts/refusals.txt" got >out
ok $? "each refusal is a sentence, with what helps and an exit code of its own"

# ---- how a line may go on ----

# Likewise each is a line as it is typed, up to the cursor.
mkdir -p sub user
printf 'lab-a: {address: "ssh://lab-a"}\nlab-b: {address: "ssh://b"}\n' >user/workers.yaml
while read -r line; do
    ETUDE_CONFIG_DIR=$dir/user run __complete --line "${line%\"}"
    echo "\$ $line"
    cut -f1 out | sed 's/^/  /'
done >all <<'R'
etude "
etude --
etude w
etude --color "
etude --color=n
etude --log-level=
etude train "
etude train -m f
etude train --a
etude train --alg s
etude train --no-alg e
etude train --on l
etude train --resume "
etude train --unset checkpoint.
etude train r.yaml check
etude train r.yaml checkpoint.
etude train r.yaml checkpoint.on_failure=
etude train r.yaml train_data.
etude train r.yaml train_data.name=s
etude train r.yaml train_data.path=
etude train r.yaml optimizer.nesterov=
etude train r.yaml scheduler.0.
etude train r.yaml algorithms.
etude train r.yaml algorithms.ema.
etude train r.yaml algorithms.ema.half_life=
etude train r.yaml precision=
etude train r.yaml nonfinite.action=
etude train r.yaml load.path=
etude train r.yaml model.name=res
etude train r.yaml optimizer.lr=
etude -C sub train r.yaml see
etude r.yaml see
etude validate r.yaml r
etude data inspect text_bytes "
etude data inspect text_bytes split=
etude explain cosine
etude algorithms s
etude show "
etude compare calm-heron "
etude compare calm-heron base-r50 d
etude logs --rank "
etude export calm-heron --to "
etude export calm-heron -o "
etude set calm-heron "
etude set calm-heron optimizer.lr=
etude algo calm-heron e
etude algo calm-heron ema "
etude loglevel calm-heron "
etude worker "
etude worker test "
etude worker add x "
etude worker allow KEY "
etude config set "
etude config set color "
etude help t
etude runs --sort "
etude weights diff calm-heron "
etude weights convert "
etude stop calm
etude recipes s
R
sed "s|$dir|DIR|g" all >got
[ -z "${ETUDE_UPDATE:-}" ] || cp got "$texts/completions.txt"
diff "$texts/completions.txt" got >out
ok $? "a line goes on as its command says"

# ---- the program ----

prints help "help lists the commands" help
prints help-runs "help runs says all about it" help runs
prints config "config get lists what is set" config get
finish
