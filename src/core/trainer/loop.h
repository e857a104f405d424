/* SPDX-License-Identifier: Apache-2.0 */
/* loop.h: what the files of the training loop ask of each other (setup.c, prepare.c,
 * fit.c, added.c, control.c, join.c). */
#ifndef ETI_TRAINER_LOOP_H
#define ETI_TRAINER_LOOP_H

#include "etude/trainer.h"

/* setup.c: what products are computed in from the next step on; ENOTSUP. */
ET_NODISCARD et_status eti_take_precision(struct et_trainer *t, int precision);
/* prepare.c: how long a run of CONFIG is to be. */
ET_NODISCARD et_status eti_run_length(struct et_ctx *cx,
                                      const struct et_trainer_config *config,
                                      struct et_run_length *out);
/* The same of T's, which its state has, too, and its schedules are checked. */
ET_NODISCARD et_status eti_set_length(struct et_trainer *t);
/* Everything of OPTIONS, and the loader at the timestamp's place. */
ET_NODISCARD et_status eti_prepare_fit(struct et_trainer *t,
                                       const struct et_fit_options *options);
/* fit.c: what to do about the last batch's gradient; true: the run went back. */
bool eti_judge(struct et_trainer *t);
/* control.c: applies what is asked for after the batches so far. */
ET_NODISCARD et_status eti_control_poll(struct et_trainer *t);
/* There may be requests that no step has told this rank of. */
void eti_control_expect(struct et_trainer *t);
/* Holds while the run is to be paused. */
ET_NODISCARD et_status eti_control_hold(struct et_trainer *t);
/* added.c: the training loader has the transforms of the algorithms that are on. No
 * batch is held. */
ET_NODISCARD et_status eti_added_follow(struct et_trainer *t);
/* Could it have them? Sets the SIZE, height and width, of images then. */
ET_NODISCARD et_status eti_added_try(struct et_trainer *t, int64_t size[2]);
/* An option has been set that they may have: they are made anew. */
void eti_added_forget(struct et_trainer *t);
/* join.c: A behind the others, the trainer's own from then on: there is room. */
void eti_algorithm_add(struct et_trainer *t, struct et_algorithm *a);
/* A makes itself ready: those of EVENTS that came before the first batch. */
ET_NODISCARD et_status eti_algorithm_prepare(struct et_trainer *t,
                                             struct et_algorithm *a, uint64_t events);

#endif
