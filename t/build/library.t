#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What others build on: libetude.so.1 and the program export the public names alone; an
# installed prefix that has been moved compiles and runs programs, which find their device
# modules beside the library or where they are told.
. "$(dirname "$0")/../tap.sh"
own_folder etude-library
shown=said
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR LD_LIBRARY_PATH ETUDE_MODULE_PATH ETUDE_DEVICE
library=$ET_BUILDDIR/.libs/libetude.so.1
cc=$(sed -n 's/^CC = //p' "$ET_BUILDDIR/Makefile")
flags=$(sed -n 's/^CFLAGS = //p' "$ET_BUILDDIR/Makefile" | grep -o -e '-fsanitize=[a-z,]*')

# ---- names ----

for file in "$library" "$ET_BUILDDIR/etude"; do
    nm -D --defined-only "$file" | sed -n 's/^[0-9a-f]* [TDBR] //p' >names
    grep -v '^et_\|@' names >said # with @ are copies of another library's
    [ -s names ] && ! [ -s said ]
    ok $? "${file##*/} exports names that begin with et_ and no others"
done
# The functions that headers declare, but for those that a device module or a program has.
sed -n '/^typedef/d; s/^\([a-z].*[ *]\)\{0,1\}\(et_[a-z0-9_]*\)(.*/\2/p' "$ET_SRCDIR"/include/etude/*.h |
    grep -v '^et_device_module$' | sort -u >declared
nm -D --defined-only "$library" | sed -n 's/.* T \(et_[a-z0-9_]*\).*/\1/p' | sort -u >names
grep -hE '^(ET_[A-Z_0-9]+ )?static' -A 2 "$ET_SRCDIR"/include/etude/*.h |
    sed -n 's/.*\(et_[a-z0-9_]*\)(.*/\1/p' | sort -u >inline
comm -23 declared names | comm -23 - inline >said
[ "$(wc -l <declared)" -gt 200 ] && ! [ -s said ]
ok $? 'the library exports every function that a public header declares'
readelf -d "$library" >said
grep -q 'SONAME.*\[libetude.so.1\]' said && ! grep -q TEXTREL said
ok $? 'it is called libetude.so.1, and its code is position-independent'

# ---- an installed prefix, moved ----

make -s -C "$ET_BUILDDIR" install DESTDIR="$dir/root" >said 2>&1
ok $? 'make install puts all below DESTDIR'
prefix=$(sed -n 's/^prefix = //p' "$ET_BUILDDIR/Makefile")
mv "root$prefix" moved || exit 99
rm -rf root
lib=$dir/moved/lib
[ -f "$lib/libetude.so.1" ] || lib=$(dirname "$(find "$dir/moved" -name libetude.so.1)")
docs=$dir/moved/share/doc/etude
shown=said
: >said
for name in README.md HACKING NEWS $(grep -ohE '(examples|doc)/[a-z_]+(\.(c|py))?' \
    "$ET_SRCDIR"/include/etude/*.h "$ET_SRCDIR/README.md" | sort -u); do
    [ "$name" = doc/etude ] || [ -f "$docs/$name" ] || echo "$name" >>said
done
[ ! -s said ]
ok $? 'what the headers and README name is installed where they say'

if command -v pkg-config >/dev/null; then
    PKG_CONFIG_PATH=$lib/pkgconfig
    export PKG_CONFIG_PATH
    config() {
        pkg-config --define-prefix "$@" etude
    }
    is "$(config --libs | sed 's/ *$//')" "-L$lib -letude" 'pkg-config gives this library alone to link'
    is "$(config --modversion)" "$("$dir/moved/bin/etude" version | sed 's/etude //')" \
        'and the version that the program has'
    config --libs --static >said
    grep -q -e '-lfyaml' said && grep -q -e '-lsqlite3' said
    ok $? 'with --static it gives what the library needs, too'
    build() { # PROGRAM SOURCE FLAGS...
        program=$1 source=$2
        shift 2
        # shellcheck disable=SC2046,SC2086
        $cc $flags $before -Wall -Wextra -Werror "$source" -o "$program" $(config --cflags --libs) "$@" >said 2>&1
    }
    before=
    build own_loop "$docs/examples/own_loop.c"
    ok $? 'an example is built from what is installed'
    LD_LIBRARY_PATH=$lib OMP_NUM_THREADS=1 ./own_loop >said 2>&1
    ok $? 'and trains'

    # As if it had been built before a field was put into a struct.
    cp -r "$dir/moved/include" other
    sed -i '/^struct et_conv2d_options/s/$/ int64_t more;/' other/etude/nn.h
    # shellcheck disable=SC2046
    awk -f "$ET_SRCDIR/build-aux/layouts.awk" $(find other/etude -name '*.h' ! -name abi.h \
        ! -name plugin.h | sort) >layouts && mv layouts other/etude/layouts.h
    before="-Iother"
    build stale "$docs/examples/own_loop.c"
    before=
    LD_LIBRARY_PATH=$lib ./stale >said 2>&1
    is $? 1 'a program that was compiled with other headers ends'
    grep -q 'other headers than those of libetude .*: struct et_conv2d_options is 72 bytes there, 64 here' said
    ok $? 'and says which struct differs'

    cat >where.c <<'C'
#include <etude/etude.h>
#include <stdio.h>
#include <string.h>
/* Prints the version, and where the module of the device "cpu" has been loaded from. */
int
main(int argc, char **argv)
{
    char line[4096], *path = NULL;
    struct et_ctx *cx;
    struct et_device *dev;
    if (et_ctx_new(&cx) != ET_OK ||
        (argc > 1 && et_ctx_set_module_path(cx, argv[1]) != ET_OK))
        return 1;
    if (et_device_open(cx, "cpu", 0, 1, &dev) != ET_OK) {
        puts(et_error_get(cx)->message);
        return 1;
    }
    if (strcmp(et_version(), ET_VERSION) != 0 || et_version_number() != ET_VERSION_NUMBER)
        return 2;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (!path && maps && fgets(line, sizeof line, maps))
        path = strstr(line, "libetude-cpu.so") ? strchr(line, '/') : NULL;
    printf("%s", path ? path : "none\n");
    if (maps)
        fclose(maps);
    et_device_close(&dev);
    et_ctx_free(&cx);
    return 0;
}
C
    build where where.c
    ok $? 'a program that asks for the version is built'
    if [ -f "$lib/etude/libetude-cpu.so" ]; then
        export LD_LIBRARY_PATH="$lib"
        is "$(./where 2>&1)" "$lib/etude/libetude-cpu.so" 'the module is found beside the library'
        mkdir one two
        cp "$lib/etude/libetude-cpu.so" one
        cp "$lib/etude/libetude-cpu.so" two
        is "$(ETUDE_MODULE_PATH=$dir/none:$dir/one ./where 2>&1)" "$dir/one/libetude-cpu.so" \
            'ETUDE_MODULE_PATH comes before it, and a folder without the module is passed over'
        is "$(ETUDE_MODULE_PATH=$dir/one ./where "$dir/two" 2>&1)" "$dir/two/libetude-cpu.so" \
            "the context's own folders come before both"
        mv "$lib/etude/libetude-cpu.so" .
        ./where >said 2>&1
        grep -qF "$lib/etude/libetude-cpu.so" said || [ -e "$prefix/lib/etude/libetude-cpu.so" ]
        ok $? 'one that is nowhere is named where it would be beside the library'
        mv libetude-cpu.so "$lib/etude/"
        unset LD_LIBRARY_PATH
        ETUDE_CONFIG_DIR=$dir/.absent "$dir/moved/bin/etude" version --verbose >said 2>&1
        grep -q '^device  *cpu .*oneDNN' said
        ok $? 'the program that was moved with it has the module, too'
    fi
    # A plugin that links the library gets the program's copy of what it calls.
    build plugin.so "$docs/examples/plugin.c" -shared -fPIC -Wl,--no-as-needed
    readelf -d plugin.so >said
    grep -q 'NEEDED.*\[libetude.so.1\]' said
    ok $? 'a plugin can be linked with the library'
    export ETUDE_CONFIG_DIR="$dir/user"
    "$dir/moved/bin/etude" config set plugins.signs "{path: $dir/plugin.so,
        sha256: '$(sha256sum <plugin.so | cut -d ' ' -f 1)'}" >said 2>&1
    cat >tiny.yaml <<'YAML'
plugins: [signs]
model: {name: mlp}
train_data: {name: synthetic_images, num_samples: 32, resolution: 8, batch_size: 8}
optimizer: {name: sign_sgd, lr: 0.1}
callbacks: {worst_loss: }
max_duration: 4ba
YAML
    LD_LIBRARY_PATH=$lib "$dir/moved/bin/etude" train tiny.yaml --run_directory run >said 2>&1
    ok $? 'and trains in the program, whose functions it calls'
    grep -q loss/train/worst run/metrics.jsonl
    ok $? 'and its callback logs'

    make -s -C "$ET_BUILDDIR" libetude.a >said 2>&1 && cp "$ET_BUILDDIR/libetude.a" "$lib" &&
        rm -f "$lib"/libetude.so*
    # shellcheck disable=SC2046,SC2086
    $cc $flags "$docs/examples/own_loop.c" -o static $(config --cflags --libs --static) >said 2>&1
    ok $? 'the static library links with what pkg-config --static gives'
    OMP_NUM_THREADS=1 ./static >said 2>&1
    ok $? 'and trains'
fi
"$dir/moved/bin/etude" recipes >said 2>&1
grep -q "fashion_mnist" said
ok $? 'the moved program finds its recipes'
finish
