"""Etude against PyTorch's best setting on this machine's CPU, in one run.

referee.py --train build/bench/train [--model resnet20] [--windows 15] [--json FILE]

First every PyTorch setting is prepared and timed in short windows and the fastest kept;
then windows of Etude and of that setting take turns (bench/protocol.py). The ratio is the
median over adjacent pairs, with its quartiles. Source: PERFORMANCE.md section 6, CPU rules.
"""
import argparse
import json
import os
import statistics
import sys

here = os.path.dirname(os.path.abspath(__file__))
bench = os.path.dirname(here)
sys.path.insert(0, bench)
import protocol  # noqa: E402

BYTES = "n_layers=4 d_model=128 n_heads=4 classes=256 lr=1e-3".split()
WORK = {  # name: model, batch, size, steps in a window, options of both sides
    "resnet8": ("resnet8", 128, 28, 30, []),
    "resnet20": ("resnet20", 128, 28, 10, []),
    "resnet8/strided": ("resnet8", 128, 28, 100, ["stem=strided"]),
    "resnet18": ("resnet18", 64, 28, 4, []),
    "resnet18/small": ("resnet18", 64, 28, 1, ["stem=small"]),
    "gpt2": ("gpt2", 32, 128, 6, BYTES),
}
SETTINGS = ["eager", "eager:nhwc", "compile", "compile:nhwc"]


def pick_peer(start, settings, steps, batch):
    """The fastest of SETTINGS, prepared, and what each of them reached."""
    peers, best = {}, None
    for setting in settings:
        child = start(setting)
        child.ask("run 3")
        window = max(steps // 2, 1)
        seconds = min(child.ask(f"run {window}")["seconds"] for _ in range(4)) / window
        peers[setting] = batch / seconds
        print(f"peer {setting}: {batch / seconds:.1f} samples/s", file=sys.stderr)
        if best is None or seconds < best[1]:
            if best:
                best[0].close()
            best = (child, seconds)
        else:
            child.close()
    return best[0], peers


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
    model, batch, size, steps, options = WORK[args.model]
    shape = [model, str(batch), str(size)]
    options = [f"threads={args.threads}", *options]
    settings = [s for s in args.settings.split(",") if model != "gpt2" or ":" not in s]
    result = protocol.facts(args.python, here)

    def start(setting):
        return protocol.Child(setting, [args.python, os.path.join(bench, "peer.py"), *shape,
                                        setting, *options])

    peer, peers = pick_peer(start, settings, steps, batch)
    with peer as theirs, protocol.Child("etude", [args.train, *shape, *options]) as ours:
        ours.ask("run 3")
        answers = protocol.turns([ours, theirs], [steps, steps], args.windows)
    a, b = (protocol.rates(side, batch) for side in answers)
    result.update({
        "model": args.model, "batch": batch, "size": size, "threads": args.threads,
        "etude_samples_per_sec": {"median": statistics.median(a), "best": max(a)},
        "peer_samples_per_sec": {"median": statistics.median(b), "best": max(b)},
        "peer_setting": peer.name, "peer_settings": peers,
        "ratio": protocol.ratio(a, b), "windows": args.windows,
    })
    print(json.dumps(result, indent=1))
    if args.json:
        protocol.save(args.json, result)


main()
