/* SPDX-License-Identifier: Apache-2.0 */
/* event.h: the 41 points of a run at which algorithms and callbacks are called.
 *
 *   INIT  BEFORE_LOAD  LOADING?  AFTER_LOAD          (LOADING: et_state_get_loading;
 *                                                    also when a run goes back)
 *   fit:  FIT_START
 *         while the run is shorter than max_duration:
 *           ITERATION_START?  EPOCH_START
 *           for each batch:
 *             BEFORE_DATALOADER, fetch, AFTER_DATALOADER, BATCH_START
 *             BEFORE_TRAIN_BATCH                            (the closure, from here)
 *               each microbatch:
 *                 BEFORE_FORWARD, forward, AFTER_FORWARD
 *                 BEFORE_LOSS, loss, AFTER_LOSS
 *                 BEFORE_BACKWARD, backward, AFTER_BACKWARD
 *             AFTER_TRAIN_BATCH                             (to here; SAM: twice)
 *             optimizer update, clock, BATCH_END, evaluation, BATCH_CHECKPOINT
 *           EPOCH_END, evaluation, EPOCH_CHECKPOINT
 *           ITERATION_END?, evaluation, ITERATION_CHECKPOINT?
 *         FIT_END, evaluation unless one ran at this batch
 *   eval: EVAL_BEFORE_ALL
 *         per evaluator: EVAL_START
 *           for each batch:
 *             EVAL_BATCH_START, EVAL_BEFORE_FORWARD, EVAL_AFTER_FORWARD, EVAL_BATCH_END
 *           EVAL_END
 *         EVAL_AFTER_ALL                (et_trainer_eval: EVAL_STANDALONE_START before
 *                                        and _END after all this)
 *
 *   predict: PREDICT_START
 *         for each batch:
 *           PREDICT_BATCH_START, PREDICT_BEFORE_FORWARD, PREDICT_AFTER_FORWARD,
 *           PREDICT_BATCH_END
 *         PREDICT_END
 *
 * Where memory is short EVAL_BEFORE_FORWARD and EVAL_AFTER_FORWARD come once for each
 * piece of a batch. An iteration of tokens ends with the batch that fills it, also in
 * the midst of an epoch.
 *
 * BEFORE_DATALOADER fires once more when the loader is exhausted. The names are those
 * of MosaicML Composer (composer/core/event.py). */
#ifndef ETUDE_EVENT_H
#define ETUDE_EVENT_H

#include <stdint.h>

#include "etude/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* code, value, name */
#define ET_EVENT_MAP(X)                                                                \
    X(INIT, 0, "init")                                                                 \
    X(BEFORE_LOAD, 1, "before_load")                                                   \
    X(AFTER_LOAD, 2, "after_load")                                                     \
    X(FIT_START, 3, "fit_start")                                                       \
    X(ITERATION_START, 4, "iteration_start")                                           \
    X(EPOCH_START, 5, "epoch_start")                                                   \
    X(BEFORE_DATALOADER, 6, "before_dataloader")                                       \
    X(AFTER_DATALOADER, 7, "after_dataloader")                                         \
    X(BATCH_START, 8, "batch_start")                                                   \
    X(BEFORE_TRAIN_BATCH, 9, "before_train_batch")                                     \
    X(BEFORE_FORWARD, 10, "before_forward")                                            \
    X(AFTER_FORWARD, 11, "after_forward")                                              \
    X(BEFORE_LOSS, 12, "before_loss")                                                  \
    X(AFTER_LOSS, 13, "after_loss")                                                    \
    X(BEFORE_BACKWARD, 14, "before_backward")                                          \
    X(AFTER_BACKWARD, 15, "after_backward")                                            \
    X(AFTER_TRAIN_BATCH, 16, "after_train_batch")                                      \
    X(BATCH_END, 17, "batch_end")                                                      \
    X(BATCH_CHECKPOINT, 18, "batch_checkpoint")                                        \
    X(EPOCH_END, 19, "epoch_end")                                                      \
    X(EPOCH_CHECKPOINT, 20, "epoch_checkpoint")                                        \
    X(ITERATION_END, 21, "iteration_end")                                              \
    X(ITERATION_CHECKPOINT, 22, "iteration_checkpoint")                                \
    X(FIT_END, 23, "fit_end")                                                          \
    X(EVAL_STANDALONE_START, 24, "eval_standalone_start")                              \
    X(EVAL_BEFORE_ALL, 25, "eval_before_all")                                          \
    X(EVAL_START, 26, "eval_start")                                                    \
    X(EVAL_BATCH_START, 27, "eval_batch_start")                                        \
    X(EVAL_BEFORE_FORWARD, 28, "eval_before_forward")                                  \
    X(EVAL_AFTER_FORWARD, 29, "eval_after_forward")                                    \
    X(EVAL_BATCH_END, 30, "eval_batch_end")                                            \
    X(EVAL_END, 31, "eval_end")                                                        \
    X(EVAL_AFTER_ALL, 32, "eval_after_all")                                            \
    X(EVAL_STANDALONE_END, 33, "eval_standalone_end")                                  \
    X(PREDICT_START, 34, "predict_start")                                              \
    X(PREDICT_BATCH_START, 35, "predict_batch_start")                                  \
    X(PREDICT_BEFORE_FORWARD, 36, "predict_before_forward")                            \
    X(PREDICT_AFTER_FORWARD, 37, "predict_after_forward")                              \
    X(PREDICT_BATCH_END, 38, "predict_batch_end")                                      \
    X(PREDICT_END, 39, "predict_end")                                                  \
    X(LOADING, 40,                                                                     \
      "loading") /* the last, because checkpoints hold the others' numbers */

enum et_event {
#define ET_EVENT_ENUM(code, number, text) ET_EVENT_##code = number,
    ET_EVENT_MAP(ET_EVENT_ENUM)
#undef ET_EVENT_ENUM
        ET_EVENT_COUNT
};

/* Sets of events, as bit masks. */
#define ET_ON(code) (UINT64_C(1) << ET_EVENT_##code)
#define ET_ON_ALL   ((UINT64_C(1) << ET_EVENT_COUNT) - 1)

/* "before_forward" */
const char *et_event_name(enum et_event e);
/* By name in any case; EINVAL otherwise. */
ET_NODISCARD et_status et_event_parse(struct et_ctx *cx, const char *text,
                                      enum et_event *out);
/* The name without before_/after_ and _start/_end; pairs the two ends of a span. */
const char *et_event_canonical(enum et_event e, char *buf, size_t n);
/* Does the name begin with AFTER_? There algorithms run in reverse order. */
bool et_event_is_reversed(enum et_event e);

#ifdef __cplusplus
}
#endif
#endif
