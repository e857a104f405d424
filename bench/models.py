# SPDX-License-Identifier: Apache-2.0
"""The networks of the referees in PyTorch, with Etude's names of parameters, and what they
read from files.

Images: residual networks and LeNet as torchvision names them. Text: GPT-2 with the names
of Hugging Face, its products as nn.Linear, which stores what GPT-2's files have transposed.
"""
import json
import math

import torch
from torch import nn
from torch.nn import functional as F

# ---- images ----


class Block(nn.Module):
    """Two convolutions of 3x3, or a bottleneck of 1x1, 3x3 (with the stride), 1x1; a 1x1
    convolution on the shortcut where the shape changes."""

    def __init__(self, i, width, stride, bottleneck):
        super().__init__()
        o = 4 * width if bottleneck else width
        if bottleneck:
            self.conv1 = nn.Conv2d(i, width, 1, bias=False)
            self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
            self.conv3 = nn.Conv2d(width, o, 1, bias=False)
            self.bn3 = nn.BatchNorm2d(o)
        else:
            self.conv1 = nn.Conv2d(i, width, 3, stride, 1, bias=False)
            self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
        self.bottleneck = bottleneck
        self.downsample = None
        if stride != 1 or i != o:
            self.downsample = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False),
                                            nn.BatchNorm2d(o))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        if self.bottleneck:
            y = self.bn3(self.conv3(F.relu(y, inplace=True)))
        y += x if self.downsample is None else self.downsample(x)
        return F.relu(y, inplace=True)


class ResNet(nn.Module):
    def __init__(self, o, blocks, width, bottleneck=False, stem="small"):
        super().__init__()
        stem = o.get("stem", stem)
        self.large = stem == "imagenet"
        kernel, pad = (7, 3) if self.large else (3, 1)
        self.conv1 = nn.Conv2d(o["channels"], width, kernel, 1 if stem == "small" else 2, pad,
                               bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.stages, i = len(blocks), width
        for stage, n in enumerate(blocks):
            layer = []
            for k in range(n):
                layer.append(Block(i, width << stage, 2 if stage and k == 0 else 1, bottleneck))
                i = (width << stage) * (4 if bottleneck else 1)
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layer))
        self.fc = nn.Linear(i, o["classes"])

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        if self.large:
            x = F.max_pool2d(x, 3, 2, 1)
        for stage in range(self.stages):
            x = getattr(self, f"layer{stage + 1}")(x)
        return self.fc(x.mean((2, 3)))


class LeNet(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.conv1 = nn.Conv2d(o["channels"], 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * (o["size"] // 2 // 2 - 2) ** 2, 120)
        self.fc2, self.fc3 = nn.Linear(120, 84), nn.Linear(84, o["classes"])

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x.flatten(1))))))


class Perceptron(nn.Module):
    def __init__(self, o):
        super().__init__()
        i, self.layers = o["channels"] * o["size"] ** 2, o.get("layers", 2)
        for k in range(1, self.layers + 1):
            setattr(self, f"fc{k}", nn.Linear(i, o.get("hidden", 256)))
            i = o.get("hidden", 256)
        self.fc = nn.Linear(i, o["classes"])

    def forward(self, x):
        x = x.flatten(1)
        for k in range(1, self.layers + 1):
            x = F.relu(getattr(self, f"fc{k}")(x))
        return self.fc(x)


def double_conv(i, o):
    return nn.Sequential(*(layer for c in (i, o) for layer in (
        nn.Conv2d(c, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))))


class UNet(nn.Module):
    """For sizes that can be halved DEPTH times."""

    def __init__(self, o):
        super().__init__()
        i, width, self.depth = o["channels"], o.get("width", 16), o.get("depth", 3)
        for k in range(self.depth):
            c = width << k
            setattr(self, f"down{k}", double_conv(i, c))
            setattr(self, f"up{k}", nn.ConvTranspose2d(2 * c, c, 2, 2))
            setattr(self, f"join{k}", double_conv(2 * c, c))
            i = c
        self.bottom = double_conv(i, width << self.depth)
        self.head = nn.Conv2d(width, o["classes"], 1)

    def forward(self, x):
        skips = []
        for k in range(self.depth):
            skips.append(getattr(self, f"down{k}")(x))
            x = F.max_pool2d(skips[-1], 2)
        x = self.bottom(x)
        for k in reversed(range(self.depth)):
            x = torch.cat([skips[k], getattr(self, f"up{k}")(x)], 1)
            x = getattr(self, f"join{k}")(x)
        return self.head(x)


# ---- text ----


class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2)
                   for z in self.c_attn(x).split(d, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(b, t, d))


class MLP(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.c_fc, self.c_proj = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class GPTBlock(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn, self.mlp = Attention(d, heads), MLP(d)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """residual: the dtype that blocks add in; None: as autocast has it, f32."""

    def __init__(self, o, residual=None):
        super().__init__()
        d, self.residual = o.get("d_model", 768), residual
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(o["classes"], d),
            "wpe": nn.Embedding(o["size"], d),
            "h": nn.Sequential(*(GPTBlock(d, o.get("n_heads", 12))
                                 for _ in range(o.get("n_layers", 12)))),
            "ln_f": nn.LayerNorm(d),
        })

    def forward(self, ids):
        t = self.transformer
        x = t.wte(ids) + t.wpe.weight[: ids.shape[1]]
        if self.residual:
            x = x.to(self.residual)
        return F.linear(t.ln_f(t.h(x)), t.wte.weight)


MODELS = {
    "mlp": Perceptron,
    "lenet": LeNet,
    "unet": UNet,
    "resnet8": lambda o: ResNet(o, (1, 1, 1), 16),
    "resnet20": lambda o: ResNet(o, (3, 3, 3), 16),
    "resnet56": lambda o: ResNet(o, (9, 9, 9), 16),
    "resnet18": lambda o: ResNet(o, (2, 2, 2, 2), 64, stem="imagenet"),
    "resnet50": lambda o: ResNet(o, (3, 4, 6, 3), 64, True, "imagenet"),
    "gpt2": GPT,
}

# ---- weights ----

DTYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}


def read_safetensors(path):
    """name -> tensor. The file: the header's length, the header as JSON, the arrays."""
    with open(path, "rb") as f:
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        start, tensors = f.tell(), {}
        for name, about in header.items():
            if name == "__metadata__":
                continue
            begin, end = about["data_offsets"]
            f.seek(start + begin)
            flat = torch.frombuffer(bytearray(f.read(end - begin)), dtype=DTYPES[about["dtype"]])
            tensors[name] = flat.reshape(about["shape"])
    return tensors


def load(model, path):
    """Every parameter and running statistic of MODEL from the file at PATH: both must
    have the same names."""
    theirs = read_safetensors(path)
    ours = {k: v for k, v in model.state_dict().items() if "num_batches_tracked" not in k}
    if missing := theirs.keys() ^ ours.keys():
        raise ValueError(f"{path}: {sorted(missing)[0]} is on one side only")
    with torch.no_grad():
        for name, to in ours.items():
            value = theirs[name]
            if ".h." in name and name.endswith("weight") and value.ndim == 2:
                value = value.T  # GPT-2's products are stored [in, out]
            to.copy_(value)


# ---- batches ----


def integers(stream, n, device):
    """n integers of 32 bits, a hash of (stream, index): as in bench/train.c."""
    x = torch.arange(n, device=device, dtype=torch.int64) * 0x9E3779B1 + stream * 0x85EBCA77
    x &= 0xFFFFFFFF
    for shift, factor in ((16, 0x21F0AAAD), (15, 0x735A2D97)):
        x ^= x >> shift
        x = (x * factor) & 0xFFFFFFFF
    return x ^ x >> 15


def batch(k, kind, n, o, device):
    """Batch K of N samples: what goes in, and what ought to come out: a class for every
    "image", or for each of its "pixels", or of "text" for every token."""
    if kind == "text":
        shape = (n, o["size"])
        return tuple((integers(2 * k + i, math.prod(shape), device) % o["classes"]).view(shape)
                     for i in (0, 1))
    shape = (n, o["channels"], o["size"], o["size"])
    x = (integers(2 * k, math.prod(shape), device) >> 8).to(torch.float32)
    x = (x * 2.0**-24 - 0.5) * 3.4641016  # variance 1
    of = (n, o["size"], o["size"]) if kind == "pixels" else (n,)
    return x.view(shape), (integers(2 * k + 1, math.prod(of), device) % o["classes"]).view(of)
