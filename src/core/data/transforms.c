/* SPDX-License-Identifier: Apache-2.0 */
/* transforms.c: the list of transforms. */
#include <string.h>

#include "etude/data.h"

#define ET_TRANSFORM(name) extern const struct et_transform_class et_transform_##name;
#include "core/data/transforms.def"
#undef ET_TRANSFORM

const struct et_transform_class *const et_transform_classes[] = {
#define ET_TRANSFORM(name) &et_transform_##name,
#include "core/data/transforms.def"
#undef ET_TRANSFORM
    NULL,
};

const struct et_transform_class *
et_transform_find(const char *name)
{
    if (!name)
        return NULL;
    for (const struct et_transform_class *const *c = et_transform_classes; *c; c++)
        if (strcmp((*c)->info.name, name) == 0)
            return *c;
    return NULL;
}
