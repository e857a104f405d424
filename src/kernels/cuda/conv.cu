/* SPDX-License-Identifier: Apache-2.0 */
/* conv.cu: convolution of arrays with any strides: what no engine takes.
 *
 * A product of matrices that are never written down (implicit GEMM): out[m,j] =
 * sum_i a(m,i) b(i,j), for one group at a time, where an index of a pair stands for a
 * place of an array:
 *
 *            m                 j               i                a    b
 *   FORWARD  image, row, col   channel of y    tap, channel     x    w
 *   DATA     image, row, col   channel of x    tap, channel     y    w
 *   FILTER   channel of y      tap, channel    image, row, col  y    x
 *
 * A block of 256 threads computes SIDE x SIDE results, each thread 4 x 4 of them, from
 * DEPTH terms at a time in shared memory; terms are added in the order of i, whatever
 * the grid. Bytes moved: every operand is read once per SIDE results of the other side,
 * through the caches. No index leaves its array: places that are outside are answered
 * with 0 before an address is made, results beyond the edge are not stored. */
#include "kernels/cuda/conv.h"
#include "kernels/cuda/kernel.cuh"

namespace
{

enum { THREADS = 256, SIDE = 64, DEPTH = 16, EACH = 4 };

/* A place of an image: n, row, column. */
struct place {
    int64_t n, h, w;
};

__device__ __forceinline__ place
place_of(int64_t i, const int64_t *size)
{
    place at;
    at.w = i % size[1];
    i /= size[1];
    at.h = i % size[0];
    at.n = i / size[0];
    return at;
}

/* A tap and a channel, the channel fastest: it is the dense axis. */
struct tap {
    int r, s;
    int64_t c;
};

__device__ __forceinline__ tap
tap_of(int64_t i, int64_t channels, int width)
{
    tap t;
    t.c = i % channels;
    i /= channels;
    t.s = (int)(i % width);
    t.r = (int)(i / width);
    return t;
}

/* x at tap T of the place P of y; C: channel of all. 0 outside. */
template <class T>
__device__ __forceinline__ float
x_under(const etk_conv &v, const T *x, const place &p, const tap &t, int64_t c)
{
    int64_t h = p.h * v.stride[0] - v.pad[0] + (int64_t)t.r * v.dilation[0];
    int64_t w = p.w * v.stride[1] - v.pad[1] + (int64_t)t.s * v.dilation[1];
    if (h < 0 || h >= v.x[0] || w < 0 || w >= v.x[1])
        return 0;
    return etk_up(x[p.n * v.sx[0] + c * v.sx[1] + h * v.sx[2] + w * v.sx[3]]);
}

/* y where tap T reads the place P of x; K: channel of all. 0 if nowhere. */
template <class T>
__device__ __forceinline__ float
y_over(const etk_conv &v, const T *y, const place &p, const tap &t, int64_t k)
{
    int64_t h = p.h + v.pad[0] - (int64_t)t.r * v.dilation[0];
    int64_t w = p.w + v.pad[1] - (int64_t)t.s * v.dilation[1];
    if (h < 0 || w < 0 || h % v.stride[0] || w % v.stride[1])
        return 0;
    h /= v.stride[0];
    w /= v.stride[1];
    if (h >= v.y[0] || w >= v.y[1])
        return 0;
    return etk_up(y[p.n * v.sy[0] + k * v.sy[1] + h * v.sy[2] + w * v.sy[3]]);
}

/* The matrices of one group: ROWS x TERMS and TERMS x COLUMNS. */
template <class T> struct matrices {
    const etk_conv &v;
    const T *x, *w, *y;                           /* NULL: the result */
    int64_t rows, columns, terms, group, in, out; /* channels of x and y in a group */

    __device__ float left(int64_t m, int64_t i) const
    {
        if (m >= rows || i >= terms)
            return 0;
        if (v.kind == ETK_CONV_FORWARD) {
            tap t = tap_of(i, in, v.taps[1]);
            return x_under(v, x, place_of(m, v.y), t, group * in + t.c);
        }
        if (v.kind == ETK_CONV_DATA) {
            tap t = tap_of(i, out, v.taps[1]);
            return y_over(v, y, place_of(m, v.x), t, group * out + t.c);
        }
        place p = place_of(i, v.y);
        return etk_up(y[p.n * v.sy[0] + (group * out + m) * v.sy[1] + p.h * v.sy[2] +
                        p.w * v.sy[3]]);
    }
    __device__ float right(int64_t i, int64_t j) const
    {
        if (i >= terms || j >= columns)
            return 0;
        if (v.kind == ETK_CONV_FILTER) {
            tap t = tap_of(j, in, v.taps[1]);
            return x_under(v, x, place_of(i, v.y), t, group * in + t.c);
        }
        bool forward = v.kind == ETK_CONV_FORWARD;
        tap t = tap_of(i, forward ? in : out, v.taps[1]);
        int64_t k = group * out + (forward ? j : t.c), c = forward ? t.c : j;
        return etk_up(w[k * v.sw[0] + c * v.sw[1] + t.r * v.sw[2] + t.s * v.sw[3]]);
    }
    /* Where result (m, j) lies, and the channel of its bias. */
    __device__ int64_t place_of_result(int64_t m, int64_t j, int64_t *channel) const
    {
        if (v.kind == ETK_CONV_FILTER) {
            tap t = tap_of(j, in, v.taps[1]);
            return (group * out + m) * v.sw[0] + t.c * v.sw[1] + t.r * v.sw[2] +
                   t.s * v.sw[3];
        }
        bool forward = v.kind == ETK_CONV_FORWARD;
        const int64_t *stride = forward ? v.sy : v.sx;
        place p = place_of(m, forward ? v.y : v.x);
        *channel = group * (forward ? out : in) + j;
        return p.n * stride[0] + *channel * stride[1] + p.h * stride[2] +
               p.w * stride[3];
    }
};

/* Block b computes rows 64 br .., columns 64 bc .. of group bg, where b = (bg
 * column_tiles + bc) row_tiles + br (one axis of the grid, since the others end at
 * 65,535); thread t rows 4 (t / 16) .. and columns 4 (t % 16) .. of those. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    convolve(etk_conv v, const T *x, const T *w, const T *y, const T *bias, T *result,
             int64_t rows, int64_t columns, int64_t terms, unsigned row_tiles,
             unsigned column_tiles)
{
    __shared__ float left[DEPTH][SIDE + 1], right[DEPTH][SIDE + 1];
    int64_t in = v.c / v.groups, out = v.k / v.groups;
    unsigned tile = blockIdx.x / row_tiles;
    const matrices<T> g = {v,  x,  w, y, rows, columns, terms, tile / column_tiles,
                           in, out};
    int64_t m0 = (int64_t)(blockIdx.x % row_tiles) * SIDE;
    int64_t j0 = (int64_t)(tile % column_tiles) * SIDE;
    int tm = threadIdx.x / (SIDE / EACH) * EACH,
        tj = threadIdx.x % (SIDE / EACH) * EACH;
    float sum[EACH][EACH] = {};
    for (int64_t i0 = 0; i0 < terms; i0 += DEPTH) {
        for (int e = threadIdx.x; e < DEPTH * SIDE; e += THREADS) {
            /* Neighbours in memory are neighbours of i on the left but for FILTER. */
            left[e % DEPTH][e / DEPTH] = g.left(m0 + e / DEPTH, i0 + e % DEPTH);
            right[e / SIDE][e % SIDE] = g.right(i0 + e / SIDE, j0 + e % SIDE);
        }
        __syncthreads();
#pragma unroll 4
        for (int i = 0; i < DEPTH; i++)
            for (int a = 0; a < EACH; a++)
                for (int b = 0; b < EACH; b++)
                    sum[a][b] += left[i][tm + a] * right[i][tj + b];
        __syncthreads();
    }
    for (int a = 0; a < EACH; a++)
        for (int b = 0; b < EACH; b++) {
            int64_t m = m0 + tm + a, j = j0 + tj + b, channel = 0;
            if (m >= rows || j >= columns)
                continue;
            int64_t at = g.place_of_result(m, j, &channel);
            float add = bias ? etk_up(bias[channel * v.sb]) : 0;
            result[at] = etk_down<T>(sum[a][b] + add);
        }
}

template <class T>
cudaError_t
launch(const struct etk_conv *v, const void *a, const void *b, const void *bias,
       void *out, cudaStream_t stream)
{
    bool forward = v->kind == ETK_CONV_FORWARD, filter = v->kind == ETK_CONV_FILTER;
    int64_t taps = (int64_t)v->taps[0] * v->taps[1];
    int64_t in = v->c / v->groups, of = v->k / v->groups;
    int64_t places =
        v->n * (v->kind == ETK_CONV_DATA ? v->x[0] * v->x[1] : v->y[0] * v->y[1]);
    int64_t rows = filter ? of : places;
    int64_t columns = filter ? in * taps : forward ? of : in;
    int64_t terms = filter ? places : taps * (forward ? in : of);
    const T *x = (const T *)(v->kind == ETK_CONV_DATA ? NULL : a);
    const T *w = (const T *)(filter ? NULL : b);
    const T *y = (const T *)(forward ? NULL : filter ? b : a);
    int64_t row_tiles = etk_ceil_div(rows, SIDE), tiles = etk_ceil_div(columns, SIDE);
    /* A card holds neither so many results nor so many groups. */
    if (row_tiles > INT32_MAX || tiles > INT32_MAX / row_tiles ||
        v->groups > INT32_MAX / (row_tiles * tiles))
        return cudaErrorInvalidConfiguration;
    return etk_launch(convolve<T>, (unsigned)(row_tiles * tiles * v->groups), THREADS,
                      0, stream, *v, x, w, y, (const T *)bias, (T *)out, rows, columns,
                      terms, (unsigned)row_tiles, (unsigned)tiles);
}

} // namespace

cudaError_t
etk_launch_conv(const struct etk_conv *v, const void *a, const void *b,
                const void *bias, void *out, cudaStream_t stream)
{
    return ETK_FLOATS(v->dtype, launch, v, a, b, bias, out, stream);
}
