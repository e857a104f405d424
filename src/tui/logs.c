/* SPDX-License-Identifier: Apache-2.0 */
/* logs.c: the screen Logs: what the ranks of a run wrote, one stream. UX.md section 3.
 *
 * The newest LINES are kept; the files have all of them. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/library/facts.h"
#include "tui/app.h"
#include "tui/format.h"
#include "tui/page.h"

enum {
    LINES = 20000,
    AT_ONCE = 2000, /* lines taken in between two frames */
    TEXT_X = 23,    /* column of the text */
    SIDEWAYS = 20,  /* columns that an arrow moves */
    ALL_LEVELS = -1,
};

struct line {
    double t;
    int rank, level;
    const char *word; /* in the level's place; NULL: its name */
    char *text;       /* owned */
};

struct logs {
    struct line *line; /* [LINES], a ring: line[(first + i) % LINES] */
    int first, n;
    int64_t dropped;
    int *shown; /* [LINES] places of those that pass, in order */
    int n_shown;
    struct tui_list list; /* of shown */
    bool follows, wraps, is_errors_only;
    int level; /* least that is shown; ALL_LEVELS */
    int rank;  /* -1: all */
    int shift; /* columns of text to the left of the screen */
    char search[TUI_FIELD];
    struct tui_sieve sieve;
    double jump;     /* to this time, once the lines are there; NaN: not */
    int64_t waiting; /* lines that came since it was scrolled */
};

static struct line *
line_at(const struct logs *l, int i)
{
    return &l->line[(l->first + i) % LINES];
}

/* ---- which lines ---- */

static bool
has_word(void *data, const char *word)
{
    const struct line *line = data;
    return strcasestr(line->text, word) != NULL ||
           (line->word && strcasestr(line->word, word) != NULL);
}

static const char *
value(void *data, const char *key)
{
    static char text[TUI_NUMBER]; /* the filter asks for one value at a time */
    const struct line *line = data;
    if (strcmp(key, "text") == 0)
        return line->text;
    if (strcmp(key, "level") == 0)
        return line->level < 0 ? NULL
                               : et_log_level_name((enum et_log_level)line->level);
    if (strcmp(key, "kind") == 0)
        return line->word ? line->word : "log";
    if (strcmp(key, "time") == 0)
        return isnan(line->t) ? NULL : tui_clock(line->t, 2, text);
    if (strcmp(key, "rank") != 0)
        return NULL;
    snprintf(text, sizeof text, "%d", line->rank);
    return text;
}

static bool
passes(const struct logs *l, struct line *line)
{
    const struct eti_subject subject = {line, has_word, value};
    int level = line->level < 0 ? ET_LOG_INFO : line->level;
    if (level < (l->is_errors_only ? (int)ET_LOG_ERROR : l->level))
        return false;
    if (l->rank >= 0 && line->rank != l->rank)
        return false;
    return tui_sieve_passes(&l->sieve, &subject);
}

/* All over again; what is selected stays selected. */
static void
sift(void *self)
{
    struct logs *l = self;
    int at = l->n_shown > 0 ? l->shown[l->list.at < l->n_shown ? l->list.at : 0] : 0;
    l->n_shown = 0;
    l->list.at = 0;
    for (int i = 0; i < l->n; i++)
        if (passes(l, line_at(l, i))) {
            if (i <= at)
                l->list.at = l->n_shown;
            l->shown[l->n_shown++] = i;
        }
    if (l->follows)
        l->list.at = l->n_shown - 1;
}

static void
drop_oldest(struct tui_app *app, struct logs *l)
{
    et_free(app->cx, line_at(l, 0)->text);
    l->first = (l->first + 1) % LINES;
    l->n--;
    l->dropped++;
    int gone = l->n_shown > 0 && l->shown[0] == 0;
    for (int i = gone; i < l->n_shown; i++)
        l->shown[i - gone] = l->shown[i] - 1;
    l->n_shown -= gone;
    l->list.at -= gone && l->list.at > 0;
    l->list.top -= gone && l->list.top > 0;
}

static bool
add(struct tui_app *app, struct logs *l, const struct tui_log_line *in)
{
    char visible[ET_VISIBLE_MAX + 1];
    void *block;
    et_visible(visible, sizeof visible, in->text, strlen(in->text));
    size_t n = strlen(visible) + 1;
    if (et_alloc(app->cx, n, &block) != ET_OK) {
        et_error_clear(app->cx);
        return false;
    }
    memcpy(block, visible, n);
    if (l->n == LINES)
        for (int i = 0; i < LINES / 10; i++) /* rarely, as it moves the others */
            drop_oldest(app, l);
    struct line *line = line_at(l, l->n++);
    *line = (struct line){in->t, in->rank, in->level, in->word, block};
    if (!passes(l, line))
        return true;
    l->shown[l->n_shown++] = l->n - 1;
    if (l->follows)
        l->list.at = l->n_shown - 1;
    else
        l->waiting++;
    return true;
}

/* ---- begin, end, news ---- */

static et_status
open_logs(struct tui_app *app, void *self)
{
    struct logs *l = self;
    void *block;
    l->level = ALL_LEVELS;
    l->rank = -1;
    l->follows = true;
    l->jump = NAN;
    static const char *const keys[] = {"text", "kind", "level", "time", "rank", NULL};
    l->sieve.keys = keys;
    l->sieve.changed = sift;
    l->sieve.data = l;
    ET_TRY(et_alloc(app->cx, sizeof *l->line * LINES, &block));
    l->line = block;
    et_status status = et_alloc(app->cx, sizeof *l->shown * LINES, &block);
    if (status == ET_OK)
        l->shown = block;
    else
        et_free(app->cx, l->line);
    return status;
}

static void
empty(struct tui_app *app, struct logs *l)
{
    for (int i = 0; i < l->n; i++)
        et_free(app->cx, line_at(l, i)->text);
    l->n = l->first = l->n_shown = 0;
    l->dropped = l->waiting = 0;
    l->list = (struct tui_list){0};
    l->follows = true;
}

static void
close_logs(struct tui_app *app, void *self)
{
    struct logs *l = self;
    empty(app, l);
    tui_sieve_release(&l->sieve);
    et_free(app->cx, l->line);
    et_free(app->cx, l->shown);
}

static void
attached(struct tui_app *app, void *self)
{
    empty(app, self);
}

static void
finish_jump(struct logs *l)
{
    if (isnan(l->jump))
        return;
    l->follows = false;
    for (int i = 0; i < l->n_shown; i++) {
        l->list.at = i;
        if (line_at(l, l->shown[i])->t >= l->jump)
            break;
    }
    l->jump = NAN;
}

static bool
tick(struct tui_app *app, void *self)
{
    struct logs *l = self;
    struct tui_log_line in;
    int n = 0;
    struct tui_source *s = app->source;
    if (!s || app->is_frozen || !s->class->line)
        return false;
    while (n < AT_ONCE && s->class->line(s, &in)) {
        n++;
        if (!add(app, l, &in))
            break;
    }
    bool jumps = !isnan(l->jump) && n < AT_ONCE;
    if (jumps)
        finish_jump(l);
    return n > 0 || jumps;
}

void
tui_logs_jump(struct tui_app *app, double t)
{
    struct logs *l = tui_app_state(app, TUI_IN_logs);
    if (!l)
        return;
    l->jump = floor(t); /* the files have whole seconds */
    tui_app_go(app, TUI_IN_logs);
}

/* ---- drawing ---- */

static const char *
text_of(const struct line *line)
{
    return tui_level_text(line->level, line->text);
}

/* Lines of the screen that a line takes. */
static int
height(const struct logs *l, const struct line *line, int w)
{
    int room = w - TEXT_X, width = l->wraps ? tui_width(text_of(line)) : 0;
    return l->wraps && room > 0 && width > room ? (width + room - 1) / room : 1;
}

/* Marks what was searched for in TEXT, which stands in P, in as many lines as it
 * needs. */
static void
mark_found(const struct logs *l, const struct tui_pane *p, const char *text)
{
    const char *found = *l->search ? strcasestr(text, l->search) : NULL;
    if (!found)
        return;
    char before[ET_VISIBLE_MAX + 1];
    snprintf(before, sizeof before, "%.*s", (int)(found - text), text);
    int from = tui_width(before), to = from + tui_width(l->search);
    for (int y = 0; y < p->h && (l->wraps || y == 0); y++) {
        int left = y * p->w, a = from > left ? from - left : 0, b = to - left;
        b = b > p->w ? p->w : b;
        if (a < b)
            tui_ground(p, y, a, b - a, TUI_ON_MATCH);
    }
}

static void
put_line(const struct logs *l, const struct tui_pane *p, int y, const struct line *line,
         bool selected)
{
    char clock[TUI_NUMBER];
    const enum tui_role role = TUI_TEXT;
    enum tui_role level =
        line->level >= ET_LOG_WARN ? tui_level_role(line->level) : TUI_DIM;
    if (selected)
        tui_select(p, y, true);
    tui_put(p, y, 1, TUI_DIM, isnan(line->t) ? "-" : tui_clock(line->t, 2, clock));
    tui_putf(p, y, 10, (enum tui_role)(TUI_S1 + line->rank % 8), "%4d", line->rank);
    if (line->word || line->level >= 0)
        tui_put(p, y, 16, level,
                line->word ? line->word
                           : et_log_level_name((enum et_log_level)line->level));
    struct tui_pane in = tui_pane_part(p, y, TEXT_X, p->h, p->w);
    if (!l->wraps) {
        const char *text = text_of(line) + tui_bytes_of(text_of(line), l->shift);
        tui_put_cut(&in, 0, 0, in.w, role, text);
        mark_found(l, &in, text);
        return;
    }
    const char *at = text_of(line);
    for (int row = 0; in.w > 0 && row < in.h && (*at || row == 0); row++) {
        size_t n = tui_bytes_of(at, in.w);
        tui_put_n(&in, row, 0, role, 0, in.w, at, n);
        at += n;
    }
    if (in.w > 0)
        mark_found(l, &in, text_of(line));
}

/* The first line to show so that the selected one is, with those before it. */
static void
find_top(struct logs *l, int w, int rows)
{
    tui_list_show(&l->list, l->n_shown, rows);
    int used = 0, top = l->list.at;
    for (int i = l->list.at; i >= l->list.top && i >= 0 && i < l->n_shown; i--) {
        used += height(l, line_at(l, l->shown[i]), w);
        if (used > rows)
            break;
        top = i;
    }
    l->list.top = top;
}

static void
put_status(struct tui_app *app, const struct logs *l, const struct tui_pane *p)
{
    char count[TUI_NUMBER], rank[16], fact[ETI_FACT_TEXT];
    const char *name =
        app->source ? eti_facts_get(app->source->facts, "name", fact) : "";
    snprintf(rank, sizeof rank, "%d", l->rank);
    int x = 1 + tui_putf(p, 0, 1, TUI_TEXT, "%s   %s", name ? name : "-",
                         tui_count(l->n_shown, count));
    if (l->n_shown != l->n)
        x += tui_putf(p, 0, x, TUI_TEXT, " of %s", tui_count(l->n, count));
    x += tui_put(p, 0, x, TUI_TEXT, l->n == 1 ? " line" : " lines");
    x += tui_putf(p, 0, x, TUI_TEXT, "   rank %s   %s", l->rank < 0 ? "all" : rank,
                  l->is_errors_only ? "errors"
                  : l->level == ALL_LEVELS
                      ? "all levels"
                      : et_log_level_name((enum et_log_level)l->level));
    if (!l->is_errors_only && l->level > ET_LOG_DEBUG)
        x += tui_put(p, 0, x, TUI_TEXT, " and worse");
    if (*l->sieve.text)
        x += 3 + tui_putf(p, 0, x + 3, TUI_TITLE, "& %s", l->sieve.text);
    if (l->follows)
        tui_put_right(p, 0, x + 1, p->w - 1, TUI_GOOD, "following");
}

/* "-- 14:03:12 - 12 lines wait, G ----": below the lines, while one has scrolled. */
static void
put_marker(struct tui_app *app, const struct logs *l, const struct tui_pane *p, int y)
{
    char clock[TUI_NUMBER], count[TUI_NUMBER], text[2 * TUI_NUMBER + 32];
    const struct line *newest = line_at(l, l->shown[l->n_shown - 1]);
    snprintf(text, sizeof text, "%s %s %s wait%s, G",
             isnan(newest->t) ? "-" : tui_clock(newest->t, 2, clock),
             tui_count(l->waiting, count), l->waiting == 1 ? "line" : "lines",
             l->waiting == 1 ? "s" : "");
    tui_title(p, y, text, false);
    tui_add_spot(app, p->y + y, p->x, p->w, TUI_DO_everywhere_last);
}

static void
draw(struct tui_app *app, void *self, const struct tui_pane *p)
{
    struct logs *l = self;
    if (tui_page_of_run(app, p))
        return;
    put_status(app, l, p);
    struct tui_pane head = tui_pane_part(p, 1, 0, 1, p->w);
    struct tui_pane in = tui_pane_part(p, 2, 0, p->h - 2, p->w);
    tui_title(&head, 0, p->w < 40 ? "log" : "time   rank  level  text", false);
    if (l->n_shown == 0) {
        tui_put(&in, 1, 2, TUI_DIM,
                !app->source->class->line ? "the ranks' logs are on the run's machine"
                : l->n == 0 && app->source->class->retry
                    ? "no line has come yet; what ranks print is on their machine"
                : l->n == 0 ? "the ranks have written nothing yet"
                            : "no line passes; esc shows all");
        return;
    }
    bool waits = !l->follows && l->waiting > 0 && in.h > 2;
    in.h -= waits;
    find_top(l, in.w, in.h);
    for (int i = l->list.top, y = 0; i < l->n_shown && y < in.h; i++) {
        const struct line *line = line_at(l, l->shown[i]);
        put_line(l, &in, y, line, i == l->list.at);
        y += height(l, line, in.w);
    }
    if (waits)
        put_marker(app, l, p, p->h - 1);
}

static enum tui_role
message(struct tui_app *app, void *self, char *buf, size_t size)
{
    const struct logs *l = self;
    char count[TUI_NUMBER];
    (void)app;
    if (l->dropped > 0)
        snprintf(buf, size, "%s older lines are in the run's folder logs/",
                 tui_count(l->dropped, count));
    return TUI_TEXT;
}

/* ---- keys ---- */

static void
searched(struct tui_app *app, void *data, int id, const char *text)
{
    struct logs *l = data;
    (void)id;
    snprintf(l->search, sizeof l->search, "%s", text);
    tui_app_act(app, TUI_DO_everywhere_next_match);
}

static void
find_next(struct tui_app *app, struct logs *l, int by)
{
    if (!*l->search) {
        tui_say(app, TUI_WARN, "! nothing is searched for: / asks");
        return;
    }
    for (int i = 1; i <= l->n_shown; i++) {
        int at = ((l->list.at + by * i) % l->n_shown + l->n_shown) % l->n_shown;
        if (!strcasestr(line_at(l, l->shown[at])->text, l->search))
            continue;
        if (by * (at - l->list.at) < 0)
            tui_say(app, TUI_TEXT, "the search goes on from the other end");
        l->list.at = at;
        l->follows = false;
        return;
    }
    tui_say(app, TUI_WARN, "! '%.60s' stands in no line that is shown", l->search);
}

static void
next_rank(struct tui_app *app, struct logs *l)
{
    int most = app->source ? app->source->model->n_ranks - 1 : 0;
    for (int i = 0; i < l->n; i++)
        most = line_at(l, i)->rank > most ? line_at(l, i)->rank : most;
    l->rank = l->rank < most ? l->rank + 1 : -1;
    sift(l);
}

/* esc shows all again, one thing after the other. */
static bool
close_something(struct logs *l)
{
    if (*l->search)
        l->search[0] = '\0';
    else if (l->sieve.filter || l->rank >= 0 || l->level > ALL_LEVELS ||
             l->is_errors_only) {
        tui_sieve_release(&l->sieve);
        l->rank = -1;
        l->level = ALL_LEVELS;
        l->is_errors_only = false;
        sift(l);
    } else {
        return false;
    }
    return true;
}

/* Columns of the longest line that passes. */
static int
widest(const struct logs *l)
{
    int most = 0;
    for (int i = 0; i < l->n_shown; i++) {
        int w = tui_width(text_of(line_at(l, l->shown[i])));
        most = w > most ? w : most;
    }
    return most;
}

/* Somebody moved in the list: at its end it follows what comes. */
static void
moved(struct logs *l)
{
    l->follows = l->list.at >= l->n_shown - 1;
    if (l->follows)
        l->waiting = 0;
}

static bool
act(struct tui_app *app, void *self, enum tui_action action)
{
    struct logs *l = self;
    l->list.n = l->n_shown;
    if (tui_list_act(&l->list, action)) {
        moved(l);
        return true;
    }
    switch (action) {
    case TUI_DO_logs_search:
        tui_popup_prompt(&app->popup, app->cx, "search", l->search);
        app->popup.done = searched;
        app->popup.data = l;
        return true;
    case TUI_DO_logs_filter:
        tui_sieve_ask(app, &l->sieve,
                      "filter: words, level=warn, rank=3, text:regex, !x, a | b");
        return true;
    case TUI_DO_everywhere_next_match:
    case TUI_DO_everywhere_previous_match:
        find_next(app, l, action == TUI_DO_everywhere_next_match ? 1 : -1);
        return true;
    case TUI_DO_logs_follow:
        l->follows = !l->follows;
        l->waiting = 0;
        if (l->follows)
            l->list.at = l->n_shown - 1;
        return true;
    case TUI_DO_logs_errors:
        l->is_errors_only = !l->is_errors_only;
        sift(l);
        return true;
    case TUI_DO_logs_level:
        l->level = l->level == ET_LOG_ERROR ? ALL_LEVELS
                   : l->level == ALL_LEVELS ? (int)ET_LOG_INFO
                                            : l->level + 1;
        sift(l);
        return true;
    case TUI_DO_logs_rank:
        next_rank(app, l);
        return true;
    case TUI_DO_logs_wrap:
        l->wraps = !l->wraps;
        l->shift = 0;
        return true;
    case TUI_DO_everywhere_right:
        if (!l->wraps && widest(l) > l->shift + app->grid.cols - TEXT_X)
            l->shift += SIDEWAYS;
        return true;
    case TUI_DO_everywhere_left:
        l->shift = l->shift > SIDEWAYS ? l->shift - SIDEWAYS : 0;
        return true;
    case TUI_DO_everywhere_close:
        return close_something(l);
    default:
        return false;
    }
}

static void
mouse(struct tui_app *app, void *self, const struct tui_mouse *m)
{
    struct logs *l = self;
    (void)app;
    l->list.n = l->n_shown;
    /* Lines that are wrapped stand anywhere: there the wheel alone is understood. */
    if (tui_list_mouse(&l->list, m, l->wraps ? -1 : m->y - 2))
        moved(l);
}

const struct tui_screen tui_screen_logs = {
    .where = TUI_IN_logs,
    .needs_run = true,
    .size = sizeof(struct logs),
    .open = open_logs,
    .close = close_logs,
    .attached = attached,
    .draw = draw,
    .message = message,
    .act = act,
    .mouse = mouse,
    .tick = tick,
};
