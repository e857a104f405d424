/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c: see parts.h. */
#include "config.h"

#include "core/assemble/parts.h"

#include <stdio.h>
#include <string.h>

#include "core/base/checks.h"
#include "core/base/sized.h"
#include "core/optim/group.h"
#include "core/recipe/value.h"
#include "core/trainer/loop.h"

/* ---- places ---- */

/* The option that MESSAGE begins with, as the recipe has it; else all of them. */
static const struct et_value *
find_value(const struct et_part *part, const char *message)
{
    char word[64];
    const size_t n = strcspn(message, " :.");
    const struct et_value *own = NULL;
    if (n > 0 && n < sizeof word) {
        snprintf(word, sizeof word, "%.*s", (int)n, message);
        own = eti_value_get(part->value, word);
    }
    return own ? own : part->value;
}

et_status
eti_part_refused(struct et_ctx *cx, const struct et_part *part, const char *key,
                 int index, et_status status)
{
    const struct et_error said = *et_error_get(cx);
    char path[64], place[512] = "";
    if (status != ET_EINVAL && status != ET_ESHAPE && status != ET_EDTYPE)
        return status;
    if (!part->component || !part->value || said.code)
        return status;
    const struct et_value *v = find_value(part, said.message);
    const struct et_place at = eti_value_place(v);
    if (at.file && strncmp(said.message, at.file, strlen(at.file)) == 0)
        return status; /* it has one */
    snprintf(path, sizeof path, index < 0 ? "%s" : "%s.%d", key, index);
    if (at.file && at.line > 0)
        snprintf(place, sizeof place, "%s:%d:%d: ", at.file, at.line, at.column);
    et_error_clear(cx);
    if (said.message[0])
        (void)ET_FAIL(cx, status, "%s%s: %s", place, path, said.message);
    else
        (void)ET_FAIL(cx, status,
                      "%s%s: %s does not take these options, and says no "
                      "more than '%s'",
                      place, path, part->component->name, et_status_name(status));
    if (*said.hint)
        et_hint(cx, "%s", said.hint);
    return status;
}

/* ---- checks ---- */

static et_status
check_schedulers(struct et_ctx *cx, const struct et_parts *parts, const char *key,
                 const struct et_run_length *length)
{
    const struct et_timestamp start = {0};
    double alpha;
    for (int i = 0; i < parts->n; i++) {
        const struct et_part *part = &parts->v[i];
        const struct et_scheduler_class *c = ETI_CLASS(scheduler, part->component);
        et_status status = ET_OK;
        if (ETI_HOOK(c, check))
            status = c->check(cx, part->options, length);
        if (status == ET_OK)
            status = c->alpha(cx, part->options, &start, length, &alpha);
        ET_TRY(eti_part_refused(cx, part, key, parts->n > 1 ? i : -1, status));
    }
    return ET_OK;
}

static et_status
check_groups(struct et_ctx *cx, const struct et_recipe_optimizer *extra,
             const struct et_run_length *length)
{
    char key[48];
    for (int i = 0; extra && i < extra->groups.n; i++) {
        const struct eti_group_options *o = extra->groups.v[i].options;
        snprintf(key, sizeof key, "optimizer.groups.%d.scheduler", i);
        ET_TRY(check_schedulers(cx, &o->scheduler, key, length));
    }
    return ET_OK;
}

static et_status
check_optimizer(struct et_ctx *cx, const struct et_part *part)
{
    const struct et_optimizer_class *c = ETI_CLASS(optimizer, part->component);
    if (!c || !c->check)
        return ET_OK;
    return eti_part_refused(cx, part, "optimizer", -1, c->check(cx, part->options));
}

static et_status
check_callbacks(struct et_ctx *cx, const struct et_parts *parts, const char *key)
{
    char path[64];
    for (int i = 0; i < parts->n; i++) {
        const struct et_part *part = &parts->v[i];
        const struct et_callback_class *c = ETI_CLASS(callback, part->component);
        if (part->off || !c || !c->check)
            continue;
        snprintf(path, sizeof path, "%s.%s", key, c->info.name);
        ET_TRY(eti_part_refused(cx, part, path, -1, c->check(cx, part->options)));
    }
    return ET_OK;
}

static et_status
check_schedules(struct et_ctx *cx, const struct et_recipe *r,
                const struct et_run_length *length)
{
    ET_TRY(check_schedulers(cx, &r->scheduler, "scheduler", length));
    return check_groups(cx, r->optimizer.extra, length);
}

/* Data that stand in for others have another length than those: a schedule is wrong
 * that does not go with few batches an epoch, and not with many. */
static et_status
check_all_schedules(const struct eti_assembly *a)
{
    enum { FEW = 1, MANY = 1 << 20 };
    struct et_run_length length;
    ET_TRY(eti_run_length(a->cx, &a->config, &length));
    if (!a->stands_in)
        return check_schedules(a->cx, a->recipe, &length);
    length.dataloader_len = FEW;
    if (check_schedules(a->cx, a->recipe, &length) == ET_OK)
        return ET_OK;
    et_error_clear(a->cx);
    length.dataloader_len = MANY;
    return check_schedules(a->cx, a->recipe, &length);
}

et_status
eti_parts_check(struct eti_assembly *a)
{
    const struct et_recipe *r = a->recipe;
    if (!a->config.train)
        return ET_OK;
    eti_ctx_mute(a->cx, true); /* what they warn of is said when the run begins */
    et_status status = check_optimizer(a->cx, &r->optimizer);
    if (status == ET_OK)
        status = check_all_schedules(a);
    if (status == ET_OK)
        status = check_callbacks(a->cx, &r->callbacks, "callbacks");
    if (status == ET_OK)
        status = check_callbacks(a->cx, &r->loggers, "loggers");
    eti_ctx_mute(a->cx, false);
    return status;
}
