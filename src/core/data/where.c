/* SPDX-License-Identifier: Apache-2.0 */
/* where.c: where the transforms of a recipe's data run, for people. See resident.h. */
#include <stdio.h>
#include <string.h>

#include "core/data/fields.h"
#include "core/data/pipeline.h"
#include "core/data/resident.h"

void
eti_transforms_where(struct et_ctx *cx, const struct et_dataset_class *c,
                     const void *options, char *text, size_t size)
{
    const struct et_data_options *o = options;
    struct et_data_facts f = {0};
    struct eti_pipeline p;
    *text = '\0';
    if (!c->describe)
        return;
    c->describe(options, &f);
    const int image = eti_facts_image(&f);
    if (image < 0)
        return;
    if (eti_pipeline_init(cx, &p, &f.field[image], o->resolution, &o->transforms,
                          NULL) != ET_OK) {
        et_error_clear(cx); /* others say what is wrong with the list */
        return;
    }
    const char *why = image == ET_FIELD_X ? p.host_only : "the image is not first";
    if (o->transforms_on == ET_TRANSFORMS_ON_HOST)
        snprintf(text, size, "host");
    else if (*why)
        snprintf(text, size, "%s: %s",
                 o->transforms_on == ET_TRANSFORMS_ON_DEVICE ? "nowhere" : "host", why);
    else if (o->transforms_on == ET_TRANSFORMS_ON_DEVICE)
        snprintf(text, size, "device");
    else
        snprintf(text, size,
                 "a GPU with free memory for 8 times the pictures, else the host");
}
