/* target.c: "accuracy>=.765": a metric's full name, or its last part in any case where
 * only one fits; > >= < <=; a number. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/trainer/trainer_impl.h"

static bool
fits(const char *metric, const char *name, size_t length)
{
    const char *slash = strrchr(metric, '/'), *last = slash ? slash + 1 : metric;
    return (strlen(metric) == length && strncmp(metric, name, length) == 0) ||
           (strlen(last) == length && strncasecmp(last, name, length) == 0);
}

static et_status
find(struct et_trainer *t, const char *name, size_t length, double *value)
{
    struct et_state *s = &t->state;
    int found = 0;
    for (int i = 0; i < s->n_eval_metrics; i++)
        if (fits(t->eval_value[i].name, name, length)) {
            *value = t->eval_value[i].value;
            found++;
        }
    if (found == 1)
        return ET_OK;
    return ET_FAIL(s->cx, ET_EINVAL, "target: %d metrics are called '%.*s'%s", found,
                   (int)length, name, found ? "; give the full name" : "");
}

et_status
eti_target_check(struct et_trainer *t, bool *reached)
{
    const char *text = t->config.target;
    size_t length = strcspn(text, "<> ");
    const char *op = text + length + strspn(text + length, " ");
    bool less = *op == '<', equal = op[0] && op[1] == '=';
    char *end = NULL;
    double bound = 0, value = 0;
    if (*op == '<' || *op == '>')
        bound = strtod(op + 1 + equal, &end);
    if (length == 0 || !end || end == op + 1 + equal || *end)
        return ET_FAIL(t->state.cx, ET_EINVAL,
                       "target '%s' is not METRIC>=NUMBER or METRIC<=NUMBER", text);
    ET_TRY(find(t, text, length, &value));
    *reached = less ? value < bound || (equal && value == bound)
                    : value > bound || (equal && value == bound);
    return ET_OK;
}
