/* SPDX-License-Identifier: Apache-2.0 */
/* trial.c: see trial.h.
 *
 * Operands are random numbers (noise.h), since zeros are multiplied faster. */
#include "kernels/cuda/trial.h"

#include <stdlib.h>
#include <string.h>

enum {
    SCRATCH_PART = 4, /* of the card's memory at most this part is taken */
    MOST_RUNS = 20,
};
/* What runs for less than this is run again: an event tells half a microsecond. */
#define TURN_MS 0.2f

bool
etk_may_time(const struct et_device_handle *d)
{
    const char *tune = getenv("ETUDE_TUNE");
    return !d->deterministic && !d->capturing && !(tune && strcmp(tune, "0") == 0);
}

bool
etk_trial_open(struct et_device_handle *d, size_t bytes, struct etk_trial *t)
{
    uint64_t reserved = 0;
    void *block = NULL;
    memset(t, 0, sizeof *t);
    if (bytes > d->gpu.memory / SCRATCH_PART ||
        cudaMemPoolGetAttribute(d->pool, cudaMemPoolAttrReservedMemCurrent,
                                &reserved) != cudaSuccess)
        return false;
    if (cudaMallocFromPoolAsync(&block, bytes, d->pool, d->stream) != cudaSuccess) {
        (void)cudaGetLastError(); /* that this was too much is no one else's concern */
        return false;
    }
    t->kept = (size_t)reserved;
    t->block = block;
    for (int i = 0; i < 2; i++)
        if (cudaEventCreate(&t->mark[i]) != cudaSuccess)
            return false;
    return true;
}

/* Gives the block back, and the pool what it grew by. */
void
etk_trial_close(struct et_device_handle *d, struct etk_trial *t)
{
    for (int i = 0; i < 2; i++)
        if (t->mark[i])
            (void)cudaEventDestroy(t->mark[i]);
    if (!t->block)
        return;
    (void)cudaFreeAsync(t->block, d->stream);
    (void)cudaStreamSynchronize(d->stream);
    (void)cudaMemPoolTrimTo(d->pool, t->kept);
}

/* Milliseconds of one of COUNT runs in a row. */
static et_status
turn(struct et_device_handle *d, const struct etk_trial *t, etk_trial_fn *run,
     void *data, int count, float *ms)
{
    ETK_TRY_CUDA(d, cudaEventRecord(t->mark[0], d->stream));
    for (int i = 0; i < count; i++)
        ET_TRY(run(data));
    ETK_TRY_CUDA(d, cudaEventRecord(t->mark[1], d->stream));
    ETK_TRY_CUDA(d, cudaEventSynchronize(t->mark[1]));
    ETK_TRY_CUDA(d, cudaEventElapsedTime(ms, t->mark[0], t->mark[1]));
    *ms /= (float)count;
    return ET_OK;
}

/* The first run loads the kernel and does not count; the second says whether more are
 * worth their time. */
static et_status
measure(struct et_device_handle *d, const struct etk_trial *t, etk_trial_fn *run,
        void *data, float least, float *ms)
{
    float more;
    ET_TRY(turn(d, t, run, data, 1, ms));
    ET_TRY(turn(d, t, run, data, 1, ms));
    if (*ms > 1.25f * least)
        return ET_OK;
    int count = *ms * MOST_RUNS > TURN_MS ? (int)(TURN_MS / *ms) + 1 : MOST_RUNS;
    ET_TRY(turn(d, t, run, data, count, &more));
    *ms = more < *ms ? more : *ms;
    return ET_OK;
}

et_status
etk_trial_measure(struct et_device_handle *d, const struct etk_trial *t,
                  etk_trial_fn *run, void *data, float least, float *ms)
{
    d->on_trial = true;
    et_status status = measure(d, t, run, data, least, ms);
    d->on_trial = false;
    return status;
}
