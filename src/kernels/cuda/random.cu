/* SPDX-License-Identifier: Apache-2.0 */
/* random.cu: numbers drawn for each sample, as kernels/ref/random.c defines them.
 *
 * A thread draws the four words of elements 4b .. 4b + 3 of a sample and makes these
 * elements; those from the sample's size on are left out. */
#include "kernels/cuda/kernel.cuh"
#include "kernels/cuda/random.h"

enum { THREADS = 256 };

/* Two words become the two normal numbers of their elements. */
static __device__ __forceinline__ void
normal(float *y, uint32_t first, uint32_t second)
{
    float u = (float)((first >> 8) + 1) * 0x1p-24f;
    float v = (float)(second >> 8) * 0x1p-23f; /* half turns */
    float r = sqrtf(-2 * logf(u));
    y[0] = r * cospif(v);
    y[1] = r * sinpif(v);
}

static __device__ __forceinline__ void
make(float *y, const uint32_t *word, const struct etk_random &p)
{
    if (p.kind == ET_RANDOM_NORMAL) {
        normal(y, word[0], word[1]);
        normal(y + 2, word[2], word[3]);
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        y[i] = p.kind == ET_RANDOM_UNIFORM  ? (float)(word[i] >> 8) * 0x1p-24f
               : word[i] >> 8 < p.threshold ? 1.0f
                                            : 0.0f;
}

/* Of element E of a sample. */
static __device__ __forceinline__ int64_t
offset_of(int64_t e, const struct etk_random &p)
{
    int64_t to = 0;
    for (int axis = p.ndim - 1; axis > 0; axis--) {
        to += e % p.shape[axis] * p.y[axis];
        e /= p.shape[axis];
    }
    return to;
}

/* BLOCKS_OF: blocks of 4 elements in a sample. */
static __global__ void __launch_bounds__(THREADS)
    draw(float *y, const int64_t *__restrict__ rng, int64_t blocks_of,
         const __grid_constant__ struct etk_random p)
{
    const uint64_t key = (uint64_t)rng[0], first = (uint64_t)rng[p.rng_stride];
    for (int64_t t = etk_thread(); t < p.samples * blocks_of; t += etk_threads()) {
        int64_t sample = t / blocks_of, block = t - sample * blocks_of;
        uint32_t word[4];
        float value[4];
        et_philox(word, key, first + (uint64_t)sample,
                  p.ordinal << 32 | (uint64_t)block);
        make(value, word, p);
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (4 * block + i < p.size)
                y[sample * p.y[0] + offset_of(4 * block + i, p)] = value[i];
    }
}

cudaError_t
etk_launch_random(const struct etk_random *p, const int64_t *rng, float *y,
                  cudaStream_t stream)
{
    int64_t blocks_of = etk_ceil_div(p->size, 4);
    unsigned blocks = etk_blocks(p->samples * blocks_of, 1, THREADS, p->sm_count);
    return etk_launch(draw, blocks, THREADS, 0, stream, y, rng, blocks_of, *p);
}
