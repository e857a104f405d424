/* SPDX-License-Identifier: Apache-2.0 */
/* conv_split.c: a convolution and what follows it, as two kernels: where oneDNN has no
 * kernel that does both. */
#include <string.h>

#include "kernels/cpu/cpu.h"

enum { X, W, SCALE, SHIFT, RESIDUAL, MOST };

struct split {
    struct et_kernel base;
    struct et_kernel *conv, *rest;
    int n_in;
};

static et_status
run_split(struct et_kernel *base, void *const *ptr, void *ws)
{
    struct split *k = (struct split *)base;
    void *y = ptr[k->n_in], *in[MOST] = {y, ptr[SCALE], ptr[SHIFT]};
    int n = 3;
    if (k->n_in > RESIDUAL && ptr[RESIDUAL])
        in[n++] = ptr[RESIDUAL];
    in[n] = y;
    ET_TRY(k->conv->run(k->conv, (void *const[]){ptr[X], ptr[W], y}, ws));
    return k->rest->run(k->rest, in, ws);
}

static void
release_split(struct et_kernel *base)
{
    struct split *k = (struct split *)base;
    etk_release(k->conv);
    etk_release(k->rest);
}

/* The chain y scale + shift (+ residual), ReLU, in place. */
static et_status
prepare_rest(struct et_device_handle *d, const struct et_call *call,
             struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    const struct et_conv2d_fused_attr *o = call->attr;
    bool adds = call->n_in > RESIDUAL && call->in[RESIDUAL].dtype != ET_NONE;
    struct et_desc in[4] = {call->out[0], call->in[SCALE], call->in[SHIFT]};
    struct et_fused_attr chain = {.n_in = 3 + adds, .n_out = 1};
    const enum et_op_id ops[] = {ET_OP_mul, ET_OP_add, ET_OP_add, ET_OP_relu};
    if (adds)
        in[3] = call->in[RESIDUAL];
    for (int i = 1; i < 3; i++) { /* a number for each channel, at every pixel */
        in[i].ndim = 3;
        in[i].shape[1] = in[i].shape[2] = 1;
        in[i].stride[1] = in[i].stride[2] = 1;
    }
    int last = 0; /* the register with what was computed so far */
    for (int i = 0; i < 4; i++) {
        if ((i == 2 && !adds) || (i == 3 && !o->relu))
            continue;
        chain.step[chain.n_steps] = (struct et_fused_step){
            .op = (uint16_t)ops[i],
            .n_src = i == 3 ? 1 : 2,
            .src = {(uint8_t)last, (uint8_t)(i < 3 ? i + 1 : 0)},
        };
        last = chain.n_in + chain.n_steps++;
    }
    chain.out[0] = (uint8_t)last;
    const struct et_call rest = {.op = ET_OP_fused,
                                 .attr = &chain,
                                 .attr_size = sizeof chain,
                                 .n_in = chain.n_in,
                                 .n_out = 1,
                                 .in = in,
                                 .out = call->out};
    return etk_prepare(d, &rest, out, ws, why, why_size);
}

et_status
etk_prepare_conv2d_split(struct et_device_handle *d, const struct et_call *call,
                         struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    const struct et_conv2d_fused_attr *o = call->attr;
    const struct et_call conv = {.op = ET_OP_conv2d,
                                 .attr = &o->conv,
                                 .attr_size = sizeof o->conv,
                                 .n_in = 2,
                                 .n_out = 1,
                                 .in = call->in,
                                 .out = call->out};
    size_t more = 0;
    struct split *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    k->base.run = run_split;
    k->base.release = release_split;
    k->base.what = "conv2d, then what follows";
    k->n_in = call->n_in;
    et_status status = etk_prepare(d, &conv, &k->conv, ws, why, why_size);
    if (status == ET_OK)
        status = prepare_rest(d, call, &k->rest, &more, why, why_size);
    *ws = more > *ws ? more : *ws;
    if (status != ET_OK) {
        etk_release(&k->base);
        return status;
    }
    *out = &k->base;
    return ET_OK;
}
