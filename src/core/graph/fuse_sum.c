/* SPDX-License-Identifier: Apache-2.0 */
/* fuse_sum.c: what is added to a flat leaf is added part by part.
 *
 *   s <- s + pack(a, b, ...)    becomes    s <- pack(s_a + a, s_b + b, ...)
 *
 * with s_a the stretch of s where a goes. Each sum is computed in the leaf, behind the
 * kernel that makes its part: a part does not wait for the others, nor does an array of
 * all of them take memory. What lies between parts is packed from the leaf, where it
 * stays. With k microbatches this is how gradients add up; the numbers are those of the
 * flat arrays' sum.
 *
 * Shapes: s [total]; a part of n elements goes to s[offset, offset + n), in the order
 * in which it lies in memory. */
#include "config.h"

#include <string.h>

#include "core/graph/graph_impl.h"
#include "core/graph/passes.h"

struct sums {
    struct eti_ir *ir;
    int add, pack, leaf; /* steps; the leaf's value */
    struct et_pack_attr *attr;
    int *value, n;        /* what the new pack reads: sums, and stretches without one */
    struct eti_step *sum; /* to be put behind steps AFTER */
    int *after, n_sums;
};

/* COMMIT writes s + pack(...) into s, and nobody else reads either of the two. */
static bool
find(struct sums *f, const int *uses, const struct eti_step *commit)
{
    const struct eti_ir *ir = f->ir;
    int whole = commit->in[0];
    f->leaf = commit->out[0];
    f->add = eti_ir_made_alone(ir, uses, whole, ET_OP_add);
    if (f->add < 0)
        return false;
    const int *in = ir->step[f->add].in;
    int flat = in[in[0] == f->leaf];
    f->pack = eti_ir_made_alone(ir, uses, flat, ET_OP_pack);
    const struct et_desc *d = &ir->value[f->leaf].desc;
    return in[in[0] != f->leaf] == f->leaf && f->pack >= 0 && d->ndim == 1 &&
           d->stride[0] == 1 && et_desc_equal(&ir->value[whole].desc, d) &&
           et_desc_equal(&ir->value[flat].desc, d);
}

static bool
is_part(const struct eti_ir *ir, const struct eti_step *pack, int i)
{
    return pack->in[i] >= 0 && et_desc_count(&ir->value[pack->in[i]].desc) > 0;
}

/* Has the new pack, each part with a stretch before it, room? */
static bool
make_room(struct sums *f)
{
    struct eti_arena *arena = f->ir->arena;
    size_t n = 2 * (size_t)f->ir->step[f->pack].n_in + 1;
    f->attr = eti_arena_alloc(arena, sizeof *f->attr + n * sizeof f->attr->offset[0]);
    f->value = eti_arena_alloc(arena, (n + 1) * sizeof *f->value);
    f->sum = eti_arena_alloc(arena, n * sizeof *f->sum);
    f->after = eti_arena_alloc(arena, n * sizeof *f->after);
    f->n = f->n_sums = 0;
    f->ir->failed |= !f->attr || !f->value || !f->sum || !f->after;
    return !f->ir->failed;
}

/* The part of the leaf that begins at OFFSET, described by D. */
static int
stretch(struct sums *f, int64_t offset, const struct et_desc *d)
{
    int view = eti_ir_add_value(f->ir, d, -1);
    if (!f->ir->failed) {
        f->ir->value[view].root = f->leaf;
        f->ir->value[view].offset = offset;
    }
    return view;
}

static void
take(struct sums *f, int value, int64_t offset)
{
    f->value[f->n] = value;
    f->attr->offset[f->n++] = offset;
}

static void
take_gap(struct sums *f, int64_t begin, int64_t end)
{
    struct et_desc d;
    int64_t n = end - begin;
    et_desc_init(&d, f->ir->value[f->leaf].desc.dtype, 1, &n, ET_ROW_MAJOR);
    if (n > 0)
        take(f, stretch(f, begin, &d), begin);
}

/* PART plus what the leaf has at OFFSET. */
static void
take_sum(struct sums *f, int part, int64_t offset)
{
    struct eti_ir *ir = f->ir;
    const struct et_desc desc = ir->value[part].desc;
    int *ids = eti_arena_alloc(ir->arena, 3 * sizeof *ids);
    if (!ids) {
        ir->failed = true;
        return;
    }
    ids[0] = stretch(f, offset, &desc);
    ids[1] = part;
    ids[2] = eti_ir_add_value(ir, &desc, -1);
    f->sum[f->n_sums] = (struct eti_step){
        .op = et_op_get(ET_OP_add), .n_in = 2, .n_out = 1, .in = ids, .out = ids + 2};
    f->after[f->n_sums++] = eti_ir_producer(ir, part);
    take(f, ids[2], offset);
}

/* The part that begins first, from element BEGIN on; -1: none. */
static int
next_part(const struct eti_ir *ir, const struct eti_step *pack, int64_t begin)
{
    const struct et_pack_attr *o = pack->attr;
    int best = -1;
    for (int i = 0; i < pack->n_in; i++)
        if (is_part(ir, pack, i) && o->offset[i] >= begin &&
            (best < 0 || o->offset[i] < o->offset[best]))
            best = i;
    return best;
}

/* False where parts overlap: of a pack the last one is seen, of sums all are. */
static bool
take_parts(struct sums *f)
{
    struct eti_ir *ir = f->ir;
    const struct eti_step pack = ir->step[f->pack];
    const struct et_pack_attr *o = pack.attr;
    int64_t end = 0;
    int parts = 0;
    for (int i = next_part(ir, &pack, 0); i >= 0; i = next_part(ir, &pack, end)) {
        take_gap(f, end, o->offset[i]);
        take_sum(f, pack.in[i], o->offset[i]);
        if (ir->failed)
            return false;
        end = o->offset[i] + et_desc_count(&ir->value[pack.in[i]].desc);
    }
    take_gap(f, end, o->total);
    f->attr->total = o->total;
    for (int i = 0; i < pack.n_in; i++)
        parts += is_part(ir, &pack, i);
    return parts == f->n_sums && !ir->failed;
}

/* The pack of sums takes the place of the sum of arrays. */
static void
replace(struct sums *f)
{
    struct eti_step *s = &f->ir->step[f->add];
    f->value[f->n] = s->out[0];
    *s = (struct eti_step){
        .op = et_op_get(ET_OP_pack),
        .attr = f->attr,
        .attr_size = sizeof *f->attr + (size_t)f->n * sizeof f->attr->offset[0],
        .n_in = f->n,
        .n_out = 1,
        .in = f->value,
        .out = f->value + f->n,
    };
    f->ir->step[f->pack].op = NULL;
}

/* The steps anew, each sum behind the one that makes its part. */
static void
insert(struct sums *f)
{
    struct eti_ir *ir = f->ir;
    int n = ir->n_steps, at = 0;
    struct eti_step *old = eti_arena_alloc(ir->arena, (size_t)n * sizeof *old);
    int *moved = eti_arena_alloc(ir->arena, (size_t)n * sizeof *moved);
    if (!old || !moved ||
        eti_grow(ir->g->cx, &ir->step, &ir->cap_steps, n + f->n_sums,
                 sizeof *ir->step) != ET_OK) {
        ir->failed = true;
        return;
    }
    memcpy(old, ir->step, (size_t)n * sizeof *old);
    for (int i = -1; i < n; i++) {
        if (i >= 0) {
            moved[i] = at;
            ir->step[at++] = old[i];
        }
        for (int k = 0; k < f->n_sums; k++)
            if (f->after[k] == i)
                ir->step[at++] = f->sum[k];
    }
    ir->n_steps = at;
    for (int i = 0; i < ir->n_values; i++)
        if (ir->value[i].producer >= 0)
            ir->value[i].producer = moved[ir->value[i].producer];
    for (int i = 0; i < at; i++)
        if (eti_ir_is(ir, i, ET_OP_add))
            ir->value[ir->step[i].out[0]].producer = i;
}

void
eti_fuse_sum(struct eti_ir *ir)
{
    struct sums f = {.ir = ir};
    for (int i = 0; i < ir->n_steps && !ir->failed; i++) {
        const struct eti_step *s = &ir->step[i];
        if (!s->op || !s->commit)
            continue;
        const int *uses = eti_ir_count_uses(ir);
        if (!uses || !find(&f, uses, s) || !make_room(&f) || !take_parts(&f))
            continue;
        replace(&f);
        insert(&f);
        i += f.n_sums; /* all of them lie before a commit */
    }
}
