/* SPDX-License-Identifier: Apache-2.0 */
/* accumulate.c: a batch's loss and gradient as the sums of its microbatches'.
 *
 *   L = sum_i n_i / n L_i,   g = sum_i n_i / n g_i
 *
 * with n_i the rows of microbatch i and n those of the rank's batch. With one
 * microbatch both are its own. Source: spec/trainer.md 7.4. */
#include "config.h"

#include "core/optim/optim.h"
#include "core/trainer/part.h"

struct accumulated {
    struct et_tensor *loss; /* f32 [1] */
    struct et_tensor *grad; /* f32 [params->total]; NULL until a batch needs it */
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
}

static et_status
bind(struct eti_part *p)
{
    struct accumulated *own = p->own;
    if (own->grad && own->grad->desc.shape[0] != p->s->params->total)
        et_tensor_free(&own->grad);
    return ET_OK;
}

static et_status
loss(struct eti_part *p, struct eti_train_step *k)
{
    struct accumulated *own = p->own;
    struct et_graph *g = p->s->graph;
    k->loss = et_reshape(g, p->s->loss, 1, one);
    if (!k->alone)
        k->loss = et_mul_scalar(g, k->loss, (double)k->n / (double)p->s->full.n);
    if (p->s->pass == 0)
        et_assign(g, own->loss, k->first ? et_add(g, own->loss, k->loss) : k->loss);
    return et_graph_status(g);
}

static et_status
add(struct eti_part *p, struct eti_train_step *k)
{
    struct accumulated *own = p->own;
    struct et_state *s = p->s;
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

static et_status
grad(struct eti_part *p, struct eti_train_step *k)
{
    struct accumulated *own = p->own;
    if (!k->alone)
        p->s->grad = own->grad;
    return ET_OK;
}

static et_status
skip(struct eti_part *p, struct eti_train_step *k)
{
    struct accumulated *own = p->own;
    k->total = p->common->comm ? eti_mean_over_ranks(p, 0)
                               : et_pending(p->s->graph, own->loss);
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
