/* onednn.h: how the adapters use oneDNN. Included by adapters only.
 *
 * An adapter's kernel is a short program: copies into the workspace where oneDNN wants
 * another layout, primitives, copies back. Everything is created in prepare; run sets
 * the data pointers that changed and executes the steps, allocating nothing. Building
 * is formulas: the first failure sticks in the program and etk_program_finish reports
 * it. Scratchpads of all steps share one region, because steps follow each other. */
#ifndef ETUDE_KERNELS_CPU_ONEDNN_H
#define ETUDE_KERNELS_CPU_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>

#include "kernels/cpu/cpu.h"

#define ETK_MEMORIES 16
#define ETK_STEPS    8
#define ETK_ARGS     6

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
et_status etk_program_finish(struct etk_program *p, struct et_kernel **out, size_t *ws,
                             char *why, size_t why_size);

/* A memory at ptr[SLOT], or a new place in the workspace for ETK_WORKSPACE. */
int etk_program_memory(struct etk_program *p, const dnnl_memory_desc_t *md, int slot);
/* The operand D at ptr[SLOT] in the layout of DENSE: itself, or a copy made first. */
int etk_program_input(struct etk_program *p, const struct et_desc *d,
                      const struct et_desc *dense, const dnnl_memory_desc_t *md,
                      int slot);
/* Where to compute the result D in the layout of DENSE; store then moves it to
 * ptr[SLOT], when it was not computed there. */
int etk_program_output(struct etk_program *p, const struct et_desc *d,
                       const struct et_desc *dense, const dnnl_memory_desc_t *md,
                       int slot);
void etk_program_store(struct etk_program *p, const struct et_desc *d,
                       const struct et_desc *dense, int memory, int slot);

/* NULL fails the program with ENOTSUP: what is built around PD need not ask again. */
void etk_program_require(struct etk_program *p, const_dnnl_primitive_desc_t pd);
/* Appends PD's primitive and lets go of PD. */
void etk_program_add(struct etk_program *p, dnnl_primitive_desc_t pd,
                     const struct etk_arg *args);
/* FROM in the layout TO: FROM itself when it has it, else a new memory. */
int etk_program_reorder(struct etk_program *p, int from,
                        const dnnl_memory_desc_t *from_md,
                        const dnnl_memory_desc_t *to_md);
void etk_program_reorder_into(struct etk_program *p, int from,
                              const dnnl_memory_desc_t *from_md, int to,
                              const dnnl_memory_desc_t *to_md);
/* y[i,c] += bias[c] for ROWS dense rows of C channels. */
void etk_program_bias(struct etk_program *p, int y, int bias, int64_t rows, int64_t c);
/* y := 0: a sum over nothing. */
void etk_program_zero(struct etk_program *p, int y, size_t bytes);

/* A primitive descriptor with the scratchpad in our hands. NULL when oneDNN has no
 * implementation but its reference one, which is a hundred times too slow. */
dnnl_primitive_desc_t etk_primitive_desc(struct et_device_handle *d,
                                         const_dnnl_op_desc_t op,
                                         const_dnnl_primitive_desc_t hint);
/* One of its layouts; zeroed for PD NULL. */
dnnl_memory_desc_t etk_primitive_md(const_dnnl_primitive_desc_t pd, dnnl_query_t what);

/* dnnl_data_type_undef where oneDNN does not compute in DTYPE fast on this CPU. */
dnnl_data_type_t etk_data_type(enum et_dtype dtype);
/* The layout of D as oneDNN writes it: the strides as they are. */
dnnl_memory_desc_t etk_memory_desc(const struct et_desc *d);

#endif
