/* SPDX-License-Identifier: Apache-2.0 */
/* instruction_rows.c: see instruction_rows.h. What comes before the answer, and all
 * messages but the assistant's, is one part as long as no answer comes between: a
 * tokenizer then makes of it what it makes of the whole prompt. */
#include "core/data/instruction_rows.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "core/base/memory.h"

struct reading {
    struct et_ctx *cx;
    const char *path;
    int64_t line;
    const struct eti_instruction_form *form;
    char *text;
    int64_t n, room;
    struct eti_instruction_part *part;
    int64_t n_parts, part_room;
};

/* ---- templates ---- */

/* The length of "{NAME}", which TEXT begins with; 0: it begins otherwise. */
static size_t
name_at(const char *text)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    size_t n = *text == '{' ? strspn(text + 1, letters) : 0;
    return n > 0 && text[1 + n] == '}' ? n : 0;
}

static bool
is_name(const char *text, size_t n, const char *name)
{
    return strlen(name) == n && memcmp(text, name, n) == 0;
}

static bool
has_name(const char *text, const char *name)
{
    for (; *text; text++)
        if (name_at(text) && is_name(text + 1, name_at(text), name))
            return true;
    return false;
}

et_status
eti_instruction_check(struct et_ctx *cx, const struct eti_instruction_form *form)
{
    if (!has_name(form->text, form->response))
        return ET_FAIL(cx, ET_EINVAL, "template has no {%s}, which is to be learned",
                       form->response);
    if (!has_name(form->message, "content"))
        return ET_FAIL(cx, ET_EINVAL, "message has no {content}");
    return ET_OK;
}

static et_status
append(struct reading *r, const char *text, size_t n, bool is_learned)
{
    struct eti_instruction_part *last = r->n_parts ? &r->part[r->n_parts - 1] : NULL;
    ET_TRY(eti_grow(r->cx, &r->text, &r->room, r->n + (int64_t)n + 1, 1));
    if (!last || last->is_learned != is_learned) {
        ET_TRY(
            eti_grow(r->cx, &r->part, &r->part_room, r->n_parts + 1, sizeof *r->part));
        last = &r->part[r->n_parts++];
        *last = (struct eti_instruction_part){(size_t)r->n, 0, is_learned};
    }
    memcpy(r->text + r->n, text, n);
    r->n += (int64_t)n;
    last->n += n;
    return ET_OK;
}

/* TEXT with OBJECT's members; what stands from ANSWER on is to be learned, unless that
 * is NULL. */
static et_status
fill_in(struct reading *r, const char *text, const json_t *object, const char *answer)
{
    bool is_learned = false;
    while (*text) {
        size_t n = name_at(text);
        if (n == 0) {
            n = 1 + strcspn(text + 1, "{");
            ET_TRY(append(r, text, n, is_learned));
            text += n;
            continue;
        }
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)n, text + 1);
        const json_t *v = json_object_get(object, name);
        if (!json_is_string(v))
            return ET_FAIL(r->cx, ET_EFORMAT, "%s:%" PRId64 ": no text called '%s'",
                           r->path, r->line, name);
        is_learned |= answer && strcmp(name, answer) == 0;
        ET_TRY(append(r, json_string_value(v), json_string_length(v), is_learned));
        text += n + 2;
    }
    return ET_OK;
}

/* ---- lines ---- */

static et_status
fill_messages(struct reading *r, const json_t *messages)
{
    size_t i;
    json_t *one;
    json_array_foreach(messages, i, one)
    {
        const char *role = json_string_value(json_object_get(one, "role"));
        if (!role)
            return ET_FAIL(r->cx, ET_EFORMAT, "%s:%" PRId64 ": message %zu has no role",
                           r->path, r->line, i + 1);
        bool answers = strcmp(role, "assistant") == 0;
        ET_TRY(fill_in(r, r->form->message, one, answers ? "content" : NULL));
    }
    return ET_OK;
}

static et_status
read_line(struct reading *r, const char *line, size_t n, eti_instruction_fn *fn,
          void *data)
{
    json_error_t error;
    json_t *json = json_loadb(line, n, 0, &error);
    if (!json)
        return ET_FAIL(r->cx, ET_EFORMAT, "%s:%" PRId64 ":%d: %s", r->path, r->line,
                       error.column, error.text);
    const json_t *messages = json_object_get(json, "messages");
    r->n = r->n_parts = 0;
    et_status s = append(r, "", 0, false);
    if (s == ET_OK)
        s = json_is_array(messages)
                ? fill_messages(r, messages)
                : fill_in(r, r->form->text, json, r->form->response);
    json_decref(json);
    ET_TRY(s);
    return fn(data, &(struct eti_instruction){r->text, r->part, r->n_parts, r->line});
}

static et_status
read_lines(struct reading *r, const char *text, size_t n, eti_instruction_fn *fn,
           void *data)
{
    for (size_t at = 0, length; at < n; at += length + 1) {
        const char *end = memchr(text + at, '\n', n - at);
        length = end ? (size_t)(end - (text + at)) : n - at;
        r->line++;
        bool is_empty = true;
        for (size_t i = 0; i < length; i++)
            is_empty &= strchr(" \t\r", text[at + i]) != NULL && text[at + i];
        if (!is_empty)
            ET_TRY(read_line(r, text + at, length, fn, data));
    }
    return ET_OK;
}

et_status
eti_instruction_lines(struct et_ctx *cx, const char *path, const char *text, size_t n,
                      const struct eti_instruction_form *form, eti_instruction_fn *fn,
                      void *data)
{
    struct reading r = {.cx = cx, .path = path, .form = form};
    et_status s = read_lines(&r, text, n, fn, data);
    et_free(cx, r.text);
    et_free(cx, r.part);
    return s;
}

et_status
eti_instruction_rows(struct et_ctx *cx, const char *path,
                     const struct eti_instruction_form *form, eti_instruction_fn *fn,
                     void *data)
{
    struct eti_bytes b;
    ET_TRY(eti_file_load(cx, path, ETI_FILE_MAX, &b));
    et_status s = eti_instruction_lines(cx, path, (const char *)b.data, (size_t)b.n,
                                        form, fn, data);
    et_free(cx, b.data);
    return s;
}
