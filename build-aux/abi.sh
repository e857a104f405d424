#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# abi.sh BUILD [BASE]: does the libetude.so.1 of the folder BUILD still run what was linked
# with the last release's? "make abi" calls it.
#
# BASE is a libetude.so.1 or what abidw wrote of one, or a tag or commit, which is then
# built in BUILD/abi-build; without one it is the newest tag v*. Names that are gone are
# found by nm; what has changed in types, by abidiff of libabigail, where it is installed.
# Ends with 1 where a program would break.
set -eu
build=$1 base=${2:-}
source=$(cd "$(dirname "$0")/.." && pwd)
library=$build/.libs/libetude.so.1
say() {
    echo "make abi: $1"
}
[ -f "$library" ] || {
    say "$library is not built"
    exit 1
}
[ -n "$base" ] || base=$(git -C "$source" describe --tags --abbrev=0 --match 'v*' 2>/dev/null) || {
    say 'skipped: there is no release yet (a tag v*); ABI_BASE= names a library or a commit'
    exit 0
}
if [ ! -f "$base" ]; then
    commit=$(git -C "$source" rev-parse --verify --quiet "$base^{commit}") || {
        say "$base is no file, tag or commit"
        exit 1
    }
    old=$build/abi-build/$commit
    if [ ! -f "$old/.libs/libetude.so.1" ]; then
        say "building $base in $old"
        mkdir -p "$old/src"
        git -C "$source" archive "$commit" | tar -x -C "$old/src"
        (cd "$old/src" && autoreconf -i && cd .. && src/configure --quiet --without-cpu \
            --without-cuda --without-gloo && ${MAKE:-make} -s libetude.la) >"$old/log" 2>&1 || {
            tail -n 5 "$old/log"
            say "$base cannot be built; see $old/log"
            exit 1
        }
    fi
    base=$old/.libs/libetude.so.1
fi

names() {
    case $1 in
    *.abi | *.xml) sed -n "s/.*<elf-symbol name='\([^']*\)'.*is-defined='yes'.*/\1/p" "$1" ;;
    *) nm -D --defined-only "$1" | sed -n 's/^[0-9a-f]* [TDBR] \([^@]*\).*/\1/p' ;;
    esac | sort
}
work=$(mktemp -d "${TMPDIR:-/tmp}/etude-abi.XXXXXX")
trap 'rm -rf "$work"' EXIT
names "$base" >"$work/old"
names "$library" >"$work/new"
comm -23 "$work/old" "$work/new" >"$work/gone"
comm -13 "$work/old" "$work/new" >"$work/added"
say "$(wc -l <"$work/old") names in $base; $(wc -l <"$work/added") are new, $(wc -l <"$work/gone") gone"
status=0
if [ -s "$work/gone" ]; then
    sed 's/^/    gone: /' "$work/gone"
    status=1
fi
if command -v abidiff >/dev/null; then
    # Types that no public header has are nobody's concern.
    abidiff --no-added-syms --suppressions "$source/build-aux/abi.suppr" --drop-private-types \
        --headers-dir1 "$source/include/etude" --headers-dir2 "$source/include/etude" \
        "$base" "$library" >"$work/diff" || status=1
    cat "$work/diff"
else
    say 'types are not compared: no abidiff (Debian and Ubuntu: abigail-tools)'
fi
[ "$status" -eq 0 ] || say 'a program or plugin of that release would not run with this library'
exit $status
