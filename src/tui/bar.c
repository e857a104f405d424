/* SPDX-License-Identifier: Apache-2.0 */
/* bar.c: titles, bars and gauges. */
#include "config.h"

#include <math.h>
#include <stdio.h>

#include "tui/glyphs.h"
#include "tui/widget.h"

void
tui_title(const struct tui_pane *p, int y, const char *text, bool has_focus)
{
    const struct tui_glyphs *g = p->grid->glyphs;
    tui_fill(p, y, 0, p->w, has_focus ? g->heavy : g->across, TUI_RULE);
    if (has_focus) /* the accent is for what it says, not for the line behind it */
        tui_fill(p, y, 0, 2, g->heavy, TUI_BORDER_FOCUS);
    if (!*text)
        return;
    int x = 3 + tui_put(p, y, 3, has_focus ? TUI_FOCUS : TUI_SECTION, text);
    tui_put_ch(p, y, 2, ' ', TUI_TEXT, 0);
    tui_put_ch(p, y, x, ' ', TUI_TEXT, 0);
}

void
tui_rule(const struct tui_pane *p, int y, int x, int w)
{
    tui_fill(p, y, x, w, p->grid->glyphs->across, TUI_RULE);
}

void
tui_divide(const struct tui_pane *p, int y, int x, int h)
{
    for (int i = 0; i < h; i++)
        tui_put_ch(p, y + i, x, p->grid->glyphs->down, TUI_RULE, 0);
}

void
tui_border(const struct tui_pane *p, int y, int x, int h)
{
    const struct tui_glyphs *g = p->grid->glyphs;
    const int row = p->y + y, column = p->x + x;
    const struct tui_cell *above =
        row > 0 && column < p->grid->cols
            ? &p->grid->cell[(row - 1) * p->grid->cols + column]
            : NULL;
    bool goes_on = above && above->role == TUI_RULE && above->ch == g->down;
    if (h > 0)
        tui_put_ch(p, y, x, goes_on ? g->side : g->tee, TUI_RULE, 0);
    tui_divide(p, y + 1, x, h - 1);
}

void
tui_select(const struct tui_pane *p, int y, bool has_focus)
{
    tui_put_ch(p, y, 0, p->grid->glyphs->selected, has_focus ? TUI_FOCUS : TUI_DIM, 0);
    if (has_focus)
        tui_ground(p, y, 0, p->w, TUI_ON_SELECT);
}

static void
put_ends(const struct tui_pane *p, int y, int x, int w)
{
    const struct tui_glyphs *g = p->grid->glyphs;
    tui_put_ch(p, y, x, g->bar_open, TUI_DIM, 0);
    tui_put_ch(p, y, x + w - 1, g->bar_close, TUI_DIM, 0);
}

/* The tint of cell I of N: by its place, so that a bar's length is seen at once. */
static enum tui_role
tint(int i, int n)
{
    return 3 * i < n ? TUI_BAR_LOW : 3 * i < 2 * n ? TUI_BAR : TUI_BAR_HIGH;
}

/* Where a mark of WIDTH cells that goes from end to end of N and back is at PHASE. */
static int
bounce(int phase, int n, int width)
{
    int last = n - width;
    int at = last > 0 ? phase % (2 * last) : 0;
    return at <= last ? at : 2 * last - at;
}

void
tui_bar(const struct tui_pane *p, int y, int x, int w, double done, int phase)
{
    enum { MARK = 4 }; /* cells of the mark of an unknown length */
    const struct tui_glyphs *g = p->grid->glyphs;
    const int inner = w - 2;
    put_ends(p, y, x, w);
    if (inner <= 0)
        return;
    tui_fill(p, y, x + 1, inner, g->rest, TUI_TRACK);
    if (isnan(done) && phase < 0)
        return; /* its count stands beside it */
    if (isnan(done)) {
        const int width = inner < MARK ? inner : MARK;
        tui_fill(p, y, x + 1 + bounce(phase, inner, width), width, g->progress,
                 TUI_BAR);
        return;
    }
    done = fmin(fmax(done, 0), 1);
    int full = (int)(done * inner + 1e-9);
    bool half = g->half && done * inner - full >= 0.5;
    for (int i = 0; i < full; i++)
        tui_put_ch(p, y, x + 1 + i, g->progress, tint(i, inner), 0);
    if (half)
        tui_put_ch(p, y, x + 1 + full, g->half, tint(full, inner), 0);
    if (g->tip && full > 0 && full < inner)
        tui_put_ch(p, y, x + full, g->tip, tint(full - 1, inner), 0);
}

/* The character of a cell of which PART is full; 0: nothing of it is. FIRST: it is the
 * first of a value above 0, of which something shows always. */
static uint32_t
part_of_cell(const struct tui_glyphs *g, double part, bool first)
{
    int eighths = part >= 1   ? TUI_EIGHTHS
                  : part <= 0 ? 0
                              : (int)(part * TUI_EIGHTHS + 1e-9);
    if (eighths == 0 && first && part > 0)
        eighths = 1;
    if (g->is_ascii && first && part > 0)
        eighths = TUI_EIGHTHS;
    return eighths && g->gauge[eighths] != g->gauge_rest ? g->gauge[eighths] : 0;
}

void
tui_gauge(const struct tui_pane *p, int y, int x, int w, double used, bool warns)
{
    const struct tui_glyphs *g = p->grid->glyphs;
    const int inner = w - 2;
    const enum tui_role alarm = !warns || !(used > 0.85) ? TUI_TEXT
                                : used <= 0.95           ? TUI_WARN
                                                         : TUI_BAD;
    put_ends(p, y, x, w);
    used = isnan(used) ? 0 : fmin(fmax(used, 0), 1);
    for (int i = 0; i < inner; i++) {
        uint32_t ch = part_of_cell(g, used * inner - i, i == 0);
        if (ch)
            tui_put_ch(p, y, x + 1 + i, ch, alarm != TUI_TEXT ? alarm : tint(i, inner),
                       0);
        else
            tui_put_ch(p, y, x + 1 + i, g->gauge_rest, TUI_TRACK, 0);
    }
    if (alarm != TUI_TEXT && w > 2) /* not by its colour alone */
        tui_put_ch(p, y, x + w - 1, '!', alarm, 0);
}

void
tui_share(const struct tui_pane *p, int y, int x, int w, double part, int percent,
          bool warns)
{
    enum { PERCENT = 5 }; /* " 100%" */
    const int inner = w - PERCENT;
    /* A value just above 0 % fills an eighth of a cell: a whole cell would be too
     * much. */
    const bool has_least = percent > 0 || !p->grid->glyphs->is_ascii;
    for (int i = 0; i < inner; i++) {
        uint32_t ch =
            part_of_cell(p->grid->glyphs, part * inner - i, i == 0 && has_least);
        if (ch)
            tui_put_ch(p, y, x + i, ch, warns ? TUI_WARN : tint(i, inner), 0);
    }
    char text[16];
    snprintf(text, sizeof text, "%d%%", percent);
    tui_put_end(p, y, x + w, TUI_TEXT, text);
}

void
tui_percents(const double *part, int n, int *percent)
{
    double sum = 0, over[TUI_SHARES];
    int left = 100;
    n = n < TUI_SHARES ? n : TUI_SHARES;
    for (int i = 0; i < n; i++)
        sum += part[i];
    for (int i = 0; i < n; i++) {
        double exact = sum > 0 ? 100 * part[i] / sum : 0;
        percent[i] = (int)exact;
        over[i] = exact - percent[i];
        left -= percent[i];
    }
    for (; left > 0 && sum > 0; left--) { /* to those that lost most by the cut */
        int most = 0;
        for (int i = 1; i < n; i++)
            most = over[i] > over[most] ? i : most;
        percent[most]++;
        over[most] = -1;
    }
}

void
tui_sparkline(const struct tui_pane *p, int y, int x, int w, const double *value, int n,
              enum tui_role role)
{
    const struct tui_glyphs *g = p->grid->glyphs;
    double low = INFINITY, high = -INFINITY;
    int finite = 0;
    for (int i = 0; i < n; i++)
        if (isfinite(value[i])) {
            low = fmin(low, value[i]);
            high = fmax(high, value[i]);
            finite++;
        }
    if (finite < 3)
        return;
    for (int i = 0; i < w; i++) { /* the newest value at the right end */
        int at = n <= w ? i - (w - n) : (int)((double)(i + 1) * n / w) - 1;
        if (at < 0 || !isfinite(value[at]))
            continue;
        double part = high > low ? (value[at] - low) / (high - low) : 0;
        int level = (int)(part * (TUI_EIGHTHS - 1) + 0.5);
        tui_put_ch(p, y, x + i, g->spark[level], role, 0);
    }
}
