/* SPDX-License-Identifier: Apache-2.0 */
/* outline.h: a model as a table: each module, what it gives, its parameters and what
 * one sample costs. */
#ifndef ETI_MODELS_OUTLINE_H
#define ETI_MODELS_OUTLINE_H

#include "etude/model.h"

struct eti_outline_row {
    const struct et_module *module; /* borrowed: of the model */
    const char *layer;              /* its class, or the block that it is; borrowed */
    char path[128];                 /* "" is the model itself */
    int depth;                      /* of the path: 0 for the model */
    int end;                        /* the rows of what is in it end before this one */
    bool called;                    /* in an evaluation; else there is no OUT */
    struct et_desc out;             /* of one sample: axis 0 is 1 */
    int64_t params;                 /* of it and what is in it */
    int64_t flops;                  /* likewise, of one sample's evaluation */
};

struct eti_outline {
    struct et_ctx *cx;
    struct eti_outline_row *v; /* owned; a module before what is in it */
    int n;
};

/* M's modules, for samples as its facts say. M's parameters become zeros on DEV where
 * they are not bound. A module that is there several times has its costs in its first
 * row. Between the layers of a module, what it computes itself counts for the layer
 * behind. Free with eti_outline_release. */
ET_NODISCARD et_status eti_model_outline(struct et_ctx *cx, struct et_model *m,
                                         struct et_device *dev,
                                         struct eti_outline *out);
void eti_outline_release(struct eti_outline *o);

#endif
