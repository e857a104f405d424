/* SPDX-License-Identifier: Apache-2.0 */
/* native.h: whether products of bf16 are computed in bf16 on this processor, or on
 * copies in f32 (widen.c): whichever is faster. */
#ifndef ETUDE_KERNELS_CPU_NATIVE_H
#define ETUDE_KERNELS_CPU_NATIVE_H

#include "kernels/cpu/cpu.h"

/* Is bf16 the faster? Measured on D, which sets D's native_bf16 as it goes, or known
 * from an earlier process. */
bool etk_is_native_bf16(struct et_device_handle *d);

#endif
