/* SPDX-License-Identifier: Apache-2.0 */
/* onednn.h: how the adapters use oneDNN. Included by adapters only.
 *
 * An adapter's kernel is a short program: copies into the workspace where oneDNN wants
 * another layout, primitives, copies back. Everything is created in prepare; run sets
 * the data pointers that changed and executes the steps, allocating nothing. Building
 * is formulas: the first failure sticks in the program and etk_program_finish reports
 * it. Scratchpads of all steps share one region, because steps follow each other. What
 * differs from one version of oneDNN to the next is in onednn_api.h. */
#ifndef ETUDE_KERNELS_CPU_ONEDNN_H
#define ETUDE_KERNELS_CPU_ONEDNN_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/onednn_api.h"

#define ETK_MEMORIES 16
#define ETK_STEPS    8
/* A convolution with what follows: source, weights, result, scale, shift, residual and
 * the scratchpad. */
#define ETK_ARGS    7
#define ETK_LAYOUTS 16
#define ETK_DESCS   8

/* Where a memory's bytes are: an index into run's ptr, or one of these. */
enum { ETK_WORKSPACE = -1, ETK_SCRATCHPAD = -2 };

struct etk_memory {
    dnnl_memory_t memory; /* NULL: only own loops use it */
    int slot;
    size_t offset; /* bytes into the workspace */
    char *at;      /* the pointer as of the last run */
};

enum etk_loop { ETK_PRIMITIVE, ETK_COPY, ETK_BIAS, ETK_ZERO };

struct etk_step {
    enum etk_loop loop;
    dnnl_primitive_t primitive;
    int n_arg;
    dnnl_exec_arg_t arg[ETK_ARGS];
    int to, from;         /* loops: memories */
    struct etk_copy copy; /* copy */
    int64_t rows, c;      /* bias */
    size_t bytes;         /* zero */
};

struct etk_program {
    struct et_kernel base;
    struct et_device_handle *device;
    et_status status;  /* of the building */
    size_t workspace;  /* bytes, without the scratchpad */
    size_t scratchpad; /* bytes: the largest of the steps */
    int n_memory, n_step;
    struct etk_memory memory[ETK_MEMORIES];
    struct etk_step step[ETK_STEPS];
    int n_layout, n_desc; /* what the building needs: gone when it is finished */
    etk_layout layout[ETK_LAYOUTS];
    dnnl_primitive_desc_t desc[ETK_DESCS];
    char what[256]; /* the implementations, in order */
};

/* Arguments of a primitive: pairs of DNNL_ARG_* and memory, ended by {0}. */
struct etk_arg {
    int arg, memory;
};

/* NULL when out of memory; every function below passes NULL through. */
struct etk_program *etk_program_new(struct et_device_handle *d);
void etk_program_free(struct etk_program *p);
/* Gives the kernel and its workspace; or frees P and says why not. */
ET_NODISCARD et_status etk_program_finish(struct etk_program *p, struct et_kernel **out,
                                          size_t *ws, char *why, size_t why_size);

/* The layout of D as oneDNN writes it: the strides as they are. Or one with D's shape
 * and type that oneDNN is to choose. P keeps it until it is finished. NULL where oneDNN
 * takes no such strides; a descriptor made with it is NULL. */
etk_layout etk_program_layout(struct etk_program *p, const struct et_desc *d);
etk_layout etk_program_layout_any(struct etk_program *p, const struct et_desc *d);

/* Descriptors of primitives, which P keeps until it is finished. NULL when oneDNN has
 * no implementation but its reference one, which is a hundred times too slow. BIAS may
 * be NULL; HINT is a descriptor of the forward pass, for a gradient. */
const_dnnl_primitive_desc_t etk_program_matmul(struct etk_program *p, etk_layout a,
                                               etk_layout b, etk_layout bias,
                                               etk_layout y);
const_dnnl_primitive_desc_t etk_program_conv(struct etk_program *p,
                                             enum etk_conv_pass pass,
                                             const struct etk_conv *c,
                                             const_dnnl_primitive_desc_t hint);
/* Is it convolution by a product of matrices for each image? */
bool etk_desc_is_of_products(const_dnnl_primitive_desc_t pd);
/* One of its layouts, which lives as long as PD; NULL for PD NULL. */
etk_layout etk_desc_layout(const_dnnl_primitive_desc_t pd, dnnl_query_t what);

/* A memory at ptr[SLOT], or a new place in the workspace for ETK_WORKSPACE. */
int etk_program_memory(struct etk_program *p, etk_layout layout, int slot);
/* The operand D at ptr[SLOT] in the layout of DENSE: itself, or a copy made first. */
int etk_program_input(struct etk_program *p, const struct et_desc *d,
                      const struct et_desc *dense, etk_layout layout, int slot);
/* A dense copy of D, which is at FROM, in the layout of DENSE. */
int etk_program_gather(struct etk_program *p, const struct et_desc *d, int from,
                       const struct et_desc *dense, etk_layout layout);
/* The images D at ptr[SLOT], from pixel AT on amid the zeros of FRAME, dense. Only own
 * loops use it. */
int etk_program_frame(struct etk_program *p, const struct et_desc *d,
                      const struct et_desc *frame, const int32_t at[2], int slot);
/* Where to compute the result D in the layout of DENSE; store then moves it to
 * ptr[SLOT], when it was not computed there. */
int etk_program_output(struct etk_program *p, const struct et_desc *d,
                       const struct et_desc *dense, etk_layout layout, int slot);
void etk_program_store(struct etk_program *p, const struct et_desc *d,
                       const struct et_desc *dense, int memory, int slot);

/* NULL fails the program with ENOTSUP: what is built around PD need not ask again. */
void etk_program_require(struct etk_program *p, const_dnnl_primitive_desc_t pd);
/* Appends PD's primitive. */
void etk_program_add(struct etk_program *p, const_dnnl_primitive_desc_t pd,
                     const struct etk_arg *args);
/* FROM in the layout TO: FROM itself when it has it, else a new memory. */
int etk_program_reorder(struct etk_program *p, int from, etk_layout from_layout,
                        etk_layout to_layout);
void etk_program_reorder_into(struct etk_program *p, int from, etk_layout from_layout,
                              int to, etk_layout to_layout);
/* y[i,c] += bias[c] for ROWS dense rows of C channels. */
void etk_program_bias(struct etk_program *p, int y, int bias, int64_t rows, int64_t c);
/* y := 0: a sum over nothing. */
void etk_program_zero(struct etk_program *p, int y, size_t bytes);

/* dnnl_data_type_undef where oneDNN does not compute in DTYPE, or not fast on this
 * CPU. */
dnnl_data_type_t etk_data_type(const struct et_device_handle *d, enum et_dtype dtype);

#endif
