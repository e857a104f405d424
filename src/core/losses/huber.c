/* SPDX-License-Identifier: Apache-2.0 */
/* huber.c: squares of small differences, and what large ones are beyond:
 *
 *     c = min(|d|, delta);  l = c^2 / 2 + delta (|d| - c)
 *
 * Huber 1964; as PyTorch's huber_loss. */
#include "core/losses/losses.h"

struct huber_options {
    double delta;
};

static struct et_tensor *
each(struct et_graph *g, const void *options, struct et_tensor *y,
     const struct et_samples *samples)
{
    const struct huber_options *o = options;
    struct et_tensor *d = et_abs(g, eti_loss_apart(g, y, samples->target));
    struct et_tensor *c = et_minimum(g, d, et_fill(g, ET_F32, 0, NULL, o->delta));
    return et_add(g, et_mul_scalar(g, et_square(g, c), 0.5),
                  et_mul_scalar(g, et_sub(g, d, c), o->delta));
}

static const struct et_option table[] = {
    {
        .name = "delta",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct huber_options, delta),
        .def = "1.0",
        .max = -1,
        .flags = ET_OPT_MIN_OPEN,
        .help = "differences beyond it count in proportion, not as squares",
    },
    {0},
};

const struct et_loss_class et_loss_huber = {
    .info = {ETI_LOSS_INFO("huber", "HuberLoss",
                           "squares of small differences, large ones in proportion",
                           "Huber 1964; PyTorch"),
             .options = table, .options_size = sizeof(struct huber_options)},
    .each = each,
    .takes = ET_TAKES_NUMBERS,
};
