/* SPDX-License-Identifier: Apache-2.0 */
/* fixture.h: a small training run for tests: counted images, an MLP, SGD, device "ref"
 * or the one of ETUDE_DEVICE. */
#ifndef ETUDE_T_TRAIN_FIXTURE_H
#define ETUDE_T_TRAIN_FIXTURE_H

#include "core/trainer/state.h"
#include "etude/trainer.h"
#include "t/data/fixture.h"

/* What a test may choose; zero means the default in brackets. */
struct run_setup {
    const char *device;      /* that of test_device */
    const struct run *with;  /* whose device it uses; closed after this one; its own */
    const char *model;       /* "mlp" */
    int64_t n, batch_size;   /* 8 samples in batches of 4 */
    int64_t grad_accum;      /* 1 */
    int64_t microbatch_size; /* none */
    bool auto_accum;
    bool evaluate;
    struct et_time max_duration;                    /* 1ep */
    struct et_time eval_interval;                   /* unset */
    struct et_time iteration_length;                /* unset */
    const char *optimizer;                          /* "sgd" with lr 0.1 */
    const struct et_optimizer_class *own_optimizer; /* instead; NULL */
    const char *const *optimizer_options;           /* name, value, ..., NULL */
    struct et_algorithm **algorithms;
    int n_algorithms;
    const struct et_pass *const *passes;
    int n_passes;
    struct et_callback **callbacks;
    int n_callbacks;
    struct et_sink *sink;
    const struct et_checkpoint_config *checkpoint; /* nothing is saved */
    const char *target;
    bool dry;
    bool repeats; /* bits are compared: test_device_repeat */
};

struct run {
    struct et_ctx *cx;
    struct et_device *dev;
    bool borrows; /* it is another's */
    struct counted_options data_options;
    struct et_dataset *data;
    struct et_loader *train, *eval;
    struct et_model *model;
    struct et_evaluator evaluator;   /* on eval */
    struct et_trainer_config config; /* of the trainer */
    struct et_trainer *trainer;
    struct et_state *state;
    void *options; /* of the optimizer */
};

/* Opens everything or bails out. CX is the caller's. */
void run_open(struct run *r, struct et_ctx *cx, const struct run_setup *setup);
/* The same in two steps, so that a test may change r->config between them. */
void run_prepare(struct run *r, struct et_ctx *cx, const struct run_setup *setup);
void run_start(struct run *r);
void run_close(struct run *r);

#endif
