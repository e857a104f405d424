/* SPDX-License-Identifier: Apache-2.0 */
/* compose_timeline.c: who acts at which event, in which order, and why. */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/assemble/assemble.h"
#include "core/compose/timeline.h"
#include "core/recipe/recipe.h"
#include "etude/plugin.h"
#include "tui/compose.h"
#include "tui/glyphs.h"

/* The recipe's algorithms that are on: their classes, in its order. */
static int
classes_of(const struct et_recipe *r, const struct et_algorithm_class **out)
{
    int n = 0;
    for (int i = 0; r && i < r->algorithms.n && n < ET_MAX_ALGORITHMS; i++)
        if (r->algorithms.v[i].component && !r->algorithms.v[i].off)
            out[n++] = ETI_CLASS(algorithm, r->algorithms.v[i].component);
    return n;
}

/* Who acts at EVENT, as the engine calls them with plugins' passes; one that cannot
 * order them is named when the run begins. */
static int
turns_at(const struct compose *c, const struct et_algorithm_class *const *all, int n,
         enum et_event event, struct eti_turn *out)
{
    const struct et_recipe *r = eti_sketch_shown(c->sketch);
    int m, n_passes = 0;
    const struct et_pass *const *passes =
        r ? et_registry_passes(eti_recipe_registry(r), &n_passes) : NULL;
    if (eti_timeline_with(c->sketch->cx, passes, n_passes, all, n, event, out, &m) ==
        ET_OK)
        return m;
    et_error_clear(c->sketch->cx);
    return eti_timeline_at(all, n, event, out);
}

static void
upper(char *text)
{
    for (; *text; text++)
        *text = (char)toupper((unsigned char)*text);
}

/* "mixup>CUTMIX>label_smoothing": who acts at EVENT; who is selected in capitals. */
static void
put_turns(const struct compose *c, const struct tui_pane *p, int y, int x,
          const struct et_algorithm_class *const *all, int n, enum et_event event,
          enum tui_role role)
{
    struct eti_turn turn[ET_MAX_ALGORITHMS];
    const struct eti_method *m = compose_method(c);
    int who = turns_at(c, all, n, event, turn), room = p->w - 1;
    for (int i = 0; i < who && x < room; i++) {
        char name[64];
        bool here = m && strcmp(all[turn[i].who]->info.name, m->name) == 0;
        snprintf(name, sizeof name, "%s", all[turn[i].who]->info.name);
        if (here)
            upper(name);
        int w = tui_width(name);
        bool fits = x + w <= (i + 1 < who ? room - 3 : room);
        if (!fits) {
            int part = room - 2 - x;
            if (part > 3)
                x += tui_put_n(p, y, x, role, 0, part, name, (size_t)part);
            tui_put(p, y, x, TUI_DIM, "..");
            return;
        }
        x += tui_put(p, y, x, here && role != TUI_DIM ? TUI_FOCUS : role, name);
        if (i + 1 < who)
            x += tui_put(p, y, x, TUI_DIM, ">");
    }
}

/* The events of a run as they follow each other, and how deep they lie. */
static const struct {
    enum et_event event;
    int depth;
} course[] = {
    {ET_EVENT_INIT, 0},
    {ET_EVENT_BEFORE_LOAD, 0},
    {ET_EVENT_AFTER_LOAD, 0},
    {ET_EVENT_FIT_START, 0},
    {ET_EVENT_EPOCH_START, 1},
    {ET_EVENT_BEFORE_DATALOADER, 2},
    {ET_EVENT_AFTER_DATALOADER, 2},
    {ET_EVENT_BATCH_START, 2},
    {ET_EVENT_BEFORE_TRAIN_BATCH, 2},
    {ET_EVENT_BEFORE_FORWARD, 3},
    {ET_EVENT_AFTER_FORWARD, 3},
    {ET_EVENT_BEFORE_LOSS, 3},
    {ET_EVENT_AFTER_LOSS, 3},
    {ET_EVENT_BEFORE_BACKWARD, 3},
    {ET_EVENT_AFTER_BACKWARD, 3},
    {ET_EVENT_AFTER_TRAIN_BATCH, 2},
    {ET_EVENT_BATCH_END, 2},
    {ET_EVENT_BATCH_CHECKPOINT, 2},
    {ET_EVENT_EPOCH_END, 1},
    {ET_EVENT_EPOCH_CHECKPOINT, 1},
    {ET_EVENT_EVAL_START, 1},
    {ET_EVENT_EVAL_END, 1},
    {ET_EVENT_FIT_END, 0},
};
enum { N_COURSE = sizeof course / sizeof *course };

static const char *
event_text(enum et_event event, char buf[40])
{
    snprintf(buf, 40, "%s", et_event_name(event));
    upper(buf);
    return buf;
}

/* A table: a row for each event, a column for each algorithm, its place as a number. */
static void
draw_table(struct compose *c, const struct tui_pane *p, bool has_focus,
           const struct et_algorithm_class *const *all, int n, enum tui_role role)
{
    enum { FIRST = 30, CELL = 7 };
    const struct eti_method *m = compose_method(c);
    char text[40];
    for (int i = 0; i < n; i++) {
        bool here = m && strcmp(all[i]->info.name, m->name) == 0;
        snprintf(text, sizeof text, "%.5s", all[i]->info.name);
        if (here)
            upper(text);
        tui_put(p, 1, FIRST + CELL * i, here ? TUI_FOCUS : TUI_TITLE, text);
    }
    tui_list_show(&c->timeline, N_COURSE, p->h - 4);
    for (int k = 0; k < p->h - 4 && c->timeline.top + k < N_COURSE; k++) {
        int at = c->timeline.top + k, y = 2 + k;
        struct eti_turn turn[ET_MAX_ALGORITHMS];
        int who = turns_at(c, all, n, course[at].event, turn);
        compose_put_marker(p, y, has_focus && at == c->timeline.at, true);
        tui_put(p, y, 1 + 2 * course[at].depth, who ? role : TUI_DIM,
                event_text(course[at].event, text));
        for (int i = 0; i < n; i++)
            tui_put(p, y, FIRST + CELL * i + 1, TUI_DIM, ".");
        for (int i = 0; i < who; i++)
            tui_putf(p, y, FIRST + CELL * turn[i].who + 1, role, "%d", i + 1);
    }
    tui_put(p, p->h - 1, 1, TUI_DIM,
            "AFTER_* events run in reverse order (first in, last out). Enter on a row: "
            "why");
}

void
compose_draw_timeline(struct compose *c, const struct tui_pane *p, bool has_focus)
{
    const struct et_algorithm_class *all[ET_MAX_ALGORITHMS];
    int n = classes_of(eti_sketch_shown(c->sketch), all);
    bool is_old = !eti_sketch_is_valid(c->sketch);
    enum tui_role role = is_old ? TUI_DIM : TUI_TEXT;
    bool is_table = p->h >= 27 && p->w >= 90;
    char text[40];
    c->has_table = is_table;
    compose_remember(c, TUI_C_TIMELINE, p);
    c->area[TUI_C_TIMELINE].y += is_table; /* its columns have names */
    tui_title(p, 0,
              is_old ? "Event timeline (of the last valid text)"
              : is_table
                  ? "Event timeline: rows fire top to bottom, numbers are run order"
                  : "Event timeline (resolved order)",
              has_focus);
    if (is_table) {
        draw_table(c, p, has_focus, all, n, role);
        return;
    }
    if (c->n_events == 0)
        tui_put_wrapped(p, 1, 2, p->w - 3, TUI_DIM,
                        "no algorithm is on: space turns one on");
    tui_list_show(&c->timeline, c->n_events, p->h - 1);
    for (int i = 0; i < p->h - 1 && c->timeline.top + i < c->n_events; i++) {
        int at = c->timeline.top + i;
        enum et_event event = (enum et_event)c->event[at];
        compose_put_marker(p, 1 + i, has_focus && at == c->timeline.at, true);
        event_text(event, text);
        tui_put_n(p, 1 + i, 1, role, 0, 18, text, strlen(text));
        put_turns(c, p, 1 + i, 20, all, n, event, role);
    }
}

void
compose_say_why(struct compose *c)
{
    const struct et_algorithm_class *all[ET_MAX_ALGORITHMS];
    struct eti_turn turn[ET_MAX_ALGORITHMS];
    const bool is_table = c->has_table;
    char text[TUI_MESSAGE], event_name[40];
    size_t used = 0;
    int n = classes_of(eti_sketch_shown(c->sketch), all);
    int at = c->timeline.at, m;
    if (at >= (is_table ? N_COURSE : c->n_events))
        return;
    enum et_event event = is_table ? course[at].event : (enum et_event)c->event[at];
    m = turns_at(c, all, n, event, turn);
    for (int i = 0; i < m && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s %d %s (%s)",
                                 i ? "," : "", i + 1, all[turn[i].who]->info.name,
                                 *turn[i].reason ? turn[i].reason : "as in the recipe");
    tui_say(c->app, TUI_TEXT, "%s:%s", event_text(event, event_name),
            m ? text : " nobody acts there");
}
