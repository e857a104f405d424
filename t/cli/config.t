#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The user's configuration: where it is, what it says, changing it, and what is refused.
. "$(dirname "$0")/cli.sh"
tiny r.yaml
unset LC_ALL LC_CTYPE LANG TERM
export ETUDE_CONFIG_DIR="$dir/user"
mine=$ETUDE_CONFIG_DIR/config.yaml

run config path
is "$(cat out)" "$mine" "config path prints the file that set and edit write"
XDG_CONFIG_HOME=/xdg ETUDE_CONFIG_DIR='' run config path
is "$(cat out)" /xdg/etude/config.yaml "XDG_CONFIG_HOME says where it is"
XDG_CONFIG_HOME='' ETUDE_CONFIG_DIR='' HOME=/home/x run config path
is "$(cat out)" /home/x/.config/etude/config.yaml "or HOME"
run config path -v
says out "system   /etc/xdg/etude/config.yaml" "with -v all files"
says out "project  .etude/config.yaml  (absent)" "and whether they are there"
run config get color
is "$(cat out)" auto "config get prints a setting"
run config get
says out "ui.plot = auto  (default)" "or all, with their origin"
run config get colour
exits 64 "an unknown key: exit 64"
says err "unknown key 'colour' (did you mean 'color'?)" "with what was meant"
run config
exits 64 "config alone: exit 64"
run config set color
exits 64 "config set without a value: exit 64"

run config set color never
exits 0 "config set makes the file"
is "$(cat "$mine")" "color: never" "with that line"
is "$(stat -c %a "$ETUDE_CONFIG_DIR") $(stat -c %a "$mine")" "700 600" "for nobody else to read"
cat >"$mine" <<'C'
# my settings
color: never   # I like it plain

ui:
  plot: auto # or braille
# the end
C
run config set ui.plot block
exits 0 "a value deeper down is set"
run config set progress none
cat >want <<'C'
# my settings
color: never   # I like it plain

ui:
  plot: block # or braille
progress: none
# the end
C
diff want "$mine" >err
ok $? "comments and order stay"
run config get ui.plot --json
says out '"value": "block"' "config get --json has the value"
says out "$mine:5:9" "and its place"
mv "$mine" elsewhere.yaml
ln -s "$dir/elsewhere.yaml" "$mine"
run config set color auto
[ -L "$mine" ] && grep -q "color: auto" elsewhere.yaml
ok $? "a link to the file stays one"
chmod 640 elsewhere.yaml
run config set color auto
is "$(stat -c %a elsewhere.yaml)" 640 "who may read the file stays, too"
run config path --json
is "$(tr -d ' \n' <out | grep -o '"layer":"[a-z]*"\|"exists":[a-z]*' | tail -n 4 | tr '\n' ' ')" \
    '"layer":"user" "exists":true "layer":"project" "exists":false ' \
    "config path --json says which files are there"
run config path -v
grep -qx "user     $mine" out
ok $? "and -v which are not absent"
run config get --json
says out '"origin": "default"' "config get --json has all, with their origin"
is "$(grep -c '"help": ""' out)" 0 "and what each is for"
run config get price.hour --json
says out '"origin": "default"' "one that is not set has its default"
cp elsewhere.yaml want
run config set color blue
exits 64 "a value that does not fit: exit 64"
says err 'expected one of auto, always, never, got "blue"' "says what would"
run config set colour never
exits 64 "a key that is none: exit 64"
run config set color '['
exits 64 "a value that is no YAML: exit 64"
run config set color.x 1
exits 78 "a path through a word: exit 78"
cmp -s want elsewhere.yaml
ok $? "and the file is as it was"
rm "$mine"

EDITOR='cp want' run config edit
exits 0 "config edit runs the editor"
says "$mine" "progress: none" "on the file"
echo 'color: never # mine' >"$mine"
VISUAL=true EDITOR=false run config edit
exits 0 "VISUAL goes before EDITOR"
is "$(cat "$mine")" "color: never # mine" "and a file that is there is not begun anew"
rm "$mine"
EDITOR=true run config edit
says "$mine" "# color: where neither" "a new file lists the keys"
VISUAL=false run config edit
exits 64 "an editor that fails is said"
VISUAL='' EDITOR='cp want' run config edit
says "$mine" "progress: none" "an empty VISUAL leaves it to EDITOR"
ETUDE_CONFIG_DIR="$dir/a  folder's own" EDITOR='cp want' run config edit
is "$code $(grep -c 'progress: none' "$dir/a  folder's own/config.yaml")" "0 1" "any path is one word to it"
rm "$mine"
EDITOR=cat run config edit
is "$(sed -n '1p; /^# color:/p; /^# plugins:/p; /^# ui.plot:/p' out | sed 's/: .*; /: ...; /')" \
    "# Etude's configuration. The keys:
# color: ...; one of auto, always, never
# ui.plot: ...; one of auto, braille, block, ascii
# plugins: ...; a mapping" "of a new file each key has what it may be"
cp "$mine" whole
(
    trap '' XFSZ
    ulimit -f 0
    run config set color never
    exit "$code"
)
is "$? $(ls "$ETUDE_CONFIG_DIR")" "73 config.yaml" "what cannot be written leaves nothing beside the file: exit 73"
cmp -s whole "$mine"
ok $? "and the file as it was"
perl -e 'print "# a remark of 34 bytes, many times\n" x 3000, "color: auto\n# the end\n"' >"$mine"
run config set color never
is "$code $(wc -c <"$mine") $(tail -n 2 "$mine" | tr '\n' ' ')" "0 105023 color: never # the end " \
    "a long file keeps all that is in it"
mkdir bin
printf '#!/bin/sh\necho "$1" >opened\n' >bin/vi
chmod +x bin/vi
VISUAL='' EDITOR='' PATH="$PWD/bin:$PATH" run config edit
[ "$(cat opened)" = "$mine" ]
ok $? "with VISUAL and EDITOR empty config edit opens the file with vi"
cat >bad <<'C'
colour: never
C
EDITOR='cp bad' run config edit
exits 78 "what it wrote is checked: exit 78"
says err "error E1205: $mine:1:1: unknown key 'colour' (did you mean 'color'?)" "with the place"

# What uses it.
run validate r.yaml
exits 78 "a wrong configuration stops other commands: exit 78"
run help
exits 0 "but not help"
run config path
exits 0 "nor config path"
run config set color never
exits 78 "config set will not mend it"
echo 'color: always' >"$mine"
run frobnicate
grep -q "$(printf '\033')" err
is $? 1 "a word that is no command is said before the configuration is read"
run validate nothing.yaml
says err "$(printf '\033[1;31merror')" "color: always holds where no option says"
NO_COLOR=1 run validate nothing.yaml
says err "etude: error" "the environment is stronger"
run validate nothing.yaml --color never
says err "etude: error" "and so is the option"
echo 'progress: json' >"$mine"
run train r.yaml --run_directory runs/a
says out '"ev":"batch"' "progress says how a run is shown"
run train r.yaml --progress none --run_directory runs/b
is "$(grep -c '"ev"' out)" 0 "--progress is stronger"
# shown: how the run was
shown() {
    how=none
    ! grep -q '"ev":"batch"' out || how=json
    ! grep -q ' info train ' err || how=plain
    ! grep -q '^train  Epoch' err || how=bar
    echo $how
}
i=0
while read -r set want options; do
    echo "progress: $set" >"$mine"
    i=$((i + 1))
    # shellcheck disable=SC2086
    run train r.yaml --run_directory runs/shown$i $options
    is "$(tr '\r' '\n' <err >err.lines; mv err.lines err; shown)" "$want" "progress: $set with '$options' is $want"
done <<'T'
json none -q
plain json --json
plain none --json -q
json plain --progress plain -q
tui plain
bar bar
auto plain
T
rm -r runs/shown*
echo 'progress: none' >"$mine"
echo 'ui: {plot: block}' >"$mine"
run explain r.yaml
says out "▀" "ui.plot says what charts are drawn with"
run explain r.yaml --ascii
says out "+- 0 -" "--ascii is stronger"

# Rights.
cat >e.yaml <<'R'
include: [r.yaml]
run_name: "${env:PET}"
R
echo 'env: [PET]' >"$mine"
PET=otter run validate e.yaml
exits 0 "a recipe may read a variable that env: lists"
PET=otter run explain e.yaml --origin
says out "run_name = otter" "and has its value"
echo 'env: [CAT]' >"$mine"
PET=otter run validate e.yaml
exits 65 "not one that it does not"
says err "environment variable PET is not allowed in recipes" "and is told so"
rm "$mine"
mkfifo "$mine"
run config set color never
exits 66 "a file that is none is not read: exit 66"
says err "not a regular file" "and that is said"
rm "$mine"
mkdir .etude
echo 'progress: none' >.etude/config.yaml
run config get progress
is "$(cat out)" none "the folder's own file is read too"
echo 'progress: plain' >"$mine"
run config get progress
is "$(cat out)" none "above the user's"
for right in 'env: [PET]' 'plugins: {x: {path: /x.so, sha256: 00}}'; do
    echo "$right" >.etude/config.yaml
    PET=otter run validate e.yaml
    exits 78 "but may not say ${right%%:*}: exit 78"
    says err "only your own can" "for it comes with the folder"
done
rm -r .etude
echo 'env: [PET]' >"$mine"
chmod 620 "$mine"
PET=otter run validate e.yaml
exits 78 "nor may a file that others can write: exit 78"
says err "must not be group/other writable" "and is told so"
chmod 600 "$mine"

# The allow-list.
digest=0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789abcdef
run config set plugins.hello "{path: /x/hello.so, sha256: $digest}"
exits 0 "a plugin is allowed by config set"
run config get plugins.hello.path
is "$(cat out)" /x/hello.so "and shown"
run config set plugins.hello.path hello.so
exits 64 "its path begins at the root: exit 64"
run config set plugins.hello.sha256 "'12'"
exits 64 "its digest has 64 digits: exit 64"
run config set plugins.other "{path: /x}"
says err "sha256 is missing" "and must be there"
run config set plugins.hello.develop yes
exits 64 "develop is true or false: exit 64"
run config set plugins.other "{path: /x, develop: true}"
exits 0 "where it is true no digest is asked for"
run config set plugins '[]'
says err "expected a mapping from names" "the list is a mapping"

# Of two who set something at once none loses its line. Whoever has the folder locked, which
# a command that comes then has open, is waited for.
printf 'color: auto\n' >"$mine"
perl -e 'open my $f, "<", $ARGV[0] or die; flock $f, 2 or die; open my $m, ">", "held"; close $m;
    select undef, undef, undef, 0.02 while !-e "let_go"' "$ETUDE_CONFIG_DIR" &
holder=$!
until_true '[ -e held ]'
"$etude" config set ui.plot block >out 2>err &
setter=$!
until_true 'ls -l /proc/$setter/fd 2>/dev/null | grep -q " $ETUDE_CONFIG_DIR\$" || [ ! -e /proc/$setter/exe ]'
printf 'color: never\n' >other.yaml && mv other.yaml "$mine"
touch let_go
wait $setter
is "$? $(tr '\n' ' ' <"$mine")" "0 color: never ui: {plot: block} " "one who sets something waits for another who does"
wait $holder

# Other places.
echo 'progress: none' >f.yaml
run --config f.yaml config get progress
is "$(cat out)" none "--config reads another file instead of the user's"
run --config f.yaml config path
is "$(cat out)" f.yaml "and config path names it"
mkfifo pipe.yaml
timeout 60 "$etude" --config pipe.yaml config set color never >out 2>err </dev/null
is $? 66 "config set waits for no pipe: 66"
says err "cannot read pipe.yaml: not a regular file" "which is said"
run --config nothing.yaml validate r.yaml
exits 66 "it must be there: exit 66"
mkdir d.yaml
run --config d.yaml validate r.yaml
exits 78 "and be a file: exit 78"
printf 'color: auto\ncolor: never\n' >f.yaml
run --config f.yaml validate r.yaml
says err "f.yaml:2:1: key 'color' already set at 1:1" "a key twice is an error"
echo '- 1' >f.yaml
run --config f.yaml validate r.yaml
says err "a configuration is a mapping of keys" "a list is none"
run --config f.yaml validate r.yaml --json
says err '"code":"E1203"' "errors are JSON where --json stands"

# ---- a home that is not there ----

(
    unset XDG_STATE_HOME XDG_CACHE_HOME XDG_CONFIG_HOME ETUDE_CONFIG_DIR ETUDE_CACHE_DIR
    export HOME="$dir/nohome/me"
    tiny home.yaml
    "$etude" config set ui.theme mono
    echo "config set: $?"
    "$etude" worker keygen
    echo "keygen: $?"
    "$etude" runs
    "$etude" train home.yaml --progress none --run_directory home-run
    echo "train: $?"
) >out 2>err </dev/null
[ ! -e nohome ]
ok $? "no command makes the home directory"
says out "config set: 73" "what is to be written there cannot be: exit 73"
says out "train: 0" "and a run goes on without it"
mkdir -p nohome/me
HOME="$dir/nohome/me" ETUDE_CONFIG_DIR='' XDG_CONFIG_HOME='' run config set ui.theme mono
exits 0 "in one that is there folders are made"
finish
