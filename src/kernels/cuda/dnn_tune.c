/* dnn_tune.c: which of several plans for one graph is the fastest, by running them.
 *
 * Operands are random numbers in memory taken for the while, since zeros are multiplied
 * faster; what is neither f32, bf16 nor f16 (seeds, offsets) is zero. */
#include <math.h>

#include "kernels/cuda/dnn_plan.h"
#include "kernels/cuda/noise.h"

/* Of the card, at most this part is taken: what is trained lies there too. */
enum { SCRATCH_PART = 4, MOST_RUNS = 20 };
/* A plan that runs for less than this is run again: an event tells half a microsecond.
 */
#define TURN_MS 0.2f

struct scratch {
    char *block;
    void *ptr[ETK_DNN_SLOTS], *ws;
    uint64_t kept; /* bytes of the pool before */
    cudaEvent_t mark[2];
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

static bool
take_block(struct et_device_handle *d, size_t bytes, struct scratch *s)
{
    void *block;
    if (bytes > d->gpu.memory / SCRATCH_PART ||
        cudaMemPoolGetAttribute(d->pool, cudaMemPoolAttrReservedMemCurrent, &s->kept) !=
            cudaSuccess)
        return false;
    if (cudaMallocFromPoolAsync(&block, bytes, d->pool, d->stream) != cudaSuccess) {
        (void)cudaGetLastError(); /* that this was too much is no one else's concern */
        return false;
    }
    s->block = block;
    return true;
}

/* False where there is no room. */
static bool
take_scratch(struct et_device_handle *d, const struct etk_dnn_graph *g, size_t ws,
             struct scratch *s)
{
    size_t bytes = etk_round_up(ws + 1);
    for (int i = 0; i < g->n_tensors; i++)
        bytes += g->tensor[i].slot >= 0 ? bytes_of(&g->tensor[i]) : 0;
    if (!take_block(d, bytes, s))
        return false;
    char *at = s->block;
    for (int i = 0; i < g->n_tensors; i++) {
        if (g->tensor[i].slot < 0)
            continue;
        s->ptr[g->tensor[i].slot] = at;
        if (fill(d, &g->tensor[i], at) != cudaSuccess)
            return false;
        at += bytes_of(&g->tensor[i]);
    }
    s->ws = at;
    return cudaEventCreate(&s->mark[0]) == cudaSuccess &&
           cudaEventCreate(&s->mark[1]) == cudaSuccess;
}

/* Gives the block back, and the pool what it grew by. */
static void
drop_scratch(struct et_device_handle *d, struct scratch *s)
{
    for (int i = 0; i < 2; i++)
        if (s->mark[i])
            (void)cudaEventDestroy(s->mark[i]);
    if (!s->block)
        return;
    (void)cudaFreeAsync(s->block, d->stream);
    (void)cudaStreamSynchronize(d->stream);
    (void)cudaMemPoolTrimTo(d->pool, s->kept);
}

/* Milliseconds of one of COUNT runs in a row. */
static et_status
turn(struct et_device_handle *d, struct etk_dnn_plan *p, const struct scratch *s,
     int count, float *ms)
{
    ETK_TRY_CUDA(d, cudaEventRecord(s->mark[0], d->stream));
    for (int i = 0; i < count; i++)
        ET_TRY(etk_dnn_run(p, s->ptr, s->ws, d->stream));
    ETK_TRY_CUDA(d, cudaEventRecord(s->mark[1], d->stream));
    ETK_TRY_CUDA(d, cudaEventSynchronize(s->mark[1]));
    ETK_TRY_CUDA(d, cudaEventElapsedTime(ms, s->mark[0], s->mark[1]));
    *ms /= (float)count;
    return ET_OK;
}

/* The first run loads the kernel and does not count; the second says whether more are
 * worth their time, with LEAST the best so far. */
static et_status
measure(struct et_device_handle *d, struct etk_dnn_plan *p, const struct scratch *s,
        float least, float *ms)
{
    float more;
    ET_TRY(turn(d, p, s, 1, ms));
    ET_TRY(turn(d, p, s, 1, ms));
    if (*ms > 1.25f * least)
        return ET_OK;
    int count = *ms * MOST_RUNS > TURN_MS ? (int)(TURN_MS / *ms) + 1 : MOST_RUNS;
    ET_TRY(turn(d, p, s, count, &more));
    *ms = more < *ms ? more : *ms;
    return ET_OK;
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
            d->on_trial = true;
            et_status status = measure(d, plan[i], &s, least, &ms);
            d->on_trial = false;
            if (status == ET_EDEVICE)
                lost = status;
            if (status != ET_OK || ms >= least)
                continue;
            least = ms;
            *best = i;
        }
    drop_scratch(d, &s);
    return lost;
}
