#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# find-cuda.sh: where the CUDA toolkit and cuDNN 9 are. configure evaluates what it prints.
#
#   find-cuda.sh [--with-cuda=DIR] [--with-cudnn=DIR]
#
#   NVCC           the compiler
#   CUDA_VERSION   the toolkit's, as the headers count: 13000 = 13.0
#   CUDA_CPPFLAGS  include folders in which the compiler does not look by itself
#   CUDA_RPATH     folders of libraries in which the loader does not look by itself
#   CUDA_LIBS_...  RUNTIME, BLASLT, DNN: for the linker. These are paths, since PyPI's
#                  packages have a libcudnn.so.9 and no libcudnn.so, which -lcudnn needs
#   CUDA_FOUND     what was found, in words
#   CUDA_MISSING   what is missing, and the packages that have it; empty: nothing is
#
# The toolkit is looked for in DIR alone or, without one, in $CUDA_HOME, $CUDA_PATH,
# /usr/local/cuda, beside every nvcc on PATH, in /usr/local/cuda-*, in Python's packages and
# in $CONDA_PREFIX; the first that is complete is taken. cuDNN is looked for in DIR alone or
# in the toolkit, the compiler's include folders, Python's packages and $CONDA_PREFIX.
#
# CC and CPPFLAGS say how C is compiled, NVCC replaces the nvcc that would be found.
# (FIND_CUDA_ROOT, which stands before /usr/local, is for t/build/find_cuda.t.)
set -eu
LC_ALL=C
export LC_ALL
IFS='
'

# cudaLibraryLoadData came with 12.8; cuDNN's graphs for a GPU that is only described, with
# 9.8.
least_cuda=12080
least_cudnn=90800

cuda_dir='' cudnn_dir=''
for word; do
    case $word in
    --with-cuda=*) cuda_dir=${word#*=} ;;
    --with-cudnn=*) cudnn_dir=${word#*=} ;;
    *) echo "find-cuda.sh: what is $word?" >&2 && exit 64 ;;
    esac
done

local=${FIND_CUDA_ROOT-}/usr/local
machine=$(eval "${CC:-cc} -dumpmachine")
multiarch=$(eval "${CC:-cc} -print-multiarch" 2>/dev/null) || multiarch=$machine
case $machine in
x86_64*) targets=x86_64-linux ;;
aarch64*) targets="sbsa-linux${IFS}aarch64-linux" ;;
*) targets='' ;;
esac
# Where the compiler looks by itself.
default_includes=$(eval "${CC:-cc} ${CPPFLAGS-} -E -v -x c /dev/null" 2>&1 >/dev/null |
    sed -n '/^#include </,/^End of search/s/^ //p')

# ---- folders, one a line ----

includes_below() {
    echo "$1/include"
    for target in $targets; do echo "$1/targets/$target/include"; done
}

libraries_below() {
    printf '%s\n' "$1/lib/${2:-$multiarch}" "$1/lib64" "$1/lib"
    for target in $targets; do echo "$1/targets/$target/lib"; done
}

# Those of libraries that go with an include folder of the system's.
libraries_beside() {
    case $1 in
    */include) libraries_below "${1%/include}" ;;
    */include/*) libraries_below "${1%/include/*}" "${1##*/}" ;;
    esac
}

# Where pip installs: the active virtual environment, then what python3 itself says.
pythons() {
    [ -z "${VIRTUAL_ENV-}" ] || ls -d "$VIRTUAL_ENV"/lib/python3*/site-packages || :
    python3 -c 'import sys; print(*sys.path, sep="\n")' | grep -e '-packages$' || :
}

toolkits() {
    if [ -n "$cuda_dir" ]; then
        echo "$cuda_dir"
        return
    fi
    printf '%s\n' ${CUDA_HOME:+"$CUDA_HOME"} ${CUDA_PATH:+"$CUDA_PATH"} "$local/cuda"
    echo "$PATH" | tr : '\n' | while read -r folder; do
        [ -x "$folder/nvcc" ] || continue
        dirname "$(dirname "$(readlink -f "$folder/nvcc")")"
        dirname "$folder"
    done
    printf '%s\n' "$local"/cuda-[1-9]* | sort -t- -k2 -rn
    for python in $pythons; do printf '%s\n' "$python"/nvidia/cu[1-9]* | sort -r; done
    [ -z "${CONDA_PREFIX-}" ] || echo "$CONDA_PREFIX"
}

# first FILE FOLDERS: the first of the folders that has it
first() {
    for folder in $2; do
        [ ! -e "$folder/$1" ] || { echo "$folder" && return; }
    done
}

# number NAME HEADER: what it defines NAME as
number() {
    sed -n "s/^#define $1 *\\([0-9][0-9]*\\).*/\\1/p" "$2" | head -n 1
}

# ---- the toolkit ----

# packages APT PYPI CONDA: ends a sentence. A % in APT is the toolkit's version; PYPI may be
# empty.
packages() {
    apt=$(echo "$1" | sed "s/%/${dashed:-13-0}/")
    echo " (Debian/Ubuntu from NVIDIA: $apt; ${2:+PyPI: $2; }conda: $3)"
}

# lack WHAT: says that, and how to get a toolkit that can be used
lack() {
    dashed=''
    echo "$1$(packages cuda-toolkit-% \
        'nvidia-cuda-nvcc nvidia-cublas nvidia-cuda-cccl' cuda-toolkit)"
}

# Each part's header (of nvcc, which has none: the program), library and packages.
parts='nvcc|bin/nvcc||cuda-nvcc-%|nvidia-cuda-nvcc|cuda-nvcc
the CUDA runtime|cuda_runtime_api.h|libcudart|cuda-cudart-dev-%|nvidia-cuda-runtime|cuda-cudart-dev
cuBLASLt|cublasLt.h|libcublasLt|libcublas-dev-%|nvidia-cublas|libcublas-dev
NVRTC|nvrtc.h|libnvrtc|cuda-nvrtc-dev-%|nvidia-cuda-nvrtc|cuda-nvrtc-dev
CCCL|nv/target||cuda-cccl-%|nvidia-cuda-cccl|cuda-cccl'

# examine ROOT: sets includes, libraries, version, and missing, a line for each thing
examine() {
    includes=$(includes_below "$1")
    libraries=$(libraries_below "$1")
    missing='' version=0 dashed=''
    header=$(first cuda_runtime_api.h "$includes")
    [ -z "$header" ] || version=$(number CUDART_VERSION "$header/cuda_runtime_api.h")
    [ "${version:=0}" -eq 0 ] || dashed=$((version / 1000))-$((version % 1000 / 10))
    if [ "$version" -gt 0 ] && [ "$version" -lt $least_cuda ]; then
        missing=$(lack "CUDA $(echo "$dashed" | tr - .) in $1 is too old, 12.8 or later is needed")
        return
    fi
    for part in $parts; do
        examine_part "$1" "$part"
    done
}

examine_part() {
    root=$1
    IFS='|'
    # shellcheck disable=SC2086
    set -- $2
    IFS='
'
    where=$includes
    absent=''
    case $2 in
    bin/*) where=$root && [ -z "${NVCC-}" ] || return 0 ;;
    nv/*) where=$includes$IFS$(echo "$includes" | sed 's/$/\/cccl/') ;;
    esac
    [ -n "$(first "$2" "$where")" ] || absent=$2
    [ -z "$3" ] || [ -n "$(first "$3.so.$((version / 1000))" "$libraries")" ] ||
        absent=${absent:-$3.so.$((version / 1000))}
    [ -n "$absent" ] || return 0
    # (Of CUDA 12 PyPI has no nvcc, and other names.)
    pypi=$5
    [ $((version / 1000)) -ne 12 ] || case $1 in nvcc) pypi='' ;; *) pypi=$5-cu12 ;; esac
    missing=$missing${missing:+$IFS}"$1 is missing$(packages "$4" "$pypi" "$6")"
}

count() {
    echo "$1" | grep -c . || :
}

pythons=$(pythons 2>/dev/null)
chosen='' lacking='' why='' nothing=yes
for root in $(toolkits 2>/dev/null); do
    examine "$root"
    [ "$version" -eq 0 ] && [ ! -x "$root/bin/nvcc" ] || nothing=no
    if [ -z "$missing" ]; then
        chosen=$root lacking='' && break
    elif [ -z "$lacking" ] || [ "$(count "$missing")" -lt "$(count "$lacking")" ]; then
        chosen=$root lacking=$missing
    fi
done
if [ $nothing = yes ]; then
    lacking=$(lack "the CUDA toolkit is missing${cuda_dir:+ in $cuda_dir}")
fi
[ -z "$chosen" ] || examine "$chosen"

# ---- cuDNN ----

# look INCLUDES LIBRARIES: is it there? Sets cudnn_include and cudnn; or why, if it is
# there but cannot be used.
look() {
    cudnn_include=$(first cudnn_version.h "$1")
    [ -n "$cudnn_include" ] || return 1
    file=$cudnn_include/cudnn_version.h
    set -- "$2" "$(number CUDNN_MAJOR "$file")" "$(number CUDNN_MINOR "$file")" \
        "$(number CUDNN_PATCHLEVEL "$file")"
    cudnn_version=$2.$3.$4
    cudnn=$(first "libcudnn.so.$2" "$1")/libcudnn.so.$2
    said="cuDNN $cudnn_version in $cudnn_include"
    if [ "$((${2:-0} * 10000 + ${3:-0} * 100 + ${4:-0}))" -lt $least_cudnn ]; then
        why=${why:-"$said is too old, 9.8 or later is needed"}
    elif [ ! -e "$cudnn_include/cudnn_graph.h" ]; then
        why=${why:-"$said has no cudnn_graph.h"}
    elif [ ! -e "$cudnn" ]; then
        why=${why:-"$said has no libcudnn.so.$2 beside it"}
    else
        return 0
    fi
    return 1
}

look_everywhere() {
    if [ -n "$cudnn_dir" ]; then
        look "$cudnn_dir/include$IFS$cudnn_dir" \
            "$(libraries_below "$cudnn_dir")$IFS$cudnn_dir" && return
        why=${why:-"cuDNN is missing in $cudnn_dir"}
        return 1
    fi
    ! look "$includes" "$libraries" || return 0
    case $chosen in # PyPI's toolkit has a neighbour
    */nvidia/cu[1-9]*) ! look "${chosen%/*}/cudnn/include" "${chosen%/*}/cudnn/lib" || return 0 ;;
    esac
    for include in $default_includes; do
        ! look "$include" "$(libraries_beside "$include")" || return 0
    done
    for python in $pythons; do
        ! look "$python/nvidia/cudnn/include" "$python/nvidia/cudnn/lib" || return 0
    done
    [ -n "${CONDA_PREFIX-}" ] &&
        look "$(includes_below "$CONDA_PREFIX")" "$(libraries_below "$CONDA_PREFIX")"
}

includes=${includes-} libraries=${libraries-} version=${version:-0}
major=$((version < 1000 ? 13 : version / 1000))
if ! look_everywhere; then
    lacking=$lacking${lacking:+$IFS}${why:-cuDNN 9 is missing}$(packages \
        "libcudnn9-dev-cuda-$major" "nvidia-cudnn-cu$major" cudnn)
fi

# ---- the answer ----

# say NAME VALUE: for eval
say() {
    printf "%s='%s'\n" "$1" "$(echo "$2" | sed "s/'/'\\\\''/g")"
}

if [ -n "$lacking" ]; then
    say CUDA_MISSING "$(echo "$lacking" | sed -e :a -e '$!N' -e 's/\n/; /' -e ta)"
    exit 0
fi

# physical FOLDERS: without what links and dots make of them
physical() {
    for folder in $1; do
        (cd "$folder" 2>/dev/null && pwd -P) || :
    done
}

# flags OPTION FOLDERS KNOWN: the option for each of them once, but for those that are known
flags() {
    known=$(physical "$3")
    for folder in $2; do
        place=$(physical "$folder")
        ! echo "$known" | grep -qxF -e "$place" || continue
        known=$known$IFS$place
        printf '%s%s ' "$1" "$folder"
    done | sed 's/ $//'
}

runtime=$(first "libcudart.so.$major" "$libraries")
blas=$(first "libcublasLt.so.$major" "$libraries")
rtc=$(first "libnvrtc.so.$major" "$libraries")
say NVCC "${NVCC:-$chosen/bin/nvcc}"
say CUDA_VERSION "$version"
# cuDNN first: the toolkit may have another one.
say CUDA_CPPFLAGS "$(flags '-isystem ' "$cudnn_include
$(first cuda_runtime_api.h "$includes")
$(first cublasLt.h "$includes")
$(first nvrtc.h "$includes")" "$default_includes")"
say CUDA_RPATH "$(flags -Wl,-rpath, "${cudnn%/*}
$runtime
$blas
$rtc" "/lib
/lib64
/usr/lib
/usr/lib64
/usr/lib/$multiarch")"
say CUDA_LIBS_RUNTIME "-Wl,$runtime/libcudart.so.$major"
say CUDA_LIBS_BLASLT "-Wl,$blas/libcublasLt.so.$major"
say CUDA_LIBS_DNN "-Wl,$cudnn"
say CUDA_FOUND "CUDA $((version / 1000)).$((version % 1000 / 10)) in $chosen, cuDNN $cudnn_version in $cudnn_include"
say CUDA_MISSING ''
