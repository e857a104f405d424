/* SPDX-License-Identifier: Apache-2.0 */
/* inputs.c: see inputs.h. */
#include "config.h"

#include "core/graph/inputs.h"

enum {
    ALIGN = 256,  /* a copy is aligned as the leaf is, up to this */
    EACH_RUN = 2, /* moves in a row after which a leaf is taken to move at each run */
    /* What may be copied for each kernel that need not be launched. A launch takes the
     * host 2 to 3 us; a GPU that moves 4 TB/s copies 4 MiB, read and written, in 2
     * us. */
    BYTES_PER_KERNEL = 4 << 20,
};

et_status
eti_inputs_new(struct et_ctx *cx, int n, struct eti_inputs *in)
{
    void *block;
    ET_TRY(et_alloc(cx, (size_t)(n + 1) * sizeof *in->v, &block));
    *in = (struct eti_inputs){.v = block, .n = n};
    return ET_OK;
}

/* Bytes of the memory that I's copy lies in. */
static size_t
room_for(const struct eti_input *i)
{
    return i->end - i->begin / ALIGN * ALIGN;
}

void
eti_inputs_free(struct et_graph *g, struct eti_inputs *in)
{
    for (int i = 0; i < in->n; i++)
        eti_device_free(g->dev, in->v[i].copy, room_for(&in->v[i]));
    et_free(g->cx, in->v);
    *in = (struct eti_inputs){0};
}

void
eti_inputs_note(struct eti_inputs *in, int i, size_t begin, size_t end, bool writes)
{
    struct eti_input *v = &in->v[i];
    v->written |= writes;
    if (begin == end)
        return;
    if (v->end == 0 || begin < v->begin)
        v->begin = begin;
    if (end > v->end)
        v->end = end;
}

bool
eti_inputs_look(struct eti_inputs *in, const struct eti_ir *ir)
{
    bool changed = false;
    for (int i = 0; i < in->n; i++) {
        struct eti_input *v = &in->v[i];
        void *leaf = et_tensor_data(ir->binding[i]);
        bool moved = leaf != v->leaf;
        v->moves = moved && v->leaf ? v->moves + 1 : 0;
        v->leaf = leaf;
        changed |= moved && !v->copy;
    }
    return changed;
}

void *
eti_input_address(const struct eti_inputs *in, int i, size_t offset)
{
    const struct eti_input *v = &in->v[i];
    return v->copy ? v->copy + (offset - v->begin / ALIGN * ALIGN)
                   : (char *)v->leaf + offset;
}

/* Is V's leaf elsewhere than at the last run, and do kernels know it? */
static bool
has_moved(const struct eti_input *v)
{
    return v->moves > 0 && v->end > 0 && !v->copy;
}

bool
eti_inputs_settle(struct et_graph *g, struct eti_inputs *in, int64_t kernels)
{
    size_t bytes = in->copied_bytes;
    bool given = false;
    if (in->refused)
        return false;
    for (int i = 0; i < in->n; i++) {
        const struct eti_input *v = &in->v[i];
        if (!has_moved(v))
            continue;
        if (v->written || v->moves < EACH_RUN)
            return false;
        bytes += v->end - v->begin;
    }
    if (bytes > (size_t)kernels * BYTES_PER_KERNEL)
        return false;
    for (int i = 0; i < in->n; i++) {
        struct eti_input *v = &in->v[i];
        void *block;
        if (!has_moved(v))
            continue;
        if (eti_device_alloc(g->cx, g->dev, room_for(v), &block) != ET_OK) {
            et_error_clear(g->cx);
            in->refused = true;
            break;
        }
        v->copy = block;
        given = true;
        in->copied_bytes += v->end - v->begin;
    }
    return given;
}

et_status
eti_inputs_copy(struct et_graph *g, const struct eti_inputs *in)
{
    const struct et_device_table *t = g->dev->table;
    for (int i = 0; i < in->n && in->copied_bytes > 0; i++) {
        const struct eti_input *v = &in->v[i];
        if (!v->copy)
            continue;
        et_status status = t->copy(g->dev->handle, eti_input_address(in, i, v->begin),
                                   (char *)v->leaf + v->begin, v->end - v->begin, NULL);
        ET_TRY(eti_device_check(g->dev, status, "the copy of an input"));
    }
    return ET_OK;
}
