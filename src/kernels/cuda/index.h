/* SPDX-License-Identifier: Apache-2.0 */
/* index.h: launchers of reading and adding through indices. */
#ifndef ETUDE_KERNELS_CUDA_INDEX_H
#define ETUDE_KERNELS_CUDA_INDEX_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y[e] = x[e but for the axis, index[e]] for each element e of y. */
struct etk_gather {
    struct etk_walk walk; /* sides: y, x without the axis, index */
    int64_t n, step;      /* of the axis in x */
    int unit;             /* bytes moved at once, 1 to 16: what strides count */
    int nothing;          /* the byte that what is outside consists of */
    int sm_count;
};
cudaError_t etk_launch_gather(const struct etk_gather *, const void *x,
                              const int32_t *index, void *y, cudaStream_t);

/* y[key scale, c] = sum over the positions i of this key, in order, of x[i, c].
 *
 * A position's key is index step, plus where the position itself lies in y
 * (scatter_add). Keys are sorted with their positions, digit by digit, each digit
 * stably, and then runs of equal keys are summed. */
enum {
    ETK_DIGIT = 8,   /* bits of a key that one pass sorts by */
    ETK_TILE = 1024, /* positions that a block sorts */
    ETK_RUN = 64,    /* positions, in the order of their keys, that a block sums */
};
struct etk_segment {
    struct etk_walk tokens;  /* positions i: sides index, x, y */
    struct etk_walk columns; /* c: sides y, x */
    struct etk_walk clear;   /* y, all of it */
    enum et_dtype dtype;
    int64_t n, step, scale;
    uint32_t outside; /* the key of an index that is outside: above all others */
    int passes;       /* digits of that key */
    bool dense;       /* y is one block of memory */
    int sm_count;
};
/* Parts of the workspace, in bytes from its start; columns in elements. */
struct etk_segment_room {
    size_t key[2], token[2], count, part, bytes;
};
struct etk_segment_room etk_segment_room_of(int64_t tokens, int64_t columns);
/* PACKS: COLUMNS counts packs of 16 bytes, to whose multiples x and y are aligned. */
cudaError_t etk_launch_segment(const struct etk_segment *, bool packs, const void *x,
                               const int32_t *index, void *y, void *ws, cudaStream_t);

/* scatter_add, a thread for each line: adds a line's elements in order. Sums are in
 * SUMS, f32 [n, lines], or in y where that is NULL. */
struct etk_scatter {
    struct etk_walk lines; /* sides: y, x, index */
    enum et_dtype dtype;
    int64_t m, n;         /* elements of a line of x, of y */
    int64_t to, from, by; /* their distances in y, x, index */
};
cudaError_t etk_launch_scatter(const struct etk_scatter *, const void *x,
                               const int32_t *index, void *y, float *sums,
                               cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
