/* SPDX-License-Identifier: Apache-2.0 */
/* passes.c: see passes.h.
 *
 * Source: MosaicML Composer, composer/core/engine.py and core/passes.py
 * (spec/trainer.md 2.3). Differs: a pass says behind which other it comes, where
 * Composer's has an index; what it may do to the list is checked. */
#include "config.h"

#include <string.h>

#include "core/base/need.h"
#include "core/trainer/passes.h"
#include "etude/algorithm.h"
#include "etude/trainer.h"

/* ---- the built-in ones ---- */

static void
reverse(struct et_algorithm **list, int n, enum et_event event)
{
    if (!et_event_is_reversed(event))
        return;
    for (int i = 0; i < n / 2; i++) {
        struct et_algorithm *a = list[i];
        list[i] = list[n - 1 - i];
        list[n - 1 - i] = a;
    }
}

/* Where an algorithm belongs at EVENT: lower runs earlier, equals keep their order. */
static int
rank(const struct et_algorithm *a, enum et_event event)
{
    unsigned flags = a->type->flags;
    if (flags & ET_ALG_FIRST)
        return -1;
    if (event == ET_EVENT_INIT && (flags & ET_ALG_INIT_LAST))
        return 3;
    if (event == ET_EVENT_INIT && (flags & ET_ALG_INIT_AFTER_SURGERY))
        return 2;
    return flags & ET_ALG_LAST ? 1 : 0;
}

static void
sort(struct et_algorithm **list, int n, enum et_event event)
{
    for (int i = 1; i < n; i++) {
        struct et_algorithm *a = list[i];
        int at = i;
        for (; at > 0 && rank(list[at - 1], event) > rank(a, event); at--)
            list[at] = list[at - 1];
        list[at] = a;
    }
}

static const struct et_pass built_in[] = {
    {.name = "reverse",
     .summary = "on AFTER_ events the last is first",
     .run = reverse},
    {.name = "sort", .summary = "by what each says of its place", .run = sort},
};
enum { BUILT_IN = sizeof built_in / sizeof *built_in };

void
et_engine_order(struct et_algorithm **list, int n, enum et_event event)
{
    for (int i = 0; i < BUILT_IN; i++)
        built_in[i].run(list, n, event);
}

/* ---- those of others ---- */

static int
find(const struct et_pass *const *list, int n, const char *name)
{
    int i = 0;
    while (i < n && strcmp(list[i]->name, name) != 0)
        i++;
    return i;
}

/* Where P goes among the N of LIST. */
static et_status
find_place(struct et_ctx *cx, const struct et_pass *const *list, int n,
           const struct et_pass *p, int *out)
{
    *out = p->after ? 0 : n;
    if (!p->after || !p->after[0])
        return ET_OK;
    int at = find(list, n, p->after);
    if (at == n)
        return ET_FAIL(cx, ET_EINVAL,
                       "pass '%s' comes behind '%s', and no pass is called that",
                       p->name, p->after);
    do
        at++;
    while (at < n && list[at]->after && strcmp(list[at]->after, p->after) == 0);
    *out = at;
    return ET_OK;
}

static et_status
check(struct et_ctx *cx, const struct et_pass *const *list, int n,
      const struct et_pass *p)
{
    if (!p || !p->name || !p->name[0] || !p->run)
        return ET_FAIL(cx, ET_EINVAL, "a pass has no name or no function");
    if (n == ETI_MAX_PASSES)
        return ET_FAIL(cx, ET_EINVAL, "more than %d passes", ETI_MAX_PASSES - BUILT_IN);
    if (find(list, n, p->name) < n)
        return ET_FAIL(cx, ET_EINVAL, "two passes are called '%s'", p->name);
    return ET_OK;
}

et_status
eti_passes_place(struct et_ctx *cx, const struct et_pass *const *passes, int n,
                 const struct et_pass *out[ETI_MAX_PASSES], int *n_out)
{
    int have = 0, at;
    for (; have < BUILT_IN; have++)
        out[have] = &built_in[have];
    for (int i = 0; i < n; i++) {
        ET_TRY(check(cx, out, have, passes[i]));
        ET_TRY(find_place(cx, out, have, passes[i], &at));
        memmove(&out[at + 1], &out[at], (size_t)(have - at) * sizeof *out);
        out[at] = passes[i];
        have++;
    }
    *n_out = have;
    return ET_OK;
}

/* LIST has the algorithms of BEFORE, each as often, in any order. */
static bool
is_permutation(struct et_algorithm *const *list, struct et_algorithm *const *before,
               int n)
{
    bool taken[ET_MAX_ALGORITHMS] = {false};
    for (int i = 0; i < n; i++) {
        int k = 0;
        while (k < n && (taken[k] || before[k] != list[i]))
            k++;
        if (k == n)
            return false;
        taken[k] = true;
    }
    return true;
}

et_status
eti_passes_run(struct et_ctx *cx, const struct et_pass *const *passes, int n,
               struct et_algorithm **list, int n_list, enum et_event event)
{
    struct et_algorithm *before[ET_MAX_ALGORITHMS];
    if (n == 0)
        et_engine_order(list, n_list, event);
    for (int i = 0; i < n && n_list > 0; i++) {
        memcpy(before, list, (size_t)n_list * sizeof *list);
        passes[i]->run(list, n_list, event);
        if (!is_permutation(list, before, n_list))
            return ET_FAIL(cx, ET_EINVAL,
                           "pass '%s' has dropped an algorithm or added one at %s: it "
                           "may only change their order",
                           passes[i]->name, et_event_name(event));
    }
    return ET_OK;
}

et_status
et_engine_order_with(struct et_ctx *cx, const struct et_pass *const *passes,
                     int n_passes, struct et_algorithm **list, int n,
                     enum et_event event)
{
    const struct et_pass *order[ETI_MAX_PASSES];
    int n_order;
    ETI_NEED(cx, cx);
    if (n_passes > 0)
        ETI_NEED(cx, passes);
    if (n > 0)
        ETI_NEED(cx, list);
    if (n > ET_MAX_ALGORITHMS)
        return ET_FAIL(cx, ET_EINVAL, "%d algorithms, at most %d are possible", n,
                       ET_MAX_ALGORITHMS);
    ET_TRY(eti_passes_place(cx, passes, n_passes, order, &n_order));
    return eti_passes_run(cx, order, n_order, list, n, event);
}
