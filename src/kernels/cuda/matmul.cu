/* SPDX-License-Identifier: Apache-2.0 */
/* matmul.cu: products of matrices with any strides.
 *
 * What cuBLASLt does not take: operands of which neither axis is contiguous or rows
 * overlap, sums over nothing, mixed dtypes, f64, and batches along axes that do not run
 * on. Right for all of them and never far from the speed of plain FMAs; products where
 * training time goes have strides that cuBLASLt takes (matmul.c).
 *
 * A block computes a tile of 64 x 64 of one y after the other along the batch; 256
 * threads, 16 x 16, of which thread (x, y) has rows y, y + 16, .. and columns x, x +
 * 16, .. of the tile: sixteen sums in registers. The terms come 16 at a time through
 * shared memory, so each element of a is read n/64 times and each of b m/64 times
 * (Volkov and Demmel 2008). Where the tile leaves a matrix, shared memory gets zeros
 * that nobody read, and the sums are not stored: no index leaves its array. */
#include "kernels/cuda/kernel.cuh"
#include "kernels/cuda/matmul.h"

enum {
    SIDE = 64,  /* rows and columns of a block's tile */
    DEPTH = 16, /* terms at a time */
    GRID = 16,  /* threads along each axis of the tile */
    EACH = SIDE / GRID,
    THREADS = GRID * GRID,
    LOADS = SIDE * DEPTH / THREADS,
};

/* Of a grid's y; a block takes several matrices where there are more. */
static const int64_t most_batches = 4096;

/* Element AT of an array of any floating dtype. */
template <class W>
static __device__ __forceinline__ W
load(const void *p, enum et_dtype dtype, int64_t at)
{
    switch (dtype) {
    case ET_F64:
        return (W)((const double *)p)[at];
    case ET_BF16:
        return (W)etk_up(((const etk_bf16 *)p)[at]);
    case ET_F16:
        return (W)etk_up(((const etk_f16 *)p)[at]);
    default:
        return (W)((const float *)p)[at];
    }
}

template <class W>
static __device__ __forceinline__ void
store(void *p, enum et_dtype dtype, int64_t at, W x)
{
    switch (dtype) {
    case ET_F64:
        ((double *)p)[at] = (double)x;
        break;
    case ET_BF16:
        ((etk_bf16 *)p)[at] = etk_down<etk_bf16>((float)x);
        break;
    case ET_F16:
        ((etk_f16 *)p)[at] = etk_down<etk_f16>((float)x);
        break;
    default:
        ((float *)p)[at] = (float)x;
    }
}

/* Where matrix I of the batch begins in X. */
static __device__ __forceinline__ int64_t
matrix_at(const struct etk_product &p, const struct etk_matrix &x, int64_t i)
{
    int64_t at = 0;
    for (int axis = p.n_batch - 1; axis >= 0; axis--) {
        at += i % p.batch[axis] * x.batch[axis];
        i /= p.batch[axis];
    }
    return at;
}

/* Which elements of a tile of 64 rows x 16 terms a thread brings: the first one's row,
 * term and place, and the steps to the next. Neighbouring threads read along the axis
 * of the smaller stride. */
struct share {
    int row, term, rows, terms;
    int64_t at, step, next; /* elements; NEXT: to the same of the next 16 terms */
};

static __device__ __forceinline__ struct share
share_of(int64_t row_stride, int64_t term_stride)
{
    struct share s;
    int t = (int)threadIdx.x;
    bool along_terms = term_stride < row_stride;
    s.row = along_terms ? t / DEPTH : t % SIDE;
    s.term = along_terms ? t % DEPTH : t / SIDE;
    s.rows = along_terms ? THREADS / DEPTH : 0;
    s.terms = along_terms ? 0 : THREADS / SIDE;
    s.at = s.row * row_stride + s.term * term_stride;
    s.step = s.rows * row_stride + s.terms * term_stride;
    s.next = DEPTH * term_stride;
    return s;
}

/* Brings the thread's share of 16 terms to TILE[term][row]. X is the tile's first
 * element; rows from ROWS on and terms from TERMS on are zeros that are not read. */
template <class T, class W>
static __device__ __forceinline__ void
load_tile(W (*tile)[SIDE + 1], const T *x, const struct share &s, int64_t rows,
          int64_t terms)
{
    for (int i = 0; i < LOADS; i++) {
        int r = s.row + i * s.rows, t = s.term + i * s.terms;
        tile[t][r] = r < rows && t < terms ? (W)etk_up(x[s.at + i * s.step]) : (W)0;
    }
}

template <class T>
static __global__ void __launch_bounds__(THREADS, 2)
    product(struct etk_product p, const T *a, const T *b, const void *bias, void *y,
            int64_t batches, int64_t across)
{
    typedef typename etk_wide<T>::type W;
    __shared__ W left[DEPTH][SIDE + 1], right[DEPTH][SIDE + 1];
    int64_t row = blockIdx.x / across * SIDE, column = blockIdx.x % across * SIDE;
    int down = (int)threadIdx.x / GRID, along = (int)threadIdx.x % GRID;
    struct share share_a = share_of(p.a.row, p.a.column);
    struct share share_b = share_of(p.b.column, p.b.row);
    for (int64_t i = blockIdx.y; i < batches; i += gridDim.y) {
        const T *ai = a + matrix_at(p, p.a, i) + row * p.a.row;
        const T *bi = b + matrix_at(p, p.b, i) + column * p.b.column;
        W sum[EACH][EACH] = {};
        for (int64_t left_over = p.k; left_over > 0; left_over -= DEPTH) {
            load_tile(left, ai, share_a, p.m - row, left_over);
            load_tile(right, bi, share_b, p.n - column, left_over);
            ai += share_a.next;
            bi += share_b.next;
            __syncthreads();
            for (int t = 0; t < DEPTH; t++)
                for (int r = 0; r < EACH; r++)
                    for (int c = 0; c < EACH; c++)
                        sum[r][c] +=
                            left[t][down + r * GRID] * right[t][along + c * GRID];
            __syncthreads();
        }
        int64_t yi = matrix_at(p, p.y, i);
        for (int c = 0; c < EACH; c++) {
            int64_t col = column + along + c * GRID;
            if (col >= p.n)
                continue;
            W start =
                p.bias != ET_NONE ? load<W>(bias, p.bias, col * p.bias_stride) : (W)0;
            for (int r = 0; r < EACH; r++) {
                int64_t at = row + down + r * GRID;
                if (at < p.m)
                    store(y, p.out, yi + at * p.y.row + col * p.y.column,
                          sum[r][c] + start);
            }
        }
    }
}

template <class T>
static cudaError_t
launch(const struct etk_product *p, const void *a, const void *b, const void *bias,
       void *y, cudaStream_t stream)
{
    int64_t batches = 1, across = etk_ceil_div(p->n, SIDE);
    int64_t blocks = across * etk_ceil_div(p->m, SIDE);
    for (int i = 0; i < p->n_batch; i++)
        batches *= p->batch[i];
    if (blocks > INT32_MAX)
        return cudaErrorInvalidValue;
    dim3 grid((unsigned)blocks,
              (unsigned)(batches < most_batches ? batches : most_batches));
    return etk_launch(product<T>, grid, THREADS, 0, stream, *p, (const T *)a,
                      (const T *)b, bias, y, batches, across);
}

cudaError_t
etk_launch_product(const struct etk_product *p, const void *a, const void *b,
                   const void *bias, void *y, cudaStream_t stream)
{
    if (p->in == ET_F64)
        return launch<double>(p, a, b, bias, y, stream);
    return ETK_FLOATS(p->in, launch, p, a, b, bias, y, stream);
}
