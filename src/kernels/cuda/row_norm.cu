/* SPDX-License-Identifier: Apache-2.0 */
/* row_norm.cu: layer normalisation of rows that fit into a block's registers.
 *
 *   x  = x + branch, where there is one
 *   y  = gamma x^ + beta, x^ = (x - mean) rstd, over a row of n.size neighbours
 *   dx = rstd (g - mean(g) - x^ mean(g x^)) + dsum, g = gamma dy
 *   dgamma = sum of dy x^, dbeta = sum of dy, over all rows
 *
 * (Ba et al., arXiv:1607.06450.) n.lanes threads, a power of two, share a row: lane l
 * holds the accesses l, l + lanes, ... of V elements, CHUNKS at most, in registers;
 * what begins at n.size or beyond is nobody's. Several rows share a block where lanes
 * are few. A row is row_of(...) < n.count, so no index leaves the arrays; all threads
 * of a block take the same number of turns, since they meet at barriers.
 *
 * T is the dtype of the residual stream: x, the sums, dsum and dx. The branch, y, dy
 * and dx once more for the branch may be in N: mixed precision has the stream in f32
 * and the rest in bf16 or f16. What each kernel by itself would store is rounded to its
 * dtype here too, and dsum is added after that rounding, so the bits are those of
 * single kernels.
 *
 * Forward reads x and the branch once and writes the sum and y once; the variance is
 * that of the deviations, from registers. Backward reads dy, x and dsum once and writes
 * dx once, or once in each dtype; a block goes through rows that lie a grid apart, and
 * adds dgamma and dbeta in shared memory, where each thread owns its columns; each
 * block writes its sums, 8 n.size bytes, and a second kernel adds them in order.
 * (llm.c's layernorm_backward_kernel10 is built so too; there the last block adds
 * alone.) At 65536 rows of 768 in bf16 that is 302 MB and 3 MB of sums; of a stream in
 * f32 with a branch in bf16, 604 MB forward and 805 MB backward. */
#include "kernels/cuda/norm.cuh"

enum {
    MOST = 512, /* threads of a block; so at most 128 registers each */
    LINES = 32, /* of the kernel that adds the blocks' sums */
};

/* The sum over the LANES threads of a row, for all of them. SLOT: one per warp; it may
 * be used again after another barrier. */
static __device__ __forceinline__ float
row_sum(float v, int lanes, float *slot)
{
    for (int by = (lanes < ETK_WARP ? lanes : ETK_WARP) / 2; by > 0; by /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, by);
    if (lanes <= ETK_WARP)
        return v;
    int warps = lanes / ETK_WARP, warp = threadIdx.x / ETK_WARP,
        lane = threadIdx.x % ETK_WARP;
    if (lane == 0)
        slot[warp] = v;
    __syncthreads();
    v = lane < warps ? slot[warp / warps * warps + lane] : 0.0f;
    return etk_warp_reduce(v, etk_plus());
}

template <class A, class B> struct same {
    enum { value = 0 };
};
template <class A> struct same<A, A> {
    enum { value = 1 };
};

/* Does the array of ROLE lie in N? */
template <class T, class N>
static __device__ __forceinline__ bool
is_narrow(const struct etk_norm_rows &n, int role)
{
    return !same<T, N>::value && (n.narrowed >> role & 1);
}

/* This thread's accesses FIRST to FIRST + COUNT - 1 of row ROW of ROLE, below END. All
 * loads are on their way before the first is looked at. */
template <class T, class N, int V, int COUNT>
static __device__ __forceinline__ void
load_row(const struct etk_norm_rows &n, int role, int64_t row, int lane, int end,
         int first, etk_raw<T, V> *a)
{
    const int64_t at = row * n.stride[role];
    if constexpr (!same<T, N>::value) {
        if (is_narrow<T, N>(n, role)) {
            const N *p = static_cast<const N *>(n.p[role]) + at;
            etk_raw<N, V> b[COUNT];
#pragma unroll
            for (int c = 0; c < COUNT; c++)
                if (((first + c) * n.lanes + lane) * V < end)
                    b[c].stream(p + ((first + c) * n.lanes + lane) * V);
#pragma unroll
            for (int c = 0; c < COUNT; c++)
                if (((first + c) * n.lanes + lane) * V < end)
#pragma unroll
                    for (int k = 0; k < V; k++)
                        a[c].set(k, b[c][k]);
            return;
        }
    }
    const T *p = static_cast<const T *>(n.p[role]) + at;
#pragma unroll
    for (int c = 0; c < COUNT; c++)
        if (((first + c) * n.lanes + lane) * V < end)
            a[c].stream(p + ((first + c) * n.lanes + lane) * V);
}

/* Of CHUNKS accesses so many are staged at once: where there are more, they fill the
 * registers. */
template <int CHUNKS> struct stage {
    enum { COUNT = CHUNKS > 6 ? 1 : CHUNKS > 4 ? 3 : CHUNKS };
};

/* V elements of row ROW of ROLE from AT on, rounded. */
template <class T, class N, int V>
static __device__ __forceinline__ void
put_row(const struct etk_norm_rows &n, int role, int64_t row, int at, const float *v)
{
    const int64_t to = row * n.stride[role] + at;
    if (is_narrow<T, N>(n, role))
        etk_put<N, V>(static_cast<N *>(n.p[role]) + to, v);
    else
        etk_put<T, V>(static_cast<T *>(n.p[role]) + to, v);
}

/* A is the row of x; makes it the sum with the branch, and stores that. */
template <class T, class N, int V, int CHUNKS>
static __device__ __forceinline__ void
add_branch(const struct etk_norm_rows &n, int64_t row, int lane, int end,
           etk_raw<T, V> *a)
{
    enum { COUNT = stage<CHUNKS>::COUNT };
#pragma unroll
    for (int first = 0; n.p[ETK_NORM_BRANCH] && first < CHUNKS; first += COUNT) {
        etk_raw<T, V> b[COUNT];
        load_row<T, N, V, COUNT>(n, ETK_NORM_BRANCH, row, lane, end, first, b);
#pragma unroll
        for (int c = 0; c < COUNT; c++)
            if (((first + c) * n.lanes + lane) * V < end)
#pragma unroll
                for (int k = 0; k < V; k++)
                    a[first + c].set(k, a[first + c][k] + b[c][k]);
    }
    if (!n.p[ETK_NORM_SUM])
        return;
    T *sum = static_cast<T *>(n.p[ETK_NORM_SUM]) + row * n.stride[ETK_NORM_SUM];
#pragma unroll
    for (int c = 0; c < CHUNKS; c++)
        if ((c * n.lanes + lane) * V < end)
            a[c].store(sum + (c * n.lanes + lane) * V);
}

template <class T, class N, int V, int CHUNKS>
static __global__ void __launch_bounds__(MOST, 1)
    forward(const __grid_constant__ struct etk_norm_rows n)
{
    __shared__ float slot[2][ETK_WARP];
    const int lane = threadIdx.x % n.lanes, size = (int)n.size;
    const int64_t groups = blockDim.x / n.lanes, group = threadIdx.x / n.lanes;
    for (int64_t first = blockIdx.x * groups; first < n.count;
         first += gridDim.x * groups) {
        const int64_t row = first + group;
        const int end = row < n.count ? size : 0;
        etk_raw<T, V> a[CHUNKS];
        float sum = 0, squares = 0;
        load_row<T, T, V, CHUNKS>(n, ETK_NORM_X, row, lane, end, 0, a);
        add_branch<T, N, V, CHUNKS>(n, row, lane, end, a);
#pragma unroll
        for (int c = 0; c < CHUNKS; c++)
            if ((c * n.lanes + lane) * V < end)
#pragma unroll
                for (int k = 0; k < V; k++)
                    sum += a[c][k];
        const float mean = row_sum(sum, n.lanes, slot[0]) / (float)size;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++)
            if ((c * n.lanes + lane) * V < end)
#pragma unroll
                for (int k = 0; k < V; k++) {
                    float d = a[c][k] - mean;
                    squares += d * d;
                }
        const float var = row_sum(squares, n.lanes, slot[1]) / (float)size;
        const float rstd = 1.0f / sqrtf(var + (float)n.eps);
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            const int at = (c * n.lanes + lane) * V;
            if (at < end && n.p[ETK_NORM_Y]) {
                float gamma[V], beta[V], v[V];
                etk_params<V>(n.param[ETK_NORM_GAMMA], at, 1, gamma);
                etk_params<V>(n.param[ETK_NORM_BETA], at, 0, beta);
#pragma unroll
                for (int k = 0; k < V; k++)
                    v[k] = (a[c][k] - mean) * rstd * gamma[k] + beta[k];
                put_row<T, N, V>(n, ETK_NORM_Y, row, at, v);
            }
        }
        if (lane == 0 && row < n.count && n.p[ETK_NORM_MEAN])
            static_cast<float *>(n.p[ETK_NORM_MEAN])[row] = mean;
        if (lane == 0 && row < n.count && n.p[ETK_NORM_SPREAD])
            static_cast<float *>(n.p[ETK_NORM_SPREAD])[row] = rstd;
    }
}

/* The block's sums: [groups][dgamma, dbeta][V / F][accesses of a row][F], so that
 * neighbouring threads use neighbouring 16 bytes. */
template <int V> struct sums {
    enum { F = V % 4 ? 1 : 4, PLANES = V / F };
    typedef etk_pack<float, F> pack;
    static __device__ __forceinline__ int place(int64_t group, int which, int plane,
                                                int accesses, int access)
    {
        return (int)((group * 2 + which) * PLANES + plane) * accesses + access;
    }
};

/* Floats' worth of registers that dsum may take while the sums are made; longer rows
 * read it when it is added. */
enum { EARLY = 16 };

template <class T, class N, int V, int CHUNKS>
static __global__ void __launch_bounds__(MOST, 1)
    backward(const __grid_constant__ struct etk_norm_rows n)
{
    typedef sums<V> S;
    ETK_SHARED(typename S::pack, acc);
    __shared__ float slot[2][2][ETK_WARP];
    const int lane = threadIdx.x % n.lanes, size = (int)n.size, accesses = size / V;
    const int64_t groups = blockDim.x / n.lanes, group = threadIdx.x / n.lanes;
    const float *means = static_cast<const float *>(n.p[ETK_NORM_MEAN]);
    const float *rstds = static_cast<const float *>(n.p[ETK_NORM_SPREAD]);
    if (n.parts)
        for (int access = lane; access < accesses; access += n.lanes)
            for (int i = 0; i < 2 * S::PLANES; i++)
                acc[S::place(group, 0, i, accesses, access)] = typename S::pack();
    int turn = 0;
    for (int64_t first = blockIdx.x * groups; first < n.count;
         first += gridDim.x * groups, turn ^= 1) {
        const int64_t row = first + group;
        const bool live = row < n.count;
        const int end = live ? size : 0;
        const float mean = live ? means[row] : 0, rstd = live ? rstds[row] : 0;
        constexpr bool early = CHUNKS * V * sizeof(T) / 4 <= EARLY;
        etk_raw<T, V> a[CHUNKS], b[CHUNKS], d[early ? CHUNKS : 1];
        load_row<T, T, V, CHUNKS>(n, ETK_NORM_X, row, lane, end, 0, a);
        if (early && n.p[ETK_NORM_DSUM])
            load_row<T, T, V, early ? CHUNKS : 1>(n, ETK_NORM_DSUM, row, lane, end, 0,
                                                  d);
        constexpr int staged = stage<CHUNKS>::COUNT;
#pragma unroll
        for (int c = 0; c < CHUNKS; c += staged)
            load_row<T, N, V, staged>(n, ETK_NORM_DY, row, lane, end, c, b + c);
        float sum = 0, product = 0;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            const int access = c * n.lanes + lane;
            if (access * V >= end)
                continue;
            float gamma[V];
            etk_params<V>(n.param[ETK_NORM_GAMMA], access * V, 1, gamma);
#pragma unroll
            for (int p = 0; p < S::PLANES; p++) {
                typename S::pack dgamma, dbeta;
                if (n.parts) {
                    dgamma = acc[S::place(group, 0, p, accesses, access)];
                    dbeta = acc[S::place(group, 1, p, accesses, access)];
                }
#pragma unroll
                for (int f = 0; f < S::F; f++) {
                    const int k = p * S::F + f;
                    float xhat = (a[c][k] - mean) * rstd;
                    float dy = b[c][k], g = dy * gamma[k];
                    sum += g;
                    product += g * xhat;
                    dgamma.v[f] += dy * xhat;
                    dbeta.v[f] += dy;
                }
                if (n.parts) {
                    acc[S::place(group, 0, p, accesses, access)] = dgamma;
                    acc[S::place(group, 1, p, accesses, access)] = dbeta;
                }
            }
        }
        if (!n.p[ETK_NORM_DX] && !n.p[ETK_NORM_DBRANCH])
            continue;
        /* Both have their slots before the barrier of the second. */
        sum = row_sum(sum, n.lanes, slot[turn][0]) / (float)size;
        product = row_sum(product, n.lanes, slot[turn][1]) / (float)size;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            const int at = (c * n.lanes + lane) * V;
            if (at >= end)
                continue;
            float gamma[V], v[V];
            etk_params<V>(n.param[ETK_NORM_GAMMA], at, 1, gamma);
#pragma unroll
            for (int k = 0; k < V; k++) {
                float xhat = (a[c][k] - mean) * rstd;
                v[k] = rstd * (b[c][k] * gamma[k] - sum - xhat * product);
            }
            if (n.p[ETK_NORM_DSUM]) {
                etk_raw<T, V> &s = d[early ? c : 0];
                if (!early)
                    s.stream(static_cast<const T *>(n.p[ETK_NORM_DSUM]) +
                             row * n.stride[ETK_NORM_DSUM] + at);
#pragma unroll
                for (int k = 0; k < V; k++)
                    v[k] = etk_add_rounded(etk_up(etk_down<T>(v[k])), s[k]);
            }
            if (n.p[ETK_NORM_DX])
                put_row<T, T, V>(n, ETK_NORM_DX, row, at, v);
            if (n.p[ETK_NORM_DBRANCH])
                put_row<T, N, V>(n, ETK_NORM_DBRANCH, row, at, v);
        }
    }
    if (!n.parts)
        return;
    __syncthreads();
    const float *flat = reinterpret_cast<const float *>(acc);
    for (int i = threadIdx.x; i < 2 * size; i += blockDim.x) {
        const int which = i / size, column = i % size, k = column % V;
        float total = 0;
        for (int64_t g = 0; g < groups; g++)
            total += flat[S::place(g, which, k / S::F, accesses, column / V) * S::F +
                          k % S::F];
        n.parts[((int64_t)blockIdx.x * 2 + which) * size + column] = total;
    }
}

/* Adds the parts of N.BLOCKS blocks: thread (x, y) those of y, y + LINES, ... for
 * column 32 b + x of 2 n.size (dgamma, then dbeta), and line 0 the lines. */
static __global__ void __launch_bounds__(ETK_WARP *LINES)
    gather(const __grid_constant__ struct etk_norm_rows n)
{
    __shared__ float line[LINES][ETK_WARP];
    const int x = threadIdx.x % ETK_WARP, y = threadIdx.x / ETK_WARP;
    const int64_t column = (int64_t)blockIdx.x * ETK_WARP + x;
    float total = 0;
    if (column < 2 * n.size)
#pragma unroll 4
        for (int b = y; b < n.blocks; b += LINES)
            total += n.parts[(int64_t)b * 2 * n.size + column];
    line[y][x] = total;
    __syncthreads();
    if (y > 0 || column >= 2 * n.size)
        return;
    total = 0;
    for (int i = 0; i < LINES; i++)
        total += line[i][x];
    const etk_norm_param &to =
        n.param[column < n.size ? ETK_NORM_DGAMMA : ETK_NORM_DBETA];
    if (to.p)
        etk_param_store(to, column % n.size, total);
}

typedef void (*kernel)(struct etk_norm_rows);

#define PAIR(chunks) (grad ? backward<T, N, V, chunks> : forward<T, N, V, chunks>)
/* The kernel for n->chunks or a few more. Rows that are not aligned need not be quick,
 * and the fewer kernels the sooner they are compiled. */
template <class T, class N, int V>
static kernel
choose(const struct etk_norm_rows *n, bool grad)
{
    if constexpr (V == 1) {
        return n->chunks <= 2 ? PAIR(2) : n->chunks <= 4 ? PAIR(4) : PAIR(8);
    } else {
        switch (n->chunks) {
        case 1:
            return PAIR(1);
        case 2:
            return PAIR(2);
        case 3:
            return PAIR(3);
        case 4:
            return PAIR(4);
        default: /* what etk_norm_rows_shape leaves to accesses of 4 elements */
            if constexpr (V < 8)
                return n->chunks <= 6 ? PAIR(6) : PAIR(8);
            return NULL;
        }
    }
}
#undef PAIR

template <class T, class N>
static kernel
choose_access(const struct etk_norm_rows *n, bool grad)
{
    const int wide = etk_lanes<T>::count;
    return n->vector == 1 ? choose<T, N, 1>(n, grad) : choose<T, N, wide>(n, grad);
}

/* One for each pair of dtypes that etk_norm_rows_plan takes. */
static kernel
kernel_of(const struct etk_norm_rows *n, bool grad)
{
    if (n->dtype == ET_BF16)
        return choose_access<etk_bf16, etk_bf16>(n, grad);
    if (n->dtype == ET_F16)
        return choose_access<etk_f16, etk_f16>(n, grad);
    return n->narrow == ET_BF16  ? choose_access<float, etk_bf16>(n, grad)
           : n->narrow == ET_F16 ? choose_access<float, etk_f16>(n, grad)
                                 : choose_access<float, float>(n, grad);
}

cudaError_t
etk_norm_rows_allow(const struct etk_norm_rows *n)
{
    /* With what is static, below what needs no asking. Always for the most: it is the
     * kernel's, whatever size another call has. */
    if (n->shared <= 32 << 10)
        return cudaSuccess;
    return cudaFuncSetAttribute((const void *)kernel_of(n, true),
                                cudaFuncAttributeMaxDynamicSharedMemorySize,
                                (int)n->most_shared);
}

static cudaError_t
launch(const struct etk_norm_rows *n, bool grad, cudaStream_t stream)
{
    return etk_launch(kernel_of(n, grad), (unsigned)n->blocks, n->threads,
                      n->parts ? n->shared : 0, stream, *n);
}

cudaError_t
etk_launch_norm_rows(const struct etk_norm_rows *n, cudaStream_t stream)
{
    return launch(n, false, stream);
}

cudaError_t
etk_launch_norm_rows_grad(const struct etk_norm_rows *n, cudaStream_t stream)
{
    cudaError_t code = launch(n, true, stream);
    if (code != cudaSuccess || !n->parts)
        return code;
    return etk_launch(gather, (unsigned)etk_ceil_div(2 * n->size, ETK_WARP),
                      ETK_WARP * LINES, 0, stream, *n);
}
