/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that writes checkpoints: while the disk takes its time, the trainer is
 * told that there is no result yet, at each save. The test is the disk. */
#include "config.h"

#include <errno.h>
#include <jansson.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/checkpoint/writer.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { SAVES = 3, LATE_SECONDS = 20 };

static sem_t disk; /* posted: what is written may be synced */
static bool was_late;

static int
sync_when_told(int fd)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += LATE_SECONDS;
    while (sem_timedwait(&disk, &end) != 0)
        if (errno == ETIMEDOUT) {
            was_late = true;
            break;
        }
    sem_post(&disk); /* for the save's other files */
    return eti_system.file.sync(fd);
}

/* W begins to write a checkpoint of one number. NONE: the algorithms it has. */
static void
begin_save(struct et_ctx *cx, struct eti_writer *w, int64_t step, json_t *none)
{
    struct eti_manifest m = {.step = step, .algorithms = none};
    struct et_archive *a = eti_writer_archive(w);
    snprintf(m.label, sizeof m.label, "ba%d", (int)step);
    eti_archive_release(a);
    eti_archive_begin(a, cx);
    need(cx, et_archive_i64(a, "step", &step, 1));
    need(cx, eti_archive_end(a));
    eti_writer_start(w, &m);
}

static void
test_polls(struct et_ctx *cx)
{
    struct eti_writer *w;
    struct eti_written result;
    json_t *none = json_array();
    need(cx, eti_writer_new(cx, scratch_folder(), -1, NULL, &w));
    ok(!eti_writer_poll(w, &result), "before the first save there is no result");
    for (int64_t step = 1; step <= SAVES; step++) {
        begin_save(cx, w, step, none);
        char label[16];
        snprintf(label, sizeof label, "ba%d", (int)step);
        bool done = eti_writer_poll(w, &result);
        ok(!done, "save %d: no result while the disk writes", (int)step);
        sem_post(&disk);
        if (!done && !eti_writer_wait(w, &result))
            bail("no result");
        ok(result.status == ET_OK && result.step == step &&
               strcmp(result.label, label) == 0 && !eti_writer_poll(w, &result),
           "then its own, once, with its name") ||
            (diag("%s", result.why.message), 0);
        sem_wait(&disk);
    }
    ok(!was_late, "nobody waited for the disk but who asked to");
    eti_writer_free(&w);
    json_decref(none);
}

/* A save whose link cannot be set, as a folder is in its place, is one and says so. */
static void
test_note(struct et_ctx *cx)
{
    struct eti_writer *w;
    struct eti_written result;
    json_t *none = json_array();
    char latest[512];
    snprintf(latest, sizeof latest, "%s/latest", scratch_folder());
    if (mkdir(latest, 0700) != 0)
        bail("no folder");
    need(cx, eti_writer_new(cx, scratch_folder(), -1, "latest", &w));
    sem_post(&disk);
    for (int64_t step = 10; step <= 11; step++) {
        begin_save(cx, w, step, none);
        if (!eti_writer_wait(w, &result))
            bail("no result");
        bool is_noted = strstr(result.note, "latest") != NULL;
        ok(result.status == ET_OK && (step == 10 ? is_noted : !result.note[0]),
           step == 10 ? "what a save could not do besides is noted"
                      : "the next one's note is its own, and empty") ||
            (diag("%s, '%s'", et_status_name(result.status), result.note), 0);
        if (step == 10 && rmdir(latest) != 0)
            bail("the folder has changed");
    }
    sem_wait(&disk);
    eti_writer_free(&w);
    json_decref(none);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct eti_seams seams = eti_system;
    seams.file.sync = sync_when_told;
    eti_ctx_set_seams(cx, &seams);
    if (sem_init(&disk, 0, 0) != 0)
        bail("no semaphore");
    test_polls(cx);
    test_note(cx);
    sem_destroy(&disk);
    et_ctx_free(&cx);
    return done();
}
