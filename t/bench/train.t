#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# On a device that records, every step of bench/train but the first two is one launch: what
# the referees time is what etude train does. On the simulated GPU.
. "$(dirname "$0")/../tap.sh"
cd "$ET_BUILDDIR" || exit 99
export ETUDE_TUNE=0 ETUDE_RTC=0 OMP_NUM_THREADS=1

for needed in bench/train .libs/libetude-gpusim.so; do
    if [ ! -e "$needed" ]; then
        skip_all "$needed is not built"
    fi
done
replays() { # words of a command line: replays of 5 steps, then of 15 more
    # shellcheck disable=SC2086
    printf 'run 5\nproof 15\n' | bench/train $1 device=gpusim |
        sed 's/.*"replays": \([0-9]*\).*/\1/' | tr '\n' ' '
}
for work in "lenet 4 12" "mlp 4 8 precision=amp_bf16" \
    "gpt2 2 16 n_layers=1 d_model=16 n_heads=2 classes=64 clip=1"; do
    # The proof's last step has a plan of its own.
    is "$(replays "$work")" "3 14 " "$work: all of 20 steps but the first two and the proof's"
done
finish
