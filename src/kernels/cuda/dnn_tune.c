/* SPDX-License-Identifier: Apache-2.0 */
/* dnn_tune.c: which of several plans for one graph is the fastest, by running them.
 *
 * Operands are random numbers in memory taken for the while; what is neither f32, bf16
 * nor f16 (seeds, offsets) is zero. */
#include <math.h>

#include "kernels/cuda/dnn_plan.h"
#include "kernels/cuda/noise.h"
#include "kernels/cuda/trial.h"

struct scratch {
    struct etk_trial trial;
    void *ptr[ETK_DNN_SLOTS], *ws;
};

/* Elements from the first of T to behind its last. */
static int64_t
extent(const struct etk_dnn_tensor *t)
{
    int64_t last = 0;
    for (int i = 0; i < t->ndim; i++)
        last += (t->shape[i] - 1) * t->stride[i];
    return last + 1;
}

static bool
float_of(cudnnDataType_t dtype, enum et_dtype *out)
{
    cudnnDataType_t known;
    static const enum et_dtype all[] = {ET_F32, ET_BF16, ET_F16};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (etk_dnn_dtype(all[i], &known) && known == dtype) {
            *out = all[i];
            return true;
        }
    return false;
}

static size_t
bytes_of(const struct etk_dnn_tensor *t)
{
    enum et_dtype dtype;
    size_t size = float_of(t->dtype, &dtype) ? et_dtype_size(dtype) : sizeof(int64_t);
    return etk_round_up((size_t)extent(t) * size);
}

static cudaError_t
fill(struct et_device_handle *d, const struct etk_dnn_tensor *t, void *out)
{
    enum et_dtype dtype;
    if (!float_of(t->dtype, &dtype))
        return cudaMemsetAsync(out, 0, bytes_of(t), d->stream);
    return etk_launch_noise(dtype, out, extent(t), (uint64_t)t->slot, d->gpu.sm_count,
                            d->stream);
}

/* False where there is no room. */
static bool
take_scratch(struct et_device_handle *d, const struct etk_dnn_graph *g, size_t ws,
             struct scratch *s)
{
    size_t bytes = etk_round_up(ws + 1);
    for (int i = 0; i < g->n_tensors; i++)
        bytes += g->tensor[i].slot >= 0 ? bytes_of(&g->tensor[i]) : 0;
    if (!etk_trial_open(d, bytes, &s->trial))
        return false;
    char *at = s->trial.block;
    for (int i = 0; i < g->n_tensors; i++) {
        if (g->tensor[i].slot < 0)
            continue;
        s->ptr[g->tensor[i].slot] = at;
        if (fill(d, &g->tensor[i], at) != cudaSuccess)
            return false;
        at += bytes_of(&g->tensor[i]);
    }
    s->ws = at;
    return true;
}

/* A plan to be run. */
struct attempt {
    struct et_device_handle *dev;
    struct etk_dnn_plan *plan;
    const struct scratch *scratch;
};

static et_status
run_plan(void *data)
{
    const struct attempt *a = data;
    return etk_dnn_run(a->plan, a->scratch->ptr, a->scratch->ws, a->dev->stream);
}

et_status
etk_dnn_fastest(struct et_device_handle *d, const struct etk_dnn_graph *g,
                struct etk_dnn_plan *const *plan, int n, size_t ws, int *best)
{
    struct scratch s = {0};
    float least = INFINITY;
    et_status lost = ET_OK;
    *best = -1;
    if (take_scratch(d, g, ws, &s))
        for (int i = 0; i < n && lost == ET_OK; i++) {
            float ms;
            struct attempt a = {d, plan[i], &s};
            et_status status = etk_trial_measure(d, &s.trial, run_plan, &a, least, &ms);
            if (status == ET_EDEVICE)
                lost = status;
            if (status != ET_OK || ms >= least)
                continue;
            least = ms;
            *best = i;
        }
    etk_trial_close(d, &s.trial);
    return lost;
}
