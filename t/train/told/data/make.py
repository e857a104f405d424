#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the pictures beside it: images/*.png, a bright shape on a dim ground, and
masks/*.png with 1 where the shape is a box, 2 where it is a disc; kinds.csv names them
with their class and the share of the picture that is covered."""
import os
import random
import struct
import zlib

W, H = 14, 12
here = os.path.dirname(os.path.abspath(__file__))


def png(path, color, rows):
    def chunk(kind, data):
        sum = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", sum)
    head = struct.pack(">IIBBBBB", W, H, 8, color, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + bytes(r) for r in rows), 9)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data)
                + chunk(b"IEND", b""))


rng = random.Random(12)
lines = ["file,kind,covered"]
for folder in ("images", "masks"):
    os.makedirs(os.path.join(here, folder), exist_ok=True)
for i in range(10):
    kind = 1 + i % 2
    y, x, size = rng.uniform(3, H - 3), rng.uniform(3, W - 3), rng.uniform(2, 4)
    inside = [[(abs(r - y) <= size and abs(c - x) <= size) if kind == 1 else
               (r - y) ** 2 + (c - x) ** 2 <= size ** 2 for c in range(W)] for r in range(H)]
    color = [rng.randint(120, 255) for _ in range(3)]
    image = [[v for c in range(W) for v in
              (color if inside[r][c] else [rng.randint(0, 90) for _ in range(3)])]
             for r in range(H)]
    png(os.path.join(here, "images", f"{i}.png"), 2, image)
    png(os.path.join(here, "masks", f"{i}.png"), 0,
        [[kind * v for v in row] for row in inside])
    covered = sum(map(sum, inside)) / (W * H)
    lines.append(f"{i}.png,{('box', 'disc')[kind - 1]},{covered:.3f}")
with open(os.path.join(here, "kinds.csv"), "w", encoding="ascii") as f:
    f.write("\n".join(lines) + "\n")
