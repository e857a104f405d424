/* SPDX-License-Identifier: Apache-2.0 */
/* average.c: see average.h. Copies, averages and exchanges are assignments: one
 * evaluation each, over flat memory and the buffers. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/graph/graph_impl.h"
#include "core/modules/leaves.h"
#include "core/trainer/average.h"
#include "etude/ctx.h"
#include "etude/functional.h"

struct eti_average_pair {
    char name[128];         /* of the buffer */
    struct et_tensor *live; /* the model's; borrowed */
    struct et_storage
        *where;     /* of LIVE, held so that nothing else comes to lie there */
    int64_t offset; /* in it */
    struct et_tensor *shadow; /* owned */
};

static void
release_parts(struct eti_average *a, struct et_ctx *cx)
{
    for (int i = 0; i < a->n_parts; i++)
        et_tensor_free(&a->part[i]);
    et_free(cx, a->part);
    a->part = NULL;
    a->n_parts = 0;
    a->cap_parts = 0;
}

static void
release_pairs(struct et_ctx *cx, struct eti_average_pair *pair, int n)
{
    for (int i = 0; i < n; i++) {
        et_tensor_free(&pair[i].shadow);
        et_storage_unref(pair[i].where);
    }
    et_free(cx, pair);
}

void
eti_average_release(struct eti_average *a, struct et_ctx *cx)
{
    release_parts(a, cx);
    release_pairs(cx, a->pair, a->n);
    et_param_copy_free(&a->weights);
    a->pair = NULL;
    a->n = 0;
}

/* ---- of what the model consists now ---- */

/* TO becomes FROM, of the same description, through the host. */
static et_status
copy_tensor(struct et_ctx *cx, struct et_tensor *to, const struct et_tensor *from)
{
    size_t bytes = et_desc_bytes(&from->desc);
    void *buffer;
    ET_TRY(et_alloc(cx, bytes, &buffer));
    et_status status = et_tensor_read(cx, from, buffer, bytes);
    if (status == ET_OK)
        status = et_tensor_write(cx, to, buffer, bytes);
    et_free(cx, buffer);
    return status;
}

/* Is NEW the buffer of OLD, perhaps under another name? */
static bool
is_same_buffer(const struct eti_average_pair *old, const struct eti_average_pair *new)
{
    return (old->where == new->where && old->offset == new->offset) ||
           strcmp(old->name, new->name) == 0;
}

/* The average that one of A's buffers has which is P's, for P to keep. */
static struct et_tensor *
take_over(struct eti_average *a, const struct eti_average_pair *p)
{
    for (int i = 0; i < a->n; i++) {
        struct et_tensor *shadow = a->pair[i].shadow;
        if (!shadow || !is_same_buffer(&a->pair[i], p) ||
            !et_desc_equal(&shadow->desc, &p->live->desc))
            continue;
        a->pair[i].shadow = NULL;
        return shadow;
    }
    return NULL;
}

/* The pairs of N buffers, with averages that A has already or that are new and become
 * what the buffers are. */
static et_status
fill_pairs(struct eti_average *a, const struct et_state *s,
           const struct et_leaves *buffers, struct eti_average_pair *pair,
           struct et_tensor **shadow)
{
    for (int i = 0; i < buffers->n; i++) {
        pair[i].live = buffers->v[i].param->tensor;
        pair[i].where = et_storage_ref(pair[i].live->storage);
        pair[i].offset = pair[i].live->offset;
        snprintf(pair[i].name, sizeof pair[i].name, "%s", buffers->v[i].name);
        shadow[i] = pair[i].shadow = take_over(a, &pair[i]);
    }
    et_status status = eti_leaves_allocate(s->cx, s->dev, buffers, "average", shadow);
    for (int i = 0; i < buffers->n; i++) {
        bool taken = pair[i].shadow != NULL;
        pair[i].shadow = shadow[i];
        if (status == ET_OK && !taken)
            status = copy_tensor(s->cx, shadow[i], pair[i].live);
    }
    return status;
}

/* Pairs for the buffers that the model has now. */
static et_status
make_pairs(struct eti_average *a, const struct et_state *s)
{
    struct et_leaves buffers;
    struct eti_average_pair *pair = NULL;
    void *block;
    ET_TRY(et_module_leaves(s->cx, s->model->root, ET_BUFFER, &buffers));
    int n = buffers.n;
    et_status status = et_alloc(s->cx, ((size_t)n + 1) * sizeof *pair, &block);
    if (status == ET_OK) {
        pair = block;
        status = et_alloc(s->cx, ((size_t)n + 1) * sizeof(struct et_tensor *), &block);
    }
    if (status == ET_OK) {
        status = fill_pairs(a, s, &buffers, pair, block);
        et_free(s->cx, block);
    }
    et_leaves_release(&buffers);
    struct eti_average_pair *old = status == ET_OK ? a->pair : pair;
    if (old)
        release_pairs(s->cx, old, status == ET_OK ? a->n : n);
    ET_TRY(status);
    a->pair = pair;
    a->n = n;
    a->surgeries = s->surgeries;
    return ET_OK;
}

/* After surgery. The weights have followed by themselves. */
static et_status
follow(struct eti_average *a, const struct et_state *s)
{
    if (a->surgeries == s->surgeries)
        return ET_OK;
    release_parts(a, s->cx);
    return make_pairs(a, s);
}

et_status
eti_average_copy(struct eti_average *a, const struct et_state *s)
{
    eti_average_release(a, s->cx);
    a->of = s;
    ET_TRY(et_param_copy_new(s->params, "average", &a->weights));
    ET_TRY(make_pairs(a, s));
    et_graph_reset(s->graph);
    et_assign(s->graph, a->weights->values, s->params->values);
    return et_eval(s->graph, NULL, 0);
}

et_status
eti_average_add(struct eti_average *a, const struct et_state *s, double smoothing)
{
    struct et_graph *g = s->graph;
    ET_TRY(follow(a, s));
    struct et_tensor *average = a->weights->values;
    et_graph_reset(g);
    et_assign(g, average, et_compute_ema(g, average, s->params->values, smoothing));
    for (int i = 0; i < a->n; i++) {
        struct eti_average_pair *p = &a->pair[i];
        et_assign(g, p->shadow, et_compute_ema(g, p->shadow, p->live, smoothing));
    }
    return et_eval(g, NULL, 0);
}

et_status
eti_average_mean(struct eti_average *a, const struct et_state *s,
                 struct et_tensor *share)
{
    struct et_graph *g = s->graph;
    ET_TRY(follow(a, s));
    struct et_tensor *average = a->weights->values;
    et_graph_reset(g);
    et_assign(
        g, average,
        et_add(g, average, et_mul(g, et_sub(g, s->params->values, average), share)));
    for (int i = 0; i < a->n; i++)
        et_assign(g, a->pair[i].shadow, a->pair[i].live);
    return et_eval(g, NULL, 0);
}

et_status
eti_average_adopt(struct eti_average *a, const struct et_state *s)
{
    struct et_graph *g = s->graph;
    ET_TRY(follow(a, s));
    et_graph_reset(g);
    et_assign(g, s->params->values, a->weights->values);
    for (int i = 0; i < a->n; i++)
        et_assign(g, a->pair[i].live, a->pair[i].shadow);
    return et_eval(g, NULL, 0);
}

/* ---- as part of a step ---- */

/* The average's leaf of weights from BEGIN on, described as DESC. */
static et_status
find_part(struct eti_average *a, const struct et_state *s, int64_t begin,
          const struct et_desc *desc, struct et_tensor **out)
{
    struct et_tensor *whole = a->weights->values;
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

/* The first assignment to WEIGHTS at or behind element FROM, to *OUT: the graph moves
 * its own when it is given more. False: it was the last. */
static bool
next_stretch(const struct et_graph *g, const struct et_tensor *weights, int64_t from,
             struct eti_assignment *out)
{
    bool found = false;
    for (int i = 0; i < g->n_assign; i++) {
        const struct eti_assignment *one = &g->assign[i];
        if (one->leaf->storage != weights->storage || one->leaf->offset < from ||
            (found && one->leaf->offset >= out->leaf->offset))
            continue;
        *out = *one;
        found = true;
    }
    return found;
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
    struct eti_assignment next = {0};
    bool found;
    do { /* overlapping ones do not arise: each weight has one new value */
        found = next_stretch(g, weights, at, &next);
        int64_t begin = found ? next.leaf->offset : total;
        struct et_tensor *same =
            begin > at ? et_slice(g, weights, 0, at, begin - at, 1) : NULL;
        ET_TRY(append_part(a, s, smoothing, at, same));
        if (found)
            ET_TRY(append_part(a, s, smoothing, begin, next.value));
        at = found ? begin + et_desc_count(&next.leaf->desc) : total;
    } while (found);
    return ET_OK;
}

et_status
eti_average_append(struct eti_average *a, const struct et_state *s, double smoothing,
                   bool *done)
{
    struct et_graph *g = s->graph;
    *done = is_flat(g, s->params->values);
    if (!*done)
        return ET_OK;
    ET_TRY(follow(a, s));
    ET_TRY(append_weights(a, s, smoothing));
    for (int i = 0; i < a->n; i++) {
        struct eti_average_pair *p = &a->pair[i];
        et_assign(g, p->shadow,
                  et_compute_ema(g, p->shadow, et_pending(g, p->live), smoothing));
    }
    return et_graph_status(g);
}

static void
exchange(struct et_graph *g, struct et_tensor *a, struct et_tensor *b)
{
    et_assign(g, a, b);
    et_assign(g, b, a);
}

et_status
eti_average_use(struct eti_average *a, const struct et_state *s, bool yes,
                struct et_tensor *const *want, int n)
{
    if (a->active == yes)
        return ET_OK;
    ET_TRY(follow(a, s));
    if (n == 0)
        et_graph_reset(s->graph);
    exchange(s->graph, s->params->values, a->weights->values);
    for (int i = 0; i < a->n; i++)
        exchange(s->graph, a->pair[i].live, a->pair[i].shadow);
    ET_TRY(et_eval(s->graph, want, n));
    a->active = yes;
    return ET_OK;
}

et_status
eti_average_archive(struct eti_average *a, struct et_archive *to)
{
    et_status status = ET_OK;
    ET_TRY(follow(a, a->of)); /* the names are the model's */
    ET_TRY(et_archive_flag(to, "active", &a->active));
    ET_TRY(et_archive_tensor(to, "weights", a->weights->values));
    ET_TRY(et_archive_enter(to, "buffers"));
    for (int i = 0; i < a->n && status == ET_OK; i++)
        status = et_archive_tensor(to, a->pair[i].name, a->pair[i].shadow);
    et_archive_leave(to);
    return status;
}
