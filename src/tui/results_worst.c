/* SPDX-License-Identifier: Apache-2.0 */
/* results_worst.c: the worst samples of a run's results: see results.h.
 *
 *     classes, masks    tiles with their pictures
 *     tokens            the passage that is selected: what was to come, the hotter the
 *                       greater its loss, and below it what the model says instead
 *     values            target against value, and a list */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/format.h"
#include "tui/glyphs.h"
#include "tui/halves.h"
#include "tui/results.h"

enum {
    TILE_WIDE = 14,
    TILE_HIGH = 7,
    TILE_WIDER = 22,
    TILE_HIGHER = 11,
    GAP = 2,
    LIST = 30, /* columns of a list of passages or values */
};

/* ---- pictures ---- */

/* The picture of SAMPLE; NULL: there is none. */
static const uint8_t *
picture_of(const struct tui_results *r, int64_t sample)
{
    for (int i = 0; i < r->sheet.n; i++)
        if (r->sheet.sample[i] == sample)
            return r->sheet.rgb[i];
    return NULL;
}

/* The name without its number, which a tile has no room for. */
static const char *
only_name(const struct eti_predictions *all, int class, char name[64])
{
    eti_predictions_name(all, class, name, 64);
    const char *blank = strchr(name, ' ');
    return blank ? blank + 1 : name;
}

static void
put_mistake(const struct tui_results *r, const struct tui_pane *p, int i, bool selected)
{
    const int64_t at = r->mistake[i];
    const int class = r->all.class[at], label = r->all.label[at];
    const uint8_t *rgb = picture_of(r, at);
    const struct tui_pane picture = tui_pane_part(p, 0, 0, p->h - 2, p->w);
    char text[160], name[64], other[64];
    if (rgb)
        tui_halves_draw(&picture, rgb, r->sheet.w, r->sheet.h);
    else
        tui_put(&picture, picture.h / 2, 0, TUI_DIM, "no picture");
    if (r->all.answer == ETI_ANSWER_MASK)
        snprintf(text, sizeof text, "%.1f%% right: over it, target, prediction",
                 100.0 * class / (label > 0 ? label : 1));
    else if (r->all.name)
        snprintf(text, sizeof text, "%s for %s", only_name(&r->all, class, name),
                 only_name(&r->all, label, other));
    else
        snprintf(text, sizeof text, "%d for %d", class, label);
    tui_put_cut(p, p->h - 2, 0, p->w, selected ? TUI_STRONG : TUI_TEXT, text);
    snprintf(text, sizeof text, "%.2f #%lld", (double)r->all.loss[at], (long long)at);
    tui_put_cut(p, p->h - 1, 0, p->w, TUI_DIM, text);
    if (selected)
        for (int y = p->h - 2; y < p->h; y++)
            tui_ground(p, y, 0, p->w, TUI_ON_SELECT);
}

static void
draw_tiles(struct tui_results *r, const struct tui_pane *p)
{
    char title[160], label[64], class[64];
    const bool is_large = p->h >= TILE_HIGHER + 4 && p->w >= 100;
    const bool is_mask = r->all.answer == ETI_ANSWER_MASK;
    const int w = (is_large ? TILE_WIDER : TILE_WIDE) * (is_mask ? 3 : 1);
    const int h = (is_large ? TILE_HIGHER : TILE_HIGH) + 2;
    const int cols =
        (p->w - 2 + GAP) / (w + GAP) > 0 ? (p->w - 2 + GAP) / (w + GAP) : 1;
    const int rows = p->h / (h + 1) > 0 ? p->h / (h + 1) : 1;
    if (r->of_pair)
        snprintf(title, sizeof title, "%s taken for %s, the worst first",
                 eti_predictions_name(&r->all, r->label, label, sizeof label),
                 eti_predictions_name(&r->all, r->class, class, sizeof class));
    else if (is_mask)
        snprintf(title, sizeof title, "the worst masks: loss, sample");
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

/* ---- passages ---- */

static void
draw_list(struct tui_results *r, const struct tui_pane *p)
{
    tui_title(p, 0, "by loss", true);
    tui_list_show(&r->worst, r->n_mistakes, p->h - 1);
    for (int y = 0; y < p->h - 1 && r->worst.top + y < r->n_mistakes; y++) {
        const int i = r->worst.top + y;
        const int64_t at = r->mistake[i];
        tui_putf(p, y + 1, 2, TUI_TEXT, "#%lld", (long long)at);
        tui_putf(p, y + 1, 12, TUI_STRONG, "%.4g", (double)r->all.loss[at]);
        if (r->all.answer == ETI_ANSWER_TOKENS && r->all.label[at] > 0)
            tui_putf(p, y + 1, 20, TUI_DIM, "%.1f%% right",
                     100.0 * r->all.class[at] / r->all.label[at]);
        if (i == r->worst.at)
            tui_select(p, y + 1, true);
    }
}

static enum tui_role
heat_of_loss(float loss)
{
    return isnan(loss)   ? TUI_DIM
           : loss < 0.5F ? TUI_HEAT0
           : loss < 1.5F ? TUI_HEAT1
           : loss < 3    ? TUI_HEAT2
           : loss < 6    ? TUI_HEAT3
                         : TUI_HEAT4;
}

/* A token as text: a byte as it is, if it can be seen, others as their numbers. */
static int
token_text(const struct eti_sequences *all, int32_t token, char *buf, size_t size)
{
    if (token < 0)
        return snprintf(buf, size, "%s", all->is_bytes ? "." : "- ");
    if (!all->is_bytes)
        return snprintf(buf, size, "%d ", (int)token);
    return snprintf(buf, size, "%c", token >= ' ' && token < 127 ? (char)token : '.');
}

static const struct eti_sequence *
find_sequence(const struct tui_results *r)
{
    const struct eti_sequences *all = r->all.sequences;
    const int64_t at = r->worst.at < r->n_mistakes ? r->mistake[r->worst.at] : -1;
    for (int i = 0; all && i < all->n; i++)
        if (all->v[i].sample == at)
            return &all->v[i];
    return NULL;
}

/* Three rows for each line of P: the token that was to come, what the model says where
 * it says another, and none. What has no target shows what was read. */
static void
draw_sequence(const struct tui_results *r, const struct tui_pane *p)
{
    const struct eti_sequence *one = find_sequence(r);
    char label[16], class[16];
    tui_title(p, 0,
              "what was to come, the brighter the greater its loss; below: instead",
              false);
    if (!one) {
        tui_put(p, 1, 2, TUI_DIM, "only the worst 32 are kept place by place");
        return;
    }
    int y = 1, x = 2;
    for (int i = 0; i < one->n && y + 1 < p->h; i++) {
        const bool counts = one->label[i] >= 0;
        const bool is_other = counts && one->class[i] != one->label[i];
        const int w =
            token_text(r->all.sequences, counts ? one->label[i] : one->input[i], label,
                       sizeof label);
        const int below =
            is_other ? token_text(r->all.sequences, one->class[i], class, sizeof class)
                     : 0;
        const int wide = w > below ? w : below;
        if (x + wide > p->w - 1) {
            y += 3;
            x = 2;
        }
        tui_put(p, y, x, heat_of_loss(one->loss[i]), label);
        if (is_other)
            tui_put(p, y + 1, x, TUI_RAW, class);
        x += wide;
    }
}

/* ---- values ---- */

/* Target to the right, value up, and the line on which they are the same. */
static void
draw_scatter(const struct tui_results *r, const struct tui_pane *p)
{
    const struct eti_predictions *all = &r->all;
    float least = INFINITY, most = -INFINITY;
    tui_title(p, 0, "value up, target to the right; dots: where they are the same",
              false);
    for (int64_t i = 0; i < all->n; i++)
        for (int k = 0; k < 2; k++) {
            least = fminf(least, all->p[i * all->columns + k]);
            most = fmaxf(most, all->p[i * all->columns + k]);
        }
    const int w = p->w - 4, h = p->h - 3;
    if (!(most > least) || w < 4 || h < 3)
        return;
    for (int x = 0; x < w; x++)
        tui_put_ch(p, 1 + (h - 1) - x * (h - 1) / (w - 1), 2 + x, '.', TUI_AXIS, 0);
    const int64_t marked = r->worst.at < r->n_mistakes ? r->mistake[r->worst.at] : -1;
    for (int64_t i = 0; i <= all->n; i++) {
        const int64_t at = i < all->n ? i : marked; /* the selected one is the last */
        if (at < 0)
            break;
        const float *v = all->p + at * all->columns;
        const int x = (int)((v[0] - least) / (most - least) * (float)(w - 1));
        const int y = (int)((v[1] - least) / (most - least) * (float)(h - 1));
        tui_put_ch(p, 1 + (h - 1) - y, 2 + x, at == marked ? '#' : '+',
                   at == marked ? TUI_CURSOR : TUI_S1, 0);
    }
    tui_putf(p, p->h - 2, 2, TUI_AXIS, "%.4g", (double)least);
    char text[TUI_NUMBER];
    snprintf(text, sizeof text, "%.4g", (double)most);
    tui_put_end(p, p->h - 2, p->w - 2, TUI_AXIS, text);
    if (marked >= 0)
        tui_putf(p, p->h - 1, 2, TUI_TEXT, "#%lld: target %.6g, value %.6g",
                 (long long)marked, (double)all->p[marked * all->columns],
                 (double)all->p[marked * all->columns + 1]);
}

void
tui_results_draw_worst(struct tui_results *r, const struct tui_pane *p)
{
    if (tui_results_has_classes(r)) {
        draw_tiles(r, p);
        return;
    }
    const int list = p->w > 2 * LIST ? LIST + 4 : 0;
    const struct tui_pane left = tui_pane_part(p, 0, 0, p->h, list > 0 ? list - 1 : 0);
    const struct tui_pane right = tui_pane_part(p, 0, list, p->h, p->w - list);
    if (list > 0) {
        draw_list(r, &left);
        tui_divide(p, 0, list - 1, p->h);
    }
    r->worst.n = r->n_mistakes;
    if (r->all.answer == ETI_ANSWER_TOKENS)
        draw_sequence(r, &right);
    else
        draw_scatter(r, &right);
}
