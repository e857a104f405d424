/* SPDX-License-Identifier: Apache-2.0 */
/* metric.c: the registry, sums on the device, and what the metrics share.
 *
 * Sums are f32, which every device has, in two parts: CARRY holds less than 256, what
 * is whole multiples of 256 moves on to SUM:
 *
 *     t = carry + batch;  q = 256 floor(t / 256);  sum += q;  carry = t - q
 *
 * SUM is exact below 2^32 and CARRY rounds at 2^-17 or at the batch's own last place,
 * so a long evaluation loses no more than a short one. Differs from Kahan's
 * compensation in that it holds also where a device computes in more than f32. */
#include "core/base/need.h"
#include "core/base/sized.h"
#include "core/metrics/metric.h"

#include <math.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/ops/ops.h"
#include "etude/ctx.h"
#include "etude/model.h"

static const struct et_metric_class *const classes[] = {
#define ET_METRIC(name) &et_metric_##name,
#include "core/metrics/metrics.def"
#undef ET_METRIC
};
enum { CLASSES = sizeof classes / sizeof *classes, QUANTUM = 256 };

const struct et_option eti_metric_table[] = {
    ETI_METRIC_IGNORE("-100"),
};

struct et_metric {
    struct et_ctx *cx;
    const struct et_metric_class *type;
    struct et_metric_options *options; /* the class's own struct */
    bool has_defaults;                 /* which it owns */
    int n_sums;
    float *host;  /* [n_sums], so that reading allocates nothing */
    double *sums; /* likewise */
    /* Leaves f32 [n_sums]; the total is what both hold. */
    struct et_tensor *sum, *carry;
};

const struct et_metric_class *
et_metric_find(const char *name)
{
    if (!name)
        return NULL;
    for (int i = 0; i < CLASSES; i++)
        if (strcmp(name, classes[i]->info.name) == 0)
            return classes[i];
    return NULL;
}

const struct et_metric_class *const *
et_metric_list(int *n)
{
    if (!n)
        return NULL;
    *n = CLASSES;
    return classes;
}

static et_status
fill_options(struct et_metric *m, const struct et_metric_options *options)
{
    const struct et_metric_class *type = m->type;
    size_t size = type->info.options_size;
    void *block;
    ET_TRY(et_alloc(m->cx, size > sizeof *options ? size : sizeof *options, &block));
    m->options = block;
    if (options)
        memcpy(m->options, options, size > 0 ? size : sizeof *options);
    m->has_defaults = !options;
    if (!options)
        ET_TRY(et_options_init(m->cx, type->info.options, m->options));
    if (!options && size == 0)
        m->options->ignore_index = ET_IGNORE_INDEX;
    m->n_sums = type->n_sums;
    if (type->n_sums_per_class) {
        if (m->options->num_classes < 1)
            return ET_FAIL(m->cx, ET_EINVAL, "%s needs num_classes", type->info.name);
        m->n_sums = type->n_sums_per_class * (int)m->options->num_classes;
    }
    if (type->n_classes && m->options->num_classes != type->n_classes)
        return ET_FAIL(m->cx, ET_EINVAL, "%s is of %d classes, and there are %lld",
                       type->info.name, type->n_classes,
                       (long long)m->options->num_classes);
    if (type->needs_model && !m->options->model)
        return ET_FAIL(m->cx, ET_EINVAL, "%s needs a model", type->info.name);
    return ET_OK;
}

static et_status
make_sums(struct et_metric *m, struct et_device *dev)
{
    const char *name = m->type->info.name;
    size_t n = (size_t)m->n_sums;
    int64_t shape = m->n_sums;
    void *block;
    ET_TRY(et_alloc(m->cx, n * sizeof *m->host, &block));
    m->host = block;
    ET_TRY(et_alloc(m->cx, n * sizeof *m->sums, &block));
    m->sums = block;
    ET_TRY(et_tensor_new(m->cx, dev, ET_F32, 1, &shape, ET_ROW_MAJOR, name, &m->sum));
    return et_tensor_new(m->cx, dev, ET_F32, 1, &shape, ET_ROW_MAJOR, name, &m->carry);
}

et_status
et_metric_new_sized(struct et_ctx *cx, size_t size, struct et_device *dev,
                    const struct et_metric_class *type,
                    const struct et_metric_options *options, struct et_metric **out)
{
    ETI_NEED(cx, out);
    struct et_metric_options own;
    *out = NULL;
    ET_TRY(eti_need_class(cx, "et_metric_new", type));
    ETI_NEED(cx, cx, dev);
    if (options && type->info.options_size == 0) { /* else the class's own struct */
        ET_TRY(
            eti_sized(cx, "struct et_metric_options", options, size, &own, sizeof own));
        options = &own;
    }
    void *block;
    ET_TRY(et_alloc(cx, sizeof(struct et_metric), &block));
    struct et_metric *m = block;
    m->cx = cx;
    m->type = type;
    et_status status = fill_options(m, options);
    if (status == ET_OK)
        status = make_sums(m, dev);
    if (status != ET_OK)
        et_metric_free(&m);
    *out = m;
    return status;
}

void
et_metric_free(struct et_metric **metric)
{
    if (!metric)
        return;
    struct et_metric *m = *metric;
    *metric = NULL;
    if (!m)
        return;
    et_tensor_free(&m->sum);
    et_tensor_free(&m->carry);
    if (m->has_defaults)
        et_options_release(m->type->info.options, m->options);
    et_free(m->cx, m->options);
    et_free(m->cx, m->host);
    et_free(m->cx, m->sums);
    et_free(m->cx, m);
}

const struct et_metric_class *
et_metric_class(const struct et_metric *m)
{
    if (!m)
        return NULL;
    return m->type;
}

et_status
et_metric_reset(struct et_metric *m)
{
    ETI_NEED(m ? m->cx : NULL, m);
    size_t bytes = et_desc_bytes(&m->sum->desc);
    memset(m->host, 0, bytes);
    ET_TRY(et_tensor_write(m->cx, m->sum, m->host, bytes));
    return et_tensor_write(m->cx, m->carry, m->host, bytes);
}

/* BEGINS: the totals are those of this batch alone. */
static void
add_up(struct et_graph *g, struct et_metric *m, struct et_tensor *outputs,
       const struct et_samples *samples, bool begins)
{
    struct et_tensor *target = samples ? samples->target : NULL;
    if (!outputs || !target) {
        eti_missing(g, begins ? "et_metric_begin" : "et_metric_update",
                    ETI_LIST(outputs, target), 2);
        return;
    }
    bool was = et_autocast(g, true); /* sums are f32 whatever the outputs are */
    struct et_tensor *batch = m->type->update(g, m->options, outputs, samples);
    et_autocast(g, was);
    struct et_tensor *t = begins ? batch : et_add(g, batch, m->carry);
    struct et_tensor *q =
        et_mul_scalar(g, et_floor(g, et_mul_scalar(g, t, 1.0 / QUANTUM)), QUANTUM);
    et_assign(g, m->carry, et_sub(g, t, q));
    et_assign(g, m->sum, begins ? q : et_add(g, m->sum, q));
}

void
et_metric_update(struct et_graph *g, struct et_metric *m, struct et_tensor *outputs,
                 const struct et_samples *samples)
{
    if (!g || !m)
        return;
    add_up(g, m, outputs, samples, false);
}

void
et_metric_begin(struct et_graph *g, struct et_metric *m, struct et_tensor *outputs,
                const struct et_samples *samples)
{
    if (!g || !m)
        return;
    add_up(g, m, outputs, samples, true);
}

void
et_metric_totals(struct et_graph *g, const struct et_metric *m, struct et_tensor **sum,
                 struct et_tensor **carry)
{
    if (!g || !m || !sum || !carry)
        return;
    *sum = et_pending(g, m->sum);
    *carry = et_pending(g, m->carry);
}

double
et_metric_value_of(const struct et_metric *m, const float *sum, const float *carry)
{
    if (!m || !sum || !carry)
        return 0;
    for (int i = 0; i < m->n_sums; i++)
        m->sums[i] = (double)sum[i] + (double)carry[i];
    return m->type->compute(m->sums, m->n_sums);
}

int
et_metric_n_sums(const struct et_metric *m)
{
    if (!m)
        return 0;
    return m->n_sums;
}

et_status
et_metric_read(const struct et_metric *m, double *sums)
{
    ETI_NEED(m ? m->cx : NULL, m, sums);
    size_t bytes = et_desc_bytes(&m->sum->desc);
    ET_TRY(et_tensor_read(m->cx, m->sum, m->host, bytes));
    for (int i = 0; i < m->n_sums; i++)
        sums[i] = m->host[i];
    ET_TRY(et_tensor_read(m->cx, m->carry, m->host, bytes));
    for (int i = 0; i < m->n_sums; i++)
        sums[i] += m->host[i];
    return ET_OK;
}

et_status
et_metric_value(const struct et_metric *m, double *out)
{
    ETI_NEED(m ? m->cx : NULL, m, out);
    ET_TRY(et_metric_read(m, m->sums));
    *out = m->type->compute(m->sums, m->n_sums);
    return ET_OK;
}

/* ---- what the metrics share ---- */

double
eti_metric_mean(const double *sums, int n)
{
    ET_ASSERT(n == 2);
    return sums[1] > 0 ? sums[0] / sums[1] : NAN;
}

struct et_tensor *
eti_metric_pair(struct et_graph *g, struct et_tensor *a, struct et_tensor *b)
{
    static const int64_t one = 1;
    struct et_tensor *both[] = {et_reshape(g, et_cast(g, a, ET_F32), 1, &one),
                                et_reshape(g, et_cast(g, b, ET_F32), 1, &one)};
    return et_concat(g, both, 2, 0);
}

struct et_tensor *
eti_metric_counted(struct et_graph *g, struct et_tensor *target, int64_t ignore_index)
{
    if (!target)
        return NULL;
    struct et_tensor *index =
        et_fill(g, target->desc.dtype, 0, NULL, (double)ignore_index);
    struct et_tensor *ignored = et_cast(g, et_equal(g, target, index), ET_F32);
    return et_add_scalar(g, et_neg(g, ignored), 1);
}

static struct et_tensor *
losses_of(struct et_graph *g, const struct et_metric_options *o,
          struct et_tensor *logits, struct et_tensor *target)
{
    if (!logits || !target)
        return NULL;
    bool dense = et_dtype_is_float(target->desc.dtype);
    struct et_tensor *weight =
        dense ? target : eti_metric_counted(g, target, o->ignore_index);
    struct et_tensor *loss =
        et_cross_entropy(g, logits, target, NULL, o->ignore_index, ET_REDUCE_SUM);
    return eti_metric_pair(g, loss, et_sum(g, weight, 0, false));
}

struct et_tensor *
eti_metric_losses(struct et_graph *g, const struct et_metric_options *o,
                  struct et_tensor *logits, const struct et_samples *samples)
{
    return losses_of(g, o, logits, samples->target);
}

struct et_tensor *
eti_metric_token_losses(struct et_graph *g, const struct et_metric_options *o,
                        struct et_tensor *logits, const struct et_samples *samples)
{
    struct et_tensor *target = samples->target;
    if (!logits || !target)
        return NULL;
    const struct et_desc *d = &logits->desc;
    int64_t flat[2] = {-1, d->ndim > 0 ? d->shape[d->ndim - 1] : 1};
    return losses_of(g, o, et_reshape(g, logits, 2, flat),
                     et_reshape(g, target, 1, flat));
}
