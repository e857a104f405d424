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
import datetime
import functools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

here = os.path.dirname(os.path.abspath(__file__))
bench = os.path.dirname(here)
sys.path[:0] = [bench, here]
import protocol  # noqa: E402
import telemetry  # noqa: E402
import work  # noqa: E402

MORE = 75  # EX_TEMPFAIL: run it again
SKIP = 77
PREPARE = {"max-autotune": 300, "compile": 150, "compile-graph": 150, "reduce-overhead": 150}


class OutOfTime(Exception):
    pass


class Referee:
    def __init__(self, args):
        self.args = args
        self.start = time.monotonic()
        self.gpu = telemetry.open_gpu() if args.device == "cuda" else None
        self.about = self.gpu.about() if self.gpu else {"gpu": protocol.cpu_name()}
        name = re.sub(r"[^a-z0-9]+", "-", self.about["gpu"].lower()).strip("-")
        day = datetime.date.today().isoformat()
        self.folder = args.results or os.path.join(bench, "results", f"{day}-{name}")
        self.cache = os.path.abspath(args.cache)
        os.makedirs(self.folder, exist_ok=True)
        os.makedirs(self.cache, exist_ok=True)
        # Both keep what took them long to find, from one part to the next.
        self.env = {"TORCHINDUCTOR_CACHE_DIR": os.path.join(self.cache, "inductor"),
                    "XDG_CACHE_HOME": os.path.join(self.cache, "etude")}
        self.table = work.TINY if args.tiny else work.WORK
        if args.work and args.work not in self.table:
            sys.exit(f"gpu-bench: {args.work} is {'not ' if args.tiny else ''}a tiny one")
        self.window = 0.1 if args.tiny else args.seconds

    @functools.cached_property
    def facts(self):
        return {**protocol.facts(self.args.python, here), **self.about}

    # ---- time ----

    def left(self):
        return self.args.minutes * 60 - (time.monotonic() - self.start)

    def need(self, seconds):
        """Raises OutOfTime when this part has not SECONDS more, and has begun something."""
        if self.left() < seconds and time.monotonic() - self.start > 60:
            raise OutOfTime

    # ---- files ----

    def path(self, name):
        return os.path.join(self.folder, name + ".json")

    def load(self, name):
        """What is already known of NAME: from this commit."""
        try:
            with open(self.path(name), encoding="utf-8") as f:
                known = json.load(f)
        except (OSError, ValueError):
            known = {}
        if known.get("commit") != self.facts["commit"] or self.args.again:
            return dict(self.facts)
        return known

    def say(self, text):
        print(f"[{time.monotonic() - self.start:5.0f} s] {text}", file=sys.stderr, flush=True)

    # ---- children ----

    def shape(self, w, batch):
        options = {"device": self.args.device, "threads": self.args.threads,
                   "precision": self.args.precision, **w["options"]}
        return ([w["model"], str(batch), str(w["size"])],
                [f"{key}={value}" for key, value in options.items()])

    def ours(self, w, batch, *more, env=None):
        shape, options = self.shape(w, batch)
        return protocol.Child("etude", [os.path.join(self.args.build, "bench", "train"), *shape,
                                        *options, *more], env or self.env)

    def peer(self, w, batch, setting, *more, env=None):
        shape, options = self.shape(w, batch)
        return protocol.Child(setting, [self.args.python, os.path.join(bench, "peer.py"), *shape,
                                        setting, *options, *more], env or self.env)

    def first_weights(self, name, w):
        """Both sides begin with these."""
        path = os.path.join(self.cache, name + ".safetensors")
        if not os.path.exists(path):
            with self.ours(w, w["batch"], f"save={path}.part"):
                pass
            os.replace(path + ".part", path)
        return f"weights={path}"

    def settings(self, w):
        chosen = self.args.settings.split(",") if self.args.settings else w["settings"]
        if self.args.device == "cuda":
            return chosen
        # Without a GPU: no graphs, one attention.
        plain = [":".join(x for x in s.split(":") if x not in work.ATTENTION and x != "efficient")
                 for s in chosen if s.split(":")[0] in work.ON_CPU]
        return list(dict.fromkeys(plain))

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

    # ---- parts 2 to 4: training ----

    def quick(self, child, batch):
        """Samples a second in three short windows, the best; and its first loss."""
        mode = child.name.split(":")[0]
        first = child.ask("proof 1", max(min(PREPARE.get(mode, 90), self.left()), 30))
        child.ask("run 5")
        steps = protocol.steps_for(child, self.window / 3)
        answers = [child.ask(f"run {steps}") for _ in range(3)]
        return {"samples_per_sec": max(batch * steps / a["seconds"] for a in answers),
                "first_loss": first["loss"], "peak_bytes": answers[-1].get("peak_bytes")}

    def try_out(self, start, batch, patience):
        """quick() of a child that START makes, or why there is no answer. A child that was
        given too little time is not held to it."""
        self.need(patience)
        full = self.left() >= patience
        begin = time.monotonic()
        try:
            with start() as child:
                return {**self.quick(child, batch), "took": time.monotonic() - begin}
        except protocol.Ended as why:
            if not full and "no answer" in str(why):
                raise OutOfTime from None
            return {"error": str(why)}

    def grid(self, name, w, result, weights):
        """Every setting of the peer at the same batch; and Etude, to compare roughly."""
        peers = result.setdefault("peers", {})
        for setting in ("etude", *self.settings(w)):
            if setting in peers:
                continue
            make = (functools.partial(self.ours, w, w["batch"], weights) if setting == "etude"
                    else functools.partial(self.peer, w, w["batch"], setting, weights))
            patience = PREPARE.get(setting.split(":")[0], 60)
            peers[setting] = self.try_out(make, w["batch"], 1 if self.args.tiny else patience)
            protocol.save(self.path(name), result)
            self.say(f"{name} {setting}: " + peers[setting].get(
                "error", f"{peers[setting].get('samples_per_sec', 0):.1f} samples/s"))
        same = {s: p["samples_per_sec"] for s, p in peers.items() if s != "etude" and
                "samples_per_sec" in p and not set(s.split(":")) & set(work.OTHER_NUMERICS)}
        return max(same, key=same.get) if same else None

    def sweep(self, name, w, result, weights, best):
        """Each side's own best batch: 'etude' and BEST, over w["batches"]."""
        seen = result.setdefault("batches", {})
        for batch in w["batches"]:
            for side in ("etude", best):
                key = f"{side} {batch}"
                if key in seen:
                    continue
                if batch == w["batch"]:
                    seen[key] = result["peers"][side]
                    continue
                make = (functools.partial(self.ours, w, batch, weights) if side == "etude"
                        else functools.partial(self.peer, w, batch, side, weights))
                seen[key] = self.try_out(make, batch, 1 if self.args.tiny else 90)
                protocol.save(self.path(name), result)
                self.say(f"{name} batch {key}: {seen[key].get('samples_per_sec', 0):.1f}")
        return [max(w["batches"], key=lambda b: seen[f"{side} {b}"].get("samples_per_sec", 0))
                for side in ("etude", best)]

    def duel(self, w, weights, best, batches, patience):
        """The proof, then windows in turns: Etude, the peer, the peer once more."""
        self.need(patience)
        with contextlib.ExitStack() as stack:
            sides = [stack.enter_context(self.ours(w, batches[0], weights)),
                     stack.enter_context(self.peer(w, batches[1], best, weights))]
            proof = []
            for child in sides:
                if batches[0] == batches[1]:
                    proof.append(protocol.prove(child))
                else:
                    child.ask("run 10")
            steps = [protocol.steps_for(child, self.window) for child in sides]
            # The peer twice in every round, for the control: a second one of it would not
            # fit beside the others.
            answers = protocol.turns([*sides, sides[1]], [*steps, steps[1]], self.args.windows,
                                     self.watch)
        a, b, again = (protocol.rates(answers[i], batches[min(i, 1)]) for i in range(3))
        row = {
            "batch": {"etude": batches[0], "peer": batches[1]}, "peer_setting": best,
            "samples_per_sec": {"etude": statistics.median(a), "peer": statistics.median(b)},
            "ratio": protocol.ratio(a, b), "control": protocol.ratio(b, again),
            "stalled_windows": {"peer": protocol.stalls(answers[1])},
            "unlike_clocks": protocol.unlike_clocks(answers[0], answers[1]),
            "peak_bytes": {s: answers[i][-1].get("peak_bytes")
                           for i, s in enumerate(("etude", "peer"))},
            "windows": dict(zip(("etude", "peer", "peer_again"), answers)),
        }
        row["valid"] = protocol.control_holds(row["control"])
        if proof:
            row["proof"] = {"steps": protocol.PROOF, "etude": proof[0], "peer": proof[1],
                            "unlike": protocol.unlike(*proof, self.args.precision)}
        return row

    def network(self, name, w):
        if self.args.batch:
            w = dict(w, batch=self.args.batch, batches=[self.args.batch])
            name = f"{name}-{self.args.batch}"
        result = self.load(name)
        if result.get("done"):
            self.print_network(name, w, result)
            return
        result.update({"work": {k: v for k, v in w.items() if k != "settings"},
                       "precision": self.args.precision})
        weights = self.first_weights(name, w)
        best = self.grid(name, w, result, weights)
        if best is None or "error" in result["peers"]["etude"]:
            result["done"] = True
            protocol.save(self.path(name), result)
            self.print_network(name, w, result)
            return
        own = self.sweep(name, w, result, weights, best)
        if "ceilings" not in result:
            result["ceilings"] = self.ceilings()
        # As both took to be tried, for a peer that finds what it compiled; and the proof.
        took = sum(result["peers"][side].get("took", 60) for side in ("etude", best))
        patience = 1 if self.args.tiny else (
            took + protocol.PROOF[-1] * w["batch"] * 2.5 / result["peers"][best]["samples_per_sec"]
            + self.args.windows * self.window * 3.5)
        for key, batches in (("equal_batch", [w["batch"]] * 2), ("own_batch", own)):
            # A run that the control spoiled is not a run.
            if result.get(key, {}).get("valid"):
                continue
            if key == "own_batch" and own == [w["batch"]] * 2:
                continue
            try:
                result[key] = self.duel(w, weights, best, batches, patience)
            except protocol.Ended as why:
                result[key] = {"error": str(why)}
            protocol.save(self.path(name), result)
        result["done"] = all(result.get(key, {}).get("valid", True)
                             for key in ("equal_batch", "own_batch"))
        protocol.save(self.path(name), result)
        self.print_network(name, w, result)

    def print_network(self, name, w, result):
        peers = result["peers"]
        print(f"{name}, {result['precision']}:")
        for setting, p in sorted(peers.items(), key=lambda x: -x[1].get("samples_per_sec", 0)):
            rate = p.get("samples_per_sec")
            print(f"    {setting:28} " + (f"{rate * w['per_sample']:12.0f} {w['unit']}/s"
                                          if rate else p["error"][:80]))
        for key in ("equal_batch", "own_batch"):
            row = result.get(key)
            if not row:
                continue
            if "error" in row:
                print(f"  {key}: {row['error']}")
                continue
            r, c = row["ratio"], row["control"]
            rate = row["samples_per_sec"]["etude"]
            top = result["ceilings"]["tflops"]
            share = (f", {100 * rate * w['flops'] / top / 1e12:.1f} % of the measured product"
                     if w["flops"] and top else "")
            print(f"  {key}: {rate * w['per_sample']:.0f} {w['unit']}/s{share}, "
                  f"{r['median']:.3f} ({r['ci95'][0]:.3f} .. {r['ci95'][1]:.3f}) times "
                  f"{row['peer_setting']}; control {c['median']:.4f}"
                  + ("" if row["valid"] else " SPOILS THE RUN"))
            for why in row.get("proof", {}).get("unlike", []):
                print(f"    NOT THE SAME TRAINING: {why}")

    # ---- part 5: start-up, and the CPU ----

    def first_step(self, start):
        """Seconds from exec to the answer after one step."""
        begin = time.monotonic()
        with start() as child:
            child.ask("run 1", max(self.left(), 60))
            return time.monotonic() - begin

    def startup_settings(self):
        chosen = self.args.settings.split(",") if self.args.settings else work.ON_CPU
        return [s for s in work.ON_CPU if s in chosen]

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
        for model in ("resnet20", "resnet18", "gpt2"):
            path = self.path(f"cpu-{model.replace('/', '-')}")
            if os.path.exists(path) and not self.args.again:
                continue
            self.need(180)
            subprocess.run([sys.executable, os.path.join(bench, "cpu", "referee.py"), "--train",
                            os.path.join(self.args.build, "bench", "train"), "--python",
                            self.args.python, "--model", model, "--threads",
                            str(os.cpu_count()), "--json", path],
                           check=True, stdout=subprocess.DEVNULL)
            with open(path, encoding="utf-8") as f:
                r = json.load(f)["ratio"]
            print(f"cpu {model}: {r['median']:.3f} times torch")

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
    args.add_argument("--build", default=".")
    args.add_argument("--python", default=sys.executable)
    args.add_argument("--part", type=int, choices=range(1, 6), default=1)
    args.add_argument("--work", choices=[*work.WORK, *work.TINY], help="this alone")
    args.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    args.add_argument("--threads", type=int, default=0)
    args.add_argument("--precision", default="amp_bf16", choices=protocol.LOSS)
    args.add_argument("--batch", type=int, help="of both sides; else the table's")
    args.add_argument("--settings", help="of the peer, with commas; else the table's")
    args.add_argument("--windows", type=int, default=8)
    args.add_argument("--seconds", type=float, default=3.0, help="of a window")
    args.add_argument("--minutes", type=float, default=9.0, help="of this part")
    args.add_argument("--results", help="folder; else bench/results/DATE-GPU")
    args.add_argument("--cache", default="bench-cache", help="folder kept between parts")
    args.add_argument("--again", action="store_true", help="forget what is done")
    args.add_argument("--tiny", action="store_true", help="the same with toys, for a CPU")
    args = args.parse_args()
    if args.device == "cuda" and telemetry.open_gpu() is None:
        print("gpu-bench: there is no NVIDIA GPU here, or its driver does not answer",
              file=sys.stderr)
        return SKIP
    try:
        Referee(args).run()
    except OutOfTime:
        print("gpu-bench: out of time; the same command goes on from here", file=sys.stderr)
        return MORE
    return 0


sys.exit(main())
