#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `etude train` as the ranks of somebody else's launcher: processes with torchrun's
# environment, here two of them.
. "$(dirname "$0")/cli.sh"
if ! ldd "$etude" 2>/dev/null | grep -q libgloo && ! ldd "$ET_BUILDDIR/.libs/etude" 2>/dev/null | grep -q libgloo; then
    tiny r.yaml
    for more in '' --dry-run; do
        run train r.yaml -n 2 --run_directory two $more
        exits 69 "built without Gloo, -n 2 $more: exit 69"
        is "$(cat err)" "etude: error E1105: 2 ranks (--nproc): this program was built without Gloo, and trains with one" \
            "in one line"
    done
    [ ! -e two ]
    ok $? "before any directory is made"
    echo "ok $((n += 1)) # SKIP the rest: built without Gloo"
    finish
fi
cat >r.yaml <<'R'
max_duration: 24ba
seed: 3
model: {name: mlp, hidden: 16, layers: 1}
train_data: {name: synthetic_images, batch_size: 8, num_samples: 60, workers: 2}
eval_data: {name: synthetic_images, num_samples: 15, workers: 0}
eval_interval: 1ep
optimizer: {name: sgd, lr: 0.1, momentum: 0.9}
algorithms: {ema: {half_life: 4ba}}
callbacks: [lr_monitor, early_stopper: {monitor: CrossEntropy, dataloader_label: eval, patience: 9ep}]
R
# A port that nobody has, and that the system gives to nobody who asks for any: it is
# bound some time after it is chosen.
port() {
    perl -MIO::Socket::INET -e 'do { $p = 15000 + int rand 15000 } until
        IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1:$p"); print $p'
}
# rank R ARGS...: begins one, in the background; its output in out.R and err.R
rank() {
    r=$1
    shift
    RANK=$r LOCAL_RANK=$r WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$p \
        "$etude" "$@" >"out.$r" 2>"err.$r" </dev/null &
    eval "pid$r=$!"
}
# two ARGS...: both, to their ends: code0 and code1
two() {
    p=$(port)
    rank 0 "$@"
    rank 1 "$@"
    wait "$pid0"
    code0=$?
    wait "$pid1"
    code1=$?
    cat out.0 out.1 >out
    cat err.0 err.1 >err
}
# losses RUN: "batch loss" of every batch, the last line of each
losses() {
    sed -nE 's|.*"ev":"batch".*"ba":([0-9]+).*"loss/train/total":([^,}]*).*|\1 \2|p' "$1/metrics.jsonl" |
        awk '{ v[$1] = $2 } END { for (i = 1; i in v; i++) print i, v[i] }'
}
# evals RUN
evals() {
    sed -nE 's|.*"ev":"eval".*"ba":([0-9]+).*"metrics/eval/Accuracy":([^,}]*).*|\1 \2|p' "$1/metrics.jsonl"
}
# near: do the lines of a and b agree to 1e-5 of their size?
near() {
    paste a b | awk '{ d = $2 - $4; if (d < 0) d = -d; if ($1 != $3 || d > 1e-5 * ($4 > 1 ? $4 : 1)) bad = 1 }
        END { exit bad || NR == 0 }'
}

run train r.yaml --run_directory one
exits 0 "one rank"
run train r.yaml --run_directory said launch.nproc=2
exits 0 "launch.nproc of a recipe is as good as -n"
is "$(cd said/logs && echo *)" "rank0.txt rank1.txt" "two ranks"
run train r.yaml --run_directory said1 launch.nproc=2 -n 1
is "$(cd said1/logs && echo *)" "rank0.txt" "which is stronger"
LOCAL_WORLD_SIZE=1 "$etude" train r.yaml --run_directory said2 launch.nproc=2 >out 2>err </dev/null
is "$? $(cd said2/logs && echo *)" "0 rank0.txt rank1.txt" "and than LOCAL_WORLD_SIZE, as the recipe is"
LOCAL_WORLD_SIZE=2 "$etude" train r.yaml --run_directory said3 >out 2>err </dev/null
is "$? $(cd said3/logs && echo *)" "0 rank0.txt rank1.txt" "which says it where neither does"
two train r.yaml --run_directory two
is "$code0 $code1" "0 0" "two ranks end well"
losses one >a
losses two >b
near
ok $? "they have the losses of one"
evals one >a
evals two >b
near
ok $? "and the evaluations, of 15 samples"
is "$(ls two)" "$(ls one | grep -v control.log)" "the run directory is that of one rank: only rank 0 writes"
is "$(wc -l <out.1) $(wc -c <err.1)" "0 0" "rank 1 says nothing"
is "$(losses two | wc -l)" 24 "each batch is told once"
two train r.yaml --run_directory again
is "$(losses again)" "$(losses two)" "the same again, to the bit"
sed -i '/^seed/d' r.yaml
two train r.yaml --run_directory drawn
is "$code0 $code1" "0 0" "a seed that nobody gives is rank 0's for all"
sed -i '1i seed: 3' r.yaml

# ---- stopped, and on ----

two train r.yaml --run_directory part max_duration=10ba
two train --resume part max_duration=24ba
is "$code0 $code1" "0 0" "two ranks go on"
is "$(losses part)" "$(losses two)" "to the losses of the run that nobody stopped"
run train --resume part max_duration=30ba
exits 65 "one rank does not go on from what two have saved"
says err 'saved with 2 ranks, started with 1: use -n 2' "in one line"

# ---- a signal to one of them ----

p=$(port)
rank 0 train r.yaml --run_directory stopped max_duration=100000000ba
rank 1 train r.yaml --run_directory stopped max_duration=100000000ba
until_true '[ -f stopped/metrics.jsonl ] && [ "$(wc -l <stopped/metrics.jsonl)" -gt 20 ]'
kill -TERM "$pid1"
wait "$pid0"
code0=$?
wait "$pid1"
code1=$?
cat out.0 out.1 >out
cat err.0 err.1 >err
is "$code0 $code1" "75 75" "a signal to rank 1 stops and saves both"
says out 'preempted after' "and rank 0 says after which batch"
says err 'as another rank was, and saved' "and that the signal was another's"
is "$(ls stopped/checkpoints | tail -1)" \
    "step-$(printf %012d "$(sed -nE 's/.*preempted after ([0-9]+) batches.*/\1/p' out)")" \
    "whose checkpoint is there"

# ---- one of them dies ----

p=$(port)
rank 0 train r.yaml --run_directory dead max_duration=100000000ba
rank 1 train r.yaml --run_directory dead max_duration=100000000ba
until_true '[ -f dead/metrics.jsonl ] && [ "$(wc -l <dead/metrics.jsonl)" -gt 20 ]'
kill -KILL "$pid1"
wait "$pid0"
code0=$?
wait "$pid1" 2>/dev/null
cp out.0 out
cp err.0 err
is "$code0" 1 "rank 1 is killed: rank 0 ends with 1"
says err 'rank 1 is gone' "and names it"

# ---- names with the number of ranks ----

run train r.yaml -n 2 --run_directory named 'checkpoint.name=w{world_size}' \
    'loggers=[file: {filename: "of{local_world_size}.txt"}]' 'callbacks=[weights_saver: {name: "u{world_size}"}]'
is "$code" 0 "a run of two ranks, whose number is in names"
[ "$(grep -h '"label"' named/checkpoints/*/MANIFEST | sort -u)" = '  "label": "w2",' ]
ok $? "that of a checkpoint has it"
[ -s named/of2.txt ] && [ -s named/weights/u2.safetensors ]
ok $? "and those of a log and of saved weights"

# ---- what does not fit ----

p=$(port)
two train r.yaml train_data.batch_size=9
is "$code0 $code1" "65 65" "a batch that two ranks cannot share: exit 65"
says err 'not divisible by 2 ranks' "in one line"
RANK=0 LOCAL_RANK=0 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 MASTER_PORT=$p "$etude" train r.yaml >out 2>err
is $? 69 "ranks on other machines: exit 69"
RANK=2 LOCAL_RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=$p "$etude" train r.yaml >out 2>err
is $? 64 "RANK=2 of 2: exit 64"
p=$(port)
ETUDE_RANK_TIMEOUT=1 RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=$p "$etude" train r.yaml >out 2>err
is $? 1 "a rank that finds no other: exit 1"
says err 'found no rank 0' "in one line"
finish
