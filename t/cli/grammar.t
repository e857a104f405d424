#!/bin/sh
# The command line: what is understood, and how everything else is refused.
. "$(dirname "$0")/cli.sh"
tiny r.yaml

run
exits 64 "no arguments: exit 64"
says out "COMMAND" "with the short help"
run help
exits 0 "help is a command"
run help train
says out "--nproc" "help on a command lists its options"
run train --help
says out "--nproc" "--help is the same"
run frobnicate
exits 64 "an unknown command: exit 64"
says err "etude: error E1104: unknown command 'frobnicate'" "in the form of all errors"
run trian r.yaml
says err "did you mean 'train'?" "a near name is suggested"
run train --progess none r.yaml
exits 64 "an unknown option: exit 64"
says err "unknown option --progess (did you mean --progress?)" "and what was meant"
run train --prog none r.yaml
exits 64 "long options are not abbreviated"
run train -Z r.yaml
exits 64 "an unknown letter: exit 64"
run train --progress loud r.yaml
exits 64 "a choice that is none: exit 64"
run train --nproc
exits 64 "an option without its value: exit 64"
run train --nproc x r.yaml
exits 64 "a number that is none: exit 64"
run validate --nproc 1 r.yaml
exits 64 "an option of another command: exit 64"
run train
exits 64 "train without a recipe: exit 64"
run train r.yaml r.yaml
exits 64 "train with two recipes: exit 64"
run --json frobnicate
says err '{"code":"E1104"' "errors are JSON where --json stands"

for later in "--nproc 2" "--world-size 2" "--world_size=2" "--base_rank 1" "--on a" "--detach" \
    "-d" "--resume x" "--autoresume" "--master_addr h" "--timeout 5m"; do
    # shellcheck disable=SC2086
    run train $later r.yaml
    exits 69 "$later is not available: exit 69"
done
WORLD_SIZE=2 "$etude" train r.yaml >out 2>err
is $? 69 "a launcher's two ranks are not available: exit 69"

run validate r.yaml
exits 0 "a good recipe validates"
run validate r.yaml optimizer.lr=0.5
exits 0 "settings may follow"
run validate -- r.yaml
exits 0 "-- ends the options"
run validate r.yaml --quiet
exits 0 "options may follow operands"
is "$(wc -c <out)" 0 "--quiet says nothing"
mkdir sub && mv r.yaml sub
run -C sub validate r.yaml
exits 0 "-C works in another folder"
run -C nowhere validate r.yaml
exits 66 "-C to no folder: exit 66"
mv sub/r.yaml .

run version
says out "etude " "version says it"
run -V
says out "etude " "-V says it"
run version --verbose --json
says out '"devices"' "version --verbose names the devices"
run algorithms
says out "label_smoothing" "algorithms lists them"
run algorithms 'label*' --json
says out '"name": "label_smoothing"' "algorithms takes a pattern and --json"
run algorithms nothing_like_it
exits 66 "a pattern that matches nothing: exit 66"
run explain label_smoothing
says out "smoothing" "explain shows a component's options"
run explain --origin r.yaml optimizer.lr=0.25
says out "optimizer.lr = 0.25" "explain --origin shows values"
says out "command line" "and where they come from"
run explain r.yaml --alg 'label_smoothing(smoothing=.2)'
says out "label_smoothing" "explain shows who acts"
run recipes
says out "fashion_mnist" "recipes lists the installed ones"
run recipes fashion_mnist
says out "max_duration" "recipes NAME prints it"
run recipes fashion_mnist --copy .
exits 0 "recipes --copy copies it"
run recipes fashion_mnist --copy .
exits 73 "but never over a file: exit 73"
run recipes no_such
exits 66 "an unknown recipe: exit 66"
for name in "$ET_SRCDIR"/recipes/*.yaml; do
    run validate "$name"
    exits 0 "$(basename "$name") validates"
done
run data ls
says out "fashion_mnist" "data ls lists datasets"
run data inspect synthetic_images num_samples=20
says out "20 of 32 x 32" "data inspect looks into one"
run data inspect synthetic_images num_samples=20 --json
says out '"n_samples": 20' "as JSON too"
run data inspect nothing
exits 66 "an unknown dataset: exit 66"
run data inspect text_bytes path=nowhere
exits 66 "data that are not there: exit 66"
run data prepare
exits 69 "data prepare is not available: exit 69"
finish
