/* SPDX-License-Identifier: Apache-2.0 */
/* compose_faults.c: what is wrong with the recipe's text: the line, what may have been
 * meant, and m, which mends it. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "tui/compose.h"
#include "tui/glyphs.h"

enum { NUMBER = 4, TEXT = 7 }; /* columns of a line's number; where its text begins */

/* ---- the text ---- */

/* Line LINE, from 1, of the text; NULL: the text has fewer lines. */
static const char *
line_at(const struct eti_sketch *s, int line, size_t *n)
{
    const char *at = s->text;
    for (int i = 1; i < line && at; i++) {
        at = strchr(at, '\n');
        at += at != NULL;
    }
    *n = at ? strcspn(at, "\n") : 0;
    return at;
}

static void
put_line(struct compose *c, const struct tui_pane *p, int y, int line,
         enum tui_role role)
{
    size_t n;
    const char *at = line_at(c->sketch, line, &n);
    char text[TUI_FIELD];
    if (!at)
        return;
    snprintf(text, sizeof text, "%.*s", (int)n, at);
    tui_putf(p, y, 0, role == TUI_TEXT ? TUI_DIM : role, "%*d", NUMBER, line);
    tui_put_ch(p, y, NUMBER + 1, p->grid->glyphs->down, TUI_RULE, 0);
    if (c->is_editing && c->line == line)
        tui_field_draw(&c->field, p, y, TEXT, p->w - TEXT - 1, NULL);
    else
        compose_put_cut(p, y, TEXT, role, p->w - TEXT - 1, text);
}

/* The columns that the fault's word takes: to the next blank, colon or comma. */
static int
word_width(const char *line, size_t n, int column)
{
    size_t at = column > 0 ? (size_t)column - 1 : 0, w = 0;
    while (at + w < n && !strchr(" :,#{}[]", line[at + w]))
        w++;
    return w > 0 ? (int)w : 1;
}

/* Line LINE in red with a mark below the word, and what is wrong with it. */
static int
put_wrong(struct compose *c, const struct tui_pane *p, int y,
          const struct et_diagnostic *d)
{
    size_t n = 0;
    const char *line = line_at(c->sketch, d->line, &n);
    int x = TEXT + (d->column > 0 ? d->column - 1 : 0);
    put_line(c, p, y++, d->line, TUI_BAD);
    int w = line ? word_width(line, n, d->column) : 1;
    for (int i = 0; i < w && x + i < p->w - 1; i++)
        tui_put_ch(p, y, x + i, p->grid->glyphs->is_ascii ? '^' : 0x203e, TUI_BAD, 0);
    return y + 1;
}

/* Is D about the text that is shown, and not about a file that it includes? */
static bool
is_here(const struct compose *c, const struct et_diagnostic *d)
{
    return d->line > 0 && (!*d->file || strcmp(d->file, c->sketch->name) == 0 ||
                           (c->sketch->path && strcmp(d->file, c->sketch->path) == 0));
}

const char *
compose_wrong_text(const struct compose *c, const struct et_diagnostic *d, char *buf,
                   size_t size)
{
    size_t n = 0, from = d->column > 0 ? (size_t)d->column - 1 : 0;
    const char *line = is_here(c, d) ? line_at(c->sketch, d->line, &n) : NULL;
    buf[0] = '\0';
    if (!line || from >= n)
        return buf;
    snprintf(buf, size, "%.*s", (int)(n - from), line + from);
    char *comment = strstr(buf, " #");
    if (comment)
        *comment = '\0';
    for (n = strlen(buf); n > 0 && buf[n - 1] == ' ';)
        buf[--n] = '\0';
    return buf;
}

void
compose_draw_text(struct compose *c, const struct tui_pane *p)
{
    const struct eti_sketch *s = c->sketch;
    const struct et_diagnostic *d = s->errors.n > 0 ? &s->errors.v[c->fault] : NULL;
    int wrong = d && d->line > 0 ? d->line : 1, y = 1;
    int line = wrong > p->h / 2 ? wrong - p->h / 2 : 1;
    size_t n;
    tui_title(p, 0, "text", true);
    for (; y < p->h && line_at(s, line, &n); line++) {
        if (line == wrong && d)
            y = put_wrong(c, p, y, d);
        else
            put_line(c, p, y++, line, TUI_DIM);
    }
}

/* ---- what may have been meant ---- */

enum mend {
    NO_MEND,
    REPLACE, /* the word OLD of the fault's line by NEW */
    SET,     /* the value at PATH to NEW */
    ASK,     /* for the value of the key NEW below PATH */
    EDIT,    /* the line, by hand */
};
struct mending {
    enum mend what;
    char old[80], new[80], path[ETI_PATH_BYTES];
};

/* The word that stands between BEFORE and the quote that follows it. */
static bool
find_quoted(const char *text, const char *before, char out[80])
{
    const char *at = strstr(text, before);
    if (!at)
        return false;
    at += strlen(before);
    snprintf(out, 80, "%.*s", (int)strcspn(at, "'"), at);
    return true;
}

/* What the sentence of D suggests: the phrases are those of core/recipe/refuse.c. */
static struct mending
find_mending(const struct compose *c, const struct et_diagnostic *d)
{
    struct mending m = {.what = NO_MEND};
    bool has_new = find_quoted(d->message, "did you mean '", m.new) ||
                   find_quoted(d->hint, "did you mean '", m.new);
    if (d->code == ET_E_MISSING && find_quoted(d->message, "key '", m.new)) {
        eti_path_join(m.path, d->path, m.new);
        m.what = ASK;
    } else if (has_new && d->code == ET_E_VALUE) {
        snprintf(m.path, sizeof m.path, "%.*s", (int)sizeof m.path - 1, d->path);
        m.what = SET;
    } else if (has_new && find_quoted(d->message, "'", m.old)) {
        m.what = is_here(c, d) ? REPLACE : NO_MEND;
    } else if (strncmp(d->hint, "write ", 6) == 0 && *d->path) {
        snprintf(m.path, sizeof m.path, "%.*s", (int)sizeof m.path - 1, d->path);
        snprintf(m.new, sizeof m.new, "%.79s", d->hint + 6);
        m.what = SET;
    } else if (is_here(c, d)) {
        m.what = EDIT;
    }
    return m;
}

/* What m does about it. */
static const char *
say_mending(const struct mending *m, char *buf, size_t size)
{
    switch (m->what) {
    case REPLACE:
    case SET:
        snprintf(buf, size, "m mends it: %s", m->new);
        break;
    case ASK:
        snprintf(buf, size, "m asks for %s", m->new);
        break;
    case EDIT:
        snprintf(buf, size, "m edits the line");
        break;
    default:
        buf[0] = '\0';
    }
    return buf;
}

/* Replaces the word in the line, from the fault's column on. */
static et_status
replace(struct compose *c, const struct et_diagnostic *d, const struct mending *m)
{
    size_t n;
    char text[TUI_FIELD], now[2 * TUI_FIELD];
    const char *line = line_at(c->sketch, d->line, &n);
    if (!line || n >= sizeof text)
        return ET_FAIL(c->sketch->cx, ET_ENOTSUP, "line %d is too long to be mended",
                       d->line);
    snprintf(text, sizeof text, "%.*s", (int)n, line);
    size_t from = d->column > 0 && (size_t)d->column <= n ? (size_t)d->column - 1 : 0;
    char *at = strstr(text + from, m->old);
    if (!at)
        at = strstr(text, m->old);
    if (!at)
        return ET_FAIL(c->sketch->cx, ET_ENOTSUP, "'%s' does not stand in line %d",
                       m->old, d->line);
    snprintf(now, sizeof now, "%.*s%s%s", (int)(at - text), text, m->new,
             at + strlen(m->old));
    return eti_sketch_put_line(c->sketch, d->line, now);
}

/* Asks for the value of a key that is missing. */
static void
ask_for(struct compose *c, const char *path)
{
    const struct eti_form_row *r;
    if (!compose_go_to(c, path) || !(r = compose_key_row(c))) {
        tui_say(c->app, TUI_WARN, "! %s has no place in the form: edit the file", path);
        return;
    }
    compose_edit(c);
}

int
compose_first_fault(const struct compose *c)
{
    const struct et_diagnostics *e = &c->sketch->errors;
    if (e->n == 0)
        return 0;
    const struct mending first = find_mending(c, &e->v[0]);
    for (int i = 1; i < e->n && first.what == ASK; i++) {
        const struct mending m = find_mending(c, &e->v[i]);
        if (m.what == REPLACE && strcmp(m.new, first.new) == 0 &&
            strcmp(e->v[i].path, e->v[0].path) == 0)
            return i;
    }
    return 0;
}

bool
compose_mend_fault(struct compose *c)
{
    const struct eti_sketch *s = c->sketch;
    if (s->errors.n == 0)
        return false;
    const struct et_diagnostic d = s->errors.v[c->fault];
    struct mending m = find_mending(c, &d);
    et_status status = ET_OK;
    switch (m.what) {
    case REPLACE:
        status = replace(c, &d, &m);
        break;
    case SET:
        status = eti_sketch_set(c->sketch, m.path, m.new);
        break;
    case ASK:
        ask_for(c, m.path);
        return true;
    case EDIT:
        compose_type_line(c, d.line);
        return true;
    default:
        tui_say(c->app, TUI_TEXT, "%s", *d.hint ? d.hint : "only an editor mends that");
        return true;
    }
    if (status != ET_OK)
        tui_say_error(c->app);
    else
        tui_say(c->app, TUI_TEXT, "mended: %s; u takes that back", m.new);
    return true;
}

/* ---- the list ---- */

void
compose_draw_faults(struct compose *c, const struct tui_pane *p)
{
    const struct et_diagnostics *e = &c->sketch->errors;
    const struct et_diagnostic *d = &e->v[c->fault];
    struct mending m = find_mending(c, d);
    char text[ET_VISIBLE_MAX + 64];
    int y = 1;
    if (e->total > 1)
        snprintf(text, sizeof text, "fault %d of %d", c->fault + 1, e->total);
    else
        snprintf(text, sizeof text, "a fault");
    tui_title(p, 0, text, false);
    if (is_here(c, d) && c->sketch->recipe) { /* else the text is beside it */
        if (d->line > 1)
            put_line(c, p, y++, d->line - 1, TUI_TEXT);
        y = put_wrong(c, p, y, d);
        put_line(c, p, y++, d->line + 1, TUI_TEXT);
    }
    snprintf(text, sizeof text, "%s%s%s", d->path, *d->path ? ": " : "", d->message);
    y += tui_put_wrapped(p, y, 1, p->w - 2, TUI_BAD, text);
    if (*d->hint)
        y += tui_put_wrapped(p, y, 1, p->w - 2, TUI_TEXT, d->hint);
    if (!is_here(c, d) && *d->file)
        compose_put_cut(p, y++, 1, TUI_DIM, p->w - 2, d->file);
    if (*say_mending(&m, text, sizeof text))
        tui_put(p, y++, 1, TUI_KEY, text);
    if (e->n < 2)
        return;
    y++;
    for (int i = 0; i < e->n && y < p->h; i++) {
        if (i == c->fault)
            continue;
        const struct et_diagnostic *o = &e->v[i];
        snprintf(text, sizeof text, "%s%s%s", o->path, *o->path ? ": " : "",
                 o->message);
        tui_putf(p, y, 0, TUI_DIM, "%*d", NUMBER, o->line);
        compose_put_cut(p, y++, NUMBER + 1, TUI_TEXT, p->w - NUMBER - 2, text);
    }
    if (y < p->h)
        tui_put(p, y, 1, TUI_DIM, "x goes to one of them");
}

static void
go_to(struct tui_app *app, void *data, int id, const char *text)
{
    struct compose *c = data;
    (void)app;
    (void)text;
    if (id >= 0 && id < c->sketch->errors.n)
        c->fault = id;
}

void
compose_list_faults(struct compose *c)
{
    const struct et_diagnostics *e = &c->sketch->errors;
    struct tui_item item[ET_DIAGNOSTICS_MAX];
    struct tui_popup *p = &c->app->popup;
    if (e->n == 0) {
        tui_say(c->app, TUI_TEXT, "the recipe has no faults");
        return;
    }
    for (int i = 0; i < e->n; i++) {
        const struct et_diagnostic *d = &e->v[i];
        char line[24] = "", text[ET_VISIBLE_MAX + 64];
        if (d->line > 0)
            snprintf(line, sizeof line, "line %d: ", d->line);
        snprintf(text, sizeof text, "%s%s%s%s", line, d->path, *d->path ? ": " : "",
                 d->message);
        item[i] = (struct tui_item){.id = i};
        snprintf(item[i].text, sizeof item[i].text, "%.79s", text);
    }
    if (tui_popup_menu(p, c->app->cx, "faults: type to search", item, e->n) != ET_OK) {
        tui_say_error(c->app);
        return;
    }
    p->filters = true;
    p->list.at = c->fault;
    p->done = go_to;
    p->data = c;
    if (e->total > e->n)
        tui_popup_line(p, "the first %d of %d", e->n, e->total);
}
