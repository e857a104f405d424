/* SPDX-License-Identifier: Apache-2.0 */
/* made.c: see made.h. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/tui/made.h"

/* ---- a source that has no more ---- */

static bool
has_no_more(struct tui_source *s, double seconds, int64_t until)
{
    (void)s, (void)seconds, (void)until;
    return false;
}

static void
free_model(struct tui_source *s)
{
    etd_model_free(&((struct made *)s)->model);
}

static void
all_is_in(const struct tui_source *s, int64_t *done, int64_t *all)
{
    (void)s;
    *done = *all = 1;
}

static const char *
refusal(const struct tui_source *s)
{
    return ((const struct made *)s)->refusal;
}

static const char *
mute(const struct tui_source *s)
{
    return ((const struct made *)s)->mute;
}

static et_status
take_request(struct tui_source *s, const char *text)
{
    struct made *m = (struct made *)s;
    memmove(m->asked[1], m->asked[0], sizeof m->asked - sizeof m->asked[0]);
    snprintf(m->asked[0], sizeof m->asked[0], "%s", text);
    return ET_OK;
}

static et_status
take_note(struct tui_source *s, const char *text)
{
    char line[160];
    snprintf(line, sizeof line, "note: %.150s", text);
    return take_request(s, line);
}

static const struct tui_source_class made_class = {
    .free = free_model,
    .advance = has_no_more,
    .progress = all_is_in,
    .refusal = refusal,
    .request = take_request,
    .mute = mute,
    .annotate = take_note,
};

/* ---- the run ---- */

struct made *
made_run(struct et_ctx *cx, const char *facts)
{
    void *block;
    if (et_alloc(cx, sizeof(struct made), &block) != ET_OK)
        bail("no memory for a run");
    struct made *m = block;
    if (etd_model_new(cx, &m->model) != ET_OK)
        bail("no memory for a model");
    m->source = (struct tui_source){
        .class = &made_class,
        .cx = cx,
        .model = m->model,
        .facts = json_loads(facts, 0, NULL),
        .link = TUI_LINK_LIVE,
        .rtt_ms = NAN,
    };
    if (!m->source.facts)
        bail("no facts: %s", facts);
    m->at = (struct et_record){.t = 1763646980}; /* 2025-11-20 13:56:20 UTC */
    return m;
}

void
made_open(struct made *m, enum tui_where where, int rows, int cols)
{
    struct tui_source *source = &m->source;
    struct tui_app_config config = {
        .cx = m->source.cx,
        .glyphs = &tui_glyphs_ascii,
        .is_dump = true,
        .first = where,
        .rows = rows,
        .cols = cols,
    };
    tui_keys_default(&config.keys);
    if (tui_app_new(&config, &m->app) != ET_OK)
        bail("no screen: %s", et_error_get(m->source.cx)->message);
    tui_app_attach(m->app, &source);
    tui_app_draw(m->app);
}

void
made_free(struct made **m)
{
    struct tui_app *app = (*m)->app;
    struct tui_source *source = &(*m)->source;
    *m = NULL;
    if (app) /* whose it is */
        tui_app_free(&app);
    else
        tui_source_free(&source);
}

void
made_say(struct made *m, enum et_record_kind kind, int rank, const char *text,
         const struct et_log_entry *entry, int n)
{
    struct et_record r = m->at;
    r.kind = kind;
    r.rank = rank;
    r.text = text;
    r.entry = entry;
    r.n = n;
    r.seq = ++m->at.seq;
    if (etd_model_apply(m->model, &r) != ET_OK)
        bail("no record: %s", et_error_get(m->source.cx)->message);
}

void
made_state(struct made *m, const char *word)
{
    made_say(m, ET_RECORD_RUN, 0, word, NULL, 0);
}

void
made_line(struct made *m, int rank, enum et_log_level level, const char *text)
{
    m->at.level = level;
    made_say(m, ET_RECORD_LOG, rank, text, NULL, 0);
}

void
made_batches(struct made *m, int n, double ms, int samples)
{
    for (int i = 0; i < n; i++) {
        m->at.t += ms / 1000;
        m->at.ba++;
        m->at.sp += samples;
        MADE_SAY(m, ET_RECORD_BATCH, 0, NULL, {"loss/train/total", 1});
    }
}

/* ---- what is shown of it ---- */

void
made_press(struct made *m, const char *keys)
{
    for (int key; (key = tui_keys_next(&keys)) != TUI_K_NONE;) {
        if (key < 0)
            bail("no key: %s", keys);
        tui_app_key(m->app, key);
        tui_app_draw(m->app);
    }
}

const char *
made_screen(struct made *m)
{
    static char *text;
    size_t n;
    free(text);
    FILE *f = open_memstream(&text, &n);
    if (!f)
        bail("no memory for a screen");
    tui_app_draw(m->app);
    tui_grid_print(&m->app->grid, f);
    fclose(f);
    return text;
}

struct tui_view
made_view(struct made *m)
{
    const struct tui_view v = {
        .app = m->app,
        .m = tui_app_state(m->app, TUI_IN_monitor),
        .model = m->model,
        .facts = m->source.facts,
        .now = tui_today(m->app),
        .is_over = etd_model_has_ended(m->model) || m->source.link == TUI_LINK_ENDED,
    };
    if (tui_ranks_gather(&v) != ET_OK)
        bail("no memory for ranks");
    tui_charts_default(v.m, v.model);
    return v;
}

const char *
made_panel_text(struct made *m, made_panel *panel, int rows, int cols, bool roles)
{
    static char *text;
    size_t n;
    struct tui_grid g;
    const struct tui_view v = made_view(m);
    free(text);
    FILE *f = open_memstream(&text, &n);
    if (!f || tui_grid_init(&g, m->source.cx, &tui_glyphs_ascii, rows, cols) != ET_OK)
        bail("no memory for a panel");
    const struct tui_pane all = tui_pane_of(&g);
    panel(&v, &all, false);
    tui_grid_print(&g, f);
    if (roles)
        tui_grid_print_roles(&g, f);
    fclose(f);
    tui_grid_release(&g);
    return text;
}
