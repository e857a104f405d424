/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.cuh: what the kernels share: launching, dtypes, wide loads, reductions.
 *
 * Kernels are plain CUDA C++ that the host's compiler takes too (t/gpusim): no inline
 * PTX, textures, cooperative groups or tensor cores but behind #ifndef ETK_SIM, with
 * another way to the same result. Sums are in f32 (f64 for f64) and always added in the
 * same order: no float atomics. Every kernel's head comment says which thread computes
 * which element, and why no index leaves its array. */
#ifndef ETUDE_KERNELS_KERNEL_CUH
#define ETUDE_KERNELS_KERNEL_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>

#include "etude/rng.h"
#include "kernels/cuda/cuda.h"

enum { ETK_WARP = 32 };

/* Launches KERNEL with the arguments converted to its parameters' types. SHARED: bytes
 * of dynamic shared memory. Answers at once; faults of the kernel itself show at a
 * later call. */
#ifdef ETK_SIM
#define etk_launch gpusim_launch
/* Dynamic shared memory as an array of TYPE. */
#define ETK_SHARED(type, name) type *name = (type *)gpusim_dynamic_shared()
#else
template <class... P, class... A>
static inline cudaError_t
etk_launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared,
           cudaStream_t stream, A... args)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    return cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...);
}
#define ETK_SHARED(type, name)                                                         \
    extern __shared__ __align__(16) unsigned char etk_shared_[];                       \
    type *name = reinterpret_cast<type *>(etk_shared_)
#endif

/* ---- elements ---- */

typedef __nv_bfloat16 etk_bf16;
typedef __half etk_f16;

/* What T is computed in. */
/* clang-format off */
template <class T> struct etk_wide { typedef float type; };
template <> struct etk_wide<double> { typedef double type; };

static __device__ __forceinline__ float etk_up(float x) { return x; }
static __device__ __forceinline__ double etk_up(double x) { return x; }
static __device__ __forceinline__ float etk_up(etk_bf16 x) { return __bfloat162float(x); }
static __device__ __forceinline__ float etk_up(etk_f16 x) { return __half2float(x); }

/* Rounds to nearest, ties to even. */
template <class T> static __device__ __forceinline__ T etk_down(float x);
template <> __device__ __forceinline__ float etk_down<float>(float x) { return x; }
template <> __device__ __forceinline__ etk_bf16 etk_down<etk_bf16>(float x)
{
    return __float2bfloat16_rn(x);
}
template <> __device__ __forceinline__ etk_f16 etk_down<etk_f16>(float x)
{
    return __float2half_rn(x);
}
template <class T> static __device__ __forceinline__ T etk_down(double x);
template <> __device__ __forceinline__ double etk_down<double>(double x) { return x; }
template <> __device__ __forceinline__ double etk_down<double>(float x) { return x; }

/* N neighbours that are loaded and stored at once: 16 bytes where N * sizeof(T) is 16.
 * The address must be a multiple of the pack's size. */
template <class T, int N> struct __align__(sizeof(T) * N) etk_pack { T v[N]; };
/* Elements of T in the widest access there is. */
template <class T> struct etk_lanes { enum { count = 16 / sizeof(T) }; };
/* clang-format on */

/* Calls a template with T the type of DTYPE: ETK_FLOATS(dtype, launch, args...) is
 * launch<T>(args...), or cudaErrorInvalidValue where the dtype is another than these
 * three. */
#define ETK_FLOATS(dtype, function, ...)                                               \
    ((dtype) == ET_F32    ? function<float>(__VA_ARGS__)                               \
     : (dtype) == ET_BF16 ? function<etk_bf16>(__VA_ARGS__)                            \
     : (dtype) == ET_F16  ? function<etk_f16>(__VA_ARGS__)                             \
                          : cudaErrorInvalidValue)

/* ---- reductions: the same order every time ---- */

struct etk_plus {
    template <class T> __device__ __forceinline__ T operator()(T a, T b) const
    {
        return a + b;
    }
};
/* NaN wins, as everywhere in Etude. */
struct etk_larger {
    template <class T> __device__ __forceinline__ T operator()(T a, T b) const
    {
        return a > b || a != a ? a : b;
    }
};

/* Over the 32 lanes of a warp, of which all take part; every lane gets the result. */
template <class T, class Op>
static __device__ __forceinline__ T
etk_warp_reduce(T x, Op op)
{
    for (int lane = ETK_WARP / 2; lane > 0; lane /= 2)
        x = op(x, __shfl_xor_sync(0xffffffffu, x, lane));
    return x;
}

/* Over a block of THREADS (a multiple of 32, at most 1024) threads, of which all take
 * part; every thread gets the result. SLOT: 32 elements of shared memory, which may be
 * used again after the call. NOTHING: op's neutral element. */
template <int THREADS, class T, class Op>
static __device__ __forceinline__ T
etk_block_reduce(T x, Op op, T nothing, T *slot)
{
    int lane = threadIdx.x % ETK_WARP, warp = threadIdx.x / ETK_WARP;
    x = etk_warp_reduce(x, op);
    if (lane == 0)
        slot[warp] = x;
    __syncthreads();
    x = lane < THREADS / ETK_WARP ? slot[lane] : nothing;
    x = etk_warp_reduce(x, op);
    __syncthreads();
    return x;
}

/* ---- positions ---- */

/* Division of numbers below 2^31 by a fixed one, without dividing (Granlund and
 * Montgomery 1994): n / d = (umulhi(n, m) + n) >> s. */
struct etk_divisor {
    uint32_t d, m, s;
};

static inline struct etk_divisor
etk_divisor_of(uint32_t d)
{
    uint32_t s = 0;
    while (s < 32 && ((uint64_t)1 << s) < d)
        s++;
    uint64_t m = (((uint64_t)1 << 32) * (((uint64_t)1 << s) - d)) / d + 1;
    return {d, (uint32_t)m, s};
}

static __device__ __forceinline__ uint32_t
etk_divide(uint32_t n, const etk_divisor &by)
{
    return (__umulhi(n, by.m) + n) >> by.s;
}

/* Element-wise kernels walk their elements with this stride when the grid is smaller
 * than the array. */
static __device__ __forceinline__ int64_t
etk_thread(void)
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ __forceinline__ int64_t
etk_threads(void)
{
    return (int64_t)gridDim.x * blockDim.x;
}

/* Blocks for COUNT elements, EACH per thread, as many as keep the card busy: at most
 * 32 blocks a multiprocessor, after which threads take several turns. */
static inline unsigned
etk_blocks(int64_t count, int64_t each, int threads, int sm_count)
{
    int64_t want = etk_ceil_div(count, each * threads), most = (int64_t)sm_count * 32;
    return (unsigned)(want < 1 ? 1 : want < most ? want : most);
}

#endif
