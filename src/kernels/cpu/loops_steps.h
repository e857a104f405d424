/* SPDX-License-Identifier: Apache-2.0 */
/* loops_steps.h: one vector loop per element function, for float and for double.
 *
 * The functions are kernels/elements.def's. Loops may write over an operand. */
#ifndef ETUDE_KERNELS_CPU_LOOPS_STEPS_H
#define ETUDE_KERNELS_CPU_LOOPS_STEPS_H

#include "etude/device.h"
#include "kernels/cpu/loops_math.h"

/* N elements; absent operands are any valid pointer. */
typedef void etk_step_fn(int64_t n, void *y, const void *const *x, double a, double b);

#define STEP_BODY(name, type, first, value)                                            \
    static void step_##name##_##type(int64_t n, void *out, const void *const *in,      \
                                     double scalar_a, double scalar_b)                 \
    {                                                                                  \
        typedef type R;                                                                \
        const R *x = in[0], *y = in[1], *z = in[2];                                    \
        R *to = out, A = (R)scalar_a, B = (R)scalar_b;                                 \
        (void)x, (void)y, (void)z, (void)A, (void)B;                                   \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                            \
        {                                                                              \
            R V = first;                                                               \
            (void)V;                                                                   \
            to[i] = value;                                                             \
        }                                                                              \
    }
#define X                                  (x[i])
#define Y                                  (y[i])
#define Z                                  (z[i])
#define ETK_ELEMENT(name, n, first, value) STEP_BODY(name, float, first, value)
#include "kernels/elements.def"
#define ETK_ELEMENT(name, n, first, value) STEP_BODY(name, double, first, value)
#include "kernels/elements.def"
#undef X
#undef Y
#undef Z

/* [op][0] f32, [op][1] f64; NULL where an op is not an element function. */
static etk_step_fn *const etk_steps[ET_OP_COUNT][2] = {
#define ETK_ELEMENT(name, n, first, value)                                             \
    [ET_OP_##name] = {step_##name##_float, step_##name##_double},
#include "kernels/elements.def"
};

#endif
