/* SPDX-License-Identifier: Apache-2.0 */
/* sdpa.c: preparing attention and its gradient: which of two ways computes them.
 *
 *  - Heads of two-byte elements, rows of whole 16 bytes: cuDNN's engines, made for each
 *    shape at run time (0.4-0.6 s, kept on disk): 310 TFLOP/s forward and 260 backward
 *    on an H200 at 64 elements a head, by cudnn-frontend's benchmarks.
 *  - Everything else: f32, addresses that no engine takes, and what cuDNN refuses:
 *    sdpa.cu, exact to f32 and deterministic.
 *
 * Both give the same lse: one may do the forward pass and the other the other. */
#include "kernels/cuda/sdpa.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/sdpa_graph.h"

/* Of the workspace, at most: what the deterministic engine keeps is 2 B H T S
 * bytes, 1.6 GB for 64 samples of 12 heads of 1024 positions. */
static size_t
most_workspace(const struct et_device_handle *d)
{
    return d->gpu.memory / 32;
}

/* Engines that are timed for each shape: cuDNN names 2 to 4. */
enum { TUNED = 4 };

struct sdpa_kernel {
    struct et_kernel base;
    struct etk_sdpa sdpa;
    int n_in;
    struct etk_dnn_plan *plan; /* NULL: own kernels */
    size_t sum,
        total; /* bytes of what the plan is given of the workspace, ahead of its own */
};

/* Which array is operand I, or result I. */
static const enum etk_sdpa_array forward_in[] = {ETK_SDPA_Q, ETK_SDPA_K, ETK_SDPA_V,
                                                 ETK_SDPA_BIAS},
                                 forward_out[] = {ETK_SDPA_O, ETK_SDPA_LSE},
                                 backward_in[] = {ETK_SDPA_DO,  ETK_SDPA_Q,
                                                  ETK_SDPA_K,   ETK_SDPA_V,
                                                  ETK_SDPA_O,   ETK_SDPA_LSE,
                                                  ETK_SDPA_BIAS},
                                 backward_out[] = {ETK_SDPA_DQ, ETK_SDPA_DK,
                                                   ETK_SDPA_DV};

static enum etk_sdpa_array
array_of(bool grad, int n_in, int i)
{
    return i < n_in ? (grad ? backward_in : forward_in)[i]
                    : (grad ? backward_out : forward_out)[i - n_in];
}

/* ---- running ---- */

/* Where a run finds what, by slot; the workspace's parts included. */
static void
find_arrays(const struct sdpa_kernel *k, void *const *ptr, char *ws,
            void *at[ETK_SDPA_SLOTS])
{
    int n = k->n_in + (k->sdpa.grad ? 3 : 2);
    memset(at, 0, ETK_SDPA_SLOTS * sizeof at[0]);
    for (int i = 0; i < n; i++)
        at[array_of(k->sdpa.grad, k->n_in, i)] = ptr[i];
    at[ETK_SDPA_SUM] = ws;
    at[ETK_SDPA_TOTAL] = ws + k->sum;
    /* Statistics that nobody wants have to go somewhere. */
    if (k->plan && !at[ETK_SDPA_LSE])
        at[ETK_SDPA_LSE] = ws;
}

static et_status
run_sdpa(struct et_kernel *base, void *const *ptr, void *ws, cudaStream_t stream)
{
    struct sdpa_kernel *k = (struct sdpa_kernel *)base;
    void *at[ETK_SDPA_SLOTS];
    find_arrays(k, ptr, ws, at);
    if (k->plan && etk_dnn_aligned(at, ETK_SDPA_ARRAYS)) {
        /* Blocks add to it what they have; nobody else clears it. */
        if (k->total > 0)
            ETK_TRY_CUDA(base->dev,
                         cudaMemsetAsync(at[ETK_SDPA_TOTAL], 0, k->total, stream));
        ET_TRY(etk_dnn_run(k->plan, at, (char *)ws + k->sum + k->total, stream));
        return k->sdpa.grad || k->sdpa.bias == ET_NONE
                   ? ET_OK
                   : etk_launched(base, etk_launch_sdpa_clear(&k->sdpa, at, stream));
    }
    struct etk_sdpa a = k->sdpa;
    for (int i = 0; i < ETK_SDPA_HEADS; i++)
        a.heads[i].wide = a.heads[i].wide && etk_dnn_aligned(&at[i], 1);
    return etk_launched(base, a.grad ? etk_launch_sdpa_grad(&a, at, ws, stream)
                                     : etk_launch_sdpa(&a, at, stream));
}

static void
release_sdpa(struct et_kernel *base)
{
    etk_dnn_plan_free(((struct sdpa_kernel *)base)->plan);
}

/* ---- preparing ---- */

/* Are all rows of X, [B,H,N,D], whole and aligned pieces of 16 bytes where the first
 * is? */
static bool
is_wide(const struct et_desc *x)
{
    int64_t lanes = ETK_DNN_ALIGN / (int64_t)et_dtype_size(x->dtype);
    if (x->shape[3] % lanes != 0 || (x->shape[3] > 1 && x->stride[3] != 1))
        return false;
    for (int i = 0; i < 3; i++)
        if (x->shape[i] > 1 && x->stride[i] % lanes != 0)
            return false;
    return true;
}

static void
set_heads(struct etk_heads *to, const struct et_desc *x)
{
    *to = (struct etk_heads){
        .b = x->stride[0],
        .h = x->stride[1],
        .row = x->stride[2],
        .step = x->stride[3],
        .wide = is_wide(x),
    };
}

static void
set_bias(struct etk_sdpa *a, const struct et_desc *bias)
{
    a->bias = bias->dtype;
    for (int i = 0; i < 4; i++)
        a->bias_stride[i] = bias->shape[i] > 1 ? bias->stride[i] : 0;
}

/* The attention that CALL is. */
static struct etk_sdpa
sdpa_of(const struct et_call *call)
{
    const struct et_sdpa_attr *o = call->attr;
    bool grad = call->op == ET_OP_sdpa_grad;
    const struct et_desc *q = &call->in[grad], *k = q + 1;
    struct etk_sdpa a = {
        .dtype = q->dtype,
        .bias = ET_NONE,
        .grad = grad,
        .causal = o->causal,
        .B = q->shape[0],
        .H = q->shape[1],
        .T = q->shape[2],
        .S = k->shape[2],
        .D = q->shape[3],
        .scale = (float)o->scale,
        /* Of statistics that nobody wants: dense. */
        .lse_stride = {q->shape[1] * q->shape[2], q->shape[2], 1},
    };
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        const struct et_desc *x =
            i < call->n_in ? &call->in[i] : &call->out[i - call->n_in];
        enum etk_sdpa_array what = array_of(grad, call->n_in, i);
        if (x->dtype == ET_NONE)
            continue;
        if (what < ETK_SDPA_HEADS)
            set_heads(&a.heads[what], x);
        else if (what == ETK_SDPA_BIAS)
            set_bias(&a, x);
        else
            memcpy(a.lse_stride, x->stride, sizeof a.lse_stride);
    }
    return a;
}

static bool
is_short_float(enum et_dtype dtype)
{
    return dtype == ET_F32 || dtype == ET_BF16 || dtype == ET_F16;
}

/* Refuses what neither way computes. */
static et_status
check_call(const struct et_call *call, char *why, size_t why_size)
{
    bool grad = call->op == ET_OP_sdpa_grad;
    const struct et_desc *q = &call->in[grad];
    if (!is_short_float(q->dtype))
        return etk_refuse(why, why_size, "attention is of f32, bf16 or f16, not %s",
                          et_dtype_name(q->dtype));
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        const struct et_desc *x =
            i < call->n_in ? &call->in[i] : &call->out[i - call->n_in];
        enum etk_sdpa_array what = array_of(grad, call->n_in, i);
        bool good = x->dtype == ET_NONE     ? true
                    : what == ETK_SDPA_BIAS ? is_short_float(x->dtype)
                    : what == ETK_SDPA_LSE  ? x->dtype == ET_F32
                                            : x->dtype == q->dtype;
        if (!good)
            return etk_refuse(why, why_size, "attention of %s with an array of %s",
                              et_dtype_name(q->dtype), et_dtype_name(x->dtype));
    }
    if (q[0].shape[3] == 0 || q[1].shape[2] == 0 || q[0].shape[3] > ETK_SDPA_DEPTH)
        return etk_refuse(
            why, why_size, "attention to %lld keys of %lld elements (1 to %d)",
            (long long)q[1].shape[2], (long long)q[0].shape[3], ETK_SDPA_DEPTH);
    if (q[0].shape[2] > INT32_MAX || q[1].shape[2] > INT32_MAX)
        return etk_refuse(why, why_size, "attention of %lld positions to %lld",
                          (long long)q[0].shape[2], (long long)q[1].shape[2]);
    return ET_OK;
}

/* May cuDNN be asked? Its tensors have positive strides and no length of 0. To one key
 * the gradients of queries and keys are 0, and here alone are do . v and do . o rounded
 * alike. Of a bias that repeats along queries or keys cuDNN (9.19) computes other
 * gradients than those of its own result. */
static bool
may_plan(const struct etk_sdpa *a, const struct et_call *call)
{
    bool repeats =
        a->bias != ET_NONE && (a->bias_stride[2] == 0 || a->bias_stride[3] == 0);
    if (a->dtype == ET_F32 || a->D % 8 != 0 || a->B * a->H * a->T == 0 || a->S == 1 ||
        (a->grad && repeats))
        return false;
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        const struct et_desc *x =
            i < call->n_in ? &call->in[i] : &call->out[i - call->n_in];
        enum etk_sdpa_array what = array_of(a->grad, call->n_in, i);
        if (what == ETK_SDPA_BIAS || what == ETK_SDPA_LSE)
            continue;
        /* (All three gradients, or own kernels: models want all.) */
        if (x->dtype == ET_NONE || !a->heads[what].wide)
            return false;
        for (int axis = 0; axis < 4; axis++)
            if (x->stride[axis] <= 0)
                return false;
    }
    return true;
}

/* Looks for an engine; without one the kernel is left as it is: sdpa.cu. WS: bytes of
 * the plan's own. */
static et_status
find_engine(struct et_device_handle *d, struct sdpa_kernel *k, size_t *ws, char *why,
            size_t why_size)
{
    struct etk_dnn_graph *g = etk_new(sizeof *g);
    struct etk_dnn_limits limits = {.workspace = most_workspace(d), .tune = TUNED};
    if (!g)
        return ET_ENOMEM;
    etk_sdpa_graph(g, &k->sdpa, d->deterministic);
    et_status status = etk_dnn_plan(d, g, &limits, &k->plan, ws, why, why_size);
    free(g);
    if (status != ET_ENOTSUP)
        return status;
    why[0] = '\0';
    return ET_OK;
}

et_status
etk_prepare_sdpa(struct et_device_handle *d, const struct et_call *call,
                 struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    ET_TRY(check_call(call, why, why_size));
    struct sdpa_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    k->base.run = run_sdpa;
    k->base.release = release_sdpa;
    k->sdpa = sdpa_of(call);
    k->n_in = call->n_in;
    if (etk_sdpa_shared(&k->sdpa) > d->gpu.shared) {
        size_t needed = etk_sdpa_shared(&k->sdpa);
        free(k);
        return etk_refuse(
            why, why_size,
            "attention of %lld elements takes %zu bytes of shared memory, "
            "of which the GPU has %zu",
            (long long)call->in[call->op == ET_OP_sdpa_grad].shape[3], needed,
            d->gpu.shared);
    }
    cudaError_t code = etk_sdpa_allow(&k->sdpa);
    et_status status =
        code == cudaSuccess ? ET_OK : etk_fail(d, ETK_CUDA, (int)code, "attention");
    size_t engine = 0, rows = (size_t)(k->sdpa.B * k->sdpa.H * k->sdpa.T);
    if (status == ET_OK && may_plan(&k->sdpa, call))
        status = find_engine(d, k, &engine, why, why_size);
    if (status != ET_OK) {
        etk_release(&k->base);
        return status;
    }
    bool needs_rows = k->sdpa.grad || call->out[1].dtype == ET_NONE;
    k->sum = needs_rows ? etk_round_up(rows * sizeof(float)) : 0;
    k->total = k->plan && k->sdpa.grad && !d->deterministic
                   ? etk_round_up(rows * (size_t)k->sdpa.D * sizeof(float))
                   : 0;
    *ws = k->sum + k->total + engine;
    snprintf(k->base.what, sizeof k->base.what, "%s%.56s", k->plan ? "cudnn:" : "",
             k->plan ? etk_dnn_plan_name(k->plan) : "flash attention");
    *out = &k->base;
    return ET_OK;
}
