/* SPDX-License-Identifier: Apache-2.0 */
/* gyro_dropout.h: what the algorithm needs besides etude/functional.h. */
#ifndef ETI_MODULES_GYRO_DROPOUT_H
#define ETI_MODULES_GYRO_DROPOUT_H

#include "etude/functional.h"

/* The masks of step STEP; its batch is not known yet. A pass before it is, as that
 * which selects samples, is over a batch of its own. */
void eti_gyro_dropout_pick(struct et_gyro_dropout *d, int64_t step);
/* For how many steps masks are used; a run that goes on keeps what it had. */
int64_t *eti_gyro_dropout_period(struct et_gyro_dropout *d);

#endif
