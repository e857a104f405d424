# SPDX-License-Identifier: Apache-2.0
"""Two builds of Etude in turns, on the rows of rows.py: other libraries, compilers or commits.

builds.py [--work NAME,NAME...] [--windows 8] [--seconds 2] FIRST SECOND

FIRST and SECOND are each a command that runs a bench/train, such as "build/bench/train", or
"chroot DIR /src/build/bench/train" where a library of another system is wanted. Both do each
row's steps from the same seed and are compared as the referee compares (bench/protocol.py):
the same work, and windows that take turns, FIRST twice in every round. Prints a line for each
row: samples a second of both, how many times as fast SECOND is, with its interval; FIRST
against itself; and the memory that each took beyond what loading it takes, in MiB.
"""
import argparse
import contextlib
import os
import shlex
import statistics
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(here), here]
import protocol  # noqa: E402
import rows  # noqa: E402


def start(command, name, w, threads):
    options = {"threads": threads, "precision": w.get("precision", "fp32"), **w["options"]}
    return protocol.Child(name, [*shlex.split(command), w["model"], str(w["batch"]),
                                 str(w["size"]), *(f"{k}={v}" for k, v in options.items())])


def compare(name, w, args):
    with contextlib.ExitStack() as stack:
        sides = [stack.enter_context(start(command, side, w, args.threads))
                 for side, command in (("first", args.first), ("second", args.second))]
        proof = [protocol.prove(child, w.get("proof", protocol.PROOF)[:2]) for child in sides]
        steps = [protocol.steps_for(child, args.seconds) for child in sides]
        answers = protocol.turns([*sides, sides[0]], [*steps, steps[0]], args.windows)
    first, second, again = (protocol.rates(a, w["batch"]) for a in answers)
    ratio, control = protocol.ratio(second, first), protocol.ratio(first, again)
    memory = [(a[-1]["rss_bytes"] - a[-1]["import_bytes"]) / 2**20 for a in answers[:2]]
    print(f"{name:22} {statistics.median(first):9.2f} {statistics.median(second):9.2f} "
          f"{ratio['median']:6.3f} ({ratio['ci95'][0]:.3f} .. {ratio['ci95'][1]:.3f}) "
          f"{control['median']:7.4f} {memory[0]:6.0f} {memory[1]:6.0f}"
          + ("" if protocol.control_holds(control) else "  SPOILED BY ITS CONTROL"), flush=True)
    for why in protocol.unlike(*proof, w.get("precision", "fp32")):
        print(f"    NOT THE SAME WORK: {why}", flush=True)


def options(args):
    """Adds those that say which rows take turns, and how."""
    args.add_argument("--work", help="rows, with commas; else all")
    args.add_argument("--windows", type=int, default=8)
    args.add_argument("--seconds", type=float, default=2.0, help="of a window")
    args.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    args.add_argument("--tiny", action="store_true", help="the same with toys")


def chosen(program, work, table):
    """The names of WORK, or all of TABLE's; ends PROGRAM where there is no such row."""
    names = work.split(",") if work else list(table)
    if unknown := set(names) - set(table):
        sys.exit(f"{program}: there is no row {unknown.pop()}; there are {', '.join(table)}")
    return names


def main():
    args = argparse.ArgumentParser(description="two builds of Etude in turns")
    args.add_argument("first")
    args.add_argument("second")
    options(args)
    args = args.parse_args()
    table = rows.TINY if args.tiny else rows.WORK
    names = chosen("builds", args.work, table)
    print(f"{'row':22} {'first':>9} {'second':>9} {'ratio':>6} {'95 %':>16} {'control':>8} "
          f"{'MiB':>6} {'MiB':>6}")
    for name in names:
        compare(name, table[name], args)


if __name__ == "__main__":
    try:
        main()
    except protocol.Ended as why:
        sys.exit(f"builds: {why}")
