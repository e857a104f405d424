/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.h: launchers of reductions. */
#ifndef ETUDE_KERNELS_CUDA_REDUCE_H
#define ETUDE_KERNELS_CUDA_REDUCE_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One stage:
 *   y[k] = scale sum over r of x[k, r]        (largest: sign max of sign x[k, r])
 *
 * with k over KEPT and r over REDUCED, x^2 in place of x where SQUARES.
 *
 * By rows: a team of threads sums the elements of one result; parts of it where PARTS
 * > 1, each to y[part + parts k]. By columns: threads beside each other sum results
 * beside each other, column k of COLS, for each of KEPT; part p of a result goes to
 * y[p results + result]. */
struct etk_reduce {
    enum et_dtype in, out; /* of x and y */
    bool columns, largest, squares, dense, packs;
    double sign, scale;
    struct etk_walk kept, reduced; /* sides: x, y; x alone */
    int64_t cols, from, to;        /* columns, and their distances in x and y */
    int across; /* columns: threads side by side: a power of 2, <= 32 */
    int team;   /* rows: threads of a result, 32 or 256 */
    int parts;
    int64_t share; /* of REDUCED in a part */
};

/* PACKS: x is read in 16 bytes; it must begin at a multiple of 16. REDUCED and COLS
 * then count packs along the axis that is contiguous. */
cudaError_t etk_launch_reduce(const struct etk_reduce *, const void *x, void *y,
                              cudaStream_t);

/* A reduction of X to Y over the axes of mask AXES, times SCALE; for pooling too. */
ET_NODISCARD et_status etk_new_reduce(struct et_device_handle *d, enum et_op_id op,
                                      const struct et_desc *x, const struct et_desc *y,
                                      uint32_t axes, double scale,
                                      struct et_kernel **out, size_t *ws);

#ifdef __cplusplus
}
#endif
#endif
