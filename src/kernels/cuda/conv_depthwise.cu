/* SPDX-License-Identifier: Apache-2.0 */
/* conv_depthwise.cu: convolution with one filter per channel, and its gradients.
 *
 * cuDNN compiles a kernel for each shape of these (0.2-0.5 s); EfficientNet has dozens.
 * They are bound by memory, so each kernel reads its images once from DRAM: a thread
 * takes V neighbouring channels (16 bytes, or one where the channels or an address do
 * not allow that) of STRIP places of a row, and finds the neighbours it shares with
 * other threads in the first-level cache. Filters [C, R, R] are brought into shared
 * memory as [R, R, channels of the block]. Everything is dense and channels-last.
 *
 * Direct convolution; the weights' gradient in two stages with a fixed number of parts,
 * which are added in their order. */
#include "kernels/cuda/conv.h"
#include "kernels/cuda/kernel.cuh"

namespace
{

enum {
    THREADS = 256,
    LANES = 8, /* threads side by side over channels: 64 bf16 of a cache line */
    ROWS = THREADS / LANES,
    STRIP = 4,         /* places of a row that a thread computes */
    FILTER_LANES = 32, /* the same for the weights' gradient */
    FILTER_ROWS = THREADS / FILTER_LANES,
    MOST_PARTS = 512,
};

/* The sizes as 32-bit numbers; offsets are 64-bit. */
struct shape {
    int n, c, from[2], to[2]; /* images, channels, sizes of what is read and written */
    int pad[2];
};

template <class T, int V>
__device__ __forceinline__ void
load(float *to, const T *from)
{
    etk_pack<T, V> p = *reinterpret_cast<const etk_pack<T, V> *>(from);
#pragma unroll
    for (int i = 0; i < V; i++)
        to[i] = etk_up(p.v[i]);
}

template <class T, int V>
__device__ __forceinline__ void
store(T *to, const float *from)
{
    etk_pack<T, V> p;
#pragma unroll
    for (int i = 0; i < V; i++)
        p.v[i] = etk_down<T>(from[i]);
    *reinterpret_cast<etk_pack<T, V> *>(to) = p;
}

/* Filters of the block's channels into TAP [R * R][LANES * V]; FLIP turns them
 * round. */
template <class T, int R, int V, bool FLIP>
__device__ __forceinline__ void
load_filters(float *tap, const T *w, int first, int channels)
{
    for (int e = threadIdx.x; e < R * R * LANES * V; e += THREADS) {
        int c = e / (R * R), at = e % (R * R), into = FLIP ? R * R - 1 - at : at;
        tap[into * LANES * V + c] =
            first + c < channels ? etk_up(w[(int64_t)(first + c) * R * R + at]) : 0.f;
    }
    __syncthreads();
}

/* Block (bx, by): channels LANES V by ..; thread t channels V (t mod LANES) .. of those
 * and strip ROWS bx + t / LANES of all rows of all images. With stride 1 the input's
 * gradient is this too, with filters turned round and other padding. A place outside is
 * never loaded; a strip beyond the last or channels beyond C return before they do. */
template <class T, int R, int S, int V, bool FLIP>
__global__ void __launch_bounds__(THREADS, 2)
    forward(shape d, const T *x, const T *w, const T *bias, int64_t sb, T *y,
            int64_t strips)
{
    __shared__ float tap[R * R * LANES * V];
    int first = blockIdx.y * LANES * V;
    load_filters<T, R, V, FLIP>(tap, w, first, d.c);
    int lane = threadIdx.x % LANES, c = first + lane * V;
    int64_t strip = (int64_t)blockIdx.x * ROWS + threadIdx.x / LANES;
    if (strip >= strips || c >= d.c)
        return;
    int per_row = (d.to[1] + STRIP - 1) / STRIP;
    int q0 = (int)(strip % per_row) * STRIP, p = (int)(strip / per_row % d.to[0]);
    int64_t n = strip / per_row / d.to[0];
    float sum[STRIP][V] = {};
    for (int r = 0; r < R; r++) {
        int h = p * S - d.pad[0] + r;
        if (h < 0 || h >= d.from[0])
            continue;
        const T *row = x + (n * d.from[0] + h) * d.from[1] * d.c + c;
        float f[R][V];
#pragma unroll
        for (int s = 0; s < R; s++)
#pragma unroll
            for (int i = 0; i < V; i++)
                f[s][i] = tap[(r * R + s) * LANES * V + lane * V + i];
#pragma unroll
        for (int k = 0; k < (STRIP - 1) * S + R; k++) {
            int at = q0 * S - d.pad[1] + k;
            if (at < 0 || at >= d.from[1])
                continue;
            float v[V];
            load<T, V>(v, row + (int64_t)at * d.c);
#pragma unroll
            for (int j = 0; j < STRIP; j++)
                if (k - j * S >= 0 && k - j * S < R)
#pragma unroll
                    for (int i = 0; i < V; i++)
                        sum[j][i] += v[i] * f[k - j * S][i];
        }
    }
#pragma unroll
    for (int j = 0; j < STRIP; j++) {
        if (q0 + j >= d.to[1])
            continue;
        if (bias)
#pragma unroll
            for (int i = 0; i < V; i++)
                sum[j][i] += etk_up(bias[(c + i) * sb]);
        store<T, V>(y + ((n * d.to[0] + p) * d.to[1] + q0 + j) * d.c + c, sum[j]);
    }
}

/* The input's gradient for stride 2: the same threads over x, reading those places of y
 * whose taps fall on theirs. */
template <class T, int R, int V>
__global__ void __launch_bounds__(THREADS, 2)
    data2(shape d, const T *y, const T *w, const T *bias, int64_t sb, T *x,
          int64_t strips)
{
    __shared__ float tap[R * R * LANES * V];
    int first = blockIdx.y * LANES * V;
    load_filters<T, R, V, false>(tap, w, first, d.c);
    int lane = threadIdx.x % LANES, c = first + lane * V;
    int64_t strip = (int64_t)blockIdx.x * ROWS + threadIdx.x / LANES;
    if (strip >= strips || c >= d.c)
        return;
    int per_row = (d.to[1] + STRIP - 1) / STRIP;
    int w0 = (int)(strip % per_row) * STRIP, h = (int)(strip / per_row % d.to[0]);
    int64_t n = strip / per_row / d.to[0];
    float sum[STRIP][V] = {};
    for (int r = 0; r < R; r++) {
        int p = h + d.pad[0] - r;
        if (p < 0 || p % 2 || p / 2 >= d.from[0])
            continue;
        const T *row = y + (n * d.from[0] + p / 2) * d.from[1] * d.c + c;
#pragma unroll 1 /* registers: the taps of a row one by one */
        for (int s = 0; s < R; s++) {
            const float *f = tap + (r * R + s) * LANES * V + lane * V;
#pragma unroll
            for (int j = 0; j < STRIP; j++) {
                int q = w0 + j + d.pad[1] - s;
                if (q < 0 || q % 2 || q / 2 >= d.from[1])
                    continue;
                float v[V];
                load<T, V>(v, row + (int64_t)(q / 2) * d.c);
#pragma unroll
                for (int i = 0; i < V; i++)
                    sum[j][i] += v[i] * f[i];
            }
        }
    }
#pragma unroll
    for (int j = 0; j < STRIP; j++) {
        if (w0 + j >= d.to[1])
            continue;
        if (bias)
#pragma unroll
            for (int i = 0; i < V; i++)
                sum[j][i] += etk_up(bias[(c + i) * sb]);
        store<T, V>(x + ((n * d.to[0] + h) * d.to[1] + w0 + j) * d.c + c, sum[j]);
    }
}

/* Stage 1: block (bx, by) adds up the products of rows bx, bx + PARTS, ... of y (N P
 * rows) for channels FILTER_LANES V by ..; thread t has V channels and every
 * FILTER_ROWS-th place of a row. PART [PARTS][R * R][C], f32. */
template <class T, int R, int S, int V>
__global__ void __launch_bounds__(THREADS)
    filter_parts(shape d, const T *x, const T *dy, float *part, int64_t rows)
{
    __shared__ float slot[FILTER_ROWS][FILTER_LANES * V];
    int lane = threadIdx.x % FILTER_LANES, turn = threadIdx.x / FILTER_LANES;
    int first = blockIdx.y * FILTER_LANES * V, c = first + lane * V;
    float sum[R * R][V] = {};
    for (int64_t row = blockIdx.x; row < rows && c < d.c; row += gridDim.x) {
        int64_t n = row / d.to[0];
        int h0 = (int)(row % d.to[0]) * S - d.pad[0];
        const T *image = x + n * d.from[0] * d.from[1] * d.c + c;
        for (int q = turn; q < d.to[1]; q += FILTER_ROWS) {
            float g[V];
            load<T, V>(g, dy + (row * d.to[1] + q) * d.c + c);
            int w0 = q * S - d.pad[1];
#pragma unroll
            for (int r = 0; r < R; r++)
#pragma unroll
                for (int s = 0; s < R; s++) {
                    int h = h0 + r, at = w0 + s;
                    if (h < 0 || h >= d.from[0] || at < 0 || at >= d.from[1])
                        continue;
                    float v[V];
                    load<T, V>(v, image + ((int64_t)h * d.from[1] + at) * d.c);
#pragma unroll
                    for (int i = 0; i < V; i++)
                        sum[r * R + s][i] += v[i] * g[i];
                }
        }
    }
    /* The FILTER_ROWS sums of a channel, in their order. */
#pragma unroll
    for (int k = 0; k < R * R; k++) {
#pragma unroll
        for (int i = 0; i < V; i++)
            slot[turn][lane * V + i] = sum[k][i];
        __syncthreads();
        if (threadIdx.x < FILTER_LANES * V && first + (int)threadIdx.x < d.c) {
            float all = 0;
            for (int t = 0; t < FILTER_ROWS; t++)
                all += slot[t][threadIdx.x];
            part[((int64_t)blockIdx.x * R * R + k) * d.c + first + threadIdx.x] = all;
        }
        __syncthreads();
    }
}

/* Stage 2: thread t adds the parts of weight t of [R * R][C], in their order. */
template <class T, int TAPS>
__global__ void __launch_bounds__(THREADS)
    filter_sum(const float *part, int parts, int channels, T *dw)
{
    int64_t t = etk_thread(), count = (int64_t)TAPS * channels;
    if (t >= count)
        return;
    float sum = 0;
    for (int i = 0; i < parts; i++)
        sum += part[i * count + t];
    dw[t % channels * TAPS + t / channels] = etk_down<T>(sum);
}

/* Blocks of stage 1 beside each other over rows: four a multiprocessor. */
int
parts_of(const struct etk_conv *v, int64_t channel_blocks)
{
    int64_t rows = v->n * v->y[0], want = etk_ceil_div(4 * v->sm_count, channel_blocks);
    want = want < MOST_PARTS ? want : (int64_t)MOST_PARTS;
    return (int)(want < rows ? want : rows > 0 ? rows : 1);
}

struct shape
shape_of(const struct etk_conv *v, bool from_y)
{
    const int64_t *from = from_y ? v->y : v->x, *to = from_y ? v->x : v->y;
    return {(int)v->n,
            (int)v->c,
            {(int)from[0], (int)from[1]},
            {(int)to[0], (int)to[1]},
            {v->pad[0], v->pad[1]}};
}

struct arrays {
    const void *a, *b, *bias;
    void *out, *ws;
};

template <class T, int R, int S, int V>
cudaError_t
launch_filter(const struct etk_conv *v, const struct arrays *p, cudaStream_t stream)
{
    shape d = shape_of(v, false);
    int64_t blocks = etk_ceil_div(v->c, FILTER_LANES * V);
    int parts = parts_of(v, blocks);
    cudaError_t code = etk_launch(
        filter_parts<T, R, S, V>, dim3((unsigned)parts, (unsigned)blocks), THREADS, 0,
        stream, d, (const T *)p->a, (const T *)p->b, (float *)p->ws, v->n * v->y[0]);
    if (code != cudaSuccess)
        return code;
    return etk_launch(filter_sum<T, R * R>,
                      (unsigned)etk_ceil_div(v->c * R * R, (int64_t)THREADS), THREADS,
                      0, stream, (const float *)p->ws, parts, (int)v->c, (T *)p->out);
}

template <class T, int R, int S, int V>
cudaError_t
launch_images(const struct etk_conv *v, const struct arrays *p, cudaStream_t stream)
{
    bool data = v->kind == ETK_CONV_DATA;
    shape d = shape_of(v, data);
    int64_t strips = v->n * d.to[0] * etk_ceil_div(d.to[1], STRIP);
    dim3 grid((unsigned)etk_ceil_div(strips, ROWS),
              (unsigned)etk_ceil_div(v->c, LANES * V));
    const T *from = (const T *)p->a, *w = (const T *)p->b, *bias = (const T *)p->bias;
    if (!data)
        return etk_launch(forward<T, R, S, V, false>, grid, THREADS, 0, stream, d, from,
                          w, bias, v->sb, (T *)p->out, strips);
    if (S == 2)
        return etk_launch(data2<T, R, V>, grid, THREADS, 0, stream, d, from, w, bias,
                          v->sb, (T *)p->out, strips);
    d.pad[0] = R - 1 - d.pad[0];
    d.pad[1] = R - 1 - d.pad[1];
    return etk_launch(forward<T, R, 1, V, true>, grid, THREADS, 0, stream, d, from, w,
                      bias, v->sb, (T *)p->out, strips);
}

bool
is_aligned(const void *p, size_t bytes)
{
    return (uintptr_t)p % bytes == 0;
}

/* The widest vectors that registers allow: R * R sums of V channels for FILTER. */
template <class T, int R, int S>
cudaError_t
launch_taps(const struct etk_conv *v, const struct arrays *p, cudaStream_t stream)
{
    enum { V = etk_lanes<T>::count, VF = R == 3 ? 4 : 2 };
    if (v->kind == ETK_CONV_FILTER) {
        bool wide = v->c % VF == 0 && is_aligned(p->a, VF * sizeof(T)) &&
                    is_aligned(p->b, VF * sizeof(T));
        return wide ? launch_filter<T, R, S, VF>(v, p, stream)
                    : launch_filter<T, R, S, 1>(v, p, stream);
    }
    bool wide = v->c % V == 0 && is_aligned(p->a, 16) && is_aligned(p->out, 16);
    return wide ? launch_images<T, R, S, V>(v, p, stream)
                : launch_images<T, R, S, 1>(v, p, stream);
}

template <class T>
cudaError_t
launch(const struct etk_conv *v, const struct arrays *p, cudaStream_t stream)
{
    bool twice = v->stride[0] == 2;
    if (v->taps[0] == 3)
        return twice ? launch_taps<T, 3, 2>(v, p, stream)
                     : launch_taps<T, 3, 1>(v, p, stream);
    return twice ? launch_taps<T, 5, 2>(v, p, stream)
                 : launch_taps<T, 5, 1>(v, p, stream);
}

} // namespace

bool
etk_conv_is_depthwise(const struct etk_conv *v)
{
    int64_t most = INT32_MAX / 4; /* sizes are 32-bit numbers in the kernels */
    return v->groups == v->c && v->c == v->k && v->taps[0] == v->taps[1] &&
           (v->taps[0] == 3 || v->taps[0] == 5) && v->dilation[0] == 1 &&
           v->dilation[1] == 1 && v->stride[0] == v->stride[1] && v->stride[0] <= 2 &&
           v->pad[0] < v->taps[0] && v->pad[1] < v->taps[1] && v->n < most &&
           v->c < most && v->x[0] < most && v->x[1] < most;
}

size_t
etk_conv_depthwise_ws(const struct etk_conv *v)
{
    if (v->kind != ETK_CONV_FILTER)
        return 0;
    /* The widest vectors give the fewest blocks over channels, so the most parts. */
    int64_t parts = parts_of(v, etk_ceil_div(v->c, FILTER_LANES * 4));
    return (size_t)(parts * v->taps[0] * v->taps[1] * v->c) * sizeof(float);
}

cudaError_t
etk_launch_conv_depthwise(const struct etk_conv *v, const void *a, const void *b,
                          const void *bias, void *out, void *ws, cudaStream_t stream)
{
    struct arrays p = {a, b, bias, out, ws};
    return ETK_FLOATS(v->dtype, launch, v, &p, stream);
}
