#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes muon.txt: parameters after updates by torch.optim.Muon and torch.optim.AdamW,
which t/unit/muon.c does again. PyTorch iterates in bf16; here its own functions run with
that one word replaced, in f64 (what is compared with) and in f32."""
import inspect

import torch
import torch.optim._muon as muon

from golden import unit

SOURCE = inspect.getsource(muon._zeropower_via_newtonschulz)
STEPS = 4
PARAMS = {  # name: shape, as a matrix; None: AdamW's
    "tall": ((6, 4), (6, 4)),
    "wide": ((4, 7), (4, 7)),
    "filter": ((3, 2, 3, 3), (3, 18)),
    "bias": ((5,), None),
    "embedding": ((6, 4), None),
}
CASES = {  # options as a recipe writes them, for Muon and for AdamW
    "lr=0.02": {"lr": 0.02},
    "lr=0.05 momentum=0.8 nesterov=false weight_decay=0.1":
        {"lr": 0.05, "momentum": 0.8, "nesterov": False, "weight_decay": 0.1},
    "lr=0.02 adjust_lr=match_rms_adamw ns_steps=3":
        {"lr": 0.02, "adjust_lr_fn": "match_rms_adamw", "ns_steps": 3},
    "lr=0.02 adjust_lr=spectral_unclamped":
        {"lr": 0.02, "adjust_lr_fn": "spectral_unclamped"},
}


def values(stream, shape, dtype):
    n = torch.Size(shape).numel()
    return torch.from_numpy(2 * unit(stream, n) - 1).float().to(dtype).reshape(shape)


def use(dtype):
    scope = dict(vars(muon))
    exec(SOURCE.replace("torch.bfloat16", str(dtype)), scope)
    muon._zeropower_via_newtonschulz = scope["_zeropower_via_newtonschulz"]


def run(options, dtype):
    options_of_muon = {"weight_decay": 0.0, **options}
    matrices, others, all_of_them = [], [], []
    for i, (shape, matrix) in enumerate(PARAMS.values()):
        p = torch.nn.Parameter(values(i, matrix or shape, dtype))
        (matrices if matrix else others).append(p)
        all_of_them.append(p)
    optimizers = [
        muon.Muon(matrices, **options_of_muon),
        torch.optim.AdamW(others, lr=3e-4, betas=(0.9, 0.95), eps=1e-10,
                          weight_decay=options_of_muon["weight_decay"]),
    ]
    for step in range(STEPS):
        for i, p in enumerate(all_of_them):
            p.grad = values(100 * (step + 1) + i, p.shape, dtype)
        for o in optimizers:
            o.step()
    return [p.detach().double().flatten() for p in all_of_them]


def both(options):
    use("torch.float64")
    exact = run(options, torch.float64)
    use("torch.float32")
    return exact, run(options, torch.float32)


with open("muon.txt", "w") as f:
    f.write(f"# parameters after {STEPS} updates, row-major; PyTorch {torch.__version__}\n")
    worst = 0
    for text, options in CASES.items():
        exact, rounded = both(options)
        f.write(f"case {text}\n")
        for name, a, b in zip(PARAMS, exact, rounded):
            f.write(" ".join([name] + [f"{v:.9g}" for v in a.tolist()]) + "\n")
            worst = max(worst, (a - b).abs().max().item())
    print(f"muon.txt: f32 {worst:.1e} off")
