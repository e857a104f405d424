/* SPDX-License-Identifier: Apache-2.0 */
/* recipe_run.h: a training run made from a recipe's text, as `etude train` makes it. */
#ifndef ETUDE_T_TRAIN_RECIPE_RUN_H
#define ETUDE_T_TRAIN_RECIPE_RUN_H

#include "core/assemble/assemble.h"

enum { MAX_LOSSES = 64 };

struct recipe_run {
    struct et_sink sink; /* first */
    struct et_ctx *cx;
    struct et_recipe *recipe;
    struct eti_assembly parts;
    struct et_trainer *trainer;
    struct et_state *state;
    double loss[MAX_LOSSES]; /* of each batch so far */
    int n_losses;
    int64_t stop_after; /* batches, then it is interrupted; 0: never */
    volatile int interrupt;
    struct et_trainer_steps steps; /* that stop */
};

/* What a test may choose; zero means the recipe's. */
struct recipe_choice {
    const char *device;                            /* as of test_device */
    int threads;                                   /* 1 */
    int64_t workers;                               /* the recipe's; -1: none */
    int64_t grad_accum;                            /* likewise; -1: auto */
    int64_t stop_after;                            /* batches; 0: the recipe's end */
    const struct et_checkpoint_config *checkpoint; /* NULL: nothing is saved */
    const struct et_load_config *load;             /* NULL: from the start */
    struct et_comm *comm;                          /* NULL: one rank */
    const char *folder; /* for files of callbacks; NULL: scratch_folder() */
    bool repeats;       /* bits are compared: test_device_repeat */
};

/* Makes the run or bails out. CX and TEXT are the caller's. */
void recipe_open(struct recipe_run *r, struct et_ctx *cx, const char *text,
                 const struct recipe_choice *choice);
/* The same in two steps, so that a test may change r->parts between them. */
void recipe_prepare(struct recipe_run *r, struct et_ctx *cx, const char *text,
                    const struct recipe_choice *choice);
void recipe_start(struct recipe_run *r);
void recipe_close(struct recipe_run *r);
/* Trains to the recipe's end, or bails out. */
void recipe_fit(struct recipe_run *r);
/* A copy of all parameters as they lie in memory, and behind them of the buffers
 * (running statistics), for free(), and how many bytes. */
void *recipe_params(struct recipe_run *r, size_t *bytes);
/* Is the device there? Clears the error if not. */
bool have_device(struct et_ctx *cx, const char *name);
/* Is NAME one of main's operands? All are where there is none: of tests that take long
 * one case can be had by itself, which a simulated GPU asks for. */
bool is_chosen(int argc, char **argv, const char *name);

#endif
