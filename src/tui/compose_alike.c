/* SPDX-License-Identifier: Apache-2.0 */
/* compose_alike.c: the runs of the recipe that is open, told by its file's name, and
 * which of its settings they have otherwise: those come first that differ least. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/library/facts.h"
#include "core/library/list.h"
#include "tui/compose.h"
#include "tui/format.h"

/* The name that the index knows the recipe's runs by; "": it has no file. */
static void
base_name(const struct compose *c, char base[128])
{
    const char *path = c->sketch->path ? c->sketch->path : "";
    const char *slash = strrchr(path, '/');
    snprintf(base, 128, "%.120s", slash ? slash + 1 : path);
    base[strcspn(base, ".")] = '\0';
}

void
compose_find_alike(struct compose *c)
{
    json_t *list;
    char base[128];
    c->looked = tui_now(c->app);
    c->last_run[0] = '\0';
    c->last_microbatches = 0;
    json_decref(c->runs_alike);
    c->runs_alike = NULL;
    c->bought_of = -1;
    base_name(c, base);
    if (!*base)
        return;
    if (compose_list_runs(c, base, &list) != ET_OK) {
        et_error_clear(c->sketch->cx);
        return;
    }
    const json_t *newest = json_array_get(list, 0);
    if (newest) {
        snprintf(c->last_run, sizeof c->last_run, "%.60s",
                 compose_fact(newest, "name"));
        c->last_microbatches =
            json_integer_value(json_object_get(newest, "microbatches"));
    }
    c->runs_alike = json_array_size(list) > 0 ? json_incref(list) : NULL;
    json_decref(list);
}

const json_t *
compose_settings(struct compose *c)
{
    struct et_ctx *cx = c->sketch->cx;
    const struct et_recipe *r = eti_sketch_shown(c->sketch);
    char *text = NULL;
    if (c->settings_of == c->sketch->changes && c->settings)
        return c->settings;
    json_decref(c->settings);
    c->settings = NULL;
    if (r && et_recipe_resolved(cx, r, &text) == ET_OK)
        c->settings = eti_facts_config(cx, text, strlen(text), NULL);
    else
        et_error_clear(cx);
    et_free(cx, text);
    c->settings_of = c->sketch->changes;
    return c->settings;
}

/* ---- the line ---- */

enum { SHOWN = 4, NAMED = 2, LOOKED_AT = 64 }; /* runs; settings of each */

struct one {
    const json_t *facts;
    int n; /* settings that it has otherwise */
    char key[NAMED][ETI_ABLATION_NAME];
};

/* The runs that differ least, of equals the newest, least first. */
static int
choose(const struct compose *c, const json_t *config, struct one out[SHOWN])
{
    int n = 0;
    for (size_t i = 0; i < json_array_size(c->runs_alike) && i < LOOKED_AT; i++) {
        struct one now = {.facts = json_array_get(c->runs_alike, i)};
        now.n = eti_ablation_differences(config, now.facts, now.key, NAMED);
        int at = n;
        while (at > 0 && out[at - 1].n > now.n)
            at--;
        if (at == SHOWN)
            continue;
        n += n < SHOWN;
        memmove(out + at + 1, out + at, (size_t)(n - 1 - at) * sizeof *out);
        out[at] = now;
    }
    return n;
}

/* "max_duration 24ba": what the run has. */
static int
put_setting(const struct one *one, const char *key, char *text, size_t size)
{
    char value[ETI_FACT_TEXT];
    const char *method = strncmp(key, "algorithms.", 11) == 0 ? key + 11 : NULL;
    if (method && !strchr(method, '.')) {
        return snprintf(text, size, "%s %.40s",
                        eti_ablation_has(one->facts, method) ? "with" : "without",
                        method);
    }
    const char *has = eti_facts_get(one->facts, key, value);
    return snprintf(text, size, "%.40s %.20s", key, has ? has : "not set");
}

/* "sober-moose Accuracy .8027 in 9s (max_duration 200ba, 3 more)", from X on; the
 * columns that it takes. */
static int
put_one(const struct tui_pane *p, int y, int x, const struct one *one)
{
    const char *metric;
    char number[TUI_NUMBER], text[128];
    const json_t *entry = eti_run_metric(one->facts, &metric);
    const json_t *best = json_object_get(entry, "best");
    const json_t *value = best ? best : json_object_get(entry, "last");
    const json_t *took = json_object_get(one->facts, "train_seconds");
    const char *leaf = metric ? strrchr(metric, '/') : NULL;
    const int from = x;
    x += tui_putf(p, y, x, TUI_TEXT, "%.30s ", compose_fact(one->facts, "name"));
    if (json_is_number(value))
        x += tui_putf(p, y, x, TUI_STRONG, "%.20s %s", leaf ? leaf + 1 : metric,
                      tui_value(json_number_value(value), number));
    else
        x += tui_put(p, y, x, TUI_DIM, compose_fact(one->facts, "state"));
    if (json_is_number(took))
        x += tui_putf(p, y, x, TUI_TEXT, " in %s",
                      tui_duration(json_number_value(took), number));
    x += tui_put(p, y, x, TUI_DIM, one->n > 0 ? " (" : " (the same settings)");
    for (int i = 0; i < one->n && i < NAMED; i++) {
        put_setting(one, one->key[i], text, sizeof text);
        x += tui_putf(p, y, x, TUI_DIM, "%s%s", i > 0 ? ", " : "", text);
    }
    if (one->n > NAMED)
        x += tui_putf(p, y, x, TUI_DIM, ", %d more", one->n - NAMED);
    return x + (one->n > 0 ? tui_put(p, y, x, TUI_DIM, ")") : 0) - from;
}

void
compose_draw_alike(struct compose *c, const struct tui_pane *p, int y)
{
    enum { APART = 4 };
    struct one runs[SHOWN];
    const int n = choose(c, compose_settings(c), runs);
    if (n == 0)
        tui_put(p, y, 1, TUI_DIM, "no run of a recipe of this name is known");
    for (int i = 0, x = 1; i < n && x < p->w; i++)
        x += put_one(p, y, x, &runs[i]) + APART;
}
