/* SPDX-License-Identifier: Apache-2.0 */
/* move.c: elements in other places: layouts, joining, padding, reversal. */
#include "core/base/need.h"
#include "core/graph/graph_impl.h"
#include "core/ops/ops.h"

/* ---- copy ---- */

ETI_INFER(copy_infer)
{
    const struct et_copy_attr *o = call->attr;
    const struct et_desc *x = &call->in[0];

    ET_TRY(eti_need(cx, call, 0, "operand"));
    if (o->format == ET_CHANNELS_LAST)
        ET_TRY(eti_need_ndim(cx, call, 0, "an array to lie channels-last", 4, 4));
    et_desc_init(out, x->dtype, x->ndim, x->shape, (enum et_format)o->format);
    return ET_OK;
}

ETI_GRADIENT(copy_gradient)
{
    if (want[0])
        dx[0] = dy[0];
    return et_graph_status(g);
}

const struct et_op et_op_copy = {
    .name = "copy",
    .summary = "the same array, dense in a given format",
    .id = ET_OP_copy,
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(struct et_copy_attr),
    .infer = copy_infer,
    .gradient = copy_gradient,
    .flops = eti_flops_none,
};

struct et_tensor *
et_contiguous(struct et_graph *g, struct et_tensor *x, enum et_format format)
{
    ETI_NEED_IN(g, g);
    struct et_copy_attr attr = {.format = (int32_t)format};
    if (!x)
        return ETI_MISSING(g, x);
    bool possible = format == ET_ROW_MAJOR || x->desc.ndim == 4;
    if (possible && et_desc_is_contiguous(&x->desc, format))
        return x;
    return ETI_APPLY_ATTR(g, copy, &attr, NULL, x);
}

/* ---- concat ---- */

ETI_INFER(concat_infer)
{
    const struct et_axis_attr *o = call->attr;
    int64_t shape[ET_MAX_DIMS];

    ET_TRY(eti_need(cx, call, 0, "operand"));
    ET_TRY(eti_need_axis(cx, call, 0, o->axis));
    memcpy(shape, call->in[0].shape, sizeof shape);
    for (int i = 1; i < call->n_in; i++) {
        int64_t n = eti_operand(call, i) && o->axis < call->in[i].ndim
                        ? call->in[i].shape[o->axis]
                        : 0;
        int64_t want[ET_MAX_DIMS];
        memcpy(want, call->in[0].shape, sizeof want);
        want[o->axis] = n;
        ET_TRY(eti_need_dtype(cx, call, i, "operand", call->in[0].dtype));
        ET_TRY(eti_need_shape(cx, call, i, "operand", call->in[0].ndim, want));
        shape[o->axis] += n;
    }
    et_desc_like(out, call->in[0].dtype, call->in[0].ndim, shape, &call->in[0]);
    return ET_OK;
}

ETI_GRADIENT(concat_gradient)
{
    const struct et_axis_attr *o = node->attr;
    int64_t start = 0;
    for (int i = 0; i < node->n_in; i++) {
        int64_t n = node->in[i]->desc.shape[o->axis];
        if (want[i])
            dx[i] = et_slice(g, dy[0], o->axis, start, n, 1);
        start += n;
    }
    return et_graph_status(g);
}

const struct et_op et_op_concat = {
    .name = "concat",
    .summary = "arrays one after the other along an axis",
    .id = ET_OP_concat,
    .min_in = 1,
    .max_in = -1,
    .n_out = 1,
    .attr_size = sizeof(struct et_axis_attr),
    .infer = concat_infer,
    .gradient = concat_gradient,
    .flops = eti_flops_none,
};

struct et_tensor *
et_concat(struct et_graph *g, struct et_tensor *const *x, int n, int axis)
{
    ETI_NEED_IN(g, g);
    if (n > 0)
        ETI_NEED_IN(g, x);
    struct et_axis_attr attr = {.axis = n > 0 && x[0] ? eti_axis(x[0], axis) : 0};
    for (int i = 0; i < n; i++)
        if (!x[i])
            return eti_missing(g, __func__, x, n);
    return et_apply(g, ET_OP_concat, x, n, &attr, sizeof attr, NULL);
}

/* ---- pack ---- */

static size_t
pack_attr_size(int n)
{
    return sizeof(struct et_pack_attr) + (size_t)n * sizeof(int64_t);
}

/* No two operands may share a place: which of them would be there depends on the
 * device. They mostly follow each other, and are compared with all before them where
 * they do not. */
static et_status
need_apart(struct et_ctx *cx, const struct et_call *call)
{
    const struct et_pack_attr *o = call->attr;
    int64_t furthest = 0; /* where what came so far ends */
    for (int i = 0; i < call->n_in; i++) {
        const struct et_desc *x = eti_operand(call, i), *other;
        if (!x || et_desc_count(x) == 0)
            continue;
        int64_t begin = o->offset[i], end = begin + et_desc_count(x);
        for (int k = 0; k < i && begin < furthest; k++)
            if ((other = eti_operand(call, k)) && o->offset[k] < end &&
                begin < o->offset[k] + et_desc_count(other))
                return ETI_FAIL(cx, call, ET_EINVAL,
                                "operand %d, at %lld, lies over operand %d, at %lld", i,
                                (long long)begin, k, (long long)o->offset[k]);
        furthest = end > furthest ? end : furthest;
    }
    return ET_OK;
}

ETI_INFER(pack_infer)
{
    const struct et_pack_attr *o = call->attr;
    enum et_dtype dtype = ET_NONE;

    if (call->attr_size != pack_attr_size(call->n_in))
        return ETI_FAIL(cx, call, ET_EINTERNAL, "%d operands and %zu bytes of offsets",
                        call->n_in, call->attr_size);
    for (int i = 0; i < call->n_in; i++) {
        char text[ETI_TEXT];
        const struct et_desc *x = eti_operand(call, i);
        if (!x)
            continue;
        if (dtype == ET_NONE)
            dtype = x->dtype;
        ET_TRY(eti_need_dtype(cx, call, i, "operand", dtype));
        if (!et_desc_is_dense(x))
            return ETI_FAIL(cx, call, ET_EINVAL, "operand %d, %s, is not dense", i,
                            et_desc_text(x, text, sizeof text));
        if (o->offset[i] < 0 || o->offset[i] + et_desc_count(x) > o->total)
            return ETI_FAIL(cx, call, ET_ESHAPE,
                            "operand %d, %s, at %lld ends past %lld", i,
                            et_desc_text(x, text, sizeof text), (long long)o->offset[i],
                            (long long)o->total);
    }
    if (dtype == ET_NONE)
        return ETI_FAIL(cx, call, ET_EINVAL, "all %d operands are missing", call->n_in);
    ET_TRY(need_apart(cx, call));
    et_desc_init(out, dtype, 1, &o->total, ET_ROW_MAJOR);
    return ET_OK;
}

/* FLAT cut out and shaped like X, whose memory order it is in. */
static struct et_tensor *
unpack(struct et_graph *g, struct et_tensor *flat, int64_t offset,
       const struct et_tensor *x)
{
    const int64_t *n = x->desc.shape;
    flat = et_slice(g, flat, 0, offset, et_desc_count(&x->desc), 1);
    if (x->desc.ndim != 4 || et_desc_is_contiguous(&x->desc, ET_ROW_MAJOR))
        return eti_reshape_like(g, flat, x);
    flat = et_reshape(g, flat, 4, (int64_t[]){n[0], n[2], n[3], n[1]});
    return et_permute(g, flat, (int[]){0, 3, 1, 2});
}

ETI_GRADIENT(pack_gradient)
{
    const struct et_pack_attr *o = node->attr;
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] && want[i])
            dx[i] = unpack(g, dy[0], o->offset[i], node->in[i]);
    return et_graph_status(g);
}

const struct et_op et_op_pack = {
    .name = "pack",
    .summary = "arrays in their memory order, in one flat array",
    .id = ET_OP_pack,
    .min_in = 0,
    .max_in = -1,
    .n_out = 1,
    .attr_size = sizeof(struct et_pack_attr),
    .infer = pack_infer,
    .gradient = pack_gradient,
    .flops = eti_flops_none,
};

struct et_tensor *
et_pack(struct et_graph *g, struct et_tensor *const *x, const int64_t *offsets, int n,
        int64_t total, enum et_dtype dtype)
{
    ETI_NEED_IN(g, g);
    if (n > 0)
        ETI_NEED_IN(g, x, offsets);
    struct et_pack_attr *attr = eti_graph_alloc(g, pack_attr_size(n));
    struct et_tensor **in = eti_graph_alloc(g, (size_t)n * sizeof *in);
    bool any = false;

    if (!attr || !in)
        return NULL;
    attr->total = total;
    for (int i = 0; i < n; i++) {
        any |= x[i] != NULL;
        attr->offset[i] = offsets[i];
        in[i] = x[i] ? eti_standard(g, et_cast(g, x[i], dtype)) : NULL;
    }
    if (!any)
        return et_fill(g, dtype, 1, &total, 0);
    return et_apply(g, ET_OP_pack, in, n, attr, pack_attr_size(n), NULL);
}

/* ---- pad ---- */

ETI_INFER(pad_infer)
{
    const struct et_pad_attr *o = call->attr;
    const struct et_desc *x = &call->in[0];
    int64_t shape[ET_MAX_DIMS];

    ET_TRY(eti_need(cx, call, 0, "operand"));
    for (int i = 0; i < x->ndim; i++) {
        if (o->before[i] < 0 || o->after[i] < 0)
            return ETI_FAIL(cx, call, ET_EINVAL, "axis %d by %lld and %lld", i,
                            (long long)o->before[i], (long long)o->after[i]);
        shape[i] = o->before[i] + x->shape[i] + o->after[i];
    }
    et_desc_like(out, x->dtype, x->ndim, shape, x);
    return ET_OK;
}

ETI_GRADIENT(pad_gradient)
{
    const struct et_pad_attr *o = node->attr;
    const struct et_desc *x = &node->in[0]->desc;
    struct et_slice_attr box;

    memset(&box, 0, sizeof box);
    for (int i = 0; i < x->ndim; i++) {
        box.start[i] = o->before[i];
        box.size[i] = x->shape[i];
        box.step[i] = 1;
    }
    if (want[0])
        dx[0] = eti_slice_box(g, dy[0], &box);
    return et_graph_status(g);
}

const struct et_op et_op_pad = {
    .name = "pad",
    .summary = "a border of one number around each axis",
    .id = ET_OP_pad,
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(struct et_pad_attr),
    .infer = pad_infer,
    .gradient = pad_gradient,
    .flops = eti_flops_none,
};

struct et_tensor *
et_pad(struct et_graph *g, struct et_tensor *x, const int64_t *before,
       const int64_t *after, double value)
{
    ETI_NEED_IN(g, g, before, after);
    struct et_pad_attr attr;
    bool changes = false;

    if (!x)
        return ETI_MISSING(g, x);
    memset(&attr, 0, sizeof attr);
    attr.value = value;
    for (int i = 0; i < x->desc.ndim; i++) {
        attr.before[i] = before[i];
        attr.after[i] = after[i];
        changes |= before[i] != 0 || after[i] != 0;
    }
    return changes ? ETI_APPLY_ATTR(g, pad, &attr, NULL, x) : x;
}

/* ---- flip ---- */

ETI_INFER(flip_infer)
{
    const struct et_flip_attr *o = call->attr;
    ET_TRY(eti_need(cx, call, 0, "operand"));
    if (o->axes >> call->in[0].ndim)
        return ETI_FAIL(cx, call, ET_EINVAL, "axis mask 0x%x of an array of %d axes",
                        (unsigned)o->axes, call->in[0].ndim);
    eti_desc_same(out, call->in[0].dtype, &call->in[0]);
    return ET_OK;
}

ETI_GRADIENT(flip_gradient)
{
    const struct et_flip_attr *o = node->attr;
    if (want[0])
        dx[0] = et_flip(g, dy[0], o->axes);
    return et_graph_status(g);
}

const struct et_op et_op_flip = {
    .name = "flip",
    .summary = "axes in reverse",
    .id = ET_OP_flip,
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(struct et_flip_attr),
    .infer = flip_infer,
    .gradient = flip_gradient,
    .flops = eti_flops_none,
};

struct et_tensor *
et_flip(struct et_graph *g, struct et_tensor *x, uint32_t axes)
{
    ETI_NEED_IN(g, g);
    struct et_flip_attr attr = {.axes = axes};
    return ETI_APPLY_ATTR(g, flip, &attr, NULL, x);
}
