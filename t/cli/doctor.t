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
TERM=dumb LC_ALL=C "$etude" doctor >poor 2>err
is "$(grep -c -e '-> set TERM' -e '-> set LC_ALL' poor)" 2 "of two findings of a part each has its own"
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
found processors ok "$(getconf _NPROCESSORS_ONLN), of which" "so is how many there are"
found memory ok "$(awk '/^MemTotal:/ { b = $2 * 1024; g = b / 1e9
    if (g < 1000) printf "%.*f GB, ", g < 10 ? 2 : g < 100 ? 1 : 0, g }' /proc/meminfo)" "and how much memory"
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

# What it says of the time that the group has, and of a disk that is nearly full.
# small SIZE: doctor where runs/ is on a disk of SIZE; cpus TEXT: with that as cpu.max
small() {
    # shellcheck disable=SC2016
    unshare -rm sh -c 'mount -t tmpfs -o size="$1" none runs && head -c "$3" /dev/zero >runs/kept && exec "$2" doctor --json' \
        sh "$1" "$etude" "$2" >out 2>err
}
cpus() {
    # shellcheck disable=SC2016
    unshare -rm taskset -c "$2" sh -c 'mount -t tmpfs none /sys/fs/cgroup && echo "$1" >/sys/fs/cgroup/cpu.max &&
        exec "$2" doctor --json' sh "$1" "$etude" >out 2>err
}
if unshare -rm mount -t tmpfs none /sys/fs/cgroup 2>/dev/null; then
    mkdir runs
    before=$problems
    small 40m 1000000
    found disk problem "runs, runs: 40.9 MB free" "a disk with 41 MB left is a problem"
    is "$(tr -d ' \n' <out | cut -c1-14)" "{\"problems\":$((before + 1))," "which counts"
    found disk problem "remove old runs" "and has an advice"
    small 1g 900000000
    found disk note "runs, runs: 17" "one with 170 MB of 1 GB is noted"
    is "$(tr -d ' \n' <out | cut -c1-14)" "{\"problems\":$before," "and is no problem"
    # shellcheck disable=SC2016
    unshare -rm sh -c 'mount -t tmpfs -o ro none runs && exec "$1" doctor --json' sh "$etude" >out 2>err
    found disk problem "runs, runs, cannot be written" "nor can one be used that is read-only"
    rmdir runs
    cpus "75000 100000" "$one"
    found processors note "allows the time of 0.75 of them" "a limit of the group's time is told"
    for none in "max 100000" "150000 100000"; do
        cpus "$none" "$one"
        grep -qF "allows the time of" out
        is $? 1 "of one processor $none is none"
    done
else
    for one in 1 2 3 4 5 6 7 8 9; do skip "no mounts of its own ($one)"; done
fi

# Where things are, by what the environment and the configuration say.
for xdg in "" "$dir/x"; do
    XDG_STATE_HOME=$xdg XDG_CACHE_HOME=$xdg run doctor --json
    found disk ok "the list of runs, ${xdg:-$HOME/.local/state}/etude: " "the list of runs is in ${xdg:+XDG_STATE_HOME}${xdg:-HOME}"
    found disk ok "the cache, ${xdg:-$HOME/.cache}/etude: " "so is the cache"
done
XDG_STATE_HOME=$dir/one XDG_CACHE_HOME=$dir/two ETUDE_CACHE_DIR='' run doctor --json
found disk ok "the list of runs, $dir/one/etude: " "each has its own"
found disk ok "the cache, $dir/two/etude: " "and an empty ETUDE_CACHE_DIR says nothing"
XDG_STATE_HOME=$dir/here/and/there run doctor --json
found disk ok "the list of runs, $dir/here/and/there/etude: " "folders need not be there yet"
printf 'color: never\nui: {plot: block}\n' >config/config.yaml
run doctor --json
found config ok "$dir/config/config.yaml is read" "the configuration that is read is named"
is "$(grep -c 'is read"' out)" 1 "and no other"
found terminal ok "charts are drawn in blocks" "charts are drawn as it says"
found terminal ok "no colours" "in its colours"
printf 'ui:\n  plott: braille\ncolour: never\n' >config/config.yaml
run doctor
is "$(sed -n 's/.*config.yaml:\([0-9]*\): .*/\1/p' out | sort | tr '\n' ' ')" "2 3 " "each line that is wrong is told"
is "$(grep -c '^config' out)" 1 "below one heading"
says out "$((before + 2)) problems" "and counted"
rm config/config.yaml
printf 'viewer %040d a\noperator %040d b\n' 1 2 >config/authorized_keys
chmod 600 config/authorized_keys
run doctor --json
found keys ok "authorized_keys lets 2 in" "who is let in is counted"
rm config/authorized_keys
run doctor now
exits 64 "an operand: exit 64"
finish
