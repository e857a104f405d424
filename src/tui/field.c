/* SPDX-License-Identifier: Apache-2.0 */
/* field.c: a line to type in. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "tui/glyphs.h"
#include "tui/widget.h"

void
tui_field_set(struct tui_field *f, const char *text)
{
    snprintf(f->text, sizeof f->text, "%s", text);
    f->n = f->at = strlen(f->text);
}

/* Bytes of the character that ends at the cursor. */
static size_t
before(const struct tui_field *f)
{
    size_t n = f->at > 0;
    while (n < f->at && ((unsigned char)f->text[f->at - n] & 0xc0) == 0x80)
        n++;
    return n;
}

static size_t
behind(const struct tui_field *f)
{
    size_t n = f->at < f->n;
    while (f->at + n < f->n && ((unsigned char)f->text[f->at + n] & 0xc0) == 0x80)
        n++;
    return n;
}

static void
cut(struct tui_field *f, size_t from, size_t to)
{
    memmove(f->text + from, f->text + to, f->n - to + 1);
    f->n -= to - from;
    f->at = from;
}

static void
insert(struct tui_field *f, int key)
{
    char ch[5];
    size_t n = (size_t)tui_utf8((uint32_t)key, ch);
    if (f->n + n >= sizeof f->text)
        return;
    memmove(f->text + f->at + n, f->text + f->at, f->n - f->at + 1);
    memcpy(f->text + f->at, ch, n);
    f->n += n;
    f->at += n;
}

static size_t
word_start(const struct tui_field *f)
{
    size_t at = f->at;
    while (at > 0 && f->text[at - 1] == ' ')
        at--;
    while (at > 0 && f->text[at - 1] != ' ')
        at--;
    return at;
}

bool
tui_field_key(struct tui_field *f, int key)
{
    switch (key) {
    case TUI_K_LEFT:
        f->at -= before(f);
        return true;
    case TUI_K_RIGHT:
        f->at += behind(f);
        return true;
    case TUI_K_HOME:
    case TUI_CTRL('a'):
        f->at = 0;
        return true;
    case TUI_K_END:
    case TUI_CTRL('e'):
        f->at = f->n;
        return true;
    case TUI_K_BACKSPACE:
        cut(f, f->at - before(f), f->at);
        return true;
    case TUI_K_DELETE:
        cut(f, f->at, f->at + behind(f));
        return true;
    case TUI_CTRL('u'):
        cut(f, 0, f->at);
        return true;
    case TUI_CTRL('k'):
        cut(f, f->at, f->n);
        return true;
    case TUI_CTRL('w'):
        cut(f, word_start(f), f->at);
        return true;
    default:
        if (key < 32 || key >= TUI_K_UP || !tui_is_narrow((uint32_t)key))
            return false;
        insert(f, key);
        return true;
    }
}

/* Columns before the cursor. */
static int
column_of(const struct tui_field *f)
{
    struct tui_field ahead = *f;
    ahead.text[f->at] = '\0';
    return tui_width(ahead.text);
}

int
tui_field_rows(const struct tui_field *f, int w)
{
    return w > 0 ? tui_width(f->text) / w + 1 : 1;
}

void
tui_field_draw_rows(const struct tui_field *f, const struct tui_pane *p, int y,
                    int rows, const char *reason)
{
    const enum tui_role role = reason ? TUI_BAD : TUI_TEXT;
    const int cursor = column_of(f);
    const char *at = f->text;
    for (int row = 0; row < rows && p->w > 0; row++) {
        const size_t n = tui_bytes_of(at, p->w);
        tui_fill(p, y + row, 0, p->w, ' ', role);
        tui_put_n(p, y + row, 0, role, 0, p->w, at, n);
        at += n;
    }
    if (p->w > 0)
        tui_cursor(p, y + cursor / p->w, cursor % p->w);
}

void
tui_field_draw(const struct tui_field *f, const struct tui_pane *p, int y, int x, int w,
               const char *reason)
{
    const struct tui_pane part = tui_pane_part(p, y, x, 1, w);
    const bool is_ascii = p->grid->glyphs->is_ascii;
    const int cursor = column_of(f), all = tui_width(f->text);
    const int room = cursor < all ? w - 1 : w; /* the sign of more hides no cursor */
    const int shift = cursor >= room ? cursor - room + 1 : 0;
    enum tui_role role = reason ? TUI_BAD : TUI_TEXT;
    tui_fill(&part, 0, 0, w, ' ', role);
    tui_put_n(&part, 0, -shift, role, 0, shift + w, f->text, f->n);
    if (shift > 0)
        tui_put_ch(&part, 0, 0, is_ascii ? '<' : 0x2026, TUI_DIM, 0);
    if (all - shift > w)
        tui_put_ch(&part, 0, w - 1, is_ascii ? '>' : 0x2026, TUI_DIM, 0);
    tui_cursor(&part, 0, cursor - shift);
}
