/* SPDX-License-Identifier: Apache-2.0 */
/* inputs.h: the leaves that a plan reads, and where its kernels find them (private to
 * src/core/graph).
 *
 * A recording (capture.h) holds addresses, so it can be replayed only while every leaf
 * lies where it lay. Batches do not: a loader hands out each from another place. Such a
 * leaf is copied to memory of the plan before each run, and the recording reads it
 * there. (Another leaf of the same storage may be written meanwhile: a plan writes
 * leaves after the last read of what they held.) On a device without recordings nothing
 * is copied. */
#ifndef ETI_GRAPH_INPUTS_H
#define ETI_GRAPH_INPUTS_H

#include "core/graph/graph_impl.h"

struct eti_input {
    void *leaf;        /* where the leaf's first element lies at this run */
    size_t begin, end; /* bytes of the leaf that kernels read or write; both 0: none */
    bool written;      /* kernels write it: never copied */
    int moves;  /* runs in a row that found the leaf elsewhere than the run before */
    char *copy; /* memory of the plan for these bytes; NULL: read in place */
};

struct eti_inputs {
    struct eti_input *v; /* one for each binding of the plan */
    int n;
    size_t copied_bytes; /* at every run */
    bool refused;        /* there was no memory for a copy: none is tried again */
};

ET_NODISCARD et_status eti_inputs_new(struct et_ctx *cx, int n, struct eti_inputs *in);
void eti_inputs_free(struct et_graph *g, struct eti_inputs *in);

/* A kernel of the plan reads, or WRITES, bytes [BEGIN, END) of binding I. */
void eti_inputs_note(struct eti_inputs *in, int i, size_t begin, size_t end,
                     bool writes);

/* Looks where the leaves of IR lie now. True: an address that kernels use has
 * changed. */
bool eti_inputs_look(struct eti_inputs *in, const struct eti_ir *ir);
/* The address that kernels find byte OFFSET of binding I at. */
void *eti_input_address(const struct eti_inputs *in, int i, size_t offset);
/* Gives copies to the leaves that lie elsewhere at every run, in a plan of KERNELS
 * kernels. True: kernels' addresses have changed, and are now the same at each run. */
bool eti_inputs_settle(struct et_graph *g, struct eti_inputs *in, int64_t kernels);
/* Queues the copies, ahead of the plan's kernels. */
ET_NODISCARD et_status eti_inputs_copy(struct et_graph *g, const struct eti_inputs *in);

#endif
