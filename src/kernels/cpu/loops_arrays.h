/* SPDX-License-Identifier: Apache-2.0 */
/* loops_arrays.h: all operands and results of a call, in the layout that a loop
 * wants. */
#ifndef ETUDE_KERNELS_CPU_LOOPS_ARRAYS_H
#define ETUDE_KERNELS_CPU_LOOPS_ARRAYS_H

#include <string.h>

#include "kernels/cpu/loops_side.h"

#define ARRAYS_MAX_IN  7
#define ARRAYS_MAX_OUT 4

struct arrays {
    int n_in, n_out;
    struct side in[ARRAYS_MAX_IN], out[ARRAYS_MAX_OUT];
};

/* What a run works on; NULL: left out. */
struct bound {
    const void *in[ARRAYS_MAX_IN];
    void *out[ARRAYS_MAX_OUT];
};

/* Arrays shaped like MODEL lie as it does, all others row-major. */
static inline void
arrays_init(struct arrays *a, const struct et_call *call, const struct et_desc *model,
            size_t *ws)
{
    a->n_in = call->n_in;
    a->n_out = call->n_out;
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        bool result = i >= call->n_in;
        const struct et_desc *have = result ? &call->out[i - call->n_in] : &call->in[i];
        struct et_desc want = row_major(have);
        if (et_desc_same_shape(have, model))
            memcpy(want.stride, model->stride, sizeof want.stride);
        side_init(result ? &a->out[i - call->n_in] : &a->in[i], have, &want, result,
                  ws);
    }
}

static inline struct bound
arrays_bind(const struct arrays *a, void *const *ptr, void *ws)
{
    struct bound b = {.in = {NULL}};
    for (int i = 0; i < a->n_in; i++)
        b.in[i] = side_read(&a->in[i], ptr[i], ws);
    for (int i = 0; i < a->n_out; i++)
        b.out[i] = side_write(&a->out[i], ptr[a->n_in + i], ws);
    return b;
}

static inline void
arrays_flush(const struct arrays *a, void *const *ptr, void *ws)
{
    for (int i = 0; i < a->n_out; i++)
        if (ptr[a->n_in + i])
            side_flush(&a->out[i], ptr[a->n_in + i], ws);
}

/* Operands and results are f32; those at INDEX (-1: none) hold integers. */
ET_NODISCARD static inline et_status
arrays_need_f32(const struct et_call *call, int index, char *why, size_t why_size)
{
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        enum et_dtype dtype =
            i < call->n_in ? call->in[i].dtype : call->out[i - call->n_in].dtype;
        if (dtype != ET_NONE && dtype != ET_F32 && i != index)
            return etk_refuse(why, why_size, "the CPU computes this in f32, not %s",
                              et_dtype_name(dtype));
    }
    return ET_OK;
}

#endif
