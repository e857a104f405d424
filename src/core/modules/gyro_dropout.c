/* SPDX-License-Identifier: Apache-2.0 */
/* gyro_dropout.c: dropout whose masks come from a pool, a few of them for many steps.
 *
 *     y = x m[pick[floor(i tau / N)]] / (1 - p)   for sample i of N
 *     pool m: sigma masks; pick: tau of them, with replacement, anew each period
 *
 * Source: Lee et al. 2022, "GyroDropout: maximizing ensemble effect in neural network
 * training" (MLSys 2022); MosaicML Composer; spec/algorithms.md 2.13. Differs: masks
 * are functions of the seed and picks of the step, so that nothing has to be saved
 * (D13); a step is one of the optimizer's, however the batch is split, and ranks pick
 * alike (D29). */
#include "core/modules/common.h"
#include "core/modules/gyro_dropout.h"
#include "core/ops/ops.h"

#include "etude/functional.h"
#include "core/base/need.h"

/* Numbers that the host writes and a pass reads: I32 [n]. */
struct rows {
    int32_t *v;
    struct et_tensor *leaf;
    int64_t n;
};

struct layer {
    struct et_gyro_dropout_module *module; /* one reference */
    struct et_tensor
        *pool; /* leaf f32 [sigma, F], 0 or 1 / (1 - p); NULL: no pass yet */
};

struct et_gyro_dropout {
    struct et_ctx *cx;
    struct et_device *dev;
    double p;
    int64_t sigma, tau, period;
    uint32_t seed;
    struct layer *layer;
    int n_layers;
    int32_t *pick;      /* [tau] */
    struct rows rows;   /* of the step's batch */
    struct rows others; /* of a pass over something else */
    int64_t n;          /* samples of the step's batch; 0: it is not known yet */
    bool turns;         /* a step has begun */
};

/* ---- draws ---- */

/* Where the draws for WHAT begin: a layer's pool, or the picks of a period. */
static struct et_rng
draws(const struct et_gyro_dropout *d, uint64_t index, uint64_t what)
{
    struct et_rng r = et_rng_at(d->seed, ET_RNG_DROPOUT, index);
    r.ordinal = (UINT64_C(0x6779726f) << 32) | what << 31; /* "gyro" */
    return r;
}

static et_status
fill_pool(struct et_gyro_dropout *d, int layer, int64_t features)
{
    int64_t shape[] = {d->sigma, features}, n = d->sigma * features;
    struct et_rng rng = draws(d, (uint64_t)layer, 0);
    struct et_tensor **pool = &d->layer[layer].pool;
    void *block;
    ET_TRY(et_alloc(d->cx, (size_t)n * sizeof(float), &block));
    float *v = block, kept = (float)(1 / (1 - d->p));
    for (int64_t i = 0; i < n; i++)
        v[i] = (double)et_rng_uniform_f32(&rng) >= d->p ? kept : 0;
    et_tensor_free(pool);
    et_status status = et_tensor_new(d->cx, d->dev, ET_F32, 2, shape, ET_ROW_MAJOR,
                                     "dropout masks", pool);
    if (status == ET_OK)
        status = et_tensor_write(d->cx, *pool, v, (size_t)n * sizeof(float));
    et_free(d->cx, v);
    return status;
}

/* ---- rows ---- */

static void
rows_release(struct et_ctx *cx, struct rows *r)
{
    et_tensor_free(&r->leaf);
    et_free(cx, r->v);
    *r = (struct rows){0};
}

static et_status
rows_write(struct et_gyro_dropout *d, struct rows *r, int64_t n)
{
    if (n < 1 || n % d->tau)
        return ET_FAIL(d->cx, ET_EINVAL,
                       "gyro_dropout: tau %lld does not divide the %lld samples of a "
                       "batch; choose a batch_size that it divides on each rank, and "
                       "drop_last",
                       (long long)d->tau, (long long)n);
    if (r->n != n) {
        void *block;
        rows_release(d->cx, r);
        ET_TRY(et_alloc(d->cx, (size_t)n * sizeof *r->v, &block));
        r->v = block;
        ET_TRY(et_tensor_new(d->cx, d->dev, ET_I32, 1, &n, ET_ROW_MAJOR,
                             "masks of rows", &r->leaf));
        r->n = n;
    }
    for (int64_t i = 0; i < n; i++)
        r->v[i] = d->pick[i / (n / d->tau)];
    return et_tensor_write(d->cx, r->leaf, r->v, (size_t)n * sizeof *r->v);
}

/* ---- a pass ---- */

/* The masks of the samples under way: a part of the step's batch, or a batch of its
 * own. */
static et_status
find_rows(struct et_gyro_dropout *d, const struct et_forward *f, int64_t n,
          struct et_tensor **out)
{
    const struct et_samples *s = f->samples;
    int64_t first = s && s->n == n ? s->first_row : 0;
    bool is_part = first + n <= d->n && (s || n == d->n);
    if (!is_part)
        ET_TRY(rows_write(d, &d->others, n));
    *out = is_part ? d->rows.leaf : d->others.leaf;
    if (is_part && n != d->n)
        *out = et_slice(f->g, *out, 0, first, n, 1);
    return et_graph_status(f->g);
}

static et_status
mask(struct et_gyro_dropout_module *m, struct et_forward *f, struct et_tensor *x,
     struct et_tensor **out)
{
    struct et_gyro_dropout *d = m->o.masks;
    const struct et_desc *desc = &x->desc;
    struct et_tensor *rows;
    if (desc->ndim != 2)
        return ET_FAIL(d->cx, ET_ESHAPE,
                       "gyro_dropout needs vectors [N,F] at each Dropout, as they are "
                       "before a linear layer; here are %d axes",
                       desc->ndim);
    struct et_tensor *pool = d->layer[m->o.layer].pool;
    if (!pool || pool->desc.shape[1] != desc->shape[1])
        ET_TRY(fill_pool(d, m->o.layer, desc->shape[1]));
    ET_TRY(find_rows(d, f, desc->shape[0], &rows));
    struct et_tensor *masks = et_take(f->g, d->layer[m->o.layer].pool, rows, 0);
    *out = et_mul(f->g, x, et_cast(f->g, masks, desc->dtype));
    return et_graph_status(f->g);
}

static struct et_tensor *
gyro_dropout_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct et_gyro_dropout_module *m = (struct et_gyro_dropout_module *)base;
    uint64_t ordinal = f->ordinal++;
    struct et_tensor *y = NULL;
    if (!f->training)
        return x;
    if (!m->o.masks || !m->o.masks->turns)
        return et_dropout(f->g, x, f->rng, m->o.p, ordinal);
    et_status status = mask(m, f, x, &y);
    return status == ET_OK ? y : eti_graph_fail(f->g, status);
}

static et_status
gyro_dropout_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct et_gyro_dropout_module *m = (struct et_gyro_dropout_module *)base;
    m->o = *(const struct et_gyro_dropout_options *)options;
    if (!m->o.masks)
        return ET_FAIL(cx, ET_EINVAL, "gyro_dropout is made by et_apply_gyro_dropout");
    return ET_OK;
}

const struct et_module_class et_gyro_dropout_class = {
    .info =
        {
            .name = "gyro_dropout_layer",
            .class_name = "GyroDropoutLayer",
            .summary = "zeroes elements by masks that stay for several steps",
            .source = "Lee et al., MLSys 2022",
            .applies_to = "any",
            .options_size = sizeof(struct et_gyro_dropout_options),
        },
    .size = sizeof(struct et_gyro_dropout_module),
    .init = gyro_dropout_init,
    .forward = gyro_dropout_forward,
};

/* ---- all layers of a model ---- */

static et_status
replace(struct et_ctx *cx, struct et_module *old, int index, void *data,
        struct et_module **out)
{
    struct et_gyro_dropout *d = data;
    (void)index;
    ET_TRY(ET_NEW(cx, out, gyro_dropout, .p = ((struct et_dropout_module *)old)->o.p,
                  .masks = d, .layer = d->n_layers));
    d->layer[d->n_layers++].module =
        (struct et_gyro_dropout_module *)et_module_ref(*out);
    return ET_OK;
}

static et_status
check(struct et_ctx *cx, int64_t steps, double p, int64_t sigma, int64_t tau)
{
    if (!(p >= 0 && p < 1))
        return ET_FAIL(cx, ET_EINVAL, "gyro_dropout needs 0 <= p < 1, not %g", p);
    if (sigma < 1 || tau < 1)
        return ET_FAIL(
            cx, ET_EINVAL,
            "gyro_dropout needs sigma and tau of 1 or more, not %lld and %lld",
            (long long)sigma, (long long)tau);
    if (steps < sigma)
        return ET_FAIL(cx, ET_EINVAL,
                       "gyro_dropout: the run's %lld steps are too few for %lld masks; "
                       "use a smaller sigma or a longer max_duration",
                       (long long)steps, (long long)sigma);
    return ET_OK;
}

static et_status
make(struct et_gyro_dropout *d, struct et_module *root)
{
    static const struct et_surgery_policy policy = {&et_dropout_class, replace};
    struct et_surgery surgery;
    void *block;
    int n;
    ET_TRY(et_module_count_class(d->cx, root, &et_dropout_class, &n));
    ET_TRY(et_alloc(d->cx, ((size_t)n + 1) * sizeof *d->layer, &block));
    d->layer = block;
    ET_TRY(et_alloc(d->cx, (size_t)d->tau * sizeof *d->pick, &block));
    d->pick = block;
    et_status status = et_module_replace(d->cx, root, &policy, 1, d, &surgery);
    et_surgery_release(&surgery);
    return status;
}

et_status
et_apply_gyro_dropout(struct et_ctx *cx, struct et_module *root, struct et_device *dev,
                      int64_t steps, double p, int64_t sigma, int64_t tau,
                      uint32_t seed, struct et_gyro_dropout **out)
{
    void *block;
    ETI_NEED(cx, out);
    *out = NULL;
    ETI_NEED(cx, cx, root, dev);
    ET_TRY(check(cx, steps, p, sigma, tau));
    ET_TRY(et_alloc(cx, sizeof(struct et_gyro_dropout), &block));
    struct et_gyro_dropout *d = block;
    *d = (struct et_gyro_dropout){
        .cx = cx,
        .dev = dev,
        .p = p,
        .sigma = sigma,
        .tau = tau,
        .seed = seed,
        .period = et_gyro_dropout_period(steps, sigma, tau),
    };
    et_status status = make(d, root);
    if (status == ET_OK)
        *out = d;
    else
        et_gyro_dropout_free(&d);
    return status;
}

void
et_gyro_dropout_free(struct et_gyro_dropout **out)
{
    struct et_gyro_dropout *d = out ? *out : NULL;
    if (!d)
        return;
    *out = NULL;
    for (int i = 0; i < d->n_layers; i++) {
        struct et_module *m = &d->layer[i].module->base;
        d->layer[i].module->o.masks = NULL;
        et_module_free(&m);
        et_tensor_free(&d->layer[i].pool);
    }
    rows_release(d->cx, &d->rows);
    rows_release(d->cx, &d->others);
    et_free(d->cx, d->layer);
    et_free(d->cx, d->pick);
    et_free(d->cx, d);
}

int
et_gyro_dropout_layers(const struct et_gyro_dropout *d)
{
    return d ? d->n_layers : 0;
}

int64_t
et_gyro_dropout_period(int64_t steps, int64_t sigma, int64_t tau)
{
    return sigma > 0 ? steps / sigma * tau : 0;
}

int64_t *
eti_gyro_dropout_period(struct et_gyro_dropout *d)
{
    return &d->period;
}

/* ---- steps ---- */

void
eti_gyro_dropout_pick(struct et_gyro_dropout *d, int64_t step)
{
    struct et_rng rng = draws(d, (uint64_t)(step / d->period), 1);
    for (int64_t i = 0; i < d->tau; i++)
        d->pick[i] = (int32_t)et_rng_below(&rng, (uint64_t)d->sigma);
    d->n = 0;
    d->turns = true;
}

et_status
et_gyro_dropout_begin(struct et_gyro_dropout *d, int64_t step, int64_t n)
{
    ETI_NEED(d ? d->cx : NULL, d);
    eti_gyro_dropout_pick(d, step);
    ET_TRY(rows_write(d, &d->rows, n));
    d->n = n;
    return ET_OK;
}

void
et_gyro_dropout_rest(struct et_gyro_dropout *d)
{
    if (d)
        d->turns = false;
}
