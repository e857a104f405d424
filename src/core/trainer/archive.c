/* SPDX-License-Identifier: Apache-2.0 */
/* archive.c: what a run is made of between two steps: each value named once, for saving
 * and loading alike. See etude/archive.h.
 *
 * Everything random is keyed by counters that the timestamp holds, and the order of the
 * samples by the seed and the epoch: neither needs a place here. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/checkpoint/archive.h"
#include "core/data/loader_impl.h"
#include "core/trainer/loop.h"
#include "core/trainer/trainer_impl.h"

et_status
eti_archive_model(struct et_trainer *t, struct et_archive *a)
{
    struct et_leaves leaves;
    ET_TRY(et_module_leaves(t->state.cx, t->state.model->root, ET_PARAM | ET_BUFFER,
                            &leaves));
    et_status status = et_archive_enter(a, "model");
    for (int i = 0; i < leaves.n && status == ET_OK; i++)
        status = et_archive_tensor(a, leaves.v[i].name, leaves.v[i].param->tensor);
    et_archive_leave(a);
    et_leaves_release(&leaves);
    return status;
}

/* ARRAY of the parameter space, a value for each parameter. */
static et_status
archive_array(const struct et_param_space *space, const struct et_tensor *array,
              const char *name, struct et_archive *a)
{
    ET_TRY(et_archive_enter(a, name));
    for (int i = 0; i < space->n; i++) {
        struct et_tensor view = {
            .desc = space->slot[i].desc,
            .storage = array->storage,
            .offset = array->offset + space->slot[i].offset,
        };
        ET_TRY(et_archive_tensor(a, space->slot[i].name, &view));
    }
    et_archive_leave(a);
    return ET_OK;
}

/* State K of the parameter space's optimizer, for each parameter that has it. */
static et_status
archive_state(const struct et_param_space *space, int k, struct et_archive *a)
{
    ET_TRY(et_archive_enter(a, space->state_name[k]));
    for (int i = 0; i < space->n; i++)
        if (space->state[k][i])
            ET_TRY(et_archive_tensor(a, space->slot[i].name, space->state[k][i]));
    et_archive_leave(a);
    return ET_OK;
}

/* The names of what is frozen, so that a run goes on with that whatever froze it. */
static et_status
archive_frozen(struct et_trainer *t, struct et_archive *a)
{
    struct et_param_space *space = t->state.params;
    bool load = et_archive_mode(a) == ET_ARCHIVE_LOAD, yes = true;
    ET_TRY(et_archive_enter(a, "frozen"));
    for (int i = 0; i < space->n; i++) {
        struct et_param_slot *slot = &space->slot[i];
        bool frozen = et_archive_mode(a) == ET_ARCHIVE_SAVE
                          ? slot->frozen
                          : et_archive_has(a, slot->name);
        if (frozen)
            ET_TRY(et_archive_flag(a, slot->name, &yes));
        if (load)
            slot->frozen = frozen;
    }
    et_archive_leave(a);
    return load ? eti_follow_frozen(t) : ET_OK;
}

static et_status
archive_optimizer(struct et_trainer *t, struct et_archive *a)
{
    struct et_param_space *space = t->state.params;
    ET_TRY(et_archive_enter(a, "optimizer"));
    for (int k = 0; k < space->n_moments; k++)
        ET_TRY(archive_array(space, space->moment[k], space->moment_name[k], a));
    for (int k = 0; k < space->n_states; k++)
        ET_TRY(archive_state(space, k, a));
    ET_TRY(et_archive_enter(a, "updates"));
    for (int i = 0; i < space->n; i++)
        ET_TRY(et_archive_counts(a, space->slot[i].name, &space->slot[i].updates, 1, 0,
                                 ET_COUNT_MAX));
    et_archive_leave(a);
    ET_TRY(archive_frozen(t, a));
    et_archive_leave(a);
    return ET_OK;
}

/* ---- evaluations ---- */

/* The values last reached: hooks may ask for them. */
static et_status
archive_eval_values(struct et_trainer *t, struct et_archive *a)
{
    void *block = t->evaluation.value;
    int64_t n = t->state.n_eval_metrics,
            most = sizeof t->evaluation.value / sizeof *t->evaluation.value;
    if (et_archive_mode(a) == ET_ARCHIVE_SAVE)
        return et_archive_list(a, "values", &block, &n, sizeof *t->evaluation.value);
    block = NULL;
    ET_TRY(et_archive_list(a, "values", &block, &n, sizeof *t->evaluation.value));
    if (et_archive_mode(a) == ET_ARCHIVE_LOAD && n <= most) {
        if (n)
            memcpy(t->evaluation.value, block, (size_t)n * sizeof *t->evaluation.value);
        for (int64_t i = 0; i < n; i++)
            t->evaluation.value[i].name[sizeof t->evaluation.value[i].name - 1] = '\0';
        t->state.n_eval_metrics = (int)n;
    }
    et_free(t->state.cx, block);
    return ET_OK;
}

/* When each evaluator last ran. A recipe may give a resumed run other ones. */
static et_status
archive_evaluators(struct et_trainer *t, struct et_archive *a)
{
    ET_TRY(et_archive_enter(a, "evaluators"));
    ET_TRY(archive_eval_values(t, a));
    ET_TRY(et_archive_enter(a, "last_batch"));
    for (int i = 0; i < t->evaluation.n; i++) {
        struct eti_evaluator *e = &t->evaluation.v[i];
        if (et_archive_has(a, e->config.label))
            ET_TRY(et_archive_counts(a, e->config.label, &e->last_batch, 1, -1,
                                     ET_COUNT_MAX));
    }
    et_archive_leave(a);
    et_archive_leave(a);
    return ET_OK;
}

/* ---- the loop ---- */

/* A run whose schedule is never held has none. */
static et_status
archive_held(struct et_trainer *t, struct et_archive *a)
{
    struct et_timestamp held = t->common.held;
    bool has = et_archive_mode(a) == ET_ARCHIVE_SAVE ? t->config.hold_schedule
                                                     : et_archive_has(a, "held/counts");
    if (has)
        ET_TRY(et_archive_timestamp(a, "held", &held));
    if (et_archive_mode(a) == ET_ARCHIVE_LOAD)
        t->common.held =
            has && t->config.hold_schedule ? held : (struct et_timestamp){0};
    return ET_OK;
}

/* Which callback has ended the run, if one has: checkpoints of before 28 November 2026
 * do not say. */
static et_status
archive_stop(struct et_state *s, struct et_archive *a)
{
    ET_TRY(et_archive_enter(a, "stopped"));
    if (eti_archive_has_place(a)) {
        ET_TRY(et_archive_text(a, "by", s->stopped_by, sizeof s->stopped_by));
        ET_TRY(et_archive_text(a, "why", s->stopped_why, sizeof s->stopped_why));
    }
    et_archive_leave(a);
    return ET_OK;
}

static et_status
archive_loop(struct et_trainer *t, struct et_archive *a)
{
    struct et_state *s = &t->state;
    int64_t pending = t->evaluation.pending;
    int64_t rollback[] = {t->rollback.at, t->rollback.lost, t->rollback.in_a_row};
    ET_TRY(et_archive_enter(a, "trainer"));
    ET_TRY(et_archive_timestamp(a, "timestamp", &s->timestamp));
    ET_TRY(et_archive_timestamp(a, "before", &t->common.before));
    ET_TRY(archive_held(t, a));
    ET_TRY(et_archive_counts(a, "grad_accum", &t->pieces.accum, 1, 1, ET_COUNT_MAX));
    ET_TRY(et_archive_counts(a, "nonfinite_batches", &t->common.nonfinite_batches, 1, 0,
                             ET_COUNT_MAX));
    ET_TRY(et_archive_counts(a, "rollback", rollback, 3, 0, ET_COUNT_MAX));
    ET_TRY(et_archive_counts(a, "pending_eval", &pending, 1, 0, ET_EVENT_COUNT - 1));
    ET_TRY(et_archive_f64(a, "loss", &s->loss_value, 1));
    ET_TRY(et_archive_flag(a, "target_reached", &s->target_reached));
    ET_TRY(archive_stop(s, a));
    if (t->config.train && s->rank == 0)
        ET_TRY(eti_loader_archive(t->config.train, a));
    et_archive_leave(a);
    if (et_archive_mode(a) == ET_ARCHIVE_LOAD) {
        t->evaluation.pending = (int)pending;
        t->rollback = (struct eti_rollback){rollback[0], rollback[1], rollback[2]};
        s->grad_accum = t->pieces.accum;
    }
    return ET_OK;
}

/* ---- hooks ---- */

/* "ema", or "ema.1" for the second of a name; returns BUF. */
static const char *
name_of(const char *name, int nth, char *buf, size_t size)
{
    snprintf(buf, size, nth ? "%s.%d" : "%s", name, nth);
    return buf;
}

static et_status
archive_algorithms(struct et_trainer *t, struct et_archive *a)
{
    struct et_state *s = &t->state;
    char name[96];
    ET_TRY(et_archive_enter(a, "algorithms"));
    for (int i = 0; i < s->n_algorithms; i++) {
        struct et_algorithm *hook = s->algorithms[i];
        int nth = 0;
        for (int k = 0; k < i; k++)
            nth += s->algorithms[k]->type == hook->type;
        if (!hook->type->archive)
            continue;
        ET_TRY(et_archive_enter(
            a, name_of(hook->type->info.name, nth, name, sizeof name)));
        /* A run that goes back to before that: it begins anew, with what is loaded. */
        bool is_new = hook->joined && et_archive_mode(a) != ET_ARCHIVE_SAVE &&
                      !eti_archive_has_place(a);
        et_status status = ET_OK;
        if (!is_new)
            status = hook->type->archive(hook, s, a);
        else if (et_archive_mode(a) == ET_ARCHIVE_LOAD)
            status = eti_algorithm_prepare(t, hook, ET_ON(INIT));
        ET_TRY(status);
        et_archive_leave(a);
    }
    et_archive_leave(a);
    return ET_OK;
}

/* A resumed run may have other callbacks: what the checkpoint lacks begins anew. */
static et_status
archive_callbacks(struct et_trainer *t, struct et_archive *a)
{
    struct et_state *s = &t->state;
    char name[96];
    ET_TRY(et_archive_enter(a, "callbacks"));
    for (int i = 0; i < s->n_callbacks; i++) {
        struct et_callback *hook = s->callbacks[i];
        int nth = 0;
        for (int k = 0; k < i; k++)
            nth += s->callbacks[k]->type == hook->type;
        if (!hook->type->archive)
            continue;
        ET_TRY(et_archive_enter(
            a, name_of(hook->type->info.name, nth, name, sizeof name)));
        if (eti_archive_has_place(a))
            ET_TRY(hook->type->archive(hook, a));
        et_archive_leave(a);
    }
    et_archive_leave(a);
    return ET_OK;
}

et_status
eti_archive_learned(struct et_trainer *t, struct et_archive *a)
{
    ET_TRY(eti_archive_model(t, a));
    ET_TRY(archive_optimizer(t, a));
    return archive_algorithms(t, a);
}

et_status
eti_archive_trainer(struct et_trainer *t, struct et_archive *a)
{
    ET_TRY(eti_archive_model(t, a));
    ET_TRY(archive_optimizer(t, a));
    ET_TRY(eti_parts_archive(t, a));
    ET_TRY(archive_loop(t, a));
    ET_TRY(archive_evaluators(t, a));
    ET_TRY(archive_algorithms(t, a));
    return archive_callbacks(t, a);
}

et_status
eti_describe_data(struct et_trainer *t, char *buf, size_t size)
{
    struct eti_described_data *d = &t->data;
    struct et_loader_info info;
    uint64_t fingerprint;
    char x[128];
    buf[0] = '\0';
    if (!t->config.train)
        return ET_OK;
    if (d->of != t->config.train) {
        ET_TRY(eti_data_fingerprint(t->state.cx, t->config.train->data, &fingerprint));
        et_loader_get_info(t->config.train, &info);
        snprintf(d->text, sizeof d->text,
                 "%" PRId64 " samples an epoch, batches %s, fingerprint %016" PRIx64,
                 info.samples_per_epoch,
                 et_desc_text(&info.desc[ET_FIELD_X], x, sizeof x), fingerprint);
        d->of = t->config.train;
    }
    snprintf(buf, size, "%s", d->text);
    return ET_OK;
}
