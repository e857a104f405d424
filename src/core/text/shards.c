/* SPDX-License-Identifier: Apache-2.0 */
/* shards.c: see shards.h.
 *
 * One thread reads blocks and writes tokens, in the order of the input; the others
 * encode. A ring holds what is under way, so memory does not grow with the input. All
 * is written into a folder beside, which gets its name when it is whole. */
#include "config.h"

#include "core/text/shards.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/base/memory.h"
#include "core/base/seams.h"
#include "core/base/thread.h"
#include "core/data/file.h"
#include "core/text/documents.h"
#include "core/text/shards_folder.h"

enum { MAX_THREADS = 64, WRITE_BYTES = 1 << 20 };
#define TELL_SECONDS 0.5

/* ---- one block ---- */

enum job_state { FREE, WAITING, TAKEN, DONE };
struct job {
    enum job_state state;
    struct et_ctx *cx; /* of ids and ends: whoever has the job uses it */
    struct eti_text_block block;
    int32_t *id; /* of all its documents */
    int64_t n, room;
    int64_t *end; /* of each that ends here */
    int64_t n_ends, end_room;
    et_status status;
    struct et_error why;
};

/* What a thread has for itself. */
struct worker {
    struct eti_sharding *all;
    struct et_ctx *cx;
    struct et_encoder *e;
    pthread_t thread;
    bool begun;
};

enum { SPLITS = 2 };
struct output {
    int tokens, ends; /* files; -1: none */
    char *buf;
    int64_t n_buf;
    int64_t n_tokens, n_documents;
};

struct eti_sharding {
    struct et_ctx *cx;
    const struct et_tokenizer *t;
    const struct eti_shards_config *config;
    struct et_tokenizer_info info;
    int32_t end_id; /* -1: none */
    int width;
    struct eti_documents *documents;
    struct worker worker[MAX_THREADS];
    int n_workers;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stops;
    struct job *job; /* a ring */
    int n_jobs;
    int64_t first, next; /* of the ring: to be written, to be read */
    struct output out[SPLITS];
    int64_t n_documents; /* begun */
    int split;           /* of the document that is being written; -1: none is */
    struct eti_new_folder folder;
    double begun, told;
};

/* ---- encoding ---- */

static et_status
put_ids(struct worker *w, struct job *j, const char *text, size_t n)
{
    unsigned flags = w->all->config->plain ? ET_ENCODE_PLAIN : 0;
    struct et_encoding a;
    ET_TRY(et_encode(w->e, text, n, flags, &a));
    ET_TRY(eti_grow(j->cx, &j->id, &j->room, j->n + a.n + 1, sizeof *j->id));
    if (a.n > 0)
        memcpy(j->id + j->n, a.id, (size_t)a.n * sizeof *a.id);
    j->n += a.n;
    return ET_OK;
}

static et_status
end_document(struct job *j)
{
    ET_TRY(eti_grow(j->cx, &j->end, &j->end_room, j->n_ends + 1, sizeof *j->end));
    j->end[j->n_ends++] = j->n;
    return ET_OK;
}

static et_status
put_json_line(struct worker *w, struct job *j, const char *line, size_t n, int64_t at)
{
    const char *field = w->all->config->field;
    json_error_t error;
    json_t *json = json_loadb(line, n, JSON_ALLOW_NUL, &error);
    const json_t *text = json_object_get(json, field);
    et_status s;
    if (!json)
        s = ET_FAIL(w->cx, ET_EFORMAT, "%s:%" PRId64 ":%d: %s", j->block.path, at,
                    error.column, error.text);
    else if (!json_is_string(text))
        s = ET_FAIL(w->cx, ET_EFORMAT, "%s:%" PRId64 ": no text called %s",
                    j->block.path, at, field);
    else
        s = put_ids(w, j, json_string_value(text), json_string_length(text));
    json_decref(json);
    return s == ET_OK ? end_document(j) : s;
}

static bool
is_blank(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr(" \t\r\n", text[i]) || !text[i])
            return false;
    return true;
}

/* Lines of a block, each with its end left out; blank ones are no documents. */
static et_status
put_lines(struct worker *w, struct job *j)
{
    const struct eti_text_block *b = &j->block;
    int64_t line = b->line;
    for (int64_t at = 0, n; at < b->n; at += n + 1, line++) {
        const char *end = memchr(b->text + at, '\n', (size_t)(b->n - at));
        n = end ? end - (b->text + at) : b->n - at;
        if (is_blank(b->text + at, (size_t)n))
            continue;
        if (b->kind == ETI_BLOCK_JSONL) {
            ET_TRY(put_json_line(w, j, b->text + at, (size_t)n, line));
            continue;
        }
        int64_t kept = n > 0 && b->text[at + n - 1] == '\r' ? n - 1 : n;
        ET_TRY(put_ids(w, j, b->text + at, (size_t)kept));
        ET_TRY(end_document(j));
    }
    return ET_OK;
}

/* What is between blank lines. */
static et_status
put_paragraphs(struct worker *w, struct job *j)
{
    const struct eti_text_block *b = &j->block;
    for (int64_t at = 0; at < b->n;) {
        const char *end = memmem(b->text + at, (size_t)(b->n - at), "\n\n", 2);
        int64_t n = end ? end + 1 - (b->text + at) : b->n - at;
        if (!is_blank(b->text + at, (size_t)n)) {
            ET_TRY(put_ids(w, j, b->text + at, (size_t)n));
            ET_TRY(end_document(j));
        }
        for (at += n; at < b->n && b->text[at] == '\n';)
            at++;
    }
    return ET_OK;
}

/* The tokens of sample AT, without the marks that a tokenizer puts around a text. */
static et_status
put_known_ids(struct worker *w, struct job *j, const char *ids, int64_t n, int64_t at)
{
    const struct et_tokenizer_info *info = &w->all->info;
    int64_t before = j->n;
    ET_TRY(eti_grow(j->cx, &j->id, &j->room, j->n + n + 1, sizeof *j->id));
    for (int64_t i = 0; i < n; i++) {
        int32_t id;
        memcpy(&id, ids + i * (int64_t)sizeof id, sizeof id);
        if (id >= info->vocab_size)
            return ET_FAIL(
                w->cx, ET_EFORMAT,
                "%s: sample %" PRId64 " has the token %" PRId32 ", and %s has %" PRId64,
                j->block.path, at, id, info->path, (int64_t)info->vocab_size);
        if (i > 0 || id != info->role[ET_TOKEN_CLS])
            j->id[j->n++] = id;
    }
    if (j->n > before && j->id[j->n - 1] == w->all->end_id)
        j->n--; /* write_end puts it there */
    return ET_OK;
}

/* Samples of MDS shards. */
static et_status
put_records(struct worker *w, struct job *j)
{
    const struct eti_text_block *b = &j->block;
    int64_t at = b->line;
    uint32_t n;
    for (int64_t i = 0; i < b->n; i += (int64_t)sizeof n + n, at++) {
        memcpy(&n, b->text + i, sizeof n);
        const char *record = b->text + i + sizeof n;
        if (b->kind == ETI_BLOCK_IDS)
            ET_TRY(put_known_ids(w, j, record, n / (int64_t)sizeof(int32_t), at));
        else
            ET_TRY(put_ids(w, j, record, n));
        ET_TRY(end_document(j));
    }
    return ET_OK;
}

static et_status
encode_block(struct worker *w, struct job *j)
{
    enum eti_document what = w->all->config->document;
    j->n = j->n_ends = 0;
    if (j->block.kind >= ETI_BLOCK_RECORDS)
        return put_records(w, j);
    if (j->block.kind == ETI_BLOCK_JSONL || what == ETI_DOCUMENT_LINE)
        return put_lines(w, j);
    if (what == ETI_DOCUMENT_BLANK)
        return put_paragraphs(w, j);
    ET_TRY(put_ids(w, j, j->block.text, (size_t)j->block.n));
    return j->block.ends_document ? end_document(j) : ET_OK;
}

/* The first that waits; with the lock held. */
static struct job *
find_waiting(struct eti_sharding *s)
{
    for (int64_t i = s->first; i < s->next; i++)
        if (s->job[i % s->n_jobs].state == WAITING)
            return &s->job[i % s->n_jobs];
    return NULL;
}

static void *
work(void *data)
{
    struct worker *w = data;
    struct eti_sharding *s = w->all;
    struct job *j;
    pthread_mutex_lock(&s->lock);
    while (!s->stops) {
        j = find_waiting(s);
        if (!j) {
            pthread_cond_wait(&s->changed, &s->lock);
            continue;
        }
        j->state = TAKEN;
        pthread_mutex_unlock(&s->lock);
        j->status = encode_block(w, j);
        if (j->status != ET_OK)
            j->why = *et_error_get(et_error_get(w->cx)->status ? w->cx : j->cx);
        pthread_mutex_lock(&s->lock);
        j->state = DONE;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- writing ---- */

static et_status
flush(struct eti_sharding *s, struct output *o)
{
    et_status status =
        eti_write_all(s->cx, o->tokens, s->config->folder, o->buf, (size_t)o->n_buf);
    o->n_buf = 0;
    return status;
}

static et_status
write_ids(struct eti_sharding *s, struct output *o, const int32_t *id, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (o->n_buf + s->width > WRITE_BYTES)
            ET_TRY(flush(s, o));
        uint32_t value = (uint32_t)id[i];
        memcpy(o->buf + o->n_buf, &value, (size_t)s->width); /* little-endian */
        o->n_buf += s->width;
    }
    o->n_tokens += n;
    return ET_OK;
}

/* Which split the next document is of: a draw of its own, by seed and number. */
static int
draw_split(struct eti_sharding *s)
{
    const struct eti_shards_config *c = s->config;
    int64_t number = s->n_documents++;
    double draw =
        (double)(XXH3_64bits_withSeed(&number, sizeof number, c->seed) >> 11) /
        (double)(UINT64_C(1) << 53);
    return draw < c->val_fraction;
}

static et_status
write_end(struct eti_sharding *s, struct output *o)
{
    if (s->end_id >= 0)
        ET_TRY(write_ids(s, o, &s->end_id, 1));
    o->n_documents++;
    s->split = -1;
    return eti_write_all(s->cx, o->ends, s->config->folder, &o->n_tokens,
                         sizeof o->n_tokens);
}

/* (The end of an only document is set apart by being the second.) */
static et_status
write_job(struct eti_sharding *s, const struct job *j, bool by_tail)
{
    int64_t from = 0;
    for (int64_t i = 0; i <= j->n_ends; i++) {
        int64_t to = i < j->n_ends ? j->end[i] : j->n;
        if (to > from && s->split < 0)
            s->split = by_tail ? s->n_documents++ > 0 : draw_split(s);
        if (s->split < 0)
            continue;
        struct output *o = &s->out[s->split];
        ET_TRY(write_ids(s, o, j->id + from, to - from));
        if (i < j->n_ends)
            ET_TRY(write_end(s, o));
        from = to;
    }
    return ET_OK;
}

/* ---- the ring ---- */

static void
measure(struct eti_sharding *s, struct eti_shards_progress *p)
{
    *p = (struct eti_shards_progress){0};
    eti_documents_progress(s->documents, p);
    for (int i = 0; i < SPLITS; i++) {
        p->documents += s->out[i].n_documents;
        p->tokens += s->out[i].n_tokens;
    }
    p->val_documents = s->out[1].n_documents;
    p->val_tokens = s->out[1].n_tokens;
    p->seconds = eti_monotonic(s->cx) - s->begun;
}

static et_status
tell(struct eti_sharding *s, bool always)
{
    const struct eti_shards_config *c = s->config;
    struct eti_shards_progress p;
    double now = eti_monotonic(s->cx);
    if (!c->tell || (!always && now - s->told < TELL_SECONDS))
        return ET_OK;
    s->told = now;
    measure(s, &p);
    return c->tell(c->data, &p)
               ? ET_OK
               : ET_FAIL(s->cx, ET_ECANCELED, "stopped; nothing is written");
}

/* Puts blocks into the ring while there is room. *MORE: the input has not ended. */
static et_status
read_ahead(struct eti_sharding *s, bool *more)
{
    while (*more && s->next - s->first < s->n_jobs) {
        struct job *j = &s->job[s->next % s->n_jobs];
        ET_TRY(eti_documents_next(s->documents, &j->block, more));
        if (!*more)
            break;
        pthread_mutex_lock(&s->lock);
        j->state = WAITING;
        s->next++;
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
    }
    return ET_OK;
}

static et_status
write_first(struct eti_sharding *s, bool by_tail)
{
    struct job *j = &s->job[s->first % s->n_jobs];
    pthread_mutex_lock(&s->lock);
    while (j->state != DONE)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    if (j->status != ET_OK)
        return ET_FAIL(s->cx, j->status, "%s", j->why.message);
    ET_TRY(write_job(s, j, by_tail));
    pthread_mutex_lock(&s->lock);
    j->state = FREE;
    s->first++;
    pthread_mutex_unlock(&s->lock);
    return tell(s, false);
}

static et_status
no_text(const struct eti_sharding *s, const struct eti_shards_progress *p)
{
    const char *more = s->config->n_inputs > 1 ? " and the others" : "";
    if (p->skipped > 0)
        return ET_FAIL(s->cx, ET_EINVAL,
                       "%s%s: no text; %" PRId64 " files with zero bytes are left out",
                       s->config->input[0], more, p->skipped);
    return ET_FAIL(s->cx, ET_EINVAL, "%s%s: no text", s->config->input[0], more);
}

static et_status
run(struct eti_sharding *s)
{
    struct eti_shards_progress p;
    bool more = true;
    bool by_tail = eti_documents_cuts_tail(s->documents);
    for (;;) {
        ET_TRY(read_ahead(s, &more));
        if (s->first == s->next)
            break;
        ET_TRY(write_first(s, by_tail));
    }
    if (s->split >= 0) /* the last text did not end with its block */
        ET_TRY(write_end(s, &s->out[s->split]));
    for (int i = 0; i < SPLITS; i++)
        if (s->out[i].tokens >= 0)
            ET_TRY(flush(s, &s->out[i]));
    measure(s, &p);
    if (p.tokens == 0)
        return no_text(s, &p);
    if (s->config->val_fraction > 0 && (p.val_tokens == 0 || p.val_tokens == p.tokens))
        return ET_FAIL(s->cx, ET_EINVAL,
                       "of %" PRId64 " documents %s are set apart: give another "
                       "fraction, or other documents",
                       p.documents, p.val_tokens ? "all" : "none");
    return ET_OK;
}

/* ---- threads ---- */

static et_status
begin_workers(struct eti_sharding *s)
{
    int n = s->config->threads < 1             ? 1
            : s->config->threads > MAX_THREADS ? MAX_THREADS
                                               : s->config->threads;
    s->n_jobs = 2 * n + 2;
    ET_TRY(et_alloc(s->cx, (size_t)s->n_jobs * sizeof *s->job, (void **)&s->job));
    for (int i = 0; i < s->n_jobs; i++)
        ET_TRY(et_ctx_new(&s->job[i].cx));
    for (int i = 0; i < n; i++) {
        struct worker *w = &s->worker[s->n_workers++];
        w->all = s;
        ET_TRY(et_ctx_new(&w->cx));
        if (et_encoder_new(w->cx, s->t, &w->e) != ET_OK)
            return ET_FAIL(s->cx, ET_ENOMEM, "%s", et_error_get(w->cx)->message);
    }
    for (int i = 0; i < n; i++) {
        struct worker *w = &s->worker[i];
        int error = eti_thread_begin(&w->thread, work, w);
        w->begun = error == 0;
        if (error && i == 0)
            return ET_FAIL(s->cx, ET_EIO, "cannot begin a thread: %s", strerror(error));
    }
    return ET_OK;
}

static void
end_workers(struct eti_sharding *s)
{
    pthread_mutex_lock(&s->lock);
    s->stops = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < s->n_workers; i++)
        if (s->worker[i].begun)
            pthread_join(s->worker[i].thread, NULL);
    for (int i = 0; i < s->n_jobs && s->job; i++) {
        et_free(s->cx, s->job[i].block.text);
        et_free(s->job[i].cx, s->job[i].id);
        et_free(s->job[i].cx, s->job[i].end);
        et_ctx_free(&s->job[i].cx);
    }
    et_free(s->cx, s->job);
    for (int i = 0; i < s->n_workers; i++) {
        et_encoder_free(&s->worker[i].e);
        et_ctx_free(&s->worker[i].cx);
    }
}

/* ---- the files ---- */

static const char *const split_names[SPLITS] = {"train", "val"};

static et_status
open_outputs(struct eti_sharding *s)
{
    for (int i = 0; i < SPLITS; i++) {
        struct output *o = &s->out[i];
        char name[32];
        if (i > 0 && s->config->val_fraction <= 0)
            continue;
        ET_TRY(et_alloc(s->cx, WRITE_BYTES, (void **)&o->buf));
        snprintf(name, sizeof name, "%s.bin", split_names[i]);
        ET_TRY(eti_new_folder_file(s->cx, &s->folder, name, &o->tokens));
        snprintf(name, sizeof name, "%s.ends", split_names[i]);
        ET_TRY(eti_new_folder_file(s->cx, &s->folder, name, &o->ends));
    }
    return ET_OK;
}

static et_status
close_outputs(struct eti_sharding *s, bool sync)
{
    et_status status = ET_OK;
    for (int i = 0; i < SPLITS; i++) {
        int fd[2] = {s->out[i].tokens, s->out[i].ends};
        for (int k = 0; k < 2; k++) {
            if (fd[k] >= 0 && sync && status == ET_OK)
                status = eti_sync(s->cx, fd[k], s->config->folder);
            if (fd[k] >= 0)
                eti_close(s->cx, fd[k]);
        }
        s->out[i].tokens = s->out[i].ends = -1;
        et_free(s->cx, s->out[i].buf);
        s->out[i].buf = NULL;
    }
    return status;
}

/* tokens.json; the last file that is written. */
static et_status
describe(struct eti_sharding *s, const char *tokenizer)
{
    json_t *all =
        json_pack("{s:i, s:i, s:I, s:s, s:o}", "version", 1, "bytes", s->width,
                  "vocab_size", (json_int_t)s->info.vocab_size, "tokenizer", tokenizer,
                  "end", s->end_id < 0 ? json_null() : json_integer(s->end_id));
    for (int i = 0; i < SPLITS; i++)
        if (s->out[i].n_tokens > 0)
            json_object_set_new(all, split_names[i],
                                json_pack("{s:I, s:I}", "tokens",
                                          (json_int_t)s->out[i].n_tokens, "documents",
                                          (json_int_t)s->out[i].n_documents));
    char *text = all ? json_dumps(all, JSON_INDENT(1)) : NULL;
    json_decref(all);
    if (!text)
        return ET_FAIL(s->cx, ET_ENOMEM, "no memory for tokens.json");
    int fd = -1;
    et_status status = eti_new_folder_file(s->cx, &s->folder, "tokens.json", &fd);
    if (status == ET_OK)
        status = eti_write_all(s->cx, fd, "tokens.json", text, strlen(text));
    if (status == ET_OK)
        status = eti_write_all(s->cx, fd, "tokens.json", "\n", 1);
    if (status == ET_OK)
        status = eti_sync(s->cx, fd, "tokens.json");
    if (fd >= 0)
        eti_close(s->cx, fd);
    free(text);
    return status;
}

/* The token that ends documents. */
static et_status
find_end(struct eti_sharding *s)
{
    const char *end = s->config->end;
    /* Tokens of a next-token corpus have their ends, and samples are cut anywhere. */
    bool has_own =
        eti_documents_have_ids(s->documents) && s->info.role[ET_TOKEN_CLS] < 0;
    s->end_id = s->info.role[ET_TOKEN_EOS] >= 0 ? s->info.role[ET_TOKEN_EOS]
                                                : s->info.role[ET_TOKEN_SEP];
    if (!end && has_own)
        s->end_id = -1;
    if (!end)
        return ET_OK;
    s->end_id = *end ? et_tokenizer_id(s->t, end, strlen(end)) : -1;
    if (*end && s->end_id < 0)
        return ET_FAIL(s->cx, ET_EINVAL, "%s has no token '%s'", s->info.path, end);
    return ET_OK;
}

static et_status
write_all(struct eti_sharding *s, struct eti_shards_progress *out)
{
    const char *tokenizer;
    ET_TRY(eti_documents_open(s->cx, s->t, s->config, &s->documents));
    ET_TRY(find_end(s));
    ET_TRY(eti_new_folder_begin(s->cx, s->config->folder, &s->folder));
    ET_TRY(open_outputs(s));
    ET_TRY(begin_workers(s));
    ET_TRY(run(s));
    ET_TRY(close_outputs(s, true));
    ET_TRY(eti_new_folder_tokenizer(s->cx, &s->folder, s->t, &tokenizer));
    ET_TRY(describe(s, tokenizer));
    ET_TRY(tell(s, true));
    ET_TRY(eti_new_folder_commit(s->cx, &s->folder));
    measure(s, out);
    return ET_OK;
}

et_status
eti_shards_write(struct et_ctx *cx, const struct et_tokenizer *t,
                 const struct eti_shards_config *config,
                 struct eti_shards_progress *out)
{
    struct eti_sharding *s;
    *out = (struct eti_shards_progress){0};
    ET_TRY(et_alloc(cx, sizeof *s, (void **)&s));
    *s = (struct eti_sharding){.cx = cx, .t = t, .config = config, .split = -1};
    s->folder.dir = s->folder.parent = -1;
    for (int i = 0; i < SPLITS; i++)
        s->out[i].tokens = s->out[i].ends = -1;
    et_tokenizer_get_info(t, &s->info);
    s->width = s->info.vocab_size > 65536 ? 4 : 2;
    s->begun = s->told = eti_monotonic(cx);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    et_status status = write_all(s, out);
    end_workers(s);
    (void)!close_outputs(s, false); /* after a failure: nobody wants them */
    eti_documents_close(&s->documents);
    eti_new_folder_end(cx, &s->folder);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
    et_free(cx, s);
    return status;
}
