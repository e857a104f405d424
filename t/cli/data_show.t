#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `etude data show`: samples as they reach the model, as pictures, words and numbers.
. "$(dirname "$0")/cli.sh"
. "$ET_SRCDIR/t/cli/prints.sh"

# An IDX set of 2 images of 4 x 2: the first is black but for a white column on the right,
# the second is white; labels 1 and 0.
printf '\000\000\010\003\000\000\000\002\000\000\000\004\000\000\000\002' >images
printf '\000\377\000\377\000\377\000\377\377\377\377\377\377\377\377\377' >>images
printf '\000\000\010\001\000\000\000\002\001\000' >labels

export TERM=xterm-256color LC_ALL=C.UTF-8
run data show idx path="$PWD" images=images labels=labels
exits 0 "data show shows a data set"
is "$(sed -n 1p out)" "         @@@@@@@@@  @@@@@@@@@@@@@@@@@@" \
    "where there are no colours, with characters that cover as much as pixels are bright"
is "$(grep -c @ out)" 18 "an image that is twice as high as wide has as many lines as columns"
is "$(tail -n 1 out | tr -s ' ')" "1 0" "its labels stand below"

run data show idx path="$PWD" images=images labels=labels --color always
is "$(sed -n 1p out | grep -o '38;5;231m' | wc -l)" 27 \
    "with colours a cell has two of the 256, of its upper and its lower half"
COLORTERM=truecolor run data show idx path="$PWD" images=images labels=labels \
    --color always
is "$(sed -n 1p out | grep -o '48;2;255;255;255m' | wc -l)" 27 \
    "or two of all colours, where the terminal says that it has them"

# What a cell is made of: its halves, means of pixels, the light of colours.
idx() { # FILE HEIGHT WIDTH CODE: an image whose bytes are CODE of 0, 1, ...
    perl -e 'my ($h, $w, $code) = @ARGV; my $f = eval "sub { $code }"; binmode STDOUT;
        print pack("N4", 0x803, 1, $h, $w), pack "C*", map { &$f % 256 } 0 .. $h * $w - 1' \
        "$2" "$3" "$4" >"$1"
}
printf '\000\000\010\001\000\000\000\001\000' >one
idx shaped 2 2 '$_ < 2 ? 0 : 255'
COLORTERM=truecolor run data show idx path="$PWD" images=shaped labels=one --color always
is "$(sed -n 5p out | grep -o '38;2;0;0;0m.\[48;2;255;255;255m' | wc -l | tr -d ' ')" 18 \
    "where black meets white in a cell, its upper half is black and its lower half white"
idx shaped 576 576 '$_ % 2 * 255'
COLORTERM=truecolor run data show idx path="$PWD" images=shaped labels=one --color always
is "$(grep -o '[34]8;2;[0-9;]*m' out | cut -d';' -f3- | sort -u)" '128;128;128m' \
    "as many black pixels as white ones are half as bright, rounded"
npy() { # FILE SHAPE: bytes as an array
    perl -e 'my $shape = shift; binmode STDIN; binmode STDOUT; local $/;
        my $head = "{\x27descr\x27: \x27|u1\x27, \x27fortran_order\x27: False, \x27shape\x27: $shape, }";
        $head .= " " x (63 - (10 + length $head) % 64) . "\n";
        print "\x93NUMPY\x01\x00", pack("v", length $head), $head, <STDIN>' "$2" >"$1"
}
mkdir colors
perl -e 'binmode STDOUT; print map { pack "C*", (@$_) x 4 } [255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]' |
    npy colors/x.npy '(4, 2, 2, 3)'
printf '\000\001\002\003' | npy colors/y.npy '(4,)'
run data show npy path="$PWD/colors" num_classes=4 split=train --limit 4
# shellcheck disable=SC2046
is "$(
    set -- $(tail -n 1 out)
    for column in 1 21 41 61; do
        echo "$1$(sed -n 1p out | cut -c$column)"
        shift
    done | sort | tr '\n' ' ')" "0: 1+ 2. 3@ " "green is brighter than red, and red than blue"

run data show idx path="$PWD" images=images labels=labels --limit 1 --json
says out '"target"' "in JSON a sample has its fields by name"
is "$(tr -d ' \n' <out | sed 's/.*"target"://')" '{"shape":[],"values":[1]}}]' \
    "with their shape and values, as many samples as the limit says"

# What a recipe's transforms do is seen: normalised values are drawn as the pixels they were.
cat >r.yaml <<Y
max_duration: 1ep
seed: 3
model: mlp
train_data:
  name: idx
  path: $PWD
  images: images
  labels: labels
  batch_size: 2
  shuffle: false
  transforms:
    - center_crop: {size: 2}
    - normalize: {mean: [0.3], std: [0.2]}
eval_data: {name: synthetic_tokens, seq_len: 4, vocab_size: 9, num_samples: 4}
Y
run data show r.yaml
is "$(sed -n 1p out)" "         @@@@@@@@@  @@@@@@@@@@@@@@@@@@" "a recipe's pictures are those of the data"
is "$(grep -c @ out)" 9 "cut as its transforms say"
run data show r.yaml --without center_crop
is "$(grep -c @ out)" 18 "a transform can be left out by its name"
run data show r.yaml --without 0,1
is "$(grep -c @ out)" 18 "or by its place"
run data show r.yaml --without flip
exits 64 "one that is not there: exit 64"
says err "no such transform" "says so"
run data show r.yaml --from 1 --limit 1 --json
is "$(tr -d ' \n' <out | sed 's/.*"target"://')" '{"shape":[],"values":[0]}}]' \
    "the first sample can be another"
run data show r.yaml --from 2 --limit 1
exits 65 "which must be there: exit 65"
run data show r.yaml --pictures --without 1
is "$(tr -d ' \n' <out | grep -o '"counts":\[1,1\]')" '"counts":[1,1]' \
    "for screens classes are counted"
is "$(tr -d ' \n' <out | grep -o '"transforms":.*}\],"first"')" \
    '"transforms":[{"name":"center_crop","on":true},{"name":"normalize","on":false}],"first"' \
    "the transforms said, and which are on"
is "$(tr -d ' \n' <out | grep -o '"rgb":"[0-9a-f]*"' | head -n 1)" '"rgb":"000000ffffff000000ffffff"' \
    "and pictures given as RGB"
# Pictures of every shape are drawn within 48 pixels a side, and keep their shape.
for shape in "2 3 2 3" "48 48 48 48" "96 48 48 24" "2 100 1 48" "100 2 48 1" "49 49 48 48"; do
    # shellcheck disable=SC2086
    set -- $shape
    idx shaped "$1" "$2" '$_'
    run data show idx path="$PWD" images=shaped labels=one --pictures
    is "$(tr -d ' \n' <out | perl -ne '/"h":(\d+),"w":(\d+),"rgb":"([0-9a-f]*)"/ && print "$1 $2 ", length $3')" \
        "$3 $4 $(($3 * $4 * 6))" "a picture of $1 x $2 has $3 x $4 pixels for a screen"
done
# first EVERY: the first bytes of the pixels of the last picture, each EVERY-th
first() {
    tr -d ' \n' <out | perl -ne 'BEGIN { $e = shift @ARGV }
        /"rgb":"([0-9a-f]*)"/; @p = map { hex substr $1, 6 * $_, 2 } 0 .. length($1) / 6 - 1;
        print join " ", @p[map { $_ * $e } 0 .. 3]' "$1"
}
idx shaped 96 96 'int($_ / 96) * 2'
run data show idx path="$PWD" images=shaped labels=one --pictures
is "$(first 48)" "0 4 8 12" "of rows each second is drawn where there are twice as many"
idx shaped 96 96 '$_ % 96 * 2'
run data show idx path="$PWD" images=shaped labels=one --pictures
is "$(first 1)" "0 4 8 12" "so it is of columns"
printf 'a,b,c,y\n1,2,3,no\n4,5,6,yes\n7,8,9,no\n' >three.csv
run data show table path="$PWD/three.csv" target=y test_fraction=0 --pictures --limit 3
is "$(tr -d ' \n' <out | grep -o '"values":\[[-0-9.,e]*\]' | sort -u | wc -l | tr -d ' ')" 3 \
    "each row has its own numbers"
is "$(tr -d ' \n' <out | grep -o '"counted":3\|"counts":\[2,1\]' | sort | tr '\n' ' ')" \
    '"counted":3 "counts":[2,1] ' "and its class is counted"

run data show r.yaml eval_data --limit 2
is "$(grep -c '^sample' out) $(grep -c '^  tokens: [0-9 ]*$' out)" "2 2" \
    "tokens of no bytes are numbers"
printf 'In the beginning\n\033[2J was the word' >w.txt
run data show text_bytes path=w.txt seq_len=30 split=train --limit 1
is "$(sed -n 2p out)" '  tokens: In the beginning\n\x1b[2J was the ' \
    "bytes are text, and what would move the terminal is not"

run data show r.yaml test_data
exits 64 "a recipe has train_data and eval_data to show: exit 64"
says err "not 'test_data'" "with what was asked"
run data show nosuch.yaml
exits 66 "what is neither a data set nor a recipe: exit 66"
run data show
exits 64 "nothing to show: exit 64"

# ---- more than one row, and masks ----

# Five pictures of 2 x 4 pixels, and the class of each of their pixels.
mkdir masked many
perl -e 'binmode STDOUT; print pack "C*", map { $_ * 6 } 0 .. 39' | npy masked/x.npy '(5, 2, 4, 1)'
perl -e 'binmode STDOUT; print pack "C*", 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 5, 5, 0, 0, 5, 5, 0, 7, 7, 7, 0, 0, 0, 0,
    (9) x 8, 11, 0, 0, 0, 13, 0, 0, 0' | npy masked/y.npy '(5, 2, 4)'
masked="npy path=masked num_classes=14 shuffle=false"
# shellcheck disable=SC2086
{
    prints data-show-masks "five pictures are two rows, each above what is in its mask" data show $masked --limit 5
    prints data-show-masks-pictures "for screens each has its mask and both, and pixels are counted" \
        data show $masked --pictures --limit 3
    COLORTERM=truecolor prints data-show-masks-colors "in colours masks lie over their pictures" \
        data show $masked --limit 5 --color always
}
perl -e 'binmode STDOUT; print pack "C*", map { $_ * 3 } 0 .. 63' | npy many/x.npy '(2, 4, 8, 1)'
perl -e 'binmode STDOUT; print pack "C*", map({ 2 * $_ } 0 .. 31), map { 2 * $_ + 1 } 0 .. 31' | npy many/y.npy '(2, 4, 8)'
run data show npy path=masked num_classes=14 shuffle=false --pictures --limit 2 --from 2
is "$(tr -d ' \n' <out | grep -o '"first":2\|"target":"[^"]*"' | tr '\n' ' ')" \
    '"first":2 "target":"38%7" "target":"100%9" ' "for screens they say which they are"
run data show npy path=many num_classes=64 shuffle=false --color always
is "$(tail -n 6 out | sed 's/\x1b\[[0-9;]*m//g; s/██//g' | awk '{ print $1 "-" $NF, length <= 58 }' | tr '\n' ' ')" \
    "1-12 1 13-23 1 24-34 1 35-45 1 46-56 1 57-63 1 " "swatches of the classes of all samples go on in the next line"
run data show npy path=many num_classes=64 shuffle=false --limit 1 --color always
is "$(tail -n 3 out | sed 's/\x1b\[[0-9;]*m//g; s/██//g' | tr -s ' \n' ' ')" \
    " $(seq -s ' ' 2 2 62) " "those that no sample has are left out"

# ---- words and numbers, more than one sample ----

printf 'In the beginning\nwas \177\200\377 the word, and more words are here' >bytes.txt
mkdir -p words/train words/test
printf 'the beginning of it\nis a word\n' >words/train/lines.txt
cp words/train/lines.txt words/test/
words="masked_text path=words seq_len=8 tokenizer=$ET_SRCDIR/t/golden/tokenizers/bert.json document=line"
text="text_bytes path=bytes.txt seq_len=16 shuffle=false"
# shellcheck disable=SC2086
{
    prints data-show-bytes "each sample of bytes has its own" data show $text --limit 3
    prints data-show-bytes-pictures "for screens one by one" data show $text --limit 2 --pictures
    prints data-show-words-pictures "tokens as their words, and what is to be guessed" \
        data show $words split=train mask_prob=0.5 shuffle=false --limit 2 --pictures
}
printf 'label\tsentence\nlong\tin the beginning\nshort\tgo\nshort\tto\n' >rows.tsv
prints data-show-labelled-pictures "texts with a class each, which are counted, too" \
    data show labelled_text path="$dir/rows.tsv" tokenizer=bytes seq_len=8 --pictures
perl -e 'print "x" x 400' >long.txt
for many in 256 257; do
    run data show text_bytes path=long.txt seq_len=$many --limit 1
    is "$(sed -n 's/^  tokens: x*//p' out)" "$([ $many = 256 ] || echo " ... of 257")" "of $many tokens 256 are shown"
done
for many in 12 13; do
    perl -e '$many = shift; print join(",", map "c$_", 1 .. $many), ",y\n"; print join(",", map $_ + $r * 50, 1 .. $many), ",0\n" while $r++ < 3' $many >wide.csv
    run data show table path=wide.csv target=y standardize=false test_fraction=0 shuffle=false --limit 2
    is "$(sed -n 's/^  values: //p' out | awk '{ print $1, $12, $13, $NF }' | tr '\n' ';')" \
        "$([ $many = 12 ] && echo "51 62  62;101 112  112;" || echo "51 62 ... 13;101 112 ... 13;")" \
        "of $many numbers 12 are shown"
done
mkdir large
for many in 4096 4097; do
    perl -e 'binmode STDOUT; print pack "C*", map { $_ % 251 } 1 .. 2 * $ARGV[0]' $many | npy large/x.npy "(2, 1, $many, 1)"
    printf '\001\000' | npy large/y.npy '(2,)'
    run data show npy path=large num_classes=2 --limit 2 --json
    is "$(tr -d ' \n' <out | grep -o "\"shape\":\[1,1,$many\][,}]" | tr '\n' ' ')" \
        "$([ $many = 4096 ] && echo '"shape":[1,1,4096], "shape":[1,1,4096],' || echo '"shape":[1,1,4097]} "shape":[1,1,4097]}') " \
        "JSON has the values of pictures of 4096 at most, not of $many: $([ $many = 4096 ] && echo some || echo none)"
done

# ---- which samples ----

# values: the first number of each sample, in their order
values() { # ARGS...
    run data show "$@" --json
    tr -d ' \n' <out | grep -o '"values":{"shape":\[1\],"values":\[[-0-9.]*' | sed 's/.*\[//; s/[.]0$//' | tr '\n' ' '
}
perl -e 'print "a,y\n"; print "$_,0\n" for 1 .. 20' >rows.csv
cat >t.yaml <<Y
max_duration: 1ep
seed: 3
model: mlp
train_data: {name: table, path: $PWD/rows.csv, target: y, standardize: false, test_fraction: 0, batch_size: 4}
eval_data: {name: table, path: $PWD/rows.csv, target: y, standardize: false, test_fraction: 0, batch_size: 3, split: train}
Y
is "$(values t.yaml eval_data --limit 5)" "1 2 3 4 5 " "data to evaluate with have their own order"
is "$(values t.yaml eval_data)" "1 2 3 4 5 6 7 8 " "eight of them where no limit says otherwise"
is "$(values t.yaml eval_data --limit 2)" "1 2 " "less than a batch where it does"
is "$(values t.yaml eval_data --limit 4 --from 8)" "9 10 11 12 " "or from any on"
first=$(values t.yaml --limit 20)
is "$(echo "$first" | tr ' ' '\n' | sort -n | tr -s '\n' ' ')" " $(seq -s ' ' 1 20) " "an epoch to train has each once"
isnt() { # GOT OTHER NAME
    [ "$1" != "$2" ] && [ -n "$1" ]
    ok $? "$3"
}
isnt "$first" "$(seq -s ' ' 1 20) " "in an order of its own"
is "$(values t.yaml --limit 20)" "$first" "which is the same each time"
is "$(values t.yaml --limit 5 --from 10)" "$(echo "$first" | cut -d' ' -f11-15) " "from any on"
isnt "$(values t.yaml --limit 20 seed=4)" "$first" "another with another seed"
isnt "$(values t.yaml --limit 20 --epoch 1)" "$first" "and in the second epoch"
isnt "$(values t.yaml --limit 20 --epoch 2)" "$(values t.yaml --limit 20 --epoch 1)" "and in the third"

# ---- transforms, several at once ----

idx eight 8 8 '$_ * 3'
cat >three.yaml <<Y
max_duration: 1ep
seed: 3
model: mlp
train_data:
  name: idx
  path: $PWD
  images: eight
  labels: one
  batch_size: 2
  shuffle: false
  transforms:
    - center_crop: {size: 6}
    - resize: {size: 3}
    - normalize: {mean: [0.5], std: [0.25]}
Y
sides() { # ARGS...: the size of a picture, and which transforms are on
    run data show three.yaml --pictures --limit 1 "$@"
    tr -d ' \n' <out | perl -ne '/"h":(\d+),"w":(\d+)/ && print "$1 $2:"; print " $1$2" while /"name":"(\w+)","on":(\w)/g'
}
is "$(sides)" "3 3: center_cropt resizet normalizet" "of three transforms all are on"
is "$(sides --without resize)" "6 6: center_cropt resizef normalizet" "but one"
is "$(sides --without 1,center_crop)" "8 8: center_cropf resizef normalizet" "but two, one by its name"
is "$(sides --without 2,0)" "3 3: center_cropf resizet normalizef" "but the first and the last"
is "$(sides --without 0,1,2)" "8 8: center_cropf resizef normalizef" "or none is"
for name in resiz resizes 3 center_crop,flip; do
    run data show three.yaml --without $name
    exits 64 "$name names no transform: exit 64"
done

# ---- inspect ----

for kinds in 32 33; do
    perl -e 'binmode STDOUT; print pack "C*", 0 .. 65' | npy large/x.npy '(66, 1, 1, 1)'
    perl -e 'binmode STDOUT; print pack "C*", map { $_ % $ARGV[0] } 0 .. 65' $kinds | npy large/y.npy '(66,)'
    run data inspect npy path=large num_classes=$kinds
    is "$(grep -c '^label ' out) $(grep -c "66 of 1 x 1, 1 channel, $kinds classes" out)" "$((kinds == 32 ? 32 : 0)) 1" \
        "up to 32 kinds are listed, of $kinds $([ $kinds = 32 ] && echo all || echo none)"
    run data inspect npy path=large num_classes=$kinds --limit 3
    is "$(grep -c '^read  *3$' out)" 1 "so many samples are read as the limit says"
done
for words in "ls x" "inspect idx x" "show idx eval_data x"; do
    # shellcheck disable=SC2086
    run data $words
    exits 64 "data $words has one operand too many: exit 64"
done
finish
