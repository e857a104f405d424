# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of the referees: one step of a model, as bench/train.c has it.

peer.py MODEL BATCH SIZE SETTING [KEY=VALUE...]

The keys and the lines on standard input are those of bench/train.c; weights=FILE gives
both the same first weights. An answer has device_seconds besides, between two events on
the GPU; its import_bytes are what the process had when it had imported torch. SETTING is a
mode, and flags behind colons:

  eager, compile, max-autotune (without graphs), reduce-overhead   torch.compile's modes
  graph, compile-graph       the whole step as one CUDA graph, of eager or compiled code
  :nhwc                      channels-last images and filters
  :flash :cudnn :efficient   which attention; else PyTorch chooses
  :foreach                   optimizer of many tensors a call; else fused
  :bf16res                   residuals of a GPT in bf16; else as autocast has it, f32
  :bf16w                     weights and everything else in bf16
  :frozen                    of an evaluation: compiled with the weights as constants
"""
import contextlib
import json
import math
import sys
import time

import torch
from torch.nn import functional as F
from torch.nn.utils import clip_grad_norm_, get_total_norm

import models

BATCHES = 8
DTYPES = {"amp_bf16": torch.bfloat16, "amp_fp16": torch.float16}
COMPILE = {"compile": "default", "compile-graph": "default",
           "max-autotune": "max-autotune-no-cudagraphs", "reduce-overhead": "reduce-overhead"}
ATTENTION = {"flash": "FLASH_ATTENTION", "cudnn": "CUDNN_ATTENTION",
             "efficient": "EFFICIENT_ATTENTION"}
FLAGS = {"nhwc", "foreach", "bf16res", "bf16w", "frozen", *ATTENTION}


def memory(row):
    """A row of /proc/self/status, in bytes."""
    with open("/proc/self/status", encoding="utf-8") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith(row))


IMPORTED = memory("VmRSS:")


class Peer:
    def __init__(self, name, n, size, setting, o):
        self.mode, *flags = setting.split(":")
        if self.mode not in COMPILE and self.mode not in ("eager", "graph"):
            raise ValueError(f"there is no setting {self.mode}")
        if unknown := set(flags) - FLAGS:
            raise ValueError(f"there is no flag {unknown.pop()}")
        self.kind = {"gpt2": "text", "unet": "pixels"}.get(name, "image")
        self.text, self.evaluates = self.kind == "text", o["do"] == "eval"
        self.accumulate, self.first = o["accumulate"], None
        self.n, self.o, self.flags = n // self.accumulate, dict(o, size=size), flags
        self.device, self.clip = o["device"], o["clip"]
        self.precision = o["precision"]
        self.cuda = self.device == "cuda"
        self.graphed = self.mode.endswith("graph")
        self.batches = {}
        self.done = 0
        residual = torch.bfloat16 if "bf16res" in flags else None
        model = (models.GPT(self.o, residual) if self.text else models.MODELS[name](self.o))
        if o["weights"]:
            models.load(model, o["weights"])
        self.layout = torch.channels_last if "nhwc" in flags else torch.contiguous_format
        kind = torch.bfloat16 if "bf16w" in flags else torch.float32
        self.model = model.to(self.device, kind, memory_format=self.layout)
        self.model.train(not self.evaluates)
        how = {"foreach": True} if "foreach" in flags else {"fused": True}
        if self.text:
            self.optimizer = torch.optim.AdamW(model.parameters(), o["lr"],
                                               capturable=self.graphed, **how)
        else:
            self.optimizer = torch.optim.SGD(model.parameters(), o["lr"], momentum=0.9, **how)
        self.scaler = torch.amp.GradScaler(self.device, enabled=self.precision == "amp_fp16")
        self.loss_of = self.forward
        if self.mode in COMPILE:
            torch._inductor.config.freezing = "frozen" in flags
            self.loss_of = torch.compile(self.forward, mode=COMPILE[self.mode])
        self.norm = None
        if self.graphed:
            self.capture()

    def forward(self, x, y):
        """The loss; and the outputs, of an evaluation."""
        z = self.model(x.to(torch.bfloat16) if "bf16w" in self.flags and not self.text else x)
        if self.text:
            z, y = z.flatten(0, -2), y.flatten()
        loss = F.cross_entropy(z.float(), y)
        return (loss, z) if self.evaluates else loss

    def batch(self, k):
        if k not in self.batches:
            x, y = models.batch(k, self.kind, self.n, self.o, self.device)
            if not self.text:
                x = x.contiguous(memory_format=self.layout)
            self.batches[k] = x, y
        return self.batches[k]

    def contexts(self):
        stack = contextlib.ExitStack()
        for flag in set(self.flags) & set(ATTENTION):
            backend = getattr(torch.nn.attention.SDPBackend, ATTENTION[flag])
            stack.enter_context(torch.nn.attention.sdpa_kernel(backend))
        return stack

    def autocast(self):
        low = DTYPES.get(self.precision) if "bf16w" not in self.flags else None
        return torch.autocast(self.device, low, enabled=low is not None)

    def back(self, x, y):
        """Adds a batch's part to the gradient; self.loss is what it saw."""
        with self.autocast():
            loss = self.loss_of(x, y)
        part = loss / self.accumulate if self.accumulate > 1 else loss
        self.scaler.scale(part).backward()
        self.loss = loss.detach()

    def update(self, batches, proof=False):
        """One step on BATCHES; self.norm, where anyone wants it, is the gradient's."""
        self.optimizer.zero_grad(set_to_none=True)
        for x, y in batches:
            self.back(x, y)
        parameters = list(self.model.parameters())
        if self.clip or proof:
            self.scaler.unscale_(self.optimizer)
        if self.clip:
            self.norm = clip_grad_norm_(parameters, self.clip)
        elif proof:
            self.norm = get_total_norm([p.grad for p in parameters])
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def evaluate(self, x, y, proof):
        # Inductor takes weights for constants under no_grad alone.
        still = torch.no_grad if self.mode in COMPILE else torch.inference_mode
        with still(), self.autocast():
            self.loss, z = self.loss_of(x, y)
        if proof:
            self.norm = z.float().norm()

    def capture(self):
        """Steps until everything is allocated and chosen, one recorded, and then the
        weights as they were."""
        before = {k: v.clone() for k, v in self.model.state_dict().items()}
        x, y = self.batch(0)
        self.x, self.y = x.clone(memory_format=torch.preserve_format), y.clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side), self.contexts():
            for _ in range(3):
                self.update([(self.x, self.y)])
        torch.cuda.current_stream().wait_stream(side)
        self.recorded = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.recorded), self.contexts():
            self.update([(self.x, self.y)])
        with torch.no_grad():
            for k, v in self.model.state_dict().items():
                v.copy_(before[k])
            for state in self.optimizer.state.values():
                for v in state.values():
                    v.zero_()

    def step(self, proof):
        batches = [self.batch((self.done + i) % BATCHES) for i in range(self.accumulate)]
        self.done += self.accumulate
        if self.mode == "reduce-overhead":
            torch.compiler.cudagraph_mark_step_begin()
        if self.evaluates:
            self.evaluate(*batches[0], proof)
            return
        if not self.graphed:
            self.update(batches, proof)
            return
        x, y = batches[0]
        self.x.copy_(x)
        self.y.copy_(y)
        self.recorded.replay()
        if proof and not self.clip:
            self.norm = get_total_norm([p.grad for p in self.model.parameters()])

    def parameters(self):
        """A copy of all of them in the host's memory."""
        return [p.detach().to("cpu", torch.float32, copy=True) for p in self.model.parameters()]

    def change(self):
        """The norm of the parameters' difference to those before the first proof."""
        return math.sqrt(sum((now.double() - then).square().sum().item()
                             for now, then in zip(self.parameters(), self.first)))

    def run(self, steps, proof):
        if proof and self.first is None and not self.evaluates:
            self.first = self.parameters()
        if self.cuda:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            begin.record()
        start = time.perf_counter()
        with self.contexts():
            for i in range(steps):
                self.step(proof and i == steps - 1)
        if self.cuda:
            end.record()
        loss = self.loss.item()
        answer = {"loss": loss}
        if self.cuda:
            torch.cuda.synchronize()
            answer["device_seconds"] = begin.elapsed_time(end) / 1000
            answer["peak_bytes"] = torch.cuda.max_memory_reserved()
        answer["seconds"] = time.perf_counter() - start
        if proof:
            answer["output_norm" if self.evaluates else "grad_norm"] = float(self.norm)
            if not self.evaluates:
                answer["change"] = self.change()
        answer["rss_bytes"], answer["import_bytes"] = memory("VmHWM:"), IMPORTED
        return answer


def main():
    name, n, size, setting, *rest = sys.argv[1:]
    o = {"device": "cpu", "threads": 0, "precision": "fp32", "lr": 0.01, "clip": 0.0,
         "channels": 1, "classes": 10, "weights": None, "do": "train", "accumulate": 1}
    for pair in rest:
        key, _, value = pair.partition("=")
        kind = type(o[key]) if o.get(key) is not None else str if key == "weights" else None
        o[key] = kind(value) if kind else int(value) if value.isdigit() else value
    if o["threads"]:
        torch.set_num_threads(o["threads"])
    torch.backends.cudnn.benchmark = True
    tf32 = o["precision"] != "fp32"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    torch.manual_seed(17)
    peer = Peer(name, int(n), int(size), setting, o)
    for line in sys.stdin:
        word, steps = line.split()
        answer = peer.run(int(steps), word == "proof")
        print(json.dumps(answer), flush=True)
        if not math.isfinite(answer["loss"]) and not peer.scaler.is_enabled():
            raise ValueError(f"the loss is {answer['loss']}")


main()
