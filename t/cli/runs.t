#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs, looked at afterwards: runs, show, compare, logs, annotate.
. "$(dirname "$0")/cli.sh"
tiny r.yaml

run runs
exits 0 "no runs: exit 0"
says out "etude train" "and how to make the first"
run show last
exits 66 "there is no last run then: exit 66"

run train r.yaml --quiet --run_name calm-heron max_duration=8ba
exits 0 "a run"
run train r.yaml --quiet --run_name brisk-otter --run_directory else/where optimizer.lr=0.3
exits 0 "and another, elsewhere"

run runs
exits 0 "runs lists them"
says out "+ calm-heron" "with a sign for how they ended"
says out "brisk-otter" "wherever they are"
says out "8/8ba" "and how far they came"
is "$(awk 'length > 80' out | wc -l)" 0 "in 80 columns"
run runs 'optimizer.lr>.2'
is "$(grep -c brisk-otter out):$(grep -c calm-heron out)" 1:0 "a filter leaves some out"
run runs optimizer.lr=0.3
is "$(grep -c brisk-otter out):$(grep -c calm-heron out)" 1:0 "also one that looks like a change"
run runs heron '|' otter
says out "calm-heron" "a filter may be several words"
run runs 'lr:('
exits 64 "what is no filter is refused: exit 64"
cp -r else/where runs/broken
sed -i 's/"state": "finished"/"state": "diverged"/; s/brisk-otter/grim-toad/' runs/broken/run.json
run runs --reindex --color always
says out "$(printf '\033[0;1;31mx\033[0m') grim-toad" "with colours a run that broke is red"
says out "$(printf '\033[0;32m+\033[0m')" "and one that came to its end green"
sed -i 's/grim-toad/grim-toad-of-many-words/' runs/broken/run.json
run runs --reindex
is "$(awk '{print match($0, /STATE|finished|diverged/)}' out | sort -u | wc -l)" 1 \
    "a long name moves no column from under its heading"
rm -r runs/broken
run runs --reindex
is "$(grep -c "$(printf '\033')" out)" 0 "into a file there are none"
run runs --sort name
is "$(awk 'NR == 2 {print $2}' out)" brisk-otter "--sort orders them"
run runs --sort=-name --limit 1
is "$(awk 'NR == 2 {print $2}' out):$(grep -c otter out)" calm-heron:0 "--limit cuts the list"
run runs --json
says out '"name": "brisk-otter"' "--json has the facts"
says out '"optimizer.lr": 0.3' "of the recipe too"
rm -r state
run runs --reindex
exits 0 "without an index runs are found again"
says out "calm-heron" "in ./runs"
echo damaged, and long enough to be no empty file >state/etude/runs.db
run runs
exits 0 "a damaged index is no failure"
is "$(grep -c warn err)" 1 "one line says so"
says out "calm-heron" "and it is there again"

mv state kept && echo in the way >state
run runs
says err "cannot be kept" "where there can be no index, that is said"
says out "calm-heron" "and the list is there"
run train r.yaml --quiet --run_name calm-finch
is "$code $(cat err)" "0 " "but a training run says nothing of it"
rm state && mv kept state
run runs --sort accuracy
exits 0 "runs are sorted by a metric too"

run show calm-heron
exits 0 "show"
says out "calm-heron: finished, exit 0" "says how it ended"
says out "metrics/eval/Accuracy" "and what it came to"
run show else/where
says out "brisk-otter: finished" "a directory is a run"
run show last --json
says out '"metrics"' "show --json"
run show calm-hern
exits 66 "an unknown run: exit 66"
says err "did you mean 'calm-heron'" "with what was meant"
run show
exits 64 "show without a run: exit 64"

run annotate calm-heron "$(printf 'lr was \033[2J high')"
exits 0 "annotate"
run show calm-heron
says out 'after 8ba  lr was \x1b[2J high' "the note is shown, with no escape"
run annotate calm-heron again --json
says out '"ba": 8' "in JSON it says behind which batch"
run annotate calm-heron
exits 64 "a note has a text: exit 64"
run annotate nobody text
exits 66 "and a run: exit 66"

run compare calm-heron brisk-otter --target 'crossentropy<=100' --pareto samples
exits 0 "compare"
says out "optimizer.lr" "says what differs"
is "$(grep -c '^model' out)" 0 "and not what is the same"
says out "time to crossentropy<=100" "when each was at the target"
says out "Pareto front, samples" "and which is not beaten"
run compare calm-heron brisk-otter --target 'crossentropy<=100' --pareto samples --json
says out '"on_front": true' "compare --json"
says out '"samples_to_target": 16' "has samples to the target"
run train r.yaml --quiet --run_name slow-ibis optimizer.lr=0.01 eval_interval=1ba max_duration=8ba
run compare slow-ibis calm-heron --target 'crossentropy<=100' --json
says out '"samples_to_target": 8.0' "which may be fewer"
is "$(awk '/samples_to_best/ { print ($2 + 0 > 8); exit }' out)" 1 "than those to its best"
run train r.yaml --quiet --run_name bare-crane checkpoint=false
run compare calm-heron bare-crane
is "$(grep '^checkpoint' out | tr -s ' ')" "checkpoint on off" "a block that one turned off is one row"
run compare bare-crane calm-heron --json
is "$(grep -c '"checkpoint[".]' out)" 1 "in JSON too"
run compare calm-heron brisk-otter --target 'nothing>=1'
exits 66 "a target of no metric: exit 66"
run compare calm-heron brisk-otter --target 'accuracy'
exits 64 "and one that is none: exit 64"
run compare calm-heron brisk-otter --pareto energy
exits 69 "what runs do not record is not available: exit 69"
run compare calm-heron
exits 64 "one run is no comparison: exit 64"
mkdir -p a/long/way/to/the/data/of && printf 'some text, more than once. %.0s' 1 2 3 4 5 6 >a/long/way/to/the/data/of/one
cp a/long/way/to/the/data/of/one a/long/way/to/the/data/of/two
cat >t.yaml <<'R'
max_duration: 1ba
model: {name: gpt2, n_layers: 1, d_model: 8, n_heads: 2, max_seq_len: 8, vocab_size: 256}
train_data: {name: text_bytes, path: a/long/way/to/the/data/of/one, seq_len: 8, batch_size: 2}
optimizer: {name: adamw, lr: 0.001}
R
run train t.yaml --quiet --run_name text-one seed=2964386741
run train t.yaml --quiet --run_name text-two seed=3 train_data.path=a/long/way/to/the/data/of/two
run compare text-one text-two
is "$(grep '^train_data.path' out | tr -s ' ')" \
    "train_data.path $dir/a/long/way/to/the/data/of/one $dir/a/long/way/to/the/data/of/two" \
    "no value is cut in a file"
for width in 200x50 80x24; do
    run --ascii compare text-one text-two --dump-screen $width
    says out 2964386741 "at $width a seed is whole on the screen"
done
is "$(grep -c '[.][.][a-z/]*/data/of/two .*[.][.][a-z/]*/data/of/one$' out)" 1 "where a path has no room its ends stay"
run --ascii compare text-one text-two --dump-screen 200x50
says out " $dir/a/long/way/to/the/data/of/two" "and where it has, all of it is there"
run compare text-one calm-heron
is "$(grep -c -- '- *-$' out)" 0 "a row has something that differs: nothing does not from nothing"
run runs name=text-one
speed=$(awk '$2 == "text-one" { print $NF }' out)
run --ascii attach text-one --dump-screen 80x24
# (The screen has a digit more, the list a whole number.)
is "$(awk -v list="$(echo "$speed" | tr -d ,)" '
    $1 == "speed" { gsub(",", "", $2); print ($2 - list) ^ 2 <= 0.56 ^ 2 }' out)" 1 \
    "a short run is as fast in the list as on its last screen"
run train r.yaml --quiet --run_name dry-finch eval_data.num_samples=8
run compare calm-heron dry-finch
says err "evaluated on other data" "runs with other evaluation data are warned about"

run logs calm-heron
exits 0 "logs"
says out "info etude" "prints the log of rank 0"
run logs calm-heron --level warn
is "$(wc -c <out)" 0 "from a level on"
run logs calm-heron --json
says out '"level":"info","text":"etude' "logs --json"
log=$(grep -l 'run calm-heron,' -r . --include=rank0.txt | head -1)
perl -e 'print "\xc3\xa4" x 3000, "\x01end\n"' >>"$log"
run logs calm-heron
is "$(tail -1 out | wc -c)" 6008 "a line that is longer than any piece is whole, in UTF-8, and made visible"
run logs calm-heron --json
is "$(tail -1 out | perl -ne 'print /"text":"((?:\xc3\xa4)*)(.*?)"/ && length($1) . $2')" '6000\\x01end' "in JSON too"
sed -i '$d' "$log"
printf 'broken off' >>"$log"
run logs calm-heron
is "$(tail -1 out)" 'broken off' "the last line is printed, also where it was broken off"
run logs calm-heron --level warn
is "$(wc -c <out)" 0 "what the rank printed is no warning"
sed -i '$d' "$log"
run logs calm-heron -f
exits 0 "a log of a run that has ended is not waited for"
run logs calm-heron --rank 3
exits 66 "a rank that was not there: exit 66"
cp "$log" whole.txt
{
    echo 'a line that a library printed'
    echo '2027-01-02T03:04:05Z warn hot'
    echo '2027-01-02T03:04:06Z warning is no level'
    echo '2027-01-02T03:04:07Z debug low'
    echo '2027-01-02T03:04:08Z error end'
} >"$log"
run logs calm-heron
is "$(sed 's/.* //' out | tr '\n' ' ')" "printed hot level low end " "logs prints all lines of a rank"
run logs calm-heron --level info
is "$(sed 's/.* //' out | tr '\n' ' ')" "printed hot level end " "logs --level info leaves out lines below info"
run logs calm-heron --json --level warn
is "$(cat out)" '{"t":"2027-01-02T03:04:05Z","level":"warn","text":"hot"}
{"t":"2027-01-02T03:04:08Z","level":"error","text":"end"}' "logs --json prints each line as an object of time, level and text"
run logs calm-heron --json
is "$(sed -n '1p;3p' out)" '{"t":null,"level":"","text":"a line that a library printed"}
{"t":null,"level":"","text":"2027-01-02T03:04:06Z warning is no level"}' "logs --json gives a line that is not of the log's form no time and no level"
mv whole.txt "$log"

# One that goes on, and then has no process any more.
"$etude" train r.yaml --quiet --run_name fond-lynx max_duration=100000000ba >out 2>err &
pid=$!
until_true "grep -qs '\"state\": \"running\"' runs/*/run.json"
run runs fond-lynx
says out "* fond-lynx" "a run that goes on has a star"
run annotate fond-lynx "right now"
exits 0 "and can be annotated"
run show fond-lynx
says out "right now" "by its own process, which writes its log"
kill_run $pid
run runs fond-lynx
says out "x fond-lynx" "without its process it is not shown running"
says out "crashed" "but crashed"
run show fond-lynx
says out "its process is gone, and left no word of why" "which is said to be all that is known"
run annotate fond-lynx "killed it"
exits 0 "then it can be annotated"
run show fond-lynx
says out "killed it" "and shown"
at=$(dirname "$(grep -l '"fond-lynx"' runs/*/run.json)")
run show "$at"
says out "fond-lynx: crashed" "by its folder as well as by its name"
printf 'broken off' >>"$at/logs/rank0.txt"
run logs fond-lynx --follow
exits 0 "and nobody waits for its log"
is "$(tail -1 out)" 'broken off' "which is printed to its last byte"

# ---- pipes where files of a run are looked for ----

for file in run.json report.json recipe.resolved.yaml events.log metrics.jsonl tags; do
    mkdir -p "runs/pipe-$file"
    [ $file = run.json ] || echo '{"name": "piped", "state": "finished"}' >"runs/pipe-$file/run.json"
    mkfifo "runs/pipe-$file/$file"
    timeout 60 "$etude" runs >out 2>err </dev/null
    is $? 0 "a pipe called $file holds up no list"
    timeout 60 "$etude" show "runs/pipe-$file" >out 2>err </dev/null
    ok $(($? == 124)) "nor the look at that run"
    timeout 60 "$etude" attach "runs/pipe-$file" --dump-screen 80x24 >out 2>err </dev/null
    ok $(($? == 124)) "nor Monitor"
    timeout 60 "$etude" compare brisk-otter "runs/pipe-$file" --dump-screen 80x24 >out 2>err </dev/null
    ok $(($? == 124)) "nor Compare"
done
tiny piped.yaml
run train piped.yaml --run_directory piped-log --run_name piped-log --progress none
rm piped-log/logs/rank0.txt && mkfifo piped-log/logs/rank0.txt
timeout 60 "$etude" logs piped-log >out 2>err </dev/null
is $? 66 "a pipe in the place of a log is no log: 66"
says err "piped-log/logs/rank0.txt: not a regular file" "which is said"
timeout 60 "$etude" attach piped-log --dump-screen 100x30 --keys 5 >out 2>err </dev/null
is $? 0 "and holds up no screen"
finish
