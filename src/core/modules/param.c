/* SPDX-License-Identifier: Apache-2.0 */
/* param.c: a parameter's value before, at and after binding.
 *
 * A draw is keyed by (seed, ET_RNG_INIT, XXH64 of the full name): the value of a
 * parameter does not depend on which other parameters exist or on their order. */
#include "etude/module.h"

#include <string.h>
#include <xxhash.h>

#include "core/base/draws.h"
#include "core/base/need.h"
#include "core/base/thread.h"
#include "core/graph/shadow.h"
#include "etude/rng.h"

static void
declare(struct et_param *p, enum et_leaf_kind kind, struct et_init init, int ndim,
        const int64_t *shape)
{
    p->kind = kind;
    p->init = init;
    p->requires_grad = kind == ET_PARAM;
    et_desc_init(&p->desc, ET_F32, ndim, shape,
                 ndim == 4 ? ET_CHANNELS_LAST : ET_ROW_MAJOR);
}

void
et_param_declare(struct et_param *p, struct et_init init, int ndim,
                 const int64_t *shape)
{
    if (!p || (ndim > 0 && !shape))
        return;
    declare(p, ET_PARAM, init, ndim, shape);
}

void
et_buffer_declare(struct et_param *p, struct et_init init, int ndim,
                  const int64_t *shape)
{
    if (!p || (ndim > 0 && !shape))
        return;
    declare(p, ET_BUFFER, init, ndim, shape);
}

/* A row of first weights. */
struct row {
    const struct et_init *init;
    uint64_t key, index;
    float *out;
};

static void
draw_part(void *data, int64_t first, int64_t end)
{
    const struct row *r = data;
    const struct et_init *init = r->init;
    float *out = r->out + first;
    switch (init->kind) {
    case ET_INIT_CONSTANT:
        for (int64_t i = first; i < end; i++)
            r->out[i] = (float)init->a;
        break;
    case ET_INIT_UNIFORM:
        eti_draw_uniform(r->key, r->index, first, end - first, init->a, init->b, out);
        break;
    case ET_INIT_NORMAL:
        eti_draw_normal(r->key, r->index, first, end - first, init->a, init->b, out);
        break;
    }
}

/* A thread draws this many in about 0.1 ms, some times what it takes to begin one. */
enum { WORTH_A_THREAD = 1 << 15 };

static void
draw(const struct et_init *init, const char *name, uint32_t seed, int threads,
     float *out, int64_t count)
{
    struct row r = {.init = init,
                    .key = et_rng_key(seed, ET_RNG_INIT),
                    .index = XXH64(name, strlen(name), 0),
                    .out = out};
    int64_t worth = count / WORTH_A_THREAD;
    eti_thread_split(worth < threads ? (int)worth : threads, count, ETI_DRAW_LOT,
                     draw_part, &r);
    for (int64_t i = 0; i < init->zeros && i < count; i++)
        out[i] = 0;
}

et_status
et_param_read(struct et_ctx *cx, const struct et_param *p, const char *name,
              uint32_t seed, float *out, int64_t count)
{
    ETI_NEED(cx, p);
    if (count != et_desc_count(&p->desc))
        return ET_FAIL(cx, ET_ESHAPE, "%s has %lld elements, not %lld", name,
                       (long long)et_desc_count(&p->desc), (long long)count);
    if (p->tensor)
        return et_tensor_read(cx, p->tensor, out, (size_t)count * sizeof *out);
    if (p->value)
        memcpy(out, p->value, (size_t)count * sizeof *out);
    else
        draw(&p->init, name, seed, eti_thread_count(), out, count);
    return ET_OK;
}

et_status
et_param_write(struct et_ctx *cx, struct et_param *p, const float *values,
               int64_t count)
{
    ETI_NEED(cx, p);
    if (count != et_desc_count(&p->desc))
        return ET_FAIL(cx, ET_ESHAPE, "%lld values for a parameter of %lld elements",
                       (long long)count, (long long)et_desc_count(&p->desc));
    size_t bytes = (size_t)count * sizeof *values;
    if (p->tensor)
        return et_tensor_write(cx, p->tensor, values, bytes);
    if (!p->value) {
        void *block;
        ET_TRY(et_alloc(cx, bytes ? bytes : sizeof *values, &block));
        p->value = block;
    }
    memcpy(p->value, values, bytes);
    return ET_OK;
}

/* Draws P into T, where that is the host's memory in the order of the draws: no other
 * memory is taken, which for large models takes longer than the draws. False: not
 * so. */
static bool
draw_into(const struct et_param *p, const char *name, uint32_t seed,
          struct et_tensor *t)
{
    struct et_device_info info;
    int64_t count = et_desc_count(&t->desc);
    if (p->tensor || p->value || count < WORTH_A_THREAD ||
        !et_desc_is_contiguous(&t->desc, ET_ROW_MAJOR))
        return false;
    et_device_get_info(t->storage->dev, &info);
    if (!info.host_memory)
        return false;
    eti_shadow_mark(t->storage);
    draw(&p->init, name, seed, info.threads ? info.threads : 1, et_tensor_data(t),
         count);
    return true;
}

static et_status
copy_into(struct et_ctx *cx, const struct et_param *p, const char *name, uint32_t seed,
          struct et_tensor *t)
{
    int64_t count = et_desc_count(&p->desc);
    size_t bytes = (size_t)count * sizeof(float);
    void *host;
    ET_TRY(et_alloc(cx, bytes ? bytes : sizeof(float), &host));
    et_status status = et_param_read(cx, p, name, seed, host, count);
    if (status == ET_OK)
        status = et_tensor_write(cx, t, host, bytes);
    et_free(cx, host);
    return status;
}

et_status
et_param_bind(struct et_ctx *cx, struct et_param *p, const char *name, uint32_t seed,
              struct et_tensor **tensor)
{
    ETI_NEED(cx, cx, p, name, tensor);
    const struct et_desc *got = &(*tensor)->desc;
    char have[128], want[128];
    if (got->dtype != ET_F32 || !et_desc_same_shape(got, &p->desc))
        return ET_FAIL(cx, ET_ESHAPE, "%s is %s and cannot be bound to %s", name,
                       et_desc_text(&p->desc, want, sizeof want),
                       et_desc_text(got, have, sizeof have));
    if (!draw_into(p, name, seed, *tensor))
        ET_TRY(copy_into(cx, p, name, seed, *tensor));
    et_tensor_free(&p->tensor);
    et_free(cx, p->value);
    p->value = NULL;
    p->tensor = *tensor;
    *tensor = NULL;
    return ET_OK;
}

et_status
et_param_move(struct et_ctx *cx, struct et_param *to, struct et_param *from)
{
    ETI_NEED(cx, to, from);
    if (from->desc.dtype == ET_NONE && to->desc.dtype == ET_NONE)
        return ET_OK;
    char a[128], b[128];
    if (!et_desc_same_shape(&to->desc, &from->desc) ||
        to->desc.dtype != from->desc.dtype)
        return ET_FAIL(cx, ET_ESHAPE, "a parameter %s cannot take the value of one %s",
                       et_desc_text(&to->desc, a, sizeof a),
                       et_desc_text(&from->desc, b, sizeof b));
    et_tensor_free(&to->tensor);
    et_free(cx, to->value);
    *to = *from;
    from->tensor = NULL;
    from->value = NULL;
    return ET_OK;
}
