/* native.h: whether products of bf16 are computed in bf16 on this processor, or on
 * copies in f32 (widen.c): whichever is faster. */
#ifndef ETUDE_KERNELS_CPU_NATIVE_H
#define ETUDE_KERNELS_CPU_NATIVE_H

#include "kernels/cpu/cpu.h"

/* Finds out, once in a process: before the first kernel is prepared on D. */
void etk_native_open(struct et_device_handle *d);
/* What was found; false before. */
bool etk_native_bf16(void);

#endif
