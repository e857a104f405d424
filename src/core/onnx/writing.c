/* SPDX-License-Identifier: Apache-2.0 */
/* writing.c: nodes, attributes, constants and names of an ONNX graph. See writing.h. */
#include "core/onnx/writing.h"

#include <stdio.h>
#include <string.h>

/* AttributeProto.AttributeType */
enum { FLOAT = 1, INT = 2, TEXT = 3, INTS = 7 };

int
eti_onnx_type(enum et_dtype dtype)
{
    switch (dtype) {
    case ET_F32:
        return ONNX_FLOAT;
    case ET_U8:
        return ONNX_U8;
    case ET_I32:
        return ONNX_I32;
    case ET_I64:
        return ONNX_I64;
    default:
        return 0;
    }
}

void
eti_onnx_refuse(struct eti_onnx *o, const struct et_node *n, const char *why)
{
    char text[128] = "a number";
    if (o->status != ET_OK)
        return;
    if (n->n_in > 0 && n->in[0])
        et_desc_text(&n->in[0]->desc, text, sizeof text);
    o->status =
        ET_FAIL(o->cx, ET_ENOTSUP, "ONNX: %s of %s: %s", n->op->name, text, why);
}

/* ---- names ---- */

static const char *
keep(struct eti_onnx *o, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = eti_arena_alloc(&o->names, bytes);
    if (!copy) {
        o->status = o->status == ET_OK ? ET_ENOMEM : o->status;
        return "";
    }
    return memcpy(copy, text, bytes);
}

const char *
eti_onnx_temporary(struct eti_onnx *o)
{
    char text[32];
    snprintf(text, sizeof text, "t%d", o->n_temporaries++);
    return keep(o, text);
}

static const char *
leaf_name(struct eti_onnx *o, const struct et_tensor *t)
{
    if (t == o->in.x)
        return "input";
    for (int i = 0; i < o->in.n_others; i++)
        if (o->in.other[i].tensor == t)
            return o->in.other[i].name;
    for (int i = 0; i < o->leaves.n; i++)
        if (o->leaves.v[i].param->tensor == t) {
            o->used[i] = true;
            return o->leaves.v[i].name;
        }
    if (o->status == ET_OK)
        o->status =
            ET_FAIL(o->cx, ET_ENOTSUP,
                    "ONNX: the model reads an array that is none of its weights");
    return "";
}

const char *
eti_onnx_name(struct eti_onnx *o, const struct et_tensor *t)
{
    char text[64];
    if (!t)
        return "";
    if (!t->node)
        return leaf_name(o, t);
    snprintf(text, sizeof text, "%s_%u", t->node->op->name, (unsigned)t->node->id);
    if (t != &t->node->out[0])
        snprintf(text + strlen(text), sizeof text - strlen(text), "_%d",
                 (int)(t - t->node->out));
    return keep(o, text);
}

/* ---- attributes ---- */

/* Appends the attribute in o->scratch. */
static void
end_attribute(struct eti_onnx *o, const char *name, int type)
{
    eti_proto_text(&o->scratch, ONNX_ATTRIBUTE_NAME, name);
    eti_proto_int(&o->scratch, ONNX_ATTRIBUTE_TYPE, type);
    eti_proto_message(&o->attributes, ONNX_NODE_ATTRIBUTE, &o->scratch);
    eti_proto_clear(&o->scratch);
}

void
eti_onnx_int(struct eti_onnx *o, const char *name, int64_t v)
{
    eti_proto_int(&o->scratch, ONNX_ATTRIBUTE_INT, v);
    end_attribute(o, name, INT);
}

void
eti_onnx_ints(struct eti_onnx *o, const char *name, const int64_t *v, int n)
{
    for (int i = 0; i < n; i++)
        eti_proto_int(&o->scratch, ONNX_ATTRIBUTE_INTS, v[i]);
    end_attribute(o, name, INTS);
}

void
eti_onnx_float(struct eti_onnx *o, const char *name, double v)
{
    eti_proto_float(&o->scratch, ONNX_ATTRIBUTE_FLOAT, (float)v);
    end_attribute(o, name, FLOAT);
}

void
eti_onnx_text(struct eti_onnx *o, const char *name, const char *text)
{
    eti_proto_text(&o->scratch, ONNX_ATTRIBUTE_TEXT, text);
    end_attribute(o, name, TEXT);
}

/* ---- nodes ---- */

void
eti_onnx_node(struct eti_onnx *o, const char *op, const char *const *in, int n,
              const char *out)
{
    while (n > 0 && (!in[n - 1] || !*in[n - 1]))
        n--;
    for (int i = 0; i < n; i++)
        eti_proto_text(&o->scratch, ONNX_NODE_INPUT, in[i] ? in[i] : "");
    eti_proto_text(&o->scratch, ONNX_NODE_OUTPUT, out);
    eti_proto_text(&o->scratch, ONNX_NODE_OP, op);
    eti_proto_raw(&o->scratch, o->attributes.bytes, o->attributes.n);
    eti_proto_message(&o->nodes, ONNX_GRAPH_NODE, &o->scratch);
    eti_proto_clear(&o->scratch);
    eti_proto_clear(&o->attributes);
    o->n_nodes++;
}

const char *
eti_onnx_value(struct eti_onnx *o, const char *op, const char *const *in, int n)
{
    const char *out = eti_onnx_temporary(o);
    eti_onnx_node(o, op, in, n, out);
    return out;
}

/* ---- constants ---- */

const char *
eti_onnx_array(struct eti_onnx *o, enum eti_onnx_type type, int ndim,
               const int64_t *shape, const void *values, size_t bytes)
{
    char text[32];
    snprintf(text, sizeof text, "c%d", o->n_constants++);
    const char *name = keep(o, text);
    for (int i = 0; i < ndim; i++)
        eti_proto_int(&o->scratch, ONNX_TENSOR_DIM, shape[i]);
    eti_proto_int(&o->scratch, ONNX_TENSOR_TYPE, type);
    eti_proto_text(&o->scratch, ONNX_TENSOR_NAME, name);
    eti_proto_bytes(&o->scratch, ONNX_TENSOR_RAW, values, bytes);
    eti_proto_message(&o->constants, ONNX_GRAPH_INITIALIZER, &o->scratch);
    eti_proto_clear(&o->scratch);
    return name;
}

const char *
eti_onnx_vector(struct eti_onnx *o, const int64_t *v, int n)
{
    return eti_onnx_array(o, ONNX_I64, 1, (const int64_t[]){n}, v,
                          (size_t)n * sizeof *v);
}

const char *
eti_onnx_number(struct eti_onnx *o, enum et_dtype dtype, double v)
{
    const float f = (float)v;
    const int32_t i = (int32_t)v;
    const int64_t l = (int64_t)v;
    const uint8_t u = (uint8_t)v;
    switch (dtype) {
    case ET_I32:
        return eti_onnx_array(o, ONNX_I32, 0, NULL, &i, sizeof i);
    case ET_I64:
        return eti_onnx_array(o, ONNX_I64, 0, NULL, &l, sizeof l);
    case ET_U8:
        return eti_onnx_array(o, ONNX_U8, 0, NULL, &u, sizeof u);
    default:
        return eti_onnx_array(o, ONNX_FLOAT, 0, NULL, &f, sizeof f);
    }
}

/* ---- what follows the batch ---- */

const struct et_node *
eti_onnx_other(const struct eti_onnx *o, const struct et_node *n)
{
    return o->other->node[n->id];
}

/* How many samples there are, as [1]. */
static const char *
batch(struct eti_onnx *o)
{
    if (!o->has_batch) {
        const char *shape = ETI_ONNX_VALUE(o, "Shape", "input");
        const char *zero = eti_onnx_vector(o, (const int64_t[]){0}, 1);
        ETI_ONNX_NODE(o, "Gather", "batch", shape, zero);
        o->has_batch = true;
    }
    return "batch";
}

/* A shape that an operation computes: constant lengths and the batch, one by one. */
static const char *
joined_shape(struct eti_onnx *o, int ndim, const int64_t *shape, const int64_t *other)
{
    const char *part[ET_MAX_DIMS];
    for (int i = 0; i < ndim; i++) {
        if (shape[i] != other[i] &&
            shape[i] * ONNX_OTHER_BATCH != other[i] * ONNX_BATCH)
            return NULL;
        const int64_t each = shape[i] / ONNX_BATCH;
        if (shape[i] == other[i])
            part[i] = eti_onnx_vector(o, &shape[i], 1);
        else if (each == 1)
            part[i] = batch(o);
        else
            part[i] = ETI_ONNX_VALUE(o, "Mul", batch(o), eti_onnx_vector(o, &each, 1));
    }
    eti_onnx_int(o, "axis", 0);
    return eti_onnx_value(o, "Concat", part, ndim);
}

const char *
eti_onnx_shape(struct eti_onnx *o, int ndim, const int64_t *shape, const int64_t *other,
               bool free)
{
    int64_t lengths[ET_MAX_DIMS];
    int differ = 0;
    for (int i = 0; i < ndim; i++) {
        lengths[i] = shape[i] == other[i] ? shape[i] : -1;
        differ += shape[i] != other[i];
    }
    return differ == 0 || (free && differ == 1) ? eti_onnx_vector(o, lengths, ndim)
                                                : joined_shape(o, ndim, shape, other);
}
