/* SPDX-License-Identifier: Apache-2.0 */
/* trial.h: timing what a kernel could be made of, while it is prepared. */
#ifndef ETUDE_KERNELS_CUDA_TRIAL_H
#define ETUDE_KERNELS_CUDA_TRIAL_H

#include "kernels/cuda/cuda.h"

/* Memory to try in, and two marks. */
struct etk_trial {
    char *block; /* ETK_ALIGN-aligned */
    size_t kept; /* bytes that the pool held before */
    cudaEvent_t mark[2];
};

/* May a clock decide? Not in deterministic mode, where no bit may depend on one, nor
 * while a stream is recorded, nor with ETUDE_TUNE=0. */
bool etk_may_time(const struct et_device_handle *d);
/* False where memory is short: what is trained lies there too. The caller closes it in
 * either case. */
bool etk_trial_open(struct et_device_handle *d, size_t bytes, struct etk_trial *t);
void etk_trial_close(struct et_device_handle *d, struct etk_trial *t);
/* Queues one run in the handle's stream. */
typedef et_status etk_trial_fn(void *data);
/* Milliseconds of one run; LEAST: the best so far, beside which a slow one is not run
 * again. A failure that the GPU survives is ENOTSUP, or what it was. */
ET_NODISCARD et_status etk_trial_measure(struct et_device_handle *d,
                                         const struct etk_trial *t, etk_trial_fn *run,
                                         void *data, float least, float *ms);

#endif
