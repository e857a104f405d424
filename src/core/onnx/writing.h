/* SPDX-License-Identifier: Apache-2.0 */
/* writing.h: what the files of src/core/onnx share: a file in the making, and the names
 * of its values. */
#ifndef ETI_ONNX_WRITING_H
#define ETI_ONNX_WRITING_H

#include "core/base/arena.h"
#include "core/graph/graph_impl.h"
#include "core/onnx/onnx.h"
#include "core/onnx/proto.h"

/* onnx.proto3: numbers of fields, and of types. */
enum eti_onnx_field {
    ONNX_MODEL_IR_VERSION = 1,
    ONNX_MODEL_PRODUCER = 2,
    ONNX_MODEL_GRAPH = 7,
    ONNX_MODEL_OPSET = 8,
    ONNX_OPSET_VERSION = 2,
    ONNX_GRAPH_NODE = 1,
    ONNX_GRAPH_NAME = 2,
    ONNX_GRAPH_INITIALIZER = 5,
    ONNX_GRAPH_INPUT = 11,
    ONNX_GRAPH_OUTPUT = 12,
    ONNX_NODE_INPUT = 1,
    ONNX_NODE_OUTPUT = 2,
    ONNX_NODE_OP = 4,
    ONNX_NODE_ATTRIBUTE = 5,
    ONNX_ATTRIBUTE_NAME = 1,
    ONNX_ATTRIBUTE_FLOAT = 2,
    ONNX_ATTRIBUTE_INT = 3,
    ONNX_ATTRIBUTE_TEXT = 4,
    ONNX_ATTRIBUTE_INTS = 8,
    ONNX_ATTRIBUTE_TYPE = 20,
    ONNX_TENSOR_DIM = 1,
    ONNX_TENSOR_TYPE = 2,
    ONNX_TENSOR_NAME = 8,
    ONNX_TENSOR_RAW = 9,
    ONNX_TENSOR_EXTERNAL = 13,
    ONNX_TENSOR_LOCATION = 14,
    ONNX_ENTRY_KEY = 1,
    ONNX_ENTRY_VALUE = 2,
};
enum eti_onnx_type {
    ONNX_FLOAT = 1,
    ONNX_U8 = 2,
    ONNX_I32 = 6,
    ONNX_I64 = 7,
    ONNX_BOOL = 9
};

/* The graph is built twice, with two sizes of the batch: what differs follows it. */
enum { ONNX_BATCH = 2, ONNX_OTHER_BATCH = 3 };

struct eti_onnx {
    struct et_ctx *cx;
    const struct et_model *model;
    struct et_graph *g;     /* with ONNX_BATCH samples */
    struct et_graph *other; /* with ONNX_OTHER_BATCH */
    struct et_samples in;   /* what it reads: X, and fields by their names */
    struct et_leaves leaves;
    bool *used; /* each leaf: is it in the file? */
    struct eti_arena names;
    struct eti_proto nodes;      /* fields of the graph */
    struct eti_proto constants;  /* likewise, small tensors */
    struct eti_proto attributes; /* of the node in the making */
    struct eti_proto scratch;
    int n_nodes, n_constants, n_temporaries;
    bool has_batch;    /* "batch", the number of samples as [1], is a value */
    int64_t causal[2]; /* rows and columns of the mask that is there; 0: none */
    et_status status;  /* the first failure; all that follows does nothing */
};

/* What T is called. NULL: the status says why. */
const char *eti_onnx_name(struct eti_onnx *o, const struct et_tensor *t);
/* A name that is not used yet. */
const char *eti_onnx_temporary(struct eti_onnx *o);

/* Attributes of the next node. */
void eti_onnx_int(struct eti_onnx *o, const char *name, int64_t v);
void eti_onnx_ints(struct eti_onnx *o, const char *name, const int64_t *v, int n);
void eti_onnx_float(struct eti_onnx *o, const char *name, double v);
void eti_onnx_text(struct eti_onnx *o, const char *name, const char *text);
/* Appends a node OP of N values IN (NULL or "": left out) that gives OUT. */
void eti_onnx_node(struct eti_onnx *o, const char *op, const char *const *in, int n,
                   const char *out);
/* The same, giving a temporary, whose name it returns. */
const char *eti_onnx_value(struct eti_onnx *o, const char *op, const char *const *in,
                           int n);
#define ETI_ONNX_NODE(o, op, out, ...)                                                 \
    eti_onnx_node((o), (op), (const char *const[]){__VA_ARGS__},                       \
                  (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)),  \
                  (out))
#define ETI_ONNX_VALUE(o, op, ...)                                                     \
    eti_onnx_value((o), (op), (const char *const[]){__VA_ARGS__},                      \
                   (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))

/* Constants: a vector of integers, one number in a dtype, and any array. */
const char *eti_onnx_vector(struct eti_onnx *o, const int64_t *v, int n);
const char *eti_onnx_number(struct eti_onnx *o, enum et_dtype dtype, double v);
const char *eti_onnx_array(struct eti_onnx *o, enum eti_onnx_type type, int ndim,
                           const int64_t *shape, const void *values, size_t bytes);
/* The type of DTYPE in the file; 0: none. */
int eti_onnx_type(enum et_dtype dtype);

/* The node of the other graph that N is. */
const struct et_node *eti_onnx_other(const struct eti_onnx *o, const struct et_node *n);
/* A shape as an operand, whose lengths in OTHER follow the batch where they differ.
 * FREE: one that differs may be -1, what the array's size gives. */
const char *eti_onnx_shape(struct eti_onnx *o, int ndim, const int64_t *shape,
                           const int64_t *other, bool free);
/* STATUS ENOTSUP with a sentence about N, unless there is a failure already. */
void eti_onnx_refuse(struct eti_onnx *o, const struct et_node *n, const char *why);

/* operations.c: appends what N computes. */
void eti_onnx_operation(struct eti_onnx *o, const struct et_node *n);

#endif
