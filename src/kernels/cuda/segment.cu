/* SPDX-License-Identifier: Apache-2.0 */
/* segment.cu: sums of squares of stretches of rows: the norms of all parameters in one
 * pass over flat memory.
 *
 * Each stretch is cut into parts from its own beginning, so that its sum does not
 * depend on what lies beside it. The table lies on the GPU, and the host does not know
 * how many parts there are: the grid has a block for each number that a part may have
 * (segment.h), at most one more for each stretch than there are parts, and a block
 * finds its stretch by a search in which the 32 lanes of a warp look at once, 2 looks
 * for 1024 stretches.
 *
 * x is read once, in 16 bytes where it is plain; sums are in f32 (f64 for f64), always
 * in the same order: a thread adds 8 squares into each of 4 sums (16 bits: 4 into each
 * of 8), a tree of 256 threads adds those, and a block per stretch the parts, one in
 * 128 of them in a thread. All terms are >= 0, so the relative error is at most 2^-24
 * times the roundings that a term goes through: 20 in its part, then 7 + parts / 128.
 * That is 4e-6 for 38 million elements (GPT-2's embedding), and near 1e-7 where
 * roundings cancel.
 *
 * Moves: 4 bytes an element (2 in 16 bits), and 8 bytes a part. Method: two-stage
 * reduction, as in reduce.cu; the k-ary search of Schlegel et al. 2009. */
#include "kernels/cuda/segment.h"
#include "kernels/cuda/space.cuh"

enum { THREADS = 256, FINISH = 128, SLOTS = 32 };

struct segment_arg {
    etk_space<1> walk;
    int64_t rows, width, n, step, to;
};

/* The element that stretch s begins with: within x, whatever the table says. */
static __device__ __forceinline__ int64_t
begin_of(const segment_arg &g, const int32_t *__restrict__ first, int64_t s)
{
    int64_t row = first[s * g.step];
    return (row < 0 ? 0 : row < g.rows ? row : g.rows) * g.width;
}

static __device__ __forceinline__ int64_t
number_of(const segment_arg &g, const int32_t *__restrict__ first, int64_t s)
{
    return begin_of(g, first, s) / ETK_SEGMENT_PART + s;
}

/* The last stretch whose part 0 has NUMBER or a lower one; 0 if all have higher. Every
 * lane of a warp takes part and gets the answer. Each round leaves of [low, high) what
 * one lane looked at; lane 0's holds from the start on. */
static __device__ __forceinline__ int64_t
find(const segment_arg &g, const int32_t *__restrict__ first, int64_t number)
{
    int64_t low = 0, high = g.n;
    int lane = threadIdx.x % ETK_WARP;
    while (high - low > 1) {
        int64_t each = (high - low + ETK_WARP - 1) / ETK_WARP, at = low + lane * each;
        bool holds = lane == 0 || (at < high && number_of(g, first, at) <= number);
        int last = __popc(__ballot_sync(0xffffffffu, holds)) - 1;
        low += last * each;
        high = low + each < high ? low + each : high;
    }
    return low;
}

/* Block b sums the part with number b, of elements [at, end) of x, which begin_of keeps
 * inside, and thread 0 stores it at b < parts. Numbers that no part has do nothing. */
template <class T, bool PLAIN>
static __global__ void __launch_bounds__(THREADS, 2)
    sum_parts(const T *__restrict__ x, const int32_t *__restrict__ first,
              typename etk_wide<T>::type *__restrict__ parts,
              const __grid_constant__ segment_arg g)
{
    typedef typename etk_wide<T>::type W;
    enum { LANES = etk_lanes<T>::count };
    __shared__ W slot[SLOTS];
    int64_t number = blockIdx.x, s = find(g, first, number);
    int64_t part = number - number_of(g, first, s), end = begin_of(g, first, s + 1);
    int64_t at = begin_of(g, first, s) + part * ETK_SEGMENT_PART;
    if (part < 0 || at >= end) /* all threads alike */
        return;
    int64_t n = end - at, part_size = ETK_SEGMENT_PART;
    n = n < part_size ? n : part_size;
    W acc[LANES];
#pragma unroll
    for (int j = 0; j < LANES; j++)
        acc[j] = 0;
    if (PLAIN) {
        const T *from = x + at;
        etk_along<THREADS>(
            from, n, (int)threadIdx.x, true,
            [&](int64_t c) {
                etk_pack<T, LANES> v = etk_load_pack(from + c);
#pragma unroll
                for (int j = 0; j < LANES; j++) {
                    W u = (W)etk_up(v.v[j]);
                    acc[j] += u * u;
                }
            },
            [&](int64_t c) {
                W u = (W)etk_up(from[c]);
                acc[0] += u * u;
            });
    } else {
        for (int64_t c = threadIdx.x; c < n; c += THREADS) {
            int64_t o[1];
            etk_offsets(g.walk, at + c, o);
            W u = (W)etk_up(x[o[0]]);
            acc[0] += u * u;
        }
    }
    W sum = acc[0];
#pragma unroll
    for (int j = 1; j < LANES; j++)
        sum += acc[j];
    sum = etk_block_reduce<THREADS>(sum, etk_plus(), (W)0, slot);
    if (threadIdx.x == 0)
        parts[number] = sum;
}

/* Block s adds the parts of stretch s, thread t those numbered t, t + FINISH, ...:
 * their numbers are below the count of parts, since a stretch ends inside x. */
template <class W>
static __global__ void __launch_bounds__(FINISH)
    add_parts(const W *__restrict__ parts, const int32_t *__restrict__ first,
              W *__restrict__ y, const __grid_constant__ segment_arg g)
{
    __shared__ W slot[SLOTS];
    int64_t s = blockIdx.x, begin = begin_of(g, first, s);
    int64_t length = begin_of(g, first, s + 1) - begin;
    const W *of = parts + begin / ETK_SEGMENT_PART + s;
    W sum = 0;
    for (int64_t p = threadIdx.x; p * ETK_SEGMENT_PART < length; p += FINISH)
        sum += of[p];
    sum = etk_block_reduce<FINISH>(sum, etk_plus(), (W)0, slot);
    if (threadIdx.x == 0)
        y[s * g.to] = sum;
}

template <class T>
static cudaError_t
launch(const struct etk_segments *r, const void *x, const int32_t *first, void *y,
       void *parts, cudaStream_t stream)
{
    typedef typename etk_wide<T>::type W;
    segment_arg g = {};
    g.walk = etk_space_of<1>(&r->walk);
    g.rows = r->rows;
    g.width = r->width;
    g.n = r->n;
    g.step = r->step;
    g.to = r->to;
    if (r->n == 0)
        return cudaSuccess;
    cudaError_t code = etk_launch(r->plain ? sum_parts<T, true> : sum_parts<T, false>,
                                  (unsigned)r->parts, THREADS, 0, stream, (const T *)x,
                                  first, (W *)parts, g);
    return code != cudaSuccess ? code
                               : etk_launch(add_parts<W>, (unsigned)r->n, FINISH, 0,
                                            stream, (const W *)parts, first, (W *)y, g);
}

cudaError_t
etk_launch_segments(const struct etk_segments *r, const void *x, const int32_t *first,
                    void *y, void *parts, cudaStream_t stream)
{
    if (r->dtype == ET_F64)
        return launch<double>(r, x, first, y, parts, stream);
    return ETK_FLOATS(r->dtype, launch, r, x, first, y, parts, stream);
}
