#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Recipes that are written to do harm (RELIABILITY.md 7.5, R32): each is refused, or read,
# with 64 MiB for all that the program holds and within a second of the processor's time,
# which the system enforces: or 20 times what an honest one takes, where that is more.
# (That they take 100 ms is t/unit/yaml's.)
. "$(dirname "$0")/cli.sh"
tiny good.yaml

cpu=$(perl -e 'system "@ARGV >out 2>err" for 1 .. 5; my (undef, undef, $user, $system) = times;
    printf "%d", 1 + 20 * ($user + $system) / 5' "$etude" validate good.yaml)
limits="prlimit --data=67108864 --cpu=$cpu"
if ASAN_OPTIONS="${ASAN_OPTIONS-}:log_path=stderr" $limits "$etude" validate good.yaml >out 2>err; then
    ok 0 "a recipe fits in 64 MiB and a second"
else
    limits=
    ok 0 "64 MiB and a second # SKIP this program needs more: built with sanitizers?"
fi

# under EXIT TEXT NAME ARGS...: validate with ARGS under the limits
under() {
    want=$1 text=$2 name=$3
    shift 3
    $limits "$etude" validate "$@" >out 2>err </dev/null
    code=$?
    [ "$code" -eq "$want" ] && grep -qF -e "$text" out err
    ok $? "$name: exit $want"
    [ "$(wc -c <err)" -le 65536 ] || ok 1 "$name: and little is said of it"
}
# repeat N TEXT
repeat() {
    awk -v n="$1" -v t="$2" 'BEGIN { for (i = 0; i < n; i++) printf "%s", t }'
}
# with: good.yaml and standard input, as r.yaml
with() {
    { cat good.yaml; cat; } >r.yaml
}

# ---- size ----

head -c 100000000 /dev/zero | tr '\0' ' ' >r.yaml
under 65 "r.yaml: 95.4 MiB exceeds 256 KiB" "100 MB of blanks" r.yaml
ulimit -S -f unlimited 2>/dev/null || : # keep.sh's, of a file
truncate -s 4T r.yaml
under 65 "MiB exceeds 256 KiB" "a hole of 4 TiB" r.yaml
{ printf 'target: "'; repeat 261000 x; echo '"'; } | with
under 65 "target" "a word of 255 KiB" r.yaml
{ repeat 261000 x; echo ': 1'; } | with
under 65 "" "a key of 255 KiB" r.yaml
awk 'BEGIN { for (i = 0; i < 4900; i++) print "optimizeR" i ": 1" }' | with
under 65 "did you mean" "4,900 unknown keys" r.yaml
awk 'BEGIN { for (i = 0; i < 4900; i++) print "seed: 1" }' | with
under 65 "already set at" "one key 4,900 times" r.yaml
awk 'BEGIN { for (i = 0; i < 30000; i++) print "k" i ": " }' | with
under 65 "the text has more than 10,000 nodes" "30,000 keys" r.yaml
{ printf 'seed: '; repeat 200000 9; echo; } | with
under 65 "seed" "a number of 200,000 digits" r.yaml

# ---- what libfyaml looks at again for each byte ----

{ printf 'a: >\n'; repeat 119000 '\n'; } >r.yaml
under 65 "more than 1000 blanks and line ends in a row" "117 KiB of empty lines" r.yaml
{ printf 'a: x'; repeat 200000 '\n'; echo ' y'; } >r.yaml
under 65 "more than 1000 blanks and line ends in a row" "a plain text with empty lines" r.yaml
{ printf -- '- '; repeat 200000 ' '; echo x; } >r.yaml
under 65 "more than 1000 blanks and line ends in a row" "200,000 blanks" r.yaml
repeat 119000 % >r.yaml
under 65 "directives (%) of more than 1000 bytes" "119,000 signs of percent" r.yaml
repeat 29000 '%%%\n' >r.yaml
under 65 "directives (%) of more than 1000 bytes" "29,000 lines of them" r.yaml
{ printf 'a: x'; repeat 260 "$(repeat 998 '\\n') y"; } >r.yaml
under 65 "unknown key 'a'" "as many empty lines as there may be, 260 times" r.yaml

# ---- depth ----

for deep in '[' '{' '- ' '{a: ' '? '; do
    repeat 60000 "$deep" | head -c 262000 >r.yaml
    under 65 "error E12" "256 KiB of '$deep'" r.yaml
done
awk 'BEGIN { for (i = 0; i < 700; i++) { for (j = 0; j < i; j++) printf " "; print "a:" } }' >r.yaml
under 65 "nesting deeper than 16" "700 levels of indentation" r.yaml

# ---- aliases ----

{
    echo "a: &a [$(repeat 200 'x,')]"
    echo "b: &b [$(repeat 20 '*a,')]"
    echo "c: &c [$(repeat 20 '*b,')]"
    echo "d: [$(repeat 20 '*c,')]"
} | with
under 65 "aliases expand to more than 10,000 nodes" "a billion laughs" r.yaml
{
    printf 'a: &a "'
    repeat 200000 x
    echo '"'
    echo "b: [$(repeat 64 '*a,')]"
} | with
under 65 "" "64 aliases of a word of 200 KB" r.yaml
{ echo 'a: &a {b: 1}'; echo "c: {<<: [$(repeat 65 '*a,')]}"; } | with
under 65 "more than 64 aliases" "65 merges" r.yaml
echo 'a: &a {<<: *a}' | with
under 65 "alias to a node that contains it" "a merge with itself" r.yaml

# ---- includes ----

repeat 60000 '#   ' >large.yaml
{ printf 'include: ['; repeat 63 'large.yaml,'; echo ']'; } | with
under 0 "" "63 includes of 234 KiB" r.yaml
{ printf 'include: ['; repeat 3000 'large.yaml,'; echo ']'; } | with
under 65 "is one file too many (64)" "3,000 includes" r.yaml
echo "include: [a.yaml, a.yaml, a.yaml, a.yaml]" >b.yaml
echo "include: [b.yaml, b.yaml, b.yaml, b.yaml]" >a.yaml
echo "include: [a.yaml]" | with
under 65 "is nested deeper than 4" "includes of each other" r.yaml
mkfifo pipe.yaml
for path in ../good.yaml /etc/passwd sub/../../good.yaml . pipe.yaml /dev/zero; do
    echo "include: ['$path']" | with
    $limits "$etude" validate r.yaml >out 2>err </dev/null
    code=$?
    [ $code -eq 65 ] || [ $code -eq 66 ]
    ok $? "an include of $path: exit $code"
done
mkdir sub
ln -s .. sub/up
echo "include: [sub/up/good.yaml]" | with
under 66 "cannot read sub/up/good.yaml" "an include through a linked folder" r.yaml

# ---- the environment ----

mkdir -m 700 user
echo 'env: [LONG]' >user/config.yaml
chmod 600 user/config.yaml
export ETUDE_CONFIG_DIR="$dir/user"
LONG=$(repeat 100000 y)
export LONG
# shellcheck disable=SC2016
{ printf 'target: "'; repeat 26000 '${env:LONG}' | head -c 250000; echo '"'; } | with
under 65 "with the values of variables it has more than 256 KiB" "a variable of 100 KB, 22,000 times" r.yaml
# shellcheck disable=SC2016
{ printf 'x: ['; repeat 4000 '"${env:LONG}",'; echo ']'; } | with
under 65 "with the values of variables it has more than 256 KiB" "4,000 words of it" r.yaml
finish
