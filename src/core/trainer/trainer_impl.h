/* SPDX-License-Identifier: Apache-2.0 */
/* trainer_impl.h: what a trainer consists of, for the files of its loop. Its parts
 * (part.h) do not include this. */
#ifndef ETI_TRAINER_IMPL_H
#define ETI_TRAINER_IMPL_H

#include "core/base/assert.h"
#include "core/base/seams.h"
#include "core/trainer/bind.h"
#include "core/trainer/checkpoint.h"
#include "core/trainer/evaluate.h"
#include "core/trainer/groups.h"
#include "core/trainer/part.h"
#include "core/trainer/step.h"

/* Algorithms that change the model or the step (their class has an undo), as they were
 * switched while the run went on: done again in this order, to the model that the
 * recipe makes, they give the model that there is (switch.c). */
struct eti_switches {
    struct eti_switch {
        struct et_algorithm *a;
        bool on;
    } * v;
    int n;
    int64_t room;
};

struct eti_hooks {
    struct et_algorithm *algorithm[ET_MAX_ALGORITHMS]; /* state->algorithms */
    struct et_callback *callback[ET_MAX_ALGORITHMS];   /* state->callbacks */
    /* Those of ALGORITHM that a load, or somebody while the run went on, added. */
    struct et_algorithm *own[ET_MAX_ALGORITHMS];
    int n_own;
    struct eti_switches switches;
};

/* Whose transforms the training loader has. */
struct eti_extras {
    const struct et_loader *of; /* NULL: it is not known */
    const struct et_algorithm *by[ET_MAX_ALGORITHMS];
    int n;
};

/* How far the epoch under way is, for the steps it is written by (fit.c). */
enum eti_epoch_stage { ETI_OUTSIDE, ETI_BETWEEN, ETI_HELD, ETI_TRAINED };
struct eti_epoch {
    enum eti_epoch_stage stage;
    bool read_all; /* the loader has no more batches of it */
    bool over;     /* the run ends here */
    int64_t flops; /* of the graph, before the batch */
};

struct et_trainer {
    struct et_state state; /* first: hooks are given it and may reach the trainer */
    struct et_trainer_config config;
    struct eti_common common;
    struct eti_train_step step;
    struct eti_part part[ETI_N_PARTS];
    struct eti_hooks hooks;
    struct eti_extras added;
    struct eti_params params;
    struct eti_groups groups;
    struct eti_evaluation evaluation;
    struct eti_pieces pieces;
    struct eti_measured measured;
    struct eti_rollback rollback;
    struct eti_described_data data;
    struct eti_epoch epoch;
    struct et_run_length length;
    struct et_tensor *rng;        /* I64 [2]: dropout's key, first sample of the pass */
    const struct et_batch *shown; /* that the state shows; NULL: none */
    uint64_t loaded; /* of the checkpoint that the run begins with; 0: none */
};

/* parts.c: before anything else, and last. */
ET_NODISCARD et_status eti_parts_make(struct et_trainer *t);
void eti_parts_free(struct et_trainer *t);

#endif
