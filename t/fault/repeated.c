/* SPDX-License-Identifier: Apache-2.0 */
/* Saves that fail again and again: the run goes on and says so, louder from the third
 * in a row; with checkpoint.on_failure: stop it ends there. Saves after every batch, of
 * 14; the disk refuses every sync that the test wants it to. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "t/fault/fixture.h"
#include "t/tap.h"

enum { BATCHES = 14 };

static char dir[512];
static int syncs, works_from; /* those from this one on work */
static int of_a_save;         /* syncs; not 0: each third save works, and no other */
static int warned, alarmed;
static struct eti_seams seams;

static int
bad_sync(int fd)
{
    (void)fd;
    int at = syncs++;
    if (of_a_save ? at % (2 + of_a_save) >= 2 : at >= works_from)
        return 0;
    errno = EIO;
    return -1;
}

static void
count(void *data, enum et_log_level level, const char *text)
{
    (void)data;
    if (strstr(text, "was not saved")) {
        warned += level == ET_LOG_WARN;
        alarmed += level == ET_LOG_ERROR;
    }
}

/* Batches of a run whose first N syncs fail. */
static int64_t
train(struct et_ctx *cx, bool stop, int n, enum et_outcome *outcome, char *reason,
      size_t size)
{
    struct et_checkpoint_config to = saves_to(dir, 2);
    struct saving_run s;
    et_status status;
    to.only_at_end = false;
    to.interval = ET_BATCHES(1);
    to.stop_on_failure = stop;
    syncs = warned = alarmed = 0;
    works_from = n;
    remove_tree(dir);
    if (!saving_open(&s, cx, &(struct saving_setup){.checkpoint = &to}, &status))
        bail("%s", take_error(cx));
    need(cx, et_trainer_fit(s.r.trainer, ET_BATCHES(BATCHES)));
    int64_t batches = s.r.state->timestamp.batch;
    *outcome = et_trainer_outcome(s.r.trainer);
    snprintf(reason, size, "%s", s.r.state->stop_reason ? s.r.state->stop_reason : "");
    saving_close(&s);
    return batches;
}

static void
test_on_failure(struct et_ctx *cx)
{
    enum et_outcome outcome;
    char reason[128];
    int64_t n = train(cx, true, 1 << 30, &outcome, reason, sizeof reason);
    ok(n >= 3 && n < BATCHES, "on_failure: stop ends the run, after batch %d", (int)n);
    is_str(reason, "three checkpoints in a row could not be saved", "and says why");
    is_int(outcome, ET_OUTCOME_UNSAVED, "nothing of it is saved");
    ok(warned >= 2 && alarmed >= 1, "two failures warn, the third is an error");

    n = train(cx, false, 1 << 30, &outcome, reason, sizeof reason);
    is_int(n, BATCHES, "on_failure: continue trains to the end");
    ok(outcome == ET_OUTCOME_UNSAVED && !reason[0],
       "whose state could not be saved either");
    is_int(warned, 2, "it warns twice");
    ok(alarmed >= 1 && alarmed <= 2,
       "the third is an error, and so is the 10th; the others are counted (%d errors)",
       alarmed);

    n = train(cx, true, 2, &outcome, reason, sizeof reason);
    is_int(n, BATCHES, "two failures in a row are no reason to stop");
    ok(outcome == ET_OUTCOME_FINISHED && warned == 2 && alarmed == 0,
       "and the saves after them are there");
    is_int(count_names(dir, "step-"), 2, "as many as are kept");

    train(cx, true, 0, &outcome, reason, sizeof reason);
    of_a_save = syncs / BATCHES;
    n = train(cx, true, 0, &outcome, reason, sizeof reason);
    is_int(n, BATCHES, "nor are two again and again, with one that is saved between");
    ok(warned >= 6 && alarmed == 0, "none is the third in a row (%d warn)", warned);
    of_a_save = 0;
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct et_alloc_stats stats;
    seams = eti_system;
    seams.file.sync = bad_sync;
    eti_ctx_set_seams(cx, &seams);
    et_ctx_set_log(cx, ET_LOG_WARN, count, NULL);
    snprintf(dir, sizeof dir, "%s", path_to(scratch_folder(), "checkpoints"));
    int before = count_descriptors();
    test_on_failure(cx);
    remove_tree(dir);
    is_int(count_descriptors(), before, "no descriptor is left");
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nor memory");
    et_ctx_free(&cx);
    return done();
}
