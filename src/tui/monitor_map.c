/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_map.c: the own times of all ranks over the newest batches. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tui/format.h"
#include "tui/glyphs.h"
#include "tui/monitor.h"

static int
by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median over the ranks of their own times of K; NaN: no rank had said its time
 * then. */
static double
median_at(const struct tui_monitor *m, int k)
{
    double v[ETD_RANKS];
    int n = 0;
    for (int i = 0; i < m->n_ranks && n < ETD_RANKS; i++)
        if (m->rank[i].part->trail[k] > 0)
            v[n++] = (double)m->rank[i].part->trail[k];
    if (n == 0)
        return NAN;
    qsort(v, (size_t)n, sizeof *v, by_size);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* One rank has nobody to be slower than: how its time went. */
static void
put_alone(const struct tui_view *v, const struct tui_pane *p)
{
    double value[ETD_TRAIL];
    char text[TUI_NUMBER];
    int n = 0;
    const struct tui_rank *r = &v->m->rank[0];
    for (int k = 0; k < ETD_TRAIL; k++)
        if (r->part->trail[k] > 0)
            value[n++] = (double)r->part->trail[k];
    const int most = p->w - 14, w = n < most ? n : most;
    tui_putf(p, 1, 2, TUI_DIM, "%d", r->number);
    tui_sparkline(p, 1, 4, w, value, n, TUI_S1);
    tui_put_end(p, 1, p->w - 1, TUI_TEXT, tui_ms(r->own_ms, text));
    if (p->h > 2)
        tui_put(p, 2, 2, TUI_DIM, "one rank: nothing to compare");
}

static void
put_heat_legend(const struct tui_pane *p, const struct tui_glyphs *g)
{
    char sign[4][5];
    for (int i = 0; i < 4; i++)
        sign[i][tui_utf8(g->heat[i], sign[i])] = '\0';
    if (p->w >= 60)
        tui_putf(
            p, p->h - 1, 1, TUI_DIM,
            "%s under 105%%   %s 105-115%%   %s 115-130%%   %s over 130%% of median",
            sign[0], sign[1], sign[2], sign[3]);
    else
        tui_putf(p, p->h - 1, 1, TUI_DIM, "%s 105%%  %s 115%%  %s 130%% of median",
                 sign[1], sign[2], sign[3]);
}

/* A row for each rank, the newest batches at the right: own time against the median of
 * all ranks in the same batches. */
void
tui_monitor_map(const struct tui_view *v, const struct tui_pane *p, bool focus)
{
    static const enum tui_role roles[] = {TUI_HEAT0, TUI_HEAT1, TUI_HEAT3, TUI_HEAT4};
    static const double limits[] = {1.05, 1.15, 1.30};
    const struct tui_glyphs *g = v->app->config.glyphs;
    const struct tui_monitor *m = v->m;
    const bool bordered = p->w <= 40;
    struct tui_pane in = tui_pane_part(p, 0, bordered, p->h, p->w);
    tui_title(&in, 0, bordered ? "own time by rank" : "own time by rank, newest right",
              focus);
    if (bordered) {
        tui_border(p, 0, 0, p->h);
    }
    if (m->n_ranks == 0 || p->h < 2)
        return;
    if (m->n_ranks == 1) {
        put_alone(v, &in);
        return;
    }
    const int d = tui_rank_digits(v->model);
    const int w = in.w - d - 3 > ETD_TRAIL ? ETD_TRAIL : in.w - d - 3;
    for (int k = 0; k < w; k++) {
        const int at = ETD_TRAIL - w + k;
        const double median = median_at(m, at);
        for (int i = 0; i < p->h - 2 && m->ranks.top + i < m->n_ranks; i++) {
            const double ms = (double)m->rank[m->ranks.top + i].part->trail[at];
            int heat = 0;
            while (heat < 3 && ms > limits[heat] * median)
                heat++;
            if (ms > 0)
                tui_put_ch(&in, i + 1, 2 + d + k, g->heat[heat], roles[heat], 0);
        }
    }
    for (int i = 0; i < p->h - 2 && m->ranks.top + i < m->n_ranks; i++) {
        char text[TUI_NUMBER];
        snprintf(text, sizeof text, "%d", m->rank[m->ranks.top + i].number);
        tui_put_end(&in, i + 1, 1 + d, TUI_DIM, text);
    }
    put_heat_legend(&in, g);
}
