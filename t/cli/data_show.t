#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `etude data show`: samples as they reach the model, as pictures, words and numbers.
. "$(dirname "$0")/cli.sh"

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
finish
