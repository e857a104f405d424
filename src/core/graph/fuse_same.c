/* SPDX-License-Identifier: Apache-2.0 */
/* fuse_same.c: what is asked for twice is computed once.
 *
 * Two steps with the same operation, attributes and operands give the same results, so
 * whoever reads the second is given the first. A loss and the metric of the same name
 * are such a pair: without this a language model's logits, its largest array, were read
 * once more for the metric.
 *
 * Results that are at least as large as what they are made of stay apart: they would
 * have to be kept from the first reader to the last, and cost no more to make than to
 * keep. */
#include "config.h"

#define XXH_INLINE_ALL
#include <string.h>
#include <xxhash.h>

#include "core/graph/passes.h"

static uint64_t
hash_step(const struct eti_ir *ir, const struct eti_step *s)
{
    XXH3_state_t h;
    int head[2] = {(int)s->op->id, s->n_in};
    XXH3_64bits_reset(&h);
    XXH3_64bits_update(&h, head, sizeof head);
    XXH3_64bits_update(&h, s->attr, s->attr_size);
    for (int i = 0; i < s->n_in; i++) {
        const struct eti_value *v = s->in[i] < 0 ? NULL : &ir->value[s->in[i]];
        int64_t where[2] = {v ? v->root : -1, v ? v->offset : 0};
        XXH3_64bits_update(&h, where, sizeof where);
    }
    return XXH3_64bits_digest(&h);
}

static bool
is_same_step(const struct eti_ir *ir, const struct eti_step *a,
             const struct eti_step *b)
{
    if (a->op != b->op || a->n_in != b->n_in || a->n_out != b->n_out ||
        a->attr_size != b->attr_size || memcmp(a->attr, b->attr, a->attr_size) != 0)
        return false;
    for (int i = 0; i < a->n_in; i++)
        if (!eti_ir_same_value(ir, a->in[i], b->in[i]))
            return false;
    return true;
}

static size_t
bytes_of(const struct eti_ir *ir, const int *value, int n)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        if (value[i] >= 0)
            bytes += et_desc_bytes(&ir->value[value[i]].desc);
    return bytes;
}

/* May another step stand for S? Its results are made from its operands alone. */
static bool
may_merge(const struct eti_ir *ir, const struct eti_step *s)
{
    return s->op && !s->commit && !(s->op->flags & ET_OPF_EFFECT) &&
           s->op->id != ET_OP_all_reduce &&
           bytes_of(ir, s->out, s->n_out) < bytes_of(ir, s->in, s->n_in);
}

/* S goes; FIRST has its results, also those that only S's readers want. INSTEAD[v]: the
 * value that readers of v are given. */
static void
merge(struct eti_ir *ir, struct eti_step *s, struct eti_step *first, int *instead)
{
    for (int i = 0; i < s->n_out; i++) {
        if (s->out[i] < 0)
            continue;
        if (first->out[i] < 0) {
            first->out[i] = s->out[i];
            ir->value[s->out[i]].producer = (int)(first - ir->step);
            continue;
        }
        instead[s->out[i]] = first->out[i];
        ir->value[first->out[i]].wanted |= ir->value[s->out[i]].wanted;
    }
    s->op = NULL;
}

/* Views of values that have gone are of those that stand for them. */
static void
follow(struct eti_ir *ir, const int *instead)
{
    for (int v = 0; v < ir->n_values; v++) {
        struct eti_value *x = &ir->value[v];
        x->root = instead[x->root];
        x->producer = ir->value[x->root].producer;
    }
}

void
eti_fuse_same(struct eti_ir *ir)
{
    int size = 16;
    while (size < 2 * ir->n_steps)
        size *= 2;
    int *slot = eti_arena_alloc(ir->arena, (size_t)size * sizeof *slot);
    int *instead =
        eti_arena_alloc(ir->arena, (size_t)(ir->n_values + 1) * sizeof *instead);
    if (!slot || !instead) {
        ir->failed = true;
        return;
    }
    for (int v = 0; v < ir->n_values; v++)
        instead[v] = v;
    for (int i = 0; i < ir->n_steps; i++) {
        struct eti_step *s = &ir->step[i];
        for (int j = 0; j < s->n_in; j++)
            if (s->in[j] >= 0)
                s->in[j] = instead[s->in[j]];
        if (!may_merge(ir, s))
            continue;
        unsigned at = (unsigned)hash_step(ir, s) & (unsigned)(size - 1);
        while (slot[at] && !is_same_step(ir, &ir->step[slot[at] - 1], s))
            at = (at + 1) & (unsigned)(size - 1);
        if (!slot[at]) {
            slot[at] = i + 1;
            continue;
        }
        merge(ir, s, &ir->step[slot[at] - 1], instead);
        follow(ir, instead);
    }
}
