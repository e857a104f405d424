# SPDX-License-Identifier: Apache-2.0
"""What the referees share: resident children, turns, and the statistics of pairs.

A child is prepared once (compiled, warm), then runs N steps when told to, while the other
sleeps. Windows go A B B A A B ..., so that a drift of the machine falls on both alike; a
ratio is the median over windows that were neighbours. The same child may have two places in
a round: how far it is from itself says what a ratio is worth. PERFORMANCE.md, section 6.
"""
import json
import math
import os
import random
import select
import statistics
import subprocess
import tempfile
import time

CONTROL = 0.015  # the same program twice: median of the pairs' ratios, away from 1
LOSS = {"fp32": 1e-3, "tf32": 1e-2, "amp_bf16": 1e-2, "amp_fp16": 1e-2}  # relative
NORM = 0.02  # of the gradient, of the parameters' change and of outputs, relative
PROOF = (1, 10, 100)  # steps after which both sides are held against each other


# ---- children ----


class Ended(Exception):
    """A child that ended, or was too slow: its last words."""


class Child:
    """COMMAND with ENV added; it answers every line with one of JSON."""

    def __init__(self, name, command, env=None):
        self.name, self.rest = name, b""
        self.words = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.words, env=dict(os.environ, **(env or {})))

    def last_words(self):
        self.words.seek(0)
        lines = self.words.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"

    def ask(self, line, seconds=600):
        """What it answers to LINE. Ended: nothing came within SECONDS, or ever will."""
        end = time.monotonic() + seconds
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self.process.wait()
            raise Ended(f"{self.name}: {self.last_words()}") from None
        out = self.process.stdout.fileno()
        while b"\n" not in self.rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([out], [], [], left)[0]:
                self.close(kill=True)
                raise Ended(f"{self.name}: no answer to '{line}' in {seconds:.0f} s")
            some = os.read(out, 1 << 16)
            if not some:
                self.process.wait()
                raise Ended(f"{self.name}: {self.last_words()}")
            self.rest += some
        answer, _, self.rest = self.rest.partition(b"\n")
        return json.loads(answer)

    def close(self, kill=False):
        if kill:
            self.process.kill()
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.wait()
        self.process.stdout.close()
        self.words.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.returncode is None:
            self.close(kill=kind is not None)


def steps_for(child, seconds):
    """How many steps of CHILD take SECONDS or a little more. It must be warm."""
    steps = 1
    while True:
        took = child.ask(f"run {steps}")["seconds"]
        if took >= seconds / 4 or took >= 0.5:
            return max(math.ceil(steps * seconds / took), 1)
        steps *= 2 if took > seconds / 16 else 8


# ---- turns ----


def turns(children, steps, windows, watch=None):
    """WINDOWS windows of each child, in turns: a list per child of its answers. WATCH()
    is entered around each window; what it gives back then becomes "telemetry"."""
    answers = [[] for _ in children]
    order = list(range(len(children)))
    for _ in range(windows):
        for i in order:
            if watch:
                with watch() as seen:
                    answer = children[i].ask(f"run {steps[i]}")
                answer["telemetry"] = seen.summary()
            else:
                answer = children[i].ask(f"run {steps[i]}")
            answers[i].append(dict(answer, steps=steps[i]))
        order.reverse()
    return answers


def rates(answers, samples):
    """Samples a second of each window, SAMPLES in a step."""
    return [samples * a["steps"] / a["seconds"] for a in answers]


# ---- statistics ----


def bootstrap(values, level=0.95, draws=10000, seed=17):
    """[low, high]: the middle LEVEL of the medians of DRAWS samples with replacement."""
    r = random.Random(seed)
    medians = sorted(statistics.median(r.choices(values, k=len(values))) for _ in range(draws))
    cut = (1 - level) / 2
    return [medians[math.floor(cut * draws)], medians[math.ceil((1 - cut) * draws) - 1]]


def ratio(a, b):
    """How many times as fast A was as B, window by window: the pairs' median, its
    interval, its quartiles."""
    pairs = [x / y for x, y in zip(a, b, strict=True)]
    ranked = sorted(pairs)
    return {"median": statistics.median(pairs), "ci95": bootstrap(pairs),
            "quartiles": [ranked[len(pairs) // 4], ranked[3 * len(pairs) // 4]],
            "pairs": pairs}


def control_holds(control):
    return abs(control["median"] - 1) <= CONTROL


def stalls(answers):
    """Windows in which the host's clock and the device's differ by more than 1 %."""
    return [i for i, a in enumerate(answers) if "device_seconds" in a and
            abs(a["seconds"] / a["device_seconds"] - 1) > 0.01]


def unlike_clocks(a, b):
    """Pairs whose median SM clocks differ by more than 1 %."""
    clock = [[w.get("telemetry", {}).get("sm_mhz") for w in side] for side in (a, b)]
    return [i for i, (x, y) in enumerate(zip(*clock)) if x and y and abs(x / y - 1) > 0.01]


# ---- the same mathematics ----


def prove(child, steps=PROOF, seconds=600):
    """The answers of CHILD, which has done no step yet, after each of STEPS."""
    done, answers = 0, []
    for step in steps:
        answers.append(dict(child.ask(f"proof {step - done}", seconds), step=step))
        done = step
    return answers


def unlike(ours, theirs, precision):
    """Why two runs from the same weights over the same data are not the same work: a list of
    sentences, empty if they are. Each side is a list as prove() gives it.

    The parameters' change is held to the gradient's tolerance: it is a sum of gradients
    (under AdamW one of numbers near the rate, which vary less), and both sides round it to
    f32 in the same way."""
    why = []
    for a, b in zip(ours, theirs, strict=True):
        step = f"step {a['step']}"
        if a["step"] != b["step"] or not {"grad_norm", "output_norm"} & a.keys() & b.keys():
            why.append(f"{step}: nothing there can be compared with what is here")
        for what in ("loss", "grad_norm", "change", "output_norm"):
            if what not in a and what not in b:
                continue
            x, y = a.get(what, math.nan), b.get(what, math.nan)
            limit = LOSS[precision] if what == "loss" else NORM
            if not (math.isfinite(x) and math.isfinite(y)):
                why.append(f"{step}: {what} is {x} here and {y} there")
            elif abs(x - y) > limit * abs(y):
                why.append(f"{step}: {what} is {x:.6g} here and {y:.6g} there, more than "
                           f"{limit:g} apart")
            elif what == "change" and y == 0:
                why.append(f"{step}: the parameters did not change")
    return why


# ---- facts and files ----


def output(*command):
    """What COMMAND prints; None where it cannot run."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        return next((line.split(":")[1].strip() for line in f if line.startswith("model name")),
                    "unknown")


def facts(python, source):
    """Where, when and of what commit: part of every result."""
    return {
        "date": time.strftime("%Y-%m-%d %H:%M:%S"), "cpu": cpu_name(), "cores": os.cpu_count(),
        "load_before": os.getloadavg()[0],
        "commit": os.environ.get("ETUDE_COMMIT") or  # what bench/gpu/pack.sh wrote down
        output("git", "-C", source, "describe", "--always", "--dirty"),
        "torch": output(python, "-c", "import torch; print(torch.__version__)"),
    }


def save(path, result):
    """RESULT as JSON at PATH, whole or not at all."""
    with open(path + ".part", "w", encoding="utf-8") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    os.replace(path + ".part", path)
