/* SPDX-License-Identifier: Apache-2.0 */
/* sequential.c: one schedule after the other.
 *
 * Of schedules s_0 .. s_n and milestones m_1 < ... < m_n, s_i holds from m_i (m_0 = 0)
 * up to m_(i+1). It counts from m_i, and 1dur is as long as it holds; the last holds to
 * the end of the run.
 *
 * torch.optim.lr_scheduler.SequentialLR. Differs: `dur`, which is not known there. */
#include "core/sched/sched.h"

#include "core/base/sized.h"

struct options {
    struct et_scheduler_options common;
    struct et_parts schedulers;
    struct et_times milestones;
};

/* A schedule of the list as the run is for it. */
struct stretch {
    const struct et_scheduler_class *type;
    const void *options;
    struct et_timestamp ts;
    struct et_run_length length;
};

/* T in UNIT, in which the milestones are counted. */
static et_status
in_unit(const struct eti_sched_now *s, struct et_time t, enum et_time_unit unit,
        const char *name, double *out)
{
    struct et_time whole;
    char text[ET_TIME_TEXT_BYTES];
    ET_TRY(et_time_resolve(s->cx, t, s->length, &whole));
    if (whole.unit != unit)
        return ET_FAIL(s->cx, ET_EINVAL,
                       "sequential: %s %s is counted in %s, and its milestones are in "
                       "%s",
                       name, et_time_text(t, text, sizeof text),
                       et_time_unit_name(whole.unit), et_time_unit_name(unit));
    *out = whole.value;
    return ET_OK;
}

static et_status
unit_of(const struct eti_sched_now *s, const struct options *o, enum et_time_unit *out)
{
    struct et_time first;
    ET_TRY(et_time_resolve(s->cx, o->milestones.v[0], s->length, &first));
    *out = first.unit;
    return ET_OK;
}

/* Where the run ends, in UNIT. A run without an end that is known in it has none for
 * its last schedule either. */
static void
set_end(const struct eti_sched_now *s, enum et_time_unit unit, double from, double to,
        struct et_run_length *out)
{
    struct et_time all = ET_TIME_UNSET;
    *out = *s->length;
    if (isinf(to) && et_time_is_set(s->length->max_duration) &&
        et_time_resolve(s->cx, (struct et_time){1, ET_TIME_DURATION}, s->length,
                        &all) == ET_OK &&
        all.unit == unit)
        to = all.value;
    out->max_duration =
        isinf(to) ? ET_TIME_UNSET : (struct et_time){fmax(to - from, 1), unit};
}

/* The schedule that holds now, and the run as it is from its beginning on. */
static et_status
find_stretch(const struct eti_sched_now *s, const struct options *o, int which,
             struct stretch *out)
{
    enum et_time_unit unit;
    double from = 0, to = INFINITY, at;
    struct et_time now;
    int i = 0;
    ET_TRY(unit_of(s, o, &unit));
    ET_TRY(et_timestamp_get(s->cx, s->ts, unit, &now));
    for (; i < o->milestones.n; i++) {
        ET_TRY(in_unit(s, o->milestones.v[i], unit, "milestone", &at));
        if (which < 0 ? now.value < at : i == which) {
            to = at;
            break;
        }
        from = at;
    }
    const struct et_part *part = &o->schedulers.v[i];
    *out = (struct stretch){.type = (const struct et_scheduler_class *)part->component,
                            .options = part->options,
                            .ts = *s->ts};
    set_end(s, unit, from, to, &out->length);
    /* Times of a schedule are counted in UNIT alone: check. */
    int64_t gone = (int64_t)fmin(from, now.value);
    if (unit == ET_TIME_BATCH)
        out->ts.batch -= gone;
    else if (unit == ET_TIME_SAMPLE)
        out->ts.sample -= gone;
    else
        out->ts.token -= gone;
    return ET_OK;
}

static et_status
alpha(struct et_ctx *cx, const void *options, const struct et_timestamp *ts,
      const struct et_run_length *length, double *out)
{
    const struct eti_sched_now s = {cx, ts, length};
    struct stretch now;
    ET_TRY(find_stretch(&s, options, -1, &now));
    return now.type->alpha(cx, now.options, &now.ts, &now.length, out);
}

/* ---- what is refused ---- */

/* Every time of PART can be counted in UNIT. */
static et_status
check_times(const struct eti_sched_now *s, const struct et_part *part,
            enum et_time_unit unit)
{
    double at;
    for (const struct et_option *row = part->component->options; row->name; row++) {
        const void *field = (const char *)part->options + row->offset;
        const struct et_times *list = field;
        const struct et_time *one = field;
        if (row->type == ET_OPT_TIME && et_time_is_set(*one))
            ET_TRY(in_unit(s, *one, unit, row->name, &at));
        for (int i = 0; row->type == ET_OPT_TIMES && i < list->n; i++)
            ET_TRY(in_unit(s, list->v[i], unit, row->name, &at));
    }
    return ET_OK;
}

static et_status
check_milestones(const struct eti_sched_now *s, const struct options *o,
                 enum et_time_unit unit)
{
    double last = 0, at;
    char text[ET_TIME_TEXT_BYTES];
    for (int i = 0; i < o->milestones.n; i++) {
        ET_TRY(in_unit(s, o->milestones.v[i], unit, "milestone", &at));
        if (at <= last)
            return ET_FAIL(s->cx, ET_EINVAL,
                           "sequential: milestone %s does not come after %s",
                           et_time_text(o->milestones.v[i], text, sizeof text),
                           i > 0 ? "the one before it" : "the beginning");
        last = at;
    }
    return ET_OK;
}

static et_status
check(struct et_ctx *cx, const void *options, const struct et_run_length *length)
{
    const struct options *o = options;
    const struct et_timestamp start = {0};
    const struct eti_sched_now s = {cx, &start, length};
    enum et_time_unit unit;
    double first;
    if (o->schedulers.n < 2 || o->milestones.n != o->schedulers.n - 1)
        return ET_FAIL(cx, ET_EINVAL,
                       "sequential: %d schedulers take %d milestones, and there are %d",
                       o->schedulers.n, o->schedulers.n > 0 ? o->schedulers.n - 1 : 0,
                       o->milestones.n);
    ET_TRY(unit_of(&s, o, &unit));
    ET_TRY(check_milestones(&s, o, unit));
    for (int i = 0; i < o->schedulers.n; i++) {
        struct stretch part;
        const struct et_scheduler_options *common = o->schedulers.v[i].options;
        if (common->step_every != ET_STEP_BATCH)
            return ET_FAIL(
                cx, ET_EINVAL,
                "sequential: step_every of all its schedulers is its own, not "
                "that of %s",
                o->schedulers.v[i].component->name);
        ET_TRY(find_stretch(&s, o, i, &part));
        const struct eti_sched_now own = {cx, &start, &part.length};
        ET_TRY(check_times(&own, &o->schedulers.v[i], unit));
        if (ETI_HOOK(part.type, check))
            ET_TRY(part.type->check(cx, part.options, &part.length));
        ET_TRY(part.type->alpha(cx, part.options, &start, &part.length, &first));
    }
    return ET_OK;
}

static const struct et_option table[] = {
    {
        .name = "schedulers",
        .type = ET_OPT_PARTS,
        .kind = ET_KIND_SCHEDULER,
        .offset = offsetof(struct options, schedulers),
        .flags = ET_OPT_REQUIRED,
        .help = "one after the other; each counts from where it begins",
    },
    {
        .name = "milestones",
        .type = ET_OPT_TIMES,
        .offset = offsetof(struct options, milestones),
        .units = ET_SCHEDULE_UNITS & ~(1u << ET_TIME_ITERATION),
        .flags = ET_OPT_REQUIRED,
        .help = "when the second begins, and each after it",
    },
    ETI_OPTION_END(struct options),
};

const struct et_scheduler_class et_scheduler_sequential = {
    .info =
        {
            .name = "sequential",
            .class_name = "SequentialScheduler",
            .summary = "one schedule after the other",
            .source = "PyTorch's SequentialLR",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct options),
        },
    .alpha = alpha,
    .check = check,
};
