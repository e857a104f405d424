/* SPDX-License-Identifier: Apache-2.0 */
/* R28: numbers that are not finite put into a loss, a gradient, an input, a weight:
 * such a step changes nothing, its state is never committed, and the run does what its
 * policy says: stop, skip, or go back to the newest checkpoint. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/trainer/checkpoint.h"
#include "etude/functional.h"
#include "t/fault/fixture.h"
#include "t/tap.h"

/* ---- an algorithm that spoils batches ---- */

enum place { LOSS, GRAD, INPUT, WEIGHT };
static const char *const place_names[] = {"the loss", "the gradient", "the input",
                                          "a weight"};
static struct {
    enum place place;
    double value;
    int64_t first, last; /* batches, from 1 */
    int64_t good;  /* a batch between them that is left alone; 0: all are spoilt */
    int64_t count; /* batches seen: its state */
} spoil;

static et_status
spoil_weight(struct et_state *s)
{
    struct et_tensor one = {
        .desc = {ET_F32, 1, {1}, {1}},
        .storage = s->params->values->storage,
        .offset = s->params->values->offset,
    };
    const float v = (float)spoil.value;
    return et_tensor_write(s->cx, &one, &v, sizeof v);
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    int64_t batch = s->timestamp.batch + 1;
    (void)self;
    (void)log;
    spoil.count += event == ET_EVENT_BATCH_START;
    if (batch < spoil.first || batch > spoil.last || batch == spoil.good)
        return ET_OK;
    if (event == ET_EVENT_BATCH_START && spoil.place == WEIGHT)
        return spoil_weight(s);
    if (event == ET_EVENT_BEFORE_FORWARD && spoil.place == INPUT)
        s->batch.x = et_mul_scalar(s->graph, s->batch.x, spoil.value);
    if (event == ET_EVENT_AFTER_LOSS && spoil.place == LOSS)
        s->loss = et_add_scalar(s->graph, s->loss, spoil.value);
    if (event == ET_EVENT_AFTER_TRAIN_BATCH && spoil.place == GRAD)
        s->grad = et_mul_scalar(s->graph, s->grad, spoil.value);
    return ET_OK;
}

static et_status
archive(struct et_algorithm *self, struct et_state *s, struct et_archive *a)
{
    (void)self;
    (void)s;
    return et_archive_i64(a, "count", &spoil.count, 1);
}

static const struct et_algorithm_class spoiler = {
    .info = {.name = "spoiler", .class_name = "Spoiler"},
    .events = ET_ON(BATCH_START) | ET_ON(BEFORE_FORWARD) | ET_ON(AFTER_LOSS) |
              ET_ON(AFTER_TRAIN_BATCH),
    .apply = apply,
    .archive = archive,
};

/* ---- runs ---- */

static struct et_ctx *cx;
static char dir[512];
static struct saving_run run;

static void
open_run(const struct saving_setup *setup)
{
    static struct et_algorithm own = {.type = &spoiler}, *algorithms[] = {&own};
    struct saving_setup with = *setup;
    et_status status;
    own.cx = cx;
    with.algorithms = algorithms;
    with.n_algorithms = 1;
    if (!saving_open(&run, cx, &with, &status))
        bail("%s", et_error_get(cx)->message);
}

/* Parameters, buffers and optimizer, and algorithms if WHOLE, in one number; *FINITE:
 * are they? */
static uint64_t
learned(bool whole, bool *finite)
{
    struct et_archive a = {0};
    uint64_t digest = 0;
    *finite = true;
    eti_archive_begin(&a, cx);
    need(cx, eti_archive_learned(run.r.trainer, &a));
    need(cx, eti_archive_end(&a));
    for (int64_t i = 0; i < a.n; i++) {
        if (!whole && strncmp(a.item[i].path, "algorithms/", 11) == 0)
            continue;
        digest = XXH3_64bits_withSeed(a.item[i].data, et_desc_bytes(&a.item[i].desc),
                                      digest);
        *finite &= a.item[i].is_number || eti_archive_item_is_finite(&a.item[i]);
    }
    eti_archive_release(&a);
    return digest;
}

/* The step of the newest checkpoint, -1 where a weight of it is not finite; 0: there is
 * none. */
static int64_t
newest_is_finite(void)
{
    int64_t *steps, n, step = 0;
    char name[ETI_STEP_NAME];
    struct eti_checkpoint c;
    need(cx, eti_store_list(cx, dir, &steps, &n));
    if (n > 0) {
        step = steps[0];
        need(cx, eti_store_read(cx, dir, eti_step_name(step, name), &c));
        for (int64_t i = 0; i < c.archive.n; i++)
            if (strncmp(c.archive.item[i].path, "trainer/", 8) != 0 &&
                !eti_archive_item_is_finite(&c.archive.item[i]))
                step = -1; /* (the trainer's last loss may be what it was) */
        eti_checkpoint_release(&c);
    }
    et_free(cx, steps);
    return step;
}

/* BatchNorm is in it. */
#define MODEL "resnet8"

static void
set(enum place place, double value, int64_t first, int64_t last)
{
    spoil.place = place;
    spoil.value = value;
    spoil.first = first;
    spoil.last = last;
    spoil.good = 0;
}

/* Batch 3 of 4 is spoilt. */
static void
test_skip(enum place place, double value, int64_t grad_accum)
{
    const struct et_checkpoint_config to = {
        .directory = dir,
        .interval = ET_BATCHES(1),
        .keep = -1,
    };
    bool finite;
    remove_tree(dir);
    set(place, value, 3, 3);
    open_run(&(struct saving_setup){
        .model = MODEL,
        .checkpoint = &to,
        .nonfinite_action = ET_NONFINITE_SKIP,
        .grad_accum = grad_accum,
    });
    saving_train(&run, 2);
    uint64_t before = learned(false, &finite);
    saving_train(&run, 1);
    uint64_t after = learned(false, &finite);
    ok(finite && before == after, "%g in %s, %d microbatches: the step changes nothing",
       value, place_names[place], (int)grad_accum);
    saving_train(&run, 1);
    ok(learned(false, &finite) != before && finite &&
           et_trainer_outcome(run.r.trainer) == ET_OUTCOME_FINISHED &&
           newest_is_finite() == 4,
       "skip: the run goes on, and is saved");
    saving_close(&run);
}

static void
test_stop(enum place place, double value, int64_t grace)
{
    const struct et_checkpoint_config to = {
        .directory = dir,
        .interval = ET_BATCHES(1),
        .keep = -1,
    };
    remove_tree(dir);
    set(place, value, 3, 9);
    open_run(&(struct saving_setup){
        .checkpoint = &to,
        .nonfinite_action = ET_NONFINITE_STOP,
        .nonfinite_grace = grace,
    });
    saving_train(&run, 9);
    int64_t last = 2 + (grace ? grace : 1);
    ok(et_trainer_outcome(run.r.trainer) == ET_OUTCOME_DIVERGED &&
           run.r.state->timestamp.batch == last && newest_is_finite() == 2,
       "%g in %s, stop after %d: batch %d was the last, batch 2 the last saved", value,
       place_names[place], (int)grace, (int)last);
    saving_close(&run);
}

/* Batches 2, 3, 5 and 6 are spoilt: never three in a row. */
static void
test_grace_begins_again(void)
{
    set(LOSS, NAN, 2, 6);
    spoil.good = 4;
    open_run(&(struct saving_setup){
        .nonfinite_action = ET_NONFINITE_STOP,
        .nonfinite_grace = 3,
    });
    saving_train(&run, 8);
    ok(et_trainer_outcome(run.r.trainer) == ET_OUTCOME_FINISHED &&
           run.r.state->timestamp.batch == 8,
       "a batch that is finite begins the count of those in a row anew");
    saving_close(&run);
}

/* A weight is lost: nothing brings it back, and it is never saved. */
static void
test_lost_weight(void)
{
    const struct et_checkpoint_config to = {
        .directory = dir,
        .interval = ET_BATCHES(1),
        .keep = 1,
    };
    remove_tree(dir);
    set(WEIGHT, NAN, 4, 4);
    open_run(&(struct saving_setup){
        .checkpoint = &to,
        .nonfinite_action = ET_NONFINITE_SKIP,
    });
    saving_train(&run, 8);
    ok(et_trainer_outcome(run.r.trainer) == ET_OUTCOME_UNSAVED &&
           newest_is_finite() == 3,
       "a weight that is not finite is never committed: the last checkpoint stands");
    is_int(et_error_get(cx)->status, ET_OK, "and no error is left behind");
    saving_close(&run);
}

/* ---- going back ---- */

enum { BATCHES = 13 };
static uint64_t digest_at[BATCHES + 1]; /* at the end of each batch */
static int64_t damage_at; /* the checkpoint of batch DAMAGE_NEWEST is damaged then */
static const int64_t damage_newest = 6;

static void
note_batch(struct et_sink *sink, const struct et_record *r)
{
    bool finite;
    char name[ETI_STEP_NAME];
    int64_t *steps, n;
    (void)sink;
    if (r->kind != ET_RECORD_BATCH || r->ba > BATCHES)
        return;
    digest_at[r->ba] = learned(true, &finite);
    if (r->ba != damage_at)
        return;
    /* It is written beside the batches that follow. */
    need(cx, eti_store_list(cx, dir, &steps, &n));
    for (int tries = 0; steps[0] != damage_newest && tries < 1000; tries++) {
        usleep(10000);
        et_free(cx, steps);
        need(cx, eti_store_list(cx, dir, &steps, &n));
    }
    write_whole(path_to(path_to(dir, eti_step_name(steps[0], name)), "MANIFEST"), "",
                0);
    et_free(cx, steps);
}

static void
run_back(enum place place, int64_t first, int64_t last, int64_t grace, bool saves)
{
    static struct et_sink sink = {.write = note_batch};
    const struct et_checkpoint_config to = {
        .directory = dir,
        .interval = ET_BATCHES(3),
        .keep = -1,
    };
    remove_tree(dir);
    spoil.count = 0;
    set(place, NAN, first, last);
    open_run(&(struct saving_setup){
        .model = MODEL,
        .checkpoint = saves ? &to : NULL,
        .nonfinite_action = ET_NONFINITE_ROLLBACK,
        .nonfinite_grace = grace,
        .sink = &sink,
    });
    saving_train(&run, BATCHES);
}

static bool
ended(enum et_outcome outcome, int64_t batch)
{
    enum et_outcome got = et_trainer_outcome(run.r.trainer);
    if (got == outcome && run.r.state->timestamp.batch == batch)
        return true;
    diag("outcome %d after batch %d", (int)got, (int)run.r.state->timestamp.batch);
    return false;
}

static void
test_rollback(void)
{
    bool finite;
    for (int place = LOSS; place <= WEIGHT; place++) {
        run_back((enum place)place, 5, 5, 1, true);
        ok(digest_at[5] == digest_at[3] && digest_at[4] != digest_at[3],
           "NaN in %s, rollback: parameters, optimizer and algorithms are those of the "
           "newest checkpoint",
           place_names[place]);
        learned(true, &finite);
        ok(finite && ended(ET_OUTCOME_FINISHED, BATCHES) &&
               newest_is_finite() == BATCHES,
           "data and clock go on, and so does the run");
        saving_close(&run);
    }
    run_back(GRAD, 5, 6, 2, true);
    ok(digest_at[5] != digest_at[3] && digest_at[6] == digest_at[3],
       "with a grace of 2 it goes back after the second");
    saving_close(&run);

    run_back(GRAD, 4, 5, 1, true);
    ok(digest_at[4] == digest_at[3] && digest_at[5] == digest_at[3] &&
           digest_at[6] != digest_at[3] && ended(ET_OUTCOME_FINISHED, BATCHES),
       "twice in a row, if need be");
    saving_close(&run);
    run_back(WEIGHT, 4, BATCHES, 1, true);
    ok(ended(ET_OUTCOME_DIVERGED, 7) && newest_is_finite() == 6,
       "after three times in a row the run has diverged");
    saving_close(&run);
    damage_at = 7;
    run_back(GRAD, 8, 8, 1, true);
    damage_at = 0;
    ok(digest_at[8] == digest_at[3] && ended(ET_OUTCOME_FINISHED, BATCHES),
       "a damaged one is passed over for the one before");
    saving_close(&run);
    run_back(GRAD, 2, 2, 1, true);
    ok(ended(ET_OUTCOME_DIVERGED, 2), "before the first there is no way back");
    saving_close(&run);
    run_back(GRAD, 5, 5, 1, false);
    ok(ended(ET_OUTCOME_DIVERGED, 5), "nor where none are saved");
    saving_close(&run);
}

int
main(void)
{
    static const double values[] = {NAN, INFINITY, -INFINITY};
    struct et_alloc_stats stats;
    int rounds = is_long() ? 3 : 1;
    cx = need_ctx();
    snprintf(dir, sizeof dir, "%s", path_to(scratch_folder(), "checkpoints"));
    for (int v = 0; v < 3; v++)
        for (int place = LOSS; place <= INPUT; place++) {
            for (int accum = 1; accum <= (v ? rounds : 2); accum++)
                test_skip((enum place)place, values[v], accum);
            for (int grace = 0; grace <= 3; grace += 3)
                test_stop((enum place)place, values[v], grace);
        }
    test_grace_begins_again();
    test_lost_weight();
    test_rollback();
    remove_tree(dir);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "no memory is left");
    et_ctx_free(&cx);
    return done();
}
