/* SPDX-License-Identifier: Apache-2.0 */
/* comparison_svg.c: the Pareto front as a picture.
 *
 * Across is what a run cost, up how good it was; both axes begin a little before the
 * least. Runs that differ by their seed alone have one colour and a row of the legend,
 * which says their medians. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "core/journal/svg.h"
#include "core/library/comparison.h"

enum { /* pixels */
       WIDTH = 860,
       LEFT = 84,
       RIGHT = 24,
       HEAD = 46, /* the title */
       ROW = 20,  /* of the legend */
       PLOT = 340,
       FOOT = 56,
};

struct picture {
    const struct eti_comparison *k;
    const struct eti_alike *alike;
    int n;
    FILE *out;
    double left, right, low, high; /* of the axes */
    double top;                    /* of the plot */
};

/* Is the run I in the picture? */
static bool
is_shown(const struct eti_comparison *k, int i)
{
    return isfinite(k->run[i].best) && isfinite(eti_comparison_cost(k, &k->run[i]));
}

static double
x_of(const struct picture *p, double cost)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * (cost - p->left) / (p->right - p->left);
}

static double
y_of(const struct picture *p, double value)
{
    return p->top + PLOT * (p->high - value) / (p->high - p->low);
}

static void
widen(double *least, double *most)
{
    double margin = 0.08 * (*most - *least);
    if (!(margin > 1e-9 * fabs(*most)))
        margin = *most != 0 ? 0.08 * fabs(*most) : 1;
    *least -= margin;
    *most += margin;
}

/* False: no run has a place. */
static bool
set_axes(struct picture *p)
{
    int shown = 0;
    p->left = p->low = INFINITY;
    p->right = p->high = -INFINITY;
    for (int i = 0; i < p->k->n; i++) {
        if (!is_shown(p->k, i))
            continue;
        double cost = eti_comparison_cost(p->k, &p->k->run[i]);
        p->left = fmin(p->left, cost);
        p->right = fmax(p->right, cost);
        p->low = fmin(p->low, p->k->run[i].best);
        p->high = fmax(p->high, p->k->run[i].best);
        shown++;
    }
    widen(&p->left, &p->right);
    widen(&p->low, &p->high);
    return shown > 0;
}

/* What the axis across counts. */
static const char *
axis_title(const struct eti_comparison *k, char *buf, size_t size)
{
    static const char *const what[ETI_FIGURES] = {
        [ETI_TIME] = "seconds of the clock",
        [ETI_COST] = "money",
        [ETI_ENERGY] = "kWh",
        [ETI_SAMPLES] = "samples",
        [ETI_CPU_TIME] = "seconds of processors",
    };
    bool money = k->by == ETI_COST && k->price && k->price->currency;
    snprintf(buf, size, "%.60s to %.100s", money ? k->price->currency : what[k->by],
             k->has_target ? k->target_text : "the best value");
    return buf;
}

static void
put_axes(const struct picture *p)
{
    FILE *f = p->out;
    char text[200];
    double bottom = p->top + PLOT, step = eti_svg_step(p->low, p->high, 6);
    for (double v = ceil(p->low / step) * step; v <= p->high; v += step) {
        fprintf(f, "<path class=\"g\" d=\"M%d %.1fH%d\"/>\n", LEFT, y_of(p, v),
                WIDTH - RIGHT);
        eti_svg_text(f, LEFT - 8, y_of(p, v) + 4, " text-anchor=\"end\"",
                     eti_svg_tick(v, step, fmax(fabs(p->low), fabs(p->high)), text,
                                  sizeof text));
    }
    step = eti_svg_step(p->left, p->right, 8);
    for (double v = ceil(p->left / step) * step; v <= p->right; v += step) {
        fprintf(f, "<path class=\"a\" d=\"M%.1f %.1fv5\"/>\n", x_of(p, v), bottom);
        eti_svg_text(f, x_of(p, v), bottom + 18, " text-anchor=\"middle\"",
                     eti_svg_tick(v, step, p->right, text, sizeof text));
    }
    fprintf(f, "<path class=\"a\" d=\"M%d %.1fV%.1fH%d\"/>\n", LEFT, p->top, bottom,
            WIDTH - RIGHT);
    eti_svg_text(f, (LEFT + WIDTH - RIGHT) / 2.0, bottom + 40,
                 " text-anchor=\"middle\"", axis_title(p->k, text, sizeof text));
}

/* From one of the front to the next: as good as the best that costs no more. */
static void
put_front(const struct picture *p)
{
    const struct eti_comparison *k = p->k;
    double at = -INFINITY;
    bool begun = false;
    for (;;) {
        const struct eti_compared_run *next = NULL;
        for (int i = 0; i < k->n; i++) {
            double cost = eti_comparison_cost(k, &k->run[i]);
            if (k->run[i].on_front && cost > at &&
                (!next || cost < eti_comparison_cost(k, next)))
                next = &k->run[i];
        }
        if (!next)
            break;
        at = eti_comparison_cost(k, next);
        if (begun)
            fprintf(p->out, "H%.1fV%.1f", x_of(p, at), y_of(p, next->best));
        else
            fprintf(p->out, "<path class=\"m\" fill=\"none\" d=\"M%.1f %.1f",
                    x_of(p, at), y_of(p, next->best));
        begun = true;
    }
    if (begun)
        fprintf(p->out, "H%d\"/>\n", WIDTH - RIGHT);
}

static void
put_run(const struct picture *p, int i, const char *color)
{
    const struct eti_compared_run *r = &p->k->run[i];
    const char *name = json_string_value(json_object_get(r->facts, "name"));
    double cost = eti_comparison_cost(p->k, r);
    char text[256];
    if (!is_shown(p->k, i))
        return;
    snprintf(text, sizeof text, "%.100s: %.6g, %.6g%s", name ? name : "", cost, r->best,
             r->on_front ? ", on the front" : "");
    fprintf(p->out,
            "<circle stroke=\"%s\" fill=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"><title>",
            color, r->on_front ? color : "#fff", x_of(p, cost), y_of(p, r->best));
    eti_svg_escape(p->out, text);
    fputs("</title></circle>\n", p->out);
}

/* Runs that are alike, and their row of the legend. */
static void
put_alike(const struct picture *p, int at)
{
    const struct eti_alike *a = &p->alike[at];
    const char *color = eti_svg_colors[at % ETI_SVG_COLORS];
    double cost = eti_alike_cost(p->k, a), y = HEAD + ROW * at;
    char text[400];
    for (int i = 0; i < a->n; i++)
        put_run(p, a->run[i], color);
    if (isfinite(cost) && isfinite(a->best) && a->n > 1)
        fprintf(p->out,
                "<circle fill=\"none\" stroke=\"%s\" stroke-width=\"2\" cx=\"%.1f\" "
                "cy=\"%.1f\" r=\"9\"/>\n",
                color, x_of(p, cost), y_of(p, a->best));
    fprintf(p->out, "<circle fill=\"%s\" cx=\"%d\" cy=\"%.1f\" r=\"4\"/>\n", color,
            LEFT + 4, y + 6);
    if (isfinite(cost))
        snprintf(text, sizeof text, "%s: %.5g in %.4g%s", a->label, a->best, cost,
                 a->n > 1 ? ", median" : "");
    else
        snprintf(text, sizeof text, "%s: %.5g", a->label, a->best);
    eti_svg_text(p->out, LEFT + 16, y + 10, "", text);
    if (a->n > 1) {
        snprintf(text, sizeof text, "%d seeds", a->n);
        eti_svg_text(p->out, WIDTH - RIGHT, y + 10, " class=\"s\" text-anchor=\"end\"",
                     text);
    }
}

static void
put_target(const struct picture *p)
{
    double target = p->k->target;
    if (p->k->has_target && target > p->low && target < p->high)
        fprintf(p->out,
                "<path class=\"a\" d=\"M%d %.1fH%d\"><title>%s</title></path>\n", LEFT,
                y_of(p, target), WIDTH - RIGHT, "target");
}

et_status
eti_comparison_svg(const struct eti_comparison *k, const struct eti_alike *alike, int n,
                   FILE *out)
{
    struct picture p = {k, alike, n, out, .top = HEAD + ROW * (n + 1)};
    const char *leaf = strrchr(k->metric, '/');
    char title[ET_METRIC_NAME + 32];
    if (!set_axes(&p))
        return ET_FAIL(k->cx, ET_EINVAL, "no run has a place on the front");
    snprintf(title, sizeof title, "Pareto front of %s", leaf ? leaf + 1 : k->metric);
    eti_svg_begin(out, WIDTH, (int)p.top + PLOT + FOOT, title);
    eti_svg_text(out, LEFT, 28, " class=\"t\"", title);
    put_axes(&p);
    put_target(&p);
    put_front(&p);
    for (int i = 0; i < n; i++)
        put_alike(&p, i);
    fputs("</svg>\n", out);
    if (fflush(out) != 0 || ferror(out))
        return ET_FAIL(k->cx, ET_EIO, "cannot write the picture");
    return ET_OK;
}
