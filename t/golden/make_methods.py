#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes methods.txt: what the methods of MosaicML Composer (0.32) make of small
networks, which tests in t/algorithms do again: names and shapes of the parameters, then
for weights and inputs from a formula (golden.py) the outputs of a training pass, the
gradient of a parameter, and the running statistics.

Needs torch, torchvision, transformers 5, and mosaicml, of which only the files of the
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
             Precision=anything(), Batch=anything, TimeUnit=anything(),
             get_precision_context=anything)
    stand_in("composer.core.time", Time=anything(), TimeUnit=anything())
    stand_in("composer.loggers", Logger=anything)
    stand_in("composer.models.huggingface", HuggingFaceModel=type("None_", (), {}))
    sys.modules["composer.models"].HuggingFaceModel = type("None_", (), {})
    utils = sys.modules["composer.utils"]
    utils.MissingConditionalImportError = ImportError
    utils.dist = anything()
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
        # Around 96, where bf16 has two numbers for one: what it makes of them is far from
        # what f32 does. In pairs, so that means are 96: PyTorch keeps them in bf16 for
        # the backward pass.
        x = values(1000, shape).float().flatten()
        x[1::2] = -x[::2]
        x = (96 + x).reshape(shape).requires_grad_()
        y = model(x)
        (y.float() * values(1001, shape).float()).sum().backward()
    for key, v in (("y", y), ("dx", x.grad), ("dw", model[0].weight.grad),
                   ("db", model[0].bias.grad)):
        print(f"{method}_large_{key}", numbers(v))


def bottlenecks():
    from torchvision.models.resnet import Bottleneck
    def shortcut(c_in, c_out, stride):
        return nn.Sequential(nn.Conv2d(c_in, c_out, 1, stride, bias=False),
                             nn.BatchNorm2d(c_out))
    return nn.Sequential(
        Bottleneck(3, 1, downsample=shortcut(3, 4, 1)), Bottleneck(4, 1),
        Bottleneck(4, 2, stride=2, downsample=shortcut(4, 8, 2)), Bottleneck(8, 2))


def show_depth(kept):
    """Blocks, of which Composer draws that those of KEPT are."""
    model = bottlenecks().double()
    composer("stochastic_depth", "apply_stochastic_depth")(
        model, "ResNetBottleneck", "block", 0.5, "uniform")
    draws = iter(kept)
    with mock.patch("torch.bernoulli", lambda p: torch.tensor(float(next(draws)))):
        show("stochastic_depth", model.train(), model, values(1000, (5, 3, 6, 6)),
             "3.conv2.weight")


def show_periods():
    layer = composer("gyro_dropout", "GyroDropoutLayer")
    for iters, epochs, sigma, tau in ((196, 100, 256, 16), (5005, 90, 1024, 8), (7, 3, 4, 2)):
        gyro = layer(iters, epochs, 0.5, sigma, tau)
        gyro(torch.ones(tau, 1))
        print("gyro_period", iters, epochs, sigma, tau, gyro.iter_num)


def show_lengths():
    """What the algorithm makes of a long batch at some of its steps."""
    warmup = composer("seq_length_warmup", "SeqLengthWarmup")
    units = importlib.import_module("composer.algorithms.seq_length_warmup.seq_length_warmup")
    for steps, duration, least, most, step in (
            (2540, 0.3, 8, 1024, 8), (1000, 0.5, 10, 100, 7), (77, 1.0, 1, 30, 4)):
        one = warmup(duration, least, most, step)
        one._activated = True
        for batch in range(0, steps, max(1, steps // 20))[:20]:
            state = types.SimpleNamespace(
                dataloader=1, dataloader_len=steps, batch={"input_ids": torch.zeros(1, 2048)},
                max_duration=types.SimpleNamespace(unit=units.TimeUnit.BATCH, value=steps),
                timestamp=types.SimpleNamespace(batch=batch))
            one.apply(None, state, mock.MagicMock())
            print("seq_length", steps, duration, least, most, step, batch,
                  state.batch["input_ids"].shape[1])


def show_batches():
    change = composer("seq_length_warmup", "set_batch_sequence_length")
    for length in (2, 4, 6):
        for truncate, preserve in ((1, 0), (1, 1), (0, 0)):
            at = torch.arange(21).reshape(3, 7)
            batch = {"input_ids": 10 + at, "labels": 100 + at, "attention_mask":
                     (at % 7 < torch.tensor([[7], [3], [1]])).int()}
            batch = change(batch, length, bool(truncate), bool(preserve))
            print("seq_batch", length, truncate, preserve,
                  *(f"{v.shape[0]} {v.shape[1]} " + " ".join(str(int(e)) for e in v.flatten())
                    for v in batch.values()))


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
    show_depth((True, False, False, True))
    print("case lengths_and_periods")
    show_periods()
    show_lengths()
    show_batches()


if __name__ == "__main__":
    main()
