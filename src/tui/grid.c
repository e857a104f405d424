/* SPDX-License-Identifier: Apache-2.0 */
/* grid.c: see grid.h. */
#include "config.h"

#include <stdarg.h>
#include <string.h>

#include "core/base/utf8.h"
#include "etude/diagnostic.h"
#include "tui/glyphs.h"
#include "tui/grid.h"

enum { TEXT_MAX = ET_VISIBLE_MAX + 4 };

/* ---- which characters ---- */

struct range {
    uint32_t from, to;
};

/* Of width two (East Asian Width W and F) or none (marks that combine, joiners,
 * variation selectors, private use), and what a terminal may draw as a picture. From
 * Unicode 15's EastAsianWidth.txt and UnicodeData.txt, joined where unassigned code
 * points lie between. */
static const struct range not_narrow[] = {
    {0x0000, 0x001f},    {0x007f, 0x009f},   {0x00ad, 0x00ad},   {0x0300, 0x036f},
    {0x0483, 0x0489},    {0x0591, 0x05bd},   {0x05bf, 0x05c7},   {0x0600, 0x0605},
    {0x0610, 0x061c},    {0x064b, 0x065f},   {0x0670, 0x0670},   {0x06d6, 0x06ed},
    {0x070f, 0x0711},    {0x0730, 0x074a},   {0x07a6, 0x07b0},   {0x07eb, 0x07f3},
    {0x0816, 0x082d},    {0x0859, 0x085b},   {0x0890, 0x089f},   {0x08ca, 0x0903},
    {0x093a, 0x094f},    {0x0951, 0x0957},   {0x0962, 0x0963},   {0x0981, 0x0983},
    {0x09bc, 0x0e00},    {0x0e31, 0x0e31},   {0x0e34, 0x0e3a},   {0x0e47, 0x0e4e},
    {0x0eb1, 0x0ebc},    {0x0ec8, 0x0ece},   {0x0f18, 0x0f19},   {0x0f35, 0x0f3f},
    {0x0f71, 0x0fc6},    {0x102b, 0x109d},   {0x1100, 0x11ff},   {0x135d, 0x135f},
    {0x1712, 0x17dd},    {0x180b, 0x180f},   {0x18a9, 0x18a9},   {0x1920, 0x193b},
    {0x1a17, 0x1cff},    {0x1dc0, 0x1dff},   {0x200b, 0x200f},   {0x2028, 0x202f},
    {0x205f, 0x206f},    {0x20d0, 0x20f0},   {0x231a, 0x231b},   {0x2329, 0x232a},
    {0x23e9, 0x23f3},    {0x25fd, 0x25fe},   {0x2614, 0x2615},   {0x2648, 0x2653},
    {0x267f, 0x267f},    {0x2693, 0x2693},   {0x26a1, 0x26a1},   {0x26aa, 0x26ab},
    {0x26bd, 0x26be},    {0x26c4, 0x26c5},   {0x26ce, 0x26ce},   {0x26d4, 0x26d4},
    {0x26ea, 0x26ea},    {0x26f2, 0x26f5},   {0x26fa, 0x26fd},   {0x2705, 0x2705},
    {0x270a, 0x270b},    {0x2728, 0x2728},   {0x274c, 0x274e},   {0x2753, 0x2757},
    {0x2795, 0x2797},    {0x27b0, 0x27bf},   {0x2b1b, 0x2b1c},   {0x2b50, 0x2b55},
    {0x2cef, 0x2cf1},    {0x2d7f, 0x2d7f},   {0x2de0, 0x2dff},   {0x2e80, 0x303e},
    {0x3041, 0xa4cf},    {0xa66f, 0xa67d},   {0xa69e, 0xa69f},   {0xa6f0, 0xa6f1},
    {0xa802, 0xabff},    {0xac00, 0xd7ff},   {0xd800, 0xfaff},   {0xfb1e, 0xfb1e},
    {0xfe00, 0xfe6f},    {0xfeff, 0xff60},   {0xffe0, 0xfffb},   {0x101fd, 0x101fd},
    {0x102e0, 0x102e0},  {0x10376, 0x1037a}, {0x10a01, 0x10a3f}, {0x10ae5, 0x10ae6},
    {0x11000, 0x11fff},  {0x13430, 0x13455}, {0x16af0, 0x1bfff}, {0x1cf00, 0x1cf46},
    {0x1d165, 0x1d244},  {0x1da00, 0x1daaf}, {0x1e000, 0x1e02a}, {0x1e130, 0x1e94a},
    {0x1f000, 0x10ffff},
};

bool
tui_is_narrow(uint32_t ch)
{
    int low = 0, high = (int)(sizeof not_narrow / sizeof *not_narrow) - 1;
    while (low <= high) {
        int middle = (low + high) / 2;
        if (ch > not_narrow[middle].to)
            low = middle + 1;
        else if (ch < not_narrow[middle].from)
            high = middle - 1;
        else
            return false;
    }
    return ch <= 0x10ffff;
}

int
tui_utf8(uint32_t ch, char *buf)
{
    int n = ch < 0x80 ? 1 : ch < 0x800 ? 2 : ch < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (int i = n - 1; i > 0; i--, ch >>= 6)
        buf[i] = (char)(0x80 | (ch & 0x3f));
    buf[0] = (char)(lead[n > 1 ? n : 0] | ch);
    buf[n] = '\0';
    return n;
}

/* ---- grids ---- */

et_status
tui_grid_init(struct tui_grid *g, struct et_ctx *cx, const struct tui_glyphs *glyphs,
              int rows, int cols)
{
    void *block;
    *g = (struct tui_grid){
        .cx = cx,
        .rows = rows > 0 ? rows : 1,
        .cols = cols > 0 ? cols : 1,
        .glyphs = glyphs,
    };
    ET_TRY(et_alloc(cx, (size_t)g->rows * (size_t)g->cols * sizeof *g->cell, &block));
    g->cell = block;
    tui_grid_clear(g);
    return ET_OK;
}

void
tui_grid_release(struct tui_grid *g)
{
    if (g->cell)
        et_free(g->cx, g->cell);
    g->cell = NULL;
}

void
tui_grid_clear(struct tui_grid *g)
{
    struct tui_pane all = tui_pane_of(g);
    g->cursor_y = g->cursor_x = -1;
    tui_blank(&all);
}

void
tui_grid_copy(struct tui_grid *to, const struct tui_grid *from)
{
    memcpy(to->cell, from->cell,
           (size_t)from->rows * (size_t)from->cols * sizeof *from->cell);
    to->cursor_y = from->cursor_y;
    to->cursor_x = from->cursor_x;
}

void
tui_grid_print(const struct tui_grid *g, FILE *out)
{
    char buf[5];
    for (int y = 0; y < g->rows; y++) {
        const struct tui_cell *row = g->cell + (size_t)y * (size_t)g->cols;
        int n = g->cols;
        while (n > 0 && row[n - 1].ch == ' ')
            n--;
        for (int x = 0; x < n; x++)
            fwrite(buf, 1, (size_t)tui_utf8(row[x].ch, buf), out);
        putc('\n', out);
    }
}

/* What a cell looks like beside its character, for comparing. A blank shows nothing of
 * its role unless it has a ground or an attribute. */
static int
look_of(const struct tui_cell *c)
{
    return c->role | c->ground << 8 | c->attr << 16;
}

static bool
shows_nothing(const struct tui_cell *c)
{
    return c->ch == ' ' && c->attr == 0;
}

static void
print_run(FILE *out, const struct tui_cell *c, int from, int to)
{
    static const char *const grounds[] = {"", "@select", "@match", "@popup", "@chip"};
    static const char *const attrs[] = {"+bold", "+reverse", "+faint", "+underline"};
    fprintf(out, "  %s%s", tui_role_word((enum tui_role)c->role), grounds[c->ground]);
    for (int i = 0; i < 4; i++)
        if (c->attr & 1 << i)
            fputs(attrs[i], out);
    fprintf(out, to > from ? " %d-%d" : " %d", from + 1, to + 1);
}

/* The run of one look that begins at FROM: its last cell that shows something, or the
 * last of its ground. */
static int
run_end(const struct tui_cell *row, int cols, int from)
{
    int last = from;
    for (int x = from + 1; x < cols && row[x].ground == row[from].ground; x++) {
        if (shows_nothing(&row[x]))
            last = row[x].ground != TUI_ON_OWN ? x : last;
        else if (look_of(&row[x]) == look_of(&row[from]))
            last = x;
        else
            break;
    }
    return last;
}

void
tui_grid_print_roles(const struct tui_grid *g, FILE *out)
{
    for (int y = 0; y < g->rows; y++) {
        const struct tui_cell *row = g->cell + (size_t)y * (size_t)g->cols;
        bool any = false;
        for (int x = 0; x < g->cols; x++) {
            bool is_plain = row[x].ground == TUI_ON_OWN &&
                            (shows_nothing(&row[x]) || look_of(&row[x]) == TUI_TEXT);
            if (is_plain)
                continue;
            int last = run_end(row, g->cols, x);
            if (!any)
                fprintf(out, "%2d", y + 1);
            any = true;
            print_run(out, &row[x], x, last);
            x = last;
        }
        if (any)
            putc('\n', out);
    }
}

/* ---- panes ---- */

struct tui_pane
tui_pane_of(struct tui_grid *g)
{
    return (struct tui_pane){.grid = g, .h = g->rows, .w = g->cols};
}

static int
clip(int v, int most)
{
    return v < 0 ? 0 : v > most ? most : v;
}

struct tui_pane
tui_pane_part(const struct tui_pane *p, int y, int x, int h, int w)
{
    struct tui_pane part = {.grid = p->grid};
    int top = clip(y, p->h), left = clip(x, p->w);
    part.y = p->y + top;
    part.x = p->x + left;
    part.h = clip(y + h, p->h) - top;
    part.w = clip(x + w, p->w) - left;
    part.h = part.h < 0 ? 0 : part.h;
    part.w = part.w < 0 ? 0 : part.w;
    return part;
}

static struct tui_cell *
cell_at(const struct tui_pane *p, int y, int x)
{
    if (y < 0 || y >= p->h || x < 0 || x >= p->w)
        return NULL;
    return p->grid->cell + (size_t)(p->y + y) * (size_t)p->grid->cols + p->x + x;
}

void
tui_put_ch(const struct tui_pane *p, int y, int x, uint32_t ch, enum tui_role role,
           int attr)
{
    struct tui_cell *c = cell_at(p, y, x);
    if (!c)
        return;
    if (!tui_is_narrow(ch) || (ch >= 0x80 && p->grid->glyphs->is_ascii))
        ch = '?';
    c->ch = ch;
    c->role = (uint8_t)role;
    c->attr = (uint8_t)attr;
    c->upper = c->lower = 0;
}

void
tui_put_pixels(const struct tui_pane *p, int y, int x, uint32_t upper, uint32_t lower)
{
    struct tui_cell *c = cell_at(p, y, x);
    if (!c || p->grid->glyphs->is_ascii || p->grid->is_mono)
        return;
    c->upper = TUI_RGB | upper;
    c->lower = TUI_RGB | lower;
}

int
tui_put_n(const struct tui_pane *p, int y, int x, enum tui_role role, int attr,
          int most, const char *text, size_t n)
{
    char visible[TEXT_MAX];
    int columns = 0;
    et_visible(visible, sizeof visible, text, n);
    size_t bytes = strlen(visible);
    for (size_t at = 0; at < bytes && columns < most; columns++) {
        uint32_t ch = '?';
        int length = eti_utf8_decode(visible + at, bytes - at, &ch);
        tui_put_ch(p, y, x + columns, ch, role, attr);
        at += length > 0 ? (size_t)length : 1;
    }
    return columns;
}

int
tui_put(const struct tui_pane *p, int y, int x, enum tui_role role, const char *text)
{
    return tui_put_n(p, y, x, role, 0, TEXT_MAX, text, strlen(text));
}

int
tui_putf(const struct tui_pane *p, int y, int x, enum tui_role role, const char *fmt,
         ...)
{
    char text[TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return tui_put(p, y, x, role, text);
}

int
tui_width(const char *text)
{
    struct tui_pane none = {.h = 0};
    return tui_put(&none, 0, 0, TUI_TEXT, text);
}

/* Bytes of TEXT that fit into W columns: to the last blank, if there is more. */
static size_t
first_line(const char *text, int w)
{
    size_t n = 0, blank = 0;
    for (int columns = 0; text[n]; n++) {
        bool begins = ((unsigned char)text[n] & 0xc0) != 0x80;
        if (begins && columns++ == w)
            return text[n] == ' ' || blank == 0 ? n : blank;
        if (text[n] == ' ')
            blank = n;
    }
    return n;
}

int
tui_put_wrapped(const struct tui_pane *p, int y, int x, int w, enum tui_role role,
                const char *text)
{
    int n = 0;
    for (; *text && w > 0 && (!p || y + n < p->h); n++) {
        size_t take = first_line(text, w);
        if (p && y + n + 1 == p->h)
            tui_put_cut(p, y + n, x, x + w, role, text);
        else if (p)
            tui_put_n(p, y + n, x, role, 0, w, text, take);
        text += take;
        text += *text == ' ';
    }
    return n;
}

int
tui_put_end(const struct tui_pane *p, int y, int end, enum tui_role role,
            const char *text)
{
    int x = end - tui_width(text);
    tui_put(p, y, x, role, text);
    return x;
}

void
tui_put_right(const struct tui_pane *p, int y, int from, int end, enum tui_role role,
              const char *text)
{
    if (end - tui_width(text) >= from)
        tui_put_end(p, y, end, role, text);
}

size_t
tui_bytes_of(const char *text, int n)
{
    size_t at = 0;
    while (text[at] && (n > 0 || ((unsigned char)text[at] & 0xc0) == 0x80)) {
        n -= ((unsigned char)text[at] & 0xc0) != 0x80;
        if (n < 0)
            break;
        at++;
    }
    return at;
}

int
tui_put_cut(const struct tui_pane *p, int y, int x, int end, enum tui_role role,
            const char *text)
{
    const bool is_ascii = p->grid->glyphs->is_ascii;
    const int room = end - x, sign = is_ascii ? 2 : 1;
    if (tui_width(text) <= room)
        return tui_put(p, y, x, role, text);
    if (room <= sign)
        return 0;
    tui_put_n(p, y, x, role, 0, room - sign, text, strlen(text));
    for (int i = 0; i < sign; i++)
        tui_put_ch(p, y, end - sign + i, is_ascii ? '.' : 0x2026, role, 0);
    return room;
}

int
tui_put_ends(const struct tui_pane *p, int y, int x, int end, enum tui_role role,
             const char *text)
{
    const bool is_ascii = p->grid->glyphs->is_ascii;
    const int room = end - x, sign = is_ascii ? 2 : 1, width = tui_width(text);
    const int head = (room - sign) / 3, tail = room - sign - head;
    if (width <= room)
        return tui_put(p, y, x, role, text);
    if (room <= sign)
        return 0;
    tui_put_n(p, y, x, role, 0, head, text, strlen(text));
    for (int i = 0; i < sign; i++)
        tui_put_ch(p, y, x + head + i, is_ascii ? '.' : 0x2026, role, 0);
    tui_put(p, y, end - tail, role, text + tui_bytes_of(text, width - tail));
    return room;
}

void
tui_fill(const struct tui_pane *p, int y, int x, int n, uint32_t ch, enum tui_role role)
{
    for (int i = 0; i < n; i++)
        tui_put_ch(p, y, x + i, ch, role, 0);
}

void
tui_blank(const struct tui_pane *p)
{
    for (int y = 0; y < p->h; y++)
        tui_fill(p, y, 0, p->w, ' ', TUI_TEXT);
    tui_lay(p, TUI_ON_OWN);
}

void
tui_mark(const struct tui_pane *p, int y, int x, int n, int attr)
{
    for (int i = 0; i < n; i++) {
        struct tui_cell *c = cell_at(p, y, x + i);
        if (c)
            c->attr |= (uint8_t)attr;
    }
}

void
tui_tint(const struct tui_pane *p, enum tui_role role)
{
    for (int y = 0; y < p->h; y++)
        for (int x = 0; x < p->w; x++) {
            struct tui_cell *c = cell_at(p, y, x);
            c->role = (uint8_t)role;
            c->upper = c->lower = 0;
        }
}

void
tui_ground(const struct tui_pane *p, int y, int x, int n, enum tui_ground ground)
{
    for (int i = 0; i < n; i++) {
        struct tui_cell *c = cell_at(p, y, x + i);
        if (c)
            c->ground = (uint8_t)ground;
    }
}

void
tui_lay(const struct tui_pane *p, enum tui_ground ground)
{
    for (int y = 0; y < p->h; y++)
        tui_ground(p, y, 0, p->w, ground);
}

void
tui_cursor(const struct tui_pane *p, int y, int x)
{
    if (!cell_at(p, y, x))
        return;
    p->grid->cursor_y = p->y + y;
    p->grid->cursor_x = p->x + x;
}
