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
#include "tui/halves.h"
#include "tui/page.h"
#include "tui/results.h"

enum {
    HEAD = 5,   /* columns of a class's number, */
    NAMED = 14, /* and of its name */
    CELL = 4,   /* of a share, "100" */
    TABLE = 54, /* of the numbers of classes, */
    MORE = 12,  /* and of a name, more than of a number */
};

/* Columns of what stands before a row of the confusion. */
static int
head_of(const struct tui_results *r, const struct tui_pane *p)
{
    const bool all_fit = NAMED + r->all.classes * CELL + 1 <= p->w;
    return r->all.name && (all_fit || p->w > 4 * NAMED) ? NAMED : HEAD;
}

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
        if (share < 0.005)
            snprintf(text, sizeof text, "%3s", "<1");
        else
            snprintf(text, sizeof text, "%3d", (int)(100 * share + 0.5));
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
    const int c = r->all.classes, head = head_of(r, p);
    const int cell = head + c * CELL + 1 <= p->w ? CELL : 1;
    const int shown = (p->w - head - 1) / cell < c ? (p->w - head - 1) / cell : c;
    char text[64];
    tui_title(p, 0,
              r->all.answer == ETI_ANSWER_MASK
                  ? "rows: label, columns: its pixels taken for, %"
                  : "rows: label, columns: taken for, % of the row",
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
            tui_put_end(p, 1, head + 1 + (k + 1) * cell - 1, TUI_LABEL, text);
        else if (class % 10 == 0)
            tui_put(p, 1, head + 1 + k, TUI_LABEL, text);
    }
    for (int y = 0; y < p->h - 2 && r->rows.top + y < c; y++) {
        const int label = r->rows.top + y;
        const enum tui_role role = label == r->label ? TUI_STRONG : TUI_LABEL;
        eti_predictions_name(&r->all, label, text, sizeof text);
        if (head == NAMED)
            tui_put_cut(p, y + 2, 1, head, role, text);
        else
            tui_putf(p, y + 2,
                     label < 10    ? HEAD - 1
                     : label < 100 ? HEAD - 2
                                   : HEAD - 3,
                     role, "%d", label);
        for (int k = 0; k < shown; k++)
            put_share(r, p, y + 2, head + 1 + k * cell, cell, label, r->first + k);
    }
}

/* ---- numbers of each class ---- */

/* What each of the two names of a row takes of a table of so many COLUMNS, beyond what
 * numbers would. */
static int
more_of(const struct tui_results *r, int columns)
{
    const int more = (columns - TABLE) / 2;
    return !r->all.name || more < 0 ? 0 : more < MORE ? more : MORE;
}

/* Where the columns of the table end, MORE_OF columns further to the right. */
enum { NAME_END = 12, SAMPLES_END = 20, OTHER = 48 };
static const int number_end[] = {28, 38, 46};

static void
put_class(const struct tui_results *r, const struct tui_pane *p, int y, int label)
{
    int64_t taken = 0, most = 0;
    int other = -1;
    char text[TUI_NUMBER];
    const bool is_mask = r->all.answer == ETI_ANSWER_MASK;
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
    const double last = is_mask ? eti_predictions_iou(&r->all, label) : f1;
    const double each[] = {recall, precision, last};
    const int x = more_of(r, p->w);
    char name[64];
    tui_put_cut(p, y, 2 + (is_mask ? tui_swatch_put(p, y, 2, label) : 0), x + NAME_END,
                TUI_TEXT, eti_predictions_name(&r->all, label, name, sizeof name));
    tui_put_end(p, y, x + SAMPLES_END, TUI_TEXT, tui_count(n, text));
    for (int i = 0; i < 3; i++)
        tui_put_end(p, y, x + number_end[i], i == 2 ? TUI_STRONG : TUI_TEXT,
                    tui_value(each[i], text));
    if (other >= 0)
        tui_put_cut(p, y, x + OTHER, p->w, TUI_DIM,
                    eti_predictions_name(&r->all, other, name, sizeof name));
}

static void
draw_classes(struct tui_results *r, const struct tui_pane *p)
{
    const bool is_mask = r->all.answer == ETI_ANSWER_MASK;
    const int x = more_of(r, p->w);
    const char *const heads[] = {"recall", "precision", is_mask ? "IoU" : "F1"};
    tui_title(p, 0, "each class", r->panel == TUI_RESULTS_CLASSES);
    tui_put(p, 1, 2, TUI_LABEL, "class");
    tui_put_end(p, 1, x + SAMPLES_END, TUI_LABEL, is_mask ? "pixels" : "samples");
    for (int i = 0; i < 3; i++)
        tui_put_end(p, 1, x + number_end[i], TUI_LABEL, heads[i]);
    tui_put(p, 1, x + OTHER, TUI_LABEL, "for");
    tui_list_show(&r->classes, r->all.classes, p->h - 2);
    for (int y = 0; y < p->h - 2 && r->classes.top + y < r->all.classes; y++) {
        const int label = r->classes.top + y;
        put_class(r, p, y + 2, label);
        if (label == r->classes.at)
            tui_select(p, y + 2, r->panel == TUI_RESULTS_CLASSES);
    }
}

/* ---- all ---- */

static void
draw_status(const struct tui_results *r, const struct tui_pane *p)
{
    static const char *const parts[ETI_ANSWERS] = {"samples", "pixels", "tokens", ""};
    char n[TUI_NUMBER];
    struct eti_predictions_sum sum;
    eti_predictions_sum(&r->all, &sum);
    int x = 1 + tui_put(p, 0, 1, TUI_TEXT, r->name) + 2;
    if (r->n_data > 0)
        x += tui_put(p, 0, x, TUI_DIM, r->data[r->at_data]) + 2;
    if (r->all.answer == ETI_ANSWER_VALUES && r->all.n > 0) {
        x += tui_putf(p, 0, x, TUI_STRONG, "%.4f", sum.r2);
        x += tui_put(p, 0, x, TUI_DIM, " R2") + 2;
        x += tui_putf(p, 0, x, TUI_TEXT, "%.4g", sum.mae);
        tui_putf(p, 0, x, TUI_DIM, " off in the mean, of %s", tui_count(r->all.n, n));
        return;
    }
    if (sum.counted == 0)
        return;
    if (r->all.answer == ETI_ANSWER_MASK) {
        x += tui_putf(p, 0, x, TUI_STRONG, "%.4f", sum.mean_iou);
        x += tui_put(p, 0, x, TUI_DIM, " mean IoU") + 2;
    }
    x += tui_putf(p, 0, x, TUI_STRONG, "%.4f", (double)sum.right / (double)sum.counted);
    x += tui_putf(p, 0, x, TUI_DIM, " right of %s", tui_count(sum.counted, n));
    if (r->all.answer != ETI_ANSWER_CLASS)
        x += tui_putf(p, 0, x, TUI_DIM, " %s", parts[r->all.answer]);
    x += 2;
    x += tui_putf(p, 0, x, TUI_TEXT, "%.4g", sum.loss);
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

/* Columns of the table in P: what the confusion beside it does not need, as far as
 * names want it. */
static int
table_of(const struct tui_results *r, const struct tui_pane *p)
{
    const int confusion = NAMED + r->all.classes * CELL + 2;
    return TABLE + 2 * more_of(r, p->w - confusion);
}

void
tui_results_draw(struct tui_results *r, const struct tui_pane *p)
{
    const struct tui_pane rest = tui_pane_part(p, 1, 0, p->h - 1, p->w);
    draw_status(r, p);
    if (r->panel == TUI_RESULTS_TRACKED && r->track &&
        (r->all.n == 0 || !tui_results_has_classes(r))) {
        tui_results_draw_tracked(r, &rest);
        return;
    }
    if (r->all.n == 0) {
        draw_none(r, p);
        return;
    }
    if (!tui_results_has_classes(r)) {
        tui_results_draw_worst(r, &rest);
        return;
    }
    if (tui_size_of(r->app->grid.rows, r->app->grid.cols) >= TUI_WIDE) {
        const int half = p->h / 2 < r->all.classes + 4 ? p->h / 2 : r->all.classes + 4;
        const int table = table_of(r, p), left = p->w - table;
        const struct tui_pane confusion = tui_pane_part(p, 1, 0, half - 1, left - 1);
        const struct tui_pane classes = tui_pane_part(p, 1, left, half - 1, table);
        const struct tui_pane worst = tui_pane_part(p, half, 0, p->h - half, p->w);
        draw_confusion(r, &confusion);
        draw_classes(r, &classes);
        tui_divide(p, 1, left - 1, half - 1);
        if (r->panel == TUI_RESULTS_TRACKED)
            tui_results_draw_tracked(r, &worst);
        else
            tui_results_draw_worst(r, &worst);
    } else if (r->panel == TUI_RESULTS_CONFUSION) {
        draw_confusion(r, &rest);
    } else if (r->panel == TUI_RESULTS_CLASSES) {
        draw_classes(r, &rest);
    } else if (r->panel == TUI_RESULTS_TRACKED) {
        tui_results_draw_tracked(r, &rest);
    } else {
        tui_results_draw_worst(r, &rest);
    }
}
