/* SPDX-License-Identifier: Apache-2.0 */
/* fill.c: options from values: types, units, ranges, choices; every fault reported. */
#include "config.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/recipe/options.h"
#include "core/sched/placeholder.h"

const char *
eti_path_join(char buf[ETI_PATH_BYTES], const char *path, const char *key)
{
    snprintf(buf, ETI_PATH_BYTES, "%s%s%s", path, path[0] ? "." : "", key);
    return buf;
}

/* ---- single values ---- */

/* 90s, 5m, 1h30m, 2d: units from large to small, each number may have a point. */
static bool
read_duration(const char *text, double *out)
{
    static const char units[] = "dhms";
    static const double seconds[] = {86400, 3600, 60, 1};
    const char *least = units;
    double sum = 0;
    do {
        char *end;
        if (!isdigit((unsigned char)*text) && *text != '.')
            return false;
        double x = strtod(text, &end);
        const char *unit = end != text && *end ? strchr(least, *end) : NULL;
        if (!unit)
            return false;
        sum += x * seconds[unit - units];
        least = unit + 1;
        text = end + 1;
    } while (*text);
    *out = sum;
    return isfinite(sum);
}

/* 65536, 64K (thousands), 64Ki (1024s). */
static bool
read_size(const char *text, int64_t *out)
{
    static const char prefixes[] = "KMGT";
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    double x = strtod(text, &end);
    const char *prefix = *end ? strchr(prefixes, *end) : NULL;
    if (*end && !prefix)
        return false;
    if (prefix) {
        bool is_binary = end[1] == 'i';
        x *= pow(is_binary ? 1024 : 1000, (double)(prefix - prefixes + 1));
        end += is_binary ? 2 : 1;
    }
    *out = (int64_t)x;
    return !*end && x < 0x1p62 && (double)*out == x;
}

static bool
read_time(const struct et_option *row, const struct et_value *v, struct et_time *out)
{
    if (!v->text || v->type == ET_VALUE_NULL || v->type == ET_VALUE_BOOL ||
        et_time_parse(NULL, v->text, out) != ET_OK)
        return false;
    return (!row->units || row->units & 1u << out->unit) &&
           eti_option_in_range(row, out->value);
}

static bool
read_number(const struct et_option *row, const struct et_value *v, double *out)
{
    if (v->type != ET_VALUE_INT && v->type != ET_VALUE_FLOAT)
        return false;
    *out = eti_value_number(v);
    return eti_option_in_range(row, *out);
}

/* Text as written; numbers are text too, `name: 12` needs no quotes. */
static bool
is_text(const struct et_value *v)
{
    return v->type == ET_VALUE_STRING || v->type == ET_VALUE_INT ||
           v->type == ET_VALUE_FLOAT;
}

static int
find_choice(const struct et_option *row, const struct et_value *v)
{
    if (!v->text || v->type == ET_VALUE_LIST || v->type == ET_VALUE_MAP)
        return -1;
    for (int i = 0; row->choices && row->choices[i]; i++)
        if (strcmp(row->choices[i], v->text) == 0)
            return i;
    return -1;
}

static et_status
own_text(struct et_ctx *cx, const char *folder, const char *text, char **out)
{
    bool is_joined = folder && folder[0] && text[0] && text[0] != '/';
    while (is_joined && strncmp(text, "./", 2) == 0)
        text += 2;
    size_t n = strlen(text) + 1, before = is_joined ? strlen(folder) + 1 : 0;
    ET_TRY(eti_own(cx, before + n, out));
    if (is_joined)
        snprintf(*out, before + 1, "%s/", folder);
    memcpy(*out + before, text, n);
    return ET_OK;
}

static bool
leaves_folder(const char *text)
{
    if (text[0] == '/')
        return true;
    for (const char *s = text; s; s = strchr(s, '/')) {
        s += *s == '/';
        if (strncmp(s, "..", 2) == 0 && (s[2] == '/' || !s[2]))
            return true;
    }
    return false;
}

static et_status
fill_text(const struct eti_fill *fill, const struct et_option *row, char **field,
          const struct et_value *v, const char *path)
{
    if (!is_text(v))
        return eti_refuse(fill, row, v, path);
    if (row->flags & ET_OPT_OUTPUT && leaves_folder(v->text)) {
        struct et_place at = eti_value_place(v);
        et_diagnostics_add(fill->errors, ET_E_PATH, &at, path, NULL,
                           "output '%s' leaves the run directory", v->text);
        return ET_OK;
    }
    char *text;
    ET_TRY(own_text(fill->cx, row->type == ET_OPT_PATH ? fill->folder : NULL, v->text,
                    &text));
    eti_disown(*field);
    *field = text;
    return ET_OK;
}

/* ---- formulas of how long a run is ---- */

/* The type of one item of a list of TYPE, else TYPE. */
static enum et_option_type
single_type(enum et_option_type type)
{
    return type == ET_OPT_FLOATS  ? ET_OPT_FLOAT
           : type == ET_OPT_TIMES ? ET_OPT_TIME
           : type == ET_OPT_TEXTS ? ET_OPT_TEXT
                                  : type;
}

/* Is V, for ROW or an item of it, a formula that is put in later? What is wrong with it
 * is reported. */
static bool
takes_formula(const struct eti_fill *fill, const struct et_option *row,
              const struct et_value *v, const char *path)
{
    enum et_option_type type = single_type(row->type);
    struct et_place at = eti_value_place(v);
    struct et_error why = {0};
    char out[64];
    bool known;
    if (!fill->takes_formulas || v->type != ET_VALUE_STRING ||
        (type != ET_OPT_TIME && type != ET_OPT_FLOAT) || !eti_is_formula(v->text))
        return false;
    et_status status = eti_formula_text(v->text, type, &eti_nothing_known, out,
                                        sizeof out, &known, &why);
    if (status != ET_OK && known)
        et_diagnostics_add(fill->errors, ET_E_VALUE, &at, path,
                           "formulas are of NUM_EPOCHS, NUM_UPDATE_STEPS_PER_EPOCH, "
                           "TRAIN_DATALOADER_LEN and EVAL_DATALOADER_LEN",
                           "%s", why.message);
    return true;
}

/* ---- lists ---- */

/* The items of V: a single value stands for a list of one. */
static const struct et_value *
list_items(const struct et_value *v, int *n)
{
    *n = v->type == ET_VALUE_LIST ? v->n : 1;
    return v->type == ET_VALUE_LIST ? v->first : v;
}

/* Lists keep {pointer, count}; ITEM is the size of one element. */
struct list {
    void *v;
    int n;
};
_Static_assert(sizeof(struct list) == sizeof(struct et_floats),
               "one layout for all lists");

static et_status
fill_item(const struct eti_fill *fill, const struct et_option *row, void *item,
          const struct et_value *v, const char *path, bool *fits)
{
    if (row->type == ET_OPT_FLOATS)
        *fits = read_number(row, v, item);
    else if (row->type == ET_OPT_TIMES)
        *fits = read_time(row, v, item);
    else if ((*fits = is_text(v)))
        ET_TRY(own_text(fill->cx, NULL, v->text, item));
    if (!*fits && !takes_formula(fill, row, v, path)) {
        struct et_option one = *row;
        one.type = single_type(row->type);
        return eti_refuse(fill, &one, v, path);
    }
    return ET_OK;
}

static et_status
fill_list(const struct eti_fill *fill, const struct et_option *row, void *field,
          const struct et_value *v, const char *path)
{
    static const size_t sizes[ET_OPT_COUNT] = {
        [ET_OPT_FLOATS] = sizeof(double),
        [ET_OPT_TIMES] = sizeof(struct et_time),
        [ET_OPT_TEXTS] = sizeof(char *),
    };
    int n;
    const struct et_value *item = list_items(v, &n);
    struct list list = {0};
    ET_TRY(eti_own(fill->cx, sizes[row->type] * (size_t)(n + 1), &list.v));
    bool fits = true;
    et_status status = ET_OK;
    for (int i = 0; i < n && status == ET_OK; i++, item = item->next) {
        char number[16], at[ETI_PATH_BYTES];
        snprintf(number, sizeof number, "%d", i);
        bool is_list = v->type == ET_VALUE_LIST, item_fits;
        status = fill_item(
            fill, row, (char *)list.v + sizes[row->type] * (size_t)list.n, item,
            is_list ? eti_path_join(at, path, number) : path, &item_fits);
        list.n += status == ET_OK && item_fits;
        fits &= item_fits;
    }
    struct list *keep = field;
    if (status == ET_OK && fits) {
        struct list old = *keep;
        *keep = list;
        list = old;
    }
    eti_option_release(row, &list);
    return status;
}

/* ---- any option ---- */

static et_status
fill_table(const struct eti_fill *fill, const struct et_option *row, void *field,
           const struct et_value *v, const char *path)
{
    if (row->flags & ET_OPT_FALSE && v->type == ET_VALUE_BOOL) {
        *(bool *)field = !v->b;
        return ET_OK;
    }
    bool is_map = v->type == ET_VALUE_MAP,
         is_first = !is_map && row->flags & ET_OPT_BRIEF;
    if (!is_map && !is_first)
        return eti_refuse(fill, row, v, path);
    et_options_release(row->sub, field);
    memset(field, 0, row->sub_size);
    ET_TRY(eti_options_from_value(fill, row->sub, field, is_map ? v : NULL, path));
    return is_first ? eti_fill_option(fill, row->sub, field, v, path) : ET_OK;
}

/* A tree is borrowed; one that ends with the call is written down and read again. */
static et_status
fill_node(const struct eti_fill *fill, const struct et_option *row, void *field,
          const struct et_value *v, const char *path)
{
    struct et_value *now = NULL;
    if (fill->is_brief)
        ET_TRY(eti_value_own(fill->cx, v, fill->errors, &now));
    eti_option_release(row, field);
    *(const struct et_value **)field = fill->is_brief ? now : v;
    if (row->prepare)
        row->prepare(field);
    const struct et_value *kept = *(const struct et_value **)field;
    return kept && row->flags & ET_OPT_ITEMS ? eti_check_items(fill, row, kept, path)
                                             : ET_OK;
}

/* Numbers, words and times: what a field holds by value. */
static bool
read_simple(const struct et_option *row, void *field, const struct et_value *v)
{
    double x;
    int64_t size;
    struct et_time time;
    switch (row->type) {
    case ET_OPT_INT:
        if (v->type != ET_VALUE_INT || !eti_option_in_range(row, (double)v->i))
            return false;
        *(int64_t *)field = v->i;
        return true;
    case ET_OPT_FLOAT:
        if (!read_number(row, v, &x))
            return false;
        *(double *)field = x;
        return true;
    case ET_OPT_BOOL:
        if (v->type != ET_VALUE_BOOL)
            return false;
        *(bool *)field = v->b;
        return true;
    case ET_OPT_TIME:
        if (!read_time(row, v, &time))
            return false;
        *(struct et_time *)field = time;
        return true;
    case ET_OPT_SECONDS:
        if (!v->text || !read_duration(v->text, &x) || !eti_option_in_range(row, x))
            return false;
        *(double *)field = x;
        return true;
    case ET_OPT_SIZE:
        if (!v->text || !read_size(v->text, &size) ||
            !eti_option_in_range(row, (double)size))
            return false;
        *(int64_t *)field = size;
        return true;
    default:
        return false;
    }
}

et_status
eti_fill_option(const struct eti_fill *fill, const struct et_option *row, void *options,
                const struct et_value *v, const char *path)
{
    void *field = eti_option_field(row, options);
    if (v->type == ET_VALUE_NULL) {
        if (row->type == ET_OPT_TABLE && row->flags & ET_OPT_FALSE)
            *(bool *)field = false;
        if (row->flags & ET_OPT_OPTIONAL)
            eti_option_release(row, field);
        return ET_OK;
    }
    int choice = find_choice(row, v);
    switch (row->type) {
    case ET_OPT_ENUM:
        if (choice < 0)
            return eti_refuse(fill, row, v, path);
        *(int *)field = choice;
        return ET_OK;
    case ET_OPT_TEXT:
    case ET_OPT_PATH:
        if (choice < 0)
            return fill_text(fill, row, field, v, path);
        break;
    case ET_OPT_TIMES:
    case ET_OPT_FLOATS:
    case ET_OPT_TEXTS:
        if (choice < 0)
            return fill_list(fill, row, field, v, path);
        break;
    case ET_OPT_NODE:
        return fill_node(fill, row, field, v, path);
    case ET_OPT_TABLE:
        return fill_table(fill, row, field, v, path);
    case ET_OPT_PART:
        return eti_fill_part(fill, row, field, v, path);
    case ET_OPT_PARTS:
        return eti_fill_parts(fill, row, field, v, path);
    default:
        if (choice < 0)
            return read_simple(row, field, v) || takes_formula(fill, row, v, path)
                       ? ET_OK
                       : eti_refuse(fill, row, v, path);
    }
    eti_option_release(row, field);
    return ET_OK;
}

et_status
eti_fill_default(const struct eti_fill *fill, const struct et_option *row,
                 void *options)
{
    if (row->type == ET_OPT_TABLE) {
        void *field = eti_option_field(row, options);
        if (row->flags & ET_OPT_FALSE)
            *(bool *)field = row->def && strcmp(row->def, "false") == 0;
        return eti_options_from_value(fill, row->sub, field, NULL, row->name);
    }
    if (!row->def)
        return ET_OK;
    struct eti_arena arena;
    struct et_value *v = NULL;
    eti_arena_init(&arena, fill->cx, 1024);
    et_status status = eti_default_value(&arena, row->def, &v);
    struct eti_fill plain = *fill;
    plain.folder = NULL;
    plain.is_brief = true;
    if (status == ET_OK)
        status = eti_fill_option(&plain, row, options, v, row->name);
    eti_arena_release(&arena);
    return status;
}

static bool
is_given(const struct et_value *mapping, const char *name)
{
    const struct et_value *v = eti_value_get(mapping, name);
    return v && v->type != ET_VALUE_NULL;
}

static void
check_required(const struct eti_fill *fill, const struct et_option *row,
               const struct et_value *mapping, const char *path)
{
    struct et_place at = eti_value_place(mapping);
    for (; row && row->name; row++)
        if (row->flags & ET_OPT_REQUIRED && !is_given(mapping, row->name))
            et_diagnostics_add(fill->errors, ET_E_MISSING, &at, path, NULL,
                               "key '%s' is missing", row->name);
}

/* KEY is another name that eti_rename_keys has left, and reported. */
static bool
was_refused(const struct eti_target *targets, int n, const char *key)
{
    char mark;
    const struct et_option *row = NULL;
    for (int i = 0; i < n && !row; i++)
        row = eti_option_also(targets[i].table, key, &mark);
    return row && mark != '~';
}

et_status
eti_fill_mapping(const struct eti_fill *fill, const struct eti_target *targets, int n,
                 const struct et_value *mapping, const char *path)
{
    struct eti_fill here = *fill;
    here.beside = mapping;
    eti_rename_keys(fill, targets, n, mapping, path);
    for (const struct et_value *c = mapping->type == ET_VALUE_MAP ? mapping->first
                                                                  : NULL;
         c; c = c->next) {
        const struct et_option *row = NULL;
        int i = -1;
        while (!row && ++i < n)
            row = eti_option_find(targets[i].table, c->key);
        char at[ETI_PATH_BYTES];
        if (row && row->type != ET_OPT_COUNT)
            ET_TRY(eti_fill_option(&here, row, targets[i].options, c,
                                   eti_path_join(at, path, c->key)));
        else if (!row && !was_refused(targets, n, c->key))
            eti_unknown_key(fill, c, path, targets[0].table,
                            n > 1 ? targets[1].table : NULL);
    }
    for (int i = 0; i < n; i++)
        check_required(fill, targets[i].table, mapping, path);
    return ET_OK;
}

et_status
eti_options_from_value(const struct eti_fill *fill, const struct et_option *table,
                       void *options, const struct et_value *mapping, const char *path)
{
    for (const struct et_option *row = table; row && row->name; row++)
        eti_option_unset(row, eti_option_field(row, options));
    for (const struct et_option *row = table; row && row->name; row++)
        ET_TRY(eti_fill_default(fill, row, options));
    struct eti_target target = {
        .table = table,
        .options = options,
    };
    return mapping ? eti_fill_mapping(fill, &target, 1, mapping, path) : ET_OK;
}
