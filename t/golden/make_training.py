#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes training.txt: the weights to which MosaicML Composer (0.32) trains a small
network with some of its methods, alone and several at once. t/algorithms/training.c does
the same.

The network has no kinks (SiLU, averages), so that rounding does not grow; all is in f64.
Data are the counted images of t/data/fixture.h: pixel (y, x) of sample i is (7 i + 8 y +
x) mod 256, of 255, and its class is i. Weights are set from a formula (golden.py) once
the methods have changed the network, and the biases of what they added with them. Where
a method draws at random, Composer is given the draws that Etude makes (draws.py).

Needs torch and mosaicml with what it imports; mcli, which it asks for and does not use
here, is stood in for."""
import contextlib
import importlib.machinery
import sys
from unittest import mock

for name in ("mcli", "mcli.sdk"):
    module = mock.MagicMock()
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    module.__path__ = []
    sys.modules[name] = module

import composer  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402
from composer import algorithms as methods  # noqa: E402
from composer.loss import soft_cross_entropy  # noqa: E402
from composer.models import ComposerModel  # noqa: E402
from torch import nn  # noqa: E402

from draws import MIX, SELECT, Draws  # noqa: E402
from golden import unit  # noqa: E402

SAMPLES, BATCH, STEPS, SEED = 16, 4, 12, 17
HEIGHT, WIDTH = 6, 8


class Net(ComposerModel):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.SiLU(),
            nn.Conv2d(4, 6, 3, stride=2, padding=1, bias=False), nn.SiLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, SAMPLES)).double()

    def forward(self, batch):
        return self.net(batch[0])

    def loss(self, outputs, batch, reduction="mean"):
        return soft_cross_entropy(outputs, batch[1], reduction=reduction)


def data():
    i = torch.arange(SAMPLES).reshape(-1, 1, 1, 1)
    y = torch.arange(HEIGHT).reshape(1, 1, -1, 1)
    x = torch.arange(WIDTH).reshape(1, 1, 1, -1)
    pixels = ((7 * i + 8 * y + x) % 256).float() / 255
    set_ = torch.utils.data.TensorDataset(pixels.double(), torch.arange(SAMPLES))
    return torch.utils.data.DataLoader(set_, BATCH, shuffle=False)


def parameters(model):
    return [(n.removeprefix("net."), p) for n, p in model.named_parameters()]


def fill(model):
    with torch.no_grad():
        for stream, (_, p) in enumerate(parameters(model)):
            v = (2 * unit(stream, p.numel()) - 1).astype("float32")
            p.copy_(torch.from_numpy(v).double().reshape(p.shape) * 0.5)


class Steps:
    """METHOD's draws of STREAM, anew for each step: begin() is called once a step."""

    def __init__(self, method, stream=MIX):
        self.method, self.stream, self.step = method, stream, -1

    def begin(self, part=0):
        self.step += 1
        self.draws = self.at(part)

    def at(self, part):
        return Draws(SEED, self.stream, self.step * BATCH, self.method, part)


def module(name):
    return importlib.import_module(f"composer.algorithms.{name}.{name}")


def mixup():
    s = Steps("mixup")

    def coefficient(alpha):
        s.begin()
        b = s.draws.beta(alpha, alpha)
        return float(numpy.float32(min(b, 1 - b)))

    return [mock.patch.object(module("mixup"), "_gen_mixing_coef", coefficient),
            mock.patch.object(module("mixup"), "_gen_indices",
                              lambda n: torch.tensor(s.at(1).permutation(n)))]


def cutmix():
    s = Steps("cutmix")

    def indices(x):
        s.begin()
        return torch.tensor(s.at(1).permutation(x.shape[0]))

    return [mock.patch.object(module("cutmix"), "_gen_indices", indices),
            mock.patch.object(module("cutmix"), "_gen_cutmix_coef",
                              lambda alpha: s.draws.beta(alpha, alpha)),
            mock.patch("numpy.random.randint", lambda n: s.draws.below(n))]


def cutout():
    s, calls = Steps("cutout"), iter(range(10**6))

    def below(n):  # twice a step: rows, columns
        if next(calls) % 2 == 0:
            s.begin()
        return s.draws.below(n)

    return [mock.patch("numpy.random.randint", below)]


def colout():
    s, calls = Steps("colout"), iter(range(10**6))

    def permutation(n):
        if next(calls) % 2 == 0:
            s.begin()
        return torch.tensor(s.draws.permutation(n))

    return [mock.patch("torch.randperm", permutation)]


def selective_backprop():
    real, s = module("selective_backprop").SelectiveBackprop.apply, Steps(
        "selective_backprop", SELECT)

    def apply(self, event, state, logger=None):
        s.step = int(state.timestamp.batch)
        s.draws = s.at(0)
        return real(self, event, state, logger)

    return [mock.patch.object(module("selective_backprop").SelectiveBackprop, "apply", apply),
            mock.patch("numpy.random.choice",
                       lambda n, size, replace, p: s.draws.choice(n, size, p))]


# What a case draws, where it does.
DRAWS = {"mixup": mixup, "mixup_losses": mixup, "cutmix": cutmix, "cutmix_losses": cutmix,
         "cutout": cutout, "colout": colout, "selective_backprop": selective_backprop}

CASES = {
    "none": lambda: [],
    "blurpool": lambda: [methods.BlurPool(min_channels=1)],
    "squeeze_excite": lambda: [methods.SqueezeExcite(0.5, 3)],
    "ghost_batchnorm": lambda: [methods.GhostBatchNorm(2)],
    "factorize": lambda: [methods.Factorize(
        min_channels=3, latent_channels=0.5, min_features=4, latent_features=2)],
    "weight_standardization": lambda: [methods.WeightStandardization(1)],
    "label_smoothing": lambda: [methods.LabelSmoothing(0.2)],
    "gradient_clipping": lambda: [methods.GradientClipping("norm", 0.1)],
    "progressive_resizing": lambda: [methods.ProgressiveResizing(
        initial_scale=0.5, finetune_fraction=0.2, delay_fraction=0.3, size_increment=2)],
    "sam": lambda: [methods.SAM(rho=0.1)],
    "layer_freezing": lambda: [methods.LayerFreezing(0.2, 0.9)],
    "ema": lambda: [methods.EMA("2ba", update_interval="1ba")],
    "ema_average": lambda: [methods.EMA("2ba", update_interval="1ba")],
    "swa": lambda: [methods.SWA("0.25dur", "0.75dur", update_interval="1ba")],
    "channels_last": lambda: [methods.ChannelsLast()],
    "mixup": lambda: [methods.MixUp(1.0)],
    "mixup_losses": lambda: [methods.MixUp(1.0, interpolate_loss=True)],
    "cutmix": lambda: [methods.CutMix(1.0)],
    "cutmix_losses": lambda: [methods.CutMix(1.0, interpolate_loss=True)],
    "cutout": lambda: [methods.CutOut(1, 0.5)],
    "colout": lambda: [methods.ColOut(0.3, 0.2)],
    "selective_backprop": lambda: [methods.SelectiveBackprop(0.2, 0.9, 0.5, interrupt=3)],
    "six": lambda: [
        methods.BlurPool(min_channels=1), methods.SqueezeExcite(0.5, 3),
        methods.GhostBatchNorm(2), methods.LabelSmoothing(0.2),
        methods.ProgressiveResizing(initial_scale=0.5, finetune_fraction=0.2,
                                    delay_fraction=0.3, size_increment=2),
        methods.GradientClipping("norm", 0.1)],
}


def train(name, algorithms):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    trainer = composer.Trainer(
        model=model, train_dataloader=data(), optimizers=optimizer,
        max_duration=f"{STEPS}ba", algorithms=algorithms, device="cpu",
        precision="fp32", progress_bar=False, seed=1)
    model = trainer.state.model
    model.double()
    fill(model)
    with contextlib.ExitStack() as stack:
        for patch in DRAWS.get(name, list)():
            stack.enter_context(patch)
        trainer.fit()
    if name == "ema_average":  # what is evaluated and saved
        model = algorithms[0].get_ema_model(model)
    print("case", name)
    for key, p in parameters(model):
        print("param", key, *p.shape)
    for key, p in parameters(model):
        print("weights", key, " ".join(f"{x:.9g}" for x in p.detach().flatten().tolist()))
    trainer.close()


def main():
    print(f"# by Composer {composer.__version__}; PyTorch {torch.__version__}")
    for name, make in CASES.items():
        train(name, make())


if __name__ == "__main__":
    main()
