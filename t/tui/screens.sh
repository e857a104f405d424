# SPDX-License-Identifier: Apache-2.0
# screens.sh: what tests of screens share. A screen is a file of t/tui/screens, compared
# cell by cell: its text, then the roles of its cells (tui_grid_print_roles);
# ETUDE_UPDATE=1 writes them anew, for a person to look at.
# shellcheck shell=sh
. "$(dirname "$0")/../cli/cli.sh"
screens=$ET_SRCDIR/t/tui/screens
unset LC_ALL LC_CTYPE LANG
export TZ=UTC LC_ALL=C.UTF-8

# How long something takes differs between machines; so do the columns of such a row's
# roles, which are left out.
mask() {
    awk '/^roles:$/ { roles = 1 }
        roles && $1 in masked { next }
        !roles {
            was = $0
            sub(/ +est(imate:)? .*$/, " EST")
            sub(/estimate   .*/, "EST")
            sub(/[0-9.]+ [KMGT]B free/, "FREE")
            sub(/need [0-9.]+ [KMGT]B/, "need SO MUCH")
            sub(/all [0-9]+ keys/, "all KEYS") # options come and go
            if ($0 != was)
                masked[NR] = 1
        }
        { print }'
}

# with_roles ARGS...: sets $args to them, the screens with roles
with_roles() {
    args=
    for arg; do
        case $arg in
        [0-9]*x[0-9]*) arg=$arg+roles ;;
        esac
        args="$args $(quote "$arg")"
    done
}

quote() {
    printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"
}

glyphs=--ascii
# shows NAME SENTENCE ARGS...: the screen that "etude ARGS" prints is the file NAME
shows() {
    name=$1 sentence=$2
    shift 2
    with_roles "$@"
    eval "run $glyphs $args"
    mask <out >got
    [ -n "$ETUDE_UPDATE" ] && cp got "$screens/$name.txt"
    if [ "$code" -ne 0 ]; then
        ok 1 "$sentence"
        return
    fi
    diff "$screens/$name.txt" got >out 2>&1
    ok $? "$sentence"
}

# has TEXT SENTENCE ARGS...: the text stands on that screen
has() {
    text=$1 sentence=$2
    shift 2
    run --ascii "$@"
    says out "$text" "$sentence"
}
