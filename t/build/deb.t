#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The Debian package that build-aux/make-deb.sh makes of this build: what is in it, what it
# depends on, and that a program unpacked from it, with no build tree beside it, trains.
. "$(dirname "$0")/../tap.sh"
for tool in dpkg-deb dpkg-shlibdeps; do
    command -v $tool >/dev/null || skip_all "no $tool"
done
# The libraries of a sanitizer come first in every process, or their programs end.
! grep -q '^SANITIZERS_TRUE = *$\|^SANITIZE_THREAD_TRUE = *$' "$ET_BUILDDIR/Makefile" ||
    skip_all 'packages are not made of checked builds'
own_folder etude-deb
shown=said
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR

DPKG_DEB_COMPRESSOR_TYPE=gzip DPKG_DEB_COMPRESSOR_LEVEL=1
export DPKG_DEB_COMPRESSOR_TYPE DPKG_DEB_COMPRESSOR_LEVEL
sh "$ET_SRCDIR/build-aux/make-deb.sh" "$ET_BUILDDIR" 1.2.3 >made 2>said
ok $? 'a package is built'
deb=$(cat made)
[ -f "$deb" ] || finish
dpkg-deb --info "$deb" >said
field() {
    dpkg-deb --field "$deb" "$1"
}
[ "$deb" = "etude_1.2.3_$(dpkg --print-architecture).deb" ] && [ "$(field Version)" = 1.2.3 ]
ok $? "its name has the version and the architecture: $deb"

# What the program is linked with says which packages it needs.
for library in jansson sqlite3 sodium zmq; do
    field Depends | grep -q "lib$library"
    ok $? "it depends on the package of lib$library"
done
field Depends >said
! field Depends | grep -qi 'cuda\|cudnn\|cublas\|nvidia'
ok $? 'and on none of NVIDIA'
if [ -f "$ET_BUILDDIR/.libs/libetude-cpu.so" ]; then
    field Depends | grep -q dnnl
    ok $? 'the CPU module brings oneDNN'
fi

dpkg-deb --contents "$deb" >said
root=$dir/root
mkdir "$root"
dpkg-deb --extract "$deb" "$root" || exit 99
prefix=$(sed -n 's/^prefix = //p' "$ET_BUILDDIR/Makefile")
for file in bin/etude share/bash-completion/completions/etude \
    share/zsh/site-functions/_etude share/fish/vendor_completions.d/etude.fish \
    share/man/man1/etude.1.gz share/man/man1/etude-train.1.gz share/man/man5/etude-keys.5.gz \
    share/etude/recipes/fashion_mnist.yaml share/etude/themes/dark.yaml include/etude/etude.h; do
    [ -s "$root$prefix/$file" ]
    ok $? "it has $file"
done
copyright=$root/usr/share/doc/etude/copyright
grep -q '^Copyright: The Etude authors$' "$copyright" && grep -q '^License: Apache-2.0$' "$copyright"
ok $? 'it says whose Etude is, and under which license'
[ -s "$root/usr/share/doc/etude/NEWS.gz" ]
ok $? 'and what is new'
for module in cpu cuda; do
    [ -f "$ET_BUILDDIR/.libs/libetude-$module.so" ] || continue
    [ -s "$(find "$root" -name libetude-$module.so)" ]
    ok $? "it has the module of the device $module"
done
! grep -q '\.la$' said
ok $? 'and no files of libtool'
find "$root" ! -type d ! -perm -444 >said
[ ! -s said ]
ok $? 'everybody may read what is in it'
dpkg-deb --ctrl-tarfile "$deb" | tar -xO ./md5sums >sums
(cd "$root" && md5sum --quiet -c ../sums) >said 2>&1
ok $? 'its sums are those of its files'

# The program moved away from where it was to be installed.
mkdir home work
HOME=$dir/home
export HOME
unset XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_CACHE_HOME
etude=$root$prefix/bin/etude
"$etude" version >said 2>&1
ok $? 'its program runs'
cat >work/tiny.yaml <<'YAML'
model: {name: mlp}
train_data: {name: synthetic_images, num_samples: 32, resolution: 8, batch_size: 8}
optimizer: {name: sgd, lr: 0.1}
max_duration: 4ba
YAML
(cd work && "$etude" train tiny.yaml --run_directory run) >said 2>&1
ok $? 'and trains'
if [ -f "$ET_BUILDDIR/.libs/libetude-cpu.so" ]; then
    "$etude" version --verbose >said 2>&1
    grep -q '^device  *cpu .*oneDNN' said
    ok $? 'with the CPU module that is in the package'
fi
finish
