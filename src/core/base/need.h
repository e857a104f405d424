/* SPDX-License-Identifier: Apache-2.0 */
/* need.h: pointers that a public function cannot do without (etude/status.h). */
#ifndef ETI_NEED_H
#define ETI_NEED_H

#include "etude/status.h"

struct et_graph;

/* EINVAL, "et_graph_new: dev is NULL", in CX, which may be NULL. NAMES: "cx, dev", of
 * which number I, from 0, is missing. */
ET_NODISCARD et_status eti_null(struct et_ctx *cx, const char *call, const char *names,
                                int i);
/* The same, which sticks to G. */
struct et_tensor *eti_graph_null(struct et_graph *g, const char *call,
                                 const char *names, int i);

/* Ends the function with FAILED(WHERE, ...) unless all of the pointers are there. */
#define ETI_NEED_OR(failed, where, ...)                                                \
    do {                                                                               \
        const void *const need_[] = {__VA_ARGS__};                                     \
        for (int i_ = 0; i_ < (int)(sizeof need_ / sizeof *need_); i_++)               \
            if (!need_[i_])                                                            \
                return failed((where), __func__, #__VA_ARGS__, i_);                    \
    } while (0)

/* For a function that returns a status; CX may be NULL. */
#define ETI_NEED(cx, ...) ETI_NEED_OR(eti_null, cx, __VA_ARGS__)
/* For one that appends to the graph G, which may be NULL. */
#define ETI_NEED_IN(g, ...) ETI_NEED_OR(eti_graph_null, g, __VA_ARGS__)

#endif
