/* SPDX-License-Identifier: Apache-2.0 */
/* samples.c: what keys do among the samples of a recipe's data: see samples.h. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "tui/samples.h"

/* ---- asking ---- */

/* The places of the transforms that are left out: "0,2". */
static void
list_off(const struct tui_samples *s, char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = '\0';
    for (int i = 0; i < TUI_SAMPLES_STEPS && used + 4 < size; i++)
        if (s->off[i])
            used +=
                (size_t)snprintf(buf + used, size - used, used > 0 ? ",%d" : "%d", i);
}

static void
ask(struct tui_samples *s)
{
    char off[64], epoch[24], from[24], limit[24];
    list_off(s, off, sizeof off);
    snprintf(epoch, sizeof epoch, "%lld", (long long)s->epoch);
    snprintf(from, sizeof from, "%lld", (long long)s->from);
    snprintf(limit, sizeof limit, "%d", TUI_SAMPLES_AT_ONCE);
    const char *const words[] = {"data",
                                 "show",
                                 "--json",
                                 "--pictures",
                                 "--limit",
                                 limit,
                                 "--epoch",
                                 epoch,
                                 "--from",
                                 from,
                                 *off ? "--without" : NULL,
                                 off,
                                 NULL};
    const char *const after[] = {s->is_eval ? "eval_data" : "train_data", NULL};
    if (s->start(s->owner, &s->job, words, after) == ET_OK)
        return;
    snprintf(s->problem, sizeof s->problem, "%.199s",
             et_error_get(s->app->cx)->message);
    et_error_clear(s->app->cx);
}

/* Other data, from the beginning. */
static void
begin(struct tui_samples *s)
{
    s->epoch = s->from = s->first = 0;
    memset(s->off, 0, sizeof s->off);
    s->steps = (struct tui_list){0};
    ask(s);
}

void
tui_samples_open(struct tui_samples *s, struct tui_app *app, const char *name,
                 tui_samples_start *start, void *owner)
{
    *s = (struct tui_samples){
        .app = app, .is_open = true, .start = start, .owner = owner, .shown = 1};
    tui_job_stop(&s->job);
    snprintf(s->name, sizeof s->name, "%.63s", name);
    begin(s);
}

void
tui_samples_close(struct tui_samples *s)
{
    if (!s->is_open)
        return;
    tui_job_stop(&s->job);
    json_decref(s->all);
    s->all = NULL;
    s->is_open = false;
}

/* What went wrong: a sentence, which in JSON is its message. */
static void
take_problem(struct tui_samples *s)
{
    json_error_t error;
    json_t *why = json_loads(s->job.error, 0, &error);
    const char *text = json_string_value(json_object_get(why, "message"));
    snprintf(s->problem, sizeof s->problem, "%.199s",
             text            ? text
             : *s->job.error ? s->job.error
                             : "etude data show ended without a word");
    json_decref(why);
}

bool
tui_samples_tick(struct tui_samples *s)
{
    json_error_t error;
    if (!s->is_open || !tui_job_poll(&s->job, s->app->config.is_dump ? 60 : 0))
        return false;
    json_t *all =
        s->job.code == 0 ? json_loadb(s->job.text, s->job.n, 0, &error) : NULL;
    s->problem[0] = '\0';
    if (!json_is_object(all)) {
        take_problem(s);
        json_decref(all);
        return true;
    }
    json_decref(s->all);
    s->all = all;
    return true;
}

/* ---- keys ---- */

static int64_t
n_samples(const struct tui_samples *s)
{
    return json_integer_value(json_object_get(s->all, "samples"));
}

/* The next samples, or those before. */
static void
turn_page(struct tui_samples *s, bool forward)
{
    const int64_t there = (int64_t)json_array_size(json_object_get(s->all, "shown"));
    if (s->job.pid > 0)
        return;
    if (forward && s->first + s->shown < there) {
        s->first += s->shown;
    } else if (forward && s->from + there < n_samples(s)) {
        s->from += TUI_SAMPLES_AT_ONCE;
        s->first = 0;
        ask(s);
    } else if (!forward && s->first > 0) {
        s->first = s->first > s->shown ? s->first - s->shown : 0;
    } else if (!forward && s->from > 0) {
        s->from = s->from > TUI_SAMPLES_AT_ONCE ? s->from - TUI_SAMPLES_AT_ONCE : 0;
        s->first = 0;
        ask(s);
    }
}

static void
toggle(struct tui_samples *s)
{
    if (s->steps.at >= s->steps.n || s->steps.at >= TUI_SAMPLES_STEPS)
        return;
    s->off[s->steps.at] = !s->off[s->steps.at];
    ask(s);
}

bool
tui_samples_act(struct tui_samples *s, enum tui_action action)
{
    s->steps.n = (int)json_array_size(json_object_get(s->all, "transforms"));
    if (tui_list_act(&s->steps, action))
        return true;
    switch (action) {
    case TUI_DO_everywhere_left:
    case TUI_DO_everywhere_right:
        turn_page(s, action == TUI_DO_everywhere_right);
        return true;
    case TUI_DO_samples_toggle:
        toggle(s);
        return true;
    case TUI_DO_samples_epoch:
    case TUI_DO_samples_before:
        s->epoch += action == TUI_DO_samples_epoch ? 1 : s->epoch > 0 ? -1 : 0;
        ask(s);
        return true;
    case TUI_DO_samples_data:
        s->is_eval = !s->is_eval;
        begin(s);
        return true;
    case TUI_DO_samples_back:
    case TUI_DO_everywhere_close:
        tui_samples_close(s);
        return true;
    default:
        return false;
    }
}

const char *
tui_samples_hint(const struct tui_samples *s, enum tui_action action)
{
    const bool has_steps = json_array_size(json_object_get(s->all, "transforms")) > 0;
    switch (action) {
    case TUI_DO_samples_toggle:
        return has_steps ? NULL : "";
    case TUI_DO_samples_data:
        return s->is_eval ? "train_data" : NULL;
    default:
        return NULL;
    }
}

enum tui_role
tui_samples_message(const struct tui_samples *s, char *buf, size_t size)
{
    buf[0] = '\0';
    if (*s->problem) {
        snprintf(buf, size, "x %s", s->problem);
        return TUI_BAD;
    }
    if (s->job.pid > 0)
        snprintf(buf, size, "reading samples...");
    return TUI_TEXT;
}
