/* SPDX-License-Identifier: Apache-2.0 */
/* file.h: whole files into memory, gzip or not. */
#ifndef ETI_DATA_FILE_H
#define ETI_DATA_FILE_H

#include <stdint.h>

#include "etude/ctx.h"

enum { ETI_PATH_MAX = 4096 };

/* More than any data set that is held in memory whole. */
#define ETI_FILE_MAX ((int64_t)1 << 34)

struct eti_bytes {
    uint8_t *data; /* et_alloc; owned */
    int64_t n;
};

/* Writes "DIR/NAME" to OUT. EINVAL where it does not fit. */
ET_NODISCARD et_status eti_file_path(struct et_ctx *cx, char out[ETI_PATH_MAX],
                                     const char *dir, const char *name);
/* Opens for reading a regular file and nothing else: EFORMAT for a folder, fifo or
 * device. ENOENT, EIO. */
ET_NODISCARD et_status eti_file_open(struct et_ctx *cx, const char *path, int *fd,
                                     int64_t *size);
/* Reads all of PATH; where it does not exist, of PATH.gz. What begins as gzip does is
 * inflated. At most LIMIT bytes, before and after. Free with et_free(cx, out->data). */
ET_NODISCARD et_status eti_file_load(struct et_ctx *cx, const char *path, int64_t limit,
                                     struct eti_bytes *out);
/* A file that stays open and is read by parts, from any thread. */
struct eti_file {
    int fd;       /* -1: closed */
    int64_t size; /* when it was opened */
    char path[ETI_PATH_MAX];
};
/* Reads N bytes at OFFSET. EIO with a sentence in WHY, also where the file "shrank
 * while training": never a signal, as a mapping would bring. */
ET_NODISCARD et_status eti_file_read(const struct eti_file *f, void *out, int64_t n,
                                     int64_t offset, struct et_error *why);

/* "1.5 GiB"; returns BUF. */
const char *eti_size_text(int64_t bytes, char *buf, size_t n);

/* Fills WHY and returns STATUS: what code without a context of its own does. */
et_status eti_why(struct et_error *why, et_status status, const char *fmt, ...)
    ET_PRINTF(3, 4);

#endif
