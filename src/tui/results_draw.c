/* SPDX-License-Identifier: Apache-2.0 */
/* results_draw.c: how the results of a run are drawn: see results.h.
 *
 *     80x24    one panel, tab changes it
 *     120x36   which classes are taken for which beside numbers of each class, the
 *              worst mistakes below */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/format.h"
#include "tui/glyphs.h"
#include "tui/page.h"
#include "tui/results.h"

enum {
    HEAD = 5,   /* columns of a class's number */
    CELL = 4,   /* of a share, "100" */
    TABLE = 54, /* of the numbers of classes */
    TILE_WIDE = 14,
    TILE_HIGH = 7,
    TILE_WIDER = 22,
    TILE_HIGHER = 11,
    GAP = 2,
};

/* ---- which are taken for which ---- */

/* A share of a row, as a colour: the more, the hotter. */
static enum tui_role
heat_of(double share)
{
    return share < 0.01   ? TUI_HEAT0
           : share < 0.05 ? TUI_HEAT1
           : share < 0.2  ? TUI_HEAT2
           : share < 0.5  ? TUI_HEAT3
                          : TUI_HEAT4;
}

static void
put_share(const struct tui_results *r, const struct tui_pane *p, int y, int x, int cell,
          int label, int class)
{
    const int64_t n = tui_results_count(r, label, class);
    const int64_t of = tui_results_samples(r, label);
    const double share = of > 0 ? (double)n / (double)of : 0;
    const struct tui_glyphs *g = p->grid->glyphs;
    const enum tui_role role = heat_of(share);
    char text[8];
    if (cell == 1) {
        tui_put_ch(p, y, x,
                   n == 0         ? ' '
                   : share < 0.05 ? g->heat[0]
                   : share < 0.2  ? g->heat[1]
                   : share < 0.5  ? g->heat[2]
                                  : g->heat[3],
                   role, 0);
    } else if (n > 0) {
        snprintf(text, sizeof text, share < 0.005 ? "<1" : "%.0f", 100 * share);
        tui_put_end(p, y, x + cell - 1, role, text);
    } else {
        tui_put_end(p, y, x + cell - 1, TUI_HEAT0, ".");
    }
    if (label == r->label && class == r->class)
        tui_mark(p, y, cell == 1 ? x : x + cell - 4, cell == 1 ? 1 : 3, TUI_REVERSE);
    else if (label == class && cell > 1)
        tui_mark(p, y, x + cell - 4, 3, TUI_BOLD);
}

static void
draw_confusion(struct tui_results *r, const struct tui_pane *p)
{
    const int c = r->all.classes, cell = HEAD + c * CELL + 1 <= p->w ? CELL : 1;
    const int shown = (p->w - HEAD - 2) / cell < c ? (p->w - HEAD - 2) / cell : c;
    char text[16];
    tui_title(p, 0, "rows: the label, columns: what it is taken for, % of the row",
              r->panel == TUI_RESULTS_CONFUSION);
    tui_list_show(&r->rows, c, p->h - 2);
    if (r->class < r->first)
        r->first = r->class;
    if (r->class >= r->first + shown)
        r->first = r->class - shown + 1;
    for (int k = 0; k < shown; k++) {
        const int class = r->first + k;
        snprintf(text, sizeof text, "%d", class);
        if (cell > 1)
            tui_put_end(p, 1, HEAD + 1 + (k + 1) * cell - 1, TUI_LABEL, text);
        else if (class % 10 == 0)
            tui_put(p, 1, HEAD + 1 + k, TUI_LABEL, text);
    }
    for (int y = 0; y < p->h - 2 && r->rows.top + y < c; y++) {
        const int label = r->rows.top + y;
        snprintf(text, sizeof text, "%d", label);
        tui_put_end(p, y + 2, HEAD, label == r->label ? TUI_STRONG : TUI_LABEL, text);
        for (int k = 0; k < shown; k++)
            put_share(r, p, y + 2, HEAD + 1 + k * cell, cell, label, r->first + k);
    }
}

/* ---- numbers of each class ---- */

static void
put_class(const struct tui_results *r, const struct tui_pane *p, int y, int label)
{
    int64_t taken = 0, most = 0;
    int other = -1;
    char text[TUI_NUMBER];
    const int64_t right = tui_results_count(r, label, label);
    const int64_t n = tui_results_samples(r, label);
    for (int k = 0; k < r->all.classes; k++) {
        taken += tui_results_count(r, k, label);
        if (k != label && tui_results_count(r, label, k) > most) {
            most = tui_results_count(r, label, k);
            other = k;
        }
    }
    const double recall = n > 0 ? (double)right / (double)n : NAN;
    const double precision = taken > 0 ? (double)right / (double)taken : NAN;
    const double f1 = 2 * precision * recall / (precision + recall);
    const double each[] = {recall, precision, f1};
    tui_putf(p, y, 2, TUI_TEXT, "%d", label);
    tui_put_end(p, y, 16, TUI_TEXT, tui_count(n, text));
    for (int i = 0; i < 3; i++)
        tui_put_end(p, y, 26 + 10 * i, i == 2 ? TUI_STRONG : TUI_TEXT,
                    tui_value(each[i], text));
    if (other >= 0)
        tui_putf(p, y, 49, TUI_DIM, "%d", other);
}

static void
draw_classes(struct tui_results *r, const struct tui_pane *p)
{
    static const char *const heads[] = {"recall", "precision", "F1"};
    tui_title(p, 0, "each class", r->panel == TUI_RESULTS_CLASSES);
    tui_put(p, 1, 2, TUI_LABEL, "class");
    tui_put_end(p, 1, 16, TUI_LABEL, "samples");
    for (int i = 0; i < 3; i++)
        tui_put_end(p, 1, 26 + 10 * i, TUI_LABEL, heads[i]);
    tui_put(p, 1, 49, TUI_LABEL, "for");
    tui_list_show(&r->classes, r->all.classes, p->h - 2);
    for (int y = 0; y < p->h - 2 && r->classes.top + y < r->all.classes; y++) {
        const int label = r->classes.top + y;
        put_class(r, p, y + 2, label);
        if (label == r->classes.at)
            tui_select(p, y + 2, r->panel == TUI_RESULTS_CLASSES);
    }
}

/* ---- the worst ---- */

/* The picture of SAMPLE; NULL: there is none. */
static const uint8_t *
picture_of(const struct tui_results *r, int64_t sample)
{
    for (int i = 0; i < r->sheet.n; i++)
        if (r->sheet.sample[i] == sample)
            return r->sheet.rgb[i];
    return NULL;
}

static void
put_mistake(const struct tui_results *r, const struct tui_pane *p, int i, bool selected)
{
    const int64_t at = r->mistake[i];
    const int class = r->all.class[at], label = r->all.label[at];
    const uint8_t *rgb = picture_of(r, at);
    const struct tui_pane picture = tui_pane_part(p, 0, 0, p->h - 2, p->w);
    char text[64];
    if (rgb)
        tui_halves_draw(&picture, rgb, r->sheet.w, r->sheet.h);
    else
        tui_put(&picture, picture.h / 2, 0, TUI_DIM, "no picture");
    snprintf(text, sizeof text, "%d for %d", class, label);
    tui_put_cut(p, p->h - 2, 0, p->w, selected ? TUI_STRONG : TUI_TEXT, text);
    snprintf(text, sizeof text, "%.2f #%lld", (double)r->all.loss[at], (long long)at);
    tui_put_cut(p, p->h - 1, 0, p->w, TUI_DIM, text);
    if (selected)
        for (int y = p->h - 2; y < p->h; y++)
            tui_ground(p, y, 0, p->w, TUI_ON_SELECT);
}

static void
draw_worst(struct tui_results *r, const struct tui_pane *p)
{
    char title[120];
    const bool is_large = p->h >= TILE_HIGHER + 4 && p->w >= 100;
    const int w = is_large ? TILE_WIDER : TILE_WIDE;
    const int h = (is_large ? TILE_HIGHER : TILE_HIGH) + 2;
    const int cols =
        (p->w - 2 + GAP) / (w + GAP) > 0 ? (p->w - 2 + GAP) / (w + GAP) : 1;
    const int rows = (p->h - 1) / (h + 1) > 0 ? (p->h - 1) / (h + 1) : 1;
    if (r->of_pair)
        snprintf(title, sizeof title, "%d taken for %d, the worst first", r->label,
                 r->class);
    else
        snprintf(title, sizeof title,
                 "the worst mistakes: class for label, loss, sample");
    tui_title(p, 0, title, r->panel == TUI_RESULTS_WORST);
    r->worst.n = r->n_mistakes;
    r->worst.page = cols * rows;
    r->worst.at = r->worst.at < r->n_mistakes ? r->worst.at : 0;
    const int first = r->worst.at / (cols * rows) * (cols * rows);
    for (int i = 0; i < cols * rows && first + i < r->n_mistakes; i++) {
        const struct tui_pane tile =
            tui_pane_part(p, 1 + i / cols * (h + 1), 1 + i % cols * (w + GAP), h, w);
        put_mistake(r, &tile, first + i,
                    first + i == r->worst.at && r->panel == TUI_RESULTS_WORST);
    }
    if (r->n_mistakes == 0)
        tui_put(p, 1, 2, TUI_DIM, "there are none");
}

/* ---- all ---- */

static void
draw_status(const struct tui_results *r, const struct tui_pane *p)
{
    char n[TUI_NUMBER];
    int64_t right = 0, known = 0;
    double loss = 0;
    for (int64_t i = 0; i < r->all.n; i++)
        if (r->all.label[i] >= 0) {
            known++;
            right += r->all.class[i] == r->all.label[i];
            loss += (double)r->all.loss[i];
        }
    int x = 1 + tui_put(p, 0, 1, TUI_TEXT, r->name) + 2;
    if (r->n_data > 0)
        x += tui_put(p, 0, x, TUI_DIM, r->data[r->at_data]) + 2;
    if (known == 0)
        return;
    x += tui_putf(p, 0, x, TUI_STRONG, "%.4f", (double)right / (double)known);
    x += tui_putf(p, 0, x, TUI_DIM, " right of %s", tui_count(known, n)) + 2;
    x += tui_putf(p, 0, x, TUI_TEXT, "%.4g", loss / (double)known);
    tui_put(p, 0, x, TUI_DIM, " loss");
}

static void
draw_none(struct tui_results *r, const struct tui_pane *p)
{
    static const struct tui_way ways[] = {
        {TUI_DO_results_predict, NULL, "predict its eval_data now"},
        {TUI_DO_results_back, NULL, "back"},
    };
    char what[160];
    snprintf(what, sizeof what, "What %s makes of each sample is not known yet.",
             r->name);
    tui_page_draw(
        r->app, p, 2, TUI_STRONG, what,
        "etude predict writes it, with the worst mistakes and their pictures.", ways,
        2);
}

void
tui_results_draw(struct tui_results *r, const struct tui_pane *p)
{
    const struct tui_pane rest = tui_pane_part(p, 1, 0, p->h - 1, p->w);
    draw_status(r, p);
    if (r->all.n == 0) {
        draw_none(r, p);
        return;
    }
    if (tui_size_of(r->app->grid.rows, r->app->grid.cols) >= TUI_WIDE) {
        const int half = p->h / 2 < r->all.classes + 4 ? p->h / 2 : r->all.classes + 4;
        const int left = p->w - TABLE;
        const struct tui_pane confusion = tui_pane_part(p, 1, 0, half - 1, left - 1);
        const struct tui_pane classes = tui_pane_part(p, 1, left, half - 1, TABLE);
        const struct tui_pane worst = tui_pane_part(p, half, 0, p->h - half, p->w);
        draw_confusion(r, &confusion);
        draw_classes(r, &classes);
        tui_divide(p, 1, left - 1, half - 1);
        draw_worst(r, &worst);
    } else if (r->panel == TUI_RESULTS_CONFUSION) {
        draw_confusion(r, &rest);
    } else if (r->panel == TUI_RESULTS_CLASSES) {
        draw_classes(r, &rest);
    } else {
        draw_worst(r, &rest);
    }
}
