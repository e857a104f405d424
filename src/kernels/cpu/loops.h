/* SPDX-License-Identifier: Apache-2.0 */
/* loops.h: names of what is compiled once per instruction set.
 *
 * ETK_ISA comes from the compiler's command line. Everything external in a loops file
 * is named through ETK_NAME; everything else in it is static. */
#ifndef ETUDE_KERNELS_CPU_LOOPS_H
#define ETUDE_KERNELS_CPU_LOOPS_H

#include "kernels/cpu/cpu.h"

#define ETK_JOIN_(name, isa) name##_##isa
#define ETK_JOIN(name, isa)  ETK_JOIN_(name, isa)
#define ETK_NAME(name)       ETK_JOIN(name, ETK_ISA)

/* A function whose constant arguments make several loops of one. */
#define INLINE static inline __attribute__((always_inline))

#define ETK_LOOP(op, family) etk_prepare_fn ETK_NAME(etk_prepare_##family);
#include "kernels/cpu/loops.def"
#undef ETK_LOOP

etk_prepare_fn ETK_NAME(etk_prepare_depthwise_weights), ETK_NAME(etk_prepare_winograd);
void ETK_NAME(etk_add_bias)(float *y, const float *bias, int64_t rows, int64_t c);
void ETK_NAME(etk_copy_run)(const struct etk_copy *, void *to, const void *from);

#endif
