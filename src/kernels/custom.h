/* SPDX-License-Identifier: Apache-2.0 */
/* custom.h: calls of operations of the user's own, as all devices run them. */
#ifndef ETUDE_KERNELS_CUSTOM_H
#define ETUDE_KERNELS_CUSTOM_H

#include <stdlib.h>
#include <string.h>

#include "etude/custom.h"

/* What is kept of a call. */
struct etk_custom {
    const struct et_custom_class *type;
    void *attr;
    struct et_desc *desc; /* n_in operands, n_out results */
    int n_in, n_out;
};

static inline const struct et_custom_class *
etk_custom_type(const struct et_call *call)
{
    return ((const struct et_custom_attr *)call->attr)->type;
}

/* CALL as the class's functions see it. */
static inline struct et_call
etk_custom_call(const struct et_call *call)
{
    struct et_call own = *call;
    own.attr = (const struct et_custom_attr *)call->attr + 1;
    own.attr_size = call->attr_size - sizeof(struct et_custom_attr);
    return own;
}

static inline size_t
etk_custom_workspace(const struct et_call *call)
{
    const struct et_custom_class *type = etk_custom_type(call);
    const struct et_call own = etk_custom_call(call);
    return type->workspace ? type->workspace(&own) : 0;
}

static inline void
etk_custom_free(struct etk_custom *c)
{
    free(c->attr);
    free(c->desc);
}

/* Copies what CALL describes. ENOMEM: C is to be freed all the same. */
ET_NODISCARD static inline et_status
etk_custom_init(struct etk_custom *c, const struct et_call *call)
{
    const struct et_call own = etk_custom_call(call);
    c->type = etk_custom_type(call);
    c->n_in = call->n_in;
    c->n_out = call->n_out;
    c->attr = malloc(own.attr_size + 1);
    c->desc = calloc((size_t)(call->n_in + call->n_out), sizeof *c->desc);
    if (!c->attr || !c->desc)
        return ET_ENOMEM;
    memcpy(c->attr, own.attr, own.attr_size);
    for (int i = 0; i < call->n_in; i++)
        c->desc[i] = call->in[i];
    for (int i = 0; i < call->n_out; i++)
        c->desc[call->n_in + i] = call->out[i];
    return ET_OK;
}

/* All of it on the arrays at PTR; WHY takes a sentence. */
static inline struct et_custom_run
etk_custom_run(const struct etk_custom *c, void *const *ptr, void *ws, char *why,
               size_t why_size)
{
    return (struct et_custom_run){
        .attr = c->attr,
        .n_in = c->n_in,
        .n_out = c->n_out,
        .in = c->desc,
        .out = c->desc + c->n_in,
        .x = (const void *const *)ptr,
        .y = ptr + c->n_in,
        .workspace = ws,
        .begin = 0,
        .end = 1,
        .why = why,
        .why_size = why_size,
    };
}

static inline int64_t
etk_custom_items(const struct et_call *call)
{
    const struct et_custom_class *type = etk_custom_type(call);
    const struct et_call own = etk_custom_call(call);
    return type->items ? type->items(&own) : 1;
}

#endif
