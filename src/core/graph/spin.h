/* SPDX-License-Identifier: Apache-2.0 */
/* spin.h: how long OpenMP's threads look for work before they sleep. */
#ifndef ETUDE_CORE_GRAPH_SPIN_H
#define ETUDE_CORE_GRAPH_SPIN_H

struct et_ctx;

/* Tells OpenMP, which must not be loaded yet, unless the user has told it: a time, in
 * turns that take as long as CX's clock finds. */
void eti_spin_set(const struct et_ctx *cx);
/* The turns of that time, where one takes NS nanoseconds. */
long eti_spin_count(double ns);

#endif
