/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c: prepared kernels over fixed addresses.
 *
 * A plan holds one item per kernel, and one table of operand addresses for all of them.
 * Addresses are slab, output area or a binding plus an offset. Collectives are begun
 * and waited for between kernels (collective.h). replay.c runs it. */
#include "config.h"

#include <string.h>

#include "core/graph/passes.h"
#include "core/graph/plan.h"

void
eti_plan_free(struct et_graph *g, struct eti_plan *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->n_items; i++)
        if (p->item[i].kernel)
            g->dev->table->release(p->item[i].kernel);
    eti_recordings_clear(g->dev, &p->recordings);
    eti_device_free(g->dev, p->output, p->info.output_bytes);
    et_free(g->cx, p->collectives.v);
    et_free(g->cx, p->item);
    et_free(g->cx, p->address);
    et_free(g->cx, p->ptr);
    et_free(g->cx, p->value);
    eti_inputs_free(g, &p->inputs);
    et_free(g->cx, p);
}

bool
eti_plan_matches(const struct eti_plan *p, const uint64_t key[2])
{
    return p && p->key[0] == key[0] && p->key[1] == key[1];
}

uint64_t
eti_plan_last_use(const struct eti_plan *p)
{
    return p ? p->last_use : 0;
}

void
eti_plan_info(const struct eti_plan *p, struct et_plan_info *info)
{
    *info = p->info;
}

static struct eti_address
locate(const struct eti_ir *ir, int value)
{
    const struct eti_value *v = &ir->value[value];
    size_t size = et_dtype_size(v->desc.dtype), offset = (size_t)v->offset * size;
    v = &ir->value[v->root];
    while (v->place == ETI_IN_VALUE) {
        offset += (size_t)v->into_offset * size;
        v = &ir->value[v->into];
    }
    switch (v->place) {
    case ETI_IN_LEAF:
        return (struct eti_address){BASE_BINDING, v->into, offset};
    case ETI_IN_OUTPUT:
        return (struct eti_address){BASE_OUTPUT, -1, v->at + offset};
    default:
        return (struct eti_address){BASE_SLAB, -1, v->at + offset};
    }
}

/* From the first element of a D to the last. */
static size_t
span_bytes(const struct et_desc *d)
{
    int64_t last = 0;
    for (int i = 0; i < d->ndim; i++)
        last += (d->shape[i] - 1) * d->stride[i];
    return et_desc_count(d) == 0 ? 0 : (size_t)(last + 1) * et_dtype_size(d->dtype);
}

/* The next operand of the item added last: a D at A, which the item reads, or
 * WRITES. */
static et_status
add_operand(struct et_graph *g, struct eti_plan *p, struct eti_address a,
            const struct et_desc *d, bool writes)
{
    if (a.base == BASE_BINDING)
        eti_inputs_note(&p->inputs, a.binding, a.offset, a.offset + span_bytes(d),
                        writes);
    ET_TRY(eti_grow(g->cx, &p->address, &p->cap_ptr, p->n_ptr + 1, sizeof *p->address));
    p->address[p->n_ptr++] = a;
    return ET_OK;
}

static et_status
add_item(struct et_graph *g, struct eti_plan *p, enum eti_item_kind kind,
         struct et_kernel *kernel, const char *name)
{
    et_status status =
        eti_grow(g->cx, &p->item, &p->cap_items, p->n_items + 1, sizeof *p->item);
    if (status != ET_OK) {
        if (kernel)
            g->dev->table->release(kernel);
        return status;
    }
    p->item[p->n_items++] =
        (struct eti_plan_item){kind, kernel, p->n_ptr, 0, name, ETI_SPENT_NONE};
    return ET_OK;
}

/* ---- collectives ---- */

/* From the first element of D at A to the last. */
static struct eti_extent
extent_of(const struct eti_ir *ir, struct eti_address a, const struct et_desc *d)
{
    return (struct eti_extent){
        .base = (int)a.base,
        .binding = a.binding,
        .storage = a.base == BASE_BINDING ? ir->binding[a.binding]->storage : NULL,
        .begin = a.offset,
        .end = a.offset + span_bytes(d),
    };
}

static et_status
await_collectives(struct et_graph *g, struct eti_plan *p, int end)
{
    if (end <= p->collectives.waited)
        return ET_OK;
    ET_TRY(add_item(g, p, AWAIT_COLLECTIVES, NULL, "wait for ranks"));
    p->item[p->n_items - 1].collective = end;
    p->collectives.waited = end;
    return ET_OK;
}

/* Before an item that reads, or WRITES, a D at A. */
static et_status
await_for(struct et_graph *g, struct eti_plan *p, const struct eti_ir *ir,
          struct eti_address a, const struct et_desc *d, bool writes)
{
    if (p->collectives.waited == p->collectives.n || a.base == BASE_NONE)
        return ET_OK;
    struct eti_extent e = extent_of(ir, a, d);
    return await_collectives(g, p, eti_collectives_before(&p->collectives, &e, writes));
}

/* y = all_reduce(x, weight): begun here. */
static et_status
add_collective(struct et_graph *g, struct eti_plan *p, const struct eti_ir *ir,
               const struct eti_step *s)
{
    int value[] = {s->in[0], s->n_in > 1 ? s->in[1] : -1, s->out[0]}, index;
    struct eti_address at[3] = {0};
    struct eti_extent extent[3] = {0};
    struct et_device_info info;
    et_device_get_info(g->dev, &info);
    if (!info.host_memory)
        return ET_FAIL(g->cx, ET_ENOTSUP,
                       "all_reduce on %s: ranks exchange what lies in the processor's "
                       "memory; for GPUs this program has no NCCL",
                       g->dev->table->name);
    for (int i = 0; i < 3; i++) {
        if (value[i] < 0)
            continue;
        const struct et_desc *d = &ir->value[value[i]].desc;
        at[i] = locate(ir, value[i]);
        extent[i] = extent_of(ir, at[i], d);
        ET_TRY(await_for(g, p, ir, at[i], d, i == 2));
    }
    const struct et_desc *x = &ir->value[value[0]].desc;
    ET_TRY(eti_collectives_add(g->cx, &p->collectives, et_desc_count(x), x->dtype,
                               &extent[0], &extent[2], &index));
    ET_TRY(add_item(g, p, BEGIN_COLLECTIVE, NULL, s->op->name));
    p->item[p->n_items - 1].collective = index;
    for (int i = 0; i < 3; i++)
        ET_TRY(add_operand(g, p, at[i], value[i] < 0 ? x : &ir->value[value[i]].desc,
                           i == 2));
    return ET_OK;
}

/* ---- kernels, copies and zeros ---- */

/* Prepares the kernel of one call whose operands lie at ADDRESS (inputs, then
 * outputs). */
static et_status
add_kernel(struct et_graph *g, struct eti_plan *p, const struct eti_ir *ir,
           struct eti_step *s, const struct et_call *call,
           const struct eti_address *address)
{
    char why[512] = "";
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        bool writes = i >= call->n_in;
        ET_TRY(await_for(g, p, ir, address[i],
                         writes ? &call->out[i - call->n_in] : &call->in[i], writes));
    }
    struct et_kernel *kernel = NULL;
    size_t workspace = 0;
    et_status status = g->dev->table->prepare(g->dev->handle, call, &kernel, &workspace,
                                              why, sizeof why);
    if (status != ET_OK) {
        char text[128] = "no operands";
        if (call->n_in)
            et_desc_text(&call->in[0], text, sizeof text);
        return ET_FAIL(g->cx, status, "%s of %s on %s: %s", s->op->name, text,
                       g->dev->table->name, why[0] ? why : et_status_name(status));
    }
    if (workspace > p->info.workspace_bytes)
        p->info.workspace_bytes = workspace;
    ET_TRY(add_item(g, p, RUN_KERNEL, kernel, s->op->name));
    p->item[p->n_items - 1].part = s->part;
    s->kernel = kernel;
    for (int i = 0; i < call->n_in + call->n_out; i++)
        ET_TRY(add_operand(g, p, address[i],
                           i < call->n_in ? &call->in[i] : &call->out[i - call->n_in],
                           i >= call->n_in));
    p->info.flops += s->flops;
    p->info.moved_bytes += s->bytes;
    p->info.kernels++;
    return ET_OK;
}

static et_status
add_step(struct et_graph *g, struct eti_plan *p, struct eti_ir *ir, struct eti_step *s)
{
    int n = s->n_in + s->n_out;
    struct et_desc *desc = eti_arena_alloc(ir->arena, (size_t)n * sizeof *desc + 1);
    struct eti_address *address =
        eti_arena_alloc(ir->arena, (size_t)n * sizeof *address + 1);
    if (!desc || !address)
        return ET_ENOMEM;
    const struct et_call call = eti_step_call(ir, s, desc);
    for (int i = 0; i < n; i++) {
        int value = i < s->n_in ? s->in[i] : s->out[i - s->n_in];
        if (value >= 0)
            address[i] = locate(ir, value);
    }
    return add_kernel(g, p, ir, s, &call, address);
}

/* A pad whose operand lies in its place is left with the border. */
int64_t
eti_pad_bytes(const struct eti_ir *ir, const struct eti_step *s)
{
    struct eti_address from = locate(ir, s->in[0]), to = locate(ir, s->out[0]);
    int64_t x = (int64_t)et_desc_bytes(&ir->value[s->in[0]].desc);
    int64_t y = (int64_t)et_desc_bytes(&ir->value[s->out[0]].desc);
    bool in_place =
        from.base == to.base && from.binding == to.binding && from.offset == to.offset;
    return in_place ? y - x : y + x;
}

/* A pack whose parts lie in their places, as place.c makes them, is left with the gaps;
 * one without gaps is nothing. */
int64_t
eti_pack_bytes(const struct eti_ir *ir, const struct eti_step *s)
{
    const struct et_pack_attr *attr = s->attr;
    struct eti_address flat = locate(ir, s->out[0]);
    size_t size = et_dtype_size(ir->value[s->out[0]].desc.dtype);
    int64_t gaps = attr->total, copied = 0;
    for (int i = 0; i < s->n_in; i++) {
        if (s->in[i] < 0)
            continue;
        struct eti_address part = locate(ir, s->in[i]);
        int64_t count = et_desc_count(&ir->value[s->in[i]].desc);
        if (part.base != flat.base || part.binding != flat.binding ||
            part.offset != flat.offset + (size_t)attr->offset[i] * size)
            copied += count;
        gaps -= count;
    }
    return (gaps + 2 * copied) * (int64_t)size;
}

/* What runs once comes first, and is no part of what a run costs. */
static et_status
add_constants(struct et_graph *g, struct eti_plan *p, struct eti_ir *ir)
{
    for (int i = 0; i < ir->n_steps; i++)
        if (ir->step[i].op && ir->step[i].once)
            ET_TRY(add_step(g, p, ir, &ir->step[i]));
    p->n_once = p->n_items;
    p->info.kernels = 0;
    p->info.flops = p->info.moved_bytes = 0;
    return ET_OK;
}

static et_status
fill(struct et_graph *g, struct eti_plan *p, struct eti_ir *ir, int n_values)
{
    ET_TRY(eti_inputs_new(g->cx, ir->n_bindings, &p->inputs));
    ET_TRY(add_constants(g, p, ir));
    for (int i = 0; i < ir->n_steps; i++) {
        struct eti_step *s = &ir->step[i];
        if (!s->op || s->once)
            continue;
        if (s->op->id == ET_OP_all_reduce)
            ET_TRY(add_collective(g, p, ir, s));
        else if (eti_step_runs(s))
            ET_TRY(add_step(g, p, ir, s));
    }
    ET_TRY(await_collectives(g, p, p->collectives.n));
    void *block;
    ET_TRY(et_alloc(g->cx, (size_t)(p->n_ptr + 1) * sizeof *p->ptr, &block));
    p->ptr = block;
    ET_TRY(et_alloc(g->cx, (size_t)(n_values + 1) * sizeof *p->value, &block));
    p->value = block;
    p->n_values = n_values;
    for (int i = 0; i < n_values; i++)
        if (ir->value[ir->value[i].root].first >= 0 ||
            ir->value[ir->value[i].root].leaf >= 0)
            p->value[i] = locate(ir, i);
    size_t output = p->info.output_bytes;
    p->info.output_bytes = 0; /* until there is something to free */
    ET_TRY(eti_device_alloc(g->cx, g->dev, output, &p->output));
    p->info.output_bytes = output;
    if (g->dry)
        return g->dev->table->fill(g->dev->handle, p->output, 0, output, NULL);
    return ET_OK;
}

static double
least_seconds(const struct eti_ir *ir, const struct et_device_peak *peak)
{
    double seconds = 0;
    const char *bound;
    for (int i = 0; i < ir->n_steps; i++)
        if (eti_step_runs(&ir->step[i]))
            seconds += eti_least_seconds(peak, ir, &ir->step[i], &bound);
    return seconds;
}

static et_status
reserve(struct et_graph *g, void **block, size_t *have, size_t want)
{
    if (*have >= want && *block)
        return ET_OK;
    eti_device_free(g->dev, *block, *have);
    *block = NULL;
    *have = 0;
    ET_TRY(eti_device_alloc(g->cx, g->dev, want, block));
    *have = want;
    return ET_OK;
}

et_status
eti_plan_reserve(struct et_graph *g, const struct eti_plan *p)
{
    ET_TRY(reserve(g, &g->slab, &g->slab_bytes, p->info.slab_bytes));
    return reserve(g, &g->workspace, &g->workspace_bytes, p->info.workspace_bytes);
}

/* Bytes that G could take for a plan: free memory, and its present slab and workspace,
 * which a larger plan replaces. False if the device does not tell. */
static bool
room_of(const struct et_graph *g, size_t *room)
{
    const struct et_device *dev = g->dev;
    size_t used = dev->memory.current_bytes, own = g->slab_bytes + g->workspace_bytes;
    bool asked =
        dev->table->memory_free && dev->table->memory_free(dev->handle, room) == ET_OK;
    if (!asked && !dev->limit)
        return false;
    if (!asked)
        *room = SIZE_MAX - own;
    if (dev->limit) {
        size_t left = dev->limit > used ? dev->limit - used : 0;
        *room = left < *room ? left : *room;
    }
    *room += own;
    return true;
}

static size_t
larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* ENOMEM where a plan does not fit, before memory is asked for in vain; the first time
 * before kernels are prepared and timed for it, which takes seconds. */
static et_status
check_room(struct et_graph *g, const struct et_plan_info *info, size_t output)
{
    size_t room, needed = larger(info->slab_bytes, g->slab_bytes) +
                          larger(info->workspace_bytes, g->workspace_bytes) + output;
    g->short_of = g->had = 0;
    if (!room_of(g, &room) || needed <= room)
        return ET_OK;
    g->short_of = needed;
    g->had = room;
    return ET_FAIL(g->cx, ET_ENOMEM,
                   "out of %s memory: a plan needs %zu bytes, of which there are %zu",
                   g->dev->table->name, needed, room);
}

et_status
eti_plan_new(struct et_graph *g, struct eti_ir *ir, struct eti_plan **out)
{
    /* Those that lowering made: look-ups while it runs know these. */
    int n_values = ir->n_values;
    void *block;
    ET_TRY(et_alloc(g->cx, sizeof **out, &block));
    struct eti_plan *p = block;
    memcpy(p->key, ir->key, sizeof p->key);
    p->info.nodes = ir->n_nodes;
    eti_run_passes(ir);
    et_status status = ir->failed ? ET_ENOMEM : ET_OK;
    if (status == ET_OK && ir->cyclic)
        status = ET_FAIL(g->cx, ET_EINTERNAL,
                         "a plan of %d nodes has kernels that wait for each other",
                         ir->n_nodes);
    if (status == ET_OK)
        status = eti_place(ir, &p->info.slab_bytes, &p->info.output_bytes);
    size_t output = p->info.output_bytes;
    struct et_device_peak peak;
    if (status == ET_OK)
        status = eti_device_peak(g->cx, g->dev, &peak);
    if (status == ET_OK)
        status = eti_count_costs(ir);
    bool counted = status == ET_OK;
    if (status == ET_OK && (g->dump & ETI_DUMP_MEMORY))
        eti_dump_memory(ir, p->info.slab_bytes, output);
    if (status == ET_OK)
        status = check_room(g, &p->info, output);
    if (status == ET_OK)
        status = fill(g, p, ir, n_values);
    if (status == ET_OK)
        status = check_room(g, &p->info, 0);
    if (status == ET_OK)
        p->info.least_seconds = least_seconds(ir, &peak);
    if (counted && (g->dump & ETI_DUMP_PLAN))
        eti_dump_plan(ir, &peak);
    if (status == ET_OK)
        status = eti_plan_reserve(g, p);
    if (status != ET_OK) {
        eti_plan_free(g, p);
        return status;
    }
    *out = p;
    return ET_OK;
}
