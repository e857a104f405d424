/* SPDX-License-Identifier: Apache-2.0 */
/* check.c: what the tables cannot say of a recipe: values that must fit each other. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/need.h"
#include "core/recipe/options.h"
#include "core/recipe/recipe.h"
#include "etude/data.h"
#include "etude/run.h"

/* Where KEY of MAP was given, else MAP itself. */
static struct et_place
place_of(const struct et_value *map, const char *key)
{
    const struct et_value *v = eti_value_get(map, key);
    return eti_value_place(v ? v : map);
}

static struct et_data_options *
data_options(const struct et_part *part)
{
    return part->component ? part->options : NULL;
}

static void
check_microbatches(const struct eti_recipe *r, struct et_diagnostics *errors)
{
    const struct et_recipe *x = &r->recipe;
    if (x->microbatch_size == ET_INT_UNSET || x->grad_accum == ET_INT_UNSET)
        return;
    struct et_place at = place_of(r->root, "microbatch_size");
    et_diagnostics_add(errors, ET_E_CONFLICT, &at, "microbatch_size",
                       "leave one of the two out",
                       "microbatch_size %lld excludes grad_accum %lld",
                       (long long)x->microbatch_size, (long long)x->grad_accum);
}

/* There is data, its batch size is known; eval_data takes train_data's. */
static void
check_data(struct eti_recipe *r, struct et_diagnostics *errors)
{
    struct et_recipe *x = &r->recipe;
    struct et_place at = eti_value_place(r->root);
    if (!eti_value_get(r->root, "train_data") && !eti_value_get(r->root, "eval_data"))
        et_diagnostics_add(errors, ET_E_MISSING, &at, NULL, NULL,
                           "key 'train_data' is missing");
    struct et_data_options *train = data_options(&x->train_data);
    const struct et_value *given =
        eti_value_get(eti_value_get(r->root, "train_data"), "batch_size");
    /* (One that will not do has been refused.) */
    const bool is_given = given && given->type != ET_VALUE_NULL;
    if (train && train->batch_size == ET_INT_UNSET && !is_given) {
        at = place_of(r->root, "train_data");
        et_diagnostics_add(errors, ET_E_MISSING, &at, "train_data", NULL,
                           "key 'batch_size' is missing");
    }
    for (int i = 0; i < x->eval_data.n; i++) {
        struct et_data_options *eval = data_options(&x->eval_data.v[i]);
        if (eval && train && eval->batch_size == ET_INT_UNSET)
            eval->batch_size = train->batch_size;
    }
}

static void
check_labels(const struct eti_recipe *r, struct et_diagnostics *errors)
{
    const struct et_parts *parts = &r->recipe.eval_data;
    for (int i = 0; i < parts->n; i++) {
        const struct et_recipe_eval *a = parts->v[i].extra;
        for (int j = 0; a && j < i; j++) {
            const struct et_recipe_eval *b = parts->v[j].extra;
            if (!b || strcmp(a->label, b->label) != 0)
                continue;
            struct et_place at = eti_value_place(parts->v[i].value);
            et_diagnostics_add(
                errors, ET_E_CONFLICT, &at, "eval_data", "give each a label of its own",
                "eval_data %d and %d are both called '%s'", j, i, a->label);
            break;
        }
    }
}

/* Is V what the model has where nobody sets its loss, as a resolved recipe says it? */
static bool
is_default_loss(const struct eti_recipe *r, const struct et_value *v)
{
    const struct et_component *model = r->recipe.model.component;
    const struct et_option *o =
        model && model->options ? eti_option_find(model->options, "loss") : NULL;
    return o && o->def && v->text && strcmp(o->def, v->text) == 0;
}

/* One of the two would be left out. */
static void
check_loss(const struct eti_recipe *r, struct et_diagnostics *errors)
{
    const struct et_value *model = eti_value_get(r->root, "model"), *own;
    if (!r->recipe.loss.component || !model || model->type != ET_VALUE_MAP)
        return;
    own = eti_value_get(model, "loss");
    if (!own || is_default_loss(r, own))
        return;
    struct et_place at = place_of(r->root, "loss");
    et_diagnostics_add(errors, ET_E_CONFLICT, &at, "loss", "leave one of the two out",
                       "loss %s excludes model.loss", r->recipe.loss.component->name);
}

/* It becomes part of paths. */
static void
check_name(const struct eti_recipe *r, struct et_diagnostics *errors)
{
    const char *name = r->recipe.run_name;
    if (!name || et_run_name_check(r->cx, name) == ET_OK)
        return;
    struct et_place at = place_of(r->root, "run_name");
    et_diagnostics_add(errors, ET_E_VALUE, &at, "run_name", NULL, "%s",
                       et_error_get(r->cx)->message);
    et_error_clear(r->cx);
}

/* METRIC, one of > >= < <=, NUMBER. */
static void
check_target(const struct eti_recipe *r, struct et_diagnostics *errors)
{
    const char *text = r->recipe.target;
    if (!text)
        return;
    const char *op = strpbrk(text, "<>");
    const char *number = op ? op + 1 + (op[1] == '=') : "";
    char *end;
    (void)strtod(number, &end);
    if (op && op != text && end != number && !*end)
        return;
    struct et_place at = place_of(r->root, "target");
    et_diagnostics_add(
        errors, ET_E_VALUE, &at, "target", NULL,
        "expected a metric and its goal such as accuracy>=.765, got \"%s\"", text);
}

/* The one default that needs a value: the optimizer's rate, said aloud. */
static et_status
choose_rate(struct eti_recipe *r)
{
    struct et_part *optimizer = &r->recipe.optimizer;
    const struct et_option *rate =
        optimizer->component ? eti_option_find(optimizer->component->options, "lr")
                             : NULL;
    if (optimizer->value || !rate)
        return ET_OK;
    if (!r->is_sketch)
        et_report(r->cx, ET_LOG_WARN, "no optimizer given: %s with lr 0.1",
                  optimizer->component->name);
    return et_options_set(r->cx, rate, optimizer->options, "lr", "0.1");
}

et_status
eti_recipe_check(struct eti_recipe *r, struct et_diagnostics *errors)
{
    check_data(r, errors);
    check_microbatches(r, errors);
    check_labels(r, errors);
    check_name(r, errors);
    check_target(r, errors);
    check_loss(r, errors);
    return choose_rate(r);
}

static et_status
refused(struct et_ctx *cx, const struct et_diagnostics *errors, int before)
{
    if (errors->total == before)
        return ET_OK;
    return ET_FAIL(cx, ET_EINVAL, "%s", errors->v[0].message);
}

static void
check_ranks(const struct et_part *part, const char *path, int64_t ranks,
            struct et_diagnostics *errors)
{
    const struct et_data_options *o = data_options(part);
    if (!o || o->batch_size == ET_INT_UNSET || o->batch_size % ranks == 0)
        return;
    struct et_place at = eti_value_place(part->value);
    et_diagnostics_add(errors, ET_E_CONFLICT, &at, path, NULL,
                       "batch %lld is not divisible by %lld ranks",
                       (long long)o->batch_size, (long long)ranks);
}

/* As prepare.c of the trainer says, but before anything is started. */
static void
check_sync(const struct eti_recipe *r, int64_t ranks, struct et_diagnostics *errors)
{
    const struct et_recipe *recipe = &r->recipe;
    const bool cut = recipe->microbatch_size != ET_INT_UNSET ||
                     (recipe->grad_accum != ET_INT_UNSET && recipe->grad_accum > 1);
    struct et_place at = place_of(r->root, "sync_batch_norm");
    if (recipe->sync_batch_norm && ranks > 1 && cut)
        et_diagnostics_add(errors, ET_E_CONFLICT, &at, "sync_batch_norm",
                           "leave microbatch_size out, and let grad_accum be 1",
                           "sync_batch_norm excludes microbatches where there are %lld "
                           "ranks",
                           (long long)ranks);
}

et_status
et_recipe_check_train(struct et_ctx *cx, const struct et_recipe *recipe, int64_t ranks,
                      struct et_diagnostics *errors)
{
    ETI_NEED(cx, recipe, errors);
    const struct eti_recipe *r = (const struct eti_recipe *)recipe;
    const struct et_data_options *train = data_options(&recipe->train_data);
    struct et_place at = eti_value_place(r->root);
    int before = errors->total;
    if (!train) {
        et_diagnostics_add(errors, ET_E_MISSING, &at, NULL, NULL,
                           "key 'train_data' is missing");
    }
    check_ranks(&recipe->train_data, "train_data", ranks, errors);
    for (int i = 0; i < recipe->eval_data.n; i++)
        check_ranks(&recipe->eval_data.v[i], "eval_data", ranks, errors);
    check_sync(r, ranks, errors);
    return refused(cx, errors, before);
}

/* ---- resume ---- */

struct pair {
    char *path, *value;
    const struct et_value *at;
    bool is_free; /* may differ */
};
struct pairs {
    struct et_ctx *cx;
    struct pair *v;
    int n, size;
    et_status status;
};

static et_status
copy_text(struct et_ctx *cx, const char *text, char **out)
{
    void *block;
    size_t n = strlen(text) + 1;
    ET_TRY(et_alloc(cx, n, &block));
    *out = memcpy(block, text, n);
    return ET_OK;
}

static et_status
grow(struct pairs *p)
{
    void *block;
    int size = p->size ? 2 * p->size : 64;
    ET_TRY(et_alloc(p->cx, sizeof *p->v * (size_t)size, &block));
    if (p->n)
        memcpy(block, p->v, sizeof *p->v * (size_t)p->n);
    et_free(p->cx, p->v);
    p->v = block;
    p->size = size;
    return ET_OK;
}

static void
collect(void *data, const struct eti_line *line)
{
    struct pairs *p = data;
    if (!line->value || p->status != ET_OK)
        return;
    if (p->n == p->size)
        p->status = grow(p);
    if (p->status != ET_OK)
        return;
    struct pair *now = &p->v[p->n++];
    *now = (struct pair){
        .at = line->at,
        .is_free = line->top->flags & ET_OPT_RESUME,
    };
    p->status = copy_text(p->cx, line->path, &now->path);
    if (p->status == ET_OK)
        p->status = copy_text(p->cx, line->value, &now->value);
}

static void
release_pairs(struct pairs *p)
{
    for (int i = 0; i < p->n; i++) {
        et_free(p->cx, p->v[i].path);
        et_free(p->cx, p->v[i].value);
    }
    et_free(p->cx, p->v);
}

static const struct pair *
find_pair(const struct pairs *p, const char *path)
{
    for (int i = 0; i < p->n; i++)
        if (strcmp(p->v[i].path, path) == 0)
            return &p->v[i];
    return NULL;
}

/* What is left open fits whatever the saved run chose. Of a list that is empty here,
 * its items there say what is missing. */
static bool
is_open(const struct pair *p)
{
    return strcmp(p->value, "null") == 0 || strcmp(p->value, "auto") == 0 ||
           strcmp(p->value, "[]") == 0;
}

static void
compare(const struct pairs *now, const struct pairs *saved,
        struct et_diagnostics *errors)
{
    for (int i = 0; i < now->n; i++) {
        const struct pair *a = &now->v[i], *b = find_pair(saved, a->path);
        if (a->is_free || is_open(a) || (b && strcmp(a->value, b->value) == 0))
            continue;
        struct et_place at = {0};
        if (a->at)
            at = eti_value_place(a->at);
        et_diagnostics_add(
            errors, ET_E_RESUME, &at, NULL, NULL,
            "%s is %s, saved run has %s; resume cannot change it, rerun can", a->path,
            a->value, b ? b->value : "none");
    }
    for (int i = 0; i < saved->n; i++) {
        const struct pair *b = &saved->v[i];
        if (!b->is_free && !is_open(b) && !find_pair(now, b->path))
            et_diagnostics_add(
                errors, ET_E_RESUME, NULL, NULL, NULL,
                "%s is not set, saved run has %s; resume cannot change it, "
                "rerun can",
                b->path, b->value);
    }
}

et_status
et_recipe_check_resume(struct et_ctx *cx, const struct et_recipe *now,
                       const struct et_recipe *saved, struct et_diagnostics *errors)
{
    ETI_NEED(cx, cx, now, saved, errors);
    struct pairs a = {.cx = cx}, b = {.cx = cx};
    int before = errors->total;
    et_status status = eti_recipe_walk(cx, now, collect, &a);
    if (status == ET_OK)
        status = eti_recipe_walk(cx, saved, collect, &b);
    if (status == ET_OK)
        status = a.status != ET_OK ? a.status : b.status;
    if (status == ET_OK) {
        compare(&a, &b, errors);
        status = refused(cx, errors, before);
    }
    release_pairs(&a);
    release_pairs(&b);
    return status;
}
