/* bar.c: titles, bars and gauges. */
#include "config.h"

#include <math.h>

#include "tui/glyphs.h"
#include "tui/widget.h"

void
tui_title(const struct tui_pane *p, int y, const char *text, bool has_focus)
{
    const struct tui_glyphs *g = p->grid->glyphs;
    tui_fill(p, y, 0, p->w, g->across, TUI_DIM);
    if (!*text)
        return;
    int x = 3 + tui_put(p, y, 3, has_focus ? TUI_FOCUS : TUI_TITLE, text);
    tui_put_ch(p, y, 2, ' ', TUI_DIM, 0);
    tui_put_ch(p, y, x, ' ', TUI_DIM, 0);
}

static void
put_ends(const struct tui_pane *p, int y, int x, int w)
{
    const struct tui_glyphs *g = p->grid->glyphs;
    tui_fill(p, y, x, w, ' ', TUI_BAR);
    tui_put_ch(p, y, x, g->bar_open, TUI_DIM, 0);
    tui_put_ch(p, y, x + w - 1, g->bar_close, TUI_DIM, 0);
}

/* Where a mark that goes from end to end and back is at PHASE. */
static int
bounce(int phase, int n)
{
    int at = phase % (2 * n - 1);
    return at < n ? at : 2 * n - 2 - at;
}

void
tui_bar(const struct tui_pane *p, int y, int x, int w, double done, int phase)
{
    const struct tui_glyphs *g = p->grid->glyphs;
    int inner = w - 2;
    put_ends(p, y, x, w);
    if (inner <= 0)
        return;
    if (isnan(done)) {
        tui_put_ch(p, y, x + 1 + bounce(phase, inner), g->progress, TUI_BAR, 0);
        return;
    }
    done = fmin(fmax(done, 0), 1);
    int full = (int)(done * inner + 1e-9);
    bool half = g->half && done * inner - full >= 0.5;
    tui_fill(p, y, x + 1, full, g->progress, TUI_BAR);
    if (half)
        tui_put_ch(p, y, x + 1 + full, g->half, TUI_BAR, 0);
    if (g->tip && full > 0 && full < inner)
        tui_put_ch(p, y, x + full, g->tip, TUI_BAR, 0);
}

void
tui_gauge(const struct tui_pane *p, int y, int x, int w, double used, bool warns)
{
    const struct tui_glyphs *g = p->grid->glyphs;
    int inner = w - 2;
    enum tui_role role = !warns || used <= 0.85 ? TUI_BAR
                         : used <= 0.95         ? TUI_WARN
                                                : TUI_BAD;
    put_ends(p, y, x, w);
    used = isnan(used) ? 0 : fmin(fmax(used, 0), 1);
    for (int i = 0; i < inner; i++) {
        double part = used * inner - i;
        int eighths = part >= 1   ? TUI_EIGHTHS
                      : part <= 0 ? 0
                                  : (int)(part * TUI_EIGHTHS + 1e-9);
        tui_put_ch(p, y, x + 1 + i, eighths ? g->gauge[eighths] : g->gauge_rest,
                   eighths && g->gauge[eighths] != g->gauge_rest ? role : TUI_DIM, 0);
    }
}
