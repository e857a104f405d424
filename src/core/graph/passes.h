/* SPDX-License-Identifier: Apache-2.0 */
/* passes.h: what rewrites the steps of a plan, one pass after the other. */
#ifndef ETI_GRAPH_PASSES_H
#define ETI_GRAPH_PASSES_H

#include "core/graph/ir.h"

#define ETI_PASS(name, needs, undoes) void eti_##name(struct eti_ir *ir);
#include "core/graph/passes.def"
#undef ETI_PASS

/* A row of passes.def. */
struct eti_pass {
    const char *name;
    void (*run)(struct eti_ir *ir);
    const char *needs, *undoes; /* names with blanks between them */
};

extern const struct eti_pass eti_passes[];
extern const int eti_n_passes;

/* Runs them all, until memory is out. */
void eti_run_passes(struct eti_ir *ir);

/* The first of the N passes that needs one which has not run before it, or whose work
 * has been undone; N: what follows the passes, which needs the steps sorted; -1: none.
 * NEED: which, in N_NEED bytes. */
int eti_passes_fault(const struct eti_pass *pass, int n, char *need, size_t n_need);

#endif
