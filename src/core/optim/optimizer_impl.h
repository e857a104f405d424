/* SPDX-License-Identifier: Apache-2.0 */
/* optimizer_impl.h: the inside of an optimizer: its runs, and the numbers of updates.
 *
 * A run is the longest stretch of flat memory whose parameters are of one group and one
 * gate, all have a gradient, and have been updated equally often. Usually that is
 * everything, and the update is one fused pass over flat memory. A rule that tells
 * parameters apart gets the run as rows, too, and tables of which parameter is where.
 * Such a rule goes through a run several times: on a processor, where a kernel more
 * costs nothing, runs are cut to what stays in its caches meanwhile. */
#ifndef ETI_OPTIMIZER_IMPL_H
#define ETI_OPTIMIZER_IMPL_H

#include "core/optim/optim.h"

enum { ETI_MAX_AHEAD = 4 };

/* Leaves on a stretch of the flat arrays. */
struct eti_param_run {
    int64_t begin, end;
    struct et_tensor *p, *moment[ET_MAX_MOMENTS];
    struct et_param_rows rows;        /* all zero but for rules by parameter */
    const struct et_param_slot *slot; /* of rules by tensor: all there is in it */
};

/* A run in the update being made. */
struct eti_update_row {
    struct eti_param_run *run;
    const struct et_optimizer_group *group;
    const struct et_param_slot *slot; /* the first of the run, whose numbers it has */
    struct et_update update;          /* with what was appended for it */
};

struct et_optimizer {
    struct et_ctx *cx;
    const struct et_optimizer_class *type;
    void *options; /* its own */
    struct et_param_space *space;
    int n_moments;
    int64_t longest;                  /* elements of a run of several parameters */
    struct et_optimizer_group *group; /* [n_groups], at least those of the space */
    int n_groups;
    int *order;                 /* parameters by offset */
    bool *pending;              /* [n]: in the update being made */
    bool *counted;              /* [n]: less those whose gate is closed in its step */
    struct eti_update_row *row; /* [n]: there are at most as many runs */
    int n_rows;                 /* of the last update */
    /* [1 + ahead][n][ET_MAX_HYPER], the numbers of a run with its first parameter;
     * those not in use keep old ones. Block j is for the case that j of the updates
     * which would have counted for the parameter, and are not yet settled, were
     * skipped. */
    float *hyper_host;
    struct et_tensor *hyper; /* leaf f32 of the same, flat */
    int ahead;               /* updates that may be unsettled when another is built */
    int unsettled;
    bool *made[ETI_MAX_AHEAD + 1]; /* [n] each, oldest first: whom they changed */
    /* NULL where ahead is 0: */
    struct et_tensor
        *skipped;             /* leaf f32 [n][ET_MAX_HYPER]: updates skipped so far that
                                  would have counted for the parameter */
    float *counts_host;       /* [2][n][ET_MAX_HYPER]: those of them the host knows of;
                                  does the update being made count, 1 or 0 */
    struct et_tensor *counts; /* leaf f32 of the same, flat */
    struct eti_param_run *
        *run; /* every stretch ever asked for: a graph may still name its leaves */
    int n_runs;
    int64_t cap_runs;
};

/* Frees R, a run of OPT, and its leaves, which may be those of half a run. */
void eti_optimizer_free_run(struct et_optimizer *opt, struct eti_param_run *r);

#endif
