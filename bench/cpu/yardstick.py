# SPDX-License-Identifier: Apache-2.0
"""How much of the processor's peak the steps of rows.py reach: what is left to win.

yardstick.py --build DIR [--work NAME,NAME...] [--windows 8] [--seconds 2]

Windows of bench/train and of bench/cpu/peak take turns. A line for each row in f32: GFLOP of a
step's plan, GFLOP/s, the peak's GFLOP/s, their ratio window by window with its interval, and the
peak against itself. A convolution counts as its plain sum of products, so that one by
Winograd's method may pass 1. What is computed again to save memory counts, too.
"""
import argparse
import contextlib
import os
import statistics
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(here), here]
import builds  # noqa: E402
import protocol  # noqa: E402
import rows  # noqa: E402


def measure(name, w, args):
    with contextlib.ExitStack() as stack:
        train = stack.enter_context(builds.start(f"{args.build}/bench/train", name, w,
                                                 args.threads))
        peak = stack.enter_context(protocol.Child("peak", [f"{args.build}/bench/cpu/peak",
                                                           str(args.threads)]))
        flops = train.ask("plan 1")["flops"] * w["options"].get("accumulate", 1)
        steps = [protocol.steps_for(child, args.seconds) for child in (train, peak)]
        answers = protocol.turns([peak, train, peak], [steps[1], *steps], args.windows)
    before, after = ([a["flops"] / a["seconds"] for a in answers[i]] for i in (0, 2))
    ours = protocol.rates(answers[1], flops)
    part = protocol.ratio(ours, [(x + y) / 2 for x, y in zip(before, after)])
    control = protocol.ratio(before, after)
    print(f"{name:22} {flops / 1e9:9.4g} {statistics.median(ours) / 1e9:8.1f} "
          f"{statistics.median(before) / 1e9:8.1f} {part['median']:6.3f} "
          f"({part['ci95'][0]:.3f} .. {part['ci95'][1]:.3f}) {control['median']:7.4f}",
          flush=True)


def main():
    args = argparse.ArgumentParser(description="steps beside the processor's peak")
    args.add_argument("--build", default="build")
    builds.options(args)
    args = args.parse_args()
    table = {name: w for name, w in (rows.TINY if args.tiny else rows.WORK).items()
             if "precision" not in w}
    names = builds.chosen("yardstick", args.work, table)
    print(f"{'row':22} {'GFLOP':>9} {'GFLOP/s':>8} {'peak':>8} {'part':>6} {'95 %':>16} "
          f"{'control':>8}")
    for name in names:
        measure(name, table[name], args)


if __name__ == "__main__":
    try:
        main()
    except protocol.Ended as why:
        sys.exit(f"yardstick: {why}")
