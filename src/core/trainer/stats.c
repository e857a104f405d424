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
#include "core/trainer/trainer_impl.h"

enum { PLACE = 256 }; /* each copy begins at a multiple of so many bytes */

static size_t
room_of(const struct et_leaf *leaf)
{
    size_t bytes = et_desc_bytes(&leaf->param->tensor->desc);
    return (bytes + PLACE - 1) / PLACE * PLACE;
}

/* The copy of each buffer, as a leaf. */
static et_status
make_copies(struct et_trainer *t)
{
    size_t at = 0;
    for (int i = 0; i < t->stats.leaves.n; i++) {
        const struct et_leaf *leaf = &t->stats.leaves.v[i];
        const struct et_desc *desc = &leaf->param->tensor->desc;
        ET_TRY(et_tensor_view(t->state.cx, t->stats.kept,
                              (int64_t)(at / et_dtype_size(desc->dtype)), desc,
                              "kept statistics", &t->stats.copy[i]));
        at += room_of(leaf);
    }
    return ET_OK;
}

/* Are these the buffers that have copies already? */
static bool
is_same(const struct et_leaves *a, const struct et_leaves *b)
{
    for (int i = 0; i < a->n && a->n == b->n; i++)
        if (a->v[i].param != b->v[i].param)
            return false;
    return a->n == b->n;
}

et_status
eti_stats_bind(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    struct et_leaves leaves;
    size_t bytes = 0;
    ET_TRY(et_module_leaves(s->cx, s->model->root, ET_BUFFER, &leaves));
    if (is_same(&t->stats.leaves, &leaves)) {
        et_leaves_release(&leaves);
        return ET_OK;
    }
    eti_stats_release(t);
    t->stats.leaves = leaves;
    s->surgeries++;
    for (int i = 0; i < t->stats.leaves.n; i++)
        bytes += room_of(&t->stats.leaves.v[i]);
    if (!bytes)
        return ET_OK;
    void *block;
    ET_TRY(et_alloc(s->cx, (size_t)t->stats.leaves.n * sizeof *t->stats.copy, &block));
    t->stats.copy = block;
    ET_TRY(et_storage_new(s->cx, s->dev, bytes, &t->stats.kept));
    return make_copies(t);
}

void
eti_stats_release(struct et_trainer *t)
{
    for (int i = 0; t->stats.copy && i < t->stats.leaves.n; i++)
        et_tensor_free(&t->stats.copy[i]);
    et_free(t->state.cx, t->stats.copy);
    et_leaves_release(&t->stats.leaves);
    et_storage_unref(t->stats.kept);
    t->stats = (struct eti_stats){0};
}

static et_status
copy_all(struct et_trainer *t, bool back)
{
    for (int i = 0; i < t->stats.leaves.n; i++) {
        const struct et_tensor *own = t->stats.leaves.v[i].param->tensor;
        void *data = et_tensor_data(own), *copy = et_tensor_data(t->stats.copy[i]);
        ET_TRY(eti_device_copy(t->state.dev, back ? data : copy, back ? copy : data,
                               et_desc_bytes(&own->desc)));
    }
    return ET_OK;
}

et_status
eti_stats_keep(struct et_trainer *t)
{
    t->stats.is_kept = true;
    return copy_all(t, false);
}

et_status
eti_stats_put_back(struct et_trainer *t)
{
    return t->stats.is_kept ? copy_all(t, true) : ET_OK;
}

void
eti_stats_guard(struct et_trainer *t, struct et_tensor *skip)
{
    struct et_graph *g = t->state.graph;
    for (int i = 0; i < t->stats.leaves.n; i++) {
        struct et_tensor *own = t->stats.leaves.v[i].param->tensor;
        struct et_tensor *next = et_pending(g, own);
        struct et_tensor *before = t->stats.is_kept ? t->stats.copy[i] : own;
        if (next != before)
            et_reassign(g, own, et_where(g, skip, before, next));
    }
}
