/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.cu: sums, largest elements and sums of squares over any axes.
 *
 * Every x is read once, in 16 bytes where it lies so; sums are in f32 (f64 for f64): a
 * thread adds its elements into as many sums as a pack has elements, then warps and
 * blocks add up as trees (etk_block_reduce). What one result's block could not read
 * fast enough is cut into parts that a second launch adds up, so no atomics: the same
 * bits every time. Method: two-stage reduction, as in CUDA's sample "reduction"
 * (Harris). */
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/space.cuh"

enum { THREADS = 256, SLOTS = 32 };

struct reduce_arg {
    etk_space<2> kept;
    etk_space<1> reduced;
    int64_t share, cols, from, to, wide_blocks;
    etk_long_divisor blocks; /* of columns: the number above */
    double sign, scale;
    int parts, across, out;
    bool squares;
};

/* a + v, a + v^2, or the larger of a and sign v. */
template <bool LARGEST, class W>
static __device__ __forceinline__ W
join(W a, W v, const reduce_arg &g)
{
    if (LARGEST)
        return etk_larger()(v * (W)g.sign, a);
    return a + v * (g.squares ? v : (W)1);
}

/* Of two that went through the above. */
template <bool LARGEST> struct both {
    template <class W> __device__ __forceinline__ W operator()(W a, W b) const
    {
        return LARGEST ? etk_larger()(a, b) : a + b;
    }
};

template <bool LARGEST, class W>
static __device__ __forceinline__ W
nothing()
{
    return LARGEST ? -(W)INFINITY : (W)0;
}

/* How a row's elements lie: at any strides, in packs at any strides, or as one row. */
enum form { SCATTERED, PACKS, ROW };

/* TEAM threads share part blockIdx.y of a result, member m taking elements (packs) m,
 * m + TEAM, ... of [part share, (part + 1) share), cut off at the count of REDUCED, so
 * that no offset leaves x. Its first member stores. Teams take results t, t + teams,
 * ... below their count. */
template <class T, bool LARGEST, int TEAM, enum form FORM>
static __global__ void __launch_bounds__(THREADS, 2)
    rows(const T *__restrict__ x, void *__restrict__ y,
         const __grid_constant__ reduce_arg g)
{
    typedef typename etk_wide<T>::type W;
    enum { LANES = etk_lanes<T>::count };
    __shared__ W slot[SLOTS];
    int member = threadIdx.x % TEAM;
    int64_t first = blockIdx.y * g.share, end = first + g.share, at[2];
    end = end < g.reduced.count ? end : g.reduced.count;
    for (int64_t result = etk_thread() / TEAM; result < g.kept.count;
         result += etk_threads() / TEAM) {
        etk_offsets(g.kept, result, at);
        W acc[LANES];
#pragma unroll
        for (int j = 0; j < LANES; j++)
            acc[j] = nothing<LARGEST, W>();
        const T *from = x + at[0];
        auto add_pack = [&](const T *p) {
            etk_pack<T, LANES> v = etk_load_pack(p);
#pragma unroll
            for (int j = 0; j < LANES; j++)
                acc[j] = join<LARGEST>(acc[j], (W)etk_up(v.v[j]), g);
        };
        if (FORM == ROW) {
            const T *row = from + first;
            etk_along<TEAM>(
                row, end - first, member, true, [&](int64_t c) { add_pack(row + c); },
                [&](int64_t c) {
                    acc[0] = join<LARGEST>(acc[0], (W)etk_up(row[c]), g);
                });
        } else {
#pragma unroll 2
            for (int64_t i = first + member; i < end; i += TEAM) {
                int64_t o[1];
                etk_offsets(g.reduced, i, o);
                if (FORM == PACKS)
                    add_pack(from + o[0]);
                else
                    acc[0] = join<LARGEST>(acc[0], (W)etk_up(from[o[0]]), g);
            }
        }
        W sum = acc[0];
#pragma unroll
        for (int j = 1; j < LANES; j++)
            sum = both<LARGEST>()(sum, acc[j]);
        sum = etk_team_reduce<TEAM>(sum, both<LARGEST>(), nothing<LARGEST, W>(), slot);
        if (member == 0)
            etk_store_any(y, g.out, g.parts > 1 ? result * g.parts + blockIdx.y : at[1],
                          sum * (W)(g.sign * g.scale));
    }
}

/* Block (b, part): column block b % blocks of kept position b / blocks. Thread (tx,
 * ty), tx < across, takes column (pack) tx of the block and the rows ty, ty + Y, ... of
 * the part's share; sums of one column are added as a tree over ty. Columns beyond the
 * last read and write nothing. */
template <class T, bool LARGEST, bool PACKED>
static __global__ void __launch_bounds__(THREADS, 2)
    columns(const T *__restrict__ x, void *__restrict__ y,
            const __grid_constant__ reduce_arg g)
{
    typedef typename etk_wide<T>::type W;
    enum { LANES = PACKED ? (int)etk_lanes<T>::count : 1 };
    __shared__ W sum[LANES * THREADS];
    int tx = threadIdx.x & (g.across - 1), ty = threadIdx.x / g.across;
    int down = THREADS / g.across;
    int64_t blocks = g.wide_blocks;
    int64_t first = blockIdx.y * g.share, end = first + g.share;
    end = end < g.reduced.count ? end : g.reduced.count;
    for (int64_t b = blockIdx.x; b < blocks * g.kept.count; b += gridDim.x) {
        int64_t k = etk_divide(b, g.blocks);
        int64_t column = (b - k * blocks) * g.across + tx, at[2];
        bool mine = column < g.cols;
        etk_offsets(g.kept, k, at);
        const T *from = x + at[0] + column * g.from;
        W acc[LANES];
#pragma unroll
        for (int j = 0; j < LANES; j++)
            acc[j] = nothing<LARGEST, W>();
#pragma unroll 4
        for (int64_t r = first + ty; mine && r < end; r += down) {
            int64_t o[1];
            etk_offsets(g.reduced, r, o);
            etk_pack<T, LANES> v = *(const etk_pack<T, LANES> *)(from + o[0]);
#pragma unroll
            for (int j = 0; j < LANES; j++)
                acc[j] = join<LARGEST>(acc[j], (W)etk_up(v.v[j]), g);
        }
#pragma unroll
        for (int j = 0; j < LANES; j++)
            sum[j * THREADS + threadIdx.x] = acc[j];
        for (int half = down / 2; half > 0; half /= 2) {
            __syncthreads();
            if (ty < half)
#pragma unroll
                for (int j = 0; j < LANES; j++) {
                    W *to = &sum[j * THREADS + threadIdx.x];
                    *to = both<LARGEST>()(*to, to[half * g.across]);
                }
        }
        int64_t results = g.kept.count * g.cols * LANES;
        if (ty == 0 && mine)
#pragma unroll
            for (int j = 0; j < LANES; j++) {
                int64_t c = column * LANES + j;
                int64_t to = g.parts > 1 ? blockIdx.y * results + k * g.cols * LANES + c
                                         : at[1] + c * g.to;
                etk_store_any(y, g.out, to,
                              sum[j * THREADS + threadIdx.x] * (W)(g.sign * g.scale));
            }
        __syncthreads();
    }
}

template <class T, bool LARGEST, int TEAM>
static cudaError_t
launch_rows(const struct etk_reduce *r, const reduce_arg &g, const void *x, void *y,
            cudaStream_t stream)
{
    int64_t blocks = etk_ceil_div(g.kept.count, THREADS / TEAM);
    dim3 grid((unsigned)(blocks < INT32_MAX ? blocks : INT32_MAX), (unsigned)r->parts);
    if (r->dense)
        return etk_launch(rows<T, LARGEST, TEAM, ROW>, grid, THREADS, 0, stream,
                          (const T *)x, y, g);
    if (r->packs)
        return etk_launch(rows<T, LARGEST, TEAM, PACKS>, grid, THREADS, 0, stream,
                          (const T *)x, y, g);
    return etk_launch(rows<T, LARGEST, TEAM, SCATTERED>, grid, THREADS, 0, stream,
                      (const T *)x, y, g);
}

template <class T, bool LARGEST>
static cudaError_t
launch_some(const struct etk_reduce *r, const void *x, void *y, cudaStream_t stream)
{
    reduce_arg g = {};
    g.kept = etk_space_of<2>(&r->kept);
    g.reduced = etk_space_of<1>(&r->reduced);
    g.share = r->share;
    g.cols = r->cols;
    g.from = r->from;
    g.wide_blocks = etk_ceil_div(r->cols, r->across);
    g.blocks = etk_long_divisor_of((uint64_t)(r->columns ? g.wide_blocks : 1));
    g.to = r->to;
    g.sign = r->sign;
    g.scale = r->scale;
    g.parts = r->parts;
    g.across = r->across;
    g.out = r->out;
    g.squares = r->squares;
    if (r->columns) {
        int64_t blocks = g.wide_blocks * r->kept.count;
        dim3 grid((unsigned)(blocks < INT32_MAX ? blocks : INT32_MAX),
                  (unsigned)r->parts);
        return etk_launch(r->packs ? columns<T, LARGEST, true>
                                   : columns<T, LARGEST, false>,
                          grid, THREADS, 0, stream, (const T *)x, y, g);
    }
    return r->team == ETK_WARP ? launch_rows<T, LARGEST, ETK_WARP>(r, g, x, y, stream)
                               : launch_rows<T, LARGEST, THREADS>(r, g, x, y, stream);
}

template <class T>
static cudaError_t
launch(const struct etk_reduce *r, const void *x, void *y, cudaStream_t stream)
{
    return r->largest ? launch_some<T, true>(r, x, y, stream)
                      : launch_some<T, false>(r, x, y, stream);
}

cudaError_t
etk_launch_reduce(const struct etk_reduce *r, const void *x, void *y,
                  cudaStream_t stream)
{
    if (r->in == ET_F64)
        return launch<double>(r, x, y, stream);
    return ETK_FLOATS(r->in, launch, r, x, y, stream);
}
