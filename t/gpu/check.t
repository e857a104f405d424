#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What must be true of a GPU: the tests that compare devices, with ETUDE_DEVICE in the place
# of the processor (t/device.h). `make gpu-check` runs it on the GPU, `make check` on the
# simulated one. Each program is one line here; what failed in it follows as comments.
# Operands: the programs to run, whatever their length; all, where there are none. --list
# prints the names of all and runs nothing (for what packs them, bench/gpu/pack.sh).
programs() {
    cat <<'L'
long t/kernels/gpu
long t/train/golden
long t/train/eager
short t/train/ahead
long t/train/accumulate
long t/train/spacetime
short t/train/scaler
long t/train/resume
long t/train/join
long t/train/switch
long t/train/same
long t/train/streams
short t/unit/apart
short t/algorithms/blurpool
short t/algorithms/ema
short t/algorithms/gradient_clipping
short t/algorithms/label_smoothing
short t/algorithms/mixup
long t/algorithms/progressive_resizing
short t/algorithms/sam
short t/algorithms/selective_backprop
short t/algorithms/together
L
}
if [ "${1:-}" = --list ]; then
    programs | while read -r _ name; do echo "$name"; done
    exit 0
fi
ET_BUILDDIR=$(cd "${ET_BUILDDIR:-.}" && pwd)
ET_SRCDIR=$(cd "${ET_SRCDIR:-$ET_BUILDDIR/..}" && pwd)
export ET_BUILDDIR ET_SRCDIR OMP_NUM_THREADS=1
export ETUDE_DEVICE="${ETUDE_GPU_CHECK:-gpusim}"
cd "$ET_BUILDDIR" || exit 99
dir=$(mktemp -d "${TMPDIR:-/tmp}/etude-gpu.XXXXXX") || exit 99
trap 'rm -rf "$dir"' EXIT
tiny=$dir/tiny.yaml
cat >"$tiny" <<'R'
max_duration: 1ba
model: {name: mlp, hidden: 16, layers: 1}
train_data: {name: synthetic_images, batch_size: 8, num_samples: 32, workers: 0}
R

# A sentence, where the device does not answer.
"$ET_BUILDDIR/etude" train --dry-run "$tiny" >"$dir/out" 2>"$dir/err" </dev/null
if grep -q "error E7003" "$dir/err"; then
    echo "1..0 # SKIP $(sed -n 's/^etude: error E7003: //p' "$dir/err")"
    exit 0
fi

n=0 failures=0
try() {
    n=$((n + 1))
    "$@" >"$dir/out" 2>&1
    code=$?
    passed=$(grep -c '^ok' "$dir/out")
    if grep -q '^1\.\.0' "$dir/out"; then # the device answers, so nothing may skip itself
        failures=$((failures + 1))
        echo "not ok $n - $*: it ran nothing"
        sed 's/^/#   /' "$dir/out" | head -n 4
    elif [ $code -eq 0 ]; then
        echo "ok $n - $*: $passed"
    else
        failures=$((failures + 1))
        echo "not ok $n - $*: $passed passed, status $code"
        grep -A8 '^not ok' "$dir/out" | sed 's/^/#   /' | head -n 60
        tail -n 4 "$dir/out" | sed 's/^/#   /'
    fi
}

# The simulated GPU is slow: of it "long" is only what is named, or ETUDE_LONG asks for.
is_chosen() {
    case " $chosen " in
    *" $2 "*) return 0 ;;
    "  ") [ "$1" = short ] || [ "$ETUDE_DEVICE" != gpusim ] || [ -n "${ETUDE_LONG:-}" ] ;;
    *) return 1 ;;
    esac
}

chosen="$*"
while read -r length name; do
    is_chosen "$length" "$name" || continue
    try "./$name"
done <<L
$(programs)
L
if [ "$n" -eq 0 ]; then
    echo "Bail out! none of its programs is $chosen"
    exit 99
fi
echo "1..$n"
exit $((failures > 0))
