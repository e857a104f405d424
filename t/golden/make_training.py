#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes training.txt: the weights to which MosaicML Composer (0.32) trains a small
network with its methods, alone and several at once. t/algorithms/training.c does the
same; make_training_text.py has the methods for text.

The networks have no kinks (SiLU, averages), so that rounding does not grow; all is in
f64, but for autocast to bf16.
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
from torchvision import transforms  # noqa: E402
from torchvision.datasets import VisionDataset  # noqa: E402
from torchvision.models.resnet import Bottleneck  # noqa: E402
from PIL import Image  # noqa: E402

from draws import AUGMENT, MIX, SELECT, Draws, Sample, Words  # noqa: E402
from golden import unit  # noqa: E402

SAMPLES, BATCH, STEPS, SEED = 16, 4, 12, 17
HEIGHT, WIDTH = 6, 8


def plain(norm=lambda: nn.BatchNorm2d(4), more=()):
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), norm(), nn.SiLU(),
        nn.Conv2d(4, 6, 3, stride=2, padding=1, bias=False), nn.SiLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), *more, nn.Linear(6, SAMPLES))


def bottlenecks():
    shortcut = nn.Sequential(nn.Conv2d(8, 16, 1, 2, bias=False), nn.BatchNorm2d(16))
    blocks = [Bottleneck(8, 2), Bottleneck(8, 4, 2, shortcut)]
    for block in blocks:
        block.relu = nn.SiLU()
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.SiLU(), *blocks, nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(16, SAMPLES))


def grouped():
    return nn.Sequential(nn.GroupNorm(1, 1, affine=False),
                         *plain(lambda: nn.GroupNorm(2, 4)))


# Other networks than plain(), by case.
NETS = {"gyro_dropout": lambda: plain(more=[nn.Dropout(0.1)]),
        "stochastic_depth": bottlenecks, "stochastic_depth_samples": bottlenecks,
        "bottlenecks": bottlenecks,
        "low_precision_groupnorm": grouped}
# What is added to a picture, by case: around 96 bf16 has two numbers for one, so that a
# norm computes something else in it.
OFFSETS = {"low_precision_groupnorm": 96}


class Net(ComposerModel):
    def __init__(self, net, dtype):
        super().__init__()
        self.net, self.dtype = net.to(dtype), dtype

    def forward(self, batch):
        return self.net(batch[0].to(self.dtype))

    def loss(self, outputs, batch, reduction="mean"):
        return soft_cross_entropy(outputs.to(self.dtype), batch[1], reduction=reduction)


class Pictures(VisionDataset):
    """The counted images; the draws of one are those of its place in the run."""

    def __init__(self, method):
        super().__init__("", transform=transforms.Compose(
            [transforms.ToTensor(), torch.Tensor.double]))
        self.method, self.place = method, 0

    def __len__(self):
        return SAMPLES

    def __getitem__(self, i):
        y, x = numpy.mgrid[:HEIGHT, :WIDTH]
        image = Image.fromarray(((7 * i + 8 * y + x) % 256).astype(numpy.uint8))
        draws = Draws(SEED, AUGMENT, self.place, self.method)
        self.place += 1
        with mock.patch.multiple(numpy.random, **draws.numpy()):
            return self.transform(image) + OFFSETS.get(self.method, 0), i


def data(name):
    return torch.utils.data.DataLoader(Pictures(name), BATCH, shuffle=False)


def parameters(model):
    """Without the zeros that Alibi leaves of the table of positions."""
    return [(n.removeprefix("net.").removeprefix("model."), p)
            for n, p in model.named_parameters()
            if p.requires_grad or not n.endswith(("position_embeddings.weight", "wpe.weight"))]


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


def gyro_dropout():
    pool, picks = Words(SEED, "gyro", 0, 0), iter(range(10**6))

    def rand(n, features):
        v = [pool.uniform_f32() for _ in range(n * features)]
        return torch.tensor(v, dtype=torch.float64).reshape(n, features)

    def choice(n, size):
        period = Words(SEED, "gyro", next(picks), 1)
        return numpy.array([period.below(n) for _ in range(size)])

    return [mock.patch("torch.rand", rand), mock.patch("numpy.random.choice", choice)]


def stochastic_depth():
    s, calls = Steps("stochastic_depth"), iter(range(10**6))

    def kept(p):  # two blocks a step
        if next(calls) % 2 == 0:
            s.begin()
        return torch.tensor(float(s.draws.uniform() >= 1 - float(p)))

    return [mock.patch("torch.bernoulli", kept)]


def stochastic_depth_samples():
    calls = iter(range(10**6))

    def rand(shape, dtype, device):  # two blocks a step; kept where a word is below p
        step, block = divmod(next(calls), 2)
        u = [Sample(SEED, step * BATCH + i, block).uniform_f32() for i in range(shape[0])]
        return torch.tensor([1 - 2**-25 - x for x in u], dtype=dtype).reshape(shape)

    return [mock.patch("torch.rand", rand)]


@contextlib.contextmanager
def autocast(*precision, **more):
    """As Composer's precision amp_bf16 does on a GPU; it has none on a CPU."""
    with torch.autocast("cpu", torch.bfloat16):
        yield


def low_precision():
    enabled = torch.is_autocast_enabled
    return [mock.patch("composer.trainer.trainer.get_precision_context", autocast),
            mock.patch("torch.is_autocast_enabled", lambda device="cpu": enabled(device))]


# What a case draws, where it does.
DRAWS = {"mixup": mixup, "mixup_losses": mixup, "cutmix": cutmix, "cutmix_losses": cutmix,
         "cutout": cutout, "colout": colout, "selective_backprop": selective_backprop, "gyro_dropout": gyro_dropout,
         "stochastic_depth": stochastic_depth,
         "stochastic_depth_samples": stochastic_depth_samples}

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
    "augmix": lambda: [methods.AugMix(9)],
    "randaugment": lambda: [methods.RandAugment(9)],
    "gyro_dropout": lambda: [methods.GyroDropout(0.5, 4, 2)],
    "bottlenecks": lambda: [],
    "stochastic_depth": lambda: [methods.StochasticDepth("ResNetBottleneck", "block", 0.5)],
    "stochastic_depth_samples": lambda: [
        methods.StochasticDepth("ResNetBottleneck", "sample", 0.25)],
    "low_precision_groupnorm": lambda: [methods.LowPrecisionGroupNorm()],
    "six": lambda: [
        methods.BlurPool(min_channels=1), methods.SqueezeExcite(0.5, 3),
        methods.GhostBatchNorm(2), methods.LabelSmoothing(0.2),
        methods.ProgressiveResizing(initial_scale=0.5, finetune_fraction=0.2,
                                    delay_fraction=0.3, size_increment=2),
        methods.GradientClipping("norm", 0.1)],
}


def fit(name, model, batches, algorithms, mixed, patches):
    """Trains MODEL, a Net, once its methods are in it; the model that came of it."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    duration = f"{STEPS * BATCH // SAMPLES}ep" if name == "gyro_dropout" else f"{STEPS}ba"
    with contextlib.ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        with mock.patch("composer.trainer.trainer._validate_precision"):
            trainer = composer.Trainer(
                model=model, train_dataloader=batches, optimizers=optimizer,
                max_duration=duration, algorithms=algorithms, device="cpu",
                precision="amp_bf16" if mixed else "fp32", progress_bar=False, seed=1)
        model = trainer.state.model
        model.to(torch.float32 if mixed else torch.float64)
        if hasattr(model, "model"):  # of text
            # Alibi's copy of BERT's embeddings has a table apart from the output's, and
            # makes more rows of a batch, whose mean is to be of all of them.
            model.model.tie_weights()
            trainer.state.device_train_microbatch_size = SAMPLES
        fill(model)
        trainer.fit()
    if name == "ema_average":  # what is evaluated and saved
        model = algorithms[0].get_ema_model(model)
    trainer.close()
    return model


def show(name, model):
    print("case", name)
    for key, p in parameters(model):
        print("param", key, *p.shape)
    for key, p in parameters(model):
        print("weights", key, " ".join(f"{x:.9g}" for x in p.detach().flatten().tolist()))


def train(name, algorithms):
    mixed = name.startswith("low_precision")
    model = Net(NETS.get(name, plain)(), torch.float32 if mixed else torch.float64)
    patches = low_precision() if mixed else DRAWS.get(name, list)()
    show(name, fit(name, model, data(name), algorithms, mixed, patches))


def main():
    print(f"# by Composer {composer.__version__}; PyTorch {torch.__version__}")
    for name, make in CASES.items():
        train(name, make())


if __name__ == "__main__":
    main()
