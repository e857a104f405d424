/* SPDX-License-Identifier: Apache-2.0 */
/* boxes.h: boxes in pictures, which CutMix and CutOut share. */
#ifndef ETI_ALGORITHMS_BOXES_H
#define ETI_ALGORITHMS_BOXES_H

#include "core/algorithms/algorithms.h"

/* A in each of BOXES, I32 [K,4], else B: pictures [N,C,H,W], masks [N,H,W] of integers,
 * or what is as wide everywhere. */
struct et_tensor *eti_boxes_paste(struct et_graph *g, struct et_tensor *boxes,
                                  struct et_tensor *a, struct et_tensor *b);
/* Does T, [N,H,W] or [N,C,H,W], have a value for each pixel of X [N,C,H,W]? */
bool eti_is_picture_of(const struct et_tensor *t, const struct et_tensor *x);

/* K boxes: written in V on the host, then read by nodes from LEAF, I32 [K,4]. */
struct eti_boxes {
    int32_t *v;
    struct et_tensor *leaf;
    int64_t n;
};
/* Room for K; allocates only when K changes. */
ET_NODISCARD et_status eti_boxes_reserve(struct et_state *s, struct eti_boxes *b,
                                         int64_t n);
ET_NODISCARD et_status eti_boxes_write(struct et_state *s, struct eti_boxes *b);
void eti_boxes_release(struct et_ctx *cx, struct eti_boxes *b);

#endif
