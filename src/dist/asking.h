/* asking.h: how a command of a run's owner, on its machine, reaches the supervisor: a
 * socket in the run directory, SOCK_SEQPACKET, on which CMD (wire.h) is answered by
 * APPLIED, REJECTED or EXPIRED; and a note by "noted STEP". */
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

/* Asks the run in DIRECTORY for C, whose id is drawn here, and waits for the answer for
 * SECONDS. ENOENT: nobody listens there; EPEER: no answer came. */
ET_NODISCARD et_status etd_ask(struct et_ctx *cx, const char *directory,
                               struct etd_command *c, double seconds,
                               struct etd_answer *out);
/* Adds a note to its log; *STEP is where. Likewise. */
ET_NODISCARD et_status etd_note(struct et_ctx *cx, const char *directory,
                                const char *text, double seconds, int64_t *step);

#endif
