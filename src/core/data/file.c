/* file.c: whole files into memory, gzip or not. See file.h. */
#include "core/data/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* Deflate cannot do better than 1032 to 1, so that a gzip trailer that claims more is a
 * lie (zlib's technical notes). */
enum { DEFLATE_RATIO = 1032, READ_CHUNK = 1 << 30 };

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
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return ET_FAIL(cx, errno == ENOENT ? ET_ENOENT : ET_EIO, "cannot read %s: %s",
                       path, strerror(errno));
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return ET_FAIL(cx, ET_EIO, "%s: not a regular file", path);
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

/* Reads what GZ gives into memory for CAPACITY bytes, one more than it should. */
static et_status
read_all(struct et_ctx *cx, const char *path, gzFile gz, int64_t capacity,
         struct eti_bytes *out)
{
    while (out->n < capacity) {
        int64_t want = capacity - out->n < READ_CHUNK ? capacity - out->n : READ_CHUNK;
        int got = gzread(gz, out->data + out->n, (unsigned)want);
        int code;
        const char *text = gzerror(gz, &code);
        if (got < 0 || code == Z_BUF_ERROR)
            return ET_FAIL(cx, code == Z_ERRNO ? ET_EIO : ET_EFORMAT,
                           "%s: %s (after %lld bytes)", path,
                           code == Z_BUF_ERROR ? "compressed data ends early"
                           : code == Z_ERRNO   ? strerror(errno)
                                               : text,
                           (long long)out->n);
        if (got == 0)
            return ET_OK;
        out->n += got;
    }
    return ET_FAIL(cx, ET_EFORMAT, "%s: longer than the %lld bytes it claims to hold",
                   path, (long long)capacity - 1);
}

/* How many bytes the file holds once inflated, by its own account. */
static et_status
expected_size(struct et_ctx *cx, const char *path, int fd, int64_t size, int64_t *out)
{
    uint8_t magic[2], tail[4];
    *out = size;
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

static et_status
load_fd(struct et_ctx *cx, const char *path, int fd, int64_t size, int64_t limit,
        struct eti_bytes *out)
{
    int64_t n;
    ET_TRY(expected_size(cx, path, fd, size, &n));
    if (n > limit || size > limit)
        return ET_FAIL(cx, ET_EFORMAT, "%s: %lld bytes exceed %lld", path,
                       (long long)(n > size ? n : size), (long long)limit);
    ET_TRY(et_alloc(cx, (size_t)n + 1, (void **)&out->data));
    int copy = dup(fd); /* gzclose would close ours */
    gzFile gz = copy < 0 ? NULL : gzdopen(copy, "rb");
    if (!gz) {
        if (copy >= 0)
            close(copy);
        return ET_FAIL(cx, ET_EIO, "cannot read %s: %s", path, strerror(errno));
    }
    gzbuffer(gz, 1 << 17);
    et_status s = read_all(cx, path, gz, n + 1, out);
    gzclose(gz);
    return s;
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
