/* evaluators.c: on what a trainer evaluates, and with which metrics.
 *
 * Source: spec/trainer.md 7.6. */
#include "config.h"

#include <regex.h>
#include <string.h>

#include "core/trainer/trainer_impl.h"

/* An empty list keeps all; else any regular expression that matches anywhere, in any
 * case, keeps a metric. */
static et_status
keeps(struct et_trainer *t, const char *const *patterns, const char *name, bool *keep)
{
    *keep = !patterns || !patterns[0];
    for (int i = 0; patterns && patterns[i] && !*keep; i++) {
        regex_t re;
        if (regcomp(&re, patterns[i], REG_EXTENDED | REG_ICASE | REG_NOSUB) != 0)
            return ET_FAIL(t->state.cx, ET_EINVAL, "'%s' is not a regular expression",
                           patterns[i]);
        *keep = regexec(&re, name, 0, NULL, 0) == 0;
        regfree(&re);
    }
    return ET_OK;
}

static et_status
select_metrics(struct et_trainer *t, struct eti_evaluator *e)
{
    ET_TRY(eti_metrics_new(t, et_task_metrics(t->state.model->type->task, false),
                           e->metric, &e->n_metrics));
    int kept = 0, n = e->n_metrics;
    for (int i = 0; i < n; i++) {
        bool keep;
        ET_TRY(keeps(t, e->config.metrics, et_metric_class(e->metric[i])->info.name,
                     &keep));
        struct et_metric *m = e->metric[i];
        e->metric[i] = NULL;
        if (keep)
            e->metric[kept++] = m;
        else
            et_metric_free(&m);
    }
    e->n_metrics = kept;
    if (kept == 0)
        return ET_FAIL(t->state.cx, ET_EINVAL, "no metric of evaluator '%s' matches",
                       e->config.label);
    return ET_OK;
}

static void
warn_of_label(struct et_trainer *t, const char *label)
{
    for (int i = 0; i < t->n_evaluators; i++)
        if (strcmp(t->evaluator[i].config.label, label) == 0) {
            et_report(t->state.cx, ET_LOG_WARN,
                      "two evaluators are called '%s': the later one's metrics stand",
                      label);
            return;
        }
}

et_status
eti_evaluators_add(struct et_trainer *t, const struct et_evaluator *evaluators, int n)
{
    if (t->n_evaluators + n > ETI_MAX_EVALUATORS)
        return ET_FAIL(t->state.cx, ET_EINVAL, "more than %d evaluators",
                       ETI_MAX_EVALUATORS);
    for (int i = 0; i < n; i++) {
        warn_of_label(t, evaluators[i].label ? evaluators[i].label : "eval");
        struct eti_evaluator *e = &t->evaluator[t->n_evaluators++];
        *e = (struct eti_evaluator){.config = evaluators[i], .last_batch = -1};
        if (!e->config.label)
            e->config.label = "eval";
        if (!et_time_is_set(e->config.interval))
            e->config.interval = t->config.eval_interval;
        if (!et_time_is_set(e->config.interval))
            e->config.interval = ET_EPOCHS(1);
        ET_TRY(select_metrics(t, e));
    }
    return ET_OK;
}

void
eti_evaluators_drop(struct et_trainer *t, int first)
{
    for (; t->n_evaluators > first; t->n_evaluators--) {
        struct eti_evaluator *e = &t->evaluator[t->n_evaluators - 1];
        for (int k = 0; k < e->n_metrics; k++)
            et_metric_free(&e->metric[k]);
    }
}
