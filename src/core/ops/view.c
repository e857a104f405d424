/* SPDX-License-Identifier: Apache-2.0 */
/* view.c: results that share memory with their operand; no kernel runs.
 *
 * Elements are counted in row-major order of the axes, wherever they lie: a reshape of
 * a channels-last image is a view only where that order can be told by strides. */
#include "core/base/need.h"
#include "core/ops/ops.h"

#define VIEW_OP(op, words, attribute_size, backward)                                   \
    const struct et_op et_op_##op = {                                                  \
        .name = #op,                                                                   \
        .summary = words,                                                              \
        .id = ET_OP_##op,                                                              \
        .min_in = 1,                                                                   \
        .max_in = 1,                                                                   \
        .n_out = 1,                                                                    \
        .attr_size = attribute_size,                                                   \
        .flags = ET_OPF_VIEW,                                                          \
        .infer = op##_infer,                                                           \
        .gradient = backward,                                                          \
    };

/* A shape attribute; surplus axes are left for infer to refuse. */
static struct et_shape_attr
shape_attr(int ndim, const int64_t *shape)
{
    struct et_shape_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.ndim = ndim;
    for (int i = 0; i < ndim && i < ET_MAX_DIMS; i++)
        attr.shape[i] = shape[i];
    return attr;
}

static et_status
need_view_ndim(struct et_ctx *cx, const struct et_call *call, int ndim)
{
    if (ndim < 0 || ndim > ET_MAX_DIMS)
        return ETI_FAIL(cx, call, ET_ESHAPE, "%d axes; an array has at most %d", ndim,
                        ET_MAX_DIMS);
    return eti_need(cx, call, 0, "operand");
}

/* ---- reshape ---- */

/* Runs: stretches of neighbouring axes whose elements lie at one constant distance. */
struct run {
    int64_t length, stride;
};

static int
runs_of(const struct et_desc *x, struct run *run)
{
    int n = 0;
    for (int i = 0; i < x->ndim; i++) {
        if (x->shape[i] == 1)
            continue;
        if (n && run[n - 1].stride == x->shape[i] * x->stride[i])
            run[n - 1].length *= x->shape[i];
        else
            run[n++].length = x->shape[i];
        run[n - 1].stride = x->stride[i];
    }
    return n;
}

bool
eti_view_strides(const struct et_desc *x, struct et_desc *out)
{
    struct run run[ET_MAX_DIMS];

    if (et_desc_count(x) == 0) {
        et_desc_init(out, x->dtype, out->ndim, out->shape, ET_ROW_MAJOR);
        return true;
    }
    /* From the last axis to the first, new axes cut lengths off the runs. */
    int r = runs_of(x, run) - 1;
    for (int i = out->ndim - 1; i >= 0; i--) {
        int64_t n = out->shape[i];
        out->stride[i] = r >= 0 ? run[r].stride : 1;
        if (n == 1)
            continue;
        if (r < 0 || run[r].length % n)
            return false;
        run[r].length /= n;
        run[r].stride *= n;
        if (run[r].length == 1)
            r--;
    }
    return true;
}

ETI_INFER(reshape_infer)
{
    const struct et_shape_attr *o = call->attr;
    char from[ETI_TEXT], to[ETI_TEXT];

    ET_TRY(need_view_ndim(cx, call, o->ndim));
    et_desc_init(out, call->in[0].dtype, o->ndim, o->shape, ET_ROW_MAJOR);
    for (int i = 0; i < o->ndim; i++)
        if (o->shape[i] < 0)
            return ETI_FAIL(cx, call, ET_ESHAPE,
                            "axis %d of %s cannot be found from %s", i,
                            et_desc_text(out, to, sizeof to),
                            et_desc_text(&call->in[0], from, sizeof from));
    if (et_desc_count(out) != et_desc_count(&call->in[0]))
        return ETI_FAIL(cx, call, ET_ESHAPE, "%s has %lld elements and %s has %lld",
                        et_desc_text(&call->in[0], from, sizeof from),
                        (long long)et_desc_count(&call->in[0]),
                        et_desc_text(out, to, sizeof to),
                        (long long)et_desc_count(out));
    if (!eti_view_strides(&call->in[0], out))
        return ETI_FAIL(cx, call, ET_EINVAL,
                        "%s is not a view of %s as that lies in memory",
                        et_desc_text(out, to, sizeof to),
                        et_desc_text(&call->in[0], from, sizeof from));
    return ET_OK;
}

ETI_GRADIENT(reshape_gradient)
{
    if (want[0])
        dx[0] = eti_reshape_like(g, dy[0], node->in[0]);
    return et_graph_status(g);
}

VIEW_OP(reshape, "the same elements in another shape", sizeof(struct et_shape_attr),
        reshape_gradient)

/* Finds the one length given as -1; it stays where there is no answer. */
static void
resolve_length(const struct et_desc *x, struct et_shape_attr *attr)
{
    int unknown = -1;
    int64_t known = 1;
    for (int i = 0; i < attr->ndim; i++) {
        if (attr->shape[i] >= 0)
            known *= attr->shape[i];
        else if (attr->shape[i] == -1 && unknown < 0)
            unknown = i;
        else
            return;
    }
    if (unknown >= 0 && known > 0 && et_desc_count(x) % known == 0)
        attr->shape[unknown] = et_desc_count(x) / known;
}

struct et_tensor *
et_reshape(struct et_graph *g, struct et_tensor *x, int ndim, const int64_t *shape)
{
    ETI_NEED_IN(g, g);
    if (ndim > 0)
        ETI_NEED_IN(g, shape);
    struct et_shape_attr attr = shape_attr(ndim, shape);
    struct et_desc view;

    if (!x)
        return ETI_MISSING(g, x);
    if (ndim >= 0 && ndim <= ET_MAX_DIMS) {
        resolve_length(&x->desc, &attr);
        et_desc_init(&view, x->desc.dtype, ndim, attr.shape, ET_ROW_MAJOR);
        if (et_desc_same_shape(&view, &x->desc))
            return x;
        if (et_desc_count(&view) == et_desc_count(&x->desc) &&
            !eti_view_strides(&x->desc, &view))
            x = et_contiguous(g, x, ET_ROW_MAJOR);
    }
    return ETI_APPLY_ATTR(g, reshape, &attr, NULL, x);
}

/* ---- permute ---- */

ETI_INFER(permute_infer)
{
    const struct et_permute_attr *o = call->attr;
    const struct et_desc *x = &call->in[0];
    uint32_t seen = 0;

    ET_TRY(eti_need(cx, call, 0, "operand"));
    memset(out, 0, sizeof *out);
    out->dtype = x->dtype;
    out->ndim = x->ndim;
    for (int i = 0; i < x->ndim; i++) {
        ET_TRY(eti_need_axis(cx, call, 0, o->axes[i]));
        if (seen & 1u << o->axes[i])
            return ETI_FAIL(cx, call, ET_EINVAL, "axis %d is named twice", o->axes[i]);
        seen |= 1u << o->axes[i];
        out->shape[i] = x->shape[o->axes[i]];
        out->stride[i] = x->stride[o->axes[i]];
    }
    return ET_OK;
}

ETI_GRADIENT(permute_gradient)
{
    const struct et_permute_attr *o = node->attr;
    int back[ET_MAX_DIMS] = {0};
    for (int i = 0; i < o->ndim; i++)
        back[o->axes[i]] = i;
    if (want[0])
        dx[0] = et_permute(g, dy[0], back);
    return et_graph_status(g);
}

VIEW_OP(permute, "axes in another order", sizeof(struct et_permute_attr),
        permute_gradient)

struct et_tensor *
et_permute(struct et_graph *g, struct et_tensor *x, const int *axes)
{
    ETI_NEED_IN(g, g, axes);
    struct et_permute_attr attr = {.ndim = x ? x->desc.ndim : 0};
    if (!x)
        return ETI_MISSING(g, x);
    for (int i = 0; i < attr.ndim; i++)
        attr.axes[i] = eti_axis(x, axes[i]);
    return ETI_APPLY_ATTR(g, permute, &attr, NULL, x);
}

struct et_tensor *
et_transpose(struct et_graph *g, struct et_tensor *x, int a, int b)
{
    ETI_NEED_IN(g, g);
    int axes[ET_MAX_DIMS];
    if (!x)
        return ETI_MISSING(g, x);
    a = eti_axis(x, a);
    b = eti_axis(x, b);
    for (int i = 0; i < ET_MAX_DIMS; i++)
        axes[i] = i == a ? b : i == b ? a : i;
    if (a < 0 || a >= x->desc.ndim) /* for permute to refuse */
        axes[0] = a;
    return et_permute(g, x, axes);
}

/* ---- expand ---- */

ETI_INFER(expand_infer)
{
    const struct et_shape_attr *o = call->attr;
    const struct et_desc *x = &call->in[0];
    char from[ETI_TEXT], to[ETI_TEXT];

    ET_TRY(need_view_ndim(cx, call, o->ndim));
    et_desc_init(out, x->dtype, o->ndim, o->shape, ET_ROW_MAJOR);
    for (int i = 0; i < o->ndim; i++) {
        int axis = i - (o->ndim - x->ndim);
        int64_t n = axis < 0 ? 1 : x->shape[axis];
        if (o->shape[i] < 0 || (n != 1 && n != o->shape[i]) || x->ndim > o->ndim)
            return ETI_FAIL(cx, call, ET_ESHAPE, "%s does not expand to %s",
                            et_desc_text(x, from, sizeof from),
                            et_desc_text(out, to, sizeof to));
        out->stride[i] = axis < 0 || n != o->shape[i] ? 0 : x->stride[axis];
    }
    if (x->ndim > o->ndim)
        return ETI_FAIL(cx, call, ET_ESHAPE, "%s does not expand to %d axes",
                        et_desc_text(x, from, sizeof from), o->ndim);
    return ET_OK;
}

ETI_GRADIENT(expand_gradient)
{
    if (want[0])
        dx[0] = eti_sum_like(g, dy[0], node->in[0]);
    return et_graph_status(g);
}

VIEW_OP(expand, "axes of length 1 repeated", sizeof(struct et_shape_attr),
        expand_gradient)

struct et_tensor *
et_expand(struct et_graph *g, struct et_tensor *x, int ndim, const int64_t *shape)
{
    ETI_NEED_IN(g, g);
    if (ndim > 0)
        ETI_NEED_IN(g, shape);
    struct et_shape_attr attr = shape_attr(ndim, shape);
    if (!x)
        return ETI_MISSING(g, x);
    if (ndim == x->desc.ndim && !memcmp(attr.shape, x->desc.shape, sizeof attr.shape))
        return x;
    return ETI_APPLY_ATTR(g, expand, &attr, NULL, x);
}

/* ---- slice ---- */

ETI_INFER(slice_infer)
{
    const struct et_slice_attr *o = call->attr;
    const struct et_desc *x = &call->in[0];
    char text[ETI_TEXT];
    int64_t begin = 0;

    ET_TRY(eti_need(cx, call, 0, "operand"));
    *out = *x;
    for (int i = 0; i < x->ndim; i++) {
        int64_t start = o->start[i], size = o->size[i], step = o->step[i];
        if (step < 1)
            return ETI_FAIL(cx, call, ET_EINVAL,
                            "no such axis of %s, or a step below 1",
                            et_desc_text(x, text, sizeof text));
        if (start < 0 || size < 0 || start > x->shape[i] ||
            (size > 0 && start + (size - 1) * step >= x->shape[i]))
            return ETI_FAIL(cx, call, ET_ESHAPE,
                            "%lld elements from %lld by %lld are outside axis %d of %s",
                            (long long)size, (long long)start, (long long)step, i,
                            et_desc_text(x, text, sizeof text));
        out->shape[i] = size;
        out->stride[i] = x->stride[i] * step;
        begin += start * x->stride[i];
    }
    if (view_offset)
        *view_offset = begin;
    return ET_OK;
}

/* Puts STEP - 1 zeros between neighbours along AXIS. */
static struct et_tensor *
spread(struct et_graph *g, struct et_tensor *x, int axis, int64_t step)
{
    static const int64_t none[ET_MAX_DIMS];
    int64_t outer = 1, inner = 1, n, shape[ET_MAX_DIMS];
    int ndim;

    if (!x)
        return NULL;
    ndim = x->desc.ndim;
    n = x->desc.shape[axis];
    memcpy(shape, x->desc.shape, sizeof shape);
    for (int i = 0; i < ndim; i++)
        *(i < axis ? &outer : &inner) *= i == axis ? 1 : shape[i];
    x = et_reshape(g, x, 4, (int64_t[]){outer, n, 1, inner});
    x = et_pad(g, x, none, (int64_t[ET_MAX_DIMS]){0, 0, step - 1, 0}, 0);
    x = et_reshape(g, x, 3, (int64_t[]){outer, n * step, inner});
    shape[axis] = n ? (n - 1) * step + 1 : 0;
    x = et_slice(g, x, 1, 0, shape[axis], 1);
    return et_reshape(g, x, ndim, shape);
}

ETI_GRADIENT(slice_gradient)
{
    const struct et_slice_attr *o = node->attr;
    const struct et_desc *x = &node->in[0]->desc;
    struct et_tensor *d = dy[0];
    int64_t after[ET_MAX_DIMS] = {0};

    if (!want[0])
        return ET_OK;
    for (int i = 0; i < x->ndim; i++) {
        int64_t length = o->size[i] ? (o->size[i] - 1) * o->step[i] + 1 : 0;
        if (o->step[i] > 1)
            d = spread(g, d, i, o->step[i]);
        after[i] = x->shape[i] - o->start[i] - length;
    }
    dx[0] = et_pad(g, d, o->start, after, 0);
    return et_graph_status(g);
}

VIEW_OP(slice, "elements start, start + step, ... of each axis",
        sizeof(struct et_slice_attr), slice_gradient)

struct et_tensor *
eti_slice_box(struct et_graph *g, struct et_tensor *x, const struct et_slice_attr *box)
{
    return ETI_APPLY_ATTR(g, slice, box, NULL, x);
}

struct et_tensor *
et_slice(struct et_graph *g, struct et_tensor *x, int axis, int64_t start, int64_t size,
         int64_t step)
{
    ETI_NEED_IN(g, g);
    struct et_slice_attr box;
    if (!x)
        return ETI_MISSING(g, x);
    memset(&box, 0, sizeof box);
    axis = eti_axis(x, axis);
    if (axis >= 0 && axis < x->desc.ndim) { /* else infer refuses the steps of 0 */
        for (int i = 0; i < x->desc.ndim; i++) {
            box.size[i] = x->desc.shape[i];
            box.step[i] = 1;
        }
        box.start[axis] = start;
        box.size[axis] = size;
        box.step[axis] = step;
    }
    return eti_slice_box(g, x, &box);
}

/* ---- detach ---- */

ETI_INFER(detach_infer)
{
    ET_TRY(eti_need(cx, call, 0, "operand"));
    *out = call->in[0];
    return ET_OK;
}

VIEW_OP(detach, "the same value, through which no gradient passes", 0,
        eti_gradient_zero)

struct et_tensor *
et_detach(struct et_graph *g, struct et_tensor *x)
{
    ETI_NEED_IN(g, g);
    return ETI_APPLY(g, detach, NULL, x);
}
