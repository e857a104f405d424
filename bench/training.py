# SPDX-License-Identifier: Apache-2.0
"""A piece of training, or of evaluation, on both sides: what the referees of the CPU and of the
GPU share.

Both sides begin with the same weights. Every setting of the peer is tried and the fastest
kept; then both prove that they do the same work, and windows of them take turns
(bench/protocol.py). What is done is in the results' folder, a file for each piece of work, and
the same command goes on with what is missing.
"""
import contextlib
import functools
import json
import os
import statistics
import sys
import time

import protocol

bench = os.path.dirname(os.path.abspath(__file__))
MORE = 75  # EX_TEMPFAIL: run it again
PREPARE = {"max-autotune": 300, "compile": 150, "compile-graph": 150, "reduce-overhead": 150}
MEMORY = ("peak_bytes", "rss_bytes", "import_bytes")  # of an answer
ON_CPU = ("eager", "compile")  # modes that need no GPU
ATTENTION = ("flash", "cudnn", "efficient")  # as the GPU has it: flags that need one
# Numerics of their own: shown beside, never the best setting of the others' class.
OTHER_NUMERICS = ("bf16res", "bf16w")
TRAINED = 20  # steps before an evaluation


class OutOfTime(Exception):
    pass


def options(args):
    """What every referee is told."""
    args.add_argument("--build", default=".")
    args.add_argument("--python", default=sys.executable)
    args.add_argument("--threads", type=int)
    args.add_argument("--precision", choices=protocol.LOSS, help="else the table's")
    args.add_argument("--batch", type=int, help="of both sides; else the table's")
    args.add_argument("--settings", help="of the peer, with commas; else the table's")
    args.add_argument("--windows", type=int, default=8)
    args.add_argument("--results", help="folder; else bench/results/DATE-DEVICE")
    args.add_argument("--cache", default="bench-cache", help="folder kept between runs")
    args.add_argument("--again", action="store_true", help="forget what is done")
    args.add_argument("--tiny", action="store_true", help="the same with toys")
    args.set_defaults(device="cpu", threads=0)


class Referee:
    """TABLE: name -> a piece of work, with model, batch, batches (sizes to try), size, options
    (of both sides), settings (of the peer), unit, per_sample (units in a sample), flops (of a
    sample, or None), and where it is not the usual one proof (the steps that are compared)."""

    def __init__(self, args, table, device):
        self.args, self.table = args, table
        self.start = time.monotonic()
        day = time.strftime("%Y-%m-%d")
        self.folder = args.results or os.path.join(bench, "results", f"{day}-{device}")
        self.cache = os.path.abspath(args.cache)
        os.makedirs(self.folder, exist_ok=True)
        os.makedirs(self.cache, exist_ok=True)
        # Both keep what took them long to find, from one run to the next.
        self.env = {"TORCHINDUCTOR_CACHE_DIR": os.path.join(self.cache, "inductor"),
                    "XDG_CACHE_HOME": os.path.join(self.cache, "etude")}
        self.window = 0.1 if args.tiny else args.seconds

    @functools.cached_property
    def facts(self):
        return protocol.facts(self.args.python, bench)

    # ---- time ----

    def left(self):
        return self.args.minutes * 60 - (time.monotonic() - self.start)

    def need(self, seconds):
        """Raises OutOfTime when this run has not SECONDS more, and has begun something."""
        if self.left() < seconds and time.monotonic() - self.start > 60:
            raise OutOfTime

    # ---- files ----

    def path(self, name):
        return os.path.join(self.folder, name.replace("/", "-") + ".json")

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
        pairs = {"device": self.args.device, "threads": self.args.threads,
                 "precision": self.precision(w), **w["options"]}
        return ([w["model"], str(batch), str(w["size"])],
                [f"{key}={value}" for key, value in pairs.items()])

    def precision(self, w):
        return self.args.precision or w.get("precision", "fp32")

    def ours(self, w, batch, *more, env=None):
        shape, pairs = self.shape(w, batch)
        return protocol.Child("etude", [os.path.join(self.args.build, "bench", "train"), *shape,
                                        *pairs, *more], env or self.env)

    def peer(self, w, batch, setting, *more, env=None):
        shape, pairs = self.shape(w, batch)
        return protocol.Child(setting, [self.args.python, os.path.join(bench, "peer.py"), *shape,
                                        setting, *pairs, *more], env or self.env)

    def either(self, side, w, batch, weights):
        """What starts SIDE, "etude" or a setting of the peer."""
        if side == "etude":
            return functools.partial(self.ours, w, batch, weights)
        return functools.partial(self.peer, w, batch, side, weights)

    def first_weights(self, name, w):
        """Both sides begin with these. An evaluation's have been trained a little, so that
        running statistics are not as they began."""
        path = os.path.join(self.cache, name.replace("/", "-") + ".safetensors")
        if not os.path.exists(path):
            trains = dict(w, options={**w["options"], "do": "train"})
            with self.ours(trains, w["batch"]) as child:
                if w["options"].get("do") == "eval":
                    child.ask(f"run {TRAINED}")
                child.ask(f"save {path}.part")
            os.replace(path + ".part", path)
        return f"weights={path}"

    def settings(self, w):
        chosen = self.args.settings.split(",") if self.args.settings else w["settings"]
        if self.args.device == "cuda":
            return chosen
        # Without a GPU: no graphs, one attention.
        plain = [":".join(x for x in s.split(":") if x not in ATTENTION)
                 for s in chosen if s.split(":")[0] in ON_CPU]
        return list(dict.fromkeys(plain))

    # ---- what a referee may override ----

    watch = None  # watch() is entered around each window: what sees the device meanwhile

    def ceilings(self):
        """The best product and the best copy, to hold rates against; {}: not measured."""
        return {}

    # ---- one piece of work ----

    def quick(self, child, batch):
        """Samples a second in three short windows, the best; and its first loss."""
        mode = child.name.split(":")[0]
        first = child.ask("run 1", max(min(PREPARE.get(mode, 90), self.left()), 30))
        steps = protocol.steps_for(child, self.window / 3)
        answers = [child.ask(f"run {steps}") for _ in range(3)]
        # Memory: here, since a proof keeps a copy of the parameters.
        return {"samples_per_sec": max(batch * steps / a["seconds"] for a in answers),
                "first_loss": first["loss"],
                **{key: answers[-1].get(key) for key in MEMORY}}

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
            make = self.either(setting, w, w["batch"], weights)
            patience = PREPARE.get(setting.split(":")[0], 60)
            peers[setting] = self.try_out(make, w["batch"], 1 if self.args.tiny else patience)
            protocol.save(self.path(name), result)
            self.say(f"{name} {setting}: " + peers[setting].get(
                "error", f"{peers[setting].get('samples_per_sec', 0):.1f} samples/s"))
        same = {s: p["samples_per_sec"] for s, p in peers.items() if s != "etude" and
                "samples_per_sec" in p and not set(s.split(":")) & set(OTHER_NUMERICS)}
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
                make = self.either(side, w, batch, weights)
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
                    proof.append(protocol.prove(child, w.get("proof", protocol.PROOF)))
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
            row["proof"] = {"etude": proof[0], "peer": proof[1],
                            "unlike": protocol.unlike(*proof, self.precision(w))}
        return row

    def network(self, name, w):
        """Does what is missing of NAME, and prints and gives back all that is known."""
        if self.args.batch:
            w = dict(w, batch=self.args.batch, batches=[self.args.batch])
            name = f"{name}-{self.args.batch}"
        result = self.load(name)
        if result.get("done"):
            self.print_network(name, w, result)
            return result
        result.update({"work": {k: v for k, v in w.items() if k != "settings"},
                       "precision": self.precision(w)})
        weights = self.first_weights(name, w)
        best = self.grid(name, w, result, weights)
        if best is None or "error" in result["peers"]["etude"]:
            result["done"] = True
            protocol.save(self.path(name), result)
            self.print_network(name, w, result)
            return result
        own = self.sweep(name, w, result, weights, best)
        if "ceilings" not in result:
            result["ceilings"] = self.ceilings()
        # As both took to be tried, for a peer that finds what it compiled; and the proof.
        took = sum(result["peers"][side].get("took", 60) for side in ("etude", best))
        patience = 1 if self.args.tiny else (
            took + w.get("proof", protocol.PROOF)[-1] * w["batch"] * 2.5 / result["peers"][best]["samples_per_sec"]
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
        return result

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
            top = result["ceilings"].get("tflops")
            share = (f", {100 * rate * w['flops'] / top / 1e12:.1f} % of the measured product"
                     if w["flops"] and top else "")
            print(f"  {key}: {rate * w['per_sample']:.0f} {w['unit']}/s{share}, "
                  f"{r['median']:.3f} ({r['ci95'][0]:.3f} .. {r['ci95'][1]:.3f}) times "
                  f"{row['peer_setting']}; control {c['median']:.4f}"
                  + ("" if row["valid"] else " SPOILS THE RUN"))
            for why in row.get("proof", {}).get("unlike", []):
                print(f"    NOT THE SAME TRAINING: {why}")
