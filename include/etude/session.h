/* SPDX-License-Identifier: Apache-2.0 */
/* session.h: what `etude train`, `eval` and a recipe do, in a program of one's own.
 *
 *     struct et_session *s;
 *     ET_TRY(et_session_open(cx, "recipe.yaml", NULL, NULL, &s));
 *     ET_TRY(et_session_fit(s));
 *     et_session_close(&s);
 *
 * A session is a recipe that has been made, and the run that it trains. Who wants the
 * trainer alone takes et_trainer_from_recipe, which hides the session in it; who has a
 * run and wants answers for new samples takes predict.h.
 *
 * A session opens a device, so what et_device_open says of signals holds for its
 * thread: all calls but et_session_stop are made on the one that opened it. It is one
 * rank.
 *
 * The last part is for programs in other languages: where the fields of structs are in
 * the library that they have loaded. */
#ifndef ETUDE_SESSION_H
#define ETUDE_SESSION_H

#include "etude/recipe.h"
#include "etude/state.h"
#include "etude/tensor.h"
#include "etude/trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct et_session;

/* Called at an event, after algorithms, callbacks and loggers of the recipe. STATE may
 * be read until it returns. What it fails with ends the call that trains. */
typedef et_status et_session_fn(void *data, enum et_event event,
                                const struct et_state *state);

/* Zeroes are the defaults. Borrowed for the call that opens the session; DATA, the
 * sink, algorithms and callbacks until it is closed. */
struct et_session_options {
    const struct et_override *overrides; /* of the recipe, in order */
    int n_overrides;
    int threads;        /* of the device; 0: all cores */
    const char *device; /* "cpu", "ref", "cuda"; NULL: as the recipe says */
    const char
        *directory;    /* of the run that fit makes; NULL: runs/<local start time> */
    bool no_directory; /* fit leaves nothing behind: no directory, no checkpoints, and
                          the recipe's loggers are off */
    bool resume; /* where DIRECTORY holds a run, fit goes on with it, from the newest
                    checkpoint that there is */
    bool no_train, no_eval; /* do without train_data, eval_data */
    /* The caller's own, behind those of the recipe. */
    struct et_algorithm *const *algorithms;
    int n_algorithms;
    struct et_callback *const *callbacks;
    int n_callbacks;
    struct et_sink *sink; /* is given all records, too; NULL: none */
    uint64_t events;      /* ET_ON(...): when FN is called; 0: never */
    et_session_fn *fn;
    void *data;
    const struct et_recipe_env *env; /* of the recipe; NULL: no variables, no plugins */
};

/* Reads the recipe at PATH, and makes what it names. PATH may also be a run directory
 * or one of its checkpoints (RUN/step-... or RUN/LABEL): its recipe is the run's, its
 * model has the weights that are saved there, and fit begins from them as a new run.
 * OPTIONS may be NULL. What is wrong with a recipe is in ERRORS too (NULL: only the
 * first of it, in the context). */
ET_NODISCARD et_status et_session_open(struct et_ctx *cx, const char *path,
                                       const struct et_session_options *options,
                                       struct et_diagnostics *errors,
                                       struct et_session **out);
/* Ends a run that is under way as "failed". NULL within is allowed. */
void et_session_close(struct et_session **s);

/* Trains to the end of the recipe's max_duration; once. The run's state and report are
 * written as `etude train` does. */
ET_NODISCARD et_status et_session_fit(struct et_session *s);
/* The trainer, for a loop of one's own: it may be called to fit, to evaluate or to
 * predict, in any order; the run ends with the session. Made, and the run with it, by
 * the first call of this or of fit; where a session has evaluated or predicted before,
 * or has no train_data, one that does not train. Borrowed. */
ET_NODISCARD et_status et_session_trainer(struct et_session *s,
                                          struct et_trainer **out);
/* How fit ended, as run.json has it: "finished", "preempted"; NULL before. Constant. */
const char *et_session_outcome(const struct et_session *s);
/* Any thread: the run ends after the batch under way, and is saved. */
void et_session_stop(struct et_session *s);
/* Evaluates on the recipe's eval_data; the results are what
 * et_state_get_eval_metrics has then. */
ET_NODISCARD et_status et_session_eval(struct et_session *s);
/* The model's outputs at X, a leaf on the session's device, prepared as a loader does:
 * images f32 [N,C,H,W], tokens I32 [B,T]. *OUT is a leaf f32, row-major, the
 * caller's. */
ET_NODISCARD et_status et_session_predict(struct et_session *s, struct et_tensor *x,
                                          struct et_tensor **out);

/* Borrowed, until the session is closed. */
struct et_device *et_session_device(struct et_session *s);
struct et_model *et_session_model(struct et_session *s);
const struct et_state *et_session_state(struct et_session *s);
/* Of the run; NULL before fit, or without a directory. */
const char *et_session_directory(const struct et_session *s);
/* The recipe that it came to, as YAML with the origin of each value. */
const char *et_session_recipe(const struct et_session *s);
/* The loader of data set I of eval_data, or of train_data (I -1); NULL: the recipe has
 * no such data. */
struct et_loader *et_session_loader(struct et_session *s, int i);

/* ---- the same as a trainer ---- */

/* et_session_open and et_session_trainer in one call, for who needs no more: the
 * session is closed as the trainer is freed, which ends the run. EINVAL: the recipe has
 * no train_data. */
ET_NODISCARD et_status et_trainer_from_recipe(struct et_ctx *cx, const char *path,
                                              const struct et_session_options *options,
                                              struct et_diagnostics *errors,
                                              struct et_trainer **out);

/* ---- numbers of a state, one by one ---- */

/* The number of NAME: epoch, batch, sample, token, batch_in_epoch, seconds (of
 * training), loss (of the last batch), lr, batch_size, grad_accum; or what the record
 * under way has by that name, such as "metrics/train/Accuracy"; or an evaluation had
 * last, such as "metrics/eval/Accuracy". False: no number has
 * this name. */
bool et_state_number(const struct et_state *state, const char *name, double *out);
/* The name of the I-th of the numbers of record and evaluation; NULL past the last. */
const char *et_state_number_name(const struct et_state *state, int i);

/* ---- where fields are ---- */
/* The place of FIELD in struct NAME ("et_desc", "shape") and its bytes; an array's are
 * those of all. FIELD "": the struct itself. False: this library has no such field, or
 * shows none of it. */
bool et_layout_field(const char *name, const char *field, size_t *offset, size_t *size);

#ifdef __cplusplus
}
#endif
#endif
