#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A pack (bench/gpu/pack.sh) on another machine: it is unpacked beside a tree of Python's
# CUDA packages and a driver that answers what it is told (t/gpusim/driver.c), and must
# reach that driver. Without a CUDA module in the build the simulator's takes its place.
. "$(dirname "$0")/../tap.sh"
cc=${CC:-cc}
own_folder etude-pack
export OMP_NUM_THREADS=1 ETUDE_CONFIG_DIR="$dir/no-config" XZ_OPT=-0
unset ETUDE_DEVICE ETUDE_CUDA_LIBS CUDA_VISIBLE_DEVICES PYTHON PYTHONPATH PYTHONHOME
unset LD_LIBRARY_PATH

for tool in xz strip ldd "${cc%% *}"; do
    command -v "$tool" >out || skip_all "there is no $tool"
done

if ldd "$ET_BUILDDIR/etude" | grep -qE 'lib[at]san'; then
    skip_all "sanitizers are not taken to another machine"
fi

# ---- what is packed ----

# A build tree without the CUDA module: as this one, and its modules are what we say.
mkdir -p none/.libs
ln -s "$ET_BUILDDIR"/* none/
cp -P "$ET_BUILDDIR"/.libs/libgpusim.so none/.libs/ 2>out
"$ET_SRCDIR/bench/gpu/pack.sh" none refused >out 2>&1
[ $? -eq 1 ] && [ ! -e refused ]
ok $? "a build without the CUDA module is not packed"
says out "none has no CUDA module" "and why is said"

if [ -e "$ET_BUILDDIR/libetude-cuda.la" ]; then
    build=$ET_BUILDDIR real=yes
    module=$build/.libs/libetude-cuda.so
    major=$(readelf -d "$module" | sed -nE 's/.*\[libcudart\.so\.([0-9]+)\]/\1/p')
    toolkit=$(dirname "$(ldd "$module" | awk '$1 ~ /^libcudart/ { print $3 }')")
elif [ -e "$ET_BUILDDIR/libetude-gpusim.la" ]; then
    build=none real=no major=13
    cp "$ET_BUILDDIR/.libs/libetude-gpusim.so" none/.libs/libetude-cuda.so
    [ ! -e "$ET_BUILDDIR/libetude-cpu.la" ] ||
        cp "$ET_BUILDDIR/.libs/libetude-cpu.so" none/.libs/
    skip "no CUDA module was built: the simulator is packed in its place"
else
    skip "neither a CUDA module nor the simulator was built"
    finish
fi
mkdir kept
"$ET_SRCDIR/bench/gpu/pack.sh" "$build" kept >out 2>&1
[ $? -eq 1 ] && [ -d kept ] && [ ! -e kept.tar.xz ]
ok $? "a folder of somebody else's is left as it is"
"$ET_SRCDIR/bench/gpu/pack.sh" "$build" gpu-pack >out 2>&1
ok $? "a pack is made"
tar -tvf gpu-pack.tar.xz | awk '{ print $2 }' | sort -u >out
[ "$(cat out)" = 0/0 ]
ok $? "its archive says nothing of who made it"
mkdir there
tar -C there -xf gpu-pack.tar.xz
ok $? "it can be unpacked elsewhere"
rm -rf gpu-pack gpu-pack.tar.xz
pack=$dir/there/gpu-pack
theirs='^(ld-linux|linux-vdso|lib(c|m|dl|rt|pthread|resolv|util|nsl|stdc\+\+|gcc_s|cu[a-z]*|nv[a-z-]*|nccl)\.so)'
! find "$pack/lib" -printf '%f\n' | grep -E "$theirs" >out
ok $? "it brings no library that must be the other machine's"
for program in "$pack"/elf/t/*/*; do
    head -c 4 "$program" | grep -q ELF || echo "$program"
done >out
[ ! -s out ]
ok $? "its programs are no scripts of libtool's"

for file in "$ET_SRCDIR"/t/golden/*.txt "$ET_SRCDIR"/t/golden/tokenizers/*.json \
    "$ET_SRCDIR"/t/train/told/*.txt "$ET_SRCDIR"/t/train/told/data/*.csv; do
    cmp "$file" "$pack/${file#"$ET_SRCDIR"/}" 2>&1
done >out
[ ! -s out ]
ok $? "what its tests compare with is there"

# ---- the other machine ----

# Folders as Python's packages have them: some hold nothing that Etude asks for.
site=$dir/site
for package in "cu$major" cudnn cusparselt nccl nvshmem; do mkdir -p "$site/nvidia/$package/lib"; done
echo 'int nothing; int nothing;' >empty.c
fake() {
    # shellcheck disable=SC2086
    $cc -shared -fPIC -Wl,-soname,"$(basename "$1")" -o "$site/nvidia/$1" empty.c >out 2>&1 ||
        { cat out; exit 99; }
}
fake cusparselt/lib/libcusparseLt.so.0
fake nccl/lib/libnccl.so.2
fake nvshmem/lib/libnvshmem_host.so.3
if [ $real = yes ]; then
    for library in libcudart libcublas libcublasLt libnvrtc libnvrtc-builtins; do
        ln -s "$toolkit/$library".so.* "$site/nvidia/cu$major/lib/"
    done
    ln -s "$toolkit"/libcudnn*.so.* "$site/nvidia/cudnn/lib/"
else
    fake "cu$major/lib/libcudart.so.$major"
    fake "cu$major/lib/libcublasLt.so.$major"
    fake "cu$major/lib/libnvrtc.so.$major"
    fake cudnn/lib/libcudnn.so.9
fi
mkdir driver
# shellcheck disable=SC2086
$cc -shared -fPIC -o driver/libcuda.so.1 "$ET_SRCDIR/t/gpusim/driver.c" >out 2>&1 || {
    cat out
    exit 99
}
all=
for lib in "$site"/nvidia/*/lib; do all=$all${all:+:}$lib; done
if python3 -c 'import json' 2>out; then
    export PYTHONPATH="$site"
    given=
else
    given=$all # what the pack's run asks Python for
fi

# drive ANSWERS [NAME=VALUE...] PROGRAM ARGS...: from the pack, with the driver where only
# LD_LIBRARY_PATH says that it is
drive() {
    answers=$1
    shift
    env ETUDE_CUDA_LIBS="$given" LD_LIBRARY_PATH="$dir/driver" FAKE_DRIVER="$answers" \
        "$pack/run" "$@" >out 2>&1 </dev/null
}
nobody="13000 100 0 0" one="$((major * 1000)) 0 0 1"

# ---- it reaches the driver ----

drive "$nobody" etude version -v
says out "the driver sees no GPU (CUDA_ERROR_NO_DEVICE)" "the program reaches the driver"
drive "$nobody" gpu-check t/unit/apart
says out "1..0 # SKIP no device 'cuda': the driver sees no GPU" "so does gpu-check"
export ETUDE_DEVICE=cuda
for program in t/kernels/gpu t/train/ahead; do
    [ -x "$ET_BUILDDIR/$program" ] || continue
    drive "$nobody" "$program"
    says out "the driver sees no GPU" "so does $program"
done
for program in $("$pack/t/gpu/check.t" --list); do
    [ -x "$ET_BUILDDIR/$program" ] || continue
    [ -x "$pack/$program" ] &&
        LD_LIBRARY_PATH=$pack/elf/.libs:$pack/lib ldd "$pack/elf/$program" >out 2>&1
    ok $? "$program is there"
    awk '$2 == "=>" { print $1, $3 }' out | grep -v " $pack/" | grep -vE "$theirs" >lacks
    mv lacks out
    [ ! -s out ]
    ok $? "and so is what it needs"
done

# ---- a driver with a GPU: the module is loaded, with all that it needs ----

# Where the loader found LIBRARY, which OUT says for LD_DEBUG=files.
found() {
    sed -nE "s#.*calling init: ($1/[^ ]*/?$2\\.so[^ ]*)\$#\\1#p" out | head -n 1
}

export LD_DEBUG=files
drive "$one" etude version -v
unset LD_DEBUG
[ -n "$(found "$pack/elf/.libs" libetude-cuda)" ]
ok $? "the pack's module is loaded"
if [ $real = yes ]; then
    for library in libcudart libcublasLt libcudnn; do
        [ -n "$(found "$site/nvidia" $library)" ]
        ok $? "with $library of Python's packages"
    done
    # (This toolkit's runtime asks a driver for more than this one has.)
    for program in t/kernels/gpu t/train/ahead; do
        drive "$one" "$program" f32 relu
        says out "no device 'cuda': cudaGetDeviceCount" "CUDA's runtime answers $program"
    done
else
    drive "$one" t/kernels/gpu f32 relu
    grep -q '^1\.\.[1-9]' out && ! grep -q '^not ok' out
    ok $? "and computes"
fi

# ---- the paths of others ----

# shellcheck disable=SC2016
printf '#!/bin/sh\necho "path: $LD_LIBRARY_PATH"\n' >python
chmod +x python
PYTHON=$dir/python LD_LIBRARY_PATH=$dir/driver "$pack/run" gpu-bench 1 >out 2>&1
[ "$(cat out)" = "path: $dir/driver" ]
ok $? "the peer's Python keeps its own libraries"
if [ -e "$ET_BUILDDIR/libgpusim.la" ]; then
    nm -D --defined-only --with-symbol-versions "$ET_BUILDDIR/.libs/libgpusim.so" |
        grep -E ' (cuda|cublas|cudnn|nvrtc)[A-Za-z0-9]*$' >out
    [ ! -s out ]
    ok $? "the simulator's calls have a version, and hide no library of CUDA's"
fi
finish
