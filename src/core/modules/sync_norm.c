/* SPDX-License-Identifier: Apache-2.0 */
/* sync_norm.c: batch normalisation by the statistics of all ranks.
 *
 *   N = sum_r n_r,   mean = sum_r n_r m_r / N,
 *   var = sum_r n_r (v_r + (m_r - mean)^2) / N,
 *   y = w (x - mean) / sqrt(var + eps) + b
 *
 * with m_r and v_r of the n_r positions that rank r has. Each rank puts its row (m_r,
 * v_r, n_r) into its place of an array of zeros, whose sum over ranks is all rows: one
 * exchange for the forward pass, and by that sum's gradient one for the backward pass.
 * A gradient from here is of the sum of all ranks' losses (core/ops/ranks.c), so these
 * are weighed before the backward pass begins (core/trainer/ranks.c).
 *
 * Source: torch.nn.SyncBatchNorm (torch/nn/modules/_functions.py, 2.1): the same
 * statistics, of which running ones take the unbiased variance of all N. */
#include "core/modules/common.h"
#include "core/modules/sync_norm.h"
#include "core/ops/ops.h"

/* The rows of all ranks, f32 [ranks, 2 C + 1]: means, variances, positions. */
static struct et_tensor *
gather(struct et_forward *f, struct et_tensor *x)
{
    struct et_graph *g = f->g;
    const int64_t channels = x->desc.shape[1], one[] = {1};
    const uint32_t others = ((1u << x->desc.ndim) - 1) & ~2u;
    const double n = (double)(et_desc_count(&x->desc) / channels);
    struct et_tensor *row[] = {
        et_mean(g, x, others, false),
        et_var(g, x, others, false, false),
        et_fill(g, ET_F32, 1, one, n),
    };
    const int64_t across[] = {1, 2 * channels + 1},
                  down[] = {f->place->desc.shape[0], 1};
    struct et_tensor *own = et_reshape(g, et_concat(g, row, 3, 0), 2, across);
    return et_all_reduce(g, et_mul(g, et_reshape(g, f->place, 2, down), own), NULL);
}

/* Columns [FIRST, FIRST + N) of ROWS. */
static struct et_tensor *
columns(struct et_graph *g, struct et_tensor *rows, int64_t first, int64_t n)
{
    return et_slice(g, rows, 1, first, n, 1);
}

/* The sum of ROWS over ranks, each times its SHARE [ranks, 1]. */
static struct et_tensor *
mean_over_ranks(struct et_graph *g, struct et_tensor *rows, struct et_tensor *share)
{
    return et_sum(g, et_mul(g, rows, share), 1, false);
}

/* V [C] as X [N,C,...] has its channels. */
static struct et_tensor *
channels_of(struct et_graph *g, const struct et_tensor *x, struct et_tensor *v)
{
    return v ? eti_channel_view(g, v, x->desc.ndim) : NULL;
}

static struct et_tensor *
normalize(struct et_batch_norm_module *m, struct et_graph *g, struct et_tensor *x,
          struct et_tensor *mean, struct et_tensor *var)
{
    struct et_tensor *scale = et_rsqrt(g, et_add_scalar(g, var, m->o.eps));
    if (m->weight.tensor)
        scale = et_mul(g, scale, m->weight.tensor);
    struct et_tensor *y =
        et_mul(g, et_sub(g, x, channels_of(g, x, mean)), channels_of(g, x, scale));
    return m->bias.tensor ? et_add(g, y, channels_of(g, x, m->bias.tensor)) : y;
}

/* Of N positions, [1]; of one there is no other variance than its own. */
static struct et_tensor *
unbiased(struct et_graph *g, struct et_tensor *var, struct et_tensor *n)
{
    const int64_t one[] = {1};
    struct et_tensor *less =
        et_maximum(g, et_add_scalar(g, n, -1), et_fill(g, ET_F32, 1, one, 1));
    return et_mul(g, var, et_div(g, n, less));
}

struct et_tensor *
eti_sync_batch_norm(struct et_batch_norm_module *m, struct et_forward *f,
                    struct et_tensor *x)
{
    struct et_graph *g = f->g;
    const int64_t channels = m->o.num_features;
    x = eti_autocast_wide(g, x);
    if (!x)
        return NULL;
    struct et_tensor *rows = gather(f, x);
    struct et_tensor *n = columns(g, rows, 2 * channels, 1);
    struct et_tensor *all = et_sum(g, n, 0, false);
    struct et_tensor *share = et_div(g, n, all);
    struct et_tensor *means = columns(g, rows, 0, channels);
    struct et_tensor *mean = mean_over_ranks(g, means, share);
    struct et_tensor *apart = et_sub(g, means, mean);
    struct et_tensor *var = mean_over_ranks(
        g, et_add(g, columns(g, rows, channels, channels), et_mul(g, apart, apart)),
        share);
    struct et_tensor *y = normalize(m, g, x, mean, var);
    if (y)
        et_batch_norm_update(m, f, mean, unbiased(g, var, all), 1, m->o.momentum);
    return y;
}
