/* SPDX-License-Identifier: Apache-2.0 */
/* pick.c: a metric of evaluations that somebody watches: which one is meant, and which
 * value of it is better. What best_model_saver, model_ema and early_stopping share. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/callbacks/callbacks.h"

const char *const eti_pick_truth[] = {"false", "true", NULL};

static bool
fits(const char *metric, const char *wanted)
{
    static const char usual[] = "CrossEntropy";
    const char *slash = strrchr(metric, '/'), *last = slash ? slash + 1 : metric;
    size_t n = strlen(last), k = sizeof usual - 1;
    if (!wanted)
        return n >= k && strcmp(last + n - k, usual) == 0;
    return strcmp(metric, wanted) == 0 || strcasecmp(last, wanted) == 0;
}

bool
eti_pick_value(const struct eti_pick *p, char *metric, const struct et_state *s,
               double *out)
{
    char place[ET_METRIC_NAME];
    size_t n =
        (size_t)snprintf(place, sizeof place, "metrics/%s/", s->dataloader_label);
    for (int i = 0; i < s->n_eval_metrics; i++) {
        const struct et_metric_value *v = &s->eval_metrics[i];
        if (n >= sizeof place || strncmp(v->name, place, n) != 0)
            continue;
        if (metric[0] ? strcmp(v->name, metric) != 0 : !fits(v->name, p->watch_metric))
            continue;
        snprintf(metric, ET_METRIC_NAME, "%s", v->name);
        *out = v->value;
        return true;
    }
    return false;
}

bool
eti_pick_is_better(const struct eti_pick *p, const char *metric, double value,
                   double best)
{
    bool greater = p->greater_is_better < 0 ? !eti_less_is_better(metric)
                                            : p->greater_is_better > 0;
    return greater ? value > best : value < best;
}

void
eti_pick_warn(const struct eti_pick *p, const char *who, const char *outcome,
              const struct et_state *s, struct et_log *log)
{
    if (!s->stop && s->timestamp.epoch > 0)
        et_log_text(log, ET_LOG_WARN, &s->timestamp, "%s: no evaluation had %s; %s",
                    who, p->watch_metric ? p->watch_metric : "a cross entropy",
                    outcome);
}
