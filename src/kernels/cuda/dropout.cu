/* SPDX-License-Identifier: Apache-2.0 */
/* dropout.cu: y = x/(1-p) where kept, 0 elsewhere; its own gradient.
 *
 * The mask is that of kernels/ref/dropout.c: element e of a sample is kept iff word e %
 * 4 of Philox-4x32-10 at (sample, ordinal, e / 4) is large enough. A thread draws the
 * four words of elements 4b .. 4b + 3 of a sample, about 90 instructions, and moves
 * these elements; so nothing is drawn twice, and at f32 memory is the bound (8 bytes to
 * 23 instructions), at bf16 both are near.
 *
 * dense: samples follow each other and a sample's size is a multiple of 4, so that
 * block t of all lies at 4t; one access of 4 elements each way. strided: elements one
 * by one, blocks in row-major order or, where channels lie beside each other, channels
 * fastest, so that a warp's accesses are neighbours. Elements are below the sample's
 * size. */
#include "kernels/cuda/dropout.h"
#include "kernels/cuda/kernel.cuh"

enum { THREADS = 256 };

struct drawn {
    uint32_t word[4];
};

static __device__ __forceinline__ struct drawn
draw(uint64_t key, uint64_t sample, uint64_t ordinal, uint64_t block)
{
    struct drawn d;
    et_philox(d.word, key, sample, ordinal << 32 | block);
    return d;
}

template <class T>
static __device__ __forceinline__ T
dropped(T x, uint32_t word, uint32_t threshold, typename etk_wide<T>::type scale)
{
    typedef typename etk_wide<T>::type wide;
    return etk_down<T>(word >> 8 >= threshold ? etk_up(x) * scale : (wide)0);
}

/* BLOCKS_OF: blocks of 4 elements in a sample. */
template <class T>
static __global__ void __launch_bounds__(THREADS)
    dense(T *y, const T *x, const int64_t *__restrict__ rng, int64_t blocks_of,
          const __grid_constant__ struct etk_dropout p)
{
    typedef etk_pack<T, 4> four;
    const uint64_t key = (uint64_t)rng[0], first = (uint64_t)rng[p.rng_stride];
    const typename etk_wide<T>::type scale = (typename etk_wide<T>::type)p.scale;
    for (int64_t t = etk_thread(); t < p.samples * blocks_of; t += etk_threads()) {
        four v = ((const four *)x)[t];
        int64_t sample = t / blocks_of;
        struct drawn d = draw(key, first + (uint64_t)sample, p.ordinal,
                              (uint64_t)(t - sample * blocks_of));
#pragma unroll
        for (int i = 0; i < 4; i++)
            v.v[i] = dropped(v.v[i], d.word[i], p.threshold, scale);
        ((four *)y)[t] = v;
    }
}

template <class T>
static __global__ void __launch_bounds__(THREADS)
    strided(T *y, const T *x, const int64_t *__restrict__ rng, int64_t blocks_of,
            const __grid_constant__ struct etk_dropout p)
{
    const uint64_t key = (uint64_t)rng[0], first = (uint64_t)rng[p.rng_stride];
    const typename etk_wide<T>::type scale = (typename etk_wide<T>::type)p.scale;
    for (int64_t t = etk_thread(); t < p.samples * blocks_of; t += etk_threads()) {
        int64_t sample = t / blocks_of, block = t - sample * blocks_of;
        if (p.inner > 0) /* blocks of a channel are one after the other */
            block = block % p.inner * (blocks_of / p.inner) + block / p.inner;
        struct drawn d =
            draw(key, first + (uint64_t)sample, p.ordinal, (uint64_t)block);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int64_t e = 4 * block + i, from = sample * p.x[0], to = sample * p.y[0];
            if (e >= p.size)
                break;
            for (int axis = p.ndim - 1; axis > 0; axis--) {
                int64_t at = e % p.shape[axis];
                e /= p.shape[axis];
                from += at * p.x[axis];
                to += at * p.y[axis];
            }
            y[to] = dropped(x[from], d.word[i], p.threshold, scale);
        }
    }
}

template <class T>
static cudaError_t
launch(const struct etk_dropout *p, const void *x, const int64_t *rng, void *y,
       cudaStream_t stream)
{
    int64_t blocks_of = etk_ceil_div(p->size, 4);
    unsigned blocks = etk_blocks(p->samples * blocks_of, 1, THREADS, p->sm_count);
    bool fits = p->dense && p->size % 4 == 0 &&
                ((uintptr_t)x | (uintptr_t)y) % sizeof(etk_pack<T, 4>) == 0;
    return etk_launch(fits ? dense<T> : strided<T>, blocks, THREADS, 0, stream, (T *)y,
                      (const T *)x, rng, blocks_of, *p);
}

cudaError_t
etk_launch_dropout(const struct etk_dropout *p, const void *x, const int64_t *rng,
                   void *y, cudaStream_t stream)
{
    if (p->dtype == ET_F64)
        return launch<double>(p, x, rng, y, stream);
    return ETK_FLOATS(p->dtype, launch, p, x, rng, y, stream);
}
