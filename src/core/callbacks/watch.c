/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c: what stoppers watch: one metric of one loader, and which value is better.
 *
 * Source: spec/trainer.md 9.4. Differs: a comparison is a word, never a function; a
 * metric that is never seen, because the loader's label is wrong, is warned about; less
 * is better for entropies too, where Composer would wait for CrossEntropy to rise. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/callbacks/callbacks.h"

/* Both spellings of each; the order is that of enum comparison. */
const char *const eti_watch_comparisons[] = {"greater", "gt", "less", "lt", NULL};
enum comparison { GREATER, GT, LESS, LT };

static const char *
full_name(const struct eti_watch *w, char *buf)
{
    snprintf(buf, ET_METRIC_NAME, "metrics/%s/%s", w->dataloader_label, w->monitor);
    return buf;
}

et_status
eti_watch_check(struct et_ctx *cx, const struct eti_watch *w)
{
    if (!w->monitor || !w->dataloader_label)
        return ET_FAIL(cx, ET_EINVAL, "a stopper needs monitor and dataloader_label");
    return ET_OK;
}

bool
eti_watch_is_active(const struct eti_watch *w, const struct et_state *s)
{
    return !s->stop && s->dataloader_label &&
           strcmp(s->dataloader_label, w->dataloader_label) == 0;
}

et_status
eti_watch_read(struct et_ctx *cx, const struct eti_watch *w, const struct et_state *s,
               double *out)
{
    char name[ET_METRIC_NAME];
    if (!et_state_metric(s, full_name(w, name), out))
        return ET_FAIL(cx, ET_EINVAL, "monitor: there is no metric %s", name);
    return ET_OK;
}

bool
eti_less_is_better(const char *metric)
{
    return strcasestr(metric, "loss") || strcasestr(metric, "error") ||
           strcasestr(metric, "perplexity") || strcasestr(metric, "entropy");
}

bool
eti_watch_is_better(const struct eti_watch *w, double a, double b)
{
    bool less = w->comp == LESS || w->comp == LT;
    if (w->comp < 0)
        less = eti_less_is_better(w->monitor);
    return less ? a < b : a > b;
}

void
eti_watch_warn(const struct eti_watch *w, const char *who, const struct et_state *s,
               struct et_log *log)
{
    char name[ET_METRIC_NAME];
    if (!s->stop && s->timestamp.epoch > 0)
        et_log_text(log, ET_LOG_WARN, &s->timestamp,
                    "%s: %s was never there while the run trained; nothing was judged",
                    who, full_name(w, name));
}
