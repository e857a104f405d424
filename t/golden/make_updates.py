#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes updates.txt: parameters after updates by each optimizer but Muon, which
t/unit/updates.c does again. Gradients change sign and fall, so that averages lag behind
them and the largest second moment is not the last one; halfway the rate falls to a third.

Those of torch.optim are PyTorch's, those that it lacks the formulas of their papers (and
Composer's, for decay apart from the rate), in f64 (what is compared with) and in f32."""
import torch

from golden import unit

STEPS = 20
PARAMS = {"matrix": (6, 4), "bias": (5,)}


def values(stream, shape, dtype):
    n = torch.Size(shape).numel()
    return torch.from_numpy(2 * unit(stream, n) - 1).float().to(dtype).reshape(shape)


class Formula(torch.optim.Optimizer):
    """step_one(p, g, lr, n, state) changes p; n counts from 1."""

    def __init__(self, params, lr, **options):
        super().__init__(params, {"lr": lr})
        self.initial_lr, self.o, self.n = lr, options, 0

    @torch.no_grad()
    def step(self):
        self.n += 1
        for group in self.param_groups:
            for p in group["params"]:
                self.step_one(p, p.grad, group["lr"], self.n, self.state[p])


class Lion(Formula):  # arXiv 2302.06675, algorithm 2
    def step_one(self, p, g, lr, n, state):
        b1, b2 = self.o["betas"]
        m = state.setdefault("m", torch.zeros_like(p))
        p -= lr * (torch.sign(b1 * m + (1 - b1) * g) + self.o["weight_decay"] * p)
        state["m"] = b2 * m + (1 - b2) * g


class LAMB(Formula):  # arXiv 1904.00962, algorithm 2, with phi(z) = z
    def step_one(self, p, g, lr, n, state):
        b1, b2 = self.o["betas"]
        state["m"] = b1 * state.get("m", 0) + (1 - b1) * g
        state["v"] = b2 * state.get("v", 0) + (1 - b2) * g * g
        r = state["m"] / (1 - b1**n) / ((state["v"] / (1 - b2**n)).sqrt() + self.o["eps"])
        r = r + self.o["weight_decay"] * p
        p -= lr * p.norm() / r.norm() * r


class DecoupledSGDW(Formula):  # Composer, decoupled_weight_decay.py
    def step_one(self, p, g, lr, n, state):
        p *= 1 - lr / self.initial_lr * self.o["weight_decay"]
        m = self.o["momentum"]
        state["m"] = m * state["m"] + (1 - self.o["dampening"]) * g if "m" in state else g
        p -= lr * (g + m * state["m"] if self.o["nesterov"] else state["m"])


class DecoupledAdamW(Formula):  # Composer, decoupled_weight_decay.py
    def step_one(self, p, g, lr, n, state):
        p *= 1 - lr / self.initial_lr * self.o["weight_decay"]
        b1, b2 = self.o["betas"]
        state["m"] = b1 * state.get("m", 0) + (1 - b1) * g
        state["v"] = v = b2 * state.get("v", 0) + (1 - b2) * g * g
        if self.o["amsgrad"]:
            state["most"] = v = torch.maximum(state.get("most", v), v)
        p -= lr / (1 - b1**n) * state["m"] / ((v / (1 - b2**n)).sqrt() + self.o["eps"])


O = torch.optim
CASES = [  # the optimizer and its options as a recipe writes them, and who does it
    ("sgd lr=0.1", O.SGD, {"lr": 0.1}),
    ("sgd lr=0.1 momentum=0.9 weight_decay=0.05", O.SGD,
     {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.05}),
    ("sgd lr=0.1 momentum=0.8 dampening=0.5", O.SGD,
     {"lr": 0.1, "momentum": 0.8, "dampening": 0.5}),
    ("sgd lr=0.1 momentum=0.8 nesterov=true weight_decay=0.05", O.SGD,
     {"lr": 0.1, "momentum": 0.8, "nesterov": True, "weight_decay": 0.05}),
    ("adam lr=0.05", O.Adam, {"lr": 0.05}),
    ("adam lr=0.05 betas=[0.8,0.6] eps=0.01 weight_decay=0.1", O.Adam,
     {"lr": 0.05, "betas": (0.8, 0.6), "eps": 0.01, "weight_decay": 0.1}),
    ("adam lr=0.05 betas=[0.8,0.6] amsgrad=true", O.Adam,
     {"lr": 0.05, "betas": (0.8, 0.6), "amsgrad": True}),
    ("adamw lr=0.05 betas=[0.8,0.6] weight_decay=0.2", O.AdamW,
     {"lr": 0.05, "betas": (0.8, 0.6), "weight_decay": 0.2}),
    ("adamw lr=0.05 betas=[0.7,0.5] amsgrad=true eps=0.01", O.AdamW,
     {"lr": 0.05, "betas": (0.7, 0.5), "amsgrad": True, "eps": 0.01}),
    ("radam lr=0.05 betas=[0.8,0.9]", O.RAdam, {"lr": 0.05, "betas": (0.8, 0.9)}),
    ("radam lr=0.05 betas=[0.7,0.95] eps=0.01 weight_decay=0.1", O.RAdam,
     {"lr": 0.05, "betas": (0.7, 0.95), "eps": 0.01, "weight_decay": 0.1}),
    ("rmsprop lr=0.01", O.RMSprop, {"lr": 0.01}),
    ("rmsprop lr=0.01 alpha=0.7 eps=0.01 momentum=0.6 weight_decay=0.1", O.RMSprop,
     {"lr": 0.01, "alpha": 0.7, "eps": 0.01, "momentum": 0.6, "weight_decay": 0.1}),
    ("lion lr=0.02 betas=[0.6,0.9] weight_decay=0.1", Lion,
     {"lr": 0.02, "betas": (0.6, 0.9), "weight_decay": 0.1}),
    ("lamb lr=0.02 betas=[0.8,0.6] eps=0.01 weight_decay=0.1", LAMB,
     {"lr": 0.02, "betas": (0.8, 0.6), "eps": 0.01, "weight_decay": 0.1}),
    ("decoupled_sgdw lr=0.1 momentum=0.8 dampening=0.3 weight_decay=0.01", DecoupledSGDW,
     {"lr": 0.1, "momentum": 0.8, "dampening": 0.3, "nesterov": False,
      "weight_decay": 0.01}),
    ("decoupled_sgdw lr=0.1 momentum=0.8 nesterov=true weight_decay=0.01", DecoupledSGDW,
     {"lr": 0.1, "momentum": 0.8, "dampening": 0, "nesterov": True,
      "weight_decay": 0.01}),
    ("decoupled_adamw lr=0.05 betas=[0.8,0.6] eps=0.01 weight_decay=0.01", DecoupledAdamW,
     {"lr": 0.05, "betas": (0.8, 0.6), "eps": 0.01, "amsgrad": False,
      "weight_decay": 0.01}),
    ("decoupled_adamw lr=0.05 betas=[0.8,0.6] eps=0.01 amsgrad=true weight_decay=0", DecoupledAdamW,
     {"lr": 0.05, "betas": (0.8, 0.6), "eps": 0.01, "amsgrad": True, "weight_decay": 0}),
]


def run(make, options, dtype):
    params = [torch.nn.Parameter(values(i, shape, dtype))
              for i, shape in enumerate(PARAMS.values())]
    optimizer = make(params, **options)
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = options["lr"] / (1 if step < STEPS / 2 else 3)
        for i, p in enumerate(params):
            # The scale is the same in f32 and f64: a power of two.
            p.grad = values(100 * (step + 1) + i, p.shape, dtype) * 0.5 ** (step // 4)
        optimizer.step()
    return [p.detach().double().flatten() for p in params]


with open("updates.txt", "w") as f:
    f.write(f"# parameters after {STEPS} updates, row-major; PyTorch {torch.__version__}\n")
    for text, make, options in CASES:
        exact, rounded = (run(make, options, d) for d in (torch.float64, torch.float32))
        f.write(f"case {text}\n")
        for name, a in zip(PARAMS, exact):
            f.write(" ".join([name] + [f"{v:.9g}" for v in a.tolist()]) + "\n")
        worst = max((a - b).abs().max().item() for a, b in zip(exact, rounded))
        print(f"{text}: f32 {worst:.1e} off")
