# SPDX-License-Identifier: Apache-2.0
"""What the referee of one GPU runs: networks, single operations, and what they count for.

Every row exists here alone; referee.py hands them to both sides. A tiny row is the same
work small enough for a CPU, to try the whole protocol where there is no GPU.
"""

ATTENTION = ("flash", "cudnn")

GPT = [f"{mode}:{how}" for mode in ("eager", "compile", "reduce-overhead", "max-autotune")
       for how in ATTENTION] + [
    "eager:efficient", "compile:efficient", "compile:cudnn:foreach",
    "compile:flash:bf16res", "compile:cudnn:bf16res", "compile:cudnn:bf16w"]
IMAGES = ["eager:nhwc", "compile:nhwc", "reduce-overhead:nhwc", "max-autotune:nhwc", "eager",
          "compile", "compile:nhwc:foreach"]
SMALL = ["eager:nhwc", "graph:nhwc", "compile:nhwc", "reduce-overhead:nhwc",
         "compile-graph:nhwc", "max-autotune:nhwc", "eager", "graph", "compile"]


def gpt(part, layers, d, heads, batch, batches, tiny=False):
    """flops: PaLM's count, 6 (12 L C^2 + V C) + 12 L C T a token. lr: at 3e-4 both sides
    diverge within 100 steps on random tokens (on an H200), and cannot be compared."""
    t, v = (32, 512) if tiny else (1024, 50304)
    flops = (6 * (12 * layers * d * d + v * d) + 12 * layers * d * t) * t
    return {"part": part, "model": "gpt2", "batch": batch, "batches": batches, "size": t,
            "unit": "tokens", "per_sample": t, "flops": flops, "settings": GPT,
            "options": {"n_layers": layers, "d_model": d, "n_heads": heads, "classes": v,
                        "clip": 1.0, "lr": "3e-5"}}


def images(part, model, batch, batches, size, gflop, settings=None, **options):
    """gflop: of one image, forward and back (None: not counted)."""
    # At this rate 100 steps on random images stay comparable; at 1e-3 two runs of ResNet-20
    # in fp32 are 2 % apart by rounding alone. Speed does not depend on it.
    return {"part": part, "model": model, "batch": batch, "batches": batches, "size": size,
            "unit": "images", "per_sample": 1, "flops": gflop and gflop * 1e9,
            "settings": settings or SMALL,
            "options": {"channels": 1, "classes": 10, "lr": "1e-4", **options}}


# GFLOP of an image: PERFORMANCE.md section 2.
WORK = {
    "gpt2-124m": gpt(2, 12, 768, 12, 64, [32, 64, 96]),
    "gpt2-1558m": gpt(2, 48, 1600, 25, 16, [8, 16, 24]),
    "gpt2-350m": gpt(0, 24, 1024, 16, 32, [32]),
    "gpt2-774m": gpt(0, 36, 1280, 20, 16, [16]),
    "resnet50": images(3, "resnet50", 256, [256, 512], 224, 24.30, IMAGES, channels=3,
                       classes=1000, lr="1e-5"),
    "resnet18-28px": images(4, "resnet18", 1024, [1024, 2048], 28, 2.735, stem="small"),
    "resnet18-32px": images(4, "resnet18", 1024, [1024], 32, 3.332, stem="small", channels=3),
    "resnet20-28px": images(4, "resnet20", 256, [256], 28, None),
    "resnet56-32px": images(4, "resnet56", 256, [256], 32, 0.755, channels=3),
    "lenet-28px": images(4, "lenet", 256, [256], 28, None),
}
TINY = {
    "gpt2-tiny": gpt(2, 2, 64, 2, 4, [4, 8], tiny=True),
    "resnet8-tiny": images(3, "resnet8", 16, [16], 12, None, IMAGES, channels=3),
    "lenet-tiny": images(4, "lenet", 16, [16], 12, None),
}


# ---- single operations ----

WIDTH = {"f32": 4, "bf16": 2}


def case(op, flops, passes, settings=("eager", "compile"), **shape):
    """A line for both sides. flops: of one run. passes: (bytes of one pass over the large
    operand, how many the operation needs at least)."""
    return {"op": op, "shape": shape, "flops": flops, "bytes": int(passes[0] * passes[1]),
            "settings": settings}


def matmul(m, n, k, ta=0, tb=0, dtype="bf16"):
    return case("matmul", 2 * m * n * k, (WIDTH[dtype], m * k + k * n + m * n), ("eager",),
                m=m, n=n, k=k, ta=ta, tb=tb, dtype=dtype)


def linear(rows, i, o):
    """A linear layer's three products: forward, gradient of its input, of its weight."""
    return [matmul(rows, o, i), matmul(rows, i, o, tb=1), matmul(i, o, rows, ta=1)]


def sdpa(b, h, t, d, back, dtype="bf16"):
    """Causal: half of two products forward, of five back."""
    return case("sdpa", (5 if back else 2) * b * h * t * t * d,
                (b * h * t * d * WIDTH[dtype], 8 if back else 4),
                ("flash", "cudnn", "efficient"), b=b, h=h, t=t, d=d, back=back, dtype=dtype)


def norm(op, elements, back, passes, dtype="bf16", **shape):
    return case(op, 0, (elements * WIDTH[dtype], passes), back=back, dtype=dtype, **shape)


def norms(rows, cols, dtype="bf16"):
    """x in, y out; back: dy and x in, dx out."""
    return [norm("layer_norm", rows * cols, back, 3 if back else 2, dtype, rows=rows, cols=cols)
            for back in (0, 1)]


def batch_norms(n, c, s, dtype="bf16"):
    """x twice (statistics first), y out; back: dy, x, y, then dy, x, y again, dx out."""
    return [norm("batch_norm", n * c * s * s, back, 7 if back else 3, dtype, n=n, c=c, s=s)
            for back in (0, 1)]


def losses(rows, cols, dtype="bf16"):
    return [norm("cross_entropy", rows * cols, back, 2 if back else 1, dtype, rows=rows, cols=cols)
            for back in (0, 1)]


def adamw(n):
    """Four arrays in, three out."""
    return case("adamw", 0, (4 * n, 7), ("eager", "foreach"), n=n)


def copy(n):
    return case("copy", 0, (n, 2), ("eager",), n=n)


TOKENS = 65536
# The ceilings of PERFORMANCE.md: what everything else is quoted in per cent of.
CEILINGS = {"matmul": matmul(8192, 8192, 8192), "copy": copy(8 * 10**9)}
CASES = [
    *linear(TOKENS, 768, 2304), *linear(TOKENS, 768, 768), *linear(TOKENS, 768, 3072),
    *linear(TOKENS, 3072, 768), *linear(TOKENS, 768, 50304),
    sdpa(64, 12, 1024, 64, 0), sdpa(64, 12, 1024, 64, 1),
    sdpa(16, 16, 2048, 128, 0), sdpa(16, 16, 2048, 128, 1),
    *norms(TOKENS, 768), *norms(16384, 4096), *losses(TOKENS, 50304),
    *batch_norms(256, 64, 112), *batch_norms(256, 256, 56), *batch_norms(256, 2048, 7),
    adamw(124_475_904),
]
TINY_CEILINGS = {"matmul": matmul(256, 256, 256, dtype="f32"), "copy": copy(10**7)}
TINY_CASES = [
    *(dict(c, shape=dict(c["shape"], dtype="f32")) for c in linear(64, 32, 96)),
    sdpa(2, 2, 32, 16, 0, "f32"), sdpa(2, 2, 32, 16, 1, "f32"), *norms(64, 32, "f32"),
    *losses(32, 100, "f32"), *batch_norms(4, 16, 8, "f32"), adamw(10000),
]
