/* SPDX-License-Identifier: Apache-2.0 */
/* groups.c: parameter groups in a trainer: whose a parameter is, and the rates of each.
 *
 * Group 0 of the space is the rest, group 1 + i row i of the config. A group without
 * schedulers follows the run's factor. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/trainer/trainer_impl.h"

et_status
eti_groups_init(struct et_trainer *t)
{
    for (int i = 0; i <= ET_MAX_PARAM_GROUPS; i++)
        t->groups.factor[i] = 1;
    eti_groups_begin(t);
    return eti_group_patterns_init(t->state.cx, t->config.groups, t->config.n_groups,
                                   &t->groups.patterns);
}

int
eti_groups_find(const struct et_trainer *t, const char *name)
{
    return eti_group_patterns_find(&t->groups.patterns, name);
}

/* Names of parameters that nobody else has either, for a message. */
static const char *
some_names(const struct et_param_space *space, char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = '\0';
    for (int i = 0, said = 0; i < space->n && said < 3 && used < size; i++)
        if (space->slot[i].group == 0 && ++said)
            used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? ", " : "",
                                     space->slot[i].name);
    return buf;
}

et_status
eti_groups_check(struct et_trainer *t)
{
    const struct et_param_space *space = t->state.params;
    char names[160];
    for (int i = 0; i < t->config.n_groups; i++) {
        int n = 0;
        for (int k = 0; k < space->n; k++)
            n += space->slot[k].group == 1 + i;
        if (n == 0)
            return ET_FAIL(
                t->state.cx, ET_EINVAL,
                "optimizer.groups.%d: '%s' fits no parameter that an earlier "
                "group does not have; there are %d, such as %s",
                i, t->config.groups[i]->match, space->n,
                some_names(space, names, sizeof names));
    }
    return ET_OK;
}

et_status
eti_groups_follow(struct et_trainer *t)
{
    const struct et_optimizer_options *common = t->config.optimizer_options;
    struct et_optimizer *opt = t->state.optimizer;
    struct et_optimizer_group *rest = et_optimizer_group(opt, 0);
    rest->initial_lr = common->lr;
    rest->weight_decay = common->weight_decay;
    for (int i = 0; i < t->config.n_groups; i++) {
        const struct et_param_group *row = t->config.groups[i];
        struct et_optimizer_group *group = et_optimizer_group(opt, 1 + i);
        if (!eti_group_rate(row->lr, common->lr, &group->initial_lr))
            return ET_FAIL(t->state.cx, ET_EINVAL,
                           "optimizer.groups.%d.lr: '%s' is no rate", i, row->lr);
        group->weight_decay =
            isnan(row->weight_decay) ? common->weight_decay : row->weight_decay;
    }
    return ET_OK;
}

/* Row I has schedules of its own: they have the word on its rate. */
static bool
has_own(const struct et_trainer *t, int i)
{
    return t->config.groups[i]->n_schedulers > 0;
}

et_status
eti_groups_check_schedules(struct et_trainer *t)
{
    for (int i = 0; i < t->config.n_groups; i++)
        ET_TRY(et_schedule_check(t->state.cx, t->config.groups[i]->schedulers,
                                 t->config.groups[i]->n_schedulers, &t->length));
    return ET_OK;
}

void
eti_groups_begin(struct et_trainer *t)
{
    t->groups.scale = 1;
    t->groups.min_rate = 0;
}

void
et_state_scale_rate(struct et_state *s, double factor, double min_rate)
{
    if (!s)
        return;
    struct eti_groups *all = &((struct et_trainer *)s)->groups;
    all->scale *= factor;
    all->min_rate = fmax(all->min_rate, min_rate);
}

/* FACTOR of group I, as the algorithms will have it. */
static double
scaled(const struct et_trainer *t, int i, double factor)
{
    const struct eti_groups *all = &t->groups;
    double initial = et_optimizer_group(t->state.optimizer, i)->initial_lr;
    if (all->scale == 1 || !(initial > 0))
        return factor;
    return fmax(factor * all->scale, fmin(factor, all->min_rate / initial));
}

et_status
eti_groups_schedule(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    const struct et_timestamp now = eti_schedule_time(t);
    double *factor = t->groups.factor;
    factor[0] = s->lr_factor;
    for (int i = 0; i < t->config.n_groups; i++) {
        const struct et_param_group *row = t->config.groups[i];
        factor[1 + i] = s->lr_factor;
        if (has_own(t, i))
            ET_TRY(et_schedule_alpha(s->cx, row->schedulers, row->n_schedulers, &now,
                                     &t->length, &factor[1 + i]));
    }
    for (int i = 0; i <= t->config.n_groups; i++)
        factor[i] = scaled(t, i, factor[i]);
    return ET_OK;
}

void
eti_groups_apply(struct et_trainer *t)
{
    for (int i = 0; i <= t->config.n_groups; i++)
        et_optimizer_set_group_alpha(t->state.optimizer, i, t->groups.factor[i]);
}
