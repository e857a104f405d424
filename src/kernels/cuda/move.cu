/* SPDX-License-Identifier: Apache-2.0 */
/* move.cu: copies between strided arrays, and of many stretches at once.
 *
 * rows: thread t moves units t, t + threads, ... of the target's order, each to where
 * its coordinates lead on both sides; the coordinates are below the axes' lengths,
 * whose strides keep inside the arrays. A warp's units are neighbours in the target.
 *
 * squares: where the source's neighbours are another axis', a block copies 32 x 32
 * elements through shared memory, so that both sides are read and written along their
 * neighbours. Thread (x, y) takes rows y, y + 8, ... of the square; what lies past an
 * edge is left out.
 *
 * batch: each block moves 16 KiB of one stretch; which one is searched for among the
 * first blocks of all. Its end is that of the stretch.
 *
 * All move each byte once in and once out. */
#include "kernels/cuda/kernel.cuh"
#include "kernels/cuda/move.h"

enum { THREADS = 256, TILE = 32, TILE_ROWS = 8, CHUNK = 16 * 1024 };
static const long long MAX_TILES = 1 << 20; /* blocks; they take several in turn */

template <int BYTES> struct unit_of;
template <> struct unit_of<1> {
    typedef uint8_t type;
};
template <> struct unit_of<2> {
    typedef uint16_t type;
};
template <> struct unit_of<4> {
    typedef uint32_t type;
};
template <> struct unit_of<8> {
    typedef uint64_t type;
};
template <> struct unit_of<16> {
    typedef uint4 type;
};

/* ---- rows ---- */

struct places {
    long long count;
    int ndim;
    struct etk_divisor length[ET_MAX_DIMS]; /* where count < 2^31 */
    long long length64[ET_MAX_DIMS], to[ET_MAX_DIMS], from[ET_MAX_DIMS];
};

static __device__ __forceinline__ unsigned
over(const struct places &p, int axis, unsigned &rest)
{
    unsigned n = rest;
    rest = etk_divide(n, p.length[axis]);
    return n - rest * p.length[axis].d;
}
static __device__ __forceinline__ long long
over(const struct places &p, int axis, long long &rest)
{
    long long n = rest;
    rest = n / p.length64[axis];
    return n - rest * p.length64[axis];
}

/* I: unsigned below 2^31 units, long long above. */
template <class U, class I, bool IS_NUMBER>
static __global__ void __launch_bounds__(THREADS)
    rows(U *__restrict__ to, const U *__restrict__ from, const U number,
         const __grid_constant__ struct places p)
{
#pragma unroll 4
    for (long long t = etk_thread(); t < p.count; t += etk_threads()) {
        I rest = (I)t;
        long long target = 0, source = 0;
#pragma unroll
        for (int axis = ET_MAX_DIMS - 1; axis > 0; axis--)
            if (axis < p.ndim) {
                long long at = over(p, axis, rest);
                target += at * p.to[axis];
                source += at * p.from[axis];
            }
        target += rest * p.to[0];
        source += rest * p.from[0];
        to[target] = IS_NUMBER ? number : from[source];
    }
}

template <class U>
static cudaError_t
launch_rows(const struct places *p, void *to, const void *from, const void *number,
            int sm_count, cudaStream_t stream)
{
    unsigned blocks = etk_blocks(p->count, 4, THREADS, sm_count);
    U *y = (U *)to;
    const U *x = (const U *)from;
    U value = x ? U() : *(const U *)number;
    bool far = p->count > INT32_MAX;
    return etk_launch(far ? (x ? rows<U, long long, false> : rows<U, long long, true>)
                          : (x ? rows<U, unsigned, false> : rows<U, unsigned, true>),
                      blocks, THREADS, 0, stream, y, x, value, *p);
}

/* ---- squares ---- */

/* Axis 0 of P is the turned one, axis 1 the target's last; the rest are walked. */
template <class U>
static __global__ void __launch_bounds__(TILE *TILE_ROWS)
    squares(U *__restrict__ to, const U *__restrict__ from, long long tiles,
            const __grid_constant__ struct places p)
{
    __shared__ U square[TILE][TILE + 1];
    long long across = (p.length64[1] + TILE - 1) / TILE;
    long long down = (p.length64[0] + TILE - 1) / TILE;
    int x = threadIdx.x % TILE, y = threadIdx.x / TILE;
    for (long long t = blockIdx.x; t < tiles; t += gridDim.x) {
        long long rest = t, target = 0, source = 0;
        long long j = rest % across * TILE;
        rest /= across;
        long long i = rest % down * TILE;
        rest /= down;
        for (int axis = p.ndim - 1; axis > 1; axis--) {
            long long at = rest % p.length64[axis];
            rest /= p.length64[axis];
            target += at * p.to[axis];
            source += at * p.from[axis];
        }
        for (int k = y; k < TILE; k += TILE_ROWS)
            if (i + x < p.length64[0] && j + k < p.length64[1])
                square[k][x] = from[source + (i + x) * p.from[0] + (j + k) * p.from[1]];
        __syncthreads();
        for (int k = y; k < TILE; k += TILE_ROWS)
            if (i + k < p.length64[0] && j + x < p.length64[1])
                to[target + (i + k) * p.to[0] + (j + x) * p.to[1]] = square[x][k];
        __syncthreads();
    }
}

template <class U>
static cudaError_t
launch_squares(const struct etk_rows *r, void *to, const void *from,
               cudaStream_t stream)
{
    struct places p = {};
    int order[ET_MAX_DIMS] = {r->turned, r->ndim - 1}, n = 2;
    for (int i = 0; i < r->ndim - 1; i++)
        if (i != r->turned)
            order[n++] = i;
    p.ndim = r->ndim;
    long long tiles = 1;
    for (int i = 0; i < p.ndim; i++) {
        p.length64[i] = r->shape[order[i]];
        p.to[i] = r->to[order[i]];
        p.from[i] = r->from[order[i]];
        tiles *= i < 2 ? etk_ceil_div(p.length64[i], TILE) : p.length64[i];
    }
    unsigned blocks = (unsigned)(tiles < MAX_TILES ? tiles : MAX_TILES);
    return etk_launch(squares<U>, blocks, TILE * TILE_ROWS, 0, stream, (U *)to,
                      (const U *)from, tiles, p);
}

template <class U>
static cudaError_t
launch(const struct etk_rows *r, void *to, const void *from, const void *number,
       int sm_count, cudaStream_t stream)
{
    if (from && r->turned >= 0)
        return launch_squares<U>(r, to, from, stream);
    struct places p = {};
    p.count = r->count;
    p.ndim = r->ndim;
    for (int i = 0; i < r->ndim; i++) {
        if (r->count <= INT32_MAX)
            p.length[i] = etk_divisor_of((uint32_t)r->shape[i]);
        p.length64[i] = r->shape[i];
        p.to[i] = r->to[i];
        p.from[i] = r->from[i];
    }
    return launch_rows<U>(&p, to, from, number, sm_count, stream);
}

cudaError_t
etk_launch_rows(const struct etk_rows *r, void *to, const void *from,
                const void *number, int sm_count, cudaStream_t stream)
{
    switch (r->unit) {
    case 16:
        return launch<unit_of<16>::type>(r, to, from, number, sm_count, stream);
    case 8:
        return launch<unit_of<8>::type>(r, to, from, number, sm_count, stream);
    case 4:
        return launch<unit_of<4>::type>(r, to, from, number, sm_count, stream);
    case 2:
        return launch<unit_of<2>::type>(r, to, from, number, sm_count, stream);
    default:
        return launch<unit_of<1>::type>(r, to, from, number, sm_count, stream);
    }
}

/* ---- batch ---- */

struct stretches {
    struct etk_batch b;
    unsigned first[ETK_BATCH + 1]; /* block of each, and of the end */
};

template <class U>
static __device__ __forceinline__ void
move_units(char *__restrict__ to, const char *__restrict__ from, int bytes)
{
    U *y = (U *)to;
    const U *x = (const U *)from;
    int n = bytes / (int)sizeof(U);
#pragma unroll 4
    for (int i = threadIdx.x; i < n; i += THREADS)
        y[i] = x ? x[i] : U();
    int rest = n * (int)sizeof(U) + threadIdx.x;
    if (rest < bytes)
        to[rest] = from ? from[rest] : 0;
}

static __global__ void __launch_bounds__(THREADS)
    batch(const __grid_constant__ struct stretches s)
{
    int low = 0, high = s.b.n; /* the stretch is in [low, high) */
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (s.first[middle] <= blockIdx.x)
            low = middle;
        else
            high = middle;
    }
    long long at = (long long)(blockIdx.x - s.first[low]) * CHUNK;
    long long left = s.b.bytes[low] - at;
    int bytes = left < CHUNK ? (int)left : CHUNK;
    char *to = (char *)s.b.to[low] + at;
    const char *from = s.b.from[low] ? (const char *)s.b.from[low] + at : NULL;
    unsigned off = (unsigned)((uintptr_t)to | (uintptr_t)from);
    if (off % 16 == 0)
        move_units<uint4>(to, from, bytes);
    else if (off % 4 == 0)
        move_units<uint32_t>(to, from, bytes);
    else if (off % 2 == 0)
        move_units<uint16_t>(to, from, bytes);
    else
        move_units<uint8_t>(to, from, bytes);
}

cudaError_t
etk_launch_batch(const struct etk_batch *given, cudaStream_t stream)
{
    struct stretches s = {};
    s.b = *given;
    for (int i = 0; i < s.b.n; i++)
        s.first[i + 1] = s.first[i] + (unsigned)etk_ceil_div(s.b.bytes[i], CHUNK);
    if (s.first[s.b.n] == 0)
        return cudaSuccess;
    return etk_launch(batch, s.first[s.b.n], THREADS, 0, stream, s);
}
