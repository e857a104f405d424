/* SPDX-License-Identifier: Apache-2.0 */
/* order.cuh: floats as integers that compare as they do. */
#ifndef ETUDE_KERNELS_ORDER_CUH
#define ETUDE_KERNELS_ORDER_CUH

#include "kernels/cuda/kernel.cuh"

/* NaN is above all, and -0 is 0. */
static __device__ __forceinline__ uint32_t
etk_order_of(float v)
{
    uint32_t bits = __float_as_uint(v + 0.0f);
    return v != v ? 0xffffffffu : bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}

#endif
