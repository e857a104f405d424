#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Where configure finds CUDA and cuDNN: folders laid out as NVIDIA's installers and packages,
# Debian, PyPI and conda lay them out, with small headers and libraries that have nothing but
# the right names. build-aux/find-cuda.sh searches them; configure itself runs twice.
. "$(dirname "$0")/../tap.sh"
cc=$(command -v "${CC:-cc}") || skip_all 'no C compiler'
own_folder etude-cuda
# ---- what the folders are made of ----

# library NAME FUNCTION: parts/NAME
library() {
    echo "int $2(void); int $2(void) { return 0; }" >part.c
    "$cc" -shared -fPIC -Wl,-soname,"$1" -o "parts/$1" part.c || exit 99
}
mkdir parts
library libcudart.so.12 cudaLibraryLoadData
library libcublasLt.so.12 cublasLtCreate
library libnvrtc.so.12 nvrtcVersion
library libcudart.so.13 cudaLibraryLoadData
library libcublasLt.so.13 cublasLtCreate
library libnvrtc.so.13 nvrtcVersion
library libcudnn.so.8 cudnnBackendExecute
library libcudnn.so.9 cudnnBackendExecute

# An nvcc compiles anything to nothing.
cat >parts/nvcc <<'NVCC'
#!/bin/sh
while [ $# -gt 0 ]; do
    [ "$1" != -o ] || : >"$2"
    shift
done
NVCC
chmod +x parts/nvcc

# toolkit VERSION BIN INCLUDE LIB: a whole one; BIN may be empty
toolkit() {
    mkdir -p ${2:+"$2"} "$3/nv" "$4"
    [ -z "$2" ] || cp parts/nvcc "$2/"
    echo "#define CUDART_VERSION  $1" >"$3/cuda_runtime_api.h"
    touch "$3/cublasLt.h" "$3/nvrtc.h" "$3/nv/target" "$3/cuda_bf16.h" "$3/cuda_fp16.h"
    for name in libcudart libcublasLt libnvrtc; do cp parts/$name.so.$(($1 / 1000)) "$4/"; done
}

# cudnn VERSION INCLUDE LIB
cudnn() {
    mkdir -p "$2" "$3"
    printf '#define CUDNN_%s\n' "MAJOR ${1%%.*}" "MINOR $(echo "$1" | cut -d. -f2)" \
        "PATCHLEVEL ${1##*.}" >"$2/cudnn_version.h"
    echo '#include "cudnn_version.h"' >"$2/cudnn_graph.h"
    cp "parts/libcudnn.so.${1%%.*}" "$3/"
}

# ---- the search ----

# It may run these, and sees no nvcc or python3 that this machine has.
mkdir tools
for tool in cat cut dirname env grep head ls readlink sed sh sort tr; do
    ln -s "$(command -v $tool)" tools/ || exit 99
done

# find_cuda MACHINE ENVIRONMENT [OPTION...]: what is found where only folders of MACHINE are;
# sets the variables that find-cuda.sh prints. In both sentences the machine's folder is @.
find_cuda() {
    machine=$dir/$1 environment=$2
    shift 2
    cc_there="$cc -nostdinc -idirafter $machine/usr/include -idirafter $machine/usr/include/x86_64-linux-gnu"
    # shellcheck disable=SC2086
    said=$(env -i PATH="$machine/usr/bin:$dir/tools" CC="$cc_there" FIND_CUDA_ROOT="$machine" \
        $environment sh "$ET_SRCDIR/build-aux/find-cuda.sh" "$@") || said=
    CUDA_FOUND='' CUDA_MISSING="find-cuda.sh failed"
    eval "$said"
    CUDA_FOUND=$(echo "$CUDA_FOUND" | sed "s|$machine|@|g")
    CUDA_MISSING=$(echo "$CUDA_MISSING" | sed "s|$machine|@|g")
}

cat >prog.c <<'C'
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn_graph.h>
#include <nvrtc.h>
int cudaLibraryLoadData(void), cublasLtCreate(void), cudnnBackendExecute(void);
int
main(void)
{
    return cudaLibraryLoadData() + cublasLtCreate() + cudnnBackendExecute() + CUDNN_MINOR;
}
C

# found SENTENCE MINOR CUDNN NAME: that was found, and a program that is built with it has
# headers of cuDNN 9.MINOR and runs with the library of the folder CUDNN
found() {
    is "$CUDA_FOUND$CUDA_MISSING" "$1" "$4"
    # shellcheck disable=SC2086
    $cc_there $CUDA_CPPFLAGS -o prog prog.c $CUDA_LIBS_BLASLT $CUDA_LIBS_DNN $CUDA_LIBS_RUNTIME \
        $CUDA_RPATH
    env -u LD_LIBRARY_PATH ./prog
    is "$?" "$2" "... with headers of cuDNN 9.$2"
    is "$(env -u LD_LIBRARY_PATH ldd prog | sed -n 's/.*libcudnn.so.9 => \(.*\) (.*/\1/p')" \
        "$machine/$3/libcudnn.so.9" "... and the library of $3"
    rm -f prog
}

no_toolkit='(Debian/Ubuntu from NVIDIA: cuda-toolkit-13-0; PyPI: nvidia-cuda-nvcc nvidia-cublas nvidia-cuda-cccl; conda: cuda-toolkit)'
no_cudnn='(Debian/Ubuntu from NVIDIA: libcudnn9-dev-cuda-13; PyPI: nvidia-cudnn-cu13; conda: cudnn)'
mkdir -p bare/usr/include
find_cuda bare ''
is "$CUDA_MISSING" "the CUDA toolkit is missing $no_toolkit; cuDNN 9 is missing $no_cudnn" \
    "nothing: both are missing, and their packages are named"

toolkit 13000 apt/usr/local/cuda/bin apt/usr/local/cuda/include apt/usr/local/cuda/lib64
find_cuda apt ''
is "$CUDA_MISSING" "cuDNN 9 is missing $no_cudnn" "a toolkit: cuDNN is missing"
cudnn 9.10.2 apt/usr/include/x86_64-linux-gnu apt/usr/lib/x86_64-linux-gnu
find_cuda apt ''
found "CUDA 13.0 in @/usr/local/cuda, cuDNN 9.10.2 in @/usr/include/x86_64-linux-gnu" 10 \
    usr/lib/x86_64-linux-gnu "NVIDIA's packages for Debian and Ubuntu: cuDNN is in the system's folders"
ln -s x86_64-linux-gnu/cudnn_graph.h x86_64-linux-gnu/cudnn_version.h apt/usr/include/
find_cuda apt ''
found "CUDA 13.0 in @/usr/local/cuda, cuDNN 9.10.2 in @/usr/include" 10 \
    usr/lib/x86_64-linux-gnu "... and with the links that they make"
is "$CUDA_CPPFLAGS" "-isystem $dir/apt/usr/local/cuda/include" \
    "folders in which the compiler looks anyway are not named to it"
find_cuda apt '' --with-cudnn="$dir/apt/nowhere"
is "$CUDA_MISSING" "cuDNN is missing in @/nowhere $no_cudnn" \
    "--with-cudnn=DIR looks nowhere else"
find_cuda apt '' --with-cuda="$dir/apt/nowhere"
is "$CUDA_MISSING" "the CUDA toolkit is missing in @/nowhere $no_toolkit" \
    "nor does --with-cuda=DIR"

cudnn 9.11.0 apt/usr/local/cuda/include apt/usr/local/cuda/lib64
find_cuda apt ''
found "CUDA 13.0 in @/usr/local/cuda, cuDNN 9.11.0 in @/usr/local/cuda/include" 11 \
    usr/local/cuda/lib64 "cuDNN in the toolkit's own folder"
cudnn 9.12.0 apt/given/include apt/given/lib
find_cuda apt '' --with-cudnn="$dir/apt/given"
found "CUDA 13.0 in @/usr/local/cuda, cuDNN 9.12.0 in @/given/include" 12 given/lib \
    "--with-cudnn=DIR comes before the toolkit's own"
cudnn 9.13.0 apt/flat apt/flat
find_cuda apt '' --with-cudnn="$dir/apt/flat"
found "CUDA 13.0 in @/usr/local/cuda, cuDNN 9.13.0 in @/flat" 13 flat \
    "... also where all of it is in DIR itself"

site=venv/lib/python3.11/site-packages/nvidia
toolkit 13050 pypi/$site/cu13/bin pypi/$site/cu13/include pypi/$site/cu13/lib
mv pypi/$site/cu13/include/nv pypi/nv # as in packages that have it in cccl alone
mkdir pypi/$site/cu13/include/cccl
mv pypi/nv pypi/$site/cu13/include/cccl/
cudnn 9.14.0 pypi/$site/cudnn/include pypi/$site/cudnn/lib
find_cuda pypi VIRTUAL_ENV="$dir/pypi/venv"
found "CUDA 13.5 in @/$site/cu13, cuDNN 9.14.0 in @/$site/cudnn/include" 14 $site/cudnn/lib \
    "PyPI's packages in an active virtual environment"
find_cuda pypi ''
is "$CUDA_MISSING" "the CUDA toolkit is missing $no_toolkit; cuDNN 9 is missing $no_cudnn" \
    "... and not in one that is not active"
mkdir -p pypi/usr/bin
printf '%s\n' '#!/bin/sh' "echo '$dir/pypi/venv/lib/python3.11/site-packages'" >pypi/usr/bin/python3
chmod +x pypi/usr/bin/python3
find_cuda pypi ''
found "CUDA 13.5 in @/$site/cu13, cuDNN 9.14.0 in @/$site/cudnn/include" 14 $site/cudnn/lib \
    "PyPI's packages where python3 has them"
rm pypi/$site/cu13/bin/nvcc
find_cuda pypi ''
is "$CUDA_MISSING" \
    "nvcc is missing (Debian/Ubuntu from NVIDIA: cuda-nvcc-13-5; PyPI: nvidia-cuda-nvcc; conda: cuda-nvcc)" \
    "PyPI's packages as PyTorch wants them: the part that is missing is named"
toolkit 13000 pypi/opt/cuda/bin pypi/opt/cuda/include pypi/opt/cuda/lib64
find_cuda pypi CUDA_HOME="$dir/pypi/opt/cuda"
found "CUDA 13.0 in @/opt/cuda, cuDNN 9.14.0 in @/$site/cudnn/include" 14 $site/cudnn/lib \
    "cuDNN from PyPI beside a toolkit"

toolkit 12080 conda/env/bin conda/env/targets/x86_64-linux/include conda/env/lib
cudnn 9.15.0 conda/env/include conda/env/lib
case $("$cc" -dumpmachine) in
x86_64*)
    find_cuda conda CONDA_PREFIX="$dir/conda/env"
    found "CUDA 12.8 in @/env, cuDNN 9.15.0 in @/env/include" 15 env/lib "an active conda environment"
    ;;
*) n=$((n + 1)) && echo "ok $n - an active conda environment # SKIP its folders are for x86-64" ;;
esac

# ---- what cannot be used ----

toolkit 12040 debian/usr/bin debian/usr/include debian/usr/lib/x86_64-linux-gnu
cudnn 8.9.7 debian/usr/include debian/usr/lib/x86_64-linux-gnu
find_cuda debian ''
is "$CUDA_MISSING" "CUDA 12.4 in @/usr is too old, 12.8 or later is needed $no_toolkit; cuDNN 8.9.7 in @/usr/include is too old, 9.8 or later is needed $(echo "$no_cudnn" | sed 's/13/12/g')" \
    "Debian's own packages are too old"
toolkit 13000 debian/usr/local/cuda-13.0/bin debian/usr/local/cuda-13.0/include \
    debian/usr/local/cuda-13.0/lib64
find_cuda debian ''
is "$CUDA_MISSING" "cuDNN 8.9.7 in @/usr/include is too old, 9.8 or later is needed $no_cudnn" \
    "... and do not hide a toolkit that can be used"
cudnn 9.7.1 debian/usr/local/cuda-13.0/include debian/usr/local/cuda-13.0/lib64
find_cuda debian ''
is "$CUDA_MISSING" \
    "cuDNN 9.7.1 in @/usr/local/cuda-13.0/include is too old, 9.8 or later is needed $no_cudnn" \
    "a cuDNN 9 without what the module uses"
rm debian/usr/local/cuda-13.0/lib64/libcublasLt.so.13
cudnn 9.10.0 debian/usr/local/cuda-13.0/include debian/usr/local/cuda-13.0/lib64
rm debian/usr/local/cuda-13.0/lib64/libcudnn.so.9
find_cuda debian '' --with-cuda="$dir/debian/usr/local/cuda-13.0"
is "$CUDA_MISSING" "cuBLASLt is missing (Debian/Ubuntu from NVIDIA: libcublas-dev-13-0; PyPI: nvidia-cublas; conda: libcublas-dev); cuDNN 9.10.0 in @/usr/local/cuda-13.0/include has no libcudnn.so.9 beside it $no_cudnn" \
    "headers without their libraries"

# ---- configure ----

# configure ARGS...: sets code; out has what it says
configure() {
    [ ! -e ../cache ] || sed -i /CUDA_ARCHS/d ../cache # which may not change beside a cache
    "$ET_SRCDIR/configure" --cache-file=../cache --without-cpu --without-gloo "$@" >../out 2>&1
    code=$?
}
if [ ! -x "$ET_SRCDIR/configure" ] || [ -e "$ET_SRCDIR/config.status" ]; then
    n=$((n + 1)) && echo "ok $n - configure itself # SKIP it can run in its own folder alone"
else
    mkdir build
    cd build || exit 99
    unset NVCC
    configure --with-cuda="$dir/apt/usr/local/cuda" --with-cudnn="$dir/apt/given"
    is "$code $(grep -c "^configure: cuda device yes: CUDA 13.0 in $dir/apt/usr/local/cuda, cuDNN 9.12.0 in" ../out)" \
        "0 1" "configure takes what was found, and says in one line what"
    is "$(sed -n 's/^CUDA_LIBS_DNN = //p' Makefile)" "-Wl,$dir/apt/given/lib/libcudnn.so.9" \
        "and links the module to it"
    code_for='-gencode arch=compute_'
    is "$(sed -n 's/^CUDA_GENCODE = *//p' Makefile)" \
        "${code_for}80,code=sm_80 ${code_for}80,code=compute_80 ${code_for}90a,code=sm_90a" \
        "machine code for Ampere and Hopper, and PTX for those that come"
    configure --with-cuda="$dir/apt/usr/local/cuda" --with-cudnn="$dir/apt/given" \
        CUDA_ARCHS='90a 100 120'
    is "$code $(sed -n 's/^CUDA_GENCODE = *//p' Makefile)" \
        "0 ${code_for}90a,code=sm_90a ${code_for}100,code=sm_100 ${code_for}100,code=compute_100 ${code_for}120,code=sm_120" \
        "CUDA_ARCHS names others"
    configure --with-cuda="$dir/apt/usr/local/cuda" CUDA_ARCHS='90a,100'
    is "$code $(grep -c '^configure: error: 90a,100 in CUDA_ARCHS is no compute capability' ../out)" \
        "1 1" "... each on its own"
    configure --with-cuda="$dir/debian/usr/local/cuda-13.0"
    is "$code $(grep -c '^configure: error: no CUDA device: cuBLASLt is missing (' ../out)" "1 1" \
        "configure --with-cuda ends where something is missing, and says what"
    configure --with-cudnn
    is "$code $(grep -c '^configure: error: --with-cudnn needs a folder' ../out)" "1 1" \
        "--with-cudnn needs a folder"
    cd ..
fi
finish
