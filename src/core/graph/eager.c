/* SPDX-License-Identifier: Apache-2.0 */
/* eager.c: ETUDE_EAGER=1, each node computed where it is built.
 *
 * The debugger's mode and the planner's oracle: no fusion, no shared memory, one kernel
 * prepared and released per node. A fault shows at the line that wrote the
 * operation. */
#include "config.h"

#include <string.h>

#include "core/graph/graph_impl.h"
#include "etude/comm.h"

struct eti_eager_block {
    struct eti_eager_block *next;
    void *data;
    size_t bytes;
};

static et_status
keep(struct et_graph *g, size_t bytes, void **out)
{
    struct eti_eager_block *b = eti_arena_alloc(&g->arena, sizeof *b);
    if (!b)
        return ET_ENOMEM;
    ET_TRY(eti_device_alloc(g->cx, g->dev, bytes, &b->data));
    b->bytes = bytes;
    b->next = g->eager_blocks;
    g->eager_blocks = b;
    *out = b->data;
    return ET_OK;
}

void
eti_eager_reset(struct et_graph *g)
{
    for (struct eti_eager_block *b = g->eager_blocks; b; b = b->next)
        eti_device_free(g->dev, b->data, b->bytes);
    g->eager_blocks = NULL;
    g->eager_collectives = 0;
}

/* y = all_reduce(x, weight), waited for at once. */
static et_status
reduce(struct et_graph *g, const struct et_node *node, void *const *ptr)
{
    const struct et_desc *x = &node->in[0]->desc;
    struct et_comm_request r = {
        .in = ptr[0],
        .weight = node->n_in > 1 ? ptr[1] : NULL,
        .out = ptr[node->n_in],
        .n = et_desc_count(x),
        .dtype = x->dtype,
        .mark.which = ++g->eager_collectives,
    };
    ET_TRY(et_comm_start(g->cx, g->comm, &r));
    return et_comm_wait(g->cx, g->comm, &r);
}

static et_status
run(struct et_graph *g, const struct et_node *node, struct et_kernel *kernel,
    void *const *ptr, void *workspace)
{
    const struct et_device_table *t = g->dev->table;
    et_status status = t->run(kernel, ptr, workspace, NULL);
    return status == ET_OK ? ET_OK : eti_kernel_failed(g, status, node->op->name);
}

static et_status
compute(struct et_graph *g, struct et_node *node, struct et_desc *desc, void **ptr)
{
    const struct et_device_table *t = g->dev->table;
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i]) {
            desc[i] = node->in[i]->desc;
            ptr[i] = et_tensor_data(node->in[i]);
        }
    for (int i = 0; i < node->n_out; i++) {
        struct et_tensor *out = &node->out[i];
        desc[node->n_in + i] = out->desc;
        ET_TRY(keep(g, et_desc_bytes(&out->desc), &ptr[node->n_in + i]));
        out->data = ptr[node->n_in + i];
        out->storage = &g->results;
    }
    if (node->op->id == ET_OP_all_reduce)
        return reduce(g, node, ptr);
    const struct et_call call = {
        .op = node->op->id,
        .n_in = node->n_in,
        .n_out = node->n_out,
        .attr = node->attr,
        .attr_size = node->attr_size,
        .in = desc,
        .out = desc + node->n_in,
    };
    char why[512] = "";
    struct et_kernel *kernel;
    size_t workspace_bytes = 0;
    et_status status =
        t->prepare(g->dev->handle, &call, &kernel, &workspace_bytes, why, sizeof why);
    if (status != ET_OK)
        return ET_FAIL(g->cx, status, "%s on %s: %s", node->op->name, t->name, why);
    void *workspace;
    status = keep(g, workspace_bytes, &workspace);
    if (status == ET_OK)
        status = run(g, node, kernel, ptr, workspace);
    t->release(kernel);
    g->stats.kernels_run++;
    return status;
}

et_status
eti_eager_run(struct et_graph *g, struct et_node *node)
{
    if (node->op->flags & ET_OPF_VIEW) {
        struct et_tensor *out = &node->out[0], *in = node->in[0];
        out->data = (char *)et_tensor_data(in) +
                    (size_t)out->offset * et_dtype_size(out->desc.dtype);
        out->storage = in->storage; /* of a leaf: commits ask who shares it */
        out->offset += eti_has_storage(g, in) ? in->offset : 0;
        return ET_OK;
    }
    size_t n = (size_t)(node->n_in + node->n_out) + 1;
    struct et_desc *desc = eti_arena_alloc(&g->arena, n * sizeof *desc);
    void **ptr = eti_arena_alloc(&g->arena, n * sizeof *ptr);
    if (!desc || !ptr)
        return ET_ENOMEM;
    return compute(g, node, desc, ptr);
}
