/* SPDX-License-Identifier: Apache-2.0 */
/* swa.h: the rate while SWA anneals it, for its test. */
#ifndef ETI_ALGORITHM_SWA_H
#define ETI_ALGORITHM_SWA_H

#include <stdbool.h>
#include <stdint.h>

/* Places of anneal_strategy's words: those from ETI_SWA_COS on are the cosine. */
enum { ETI_SWA_LINEAR = 0, ETI_SWA_COS = 2 };

/* Behind DONE of STEPS steps from INITIAL to SWA_LR. */
double eti_swa_rate(double initial, double swa_lr, bool cosine, int64_t steps,
                    int64_t done);

#endif
