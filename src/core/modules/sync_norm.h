/* SPDX-License-Identifier: Apache-2.0 */
/* sync_norm.h: batch normalisation by the statistics of all ranks: sync_norm.c. */
#ifndef ETI_MODULES_SYNC_NORM_H
#define ETI_MODULES_SYNC_NORM_H

#include "etude/nn.h"

/* M's value at X [N,C,...] in training, where F->place is not NULL. */
struct et_tensor *eti_sync_batch_norm(struct et_batch_norm_module *m,
                                      struct et_forward *f, struct et_tensor *x);

#endif
