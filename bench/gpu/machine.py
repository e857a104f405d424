# SPDX-License-Identifier: Apache-2.0
"""What machine this is, as far as its own programs say: driver, clocks, processor, libraries,
Python's packages. For first-hour, part A."""
import steps

FACTS = [
    ("driver", ["nvidia-smi", "-q"]),
    ("clocks", ["nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,clocks.max.sm,"
                "clocks.mem,power.limit,temperature.gpu,memory.total", "--format=csv"]),
    ("processor", ["lscpu"]), ("memory", ["free", "-m"]), ("disk", ["df", "-m"]),
    ("system", ["sh", "-c", "uname -a; ldd --version | head -n 1; cat /etc/os-release"]),
    ("loader", ["sh", "-c", "ldconfig -p | grep -E 'libcuda|nvidia-ml|libcu|libnv'"]),
    ("variables", ["sh", "-c", "env | grep -E '^(LD_|CUDA|NVIDIA|ETUDE|OMP_)'"]),
    ("nvcc", ["nvcc", "--version"]), ("ncu", ["ncu", "--version"]), ("nsys", ["nsys", "--version"]),
]
PEER_FACTS = """
import glob, os, sys
import importlib.metadata as m
print(sys.version, sys.executable)
print(*sorted(f"{d.name} {d.version}" for d in m.distributions() if d.name), sep="\\n")
for path in sys.path:
    print(*sorted(glob.glob(os.path.join(path, "nvidia", "*", "lib", "*.so*"))), sep="\\n")
import torch
print(torch.cuda.get_device_properties(0) if torch.cuda.is_available() else "no GPU for torch")
print("torch", torch.__version__, "CUDA", torch.version.cuda,
      "cuDNN", torch.backends.cudnn.version())
"""


def facts(run, python):
    """Asks every program of FACTS, and PYTHON; a Row. RUN: Steps, whose logs keep it all."""
    rows = [run.command(name, command, 10) for name, command in FACTS]
    rows.append(run.command("python", [python, "-c", PEER_FACTS], 60))
    silent = ", ".join(r.name for r in rows if r.is_bad)
    said = [steps.last_line(r.text) for r in rows if r.name in ("clocks", "python") and r.text]
    return steps.Row("facts", "ok", sum(r.seconds for r in rows), "; ".join(
        said + ([f"no answer of {silent}"] if silent else [])))
