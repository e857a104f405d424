/* SPDX-License-Identifier: Apache-2.0 */
/* status.h: how a function says that it failed, and why.
 *
 * Every fallible function returns et_status; results leave through out-parameters.
 * The code tells the caller what to do, the sentence in the context tells the person.
 * The first error wins: what happens while cleaning up never overwrites it. Whoever
 * handles an error clears it.
 *
 *     et_status status = et_model_load_weights(cx, model, path);
 *     if (status != ET_OK) {
 *         fprintf(stderr, "%s\n", et_error_get(cx)->message);
 *         et_error_clear(cx);
 *     }
 *
 * A pointer must be there unless the comment of its function says what NULL means. One
 * that is missing is looked for by each function: nothing happens then, and one that
 * returns a status gives EINVAL, "et_graph_new: dev is NULL"; others return NULL, 0 or
 * false. What ends things (et_graph_free) takes NULL, and a pointer that holds it. */
#ifndef ETUDE_STATUS_H
#define ETUDE_STATUS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* code, value, name, sentence. A code exists only where some caller acts differently on
 * it. */
#define ET_STATUS_MAP(X)                                                               \
    X(OK, 0, "ok", "no error")                                                         \
    X(ENOMEM, 1, "out of memory", "free memory or lower the batch size")               \
    X(EINVAL, 2, "invalid value", "an argument or setting is out of range")            \
    X(ESHAPE, 3, "shape mismatch", "the shapes of the operands do not fit")            \
    X(EDTYPE, 4, "dtype mismatch", "the dtype is not one this operation takes")        \
    X(EFORMAT, 5, "bad format", "a file or message is malformed")                      \
    X(EIO, 6, "input/output error", "the operating system refused")                    \
    X(ENOENT, 7, "not found", "a file or name does not exist")                         \
    X(ENOTSUP, 8, "not supported", "this combination is not available")                \
    X(ECANCELED, 9, "canceled", "stopped on request")                                  \
    X(EPEER, 10, "peer failed", "another rank failed or left")                         \
    X(EDEVICE, 11, "device lost", "the device is gone; restart the process")           \
    X(EINTERNAL, 12, "internal error", "a bug in etude")

typedef enum et_status {
#define ET_STATUS_ENUM(code, number, name, hint) ET_##code = number,
    ET_STATUS_MAP(ET_STATUS_ENUM)
#undef ET_STATUS_ENUM
        ET_STATUS_COUNT
} et_status;

#define ET_NODISCARD         __attribute__((warn_unused_result))
#define ET_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

struct et_ctx;

struct et_error {
    et_status status;   /* ET_OK when nothing has failed */
    int code;           /* E-number for people, e.g. 1203; 0 when the status says all */
    const char *file;   /* place in etude's source */
    int line;           /* likewise */
    char message[1024]; /* one sentence with numbers, no newline */
    char hint[256];     /* what to try; may be empty */
};

/* "out of memory", and the sentence of the map; for any status, constant text. */
const char *et_status_name(et_status status);
const char *et_status_hint(et_status status);

/* Records an error unless one stands already, and returns STATUS. CX may be NULL. */
et_status et_fail_at(struct et_ctx *cx, et_status status, const char *file, int line,
                     const char *fmt, ...) ET_PRINTF(5, 6);
#define ET_FAIL(cx, status, ...)                                                       \
    et_fail_at((cx), (status), __FILE__, __LINE__, __VA_ARGS__)

/* Gives the error that stands a number for people, unless it has one. */
void et_error_set_code(struct et_ctx *cx, int code);
/* Adds what to try to the error that stands, unless it says so already. */
void et_hint(struct et_ctx *cx, const char *fmt, ...) ET_PRINTF(2, 3);

/* The error that stands, status ET_OK when there is none: borrowed, it is the context's
 * own and changes with it. NULL: what failed in this thread without a context, such as
 * et_ctx_new. */
const struct et_error *et_error_get(const struct et_ctx *cx);
/* Whoever has handled an error says so: the next one is recorded again. */
void et_error_clear(struct et_ctx *cx);

/* Returns the status upward when it is not OK. */
#define ET_TRY(expr)                                                                   \
    do {                                                                               \
        et_status et_try_status_ = (expr);                                             \
        if (et_try_status_ != ET_OK)                                                   \
            return et_try_status_;                                                     \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
