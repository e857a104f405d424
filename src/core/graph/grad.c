/* SPDX-License-Identifier: Apache-2.0 */
/* grad.c: gradients as more nodes.
 *
 * Reverse accumulation: walk the nodes back from the output; each operation's own rule
 * turns the gradients of its results into those of its operands; contributions to one
 * tensor are added in the order they arrive, which is the build order reversed. Only
 * nodes between PARAMS and the output take part, so nothing is computed for a network's
 * input. */
#include "config.h"

#include <stdio.h>

#include "core/base/need.h"
#include "core/graph/graph_impl.h"

/* The gradients known so far, by producer and by parameter. */
struct tape {
    struct et_graph *g;
    struct et_tensor ***dy; /* per node: one per output, or NULL */
    bool *needed;           /* per node: lies on a path from a parameter */
    struct et_tensor *const *params;
    struct et_tensor **grads;
    int n;
};

static int
find_param(const struct tape *t, const struct et_tensor *x)
{
    for (int i = 0; i < t->n; i++)
        if (t->params[i] == x)
            return i;
    return -1;
}

/* Leaves are many and looked up often: a stamp remembers where in PARAMS each is. */
static void
stamp_params(struct tape *t)
{
    for (int i = t->n - 1; i >= 0; i--)
        if (t->params[i])
            t->params[i]->plan_id = (uint64_t)i;
}

static int
param_index(const struct tape *t, const struct et_tensor *x)
{
    uint64_t i = x->plan_id;
    if (i < (uint64_t)t->n && t->params[i] == x)
        return (int)i;
    return x->node ? find_param(t, x) : -1;
}

static bool
is_needed(const struct tape *t, const struct et_tensor *x)
{
    if (!x || !et_dtype_is_float(x->desc.dtype))
        return false;
    if (param_index(t, x) >= 0)
        return true;
    return x->node && t->needed[x->node->id];
}

static void
mark_needed(struct tape *t, int last)
{
    for (int id = 0; id <= last; id++) {
        const struct et_node *node = t->g->node[id];
        for (int i = 0; i < node->n_in && !t->needed[id]; i++)
            t->needed[id] = is_needed(t, node->in[i]);
    }
}

static void
accumulate(struct tape *t, struct et_tensor *x, struct et_tensor *dx)
{
    int i = param_index(t, x);
    if (i >= 0)
        t->grads[i] = t->grads[i] ? et_add(t->g, t->grads[i], dx) : dx;
    if (!x->node || !t->needed[x->node->id])
        return;
    struct et_tensor ***dy = &t->dy[x->node->id];
    if (!*dy) {
        *dy = eti_arena_alloc(&t->g->arena, (size_t)x->node->n_out * sizeof **dy);
        if (!*dy) {
            t->g->status = ET_ENOMEM;
            return;
        }
    }
    struct et_tensor **slot = &(*dy)[x->output];
    *slot = *slot ? et_add(t->g, *slot, dx) : dx;
}

static et_status
step_back(struct tape *t, struct et_node *node)
{
    enum { SMALL = 16 };
    bool want_small[SMALL], *want = want_small;
    struct et_tensor *dx_small[SMALL], **dx = dx_small;
    if (!node->op->gradient)
        return ET_FAIL(t->g->cx, ET_ENOTSUP, "%s has no gradient", node->op->name);
    if (node->n_in > SMALL) {
        want = eti_arena_alloc(&t->g->arena, (size_t)node->n_in * sizeof *want);
        dx = eti_arena_alloc(&t->g->arena, (size_t)node->n_in * sizeof *dx);
        if (!want || !dx)
            return ET_ENOMEM;
    }
    for (int i = 0; i < node->n_in; i++) {
        want[i] = is_needed(t, node->in[i]);
        dx[i] = NULL;
    }
    ET_TRY(node->op->gradient(t->g, node, t->dy[node->id], want, dx));
    for (int i = 0; i < node->n_in; i++)
        if (want[i] && dx[i])
            accumulate(t, node->in[i], dx[i]);
    return t->g->status;
}

/* What is wrong with a caller's tensors sticks. */
static et_status
check_given(struct et_graph *g, const struct et_tensor *output,
            const struct et_tensor *dy, struct et_tensor *const *params, int n)
{
    char which[32];
    if (g->status != ET_OK)
        return g->status;
    et_status status = eti_check_usable(g, "et_grad", "the output", output);
    if (status == ET_OK && dy)
        status = eti_check_usable(g, "et_grad", "the output's gradient", dy);
    for (int i = 0; i < n && status == ET_OK; i++) {
        if (params[i] && eti_is_usable(g, params[i]))
            continue;
        snprintf(which, sizeof which, "parameter %d", i + 1);
        status = eti_unusable(g, "et_grad", which, params[i]);
    }
    eti_graph_fail(g, status);
    return status;
}

et_status
et_grad_from(struct et_graph *g, struct et_tensor *output, struct et_tensor *dy,
             struct et_tensor *const *params, int n, struct et_tensor **grads)
{
    ETI_NEED(et_graph_ctx(g), g);
    if (n > 0)
        ETI_NEED(et_graph_ctx(g), params, grads);
    for (int i = 0; i < n; i++)
        grads[i] = NULL;
    ET_TRY(check_given(g, output, dy, params, n));
    if (!dy)
        dy = et_fill(g, output->desc.dtype, output->desc.ndim, output->desc.shape, 1);
    struct tape t = {.g = g, .params = params, .grads = grads, .n = n};
    stamp_params(&t);
    int i = param_index(&t, output);
    if (!output->node) {
        if (i >= 0)
            grads[i] = dy;
        return g->status;
    }
    int last = (int)output->node->id;
    t.dy = eti_arena_alloc(&g->arena, (size_t)(last + 1) * sizeof *t.dy);
    t.needed = eti_arena_alloc(&g->arena, (size_t)(last + 1) * sizeof *t.needed);
    if (!t.dy || !t.needed)
        return g->status = ET_ENOMEM;
    mark_needed(&t, last);
    if (dy)
        accumulate(&t, output, dy);
    bool was = et_autocast(g, false); /* in the dtypes the forward pass had */
    for (int id = last; id >= 0 && g->status == ET_OK; id--) {
        if (!t.dy[id])
            continue;
        et_status status = step_back(&t, g->node[id]);
        if (status != ET_OK)
            g->status = status;
    }
    et_autocast(g, was);
    return g->status;
}

et_status
et_grad(struct et_graph *g, struct et_tensor *loss, struct et_tensor *const *params,
        int n, struct et_tensor **grads)
{
    ETI_NEED(et_graph_ctx(g), g);
    if (n > 0)
        ETI_NEED(et_graph_ctx(g), grads);
    if (g->status == ET_OK && loss && et_desc_count(&loss->desc) != 1) {
        char text[128];
        g->status =
            ET_FAIL(g->cx, ET_ESHAPE, "grad: the loss must be one number, not %s",
                    et_desc_text(&loss->desc, text, sizeof text));
    }
    return et_grad_from(g, loss, NULL, params, n, grads);
}
