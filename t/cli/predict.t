#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `etude predict`: what a model makes of each sample, as CSV, JSONL and npz, and kept for
# the screen that shows it.
. "$(dirname "$0")/cli.sh"
tiny one.yaml
sed '/^eval_data/d' one.yaml >two.yaml
cat >>two.yaml <<'R'
eval_data:
  - {name: synthetic_images, num_samples: 16, workers: 0}
  - {name: synthetic_images, num_samples: 24, workers: 0, label: more}
R
run train two.yaml --run_name calm-heron --run_directory runs/there --progress none
exits 0 "a run to predict with"
run eval calm-heron
accuracy=$(sed -n 's|^metrics/eval/Accuracy ||p' out)
loss=$(sed -n 's|^metrics/eval/CrossEntropy ||p' out)
run predict calm-heron
exits 0 "predict RUN: exit 0"
says out "runs/there/predictions/eval.csv" "says where it is kept"
csv=runs/there/predictions/eval.csv
is "$(wc -l <$csv | tr -d ' ')" 17 "a line for each sample, and one above them"
is "$(head -n 1 $csv | cut -d, -f1-6)" "sample,label,class,loss,p0,p1" "which names the columns"
ours=$(awk -F, 'NR > 1 { right += $2 == $3; loss += $4 } END { printf "%.4f %.4f", right / 16, loss / 16 }' $csv)
is "$ours" "$(printf '%.4f %.4f' "$accuracy" "$loss")" "accuracy and loss are those of eval"
worst=$(awk -F, 'NR > 1 { sum = 0; best = 5
    for (i = 5; i <= NF; i++) { sum += $i; if ($i > $best) best = i }
    if (sum < .999 || sum > 1.001 || best - 5 != $3) bad++ } END { print bad + 0 }' $csv)
is "$worst" 0 "probabilities sum to 1, and the greatest is that of the class"
is "$(head -c 2 runs/there/predictions/eval.ppm)" P6 "with pictures of the worst"
run predict calm-heron more -o more.jsonl
exits 0 "other data, as JSON lines"
is "$(wc -l <more.jsonl | tr -d ' ')" 24 "one for each sample of theirs"
is "$(grep -cE '^\{"sample":[0-9]+,"label":[0-9]+,"class":[0-9]+,"loss":[0-9.e-]+,"p":\[[0-9.e,-]+\]\}$' more.jsonl)" \
    24 "each an object"
run predict calm-heron -o all.npz
exits 0 "as an npz"
is "$(head -c 2 all.npz)" PK "which is a zip file"
run predict calm-heron -o all.txt
exits 64 "another ending: exit 64"
says err ".csv, .jsonl or .npz" "says which there are"
run predict calm-heron nothing
exits 64 "data that the recipe has not: exit 64"
says err "has no eval_data 'nothing'" "names them"
run predict one.yaml
exits 64 "a recipe without a run needs -o: exit 64"
run predict one.yaml --load runs/there -o one.csv
exits 0 "and has predictions with it"
run predict calm-heron --json -o one.csv
says out '"samples": 16' "--json: what it came to"

# The screen reads what was written.
keys() {
    run --ascii runs --dump-screen "$1" --keys "$2"
}
keys 80x24 V
says out 'right of 16' "V in Runs shows the results of a run"
says out 'rows: label, columns: taken for' "first which classes are taken for which"
keys 80x24 'V<tab>'
says out 'recall' "then each class"
keys 80x24 'V<tab><tab>'
says out 'the worst mistakes' "then the worst mistakes"
keys 80x24 'Vg<left><left><left><left><left><left><left><left><left><right><enter>'
says out '0 taken for 1' "enter: those of one pair alone"
keys 120x36 V
says out 'precision' "all of them where there is room"
says out 'the worst mistakes' "with the pictures"
rm -r runs/there/predictions
keys 80x24 V
says out 'is not known yet' "without predictions it says so"
keys 80x24 'Vp'
says out 'right of 16' "and p makes them"

finish
