/* SPDX-License-Identifier: Apache-2.0 */
/* capture.h: what the process writes to a descriptor, libraries included, as lines. */
#ifndef ETI_CAPTURE_H
#define ETI_CAPTURE_H

#include <pthread.h>

#include "etude/ctx.h"

enum { ETI_CAPTURE_LINE = 4096 }; /* bytes; longer lines come in pieces */

struct eti_capture {
    int fd;       /* the one that is captured; -1: none is */
    int original; /* where it led, and leads again at the end */
    int from;     /* the pipe that it leads to meanwhile, its reading end */
    int stop;     /* an eventfd: no more will come */
    pthread_t thread;
    /* Called by that thread: N bytes at TEXT, without the newline. It must not write to
     * the descriptor, nor wait for who does. */
    void (*line)(void *data, const char *text, size_t n);
    void *data;
    char text[ETI_CAPTURE_LINE];
    size_t used;
    bool returned; /* the last byte was a carriage return */
};

/* From now on what is written to FD still goes where it led, and to LINE. OUT stays
 * where it is until the end. A line drawn over with carriage returns is its last state.
 * EIO. */
ET_NODISCARD et_status eti_capture_begin(struct et_ctx *cx, int fd,
                                         void (*line)(void *data, const char *text,
                                                      size_t n),
                                         void *data, struct eti_capture *out);
/* Gives FD back; all that was written to it by then has been passed on. Waits for no
 * child process that still holds it. Does nothing where none is captured. */
void eti_capture_end(struct eti_capture *c);

#endif
