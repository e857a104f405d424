/* SPDX-License-Identifier: Apache-2.0 */
/* readback.h: how far the host runs ahead of what its batches came to (readback.c). */
#ifndef ETI_TRAINER_READBACK_H
#define ETI_TRAINER_READBACK_H

#include "etude/trainer.h"

/* Batches that the device may still be at when the host builds the next one; 0: every
 * batch is waited for. */
int eti_readback_ahead(struct et_trainer *t);
/* In a batch's last evaluation: its numbers go into one leaf. */
ET_NODISCARD et_status eti_readback_append(struct et_trainer *t);
/* After it: its numbers are on their way. Where they are waited
 * for they are in state and log then. */
ET_NODISCARD et_status eti_readback_send(struct et_trainer *t);
/* At the end of a batch that is not waited for: puts by what observers will be shown of
 * it. */
void eti_readback_park(struct et_trainer *t);
/* Before the parameters become others: shows what is parked, and lets the optimizer
 * count all updates on those that they were made on, also that of a batch that is not
 * parked yet. */
ET_NODISCARD et_status eti_readback_settle(struct et_trainer *t);
/* What eti_readback_deliver would show is shown to nobody: the run goes back to before
 * it. */
ET_NODISCARD et_status eti_readback_discard(struct et_trainer *t);

#endif
