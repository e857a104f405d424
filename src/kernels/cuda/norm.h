/* SPDX-License-Identifier: Apache-2.0 */
/* norm.h: batch, layer and group norm: what the preparing C files and the launchers
 * share.
 *
 * A set is what one mean and variance belong to: a channel over all positions, the last
 * axes of a position, a group of channels of one sample. Three ways to compute them:
 *
 *   rows       layer norm of dense rows that fit into registers (row_norm.c, .cu)
 *   channels   batch and group norm, channels innermost (channel_norm.c, .cu)
 *   any        all three with any strides and in f64 (norm_any.cu), slowly
 */
#ifndef ETUDE_KERNELS_CUDA_NORM_H
#define ETUDE_KERNELS_CUDA_NORM_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What an array of a call is to the norm. */
enum etk_norm_role {
    ETK_NORM_X,
    ETK_NORM_RESIDUAL, /* batch norm: added to the result */
    ETK_NORM_BRANCH,   /* layer norm: added to x before all else */
    ETK_NORM_GAMMA,
    ETK_NORM_BETA,
    ETK_NORM_DY,
    ETK_NORM_DSUM,   /* layer norm: added to dx */
    ETK_NORM_RELU_Y, /* dy counts where this is positive */
    ETK_NORM_MEAN,
    ETK_NORM_SPREAD, /* batch norm: biased variance; others: 1/sqrt(variance + eps) */
    ETK_NORM_Y,
    ETK_NORM_SUM, /* x + branch */
    ETK_NORM_DX,
    ETK_NORM_DRESIDUAL, /* batch norm: dy behind relu */
    ETK_NORM_DBRANCH,   /* layer norm: dx once more */
    ETK_NORM_DGAMMA,
    ETK_NORM_DBETA,
    ETK_NORM_ROLES
};

/* A call, by role. */
struct etk_norm {
    const struct et_norm_attr *attr;            /* borrowed from the call */
    const struct et_desc *desc[ETK_NORM_ROLES]; /* NULL: left out, not wanted */
    bool grad, batch, group, relu;
    enum et_dtype stored; /* that a norm is rounded to before a residual is added */
    double eps;
};

/* An array with one number per channel or column, of any float dtype. */
struct etk_norm_param {
    void *p; /* NULL: left out */
    int dtype;
    int quick; /* f32 at a multiple of 16 bytes: four at a time */
};

/* ---- any strides (norm_any.cu) ---- */

enum { ETK_NORM_DIMS = ET_MAX_DIMS + 1 }; /* group norm splits the channels in two */

struct etk_norm_array {
    void *p; /* NULL: left out */
    int dtype;
    int64_t stride[ETK_NORM_DIMS]; /* in elements; 0: the same number all along */
};

struct etk_norm_any {
    int ndim, outer;              /* the first OUTER axes tell blocks apart */
    int64_t shape[ETK_NORM_DIMS]; /* slowest first */
    int64_t blocks, size;         /* products: of the outer axes, of the others */
    struct etk_norm_array a[ETK_NORM_ROLES];
    double eps;
    int relu, variance; /* VARIANCE: what SPREAD holds */
    int stored;         /* dtype that a norm is rounded to before a residual is added */
    int wide;           /* computed in f64 */
};
/* The outer axes are those of a set. */
cudaError_t etk_launch_norm_any(const struct etk_norm_any *, cudaStream_t);
cudaError_t etk_launch_norm_any_grad(const struct etk_norm_any *, cudaStream_t);
/* dgamma and dbeta; the outer axes are theirs. */
cudaError_t etk_launch_norm_any_params(const struct etk_norm_any *, cudaStream_t);

/* ---- layer norm of rows (row_norm.c, row_norm.cu) ---- */

struct etk_norm_rows {
    int64_t count, size;            /* rows, elements of one */
    int64_t stride[ETK_NORM_ROLES]; /* from row to row, in elements */
    double eps;
    int dtype;    /* of x, its sum, their gradients; and of the others, but */
    int narrow;   /* of those whose bit is set in NARROWED; else DTYPE again */
    int narrowed; /* by role: branch, y, dy, dbranch */
    struct etk_norm_param param[ETK_NORM_ROLES]; /* gamma, beta, dgamma, dbeta */
    void *p[ETK_NORM_ROLES];
    /* Set by etk_norm_rows_shape. */
    int lanes;   /* threads of a row: a power of two, 4 to 1024 */
    int chunks;  /* of VECTOR elements that each of them holds, at most */
    int vector;  /* elements of an access: 16 bytes, or 1 */
    int threads; /* of a block */
    int blocks;
    size_t shared;      /* bytes, backward */
    size_t most_shared; /* that a block may be given */
    float *parts; /* backward: [blocks][2][size] in the workspace; NULL: not wanted */
};
/* Lanes, chunks, threads and blocks for accesses of VECTOR elements; false when a row
 * does not fit. */
bool etk_norm_rows_shape(struct etk_norm_rows *, const struct etk_gpu *, int vector,
                         bool grad);
/* Lets the backward kernel of that shape have its shared memory: once, before it is
 * launched. */
cudaError_t etk_norm_rows_allow(const struct etk_norm_rows *);
cudaError_t etk_launch_norm_rows(const struct etk_norm_rows *, cudaStream_t);
cudaError_t etk_launch_norm_rows_grad(const struct etk_norm_rows *, cudaStream_t);

/* ---- batch and group norm with channels innermost (channel_norm.c, .cu) ---- */

struct etk_norm_channels {
    int64_t samples, rows, channels; /* batch norm: 1 sample of all positions */
    int64_t groups;                  /* batch norm: as many as channels */
    double eps;
    int dtype; /* of images */
    int relu, batch;
    struct etk_norm_param param[ETK_NORM_ROLES]; /* gamma, beta, dgamma, dbeta */
    void *p[ETK_NORM_ROLES];
    int sm_count;
    /* Set by etk_norm_channels_shape. */
    int vector;     /* channels of an access */
    int columns;    /* threads beside each other, each with VECTOR channels */
    int lines;      /* rows that a block reads at once */
    int tiles;      /* blocks beside each other */
    int64_t splits; /* blocks along the rows of a sample, for sums */
    int64_t each;   /* rows that a thread writes */
    int small;      /* one kernel does it all */
    float *parts;   /* [samples][channels][splits][2] in the workspace */
    float *coef;    /* [samples][4][channels] */
};
void etk_norm_channels_shape(struct etk_norm_channels *, int vector);
cudaError_t etk_launch_norm_channels(const struct etk_norm_channels *, cudaStream_t);
cudaError_t etk_launch_norm_channels_grad(const struct etk_norm_channels *,
                                          cudaStream_t);

/* ---- norm.c and the C files of the fast ways ---- */

/* Is ROLE an array of x's shape? Otherwise it has one number per set or parameter. */
bool etk_norm_is_image(int role);
/* Elements of DTYPE in 16 bytes. */
static inline int
etk_norm_widest(int dtype)
{
    return 16 / (int)et_dtype_size((enum et_dtype)dtype);
}
/* P as pointers of images and statistics, and as parameters, whose dtypes stand. */
void etk_norm_bind(void *const *p, void **image, struct etk_norm_param *param);

/* Settles what a call's descriptions settle and raises WS to what run needs; false:
 * this way does not take the call. CODE: what the runtime said of it. */
bool etk_norm_rows_plan(const struct etk_norm *, const struct etk_gpu *,
                        struct etk_norm_rows *, size_t *ws, cudaError_t *code);
bool etk_norm_channels_plan(const struct etk_norm *, const struct etk_gpu *,
                            struct etk_norm_channels *, size_t *ws);
/* P: by role. Rows may still be too long for accesses of single elements, where P is
 * not aligned: false, and nothing has been launched. */
bool etk_norm_rows_run(struct et_kernel *, const struct etk_norm_rows *, bool grad,
                       void *const *p, void *ws, cudaStream_t, et_status *);
ET_NODISCARD et_status etk_norm_channels_run(struct et_kernel *,
                                             const struct etk_norm_channels *,
                                             bool grad, void *const *p, void *ws,
                                             cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
