/* SPDX-License-Identifier: Apache-2.0 */
/* groups.h: parameter groups in a trainer (groups.c). */
#ifndef ETI_TRAINER_GROUPS_H
#define ETI_TRAINER_GROUPS_H

#include "core/optim/group.h"
#include "etude/trainer.h"

struct eti_groups {
    struct eti_group_patterns patterns;
    double factor[1 + ET_MAX_PARAM_GROUPS]; /* of the update under way */
    double scale, min_rate; /* et_state_scale_rate's, of the batch under way */
};

/* The config's rows are looked at; first of all. */
ET_NODISCARD et_status eti_groups_init(struct et_trainer *t);
/* The group of the parameter NAME. */
int eti_groups_find(const struct et_trainer *t, const char *name);
/* After surgery on INIT: has each row a parameter? */
ET_NODISCARD et_status eti_groups_check(struct et_trainer *t);
ET_NODISCARD et_status eti_groups_check_schedules(struct et_trainer *t);
/* No algorithm has changed the rates of the batch that begins. */
void eti_groups_begin(struct et_trainer *t);
/* The factors of the update to come, state->lr_factor being known; and what the
 * optimizer has of them. */
ET_NODISCARD et_status eti_groups_schedule(struct et_trainer *t);
void eti_groups_apply(struct et_trainer *t);

#endif
