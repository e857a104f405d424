#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# pack.sh BUILD FOLDER [PROGRAM...]: what a machine with a GPU needs of a build tree, in one
# folder and in FOLDER.tar.xz. PROGRAMs, such as t/train/counts, go with those that always
# do: etude, what measures, and what `make gpu-check` runs. XZ_OPT=-1 makes xz quick.
#
#   FOLDER/run [PROGRAM ARGS...]     finds CUDA's libraries, then runs a program of here
#   FOLDER/run gpu-check [PROGRAM..] t/gpu/check.t on the GPU
#   FOLDER/run gpu-bench PART        bench/gpu/referee.py, part 1 to 5
#   FOLDER/run first-hour PART OUT   bench/gpu/first-hour
#
# Programs, device modules and libraries of ours lie in elf/ as they do in a build tree, which
# is how a program finds its modules. lib/ has the libraries of this system that they need, but
# for those that must be the other machine's own (is_theirs). A wrapper of each program's name
# sets the library path for that program alone: the peer's Python keeps its own libraries.
set -eu

build=$(cd "$1" && pwd) folder=$2
shift 2
if [ -e "$folder" ] && [ ! -d "$folder/elf" ]; then
    echo "pack.sh: $folder is there, and was not made by pack.sh" >&2
    exit 1
fi
source=$(cd "$(dirname "$0")/../.." && pwd)
limit=64 # MiB, of the archive
if [ ! -e "$build/.libs/libetude-cuda.so" ]; then
    echo "pack.sh: $build has no CUDA module, so there is nothing to take to a GPU:" \
        "configure found no CUDA toolkit (--with-cuda=DIR says why)" >&2
    exit 1
fi
rm -rf "$folder" "$folder.tar.xz"
mkdir -p "$folder/elf/.libs" "$folder/lib" "$folder/recipes"
folder=$(cd "$folder" && pwd)
: >"$folder/elf/config.status"

# ---- programs and modules ----

# needs FILE: notes the libraries it is linked to, among them ours of the build tree
needs() {
    LD_LIBRARY_PATH="$build/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" ldd "$1" >>"$folder/needed"
}

for module in cpu cuda; do
    [ ! -e "$build/.libs/libetude-$module.so" ] ||
        cp "$build/.libs/libetude-$module.so" "$folder/elf/.libs/"
done
# (No file names with blanks: the list is of words.)
for program in etude bench/train bench/gpu/micro t/kernels/cpu t/kernels/gpu \
    $("$source/t/gpu/check.t" --list) "$@"; do
    [ ! -e "$folder/$program" ] || continue # named twice
    if [ ! -x "$build/$program" ]; then
        echo "pack.sh: $program is not built, and left out" >&2
        continue
    fi
    # What is linked to a library of the build tree is a script of libtool's there.
    elf=$("$build/libtool" --silent --mode=execute echo "$build/$program")
    mkdir -p "$folder/elf/$(dirname "$program")" "$folder/$(dirname "$program")"
    cp "$elf" "$folder/elf/$program"
    needs "$elf"
    cat >"$folder/$program" <<'WRAPPER'
#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
top=$here
while [ ! -d "$top/elf" ]; do top=$(dirname "$top"); done
export ET_BUILDDIR="$top/elf"
# Ours first; what was there stays, for it may say where the driver is.
export LD_LIBRARY_PATH="$top/elf/.libs:$top/lib${ETUDE_CUDA_LIBS:+:$ETUDE_CUDA_LIBS}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$top/elf${here#"$top"}/$(basename "$0")" "$@"
WRAPPER
    chmod +x "$folder/$program"
done
for module in "$folder"/elf/.libs/*.so; do needs "$module"; done

# ---- their libraries ----

# The C and C++ libraries belong to the other system's loader, CUDA's to its driver.
is_theirs() {
    case $1 in
    libc.so.* | libm.so.* | libdl.so.* | librt.so.* | libpthread.so.* | libresolv.so.*) ;;
    libutil.so.* | libnsl.so.* | libanl.so.* | libmvec.so.* | ld-linux* | linux-vdso*) ;;
    libstdc++.so.* | libgcc_s.so.*) ;;
    libcuda.so.* | libcudart.so.* | libcublas*.so.* | libcudnn*.so.* | libnv*.so.* | libnccl.so.*) ;;
    *) return 1 ;;
    esac
}

# By their names, and where this system has them ("not" is of "not found").
awk '$2 == "=>" { print $1, $3 }' "$folder/needed" | sort -u >"$folder/named"
while read -r name path; do
    if is_theirs "$name"; then
        continue
    elif [ "$path" = not ]; then
        echo "pack.sh: $name, which a program here needs, is nowhere" >&2
        exit 1
    fi
    # What libtool built: modules are looked for from where the core lies, also in a library.
    case $path in
    */.libs/*) cp "$path" "$folder/elf/.libs/" ;;
    *) cp "$path" "$folder/lib/$name" ;;
    esac
done <"$folder/named"
rm "$folder/needed" "$folder/named"
find "$folder/elf" "$folder/lib" -type f -size +0 -exec chmod u+w {} + \
    -exec "${STRIP:-strip}" --strip-unneeded {} +

# ---- scripts and data ----

mkdir -p "$folder/bench/cpu" "$folder/bench/gpu" "$folder/t/gpu" "$folder/t/golden"
cp "$source"/bench/*.py "$folder/bench/"
cp "$source"/bench/cpu/*.py "$folder/bench/cpu/"
cp "$source"/bench/gpu/*.py "$source/bench/gpu/first-hour" "$folder/bench/gpu/"
cp "$source/t/gpu/check.t" "$folder/t/gpu/"
cp "$source"/t/golden/*.txt "$folder/t/golden/" # what t/train/golden compares with
mkdir -p "$folder/t/golden/tokenizers" "$folder/t/train" # what t/train/streams reads
cp "$source"/t/golden/tokenizers/*.json "$folder/t/golden/tokenizers/"
cp -R "$source/t/train/told" "$folder/t/train/"
cp "$source"/recipes/*.yaml "$folder/recipes/"
git -C "$source" describe --always --dirty >"$folder/commit" 2>/dev/null || :
cat >"$folder/run" <<'RUN'
#!/bin/sh
# run gpu-check [PROGRAM...], gpu-bench PART [ARGS...], first-hour PART OUT [ARGS...] or
# PROGRAM ARGS...: with CUDA's libraries where Python's packages have them, unless
# ETUDE_CUDA_LIBS (folders, with colons) says where they are.
top=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
if [ -z "${ETUDE_CUDA_LIBS:-}" ]; then
    ETUDE_CUDA_LIBS=$("$python" -c '
import glob, os, nvidia
print(":".join(d for p in nvidia.__path__ for d in sorted(glob.glob(os.path.join(p, "*", "lib")))))
' 2>/dev/null)
    export ETUDE_CUDA_LIBS
fi
ETUDE_COMMIT=$(cat "$top/commit" 2>/dev/null)
export ETUDE_COMMIT
what=${1:-etude}
[ $# -eq 0 ] || shift
case $what in
gpu-bench)
    part=${1:-1}
    [ $# -eq 0 ] || shift
    exec "$python" "$top/bench/gpu/referee.py" --build "$top" --python "$python" --part "$part" "$@"
    ;;
gpu-check)
    export ET_BUILDDIR="$top" ET_SRCDIR="$top" ETUDE_GPU_CHECK="${ETUDE_GPU_CHECK:-cuda}"
    exec sh "$top/t/gpu/check.t" "$@"
    ;;
first-hour) exec "$python" "$top/bench/gpu/first-hour" --build "$top" --python "$python" "$@" ;;
*) exec "$top/$what" "$@" ;;
esac
RUN
chmod +x "$folder/run"

# ---- the archive ----

# The same bytes from the same tree: in order, of nobody, of the commit's time.
when=${SOURCE_DATE_EPOCH:-$(git -C "$source" log -1 --format=%ct 2>/dev/null || echo 1000000000)}
tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u+w,go=rX --mtime="@$when" \
    -C "$(dirname "$folder")" -cf "$folder.tar" "$(basename "$folder")"
xz -T0 -f "$folder.tar"
size=$(du -sk "$folder.tar.xz" | cut -f1)
echo "$folder.tar.xz: $(((size + 1023) / 1024)) MiB, of $(du -sm "$folder" | cut -f1) MiB unpacked"
if [ "$size" -ge $((limit * 1024)) ]; then
    echo "pack.sh: that is not below $limit MiB" >&2
    exit 1
fi
