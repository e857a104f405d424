/* SPDX-License-Identifier: Apache-2.0 */
/* values.c: the values of tensors in files: compared, and written again. See tensors.h.
 *
 * Both go over the bytes once, in pieces, and take the digest of what they used. */
#include "core/base/seams.h"
#include "core/checkpoint/tensors.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "core/checkpoint/names.h"
#include "etude/diagnostic.h"

enum { PIECE = 1 << 12 }; /* elements */

/* ---- a tensor, piece by piece ---- */

struct stream {
    struct et_ctx *cx;
    const struct eti_tensor *source;
    XXH3_state_t *hash; /* of what was read; NULL: nothing to hold it against */
    int64_t at, bytes, width;
    _Alignas(8) uint8_t raw[PIECE * 8];
};

static et_status
stream_new(const struct eti_tensor *source, struct stream **out)
{
    struct et_ctx *cx = source->file->cx;
    void *block;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct stream *s = *out = block;
    s->cx = cx;
    s->source = source;
    s->bytes = source->t->end - source->t->begin;
    s->width = (int64_t)et_dtype_size(source->t->dtype);
    if (source->digest) {
        s->hash = XXH3_createState();
        if (!s->hash)
            return ET_FAIL(cx, ET_ENOMEM, "no memory for a digest");
        XXH3_128bits_reset(s->hash);
    }
    return ET_OK;
}

static void
stream_free(struct stream *s)
{
    if (!s)
        return;
    XXH3_freeState(s->hash);
    et_free(s->cx, s);
}

/* The next N elements, or as many as there are, into s->raw. *N 0: that was all, and it
 * is what MANIFEST says. */
static et_status
stream_next(struct stream *s, int64_t *n)
{
    const struct eti_tensor *source = s->source;
    char digest[ETI_DIGEST_TEXT];
    int64_t bytes = *n * s->width;
    if (bytes > s->bytes - s->at)
        bytes = s->bytes - s->at;
    *n = bytes / s->width;
    if (bytes > 0) {
        ET_TRY(eti_weight_file_read(source->file, source->t, s->at, s->raw, bytes));
        s->at += bytes;
        if (s->hash)
            XXH3_128bits_update(s->hash, s->raw, (size_t)bytes);
        return ET_OK;
    }
    if (!s->hash)
        return ET_OK;
    eti_hash_finish(s->hash, digest);
    if (strcmp(digest, source->digest) == 0)
        return ET_OK;
    et_status status = ET_FAIL(s->cx, ET_EFORMAT, "%s: '%s': digest mismatch",
                               source->file->file.path, source->t->name);
    et_error_set_code(s->cx, ET_E_CHECKPOINT);
    return status;
}

/* ---- comparing ---- */

/* a - b of two integers that a double need not hold. */
static double
i64_difference(int64_t a, int64_t b)
{
    return a >= b ? (double)((uint64_t)a - (uint64_t)b)
                  : -(double)((uint64_t)b - (uint64_t)a);
}

static void
differences(const struct stream *a, const struct stream *b, int64_t n, double *out)
{
    double other[PIECE];
    if (a->source->t->dtype == ET_I64 && b->source->t->dtype == ET_I64) {
        for (int64_t i = 0; i < n; i++)
            out[i] = i64_difference(((const int64_t *)(const void *)a->raw)[i],
                                    ((const int64_t *)(const void *)b->raw)[i]);
        return;
    }
    eti_widen(a->source->t->dtype, a->raw, n, out);
    eti_widen(b->source->t->dtype, b->raw, n, other);
    for (int64_t i = 0; i < n; i++) {
        bool same = out[i] == other[i] || (isnan(out[i]) && isnan(other[i]));
        bool finite = isfinite(out[i]) && isfinite(other[i]);
        out[i] = same ? 0 : finite ? out[i] - other[i] : INFINITY;
    }
}

static et_status
compare(struct stream *a, struct stream *b, struct eti_difference *d)
{
    double piece[PIECE], sum = 0;
    for (;;) {
        int64_t n = PIECE, m = PIECE;
        ET_TRY(stream_next(a, &n));
        ET_TRY(stream_next(b, &m));
        if (n == 0)
            break;
        differences(a, b, n, piece);
        for (int64_t i = 0; i < n; i++) {
            d->different += piece[i] != 0;
            d->max = fmax(d->max, fabs(piece[i]));
            sum += piece[i] * piece[i];
        }
        d->count += n;
    }
    d->rms = d->count ? sqrt(sum / (double)d->count) : 0;
    return ET_OK;
}

et_status
eti_tensor_compare(const struct eti_tensor *a, const struct eti_tensor *b,
                   struct eti_difference *out)
{
    struct stream *x = NULL, *y = NULL;
    *out = (struct eti_difference){0};
    et_status status = stream_new(a, &x);
    if (status == ET_OK)
        status = stream_new(b, &y);
    if (status == ET_OK)
        status = compare(x, y, out);
    stream_free(x);
    stream_free(y);
    return status;
}

/* ---- converting ---- */

struct conversion {
    struct et_ctx *cx;
    const struct eti_tensors *s;
    enum et_dtype dtype; /* of floats; NONE: their own */
    struct eti_draft draft;
    struct eti_converted *done;
};

static enum et_dtype
new_dtype(const struct conversion *c, enum et_dtype dtype)
{
    return c->dtype != ET_NONE && et_dtype_is_float(dtype) ? c->dtype : dtype;
}

/* What the new header says beside tensors. */
struct notes {
    struct eti_st_note *v; /* owned; names and values are borrowed */
    int n;
    char epoch[24], step[24];
};

/* What the old header said, or where the checkpoint came from. */
static et_status
make_notes(const struct eti_tensors *s, struct notes *out)
{
    const struct eti_manifest *m = &s->manifest;
    json_t *all = s->is_checkpoint
                      ? NULL
                      : json_object_get(s->file[0].header.json, "__metadata__");
    const char *key;
    json_t *value;
    void *block;
    *out = (struct notes){0};
    ET_TRY(et_alloc(s->cx, (4 + json_object_size(all)) * sizeof *out->v, &block));
    out->v = block;
    json_object_foreach(all, key, value) out->v[out->n++] =
        (struct eti_st_note){key, json_string_value(value)};
    if (s->is_checkpoint) {
        snprintf(out->epoch, sizeof out->epoch, "%" PRId64, m->epoch);
        snprintf(out->step, sizeof out->step, "%" PRId64, m->step);
        out->v[out->n++] = (struct eti_st_note){"checkpoint", m->label};
        out->v[out->n++] = (struct eti_st_note){"ep", out->epoch};
        out->v[out->n++] = (struct eti_st_note){"ba", out->step};
        out->v[out->n++] = (struct eti_st_note){"run", m->run_name};
    }
    return ET_OK;
}

static et_status
write_header(struct conversion *c)
{
    struct notes notes;
    void *block;
    uint8_t *header;
    int64_t at = 0;
    ET_TRY(
        et_alloc(c->cx, ((size_t)c->s->n + 1) * sizeof(struct eti_st_tensor), &block));
    struct eti_st_tensor *v = block;
    for (int64_t i = 0; i < c->s->n; i++) {
        const struct eti_st_tensor *t = c->s->v[i].t;
        int64_t count = (t->end - t->begin) / (int64_t)et_dtype_size(t->dtype);
        v[i] = *t;
        v[i].dtype = new_dtype(c, t->dtype);
        v[i].begin = at;
        v[i].end = at += count * (int64_t)et_dtype_size(v[i].dtype);
    }
    et_status status = make_notes(c->s, &notes);
    if (status == ET_OK)
        status = eti_st_print_notes(c->cx, v, c->s->n, notes.v, notes.n, &header,
                                    &c->done->bytes);
    et_free(c->cx, notes.v);
    et_free(c->cx, block);
    ET_TRY(status);
    status = eti_write_all(c->cx, c->draft.fd, c->draft.temporary, header,
                           (size_t)c->done->bytes);
    et_free(c->cx, header);
    c->done->bytes += at;
    return status;
}

static et_status
write_tensor(struct conversion *c, struct stream *s)
{
    enum et_dtype from = s->source->t->dtype, to = new_dtype(c, from);
    double wide[PIECE];
    int64_t width = (int64_t)et_dtype_size(to);
    for (;;) {
        int64_t n = PIECE;
        ET_TRY(stream_next(s, &n));
        if (n == 0)
            return ET_OK;
        if (from != to) {
            eti_widen(from, s->raw, n, wide);
            c->done->overflowed += eti_narrow(to, wide, n, s->raw);
        }
        ET_TRY(eti_write_all(c->cx, c->draft.fd, c->draft.temporary, s->raw,
                             (size_t)(n * width)));
    }
}

static et_status
write_all(struct conversion *c)
{
    ET_TRY(write_header(c));
    for (int64_t i = 0; i < c->s->n; i++) {
        struct stream *s = NULL;
        et_status status = stream_new(&c->s->v[i], &s);
        if (status == ET_OK)
            status = write_tensor(c, s);
        stream_free(s);
        ET_TRY(status);
        c->done->tensors++;
    }
    return ET_OK;
}

/* Is the file of ST that of F, or one of its folder? */
static bool
is_of(const struct eti_weight_file *f, const struct stat *st)
{
    struct stat input;
    for (int i = 0; i < f->n_shards; i++)
        if (is_of(&f->shard[i], st))
            return true;
    return f->file.fd >= 0 && fstat(f->file.fd, &input) == 0 &&
           input.st_dev == st->st_dev && input.st_ino == st->st_ino;
}

/* PATH is nothing that must stay: *TARGET is it, or what a link at it leads to. */
static et_status
check_target(const struct eti_tensors *s, const char *path, char target[ETI_PATH_MAX])
{
    char manifest[ETI_PATH_MAX];
    struct stat st;
    bool exists = stat(path, &st) == 0;
    if (snprintf(target, ETI_PATH_MAX, "%s", path) >= ETI_PATH_MAX)
        return ET_FAIL(s->cx, ET_EINVAL, "path longer than %d bytes", ETI_PATH_MAX - 1);
    if (exists && !S_ISREG(st.st_mode))
        return ET_FAIL(s->cx, ET_EINVAL, "cannot write %s: not a regular file", path);
    for (int i = 0; i < s->n_files && exists; i++)
        if (is_of(&s->file[i], &st))
            return ET_FAIL(s->cx, ET_EINVAL, "%s is what is to be converted", path);
    if (exists) {
        char *real = realpath(path, NULL); /* PATH_MAX is ETI_PATH_MAX */
        if (real)
            snprintf(target, ETI_PATH_MAX, "%s", real);
        free(real);
    }
    const char *slash = strrchr(target, '/');
    int folder = slash ? (int)(slash - target) + 1 : 0;
    if (snprintf(manifest, sizeof manifest, "%.*sMANIFEST", folder, target) <
            (int)sizeof manifest &&
        stat(manifest, &st) == 0)
        return ET_FAIL(s->cx, ET_EINVAL,
                       "%s lies in a checkpoint, which stays as it is", path);
    return ET_OK;
}

et_status
eti_tensors_convert(const struct eti_tensors *s, enum et_dtype dtype, const char *path,
                    struct eti_converted *out)
{
    struct conversion c = {.cx = s->cx, .s = s, .dtype = dtype, .done = out};
    char target[ETI_PATH_MAX];
    *out = (struct eti_converted){0};
    ET_TRY(check_target(s, path, target));
    ET_TRY(eti_draft_open(s->cx, target, &c.draft));
    return eti_draft_close(&c.draft, write_all(&c));
}
