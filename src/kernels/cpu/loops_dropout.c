/* SPDX-License-Identifier: Apache-2.0 */
/* loops_dropout.c: y = x/(1-p) where kept, 0 elsewhere; its own gradient.
 *
 * The mask is defined in kernels/ref/dropout.c: element e of a sample is kept iff its
 * word of Philox-4x32-10 at (sample, ordinal, e/4) gives u >= p. */
#include <math.h>

#include "kernels/cpu/loops_arrays.h"
#include "kernels/cpu/loops_draw.h"

struct dropout_kernel {
    struct et_kernel base;
    struct arrays arrays;
    int64_t samples, size, chunks; /* elements and chunks of a sample */
    uint32_t threshold;            /* of a word's upper 24 bits: ceil(2^24 p) */
    float scale;
    uint64_t ordinal;
    int pieces;
};

static et_status
run_dropout(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct dropout_kernel *k = (const struct dropout_kernel *)kernel;
    struct bound b = arrays_bind(&k->arrays, ptr, ws);
    const int64_t *rng = b.in[1];
#pragma omp parallel for schedule(static) num_threads(k->pieces) if (k->pieces > 1)
    for (int64_t chunk = 0; chunk < k->samples * k->chunks; chunk++) {
        int64_t sample = chunk / k->chunks, at = chunk % k->chunks * ETK_DRAW;
        int64_t n = k->size - at < ETK_DRAW ? k->size - at : ETK_DRAW;
        const float *x = (const float *)b.in[0] + sample * k->size + at;
        float *y = (float *)b.out[0] + sample * k->size + at;
        uint32_t word[ETK_DRAW];
        etk_draw(word, (uint64_t)rng[0], (uint64_t)(rng[1] + sample), k->ordinal,
                 (uint64_t)at / 4);
        for (int64_t i = 0; i < n; i++)
            y[i] = word[i] >> 8 >= k->threshold ? x[i] * k->scale : 0;
    }
    arrays_flush(&k->arrays, ptr, ws);
    return ET_OK;
}

et_status
ETK_NAME(etk_prepare_dropout)(struct et_device_handle *d, const struct et_call *call,
                              struct et_kernel **out, size_t *ws, char *why,
                              size_t why_size)
{
    const struct et_dropout_attr *o = call->attr;
    ET_TRY(arrays_need_f32(call, 1, why, why_size));
    if (call->in[1].dtype != ET_I64)
        return etk_refuse(why, why_size, "a dropout mask is keyed by i64, not %s",
                          et_dtype_name(call->in[1].dtype));
    struct dropout_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    struct et_desc x = row_major(&call->in[0]);
    arrays_init(&k->arrays, call, &x, ws);
    k->samples = x.ndim > 0 ? x.shape[0] : 1;
    k->size = et_desc_count(&x) / k->samples;
    k->chunks = (k->size + ETK_DRAW - 1) / (ETK_DRAW);
    k->threshold = (uint32_t)ceil(o->p * 0x1p24);
    k->scale = (float)(1 / (1 - o->p));
    k->ordinal = o->ordinal;
    k->pieces = pieces_for(d, 4 * et_desc_count(&x), k->samples * k->chunks);
    k->base.run = run_dropout;
    k->base.what = "loop:dropout";
    *out = &k->base;
    return ET_OK;
}
