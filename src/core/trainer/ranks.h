/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.h: what the ranks of a run settle with each other: after a step (ranks.c) and
 * between steps (ranks_sync.c). Of a run of one rank nothing here does anything. */
#ifndef ETI_TRAINER_RANKS_H
#define ETI_TRAINER_RANKS_H

#include "core/checkpoint/store.h"
#include "etude/metric.h"
#include "etude/trainer.h"

/* et_comm_mark's which of what is exchanged between steps. */
enum eti_exchange {
    ETI_AT_SETTINGS = -15,
    ETI_AT_PARAMETERS,
    ETI_AT_TENSOR,
    ETI_AT_UNREADABLE,
    ETI_AT_LOADED,
    ETI_AT_WENT_BACK,
    ETI_AT_STOP,
    ETI_AT_METRIC,
    ETI_AT_REQUEST,
    ETI_AT_JOINED,
    ETI_AT_ROWS,
    ETI_AT_CLOCK,
    ETI_AT_TRACE,
    ETI_AT_MEMORY,
};

enum { ETI_MOST_RANKS = 1024 }; /* as rank_env.h has it */

/* After the evaluation: what was agreed on. *AGAIN: a rank had no gradient. */
ET_NODISCARD et_status eti_ranks_hear(struct et_trainer *t, bool *again);
/* This rank had no memory for the batch: takes part, so that the others learn of it. */
ET_NODISCARD et_status eti_ranks_stand_in(struct et_trainer *t);

/* et_forward.place of a step; NULL: batch norm's statistics are the rank's own. */
struct et_tensor *eti_ranks_place(struct et_trainer *t);

/* ---- between steps ---- */

/* Begins with the parameters and buffers of rank 0, and with the same settings. */
ET_NODISCARD et_status eti_ranks_begin(struct et_trainer *t);
/* Rank 0 has loaded the checkpoint NAME, or failed with STATUS: the others LOAD the
 * same. All ranks fail, or none does. NAME is ETI_STEP_NAME bytes. */
typedef et_status eti_load_named_fn(struct et_trainer *t, const char *name);
ET_NODISCARD et_status eti_ranks_load(struct et_trainer *t, et_status status,
                                      char *name, eti_load_named_fn *load);
/* Rank 0 has gone back to *STEP; -1: it could not. So do the others; *STEP is -1 on all
 * ranks where any could not, with WHY. */
ET_NODISCARD et_status eti_ranks_go_back(struct et_trainer *t, int64_t *step,
                                         eti_load_named_fn *load, char *why,
                                         size_t size);
/* Buffers (running statistics) of rank 0, before an evaluation. */
ET_NODISCARD et_status eti_ranks_share_buffers(struct et_trainer *t);
/* M's value over all ranks. */
ET_NODISCARD et_status eti_ranks_metric(struct et_trainer *t, const struct et_metric *m,
                                        double *out);
/* Are the parameters those of rank 0? Now and then. EPEER names the ranks where not. */
ET_NODISCARD et_status eti_ranks_compare(struct et_trainer *t);
/* STATUS of all ranks, each with its own: EPEER where another could not have NAME. */
ET_NODISCARD et_status eti_ranks_agree(struct et_trainer *t, et_status status,
                                       const char *name);

#endif
