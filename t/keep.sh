#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# keep.sh PROGRAM: runs one test for prove.sh and keeps what it says, if it fails, in
# t/said, or on its second run in t/said/again.
#
# A file fails by its exit status, a line "not ok", or fewer tests than it planned: then
# there is FILE.name with how it ended, beside FILE and FILE.err with what it said. One that
# passes its second run leaves FILE.passed.
#
# A test that bails out fails alone: to prove, "Bail out!" would be the end of the suite.
#
# Built with sanitizers, a process whose output and end nobody looks at may be the one that
# a report is about: they go to files, and each fails the test. A test that has one has
# failed, whatever its next run says: FILE.report is there.
said=$ET_BUILDDIR/t/said${ETUDE_AGAIN:+/again}
mkdir -p "$said"
kept=$said/$(printf %s "$1" | tr -c 'A-Za-z0-9\n' _)
for sanitizer in ASAN UBSAN TSAN; do
    eval "options=\${${sanitizer}_OPTIONS-}"
    export "${sanitizer}_OPTIONS=$options${options:+:}log_path=\"$kept.sanitizer\""
done
# A program that writes without end fails before the disk is full: 16 GiB a file.
ulimit -S -f 33554432 2>/dev/null
perl "$(dirname "$0")/limit.pl" "$1" >"$kept" 2>"$kept.err"
code=$?
for report in "$kept".sanitizer.*; do
    [ -f "$report" ] || continue
    cat "$report" >>"$kept.err"
    # (That more memory was asked for than there can be is a warning, and no more.)
    if grep -q -e '^SUMMARY:' -e 'runtime error:' -e 'CHECK failed' "$report"; then
        : >"$kept.report"
        [ $code != 0 ] || code=99
    fi
    rm "$report"
done
sed 's/^Bail out!/not ok - it bailed out:/' "$kept"
cat "$kept.err" >&2
ended=$(awk '/^1\.\.[0-9]+/ { plan = substr($1, 4) } /^ok/ { n++ } /^not ok/ { n++; bad++ }
    END { if (plan == "" || n + 0 != plan) printf ", %d of %s tests", n, plan == "" ? "?" : plan
          if (bad) printf ", %d not ok", bad }' "$kept")
if [ $code = 0 ] && [ -z "$ended" ]; then
    rm "$kept" "$kept.err"
    [ -z "${ETUDE_AGAIN-}" ] || : >"$kept.passed"
else
    printf '%s: exit %s%s\n' "$1" $code "$ended" >"$kept.name"
fi
exit $code
