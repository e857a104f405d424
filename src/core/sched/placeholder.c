/* SPDX-License-Identifier: Apache-2.0 */
/* placeholder.c: see placeholder.h. */
#include "core/sched/placeholder.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/sched/formula.h"

const struct eti_placeholders eti_nothing_known = {NAN, NAN, NAN};

enum { NAMES = 5, LONGEST = 512 };

/* Those that are there, with what is known of them. */
static void
list(const struct eti_placeholders *p, struct eti_variable v[NAMES])
{
    const struct eti_variable all[NAMES] = {
        {"NUM_EPOCHS", p->epochs},
        {"NUM_UPDATE_STEPS_PER_EPOCH", p->train_batches},
        {"PER_PROCESS_NUM_UPDATE_STEPS_PER_EPOCH", p->train_batches},
        {"TRAIN_DATALOADER_LEN", p->train_batches},
        {"EVAL_DATALOADER_LEN", p->eval_batches},
    };
    memcpy(v, all, sizeof all);
}

bool
eti_is_formula(const char *text)
{
    return text && (strstr(text, "NUM_") || strstr(text, "_DATALOADER"));
}

/* The unit that TEXT ends with, and how much of TEXT stands before it. */
static enum et_time_unit
find_unit(const char *text, size_t *n)
{
    size_t end = strlen(text);
    while (end > 0 && isspace((unsigned char)text[end - 1]))
        end--;
    size_t begin = end;
    while (begin > 0 && isalpha((unsigned char)text[begin - 1]))
        begin--;
    *n = begin;
    for (int u = 0; u < ET_TIME_UNIT_COUNT; u++) {
        const char *suffix = et_time_unit_suffix((enum et_time_unit)u);
        if (strlen(suffix) == end - begin &&
            strncmp(suffix, text + begin, end - begin) == 0)
            return (enum et_time_unit)u;
    }
    return ET_TIME_UNIT_COUNT;
}

/* The name of a placeholder of FORMULA that has no value: one whose value is what makes
 * the result no number. */
static const char *
find_unknown(const char *formula, const struct eti_variable v[NAMES])
{
    for (int i = 0; i < NAMES; i++) {
        const char *at = strstr(formula, v[i].name);
        bool inside =
            at && at > formula && (isalnum((unsigned char)at[-1]) || at[-1] == '_');
        if (at && !inside && isnan(v[i].value))
            return v[i].name;
    }
    return NULL;
}

static et_status
refuse(struct et_error *why, const char *what, const char *text)
{
    snprintf(why->message, sizeof why->message, "'%.200s': %s", text, what);
    return ET_EINVAL;
}

et_status
eti_formula_text(const char *text, enum et_option_type type,
                 const struct eti_placeholders *p, char *out, size_t size, bool *known,
                 struct et_error *why)
{
    struct eti_variable v[NAMES];
    char formula[LONGEST];
    enum et_time_unit unit = ET_TIME_UNIT_COUNT;
    size_t n = strlen(text);
    double x;
    *known = true;
    if (type == ET_OPT_TIME)
        unit = find_unit(text, &n);
    if (n >= sizeof formula)
        return refuse(why, "is longer than a formula may be", text);
    if (type == ET_OPT_TIME && !et_time_is_set((struct et_time){0, unit}))
        return refuse(why, "a unit is missing at the end, such as ba or ep", text);
    snprintf(formula, sizeof formula, "%.*s", (int)n, text);
    list(p, v);
    ET_TRY(eti_formula(formula, v, NAMES, &x, why));
    const char *unknown = isfinite(x) ? NULL : find_unknown(formula, v);
    *known = !unknown;
    if (unknown)
        snprintf(why->message, sizeof why->message, "%s is not known", unknown);
    else if (!isfinite(x))
        snprintf(why->message, sizeof why->message, "'%.200s' is %g", text, x);
    if (!isfinite(x))
        return ET_EINVAL;
    if (type == ET_OPT_TIME && unit != ET_TIME_DURATION)
        x = trunc(x);
    if (type == ET_OPT_TIME && x < 0)
        return refuse(why, "comes to less than 0", text);
    snprintf(out, size, "%.17g%s", x,
             type == ET_OPT_TIME ? et_time_unit_suffix(unit) : "");
    return ET_OK;
}
