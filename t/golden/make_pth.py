# SPDX-License-Identifier: Apache-2.0
"""Writes t/fuzz/pth-seeds: files of torch.save, which t/unit/pth.c reads, and of which
t/fuzz/pth.c makes damaged copies.

Tensor number k of a file is k, k + 1/2, k + 1, ... as far as its dtype has them."""
import collections
import io
import os
import struct
import zipfile
import zlib

import torch

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz", "pth-seeds")


def tensor(k, shape, dtype=torch.float32):
    count = int(torch.Size(shape).numel())
    return (k + torch.arange(count, dtype=torch.float64) / 2).reshape(shape).to(dtype)


def save(what, **how):
    f = io.BytesIO()
    torch.save(what, f, **how)
    return f.getvalue()


def members(data):
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        return [(i.filename, z.read(i)) for i in z.infolist()]


def zip64(data):
    """The same with every size and place in 64 bits."""
    body, directory = b"", b""
    for name, content in members(data):
        n, crc = name.encode(), zlib.crc32(content)
        at = len(body)
        body += struct.pack("<IHHHHHIIIHH", 0x04034B50, 45, 0, 0, 0, 0, crc, 0xFFFFFFFF,
                            0xFFFFFFFF, len(n), 20)
        body += n + struct.pack("<HHQQ", 1, 16, len(content), len(content)) + content
        extra = struct.pack("<HHQQQ", 1, 24, len(content), len(content), at)
        directory += struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 45, 45, 0, 0, 0, 0, crc,
                                 0xFFFFFFFF, 0xFFFFFFFF, len(n), len(extra), 0, 0, 0, 0,
                                 0xFFFFFFFF) + n + extra
    count, at = len(members(data)), len(body)
    end = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, count, count,
                      len(directory), at)
    locator = struct.pack("<IIQI", 0x07064B50, 0, at + len(directory), 1)
    last = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return body + directory + end + locator + last


def deflated(data):
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w", zipfile.ZIP_DEFLATED) as z:
        for name, content in members(data):
            z.writestr(name, content)
    return f.getvalue()


def beyond(data):
    """The same, but its view begins at element 5 in place of 2."""
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w") as z:
        for name, content in members(data):
            z.writestr(name, content.replace(b"QK\2", b"QK\5"))
    return f.getvalue()


class Evil:
    def __reduce__(self):
        return os.system, ("echo it ran",)


def main():
    linear = torch.nn.Linear(3, 2)
    linear.weight.data, linear.bias.data = tensor(0, (2, 3)), tensor(1, (2,))
    plain = save(linear.state_dict())
    table = tensor(0, (4, 2))
    kinds = collections.OrderedDict(
        half=tensor(0, (3,), torch.float16), brain=tensor(1, (2, 2), torch.bfloat16),
        double=tensor(2, (2,), torch.float64), long=tensor(3, (), torch.int64),
        int=tensor(4, (2,), torch.int32), byte=tensor(5, (2,), torch.uint8),
        none=tensor(6, (0, 3)))
    files = {
        "plain": plain,
        "kinds": save(kinds),
        "nested": save({"epoch": 3, "lr": 0.5, "state_dict": linear.state_dict(),
                        "names": ["a", None, True], "big": 1 << 40, "less": -7}),
        "shared": save({"table": table, "rows": table[1:3], "copy": table}),
        "sizes": save({"two": tensor(0, (300, 1), torch.uint8),
                       "four": tensor(1, (0, 70000)), "most": tensor(2, (0, 65535))}),
        "zip64": zip64(plain),
        "deflated": deflated(plain),
        "evil": save({"a": tensor(0, (2,)), "b": Evil()}),
        "beyond": beyond(save({"table": table, "rows": table[1:3]})),
        "strided": save({"t": table.t()}),
        "short": save({"s": tensor(0, (2,), torch.int16)}),
        "number": save(7),
        "old": save(linear.state_dict(), _use_new_zipfile_serialization=False),
        "protocol4": save(linear.state_dict(), pickle_protocol=4),
    }
    os.makedirs(OUT, exist_ok=True)
    for name, data in files.items():
        with open(os.path.join(OUT, name), "wb") as f:
            f.write(data)
    for name in ("plain", "nested", "protocol4", "evil"):  # behind a 0: see t/fuzz/pth.c
        pickle = next(c for n, c in members(files[name]) if n.endswith("data.pkl"))
        with open(os.path.join(OUT, f"{name}-pickle"), "wb") as f:
            f.write(b"\0" + pickle)


main()
