#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JPEG pictures of 500 x 375 to random parts of 224 x 224, flipped and normalised: Etude
against torchvision (by Pillow, and by its own decoder on tensors) and simplejpeg with
torchvision's transforms, each on one core.

    bench/data/decode.py --build BUILD [--seconds 3] [--rounds 3]

Pictures are parts of scikit-learn's two photographs, at qualities from 85 to 95. Rounds
go through all of them in turn; the ratios are medians over rounds, so that what else the
machine does falls on all alike.
"""
import sys

sys.path.pop(0)  # this folder, whose tokenize.py is not Python's own

import argparse
import io
import json
import os
import statistics
import subprocess
import tempfile
import time

import numpy
import simplejpeg
import sklearn
import torch
from PIL import Image
from torchvision import io as pictures
from torchvision import transforms
from torchvision.transforms import v2

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
PILLOW = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(),
                             transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
TENSORS = v2.Compose([v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip(),
                      v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])


def make(folder, n=64):
    base = os.path.join(os.path.dirname(sklearn.__file__), "datasets", "images")
    photos = [Image.open(os.path.join(base, f)).convert("RGB") for f in ("china.jpg", "flower.jpg")]
    draw = numpy.random.default_rng(0)
    for i in range(n):
        photo = photos[i % 2]
        high = int(photo.size[1] * draw.uniform(0.8, 1))
        wide = min(photo.size[0], high * 4 // 3)
        x, y = draw.integers(0, photo.size[0] - wide + 1), draw.integers(0, photo.size[1] - high + 1)
        part = photo.crop((x, y, x + wide, y + high)).resize((500, 375), Image.BICUBIC)
        part.save(f"{folder}/{i:03}.jpg", quality=int(draw.integers(85, 96)))


def rate(f, files, seconds):
    begin, n = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        f(files[n % len(files)])
        n += 1
    return n / (time.perf_counter() - begin)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--build", default="build")
    args.add_argument("--seconds", type=float, default=3)
    args.add_argument("--rounds", type=int, default=3)
    args = args.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        make(folder)
        files = [open(f"{folder}/{f}", "rb").read() for f in sorted(os.listdir(folder))]
        size = sum(map(len, files)) / len(files)
        peers = {
            "torchvision, Pillow": lambda b: PILLOW(Image.open(io.BytesIO(b)).convert("RGB")),
            "torchvision, tensors": lambda b: TENSORS(
                pictures.decode_jpeg(torch.frombuffer(bytearray(b), dtype=torch.uint8))),
            "simplejpeg": lambda b: TENSORS(
                torch.from_numpy(simplejpeg.decode_jpeg(b)).permute(2, 0, 1)),
        }
        rates = {name: [] for name in ["etude", *peers]}
        for _ in range(args.rounds):
            out = subprocess.run([f"{args.build}/bench/data/decode", folder, str(args.seconds)],
                                 check=True, capture_output=True, text=True).stdout
            own = json.loads(out)
            rates["etude"].append(own["pictures_per_second"])
            for name, f in peers.items():
                rates[name].append(rate(f, files, args.seconds))
    print(f"{len(files)} files of {size / 1000:.0f} kB; last round of Etude: {out.strip()}")
    for name, r in rates.items():
        ratio = statistics.median(e / p for e, p in zip(rates["etude"], r))
        print(f"{name:22} {statistics.median(r):8.1f} pictures/s   Etude is {ratio:.2f} times as fast")


if __name__ == "__main__":
    sys.exit(main())
