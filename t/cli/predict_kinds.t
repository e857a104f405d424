#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `etude predict` where an answer is more than a class: masks, tokens, values; classes by
# their names; and the same samples at each evaluation, which a callback keeps. Each with
# the screen that shows it.
. "$(dirname "$0")/cli.sh"

# npy FILE TYPE SHAPE: what it reads, as an array
npy() {
    perl -e 'my ($type, $shape) = @ARGV; binmode STDIN; binmode STDOUT; local $/;
        my $head = "{\x27descr\x27: \x27$type\x27, \x27fortran_order\x27: False, \x27shape\x27: $shape, }";
        $head .= " " x (63 - (10 + length $head) % 64) . "\n";
        print "\x93NUMPY\x01\x00", pack("v", length $head), $head, <STDIN>' "$2" "$3" >"$1"
}
screen() {
    run --ascii runs --dump-screen "$1" --keys "$2"
}

# ---- masks: which of three channels is the brightest ----
mkdir masks
perl -e 'srand 7; print map { chr int rand 256 } 1 .. 4 * 8 * 8 * 3' >pixels
npy masks/x.npy '|u1' '(4, 8, 8, 3)' <pixels
perl -e 'binmode STDIN; local $/; my @v = unpack "C*", <STDIN>;
    while (my @p = splice @v, 0, 3) {
        my ($b) = sort { $p[$b] <=> $p[$a] } 0 .. 2; print chr $b }' \
    <pixels >answers
npy masks/y.npy '|u1' '(4, 8, 8)' <answers
cat >masks.yaml <<Y
max_duration: 6ba
seed: 3
model: {name: unet, width: 4, depth: 1}
train_data: {name: npy, path: $PWD/masks, num_classes: 3, batch_size: 4, workers: 0, split: train}
eval_data:
  - {name: npy, path: $PWD/masks, num_classes: 3, batch_size: 3, workers: 0, split: train, label: first}
  - {name: npy, path: $PWD/masks, num_classes: 3, batch_size: 2, workers: 0, split: train, label: second}
eval_interval: 3ba
metrics: [MIoU]
callbacks: {prediction_tracker: {num_samples: 2}}
optimizer: {name: adam, lr: 1.0e-2}
Y
run train masks.yaml --run_name calm-heron --run_directory runs/masks --progress none
exits 0 "a run whose answers are masks"
run eval calm-heron
miou=$(sed -n 's|^metrics/first/MIoU ||p' out)
run predict calm-heron
exits 0 "predict RUN"
says out "of 256 pixels right" "counts the pixels"
csv=runs/masks/predictions/first.csv
is "$(head -n 1 $csv)" "sample,pixels,right,loss,iou0,iou1,iou2" "names the columns"
is "$(wc -l <$csv | tr -d ' ')" 5 "has a line for each sample"
is "$(sed -n 's/^first: .*, \([0-9.]*\) of 256 pixels.*/\1/p' out)" \
    "$(awk -F, 'NR > 1 { all += $2; right += $3 } END { printf "%.4f", right / all }' $csv)" \
    "says which part of them is right"
ours=$(sed -n 's/.*"mean_iou":\([0-9.]*\).*/\1/p' runs/masks/predictions/first.json)
is "$(printf %.4f "$ours")" "$(awk -v v="$miou" 'BEGIN { printf "%.4f", v / 100 }')" \
    "the mean IoU is that of the metric"
is "$(grep -c '^  IoU 0' out)" 6 "and there is one for each class, of both data"
is "$(wc -l <runs/masks/predictions/second.csv | tr -d ' ')" 5 "the second are kept, too"
run predict calm-heron -o one.csv
is "$(grep -c samples out) $(cmp one.csv $csv && echo same)" "1 same" "a file takes the first"
run predict calm-heron second -o all.npz
exits 0 "any evaluator's data, as an npz"
is "$(grep -ao "'shape': ([0-9, ]*)" all.npz | sort | tr '\n' ' ')" \
    "'shape': (4, 8, 8) 'shape': (4, 8, 8) 'shape': (4,) " "of masks, labels and losses"
run predict calm-heron -o pictures/
exits 0 "or as a folder of pictures"
is "$(ls pictures | tr '\n' ' ')" "000000.png 000001.png 000002.png 000003.png " \
    "one for each sample"
mkdir -p set/images set/masks
cp pictures/*.png set/masks
for i in 0 1 2 3; do cp pictures/00000$i.png set/images; done
run data show segmentation path="$PWD/set" num_classes=3 split=train --limit 4 --json \
    resolution=8
exits 0 "which the data set segmentation reads"
run data show segmentation path="$PWD/set" num_classes=3 split=train --limit 1 \
    resolution=8 classes=[ground,left,right]
tail -n 1 out | grep -Eq '^[0-9]+% (left|right)(, [0-9]+% (left|right))?$'
ok $? "below a picture are the classes of its mask"
run data show segmentation path="$PWD/set" num_classes=3 split=train --limit 4 \
    resolution=8 classes=[ground,left,right] --pictures
is "$(tr -d ' \n' <out | grep -o '"counted":256,"counted_what":"pixels"\|"left","right"')" \
    '"left","right"
"counted":256,"counted_what":"pixels"' \
    "and for screens the pixels of each are counted"
is "$(tr -d ' \n' <out | grep -o '"mask":"[0-9a-f]*"' | cut -d'"' -f4 | fold -w 6 | sort -u |
    grep -vcx '000000\|004aff\|94ff00')" 0 "where a mask alone has its colours and no others"
COLORTERM=truecolor LC_ALL=C.UTF-8 "$etude" data show segmentation path="$PWD/set" \
    num_classes=3 split=train --limit 2 resolution=8 classes=[ground,left,right] \
    --color always >out 2>err
e=$(printf '\033')
is "$(tail -n 1 out)" \
    "$e[38;2;0;74;255m██$e[0m 1 left  $e[38;2;148;255;0m██$e[0m 2 right  " \
    "where there are colours, which class has which"
cat >look.yaml <<R
max_duration: 1ba
model: {name: unet, width: 8, depth: 1}
train_data: {name: segmentation, path: $PWD/set, num_classes: 3, batch_size: 4, resolution: 8,
  classes: [ground, left, right]}
R
LC_ALL=C.UTF-8 "$etude" compose look.yaml --dump-screen 80x24 --keys I >out 2>err
says out '── pixels, of 256 ──' "the screen Data says of what it counts"
says out '     0 ground ' "the ground has no colour"
says out '  ██ 2 right ' "the others have theirs beside their names"
run predict calm-heron -o one.jsonl
is "$(grep -c '"iou":\[' one.jsonl)" 4 "or as JSON lines"
screen 80x24 V
says out "its pixels taken for" "the screen shows which pixels are taken for which"
screen 80x24 'V<tab>'
says out "IoU" "the IoU of each class"
screen 80x24 'V<tab><tab>'
says out "right: over it, target, prediction" "and the worst masks, with their parts"
grep -q "sample [0-3]: loss" out
ok $? "of which the message names the selected one"
screen 80x24 'V<tab><tab><tab>'
says out "the same samples at each evaluation: picture, target, masks" \
    "and the same samples at each evaluation"
is "$(wc -l <runs/masks/predictions/second.track.jsonl | tr -d ' ')" 2 \
    "of which the callback has kept two"

# ---- tokens ----
seq 1 1600 >numbers.txt
cat >text.yaml <<'Y'
max_duration: 8ba
seed: 3
model: {name: gpt2, n_layers: 1, d_model: 16, n_heads: 2, max_seq_len: 16, vocab_size: 256}
train_data: {name: text_bytes, path: numbers.txt, seq_len: 16, batch_size: 4, workers: 0}
eval_data: {name: text_bytes, path: numbers.txt, seq_len: 16, batch_size: 4, workers: 0, subset_num_batches: 8}
optimizer: {name: adamw, lr: 1.0e-2}
Y
run train text.yaml --run_name fond-lynx --run_directory runs/text --progress none
exits 0 "a run whose answers are tokens"
run eval fond-lynx
loss=$(sed -n 's|^metrics/eval/LanguageCrossEntropy ||p' out)
run predict fond-lynx
exits 0 "predict RUN"
says out "of 512 tokens right" "counts the tokens"
is "$(awk -F, 'NR > 1 { loss += $4 } END { printf "%.3f", loss / 32 }' runs/text/predictions/eval.csv)" \
    "$(printf %.3f "$loss")" "the mean loss is that of eval"
run predict fond-lynx -o tokens.jsonl
exits 0 "as JSON lines"
is "$(perl -ne 'for my $k (qw(input label class losses)) { my ($v) = /"$k":\[([^\]]*)\]/; print 1 + ($v =~ tr/,//), " " }' tokens.jsonl | tr ' ' '\n' | sort -u | tr '\n' ' ')" \
    "16 " "each token has input, label, class and loss"
run predict fond-lynx -o tokens/
exits 64 "a folder is for masks: exit 64"
says err "these answers are tokens" "says why"
screen 80x24 /fond-lynx'<enter>V'
says out "what was to come" "the screen shows the worst passages"
screen 80x24 /fond-lynx'<enter>VG'
says out "#$(sed -n 's/^ sample \([0-9]*\): loss.*/\1/p' out) " "the last of 32 comes into sight when it is selected"

# ---- values, and classes with names ----
perl -e 'print "a,b,sum,kind\n"; for (1 .. 40) { my ($a, $b) = ($_ % 7, $_ % 5);
    print "$a,$b,", $a + $b, ",", $a > $b ? "\"more, or so\"" : "less", "\n" }' >t.csv
for target in sum kind; do
    [ $target = sum ] && loss="loss: mse" || loss=
    cat >$target.yaml <<Y
max_duration: 20ba
seed: 3
model: {name: mlp, hidden: 8, layers: 1}
train_data: {name: table, path: t.csv, target: $target, columns: [a, b], batch_size: 16, workers: 0}
eval_data: {name: table, path: t.csv, target: $target, columns: [a, b], batch_size: 16, workers: 0}
optimizer: {name: adam, lr: 3.0e-2}
callbacks: {prediction_tracker: {num_samples: 3}}
$loss
Y
done
sed -i /prediction_tracker/d sum.yaml
run train sum.yaml --run_name dry-finch --run_directory runs/sum --progress none
exits 0 "a run whose answers are values"
run predict dry-finch
exits 0 "predict RUN"
says out "R2" "says R2"
is "$(head -n 1 runs/sum/predictions/eval.csv)" "sample,loss,target0,value0" \
    "the columns are targets and values"
is "$(awk -F, 'NR > 1 && ($2 - ($4 - $3) ^ 2) ^ 2 > 1e-6 { bad++ } END { print bad + 0 }' runs/sum/predictions/eval.csv)" \
    0 "the loss is the square of what they differ by"
screen 80x24 /dry-finch'<enter>V'
says out "value up, target to the right" "the screen draws one against the other"
run train kind.yaml --run_name base-owl --run_directory runs/kind --progress none
exits 0 "a run whose classes have names"
grep -q '"names":{.*"more, or so"' runs/kind/predictions/eval.track.jsonl
ok $? "a tracked sample has them before the run is predicted"
screen 80x24 /base-owl'<enter>V'
says out " more, or so" "and the screen shows them"
run predict base-owl
is "$(head -n 1 runs/kind/predictions/eval.csv | cut -d, -f7-)" "label_name,class_name" \
    "has them in columns of their own"
is "$(grep -c '"more, or so"' runs/kind/predictions/eval.csv | awk '{ print ($1 > 0) }')" 1 \
    "in quotes where they have a comma"
run predict base-owl -o k.jsonl
is "$(grep -c '"label_name":"less"\|"label_name":"more, or so"' k.jsonl)" \
    "$(wc -l <k.jsonl | tr -d ' ')" "also as JSON lines"
screen 120x36 /base-owl'<enter>V'
says out "more, or so" "and on the screen"
finish
