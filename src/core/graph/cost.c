/* SPDX-License-Identifier: Apache-2.0 */
/* cost.c: what each step of a plan computes and moves, and the least time that takes.
 *
 * FLOPs and bytes are those of the step as it stands after the passes: what a fused
 * kernel keeps to itself is not counted. An operand counts once however often a kernel
 * reads it, so that bytes over the device's rate is a time no kernel can beat. A pass
 * too many is the kernel's, and shows as the difference to its measured time. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/graph_impl.h"

struct et_call
eti_step_call(const struct eti_ir *ir, const struct eti_step *s, struct et_desc *desc)
{
    for (int i = 0; i < s->n_in + s->n_out; i++) {
        int value = i < s->n_in ? s->in[i] : s->out[i - s->n_in];
        memset(&desc[i], 0, sizeof desc[i]);
        if (value >= 0)
            desc[i] = ir->value[value].desc;
    }
    return (struct et_call){
        .op = s->op->id,
        .n_in = s->n_in,
        .n_out = s->n_out,
        .attr = s->attr,
        .attr_size = s->attr_size,
        .in = desc,
        .out = desc + s->n_in,
    };
}

/* ---- what is computed and moved ---- */

/* Of the elements that lie in memory: along an axis of stride 0 there is one. */
static int64_t
bytes_in_memory(const struct et_desc *d)
{
    int64_t n = (int64_t)et_dtype_size(d->dtype);
    for (int i = 0; i < d->ndim; i++)
        if (d->stride[i] != 0 || d->shape[i] == 0)
            n *= d->shape[i];
    return n;
}

/* Operand I of S is one of those before it. */
static bool
is_repeated(const struct eti_ir *ir, const struct eti_step *s, int i)
{
    for (int j = 0; j < i; j++)
        if (s->in[j] >= 0 && eti_ir_same_value(ir, s->in[i], s->in[j]))
            return true;
    return false;
}

static int64_t
operand_bytes(const struct eti_ir *ir, const struct eti_step *s)
{
    int64_t bytes = 0;
    for (int i = 0; i < s->n_in; i++)
        if (s->in[i] >= 0 && !is_repeated(ir, s, i))
            bytes += bytes_in_memory(&ir->value[s->in[i]].desc);
    for (int i = 0; i < s->n_out; i++)
        if (s->out[i] >= 0)
            bytes += bytes_in_memory(&ir->value[s->out[i]].desc);
    return bytes;
}

/* One for each element of the first result that is wanted. */
static int64_t
result_count(const struct et_call *call)
{
    for (int i = 0; i < call->n_out; i++)
        if (call->out[i].dtype != ET_NONE)
            return et_desc_count(&call->out[i]);
    return 0;
}

et_status
eti_count_costs(struct eti_ir *ir)
{
    int most = 0;
    for (int i = 0; i < ir->n_steps; i++)
        if (ir->step[i].op && ir->step[i].n_in + ir->step[i].n_out > most)
            most = ir->step[i].n_in + ir->step[i].n_out;
    struct et_desc *desc = eti_arena_alloc(ir->arena, (size_t)most * sizeof *desc + 1);
    if (!desc)
        return ET_ENOMEM;
    for (int i = 0; i < ir->n_steps; i++) {
        struct eti_step *s = &ir->step[i];
        if (!s->op || s->op->id == ET_OP_all_reduce) /* the ranks' network does it */
            continue;
        const struct et_call call = eti_step_call(ir, s, desc);
        s->flops = s->op->flops ? s->op->flops(&call) : result_count(&call);
        if (s->op->id == ET_OP_pack && s->out[0] >= 0)
            s->bytes = eti_pack_bytes(ir, s);
        else if (s->op->id == ET_OP_pad && s->out[0] >= 0)
            s->bytes = eti_pad_bytes(ir, s);
        else
            s->bytes = s->op->bytes ? s->op->bytes(&call) : operand_bytes(ir, s);
    }
    return ET_OK;
}

bool
eti_step_runs(const struct eti_step *s)
{
    bool in_place = s->op && s->op->id == ET_OP_pack && s->bytes == 0;
    return s->op && !s->once && !in_place && s->op->id != ET_OP_all_reduce;
}

/* ---- the least time ---- */

/* Where in PEAK the rate called NAME is; NULL: no rate has that name. */
static double *
find_rate(struct et_device_peak *peak, const char *name, size_t length)
{
    if (length == 6 && strncmp(name, "memory", 6) == 0)
        return &peak->bytes;
    if (length == 5 && strncmp(name, "plain", 5) == 0)
        return &peak->plain;
    for (int i = 0; i < ET_DTYPE_COUNT; i++) {
        const char *dtype = et_dtype_name((enum et_dtype)i);
        if (et_dtype_is_float((enum et_dtype)i) && strlen(dtype) == length &&
            strncmp(name, dtype, length) == 0)
            return &peak->product[i];
    }
    return NULL;
}

/* "memory=4.2e12,bf16=790e12": the rates of another machine, or measured ones. What is
 * not named is not known: two machines are not mixed. */
static et_status
read_roofline(struct et_ctx *cx, const char *text, struct et_device_peak *peak)
{
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, ","), name = strcspn(at, "=,");
        double *rate = find_rate(peak, at, name);
        char *end = NULL;
        double value = name < n ? strtod(at + name + 1, &end) : 0;
        if (!rate || !end || end != at + n || !isfinite(value) || value <= 0)
            return ET_FAIL(cx, ET_EINVAL,
                           "ETUDE_ROOFLINE: cannot read '%.*s'; it is one of memory, "
                           "plain, f32, f64, bf16 and f16, '=', and bytes or FLOP per "
                           "second, as in memory=4.2e12,bf16=790e12",
                           (int)n, at);
        *rate = value;
        at += n + (at[n] == ',');
    }
    return ET_OK;
}

et_status
eti_device_peak(struct et_ctx *cx, struct et_device *dev, struct et_device_peak *out)
{
    memset(out, 0, sizeof *out);
    const char *text = getenv("ETUDE_ROOFLINE");
    if (text)
        return read_roofline(cx, text, out);
    if (dev->table->peak)
        dev->table->peak(dev->handle, out);
    return ET_OK;
}

double
eti_least_seconds(const struct et_device_peak *peak, const struct eti_ir *ir,
                  const struct eti_step *s, const char **bound)
{
    bool product = s->op->flags & ET_OPF_PRODUCT && s->n_in > 0 && s->in[0] >= 0;
    enum et_dtype dtype = product ? ir->value[s->in[0]].desc.dtype : ET_NONE;
    double rate = product ? peak->product[dtype] : peak->plain;
    double move = peak->bytes > 0 ? (double)s->bytes / peak->bytes : 0;
    double compute = rate > 0 ? (double)s->flops / rate : 0;
    *bound = "-";
    if (move <= 0 && compute <= 0)
        return 0;
    if (move >= compute)
        *bound = "memory";
    else
        *bound = product ? et_dtype_name(dtype) : "plain";
    return move >= compute ? move : compute;
}
