# SPDX-License-Identifier: Apache-2.0
"""Etude against PyTorch's best setting on this machine's CPU (PERFORMANCE.md section 6).

referee.py --build DIR --python PYTHON [--work NAME,NAME...] [--results DIR] [--minutes 60]

The rows are those of rows.py. For each, every PyTorch setting is tried and the fastest kept;
both sides prove that they do the same work from the same weights; then windows of Etude and of
that setting take turns. A row is a file in the results' folder, and the same command goes on
with what is missing (exit status 75: there is more; 0: all done). It ends with a table: the
ratio of speeds with its interval, and how much memory each took beyond what loading it takes.
"""
import argparse
import os
import re
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(here), here]
import protocol  # noqa: E402
import rows  # noqa: E402
import training  # noqa: E402


def beyond(tried):
    """Bytes that a side took beyond what loading it takes; None: it did not say."""
    if not tried.get("rss_bytes"):
        return None
    return tried["rss_bytes"] - tried["import_bytes"]


class CpuReferee(training.Referee):
    def __init__(self, args):
        name = re.sub(r"[^a-z0-9]+", "-", protocol.cpu_name().lower()).strip("-")
        super().__init__(args, rows.TINY if args.tiny else rows.WORK,
                         f"{name}-{os.cpu_count()}cores")

    @staticmethod
    def table_line(name, result):
        """NAME's RESULT in a line, which also says where it counts for nothing."""
        row = result.get("equal_batch")
        if not row or "error" in row:
            return f"{name:22} {(row or {}).get('error', 'not done')}"
        ratio, control = row["ratio"], row["control"]
        took = [beyond(result["peers"][side]) for side in ("etude", row["peer_setting"])]
        memory = (f"{took[0] / 2**20:7.0f} {took[1] / 2**20:7.0f} {took[0] / took[1]:5.2f}"
                  if None not in took else f"{'-':>21}")
        return (f"{name:22} {row['samples_per_sec']['etude']:9.2f} "
                f"{row['samples_per_sec']['peer']:9.2f} {ratio['median']:6.3f} "
                f"({ratio['ci95'][0]:.3f} .. {ratio['ci95'][1]:.3f}) "
                f"{control['median']:7.4f} {memory}  {row['peer_setting']}"
                + ("" if row["valid"] else "  SPOILED BY ITS CONTROL")
                + ("  NOT THE SAME WORK" if row["proof"]["unlike"] else ""))

    def run(self):
        names = self.args.work.split(",") if self.args.work else list(self.table)
        results = [self.network(name, self.table[name]) for name in names]
        print(f"{'row':22} {'samples/s':>9} {'torch':>9} {'ratio':>6} {'95 %':>16} {'control':>8} "
              f"{'MiB':>7} {'torch':>7} ratio  setting")
        for name, result in zip(names, results):
            print(self.table_line(name, result))


def main():
    args = argparse.ArgumentParser()
    training.options(args)
    args.add_argument("--work", help="rows, with commas; else all")
    args.add_argument("--seconds", type=float, default=2.0, help="of a window")
    args.add_argument("--minutes", type=float, default=60.0, help="of this run")
    args.set_defaults(threads=len(os.sched_getaffinity(0)))
    args = args.parse_args()
    referee = CpuReferee(args)
    if unknown := set((args.work or "").split(",")) - {"", *referee.table}:
        sys.exit(f"cpu-bench: there is no row {unknown.pop()}; there are "
                 f"{', '.join(referee.table)}")
    try:
        referee.run()
    except training.OutOfTime:
        print("cpu-bench: out of time; the same command goes on from here", file=sys.stderr)
        return training.MORE
    return 0


sys.exit(main())
