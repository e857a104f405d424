/* SPDX-License-Identifier: Apache-2.0 */
/* evaluators.c: on what a trainer evaluates, and with which metrics.
 *
 * Source: spec/trainer.md 7.6. */
#include "config.h"

#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "core/trainer/trainer_impl.h"

enum { NAME = 64, NAMES = 512 };

/* The first of LIST's names, which blanks separate; returns the rest, NULL at the
 * end. */
static const char *
take_name(const char *list, char name[NAME])
{
    size_t length = strcspn(list, " ");
    if (length == 0)
        return NULL;
    snprintf(name, NAME, "%.*s", (int)length, list);
    return list + length + strspn(list + length, " ");
}

/* A regular expression may match anywhere, in any case. */
static et_status
matches(struct et_trainer *t, const char *pattern, const char *name, bool *out)
{
    regex_t re;
    *out = false;
    if (regcomp(&re, pattern, REG_EXTENDED | REG_ICASE | REG_NOSUB) != 0)
        return ET_FAIL(t->state.cx, ET_EINVAL, "'%s' is not a regular expression",
                       pattern);
    *out = regexec(&re, name, 0, NULL, 0) == 0;
    regfree(&re);
    return ET_OK;
}

/* Does PATTERN match any name of LIST? */
static et_status
matches_any(struct et_trainer *t, const char *pattern, const char *list, bool *out)
{
    char name[NAME];
    *out = false;
    while (!*out && (list = take_name(list, name)))
        ET_TRY(matches(t, pattern, name, out));
    return ET_OK;
}

/* Appends to CHOSEN the names of LIST that any of PATTERNS matches, but none that
 * already chose among EXCEPT. */
static et_status
choose(struct et_trainer *t, const char *const *patterns, const char *list,
       const char *except, char chosen[NAMES])
{
    char name[NAME];
    while ((list = take_name(list, name))) {
        bool keep = false;
        for (int i = 0; patterns[i] && !keep; i++) {
            bool spent;
            ET_TRY(matches_any(t, patterns[i], except, &spent));
            if (!spent)
                ET_TRY(matches(t, patterns[i], name, &keep));
        }
        size_t used = strlen(chosen);
        if (keep)
            snprintf(chosen + used, NAMES - used, "%s%s", used ? " " : "", name);
    }
    return ET_OK;
}

/* Of the run's own metrics those that any of PATTERNS matches; NULL: all. */
static et_status
add_own(struct et_trainer *t, const char *const *patterns, struct eti_evaluator *e)
{
    for (int i = 0; i < t->config.n_metrics; i++) {
        const struct et_metric_use *use = &t->config.metrics[i];
        bool keep = !patterns;
        for (int k = 0; patterns && patterns[k] && !keep; k++)
            ET_TRY(matches(t, patterns[k], use->type->info.name, &keep));
        if (keep)
            ET_TRY(eti_metrics_add(&t->state, use, e->metric, &e->n_metrics));
    }
    return ET_OK;
}

/* Without expressions the task's usual metrics. One that matches none of them chooses
 * among those that make sense besides. */
static et_status
select_metrics(struct et_trainer *t, struct eti_evaluator *e)
{
    enum et_task task = t->state.model->task;
    const char *usual = et_task_metrics(task, false);
    const char *const *patterns = e->config.metrics;
    char chosen[NAMES] = "";
    if (!patterns || !patterns[0]) {
        ET_TRY(eti_metrics_new(&t->state, usual, e->metric, &e->n_metrics));
        return add_own(t, NULL, e);
    }
    ET_TRY(choose(t, patterns, usual, "", chosen));
    ET_TRY(choose(t, patterns, et_task_more_metrics(task), usual, chosen));
    ET_TRY(eti_metrics_new(&t->state, chosen, e->metric, &e->n_metrics));
    ET_TRY(add_own(t, patterns, e));
    if (e->n_metrics == 0)
        return ET_FAIL(t->state.cx, ET_EINVAL, "no metric of evaluator '%s' matches",
                       e->config.label);
    return ET_OK;
}

static void
warn_of_label(struct et_trainer *t, const char *label)
{
    for (int i = 0; i < t->evaluation.n; i++)
        if (strcmp(t->evaluation.v[i].config.label, label) == 0) {
            et_report(t->state.cx, ET_LOG_WARN,
                      "two evaluators are called '%s': the later one's metrics stand",
                      label);
            return;
        }
}

/* 0 in a unit that somebody has chosen is likely to have been meant as never. */
static et_status
choose_interval(struct et_trainer *t, struct eti_evaluator *e)
{
    struct et_time *interval = &e->config.interval;
    char text[ET_TIME_TEXT_BYTES];
    if (!eti_is_given(*interval) && et_time_is_set(*interval) &&
        interval->unit != ET_TIME_ITERATION)
        return ET_FAIL(t->state.cx, ET_EINVAL,
                       "evaluator '%s': an interval of %s: ET_NEVER is never, and one "
                       "that is not set is the trainer's",
                       e->config.label, et_time_text(*interval, text, sizeof text));
    if (!eti_is_given(*interval))
        *interval = t->config.eval_interval;
    if (!eti_is_given(*interval))
        *interval = ET_EPOCHS(1);
    return ET_OK;
}

et_status
eti_evaluators_add(struct et_trainer *t, const struct et_evaluator *evaluators, int n)
{
    if (t->evaluation.n + n > ETI_MAX_EVALUATORS)
        return ET_FAIL(t->state.cx, ET_EINVAL, "more than %d evaluators",
                       ETI_MAX_EVALUATORS);
    for (int i = 0; i < n; i++) {
        if (!evaluators[i].loader)
            return ET_FAIL(t->state.cx, ET_EINVAL, "evaluator %d has no loader", i);
        warn_of_label(t, evaluators[i].label ? evaluators[i].label : "eval");
        struct eti_evaluator *e = &t->evaluation.v[t->evaluation.n++];
        *e = (struct eti_evaluator){.config = evaluators[i], .last_batch = -1};
        if (!e->config.label)
            e->config.label = "eval";
        ET_TRY(choose_interval(t, e));
        ET_TRY(select_metrics(t, e));
    }
    return ET_OK;
}

void
eti_evaluators_drop(struct et_trainer *t, int first)
{
    for (; t->evaluation.n > first; t->evaluation.n--) {
        struct eti_evaluator *e = &t->evaluation.v[t->evaluation.n - 1];
        for (int k = 0; k < e->n_metrics; k++)
            et_metric_free(&e->metric[k]);
    }
}
