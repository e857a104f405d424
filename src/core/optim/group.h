/* SPDX-License-Identifier: Apache-2.0 */
/* group.h: parameter groups as recipes write them, and which parameters are whose. */
#ifndef ETI_OPTIM_GROUP_H
#define ETI_OPTIM_GROUP_H

#include <regex.h>

#include "etude/optim.h"
#include "etude/sched.h"

/* An item of a recipe's optimizer.groups. */
struct eti_group_options {
    struct et_param_group is; /* first: assembled, it is a trainer's */
    struct et_parts scheduler;
};
extern const struct et_component et_param_group_info;

/* The patterns of groups, compiled. */
struct eti_group_patterns {
    regex_t match[ET_MAX_PARAM_GROUPS];
    int n;
};
/* EINVAL for a pattern that is no extended regular expression, a rate that is no
 * number, more than ET_MAX_PARAM_GROUPS. Release in any case. */
ET_NODISCARD et_status eti_group_patterns_init(struct et_ctx *cx,
                                               struct et_param_group *const *groups,
                                               int n, struct eti_group_patterns *out);
void eti_group_patterns_release(struct eti_group_patterns *p);
/* Whose the parameter is: 1 + the place of the first group that its name matches; 0:
 * nobody's. */
int eti_group_patterns_find(const struct eti_group_patterns *p, const char *name);

/* What a group's LR comes to where the optimizer has RATE: "0.01" is that, "0.1x" a
 * tenth of RATE, NULL is RATE. False: it is no such text. */
bool eti_group_rate(const char *lr, double rate, double *out);

/* OPT's own, to be set while a run goes on. */
void *eti_optimizer_options(struct et_optimizer *opt);

#endif
