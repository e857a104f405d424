#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The programs of examples/ run, say what they do, and end well.
. "$(dirname "$0")/../tap.sh"
own_folder etude-examples
for program in own_loop custom_algorithm custom_op distillation; do
    "$ET_BUILDDIR/examples/$program" >out 2>&1
    ok $? "examples/$program trains and learns"
    sed 's/^/# /' out
done
finish
