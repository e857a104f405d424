# SPDX-License-Identifier: Apache-2.0
"""Etude against PyTorch's best setting on one GPU (PERFORMANCE.md section 6).

referee.py --build DIR --python PYTHON --part 1..5 [--results DIR] [--minutes 9]

  1  ceilings, and the table of single operations        2  GPT-2     3  ResNet-50
  4  small networks     5  start-up, and this machine's CPU

A part ends before its minutes are over: what is done is in the results' folder, a file for
each piece of work, and the same command goes on with what is missing (exit status 75: there
is more; 0: all done). --tiny --device cpu tries all of it without a GPU.
"""
import argparse
import contextlib
import functools
import os
import re
import subprocess
import sys
import tempfile
import time

here = os.path.dirname(os.path.abspath(__file__))
bench = os.path.dirname(here)
sys.path[:0] = [bench, here]
import protocol  # noqa: E402
import telemetry  # noqa: E402
import training  # noqa: E402
import work  # noqa: E402

SKIP = 77


class GpuReferee(training.Referee):
    def __init__(self, args):
        self.gpu = telemetry.open_gpu() if args.device == "cuda" else None
        self.about = self.gpu.about() if self.gpu else {"gpu": protocol.cpu_name()}
        name = re.sub(r"[^a-z0-9]+", "-", self.about["gpu"].lower()).strip("-")
        super().__init__(args, work.TINY if args.tiny else work.WORK, name)
        if args.work and args.work not in self.table:
            sys.exit(f"gpu-bench: {args.work} is {'not ' if args.tiny else ''}a tiny one")

    @functools.cached_property
    def facts(self):
        return {**protocol.facts(self.args.python, here), **self.about}

    def watch(self):
        return telemetry.Watch(self.gpu)

    # ---- part 1: single operations ----

    def micro(self, side):
        if side == "etude":
            command = [os.path.join(self.args.build, "bench", "gpu", "micro"), self.args.device,
                       str(self.args.threads)]
        else:
            command = [self.args.python, os.path.join(here, "micro.py"), self.args.device]
        return protocol.Child(side, command, self.env)

    def ask(self, child, case, setting=None):
        size = case["bytes"] or 1
        # Several times a cache of 64 MB, in two sets at least; one is enough for a copy.
        sets = 1 if case["op"] == "copy" else min(max(2, -(-256 * 2**20 // size)), 16)
        shape = dict(case["shape"], sets=2 if self.args.tiny else sets)
        if setting:
            shape["setting"] = setting
        answer = child.ask(case["op"] + "".join(f" {k}={v}" for k, v in shape.items()), 240)
        if "seconds" in answer:
            answer["tflops"] = case["flops"] / answer["seconds"] / 1e12
            answer["gbps"] = case["bytes"] / answer["seconds"] / 1e9
        return answer

    def ceilings(self):
        """The best product and the best copy either side can show, in this very run."""
        cases = work.TINY_CEILINGS if self.args.tiny else work.CEILINGS
        sides = {}
        for side in ("etude", "torch"):
            try:
                with self.micro(side) as child, self.watch() as seen:
                    sides[side] = {name: self.ask(child, c) for name, c in cases.items()}
                sides[side]["telemetry"] = seen.summary()
            except protocol.Ended as why:
                sides[side] = {"error": str(why)}
        found = {"sides": sides}
        for name, unit in (("matmul", "tflops"), ("copy", "gbps")):
            best = [s[name][unit] for s in sides.values() if unit in s.get(name, {})]
            found[unit] = max(best) if best else None
        self.say(f"ceilings: {found['tflops'] or 0:.1f} TFLOP/s, {found['gbps'] or 0:.0f} GB/s")
        return found

    def operations(self):
        result = self.load("operations")
        result["ceilings"] = self.ceilings()
        rows = result.setdefault("rows", {})
        with contextlib.ExitStack() as stack:
            sides = {}
            for case in work.TINY_CASES if self.args.tiny else work.CASES:
                name = " ".join([case["op"], *(f"{k}={v}" for k, v in case["shape"].items())])
                row = rows.setdefault(name, {})
                for setting in ("etude", *case["settings"]):
                    if self.args.device == "cpu" and setting not in ("etude", "eager", "foreach"):
                        continue
                    if setting in row:
                        continue
                    self.need(60)
                    side = "etude" if setting == "etude" else "torch"
                    try:
                        if side not in sides:
                            sides[side] = stack.enter_context(self.micro(side))
                        row[setting] = self.ask(sides[side], case,
                                                None if side == "etude" else setting)
                    except protocol.Ended as why:
                        row[setting] = {"error": str(why)}
                        sides.pop(side, None)
                    protocol.save(self.path("operations"), result)
        self.print_operations(result)

    def print_operations(self, result):
        flops, bytes_ = result["ceilings"]["tflops"], result["ceilings"]["gbps"]
        print(f"{'operation':58} {'us':>9} {'TFLOP/s':>8} {'GB/s':>7} {'%':>5} {'torch':>9} ratio")
        for name, row in result["rows"].items():
            peers = {k: v["seconds"] for k, v in row.items() if k != "etude" and "seconds" in v}
            best = min(peers, key=peers.get) if peers else None
            ours = row["etude"]
            if "seconds" not in ours:
                print(f"{name:58} {ours['error']}")
                continue
            part = max(ours["tflops"] / flops if flops else 0,
                       ours["gbps"] / bytes_ if bytes_ else 0)
            print(f"{name:58} {ours['seconds'] * 1e6:9.1f} {ours['tflops']:8.1f} "
                  f"{ours['gbps']:7.0f} {100 * part:5.1f} " +
                  (f"{peers[best] * 1e6:9.1f} {peers[best] / ours['seconds']:.2f} {best}"
                   if best else "        -"))

    # ---- part 5: start-up, and the CPU ----

    def first_step(self, start):
        """Seconds from exec to the answer after one step."""
        begin = time.monotonic()
        with start() as child:
            child.ask("run 1", max(self.left(), 60))
            return time.monotonic() - begin

    def startup_settings(self):
        chosen = self.args.settings.split(",") if self.args.settings else training.ON_CPU
        return [s for s in training.ON_CPU if s in chosen]

    def startup(self):
        """Cold: the program's own caches are empty. Warm: as the run before left them. (The
        system's cache of files is warm in both.)"""
        name = "gpt2-tiny" if self.args.tiny else "gpt2-124m"
        small = "lenet-tiny" if self.args.tiny else "resnet20-28px"
        result = self.load("startup")
        rows = result.setdefault("rows", {})
        for which in (name, small):
            w = dict(self.table[which], batch=4)
            for side in ("etude", *self.startup_settings()):
                key = f"{which} {side}"
                if key in rows:
                    continue
                self.need(1 if self.args.tiny else 90)
                with tempfile.TemporaryDirectory(dir=self.cache) as empty:
                    env = {"TORCHINDUCTOR_CACHE_DIR": empty, "XDG_CACHE_HOME": empty,
                           "TRITON_CACHE_DIR": empty, "CUDA_CACHE_PATH": empty}
                    make = (functools.partial(self.ours, w, 4, env=env) if side == "etude"
                            else functools.partial(self.peer, w, 4, side, env=env))
                    try:
                        self.first_step(make)  # files into the system's cache
                        for entry in os.scandir(empty):
                            subprocess.run(["rm", "-rf", entry.path], check=True)
                        rows[key] = {"cold": self.first_step(make), "warm": min(
                            self.first_step(make) for _ in range(1 if self.args.tiny else 3))}
                    except protocol.Ended as why:
                        rows[key] = {"error": str(why)}
                protocol.save(self.path("startup"), result)
        for key, row in rows.items():
            print(f"{key:28} " + (row.get("error") or
                                  f"cold {row['cold']:7.2f} s, warm {row['warm']:7.2f} s"))

    def cpu(self):
        """The CPU's referee, on all cores."""
        for model in ("resnet20", "resnet18", "gpt-bytes"):
            self.need(180)
            done = subprocess.run([sys.executable, os.path.join(bench, "cpu", "referee.py"), "--build",
                            self.args.build, "--python", self.args.python, "--work", model,
                            "--results", os.path.join(self.folder, "cpu"), "--cache", self.cache,
                            "--minutes", str(self.left() / 60)], check=False)
            if done.returncode == training.MORE:
                raise training.OutOfTime
            done.check_returncode()

    # ---- parts ----

    def run(self):
        if self.args.work:
            self.network(self.args.work, self.table[self.args.work])
        elif self.args.part == 1:
            self.operations()
        elif self.args.part == 5:
            self.startup()
            if not self.args.tiny:
                self.cpu()
        else:
            for name, w in self.table.items():
                if w["part"] == self.args.part:
                    self.network(name, w)


def main():
    args = argparse.ArgumentParser()
    training.options(args)
    args.add_argument("--part", type=int, choices=range(1, 6), default=1)
    args.add_argument("--work", choices=[*work.WORK, *work.TINY], help="this alone")
    args.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    args.add_argument("--seconds", type=float, default=3.0, help="of a window")
    args.add_argument("--minutes", type=float, default=9.0, help="of this part")
    args.set_defaults(precision="amp_bf16")
    args = args.parse_args()
    if args.device == "cuda" and telemetry.open_gpu() is None:
        print("gpu-bench: there is no NVIDIA GPU here, or its driver does not answer",
              file=sys.stderr)
        return SKIP
    try:
        GpuReferee(args).run()
    except training.OutOfTime:
        print("gpu-bench: out of time; the same command goes on from here", file=sys.stderr)
        return training.MORE
    return 0


sys.exit(main())
