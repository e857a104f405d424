/* SPDX-License-Identifier: Apache-2.0 */
/* spent.h: how long the parts of a training step take.
 *
 * Each node remembers the part in which it was built, and so does the kernel that
 * becomes of it. While a plan runs a clock is read where kernels of one part follow
 * those of another. On a device with streams, where a kernel has only been launched
 * when the next one is, nothing is told. */
#ifndef ETI_GRAPH_SPENT_H
#define ETI_GRAPH_SPENT_H

#include "etude/graph.h"

enum eti_spent {
    ETI_SPENT_NONE, /* in what nobody asks for */
    ETI_SPENT_FORWARD,
    ETI_SPENT_BACKWARD,
    ETI_SPENT_UPDATE,
    ETI_SPENTS
};

/* Nodes that are built from now on are of PART. */
void eti_graph_set_part(struct et_graph *g, enum eti_spent part);
/* Seconds since the graph was made that kernels of PART took; 0: not told. */
double eti_graph_spent(const struct et_graph *g, enum eti_spent part);

#endif
