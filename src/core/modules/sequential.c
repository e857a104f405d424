/* SPDX-License-Identifier: Apache-2.0 */
/* sequential.c: modules in a row, and the two that only pass things on. */
#include "core/modules/common.h"

static struct et_tensor *
sequential_forward(struct et_module *m, struct et_forward *f, struct et_tensor *x)
{
    for (int i = 0; i < m->n_items; i++)
        x = et_forward(f, m->items[i].module, x);
    return x;
}

const struct et_module_class et_sequential_class = {
    .info =
        {
            .name = "sequential",
            .class_name = "Sequential",
            .summary = "modules applied one after the other",
            .source = "torch.nn.Sequential",
            .applies_to = "any",
        },
    .size = sizeof(struct et_module),
    .forward = sequential_forward,
};

static struct et_tensor *
identity_forward(struct et_module *m, struct et_forward *f, struct et_tensor *x)
{
    (void)m, (void)f;
    return x;
}

const struct et_module_class et_identity_class = {
    .info =
        {
            .name = "identity",
            .class_name = "Identity",
            .summary = "its input",
            .source = "torch.nn.Identity",
            .applies_to = "any",
        },
    .size = sizeof(struct et_module),
    .forward = identity_forward,
};

static struct et_tensor *
flatten_forward(struct et_module *m, struct et_forward *f, struct et_tensor *x)
{
    (void)m;
    return x ? et_reshape(f->g, x, ET_SHAPE(x->desc.shape[0], -1)) : NULL;
}

static et_status
flatten_adapt(struct et_ctx *cx, void *options, int64_t shape[3])
{
    (void)cx, (void)options;
    if (shape[1] > 0)
        shape[0] *= shape[1] * shape[2];
    shape[1] = shape[2] = 0;
    return ET_OK;
}

const struct et_module_class et_flatten_class = {
    .info =
        {
            .name = "flatten",
            .class_name = "Flatten",
            .summary = "all axes but the first as one",
            .source = "torch.nn.Flatten",
            .applies_to = "any",
        },
    .size = sizeof(struct et_module),
    .forward = flatten_forward,
    .adapt = flatten_adapt,
};
