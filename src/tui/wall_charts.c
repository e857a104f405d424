/* SPDX-License-Identifier: Apache-2.0 */
/* wall_charts.c: which charts there are, and the lines in them: see wall.h. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/hub/step.h"
#include "tui/glyphs.h"
#include "tui/wall.h"

static const double LEAST_MS = 0.0005; /* of a part of the step: shown as 0 below it */

/* ---- which charts ---- */

/* Where charts of a kind stand: what a person looks at first, then what he may. */
static int
rank_of(const char *name)
{
    static const char *const kinds[] = {
        "loss/train/total",
        "loss/",
        "metrics/",
        "lr-",
        "l2_norm/grad/global",
        "throughput/samples",
        "throughput/",
        "step/",
        "memory/",
        "time/",
    };
    enum { KINDS = sizeof kinds / sizeof *kinds };
    for (int i = 0; i < KINDS; i++)
        if (strncmp(name, kinds[i], strlen(kinds[i])) == 0)
            return i;
    return strncmp(name, "l2_norm/", 8) == 0 ? KINDS + 1 : KINDS; /* there are many */
}

static int
by_rank(const void *a, const void *b)
{
    const struct tui_wall_chart *x = a, *y = b;
    const int d = rank_of(x->name[0]) - rank_of(y->name[0]);
    return d != 0 ? d : strcmp(x->name[0], y->name[0]);
}

bool
tui_wall_is_step(const struct tui_wall_chart *c)
{
    return etd_step_name(c->name[0]) != NULL;
}

/* What the series of a chart have in common: "Accuracy" of "metrics/eval/Accuracy";
 * NULL: NAME is in a chart of its own. */
static const char *
of_set(const char *name)
{
    if (etd_step_name(name))
        return ETD_STEP;
    const char *slash =
        strncmp(name, "metrics/", 8) == 0 ? strchr(name + 8, '/') : NULL;
    return slash ? slash + 1 : NULL;
}

/* Puts NAME into C: training behind what was evaluated. False: C is full. */
static bool
join(struct tui_wall_chart *c, const char *name)
{
    const bool is_train = strncmp(name, "metrics/train/", 14) == 0;
    int n = 0;
    while (n < TUI_WALL_SERIES && *c->name[n])
        n++;
    if (n == TUI_WALL_SERIES)
        return false;
    if (n > 0 && !is_train && strncmp(c->name[n - 1], "metrics/train/", 14) == 0) {
        memcpy(c->name[n], c->name[n - 1], sizeof c->name[n]);
        n--;
    }
    snprintf(c->name[n], sizeof c->name[n], "%s", name);
    return true;
}

static bool
has_name(const struct tui_wall_chart *c, const char *name)
{
    for (int i = 0; i < TUI_WALL_SERIES; i++)
        if (strcmp(c->name[i], name) == 0)
            return true;
    return false;
}

/* A part of the step that takes no time is no line. */
static bool
is_worth_a_line(const struct etd_series *s)
{
    if (!etd_step_name(s->name))
        return s->n + s->bad > 0;
    for (int i = 0; i < s->n_bins; i++)
        if (s->bin[i].n > 0 && s->bin[i].max >= LEAST_MS)
            return true;
    return false;
}

/* Adds the series NAME to the chart that it belongs to, or a chart for it. */
static void
add(struct tui_wall *w, const char *name)
{
    const char *own = of_set(name);
    for (int i = 0; i < w->n; i++) {
        const char *other = of_set(w->chart[i].name[0]);
        if (has_name(&w->chart[i], name))
            return;
        if (own && other && strcmp(own, other) == 0 && join(&w->chart[i], name))
            return;
    }
    if (w->n == w->room) {
        const int room = w->room ? 2 * w->room : 64;
        void *block;
        if (et_alloc(w->app->cx, (size_t)room * sizeof *w->chart, &block) != ET_OK) {
            et_error_clear(w->app->cx); /* those that there is memory for are shown */
            return;
        }
        if (w->n > 0)
            memcpy(block, w->chart, (size_t)w->n * sizeof *w->chart);
        et_free(w->app->cx, w->chart);
        w->chart = block;
        w->room = room;
    }
    w->chart[w->n] = (struct tui_wall_chart){0};
    snprintf(w->chart[w->n++].name[0], ET_METRIC_NAME, "%s", name);
}

/* The loss of evaluations stands beside that of training, too. */
static void
join_losses(struct tui_wall *w)
{
    struct tui_wall_chart *loss = NULL;
    for (int i = 0; i < w->n; i++)
        if (strcmp(w->chart[i].name[0], "loss/train/total") == 0)
            loss = &w->chart[i];
    for (int i = 0; i < w->n && loss; i++) {
        const char *name = w->chart[i].name[0], *own = of_set(name);
        if (own && strstr(own, "CrossEntropy") && strncmp(name + 8, "train/", 6) != 0 &&
            !*loss->name[1])
            join(loss, name);
    }
}

static bool
has_word(void *data, const char *word)
{
    char label[ET_METRIC_NAME];
    const struct tui_wall_chart *c = data;
    for (int i = 0; i < TUI_WALL_SERIES && *c->name[i]; i++)
        if (strcasestr(c->name[i], word) ||
            strcasestr(tui_metric_label(c->name[i], label), word))
            return true;
    return false;
}

static const char *
value(void *data, const char *key)
{
    const struct tui_wall_chart *c = data;
    return strcmp(key, "name") == 0 ? c->name[0] : NULL;
}

void
tui_wall_gather(struct tui_wall *w)
{
    int kept = 0;
    w->n = 0;
    for (int r = 0; r < w->n_runs; r++) {
        const struct etd_model *m = w->run[r].source->model;
        for (int i = 0; i < m->n_series; i++)
            if (is_worth_a_line(&m->series[i]))
                add(w, m->series[i].name);
    }
    qsort(w->chart, (size_t)w->n, sizeof *w->chart, by_rank);
    join_losses(w);
    w->of = w->n;
    for (int i = 0; i < w->n; i++) {
        const struct eti_subject subject = {&w->chart[i], has_word, value};
        if (!w->sieve || eti_filter_matches(w->sieve, &subject))
            w->chart[kept++] = w->chart[i];
    }
    w->n = kept;
}

/* ---- lines ---- */

bool
tui_wall_is_of_many(const struct tui_wall *w)
{
    return w->n_runs > 1;
}

struct tui_across
tui_wall_across(const struct tui_wall *w, int run)
{
    const struct tui_source *s = w->run[run].source;
    return (struct tui_across){
        s->model, w->axis, etd_model_has_ended(s->model) || s->link == TUI_LINK_ENDED};
}

double
tui_wall_end(const struct tui_wall *w)
{
    double end = 0;
    for (int i = 0; i < w->n_runs; i++) {
        const struct tui_across a = tui_wall_across(w, i);
        const double own = w->run[i].is_hidden ? 0 : tui_axis_end(&a);
        end = own > end ? own : end;
    }
    return end > 0 ? end : 1;
}

const struct etd_series *
tui_wall_series(const struct tui_wall *w, const struct tui_wall_chart *c, int run)
{
    const struct etd_series *s = NULL;
    for (int i = 0; i < TUI_WALL_SERIES && *c->name[i] && !s; i++)
        s = etd_model_series(w->run[run].source->model, c->name[i]);
    return s;
}

enum tui_role
tui_wall_role(const struct tui_wall *w, int run)
{
    return (enum tui_role)(TUI_S1 + w->run[run].series);
}

enum tui_role
tui_wall_series_role(const struct tui_wall_chart *c, int i)
{
    static const enum tui_role others[] = {TUI_S2, TUI_S4, TUI_S6};
    const enum tui_role first = tui_metric_look(c->name[0]).role;
    if (tui_wall_is_step(c))
        return tui_metric_look(c->name[i]).role;
    enum tui_role role = i == 0 ? first : others[(i - 1) % 3];
    return i > 0 && role == first ? TUI_S5 : role;
}

double
tui_wall_value(const struct tui_wall *w, const struct etd_series *s, int run)
{
    const struct tui_across a = tui_wall_across(w, run);
    if (!s || !w->inspects)
        return s ? s->last : NAN;
    const struct etd_bin *b = tui_series_at(&a, s, w->cursor * tui_wall_end(w));
    return b ? b->last : NAN;
}

/* S of the run as a line; POINT: [ETD_BINS]. */
static struct tui_plot_line
line_of(const struct tui_wall *w, const struct etd_series *s, int run,
        struct tui_point *point)
{
    const struct tui_metric_look look = tui_metric_look(s->name);
    const struct tui_across a = tui_wall_across(w, run);
    const double weight = tui_series_weight(s, w->smooth);
    const int n = tui_series_points(&a, s, &look, point);
    const double reach = look.can_burst ? tui_plot_reach(point, n, 0) : 0;
    tui_plot_smooth(point, n, weight, reach);
    return (struct tui_plot_line){
        .point = point, .n = n, .kind = tui_series_kind(s, weight), .reach = reach};
}

/* One reach for all: a curve that broke down does not hide those that did not. */
static void
share_reach(struct tui_plot_line *line, int n)
{
    double reach = 0, in_hand = 0;
    for (int i = 0; i < n; i++) {
        reach = fmax(reach, line[i].reach);
        for (int k = 0; k < line[i].n && line[i].reach == 0; k++)
            if (isfinite(line[i].point[k].last))
                in_hand = fmax(in_hand, fabs(line[i].point[k].last));
    }
    for (int i = 0; i < n && reach > 0; i++)
        line[i].reach = fmax(reach, in_hand);
}

/* One line for each run, the pinned one on top. */
static int
lines_of_many(const struct tui_wall *w, const struct tui_wall_chart *c,
              struct tui_plot_line *line)
{
    const struct tui_glyphs *g = w->app->config.glyphs;
    const int top = w->pinned >= 0 ? w->pinned : 0;
    int n = 0;
    for (int k = w->n_runs; k >= 0; k--) { /* those behind lie below; TOP comes last */
        const int i = k == 0 ? top : k - 1;
        const struct etd_series *s = tui_wall_series(w, c, i);
        if (!s || w->run[i].is_hidden || (k > 0 && i == top))
            continue;
        line[n] = line_of(w, s, i, w->point + (ptrdiff_t)n * ETD_BINS);
        line[n].role = tui_wall_role(w, i);
        line[n].mark = g->series[w->run[i].series];
        line[n++].dash = w->run[i].series % 4;
    }
    share_reach(line, n);
    return n;
}

int
tui_wall_lines(const struct tui_wall *w, const struct tui_wall_chart *c,
               struct tui_plot_line *line)
{
    const struct tui_glyphs *g = w->app->config.glyphs;
    int n = 0;
    if (tui_wall_is_of_many(w))
        return lines_of_many(w, c, line);
    if (w->rival && !w->hides_rival &&
        tui_rival_line(w->rival, c->name[0], w->axis, w->smooth, g, w->point, line))
        n = 1;
    for (int i = TUI_WALL_SERIES - 1; i >= 0; i--) { /* the first lies on top */
        const struct etd_series *s =
            *c->name[i] ? etd_model_series(w->run[0].source->model, c->name[i]) : NULL;
        if (!s)
            continue;
        line[n] = line_of(w, s, 0, w->point + (ptrdiff_t)n * ETD_BINS);
        line[n].role = tui_wall_series_role(c, i);
        line[n].mark = g->series[i];
        line[n++].dash = i % 4;
    }
    return n;
}
