/* SPDX-License-Identifier: Apache-2.0 */
/* label.h: the name that people give a checkpoint. */
#ifndef ETI_CHECKPOINT_LABEL_H
#define ETI_CHECKPOINT_LABEL_H

#include "etude/checkpoint.h"

/* et_checkpoint_label, which has one rank, of a run of WORLD ranks. */
ET_NODISCARD et_status eti_checkpoint_label(struct et_ctx *cx, const char *pattern,
                                            const char *run_name, int world,
                                            const struct et_timestamp *ts, char *buf,
                                            size_t size);

#endif
