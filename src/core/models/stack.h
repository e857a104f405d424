/* SPDX-License-Identifier: Apache-2.0 */
/* stack.h: models that are a row of layers: each layer adapts to what comes before. */
#ifndef ETI_STACK_H
#define ETI_STACK_H

#include "etude/model.h"
#include "etude/nn.h"

struct eti_stack {
    struct et_ctx *cx;
    struct et_module *row; /* Sequential; borrowed from whoever called begin */
    int64_t shape[3];      /* C, H, W of one sample here; H = 0: a vector */
};

/* *ROOT becomes an empty Sequential for samples as FACTS say. */
ET_NODISCARD et_status eti_stack_begin(struct et_ctx *cx,
                                       const struct et_model_facts *facts,
                                       struct et_module **root, struct eti_stack *out);
/* Appends a layer; sizes left 0 in OPTIONS (the class's struct, may be NULL) are filled
 * in. NAME NULL = its index. */
ET_NODISCARD et_status eti_stack_add(struct eti_stack *s, const char *name,
                                     const struct et_module_class *type, void *options);
/* Can a recipe write it? It has a table, or nothing to set. Not: what is made from
 * other modules, and rows of layers, which would have no items. */
bool eti_is_layer(const struct et_module_class *c);
/* Options by field, as ET_ADD: ETI_STACK(&s, "fc", linear, .out_features = 10) */
#define ETI_STACK(s, key, layer, ...)                                                  \
    eti_stack_add((s), (key), &et_##layer##_class,                                     \
                  &(struct et_##layer##_options){__VA_ARGS__})

#endif
