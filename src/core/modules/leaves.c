/* SPDX-License-Identifier: Apache-2.0 */
/* leaves.c: see leaves.h. */
#include "core/modules/leaves.h"

#include <string.h>

/* Tensors begin at a multiple of so many elements: kernels move 16 bytes at a time. */
enum { LOT = 4 };

static const struct et_desc *
desc_of(const struct et_leaf *leaf)
{
    return leaf->param->tensor ? &leaf->param->tensor->desc : &leaf->param->desc;
}

static const char *
own_name(const struct et_leaf *leaf)
{
    const char *dot = strrchr(leaf->name, '.');
    return dot ? dot + 1 : leaf->name;
}

/* Fills AT with where each of L without a tensor in OUT begins, -1 for the others. The
 * elements of all. */
static int64_t
lay_out(const struct et_leaves *l, struct et_tensor *const *out, int64_t *at)
{
    int64_t total = 0;
    for (int i = 0; i < l->n; i++)
        at[i] = -1;
    for (int i = 0; i < l->n; i++) {
        if (at[i] >= 0 || out[i])
            continue;
        for (int j = i; j < l->n; j++) {
            if (out[j] || strcmp(own_name(&l->v[j]), own_name(&l->v[i])) != 0)
                continue;
            at[j] = total;
            total += (et_desc_count(desc_of(&l->v[j])) + LOT - 1) / LOT * LOT;
        }
    }
    return total;
}

et_status
eti_leaves_allocate(struct et_ctx *cx, struct et_device *dev, const struct et_leaves *l,
                    const char *name, struct et_tensor **out)
{
    struct et_storage *storage;
    void *block;
    ET_TRY(et_alloc(cx, ((size_t)l->n + 1) * sizeof(int64_t), &block));
    int64_t *at = block, total = lay_out(l, out, at);
    et_status status = et_storage_new(cx, dev, (size_t)total * sizeof(float), &storage);
    for (int i = 0; i < l->n && status == ET_OK; i++)
        if (at[i] >= 0)
            status = et_tensor_view(cx, storage, at[i], desc_of(&l->v[i]),
                                    name ? name : l->v[i].name, &out[i]);
    if (storage)
        et_storage_unref(storage); /* the tensors hold it now */
    et_free(cx, at);
    return status;
}
