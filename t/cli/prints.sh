# SPDX-License-Identifier: Apache-2.0
# prints.sh: what commands print, letter for letter: each in a file of t/cli/texts.
# ETUDE_UPDATE=1 writes these anew, for a person to look at. After t/cli/cli.sh.
# shellcheck shell=sh
texts=$ET_SRCDIR/t/cli/texts
export TZ=UTC LC_ALL=C.UTF-8 TERM=xterm COLUMNS=80

# prints NAME SENTENCE ARGS...: what `etude ARGS` prints, the first $most lines of it, on
# standard error too, and how it ends, are the file NAME. Digits behind the sixth of a
# fraction are left out: libraries differ in them; so is when a message was said.
most=125
prints() {
    name=$1 sentence=$2
    shift 2
    run "$@"
    {
        head -n $most out
        sed -E 's/^(\{"t":)[0-9.]+/\1T/; s/^/stderr: /' err
        echo "exit $code"
    } | sed -E "s|$dir|DIR|g; s/([0-9]\\.[0-9]{6})[0-9]+/\\1/g" >got
    [ -z "${ETUDE_UPDATE:-}" ] || cp got "$texts/$name.txt"
    diff "$texts/$name.txt" got >out 2>&1
    ok $? "$sentence"
}
