/* SPDX-License-Identifier: Apache-2.0 */
/* dnn_plan.h: what dnn.c takes from dnn_graph.c, dnn_engine.c and dnn_tune.c, and they
 * from it. */
#ifndef ETUDE_KERNELS_CUDA_DNN_PLAN_H
#define ETUDE_KERNELS_CUDA_DNN_PLAN_H

#include "kernels/cuda/dnn.h"

/* A finished plan, shared by all kernels of one graph. */
struct etk_dnn_engine {
    struct etk_dnn_engine *next;
    char *key;
    cudnnBackendDescriptor_t plan;
    size_t ws;
    char name[64];
};

struct etk_dnn {
    cudnnHandle_t handle;           /* NULL: PROPERTIES stand for a device */
    cudnnBackendDescriptor_t props; /* NULL beside a handle */
    cudaStream_t stream;            /* the handle's, as last set */
    struct etk_dnn_engine *engines;
};

/* A status for CODE of the call WHAT, with what cuDNN says of it. */
ET_NODISCARD et_status etk_dnn_fail(struct et_device_handle *d, cudnnStatus_t code,
                                    const char *what);
#define ETK_TRY_DNN(d, call)                                                           \
    do {                                                                               \
        cudnnStatus_t code_ = (call);                                                  \
        if (code_ != CUDNN_STATUS_SUCCESS)                                             \
            return etk_dnn_fail(d, code_, #call);                                      \
    } while (0)

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

/* A configuration asks for 0.05 ms (precompiled) to 0.6 s: 40 are what the largest
 * answers have. */
enum { ETK_DNN_CONFIGS = 64 };

/* Engines that will do, the heuristics' best first. */
struct etk_dnn_candidates {
    int n, most;
    struct etk_dnn_engine engine[ETK_DNN_CONFIGS];
};

/* Bits by note of the engines that are passed over. Narrower inputs or sums than asked
 * for never will do, nor Fourier and Winograd's transforms, whose errors are not those
 * of a sum; of f32 on tensor cores 10 bits of each factor are left (TF32). */
unsigned etk_dnn_unwanted(const struct et_device_handle *d,
                          const struct etk_dnn_graph *g);
/* The plan of CONFIG, or of JSON; NULL where cuDNN has none. */
cudnnBackendDescriptor_t etk_dnn_finish(const struct etk_dnn *dnn,
                                        cudnnBackendDescriptor_t config,
                                        const char *json, size_t length);
/* The bytes of workspace that PLAN needs; false where cuDNN does not say. */
bool etk_dnn_workspace(cudnnBackendDescriptor_t plan, size_t *ws);
/* The engines that take G. The first mode of the heuristics that has one answers for
 * all. */
ET_NODISCARD et_status etk_dnn_gather(struct et_device_handle *d,
                                      const struct etk_dnn_graph *g,
                                      const struct etk_dnn_limits *limits,
                                      struct etk_dnn_candidates *c);

/* Runs each of N plans of G, which need up to WS bytes of workspace: the number of the
 * fastest, or -1 where there was no room for operands or none ran. EDEVICE only where
 * the device is lost. */
ET_NODISCARD et_status etk_dnn_fastest(struct et_device_handle *d,
                                       const struct etk_dnn_graph *g,
                                       struct etk_dnn_plan *const *plan, int n,
                                       size_t ws, int *best);

#endif
