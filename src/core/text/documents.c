/* SPDX-License-Identifier: Apache-2.0 */
/* documents.c: see documents.h.
 *
 * Files are read through zlib, which takes packed ones and others alike. A block ends
 * where a document does, or where the tokenizer says that a text may be cut; where
 * neither comes the block grows. */
#include "config.h"

#include "core/text/documents.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zlib.h>

#include "core/base/memory.h"
#include "core/data/file.h"
#include "core/text/mds_texts.h"
#include "core/text/vocab.h"

enum { BLOCK = 1 << 20, PART = 1 << 16, LOOK = 4096, MAX_DEPTH = 64 };

struct file {
    char *path;
    int64_t size;
    bool from_folder; /* nobody named it */
    int folder;       /* of MDS, that it is a shard of; -1: it is text */
    int64_t shard;
};

struct eti_documents {
    struct et_ctx *cx;
    const struct et_tokenizer *t;
    const struct eti_shards_config *config;
    struct file *file;
    int64_t n, room, at;           /* AT: the next to open */
    struct eti_mds_texts **folder; /* [n_folders] */
    int64_t n_folders, folder_room;
    struct eti_mds_texts *shard; /* that is open; NULL: none is */
    gzFile now;
    int64_t line;
    bool fresh; /* nothing of the file has been taken */
    char *rest; /* read, and not yet of a block */
    int64_t n_rest, rest_room;
    int64_t bytes, all_bytes, text_bytes, skipped;
    bool cuts_tail;
    uint64_t hash;
    int64_t tail; /* bytes of the only text that are set apart; 0: none */
};

const char *const eti_document_names[] = {"file", "line", "blank", NULL};

/* ---- the list ---- */

static et_status
add_file(struct eti_documents *d, const char *path, const struct stat *st,
         bool from_folder)
{
    struct file f = {.size = st->st_size, .from_folder = from_folder, .folder = -1};
    ET_TRY(eti_grow(d->cx, &d->file, &d->room, d->n + 1, sizeof *d->file));
    ET_TRY(et_alloc(d->cx, strlen(path) + 1, (void **)&f.path));
    memcpy(f.path, path, strlen(path) + 1);
    d->file[d->n++] = f;
    const struct timespec *time = &st->st_mtim;
    d->hash = XXH3_64bits_withSeed(path, strlen(path), d->hash);
    d->hash = XXH3_64bits_withSeed(&f.size, sizeof f.size, d->hash);
    d->hash = XXH3_64bits_withSeed(time, sizeof *time, d->hash);
    d->all_bytes += f.size;
    return ET_OK;
}

static int
is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int
by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* The shards that a folder of MDS lists. */
static et_status
add_shards(struct eti_documents *d, const char *path)
{
    char file[ETI_PATH_MAX];
    struct eti_mds_texts *t;
    struct stat st;
    ET_TRY(eti_grow(d->cx, &d->folder, &d->folder_room, d->n_folders + 1,
                    sizeof *d->folder));
    ET_TRY(eti_mds_texts_open(d->cx, path, d->config->field, &t));
    d->folder[d->n_folders++] = t;
    for (int64_t i = 0; i < t->mds.n_shards; i++) {
        ET_TRY(eti_mds_path(d->cx, path, &t->mds.shard[i], file));
        if (stat(file, &st) != 0)
            return ET_FAIL(d->cx, ET_EIO, "cannot read %s: %s", file, strerror(errno));
        ET_TRY(add_file(d, file, &st, true));
        d->file[d->n - 1].folder = (int)d->n_folders - 1;
        d->file[d->n - 1].shard = i;
    }
    return ET_OK;
}

static et_status add_input(struct eti_documents *d, const char *path, int depth);

/* All in a folder in the order of their names' bytes, but what is hidden. */
static et_status
add_folder(struct eti_documents *d, const char *path, int depth)
{
    struct dirent **all;
    int n = depth > MAX_DEPTH ? -1 : scandir(path, &all, is_shown, by_bytes);
    if (n < 0)
        return ET_FAIL(d->cx, ET_EIO, "cannot read %s: %s", path,
                       depth > MAX_DEPTH ? "too deep" : strerror(errno));
    et_status s = ET_OK;
    for (int i = 0; i < n; i++) {
        char inside[ETI_PATH_MAX];
        if (s == ET_OK)
            s = eti_file_path(d->cx, inside, path, all[i]->d_name);
        if (s == ET_OK)
            s = add_input(d, inside, depth + 1);
        free(all[i]);
    }
    free(all);
    return s;
}

static et_status
add_input(struct eti_documents *d, const char *path, int depth)
{
    struct stat st;
    if ((depth > 0 ? lstat(path, &st) : stat(path, &st)) != 0)
        return ET_FAIL(d->cx, errno == ENOENT ? ET_ENOENT : ET_EIO,
                       "cannot read %s: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return eti_mds_is_folder(d->cx, path) ? add_shards(d, path)
                                              : add_folder(d, path, depth);
    if (S_ISREG(st.st_mode))
        return add_file(d, path, &st, depth > 0);
    if (depth > 0) /* links, which may lead in circles, and devices */
        return ET_OK;
    return ET_FAIL(d->cx, ET_EFORMAT, "%s is no file or folder", path);
}

static bool
ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

static bool
is_jsonl(const char *path)
{
    static const char *const ends[] = {".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz"};
    bool is = false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        is |= ends_with(path, ends[i]);
    return is;
}

static et_status
list_files(struct eti_documents *d)
{
    const struct eti_shards_config *c = d->config;
    for (int i = 0; i < c->n_inputs; i++)
        ET_TRY(add_input(d, c->input[i], 0));
    if (d->n == 0)
        return ET_FAIL(d->cx, ET_ENOENT, "no file in %s", c->input[0]);
    /* The only document is cut, and its end set apart. */
    if (d->n == 1 && d->n_folders == 0 && c->document == ETI_DOCUMENT_FILE &&
        !is_jsonl(d->file[0].path) && !ends_with(d->file[0].path, ".gz"))
        d->tail = (int64_t)(c->val_fraction * (double)d->file[0].size);
    d->cuts_tail = d->tail > 0;
    return ET_OK;
}

et_status
eti_documents_open(struct et_ctx *cx, const struct et_tokenizer *t,
                   const struct eti_shards_config *config, struct eti_documents **out)
{
    struct eti_documents *d;
    *out = NULL;
    ET_TRY(et_alloc(cx, sizeof *d, (void **)&d));
    d->cx = cx;
    d->t = t;
    d->config = config;
    et_status s = list_files(d);
    if (s != ET_OK)
        eti_documents_close(&d);
    *out = d;
    return s;
}

void
eti_documents_close(struct eti_documents **documents)
{
    struct eti_documents *d = *documents;
    *documents = NULL;
    if (!d)
        return;
    if (d->now)
        gzclose(d->now);
    for (int64_t i = 0; i < d->n_folders; i++)
        eti_mds_texts_close(d->cx, &d->folder[i]);
    et_free(d->cx, d->folder);
    for (int64_t i = 0; i < d->n; i++)
        et_free(d->cx, d->file[i].path);
    et_free(d->cx, d->file);
    et_free(d->cx, d->rest);
    et_free(d->cx, d);
}

uint64_t
eti_documents_hash(const struct eti_documents *d)
{
    return d->hash;
}

bool
eti_documents_have_ids(const struct eti_documents *d)
{
    bool have = false;
    for (int64_t i = 0; i < d->n_folders; i++)
        have |= d->folder[i]->has_ids;
    return have;
}

bool
eti_documents_cuts_tail(const struct eti_documents *d)
{
    return d->cuts_tail;
}

void
eti_documents_progress(const struct eti_documents *d, struct eti_shards_progress *p)
{
    p->bytes = d->bytes + (d->now ? gzoffset(d->now) : 0);
    p->all_bytes = d->all_bytes;
    p->text_bytes = d->text_bytes;
    p->files = d->at;
    p->n_files = d->n;
    p->skipped = d->skipped;
}

/* ---- reading ---- */

static const struct file *
file_now(const struct eti_documents *d)
{
    return &d->file[d->at - 1];
}

static et_status
open_next(struct eti_documents *d)
{
    const struct file *f = &d->file[d->at++];
    const char *path = f->path;
    int64_t size;
    int fd;
    if (f->folder >= 0) {
        d->shard = d->folder[f->folder];
        return eti_mds_texts_begin(d->cx, d->shard, f->shard, path);
    }
    ET_TRY(eti_file_open(d->cx, path, &fd, &size));
    d->now = gzdopen(fd, "rb");
    if (!d->now) {
        close(fd);
        return ET_FAIL(d->cx, ET_ENOMEM, "no memory to read %s", path);
    }
    (void)gzbuffer(d->now, 4 * PART);
    d->line = 1;
    d->fresh = true;
    return ET_OK;
}

static void
close_now(struct eti_documents *d)
{
    d->bytes += file_now(d)->size;
    gzclose(d->now);
    d->now = NULL;
    d->n_rest = 0;
}

/* Reads on until N bytes are there, or all; *ENDED: all are. */
static et_status
fill(struct eti_documents *d, int64_t n, bool *ended)
{
    *ended = false;
    ET_TRY(eti_grow(d->cx, &d->rest, &d->rest_room, n, 1));
    while (d->n_rest < n) {
        int64_t left = n - d->n_rest;
        int got =
            gzread(d->now, d->rest + d->n_rest, (unsigned)(left < PART ? left : PART));
        int error = Z_OK;
        const char *why = got < 0 ? gzerror(d->now, &error) : "";
        if (got < 0)
            return ET_FAIL(d->cx, error == Z_ERRNO ? ET_EIO : ET_EFORMAT,
                           "cannot read %s: %s", file_now(d)->path,
                           error == Z_ERRNO ? strerror(errno) : why);
        if (got == 0) {
            (void)gzerror(d->now, &error);
            if (error == Z_BUF_ERROR)
                return ET_FAIL(d->cx, ET_EFORMAT, "%s: packed, and cut short",
                               file_now(d)->path);
            *ended = true;
            return ET_OK;
        }
        d->n_rest += got;
    }
    return ET_OK;
}

/* Behind the last end of a line, or of a blank one (TWICE), in what is there; 0:
 * none. */
static int64_t
last_end(const struct eti_documents *d, bool twice)
{
    for (int64_t at = d->n_rest; at > 0; at--)
        if (d->rest[at - 1] == '\n' && (!twice || (at > 1 && d->rest[at - 2] == '\n')))
            return at;
    return 0;
}

/* How many bytes of what is there make the next block; 0: more are needed. */
static int64_t
block_end(const struct eti_documents *d, bool jsonl, bool ended)
{
    enum eti_document what = jsonl ? ETI_DOCUMENT_LINE : d->config->document;
    if (ended)
        return d->n_rest;
    if (what != ETI_DOCUMENT_FILE)
        return last_end(d, what == ETI_DOCUMENT_BLANK);
    size_t n = (size_t)d->n_rest, from = n - PART;
    size_t cut = et_tokenizer_cut(d->t, d->rest, n, from);
    return cut < n ? (int64_t)cut : 0;
}

/* Bytes with a 0 among the first are no text. */
static bool
is_binary(const struct eti_documents *d)
{
    int64_t n = d->n_rest < LOOK ? d->n_rest : LOOK;
    return n > 0 && memchr(d->rest, 0, (size_t)n) != NULL;
}

static et_status
take(struct eti_documents *d, int64_t n, struct eti_text_block *out)
{
    out->n = 0;
    ET_TRY(eti_text_append(d->cx, &out->text, &out->n, &out->room, d->rest, (size_t)n));
    out->path = file_now(d)->path;
    d->fresh = false;
    out->line = d->line;
    for (int64_t i = 0; i < n; i++)
        d->line += d->rest[i] == '\n';
    d->n_rest -= n;
    memmove(d->rest, d->rest + n, (size_t)d->n_rest);
    d->text_bytes += n;
    return ET_OK;
}

/* Where the only document is cut: a place at or behind the one that was asked for. */
static int64_t
tail_cut(struct eti_documents *d, int64_t end)
{
    int64_t to = d->file[0].size - d->tail - d->text_bytes;
    if (d->tail == 0 || to < 0 || to >= end)
        return end;
    size_t cut = et_tokenizer_cut(d->t, d->rest, (size_t)end, (size_t)to);
    return (int64_t)cut;
}

static et_status
next_of_shard(struct eti_documents *d, struct eti_text_block *out, bool *found)
{
    bool ended;
    ET_TRY(eti_mds_texts_next(d->cx, d->shard, BLOCK, out, &ended));
    *found = true;
    out->path = file_now(d)->path;
    out->ends_document = true;
    out->last = ended && d->at == d->n;
    d->text_bytes += out->n;
    if (!ended)
        return ET_OK;
    d->bytes += file_now(d)->size;
    eti_mds_texts_end(d->shard);
    d->shard = NULL;
    return ET_OK;
}

static et_status
next_of_file(struct eti_documents *d, struct eti_text_block *out, bool *found)
{
    bool ended, jsonl = is_jsonl(file_now(d)->path);
    int64_t want = BLOCK, end = 0;
    for (; end == 0; want *= 2) {
        ET_TRY(fill(d, want, &ended));
        if (d->fresh && file_now(d)->from_folder && is_binary(d)) {
            d->skipped++;
            close_now(d);
            return ET_OK;
        }
        end = block_end(d, jsonl, ended);
        if (ended)
            break;
    }
    int64_t cut = tail_cut(d, end);
    bool at_tail = cut < end;
    if (at_tail)
        d->tail = 0;
    *found = cut > 0 || ended;
    out->kind = jsonl ? ETI_BLOCK_JSONL : ETI_BLOCK_TEXT;
    ET_TRY(take(d, cut, out));
    ended = ended && d->n_rest == 0;
    out->ends_document =
        ended || at_tail || jsonl || d->config->document != ETI_DOCUMENT_FILE;
    if (ended)
        close_now(d);
    out->last = ended && d->at == d->n;
    return ET_OK;
}

et_status
eti_documents_next(struct eti_documents *d, struct eti_text_block *out, bool *found)
{
    *found = false;
    while (!*found) {
        if (!d->now && !d->shard && d->at == d->n)
            return ET_OK;
        if (!d->now && !d->shard)
            ET_TRY(open_next(d));
        ET_TRY(d->shard ? next_of_shard(d, out, found) : next_of_file(d, out, found));
    }
    return ET_OK;
}
