# SPDX-License-Identifier: Apache-2.0
"""Writes hub.txt: small models of transformers, torchvision and timm: what they call
their tensors, and what they compute.

Weights and inputs are numbers from a formula, by the tensor's name, so that no value is
stored but the outputs, which are of f64.

    model FORM OUR-NAME             begins a model
    config JSON                     Hugging Face's config.json
    options NAME VALUE ...          what our model is made with, of the other forms
    tensor NAME LENGTH ...
    input tokens|pairs|image LENGTH ...   pairs: with mask() and kinds()
    output NUMBER ...
"""
import json
import tempfile
import zlib

import numpy
import safetensors.torch
import timm
import torch
import torchvision
import transformers

import golden

CLASSES, SIDE, TOKENS, WORDS = 5, 32, 6, 11


def stream(name):
    return zlib.crc32(name.encode()) & 0xFFFFF


def value(name, shape):
    """What t/unit/hubs.c computes, too."""
    count = int(numpy.prod(shape)) if shape else 1
    v = 2 * golden.unit(stream(name), count) - 1
    if name.endswith("running_var"):
        v = 1.25 + 0.25 * v
    elif len(shape) < 2:
        v = 0.1 * v + (1 if name.endswith("weight") else 0)
    else:
        v = v * (3 / (count / shape[0])) ** 0.5
    return torch.from_numpy(v.astype(numpy.float32)).reshape(shape)


def fill(model):
    state = model.state_dict()
    names = [n for n in state if not n.endswith("num_batches_tracked")]
    for name in names:
        state[name].copy_(value(name, tuple(state[name].shape)))
    return {name: state[name] for name in names}, model


def refill(model):
    """Of transformers: by the names that save_pretrained writes, through a file that
    from_pretrained reads."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        path = f"{folder}/model.safetensors"
        state = safetensors.torch.load_file(path)
        names = [n for n in state if not n.endswith("num_batches_tracked")]
        for name in names:
            state[name] = value(name, tuple(state[name].shape))
        safetensors.torch.save_file(state, path, {"format": "pt"})
        return {n: state[n] for n in names}, type(model).from_pretrained(folder)


def mask():
    """The last two tokens of the second text are padding."""
    m = torch.ones(2, TOKENS, dtype=torch.int64)
    m[1, -2:] = 0
    return m


def kinds():
    """From the fourth token on it is the second text of a pair."""
    return (torch.arange(TOKENS) >= 3).to(torch.int64).expand(2, TOKENS)


def inputs(kind):
    if kind != "image":
        v = golden.unit(7, 2 * TOKENS) * WORDS
        return torch.from_numpy(v.astype(numpy.int64)).reshape(2, TOKENS)
    v = 2 * golden.unit(7, 2 * 3 * SIDE * SIDE) - 1
    return torch.from_numpy(v.astype(numpy.float32)).reshape(2, 3, SIDE, SIDE)


def write(f, form, ours, model, kind, config=None, options=""):
    with torch.no_grad():
        state, model = refill(model) if form == "hf" else fill(model)
        model.eval()
        x = inputs(kind)
        if kind == "pairs":
            y = model.double()(x, attention_mask=mask(), token_type_ids=kinds())
        else:
            y = model.double()(x if kind == "tokens" else x.double())
        y = getattr(y, "logits", y)
    f.write(f"model {form} {ours}\n")
    if config is not None:
        keep = {k: v for k, v in config.items() if not k.startswith("_")}
        f.write(f"config {json.dumps(keep)}\n")
    if options:
        f.write(f"options {options}\n")
    for name, tensor in state.items():
        f.write(" ".join(["tensor", name, *map(str, tensor.shape)]) + "\n")
    f.write(" ".join(["input", kind, *map(str, x.shape)]) + "\n")
    f.write(" ".join(["output", *(f"{v:.9g}" for v in y.flatten().tolist())]) + "\n")


def main():
    t = transformers
    with open("hub.txt", "w") as f:
        f.write("# see make_hub.py; ")
        f.write(f"transformers {t.__version__}, torchvision {torchvision.__version__}, ")
        f.write(f"timm {timm.__version__}, PyTorch {torch.__version__}\n")
        gpt2 = dict(model_type="gpt2", vocab_size=WORDS, n_positions=8, n_embd=16, n_layer=2,
                    n_head=2)
        write(f, "hf", "gpt2", t.GPT2LMHeadModel(t.GPT2Config(**gpt2)), "tokens", gpt2)
        bert = dict(model_type="bert", vocab_size=WORDS, hidden_size=16, num_hidden_layers=2,
                    num_attention_heads=2, intermediate_size=64, max_position_embeddings=8,
                    architectures=["BertForMaskedLM"])
        write(f, "hf", "bert", t.BertForMaskedLM(t.BertConfig(**bert)), "tokens", bert)
        pair = bert | dict(architectures=["BertForSequenceClassification"],
                           id2label={str(i): f"c{i}" for i in range(CLASSES)})
        write(f, "hf", "bert_classifier",
              t.BertForSequenceClassification(t.BertConfig(**pair)), "pairs", pair)
        vit = dict(model_type="vit", hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                   intermediate_size=64, image_size=SIDE, patch_size=16,
                   id2label={str(i): f"c{i}" for i in range(CLASSES)})
        write(f, "hf", "vit_b16", t.ViTForImageClassification(t.ViTConfig(**vit)), "image", vit)
        resnet = dict(model_type="resnet", depths=[2, 2, 2, 2], layer_type="basic",
                      hidden_sizes=[64, 128, 256, 512],
                      id2label={str(i): f"c{i}" for i in range(CLASSES)})
        write(f, "hf", "resnet18", t.ResNetForImageClassification(t.ResNetConfig(**resnet)),
              "image", resnet)
        m = torchvision.models
        write(f, "torchvision", "resnet18", m.resnet18(num_classes=CLASSES), "image")
        write(f, "torchvision", "efficientnet_b0", m.efficientnet_b0(num_classes=CLASSES),
              "image")
        few = "d_model 16 n_layers 2 n_heads 2"
        write(f, "torchvision", "vit_b16",
              m.VisionTransformer(image_size=SIDE, patch_size=16, num_layers=2, num_heads=2,
                                  hidden_dim=16, mlp_dim=64, num_classes=CLASSES),
              "image", options=few)
        write(f, "timm", "efficientnet_b0",
              timm.create_model("efficientnet_b0", num_classes=CLASSES), "image")
        write(f, "timm", "vit_ti16",
              timm.create_model("vit_tiny_patch16_224", img_size=SIDE, num_classes=CLASSES,
                                depth=2, embed_dim=16, num_heads=2),
              "image", options=few)


main()
