/* SPDX-License-Identifier: Apache-2.0 */
/* mds_tokens.c: tokens in MosaicML's MDS shards: those of all samples, one behind the
 * other, of which the loader takes windows.
 *
 * A column has them as an array (ndarray) or as the bytes of one. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/base/seams.h"
#include "core/data/mds.h"
#include "core/data/picture_list.h"
#include "etude/data.h"

enum { GPT2_VOCABULARY = 50257, CHUNK_BYTES = 8192 };

struct options {
    struct et_data_options common;
    char *column;
    int dtype; /* of eti_mds_numbers */
    int64_t vocab_size;
};

static const struct et_option option_table[] = {
    ET_DATA_OPTION_PATH(struct options, NULL, ET_OPT_REQUIRED,
                        "folder with index.json, of which test is the last tenth, or "
                        "with train and val"),
    ET_DATA_OPTIONS(struct options),
    ET_DATA_TOKEN_OPTIONS(struct options),
    {
        .name = "column",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, column),
        .flags = ET_OPT_OPTIONAL,
        .help = "of the tokens; unset: tokens or input_ids",
    },
    {
        .name = "dtype",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct options, dtype),
        .def = "int64",
        .choices = eti_mds_number_names,
        .help = "numbers of a column of encoding bytes; arrays say their own",
    },
    {
        .name = "vocab_size",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, vocab_size),
        .def = "50257",
        .min = 2,
        .max = INT32_MAX,
        .unit = "tokens",
        .help = "all tokens are below it; 50257 is GPT-2's",
    },
    {.name = NULL},
};

/* The tokens of one sample. */
struct part {
    int64_t first;  /* the place of its first token among all */
    int64_t offset; /* in its shard, bytes */
    int32_t shard;
};

struct state {
    struct eti_mds mds;
    struct eti_strings files; /* the shards */
    struct part *part;        /* [n], and one behind the last; owned */
    int64_t n, room;
    int64_t begin; /* this split's first token */
    const struct eti_mds_number *kind;
};

/* ---- where the tokens lie ---- */

static et_status
add_part(struct et_ctx *cx, struct state *s, int32_t shard, int64_t offset,
         int64_t bytes, struct et_error *why)
{
    if (bytes < 0 || bytes % s->kind->width)
        return eti_why(why, ET_EFORMAT, "%" PRId64 " bytes are not a multiple of %d",
                       bytes, s->kind->width);
    ET_TRY(eti_grow(cx, &s->part, &s->room, s->n + 2, sizeof *s->part));
    struct part *p = &s->part[s->n++];
    p->offset = offset;
    p->shard = shard;
    p[1].first = p->first + bytes / s->kind->width;
    return ET_OK;
}

static et_status
scan_samples(struct et_ctx *cx, struct state *s, const struct options *o, int32_t shard,
             int column, struct eti_mds_file *f, struct et_error *why)
{
    struct eti_mds_array array;
    const struct eti_mds_number *kind;
    ET_TRY(
        eti_mds_array_init(&s->mds, column, &eti_mds_numbers[o->dtype], &array, why));
    ET_TRY(eti_mds_begin(f, s->mds.shard[shard].samples, why));
    for (int64_t i = 0; i < f->n; i++) {
        int64_t offset, bytes;
        ET_TRY(eti_mds_array_place(&array, f, i, &kind, &offset, &bytes, why));
        if (s->kind && s->kind != kind)
            return eti_why(why, ET_EFORMAT, "sample %" PRId64 " is of %s, others of %s",
                           i, kind->name, s->kind->name);
        s->kind = kind;
        ET_TRY(add_part(cx, s, shard, offset, bytes, why));
    }
    return ET_OK;
}

static et_status
scan_shard(struct et_ctx *cx, struct state *s, const struct options *o, int32_t shard,
           int column)
{
    const char *path = eti_string(&s->files, shard);
    struct eti_mds_file f = {.n = 0};
    struct et_error why = {0};
    snprintf(f.file.path, sizeof f.file.path, "%s", path);
    ET_TRY(eti_file_open(cx, path, &f.file.fd, &f.file.size));
    et_status status = scan_samples(cx, s, o, shard, column, &f, &why);
    eti_mds_end(&f);
    close(f.file.fd);
    if (status == ET_OK || !why.message[0])
        return status;
    return ET_FAIL(cx, status, "%s: %s", path, why.message);
}

static et_status
choose_column(struct et_ctx *cx, const struct options *o, const struct eti_mds *m,
              const char *folder, int *out)
{
    const char *name = o->column ? o->column : "tokens";
    if (!o->column && eti_mds_column(m, name) < 0 &&
        eti_mds_column(m, "input_ids") >= 0)
        name = "input_ids";
    ET_TRY(eti_mds_need_column(cx, m, folder, name, out));
    const char *encoding = m->column[*out].encoding;
    if (eti_mds_is_array(encoding))
        return ET_OK;
    return ET_FAIL(cx, ET_ENOTSUP,
                   "%s: column '%s' is %s, and tokens are read from ndarray and bytes",
                   folder, name, encoding);
}

static et_status
open_tokens(struct et_ctx *cx, struct et_dataset *self)
{
    const struct options *o = self->options;
    struct state *s = self->state;
    char folder[ETI_PATH_MAX], path[ETI_PATH_MAX];
    bool apart;
    int column;
    ET_TRY(eti_mds_folder(cx, o->common.path, o->common.split, folder, &apart));
    ET_TRY(eti_mds_read(cx, folder, &s->mds));
    ET_TRY(choose_column(cx, o, &s->mds, folder, &column));
    for (int64_t i = 0; i < s->mds.n_shards; i++) {
        ET_TRY(eti_mds_path(cx, folder, &s->mds.shard[i], path));
        ET_TRY(eti_strings_add(cx, &s->files, path));
        ET_TRY(scan_shard(cx, s, o, (int32_t)i, column));
    }
    int64_t n = s->n ? s->part[s->n].first : 0, test = apart ? 0 : n / 10;
    s->begin = !apart && o->common.split == ET_SPLIT_TEST ? n - test : 0;
    if (!apart)
        n = o->common.split == ET_SPLIT_TEST ? test : n - test;
    if (n == 0)
        return ET_FAIL(cx, ET_EFORMAT, "%s: no tokens", folder);
    et_facts_stream(&self->facts, n, o->vocab_size);
    self->facts.bytes = n * s->kind->width;
    return ET_OK;
}

/* ---- reading ---- */

/* N tokens of the open file F from byte OFFSET on. */
static et_status
read_tokens(const struct state *s, const struct eti_file *f, int64_t offset, int64_t n,
            int64_t vocab_size, int32_t *out, struct et_error *why)
{
    uint8_t bytes[CHUNK_BYTES];
    int64_t most = CHUNK_BYTES / s->kind->width;
    for (int64_t at = 0; at < n; at += most) {
        int64_t some = n - at < most ? n - at : most;
        ET_TRY(eti_file_read(f, bytes, some * s->kind->width,
                             offset + at * s->kind->width, why));
        int64_t bad = eti_mds_widen(s->kind, bytes, some, vocab_size, out + at);
        if (bad >= 0)
            return eti_why(why, ET_EFORMAT,
                           "%s: the token at byte %" PRId64
                           " is not below the vocabulary of %" PRId64,
                           f->path, offset + (at + bad) * s->kind->width, vocab_size);
    }
    return ET_OK;
}

/* The same of shard SHARD. */
static et_status
read_shard(const struct et_dataset *self, int32_t shard, int64_t offset, int64_t n,
           int32_t *out, struct et_error *why)
{
    const struct state *s = self->state;
    const struct eti_file_calls *calls = &eti_ctx_seams(self->cx)->file;
    struct eti_file f = {.size = s->mds.shard[shard].bytes};
    snprintf(f.path, sizeof f.path, "%s", eti_string(&s->files, shard));
    f.fd = calls->open(AT_FDCWD, f.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (f.fd < 0)
        return eti_why(why, ET_EIO, "cannot read %s: %s", f.path, strerror(errno));
    et_status status =
        read_tokens(s, &f, offset, n, self->facts.field[0].below, out, why);
    (void)calls->close(f.fd);
    return status;
}

/* The sample that token AT is of. */
static int64_t
find_part(const struct state *s, int64_t at)
{
    int64_t low = 0, high = s->n - 1;
    while (low < high) {
        int64_t middle = (low + high + 1) / 2;
        if (s->part[middle].first <= at)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static et_status
tokens(const struct et_dataset *self, int64_t at, int64_t n, int32_t *out,
       struct et_error *why)
{
    const struct state *s = self->state;
    at += s->begin;
    for (int64_t i = find_part(s, at); n > 0; i++) {
        const struct part *p = &s->part[i];
        int64_t some = p[1].first - at;
        some = some < n ? some : n;
        if (some > 0)
            ET_TRY(read_shard(self, p->shard,
                              p->offset + (at - p->first) * s->kind->width, some, out,
                              why));
        at += some;
        out += some;
        n -= some;
    }
    return ET_OK;
}

static void
close_tokens(struct et_dataset *self)
{
    struct state *s = self->state;
    eti_mds_free(self->cx, &s->mds);
    eti_strings_free(self->cx, &s->files);
    et_free(self->cx, s->part);
}

static void
describe_tokens(const void *options, struct et_data_facts *out)
{
    const struct options *o = options;
    et_facts_stream(out, 0, o->vocab_size);
}

const struct et_dataset_class et_dataset_mds_tokens = {
    .info =
        {
            .name = "mds_tokens",
            .class_name = "MdsTokens",
            .summary = "tokens in shards as MosaicML's Streaming writes them",
            .applies_to = "text",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct state),
    .open = open_tokens,
    .tokens = tokens,
    .close = close_tokens,
    .describe = describe_tokens,
};
