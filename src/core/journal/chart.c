/* SPDX-License-Identifier: Apache-2.0 */
/* chart.c: a run's series as an SVG that needs nothing else: no script, no font.
 *
 * Series of one kind (all losses, an accuracy of training and of evaluations) share a
 * panel. Of each the reader of events.log gives at most POINTS values, among them the
 * least and greatest of every stretch, so a million batches give a line of some hundred
 * points that loses no peak. Values that are not finite are left out, and counted in
 * the legend.
 *
 * Colours: M. Okabe and K. Ito, "Color Universal Design", 2008. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/journal/export.h"
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

static const char *const colors[] = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000",
};
enum { N_COLORS = sizeof colors / sizeof *colors };

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
put_escaped(FILE *f, const char *text)
{
    char visible[ET_VISIBLE_MAX + 1];
    et_visible(visible, sizeof visible, text, strlen(text));
    for (const char *p = visible; *p; p++) {
        if (*p == '&')
            fputs("&amp;", f);
        else if (*p == '<')
            fputs("&lt;", f);
        else if (*p == '>')
            fputs("&gt;", f);
        else
            fputc(*p, f);
    }
}

/* ATTRIBUTES beyond the place: class, anchor. */
static void
put_text(FILE *f, double x, double y, const char *attributes, const char *text)
{
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\"%s>", x, y, attributes);
    put_escaped(f, text);
    fputs("</text>\n", f);
}

/* 1, 2 or 5 times a power of ten, for about N steps from LOW to HIGH. */
static double
nice_step(double low, double high, int n)
{
    double rough = (high - low) / n, power = pow(10, floor(log10(rough)));
    double digit = rough / power;
    return power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

/* 0.25, 12k, 3.5M, 1e-05: as many digits as STEP asks for, in the unit that suits MOST,
 * the axis' greatest. */
static const char *
tick_text(double value, double step, double most, char *buf, size_t size)
{
    static const struct {
        double of;
        const char *suffix;
    } scales[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e4, "k"}};
    if (fabs(value) < step * 1e-6) {
        snprintf(buf, size, "0");
        return buf;
    }
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
        if (most >= scales[i].of) {
            double of = scales[i].of == 1e4 ? 1e3 : scales[i].of;
            snprintf(buf, size, "%.6g%s", value / of, scales[i].suffix);
            return buf;
        }
    int decimals = (int)-floor(log10(step) + 1e-9);
    if (decimals > 5)
        snprintf(buf, size, "%.3g", value);
    else
        snprintf(buf, size, "%.*f", decimals > 0 ? decimals : 0, value);
    return buf;
}

static void
put_grid(struct chart *c)
{
    FILE *f = c->out;
    char text[32];
    double bottom = c->top + HEAD + PLOT, step = nice_step(c->low, c->high, 5);
    double start = ceil(c->low / step) * step;
    for (int i = 0; i < 12 && start + i * step <= c->high; i++) {
        double v = start + i * step, y = y_of(c, v);
        fprintf(f, "<path class=\"g\" d=\"M%d %.1fH%d\"/>\n", LEFT, y, WIDTH - RIGHT);
        put_text(
            f, LEFT - 8, y + 4, " text-anchor=\"end\"",
            tick_text(v, step, fmax(fabs(c->low), fabs(c->high)), text, sizeof text));
    }
    step = c->last > 0 ? fmax(1, nice_step(0, (double)c->last, 8)) : 1;
    for (int i = 0; i < 20 && i * step <= (double)c->last; i++) {
        double v = i * step;
        fprintf(f, "<path class=\"a\" d=\"M%.1f %.1fv5\"/>\n", x_of(c, v), bottom);
        put_text(f, x_of(c, v), bottom + 18, " text-anchor=\"middle\"",
                 tick_text(v, step, (double)c->last, text, sizeof text));
    }
    fprintf(f, "<path class=\"a\" d=\"M%d %dV%.1fH%d\"/>\n", LEFT, c->top + HEAD,
            bottom, WIDTH - RIGHT);
    put_text(f, (LEFT + WIDTH - RIGHT) / 2.0, bottom + 36, " text-anchor=\"middle\"",
             "finished batches");
}

static void
put_marks(struct chart *c, bool with_text)
{
    for (int i = 0; i < c->n_marks; i++) {
        const struct mark *m = &c->mark[i];
        double x = x_of(c, fmin((double)m->ba, (double)c->last));
        fprintf(c->out, "<path class=\"m\" d=\"M%.1f %dv%d\"><title>", x, c->top + HEAD,
                PLOT);
        put_escaped(c->out, m->text);
        fputs("</title></path>\n", c->out);
        bool late = x > WIDTH * 0.7; /* its text would leave the picture */
        if (with_text)
            put_text(c->out, late ? x - 4 : x + 4, c->top + HEAD + 12,
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
    put_text(c->out, *x + 21, c->top + 34, "", text);
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
        const char *color = colors[n++ % N_COLORS];
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
    put_text(c->out, LEFT, c->top + 12, " class=\"h\"", title);
    put_grid(c);
    put_marks(c, c->top == TOP);
    ET_TRY(put_lines(c, of, false));
    ET_TRY(put_lines(c, of, true));
    for (const struct line *l = of; l < c->line + c->n_lines; l++)
        if (strcmp(l->group, of->group) == 0)
            put_legend(c, l->series, colors[n++ % N_COLORS], &x);
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
    fprintf(c->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%d\" "
            "height=\"%d\" viewBox=\"0 0 %d %d\">\n<title>",
            WIDTH, height, WIDTH, height);
    put_escaped(c->out, title);
    fputs(
        "</title>\n<style>text{font:12px sans-serif;fill:#333}.t{font-size:18px}"
        ".h{font-weight:bold}.s{font-size:11px;fill:#777}.l{fill:none;stroke-width:1.5;"
        "stroke-linejoin:round}.g{stroke:#e4e4e4}.a{fill:none;stroke:#777}"
        ".m{stroke:#999;stroke-dasharray:3 3}</style>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        c->out);
    put_text(c->out, LEFT, 28, " class=\"t\"", title);
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
