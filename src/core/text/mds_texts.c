/* SPDX-License-Identifier: Apache-2.0 */
/* mds_texts.c: see mds_texts.h. */
#include "core/text/mds_texts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"

/* Numbers of a column of encoding bytes: LLM Foundry writes this kind. */
#define OF_BYTES "int64"

static et_status
choose_column(struct et_ctx *cx, struct eti_mds_texts *t, const char *folder,
              const char *field)
{
    static const char *const ids[] = {"tokens", "input_ids"};
    const struct eti_mds *m = &t->mds;
    const struct eti_mds_number *of_bytes = eti_mds_numbers;
    struct et_error why = {0};
    for (int i = 0; i < 2 && eti_mds_column(m, field) < 0; i++)
        field = eti_mds_column(m, ids[i]) >= 0 ? ids[i] : field;
    ET_TRY(eti_mds_need_column(cx, m, folder, field, &t->column));
    const char *encoding = m->column[t->column].encoding;
    t->has_ids = eti_mds_is_array(encoding);
    if (!t->has_ids && strcmp(encoding, "str") != 0)
        return ET_FAIL(cx, ET_ENOTSUP,
                       "%s: column '%s' is %s, and texts are read from str, tokens "
                       "from ndarray and bytes",
                       folder, field, encoding);
    if (!t->has_ids)
        return ET_OK;
    while (strcmp(of_bytes->name, OF_BYTES) != 0)
        of_bytes++;
    et_status s = eti_mds_array_init(m, t->column, of_bytes, &t->array, &why);
    return s == ET_OK ? ET_OK : ET_FAIL(cx, s, "%s: %s", folder, why.message);
}

et_status
eti_mds_texts_open(struct et_ctx *cx, const char *folder, const char *field,
                   struct eti_mds_texts **out)
{
    ET_TRY(et_alloc(cx, sizeof **out, (void **)out));
    (*out)->file.file.fd = -1;
    et_status s = eti_mds_read(cx, folder, &(*out)->mds);
    if (s == ET_OK)
        s = choose_column(cx, *out, folder, field);
    if (s != ET_OK)
        eti_mds_texts_close(cx, out);
    return s;
}

void
eti_mds_texts_close(struct et_ctx *cx, struct eti_mds_texts **texts)
{
    struct eti_mds_texts *t = *texts;
    *texts = NULL;
    if (!t)
        return;
    eti_mds_texts_end(t);
    eti_mds_free(cx, &t->mds);
    et_free(cx, t);
}

et_status
eti_mds_texts_begin(struct et_ctx *cx, struct eti_mds_texts *t, int64_t i,
                    const char *path)
{
    struct et_error why = {0};
    struct eti_mds_file *f = &t->file;
    snprintf(f->file.path, sizeof f->file.path, "%s", path);
    ET_TRY(eti_file_open(cx, path, &f->file.fd, &f->file.size));
    t->at = 0;
    et_status s = eti_mds_begin(f, t->mds.shard[i].samples, &why);
    return s == ET_OK ? ET_OK : ET_FAIL(cx, s, "%s: %s", path, why.message);
}

void
eti_mds_texts_end(struct eti_mds_texts *t)
{
    eti_mds_end(&t->file);
    if (t->file.file.fd >= 0)
        close(t->file.file.fd);
    t->file.file.fd = -1;
}

/* The bytes of a text, as a record. */
static et_status
put_text(struct et_ctx *cx, const struct eti_mds_texts *t, struct eti_text_block *out,
         struct et_error *why)
{
    int64_t offset, bytes;
    ET_TRY(eti_mds_place(&t->mds, &t->file, t->at, t->column, &offset, &bytes, why));
    uint32_t n = (uint32_t)bytes; /* MDS has no more */
    ET_TRY(eti_grow(cx, &out->text, &out->room, out->n + bytes + (int64_t)sizeof n, 1));
    memcpy(out->text + out->n, &n, sizeof n);
    ET_TRY(eti_file_read(&t->file.file, out->text + out->n + sizeof n, bytes, offset,
                         why));
    out->n += bytes + (int64_t)sizeof n;
    return ET_OK;
}

/* The numbers of an array as int32; they are read into the end of the room for them,
 * and are widened from there. */
static et_status
put_ids(struct et_ctx *cx, const struct eti_mds_texts *t, struct eti_text_block *out,
        struct et_error *why)
{
    const struct eti_mds_number *kind;
    int64_t offset, bytes;
    ET_TRY(
        eti_mds_array_place(&t->array, &t->file, t->at, &kind, &offset, &bytes, why));
    const int64_t n_ids = bytes / kind->width, wide = n_ids * (int64_t)sizeof(int32_t);
    uint32_t n = (uint32_t)wide;
    if (wide > UINT32_MAX)
        return eti_why(why, ET_ENOTSUP,
                       "sample %" PRId64 " has %" PRId64 " tokens, 2^30 or more", t->at,
                       n_ids);
    ET_TRY(eti_grow(cx, &out->text, &out->room,
                    out->n + (int64_t)sizeof n + wide + bytes, 1));
    char *to = out->text + out->n + sizeof n;
    memcpy(out->text + out->n, &n, sizeof n);
    ET_TRY(eti_file_read(&t->file.file, to + wide, bytes, offset, why));
    for (int64_t i = 0; i < n_ids; i++) { /* records need not be aligned */
        int32_t id;
        if (eti_mds_widen(kind, (uint8_t *)to + wide + i * kind->width, 1, INT32_MAX,
                          &id) >= 0)
            return eti_why(why, ET_EFORMAT,
                           "number %" PRId64 " of sample %" PRId64 " is no token", i,
                           t->at);
        memcpy(to + i * (int64_t)sizeof id, &id, sizeof id);
    }
    out->n += (int64_t)sizeof n + wide;
    return ET_OK;
}

et_status
eti_mds_texts_next(struct et_ctx *cx, struct eti_mds_texts *t, int64_t most,
                   struct eti_text_block *out, bool *ended)
{
    struct et_error why = {0};
    out->n = 0;
    out->line = t->at;
    out->kind = t->has_ids ? ETI_BLOCK_IDS : ETI_BLOCK_RECORDS;
    for (; t->at < t->file.n && out->n < most; t->at++) {
        et_status s =
            t->has_ids ? put_ids(cx, t, out, &why) : put_text(cx, t, out, &why);
        if (s != ET_OK && why.message[0])
            return ET_FAIL(cx, s, "%s: %s", t->file.file.path, why.message);
        ET_TRY(s);
    }
    *ended = t->at == t->file.n;
    return ET_OK;
}
