/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c: `etude explain`: who acts when in a recipe; or one component, or a key. */
#include "config.h"

#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/assemble/formulas.h"
#include "core/compose/timeline.h"
#include "core/data/resident.h"

/* ---- one component ---- */

/* Its kind, and itself; -1: no component has that name. */
static int
find_component(struct cli *c, const char *name, const struct et_component **out)
{
    for (int kind = 0; kind < ET_KIND_COUNT; kind++) /* the core's need no plugin */
        if ((*out = et_registry_find(NULL, (enum et_kind)kind, name)) != NULL)
            return kind;
    for (int kind = 0; kind < ET_KIND_COUNT; kind++)
        if ((*out = cli_find_component(c, (enum et_kind)kind, name)) != NULL)
            return kind;
    return -1;
}

static void
print_events(const struct et_algorithm_class *a)
{
    printf("acts at     ");
    for (int e = 0; e < ET_EVENT_COUNT; e++)
        if (a->events & UINT64_C(1) << e)
            et_print(stdout, " %s", et_event_name((enum et_event)e));
    const char *why = et_algorithm_why_not_join(a);
    et_print(stdout, "\nswitched     %s%s\n",
             why ? "by the recipe alone: it " : "while a run goes on: ",
             why ? why : "etude algo RUN NAME on|off");
}

static json_t *
component_json(const struct et_component *i, enum et_kind kind)
{
    json_t *all = json_pack("{s:s, s:s, s:s, s:s, s:s, s:o}", "name", i->name, "kind",
                            et_kind_word(kind), "summary", i->summary ? i->summary : "",
                            "source", i->source ? i->source : "", "applies_to",
                            i->applies_to ? i->applies_to : "", "options",
                            cli_options_json(i->options));
    if (all && kind == ET_KIND_ALGORITHM) {
        const struct et_algorithm_class *a = ETI_CLASS(algorithm, i);
        const char *why = et_algorithm_why_not_join(a);
        json_object_set_new(all, "events", cli_events_json(a->events));
        json_object_set_new(all, "switches", json_boolean(et_algorithm_switches(a)));
        json_object_set_new(all, "joins", json_boolean(!why));
        if (why)
            json_object_set_new(all, "why_not_join", json_string(why));
    }
    if (all && kind == ET_KIND_MODEL)
        json_object_set_new(all, "beginning",
                            json_string(et_model_beginning(ETI_CLASS(model, i))));
    return all;
}

/* A schedule of defaults over 10 epochs of 100 batches; *OUT is empty where it has
 * none. */
static et_status
default_curve(struct et_ctx *cx, const struct et_component *i, struct eti_curve *out)
{
    void *options;
    *out = (struct eti_curve){.cx = cx};
    for (const struct et_option *o = i->options; o && o->name; o++)
        if (o->flags & ET_OPT_REQUIRED)
            return ET_OK;
    ET_TRY(et_alloc(cx, i->options_size, &options));
    const struct et_scheduler schedule = {ETI_CLASS(scheduler, i), options};
    et_status status = et_options_init(cx, i->options, options);
    if (status == ET_OK)
        status = eti_curve_of_schedule(cx, &schedule, 10, 100, out);
    et_options_release(i->options, options);
    et_free(cx, options);
    return status;
}

static int
explain_scheduler(struct cli *c, const struct et_component *i)
{
    struct eti_curve curve;
    int code = CLI_OK;
    et_status status = default_curve(c->cx, i, &curve);
    if (status != ET_OK)
        code = cli_fail_status(c, ETI_STAGE_PARTS, status);
    else if (c->opt.json) {
        json_t *all = component_json(i, ET_KIND_SCHEDULER);
        if (all && curve.n > 0)
            json_object_set_new(all, "curve", cli_curve_json(&curve));
        code = cli_print_json(all);
    } else if (curve.n > 0) {
        code = cli_print_curve(c, &curve, "with its defaults");
    }
    eti_curve_release(&curve);
    return code;
}

static int
explain_component(struct cli *c, const struct et_component *i, enum et_kind kind)
{
    if (c->opt.model && kind == ET_KIND_MODEL)
        return cli_explain_model(c, ETI_CLASS(model, i));
    if (c->opt.json && kind == ET_KIND_SCHEDULER)
        return explain_scheduler(c, i);
    if (c->opt.json)
        return cli_print_json(component_json(i, kind));
    et_print(stdout, "%s, %s: %s\n", i->name, et_kind_word(kind), i->summary);
    if (i->source)
        et_print(stdout, "source       %s\n", i->source);
    if (i->applies_to)
        et_print(stdout, "applies to   %s\n", i->applies_to);
    if (kind == ET_KIND_ALGORITHM)
        print_events(ETI_CLASS(algorithm, i));
    if (kind == ET_KIND_MODEL)
        et_print(stdout, "beginning    %s\n", et_model_beginning(ETI_CLASS(model, i)));
    if (i->options && i->options->name)
        printf("options\n");
    cli_print_options(i->options, "  ");
    if (kind == ET_KIND_MODEL)
        return cli_explain_model(c, ETI_CLASS(model, i));
    return kind == ET_KIND_SCHEDULER ? explain_scheduler(c, i) : CLI_OK;
}

/* ---- a recipe ---- */

/* An object in LIST for each event at which an algorithm of A may act. */
static et_status
timeline(const struct eti_assembly *a, json_t *list)
{
    int n = a->config.n_algorithms, m;
    const struct et_algorithm_class *type[ET_MAX_ALGORITHMS];
    for (int i = 0; i < n; i++)
        type[i] = a->algorithm[i]->type;
    for (int e = 0; e < ET_EVENT_COUNT; e++) {
        struct eti_turn turn[ET_MAX_ALGORITHMS];
        ET_TRY(eti_timeline_with(a->cx, a->config.passes, a->config.n_passes, type, n,
                                 (enum et_event)e, turn, &m));
        json_t *order = json_array();
        for (int i = 0; i < m; i++)
            json_array_append_new(order, json_pack("{s:s, s:s, s:s}", "name",
                                                   type[turn[i].who]->info.name, "does",
                                                   type[turn[i].who]->info.summary,
                                                   "reason", turn[i].reason));
        if (m > 0)
            json_array_append_new(list, json_pack("{s:s, s:O}", "event",
                                                  et_event_name((enum et_event)e),
                                                  "algorithms", order));
        json_decref(order);
    }
    return ET_OK;
}

static const char *
text_of(json_t *row, const char *key)
{
    return json_string_value(json_object_get(row, key));
}

static void
print_timeline(json_t *list)
{
    json_t *row, *one;
    size_t i, k;
    json_array_foreach(list, i, row)
        json_array_foreach(json_object_get(row, "algorithms"), k, one)
    {
        const char *why = text_of(one, "reason");
        et_print(stdout, "%-20s %zu  %-20s %s%s%s%s\n", k ? "" : text_of(row, "event"),
                 k + 1, text_of(one, "name"), text_of(one, "does"), *why ? " (" : "",
                 why, *why ? ")" : "");
    }
}

/* The names of PARTS in user order. */
static json_t *
parts_json(const struct et_parts *parts)
{
    json_t *list = json_array();
    for (int i = 0; i < parts->n; i++)
        if (parts->v[i].component && !parts->v[i].off)
            json_array_append_new(list, json_string(parts->v[i].component->name));
    return list;
}

/* How the model's first weights come about: its class's own beginning, and the
 * initializers that the recipe lays over it. */
static void
add_beginning(json_t *plan, const struct et_part *model)
{
    const struct et_model_options *o = model->options;
    json_t *names = json_array();
    for (int i = 0; o && i < o->initializer.n; i++)
        json_array_append_new(names, json_string(o->initializer.v[i]));
    json_object_set_new(
        plan, "beginning",
        json_string(et_model_beginning(ETI_CLASS(model, model->component))));
    if (json_array_size(names) > 0)
        json_object_set(plan, "initializer", names);
    json_decref(names);
}

/* Where pictures are changed on their way into a batch. */
static void
add_where(struct et_ctx *cx, json_t *plan, const struct et_part *data)
{
    char text[256];
    eti_transforms_where(cx, ETI_CLASS(dataset, data->component), data->options, text,
                         sizeof text);
    if (*text)
        json_object_set_new(plan, "transforms_on", json_string(text));
}

/* What the recipe is made of. */
static json_t *
plan_json(struct et_ctx *cx, const struct et_recipe *r)
{
    char text[ET_TIME_TEXT_BYTES];
    const struct et_data_options *data = r->train_data.options;
    json_t *plan = json_pack("{s:s}", "model", r->model.component->name);
    add_beginning(plan, &r->model);
    if (data) {
        json_object_set_new(plan, "train_data",
                            json_string(r->train_data.component->name));
        json_object_set_new(plan, "batch_size", json_integer(data->batch_size));
        add_where(cx, plan, &r->train_data);
    }
    json_object_set_new(plan, "eval_data", parts_json(&r->eval_data));
    json_object_set_new(plan, "max_duration",
                        json_string(et_time_text(r->max_duration, text, sizeof text)));
    json_object_set_new(plan, "optimizer", json_string(r->optimizer.component->name));
    json_object_set_new(plan, "scheduler", parts_json(&r->scheduler));
    json_object_set_new(plan, "algorithms", parts_json(&r->algorithms));
    json_object_set_new(plan, "callbacks", parts_json(&r->callbacks));
    json_object_set_new(plan, "loggers", parts_json(&r->loggers));
    if (r->metrics.n > 0)
        json_object_set_new(plan, "metrics", parts_json(&r->metrics));
    if (r->loss.component)
        json_object_set_new(plan, "loss", json_string(r->loss.component->name));
    return plan;
}

/* "model                mlp", lists as "a, b" or "none". */
static void
print_plan(json_t *plan)
{
    const char *key;
    json_t *value, *name;
    size_t i;
    json_object_foreach(plan, key, value)
    {
        et_print(stdout, "%-20s ", key);
        if (json_is_array(value) && json_array_size(value) == 0)
            printf("none");
        json_array_foreach(value, i, name)
            et_print(stdout, "%s%s", i ? ", " : "", json_string_value(name));
        if (json_is_integer(value))
            printf("%lld", (long long)json_integer_value(value));
        et_print(stdout, "%s\n", json_is_string(value) ? json_string_value(value) : "");
    }
}

/* Lines "PATH = VALUE  (ORIGIN)" as objects. */
static json_t *
origins_json(char *text)
{
    json_t *list = json_array();
    for (char *line = text, *next; *line; line = next) {
        next = line + strcspn(line, "\n");
        next += *next == '\n';
        char *value = strstr(line, " = "), *origin = next;
        if (!value || value > next)
            continue;
        while (origin > value && strncmp(origin, "  (", 3) != 0)
            origin--;
        json_array_append_new(
            list, json_pack("{s:s%, s:s%, s:s%}", "path", line, (size_t)(value - line),
                            "value", value + 3, (size_t)(origin - value - 3), "origin",
                            origin + 3, strcspn(origin + 3, "\n") - 1));
    }
    return list;
}

static int
explain_origin(struct cli *c, const struct et_recipe *recipe)
{
    char *text;
    et_status status = et_recipe_origins(c->cx, recipe, &text);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_RECIPE, status);
    int code = CLI_OK;
    if (c->opt.json)
        code = cli_print_json(origins_json(text));
    for (const char *line = text; !c->opt.json && *line;) {
        int n = (int)strcspn(line, "\n");
        et_print(stdout, "%.*s\n", n, line);
        line += n + (line[n] == '\n');
    }
    et_free(c->cx, text);
    return code;
}

static void
add_formula(void *data, const struct eti_settled *one)
{
    json_t *list = data;
    json_array_append_new(list,
                          json_pack("{s:s, s:s, s:s?}", "path", one->path, "formula",
                                    one->formula, "value", one->value));
}

/* What formulas in schedules come to, into PLAN (--json) or on paper. Where the data
 * are not here it is what the recipe alone tells. */
static int
explain_formulas(struct cli *c, const struct et_recipe *recipe, json_t *plan)
{
    struct eti_placeholders p = eti_nothing_known;
    json_t *list = json_array(), *one;
    size_t i;
    if (eti_has_formulas(recipe) &&
        eti_placeholders_measure(c->cx, recipe, &p) != ET_OK) {
        et_error_clear(c->cx);
        eti_placeholders_of(recipe, NULL, NULL, &p);
    }
    et_status status = eti_formulas_settle(c->cx, recipe, &p, false, add_formula, list);
    if (status == ET_OK && c->opt.json && json_array_size(list) > 0)
        json_object_set(plan, "formulas", list);
    if (status == ET_OK && !c->opt.json)
        json_array_foreach(list, i, one)
        {
            const char *value = text_of(one, "value");
            et_print(stdout, "%-20s %s = %s\n", text_of(one, "path"),
                     text_of(one, "formula"),
                     value ? value : "not known before the data are read");
        }
    json_decref(list);
    return status == ET_OK ? CLI_OK : cli_fail_status(c, ETI_STAGE_RECIPE, status);
}

/* The learning rate of RECIPE into PLAN (--json) or on paper. A run whose data are not
 * here, or that is measured in seconds, is explained without. */
static int
explain_rate(struct cli *c, const struct et_recipe *recipe, json_t *plan)
{
    struct eti_curve curve;
    int code = CLI_OK;
    et_status status = eti_curve_of_recipe(c->cx, recipe, &curve);
    if (status != ET_OK) {
        const char *why = et_error_get(c->cx)->message;
        if (status == ET_ENOMEM)
            code = cli_fail_status(c, ETI_STAGE_PARTS, status);
        else if (c->opt.json)
            json_object_set_new(plan, "learning_rate",
                                json_pack("{s:s%}", "unknown", why, strlen(why)));
        else
            et_print(stdout, "\n%-20s not drawn: %s\n", "learning rate", why);
        et_error_clear(c->cx);
    } else if (c->opt.json) {
        json_object_set_new(plan, "learning_rate", cli_curve_json(&curve));
    } else {
        code = cli_print_curve(c, &curve, "learning rate");
    }
    eti_curve_release(&curve);
    return code;
}

/* The algorithms; with parameter groups the model too, which tells whose they are: of
 * blank data, and only where the data's shapes are known here. */
static et_status
assemble(struct cli *c, struct et_recipe *recipe, struct eti_assembly *a)
{
    const struct eti_assemble_options options = {.device = eti_assemble_cpu,
                                                 .threads = 1,
                                                 .with_train = true,
                                                 .stands_in = true};
    if (cli_has_groups(recipe) && recipe->train_data.component) {
        if (recipe->seed == ET_INT_UNSET)
            recipe->seed = 0; /* no weight is drawn */
        if (eti_assemble(c->cx, recipe, &options, a) == ET_OK)
            return ET_OK;
        bool begun = a->config.n_algorithms > 0;
        if (begun)
            return ET_EINVAL;
        eti_assembly_release(a);
        et_error_clear(c->cx);
        *a = (struct eti_assembly){.cx = c->cx, .recipe = recipe};
    }
    return eti_assemble_algorithms(a, recipe);
}

static int
explain_timeline(struct cli *c, struct et_recipe *recipe)
{
    struct eti_assembly a = {.cx = c->cx, .recipe = recipe};
    int code = CLI_OK;
    json_t *plan = plan_json(c->cx, recipe);
    if (c->opt.json)
        code = explain_formulas(c, recipe, plan);
    if (c->opt.json && code == CLI_OK)
        code = explain_rate(c, recipe, plan);
    json_t *list = json_array();
    et_status status = assemble(c, recipe, &a);
    if (status == ET_OK)
        status = timeline(&a, list);
    if (code != CLI_OK || status != ET_OK) {
        code = code != CLI_OK ? code : cli_fail_status(c, a.stage, status);
    } else {
        json_t *groups =
            cli_has_groups(recipe) ? cli_groups_json(c->cx, recipe, &a) : NULL;
        if (c->opt.json) {
            json_object_set(plan, "timeline", list);
            if (groups)
                json_object_set(plan, "groups", groups);
            code = cli_print_json(json_incref(plan));
        } else {
            print_plan(plan);
            code = explain_formulas(c, recipe, plan);
            if (json_array_size(list) > 0)
                printf("\nevent               order and action\n");
            print_timeline(list);
            if (groups)
                cli_print_groups(groups);
            if (code == CLI_OK)
                code = explain_rate(c, recipe, plan);
        }
        json_decref(groups);
    }
    json_decref(list);
    json_decref(plan);
    eti_assembly_release(&a);
    return code;
}

int
cli_explain(struct cli *c)
{
    const struct et_component *component;
    int code;
    if (c->n_args == 1 && !c->opt.module_mode && access(c->arg[0], F_OK) != 0) {
        int kind = find_component(c, c->arg[0], &component);
        if (kind >= 0)
            return explain_component(c, component, (enum et_kind)kind);
        if (cli_explain_key(c, c->arg[0], &code))
            return code;
    }
    struct et_recipe *recipe = cli_load_only_recipe(c, &code);
    if (recipe)
        code = c->opt.origin  ? explain_origin(c, recipe)
               : c->opt.model ? cli_explain_recipe_model(c, recipe)
                              : explain_timeline(c, recipe);
    et_recipe_free(&recipe);
    return code;
}
