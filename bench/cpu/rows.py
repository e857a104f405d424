# SPDX-License-Identifier: Apache-2.0
"""What the referee of the CPU runs. Every row exists here alone; referee.py hands it to both
sides. A tiny row is the same work in a second, to try the whole protocol.
"""

IMAGES = ["eager", "eager:nhwc", "compile", "compile:nhwc"]
FROZEN = ["eager", "eager:nhwc", "compile:frozen", "compile:nhwc:frozen"]
PLAIN = ["eager", "compile"]


def images(model, batch, size, settings=IMAGES, proof=(1, 10, 100), tiny=(8, 16), **options):
    """proof: steps after which both sides are compared. tiny: a batch and a size."""
    # The rate: as bench/gpu/work.py has it, so that rounding alone does not part them.
    return {"model": model, "batch": batch, "batches": [batch], "size": size, "unit": "images",
            "per_sample": 1, "flops": None, "settings": settings, "proof": proof, "tiny": tiny,
            "options": {"channels": 1, "classes": 10, "lr": "1e-4", **options}}


def text(batch, size, layers, d, heads, classes, proof=(1, 10, 100)):
    """flops: PaLM's count, as in bench/gpu/work.py."""
    flops = (6 * (12 * layers * d * d + classes * d) + 12 * layers * d * size) * size
    return {"model": "gpt2", "batch": batch, "batches": [batch], "size": size, "unit": "tokens",
            "per_sample": size, "flops": flops, "settings": PLAIN, "proof": proof,
            "tiny": (4, 16), "options": {"n_layers": layers, "d_model": d, "n_heads": heads,
                                         "classes": classes, "lr": "3e-5"}}


def bf16(row):
    """Its tiny row is of a smaller model: PyTorch takes minutes for others in bf16 on a
    processor without it."""
    tiny_model = row["model"] if row["model"] == "gpt2" else "resnet8"
    return dict(row, precision="amp_bf16", tiny=(8, 16), tiny_model=tiny_model)


# In a small batch ResNet-50's gradient is long, 440 with 16 images, and rounding grows with
# every step: at 1e-6 PyTorch's own two layouts are 0.15 % apart in the loss after ten (6.5846
# and 6.5942; in f64 6.5874), so it is compared after five. ResNet-18 ends at 1 x 1 pixels with
# images of 28: its layouts differ by 3e-4 after ten steps and by as much as is allowed after
# 100.
RGB = {"channels": 3, "classes": 1000, "lr": "1e-6"}
RESNET20 = images("resnet20", 128, 28)
RESNET18 = images("resnet18", 64, 28, proof=(1, 10), tiny=(8, 64))
RESNET50_96 = images("resnet50", 16, 96, proof=(1, 5), tiny=(8, 64), **RGB)
BYTES = text(32, 128, 4, 128, 4, 256)
D384 = text(8, 256, 6, 384, 6, 256, proof=(1, 10))
WORK = {
    "resnet8": images("resnet8", 128, 28),
    "resnet8/strided": images("resnet8", 128, 28, stem="strided"),
    "resnet20": RESNET20,
    "resnet20-bf16": bf16(RESNET20),
    "resnet20-accumulate": images("resnet20", 128, 28, tiny=(32, 16), accumulate=4),
    "resnet20-eval": images("resnet20", 128, 28, FROZEN, do="eval"),
    "resnet18": RESNET18,
    "resnet18-bf16": bf16(RESNET18),
    "resnet18/small": images("resnet18", 64, 28, proof=(1, 10), stem="small"),
    "resnet50-96": RESNET50_96,
    "resnet50-96-bf16": bf16(RESNET50_96),
    "resnet50-224": images("resnet50", 8, 224, proof=(1, 5), tiny=(8, 64), **RGB),
    "mlp": images("mlp", 128, 28, PLAIN, hidden=1024, layers=3),
    "unet": images("unet", 8, 96, classes=4),
    "gpt-bytes": BYTES,
    "gpt-384": D384,
    "gpt-384-bf16": bf16(D384),
    "gpt2-124m": text(1, 256, 12, 768, 12, 50304, proof=(1, 5)),
}
SMALL = {"n_layers": 2, "d_model": 32, "n_heads": 2, "classes": 64, "hidden": 32, "width": 4}


def tiny(row):
    batch, size = row["tiny"]
    options = {k: SMALL.get(k, v) if row["model"] in ("gpt2", "mlp") else v
               for k, v in row["options"].items()}
    small = dict(row, model=row.get("tiny_model", row["model"]), batch=batch, batches=[batch],
                 size=size, options=options, proof=(1, 5))
    if row["model"] == "gpt2":
        small["per_sample"] = size
    return small


TINY = {f"{name}-tiny": tiny(row) for name, row in WORK.items()}
