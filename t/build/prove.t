#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How the suite is run: a file that fails is run once more, alone; both outcomes are said,
# and what passed only then is listed as flaky (t/prove.sh); one that says nothing more is
# ended (t/limit.pl); and what tests in shell say.
. "$(dirname "$0")/../tap.sh"
own_folder etude-prove
command -v prove >/dev/null || skip_all 'no prove'
unset ETUDE_AGAIN ETUDE_PROVE ETUDE_LONG ETUDE_TEST_LIMIT

# a NAME SHELL: the test NAME.t. "first" in it is true in its first run alone.
a() {
    printf '#!/bin/sh\nfirst() { [ ! -e %s.ran ]; }\n%s\ntouch %s.ran\n' \
        "$1" "$2" "$1" >"$1.t"
    chmod +x "$1.t"
}

# proves NAME...: code and out of a suite of these, which is run for the first time
proves() {
    rm -rf ./*.ran t together
    tests=
    for name in "$@"; do tests="$tests ./$name.t"; done
    # shellcheck disable=SC2086
    ET_BUILDDIR=$dir sh "$ET_SRCDIR/t/prove.sh" $tests >out 2>&1
    code=$?
}

a good 'echo "ok 1 - adds"; echo 1..1'
a bad 'echo "ok 1 - adds"; echo "not ok 2 - subtracts"; echo "#   got 3, want 2"; echo 1..2'
a flaky 'echo "ok 1 - opens"
if first; then echo "not ok 2 - answers in time"; echo "#   waited 4 s"
else echo "ok 2 - answers in time"; fi
echo 1..2'
a short 'echo "ok 1 - begins"; first || echo "ok 2 - ends"; echo 1..2'
a dies 'echo "ok 1 - begins"; echo 1..1; echo "it broke" >&2; first && touch dies.ran && exit 3'
a skips 'echo "1..0 # SKIP it has no printer"'

proves good skips
is $code 0 "a suite that passes passes, also where a file skips itself"
is "$(grep -c -e alone -e FLAKY out)" 0 "and nothing is run twice"

proves good bad
is $code 1 "what fails twice fails the suite"
says out './bad.t: exit 0, 1 not ok; alone: exit 0, 1 not ok' "with both outcomes"
says out 'FAILED twice, ./bad.t: exit 0, 1 not ok' "it is listed at the end"
is "$(sed -n '/^FAILED twice/,$p' out | sed -n '2,3p' | tr '\n' '|')" \
    'not ok 2 - subtracts|#   got 3, want 2|' "with what it said"
is "$(grep -c 'ok 1 - adds' out)" 0 "and not what it passed"

proves good flaky
is $code 0 "what passes when it is alone does not fail the suite"
says out './flaky.t: exit 0, 1 not ok; alone: passed' "both outcomes are said"
is "$(sed -n '/^FLAKY/,$p' out | tr '\n' '|')" \
    'FLAKY, passed only alone: ./flaky.t: exit 0, 1 not ok|not ok 2 - answers in time|#   waited 4 s|' \
    "and the end lists it as flaky, with what it said"

a endless 'truncate -s 17G big 2>/dev/null; code=$?; rm -f big
if [ $code = 0 ]; then echo "not ok 1 - a file has an end"; else echo "ok 1 - a file has an end"; fi; echo 1..1'
proves endless
is $code 0 "no file of a test is longer than 16 GiB"

proves flaky bad
is $code 1 "one of each fails it"
is "$(grep -o -e '^FAILED twice, ./bad' -e '^FLAKY, passed only alone: ./flaky' out | tr '\n' '|')" \
    'FAILED twice, ./bad|FLAKY, passed only alone: ./flaky|' "the flaky ones come last"

proves short dies
is $code 0 "so it is with tests that were not reached, and ends that are no success"
says out './short.t: exit 0, 1 of 2 tests; alone: passed' "of which one says how many ran"
says out './dies.t: exit 3; alone: passed' "the other its status"
says out 'it broke' "and what it wrote to its errors"

a bails 'echo "ok 1 - begins"; echo "Bail out! no memory"; exit 255'
a sick 'echo "ok 1 - begins"; first && touch sick.ran && echo "Bail out! no disk" && exit 255; echo 1..1'
proves bails good
is $code 1 "a test that bails out fails the suite"
says out './bails.t: exit 255, 1 of ? tests; alone: exit 255, 1 of ? tests' "with both outcomes"
says out 'Bail out! no memory' "and why"
is "$(ls ./*.ran | tr '\n' ' ')" './good.ran ' "while the others run"
proves sick bad
is "$code $(grep -c -e 'sick.t.*; alone: passed' -e 'bad.t: .*; alone: exit' out)" '1 2' \
    "one that passes alone is run again like any other"

# Two that disturb each other pass once each has the machine for itself.
both='mkdir together 2>/dev/null || { echo "not ok 1 - has it for itself"; echo 1..1; exit 0; }
first && sleep 1; rmdir together; echo "ok 1 - has it for itself"; echo 1..1'
a left "$both"
a right "$both"
proves left right
is $code 0 "what fails beside another is run without it"

# Tests that do not end. What they sleep for, no others do, tells their processes.
sleeping() { ps -eo args= | grep -c "^sleep [0-9]*$$\$"; }
a hangs "echo 'ok 1 - begins'; printf 'ok 2 - an'; setsid sleep 91$$ & sleep 92$$"
a silent "echo 'ok 1 - begins'; echo 1..1; exec >&-; sleep 93$$"
a slow 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 0.2; echo "ok $i - goes on"; done; echo 1..12'
a leaves "setsid sleep 94$$ & echo \$! >left; echo 'ok 1 - begins it'; echo 1..1"
export ETUDE_TEST_LIMIT=1
proves hangs good
is $code 1 "a test that says nothing more is ended, and fails the suite"
says out 'not ok - TEST: no end after 1 s without a line; the last was: ok 1 - begins' \
    "with what it said last"
is "$(grep -c "process.*sleep 9[12]$$" out)" 2 "and where each of its processes stood"
is "$(sleeping)" 0 "of which none is left, wherever it went"
proves silent
is $code 1 "so is one that has closed its output"
export ETUDE_TEST_LIMIT=2
proves slow
is $code 0 "one that goes on has its time"
export ETUDE_TEST_LIMIT=10
proves leaves
is $code 0 "and what a test has left behind is not waited for"
kill "$(cat left)"
unset ETUDE_TEST_LIMIT

# What a sanitizer saw stays a fault: the next run may take another turn.
cat >races.t <<'T'
#!/bin/sh
log=$(echo "$TSAN_OPTIONS" | sed 's/.*log_path=//; s/"//g')
[ -e races.ran ] || echo 'SUMMARY: ThreadSanitizer: data race' >"$log.1"
touch races.ran
echo 'ok 1 - adds'
echo 1..1
T
chmod +x races.t
proves races
is $code 1 "a sanitizer's report is no matter of luck"
says out './races.t: exit 99; alone: a sanitizer reported' "and is said as what it is"

# What tests in shell say of a failure (t/tap.sh).
cat >fails.t <<'T'
. "$ET_SRCDIR/t/tap.sh"
own_folder etude-fails
echo 'three words here' >out
is "$(wc -c <out)" 3 "words are counted"
[ "$PWD" = "$dir" ]
ok $? "in a folder of its own"
finish
T
ET_SRCDIR=$ET_SRCDIR sh fails.t >said
is "$? $(tr '\n' '|' <said)" "1 not ok 1 - words are counted|#   out: three words here|\
#   got '17'|#   want '3'|ok 2 - in a folder of its own|1..2|" \
    "a test in shell says what it compared, and what its command printed"
# Where tests write.
a writes 'echo "${TMPDIR-none}" >told; [ -z "${TMPDIR-}" ] || touch "$TMPDIR/left"
echo "ok 1 - writes"; echo 1..1'
mkdir given
(TMPDIR=$dir/given; export TMPDIR; proves writes)
is "$(cat told)" "$dir/given" "tests write to TMPDIR where it is set"
[ -e given/left ]
ok $? "which is left alone"
(unset TMPDIR; proves writes)
case $(cat told) in
none) skip "there is no room in /dev/shm" ;;
*)
    [ "$(cat told)" != "${dir%/*}" ] && [ ! -e "$(cat told)" ]
    ok $? "else to a folder in memory, which goes with all that is in it"
    ;;
esac
finish
