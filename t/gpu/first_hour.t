#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The script of a GPU's first hour (bench/gpu/first-hour), without one: whatever crashes,
# hangs or is missing has its line in the table, and the rest is done. The build it is given
# has some programs of this one and some that go wrong.
. "$(dirname "$0")/../tap.sh"
own_folder etude-hour
if ! python3 -c 'import lzma' 2>/dev/null; then
    skip_all "there is no python3 with lzma"
fi
unset ETUDE_DEVICE ETUDE_CACHE_DIR
export PYTHONDONTWRITEBYTECODE=1

# row STEP STATUS NAME: the table of part $part has a line of STEP that begins its status so
row() {
    grep -qE "^$1 +$2" "out-$part/$part.txt"
    ok $? "$3"
}

# hour PART ARGS...: sets code
hour() {
    part=$1
    shift
    "$ET_SRCDIR/bench/gpu/first-hour" "$part" "out-$part" --build "$dir/build" --work "$dir/work" \
        --tiny --python "$dir/python" "$@" >out 2>&1 </dev/null
    code=$?
    # What it promises of the folder, whatever happened.
    find "out-$part" -type f | wc -l >count
    [ "$(cat count)" -le 8 ] && [ -z "$(find "out-$part" -mindepth 2)" ]
    ok $? "part $part leaves at most 8 files"
    [ "$(tail -n 1 out)" = "$(tail -n 1 "out-$part/$part.txt")" ]
    ok $? "and ends with its table"
}

# ---- a build where things go wrong ----

mkdir -p build/t/kernels build/t/unit build/bench/gpu
script() {
    { echo '#!/bin/sh'; cat; } >"$1"
    chmod +x "$1"
}
script python <<'S'
echo "ModuleNotFoundError: No module named 'torch'" >&2
exit 1
S
script build/etude <<'S'
echo "device   cuda no: no device 'cuda': the driver sees no GPU"
S
script build/t/kernels/gpu <<'S'
[ "$1" != --list ] || { printf '%s\n' good wrong crash hang absent; exit 0; }
dtype=$1
shift
for op; do
    case "$dtype $op" in
    *good) echo 'ok 1 - it holds'; echo 1..1 ;;
    *wrong) echo 'ok 1 - it holds'; echo 'not ok 2 - wrong of 3 x 7'; echo 1..2; bad=1 ;;
    *crash) echo 'ok 1 - it holds'; kill -s SEGV $$ ;;
    "bf16 hang")
        [ "$ETUDE_TUNE" = 0 ] || {
            sleep 1000 &
            echo $! $$ >"${0%/build/*}/pids"
            exec sleep 1000
        }
        printf '%s\n' 'ok 1' 1..1
        ;;
    *hang) printf '%s\n' 'ok 1' 1..1 ;;
    *absent) echo '1..0 # SKIP the device has none' ;;
    esac
done
exit "${bad:-0}"
S
script build/t/unit/apart <<'S'
echo 'ok 1 - it holds'
S
script build/bench/gpu/micro <<'S'
while read -r line; do echo '{"error": "out of memory"}'; done
S
script build/bench/train <<'S'
case "$1" in
gpt2) kill -s ABRT $$ ;;
lenet) while read -r _; do echo '{"seconds": 0.5, "loss": 2.5, "replays": 3}'; done ;;
*) echo 'train: it has no such model' >&2; exit 1 ;;
esac
S

hour A --device cuda --minutes 3 --patience 15
[ "$code" -eq 1 ]
ok $? "a part in which something failed ends with status 1"
row facts ok "facts are told"
row device "failed .*the driver sees no GPU" "a device that does not answer, with its sentence"
row "ceilings etude" "failed .*out of memory" "an operation that its device refuses"
row "ceilings torch" "failed .*No module named 'torch'" "a peer that is not there"
row "ops and programs" "failed .* 6 signal 11 \\(SIGSEGV\\), 1 ok" \
    "ops share a process for each dtype and way, beside the tests of gpu-check"
row "ops of bad processes" \
    "failed .* 11 ok, 6 failed \\(1\\), 6 signal 11 \\(SIGSEGV\\), 6 skipped .*, 1 timeout" \
    "and have one each where that is bad: all are counted"
row "crash bf16 tune=0" "signal 11 \\(SIGSEGV\\)" "one that dies is named, with its signal"
row "wrong f32 tune=1" "failed \\(1\\) .*not: not ok 2 - wrong of 3 x 7" "one that is wrong, with its case"
row "hang bf16 tune=1" "timeout" "one that hangs"
! grep -q "^absent" out-A/A.txt
ok $? "one that the device lacks is no failure"
[ "$(grep -cE '^(good|wrong|crash|hang|absent) [bf0-9]+ tune' out-A/A-ops.tsv)" -eq 30 ]
ok $? "every op has a line for each dtype and way"
grep -q "wrong of 3 x 7" out-A/A-failed.txt
ok $? "what failed is kept as it was printed"
row "speed gpt2-tiny" "signal 6 \\(SIGABRT\\)" "a training that dies"
row "speed resnet8-tiny" "failed \\(1\\) .*it has no such model" "one that is refused"
row "speed lenet-tiny" 'ok .*64 images/s.*"replays": 3' "one that runs, with all that it tells"
row t/train/resume "failed .*No such file" "a test of gpu-check that was not built is named"
read -r child parent <pids
cat "/proc/$child/status" "/proc/$parent/status" 2>/dev/null | grep '^State:.*[^Z] (' >out
[ ! -s out ]
ok $? "nothing of it stays behind"
tar -xOf out-A/A.tar.xz logs/A/crash-bf16-tune-0.txt >out 2>&1
ok $? "every step's output is in the archive"

# ---- no time ----

hour A --device cuda --minutes 0.01 --ops good
row "ops and programs" "skipped .*skipped \\(no time was left\\)" "a part without time says what it left out"

# ---- Etude's own numbers, where the peer is missing ----

if [ -x "$ET_BUILDDIR/bench/train" ] && [ -x "$ET_BUILDDIR/bench/gpu/micro" ] &&
    [ -e "$ET_BUILDDIR/libetude-cpu.la" ]; then
    rm -r build
    ln -s "$ET_BUILDDIR" build
    hour B --device cpu --minutes 3
    row "referee gpt2-tiny" "failed .*No module named 'torch'" "a comparison without a peer fails, and says why"
    grep -qE "^ +gpt2-tiny-4 +etude +[0-9]+ tokens/s" out-B/B.txt
    ok $? "Etude's own rate is told"
    row operations "ok" "single operations follow"
    grep -qE "^layer_norm back=1 .* [0-9.]+ +-" out-B/B.txt
    ok $? "with a table of Etude's times"
    hour D --device cpu --minutes 3
    row "referee lenet-tiny" "failed" "small networks are tried"
    row "plan gpt2-tiny" "ok" "and a step's plan is kept"
    tar -xOf out-D/D.tar.xz logs/D/plan-gpt2-tiny.txt >out 2>&1
    grep -q matmul out
    ok $? "with its kernels"
    rm -rf work/cache work/results
    hour C --device cpu --minutes 3 --from "$dir"
    grep -qE "^ +gpt2-tiny-4 +etude +[0-9]+ tokens/s" out-C/C.txt
    ok $? "a machine that is new is given what earlier parts found"
else
    ok 0 "comparisons # SKIP bench/train was not built"
fi

# ---- tables of kernels ----

PYTHONPATH="$ET_SRCDIR/bench/gpu" python3 - >out 2>&1 <<'P'
import kernel_times
ncu = '''==PROF== Connected to process 7
{"seconds": 0.1, "loss": 2.5}
"ID","Process ID","Kernel Name","gpu__time_duration.sum"
"","","","us"
"0","7","gemm(int, float)","1,200.5"
"1","7","norm","10"
"2","7","gemm(int, float)","800"
==PROF== Disconnected
'''
nsys = '''Generating report
Time (%),Total Time (ns),Instances,Avg (ns),Name
90.0,2000500,2,1000250.0,"gemm(int, float)"
10.0,10000,1,10000.0,norm

'''
for text in ncu, nsys:
    print(kernel_times.finding(text))
    print(*kernel_times.lines(text, 1), sep="\n")
try:
    kernel_times.finding("==ERROR== ERR_NVGPUCTRPERM")
except ValueError as why:
    print(why)
P
cat >want <<'W'
3 launches of 2 kernels, 2.010 ms
     2.001 ms  99.5 %     2 x gemm(int, float)
     0.010 ms of 1 more
3 launches of 2 kernels, 2.010 ms
     2.001 ms  99.5 %     2 x gemm(int, float)
     0.010 ms of 1 more
there is no table of kernels
W
cmp -s out want
ok $? "what profilers print becomes a table of kernels"
finish
