/* SPDX-License-Identifier: Apache-2.0 */
/* stats.c: running statistics are part of a step's transaction.
 *
 * A model's buffers move with the forward pass, before anybody knows whether the
 * gradient is finite. Where a batch is one evaluation, what they are assigned becomes a
 * choice between that and what they are. Where it is several (microbatches, SAM), they
 * are copied before the batch, in device memory; the last evaluation chooses between
 * that copy and what they have become, and the host puts it back when the batch did not
 * fit. */
#include "config.h"

#include "core/graph/tensor.h"
#include "core/modules/leaves.h"
#include "core/trainer/part.h"

/* The model's buffers, and a copy of them from before the batch under way. */
struct stats {
    struct et_leaves leaves;
    struct et_tensor **copy; /* [leaves.n], in one storage; NULL: there are none */
    bool is_kept;            /* the copy is of before the batch under way */
};

/* Are these the buffers that have copies already? */
static bool
is_same(const struct et_leaves *a, const struct et_leaves *b)
{
    for (int i = 0; i < a->n && a->n == b->n; i++)
        if (a->v[i].param != b->v[i].param)
            return false;
    return a->n == b->n;
}

static void
release(struct eti_part *p)
{
    struct stats *own = p->own;
    for (int i = 0; own->copy && i < own->leaves.n; i++)
        et_tensor_free(&own->copy[i]);
    et_free(p->s->cx, own->copy);
    et_leaves_release(&own->leaves);
    *own = (struct stats){0};
}

static et_status
bind(struct eti_part *p)
{
    struct stats *own = p->own;
    struct et_state *s = p->s;
    struct et_leaves leaves;
    ET_TRY(et_module_leaves(s->cx, s->model->root, ET_BUFFER, &leaves));
    if (is_same(&own->leaves, &leaves)) {
        et_leaves_release(&leaves);
        return ET_OK;
    }
    release(p);
    own->leaves = leaves;
    s->surgeries++;
    if (!leaves.n)
        return ET_OK;
    void *block;
    ET_TRY(et_alloc(s->cx, (size_t)own->leaves.n * sizeof *own->copy, &block));
    own->copy = block;
    return eti_leaves_allocate(s->cx, s->dev, &leaves, "kept statistics", own->copy);
}

/* Do the buffers lie in their storage as the copies do in theirs? So they do until a
 * method brings some of its own. */
static bool
is_mirrored(const struct stats *own)
{
    const struct et_storage *storage = own->leaves.v[0].param->tensor->storage;
    bool mirrored = storage->bytes == own->copy[0]->storage->bytes;
    for (int i = 0; mirrored && i < own->leaves.n; i++) {
        const struct et_tensor *buffer = own->leaves.v[i].param->tensor;
        mirrored = buffer->storage == storage && buffer->offset == own->copy[i]->offset;
    }
    return mirrored;
}

static et_status
copy_all(struct eti_part *p, bool back)
{
    const struct stats *own = p->own;
    if (own->leaves.n > 0 && is_mirrored(own)) {
        const struct et_storage *data = own->leaves.v[0].param->tensor->storage;
        const struct et_storage *copy = own->copy[0]->storage;
        return eti_device_copy(p->s->dev, back ? data->data : copy->data,
                               back ? copy->data : data->data, data->bytes);
    }
    for (int i = 0; i < own->leaves.n; i++) {
        const struct et_tensor *buffer = own->leaves.v[i].param->tensor;
        void *data = et_tensor_data(buffer), *copy = et_tensor_data(own->copy[i]);
        ET_TRY(eti_device_copy(p->s->dev, back ? data : copy, back ? copy : data,
                               et_desc_bytes(&buffer->desc)));
    }
    return ET_OK;
}

static et_status
keep(struct eti_part *p, struct eti_train_step *k)
{
    struct stats *own = p->own;
    own->is_kept = k->several;
    return k->several ? copy_all(p, false) : ET_OK;
}

static et_status
put_back(struct eti_part *p)
{
    const struct stats *own = p->own;
    return own->is_kept ? copy_all(p, true) : ET_OK;
}

/* Where the update is skipped they stay as they were before the batch. */
static et_status
guard(struct eti_part *p, struct eti_train_step *k)
{
    const struct stats *own = p->own;
    struct et_graph *g = p->s->graph;
    for (int i = 0; i < own->leaves.n; i++) {
        struct et_tensor *buffer = own->leaves.v[i].param->tensor;
        struct et_tensor *next = et_pending(g, buffer);
        struct et_tensor *before = own->is_kept ? own->copy[i] : buffer;
        if (next != before)
            et_reassign(g, buffer, et_where(g, k->skip, before, next));
    }
    return et_graph_status(g);
}

const struct eti_part_type eti_part_stats = {
    .size = sizeof(struct stats),
    .release = release,
    .bind = bind,
    .begin = keep,
    .append = guard,
    .undo = put_back,
};
