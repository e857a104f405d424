/* SPDX-License-Identifier: Apache-2.0 */
/* R25: the k-th allocation of a save, a load, a resume, a step fails, once or from
 * there on, for each k (or each few): nothing crashes, leaks or is lost, and what is
 * done once there is memory again has the same bits as if there always had been. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/trainer/checkpoint.h"
#include "t/fault/fixture.h"
#include "t/tap.h"

enum { MOST = 20000 }; /* allocations of anything here */

static struct et_ctx *cx;
static char dir[512];
static struct saving_run run;

static uint64_t
live(void)
{
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    return stats.live;
}

/* ---- who fails: our allocator, or the JSON library's ---- */

static struct {
    uint64_t left; /* until the one that fails; a sanitizer sees what is not freed */
    bool for_good;
} json;

static void *
json_take(size_t n)
{
    bool fails = json.left && --json.left == 0;
    json.left += fails && json.for_good;
    return fails ? NULL : malloc(n);
}

enum source { OURS, JSON };
static const char *const source_names[] = {"allocation", "allocation for JSON"};

static void
arm(enum source source, uint64_t k, bool for_good)
{
    if (source == JSON) {
        json.left = k;
        json.for_good = for_good;
    } else if (for_good) {
        et_alloc_fail_from(cx, k);
    } else {
        et_alloc_fail_at(cx, k);
    }
}

static void
disarm(void)
{
    json.left = 0;
    et_alloc_fail_at(cx, 0);
    et_error_clear(cx);
}

/* ---- a save ---- */

static void
fill(struct et_archive *a, int64_t *number)
{
    eti_archive_begin(a, cx);
    need(cx, et_archive_i64(a, "number", number, 1));
    need(cx, et_archive_i64(a, "model/weight", number, 1));
    need(cx, eti_archive_end(a));
}

static et_status
save(const struct et_archive *a, int64_t step)
{
    int64_t bytes;
    json_t *none = json_array();
    struct eti_manifest m = {.format = 1, .step = step, .world_size = 1};
    m.algorithms = none;
    et_status status = none ? eti_store_write(cx, dir, a, &m, 1, &bytes)
                            : ET_FAIL(cx, ET_ENOMEM, "none");
    json_decref(none);
    return status;
}

static bool
is_whole(int64_t step)
{
    struct eti_checkpoint c;
    char name[ETI_STEP_NAME];
    et_status status = eti_store_read(cx, dir, eti_step_name(step, name), &c);
    eti_checkpoint_release(&c);
    et_error_clear(cx);
    return status == ET_OK;
}

static int wrong;

static void
expect(bool holds, uint64_t k, bool for_good, const char *what)
{
    if (!holds && wrong++ == 0)
        diag("k = %d%s: %s", (int)k, for_good ? " and on" : "", what);
}

static void
test_save(enum source source)
{
    struct et_archive a = {0};
    int64_t number = 7;
    uint64_t k = 0;
    wrong = 0;
    fill(&a, &number);
    for (int for_good = 0; for_good < 2; for_good++) {
        et_status status = ET_ENOMEM;
        for (k = 1; status != ET_OK; k++) {
            remove_tree(dir);
            need(cx, save(&a, 1));
            uint64_t before = live();
            arm(source, k, for_good);
            status = save(&a, 2);
            disarm();
            expect(live() == before, k, for_good, "a leak");
            expect(count_names(dir, ".") == 0, k, for_good, "something half-made");
            expect(status == ET_OK ? is_whole(2) : is_whole(1) && !is_whole(2), k,
                   for_good, "a checkpoint is lost");
            expect(status == ET_OK || status == ET_ENOMEM || source == JSON, k,
                   for_good, "another status");
        }
    }
    ok(wrong == 0 && k > 3, "saving: whichever %s fails (%d), the one before stands",
       source_names[source], (int)k - 2);
    eti_archive_release(&a);
}

/* ---- loading and resuming ---- */

static void
test_resume(enum source source, uint64_t every)
{
    const struct et_checkpoint_config to = saves_to(dir, -1);
    const struct et_load_config from = {.directory = dir, .set_aside = true};
    const struct saving_setup saving = {.checkpoint = &to};
    const struct saving_setup both = {.checkpoint = &to, .load = &from};
    et_status status;
    uint64_t k = 0, digest;
    int tried = 0;
    remove_tree(dir);
    if (!saving_open(&run, cx, &saving, &status))
        bail("%s", et_error_get(cx)->message);
    saving_train(&run, 2);
    saving_train(&run, 1);
    digest = saving_digest(&run);
    saving_close(&run);
    wrong = 0;
    for (int for_good = 0; for_good < 2; for_good++) {
        bool open = false;
        for (k = 1; !open && k < MOST; k += every, tried++) {
            uint64_t before = live();
            /* Only the trainer's allocations: the fixture's would end the test. */
            saving_prepare(&run, cx, &both);
            arm(source, k, for_good);
            open = saving_start(&run, &status);
            disarm();
            expect(open || status == ET_ENOMEM ||
                       (source == JSON && status == ET_EINVAL),
                   k, for_good, "another status");
            if (open) {
                expect(run.r.state->timestamp.batch == 3 &&
                           saving_digest(&run) == digest,
                       k, for_good, "another state");
                saving_close(&run);
            }
            expect(live() == before, k, for_good, "a leak");
            expect(count_names(dir, "step-") == 2 && count_names(dir, ".") == 0, k,
                   for_good, "a checkpoint was moved");
        }
    }
    ok(wrong == 0 && k > 3 * every,
       "resuming: whichever %s fails (%d tried), nothing is lost", source_names[source],
       tried);
}

/* ---- training ---- */

enum { BATCHES = 4 };

/* Trains BATCHES, with the K-th allocation from the first step on failing, and goes on
 * after a failure; true when none failed. */
static bool
train(const struct saving_setup *setup, uint64_t k, bool for_good, uint64_t *digest)
{
    et_status status;
    bool clean = true;
    if (!saving_open(&run, cx, setup, &status))
        bail("%s", et_error_get(cx)->message);
    if (k)
        arm(OURS, k, for_good);
    for (int left = 3; left && run.r.state->timestamp.batch < BATCHES; left--) {
        status = et_trainer_fit(
            run.r.trainer,
            ET_BATCHES((double)(BATCHES - run.r.state->timestamp.batch)));
        clean &= status == ET_OK;
        expect(status == ET_OK || status == ET_ENOMEM, k, for_good, "another status");
        disarm();
    }
    expect(run.r.state->timestamp.batch == BATCHES, k, for_good, "it does not go on");
    *digest = saving_digest(&run);
    saving_close(&run);
    return clean;
}

static void
test_step(const char *model, int64_t grad_accum, uint64_t every)
{
    const struct saving_setup setup = {.model = model, .grad_accum = grad_accum};
    uint64_t digest, want, before = live(), k = 1;
    int tried = 0;
    wrong = 0;
    train(&setup, 0, false, &want);
    for (int for_good = 0; for_good < 2; for_good++) {
        bool clean = false;
        for (k = 1; !clean && k < MOST; k += every, tried++) {
            clean = train(&setup, k, for_good, &digest);
            expect(digest == want, k, for_good, "other bits");
            expect(live() == before, k, for_good, "a leak");
        }
    }
    ok(wrong == 0 && k > every,
       "%s, %d microbatches: whichever allocation fails (%d tried), training goes on "
       "bit "
       "for bit",
       model, (int)grad_accum, tried);
}

/* A save in the midst of training, when there is no memory for it. */
static void
test_snapshot(uint64_t every)
{
    const struct et_checkpoint_config to = {
        .directory = dir,
        .interval = ET_BATCHES(1),
        .keep = -1,
    };
    const struct saving_setup setup = {.checkpoint = &to};
    uint64_t digest, want, before = live(), k = 1;
    int tried = 0;
    wrong = 0;
    remove_tree(dir);
    train(&setup, 0, false, &want);
    for (int for_good = 0; for_good < 2; for_good++) {
        int missing = 1;
        for (k = 1; missing && k < MOST; k += every, tried++) {
            remove_tree(dir);
            bool clean = train(&setup, k, for_good, &digest);
            missing = BATCHES - count_names(dir, "step-") + !clean;
            expect(digest == want, k, for_good, "other bits");
            expect(live() == before, k, for_good, "a leak");
            expect(count_names(dir, ".") == 0, k, for_good, "something half-made");
            int whole = 0;
            for (int step = 1; step <= BATCHES; step++)
                whole += is_whole(step);
            expect(whole == count_names(dir, "step-"), k, for_good, "one is not whole");
        }
    }
    ok(wrong == 0, "with a save after each batch likewise (%d tried)", tried);
}

int
main(void)
{
    uint64_t every = is_long() ? 1 : 25, few = is_long() ? 1 : 5;
    json_set_alloc_funcs(json_take, free);
    cx = need_ctx();
    snprintf(dir, sizeof dir, "%s", path_to(scratch_folder(), "checkpoints"));
    int before = count_descriptors();
    test_save(OURS);
    test_save(JSON);
    test_resume(OURS, few);
    test_resume(JSON, few);
    test_step("mlp", 1, few);
    test_step("mlp", 2, few);
    test_step("resnet8", 2, every);
    test_snapshot(few);
    remove_tree(dir);
    is_int(count_descriptors(), before, "no descriptor is left");
    is_int((int64_t)live(), 0, "nor memory");
    et_ctx_free(&cx);
    return done();
}
