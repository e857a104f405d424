#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Which device computes: a GPU where one answers, and why not where none does. Drivers are
# t/gpusim/driver.c, which answers what it is told.
. "$(dirname "$0")/cli.sh"
cc=${CC:-cc}
tiny r.yaml

# field FILE KEY: what a resolved recipe says
field() {
    sed -nE "s/^$2: ([a-z0-9_]*) .*/\\1/p" "$1"
}

# ---- what does not depend on drivers ----

run train r.yaml device=cpu tf32=true --dry-run
exits 69 "tf32 on a processor: exit 69"
says err "processors have no TF32" "and says why"
for command in train estimate eval; do
    ETUDE_DEVICE=none "$etude" $command r.yaml >out 2>err </dev/null
    is $? 69 "$command with a device that does not exist: exit 69"
    says err "no device 'none'" "and says which"
done

# ---- a GPU that is lost, on the simulated one ----

# lose CALL N: the N-th CALL answers that the context is gone
lose() {
    rm -rf lost
    GPUSIM_FAULT=$1=700@$2 ETUDE_DEVICE=gpusim "$etude" train r.yaml precision=fp32 \
        --run_directory lost >out 2>err </dev/null
    code=$?
}

if [ -e "$ET_BUILDDIR/libetude-gpusim.la" ]; then
    for call in cudaMemcpyAsync cudaMallocFromPoolAsync cudaMemsetAsync cudaStreamSynchronize \
        cudaEventRecord; do
        lose $call 1
        is "$code" 69 "$call finds the GPU gone before the run: exit 69"
        says err "cudaErrorIllegalAddress (700)" "and the cause is named"
    done
    n_copies=1
    while lose cudaMemcpyAsync $n_copies; [ "$code" -eq 69 ] && [ $n_copies -lt 60 ] &&
        grep -q cudaErrorIllegalAddress err; do
        n_copies=$((n_copies + 1))
    done
    exits 1 "a GPU that is lost during the run: exit 1"
    is "$(grep -c '^etude: error E6006: .*cudaErrorIllegalAddress (700)' err)" 1 \
        "one line names the cause"
    says err "once the GPU is well: etude rerun lost" "and another what to do: nothing was saved"
    grep -q '"state": "failed"' lost/run.json
    ok $? "the run is known to have failed"
    says lost/logs/rank0.txt "E6006" "its log ends with why"

    # Its sensors, as a management library of the tests' answers them.
    ETUDE_NVML=$ET_BUILDDIR/.libs/libfakenvml.so ETUDE_DEVICE=gpusim "$etude" train r.yaml \
        max_duration=100000000ba precision=fp32 --run_directory sensed >sensed.out 2>&1 </dev/null &
    pid=$!
    until_true "run attach sensed --dump-screen 80x24 --ascii --keys '<tab><tab><tab><enter>'; grep -q gpu_util out"
    cp out seen
    kill -s TERM $pid
    wait $pid
    is $? 75 "a run on a GPU with sensors, which is stopped once it has told of them"
    cp seen out
    for number in "gpu_util         .8700" "mem_gb          12.345" "mem_total_gb" \
        "temp_c          64.000" "power_w         612.35" "sm_mhz           1,755"; do
        says out "$number" "its rank says $number"
    done

    # Lost later, when there is something to go on from.
    losses() {
        sed -nE 's/.*"ev":"batch".*"ba":([0-9]+),.*"loss\/train\/total":([^,}]*).*/\1 \2/p' "$1" |
            sort -n | uniq
    }
    long="max_duration=8ba checkpoint.interval=2ba precision=fp32"
    # shellcheck disable=SC2086
    ETUDE_DEVICE=gpusim "$etude" train r.yaml $long --run_directory whole >out 2>err </dev/null
    is $? 0 "a run on a GPU"
    launches=40
    while rm -rf lost; [ $launches -lt 2000 ]; do
        # shellcheck disable=SC2086
        GPUSIM_FAULT=launch=700@$launches ETUDE_DEVICE=gpusim "$etude" train r.yaml $long \
            --run_directory lost >out 2>err </dev/null
        code=$?
        [ "$code" -ne 1 ] || ! ls lost/checkpoints/*/MANIFEST >seen 2>&1 || break
        launches=$((launches + 20))
    done
    exits 1 "a kernel that fails in a later batch: exit 1"
    says err "E6006" "as a lost GPU"
    says err "once the GPU is well: etude train --resume lost" "and how to go on from what was saved"
    ETUDE_DEVICE=gpusim "$etude" train --resume lost >out 2>err </dev/null
    is $? 0 "what was saved goes on"
    is "$(losses lost/metrics.jsonl)" "$(losses whole/metrics.jsonl)" \
        "with the losses of the run that was not disturbed, to the last bit"
    is "$(losses whole/metrics.jsonl | wc -l)" 8 "all eight of them"
fi

if [ ! -e "$ET_BUILDDIR/libetude-cuda.la" ]; then
    run version --verbose
    says out "device   cuda no: no device 'cuda': no CUDA module in this etude" \
        "a program without the CUDA module says so"
    run train r.yaml device=gpu
    exits 69 "and trains on no GPU: exit 69"
    finish
fi

# ---- drivers ----

mkdir driver other
# shellcheck disable=SC2086
$cc -Wall -Wextra -Werror -shared -fPIC -o driver/libcuda.so.1 "$ET_SRCDIR/t/gpusim/driver.c" \
    >out 2>err || { cat err; exit 99; }
echo 'int nothing; int nothing;' >other.c
# shellcheck disable=SC2086
$cc -shared -fPIC -o other/libcuda.so.1 other.c >out 2>err || { cat err; exit 99; }

# drive ANSWERS COMMAND...
drive() {
    FAKE_DRIVER=$1
    shift
    LD_LIBRARY_PATH=$dir/driver FAKE_DRIVER=$FAKE_DRIVER "$etude" "$@" >out 2>err </dev/null
    code=$?
}
unset CUDA_VISIBLE_DEVICES

if ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; then
    ok 0 "no driver # SKIP this machine has one"
else
    run version --verbose
    says out "there is no NVIDIA driver: libcuda.so.1: " "no driver: version --verbose says so"
    run version --verbose --json
    says out '"why": "no device '"'cuda'"': there is no NVIDIA driver' "and --json"
fi
drive "11040 0 0 1" doctor
says out "the NVIDIA driver is for CUDA 11.4" "doctor says what keeps a GPU from training"
LD_LIBRARY_PATH=$dir/other "$etude" version -v >out 2>err </dev/null
says out "libcuda.so.1 is not NVIDIA's driver" "another library of its name is no driver"

drive "13000 100 0 0" version -v
says out "the driver sees no GPU (CUDA_ERROR_NO_DEVICE)" "a driver without a GPU"
drive "13000 0 0 0" version -v
says out "the driver sees no GPU" "a driver that counts none"
export CUDA_VISIBLE_DEVICES=7
drive "13000 100 0 0" version -v
says out "no GPU with CUDA_VISIBLE_DEVICES='7'" "GPUs that a variable hides"
unset CUDA_VISIBLE_DEVICES
drive "11040 0 0 1" version -v
says out "the NVIDIA driver is for CUDA 11.4, and this program for " "a driver that is too old"
drive "13000 803 0 0" version -v
says out "restart the machine (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)" \
    "a driver that was updated meanwhile"
drive "13000 0 12345 0" version -v
says out "cuInit answers 12345" "an answer that nobody knows"

# ---- auto ----

drive "13000 100 0 0" train r.yaml --run_directory auto
is "$code" 0 "no GPU: auto trains"
is "$(field auto/recipe.resolved.yaml device) $(field auto/recipe.resolved.yaml precision)" \
    "cpu fp32" "on the processor, in fp32"
is "$(grep -c 'the processor computes' err)" 0 "without a word"
drive "11040 0 0 1" train r.yaml --run_directory old
is "$code" 0 "a GPU that cannot be used: auto trains"
says err "the processor computes: no device 'cuda': the NVIDIA driver is for CUDA 11.4" \
    "on the processor, and says why"
drive "13000 100 0 0" train r.yaml tf32=true
is "$code" 69 "tf32, and auto comes to the processor: exit 69"
says err "the device 'cpu' has no TF32" "says why"
says err "tf32=false" "and says what to do"

# ---- asked for, and not there ----

for command in train estimate eval; do
    drive "13000 100 0 0" $command r.yaml device=gpu
    is "$code" 69 "$command device=gpu without one: exit 69"
    says err "no device 'cuda': the driver sees no GPU" "says why"
    says err "device=cpu" "and what else there is"
done
[ ! -e runs ]
ok $? "and no run was begun"
drive "13000 100 0 0" validate r.yaml device=gpu
is "$code" 0 "a recipe for a GPU is a good one everywhere"
drive "13000 100 0 0" explain r.yaml device=gpu
is "$code" 0 "and can be explained"

# ---- a run that goes on ----

drive "13000 100 0 0" train --resume auto max_duration=3ba
is "$code" 0 "a run goes on where it was"
sed -i 's/^device: cpu/device: gpu/' auto/recipe.resolved.yaml
drive "13000 100 0 0" train r.yaml --resume auto max_duration=4ba
is "$code" 69 "one that was on a GPU does not go on without: exit 69"

# ---- CUDA's libraries ----

mkdir libs empty
major=$(readelf -d "$ET_BUILDDIR/.libs/libetude-cuda.so" | sed -nE 's/.*\[libcudart\.so\.([0-9]+)\]/\1/p')
echo 'no library' >"libs/libcudart.so.$major"
ETUDE_CUDA_LIBS=empty:none drive "13000 0 0 1" version -v
says out "ETUDE_CUDA_LIBS: no library of CUDA $major or cuDNN 9 is in empty:none" \
    "folders of ETUDE_CUDA_LIBS without any"
ETUDE_CUDA_LIBS=empty:libs drive "13000 0 0 1" version -v
says out "ETUDE_CUDA_LIBS: libs/libcudart.so.$major: " "and a library that is none"
drive "13000 0 0 1" version -v
says out "/libcudart.so.$major" "version --verbose tells where CUDA's libraries are"
drive "13000 0 0 1" version --verbose --json
says out "\"libcudart.so.$major\": \"/" "and so does --json"
finish
