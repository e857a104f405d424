/* SPDX-License-Identifier: Apache-2.0 */
/* callbacks.c: the list of observers; making callbacks and loggers. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "core/base/need.h"
#include "core/base/sized.h"
#include "core/callbacks/callbacks.h"
#include "core/recipe/options.h"

const struct et_callback_class *const et_callback_classes[] = {
#define ET_CALLBACK(name) &et_callback_##name,
#include "core/callbacks/callbacks.def"
#undef ET_CALLBACK
    NULL,
};

const struct et_callback_class *
et_callback_find(const char *name)
{
    if (!name)
        return NULL;
    for (const struct et_callback_class *const *c = et_callback_classes; *c; c++)
        if (strcmp((*c)->info.name, name) == 0)
            return *c;
    return NULL;
}

bool
et_callback_trails(const struct et_callback *self, const struct et_state *state)
{
    (void)self;
    (void)state;
    return true;
}

const char *const eti_duration_units[] = {"seconds", "minutes", "hours", "days", NULL};

double
eti_duration_unit(int unit)
{
    static const double seconds[] = {1, 60, 3600, 86400};
    return seconds[unit];
}

et_status
eti_at_interval(struct et_ctx *cx, const struct et_timestamp *ts,
                struct et_time interval, double *now, bool *yes)
{
    struct et_time t;
    ET_TRY(et_timestamp_get(cx, ts, interval.unit, &t));
    *now = t.value;
    *yes = fmod(t.value, interval.value) == 0;
    return ET_OK;
}

static et_status
fill(struct et_callback *c, const void *options)
{
    const struct et_component *info = &c->type->info;
    if (c->type->state_size)
        ET_TRY(et_alloc(c->cx, c->type->state_size, &c->state));
    ET_TRY(eti_options_new(c->cx, info, options, &c->options));
    return c->type->check ? c->type->check(c->cx, c->options) : ET_OK;
}

et_status
et_callback_new(struct et_ctx *cx, const struct et_callback_class *class,
                const void *options, const char *run_directory,
                struct et_callback **out)
{
    ETI_NEED(cx, out);
    void *block;
    *out = NULL;
    ET_TRY(eti_need_class(cx, "et_callback_new", class));
    ETI_NEED(cx, cx);
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct et_callback *c = block;
    c->type = class;
    c->cx = cx;
    c->run_directory = run_directory;
    et_status status = fill(c, options);
    if (status != ET_OK)
        et_callback_free(&c);
    *out = c;
    return status;
}

void
et_callback_free(struct et_callback **out)
{
    if (!out)
        return;
    struct et_callback *c = *out;
    *out = NULL;
    if (!c)
        return;
    eti_options_free(c->cx, &c->type->info, &c->options);
    et_free(c->cx, c->state);
    et_free(c->cx, c);
}
