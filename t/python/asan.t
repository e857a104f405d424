#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `import etude`, and examples/notebook.py, under AddressSanitizer: the library is built
# with it, in a folder of its own, and python.t is run with that.
. "$(dirname "$0")/../tap.sh"
own_folder etude-asan
say() {
    echo "1..0 # SKIP $1"
    exit 0
}
echo 'int main(void) { return 0; }' >c.c
cc -fsanitize=address c.c -o c 2>/dev/null || say 'cc has no AddressSanitizer'
mkdir build && cd build || exit 99
"$ET_SRCDIR/configure" -q --enable-sanitizers --without-cpu --without-cuda \
    --disable-dependency-tracking >../out 2>&1 && make -s -j2 library >>../out 2>&1
if [ ! -e .libs/libetude.so.1 ]; then
    cd .. && ok 1 "the library is built with sanitizers"
    finish
fi
ET_BUILDDIR=$dir/build
export ET_BUILDDIR
"$ET_SRCDIR/t/python/python.t"
