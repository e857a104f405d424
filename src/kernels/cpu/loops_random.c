/* SPDX-License-Identifier: Apache-2.0 */
/* loops_random.c: numbers drawn for each sample, as kernels/ref/random.c defines
 * them. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/loops_arrays.h"
#include "kernels/cpu/loops_draw.h"
#include "kernels/cpu/loops_math.h"

struct random_kernel {
    struct et_kernel base;
    struct arrays arrays;
    int64_t samples, size, chunks; /* elements and chunks of a sample */
    enum et_random_kind kind;
    uint32_t threshold; /* of a word's upper 24 bits: ceil(2^24 p) */
    uint64_t ordinal;
    int pieces;
};

/* sin x and cos x, |x| <= pi/4: S. Moshier's polynomials of the Cephes library. */
static inline float
sin_near(float x)
{
    float s = x * x, p = -1.9515295891e-4f;
    p = p * s + 8.3321608736e-3f;
    p = p * s - 1.6666654611e-1f;
    return p * s * x + x;
}

static inline float
cos_near(float x)
{
    float s = x * x, p = 2.443315711809948e-5f;
    p = p * s - 1.388731625493765e-3f;
    p = p * s + 4.166664568298827e-2f;
    return p * s * s - 0.5f * s + 1;
}

/* Elements 2i and 2i + 1 are of words 2i and 2i + 1. Quarters of a turn are taken away
 * exactly: what is left are multiples of 2^-24. */
static void
make_normal(float *restrict y, const uint32_t *restrict word)
{
#pragma omp simd
    for (int i = 0; i < ETK_DRAW / 2; i++) {
        float u = (float)((word[2 * i] >> 8) + 1) * 0x1p-24f;
        uint32_t turn = word[2 * i + 1] >> 8, quarter = (turn + (1u << 21)) >> 22;
        float x =
            (float)(int32_t)(turn - (quarter << 22)) * (0x1p-24f * 6.28318530718f);
        float r = sqrtf(-2 * etk_logf(u)), s = sin_near(x), c = cos_near(x);
        float across = quarter & 1 ? -s : c, up = quarter & 1 ? c : s;
        y[2 * i] = quarter & 2 ? -(r * across) : r * across;
        y[2 * i + 1] = quarter & 2 ? -(r * up) : r * up;
    }
}

static void
make(float *restrict y, const uint32_t *restrict word, enum et_random_kind kind,
     uint32_t threshold)
{
    if (kind == ET_RANDOM_NORMAL) {
        make_normal(y, word);
        return;
    }
    for (int i = 0; i < ETK_DRAW; i++)
        y[i] = kind == ET_RANDOM_UNIFORM  ? (float)(word[i] >> 8) * 0x1p-24f
               : word[i] >> 8 < threshold ? 1.0f
                                          : 0.0f;
}

static et_status
run_random(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct random_kernel *k = (const struct random_kernel *)kernel;
    struct bound b = arrays_bind(&k->arrays, ptr, ws);
    const int64_t *rng = b.in[0];
#pragma omp parallel for schedule(static) num_threads(k->pieces) if (k->pieces > 1)
    for (int64_t chunk = 0; chunk < k->samples * k->chunks; chunk++) {
        int64_t sample = chunk / k->chunks, at = chunk % k->chunks * ETK_DRAW;
        int64_t n = k->size - at < ETK_DRAW ? k->size - at : ETK_DRAW;
        uint32_t word[ETK_DRAW];
        float value[ETK_DRAW];
        etk_draw(word, (uint64_t)rng[0], (uint64_t)(rng[1] + sample), k->ordinal,
                 (uint64_t)at / 4);
        make(value, word, k->kind, k->threshold);
        memcpy((float *)b.out[0] + sample * k->size + at, value,
               (size_t)n * sizeof *value);
    }
    arrays_flush(&k->arrays, ptr, ws);
    return ET_OK;
}

et_status
ETK_NAME(etk_prepare_random)(struct et_device_handle *d, const struct et_call *call,
                             struct et_kernel **out, size_t *ws, char *why,
                             size_t why_size)
{
    const struct et_random_attr *o = call->attr;
    ET_TRY(arrays_need_f32(call, 0, why, why_size));
    struct random_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    struct et_desc y = row_major(&call->out[0]);
    arrays_init(&k->arrays, call, &y, ws);
    k->samples = y.shape[0];
    k->size = et_desc_count(&y) / k->samples;
    k->chunks = (k->size + ETK_DRAW - 1) / ETK_DRAW;
    k->kind = (enum et_random_kind)o->kind;
    k->threshold = (uint32_t)ceil(o->p * 0x1p24);
    k->ordinal = o->ordinal;
    k->pieces = pieces_for(d, 4 * et_desc_count(&y), k->samples * k->chunks);
    k->base.run = run_random;
    k->base.what = "loop:random";
    *out = &k->base;
    return ET_OK;
}
