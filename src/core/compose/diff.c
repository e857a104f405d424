/* SPDX-License-Identifier: Apache-2.0 */
/* diff.c: see diff.h.
 *
 * Lines that both texts begin or end with are the same ones; between them the longest
 * common subsequence decides (R. Wagner and M. Fischer, 1974), in n_old * n_now bytes.
 * Where that would be too much, all of the old lines go and all of the new ones
 * come. */
#include "config.h"

#include "core/compose/diff.h"

#include <string.h>

enum { MOST_CELLS = 1 << 22 };

struct lines {
    const char **text;
    size_t *size;
    int n;
};

static et_status
split(struct et_ctx *cx, const char *text, size_t n, struct lines *out)
{
    void *block;
    size_t lines = 1;
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    ET_TRY(et_alloc(cx, lines * sizeof *out->text, &block));
    out->text = block;
    ET_TRY(et_alloc(cx, lines * sizeof *out->size, &block));
    out->size = block;
    for (size_t at = 0; at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t size = end ? (size_t)(end - text) - at : n - at;
        out->text[out->n] = text + at;
        out->size[out->n++] = size;
        at += size + 1;
    }
    return ET_OK;
}

static bool
same(const struct lines *a, int i, const struct lines *b, int j)
{
    return a->size[i] == b->size[j] && memcmp(a->text[i], b->text[j], a->size[i]) == 0;
}

static void
add(struct eti_diff *d, const struct lines *from, char sign, int i)
{
    d->line[d->n++] = (struct eti_diff_line){
        .sign = sign,
        .line = i + 1,
        .text = from->text[i],
        .n = from->size[i],
    };
}

/* LENGTH [(n + 1) * (m + 1)]: of the longest common subsequence of what follows. */
static void
fill(const struct lines *a, const struct lines *b, int from, int n, int m,
     uint16_t *length)
{
    for (int i = n - 1; i >= 0; i--)
        for (int j = m - 1; j >= 0; j--) {
            uint16_t down = length[(i + 1) * (m + 1) + j];
            uint16_t right = length[i * (m + 1) + j + 1];
            length[i * (m + 1) + j] =
                same(a, from + i, b, from + j)
                    ? (uint16_t)(length[(i + 1) * (m + 1) + j + 1] + 1)
                : down > right ? down
                               : right;
        }
}

/* The N old and M new lines from FROM on that are not all the same. */
static et_status
compare(struct eti_diff *d, const struct lines *a, const struct lines *b, int from,
        int n, int m)
{
    uint16_t *length = NULL;
    if ((int64_t)(n + 1) * (m + 1) <= MOST_CELLS && n < UINT16_MAX) {
        void *block;
        ET_TRY(et_alloc(d->cx, sizeof *length * (size_t)(n + 1) * (size_t)(m + 1),
                        &block));
        length = block;
        fill(a, b, from, n, m, length);
    }
    int i = 0, j = 0;
    while (i < n || j < m) {
        if (length && i < n && j < m && same(a, from + i, b, from + j)) {
            add(d, b, ' ', from + j);
            i++, j++;
        } else if (i < n &&
                   (j == m || !length ||
                    length[(i + 1) * (m + 1) + j] >= length[i * (m + 1) + j + 1])) {
            add(d, a, '-', from + i++);
        } else {
            add(d, b, '+', from + j++);
        }
    }
    et_free(d->cx, length);
    return ET_OK;
}

/* Of lines in both texts those alone that stand right before or behind others. */
static void
leave_out_same(struct eti_diff *d)
{
    int kept = 0;
    for (int i = 0; i < d->n; i++) {
        bool before = i + 1 < d->n && d->line[i + 1].sign != ' ';
        bool behind = i > 0 && d->line[i - 1].sign != ' ';
        if (d->line[i].sign == ' ' && !before && !behind)
            d->line[i].line = 0; /* it goes, below */
    }
    for (int i = 0; i < d->n; i++)
        if (d->line[i].line > 0)
            d->line[kept++] = d->line[i];
    d->n = kept;
}

et_status
eti_diff_new(struct et_ctx *cx, const char *old, size_t n_old, const char *now,
             size_t n_now, struct eti_diff *out)
{
    struct lines a = {0}, b = {0};
    *out = (struct eti_diff){.cx = cx};
    et_status status = split(cx, old, n_old, &a);
    if (status == ET_OK)
        status = split(cx, now, n_now, &b);
    if (status == ET_OK) {
        void *block;
        status = et_alloc(cx, sizeof *out->line * (size_t)(a.n + b.n + 1), &block);
        out->line = status == ET_OK ? block : NULL;
    }
    if (status == ET_OK) {
        int head = 0, tail = 0, least = a.n < b.n ? a.n : b.n;
        while (head < least && same(&a, head, &b, head))
            head++;
        while (tail < least - head && same(&a, a.n - 1 - tail, &b, b.n - 1 - tail))
            tail++;
        bool differ = head < a.n - tail || head < b.n - tail;
        if (head > 0 && differ)
            add(out, &b, ' ', head - 1);
        status = compare(out, &a, &b, head, a.n - head - tail, b.n - head - tail);
        if (status == ET_OK && tail > 0 && differ)
            add(out, &b, ' ', b.n - tail);
        leave_out_same(out);
    }
    et_free(cx, a.text);
    et_free(cx, a.size);
    et_free(cx, b.text);
    et_free(cx, b.size);
    return status;
}

void
eti_diff_release(struct eti_diff *diff)
{
    et_free(diff->cx, diff->line);
    diff->line = NULL;
    diff->n = 0;
}
