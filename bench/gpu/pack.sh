#!/bin/sh
# pack.sh BUILD FOLDER [PROGRAM...]: what a machine with a GPU needs of a build tree, in one
# folder. PROGRAMs, such as t/train/resume, go with those that always do.
#
#   FOLDER/run [PROGRAM ARGS...]     finds CUDA's libraries, then runs a program of here
#   FOLDER/run gpu-bench PART        bench/gpu/referee.py, part 1 to 5
#
# Programs and device modules lie in elf/ as they do in a build tree, which is how a program
# finds its modules; lib/ has the libraries of this system that they need, but not the C and
# C++ libraries, which must be the other machine's, nor CUDA's. A wrapper of each program's
# name sets the path for that program alone: the peer's Python keeps its own libraries.
set -eu

build=$1 folder=$2
shift 2
if [ -e "$folder" ] && [ ! -d "$folder/elf" ]; then
    echo "pack.sh: $folder is there, and no pack of mine" >&2
    exit 1
fi
source=$(cd "$(dirname "$0")/../.." && pwd)
limit=64 # MiB
rm -rf "$folder"
mkdir -p "$folder/elf/.libs" "$folder/lib" "$folder/recipes"
: >"$folder/elf/config.status"
for module in cpu cuda; do
    cp "$build/.libs/libetude-$module.so" "$folder/elf/.libs/" 2>/dev/null || :
done
for program in etude bench/train bench/gpu/micro t/kernels/cpu t/kernels/gpu "$@"; do
    if [ ! -x "$build/$program" ]; then
        echo "pack.sh: $program is not built, and left out" >&2
        continue
    fi
    mkdir -p "$folder/elf/$(dirname "$program")" "$folder/$(dirname "$program")"
    cp "$build/$program" "$folder/elf/$program"
    cat >"$folder/$program" <<'WRAPPER'
#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
top=$here
while [ ! -d "$top/elf" ]; do top=$(dirname "$top"); done
export ET_BUILDDIR="$top/elf"
export LD_LIBRARY_PATH="$top/lib${ETUDE_CUDA_LIBS:+:$ETUDE_CUDA_LIBS}"
exec "$top/elf${here#"$top"}/$(basename "$0")" "$@"
WRAPPER
    chmod +x "$folder/$program"
done
find "$folder/elf" -type f -size +0 -exec strip --strip-debug {} +

# The libraries of all of them, by their names and where this system has them.
find "$folder/elf" -type f -size +0 | while read -r file; do ldd "$file"; done |
    awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | sort -u |
    while read -r name path; do
        case $name in
        libc.so.* | libm.so.* | libdl.so.* | librt.so.* | libpthread.so.*) ;;
        libstdc++.so.* | libgcc_s.so.* | ld-linux*) ;;
        libcuda.so.* | libcudart.so.* | libcublas*.so.* | libcudnn*.so.* | libnvrtc*.so.*) ;;
        *) cp "$path" "$folder/lib/$name" ;;
        esac
    done

mkdir -p "$folder/bench/cpu" "$folder/bench/gpu"
cp "$source"/bench/*.py "$folder/bench/"
cp "$source"/bench/cpu/*.py "$folder/bench/cpu/"
cp "$source"/bench/gpu/*.py "$folder/bench/gpu/"
cp "$source"/recipes/*.yaml "$folder/recipes/"
git -C "$source" describe --always --dirty >"$folder/commit" 2>/dev/null || :
cat >"$folder/run" <<'RUN'
#!/bin/sh
# run gpu-bench PART [ARGS...], or PROGRAM ARGS...: with CUDA's libraries where Python's
# packages have them, unless ETUDE_CUDA_LIBS (folders, with colons) says where they are.
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
if [ "${1:-}" = gpu-bench ]; then
    part=${2:-1}
    shift $(($# < 2 ? $# : 2))
    exec "$python" "$top/bench/gpu/referee.py" --build "$top" --python "$python" --part "$part" "$@"
fi
program=${1:-etude}
[ $# -eq 0 ] || shift
exec "$top/$program" "$@"
RUN
chmod +x "$folder/run"
size=$(du -sm "$folder" | cut -f1)
echo "$folder: $size MiB"
if [ "$size" -ge "$limit" ]; then
    echo "pack.sh: that is not below $limit MiB" >&2
    exit 1
fi
