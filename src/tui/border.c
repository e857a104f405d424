/* SPDX-License-Identifier: Apache-2.0 */
/* border.c: see border.h. */
#include "config.h"

#include "tui/border.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- kept ---- */

void
tui_borders_read(struct tui_borders *b, const char *file)
{
    char line[128], name[TUI_BORDER_NAME];
    int by;
    FILE *f = file ? fopen(file, "re") : NULL;
    b->n_moved = 0;
    while (f && b->n_moved < TUI_BORDERS && fgets(line, sizeof line, f))
        if (sscanf(line, "%31s %4d", name, &by) == 2) {
            snprintf(b->moved[b->n_moved].name, TUI_BORDER_NAME, "%s", name);
            b->moved[b->n_moved++].by = by;
        }
    if (f)
        fclose(f);
}

/* The folder of FILE, if its own is there. */
static void
make_folder(const char *file)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", file);
    char *slash = strrchr(folder, '/');
    if (!slash || slash == folder)
        return;
    *slash = '\0';
    mkdir(folder, 0700);
}

bool
tui_borders_write(const struct tui_borders *b, const char *file)
{
    char new[PATH_MAX];
    if (!file ||
        (size_t)snprintf(new, sizeof new, "%s.%ld", file, (long)getpid()) >= sizeof new)
        return false;
    make_folder(file);
    FILE *f = fopen(new, "we");
    if (!f)
        return false;
    for (int i = 0; i < b->n_moved; i++)
        if (b->moved[i].by != 0)
            fprintf(f, "%s %d\n", b->moved[i].name, b->moved[i].by);
    bool failed = ferror(f) != 0;
    failed = fclose(f) != 0 || failed;
    if (!failed && rename(new, file) == 0)
        return true;
    unlink(new);
    return false;
}

/* ---- by name ---- */

/* "compose.left.80": as wide as screens of that size are at least. */
static const char *
full_name(const char *name, enum tui_size size, char buf[TUI_BORDER_NAME])
{
    static const int wide[] = {0, 60, 80, 120, 180};
    snprintf(buf, TUI_BORDER_NAME, "%.24s.%d", name, wide[size]);
    return buf;
}

static int
find(const struct tui_borders *b, const char *name)
{
    int i = 0;
    while (i < b->n_moved && strcmp(b->moved[i].name, name) != 0)
        i++;
    return i;
}

static void
set(struct tui_borders *b, const char *name, int by)
{
    int i = find(b, name);
    if (i == TUI_BORDERS)
        return;
    if (i == b->n_moved)
        b->n_moved++;
    snprintf(b->moved[i].name, TUI_BORDER_NAME, "%s", name);
    b->moved[i].by = by;
}

int
tui_border_moved(const struct tui_borders *b, const char *name, enum tui_size size)
{
    char full[TUI_BORDER_NAME];
    int i = find(b, full_name(name, size, full));
    return i < b->n_moved ? b->moved[i].by : 0;
}

/* ---- on the screen ---- */

void
tui_borders_begin(struct tui_borders *b)
{
    b->n_spots = 0;
}

void
tui_border_stands(struct tui_borders *b, const char *name, enum tui_size size,
                  bool is_level, struct tui_rect at, int by)
{
    char full[TUI_BORDER_NAME];
    if (b->n_spots == TUI_BORDER_SPOTS || at.h < 1 || at.w < 1)
        return;
    full_name(name, size, full);
    if (strcmp(full, b->held) == 0)
        set(b, full, by); /* no further than it can go */
    snprintf(b->spot[b->n_spots].name, TUI_BORDER_NAME, "%s", full);
    b->spot[b->n_spots].at = at;
    b->spot[b->n_spots].is_level = is_level;
    b->spot[b->n_spots++].by = by;
}

int
tui_border_place(struct tui_borders *all, const struct tui_pane *p,
                 const struct tui_border *b)
{
    const enum tui_size size = tui_size_of(p->grid->rows, p->grid->cols);
    int at = b->usual + tui_border_moved(all, b->name, size);
    at = at > b->high ? b->high : at;
    at = at < b->low ? b->low : at;
    if (b->low > b->high)
        at = b->usual;
    const struct tui_rect spot = {
        p->y + (b->is_level ? at : b->from),
        p->x + (b->is_level ? b->from : at),
        b->is_level ? 1 : b->length,
        b->is_level ? b->length : 1,
    };
    tui_border_stands(all, b->name, size, b->is_level, spot, at - b->usual);
    return at;
}

/* ---- the mouse ---- */

static void
take(struct tui_borders *b, const struct tui_mouse *m)
{
    b->held[0] = '\0';
    b->was_moved = false;
    for (int i = 0; i < b->n_spots && !*b->held; i++) {
        const struct tui_rect *r = &b->spot[i].at;
        if (m->y < r->y || m->y >= r->y + r->h || m->x < r->x || m->x >= r->x + r->w)
            continue;
        snprintf(b->held, sizeof b->held, "%s", b->spot[i].name);
        b->is_level = b->spot[i].is_level;
        b->from = b->is_level ? m->y : m->x;
        b->by = b->spot[i].by;
    }
}

bool
tui_borders_mouse(struct tui_borders *b, const struct tui_mouse *m, bool *ended)
{
    *ended = false;
    if (m->what == TUI_CLICK) {
        take(b, m);
        return false; /* it may be meant for what stands there, too */
    }
    if (m->what != TUI_DRAG && m->what != TUI_RELEASE)
        return false;
    int by = b->by + (b->is_level ? m->y : m->x) - b->from;
    /* Where the mouse has not moved since, the border stays where it could go. */
    if (*b->held && by != (b->was_moved ? b->last : b->by)) {
        set(b, b->held, by);
        b->was_moved = true;
        b->last = by;
    }
    if (m->what == TUI_RELEASE) {
        *ended = *b->held && b->was_moved;
        b->held[0] = '\0';
    }
    return true;
}
