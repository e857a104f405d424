/* SPDX-License-Identifier: Apache-2.0 */
/* table.cuh: numbers of a table, which a byte picks, as elements of a batch. */
#ifndef ETUDE_KERNELS_TABLE_CUH
#define ETUDE_KERNELS_TABLE_CUH

#include "kernels/cuda/kernel.cuh"

/* An element of the table as one of the result: itself, or rounded. */
template <class To, class From>
static __device__ __forceinline__ To
etk_element_of(From v)
{
    return etk_down<To>(v);
}
/* clang-format off */
template <> __device__ __forceinline__ uint16_t etk_element_of(uint16_t v) { return v; }
template <> __device__ __forceinline__ uint32_t etk_element_of(uint32_t v) { return v; }
template <> __device__ __forceinline__ uint64_t etk_element_of(uint64_t v) { return v; }
/* clang-format on */

/* NaN; of bits of any float all ones. */
template <class To>
static __device__ __forceinline__ To
etk_nothing()
{
    return (To) ~(To)0;
}
/* clang-format off */
template <> __device__ __forceinline__ etk_bf16 etk_nothing() { return etk_down<etk_bf16>(NAN); }
template <> __device__ __forceinline__ etk_f16 etk_nothing() { return etk_down<etk_f16>(NAN); }
/* clang-format on */

#endif
