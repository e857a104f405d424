#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --dump-screen prints every screen, at any size.
. "$(dirname "$0")/screens.sh"
export ETUDE_CONFIG_DIR="$dir/conf" XDG_STATE_HOME="$dir/state"
"$ET_BUILDDIR/t/tui/rivals" >out 2>err
ok $? "runs to show"
cp "$ET_SRCDIR/t/tui/mild.yaml" mild.yaml
# prints NAME TEXT ARGS...: exit 0, SIZE lines and columns, and TEXT where there is room
prints() {
    name=$1 text=$2
    shift 2
    for size in 30x8 60x16 80x24 120x36 200x50 500x500; do
        run --ascii --dump-screen $size "$@"
        [ "$code" -eq 0 ] && [ "$(wc -l <out)" -eq "${size#*x}" ] &&
            [ "$(awk '{ if (length > n) n = length } END { print n }' out)" -le "${size%x*}" ]
        ok $? "$name at $size"
        [ $size = 120x36 ] && says out "$text" "which is $name"
    done
}
prints Compose '[1 Compose]' compose mild.yaml
prints Start 'a first recipe' compose
prints Monitor '[2 Monitor]' attach calm-heron
prints Runs 'grim-toad' runs
prints Compare 'compare 2 runs' compare calm-heron dry-finch
prints Workers '[4 Workers]' worker
prints Workers '[4 Workers]' worker list
prints Logs '[5 Logs]' logs calm-heron
prints help 'EVERYWHERE' help
prints "the palette" 'go to, or do' runs --keys ':'
prints "help of Runs" 'HERE: Runs' runs --keys '?'
prints etude 'Runs' --keys '3'
for command in 'worker keygen' 'worker test local' 'show calm-heron' 'version'; do
    # shellcheck disable=SC2086
    run $command --dump-screen 80x24
    exits 64 "'$command' has no screen: exit 64"
done
finish
