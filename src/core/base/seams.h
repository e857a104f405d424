/* SPDX-License-Identifier: Apache-2.0 */
/* seams.h: where the program touches the world: files, clocks, and named points.
 *
 * Every context reaches them through one table, so that a test can make the k-th write
 * fail, turn the clock back, or kill the process at a point, with the very program that
 * people run: nothing is compiled differently (RELIABILITY.md section 11). */
#ifndef ETI_SEAMS_H
#define ETI_SEAMS_H

#include <dirent.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "etude/ctx.h"

/* What the system calls of the same names do, errno included. DIR is an open folder or
 * AT_FDCWD. */
struct eti_file_calls {
    int (*open)(int dir, const char *path, int flags, mode_t mode);
    ssize_t (*read)(int fd, void *buf, size_t n, off_t at);
    ssize_t (*write)(int fd, const void *buf, size_t n);
    int (*sync)(int fd);
    int (*close)(int fd);
    int (*rename)(int from_dir, const char *from, int to_dir, const char *to);
    int (*unlink)(int dir, const char *path, int flags);
    int (*make_folder)(int dir, const char *path, mode_t mode);
    int (*stat)(int fd, struct stat *out);
    struct dirent *(*next)(DIR *d);
};

struct eti_seams {
    struct eti_file_calls file;
    double (*monotonic)(void); /* seconds that only grow */
    double (*wall)(void);      /* seconds since the epoch of 1970 */
    /* Called at points of a run: events by their names, and those that eti_reach names.
     * NULL: nobody listens. */
    void (*reach)(const char *point);
};
/* The system itself: what a context has unless it is given others. */
extern const struct eti_seams eti_system;

/* SEAMS is borrowed for as long as CX lives. */
void eti_ctx_set_seams(struct et_ctx *cx, const struct eti_seams *seams);
const struct eti_seams *eti_ctx_seams(const struct et_ctx *cx);

/* Seconds that only grow: for every interval, time-out and duration. */
static inline double
eti_monotonic(const struct et_ctx *cx)
{
    return eti_ctx_seams(cx)->monotonic();
}

/* Seconds since the epoch of 1970, which may jump either way: for people to read, and
 * nothing else. */
static inline double
eti_wall(const struct et_ctx *cx)
{
    return eti_ctx_seams(cx)->wall();
}

static inline void
eti_reach(const struct et_ctx *cx, const char *point)
{
    const struct eti_seams *seams = eti_ctx_seams(cx);
    if (seams->reach)
        seams->reach(point);
}

/* ---- whole operations on files, through the seams ----
 * Calls that a signal cut short are made again. EIO with path and reason. */

/* Opens DIR/NAME, close-on-exec, following no link. ENOENT where there is none. */
ET_NODISCARD et_status eti_open_at(struct et_ctx *cx, int dir, const char *name,
                                   int flags, mode_t mode, int *fd);
/* Opens a folder that the user named: it may be a link to one. ENOENT where there is
 * none. */
ET_NODISCARD et_status eti_open_folder(struct et_ctx *cx, const char *path, int *fd);
/* The folder that PATH lies in. */
ET_NODISCARD et_status eti_open_parent(struct et_ctx *cx, const char *path, int *fd);
void eti_close(struct et_ctx *cx, int fd);
/* NAME is for the message. */
ET_NODISCARD et_status eti_write_all(struct et_ctx *cx, int fd, const char *name,
                                     const void *bytes, size_t n);
/* EFORMAT when the file ends before. */
ET_NODISCARD et_status eti_read_all(struct et_ctx *cx, int fd, const char *name,
                                    void *bytes, size_t n, int64_t at);
ET_NODISCARD et_status eti_sync(struct et_ctx *cx, int fd, const char *name);
/* The folder that PATH lies in: what is new or renamed there is kept over a power
 * cut. */
ET_NODISCARD et_status eti_sync_parent(struct et_ctx *cx, const char *path);
ET_NODISCARD et_status eti_rename_at(struct et_ctx *cx, int from_dir, const char *from,
                                     int to_dir, const char *to);

/* The folder too: EEXIST is no error. *MADE: there was none. */
ET_NODISCARD et_status eti_make_folder_at(struct et_ctx *cx, int dir, const char *name,
                                          bool *made);
/* A file, or with AT_REMOVEDIR in FLAGS an empty folder. */
ET_NODISCARD et_status eti_unlink_at(struct et_ctx *cx, int dir, const char *name,
                                     int flags);
/* Calls FN with each name in the folder open at DIR but "." and "..", until it fails.
 * PATH is for messages. */
ET_NODISCARD et_status eti_for_each_name(struct et_ctx *cx, int dir, const char *path,
                                         et_status (*fn)(void *data, const char *name),
                                         void *data);

/* Makes DIR/NAME a file of mode 0600 with these bytes: written beside, synced, renamed,
 * the folder synced. What was there stays until then. */
ET_NODISCARD et_status eti_replace_at(struct et_ctx *cx, int dir, const char *name,
                                      const void *bytes, size_t n);

#endif
