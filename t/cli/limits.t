#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Limits of the system: open files, addresses, processes and threads. A run has what it
# needs, or ends with 69 or 4 and a line that says why, and never by a signal or by a
# library's own exit (RELIABILITY.md R26).
. "$(dirname "$0")/cli.sh"
# Looking for leaks takes a process, which a sanitized program may not have here. What it
# says of too few addresses is no report.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0:log_path=stderr"
tiny good.yaml
export OMP_NUM_THREADS=2

# ends ALLOWED NAME: the last run's code is one of them; others than 0 are explained
ends() {
    case " $1 " in *" $code "*) fits=0 ;; *) fits=1 ;; esac
    [ "$code" -eq 0 ] || grep -q '^etude: error E7' err || fits=1
    ! grep -q -e '^libgomp:' -e 'terminate called' -e Segmentation err || fits=1
    ok $fits "$2: $code"
    [ "$code" -ne 69 ] || [ ! -e a ] || ok 1 "$2: a run that never began leaves nothing"
    rm -rf a
}

# ---- open files ----

for files in 16 24 32 48 63 64 128; do
    (
        ulimit -n $files
        exec "$etude" train good.yaml --run_directory a --progress none \
            'loggers={tensorboard: {}, csv: {}, file: {}}' >out 2>err </dev/null
    )
    code=$?
    case $files in 64 | 128) want=0 ;; *) want=69 ;; esac
    ends $want "$files open files"
    [ $want -eq 0 ] || says err "etude: error E7004: fd limit $files, need 64 (ulimit -n)" \
        "with both numbers"
done
(
    ulimit -Sn 16
    exec "$etude" train good.yaml --run_directory a --progress none >out 2>err </dev/null
)
code=$?
ends 0 "a limit that the user may raise is raised"

# ---- addresses ----

if (ulimit -v 4000000 && "$etude" version >out 2>err); then
    mib=30 seen=
    while [ $mib -le 1000 ]; do
        (
            ulimit -v $((mib * 1024))
            exec "$etude" train good.yaml --run_directory a --progress none train_data.workers=1 \
                >out 2>err </dev/null
        )
        code=$?
        # (Where its libraries do not fit, no code of the program runs.)
        if [ -z "$seen" ] && grep -q 'error while loading shared libraries' err; then
            mib=$((mib + 4))
            continue
        fi
        ends "0 4 69" "$mib MiB of addresses"
        seen="$seen $code"
        [ $mib -ne 158 ] || mib=996
        mib=$((mib + 4))
    done
    case "$seen" in *" 69 "*" 0"*) fits=0 ;; *) fits=1 ;; esac
    ok $fits "little is too little and much is enough:$seen"
else
    ok 0 "addresses # SKIP a program with sanitizers needs terabytes"
fi

# A library whose constructors throw as it is loaded, as oneDNN's do in a place that is just
# large enough for its code, ends the run like any lack of memory.
cat >thrower.cc <<'C'
#include <new>
struct Thrower {
    Thrower() { throw std::bad_alloc(); }
};
Thrower thrower;
C
mkdir modules
if grep -q '^#define ET_GLOO 1' "$ET_BUILDDIR/config.h" &&
    ${CXX:-c++} -shared -fPIC -o modules/libetude-cpu.so thrower.cc >out 2>err; then
    ETUDE_DEVICE=cpu ETUDE_MODULE_PATH=$dir/modules "$etude" train good.yaml --run_directory a --progress none \
        >out 2>err </dev/null
    code=$?
    ends 4 "std::bad_alloc in a constructor of a library"
    says err "etude: error E7001: too little memory for a library" "which is said"
else
    ok 0 "a library that throws # SKIP no C++ compiler, or no Gloo"
fi

# ---- processes and threads ----

# (They are counted for a user, and not for root.)
chmod 777 .
export XDG_RUNTIME_DIR=
user=
[ "$(id -u)" -ne 0 ] || user="setpriv --reuid 61184 --clear-groups"
if $user prlimit --nproc=1 true >out 2>err && [ "$(id -u)" -eq 0 ]; then
    for workers in 0 2; do
        for processes in 1 2 3 4 5 6; do
            $user prlimit --nproc=$processes env RANK=0 LOCAL_RANK=0 "$etude" train good.yaml --progress none \
                train_data.workers=$workers --run_directory a >out 2>err </dev/null
            code=$?
            want=69
            # The program, the thread that takes signals, OpenMP's other, the loader's;
            # without one more for the checkpoint the program writes it itself.
            [ $processes -lt $((3 + workers)) ] || want=0
            [ "${ETUDE_DEVICE:-}" != ref ] || want="0 69"
            ends "$want" "$processes processes, $workers workers"
        done
    done
    # The same as processes of their own: supervisor, rank, and what sends its records.
    for processes in 1 2 3; do
        $user prlimit --nproc=$processes "$etude" train good.yaml --progress none \
            train_data.workers=0 --run_directory a >out 2>err </dev/null
        code=$?
        ends 69 "$processes processes for a run with a supervisor"
    done
    # Its hub may end after it.
    until_true '[ -z "$(ps -o pid= -u 61184)" ]'
    if [ -x /usr/bin/bible ]; then
        cat >bible.yaml <<'R'
max_duration: 1ba
model: {name: gpt2, n_layers: 1, d_model: 8, n_heads: 1, max_seq_len: 8, vocab_size: 256}
train_data: {name: bible_kjv, seq_len: 8, batch_size: 2, workers: 0}
R
        ETUDE_CACHE_DIR=$dir/none $user prlimit --nproc=3 env RANK=0 LOCAL_RANK=0 \
            "$etude" train bible.yaml \
            --run_directory a --progress none >out 2>err </dev/null
        code=$?
        ends 69 "no process for the program that prints the data"
        says err "cannot run /usr/bin/bible: Resource temporarily unavailable" "says which"
    fi
else
    ok 0 "processes # SKIP only root can try it on a user without any"
fi
finish
