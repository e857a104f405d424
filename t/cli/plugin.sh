# SPDX-License-Identifier: Apache-2.0
# plugin.sh: what the tests of plugins share, after cli.sh: a compiler with the flags that
# people have, and a user who allows libraries.
# shellcheck shell=sh
# shellcheck disable=SC2154 # dir and etude are of cli.sh
export ETUDE_CONFIG_DIR="$dir/user"
cc=${CC:-cc}
flags=$(pkg-config --cflags --define-variable=includedir="$ET_SRCDIR/include" \
    "$ET_BUILDDIR/etude.pc" 2>/dev/null) || flags="-I$ET_SRCDIR/include"
flags="$flags -I$ET_BUILDDIR/include"
command -v "${cc%% *}" >/dev/null || { echo "1..0 # SKIP no compiler"; exit 0; }

# build FILE.so SOURCE FLAGS...: of this folder, or of the source's
build() {
    so=$1 source=$2
    [ -f "$source" ] || source=$ET_SRCDIR/$source
    shift 2
    # shellcheck disable=SC2086
    $cc -Wall -Wextra -Werror -shared -fPIC $flags -o "$so" "$source" "$@" >out 2>err
}

# allow NAME FILE: as README tells people to
allow() {
    "$etude" config set "plugins.$1" \
        "{path: $dir/$2, sha256: '$(sha256sum <"$2" | cut -d ' ' -f 1)'}" >out 2>err
}
