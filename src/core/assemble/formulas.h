/* SPDX-License-Identifier: Apache-2.0 */
/* formulas.h: what the formulas in a recipe's schedules come to (sched/placeholder.h),
 * once it is known how long the run is. */
#ifndef ETI_FORMULAS_H
#define ETI_FORMULAS_H

#include "core/sched/placeholder.h"
#include "etude/data.h"
#include "etude/recipe.h"

/* What RECIPE says of its length, and its loaders do; NULL: not known. */
void eti_placeholders_of(const struct et_recipe *recipe, const struct et_loader *train,
                         const struct et_loader *eval, struct eti_placeholders *out);
/* The same, from the headers of the data, which are opened for it. The data's own
 * statuses. */
ET_NODISCARD et_status eti_placeholders_measure(struct et_ctx *cx,
                                                const struct et_recipe *recipe,
                                                struct eti_placeholders *out);
bool eti_has_formulas(const struct et_recipe *recipe);

/* One option of RECIPE's schedules that has a formula. */
struct eti_settled {
    const char *path;    /* "scheduler.0.t_max" */
    const char *formula; /* as it was written */
    const char *value;   /* "1407ba"; NULL: it cannot be known yet */
};
typedef void eti_settled_fn(void *data, const struct eti_settled *s);
/* Sets the options that have formulas. ALL: one with a placeholder that is not known is
 * an error; else it keeps what it has. EINVAL: the sentence has the place in the text.
 * FN is told of each; NULL: nobody is. */
ET_NODISCARD et_status eti_formulas_settle(struct et_ctx *cx,
                                           const struct et_recipe *recipe,
                                           const struct eti_placeholders *p, bool all,
                                           eti_settled_fn *fn, void *data);

#endif
