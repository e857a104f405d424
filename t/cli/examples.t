#!/bin/sh
# The programs of examples/ run, say what they do, and end well.
set -u
build=${ET_BUILDDIR:-$(dirname "$0")/../../build}
n=0
for program in own_loop custom_algorithm distillation; do
    n=$((n + 1))
    if out=$("$build/examples/$program" 2>&1); then
        result=ok
    else
        result="not ok"
    fi
    echo "$result $n - examples/$program trains and learns"
    echo "$out" | sed 's/^/# /'
done
echo "1..$n"
