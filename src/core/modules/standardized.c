/* SPDX-License-Identifier: Apache-2.0 */
/* standardized.c: a convolution whose filters are standardised where they are used.
 *
 * W' = (W - mean) / sqrt(var + 1e-10) over all of a filter, the variance biased.
 * Source: Qiao et al. 2019 (arXiv 1903.10520); spec/algorithms.md 2.27. The weight has
 * the name that PyTorch's parametrisations give it. */
#include "core/modules/common.h"

#define EPS 1e-10

/* A layer norm of the filters as they lie in memory, [K, R S C]. */
struct et_tensor *
et_standardize_weight(struct et_graph *g, struct et_tensor *w)
{
    static const int to_krsc[] = {0, 2, 3, 1}, to_kcrs[] = {0, 3, 1, 2};
    struct et_tensor *rows = et_permute(g, w, to_krsc);
    if (!rows)
        return NULL;
    const int64_t *n = rows->desc.shape;
    rows = et_reshape(g, rows, ET_SHAPE(n[0], n[1] * n[2] * n[3]));
    rows = et_layer_norm(g, rows, NULL, NULL, 1, EPS);
    return et_permute(g, et_reshape(g, rows, 4, n), to_kcrs);
}

static et_status
standardized_conv2d_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_conv2d_module *m = (struct et_conv2d_module *)base;
    const struct et_standardized_conv2d_options *o = options;
    if (!o->conv || !et_module_is(o->conv, &et_conv2d_class))
        return ET_FAIL(cx, ET_EINVAL, "standardized_conv2d is made from a convolution");
    struct et_conv2d_module *old = (struct et_conv2d_module *)o->conv;
    ET_TRY(et_conv2d_class.init(cx, base, &old->o));
    ET_TRY(et_param_move(cx, &m->weight, &old->weight));
    return et_param_move(cx, &m->bias, &old->bias);
}

static struct et_tensor *
standardized_conv2d_forward(struct et_module *base, struct et_forward *f,
                            struct et_tensor *x)
{
    struct et_conv2d_module *m = (struct et_conv2d_module *)base;
    return et_conv2d(f->g, x, et_standardize_weight(f->g, m->weight.tensor),
                     m->bias.tensor, &m->attr);
}

const struct et_module_class et_standardized_conv2d_class = {
    .info =
        {
            .name = "standardized_conv2d",
            .class_name = "ParametrizedConv2d",
            .summary = "convolution by filters of mean 0 and variance 1",
            .source = "arXiv 1903.10520",
            .applies_to = "vision",
            .options_size = sizeof(struct et_standardized_conv2d_options),
        },
    .base = &et_conv2d_class,
    .size = sizeof(struct et_conv2d_module),
    .params =
        (const struct et_slot[]){
            {"parametrizations.weight.original",
             offsetof(struct et_conv2d_module, weight)},
            ET_SLOT(et_conv2d_module, bias),
            {0},
        },
    .init = standardized_conv2d_init,
    .forward = standardized_conv2d_forward,
};
