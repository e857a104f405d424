#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `etude weights`: what is in weight files, what differs, and another file of the same.
. "$(dirname "$0")/cli.sh"

# floats FILE VALUES...: a safetensors file of one f32 tensor, w
floats() {
    perl -e '
        my ($path, @v) = @ARGV;
        my $n = @v;
        my $h = sprintf q({"__metadata__":{"who":"me"},"w":{"dtype":"F32","shape":[%d],).
                        q("data_offsets":[0,%d]}}), $n, 4 * $n;
        open my $f, ">:raw", $path or die;
        print $f pack("Q<", length $h), $h, pack("f<*", @v);' "$@"
}
floats a.safetensors 1 2 3
floats b.safetensors 1 2.5 3
floats c.safetensors 1 2 3 4
cp a.safetensors same.safetensors

run weights ls a.safetensors
exits 0 "weights ls reads a file"
says out "a.safetensors" "names it"
says out "who: me" "and what it says of itself"
grep -Eq '^  w +f32 +\[3\] +12 B$' out
ok $? "a line for each tensor"
says out "1 tensors, 3 values" "and totals"
run weights ls a.safetensors c.safetensors --json
says out '"n_values": 4' "several files and --json"
is "$(grep -c '"dtype": "f32"' out)" 2 "are one list"
run weights ls
exits 64 "without a file: exit 64"
run weights list a.safetensors
exits 64 "another word: exit 64"
says err "ls FILE..., diff FILE FILE, convert FILE -o FILE, export RUN --as FORM" "with those there are"

run weights diff a.safetensors same.safetensors
exits 0 "equal files: exit 0"
says out "1 tensors are equal, 0 differ" "is said"
run weights diff a.safetensors b.safetensors
exits 1 "other values: exit 1, as diff has it"
says out "w: 1 of 3 values differ, max 0.5, rms 0.288675" "with what differs"
run weights diff a.safetensors c.safetensors
exits 1 "other shapes: exit 1"
says out "w: f32[3], f32[4]" "with both"
perl -e '
    my $h = q({"v":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},).
            q("w":{"dtype":"F32","shape":[3],"data_offsets":[4,16]}});
    open my $f, ">:raw", "more.safetensors" or die;
    print $f pack("Q<", length $h), $h, pack("f<*", 9, 1, 2, 3);'
for pair in "a.safetensors more.safetensors" "more.safetensors a.safetensors"; do
    run weights diff $pair
    exits 1 "a tensor that one file lacks: exit 1 ($pair)"
    says out "1 tensors are equal, 0 differ (max 0), 1 are in one alone" "is counted"
done
# Two files in which everything differs that can, each thing by other numbers.
perl -e '
    sub put {
        my ($path, @t) = @_;
        my ($h, $data) = ("", "");
        while (my ($name, $type, $shape, $bytes) = splice @t, 0, 4) {
            $h .= sprintf q(%s"%s":{"dtype":"%s","shape":[%s],"data_offsets":[%d,%d]}),
                $h && ",", $name, $type, $shape, length $data, length($data) + length $bytes;
            $data .= $bytes;
        }
        open my $f, ">:raw", $path or die;
        print $f pack("Q<", length($h) + 2), "{$h}", $data;
    }
    my @same = ("equal", "F32", "2", pack "f<*", 7, 8);
    put "p.safetensors", "big", "F32", "3", pack("f<*", 1, 2, 3), @same, "left", "F32", "1",
        pack("f<*", 4), "shape", "F32", "2,3", pack("f<*", 1 .. 6), "small", "F32", "4",
        pack("f<*", 1, 1, 1, 1), "type", "F32", "2", pack("f<*", 1, 2);
    put "q.safetensors", "big", "F32", "3", pack("f<*", 5, 2, 4), @same, "right", "F32", "1",
        pack("f<*", 4), "shape", "F32", "2,4", pack("f<*", 1 .. 8), "small", "F32", "4",
        pack("f<*", 1, 1, 1, 1.5), "type", "F16", "2", pack("v*", 0x3c00, 0x4000);'
run weights diff p.safetensors q.safetensors
exits 1 "files that differ in all ways: exit 1"
is "$(cat out)" "big: 2 of 3 values differ, max 4, rms 2.38048
only in the first: left
only in the second: right
shape: f32[2,3], f32[2,4]
small: 1 of 4 values differ, max 0.5, rms 0.25
type: f32[2], f16[2]
type: 0 of 2 values differ, max 0, rms 0
1 tensors are equal, 4 differ (max 4), 2 are in one alone" "weights diff tells each difference by its own numbers"
run weights diff p.safetensors q.safetensors --json
is "$(tr -d ' \n' <out | sed 's/2.38047[0-9]*/2.38047/')" "$(tr -d '\n' <<'J'
{"first":"p.safetensors","second":"q.safetensors","equal":false,"n_equal":1,
"only_in_first":["left"],"only_in_second":["right"],"different":[
{"name":"big","dtype":["f32","f32"],"shape":[[3],[3]],"values":3,"different":2,"max":4.0,"rms":2.38047},
{"name":"shape","dtype":["f32","f32"],"shape":[[2,3],[2,4]]},
{"name":"small","dtype":["f32","f32"],"shape":[[4],[4]],"values":4,"different":1,"max":0.5,"rms":0.25},
{"name":"type","dtype":["f32","f16"],"shape":[[2],[2]],"values":2,"different":0,"max":0.0,"rms":0.0}]}
J
)" "and as JSON"
run weights diff p.safetensors q.safetensors p.safetensors
exits 64 "weights diff takes two files, not three"
run weights ls p.safetensors --dtype f32
exits 64 "--dtype with ls: exit 64"
run weights convert p.safetensors -o x --as onnx
exits 64 "--as with convert: exit 64"
run weights diff a.safetensors b.safetensors --json
exits 1 "--json exits likewise"
says out '"equal": false' "and says so"
run weights diff a.safetensors same.safetensors --quiet
is "$(cat out)" "" "-q prints differences alone"
run weights diff a.safetensors nothing.safetensors
exits 66 "a file that is not there: exit 66, not 1"

run weights convert a.safetensors -o h.safetensors --dtype f16
exits 0 "weights convert writes a file"
says out "h.safetensors: 1 tensors" "and says so"
run weights diff a.safetensors h.safetensors
exits 1 "it has another dtype"
says out "w: 0 of 3 values differ" "and here the same values"
run weights convert h.safetensors -o f.safetensors --dtype=f32
run weights diff a.safetensors f.safetensors
exits 0 "back again it is equal"
floats huge.safetensors 1e6
run weights convert huge.safetensors -o h.safetensors --dtype f16
exits 0 "a value beyond a half is converted"
says err "1 values are beyond what f16 holds" "with a warning"
cp a.safetensors before
run weights convert a.safetensors -o a.safetensors --dtype f16
exits 73 "never onto its input: exit 73"
cmp -s a.safetensors before
ok $? "which is as it was"
run weights convert a.safetensors
exits 64 "without -o: exit 64"
for name in w.onnx w.pt dir.safetensors/w.bin; do
    run weights convert a.safetensors -o $name
    exits 64 "to $name, which would be no such file: exit 64"
    says err "writes safetensors, no other format: $name" "is told"
done
is "$(ls w.* 2>/dev/null)" "" "and nothing is written"
run weights convert a.safetensors -o x --dtype f8
exits 64 "a dtype that is none: exit 64"
run weights convert a.safetensors -o no/x
exits 73 "a folder that is not there: exit 73"
run weights ls a.safetensors -o x
exits 64 "-o with ls: exit 64"
run weights convert a.safetensors -o x --all
exits 64 "--all with convert: exit 64"

# Checkpoints.
export XDG_STATE_HOME="$dir/state"
tiny r.yaml
run train r.yaml checkpoint.interval=1ba optimizer.momentum=0.9 --run_name brisk-otter \
    --run_directory runs/a --progress none
steps=runs/a/checkpoints/step-00000000000
run weights ls brisk-otter
exits 0 "a run by its name"
says out "checkpoint ep0-ba2 of brisk-otter: epoch 0, batch 2" "means its newest checkpoint"
says out "  optimizer/momentum" "with all it holds"
run weights diff runs/a ${steps}2
exits 0 "its folder too"
run weights diff ${steps}1 ${steps}2
exits 1 "after another batch the weights differ"
grep -q optimizer out
is $? 1 "of the optimizer nothing is said"
run weights diff ${steps}1 ${steps}2 --all
says out "optimizer/" "but with --all"
run weights convert last -o half.safetensors --dtype bf16
exits 0 "a checkpoint's weights are converted"
run weights ls half.safetensors
says out "run: brisk-otter" "and say where they come from"
run weights convert brisk-otter -o ${steps}2/new
exits 73 "into a checkpoint nothing is written: exit 73"
run train r.yaml model.weights=half.safetensors --progress none --run_directory runs/b
exits 0 "they can be trained from"
cp ${steps}2/MANIFEST saved
sed 's/"step": 2/"step": 3/' saved >${steps}2/MANIFEST
run weights ls runs/a
exits 65 "a MANIFEST that was changed: exit 65"
says err "error E3001: step-000000000002: MANIFEST" "is told"
cp saved ${steps}2/MANIFEST
damage ${steps}2/model-00000.safetensors 2000
run weights convert runs/a -o x
exits 65 "so is a value: exit 65"
says err "digest mismatch" "where it is used"
run weights ls nobody
exits 66 "a name that no run has: exit 66"
says err "no run is called 'nobody'" "is told"

# Bad input.
head -c 100 a.safetensors >short.safetensors
printf '\200\002}q.' >model.pt
printf '\377\377\377\377\377\377\377\377{' >long.safetensors
for command in "ls" "diff a.safetensors" "convert -o x"; do
    # shellcheck disable=SC2086
    run weights $command model.pt
    exits 65 "weights $command: a pickle: exit 65"
    says err "model.pt is a pickle; convert it to safetensors elsewhere" "is told"
done
run weights ls short.safetensors
exits 65 "a file cut short: exit 65"
is "$(wc -l <err)" 1 "in one line"
run weights ls long.safetensors
says err "exceeds 16.0 MiB" "a header too long is told"
run weights ls .
exits 66 "a folder without a checkpoint: exit 66"
is "$(ls -d x x.* 2>/dev/null)" "" "nothing was written"
finish
