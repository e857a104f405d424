/* SPDX-License-Identifier: Apache-2.0 */
/* earlier.c: see earlier.h. */
#include "config.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/callbacks/callbacks.h"
#include "core/library/earlier.h"
#include "core/library/index.h"
#include "core/library/state.h"

const char *
eti_facts_main_metric(const json_t *facts)
{
    const char *name, *first = NULL;
    json_t *metrics = json_object_get(facts, "metrics"), *v;
    json_object_foreach(metrics, name, v)
    {
        if (strncmp(name, "metrics/", 8) != 0 ||
            strncmp(name, "metrics/train/", 14) == 0 ||
            !json_is_number(json_object_get(v, "best")))
            continue;
        if (strstr(name, "Accuracy"))
            return name;
        first = first ? first : name;
    }
    return first;
}

double
eti_facts_best(const json_t *facts, const char *metric)
{
    const json_t *m = json_object_get(json_object_get(facts, "metrics"), metric);
    const json_t *best = json_object_get(m, "best");
    return json_is_number(best) ? json_number_value(best) : NAN;
}

json_t *
eti_earlier_list(struct et_ctx *cx, const json_t *facts)
{
    char folder[PATH_MAX];
    struct eti_index *index = NULL;
    json_t *others = NULL;
    const char *recipe = json_string_value(json_object_get(facts, "recipe"));
    const char *own = json_string_value(json_object_get(facts, "directory"));
    const char *slash = own ? strrchr(own, '/') : NULL;
    if (!recipe || !slash || slash == own)
        return NULL;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - own), own);
    if (eti_index_open(cx, NULL, &index) != ET_OK ||
        eti_index_look(index, folder, false) != ET_OK ||
        eti_index_of_recipe(index, recipe, ETI_INDEX_PAGE, &others) != ET_OK)
        et_error_clear(cx); /* the end is told without those before it */
    eti_index_close(&index);
    return others;
}

void
eti_earlier_find(const json_t *list, const json_t *facts, const char *metric,
                 struct eti_earlier *out)
{
    const char *own = json_string_value(json_object_get(facts, "directory"));
    const double started = json_number_value(json_object_get(facts, "started"));
    *out = (struct eti_earlier){.best = NAN};
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const char *where = json_string_value(json_object_get(one, "directory"));
        const char *state = json_string_value(json_object_get(one, "state"));
        metric = metric ? metric : eti_facts_main_metric(one);
        const double theirs = metric ? eti_facts_best(one, metric) : NAN;
        if (!where || (own && strcmp(where, own) == 0) || isnan(theirs) ||
            !(json_number_value(json_object_get(one, "started")) <= started) ||
            eti_state_kind_of(state) != ETI_STATE_DONE)
            continue;
        out->n++;
        if (out->facts &&
            (eti_less_is_better(metric) ? theirs >= out->best : theirs <= out->best))
            continue;
        out->best = theirs;
        out->facts = one;
        snprintf(out->metric, sizeof out->metric, "%s", metric);
    }
}
