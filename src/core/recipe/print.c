/* SPDX-License-Identifier: Apache-2.0 */
/* print.c: options as YAML text on one line. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/need.h"
#include "core/recipe/options.h"

static void
add_part(struct eti_text *t, const struct et_option *row, const struct et_part *part)
{
    if (!part->component) {
        eti_text_add(t, "null");
        return;
    }
    eti_text_add(t, "{name: ");
    eti_text_add_scalar(t, part->component->name);
    const struct eti_target targets[] = {
        {.table = part->component->options, .options = part->options},
        {.table = row->sub, .options = part->extra},
    };
    for (int i = 0; i < 2; i++)
        for (const struct et_option *o = targets[i].table; o && o->name; o++) {
            if (i > 0 && eti_option_find(targets[0].table, o->name))
                continue; /* as it is read: the component's own goes first */
            eti_text_add(t, ", %s: ", o->name);
            eti_text_add_option(t, o, targets[i].options);
        }
    eti_text_add(t, "}");
}

static void
add_times(struct eti_text *t, const struct et_times *times)
{
    char buf[ET_TIME_TEXT_BYTES];
    for (int i = 0; i < times->n; i++)
        eti_text_add(t, "%s%s", i ? ", " : "",
                     et_time_text(times->v[i], buf, sizeof buf));
}

static void
add_list(struct eti_text *t, const struct et_option *row, const void *field)
{
    eti_text_add(t, "[");
    if (row->type == ET_OPT_TIMES)
        add_times(t, field);
    if (row->type == ET_OPT_FLOATS)
        for (int i = 0; i < ((const struct et_floats *)field)->n; i++) {
            eti_text_add(t, i ? ", " : "");
            eti_text_add_number(t, ((const struct et_floats *)field)->v[i]);
        }
    if (row->type == ET_OPT_TEXTS)
        for (int i = 0; i < ((const struct et_texts *)field)->n; i++) {
            eti_text_add(t, i ? ", " : "");
            eti_text_add_scalar(t, ((const struct et_texts *)field)->v[i]);
        }
    if (row->type == ET_OPT_PARTS)
        for (int i = 0; i < ((const struct et_parts *)field)->n; i++) {
            eti_text_add(t, i ? ", " : "");
            add_part(t, row, &((const struct et_parts *)field)->v[i]);
        }
    eti_text_add(t, "]");
}

et_status
eti_table_is_brief(struct et_ctx *cx, const struct et_option *row, const void *field,
                   bool *out)
{
    *out = row->flags & ET_OPT_BRIEF;
    for (const struct et_option *o = row->sub + 1; *out && o->name; o++) {
        struct eti_text text = {.cx = cx};
        eti_text_add_option(&text, o, field);
        et_status status = text.status;
        *out = status == ET_OK && strcmp(text.text, o->def ? o->def : "null") == 0;
        et_free(cx, text.text);
        ET_TRY(status);
    }
    return ET_OK;
}

static void
add_table(struct eti_text *t, const struct et_option *row, const void *field)
{
    bool is_brief;
    if (row->flags & ET_OPT_FALSE && *(const bool *)field) {
        eti_text_add(t, "false");
        return;
    }
    if (t->status == ET_OK)
        t->status = eti_table_is_brief(t->cx, row, field, &is_brief);
    if (t->status != ET_OK)
        return;
    if (is_brief) {
        eti_text_add_option(t, row->sub, field);
        return;
    }
    eti_text_add(t, "{");
    for (const struct et_option *o = row->sub; o && o->name; o++) {
        eti_text_add(t, "%s%s: ", o == row->sub ? "" : ", ", o->name);
        eti_text_add_option(t, o, field);
    }
    eti_text_add(t, "}");
}

/* What stands for "not set". */
static void
add_unset(struct eti_text *t, const struct et_option *row)
{
    eti_text_add(t, "%s",
                 row->choices && row->type != ET_OPT_ENUM ? row->choices[0] : "null");
}

void
eti_text_add_option(struct eti_text *t, const struct et_option *row,
                    const void *options)
{
    const void *field = eti_option_field(row, options);
    char buf[ET_TIME_TEXT_BYTES];
    switch (row->type) {
    case ET_OPT_INT:
    case ET_OPT_SIZE: {
        int64_t i = *(const int64_t *)field;
        if (i == ET_INT_UNSET)
            add_unset(t, row);
        else if (row->type == ET_OPT_INT)
            eti_text_add(t, "%lld", (long long)i);
        else
            eti_text_add_size(t, i);
        break;
    }
    case ET_OPT_FLOAT:
    case ET_OPT_SECONDS: {
        double x = *(const double *)field;
        if (isnan(x))
            add_unset(t, row);
        else if (row->type == ET_OPT_FLOAT)
            eti_text_add_number(t, x);
        else
            eti_text_add_duration(t, x);
        break;
    }
    case ET_OPT_BOOL:
        eti_text_add(t, *(const bool *)field ? "true" : "false");
        break;
    case ET_OPT_ENUM: {
        int choice = *(const int *)field;
        eti_text_add(t, "%s", choice < 0 ? "null" : row->choices[choice]);
        break;
    }
    case ET_OPT_TEXT:
    case ET_OPT_PATH:
        if (*(char *const *)field)
            eti_text_add_scalar(t, *(char *const *)field);
        else
            add_unset(t, row);
        break;
    case ET_OPT_TIME:
        if (et_time_is_set(*(const struct et_time *)field))
            eti_text_add(t, "%s",
                         et_time_text(*(const struct et_time *)field, buf, sizeof buf));
        else
            add_unset(t, row);
        break;
    case ET_OPT_NODE:
        if (*(const struct et_value *const *)field)
            eti_text_add_value(t, *(const struct et_value *const *)field);
        else
            add_unset(t, row);
        break;
    case ET_OPT_PART:
        add_part(t, row, field);
        break;
    case ET_OPT_TABLE:
        add_table(t, row, field);
        break;
    default:
        add_list(t, row, field);
    }
}

et_status
et_option_text(struct et_ctx *cx, const struct et_option *row, const void *options,
               char **out)
{
    ETI_NEED(cx, cx, row, options, out);
    struct eti_text t = {.cx = cx};
    eti_text_add_option(&t, row, options);
    *out = t.text;
    if (t.status != ET_OK) {
        et_free(cx, t.text);
        *out = NULL;
    }
    return t.status;
}
