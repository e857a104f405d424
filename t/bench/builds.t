#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench/cpu/builds.py holds two builds against each other: a line for each row, and a word
# where they do not do the same work.
. "$(dirname "$0")/../tap.sh"
train=$ET_BUILDDIR/bench/train
export ETUDE_TUNE=0 OMP_NUM_THREADS=1

if [ ! -e "$train" ]; then
    skip_all "bench/train is not built"
fi
if ! command -v python3 >/dev/null; then
    skip_all "there is no python3"
fi
own_folder etude-builds
builds() { # WORK SECOND
    python3 "$ET_SRCDIR/bench/cpu/builds.py" --tiny --windows 2 --seconds 0.02 --threads 1 \
        --work "$1" "$train" "$2" >out 2>&1
}
builds mlp-tiny,resnet8-tiny "$train"
is "$(grep -c '^[a-z0-9]*-tiny  *[0-9.]*  *[0-9.]*  *[0-9.]* ([0-9.]* \.\. ' out)" 2 \
    "each row has a line with both speeds and their ratio"
is "$(grep -c 'NOT THE SAME WORK' out)" 0 "one build does the same work twice"
printf '#!/bin/sh\nexec "%s" "$@" lr=0.5\n' "$train" >other
builds mlp-tiny "sh other"
says out 'NOT THE SAME WORK: step' "that one learns faster is told"
builds mlp-tiny "sh -c 'echo broken >&2; exit 1'"
says out 'builds: second: broken' "a build that ends is named, with its last words"
builds nonsense "$train"
says out 'there is no row nonsense; there are ' "so is a row that does not exist"
finish
