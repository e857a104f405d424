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
/* times.c: EINVAL names the option, of the run or of a component of its, whose time
 * counts tokens or iterations in a run that has none. */
ET_NODISCARD et_status eti_check_times(struct et_trainer *t);
/* The same of the OPTIONS of C alone, and of N schedulers, which the run may be without
 * (rehearse.c). T has begun. */
ET_NODISCARD et_status eti_check_component_times(struct et_trainer *t,
                                                 const struct et_component *c,
                                                 const void *options);
ET_NODISCARD et_status eti_check_scheduler_times(struct et_trainer *t,
                                                 const struct et_scheduler *list,
                                                 int n);
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
/* A step is planned with A, whose evaluations are not computed: nothing is left of
 * it. */
ET_NODISCARD et_status eti_algorithm_try(struct et_trainer *t, struct et_algorithm *a);
/* The settle of all that are on. */
ET_NODISCARD et_status eti_algorithms_settle(struct et_trainer *t);
/* switch.c: A acts as before the first batch, and a step is planned with it. Followed
 * by eti_switch_stays, or, however far it got, by eti_switch_back. */
ET_NODISCARD et_status eti_switch_enter(struct et_trainer *t, struct et_algorithm *a);
/* It is on, or off, from here on: checkpoints say so. */
ET_NODISCARD et_status eti_switch_stays(struct et_trainer *t, struct et_algorithm *a,
                                        bool on);
/* The run is as if A had never been there. EINTERNAL: it cannot go on. */
ET_NODISCARD et_status eti_switch_back(struct et_trainer *t, struct et_algorithm *a);
/* A, whose class has an undo, is switched between two batches, by all ranks. EINTERNAL:
 * the run cannot go on; otherwise what fails changes nothing. */
ET_NODISCARD et_status eti_switch(struct et_trainer *t, struct et_algorithm *a,
                                  bool on);
/* Puts a new list, as a manifest has it, in the place of *LIST; NULL: nothing was
 * switched. */
struct json_t;
ET_NODISCARD et_status eti_switches_list(struct et_trainer *t, struct json_t **list);
/* What such a list says, before values are loaded. */
ET_NODISCARD et_status eti_switch_again(struct et_trainer *t,
                                        const struct json_t *switched);
/* A makes itself ready: those of EVENTS that came before the first batch. */
ET_NODISCARD et_status eti_algorithm_prepare(struct et_trainer *t,
                                             struct et_algorithm *a, uint64_t events);

#endif
