/* SPDX-License-Identifier: Apache-2.0 */
/* lower.c: from a graph to a list of steps on values, and the signature that names it.
 *
 * Nodes that neither a wanted value nor an assignment depends on are left out here, so
 * dead code costs nothing later. Values computed by an earlier evaluation of this step
 * and leaves become bindings: the plan knows them by order of first use, their
 * addresses are filled in at each run. The key covers operations, attributes, topology,
 * and the descriptions and aliasing of bindings; never values. */
#include "config.h"

#define XXH_INLINE_ALL
#include <string.h>
#include <xxhash.h>

#include "core/graph/graph_impl.h"

static struct eti_node *
priv(struct et_node *n)
{
    return (struct eti_node *)n;
}

static bool
is_binding(const struct et_tensor *t)
{
    return !t->node || t->data;
}

/* Marks what T depends on. Recursion would go as deep as the network; since operands
 * come before their users, one sweep down the ids does. */
static et_status
mark(struct et_graph *g, struct et_tensor *t, int *highest)
{
    if (!t || is_binding(t))
        return ET_OK;
    struct eti_node *n = priv(t->node);
    if (n->epoch != g->epoch)
        return ET_FAIL(
            g->cx, ET_EINVAL,
            "%s: its operands have changed since it was built; ask for it before "
            "the commit",
            n->pub.op->name);
    n->mark = g->walk;
    if ((int)n->pub.id > *highest)
        *highest = (int)n->pub.id;
    return ET_OK;
}

static et_status
mark_reachable(struct et_graph *g, struct et_tensor *const *want, int n)
{
    int highest = -1;
    g->walk++;
    for (int i = 0; i < n; i++)
        ET_TRY(mark(g, want[i], &highest));
    for (int i = 0; i < g->n_assign; i++)
        ET_TRY(mark(g, g->assign[i].value, &highest));
    for (int id = highest; id >= 0; id--) {
        struct et_node *node = g->node[id];
        if (priv(node)->mark != g->walk)
            continue;
        for (int i = 0; i < node->n_in; i++)
            ET_TRY(mark(g, node->in[i], &highest));
    }
    return ET_OK;
}

static int
bind(struct eti_ir *ir, struct et_tensor *t)
{
    uint64_t last = t->plan_id; /* where it was bound last time: right unless stale */
    if (last < (uint64_t)ir->n_bindings && ir->binding[last] == t)
        return (int)last;
    if (eti_grow(ir->g->cx, &ir->binding, &ir->cap_bindings, ir->n_bindings + 1,
                 sizeof *ir->binding) != ET_OK) {
        ir->failed = true;
        return 0;
    }
    if (!t->node && !eti_is_usable(ir->g, t)) {
        ir->freed = t;
        return 0;
    }
    /* Binding i is value i: bindings are all found before any step is lowered. */
    int id = eti_ir_add_value(ir, &t->desc, -1);
    if (ir->failed)
        return 0;
    ir->value[id].leaf = ir->n_bindings;
    t->plan_id = (uint64_t)ir->n_bindings;
    ir->binding[ir->n_bindings] = t;
    return ir->n_bindings++;
}

int
eti_value_of(const struct et_tensor *t)
{
    return is_binding(t) ? (int)t->plan_id : priv(t->node)->first_value + t->output;
}

static void
bind_all(struct eti_ir *ir)
{
    struct et_graph *g = ir->g;
    for (int id = 0; id < g->n_nodes; id++) {
        struct et_node *node = g->node[id];
        for (int i = 0; priv(node)->mark == g->walk && i < node->n_in; i++)
            if (node->in[i] && is_binding(node->in[i]))
                bind(ir, node->in[i]);
    }
    for (int i = 0; i < g->n_assign; i++) {
        bind(ir, g->assign[i].leaf);
        if (is_binding(g->assign[i].value))
            bind(ir, g->assign[i].value);
    }
}

static void
lower_node(struct eti_ir *ir, struct et_node *node)
{
    priv(node)->first_value = ir->n_values;
    if (node->op->flags & ET_OPF_VIEW) {
        int of = eti_value_of(node->in[0]);
        int id = eti_ir_add_value(ir, &node->out[0].desc, ir->value[of].producer);
        if (ir->failed)
            return;
        ir->value[id].root = ir->value[of].root;
        ir->value[id].offset = ir->value[of].offset + node->out[0].offset;
        return;
    }
    for (int i = 0; i < node->n_out; i++)
        eti_ir_add_value(ir, &node->out[i].desc, ir->n_steps);
    struct eti_step *s = eti_ir_add_step(ir, node->op, node->attr, node->attr_size,
                                         node->n_in, node->n_out);
    if (ir->failed)
        return;
    s->part = priv(node)->part;
    for (int i = 0; i < node->n_in; i++)
        s->in[i] = node->in[i] ? eti_value_of(node->in[i]) : -1;
    for (int i = 0; i < node->n_out; i++)
        s->out[i] = priv(node)->first_value + i;
}

static struct eti_step *
add_copy(struct eti_ir *ir, int from, int to)
{
    static const struct et_copy_attr attr = {0};
    struct eti_step *s =
        eti_ir_add_step(ir, et_op_get(ET_OP_copy), &attr, sizeof attr, 1, 1);
    if (!s)
        return NULL;
    s->in[0] = from;
    s->out[0] = to;
    return s;
}

/* An assignment becomes a copy into the leaf; place.c makes most of them vanish. A
 * value that is itself a leaf is read before the commit, so that two leaves can be
 * exchanged. */
static void
lower_assign(struct eti_ir *ir, const struct eti_assignment *a)
{
    int leaf = (int)a->leaf->plan_id, value = eti_value_of(a->value);
    if (ir->value[ir->value[value].root].leaf >= 0) {
        int copy = eti_ir_add_value(ir, &ir->value[leaf].desc, ir->n_steps);
        if (ir->failed || !add_copy(ir, value, copy))
            return;
        value = copy;
    }
    struct eti_step *s = add_copy(ir, value, leaf);
    if (s)
        s->commit = true;
}

/* Same storage? Then the relative place matters to what may run in place. */
static void
hash_binding(XXH3_state_t *h, const struct eti_ir *ir, int i)
{
    const struct et_tensor *t = ir->binding[i];
    int64_t alias[2] = {-1, 0};
    for (int j = 0; j < i && eti_has_storage(ir->g, t); j++)
        if (ir->binding[j]->storage == t->storage) {
            alias[0] = j;
            alias[1] = t->offset - ir->binding[j]->offset;
            break;
        }
    XXH3_128bits_update(h, &t->desc, sizeof t->desc);
    XXH3_128bits_update(h, alias, sizeof alias);
}

/* What no step says: of a view what it shows of its root, and what is asked for. */
static void
hash_value(XXH3_state_t *h, const struct eti_ir *ir, int i)
{
    const struct eti_value *v = &ir->value[i];
    int64_t view[3] = {v->root, v->offset, v->wanted};
    XXH3_128bits_update(h, view, sizeof view);
    if (v->root != i)
        XXH3_128bits_update(h, &v->desc, sizeof v->desc);
}

static void
sign(struct eti_ir *ir)
{
    XXH3_state_t h;
    XXH3_128bits_reset(&h);
    for (int i = 0; i < ir->n_bindings; i++)
        hash_binding(&h, ir, i);
    for (int i = 0; i < ir->n_values; i++)
        if (ir->value[i].leaf < 0)
            hash_value(&h, ir, i);
    for (int i = 0; i < ir->n_steps; i++) {
        const struct eti_step *s = &ir->step[i];
        int head[3] = {(int)s->op->id, s->n_in, s->n_out};
        XXH3_128bits_update(&h, head, sizeof head);
        XXH3_128bits_update(&h, s->attr, s->attr_size);
        XXH3_128bits_update(&h, s->in, (size_t)(s->n_in + s->n_out) * sizeof *s->in);
    }
    XXH128_hash_t key = XXH3_128bits_digest(&h);
    ir->key[0] = key.low64;
    ir->key[1] = key.high64;
}

et_status
eti_lower(struct et_graph *g, struct et_tensor *const *want, int n, struct eti_ir *ir)
{
    ir->g = g;
    ir->arena = &g->scratch;
    ir->n_values = ir->n_steps = ir->n_bindings = 0;
    ir->failed = false;
    ir->freed = NULL;
    ET_TRY(mark_reachable(g, want, n));
    bind_all(ir);
    if (ir->freed)
        return eti_unusable(g, "et_eval", "a leaf that it reads", ir->freed);
    ir->n_nodes = 0;
    for (int id = 0; id < g->n_nodes && !ir->failed; id++)
        if (priv(g->node[id])->mark == g->walk) {
            lower_node(ir, g->node[id]);
            ir->n_nodes++;
        }
    for (int i = 0; i < n && !ir->failed; i++)
        if (want[i] && !is_binding(want[i])) {
            struct eti_value *v = &ir->value[eti_value_of(want[i])];
            ir->value[v->root].wanted = true;
        }
    for (int i = 0; i < g->n_assign && !ir->failed; i++)
        lower_assign(ir, &g->assign[i]);
    if (ir->failed)
        return ET_ENOMEM;
    sign(ir);
    return ET_OK;
}
