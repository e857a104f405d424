/* SPDX-License-Identifier: Apache-2.0 */
/* assert.h: for our own bugs only. Bad input is a status, never an assertion. */
#ifndef ETI_ASSERT_H
#define ETI_ASSERT_H

#include <stdlib.h>

#define ET_ASSERT(condition)                                                           \
    do {                                                                               \
        if (!(condition))                                                              \
            abort();                                                                   \
    } while (0)

#endif
