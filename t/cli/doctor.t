#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `etude doctor`: what is found on this machine, what is wrong with it, and what it leaves.
. "$(dirname "$0")/cli.sh"
export ETUDE_CONFIG_DIR="$dir/config" HOME="$dir/home" LC_ALL=C.UTF-8 TERM=xterm
unset ETUDE_DEVICE ETUDE_CACHE_DIR XDG_CACHE_HOME

# found PART STATE TEXT NAME: one finding of the last run's --json
found() {
    tr -d '\n' <out | sed 's/},/}\n/g' >each
    grep "\"part\": \"$1\"" each | grep "\"state\": \"$2\"" | grep -qF -e "$3"
    ok $? "$4"
}

if [ -e "$ET_BUILDDIR/libetude-cpu.la" ]; then
    run doctor
    exits 0 "a machine that can train: exit 0"
    says out "No problems" "which is said"
    says out "oneDNN" "with what computes, and its version"
else
    run doctor
    exits 1 "a machine without any device: exit 1"
    says out "1 problem" "which is said"
    says out "ETUDE_DEVICE=ref" "with what can be done"
fi
problems=$(grep -c '^cpu  *problem' out)
for part in etude config cuda cpu processors memory disk terminal sockets keys clock; do
    grep -q "^$part  *\(ok\|note\|problem\) " out
    ok $? "it looks at $part"
done
grep -A1 -E '^[a-z ]* problem ' out | grep -c -- '^ *-> ' >told
is "$(cat told)" "$(grep -cE '^[a-z ]* problem ' out)" "each problem has a line with what to do"
is "$(grep -c -- '-> *\(nothing.*\)\{0,1\}$' out)" 0 "and where nothing is to be done no line says so"
is "$(ls -A .sockets/etude)" "" "no socket is left, nor its lock"
[ ! -e "$HOME" ]
ok $? "and no home is made"

run doctor --json
is "$(tr -d '\n ' <out | cut -c1-14)" "{\"problems\":$problems," "--json counts the problems"
found terminal ok "xterm" "and has each finding"

mkdir config
echo 'ui: {plott: braille}' >config/config.yaml
run doctor --json
exits 1 "a configuration that is wrong: exit 1"
found config problem "plott" "is found"
found sockets ok "" "and the rest is looked at all the same"
rm config/config.yaml

echo "viewer nobody" >config/authorized_keys
chmod 600 config/authorized_keys
run doctor --json
exits 1 "an authorized_keys that is wrong: exit 1"
found keys problem "authorized_keys" "is found"
rm config/authorized_keys
if "$etude" worker keygen >/dev/null 2>&1; then
    run doctor --json
    found keys ok "SHA256:" "a key has its fingerprint"
    sed -n 's/^secret //p' config/curve.key >secret
    grep -qF -f secret out
    is $? 1 "and the secret half is not shown"
    chmod 644 config/curve.key
    run doctor --json
    found keys problem "curve.key" "one that others can read is found"
    rm config/curve.key
fi

mkdir -m 700 elsewhere
echo >elsewhere/etude
XDG_RUNTIME_DIR=$dir/elsewhere run doctor --json
exits 1 "no place for sockets: exit 1"
found sockets problem "elsewhere/etude" "is found"

# Modules that are there and are none.
mkdir modules
echo no >modules/libetude-cpu.so
echo no >modules/libetude-cuda.so
ETUDE_MODULE_PATH=$dir/modules run doctor --json
exits 1 "no device at all: exit 1"
found cpu problem "libetude-cpu.so" "that of the processor is a problem where there is no other"

TERM=dumb LC_ALL=C run doctor --json
found terminal note "ASCII" "a locale without UTF-8 is noted"
found terminal note "dumb" "and a terminal without a screen"
OMP_NUM_THREADS=1 run doctor --json
[ "$(nproc)" -eq 1 ] || found processors note "OMP_NUM_THREADS is 1" "so is OMP_NUM_THREADS"
# One processor, of however many there are.
one=$(taskset -pc $$ | sed 's/.*: //; s/[,-].*//')
OMP_NUM_THREADS=1 taskset -c "$one" "$etude" doctor --json >out 2>err
found processors ok "this process may use 1;" "what a process may use of the processors is told"
grep -qF OMP_NUM_THREADS out
is $? 1 "and OMP_NUM_THREADS that is all of them is as it should be"
ETUDE_CACHE_DIR="$dir/kept" run doctor --json
found disk ok "the cache, $dir/kept: " "the cache is where ETUDE_CACHE_DIR has it"
HOME=relative run doctor --json
found disk note "no place for the cache" "and a home that is none"

# What a control group allows, where a test may mount folders of its own.
# allowed TEXT: doctor, with that as the memory its group may have
allowed() {
    # shellcheck disable=SC2016
    unshare -rm sh -c 'mount -t tmpfs none /sys/fs/cgroup && echo "$1" >/sys/fs/cgroup/memory.max &&
        exec "$2" doctor --json' sh "$1" "$etude" >out 2>err
}
if unshare -rm mount -t tmpfs none /sys/fs/cgroup 2>/dev/null; then
    allowed 67108864
    found memory note "the control group allows 67.1 MB" "a limit of the control group is told"
    for none in max 9223372036854771712; do
        allowed $none
        found memory ok "available" "of memory.max $none"
        grep -qF "the control group allows" out
        is $? 1 "nothing is said: it is no limit"
    done
else
    for one in 1 2 3 4 5; do skip "no mounts of its own ($one)"; done
fi
run doctor now
exits 64 "an operand: exit 64"
finish
