#!/bin/sh
# keep.sh: what tests say is kept, so that a run ends with what the failed ones said.
#
#   keep.sh PROGRAM    runs one test for prove
#   keep.sh            of those that failed since t/said was made: their words
#
# A line of prove's summary has a test's number; what it compared stood thousands of lines
# above, or nowhere where somebody keeps the last page alone.
#
# Built with sanitizers, a process whose output and end nobody looks at may be the one that
# a report is about: they go to files, and each fails the test.
said=$ET_BUILDDIR/t/said
if [ $# -gt 0 ]; then
    mkdir -p "$said"
    kept=$said/$(printf %s "$1" | tr -c 'A-Za-z0-9\n' _)
    for sanitizer in ASAN UBSAN TSAN; do
        eval "options=\${${sanitizer}_OPTIONS-}"
        export "${sanitizer}_OPTIONS=$options${options:+:}log_path=\"$kept.report\""
    done
    "$1" >"$kept" 2>"$kept.err"
    code=$?
    for report in "$kept".report.*; do
        [ -f "$report" ] || continue
        cat "$report" >>"$kept.err"
        # (That more memory was asked for than there can be is a warning, and no more.)
        ! grep -q -e '^SUMMARY:' -e 'runtime error:' -e 'CHECK failed' "$report" ||
            [ $code != 0 ] || code=99
        rm "$report"
    done
    cat "$kept"
    cat "$kept.err" >&2
    if [ $code = 0 ] && ! grep -q '^not ok' "$kept"; then
        rm "$kept" "$kept.err"
    else
        printf '%s: exit %s\n' "$1" $code >"$kept.name"
    fi
    exit $code
fi
for name in "$said"/*.name; do
    [ -f "$name" ] || continue
    printf '\n'
    cat "$name"
    grep -A 8 '^not ok' "${name%.name}" | grep -v '^ok' | head -n 60 |
        grep . || tail -n 3 "${name%.name}"
    head -n 60 "${name%.name}.err"
done
