/* SPDX-License-Identifier: Apache-2.0 */
/* device.h: which device a test runs on: what it names, or the one of ETUDE_DEVICE. */
#ifndef T_DEVICE_H
#define T_DEVICE_H

#include <stdlib.h>
#include <string.h>

#include "etude/tensor.h"

/* NAME: "cpu", or NULL where any will do (then "ref"): ETUDE_DEVICE takes its place.
 * "ref": what others are compared with stays. Borrowed. */
static inline const char *
test_device(const char *name)
{
    const char *given = getenv("ETUDE_DEVICE");
    if (name && strcmp(name, "ref") == 0)
        return name;
    return given && given[0] ? given : name ? name : "ref";
}

/* For tests that compare the bits of two runs: a GPU gives the same bits each time in
 * its deterministic mode alone. Others do in any, and stay in theirs. */
static inline et_status
test_device_repeat(struct et_device *dev)
{
    return strcmp(et_device_name(dev), "cuda") != 0
               ? ET_OK
               : et_device_set(dev, ET_DEVICE_DETERMINISTIC, 1);
}

#endif
