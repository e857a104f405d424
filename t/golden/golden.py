# SPDX-License-Identifier: Apache-2.0
"""What the golden runs share with t/train/golden.c: numbers from a formula.

Weights, pixels, labels and tokens are hashes of (stream, index), so that a run is stored
as its losses alone. Each run is done in f64, which is what is compared with, and in f32,
whose distance from it says how far rounding alone carries these steps: it must be far
less than the test allows, or the run tests luck. And once more in f32 under autocast to
bf16, for mixed precision.
"""
import numpy
import torch


def unit(stream, n):
    """n numbers in [0, 1): a 32-bit integer hash (two multiplications, three shifts)."""
    x = numpy.arange(n, dtype=numpy.uint64) * 0x9E3779B1 + stream * 0x85EBCA77
    x &= 0xFFFFFFFF
    for shift, factor in ((16, 0x21F0AAAD), (15, 0x735A2D97)):
        x ^= x >> shift
        x = (x * factor) & 0xFFFFFFFF
    x ^= x >> 15
    return x.astype(numpy.float64) * 2.0**-32


def fill(model, scale, weight=1.0, bias=0.0):
    """Arrays of two and more axes: U(-scale, scale) by the stream of their position.
    Those of one axis: weight and bias."""
    with torch.no_grad():
        for stream, (name, p) in enumerate(model.named_parameters()):
            if p.ndim < 2:
                p.fill_(weight if name.endswith("weight") else bias)
                continue
            v = (2 * unit(stream, p.numel()) - 1) * scale(p)
            p.copy_(torch.from_numpy(v.astype(numpy.float32)).reshape(p.shape))


def losses(make_model, make_optimizer, batch, loss_of, steps, dtype, mixed=False):
    model = make_model().to(dtype)
    model.train()
    optimizer = make_optimizer(model)
    out = []
    for step in range(steps):
        x, target = batch(step)
        with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
            loss = loss_of(model(x.to(dtype) if x.is_floating_point() else x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        out.append(loss.item())
    return out


def write(path, about, *run):
    exact = losses(*run, torch.float64)
    rounded = losses(*run, torch.float32)
    mixed = losses(*run, torch.float32, mixed=True)
    with open(path, "w") as f:
        f.write(f"# {about}\n# step, loss in f64, in f32, in f32 with autocast to bf16; ")
        f.write(f"PyTorch {torch.__version__}\n")
        for step, (a, b, c) in enumerate(zip(exact, rounded, mixed)):
            f.write(f"{step} {a:.10g} {b:.10g} {c:.10g}\n")

    def worst(other):
        return max(abs(a - b) / a for a, b in zip(exact, other))

    print(f"{path}: {exact[0]:.4f} to {exact[-1]:.4f}, ", end="")
    print(f"f32 {worst(rounded):.1e} off, bf16 {worst(mixed):.1e}")
