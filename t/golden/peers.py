#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares whole models with the libraries that they are from, with random weights: what
PyTorch computes, what Etude computes from the file that PyTorch wrote; after one batch of
training what Etude computes, what PyTorch computes from the file that Etude exported, and
what ONNX Runtime computes from the ONNX file. Prints TAP, with the largest differences.

    ETUDE=build/etude ETUDE_LIBRARY=build/.libs/libetude.so.1 PYTHONPATH=python \\
        python3 t/golden/peers.py [NAME...]

It is run by hand: it needs PyTorch and, for each model, the package of PyPI that has it,
without which that model is skipped. GPT-2 xl takes 14 GB of memory."""
import gc
import importlib
import json
import os
import subprocess
import sys
import tempfile

import numpy

import etude

ETUDE = os.environ.get("ETUDE", "etude")
SIDE, TOKENS = 224, 16
LIMIT = 2e-4  # of the largest output: sums of f32 over up to 25,000 products
failed = number = 0


def say(good, text):
    global failed, number
    number += 1
    failed += not good
    print("ok" if good else "not ok", number, "-", text, flush=True)


def apart(a, b):
    """The largest difference, by the largest value."""
    a, b = numpy.asarray(a, numpy.float64), numpy.asarray(b, numpy.float64)
    if a.shape != b.shape:
        print("#", a.shape, b.shape)
        return numpy.inf
    return numpy.abs(a - b).max() / numpy.abs(b).max()


def near(name, what, a, b):
    d = apart(a, b)
    say(d < LIMIT, f"{name}: {what} (apart {d:.1e})")


def command(*words):
    subprocess.run([ETUDE, *words], check=True, stdout=subprocess.DEVNULL)


def random_weights(model):
    """Also where a fresh model has 0 and 1, so that each tensor counts."""
    import torch
    torch.manual_seed(3)
    with torch.no_grad():
        for name, t in model.state_dict().items():
            if t.dtype.is_floating_point and t.dim() < 2:
                t.add_(0.2 * torch.rand_like(t))
            elif t.dtype.is_floating_point and not t.any():
                t.normal_(std=0.05)
    return model.eval()


def answer(model, fields):
    import torch
    with torch.no_grad():
        y = model(**{k: torch.from_numpy(v) for k, v in fields.items()})
    y = getattr(y, "logits", y)
    return (y["out"] if isinstance(y, dict) else y).numpy()


# ---- the forms ----

class Hub:
    form = "hf"

    def __init__(self, make):
        self.make = make

    def save(self, model, folder):
        model.save_pretrained(folder + "/from")
        return "from"

    def load(self, model, path):
        return type(model).from_pretrained(path).eval()


class File:
    def __init__(self, form, make):
        self.form, self.make = form, make

    def save(self, model, folder):
        import safetensors.torch
        state = {k: v.contiguous() for k, v in model.state_dict().items()}
        safetensors.torch.save_file(state, folder + "/w.safetensors")
        return "w.safetensors"

    def load(self, model, path):
        import safetensors.torch
        model.load_state_dict(safetensors.torch.load_file(path))
        return model.eval()


class Pth(File):
    def save(self, model, folder):
        import torch
        torch.save(model.state_dict(), folder + "/w.pth")
        return "w.pth"


# ---- models ----

def bert(kind, **more):
    def make():
        import transformers as t
        config = t.BertConfig(vocab_size=512, hidden_size=64, num_hidden_layers=3,
                              num_attention_heads=4, intermediate_size=256,
                              max_position_embeddings=32, **more)
        return getattr(t, kind)(config)
    return Hub(make)


def gpt2(layers, width, heads):
    def make():
        import transformers as t
        return t.GPT2LMHeadModel(t.GPT2Config(n_layer=layers, n_embd=width, n_head=heads))
    return Hub(make)


def of(package, function, *args, form=None, **more):
    def make():
        module = importlib.import_module(package)
        return getattr(module, function)(*args, **more)
    return (Pth if form == "pth" else File)(form if form and form != "pth" else
                                            package.split(".")[0], make)


VISION = "torchvision.models"
# (its name here, our model, what it learns from, its maker)
MODELS = [
    ("bert masked", "bert", "masked", bert("BertForMaskedLM")),
    ("bert classes", "bert_classifier", "classes",
     bert("BertForSequenceClassification", num_labels=5)),
    ("bert number", "bert_classifier", "numbers",
     bert("BertForSequenceClassification", num_labels=1)),
    ("gpt2 small", "gpt2", "tokens", gpt2(12, 768, 12)),
    ("vit torchvision", "vit_b16", "images", of(VISION, "vit_b_16")),
    ("vit timm", "vit_b16", "images", of("timm", "create_model", "vit_base_patch16_224")),
    ("resnet50 torchvision", "resnet50", "images", of(VISION, "resnet50")),
    ("resnet50 pth", "resnet50", "images", of(VISION, "resnet50", form="pth")),
    ("efficientnet_b3 timm", "efficientnet_b3", "images",
     of("timm", "create_model", "efficientnet_b3")),
]
FORWARD = [("gpt2 large", gpt2(36, 1280, 20)), ("gpt2 xl", gpt2(48, 1600, 25))]


def data_of(learns, folder):
    """The recipe's train_data, and what a model of it is asked."""
    r = numpy.random.default_rng(5)
    if learns == "images":
        return ("{name: synthetic_images, num_classes: 1000, resolution: %d, batch_size: 2, "
                "num_samples: 2}" % SIDE,
                {"x": r.standard_normal((2, 3, SIDE, SIDE)).astype(numpy.float32)})
    ids = r.integers(5, 512, (2, TOKENS))
    if learns == "tokens":
        return ("{name: synthetic_tokens, seq_len: %d, batch_size: 2, num_samples: 2}" % TOKENS,
                {"input_ids": ids})
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    with open(folder + "/vocab.txt", "w") as f:
        f.write("\n".join(marks + ["w%d" % i for i in range(5, 512)]) + "\n")
    with open(folder + "/rows.jsonl", "w") as f:
        for i in range(20):
            text = " ".join("w%d" % k for k in r.integers(5, 512, 12))
            f.write(json.dumps({"text": text, "label": i % 5}) + "\n")
    mask = numpy.ones((2, TOKENS), numpy.int64)
    mask[1, -5:] = 0
    kinds = (numpy.arange(TOKENS) >= 7).astype(numpy.int64) * numpy.ones((2, 1), numpy.int64)
    fields = {"input_ids": ids, "attention_mask": mask, "token_type_ids": kinds}
    common = ("path: rows.jsonl, tokenizer: vocab.txt, seq_len: %d, batch_size: 2, "
              "subset_num_batches: 1" % TOKENS)
    if learns == "masked":  # whose rows are full
        return "{name: masked_text, document: line, %s}" % common, {"input_ids": ids}
    return ("{name: labelled_text, text: text, target: %s, %s}"
            % ("class" if learns == "classes" else "number", common), fields)


NAMES = {"input_ids": "tokens", "token_type_ids": "token_type"}


def ask(folder, recipe, fields, plain):
    """What Etude computes; PLAIN: images as the model gets them, and tokens alone."""
    if plain:
        with etude.Session(f"{folder}/{recipe}", train=False, eval=False, directory=False) as s:
            return s.predict(next(iter(fields.values())))
    with etude.Model(f"{folder}/{recipe}") as m:
        return m.predict({NAMES.get(k, k): v.astype(numpy.int32) for k, v in fields.items()})


def onnx(path, fields):
    import onnxruntime
    session = onnxruntime.InferenceSession(path)
    given = {}
    for want in session.get_inputs():
        named = [v for k, v in fields.items() if want.name in (k, NAMES.get(k, k))]
        value = named[0] if named else next(iter(fields.values()))
        if want.name != "input" and not named:  # all tokens are of a text, and of one
            value = numpy.full(value.shape, want.name == "attention_mask")
        kind = numpy.float32 if want.type == "tensor(float)" else numpy.int32
        given[want.name] = value.astype(kind)
    return session.run(None, given)[0]


def write_recipe(folder, name, model, data, lr):
    with open(f"{folder}/{name}", "w") as f:
        f.write(f"max_duration: 1ba\nseed: 3\nmodel: {model}\ntrain_data: {data}\n"
                f"optimizer: {{name: sgd, lr: {lr}}}\n")


def train(folder, recipe, run):
    command("-C", folder, "train", recipe, "--run_directory", run, "--progress", "none")


def exported_onnx(folder):
    command("-C", folder, "export", "run", "--to", "onnx", "-o", "m.onnx")
    return folder + "/m.onnx"


def compare(name, ours, learns, form, folder):
    data, fields = data_of(learns, folder)
    plain = len(fields) == 1
    model = random_weights(form.make())
    if learns == "images":
        fields = {("x" if "x" in model.forward.__code__.co_varnames else "input"): fields["x"]}
    path = form.save(model, folder)
    from_it = f"{{from: {path}}}" if form.form == "hf" else f"{{name: {ours}, weights: {path}}}"
    write_recipe(folder, "still.yaml", from_it, data, 0)
    if not plain:
        train(folder, "still.yaml", "still")
    near(name, "Etude computes from its weights what it does",
         ask(folder, "still.yaml" if plain else "still", fields, plain), answer(model, fields))
    write_recipe(folder, "train.yaml", from_it, data, 0.001)
    train(folder, "train.yaml", "run")
    mine = ask(folder, "run", fields, plain)
    out = "hf" if form.form == "hf" else "out.safetensors"
    command("-C", folder, "weights", "export", "run", "--as", form.form, "-o", out)
    near(name, "trained and exported, it computes what Etude does",
         answer(form.load(model, f"{folder}/{out}"), fields), mine)
    near(name, "and so does ONNX Runtime", onnx(exported_onnx(folder), fields), mine)


def forward(name, form, folder):
    """One forward; the two models are never in memory together."""
    ids = numpy.random.default_rng(5).integers(0, 50257, (1, TOKENS))
    model = random_weights(form.make())
    form.save(model, folder)
    want = answer(model, {"input_ids": ids})
    del model
    gc.collect()
    write_recipe(folder, "r.yaml", "{from: from}",
                 "{name: synthetic_tokens, seq_len: %d, batch_size: 1}" % TOKENS, 0)
    near(name, "Etude computes from its weights what it does",
         ask(folder, "r.yaml", {"input_ids": ids}, True), want)


# ---- networks that no library has as they are here ----

def unet_peer(classes):
    """After doc and unet.c: padded convolutions with batch norm, width 16, depth 3."""
    import torch
    from torch import nn

    def double(i, o):
        return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o),
                             nn.ReLU(), nn.Conv2d(o, o, 3, padding=1, bias=False),
                             nn.BatchNorm2d(o), nn.ReLU())

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            wide = [16, 32, 64]
            for i, c in enumerate(wide):
                setattr(self, f"down{i}", double(c // 2 if i else 3, c))
                setattr(self, f"up{i}", nn.ConvTranspose2d(2 * c, c, 2, 2))
                setattr(self, f"join{i}", double(2 * c, c))
            self.bottom, self.head = double(64, 128), nn.Conv2d(16, classes, 1)

        def forward(self, x):
            skips = []
            for i in range(3):
                skips.append(getattr(self, f"down{i}")(x))
                x = nn.functional.max_pool2d(skips[-1], 2)
            x = self.bottom(x)
            for i in (2, 1, 0):
                x = torch.cat([skips[i], getattr(self, f"up{i}")(x)], 1)
                x = getattr(self, f"join{i}")(x)
            return self.head(x)
    return UNet()


def deeplab_peer(classes):
    """The backbone, at an output stride of 16, and ASPP are torchvision's; the decoder is
    that of arXiv 1802.02611. segmentation_models_pytorch's convolutions of both are
    depthwise separable, Composer's are mmsegmentation's."""
    import torch
    from torch import nn
    from torchvision.models import resnet50
    from torchvision.models.segmentation.deeplabv3 import ASPP

    def block(i, o, k):
        return [nn.Conv2d(i, o, k, padding=k // 2, bias=False), nn.BatchNorm2d(o), nn.ReLU()]

    class DeepLab(nn.Module):
        def __init__(self):
            super().__init__()
            self.backbone = resnet50(replace_stride_with_dilation=[False, False, True])
            del self.backbone.fc
            self.aspp = ASPP(2048, [6, 12, 18])
            self.aspp.project[3].p = 0.0
            self.low = nn.Sequential(*block(256, 48, 1))
            self.decoder = nn.Sequential(*block(304, 256, 3), *block(256, 256, 3))
            self.classifier = nn.Conv2d(256, classes, 1)

        def forward(self, x):
            def enlarge(y, like):
                return nn.functional.interpolate(y, like.shape[-2:], mode="bilinear",
                                                 align_corners=False)
            b = self.backbone
            first = b.layer1(b.maxpool(b.relu(b.bn1(b.conv1(x)))))
            y = self.aspp(b.layer4(b.layer3(b.layer2(first))))
            y = torch.cat([enlarge(y, first), self.low(first)], 1)
            return enlarge(self.classifier(self.decoder(y)), x)
    return DeepLab()


def weights_of(folder, run):
    import safetensors.torch
    command("-C", folder, "weights", "convert", run, "-o", run + ".safetensors")
    return safetensors.torch.load_file(f"{folder}/{run}.safetensors")


def gradients(model, x, y):
    import torch
    model.train()
    model.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    return {k: p.grad.numpy().copy() for k, p in model.named_parameters()}


def distance(a, b):
    """The greatest of all tensors, of the norm of the difference by the norm."""
    return max(numpy.linalg.norm(a[k] - b[k]) / numpy.linalg.norm(b[k]) for k in b)


def alone(name, options, peer, folder):
    """One batch is the data set, so that its order does not matter. What a step of plain
    SGD subtracts is the gradient. In f32 a unit near 0 may be on the other side, so what
    PyTorch itself computes in f32 says how near that is to f64."""
    import torch
    os.makedirs(folder + "/images")
    x, y = masks(folder)
    data = ("{name: segmentation, path: ., num_classes: 4, resolution: %d, batch_size: 4}"
            % x.shape[-1])
    model = "{name: %s%s}" % (name, options)
    for run, lr in ("still", 0), ("step", 1), ("run", 0.01):
        write_recipe(folder, run + ".yaml", model, data, lr)
        train(folder, run + ".yaml", run)
    before, after = weights_of(folder, "still"), weights_of(folder, "step")
    net = peer(4)
    net.load_state_dict(before, strict=False)
    missing = set(net.state_dict()) ^ set(before)
    say(all(k.endswith("num_batches_tracked") for k in missing),
        f"{name}: PyTorch's module has the same tensors ({len(before)})")
    fields = {"x": x.numpy()}
    with torch.no_grad():
        want = net.eval()(x).numpy()
    near(name, "Etude computes from its weights what PyTorch does",
         ask(folder, "still", fields, True), want)
    f32 = gradients(net, x, y)
    f64 = gradients(net.double(), x.double(), y)
    step = {k: (before[k] - after[k]).numpy() for k in f64}
    far, peers = distance(step, f64), distance(f32, f64)
    say(far < 2 * peers + 1e-4, f"{name}: its gradients are PyTorch's of f64, as PyTorch's of "
                                f"f32 are (apart {far:.1e}, {peers:.1e})")
    near(name, "ONNX Runtime computes what Etude does",
         onnx(exported_onnx(folder), fields), ask(folder, "run", fields, True))


def masks(folder):
    """Writes pictures and masks; gives them as tensors."""
    import torch
    from PIL import Image
    r = numpy.random.default_rng(6)
    os.makedirs(folder + "/masks", exist_ok=True)
    images, classes = [], []
    for i in range(4):
        a = r.integers(0, 4, (64, 64)).astype(numpy.uint8)
        c = numpy.repeat(a[..., None] * 60, 3, 2) + r.integers(0, 60, (64, 64, 3), numpy.uint8)
        Image.fromarray(a).save(f"{folder}/masks/{i}.png")
        Image.fromarray(c).save(f"{folder}/images/{i}.png")
        images.append(c)
        classes.append(a)
    x = numpy.stack(images).transpose(0, 3, 1, 2).astype(numpy.float32) / 255
    return torch.from_numpy(x), torch.from_numpy(numpy.stack(classes).astype(numpy.int64))


def one(name, work, *args):
    if len(sys.argv) > 1 and name not in sys.argv[1:]:
        return
    global number
    with tempfile.TemporaryDirectory() as folder:
        try:
            work(name, *args, folder)
        except ImportError as e:
            number += 1
            print(f"ok {number} - {name} # SKIP {e}", flush=True)
        except (etude.Error, subprocess.CalledProcessError) as e:
            say(False, f"{name}: {e}")
    gc.collect()


def main():
    for row in MODELS:
        one(row[0], compare, *row[1:])
    for row in FORWARD:
        one(row[0], forward, *row[1:])
    one("unet", alone, "", unet_peer)
    one("deeplabv3plus_resnet50", alone, ", dropout: 0", deeplab_peer)
    print(f"1..{number}")
    sys.exit(failed > 0)


main()
