#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `etude sweep`: which runs it makes, in what order it puts them, halving, and that it goes
# on from where it was ended; `etude train --until`.
. "$(dirname "$0")/cli.sh"
cat >s.yaml <<'R'
max_duration: 9ep
seed: 3
model: {name: mlp, hidden: 32, layers: 1}
train_data: {name: synthetic_images, type: separable, num_samples: 320, num_unique: 320,
  resolution: 8, channels: 1, batch_size: 16, workers: 0}
eval_data: {name: synthetic_images, type: separable, num_samples: 32, num_unique: 32,
  resolution: 8, channels: 1, workers: 0}
optimizer: {name: adamw, lr: 0.01}
scheduler: cosine
R

# ---- --until

run train s.yaml --run_name whole -q
run train s.yaml --run_name parts --until 2ep -q
exits 75 "--until ends a run early: exit 75"
says err 'rank 0: --until 2ep: stopped after batch 41, and saved' "which says so"
run train --resume parts --until 0.5dur -q
exits 75 "it goes on to another time"
run train --resume parts -q
exits 0 "and to its end"
last() { run show "$1"; sed -n 's|^  loss/train/total  *\([0-9.]*\) .*|\1|p' out; }
is "$(last parts)" "$(last whole)" "with the loss of one that never stopped"
run train s.yaml --until 5sec
exits 64 "of seconds it is refused: exit 64"
says err '--until 5sec: expected a time after the beginning' "by its value"

# ---- which runs

run sweep s.yaml --dry-run optimizer.lr=0.1,0.3 'train_data.transforms=[horizontal_flip,vertical_flip],[]' seed=5 --alg ema
exits 0 "a sweep is planned"
is "$(cat out)" "s-01  optimizer.lr=0.1 train_data.transforms=[horizontal_flip,vertical_flip]
s-02  optimizer.lr=0.1 train_data.transforms=[]
s-03  optimizer.lr=0.3 train_data.transforms=[horizontal_flip,vertical_flip]
s-04  optimizer.lr=0.3 train_data.transforms=[]" "every combination, the last key first; brackets hold a list together"
run sweep s.yaml --dry-run optimizer.lr=1e-3..1:log model.hidden=4..9 --random 20 --seed 5
exits 0 "runs can be drawn"
is "$(wc -l <out | tr -d ' ')" 20 "as many as one likes"
is "$(awk '{ split($2, a, "="); split($3, b, "=")
    if (a[2] < 1e-3 || a[2] > 1 || b[2] !~ /^[4-9]$/) bad++; low += a[2] < .03162; nine += b[2] == 9 }
    END { print bad + 0, (low > 4 && low < 16), (nine > 0) }' out)" "0 1 1" \
    "from ranges: even in the logarithm, integers to the last"
cp out first
run sweep s.yaml --dry-run optimizer.lr=1e-3..1:log model.hidden=4..9 --random 20 --seed 5
is "$(cmp out first && echo same)" same "the same for a seed"
run sweep s.yaml --dry-run optimizer.lr=0.1,0.2,0.3 --random 9
is "$(sort -u -k 2 out | wc -l | tr -d ' ')" 3 "of lists none is drawn twice"
printf 'seed\n' >bad
printf 'optimizer.lr=0.1 seed=4\n# not this\n\nmodel.hidden=8\n' >list
run sweep s.yaml --dry-run --list list
is "$(cat out)" "s-01  optimizer.lr=0.1 seed=4
s-02  model.hidden=8" "or those of a file"

sed 's/^seed: 3/algorithms: {ema: {half_life: 20ba}, label_smoothing: , mixup: false}/' s.yaml >three.yaml
run sweep three.yaml --leave-one-out seed=1,2 --alg 'cutout(num_holes=1)' --dry-run
exits 0 "--leave-one-out"
is "$(cat out)" "three-01  seed=1
three-02  seed=2
three-03  algorithms.ema=false seed=1
three-04  algorithms.ema=false seed=2
three-05  algorithms.label_smoothing=false seed=1
three-06  algorithms.label_smoothing=false seed=2
three-07  algorithms.cutout=false seed=1
three-08  algorithms.cutout=false seed=2" "has the recipe, and it without each algorithm that is on"

# What a recipe names lies in another folder than the recipe.
mkdir there
sed 's/^seed: 3/include: rest.yaml/' s.yaml >r.yaml
echo 'seed: 11' >there/rest.yaml
run sweep r.yaml --recipe-folder there optimizer.lr=0.1,0.2 max_duration=2ba --run_name folder
exits 0 "--recipe-folder is for its runs, too"
is "$(grep -c '^seed: 11' runs/folder-01/recipe.resolved.yaml)" 1 "which read what lies there"
rm -r runs/folder*

# ---- what is refused

refuse() {
    what=$1 code=$2 words=$3
    shift 3
    run sweep "$@"
    exits "$code" "$what: exit $code"
    says err "$words" "which says so"
}
refuse "nothing that differs" 64 'nothing differs: give a key several values' s.yaml seed=3
refuse "a range without --random" 64 '1..2 is a range, which has no list of values' s.yaml seed=1..2
refuse "a range that goes down" 64 'seed=2..1: a range goes up' s.yaml seed=2..1 --random 3
refuse "a bad value in one run" 65 'in s-02: optimizer.lr=x' s.yaml optimizer.lr=1,x
refuse "a bad key" 65 "in s-01: optimizer.rl=1" s.yaml optimizer.rl=1,2
refuse "nothing to leave out" 64 '--leave-one-out: the recipe has no algorithms' s.yaml --leave-one-out
refuse "two ways to differ" 64 '--list has what differs, without --leave-one-out' three.yaml --leave-one-out --list list
refuse "a word in a list that is no setting" 64 "bad:1: 'seed' is not key=value" s.yaml --list bad
refuse "too many" 64 'combinations, and a sweep has at most 1000 runs' s.yaml \
    seed=1,2,3,4,5,6,7,8,9,10,11 optimizer.lr=1,2,3,4,5,6,7,8,9,10 model.hidden=1,2,3,4,5,6,7,8,9,10
refuse "no jobs" 64 "--jobs: expected 1 to 64, got '0'" s.yaml seed=1,2 -j 0
refuse "a sweep that there is not" 66 'runs/nobody.sweep is no sweep that was begun' --resume nobody
# A whole plan, in which all values differ.
cp s.yaml my.own.yaml
run sweep my.own.yaml --dry-run --json --halving 2 --metric 'loss/train/total' --recipe-folder . \
    model.layers=1,2 seed=7 --unset scheduler --alg 'ema(half_life=2ba)' --no-alg mixup model.hidden=8,16
exits 0 "a plan as JSON"
tr -d '\n' >want <<'J'
{"sweep":"my","recipe":"my.own.yaml","module":false,
"words":["seed=7","--unset","scheduler","--alg","ema(half_life=2ba)","--no-alg","mixup"],
"keys":["model.layers","model.hidden"],
"halving":2,"runs":[{"set":["model.layers=1","model.hidden=8"],"rung":0,"name":"my-01"},
{"set":["model.layers=1","model.hidden=16"],"rung":0,"name":"my-02"},
{"set":["model.layers=2","model.hidden=8"],"rung":0,"name":"my-03"},
{"set":["model.layers=2","model.hidden=16"],"rung":0,"name":"my-04"}],
"folder":".","metric":"loss/train/total"}
J
is "$(tr -d ' \n' <out)" "$(cat want)" \
    "a sweep's plan has what all runs share, what differs, and where recipes lie"
rm my.own.yaml

# plans WANT ARGS...: the settings of each run that the sweep plans
plans() {
    want=$1
    shift
    run sweep s.yaml --dry-run "$@"
    is "$(sed 's/^[^ ]*  //' out | tr '\n' '|')" "$want" "sweep $*"
}
plans "load.path='a, b'|load.path=c|" "load.path='a, b',c"
plans 'load.path="a]"|load.path=b|' 'load.path="a]",b'
plans 'load.path="a[b"|load.path=c|' 'load.path="a[b",c'
plans 'eval_data={name: text_bytes, path: s.yaml, seq_len: 8}|eval_data=[]|' \
    'eval_data={name: text_bytes, path: s.yaml, seq_len: 8},[]'
printf 'seed=1  model.hidden=8 # seed=3\r\n#\nseed=2' >two
plans "seed=1 model.hidden=8|seed=2|" --list two
run sweep s.yaml --dry-run "seed=$(seq -s , 1 99)"
is "$(tail -n 1 out)" "s-99  seed=99" "a sweep of 99 runs numbers them with two digits"
run sweep s.yaml --dry-run "seed=$(seq -s , 1 100)"
is "$(sed -n '1p;100p' out | tr '\n' '|')" "s-001  seed=1|s-100  seed=100|" "a sweep of 100 runs numbers them with three digits"
refuse "a range of one value" 64 'seed=2..2: a range goes up' s.yaml seed=2..2 --random 3 --dry-run
refuse "a logarithmic range that begins at 0" 64 'optimizer.lr=0..1:log: a range goes up, from above 0' s.yaml optimizer.lr=0..1:log --random 3 --dry-run
refuse "fewer than one random run" 64 "--random: expected 1 to 1000, got '0'" s.yaml seed=1,2 --random 0 --dry-run
refuse "more than a thousand random runs" 64 "--random: expected 1 to 1000, got '1001'" s.yaml seed=1..2000 --random 1001 --dry-run
refuse "a number of random runs with a letter behind it" 64 "--random: expected 1 to 1000, got '3x'" s.yaml seed=1,2 --random 3x --dry-run
refuse "halving by one" 64 "--halving: expected 2 to 1000, got '1'" s.yaml seed=1,2 --halving 1 --dry-run
refuse "a seed that is too large" 64 "--seed: expected 0 to 4294967295, got '4294967296'" s.yaml seed=1,2 --random 2 --seed 4294967296 --dry-run
refuse "a number of jobs with a letter behind it" 64 "--jobs: expected 1 to 64, got '2x'" s.yaml seed=1,2 -j 2x --dry-run
refuse "more jobs than 64" 64 "--jobs: expected 1 to 64, got '65'" s.yaml seed=1,2 -j 65 --dry-run
printf '# nothing\n\n' >none
refuse "a list without settings" 64 '--list none has no settings' s.yaml --list none --dry-run
refuse "a list beside a key with several values" 64 '--list has what differs, so seed has one value' s.yaml --list two seed=1,2 --dry-run
# A list of a thousand settings, and one of a thousand and one.
seq 1 1000 | sed 's/^/seed=/' >thousand
{ cat thousand; echo seed=0; } >more
refuse "a list of more than a thousand runs" 64 '--list more: more than 1000 runs' s.yaml --list more --dry-run
run sweep s.yaml --dry-run optimizer.lr=1..1000:log model.hidden=8..512:log --random 200 --seed 9
is "$(awk '{ split($2, a, "="); split($3, b, "=")
    if (a[2] !~ /^[0-9]+$/ || a[2] < 1 || a[2] > 1000 || b[2] !~ /^[0-9]+$/) bad++
    low += a[2] < 31.6; half += b[2] < 64 }
    END { print bad + 0, (low > 80 && low < 120), (half > 80 && half < 120) }' out)" "0 1 1" \
    "--random draws whole numbers evenly over the logarithm of a range"
run sweep s.yaml --dry-run optimizer.lr=0.5..1.5 --random 200
is "$(awk '{ split($2, a, "="); if (a[2] < .5 || a[2] > 1.5) bad++; low += a[2] < 1 }
    END { print bad + 0, (low > 80 && low < 120), NR }' out)" "0 1 200" "--random draws fractions evenly over the whole of a range"
cp out first
run sweep s.yaml --dry-run optimizer.lr=0.5..1.5 --random 200 --seed 17
is "$(cmp out first && echo same)" same "--random draws with the seed 17 where none is given"
run sweep s.yaml --dry-run optimizer.lr=0.5..1.5 --random 200 --seed 18
is "$(cmp -s out first || echo others)" others "--random draws other values with another seed"
printf 'optimizer={name: sgd, lr: 1}\noptimizer.lr=0.1 seed=1\noptimizer.lr=0.2\n' >keys
run sweep s.yaml --dry-run --json --list keys
is "$(tr -d ' \n' <out | sed 's/.*"keys":\(\[[^]]*\]\).*/\1/')" '["optimizer","optimizer.lr","seed"]' "each key has a column, also one that begins like another"
# More settings in a line than the command has words, and more combinations than 2^63.
seq -s ' ' -f 'seed=%.0f' 232 >wide
run sweep s.yaml --dry-run --list wide
exits 0 "a run may have 232 settings from a list"
{ cat wide; echo seed=1; } | tr '\n' ' ' >wider
refuse "more settings than a run takes" 64 's-01 has 233 settings, and a run of a sweep at most 232' s.yaml --list wider --dry-run
run sweep three.yaml --leave-one-out --run_name other --dry-run
is "$(sed -n '1s/  *$//p;$p' out | tr '\n' '|')" "other-01|other-03  algorithms.label_smoothing=false|" \
    "--leave-one-out takes a name"
ten=0,1,2,3,4,5,6,7,8,9
many=$(i=0; while [ $i -lt 19 ]; do i=$((i + 1)); printf 'loggers.file.filename%s=%s ' "$i" $ten; done)
# shellcheck disable=SC2086
run sweep s.yaml --dry-run $many
says err 'combinations, and a sweep has at most 1000 runs' "10^19 combinations are too many"
rungs() {
    want=$1
    shift
    run sweep s.yaml --dry-run "$@"
    is "$(grep '^to ' out | tr '\n' '|')" "$want" "sweep plans the rungs of $*"
}
rungs "" --halving 4 seed=1,2,3
rungs "to 3ep: all of 4, then 1|" --halving 4 seed=1,2,3,4
rungs "to 0.25dur: all of 5, then 2|to 0.5dur: all of 2, then 1|" --halving 2 seed=1,2,3,4,5 max_duration=90ba
rungs "to 2ep: all of 4, then 2|to 4ep: all of 2, then 1|" --halving 2 seed=1,2,3,4 max_duration=7ep
test ! -e runs/s.sweep
ok $? "none of these began"

# ---- a sweep

run sweep s.yaml optimizer.lr=0.00001,0.01,1e38 -j 2
exits 0 "a sweep runs"
is "$(awk 'NR > 1 { print $1 }' out)" "s-02
s-01
s-03" "the best comes first, what diverged last"
run sweep s.yaml optimizer.lr=0.1,0.2
exits 64 "a second of that name: exit 64"
says err 'etude sweep --resume s goes on with it' "which says the way on"
run sweep --resume s --json
exits 0 "what is done is not done again"
is "$(grep -c '"best": [0-9]' out) $(grep -c '"state": "finished"' out) $(grep -c '"state": "diverged"' out)" \
    "2 2 1" "as JSON"

# The results of runs that ended in every way, each with numbers of its own.
for i in 1 2 3 4 6; do
    case $i in 1) from=1 ;; 4) from=3 ;; *) from=2 ;; esac
    cp -R runs/s-0$from runs/t-0$i
    sed -i 's/"train_seconds": [0-9.e-]*/"train_seconds": '$i.5/ runs/t-0$i/report.json
done
sed -i 's/"state": "finished"/"state": "preempted"/' runs/t-02/run.json
cat >runs/t.sweep <<'J'
{"sweep":"t","recipe":"s.yaml","module":false,"words":[],"keys":["optimizer","optimizer.lr","seed"],"halving":2,"runs":[
{"name":"t-01","set":["optimizer.lr=0.1","seed=4"],"rung":3},
{"name":"t-02","set":["optimizer.lr=0.2"],"rung":1,"out":true},
{"name":"t-03","set":["optimizer={name: sgd, lr: 0.3}"],"rung":2,"out":true,"failed":true},
{"name":"t-04","set":["seed=5"],"rung":0,"out":true},
{"name":"t-05","set":[],"rung":0,"out":true},
{"name":"t-06","set":["seed=6"],"rung":1,"out":true}]}
J
best() {
    sed -n 's|.*"metrics/eval/Accuracy":\([0-9.]*\).*|\1|p' "runs/$1/metrics.jsonl" | sort -g | tail -n 1
}
run sweep --resume t
is "$(sed 's/  *$//; s/  */ /g' out)" "run Accuracy seconds state optimizer optimizer.lr seed
t-02 $(awk "BEGIN { printf \"%.6g\", $(best s-02) }") 2.5 left - 0.2 -
t-06 $(awk "BEGIN { printf \"%.6g\", $(best s-02) }") 6.5 left - - 6
t-01 $(awk "BEGIN { printf \"%.6g\", $(best s-01) }") 1.5 finished - 0.1 4
t-04 - 4.5 diverged - - 5
t-05 - - - - - -
t-03 $(awk "BEGIN { printf \"%.6g\", $(best s-02) }") 3.5 finished {name: sgd, lr: 0.3} - -" \
    "the best comes first, equal ones as they were planned, then those without a value, last what failed"
run sweep --resume t --json
is "$(tr -d ' \n' <out | sed 's/"best":[0-9][0-9.e-]*/"best":_/g')" "$(tr -d '\n' <<'J'
{"sweep":"t","metric":"metrics/eval/Accuracy","runs":[
{"name":"t-02","directory":"runs/t-02","state":"preempted","set":["optimizer.lr=0.2"],"best":_,"out":true},
{"name":"t-06","directory":"runs/t-06","state":"finished","set":["seed=6"],"best":_,"out":true},
{"name":"t-01","directory":"runs/t-01","state":"finished","set":["optimizer.lr=0.1","seed=4"],"best":_,"out":false},
{"name":"t-04","directory":"runs/t-04","state":"diverged","set":["seed=5"],"best":null,"out":true},
{"name":"t-05","directory":"runs/t-05","state":"-","set":[],"best":null,"out":true},
{"name":"t-03","directory":"runs/t-03","state":"finished","set":["optimizer={name:sgd,lr:0.3}"],"best":_,"out":true}]}
J
)" "as JSON, each with what was set, and whether it is out"
sed -i 's/"halving"/"metric":"loss\/train\/total",&/' runs/t.sweep
run sweep --resume t
is "$(awk '{ print $1, NR == 1 ? $2 : $2 ~ /^[0-9]/ }' out | tr '\n' '|')" \
    "run total|t-02 1|t-06 1|t-01 1|t-04 1|t-05 0|t-03 1|" "by another metric, of which less is better"
run sweep --resume ./runs/t.sweep --json
is "$(grep -c '"sweep": "t"' out)" 1 "a sweep may be named by its file"
for damage in 's/"name": "t-03"/"nam": ""/' 's/"rung": 0/"rung": "x"/' 's/"set": \[\]/"set": 3/' 's/"words"/"word"/' 's/"keys"/"key"/'; do
    sed "$damage" runs/t.sweep >runs/bad.sweep
    run sweep --resume bad
    exits 66 "a plan that was spoilt is none: $damage"
done
rm -r runs/t-0* runs/t.sweep runs/bad.sweep

run compare s --pareto time
exits 0 "compare takes a sweep"
is "$(sed -n '1s/  */ /gp' out)" "name s-02 s-01 s-03" "for its runs"
run compare s --pareto time --dump-screen 100x30
says out 'compare 3 runs' "on the screen, too"

run sweep s.yaml optimizer.lr=1e-5,3e-5,1e-4,3e-4,1e-3,3e-3,1e-2,2e-2,3e-2 --halving 3 --run_name h -j 2
exits 0 "with halving"
is "$(grep -c 'passed rung 1 of 3' err) $(grep -c 'passed rung 2 of 3' err) $(grep -c finished err)" \
    "9 3 1" "nine come to the first rung, three to the second, one to the end"
says err 'rung 1 of 3: 3 of 9 runs go on' "as is said"
is "$(run runs >/dev/null; grep -c '9/9ep' out) $(grep -c 'h-.* 3/9ep' out) $(grep -c 'h-.* 1/9ep' out)" \
    "$((1 + 2 + 2)) 2 6" "the others have been trained for 1 and 3 epochs of 9"
run sweep s.yaml --halving 3 --dry-run optimizer.lr=1,2,3,4,5,6,7,8,9
is "$(grep '^to ' out)" "to 1ep: all of 9, then 3
to 3ep: all of 3, then 1" "--dry-run says the rungs"
run sweep s.yaml --halving 3 --dry-run max_duration=4ep optimizer.lr=1,2,3,4,5,6,7,8,9
says out 'to 1ep: all of 9' "of which the first has an epoch, however short the run"

# A rung that comes before any evaluation has nothing to go by.
run sweep s.yaml optimizer.lr=1e-9,1e-8,1e-7,1e-2 --halving 2 --run_name early max_duration=40ba \
    eval_interval=15ba
exits 0 "halving where the first rung comes before an evaluation"
says err 'rung 1 of 3: no run has a value to be judged by at 0.25dur, so all go on' "warns"
is "$(grep -c 'passed rung 2 of 3' err) $(sed -n 's/^\(early-..\).*finished.*/\1/p' out)" \
    "4 early-04" "and leaves none there; behind the next, the best is found"

# ---- runs alike but for their seed

run sweep three.yaml --leave-one-out seed=1,2,3 -j 2 max_duration=3ep
exits 0 "a recipe without each of its algorithms is trained"
run compare three --seeds --pareto samples
exits 0 "compare --seeds"
is "$(awk 'NR > 1 && NR < 5 { print $1, $2 == "three-01" ? $3 : $2 }' out | sort)" \
    "algorithms.ema=off 3
algorithms.label_smoothing=off 3
as 3" "has a row for each setting: three seeds"
is "$(sed -n 2p out | cut -c 1-11)" "as three-01" "the whole recipe's first"
says out 'medians; samples to the best value' "by what was asked for"
run compare three --seeds --json --target 'accuracy>=.1' --pareto samples --svg front.svg
is "$(grep -c '"samples_to_target": [0-9]' out)" 3 "as JSON, to a target"
is "$(grep -c '<circle stroke=' front.svg) $(grep -c 'r="9"' front.svg)" "9 3" \
    "--svg draws the nine runs, and their medians"
is "$(grep -c '^<text.*as three-01: .*, median</text>' front.svg)" 1 "which the legend says"
says front.svg 'samples to accuracy&gt;=.1' "over what they took"
python3 -c 'import sys, xml.dom.minidom as m; m.parse("front.svg")' 2>err
ok $? "in XML"
run compare three s-01 --seeds --svg no/where.svg
exits 73 "where it cannot be written: exit 73"

# ---- ended in its midst

sed 's/9ep/4000ep/' s.yaml >slow.yaml
"$etude" sweep slow.yaml optimizer.lr=0.1,0.01 --run_name k -j 2 >k.out 2>k.err </dev/null &
sweep=$!
until_true 'ls -d runs/k-01/checkpoints/step-* runs/k-02/checkpoints/step-* >/dev/null 2>&1'
kill -TERM $sweep
wait $sweep
is $? 75 "a signal ends a sweep: exit 75"
says k.err 'sweep k: stopped by signal 15' "which says so"
says k.err 'etude sweep --resume k' "with the way on"
run runs
is "$(grep -c '^p k-' out)" 2 "its runs are saved"
run sweep --resume k seed=3
exits 64 "settings of one that goes on: exit 64"
finish
