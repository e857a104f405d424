#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `etude launch`: a program of one's own as several ranks.
. "$(dirname "$0")/cli.sh"
if ! ldd "$etude" 2>/dev/null | grep -q libgloo && ! ldd "$ET_BUILDDIR/.libs/etude" 2>/dev/null | grep -q libgloo; then
    run launch -n 2 true
    exits 69 'built without Gloo, -n 2: exit 69'
    echo "ok $((n += 1)) # SKIP the rest: built without Gloo"
    finish
fi
unset ETUDE_RANK_SECRET ETUDE_RANK_TIMEOUT ETUDE_RANK_LISTENER
# says TEXT NAME: it is in the last run's errors
says() {
    grep -qF -- "$1" err
    ok $? "$2"
}
run launch
exits 64 'without a program: exit 64'
says 'no program is named' 'and one line says so'
run launch -n 2 ./nothing-here
exits 66 'a program that is not there: exit 66'
says 'cannot run ./nothing-here: No such file' 'and one line says so'
run launch -n 0 true
exits 64 'no ranks at all: exit 64'
run launch -n 2 --timeout soon true
exits 64 'a timeout that is none: exit 64'
run launch --master_port 65536 true
exits 64 'a port that is none: exit 64'
says "--master_port: expected a port <= 65535, got '65536'" 'and who said it'
MASTER_PORT=70000 run launch true
exits 64 'so is one of the environment'
run launch --master_port 65535 true
exits 0 'the last port is one'
run launch --run_name x true
exits 64 'options of train are not for it'

cat >env.sh <<'S'
echo "$RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $NODE_RANK ${MASTER_ADDR} ${#ETUDE_RANK_SECRET} ${MASTER_PORT:+port} ${OMP_NUM_THREADS:+threads} ${ETUDE_RANK_LISTENER:+listens} $ETUDE_RANK_TIMEOUT [$*]"
S
env -u OMP_NUM_THREADS "$etude" launch -n 3 --timeout 90s sh env.sh -n 7 --json a=b -- x >out 2>err
ok $? 'three ranks end well'
sort out >sorted
is "$(cat sorted)" '0/3 0/3 0 127.0.0.1 64 port threads listens 90 [-n 7 --json a=b -- x]
1/3 1/3 0 127.0.0.1 64 port threads  90 [-n 7 --json a=b -- x]
2/3 2/3 0 127.0.0.1 64 port threads  90 [-n 7 --json a=b -- x]' \
    'each knows which one it is; what follows the program is its own'
run launch sh -c 'echo alone $RANK/$WORLD_SIZE'
exits 0 'without -n there is one rank'
is "$(cat out)" 'alone 0/1' 'which knows that'

# ---- ends ----

run launch -n 3 sh -c 'case $RANK in 1) exit 7 ;; esac'
exits 7 'the exit code is that of the rank that failed'
says 'rank 1 of sh: exit code 7' 'and one line says which'
run launch -n 2 sh -c 'case $RANK in 1) kill -9 $$ ;; esac'
exits 137 'of one that a signal ended it is 128 and the signal'
says 'rank 1 of sh: ended by signal 9' 'which is said'
start=$(date +%s)
run launch -n 2 sh -c 'case $RANK in 1) exit 3 ;; esac; exec sleep 60'
took=$(($(date +%s) - start))
exits 3 'a rank that does not notice is ended'
says 'others did not end by themselves' 'and that is said'
[ "$took" -ge 9 ] && [ "$took" -lt 40 ]
ok $? "ten seconds after the other has failed ($took s)"

cat >stop.sh <<'S'
trap 'echo stopped $RANK >>stops; exit 0' TERM
echo $$ >>ready
while :; do sleep 0.1; done
S
"$etude" launch -n 2 sh stop.sh >out 2>err &
pid=$!
for i in $(seq 200); do
    [ -f ready ] && [ "$(wc -l <ready)" = 2 ] && break
    sleep 0.1
done
kill -TERM $pid
wait $pid
is $? 0 'SIGTERM goes to all ranks, which may end well'
is "$(sort stops | tr '\n' ' ')" 'stopped 0 stopped 1 ' 'each has had it'

# ---- a program of the library's ----

dist=$ET_BUILDDIR/examples/dist
for world in 1 2 3; do
    "$etude" launch -n $world "$dist" >loss.$world 2>err
    ok $? "examples/dist trains with $world ranks to the same weights"
    sed 's/^/# /' loss.$world err
done
"$dist" >loss.0 2>err
ok $? 'and without a launcher'
cmp -s loss.0 loss.1
ok $? 'which is what one rank does'
for world in 2 3; do
    paste loss.1 loss.$world | awk '{ d = $7 - $14; if (d < 0) d = -d; if (d > m) m = d; k++ }
        END { print "# the losses differ by " m + 0; exit !(k == 8 && m <= 2e-6) }'
    ok $? "the losses of $world ranks are those of one, to 2e-6"
done
cat >dies.sh <<'S'
[ "$RANK" = 1 ] && exit 5
exec "$1"
S
start=$(date +%s)
run launch -n 3 --timeout 5s sh dies.sh "$dist"
took=$(($(date +%s) - start))
exits 5 'where a rank never comes, the launcher has its exit code'
grep -q 'dist: rank 0: .*did not reach the other 2' err
ok $? 'the others say that they have waited for it'
[ "$took" -lt 20 ]
ok $? "within the timeout ($took s)"
finish
