#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is wrong with a recipe, as text and JSON, and the exit codes.
. "$(dirname "$0")/cli.sh"
tiny good.yaml

# with LINE...: good.yaml and these lines, as r.yaml
with() {
    cp good.yaml r.yaml
    printf '%s\n' "$@" >>r.yaml
}

run train nowhere.yaml
exits 66 "a recipe that is not there: exit 66"
says err "etude: error E1201: cannot read nowhere.yaml: No such file" "with the reason"
run train .
exits 66 "a folder is no recipe: exit 66"
run train -m wine train_data.path="$dir/none.csv" --progress none
exits 66 "the data of an installed recipe are not there: exit 66"
says err "hint: etude recipes wine says where its data come from" "who knows how to get them"

with "lerning_rate: 1"
run train r.yaml
exits 65 "an unknown key: exit 65"
says err "etude: error E1205: r.yaml:7:1: unknown key 'lerning_rate'" "with file, line and column"

with "nonfinite: {action: explode}" "seed: 4" "precision: fp33"
run validate r.yaml
exits 65 "several errors: exit 65"
is "$(grep -c '^etude: error' err)" 3 "all of them are told"
is "$(grep -o 'r.yaml:[0-9]*' err | tr '\n' ' ')" "r.yaml:7 r.yaml:8 r.yaml:9 " "in file order"
run --json validate r.yaml
is "$(grep -c '^{"code":"E1' err)" 3 "a line of JSON each"
if command -v python3 >/dev/null; then
    python3 -c 'import json,sys; [json.loads(l)["line"] for l in open("err")]' 2>/dev/null
    ok $? "which is JSON"
    run --json validate good.yaml 'optimizer.lr=a\b"c'
    python3 -c 'import json,sys; sys.exit("a\\b\"c" not in json.loads(open("err").readline())["message"])'
    ok $? "also where the message has a backslash and quotes"
fi

with "target: ''"
i=0
while [ $i -lt 30 ]; do echo "key$i: 1" >>r.yaml; i=$((i + 1)); done
run validate r.yaml
is "$(grep -c '^etude: error' err)" 20 "at most 20 are told"
says err "etude: 11 more errors" "and how many more there are"
run validate r.yaml --json
is "$(wc -l <err) $(grep -c '^{"code":"E1' err)" "20 20" "in JSON these alone"

run train good.yaml optimizer.lrr=1
exits 65 "an override that fits nothing: exit 65"
says err "unknown key 'optimizer.lrr' (did you mean 'optimizer.lr'?)" "with a suggestion"
run train good.yaml optimizer.lr=fast
says err "expected number" "an override of the wrong type is refused"
ETUDE_SET_optimizer__lr=-1 "$etude" validate good.yaml >out 2>err
is $? 65 "so is one from the environment"
run train good.yaml --target fast
exits 65 "a target that is none: exit 65"
says err "target: expected a metric and its goal" "says what one is"
run train good.yaml --dry-run --target 'speed>=1'
exits 65 "a target that no evaluation gives: exit 65"
mkfifo pipe
run validate pipe
says err "cannot read pipe: not a regular file" "a pipe is no recipe, and is not waited for"
run train good.yaml --alg 'no_such_method'
exits 65 "an unknown algorithm: exit 65"

for key in \
    "parallel: {zero: 1}" "precision: amp_fp8"; do
    with "$key"
    run train r.yaml
    exits 69 "$key is not available: exit 69"
    says err "r.yaml:7:" "and the line is named"
done
# Of several errors the first says how the program ends.
errors_end() { # CODE SENTENCE LINE...
    want=$1 sentence=$2
    shift 2
    { printf '%s\n' "$@" && cat good.yaml; } >r.yaml
    run validate r.yaml
    exits "$want" "$sentence"
    is "$(grep -c '^etude: error' err)" $# "and all of them are told"
}
typo='epcohs: 1' gone='include: none.yaml'
errors_end 66 "a file that is missing, then an unknown key: exit 66" "$gone" "$typo"

with "checkpoint: false"
run train --dry-run r.yaml
exits 0 "checkpoint: false is"
with "nonfinite: {action: rollback}"
run train --dry-run r.yaml
exits 0 "rollback is, where checkpoints are saved"
run train --dry-run r.yaml checkpoint=false
exits 69 "and is not where none are"

run train good.yaml train_data.name=text_bytes train_data.path=nowhere
exits 65 "an option the dataset has not: exit 65"
cat >text.yaml <<'R'
max_duration: 2ba
model: {name: gpt2, n_layers: 1, d_model: 8, n_heads: 1, max_seq_len: 8, vocab_size: 256}
train_data: {name: text_bytes, path: nowhere, seq_len: 8, batch_size: 2}
R
run train text.yaml
exits 66 "data that are not there: exit 66"
says err "error E2001" "is an E2 error"
printf 'abc' >nowhere
run train text.yaml
exits 65 "data that are too short: exit 65"
run train good.yaml model.name=gpt2
exits 65 "a model of another kind than the data: exit 65"

if [ "${ETUDE_DEVICE:-}" = ref ]; then
    ETUDE_DEVICE='' "$etude" train --dry-run good.yaml >out 2>err </dev/null
    is $? 0 "a program without oneDNN trains all the same"
    says err "built without oneDNN" "and warns"
fi

printf 'max_duration: 1ep\nmodel: "a\033[2Jb"\n' >r.yaml
run validate r.yaml
grep -q "$(printf '\033')" err
is $? 1 "no escape of a recipe reaches the terminal"

# ---- messages: of which level they are shown, and where ----

# An evaluation of a model at its start warns.
warns() { # HOW-MANY ARGS...: so many warnings are shown; the file of --log-file has it in any case
    want=$1
    shift
    run eval good.yaml --log-file log.txt "$@"
    is "$(grep -c 'no weights are loaded' err) $(grep -c '^etude: warn: no weights are loaded' log.txt)" "$want 1" \
        "eval $*: $want on the screen, one in the file"
    rm log.txt
}
warns 1
warns 0 -q
warns 1 -v --log-level warn
warns 0 --log-level error
warns 1 --log-level debug
warns 1 -q --log-level info
warns 1 --json
# Of an error debugging has where it was said.
for how in "0" "0 -v" "1 -vv" "1 --log-level debug" "0 --log-level info" "0 -vv --log-level info"; do
    # shellcheck disable=SC2086
    run eval good.yaml --load nobody ${how#?}
    is "$(grep -c 'etude: debug: said at ' err)" "${how%% *}" "${how#?}: ${how%% *} line of where an error was said"
done
run eval good.yaml --json
is "$(sed -E 's/"t":[0-9]+[.][0-9]{3},/"t":T,/' err)" \
    '{"t":T,"level":"warn","ev":"log","text":"no weights are loaded: this is the model at its start"}' \
    "with --json a message is a line of JSON"
run validate good.yaml seed=x --log-file log.txt
is "$(cat log.txt)" "$(cat err)" "an error is in the file as it is on the screen"
run validate good.yaml seed=x --color always --log-file log.txt
is "$(sed 's/\x1b\[[0-9;]*m//g' err | tail -n 1)" "$(tail -n 1 log.txt)" "but for its colour"
is "$(grep -c "$(printf '\033\[1;31m')error$(printf '\033\[0m') E1203" err) $(grep -c "$(printf '\033')" log.txt)" "1 0" "which is red, on a screen"
run train good.yaml --run_directory /proc/none --progress none
says err "hint: df and ls -ld show" "what cannot be written has a hint"
ETUDE_DEVICE=cuda run eval good.yaml
says err "hint: " "so has a device that is not there"
is "$code $(grep -c 'error E7003' err)" "69 1" "exit 69"

# ---- screens that cannot be shown ----

for size in 80 80x x24 0x24 80x0 80x24x 1e2x24; do
    run runs --dump-screen "$size"
    is "$code $(grep -c "expected WxH such as 80x24, got '$size'" err)" "64 1" "--dump-screen $size is refused: exit 64"
done
run train good.yaml --run_directory shown --run_name shown --progress none
for words in "compose --keys j" "attach shown --at 3"; do
    # shellcheck disable=SC2086
    run $words
    is "$code $(grep -c -- '--keys and --at go with --dump-screen' err)" "64 1" "$words without a size: exit 64"
done
for words in attach "attach shown" compose; do
    # shellcheck disable=SC2086
    run $words
    is "$code $(grep -c "^etude: error E1103: ${words%% *} needs a terminal that can place its cursor" err)" "64 1" \
        "$words needs a terminal: exit 64"
    says err "hint: --dump-screen 80x24 prints the screen" "or a size"
done
finish
