/* SPDX-License-Identifier: Apache-2.0 */
/* cpu.h: what the files of the CPU module share.
 *
 * A kernel is a struct that begins with struct et_kernel. A prepare function allocates
 * one with etk_new, settles everything there is to settle (primitives, strides, tiles,
 * the workspace's layout) and fills run and release; run then only computes. */
#ifndef ETUDE_KERNELS_CPU_H
#define ETUDE_KERNELS_CPU_H

#include <stddef.h>
#include <stdint.h>

#include "etude/device.h"

struct et_kernel {
    /* PTR: inputs, then outputs, NULL where left out. WS: 64-byte aligned. */
    et_status (*run)(struct et_kernel *, void *const *ptr, void *ws);
    void (*release)(struct et_kernel *); /* what the struct holds; NULL = nothing */
    const char *what;                    /* for describe: lives as long as the kernel */
    int threads;                         /* set by the device; run keeps to it */
};

/* Prepares one kernel of a family; ENOTSUP with a sentence where it cannot. */
typedef et_status etk_prepare_fn(struct et_device_handle *, const struct et_call *,
                                 struct et_kernel **out, size_t *ws, char *why,
                                 size_t why_size);

struct etk_cpu_row {
    enum et_op_id op;
    etk_prepare_fn *prepare;
};

/* A copy between two arrays of one shape and element size, any strides: axes sorted by
 * the target's strides, and merged where both sides run on. */
struct etk_copy {
    int ndim;
    size_t size;                                /* bytes of an element */
    int64_t shape[ET_MAX_DIMS];                 /* slowest axis first */
    int64_t to[ET_MAX_DIMS], from[ET_MAX_DIMS]; /* strides in elements */
};

/* The own loops as compiled for one instruction set: rows for the dispatch table, and
 * helpers for the oneDNN adapters, which are compiled only once. */
struct etk_loops {
    const char *isa;
    const struct etk_cpu_row *row;
    int n_row;
    void (*copy)(const struct etk_copy *, void *to, const void *from);
    /* y[i,c] += bias[c], for ROWS dense rows of C. */
    void (*bias)(float *y, const float *bias, int64_t rows, int64_t c);
    /* ENOTSUP: not their kind of convolution. */
    etk_prepare_fn *depthwise_weights, *winograd;
};

const struct etk_loops *etk_loops_base(void);
const struct etk_loops *etk_loops_v3(void);
const struct etk_loops *etk_loops_v4(void);

struct dnnl_engine;
struct dnnl_stream;

struct et_device_handle {
    int threads;
    const struct etk_loops *loops;
    struct dnnl_engine *engine; /* oneDNN's, for the adapters */
    struct dnnl_stream *stream;
    char why[256], told[256]; /* what an operation of the user's says of a failure */
    bool native_bf16;         /* products of bf16 are computed in bf16: native.h */
    etk_prepare_fn *prepare[ET_OP_COUNT]; /* NULL: the module has no such kernel */
};

/* The adapters' side of opening (onednn.c), and what they offer. */
ET_NODISCARD et_status etk_onednn_open(struct et_device_handle *);
void etk_onednn_close(struct et_device_handle *);
void etk_onednn_version(int *major, int *minor, int *patch);
/* Has the processor instructions for products of bf16 that oneDNN uses? */
bool etk_onednn_has_bf16(void);
etk_prepare_fn etk_prepare_conv2d, etk_prepare_conv2d_fused,
    etk_prepare_conv2d_grad_input, etk_prepare_conv2d_grad_weight, etk_prepare_matmul;
etk_prepare_fn etk_prepare_custom;       /* custom.c */
etk_prepare_fn etk_prepare_conv2d_split; /* conv2d_fused as two kernels */
/* conv_columns.c: conv2d_grad_weight as one product; and is it of patches? */
etk_prepare_fn etk_prepare_conv2d_columns;
bool etk_has_patches(const struct et_call *call);

/* The processor's name, as the system tells it (device.c). */
void etk_cpu_name(char *buf, size_t n);

/* Prepares any op of the table (device.c), and frees what was prepared; NULL is
 * allowed. */
etk_prepare_fn etk_prepare;
void etk_release(struct et_kernel *);

/* widen.c: the same op on f32 copies of its bf16 and f16 operands. */
etk_prepare_fn etk_prepare_widened;
/* Is there such an operand or result? */
bool etk_has_low(const struct et_call *call);

/* A zeroed kernel of SIZE bytes (>= sizeof(struct et_kernel)); NULL when out of
 * memory. */
void *etk_new(size_t size);

/* ET_ENOTSUP, with a sentence in WHY. */
et_status etk_refuse(char *why, size_t why_size, const char *fmt, ...) ET_PRINTF(3, 4);

/* The copy of FROM into TO, which have one shape and dtype. */
void etk_copy_init(struct etk_copy *c, const struct et_desc *to,
                   const struct et_desc *from);

static inline size_t
etk_round_up(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

#endif
