"""Tests of bench/protocol.py, bench/gpu/telemetry.py and bench/gpu/work.py, printed as TAP;
and a run of bench/gpu/referee.py on the CPU where there is a PyTorch to run against."""
import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

root = os.environ.get("ET_SRCDIR") or os.path.join(os.path.dirname(__file__), "..", "..")
build = os.path.abspath(os.environ.get("ET_BUILDDIR", "."))
sys.path[:0] = [os.path.join(root, "bench"), os.path.join(root, "bench", "gpu")]
import protocol  # noqa: E402
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

run = [{"loss": 2.0, "grad_norm": 1.0, "param_norm": 5.0},
       {"loss": 1.5, "grad_norm": 1.0, "param_norm": 5.1},
       {"loss": 1.0, "grad_norm": 1.0, "param_norm": 5.2}]


def changed(step, **numbers):
    return [dict(a, **numbers) if i == step else a for i, a in enumerate(run)]


same(protocol.unlike(run, run, "fp32"), [], "a training is like itself")
same(protocol.unlike(changed(2, loss=1.009), run, "amp_bf16"), [],
     "0.9 % of the loss is rounding in bf16")
ok("step 100: loss" in protocol.unlike(changed(2, loss=1.009), run, "fp32")[0],
   "in fp32 it is another training, and the sentence says at which step")
ok("step 10: loss" in protocol.unlike(changed(1, loss=1.52), run, "amp_bf16")[0],
   "1.3 % is another training in bf16 too")
ok("step 1: grad_norm" in protocol.unlike(run, changed(0, grad_norm=1.03), "amp_bf16")[0],
   "so is a gradient 3 % longer")
ok("is nan" in protocol.unlike(changed(0, loss=float("nan")), run, "amp_bf16")[0],
   "NaN is like nothing")
still = [dict(a, param_norm=5.0) for a in run]
ok("did not change there" in protocol.unlike(run, still, "fp32")[0],
   "parameters that stay as they were are no training")

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
missing = [n for n, w in {**work.WORK, **work.TINY}.items() if f"({w['model']})" not in models]
same(missing, [], "every network of the tables is one of models.def")
same([n for n, w in {**work.WORK, **work.TINY}.items() if w["batch"] not in w["batches"]], [],
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
    norms = [json.loads(line)["param_norm"] for line in (said[0][1], said[1][0])]
    same(norms[0], norms[1], "planning changes nothing of what is trained")
    same(said[2], [], "of two steps there is no plan")

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

print(f"1..{count}")
sys.exit(failed > 0)
