/* SPDX-License-Identifier: Apache-2.0 */
/* collective.c: see collective.h. */
#include "config.h"

#include "core/graph/collective.h"

#include "core/graph/graph_impl.h"

et_status
eti_collectives_add(struct et_ctx *cx, struct eti_collectives *c, int64_t n,
                    enum et_dtype dtype, const struct eti_extent *in,
                    const struct eti_extent *out, int *index)
{
    ET_TRY(eti_grow(cx, &c->v, &c->cap, c->n + 1, sizeof *c->v));
    c->v[c->n] = (struct eti_collective){
        .request = {.n = n, .dtype = dtype},
        .in = *in,
        .out = *out,
    };
    *index = c->n++;
    return ET_OK;
}

static bool
overlap(const struct eti_extent *a, const struct eti_extent *b)
{
    if (a->base != b->base)
        return false;
    if (a->binding != b->binding) /* two views of one storage may: nobody knows where */
        return a->storage && a->storage == b->storage;
    return a->begin < b->end && b->begin < a->end;
}

int
eti_collectives_before(const struct eti_collectives *c, const struct eti_extent *e,
                       bool writes)
{
    for (int i = c->n - 1; i >= c->waited; i--)
        if (overlap(e, &c->v[i].out) || (writes && overlap(e, &c->v[i].in)))
            return i + 1;
    return c->waited;
}

/* Never 0. */
static uint32_t
digest(uint32_t before, int64_t n, enum et_dtype dtype)
{
    uint64_t hash = (before ^ (uint64_t)n << 8 ^ (uint64_t)dtype) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(hash >> 32) | 1;
}

uint32_t
eti_collectives_set(const struct et_graph *g, const int64_t *n, int count)
{
    uint32_t set = 0;
    for (int i = 0; i < count && !g->eager; i++)
        set = digest(set, n[i], ET_F32);
    return set;
}

et_status
eti_collectives_start(struct et_graph *g, struct eti_collectives *c, int index,
                      void *const *address)
{
    struct eti_collective *one = &c->v[index];
    one->request.in = address[0];
    one->request.weight = address[1];
    one->request.out = address[2];
    for (int i = 0; i < c->n && (i > 0 || c->set == 0); i++)
        c->set = digest(c->set, c->v[i].request.n, c->v[i].request.dtype);
    one->request.mark = (struct et_comm_mark){.which = 1 + index, .set = c->set};
    et_status status = et_comm_start(g->cx, g->comm, &one->request);
    one->running = status == ET_OK;
    return status;
}

et_status
eti_collectives_wait(struct et_graph *g, struct eti_collectives *c, int end)
{
    et_status status = ET_OK;
    for (int i = 0; i < end; i++) {
        if (!c->v[i].running)
            continue;
        et_status one = et_comm_wait(g->cx, g->comm, &c->v[i].request);
        c->v[i].running = false;
        status = status == ET_OK ? one : status;
    }
    return status;
}
