/* SPDX-License-Identifier: Apache-2.0 */
/* mds_files.c: where the shards of an MDS folder lie: beside index.json, or unpacked in
 * the user's cache. See mds.h. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#ifdef ET_ZSTD
#include <zstd.h>
#endif

#include "core/base/seams.h"
#include "core/data/cache.h"
#include "core/data/mds.h"

struct unpacking {
    const char *path; /* of the compressed file */
    int64_t bytes;    /* that it has to become */
};

#ifdef ET_ZSTD
enum { CHUNK = 1 << 17 };

/* Unpacks the N bytes of IN into FD. */
static et_status
unpack_chunk(struct et_ctx *cx, ZSTD_DStream *z, const struct unpacking *u,
             const uint8_t *bytes, size_t n, int fd, int64_t *done, size_t *hint)
{
    uint8_t out[CHUNK];
    ZSTD_inBuffer in = {bytes, n, 0};
    bool full = true;
    while (in.pos < in.size || full) {
        ZSTD_outBuffer to = {out, sizeof out, 0};
        *hint = ZSTD_decompressStream(z, &to, &in);
        if (ZSTD_isError(*hint))
            return ET_FAIL(cx, ET_EFORMAT, "%s: %s", u->path, ZSTD_getErrorName(*hint));
        *done += (int64_t)to.pos;
        if (*done > u->bytes)
            return ET_FAIL(cx, ET_EFORMAT,
                           "%s: more than the %" PRId64 " bytes that its index says",
                           u->path, u->bytes);
        ET_TRY(eti_write_all(cx, fd, "a shard that is unpacked", out, to.pos));
        full = to.pos == sizeof out && *hint != 0;
    }
    return ET_OK;
}

static et_status
unpack_file(struct et_ctx *cx, ZSTD_DStream *z, const struct unpacking *u,
            const struct eti_file *f, int fd)
{
    uint8_t bytes[CHUNK];
    struct et_error why = {0};
    int64_t done = 0;
    size_t hint = 1;
    for (int64_t at = 0; at < f->size; at += CHUNK) {
        int64_t n = f->size - at < CHUNK ? f->size - at : CHUNK;
        et_status status = eti_file_read(f, bytes, n, at, &why);
        if (status != ET_OK)
            return ET_FAIL(cx, status, "%s", why.message);
        ET_TRY(unpack_chunk(cx, z, u, bytes, (size_t)n, fd, &done, &hint));
    }
    if (hint != 0 || done != u->bytes)
        return ET_FAIL(cx, ET_EFORMAT,
                       "%s: %" PRId64 " bytes, and its index says %" PRId64, u->path,
                       done, u->bytes);
    return ET_OK;
}

static et_status
unpack(struct et_ctx *cx, int fd, void *data)
{
    const struct unpacking *u = data;
    struct eti_file f;
    snprintf(f.path, sizeof f.path, "%s", u->path);
    ET_TRY(eti_file_open(cx, u->path, &f.fd, &f.size));
    ZSTD_DStream *z = ZSTD_createDStream();
    et_status status = z ? unpack_file(cx, z, u, &f, fd)
                         : ET_FAIL(cx, ET_ENOMEM, "no memory to unpack %s", u->path);
    ZSTD_freeDStream(z);
    close(f.fd);
    return status;
}
#else
static et_status
unpack(struct et_ctx *cx, int fd, void *data)
{
    const struct unpacking *u = data;
    (void)fd;
    et_status status =
        ET_FAIL(cx, ET_ENOTSUP, "%s: this program was built without zstd", u->path);
    et_hint(cx, "unzstd it, or build with libzstd-dev");
    return status;
}
#endif

static bool
has_size(int fd, void *data)
{
    const struct unpacking *u = data;
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_size == u->bytes;
}

/* OUT: the file in the cache that the compressed one at PATH becomes. */
static et_status
find_unpacked(struct et_ctx *cx, const char *path, int64_t bytes,
              char out[ETI_PATH_MAX])
{
    struct unpacking u = {path, bytes};
    char folder[ETI_PATH_MAX], key[ETI_PATH_MAX + 128], name[64];
    struct stat st;
    int fd;
    if (stat(path, &st) != 0)
        return ET_FAIL(cx, errno == ENOENT ? ET_ENOENT : ET_EIO, "cannot read %s: %s",
                       path, strerror(errno));
    if (!eti_cache_folder(folder))
        return ET_FAIL(cx, ET_EIO, "no folder for a cache: set XDG_CACHE_HOME");
    int n = snprintf(key, sizeof key, "%s %lld %lld %ld", path, (long long)st.st_size,
                     (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    snprintf(name, sizeof name, "mds-%016" PRIx64, XXH3_64bits(key, (size_t)n));
    ET_TRY(eti_cache_open_in(cx, folder, name, has_size, unpack, &u, &fd));
    close(fd);
    return eti_file_path(cx, out, folder, name);
}

et_status
eti_mds_path(struct et_ctx *cx, const char *folder, const struct eti_mds_shard *shard,
             char out[ETI_PATH_MAX])
{
    char zipped[ETI_PATH_MAX];
    struct stat st;
    ET_TRY(eti_file_path(cx, out, folder, shard->raw));
    bool is_there = stat(out, &st) == 0;
    if (!is_there && shard->zipped[0]) {
        ET_TRY(eti_file_path(cx, zipped, folder, shard->zipped));
        return find_unpacked(cx, zipped, shard->bytes, out);
    }
    if (!is_there) {
        et_status status = ET_FAIL(cx, errno == ENOENT ? ET_ENOENT : ET_EIO,
                                   "cannot read %s: %s", out, strerror(errno));
        et_hint(cx, "it is a shard that index.json beside it lists");
        return status;
    }
    if (st.st_size != shard->bytes)
        return ET_FAIL(cx, ET_EFORMAT, "%s: %lld bytes, and its index says %lld", out,
                       (long long)st.st_size, (long long)shard->bytes);
    return ET_OK;
}
