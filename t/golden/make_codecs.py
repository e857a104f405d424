#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small pictures in every form that is read to ../fuzz/pictures-seeds, and for each
NAME to ../image/expected the file NAME.rgb: its width and height, one byte each, then the
pixels that Pillow's convert("RGB") finds in it. t/image/decode.c compares; t/fuzz/pictures
damages them."""
import os
import struct
import zlib

import numpy
from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "../fuzz/pictures-seeds")
EXPECTED = os.path.join(HERE, "../image/expected")
H, W = 37, 50


def smooth(h=H, w=W):
    y, x = numpy.mgrid[0:h, 0:w]
    r = 128 + 110 * numpy.sin(x / 5.0) * numpy.cos(y / 7.0)
    g = 255.0 * x / w
    b = 255.0 * ((y // 6 + x // 6) % 2) * 0.8
    return numpy.stack([r, g, b], -1).round().astype(numpy.uint8)


def save(name, image, rgb=None, **options):
    path = os.path.join(FOLDER, name)
    image.save(path, **options)
    expect(name, rgb)


def expect(name, rgb=None):
    path = os.path.join(FOLDER, name)
    if rgb is None:
        rgb = numpy.asarray(Image.open(path).convert("RGB"))
    with open(os.path.join(EXPECTED, name + ".rgb"), "wb") as f:
        f.write(bytes([rgb.shape[1], rgb.shape[0]]) + rgb.tobytes())


def chunk(kind, data):
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def own_png(path, rgb, values, depth, interlaced):
    """What Pillow does not write: 16 bits of colours, passes; and a gamma to be ignored."""
    h, w, _ = rgb.shape
    passes = [(0, 8, 0, 8), (0, 8, 4, 8), (4, 8, 0, 4), (0, 4, 2, 4), (2, 4, 0, 2), (0, 2, 1, 2),
              (1, 2, 0, 1)] if interlaced else [(0, 1, 0, 1)]
    rows = b"".join(b"\0" + row.tobytes() for y, dy, x, dx in passes
                    for row in values[y::dy, x::dx] if row.size)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n"
                + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, 2, 0, 0, interlaced))
                + chunk(b"gAMA", struct.pack(">I", 100000))
                + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


if __name__ == "__main__":
    os.makedirs(FOLDER, exist_ok=True)
    os.makedirs(EXPECTED, exist_ok=True)
    rgb = smooth()
    image = Image.fromarray(rgb)
    grey = image.convert("L")
    exif = Image.Exif()
    exif[0x0112] = 6  # turned to the right: not applied
    save("420.jpg", image, quality=85, subsampling=2)
    save("444.jpg", image, quality=90, subsampling=0)
    save("422.jpg", image, quality=80, subsampling=1, exif=exif)
    save("progressive.jpg", image, quality=80, progressive=True)
    save("grey.jpg", grey, quality=85)
    save("cmyk.jpg", image.convert("CMYK"), quality=90)
    small = smooth(15, 21)
    few = Image.fromarray(small)
    save("rgb.png", few, small, optimize=True)
    alpha = few.copy()
    alpha.putalpha(Image.fromarray(small[:, :, 1]))
    save("alpha.png", alpha, small, optimize=True)
    save("grey.png", few.convert("L"), optimize=True)
    save("bits.png", few.convert("1"), optimize=True)
    palette = few.quantize(12)
    save("palette.png", palette, optimize=True, transparency=3)
    deep = (small.astype(numpy.uint16) << 8 | 0x5A).astype(">u2")
    own_png(os.path.join(FOLDER, "deep.png"), small, deep, 16, 0)
    expect("deep.png", small)
    own_png(os.path.join(FOLDER, "interlaced.png"), small, small, 8, 1)
    expect("interlaced.png", small)
    save("lossy.webp", image, quality=80)
    save("lossless.webp", alpha, small, lossless=True, exact=True)
