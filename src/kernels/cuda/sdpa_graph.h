/* SPDX-License-Identifier: Apache-2.0 */
/* sdpa_graph.h: attention as a graph for cuDNN. */
#ifndef ETUDE_KERNELS_CUDA_SDPA_GRAPH_H
#define ETUDE_KERNELS_CUDA_SDPA_GRAPH_H

#include "kernels/cuda/dnn.h"
#include "kernels/cuda/sdpa.h"

/* Slots of a run: etk_sdpa_array, and what lies in the workspace. */
enum {
    ETK_SDPA_SUM = ETK_SDPA_ARRAYS, /* backward: do . o, f32 [B,H,T] */
    ETK_SDPA_TOTAL,                 /* dq being summed, f32 [B,H,T,D] */
    ETK_SDPA_SLOTS,
};

/* Appends attention, or its gradient where A->grad, to the empty graph G.
 * DETERMINISTIC: dq without atomics, by an engine that keeps ds in its workspace.
 * Whether there is an engine is for etk_dnn_plan to say. */
void etk_sdpa_graph(struct etk_dnn_graph *g, const struct etk_sdpa *a,
                    bool deterministic);

#endif
