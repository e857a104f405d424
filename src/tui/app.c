/* SPDX-License-Identifier: Apache-2.0 */
/* app.c: see app.h. */
#include "config.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/seams.h"
#include "core/base/utf8.h"
#include "tui/app.h"
#include "tui/format.h"

static const double MESSAGE_SECONDS = 8;

#define TUI_SCREEN(where, what) extern const struct tui_screen tui_screen_##where;
#include "tui/screens.def"
#undef TUI_SCREEN

const struct tui_screen *const tui_screens[TUI_SCREENS] = {
#define TUI_SCREEN(where, what) [TUI_IN_##where - TUI_IN_compose] = &tui_screen_##where,
#include "tui/screens.def"
#undef TUI_SCREEN
};

double
tui_now(const struct tui_app *app)
{
    return eti_monotonic(app->cx);
}

int
tui_app_phase(const struct tui_app *app)
{
    return app->config.is_still ? -1 : app->phase;
}

double
tui_today(const struct tui_app *app)
{
    if (app->config.is_dump)
        return app->source ? app->source->model->t : NAN;
    return eti_wall(app->cx);
}

/* ---- messages ---- */

void
tui_say(struct tui_app *app, enum tui_role role, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(app->message, sizeof app->message, fmt, ap);
    va_end(ap);
    app->message_role = role;
    app->message_end = tui_now(app) + MESSAGE_SECONDS;
    app->changed = true;
}

void
tui_say_error(struct tui_app *app)
{
    const struct et_error *e = et_error_get(app->cx);
    tui_say(app, TUI_BAD, "x %s", e->message);
    et_error_clear(app->cx);
}

void
tui_copy(struct tui_app *app, const char *text)
{
    if (app->term)
        tui_term_copy(app->term, text);
    tui_say(app, TUI_TEXT, "copied: %s", text);
}

/* ---- screens ---- */

void *
tui_app_state(struct tui_app *app, enum tui_where where)
{
    int i = (int)where - TUI_IN_compose;
    const struct tui_screen *s = app->screen[i];
    void *block;
    if (!s || app->state[i])
        return app->state[i];
    et_status status = et_alloc(app->cx, s->size + 1, &block);
    if (status == ET_OK) {
        app->state[i] = block;
        status = s->open ? s->open(app, block) : ET_OK;
    }
    if (status == ET_OK && s->attached)
        s->attached(app, block);
    if (status != ET_OK) {
        et_free(app->cx, app->state[i]);
        app->state[i] = NULL;
        tui_say_error(app);
    }
    return app->state[i];
}

void
tui_app_go(struct tui_app *app, enum tui_where where)
{
    int i = (int)where - TUI_IN_compose;
    app->shows_help = false;
    app->changed = true;
    if (i == app->at)
        return;
    if (!app->screen[i]) {
        tui_say(app, TUI_WARN, "! this version has no screen %s",
                tui_where_title(where));
    } else if (tui_app_state(app, where)) {
        app->before = app->at;
        app->at = i;
    }
}

enum tui_where
tui_app_place(const struct tui_app *app)
{
    const struct tui_screen *s = app->screen[app->at];
    if (s->needs_run && !app->source)
        return TUI_IN_everywhere;
    return s->place ? s->place((struct tui_app *)app, app->state[app->at]) : s->where;
}

void
tui_app_attach(struct tui_app *app, struct tui_source **source)
{
    tui_source_free(&app->source);
    app->source = source ? *source : NULL;
    if (source)
        *source = NULL;
    app->is_frozen = false;
    app->changed = true;
    app->message_end = 0; /* "brisk-otter starts...": it has */
    for (int i = 0; i < TUI_SCREENS; i++)
        if (app->state[i] && app->screen[i]->attached)
            app->screen[i]->attached(app, app->state[i]);
}

et_status
tui_app_new(const struct tui_app_config *config, struct tui_app **out)
{
    void *block;
    *out = NULL;
    ET_TRY(et_alloc(config->cx, sizeof(struct tui_app), &block));
    struct tui_app *app = block;
    app->cx = config->cx;
    app->config = *config;
    app->is_viewer = config->is_readonly;
    tui_borders_read(&app->borders, config->layout);
    app->at = -1;
    memcpy(app->screen, tui_screens, sizeof app->screen);
    et_status status =
        tui_grid_init(&app->grid, app->cx, config->glyphs, config->rows, config->cols);
    if (status == ET_OK) {
        tui_app_go(app, config->first);
        app->before = app->at;
        if (app->at < 0)
            status = ET_FAIL(app->cx, ET_EINVAL, "%s", app->message);
    }
    if (status != ET_OK)
        tui_app_free(&app);
    *out = app;
    return status;
}

void
tui_app_free(struct tui_app **pointer)
{
    struct tui_app *app = *pointer;
    if (!app)
        return;
    tui_popup_close(&app->popup);
    tui_palette_close(app);
    for (int i = 0; i < TUI_SCREENS; i++) {
        if (app->state[i] && app->screen[i]->close)
            app->screen[i]->close(app, app->state[i]);
        et_free(app->cx, app->state[i]);
    }
    tui_source_free(&app->source);
    tui_grid_release(&app->grid);
    et_free(app->cx, app);
    *pointer = NULL;
}

void
tui_app_resize(struct tui_app *app, int rows, int cols)
{
    struct tui_grid grid;
    if (tui_grid_init(&grid, app->cx, app->config.glyphs, rows, cols) != ET_OK) {
        et_error_clear(app->cx); /* the old picture, cut off, is better than none */
        return;
    }
    tui_grid_release(&app->grid);
    app->grid = grid;
    app->changed = true;
}

/* ---- what is asked for ---- */

enum { STAY, SAVE, LOSE };

/* DATA: the screen whose changes it is about, in app->screen. */
static void
end(struct tui_app *app, void *data, int id, const char *text)
{
    const struct tui_screen **s = data;
    (void)text;
    if (id == SAVE)
        (*s)->save(app, app->state[s - app->screen], TUI_DO_everywhere_leave);
    else
        app->leaves = id == LOSE;
}

static void
leave(struct tui_app *app)
{
    static const struct tui_item items[] = {
        {.id = STAY, .key = 'n', .text = "stay"},
        {.id = SAVE, .key = 's', .text = "save, then leave"},
        {.id = LOSE, .key = 'y', .text = "leave, and lose that"},
    };
    for (int i = 0; i < TUI_SCREENS; i++) {
        const struct tui_screen *s = app->screen[i];
        const char *what =
            app->state[i] && s->unsaved ? s->unsaved(app, app->state[i]) : NULL;
        if (!what)
            continue;
        if (tui_popup_menu(&app->popup, app->cx, "leave etude", items, 3) != ET_OK) {
            tui_say_error(app);
            return;
        }
        tui_popup_line(&app->popup, "%s", what);
        app->popup.done = end;
        app->popup.data = &app->screen[i];
        return;
    }
    app->leaves = true;
}

/* What every screen has alike. */
static bool
act_everywhere(struct tui_app *app, enum tui_action action)
{
    if (tui_goes_to_screen(action)) {
        tui_app_go(app, (enum tui_where)(TUI_IN_compose +
                                         (action - TUI_DO_everywhere_compose)));
        return true;
    }
    switch (action) {
    case TUI_DO_everywhere_palette:
        tui_palette_open(app);
        return true;
    case TUI_DO_everywhere_help:
        app->shows_help = true;
        app->help = (struct tui_list){0};
        tui_field_set(&app->search, "");
        return true;
    case TUI_DO_everywhere_retry:
        if (app->source && app->source->class->retry)
            app->source->class->retry(app->source);
        else
            tui_say(app, TUI_TEXT,
                    "nothing to retry: this run is read as it is written");
        return true;
    case TUI_DO_help_close:
        app->shows_help = false;
        return true;
    case TUI_DO_help_run:
        tui_help_run(app);
        return true;
    case TUI_DO_everywhere_redraw:
        if (app->term)
            tui_term_forget(app->term);
        return true;
    case TUI_DO_everywhere_suspend:
        if (app->term)
            tui_term_suspend(app->term);
        return true;
    case TUI_DO_everywhere_leave:
        leave(app);
        return true;
    default:
        return false;
    }
}

void
tui_app_act(struct tui_app *app, enum tui_action action)
{
    const struct tui_screen *s = app->screen[app->at];
    app->changed = true;
    if (action == TUI_DO_nothing)
        return;
    if (s->act && s->act(app, app->state[app->at], action))
        return;
    if (!act_everywhere(app, action) && action == TUI_DO_everywhere_close)
        app->message_end = 0;
}

/* Cells hold one column each: what takes two or none cannot be shown. */
static bool
has_no_cell(struct tui_app *app, int key)
{
    if (key < 128 || key >= TUI_K_UP || tui_is_narrow((uint32_t)key))
        return false;
    tui_say(app, TUI_WARN, "! a character that is not one cell wide cannot be typed");
    return true;
}

void
tui_app_key(struct tui_app *app, int key)
{
    const struct tui_screen *s = app->screen[app->at];
    app->changed = true;
    app->message_end = 0; /* it answered an earlier key */
    if (has_no_cell(app, key))
        return;
    if (key == TUI_CTRL('l') || key == TUI_CTRL('z')) {
        act_everywhere(app, tui_keys_find(&app->config.keys, TUI_IN_everywhere, key));
    } else if (app->popup.kind != TUI_NO_POPUP) {
        tui_popup_key(&app->popup, app, key);
    } else if (app->shows_help) {
        tui_help_key(app, key);
    } else if (!s->key || !s->key(app, app->state[app->at], key)) {
        enum tui_action action =
            tui_keys_find(&app->config.keys, tui_app_place(app), key);
        if (action == TUI_DO_nothing && key > ' ' && key < 127)
            tui_say(app, TUI_TEXT, "%c does nothing here: ? shows the keys", key);
        tui_app_act(app, action);
    }
}

/* A key of something that is typed. False where nothing is. */
static bool
type(struct tui_app *app, int key)
{
    const struct tui_screen *s = app->screen[app->at];
    const struct tui_popup *p = &app->popup;
    if (p->kind != TUI_NO_POPUP) {
        if (p->kind != TUI_PROMPT && !p->filters)
            return false;
        tui_popup_key(&app->popup, app, key);
        return true;
    }
    if (!app->shows_help)
        return s->key && s->key(app, app->state[app->at], key);
    tui_help_key(app, key);
    return true;
}

void
tui_app_paste(struct tui_app *app, const char *text)
{
    size_t n = strlen(text);
    app->changed = true;
    while (n > 0 && text[n - 1] == ' ') /* where the line ended */
        n--;
    if (n >= TUI_FIELD)
        tui_say(app, TUI_WARN, "! what was pasted is too long: cut to %d bytes",
                TUI_FIELD - 1);
    for (size_t at = 0; at < n;) {
        uint32_t ch;
        int bytes = eti_utf8_decode(text + at, n - at, &ch);
        at += bytes > 0 ? (size_t)bytes : 1;
        if (bytes <= 0 || has_no_cell(app, (int)ch) || type(app, (int)ch))
            continue;
        tui_say(app, TUI_WARN, "! nothing is typed here: what was pasted is not used");
        return;
    }
}

void
tui_app_mouse(struct tui_app *app, const struct tui_mouse *m)
{
    const struct tui_screen *s = app->screen[app->at];
    bool ended;
    app->changed = true;
    if (tui_borders_mouse(&app->borders, m, &ended)) {
        if (ended && !tui_borders_write(&app->borders, app->config.layout))
            tui_say(app, TUI_WARN, "! where the border is cannot be kept");
        return;
    }
    if (app->popup.kind != TUI_NO_POPUP) {
        if (m->what == TUI_CLICK)
            tui_popup_click(&app->popup, app, m->y, m->x);
        else if (m->what != TUI_RIGHT_CLICK)
            tui_popup_key(&app->popup, app,
                          m->what == TUI_WHEEL_UP ? TUI_K_UP : TUI_K_DOWN);
        return;
    }
    for (int i = 0; i < app->n_spots && m->what == TUI_CLICK; i++) {
        const struct tui_spot *spot = &app->spot[i];
        if (m->y == spot->y && m->x >= spot->x && m->x < spot->x + spot->w) {
            tui_app_act(app, spot->action);
            return;
        }
    }
    if (app->shows_help) {
        tui_help_mouse(app, m);
        return;
    }
    struct tui_mouse inside = *m;
    inside.y -= tui_layout_frame(app->grid.rows, app->grid.cols).body.y;
    if (s->mouse)
        s->mouse(app, app->state[app->at], &inside);
}

/* ---- roles ---- */

const char *
tui_app_watches(const struct tui_app *app)
{
    return app->config.is_readonly ? "started with --readonly"
           : app->is_viewer        ? "you are a viewer (v in Workers)"
                                   : NULL;
}

void
tui_app_operate(struct tui_app *app)
{
    struct tui_source *s = app->source;
    app->is_viewer = false;
    if (!s || s->class->refusal(s))
        return;
    if (s->class->request(s, "take") != ET_OK)
        tui_say_error(app);
}

const char *
tui_app_holder(const struct tui_app *app, char *buf, size_t size)
{
    const struct tui_source *s = app->source;
    if (!s || s->class->refusal(s))
        snprintf(buf, size, "%s", "");
    else if (s->is_holder)
        snprintf(buf, size, "You have taken it: nobody else steers it.");
    else if (*s->lease)
        snprintf(buf, size, "%s has taken it, for 30 s at most.", s->lease);
    else
        snprintf(buf, size, "Nobody has taken it.");
    return buf;
}

void
tui_app_listen(struct tui_app *app)
{
    struct tui_source *s = app->source;
    if (!s || !*s->notice)
        return;
    tui_say(app, s->notice_role, "%s", s->notice);
    s->notice[0] = '\0';
}

bool
tui_app_tick(struct tui_app *app, double seconds)
{
    struct tui_source *source = app->source;
    bool more = false;
    if (source && !app->is_frozen && source->class->preview && !app->config.is_dump &&
        source->class->preview(source, seconds))
        app->changed = true;
    if (source && !app->is_frozen && source->class->advance(source, seconds, 0)) {
        app->changed = true;
        more = tui_source_is_loading(source);
    }
    tui_app_listen(app);
    if (tui_palette_tick(app))
        app->changed = true;
    app->has_more = false;
    for (int i = 0; i < TUI_SCREENS; i++)
        if (app->state[i] && app->screen[i]->tick &&
            app->screen[i]->tick(app, app->state[i]) && i == app->at)
            app->changed = true;
    /* A dump's clock is the run's: how long the machine took is no part of it. */
    if (app->message_end > 0 && !app->config.is_dump &&
        tui_now(app) > app->message_end) {
        app->message_end = 0;
        app->changed = true;
    }
    return more || app->has_more;
}
