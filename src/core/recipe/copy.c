/* SPDX-License-Identifier: Apache-2.0 */
/* copy.c: option structs that are like others and own what they hold. */
#include "config.h"

#include <string.h>

#include "core/base/need.h"
#include "core/recipe/options.h"

static et_status
copy_bytes(struct et_ctx *cx, const void *from, size_t bytes, void *out)
{
    void *own;
    ET_TRY(eti_own(cx, bytes, &own));
    if (bytes)
        memcpy(own, from, bytes);
    memcpy(out, &own, sizeof own);
    return ET_OK;
}

static et_status
copy_text(struct et_ctx *cx, const char *from, char **out)
{
    return from ? copy_bytes(cx, from, strlen(from) + 1, out) : ET_OK;
}

static et_status
copy_texts(struct et_ctx *cx, const struct et_texts *from, struct et_texts *to)
{
    ET_TRY(eti_own(cx, (size_t)from->n * sizeof *to->v, &to->v));
    for (; to->n < from->n; to->n++)
        ET_TRY(copy_text(cx, from->v[to->n], &to->v[to->n]));
    return ET_OK;
}

et_status
eti_value_own(struct et_ctx *cx, const struct et_value *v,
              struct et_diagnostics *errors, struct et_value **out)
{
    struct eti_text t = {.cx = cx};
    *out = NULL;
    eti_text_add_value(&t, v);
    et_status status = t.status;
    if (status == ET_OK)
        status = eti_value_read(cx, t.text, errors, out);
    et_free(cx, t.text);
    return status;
}

/* A recipe's tree stays the recipe's, which lasts as long as the run. */
static et_status
copy_node(struct et_ctx *cx, const struct et_value *from, const struct et_value **to)
{
    struct et_diagnostics errors = {0};
    struct et_value *own = NULL;
    if (from && from->owned)
        ET_TRY(eti_value_own(cx, from, &errors, &own));
    *to = own ? own : from;
    return ET_OK;
}

static et_status
copy_nested(struct et_ctx *cx, const struct et_option *table, size_t size,
            const void *from, void **out)
{
    if (!from)
        return ET_OK;
    void *own;
    ET_TRY(eti_own(cx, size, &own));
    et_status status = et_options_copy(cx, table, size, from, own);
    if (status != ET_OK)
        eti_disown(own);
    else
        *out = own;
    return status;
}

/* TO is empty; half of a copy is released as any part is. */
static et_status
copy_part(struct et_ctx *cx, const struct et_option *row, const struct et_part *from,
          struct et_part *to)
{
    const struct et_component *c = from->component;
    *to = (struct et_part){.component = c, .off = from->off, .value = from->value};
    if (c)
        ET_TRY(
            copy_nested(cx, c->options, c->options_size, from->options, &to->options));
    return copy_nested(cx, row->sub, row->sub_size, from->extra, &to->extra);
}

static et_status
copy_parts(struct et_ctx *cx, const struct et_option *row, const struct et_parts *from,
           struct et_parts *to)
{
    if (!from->v)
        return ET_OK;
    ET_TRY(eti_own(cx, (size_t)from->n * sizeof *to->v, &to->v));
    for (int i = 0; i < from->n; i++, to->n++) {
        et_status status = copy_part(cx, row, &from->v[i], &to->v[i]);
        if (status != ET_OK) {
            eti_part_release(row, &to->v[i]);
            return status;
        }
    }
    return ET_OK;
}

/* TO has been unset where FROM owns something. */
static et_status
copy_field(struct et_ctx *cx, const struct et_option *row, const void *from, void *to)
{
    switch (row->type) {
    case ET_OPT_TEXT:
    case ET_OPT_PATH:
        return copy_text(cx, *(char *const *)from, to);
    case ET_OPT_TIMES: {
        const struct et_times *list = from;
        ((struct et_times *)to)->n = list->n;
        return list->v ? copy_bytes(cx, list->v, (size_t)list->n * sizeof *list->v, to)
                       : ET_OK;
    }
    case ET_OPT_FLOATS: {
        const struct et_floats *list = from;
        ((struct et_floats *)to)->n = list->n;
        return list->v ? copy_bytes(cx, list->v, (size_t)list->n * sizeof *list->v, to)
                       : ET_OK;
    }
    case ET_OPT_TEXTS:
        return ((const struct et_texts *)from)->v ? copy_texts(cx, from, to) : ET_OK;
    case ET_OPT_NODE:
        return copy_node(cx, *(const struct et_value *const *)from, to);
    case ET_OPT_TABLE:
        return et_options_copy(cx, row->sub, row->sub_size, from, to);
    case ET_OPT_PART:
        return copy_part(cx, row, from, to);
    case ET_OPT_PARTS:
        return copy_parts(cx, row, from, to);
    default:
        return ET_OK; /* held by value */
    }
}

static bool
owns(const struct et_option *row)
{
    switch (row->type) {
    case ET_OPT_TEXT:
    case ET_OPT_PATH:
    case ET_OPT_TIMES:
    case ET_OPT_FLOATS:
    case ET_OPT_TEXTS:
    case ET_OPT_NODE:
    case ET_OPT_PART:
    case ET_OPT_PARTS:
        return true;
    default:
        return false;
    }
}

/* What FROM owns is not TO's, also in tables within it. */
static void
unset_owned(const struct et_option *table, void *to)
{
    for (; table && table->name; table++) {
        if (owns(table))
            eti_option_unset(table, eti_option_field(table, to));
        else if (table->type == ET_OPT_TABLE)
            unset_owned(table->sub, eti_option_field(table, to));
    }
}

et_status
et_options_copy(struct et_ctx *cx, const struct et_option *table, size_t size,
                const void *from, void *to)
{
    if (size > 0)
        ETI_NEED(cx, from, to);
    memcpy(to, from, size);
    unset_owned(table, to);
    for (const struct et_option *row = table; row && row->name; row++) {
        et_status status =
            copy_field(cx, row, eti_option_field(row, from), eti_option_field(row, to));
        if (status != ET_OK) {
            et_options_release(table, to);
            return status;
        }
    }
    return ET_OK;
}

et_status
eti_options_new(struct et_ctx *cx, const struct et_component *c, const void *from,
                void **out)
{
    *out = NULL;
    if (c->options_size == 0)
        return ET_OK;
    ET_TRY(et_alloc(cx, c->options_size, out));
    et_status status =
        from ? et_options_copy(cx, c->options, c->options_size, from, *out)
             : et_options_init(cx, c->options, *out);
    if (status != ET_OK)
        eti_options_free(cx, c, out);
    return status;
}

void
eti_options_free(struct et_ctx *cx, const struct et_component *c, void **options)
{
    if (*options)
        et_options_release(c->options, *options);
    et_free(cx, *options);
    *options = NULL;
}
