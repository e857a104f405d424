/* SPDX-License-Identifier: Apache-2.0 */
/* dnn.h: cuDNN's graph API as plain data.
 *
 * A graph is written down first: tensors, then operations between them, all plain
 * numbers. etk_dnn_plan turns it into cuDNN's descriptors, asks the heuristics for
 * engines, drops those that do not compute what was asked for, and keeps the plan of
 * one of them for everybody who asks for the same graph again, in this process and, as
 * JSON, on disk.
 *
 *     struct etk_dnn_graph g = {0};
 *     int q = etk_dnn_tensor(&g, CUDNN_DATA_BFLOAT16, 4, shape, stride, 0);
 *     int k = etk_dnn_tensor(&g, CUDNN_DATA_BFLOAT16, 4, turned, stride, 1);
 *     int s = etk_dnn_virtual(&g, CUDNN_DATA_FLOAT, 4, square);
 *     etk_dnn_matmul(&g, q, k, s);
 *     int scale = etk_dnn_value(&g, 4, 0.125f);
 *     int y = etk_dnn_tensor(&g, CUDNN_DATA_BFLOAT16, 4, square, dense, 2);
 *     etk_dnn_pointwise(&g, CUDNN_POINTWISE_MUL, s, scale, ETK_DNN_NO_TENSOR, y);
 *     ET_TRY(etk_dnn_plan(d, &g, &(struct etk_dnn_limits){.workspace = most}, &plan,
 *                         &ws, why, why_size));
 *     ... in run: etk_dnn_run(plan, ptr, ws, stream), PTR by slot: q, k, y.
 *
 * Arithmetic is in f32 (indices i32, comparisons boolean). Operations stay in the order
 * in which they were written: engines match patterns. */
#ifndef ETUDE_KERNELS_CUDA_DNN_H
#define ETUDE_KERNELS_CUDA_DNN_H

#include <cudnn_graph.h>

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    ETK_DNN_TENSORS = 64,
    ETK_DNN_NODES = 40,
    ETK_DNN_SLOTS = 24,
    ETK_DNN_NO_TENSOR = -1, /* an operand left out */
    ETK_DNN_VIRTUAL = -1,   /* slots of tensors that are not in memory */
    ETK_DNN_BY_VALUE = -2,
    ETK_DNN_ALIGN = 16, /* bytes, of every pointer given to etk_dnn_run */
};

struct etk_dnn_tensor {
    cudnnDataType_t dtype;
    int ndim;
    int64_t shape[CUDNN_DIM_MAX], stride[CUDNN_DIM_MAX]; /* strides in elements */
    int slot;    /* place in run's PTR, or ETK_DNN_VIRTUAL, or ETK_DNN_BY_VALUE */
    float value; /* by value: what it is */
};

enum etk_dnn_kind {
    ETK_DNN_POINTWISE,   /* in: x, b, t (or none of the latter) */
    ETK_DNN_REDUCTION,   /* in: x; axes on which out has length 1 are reduced */
    ETK_DNN_MATMUL,      /* in: a [.., M, K], b [.., K, N] */
    ETK_DNN_CONV,        /* in: x [N,C,H,W], w [K,C,R,S]; out: y */
    ETK_DNN_CONV_DATA,   /* in: dy, w; out: dx */
    ETK_DNN_CONV_FILTER, /* in: x, dy; out: dw */
    ETK_DNN_RESHAPE,     /* in: x; out has other shape or strides */
    ETK_DNN_RNG,         /* in: seed, offset (i64, by pointer); out: 1 or 0 */
    ETK_DNN_KINDS
};

struct etk_dnn_node {
    enum etk_dnn_kind kind;
    int mode; /* cudnnPointwiseMode_t, or cudnnReduceTensorOp_t */
    int axis; /* of CUDNN_POINTWISE_GEN_INDEX */
    int in[3], out;
    int64_t pad[2], post_pad[2], stride[2], dilation[2]; /* convolutions; 0: height */
    float beta;         /* convolutions: out = result + beta out; 0 reads no out */
    double probability; /* rng: of a 1 */
};

/* All zero is an empty graph. Too many tensors or nodes are noted and refused by
 * etk_dnn_plan. */
struct etk_dnn_graph {
    int n_tensors, n_nodes;
    struct etk_dnn_tensor tensor[ETK_DNN_TENSORS];
    struct etk_dnn_node node[ETK_DNN_NODES];
    bool overflow;
};

/* ---- writing a graph: functions return the number of a tensor ---- */

/* In memory: run's PTR[SLOT]. STRIDE in elements, one per axis. */
int etk_dnn_tensor(struct etk_dnn_graph *, cudnnDataType_t, int ndim,
                   const int64_t *shape, const int64_t *stride, int slot);
/* Between two operations, never in memory; row-major. */
int etk_dnn_virtual(struct etk_dnn_graph *, cudnnDataType_t, int ndim,
                    const int64_t *shape);
/* The same with strides of its own: what a transposing reshape makes. */
int etk_dnn_virtual_strided(struct etk_dnn_graph *, cudnnDataType_t, int ndim,
                            const int64_t *shape, const int64_t *stride);
/* One f32 of NDIM axes of length 1, settled now. */
int etk_dnn_value(struct etk_dnn_graph *, int ndim, float value);

/* These return OUT. */
int etk_dnn_pointwise(struct etk_dnn_graph *, cudnnPointwiseMode_t, int x, int b, int t,
                      int out);
/* The position along AXIS (i32) of each element. X gives the shape. */
int etk_dnn_index(struct etk_dnn_graph *, int axis, int x, int out);
int etk_dnn_reduce(struct etk_dnn_graph *, cudnnReduceTensorOp_t, int x, int out);
int etk_dnn_matmul(struct etk_dnn_graph *, int a, int b, int out);
/* KIND: one of the three convolutions, A and B its operands in their order. STEP has
 * paddings, strides, dilations and beta; its other fields are not read. */
int etk_dnn_conv(struct etk_dnn_graph *, enum etk_dnn_kind,
                 const struct etk_dnn_node *step, int a, int b, int out);
int etk_dnn_reshape(struct etk_dnn_graph *, int x, int out);
int etk_dnn_rng(struct etk_dnn_graph *, int seed, int offset, double probability,
                int out);

/* ---- plans ---- */

struct etk_dnn_limits {
    size_t workspace; /* most bytes that an engine may ask for */
    int tune; /* engines that are timed; the fastest is taken. 0, 1: the first */
    bool precompiled; /* only engines that need no compilation (0.2-0.6 s) */
};

struct etk_dnn_plan; /* an engine for one graph, and what its last run was given */

/* The dtype of cuDNN that DTYPE is; false if cuDNN has no such. */
bool etk_dnn_dtype(enum et_dtype dtype, cudnnDataType_t *out);

/* Finds an engine; opens cuDNN if no kernel has yet. f32 products are exact unless the
 * device may round them to TF32; where it is to be deterministic engines that are not
 * are left out, and none is timed, nor with ETUDE_TUNE=0. ENOTSUP with a sentence in
 * WHY where no engine takes the graph: the caller has another way. WS: bytes of
 * workspace. Not while a stream of this thread is captured. */
ET_NODISCARD et_status etk_dnn_plan(struct et_device_handle *,
                                    const struct etk_dnn_graph *,
                                    const struct etk_dnn_limits *,
                                    struct etk_dnn_plan **out, size_t *ws, char *why,
                                    size_t why_size);
void etk_dnn_plan_free(struct etk_dnn_plan *);
/* "eng7_k2=3_k13=1": the engine and its knobs. Borrowed, as long as the device. */
const char *etk_dnn_plan_name(const struct etk_dnn_plan *);
/* PTR: by slot, each ETK_DNN_ALIGN-aligned; etk_dnn_aligned says whether they are.
 * Nothing is made or asked of cuDNN's planner when the addresses are those of the last
 * run. */
ET_NODISCARD et_status etk_dnn_run(struct etk_dnn_plan *, void *const *ptr, void *ws,
                                   cudaStream_t);
bool etk_dnn_aligned(void *const *ptr, int n);

/* Frees handle and plans; NULL before the first kernel is allowed. For device.c. */
void etk_dnn_close(struct et_device_handle *);

/* For tests without a GPU: plans are made for the device that JSON describes
 * (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION) and cannot be run. D needs no more than
 * its options filled in. */
ET_NODISCARD et_status etk_dnn_open_properties(struct et_device_handle *d,
                                               const char *json);

#ifdef __cplusplus
}
#endif
#endif
