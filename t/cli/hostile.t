#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Names from outside on a terminal: escapes, C1 controls, bytes that are not UTF-8 and
# what turns text around, in the names of files, folders and runs, are shown as what they
# are; in JSON they are escaped (RELIABILITY.md 7.8, section 9).
. "$(dirname "$0")/cli.sh"
command -v perl >/dev/null || { echo '1..0 # SKIP no perl'; exit 0; }
esc=$(printf '\033') turn=$(printf '\342\200\256') c1=$(printf '\302\233') bad=$(printf '\377')
bare=$(printf '\233')

# clean NAME: out and err hold no control but the ends of lines, and nothing that is not UTF-8
clean() {
    seen=$(cat out err | perl -0777 -ne '
        utf8::decode($_) or print "not UTF-8 ";
        print join " ", map { sprintf "U+%04X", ord }
            /[\x00-\x08\x0b-\x1f\x7f-\x9f\x{61c}\x{200e}\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}]/g')
    is "$seen" "" "$1 sends no control"
}

for odd in "e${esc}[31mred" "t${turn}txt" "c${c1}31m" "b${bad}ad" "r${bare}2J" "n
etude: error E9001: a line of its own"; do
    shown=$(printf %s "$odd" | perl -0777 -pe 's/[^ -~]/?/g')
    mkdir "$odd"
    tiny "$odd/r.yaml"
    run validate "$odd/r.yaml"
    exits 0 "a recipe in a folder called '$shown' is valid"
    clean "validate"
    is "$(wc -l <out)" 1 "which is said in one line"
    run validate "$odd/r.yaml" --json
    clean "validate --json"
    perl -MJSON::PP -0777 -ne 'decode_json($_)' out 2>/dev/null
    ok $? "which is JSON"
    run train "$odd/r.yaml" --dry-run
    exits 0 "--dry-run fits it"
    clean "train --dry-run"
    run train "$odd/r.yaml" --dry-run --json
    clean "train --dry-run --json"
    run validate "$odd/missing.yaml"
    exits 66 "what is not there is named"
    clean "the error"
    run train r.yaml --run_directory "$odd/run" --run_name plain
    clean "train without its recipe"
    for how in "" --json; do
        ETUDE_CONFIG_DIR="$dir/$odd" "$etude" config path $how >out 2>err </dev/null
        clean "config path $how"
        ETUDE_CONFIG_DIR="$dir/$odd" XDG_CONFIG_HOME="$dir/$odd" "$etude" worker keygen $how >out 2>err </dev/null
        clean "worker keygen $how"
    done
    # (Runs in folders that are not UTF-8: t/dist.)
    case $odd in b* | r*) rm -rf "$odd"; continue ;; esac
    run train "$odd/r.yaml" --run_directory "$odd/run" --run_name plain
    clean "train, its last line"
    for way in bar plain json; do
        run train "$odd/r.yaml" --run_directory "$odd/run-$way" --progress $way
        [ $way = bar ] && sed -i 's/\r//g' out err
        clean "train with --progress $way"
    done
    run train "$odd/r.yaml" --run_directory "$odd/run2" --json
    clean "train --json"
    cp -r "$odd/run" plain-run 2>/dev/null
    checkpoint=$(ls -d "$odd"/run/checkpoints/step-*2 2>/dev/null)
    if [ -n "$checkpoint" ]; then
        for how in "" --json; do
            run weights convert "$checkpoint/model-00000.safetensors" -o "$odd/w$how.safetensors" --dtype float16 $how
            clean "weights convert $how"
            run weights inspect "$checkpoint" $how
            clean "weights inspect $how"
            run show "$odd/run" $how
            clean "show $how"
            run runs $how
            clean "runs $how"
            run export "$odd/run" --to csv -o "$odd/x$how.csv" $how
            clean "export $how"
        done
    fi
    rm -rf "$odd" plain-run
done

# Text in a recipe: the label of an evaluation, tags.
tiny r.yaml
cat >l.yaml <<'R'
include: [r.yaml]
tags: ["\e[31mred", "\u202eover"]
eval_data: {name: synthetic_images, num_samples: 16, workers: 0, label: "e\u202e\u009b"}
R
for way in bar plain json; do
    run train l.yaml --run_directory "l-$way" --progress $way --run_name "l-$way"
    [ $way = bar ] && sed -i 's/\r//g' out err
    clean "a label of an evaluation with --progress $way"
done
cat l-plain/metrics.jsonl >out 2>err
clean "metrics.jsonl"
run explain l.yaml --origin
clean "explain --origin"
for how in "" --json; do
    run show l-plain $how
    clean "show of its run $how"
done
# Two runs of different lengths in a folder that is not UTF-8: JSON cannot name it, so they are
# reached by their paths alone, and what asks for one by its name is told so.
mkdir "b${bad}ad"
tiny "b${bad}ad/r.yaml"
for ba in 1 2; do
    run -C "b${bad}ad" train r.yaml --run_directory "run$ba" --run_name "odd-yak-$ba" --progress none max_duration=${ba}ba
    exits 0 "a run in a folder that is not UTF-8"
done
for screen in "--keys 1" "--keys 2" "--keys 2<enter>"; do
    # shellcheck disable=SC2086
    timeout 60 "$etude" --dump-screen 100x30 $screen >out 2>err </dev/null
    is $? 0 "the workbench opens beside them: $screen"
    clean "it"
done
for command in "logs odd-yak-1" "export odd-yak-1 --to csv" "annotate odd-yak-1 hm" \
    "train --resume odd-yak-1" "weights ls odd-yak-1" "attach odd-yak-1 --dump-screen 80x24"; do
    # shellcheck disable=SC2086
    run $command
    [ $code -ge 64 ] && [ $code -le 66 ]
    ok $? "$command is refused"
    says err "$dir/b\\xffad/run1" "with where it is"
done
run -C "b${bad}ad" train --resume run1 --progress none max_duration=3ba
exits 0 "by its path it goes on"
finish
