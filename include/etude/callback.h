/* SPDX-License-Identifier: Apache-2.0 */
/* callback.h: observers: they read the state and log, and change nothing; one may ask
 * that the run ends. */
#ifndef ETUDE_CALLBACK_H
#define ETUDE_CALLBACK_H

#include "etude/archive.h"
#include "etude/logger.h"
#include "etude/state.h"

#ifdef __cplusplus
extern "C" {
#endif

struct et_callback {
    const struct et_callback_class *type;
    struct et_ctx *cx;
    void *options;             /* type->info.options_size bytes, its own */
    void *state;               /* type->state_size bytes, zeroed, owned */
    const char *run_directory; /* loggers write beneath it; NULL: the run has none */
    const char *stop; /* run sets it to end the run: why, a string constant, as for
                         et_state_stop; the engine takes it back to NULL */
    bool enough; /* run sets it at EVAL_BATCH_END: the evaluation under way ends with
                    this batch; taken back likewise */
};

/* A logger is a callback that writes the current record of the state's log somewhere;
 * it runs after the others, so that it sees what they logged. */
struct et_callback_class {
    struct et_component info;
    size_t state_size;
    bool is_logger;
    bool acts; /* it changes the run, or what is measured of it: of several ranks each
                  has one; all others rank 0 alone */
    uint64_t events; /* ET_ON(...) bits; INIT is where files are opened */

    et_status (*check)(struct et_ctx *cx, const void *options); /* (optional) */
    et_status (*run)(struct et_callback *self, enum et_event event,
                     const struct et_state *state, struct et_log *log);
    /* On a device that the host runs ahead of, may this callback's BATCH_END come after
     * later batches have begun? It is then shown that batch's timestamp, log, loss and
     * metrics, and must not read leaves or model. Asked as the batch ends, with STATE
     * as it is then. NULL: it may not, and the host waits for every batch; loggers
     * always may. (optional) */
    bool (*trails)(const struct et_callback *self, const struct et_state *state);
    /* The metrics of an evaluation are there, and the weights are still those that it
     * used: EVAL_END, which follows, is where averages are taken back. (optional) */
    et_status (*evaluated)(struct et_callback *self, const struct et_state *state,
                           struct et_log *log);
    /* A module's input X and output Y in a training forward pass, as values of
     * the state's graph; inner modules come before outer ones. May append nodes.
     * (optional) */
    void (*module)(struct et_callback *self, const struct et_state *state,
                   struct et_module *m, struct et_tensor *x, struct et_tensor *y);
    /* In a training step, when the update is formulas (et_optimizer_pending) and
     * nothing of it has run: may append nodes to the state's graph and assign leaves
     * of its own, which are computed with the update and may be read from BATCH_END on.
     * Must stand being called again for the same batch. (optional) */
    et_status (*update)(struct et_callback *self, const struct et_state *state);
    /* Names the state that later records or decisions depend on, to save and to load
     * (archive.h). A checkpoint without it leaves the callback as it began. (optional:
     * there is none) */
    et_status (*archive)(struct et_callback *self, struct et_archive *a);
    /* A line of the log, for loggers that write them. (optional) */
    void (*text)(struct et_callback *self, enum et_log_level level, const char *text);
    /* ALGORITHM has acted at EVENT, for loggers that say so. (optional) */
    void (*trace)(struct et_callback *self, const struct et_state *state,
                  const struct et_algorithm *algorithm, enum et_event event);
    /* Flushes and closes; called once, also after a failure. (optional) */
    void (*close)(struct et_callback *self);
};

/* For trails: always. */
bool et_callback_trails(const struct et_callback *self, const struct et_state *state);

/* Built in, NULL-terminated: observers (callbacks.def), loggers (loggers.def). */
extern const struct et_callback_class *const et_callback_classes[];
extern const struct et_callback_class *const et_logger_classes[];
const struct et_callback_class *et_callback_find(const char *name);
const struct et_callback_class *et_logger_find(const char *name);

/* OPTIONS: a struct of the class's type, copied (option.h); NULL = all defaults.
 * RUN_DIRECTORY is borrowed; NULL: the run has no directory. */
ET_NODISCARD et_status et_callback_new(struct et_ctx *cx,
                                       const struct et_callback_class *c,
                                       const void *options, const char *run_directory,
                                       struct et_callback **out);
void et_callback_free(struct et_callback **c);

/* What the logger in_memory has kept of one metric, oldest first: borrowed until the
 * next batch, and until the trainer is freed. False when there is none of that NAME. */
struct et_point {
    struct et_timestamp ts; /* of training, when VALUE was logged */
    double value;
};
bool et_logger_series(const struct et_callback *logger, const char *name,
                      const struct et_point **points, int64_t *n);

/* What the callback run_history has kept: a value per epoch of the training loss and
 * metrics, means over its samples, and one per evaluation of its metrics. Of another
 * callback there is nothing. Names are borrowed, values too, until the next is
 * added. */
/* The name of series I, in the order they began; NULL past the last. */
const char *et_history_name(const struct et_callback *history, int64_t i);
/* All values of NAME, oldest first; false when there is none of that name. */
bool et_history_values(const struct et_callback *history, const char *name,
                       const double **values, int64_t *n);
/* The last of them. EINVAL when NAME was never recorded. */
ET_NODISCARD et_status et_history_latest(const struct et_callback *history,
                                         const char *name, double *out);
/* Adds one's own value, under the prefix and NAME. EINVAL for more than 95 bytes. */
ET_NODISCARD et_status et_history_update(struct et_callback *history, const char *name,
                                         double value);
/* What names begin with from now on, the callback's own too; "" at first. Copied. */
void et_history_set_prefix(struct et_callback *history, const char *prefix);
/* The epoch under way, from 1. */
int64_t et_history_epoch(const struct et_callback *history);
void et_history_delete(struct et_callback *history, const char *name);
/* Forgets everything but the prefix. */
void et_history_reset(struct et_callback *history);

#ifdef __cplusplus
}
#endif
#endif
