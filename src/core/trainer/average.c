/* average.c: see average.h. Copies, averages and exchanges are assignments: one
 * evaluation each, over flat memory and the buffers. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/graph/graph_impl.h"
#include "core/trainer/average.h"
#include "etude/ctx.h"
#include "etude/functional.h"

struct eti_average_pair {
    char name[128];           /* of the buffer */
    struct et_tensor *live;   /* a buffer of the model; NULL: the flat weights */
    struct et_tensor *shadow; /* owned */
};

void
eti_average_release(struct eti_average *a, struct et_ctx *cx)
{
    for (int i = 0; i < a->n; i++)
        et_tensor_free(&a->pair[i].shadow);
    for (int i = 0; i < a->n_parts; i++)
        et_tensor_free(&a->part[i]);
    et_free(cx, a->pair);
    et_free(cx, a->part);
    a->pair = NULL;
    a->part = NULL;
    a->n = a->n_parts = 0;
    a->cap_parts = 0;
}

/* The weights are asked for anew: surgery may have laid them out again. */
static struct et_tensor *
live(const struct et_state *s, const struct eti_average_pair *p)
{
    return p->live ? p->live : s->params->values;
}

static et_status
add_pair(struct eti_average *a, const struct et_state *s, const struct et_leaf *buffer)
{
    struct eti_average_pair *p = &a->pair[a->n];
    if (buffer) {
        p->live = buffer->param->tensor;
        snprintf(p->name, sizeof p->name, "%s", buffer->name);
    }
    const struct et_desc *d = &live(s, p)->desc;
    enum et_format format = d->ndim == 4 ? ET_CHANNELS_LAST : ET_ROW_MAJOR;
    ET_TRY(et_tensor_new(s->cx, s->dev, d->dtype, d->ndim, d->shape, format, "average",
                         &p->shadow));
    a->n++;
    return ET_OK;
}

static et_status
make_pairs(struct eti_average *a, const struct et_state *s)
{
    struct et_leaves buffers;
    void *block;
    eti_average_release(a, s->cx);
    ET_TRY(et_module_leaves(s->cx, s->model->root, ET_BUFFER, &buffers));
    et_status status =
        et_alloc(s->cx, ((size_t)buffers.n + 1) * sizeof *a->pair, &block);
    if (status == ET_OK) {
        a->pair = block;
        status = add_pair(a, s, NULL);
    }
    for (int i = 0; i < buffers.n && status == ET_OK; i++)
        status = add_pair(a, s, &buffers.v[i]);
    et_leaves_release(&buffers);
    return status;
}

et_status
eti_average_copy(struct eti_average *a, const struct et_state *s)
{
    ET_TRY(make_pairs(a, s));
    et_graph_reset(s->graph);
    for (int i = 0; i < a->n; i++)
        et_assign(s->graph, a->pair[i].shadow, live(s, &a->pair[i]));
    return et_eval(s->graph, NULL, 0);
}

et_status
eti_average_add(struct eti_average *a, const struct et_state *s, double smoothing)
{
    et_graph_reset(s->graph);
    for (int i = 0; i < a->n; i++) {
        struct eti_average_pair *p = &a->pair[i];
        et_assign(s->graph, p->shadow,
                  et_compute_ema(s->graph, p->shadow, live(s, p), smoothing));
    }
    return et_eval(s->graph, NULL, 0);
}

/* ---- as part of a step ---- */

/* The average's leaf of weights from BEGIN on, described as DESC. */
static et_status
find_part(struct eti_average *a, const struct et_state *s, int64_t begin,
          const struct et_desc *desc, struct et_tensor **out)
{
    struct et_tensor *whole = a->pair[0].shadow;
    for (int i = 0; i < a->n_parts; i++)
        if (a->part[i]->offset == begin && et_desc_equal(&a->part[i]->desc, desc)) {
            *out = a->part[i];
            return ET_OK;
        }
    ET_TRY(eti_grow(s->cx, &a->part, &a->cap_parts, a->n_parts + 1, sizeof *a->part));
    ET_TRY(et_tensor_view(s->cx, whole->storage, begin, desc, "average",
                          &a->part[a->n_parts]));
    *out = a->part[a->n_parts++];
    return ET_OK;
}

/* The average of the weights from BEGIN on moves towards VALUE, which is row-major. */
static et_status
append_part(struct eti_average *a, const struct et_state *s, double smoothing,
            int64_t begin, struct et_tensor *value)
{
    struct et_tensor *part;
    struct et_desc desc;
    if (!value || et_desc_count(&value->desc) == 0)
        return ET_OK;
    et_desc_init(&desc, ET_F32, value->desc.ndim, value->desc.shape, ET_ROW_MAJOR);
    ET_TRY(find_part(a, s, begin, &desc, &part));
    et_assign(s->graph, part, et_compute_ema(s->graph, part, value, smoothing));
    return ET_OK;
}

/* The first assignment to WEIGHTS at or behind element FROM; NULL: it was the last. */
static const struct eti_assignment *
next_stretch(const struct et_graph *g, const struct et_tensor *weights, int64_t from)
{
    const struct eti_assignment *first = NULL;
    for (int i = 0; i < g->n_assign; i++) {
        const struct eti_assignment *one = &g->assign[i];
        if (one->leaf->storage == weights->storage && one->leaf->offset >= from &&
            (!first || one->leaf->offset < first->leaf->offset))
            first = one;
    }
    return first;
}

/* Are all assignments to the weights stretches of flat memory, or rows of it, as
 * optimizers make? */
static bool
is_flat(const struct et_graph *g, const struct et_tensor *weights)
{
    for (int i = 0; i < g->n_assign; i++) {
        const struct et_tensor *leaf = g->assign[i].leaf;
        if (leaf->storage == weights->storage &&
            !et_desc_is_contiguous(&leaf->desc, ET_ROW_MAJOR))
            return false;
    }
    return true;
}

static et_status
append_weights(struct eti_average *a, const struct et_state *s, double smoothing)
{
    struct et_graph *g = s->graph;
    struct et_tensor *weights = s->params->values;
    int64_t at = 0, total = weights->desc.shape[0];
    const struct eti_assignment *next;
    do { /* overlapping ones do not arise: each weight has one new value */
        next = next_stretch(g, weights, at);
        int64_t begin = next ? next->leaf->offset : total;
        struct et_tensor *same =
            begin > at ? et_slice(g, weights, 0, at, begin - at, 1) : NULL;
        ET_TRY(append_part(a, s, smoothing, at, same));
        if (next)
            ET_TRY(append_part(a, s, smoothing, begin, next->value));
        at = next ? begin + et_desc_count(&next->leaf->desc) : total;
    } while (next);
    return ET_OK;
}

et_status
eti_average_append(struct eti_average *a, const struct et_state *s, double smoothing,
                   bool *done)
{
    struct et_graph *g = s->graph;
    *done = is_flat(g, s->params->values) &&
            et_desc_equal(&a->pair[0].shadow->desc, &s->params->values->desc);
    if (!*done)
        return ET_OK;
    ET_TRY(append_weights(a, s, smoothing));
    for (int i = 1; i < a->n; i++) {
        struct eti_average_pair *p = &a->pair[i];
        et_assign(g, p->shadow,
                  et_compute_ema(g, p->shadow, et_pending(g, p->live), smoothing));
    }
    return et_graph_status(g);
}

et_status
eti_average_use(struct eti_average *a, const struct et_state *s, bool yes,
                struct et_tensor *const *want, int n)
{
    if (a->active == yes)
        return ET_OK;
    if (n == 0)
        et_graph_reset(s->graph);
    for (int i = 0; i < a->n; i++) {
        struct eti_average_pair *p = &a->pair[i];
        et_assign(s->graph, live(s, p), p->shadow);
        et_assign(s->graph, p->shadow, live(s, p));
    }
    ET_TRY(et_eval(s->graph, want, n));
    a->active = yes;
    return ET_OK;
}

et_status
eti_average_archive(struct eti_average *a, struct et_archive *to)
{
    et_status status = ET_OK;
    ET_TRY(et_archive_flag(to, "active", &a->active));
    ET_TRY(et_archive_tensor(to, "weights", a->pair[0].shadow));
    ET_TRY(et_archive_enter(to, "buffers"));
    for (int i = 1; i < a->n && status == ET_OK; i++)
        status = et_archive_tensor(to, a->pair[i].name, a->pair[i].shadow);
    et_archive_leave(to);
    return status;
}
