/* SPDX-License-Identifier: Apache-2.0 */
/* target.c: "accuracy>=.765": a metric's full name, or its last part in any case where
 * only one fits; > >= < <=; a number. */
#include "config.h"

#include <math.h>
#include <stdio.h>
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

struct goal {
    size_t length; /* of the metric's name, which the text begins with */
    bool less, equal;
    double bound;
};

static et_status
parse(struct et_trainer *t, struct goal *out)
{
    const char *text = t->config.target;
    size_t length = strcspn(text, "<> ");
    const char *op = text + length + strspn(text + length, " ");
    bool equal = op[0] && op[1] == '=';
    char *end = NULL;
    *out = (struct goal){.length = length, .less = *op == '<', .equal = equal};
    if (*op == '<' || *op == '>')
        out->bound = strtod(op + 1 + equal, &end);
    if (length == 0 || !end || end == op + 1 + equal || *end)
        return ET_FAIL(t->state.cx, ET_EINVAL,
                       "target '%s' is not METRIC>=NUMBER or METRIC<=NUMBER", text);
    return ET_OK;
}

static et_status
judge_count(struct et_trainer *t, size_t length, int found)
{
    if (found == 1)
        return ET_OK;
    return ET_FAIL(t->state.cx, ET_EINVAL, "target: %d metrics are called '%.*s'%s",
                   found, (int)length, t->config.target,
                   found ? "; give the full name" : "");
}

/* Metric K of evaluator I: averages may be evaluated besides, under other labels. */
static void
metric_name(const struct et_trainer *t, int i, int k, char name[ET_METRIC_NAME])
{
    snprintf(name, ET_METRIC_NAME, "metrics/%s/%s", t->evaluation.v[i].config.label,
             et_metric_class(t->evaluation.v[i].metric[k])->info.name);
}

/* Checks the target's name before the first batch: no run is to train towards a metric
 * that does not exist. */
et_status
eti_target_init(struct et_trainer *t)
{
    char name[ET_METRIC_NAME];
    struct goal goal;
    int found = 0;
    if (!t->config.target)
        return ET_OK;
    ET_TRY(parse(t, &goal));
    for (int i = 0; i < t->evaluation.n; i++)
        for (int k = 0; k < t->evaluation.v[i].n_metrics; k++) {
            metric_name(t, i, k, name);
            found += fits(name, t->config.target, goal.length);
        }
    return judge_count(t, goal.length, found);
}

et_status
eti_target_check(struct et_trainer *t, bool *reached)
{
    char name[ET_METRIC_NAME];
    double value = NAN;
    struct goal goal;
    int found = 0;
    ET_TRY(parse(t, &goal));
    for (int i = 0; i < t->evaluation.n; i++)
        for (int k = 0; k < t->evaluation.v[i].n_metrics; k++) {
            metric_name(t, i, k, name);
            found += fits(name, t->config.target, goal.length) &&
                     et_state_metric(&t->state, name, &value);
        }
    *reached = found == 1 && (goal.less ? value < goal.bound : value > goal.bound);
    *reached |= found == 1 && goal.equal && value == goal.bound;
    return ET_OK;
}
