/* SPDX-License-Identifier: Apache-2.0 */
/* place.c: where every value of a plan lies.
 *
 *  1. An assignment's value is computed straight into the leaf where no step reads the
 *     old contents afterwards (an optimizer updates parameters in place). So is one
 *     whose parts are assigned to leaves that lie side by side as the parts do.
 *  2. The parts of a pack are computed straight into their slices of the flat array, so
 *     gradients are born in bucket order and never copied.
 *  3. The parts of a concatenation that kernels can write with gaps are computed inside
 *     it: the gradients of an attention's heads are side by side from the start.
 *     So is what a pad puts a border behind, such as the gradient of logits whose rows
 *     were padded: only the border is written then.
 *  4. Small constants lie beside the values asked for, where nothing overwrites them:
 * they are computed once for all of a plan's runs.
 *  5. An element-wise result takes the memory of an operand that dies there; so does
 *     dx of batch norm that of dy, which is in the cache when it is written. Where the
 *     result is a part of a pack, the operand is computed there: one of the two
 *     gradients of a tied weight, in the place of their sum.
 *  6. Everything else gets an offset in one slab: largest first, at the lowest place
 *     where no value alive at the same time lies (greedy by size).
 *
 * The slab's size is therefore known before anything runs. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "core/graph/graph_impl.h"

enum { SLAB_ALIGN = 256, CONSTANT_BYTES = 256 };

/* A value that is in the slab (ETI_IN_SLAB) is made by a step and asked for by nobody:
 * eti_place gives leaves, and what is asked for, other places first. */

static bool
is_elementwise(const struct eti_step *s)
{
    return (s->op->flags & ET_OPF_ELEMENTWISE) != 0;
}

static struct eti_value *
root_of(struct eti_ir *ir, int value)
{
    return &ir->value[ir->value[value].root];
}

/* Where a value lies, or is to lie, in a leaf: D, whose first element is number AT. */
struct spot {
    int leaf;
    int64_t at;
    const struct et_desc *d;
};

/* Elements from the first to the last. */
static int64_t
span(const struct et_desc *d)
{
    int64_t elements = 0;
    for (int i = 0; i < d->ndim; i++)
        elements += (d->shape[i] - 1) * d->stride[i];
    return elements;
}

/* Do elements between the first and the last of both share memory? */
static bool
overlap(const struct eti_ir *ir, const struct spot *a, const struct spot *b)
{
    const struct et_tensor *x = ir->binding[a->leaf], *y = ir->binding[b->leaf];
    if (a->leaf != b->leaf && (!eti_has_storage(ir->g, x) || x->storage != y->storage))
        return false;
    int64_t from_a = x->offset + a->at, from_b = y->offset + b->at;
    return from_a <= from_b + span(b->d) && from_b <= from_a + span(a->d);
}

/* Operand J of S, which lies at READ: is each element of it read no later than the
 * result, which is to lie at SPOT, is written there? */
static bool
reads_in_place(const struct eti_step *s, int j, const struct spot *read,
               const struct spot *spot)
{
    if (read->leaf != spot->leaf)
        return false;
    if (s->op->id == ET_OP_pack) /* it stays where it is */
        return read->at ==
                   spot->at + ((const struct et_pack_attr *)s->attr)->offset[j] &&
               et_desc_is_dense(read->d);
    return is_elementwise(s) && read->at == spot->at && et_desc_equal(read->d, spot->d);
}

/* Does S assign part of WHOLE to where it lies anyway if WHOLE begins where leaf FIRST
 * does? */
static bool
assigns_in_place(const struct eti_ir *ir, const struct eti_step *s, int whole,
                 int first)
{
    const struct eti_value *part = &ir->value[s->in[0]];
    const struct et_tensor *t = ir->binding[ir->value[s->out[0]].leaf];
    const struct et_tensor *base = ir->binding[first];
    return part->root == whole && eti_has_storage(ir->g, t) &&
           t->storage == base->storage && t->offset - base->offset == part->offset &&
           et_desc_is_dense(&t->desc) && et_desc_equal(&t->desc, &part->desc);
}

/* Does any step after PRODUCER, or PRODUCER itself other than in place, read or write
 * what SPOT covers? SELF is the assignment being looked at; or -1, and those of
 * WHOLE's parts in SPOT are. */
static bool
is_busy(const struct eti_ir *ir, const struct spot *spot, int producer, int self,
        int whole)
{
    for (int i = producer; i < ir->n_steps; i++) {
        const struct eti_step *s = &ir->step[i];
        for (int j = 0; j < s->n_in; j++) {
            if (s->in[j] < 0)
                continue;
            const struct eti_value *v = &ir->value[s->in[j]];
            const struct spot read = {ir->value[v->root].leaf, v->offset, &v->desc};
            if (read.leaf < 0 || !overlap(ir, &read, spot))
                continue;
            if (i != producer || !reads_in_place(s, j, &read, spot))
                return true;
        }
        if (!s->commit || i == self ||
            (whole >= 0 && assigns_in_place(ir, s, whole, spot->leaf)))
            continue;
        int leaf = ir->value[s->out[0]].leaf;
        const struct spot written = {leaf, 0, &ir->binding[leaf]->desc};
        if (overlap(ir, &written, spot))
            return true;
    }
    return false;
}

static void
place_in_leaves(struct eti_ir *ir)
{
    for (int i = 0; i < ir->n_steps; i++) {
        struct eti_step *s = &ir->step[i];
        if (!s->commit)
            continue;
        struct eti_value *v = &ir->value[s->in[0]];
        int leaf = ir->value[s->out[0]].leaf;
        const struct spot whole = {leaf, 0, &ir->binding[leaf]->desc};
        if (v->root != s->in[0] || v->place != ETI_IN_SLAB ||
            !et_desc_equal(&v->desc, whole.d) ||
            is_busy(ir, &whole, v->producer, i, -1))
            continue;
        v->place = ETI_IN_LEAF;
        v->into = leaf;
        s->op = NULL;
    }
}

/* Is every element of WHOLE assigned to where it lies if WHOLE begins where leaf FIRST
 * does? Then those assignments are done when it is computed there, and go if GONE. */
static bool
is_made_of_leaves(struct eti_ir *ir, int whole, int first, bool gone)
{
    int64_t at = 0, n = et_desc_count(&ir->value[whole].desc);
    for (int64_t count = 1; at < n && count > 0; at += count) {
        count = 0;
        for (int i = 0; i < ir->n_steps && count == 0; i++) {
            struct eti_step *s = &ir->step[i];
            if (!s->op || !s->commit || ir->value[s->in[0]].offset != at ||
                !assigns_in_place(ir, s, whole, first))
                continue;
            count = et_desc_count(&ir->value[s->in[0]].desc);
            if (gone)
                s->op = NULL;
        }
    }
    return at == n;
}

/* A value that is assigned in parts, to leaves that lie side by side as they do. */
static void
place_in_neighbours(struct eti_ir *ir)
{
    for (int i = 0; i < ir->n_steps; i++) {
        const struct eti_step *s = &ir->step[i];
        int whole = s->op && s->commit ? ir->value[s->in[0]].root : -1;
        struct eti_value *v = whole < 0 ? NULL : &ir->value[whole];
        if (!v || whole == s->in[0] || ir->value[s->in[0]].offset != 0 ||
            v->place != ETI_IN_SLAB || v->desc.ndim != 1 || v->desc.stride[0] != 1)
            continue;
        int first = ir->value[s->out[0]].leaf;
        const struct spot spot = {first, 0, &v->desc};
        if (!is_made_of_leaves(ir, whole, first, false) ||
            is_busy(ir, &spot, v->producer, -1, whole))
            continue;
        is_made_of_leaves(ir, whole, first, true);
        v->place = ETI_IN_LEAF;
        v->into = first;
    }
}

/* The assignment that FLAT, which lies in a leaf, was the value of; -1: none. */
static int
assignment_of(const struct eti_ir *ir, int flat)
{
    for (int i = 0; i < ir->n_steps; i++)
        if (ir->step[i].commit && !ir->step[i].op && ir->step[i].in[0] == flat)
            return i;
    return -1;
}

/* What is left of a pack: copies of parts that lie elsewhere, zeros in the gaps. */
static void
place_in_pack(struct eti_ir *ir, const struct eti_step *pack)
{
    const struct et_pack_attr *attr = pack->attr;
    int flat = pack->out[0], self = assignment_of(ir, flat);
    const struct eti_value *f = &ir->value[flat];
    for (int j = 0; j < pack->n_in; j++) {
        if (pack->in[j] < 0)
            continue;
        struct eti_value *v = &ir->value[pack->in[j]];
        const struct spot part = {f->into, attr->offset[j], &v->desc};
        if (v->root != pack->in[j] || v->place != ETI_IN_SLAB ||
            v->desc.dtype != f->desc.dtype || !et_desc_is_dense(&v->desc) ||
            /* A flat array that is a leaf is written from the first part on. */
            (f->place == ETI_IN_LEAF && is_busy(ir, &part, v->producer, self, -1)))
            continue;
        v->place = ETI_IN_VALUE;
        v->into = flat;
        v->into_offset = attr->offset[j];
    }
}

/* PART, an operand of a concatenation, is the whole of a dense result that nothing else
 * reads. Where it is INNER elements of each OUTER row, the strides that the result has
 * when a row of the concatenation is TOTAL elements long; false where there are
 * none. */
static bool
strides_inside(const struct eti_ir *ir, const int *uses, int part, int64_t inner,
               int64_t total, struct et_desc *desc)
{
    const struct eti_value *view = &ir->value[part], *v = &ir->value[view->root];
    if (v->place != ETI_IN_SLAB || uses[view->root] != 1 ||
        !(ir->step[v->producer].op->flags & ET_OPF_STRIDED) || view->offset != 0 ||
        !et_desc_is_dense(&v->desc) ||
        !et_desc_is_contiguous(&view->desc, ET_ROW_MAJOR) ||
        et_desc_count(&view->desc) != et_desc_count(&v->desc) || inner == 0)
        return false;
    *desc = v->desc;
    for (int i = 0; i < desc->ndim; i++) {
        int64_t stride = v->desc.stride[i], end = stride * v->desc.shape[i];
        if (v->desc.shape[i] == 1)
            continue;
        if (stride % inner == 0)
            desc->stride[i] = stride / inner * total;
        else if (inner % end != 0)
            return false;
    }
    return true;
}

static void
place_in_concat(struct eti_ir *ir, const int *uses, struct eti_step *s)
{
    const struct et_axis_attr *attr = s->attr;
    const struct eti_value *whole = &ir->value[s->out[0]];
    int64_t inner = 1, at = 0;
    struct et_desc desc;
    if (whole->place != ETI_IN_SLAB || et_desc_count(&whole->desc) == 0 ||
        !et_desc_is_contiguous(&whole->desc, ET_ROW_MAJOR))
        return;
    for (int i = attr->axis + 1; i < whole->desc.ndim; i++)
        inner *= whole->desc.shape[i];
    int64_t total = inner * whole->desc.shape[attr->axis];
    for (int pass = 0; pass < 2; pass++)
        for (int j = 0; j < s->n_in; j++) {
            int64_t row = inner * ir->value[s->in[j]].desc.shape[attr->axis];
            if (!strides_inside(ir, uses, s->in[j], row, total, &desc))
                return; /* in the first pass, or not at all */
            if (pass == 0)
                continue;
            struct eti_value *v = root_of(ir, s->in[j]);
            v->desc = desc;
            v->place = ETI_IN_VALUE;
            v->into = s->out[0];
            v->into_offset = at;
            at += row;
        }
    s->op = NULL;
}

/* What S, a pad, has before its operand: nothing but a border behind it on one axis. */
static void
place_in_pad(struct eti_ir *ir, const int *uses, const struct eti_step *s)
{
    const struct et_pad_attr *attr = s->attr;
    const struct eti_value *whole = &ir->value[s->out[0]];
    int64_t inner = 1;
    int axis = -1;
    struct et_desc desc;
    for (int i = 0; i < whole->desc.ndim; i++) {
        if (attr->before[i] != 0 || attr->after[i] < 0 || (attr->after[i] && axis >= 0))
            return;
        axis = attr->after[i] ? i : axis;
    }
    if (axis < 0 || whole->place != ETI_IN_SLAB || et_desc_count(&whole->desc) == 0 ||
        !et_desc_is_contiguous(&whole->desc, ET_ROW_MAJOR))
        return;
    for (int i = axis + 1; i < whole->desc.ndim; i++)
        inner *= whole->desc.shape[i];
    int64_t total = inner * whole->desc.shape[axis];
    if (!strides_inside(ir, uses, s->in[0], total - inner * attr->after[axis], total,
                        &desc))
        return;
    struct eti_value *v = root_of(ir, s->in[0]);
    v->desc = desc;
    v->place = ETI_IN_VALUE;
    v->into = s->out[0];
    v->into_offset = 0;
    /* The kernel finds its operand in its place, and leaves it there. */
    ir->value[s->in[0]].desc = whole->desc;
    ir->value[s->in[0]].desc.shape[axis] -= attr->after[axis];
}

static void
place_constants(struct eti_ir *ir)
{
    for (int i = 0; i < ir->n_steps; i++) {
        struct eti_step *s = &ir->step[i];
        if (!eti_ir_is(ir, i, ET_OP_fill) || s->out[0] < 0)
            continue;
        struct eti_value *v = &ir->value[s->out[0]];
        if (v->place != ETI_IN_SLAB || et_desc_bytes(&v->desc) > CONSTANT_BYTES)
            continue;
        v->place = ETI_IN_OUTPUT;
        s->once = true;
    }
}

static void
touch(struct eti_ir *ir, int value, int step)
{
    struct eti_value *v = root_of(ir, value);
    if (v->first < 0 || step < v->first)
        v->first = step;
    if (step > v->last)
        v->last = step;
}

/* A collective reads its operands until somebody waits for its result: memory that is
 * given to others before would make the plan wait at once. */
static void
find_late_reads(struct eti_ir *ir)
{
    for (int i = 0; i < ir->n_steps; i++) {
        const struct eti_step *s = &ir->step[i];
        for (int j = 0; s->op && j < s->n_in; j++) {
            int from = eti_ir_producer(ir, s->in[j]);
            if (from < 0 || !eti_ir_is(ir, from, ET_OP_all_reduce))
                continue;
            for (int k = 0; k < ir->step[from].n_in; k++)
                if (ir->step[from].in[k] >= 0)
                    touch(ir, ir->step[from].in[k], i);
        }
    }
}

static void
find_lifetimes(struct eti_ir *ir)
{
    for (int i = 0; i < ir->n_steps; i++) {
        const struct eti_step *s = &ir->step[i];
        for (int j = 0; s->op && j < s->n_in; j++)
            if (s->in[j] >= 0)
                touch(ir, s->in[j], i);
        for (int j = 0; s->op && j < s->n_out; j++)
            if (s->out[j] >= 0)
                touch(ir, s->out[j], i);
    }
    find_late_reads(ir);
    /* A flat array is alive while its parts are. */
    for (int i = 0; i < ir->n_values; i++) {
        struct eti_value *v = &ir->value[i];
        if (v->place == ETI_IN_VALUE && v->first >= 0) {
            touch(ir, v->into, v->first);
            touch(ir, v->into, v->last);
        }
    }
}

/* The value in whose memory VALUE lies: itself, or what it is a view or a part of. */
static int
owner_of(const struct eti_ir *ir, int value)
{
    int root = ir->value[value].root;
    while (ir->value[root].place == ETI_IN_VALUE)
        root = ir->value[ir->value[root].into].root;
    return root;
}

/* Another operand that looks at the same memory in another way would see it change. */
static bool
is_read_twice(const struct eti_ir *ir, const struct eti_step *s, int value)
{
    for (int j = 0; j < s->n_in; j++)
        if (s->in[j] >= 0 && s->in[j] != value && owner_of(ir, s->in[j]) == value)
            return true;
    return false;
}

/* Does operand J of step I, which is of D, lie in the slab and end there? */
static bool
ends_at(const struct eti_ir *ir, int i, int j, const struct et_desc *d)
{
    const struct eti_step *s = &ir->step[i];
    const struct eti_value *in = s->in[j] < 0 ? NULL : &ir->value[s->in[j]];
    /* Its memory, and that of whatever took it over, must end here. */
    return in && in->root == s->in[j] && in->place == ETI_IN_SLAB && in->last == i &&
           !is_read_twice(ir, s, s->in[j]) && et_desc_equal(&in->desc, d);
}

static void
place_in_operands(struct eti_ir *ir)
{
    for (int i = 0; i < ir->n_steps; i++) {
        const struct eti_step *s = &ir->step[i];
        int n_out = !s->op              ? 0
                    : is_elementwise(s) ? s->n_out
                                        : (s->op->flags & ET_OPF_IN_PLACE) != 0;
        for (int k = 0; k < n_out; k++) {
            struct eti_value *out = s->out[k] < 0 ? NULL : &ir->value[s->out[k]];
            if (!out || out->place != ETI_IN_SLAB)
                continue;
            for (int j = 0; j < (is_elementwise(s) ? s->n_in : 1); j++) {
                if (!ends_at(ir, i, j, &out->desc))
                    continue;
                out->place = ETI_IN_VALUE;
                out->into = s->in[j];
                out->into_offset = 0;
                ir->value[s->in[j]].last = out->last;
                break;
            }
        }
    }
}

/* From the last step on, so that an operand's own operand follows it. */
static void
place_before_packs(struct eti_ir *ir)
{
    for (int i = ir->n_steps - 1; i >= 0; i--) {
        const struct eti_step *s = &ir->step[i];
        if (!s->op || !is_elementwise(s) || s->n_out != 1 || s->out[0] < 0)
            continue;
        const struct eti_value *out = &ir->value[s->out[0]];
        if (out->place != ETI_IN_VALUE || out->root != s->out[0] ||
            eti_ir_made_by(ir, out->into, ET_OP_pack) < 0 ||
            ir->value[out->into].place != ETI_IN_SLAB)
            continue;
        for (int j = 0; j < s->n_in; j++) {
            if (!ends_at(ir, i, j, &out->desc))
                continue;
            struct eti_value *in = &ir->value[s->in[j]];
            in->place = ETI_IN_VALUE;
            in->into = out->into;
            in->into_offset = out->into_offset;
            touch(ir, in->into, in->first);
            break;
        }
    }
}

struct block {
    int value;
    size_t bytes;
};

static int
larger_first(const void *a, const void *b)
{
    const struct block *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->value - y->value;
}

/* The lowest offset where V overlaps none of the placed blocks alive with it. BY_OFFSET
 * holds the placed blocks in order of offset. */
static size_t
lowest_fit(const struct eti_ir *ir, const struct eti_value *v, const int *by_offset,
           int n)
{
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        const struct eti_value *p = &ir->value[by_offset[i]];
        if (p->last < v->first || v->last < p->first)
            continue;
        if (at + v->bytes <= p->at)
            break;
        if (p->at + p->bytes > at)
            at = p->at + p->bytes;
    }
    return at;
}

static et_status
place_in_slab(struct eti_ir *ir, size_t *slab, size_t *output)
{
    size_t room = (size_t)ir->n_values + 1;
    struct block *block = eti_arena_alloc(ir->arena, room * sizeof *block);
    int *by_offset = eti_arena_alloc(ir->arena, room * sizeof *by_offset);
    if (!block || !by_offset)
        return ET_ENOMEM;
    int n = 0;
    *slab = *output = 0;
    for (int i = 0; i < ir->n_values; i++) {
        struct eti_value *v = &ir->value[i];
        if (v->root != i || v->leaf >= 0 || v->first < 0)
            continue;
        size_t bytes = et_desc_bytes(&v->desc);
        v->bytes = (bytes + SLAB_ALIGN - 1) / SLAB_ALIGN * SLAB_ALIGN;
        if (v->place == ETI_IN_OUTPUT) {
            v->at = *output;
            *output += v->bytes;
        } else if (v->place == ETI_IN_SLAB) {
            block[n++] = (struct block){i, v->bytes};
        }
    }
    qsort(block, (size_t)n, sizeof *block, larger_first);
    for (int i = 0; i < n; i++) {
        struct eti_value *v = &ir->value[block[i].value];
        v->at = lowest_fit(ir, v, by_offset, i);
        int at = i;
        while (at > 0 && ir->value[by_offset[at - 1]].at > v->at) {
            by_offset[at] = by_offset[at - 1];
            at--;
        }
        by_offset[at] = block[i].value;
        if (v->at + v->bytes > *slab)
            *slab = v->at + v->bytes;
    }
    return ET_OK;
}

et_status
eti_place(struct eti_ir *ir, size_t *slab, size_t *output)
{
    for (int i = 0; i < ir->n_values; i++) {
        ir->value[i].first = ir->value[i].last = -1;
        if (ir->value[i].leaf >= 0) {
            ir->value[i].place = ETI_IN_LEAF;
            ir->value[i].into = ir->value[i].leaf;
        } else if (ir->value[i].root == i && ir->value[i].wanted) {
            ir->value[i].place = ETI_IN_OUTPUT;
        }
    }
    place_in_leaves(ir);
    place_in_neighbours(ir);
    for (int i = 0; i < ir->n_steps; i++)
        if (eti_ir_is(ir, i, ET_OP_pack))
            place_in_pack(ir, &ir->step[i]);
    int *uses = eti_ir_count_uses(ir);
    for (int i = 0; uses && i < ir->n_steps; i++)
        if (eti_ir_is(ir, i, ET_OP_concat))
            place_in_concat(ir, uses, &ir->step[i]);
    for (int i = 0; uses && i < ir->n_steps; i++)
        if (eti_ir_is(ir, i, ET_OP_pad))
            place_in_pad(ir, uses, &ir->step[i]);
    place_constants(ir);
    find_lifetimes(ir);
    place_before_packs(ir);
    place_in_operands(ir);
    return place_in_slab(ir, slab, output);
}
