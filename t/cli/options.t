#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Which options each command takes: t/cli/options.txt, and that it refuses the others.
# ETUDE_UPDATE=1 writes the file anew, for a person to look at.
. "$(dirname "$0")/cli.sh"
list=$ET_SRCDIR/t/cli/options.txt

"$etude" __complete "" | sed -n 's/^\([a-z]*\)	.*/\1/p' >commands
while read -r command; do
    printf '%s:' "$command"
    "$etude" help "$command" | sed -nE 's/^ +(-[A-Za-z], +)?(--[A-Za-z_-]+).*/ \2/p' | tr -d '\n'
    echo
done <commands >got
[ -z "${ETUDE_UPDATE:-}" ] || cp got "$list"
diff "$list" got >out 2>err
ok $? "each command takes the options that t/cli/options.txt has"

# One option of other commands each: not the same one of all.
tr ' ' '\n' <got | sed -n 's/^--//p' | sort -u >all
refused=0 wrong=
while read -r line; do
    command=${line%%:*}
    at=$((refused * 2 + 1))
    for option in $(tail -n +$at all) $(head -n $at all); do
        case "$line " in *" --$option "*) continue ;; esac
        run "$command" "--$option" 1
        # (Or for its value, which is looked at first.)
        [ "$code" = 64 ] && grep -qe "--$option" err || wrong="$wrong $command --$option"
        refused=$((refused + 1))
        break
    done
done <got
is "$wrong" "" "an option of another command is refused"
is "$refused" "$(wc -l <commands)" "by each command"
run validate --no-such-option
exits 64 "an option of no command is refused, too: exit 64"
says err "unknown option" "and said to be none"

finish
