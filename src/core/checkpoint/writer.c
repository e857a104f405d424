/* SPDX-License-Identifier: Apache-2.0 */
/* writer.c: see writer.h. One thread for each save: it is joined before the next. Where
 * the system gives no thread the caller writes: training waits, and is saved. */
#include "core/checkpoint/writer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/base/seams.h"
#include "core/base/thread.h"
#include "etude/ctx.h"

struct eti_writer {
    struct et_ctx *cx;  /* of the trainer's thread */
    struct et_ctx *own; /* of the thread that writes */
    const char *directory;
    int64_t keep;
    const char *latest;        /* NULL: no link */
    struct et_archive archive; /* in memory of CX; the thread only reads it */
    struct eti_manifest manifest;
    struct eti_written result;
    pthread_t thread;
    bool running;  /* there is a result that nobody has taken */
    bool threaded; /* and a thread to join for it */
    atomic_bool done;
};

static void
take_note(void *data, enum et_log_level level, const char *text)
{
    struct eti_writer *w = data;
    if (level >= ET_LOG_WARN)
        snprintf(w->result.note, sizeof w->result.note, "%.*s",
                 (int)sizeof w->result.note - 1, text);
}

et_status
eti_writer_new(struct et_ctx *cx, const char *directory, int64_t keep,
               const char *latest, struct eti_writer **out)
{
    void *block;
    *out = NULL;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct eti_writer *w = block;
    w->cx = cx;
    w->directory = directory;
    w->keep = keep;
    w->latest = latest;
    eti_archive_begin(&w->archive, cx);
    if (et_ctx_new(&w->own) != ET_OK) {
        et_free(cx, w);
        return ET_FAIL(cx, ET_ENOMEM, "out of memory: a context");
    }
    eti_ctx_set_seams(w->own, eti_ctx_seams(cx));
    et_ctx_set_log(w->own, ET_LOG_WARN, take_note, w);
    *out = w;
    return ET_OK;
}

struct et_archive *
eti_writer_archive(struct eti_writer *w)
{
    return &w->archive;
}

static double
thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *
write_it(void *data)
{
    struct eti_writer *w = data;
    struct eti_written *r = &w->result;
    double start = eti_monotonic(w->own), cpu = thread_seconds();
    r->status = eti_store_write(w->own, w->directory, &w->archive, &w->manifest,
                                w->keep, &r->bytes);
    if (r->status != ET_OK)
        r->why = *et_error_get(w->own);
    else if (w->latest &&
             eti_store_link(w->own, w->directory, w->latest, w->manifest.step) != ET_OK)
        et_report(w->own, ET_LOG_WARN, "%s", et_error_get(w->own)->message);
    et_error_clear(w->own);
    r->seconds = eti_monotonic(w->own) - start;
    r->cpu_seconds = thread_seconds() - cpu;
    atomic_store(&w->done, true);
    return NULL;
}

void
eti_writer_start(struct eti_writer *w, const struct eti_manifest *m)
{
    w->manifest = *m;
    w->result = (struct eti_written){.step = m->step};
    snprintf(w->result.label, sizeof w->result.label, "%s", m->label);
    atomic_store(&w->done, false);
    w->threaded = eti_thread_begin(&w->thread, write_it, w) == 0;
    if (!w->threaded)
        write_it(w);
    w->running = true;
}

bool
eti_writer_wait(struct eti_writer *w, struct eti_written *out)
{
    if (!w->running)
        return false;
    if (w->threaded)
        pthread_join(w->thread, NULL);
    w->running = false;
    *out = w->result;
    return true;
}

bool
eti_writer_poll(struct eti_writer *w, struct eti_written *out)
{
    return w->running && atomic_load(&w->done) && eti_writer_wait(w, out);
}

void
eti_writer_free(struct eti_writer **out)
{
    struct eti_writer *w = *out;
    struct eti_written ignored;
    *out = NULL;
    if (!w)
        return;
    (void)eti_writer_wait(w, &ignored);
    eti_archive_release(&w->archive);
    et_ctx_free(&w->own);
    et_free(w->cx, w);
}
