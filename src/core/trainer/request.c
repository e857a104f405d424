/* SPDX-License-Identifier: Apache-2.0 */
/* request.c: requests as text: of people, and of the log. See control.h. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/trainer/request.h"
#include "core/base/need.h"

static const struct {
    const char *word, *operands;
} ops[] = {
#define ROW(code, number, word, operands) [number] = {word, operands},
    ET_REQUEST_MAP(ROW)
#undef ROW
};

const char *
et_request_name(enum et_request_op op)
{
    return ops[op].word;
}

/* Copies the word at *AT, of at most SIZE - 1 bytes, and goes on behind it and the
 * blanks after it; false for none or one that is too long. */
static bool
take_word(const char **at, char *out, size_t size)
{
    size_t n = strcspn(*at, " ");
    if (n == 0 || n >= size)
        return false;
    memcpy(out, *at, n);
    out[n] = '\0';
    *at += n;
    *at += strspn(*at, " ");
    return true;
}

/* All that is left. */
static bool
take_rest(const char **at, char *out, size_t size)
{
    size_t n = strlen(*at);
    if (n == 0 || n >= size)
        return false;
    memcpy(out, *at, n + 1);
    *at += n;
    return true;
}

static bool
take_operands(const char **at, struct et_request *out)
{
    switch (out->op) {
    case ET_REQUEST_SET:
    case ET_REQUEST_ALGO:
        return take_word(at, out->key, sizeof out->key) &&
               take_rest(at, out->value, sizeof out->value);
    case ET_REQUEST_LOGLEVEL:
        return take_word(at, out->value, sizeof out->value);
    default:
        return true;
    }
}

et_status
et_request_parse(struct et_ctx *cx, const char *text, struct et_request *out)
{
    ETI_NEED(cx, text, out);
    char word[32];
    const char *at = text;
    *out = (struct et_request){.op = ET_REQUEST_COUNT};
    if (!take_word(&at, word, sizeof word))
        return ET_FAIL(cx, ET_EINVAL, "a request begins with a word such as pause");
    for (int i = 0; i < ET_REQUEST_COUNT; i++)
        if (strcmp(word, ops[i].word) == 0)
            out->op = (enum et_request_op)i;
    if (out->op == ET_REQUEST_COUNT)
        return ET_FAIL(cx, ET_EINVAL, "'%s' is not a request", word);
    if (!take_operands(&at, out) || *at)
        return ET_FAIL(cx, ET_EINVAL, "a request is written '%s%s%s', not '%s'", word,
                       *ops[out->op].operands ? " " : "", ops[out->op].operands, text);
    return ET_OK;
}

const char *
et_request_text(const struct et_request *r, char *buf, size_t size)
{
    if (!r || !buf)
        return NULL;
    snprintf(buf, size, "%s%s%s%s%s", ops[r->op].word, *r->key ? " " : "", r->key,
             *r->value ? " " : "", r->value);
    return buf;
}

bool
et_request_replay(const char *record, int64_t step, struct et_request *out)
{
    if (!record)
        return false;
    static const char arrow[] = " -> ", refused[] = "refused: ";
    char text[ET_REQUEST_TEXT], who[ET_REQUEST_WHO];
    const char *end = NULL, *at = record;
    for (const char *p = record; (p = strstr(p, arrow)); p++)
        end = p; /* the last: a value may hold one */
    if (!end || strncmp(end + strlen(arrow), refused, strlen(refused)) == 0 ||
        !take_word(&at, who, sizeof who) || at > end ||
        (size_t)(end - at) >= sizeof text)
        return false;
    snprintf(text, sizeof text, "%.*s", (int)(end - at), at);
    if (et_request_parse(NULL, text, out) != ET_OK ||
        (out->op != ET_REQUEST_SET && out->op != ET_REQUEST_ALGO))
        return false;
    snprintf(out->who, sizeof out->who, "%s", who);
    out->step = step;
    return true;
}

bool
eti_request_same(const struct et_request *a, const struct et_request *b)
{
    return a->op == b->op && strcmp(a->key, b->key) == 0;
}

int
et_request_add(struct et_request *list, int n, const struct et_request *q)
{
    if (!list || !q)
        return 0;
    int kept = 0, at;
    for (int i = 0; i < n; i++)
        if (list[i].step <= q->step || !eti_request_same(&list[i], q))
            list[kept++] = list[i];
    for (at = kept; at > 0 && list[at - 1].step > q->step; at--)
        list[at] = list[at - 1];
    list[at] = *q;
    return kept + 1;
}
