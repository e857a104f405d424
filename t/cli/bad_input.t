#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Bad input, the rows of RELIABILITY.md section 9 for every kind of input that there is:
# the line, its number, the exit code, and that nothing else has changed. Files with a
# header that lies (R31), weights of other formats, checkpoints (R33), runs.
. "$(dirname "$0")/cli.sh"
tiny good.yaml
mkdir -m 700 .sockets/etude # the first run that is started makes it

# What the folder holds, and all bytes of it. (A folder's size is the file system's business.)
tree() {
    find . -path ./out -o -path ./err -o -path ./state -prune -o -print0 | sort -z |
        xargs -0 ls -ld --time-style=full-iso | sed 's/^d\(.*[^ ]\)  *[0-9][0-9]* 20[0-9][0-9]-.* \(.*\)$/d\1 \2/'
    find . -path ./out -o -path ./err -o -path ./state -prune -o -type f -print0 | sort -z | xargs -0 cksum
}

# refuses NAME EXIT CODE TEXT ARGS...
refuses() {
    name=$1 exit=$2 number=$3 text=$4
    shift 4
    tree >"$dir.before"
    run "$@"
    line=$(grep -m 1 '^etude: error' err)
    case "$code $line" in
    "$exit etude: error $number: "*"$text"*) ok 0 "$name: $number, exit $exit" ;;
    *) ok 1 "$name: $number, exit $exit" ;;
    esac
    ! grep -q "$(printf '[\001-\010\013-\037\177]')" err || ok 1 "$name: no control character"
    tree >"$dir.after"
    cmp -s "$dir.before" "$dir.after" || ok 1 "$name: nothing else changed"
}
trap 'rm -rf "$dir" "$dir.before" "$dir.after"' EXIT

# with LINE...: good.yaml and these lines, as r.yaml
with() {
    cp good.yaml r.yaml
    printf '%s\n' "$@" >>r.yaml
}

# ---- command line ----

refuses "an unknown option" 64 E1101 "unknown option --run_nmae (did you mean --run_name?)" \
    train good.yaml --run_nmae x
refuses "a letter that is none" 64 E1101 "unknown option -1" train -1 good.yaml
refuses "a value that does not fit" 64 E1102 "--color: expected auto, always or never, got 'blue'" \
    train good.yaml --color blue
refuses "a value that is missing" 64 E1102 "--run_name needs a value" train good.yaml --run_name
refuses "an operand that is missing" 64 E1103 "validate needs a recipe" validate
refuses "an operand too many" 64 E1103 "train takes one recipe, not also 'b'" train a b
refuses "an unknown command" 64 E1104 "unknown command 'trian' (did you mean 'train'?)" trian
refuses "a folder that is not there" 66 E1107 "cannot enter nowhere: No such file" -C nowhere runs

# ---- recipe: the file ----

refuses "no recipe" 66 E1201 "cannot read nowhere.yaml: No such file" train nowhere.yaml
says err "  hint: " "with what to try"
refuses "a folder" 66 E1201 "cannot read .: Is a directory" train .
if [ "$(id -u)" -ne 0 ]; then
    cp good.yaml locked.yaml
    chmod 0 locked.yaml
    refuses "a file that may not be read" 66 E1201 "cannot read locked.yaml: Permission denied" \
        train locked.yaml
    rm locked.yaml
fi
head -c 3250585 /dev/zero | tr '\0' '#' >r.yaml
refuses "3.1 MiB" 65 E1202 "r.yaml: 3.1 MiB exceeds 256 KiB" train r.yaml
printf 'a: \0' >r.yaml
refuses "a NUL" 65 E1202 "r.yaml: byte 3 is NUL" train r.yaml
printf 'a: \377' >r.yaml
refuses "a byte that is not UTF-8" 65 E1202 "r.yaml: byte 3 is not UTF-8" train r.yaml
printf 'a: \033[2J' >r.yaml
refuses "an escape" 65 E1202 "r.yaml: byte 3 is a control character" train r.yaml

# ---- recipe: its text ----

with "x: {a: 1"
refuses "syntax" 65 E1202 "r.yaml:7:4: mapping not closed" train r.yaml
with "x: [[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]"
refuses "depth" 65 E1211 "nesting deeper than 16" train r.yaml
{
    cat good.yaml
    echo "a: &a [x,x,x,x,x,x,x,x,x,x]"
    echo "b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]"
    echo "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]"
    echo "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]"
} >r.yaml
refuses "aliases" 65 E1211 "aliases expand to more than 10,000 nodes" train r.yaml
with "x: !!python/object 1"
refuses "a tag" 65 E1212 "r.yaml:7:4: tag !!python/object not allowed" train r.yaml
with "seed: 4"
refuses "a key twice" 65 E1204 "r.yaml:7:1: key 'seed' already set at 2:1" train r.yaml
refuses "an unknown key" 65 E1205 "unknown key 'optimizer.momentun' (did you mean 'optimizer.momentum'?)" \
    train good.yaml optimizer.momentun=1
grep -v max_duration good.yaml >r.yaml
refuses "a missing key" 65 E1206 "r.yaml:1:1: key 'max_duration' is missing" train r.yaml
with "precision: fp33"
refuses "a choice" 65 E1203 "r.yaml:7:12: precision: expected one of auto, fp32" train r.yaml
refuses "a type" 65 E1203 'optimizer.lr: expected number >= 0, got "1e-3x"' \
    train good.yaml optimizer.lr=1e-3x
says err "  hint: write 1e-3" "and what was meant"
refuses "a range" 65 E1203 "optimizer.lr: expected number >= 0, got -1" train good.yaml optimizer.lr=-1
refuses "a model and data of other kinds" 65 E1207 "model gpt2 reads tokens" train good.yaml \
    'model={name: gpt2, n_layers: 1, d_model: 8, n_heads: 1, max_seq_len: 8, vocab_size: 256}'
with "loggers: {file: {filename: ../../x}}"
refuses "an output outside" 65 E1208 "r.yaml:7:28: loggers.file.filename: output '../../x' leaves the run directory" \
    train r.yaml
with "include: [../x.yaml]"
refuses "an include outside" 65 E1208 "r.yaml:7:11: include '../x.yaml' leaves the recipe's folder" train r.yaml
ln -s good.yaml link.yaml
with "include: link.yaml"
refuses "an include through a link" 66 E1201 "r.yaml:7:10: cannot read link.yaml: it is a link" train r.yaml
with "include: r.yaml"
refuses "an include of itself" 65 E1208 "include 'r.yaml' is nested deeper than 4" train r.yaml
# shellcheck disable=SC2016
with 'run_name: "${env:AWS_KEY}"'
AWS_KEY=x refuses "the environment" 65 E1209 "r.yaml:7:11: environment variable AWS_KEY is not allowed in recipes" \
    train r.yaml
is "$(grep -c 'error E' err)" 1 "and no word of what comes of that"
# shellcheck disable=SC2016
with 'run_name: "${cmd:id}"'
# shellcheck disable=SC2016
refuses "a command" 65 E1209 'r.yaml:7:11: ${cmd:id} is not known here' train r.yaml
with "api_token: 3"
refuses "a secret's key" 65 E1210 "r.yaml:7:1: 'api_token' looks like a secret; recipes are copied and shown" \
    train r.yaml
with "API_KEY: 3"
refuses "one in capitals" 65 E1210 "r.yaml:7:1: 'API_KEY' looks like a secret; recipes are copied and shown" \
    train r.yaml
with "run_name: ghp_0123456789012345678901234567"
refuses "a secret's value" 65 E1210 "r.yaml:7:11: run_name: the value looks like a secret" train r.yaml
! grep -q ghp_ err
ok $? "which is not shown"
rm link.yaml

# ---- data: headers that lie ----

cat >idx.yaml <<'R'
max_duration: 2ba
seed: 3
model: {name: mlp, hidden: 16, layers: 1}
train_data: {name: idx, path: d, images: x, labels: y, batch_size: 2, workers: 0}
optimizer: {name: sgd, lr: 0.1}
R
mkdir d
# idx FILE DIMS... then the bytes of standard input: an IDX header and them
idx() {
    file=$1
    shift
    # shellcheck disable=SC2059
    {
        printf '\0\0\010\00'$#
        for size; do
            printf "\\$(printf %03o $((size >> 24 & 255)))\\$(printf %03o $((size >> 16 & 255)))"
            printf "\\$(printf %03o $((size >> 8 & 255)))\\$(printf %03o $((size & 255)))"
        done
        cat
    } >"d/$file"
}
zeros() {
    head -c "$1" /dev/zero
}
zeros 16 | idx x 4 2 2
printf '\0\001\002\003' | idx y 4
run train idx.yaml --dry-run
exits 0 "an honest pair of IDX files"
cp d/x x
echo "hello, world" >d/x
refuses "IDX magic" 65 E2002 "d/x: bad magic 68656c6c, not an IDX file" train idx.yaml
says err "  hint: etude data inspect" "with what to try"
zeros 15 | idx x 4 2 2
refuses "IDX, a byte less than its header says" 65 E2002 "d/x: header says 4x2x2 (32 bytes), file has 31" \
    train idx.yaml
zeros 16 | idx x 60000 28 28
refuses "IDX that claims 60,000 images" 65 E2002 "d/x: header says 60000x28x28 (47040016 bytes), file has 32" \
    train idx.yaml
zeros 0 | idx x 4294967295 4294967295 4294967295
refuses "IDX that claims 2^96 bytes" 65 E2002 "more than any file holds" train idx.yaml
zeros 0 | idx x 0 2 2
refuses "IDX that claims nothing" 65 E2002 "d/x: header says 0x2x2: no samples" train idx.yaml
: >d/x
refuses "IDX that is empty" 65 E2002 "d/x: 0 bytes are too few for an IDX header" train idx.yaml
printf '\0\0\014\003\0\0\0\004\0\0\0\002\0\0\0\002' >d/x
refuses "IDX of another type" 65 E2002 "IDX type 0x0c, only unsigned bytes (0x08) are read" train idx.yaml
cp x d/x
printf '\0\001\002' | idx y 3
refuses "labels that are too few" 65 E2002 "d/x: 4 images but 3 labels" train idx.yaml
printf '\0\001\002\014' | idx y 4
refuses "a label beyond the classes" 65 E2002 "d/y: label 12 at index 3 but 10 classes" \
    train idx.yaml train_data.num_classes=10
printf '\0\001\002\003' | idx y 4
gzip <x | head -c 20 >d/x.gz
rm d/x
refuses "gzip that was cut" 65 E2002 "d/x.gz: 20 bytes cannot hold" train idx.yaml
gzip <x >d/x.gz
printf '\0\0\0\001' | dd of=d/x.gz bs=1 seek=$(($(wc -c <d/x.gz) - 4)) conv=notrunc 2>/dev/null
refuses "gzip that claims 16 MiB" 65 E2002 "bytes cannot hold 16777216 bytes" train idx.yaml
rm d/x.gz
refuses "no file" 66 E2001 "d/x: No such file or directory" train idx.yaml
mkdir d/x
refuses "a folder for a file" 65 E2002 "d/x: not a regular file" train idx.yaml
rmdir d/x
mkfifo d/x
refuses "a pipe for a file" 65 E2002 "d/x: not a regular file" train idx.yaml
rm d/x
ln -s x d/x
refuses "a link to itself" 65 E2002 "d/x: not a regular file" train idx.yaml
rm d/x
ln -s /dev/zero d/x
refuses "a device for a file" 65 E2002 "d/x: not a regular file" train idx.yaml
rm d/x

mkdir c
cifar='train_data={name: cifar10, path: c, batch_size: 2}'
for i in 1 2 3 4 5; do zeros 6146 >c/data_batch_$i.bin; done
run train idx.yaml "$cifar" --dry-run
exits 0 "honest CIFAR files"
zeros 3074 >c/data_batch_3.bin
refuses "CIFAR, a byte too many" 65 E2002 "c/data_batch_3.bin: 3074 is not a multiple of 3073" train idx.yaml "$cifar"
: >c/data_batch_3.bin
refuses "CIFAR that is empty" 65 E2002 "c/data_batch_3.bin: 0 bytes: no samples" train idx.yaml "$cifar"
zeros 6146 >c/data_batch_3.bin
printf '\014' | dd of=c/data_batch_3.bin bs=1 seek=3073 conv=notrunc 2>/dev/null
refuses "CIFAR's labels" 65 E2002 "c/data_batch_3.bin: label 12 at index 1 but 10 classes" train idx.yaml "$cifar"
rm c/data_batch_3.bin
refuses "CIFAR without a file" 66 E2001 "c/data_batch_3.bin: No such file" train idx.yaml "$cifar"

cat >tokens.yaml <<'R'
max_duration: 8ba
model: {name: gpt2, n_layers: 1, d_model: 8, n_heads: 1, max_seq_len: 8, vocab_size: 256}
train_data: {name: tokens, path: train.bin, seq_len: 8, batch_size: 2, vocab_size: 256, workers: 0}
optimizer: {name: sgd, lr: 0.1}
R
zeros 400 >train.bin
run train tokens.yaml --dry-run
exits 0 "honest tokens"
zeros 5 >train.bin
refuses "half a token" 65 E2002 "train.bin: 5 bytes is not a multiple of 2" train tokens.yaml
zeros 10 >train.bin
refuses "fewer tokens than a sample has" 65 E2002 "5 tokens (train) but seq_len 8 needs 9" train tokens.yaml
zeros 400 >train.bin
refuses "a header longer than the file" 65 E2002 "train.bin: 400 bytes but a header of 1000" \
    train tokens.yaml train_data.header=1000
refuses "another vocabulary than the model's" 65 E1301 "the data have 50257 tokens, the model's vocab_size is 256" \
    train tokens.yaml train_data.vocab_size=50257
printf '\001\001' | dd of=train.bin bs=2 seek=150 conv=notrunc 2>/dev/null
run train tokens.yaml max_duration=2ep --run_directory far --progress none
exits 65 "a token beyond the vocabulary ends the run: exit 65"
says err "train.bin: token 257 at 150 >= vocabulary 256" "with the token and its place"
says err "etude: error E2002" "as E2002"
rm -r far train.bin

# ---- weights ----

run train good.yaml --run_directory run --progress none
exits 0 "a run"
for name in m.pt m.pth m.ckpt; do
    printf '\200\002}q.' >$name
    refuses "weights ls $name" 65 E2002 "$name is a pickle; convert it to safetensors elsewhere" weights ls $name
done
refuses "a pickle to load" 65 E2002 "m.pt is a pickle" train good.yaml load.path=m.pt load.weights_only=true
refuses "a pickle to evaluate" 65 E2002 "m.pt is a pickle" eval good.yaml --load m.pt
# safetensors HEADER BYTES: a file m with that header and so many bytes of data
safetensors() {
    # shellcheck disable=SC2059
    { printf "\\$(printf %03o $((${#1} & 255)))\\$(printf %03o $((${#1} >> 8)))\0\0\0\0\0\0%s" "$1"; zeros "$2"; } >m
}
safetensors '{"v":{"dtype":"F32","shape":[5],"data_offsets":[0,20]}}' 20
run weights ls m
exits 0 "honest safetensors"
while IFS='|' read -r name header bytes text; do
    safetensors "$header" "$bytes"
    refuses "safetensors: $name" 65 E2002 "$text" weights ls m
done <<'R'
overlap|{"v":{"dtype":"F32","shape":[5],"data_offsets":[0,20]},"w":{"dtype":"F32","shape":[5],"data_offsets":[16,36]}}|36|m: tensor 'w' [16,36) overlaps 'v'
a hole|{"v":{"dtype":"F32","shape":[5],"data_offsets":[0,20]},"w":{"dtype":"F32","shape":[1],"data_offsets":[24,28]}}|28|m: bytes [20,24) belong to no tensor
a tail|{"v":{"dtype":"F32","shape":[5],"data_offsets":[0,20]}}|21|m: bytes [20,21) belong to no tensor
a tail that is missing|{"v":{"dtype":"F32","shape":[5],"data_offsets":[0,20]}}|19|m: tensor 'v' [0,20) ends past the 19 bytes of data
an overflow|{"v":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}|0|m: tensor 'v' f32[4611686018427387904,4] overflows
a negative size|{"v":{"dtype":"F32","shape":[-5],"data_offsets":[0,20]}}|20|m: tensor 'v': shape is not at most 8 sizes
an unknown dtype|{"v":{"dtype":"F33","shape":[5],"data_offsets":[0,20]}}|20|m: tensor 'v' has unknown dtype 'F33'
another size than the shape's|{"v":{"dtype":"F32","shape":[5],"data_offsets":[0,16]}}|16|m: tensor 'v' f32[5] is 20 bytes, not [0,16)
a name twice|{"v":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"v":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}|0|m: header: a key comes twice, byte 57
no JSON|{"v":|0|m: header is not JSON, byte 5
R
printf '\377\377\377\377\377\377\377\177{' >m
refuses "safetensors: a header of 2^63 bytes" 65 E2002 "bytes exceeds 16.0 MiB" weights ls m
printf '\0\0\0\001\0\0\0\0{' >m
refuses "safetensors: a header longer than the file" 65 E2002 "m: " weights ls m

# ---- checkpoints ----

step=run/checkpoints/step-000000000002
# resumes_not NAME EXIT CODE TEXT: the only checkpoint of a copy of the run, "hurt"
resumes_not() {
    run train --resume hurt
    line=$(grep -m 1 '^etude: error' err)
    case "$code $line" in
    "$2 etude: error $3: "*"$4"*) ok 0 "$1: $3, exit $2" ;;
    *) ok 1 "$1: $3, exit $2" ;;
    esac
    [ "$3" != E3001 ] || [ -d "$hurt" ]
    ok $? "$1: it stays where it is, and tells the next attempt that the run has begun"
    is "$(find hurt/checkpoints -type f | wc -l)" "$files" "$1: and no file of it is gone"
}
# hurt: a copy of the run for the next damage
hurt() {
    rm -rf hurt
    cp -r run hurt
    files=$(find hurt/checkpoints -type f | wc -l)
}
hurt=hurt/checkpoints/step-000000000002
hurt
damage $hurt/model-00000.safetensors 900
resumes_not "a byte of the weights" 65 E3001 "step-000000000002: model-00000: digest mismatch"
says err "  hint: etude rerun" "with what to try"
hurt
truncate -s -1 $hurt/state-00000.safetensors
resumes_not "a byte less" 65 E3001 "state-00000: $(($(wc -c <$step/state-00000.safetensors) - 1)) bytes, MANIFEST says"
hurt
sed -i 's/"epoch": 0/"epoch": 1/' $hurt/MANIFEST
resumes_not "a MANIFEST that somebody edited" 65 E3001 "MANIFEST does not have the digest that it says"
hurt
rm $hurt/MANIFEST
files=$((files - 1))
resumes_not "no MANIFEST" 65 E3001 "there is no MANIFEST"
hurt
rm $hurt/model-00000.safetensors
files=$((files - 1))
resumes_not "a file that is missing" 65 E3001 "model-00000: the file is missing"
hurt
mv $hurt hurt/checkpoints/.tmp-000000000002-abcd
run train --resume hurt
exits 65 "only an unfinished one: exit 65"
says err "error E3002: no valid checkpoint under hurt/checkpoints (1 incomplete ignored)" "which is counted"
hurt
sed -i 's/"name": "mlp"/"name": "lenet5"/' hurt/recipe.resolved.yaml
sed -i 's/hidden: 16/hidden: 24/' hurt/recipe.resolved.yaml
run train --resume hurt
exits 65 "another model: exit 65"
says err "error E3001" "as E3001"
rm -rf hurt
refuses "a checkpoint that is not there" 66 E1106 "run has no checkpoint called 'ep9-ba99'" train --resume run/ep9-ba99
refuses "resuming with another rate" 65 E1214 \
    "optimizer.lr is 0.2, saved run has 0.1; resume cannot change it, rerun can" train --resume run optimizer.lr=0.2

# ---- runs and places to write to ----

for command in "show" "logs" "rerun" "train --resume" "annotate" "export --to csv"; do
    text=
    [ "$command" != annotate ] || text=word
    # shellcheck disable=SC2086
    refuses "$command of no run" 66 E1109 "no run is called 'nobody'" $command nobody $text
done
refuses "a directory that holds a run" 73 E7002 "(finished): use --resume, --autoresume or another directory" \
    train good.yaml --run_directory run
touch file
refuses "a file for a directory" 73 E7002 "cannot make file: it is no folder" train good.yaml --run_directory file
says err "  hint: " "with what to try"
refuses "a bucket for a directory" 73 E7002 "s3://bucket/run: a run is kept in a folder of this machine" \
    train good.yaml --run_directory s3://bucket/run
[ ! -e s3: ]
ok $? "and no folder is called so"
refuses "a directory in a file" 73 E7002 "cannot make file: it is no folder" train good.yaml --run_directory file/x
refuses "a log that cannot be written" 73 E7002 "cannot write file/x: Not a directory" \
    train good.yaml --log-file file/x
mkdir broken
echo '{' >broken/run.json
refuses "a run.json that was cut" 73 E7002 "broken holds a run (in an unknown state)" \
    train good.yaml --run_directory broken
finish
