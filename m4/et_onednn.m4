dnl SPDX-License-Identifier: Apache-2.0
# et_onednn.m4: the library under the CPU device module.

# ET_ONEDNN: sets have_dnnl to yes or no, dnnl_major to the major version, and dnnl_said
# to what people are told. Ends configure where oneDNN is there and cannot be used: on
# the reference device alone, a hundred times slower, nobody would know why.
AC_DEFUN([ET_ONEDNN],
[AC_CHECK_HEADER([oneapi/dnnl/dnnl.h], [dnnl_header=yes], [dnnl_header=no])
AS_IF([test $dnnl_header = no],
  [dnnl_said="oneDNN is missing (Debian and Ubuntu: libdnnl-dev)"],
  [AC_CACHE_CHECK([for the version of oneDNN], [etude_cv_dnnl_version],
     [AC_COMPUTE_INT([dnnl_major], [DNNL_VERSION_MAJOR], [@%:@include <oneapi/dnnl/dnnl_version.h>], [dnnl_major=0])
      AC_COMPUTE_INT([dnnl_minor], [DNNL_VERSION_MINOR], [@%:@include <oneapi/dnnl/dnnl_version.h>], [dnnl_minor=0])
      etude_cv_dnnl_version=$dnnl_major.$dnnl_minor])
   dnnl_major=${etude_cv_dnnl_version%.*}
   dnnl_minor=${etude_cv_dnnl_version#*.}
   dnnl_needs="Etude's CPU device needs 2.6 or later, or any 3 (Debian and Ubuntu: libdnnl-dev); --without-cpu builds without it, for tests: the rest is slow"
   AS_CASE([$dnnl_major.$dnnl_minor],
     [2.@<:@6-9@:>@|2.??|3.*], [],
     [AC_MSG_ERROR([oneDNN $etude_cv_dnnl_version cannot be used. $dnnl_needs])])
   # A call that only this major version has: header and library belong together.
   AS_IF([test $dnnl_major = 2],
     [dnnl_call=dnnl_primitive_desc_iterator_create],
     [dnnl_call=dnnl_matmul_primitive_desc_create])
   AC_CHECK_LIB([dnnl], [$dnnl_call], [have_dnnl=yes dnnl_said="oneDNN $etude_cv_dnnl_version"],
     [AC_MSG_ERROR([the headers are of oneDNN $etude_cv_dnnl_version, and there is no libdnnl of that version to link with. $dnnl_needs])])])
])
