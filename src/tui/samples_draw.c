/* SPDX-License-Identifier: Apache-2.0 */
/* samples_draw.c: how the samples of a recipe's data are drawn: see samples.h.
 *
 *     60x16    the samples alone
 *     80x24    transforms, sizes and classes to their left */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/format.h"
#include "tui/glyphs.h"
#include "tui/halves.h"
#include "tui/page.h"
#include "tui/samples.h"

enum {
    SIDE = 26,  /* columns of what is to the left */
    SIDER = 36, /* where there is more room */
    TILE_WIDE = 14,
    TILE_HIGH = 7,
    TILE_WIDER = 22,
    TILE_HIGHER = 11,
    GAP = 2,
    MOST_PIXELS = 64, /* of a side that are read */
};

static const json_t *
get(const struct tui_samples *s, const char *key)
{
    return json_object_get(s->all, key);
}

static const char *
text_of(const json_t *from, const char *key)
{
    const char *text = json_string_value(json_object_get(from, key));
    return text ? text : "";
}

/* ---- to the left ---- */

static int
draw_steps(struct tui_samples *s, const struct tui_pane *p)
{
    const json_t *all = get(s, "transforms"), *one;
    const int n = (int)json_array_size(all);
    size_t i;
    tui_title(p, 0, "transforms", true);
    s->steps.n = n;
    if (n == 0)
        tui_put(p, 1, 2, TUI_DIM, "none");
    json_array_foreach(all, i, one)
    {
        const bool is_off = i < TUI_SAMPLES_STEPS && s->off[i];
        tui_put(p, 1 + (int)i, 2, is_off ? TUI_OFF : TUI_GOOD, is_off ? "[ ]" : "[x]");
        tui_put_cut(p, 1 + (int)i, 6, p->w - 1, is_off ? TUI_OFF : TUI_TEXT,
                    text_of(one, "name"));
        if ((int)i == s->steps.at)
            tui_select(p, 1 + (int)i, true);
    }
    return 2 + (n > 0 ? n : 1);
}

/* "image 3 x 32 x 32". */
static int
draw_fields(const struct tui_samples *s, const struct tui_pane *p, int y)
{
    const json_t *one, *side;
    size_t i, k;
    tui_title(p, y++, "a sample", false);
    json_array_foreach(get(s, "fields"), i, one)
    {
        char text[96];
        int used = snprintf(text, sizeof text, "%s", text_of(one, "name"));
        json_array_foreach(json_object_get(one, "shape"), k,
                           side) if (used > 0 && used < (int)sizeof text - 24) used +=
            snprintf(text + used, sizeof text - (size_t)used, "%s%lld",
                     k > 0 ? " x " : " ", (long long)json_integer_value(side));
        tui_put_cut(p, y++, 2, p->w - 1, TUI_TEXT, text);
    }
    return y + 1;
}

static void
draw_classes(const struct tui_samples *s, const struct tui_pane *p, int y)
{
    const json_t *counts = get(s, "counts"), *names = get(s, "class_names");
    const char *what = json_string_value(get(s, "counted_what"));
    const int64_t counted = json_integer_value(get(s, "counted"));
    const bool is_mask = what && strcmp(what, "pixels") == 0;
    const int n = (int)json_array_size(counts);
    int64_t most = 1;
    char text[96], number[TUI_NUMBER];
    if (n == 0 || y + 2 > p->h)
        return;
    snprintf(text, sizeof text, "%.20s, of %s", what ? what : "classes",
             tui_count(counted, number));
    tui_title(p, y++, text, false);
    for (int i = 0; i < n; i++) {
        const int64_t v = json_integer_value(json_array_get(counts, (size_t)i));
        most = v > most ? v : most;
    }
    for (int i = 0; i < n && y < p->h; i++, y++) {
        const int64_t v = json_integer_value(json_array_get(counts, (size_t)i));
        const char *name = json_string_value(json_array_get(names, (size_t)i));
        const int left = p->w / 2;
        if (y + 1 == p->h && i + 1 < n) {
            tui_putf(p, y, 2, TUI_DIM, "%d more", n - i);
            return;
        }
        const int x = 2 + (is_mask ? tui_swatch_put(p, y, 2, i) : 0);
        snprintf(text, sizeof text, name ? "%d %s" : "%d", i, name);
        tui_put_cut(p, y, x, left, TUI_TEXT, text);
        const int bar = p->w - left - 8 > 0 ? p->w - left - 8 : 0;
        const int full = (int)(v * bar / most);
        for (int k = 0; k < bar; k++)
            tui_put_ch(p, y, left + 1 + k,
                       p->grid->glyphs->is_ascii ? k < full ? '#' : ' '
                       : k < full                ? 0x2588
                                                 : ' ',
                       TUI_BAR, 0);
        tui_put_end(p, y, p->w - 1, TUI_LABEL, tui_count(v, number));
    }
}

/* ---- pictures ---- */

static int
hex_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0;
}

static void
put_picture(const struct tui_pane *p, const json_t *one, const char *key)
{
    uint8_t rgb[MOST_PIXELS * MOST_PIXELS * 3];
    const int64_t h = json_integer_value(json_object_get(one, "h"));
    const int64_t w = json_integer_value(json_object_get(one, "w"));
    const char *hex = text_of(one, key);
    if (h < 1 || w < 1 || h > MOST_PIXELS || w > MOST_PIXELS ||
        (int64_t)strlen(hex) != h * w * 6)
        return;
    for (int64_t i = 0; i < h * w * 3; i++)
        rgb[i] = (uint8_t)(hex_of(hex[2 * i]) << 4 | hex_of(hex[2 * i + 1]));
    /* A cell is about twice as high as wide. */
    int rows = p->h, cols = (int)(2 * rows * w / h);
    if (cols > p->w) {
        cols = p->w;
        rows = (int)(cols * h / (2 * w)) > 0 ? (int)(cols * h / (2 * w)) : 1;
    }
    const struct tui_pane part = tui_pane_part(p, 0, 0, rows, cols > 0 ? cols : 1);
    tui_halves_draw(&part, rgb, (int)w, (int)h);
}

static void
draw_tiles(struct tui_samples *s, const struct tui_pane *p)
{
    const json_t *all = get(s, "shown");
    const bool has_mask = json_object_get(json_array_get(all, 0), "mask") != NULL;
    const bool is_large = p->h >= 3 * TILE_HIGHER && p->w >= 4 * TILE_WIDER;
    /* Of masks two stand beside each other, if that makes them a little smaller. */
    const bool is_small = has_mask && p->w < 2 * (2 * TILE_WIDE + 1 + GAP);
    const int w = is_large ? TILE_WIDER : is_small ? TILE_WIDE - 2 : TILE_WIDE;
    const int h = is_large ? TILE_HIGHER : is_small ? TILE_HIGH - 1 : TILE_HIGH;
    const int wide = has_mask ? 2 * w + 1 : w;
    const int fit = (p->w - 1 + GAP) / (wide + GAP), cols = fit > 0 ? fit : 1;
    const int rows = p->h / (h + 2) > 0 ? p->h / (h + 2) : 1;
    s->shown = cols * rows;
    for (int i = 0; i < cols * rows; i++) {
        const json_t *one = json_array_get(all, (size_t)(s->first + i));
        if (!one)
            break;
        const struct tui_pane tile = tui_pane_part(
            p, i / cols * (h + 2), 1 + i % cols * (wide + GAP), h + 1, wide);
        const struct tui_pane left = tui_pane_part(&tile, 0, 0, h, w);
        put_picture(&left, one, has_mask ? "over" : "rgb");
        if (has_mask) {
            const struct tui_pane right = tui_pane_part(&tile, 0, w + 1, h, w);
            put_picture(&right, one, "mask");
        }
        tui_put_cut(&tile, h, 0, wide, TUI_TEXT, text_of(one, "target"));
    }
}

/* ---- texts and numbers ---- */

/* One token at *Y, *X of P, in the next line where it does not fit. False: no room. */
static bool
put_word(const struct tui_pane *p, int *y, int *x, int bottom, enum tui_role role,
         const char *text)
{
    const int w = tui_width(text);
    if (*x + w > p->w - 1 && *x > 2) {
        (*y)++;
        *x = 2;
    }
    if (*y >= bottom)
        return false;
    tui_put_cut(p, *y, *x, p->w - 1, role, text);
    *x += w;
    return true;
}

/* The tokens of a sample, and behind one that is to be guessed what it was. */
static int
put_text(const struct tui_pane *p, int y, int bottom, const json_t *one)
{
    const json_t *token, *guessed = json_object_get(one, "guessed");
    const bool is_bytes =
        json_string_length(json_array_get(json_object_get(one, "tokens"), 0)) == 1;
    int x = 2;
    size_t i;
    json_array_foreach(json_object_get(one, "tokens"), i, token)
    {
        char place[24], text[96];
        snprintf(place, sizeof place, "%zu", i);
        const char *was = json_string_value(json_object_get(guessed, place));
        const char *is = json_string_value(token);
        if (!put_word(p, &y, &x, bottom, was ? TUI_MATCH_TEXT : TUI_TEXT,
                      is && strcmp(is, "\n") == 0 ? " "
                      : is                        ? is
                                                  : "?"))
            break;
        if (was) {
            tui_mark(p, y, x > 2 ? x - tui_width(is ? is : "?") : 2,
                     tui_width(is ? is : "?"), TUI_REVERSE);
            snprintf(text, sizeof text, "(%.80s)", was);
            if (!put_word(p, &y, &x, bottom, TUI_CHANGED, text))
                break;
        }
        if (!is_bytes && x > 2)
            x++;
    }
    return y + 1;
}

static int
put_numbers(const struct tui_pane *p, int y, const json_t *one)
{
    const json_t *list, *v;
    const char *key;
    size_t i;
    json_object_foreach(json_object_get((json_t *)(uintptr_t)one, "values"), key, list)
    {
        int x = 2 + tui_put(p, y, 2, TUI_LABEL, key) + 1;
        json_array_foreach(list, i, v) if (x + 10 < p->w) x +=
            tui_putf(p, y, x, TUI_TEXT, "%.4g", json_number_value(v)) + 1;
        y++;
    }
    return y;
}

static void
draw_texts(struct tui_samples *s, const struct tui_pane *p)
{
    const json_t *all = get(s, "shown");
    const bool has_words = json_object_get(json_array_get(all, 0), "tokens") != NULL;
    const int each = has_words ? p->h >= 24 ? 8 : 5 : 3;
    const int rows = p->h / each > 0 ? p->h / each : 1;
    s->shown = rows;
    for (int i = 0; i < rows; i++) {
        const json_t *one = json_array_get(all, (size_t)(s->first + i));
        const int y = i * each;
        if (!one)
            break;
        int x =
            tui_putf(p, y, 1, TUI_DIM, "#%lld", (long long)(s->from + s->first + i)) +
            2;
        const char *target = text_of(one, "target");
        if (*target)
            x += tui_putf(p, y, x, TUI_STRONG, "%s", target) + 1;
        if (has_words) {
            tui_putf(p, y, x, TUI_DIM, "%lld tokens",
                     (long long)json_integer_value(json_object_get(one, "length")));
            put_text(p, y + 1, y + each - 1, one);
        } else {
            put_numbers(p, y + 1, one);
        }
    }
}

/* ---- all ---- */

static void
draw_status(const struct tui_samples *s, const struct tui_pane *p)
{
    char n[TUI_NUMBER];
    int x = 1 + tui_put(p, 0, 1, TUI_TEXT, s->name) + 2;
    x += tui_put(p, 0, x, TUI_STRONG, s->is_eval ? "eval_data" : "train_data") + 2;
    if (!s->all)
        return;
    if (p->w >= 100)
        x += tui_put(p, 0, x, TUI_TEXT, text_of(s->all, "data")) + 2;
    x += tui_putf(p, 0, x, TUI_DIM, "%s samples",
                  tui_count(json_integer_value(get(s, "samples")), n)) +
         2;
    tui_putf(p, 0, x, TUI_DIM, "epoch %lld, from %lld on", (long long)s->epoch,
             (long long)(s->from + s->first));
}

static void
draw_nothing(struct tui_samples *s, const struct tui_pane *p)
{
    static const struct tui_way ways[] = {
        {TUI_DO_samples_data, NULL, "the other data of the recipe"},
        {TUI_DO_samples_back, NULL, "back"},
    };
    if (s->job.pid > 0)
        tui_put(p, 2, 2, TUI_DIM, "reading samples...");
    else
        tui_page_draw(s->app, p, 2, TUI_STRONG, "There are no samples to show.",
                      s->problem, ways, 2);
}

void
tui_samples_draw(struct tui_samples *s, const struct tui_pane *p)
{
    draw_status(s, p);
    if (!s->all) {
        draw_nothing(s, p);
        return;
    }
    const int side = p->w < 76 ? 0 : p->w < 120 ? SIDE : SIDER;
    const int from = side > 0 ? side + 1 : 0;
    const struct tui_pane left = tui_pane_part(p, 1, 0, p->h - 1, side);
    const struct tui_pane right = tui_pane_part(p, 1, from, p->h - 1, p->w - from);
    const struct tui_pane below = tui_pane_part(&right, 1, 0, right.h - 1, right.w);
    if (side > 0) {
        draw_classes(s, &left, draw_fields(s, &left, draw_steps(s, &left)));
        tui_divide(p, 1, side, p->h - 1);
    }
    tui_title(&right, 0, "as they reach the model, before algorithms", false);
    if (json_object_get(json_array_get(get(s, "shown"), 0), "rgb"))
        draw_tiles(s, &below);
    else
        draw_texts(s, &below);
}
