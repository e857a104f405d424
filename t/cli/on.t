#!/bin/sh
# `train --on`: a recipe is sent to a worker, and is a run there. The worker is reached by
# an ssh that is none, as another user of this machine with folders of his own.
. "$(dirname "$0")/cli.sh"
export ETUDE_CONFIG_DIR="$dir/config"
mkdir -p there/r there/home bin && chmod 700 there/r
cat >bin/ssh <<R
#!/bin/sh
[ "\$1 \$2 \$3" = "-T -- lab" ] || exit 255
[ ! -e "$dir/broken" ] || { rm "$dir/broken"; exit 255; }
shift 4
cd "$dir/there/home" || exit 1
export ETUDE_CONFIG_DIR="$dir/there/conf" XDG_STATE_HOME="$dir/there/state" \\
    XDG_RUNTIME_DIR="$dir/there/r"
[ ! -e "$dir/cut" ] || exec perl "$dir/cut.pl" "$etude" "\$@"
exec "$etude" "\$@"
R
chmod +x bin/ssh
# Passes WELCOME on, and is gone when the command is RECEIVED: each message has its length
# before it.
cat >cut.pl <<'R'
unlink "$ENV{HOME}/cut";
open my $relay, '-|', @ARGV or die;
sub message { read $relay, my $n, 4; read $relay, my $body, unpack 'V', $n; return $n . $body }
syswrite STDOUT, message();
message();
kill 'KILL', $$;
R
export HOME="$dir"
PATH="$dir/bin:$PATH"
tiny small.yaml
cp small.yaml long.yaml
until_true() {
    i=0
    until eval "$1" || [ $i -gt 600 ]; do
        i=$((i + 1))
        sleep 0.1
    done
}
pids() { sed -n 's/.*"pid": \([0-9]*\).*/\1/p' there/home/runs/*/run.json 2>/dev/null; }
clean() {
    for pid in $(pids); do
        # shellcheck disable=SC2046
        grep -qs "train" "/proc/$pid/cmdline" && kill -9 "$pid" $(family "$pid") 2>/dev/null
    done
    until_true 'rm -rf "$dir" 2>/dev/null'
}
trap clean EXIT
# there STATE: do so many runs of that state stand there?
count() { cat there/home/runs/*/run.json 2>/dev/null | grep -c "\"state\": \"$1\""; }
run worker add lab ssh://lab
exits 0 "a worker"

run train small.yaml --on lab --run_name calm-heron optimizer.lr=0.05 --alg mixup
exits 0 "train --on starts a run there"
says out "calm-heron goes on at lab. etude attach calm-heron@lab" "and says how to see it"
until_true '[ "$(count finished)" = 1 ]'
is "$(count finished)" 1 "it trains there, to its end"
[ ! -e runs ]
ok $? "and nothing is here"
set -- there/home/runs/*
says "$1/recipe.resolved.yaml" "lr: 0.05" "settings are sent along"
says "$1/recipe.resolved.yaml" "mixup" "as are algorithms"
says "$1/run.json" '"recipe": "small"' "it knows what the recipe is called here"
run worker runs lab
says out "calm-heron" "the worker tells of it"
run train long.yaml --on ssh://lab --json max_duration=100000000ba
exits 0 "an address will do"
says out '"worker": "ssh://lab"' "--json has the worker and the name"
name=$(sed -n 's/.*"name": "\([^"]*\)".*/\1/p' out)
until_true 'run stop "$name@lab"; [ $code = 0 ]'
exits 0 "the run can be stopped from here"
until_true '[ "$(count stopped)" = 1 ]'
is "$(count stopped)" 1 "which it is"

# A line that breaks before anything is asked is a worker that is not reached.
touch broken
run train small.yaml --on lab
exits 69 "a worker that does not answer: exit 69"
touch cut
run train small.yaml --on lab --run_name once
exits 0 "one whose answer is lost is asked again"
says out "once goes on at lab" "for what it was asked"
[ ! -e cut ]
ok $? "(the line was cut)"
until_true '[ "$(count finished)" = 2 ]'
is "$(cat there/home/runs/*/run.json | grep -c '"name": "once"')" 1 "and it is one run"
run train nothing.yaml --on lab
exits 66 "a recipe that is not there: exit 66"
run train small.yaml --on lab optimizer.lrr=1
exits 65 "what is wrong is found there"
says err "lab: " "which is said"
says err "unknown key 'optimizer.lrr'" "in the words of train"
sed 's|^train_data:.*|train_data: {name: fashion_mnist, path: /no/such/folder, batch_size: 8}|; /^eval_data/d' small.yaml >gone.yaml
run train gone.yaml --on lab
[ $code = 65 ] || [ $code = 66 ]
ok $? "so are data that are not there"
says err "/no/such/folder" "with their place"
run train small.yaml --on lab:64
exits 69 "GPUs that are not there: exit 69"
says err "lab: 64 GPUs are wanted, and there are " "with how many there are"
run train small.yaml --on lab:2 -n 3
exits 64 "GPUs and ranks that differ"
run train small.yaml --on elsewhere
exits 65 "a worker that nobody knows"
run train small.yaml --on lab:none
exits 64 "a number of GPUs that is none"
head -c 210000 /dev/zero | tr '\0' '#' >large.yaml
run train large.yaml --on lab
exits 64 "a recipe of more than 200 KiB"
for option in "--run_directory x" "--resume x" "--dry-run" "--stdout x" "--world_size 2"; do
    # shellcheck disable=SC2086
    run train small.yaml --on lab $option
    exits 64 "$option does not go with --on"
done
is "$(cat there/home/runs/*/run.json | grep -c '"state"')" 3 "and nothing was started by any of these"

# Where the recipe says it.
echo 'launch: {worker: lab}' >>small.yaml
run train small.yaml
exits 0 "launch.worker of a recipe is as good"
says out "goes on at lab" "as --on"
until_true '[ "$(count finished)" = 3 ]'
is "$(count finished)" 3 "and means nothing to the worker itself"
run train small.yaml --unset launch.worker --quiet
exits 0 "without it the run is here"
[ -e runs ]
ok $? "in its own folder"
run rerun last --on lab --run_name twin
exits 0 "rerun takes --on, too"
says out "twin goes on at lab" "with a name"
finish
