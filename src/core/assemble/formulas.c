/* SPDX-License-Identifier: Apache-2.0 */
/* formulas.c: see formulas.h. A recipe keeps its text: formulas are read there, and
 * what they come to goes into the options as if it had been written. So they may be
 * settled again, for another length. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/assemble/assemble.h"
#include "core/assemble/formulas.h"
#include "core/data/stand_in.h"
#include "core/recipe/recipe.h"

/* ---- what is known ---- */

static double
epochs_of(struct et_time max, const struct et_loader_info *train)
{
    if (max.unit == ET_TIME_EPOCH)
        return max.value;
    if (max.unit == ET_TIME_BATCH && train->batches_per_epoch > 0)
        return max.value / (double)train->batches_per_epoch;
    if (max.unit == ET_TIME_SAMPLE && train->samples_per_epoch > 0)
        return max.value / (double)train->samples_per_epoch;
    return NAN;
}

static double
known(int64_t n)
{
    return n > 0 ? (double)n : NAN;
}

void
eti_placeholders_of(const struct et_recipe *recipe, const struct et_loader *train,
                    const struct et_loader *eval, struct eti_placeholders *out)
{
    struct et_loader_info t = {0}, e = {0};
    if (train)
        et_loader_get_info(train, &t);
    if (eval)
        et_loader_get_info(eval, &e);
    *out = (struct eti_placeholders){
        .epochs = epochs_of(recipe->max_duration, &t),
        .train_batches = known(t.batches_per_epoch),
        .eval_batches = known(e.batches_per_epoch),
    };
}

/* No sample is read, and no thread runs. Release both in any case. */
static et_status
open_headers(struct et_ctx *cx, const struct et_part *part, bool train,
             struct et_dataset **set, struct et_loader **loader)
{
    const struct et_loader_config config = {.train = train};
    struct et_data_options *common = part->options;
    int64_t workers = common->workers;
    common->workers = 0;
    et_status status =
        eti_headers_open(cx, ETI_CLASS(dataset, part->component), common, set);
    if (status == ET_OK)
        status = et_loader_new(cx, *set, &config, loader);
    common->workers = workers;
    return status;
}

et_status
eti_placeholders_measure(struct et_ctx *cx, const struct et_recipe *recipe,
                         struct eti_placeholders *out)
{
    struct et_dataset *set[2] = {NULL, NULL};
    struct et_loader *loader[2] = {NULL, NULL};
    et_status status = ET_OK;
    if (recipe->train_data.component)
        status = open_headers(cx, &recipe->train_data, true, &set[0], &loader[0]);
    if (status == ET_OK && recipe->eval_data.n > 0)
        status = open_headers(cx, &recipe->eval_data.v[0], false, &set[1], &loader[1]);
    if (status == ET_OK)
        eti_placeholders_of(recipe, loader[0], loader[1], out);
    for (int i = 0; i < 2; i++) {
        et_loader_free(&loader[i]);
        et_dataset_close(&set[i]);
    }
    return status;
}

/* ---- every formula ---- */

struct settling {
    struct et_ctx *cx;
    const struct eti_placeholders *p;
    bool all;
    eti_settled_fn *fn;
    void *data;
    bool only_looks; /* nothing is set */
    int n;           /* formulas so far */
};

/* WHAT is wrong with V, which stands at PATH. */
static et_status
fail(const struct settling *s, const struct et_value *v, const char *path,
     const char *what)
{
    char place[256];
    return ET_FAIL(s->cx, ET_EINVAL, "%s: %s: %s",
                   eti_origin_text(v, place, sizeof place), path, what);
}

static bool
is_or_has_formula(const struct et_value *v)
{
    bool has = v && eti_is_formula(v->text);
    for (const struct et_value *one = v ? v->first : NULL; one; one = one->next)
        has |= eti_is_formula(one->text);
    return has;
}

/* V, one value of TYPE, with its formula worked out, appended to TEXT. */
static et_status
add_value(const struct settling *s, const struct et_value *v, enum et_option_type type,
          const char *path, char *text, size_t size, bool *complete)
{
    size_t used = strlen(text);
    struct et_error why = {0};
    bool is_known = true;
    et_status status = ET_OK;
    if (!eti_is_formula(v->text))
        snprintf(text + used, size - used, "%s", v->text ? v->text : "null");
    else
        status = eti_formula_text(v->text, type, s->p, text + used, size - used,
                                  &is_known, &why);
    *complete &= is_known;
    if (status == ET_OK || (!is_known && !s->all))
        return ET_OK;
    return fail(s, v, path, why.message);
}

/* The value of ROW, V, worked out: TEXT. */
static et_status
work_out(const struct settling *s, const struct et_option *row,
         const struct et_value *v, const char *path, char *text, size_t size,
         bool *complete)
{
    bool is_list = row->type == ET_OPT_TIMES || row->type == ET_OPT_FLOATS;
    enum et_option_type type = row->type == ET_OPT_TIME || row->type == ET_OPT_TIMES
                                   ? ET_OPT_TIME
                                   : ET_OPT_FLOAT;
    *complete = true;
    text[0] = '\0';
    if (!is_list || v->type != ET_VALUE_LIST)
        return add_value(s, v, type, path, text, size, complete);
    for (const struct et_value *one = v->first; one; one = one->next) {
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s", used ? ", " : "[");
        ET_TRY(add_value(s, one, type, path, text, size, complete));
    }
    size_t used = strlen(text);
    snprintf(text + used, size - used, "]");
    return ET_OK;
}

static et_status
settle_row(struct settling *s, const struct et_option *row, const struct et_part *part,
           const char *path)
{
    const struct et_value *v = eti_value_get(part->value, row->name);
    const struct et_component *c = part->component;
    char text[1024], at[ETI_PATH_BYTES];
    bool complete;
    if (!is_or_has_formula(v))
        return ET_OK;
    s->n++;
    if (s->only_looks)
        return ET_OK;
    eti_path_join(at, path, row->name);
    ET_TRY(work_out(s, row, v, at, text, sizeof text, &complete));
    if (complete &&
        et_options_set(s->cx, c->options, part->options, row->name, text) != ET_OK) {
        struct et_error why = *et_error_get(s->cx);
        et_error_clear(s->cx);
        if (s->all)
            return fail(s, v, at, why.message);
    }
    const struct eti_settled one = {at, v->text ? v->text : text,
                                    complete ? text : NULL};
    if (s->fn)
        s->fn(s->data, &one);
    return ET_OK;
}

static et_status settle_parts(struct settling *s, const struct et_parts *parts,
                              const char *path);

/* Schedules may have schedules of their own. */
static et_status
settle_part(struct settling *s, const struct et_part *part, const char *path)
{
    char below[ETI_PATH_BYTES];
    const struct et_option *row = part->component ? part->component->options : NULL;
    for (; row && row->name; row++) {
        if (row->type == ET_OPT_PARTS && row->kind == ET_KIND_SCHEDULER)
            ET_TRY(settle_parts(s, eti_option_field(row, part->options),
                                eti_path_join(below, path, row->name)));
        else if (row->type == ET_OPT_TIME || row->type == ET_OPT_TIMES ||
                 row->type == ET_OPT_FLOAT || row->type == ET_OPT_FLOATS)
            ET_TRY(settle_row(s, row, part, path));
    }
    return ET_OK;
}

static et_status
settle_parts(struct settling *s, const struct et_parts *parts, const char *path)
{
    char number[16], below[ETI_PATH_BYTES];
    for (int i = 0; i < parts->n; i++) {
        snprintf(number, sizeof number, "%d", i);
        ET_TRY(settle_part(s, &parts->v[i], eti_path_join(below, path, number)));
    }
    return ET_OK;
}

static et_status
settle_all(struct settling *s, const struct et_recipe *recipe)
{
    const struct et_recipe_optimizer *extra = recipe->optimizer.extra;
    ET_TRY(settle_parts(s, &recipe->scheduler, "scheduler"));
    return extra ? settle_parts(s, &extra->groups, "optimizer.groups") : ET_OK;
}

et_status
eti_formulas_settle(struct et_ctx *cx, const struct et_recipe *recipe,
                    const struct eti_placeholders *p, bool all, eti_settled_fn *fn,
                    void *data)
{
    struct settling s = {.cx = cx, .p = p, .all = all, .fn = fn, .data = data};
    return settle_all(&s, recipe);
}

bool
eti_has_formulas(const struct et_recipe *recipe)
{
    struct settling s = {.only_looks = true};
    return settle_all(&s, recipe) == ET_OK && s.n > 0;
}
