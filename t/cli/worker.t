#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `etude worker`: keys are made, pinned and compared; a host is served, here and by ssh.
. "$(dirname "$0")/cli.sh"
export ETUDE_CONFIG_DIR="$dir/config" XDG_RUNTIME_DIR="$dir/r"
mkdir -p r

run worker keygen
exits 0 "keygen makes a key"
is "$(stat -c %a config/curve.key)" 600 "for its owner alone"
says out "fingerprint  SHA256:" "and shows what people compare"
says out "was made: its second half is secret" "and says that it did"
says out "as good as a login" "and says what an operator's key is worth"
secret=$(sed -n 's/^secret //p' config/curve.key)
grep -qF -e "$secret" out
is "$?" 1 "the secret is not shown"
run worker keygen --json
exits 0 "a second time it stays"
says out '"made": false' "and that is said"
tr -d ' \n' <out >json
run worker keygen
says out "config/curve.key is there" "also in words"
print=$(sed -n 's/^fingerprint *//p' out)
is "$(cat json)" "{\"path\":\"$dir/config/curve.key\",\"public\":\"$(sed -n 's/^public //p' config/curve.key)\",\"fingerprint\":\"$print\",\"made\":false}" \
    "as JSON it is the same key"
run worker keygen --json --key new.key
says out '"made": true' "as is one that is new"
key=$(sed -n 's/^public //p' config/curve.key)
run worker key --json
is "$(tr -d ' \n' <out)" "{\"path\":\"$dir/config/curve.key\",\"public\":\"$key\",\"fingerprint\":\"$print\"}" "key has it, too"
run worker list --key x
exits 64 "--key is none of list's"
run worker add lab-a
exits 64 "add takes a name and an address at least"
run worker test
exits 64 "test takes a worker"
run worker test local local
exits 64 "and no two"
run worker add lab-a --dump-screen 80x24
exits 64 "add has no screen"
says err "--dump-screen does not apply to 'worker add'" "which is said"
run worker allow "$key"
exits 77 "a machine lets no key in that is its own"
says err "that is this machine's own key" "which is said"
test ! -e config/authorized_keys
ok $? "and no list is made"
run worker keygen --key other.key
exits 0 "--key is another file"
other=$(sed -n 's/^public //p' other.key)

day=$(date +%F)
run worker add lab-a tcp://127.0.0.1:7017 "$key"
exits 0 "a worker is added with its key"
says out "pinned to SHA256:" "which is pinned"
grep -qE "^lab-a: .*since: \"?($day|$(date +%F))" config/workers.yaml
ok $? "and the day is kept"
run worker add lab-a tcp://127.0.0.1:7017 "$other"
exits 77 "another key for it is refused"
is "$(grep -o 'SHA256:' err | wc -l | tr -d ' ')" 2 "and both are shown"
run worker add lab-a tcp://127.0.0.1:7018 config/curve.key
exits 0 "the same key, as a file: another address is fine"
printf 'public %s\r\nsecret x\r\n' "$key" >dos.key
run worker add lab-a tcp://127.0.0.1:7017 dos.key
exits 0 "also one whose lines end as DOS ends them"
run worker add lab-q 'ssh://a"b'
exits 64 "an address that would spoil the file is none"
run worker add lab-q ssh://host "$key"
exits 64 "nor does ssh:// take a key"
says err "ssh knows its own" "which is said"
run worker list lab-q
exits 65 "one that is not in the list is not listed: exit 65"
run worker list lab-a
is "$(wc -l <out) $(cut -d' ' -f1 out)" "1 lab-a" "list WORKER shows that one"
grep -q 'unreachable' out
ok $? "with what it is worth"
run worker list local
is "$(wc -l <out) $(cut -d' ' -f1 out)" "1 local" "or this machine"
run worker list lab-a --json
says out '"state": "unreachable"' "as JSON, too"
grep -q '"why": "[^"]' out
ok $? "with the reason"
# Keys have all sorts of characters, and not all are drawn by this program.
for odd in 'K=9.-:+=^!/*?&<>()[]{}@%$0#0000000000000' '-9.-:+=^!/*?&<>()[]{}@%$00#0000000000000'; do
    run worker add lab-odd tcp://127.0.0.1:7020 -- "$odd"
    exits 0 "a key that begins as '$(printf %.2s "$odd")' is one"
    says config/workers.yaml "$odd" "and is pinned as it is"
    run worker remove lab-odd
done
run worker add lab-odd tcp://127.0.0.1:7020 'K=9.-:+=^!/*?&<>()[]{}@%$0#0000000000000'
exits 0 "nor is a key taken for a setting"
run worker remove lab-odd
run worker add lab-b tcp://127.0.0.1:7017
exits 77 "TCP without a key is refused"
run worker add lab-b http://x
exits 64 "another address than tcp:// or ssh:// is none"
run worker add lab-b ssh://-oProxyCommand=x
exits 0 "a name is taken as it is"
run worker test lab-b
exits 64 "but a host that would be an option of ssh is none"
run worker remove lab-b
exits 0 "it is removed"
is "$(grep -c lab-b config/workers.yaml)" 0 "from the file"
run worker remove lab-b
exits 65 "once"
run worker test lab-a
exits 69 "a worker that does not answer: exit 69"
run worker list
exits 0 "the list has all"
says out "unreachable" "and what each is worth now"
is "$(grep '^local' out | tr -s ' ')" \
    "local ipc ready runs here need no worker; \`etude worker serve\` lets others in" \
    "of this machine what the screen says"
run worker list --listen tcp://x
exits 64 "--listen is for serve"
run worker
exits 64 "without a word: exit 64"
for port in 65536 70000 -1 0x10 99999999999 x ''; do
    run worker serve --listen "tcp://127.0.0.1:$port"
    exits 64 "port '$port' is none: 64"
done
says err 'error E5003: tcp://127.0.0.1:: a port is a number from 0 to 65535' "which is said"
run worker add far tcp://127.0.0.1:70000 "$(printf 'x%.0s' $(seq 40))"
exits 64 "nor is one to connect to: 64"
run worker serve --listen tcp://127.0.0.1:0
exits 77 "serve refuses TCP without authorized_keys"
says err "hint: a line in it lets a key in" "and says what belongs there"
run worker serve --listen tcp://127.0.0.1:0 --key none.key
exits 77 "and without a key of its own"
says err "hint: etude worker keygen makes it" "with what makes one"

"$etude" worker serve >served 2>&1 &
worker=$!
until_true 'grep -qs "listening at" served'
says served "listening at $dir/r/etude/_worker.sock" "serve listens for this user"
run worker test local
exits 0 "and answers"
says out "role operator" "to its owner as an operator"
# (One that does not answer within five seconds is listed as it is, too.)
until_true 'run worker list --json; grep -q "\"state\": \"ready\"" out'
says out '"state": "ready"' "the list knows it"
run worker test local
says out " $(getconf _NPROCESSORS_ONLN) cores " "it says how many cores it has,"
says out "  up $(($(cut -d. -f1 /proc/uptime) / 86400))d " "for how many days it is up,"
run worker test local --json
up=$(sed -n 's/.*"uptime_s": \([0-9]*\).*/\1/p' out)
now=$(cut -d. -f1 /proc/uptime)
[ "$up" -le $((now + 1)) ] && [ "$up" -gt $((now - 60)) ]
ok $? "as JSON in seconds,"
is "$(grep -o '"disk_free": [0-9]*\|"uptime_s": [0-9]*' out | cut -d' ' -f2 | sort -u | wc -l)" 2 \
    "beside what is free of its disk,"
grep -q "\"cores\": $(getconf _NPROCESSORS_ONLN)," out
ok $? "and cores"
version=$("$etude" --version | sed -n '1s/^etude \([^ ,]*\).*/\1/p')
cores=$(getconf _NPROCESSORS_ONLN)
is "$(tr -d ' \n' <out | sed -E 's/"(gpus|rtt_ms|uptime_s|disk_free|bandwidth)":[0-9.e+-]+/"\1":_/g; s/"(driver)":"[^"]*"/"\1":_/; s/"gpu":.*//')" \
    "{\"worker\":\"local\",\"host\":\"$(hostname)\",\"version\":\"$version\",\"role\":\"operator\",\"cores\":$cores,\"gpus\":_,\"rtt_ms\":_,\"uptime_s\":_,\"disk_free\":_,\"runs\":0,\"run\":\"\",\"driver\":_,\"bandwidth\":_," \
    "and who it is"
run worker test local
is "$(sed -n '1s/  [0-9]* GPUs .*//p' out)" "local  $(hostname)  etude $version  role operator  $cores cores" "in words, too"
is "$(sed -n '2s/.*from there  //p' out)" "0 runs go on" "and how many runs there are"
until_true 'run worker list --json; grep -q "\"state\": \"ready\"" out'
is "$(tr -d ' \n' <out | sed -E 's/"(gpus|rtt_ms)":[0-9.e+-]+/"\1":_/g; s/\},\{"name":"lab-a".*//; s/^\[//')" \
    "{\"name\":\"local\",\"address\":\"ipc\",\"state\":\"ready\",\"why\":\"\",\"host\":\"$(hostname)\",\"version\":\"$version\",\"role\":\"operator\",\"cores\":$cores,\"gpus\":_,\"rtt_ms\":_" \
    "the list has all of it"
is "$(tr -d ' \n' <out | sed -E 's/.*(\{"name":"lab-a",)/\1/; s/"why":"[^"]+"/"why":_/; s/\}.*//')" \
    '{"name":"lab-a","address":"tcp://127.0.0.1:7017","state":"unreachable","why":_,"host":"","version":"","role":"","cores":0,"gpus":0,"rtt_ms":0.0' \
    "and nothing of one that does not answer but why"
kill "$worker"
wait "$worker"
is "$?" 0 "it ends with 0"

# Somebody else's machine, by an ssh that is none.
mkdir bin
cat >bin/ssh <<R
#!/bin/sh
[ "\$1 \$2 \$3" = "-T -- lab-c" ] || exit 255
shift 3
shift
exec "$etude" "\$@"
R
chmod +x bin/ssh
PATH="$dir/bin:$PATH"
run worker add lab-c ssh://lab-c
exits 0 "a host by ssh needs no key"
run worker test lab-c
exits 0 "and no worker there"
says out "role operator" "who may log in is an operator"
# The worker's key, asked for by ssh.
cat >bin/ssh <<R
#!/bin/sh
[ "\$1 \$2 \$3" = "-T -- ann@lab-c" ] || exit 255
shift 4
echo "Welcome to lab-c!"
ETUDE_CONFIG_DIR="\$THERE" exec "$etude" "\$@"
R
export THERE="$dir/there"
run worker add lab-e tcp://127.0.0.1:7019 ssh://ann@lab-c
exits 77 "a host without a key has none to tell"
says err "keygen makes one there" "and it is said how to make it"
ETUDE_CONFIG_DIR="$THERE" "$etude" worker keygen >there.out
run worker add lab-e tcp://127.0.0.1:7019 ssh://ann@lab-c
exits 0 "the key of a worker is asked for by ssh"
says out "pinned to $(sed -n 's/^fingerprint *//p' there.out)" "and pinned, with its fingerprint"
says config/workers.yaml "$(sed -n 's/^public key *//p' there.out)" "as that host has it"
rm -r there
ETUDE_CONFIG_DIR="$THERE" "$etude" worker keygen >there.out
run worker add lab-e tcp://127.0.0.1:7019 ssh://ann@lab-c
exits 77 "one that is another now is refused"
is "$(grep -o 'SHA256:' err | wc -l | tr -d ' ')" 2 "with both shown"
run worker add lab-f tcp://127.0.0.1:7019 ssh://-oProxyCommand=x
exits 64 "no option of ssh is a host"
run worker add lab-f tcp://127.0.0.1:7019 ssh://nowhere
exits 69 "one that ssh does not reach: exit 69"
run worker key
exits 0 "key prints this user's"
is "$(cat out)" "$key" "its public half, and nothing else"
run worker key --key none.key
exits 77 "without one: exit 77"


# Pairing: one command on each side. (In folders of their own.)
mine=$(ETUDE_CONFIG_DIR="$dir/laptop" "$etude" worker keygen | sed -n 's/^public key *//p')
host() { ETUDE_CONFIG_DIR="$dir/host/new" "$etude" worker "$@" >out 2>err; }
(umask 0 && host allow "$mine")
is $? 0 "a host lets a key in, in a folder that there was not"
is "$(stat -c %a "$dir/host/new/authorized_keys")" 600 "in a file that others cannot read, whatever the umask"
is "$(cut -d' ' -f1,2 "$dir/host/new/authorized_keys")" "viewer $mine" "as a viewer"
says out "etude worker add $(hostname) tcp://ADDRESS:PORT '$(sed -n 's/^public //p' "$dir/host/new/curve.key")'" \
    "and says what the other side is to type, with the host's own key"
host allow "$mine" operator "ann's laptop"
says out 'is let in as operator, was viewer' "once more, and the role is another"
is "$(grep -cF "$mine" "$dir/host/new/authorized_keys")" 1 "the line is replaced"
grep -q "^operator .* ann's laptop$" "$dir/host/new/authorized_keys"
ok $? "with whose it is"
printf '# people\nviewer %s bob' "$key" >"$dir/host/new/authorized_keys"
host allow "$mine"
is "$(wc -l <"$dir/host/new/authorized_keys" | tr -d ' ')" 3 "other lines stay, also a last one without its end"
grep -qxF "viewer $key bob" "$dir/host/new/authorized_keys"
ok $? "as they were"
host allow "$dir/laptop/curve.key"
is $? 0 "a file has the key as well"
host allow "$mine" operator --json
is "$(tr -d ' \n' <out)" "{\"path\":\"$dir/host/new/authorized_keys\",\"key\":\"$mine\",\"fingerprint\":\"$(ETUDE_CONFIG_DIR="$dir/laptop" "$etude" worker keygen | sed -n 's/^fingerprint *//p')\",\"role\":\"operator\",\"was\":\"viewer\"}" \
    "--json says whose key it is, the role, and which it was"
host allow "$mine" viewer "a#b"
is $? 64 "whose key it is has no # in it: exit 64"
host allow "$mine" viewer "$(printf '%064d' 0)"
is $? 64 "and no 64 characters"
host allow "$mine" viewer "$(printf '%063d' 0)"
is $? 0 "63 have room"
is "$(sed -n '$s/.* //p' "$dir/host/new/authorized_keys")" "$(printf '%063d' 0)" "and all of them are written"
host allow "$mine" root
is $? 64 "another role is refused: exit 64"
host allow 12345
is $? 77 "so is what is no key: exit 77"
says err "worker keygen" "and it is said where one is had"
host allow "$(sed -n 's/^public //p' "$dir/host/new/curve.key")"
is $? 77 "and the host's own"
echo 'viewer nonsense' >"$dir/host/new/authorized_keys"
host allow "$mine"
is $? 77 "a file that is wrong is not written over"
is "$(cat "$dir/host/new/authorized_keys")" 'viewer nonsense' "it stays"
# A path that is as long as a key is, and of its characters.
long=$dir/$(printf '%0*d' $((39 - ${#dir})) 0)
[ ${#long} -eq 40 ] && cp "$dir/laptop/curve.key" "$long"
run worker add forty tcp://127.0.0.1:7020 "$long"
says out "$(ETUDE_CONFIG_DIR="$dir/laptop" "$etude" worker keygen | sed -n 's/^fingerprint *//p')" \
    "a path of 40 characters is a path"

run worker test ssh://lab-d
exits 69 "one that ssh does not reach: exit 69"
finish
