#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What ./bootstrap installs, under which names, and what it says of packages that apt does
# not have. Small programs stand for apt, dpkg, sudo, the autotools and make.
. "$(dirname "$0")/../tap.sh"
own_folder etude-bootstrap
shown=said

# program NAME: its text is the input
program() {
    { echo '#!/bin/sh'; cat; } >"bin/$1"
    chmod +x "bin/$1"
}
mkdir bin
program dpkg-query <<'SH'
for name in "$@"; do :; done
! grep -qx "$name" "$FAKE/installed" || echo 'install ok installed'
SH
program apt-cache <<'SH'
grep -qx "$2" "$FAKE/known" && printf '%s:\n  Installed: (none)\n  Candidate: 1.0\n' "$2"
SH
program apt-get <<'SH'
[ "$1" = install ] || exit 0
shift
for name in "$@"; do
    case $name in -*) continue ;; esac
    grep -qx "$name" "$FAKE/known" || { echo "E: Unable to locate package $name" >&2; exit 100; }
    echo "$name" >>"$FAKE/installed"
done
SH
program sudo <<'SH'
exec "$@"
SH
program autoreconf <<'SH'
printf '#!/bin/sh\ntouch Makefile config.log\n' >configure
chmod +x configure
SH
program make <<'SH'
touch "$FAKE/made"
SH
PATH=$dir/bin:$PATH FAKE=$dir
export PATH FAKE

# bootstrap [WORD]: in a new folder; leaves status, said
bootstrap() {
    rm -rf tree made
    mkdir tree
    cp "$ET_SRCDIR/bootstrap" tree/
    touch tree/configure.ac
    tree/bootstrap "$@" >said 2>&1
    status=$?
}
# The packages of the table, all names of them.
sed -n "/^packages='/,/^'/p" "$ET_SRCDIR/bootstrap" | grep '^[a-z].*' | grep -v = |
    sed 's/ .*//' >table
tr '|' '\n' <table >names

cp names known
: >installed
bootstrap
is "$status $(sort installed | tr '\n' ' ')" "0 $(sed 's/|.*//' table | sort | tr '\n' ' ')" \
    'where apt has all, the first name of each is installed'
bootstrap
is "$status $(cat said)" '0 bootstrap: built build/etude' \
    'and when they are there nothing is installed'

grep -vx 'libmsgpack-dev' names >known
: >installed
bootstrap
is "$status $(grep msgpack installed)" '0 libmsgpack-c-dev' \
    'a package that has another name in this release is installed by that'

grep -vx 'dataset-fashion-mnist\|libgloo-dev' names >known
: >installed
bootstrap
is "$status $(grep 'no package' said)" "0 bootstrap: apt has no package libgloo-dev, which is \
for: several ranks on processors (etude train -n 2)
bootstrap: apt has no package dataset-fashion-mnist, which is for: the data of \
recipes/fashion_mnist.yaml" 'what apt does not have is named, with what it is for'
[ -f made ] && grep -qx libfyaml-dev installed
is $? 0 'the rest is installed, and Etude is built'

grep -vx 'libfyaml-dev\|libmsgpack-dev\|libmsgpack-c-dev' names >known
: >installed
bootstrap
is "$status $(cat said)" '69 bootstrap: apt has no package libfyaml-dev, libmsgpack-dev or '\
'libmsgpack-c-dev, without which Etude cannot be built; see README, "Other systems"' \
    'what Etude cannot be built without ends it, in one line'
[ ! -s installed ] && [ ! -f made ]
is $? 0 'before anything is installed'

bootstrap chekc
is "$status $(cat said)" '64 usage: ./bootstrap [run|check]' 'words that it does not know likewise'
finish
