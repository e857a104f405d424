#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a notebook does with Etude: trains, watches, looks at a metric, predicts.

    PYTHONPATH=python ETUDE_LIBRARY=build/.libs/libetude.so.1 python3 examples/notebook.py

Needs python3-numpy. The recipe is written here, so that the example needs no data; a path
of a recipe, "recipes/fashion_mnist.yaml", does as well.
"""
import tempfile

import numpy as np

import etude

RECIPE = """\
model: {name: mlp, hidden: 32}
train_data: {name: synthetic_images, type: separable, channels: 1, resolution: 8,
  num_samples: 512, num_unique: 512, batch_size: 32}
eval_data: {name: synthetic_images, type: separable, channels: 1, resolution: 8,
  num_samples: 128, num_unique: 128, batch_size: 32}
optimizer: {name: adamw, lr: 0.01}
max_duration: 4ep
"""


class Worst(etude.Callback):
    """Keeps the largest loss of a batch."""

    loss = 0.0

    def on_batch_end(self, state):
        self.loss = max(self.loss, state.loss)


with tempfile.TemporaryDirectory() as folder:
    path = folder + "/recipe.yaml"
    with open(path, "w", encoding="utf-8") as f:
        f.write(RECIPE)

    worst = Worst()
    with etude.Session(path, "seed=1", directory=folder + "/run", callbacks=[worst],
                       progress=True) as s:
        s.fit()
        accuracy = s.eval()["metrics/eval/Accuracy"]

    loss = etude.Run(folder + "/run")["loss/train/total"]
    print("loss %.3f at batch %d, %.3f at batch %d; at worst %.3f" % (
        loss["value"][0], loss["ba"][0], loss["value"][-1], loss["ba"][-1], worst.loss))

    # What a user has is bytes: the checkpoint's recipe says what becomes of them.
    with etude.load(folder + "/run") as model:
        pixels = np.zeros((2, *model.sample), np.uint8)
        scores = model.predict(pixels)
    print("accuracy %.3f; of two black images class %d" % (accuracy, scores[0].argmax()))
    assert np.array_equal(scores[0], scores[1]) and loss["value"][-1] < loss["value"][0]
