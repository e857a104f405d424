# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of the table of single operations: as bench/gpu/micro.c, whose lines it
reads, with setting=NAME besides: eager, compile, foreach (adamw), or flash, cudnn,
efficient (sdpa).

micro.py DEVICE

A turn runs the operation once on each of several sets of random operands; on a GPU the
turn is recorded as a CUDA graph where that is possible and timed between events.
"""
import contextlib
import json
import statistics
import sys
import time

import torch
from torch.nn import functional as F

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
ATTENTION = {"flash": "FLASH_ATTENTION", "cudnn": "CUDNN_ATTENTION",
             "efficient": "EFFICIENT_ATTENTION"}
device = sys.argv[1]
cuda = device == "cuda"


def rand(*shape, dtype):
    return (torch.rand(shape, device=device) * 2 - 1).to(dtype)


def packed(a):
    x = rand(a["b"], a["t"], 3, a["h"], a["d"], dtype=a["dtype"])
    return [x[:, :, i].transpose(1, 2) for i in range(3)]


def image(a):
    x = rand(a["n"], a["c"], a["s"], a["s"], dtype=a["dtype"])
    one = rand(a["c"], dtype=torch.float32)
    return [x.contiguous(memory_format=torch.channels_last), one, one.clone()]


def matrices(a):
    x = rand(*((a["k"], a["m"]) if a.get("ta") else (a["m"], a["k"])), dtype=a["dtype"])
    y = rand(*((a["n"], a["k"]) if a.get("tb") else (a["k"], a["n"])), dtype=a["dtype"])
    return [x.T if a.get("ta") else x, y.T if a.get("tb") else y]


def rows(a):
    one = rand(a["cols"], dtype=torch.float32)
    return [rand(a["rows"], a["cols"], dtype=a["dtype"]), one, one.clone()]


def logits(a):
    return [rand(a["rows"], a["cols"], dtype=a["dtype"]),
            torch.randint(a["cols"], (a["rows"],), device=device)]


def layer_norm(x, g, b):
    return F.layer_norm(x, g.shape, g.to(x.dtype), b.to(x.dtype))


def batch_norm(x, g, b):
    return F.relu(F.batch_norm(x, None, None, g, b, training=True))


def cross_entropy(x, y):
    return F.cross_entropy(x.float(), y, reduction="none")


def sdpa(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


CASES = {  # operands, what is computed from them
    "matmul": (matrices, torch.matmul),
    "sdpa": (packed, sdpa),
    "layer_norm": (rows, layer_norm),
    "batch_norm": (image, batch_norm),
    "cross_entropy": (logits, cross_entropy),
}


def updates(a):
    """AdamW of one flat array, once for each set."""
    how = {"foreach": True} if a["setting"] == "foreach" else {"fused": True}
    for _ in range(a["sets"]):
        p = torch.nn.Parameter(rand(a["n"], dtype=torch.float32))
        p.grad = rand(a["n"], dtype=torch.float32)
        yield torch.optim.AdamW([p], 1e-4, capturable=cuda, **how).step


def copies(a):
    x, y = (rand(a["n"] // 4, dtype=torch.float32) for _ in range(2))
    yield lambda: y.copy_(x)


def gradients(function, operands):
    """What computes the gradients of every operand that is of floats."""
    leaves = [x.detach().requires_grad_() if x.is_floating_point() else x for x in operands]
    y = function(*leaves)
    dy = (torch.rand_like(y, dtype=torch.float32) * 2 - 1).to(y.dtype)
    wanted = [x for x in leaves if x.requires_grad]
    return lambda: torch.autograd.grad(y, wanted, dy, retain_graph=True)


def calls(op, a):
    """What one turn calls, a function for each set."""
    if op in ("adamw", "copy"):
        yield from (updates if op == "adamw" else copies)(a)
        return
    make, function = CASES[op]
    if a["setting"] == "compile":
        function = torch.compile(function)
    for _ in range(a["sets"]):
        operands = make(a)
        if a.get("back"):
            yield gradients(function, operands)
        else:
            yield lambda operands=operands: function(*operands)


def record(turn):
    """TURN as a graph that is replayed; TURN where it cannot be recorded."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        turn()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            turn()
    except RuntimeError:
        torch.cuda.synchronize()
        return turn
    return graph.replay


def seconds_of(turn, times):
    if not cuda:
        start = time.perf_counter()
        for _ in range(times):
            turn()
        return time.perf_counter() - start
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(times):
        turn()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1000


def measure(op, a):
    functions = list(calls(op, a))

    def turn():
        for f in functions:
            f()

    with contextlib.ExitStack() as stack:
        if a["setting"] in ATTENTION:
            backend = getattr(torch.nn.attention.SDPBackend, ATTENTION[a["setting"]])
            stack.enter_context(torch.nn.attention.sdpa_kernel(backend))
        if not a.get("back"):
            stack.enter_context(torch.no_grad())
        turn()
        turn()
        run = record(turn) if cuda else turn
        times = int(0.03 / max(seconds_of(run, 3) / 3, 1e-6)) + 3
        trials = [seconds_of(run, times) / times for _ in range(7)]
    return statistics.median(trials) / len(functions)


def main():
    torch.manual_seed(17)
    for line in sys.stdin:
        op, *pairs = line.split()
        a = {"dtype": "f32", "sets": 2, "setting": "eager"}
        for pair in pairs:
            key, _, value = pair.partition("=")
            a[key] = int(value) if value.isdigit() else value
        a["dtype"] = DTYPES[a["dtype"]]
        try:
            answer = {"seconds": measure(op, a)}
        except (RuntimeError, KeyError) as error:
            answer = {"error": str(error).splitlines()[0][:200]}
        if cuda:
            torch.cuda.empty_cache()
        print(json.dumps(answer), flush=True)


main()
