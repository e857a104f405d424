/* SPDX-License-Identifier: Apache-2.0 */
/* workers_draw.c: the screen Workers drawn: a line for each, one of them in detail, and
 * the form that attaches. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "core/library/facts.h"
#include "tui/format.h"
#include "tui/glyphs.h"
#include "tui/workers.h"

enum { DETAIL = 5, ATTACH = 6 }; /* lines */

/* LOST has two cases: a worker that has never answered, and one whose last answer is
 * known. */
enum { WORKER_UNKNOWN = WORKER_LOST + 1 };

static const struct {
    enum tui_role role;
    const char *word;
} states[] = {
    [WORKER_ASKED] = {TUI_DIM, "asking"},
    [WORKER_READY] = {TUI_GOOD, "ready"},
    [WORKER_OLD] = {TUI_WARN, "another version"},
    [WORKER_REFUSED] = {TUI_BAD, "key refused"},
    [WORKER_LOST] = {TUI_BAD, "unreachable"},
    [WORKER_UNKNOWN] = {TUI_STALE, "lost contact"},
};

static int
state_of_row(const struct workers_row *r)
{
    return r->state == WORKER_LOST && r->heard > 0 ? (int)WORKER_UNKNOWN
                                                   : (int)r->state;
}

static uint32_t
sign_of(const struct tui_glyphs *g, int state)
{
    return state == WORKER_ASKED     ? '.'
           : state == WORKER_READY   ? g->live
           : state == WORKER_OLD     ? '!'
           : state == WORKER_UNKNOWN ? '?'
                                     : g->failed;
}

/* What its GPUs do, when they were tested: how busy and how full they are, the mean of
 * all. */
static void
put_load(const struct tui_pane *p, int y, int x, const struct workers_row *r)
{
    const struct etd_host_facts *h = &r->host_facts;
    double busy = 0, full = 0;
    for (int i = 0; i < h->n_gpus; i++) {
        busy += isfinite(h->gpu[i].util) ? h->gpu[i].util : 0;
        full += h->gpu[i].total > 0 ? h->gpu[i].used / h->gpu[i].total : 0;
    }
    if (!r->is_tested || h->n_gpus == 0)
        return;
    tui_gauge(p, y, x, 9, busy / h->n_gpus, false);
    tui_gauge(p, y, x + 10, 9, full / h->n_gpus, true);
    tui_put_n(p, y, x + 21, TUI_TEXT, 0, p->w - x - 22, h->run, strlen(h->run));
}

/* What it said last: now, or with its age where it does not answer. */
static void
put_values(const struct workers *w, const struct tui_pane *p, int y,
           const struct workers_row *r, bool is_old)
{
    char a[TUI_NUMBER];
    enum tui_role role = is_old ? TUI_STALE : TUI_TEXT;
    if (r->gpus >= 0)
        tui_putf(p, y, 47, role, "%3lld", (long long)r->gpus);
    else
        tui_put(p, y, 49, TUI_DIM, "-");
    tui_putf(p, y, 54, role, "%4lld", (long long)r->cores);
    tui_put(p, y, 62, role, r->role);
    if (is_old && !w->app->config.is_dump)
        snprintf(a, sizeof a, "%.0fs ago", tui_now(w->app) - r->heard);
    else if (is_old)
        snprintf(a, sizeof a, "ago");
    else
        tui_ms(r->rtt_ms, a);
    tui_put_end(p, y, 79, role, a);
    if (p->w >= 120)
        put_load(p, y, 82, r);
}

static void
put_row(const struct workers *w, const struct tui_pane *p, int y,
        const struct workers_row *r)
{
    const int s = state_of_row(r);
    tui_put_ch(p, y, 2, sign_of(p->grid->glyphs, s), states[s].role, 0);
    tui_put_n(p, y, 4, TUI_TEXT, 0, 13, r->name, strlen(r->name));
    tui_put_n(p, y, 18, TUI_TEXT, 0, 28, r->address, strlen(r->address));
    if (s == WORKER_READY || s == WORKER_UNKNOWN) {
        put_values(w, p, y, r, s == WORKER_UNKNOWN);
    } else if (s == WORKER_LOST && r->job.pid <= 0) {
        double left = r->next - tui_now(w->app);
        if (w->app->config.is_dump)
            tui_put(p, y, 47, states[s].role, states[s].word);
        else
            tui_putf(p, y, 47, states[s].role, "%s, retry %.0fs", states[s].word,
                     left > 0 ? ceil(left) : 0);
    } else {
        tui_put(p, y, 47, states[s].role, states[s].word);
    }
}

static const char *
fix_of(const struct workers_row *r)
{
    switch (r->state) {
    case WORKER_READY:
        return r->is_alone ? TUI_WORKER_ALONE : "t tests it: GPUs, disk, bandwidth";
    case WORKER_LOST:
        return "is `etude worker serve` running there, with that key? R asks again";
    case WORKER_REFUSED:
        return "k copies the command that lets this key in there";
    case WORKER_OLD:
        return "both sides need versions that speak one protocol";
    default:
        return "";
    }
}

/* Lines that the GPUs of R need, two in each. */
static int
gpu_rows(const struct workers_row *r)
{
    return r->state == WORKER_READY && r->is_tested ? (r->host_facts.n_gpus + 1) / 2
                                                    : 0;
}

static void
draw_test(const struct tui_pane *p, const struct workers_row *r)
{
    const struct etd_host_facts *h = &r->host_facts;
    char a[TUI_NUMBER], b[TUI_NUMBER];
    int n = h->n_gpus, half = (n + 1) / 2;
    tui_putf(p, 2, 1, TUI_TEXT, "up %lldd   disk %s free   %s/s from there   %s%s%s%s",
             (long long)(h->uptime / 86400), tui_bytes((double)h->disk_free, a),
             tui_bytes(r->bandwidth, b), *h->driver ? "driver " : "", h->driver,
             *h->driver ? "   " : "", *h->run ? h->run : "no run");
    for (int i = 0; i < n; i++) {
        const struct etd_gpu *g = &h->gpu[i];
        int y = 4 + i % half, x = 1 + 40 * (i / half);
        if (y >= p->h)
            continue;
        tui_putf(p, y, x, TUI_TEXT, "%d", i);
        tui_gauge(p, y, x + 3, 11, g->util, false);
        if (isfinite(g->util))
            tui_putf(p, y, x + 15, TUI_TEXT, "%3.0f%%", 100 * g->util);
        tui_gauge(p, y, x + 20, 8, g->used / g->total, true);
        if (isfinite(g->used) && isfinite(g->total))
            tui_putf(p, y, x + 29, TUI_TEXT, "%.0f/%.0fG", g->used / 1e9,
                     g->total / 1e9);
    }
}

static void
draw_detail(const struct tui_pane *p, const struct workers_row *r)
{
    char fingerprint[ETD_FINGERPRINT];
    tui_title(p, 0, r->name, false);
    if (r->state == WORKER_READY)
        tui_putf(p, 1, 1, TUI_TEXT, "%s   etude %s   %lld cores   as %s", r->host,
                 r->version, (long long)r->cores, r->role);
    else if (*r->why)
        tui_put_n(p, 1, 1, states[state_of_row(r)].role, 0, p->w - 2, r->why,
                  strlen(r->why));
    if (r->state == WORKER_READY && r->is_tested)
        draw_test(p, r);
    else
        tui_put(p, 2, 1, TUI_DIM, fix_of(r));
    if (*r->key)
        tui_putf(p, 3, 1, TUI_TEXT, "key   %s   pinned %s",
                 etd_key_fingerprint(r->key, fingerprint), r->since);
    else if (strncmp(r->address, "ssh:", 4) == 0)
        tui_put(p, 3, 1, TUI_TEXT, "key   ssh's own");
}

static void
draw_attach(const struct workers *w, const struct tui_pane *p)
{
    char line[ETD_WORD + 64], fact[ETI_FACT_TEXT];
    tui_title(p, 0, "attach", w->is_typing);
    tui_put(p, 1, 1, TUI_DIM, "address");
    if (w->is_typing)
        tui_field_draw(&w->address, p, 1, 10, p->w - 12, *w->fault ? w->fault : NULL);
    else
        tui_put_cut(p, 1, 10, p->w - 1, TUI_DIM,
                    p->w < 80 ? "a: RUN, RUN@WORKER, tcp://HOST:PORT, ssh://HOST"
                              : "a: a run's name, RUN@WORKER, tcp://HOST:PORT[/RUN], "
                                "ssh://HOST[/RUN]");
    tui_put(p, 2, 1, TUI_DIM, "history");
    tui_put(p, 2, 10, TUI_TEXT, "all from the start");
    tui_put(p, 3, 1, TUI_DIM, "role");
    tui_put(p, 3, 10, TUI_TEXT,
            w->app->config.is_readonly ? "viewer"
            : w->app->is_viewer        ? "viewer (v: operator)"
                                       : "operator (v: viewer)");
    tui_app_holder(w->app, line, sizeof line);
    if (*line) {
        const char *name = eti_facts_get(w->app->source->facts, "name", fact);
        tui_putf(p, 3, 33, TUI_TEXT, "%s: %s", name ? name : "the run", line);
    }
}

static void
put_legend(const struct tui_pane *p, int y)
{
    static const int shown[] = {WORKER_READY, WORKER_OLD, WORKER_LOST, WORKER_UNKNOWN};
    static const char *const words[] = {"ready", "another version",
                                        "unreachable, or key refused", "lost contact"};
    for (int i = 0, x = 1; i < 4; i++) {
        tui_put_ch(p, y, x, sign_of(p->grid->glyphs, shown[i]), states[shown[i]].role,
                   0);
        x += 4 + tui_put_cut(p, y, x + 2, p->w - 1, TUI_DIM, words[i]);
    }
}

void
tui_workers_draw(struct tui_app *app, void *self, const struct tui_pane *p)
{
    struct workers *w = self;
    const struct workers_row *shown = tui_workers_selected(w);
    int more = shown ? gpu_rows(shown) : 0; /* at least two rows stay */
    more = more < p->h - 17 ? more : p->h > 17 ? p->h - 17 : 0;
    int ready = 0, foot = p->h > 18   ? DETAIL + more + ATTACH - 1
                          : p->h > 12 ? ATTACH - 1
                                      : 0;
    long long gpus = 0;
    for (int i = 0; i < w->n; i++) {
        ready += w->row[i].state == WORKER_READY;
        gpus +=
            w->row[i].state == WORKER_READY && w->row[i].gpus > 0 ? w->row[i].gpus : 0;
    }
    int x = tui_putf(p, 0, 1, TUI_TEXT, "%d worker%s, %d reachable   %lld GPUs", w->n,
                     w->n == 1 ? "" : "s", ready, gpus);
    tui_put_right(p, 0, x + 2, p->w - 1, TUI_DIM, "asked every 10s");
    tui_put(p, 1, 2, TUI_DIM, "S NAME");
    tui_put(p, 1, 18, TUI_DIM, "ADDRESS");
    tui_put(p, 1, 47, TUI_DIM, "GPUs");
    tui_put(p, 1, 54, TUI_DIM, "CORES");
    tui_put(p, 1, 62, TUI_DIM, "ROLE");
    tui_put_end(p, 1, 79, TUI_DIM, "RTT");
    tui_rule(p, 2, 0, p->w);
    int rows = p->h - 4 - foot;
    tui_list_show(&w->list, w->n, rows > 0 ? rows : 1);
    for (int i = 0; i < rows && w->list.top + i < w->n; i++) {
        int at = w->list.top + i;
        if (at == w->list.at)
            tui_select(p, WORKERS_FIRST + i, true);
        put_row(w, p, WORKERS_FIRST + i, &w->row[at]);
    }
    if (w->n == 1 && rows > 2)
        tui_add_spot(app, p->y + 5, p->x + 4,
                     tui_put_cut(p, 5, 4, p->w - 1, TUI_DIM,
                                 "+ adds another machine; man etude-worker"),
                     TUI_DO_workers_add);
    if (p->w >= 120) {
        tui_put(p, 1, 82, TUI_DIM, "BUSY");
        tui_put(p, 1, 92, TUI_DIM, "MEMORY");
        tui_put(p, 1, 103, TUI_DIM, "RUN");
    }
    if (rows > 0)
        put_legend(p, WORKERS_FIRST + rows);
    int y = p->h - foot;
    if (foot > ATTACH) {
        const struct tui_pane detail = tui_pane_part(p, y, 0, DETAIL + more - 1, p->w);
        draw_detail(&detail, shown);
        y += DETAIL + more - 1;
    }
    const struct tui_pane form = tui_pane_part(p, y, 0, p->h - y, p->w);
    w->form_y = form.h > 2 ? y : 0;
    if (form.h > 2)
        draw_attach(w, &form);
}
