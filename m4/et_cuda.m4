dnl SPDX-License-Identifier: Apache-2.0
# et_cuda.m4: the CUDA device module's compiler and libraries.

# ET_CUDA: with --with-cuda, --with-cudnn and what build-aux/find-cuda.sh finds sets and
# substitutes NVCC, the compiler that it calls (CUDA_HOST_CXX), for which GPUs it compiles
# (CUDA_GENCODE, from CUDA_ARCHS), CUDA_CPPFLAGS, CUDA_RPATH, CUDA_LIBS_... and CUDA_MAJOR; defines ET_CUDA_DEVICE, ET_CUDA_VERSION and ET_CUDA_MAJOR;
# sets the conditional HAVE_CUDA_DEVICE. Then have_cuda is yes or no, and cuda_said tells
# people why.
AC_DEFUN([ET_CUDA],
[AC_ARG_WITH([cuda],
  [AS_HELP_STRING([--with-cuda@<:@=DIR@:>@], [build the CUDA device module; DIR: the toolkit (default: where both it and cuDNN are found)])],
  [], [with_cuda=auto])
AC_ARG_WITH([cudnn],
  [AS_HELP_STRING([--with-cudnn=DIR], [cuDNN 9 is in DIR, or in its include and lib; asks for --with-cuda])],
  [], [with_cudnn=])
AC_ARG_VAR([NVCC], [CUDA's compiler, instead of the toolkit's])
AC_ARG_VAR([CUDA_ARCHS], [compute capabilities of the GPUs that kernels are compiled for (default: 80 90a)])
AC_REQUIRE_AUX_FILE([find-cuda.sh])
AS_CASE([$with_cudnn],
  [yes|no], [AC_MSG_ERROR([--with-cudnn needs a folder; --without-cuda builds without cuDNN])],
  [?*], [AS_CASE([$with_cuda],
    [no], [AC_MSG_ERROR([--with-cudnn needs the CUDA device, which --without-cuda leaves out])],
    [auto], [with_cuda=yes])])
have_cuda=no
cuda_said=--without-cuda
AS_IF([test "x$with_cuda" != xno],
  [_ET_CUDA_ARCHS
   _ET_CUDA_FIND
   AS_IF([test -z "$CUDA_MISSING"], [_ET_CUDA_TRY])
   AS_IF([test -z "$CUDA_MISSING"], [have_cuda=yes cuda_said=$CUDA_FOUND],
     [cuda_said=$CUDA_MISSING
      AS_IF([test "x$with_cuda" != xauto], [AC_MSG_ERROR([no CUDA device: $CUDA_MISSING])])])])
AC_SUBST([CUDA_HOST_CXX])
AC_SUBST([CUDA_GENCODE])
AC_SUBST([CUDA_CPPFLAGS])
AC_SUBST([CUDA_RPATH])
AC_SUBST([CUDA_LIBS_RUNTIME])
AC_SUBST([CUDA_LIBS_BLASLT])
AC_SUBST([CUDA_LIBS_DNN])
AM_CONDITIONAL([HAVE_CUDA_DEVICE], [test "x$have_cuda" = xyes])
AS_IF([test "x$have_cuda" = xyes],
  [AC_DEFINE([ET_CUDA_DEVICE], [1], [The CUDA device module is built.])],
  [CUDA_VERSION=13000])
# The driver must be for this version or a later one; libraries have its major number.
AC_DEFINE_UNQUOTED([ET_CUDA_VERSION], [$CUDA_VERSION], [Of the CUDA toolkit: 13000 = 13.0.])
CUDA_MAJOR=`expr $CUDA_VERSION / 1000`
AC_SUBST([CUDA_MAJOR])
AC_DEFINE_UNQUOTED([ET_CUDA_MAJOR], [$CUDA_MAJOR], [Its first number.])
])

# Machine code for each of CUDA_ARCHS, and PTX of the first that is a number alone: later GPUs
# compile that when they meet it, where PTX of 90a is for Hopper only.
AC_DEFUN([_ET_CUDA_ARCHS],
[: "${CUDA_ARCHS:=80 90a}"
CUDA_GENCODE= cuda_ptx=
for cuda_arch in $CUDA_ARCHS; do
  AS_CASE([$cuda_arch],
    [@<:@!0-9@:>@*|*@<:@!0-9a-z@:>@*],
    [AC_MSG_ERROR([$cuda_arch in CUDA_ARCHS is no compute capability such as 80 or 90a])])
  CUDA_GENCODE="$CUDA_GENCODE -gencode arch=compute_$cuda_arch,code=sm_$cuda_arch"
  AS_CASE([$cuda_ptx$cuda_arch], [*@<:@!0-9@:>@*], [],
    [cuda_ptx=once CUDA_GENCODE="$CUDA_GENCODE -gencode arch=compute_$cuda_arch,code=compute_$cuda_arch"])
done])

AC_DEFUN([_ET_CUDA_FIND],
[AC_MSG_CHECKING([for CUDA and cuDNN 9])
cuda_dir=
AS_CASE([$with_cuda], [yes|auto], [], [cuda_dir=$with_cuda])
cuda_found=`CC="$CC" CPPFLAGS="$CPPFLAGS" NVCC="$NVCC" $SHELL "$srcdir/build-aux/find-cuda.sh" \
  ${cuda_dir:+"--with-cuda=$cuda_dir"} ${with_cudnn:+"--with-cudnn=$with_cudnn"}` ||
  AC_MSG_ERROR([build-aux/find-cuda.sh ended early])
eval "$cuda_found"
AS_IF([test -z "$CUDA_MISSING"], [AC_MSG_RESULT([$CUDA_FOUND])], [AC_MSG_RESULT([no])])])

# Whether nvcc works: it goes with some of the host's compilers only. Then whether programs
# can be linked. The sentence if not is in CUDA_MISSING.
AC_DEFUN([_ET_CUDA_TRY],
[AC_MSG_CHECKING([whether $NVCC compiles with $CXX])
cat >conftest.cu <<'EOF'
#include <cuda_bf16.h>
#include <cuda_fp16.h>
__global__ void add(__nv_bfloat16 *x, __half *y) { x@<:@0@:>@ += __float2bfloat16(__half2float(y@<:@0@:>@)); }
EOF
CUDA_HOST_CXX=
for cuda_word in $CXX; do
  AS_CASE([$cuda_word], [ccache|*/ccache], [], [CUDA_HOST_CXX=$cuda_word; break])
done
AS_IF([AC_RUN_LOG([$NVCC -std=c++17 -ccbin $CUDA_HOST_CXX $CUDA_GENCODE $CUDA_CPPFLAGS \
    -c -o conftest.cubin.o conftest.cu])],
  [AC_MSG_RESULT([yes])],
  [AC_MSG_RESULT([no])
   CUDA_MISSING="$NVCC does not compile with $CUDA_HOST_CXX, as config.log says (CXX and NVCC choose others); found was $CUDA_FOUND"])
rm -f conftest.cu conftest.cubin.o
AS_IF([test -z "$CUDA_MISSING"],
  [AC_MSG_CHECKING([whether CUDA's libraries can be linked])
   save_LIBS=$LIBS
   LIBS="$CUDA_LIBS_BLASLT $CUDA_LIBS_DNN $CUDA_LIBS_RUNTIME $LIBS"
   AC_LINK_IFELSE([AC_LANG_PROGRAM(
       [[char cudaLibraryLoadData(void), cublasLtCreate(void), cudnnBackendExecute(void);]],
       [[return cudaLibraryLoadData() + cublasLtCreate() + cudnnBackendExecute();]])],
     [AC_MSG_RESULT([yes])],
     [AC_MSG_RESULT([no])
      CUDA_MISSING="programs cannot be linked with it, as config.log says: $CUDA_FOUND"])
   LIBS=$save_LIBS])])
