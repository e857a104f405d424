#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The screen Workers: this machine, others that can and cannot be reached, attaching.
. "$(dirname "$0")/screens.sh"
export ETUDE_CONFIG_DIR="$dir/conf" XDG_RUNTIME_DIR="$dir/rt"
mkdir -p conf rt && chmod 700 conf rt
"$ET_BUILDDIR/t/tui/rivals" || { echo "Bail out! no runs"; exit 99; }

does() {
    has "$1" "$2" runs --dump-screen 80x24 --keys "4$3"
}
# (Its name and cores are this machine's: no golden file.)
does '* local         ipc' "this machine is always there" ''
does 'runs here need no worker' "and needs no service" ''
does '+ adds another machine' "it says how to add others" ''
does '[3 Runs]' "enter leads to its runs" '<enter>'
does 'no run and no worker is called' "attach says what it does not find" 'anothing<enter>'
does '[2 Monitor]' "and shows a run that it does" 'acalm-heron<enter>'
does '? lost contact' "the signs are told, all of them" ''
does 'viewer, runs cannot be steered' "v makes one a viewer" 'v'
does 'viewer (v: operator)' "which the form shows" 'v'
does 'operator, where the worker lets' "and an operator again" 'vv'
has 'role: viewer: started with --readonly' "with --readonly it stays one" \
    runs --dump-screen 80x24 --readonly --keys '4v'
does 'this machine is always in the list' "this machine stays" 'X'

has 'tcp://HOST:PORT, ssh://HOST' "a narrow form tells all kinds of addresses, too" \
    runs --dump-screen 60x16 --keys 4
has 'unreac..' "and what has no room is cut with a sign" runs --dump-screen 40x10 --keys 4

run worker keygen
exits 0 "keys of this machine"
public=$(sed -n 's/^public //p' conf/curve.key | head -1)
[ -n "$public" ] || public=$(sed -n 's/^public key *//p' out)
does 'copy the command that lets it in as a viewer' "k shows the key, and offers what lets it in" 'k'
does 'SHA256:' "with its fingerprint" 'k'
does "copied: etude worker allow '" "which is copied" 'kv'
does "' operator" "for either role" 'ko'
does 'needs no worker: there is none to test' "t says that this machine has none" 't'
run worker add far tcp://127.0.0.1:9 "$public"
exits 0 "a worker where nothing listens"
does 'x far           tcp://127.0.0.1:9' "is shown as one" ''
does 'unreachable' "with the reason" 'j'
does ' pinned 20' "and its key" 'j'
does 'far is held to SHA256:' "k shows that it is held to it" 'jk'
does '2 workers, 1 reachable' "the others are asked all the same" ''
does 'near is ssh://nowhere' "+ adds one" '+near ssh://nowhere<enter>'
says conf/workers.yaml 'ssh://nowhere' "to the user's file"
does 'it is forgotten here' "X forgets one, when that is confirmed" 'jjXy'
says out ' 2 workers,' "the list is without it at once"
run worker list
[ "$(grep -c nowhere out)" = 0 ]
ok $? "for good"
finish
