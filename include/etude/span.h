/* SPDX-License-Identifier: Apache-2.0 */
/* span.h: what the thread of a context is busy with, for whoever writes that down.
 *
 * The engine marks events, hooks, waits for data, evaluations of the graph and kernels;
 * a plugin may mark what it likes. Without a tracer a mark costs a look at a
 * pointer. */
#ifndef ETUDE_SPAN_H
#define ETUDE_SPAN_H

#include "etude/ctx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Told of spans as they begin and end, by the thread of the context. */
struct et_tracer {
    /* CATEGORY, NAME and DETAIL (NULL: none) are borrowed for the call. */
    void (*begin)(struct et_tracer *t, const char *category, const char *name,
                  const char *detail);
    /* Ends the innermost open span of that category and name, and with it those inside
     * that nobody ended, as after a failure. Nothing where there is none: it began
     * before the tracer was set. */
    void (*end)(struct et_tracer *t, const char *category, const char *name);
};

/* T: borrowed until another is set; NULL, as at first: nobody is told. */
void et_ctx_set_tracer(struct et_ctx *cx, struct et_tracer *t);
struct et_tracer *et_ctx_tracer(const struct et_ctx *cx);

static inline void
et_span_begin(const struct et_ctx *cx, const char *category, const char *name,
              const char *detail)
{
    struct et_tracer *t = et_ctx_tracer(cx);
    if (t)
        t->begin(t, category, name, detail);
}

static inline void
et_span_end(const struct et_ctx *cx, const char *category, const char *name)
{
    struct et_tracer *t = et_ctx_tracer(cx);
    if (t)
        t->end(t, category, name);
}

#ifdef __cplusplus
}
#endif
#endif
