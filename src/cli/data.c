/* SPDX-License-Identifier: Apache-2.0 */
/* data.c: `etude data`: which datasets there are, and what one holds; what one shows is
 * data_show.c's. */
#include "config.h"

#include <jansson.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/data.h"

static int
list_all(struct cli *c)
{
    json_t *list = json_array();
    const struct et_registry *r = cli_all_components(c);
    const struct et_component *i;
    for (int n = 0; (i = r->get(r, ET_KIND_DATASET, n)) != NULL; n++) {
        if (c->opt.json)
            json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "name", i->name,
                                                  "summary", i->summary, "options",
                                                  cli_options_json(i->options)));
        else
            et_print(stdout, "%-18s %s\n", i->name, i->summary);
    }
    if (c->opt.json)
        return cli_print_json(list);
    json_decref(list);
    return CLI_OK;
}

/* ---- inspect ---- */

/* "1 x 28 x 28"; "?" where it differs by sample. */
static const char *
shape_text(const struct et_field *f, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int k = 0; k < f->ndim && used < size; k++) {
        const char *between = k ? " x " : "";
        used += (size_t)(f->shape[k] < 0
                             ? snprintf(text + used, size - used, "%s?", between)
                             : snprintf(text + used, size - used, "%s%lld", between,
                                        (long long)f->shape[k]));
    }
    return text;
}

static bool
is_images(const struct et_data_facts *f)
{
    return f->n_fields == 2 && f->field[ET_FIELD_X].kind == ET_FIELD_IMAGE &&
           f->field[ET_FIELD_TARGET].ndim == 0;
}

/* Images with a label each. */
static void
print_images(const struct et_data_summary *s)
{
    const int64_t *shape = s->facts.field[ET_FIELD_X].shape;
    char n[32], sides[48] = "different sizes";
    if (shape[1] > 0 && shape[2] > 0)
        snprintf(sides, sizeof sides, "%lld x %lld", (long long)shape[1],
                 (long long)shape[2]);
    et_print(stdout, "images     %s of %s, %lld channel%s, %lld classes\n",
             cli_count(s->facts.n_samples, n, sizeof n), sides, (long long)shape[0],
             shape[0] == 1 ? "" : "s", (long long)et_facts_classes(&s->facts));
}

static void
print_samples(const struct et_data_summary *s)
{
    static const char *const kinds[] = {"image", "mask", "tokens", "values"};
    const struct et_data_facts *f = &s->facts;
    char n[32], shape[128];
    et_print(stdout, "samples    %s\n", cli_count(f->n_samples, n, sizeof n));
    for (int i = 0; i < f->n_fields; i++) {
        const struct et_field *field = &f->field[i];
        et_print(stdout, "field %-4d %s: %s, %s", i, field->name, kinds[field->kind],
                 et_dtype_name(field->dtype));
        if (field->ndim > 0)
            et_print(stdout, " of %s", shape_text(field, shape, sizeof shape));
        if (field->below > 0)
            et_print(stdout, ", below %lld", (long long)field->below);
        printf("\n");
    }
}

static void
print_channels(const struct et_data_summary *s)
{
    const struct et_field *x = &s->facts.field[ET_FIELD_X];
    for (int64_t k = 0; x->kind == ET_FIELD_IMAGE && k < x->shape[0]; k++)
        printf("channel %lld  mean %.4f, std %.4f of pixels in [0, 1]\n", (long long)k,
               s->mean[k], s->std[k]);
}

static void
print_tokens(const struct et_data_summary *s)
{
    char n[32];
    int64_t used = 0;
    for (int64_t i = 0; i < s->n_counts; i++)
        used += s->counts[i] > 0;
    et_print(stdout, "tokens     %s, vocabulary %lld, %lld of it seen\n",
             cli_count(s->facts.n_tokens, n, sizeof n), (long long)s->n_counts,
             (long long)used);
}

/* Up to 32 kinds are listed; a vocabulary is not. */
static void
print_counts(const struct et_data_summary *s)
{
    char n[32];
    const char *const *names = s->facts.class_names;
    for (int64_t i = 0; i < s->n_counts && s->n_counts <= 32; i++)
        et_print(stdout, "label %-4lld %s%s%s\n", (long long)i,
                 cli_count(s->counts[i], n, sizeof n), names ? "  " : "",
                 names ? names[i] : "");
    printf("first     ");
    for (int i = 0; i < s->n_first; i++)
        printf(" %d", s->first[i]);
    et_print(stdout, "\nread       %s\n", cli_count(s->n_read, n, sizeof n));
    if (s->n_unreadable > 0)
        et_print(stdout, "unreadable %s, the first: %s\n",
                 cli_count(s->n_unreadable, n, sizeof n), s->unreadable);
}

static json_t *
field_json(const struct et_field *f)
{
    static const char *const kinds[] = {"image", "mask", "tokens", "values"};
    json_t *shape = json_array();
    for (int k = 0; k < f->ndim; k++)
        json_array_append_new(shape, json_integer((json_int_t)f->shape[k]));
    return json_pack("{s:s, s:s, s:s, s:o, s:I}", "name", f->name, "kind",
                     kinds[f->kind], "dtype", et_dtype_name(f->dtype), "shape", shape,
                     "below", (json_int_t)f->below);
}

static json_t *
fields_json(const struct et_data_facts *f)
{
    json_t *list = json_array();
    for (int i = 0; i < f->n_fields; i++)
        json_array_append_new(list, field_json(&f->field[i]));
    return list;
}

static json_t *
to_json(const struct et_data_summary *s)
{
    const struct et_data_facts *f = &s->facts;
    const struct et_field *x = &f->field[ET_FIELD_X];
    json_t *counts = json_array(), *mean = json_array(), *std = json_array(), *all;
    for (int64_t i = 0; i < s->n_counts; i++)
        json_array_append_new(counts, json_integer(s->counts[i]));
    for (int64_t k = 0; x->kind == ET_FIELD_IMAGE && k < x->shape[0]; k++) {
        json_array_append_new(mean, json_real(s->mean[k]));
        json_array_append_new(std, json_real(s->std[k]));
    }
    if (f->n_tokens > 0)
        all = json_pack("{s:s, s:I, s:I}", "kind", "tokens", "n_tokens",
                        (json_int_t)f->n_tokens, "vocab_size", (json_int_t)x->below);
    else if (is_images(f))
        all = json_pack("{s:s, s:I, s:[I,I,I], s:I}", "kind", "images", "n_samples",
                        (json_int_t)f->n_samples, "shape", (json_int_t)x->shape[0],
                        (json_int_t)x->shape[1], (json_int_t)x->shape[2], "num_classes",
                        (json_int_t)et_facts_classes(f));
    else
        all = json_pack("{s:s, s:I}", "kind", "samples", "n_samples",
                        (json_int_t)f->n_samples);
    json_object_set_new(all, "fields", fields_json(f));
    json_object_set_new(all, "read", json_integer((json_int_t)s->n_read));
    json_object_set_new(all, "unreadable", json_integer((json_int_t)s->n_unreadable));
    if (s->n_unreadable > 0)
        json_object_set_new(all, "first_unreadable", json_string(s->unreadable));
    json_object_set_new(all, "counts", counts);
    if (x->kind == ET_FIELD_IMAGE) {
        json_object_set_new(all, "mean", mean);
        json_object_set_new(all, "std", std);
    } else {
        json_decref(mean);
        json_decref(std);
    }
    return all;
}

static int
summarise(struct cli *c, const struct et_dataset *data)
{
    struct et_data_summary s;
    et_status status =
        et_data_summarise(c->cx, data, c->opt.limit > 0 ? c->opt.limit : 0, &s);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_DATA, status);
    int code = CLI_OK;
    if (c->opt.json) {
        code = cli_print_json(to_json(&s));
    } else {
        if (s.facts.n_tokens > 0)
            print_tokens(&s);
        else if (is_images(&s.facts))
            print_images(&s);
        else
            print_samples(&s);
        print_channels(&s);
        print_counts(&s);
    }
    et_data_summary_release(c->cx, &s);
    return code;
}

/* key=value after the name are the dataset's options. */
static et_status
set_options(struct cli *c, const struct et_option *table, void *options)
{
    for (int i = 0; i < c->n_overrides; i++) {
        const char *text = c->override[i].text;
        size_t n = strcspn(text, "=");
        char key[64];
        snprintf(key, sizeof key, "%.*s", (int)n, text);
        ET_TRY(et_options_set(c->cx, table, options, key, text + n + 1));
    }
    return ET_OK;
}

/* An option that must be given and is not; NULL when all such are given. */
static const char *
find_missing(const struct cli *c, const struct et_option *table)
{
    for (const struct et_option *o = table; o->name; o++) {
        size_t n = strlen(o->name);
        bool given = !(o->flags & ET_OPT_REQUIRED);
        for (int i = 0; i < c->n_overrides && !given; i++)
            given = strncmp(c->override[i].text, o->name, n) == 0 &&
                    c->override[i].text[n] == '=';
        if (!given)
            return o->name;
    }
    return NULL;
}

int
cli_data_options(struct cli *c, const struct et_dataset_class *type,
                 const char *command, void **out)
{
    const char *missing = find_missing(c, type->info.options);
    *out = NULL;
    if (missing)
        return cli_fail(c, CLI_E_OPERAND, NULL, "%s %s needs %s=...", command,
                        type->info.name, missing);
    et_status status = et_alloc(c->cx, type->info.options_size, out);
    if (status == ET_OK)
        status = et_options_init(c->cx, type->info.options, *out);
    if (status == ET_OK)
        status = set_options(c, type->info.options, *out);
    return status == ET_OK ? CLI_OK : cli_fail_status(c, ETI_STAGE_RECIPE, status);
}

void
cli_data_options_free(struct cli *c, const struct et_dataset_class *type, void *options)
{
    if (options)
        et_options_release(type->info.options, options);
    et_free(c->cx, options);
}

static int
inspect(struct cli *c, const char *name)
{
    const struct et_dataset_class *d =
        ETI_CLASS(dataset, cli_find_component(c, ET_KIND_DATASET, name));
    struct et_dataset *data = NULL;
    void *options;
    if (!d)
        return cli_fail(c, CLI_E_NAME, "etude data ls lists them",
                        "no dataset is called '%s'", name);
    int code = cli_data_options(c, d, "data inspect", &options);
    if (code == CLI_OK) {
        et_status status = et_dataset_open(c->cx, d, options, &data);
        code = status == ET_OK ? summarise(c, data)
                               : cli_fail_status(c, ETI_STAGE_DATA, status);
    }
    et_dataset_close(&data);
    cli_data_options_free(c, d, options);
    return code;
}

int
cli_data(struct cli *c)
{
    const char *what = c->n_args > 0 ? c->arg[0] : "";
    if (strcmp(what, "ls") == 0 && c->n_args == 1)
        return list_all(c);
    if (strcmp(what, "inspect") == 0 && c->n_args == 2)
        return inspect(c, c->arg[1]);
    if (strcmp(what, "show") == 0 && (c->n_args == 2 || c->n_args == 3))
        return cli_data_show(c);
    if (strcmp(what, "tokenize") == 0)
        return cli_data_tokenize(c);
    if (strcmp(what, "prepare") == 0)
        return cli_fail(c, CLI_E_LATER, NULL, "data %s: this version does not do that",
                        what);
    return cli_fail(c, CLI_E_OPERAND, NULL,
                    "data needs one of: ls, inspect NAME [key=value...], "
                    "show NAME|RECIPE [key=value...], tokenize INPUT...");
}
