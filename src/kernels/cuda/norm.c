/* SPDX-License-Identifier: Apache-2.0 */
/* norm.c: preparing batch, layer and group norm: which array is what, and which of the
 * three ways computes a call. */
#include "kernels/cuda/norm.h"

#include <stdio.h>
#include <string.h>

enum { OPERANDS = 6, RESULTS = 4 };

/* The roles of an op's operands and results. */
struct layout {
    enum et_op_id op;
    const char *name;
    bool grad, batch, group;
    signed char in[OPERANDS], out[RESULTS]; /* roles; -1: not an operand */
};

#define ROLE(name) ETK_NORM_##name
static const struct layout layouts[] = {
    {.op = ET_OP_batch_norm,
     .name = "batch_norm",
     .batch = true,
     .in = {ROLE(X), ROLE(GAMMA), ROLE(BETA), ROLE(RESIDUAL), -1, -1},
     .out = {ROLE(Y), ROLE(MEAN), ROLE(SPREAD), -1}},
    {.op = ET_OP_batch_norm_grad,
     .name = "batch_norm_grad",
     .grad = true,
     .batch = true,
     .in = {ROLE(DY), ROLE(X), ROLE(GAMMA), ROLE(MEAN), ROLE(SPREAD), ROLE(RELU_Y)},
     .out = {ROLE(DX), ROLE(DGAMMA), ROLE(DBETA), ROLE(DRESIDUAL)}},
    {.op = ET_OP_layer_norm,
     .name = "layer_norm",
     .in = {ROLE(X), ROLE(GAMMA), ROLE(BETA), ROLE(BRANCH), -1, -1},
     .out = {ROLE(Y), ROLE(MEAN), ROLE(SPREAD), ROLE(SUM)}},
    {.op = ET_OP_layer_norm_grad,
     .name = "layer_norm_grad",
     .grad = true,
     .in = {ROLE(DY), ROLE(X), ROLE(GAMMA), ROLE(MEAN), ROLE(SPREAD), ROLE(DSUM)},
     .out = {ROLE(DX), ROLE(DGAMMA), ROLE(DBETA), ROLE(DBRANCH)}},
    {.op = ET_OP_group_norm,
     .name = "group_norm",
     .group = true,
     .in = {ROLE(X), ROLE(GAMMA), ROLE(BETA), -1, -1, -1},
     .out = {ROLE(Y), ROLE(MEAN), ROLE(SPREAD), -1}},
    {.op = ET_OP_group_norm_grad,
     .name = "group_norm_grad",
     .grad = true,
     .group = true,
     .in = {ROLE(DY), ROLE(X), ROLE(GAMMA), ROLE(MEAN), ROLE(SPREAD), -1},
     .out = {ROLE(DX), ROLE(DGAMMA), ROLE(DBETA), -1}},
};

struct norm_kernel {
    struct et_kernel base;
    const struct layout *layout;
    int n_in, n_out;
    bool by_rows, by_channels;
    struct etk_norm_rows rows;
    struct etk_norm_channels channels;
    struct etk_norm_any sets, params; /* the walks by set and by parameter */
};

bool
etk_norm_is_image(int role)
{
    static const bool images[ETK_NORM_ROLES] = {
        [ROLE(X)] = true,         [ROLE(RESIDUAL)] = true, [ROLE(BRANCH)] = true,
        [ROLE(DY)] = true,        [ROLE(DSUM)] = true,     [ROLE(RELU_Y)] = true,
        [ROLE(Y)] = true,         [ROLE(SUM)] = true,      [ROLE(DX)] = true,
        [ROLE(DRESIDUAL)] = true, [ROLE(DBRANCH)] = true,
    };
    return images[role];
}

static bool
is_statistic(int role)
{
    return role == ROLE(MEAN) || role == ROLE(SPREAD);
}

void
etk_norm_bind(void *const *p, void **image, struct etk_norm_param *param)
{
    for (int role = 0; role < ETK_NORM_ROLES; role++) {
        bool is_param = !etk_norm_is_image(role) && !is_statistic(role);
        image[role] = is_param ? NULL : p[role];
        param[role].p = is_param ? p[role] : NULL;
        param[role].quick = param[role].dtype == ET_F32 && (uintptr_t)p[role] % 16 == 0;
    }
}

/* ---- any strides ---- */

/* An axis of x, or, for group norm, one of the two that its channels are. */
struct axis {
    int64_t shape;
    int own;             /* axis of x */
    int64_t times;       /* its stride is so many of x's own */
    bool set, parameter; /* tells sets, or parameters, apart */
    int statistic;       /* axis of mean, where SET */
};

static int
axes_of(const struct etk_norm *o, struct axis *axis)
{
    const struct et_desc *x = o->desc[ROLE(X)];
    int n = 0, outer = x->ndim - o->attr->axes;
    for (int i = 0; i < x->ndim; i++) {
        struct axis a = {.shape = x->shape[i], .own = i, .times = 1};
        if (o->batch) {
            a.set = a.parameter = i == 1;
        } else if (!o->group) {
            a.set = i < outer;
            a.parameter = !a.set;
            a.statistic = i;
        } else if (i == 1) {
            int64_t width = x->shape[1] / o->attr->groups;
            axis[n++] = (struct axis){.shape = o->attr->groups,
                                      .own = 1,
                                      .times = width,
                                      .set = true,
                                      .parameter = true,
                                      .statistic = 1};
            a.shape = width;
            a.parameter = true;
        } else {
            a.set = i == 0;
        }
        axis[n++] = a;
    }
    return n;
}

/* Which stride of an array of ROLE an axis of x moves it by. */
static int64_t
stride_of(const struct etk_norm *o, int role, const struct axis *a)
{
    const struct et_desc *d = o->desc[role];
    if (etk_norm_is_image(role))
        return d->stride[a->own] * a->times;
    if (is_statistic(role))
        return a->set ? d->stride[a->statistic] : 0;
    int first = o->batch || o->group ? 1 : o->desc[ROLE(X)]->ndim - o->attr->axes;
    return a->parameter ? d->stride[a->own - first] * a->times : 0;
}

/* The walk whose outer axes are those of the sets, or of the PARAMETERS. */
static void
plan_any(const struct etk_norm *o, bool parameters, struct etk_norm_any *n)
{
    struct axis axis[ETK_NORM_DIMS];
    int axes = axes_of(o, axis);
    memset(n, 0, sizeof *n);
    n->eps = o->eps;
    n->relu = o->relu;
    n->variance = o->batch;
    n->stored = o->stored;
    n->blocks = n->size = 1;
    for (int inner = 0; inner < 2; inner++)
        for (int i = 0; i < axes; i++) {
            if ((parameters ? axis[i].parameter : axis[i].set) == inner)
                continue;
            *(inner ? &n->size : &n->blocks) *= axis[i].shape;
            n->outer += !inner;
            n->shape[n->ndim] = axis[i].shape;
            for (int role = 0; role < ETK_NORM_ROLES; role++)
                if (o->desc[role])
                    n->a[role].stride[n->ndim] = stride_of(o, role, &axis[i]);
            n->ndim++;
        }
    for (int role = 0; role < ETK_NORM_ROLES; role++)
        if (o->desc[role]) {
            n->a[role].dtype = o->desc[role]->dtype;
            n->wide |= o->desc[role]->dtype == ET_F64;
        }
}

static et_status
run_any(struct norm_kernel *k, void *const *p, cudaStream_t stream)
{
    for (int role = 0; role < ETK_NORM_ROLES; role++)
        k->sets.a[role].p = k->params.a[role].p = p[role];
    if (!k->layout->grad)
        return etk_launched(&k->base, etk_launch_norm_any(&k->sets, stream));
    /* First: dx may take dy's place. */
    if (p[ROLE(DGAMMA)] || p[ROLE(DBETA)])
        ET_TRY(etk_launched(&k->base, etk_launch_norm_any_params(&k->params, stream)));
    return etk_launched(&k->base, etk_launch_norm_any_grad(&k->sets, stream));
}

/* ---- the ops ---- */

static et_status
run_norm(struct et_kernel *base, void *const *ptr, void *ws, cudaStream_t stream)
{
    struct norm_kernel *k = (struct norm_kernel *)base;
    const struct layout *l = k->layout;
    void *p[ETK_NORM_ROLES] = {NULL};
    for (int i = 0; i < k->n_in; i++)
        p[(int)l->in[i]] = ptr[i];
    for (int i = 0; i < k->n_out; i++)
        p[(int)l->out[i]] = ptr[k->n_in + i];
    if (!l->batch || !k->sets.relu)
        p[ROLE(RELU_Y)] = NULL;
    et_status status;
    if (k->by_rows &&
        etk_norm_rows_run(base, &k->rows, l->grad, p, ws, stream, &status))
        return status;
    if (k->by_channels)
        return etk_norm_channels_run(base, &k->channels, l->grad, p, ws, stream);
    return run_any(k, p, stream);
}

static const struct layout *
layout_of(enum et_op_id op)
{
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        if (layouts[i].op == op)
            return &layouts[i];
    return NULL;
}

/* What the arrays of CALL are. */
static struct etk_norm
norm_of(const struct et_call *call, const struct layout *l)
{
    const struct et_norm_attr *attr = call->attr;
    struct etk_norm o = {
        .attr = attr,
        .grad = l->grad,
        .batch = l->batch,
        .group = l->group,
        .relu = l->batch && attr->relu,
        .eps = attr->eps,
    };
    for (int i = 0; i < call->n_in; i++)
        if (call->in[i].dtype != ET_NONE)
            o.desc[(int)l->in[i]] = &call->in[i];
    for (int i = 0; i < call->n_out; i++)
        if (call->out[i].dtype != ET_NONE)
            o.desc[(int)l->out[i]] = &call->out[i];
    if (!o.relu)
        o.desc[ROLE(RELU_Y)] = NULL;
    const struct et_desc *y = o.desc[ROLE(Y)];
    o.stored = attr->stored ? (enum et_dtype)attr->stored : y ? y->dtype : ET_NONE;
    return o;
}

et_status
etk_prepare_norm(struct et_device_handle *d, const struct et_call *call,
                 struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    const struct layout *l = layout_of(call->op);
    struct etk_norm o = norm_of(call, l);
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        enum et_dtype dtype =
            i < call->n_in ? call->in[i].dtype : call->out[i - call->n_in].dtype;
        if (dtype != ET_NONE && !et_dtype_is_float(dtype))
            return etk_refuse(why, why_size, "%s of %s", l->name, et_dtype_name(dtype));
    }
    if (o.grad && o.relu && !o.desc[ROLE(RELU_Y)])
        return etk_refuse(why, why_size, "the gradient through relu needs y");
    struct norm_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    k->base.run = run_norm;
    k->layout = l;
    k->n_in = call->n_in;
    k->n_out = call->n_out;
    cudaError_t code = cudaSuccess;
    k->by_rows = etk_norm_rows_plan(&o, &d->gpu, &k->rows, ws, &code);
    if (code != cudaSuccess) {
        etk_release(&k->base);
        return etk_fail(d, ETK_CUDA, (int)code, l->name);
    }
    k->by_channels = etk_norm_channels_plan(&o, &d->gpu, &k->channels, ws);
    plan_any(&o, false, &k->sets);
    plan_any(&o, true, &k->params);
    snprintf(k->base.what, sizeof k->base.what, "%s:%s", l->name,
             k->by_rows       ? "rows"
             : k->by_channels ? "channels"
                              : "any");
    *out = &k->base;
    return ET_OK;
}
