/* SPDX-License-Identifier: Apache-2.0 */
/* custom.c: operations of the user's own.
 *
 * A node of one has a descriptor of its own, made from the class, under which the rest
 * of the engine finds its name, the number of its results and its rules. Its id is
 * ET_OP_custom for all, and its attribute begins with the class's address: so
 * signatures tell classes apart, and device modules find the functions. */
#include "etude/custom.h"

#include "core/base/need.h"
#include "core/graph/graph_impl.h"
#include "core/ops/ops.h"

static const struct et_custom_class *
type_of(const void *attr)
{
    return ((const struct et_custom_attr *)attr)->type;
}

/* CALL as the class's functions see it. */
static struct et_call
own_call(const struct et_call *call)
{
    struct et_call own = *call;
    own.attr = (const struct et_custom_attr *)call->attr + 1;
    own.attr_size = call->attr_size - sizeof(struct et_custom_attr);
    return own;
}

/* A function of TYPE has failed with STATUS: puts its name before what it has said, or
 * says that WHICH has failed. CLEAN: no error stood before. */
static et_status
failed(struct et_ctx *cx, const struct et_custom_class *type, et_status status,
       const char *which, bool clean)
{
    const struct et_error said = *et_error_get(cx);
    if (said.status == ET_OK)
        return ET_FAIL(cx, status, "%s: its %s function gives \"%s\"", type->name,
                       which, et_status_name(status));
    if (!clean)
        return status;
    et_error_clear(cx);
    (void)ET_FAIL(cx, status, "%s: %s", type->name, said.message);
    if (said.code)
        et_error_set_code(cx, said.code);
    if (said.hint[0])
        et_hint(cx, "%s", said.hint);
    return status;
}

static bool
is_clean(const struct et_ctx *cx)
{
    return et_error_get(cx)->status == ET_OK;
}

/* ---- rules ---- */

static et_status
check_result(struct et_ctx *cx, const struct et_custom_class *type,
             const struct et_desc *d, int i)
{
    char text[ETI_TEXT];
    if (d->dtype <= ET_NONE || d->dtype >= ET_DTYPE_COUNT || d->ndim < 0 ||
        d->ndim > ET_MAX_DIMS)
        return ET_FAIL(cx, ET_EINVAL,
                       "%s: its infer function does not describe result %d", type->name,
                       i);
    if (!et_desc_is_dense(d))
        return ET_FAIL(cx, ET_EINVAL, "%s: result %d, %s, is not dense", type->name, i,
                       et_desc_text(d, text, sizeof text));
    return ET_OK;
}

ETI_INFER(infer_class)
{
    const struct et_custom_class *type = type_of(call->attr);
    const struct et_call own = own_call(call);
    bool clean = is_clean(cx);
    for (int i = 0; !type->infer && i < type->n_out; i++)
        eti_desc_same(&out[i], call->in[0].dtype, &call->in[0]);
    et_status status = type->infer ? type->infer(cx, &own, out) : ET_OK;
    if (status != ET_OK)
        return failed(cx, type, status, "infer", clean);
    for (int i = 0; i < type->n_out; i++)
        ET_TRY(check_result(cx, type, &out[i], i));
    return ET_OK;
}

/* A gradient that does not fit would be added to others as it is. */
static et_status
check_gradient(struct et_ctx *cx, const struct et_node *node, int i,
               const struct et_tensor *dx)
{
    char got[ETI_TEXT], wanted[ETI_TEXT];
    const struct et_desc *x = &node->in[i]->desc;
    if (!dx || (et_desc_same_shape(&dx->desc, x) && dx->desc.dtype == x->dtype))
        return ET_OK;
    return ET_FAIL(cx, ET_ESHAPE, "%s: the gradient of operand %d is %s; it must be %s",
                   node->op->name, i, et_desc_text(&dx->desc, got, sizeof got),
                   et_desc_text(x, wanted, sizeof wanted));
}

ETI_GRADIENT(gradient_class)
{
    const struct et_custom_class *type = type_of(node->attr);
    struct et_ctx *cx = et_graph_ctx(g);
    struct et_node own = *node;
    bool clean = is_clean(cx);
    own.attr = (const struct et_custom_attr *)node->attr + 1;
    own.attr_size = node->attr_size - sizeof(struct et_custom_attr);
    et_status status = type->gradient(g, &own, dy, want, dx);
    if (status == ET_OK)
        status = et_graph_status(g);
    if (status != ET_OK)
        return failed(cx, type, status, "gradient", clean);
    for (int i = 0; i < node->n_in; i++)
        if (want[i])
            ET_TRY(check_gradient(cx, node, i, dx[i]));
    return ET_OK;
}

static int64_t
flops_of_class(const struct et_call *call)
{
    const struct et_call own = own_call(call);
    return type_of(call->attr)->flops(&own);
}

/* Of a node that is appended by its id alone. */
ETI_INFER(no_class)
{
    return ETI_FAIL(cx, call, ET_EINVAL, "%s", "et_custom makes such nodes");
}

const struct et_op et_op_custom = {
    .name = "custom",
    .summary = "an operation of the user's own",
    .id = ET_OP_custom,
    .max_in = -1,
    .n_out = 1,
    .infer = no_class,
};

/* ---- building ---- */

/* What TYPE lacks; NULL: nothing. */
static const char *
lack_of(const struct et_custom_class *type)
{
    if (!type || !type->name)
        return "has no name";
    if (type->size != sizeof *type)
        return "was made with other headers: its size is not that of struct "
               "et_custom_class";
    if (type->n_out < 1 || type->n_out > ET_CUSTOM_MOST_OUT)
        return "has no result, or more than 8";
    if (!type->host && !type->gpu)
        return "has neither a host function nor one for a GPU";
    if (!type->infer && type->min_in < 1)
        return "describes no results, and needs no operand that they could be as";
    return NULL;
}

/* The order that all operands are given in, of those in which element-wise ones may
 * lie. */
static enum et_format
common_format(struct et_tensor *const *in, int n)
{
    for (int i = 0; i < n; i++)
        if (in[i] && (in[i]->desc.ndim != 4 ||
                      !et_desc_is_contiguous(&in[i]->desc, ET_CHANNELS_LAST)))
            return ET_ROW_MAJOR;
    return ET_CHANNELS_LAST;
}

static et_status
lay_out(struct et_graph *g, const struct et_custom_class *type, struct et_tensor **in,
        int n)
{
    if (type->layout == ET_CUSTOM_ANY)
        return ET_OK;
    enum et_format format =
        type->layout == ET_CUSTOM_ELEMENTS ? common_format(in, n) : ET_ROW_MAJOR;
    for (int i = 0; i < n; i++)
        if (in[i])
            in[i] = et_contiguous(g, in[i], format);
    return et_graph_status(g);
}

static et_status
check_elements(struct et_graph *g, const struct et_custom_class *type,
               struct et_tensor *const *in, int n)
{
    char a[ETI_TEXT], b[ETI_TEXT];
    for (int i = 1; type->layout == ET_CUSTOM_ELEMENTS && i < n; i++)
        if (in[0] && in[i] && !et_desc_same_shape(&in[0]->desc, &in[i]->desc))
            return ET_FAIL(et_graph_ctx(g), ET_ESHAPE,
                           "%s: operand %d is %s; it must have the shape of %s",
                           type->name, i, et_desc_text(&in[i]->desc, b, sizeof b),
                           et_desc_text(&in[0]->desc, a, sizeof a));
    return ET_OK;
}

/* The descriptor of a node of TYPE, until the graph is reset. */
static struct et_op *
describe(struct et_graph *g, const struct et_custom_class *type)
{
    struct et_op *op = eti_graph_alloc(g, sizeof *op);
    if (!op)
        return NULL;
    *op = (struct et_op){
        .name = type->name,
        .summary = et_op_custom.summary,
        .id = ET_OP_custom,
        .min_in = type->min_in,
        .max_in = type->max_in,
        .n_out = type->n_out,
        .attr_size = sizeof(struct et_custom_attr) + type->attr_size,
        .infer = infer_class,
        .gradient = type->gradient ? gradient_class : NULL,
        .flops = type->flops ? flops_of_class : NULL,
    };
    return op;
}

static struct et_tensor *
append(struct et_graph *g, const struct et_custom_class *type,
       struct et_tensor *const *in, int n, const void *attr, struct et_tensor **out)
{
    struct et_op *op = describe(g, type);
    struct et_custom_attr *own = eti_graph_alloc(g, sizeof *own + type->attr_size);
    struct et_tensor **laid = eti_graph_alloc(g, ((size_t)n + 1) * sizeof *laid);
    if (!op || !own || !laid)
        return NULL;
    own->type = type;
    if (type->attr_size)
        memcpy(own + 1, attr, type->attr_size);
    for (int i = 0; i < n; i++)
        laid[i] = in[i];
    et_status status = check_elements(g, type, laid, n);
    if (status == ET_OK)
        status = lay_out(g, type, laid, n);
    if (status != ET_OK)
        return eti_graph_fail(g, status);
    return eti_apply_op(g, op, laid, n, own, op->attr_size, out);
}

struct et_tensor *
et_custom(struct et_graph *g, const struct et_custom_class *type,
          struct et_tensor *const *in, int n, const void *attr, struct et_tensor **out)
{
    ETI_NEED_IN(g, g);
    const char *lack = lack_of(type);
    for (int i = 0; out && !lack && i < type->n_out; i++)
        out[i] = NULL;
    if (et_graph_status(g) != ET_OK)
        return NULL;
    if (!lack && type->attr_size && !attr)
        lack = "has attributes, and none were given";
    if (lack)
        return eti_graph_fail(
            g, ET_FAIL(et_graph_ctx(g), ET_EINVAL, "the operation %s %s",
                       type && type->name ? type->name : "(null)", lack));
    return append(g, type, in, n, attr, out);
}
