/* SPDX-License-Identifier: Apache-2.0 */
/* lines.h: arrays as lines along one axis, for the ops that work line by line. */
#ifndef ETUDE_KERNELS_CUDA_LINES_H
#define ETUDE_KERNELS_CUDA_LINES_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ETK_LINE_SIDES = 5 };

/* Arrays of one shape (side 0 and others), and arrays that have one element for each
 * line: the shape without the axis. */
struct etk_lines {
    struct etk_walk rest;         /* the lines, in side 0's order in memory */
    int64_t n;                    /* elements of a line */
    int64_t step[ETK_LINE_SIDES]; /* between them; 0 where there is one for all */
    int team;                     /* threads that share a line: 1, 32 or 256 */
    int sm_count;
};
/* SIDE[0] has the axis AXIS; a side with one axis less has an element a line. */
void etk_lines_init(struct etk_lines *l, const struct et_device_handle *d, int axis,
                    const struct et_desc *const *side, int sides);

/* D without AXIS. */
struct et_desc etk_drop_axis(const struct et_desc *d, int axis);

/* ENOTSUP with a sentence unless D is one of the three dtypes that are summed in
 * f32. */
ET_NODISCARD et_status etk_need_float(const struct et_desc *d, const char *op,
                                      char *why, size_t why_size);

#ifdef __cplusplus
}
#endif
#endif
