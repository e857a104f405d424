#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fused convolutions where oneDNN has no kernel that does both: on the oldest instruction
# set that it knows they are two kernels (conv_split.c), with the same results.
ET_BUILDDIR=$(cd "${ET_BUILDDIR:-.}" && pwd)
export ET_BUILDDIR ONEDNN_MAX_CPU_ISA=SSE41 OMP_NUM_THREADS=1
program=$ET_BUILDDIR/t/kernels/cpu
if [ ! -x "$program" ]; then
    echo "1..0 # SKIP t/kernels/cpu is not built"
    exit 0
fi
cd "$ET_BUILDDIR" || exit 99
exec "$program" conv2d_fused
