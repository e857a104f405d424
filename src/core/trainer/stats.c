/* stats.c: running statistics are part of a step's transaction.
 *
 * A model's buffers move with the forward pass, before anybody knows whether the
 * gradient is finite or the rest of the batch fits into memory. They are copied before
 * a batch, in device memory, and put back when it comes to nothing. */
#include "config.h"

#include "core/graph/tensor.h"
#include "core/trainer/trainer_impl.h"

enum { PLACE = 64 }; /* each copy begins at a multiple of so many bytes */

static size_t
room_of(const struct et_leaf *leaf)
{
    size_t bytes = et_desc_bytes(&leaf->param->tensor->desc);
    return (bytes + PLACE - 1) / PLACE * PLACE;
}

et_status
eti_stats_bind(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    size_t bytes = 0;
    eti_stats_release(t);
    ET_TRY(et_module_leaves(s->cx, s->model->root, ET_BUFFER, &t->stats.leaves));
    for (int i = 0; i < t->stats.leaves.n; i++)
        bytes += room_of(&t->stats.leaves.v[i]);
    return bytes ? et_storage_new(s->cx, s->dev, bytes, &t->stats.kept) : ET_OK;
}

void
eti_stats_release(struct et_trainer *t)
{
    et_leaves_release(&t->stats.leaves);
    et_storage_unref(t->stats.kept);
    t->stats = (struct eti_stats){0};
}

static et_status
copy_all(struct et_trainer *t, bool back)
{
    char *at = t->stats.kept ? t->stats.kept->data : NULL;
    for (int i = 0; i < t->stats.leaves.n; i++) {
        struct et_leaf *leaf = &t->stats.leaves.v[i];
        void *data = et_tensor_data(leaf->param->tensor);
        ET_TRY(eti_device_copy(t->state.dev, back ? data : at, back ? at : data,
                               et_desc_bytes(&leaf->param->tensor->desc)));
        at += room_of(leaf);
    }
    return ET_OK;
}

et_status
eti_stats_keep(struct et_trainer *t)
{
    return copy_all(t, false);
}

et_status
eti_stats_put_back(struct et_trainer *t)
{
    return copy_all(t, true);
}
