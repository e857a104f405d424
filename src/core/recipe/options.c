/* SPDX-License-Identifier: Apache-2.0 */
/* options.c: the life of an options struct: defaults, one option at a time, release. */
#include "config.h"

#include "core/base/need.h"
#include "core/base/sized.h"
#include "core/recipe/options.h"

#include <math.h>
#include <string.h>

/* Option fields are released without a context at hand, so their memory names it. */
struct owned {
    struct et_ctx *cx;
    _Alignas(16) char data[];
};

et_status
eti_own(struct et_ctx *cx, size_t bytes, void *out)
{
    void *block;
    ET_TRY(et_alloc(cx, sizeof(struct owned) + bytes, &block));
    struct owned *o = block;
    o->cx = cx;
    *(void **)out = o->data;
    return ET_OK;
}

void
eti_disown(void *block)
{
    if (!block)
        return;
    struct owned *o = (struct owned *)((char *)block - offsetof(struct owned, data));
    et_free(o->cx, o);
}

void *
eti_option_field(const struct et_option *row, const void *options)
{
    return (char *)options + row->offset;
}

const struct et_option *
eti_option_find(const struct et_option *table, const char *name)
{
    for (; table && table->name; table++)
        if (strcmp(table->name, name) == 0)
            return table;
    return NULL;
}

/* ---- unset and release ---- */

void
eti_option_unset(const struct et_option *row, void *field)
{
    switch (row->type) {
    case ET_OPT_INT:
    case ET_OPT_SIZE:
        *(int64_t *)field = ET_INT_UNSET;
        break;
    case ET_OPT_FLOAT:
    case ET_OPT_SECONDS:
        *(double *)field = NAN;
        break;
    case ET_OPT_BOOL:
        *(bool *)field = false;
        break;
    case ET_OPT_ENUM:
        *(int *)field = -1;
        break;
    case ET_OPT_TIME:
        *(struct et_time *)field = ET_TIME_UNSET;
        break;
    case ET_OPT_TEXT:
    case ET_OPT_PATH:
        *(char **)field = NULL;
        break;
    case ET_OPT_TIMES:
        *(struct et_times *)field = (struct et_times){0};
        break;
    case ET_OPT_FLOATS:
        *(struct et_floats *)field = (struct et_floats){0};
        break;
    case ET_OPT_TEXTS:
        *(struct et_texts *)field = (struct et_texts){0};
        break;
    case ET_OPT_NODE:
        *(const struct et_value **)field = NULL;
        break;
    case ET_OPT_PART:
        *(struct et_part *)field = (struct et_part){0};
        break;
    case ET_OPT_PARTS:
        *(struct et_parts *)field = (struct et_parts){0};
        break;
    case ET_OPT_TABLE:
    case ET_OPT_COUNT:
        break;
    }
}

static void
release_texts(struct et_texts *texts)
{
    for (int i = 0; i < texts->n; i++)
        eti_disown(texts->v[i]);
    eti_disown(texts->v);
}

void
eti_value_free(const struct et_value *v)
{
    if (!v || !v->owned)
        return;
    struct eti_arena *arena = v->owned;
    eti_arena_release(arena);
    eti_disown(arena);
}

void
eti_part_release(const struct et_option *row, struct et_part *part)
{
    if (part->options)
        et_options_release(part->component->options, part->options);
    if (part->extra)
        et_options_release(row->sub, part->extra);
    eti_disown(part->options);
    eti_disown(part->extra);
    *part = (struct et_part){0};
}

void
eti_option_release(const struct et_option *row, void *field)
{
    switch (row->type) {
    case ET_OPT_TEXT:
    case ET_OPT_PATH:
        eti_disown(*(char **)field);
        break;
    case ET_OPT_TIMES:
        eti_disown(((struct et_times *)field)->v);
        break;
    case ET_OPT_FLOATS:
        eti_disown(((struct et_floats *)field)->v);
        break;
    case ET_OPT_TEXTS:
        release_texts(field);
        break;
    case ET_OPT_NODE:
        eti_value_free(*(const struct et_value **)field);
        break;
    case ET_OPT_TABLE:
        et_options_release(row->sub, field);
        break;
    case ET_OPT_PART:
        eti_part_release(row, field);
        break;
    case ET_OPT_PARTS: {
        struct et_parts *parts = field;
        for (int i = 0; i < parts->n; i++)
            eti_part_release(row, &parts->v[i]);
        eti_disown(parts->v);
        break;
    }
    default:
        break;
    }
    eti_option_unset(row, field);
}

void
et_options_release(const struct et_option *table, void *options)
{
    if (!options)
        return;
    for (; table && table->name; table++)
        eti_option_release(table, eti_option_field(table, options));
}

/* ---- defaults ---- */

static const struct eti_source default_source = {.name = "default"};

et_status
eti_default_value(struct eti_arena *arena, const char *text, struct et_value **out)
{
    if (text[0] && strchr("[{\"'", text[0])) {
        struct et_diagnostics errors = {0};
        ET_TRY(eti_yaml_parse(arena, text, strlen(text), &default_source,
                              &eti_yaml_limits, &errors, out));
        if (errors.total)
            return ET_FAIL(arena->cx, ET_EINVAL, "default %s: %s", text,
                           errors.v[0].message);
        return ET_OK;
    }
    struct et_value *v = eti_value_new(arena, ET_VALUE_STRING, &default_source, text);
    if (!v)
        return ET_ENOMEM;
    eti_value_resolve_plain(v);
    *out = v;
    return ET_OK;
}

et_status
et_options_init(struct et_ctx *cx, const struct et_option *table, void *options)
{
    ETI_NEED(cx, cx);
    if (table && table->name)
        ETI_NEED(cx, options);
    struct et_diagnostics errors = {0};
    struct eti_fill fill = {
        .cx = cx,
        .errors = &errors,
    };
    for (const struct et_option *row = table; row && row->name; row++)
        eti_option_unset(row, eti_option_field(row, options));
    et_status status = ET_OK;
    for (; table && table->name && status == ET_OK; table++)
        status = eti_fill_default(&fill, table, options);
    if (status == ET_OK && errors.total)
        status = ET_FAIL(cx, ET_EINVAL, "default of %s: %s", errors.v[0].path,
                         errors.v[0].message);
    return status;
}

/* ---- one option ---- */

et_status
eti_value_read(struct et_ctx *cx, const char *text, struct et_diagnostics *errors,
               struct et_value **out)
{
    static const struct eti_source source = {.origin = ETI_ORIGIN_COMMAND_LINE};
    struct eti_arena *arena;
    ET_TRY(eti_own(cx, sizeof *arena, &arena));
    eti_arena_init(arena, cx, 4096);
    et_status status = eti_yaml_parse(arena, text, strlen(text), &source,
                                      &eti_yaml_limits, errors, out);
    if (*out) {
        (*out)->owned = arena;
        return status;
    }
    eti_arena_release(arena);
    eti_disown(arena);
    return status;
}

/* Bytes of a field that holds options of its own; 0 for other types. */
static size_t
nested_size(const struct et_option *row)
{
    return row->type == ET_OPT_TABLE   ? row->sub_size
           : row->type == ET_OPT_PART  ? sizeof(struct et_part)
           : row->type == ET_OPT_PARTS ? sizeof(struct et_parts)
                                       : 0;
}

static void
swap_bytes(void *a, void *b, size_t n)
{
    char *x = a, *y = b;
    for (size_t i = 0; i < n; i++) {
        char c = x[i];
        x[i] = y[i];
        y[i] = c;
    }
}

/* Fills a nested field beside OPTIONS first: a part of it may be wrong. */
static et_status
set_nested(const struct eti_fill *fill, const struct et_option *row, void *options,
           const struct et_value *v)
{
    struct et_option beside = *row;
    beside.offset = 0;
    size_t bytes = nested_size(row);
    void *now;
    ET_TRY(eti_own(fill->cx, bytes, &now));
    et_status status = eti_fill_default(fill, &beside, now);
    if (status == ET_OK)
        status = eti_fill_option(fill, &beside, now, v, row->name);
    if (status == ET_OK && !fill->errors->total)
        swap_bytes(eti_option_field(row, options), now, bytes);
    eti_option_release(&beside, now);
    eti_disown(now);
    return status;
}

et_status
et_options_set(struct et_ctx *cx, const struct et_option *table, void *options,
               const char *name, const char *text)
{
    ETI_NEED(cx, cx, name, text);
    struct et_diagnostics errors = {0};
    struct eti_fill fill = {
        .cx = cx,
        .errors = &errors,
        .is_brief = true,
    };
    struct et_value *v;
    ET_TRY(eti_value_read(cx, text, &errors, &v));
    if (v)
        v->key = name;
    const struct et_option *row = v ? eti_rename_key(table, v) : NULL;
    et_status status = ET_OK;
    if (v && row && nested_size(row)) {
        status = set_nested(&fill, row, options, v);
    } else if (v && row) {
        status = eti_fill_option(&fill, row, options, v, name);
    } else if (v) {
        eti_unknown_key(&fill, v, "", table, NULL);
    }
    eti_value_free(v);
    if (status == ET_OK && errors.total)
        status = ET_FAIL(cx, ET_EINVAL, "%s%s%s", errors.v[0].path,
                         errors.v[0].path[0] ? ": " : "", errors.v[0].message);
    return status;
}

/* ---- a struct of its own ---- */

et_status
et_options_new(struct et_ctx *cx, const struct et_component *component,
               const char *const *set, void **out)
{
    ETI_NEED(cx, out);
    void *options = NULL;
    *out = NULL;
    ET_TRY(eti_need_class(cx, "et_options_new", component));
    ETI_NEED(cx, cx);
    if (component->options_size == 0)
        return set && *set ? ET_FAIL(cx, ET_EINVAL, "%s has no options, '%s' neither",
                                     component->name, *set)
                           : ET_OK;
    ET_TRY(eti_own(cx, component->options_size, &options));
    et_status status = et_options_init(cx, component->options, options);
    for (; status == ET_OK && set && *set; set += 2)
        status = set[1]
                     ? et_options_set(cx, component->options, options, set[0], set[1])
                     : ET_FAIL(cx, ET_EINVAL, "%s: no text behind '%s'",
                               component->name, set[0]);
    if (status != ET_OK)
        et_options_free(component, &options);
    *out = options;
    return status;
}

void
et_options_free(const struct et_component *component, void **options)
{
    if (!component || !options)
        return;
    if (*options)
        et_options_release(component->options, *options);
    eti_disown(*options);
    *options = NULL;
}
