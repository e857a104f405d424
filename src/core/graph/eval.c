/* SPDX-License-Identifier: Apache-2.0 */
/* eval.c: evaluating: lower, find or make the plan, run it, commit. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/base/need.h"
#include "core/graph/shadow.h"
#include "etude/span.h"

static et_status
new_ir(struct et_graph *g)
{
    if (g->ir)
        return ET_OK;
    void *block;
    ET_TRY(et_alloc(g->cx, sizeof *g->ir, &block));
    g->ir = block;
    return ET_OK;
}

void
eti_ir_free(struct et_graph *g)
{
    if (!g->ir)
        return;
    et_free(g->cx, g->ir->value);
    et_free(g->cx, g->ir->step);
    et_free(g->cx, g->ir->binding);
    et_free(g->cx, g->ir);
    g->ir = NULL;
}

void
eti_drop_caches(struct et_graph *g, const struct eti_plan *keep)
{
    for (int i = 0; i < ETI_PLANS; i++)
        if (g->plan[i] && g->plan[i] != keep &&
            eti_plan_last_use(g->plan[i]) <= g->step_clock) {
            eti_plan_free(g, g->plan[i]);
            g->plan[i] = NULL;
        }
    eti_device_free(g->dev, g->slab, g->slab_bytes);
    eti_device_free(g->dev, g->workspace, g->workspace_bytes);
    g->slab = g->workspace = NULL;
    g->slab_bytes = g->workspace_bytes = 0;
}

/* A plan that does not fit is tried once more with all caches gone. */
static et_status
make_plan(struct et_graph *g, struct et_tensor *const *want, int n,
          struct eti_plan **out)
{
    et_status status = eti_plan_new(g, g->ir, out);
    if (status != ET_ENOMEM)
        return status;
    eti_drop_caches(g, NULL);
    et_error_clear(g->cx);
    ET_TRY(eti_lower(g, want, n, g->ir)); /* the passes have rewritten the first one */
    return eti_plan_new(g, g->ir, out);
}

/* Slab and workspace for a plan of an earlier step: others may have taken them since.
 * Like make_plan, so that a step fits where it has fitted before. */
static et_status
reserve(struct et_graph *g, struct eti_plan *p)
{
    et_status status = eti_plan_reserve(g, p);
    if (status != ET_ENOMEM)
        return status;
    eti_drop_caches(g, p);
    et_error_clear(g->cx);
    return eti_plan_reserve(g, p);
}

static et_status
find_plan(struct et_graph *g, struct et_tensor *const *want, int n,
          struct eti_plan **out)
{
    int oldest = 0;
    for (int i = 0; i < ETI_PLANS; i++) {
        if (eti_plan_matches(g->plan[i], g->ir->key)) {
            *out = g->plan[i];
            return reserve(g, *out);
        }
        if (g->plan[oldest] && (!g->plan[i] || eti_plan_last_use(g->plan[i]) <
                                                   eti_plan_last_use(g->plan[oldest])))
            oldest = i;
    }
    if (g->dump & ETI_DUMP_GRAPH)
        eti_dump_graph(g);
    eti_plan_free(g, g->plan[oldest]);
    g->plan[oldest] = NULL;
    et_span_begin(g->cx, "graph", "plan", NULL);
    et_status status = make_plan(g, want, n, &g->plan[oldest]);
    et_span_end(g->cx, "graph", "plan");
    ET_TRY(status);
    g->stats.plans_built++;
    *out = g->plan[oldest];
    return ET_OK;
}

/* Lowers what is pending and finds its plan. On failure nothing has changed. */
static et_status
prepare(struct et_graph *g, struct et_tensor *const *want, int n,
        struct eti_plan **plan)
{
    if (g->status != ET_OK)
        return g->status;
    for (int i = 0; i < n; i++)
        if (want[i] && !eti_is_usable(g, want[i])) {
            char which[32];
            snprintf(which, sizeof which, "tensor %d", i + 1);
            return eti_unusable(g, "et_eval", which, want[i]);
        }
    et_status status = new_ir(g);
    if (status == ET_OK)
        status = eti_lower(g, want, n, g->ir);
    if (status == ET_OK)
        status = find_plan(g, want, n, plan);
    return status;
}

static uint64_t
count_allocs(const struct et_graph *g)
{
    struct et_alloc_stats host;
    et_alloc_get_stats(g->cx, &host);
    return host.allocs + g->dev->memory.allocs;
}

et_status
et_eval(struct et_graph *g, struct et_tensor *const *want, int n)
{
    ETI_NEED(et_graph_ctx(g), g);
    if (n > 0)
        ETI_NEED(et_graph_ctx(g), want);
    uint64_t before = count_allocs(g);
    struct eti_plan *plan;
    et_status status = prepare(g, want, n, &plan);
    if (status != ET_OK) {
        g->n_assign = 0;
        return status;
    }
    et_span_begin(g->cx, "graph", "replay", NULL);
    status = g->dry ? ET_OK : eti_shadow_refresh(g, g->ir);
    if (status == ET_OK)
        status = eti_plan_run(g, plan, g->ir, want, n);
    et_span_end(g->cx, "graph", "replay");
    if (g->n_assign) {
        g->epoch++;
        eti_autocast_commit(g);
    }
    g->n_assign = 0;
    eti_arena_reset(&g->scratch);
    g->stats.replays++;
    g->stats.allocs += count_allocs(g) - before;
    return status;
}

et_status
et_plan(struct et_graph *g, struct et_tensor *const *want, int n,
        struct et_plan_info *info)
{
    ETI_NEED(et_graph_ctx(g), g, info);
    if (n > 0)
        ETI_NEED(et_graph_ctx(g), want);
    struct eti_plan *plan;
    ET_TRY(prepare(g, want, n, &plan));
    eti_plan_info(plan, info);
    eti_arena_reset(&g->scratch);
    return ET_OK;
}

et_status
et_item(struct et_graph *g, struct et_tensor *t, double *out)
{
    ETI_NEED(et_graph_ctx(g), g, out);
    *out = 0;
    if (g->status != ET_OK)
        return g->status;
    if (!t)
        return eti_unusable(g, "et_item", "the tensor", t);
    if (et_desc_count(&t->desc) != 1)
        return ET_FAIL(g->cx, ET_ESHAPE, "item: the tensor has %lld elements, not 1",
                       (long long)et_desc_count(&t->desc));
    if (!et_tensor_data(t))
        ET_TRY(et_eval(g, &t, 1));
    union {
        float f32;
        double f64;
        int32_t i32;
        int64_t i64;
        uint8_t u8;
    } v;
    ET_TRY(et_tensor_read(g->cx, t, &v, et_dtype_size(t->desc.dtype)));
    switch (t->desc.dtype) {
    case ET_F32:
        *out = v.f32;
        return ET_OK;
    case ET_F64:
        *out = v.f64;
        return ET_OK;
    case ET_I32:
        *out = v.i32;
        return ET_OK;
    case ET_I64:
        *out = (double)v.i64;
        return ET_OK;
    case ET_U8:
        *out = v.u8;
        return ET_OK;
    default:
        return ET_FAIL(g->cx, ET_EDTYPE, "item: cannot read %s",
                       et_dtype_name(t->desc.dtype));
    }
}
