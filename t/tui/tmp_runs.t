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
all='       '
screen 80x24-compare-others "of more runs than have columns, those in the middle" 80x24 "${at}${all}C<right><right>"
screen 120x36-compare-all "with more room, the last of them" 120x36 "${all}C<right><right><right><right><right>"
screen 120x36-pareto-samples "samples for time, of all runs" 120x36 "$at${all}Pxxx<right>"
screen 60x16-compare "where there is no room for curves, the table alone, moved" 60x16 "$at${marks}Cjjjjj"
mkdir less && (cd less && "$ET_BUILDDIR/t/tui/rivals" metrics/eval/CrossEntropy >out 2>err)
for by in time samples; do
    shows compare-less-$by "of a metric that is to be small the least is best, by $by" \
        compare less/runs/base-r50 less/runs/calm-heron less/runs/fond-lynx less/runs/early-mole \
        --pareto $by --dump-screen 80x24
done
rm -r less
finish
