#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# prove.sh TEST...: runs tests through prove, one more beside each other than there are
# processors, since a third of the time of many is waiting. A file that fails is
# run once more, alone, after all others: a loaded machine makes tests fail that live by
# time, and this tells them from those that are broken. Exit 0 if every file passed, the
# first time or then.
#
# Both outcomes of each such file are printed. At the end stands what the ones that failed
# twice have said, and the files that passed only alone, as FLAKY, with what they said when
# they failed: each of those is to be made deterministic.
#
# Tests write thousands of checkpoints and wait for the disk each time. Where TMPDIR is not set
# and /dev/shm has room, they write there.
#
# ETUDE_PROVE: more options for prove; ETUDE_PROVE_JOBS: how many run beside each other.
here=$(cd "$(dirname "$0")" && pwd)
said=$ET_BUILDDIR/t/said
rm -rf "$said"
mkdir -p "$said"

# Do programs in /dev/shm run, and may tests take 4 GiB of memory there?
has_room() {
    try=$(mktemp -d /dev/shm/et.XXXXXX 2>/dev/null) || return 1
    printf '#!/bin/sh\n' >"$try/run" && chmod +x "$try/run" && "$try/run" 2>/dev/null &&
        [ "$(stat -f -c %T "$try")" = tmpfs ] &&
        [ "$(df -Pk "$try" | awk 'NR == 2 { print $4 }')" -ge 4194304 ] &&
        [ "$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)" -ge 8388608 ]
    has=$?
    rm -rf "$try"
    return $has
}
if [ -z "${TMPDIR-}" ] && has_room; then
    TMPDIR=$(mktemp -d /dev/shm/et.XXXXXX) || exit 99
    chmod 1777 "$TMPDIR" # some tests become another user
    export TMPDIR
    trap 'rm -rf "$TMPDIR"' EXIT
    trap 'exit 130' INT TERM
fi

# prove FLAGS...: with a state, from which the second run knows what failed in the first
prove_with() {
    # shellcheck disable=SC2086
    prove --timer --statefile "$said/state" --exec "sh $here/keep.sh" ${ETUDE_PROVE-} "$@"
}
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null) || jobs=1
[ "$jobs" -lt 8 ] || jobs=7 # what waits by the clock needs some rest
prove_with -j"${ETUDE_PROVE_JOBS:-$((jobs + 1))}" --state=save "$@" && exit 0
ls "$said"/*.name >/dev/null 2>&1 || exit 1 # it was prove itself
printf '\nWhat failed is run once more, alone.\n\n'
export ETUDE_AGAIN=1
prove_with --state=failed
code=$?

# words FILE: of what a test said, the lines that tell why it failed
words() {
    grep -A 8 '^not ok' "$1" | grep -v -e '^ok' -e '^1\.\.' | head -n 60 | grep . || tail -n 3 "$1"
    head -n 60 "$1.err"
}
printf '\nWhat was run twice:\n'
flaky=
for name in "$said"/*.name; do
    file=${name%.name} again=$said/again/$(basename "$name")
    if [ -f "$file.report" ]; then # no second run undoes what a sanitizer has seen
        code=1
        then='a sanitizer reported'
    elif [ -f "$again" ]; then
        code=1
        then=$(sed 's/.*: //' "$again")
    elif [ -f "${again%.name}.passed" ]; then
        flaky="$flaky $(basename "$file")" # no blanks: keep.sh made the name
        then=passed
    else
        code=1
        then='not run'
    fi
    printf '  %s; alone: %s\n' "$(cat "$name")" "$then"
done
for name in "$said"/*.name; do
    file=${name%.name} again=$said/again/$(basename "$name")
    if [ -f "$again" ]; then
        printf '\nFAILED twice, %s\n' "$(cat "$again")"
        words "${again%.name}"
    elif [ -f "$file.report" ] || [ ! -f "${again%.name}.passed" ]; then
        printf '\nFAILED, %s\n' "$(cat "$name")"
        words "$file"
    fi
done
for file in $flaky; do
    printf '\nFLAKY, passed only alone: %s\n' "$(cat "$said/$file.name")"
    words "$said/$file"
done
exit $code
