/* SPDX-License-Identifier: Apache-2.0 */
/* custom.h: operations of your own: examples/custom_op.c.
 *
 * A class says what an operation is: what its results look like, its gradient, and the
 * functions that compute it. et_custom appends a node of it, which is planned,
 * recorded, differentiated, profiled and dumped as the engine's own are, under the
 * class's name.
 *
 * The engine takes it that results are a function of operands and attributes alone. A
 * node that nobody reads is not computed, and one that is read is computed at any time
 * after what it reads itself. Random numbers come in as operands (et_random_uniform),
 * and so does whatever changes from step to step: attributes are part of the plan. Two
 * nodes are the same in a plan if they have one class, by address, and the same bytes
 * of attributes. Under mixed precision a node takes its operands as they are
 * written. */
#ifndef ETUDE_CUSTOM_H
#define ETUDE_CUSTOM_H

#include "etude/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One run, or a part of one. Arrays lie as their descriptions say; results do not
 * overlap operands, and hold nothing yet. */
struct et_custom_run {
    const void *attr; /* the class's attr_size bytes */
    int n_in, n_out;
    const struct et_desc *in, *out; /* dtype ET_NONE: left out; nobody wants it */
    const void *const *x;           /* operands, NULL where left out */
    void *const *y;                 /* results, NULL where nobody wants it */
    void *workspace;                /* as many bytes as the class asks for */
    int64_t begin, end;             /* host: the items to compute, of items() */
    void *stream;                   /* gpu: a cudaStream_t */
    char *why;                      /* takes a sentence where the function fails */
    size_t why_size;
};

enum et_custom_layout {
    /* Operands are dense and row-major; what lies otherwise is copied. */
    ET_CUSTOM_ROW_MAJOR = 0,
    /* For operations on single elements, of operands of one shape: all are dense in one
     * order, row-major or channels-last, so that element i of each array belongs to
     * element i of the others. */
    ET_CUSTOM_ELEMENTS = 1,
    /* Operands lie as they do, with any strides. */
    ET_CUSTOM_ANY = 2,
};

enum { ET_CUSTOM_MOST_OUT = 8 };

/* Lives as long as any graph that has seen it. What is 0 or NULL is left out where the
 * comment says "optional". */
struct et_custom_class {
    size_t size;        /* sizeof(struct et_custom_class) */
    const char *name;   /* for messages and dumps */
    int min_in, max_in; /* operands; the first min_in must be there, max_in -1: any */
    int n_out;          /* 1 to ET_CUSTOM_MOST_OUT */
    size_t attr_size;   /* of plain data without pointers; padding is 0. Optional */
    int layout;         /* enum et_custom_layout */

    /* Describes the results: et_desc_init(&out[0], dtype, ndim, shape, format), dense.
     * CALL has the operands' descriptions and the class's attributes. May say why not
     * with ET_FAIL. Optional: all results are as operand 0 is. */
    et_status (*infer)(struct et_ctx *cx, const struct et_call *call,
                       struct et_desc *out);
    /* Appends the gradient, as that of struct et_op does: DY[i] is the gradient of
     * result i (NULL: it has none); fills DX[j], of operand j's shape and dtype,
     * where WANT[j]. NODE has the operands, the results and the class's attributes.
     * Optional: without one it cannot be differentiated. */
    et_status (*gradient)(struct et_graph *g, const struct et_node *node,
                          struct et_tensor *const *dy, const bool *want,
                          struct et_tensor **dx);

    /* Of how many items, computed independently, one run consists. It depends on CALL
     * alone, and an item's results on that item: so they are the same whatever the
     * number of threads. Optional: 1. */
    int64_t (*items)(const struct et_call *call);
    /* Bytes of memory that one run needs besides its arrays, 64-byte aligned; all parts
     * of a run share them. Optional: none. */
    size_t (*workspace)(const struct et_call *call);
    /* Floating-point operations of one run. Optional: one per element of the first
     * result that is wanted. */
    int64_t (*flops)(const struct et_call *call);

    /* Computes items [begin, end) in the processor's memory. May be called by several
     * threads at once, each with items of its own; the first that fails fails the
     * evaluation. Optional: devices that work there refuse the node. */
    et_status (*host)(const struct et_custom_run *run);
    /* Gives all of it to a GPU: launches kernels on the stream, and neither allocates
     * nor waits, for the launches may be recorded and replayed later with the same
     * arguments. The caller looks whether a launch has failed (cudaGetLastError).
     * Optional: GPUs refuse the node. */
    et_status (*gpu)(const struct et_custom_run *run);
};

/* Appends a node of TYPE with N operands (NULL: an optional one left out) and ATTR
 * copied. Returns result 0; OUT (may be NULL) receives all of them. What TYPE's
 * functions say of a failure arrives, behind its name, where the status does: of infer
 * here, sticking to the graph; of gradient at et_grad; of host and gpu at et_eval,
 * where no leaf changes then. EINVAL: too few operands or too many, or TYPE is not
 * whole. */
struct et_tensor *et_custom(struct et_graph *g, const struct et_custom_class *type,
                            struct et_tensor *const *in, int n, const void *attr,
                            struct et_tensor **out);

/* What a device module finds as the attribute of a call of ET_OP_custom; TYPE's own
 * attributes are behind it. */
struct et_custom_attr {
    const struct et_custom_class *type;
    uint64_t pad_;
};

#ifdef __cplusplus
}
#endif
#endif
