/* SPDX-License-Identifier: Apache-2.0 */
/* mds.c: index.json and shards of MDS; see mds.h.
 *
 * Source: mosaicml-streaming 0.13, streaming/base/format/mds (reader.py, writer.py,
 * encodings.py). */
#include "core/data/mds.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/data/picture_list.h"

enum { INDEX_MOST = 1 << 30, OLDEST = 2 };

/* ---- index.json ---- */

static bool
take_text(const json_t *v, char *out, size_t room)
{
    if (!json_is_string(v) || json_string_length(v) >= room ||
        strlen(json_string_value(v)) != json_string_length(v))
        return false;
    snprintf(out, room, "%s", json_string_value(v));
    return true;
}

static et_status
parse_columns(const json_t *shard, struct eti_mds *out, struct et_error *why)
{
    const json_t *names = json_object_get(shard, "column_names");
    const json_t *encodings = json_object_get(shard, "column_encodings");
    const json_t *sizes = json_object_get(shard, "column_sizes");
    size_t n = json_array_size(names);
    if (n == 0 || n > ETI_MDS_COLUMNS || json_array_size(encodings) != n ||
        json_array_size(sizes) != n)
        return eti_why(why, ET_EFORMAT,
                       "column_names, column_encodings and column_sizes are not lists "
                       "of 1 to %d",
                       ETI_MDS_COLUMNS);
    for (size_t i = 0; i < n; i++) {
        struct eti_mds_column *c = &out->column[i];
        const json_t *size = json_array_get(sizes, i);
        c->size = json_is_null(size) ? -1 : json_integer_value(size);
        if (!take_text(json_array_get(names, i), c->name, sizeof c->name) ||
            !take_text(json_array_get(encodings, i), c->encoding, sizeof c->encoding) ||
            !(json_is_null(size) ||
              (json_is_integer(size) && c->size >= 0 && c->size <= INT32_MAX)))
            return eti_why(why, ET_EFORMAT, "column %zu has no name, encoding or size",
                           i);
        out->n_sized += c->size < 0;
    }
    out->n_columns = (int)n;
    return ET_OK;
}

/* A file of the folder, and nothing above it. */
static bool
is_safe(const char *name)
{
    return name[0] && name[0] != '/' && !strstr(name, "..");
}

static et_status
parse_shard(const json_t *v, struct eti_mds_shard *out, struct et_error *why)
{
    const json_t *raw = json_object_get(v, "raw_data");
    const json_t *zipped = json_object_get(v, "zip_data");
    const json_t *compression = json_object_get(v, "compression");
    const json_t *bytes = json_object_get(raw, "bytes");
    const json_t *samples = json_object_get(v, "samples");
    const json_t *version = json_object_get(v, "version");
    const char *format = json_string_value(json_object_get(v, "format"));
    const char *by = json_string_value(compression);
    if (!format || strcmp(format, "mds") != 0 || json_integer_value(version) != OLDEST)
        return eti_why(why, ET_ENOTSUP, "a shard of format '%.20s', not mds version %d",
                       format ? format : "", OLDEST);
    if (by && strncmp(by, "zstd", 4) != 0)
        return eti_why(why, ET_ENOTSUP,
                       "shards are compressed by %.20s; zstd and none are read", by);
    out->bytes = json_integer_value(bytes);
    out->samples = json_integer_value(samples);
    out->zipped[0] = 0;
    bool good =
        take_text(json_object_get(raw, "basename"), out->raw, sizeof out->raw) &&
        is_safe(out->raw) && out->bytes > 0 && out->samples >= 0 &&
        out->samples <= UINT32_MAX;
    if (good && json_is_object(zipped))
        good = take_text(json_object_get(zipped, "basename"), out->zipped,
                         sizeof out->zipped) &&
               is_safe(out->zipped);
    return good ? ET_OK
                : eti_why(why, ET_EFORMAT,
                          "a shard without samples, or names and sizes of its files");
}

static bool
has_same_columns(const struct eti_mds *a, const struct eti_mds *b)
{
    if (a->n_columns != b->n_columns)
        return false;
    for (int i = 0; i < a->n_columns; i++)
        if (strcmp(a->column[i].name, b->column[i].name) != 0 ||
            strcmp(a->column[i].encoding, b->column[i].encoding) != 0 ||
            a->column[i].size != b->column[i].size)
            return false;
    return true;
}

static et_status
parse_shards(struct et_ctx *cx, const json_t *shards, struct eti_mds *out,
             struct et_error *why)
{
    size_t i;
    const json_t *v;
    if (json_array_size(shards) == 0)
        return eti_why(why, ET_EFORMAT, "it has no shards");
    json_array_foreach((json_t *)shards, i, v)
    {
        struct eti_mds own = {.n_columns = 0};
        et_status status = parse_columns(v, i ? &own : out, why);
        if (status == ET_OK && i && !has_same_columns(out, &own))
            status = eti_why(why, ET_EFORMAT, "its columns are not those of shard 0");
        if (status == ET_OK)
            status = eti_grow(cx, &out->shard, &out->room, (int64_t)i + 1,
                              sizeof *out->shard);
        if (status == ET_OK)
            status = parse_shard(v, &out->shard[i], why);
        if (status != ET_OK) {
            char message[sizeof why->message];
            snprintf(message, sizeof message, "%s", why->message);
            return eti_why(why, status, "shard %zu: %.900s", i, message);
        }
        out->n_shards++;
    }
    return ET_OK;
}

et_status
eti_mds_parse(struct et_ctx *cx, const char *text, int64_t n, struct eti_mds *out,
              struct et_error *why)
{
    json_error_t error;
    *out = (struct eti_mds){.n_columns = 0};
    json_t *json = json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES, &error);
    if (!json)
        return eti_why(why, ET_EFORMAT, "line %d: %.100s", error.line, error.text);
    et_status status = parse_shards(cx, json_object_get(json, "shards"), out, why);
    json_decref(json);
    return status;
}

et_status
eti_mds_read(struct et_ctx *cx, const char *folder, struct eti_mds *out)
{
    char path[ETI_PATH_MAX];
    struct et_error why = {0};
    struct eti_bytes b;
    *out = (struct eti_mds){.n_columns = 0};
    ET_TRY(eti_file_path(cx, path, folder, "index.json"));
    ET_TRY(eti_file_load(cx, path, INDEX_MOST, &b));
    et_status status = eti_mds_parse(cx, (const char *)b.data, b.n, out, &why);
    et_free(cx, b.data);
    return status == ET_OK ? ET_OK : ET_FAIL(cx, status, "%s: %s", path, why.message);
}

bool
eti_mds_is_folder(struct et_ctx *cx, const char *folder)
{
    char path[ETI_PATH_MAX];
    if (snprintf(path, sizeof path, "%s/index.json", folder) >= (int)sizeof path ||
        access(path, R_OK) != 0)
        return false;
    struct eti_bytes b;
    if (eti_file_load(cx, path, INDEX_MOST, &b) != ET_OK) {
        et_error_clear(cx);
        return false;
    }
    json_t *json =
        json_loadb((const char *)b.data, (size_t)b.n, JSON_REJECT_DUPLICATES, NULL);
    bool is = json_is_array(json_object_get(json, "shards"));
    json_decref(json);
    et_free(cx, b.data);
    return is;
}

void
eti_mds_free(struct et_ctx *cx, struct eti_mds *m)
{
    et_free(cx, m->shard);
    m->shard = NULL;
}

int
eti_mds_column(const struct eti_mds *m, const char *name)
{
    for (int i = 0; i < m->n_columns; i++)
        if (strcmp(m->column[i].name, name) == 0)
            return i;
    return -1;
}

et_status
eti_mds_need_column(struct et_ctx *cx, const struct eti_mds *m, const char *folder,
                    const char *name, int *out)
{
    char names[512] = "";
    *out = eti_mds_column(m, name);
    if (*out >= 0)
        return ET_OK;
    et_status status =
        ET_FAIL(cx, ET_EINVAL, "%s: there is no column '%s'", folder, name);
    for (int i = 0; i < m->n_columns; i++) {
        size_t n = strlen(names);
        snprintf(names + n, sizeof names - n, "%s%s (%s)", i ? ", " : "",
                 m->column[i].name, m->column[i].encoding);
    }
    et_hint(cx, "it has %s", names);
    return status;
}

et_status
eti_mds_folder(struct et_ctx *cx, const char *folder, int split, char out[ETI_PATH_MAX],
               bool *apart)
{
    static const char *const parts[] = {"train", "val"};
    ET_TRY(eti_file_path(cx, out, folder, parts[split]));
    *apart = eti_is_folder(cx, out);
    if (!*apart)
        snprintf(out, ETI_PATH_MAX, "%s", folder);
    return ET_OK;
}

/* ---- shards ---- */

et_status
eti_mds_begin(struct eti_mds_file *f, int64_t n, struct et_error *why)
{
    uint32_t own;
    int64_t header = (n + 2) * (int64_t)sizeof own;
    f->n = n;
    if (f->file.size < header)
        return eti_why(why, ET_EFORMAT,
                       "%" PRId64 " bytes cannot hold %" PRId64 " samples",
                       f->file.size, n);
    ET_TRY(eti_file_read(&f->file, &own, sizeof own, 0, why));
    if (own != n)
        return eti_why(why, ET_EFORMAT,
                       "%" PRIu32 " samples, and its index says %" PRId64, own, n);
    f->offset = malloc((size_t)(n + 1) * sizeof *f->offset);
    if (!f->offset)
        return eti_why(why, ET_ENOMEM, "no memory for %" PRId64 " offsets", n + 1);
    ET_TRY(eti_file_read(&f->file, f->offset, (n + 1) * (int64_t)sizeof *f->offset,
                         sizeof own, why));
    for (int64_t i = 0; i <= n; i++)
        if (f->offset[i] < header || f->offset[i] > f->file.size ||
            (i > 0 && f->offset[i] < f->offset[i - 1]))
            return eti_why(why, ET_EFORMAT,
                           "sample %" PRId64 " %s at byte %" PRIu32
                           ", which is out of order or outside the file's %" PRId64
                           " bytes",
                           i < n ? i : n - 1, i < n ? "begins" : "ends", f->offset[i],
                           f->file.size);
    return ET_OK;
}

void
eti_mds_end(struct eti_mds_file *f)
{
    free(f->offset);
    f->offset = NULL;
}

/* The sizes of the columns of sample AT: of one that alone differs, by what is left. */
static et_status
read_sizes(const struct eti_mds *m, const struct eti_mds_file *f, int64_t at,
           int64_t size[ETI_MDS_COLUMNS], struct et_error *why)
{
    uint32_t own[ETI_MDS_COLUMNS];
    int64_t begin = f->offset[at], n = f->offset[at + 1] - begin, fixed = 0;
    int64_t header = m->n_sized * (int64_t)sizeof *own;
    for (int i = 0; i < m->n_columns; i++)
        fixed += m->column[i].size < 0 ? 0 : m->column[i].size;
    if (n < header + fixed)
        return eti_why(why, ET_EFORMAT,
                       "sample %" PRId64 " of %" PRId64
                       " bytes is too short for its columns",
                       at, n);
    own[0] = (uint32_t)(n - header - fixed);
    if (m->n_sized > 1)
        ET_TRY(eti_file_read(&f->file, own, header, begin, why));
    int64_t sum = header + fixed;
    for (int i = 0, k = 0; i < m->n_columns; i++) {
        size[i] = m->column[i].size < 0 ? own[k++] : m->column[i].size;
        sum += m->column[i].size < 0 ? size[i] : 0;
    }
    if (sum != n)
        return eti_why(why, ET_EFORMAT,
                       "sample %" PRId64 " has %" PRId64
                       " bytes, and its columns %" PRId64,
                       at, n, sum);
    return ET_OK;
}

et_status
eti_mds_place(const struct eti_mds *m, const struct eti_mds_file *f, int64_t at, int i,
              int64_t *offset, int64_t *bytes, struct et_error *why)
{
    int64_t size[ETI_MDS_COLUMNS];
    ET_TRY(read_sizes(m, f, at, size, why));
    *offset = f->offset[at] + m->n_sized * (int64_t)sizeof(uint32_t);
    for (int k = 0; k < i; k++)
        *offset += size[k];
    *bytes = size[i];
    return ET_OK;
}

/* ---- numbers and texts ---- */

/* C: an integer, a real one, or text. */
static const struct {
    const char *name;
    int64_t size; /* 0: any */
    char kind;
} encodings[] = {
    {"int", 8, 'i'},     {"int64", 8, 'i'},     {"int32", 4, 'i'},
    {"int16", 2, 'i'},   {"int8", 1, 'i'},      {"uint64", 8, 'u'},
    {"uint32", 4, 'u'},  {"uint16", 2, 'u'},    {"uint8", 1, 'u'},
    {"float32", 4, 'f'}, {"float64", 8, 'f'},   {"str", 0, 't'},
    {"str_int", 0, 't'}, {"str_float", 0, 't'}, {"str_decimal", 0, 't'},
};

static void
write_number(char kind, const uint8_t *data, int64_t n, char *out, size_t room)
{
    uint64_t v = 0;
    float f;
    double d;
    for (int64_t i = 0; i < n; i++)
        v |= (uint64_t)data[i] << 8 * i;
    if (kind == 'f' && n == 4) {
        memcpy(&f, data, sizeof f);
        snprintf(out, room, "%.9g", (double)f);
    } else if (kind == 'f') {
        memcpy(&d, data, sizeof d);
        snprintf(out, room, "%.17g", d);
    } else if (kind == 'u') {
        snprintf(out, room, "%" PRIu64, v);
    } else {
        uint64_t sign = (uint64_t)1 << (8 * n - 1);
        snprintf(out, room, "%" PRId64, (int64_t)((v ^ sign) - sign));
    }
}

et_status
eti_mds_text(const char *encoding, const uint8_t *data, int64_t n, char *out,
             size_t room, struct et_error *why)
{
    for (size_t i = 0; i < sizeof encodings / sizeof *encodings; i++) {
        if (strcmp(encodings[i].name, encoding) != 0)
            continue;
        if (encodings[i].size ? n != encodings[i].size : n >= (int64_t)room)
            return eti_why(why, ET_EFORMAT, "%s of %" PRId64 " bytes", encoding, n);
        if (encodings[i].size)
            write_number(encodings[i].kind, data, n, out, room);
        else
            snprintf(out, room, "%.*s", (int)n, (const char *)data);
        return ET_OK;
    }
    return eti_why(why, ET_ENOTSUP,
                   "a column of encoding %.40s is no number, class or text", encoding);
}
