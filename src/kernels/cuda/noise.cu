/* SPDX-License-Identifier: Apache-2.0 */
/* noise.cu: random operands for kernels that are timed. */
#include "kernels/cuda/noise.h"
#include "kernels/cuda/kernel.cuh"

enum { THREADS = 256 };

/* Thread t of all writes groups t, t + threads, ... of four elements, those below COUNT
 * of them: the four words of one Philox block. */
template <class T>
static __global__ void __launch_bounds__(THREADS)
    noise(T *out, int64_t count, uint64_t seed)
{
    for (int64_t group = etk_thread(); group * 4 < count; group += etk_threads()) {
        uint32_t word[4];
        et_philox(word, seed, 0, (uint64_t)group);
        for (int i = 0; i < 4; i++)
            if (group * 4 + i < count)
                out[group * 4 + i] = etk_down<T>((float)(int32_t)word[i] * 0x1p-31f);
    }
}

template <class T>
static cudaError_t
launch(void *out, int64_t count, uint64_t seed, int sm_count, cudaStream_t stream)
{
    return etk_launch(noise<T>, etk_blocks(count, 4, THREADS, sm_count), THREADS, 0,
                      stream, (T *)out, count, seed);
}

cudaError_t
etk_launch_noise(enum et_dtype dtype, void *out, int64_t count, uint64_t seed,
                 int sm_count, cudaStream_t stream)
{
    return ETK_FLOATS(dtype, launch, out, count, seed, sm_count, stream);
}
