/* SPDX-License-Identifier: Apache-2.0 */
/* freeze.c: which parts of a model are trained. See module.h. */
#include "etude/module.h"
#include "etude/nn.h"
#include "core/base/need.h"

static int
count_children(struct et_module *m)
{
    int n = 0;
    while (et_module_child(m, n, NULL))
        n++;
    return n;
}

static et_status
place(struct et_ctx *cx, int wanted, int n, int *out)
{
    *out = wanted < 0 ? n + wanted : wanted;
    if (*out >= 0 && *out < n)
        return ET_OK;
    return ET_FAIL(cx, ET_EINVAL, "there is no child %d: the module has %d", wanted, n);
}

/* The parameters below M. */
static et_status
mark(struct et_ctx *cx, struct et_module *m, bool trained, bool batch_norms, int *n)
{
    struct et_leaves l;
    ET_TRY(et_module_leaves(cx, m, ET_PARAM, &l));
    for (int i = 0; i < l.n; i++) {
        bool spared = !batch_norms && et_module_is(l.v[i].module, &et_batch_norm_class);
        if (spared || l.v[i].param->requires_grad == trained)
            continue;
        l.v[i].param->requires_grad = trained;
        ++*n;
    }
    et_leaves_release(&l);
    return ET_OK;
}

static et_status
set(struct et_ctx *cx, struct et_module *m, const struct et_module_range *r,
    bool trained, int *n)
{
    int from, to, changed = 0, count = count_children(m);
    ET_TRY(place(cx, r->from, count, &from));
    ET_TRY(place(cx, r->to, count, &to));
    int step = from <= to ? 1 : -1;
    for (int i = from; i != to + step; i += step) {
        struct et_module *child = *et_module_child(m, i, NULL);
        if (!child)
            continue;
        ET_TRY(mark(cx, child, trained, trained || r->batch_norms, &changed));
        if (r->as_eval)
            child->as_eval = !trained;
    }
    if (n)
        *n = changed;
    return ET_OK;
}

et_status
et_module_freeze(struct et_ctx *cx, struct et_module *m,
                 const struct et_module_range *range, int *n)
{
    ETI_NEED(cx, m, range);
    return set(cx, m, range, false, n);
}

et_status
et_module_unfreeze(struct et_ctx *cx, struct et_module *m,
                   const struct et_module_range *range, int *n)
{
    ETI_NEED(cx, m, range);
    return set(cx, m, range, true, n);
}
