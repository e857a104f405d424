/* SPDX-License-Identifier: Apache-2.0 */
/* explain_model.c: a model drawn as a table: what each of its parts gives, its
 * parameters and what one sample costs. Of a recipe, or by name, with its options as
 * changes. */
#include "config.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "core/models/outline.h"

enum { LEVELS = 2 }; /* shown without -v */

/* ---- the table ---- */

/* "64 x 56 x 56": a sample's shape, without the batch. */
static const char *
shape_text(const struct et_desc *d, char buf[80])
{
    size_t at = 0;
    *buf = '\0';
    for (int i = 1; i < d->ndim && at < 80; i++)
        at += (size_t)snprintf(buf + at, 80 - at, "%s%lld", i > 1 ? " x " : "",
                               (long long)d->shape[i]);
    return buf;
}

static bool
is_shown(const struct cli *c, const struct eti_outline_row *r)
{
    return r->depth > 0 && (c->opt.verbose || r->depth <= LEVELS) &&
           (r->called || r->params > 0);
}

static json_t *
row_json(const struct eti_outline_row *r)
{
    json_t *shape = json_array();
    for (int i = 1; r->called && i < r->out.ndim; i++)
        json_array_append_new(shape, json_integer(r->out.shape[i]));
    return json_pack("{s:s, s:s, s:o, s:I, s:I}", "path", r->path, "layer", r->layer,
                     "shape", shape, "params", (json_int_t)r->params, "flops",
                     (json_int_t)r->flops);
}

static int
print_json(const struct cli *c, const struct eti_outline *o)
{
    json_t *rows = json_array();
    for (int i = 0; i < o->n; i++)
        if (is_shown(c, &o->v[i]))
            json_array_append_new(rows, row_json(&o->v[i]));
    return cli_print_json(json_pack("{s:o, s:I, s:I}", "layers", rows, "params",
                                    (json_int_t)o->v[0].params, "flops",
                                    (json_int_t)o->v[0].flops));
}

static void
print_row(const char *name, const struct eti_outline_row *r)
{
    char shape[80] = "", params[32] = "", flops[32] = "";
    if (r->called)
        shape_text(&r->out, shape);
    if (r->params > 0)
        cli_count(r->params, params, sizeof params);
    if (r->flops > 0)
        cli_scaled((double)r->flops, "FLOP", flops, sizeof flops);
    et_print(stdout, "%-28s %-20s %-18s %14s %14s\n", name, r->layer, shape, params,
             flops);
}

static int
print_table(const struct cli *c, const struct eti_outline *o)
{
    et_print(stdout, "%-28s %-20s %-18s %14s %14s\n", "part", "layer", "gives",
             "parameters", "a sample costs");
    for (int i = 0; i < o->n; i++) {
        const struct eti_outline_row *r = &o->v[i];
        const char *last = strrchr(r->path, '.');
        char name[160];
        snprintf(name, sizeof name, "%*s%s", 2 * (r->depth - 1), "",
                 last ? last + 1 : r->path);
        if (is_shown(c, r))
            print_row(name, r);
    }
    print_row("all", &o->v[0]);
    return CLI_OK;
}

static int
draw(struct cli *c, struct et_model *m, struct et_device *dev)
{
    struct eti_outline o;
    et_status status = eti_model_outline(c->cx, m, dev, &o);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_PARTS, status);
    int code = c->opt.json ? print_json(c, &o) : print_table(c, &o);
    eti_outline_release(&o);
    return code;
}

/* ---- of a recipe ---- */

int
cli_explain_recipe_model(struct cli *c, struct et_recipe *recipe)
{
    const struct eti_assemble_options options = {
        .device = eti_assemble_cpu,
        .threads = 1,
        .with_train = recipe->train_data.component != NULL,
        .with_eval = !recipe->train_data.component,
        .stands_in = true};
    struct eti_assembly a;
    if (recipe->seed == ET_INT_UNSET)
        recipe->seed = 0; /* no weight is drawn */
    et_status status = eti_assemble(c->cx, recipe, &options, &a);
    int code =
        status == ET_OK ? draw(c, a.model, a.dev) : cli_fail_status(c, a.stage, status);
    eti_assembly_release(&a);
    return code;
}

/* ---- by name ---- */

/* The change TEXT, "name=value": of what the data would say, or of OPTIONS. */
static int
change(struct cli *c, const struct et_model_class *type, const char *text,
       void *options, struct et_model_facts *facts)
{
    const struct {
        const char *name;
        int64_t *fact;
    } table[] = {
        {"height", &facts->height},
        {"width", &facts->width},
        {"seq_len", &facts->seq_len},
    };
    char name[64];
    const char *value = strchr(text, '=');
    snprintf(name, sizeof name, "%.*s", value ? (int)(value - text) : 0, text);
    for (size_t i = 0; value && i < sizeof table / sizeof *table; i++) {
        char *end;
        if (strcmp(name, table[i].name) != 0)
            continue;
        *table[i].fact = strtoll(value + 1, &end, 10);
        if (*end || *table[i].fact < 1 || *table[i].fact > 1 << 16)
            return cli_fail(c, CLI_E_VALUE, NULL, "%s: expected a length", text);
        return CLI_OK;
    }
    et_status status =
        value
            ? et_options_set(c->cx, type->info.options, options, name, value + 1)
            : ET_FAIL(c->cx, ET_EINVAL, "%s is no change of %s", text, type->info.name);
    return status == ET_OK ? CLI_OK : cli_fail_status(c, ETI_STAGE_RECIPE, status);
}

static bool
needs_more(const struct et_model_class *type)
{
    for (const struct et_option *o = type->info.options; o && o->name; o++)
        if (o->flags & ET_OPT_REQUIRED)
            return true;
    return false;
}

static int
draw_new(struct cli *c, const struct et_model_class *type, const void *options,
         const struct et_model_facts *facts)
{
    struct et_device *dev = NULL;
    struct et_model *m = NULL;
    et_status status = et_model_new(c->cx, type, options, facts, &m);
    if (status == ET_OK)
        status = et_device_open(c->cx, eti_assemble_cpu, 0, 1, &dev);
    int code =
        status == ET_OK ? draw(c, m, dev) : cli_fail_status(c, ETI_STAGE_PARTS, status);
    et_model_free(&m);
    et_device_close(&dev);
    return code;
}

int
cli_explain_model(struct cli *c, const struct et_model_class *type)
{
    struct et_model_facts facts = {.channels = 3,
                                   .height = 224,
                                   .width = 224,
                                   .num_classes = 1000,
                                   .seq_len = 128};
    void *options;
    int code = CLI_OK;
    if (needs_more(type))
        return CLI_OK; /* a recipe says what is in it */
    et_status status = et_options_new(c->cx, &type->info, NULL, &options);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_RECIPE, status);
    for (int i = 0; i < c->n_overrides && code == CLI_OK; i++)
        code = change(c, type, c->override[i].text, options, &facts);
    if (code == CLI_OK) {
        if (!c->opt.json)
            printf("\n");
        code = draw_new(c, type, options, &facts);
    }
    et_options_free(&type->info, &options);
    return code;
}
