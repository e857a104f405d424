/* SPDX-License-Identifier: Apache-2.0 */
/* conv.c: preparing convolutions: which of four ways computes one.
 *
 *  - One filter per channel: own kernels (conv_depthwise.cu).
 *  - Fewer than 8 channels of two-byte elements, as every stem has: space to depth into
 *    the workspace (conv_pack.cu), then as the next.
 *  - Dense and channels-last: an engine of cuDNN, the fastest of those that the
 *    heuristics name first.
 *  - Anything else, and addresses that no engine takes: conv.cu, slowly.
 *
 * A bias is written into the result first and the convolution added to it (beta 1): one
 * rounding, and no fused engine, which would take 0.6 s of compilation per shape; the
 * bytes written and read are those of adding it afterwards. cuDNN 9.19 names the same
 * engines for beta 0 and 1. Where a bias is there, then, y is written once more than by
 * a fused engine; residual networks have none. */
#include "kernels/cuda/conv.h"

#include <stdio.h>
#include <string.h>

#include "kernels/cuda/conv_graph.h"

/* Of the workspace, at most: a 64th of the card, and never more than 256 MiB. */
static size_t
most_workspace(const struct et_device_handle *d)
{
    size_t most = (size_t)256 << 20, part = d->gpu.memory / 64;
    return part < most ? part : most;
}

/* Engines that are timed for each shape: llm.c and cuDNN's own benchmark mode find the
 * best one among the first few of the heuristics. */
enum { TUNED = 8, PACKED_BELOW = 8 };

struct conv_kernel {
    struct et_kernel base;
    struct etk_conv conv;
    int n_in;
    bool biased, depthwise;
    struct etk_dnn_plan *plan; /* NULL: own kernels */
    bool packed;               /* the plan is for x' and w' */
    size_t packed_x, packed_w; /* bytes; they lie at the workspace's start */
};

static bool
is_filter(const struct conv_kernel *k)
{
    return k->conv.kind == ETK_CONV_FILTER;
}

/* Rows and channels of the result that has a bias. */
static et_status
write_bias(struct conv_kernel *k, const void *bias, void *out, cudaStream_t stream)
{
    const struct etk_conv *v = &k->conv;
    bool forward = v->kind == ETK_CONV_FORWARD;
    const int64_t *size = forward ? v->y : v->x;
    int64_t rows = v->n * size[0] * size[1], channels = forward ? v->k : v->c;
    return etk_launched(&k->base,
                        etk_launch_conv_bias(v, rows, channels, bias, out, stream));
}

/* The plan, between packing its operands and unpacking its result. */
static et_status
run_packed(struct conv_kernel *k, void *const ptr[3], char *ws, cudaStream_t stream)
{
    void *x = ws, *w = ws + k->packed_x, *rest = ws + k->packed_x + k->packed_w;
    void *with[3] = {x, is_filter(k) ? ptr[1] : w, is_filter(k) ? w : ptr[2]};
    ET_TRY(etk_launched(&k->base, etk_launch_conv_pack_x(&k->conv, ptr[0], x, stream)));
    if (!is_filter(k))
        ET_TRY(etk_launched(&k->base,
                            etk_launch_conv_pack_w(&k->conv, ptr[1], w, stream)));
    ET_TRY(etk_dnn_run(k->plan, with, rest, stream));
    if (is_filter(k))
        ET_TRY(etk_launched(&k->base,
                            etk_launch_conv_unpack_w(&k->conv, w, ptr[2], stream)));
    return ET_OK;
}

static et_status
run_conv(struct et_kernel *base, void *const *ptr, void *ws, cudaStream_t stream)
{
    struct conv_kernel *k = (struct conv_kernel *)base;
    void *with[3] = {ptr[0], ptr[1], ptr[k->n_in]};
    const void *bias = k->biased ? ptr[2] : NULL;
    if (k->depthwise)
        return etk_launched(base, etk_launch_conv_depthwise(&k->conv, with[0], with[1],
                                                            bias, with[2], ws, stream));
    if (!k->plan || !etk_dnn_aligned(with, 3))
        return etk_launched(
            base, etk_launch_conv(&k->conv, with[0], with[1], bias, with[2], stream));
    if (bias)
        ET_TRY(write_bias(k, bias, with[2], stream));
    return k->packed ? run_packed(k, with, ws, stream)
                     : etk_dnn_run(k->plan, with, ws, stream);
}

static void
release_conv(struct et_kernel *base)
{
    etk_dnn_plan_free(((struct conv_kernel *)base)->plan);
}

/* The convolution that CALL is, with the strides of its arrays. */
static struct etk_conv
conv_of(const struct et_device_handle *d, const struct et_call *call)
{
    const struct et_conv2d_attr *o = call->attr;
    bool forward = call->op == ET_OP_conv2d, data = call->op == ET_OP_conv2d_grad_input;
    const struct et_desc *x = data ? &call->out[0] : &call->in[0];
    const struct et_desc *w = forward || data ? &call->in[1] : &call->out[0];
    const struct et_desc *y = forward ? &call->out[0] : &call->in[data ? 0 : 1];
    struct etk_conv v = {
        .kind = forward ? ETK_CONV_FORWARD
                : data  ? ETK_CONV_DATA
                        : ETK_CONV_FILTER,
        .dtype = x->dtype,
        .n = x->shape[0],
        .c = x->shape[1],
        .k = y->shape[1],
        .groups = o->groups,
        .sm_count = d->gpu.sm_count,
    };
    for (int i = 0; i < 2; i++) {
        v.x[i] = x->shape[2 + i];
        v.y[i] = y->shape[2 + i];
        v.taps[i] = (int)w->shape[2 + i];
        v.stride[i] = o->stride[i];
        v.pad[i] = o->pad[i];
        v.dilation[i] = o->dilation[i];
    }
    memcpy(v.sx, x->stride, sizeof v.sx);
    memcpy(v.sw, w->stride, sizeof v.sw);
    memcpy(v.sy, y->stride, sizeof v.sy);
    if (call->n_in > 2 && call->in[2].dtype != ET_NONE)
        v.sb = call->in[2].stride[0];
    return v;
}

static bool
is_dense(const struct et_call *call)
{
    return et_desc_is_contiguous(&call->in[0], ET_CHANNELS_LAST) &&
           et_desc_is_contiguous(&call->in[1], ET_CHANNELS_LAST) &&
           et_desc_is_contiguous(&call->out[0], ET_CHANNELS_LAST);
}

/* Is x' worth its workspace? An engine would pad the channels itself, to 8. */
static bool
wants_packing(const struct etk_conv *v)
{
    return v->kind != ETK_CONV_DATA && v->dtype != ET_F32 && v->c < PACKED_BELOW &&
           v->groups == 1 && v->dilation[0] == 1 && v->dilation[1] == 1;
}

/* An engine that needs no compiler, else one that does. */
static et_status
plan_conv(struct et_device_handle *d, struct conv_kernel *k, size_t *ws, char *why,
          size_t why_size)
{
    struct etk_dnn_graph g = {0};
    struct etk_dnn_limits limits = {
        .workspace = most_workspace(d), .tune = TUNED, .precompiled = true};
    etk_conv_graph(&g, &k->conv, k->packed, k->biased);
    et_status status = etk_dnn_plan(d, &g, &limits, &k->plan, ws, why, why_size);
    if (status != ET_ENOTSUP)
        return status;
    limits.precompiled = false;
    limits.tune = 1;
    return etk_dnn_plan(d, &g, &limits, &k->plan, ws, why, why_size);
}

/* Looks for an engine; without one the kernel is left as it is: conv.cu. */
static et_status
find_engine(struct et_device_handle *d, struct conv_kernel *k, size_t *ws, char *why,
            size_t why_size)
{
    k->packed = wants_packing(&k->conv);
    et_status status = plan_conv(d, k, ws, why, why_size);
    if (status == ET_ENOTSUP) {
        k->packed = false;
        why[0] = '\0';
        return ET_OK;
    }
    if (status == ET_OK && k->packed) {
        struct etk_conv_pack p = etk_conv_pack_of(&k->conv);
        size_t element = et_dtype_size(k->conv.dtype) * (size_t)p.channels;
        k->packed_x =
            etk_round_up(element * (size_t)(k->conv.n * p.size[0] * p.size[1]));
        k->packed_w =
            etk_round_up(element * (size_t)(k->conv.k * p.taps[0] * p.taps[1]));
        *ws = etk_round_up(*ws) + k->packed_x + k->packed_w;
    }
    return status;
}

et_status
etk_prepare_conv(struct et_device_handle *d, const struct et_call *call,
                 struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    if (call->in[0].dtype != ET_F32 && call->in[0].dtype != ET_BF16 &&
        call->in[0].dtype != ET_F16)
        return etk_refuse(why, why_size, "convolutions are of f32, bf16 or f16, not %s",
                          et_dtype_name(call->in[0].dtype));
    struct conv_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    k->base.run = run_conv;
    k->base.release = release_conv;
    k->conv = conv_of(d, call);
    k->n_in = call->n_in;
    k->biased = call->n_in > 2 && call->in[2].dtype != ET_NONE;
    et_status status = ET_OK;
    /* A gradient over no images is all zero, which the last way knows. */
    bool dense = is_dense(call) && k->conv.n * k->conv.y[0] * k->conv.y[1] > 0;
    if (dense && etk_conv_is_depthwise(&k->conv)) {
        k->depthwise = true;
        *ws = etk_conv_depthwise_ws(&k->conv);
    } else if (dense) {
        status = find_engine(d, k, ws, why, why_size);
    }
    if (status != ET_OK) {
        etk_release(&k->base);
        return status;
    }
    snprintf(k->base.what, sizeof k->base.what, "%.52s%s",
             k->depthwise ? "depthwise"
             : k->plan    ? etk_dnn_plan_name(k->plan)
                          : "implicit gemm",
             k->packed ? ", packed" : "");
    *out = &k->base;
    return ET_OK;
}
