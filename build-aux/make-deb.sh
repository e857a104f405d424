#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make-deb.sh BUILD VERSION: packs what "make install" of the build folder BUILD installs as
# etude_VERSION_ARCHITECTURE.deb in the current folder, whatever its prefix is. "make deb"
# calls it for a build with the prefix /usr.
#
# Depends is what dpkg-shlibdeps finds for the program and its modules, but for the CUDA
# module: its libraries are NVIDIA's, are searched for where the program runs, and may be
# missing.
#
# The package's copyright names who AUTHORS names first, and the license that LICENSE is:
# its text is on every Debian machine.
set -eu
build=$1 version=$2 source=$(cd "$(dirname "$0")/.." && pwd)
fail() {
    echo "make deb: $1" >&2
    exit 1
}
for tool in dpkg-deb dpkg-shlibdeps; do
    command -v $tool >/dev/null || fail "$tool is missing (Debian and Ubuntu: dpkg-dev)"
done
out=$PWD
work=$(mktemp -d "${TMPDIR:-/tmp}/etude-deb.XXXXXX")
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root/DEBIAN" "$work/debian"
chmod 755 "$root"

${MAKE:-make} -s -C "$build" install-strip DESTDIR="$root" >"$work/install.log" 2>&1 || {
    cat "$work/install.log" >&2
    fail "make install failed in $build"
}
find "$root" -name '*.la' -delete
# A library that dpkg-shlibdeps, and every program's loader, finds by its name.
printf 'libetude 1 etude\n' >"$work/debian/shlibs.local"
find "$root" -path '*/man/man*' -type f -exec gzip -9n {} +

authors=$(head -n 1 "$source/AUTHORS")
common=/usr/share/common-licenses/Apache-2.0
grep -q '^ *Apache License$' "$source/LICENSE" && grep -q 'Version 2.0' "$source/LICENSE" ||
    fail 'LICENSE is not the Apache License 2.0, which the package says it is under'
mkdir -p "$root/usr/share/doc/etude"
cat >"$root/usr/share/doc/etude/copyright" <<COPYRIGHT
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: etude

Files: *
Copyright: $authors
License: Apache-2.0

License: Apache-2.0
 The full text of the Apache License, version 2.0, is in $common.
COPYRIGHT
# "make install" put it below the prefix; Debian has one place for it.
find "$root" -path '*/doc/etude/NEWS' -delete
gzip -9nc "$source/NEWS" >"$root/usr/share/doc/etude/NEWS.gz"

# dpkg-shlibdeps reads debian/control of the folder that it runs in.
printf 'Source: etude\n\nPackage: etude\nArchitecture: any\n' >"$work/debian/control"
find "$root" -type f \( -path '*/bin/*' -o -name '*.so' -o -name 'libetude.so.*' \) ! -name libetude-cuda.so >"$work/elf"
set --
while IFS= read -r file; do
    set -- "$@" "-e$file"
done <"$work/elf"
(cd "$work" && dpkg-shlibdeps -O "$@" 2>"$work/shlibdeps.log") >"$work/substvars" || {
    cat "$work/shlibdeps.log" >&2
    fail 'dpkg-shlibdeps failed: some library comes from no package'
}
depends=$(sed -n 's/^shlibs:Depends=//p' "$work/substvars")
[ -n "$depends" ] || fail 'dpkg-shlibdeps found no dependencies'

# What own programs are compiled with (etude.pc), and what recipes train on.
suggests='dataset-fashion-mnist, bible-kjv, python3-numpy, gcc, pkg-config, libfyaml-dev, libjansson-dev,
 zlib1g-dev, libpng-dev, libjpeg-dev, libwebp-dev, libzstd-dev, libxxhash-dev, libsqlite3-dev, libpcre2-dev, libutf8proc-dev,
 libsodium-dev, libmsgpack-dev'
cuda=$(sed -n 's/^#define ET_CUDA_MAJOR \([0-9]*\)$/\1/p' "$build/config.h")
if [ -n "$cuda" ] && [ -n "$(find "$root" -name libetude-cuda.so)" ]; then
    suggests="$suggests, libcudnn9-cuda-$cuda"
fi

{
    cat <<CONTROL
Package: etude
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: ${DEBFULLNAME:-Whoever built it} <${DEBEMAIL:-root@localhost}>
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Depends: $depends
Suggests: $suggests
Section: science
Priority: optional
Description: workbench for training neural networks
 Etude composes a training recipe (a model, data, an optimizer, and training
 methods that make it faster or better), runs it, and watches it on a terminal.
 It has an engine of its own, stands on oneDNN on processors, and on cuDNN and
 cuBLASLt on NVIDIA GPUs where these are installed.
CONTROL
} >"$root/DEBIAN/control"
(cd "$root" && find . -path ./DEBIAN -prune -o -type f -print | sed 's,^\./,,' | LC_ALL=C sort |
    tr '\n' '\0' | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
find "$root" -type d -exec chmod 755 {} +

name=etude_${version}_$(dpkg --print-architecture).deb
dpkg-deb --root-owner-group --build "$root" "$out/$name" >/dev/null
echo "$name"
