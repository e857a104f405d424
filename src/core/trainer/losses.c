/* SPDX-License-Identifier: Apache-2.0 */
/* losses.c: the parts of a loss, which a model or a step logs by name. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/base/need.h"
#include "core/trainer/part.h"

struct losses {
    struct loss {
        char name[64];
        struct et_tensor *sum; /* f32 [1]: of the microbatches so far, weighted */
        bool logged;           /* in the batch under way */
    } v[ETI_MAX_LOSS_PARTS];
    int n;
};

static const int64_t one[] = {1};

static void
release(struct eti_part *p)
{
    struct losses *own = p->own;
    for (int i = 0; i < own->n; i++)
        et_tensor_free(&own->v[i].sum);
    own->n = 0;
}

static et_status
begin(struct eti_part *p, struct eti_train_step *k)
{
    struct losses *own = p->own;
    (void)k;
    for (int i = 0; i < own->n; i++)
        own->v[i].logged = false;
    return ET_OK;
}

static et_status
find(struct et_state *s, struct losses *own, const char *name, struct loss **out)
{
    int i = 0;
    while (i < own->n && strcmp(own->v[i].name, name) != 0)
        i++;
    *out = &own->v[i];
    if (i < own->n)
        return ET_OK;
    if (i == ETI_MAX_LOSS_PARTS)
        return ET_FAIL(s->cx, ET_EINVAL,
                       "a loss with more than %d parts; '%s' is left out",
                       ETI_MAX_LOSS_PARTS, name);
    ET_TRY(et_tensor_new(s->cx, s->dev, ET_F32, 1, one, ET_ROW_MAJOR, name,
                         &own->v[i].sum));
    snprintf(own->v[i].name, sizeof own->v[i].name, "%s", name);
    own->n++;
    return ET_OK;
}

et_status
et_state_log_loss(struct et_state *s, const char *name, struct et_tensor *value)
{
    ETI_NEED(s ? s->cx : NULL, s);
    struct et_trainer *t = (struct et_trainer *)s;
    const struct eti_part *p = eti_part_of(t, ETI_PART_LOSSES);
    struct loss *l;
    if (!value || s->pass > 0)
        return et_graph_status(s->graph);
    ET_TRY(find(s, p->own, name, &l));
    struct et_graph *g = s->graph;
    struct et_tensor *share = eti_share(
        p, eti_train_step_of(t), et_reshape(g, et_cast(g, value, ET_F32), 1, one));
    et_assign(g, l->sum, s->batch.first_row ? et_add(g, l->sum, share) : share);
    l->logged = true;
    return et_graph_status(g);
}

/* All there may be: ranks may come upon their names in different batches. */
static int64_t
count(const struct eti_part *p)
{
    (void)p;
    return ETI_MAX_LOSS_PARTS;
}

static int
sums(struct eti_part *p, struct eti_train_step *k, struct et_tensor **v)
{
    struct losses *own = p->own;
    struct et_graph *g = p->s->graph;
    struct et_tensor *none = et_fill(g, ET_F32, 1, one, 0);
    for (int i = 0; i < ETI_MAX_LOSS_PARTS; i++)
        v[i] = i < own->n && own->v[i].logged
                   ? eti_weighed(g, k, et_pending(g, own->v[i].sum))
                   : none;
    return ETI_MAX_LOSS_PARTS;
}

static int
report(struct eti_part *p, struct eti_train_step *k, struct et_tensor **v)
{
    struct losses *own = p->own;
    int n = 0;
    k->losses = 0;
    for (int i = 0; i < own->n; i++) {
        if (!own->v[i].logged)
            continue;
        k->losses |= 1u << i;
        v[n++] = p->common->comm ? eti_mean_over_ranks(p, i)
                                 : eti_whole(p->s->graph, k,
                                             et_pending(p->s->graph, own->v[i].sum));
    }
    return n;
}

static void
take(struct eti_part *p, struct eti_numbers *numbers)
{
    struct losses *own = p->own;
    char name[ET_METRIC_NAME];
    for (int i = 0; i < own->n; i++) {
        if (!(numbers->losses & 1u << i))
            continue;
        snprintf(name, sizeof name, "loss/train/%s", own->v[i].name);
        et_log_metric(p->s->log, name, (double)*numbers->at++);
    }
}

const struct eti_part_type eti_part_losses = {
    .size = sizeof(struct losses),
    .release = release,
    .begin = begin,
    .n_sums = count,
    .sums = sums,
    .n_reported = count,
    .report = report,
    .take = take,
};
