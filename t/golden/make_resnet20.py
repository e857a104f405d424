# SPDX-License-Identifier: Apache-2.0
"""Writes resnet20.txt: 50 steps of ResNet-20 on 3x8x8 images, 16 a batch, 10 classes;
SGD, lr 0.002, momentum 0.9, weight decay 5e-3.

Norms begin with weight 0.5 and bias 1, so that few units lie near 0: one that falls to the
other side of its ReLU by rounding alone moves a small network's loss by more than 1e-4
within 50 steps, in PyTorch's f32 against its f64 as well."""
import numpy
import torch
from torch import nn

import golden

STEPS, BATCH, SIDE, CLASSES = 50, 16, 8, 10


class Block(nn.Module):
    def __init__(self, inputs, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample = nn.Identity()
        if stride > 1 or inputs != channels:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, channels, 1, stride, bias=False),
                nn.BatchNorm2d(channels),
            )

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.downsample(x))


class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        inputs = 16
        for stage, channels in enumerate((16, 32, 64), 1):
            blocks = []
            for i in range(3):
                blocks.append(Block(inputs, channels, 2 if stage > 1 and i == 0 else 1))
                inputs = channels
            setattr(self, f"layer{stage}", nn.Sequential(*blocks))
        self.fc = nn.Linear(64, CLASSES)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(x.mean((2, 3)))


def make_model():
    model = ResNet20()
    golden.fill(model, lambda p: (3 / (p.numel() / p.shape[0])) ** 0.5, 0.5, 1.0)
    return model


def batch(step):
    label = (golden.unit(2000 + step, BATCH) * CLASSES).astype(numpy.int64)
    noise = 2 * golden.unit(1000 + step, BATCH * 3 * SIDE * SIDE) - 1
    x = noise.reshape(BATCH, 3, SIDE, SIDE) + (label - 4.5).reshape(-1, 1, 1, 1) / 4.5
    return torch.from_numpy(x.astype(numpy.float32)), torch.from_numpy(label)


golden.write(
    "resnet20.txt",
    "ResNet-20, see make_resnet20.py",
    make_model,
    lambda m: torch.optim.SGD(m.parameters(), lr=0.002, momentum=0.9, weight_decay=5e-3),
    batch,
    nn.functional.cross_entropy,
    STEPS,
)
