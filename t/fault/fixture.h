/* SPDX-License-Identifier: Apache-2.0 */
/* fixture.h: what the tests of faults share: folders that come and go, a small run that
 * saves and loads, and what must never be left behind. */
#ifndef ETUDE_T_FAULT_FIXTURE_H
#define ETUDE_T_FAULT_FIXTURE_H

#include "core/base/seams.h"
#include "core/checkpoint/store.h"
#include "t/train/fixture.h"

/* Does the environment ask for the night's column of the fault matrix? */
bool is_long(void);

/* ---- folders ---- */

/* DIR/NAME, in one of a few buffers taken in turn. */
const char *path_to(const char *dir, const char *name);
/* Removes PATH and all in it, by the system's own calls. */
void remove_tree(const char *path);
void make_folder(const char *path);
/* The bytes of a file, for free(); bails out where there is none. */
void *read_whole(const char *path, size_t *n);
void write_whole(const char *path, const void *bytes, size_t n);
/* How many names in DIR begin with PREFIX; 0 where there is no DIR. */
int count_names(const char *dir, const char *prefix);
/* Descriptors that this process has open. */
int count_descriptors(void);
/* Replaces FROM, which must be there, by TO in DIR/STEP/MANIFEST, and its digest by the
 * right one. */
void reseal(const char *dir, int64_t step, const char *from, const char *to);

/* ---- a run ---- */

/* A trainer of an MLP on counted images, SGD with momentum; zero means the default in
 * brackets. */
struct saving_setup {
    const struct et_checkpoint_config *checkpoint; /* none */
    const struct et_load_config *load;             /* none */
    const char *model;                             /* "mlp" */
    const char *hidden;                            /* of mlp: "8" */
    int64_t n; /* 28 samples in batches of 4: 7 an epoch */
    struct et_algorithm **algorithms;
    int n_algorithms;
    int nonfinite_action; /* enum et_nonfinite_action */
    int64_t nonfinite_grace;
    int64_t grad_accum; /* 1 */
    struct et_sink *sink;
};
struct saving_run {
    struct run r;
    struct et_ctx *cx;
};
/* True with the run open; or false, *STATUS and the context's error say why, and
 * nothing is left. */
bool saving_open(struct saving_run *s, struct et_ctx *cx,
                 const struct saving_setup *setup, et_status *status);
/* The same in two steps: all but the trainer, or the end of the test; and the
 * trainer. */
void saving_prepare(struct saving_run *s, struct et_ctx *cx,
                    const struct saving_setup *setup);
bool saving_start(struct saving_run *s, et_status *status);
void saving_close(struct saving_run *s);
/* Trains N batches more, or bails out. */
void saving_train(struct saving_run *s, int n);
/* All that a checkpoint holds of it in one number. */
uint64_t saving_digest(struct saving_run *s);

/* A configuration that saves into DIR only when asked to. */
struct et_checkpoint_config saves_to(const char *dir, int64_t keep);

#endif
