#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Screens of a recorded run, cell for cell: those of UX.md section 3, from its example.
. "$(dirname "$0")/screens.sh"
export TERM=xterm-256color
# lives RUN: its process is this one
lives() {
    started=$(awk '{ print $22 }' /proc/$$/stat)
    boot=$(cat /proc/sys/kernel/random/boot_id)
    sed -i "s/\"pid\": .*\"boot_id\": \"[^\"]*\"/\"pid\": $$, \"pid_started\": $started, \"boot_id\": \"$boot\"/" \
        "$1/run.json"
}
"$ET_BUILDDIR/t/tui/example" otter || { echo "Bail out! no example"; exit 99; }
lives otter

# same FILE NAME: out is what the file has
same() {
    [ -z "${ETUDE_UPDATE:-}" ] || cp out "$screens/$1.txt"
    diff "$screens/$1.txt" out >err
    ok $? "$2"
}

# screen FILE ARGS... -- NAME
screen() {
    file=$1 args=''
    shift
    while [ "$1" != -- ]; do args="$args $1"; shift; done
    # shellcheck disable=SC2086
    with_roles $args
    eval "run attach otter $args"
    same "$file" "$2"
}

for size in 60x16 80x24 100x30 120x36 200x50; do
    screen monitor-$size-ascii --dump-screen $size --ascii -- "Monitor at $size in ASCII"
    screen monitor-$size-utf8 --dump-screen $size -- "Monitor at $size in UTF-8"
    grep -nP '[^\x00-\x7f]' "$screens/monitor-$size-ascii.txt" >err
    is $? 1 "which is ASCII"
done
for keys in v vv; do
    screen ranks-80x24-$keys --dump-screen 80x24 --ascii --keys $keys -- "ranks at 80x24 after $keys"
    screen ranks-200x50-$keys --dump-screen 200x50 --ascii --keys $keys -- "ranks at 200x50 after $keys"
done
screen monitor-50x12 --dump-screen 50x12 --ascii -- "below 60x16: bars and the newest message"
screen monitor-1x1 --dump-screen 1x1 --ascii -- "one cell is a screen too"
screen ranks-60x16 --dump-screen 60x16 --ascii --keys '<tab><tab>' -- "60x16: tab shows another panel"
screen zoom --dump-screen 80x24 --ascii --keys '++i<left><left>' -- "a zoomed chart, and what is under its cursor"
for size in 60x16 80x24 120x36 200x50; do
    run attach otter --dump-screen $size --ascii --keys 's'
    says out 'ema .97' "$size: s smooths more, and the chart says how much"
    run attach otter --dump-screen $size --ascii --keys 'SS'
    is "$(grep -c 'ema \.' out)" 0 "and with S nothing of it where there is none"
done
screen epochs --dump-screen 80x24 --ascii --keys 'y' -- "logarithmic, over epochs"
screen full --dump-screen 80x24 --ascii --keys 'z' -- "one panel as large as the screen"
screen step-80x24-ascii --dump-screen 80x24 --ascii --keys 'p/step<enter><enter>' -- "where the step goes, over time"
for size in 80x24 120x36 200x50; do
    screen step-$size --dump-screen $size --keys 'p/step<enter><enter>' -- "the same at $size in UTF-8"
done
screen control --dump-screen 80x24 --ascii --keys 'c' -- "the control menu"
screen help --dump-screen 80x24 --ascii --keys '?' -- "help"
screen help-search --dump-screen 80x24 --ascii --keys '?zoom' -- "help, searched"
screen palette --dump-screen 80x24 --ascii --keys ':log' -- "the palette, searched"
screen logs --dump-screen 80x24 --ascii --keys '5' -- "Logs"
screen logs-rank5 --dump-screen 80x24 --ascii --keys '5rrrrrr' -- "Logs of one rank"
screen logs-filter --dump-screen 80x24 --ascii --keys '5&level=warn<enter>' -- "Logs, filtered"
screen logs-search --dump-screen 80x24 --ascii --keys '5/3000<enter>' -- "Logs, searched"
screen logs-wide --dump-screen 200x50 --keys '5' -- "Logs at 200x50"
run attach otter --dump-screen 80x24 --ascii --keys '?zoom<enter>' # enter does it
cp out zoomed
run attach otter --dump-screen 80x24 --ascii --keys '+'
cmp -s out zoomed
ok $? "enter in help does what its line says"

for at in 100 3000; do
    run attach otter --dump-screen 80x24 --ascii --at $at
    is "$(awk '/step  *[0-9]+ms  p99/ { sub(/.*step */, ""); print $1 + 0 <= $3 + 0 }' out)" 1 \
        "at record $at no step takes longer than 99 of 100 do"
done
screen details --dump-screen 80x24 --ascii --keys '<tab><tab><down><down><down><down><down><enter>' -- "what a rank says of itself"
screen events-filter --dump-screen 80x24 --ascii --keys '/kind=eval<enter>' -- "events, filtered"
screen metrics --dump-screen 80x24 --ascii --keys 'ocross' -- "a metric is found by a part of its name"
run attach otter --dump-screen 80x24 --keys '/level=<enter>' --ascii
says out "lacks what stands behind" "a filter that is none says why while it is typed"

# A run of tokens, on processors, with three evaluators.
"$ET_BUILDDIR/t/tui/example" wren text
lives wren
for size in 80x24 200x50; do
    run attach wren --dump-screen $size+roles --ascii --keys xxxx
    same tokens-$size "$size: over tokens; the evaluator that runs, and those that do not"
done
run attach wren --dump-screen 80x24 --ascii --keys xxxxx
says out " 1,000ba" "behind tokens the axis is steps again"
run attach otter --dump-screen 80x24 --ascii --keys xxx
says out "10k ba" "a run without tokens has no axis of tokens"
run attach wren --dump-screen 200x50 --ascii --keys v
says out "waits for data" "and one without a GPU no columns of GPUs"

# What keys do beside the screen.
run attach otter --dump-screen 80x24 --ascii --keys 'Ec'
says out "wrote brisk-otter-loss-train.csv" "E writes the chart's series"
is "$(wc -l <brisk-otter-loss-train.csv)" 3826 "a line for each batch below the head"
run attach otter --dump-screen 80x24 --ascii --keys 'Et'
says brisk-otter-loss-train.txt "[2 Monitor]" "or the screen as text"
grep -qF "export this chart" brisk-otter-loss-train.txt
is $? 1 "without the menu that it was chosen from"
run attach otter --dump-screen 80x24 --ascii --keys 'Ec'
says out "File exists" "and never over another file"
# Why a rank is slow, by its own figures: how long its parts take, what it used of the
# processors and the disk, how busy the machine is.
while IFS=: read -r cause words; do
    "$ET_BUILDDIR/t/tui/example" "slow-$cause" slow "$cause"
    lives "slow-$cause"
    run attach "slow-$cause" --dump-screen 120x36 --ascii
    says out "! rank 2 holds every step back by 30 ms (23%): $words. Enter for more" "a rank that is slow for its $cause"
done <<'R'
data:its dataloader
algorithms:its algorithms
computing:its computing
load:the load of its machine
files:its reading and writing
still:its computing, which stands still
R
"$ET_BUILDDIR/t/tui/example" noted
run show noted
says out ": crashed" "a run whose process is gone has crashed"
for size in 50x12 80x24 200x50; do
    run attach noted --dump-screen $size --ascii
    says out "x CRASHED" "$size: its screen says so, too"
done
run attach noted --dump-screen 80x24 --ascii --at 3000
says out "* RUNNING" "an earlier record is shown as it was then"
run attach noted --dump-screen 80x24 --ascii --keys '<esc>anew data<enter>'
says out "noted: new data" "a note is made"
run show noted --json
says out "new data" "and is an event of the run"
run attach noted --readonly --dump-screen 80x24 --ascii --keys '<esc>a'
says out "started with --readonly" "but not by who only watches"
run attach noted --readonly --dump-screen 80x24 --ascii --keys '<esc>c'
says out "started with --readonly" "who controls nothing either"

# Where there is little room.
run --ascii attach otter --dump-screen 40x10 --keys ':'
is "$(grep -c 'samples,x' out)" 0 "a command is not written over its key"
run --ascii attach otter --dump-screen 20x5 --keys 'c'
says out '> k  checkpoint' "a menu has room for what can be chosen"

# Logs are moved sideways as far as they go.
run attach otter --dump-screen 200x50 --keys 5
cp out before.txt
run attach otter --dump-screen 200x50 --keys '5<right><right>'
cmp -s out before.txt
ok $? "lines that have room do not move"
has 'nothing is searched for' "n without a search says so" attach otter --dump-screen 80x24 --keys 5n

# A screen is a function of the records: whoever comes late sees what was there.
"$ET_BUILDDIR/t/tui/example" early 3000
lives early
for size in 80x24 200x50; do
    run attach early --dump-screen $size
    cp out early.txt
    run attach otter --dump-screen $size --at 3000
    cmp -s out early.txt
    ok $? "$size: the screen at record 3000 is what one saw who was there"
done
NO_COLOR=1 "$etude" attach otter --dump-screen 80x24+roles >out 2>err
same monitor-80x24-utf8 "colour is no part of what is said"

# What is refused.
run attach otter --dump-screen 80
exits 64 "a size that is none: exit 64"
run attach otter --dump-screen 80x24 --keys '<hyper>'
exits 64 "a key that is none: exit 64"
run attach otter --dump-screen 80x24 --at 99999999
exits 64 "a record that is not there: exit 64"
run attach nobody --dump-screen 80x24
exits 66 "a run that is not there: exit 66"
run attach otter --keys x
exits 64 "keys without a dump: exit 64"
run attach otter
exits 64 "without a terminal there is no workbench: exit 64"
run show otter --dump-screen 80x24
exits 64 "another command has no screen"
sed -i 's/"pid": [0-9]*/"pid": 1/' ./*/run.json # as all of them have by now
run --dump-screen 80x24 --keys 2
exits 0 "etude alone has screens too"
says out "No run is watched." "Monitor says what to do where there is no run"
for key in 2 5; do
    run --dump-screen 80x24 --keys $key
    is "$(tail -n 1 out)" " : command  ? help  q leave" "and screen $key promises no key that needs one"
done
lives otter
printf 'monitor: {axis: q}\n' >bad.yaml
mkdir -p conf && cp bad.yaml conf/keys.yaml
ETUDE_CONFIG_DIR=$PWD/conf "$etude" attach otter --dump-screen 80x24 --ascii >out 2>err
is $? 0 "a screen's key may be one of everywhere's"
printf 'monitor: {axis: y}\n' >conf/keys.yaml
ETUDE_CONFIG_DIR=$PWD/conf "$etude" attach otter --dump-screen 80x24+roles >out 2>err
is $? 78 "keys.yaml with one key for two actions: exit 78"
says err "y is the key of both axis and log_y" "in a sentence"
printf 'monitor: {axis: X}\n' >conf/keys.yaml
ETUDE_CONFIG_DIR=$PWD/conf "$etude" attach otter --dump-screen 80x24 --ascii >out 2>err
says out "X axis" "keys.yaml changes what the hints say"
finish
