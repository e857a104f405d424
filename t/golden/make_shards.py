#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_shards.py [FOLDER]: writes t/fuzz/shards-seeds: shards as webdataset and
MosaicML's Streaming write them (PyPI's webdataset 1.0.2, mosaicml-streaming 0.13.0,
numpy), and CSV and .npy files. The first byte of each says what it is (t/fuzz/shards.c).
With FOLDER, also a folder of each, as they are."""
import io
import os
import shutil
import sys
import tarfile
import tempfile

import numpy as np
import streaming
import webdataset

here = os.path.dirname(os.path.abspath(__file__))
pictures = os.path.join(here, "..", "fuzz", "pictures-seeds")
seeds = os.path.join(here, "..", "fuzz", "shards-seeds")
keep = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()
os.makedirs(seeds, exist_ok=True)
os.makedirs(keep, exist_ok=True)


def seed(name, kind, data):
    with open(os.path.join(seeds, name), "wb") as f:
        f.write(kind + data)


def load(path):
    with open(path, "rb") as f:
        return f.read()


def picture(name):
    return load(os.path.join(pictures, name))


# Three samples; keys with folders; one file without a key's point.
samples = [("a/000", "rgb.png", 2), ("a/001.x", "444.jpg", 0), ("b/000", "alpha.png", 5)]
path = os.path.join(keep, "classes.tar")
with webdataset.TarWriter(path) as out:
    for key, name, label in samples:
        ending = name[-3:]
        out.write({"__key__": key.split(".")[0], ending: picture(name), "cls": label,
                   "json": {"label": "kind %d" % label, "of": [1, 2]}})
seed("tar-webdataset", b"t", load(path))

# Long names, in the ways of GNU and of pax; folders and links between.
for form, name in (tarfile.GNU_FORMAT, "gnu"), (tarfile.PAX_FORMAT, "pax"):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=form) as t:
        t.addfile(tarfile.TarInfo("folder"))
        link = tarfile.TarInfo("link.png")
        link.type, link.linkname = tarfile.SYMTYPE, "x" * 150
        t.addfile(link)
        for ending, content in ("png", picture("rgb.png")), ("txt", b" a kind \n"):
            info = tarfile.TarInfo("d\u00e9" * 70 + "." + ending)
            info.size = len(content)
            t.addfile(info, io.BytesIO(content))
    seed("tar-" + name, b"t", data.getvalue())

# Masks, whose endings have a point; and a file without one.
data = io.BytesIO()
with tarfile.open(fileobj=data, mode="w", format=tarfile.USTAR_FORMAT) as t:
    for name, content in (("README", b"no sample"), ("x.png", picture("rgb.png")),
                          ("x.seg.png", picture("palette.png"))):
        info = tarfile.TarInfo(name)
        info.size = len(content)
        t.addfile(info, io.BytesIO(content))
seed("tar-masks", b"t", data.getvalue())


def write(folder, columns, rows, **options):
    shutil.rmtree(folder, ignore_errors=True)
    with streaming.MDSWriter(out=folder, columns=columns, **options) as out:
        for row in rows:
            out.write(row)


folder = os.path.join(keep, "mds_images")
write(folder, {"image": "bytes", "label": "int", "name": "str"},
      [{"image": picture(name), "label": label, "name": key}
       for key, name, label in samples])
seed("mds-index", b"i", load(os.path.join(folder, "index.json")))
seed("mds-images", b"m", load(os.path.join(folder, "shard.00000.mds")))
packed = os.path.join(keep, "mds_packed")
write(packed, {"image": "bytes", "label": "int", "name": "str"},
      [{"image": picture(name), "label": label, "name": key}
       for key, name, label in samples], compression="zstd:3")
seed("mds-packed-index", b"i", load(os.path.join(packed, "index.json")))
seed("mds-packed", b"z", load(os.path.join(packed, "shard.00000.mds.zstd")))

# 0, 1, 2, ... in samples of 7, in each of the encodings.
tokens = np.arange(70).reshape(10, 7)
for name, encoding, dtype in (("dynamic", "ndarray", "uint16"), ("typed", "ndarray:int32", "int32"),
                              ("static", "ndarray:uint16:7", "uint16"), ("bytes", "bytes", "int64")):
    rows = [{"tokens": row.astype(dtype)} for row in tokens]
    if encoding == "bytes":
        rows = [{"tokens": row["tokens"].tobytes()} for row in rows]
    folder = os.path.join(keep, "mds_" + name)
    write(folder, {"tokens": encoding}, rows, size_limit=1 << 10)
    seed("mds-%s-index" % name, b"i", load(os.path.join(folder, "index.json")))
    seed("mds-" + name, b"k", load(os.path.join(folder, "shard.00000.mds")))

# Texts, as Composer's C4 has them, in two shards.
folder = os.path.join(keep, "mds_texts")
write(folder, {"from": "str", "number": "int", "text": "str"},
      [{"from": "u%d" % i, "number": i, "text": "line %d of the text, and God said" % i}
       for i in range(40)], size_limit=2000)
seed("mds-text-index", b"i", load(os.path.join(folder, "index.json")))
for i in 0, 1:
    seed("mds-text-%d" % i, b"m", load(os.path.join(folder, "shard.%05d.mds" % i)))

seed("csv-quotes", b"c", b'a,b\r\n"x ""y""\n z",2\r\n\r\n,3')
seed("csv-plain", b"c", b"\xef\xbb\xbffile,label\na.png,cat\nb.png,dog\n")
seed("csv-open", b"c", b'a,b\n1,"2\n')
for name, array in ("u1", np.arange(6, dtype=np.uint8).reshape(2, 3)), ("f4", np.ones(4, np.float32)):
    data = io.BytesIO()
    np.save(data, array)
    seed("npy-" + name, b"n", data.getvalue())
