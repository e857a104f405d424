#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench/cpu/yardstick.py holds steps against the processor's peak: a line for each row, whose
# numbers agree with each other.
. "$(dirname "$0")/../tap.sh"
train=$ET_BUILDDIR/bench/train
peak=$ET_BUILDDIR/bench/cpu/peak
export ETUDE_TUNE=0 OMP_NUM_THREADS=1

for program in "$train" "$peak"; do
    if [ ! -e "$program" ]; then
        skip_all "$program is not built"
    fi
done
if ! command -v python3 >/dev/null; then
    skip_all "there is no python3"
fi
own_folder etude-yardstick
if ! printf 'run 1\n' | "$peak" 1 >out 2>err; then
    skip_all "$(cat err)"
fi
printf 'run 1\nrun 3\n' | "$peak" 2 >out
is "$(sed 's/.*"flops": //; s/}//' out | awk '{n[NR] = $1} END {print n[2] / n[1]}')" 3 \
    "three times the rounds are three times the operations"
printf 'walk 1\n' | "$peak" 1 >out 2>err
is $? 64 "peak refuses what is no run"
says err 'not "run N": walk 1' "and repeats it"

yardstick() {
    python3 "$ET_SRCDIR/bench/cpu/yardstick.py" --tiny --windows 2 --seconds 0.02 \
        --threads 1 --build "$ET_BUILDDIR" --work "$1" >out 2>&1
}
yardstick mlp-tiny,gpt-bytes-tiny
is "$(awk '$1 ~ /-tiny$/ && $2 > 0 && $3 > 0 && $4 > 0 && $5 > 0 && $5 < 1' out | wc -l)" 2 \
    "each row is told as a part of the peak, below 1"
yardstick resnet20-bf16-tiny
says out 'there is no row resnet20-bf16-tiny; there are ' "bf16 has no peak here"
finish
