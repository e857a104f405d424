/* SPDX-License-Identifier: Apache-2.0 */
/* document_ends.c: see document_ends.h. */
#include "core/data/document_ends.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/data/file.h"

static et_status
check_ends(struct et_ctx *cx, const struct eti_document_ends *e, const char *path,
           int64_t n_tokens)
{
    int64_t before = 0;
    for (int64_t i = 0; i < e->n; before = e->end[i++])
        if (e->end[i] < before || e->end[i] > n_tokens)
            return ET_FAIL(cx, ET_EFORMAT,
                           "%s: document %" PRId64 " ends at token %" PRId64
                           ", which is not between %" PRId64 " and %" PRId64,
                           path, i, e->end[i], before, n_tokens);
    if (before == n_tokens)
        return ET_OK;
    return ET_FAIL(cx, ET_EFORMAT,
                   "%s: the documents end at token %" PRId64 ", of %" PRId64, path,
                   before, n_tokens);
}

/* The file is read as it is: little-endian. */
et_status
eti_document_ends_read(struct et_ctx *cx, const char *path, int64_t n_tokens,
                       struct eti_document_ends *out)
{
    struct eti_file f;
    struct et_error why = {0};
    *out = (struct eti_document_ends){.n = 0};
    ET_TRY(eti_file_open(cx, path, &f.fd, &f.size));
    snprintf(f.path, sizeof f.path, "%s", path);
    out->n = f.size / (int64_t)sizeof *out->end;
    size_t bytes = (size_t)out->n * sizeof *out->end;
    et_status status = et_alloc(cx, bytes + 1, (void **)&out->end);
    if (status == ET_OK) {
        status = eti_file_read(&f, out->end, (int64_t)bytes, 0, &why);
        if (status != ET_OK)
            ET_FAIL(cx, status, "%s", why.message);
    }
    close(f.fd);
    return status == ET_OK ? check_ends(cx, out, path, n_tokens) : status;
}

void
eti_document_ends_free(struct et_ctx *cx, struct eti_document_ends *e)
{
    et_free(cx, e->end);
    *e = (struct eti_document_ends){.n = 0};
}

int64_t
eti_document_of(const struct eti_document_ends *e, int64_t at)
{
    int64_t low = 0, high = e->n;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (e->end[middle] <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

et_status
eti_document_pieces(struct et_ctx *cx, const struct eti_document_ends *e, int64_t most,
                    int64_t tail, struct eti_piece **out, int64_t *n)
{
    int64_t room = 0, begin = 0;
    *out = NULL;
    *n = 0;
    for (int64_t i = 0; i < e->n; begin = e->end[i++])
        for (int64_t at = begin; at < e->end[i] - tail; at += most) {
            int64_t left = e->end[i] - tail - at;
            ET_TRY(eti_grow(cx, out, &room, *n + 1, sizeof **out));
            (*out)[(*n)++] = (struct eti_piece){
                at, (int32_t)(left < most ? left : most), left > most};
        }
    return ET_OK;
}
