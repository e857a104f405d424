#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes pictures.txt: what Pillow makes of pictures of noise when it resizes them, and
torchvision (functional.v2, on bytes) when it changes them, which t/image/golden.c does
again. A line: the operation, its picture, its numbers, then the result's height, width
and channels, and its bytes in hexadecimal.

Pictures: "rgb" and "grey" are bytes of golden.unit; "dim" has them between 60 and 160;
"large" has pixels enough to be equalized. Their sizes are below.
"""
import numpy
import PIL
import torch
import torchvision
from PIL import Image
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as F

from golden import unit

SIZES = {"rgb": (13, 11, 3), "grey": (13, 11, 1), "dim": (13, 11, 3), "large": (30, 28, 3)}
FILTERS = {0: Image.NEAREST, 1: Image.BILINEAR, 2: Image.BICUBIC}
MODES = {0: InterpolationMode.NEAREST, 1: InterpolationMode.BILINEAR}


def picture(name):
    h, w, c = SIZES[name]
    stream = list(SIZES).index(name) + 1
    v = numpy.floor(unit(stream, h * w * c) * 256)
    if name == "dim":
        v = 60 + numpy.floor(v * 100 / 256)
    if name == "large":  # more dark values than bright ones
        v = numpy.floor(v * v / 256)
    return v.astype(numpy.uint8).reshape(h, w, c)


def resize(p, filter, h, w, y0, x0, y1, x1):
    image = Image.fromarray(p[:, :, 0] if p.shape[2] == 1 else p)
    image = image.crop((x0, y0, x1, y1)).resize((w, h), FILTERS[filter])
    return numpy.asarray(image).reshape(h, w, -1)


def on_tensor(f):
    def run(p, *args):
        t = torch.from_numpy(p.copy()).permute(2, 0, 1)
        return f(t, *args).permute(1, 2, 0).numpy()

    return run


def affine(t, mode, angle, dx, dy, scale, shear_x, shear_y):
    return F.affine(t, angle, [dx, dy], scale, [shear_x, shear_y], MODES[mode])


OPS = {
    "resize": resize,
    "affine": on_tensor(affine),
    "brightness": on_tensor(F.adjust_brightness),
    "contrast": on_tensor(F.adjust_contrast),
    "saturation": on_tensor(F.adjust_saturation),
    "hue": on_tensor(F.adjust_hue),
    "grey": on_tensor(lambda t: F.rgb_to_grayscale(t, num_output_channels=3)),
    "invert": on_tensor(F.invert),
    "posterize": on_tensor(F.posterize),
    "solarize": on_tensor(F.solarize),
    "autocontrast": on_tensor(F.autocontrast),
    "equalize": on_tensor(F.equalize),
    "sharpness": on_tensor(F.adjust_sharpness),
    "blur": on_tensor(lambda t, size, sigma: F.gaussian_blur(t, [size, size], [sigma, sigma])),
}

CASES = [
    ("resize", "rgb", 1, 6, 7, 0, 0, 13, 11),
    ("resize", "rgb", 1, 17, 8, 2, 1, 11, 10),
    ("resize", "rgb", 1, 1, 2, 0, 0, 13, 11),
    ("resize", "rgb", 2, 6, 7, 0, 0, 13, 11),
    ("resize", "rgb", 2, 17, 14, 1, 2, 12, 10),
    ("resize", "rgb", 0, 9, 16, 1, 2, 12, 10),
    ("resize", "grey", 1, 5, 19, 0, 0, 13, 11),
    ("resize", "grey", 2, 8, 6, 0, 0, 13, 11),
    ("affine", "rgb", 1, 25, 0, 0, 1, 0, 0),
    ("affine", "rgb", 1, 0, 2, -1, 1, 0, 0),
    ("affine", "rgb", 1, -70, 1.5, 0.25, 0.8, 12, -7),
    ("affine", "rgb", 0, 25, 1, 0, 1.3, 0, 0),
    ("affine", "grey", 1, 10, 0, 0, 1, 20, 0),
    ("affine", "grey", 0, -40, 0, 2, 0.7, 0, 9),
    ("brightness", "rgb", 0.6),
    ("brightness", "grey", 1.7),
    ("contrast", "rgb", 0.5),
    ("contrast", "rgb", 1.6),
    ("contrast", "grey", 0.3),
    ("saturation", "rgb", 0),
    ("saturation", "rgb", 0.4),
    ("saturation", "rgb", 1.8),
    ("hue", "rgb", -0.5),
    ("hue", "rgb", -0.15),
    ("hue", "dim", 0.1),
    ("hue", "rgb", 0.33),
    ("grey", "rgb"),
    ("invert", "grey"),
    ("posterize", "rgb", 3),
    ("solarize", "rgb", 100),
    ("autocontrast", "dim"),
    ("autocontrast", "grey"),
    ("equalize", "large"),
    ("equalize", "rgb"),
    ("sharpness", "rgb", 0),
    ("sharpness", "rgb", 2.5),
    ("sharpness", "grey", 0.5),
    ("blur", "rgb", 5, 1.2),
    ("blur", "grey", 3, 0.5),
    ("blur", "rgb", 9, 2),
]

if __name__ == "__main__":
    with open("pictures.txt", "w") as f:
        f.write(f"# By make_pictures.py; torchvision {torchvision.__version__}, ")
        f.write(f"Pillow {PIL.__version__}\n")
        for op, name, *args in CASES:
            out = OPS[op](picture(name), *args)
            numbers = " ".join(f"{a:g}" for a in args)
            shape = " ".join(str(n) for n in out.shape)
            f.write(f"{op} {name} {numbers} = {shape} {out.astype(numpy.uint8).tobytes().hex()}\n")
