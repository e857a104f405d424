# SPDX-License-Identifier: Apache-2.0
"""Writes ddp.txt: 20 steps of make_resnet20.py's network and of make_gpt.py's in PyTorch's
DistributedDataParallel, two processes on gloo with half of each batch: batch norm sees its
process's half alone, gradients are averaged. The loss is the mean of the two."""
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

import golden

STEPS, WORLD = 20, 2
runs = {}
golden.write = lambda file, title, *run: runs.update({file: run[:4]})
import make_gpt  # noqa: E402
import make_resnet20  # noqa: E402,F401


def losses(rank, file, dtype):
    make_model, make_optimizer, batch, loss_of = runs[file]
    batches = [batch(step) for step in range(STEPS)]
    make_gpt.BATCH = 4 // WORLD
    model = DistributedDataParallel(make_model().to(dtype))
    model.train()
    optimizer = make_optimizer(model)
    out = []
    for x, target in batches:
        x, target = (t.chunk(WORLD)[rank] for t in (x, target))
        loss = loss_of(model(x.to(dtype) if x.is_floating_point() else x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().double()
        dist.all_reduce(mean)
        out.append(mean.item() / WORLD)
    make_gpt.BATCH = 4
    return out


def work(rank, port):
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=WORLD)
    columns = [losses(rank, file, dtype)
               for file in ("resnet20.txt", "gpt.txt")
               for dtype in (torch.float64, torch.float32)]
    if rank == 0:
        with open("ddp.txt", "w") as f:
            f.write("# ResNet-20 and GPT-2 on two ranks, see make_ddp.py\n"
                    "# step, losses of ResNet-20 in f64, in f32, of GPT-2 in f64, in f32; "
                    f"PyTorch {torch.__version__}\n")
            for step, row in enumerate(zip(*columns)):
                f.write(" ".join([str(step)] + ["%.10g" % v for v in row]) + "\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(work, args=(int(sys.argv[1]) if len(sys.argv) > 1 else 29517,), nprocs=WORLD)
