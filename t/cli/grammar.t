#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
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
run version
exits 0 "version is a command"
version=$(cat out)
for arguments in --version -V 'train --version' 'version -V'; do
    # shellcheck disable=SC2086
    run $arguments
    is "$code $(cat out err)" "0 $version" "$arguments prints the same, and does nothing else"
done
# Commands to a run are looked at before the run is: nobody is.
long=$(printf '%0300d' 7)
refused() {
    want=$1
    shift
    run "$@"
    is "$code $(sed -n 's/^etude: error E[0-9]*: //p' err)" "64 $want" "$1 is refused: $want"
}
refused "algo takes a run, an algorithm, and on or off" algo nobody mixup
refused "algo takes a run, an algorithm, and on or off" algo nobody mixup on more
refused "algo takes a run, an algorithm, and on or off" algo nobody mixup maybe
refused "options are for an algorithm that is switched on" algo nobody mixup off alpha=0.2
refused "algo: options have at most 159 bytes, and no blanks" algo nobody mixup on alpha="0.2 0.3"
refused "algo: options have at most 159 bytes, and no blanks" algo nobody mixup on alpha="$long"
refused "loglevel takes a run, and debug, info, warn or error" loglevel nobody
refused "loglevel takes a run, and debug, info, warn or error" loglevel nobody loud
refused "set takes a run and at least one key=value" set nobody
for command in pause continue stop checkpoint; do
    refused "$command takes one run" $command
    refused "$command takes one run" $command nobody else
done
refused "annotate takes a run and a text, in quotes if it has blanks" annotate nobody two words
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
for value in 2x '' -1 ' 2' 0x2 2.5 99999999999999999999; do
    run runs --limit "$value"
    is "$code $(grep -c "expected a number >= 0, got '$value'" err)" "64 1" "nor is '$value' one"
done
run validate --nproc 1 r.yaml
exits 64 "an option of another command: exit 64"
run train
exits 64 "train without a recipe: exit 64"
run train r.yaml r.yaml
exits 64 "train with two recipes: exit 64"
run --json frobnicate
says err '{"code":"E1104"' "errors are JSON where --json stands"

for later in "--world-size 2" "--world_size=2" "--base_rank 1" "--on a,b" \
    "--master_addr h"; do
    # shellcheck disable=SC2086
    run train $later r.yaml
    exits 69 "$later is not available: exit 69"
done
for ranks in WORLD_SIZE=2 SLURM_NTASKS=2 RANK=1 BASE_RANK=1 NODE_RANK=1; do
    env $ranks "$etude" train r.yaml >out 2>err
    is $? 69 "$ranks of a launcher is not available: exit 69"
done
WORLD_SIZE=2 "$etude" train -n 2 --base_rank 1 r.yaml >out 2>err
is "$? $(grep -c 'base_rank 1 (--base_rank) + nproc 2 (--nproc) > world_size 2 (WORLD_SIZE)' err)" \
    "64 1" "a conflict is refused, and both sources are named"
WORLD_SIZE=many "$etude" train r.yaml >out 2>err
is $? 64 "WORLD_SIZE=many is no number: exit 64"
for wrong in "--nproc 0" "-n -1" "--world_size 0" "--base_rank -1"; do
    # shellcheck disable=SC2086
    run train $wrong r.yaml
    exits 64 "$wrong is no number of ranks: exit 64"
done
for every in 0ba 0s -5s 1ep 10sp x; do
    run train r.yaml --progress plain --every "$every"
    exits 64 "--every $every: exit 64"
done
is "$(ls)" "err
out
r.yaml" "nothing that is refused leaves a file"

run validate r.yaml
exits 0 "a good recipe validates"
run validate r.yaml optimizer.lr=0.5
exits 0 "settings may follow"
run validate -- r.yaml
exits 0 "-- ends the options"
run validate --json r.yaml nowhere.yaml
is "$(cat out)" '{"recipe": "r.yaml", "valid": true}
{"recipe": "nowhere.yaml", "valid": false}' "--json has a line for each recipe"
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
run version --json
perl -0ne 'my %v = (/"([a-z_]+)": ("[^"]*"|[0-9]+|true|false)/g); my ($cpu) = /"name": "cpu",(.*?)\}/s;
    my %cpu = ($cpu =~ /"([a-z_]+)": ("[^"]*"|[0-9]+|true|false)/g); s/^"|"$//g for values %v, values %cpu;
    print "etude $v{version}, device ABI $v{device_abi}\n";
    printf "device   cpu  %s, %d threads, %.0f, %s\n", $cpu{hardware}, $cpu{threads}, $cpu{memory_bytes} / 1e9, $cpu{library} if $cpu{answers} eq "true";
    print "library  $_ $v{$_}\n" for qw(libfyaml jansson zlib xxhash);
    print "built    $v{built_with}\n"' out >want
run version -v
is "$(grep -v -e 'device   cuda' -e '^library  /' -e ' no: ' out | sed -E 's/ threads, ([0-9.]+) GB/ threads, \1/' |
    awk '/threads/ { for (i = 1; i <= NF; i++) if ($i == "threads,") { n = i + 1 } x = $n; sub(/,/, "", x); sub($n, sprintf("%.0f,", x)) } { print }')" \
    "$(cat want)" "version -v says of the program, its processor and its libraries what its JSON has"
run -V
says out "etude " "-V says it"
run version --verbose --json
says out '"devices"' "version --verbose names the devices"
run algorithms
says out "label_smoothing" "algorithms lists them"
says out "at before_loss after_loss" "with the events they act at"
says out "smoothing=0.1" "and their options' defaults"
run algorithms 'label*' --json
says out '"name": "label_smoothing"' "algorithms takes a pattern and --json"
run algorithms nothing_like_it
exits 66 "a pattern that matches nothing: exit 66"
run explain label_smoothing
says out "smoothing" "explain shows a component's options"
run explain early_stopper
says out "patience" "of a callback likewise"
NO_COLOR=1 CLICOLOR_FORCE=1 "$etude" frobnicate 2>err
says err "etude: error E1104" "NO_COLOR is stronger than CLICOLOR_FORCE"
NO_COLOR='' CLICOLOR_FORCE=1 "$etude" frobnicate 2>err
says err "$(printf '\033[1;31merror')" "an empty NO_COLOR is none"
run frobnicate --color always
says err "$(printf '\033[1;31merror')" "--color always forces"
run explain --origin r.yaml optimizer.lr=0.25
says out "optimizer.lr = 0.25" "explain --origin shows values"
says out "command line" "and where they come from"
run explain --origin r.yaml optimizer.lr=0.25 --json
is "$(grep -A1 '"path": "optimizer.lr"' out | tail -n 1)" '    "value": "0.25",' "as JSON too"
run explain r.yaml --alg ema --json
says out '"event": "batch_end"' "explain --json has the timeline"
says out '"optimizer": "sgd"' "and what the recipe is made of"
run explain ema --json
says out '"batch_end"' "explain NAME --json has an algorithm's events"
run explain r.yaml --alg 'label_smoothing(smoothing=.2)'
says out "label_smoothing" "explain shows who acts"
run train r.yaml --alg seq_length_warmup --progress none --run_directory of-words
exits 65 "a method that does not fit the model: exit 65"
says err "seq_length_warmup needs a language model, as gpt2 and bert are; this is" "and why"
run recipes
says out "fashion_mnist" "recipes lists the installed ones"
run recipes fashion_mnist
says out "max_duration" "recipes NAME prints it"
mkdir -p one/etude/recipes two/etude/recipes
for at in one two; do sed "1s/.*/# of $at/" out >$at/etude/recipes/of_$at.yaml; done
XDG_DATA_DIRS="$PWD/one:$PWD/two" run recipes
says out of_one "recipes of the first folder of XDG_DATA_DIRS are listed"
says out of_two "and those of the last"
XDG_DATA_DIRS="$PWD/one:$PWD/two" run recipes of_one
says out "# of one" "and are found"
mkdir -p three/recipes/deep one/etude/recipes/deep
echo '# mine' >three/recipes/of_one.yaml
echo 'max_duration: 1ep' >one/etude/recipes/deep/bare.yaml
printf '#  of   one \nseed: 1\n' >one/etude/recipes/deep/mine.yaml
echo '# of mine' >three/recipes/deep/mine.yaml
own() { ETUDE_CONFIG_DIR="$PWD/three" XDG_DATA_DIRS="$PWD/one:$PWD/two" run "$@"; }
own recipes
is "$(grep -e 'of_one' -e 'of_two' -e '^deep' out | tr -s ' ' | sort | tr '\n' '|')" \
    "deep/bare |deep/mine of mine|of_one mine|of_two of two|" "each is listed once, from the folder that comes first, with its first comment"
cp out all
own recipes --json
is "$(sed -n 's/^ *"name": "\(.*\)",*/\1/p' out)" "$(sed 's/ .*//' all)" "the list as JSON has the same names"
is "$(perl -0ne 'print "$1 $2|" while /"name": "(of_one|of_two|deep.mine|deep.bare)",\s*"title": "(.*)"/g' out | tr '|' '\n' | sort | tr '\n' '|')" \
    "deep/bare |deep/mine of mine|of_one mine|of_two of two|" "and titles"
is "$(sed -n 's/^ *"path": "\(.*\)",*/\1/p' out | grep -e of_one -e deep/ | sort | tr '\n' '|')" \
    "$PWD/one/etude/recipes/deep/bare.yaml|$PWD/three/recipes/deep/mine.yaml|$PWD/three/recipes/of_one.yaml|" "and where each is"
own recipes of_one
is "$(cat out)" "# mine" "the first folder's is the one that is meant"
own recipes of_one --json
is "$(tr -d '\n' <out | tr -s ' ')" "{ \"name\": \"of_one\", \"path\": \"$PWD/three/recipes/of_one.yaml\", \"text\": \"# mine\\n\"}" "also as JSON"
rm -r three one/etude/recipes/deep
run recipes fashion_mnist --json
says out '"text": "# ' "as JSON too"
run recipes fashion_mnist --copy .
exits 0 "recipes --copy copies it"
run recipes fashion_mnist --copy .
exits 73 "but never over a file: exit 73"
mkdir own
run recipes speedup/bible_hot --copy own
is "$(sort out)" "own/bible_baseline.yaml
own/bible_hot.yaml" "with what it includes, and not with what its comments speak of"
run validate own/bible_hot.yaml
exits 0 "so that the copy runs"
run recipes speedup/bible_medium --copy own
is "$(cat out)" own/bible_medium.yaml "what is there already, and the same, stays"
rm own/bible_hot.yaml
echo '# mine' >>own/bible_baseline.yaml
run recipes speedup/bible_hot --copy own
exits 73 "where it is another, nothing is copied: exit 73"
says err 'cannot write own/bible_baseline.yaml: File exists' "which says what is in the way"
[ ! -e own/bible_hot.yaml ]
ok $? "... not even a part"
run recipes bible_parts --copy own
is "$(sort out)" "own/bible_parts.yaml
own/bible_vocab.txt
own/make_verses.py" "a tokenizer goes along, and the script that makes the data"
run recipes no_such
exits 66 "an unknown recipe: exit 66"
run recipes
says out "speedup/bible_hot        bible_medium.yaml, shorter" \
    "recipes of a folder are listed with it"
grep -vE '([.?]|: etude train -m [a-z0-9_]+)$' out >broken
is "$(cat broken)" "" "each is told of in whole sentences, of one line"
run recipes speedup/bible_hot
says out "include: [bible_baseline.yaml]" "and are found by that name"
run validate -m speedup/bible_hot
exits 0 "with what they include"
for name in ../recipes/wine speedup/../wine speedup/ /wine speedup/deeper/wine; do
    run recipes "$name"
    exits 66 "'$name' leads to no recipe: exit 66"
done
for name in "$ET_SRCDIR"/recipes/*.yaml "$ET_SRCDIR"/recipes/speedup/*.yaml; do
    run validate "$name"
    case $name in
    */bible_parts.yaml) exits 66 "bible_parts.yaml lacks the weights of another run alone" ;;
    *) exits 0 "$(basename "$name") validates" ;;
    esac
done
run data ls
says out "fashion_mnist" "data ls lists datasets"
run data inspect synthetic_images num_samples=20
says out "20 of 32 x 32" "data inspect looks into one"
run data inspect synthetic_images num_samples=20 --json
says out '"n_samples": 20' "as JSON too"
mkdir -p photos/cats photos/dogs
printf 'P5 no' >photos/dogs/a.jpg
run data inspect imagefolder path=photos
exits 0 "a picture that cannot be read is no reason to fail"
says out "unreadable 1, the first: photos/dogs/a.jpg: it does not begin as" "it is counted, and named"
run data inspect text_bytes
exits 64 "a dataset without the file it needs: exit 64"
says err "needs path=" "says which option is missing"
run version please
exits 64 "version with an operand: exit 64"
run data inspect nothing
exits 66 "an unknown dataset: exit 66"
run data inspect text_bytes path=nowhere
exits 66 "data that are not there: exit 66"
run data prepare
exits 69 "data prepare is not available: exit 69"
finish
