/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the recipe reader; see replay.h.
 *
 * Whatever the bytes: no crash, nothing left allocated, and what is accepted resolves
 * to a text that is accepted. */
#include <stdlib.h>
#include <string.h>

#include "etude/ctx.h"
#include "etude/recipe.h"
#include "t/fuzz/replay.h"
#include "t/tap.h"
#include "t/unit/recipe_fakes.h"

static int accepted;

static bool
reads(struct et_ctx *cx, const char *text, size_t size, char **resolved)
{
    static const struct et_override overrides[] = {
        {ET_OVERRIDE_SET, "optimizer.lr=.5"},
        {ET_OVERRIDE_SET, "eval_data.0.label=x"},
        {ET_OVERRIDE_ALG, "cutmix(alpha=.5)"},
        {ET_OVERRIDE_NO_ALG, "ema"},
    };
    struct et_registry registry = fake_registry();
    struct et_recipe_env env = {.registry = &registry};
    struct et_diagnostics errors = {0};
    struct et_recipe *recipe;
    et_status status = et_recipe_parse(cx, text, size, "x.yaml", overrides,
                                       resolved ? 4 : 0, &env, &recipe, &errors);
    if ((status == ET_OK) != (errors.total == 0))
        abort();
    if (status == ET_OK && resolved &&
        et_recipe_resolved(cx, recipe, resolved) != ET_OK)
        abort();
    et_recipe_free(&recipe);
    et_error_clear(cx);
    return status == ET_OK;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct et_ctx *cx;
    char *resolved = NULL;
    if (et_ctx_new(&cx) != ET_OK)
        return 0;
    if (reads(cx, (const char *)data, size, &resolved)) {
        accepted++;
        if (!reads(cx, resolved, strlen(resolved), NULL))
            abort();
    }
    et_free(cx, resolved);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    if (stats.live)
        abort();
    et_ctx_free(&cx);
    return 0;
}

#ifndef ET_FUZZER
int
main(void)
{
    fuzz_replay("recipe-seeds", "[]{}:,-?&*!|>'\"%@`# \n\t\\~<0");
    ok(accepted > 10, "some damaged copies are still recipes (%d)", accepted);
    return done();
}
#endif
