/* SPDX-License-Identifier: Apache-2.0 */
/* ghost_norm.c: batch normalisation over parts of a batch.
 *
 * N samples in n = ceil(N / ghost size) parts of ceil(N / n), of which the last may
 * have fewer: each is normalised by statistics of its own, and moves the running ones
 * in its turn, by momentum / n. Source: Hoffer et al. 2017 (arXiv 1705.08741);
 * spec/algorithms.md 2.11. Differs: a batch may be smaller in an evaluation (D9). */
#include "core/graph/graph_impl.h"
#include "core/modules/common.h"
#include "core/ops/ops.h"

static et_status
ghost_batch_norm_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_ghost_batch_norm_module *m = (struct et_ghost_batch_norm_module *)base;
    const struct et_ghost_batch_norm_options *o = options;
    if (!o->batchnorm || !et_module_is(o->batchnorm, &et_batch_norm_class))
        return ET_FAIL(cx, ET_EINVAL, "ghost_batch_norm is made from a batch norm");
    ETI_NEED_POSITIVE(cx, "ghost_batch_norm", o, ghost_batch_size);
    m->ghost_batch_size = o->ghost_batch_size;
    m->batchnorm = et_module_ref(o->batchnorm);
    return ET_OK;
}

/* What the parts say of the batch, as one update of the running statistics. */
struct parts {
    double momentum; /* of a part */
    struct et_tensor *mean, *var;
    double kept; /* of what was there before */
};

/* Each statistic s moves r by r <- (1 - m) r + m s: the sum of all s, each times m and
 * (1 - m) for every part behind it, is what r moves to in the end. */
static struct et_tensor *
add(struct et_graph *g, const struct parts *p, struct et_tensor *sum,
    struct et_tensor *s, double scale)
{
    s = et_mul_scalar(g, et_detach(g, s), p->momentum * scale);
    return sum ? et_add(g, et_mul_scalar(g, sum, 1 - p->momentum), s) : s;
}

/* SIZE rows of X from BEGIN on, normalised by themselves. */
static struct et_tensor *
normalize_part(struct et_batch_norm_module *m, struct et_forward *f,
               struct et_tensor *x, int64_t begin, int64_t size, struct parts *p)
{
    struct et_tensor *mean, *var;
    x = et_slice(f->g, x, 0, begin, size, 1);
    struct et_tensor *y =
        et_batch_norm(f->g, x, m->weight.tensor, m->bias.tensor, m->o.eps, &mean, &var);
    if (!y)
        return NULL;
    double count = (double)(et_desc_count(&x->desc) / m->o.num_features);
    p->mean = add(f->g, p, p->mean, mean, 1);
    p->var = add(f->g, p, p->var, var, count > 1 ? count / (count - 1) : 1);
    p->kept *= 1 - p->momentum;
    return y;
}

static struct et_tensor *
normalize(struct et_batch_norm_module *m, struct et_forward *f, struct et_tensor *x,
          int64_t size, int64_t parts)
{
    struct parts p = {.momentum = m->o.momentum / (double)parts, .kept = 1};
    int64_t rows = x->desc.shape[0];
    struct et_tensor **y = eti_graph_alloc(f->g, (size_t)parts * sizeof(*y));
    int n = 0;
    if (!y)
        return NULL;
    for (int64_t begin = 0; begin < rows; begin += size)
        y[n++] = normalize_part(m, f, x, begin,
                                rows - begin < size ? rows - begin : size, &p);
    struct et_tensor *all = et_concat(f->g, y, n, 0);
    double moved = 1 - p.kept;
    if (all)
        et_batch_norm_update(m, f, et_mul_scalar(f->g, p.mean, 1 / moved),
                             et_mul_scalar(f->g, p.var, 1 / moved), 1, moved);
    return all;
}

static struct et_tensor *
ghost_batch_norm_forward(struct et_module *base, struct et_forward *f,
                         struct et_tensor *x)
{
    struct et_ghost_batch_norm_module *m = (struct et_ghost_batch_norm_module *)base;
    int64_t rows = x->desc.shape[0], ghost = m->ghost_batch_size;
    if (!f->training || m->batchnorm->as_eval || rows == ghost)
        return et_forward(f, m->batchnorm, x);
    if (rows < ghost)
        return eti_graph_fail(
            f->g, ET_FAIL(base->cx, ET_EINVAL,
                          "ghost_batchnorm: ghost_batch_size %lld is more than the "
                          "%lld samples of a batch or microbatch",
                          (long long)ghost, (long long)rows));
    int64_t parts = (rows + ghost - 1) / ghost, size = (rows + parts - 1) / parts;
    return normalize((struct et_batch_norm_module *)m->batchnorm, f, x, size, parts);
}

const struct et_module_class et_ghost_batch_norm_class = {
    .info =
        {
            .name = "ghost_batch_norm",
            .class_name = "GhostBatchNorm2d",
            .summary = "batch normalisation over parts of a batch",
            .source = "arXiv 1705.08741",
            .applies_to = "any",
            .options_size = sizeof(struct et_ghost_batch_norm_options),
        },
    .size = sizeof(struct et_ghost_batch_norm_module),
    .children =
        (const struct et_slot[]){
            ET_SLOT(et_ghost_batch_norm_module, batchnorm),
            {0},
        },
    .init = ghost_batch_norm_init,
    .forward = ghost_batch_norm_forward,
};
