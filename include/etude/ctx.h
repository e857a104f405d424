/* SPDX-License-Identifier: Apache-2.0 */
/* ctx.h: the context of one thread of work: its error, log, and allocator.
 *
 *     struct et_ctx *cx;
 *     if (et_ctx_new(&cx) != ET_OK)
 *         return 1;
 *     ...
 *     et_ctx_free(&cx);
 *
 * One thread per context. Threads share nothing but queues. */
#ifndef ETUDE_CTX_H
#define ETUDE_CTX_H

#include <stdint.h>

#include "etude/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum et_log_level {
    ET_LOG_DEBUG = 0,
    ET_LOG_INFO = 1,
    ET_LOG_WARN = 2,
    ET_LOG_ERROR = 3
};

/* Receives each log line; TEXT has no newline and is borrowed for the call. */
typedef void et_log_fn(void *data, enum et_log_level level, const char *text);

struct et_ctx;

/* Creates a context that logs nowhere. ENOMEM leaves *OUT NULL, and so does ENOTSUP:
 * the program was compiled with other headers than the library (abi.h).
 * et_error_get(NULL) says why. */
ET_NODISCARD et_status et_ctx_new(struct et_ctx **out);
/* Everything made with it must be gone. NULL within is allowed; *CX becomes NULL. */
void et_ctx_free(struct et_ctx **cx);

/* Checks of the order in which things end. ON: a context is not freed while there are
 * devices or memory of it, nor a device closed while there are graphs or storages on
 * it, and an evaluation does not read a leaf that was freed after it was built. ON is
 * the start in a library built with --enable-debug. Without them each of these is
 * undefined. They cost memory for the handles of leaves that are freed while a graph
 * on their device has nodes, until its reset.
 *
 * An evaluation returns EINVAL. et_ctx_free and et_device_close, which return nothing,
 * do nothing: the pointer stays what it was, for another try. What is left is counted
 * in a sentence, which is the context's error unless it has one, and a line of its log,
 * or of stderr where it logs nowhere. */
void et_ctx_set_checks(struct et_ctx *cx, bool on);

/* Lines at LEVEL and above go to FN. DATA is borrowed until the context is freed. */
void et_ctx_set_log(struct et_ctx *cx, enum et_log_level level, et_log_fn *fn,
                    void *data);
/* One line to the log: at most 2047 bytes, no newline. */
void et_report(struct et_ctx *cx, enum et_log_level level, const char *fmt, ...)
    ET_PRINTF(3, 4);
/* Folders, with colons between them, in which device modules (libetude-cpu.so ...) are
 * looked for before any other place: then come those of the environment's
 * ETUDE_MODULE_PATH, and the folder "etude" beside the library. Folders without the
 * module are passed over. FOLDERS is copied; NULL: none. ENOMEM leaves it as it was. */
ET_NODISCARD et_status et_ctx_set_module_path(struct et_ctx *cx, const char *folders);

const char *et_log_level_name(enum et_log_level level); /* "debug" ... "error" */

/* The choke point for host memory. Blocks are 64-byte aligned and zeroed; bytes in use
 * and their peak are counted per context. ENOMEM leaves *OUT NULL. */
ET_NODISCARD et_status et_alloc(struct et_ctx *cx, size_t bytes, void **out);
/* Gives BLOCK back to the context that it is from. NULL does nothing. */
void et_free(struct et_ctx *cx, void *block);

struct et_alloc_stats {
    uint64_t allocs; /* blocks ever handed out */
    uint64_t live;   /* blocks not yet freed */
    size_t bytes;    /* in use now */
    size_t peak;     /* most ever in use */
};
void et_alloc_get_stats(const struct et_ctx *cx, struct et_alloc_stats *out);

/* For tests: the K-th allocation from now fails (1 = the next); 0 = none does. */
void et_alloc_fail_at(struct et_ctx *cx, uint64_t k);
/* The K-th fails and all after it, until et_alloc_fail_at(cx, 0). */
void et_alloc_fail_from(struct et_ctx *cx, uint64_t k);

#ifdef __cplusplus
}
#endif
#endif
