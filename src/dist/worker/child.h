/* SPDX-License-Identifier: Apache-2.0 */
/* child.h: another program, of whose answer the beginning counts. Nothing here
 * waits. */
#ifndef ETD_CHILD_H
#define ETD_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct etd_child {
    pid_t pid;       /* 0: none is under way */
    int fd;          /* to poll for reading, while one is */
    char said[4096]; /* the beginning of what it printed, and a zero */
    size_t n;
};

/* Starts PROGRAM, which is looked for along PATH, without input. ERRORS: what it says
 * on standard error is taken as well, else it is dropped. Its environment is this
 * process's, with ETUDE_SERVED. False with errno. */
bool etd_child_start(struct etd_child *c, const char *program, const char *const *argv,
                     bool errors);
/* Takes what it has printed. True: it has ended just now, with *STATUS of waitpid. */
bool etd_child_step(struct etd_child *c, int *status);
/* Ends it, if it is under way. */
void etd_child_kill(struct etd_child *c);

#endif
