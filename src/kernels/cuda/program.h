/* SPDX-License-Identifier: Apache-2.0 */
/* program.h: element-wise programs: what single ops and fused chains are prepared as.
 *
 * Register i < n_in is operand i; step k writes register n_in + k. Arithmetic is in
 * f32, or f64 where an operand or result is F64, I32 or I64. */
#ifndef ETUDE_KERNELS_CUDA_PROGRAM_H
#define ETUDE_KERNELS_CUDA_PROGRAM_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ETK_MAX_REG = ET_FUSED_MAX_IN + ET_FUSED_MAX_STEPS };

struct etk_program {
    int n_in, n_out, n_steps;         /* outputs: those that are wanted */
    bool wide;                        /* f64 */
    uint8_t dtype[ETK_SIDES];         /* of the sides: results, then operands */
    uint8_t pointer[ETK_SIDES];       /* which of the call's pointers a side is */
    uint8_t result[ET_FUSED_MAX_OUT]; /* the register that is stored */
    struct et_fused_step step[ET_FUSED_MAX_STEPS];
};

/* How a program walks its arrays. */
struct etk_shape {
    struct etk_walk walk; /* sides as the program's */
    int lanes; /* elements that a thread takes at once, neighbours along the last axis;
                  1 where they do not lie side by side */
};

/* ---- program.c ---- */

/* The program and the walk of an element-wise op, a cast, or a fused chain. ENOTSUP
 * with a sentence where a step is no function of elements. */
ET_NODISCARD et_status etk_program_of(const struct et_call *, struct etk_program *,
                                      struct etk_shape *, char *why, size_t why_size);

/* ---- rtc_source.c ---- */

/* The text of a kernel for a program, which depends on the walk's form and not on its
 * lengths. The caller frees it; NULL when out of memory. */
char *etk_program_source(const struct etk_program *, const struct etk_shape *);
#define ETK_PROGRAM_KERNEL "etude_program"
enum { ETK_PROGRAM_THREADS = 256 };
extern const char etk_elements_text[]; /* elements.cuh and .def; made by make */

/* ---- elementwise.cu ---- */

/* What the interpreter is given. NULL when out of memory; the caller frees it. */
struct etk_interpretation *etk_interpretation_new(const struct etk_program *,
                                                  const struct etk_shape *);
/* PTR: one for each side. */
cudaError_t etk_launch_interpreter(const struct etk_interpretation *, void *const *ptr,
                                   int sm_count, cudaStream_t);

/* What a kernel of etk_program_source is given. NULL when out of memory; the caller
 * frees it. */
struct etk_sides *etk_sides_new(const struct etk_shape *);
cudaError_t etk_launch_program(const void *kernel, const struct etk_sides *,
                               int n_sides, void *const *ptr, int sm_count,
                               cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
