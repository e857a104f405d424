/* SPDX-License-Identifier: Apache-2.0 */
/* dnn_plan.h: what dnn.c takes from dnn_graph.c and dnn_tune.c. */
#ifndef ETUDE_KERNELS_CUDA_DNN_PLAN_H
#define ETUDE_KERNELS_CUDA_DNN_PLAN_H

#include "kernels/cuda/dnn.h"

/* The descriptors of one graph: tensors, and two for each operation, and the graph. */
struct etk_dnn_descs {
    cudnnBackendDescriptor_t all[ETK_DNN_TENSORS + 2 * ETK_DNN_NODES + 1], graph;
    int n;
};

/* Everything that a plan depends on, as lines of text; false where SIZE is too
 * small. */
bool etk_dnn_text(const struct etk_dnn_graph *g, char *text, size_t size);
/* Makes the descriptors; what there is of them is in OUT in any case. HANDLE: NULL
 * where a description stands for the device. Numbers of tensors plus 1 are their
 * unique ids. */
cudnnStatus_t etk_dnn_lower(const struct etk_dnn_graph *g, cudnnHandle_t handle,
                            struct etk_dnn_descs *out);
void etk_dnn_drop(struct etk_dnn_descs *);

/* Runs each of N plans of G, which need up to WS bytes of workspace: the number of the
 * fastest, or -1 where there was no room for operands or none ran. EDEVICE only where
 * the device is lost. */
ET_NODISCARD et_status etk_dnn_fastest(struct et_device_handle *d,
                                       const struct etk_dnn_graph *g,
                                       struct etk_dnn_plan *const *plan, int n,
                                       size_t ws, int *best);

#endif
