#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What configure says of oneDNN: of versions that are too old or not known, of headers that
# are not of the library, and of none. Small headers and libraries stand for it, with the
# calls and numbers that configure looks at and nothing else; a version that can be used is
# built with the file of src/kernels/cpu that is written for it.
. "$(dirname "$0")/../tap.sh"
cc=$(command -v "${CC:-cc}") || skip_all 'no C compiler'
own_folder etude-onednn
# onednn MAJOR MINOR CALL...: one of that version below fake/, with these functions
onednn() {
    rm -rf fake
    mkdir -p fake/include/oneapi/dnnl fake/lib
    printf '#define DNNL_VERSION_MAJOR %s\n#define DNNL_VERSION_MINOR %s\n' "$1" "$2" \
        >fake/include/oneapi/dnnl/dnnl_version.h
    echo '#include "oneapi/dnnl/dnnl_version.h"' >fake/include/oneapi/dnnl/dnnl.h
    shift 2
    for call in "$@"; do echo "int $call(void); int $call(void) { return 0; }"; done >part.c
    "$cc" -shared -fPIC -o fake/lib/libdnnl.so part.c || exit 99
}

# What other tests of configure found need not be found again.
configure() {
    rm -rf build
    mkdir build
    (cd build && "$ET_SRCDIR/configure" --cache-file=../cache --without-cuda "$@" \
        CC="$cc" CFLAGS=-O1 CPPFLAGS=-I../fake/include LDFLAGS=-L"$dir/fake/lib") >out 2>&1
    status=$?
    grep -v dnnl cache >kept
    mv kept cache
}
said() {
    sed -n 's/^configure: error: //p' out
}
v2=dnnl_primitive_desc_iterator_create
v3=dnnl_matmul_primitive_desc_create
needs="Etude's CPU device needs 2.6 or later, or any 3 (Debian and Ubuntu: libdnnl-dev); \
--without-cpu builds without it, for tests: the rest is slow"

onednn 2 5 $v2
configure
is "$status $(said)" "1 oneDNN 2.5 cannot be used. $needs" \
    'oneDNN 2.5 is too old: configure ends and names what is needed'
onednn 4 0 $v3
configure
is "$status $(said)" "1 oneDNN 4.0 cannot be used. $needs" 'a version that is not known, likewise'
onednn 3 7 $v2
configure
is "$status $(said)" "1 the headers are of oneDNN 3.7, and there is no libdnnl of that version to \
link with. $needs" 'headers of 3 with a library of 2 end it too'
# which: the file that is built
which() {
    sed -n "s,^am__append_[0-9]* = src/kernels/cpu/\(onednn_v.\.c\)\$,\1,p" build/Makefile
}
for version in '2 10' '3 7'; do
    # shellcheck disable=SC2086
    set -- $version
    eval "onednn $1 $2 \$v$1"
    configure --with-cpu
    is "$status $(sed -n 's/^configure: cpu device //p' out) $(which)" \
        "0 yes: oneDNN $1.$2 onednn_v$1.c" "oneDNN $1.$2 is built with onednn_v$1.c"
done
is "$(sed -n 's/^CFLAGS = //p' build/Makefile)" -O1 'and with the CFLAGS that are given'
finish
