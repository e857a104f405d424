/* average.c: see average.h. Copies, averages and exchanges are assignments: one
 * evaluation each, over flat memory and the buffers. */
#include "config.h"

#include <stdio.h>
#include <string.h>

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
    et_free(cx, a->pair);
    a->pair = NULL;
    a->n = 0;
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
