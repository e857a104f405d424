/* SPDX-License-Identifier: Apache-2.0 */
/* dropout.c: zeroes elements with probability p while training, scales the rest by
 * 1/(1-p). Source: Srivastava et al. 2014. The mask is keyed by (seed, sample,
 * ordinal). */
#include "core/modules/common.h"

static et_status
dropout_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_dropout_module *m = (struct et_dropout_module *)base;
    m->o = *(const struct et_dropout_options *)options;
    if (!(m->o.p >= 0 && m->o.p < 1))
        return ET_FAIL(cx, ET_EINVAL, "dropout needs 0 <= p < 1, not %g", m->o.p);
    return ET_OK;
}

static struct et_tensor *
dropout_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct et_dropout_module *m = (struct et_dropout_module *)base;
    uint64_t ordinal =
        f->ordinal++; /* counted when p is 0 too, so others keep theirs */
    if (!f->training || m->o.p == 0)
        return x;
    return et_dropout(f->g, x, f->rng, m->o.p, ordinal);
}

const struct et_module_class et_dropout_class = {
    .info =
        {
            .name = "dropout",
            .class_name = "Dropout",
            .summary = "zeroes random elements while training",
            .source = "Srivastava et al., JMLR 15, 2014",
            .applies_to = "any",
            .options =
                (const struct et_option[]){
                    {
                        .name = "p",
                        .type = ET_OPT_FLOAT,
                        .offset = offsetof(struct et_dropout_options, p),
                        .def = "0.5",
                        .min = 0,
                        .max = 1,
                        .flags = ET_OPT_MAX_OPEN,
                        .help = "probability of zero",
                    },
                    {0},
                },
            .options_size = sizeof(struct et_dropout_options),
        },
    .size = sizeof(struct et_dropout_module),
    .init = dropout_init,
    .forward = dropout_forward,
};
