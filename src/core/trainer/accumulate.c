/* SPDX-License-Identifier: Apache-2.0 */
/* accumulate.c: a batch's loss and gradient as the sums of its microbatches'.
 *
 *   L = sum_i c_i L_i / sum_i c_i,   g = sum_i c_i g_i / sum_i c_i
 *
 * with c_i the rows of microbatch i, or of its positions those that count, where the
 * loss is a mean over these (et_loss_class.counted): then a batch with ignored targets
 * has the loss of the whole batch however it is cut, among ranks too. With one
 * microbatch on one rank both are its own.
 *
 * Rows are known to the host, and c_i / n a factor of the graph. What counts only the
 * device knows; L and g are then left as sum_i c_i L_i / n, and divided in the end by
 * sum_i c_i / n, n being all positions of the batch. That is for batches in which some
 * target does not count, as the loader says: others cost nothing.
 *
 * Source: spec/trainer.md 7.4; Composer's accumulate_train_batch_on_tokens. Differs: it
 * is no option, as it is the mean that the loss is defined to be. */
#include "config.h"

#include "core/base/sized.h"
#include "core/losses/losses.h"
#include "core/optim/optim.h"
#include "core/trainer/part.h"

struct accumulated {
    struct et_tensor *loss;    /* f32 [1] */
    struct et_tensor *grad;    /* f32 [params->total]; NULL until a batch needs it */
    struct et_tensor *counted; /* f32 [1]: likewise; what counts of the batch so far */
};

static const int64_t one[] = {1};

static et_status
init(struct eti_part *p)
{
    struct accumulated *own = p->own;
    return et_tensor_new(p->s->cx, p->s->dev, ET_F32, 1, one, ET_ROW_MAJOR,
                         "loss/train/total", &own->loss);
}

static void
release(struct eti_part *p)
{
    struct accumulated *own = p->own;
    et_tensor_free(&own->loss);
    et_tensor_free(&own->grad);
    et_tensor_free(&own->counted);
}

static et_status
bind(struct eti_part *p)
{
    struct accumulated *own = p->own;
    if (own->grad && own->grad->desc.shape[0] != p->s->params->total)
        et_tensor_free(&own->grad);
    return ET_OK;
}

/* ---- what counts ---- */

/* Positions of a sample that TARGET has, a class or its share in each. */
static int64_t
positions(const struct et_desc *target)
{
    const bool dense = et_dtype_is_float(target->dtype) && target->ndim > 1;
    int64_t rows = target->shape[0] * (dense ? target->shape[1] : 1);
    return rows > 0 ? et_desc_count(target) / rows : 1;
}

/* Is the loss the model's, and one whose mean is over what counts? */
static bool
may_count(const struct eti_part *p)
{
    const struct et_trainer_steps *steps = p->config->steps;
    return !(steps && steps->train_loss) && ETI_HOOK(p->s->model->loss, counted) &&
           p->s->full.target && p->s->full.target->desc.ndim > 0;
}

/* The share of the microbatch under way, if what counts decides it. */
static struct et_tensor *
find_share(const struct eti_part *p, const struct eti_train_step *k)
{
    struct et_state *s = p->s;
    struct et_graph *g = s->graph;
    if (!may_count(p) || (k->alone && !p->common->comm))
        return NULL;
    struct et_tensor *c = eti_model_counted(s->model, g, &s->batch, s->masked);
    if (!c)
        return NULL;
    int64_t all = s->full.n * positions(&s->full.target->desc);
    return et_mul_scalar(g, et_reshape(g, c, 1, one), 1 / (double)all);
}

struct et_tensor *
eti_share(const struct eti_part *p, struct eti_train_step *k, struct et_tensor *v)
{
    struct et_graph *g = p->s->graph;
    if (!k->share_is_known)
        k->share = find_share(p, k);
    k->share_is_known = true;
    /* A mean over nothing is NaN. */
    if (k->share)
        return et_where(g, k->share, et_mul(g, v, k->share),
                        et_fill(g, ET_F32, 1, one, 0));
    return k->alone ? v
                    : et_mul_scalar(g, v, (double)p->s->batch.n / (double)p->s->full.n);
}

struct et_tensor *
eti_whole(struct et_graph *g, const struct eti_train_step *k, struct et_tensor *v)
{
    return k->counted ? et_mul(g, v, et_reciprocal(g, k->counted)) : v;
}

/* Batches that are as long as their longest sample may differ among ranks. */
double
eti_rank_share(const struct eti_part *p)
{
    const struct et_state *s = p->s;
    double rows = (double)s->full.n / (double)(s->batch_size / s->world);
    struct et_loader_info info;
    et_loader_get_info(p->config->train, &info);
    const struct et_field *f = &info.field[ET_FIELD_TARGET];
    if (!may_count(p) || info.n_fields <= ET_FIELD_TARGET || f->ndim == 0 ||
        f->shape[0] >= 0)
        return rows;
    return rows * (double)positions(&s->full.target->desc) /
           (double)positions(&info.desc[ET_FIELD_TARGET]);
}

/* ---- a batch ---- */

static et_status
loss(struct eti_part *p, struct eti_train_step *k)
{
    struct accumulated *own = p->own;
    struct et_graph *g = p->s->graph;
    k->loss = eti_share(p, k, et_reshape(g, p->s->loss, 1, one));
    if (p->s->pass == 0)
        et_assign(g, own->loss, k->first ? et_add(g, own->loss, k->loss) : k->loss);
    return et_graph_status(g);
}

/* What counts of the batch so far, the microbatch under way included. */
static et_status
add_counted(struct eti_part *p, struct eti_train_step *k)
{
    struct accumulated *own = p->own;
    struct et_graph *g = p->s->graph;
    if (!k->share)
        return ET_OK;
    if (k->alone) {
        k->counted = k->share;
        return ET_OK;
    }
    if (!own->counted)
        ET_TRY(et_tensor_new(p->s->cx, p->s->dev, ET_F32, 1, one, ET_ROW_MAJOR,
                             "loss/train/counted", &own->counted));
    et_assign(g, own->counted, k->first ? et_add(g, own->counted, k->share) : k->share);
    return et_graph_status(g);
}

static et_status
add(struct eti_part *p, struct eti_train_step *k)
{
    struct accumulated *own = p->own;
    struct et_state *s = p->s;
    ET_TRY(add_counted(p, k));
    s->grad = et_param_space_pack(s->graph, s->params, k->grads);
    if (k->alone)
        return et_graph_status(s->graph);
    if (!own->grad)
        ET_TRY(et_tensor_new(s->cx, s->dev, ET_F32, 1, &s->params->total, ET_ROW_MAJOR,
                             "grad", &own->grad));
    et_assign(s->graph, own->grad,
              k->first ? et_add(s->graph, own->grad, s->grad) : s->grad);
    return et_graph_status(s->graph);
}

/* The rank's own, unless ranks.c makes it that of all. */
static et_status
grad(struct eti_part *p, struct eti_train_step *k)
{
    struct accumulated *own = p->own;
    if (!k->alone)
        p->s->grad = own->grad;
    if (!k->alone && k->share)
        k->counted = own->counted;
    if (p->s->grad && (!p->common->comm || p->s->keep_local))
        p->s->grad = eti_whole(p->s->graph, k, p->s->grad);
    return et_graph_status(p->s->graph);
}

static et_status
skip(struct eti_part *p, struct eti_train_step *k)
{
    struct accumulated *own = p->own;
    struct et_graph *g = p->s->graph;
    k->total = p->common->comm ? eti_mean_over_ranks(p, 0)
                               : eti_whole(g, k, et_pending(g, own->loss));
    return ET_OK;
}

static int64_t
count(const struct eti_part *p)
{
    (void)p;
    return 1;
}

static int
sums(struct eti_part *p, struct eti_train_step *k, struct et_tensor **v)
{
    struct accumulated *own = p->own;
    struct et_graph *g = p->s->graph;
    v[0] = eti_weighed(g, k, et_pending(g, own->loss));
    return 1;
}

static int
report(struct eti_part *p, struct eti_train_step *k, struct et_tensor **v)
{
    (void)p;
    v[0] = k->total;
    return 1;
}

static void
take(struct eti_part *p, struct eti_numbers *numbers)
{
    struct et_state *s = p->s;
    int64_t size = p->config->microbatch_size;
    s->loss_value = (double)*numbers->at++;
    et_log_metric(s->log, "loss/train/total", s->loss_value);
    et_log_metric(s->log,
                  size ? "trainer/device_train_microbatch_size" : "trainer/grad_accum",
                  (double)(size ? size : s->grad_accum));
}

const struct eti_part_type eti_part_accumulate = {
    .size = sizeof(struct accumulated),
    .init = init,
    .release = release,
    .bind = bind,
    .loss = loss,
    .add = add,
    .grad = grad,
    .skip = skip,
    .n_sums = count,
    .sums = sums,
    .n_reported = count,
    .report = report,
    .take = take,
};
