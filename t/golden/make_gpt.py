# SPDX-License-Identifier: Apache-2.0
"""Writes gpt.txt: 50 steps of a two-layer GPT-2 of width 32 on 4 sequences of 16 tokens
out of 64; AdamW, lr 3e-3, betas 0.9 and 0.95, weight decay 0.01."""
import numpy
import torch
from torch import nn

import golden

STEPS, BATCH, T, VOCABULARY, LAYERS, D, HEADS = 50, 4, 16, 64, 2, 32, 4


class Conv1D(nn.Module):
    """A linear layer with its weight stored [in, out], as GPT-2 has it."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.empty(outputs))

    def forward(self, x):
        return x @ self.weight + self.bias


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = Conv1D(D, 3 * D)
        self.c_proj = Conv1D(D, D)

    def forward(self, x):
        def heads(y):
            return y.view(BATCH, T, HEADS, D // HEADS).transpose(1, 2)

        q, k, v = map(heads, self.c_attn(x).split(D, 2))
        score = q @ k.transpose(2, 3) / (D // HEADS) ** 0.5
        future = torch.ones(T, T, dtype=torch.bool).triu(1)
        y = score.masked_fill(future, float("-inf")).softmax(3) @ v
        return self.c_proj(y.transpose(1, 2).reshape(BATCH, T, D))


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc = Conv1D(D, 4 * D)
        self.c_proj = Conv1D(4 * D, D)

    def forward(self, x):
        return self.c_proj(nn.functional.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(D)
        self.attn = Attention()
        self.ln_2 = nn.LayerNorm(D)
        self.mlp = MLP()

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(VOCABULARY, D)
        self.wpe = nn.Embedding(T, D)
        self.h = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.ln_f = nn.LayerNorm(D)

    def forward(self, token):
        x = self.wte(token) + self.wpe.weight
        return self.ln_f(self.h(x)) @ self.wte.weight.T


def make_model():
    model = GPT()
    golden.fill(model, lambda p: 0.05)
    return model


def batch(step):
    """Sequences in which each token follows from the one before."""
    row = [(golden.unit(1000 + step, BATCH) * VOCABULARY).astype(numpy.int64)]
    for _ in range(T):
        row.append((5 * row[-1] + 3) % VOCABULARY)
    token = torch.from_numpy(numpy.stack(row, 1))
    return token[:, :-1], token[:, 1:]


golden.write(
    "gpt.txt",
    "GPT-2 of two layers, see make_gpt.py",
    make_model,
    lambda m: torch.optim.AdamW(m.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.01),
    batch,
    lambda z, t: nn.functional.cross_entropy(z.reshape(-1, VOCABULARY), t.reshape(-1)),
    STEPS,
)
