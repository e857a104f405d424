#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Composer's recipes for data that are not here: each fits the schema, and its model fits
# data of the layout that it names. Their pictures are one pixel.
. "$(dirname "$0")/cli.sh"
recipes=$ET_SRCDIR/recipes

# picture FILE: a PNG of one coloured pixel; mask FILE: of one grey one, of class 1
picture() {
    echo iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGMQUDAAAACkAGE0Zn1yAAAAAElFTkSuQmCC |
        base64 -d >"$1"
}
mask() {
    echo iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgBAAAAwACS/Xd6gAAAABJRU5ErkJggg== |
        base64 -d >"$1"
}

for part in train val; do
    mkdir -p imagenet/$part/one
    for i in 1 2 3 4 5 6 7 8; do
        picture imagenet/$part/one/$i.png
    done
done
for part in training validation; do
    mkdir -p ade/images/$part ade/annotations/$part
    for i in 1 2 3 4 5 6 7 8; do
        picture ade/images/$part/$i.png
        mask ade/annotations/$part/$i.png
    done
done

# fits RECIPE [KEY=VALUE...]
fits() {
    name=$1
    shift
    run validate "$recipes/composer_$name.yaml" "$@"
    says out "its model fits its data" "$name: its model fits its data"
    says "$recipes/composer_$name.yaml" "# Source: mosaicml/" "says whose it is"
}
for name in mild medium hot; do
    fits resnet50_$name train_data.path="$PWD/imagenet" eval_data.path="$PWD/imagenet"
done
for name in baseline mild medium hot; do
    fits ade20k_$name train_data.path="$PWD/ade" eval_data.path="$PWD/ade"
done
fits cifar_resnet56
fits gpt2_125m
fits bert_base
is "$(ls "$recipes"/composer_*.yaml | wc -l | tr -d ' ')" 10 "these are all"
finish
