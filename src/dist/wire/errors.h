/* SPDX-License-Identifier: Apache-2.0 */
/* errors.h: numbers of errors of network and control, for people and for REJECTED. */
#ifndef ETD_ERRORS_H
#define ETD_ERRORS_H

/* number, code, exit code of a program that ends with it, meaning. Numbers are never
 * used twice. */
#define ETD_ERROR_MAP(X)                                                               \
    X(5001, UNSAFE, 77, "a folder or address at which nothing may listen")             \
    X(5002, TAKEN, 73, "an endpoint in use, or a file in its place")                   \
    X(5003, ADDRESS, 64, "an endpoint whose path is too long")                         \
    X(5004, KEYS, 77, "a key, or a file of keys, that is refused")                     \
    X(5005, UNREACHABLE, 69, "a run or worker that does not answer")                   \
    X(5006, PROTOCOL, 76, "somebody who speaks another version")                       \
    X(5007, TURNED_AWAY, 77, "a viewer that is refused")                               \
    X(5008, ARGUMENT, 65, "a command with a value that cannot be")                     \
    X(5009, ROLE, 77, "a command that this key may not give")                          \
    X(5010, OTHER_RUN, 65, "a command for another run, or an earlier start of it")     \
    X(5011, REVISION, 65, "a command for settings that have changed since")            \
    X(5012, RATE, 69, "more than ten commands a second")                               \
    X(5013, LEASE, 77, "a command while another operator has taken the run")           \
    X(5014, FULL, 69, "a command that the run cannot take now")                        \
    X(5015, LATE, 69, "a command that was not applied in its time")                    \
    X(5016, WORKER, 65, "a worker that is not known, or a file of them that is wrong") \
    X(5017, NOT_YET, 69, "a command for what a later version brings")

enum etd_error {
#define ETD_ERROR_ENUM(number, code, exit, what) ETD_E_##code = number,
    ETD_ERROR_MAP(ETD_ERROR_ENUM)
#undef ETD_ERROR_ENUM
};

/* Records an error with its number, and returns STATUS. */
#define ETD_FAIL(cx, status, code, ...)                                                \
    (et_fail_at((cx), (status), __FILE__, __LINE__, __VA_ARGS__),                      \
     et_error_set_code((cx), ETD_E_##code), (status))

#endif
