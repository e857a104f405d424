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

int
eti_ir_add_value(struct eti_ir *ir, const struct et_desc *desc, int producer)
{
    const struct et_desc own = *desc; /* DESC may lie in the array that grows */
    if (eti_grow(ir->g->cx, &ir->value, &ir->cap_values, ir->n_values + 1,
                 sizeof *ir->value) != ET_OK) {
        ir->failed = true;
        return 0;
    }
    int id = ir->n_values++;
    ir->value[id] = (struct eti_value){
        .desc = own,
        .root = id,
        .producer = producer,
        .leaf = -1,
        .into = -1,
        .first = -1,
        .last = -1,
    };
    return id;
}

struct eti_step *
eti_ir_add_step(struct eti_ir *ir, const struct et_op *op, const void *attr,
                size_t attr_size, int n_in, int n_out)
{
    int *ids = eti_arena_alloc(ir->arena, (size_t)(n_in + n_out + 1) * sizeof *ids);
    if (!ids || eti_grow(ir->g->cx, &ir->step, &ir->cap_steps, ir->n_steps + 1,
                         sizeof *ir->step) != ET_OK) {
        ir->failed = true;
        return NULL;
    }
    struct eti_step *s = &ir->step[ir->n_steps++];
    *s = (struct eti_step){
        .op = op,
        .attr = attr,
        .attr_size = attr_size,
        .n_in = n_in,
        .n_out = n_out,
        .in = ids,
        .out = ids + n_in,
    };
    return s;
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
    ET_TRY(mark_reachable(g, want, n));
    bind_all(ir);
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

int
eti_ir_made_by(const struct eti_ir *ir, int value, enum et_op_id id)
{
    if (value < 0 || ir->value[value].root != value)
        return -1;
    int step = ir->value[value].producer;
    return step >= 0 && ir->step[step].op && ir->step[step].op->id == id ? step : -1;
}

bool
eti_ir_same_value(const struct eti_ir *ir, int a, int b)
{
    if (a < 0 || b < 0 || a == b)
        return a == b;
    const struct eti_value *x = &ir->value[a], *y = &ir->value[b];
    return x->root == y->root && x->offset == y->offset &&
           et_desc_equal(&x->desc, &y->desc);
}

void
eti_ir_widen(struct eti_ir *ir, struct eti_step *s, int n_in, int n_out)
{
    n_in = n_in > s->n_in ? n_in : s->n_in;
    n_out = n_out > s->n_out ? n_out : s->n_out;
    int *ids = eti_arena_alloc(ir->arena, (size_t)(n_in + n_out) * sizeof *ids);
    if (!ids) {
        ir->failed = true;
        return;
    }
    for (int i = 0; i < n_in; i++)
        ids[i] = i < s->n_in ? s->in[i] : -1;
    for (int i = 0; i < n_out; i++)
        ids[n_in + i] = i < s->n_out ? s->out[i] : -1;
    s->in = ids;
    s->out = ids + n_in;
    s->n_in = n_in;
    s->n_out = n_out;
}

int *
eti_ir_count_uses(struct eti_ir *ir)
{
    int *uses = eti_arena_alloc(ir->arena, (size_t)(ir->n_values + 1) * sizeof *uses);
    if (!uses)
        return NULL;
    for (int i = 0; i < ir->n_steps; i++) {
        const struct eti_step *s = &ir->step[i];
        for (int j = 0; s->op && j < s->n_in; j++)
            if (s->in[j] >= 0)
                uses[ir->value[s->in[j]].root]++;
    }
    for (int i = 0; i < ir->n_values; i++)
        if (ir->value[i].wanted)
            uses[ir->value[i].root]++;
    return uses;
}

void
eti_remove_dead(struct eti_ir *ir)
{
    int *uses = eti_ir_count_uses(ir);
    if (!uses)
        return;
    for (int i = ir->n_steps - 1; i >= 0; i--) {
        struct eti_step *s = &ir->step[i];
        if (!s->op || s->commit)
            continue;
        bool live = (s->op->flags & ET_OPF_EFFECT) != 0;
        for (int j = 0; j < s->n_out; j++) {
            if (s->out[j] >= 0 && uses[s->out[j]] == 0)
                s->out[j] = -1;
            live |= s->out[j] >= 0;
        }
        if (live)
            continue;
        for (int j = 0; j < s->n_in; j++)
            if (s->in[j] >= 0)
                uses[ir->value[s->in[j]].root]--;
        s->op = NULL;
    }
}

enum { BEGUN = 1, EMITTED };

static void
emit(struct eti_ir *ir, int i, int *done, int *order, int *n)
{
    ir->cyclic = ir->cyclic || done[i] == BEGUN;
    if (done[i])
        return;
    done[i] = BEGUN;
    const struct eti_step *s = &ir->step[i];
    for (int j = 0; j < s->n_in; j++) {
        int producer = s->in[j] < 0 ? -1 : ir->value[ir->value[s->in[j]].root].producer;
        if (producer >= 0 && ir->step[producer].op)
            emit(ir, producer, done, order, n);
    }
    done[i] = EMITTED;
    order[(*n)++] = i;
}

/* The first all_reduce from step FROM on; n_steps: no step is one. */
static int
next_collective(const struct eti_ir *ir, int from)
{
    int i = from;
    while (i < ir->n_steps &&
           !(ir->step[i].op && ir->step[i].op->id == ET_OP_all_reduce))
        i++;
    return i;
}

/* All that VALUE is made of is there, or only to be put together. */
static bool
is_there(const struct eti_ir *ir, int value, const int *done)
{
    int from = value < 0 ? -1 : ir->value[ir->value[value].root].producer;
    if (from < 0 || !ir->step[from].op || done[from])
        return true;
    const struct eti_step *s = &ir->step[from];
    bool there = s->op->id == ET_OP_pack || s->op->id == ET_OP_copy;
    for (int j = 0; j < s->n_in && there; j++)
        there = is_there(ir, s->in[j], done);
    return there;
}

/* Collectives come in the order in which they were built, which is the same on all
 * ranks, and as early as that allows: what is left of the backward pass goes on beside
 * them. */
static bool
is_ready(const struct eti_ir *ir, int collective, const int *done)
{
    const struct eti_step *s = &ir->step[collective];
    for (int j = 0; j < s->n_in; j++)
        if (!is_there(ir, s->in[j], done))
            return false;
    return true;
}

void
eti_sort(struct eti_ir *ir)
{
    int n = 0, count = ir->n_steps;
    int *done = eti_arena_alloc(ir->arena, (size_t)(count + 1) * sizeof *done);
    int *order = eti_arena_alloc(ir->arena, (size_t)(count + 1) * sizeof *order);
    struct eti_step *sorted =
        eti_arena_alloc(ir->arena, (size_t)(count + 1) * sizeof *sorted);
    if (!done || !order || !sorted) {
        ir->failed = true;
        return;
    }
    int collective = next_collective(ir, 0);
    for (int commit = 0; commit < 2; commit++)
        for (int i = 0; i < count; i++) {
            if (!ir->step[i].op || ir->step[i].commit != commit)
                continue;
            emit(ir, i, done, order, &n);
            for (; collective < count && is_ready(ir, collective, done);
                 collective = next_collective(ir, collective + 1))
                emit(ir, collective, done, order, &n);
        }
    for (int i = 0; i < n; i++)
        sorted[i] = ir->step[order[i]];
    if (n > 0) /* a plan of leaves alone has no steps, nor room for any */
        memcpy(ir->step, sorted, (size_t)n * sizeof *sorted);
    ir->n_steps = n;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < sorted[i].n_out && !sorted[i].commit; j++)
            if (sorted[i].out[j] >= 0)
                ir->value[sorted[i].out[j]].producer = i;
    for (int i = 0; i < ir->n_values; i++)
        ir->value[i].producer = ir->value[ir->value[i].root].producer;
}
