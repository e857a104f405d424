# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/protocol.py, bench/gpu/telemetry.py, the tables of work and bench/train,
printed as TAP; and runs of both referees where there is a PyTorch to run against."""
import array
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

root = os.environ.get("ET_SRCDIR") or os.path.join(os.path.dirname(__file__), "..", "..")
build = os.path.abspath(os.environ.get("ET_BUILDDIR", "."))
sys.path[:0] = [os.path.join(root, "bench", *more) for more in ([], ["gpu"], ["cpu"])]
import protocol  # noqa: E402
import rows  # noqa: E402
import telemetry  # noqa: E402
import work  # noqa: E402

count = failed = 0


def ok(held, what):
    global count, failed
    count += 1
    failed += not held
    print(("ok" if held else "not ok"), count, "-", what, flush=True)


def same(got, wanted, what):
    ok(got == wanted, what)
    if got != wanted:
        print(f"#   got {got!r}, wanted {wanted!r}")


def child(program, name="child"):
    """A child that runs PROGRAM for each line it reads, as `line`."""
    loop = f"import json, sys, time\nfor line in sys.stdin:\n    {program}\n"
    return protocol.Child(name, [sys.executable, "-c", loop])


def ended(function):
    """The sentence of the Ended that FUNCTION raises, or none."""
    try:
        function()
    except protocol.Ended as why:
        return str(why)
    return "it did not end"


# ---- statistics ----

r = protocol.ratio([2.0, 3.0, 8.0, 4.0, 5.0], [1.0, 2.0, 2.0, 2.0, 2.0])
same(r["pairs"], [2, 1.5, 4, 2, 2.5], "a ratio is taken of neighbours, not of medians")
same(r["median"], 2, "and is the median of those")
same(r["quartiles"], [2, 2.5], "with its quartiles")
same(protocol.ratio([3.0] * 8, [2.0] * 8)["ci95"], [1.5, 1.5],
     "pairs that agree leave no interval")
few = [1 + 0.01 * (i % 7) for i in range(8)]
low, high = protocol.bootstrap(few)
ok(1.0 <= low <= 1.03 <= high <= 1.06, "the interval lies within the pairs, around the median")
l2, h2 = protocol.bootstrap(few * 16)
ok(h2 - l2 < high - low, "sixteen times as many pairs narrow it")
same(protocol.bootstrap(few), [low, high], "the same pairs give the same interval")
wide = protocol.bootstrap(few, level=0.99)
ok(wide[0] <= low and wide[1] >= high, "99 % is no narrower than 95 %")
for median, holds in ((1.0149, True), (0.9851, True), (1.0151, False), (0.9849, False)):
    same(protocol.control_holds({"median": median}), holds,
         f"a program at {median} times itself {'is a control' if holds else 'spoils the run'}")
same(protocol.stalls([{"seconds": 1.02, "device_seconds": 1}, {"seconds": 1},
                      {"seconds": 1.005, "device_seconds": 1}]), [0],
     "a window that the host held up by 2 % is named, one of 0.5 % is not")
clocks = [[{"telemetry": {"sm_mhz": m}} for m in side] + [{}]
          for side in ((1980, 1980, 1755), (1980, 1940, 1760))]
same(protocol.unlike_clocks(*clocks), [1], "so is a pair whose clocks are 2 % apart")

# ---- the same mathematics ----

run = [{"step": 1, "loss": 2.0, "grad_norm": 1.0, "change": 1e-8},
       {"step": 10, "loss": 1.5, "grad_norm": 1.0, "change": 1e-7},
       {"step": 100, "loss": 1.0, "grad_norm": 1.0, "change": 1e-6}]


def changed(i, **numbers):
    return [dict(a, **numbers) if j == i else a for j, a in enumerate(run)]


same(protocol.unlike(run, run, "fp32"), [], "a training is like itself")
same(protocol.unlike(changed(2, loss=1.009), run, "amp_bf16"), [],
     "0.9 % of the loss is rounding in bf16")
ok("step 100: loss" in protocol.unlike(changed(2, loss=1.009), run, "fp32")[0],
   "in fp32 it is another training, and the sentence says at which step")
ok("step 10: loss" in protocol.unlike(changed(1, loss=1.52), run, "amp_bf16")[0],
   "1.3 % is another training in bf16 too")
ok("step 1: grad_norm" in protocol.unlike(run, changed(0, grad_norm=1.03), "amp_bf16")[0],
   "so is a gradient 3 % longer")
ok("step 10: change" in protocol.unlike(changed(1, change=1.03e-7), run, "fp32")[0],
   "and parameters that moved 3 % further, however little that is")
ok("is nan" in protocol.unlike(changed(0, loss=float("nan")), run, "amp_bf16")[0],
   "NaN is like nothing")
still = [dict(a, change=0.0) for a in run]
ok("did not change" in protocol.unlike(still, still, "fp32")[0],
   "parameters that stay as they were on both sides are no training")
ok(len(protocol.unlike(still, run, "fp32")) == 3, "nor is it one where they stay on one side")
seen = [{"step": 1, "loss": 2.0, "output_norm": 7.0}]
same(protocol.unlike(seen, seen, "fp32"), [], "an evaluation is like itself, and changes nothing")
ok("output_norm" in protocol.unlike(seen, [dict(seen[0], output_norm=7.2)], "fp32")[0],
   "outputs that are 3 % longer are another evaluation")
ok("can be compared" in protocol.unlike(seen, run[:1], "fp32")[0],
   "an evaluation cannot be compared with a training")

# ---- children ----

with tempfile.TemporaryDirectory() as folder:
    log = os.path.join(folder, "log")
    program = (f"open({log!r}, 'a').write(sys.argv[0] and NAME); "
               "print(json.dumps({'seconds': 0.5, 'line': line.strip()}), flush=True)")
    with child(program.replace("NAME", "'a'")) as a, child(program.replace("NAME", "'b'")) as b:
        answers = protocol.turns([a, b, b], [3, 5, 5], 3)
    with open(log, encoding="utf-8") as f:
        same(f.read(), "abbbbaabb", "windows go a b b, b b a, a b b")
    same([len(side) for side in answers], [3, 3, 3], "each place has its windows")
    same([side[0]["line"] for side in answers], ["run 3", "run 5", "run 5"], "of its steps")
    same(protocol.rates(answers[0], 10), [60.0] * 3, "3 steps of 10 in half a second are 60/s")
    path = os.path.join(folder, "x.json")
    protocol.save(path, {"a": 1})
    try:
        protocol.save(path, {"a": object()})
    except TypeError:
        pass
    with open(path, encoding="utf-8") as f:
        same(json.load(f), {"a": 1}, "a result that cannot be written leaves the old one")

with child("raise ValueError('out of memory, say')") as c:
    ok("out of memory, say" in ended(lambda: c.ask("run 1")), "a child's last words are kept")
with child("time.sleep(600)") as c:
    ok("no answer to 'run 1'" in ended(lambda: c.ask("run 1", 0.3)), "one too slow is ended")
same(c.process.returncode, -signal.SIGKILL, "and not waited for: it is killed")
with child("n = int(line.split()[1]); print(json.dumps({'seconds': 1e-4 * n}), flush=True)") as c:
    same(protocol.steps_for(c, 0.1), 1000, "a window of 0.1 s is 1000 steps of 0.1 ms")
with child("n = int(line.split()[1]); print(json.dumps({'seconds': 0.7 * n}), flush=True)") as c:
    same(protocol.steps_for(c, 3), 5, "one of 3 s is 5 steps of 0.7 s")

# ---- telemetry ----


class FakeNvml:
    """The driver's library as far as telemetry.py uses it."""

    def set(self, at, value):
        at._obj.value = value
        return 0

    def nvmlInit_v2(self):
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index, at):
        return self.set(at, 7) if index.value == 0 else 2

    def nvmlDeviceGetName(self, device, buffer, size):
        buffer.value = b"NVIDIA Fake"
        return 0

    def nvmlSystemGetDriverVersion(self, buffer, size):
        buffer.value = b"580.1"
        return 0

    def nvmlDeviceGetClockInfo(self, device, kind, at):
        return self.set(at, 1980 if kind.value == 1 else 0)

    def nvmlDeviceGetPowerUsage(self, device, at):
        return self.set(at, 650500)

    def nvmlDeviceGetTemperature(self, device, kind, at):
        return self.set(at, 55)

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, device, at):
        return self.set(at, 0x4 | 0x1)


cdll = ctypes.CDLL
ctypes.CDLL = lambda path: FakeNvml()
gpu = telemetry.open_gpu()
same(gpu.about(), {"gpu": "NVIDIA Fake", "driver": "580.1"}, "NVML says which GPU it is")
same(gpu.read(), (1980, 650.5, 55, 5), "its SM clock, watts, temperature and limits")
with telemetry.Watch(gpu, 0.01) as watch:
    end = time.monotonic() + 120
    while len(watch.seen) < 2 and time.monotonic() < end:
        time.sleep(0.01)
seen = watch.summary()
ok(seen["samples"] > 1 and seen["sm_mhz"] == 1980, "a window is read more than once")
same(seen["held_back_by"], ["power cap"], "and says that the power was capped, not that it idled")


def no_library(path):
    raise OSError(path)


ctypes.CDLL = no_library
with tempfile.TemporaryDirectory() as folder:
    smi = os.path.join(folder, "nvidia-smi")
    with open(smi, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\ncase $2 in *name*) echo 'NVIDIA Fake, 580.1';; "
                "*) echo '1755, 612.25, 61, 0x0000000000000008';; esac\n")
    os.chmod(smi, 0o755)
    path = os.environ["PATH"]
    os.environ["PATH"] = folder + ":" + path
    gpu = telemetry.open_gpu()
    same(gpu.about(), {"gpu": "NVIDIA Fake", "driver": "580.1"}, "without it nvidia-smi is asked")
    same(gpu.read(), (1755, 612.25, 61, 8), "for the same")
    os.environ["PATH"] = folder
    os.unlink(smi)
    same(telemetry.open_gpu(), None, "without either there is no GPU")
    os.environ["PATH"] = path
ctypes.CDLL = cdll
with telemetry.Watch(None) as watch:
    pass
same(watch.summary(), {}, "and windows have no telemetry")

# ---- tables ----

with open(os.path.join(root, "src/core/models/models.def"), encoding="utf-8") as f:
    models = f.read()
every = [*work.WORK.items(), *work.TINY.items(), *rows.WORK.items(), *rows.TINY.items()]
missing = [n for n, w in every if f"({w['model']})" not in models]
same(missing, [], "every network of the tables is one of models.def")
same([n for n, w in every if w["batch"] not in w["batches"]], [],
     "every sweep of batches has the common one")
g = work.WORK["gpt2-124m"]
ok(abs(g["flops"] / g["per_sample"] / 1e9 - 0.8548) < 0.001,
   "GPT-2 124M takes 0.855 GFLOP a token")  # PaLM's count, worked out by hand
with open(os.path.join(root, "bench/gpu/micro.c"), encoding="utf-8") as f:
    text = f.read()
same([c["op"] for c in work.CASES if f'"{c["op"]}"' not in text], [],
     "every operation of the tables is known to micro.c")
m = work.matmul(3, 5, 7)
same((m["flops"], m["bytes"]), (210, 2 * (21 + 35 + 15)), "a product's FLOPs and bytes")
same(work.adamw(10)["bytes"], 280, "AdamW moves 28 bytes for a parameter")

# ---- a plan that does not run ----

train = os.path.join(build, "bench", "train")
if not os.path.exists(train):
    count += 1
    print(f"ok {count} - bench/train answers with a plan # SKIP bench/train is not built")
else:
    command = [train, "gpt2", "2", "16", "n_layers=1", "d_model=32", "n_heads=2", "classes=64"]
    env = dict(os.environ, ETUDE_ROOFLINE="memory=1e9,f32=1e9,plain=1e9")
    said = [subprocess.run(command, input=text, capture_output=True, text=True, check=False,
                           env=env).stdout.splitlines()
            for text in ("plan 1\nproof 2\nplan 1\n", "proof 2\n", "plan 2\n")]
    plan = json.loads(said[0][0])
    ok(plan["kernels"] > 10 and plan["slab_bytes"] > 0, "bench/train answers with a plan")
    least, most = sorted((plan["flops"] / 1e9, plan["bytes"] / 1e9))
    ok(most <= plan["least_seconds"] <= least + most, "its time is that of the rates given")
    same(said[0][2], said[0][0], "which is the same after steps")
    moved = [json.loads(line)["change"] for line in (said[0][1], said[1][0])]
    same(moved[0], moved[1], "planning changes nothing of what is trained")
    same(said[2], [], "of two steps there is no plan")

# ---- what bench/train does ----


def answers(words, *lines):
    """What bench/train, told WORDS, answers to LINES."""
    done = subprocess.run([train, *words.split()], input="\n".join(lines) + "\n",
                          capture_output=True, text=True, check=False)
    return [json.loads(line) for line in done.stdout.splitlines()]


def floats(path):
    """Every number of the safetensors file at PATH, whose tensors are all of f32."""
    with open(path, "rb") as f:
        f.read(int.from_bytes(f.read(8), "little"))
        return array.array("f", f.read())


def moved(batch, line, words=""):
    """How each parameter of a net has changed after LINE."""
    words = f"mlp {batch} 4 hidden=8 layers=1 lr=1e-3 {words}"
    with tempfile.TemporaryDirectory() as folder:
        before, after = os.path.join(folder, "before"), os.path.join(folder, "after")
        answers(words, f"save {before}", line, f"save {after}")
        return [b - a for a, b in zip(floats(before), floats(after), strict=True)]


if not os.path.exists(train):
    count += 1
    print(f"ok {count} - bench/train says what it has done # SKIP bench/train is not built")
else:
    net = "mlp 8 4 hidden=8 layers=1 lr="
    first, _, later = answers(net + "1e-6", "proof 1", "run 5", "proof 1")
    ok(abs(first["change"] / (1e-6 * first["grad_norm"]) - 1) < 0.01,
       "at a rate of 1e-6 the first step has moved the parameters by that of the gradient")
    ok(later["change"] > 3 * first["change"], "the change is counted from the first step on")
    same(answers(net + "0", "proof 3")[0]["change"], 0, "at a rate of 0 there is none")
    ok(0 < first["import_bytes"] < first["rss_bytes"],
       "the process's memory is told, and what of it opening the device took")
    # The second of two steps moves by 0.9 of the first's gradient and by its own.
    wanted = [(both - 0.9 * one) / 2
              for one, both in zip(moved("8", "run 1"), moved("8", "run 2"), strict=True)]
    got = moved("16", "run 1", "accumulate=2")
    apart = max(abs(x - y) for x, y in zip(got, wanted, strict=True))
    ok(apart < 0.01 * max(map(abs, wanted)),
       "with accumulate=2 a step moves by the mean of two batches' gradients")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "weights")
        answers("resnet8 8 8", "run 20", f"save {path}")
        trained = answers(f"resnet8 8 8 weights={path}", "run 1")[0]
        seen, again = answers(f"resnet8 8 8 weights={path} do=eval", "proof 1", "proof 8")
    same([again[k] for k in ("loss", "output_norm")], [seen[k] for k in ("loss", "output_norm")],
         "an evaluation changes nothing: the first batch has the same outputs once more")
    ok(abs(seen["loss"] - trained["loss"]) > 1e-3 * trained["loss"],
       "its norms go by running statistics, as those of a training step do not")

# ---- all of it, with toys ----

python = os.environ.get("PYTHON", "python3")
torch = subprocess.run([python, "-c", "import torch"], capture_output=True, check=False)
why = ("bench/train is not built" if not os.path.exists(train) else
       "PYTHON has no torch" if torch.returncode else None)
if why:
    count += 1
    print(f"ok {count} - the whole protocol with toys # SKIP {why}")
else:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, os.path.join(root, "bench/gpu/referee.py"), "--build", build,
                   "--python", python, "--device", "cpu", "--tiny", "--threads", "1",
                   "--precision", "fp32", "--windows", "2", "--settings", "eager", "--results",
                   os.path.join(folder, "results"), "--cache", os.path.join(folder, "cache")]
        for name in ("lenet-tiny", "gpt2-tiny"):
            done = subprocess.run([*command, "--work", name], capture_output=True, text=True,
                                  check=False)
            same(done.returncode, 0, f"the referee runs {name} on the CPU")
            if done.returncode:
                print("#   " + done.stderr.strip().replace("\n", "\n#   "))
                continue
            with open(os.path.join(folder, "results", name + ".json"), encoding="utf-8") as f:
                result = json.load(f)
            row = result["equal_batch"]
            same(row["proof"]["unlike"], [], "both sides train alike from the same weights")
            same(len(row["windows"]["peer_again"]), 2, "the control has its windows")
            ok(result["ceilings"]["tflops"] > 0, "ceilings are measured in the same run")
        command = [sys.executable, os.path.join(root, "bench/cpu/referee.py"), "--build", build,
                   "--python", python, "--tiny", "--threads", "1", "--windows", "2",
                   "--settings", "eager", "--results", os.path.join(folder, "cpu"), "--cache",
                   os.path.join(folder, "cache-cpu")]
        for name in rows.TINY:
            done = subprocess.run([*command, "--work", name], capture_output=True, text=True,
                                  check=False)
            same(done.returncode, 0, f"the CPU's referee runs {name} small")
            if done.returncode:
                print("#   " + done.stderr.strip().replace("\n", "\n#   "))
                continue
            path = os.path.join(folder, "cpu", name.replace("/", "-") + ".json")
            with open(path, encoding="utf-8") as f:
                row = json.load(f)["equal_batch"]
            same(row["proof"]["unlike"], [], "both sides do the same work there")
            ok(re.search(rf"^{re.escape(name)} .* eager", done.stdout, re.M),
               "and it has a line of the table")

print(f"1..{count}")
sys.exit(failed > 0)
