#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes training_text.txt: the weights to which MosaicML Composer (0.32) trains a small
BERT, and a small GPT-2, of Hugging Face with its methods for text. As make_training.py
does for pictures; t/algorithms/training_text.c does the same.

Token j of sample i, and what is to be guessed in its place, are from a formula
(golden.py); every third is not to be guessed. A GPT-2 guesses the tokens that follow.

Needs what make_training.py needs, and transformers before 4.48, whose attentions
Composer's surgery knows."""
import numpy
import torch
from make_training import BATCH, SAMPLES, composer, fit, low_precision, methods, show
from transformers import (BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel)

from golden import unit

LENGTH, VOCABULARY, NOT = 8, 11, -100


def bert():
    return BertForMaskedLM(BertConfig(
        vocab_size=VOCABULARY, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=LENGTH, hidden_dropout_prob=0,
        attention_probs_dropout_prob=0, attn_implementation="eager"))


def gpt2():
    return GPT2LMHeadModel(GPT2Config(
        vocab_size=VOCABULARY, n_embd=12, n_layer=1, n_head=3, n_positions=LENGTH,
        resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, attn_implementation="eager"))


def tokens(stream):
    u = unit(stream, SAMPLES * LENGTH).reshape(SAMPLES, LENGTH)
    return torch.from_numpy((u * VOCABULARY).astype(numpy.int64))


class Texts(torch.utils.data.Dataset):
    def __init__(self, causal):
        self.x, self.y = tokens(2000), tokens(2001)
        self.y[torch.arange(SAMPLES * LENGTH).reshape(SAMPLES, LENGTH) % 3 == 0] = NOT
        if causal:
            self.y = self.x

    def __len__(self):
        return SAMPLES

    def __getitem__(self, i):
        return {"input_ids": self.x[i], "labels": self.y[i]}


def alibi():
    return methods.Alibi(LENGTH, 0.5)


def warmup():
    return methods.SeqLengthWarmup(0.8, 2, LENGTH, 2)


CASES = {
    "bert": lambda: [],
    "alibi": lambda: [alibi()],
    "gated_linear_units": lambda: [methods.GatedLinearUnits()],
    "seq_length_warmup": lambda: [warmup()],
    "four": lambda: [alibi(), methods.GatedLinearUnits(), warmup(),
                     methods.GradientClipping("norm", 0.1)],
    "low_precision_layernorm": lambda: [methods.LowPrecisionLayerNorm()],
    "gpt2": lambda: [],
    "alibi_gpt2": lambda: [methods.Alibi(LENGTH, 1.0)],
}


def train(name, algorithms):
    mixed, causal = name.startswith("low_precision"), name.endswith("gpt2")
    model = composer.models.HuggingFaceModel(gpt2() if causal else bert())
    model.to(torch.float32 if mixed else torch.float64)
    batches = torch.utils.data.DataLoader(Texts(causal), BATCH, shuffle=False)
    show(name, fit(name, model, batches, algorithms, mixed,
                   low_precision() if mixed else []))


def main():
    print(f"# by Composer {composer.__version__}; PyTorch {torch.__version__}")
    for name, make in CASES.items():
        train(name, make())


if __name__ == "__main__":
    main()
