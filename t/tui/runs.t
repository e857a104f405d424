#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The screen Runs, with Compare and Pareto: as they are drawn, and what their keys do.
. "$(dirname "$0")/screens.sh"
"$ET_BUILDDIR/t/tui/rivals" || { echo "Bail out! no runs"; exit 99; }

screen() {
    shows "runs-$1" "$2" runs --dump-screen "$3" --keys "$4"
}
marks='j    ' # space marks, and goes on to the next
at='t<ctrl-u>accuracy>=.765<enter>'

screen 80x24 "the list, and the run that is selected" 80x24 'j'
screen 80x24-target "time to a target, and one run by another" 80x24 "jjjj ${at}gj"
screen 80x24-compare "what differs between those that are marked" 80x24 "$at${marks}C"
screen 80x24-pareto "which of them no other beats" 80x24 "$at${marks}P"
screen 200x50 "the list with curves and differences beside it" 200x50 "$at$marks"
screen 200x50-compare "Compare with all the room there is" 200x50 "$at${marks}C"
screen 60x16 "the list alone" 60x16 ''
all='       '
screen 80x24-compare-others "of more runs than have columns, those in the middle" 80x24 "${at}${all}C<right><right>"
screen 120x36-compare-all "with more room, the last of them" 120x36 "${all}C<right><right><right><right><right>"
screen 120x36-pareto-samples "samples for time, of all runs" 120x36 "$at${all}Pxxx<right>"
screen 60x16-compare "where there is no room for curves, the table alone, moved" 60x16 "$at${marks}Cjjjjj"
shows runs-filter "the filter of the command" runs 'resnet50' 'state=finished' --dump-screen 80x24
shows runs-sort "its order" runs --sort=-name --dump-screen 80x24
shows compare "compare shows the screen too" compare base-r50 calm-heron --target 'accuracy>=.765' \
    --pareto time --dump-screen 80x24
mkdir empty && cd empty || exit 99
XDG_STATE_HOME=$dir/none
export XDG_STATE_HOME
shows runs-empty "no run: how one comes to be" runs --dump-screen 80x24
has 'there is no run to do that to' "what is done to a run says that there is none" \
    runs --dump-screen 80x24 --keys '#'
cd .. || exit 99
XDG_STATE_HOME=$dir/state

does() {
    has "$1" "$2" runs --dump-screen 80x24 --keys "$3"
}
does 'vs calm-heron: 1.1x slower to its best' "one run by another that is marked" 'j '
cp -r runs/base-r50 runs/new-r50
sed -i 's/"base-r50"/"new-r50"/' runs/new-r50/run.json
echo 'eval_data: {num_samples: 8}' >>runs/new-r50/recipe.resolved.yaml
does 'vs calm-heron: ! evaluated on other data: eval_data.num_samples differs' \
    "which is warned of where they were evaluated on other data" 'j /new<enter>'
is "$(grep -c 'slower to its best' out)" 0 "and then has no number"
rm -r runs/new-r50
does '1 of 7 runs' "a filter holds while it is typed" '/mole'
does '4 of 7 runs' "words, keys and regular expressions" '/state=finished resnet'
does 'the filter:' "half a filter is said to be one" '/"fin'
does "(did you mean 'Accuracy'?)" "a key that is the beginning of a name is told which" '/acc>0.9'
# A line to type in that has more text than columns says where there is more.
long=abcdefghijklmnopqrstuvwxyzABCDEFGHIJ
while IFS=: read -r keys want name; do
    has " / $want   " "$name" runs --dump-screen 60x16 --keys "/$long$keys"
done <<'R'
:<mnopqrstuvwxyzABCDEFGHIJ:of a long filter the end is shown, and that more stands before it
<Home>:abcdefghijklmnopqrstuvwxy>:at its beginning that more stands behind it
<left><left>:<lmnopqrstuvwxyzABCDEFGHIJ:the last letter, where it has room
<left><left><left><left><left>+:<jklmnopqrstuvwxyzABCDE+F>:and the letter at the cursor, between both
R
does '7 of 7 runs' "esc takes it away" '/heron<enter><esc>'
does 'mark two or more' "a run alone is not compared" ' C'
does 'x: samples' "x takes cost, energy, then samples for time" "$at${marks}Pxxx"
does 'no price is set' "a cost without a price says where to set one" "$at${marks}Px"
mkdir conf && printf 'price: {hour: 2.0, of: rank, currency: EUR}\n' >conf/config.yaml
ETUDE_CONFIG_DIR=$PWD/conf
screen 80x24-cost "what each cost at a price by the hour" 80x24 "$at${marks}Px"
screen 80x24-energy "and what it drew, where that was recorded" 80x24 "$at${marks}Pxx"
run --ascii runs --dump-screen 200x50
says out 'COST  ALGORITHMS' "the list has the cost of each run"
says out '0.54 EUR  blurpool' "for the time that it took"
price() {
    printf 'price: {hour: 2.0, of: %s, currency: EUR}\n' "$1" >conf/config.yaml
    run compare base-r50 calm-heron --target 'accuracy>=.765' --pareto cost
    grep 'cost to it' out | tr -s ' '
}
is "$(price rank)" "cost to it 5.25 EUR 1.00 EUR" "a price of each rank: of two it is twice"
is "$(price machine)" "cost to it 2.62 EUR 0.50 EUR" "a price of the machine"
is "$(price run)" "cost to it 2.62 EUR 0.50 EUR" "or of the run"
ETUDE_CONFIG_DIR=$dir/no-config
run compare base-r50 calm-heron early-mole --target 'accuracy>=.765' --pareto energy
exits 0 "compare --pareto energy"
is "$(grep 'energy to it' out | tr -s ' ')" "energy to it 6.42 kWh 1.20 kWh -" \
    "adds what GPUs drew until the target"
is "$(grep -c 'has not recorded what it drew' err)" 1 "and names the run that did not say"
says err "early-mole has not" "which is that one"
is "$(grep 'Pareto front' out | tr -s ' ')" "Pareto front, energy + # -" "which has no place"
run compare base-r50 calm-heron --pareto energy --json
says out '"kwh_to_best": 1.' "energy as JSON"
is "$(grep -c cost_to out)" 0 "has no cost, which was not asked for"
run compare base-r50 calm-heron --pareto cost
exits 69 "a cost without a price: exit 69"
says err "etude config set price.hour" "says how to set one"
run compare early-mole brisk-otter --pareto energy
exits 69 "energy that no run recorded: exit 69"
says err "no run has recorded what it drew" "in one line"
does '[1 Compose]' "r goes to Compose with the recipe" 'jr'
does 'calm-heron' "of that run" 'jr'
does '3 marked' "marks are counted" '   '
does 'in none of the runs' "a target that is none is refused" 'tspeed>1<enter>'
does 'sort: name' "o sorts" 'on'

run --ascii runs --dump-screen 80x24 --keys 'jD'
says out 'calm-heron is in' "D puts a run aside"
[ ! -e runs/calm-heron ] && [ -e runs/.trash/calm-heron/run.json ]
ok $? "in the trash of its folder"
has '6 of 6 runs' "where it is not listed" runs --dump-screen 80x24
mv runs/.trash/calm-heron runs/
does 'is back' "u brings it back" 'jDu'
[ -e runs/calm-heron/run.json ]
ok $? "as it was"
run --ascii runs --dump-screen 80x24 --keys 'j#good old<enter>'
is "$(cat runs/calm-heron/tags)" 'good old' "tags are a file of the run"
has '1 of 7 runs' "and filters know them" runs tags:good --dump-screen 80x24
run --ascii runs --dump-screen 80x24 --keys 'je'
grep -q '<svg' calm-heron.svg
ok $? "e writes the charts of the run"
run --ascii runs --dump-screen 80x24 --keys "$at${marks}Ce"
grep -q '"on_front"' compare.json
ok $? "and in Compare its figures"

# All charts of several runs, on the same axes.
screen 80x24-charts "the charts of the runs that are marked" 80x24 "${marks}v"
screen 120x36-charts "with a list of them where there is room" 120x36 "${marks}v<tab>jpi<left>"
screen 200x50-charts "one of them hidden, one pinned" 200x50 "${marks}v<tab>j pj"
shows runs-120x36-best "of one run, with the best of the recipe before it" \
    attach calm-heron --dump-screen 120x36 --keys '<esc>p'
charts() {
    has "$1" "$2" runs --dump-screen 80x24 --keys "${marks}v$3"
}
charts '1 of 4 charts' "the filter of the charts holds while it is typed" '/loss'
charts 'base-r50' "a adds a run by its name" 'abase-r50<enter>'
charts "no run and no worker is called 'nobody'" "or says that there is none" 'anobody<enter>'
charts '[2 Monitor]' "enter on a run of the list watches it" '<tab>j<enter>'
charts 'calm-heron  ' "which is the one that was selected" '<tab>j<enter>'
run --ascii runs --dump-screen 80x24 --keys "${marks}v<tab>jX"
is "$(grep -c 'calm-heron' out)" 0 "X takes a run out"
charts '4 marked' "esc leads back to the list" '<esc>'
has 'early-mole, best of 3 earlier runs: accuracy .7701' "which run is the best is said" \
    attach calm-heron --dump-screen 80x24 --keys '<esc>p'
run --ascii attach calm-heron --dump-screen 80x24 --keys '<esc>pb'
is "$(grep -c 'early-mole' out)" 0 "b leaves it out"

# What a newcomer's hands do.
does 'L launches it again, W gives it a file' "r says what comes next" 'jr'
run --ascii runs --dump-screen 60x16 --keys 'jr'
is "$(grep -A1 'L launches it again, W gives it' out | tail -n 1)" ' a file' \
    "a message that has no room in one line takes two"
does 'not one cell wide cannot be typed' "nor does one that is too wide vanish" '#日'
does 'Z does nothing here: ? shows the keys' "a key without a meaning says so" 'Z'
does '#good #old' "each tag has its sign" 'j'
is "$(grep -c '#good' out)" 1 "and stands there once"
run --ascii runs --dump-screen 80x24 --keys '?'
is "$(grep -c 'redo' out)" 0 "help lists no key that does nothing here"
says out 'esc close' "and says how it is closed"
does '> n  name' "what is sorted by now is selected" 'ono'
does "'speed' is not METRIC>=NUMBER or METRIC<=NUMBER" "why a target is none has room" 'tspeed'
has '? help' "where there is little room the hints that remain are whole" \
    runs --dump-screen 60x16 --keys '   C'
run --ascii runs --dump-screen 40x10
is "$(grep -c '^.. [p+x] \|^..[p+x] ' out)" 7 "a small window has as many runs as it has lines"
run --ascii runs --dump-screen 20x5
is "$(sed -n 2p out)" ' / all' "and leaves out what has no room"
does 'runs 1-4 of 7, left right: others' "of many runs some have a column" '       C'
does 'runs 4-7 of 7' "and arrows show the others" '       C<right><right><right><right><right>'
cp -r runs/base-r50 runs/old-r50
sed -i 's/"base-r50"/"old-r50"/; s/"started": [0-9.]*/"started": 1763300000/' runs/old-r50/run.json
lynx='jjjjj j '
does 'throughput/samples_per_sec' "metrics that the first run lacks can be compared" "${lynx}Cm"
does 'best samples/s                               -       18,455' "of which more may be better" \
    "${lynx}Cmthroughput/s<enter>"
does 'fond-lynx: no samples/s  o old-r50' "and only who has values has a line" "${lynx}Cmthroughput/s<enter>"
rm runs/old-r50/events.log
does 'one of the two was not evaluated' "a run without a value is measured by nothing" ' G'
has 'no values of ' "whose chart has none" runs name=old-r50 --dump-screen 80x24
is "$(grep -c 'no values of .* yet' out)" 0 "nor will have, as it has ended"

# Columns come with the width.
run --ascii runs --dump-screen 80x24
says out 'NAME             STATE           PROGRESS' "80 columns have name, state, progress,"
says out 'ACC  samples/s' "metric and speed"
is "$(grep -c 'BEST IN\|LOSS' out)" 0 "and no more"
run --ascii runs --dump-screen 100x30
says out 'LOSS        samples/s' "from 100 there is the loss"
says out '#---...___' "all of it"
run --ascii runs --dump-screen 120x36
says out 'ALGORITHMS' "from 120 the algorithms"
run --ascii runs --dump-screen 120x36+roles --keys ' '
grep -q 'best [0-9]' out
ok $? "the best value of a recipe has a role of its own"
grep -q '^ #p brisk-otter' out
ok $? "a row that is marked has a sign"

# One that is known by another metric.
mkdir others && (cd others && "$ET_BUILDDIR/t/tui/rivals" metrics/eval/Perplexity >out 2>err)
sed 's/"dry-finch"/"odd-newt"/' others/runs/dry-finch/run.json >json
mv json others/runs/dry-finch/run.json && mv others/runs/dry-finch runs/odd-newt
run --ascii runs --dump-screen 120x36
says out 'BEST' "runs of different metrics have no metric as a title"
grep -q 'odd-newt .* .0924 Perplexit' out
ok $? "each says which its own is"
grep -q 'calm-heron .* .7668 Accuracy' out
ok $? "also those of the others"
does 'time to accuracy>=.76' "a target may be of a metric that the selected run lacks" \
    '/odd<enter>taccuracy>=.76<enter>'
does 'in none of the runs' "but not of one that each lacks" '/odd<enter>tspeed>1<enter>'
run runs
grep -q 'odd-newt .*Perple' out
ok $? "as etude runs does"

# Keys that no run has.
run runs stat=finished
exits 64 "a filter with a key that no run has is refused: exit 64"
says err "no run has the key 'stat' (did you mean 'state'?)" "with what was meant"
run runs 'acc>0.9'
says err "no run has the key 'acc' (did you mean 'Accuracy'?)" "the beginning of a name means it"
run runs 'ac>0.9'
is "$(grep -c "no run has the key 'ac'$" err)" 1 "but not two letters of it"
run runs has:optimizer.lrr
says err "did you mean 'optimizer.lr'?" "keys of recipes are known"
run runs --sort acuracy
says err "did you mean 'Accuracy'?" "metrics, and those of --sort"
run runs 'accuracy>.5'
exits 0 "one that a run has is taken"
does "no run has the key 'stat' (did you mean 'state'?)" "the screen says it while one types" '/stat=x'
does 'all   ' "and the message goes with its cause" '/stat=x<esc>'

mkdir less && (cd less && "$ET_BUILDDIR/t/tui/rivals" metrics/eval/CrossEntropy >out 2>err)
for by in time samples; do
    shows compare-less-$by "of a metric that is to be small the least is best, by $by" \
        compare less/runs/base-r50 less/runs/calm-heron less/runs/fond-lynx less/runs/early-mole \
        --pareto $by --dump-screen 80x24
done
finish
