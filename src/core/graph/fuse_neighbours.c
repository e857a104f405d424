/* SPDX-License-Identifier: Apache-2.0 */
/* fuse_neighbours.c: leaves that lie side by side and are assigned by one formula are
 * assigned by one kernel.
 *
 *   a <- f(a, x)  b <- f(b, y)    becomes    ab <- f(ab, pack(x, y))
 *
 * Leaf b begins in the storage where leaf a ends, ab is the memory of both, and f is
 * made of element-wise steps. The running statistics of a network are such leaves: in
 * ResNet-50 there are 106, of 64 to 2048 elements. A pack costs nothing where kernels
 * can compute its parts in their places, and place.c computes ab in the leaves.
 *
 * Shapes: a [n], b [m], ab [n + m]; also dense arrays of more axes, as they lie. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "core/graph/graph_impl.h"
#include "core/graph/passes.h"

enum {
    SMALL = 1 << 14, /* elements; what is larger is worth a kernel of its own */
    MOST_NODES = 64, /* of a formula: operands read twice are looked at twice */
    OPERANDS = 3,    /* an element-wise step has at most */
};

/* An assignment to a small leaf. */
struct member {
    int storage; /* the first leaf in the same one */
    int64_t at;  /* in it */
    int64_t n;   /* elements */
    int value;
};

struct neighbours {
    struct eti_ir *ir;
    int n_old; /* values that there were at first: those after them are made here */
    int *into; /* per old value: the one that has taken it in; -1 */
    int64_t *into_at;
    struct eti_search search;
    bool *in_run; /* per step: it becomes part of one of the run's */
    /* The run: N members one behind the other, TOTAL elements. */
    const struct member *m;
    int n;
    int64_t total;
};

/* ---- are two formulas one? ---- */

enum kind {
    ODD,     /* fits no formula */
    ONE,     /* one element, for all of the result's */
    STRETCH, /* of a leaf, or of what this pass has made */
    STEP,    /* made by an element-wise step */
    PART,    /* made by any other, or wanted by the caller: it stays as it is */
};

/* VALUE, or what it is a view of all of, in the same order. */
static int
strip(const struct eti_ir *ir, int value)
{
    const struct eti_value *v = &ir->value[value];
    bool whole = v->offset == 0 && et_desc_equal(&v->desc, &ir->value[v->root].desc);
    return whole ? v->root : value;
}

/* What VALUE, which is stripped, is to a step with a result like WHOLE. */
static enum kind
kind_of(const struct neighbours *f, int value, const struct et_desc *whole)
{
    const struct eti_value *v = &f->ir->value[value], *root = &f->ir->value[v->root];
    if (et_desc_count(&v->desc) == 1 && et_desc_count(whole) > 1)
        return ONE;
    if (!eti_same_space(&v->desc, whole))
        return ODD;
    if (root->leaf >= 0 || v->root >= f->n_old)
        return STRETCH;
    int step = root->producer;
    if (v->root == value && !v->wanted && !f->ir->step[step].commit &&
        (f->ir->step[step].op->flags & ET_OPF_ELEMENTWISE))
        return STEP;
    return eti_is_f32_or_low(v->desc.dtype) ? PART : ODD;
}

/* Does B lie DISTANCE elements behind A? */
static bool
is_behind(const struct eti_ir *ir, int a, int b, int64_t distance)
{
    const struct eti_value *x = &ir->value[a], *y = &ir->value[b];
    if (x->root == y->root)
        return y->offset - x->offset == distance;
    int i = ir->value[x->root].leaf, j = ir->value[y->root].leaf;
    if (i < 0 || j < 0)
        return false;
    const struct et_tensor *s = ir->binding[i], *t = ir->binding[j];
    return eti_has_storage(ir->g, s) && s->storage == t->storage &&
           s->desc.dtype == t->desc.dtype &&
           t->offset + y->offset - s->offset - x->offset == distance;
}

static bool
is_same_operation(const struct eti_step *a, const struct eti_step *b)
{
    return a->op == b->op && a->n_in == b->n_in && a->n_in <= OPERANDS &&
           a->attr_size == b->attr_size &&
           (a->attr_size == 0 || memcmp(a->attr, b->attr, a->attr_size) == 0);
}

/* Are A and B, operands of steps with results like X and Y, made by one formula, of
 * operands of which those of B are to lie DISTANCE elements behind those of A? */
static bool
is_alike(const struct neighbours *f, int a, int b, int64_t distance,
         const struct et_desc *x, const struct et_desc *y, int *nodes)
{
    const struct eti_ir *ir = f->ir;
    if (a < 0 || b < 0)
        return a == b;
    a = strip(ir, a);
    b = strip(ir, b);
    enum kind kind = kind_of(f, a, x);
    if (kind != kind_of(f, b, y) || ++*nodes > MOST_NODES ||
        ir->value[a].desc.dtype != ir->value[b].desc.dtype)
        return false;
    if (kind == ONE)
        return eti_ir_same_value(ir, a, b);
    if (kind == STRETCH)
        return is_behind(ir, a, b, distance);
    if (kind == PART || kind == ODD)
        return kind == PART;
    const struct eti_step *s = &ir->step[ir->value[a].producer];
    const struct eti_step *t = &ir->step[ir->value[b].producer];
    bool alike = is_same_operation(s, t);
    for (int i = 0; alike && i < s->n_in; i++)
        alike = is_alike(f, s->in[i], t->in[i], distance, &ir->value[a].desc,
                         &ir->value[b].desc, nodes);
    return alike;
}

/* May member B follow A, and be computed as FIRST is? */
static bool
goes_on(const struct neighbours *f, const struct member *first, const struct member *a,
        const struct member *b)
{
    int nodes = 0;
    const struct et_desc *x = &f->ir->value[first->value].desc;
    return a->storage == b->storage && a->at + a->n == b->at &&
           kind_of(f, strip(f->ir, first->value), x) == STEP &&
           is_alike(f, first->value, b->value, b->at - first->at, x,
                    &f->ir->value[b->value].desc, &nodes);
}

/* ---- may they run as one? ---- */

/* The steps of the formula of VALUE, a step's result like WHOLE, run as one. */
static void
gather(struct neighbours *f, int value, const struct et_desc *whole, int *first)
{
    if (value < 0)
        return;
    value = strip(f->ir, value);
    int step = f->ir->value[value].producer;
    if (kind_of(f, value, whole) != STEP || f->in_run[step])
        return;
    f->in_run[step] = true;
    if (*first >= 0)
        eti_search_join(&f->search, *first, step);
    *first = step;
    for (int i = 0; i < f->ir->step[step].n_in; i++)
        gather(f, f->ir->step[step].in[i], &f->ir->value[value].desc, first);
}

/* Is VALUE, which a step of the run reads, there before the run? Those that the run
 * makes are not, and it may read them as wholes alone. */
static bool
is_there(struct neighbours *f, int value)
{
    int from = eti_ir_producer(f->ir, value);
    if (from >= 0 && f->in_run[from])
        return strip(f->ir, value) == f->ir->value[value].root;
    return from < 0 || !eti_search_finds(&f->search, from);
}

/* Does nothing that they read from others wait for one of them? */
static bool
may_run(struct neighbours *f)
{
    const struct eti_ir *ir = f->ir;
    int first = -1;
    memset(f->in_run, 0, (size_t)ir->n_steps * sizeof *f->in_run);
    for (int i = 0; i < f->n; i++)
        gather(f, f->m[i].value, &ir->value[f->m[i].value].desc, &first);
    eti_search_for(&f->search, first);
    for (int k = 0; k < ir->n_steps; k++)
        for (int i = 0; f->in_run[k] && i < ir->step[k].n_in; i++)
            if (!is_there(f, ir->step[k].in[i]))
                return false;
    return true;
}

/* ---- making one of them ---- */

/* TOTAL elements of DTYPE, made by the step that is added next. */
static int
new_value(struct neighbours *f, enum et_dtype dtype)
{
    struct et_desc d;
    et_desc_init(&d, dtype, 1, &f->total, ET_ROW_MAJOR);
    return eti_ir_add_value(f->ir, &d, f->ir->n_steps);
}

/* The memory from FIRST on, the first member's operand: a value itself where it is all
 * of that. */
static int
whole_stretch(struct neighbours *f, int first)
{
    struct eti_ir *ir = f->ir;
    int root = ir->value[first].root;
    if (root >= f->n_old && ir->value[first].offset == 0 &&
        et_desc_count(&ir->value[root].desc) == f->total)
        return root;
    int value = new_value(f, ir->value[first].desc.dtype);
    if (ir->failed)
        return 0;
    ir->value[value].root = root;
    ir->value[value].offset = ir->value[first].offset;
    ir->value[value].producer = ir->value[root].producer;
    return value;
}

static int
pack(struct neighbours *f, const int *part)
{
    struct eti_ir *ir = f->ir;
    size_t size = sizeof(struct et_pack_attr) + (size_t)f->n * sizeof(int64_t);
    struct et_pack_attr *attr = eti_arena_alloc(ir->arena, size);
    int value = new_value(f, ir->value[part[0]].desc.dtype);
    struct eti_step *s =
        eti_ir_add_step(ir, et_op_get(ET_OP_pack), attr, size, f->n, 1);
    if (!attr || !s || ir->failed) {
        ir->failed = true;
        return 0;
    }
    attr->total = f->total;
    for (int i = 0; i < f->n; i++) {
        attr->offset[i] = f->m[i].at - f->m[0].at;
        s->in[i] = part[i];
    }
    s->out[0] = value;
    return value;
}

/* What has taken in all of the N values; -1: nothing has. */
static int
taken_in(const struct neighbours *f, const int *value)
{
    int into = f->into[value[0]];
    for (int i = 1; i < f->n; i++)
        if (f->into[value[i]] != into)
            return -1;
    return into;
}

static int join(struct neighbours *f, const int *operand, const struct et_desc *whole);

/* One step for the N that make VALUE. */
static int
join_steps(struct neighbours *f, const int *value)
{
    struct eti_ir *ir = f->ir;
    const struct et_desc whole = ir->value[value[0]].desc;
    const struct eti_step first = ir->step[ir->value[value[0]].producer];
    int in[OPERANDS];
    int *operand = eti_arena_alloc(ir->arena, (size_t)f->n * sizeof *operand);
    ir->failed |= !operand;
    for (int k = 0; !ir->failed && k < first.n_in; k++) {
        for (int i = 0; i < f->n; i++)
            operand[i] = ir->step[ir->value[value[i]].producer].in[k];
        in[k] = join(f, operand, &whole);
    }
    int out = new_value(f, whole.dtype);
    struct eti_step *s =
        eti_ir_add_step(ir, first.op, first.attr, first.attr_size, first.n_in, 1);
    if (!s || ir->failed)
        return 0;
    s->part = first.part;
    memcpy(s->in, in, (size_t)first.n_in * sizeof *in);
    s->out[0] = out;
    for (int i = 0; i < f->n; i++) {
        f->into[value[i]] = out;
        f->into_at[value[i]] = f->m[i].at - f->m[0].at;
    }
    return out;
}

/* One value for OPERAND, of each member the same of a step with a result like WHOLE,
 * which is the first's. */
static int
join(struct neighbours *f, const int *operand, const struct et_desc *whole)
{
    struct eti_ir *ir = f->ir;
    int *value = eti_arena_alloc(ir->arena, (size_t)f->n * sizeof *value);
    if (!value || ir->failed) {
        ir->failed = true;
        return 0;
    }
    if (operand[0] < 0)
        return -1;
    for (int i = 0; i < f->n; i++)
        value[i] = strip(ir, operand[i]);
    switch (kind_of(f, value[0], whole)) {
    case STRETCH:
        return whole_stretch(f, value[0]);
    case PART:
        return pack(f, value);
    case STEP: {
        int into = taken_in(f, value);
        return into >= 0 ? into : join_steps(f, value);
    }
    default:
        return value[0];
    }
}

/* What was taken in is a view of what took it in, and so are its views. */
static void
follow(struct neighbours *f)
{
    struct eti_ir *ir = f->ir;
    for (int v = 0; v < ir->n_values; v++) {
        struct eti_value *x = &ir->value[v];
        int root = x->root;
        if (root >= f->n_old || f->into[root] < 0)
            continue;
        x->root = f->into[root];
        x->offset += f->into_at[root];
        x->producer = ir->value[x->root].producer;
    }
}

/* The N assignments from M on are of one formula, side by side. */
static void
fuse(struct neighbours *f, const struct member *m, int n)
{
    struct eti_ir *ir = f->ir;
    int n_steps = ir->n_steps;
    int *value = eti_arena_alloc(ir->arena, (size_t)n * sizeof *value);
    f->in_run = eti_arena_alloc(ir->arena, (size_t)n_steps * sizeof *f->in_run);
    f->m = m;
    f->n = n;
    f->total = m[n - 1].at + m[n - 1].n - m[0].at;
    if (!value || !f->in_run || !eti_search_new(ir, &f->search)) {
        ir->failed = true;
        return;
    }
    if (!may_run(f))
        return;
    for (int i = 0; i < n; i++)
        value[i] = strip(ir, m[i].value);
    join_steps(f, value);
    for (int i = 0; i < n_steps; i++)
        if (f->in_run[i])
            ir->step[i].op = NULL;
    if (!ir->failed)
        follow(f);
}

/* ---- which there are ---- */

static int
by_place(const void *x, const void *y)
{
    const struct member *a = x, *b = y;
    if (a->storage != b->storage)
        return a->storage - b->storage;
    return (a->at > b->at) - (a->at < b->at);
}

static int
first_in_storage(const struct eti_ir *ir, int leaf)
{
    int i = 0;
    while (ir->binding[i]->storage != ir->binding[leaf]->storage)
        i++;
    return i;
}

/* Lists assignments to small leaves that are dense. */
static int
list(const struct eti_ir *ir, struct member *m)
{
    int n = 0;
    for (int i = 0; i < ir->n_steps; i++) {
        const struct eti_step *s = &ir->step[i];
        if (!s->op || !s->commit)
            continue;
        int leaf = ir->value[s->out[0]].leaf;
        const struct et_tensor *t = ir->binding[leaf];
        int64_t count = et_desc_count(&t->desc);
        if (eti_has_storage(ir->g, t) && count > 0 && count <= SMALL &&
            et_desc_is_dense(&t->desc) &&
            et_desc_equal(&t->desc, &ir->value[s->in[0]].desc))
            m[n++] =
                (struct member){first_in_storage(ir, leaf), t->offset, count, s->in[0]};
    }
    qsort(m, (size_t)n, sizeof *m, by_place);
    return n;
}

void
eti_fuse_neighbours(struct eti_ir *ir)
{
    struct neighbours f = {.ir = ir, .n_old = ir->n_values};
    size_t n_values = (size_t)ir->n_values + 1;
    struct member *m =
        eti_arena_alloc(ir->arena, ((size_t)ir->n_steps + 1) * sizeof *m);
    f.into = eti_arena_alloc(ir->arena, n_values * sizeof *f.into);
    f.into_at = eti_arena_alloc(ir->arena, n_values * sizeof *f.into_at);
    if (!m || !f.into || !f.into_at) {
        ir->failed = true;
        return;
    }
    for (int v = 0; v < ir->n_values; v++)
        f.into[v] = -1;
    for (int n = list(ir, m), i = 0, end; i < n && !ir->failed; i = end) {
        end = i + 1;
        while (end < n && goes_on(&f, &m[i], &m[end - 1], &m[end]))
            end++;
        if (end - i > 1)
            fuse(&f, &m[i], end - i);
    }
}
