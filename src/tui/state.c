/* SPDX-License-Identifier: Apache-2.0 */
/* state.c: how the state of a run looks: a sign, a word, a colour, and a chip. */
#include "config.h"

#include <ctype.h>
#include <stdio.h>

#include "tui/glyphs.h"
#include "tui/widget.h"

enum tui_role
tui_state_role(enum eti_state_kind kind)
{
    static const enum tui_role roles[ETI_STATE_KINDS] = {
        [ETI_STATE_ACTIVE] = TUI_GOOD, [ETI_STATE_WAITING] = TUI_WARN,
        [ETI_STATE_DONE] = TUI_GOOD,   [ETI_STATE_HALTED] = TUI_WARN,
        [ETI_STATE_BROKEN] = TUI_BAD,  [ETI_STATE_UNKNOWN] = TUI_STALE,
    };
    return roles[kind];
}

uint32_t
tui_state_sign(const struct tui_glyphs *g, enum eti_state_kind kind)
{
    return kind == ETI_STATE_ACTIVE   ? g->live
           : kind == ETI_STATE_BROKEN ? g->failed
                                      : (uint32_t)eti_state_sign(kind);
}

int
tui_put_state(const struct tui_pane *p, int y, int x, const char *state)
{
    enum eti_state_kind kind = eti_state_kind_of(state);
    tui_put_ch(p, y, x, tui_state_sign(p->grid->glyphs, kind), tui_state_role(kind), 0);
    return 2 + tui_put(p, y, x + 2, tui_state_role(kind), state);
}

int
tui_put_chip(const struct tui_pane *p, int y, int x, const char *state)
{
    char text[32];
    enum eti_state_kind kind = eti_state_kind_of(state);
    enum tui_role role = tui_state_role(kind);
    int n = snprintf(text, sizeof text, "   %s ", state);
    for (int i = 0; i < n && text[i]; i++)
        text[i] = (char)toupper((unsigned char)text[i]);
    int w = tui_put_n(p, y, x, role, TUI_BOLD, (int)sizeof text, text,
                      (size_t)(n < (int)sizeof text ? n : (int)sizeof text - 1));
    tui_put_ch(p, y, x + 1, tui_state_sign(p->grid->glyphs, kind), role, TUI_BOLD);
    tui_ground(p, y, x, w, TUI_ON_CHIP);
    return w;
}
