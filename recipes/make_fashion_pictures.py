#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_fashion_pictures.py [FOLDER [SOURCE]]: writes Fashion-MNIST as pictures into
FOLDER, or here, for the recipes fashion_folder and fashion_segmentation:

    fashion_folder/train/CLASS/NUMBER.jpg       and val: JPEG of quality 95
    fashion_segmentation/train/images/NUMBER.png, masks/NUMBER.png       and val: PNG

A mask is 1 + the class where the picture is not black, and 0 elsewhere. SOURCE is the
folder of the four IDX files, where Debian's dataset-fashion-mnist puts them. Needs
PyPI's Pillow. The 210,000 files take 840 MB, of which most is what a file system adds to
small ones."""
import gzip
import os
import sys

from PIL import Image

SIDE = 28
CLASSES = ["t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt",
           "sneaker", "bag", "ankle-boot"]

to = sys.argv[1] if len(sys.argv) > 1 else "."
source = sys.argv[2] if len(sys.argv) > 2 else "/usr/share/datasets/fashion-mnist"


def read(name, header):
    with gzip.open(os.path.join(source, name + ".gz")) as f:
        return f.read()[header:]


def folder(*parts):
    path = os.path.join(to, *parts)
    os.makedirs(path, exist_ok=True)
    return path


for split, prefix in ("train", "train"), ("val", "t10k"):
    pixels = read(prefix + "-images-idx3-ubyte", 16)
    labels = read(prefix + "-labels-idx1-ubyte", 8)
    pictures = [folder("fashion_folder", split, name) for name in CLASSES]
    images = folder("fashion_segmentation", split, "images")
    masks = folder("fashion_segmentation", split, "masks")
    for i, label in enumerate(labels):
        grey = pixels[i * SIDE * SIDE:(i + 1) * SIDE * SIDE]
        image = Image.frombytes("L", (SIDE, SIDE), grey)
        image.save(os.path.join(pictures[label], f"{i:05}.jpg"), quality=95)
        image.save(os.path.join(images, f"{i:05}.png"))
        mask = bytes(label + 1 if v else 0 for v in grey)
        Image.frombytes("L", (SIDE, SIDE), mask).save(os.path.join(masks, f"{i:05}.png"))
