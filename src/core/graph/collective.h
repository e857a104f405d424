/* SPDX-License-Identifier: Apache-2.0 */
/* collective.h: a plan's collectives: begun as soon as may be, waited for when need be.
 *
 * An all_reduce of a plan is begun where its operand is ready, and goes on in the
 * communicator's thread beside the kernels that follow. The plan waits for it before
 * the first item that reads its result, or writes what it still reads; which that is
 * follows from the addresses, once they are known. Collectives end in the order in
 * which they are begun, so that waiting for one is waiting for all before it. */
#ifndef ETI_COLLECTIVE_H
#define ETI_COLLECTIVE_H

#include "etude/comm.h"
#include "etude/graph.h"

/* Bytes [BEGIN, END) of a place that plans know: slab, output, a binding. */
struct eti_extent {
    int base, binding;
    const struct et_storage *storage; /* of a binding */
    size_t begin, end;
};

struct eti_collective {
    struct et_comm_request request; /* but for its addresses */
    struct eti_extent in, out;
    bool running; /* has been begun, and not waited for */
};

struct eti_collectives {
    struct eti_collective *v;
    int n;
    int64_t cap;
    uint32_t set; /* et_comm_mark's; 0: not known yet */
    int waited;   /* planning: the plan waits for those before it already */
};

/* One more, N elements of DTYPE; its index is *OUT. ENOMEM. */
ET_NODISCARD et_status eti_collectives_add(struct et_ctx *cx, struct eti_collectives *c,
                                           int64_t n, enum et_dtype dtype,
                                           const struct eti_extent *in,
                                           const struct eti_extent *out, int *index);
/* et_comm_mark's of an evaluation of G with COUNT collectives of N [] elements f32: for
 * who does them without it. */
uint32_t eti_collectives_set(const struct et_graph *g, const int64_t *n, int count);
/* Planning: an item is to come that touches E, and writes it if WRITES. How many
 * collectives must have ended first; c->waited if all that matter have. */
int eti_collectives_before(const struct eti_collectives *c, const struct eti_extent *e,
                           bool writes);
/* Begins collective INDEX. ADDRESS: of x, weight (NULL: 1) and y. */
ET_NODISCARD et_status eti_collectives_start(struct et_graph *g,
                                             struct eti_collectives *c, int index,
                                             void *const *address);
/* Waits for those before END that are running. */
ET_NODISCARD et_status eti_collectives_wait(struct et_graph *g,
                                            struct eti_collectives *c, int end);

#endif
