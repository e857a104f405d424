#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes plateau.txt: the rates that torch.optim.lr_scheduler.ReduceLROnPlateau sets.

A line: mode, threshold_mode, threshold, factor, patience, cooldown, min_lr, and how
often the rate was lowered before each of 60 epochs, whose metric is that of metric().
Made with PyTorch 2.15.0.
"""
import math
import warnings

import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau

EPOCHS = 60
ROWS = [
    ("min", "rel", 0.01, 0.5, 3, 2, 0.0),
    ("min", "abs", 0.05, 0.1, 2, 0, 0.0),
    ("max", "rel", 0.1, 0.5, 5, 0, 0.02),
    ("max", "abs", 0.0, 0.25, 0, 4, 0.0),
]


def metric(k):
    if k in (7, 8):
        return math.nan
    return abs(math.sin(1.7 * k)) / (1 + 0.05 * k)


def main():
    warnings.simplefilter("ignore")
    print("# Made by make_plateau.py")
    for mode, threshold_mode, threshold, factor, patience, cooldown, min_lr in ROWS:
        weight = torch.nn.Parameter(torch.zeros(1))
        optimizer = torch.optim.SGD([weight], lr=1.0)
        scheduler = ReduceLROnPlateau(
            optimizer, mode, factor=factor, patience=patience, threshold=threshold,
            threshold_mode=threshold_mode, cooldown=cooldown, min_lr=min_lr, eps=0)
        rates = []
        for k in range(EPOCHS):
            rates.append(optimizer.param_groups[0]["lr"])
            scheduler.step(metric(k))
        print(mode, threshold_mode, threshold, factor, patience, cooldown, min_lr,
              *("%.9g" % r for r in rates))


if __name__ == "__main__":
    main()
