/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_runtime.h: the language of CUDA for the host's compiler, and launching.
 *
 * One thread of one block runs at a time in the whole process, so atomics are plain
 * loads and stores and shared memory is static. Threads are switched at barriers and
 * warp operations only. */
#ifndef ETUDE_GPUSIM_CUDA_RUNTIME_H
#define ETUDE_GPUSIM_CUDA_RUNTIME_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <functional>
#include <tuple>
#include <type_traits>
#include <vector>

#include "cuda_runtime_api.h"
#include "gpusim.h"
#include "vector_types.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__      static
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) alignas(n)

/* ---- where a thread is ---- */

struct gpusim_place {
    uint3 thread, block;
    dim3 block_dim, grid_dim;
};
extern struct gpusim_place gpusim_place; /* of the thread that runs */

#define threadIdx gpusim_place.thread
#define blockIdx  gpusim_place.block
#define blockDim  gpusim_place.block_dim
#define gridDim   gpusim_place.grid_dim
static const int warpSize = 32;

/* The block's dynamic shared memory, 1024-byte aligned, full of 0xff at the start. */
void *gpusim_dynamic_shared(void);

/* ---- barriers and warps ---- */

enum gpusim_meeting {
    GPUSIM_BARRIER,       /* __syncthreads */
    GPUSIM_BARRIER_OR,    /* __syncthreads_or */
    GPUSIM_BARRIER_AND,   /* __syncthreads_and */
    GPUSIM_BARRIER_COUNT, /* __syncthreads_count */
    GPUSIM_SYNCWARP,      /* __syncwarp */
    GPUSIM_SHUFFLE,       /* any __shfl_sync */
    GPUSIM_BALLOT,        /* __ballot_sync */
    GPUSIM_ANY,           /* __any_sync */
    GPUSIM_ALL,           /* __all_sync */
    GPUSIM_SUM,           /* __reduce_add_sync */
    GPUSIM_MIN,           /* __reduce_min_sync */
    GPUSIM_MAX            /* __reduce_max_sync */
};

/* Waits for all threads of the block that have not returned. */
int gpusim_barrier(enum gpusim_meeting kind, int value, const char *file, int line);
/* Waits for the lanes of MASK that have not returned; what VALUEs give together, or
 * that of lane FROM. */
uint64_t gpusim_warp(enum gpusim_meeting kind, unsigned mask, uint64_t value, int from,
                     const char *file, int line);
int gpusim_lane(void); /* of the calling thread in its warp */

#define GPUSIM_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void
__syncthreads(GPUSIM_HERE)
{
    gpusim_barrier(GPUSIM_BARRIER, 0, file, line);
}
inline int
__syncthreads_or(int x, GPUSIM_HERE)
{
    return gpusim_barrier(GPUSIM_BARRIER_OR, x, file, line);
}
inline int
__syncthreads_and(int x, GPUSIM_HERE)
{
    return gpusim_barrier(GPUSIM_BARRIER_AND, x, file, line);
}
inline int
__syncthreads_count(int x, GPUSIM_HERE)
{
    return gpusim_barrier(GPUSIM_BARRIER_COUNT, x, file, line);
}
inline void
__syncwarp(unsigned mask = 0xffffffffu, GPUSIM_HERE)
{
    gpusim_warp(GPUSIM_SYNCWARP, mask, 0, 0, file, line);
}
inline unsigned
__ballot_sync(unsigned mask, int x, GPUSIM_HERE)
{
    return (unsigned)gpusim_warp(GPUSIM_BALLOT, mask, x != 0, 0, file, line);
}
inline int
__any_sync(unsigned mask, int x, GPUSIM_HERE)
{
    return (int)gpusim_warp(GPUSIM_ANY, mask, x != 0, 0, file, line);
}
inline int
__all_sync(unsigned mask, int x, GPUSIM_HERE)
{
    return (int)gpusim_warp(GPUSIM_ALL, mask, x != 0, 0, file, line);
}
inline unsigned
__reduce_add_sync(unsigned mask, unsigned x, GPUSIM_HERE)
{
    return (unsigned)gpusim_warp(GPUSIM_SUM, mask, x, 0, file, line);
}
inline unsigned
__reduce_min_sync(unsigned mask, unsigned x, GPUSIM_HERE)
{
    return (unsigned)gpusim_warp(GPUSIM_MIN, mask, x, 0, file, line);
}
inline unsigned
__reduce_max_sync(unsigned mask, unsigned x, GPUSIM_HERE)
{
    return (unsigned)gpusim_warp(GPUSIM_MAX, mask, x, 0, file, line);
}
/* Which lanes happen to run together is the hardware's: one is always right. */
inline unsigned
__activemask(void)
{
    return 1u << gpusim_lane();
}

/* x of lane FROM. Types up to 8 bytes, as CUDA has them. */
template <class T>
inline T
gpusim_shuffle(unsigned mask, T x, int from, const char *file, int line)
{
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable<T>::value, "a scalar");
    uint64_t bits = 0;
    memcpy(&bits, &x, sizeof x);
    bits = gpusim_warp(GPUSIM_SHUFFLE, mask, bits, from, file, line);
    memcpy(&x, &bits, sizeof x);
    return x;
}
template <class T>
inline T
__shfl_sync(unsigned mask, T x, int from, int width = 32, GPUSIM_HERE)
{
    int first = gpusim_lane() & ~(width - 1);
    return gpusim_shuffle(mask, x, first | (from & (width - 1)), file, line);
}
template <class T>
inline T
__shfl_up_sync(unsigned mask, T x, unsigned by, int width = 32, GPUSIM_HERE)
{
    int lane = gpusim_lane(), from = lane - (int)by;
    return gpusim_shuffle(mask, x, from < (lane & ~(width - 1)) ? lane : from, file,
                          line);
}
template <class T>
inline T
__shfl_down_sync(unsigned mask, T x, unsigned by, int width = 32, GPUSIM_HERE)
{
    int lane = gpusim_lane(), from = lane + (int)by;
    return gpusim_shuffle(mask, x, from > (lane | (width - 1)) ? lane : from, file,
                          line);
}
template <class T>
inline T
__shfl_xor_sync(unsigned mask, T x, int by, int width = 32, GPUSIM_HERE)
{
    int lane = gpusim_lane(), from = lane ^ by;
    return gpusim_shuffle(mask, x, from > (lane | (width - 1)) ? lane : from, file,
                          line);
}

/* ---- memory ---- */

inline void
__threadfence(void)
{
}
inline void
__threadfence_block(void)
{
}
inline void
__threadfence_system(void)
{
}

/* Cache hints load and store as any other access. */
#define GPUSIM_LOAD(name)                                                              \
    template <class T> inline T name(const T *p)                                       \
    {                                                                                  \
        return *p;                                                                     \
    }
#define GPUSIM_STORE(name)                                                             \
    template <class T> inline void name(T *p, T x)                                     \
    {                                                                                  \
        *p = x;                                                                        \
    }
GPUSIM_LOAD(__ldg)
GPUSIM_LOAD(__ldca)
GPUSIM_LOAD(__ldcg)
GPUSIM_LOAD(__ldcs)
GPUSIM_LOAD(__ldlu)
GPUSIM_LOAD(__ldcv)
GPUSIM_STORE(__stwb)
GPUSIM_STORE(__stcg)
GPUSIM_STORE(__stcs)
GPUSIM_STORE(__stwt)
#undef GPUSIM_LOAD
#undef GPUSIM_STORE

/* The old value, as all of these. T: the types that CUDA has the operation for.
 * Atomics race with nobody (race.cc). */
#define GPUSIM_APART __attribute__((no_sanitize_thread, noinline))
#define GPUSIM_ATOMIC(name, type, value)                                               \
    GPUSIM_APART inline type name(type *p, type x)                                     \
    {                                                                                  \
        type old = *p;                                                                 \
        *p = value;                                                                    \
        return old;                                                                    \
    }
#define GPUSIM_ATOMIC_INTEGERS(name, value)                                            \
    GPUSIM_ATOMIC(name, int, value)                                                    \
    GPUSIM_ATOMIC(name, unsigned, value)                                               \
    GPUSIM_ATOMIC(name, unsigned long long, value)
GPUSIM_ATOMIC(atomicAdd, int, (int)((unsigned)old + (unsigned)x))
GPUSIM_ATOMIC(atomicAdd, unsigned, old + x)
GPUSIM_ATOMIC(atomicAdd, unsigned long long, old + x)
GPUSIM_ATOMIC(atomicAdd, float, old + x)
GPUSIM_ATOMIC(atomicAdd, double, old + x)
GPUSIM_ATOMIC(atomicSub, int, (int)((unsigned)old - (unsigned)x))
GPUSIM_ATOMIC(atomicSub, unsigned, old - x)
GPUSIM_ATOMIC_INTEGERS(atomicMax, old > x ? old : x)
GPUSIM_ATOMIC_INTEGERS(atomicMin, old < x ? old : x)
GPUSIM_ATOMIC_INTEGERS(atomicAnd, old &x)
GPUSIM_ATOMIC_INTEGERS(atomicOr, old | x)
GPUSIM_ATOMIC_INTEGERS(atomicXor, old ^ x)
GPUSIM_ATOMIC_INTEGERS(atomicExch, x)
GPUSIM_ATOMIC(atomicExch, float, x)
GPUSIM_ATOMIC(atomicInc, unsigned, old >= x ? 0 : old + 1)
GPUSIM_ATOMIC(atomicDec, unsigned, old == 0 || old > x ? x : old - 1)
#undef GPUSIM_ATOMIC
#undef GPUSIM_ATOMIC_INTEGERS
#define GPUSIM_CAS(type)                                                               \
    GPUSIM_APART inline type atomicCAS(type *p, type if_this, type x)                  \
    {                                                                                  \
        type old = *p;                                                                 \
        if (old == if_this)                                                            \
            *p = x;                                                                    \
        return old;                                                                    \
    }
GPUSIM_CAS(int)
GPUSIM_CAS(unsigned)
GPUSIM_CAS(unsigned long long)
#undef GPUSIM_CAS

#include "gpusim_math.h"

/* ---- launching ---- */

struct gpusim_kernel {
    const void *address;
    dim3 grid, block;
    size_t shared;                       /* bytes of dynamic shared memory */
    std::vector<const void *> arguments; /* those that are addresses of data */
    std::function<void()> body;          /* what one thread does */
};
cudaError_t gpusim_queue_kernel(struct gpusim_kernel kernel, cudaStream_t stream);

template <class T>
inline void
gpusim_note(std::vector<const void *> &pointers, const T &x)
{
    if constexpr (std::is_pointer<T>::value)
        if constexpr (!std::is_function<typename std::remove_pointer<T>::type>::value)
            pointers.push_back((const void *)x);
}

/* kernel<<<grid, block, shared, stream>>>(args...). Pointers among the arguments must
 * be NULL or of device or pinned memory when the kernel runs; the device is lost
 * (cudaErrorIllegalAddress) with a report otherwise. */
template <class... P, class... A>
inline cudaError_t
gpusim_launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared,
              cudaStream_t stream, A... args)
{
    static_assert(sizeof...(P) == sizeof...(A), "one argument for each parameter");
    std::tuple<typename std::decay<P>::type...> values(static_cast<P>(args)...);
    struct gpusim_kernel launch = {(const void *)kernel, grid, block, shared, {}, {}};
    std::apply([&](const auto &...x) { (gpusim_note(launch.arguments, x), ...); },
               values);
    launch.body = [kernel, values]() { std::apply(kernel, values); };
    return gpusim_queue_kernel(launch, stream);
}

template <class T>
inline cudaError_t
cudaFuncSetAttribute(T *kernel, enum cudaFuncAttribute attr, int value)
{
    return cudaFuncSetAttribute((const void *)kernel, attr, value);
}
template <class T>
inline cudaError_t
cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, T *kernel, int threads,
                                              size_t shared)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, (const void *)kernel,
                                                         threads, shared);
}
template <class T>
inline cudaError_t
cudaMalloc(T **ptr, size_t bytes)
{
    return cudaMalloc((void **)ptr, bytes);
}
template <class T>
inline cudaError_t
cudaMallocHost(T **ptr, size_t bytes)
{
    return cudaMallocHost((void **)ptr, bytes);
}

#endif
