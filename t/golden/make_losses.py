#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes losses.txt: each loss by name, its mean over a batch and the gradient of that,
which t/unit/losses.c does again. A case is the loss, its options, and the shape of the
outputs; behind it the loss, and the gradient, row-major.

Outputs are 3 values() of stream 1. Targets: classes are 7 i mod C at place i, and -100
where i mod 5 is 4; numbers are 2 values() of stream 2; shares the softmax of these.
PyTorch's losses in f64, torchvision's for focal; those that add up classes (focal, binary
cross entropy) are means over the samples of such sums."""
import torch
import torch.nn.functional as F
from torchvision.ops import sigmoid_focal_loss

from golden import unit


def values(stream, shape, scale):
    n = torch.Size(shape).numel()
    return (torch.from_numpy(2 * unit(stream, n) - 1).float().double() * scale).reshape(shape)


def classes(z, ignored=True, last=False):
    shape = z.shape[:-1] if last else z.shape[:1] + z.shape[2:]
    c = z.shape[-1] if last else z.shape[1]
    i = torch.arange(torch.Size(shape).numel())
    t = 7 * i % c
    return torch.where(i % 5 == 4, -100, t).reshape(shape) if ignored else t.reshape(shape)


def one_hot(z):
    return torch.movedim(F.one_hot(classes(z, False), z.shape[1]), -1, 1).double()


def numbers(z):
    return values(2, z.shape, 2)


def shares(z):
    return torch.softmax(numbers(z), 1)


def dice(z):
    p, t = torch.softmax(z, 1).flatten(2), one_hot(z).flatten(2)
    return (1 - (2 * (p * t).sum(2) + 1) / (p.sum(2) + t.sum(2) + 1)).mean()


def focal(z, gamma, alpha):
    return sigmoid_focal_loss(z, one_hot(z), alpha, gamma, "none").sum(1).mean()


W = torch.tensor([0.5, 2.0, 1.0, 0.25], dtype=torch.float64)
CASES = [
    ("soft_cross_entropy", "classes", (10, 4), lambda z: F.cross_entropy(z, classes(z))),
    ("soft_cross_entropy", "shares", (6, 4), lambda z: F.cross_entropy(z, shares(z))),
    ("soft_cross_entropy", "classes", (2, 4, 3, 2), lambda z: F.cross_entropy(z, classes(z))),
    ("binary_cross_entropy_with_logits", "all", (6, 3), lambda z:
     F.binary_cross_entropy_with_logits(z, one_hot(z), reduction="none").sum(1).mean()),
    ("dice", "all", (2, 3, 3, 2), dice),
    ("mse", "numbers", (5, 3), lambda z: F.mse_loss(z, numbers(z))),
    ("mse", "numbers", (7, 1), lambda z: F.mse_loss(z, numbers(z))),
    ("l1", "numbers", (5, 3), lambda z: F.l1_loss(z, numbers(z))),
    ("huber", "numbers", (5, 3), lambda z: F.huber_loss(z, numbers(z))),
    ("huber delta=0.4", "numbers", (5, 3), lambda z: F.huber_loss(z, numbers(z), delta=0.4)),
    ("focal", "all", (6, 3), lambda z: focal(z, 2, 0.25)),
    ("focal gamma=1.5 alpha=-1", "all", (6, 3), lambda z: focal(z, 1.5, -1)),
    ("cross_entropy", "classes", (10, 4), lambda z: F.cross_entropy(z, classes(z))),
    ("cross_entropy weight=[0.5,2,1,0.25]", "classes", (10, 4),
     lambda z: F.cross_entropy(z, classes(z), W)),
    ("cross_entropy smoothing=0.1", "classes", (10, 4),
     lambda z: F.cross_entropy(z, classes(z), label_smoothing=0.1)),
    ("cross_entropy weight=[0.5,2,1,0.25] smoothing=0.2", "classes", (2, 4, 3, 2),
     lambda z: F.cross_entropy(z, classes(z), W, label_smoothing=0.2)),
    ("cross_entropy ignore_index=2", "all", (10, 4),
     lambda z: F.cross_entropy(z, classes(z, False), ignore_index=2)),
    ("cross_entropy ignore_index=0", "all", (10, 4),
     lambda z: F.cross_entropy(z, classes(z, False), ignore_index=0)),
    ("focal alpha=0", "all", (6, 3), lambda z: focal(z, 2, 0)),
    ("focal gamma=0 alpha=1", "all", (6, 3), lambda z: focal(z, 0, 1)),
    ("masked_language", "classes", (2, 5, 4), lambda z:
     F.cross_entropy(z.flatten(0, 1), classes(z, last=True).flatten())),
]

with open("losses.txt", "w") as f:
    f.write(f"# losses and their gradients; PyTorch {torch.__version__}\n")
    for name, target, shape, loss_of in CASES:
        z = values(1, shape, 3).requires_grad_()
        loss = loss_of(z)
        loss.backward()
        f.write(f"case {target} {'x'.join(map(str, shape))} {name}\n{loss.item():.9g}")
        f.write("".join(f" {v:.9g}" for v in z.grad.flatten().tolist()) + "\n")
