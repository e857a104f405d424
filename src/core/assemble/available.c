/* SPDX-License-Identifier: Apache-2.0 */
/* available.c: keys of the schema whose function a later version brings.
 *
 * A recipe that sets one of them to anything but its default is refused: nothing is
 * accepted and ignored. */
#include "config.h"

#include <string.h>

#include "core/assemble/assemble.h"
#include "core/recipe/recipe.h"
#include "etude/model.h"

/* Top-level keys that may only have their default, and why. */
static const struct {
    const char *key, *why;
} defaults_only[] = {
    {"parallel", "each rank keeps the whole state, and plans how gradients are summed"},
};

static const struct et_option *
find_row(const char *key)
{
    const struct et_option *row = et_recipe_table;
    while (row->name && strcmp(row->name, key) != 0)
        row++;
    return row;
}

static void
refuse(const struct et_recipe *recipe, const char *key, const char *path,
       const char *why, struct et_diagnostics *errors)
{
    const struct eti_recipe *r = (const struct eti_recipe *)recipe;
    const struct et_value *v = eti_value_get(r->root, key);
    struct et_place at = eti_value_place(v ? v : r->root);
    et_diagnostics_add(errors, ET_E_UNAVAILABLE, &at, path, NULL,
                       "this version does not do that: %s", why);
}

static et_status
differs(struct et_ctx *cx, const struct et_option *row, const void *a, const void *b,
        bool *out)
{
    char *x = NULL, *y = NULL;
    et_status status = et_option_text(cx, row, a, &x);
    if (status == ET_OK)
        status = et_option_text(cx, row, b, &y);
    *out = status == ET_OK && strcmp(x, y) != 0;
    et_free(cx, x);
    et_free(cx, y);
    return status;
}

static et_status
check_defaults(struct et_ctx *cx, const struct et_recipe *recipe,
               const struct et_recipe *plain, struct et_diagnostics *errors)
{
    for (size_t i = 0; i < sizeof defaults_only / sizeof defaults_only[0]; i++) {
        const char *key = defaults_only[i].key;
        bool other;
        ET_TRY(differs(cx, find_row(key), recipe, plain, &other));
        if (other)
            refuse(recipe, key, key, defaults_only[i].why, errors);
    }
    return ET_OK;
}

et_status
eti_recipe_check_available(struct et_ctx *cx, const struct et_recipe *recipe,
                           struct et_diagnostics *errors)
{
    int before = errors->total;
    void *plain;
    ET_TRY(et_alloc(cx, sizeof *recipe, &plain));
    et_status status = et_options_init(cx, et_recipe_table, plain);
    if (status == ET_OK)
        status = check_defaults(cx, recipe, plain, errors);
    et_options_release(et_recipe_table, plain);
    et_free(cx, plain);
    ET_TRY(status);
    if (recipe->tf32 && recipe->device == ET_RUN_CPU)
        refuse(recipe, "tf32", "tf32", "processors have no TF32", errors);
    if (recipe->precision == ET_PRECISION_AMP_FP8)
        refuse(recipe, "precision", "precision", "no device here computes in fp8",
               errors);
    if (recipe->nonfinite.action == ET_NONFINITE_ROLLBACK && recipe->checkpoint.off)
        refuse(recipe, "nonfinite", "nonfinite.action",
               "there is no checkpoint to go back to", errors);
    eti_recipe_check_kinds(recipe, errors);
    if (errors->total == before)
        return ET_OK;
    return ET_FAIL(cx, ET_EINVAL, "%s", errors->v[0].message);
}
