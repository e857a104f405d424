#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `etude predict`: that each number, mask, token and picture is that of its sample: of
# samples that are higher than wide, of which batches take two.
. "$(dirname "$0")/cli.sh"

# npy FILE TYPE SHAPE: what it reads, as an array
npy() {
    perl -e 'my ($type, $shape) = @ARGV; binmode STDIN; binmode STDOUT; local $/;
        my $head = "{\x27descr\x27: \x27$type\x27, \x27fortran_order\x27: False, \x27shape\x27: $shape, }";
        $head .= " " x (63 - (10 + length $head) % 64) . "\n";
        print "\x93NUMPY\x01\x00", pack("v", length $head), $head, <STDIN>' "$2" "$3" >"$1"
}
# part NPZ NAME: the bytes of one of its arrays
part() {
    perl -e 'my ($file, $want) = @ARGV; binmode STDOUT; local $/; open my $f, "<:raw", $file; $_ = <$f>;
        while (/PK\x03\x04.{14}(.{12})/sg) {
            my ($bytes, $all, $name, $extra) = unpack "VVvv", $1;
            my $from = pos() + $name + $extra;
            next if substr($_, pos, $name) ne "$want.npy";
            print substr $_, $from + 10 + unpack("v", substr $_, $from + 8, 2),
                $bytes - 10 - unpack "v", substr $_, $from + 8, 2;
        }' "$1" "$2"
}
# is_eval RUN METRIC TEXT: the loss that predict said of it is that of eval
is_eval() {
    run eval "$1"
    is "$(sed -n '1s/.*, loss //p' said)" "$(sed -n "s|^metrics/eval/$2 ||p" out)" "$3"
}
# recipe NAME MODEL BATCH LINES: NAME.yaml, of the arrays in the folder NAME
recipe() {
    cat >"$1.yaml" <<Y
max_duration: 1ba
seed: 3
model: $2
train_data: {name: npy, path: $PWD/$1, batch_size: 4, workers: 0, split: train$3}
eval_data: {name: npy, path: $PWD/$1, batch_size: 2, workers: 0, split: train$3}
optimizer: {name: adam, lr: 1.0e-2}
$4
Y
    run train "$1.yaml" --run_name "$1" --run_directory "runs/$1" --progress none -q
    exits 0 "a run: $1"
}
mkdir masks classes values
perl -e 'srand 5; print map { chr int rand 256 } 1 .. 5 * 8 * 4 * 3' >pixels
perl -e 'srand 6; print map { chr int rand 3 } 1 .. 5 * 8 * 4' >labels
for kind in masks classes values; do
    npy $kind/x.npy '|u1' '(5, 8, 4, 3)' <pixels
done
npy masks/y.npy '|u1' '(5, 8, 4)' <labels
printf '\0\1\2\3\0' | npy classes/y.npy '|u1' '(5,)'
perl -e 'print pack "f<*", map { $_ * .5 } 1 .. 10' | npy values/y.npy '<f4' '(5, 2)'

# ---- masks

recipe masks '{name: unet, width: 4, depth: 1}' ', num_classes: 3'
run predict masks
cp out said
csv=runs/masks/predictions/eval.csv
run predict masks -o all.npz
part all.npz mask >mask
part all.npz label >label
cmp -s label labels
ok $? "predict writes each sample's own target"
# Each sample's pixels, those that are right and the IoU of each class, from the masks.
perl -e 'local $/; open my $f, "<:raw", "mask"; my @m = unpack "C*", <$f>; open $f, "<:raw", "labels";
    my @l = unpack "C*", <$f>; my (@in, @of, $all);
    for my $i (0 .. 4) {
        my ($right, @i, @u) = 0;
        for (32 * $i .. 32 * $i + 31) {
            $right += $m[$_] == $l[$_];
            for my $c (0 .. 2) {
                my ($x, $y) = ($m[$_] == $c, $l[$_] == $c);
                $i[$c] += $x && $y; $u[$c] += $x || $y;
                $in[$c] += $x && $y; $of[$c] += $x || $y;
            }
        }
        printf "%d,32,%d,%.5f,%.5f,%.5f\n", $i, $right, map { $i[$_] / $u[$_] } 0 .. 2;
        $all += $right;
    }
    my @iou = map { $in[$_] / $of[$_] } 0 .. 2;
    printf "%.4f of 160 pixels right, mean IoU %.4f\n", $all / 160, ($iou[0] + $iou[1] + $iou[2]) / 3;
    printf "  IoU %.4f  %d\n", $iou[$_], $_ for 0 .. 2' >want
is "$(awk -F, 'NR > 1 { printf "%d,%d,%d,%.5f,%.5f,%.5f\n", $1, $2, $3, $5, $6, $7 }' $csv)" \
    "$(sed 5q want)" "the table has of each sample what is right, and the IoU of each class"
is "$(sed -n '1s/^eval: 5 samples, \(.*\), loss .*/\1/p; /^  IoU/p' said)" "$(sed 1,5d want)" \
    "which is said of all together"
is "$(sed -n 's/.*, loss //p' said)" "$(awk -F, 'NR > 1 { s += $4 } END { printf "%.6g", s / 5 }' $csv)" \
    "with the mean of the losses"
is_eval masks CrossEntropy "which is eval's"
run predict masks -o folder/
is "$(perl -e 'for (@ARGV) { open my $f, "<:raw", $_; read $f, my $head, 24; print join("x", unpack "x16NN", $head), " " }' folder/*.png)" \
    "4x8 4x8 4x8 4x8 4x8 " "a mask's file is as wide and as high as the mask"

# The worst are beside each other: the picture below the mask, the target, the mask.
sheet='local $/; open my $f, "<:raw", $sheet; my $ppm = <$f>;
    $ppm =~ s/^P6\n# etude (\d+) (\d+) (\d+) ([\d ]+)\n\d+ \d+\n255\n// or die "no sheet";
    my ($w, $h, $n, @sample) = ($1, $2, $3, split / /, $4);
    sub at { my ($i, $y, $x) = @_; map { ord } split //, substr $ppm, 3 * (($y * $n + $i) * $w + $x), 3 }
    open $f, "<:raw", "pixels"; my @pixel = unpack "C*", <$f>;
    # a picture is from black to white
    sub picture { my ($s, $y, $x) = @_; my @own = sort { $a <=> $b } @pixel[96 * $s .. 96 * $s + 95];
        map { 255 * ($_ - $own[0]) / ($own[-1] - $own[0]) } @pixel[map { 96 * $s + 3 * (4 * $y + $x) + $_ } 0 .. 2] }
    sub far { my ($far, @v) = 0; for (0 .. 2) { $far = abs($_[$_] - $_[$_ + 3]) if abs($_[$_] - $_[$_ + 3]) > $far } $far }'
is "$(sed -n '2s/.* 12 8 5 //p' runs/masks/predictions/eval.ppm)" \
    "$(sed 1d $csv | sort -t, -gr -k 4 | cut -d, -f1 | tr '\n' ' ' | sed 's/ $//')" "of the worst there are pictures, the worst first"
is "$(perl -e 'my $sheet = "runs/masks/predictions/eval.ppm";'"$sheet"'
    my @color = ([0, 0, 0], [0, 0x4a, 0xff], [0x94, 0xff, 0]);
    open $f, "<:raw", "mask"; my @m = unpack "C*", <$f>; open $f, "<:raw", "labels"; my @l = unpack "C*", <$f>;
    my ($target, $mask, $picture) = (0, 0, 0);
    for my $i (0 .. $n - 1) { for my $y (0 .. 7) { for my $x (0 .. 3) {
        my $k = 32 * $sample[$i] + 4 * $y + $x;
        my @p = picture($sample[$i], $y, $x);
        @p = map { ($p[$_] + $color[$m[$k]][$_]) / 2 } 0 .. 2 if $m[$k];
        $picture += far(at($i, $y, $x), @p) > 1.5;
        $target += far(at($i, $y, 4 + $x), @{$color[$l[$k]]}) > 0;
        $mask += far(at($i, $y, 8 + $x), @{$color[$m[$k]]}) > 0 } } }
    print "$picture $target $mask"')" "0 0 0" "each with its own picture, target and mask"

# ---- classes

recipe classes '{name: mlp, hidden: 8, layers: 1}' '' ''
run predict classes
cp out said
csv=runs/classes/predictions/eval.csv
is "$(sed -n '1s/eval: //p' said)" \
    "$(awk -F, 'NR > 1 { n++; right += $2 == $3; loss += $4 } END { printf "%d samples, %d right (%.4f), loss %.6g", n, right, right / n, loss / n }' $csv)" \
    "predict says how many are right, and the mean loss"
is_eval classes CrossEntropy "which is eval's"
is "$(awk -F, 'NR > 1 { print $1, $2 }' $csv | tr '\n' ' ')" "0 0 1 1 2 2 3 3 4 0 " "each with its label"
is "$(awk -F, 'NR > 1 { d = $4 + log($(5 + $2)); if (d > 1e-4 || d < -1e-4) bad++ } END { print bad + 0 }' $csv)" 0 \
    "its loss is that of its label's probability"
is "$(sed -n '2s/.* 4 8 [0-9] //p' runs/classes/predictions/eval.ppm)" \
    "$(awk -F, 'NR > 1 && $2 != $3' $csv | sort -t, -gr -k 4 | cut -d, -f1 | tr '\n' ' ' | sed 's/ $//')" \
    "there are pictures of those that are wrong, the worst first"
is "$(perl -e 'my $sheet = "runs/classes/predictions/eval.ppm";'"$sheet"'
    my $wrong = 0;
    for my $i (0 .. $n - 1) { for my $y (0 .. 7) { for my $x (0 .. 3) {
        $wrong += far(at($i, $y, $x), picture($sample[$i], $y, $x)) > 1 } } }
    print $wrong')" 0 "each of its own sample"
run predict classes --json -o c.jsonl
is "$(tr -d ' \n' <out | sed 's/"\(loss\|accuracy\)":[0-9.]*/"\1":_/g')" \
    '{"data":"eval","answer":"class","samples":5,"loss":_,"classes":4,"counted":5,"accuracy":_,"file":"c.jsonl"}' \
    "predict --json says the same, and where it is written"
run predict classes -o c.csv
cmp -s c.csv $csv
ok $? "-o FILE.csv has what is kept with the run"
is "$(tail -n 1 out)" "written to c.csv" "and is said"
run predict classes -o folder
exits 64 "a folder is for masks: exit 64"
says err 'a folder is for masks; these answers are class' "which is said also where it is named without its /"

# ---- values

recipe values '{name: mlp, hidden: 8, layers: 1}' '' 'loss: mse'
run predict values
cp out said
csv=runs/values/predictions/eval.csv
is "$(sed -n '1s/eval: //p' said)" "$(awk -F, 'NR > 1 {
        for (k = 3; k < 7; k += 2) { n++; e = $k - $(k + 1); mae += e < 0 ? -e : e; ss[k] += e * e; s[k] += $k; q[k] += $k * $k }
        loss += $2; m++ }
    END { r2 = 1 - ss[3] / (q[3] - s[3] ^ 2 / m)
        printf "%d samples, off by %.6g in the mean, R2 %.4f, loss %.6g", m, mae / n, r2, loss / m }' $csv)" \
    "predict says by how much values are off, R2 of the first of each sample, and the loss"
is_eval values MSE "which is eval's"
is "$(awk -F, 'NR > 1 { print $3, $5 }' $csv | tr '\n' '|')" "0.5 1|1.5 2|2.5 3|3.5 4|4.5 5|" "two values a sample stand beside their targets"

# ---- tokens

seq 1 400 >numbers.txt
cat >text.yaml <<'Y'
max_duration: 1ba
seed: 3
model: {name: gpt2, n_layers: 1, d_model: 16, n_heads: 2, max_seq_len: 16, vocab_size: 256}
train_data: {name: text_bytes, path: numbers.txt, seq_len: 16, batch_size: 4, workers: 0}
eval_data: {name: text_bytes, path: numbers.txt, seq_len: 16, batch_size: 4, workers: 0}
optimizer: {name: adamw, lr: 1.0e-2}
Y
run train text.yaml --run_name text --run_directory runs/text --progress none -q
exits 0 "a run: text"
run predict text
cp out said
csv=runs/text/predictions/eval.csv
is "$(sed -n '1s/eval: //p' said)" \
    "$(awk -F, 'NR > 1 { n++; all += $2; right += $3; loss += $4 } END { printf "%d samples, %d of %d tokens right (%.4f), loss %.6g", n, right, all, right / all, loss / n }' $csv)" \
    "predict says how many tokens are right"
is_eval text LanguageCrossEntropy "and the loss that eval says"
run predict text -o t.jsonl
# Of each line: number, right, loss; then all inputs, and whether labels follow them.
perl -ne 'my %v; for my $k (qw(input label class losses)) { $v{$k} = [/"$k":\[([^\]]*)\]/ ? split /,/, $1 : ()] }
    my ($right, $sum) = (0, 0);
    for (0 .. 15) { $right += $v{label}[$_] == $v{class}[$_]; $sum += $v{losses}[$_];
        $bad++ if $_ && $v{label}[$_ - 1] != $v{input}[$_] }
    /"sample":(\d+)/; printf "%d,16,%d,%.3f\n", $1, $right, $sum / 16; push @in, @{$v{input}};
    END { open my $f, ">:raw", "inputs"; print $f pack "C*", @in; print "bad $bad\n" if $bad }' t.jsonl >want
is "$(awk -F, 'NR > 1 { printf "%d,%d,%d,%.3f\n", $1, $2, $3, $4 }' $csv)" "$(cat want)" \
    "each sequence has its own tokens, of which each is followed by its label"
is "$(perl -e 'local $/; open my $f, "<", "inputs"; my $in = <$f>; open $f, "<", "numbers.txt"; my $all = <$f>;
    print length $in, " ", index($all, $in) >= 0 ? "in" : "not in"')" "144 in" "in the order of the text"
run predict text --json -o t.jsonl
is "$(tr -d ' \n' <out | sed 's/:[0-9.][0-9.]*/:_/g')" \
    '{"data":"eval","answer":"tokens","samples":_,"loss":_,"classes":_,"counted":_,"accuracy":_,"is_bytes":true,"file":"t.jsonl"}' \
    "as JSON that is said without the sequences"
# The worst sequences are those of the file, with all that they have there.
is "$(perl -ne 'while (/\{"sample":(\d+),"loss":([0-9.]+),"input":\[([^\]]*)\],"label":\[([^\]]*)\],"class":\[([^\]]*)\]/g) { print "$1 $3 $4 $5\n" }' \
    runs/text/predictions/eval.json | head -n 3)" \
    "$(sed 1d $csv | sort -t, -gr -k 4 | head -n 3 | cut -d, -f1 | while read -r k; do
        sed -n 's/^{"sample":'"$k"',"input":\[\([^]]*\)\],"label":\[\([^]]*\)\],"class":\[\([^]]*\)\].*/'"$k"' \1 \2 \3/p' t.jsonl
    done)" "the worst are kept with the run, with their tokens"
finish
