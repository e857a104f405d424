"""PyTorch's side of bench/cpu/referee.py: the same networks, one training step.

peer.py MODEL BATCH SIZE THREADS SETTING

SETTING: eager or compile, with :nhwc for channels-last. Reads "N" lines, runs N steps
over eight rotating random batches, answers "SECONDS LOSS", as bench/train.c does.
"""
import math
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

model_name, batch, size, threads, setting = sys.argv[1:6]
batch, size, threads = int(batch), int(size), int(threads)
torch.set_num_threads(threads)
torch.manual_seed(17)
compiled = setting.startswith("compile")
nhwc = setting.endswith(":nhwc")


class Block(nn.Module):
    """A basic residual block with a 1x1 convolution where the shape changes."""

    def __init__(self, i, o, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(i, o, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(o)
        self.conv2 = nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(o)
        self.down = None
        if stride != 1 or i != o:
            self.down = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        y += x if self.down is None else self.down(x)
        return F.relu(y, inplace=True)


class CifarResNet(nn.Module):
    def __init__(self, n, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        blocks, i = [], 16
        for stage, o in enumerate((16, 32, 64)):
            for k in range(n):
                blocks.append(Block(i, o, 2 if stage and k == 0 else 1))
                i = o
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        x = self.blocks(F.relu(self.bn1(self.conv1(x)), inplace=True))
        return self.fc(x.mean((2, 3)))


class ResNet18(nn.Module):
    def __init__(self, small=False):
        super().__init__()
        self.small = small
        self.conv1 = nn.Conv2d(1, 64, *((3, 1, 1) if small else (7, 2, 3)), bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        blocks, i = [], 64
        for stage, o in enumerate((64, 128, 256, 512)):
            for k in range(2):
                blocks.append(Block(i, o, 2 if stage and k == 0 else 1))
                i = o
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(512, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        x = x if self.small else F.max_pool2d(x, 3, 2, 1)
        return self.fc(self.blocks(x).mean((2, 3)))


class GPTBlock(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2)
                   for z in self.qkv(self.ln1(x)).split(d, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, layers=4, d=128, heads=4, length=128, vocabulary=256):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, d), nn.Embedding(length, d)
        self.h = nn.Sequential(*(GPTBlock(d, heads) for _ in range(layers)))
        self.ln = nn.LayerNorm(d)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe.weight[: ids.shape[1]]
        return F.linear(self.ln(self.h(x)), self.wte.weight)


MODELS = {
    "resnet8": lambda: CifarResNet(1),
    "resnet20": lambda: CifarResNet(3),
    "resnet8/strided": lambda: CifarResNet(1, 2),
    "resnet18": ResNet18,
    "resnet18/small": lambda: ResNet18(True),
    "gpt2": GPT,
}
text = model_name == "gpt2"
model = MODELS[model_name]()
layout = torch.channels_last if nhwc else torch.contiguous_format
if text:
    xs = [torch.randint(256, (batch, size)) for _ in range(8)]
    ys = [torch.randint(256, (batch, size)) for _ in range(8)]
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, fused=True)
else:
    model = model.to(memory_format=layout)
    xs = [torch.randn(batch, 1, size, size).to(memory_format=layout) for _ in range(8)]
    ys = [torch.randint(10, (batch,)) for _ in range(8)]
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, fused=True)
run = torch.compile(model) if compiled else model


def step(k):
    optimizer.zero_grad(set_to_none=True)
    out = run(xs[k % 8])
    y = ys[k % 8]
    loss = F.cross_entropy(out.flatten(0, -2), y.flatten())
    loss.backward()
    optimizer.step()
    return loss


done = 0
for line in sys.stdin:
    n = int(line)
    start = time.perf_counter()
    for _ in range(n):
        loss = step(done)
        done += 1
    value = loss.item()
    print(f"{time.perf_counter() - start:.6f} {value:.6f}", flush=True)
    assert math.isfinite(value)
