/* SPDX-License-Identifier: Apache-2.0 */
/* file.c: whole files into memory, gzip or not. See file.h. */
#include "core/data/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zlib.h>

#include "core/base/seams.h"
#include "core/data/cache.h"

/* Deflate cannot do better than 1032 to 1, so that a gzip trailer that claims more is a
 * lie (zlib's technical notes). */
enum {
    DEFLATE_RATIO = 1032,
    CHUNK = 1 << 16,
    READ_MOST = 1 << 30,
    /* Inflating takes 5 ns a byte, reading from the cache 0.4 (measured on 2 cores of a
     * server): below this the difference is less than 5 ms. */
    CACHE_FROM = 1 << 20,
};

et_status
eti_why(struct et_error *why, et_status status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(why->message, sizeof why->message, fmt, args);
    va_end(args);
    why->status = status;
    return status;
}

et_status
eti_file_path(struct et_ctx *cx, char out[ETI_PATH_MAX], const char *dir,
              const char *name)
{
    int n = snprintf(out, ETI_PATH_MAX, "%s/%s", dir, name);
    if (n >= ETI_PATH_MAX)
        return ET_FAIL(cx, ET_EINVAL, "path of %d bytes exceeds %d: %.64s...", n,
                       ETI_PATH_MAX - 1, dir);
    return ET_OK;
}

et_status
eti_file_open(struct et_ctx *cx, const char *path, int *out, int64_t *size)
{
    /* Not blocking, so that opening a fifo returns. */
    int fd = eti_ctx_seams(cx)->file.open(AT_FDCWD, path,
                                          O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0 && errno != ELOOP)
        return ET_FAIL(cx, errno == ENOENT ? ET_ENOENT : ET_EIO, "cannot read %s: %s",
                       path, strerror(errno));
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        if (fd >= 0)
            close(fd);
        return ET_FAIL(cx, ET_EFORMAT, "%s: not a regular file", path);
    }
    *out = fd;
    *size = st.st_size;
    return ET_OK;
}

const char *
eti_size_text(int64_t bytes, char *buf, size_t n)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)bytes;
    int unit = 0;
    while (v >= 1024 && unit < 4) {
        v /= 1024;
        unit++;
    }
    snprintf(buf, n, unit ? "%.1f %s" : "%.0f %s", v, units[unit]);
    return buf;
}

et_status
eti_file_read(const struct eti_file *f, void *out, int64_t n, int64_t offset,
              struct et_error *why)
{
    for (int64_t at = 0; at < n;) {
        ssize_t got = pread(f->fd, (char *)out + at, (size_t)(n - at), offset + at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return eti_why(why, ET_EIO, "cannot read %s: %s", f->path, strerror(errno));
        if (got == 0) {
            struct stat st = {0};
            char was[32], is[32];
            fstat(f->fd, &st);
            return eti_why(why, ET_EIO, "%s shrank from %s to %s while training",
                           f->path, eti_size_text(f->size, was, sizeof was),
                           eti_size_text(st.st_size, is, sizeof is));
        }
        at += got;
    }
    return ET_OK;
}

/* ---- gzip ---- */

/* What is being inflated. */
struct zipped {
    const char *path;
    int fd;
    int64_t n;     /* bytes it holds, by its own account */
    uint8_t *data; /* where they go: memory for n + 1, or NULL: to a file */
    int64_t got;   /* bytes so far */
};

/* How many bytes the file holds once inflated, by its own account; -1: it is no
 * gzip. */
static et_status
inflated_size(struct et_ctx *cx, const char *path, int fd, int64_t size, int64_t *out)
{
    uint8_t magic[2], tail[4];
    *out = -1;
    if (size < 18) /* the shortest gzip file */
        return ET_OK;
    if (pread(fd, magic, 2, 0) != 2 || pread(fd, tail, 4, size - 4) != 4)
        return ET_FAIL(cx, ET_EIO, "cannot read %s: %s", path, strerror(errno));
    if (magic[0] != 0x1f || magic[1] != 0x8b)
        return ET_OK;
    *out = (int64_t)tail[0] | (int64_t)tail[1] << 8 | (int64_t)tail[2] << 16 |
           (int64_t)tail[3] << 24;
    if (*out > size * DEFLATE_RATIO)
        return ET_FAIL(cx, ET_EFORMAT, "%s: %lld bytes cannot hold %lld bytes", path,
                       (long long)size, (long long)*out);
    return ET_OK;
}

/* Inflates to memory, or to OUT. One byte more than it claims is asked for: it must not
 * come. */
static et_status
inflate_all(struct et_ctx *cx, gzFile gz, struct zipped *z, int out)
{
    uint8_t chunk[CHUNK];
    while (z->got <= z->n) {
        int64_t room = z->n + 1 - z->got, most = z->data ? READ_MOST : CHUNK;
        uint8_t *to = z->data ? z->data + z->got : chunk;
        int got = gzread(gz, to, (unsigned)(room < most ? room : most)), code;
        const char *text = gzerror(gz, &code);
        if (got < 0 || code == Z_BUF_ERROR)
            return ET_FAIL(cx, code == Z_ERRNO ? ET_EIO : ET_EFORMAT,
                           "%s: %s (after %lld bytes)", z->path,
                           code == Z_BUF_ERROR ? "compressed data ends early"
                           : code == Z_ERRNO   ? strerror(errno)
                                               : text,
                           (long long)z->got);
        if (got == 0)
            return ET_OK;
        z->got += got;
        if (!z->data)
            ET_TRY(eti_write_all(cx, out, "what it inflates to", chunk, (size_t)got));
    }
    return ET_FAIL(cx, ET_EFORMAT, "%s: longer than the %lld bytes it claims to hold",
                   z->path, (long long)z->n);
}

static et_status
inflate_to(struct et_ctx *cx, int out, void *data)
{
    struct zipped *z = data;
    int copy = dup(z->fd); /* gzclose would close ours */
    if (copy >= 0)
        lseek(copy, 0, SEEK_SET);
    gzFile gz = copy < 0 ? NULL : gzdopen(copy, "rb");
    if (!gz) {
        if (copy >= 0)
            close(copy);
        return ET_FAIL(cx, ET_EIO, "cannot read %s: %s", z->path, strerror(errno));
    }
    gzbuffer(gz, CHUNK);
    z->got = 0;
    et_status s = inflate_all(cx, gz, z, out);
    gzclose(gz);
    return s;
}

/* ---- loading ---- */

/* Opens what the file inflates to in the cache; false where that does not work. */
static bool
open_inflated(struct et_ctx *cx, struct zipped *z, int *fd)
{
    struct stat st;
    if (z->n < CACHE_FROM || fstat(z->fd, &st) != 0)
        return false;
    char key[ETI_PATH_MAX + 128], name[64];
    int n = snprintf(key, sizeof key, "%s %lld %lld %lld %ld", z->path,
                     (long long)st.st_ino, (long long)st.st_size,
                     (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    snprintf(name, sizeof name, "inflated-%016llx",
             (unsigned long long)XXH3_64bits(key, (size_t)n));
    if (eti_cache_open(cx, name, z->n, inflate_to, z, fd) == ET_OK)
        return true;
    et_error_clear(cx); /* it is inflated into memory */
    return false;
}

static et_status
load_fd(struct et_ctx *cx, const char *path, int fd, int64_t size, int64_t limit,
        struct eti_bytes *out)
{
    struct zipped z = {.path = path, .fd = fd};
    ET_TRY(inflated_size(cx, path, fd, size, &z.n));
    int64_t n = z.n < 0 ? size : z.n;
    if (n > limit || size > limit)
        return ET_FAIL(cx, ET_EFORMAT, "%s: %lld bytes exceed %lld", path,
                       (long long)(n > size ? n : size), (long long)limit);
    struct eti_file plain = {.fd = fd, .size = n};
    struct et_error why = {0};
    ET_TRY(et_alloc(cx, (size_t)n + 1, (void **)&out->data));
    bool cached = z.n >= 0 && open_inflated(cx, &z, &plain.fd);
    out->n = n;
    if (z.n >= 0 && !cached) {
        z.data = out->data;
        ET_TRY(inflate_to(cx, -1, &z));
        out->n = z.got;
        return ET_OK;
    }
    snprintf(plain.path, sizeof plain.path, "%s", path);
    et_status s = eti_file_read(&plain, out->data, n, 0, &why);
    if (cached)
        close(plain.fd);
    return s == ET_OK ? ET_OK : ET_FAIL(cx, s, "%s", why.message);
}

et_status
eti_file_load(struct et_ctx *cx, const char *path, int64_t limit, struct eti_bytes *out)
{
    char zipped[ETI_PATH_MAX];
    int fd;
    int64_t size;
    *out = (struct eti_bytes){0};
    if (access(path, F_OK) != 0 && strlen(path) + 4 <= sizeof zipped) {
        snprintf(zipped, sizeof zipped, "%s.gz", path);
        if (access(zipped, F_OK) == 0)
            path = zipped;
    }
    ET_TRY(eti_file_open(cx, path, &fd, &size));
    et_status s = load_fd(cx, path, fd, size, limit, out);
    close(fd);
    if (s != ET_OK) {
        et_free(cx, out->data);
        *out = (struct eti_bytes){0};
    }
    return s;
}
