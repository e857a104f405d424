/* SPDX-License-Identifier: Apache-2.0 */
/* times.c: are the times at which something is to be done in units that this run
 * counts? */
#include "config.h"

#include <stdio.h>

#include "core/recipe/options.h"
#include "core/trainer/loop.h"
#include "core/trainer/trainer_impl.h"

/* A run of nothing that is counted would have no end, and what is to be done at such
 * times would not be. WHAT of OF, which may be NULL, is at TIME. */
static et_status
check_counted(struct et_trainer *t, const char *of, const char *what,
              struct et_time time)
{
    const char *why;
    char text[ET_TIME_TEXT_BYTES];
    if (!et_time_is_set(time) || time.value <= 0)
        return ET_OK;
    if (time.unit == ET_TIME_ITERATION && !eti_is_given(t->config.iteration_length))
        why = "counts iterations: it needs an iteration_length";
    else if (time.unit == ET_TIME_TOKEN && t->state.max_seq_len == 0)
        why = "counts tokens, and the training data have none";
    else
        return ET_OK;
    et_time_text(time, text, sizeof text);
    return ET_FAIL(t->state.cx, ET_EINVAL, "%.60s%s%.60s %s %s", of ? of : "",
                   of ? ": " : "", what, text, why);
}

/* The times among the OPTIONS of C. (What sequential is made of it converts itself.) */
et_status
eti_check_component_times(struct et_trainer *t, const struct et_component *c,
                          const void *options)
{
    for (const struct et_option *row = c->options; row && row->name; row++) {
        const void *field = eti_option_field(row, options);
        const struct et_times *list = field;
        if (row->type == ET_OPT_TIME)
            ET_TRY(
                check_counted(t, c->name, row->name, *(const struct et_time *)field));
        for (int i = 0; row->type == ET_OPT_TIMES && i < list->n; i++)
            ET_TRY(check_counted(t, c->name, row->name, list->v[i]));
    }
    return ET_OK;
}

et_status
eti_check_scheduler_times(struct et_trainer *t, const struct et_scheduler *list, int n)
{
    for (int i = 0; i < n; i++)
        ET_TRY(eti_check_component_times(t, &list[i].type->info, list[i].options));
    return ET_OK;
}

/* Those of what the run is made of. */
static et_status
check_components(struct et_trainer *t)
{
    const struct et_trainer_config *c = &t->config;
    const struct et_state *s = &t->state;
    ET_TRY(eti_check_scheduler_times(t, c->schedulers, c->n_schedulers));
    for (int i = 0; i < c->n_groups; i++)
        ET_TRY(eti_check_scheduler_times(t, c->groups[i]->schedulers,
                                         c->groups[i]->n_schedulers));
    for (int i = 0; i < s->n_algorithms; i++)
        ET_TRY(eti_check_component_times(t, &s->algorithms[i]->type->info,
                                         s->algorithms[i]->options));
    for (int i = 0; i < s->n_callbacks; i++)
        ET_TRY(eti_check_component_times(t, &s->callbacks[i]->type->info,
                                         s->callbacks[i]->options));
    return ET_OK;
}

et_status
eti_check_times(struct et_trainer *t)
{
    const struct et_checkpoint_config *save = t->config.checkpoint;
    char label[64];
    ET_TRY(check_counted(t, NULL, "max_duration", t->state.max_duration));
    for (int i = 0; i < t->evaluation.n; i++) {
        const struct et_evaluator *e = &t->evaluation.v[i].config;
        snprintf(label, sizeof label, "evaluator '%.24s'", e->label);
        ET_TRY(check_counted(t, label, "an interval of", e->interval));
    }
    if (save)
        ET_TRY(check_counted(t, "checkpoint", "an interval of", save->interval));
    for (int i = 0; save && i < save->n_at; i++)
        ET_TRY(check_counted(t, "checkpoint", "a save at", save->at[i]));
    return check_components(t);
}
