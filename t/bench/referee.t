#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The referees' statistics, turns and tables (Python alone); and, where PYTHON has PyTorch and
# bench/train was built, a whole run of the GPU's referee with toys on the CPU.
dir=$(cd "$(dirname "$0")" && pwd)
if ! command -v python3 >/dev/null; then
    echo "1..0 # SKIP there is no python3"
    exit 0
fi
PYTHONDONTWRITEBYTECODE=1 exec python3 "$dir/referee.py"
