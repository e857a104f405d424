/* SPDX-License-Identifier: Apache-2.0 */
/* kind.h: which kind of terminal there is: its entry in terminfo, and its colours. */
#ifndef TUI_KIND_H
#define TUI_KIND_H

#include <stddef.h>

#include "tui/theme.h"

struct tui_kind {
    char name[64];        /* the entry to open; "": no entry would do */
    char known_dirs[256]; /* TERMINFO_DIRS under which NAME is found; "": any */
    enum tui_depth depth; /* how many colours it has */
    bool can_ask;         /* it understands questions of the form of xterm's */
    char notice[160];     /* what the user should be told once; "": nothing */
};
/* Of TERM and COLORTERM, for the descriptor FD. A TERM that is not known is taken as
 * xterm-256color. WHEN is enum eti_color; without colours DEPTH is TUI_DEPTH_NONE. All
 * colours are sent only through an entry that has them: one of the same terminal, or
 * that of FOLDER (NULL: no folder), which Etude brings along; with neither the depth is
 * 256. */
void tui_kind_find(struct tui_kind *k, int fd, int when, const char *folder);

/* Does the terminal say that its background is light? 1, 0, or -1: it does not say. By
 * COLORFGBG, "text;background" in numbers of the 16 colours. */
int tui_fgbg_is_light(const char *text);
/* The colour 0xrrggbb in an answer to OSC 11: "rgb:1e1e/1e1e/2e2e", each part one to
 * four digits. -1: it is no colour. */
int tui_answer_rgb(const char *text);

#endif
