#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How a run ended: the page over its charts, `etude show`, and the ways on of both.
. "$(dirname "$0")/screens.sh"
export TERM=xterm-256color
cat >tiny.yaml <<'Y'
max_duration: 2ep
record_interval: 1ba
seed: 3
model: {name: mlp, hidden: 8}
train_data: {name: synthetic_images, type: separable, num_samples: 160, num_unique: 160, channels: 1, resolution: 8, batch_size: 16}
eval_data: {name: synthetic_images, type: separable, num_samples: 32, num_unique: 32, channels: 1, resolution: 8, batch_size: 16}
optimizer: {name: sgd, lr: 0.1}
Y
run train -q tiny.yaml --run_name one
exits 0 "a run finishes"
has 'What next' "Monitor says how it ended, and what can be done" attach one --dump-screen 80x24
says out 'etude train --resume one max_duration=4ep' "with the command that does the same"
says out 'newest of' "and what was kept"
for size in 60x16 80x24 120x36 200x50; do
    run --ascii attach one --dump-screen $size
    is "$(grep -ciE 'finished|ended' out)" 1 "at $size it says once that it finished"
    is "$(grep -c 'accuracy' out)" 1 "and once what came out"
done
has '== loss/train' "esc shows the charts" attach one --dump-screen 80x24 --keys '<esc>'
has 'enter: how it ended' "which say the way back" attach one --dump-screen 80x24 --keys '<esc>'
has 'What next' "and enter that page again" attach one --dump-screen 80x24 --keys '<esc><enter>'
has '| max_duration=4ep ' "r asks with which changes it is resumed" attach one --dump-screen 80x24 --keys r
has '| seed=4 ' "R with which it is rerun" attach one --dump-screen 80x24 --keys R
has 'started with --readonly' "who only watches starts nothing" attach one --dump-screen 80x24 --keys r --readonly
has '[====' "an unknown length has a mark" attach one --dump-screen 80x24 --at 1
run config set ui.motion off
exits 0 "ui.motion: off"
run --ascii attach one --dump-screen 80x24 --at 1
is "$(grep -c '\[====' out)" 0 "takes it away, as it would move"
run config set ui.motion on
run show one
says out '  next         etude train --resume ' "show says the same"
run show one --json
says out '"key": "r"' "also as JSON"
run train -q tiny.yaml seed=4 --run_name two
run attach two --dump-screen 80x24
says out ' on one' "the best earlier run of the recipe is compared with"
run show two
says out ' on one' "in show, too"
run show one
is "$(grep -c ' on two' out)" 0 "later ones are not"
run train -q tiny.yaml seed=5 max_duration=40ep checkpoint=false --run_name before
facts=$(grep -l '"before"' runs/*/run.json)
for state in stopped preempted failed diverged killed finished reached-target; do
    sed -i -E 's/("state": )"[^"]*"/\1"'$state'"/; s/("started": )[0-9.]*/\11/' "$facts"
    run show one
    case $state in
    finished | reached-target) is "$(grep -c ' on before' out)" 1 "one that is $state is" ;;
    *) is "$(grep -c ' on before' out)" 0 "one that is $state is not, though it was there before" ;;
    esac
done
run show two
says out ' on before' "of two the better one"
rm -r "${facts%/run.json}"
run train -q --resume one max_duration=4ep
exits 0 "the first way on does what it says"
has ' resume step-' "which is an event of its own" attach one --dump-screen 100x60 --keys '<esc>/kind=resume<enter>'

run train -q tiny.yaml optimizer.lr=1e38 checkpoint=false --run_name wild
exits 3 "a run diverges"
has 'What helps' "which is told, with what helps" attach wild --dump-screen 120x36
says out "optimizer.lr=0.1 --alg 'gradient_clipping(" "the recipe's own rate, as a tenth of 1e38 diverges too; clipped gradients"
is "$(run attach wild --dump-screen 80x24; sed -n '$p' out)" \
    ' enter choose  r gentler  R rerun  l log  y copy  E export  esc charts  ? help' \
    "hints have the words of the ways that there are"
run train -q tiny.yaml optimizer.lr=1e12 checkpoint=false --run_name burst
exits 3 "one diverges by values that are finite"
has '^' "its chart tells them at the edge" attach burst --dump-screen 80x24 --keys '<esc>'
grep -q '\^ [0-9.]*e[0-9]' out && ! grep -q '^ *[0-9.]*e[0-9]*[+]' out
ok $? "with the greatest, and has no scale for them"
has '^' "so does Compare" compare two burst --dump-screen 100x30 --keys 'xxxmloss<enter>'
# (Beside the sign, or in the row below where curves are in the way.)
sed -n '5,6p' out | grep -qE '[|+].*[0-9]e[0-9]' && ! grep -q '^ *[0-9.]*e[0-9]*[+]' out
ok $? "where the other run's curve keeps its scale"
has '| optimizer.lr=0.1 --alg gradient_clipping(clipping_type=norm,clipping_threshold=1) ' \
    "r asks for it with all of what it proposes" attach wild --dump-screen 120x36 --keys r
run --ascii attach wild --dump-screen 80x24 --keys r
says out '| optimizer.lr=0.1 --alg gradient_clipping(clipping_type=norm,clipping_thresho |' \
    "all of it is seen where a line has no room"
says out '| ld=1)   ' "in the next"
run --ascii attach wild --dump-screen 80x24 --keys 'r<Home>seed=7 <End> tags=[x]'
says out '| seed=7 optimizer.lr=0.1 --alg gradient_clipping(clipping_type=norm,clipping_ |' \
    "where it can be changed"
says out '| threshold=1) tags=[x]   ' "at both ends"
for size in 80x24 100x30; do
    run --ascii attach wild --dump-screen $size
    is "$(tr -s ' \n' ' ' <out | grep -c "optimizer.lr=0.1 --alg 'gradient_clipping(clipping_type=norm,clipping_threshold=1)'")" 1 \
        "at $size the command of the selected way is whole"
done
ba=$("$etude" show wild --json 2>err | sed -n 's/^ *"ba": \([0-9]*\),*$/\1/p' | head -1)
run --ascii runs name=wild --dump-screen 80x24
says out " $((ba * 100 / 20))%" "Runs has how far it came, by batches: it was to have 20"
run train -q tiny.yaml max_duration=1600sp checkpoint=false --run_name sampled
run train -q tiny.yaml max_duration=1600sp --run_name halved
run train -q --resume halved max_duration=800sp
exits 0 "a run that has trained more samples than it is to has nothing to do"
has 'max_duration=3200sp' "and is proposed twice what it has trained" attach halved --dump-screen 120x36
run train -q tiny.yaml --target 'accuracy>=0' max_duration=4ep --run_name there
has 'there --unset target max_duration=8ep' "one that came to its target goes on without" \
    attach there --dump-screen 120x36
run train -q --resume there --unset target max_duration=8ep
run show there
says out ' 8ep 80ba' "to the end"
run train -q --target 'accuracy>=2' --resume there max_duration=9ep
exits 6 "or for another target"
has '] 100%' "of one that is done a length that has no room is not cut" runs name=sampled --dump-screen 80x24
run runs name=sampled
is "$(awk '$2 == "sampled" { print $6 }' out)" 100% "nor is it in etude runs"
run rerun -q wild optimizer.lr=0.1 --alg 'gradient_clipping(clipping_type=norm,clipping_threshold=1)'
exits 0 "and that is a command"

sed 's/lr: 0.1/lr: 1e38/' tiny.yaml >steep.yaml
run train -q steep.yaml checkpoint=false --run_name steep
exits 3 "so does a recipe whose own rate is too high"
has " optimizer.lr=0.1 --alg" "which is followed by its optimizer's usual rate" attach steep --dump-screen 120x36
sed 's/lr: 0.1/lr: 0.3/; s/sgd/adam/' tiny.yaml >gentle.yaml
run train -q gentle.yaml optimizer.eps=1e-38 optimizer.lr=3e37 --run_name apart
exits 3 "one with another optimizer diverges"
has ' optimizer.lr=0.3 --alg' "and is followed by its recipe's own rate" attach apart --dump-screen 120x36

# From which checkpoint.
has 'It goes on from ep4-ba40, the newest of ' "r goes on from the newest checkpoint" attach one --dump-screen 100x30 --keys r
has ', 1 before the newest of' "up chooses an older one" attach one --dump-screen 100x30 --keys 'r<up>'
has ', 1 before the newest of' "up to the oldest, and down again" attach one --dump-screen 100x30 --keys 'r<up><up><up><up><up><up><down>'
says out '| max_duration=8ep ' "and what is typed stays"

# The control menu of a run that goes on: each entry is the command that it names.
run train -q -d tiny.yaml max_duration=1000000000ep eval_interval=1000000000ep checkpoint=false --run_name live --alg 'label_smoothing(smoothing=.1)'
until_true '"$etude" set live optimizer.lr=0.05 >out 2>err'
has 'set the rate...' "the menu of a run that goes on sets the rate" attach live --dump-screen 120x36 --keys c
says out 'etude algo live label_smoothing off' "and switches algorithms, with the command"
says out 'etude pause live' "as every entry names its command"
run algo live label_smoothing off
exits 0 "which is one"

has '| 0.05 ' "the rate that is asked for begins with what it was set to" attach live --dump-screen 80x24 --keys cl
says out 'it is .0500 now' "and what it is now is said"
until_true '"$etude" attach live --dump-screen 80x24 >out 2>err </dev/null; grep -q "ETA ~*[0-9]" out'
grep -q ' next at 1,000,000,000ep' out
ok $? "a number that has commas is not cut at one"
grep -qE 'ETA ~?[0-9]+d[0-9]+h \([0-9]{2}-[0-9]{2}\)' out
ok $? "an end that is days ahead has its day, not a time of day"
until_true '"$etude" --ascii attach live --dump-screen 100x30 >out 2>err </dev/null; ! grep -q "no rank has said" out'
grep -q '^-- ranks -* cpu -* ram -* own ' out
ok $? "each gauge of the ranks has its heading"
run --ascii attach live --dump-screen 80x24 --keys r
grep -q '^-- ranks by own -' out
ok $? "and none where their order is told"

# What its recipe does not name stands behind them, and joins.
run attach live --dump-screen 120x36 --keys c
says out 'turn label_smoothing on ' "one that is off can be turned on"
says out 'not in the run' "those that the run has not stand apart"
says out 'etude algo live ema on' "each with its command"
says out 'turn blurpool on ' "what changes the model is among them"
for size in 80x24 60x16; do
    run attach live --dump-screen $size --keys 'cjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjj'
    says out 'same as: etude algo live weight_standardization on' "at $size the whole command of the selected row is seen"
    says out 'turn weight_standardization on' "also of the last one"
done
run attach live --dump-screen 80x24 --keys 'cjjjjjjj'
says out 'same as: etude algo live label_smoothing on' "rows are gone through one by one"
run attach live --dump-screen 80x24 --keys 'cjjjjjjjjjjjjjjj<enter>'
says out 'done after batch' "but for the heading: enter on ema has it join"
run show live
says out 'label_smoothing ema' "the run has it from then on"
run attach live --dump-screen 120x36 --keys c
says out 'etude algo live ema off' "and the menu turns it off"
run attach live --dump-screen 80x24 --keys 'cjjjjjjjjjjjjjjjjjjj<enter>'
says out 'clipping_type=norm clipping_threshold=' "one that has to be told something asks for that"
says out 'same as: etude algo live gradient_clipping on OPTION=VALUE' "and has its command, too"
run attach live --dump-screen 80x24 --keys 'cjjjjjjjjjjjjjjjjjjj<enter><enter>'
says out 'clipping_threshold= needs a value' "all of it"
run attach live --dump-screen 80x24 --keys 'cjjjjjjjjjjjjjjjjjjj<enter>1<enter>'
says out 'done after batch' "before it joins"
grep -qa 'algo gradient_clipping on clipping_type=norm clipping_threshold=1 -> joined' runs/*/events.log
ok $? "with what was typed"
run attach live --dump-screen 80x24 --readonly --keys c
says out 'Nothing can be asked of it: started with --readonly' "a viewer is told why nothing can be"
says out 'turn ema off  (not now)' "at every row"
run kill live

# However many algorithms a recipe has.
where=$(dirname "$(grep -l '"live"' runs/*/run.json | head -1)")
until_true 'grep -q "\"state\": \"killed\"" "$where/run.json"'
awk '/^algorithms:/ { print; for (i = 1; i <= 24; i++) print "  made_up_" i ":"; next } { print }' \
    "$where/recipe.resolved.yaml" >long && mv long "$where/recipe.resolved.yaml"
run attach live --dump-screen 80x24 --keys '<esc>cjjjjjjjjjjjjjjjjjjjjjjjjjjjjjj'
says out 'turn made_up_24 off' "the menu has a row for each"
finish
