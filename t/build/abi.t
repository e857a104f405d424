#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# "make abi": what it says of a library that lacks a name, or has a struct that is declared
# differently, against one from before. The libraries are small ones with public headers.
. "$(dirname "$0")/../tap.sh"
own_folder etude-abi
shown=said
cc=$(sed -n 's/^CC = //p' "$ET_BUILDDIR/Makefile")

# library FOLDER SED NAMES: FOLDER/.libs/libetude.so.1 exports NAMES, which take structs of
# the public nn.h as SED changes it
library() {
    mkdir -p "$1/.libs" && cp -r "$ET_SRCDIR/include/etude" "$1/etude" && chmod -R u+w "$1/etude"
    cp "$ET_BUILDDIR/include/etude/layouts.h" "$1/etude"
    sed -i "$2" "$1/etude/nn.h"
    echo '#include <etude/nn.h>' >"$1/names.c"
    for name in $3; do
        echo "int $name(struct et_conv2d_options *a, struct et_module *b); int $name(struct et_conv2d_options *a, struct et_module *b) { return a && b; }"
    done >>"$1/names.c"
    $cc -g -shared -fPIC "-I$1" "$1/names.c" -o "$1/.libs/libetude.so.1" >said 2>&1 || exit 99
}
compare() {
    sh "$ET_SRCDIR/build-aux/abi.sh" "$@" >said 2>&1
}

library old '' 'et_one et_two'
library same '' 'et_one et_two et_three'
compare same old/.libs/libetude.so.1
ok $? 'a library with a name more runs what was linked with the old one'
says said 'make abi: 2 names in old/.libs/libetude.so.1; 1 are new, 0 gone' 'and the names are counted'
library less '' 'et_one'
compare less old/.libs/libetude.so.1
is $? 1 'one that lacks a name does not'
says said 'gone: et_two' 'and the name is told'
if command -v abidiff >/dev/null; then
    abidw old/.libs/libetude.so.1 >old.abi 2>said
    compare less old.abi
    is $? 1 'what abidw wrote of the old library does for it'
    says said 'gone: et_two' 'with the same names'
    library grown '/^struct et_conv2d_options/,/^}/s/bool no_bias;/bool no_bias; long more[4];/' 'et_one et_two'
    compare grown old/.libs/libetude.so.1
    ok $? 'options may grow at their end'
    library moved '/^struct et_conv2d_options/s/$/ long more[4];/' 'et_one et_two'
    compare moved old/.libs/libetude.so.1
    is $? 1 'a field in front of others breaks programs'
    says said et_conv2d_options 'and the struct is named'
else
    skip 'no abidiff to compare types with'
fi
compare same no-such-release
is $? 1 'what is no library and no commit is an error'
says said 'no-such-release is no file, tag or commit' 'that says so'
compare none old/.libs/libetude.so.1
is $? 1 'so is a folder without the library'
finish
