/* SPDX-License-Identifier: Apache-2.0 */
/* tiles.h: how many elements the own loops take at a time.
 *
 * A loop is most easily wrong where a length is one less, or one more, than such a
 * number, so all of them are here: t/kernels/edges_forms.c tries those lengths. A loop
 * that takes another number of elements at a time names it here. */
#ifndef ETUDE_KERNELS_CPU_TILES_H
#define ETUDE_KERNELS_CPU_TILES_H

/* What vectors of 16, 32 and 64 bytes hold: loops_product.h is compiled with one of
 * them, and the compiler makes vectors of plain loops. */
#define ETK_LANES_BASE 4
#define ETK_LANES_V3   8
#define ETK_LANES_V4   16

/* loops_batch_norm.c */
#define ETK_BATCH_WIDE  256  /* elements of a wide row, at most, of several rows */
#define ETK_BATCH_ROWS  64   /* summed in f32 */
#define ETK_BATCH_BLOCK 4096 /* elements of a step of the second pass */

/* loops_copy.c: both sides of the squares of a transpose */
#define ETK_COPY_TILE 16

/* loops_depthwise.c: channels of a vector, vectors of a block */
#define ETK_DEPTHWISE_LANES 16
#define ETK_DEPTHWISE_PAIR  2

/* loops_draw.h: elements whose words are drawn at a time */
#define ETK_DRAW 64

/* loops_elementwise.c: elements of a block, and of a cast inside a program */
#define ETK_ELEMENT_MIN  128
#define ETK_ELEMENT_MAX  1024
#define ETK_ELEMENT_CAST 64

/* loops_reduce.c */
#define ETK_REDUCE_LANES 64   /* sums of a run, side by side */
#define ETK_REDUCE_RUN   2048 /* elements summed in f32: 32 a lane */
#define ETK_REDUCE_COLS  512  /* columns at a time */
#define ETK_REDUCE_ROWS  32   /* rows summed in f32 */
#define ETK_REDUCE_FOLD  256  /* columns of short rows side by side, at most */
#define ETK_REDUCE_WIDE  256  /* elements converted at a time */

/* loops_row_norm.c: floats, and rows, summed in f32 */
#define ETK_ROW_SUM  2048
#define ETK_ROW_ROWS 64

/* loops_sdpa.c: queries, and rows of the right operand of a product, at a time; rows of
 * the left one */
#define ETK_SDPA_QUERIES 32
#define ETK_SDPA_DEPTH   128
#define ETK_SDPA_ROWS    8
#define ETK_SDPA_ROWS_2  4 /* where they are wider */

/* loops_scan.c: columns whose sums are kept beside each other; elements that are put in
 * order one by one */
#define ETK_SCAN_COLS 64
#define ETK_SORT_RUN  16

/* loops_segment.c: lanes, and elements of a part */
#define ETK_SEGMENT_LANES 64
#define ETK_SEGMENT_PART  2048

/* loops_winograd.c: tiles whose sums are in registers together, with vectors of 32
 * bytes and of 64; the bytes that a block of tiles may take, and the least and the most
 * tiles that it is to have; and from how many tiles on oneDNN is not asked */
#define ETK_WINOGRAD_ROWS    6
#define ETK_WINOGRAD_ROWS_V4 12
#define ETK_WINOGRAD_BYTES   (128 << 10)
#define ETK_WINOGRAD_LEAST   24
#define ETK_WINOGRAD_MOST    96
#define ETK_WINOGRAD_MIN     64

/* matmul.c: from so many rows on the right operand is packed first, and from so many
 * terms on a product may be computed the other way round */
#define ETK_MATMUL_PACK  1024
#define ETK_MATMUL_STAND 1024

/* What a second thread must at least have to do, in elements touched; a region costs
 * about 1 us. */
#define ETK_PARALLEL_COUNT 8192

#endif
