/* SPDX-License-Identifier: Apache-2.0 */
/* sdpa.cu: attention and its gradient in tiles, for any strides, lengths and bias.
 *
 *   s = scale q k^T + bias, j <= i where causal;  lse = log sum e^s;  o = e^(s - lse) v
 *   p = e^(s - lse);  ds = scale p (do v^T - delta), delta = do . o
 *   dq = ds k;  dk = ds^T q;  dv = p^T do
 *
 * Dao et al., arXiv:2205.14135 and Dao, arXiv:2307.08691: scores are made tile by tile
 * in shared memory and never stored; forward with a running maximum and sum per row,
 * back again from lse. Three passes back, each of which owns what it writes, so there
 * are no atomics and sums have one order: delta; dq, by a block per tile of queries; dk
 * and dv, by a block per tile of keys. Scores are made twice back (14 T S D operations
 * for 10), which is what determinism costs.
 *
 * In memory elements are f32, bf16 or f16; in shared memory and registers all is f32
 * and products are FMAs: f32 keeps its 24 bits. What tensor cores may round goes to
 * cuDNN (sdpa.c).
 *
 * A block has 16 x 16 threads and works on tiles of SIDE rows of WIDTH elements (zeros
 * behind the last row and the last element), SIDE 64 up to 128 elements, else 32. Of a
 * tile of scores, thread (down, along) has rows down + 16 r and columns along + 16 c,
 * r, c < SIDE / 16; of a tile of results, the same rows and elements 4 along + 64 c ..
 * + 3. Scores go through shared memory between the two products; those of a row are
 * written and read by the 16 threads of one DOWN, half a warp. Rows are WIDTH + 4
 * floats apart: 8 neighbouring rows, 16 bytes of each, are all 32 banks.
 *
 * Every index of an array is checked against its length where it is loaded or stored;
 * shared memory is indexed by thread and compile-time bounds alone. Bytes: q, o once,
 * k, v once per tile of queries, from the second-level cache after the first block. */
#include "kernels/cuda/kernel.cuh"
#include "kernels/cuda/sdpa.h"

namespace
{

enum { GRID = 16, THREADS = GRID * GRID, QUAD = 4 };

typedef etk_pack<float, QUAD> quad;

/* How a block's tiles lie in shared memory. */
template <int Side, int Width> struct shape {
    enum {
        SIDE = Side,
        WIDTH = Width,
        PITCH = Width + QUAD, /* floats from row to row of a tile of heads */
        SCORES = Side + QUAD, /* and of a tile of scores */
        EACH = Side / GRID,
        PARTS = Width / (GRID * QUAD),
        TILE = Side * PITCH, /* floats */
        FORWARD_TILES = 2,   /* of heads, at a time */
        BACKWARD_TILES = 4,
        /* Blocks on a multiprocessor that shared memory has room for: what registers
         * are given out by. */
        FORWARD = Width <= 128 ? 2 : 1,
        BACKWARD = Width <= 64 ? 2 : 1,
    };
};

__device__ __forceinline__ int64_t
least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- between memory and tiles ---- */

/* Rows FIRST .. of the plane P, of which there are LENGTH, into TILE; zeros for rows
 * and elements that are not there. Threads take neighbouring elements. Was all that the
 * thread took finite? (The difference of a number and itself is else NaN.) */
template <class G, class T>
__device__ __forceinline__ bool
load_rows_of(float *tile, const T *p, const struct etk_heads &at, int64_t first,
             int64_t length, int depth)
{
    enum { LANES = etk_lanes<T>::count };
    p += first * at.row;
    int rows = (int)least(length - first, G::SIDE);
    float nothing = 0;
    if (at.wide) {
        for (int i = threadIdx.x; i < G::SIDE * (G::WIDTH / LANES); i += THREADS) {
            int row = i / (G::WIDTH / LANES), d = i % (G::WIDTH / LANES) * LANES;
            etk_pack<T, LANES> x = {};
            if (row < rows && d < depth)
                x = *(const etk_pack<T, LANES> *)(p + row * at.row + d);
            for (int n = 0; n < LANES; n++) {
                float number = etk_up(x.v[n]);
                nothing += number - number;
                tile[row * G::PITCH + d + n] = number;
            }
        }
        return nothing == 0;
    }
    for (int i = threadIdx.x; i < G::SIDE * G::WIDTH; i += THREADS) {
        int row = i / G::WIDTH, d = i % G::WIDTH;
        float number =
            row < rows && d < depth ? etk_up(p[row * at.row + d * at.step]) : 0.f;
        nothing += number - number;
        tile[row * G::PITCH + d] = number;
    }
    return nothing == 0;
}

template <class G>
__device__ __forceinline__ bool
load_rows(float *tile, const void *p, const struct etk_sdpa &a,
          const struct etk_heads &at, int64_t plane, int64_t first, int64_t length)
{
    int64_t begin = plane / a.H * at.b + plane % a.H * at.h;
    int depth = (int)a.D;
    if (a.dtype == ET_F32)
        return load_rows_of<G>(tile, (const float *)p + begin, at, first, length,
                               depth);
    if (a.dtype == ET_BF16)
        return load_rows_of<G>(tile, (const etk_bf16 *)p + begin, at, first, length,
                               depth);
    return load_rows_of<G>(tile, (const etk_f16 *)p + begin, at, first, length, depth);
}

/* The thread's part of a tile of results, times FACTOR by row, to rows FIRST .. of a
 * plane of LENGTH rows. */
template <class G, class T>
__device__ __forceinline__ void
store_rows_of(T *p, const struct etk_heads &at, int64_t first, int64_t length,
              int depth, const quad (&x)[G::EACH][G::PARTS],
              const float (&factor)[G::EACH])
{
    int down = (int)threadIdx.x / GRID, along = (int)threadIdx.x % GRID;
    for (int r = 0; r < G::EACH; r++) {
        int64_t row = first + down + r * GRID;
        if (row >= length)
            continue;
        for (int c = 0; c < G::PARTS; c++) {
            int d = (along + c * GRID) * QUAD;
            if (at.wide && d < depth) {
                etk_pack<T, QUAD> y;
                for (int n = 0; n < QUAD; n++)
                    y.v[n] = etk_down<T>(x[r][c].v[n] * factor[r]);
                *(etk_pack<T, QUAD> *)(p + row * at.row + d) = y;
                continue;
            }
            for (int n = 0; n < QUAD; n++)
                if (d + n < depth)
                    p[row * at.row + (d + n) * at.step] =
                        etk_down<T>(x[r][c].v[n] * factor[r]);
        }
    }
}

template <class G>
__device__ __forceinline__ void
store_rows(void *p, const struct etk_sdpa &a, const struct etk_heads &at, int64_t plane,
           int64_t first, int64_t length, const quad (&x)[G::EACH][G::PARTS],
           const float (&factor)[G::EACH])
{
    int64_t begin = plane / a.H * at.b + plane % a.H * at.h;
    int depth = (int)a.D;
    if (a.dtype == ET_F32)
        store_rows_of<G>((float *)p + begin, at, first, length, depth, x, factor);
    else if (a.dtype == ET_BF16)
        store_rows_of<G>((etk_bf16 *)p + begin, at, first, length, depth, x, factor);
    else
        store_rows_of<G>((etk_f16 *)p + begin, at, first, length, depth, x, factor);
}

__device__ __forceinline__ float
bias_at(const struct etk_sdpa &a, const void *bias, int64_t plane, int64_t i, int64_t j)
{
    int64_t at = plane / a.H * a.bias_stride[0] + plane % a.H * a.bias_stride[1] +
                 i * a.bias_stride[2] + j * a.bias_stride[3];
    return a.bias == ET_F32    ? ((const float *)bias)[at]
           : a.bias == ET_BF16 ? etk_up(((const etk_bf16 *)bias)[at])
                               : etk_up(((const etk_f16 *)bias)[at]);
}

__device__ __forceinline__ int64_t
lse_at(const struct etk_sdpa &a, int64_t plane, int64_t i)
{
    return plane / a.H * a.lse_stride[0] + plane % a.H * a.lse_stride[1] +
           i * a.lse_stride[2];
}

/* ---- products ---- */

/* SUM + x . y of four elements, in their order: do . v and do . o must round alike,
 * since they cancel where one key has all the weight. */
__device__ __forceinline__ float
add_dot(float sum, const quad &x, const quad &y)
{
    for (int n = 0; n < QUAD; n++)
        sum += x.v[n] * y.v[n];
    return sum;
}

__device__ __forceinline__ quad
quad_at(const float *p)
{
    return *(const quad *)p;
}

/* s = rows of A times rows of B. DEPTH: of the rows, of which whole quads are read. */
template <class G>
__device__ __forceinline__ void
multiply_rows(float (&s)[G::EACH][G::EACH], const float *a, const float *b, int depth)
{
    a += (int)threadIdx.x / GRID * G::PITCH;
    b += (int)threadIdx.x % GRID * G::PITCH;
    for (int r = 0; r < G::EACH; r++)
        for (int c = 0; c < G::EACH; c++)
            s[r][c] = 0;
    for (int d = 0; d < depth; d += QUAD) {
        quad y[G::EACH];
        for (int c = 0; c < G::EACH; c++)
            y[c] = quad_at(b + c * GRID * G::PITCH + d);
        for (int r = 0; r < G::EACH; r++) {
            quad x = quad_at(a + r * GRID * G::PITCH + d);
            for (int c = 0; c < G::EACH; c++)
                s[r][c] = add_dot(s[r][c], x, y[c]);
        }
    }
}

/* SUM += W times the first COUNT rows of B, through the half warp's rows of SCORES,
 * which no other thread touches. W is 0 from COUNT on. FINITE: all of B is; where not,
 * rows of weight 0 are passed over, since 0 times infinity is not 0. */
template <class G>
__device__ __forceinline__ void
add_product(quad (&sum)[G::EACH][G::PARTS], const float (&w)[G::EACH][G::EACH],
            float *scores, const float *b, int count, bool finite)
{
    int down = (int)threadIdx.x / GRID, along = (int)threadIdx.x % GRID;
    scores += down * G::SCORES;
    for (int r = 0; r < G::EACH; r++)
        for (int c = 0; c < G::EACH; c++)
            scores[r * GRID * G::SCORES + along + c * GRID] = w[r][c];
    __syncwarp();
    b += along * QUAD;
    for (int j = 0; j < count; j += QUAD) {
        quad x[G::EACH];
        for (int r = 0; r < G::EACH; r++)
            x[r] = quad_at(scores + r * GRID * G::SCORES + j);
        for (int n = 0; n < QUAD; n++)
            for (int c = 0; c < G::PARTS; c++) {
                quad y = quad_at(b + (j + n) * G::PITCH + c * GRID * QUAD);
                for (int r = 0; r < G::EACH; r++)
                    if (finite || x[r].v[n] != 0)
                        for (int m = 0; m < QUAD; m++)
                            sum[r][c].v[m] += x[r].v[n] * y.v[m];
            }
    }
    __syncwarp();
}

/* Over the 16 threads of one DOWN. */
template <class Op>
__device__ __forceinline__ float
row_reduce(float x, Op op)
{
    for (int lane = GRID / 2; lane > 0; lane /= 2)
        x = op(x, __shfl_xor_sync(0xffffffffu, x, lane));
    return x;
}

/* As the reference: a NaN is seen by the sum. */
struct larger_number {
    __device__ __forceinline__ float operator()(float a, float b) const
    {
        return fmaxf(a, b);
    }
};

/* Is key J there for query I? */
__device__ __forceinline__ bool
sees(const struct etk_sdpa &a, int64_t i, int64_t j)
{
    return i < a.T && j < a.S && !(a.causal && j > i);
}

/* Keys up to the last one that a query below END sees. */
__device__ __forceinline__ int64_t
keys_below(const struct etk_sdpa &a, int64_t end)
{
    return a.causal && end < a.S ? end : a.S;
}

/* ---- forward ---- */

/* A block: a tile of queries of one plane; those with the most keys come first. Thread
 * (down, along) keeps its part of o, and maximum and sum of its rows. */
template <class G>
__global__ void __launch_bounds__(THREADS, G::FORWARD)
    forward(struct etk_sdpa a, const void *q, const void *k, const void *v,
            const void *bias, void *o, float *lse, unsigned tiles)
{
    ETK_SHARED(float, shared);
    float *queries = shared, *keys = queries + G::TILE, *scores = keys + G::TILE;
    int down = (int)threadIdx.x / GRID, along = (int)threadIdx.x % GRID;
    int64_t plane = blockIdx.x / tiles;
    int64_t first = (int64_t)(tiles - 1 - blockIdx.x % tiles) * G::SIDE;
    int64_t end = keys_below(a, least(first + G::SIDE, a.T));
    quad sum[G::EACH][G::PARTS] = {};
    float most[G::EACH], total[G::EACH], s[G::EACH][G::EACH];
    for (int r = 0; r < G::EACH; r++) {
        most[r] = -INFINITY;
        total[r] = 0;
    }
    load_rows<G>(queries, q, a, a.heads[ETK_SDPA_Q], plane, first, a.T);
    for (int64_t at = 0; at < end; at += G::SIDE) {
        load_rows<G>(keys, k, a, a.heads[ETK_SDPA_K], plane, at, a.S);
        __syncthreads();
        multiply_rows<G>(s, queries, keys, (int)a.D);
        __syncthreads();
        bool finite = load_rows<G>(keys, v, a, a.heads[ETK_SDPA_V], plane, at, a.S);
        for (int r = 0; r < G::EACH; r++) {
            int64_t i = first + down + r * GRID;
            float tile_most = -INFINITY;
            for (int c = 0; c < G::EACH; c++) {
                int64_t j = at + along + c * GRID;
                s[r][c] *= a.scale;
                if (!sees(a, i, j))
                    s[r][c] = -INFINITY;
                else if (a.bias != ET_NONE)
                    s[r][c] += bias_at(a, bias, plane, i, j);
                tile_most = fmaxf(tile_most, s[r][c]);
            }
            tile_most = fmaxf(most[r], row_reduce(tile_most, larger_number()));
            /* While all that was seen is -infinity any finite number will do. */
            float shift = tile_most == -INFINITY ? 0.f : tile_most;
            float factor = expf(most[r] - shift);
            most[r] = tile_most;
            total[r] *= factor;
            for (int c = 0; c < G::PARTS; c++)
                for (int n = 0; n < QUAD; n++)
                    sum[r][c].v[n] *= factor;
            float more = 0;
            for (int c = 0; c < G::EACH; c++) {
                s[r][c] = expf(s[r][c] - shift);
                more += s[r][c];
            }
            total[r] += row_reduce(more, etk_plus());
        }
        finite = __syncthreads_and(finite);
        int count = (int)least(end - at, G::SIDE);
        add_product<G>(sum, s, scores, keys, count, finite);
        __syncthreads();
    }
    /* A row that sees no key is 0, and so is e^(s - lse) of it. */
    for (int r = 0; r < G::EACH; r++) {
        int64_t i = first + down + r * GRID;
        if (lse && along == 0 && i < a.T)
            lse[lse_at(a, plane, i)] =
                total[r] == 0 ? INFINITY : most[r] + logf(total[r]);
        total[r] = total[r] == 0 ? 0.f : 1.f / total[r];
    }
    if (o)
        store_rows<G>(o, a, a.heads[ETK_SDPA_O], plane, first, a.T, sum, total);
}

/* ---- backward ---- */

/* A block: a tile of rows of one plane; thread t < SIDE sums row t in the order in
 * which multiply_rows sums do . v. */
template <class G>
__global__ void __launch_bounds__(THREADS, G::FORWARD)
    deltas(struct etk_sdpa a, const void *out, const void *dout, float *delta,
           unsigned tiles)
{
    ETK_SHARED(float, shared);
    float *x = shared, *y = x + G::TILE;
    int64_t plane = blockIdx.x / tiles, first = (int64_t)(blockIdx.x % tiles) * G::SIDE;
    int row = (int)threadIdx.x;
    load_rows<G>(x, dout, a, a.heads[ETK_SDPA_DO], plane, first, a.T);
    load_rows<G>(y, out, a, a.heads[ETK_SDPA_O], plane, first, a.T);
    __syncthreads();
    if (row >= G::SIDE || first + row >= a.T)
        return;
    float sum = 0;
    for (int d = 0; d < (int)a.D; d += QUAD)
        sum = add_dot(sum, quad_at(x + row * G::PITCH + d),
                      quad_at(y + row * G::PITCH + d));
    delta[plane * a.T + first + row] = sum;
}

/* p and ds of one score, from q . k in S and do . v in DS. */
__device__ __forceinline__ void
score_gradient(const struct etk_sdpa &a, const void *bias, int64_t plane, int64_t i,
               int64_t j, float lse, float delta, float &s, float &ds)
{
    if (!sees(a, i, j)) {
        s = ds = 0;
        return;
    }
    s *= a.scale;
    if (a.bias != ET_NONE)
        s += bias_at(a, bias, plane, i, j);
    /* (cuDNN, which may have made lse, may say -infinity of a row that sees no key.) */
    s = lse == -INFINITY ? 0.f : expf(s - lse);
    ds = s == 0 ? 0.f : s * (ds - delta) * a.scale;
}

/* A block: dq of a tile of queries of one plane, over the keys. */
template <class G>
__global__ void __launch_bounds__(THREADS, G::BACKWARD)
    backward_queries(struct etk_sdpa a, const void *dout, const void *q, const void *k,
                     const void *v, const float *lse, const void *bias,
                     const float *delta, void *dq, unsigned tiles)
{
    ETK_SHARED(float, shared);
    float *queries = shared, *grads = queries + G::TILE, *keys = grads + G::TILE;
    float *values = keys + G::TILE, *scores = values + G::TILE;
    int down = (int)threadIdx.x / GRID, along = (int)threadIdx.x % GRID;
    int64_t plane = blockIdx.x / tiles;
    int64_t first = (int64_t)(tiles - 1 - blockIdx.x % tiles) * G::SIDE;
    int64_t end = keys_below(a, least(first + G::SIDE, a.T));
    quad sum[G::EACH][G::PARTS] = {};
    float s[G::EACH][G::EACH], ds[G::EACH][G::EACH], one[G::EACH];
    float row_lse[G::EACH], row_delta[G::EACH];
    for (int r = 0; r < G::EACH; r++) {
        int64_t i = first + down + r * GRID;
        one[r] = 1;
        row_lse[r] = i < a.T ? lse[lse_at(a, plane, i)] : 0.f;
        row_delta[r] = i < a.T ? delta[plane * a.T + i] : 0.f;
    }
    load_rows<G>(queries, q, a, a.heads[ETK_SDPA_Q], plane, first, a.T);
    load_rows<G>(grads, dout, a, a.heads[ETK_SDPA_DO], plane, first, a.T);
    for (int64_t at = 0; at < end; at += G::SIDE) {
        bool finite = load_rows<G>(keys, k, a, a.heads[ETK_SDPA_K], plane, at, a.S);
        load_rows<G>(values, v, a, a.heads[ETK_SDPA_V], plane, at, a.S);
        finite = __syncthreads_and(finite);
        multiply_rows<G>(s, queries, keys, (int)a.D);
        multiply_rows<G>(ds, grads, values, (int)a.D);
        for (int r = 0; r < G::EACH; r++)
            for (int c = 0; c < G::EACH; c++)
                score_gradient(a, bias, plane, first + down + r * GRID,
                               at + along + c * GRID, row_lse[r], row_delta[r], s[r][c],
                               ds[r][c]);
        int count = (int)least(end - at, G::SIDE);
        add_product<G>(sum, ds, scores, keys, count, finite);
        __syncthreads();
    }
    store_rows<G>(dq, a, a.heads[ETK_SDPA_DQ], plane, first, a.T, sum, one);
}

/* A block: dk and dv of a tile of keys of one plane, over the queries, whose scores
 * stand in columns. */
template <class G>
__global__ void __launch_bounds__(THREADS, G::BACKWARD)
    backward_keys(struct etk_sdpa a, const void *dout, const void *q, const void *k,
                  const void *v, const float *lse, const void *bias, const float *delta,
                  void *dk, void *dv, unsigned tiles)
{
    ETK_SHARED(float, shared);
    float *keys = shared, *values = keys + G::TILE, *queries = values + G::TILE;
    float *grads = queries + G::TILE, *scores = grads + G::TILE;
    int down = (int)threadIdx.x / GRID, along = (int)threadIdx.x % GRID;
    int64_t plane = blockIdx.x / tiles, first = (int64_t)(blockIdx.x % tiles) * G::SIDE;
    quad sum_k[G::EACH][G::PARTS] = {}, sum_v[G::EACH][G::PARTS] = {};
    float s[G::EACH][G::EACH], ds[G::EACH][G::EACH], one[G::EACH];
    for (int r = 0; r < G::EACH; r++)
        one[r] = 1;
    load_rows<G>(keys, k, a, a.heads[ETK_SDPA_K], plane, first, a.S);
    load_rows<G>(values, v, a, a.heads[ETK_SDPA_V], plane, first, a.S);
    /* Where causal no query before the first key sees any of them. */
    for (int64_t at = a.causal ? first : 0; at < a.T; at += G::SIDE) {
        bool finite = load_rows<G>(queries, q, a, a.heads[ETK_SDPA_Q], plane, at, a.T);
        finite &= load_rows<G>(grads, dout, a, a.heads[ETK_SDPA_DO], plane, at, a.T);
        finite = __syncthreads_and(finite);
        multiply_rows<G>(s, keys, queries, (int)a.D);
        multiply_rows<G>(ds, values, grads, (int)a.D);
        for (int c = 0; c < G::EACH; c++) {
            int64_t i = at + along + c * GRID;
            float column_lse = i < a.T ? lse[lse_at(a, plane, i)] : 0.f;
            float column_delta = i < a.T ? delta[plane * a.T + i] : 0.f;
            for (int r = 0; r < G::EACH; r++)
                score_gradient(a, bias, plane, i, first + down + r * GRID, column_lse,
                               column_delta, s[r][c], ds[r][c]);
        }
        int count = (int)least(a.T - at, G::SIDE);
        if (dv)
            add_product<G>(sum_v, s, scores, grads, count, finite);
        if (dk)
            add_product<G>(sum_k, ds, scores, queries, count, finite);
        __syncthreads();
    }
    if (dk)
        store_rows<G>(dk, a, a.heads[ETK_SDPA_DK], plane, first, a.S, sum_k, one);
    if (dv)
        store_rows<G>(dv, a, a.heads[ETK_SDPA_DV], plane, first, a.S, sum_v, one);
}

/* ---- launching ---- */

/* Bytes for N tiles of heads and one of scores. */
template <class G>
size_t
shared_of(int n)
{
    return ((size_t)n * G::TILE + G::SIDE * G::SCORES) * sizeof(float);
}

/* KERNEL with a block for each of TILES tiles of each plane, and shared memory for N
 * tiles of heads and one of scores. */
template <class G, class... P, class... A>
cudaError_t
launch_tiles(void (*kernel)(P...), const struct etk_sdpa *a, int64_t length, int n,
             cudaStream_t stream, A... args)
{
    int64_t tiles = etk_ceil_div(length, G::SIDE), blocks = tiles * a->B * a->H;
    size_t bytes = shared_of<G>(n);
    if (blocks == 0)
        return cudaSuccess;
    if (blocks > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    return etk_launch(kernel, (unsigned)blocks, THREADS, bytes, stream, *a, args...,
                      (unsigned)tiles);
}

/* Does the bias hide every key from query I? */
__device__ bool
is_blind(const struct etk_sdpa &a, const void *bias, int64_t plane, int64_t i)
{
    int64_t end = keys_below(a, i + 1);
    for (int64_t j = 0; j < end; j++)
        if (!(bias_at(a, bias, plane, i, j) == -INFINITY))
            return false;
    return true;
}

/* After cuDNN, which divides 0 by 0 where the bias hides every key from a query: o = 0
 * and lse = infinity, as forward has them. A thread for each query; only where lse is
 * -infinity or NaN, as such a query's is, are there biases to read. */
__global__ void __launch_bounds__(THREADS)
    clear_blind(struct etk_sdpa a, const void *bias, void *o, float *lse, int64_t rows)
{
    int64_t row = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (row >= rows)
        return;
    int64_t plane = row / a.T, i = row % a.T, at = lse_at(a, plane, i);
    if (lse[at] > -INFINITY || !is_blind(a, bias, plane, i))
        return;
    const struct etk_heads &to = a.heads[ETK_SDPA_O];
    uint16_t *x = (uint16_t *)o + plane / a.H * to.b + plane % a.H * to.h + i * to.row;
    for (int64_t d = 0; d < a.D; d++)
        x[d * to.step] = 0; /* of bf16 and of f16 */
    lse[at] = INFINITY;
}

template <class G>
cudaError_t
launch_forward(const struct etk_sdpa *a, void *const *ptr, cudaStream_t stream)
{
    return launch_tiles<G>(forward<G>, a, a->T, G::FORWARD_TILES, stream,
                           ptr[ETK_SDPA_Q], ptr[ETK_SDPA_K], ptr[ETK_SDPA_V],
                           ptr[ETK_SDPA_BIAS], ptr[ETK_SDPA_O],
                           (float *)ptr[ETK_SDPA_LSE]);
}

template <class G>
cudaError_t
launch_backward(const struct etk_sdpa *a, void *const *ptr, float *delta,
                cudaStream_t stream)
{
    const void *grad = ptr[ETK_SDPA_DO], *q = ptr[ETK_SDPA_Q], *k = ptr[ETK_SDPA_K];
    const void *v = ptr[ETK_SDPA_V], *bias = ptr[ETK_SDPA_BIAS];
    const float *lse = (const float *)ptr[ETK_SDPA_LSE];
    void *dq = ptr[ETK_SDPA_DQ], *dk = ptr[ETK_SDPA_DK], *dv = ptr[ETK_SDPA_DV];
    enum { N = G::BACKWARD_TILES };
    cudaError_t code = launch_tiles<G>(deltas<G>, a, a->T, G::FORWARD_TILES, stream,
                                       ptr[ETK_SDPA_O], grad, delta);
    if (code == cudaSuccess && dq)
        code = launch_tiles<G>(backward_queries<G>, a, a->T, N, stream, grad, q, k, v,
                               lse, bias, delta, dq);
    if (code == cudaSuccess && (dk || dv))
        code = launch_tiles<G>(backward_keys<G>, a, a->S, N, stream, grad, q, k, v, lse,
                               bias, delta, dk, dv);
    return code;
}

/* FUNCTION of the tiles that fit heads of A. */
#define BY_DEPTH(a, function, ...)                                                     \
    ((a)->D <= 64    ? function<shape<64, 64>>(__VA_ARGS__)                            \
     : (a)->D <= 128 ? function<shape<64, 128>>(__VA_ARGS__)                           \
                     : function<shape<32, 256>>(__VA_ARGS__))

/* Lets a kernel have what N tiles take. */
template <class G, class... P>
cudaError_t
allow(void (*kernel)(P...), int n)
{
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                (int)shared_of<G>(n));
}

template <class G>
cudaError_t
allow_all(const struct etk_sdpa *a)
{
    enum { N = G::BACKWARD_TILES };
    if (!a->grad)
        return allow<G>(forward<G>, G::FORWARD_TILES);
    cudaError_t code = allow<G>(deltas<G>, G::FORWARD_TILES);
    if (code == cudaSuccess)
        code = allow<G>(backward_queries<G>, N);
    return code == cudaSuccess ? allow<G>(backward_keys<G>, N) : code;
}

template <class G>
size_t
most_shared(const struct etk_sdpa *a)
{
    return shared_of<G>(a->grad ? G::BACKWARD_TILES : G::FORWARD_TILES);
}

} // namespace

size_t
etk_sdpa_shared(const struct etk_sdpa *a)
{
    return BY_DEPTH(a, most_shared, a);
}

cudaError_t
etk_sdpa_allow(const struct etk_sdpa *a)
{
    return BY_DEPTH(a, allow_all, a);
}

cudaError_t
etk_launch_sdpa(const struct etk_sdpa *a, void *const *ptr, cudaStream_t stream)
{
    return BY_DEPTH(a, launch_forward, a, ptr, stream);
}

cudaError_t
etk_launch_sdpa_clear(const struct etk_sdpa *a, void *const *ptr, cudaStream_t stream)
{
    int64_t rows = a->B * a->H * a->T, blocks = etk_ceil_div(rows, THREADS);
    if (blocks > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    return etk_launch(clear_blind, (unsigned)blocks, THREADS, 0, stream, *a,
                      (const void *)ptr[ETK_SDPA_BIAS], ptr[ETK_SDPA_O],
                      (float *)ptr[ETK_SDPA_LSE], rows);
}

cudaError_t
etk_launch_sdpa_grad(const struct etk_sdpa *a, void *const *ptr, float *delta,
                     cudaStream_t stream)
{
    return BY_DEPTH(a, launch_backward, a, ptr, delta, stream);
}
