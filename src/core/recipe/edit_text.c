/* SPDX-License-Identifier: Apache-2.0 */
/* edit_text.c: the bytes that an edit takes away and those that it puts there. See
 * edit.h; where a path leads, and whether the result means what it should, is
 * edit.c's. */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/recipe/edit_impl.h"

et_status
eti_edit_unsupported(const struct eti_editor *e)
{
    return ET_FAIL(e->cx, ET_ENOTSUP,
                   "%s is written in a way that only an editor can change", e->name);
}

/* ---- places in the text ---- */

/* The bytes between FROM and the end of its line. */
static size_t
rest_of_line(const struct eti_editor *e, size_t from)
{
    const char *end = memchr(e->text + from, '\n', e->n - from);
    return end ? (size_t)(end - e->text) - from : e->n - from;
}

static bool
is_line_start(const struct eti_editor *e, size_t at)
{
    return at == 0 || e->text[at - 1] == '\n';
}

static size_t
line_of(const struct eti_editor *e, size_t at)
{
    while (!is_line_start(e, at))
        at--;
    return at;
}

static size_t
next_line(const struct eti_editor *e, size_t at)
{
    at += rest_of_line(e, at);
    return at < e->n ? at + 1 : at;
}

static size_t
skip_blanks(const struct eti_editor *e, size_t at)
{
    while (at < e->n && (e->text[at] == ' ' || e->text[at] == '\t'))
        at++;
    return at;
}

bool
eti_edit_is_flow(const struct eti_editor *e, const struct et_value *v)
{
    return v->start < e->n && (e->text[v->start] == '{' || e->text[v->start] == '[');
}

/* One past the last byte of V: a mapping or list in block style ends with its last
 * value, before the comments that follow it. */
static size_t
end_of(const struct eti_editor *e, const struct et_value *v)
{
    const struct et_value *last = v->first;
    if (!last || eti_edit_is_flow(e, v))
        return v->end;
    while (last->next)
        last = last->next;
    return end_of(e, last);
}

/* The first byte of an entry: its key, or the item. */
static size_t
start_of(const struct et_value *entry)
{
    return entry->key ? entry->key_start : entry->start;
}

/* One past the last byte of an entry in flow style; "key:" ends with its colon. */
static size_t
flow_end(const struct eti_editor *e, const struct et_value *entry)
{
    size_t end = end_of(e, entry), colon = skip_blanks(e, end);
    bool is_empty = entry->key && entry->end <= entry->start;
    return is_empty && colon < e->n && e->text[colon] == ':' ? colon + 1 : end;
}

/* The line after an entry in block style. A text of several lines ends where what
 * follows it begins, behind the blanks of that line. */
static size_t
block_end(const struct eti_editor *e, const struct et_value *entry)
{
    size_t end = end_of(e, entry), line = line_of(e, end);
    bool is_before = line > start_of(entry) && skip_blanks(e, line) >= end;
    return is_before ? line : next_line(e, end);
}

/* The start of the line on which an entry in block style begins; *IS_ALONE: nothing but
 * blanks (in a list: and its dash) stands before it there. */
static size_t
block_start(const struct eti_editor *e, const struct et_value *entry, bool *is_alone)
{
    size_t start = start_of(entry), line = line_of(e, start);
    size_t at = skip_blanks(e, line);
    if (!entry->key && at < start && e->text[at] == '-')
        at = skip_blanks(e, at + 1);
    *is_alone = at == start;
    return line;
}

static bool
is_comment_line(const struct eti_editor *e, size_t line)
{
    size_t at = skip_blanks(e, line);
    return at < e->n && e->text[at] == '#';
}

/* Where the lines of comment right above LINE begin, not above LEAST. */
static size_t
comments_above(const struct eti_editor *e, size_t line, size_t least)
{
    while (line > least) {
        size_t above = line_of(e, line - 1);
        if (above < least || !is_comment_line(e, above))
            break;
        line = above;
    }
    return line;
}

/* Bytes of white space before the keys of block mapping V. */
static int
indent_of(const struct et_value *v)
{
    return v->first && v->first->key_column > 0 ? v->first->key_column - 1 : 0;
}

static struct et_value *
child_at(const struct et_value *v, int index)
{
    struct et_value *c = v->first;
    while (c && index-- > 0)
        c = c->next;
    return c;
}

int
eti_edit_index_of(const struct et_value *parent, const struct et_value *entry)
{
    int i = 0;
    for (const struct et_value *c = parent->first; c && c != entry; c = c->next)
        i++;
    return i;
}

/* Where among N entries the edit wants one. */
int
eti_edit_index(const struct eti_editor *e, int n)
{
    int at = e->what->kind == ETI_EDIT_SET ? -1 : e->what->index;
    return at < 0 || at > n ? n : at;
}

/* ---- comments in what goes ---- */

/* Is the byte AT within a scalar of V? */
static bool
is_in_scalar(const struct et_value *v, size_t at)
{
    if (!v->first)
        return at >= v->start && at < v->end;
    for (const struct et_value *c = v->first; c; c = c->next)
        if (is_in_scalar(c, at))
            return true;
    return false;
}

/* Adds the comments that stand in ENTRY, a line each; returns their number. */
static int
keep_comments(struct eti_editor *e, const struct et_value *entry, int indent)
{
    int n = 0;
    for (size_t at = e->from; at < e->to; at++) {
        bool begins = is_line_start(e, at) || isblank((unsigned char)e->text[at - 1]);
        if (e->text[at] != '#' || !begins || is_in_scalar(entry, at))
            continue;
        size_t length = rest_of_line(e, at);
        eti_text_add(&e->now, "%*s%.*s\n", indent, "", (int)length, e->text + at);
        at += length;
        n++;
    }
    return n;
}

/* ---- new entries ---- */

void
eti_edit_key(const char *path, char key[ETI_PATH_BYTES])
{
    snprintf(key, ETI_PATH_BYTES, "%.*s", (int)strcspn(path, "."), path);
}

bool
eti_edit_is_empty(const struct eti_editor *e)
{
    return e->what->kind == ETI_EDIT_INSERT && e->value->type == ET_VALUE_NULL;
}

/* "a.b" -> "a: {b: VALUE}", as far as PATH goes. */
static void
add_entry(struct eti_editor *e, const char *path)
{
    const char *dot = strchr(path, '.');
    char key[ETI_PATH_BYTES];
    eti_edit_key(path, key);
    eti_text_add_scalar(&e->now, key);
    eti_text_add(&e->now, ":%s", dot || !eti_edit_is_empty(e) ? " " : "");
    if (dot) {
        eti_text_add(&e->now, "{");
        add_entry(e, dot + 1);
        eti_text_add(&e->now, "}");
    } else if (!eti_edit_is_empty(e)) {
        eti_text_add_value(&e->now, e->value);
    }
}

/* The same as lines of a block, INDENT columns in; the last without its end. */
static void
add_block(struct eti_editor *e, const char *path, int indent)
{
    const char *dot = e->what->is_recipe ? strchr(path, '.') : NULL;
    if (!dot && e->what->lines) {
        size_t n = strlen(e->what->lines);
        n -= n > 0 && e->what->lines[n - 1] == '\n';
        eti_text_add(&e->now, "%.*s", (int)n, e->what->lines);
        return;
    }
    eti_text_add(&e->now, "%*s", indent, "");
    if (!dot) {
        add_entry(e, path);
        return;
    }
    char key[ETI_PATH_BYTES];
    eti_edit_key(path, key);
    eti_text_add_scalar(&e->now, key);
    eti_text_add(&e->now, ":\n");
    add_block(e, dot + 1, indent + 2);
}

/* An item of a list of components: `ema` or `ema: {...}`. */
static void
add_item(struct eti_editor *e, const char *path)
{
    char key[ETI_PATH_BYTES];
    eti_edit_key(path, key);
    if (eti_edit_is_empty(e))
        eti_text_add_scalar(&e->now, key);
    else
        add_entry(e, path);
}

/* Puts a line, made by now, at AT, which is where a line begins or the text ends. */
static void
end_line(struct eti_editor *e, size_t at)
{
    e->from = e->to = at;
    if (is_line_start(e, at))
        eti_text_add(&e->now, "\n");
}

static void
begin_line(struct eti_editor *e, size_t at)
{
    if (!is_line_start(e, at))
        eti_text_add(&e->now, "\n");
}

static void
insert_flow(struct eti_editor *e, const struct eti_spot *s, int index)
{
    const struct et_value *v = s->parent, *next = child_at(v, index);
    e->from = e->to = next ? start_of(next) : v->end - 1; /* the bracket */
    eti_text_add(&e->now, !next && v->n ? ", " : "");
    if (v->type == ET_VALUE_LIST)
        add_item(e, s->rest);
    else
        add_entry(e, s->rest);
    eti_text_add(&e->now, next ? ", " : "");
}

/* Where a new entry of V in block style goes: behind the one before it; the first right
 * below the key of V, so that comments stay with what they stand above. */
static size_t
place_in_block(const struct eti_editor *e, const struct et_value *v, int index)
{
    bool is_alone;
    if (index > 0)
        return block_end(e, child_at(v, index - 1));
    if (v->key)
        return next_line(e, v->key_start);
    return v->first ? block_start(e, v->first, &is_alone) : e->n;
}

static void
insert_block(struct eti_editor *e, const struct eti_spot *s, int index)
{
    const struct et_value *v = s->parent;
    size_t at = place_in_block(e, v, index);
    begin_line(e, at);
    if (v->type == ET_VALUE_LIST) {
        size_t line = line_of(e, v->first->start);
        eti_text_add(&e->now, "%*s- ", (int)(skip_blanks(e, line) - line), "");
        add_item(e, s->rest);
    } else {
        add_block(e, s->rest, indent_of(v));
    }
    end_line(e, at);
}

/* V, a mapping's value that is nothing, gets a first entry on the line below. */
static void
insert_below(struct eti_editor *e, const struct et_value *v, const char *path)
{
    size_t line = line_of(e, v->key_start), at = next_line(e, v->key_start);
    begin_line(e, at);
    add_block(e, path, (int)(v->key_start - line) + 2);
    end_line(e, at);
}

/* V becomes the value, or a mapping with what is left of PATH below it. */
void
eti_edit_replace(struct eti_editor *e, const struct et_value *v, const char *path)
{
    bool is_written = v->end > v->start;
    e->from = v->start;
    e->to = end_of(e, v);
    if (!is_written) { /* "key:" and nothing: behind the colon */
        const char *colon = memchr(e->text + v->start, ':', e->n - v->start);
        e->from = e->to = colon ? (size_t)(colon - e->text) + 1 : e->n;
        eti_text_add(&e->now, " ");
    }
    if (!path) {
        eti_text_add_value(&e->now, e->value);
        return;
    }
    eti_text_add(&e->now, "{");
    if (v->type == ET_VALUE_STRING) {
        eti_text_add(&e->now, "name: ");
        eti_text_add_value(&e->now, v);
        eti_text_add(&e->now, ", ");
    }
    add_entry(e, path);
    eti_text_add(&e->now, "}");
}

static bool
is_on_line_of_its_own(const struct eti_editor *e, const struct et_value *v)
{
    bool is_alone = false;
    if (v->key)
        block_start(e, v, &is_alone);
    return is_alone;
}

void
eti_edit_insert(struct eti_editor *e, const struct eti_spot *s)
{
    const struct et_value *v = s->parent;
    bool is_written = v->type != ET_VALUE_NULL || v->end > v->start;
    bool is_open = v->type == ET_VALUE_MAP || v->type == ET_VALUE_LIST;
    /* the index is a place beside the path's end: what is made above it comes last */
    int index = strchr(s->rest, '.') ? v->n : eti_edit_index(e, v->n);
    if (is_open && eti_edit_is_flow(e, v))
        insert_flow(e, s, index);
    else if (is_open || v == e->root)
        insert_block(e, s, index);
    else if (!is_written && e->what->is_recipe && is_on_line_of_its_own(e, v))
        insert_below(e, v, s->rest);
    else
        eti_edit_replace(e, v, s->rest);
}

/* ---- entries that go, or go elsewhere ---- */

static et_status
cut_flow(struct eti_editor *e, const struct eti_spot *s)
{
    const struct et_value *entry = s->entry, *next = entry->next;
    int index = eti_edit_index_of(s->parent, entry);
    e->from = start_of(entry);
    e->to = next ? start_of(next) : flow_end(e, entry);
    if (!next && index > 0)
        e->from = flow_end(e, child_at(s->parent, index - 1));
    return keep_comments(e, entry, 0) == 0 ? ET_OK : eti_edit_unsupported(e);
}

static et_status
cut_block(struct eti_editor *e, const struct eti_spot *s)
{
    const struct et_value *entry = s->entry, *next = entry->next;
    bool is_alone;
    e->from = block_start(e, entry, &is_alone);
    e->to = block_end(e, entry);
    if (is_alone) {
        keep_comments(e, entry, (int)(skip_blanks(e, e->from) - e->from));
        return ET_OK;
    }
    /* "- name: x": what follows takes its place behind the dash. */
    e->from = start_of(entry);
    e->to = next ? start_of(next) : end_of(e, entry);
    return keep_comments(e, entry, 0) == 0 ? ET_OK : eti_edit_unsupported(e);
}

static void
add_bytes(struct eti_editor *e, size_t from, size_t to)
{
    eti_text_add(&e->now, "%.*s", (int)(to - from), e->text + from);
}

/* Exchanges what stands between the separators, which stay. */
static void
move_flow(struct eti_editor *e, const struct eti_spot *s, int i, int j)
{
    int low = i < j ? i : j, high = i < j ? j : i;
    e->from = start_of(child_at(s->parent, low));
    e->to = flow_end(e, child_at(s->parent, high));
    for (int at = low; at <= high; at++) {
        int from = at == j ? i : i < j ? at + 1 : at - 1;
        const struct et_value *old = child_at(s->parent, at);
        const struct et_value *now = child_at(s->parent, from);
        add_bytes(e, start_of(now), flow_end(e, now));
        if (at < high)
            add_bytes(e, flow_end(e, old), start_of(old->next));
    }
}

/* The lines of entry I with the comments right above it. */
static void
piece_of(const struct eti_editor *e, const struct et_value *parent, int i, size_t *from,
         size_t *to)
{
    bool is_alone;
    const struct et_value *entry = child_at(parent, i);
    size_t least =
        i > 0 ? block_end(e, child_at(parent, i - 1)) : place_in_block(e, parent, 0);
    size_t line = block_start(e, entry, &is_alone);
    *from = comments_above(e, line, least < line ? least : line);
    *to = block_end(e, entry);
}

static void
move_block(struct eti_editor *e, const struct eti_spot *s, int i, int j)
{
    size_t from, to, other_from, other_to;
    piece_of(e, s->parent, i, &from, &to);
    piece_of(e, s->parent, j, &other_from, &other_to);
    e->from = j < i ? other_from : from;
    e->to = j < i ? to : other_to;
    if (j < i)
        add_bytes(e, from, to);
    else
        add_bytes(e, to, other_to);
    if (!is_line_start(e, e->to)) /* the text's last line has no end */
        eti_text_add(&e->now, "\n");
    if (j < i)
        add_bytes(e, other_from, from);
    else
        add_bytes(e, from, to);
}

et_status
eti_edit_cut(struct eti_editor *e, const struct eti_spot *s)
{
    return eti_edit_is_flow(e, s->parent) ? cut_flow(e, s) : cut_block(e, s);
}

void
eti_edit_move(struct eti_editor *e, const struct eti_spot *s, int i, int j)
{
    if (eti_edit_is_flow(e, s->parent))
        move_flow(e, s, i, j);
    else
        move_block(e, s, i, j);
}
