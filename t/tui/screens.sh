# screens.sh: what tests of screens share. A screen is a file of t/tui/screens, compared
# cell by cell; ETUDE_UPDATE=1 writes them anew, for a person to look at.
# shellcheck shell=sh
. "$(dirname "$0")/../cli/cli.sh"
screens=$ET_SRCDIR/t/tui/screens
unset LC_ALL LC_CTYPE LANG
export TZ=UTC LC_ALL=C.UTF-8

# How long something takes differs between machines.
mask() {
    sed -E 's/ +est(imate:)? .*$/ EST/; s/estimate   .*/EST/; s/[0-9.]+ [KMGT]B free/FREE/'
}

glyphs=--ascii
# shows NAME SENTENCE ARGS...: the screen that "etude ARGS" prints is the file NAME
shows() {
    name=$1 sentence=$2
    shift 2
    # shellcheck disable=SC2086
    run $glyphs "$@"
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
