#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_fashion_scenes.py [FOLDER [SOURCE]]: writes pictures of 64 pixels into
FOLDER/fashion_scenes, or here, for the recipes scenes_*: each piece of Fashion-MNIST
enlarged to 36 to 60 pixels, somewhere before a background of its own.

    fashion_scenes/train/CLASS/NUMBER.jpg     the first 4,000 pictures of the training part
    fashion_scenes/val/CLASS/NUMBER.jpg       the first 5,000 of the test part

SOURCE is the folder of the IDX files, where Debian's dataset-fashion-mnist puts them. Needs
PyPI's Pillow. The random numbers are Python's own, from seed 17."""
import gzip
import os
import random
import sys

from PIL import Image

SIDE, SCENE = 28, 64
CLASSES = ["t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt",
           "sneaker", "bag", "ankle-boot"]

to = sys.argv[1] if len(sys.argv) > 1 else "."
source = sys.argv[2] if len(sys.argv) > 2 else "/usr/share/datasets/fashion-mnist"


def read(name, header):
    with gzip.open(os.path.join(source, name + ".gz")) as f:
        return f.read()[header:]


def background(draw):
    """Grey that changes from one corner to the other, with some noise."""
    corners = Image.new("L", (2, 2))
    corners.putdata([draw.randrange(160) for _ in range(4)])
    noise = Image.new("L", (SCENE, SCENE))
    noise.putdata([draw.randrange(256) for _ in range(SCENE * SCENE)])
    smooth = corners.resize((SCENE, SCENE), Image.BILINEAR)
    return Image.blend(smooth, noise, 0.15)


def scene(grey, draw):
    piece = Image.frombytes("L", (SIDE, SIDE), grey)
    mask = piece.point(lambda v: 255 if v else 0)
    side = draw.randint(36, 60)
    at = draw.randint(0, SCENE - side), draw.randint(0, SCENE - side)
    image = background(draw)
    image.paste(piece.resize((side, side), Image.BICUBIC), at,
                mask.resize((side, side), Image.BILINEAR))
    return image


for split, prefix, n in ("train", "train", 4000), ("val", "t10k", 5000):
    draw = random.Random(f"17 {split}")
    pixels = read(prefix + "-images-idx3-ubyte", 16)
    labels = read(prefix + "-labels-idx1-ubyte", 8)
    for name in CLASSES:
        os.makedirs(os.path.join(to, "fashion_scenes", split, name), exist_ok=True)
    for i in range(n):
        image = scene(pixels[i * SIDE * SIDE:(i + 1) * SIDE * SIDE], draw)
        image.save(os.path.join(to, "fashion_scenes", split, CLASSES[labels[i]],
                                f"{i:05}.jpg"), quality=90)
