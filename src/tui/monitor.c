/* SPDX-License-Identifier: Apache-2.0 */
/* monitor.c: the screen Monitor: a run as it goes on. UX.md sections 3, 4, 6, 7. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/library/facts.h"
#include "tui/format.h"
#include "tui/monitor.h"
#include "tui/page.h"

enum { IN_LINE = 3 };

static const char *const border_names[TUI_M_BORDERS] = {
    [TUI_M_SIDE] = "monitor.side",
    [TUI_M_ROWS] = "monitor.rows",
    [TUI_M_BELOW_CHARTS] = "monitor.charts",
    [TUI_M_BELOW_RANKS] = "monitor.ranks",
};

/* ---- begin and end ---- */

/* Other events pass now: the newest is selected. */
static void
sifted(void *self)
{
    struct tui_monitor *m = self;
    m->events.at = m->events.top = 0;
}

static et_status
open_monitor(struct tui_app *app, void *self)
{
    struct tui_monitor *m = self;
    void *block;
    m->focus = TUI_M_CHART;
    m->smooth = TUI_SMOOTH_USUAL;
    m->mark = -1;
    m->sieve.changed = sifted;
    m->sieve.data = m;
    m->slowest = -1;
    m->median_ms = NAN;
    for (int i = 0; i < TUI_CHARTS; i++)
        m->chart[i].to = 1;
    ET_TRY(et_alloc(app->cx, sizeof *m->point * TUI_PLOT_LINES * ETD_BINS, &block));
    m->point = block;
    return ET_OK;
}

static void
close_monitor(struct tui_app *app, void *self)
{
    struct tui_monitor *m = self;
    tui_sieve_release(&m->sieve);
    et_free(app->cx, m->point);
    et_free(app->cx, m->rank);
    tui_wall_close(&m->wall);
    tui_rival_forget(&m->rival);
    tui_ending_forget(m);
    tui_job_stop(&m->again);
}

/* Another run: what was looked at of the one before does not hold. */
static void
attached(struct tui_app *app, void *self)
{
    struct tui_monitor *m = self;
    for (int i = 0; i < TUI_CHARTS; i++)
        m->chart[i] = (struct tui_chart){.to = 1};
    m->inspects = false;
    tui_sieve_set(app, &m->sieve, "");
    m->ranks = m->events = (struct tui_list){0};
    m->axis = TUI_BY_STEP;
    m->has_axis = false;
    m->mark = -1;
    tui_wall_close(&m->wall);
    tui_rival_forget(&m->rival);
    tui_ending_forget(m);
}

static struct tui_view
view_of(struct tui_app *app, struct tui_monitor *m)
{
    const struct tui_source *s = app->source;
    return (struct tui_view){
        .app = app,
        .m = m,
        .model = s->model,
        .facts = s->facts,
        .now =
            app->is_frozen || s->link == TUI_LINK_LOST ? s->model->t : tui_today(app),
        .is_over = etd_model_has_ended(s->model) ||
                   (s->link == TUI_LINK_ENDED && !app->config.is_past),
    };
}

/* ---- drawing ---- */

static struct tui_pane
pane_of(const struct tui_pane *p, const struct tui_rect *r)
{
    struct tui_pane all = tui_pane_of(p->grid);
    return tui_pane_part(&all, r->y, r->x, r->h, r->w);
}

static void
draw_part(const struct tui_view *v, int i, const struct tui_pane *p)
{
    bool focus = v->m->focus == i;
    if (p->h < 1 || p->w < 1)
        return;
    if (i >= TUI_M_CHART && i <= TUI_M_LAST_CHART)
        tui_monitor_chart(v, i - TUI_M_CHART, p, focus);
    switch (i) {
    case TUI_M_STATUS:
        tui_monitor_status(v, p);
        break;
    case TUI_M_HERO:
        tui_monitor_hero(v, p);
        break;
    case TUI_M_BARS:
        tui_monitor_bars(v, p);
        break;
    case TUI_M_NUMBERS:
        tui_monitor_numbers(v, p, focus);
        break;
    case TUI_M_STEP:
        tui_monitor_step(v, p, focus);
        break;
    case TUI_M_RANKS:
        tui_monitor_ranks(v, p, focus);
        break;
    case TUI_M_MAP:
        tui_monitor_map(v, p, focus);
        break;
    case TUI_M_EVENTS:
        tui_monitor_events(v, p, focus);
        break;
    case TUI_M_ALGORITHMS:
        tui_monitor_algorithms(v, p, focus);
        break;
    case TUI_M_RULE:
        tui_title(p, 0, "", false);
        break;
    default:
        break;
    }
}

static bool
takes_focus(int part)
{
    return part > TUI_M_BARS && part != TUI_M_RULE;
}

/* At SMALL one panel is shown, and tab changes it; so does "full screen" elsewhere. */
static int
only_part(const struct tui_app *app, const struct tui_monitor *m)
{
    enum tui_size size = tui_size_of(app->grid.rows, app->grid.cols);
    return m->is_full || size == TUI_SMALL ? m->focus : -1;
}

static void
draw(struct tui_app *app, void *self, const struct tui_pane *p)
{
    struct tui_monitor *m = self;
    if (tui_page_of_run(app, p))
        return;
    if (m->wall.is_open) {
        tui_wall_draw(&m->wall, p);
        return;
    }
    const struct tui_view v = view_of(app, m);
    if (tui_ranks_gather(&v) != ET_OK)
        tui_say_error(app);
    tui_charts_default(m, v.model);
    struct tui_monitor_needs needs = {
        .bars = tui_monitor_n_bars(v.model, app->grid.rows, app->grid.cols),
        .charts = tui_charts_shown(m),
        .ranks = m->n_ranks,
        .only = only_part(app, m),
    };
    enum tui_size size = tui_size_of(app->grid.rows, app->grid.cols);
    for (int i = 0; i < TUI_M_BORDERS; i++)
        needs.moved[i] = tui_border_moved(&app->borders, border_names[i], size);
    m->layout = tui_layout_monitor(app->grid.rows, app->grid.cols, &needs);
    for (int i = 0; i < TUI_M_BORDERS; i++)
        tui_border_stands(&app->borders, border_names[i], size, i != TUI_M_SIDE,
                          m->layout.border[i].at, m->layout.border[i].moved);
    if (m->layout.part[m->focus].h == 0) /* the size has changed */
        m->focus = TUI_M_CHART;
    const bool is_ended = size != TUI_TINY && tui_ending_is_shown(&v);
    for (int i = 0; i < TUI_M_PARTS; i++) {
        struct tui_pane part = pane_of(p, &m->layout.part[i]);
        if (!is_ended || i == TUI_M_STATUS)
            draw_part(&v, i, &part);
    }
    if (is_ended) { /* what the lines below the first would say, it says */
        const struct tui_rect *status = &m->layout.part[TUI_M_STATUS];
        const struct tui_frame f = tui_layout_frame(app->grid.rows, app->grid.cols);
        const int y = status->y + status->h;
        const struct tui_rect rest = {y, 0, f.body.y + f.body.h - y, f.body.w};
        const struct tui_pane page = pane_of(p, &rest);
        tui_ending_draw(&v, &page);
    }
    if (app->source->link == TUI_LINK_LOST)
        for (int i = TUI_M_CHART; i < TUI_M_PARTS; i++) {
            struct tui_pane part = pane_of(p, &m->layout.part[i]);
            tui_tint(&part, TUI_STALE);
        }
}

/* ---- the message line ---- */

static enum tui_role
straggler_message(const struct tui_view *v, char *buf, size_t size)
{
    const struct tui_rank *r = &v->m->rank[v->m->slowest];
    double lost = r->own_ms - v->m->median_ms, mean, p99;
    char ms[TUI_NUMBER];
    tui_batch_ms(v->model, &mean, &p99);
    snprintf(ms, sizeof ms, lost < 9.95 ? "%.1f" : "%.0f", lost);
    snprintf(buf, size,
             "! rank %d holds every step back by %s ms (%.0f%%): %s. Enter for more",
             r->number, ms, 100 * lost / (mean > 0 ? mean : r->own_ms), r->cause);
    return TUI_WARN;
}

/* How to go on with a run that did not come to its end. */
static bool
end_message(const struct tui_view *v, char *buf, size_t size)
{
    char fact[ETI_FACT_TEXT];
    const char *state = tui_run_state(v), *name = eti_facts_get(v->facts, "name", fact);
    const char *reason = json_string_value(json_object_get(v->facts, "reason"));
    enum eti_state_kind kind = eti_state_kind_of(state);
    if (!v->is_over || !name || tui_ending_is_shown(v) ||
        (kind != ETI_STATE_BROKEN && kind != ETI_STATE_HALTED))
        return false;
    /* What is cut off where there is little room can be read in the log. */
    snprintf(buf, size, "%s %s%s%s%s", kind == ETI_STATE_BROKEN ? "x" : "!", state,
             reason ? ": " : "", reason ? reason : "",
             v->m->ending ? "  (enter: the ways on)" : "");
    return true;
}

/* The newest event, where no panel shows them; else the newest warning of the last
 * minute, but none of before a resume: the end that it told of is over. */
static enum tui_role
event_message(const struct tui_view *v, char *buf, size_t size)
{
    enum { MINUTE = 60 };
    char clock[TUI_NUMBER];
    const bool is_shown = v->m->layout.part[TUI_M_EVENTS].h > 1;
    for (int i = v->model->n_events - 1; i >= 0; i--) {
        const struct etd_event *e = etd_model_event(v->model, i);
        if (is_shown && e->kind == ET_RECORD_RESUME)
            break;
        if (!tui_event_passes(v->m, e) || (is_shown && e->level < ET_LOG_WARN))
            continue;
        if (is_shown && e->t < v->now - MINUTE)
            break;
        snprintf(buf, size, "%s%s  %s",
                 e->level == ET_LOG_ERROR  ? "x "
                 : e->level == ET_LOG_WARN ? "! "
                                           : "",
                 tui_clock(e->t, 2, clock), tui_level_text((int)e->level, e->text));
        return tui_level_role((int)e->level);
    }
    return TUI_TEXT;
}

static enum tui_role
message(struct tui_app *app, void *self, char *buf, size_t size)
{
    struct tui_monitor *m = self;
    if (!app->source)
        return TUI_TEXT;
    const struct tui_view v = view_of(app, m);
    if (m->wall.is_open && !*app->source->problem)
        return tui_wall_message(&m->wall, buf, size);
    if (app->source->is_refused)
        return TUI_TEXT; /* the page says it */
    if (*app->source->problem) {
        snprintf(buf, size, "x %s", app->source->problem);
        return TUI_BAD;
    }
    if (m->inspects && *tui_chart_inspect(&v, buf, size))
        return TUI_FOCUS;
    if (m->slowest >= 0 && m->slowest < m->n_ranks && !v.is_over)
        return straggler_message(&v, buf, size);
    if (end_message(&v, buf, size))
        return *buf == 'x' ? TUI_BAD : TUI_WARN;
    if (m->ending && !tui_ending_is_shown(&v)) { /* esc has led from it to the charts */
        snprintf(buf, size, "enter: how it ended, and the ways on");
        return TUI_DIM;
    }
    /* The page of an end says what became of it, and no event says it again. */
    return tui_ending_is_shown(&v) ? TUI_TEXT : event_message(&v, buf, size);
}

/* ---- keys ---- */

static void
move_focus(struct tui_app *app, struct tui_monitor *m, int by)
{
    int rows = app->grid.rows, cols = app->grid.cols;
    struct tui_monitor_needs needs = {
        .charts = tui_charts_shown(m), .ranks = m->n_ranks, .only = -1};
    if (tui_size_of(rows, cols) < TUI_NORMAL) {
        rows = 24; /* all panels of the smallest screen that has them */
        cols = 80;
    }
    needs.bars =
        tui_monitor_n_bars(app->source ? app->source->model : NULL, rows, cols);
    const struct tui_monitor_layout l = tui_layout_monitor(rows, cols, &needs);
    for (int i = 0, at = m->focus; i < TUI_M_PARTS; i++) {
        at = (at + by + TUI_M_PARTS) % TUI_M_PARTS;
        if (!takes_focus(at) || l.part[at].h == 0)
            continue;
        m->focus = at;
        return;
    }
}

static struct tui_list *
focused_list(struct tui_monitor *m)
{
    return m->focus == TUI_M_EVENTS                           ? &m->events
           : m->focus == TUI_M_RANKS || m->focus == TUI_M_MAP ? &m->ranks
                                                              : NULL;
}

/* To the newest mark, then to those before it, one after the other. */
static void
go_to_mark(struct tui_app *app, struct tui_monitor *m)
{
    const struct etd_model *model = app->source->model;
    const double all = fmax(etd_model_length(model, "run/batches"), (double)model->ba);
    if (model->n_marks == 0) {
        tui_say(app, TUI_WARN, "! the run has no resume, note or checkpoint yet");
        return;
    }
    m->mark = (m->mark + 1) % model->n_marks;
    const struct etd_mark *k = etd_model_mark(model, model->n_marks - 1 - (int)m->mark);
    m->axis = TUI_BY_STEP;
    m->inspects = true;
    m->cursor = all > 0 ? fmin(1, (double)k->ba / all) : 0;
    tui_say(app, TUI_TEXT, "%s after %" PRId64 "ba  %s", et_record_name(k->kind), k->ba,
            k->text);
}

static void
show_details(struct tui_app *app, struct tui_monitor *m)
{
    static const struct tui_item items[] = {{.id = 0, .text = "close"}};
    char number[TUI_NUMBER];
    const struct tui_view v = view_of(app, m);
    if (tui_ranks_gather(&v) != ET_OK) /* records came since they were drawn */
        tui_say_error(app);
    int at =
        m->focus == TUI_M_RANKS || m->focus == TUI_M_MAP ? m->ranks.at : m->slowest;
    if (m->focus == TUI_M_EVENTS || at < 0 || at >= m->n_ranks) {
        m->is_full = !m->is_full;
        return;
    }
    const struct tui_rank *r = &m->rank[at];
    char title[48];
    snprintf(title, sizeof title, "rank %d", r->number);
    if (tui_popup_menu(&app->popup, app->cx, title, items, 1) != ET_OK) {
        tui_say_error(app);
        return;
    }
    if (r->is_slow)
        tui_popup_line(&app->popup, "slow: %s", r->cause);
    for (int i = 0; i < r->part->n; i += IN_LINE) {
        char line[160] = "";
        size_t n = 0;
        for (int k = i; k < i + IN_LINE && k < r->part->n && n < sizeof line; k++)
            n += (size_t)snprintf(line + n, sizeof line - n, "%-13.13s %8.8s  ",
                                  r->part->number[k].name,
                                  tui_value(r->part->number[k].value, number));
        tui_popup_line(&app->popup, "%s", line);
    }
}

static void
jump_to_log(struct tui_app *app, struct tui_monitor *m)
{
    const struct tui_view v = view_of(app, m);
    double t = tui_chart_time(&v);
    if (m->focus == TUI_M_EVENTS && v.model->n_events > m->events.at)
        t = etd_model_event(v.model, v.model->n_events - 1 - m->events.at)->t;
    tui_logs_jump(app, isnan(t) ? v.model->t : t);
}

static bool
act_on_chart(struct tui_app *app, struct tui_monitor *m, enum tui_action action)
{
    struct tui_chart *c = tui_chart_focused(m);
    switch (action) {
    case TUI_DO_monitor_axis:
        tui_chart_turn_axis(m, app->source->model);
        return true;
    case TUI_DO_monitor_log_y:
        c->is_log = !c->is_log;
        return true;
    case TUI_DO_monitor_smoother:
        m->smooth = m->smooth < TUI_SMOOTH_MOST ? m->smooth + 1 : m->smooth;
        return true;
    case TUI_DO_monitor_rougher:
        m->smooth = m->smooth > 0 ? m->smooth - 1 : 0;
        return true;
    case TUI_DO_monitor_zoom_in:
        tui_chart_zoom(m, app->source->model, 0.5);
        return true;
    case TUI_DO_monitor_zoom_out:
        tui_chart_zoom(m, app->source->model, 2);
        return true;
    case TUI_DO_monitor_zoom_fit:
        c->from = 0;
        c->to = 1;
        return true;
    case TUI_DO_monitor_inspect: {
        double done = etd_model_done(app->source->model);
        m->inspects = !m->inspects;
        m->cursor = isnan(done) ? 1 : done;
        return true;
    }
    case TUI_DO_monitor_metrics:
        tui_metrics_open(app, m, 0);
        return true;
    case TUI_DO_monitor_second:
        tui_metrics_open(app, m, 1);
        return true;
    case TUI_DO_monitor_mark:
        go_to_mark(app, m);
        return true;
    case TUI_DO_monitor_export: {
        const struct tui_view v = view_of(app, m);
        tui_chart_export(&v);
        return true;
    }
    case TUI_DO_everywhere_left:
    case TUI_DO_everywhere_right:
        tui_chart_move(m, action == TUI_DO_everywhere_left ? -1 : 1);
        return true;
    default:
        return false;
    }
}

/* esc undoes one thing after the other. */
static bool
close_something(struct tui_app *app, struct tui_monitor *m)
{
    if (m->inspects)
        m->inspects = false;
    else if (*m->sieve.text)
        tui_sieve_set(app, &m->sieve, "");
    else if (m->is_full)
        m->is_full = false;
    else if (app->is_frozen)
        app->is_frozen = false;
    else
        return false;
    return true;
}

/* The keys of the page that lies over the charts of an ended run are its own. */
static enum tui_where
place(struct tui_app *app, void *self)
{
    struct tui_monitor *m = self;
    if (m->wall.is_open)
        return TUI_IN_wall;
    if (!app->source || tui_size_of(app->grid.rows, app->grid.cols) == TUI_TINY)
        return TUI_IN_monitor;
    const struct tui_view v = view_of(app, m);
    return tui_ending_is_shown(&v) ? TUI_IN_ending : TUI_IN_monitor;
}

static const char *
hint(struct tui_app *app, void *self, enum tui_action action)
{
    const struct tui_monitor *m = self;
    if (m->wall.is_open)
        return tui_wall_hint(&m->wall, action);
    return place(app, self) == TUI_IN_ending ? tui_ending_hint(self, action) : NULL;
}

static void
open_wall(struct tui_app *app, struct tui_monitor *m)
{
    if (tui_wall_open(&m->wall, app) != ET_OK) {
        tui_say_error(app);
        return;
    }
    (void)tui_wall_add(&m->wall, app->source, false);
    m->wall.rival = &m->rival;
    m->wall.smooth = m->smooth;
}

static bool
type(struct tui_app *app, void *self, int key)
{
    struct tui_monitor *m = self;
    (void)app;
    return m->wall.is_open && tui_wall_key(&m->wall, key);
}

static bool
act(struct tui_app *app, void *self, enum tui_action action)
{
    struct tui_monitor *m = self;
    struct tui_list *list = focused_list(m);
    if (m->wall.is_open)
        return tui_wall_act(&m->wall, action);
    if (place(app, self) == TUI_IN_ending) {
        const struct tui_view v = view_of(app, m);
        if (tui_ending_act(&v, action))
            return true;
    }
    if (action == TUI_DO_monitor_details && m->ending && !list) {
        m->hides_ending = false;
        return true;
    }
    switch (action) {
    case TUI_DO_everywhere_next_panel:
    case TUI_DO_monitor_next_panel:
        move_focus(app, m, 1);
        return true;
    case TUI_DO_everywhere_previous_panel:
    case TUI_DO_monitor_previous_panel:
        move_focus(app, m, -1);
        return true;
    case TUI_DO_everywhere_full:
        m->is_full = !m->is_full;
        return true;
    case TUI_DO_monitor_control:
        tui_control_open(app);
        return true;
    case TUI_DO_monitor_annotate:
        tui_annotate_open(app);
        return true;
    case TUI_DO_everywhere_close:
        return close_something(app, m);
    default:
        break;
    }
    if (!app->source)
        return false;
    if (list && tui_list_act(list, action))
        return true;
    switch (action) {
    case TUI_DO_monitor_wall:
        open_wall(app, m);
        return true;
    case TUI_DO_monitor_filter:
        tui_sieve_ask(app, &m->sieve, "filter events and metrics");
        return true;
    case TUI_DO_monitor_freeze:
        app->is_frozen = !app->is_frozen;
        return true;
    case TUI_DO_monitor_sort:
        m->order = (m->order + 1) % TUI_ORDERS;
        tui_say(app, TUI_TEXT, "ranks by %s", tui_rank_order_name(m->order));
        return true;
    case TUI_DO_monitor_columns:
        m->columns =
            (tui_rank_columns_shown(m, app->source->model) + 1) % TUI_COLUMN_SETS;
        return true;
    case TUI_DO_monitor_details:
        show_details(app, m);
        return true;
    case TUI_DO_monitor_jump:
        jump_to_log(app, m);
        return true;
    default:
        return act_on_chart(app, m, action);
    }
}

/* ---- mouse ---- */

static void
mouse(struct tui_app *app, void *self, const struct tui_mouse *e)
{
    struct tui_monitor *m = self;
    const int y = e->y + 1, x = e->x; /* the layout counts from the screen's corner */
    if (m->wall.is_open) {
        tui_wall_mouse(&m->wall, e);
        return;
    }
    for (int i = 0; i < TUI_M_PARTS && app->source; i++) {
        const struct tui_rect *r = &m->layout.part[i];
        if (!takes_focus(i) || y < r->y || y >= r->y + r->h || x < r->x ||
            x >= r->x + r->w)
            continue;
        m->focus = i;
        bool is_chart = i >= TUI_M_CHART && i <= TUI_M_LAST_CHART;
        struct tui_list *list = focused_list(m);
        if (is_chart && e->what == TUI_RIGHT_CLICK) {
            const struct tui_chart *c = tui_chart_focused(m);
            int w = r->w - TUI_PLOT_LABEL - 2, at = x - r->x - TUI_PLOT_LABEL - 1;
            m->inspects = true;
            m->cursor =
                c->from +
                (c->to - c->from) * fmin(1, fmax(0, (double)at / (w > 1 ? w - 1 : 1)));
        } else if (is_chart && e->what != TUI_CLICK) {
            tui_chart_zoom(m, app->source->model, e->what == TUI_WHEEL_UP ? 0.8 : 1.25);
        } else if (list) {
            tui_list_mouse(list, e, y - r->y - 1);
        }
        return;
    }
}

/* What moves by itself: the time that a live run has taken, marks of unknown
 * lengths. */
static bool
tick(struct tui_app *app, void *self)
{
    struct tui_monitor *m = self;
    const struct tui_source *s = app->source;
    bool any =
        s && !tui_source_is_loading(s) && tui_rival_tick(app, &m->rival, s->facts);
    any = (m->wall.is_open && tui_wall_tick(&m->wall)) || any;
    tui_ending_poll(app, m);
    if (any || !s || app->is_frozen || app->config.is_dump || s->link == TUI_LINK_ENDED)
        return any;
    return app->phase % 10 == 0;
}

const struct tui_screen tui_screen_monitor = {
    .where = TUI_IN_monitor,
    .needs_run = true,
    .size = sizeof(struct tui_monitor),
    .open = open_monitor,
    .close = close_monitor,
    .attached = attached,
    .draw = draw,
    .place = place,
    .hint = hint,
    .message = message,
    .key = type,
    .act = act,
    .mouse = mouse,
    .tick = tick,
};
