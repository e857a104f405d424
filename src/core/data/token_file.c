/* SPDX-License-Identifier: Apache-2.0 */
/* token_file.c: datasets whose tokens lie in a file. See token_file.h.
 *
 * Windows are read where they lie with pread: a window is a few hundred bytes of the
 * page cache, half a microsecond, and a file that is cut while training is an error and
 * not a signal. So is one that is changed, or whose name now means another: an epoch of
 * both would be of neither, and could not be trained again. */
#include "core/data/token_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK_BYTES = 8192 };

et_status
eti_token_count(int64_t n, int64_t header, int width, int64_t *out,
                struct et_error *why)
{
    *out = 0;
    if (n < header)
        return eti_why(why, ET_EFORMAT, "%" PRId64 " bytes but a header of %" PRId64, n,
                       header);
    if ((n - header) % width)
        return eti_why(why, ET_EFORMAT, "%" PRId64 " bytes is not a multiple of %d",
                       n - header, width);
    *out = (n - header) / width;
    return ET_OK;
}

et_status
eti_token_file_open(struct et_ctx *cx, struct et_dataset *self, const char *path,
                    int fd, int width, int64_t header, int64_t vocab_size,
                    enum eti_token_split split)
{
    struct eti_token_file *t = self->state;
    struct stat st;
    t->watched = fd < 0;
    if (fd < 0)
        ET_TRY(eti_file_open(cx, path, &fd, &t->file.size));
    t->file.fd = fd;
    t->is_open = true;
    if (fstat(fd, &st) != 0)
        return ET_FAIL(cx, ET_EIO, "cannot read %s: %s", path, strerror(errno));
    t->file.size = st.st_size;
    t->changed = st.st_mtim;
    snprintf(t->file.path, sizeof t->file.path, "%s", path);
    struct et_error why = {0};
    int64_t n;
    if (eti_token_count(t->file.size, header, width, &n, &why) != ET_OK)
        return ET_FAIL(cx, ET_EFORMAT, "%s: %s", path, why.message);
    if (n == 0)
        return ET_FAIL(cx, ET_EFORMAT, "%s: no tokens in %" PRId64 " bytes", path,
                       t->file.size);
    int64_t from = 0, to = n;
    if (split == ETI_90_10 && self->common->split == ET_SPLIT_TRAIN)
        to = n - n / 10;
    else if (split == ETI_90_10)
        from = n - n / 10;
    t->width = width;
    t->begin = header + from * width;
    et_facts_stream(&self->facts, to - from, vocab_size);
    self->facts.bytes = (to - from) * width;
    return ET_OK;
}

/* Widens N tokens of BYTES; the first that is too large, or -1. */
static int64_t
widen(const uint8_t *bytes, int width, int64_t n, int64_t vocab_size, int32_t *out)
{
    int32_t largest = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t token = 0;
        memcpy(&token, bytes + width * i, (size_t)width);
        out[i] = token > INT32_MAX ? INT32_MAX : (int32_t)token;
        largest = out[i] > largest ? out[i] : largest;
    }
    if (largest < vocab_size)
        return -1;
    int64_t i = 0;
    while (out[i] < vocab_size)
        i++;
    return i;
}

static bool
has_new_time(const struct eti_token_file *t, const struct stat *st)
{
    return st->st_mtim.tv_sec != t->changed.tv_sec ||
           st->st_mtim.tv_nsec != t->changed.tv_nsec;
}

/* Is it still the file that was opened? 0.2 us. */
static et_status
check_unchanged(const struct eti_token_file *t, struct et_error *why)
{
    const struct eti_file *f = &t->file;
    struct stat st;
    char was[32], is[32];
    if (!t->watched)
        return ET_OK;
    bool good = fstat(f->fd, &st) == 0;
    if (good && st.st_size == f->size && has_new_time(t, &st)) {
        /* A write sets the time before the size: a moment later both are there. */
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        good = fstat(f->fd, &st) == 0;
    }
    if (!good)
        return eti_why(why, ET_EIO, "cannot read %s: %s", f->path, strerror(errno));
    if (st.st_size != f->size)
        return eti_why(why, ET_EIO, "%s %s from %s to %s while training", f->path,
                       st.st_size < f->size ? "shrank" : "grew",
                       eti_size_text(f->size, was, sizeof was),
                       eti_size_text(st.st_size, is, sizeof is));
    if (st.st_nlink == 0)
        return eti_why(why, ET_EIO, "%s was removed or replaced while training",
                       f->path);
    if (has_new_time(t, &st))
        return eti_why(why, ET_EIO, "%s was changed while training", f->path);
    return ET_OK;
}

et_status
eti_token_file_tokens(const struct et_dataset *self, int64_t at, int64_t n,
                      int32_t *out, struct et_error *why)
{
    const struct eti_token_file *t = self->state;
    const int64_t vocab_size = self->facts.field[ET_FIELD_X].below;
    uint8_t bytes[CHUNK_BYTES];
    while (n > 0) {
        int64_t some = n < CHUNK_BYTES / t->width ? n : CHUNK_BYTES / t->width;
        ET_TRY(eti_file_read(&t->file, bytes, some * t->width, t->begin + at * t->width,
                             why));
        int64_t bad = widen(bytes, t->width, some, vocab_size, out);
        if (bad >= 0)
            return eti_why(why, ET_EFORMAT,
                           "%s: token %d at %" PRId64 " >= vocabulary %" PRId64,
                           t->file.path, out[bad], at + bad, vocab_size);
        at += some;
        out += some;
        n -= some;
    }
    return check_unchanged(t, why);
}

void
eti_token_file_close(struct et_dataset *self)
{
    struct eti_token_file *t = self->state;
    if (t->is_open)
        close(t->file.fd);
}
