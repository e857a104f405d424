#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes methods.txt: what the methods of MosaicML Composer (0.32) make of small
networks, which tests in t/algorithms do again: names and shapes of the parameters, then
for weights and inputs from a formula (golden.py) the outputs of a training pass, the
gradient of a parameter, and the running statistics.

Needs torch, torchvision, transformers, and mosaicml, of which only the files of the
methods are used: what they import besides is put in its place below, since the package
as a whole wants a trainer's worth of others. Computed in f64, but for low precision."""
import importlib
import sys
import types
from unittest import mock

import numpy
import torch
from torch import nn

from golden import unit


def stand_in(name, **members):
    module = types.ModuleType(name)
    module.__path__ = []
    for key, value in members.items():
        setattr(module, key, value)
    sys.modules[name] = module
    return module


def load_composer():
    """Packages without their __init__, and names that no function here calls."""
    for base in sys.path:
        try:
            path = importlib.machinery.PathFinder.find_spec("composer", [base])
        except ImportError:
            path = None
        if path:
            root = path.submodule_search_locations[0]
    for name in ("", ".utils", ".algorithms", ".models"):
        stand_in("composer" + name).__path__ = [root + name.replace(".", "/")]
    anything = mock.MagicMock

    class Algorithm:
        pass

    stand_in("composer.core", Algorithm=Algorithm, Event=anything(), State=anything,
             Precision=anything())
    stand_in("composer.core.time", Time=anything(), TimeUnit=anything())
    stand_in("composer.loggers", Logger=anything)
    stand_in("composer.models.huggingface", HuggingFaceModel=type("None_", (), {}))
    utils = sys.modules["composer.utils"]
    utils.MissingConditionalImportError = ImportError
    utils.ensure_tuple = importlib.import_module("composer.utils.iter_helpers").ensure_tuple
    utils.module_surgery = importlib.import_module("composer.utils.module_surgery")


def package(method):
    if "composer.algorithms." + method not in sys.modules:
        where = sys.modules["composer.algorithms"].__path__[0]
        path = where + "/" + method.replace(".", "/")
        stand_in("composer.algorithms." + method).__path__ = [path]


def composer(method, function):
    package(method)
    return getattr(importlib.import_module(f"composer.algorithms.{method}.{method}"),
                   function)


def values(stream, shape):
    n = int(numpy.prod(shape))
    v = (2 * unit(stream, n) - 1).astype(numpy.float32)
    return torch.from_numpy(v).double().reshape(shape)


def trained(model):
    """Not the zeros that Alibi leaves of positions."""
    return [(name, p) for name, p in model.named_parameters() if p.requires_grad]


def fill(model):
    with torch.no_grad():
        for stream, (_, p) in enumerate(trained(model)):
            p.copy_(values(stream, p.shape) * 0.5)


def vision():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.SiLU(),
        nn.Conv2d(4, 6, 3, stride=2, padding=1, bias=False), nn.SiLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 5))


def numbers(t):
    return " ".join(f"{x:.9g}" for x in t.detach().flatten().tolist())


def show(name, model, forward, x, of):
    """OF: the parameter whose gradient is wanted."""
    print("case", name)
    print("input", *x.shape)
    for key, p in trained(model):
        print("param", key, *p.shape)
    fill(model)
    y = forward(x)
    (y * values(1001, y.shape)).sum().backward()
    print("output", numbers(y))
    print("gradient", of, numbers(dict(model.named_parameters())[of].grad))
    for key, b in model.named_buffers():
        if key.endswith(("running_mean", "running_var")):
            print("buffer", key, numbers(b))


def show_vision(name, change, of):
    model = vision().double()
    change(model)
    model.double().train()
    show(name, model, model, values(1000, (5, 3, 6, 6)), of)


def tokens(shape, vocabulary):
    t = 1 + (unit(1000, int(numpy.prod(shape))) * (vocabulary - 1)).astype(numpy.int64)
    return torch.from_numpy(t).reshape(shape)


def bert():
    from transformers import BertConfig, BertForMaskedLM
    return BertForMaskedLM(BertConfig(
        vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=6, hidden_dropout_prob=0,
        attention_probs_dropout_prob=0, attn_implementation="eager"))


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config(
        vocab_size=11, n_embd=12, n_layer=1, n_head=3, n_positions=6, resid_pdrop=0,
        embd_pdrop=0, attn_pdrop=0, attn_implementation="eager"))


def show_text(name, model, change, of):
    change(model)
    model.double().train()
    show(name, model, lambda t: model(t).logits, tokens((2, 6), 11), of)


def attend(module, q, k, v, mask, **options):
    """With the bias where Composer's attentions add it; these are of an older
    transformers, and are not called by this one."""
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + module.alibi
    weights = torch.softmax(scores if mask is None else scores + mask, -1)
    return (weights @ v).transpose(1, 2), weights


def show_alibi(name, model, kind, attention, embeddings, of):
    package("alibi")
    package("alibi.attention_surgery_functions")
    utils = importlib.import_module(
        "composer.algorithms.alibi.attention_surgery_functions.utils")
    modeling = importlib.import_module(f"transformers.models.{kind}.modeling_{kind}")
    modeling.eager_attention_forward = attend
    table = "wpe" if kind == "gpt2" else "position_embeddings"

    def change(model):
        for m in model.modules():
            if type(m).__name__ == attention:
                utils.register_alibi(m, model.config.num_attention_heads, 6, kind == "gpt2")
            if type(m).__name__ == embeddings:
                utils.zero_and_freeze_expand_position_embeddings(m, 6, table)

    show_text(name, model, change, of)


def freeze(model, elapsed):
    """What of a fresh copy is frozen at ELAPSED."""
    composer("layer_freezing", "freeze_layers")(model, [], elapsed, 0.1, 0.9)
    print("frozen", elapsed, *(n for n, p in model.named_parameters() if not p.requires_grad))


def lower(method, norm, shape):
    """A norm by Composer's replacement of it, under autocast to bf16."""
    method = "low_precision_" + method
    model = nn.Sequential(norm)
    with torch.no_grad():
        norm.weight.copy_(values(0, norm.weight.shape))
        norm.bias.copy_(values(1, norm.bias.shape))
    composer(method, "apply_" + method)(
        model, precision=composer(method, "Precision").AMP_BF16, optimizers=None)
    enabled = torch.is_autocast_enabled  # which Composer asks of CUDA
    with torch.autocast("cpu", torch.bfloat16), mock.patch(
            "torch.is_autocast_enabled", lambda device="cpu": enabled(device)):
        print(method, numbers(model(values(1000, shape).float())))


def main():
    load_composer()
    print(f"# by Composer 0.32; PyTorch {torch.__version__}")
    show_vision("squeeze_excite", lambda m: composer("squeeze_excite", "apply_squeeze_excite")(
        m, latent_channels=0.5, min_channels=3), "0.se.pool_and_mlp.2.weight")
    show_vision("ghost_batchnorm", lambda m: composer(
        "ghost_batchnorm", "apply_ghost_batchnorm")(m, ghost_batch_size=2), "0.weight")
    show_vision("factorize", lambda m: composer("factorize", "apply_factorization")(
        m, min_channels=3, latent_channels=0.5, min_features=4, latent_features=2),
        "0.module0.weight")
    show_vision("weight_standardization", lambda m: composer(
        "weight_standardization", "apply_weight_standardization")(m, 1),
        "0.parametrizations.weight.original")
    show_text("gated_linear_units", bert(), lambda m: composer(
        "gated_linear_units", "apply_gated_linear_units")(m, [], non_gated_layer_bias=True),
        "bert.encoder.layer.0.output.gated_layer.weight")
    show_alibi("alibi_bert", bert(), "bert", "BertSelfAttention", "BertEmbeddings",
               "bert.encoder.layer.0.attention.self.query.weight")
    show_alibi("alibi_gpt2", gpt2(), "gpt2", "GPT2Attention", "GPT2Model",
               "transformer.h.0.attn.c_attn.weight")
    print("case layer_freezing")
    for elapsed in (0.1, 0.4, 0.7, 1.0):
        freeze(vision(), elapsed)
    print("case low_precision")
    lower("layernorm", nn.LayerNorm(8), (3, 8))
    lower("groupnorm", nn.GroupNorm(2, 4), (2, 4, 3, 1))


if __name__ == "__main__":
    main()
