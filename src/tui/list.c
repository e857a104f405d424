/* SPDX-License-Identifier: Apache-2.0 */
/* list.c: a list that scrolls, and columns. */
#include "config.h"

#include <string.h>

#include "tui/widget.h"

static int
clamp(int v, int low, int high)
{
    return v > high ? (high < low ? low : high) : v < low ? low : v;
}

bool
tui_list_act(struct tui_list *l, enum tui_action action)
{
    int page = l->page > 1 ? l->page - 1 : 1;
    switch (action) {
    case TUI_DO_everywhere_up:
        l->at--;
        break;
    case TUI_DO_everywhere_down:
        l->at++;
        break;
    case TUI_DO_everywhere_page_up:
        l->at -= page;
        break;
    case TUI_DO_everywhere_page_down:
        l->at += page;
        break;
    case TUI_DO_everywhere_first:
        l->at = 0;
        break;
    case TUI_DO_everywhere_last:
        l->at = l->n - 1;
        break;
    default:
        return false;
    }
    l->at = clamp(l->at, 0, l->n - 1);
    return true;
}

void
tui_list_show(struct tui_list *l, int n, int rows)
{
    l->n = n;
    l->page = rows;
    l->at = clamp(l->at, 0, n - 1);
    if (l->top > l->at)
        l->top = l->at;
    if (rows > 0 && l->top < l->at - rows + 1)
        l->top = l->at - rows + 1;
    l->top = clamp(l->top, 0, n - rows);
}

bool
tui_list_mouse(struct tui_list *l, const struct tui_mouse *m, int row)
{
    enum { LINES = 3 };
    bool up = m->what == TUI_WHEEL_UP;
    if (up || m->what == TUI_WHEEL_DOWN) {
        for (int i = 0; i < LINES; i++)
            tui_list_act(l, up ? TUI_DO_everywhere_up : TUI_DO_everywhere_down);
        return true;
    }
    if (m->what != TUI_CLICK || row < 0 || row >= l->page || l->top + row >= l->n)
        return false;
    l->at = l->top + row;
    return true;
}

bool
tui_list_opens(const struct tui_list *l, const struct tui_mouse *m, int row)
{
    return m->what == TUI_CLICK && row >= 0 && row < l->page && l->top + row < l->n &&
           l->top + row == l->at;
}

void
tui_columns(const struct tui_pane *p, int y, int x, const struct tui_column *column,
            int n, const char *const *text, enum tui_role role)
{
    for (int i = 0; i < n && x < p->w; i++) {
        int w = column[i].width > 0 ? column[i].width : p->w - x;
        int used = tui_width(text[i]);
        int at = column[i].is_right && used < w ? x + w - used : x;
        tui_put_n(p, y, at, role, 0, w, text[i], strlen(text[i]));
        x += w + 1;
    }
}
