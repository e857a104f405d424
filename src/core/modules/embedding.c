/* SPDX-License-Identifier: Apache-2.0 */
/* embedding.c: rows of a table by index: [..] I32 -> [.., D]. */
#include "core/modules/common.h"

#include <string.h>

static et_status
embedding_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_embedding_module *m = (struct et_embedding_module *)base;
    m->o = *(const struct et_embedding_options *)options;
    m->o.std = eti_float_or(m->o.std, 1);
    ETI_NEED_POSITIVE(cx, "embedding", &m->o, num_embeddings);
    ETI_NEED_POSITIVE(cx, "embedding", &m->o, features);
    et_param_declare(&m->weight, eti_init_normal(m->o.std),
                     ET_SHAPE(m->o.num_embeddings, m->o.features));
    m->weight.init.zeros = m->o.padding ? m->o.features : 0;
    return ET_OK;
}

/* ROWS [..,D], where INDEX [..] is 0 as a constant. */
static struct et_tensor *
without_gradient_at_0(struct et_graph *g, struct et_tensor *rows,
                      struct et_tensor *index)
{
    if (!rows)
        return NULL;
    int64_t shape[ET_MAX_DIMS];
    memcpy(shape, rows->desc.shape, sizeof shape);
    shape[rows->desc.ndim - 1] = 1;
    struct et_tensor *none = et_equal(g, index, et_fill(g, ET_I32, 0, NULL, 0));
    none = et_reshape(g, none, rows->desc.ndim, shape);
    return et_where(g, none, et_detach(g, rows), rows);
}

static struct et_tensor *
embedding_forward(struct et_module *base, struct et_forward *f, struct et_tensor *index)
{
    struct et_embedding_module *m = (struct et_embedding_module *)base;
    struct et_tensor *rows = et_embedding(f->g, m->weight.tensor, index);
    return m->o.padding ? without_gradient_at_0(f->g, rows, index) : rows;
}

const struct et_module_class et_embedding_class = {
    .info =
        {
            .name = "embedding",
            .class_name = "Embedding",
            .summary = "a vector for each token",
            .source = "torch.nn.Embedding",
            .applies_to = "text",
            .options_size = sizeof(struct et_embedding_options),
        },
    .size = sizeof(struct et_embedding_module),
    .params = (const struct et_slot[]){ET_SLOT(et_embedding_module, weight), {0}},
    .init = embedding_init,
    .forward = embedding_forward,
};
