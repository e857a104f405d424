#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What commands print, against what it is of: tables against JSON, exports and logs against
# what was recorded, and command lines against what they say.
. "$(dirname "$0")/cli.sh"

# field KEY: the first number that `out`, JSON, has under KEY
field() {
    sed -n "s/^ *\"$1\": \([-0-9.e+]*\),*$/\1/p" out | head -n 1
}

# below NAME KEY: that of the object NAME of `out`
below() {
    sed -n "/\"$(printf %s "$1" | sed 's#/#\\/#g')\": {/,/}/s/^ *\"$2\": \([-0-9.e+]*\),*$/\1/p" out | head -n 1
}

tiny r.yaml
sed -i 's/^max_duration.*/max_duration: 6ba\neval_interval: 2ba/; s/lr: 0.1/lr: 2.5/; s/num_samples: 16/num_samples: 64/' r.yaml
cp r.yaml short.yml

# ---- command lines ----

run short.yml --quiet --run_name early
exits 0 "a file that ends in .yml is a recipe to train"
is "$(run show early; awk '$1 == "recipe" { print $2 }' out)" short "and its name is without that"
run show early
is "$(awk '$1 == "recipe" {print $2}' out)" short "and the run is known by its name without the ending"
run train r.yaml --no-al mixup
exits 64 "the beginning of an option is none: exit 64"
says err "did you mean --no-alg?" "with what was meant"
run runs -qz
exits 64 "each of several letters is read: exit 64 where the second is none"
run nosuch -- --json
says err "error E1104" "--json behind -- is an operand, so errors are text"
run nosuch --json
says err '"code":"E1104"' "before it they are JSON"
run annotate early a=b
run show early
says out "  a=b" "a note may look like a setting"
run train r.yaml --every 0s
exits 64 "progress every 0 s is refused: exit 64"
run train r.yaml --quiet --json --run_name silent
is "$code $(grep -c '"ev"' out)" "0 0" "--quiet goes before --json: no line for each batch"

# ---- runs ----

run rerun early --quiet
run runs --json
is "$(grep -c '"name": "early"' out)" 1 "a run that is run again has a name of its own"
run runs name=early --limit 1
is "$(grep -c ' early ' out)" 1 "a filter looks at all runs, not at the newest alone"
run runs --limit 1
is "$(grep -c ' early ' out)" 0 "which come first without one"

run show early --json
acc=metrics/eval/Accuracy
want="$(printf '%.4f %.4f %d' "$(below $acc last)" "$(below $acc best)" "$(below $acc best_ba)")"
run show early
is "$(awk -v m=$acc '$1 == m {print $2, $3, $4}' out)" "$want" "show has last, best and where"
is "$(awk -v m=$acc '$1 == m {print $2 != $3}' out)" 1 "which differ"
seq 40 | awk 'BEGIN { print "a,b" } { print $1 "," $1 * 7 % 11 + 5 }' >rows.csv
printf '%s\n' 'max_duration: 1ba' 'seed: 1' 'model: {name: mlp, hidden: 3}' \
    'train_data: {name: table, path: rows.csv, target: b, batch_size: 4}' \
    "eval_data: {name: table, path: rows.csv, target: b, batch_size: 4}" >worse.yaml
run train worse.yaml --quiet --run_name worse
run show worse
is "$(awk '$1 ~ /R2/ {print $2 + 0 < 0, $3 + 0 < 0, $4}' out)" "1 1 1" "a number below 0 is shown as it is"

# ---- comparisons ----

# row LABEL: that row of the table, its blanks as one
row() {
    grep "^$1 " out | tr -s ' '
}

mkdir rivals && cd rivals || exit 99
"$ET_BUILDDIR/t/tui/rivals" || { echo "Bail out! no runs"; exit 99; }
run compare base-r50 brisk-otter ./runs/calm-heron --target 'accuracy>=.7' --pareto time
is "$(row 'time to it')" "time to it 1h18m 15m00s 14m59s" "a comparison has the time to the best"
is "$(row 'time to accuracy>=.7')" "time to accuracy>=.7 38m15s 10m07s 7m17s" "that to a target, which is another"
is "$(row 'samples to it')" "samples to it 48,959,488 5,183,488 9,216,000" "and the samples to that"
run compare early-mole calm-heron base-r50 --target 'accuracy>=.7' --pareto energy
is "$(row 'energy to it')" "energy to it - 583 Wh 3.12 kWh" "and the energy to it"
is "$(grep -c 'early-mole has not recorded what it drew' err)" 1 "a run that has none is named, also the first"
is "$(row 'Pareto front, energy')" "Pareto front, energy - # +" "and has no place beside the front"
cd .. || exit 99

# ---- logs ----

log=$(echo runs/*/logs/rank0.txt | cut -d' ' -f1)
for level in debug info warn error; do
    echo "2026-01-02T03:04:05Z $level said at $level" >>"$log"
done
echo "printed" >>"$log"
directory=$(dirname "$(dirname "$log")")
for row in "debug:debug info warn error:1" "info:info warn error:1" "warn:warn error:0" "error:error:0"; do
    run logs "$directory" --level "${row%%:*}"
    rest=${row#*:}
    is "$(sed -n 's/.* said at //p' out | tr '\n' ' ')" "${rest%:*} " "logs --level ${row%%:*} has that and worse"
    is "$(grep -c '^printed$' out)" "${rest#*:}" "and what was printed as info"
done
run logs "$directory" --json --level error
is "$(grep -c '"level":"error"' out):$(wc -l <out)" 1:1 "the same in JSON"

# ---- exports ----

run export early --to jsonl
grep -o '"[a-z0-9_]*[/-][^"]*":' out | tr -d '":' | sort -u >jsonl
run export early --to csv
tr ',' '\n' <out | grep '[a-z][/-]' | grep -v T | sort -u >csv
for name in loss/train/total time/batch time/remaining_estimate; do
    is "$(grep -cx $name jsonl):$(grep -cx $name csv)" 1:1 "exports have $name, in both forms"
done

# ---- data ----

run data inspect synthetic_images num_samples=8 channels=2 --json
is "$(sed -n '/^  "shape"/,/]/p' out | tr -dc '0-9 ' | tr -s ' ')" " 2 32 32 " "data have channels, height and width"
means=$(sed -n '/"mean"/,/]/p' out | grep -o '0\.[0-9]*' | awk '{printf "%.4f ", $1}')
deviations=$(sed -n '/"std"/,/]/p' out | grep -o '0\.[0-9]*' | awk '{printf "%.4f ", $1}')
run data inspect synthetic_images num_samples=8 channels=2
says out "8 of 32 x 32, 2 channels" "also as text"
is "$(sed -n 's/^channel.*mean \([0-9.]*\),.*/\1/p' out | tr '\n' ' ')" "$means" "each channel has its mean"
is "$(sed -n 's/^channel.*std \([0-9.]*\) .*/\1/p' out | tr '\n' ' ')" "$deviations" "and its deviation"

# ---- weights ----

run weights convert early -o half.safetensors --dtype f16
run weights convert half.safetensors -o full.safetensors --dtype f32
run weights ls full.safetensors --json
is "$(sed -n 's/^ *"bytes": \([0-9]*\),*$/\1/p' out | tail -n +2 | awk '{s += $1} END {print s / 4}')" "$(field n_values)" \
    "a file's values are those of its tensors"
values=$(field n_values)
run weights ls full.safetensors
says out "$(echo "$values" | sed ':a;s/\B[0-9]\{3\}\>/,&/;ta') values" "also as text"
run weights diff half.safetensors full.safetensors
is "$code:$(grep -c 'f16.*f32' out)" "1:$(grep -c . out | awk '{print ($1 - 1) / 2}')" "tensors of another type differ, each with both types"
run train r.yaml --quiet --run_name deeper model.layers=2
run weights diff early deeper
says out "only in the second: " "what one file alone has is said to be in that"
is "$(grep -c 'only in the first' out)" 0 "and not in the other"
run weights diff deeper early
is "$(grep -c 'only in the first' out):$(grep -c 'only in the second' out)" "$(grep -c 'only in' out):0" "the other way round it is in the first"

# ---- evaluations, estimates, schedules ----

run eval r.yaml
says err "no weights are loaded" "an evaluation of a model at its start is said to be one"
run eval r.yaml model.weights=full.safetensors
is "$code:$(grep -c 'no weights' err)" 0:0 "one of weights that the recipe names is not"

run estimate r.yaml optimizer.momentum=0.9 --json
checkpoint=$(field checkpoint_bytes) weights=$(field weights_bytes) params=$(field params)
step=$(below train flops) look=$(below eval flops)
run estimate r.yaml optimizer.momentum=0.9
is "$(sed -n 's/^checkpoint *\([0-9.]*\) .*, \([0-9.]*\) .*/\1 \2/p' out | awk '{print ($1 > 1.9 * $2)}')" 1 "a checkpoint with momentum has twice what the model has"
is "$(echo "$checkpoint $weights $params" | awk '{print ($1 > 1.9 * $2 && $2 >= 4 * $3)}')" 1 "also in JSON"
is "$(echo "$step $look" | awk '{print ($2 > 0 && $1 > 2 * $2)}')" 1 "and a step has more than twice the operations of an evaluation's"

run explain r.yaml --json scheduler=constant
is "$(sed -n '/"highest"/,/}/s/.*"ba": \([0-9]*\).*/\1/p' out)" 0 "of equal rates the first is the highest"
is "$(sed -n '/"points"/,/]/s/.*"ba": \([0-9]*\).*/\1/p' out | tail -n 1)" "$(sed -n '/"last"/,/}/s/.*"ba": \([0-9]*\).*/\1/p' out)" \
    "the points of a curve end with its last"

finish
