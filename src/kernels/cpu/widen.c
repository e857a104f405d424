/* SPDX-License-Identifier: Apache-2.0 */
/* widen.c: ops on bf16 and f16 where the CPU has no kernel of its own for them.
 *
 *   y = round(op(f32(x0), f32(x1), ...))
 *
 * Every number of the 16-bit formats is one of f32, so operands go through unchanged;
 * sums are those of the f32 kernel, and each result is rounded once, where it is
 * stored: what a device that multiplies in 16 bits and adds in 32 gives. Copies are
 * dense in the axis order of their operand, in the workspace. They cost 6 bytes of
 * traffic an element, which a product hides. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/cpu/cpu.h"

/* One operand or result. */
struct operand {
    struct et_kernel *cast; /* NULL: it is used as it is */
    size_t at;              /* of its copy in the workspace */
};

struct widened {
    struct et_kernel base;
    struct et_kernel *inner; /* on f32 */
    int n_in, n_out;
    size_t rest; /* where the parts' own workspace begins; they follow one another */
    char what[64];
    void **ptr;
    struct operand operand[]; /* n_in + n_out, and behind them PTR's array */
};

static bool
is_low(enum et_dtype dtype)
{
    return dtype == ET_BF16 || dtype == ET_F16;
}

bool
etk_has_low(const struct et_call *call)
{
    bool low = false;
    for (int i = 0; i < call->n_in; i++)
        low |= is_low(call->in[i].dtype);
    for (int i = 0; i < call->n_out; i++)
        low |= is_low(call->out[i].dtype);
    return low;
}

static et_status
cast(struct et_kernel *k, void *from, void *to, char *ws)
{
    return k->run(k, (void *const[]){from, to}, ws);
}

static et_status
run_widened(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    struct widened *k = (struct widened *)kernel;
    char *block = ws, *rest = block + k->rest;
    for (int i = 0; i < k->n_in + k->n_out; i++) {
        const struct operand *o = &k->operand[i];
        bool copied = o->cast && ptr[i];
        k->ptr[i] = copied ? block + o->at : ptr[i];
        if (copied && i < k->n_in)
            ET_TRY(cast(o->cast, ptr[i], k->ptr[i], rest));
    }
    ET_TRY(k->inner->run(k->inner, k->ptr, rest));
    for (int i = k->n_in; i < k->n_in + k->n_out; i++)
        if (k->operand[i].cast && ptr[i])
            ET_TRY(cast(k->operand[i].cast, k->ptr[i], ptr[i], rest));
    return ET_OK;
}

static void
release_widened(struct et_kernel *kernel)
{
    struct widened *k = (struct widened *)kernel;
    for (int i = 0; i < k->n_in + k->n_out; i++)
        etk_release(k->operand[i].cast);
    etk_release(k->inner);
}

/* DESC becomes that of operand I's copy; the kernel that makes the copy, or a result
 * from it. OWN grows to the workspace that needs. */
static et_status
prepare_copy(struct et_device_handle *d, struct widened *k, int i, struct et_desc *desc,
             size_t *own, char *why, size_t why_size)
{
    bool result = i >= k->n_in;
    const struct et_desc given = *desc;
    size_t ws;
    if (!is_low(given.dtype))
        return ET_OK;
    et_desc_like(desc, ET_F32, given.ndim, given.shape, &given);
    const struct et_cast_attr attr = {.dtype = result ? (int32_t)given.dtype : ET_F32};
    const struct et_call call = {
        .op = ET_OP_cast,
        .n_in = 1,
        .n_out = 1,
        .attr = &attr,
        .attr_size = sizeof attr,
        .in = result ? desc : &given,
        .out = result ? &given : desc,
    };
    ET_TRY(etk_prepare(d, &call, &k->operand[i].cast, &ws, why, why_size));
    k->operand[i].at = k->rest;
    k->rest += etk_round_up(et_desc_bytes(desc));
    *own = ws > *own ? ws : *own;
    return ET_OK;
}

static et_status
prepare_parts(struct et_device_handle *d, struct widened *k, const struct et_call *call,
              struct et_desc *desc, size_t *ws, char *why, size_t why_size)
{
    size_t own = 0, inner;
    for (int i = 0; i < k->n_in + k->n_out; i++) {
        desc[i] = i < k->n_in ? call->in[i] : call->out[i - k->n_in];
        ET_TRY(prepare_copy(d, k, i, &desc[i], &own, why, why_size));
    }
    struct et_call wide = *call;
    wide.in = desc;
    wide.out = desc + k->n_in;
    ET_TRY(etk_prepare(d, &wide, &k->inner, &inner, why, why_size));
    *ws = k->rest + (inner > own ? inner : own);
    snprintf(k->what, sizeof k->what, "f32 %s", k->inner->what);
    return ET_OK;
}

et_status
etk_prepare_widened(struct et_device_handle *d, const struct et_call *call,
                    struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    size_t n = (size_t)(call->n_in + call->n_out);
    struct widened *k =
        etk_new(sizeof *k + n * (sizeof k->operand[0] + sizeof k->ptr[0]));
    struct et_desc *desc = etk_new(n * sizeof *desc);
    et_status status = ET_ENOMEM;
    if (k && desc) {
        k->n_in = call->n_in;
        k->n_out = call->n_out;
        k->ptr = (void **)&k->operand[n];
        k->base.run = run_widened;
        k->base.release = release_widened;
        k->base.what = k->what;
        status = prepare_parts(d, k, call, desc, ws, why, why_size);
    }
    free(desc);
    if (status == ET_OK)
        *out = &k->base;
    else
        etk_release((struct et_kernel *)k);
    return status;
}
