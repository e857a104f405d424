/* SPDX-License-Identifier: Apache-2.0 */
/* fill.cu: arrays of one number, and 0, 1, 2, ... */
#include "kernels/cuda/fill.h"
#include "kernels/cuda/kernel.cuh"

enum { THREADS = 256 };

/* A double as an element. Integers take whole numbers as they are. */
template <class T>
static __device__ __forceinline__ T
element(double x)
{
    return (T)x;
}
template <>
__device__ __forceinline__ etk_bf16
element<etk_bf16>(double x)
{
    return etk_down<etk_bf16>((float)x);
}
template <>
__device__ __forceinline__ etk_f16
element<etk_f16>(double x)
{
    return etk_down<etk_f16>((float)x);
}

/* Thread t of all writes elements t, t + threads, ... below COUNT. */
template <class T>
static __global__ void __launch_bounds__(THREADS)
    fill(T *out, int64_t count, double start, double step)
{
    for (int64_t i = etk_thread(); i < count; i += etk_threads())
        out[i] = element<T>(start + (double)i * step);
}

template <class T>
static cudaError_t
launch(const struct etk_fill *f, void *out, cudaStream_t stream)
{
    unsigned blocks = etk_blocks(f->count, 4, THREADS, f->sm_count);
    return etk_launch(fill<T>, blocks, THREADS, 0, stream, (T *)out, f->count, f->start,
                      f->step);
}

cudaError_t
etk_launch_fill(const struct etk_fill *f, void *out, cudaStream_t stream)
{
    switch (f->dtype) {
    case ET_F64:
        return launch<double>(f, out, stream);
    case ET_I32:
        return launch<int32_t>(f, out, stream);
    case ET_I64:
        return launch<int64_t>(f, out, stream);
    case ET_U8:
        return launch<uint8_t>(f, out, stream);
    default:
        return ETK_FLOATS(f->dtype, launch, f, out, stream);
    }
}
