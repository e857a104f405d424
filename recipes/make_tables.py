#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_tables.py [FOLDER]: writes diabetes.csv, breast_cancer.csv and wine.csv there, or
here: the tables that scikit-learn (PyPI's scikit-learn) brings, for the recipes of these
names. Classes are written as their names."""
import csv
import os
import sys

from sklearn import datasets

folder = sys.argv[1] if len(sys.argv) > 1 else "."
os.makedirs(folder, exist_ok=True)
for name in "diabetes", "breast_cancer", "wine":
    options = {"scaled": False} if name == "diabetes" else {}
    table = getattr(datasets, "load_" + name)(**options)
    kinds = getattr(table, "target_names", None)
    with open(os.path.join(folder, name + ".csv"), "w", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(list(table.feature_names) + ["target"])
        for row, target in zip(table.data, table.target):
            out.writerow([f"{v:.9g}" for v in row] +
                         [f"{target:.9g}" if kinds is None else kinds[target]])
