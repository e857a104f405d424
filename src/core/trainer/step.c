/* SPDX-License-Identifier: Apache-2.0 */
/* step.c: one batch: the closure, the update, and what happens when memory is short.
 *
 * With one microbatch everything from the forward pass to the optimizer is one
 * evaluation. With k, each microbatch is one (the same plan), adding weighted gradients
 * into a flat sum, and the update is one more. Until an evaluation's commit nothing has
 * changed, so a batch that did not fit is simply done again in smaller pieces. */
#include "config.h"

#include <math.h>
#include <stdio.h>

#include "core/graph/spent.h"
#include "core/trainer/ranks.h"
#include "core/trainer/readback.h"
#include "core/trainer/trainer_impl.h"

/* Losses in pieces and microbatches of a batch with N samples. */
static int64_t
count_microbatches(const struct et_trainer *t, int64_t n, int64_t *rows)
{
    int64_t size;
    if (t->config.microbatch_size) {
        int64_t s = t->config.microbatch_size, pieces = (n + s - 1) / s;
        size = (n + pieces - 1) / pieces; /* even pieces: spec/trainer.md 7.4 */
    } else {
        size = (n + t->pieces.accum - 1) / t->pieces.accum;
    }
    *rows = size < 1 ? 1 : size;
    return (n + *rows - 1) / *rows;
}

static struct et_tensor *
slice_rows(struct et_graph *g, struct et_tensor *x, int64_t first, int64_t n)
{
    if (!x || (first == 0 && x->desc.shape[0] == n))
        return x;
    return et_slice(g, x, 0, first, n, 1);
}

struct et_samples
eti_rows(struct et_graph *g, const struct et_samples *all, int64_t first, int64_t n)
{
    struct et_samples s = *all;
    s.x = slice_rows(g, all->x, first, n);
    s.target = slice_rows(g, all->target, first, n);
    for (int i = 0; i < s.n_others; i++)
        s.other[i].tensor = slice_rows(g, all->other[i].tensor, first, n);
    s.n = n;
    s.first_row = first;
    return s;
}

static void
show_module(void *data, struct et_graph *g, struct et_module *m, struct et_tensor *x,
            struct et_tensor *y)
{
    const struct et_state *s = data;
    (void)g;
    for (int i = 0; i < s->n_callbacks; i++)
        if (s->callbacks[i]->type->module)
            s->callbacks[i]->type->module(s->callbacks[i], s, m, x, y);
}

static bool
has_onlookers(const struct et_state *s)
{
    for (int i = 0; i < s->n_callbacks; i++)
        if (s->callbacks[i]->type->module)
            return true;
    return false;
}

static et_status
forward_and_loss(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    struct et_forward f = {
        .g = s->graph,
        .samples = &s->batch,
        .training = true,
        .keep_stats = s->pass > 0,
        .rng = t->rng,
        .place = eti_ranks_place(t),
        .look = has_onlookers(s) ? show_module : NULL,
        .look_data = s,
    };
    const int64_t rng[2] = {
        (int64_t)et_rng_key(s->seed, ET_RNG_DROPOUT),
        s->first_sample + s->batch.first_row,
    };
    ET_TRY(et_tensor_write(s->cx, t->rng, rng, sizeof rng));
    eti_graph_set_part(s->graph, ETI_SPENT_FORWARD);
    ET_TRY(eti_run(t, ET_EVENT_BEFORE_FORWARD));
    s->loss = NULL;
    s->outputs = eti_step_train_forward(t, &f);
    ET_TRY(eti_run(t, ET_EVENT_AFTER_FORWARD));
    ET_TRY(eti_run(t, ET_EVENT_BEFORE_LOSS));
    s->loss = eti_step_train_loss(t);
    ET_TRY(eti_run(t, ET_EVENT_AFTER_LOSS));
    return et_graph_status(s->graph);
}

/* A step may take several evaluations: the one that needs most tells what it needs. */
static void
note_plan(struct et_trainer *t)
{
    struct et_plan_info *most = &t->measured.train, now;
    et_graph_last_plan(t->state.graph, &now);
    if (now.slab_bytes + now.workspace_bytes >=
        most->slab_bytes + most->workspace_bytes)
        *most = now;
}

static et_status
one_microbatch(struct et_trainer *t, int64_t first, int64_t n)
{
    struct et_state *s = &t->state;
    struct eti_train_step *k = &t->step;
    struct et_graph *g = s->graph;
    s->batch = eti_rows(g, &s->full, first, n);
    k->first = first;
    k->n = n;
    k->samples = s->batch; /* metrics see no mixed labels */
    k->share = NULL;
    k->share_is_known = false;
    ET_TRY(forward_and_loss(t));
    ET_TRY(eti_run(t, ET_EVENT_BEFORE_BACKWARD));
    if (!s->loss)
        return et_graph_status(g);
    ET_TRY(eti_parts_loss(t));
    eti_graph_set_part(g, ETI_SPENT_BACKWARD);
    ET_TRY(eti_step_backward(t, k->loss));
    k->grads = t->params.grads;
    ET_TRY(eti_run(t, ET_EVENT_AFTER_BACKWARD));
    ET_TRY(eti_parts_add(t));
    if (k->alone)
        return ET_OK;
    ET_TRY(et_eval_keeping_casts(g));
    note_plan(t);
    return ET_OK;
}

static et_status
closure(struct et_state *s, int pass)
{
    struct et_trainer *t = (struct et_trainer *)s;
    s->pass = pass;
    s->batch = s->full;
    ET_TRY(eti_run(t, ET_EVENT_BEFORE_TRAIN_BATCH));
    int64_t rows;
    t->step.alone = count_microbatches(t, s->full.n, &rows) == 1;
    for (int64_t first = 0; first < s->full.n; first += rows) {
        int64_t n = s->full.n - first < rows ? s->full.n - first : rows;
        ET_TRY(one_microbatch(t, first, n));
    }
    s->batch = s->full;
    s->squares_of = NULL; /* the flat sum is the same leaf at every step */
    ET_TRY(eti_parts_grad(t));
    return eti_run(t, ET_EVENT_AFTER_TRAIN_BATCH);
}

/* The update is formulas: algorithms may add to it, and callbacks look at it. */
static et_status
show_update(struct et_state *s)
{
    for (int i = 0; i < s->n_algorithms; i++)
        if (s->algorithms[i]->type->update && !s->algorithms[i]->off)
            ET_TRY(s->algorithms[i]->type->update(s->algorithms[i], s));
    for (int i = 0; i < s->n_callbacks; i++)
        if (s->callbacks[i]->type->update)
            ET_TRY(s->callbacks[i]->type->update(s->callbacks[i], s));
    return ET_OK;
}

/* Appends the update from state->grad and runs everything pending. */
static et_status
update(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    eti_graph_set_part(s->graph, ETI_SPENT_UPDATE);
    s->grad = eti_step_clip(t);
    ET_TRY(eti_parts_skip(t));
    ET_TRY(eti_step_optimizer(t, t->step.skip));
    ET_TRY(eti_parts_append(t));
    ET_TRY(show_update(s));
    ET_TRY(eti_readback_append(t));
    return et_eval(s->graph, NULL, 0);
}

et_status
eti_keep_batch(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    struct et_tensor *all[ET_MAX_FIELDS + 2] = {s->full.x, s->full.target};
    int n = 0;
    bool computed = false;
    if (!s->full.x)
        return ET_OK;
    for (int i = 0; i < s->full.n_others; i++)
        all[2 + i] = s->full.other[i].tensor;
    for (int i = 0; i < 2 + s->full.n_others; i++) {
        if (!all[i])
            continue;
        computed |= all[i]->node != NULL;
        all[n++] = all[i];
    }
    return computed ? et_eval(s->graph, all, n) : ET_OK;
}

static et_status
attempt(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    struct eti_train_step *k = &t->step;
    int64_t rows;
    *k = (struct eti_train_step){.spare = k->spare};
    k->several = s->step || count_microbatches(t, s->full.n, &rows) > 1;
    ET_TRY(eti_parts_begin(t));
    /* Values that hooks computed must survive the evaluations before their last reader
     * is built. */
    if (k->several ||
        (t->common.comm && t->pieces.is_auto)) /* another rank may want it again */
        ET_TRY(eti_keep_batch(t));
    if (s->step) {
        ET_TRY(s->step(s, s->step_data, closure));
        s->squares_of = NULL; /* there may have been a commit since */
    } else {
        ET_TRY(closure(s, 0));
    }
    return update(t);
}

/* A piece takes at least its share of what the whole batch takes. So if k pieces need S
 * each and F is free, fewer than k S / F pieces cannot fit. If the planner found the
 * shortage, that gives the smallest number to try; if memory ran out after planning,
 * the number is doubled. */
int64_t
eti_more_pieces(const struct et_trainer *t, int64_t now, int64_t most, bool alone)
{
    size_t needed, had;
    int64_t more = now * 2;
    et_graph_shortage(t->state.graph, &needed, &had);
    if (had > 0 && alone)
        more = (int64_t)ceil((double)now * (double)needed / (double)had);
    more = more > now ? more : now + 1;
    return more < most ? more : most;
}

/* This rank has no memory for the batch, says ET_ENOMEM; or (ET_OK) another has none.
 * May it be done in smaller pieces? All ranks then cut theirs alike. */
static et_status
cut_smaller(struct et_trainer *t, et_status status)
{
    struct et_state *s = &t->state;
    int64_t most = s->full.n;
    if (t->common.comm)
        most = s->batch_size / et_comm_world(t->common.comm);
    if (status != ET_OK &&
        (status != ET_ENOMEM || !t->pieces.is_auto || t->pieces.accum >= most))
        return status;
    int64_t more = eti_more_pieces(t, t->pieces.accum, most, !t->common.comm);
    et_report(s->cx, ET_LOG_WARN, "%s; grad_accum %lld -> %lld",
              status == ET_OK ? "another rank is short of memory"
                              : et_error_get(s->cx)->message,
              (long long)t->pieces.accum, (long long)more);
    et_error_clear(s->cx);
    et_graph_abandon(s->graph);
    if (status != ET_OK)
        ET_TRY(eti_ranks_stand_in(t));
    t->pieces.accum = s->grad_accum = more;
    return ET_OK;
}

et_status
eti_plan_step(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    int64_t accum = t->pieces.accum;
    et_status status = attempt(t);
    while (status == ET_ENOMEM && t->pieces.is_auto && t->pieces.accum < s->full.n) {
        t->pieces.accum =
            eti_more_pieces(t, t->pieces.accum, s->full.n, !t->common.comm);
        et_error_clear(s->cx);
        et_graph_abandon(s->graph);
        status = attempt(t);
    }
    t->pieces.accum = accum;
    return status;
}

et_status
eti_train_batch(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    struct et_graph_stats before, after;
    et_graph_get_stats(s->graph, &before);
    eti_groups_apply(t);
    for (;;) {
        bool again = false;
        t->measured.train = (struct et_plan_info){0};
        et_status status = attempt(t);
        eti_graph_set_part(s->graph, ETI_SPENT_NONE);
        if (status == ET_OK)
            ET_TRY(eti_ranks_hear(t, &again));
        if (status == ET_OK && !again)
            break;
        ET_TRY(eti_parts_undo(t));
        ET_TRY(cut_smaller(t, status));
    }
    et_graph_get_stats(s->graph, &after);
    note_plan(t);
    t->measured.flops = after.flops - before.flops;
    t->measured.bytes = after.moved_bytes - before.moved_bytes;
    return eti_readback_send(t);
}
