/* SPDX-License-Identifier: Apache-2.0 */
/* version.c: see the public version.h, in which configure.ac reads the version. */
#include "etude/version.h"

const char *
et_version(void)
{
    return ET_VERSION;
}

int
et_version_number(void)
{
    return ET_VERSION_NUMBER;
}
