/* asking.h: how a note of a run's owner, on its machine, reaches the supervisor: a
 * socket in the run directory, SOCK_SEQPACKET: "NOTE TEXT" is answered by "noted STEP".
 * What is asked of the ranks comes through the hub. */
#ifndef ETD_ASKING_H
#define ETD_ASKING_H

#include <stdbool.h>
#include <sys/un.h>

#include "dist/wire.h"

#define ETD_ASKING_NAME "control.sock"
#define ETD_ASKING_NOTE "NOTE "

/* The address of the run in DIRECTORY. *FOLDER is to be closed when it has been used;
 * false: it cannot be opened. */
bool etd_asking_address(const char *directory, int *folder, struct sockaddr_un *out);

/* Adds a note to the log of the run in DIRECTORY and waits for SECONDS; *STEP is after
 * which batch. ENOENT: nobody listens there; EPEER: no answer came. */
ET_NODISCARD et_status etd_note(struct et_ctx *cx, const char *directory,
                                const char *text, double seconds, int64_t *step);

#endif
