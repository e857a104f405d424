/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h: the two halves of an event, for one whose observers come later
 * (engine.c). */
#ifndef ETI_TRAINER_ENGINE_H
#define ETI_TRAINER_ENGINE_H

#include "etude/trainer.h"

ET_NODISCARD et_status eti_engine_act(struct et_state *s, enum et_event event);
ET_NODISCARD et_status eti_engine_watch(struct et_state *s, enum et_event event);
/* Does a callback have to see EVENT before the run goes on? */
bool eti_engine_waits(const struct et_state *s, enum et_event event);

#endif
