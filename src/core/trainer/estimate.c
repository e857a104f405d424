/* SPDX-License-Identifier: Apache-2.0 */
/* estimate.c: what a run will need, from its plans, before anything runs.
 *
 * A dry graph plans every evaluation and reserves its memory, so one dry batch and one
 * dry evaluation leave the device's accounts as the real run's first ones would. Time
 * is FLOPs and bytes over the rates of two short measurements on this machine: an upper
 * bound on speed, since kernels reach a part of each. */
#include "config.h"

#include <string.h>

#include "core/base/need.h"
#include "core/checkpoint/archive.h"
#include "core/trainer/trainer_impl.h"

/* Best of three, in units of work per second. */
static et_status
measure(struct et_trainer *t, bool flops, double *rate)
{
    struct et_state *s = &t->state;
    enum { SIDE = 768, LONG = 1 << 24 };
    const int64_t square[] = {SIDE, SIDE}, line[] = {LONG};
    struct et_tensor *x = NULL, *y = NULL;
    struct et_graph *g = NULL;
    et_status status = et_tensor_new(s->cx, s->dev, ET_F32, flops ? 2 : 1,
                                     flops ? square : line, ET_ROW_MAJOR, NULL, &x);
    if (status == ET_OK)
        status = et_tensor_new(s->cx, s->dev, ET_F32, flops ? 2 : 1,
                               flops ? square : line, ET_ROW_MAJOR, NULL, &y);
    if (status == ET_OK)
        status = et_graph_new(s->cx, s->dev, &g);
    double best = 0;
    for (int i = 0; i < 4 && status == ET_OK; i++) {
        et_graph_reset(g);
        et_assign(g, y,
                  flops ? et_matmul(g, x, x, false, false) : et_add_scalar(g, x, 1));
        double start = eti_monotonic(s->cx);
        status = et_eval(g, NULL, 0);
        double seconds = eti_monotonic(s->cx) - start;
        if (i > 0 && (best == 0 || seconds < best)) /* the first one plans */
            best = seconds;
    }
    et_graph_free(&g);
    et_tensor_free(&x);
    et_tensor_free(&y);
    *rate = (flops ? 2.0 * SIDE * SIDE * SIDE : 2.0 * 4 * LONG) / (best > 0 ? best : 1);
    return status;
}

/* What a checkpoint would hold, all of it or the model's part. */
static et_status
count_bytes(struct et_trainer *t, bool model_only, size_t *out)
{
    struct et_archive a = {0};
    eti_archive_begin(&a, t->state.cx);
    a.counts = true;
    et_status status =
        model_only ? eti_archive_model(t, &a) : eti_archive_trainer(t, &a);
    *out = a.bytes;
    eti_archive_release(&a);
    return status;
}

et_status
et_trainer_estimate(struct et_trainer *t, struct et_estimate *out)
{
    ETI_NEED(t ? t->state.cx : NULL, t, out);
    struct et_state *s = &t->state;
    memset(out, 0, sizeof *out);
    if (!t->config.dry)
        return ET_FAIL(s->cx, ET_EINVAL, "estimate needs a dry trainer");
    for (int i = 0; i < s->params->n; i++)
        out->params += s->params->slot[i].frozen ? 0 : s->params->slot[i].count;
    ET_TRY(et_trainer_fit(t, ET_BATCHES(1)));
    out->train = t->measured.train;
    out->eval = t->measured.eval;
    out->grad_accum = t->pieces.accum;
    ET_TRY(count_bytes(t, false, &out->checkpoint_bytes));
    ET_TRY(count_bytes(t, true, &out->weights_bytes));
    struct et_device_memory memory;
    et_device_get_memory(s->dev, &memory);
    out->peak_bytes = memory.peak_bytes;
    if (s->timestamp.sample > 0)
        out->flops_per_sample =
            (double)(t->measured.flops) / (double)s->timestamp.sample;
    double flops, bytes;
    ET_TRY(measure(t, true, &flops));
    ET_TRY(measure(t, false, &bytes));
    double compute = (double)t->measured.flops / flops;
    double move = (double)t->measured.bytes / bytes;
    out->seconds_per_batch = compute > move ? compute : move;
    return ET_OK;
}
