/* SPDX-License-Identifier: Apache-2.0 */
/* job.h: this program once more, in a process of its own, for what takes long: its
 * answer is text. The screen goes on meanwhile, and keeps its memory small. */
#ifndef TUI_JOB_H
#define TUI_JOB_H

#include <stdbool.h>
#include <sys/types.h>

#include "etude/ctx.h"

enum { TUI_JOB_BYTES = 1 << 20 }; /* of an answer that are kept */

struct tui_job {
    struct et_ctx *cx;
    pid_t pid;    /* 0: no process runs */
    int out, err; /* ends of pipes; -1 */
    int input;    /* a file in memory that it reads; -1: no such file */
    bool is_done; /* TEXT and CODE are its answer */
    int code;     /* its exit code; 128 + a signal's number; 127: not started */
    char *text;   /* what it printed, N bytes and a zero */
    size_t n;
    char error[512]; /* the first line of what it said on stderr */
    size_t n_error;
};

/* Starts "etude ARGUMENT...", which ends with NULL; what ran before is ended. INPUT, N
 * bytes, is readable for it as TUI_JOB_INPUT (NULL: no text is). ENOMEM, EIO. */
ET_NODISCARD et_status tui_job_start(struct tui_job *job, struct et_ctx *cx,
                                     const char *const *argument, const char *input,
                                     size_t n);
#define TUI_JOB_INPUT "/proc/self/fd/9"
/* Takes what it has printed. Has it ended just now? Waits at most SECONDS. */
bool tui_job_poll(struct tui_job *job, double seconds);
/* Ends it, and forgets its answer. */
void tui_job_stop(struct tui_job *job);

#endif
