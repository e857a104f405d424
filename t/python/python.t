#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `import etude`: t/python/check.py with a Python that has NumPy, and examples/notebook.py.
library=$ET_BUILDDIR/.libs/libetude.so.1
python=
for p in "${PYTHON:-python3}" python3 /usr/bin/python3; do
    if "$p" -c 'import numpy' 2>/dev/null; then
        python=$p
        break
    fi
done
skip() {
    echo "1..0 # SKIP $1"
    exit 0
}
[ -n "$python" ] || skip 'python3 has no numpy (python3-numpy)'
[ -e "$library" ] || skip 'this build has no libetude.so.1'
if grep -q __tsan_init "$library"; then
    skip 'libetude.so.1 is built with ThreadSanitizer, which Python is not'
fi
# AddressSanitizer wants to be loaded before all else. Python's own leaks are not ours.
asan=
if grep -q __asan_init "$library"; then
    asan=$(ldd "$library" | awk '$1 ~ /^libasan/ { print $3 }')
    PYTHONMALLOC=malloc
    ASAN_OPTIONS=detect_leaks=0
    export PYTHONMALLOC ASAN_OPTIONS
fi
ETUDE_LIBRARY=$(readlink -f "$library")
PYTHONPATH=$(readlink -f "$ET_SRCDIR/python")
examples=$(readlink -f "$ET_SRCDIR/examples")
export ETUDE_LIBRARY PYTHONPATH
# A plugin, where there is a compiler.
folder=$(mktemp -d) || exit 99
trap 'rm -rf "$folder"' EXIT
plugin=$folder/all_conv.so
${CC:-cc} -shared -fPIC -I"$ET_SRCDIR/include" -I"$ET_BUILDDIR/include" -o "$plugin" \
    "$ET_SRCDIR/examples/plugin_model.c" 2>/dev/null || plugin=
PYTHONDONTWRITEBYTECODE=1 env ${asan:+LD_PRELOAD=$asan} "$python" "$ET_SRCDIR/t/python/check.py" "$examples" \
    "$ET_SRCDIR/man/prose/etude-python.7.mdoc" "$plugin"
