# SPDX-License-Identifier: Apache-2.0
# tap.sh: what all tests in shell share: TAP, the folders of the source and of the build,
# and a folder of their own.
#
#   . "$(dirname "$0")/../tap.sh"
#   own_folder etude-words
#   wc -w <text >out
#   is "$(cat out)" 3 "words are counted"
#   finish
#
# A failure prints what was compared, and the files named in $shown: where tests keep what
# their last command said.
# shellcheck shell=sh
ET_BUILDDIR=$(cd "${ET_BUILDDIR:-.}" && pwd)
ET_SRCDIR=$(cd "${ET_SRCDIR:-$ET_BUILDDIR/..}" && pwd)
n=0 failures=0 shown=out

# own_folder NAME: makes $dir, which goes when the test ends, and goes there
own_folder() {
    dir=$(mktemp -d "${TMPDIR:-/tmp}/$1.XXXXXX") || exit 99
    # A socket's path has at most 107 bytes, whatever TMPDIR is.
    [ ${#dir} -le 50 ] || { rmdir "$dir" && dir=$(mktemp -d "/tmp/$1.XXXXXX"); } || exit 99
    dir=$(cd "$dir" && pwd -P)
    trap 'rm -rf "$dir"' EXIT
    cd "$dir" || exit 99
}

# ok STATUS NAME
ok() {
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $n - $2"
        return
    fi
    failures=$((failures + 1))
    echo "not ok $n - $2"
    for shown_file in $shown; do
        [ ! -f "$shown_file" ] || tail -n 60 "$shown_file" | sed "s/^/#   $shown_file: /"
    done
}

# is GOT WANT NAME
is() {
    if [ "$1" = "$2" ]; then
        ok 0 "$3"
    else
        ok 1 "$3"
        printf '%s\n' "got '$1'" "want '$2'" | sed 's/^/#   /'
    fi
}

# says FILE TEXT NAME: a fixed text stands in it
says() {
    grep -qF -e "$2" "$1"
    ok $? "$3"
}

# skip REASON: one test
skip() {
    n=$((n + 1))
    echo "ok $n # SKIP $1"
}

# skip_all REASON: before the first test
skip_all() {
    echo "1..0 # SKIP $1"
    exit 0
}

finish() {
    echo "1..$n"
    exit $((failures > 0))
}
