"""Etude against PyTorch's best setting on this machine's CPU, in one run.

referee.py --train build/bench/train [--model resnet20] [--windows 15] [--json FILE]

Both sides are resident children that run N steps when told to. First every PyTorch
setting is prepared and timed in short windows and the fastest kept; then windows of
Etude and of that setting alternate, ABBA, the other child idle. The ratio is the median
over adjacent pairs, with its quartiles. Source: PERFORMANCE.md section 6, CPU rules.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

WORK = {  # model: batch, size, steps in a window
    "resnet8": (128, 28, 30),
    "resnet20": (128, 28, 10),
    "resnet8/strided": (128, 28, 100),
    "resnet18": (64, 28, 4),
    "resnet18/small": (64, 28, 1),
    "gpt2": (32, 128, 6),
}
SETTINGS = ["eager", "eager:nhwc", "compile", "compile:nhwc"]
here = os.path.dirname(os.path.abspath(__file__))


class Child:
    def __init__(self, name, command):
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE)

    def run(self, steps):
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended")
        return float(line.split()[0])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        return next((line.split(":")[1].strip() for line in f if line.startswith("model name")),
                    "unknown")


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--train", required=True)
    args.add_argument("--python", default=sys.executable)
    args.add_argument("--model", default="resnet20", choices=WORK)
    args.add_argument("--threads", type=int, default=2)
    args.add_argument("--windows", type=int, default=15)
    args.add_argument("--settings", default=",".join(SETTINGS))
    args.add_argument("--json")
    args = args.parse_args()
    batch, size, steps = WORK[args.model]
    shape = [args.model, str(batch), str(size), str(args.threads)]
    settings = [s for s in args.settings.split(",") if args.model != "gpt2" or ":" not in s]

    load = os.getloadavg()[0]
    peers = {}
    best = None
    for setting in settings:
        child = Child(setting, [args.python, os.path.join(here, os.pardir, "peer.py"), *shape, setting])
        child.run(3)
        window = max(steps // 2, 1)
        seconds = min(child.run(window) for _ in range(4)) / window
        peers[setting] = batch / seconds
        print(f"peer {setting}: {batch / seconds:.1f} samples/s", file=sys.stderr)
        if best is None or seconds < best[1]:
            if best:
                best[0].close()
            best = (child, seconds)
        else:
            child.close()
    ours, theirs = Child("etude", [args.train, *shape]), best[0]
    ours.run(3)
    a, b = [], []
    for i in range(args.windows):
        pair = [(ours, a), (theirs, b)]
        for child, list_ in pair if i % 2 == 0 else pair[::-1]:
            list_.append(child.run(steps) / steps)
    ours.close()
    theirs.close()
    ratios = sorted(y / x for x, y in zip(a, b))
    result = {
        "date": time.strftime("%Y-%m-%d %H:%M:%S"),
        "cpu": cpu_name(), "cores": os.cpu_count(), "load_before": load,
        "commit": output("git", "-C", here, "describe", "--always", "--dirty"),
        "torch": output(args.python, "-c", "import torch; print(torch.__version__)"),
        "model": args.model, "batch": batch, "size": size, "threads": args.threads,
        "etude_samples_per_sec": {"median": batch / statistics.median(a), "best": batch / min(a)},
        "peer_samples_per_sec": {"median": batch / statistics.median(b), "best": batch / min(b)},
        "peer_setting": theirs.name, "peer_settings": peers,
        "ratio": {"median": statistics.median(ratios), "quartiles":
                  [ratios[len(ratios) // 4], ratios[(3 * len(ratios)) // 4]]},
        "windows": args.windows,
    }
    print(json.dumps(result, indent=1))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(result, f, indent=1)
            f.write("\n")


main()
