/* SPDX-License-Identifier: Apache-2.0 */
/* recipe_read.c: see recipe_read.h. */
#include "config.h"

#include "t/unit/recipe_read.h"

#include <stdio.h>
#include <string.h>

#include "etude/ctx.h"
#include "t/tap.h"
#include "t/unit/recipe_fakes.h"

struct et_ctx *cx;
struct et_recipe *recipe;
struct et_diagnostics errors;
static struct et_registry registry;

static const char *const allowed[] = {"DATA", "N", "ABSENT", NULL};

void
begin_reading(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    registry = fake_registry();
}

void
end_reading(void)
{
    struct et_alloc_stats stats;
    et_recipe_free(&recipe);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
}

et_status
parse_with(const char *text, const struct et_override *o, int n,
           const char *const *its_variables)
{
    struct et_recipe_env env = {
        .variables = its_variables,
        .allowed = allowed,
        .registry = &registry,
    };
    et_recipe_free(&recipe);
    et_error_clear(cx);
    memset(&errors, 0, sizeof errors);
    return et_recipe_parse(cx, text, strlen(text), "recipe.yaml", o, n, &env, &recipe,
                           &errors);
}

et_status
parse(const char *text)
{
    return parse_with(text, NULL, 0, NULL);
}

const char *
line_of(const char *path)
{
    static char buf[2048];
    char *all;
    size_t n = strlen(path);
    if (!recipe)
        return et_diagnostic_text(&errors.v[0], buf, sizeof buf);
    if (et_recipe_origins(cx, recipe, &all) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    snprintf(buf, sizeof buf, "%s: no such line", path);
    for (char *line = all; *line; line += strcspn(line, "\n") + 1)
        if (strncmp(line, path, n) == 0 && strncmp(line + n, " = ", 3) == 0)
            snprintf(buf, sizeof buf, "%.*s", (int)strcspn(line, "\n"), line);
    et_free(cx, all);
    return buf;
}

void
refuses(const char *text, const char *want)
{
    char got[2048] = "accepted";
    et_status status = parse(text);
    if (errors.n)
        et_diagnostic_text(&errors.v[0], got, sizeof got);
    is_str(got, want, "%.*s", (int)strcspn(want, "\n"), want);
    if (errors.total != 1 || status != ET_EINVAL)
        ok(false, "and nothing else (%d errors, %s)", errors.total,
           et_status_name(status));
}

et_status
load(const char *path)
{
    struct et_recipe_env env = {.registry = &registry};
    et_recipe_free(&recipe);
    et_error_clear(cx);
    memset(&errors, 0, sizeof errors);
    return et_recipe_load(cx, path, NULL, 0, &env, &recipe, &errors);
}

void
put_file(const char *folder, const char *name, const char *text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        bail("cannot write %s", path);
}
