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

et_status
eti_collectives_start(struct et_graph *g, struct eti_collectives *c, int index,
                      void *const *address)
{
    struct eti_collective *one = &c->v[index];
    one->request.in = address[0];
    one->request.weight = address[1];
    one->request.out = address[2];
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
