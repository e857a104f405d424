# SPDX-License-Identifier: Apache-2.0
"""The kernels of a process and their times, by NVIDIA's profilers, which print CSV among
whatever the process prints. For first-hour, part D.

A table of a tool: the columns of a kernel's name, its time, its calls (None: a line is one),
and shares of the card's ceilings in per cent, where there are any.
"""
import csv

TOOLS = {
    "ncu": {"name": "Kernel Name", "time": "gpu__time_duration.sum", "calls": None,
            "shares": {
                "memory": "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
                "sm": "sm__throughput.avg.pct_of_peak_sustained_elapsed"}},
    "nsys": {"name": "Name", "time": "Total Time (ns)", "calls": "Instances", "shares": {}},
}
NANOSECONDS = {"ns": 1, "nsecond": 1, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6,
               "s": 1e9, "second": 1e9}


def command(tool, path, out, program, basic=False):
    """What runs PROGRAM under the tool at PATH; OUT: the beginning of a file's name.
    basic: shares of the ceilings too, for the first kernels, each of which then runs several
    times. The card's clocks stay as they are."""
    if tool == "ncu":
        what = (["--set", "basic", "--launch-count", "400"] if basic else
                ["--metrics", TOOLS["ncu"]["time"], "--launch-count", "4000"])
        return [path, "--clock-control", "none", "--target-processes", "all", "--csv", "--page",
                "raw", "--print-units", "base", *what, *program]
    return ["sh", "-c", 'nsys=$1 out=$2; shift 2; "$nsys" profile -t cuda -f true -o "$out" "$@" '
            '&& "$nsys" stats -r cuda_gpu_kern_sum --format csv "$out.nsys-rep"', "sh", path, out,
            *program]


def number(text):
    return float(text.replace(",", ""))


def read(text):
    """name -> [nanoseconds, calls, {share: per cent x nanoseconds}] of what a tool printed;
    ValueError where there is no table in it."""
    lines = text.splitlines()
    for tool in TOOLS.values():
        starts = [i for i, line in enumerate(lines)
                  if {tool["name"], tool["time"]} <= set(next(csv.reader([line]), []))]
        if not starts:
            continue
        found, scale = {}, 1
        for row in csv.DictReader(lines[starts[0]:]):
            if row[tool["time"]] in NANOSECONDS:  # ncu's second line has the units
                scale = NANOSECONDS[row[tool["time"]]]
                continue
            try:
                time = number(row[tool["time"]]) * scale
                calls = int(number(row[tool["calls"]])) if tool["calls"] else 1
            except (ValueError, AttributeError):
                continue  # what the process printed
            kernel = found.setdefault(row[tool["name"]], [0, 0, {}])
            kernel[0] += time
            kernel[1] += calls
            for share, column in tool["shares"].items():
                if row.get(column):
                    kernel[2][share] = kernel[2].get(share, 0) + number(row[column]) * time
        if found:
            return found
    raise ValueError("there is no table of kernels")


def finding(text):
    kernels = read(text)
    total = sum(k[0] for k in kernels.values())
    return (f"{sum(k[1] for k in kernels.values())} launches of {len(kernels)} kernels, "
            f"{total / 1e6:.3f} ms")


def lines(text, most=40):
    """A table of the MOST kernels that took longest."""
    kernels = sorted(read(text).items(), key=lambda k: -k[1][0])
    total = sum(k[0] for _, k in kernels)
    for name, (time, calls, shares) in kernels[:most]:
        yield (f"{time / 1e6:10.3f} ms {100 * time / max(total, 1):5.1f} % {calls:5} x "
               + "".join(f"{share} {value / max(time, 1):3.0f} %  "
                         for share, value in shares.items()) + name[:90])
    if kernels[most:]:
        yield f"{sum(k[0] for _, k in kernels[most:]) / 1e6:10.3f} ms of {len(kernels) - most} more"
