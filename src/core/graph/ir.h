/* SPDX-License-Identifier: Apache-2.0 */
/* ir.h: the intermediate form of a plan: steps on values, which passes rewrite.
 *
 * lower.c makes it of a graph; the passes ask what a step or a value is, join steps,
 * and put them in order; place.c says where values lie, and plan.c makes kernels of the
 * steps. */
#ifndef ETI_GRAPH_IR_H
#define ETI_GRAPH_IR_H

#include "core/base/arena.h"
#include "etude/graph.h"

enum eti_place {
    ETI_IN_SLAB,   /* by liveness */
    ETI_IN_OUTPUT, /* kept for the caller */
    ETI_IN_LEAF,   /* in a leaf's own memory */
    ETI_IN_VALUE,  /* inside another value (pack) */
};

struct eti_value {
    struct et_desc desc;
    int root;       /* value whose memory it is; itself unless a view */
    int64_t offset; /* views: first element, from the root's first */
    int producer;   /* step; -1 for a leaf */
    int leaf;       /* leaf binding; -1 */
    bool wanted;    /* asked for by the caller */
    enum eti_place place;
    int into;            /* ETI_IN_LEAF: binding; ETI_IN_VALUE: value */
    int64_t into_offset; /* ETI_IN_VALUE: elements */
    int first, last;     /* steps between which the memory is needed */
    size_t bytes, at;    /* of the root; offset in slab or output area */
};

struct eti_step {
    const struct et_op *op; /* NULL: removed */
    const void *attr;
    size_t attr_size;
    int n_in, n_out;
    int *in;      /* values; -1 = left out */
    int *out;     /* values; -1 = nobody wants it */
    bool commit;  /* writes a leaf: out[0] is a value that is the leaf */
    uint8_t part; /* enum eti_spent; 0: as the step before it */
    bool once; /* its result never changes: it runs with the plan's first run alone */
    int64_t flops, bytes; /* of one run: cost.c */
    struct et_kernel
        *kernel; /* the plan's, while it is made; NULL: none yet, or none */
};

struct eti_ir {
    struct et_graph *g;
    struct eti_arena *arena;
    struct eti_value *value;
    int n_values;
    int64_t cap_values;
    struct eti_step *step;
    int n_steps;
    int64_t cap_steps;
    struct et_tensor **binding; /* leaves and earlier values the plan reads or writes */
    int n_bindings;
    int64_t cap_bindings;
    uint64_t key[2];
    int n_nodes;
    bool failed;                   /* out of memory while building */
    const struct et_tensor *freed; /* a leaf that it would read or write; or NULL */
    bool
        cyclic; /* steps wait for each other, which only a wrong fusion makes them do */
};

/* ---- building ---- */

int eti_ir_add_value(struct eti_ir *ir, const struct et_desc *desc, int producer);
struct eti_step *eti_ir_add_step(struct eti_ir *ir, const struct et_op *op,
                                 const void *attr, size_t attr_size, int n_in,
                                 int n_out);
/* Gives S room for at least N_IN operands and N_OUT results. Those that are added are
 * left out. */
void eti_ir_widen(struct eti_ir *ir, struct eti_step *s, int n_in, int n_out);

/* ---- what a step or a value is ---- */

bool eti_is_low(enum et_dtype dtype);        /* bf16, f16 */
bool eti_is_f32_or_low(enum et_dtype dtype); /* what registers of f32 can hold */
/* Have A and B the same shape and order in memory, whatever their dtypes are? */
bool eti_same_space(const struct et_desc *a, const struct et_desc *b);
/* Do A and B have the same elements, in the same order? Both may be left out (-1). */
bool eti_ir_same_value(const struct eti_ir *ir, int a, int b);
/* Is STEP's op ID? A removed step has no op. */
bool eti_ir_is(const struct eti_ir *ir, int step, enum et_op_id id);
/* The step that makes VALUE, or what VALUE is a view of; -1 where that is a leaf, or
 * VALUE is left out. */
int eti_ir_producer(const struct eti_ir *ir, int value);
/* The step that makes VALUE as itself (no view), if its op is ID; else -1. */
int eti_ir_made_by(const struct eti_ir *ir, int value, enum et_op_id id);
/* The same where one step alone reads VALUE; else -1. */
int eti_ir_made_alone(const struct eti_ir *ir, const int *uses, int value,
                      enum et_op_id id);
/* For each value the number of steps that read it (through views too), plus one if it
 * is wanted. N_VALUES entries in the arena; NULL on ENOMEM. */
int *eti_ir_count_uses(struct eti_ir *ir);

/* ---- what depends on what ---- */

/* A search from steps back to what they read, and so on. Steps may be before what they
 * read. Some may be going to run as one, and then the one depends on what any of them
 * does. */
struct eti_search {
    const struct eti_ir *ir;
    int *with; /* per step the next of those it runs with, in a ring; alone: itself */
    int *seen; /* per step: the number of the search that was there last */
    int *stack, n;
    int number;
    int first;
};

/* For the steps that IR has now, each alone. False when memory is out: IR has failed.
 */
bool eti_search_new(struct eti_ir *ir, struct eti_search *s);
/* The rings that A and B are in become one. When they are in one ring, it becomes two,
 * which undoes that. */
void eti_search_join(struct eti_search *s, int a, int b);
/* Begins a search for step FIRST, or one that runs with it. */
void eti_search_for(struct eti_search *s, int first);
/* Does LATER depend on it, or is it? Several may be asked, until one does. -1 does not.
 */
bool eti_search_finds(struct eti_search *s, int later);
/* Both in one. */
bool eti_ir_depends(struct eti_search *s, int later, int first);

#endif
