#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes augment.txt: what the image augmentations of MosaicML Composer (0.32) make of
the pictures of make_pictures.py and of a small batch for given draws, which tests in
t/algorithms do again. A line is a word, its arguments, "=", and what came out.

    op KIND PICTURE SEVERITY U U = VALUE BYTES    (hexadecimal)
    augmix PICTURE M W... : KIND VALUE ... / ... = BYTES
    box H W LAMBDA Y X = TOP LEFT BOTTOM RIGHT LAMBDA
    cutmix LAMBDA Y X INDEX... = LAMBDA NUMBERS
    cutout H W LENGTH Y X ... = NUMBERS           (0 in holes, 1 elsewhere)
    colout H W P_ROW P_COL = ROWS COLUMNS         (how many are kept)

Needs numpy, torch, torchvision, Pillow, and mosaicml, whose functions are called with
numpy.random replaced by the draws."""
import contextlib
import importlib
import sys
from unittest import mock

import numpy
import PIL
import torch
from PIL import Image, ImageEnhance, ImageOps

from golden import unit
from make_methods import composer, load_composer, package
from make_pictures import picture

KINDS = ["autocontrast", "equalize", "posterize", "rotate", "solarize", "shear_x",
         "shear_y", "translate_x", "translate_y", "color", "contrast", "brightness",
         "sharpness", "color_original", "contrast_original", "brightness_original",
         "sharpness_original"]
# How much of a draw's text is written: enough to be the same number again.
EXACT = "{:.17g}".format


@contextlib.contextmanager
def draws(*u):
    """numpy.random gives the numbers U: of [0, 1) and scaled to what is asked for, or
    whole ones as they are."""
    left = list(u)

    def uniform(low=0.0, high=1.0):
        return low + (high - low) * left.pop(0)

    def randint(low, high=None):
        return left.pop(0)

    with mock.patch.multiple(numpy.random, uniform=uniform, random=uniform,
                             randint=randint):
        yield


@contextlib.contextmanager
def spied(found):
    """Notes the number that Pillow is called with, the outermost call's first."""

    def noting(where, name, value_of):
        call = getattr(where, name)

        def run(*args, **more):
            found.append(value_of(*args))
            return call(*args, **more)

        return mock.patch.object(where, name, run)

    def place(image, size, method, m, *rest):
        return m[1] or m[3] or m[2] or m[5]

    with contextlib.ExitStack() as all:
        for spy in (noting(ImageOps, "posterize", lambda image, bits: bits),
                    noting(ImageOps, "solarize", lambda image, threshold: threshold),
                    noting(Image.Image, "rotate", lambda image, degrees: degrees),
                    noting(Image.Image, "transform", place),
                    noting(ImageEnhance._Enhance, "enhance", lambda self, factor: factor)):
            all.enter_context(spy)
        yield


def image_of(name):
    p = picture(name)
    return Image.fromarray(p[:, :, 0] if p.shape[2] == 1 else p)


def run(kind, image, severity, u):
    found = []
    with draws(*u), spied(found):
        out = getattr(primitives, kind)(image, severity)
    return (found[0] if found else 0), out


def op_lines(f):
    n = 0
    for k, kind in enumerate(KINDS):
        for name in ["rgb", "grey", "dim"] + ["large"] * (kind == "equalize"):
            for severity in (0.7, 9):
                u = unit(1000 + 10 * n, 2)
                n += 1
                value, out = run(kind, image_of(name), severity, u)
                f.write(f"op {k} {name} {EXACT(severity)} {EXACT(u[0])} {EXACT(u[1])} = ")
                f.write(f"{EXACT(float(value))} {numpy.asarray(out).tobytes().hex()}\n")


def augmix_line(f, name, m, w, chains):
    """CHAINS of (kind, severity, u): the ops as they are, the mixing as Composer's."""
    values = []

    def op(kind, severity, u):
        def augment(image, level):
            value, out = run(kind, image, severity, u)
            values[-1].append((KINDS.index(kind), float(value)))
            return out

        return augment

    order = [op(*step) for chain in chains for step in chain]
    lengths = [len(chain) for chain in chains]

    def randint(low, high):
        values.append([])
        return lengths[len(values) - 1]

    with mock.patch.multiple(numpy.random, dirichlet=lambda a: numpy.array(w),
                             beta=lambda a, b: m, randint=randint,
                             choice=lambda s: order.pop(0)):
        out = augmix_image(image_of(name), width=len(w), augmentation_set=None)
    ops = " / ".join(" ".join(f"{k} {EXACT(v)}" for k, v in chain) for chain in values)
    f.write(f"augmix {name} {EXACT(m)} {' '.join(EXACT(v) for v in w)} : {ops} = ")
    f.write(numpy.asarray(out).tobytes().hex() + "\n")


def augmix_lines(f):
    chains = [[("rotate", 5, (0.7, 0.2)), ("color", 5, (0.9, 0.4))],
              [("posterize", 9, (0.8, 0.0))],
              [("shear_x", 9, (0.6, 0.9)), ("equalize", 1, ()), ("sharpness", 4, (0.6, 0.5))]]
    for name in ("rgb", "grey"):
        augmix_line(f, name, 0.37, [0.2, 0.5, 0.3], chains)
        augmix_line(f, name, 0.0, [0.2, 0.5, 0.3], chains)
        augmix_line(f, name, 1.0, [1.0], chains[1:2])


def box_lines(f):
    for H, W in ((32, 32), (13, 20)):
        for lam in (0.0, 0.25, 0.5, 0.75, 0.99, 1.0):
            for y, x in ((H // 2, W // 2), (0, 0), (H - 1, 3)):
                box = rand_bbox(H, W, lam, cx=y, cy=x)
                adjusted = adjust_lambda(torch.zeros(1, 1, H, W), box)
                f.write(f"box {H} {W} {lam} {y} {x} = {' '.join(str(int(v)) for v in box)} ")
                f.write(EXACT(float(adjusted)) + "\n")


def cutmix_line(f, lam, y, x, index):
    images = torch.from_numpy(unit(77, 3 * 2 * 4 * 5)).float().reshape(3, 2, 4, 5)
    box = rand_bbox(4, 5, lam, cx=y, cy=x)
    out, _, adjusted, _ = cutmix_batch(images, torch.zeros(3), bbox=box,
                                       indices=torch.tensor(index))
    f.write(f"cutmix {lam} {y} {x} {' '.join(map(str, index))} = {EXACT(float(adjusted))} ")
    f.write(" ".join(f"{v:.9g}" for v in out.flatten().tolist()) + "\n")


def cutout_line(f, H, W, length, *places):
    with draws(*places):
        out = cutout_batch(torch.ones(2, 3, H, W), num_holes=len(places) // 2,
                           length=length)
    assert (out == out[:1, :1]).all()
    f.write(f"cutout {H} {W} {length} {' '.join(map(str, places))} = ")
    f.write(" ".join(str(int(v)) for v in out[0, 0].flatten().tolist()) + "\n")


def colout_line(f, H, W, p_row, p_col):
    out = colout_batch(torch.zeros(1, 1, H, W), p_row=p_row, p_col=p_col)
    f.write(f"colout {H} {W} {p_row} {p_col} = {out.shape[2]} {out.shape[3]}\n")


load_composer()
sys.modules["composer.utils"].add_vision_dataset_transform = None
package("utils")
primitives = importlib.import_module("composer.algorithms.utils.augmentation_primitives")
sys.modules["composer.algorithms.utils"].augmentation_sets = primitives.augmentation_sets
augmix_image = composer("augmix", "augmix_image")
rand_bbox = composer("cutmix", "_rand_bbox")
adjust_lambda = composer("cutmix", "_adjust_lambda")
cutmix_batch = composer("cutmix", "cutmix_batch")
cutout_batch = composer("cutout", "cutout_batch")
colout_batch = composer("colout", "colout_batch")

with open("augment.txt", "w") as out:
    out.write(f"# By make_augment.py; Composer 0.32, Pillow {PIL.__version__}\n")
    op_lines(out)
    augmix_lines(out)
    box_lines(out)
    cutmix_line(out, 0.5, 2, 2, [2, 0, 1])
    cutmix_line(out, 0.1, 0, 4, [1, 1, 0])
    cutout_line(out, 8, 8, 0.5, 0, 0)
    cutout_line(out, 8, 8, 0.5, 4, 4)
    cutout_line(out, 8, 8, 0.15, 4, 4)
    cutout_line(out, 8, 8, 0.4, 4, 4)
    cutout_line(out, 9, 7, 0.5, 8, 1, 2, 5)
    for row in ((224, 224, 0.15, 0.15), (32, 20, 0.15, 0.15), (10, 10, 0.3, 0.1),
                (10, 7, 0.9, 0.0), (13, 11, 0.25, 0.5)):
        colout_line(out, *row)
