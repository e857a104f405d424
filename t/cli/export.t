#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# etude export: a run for other programs.
. "$(dirname "$0")/cli.sh"
tiny r.yaml
run train r.yaml --run_directory here --run_name calm-heron loggers='{tensorboard: }' eval_interval=1ba

# without_time FILE: lines of JSON without their first key
without_time() { sed -E 's/^\{"t":[0-9.]+,/{/' "$1"; }

run export here --to jsonl
exits 0 "export: exit 0"
cp out lines
without_time lines >got
without_time here/metrics.jsonl >want
is "$(cat got)" "$(cat want)" "--to jsonl writes the lines of metrics.jsonl"
run export here --to csv --metrics accuracy -o rows.csv
is "$(cut -d, -f2,4,6 rows.csv | sed -n '1,4p' | tr '\n' ' ')" \
    "ev,ba,name batch,1,metrics/train/Accuracy eval,1,metrics/eval/Accuracy batch,2,metrics/train/Accuracy " \
    "--to csv a row per number, --metrics those wanted in any case"
is "$(cat out)" "" "-o: to that file, and nothing is printed"
run export here --to svg
is "$(head -c 5 out) $(grep -c 'class="h"' out)" "<svg  3" "--to svg a chart of loss, accuracy and cross entropy"
says out ">calm-heron</text>" "under the run's name"
run export here --to tensorboard -o elsewhere
is "$(cat out) $(ls elsewhere | grep -c tfevents)" "elsewhere 1" "--to tensorboard a folder"
run export here --to tensorboard --json -o more
says out '"path": "more"' "--json says where"
run export here --to tensorboard
exits 73 "where the run's own logger wrote: exit 73"
says err "here/tb has files of events already" "because the run would be there twice"
mkdir runs && mv here runs/there
run export calm-heron --to csv
exits 0 "a run in runs/ by its name"
run export last --to csv
exits 0 "the last one without it"

for format in wandb prometheus; do
    run export runs/there --to $format
    exits 64 "--to $format: exit 64"
    says err "expected tensorboard, jsonl, csv, svg or onnx, got '$format'" "with the formats there are"
    is "$(wc -l <err)" 1 "on one line"
done
run export runs/there
exits 64 "without --to: exit 64"
run export --to csv
exits 64 "without a run: exit 64"
run export nowhere --to csv
exits 66 "a run that is not there: exit 66"
run export runs/there --to csv --metrics '('
exits 64 "no regular expression: exit 64"
run export runs/there --to svg --metrics nothing
exits 65 "no such numbers: exit 65"
run export runs/there --to csv -o no/such/place
exits 73 "a place that is none: exit 73"
ln -s /dev/full full.csv
run export runs/there --to csv -o full.csv
exits 73 "a device that takes no more: exit 73"
[ -L full.csv ]
ok $? "is not taken away"
(
    trap '' XFSZ
    ulimit -f 1
    run export runs/there --to csv -o half.csv
    exit "$code"
)
is "$? $(ls half.csv 2>/dev/null)" "73 " "half a file is not left: exit 73"
"$etude" export runs/there --to csv >/dev/full 2>err
is $? 73 "nor is it a success to print half: exit 73"
run export runs/there --to tensorboard --quiet -o quiet
is "$code $(cat out) $(ls quiet | grep -c tfevents)" "0  1" "--quiet says nothing of the folder"
rm -r runs/there/tb
run export runs/there --to tensorboard
is "$code $(cat out) $(ls runs/there/tb | grep -c tfevents)" "0 $dir/runs/there/tb 1" "without -o it is tb/ of the run"
printf 'no log' >runs/there/events.log
run export runs/there --to csv -o broken.csv
exits 65 "a log that is none: exit 65"
ls broken.csv >/dev/null 2>&1
is $? 2 "and leaves no half of a file"
run export runs/there --to tensorboard -o broken
exits 65 "nor does TensorBoard have anything of it: exit 65"
finish
