/* SPDX-License-Identifier: Apache-2.0 */
/* norm_any.cu: normalisation of arrays of any strides and dtypes, f64 among them.
 *
 *   y  = gamma x^ + beta (+ residual), through relu; x^ = (x - mean) r,
 *   r  = 1/sqrt(variance + eps), x perhaps a sum, which is stored as well
 *   dx = r (g - mean(g) - x^ mean(g x^)) (+ dsum), g = gamma dy where relu let by
 *
 * What the fast kernels (row_norm.cu, channel_norm.cu) do not take: layouts the graph
 * seldom makes, rows beyond what registers hold, f64. Block b is set b, or parameter b,
 * of a.blocks; its threads t take elements t, t + THREADS, ... below a.size, so no
 * index leaves the walk that the host described, and the walk lies in the arrays. A set
 * is read three times (forward) or twice, parameters read all of dy and x once more. */
#include "kernels/cuda/norm.cuh"

enum { THREADS = 256 };

/* Element AT of an array of DTYPE. */
template <class W>
static __device__ __forceinline__ W
get(const struct etk_norm_array &a, int64_t at)
{
    switch (a.dtype) {
    case ET_F64:
        return (W) static_cast<const double *>(a.p)[at];
    case ET_BF16:
        return etk_up(static_cast<const etk_bf16 *>(a.p)[at]);
    case ET_F16:
        return etk_up(static_cast<const etk_f16 *>(a.p)[at]);
    default:
        return static_cast<const float *>(a.p)[at];
    }
}

template <class W>
static __device__ __forceinline__ void
set(const struct etk_norm_array &a, int64_t at, W v)
{
    switch (a.dtype) {
    case ET_F64:
        static_cast<double *>(a.p)[at] = v;
        break;
    case ET_BF16:
        static_cast<etk_bf16 *>(a.p)[at] = etk_down<etk_bf16>((float)v);
        break;
    case ET_F16:
        static_cast<etk_f16 *>(a.p)[at] = etk_down<etk_f16>((float)v);
        break;
    default:
        static_cast<float *>(a.p)[at] = (float)v;
    }
}

/* V as DTYPE holds it. */
template <class W>
static __device__ __forceinline__ W
rounded(int dtype, W v)
{
    return dtype == ET_BF16  ? etk_up(etk_down<etk_bf16>((float)v))
           : dtype == ET_F16 ? etk_up(etk_down<etk_f16>((float)v))
                             : v;
}

/* Offset of place I of the axes FROM to END - 1, row-major. Statistics of no elements
 * have place 0 on an axis of length 0. */
static __device__ __forceinline__ int64_t
offset(const struct etk_norm_any &n, const struct etk_norm_array &a, int from, int end,
       int64_t i)
{
    int64_t at = 0;
    for (int d = end - 1; i > 0 && d >= from; d--) {
        at += i % n.shape[d] * a.stride[d];
        i /= n.shape[d];
    }
    return at;
}

/* Element I of block B. */
static __device__ __forceinline__ int64_t
place(const struct etk_norm_any &n, int role, int64_t b, int64_t i)
{
    return offset(n, n.a[role], 0, n.outer, b) +
           offset(n, n.a[role], n.outer, n.ndim, i);
}

template <class W>
static __device__ __forceinline__ W
value(const struct etk_norm_any &n, int role, int64_t b, int64_t i, W otherwise)
{
    const struct etk_norm_array &a = n.a[role];
    return a.p ? get<W>(a, place(n, role, b, i)) : otherwise;
}

template <class W>
static __device__ __forceinline__ void
store(const struct etk_norm_any &n, int role, int64_t b, int64_t i, W v)
{
    if (n.a[role].p)
        set<W>(n.a[role], place(n, role, b, i), v);
}

/* x, or x + branch as it is stored. */
template <class W>
static __device__ __forceinline__ W
input(const struct etk_norm_any &n, int64_t b, int64_t i)
{
    W x = value<W>(n, ETK_NORM_X, b, i, 0);
    if (!n.a[ETK_NORM_BRANCH].p)
        return x;
    return rounded<W>(n.a[ETK_NORM_X].dtype, x + value<W>(n, ETK_NORM_BRANCH, b, i, 0));
}

/* dy, cleared where relu cut y off. */
template <class W>
static __device__ __forceinline__ W
masked(const struct etk_norm_any &n, int64_t b, int64_t i)
{
    W dy = value<W>(n, ETK_NORM_DY, b, i, 0);
    return n.relu && value<W>(n, ETK_NORM_RELU_Y, b, i, 1) <= 0 ? 0 : dy;
}

/* 1/sqrt(variance + eps) from what SPREAD holds. */
template <class W>
static __device__ __forceinline__ W
rstd_of(const struct etk_norm_any &n, W spread)
{
    return n.variance ? (W)1 / sqrt(spread + (W)n.eps) : spread;
}

template <class W>
static __global__ void __launch_bounds__(THREADS, 1)
    forward(const __grid_constant__ struct etk_norm_any n)
{
    __shared__ W slot[ETK_WARP];
    W size = (W)(n.size > 0 ? n.size : 1);
    for (int64_t b = blockIdx.x; b < n.blocks; b += gridDim.x) {
        W mean = 0, var = 0;
        for (int64_t i = threadIdx.x; i < n.size; i += THREADS)
            mean += input<W>(n, b, i);
        mean = etk_block_reduce<THREADS>(mean, etk_plus(), (W)0, slot) / size;
        for (int64_t i = threadIdx.x; i < n.size; i += THREADS) {
            W d = input<W>(n, b, i) - mean;
            var += d * d;
        }
        var = etk_block_reduce<THREADS>(var, etk_plus(), (W)0, slot) / size;
        W rstd = (W)1 / sqrt(var + (W)n.eps);
        for (int64_t i = threadIdx.x; i < n.size; i += THREADS) {
            W x = input<W>(n, b, i), v = (x - mean) * rstd;
            store<W>(n, ETK_NORM_SUM, b, i, x);
            v = v * value<W>(n, ETK_NORM_GAMMA, b, i, 1) +
                value<W>(n, ETK_NORM_BETA, b, i, 0);
            if (n.a[ETK_NORM_RESIDUAL].p)
                v = rounded<W>(n.stored, v) + value<W>(n, ETK_NORM_RESIDUAL, b, i, 0);
            store<W>(n, ETK_NORM_Y, b, i, n.relu && v < 0 ? 0 : v);
        }
        if (threadIdx.x == 0) {
            store<W>(n, ETK_NORM_MEAN, b, 0, mean);
            store<W>(n, ETK_NORM_SPREAD, b, 0, n.variance ? var : rstd);
        }
    }
}

/* dx may be dy: an element is read before it is written, by the same thread. */
template <class W>
static __global__ void __launch_bounds__(THREADS, 1)
    backward(const __grid_constant__ struct etk_norm_any n)
{
    __shared__ W slot[ETK_WARP];
    W size = (W)(n.size > 0 ? n.size : 1);
    for (int64_t b = blockIdx.x; b < n.blocks; b += gridDim.x) {
        W mean = value<W>(n, ETK_NORM_MEAN, b, 0, 0), sum = 0, product = 0;
        W rstd = rstd_of<W>(n, value<W>(n, ETK_NORM_SPREAD, b, 0, 0));
        for (int64_t i = threadIdx.x; i < n.size; i += THREADS) {
            W g = masked<W>(n, b, i) * value<W>(n, ETK_NORM_GAMMA, b, i, 1);
            sum += g;
            product += g * (value<W>(n, ETK_NORM_X, b, i, 0) - mean) * rstd;
        }
        sum = etk_block_reduce<THREADS>(sum, etk_plus(), (W)0, slot) / size;
        product = etk_block_reduce<THREADS>(product, etk_plus(), (W)0, slot) / size;
        for (int64_t i = threadIdx.x; i < n.size; i += THREADS) {
            W xhat = (value<W>(n, ETK_NORM_X, b, i, 0) - mean) * rstd;
            W dy = masked<W>(n, b, i);
            W g = dy * value<W>(n, ETK_NORM_GAMMA, b, i, 1);
            W v = rstd * (g - sum - xhat * product);
            if (n.a[ETK_NORM_DSUM].p)
                v = etk_add_rounded(rounded<W>(n.a[ETK_NORM_X].dtype, v),
                                    value<W>(n, ETK_NORM_DSUM, b, i, 0));
            store<W>(n, ETK_NORM_DX, b, i, v);
            store<W>(n, ETK_NORM_DBRANCH, b, i, v);
            store<W>(n, ETK_NORM_DRESIDUAL, b, i, dy);
        }
    }
}

template <class W>
static __global__ void __launch_bounds__(THREADS, 1)
    params(const __grid_constant__ struct etk_norm_any n)
{
    __shared__ W slot[ETK_WARP];
    for (int64_t b = blockIdx.x; b < n.blocks; b += gridDim.x) {
        W sum = 0, product = 0;
        for (int64_t i = threadIdx.x; i < n.size; i += THREADS) {
            W dy = masked<W>(n, b, i);
            W rstd = rstd_of<W>(n, value<W>(n, ETK_NORM_SPREAD, b, i, 0));
            W mean = value<W>(n, ETK_NORM_MEAN, b, i, 0);
            sum += dy;
            product += dy * (value<W>(n, ETK_NORM_X, b, i, 0) - mean) * rstd;
        }
        sum = etk_block_reduce<THREADS>(sum, etk_plus(), (W)0, slot);
        product = etk_block_reduce<THREADS>(product, etk_plus(), (W)0, slot);
        if (threadIdx.x == 0) {
            store<W>(n, ETK_NORM_DGAMMA, b, 0, product);
            store<W>(n, ETK_NORM_DBETA, b, 0, sum);
        }
    }
}

static cudaError_t
launch(void (*narrow)(struct etk_norm_any), void (*wide)(struct etk_norm_any),
       const struct etk_norm_any *n, cudaStream_t stream)
{
    int64_t most = 1 << 20;
    if (n->blocks == 0)
        return cudaSuccess;
    return etk_launch(n->wide ? wide : narrow,
                      (unsigned)(n->blocks < most ? n->blocks : most), THREADS, 0,
                      stream, *n);
}

cudaError_t
etk_launch_norm_any(const struct etk_norm_any *n, cudaStream_t stream)
{
    return launch(forward<float>, forward<double>, n, stream);
}

cudaError_t
etk_launch_norm_any_grad(const struct etk_norm_any *n, cudaStream_t stream)
{
    return launch(backward<float>, backward<double>, n, stream);
}

cudaError_t
etk_launch_norm_any_params(const struct etk_norm_any *n, cudaStream_t stream)
{
    return launch(params<float>, params<double>, n, stream);
}
