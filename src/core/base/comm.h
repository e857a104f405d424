/* SPDX-License-Identifier: Apache-2.0 */
/* comm.h: what only the trainer says to the ranks; etude/comm.h has the rest. */
#ifndef ETI_BASE_COMM_H
#define ETI_BASE_COMM_H

#include "etude/comm.h"

/* This rank fails by itself, with STATUS that stands: collectives then fail, and
 * et_comm_close waits seconds for the others, who may fail for the same reason or wait
 * for this rank in their next collective. C may be NULL; nothing is done for ET_OK and
 * where another rank's end was the reason. */
void eti_comm_fail(struct et_comm *c, et_status status);
/* Something new begins: where all ranks have failed by themselves, as with the same
 * wrong setting, they may meet again. C may be NULL. */
void eti_comm_begin(struct et_comm *c);

#endif
