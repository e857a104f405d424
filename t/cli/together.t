#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# eval and predict with several ranks: the samples are shared out, and what they come to
# is that of one, in the order of the data.
. "$(dirname "$0")/cli.sh"
ldd "$etude" 2>/dev/null | grep -q libgloo ||
    ldd "$ET_BUILDDIR/.libs/etude" 2>/dev/null | grep -q libgloo ||
    skip_all "built without Gloo"
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
tiny one.yaml
sed '/^eval_data/d; s/num_unique: [0-9]*/num_unique: 16/' one.yaml >two.yaml
cat >>two.yaml <<'R'
callbacks: {prediction_tracker: {num_samples: 7}}
eval_data:
  - {name: synthetic_images, num_samples: 16, batch_size: 6, workers: 0}
  - {name: synthetic_images, num_samples: 23, batch_size: 6, workers: 0, label: more}
R
run train two.yaml --run_name calm-heron --run_directory runs/there --progress none
exits 0 "a run to predict with"

# Numbers of a file to three digits: a product of fewer rows is rounded elsewhere.
rounded() {
    tr ',' '\n' <"$1" | awk '/^-?[0-9.]+(e-?[0-9]+)?$/ { printf "%.3g\n", $1; next } { print }'
}
run eval calm-heron
exits 0 "eval with one rank"
cp out one.eval
run predict calm-heron more -o one.csv
exits 0 "predict with one rank"
for ranks in 2 3 6; do
    run eval calm-heron -n $ranks
    exits 0 "eval -n $ranks: exit 0"
    is "$(awk '{ printf "%s %.4g\n", $1, $2 }' out)" \
        "$(awk '{ printf "%s %.4g\n", $1, $2 }' one.eval)" "... the same metrics, once"
    run predict calm-heron more -n $ranks -o "many.csv"
    exits 0 "predict -n $ranks: exit 0"
    is "$(cut -d, -f1-3 many.csv)" "$(cut -d, -f1-3 one.csv)" \
        "... the same classes, sample by sample, each once"
    is "$(rounded many.csv)" "$(rounded one.csv)" "... and the same numbers"
    is "$(wc -l <out | tr -d ' ')" 2 "... said by one rank alone"
done
run predict calm-heron -n 2
exits 0 "kept in the run, with pictures"
is "$(head -c 2 runs/there/predictions/eval.ppm)" P6 "... of the worst of all ranks"
run predict calm-heron -n 0 -o no.csv
exits 64 "no rank: exit 64"
says err "expected a number from 1 to 64" "says what may be asked"
run predict calm-heron -n 2 nothing
exits 64 "what one rank refuses all do"


# What is wrong for all ranks is said once, with its hint; what is for one, by that one.
run eval calm-heron -n 3 eval_data.0.batch_size=7
exits 65 "a batch that ranks cannot share: exit 65"
is "$(grep -c "batch 7 is not divisible by 3 ranks" err)" 1 "is said once, not by each rank"
is "$(wc -l <err | tr -d ' ')" 1 "and nothing else is"
run predict calm-heron -n 3 eval_data.0.batch_size=7 -o no.csv --json
is "$(grep -c "batch 7 is not divisible by 3 ranks" err)" 1 "so it is by predict, as JSON"

run train two.yaml -n 2 train_data.batch_size=6 sync_batch_norm=true grad_accum=2
exits 65 "statistics of all ranks exclude microbatches"
says err "sync_batch_norm excludes microbatches where there are 2 ranks" "says so"

# A rank that a signal ends: whichever it is, the command says so, and ends.
sed '/^eval_data/,$d' two.yaml >endless.yaml
echo 'eval_data: {name: synthetic_images, num_samples: 30000000, batch_size: 3}' >>endless.yaml
ranks_of() {
    cat "/proc/$1/task/$1/children" 2>/dev/null
}
for rank in 0 2; do
    "$etude" eval endless.yaml -n 3 >out 2>err &
    pid=$!
    until_true '[ "$(ranks_of $pid | wc -w)" -eq 3 ]'
    ranks=$(ranks_of $pid)
    kill -9 "$(echo $ranks | cut -d " " -f $((rank + 1)))"
    wait $pid
    code=$?
    is "$code $(tail -n 1 err | grep -c "signal 9 (Killed) ended rank $rank")" "1 1" \
        "rank $rank was killed: exit 1, and a line that says so"
    until_true '! kill -0 $ranks 2>/dev/null'
    ok $? "... with which the others end"
done

# The only port there is belongs to somebody: ranks have no place to meet.
# shellcheck disable=SC2016
alone() {
    unshare -rn sh -c 'echo 40000 40000 >/proc/sys/net/ipv4/ip_local_port_range && exec "$@"' alone \
        perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(Listen => 1, LocalPort => 40000) or die;
            system(@ARGV) >= 0 or die; exit $? >> 8' -- "$@" >out 2>err </dev/null
    code=$?
}
if alone true && [ $code -eq 0 ]; then
    alone "$etude" eval calm-heron -n 2
    exits 1 "no place for ranks to meet: exit 1"
    says err "no place for ranks to meet: Address already in use" "... and why"
    is "$(wc -c <out | tr -d ' ')" 0 "... and no metric"
else
    for name in exit reason metrics; do skip "no network of its own here: $name"; done
fi

# What callbacks hold of an evaluation.
track() {
    sed 's/"p":.*//' "$1/predictions/eval.track.jsonl" | tail -n 1
}
for ranks in 1 2 3; do
    run train two.yaml train_data.batch_size=6 -n $ranks --run_directory runs/r$ranks --progress none
    exits 0 "train -n $ranks with a tracker"
    is "$(track runs/r$ranks)" "$(track runs/r1)" "... which has the same samples"
done

finish
