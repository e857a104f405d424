/* SPDX-License-Identifier: Apache-2.0 */
/* results_track.c: the same samples at each evaluation of a run: see results.h. A row
 * for each sample: its picture, and what the model made of it, the newest to the
 * right. Where all evaluations take little of a row, it has several samples. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/image/class_color.h"
#include "tui/format.h"
#include "tui/halves.h"
#include "tui/results.h"

enum {
    WIDE = 10,
    HIGH = 5,
    WIDER = 18,
    HIGHER = 9,
    WORD = 13,  /* of a class, */
    WORDS = 20, /* at most */
    APART = 3,  /* between samples of a row */
};

static int
number(const json_t *line, const char *key, int i)
{
    return (int)json_integer_value(
        json_array_get(json_object_get(line, key), (size_t)i));
}

/* Part PART of the three that a tile of masks has, or all of another. */
static void
put_picture(const struct tui_results *r, const struct tui_pane *p, int i, int part)
{
    const struct eti_sheet *s = &r->pictures;
    const bool is_mask = json_object_get(json_array_get(r->track, 0), "mask") != NULL;
    const int w = is_mask ? s->w / 3 : s->w;
    uint8_t rgb[ETI_TILE * ETI_TILE * 3];
    if (i >= s->n || w < 1 || w > ETI_TILE || s->h > ETI_TILE)
        return;
    for (int y = 0; y < s->h; y++)
        memcpy(rgb + 3 * (ptrdiff_t)y * w,
               s->rgb[i] + 3 * ((ptrdiff_t)y * s->w + part * w), 3 * (size_t)w);
    tui_halves_draw(p, rgb, w, s->h);
}

static int
hex_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0;
}

/* The mask of sample I at one evaluation. */
static void
put_mask(const struct tui_pane *p, const json_t *line, int i)
{
    uint8_t rgb[ETI_TRACKED_SIDE * ETI_TRACKED_SIDE * 3];
    const char *text =
        json_string_value(json_array_get(json_object_get(line, "mask"), (size_t)i));
    const json_int_t h = json_integer_value(json_object_get(line, "h"));
    const json_int_t w = json_integer_value(json_object_get(line, "w"));
    if (!text || h < 1 || w < 1 || h > ETI_TRACKED_SIDE || w > ETI_TRACKED_SIDE ||
        (json_int_t)strlen(text) != 2 * h * w)
        return;
    for (json_int_t k = 0; k < h * w; k++) {
        const int class = hex_of(text[2 * k]) << 4 | hex_of(text[2 * k + 1]);
        (void)eti_class_color(class == 255 ? -1 : class, rgb + 3 * k);
    }
    tui_halves_draw(p, rgb, (int)w, (int)h);
}

/* What CLASS of a line is called: as the line says, or as what was predicted. */
static const char *
name_of(const struct tui_results *r, const json_t *line, int class, char *out, size_t n)
{
    const char *own = eti_tracked_name(line, class);
    if (!own)
        return eti_predictions_name(&r->all, class, out, n);
    snprintf(out, n, "%d %s", class, own);
    return out;
}

/* What the model made of sample I at one evaluation. */
static void
put_answer(const struct tui_results *r, const struct tui_pane *p, const json_t *line,
           int i)
{
    char text[80], name[64];
    const double share =
        json_number_value(json_array_get(json_object_get(line, "p"), (size_t)i));
    if (json_object_get(line, "mask")) {
        const struct tui_pane picture = tui_pane_part(p, 0, 0, p->h - 1, p->w);
        put_mask(&picture, line, i);
        tui_putf(p, p->h - 1, 0, TUI_DIM, "%.0f%%", 100 * share);
        return;
    }
    const int class = number(line, "class", i);
    const bool is_right = class == number(line, "label", i);
    snprintf(text, sizeof text, "%c %s", is_right ? '+' : 'x',
             name_of(r, line, class, name, sizeof name));
    tui_put_cut(p, 0, 0, p->w, is_right ? TUI_GOOD : TUI_BAD, text);
    tui_putf(p, 1, 2, TUI_DIM, "%.0f%%", 100 * share);
}

/* How the panel is divided. */
struct shape {
    bool is_mask;
    int w, h;          /* of a picture, in cells, with the line below it */
    int left, each;    /* columns before the first evaluation, and of one */
    int from, shown;   /* evaluations */
    int rows, columns; /* of samples */
    int sample;        /* columns from one to the next */
};

/* Columns of an answer of the samples: the longest name that they are given, within
 * reason. */
static int
word_of(const struct tui_results *r)
{
    int most = WORD;
    char name[64];
    for (size_t k = 0; k < json_array_size(r->track); k++) {
        const json_t *line = json_array_get(r->track, k);
        const int n = (int)json_array_size(json_object_get(line, "class"));
        for (int i = 0; i < n; i++) {
            name_of(r, line, number(line, "class", i), name, sizeof name);
            const int columns = tui_width(name) + 3; /* its mark, and a blank */
            most = columns > most ? columns : most;
        }
    }
    return most < WORDS ? most : WORDS;
}

static struct shape
divide(const struct tui_results *r, const struct tui_pane *p)
{
    const bool is_large = p->h >= 3 * HIGHER && p->w >= 100;
    const int all = (int)json_array_size(r->track);
    struct shape s = {.w = is_large ? WIDER : WIDE, .h = is_large ? HIGHER : HIGH};
    s.is_mask = json_object_get(json_array_get(r->track, 0), "mask") != NULL;
    s.left = 1 + (s.w + 1) * (s.is_mask ? 2 : 1);
    s.each = s.is_mask ? s.w + 1 : word_of(r);
    s.shown = p->w > s.left ? (p->w - s.left) / s.each : 0;
    s.shown = s.shown < all ? s.shown : all;
    s.from = all - s.shown;
    s.rows = (p->h - 1) / (s.h + 1) > 0 ? (p->h - 1) / (s.h + 1) : 1;
    s.sample = s.left + s.shown * s.each + APART;
    s.columns = (p->w + APART) / s.sample > 0 ? (p->w + APART) / s.sample : 1;
    return s;
}

/* Sample I: its picture, and what the model made of it, in the first rows of P. */
static void
put_sample(const struct tui_results *r, const struct tui_pane *p, const struct shape *s,
           int i)
{
    const json_t *last = json_array_get(r->track, json_array_size(r->track) - 1);
    const struct tui_pane picture = tui_pane_part(p, 0, 1, s->h - 1, s->w);
    char text[80];
    put_picture(r, &picture, i, 0);
    if (s->is_mask) {
        const struct tui_pane target = tui_pane_part(p, 0, s->w + 2, s->h - 1, s->w);
        put_picture(r, &target, i, 1);
        tui_putf(p, s->h - 1, 1, TUI_TEXT, "#%d", i);
    } else {
        tui_put_cut(p, s->h - 1, 1, p->w, TUI_TEXT,
                    name_of(r, last, number(last, "label", i), text, sizeof text));
    }
    for (int k = 0; k < s->shown; k++) {
        const struct tui_pane answer =
            tui_pane_part(p, 0, s->left + k * s->each, s->h, s->each - 1);
        put_answer(r, &answer, json_array_get(r->track, (size_t)(s->from + k)), i);
    }
    if (i == r->tracked.at)
        tui_put(p, 0, 0, TUI_FOCUS, ">");
}

/* Above each column of samples: after how many batches an evaluation was. */
static void
put_heads(const struct tui_results *r, const struct tui_pane *p, const struct shape *s,
          int columns)
{
    for (int c = 0; c < columns; c++)
        for (int k = 0; k < s->shown; k++)
            tui_putf(p, 1, c * s->sample + s->left + k * s->each, TUI_LABEL, "%dba",
                     (int)json_integer_value(json_object_get(
                         json_array_get(r->track, (size_t)(s->from + k)), "ba")));
}

void
tui_results_draw_tracked(struct tui_results *r, const struct tui_pane *p)
{
    const struct shape s = divide(r, p);
    const json_t *last = json_array_get(r->track, json_array_size(r->track) - 1);
    const int n = (int)json_array_size(json_object_get(last, "p"));
    const int least = (n + s.rows - 1) / s.rows; /* columns that all samples need */
    const int columns = s.columns < least ? s.columns : least;
    tui_title(p, 0,
              s.is_mask ? "the same samples at each evaluation: picture, target, masks"
                        : "the same samples at each evaluation: class, its probability",
              r->panel == TUI_RESULTS_TRACKED);
    put_heads(r, p, &s, columns);
    tui_list_show(&r->tracked, n, s.rows * columns);
    for (int i = 0; i < s.rows * columns && r->tracked.top + i < n; i++) {
        const struct tui_pane sample =
            tui_pane_part(p, 2 + i % s.rows * (s.h + 1), i / s.rows * s.sample, s.h,
                          s.sample - APART);
        put_sample(r, &sample, &s, r->tracked.top + i);
    }
}
