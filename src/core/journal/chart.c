/* SPDX-License-Identifier: Apache-2.0 */
/* chart.c: a run's series as an SVG that needs nothing else: no script, no font.
 *
 * Series of one kind (all losses, an accuracy of training and of evaluations) share a
 * panel. Of each the reader of events.log gives at most POINTS values, among them the
 * least and greatest of every stretch, so a million batches give a line of some hundred
 * points that loses no peak. Values that are not finite are left out, and counted in
 * the legend. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/journal/export.h"
#include "core/journal/svg.h"
#include "etude/diagnostic.h"

enum {
    POINTS = 640,
    MAX_SERIES = 48,
    MAX_MARKS = 64,
    FEW = 64, /* points of a series at most, that each has a dot */
    /* In pixels: */
    WIDTH = 860,
    LEFT = 84,
    RIGHT = 20,
    TOP = 52,
    PANEL = 266,
    PLOT = 160,
    HEAD = 44, /* of a panel: title and legend */
};

struct line {
    const struct et_series *series;
    char group[ET_METRIC_NAME]; /* those of one share a panel, whose title it is */
    const char *unit;           /* "" where there is none */
};

struct mark {
    int64_t ba;
    char text[64];
};

struct chart {
    struct et_ctx *cx;
    FILE *out;
    struct et_events *events;
    struct line line[MAX_SERIES]; /* by name */
    int n_lines;
    struct mark mark[MAX_MARKS];
    int n_marks;
    int64_t last;     /* ba */
    int top;          /* of the panel under way */
    double low, high; /* of its values */
    struct et_series_point point[POINTS];
};

/* ---- what a number is ---- */

/* Where the name's end is one of these, the unit; the first that fits. */
static const struct {
    const char *start, *end, *unit;
} units[] = {
    {"metrics/", "CrossEntropy", "nats"},
    {"metrics/", "Accuracy", "fraction"},
    {"metrics/", "MIoU", "fraction"},
    {"", "/mfu", "fraction"},
    {"", "samples_per_sec", "samples/s"},
    {"", "tokens_per_sec", "tokens/s"},
    {"", "batches_per_sec", "batches/s"},
    {"", "flops_per_sec", "FLOP/s"},
    {"memory/", "_mem", "GB"},
    {"time/", "train", "hours"},
    {"time/", "val", "hours"},
    {"time/", "total", "hours"},
    {"time/", "remaining_estimate", "hours"},
    {"time/", "", "count"},
};

static const char *
unit_of(const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t n = strlen(units[i].end);
        if (strncmp(name, units[i].start, strlen(units[i].start)) == 0 && length >= n &&
            strcmp(name + length - n, units[i].end) == 0)
            return units[i].unit;
    }
    return "";
}

/* Losses are one group; a metric is one, whoever evaluates it; so are learning
 * rates. */
static const char *
group_of(const char *name)
{
    const char *last = strrchr(name, '/');
    if (strncmp(name, "loss/", 5) == 0)
        return "loss";
    if (strncmp(name, "metrics/", 8) == 0)
        return last + 1;
    return strncmp(name, "lr-", 3) == 0 ? "learning rate" : name;
}

/* ---- gathering ---- */

static int
by_name(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    return strcmp(x->series->name, y->series->name);
}

static et_status
find_lines(struct chart *c, const regex_t *wanted)
{
    const struct et_series *list;
    int n, left_out = 0;
    ET_TRY(et_events_series(c->events, &list, &n));
    for (int i = 0; i < n; i++) {
        const char *name = list[i].name;
        if (wanted && regexec(wanted, name, 0, NULL, 0) != 0)
            continue;
        if (c->n_lines == MAX_SERIES) {
            left_out++;
            continue;
        }
        struct line *l = &c->line[c->n_lines++];
        *l = (struct line){.series = &list[i], .unit = unit_of(name)};
        snprintf(l->group, sizeof l->group, "%s", group_of(name));
        if (list[i].all.last.ba > c->last)
            c->last = list[i].all.last.ba;
    }
    if (left_out > 0)
        et_report(c->cx, ET_LOG_WARN, "the chart has %d series; %d more are left out",
                  MAX_SERIES, left_out);
    if (c->n_lines == 0)
        return ET_FAIL(c->cx, ET_EINVAL, "of %d series of numbers none is called so",
                       n);
    qsort(c->line, (size_t)c->n_lines, sizeof *c->line, by_name);
    return ET_OK;
}

/* Where the run was resumed, and what people noted. */
static et_status
find_marks(struct chart *c)
{
    struct et_record r;
    bool got = true;
    ET_TRY(et_events_only(c->events, UINT64_C(1) << ET_RECORD_RESUME |
                                         UINT64_C(1) << ET_RECORD_ANNOTATION));
    while (c->n_marks < MAX_MARKS) {
        ET_TRY(et_events_next(c->events, &r, &got));
        if (!got)
            break;
        bool resumed = r.kind == ET_RECORD_RESUME || !r.text;
        struct mark *m = &c->mark[c->n_marks++];
        const char *text = resumed ? "resumed" : r.text;
        m->ba = r.ba;
        et_visible(m->text, sizeof m->text, text, strlen(text));
    }
    return ET_OK;
}

/* ---- drawing ---- */

static double
x_of(const struct chart *c, double ba)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * (c->last > 0 ? ba / (double)c->last : 0);
}

static double
y_of(const struct chart *c, double value)
{
    return c->top + HEAD + PLOT * (c->high - value) / (c->high - c->low);
}

static void
put_grid(struct chart *c)
{
    FILE *f = c->out;
    char text[32];
    double bottom = c->top + HEAD + PLOT, step = eti_svg_step(c->low, c->high, 5);
    double start = ceil(c->low / step) * step;
    for (int i = 0; i < 12 && start + i * step <= c->high; i++) {
        double v = start + i * step, y = y_of(c, v);
        fprintf(f, "<path class=\"g\" d=\"M%d %.1fH%d\"/>\n", LEFT, y, WIDTH - RIGHT);
        eti_svg_text(f, LEFT - 8, y + 4, " text-anchor=\"end\"",
                     eti_svg_tick(v, step, fmax(fabs(c->low), fabs(c->high)), text,
                                  sizeof text));
    }
    step = c->last > 0 ? fmax(1, eti_svg_step(0, (double)c->last, 8)) : 1;
    for (int i = 0; i < 20 && i * step <= (double)c->last; i++) {
        double v = i * step;
        fprintf(f, "<path class=\"a\" d=\"M%.1f %.1fv5\"/>\n", x_of(c, v), bottom);
        eti_svg_text(f, x_of(c, v), bottom + 18, " text-anchor=\"middle\"",
                     eti_svg_tick(v, step, (double)c->last, text, sizeof text));
    }
    fprintf(f, "<path class=\"a\" d=\"M%d %dV%.1fH%d\"/>\n", LEFT, c->top + HEAD,
            bottom, WIDTH - RIGHT);
    eti_svg_text(f, (LEFT + WIDTH - RIGHT) / 2.0, bottom + 36,
                 " text-anchor=\"middle\"", "finished batches");
}

static void
put_marks(struct chart *c, bool with_text)
{
    for (int i = 0; i < c->n_marks; i++) {
        const struct mark *m = &c->mark[i];
        double x = x_of(c, fmin((double)m->ba, (double)c->last));
        fprintf(c->out, "<path class=\"m\" d=\"M%.1f %dv%d\"><title>", x, c->top + HEAD,
                PLOT);
        eti_svg_escape(c->out, m->text);
        fputs("</title></path>\n", c->out);
        bool late = x > WIDTH * 0.7; /* its text would leave the picture */
        if (with_text)
            eti_svg_text(c->out, late ? x - 4 : x + 4, c->top + HEAD + 12,
                         late ? " class=\"s\" text-anchor=\"end\"" : " class=\"s\"",
                         m->text);
    }
}

static et_status
put_line(struct chart *c, const struct et_series *s, const char *color)
{
    const struct et_series_point *p = c->point;
    int n;
    ET_TRY(et_events_fetch(c->events, s->name, 0, INT64_MAX, POINTS, c->point, &n));
    fprintf(c->out, "<path class=\"l\" stroke=\"%s\" d=\"", color);
    for (int i = 0; i < n; i++)
        fprintf(c->out, "%s%.1f %.1f", i ? "L" : "M", x_of(c, (double)p[i].ba),
                y_of(c, p[i].value));
    fputs("\"/>\n", c->out);
    for (int i = 0; n <= FEW && i < n; i++)
        fprintf(c->out, "<circle fill=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>\n",
                color, x_of(c, (double)p[i].ba), y_of(c, p[i].value));
    return ET_OK;
}

/* Beside each other, as long as there is room. */
static void
put_legend(struct chart *c, const struct et_series *s, const char *color, double *x)
{
    char text[2 * ET_METRIC_NAME];
    if (s->all.bad > 0)
        snprintf(text, sizeof text, "%s (%" PRId64 " not finite)", s->name, s->all.bad);
    else
        snprintf(text, sizeof text, "%s", s->name);
    double width = 34 + 6.6 * (double)strlen(text); /* of a letter, about */
    if (*x + width > WIDTH - RIGHT && *x > LEFT)
        return;
    fprintf(c->out, "<path class=\"l\" stroke=\"%s\" d=\"M%.1f %dh16\"/>\n", color, *x,
            c->top + 30);
    eti_svg_text(c->out, *x + 21, c->top + 34, "", text);
    *x += width;
}

/* What a panel shows: a little more than its values reach. */
static void
set_range(struct chart *c, const char *group)
{
    c->low = INFINITY;
    c->high = -INFINITY;
    for (int i = 0; i < c->n_lines; i++) {
        const struct et_series_stats *all = &c->line[i].series->all;
        if (all->n == 0 || strcmp(c->line[i].group, group) != 0)
            continue;
        c->low = fmin(c->low, all->min.value);
        c->high = fmax(c->high, all->max.value);
    }
    double margin = 0.05 * (c->high - c->low);
    if (!isfinite(c->high))
        c->low = c->high = 0; /* no value was finite */
    if (!(margin > 1e-9 * fabs(c->high)))
        margin = c->high != 0 ? 0.05 * fabs(c->high) : 1;
    c->low -= margin;
    c->high += margin;
}

/* Of the lines of a panel those with few points come last, so that they stay
 * visible. */
static et_status
put_lines(struct chart *c, const struct line *of, bool few)
{
    int n = 0;
    for (const struct line *l = of; l < c->line + c->n_lines; l++) {
        const struct et_series *s = l->series;
        if (strcmp(l->group, of->group) != 0)
            continue;
        const char *color = eti_svg_colors[n++ % ETI_SVG_COLORS];
        if ((s->all.n <= FEW) == few)
            ET_TRY(put_line(c, s, color));
    }
    return ET_OK;
}

static et_status
put_panel(struct chart *c, const struct line *of)
{
    char title[2 * ET_METRIC_NAME];
    double x = LEFT;
    int n = 0;
    set_range(c, of->group);
    snprintf(title, sizeof title, *of->unit ? "%s [%s]" : "%s", of->group, of->unit);
    eti_svg_text(c->out, LEFT, c->top + 12, " class=\"h\"", title);
    put_grid(c);
    put_marks(c, c->top == TOP);
    ET_TRY(put_lines(c, of, false));
    ET_TRY(put_lines(c, of, true));
    for (const struct line *l = of; l < c->line + c->n_lines; l++)
        if (strcmp(l->group, of->group) == 0)
            put_legend(c, l->series, eti_svg_colors[n++ % ETI_SVG_COLORS], &x);
    c->top += PANEL;
    return ET_OK;
}

static bool
is_first_of_group(const struct chart *c, int i)
{
    for (int k = 0; k < i; k++)
        if (strcmp(c->line[k].group, c->line[i].group) == 0)
            return false;
    return true;
}

static et_status
put_chart(struct chart *c, const char *title)
{
    int panels = 0;
    for (int i = 0; i < c->n_lines; i++)
        panels += is_first_of_group(c, i);
    int height = TOP + panels * PANEL;
    eti_svg_begin(c->out, WIDTH, height, title);
    eti_svg_text(c->out, LEFT, 28, " class=\"t\"", title);
    c->top = TOP;
    for (int i = 0; i < c->n_lines; i++)
        if (is_first_of_group(c, i))
            ET_TRY(put_panel(c, &c->line[i]));
    fputs("</svg>\n", c->out);
    return ET_OK;
}

static et_status
draw(struct chart *c, const struct eti_export *x)
{
    ET_TRY(et_events_open(c->cx, x->events, &c->events));
    ET_TRY(find_marks(c));
    ET_TRY(find_lines(c, x->metrics));
    ET_TRY(put_chart(c, x->title));
    if (fflush(c->out) != 0 || ferror(c->out))
        return ET_FAIL(c->cx, ET_EIO, "cannot write the chart");
    return ET_OK;
}

et_status
eti_export_svg(struct et_ctx *cx, const struct eti_export *x, FILE *out)
{
    void *block;
    ET_TRY(et_alloc(cx, sizeof(struct chart), &block));
    struct chart *c = block;
    c->cx = cx;
    c->out = out;
    et_status status = draw(c, x);
    et_events_close(&c->events);
    et_free(cx, c);
    return status;
}
