/* SPDX-License-Identifier: Apache-2.0 */
/* print.c: results: numbers for people, tables of options, JSON. */
#include "config.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "core/base/utf8.h"

void
cli_put_json_as(FILE *to, struct json_t *v, size_t flags)
{
    char *text = json_dumps(v, flags);
    json_decref(v);
    if (text)
        eti_print_json(to, text);
    fputc('\n', to);
    free(text);
}

void
cli_put_json(FILE *to, struct json_t *v)
{
    cli_put_json_as(to, v, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
}

struct json_t *
cli_json_text(const char *text)
{
    char visible[ET_VISIBLE_MAX + 1];
    json_t *v = json_string(text);
    return v ? v : json_string(et_visible(visible, sizeof visible, text, strlen(text)));
}

int
cli_print_json(struct json_t *v)
{
    if (!v)
        return CLI_NO_MEMORY;
    cli_put_json(stdout, v);
    return CLI_OK;
}

const char *
cli_scaled(double x, const char *unit, char *buf, size_t size)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    int i = 0;
    for (; fabs(x) >= 999.5 && i < 5; i++)
        x /= 1000;
    int digits = i == 0 && x == floor(x) ? 0
                 : fabs(x) < 9.995       ? 2
                 : fabs(x) < 99.95       ? 1
                                         : 0;
    snprintf(buf, size, "%.*f %s%s", digits, x, prefixes[i], unit);
    return buf;
}

const char *
cli_bytes(double bytes, char *buf, size_t size)
{
    return cli_scaled(bytes, "B", buf, size);
}

/* 78042 -> "78,042" */
const char *
cli_count(int64_t n, char *buf, size_t size)
{
    char digits[32];
    size_t used = 0;
    int length = snprintf(digits, sizeof digits, "%" PRId64, n);
    for (int i = 0; i < length && used + 2 < size; i++) {
        if (i > 0 && (length - i) % 3 == 0 && digits[i - 1] != '-')
            buf[used++] = ',';
        buf[used++] = digits[i];
    }
    buf[used] = '\0';
    return buf;
}

void
cli_print_options(const struct et_option *table, const char *indent)
{
    char expects[256], also[128];
    for (const struct et_option *o = table; o && o->name; o++) {
        et_print(stdout, "%s%-20s %s%s%s", indent, o->name, o->help ? o->help : "",
                 o->unit ? ", in " : "", o->unit ? o->unit : "");
        et_print(stdout, "\n%s%-20s   %s", indent, "",
                 et_option_expects(o, expects, sizeof expects));
        if (o->def)
            et_print(stdout, "; default %s", o->def);
        else
            et_print(stdout, "; %s",
                     o->flags & ET_OPT_REQUIRED ? "required" : "unset by default");
        if (*et_option_other_names(o, also, sizeof also))
            et_print(stdout, "; also %s", also);
        putchar('\n');
        if (o->type == ET_OPT_TABLE) {
            char deeper[32];
            snprintf(deeper, sizeof deeper, "%s  ", indent);
            cli_print_options(o->sub, deeper);
        }
    }
}

struct json_t *
cli_events_json(uint64_t events)
{
    json_t *list = json_array();
    for (int e = 0; e < ET_EVENT_COUNT; e++)
        if (events & UINT64_C(1) << e)
            json_array_append_new(list, json_string(et_event_name((enum et_event)e)));
    return list;
}

static json_t *
text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

struct json_t *
cli_options_json(const struct et_option *table)
{
    json_t *list = json_array();
    char expects[256], also[128];
    for (const struct et_option *o = table; o && o->name; o++) {
        et_option_other_names(o, also, sizeof also);
        json_t *row =
            json_pack("{s:s, s:o, s:s, s:o, s:b, s:b, s:o, s:s}", "name", o->name,
                      "also", text_or_null(*also ? also : NULL), "expects",
                      et_option_expects(o, expects, sizeof expects), "default",
                      text_or_null(o->def), "required", !!(o->flags & ET_OPT_REQUIRED),
                      "may_change", !!(o->flags & ET_OPT_MAY_CHANGE), "unit",
                      text_or_null(o->unit), "help", o->help ? o->help : "");
        if (row && o->type == ET_OPT_TABLE)
            json_object_set_new(row, "options", cli_options_json(o->sub));
        json_array_append_new(list, row);
    }
    return list;
}
