/* SPDX-License-Identifier: Apache-2.0 */
/* channel_norm.cu: batch and group normalisation of [samples, rows, channels], channels
 * innermost: channels-last images, and [N, C].
 *
 *   y  = (x - mean) scale + beta (+ residual), through relu; scale = gamma r,
 *        r = 1/sqrt(variance + eps)
 *   dx = scale g - offset - slope (x - mean), g = dy where relu let by,
 *        offset = r sum(gamma g)/m, slope = r^3 sum(gamma g (x - mean))/m
 *
 * over sets of m elements: a channel in all rows (batch norm, one sample; Ioffe and
 * Szegedy, arXiv:1502.03167), or channels/groups channels of a sample (group norm; Wu
 * and He, arXiv:1803.08494). Three kernels: sums of each block, what follows from all
 * of them, and the writing pass; or one, where a block's columns are short.
 *
 * A block of n.columns times n.lines threads reads n.lines rows at once: thread (x, y)
 * the n.vector channels of access tile * columns + x, in row y of the lines. Accesses
 * beyond channels/vector and rows beyond n.rows are nobody's, so no index leaves the
 * arrays.
 *
 * A mean and the squared deviations from it are joined row by row and block by block
 * (Chan, Golub and LeVeque 1979, equation 2.1), in f32, and those of blocks in f64: no
 * cancellation where a mean is large, and none of a first row far from it.
 *
 * Forward reads x twice and writes y; backward reads dy, x (and y) twice and writes dx
 * (and dresidual): 6 and 14 (16) bytes an element in bf16 with relu. Blocks sweep over
 * the array together, and the writing pass begins at the end, with what is still in the
 * second-level cache. */
#include "kernels/cuda/norm.cuh"

enum {
    THREADS = 256,
    MERGERS = 128,
};

/* Rows that a thread has on the way at once: about 100 bytes of all arrays. */
static __host__ __device__ constexpr int
at_once(int vector, int arrays)
{
    return vector == 8 || vector == 4 ? (arrays == 1 ? 8 : arrays == 2 ? 4 : 2) : 4;
}
/* Blocks that a multiprocessor must have registers for. */
enum { RESIDENT = 2 };

/* Where a thread works. */
struct spot {
    int column, line; /* in the block */
    int64_t channel;  /* its first */
    int64_t sample, split;
    bool here; /* it has something to do */
};

static __device__ __forceinline__ struct spot
spot_of(const struct etk_norm_channels &n, int64_t block, int64_t splits)
{
    struct spot s;
    s.column = threadIdx.x % n.columns;
    s.line = threadIdx.x / n.columns;
    s.channel = (block % n.tiles * n.columns + s.column) * n.vector;
    block /= n.tiles;
    s.split = block % splits;
    s.sample = block / splits;
    s.here = s.line < n.lines && s.channel < n.channels;
    return s;
}

/* Rows that split SPLIT of SPLITS reads: every SPLITS-th stretch of n.lines rows. */
static __device__ __forceinline__ int64_t
rows_of(const struct etk_norm_channels &n, int64_t split, int64_t splits)
{
    int64_t sweep = splits * n.lines, rest = n.rows % sweep - split * n.lines;
    rest = rest < 0 ? 0 : rest < n.lines ? rest : n.lines;
    return n.rows / sweep * n.lines + rest;
}

/* Which mean belongs to CHANNEL of SAMPLE. */
static __device__ __forceinline__ int64_t
set_of(const struct etk_norm_channels &n, int64_t sample, int64_t channel)
{
    return n.batch ? channel : sample * n.groups + channel / (n.channels / n.groups);
}

static __device__ __forceinline__ float
rstd_of(const struct etk_norm_channels &n, int64_t set)
{
    float spread = static_cast<const float *>(n.p[ETK_NORM_SPREAD])[set];
    return n.batch ? 1.0f / sqrtf(spread + (float)n.eps) : spread;
}

/* ---- sums ----
 *
 * A thread, and then a block, has COUNT rows, and two numbers per channel: forward A,
 * their mean, and B, the sum of squared deviations from it; backward A, the sum of g,
 * and B, that of g (x - mean). */

/* Joins COUNT, A, B with what others have. In f32: a mean is off by some units in its
 * last place, as the sums of a tree are. */
static __device__ __forceinline__ void
join(float count, float other_count, float &a, float &b, float other_a, float other_b)
{
    const float all = count + other_count, share = all > 0 ? other_count / all : 0.0f;
    const float d = other_a - a;
    a += d * share;
    b += other_b + d * d * count * share;
}

/* Rows at once: their mean, then their deviations from it, then both join the
 * others. */
template <class T, int V, int ROWS>
static __device__ __forceinline__ void
join_rows(const etk_raw<T, V> *x, int live, float count, float *a, float *b)
{
    const float by = 1.0f / (float)live;
#pragma unroll
    for (int k = 0; k < V; k++) {
        float mean = 0, squares = 0;
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            if (i < live)
                mean += x[i][k];
        mean *= by;
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            if (i < live)
                squares += (x[i][k] - mean) * (x[i][k] - mean);
        join(count, (float)live, a[k], b[k], mean, squares);
    }
}

/* A and B of all rows of a thread; its rows. MEAN: backward. */
template <class T, int V, bool GRAD, bool RELU>
static __device__ __forceinline__ float
add_rows(const struct etk_norm_channels &n, const struct spot &s, int64_t splits,
         const float *mean, float *a, float *b)
{
    const int64_t from = s.sample * n.rows * n.channels + s.channel;
    const T *x = static_cast<const T *>(n.p[ETK_NORM_X]) + from;
    const T *dy = static_cast<const T *>(n.p[ETK_NORM_DY]) + from;
    const T *y = static_cast<const T *>(n.p[ETK_NORM_RELU_Y]) + from;
    const int64_t sweep = splits * n.lines;
    constexpr int ROWS = at_once(V, 1 + GRAD + RELU);
    float count = 0;
    for (int64_t row = s.split * n.lines + s.line; row < n.rows; row += ROWS * sweep) {
        etk_raw<T, V> px[ROWS], pdy[ROWS], py[ROWS];
        const int64_t left = (n.rows - row + sweep - 1) / sweep;
        const int live = left < ROWS ? (int)left : ROWS;
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            if (i < live) {
                const int64_t at = (row + i * sweep) * n.channels;
                px[i].load(x + at);
                if (GRAD)
                    pdy[i].load(dy + at);
                if (GRAD && RELU)
                    py[i].load(y + at);
            }
        if (!GRAD)
            join_rows<T, V, ROWS>(px, live, count, a, b);
        count += (float)live;
#pragma unroll
        for (int i = 0; i < ROWS; i++)
#pragma unroll
            for (int k = 0; k < V; k++)
                if (GRAD && i < live) {
                    const float g = RELU && py[i][k] <= 0 ? 0.0f : pdy[i][k];
                    a[k] += g;
                    b[k] += g * (px[i][k] - mean[k]);
                }
    }
    return count;
}

/* A block's numbers on their way from line to line. */
template <int V> struct lines {
    float a[V][THREADS], b[V][THREADS], count[THREADS];
};

/* Joins the lines of a block, as a tree; line 0 has the result, in L too. All threads
 * call, those without rows with zeros. */
template <int V, bool GRAD>
static __device__ __forceinline__ void
join_lines(const struct etk_norm_channels &n, const struct spot &s, struct lines<V> &l,
           float count, float *a, float *b)
{
    const int me = threadIdx.x;
#pragma unroll
    for (int k = 0; k < V; k++) {
        l.a[k][me] = a[k];
        l.b[k][me] = b[k];
    }
    l.count[me] = count;
    __syncthreads();
    for (int lines = n.lines; lines > 1;) {
        const int half = (lines + 1) / 2, other = me + half * n.columns;
        if (s.line + half < lines) {
#pragma unroll
            for (int k = 0; k < V; k++) {
                if (GRAD) {
                    a[k] += l.a[k][other];
                    b[k] += l.b[k][other];
                } else {
                    join(count, l.count[other], a[k], b[k], l.a[k][other],
                         l.b[k][other]);
                }
                l.a[k][me] = a[k];
                l.b[k][me] = b[k];
            }
            l.count[me] = count += l.count[other];
        }
        __syncthreads();
        lines = half;
    }
}

/* The means of a thread's channels. */
template <int V>
static __device__ __forceinline__ void
load_means(const struct etk_norm_channels &n, const struct spot &s, float *mean)
{
#pragma unroll
    for (int k = 0; k < V; k++)
        mean[k] = static_cast<const float *>(
            n.p[ETK_NORM_MEAN])[set_of(n, s.sample, s.channel + k)];
}

/* One block's A and B, [samples][channels][splits][2] f32. n.splits is such that every
 * block has a row. */
template <class T, int V, bool GRAD, bool RELU>
static __global__ void __launch_bounds__(THREADS, RESIDENT)
    sum_columns(const __grid_constant__ struct etk_norm_channels n)
{
    __shared__ struct lines<V> l;
    const struct spot s = spot_of(n, blockIdx.x, n.splits);
    float mean[V] = {0}, a[V] = {0}, b[V] = {0}, count = 0;
    if (s.here) {
        if (GRAD)
            load_means<V>(n, s, mean);
        count = add_rows<T, V, GRAD, RELU>(n, s, n.splits, mean, a, b);
    }
    join_lines<V, GRAD>(n, s, l, count, a, b);
    if (!s.here || s.line > 0)
        return;
    float2 *out = reinterpret_cast<float2 *>(n.parts) +
                  (s.sample * n.channels + s.channel) * n.splits + s.split;
#pragma unroll
    for (int k = 0; k < V; k++)
        out[k * n.splits] = make_float2(a[k], b[k]);
}

/* ---- what follows from the sums ---- */

/* Coefficient I of CHANNEL of SAMPLE: mean, then scale, beta; or scale, offset,
 * slope. */
static __device__ __forceinline__ float *
coef_of(const struct etk_norm_channels &n, int i, int64_t sample, int64_t channel)
{
    return n.coef + (sample * 4 + i) * n.channels + channel;
}

/* Block b merges set b: mean and variance of its channels' parts, and their
 * coefficients. */
static __global__ void __launch_bounds__(MERGERS)
    merge(const __grid_constant__ struct etk_norm_channels n)
{
    __shared__ double slot[ETK_WARP];
    const int64_t set = blockIdx.x, width = n.channels / n.groups;
    const int64_t sample = set / n.groups, first = set % n.groups * width;
    const float2 *part = reinterpret_cast<const float2 *>(n.parts) +
                         (sample * n.channels + first) * n.splits;
    const double about = part[0].x, count = (double)n.rows * (double)width;
    double sum = 0, squares = 0;
    for (int64_t i = threadIdx.x; i < width * n.splits; i += MERGERS) {
        const double rows = (double)rows_of(n, i % n.splits, n.splits);
        const double d = part[i].x - about;
        sum += rows * d;
        squares += part[i].y + rows * d * d;
    }
    sum = etk_block_reduce<MERGERS>(sum, etk_plus(), 0.0, slot) / count;
    squares = etk_block_reduce<MERGERS>(squares, etk_plus(), 0.0, slot) / count;
    const double var =
        squares - sum * sum > 0 || squares != squares ? squares - sum * sum : 0.0;
    const float mean = (float)(about + sum), rstd = (float)(1.0 / sqrt(var + n.eps));
    if (threadIdx.x == 0) {
        if (n.p[ETK_NORM_MEAN])
            static_cast<float *>(n.p[ETK_NORM_MEAN])[set] = mean;
        if (n.p[ETK_NORM_SPREAD])
            static_cast<float *>(n.p[ETK_NORM_SPREAD])[set] =
                n.batch ? (float)var : rstd;
    }
    for (int64_t c = first + threadIdx.x; c < first + width; c += MERGERS) {
        float gamma[1], beta[1];
        etk_params<1>(n.param[ETK_NORM_GAMMA], c, 1, gamma);
        etk_params<1>(n.param[ETK_NORM_BETA], c, 0, beta);
        *coef_of(n, 0, sample, c) = mean;
        *coef_of(n, 1, sample, c) = gamma[0] * rstd;
        *coef_of(n, 2, sample, c) = beta[0];
    }
}

/* Block b adds the parts of set b, each times its gamma, to coefficients. Of batch
 * norm, where a set is a channel, dgamma and dbeta too. */
static __global__ void __launch_bounds__(MERGERS)
    merge_grad(const __grid_constant__ struct etk_norm_channels n)
{
    __shared__ double slot[ETK_WARP];
    const int64_t set = blockIdx.x, width = n.channels / n.groups;
    const int64_t sample = set / n.groups, first = set % n.groups * width;
    const float2 *part = reinterpret_cast<const float2 *>(n.parts) +
                         (sample * n.channels + first) * n.splits;
    const double count = (double)n.rows * (double)width, rstd = rstd_of(n, set);
    const etk_norm_param &gamma = n.param[ETK_NORM_GAMMA];
    double sum = 0, product = 0;
    for (int64_t i = threadIdx.x; i < width * n.splits; i += MERGERS) {
        const double by =
            n.batch || !gamma.p ? 1.0 : etk_param(gamma, first + i / n.splits);
        sum += by * part[i].x;
        product += by * part[i].y;
    }
    sum = etk_block_reduce<MERGERS>(sum, etk_plus(), 0.0, slot);
    product = etk_block_reduce<MERGERS>(product, etk_plus(), 0.0, slot);
    if (n.batch && threadIdx.x == 0) {
        if (n.param[ETK_NORM_DGAMMA].p)
            etk_param_store(n.param[ETK_NORM_DGAMMA], set, (float)(product * rstd));
        if (n.param[ETK_NORM_DBETA].p)
            etk_param_store(n.param[ETK_NORM_DBETA], set, (float)sum);
    }
    if (n.batch && gamma.p) {
        sum *= etk_param(gamma, set);
        product *= etk_param(gamma, set);
    }
    const float mean = static_cast<const float *>(n.p[ETK_NORM_MEAN])[set];
    for (int64_t c = first + threadIdx.x; c < first + width; c += MERGERS) {
        *coef_of(n, 0, sample, c) = mean;
        *coef_of(n, 1, sample, c) =
            (float)rstd * (gamma.p ? etk_param(gamma, c) : 1.0f);
        *coef_of(n, 2, sample, c) = (float)(rstd * sum / count);
        *coef_of(n, 3, sample, c) = (float)(rstd * rstd * rstd * product / count);
    }
}

/* Group norm's dgamma and dbeta: block b adds channel b's parts over samples. */
static __global__ void __launch_bounds__(MERGERS)
    merge_params(const __grid_constant__ struct etk_norm_channels n)
{
    __shared__ double slot[ETK_WARP];
    const int64_t c = blockIdx.x;
    const float2 *part = reinterpret_cast<const float2 *>(n.parts);
    double sum = 0, product = 0;
    for (int64_t i = threadIdx.x; i < n.samples * n.splits; i += MERGERS) {
        const int64_t sample = i / n.splits;
        const float2 v = part[(sample * n.channels + c) * n.splits + i % n.splits];
        sum += v.x;
        product += (double)v.y * rstd_of(n, set_of(n, sample, c));
    }
    sum = etk_block_reduce<MERGERS>(sum, etk_plus(), 0.0, slot);
    product = etk_block_reduce<MERGERS>(product, etk_plus(), 0.0, slot);
    if (threadIdx.x > 0)
        return;
    if (n.param[ETK_NORM_DGAMMA].p)
        etk_param_store(n.param[ETK_NORM_DGAMMA], c, (float)product);
    if (n.param[ETK_NORM_DBETA].p)
        etk_param_store(n.param[ETK_NORM_DBETA], c, (float)sum);
}

/* ---- the writing pass ---- */

/* The coefficients of a thread's channels. */
template <int V> struct coefs {
    float mean[V], scale[V], offset[V], slope[V]; /* forward: OFFSET is beta */
};

/* Y = norm, plus the residual, through relu. The norm is rounded before the sum, as it
 * would be if a kernel of its own stored it: the bits are the same. */
template <class T, int V>
static __device__ __forceinline__ void
put_forward(const struct etk_norm_channels &n, const struct coefs<V> &c,
            const etk_raw<T, V> &x, const etk_raw<T, V> &r, T *y)
{
    float v[V];
#pragma unroll
    for (int k = 0; k < V; k++) {
        v[k] = (x[k] - c.mean[k]) * c.scale[k] + c.offset[k];
        if (n.p[ETK_NORM_RESIDUAL])
            v[k] = etk_up(etk_down<T>(v[k])) + r[k];
        v[k] = n.relu && v[k] < 0 ? 0.0f : v[k];
    }
    etk_put<T, V>(y, v);
}

/* Writes rows FROM, FROM + STEP, ... below END of a thread's channels. dx may be dy: an
 * element is read before it is written, by the thread that alone has it. */
template <class T, int V, bool GRAD>
static __device__ __forceinline__ void
write_rows(const struct etk_norm_channels &n, const struct spot &s,
           const struct coefs<V> &c, int64_t from, int64_t step, int64_t end)
{
    const int64_t base = s.sample * n.rows * n.channels + s.channel;
    const T *x = static_cast<const T *>(n.p[ETK_NORM_X]) + base;
    const T *other = /* residual, or dy */
        static_cast<const T *>(n.p[GRAD ? ETK_NORM_DY : ETK_NORM_RESIDUAL]) + base;
    const T *mask = static_cast<const T *>(n.p[ETK_NORM_RELU_Y]) + base;
    T *out = static_cast<T *>(n.p[GRAD ? ETK_NORM_DX : ETK_NORM_Y]) + base;
    T *dresidual = static_cast<T *>(n.p[ETK_NORM_DRESIDUAL]) + base;
    const bool has_other = GRAD || n.p[ETK_NORM_RESIDUAL], masks = GRAD && n.relu;
    const bool has_out = n.p[GRAD ? ETK_NORM_DX : ETK_NORM_Y];
    constexpr int ROWS = at_once(V, GRAD ? 3 : 2);
    for (int64_t row = from; row < end; row += ROWS * step) {
        etk_raw<T, V> px[ROWS], po[ROWS], py[ROWS];
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            if (row + i * step < end) {
                const int64_t at = (row + i * step) * n.channels;
                px[i].stream(x + at);
                if (has_other)
                    po[i].stream(other + at);
                if (masks)
                    py[i].stream(mask + at);
            }
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            if (row + i * step >= end)
                continue;
            const int64_t at = (row + i * step) * n.channels;
            if (!GRAD) {
                put_forward<T, V>(n, c, px[i], po[i], out + at);
                continue;
            }
            float g[V], v[V];
#pragma unroll
            for (int k = 0; k < V; k++) {
                g[k] = masks && py[i][k] <= 0 ? 0.0f : po[i][k];
                v[k] = c.scale[k] * g[k] - c.offset[k] -
                       c.slope[k] * (px[i][k] - c.mean[k]);
            }
            if (has_out)
                etk_put<T, V>(out + at, v);
            if (n.p[ETK_NORM_DRESIDUAL])
                etk_put<T, V>(dresidual + at, g);
        }
    }
}

/* Block b from the end writes n.each * n.lines neighbouring rows of its channels. */
template <class T, int V, bool GRAD>
static __global__ void __launch_bounds__(THREADS, RESIDENT)
    write_columns(const __grid_constant__ struct etk_norm_channels n)
{
    const int64_t stretch = n.each * n.lines,
                  stretches = (n.rows + stretch - 1) / stretch;
    const struct spot s = spot_of(n, gridDim.x - 1 - blockIdx.x, stretches);
    if (!s.here)
        return;
    struct coefs<V> c;
    const etk_norm_param from = {n.coef, ET_F32, V % 4 == 0};
    const int64_t at = s.sample * 4 * n.channels + s.channel;
    etk_params<V>(from, at, 0, c.mean);
    etk_params<V>(from, at + n.channels, 0, c.scale);
    etk_params<V>(from, at + 2 * n.channels, 0, c.offset);
    if (GRAD)
        etk_params<V>(from, at + 3 * n.channels, 0, c.slope);
    const int64_t begin = s.split * stretch, end = begin + stretch;
    write_rows<T, V, GRAD>(n, s, c, begin + s.line, n.lines,
                           end < n.rows ? end : n.rows);
}

/* ---- everything in one kernel, for batch norm of few rows ---- */

/* Block b computes its channels from end to end. What it reads for the second time lies
 * in the caches. */
template <class T, int V, bool GRAD, bool RELU>
static __global__ void __launch_bounds__(THREADS, RESIDENT)
    small(const __grid_constant__ struct etk_norm_channels n)
{
    __shared__ struct lines<V> l;
    const struct spot s = spot_of(n, blockIdx.x, 1);
    float mean[V] = {0}, a[V] = {0}, b[V] = {0}, count = 0;
    if (s.here) {
        if (GRAD)
            load_means<V>(n, s, mean);
        count = add_rows<T, V, GRAD, RELU>(n, s, 1, mean, a, b);
    }
    join_lines<V, GRAD>(n, s, l, count, a, b);
    if (!s.here)
        return;
    const bool first = s.line == 0;
    const float rows = (float)n.rows;
    struct coefs<V> c;
#pragma unroll
    for (int k = 0; k < V; k++) {
        const int64_t channel = s.channel + k;
        const float sum = l.a[k][s.column], other = l.b[k][s.column];
        float gamma[1];
        etk_params<1>(n.param[ETK_NORM_GAMMA], channel, 1, gamma);
        if (!GRAD) {
            float var = other / rows, beta[1];
            etk_params<1>(n.param[ETK_NORM_BETA], channel, 0, beta);
            c.mean[k] = sum;
            c.scale[k] = gamma[0] / sqrtf(var + (float)n.eps);
            c.offset[k] = beta[0];
            if (first && n.p[ETK_NORM_MEAN])
                static_cast<float *>(n.p[ETK_NORM_MEAN])[channel] = c.mean[k];
            if (first && n.p[ETK_NORM_SPREAD])
                static_cast<float *>(n.p[ETK_NORM_SPREAD])[channel] = var;
        } else {
            const float rstd = rstd_of(n, channel);
            c.mean[k] = mean[k];
            c.scale[k] = gamma[0] * rstd;
            c.offset[k] = c.scale[k] * (sum / rows);
            c.slope[k] = c.scale[k] * rstd * rstd * (other / rows);
            if (first && n.param[ETK_NORM_DGAMMA].p)
                etk_param_store(n.param[ETK_NORM_DGAMMA], channel, other * rstd);
            if (first && n.param[ETK_NORM_DBETA].p)
                etk_param_store(n.param[ETK_NORM_DBETA], channel, sum);
        }
    }
    if (n.p[GRAD ? ETK_NORM_DX : ETK_NORM_Y] || n.p[ETK_NORM_DRESIDUAL])
        write_rows<T, V, GRAD>(n, s, c, s.line, n.lines, n.rows);
}

/* ---- launching ---- */

#define TRY(call)                                                                      \
    do {                                                                               \
        cudaError_t code_ = (call);                                                    \
        if (code_ != cudaSuccess)                                                      \
            return code_;                                                              \
    } while (0)

template <class T, int V, bool GRAD, bool RELU>
static cudaError_t
launch_all(const struct etk_norm_channels *n, cudaStream_t stream)
{
    const int threads = THREADS;
    if (n->small)
        return etk_launch(small<T, V, GRAD, RELU>, (unsigned)n->tiles, threads, 0,
                          stream, *n);
    unsigned sets = (unsigned)(n->batch ? n->channels : n->samples * n->groups);
    TRY(etk_launch(sum_columns<T, V, GRAD, RELU>,
                   (unsigned)(n->tiles * n->splits * n->samples), threads, 0, stream,
                   *n));
    TRY(etk_launch(GRAD ? merge_grad : merge, sets, MERGERS, 0, stream, *n));
    if (GRAD && !n->batch &&
        (n->param[ETK_NORM_DGAMMA].p || n->param[ETK_NORM_DBETA].p))
        TRY(etk_launch(merge_params, (unsigned)n->channels, MERGERS, 0, stream, *n));
    if (!n->p[GRAD ? ETK_NORM_DX : ETK_NORM_Y] && !n->p[ETK_NORM_DRESIDUAL])
        return cudaSuccess;
    int64_t stretches = etk_ceil_div(n->rows, n->each * n->lines);
    return etk_launch(write_columns<T, V, GRAD>,
                      (unsigned)(n->tiles * stretches * n->samples), threads, 0, stream,
                      *n);
}

template <class T, int V>
static cudaError_t
launch_wide(const struct etk_norm_channels *n, bool grad, cudaStream_t stream)
{
    return !grad     ? launch_all<T, V, false, false>(n, stream)
           : n->relu ? launch_all<T, V, true, true>(n, stream)
                     : launch_all<T, V, true, false>(n, stream);
}

template <class T>
static cudaError_t
launch(const struct etk_norm_channels *n, bool grad, cudaStream_t stream)
{
    const int wide = etk_lanes<T>::count;
    return n->vector == 1 ? launch_wide<T, 1>(n, grad, stream)
                          : launch_wide<T, wide>(n, grad, stream);
}

cudaError_t
etk_launch_norm_channels(const struct etk_norm_channels *n, cudaStream_t stream)
{
    return ETK_FLOATS(n->dtype, launch, n, false, stream);
}

cudaError_t
etk_launch_norm_channels_grad(const struct etk_norm_channels *n, cudaStream_t stream)
{
    return ETK_FLOATS(n->dtype, launch, n, true, stream);
}
