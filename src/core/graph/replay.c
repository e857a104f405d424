/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c: running a plan.
 *
 * The table of addresses is filled again only when the slab has moved or a binding lies
 * elsewhere than last time (inputs.h). Running allocates nothing and looks nothing up,
 * but for the copies that inputs settle on. */
#include "config.h"

#include "core/base/seams.h"
#include "core/graph/plan.h"
#include "etude/span.h"

/* Where kernels find what lies at A. */
static void *
resolve(const struct eti_plan *p, struct eti_address a)
{
    switch (a.base) {
    case BASE_SLAB:
        return (char *)p->slab + a.offset;
    case BASE_OUTPUT:
        return (char *)p->output + a.offset;
    case BASE_BINDING:
        return eti_input_address(&p->inputs, a.binding, a.offset);
    default:
        return NULL;
    }
}

/* The same for a value that the caller asked for: a leaf's own memory, never the copy
 * of it. */
static void *
resolve_result(const struct eti_plan *p, struct eti_address a)
{
    return a.base == BASE_BINDING ? (char *)p->inputs.v[a.binding].leaf + a.offset
                                  : resolve(p, a);
}

/* FNV-1a, a pointer at a time. */
static uint64_t
digest(const struct eti_plan *p)
{
    uint64_t h = UINT64_C(14695981039346656037) ^ (uintptr_t)p->workspace;
    for (int i = 0; i < p->n_ptr; i++)
        h = (h ^ (uintptr_t)p->ptr[i]) * UINT64_C(1099511628211);
    return h;
}

static void
resolve_all(struct et_graph *g, struct eti_plan *p)
{
    for (int i = 0; i < p->n_ptr; i++)
        p->ptr[i] = resolve(p, p->address[i]);
    if (eti_can_capture(g))
        p->addresses = digest(p);
}

static void
bind(struct et_graph *g, struct eti_plan *p, const struct eti_ir *ir)
{
    bool moved = p->slab != g->slab || p->workspace != g->workspace;
    p->slab = g->slab;
    p->workspace = g->workspace;
    moved |= eti_inputs_look(&p->inputs, ir);
    if (moved)
        resolve_all(g, p);
}

static et_status
run_item(struct et_graph *g, struct eti_plan *p, const struct eti_plan_item *item)
{
    const struct et_device_table *t = g->dev->table;
    void *const *ptr = p->ptr + item->ptr;
    switch (item->kind) {
    case RUN_KERNEL:
        return t->run(item->kernel, ptr, g->workspace, NULL);
    case BEGIN_COLLECTIVE:
        return eti_collectives_start(g, &p->collectives, item->collective, ptr);
    default:
        return eti_collectives_wait(g, &p->collectives, item->collective);
    }
}

/* The same as a span. On a device with streams it lasts until the launch. */
static et_status
trace_item(struct et_graph *g, struct eti_plan *p, const struct eti_plan_item *item,
           struct et_tracer *tracer)
{
    const struct et_device_table *t = g->dev->table;
    const char *how = item->kernel && t->describe ? t->describe(item->kernel) : NULL;
    tracer->begin(tracer, "kernel", item->name, how);
    et_status status = run_item(g, p, item);
    tracer->end(tracer, "kernel", item->name);
    return status;
}

et_status
eti_kernel_failed(struct et_graph *g, et_status status, const char *name)
{
    const struct et_device_table *t = g->dev->table;
    const char *why = t->why ? t->why(g->dev->handle) : "";
    return ET_FAIL(g->cx, status, "%s failed on %s%s%s", name, t->name,
                   why[0] ? ": " : "", why);
}

struct launch {
    struct et_graph *g;
    struct eti_plan *p;
    struct et_tracer *tracer; /* NULL: nobody watches */
};

/* Where work runs at once, the time since the last part of the step began is that
 * part's. A clock is read where parts change, and so a few times a step. */
static void
turn_to(struct et_graph *g, int part, int *now, double *since)
{
    if (part == *now || g->dev->table->stream_new)
        return;
    const double time = eti_monotonic(g->cx);
    g->spent[*now] += *now == ETI_SPENT_NONE ? 0 : time - *since;
    *now = part;
    *since = time;
}

static et_status
launch(void *data)
{
    const struct launch *l = data;
    struct et_graph *g = l->g;
    int part = ETI_SPENT_NONE;
    double since = 0;
    for (int i = l->p->has_run ? l->p->n_once : 0; i < l->p->n_items; i++) {
        const struct eti_plan_item *item = &l->p->item[i];
        if (item->kind != RUN_KERNEL) /* the wait for other ranks is no part */
            turn_to(g, ETI_SPENT_NONE, &part, &since);
        else if (item->part != ETI_SPENT_NONE)
            turn_to(g, item->part, &part, &since);
        et_status status =
            l->tracer ? trace_item(g, l->p, item, l->tracer) : run_item(g, l->p, item);
        if (status == ET_OK)
            continue;
        (void)!eti_kernel_failed(g, status, item->name);
        /* The memory that they work on may be gone soon; what has failed first is
         * told. */
        (void)!eti_collectives_wait(g, &l->p->collectives, l->p->collectives.n);
        return status;
    }
    turn_to(g, ETI_SPENT_NONE, &part, &since);
    return ET_OK;
}

void
eti_graph_set_part(struct et_graph *g, enum eti_spent part)
{
    g->part = part;
}

double
eti_graph_spent(const struct et_graph *g, enum eti_spent part)
{
    return g ? g->spent[part] : 0;
}

/* Plans whose addresses are new, because leaves lie elsewhere each time, settle where
 * these are read from before they are recorded. */
static et_status
run_items(struct et_graph *g, struct eti_plan *p)
{
    struct launch l = {g, p, et_ctx_tracer(g->cx)};
    bool records = eti_can_capture(g) && !l.tracer;
    bool settled = records && !eti_is_known(&p->recordings, p->addresses) &&
                   eti_inputs_settle(g, &p->inputs, p->info.kernels);
    if (settled) {
        eti_recordings_clear(g->dev, &p->recordings);
        resolve_all(g, p);
    }
    ET_TRY(eti_inputs_copy(g, &p->inputs));
    if (!records)
        return launch(&l);
    return eti_launch_recorded(g, &p->recordings, p->addresses, settled, launch, &l);
}

/* T has been computed: it lies where the plan put it, or, as a view of a leaf, on that
 * leaf's storage, so that later evaluations know what they share. */
static void
settle(struct et_graph *g, const struct eti_plan *p, const struct eti_ir *ir,
       struct et_tensor *t)
{
    int id = eti_value_of(t);
    const struct eti_value *v = &ir->value[id];
    int leaf = ir->value[v->root].leaf;
    t->data = resolve_result(p, p->value[id]);
    t->storage = &g->results;
    if (leaf >= 0 && eti_has_storage(g, ir->binding[leaf])) {
        t->storage = ir->binding[leaf]->storage;
        t->offset = ir->binding[leaf]->offset + v->offset;
    }
}

et_status
eti_plan_run(struct et_graph *g, struct eti_plan *p, const struct eti_ir *ir,
             struct et_tensor *const *want, int n)
{
    p->last_use = ++g->plan_clock;
    g->last = p->info;
    g->stats.flops += p->info.flops;
    g->stats.moved_bytes += p->info.moved_bytes;
    bind(g, p, ir);
    if (!g->dry)
        ET_TRY(run_items(g, p));
    for (int i = 0; i < n; i++)
        if (want[i] && want[i]->node && !want[i]->data)
            settle(g, p, ir, want[i]);
    g->stats.kernels_run += (uint64_t)(p->n_items - p->n_once);
    p->has_run |= !g->dry;
    return ET_OK;
}
