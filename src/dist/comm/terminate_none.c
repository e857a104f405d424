/* SPDX-License-Identifier: Apache-2.0 */
/* terminate_none.c: see terminate.h; a program without a C++ runtime. */
#include "config.h"

#include "dist/comm/terminate.h"

void
etd_on_bad_alloc(void (*f)(void))
{
    (void)f;
}
