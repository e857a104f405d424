/* SPDX-License-Identifier: Apache-2.0 */
/* elementwise.c: preparing ops on single elements, and fused chains of them.
 *
 * A single op is a program of one step, a cast one of none. The program is compiled for
 * its form (dtypes, steps, which strides are 0 or 1) and the device, once per process
 * and kept on disk (rtc.c). The interpreter takes what cannot be compiled, and arrays
 * that begin off the 16 bytes that a compiled program loads at once. */
#include "kernels/cuda/program.h"
#include "kernels/cuda/rtc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct element_kernel {
    struct et_kernel base;
    int n_sides;
    uint8_t pointer[ETK_SIDES];  /* of the call, for each side */
    unsigned aligned[ETK_SIDES]; /* what a side's address must be a multiple of */
    int sm_count;
    const void *compiled; /* of d->rtc; NULL: interpreted */
    struct etk_sides *sides;
    struct etk_interpretation *interpretation;
};

static et_status
run_elements(struct et_kernel *base, void *const *ptr, void *ws, cudaStream_t stream)
{
    struct element_kernel *k = (struct element_kernel *)base;
    void *side[ETK_SIDES];
    bool compiled = k->compiled != NULL;
    (void)ws;
    for (int i = 0; i < k->n_sides; i++) {
        side[i] = ptr[k->pointer[i]];
        compiled = compiled && (uintptr_t)side[i] % k->aligned[i] == 0;
    }
    return etk_launched(base,
                        compiled ? etk_launch_program(k->compiled, k->sides, k->n_sides,
                                                      side, k->sm_count, stream)
                                 : etk_launch_interpreter(k->interpretation, side,
                                                          k->sm_count, stream));
}

static void
release_elements(struct et_kernel *base)
{
    struct element_kernel *k = (struct element_kernel *)base;
    free(k->sides);
    free(k->interpretation);
}

/* Compiles the program where that can be done. */
static et_status
compile(struct et_device_handle *d, struct element_kernel *k,
        const struct etk_program *p, const struct etk_shape *shape)
{
    int last = shape->walk.ndim - 1;
    if (!etk_rtc_is_on(d))
        return ET_OK;
    char *source = etk_program_source(p, shape);
    k->sides = etk_sides_new(shape);
    et_status status = source && k->sides ? ET_OK : ET_ENOMEM;
    if (status == ET_OK)
        status = etk_rtc_get(d, source, ETK_PROGRAM_KERNEL, &k->compiled);
    free(source);
    for (int i = 0; i < k->n_sides; i++) {
        size_t size = et_dtype_size((enum et_dtype)p->dtype[i]);
        size_t lot =
            shape->walk.stride[i][last] == 1 ? size * (size_t)shape->lanes : size;
        k->aligned[i] = (unsigned)(lot < 16 ? lot : 16);
    }
    return status == ET_ENOTSUP ? ET_OK : status;
}

et_status
etk_prepare_elementwise(struct et_device_handle *d, const struct et_call *call,
                        struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    struct etk_program p;
    struct etk_shape shape;
    if (call->op == ET_OP_cast && call->in[0].dtype == call->out[0].dtype)
        return etk_prepare_copy(d, call, out, ws, why,
                                why_size); /* all bits of an I64 */
    ET_TRY(etk_program_of(call, &p, &shape, why, why_size));
    struct element_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    k->n_sides = p.n_in + p.n_out;
    memcpy(k->pointer, p.pointer, sizeof k->pointer);
    k->sm_count = d->gpu.sm_count;
    k->base.run = run_elements;
    k->base.release = release_elements;
    k->interpretation = etk_interpretation_new(&p, &shape);
    et_status status = k->interpretation ? compile(d, k, &p, &shape) : ET_ENOMEM;
    if (status != ET_OK) {
        etk_release(&k->base);
        return status;
    }
    const char *what = call->op == ET_OP_fused  ? "fused"
                       : call->op == ET_OP_cast ? "cast"
                                                : "elementwise";
    if (k->compiled)
        snprintf(k->base.what, sizeof k->base.what, "%s x%d", what, shape.lanes);
    else
        snprintf(k->base.what, sizeof k->base.what, "%s, interpreted", what);
    *out = &k->base;
    return ET_OK;
}
