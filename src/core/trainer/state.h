/* SPDX-License-Identifier: Apache-2.0 */
/* state.h: what struct et_state holds. Programs and plugins know it by the functions of
 * the public state.h alone, so that it may change between releases. */
#ifndef ETI_TRAINER_STATE_H
#define ETI_TRAINER_STATE_H

#include "core/trainer/passes.h"
#include "etude/state.h"

struct et_comm;

struct et_state {
    struct et_ctx *cx;
    struct et_device *dev;
    struct et_graph *graph;
    struct et_log *log;
    const char *run_name;
    uint32_t seed;
    struct et_comm *comm; /* of the run's processes; NULL: there is one */
    int rank, world;      /* of these: 0 .. world - 1; 0 and 1 for one */
    int precision;        /* enum et_precision, never auto */

    struct et_model *model;
    struct et_param_space *params;
    struct et_optimizer *optimizer;
    const struct et_loading *loading; /* on LOADING; NULL at any other time */
    int64_t
        surgeries;    /* how often parameters or buffers of the model were replaced: who
                          keeps tensors of them looks for these anew */
    double lr_factor; /* product of the schedules for the update under way */

    struct et_time max_duration;           /* scaled; unset at INIT */
    struct et_timestamp timestamp;         /* of training: finished things */
    struct et_timestamp eval_timestamp;    /* of the evaluation under way */
    struct et_timestamp predict_timestamp; /* of the prediction under way */
    bool stop;                             /* set by et_state_stop: the loop ends */
    const char *stop_reason;               /* a sentence, borrowed; NULL */
    char stopped_by[96];  /* the callback that did so, by its name; "": none of them */
    char stopped_why[96]; /* and its reason, which a checkpoint keeps */
    bool target_reached;
    bool eval_enough; /* the evaluation under way ends with this batch */
    bool explains;    /* ETUDE_ENGINE_DEBUG: events are told, and who is called */
    bool interrupted; /* somebody wants the run to stop: it may be resumed */

    const char *dataloader_label; /* "train", an evaluator's label; NULL: none yet */
    int64_t dataloader_len;       /* batches of the active loader; -1 = unknown */
    int64_t train_len;            /* batches per epoch of the train loader */
    int64_t train_samples;        /* likewise samples, as consumed */
    int64_t max_seq_len;          /* token data: T; else 0 */
    const struct et_dataset *train_set; /* of the train loader; NULL: none */

    int64_t grad_accum;      /* microbatches per batch, now */
    int64_t batch_size;      /* global, as configured */
    struct et_samples full;  /* the rank's batch, as AFTER_DATALOADER left it */
    struct et_samples batch; /* from BEFORE_FORWARD to AFTER_BACKWARD a microbatch; at
                                AFTER_DATALOADER, BATCH_START, BATCH_END the rank's */
    int64_t first_sample;    /* place of the rank's first sample in the run's order */
    bool masked;             /* the loader's: some of the rank's targets are negative */
    int pass;                /* of the closure under way */
    /* The closure under way leaves state->grad this rank's own: a step that replaces
     * the default sets it before, and takes it back. */
    bool keep_local;

    struct et_tensor *outputs; /* from AFTER_FORWARD */
    struct et_tensor *loss;    /* from AFTER_LOSS: mean over the microbatch */
    struct et_tensor *grad;    /* flat, from AFTER_TRAIN_BATCH; see et_param_space */
    struct et_tensor *grad_squares, *squares_of; /* internal: et_state_grad_squares */
    double loss_scale;   /* of the batch under way; 1 but for amp_fp16 */
    double loss_value;   /* of the last finished batch: mean over its samples */
    int64_t batch_flops; /* of the last finished batch, from BATCH_START on */

    et_step_fn *step; /* NULL: the default */
    void *step_data;

    struct et_algorithm **algorithms;
    int n_algorithms;
    const struct et_pass *passes[ETI_MAX_PASSES]; /* as they run */
    int n_passes;                                 /* 0: the built-in ones */
    struct et_callback **callbacks;               /* loggers last */
    int n_callbacks;

    struct et_metric_value *train_metrics, *eval_metrics; /* last computed */
    int n_train_metrics, n_eval_metrics;
    bool checkpoint_due; /* at *_CHECKPOINT: a saver will save now */
};

#endif
