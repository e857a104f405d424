#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `etude compare`: what each run took to its best value and to a target, by each cost; of
# runs that have nothing to compare by; of runs that are alike but for their seed.
. "$(dirname "$0")/cli.sh"
. "$ET_SRCDIR/t/cli/prints.sh"
"$ET_BUILDDIR/t/tui/rivals" || { echo "Bail out! no runs"; exit 99; }
mkdir other alike
(cd other && "$ET_BUILDDIR/t/tui/rivals" metrics/eval/Recall) || exit 99
(cd alike && "$ET_BUILDDIR/t/tui/rivals") || exit 99

# ---- costs ----

# Each is at .5 long before its best, after a time of its own.
set -- base-r50 calm-heron fond-lynx grim-toad --target 'accuracy>=.5'
for by in time samples energy; do
    prints compare-early-$by "what each took to a target that comes before its best, by $by" \
        compare "$@" --pareto $by
    prints compare-early-$by-json "in JSON as well" compare "$@" --pareto $by --json
done
prints compare-best-energy "without a target it is what they took to their best" \
    compare base-r50 calm-heron early-mole --pareto energy
prints compare-cpu "what no run has recorded is said, and where it is from" \
    compare base-r50 calm-heron --pareto cpu
sed -i 's/: 972}/: 42.125}/' runs/calm-heron/report.json
sed -i 's/^seed: 42/seed: 43/; s/lr: 2.4/lr: 0.1234567/' runs/calm-heron/recipe.resolved.yaml
sed -i 's/"dry-finch"/"dry-finch-of-a-long-näme"/; s/finished/failed/' other/runs/dry-finch/run.json
prints compare-unmeasured "a run that has not measured the metric has no best, and a long name its room" \
    compare calm-heron base-r50 other/runs/dry-finch other/runs/calm-heron
prints compare-unmeasured-json "in JSON as well" compare calm-heron other/runs/dry-finch --json

# ---- how many ----

i=1
while [ $i -le 65 ]; do
    mkdir -p many/$i
    cp runs/fond-lynx/run.json runs/fond-lynx/report.json runs/fond-lynx/recipe.resolved.yaml many/$i/
    i=$((i + 1))
done
# shellcheck disable=SC2046
run compare $(seq -f many/%g 1 64)
exits 0 "64 runs are compared"
is "$(sed -n '2s/[^ ]* *//p' out | wc -w)" 64 "each of them"
# shellcheck disable=SC2046
run compare $(seq -f many/%g 1 65)
exits 64 "65 are not: exit 64"

# ---- seeds ----

as() { # RUN AS SEED: RUN has the recipe of AS, and that seed
    sed "s/^seed: .*/seed: $3/" "alike/runs/$2/recipe.resolved.yaml" >recipe
    mv recipe "alike/runs/$1/recipe.resolved.yaml"
}
as calm-heron dry-finch 1
as dry-finch dry-finch 2
as early-mole base-r50 4
as base-r50 base-r50 3
base=alike/runs/base-r50 mole=alike/runs/early-mole finch=alike/runs/dry-finch heron=alike/runs/calm-heron
set -- $base $finch $heron $mole --seeds --target 'accuracy>=.5'
for by in time samples energy; do
    prints compare-seeds-$by "--seeds has medians, by $by" compare "$@" --pareto $by
    prints compare-seeds-$by-json "in JSON with whose they are" compare "$@" --pareto $by --json
done
set -- $mole alike/runs/fond-lynx $heron other/runs/grim-toad $finch $base --seeds
prints compare-seeds-best "without a target to their best" compare "$@"
prints compare-seeds-best-json "in JSON as well" compare "$@" --json

# ---- the picture ----

run compare "$@" --svg front.svg
is "$code $(grep -c '<circle stroke=' front.svg) $(grep -c '<path class="m"' front.svg)" "0 5 1" \
    "--svg draws without --pareto: over the time, with the front"
(
    trap '' XFSZ
    ulimit -f 1
    run compare "$@" --svg full.svg
    exit "$code"
)
is "$? $(ls full.svg 2>/dev/null)" "73 " "a picture that is not whole is not left: exit 73"
ln -s /dev/full full.svg
run compare "$@" --svg full.svg
exits 73 "a device that takes no more: exit 73"
[ -L full.svg ]
ok $? "is not taken away"
finish
