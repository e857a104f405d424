/* SPDX-License-Identifier: Apache-2.0 */
/* sender.c: see sender.h. What is taken from the ring and not written yet, and the
 * pipe, belong to whoever holds the lock; the ring itself knows none. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/base/thread.h"
#include "dist/run/ring.h"
#include "dist/run/sender.h"

enum { LOOK_MS = 10, FLUSH_BYTES = 64 << 10, HEALTH_NUMBERS = 32 };
static const double FLUSH_SECONDS = 0.05, HEALTH_SECONDS = 1;

struct etd_sender {
    struct et_sink sink; /* first */
    struct et_ctx *cx;
    struct etd_ring *ring;
    int fd, rank;
    bool running;
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake;  /* it is to end */
    bool stop, broken;    /* broken: nobody reads the pipe any more */
    struct etd_bytes out;
    double written;    /* monotonic time of the last write */
    uint64_t reported; /* records left out that were told of */
    double health_at;  /* monotonic time of the next */
    etd_health_fn *health;
    void *health_data;
};

void
etd_sender_line(struct etd_sender *s, enum et_log_level level, const char *text)
{
    const struct et_record r = {
        .kind = (enum et_record_kind)ETD_RING_LINE,
        .level = level,
        .text = text,
    };
    (void)etd_ring_put(s->ring, &r);
}

/* ---- with the lock ---- */

static void
write_out(struct etd_sender *s)
{
    size_t done = 0;
    while (done < s->out.n && !s->broken) {
        ssize_t n = write(s->fd, s->out.at + done, s->out.n - done);
        if (n > 0)
            done += (size_t)n;
        else if (n < 0 && errno != EINTR)
            s->broken = true;
    }
    s->out.n = 0;
    s->written = eti_monotonic(s->cx);
}

static void
take_all(struct etd_sender *s)
{
    struct et_record r;
    while (etd_ring_take(s->ring, &r)) {
        if (s->broken)
            continue;
        if ((int)r.kind == ETD_RING_LINE)
            etd_packet_add_line(&s->out, r.level, r.text ? r.text : "");
        else
            etd_packet_add_record(&s->out, &r);
        if (s->out.n >= FLUSH_BYTES)
            write_out(s);
    }
}

/* How many records the ring had no room for, when that has changed. */
static void
report_dropped(struct etd_sender *s)
{
    uint64_t n = etd_ring_dropped(s->ring);
    struct et_log_entry entry = {.name = "dropped", .value = (double)n};
    const struct et_record r = {
        .kind = ET_RECORD_HEALTH,
        .t = eti_wall(s->cx),
        .rank = s->rank,
        .entry = &entry,
        .n = 1,
    };
    if (n == s->reported || s->broken)
        return;
    s->reported = n;
    etd_packet_add_record(&s->out, &r);
}

static void
report_health(struct etd_sender *s)
{
    struct et_log_entry entry[HEALTH_NUMBERS];
    struct et_record r = {
        .kind = ET_RECORD_HEALTH,
        .t = eti_wall(s->cx),
        .rank = s->rank,
        .entry = entry,
    };
    double now = eti_monotonic(s->cx);
    if (now < s->health_at)
        return;
    s->health_at = now + HEALTH_SECONDS;
    report_dropped(s);
    if (s->health && !s->broken && s->health(s->health_data, &r, entry, HEALTH_NUMBERS))
        etd_packet_add_record(&s->out, &r);
}

static void
wait_a_little(struct etd_sender *s)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    (void)pthread_cond_timedwait(&s->wake, &s->lock, &until);
}

static void *
run(void *data)
{
    struct etd_sender *s = data;
    pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        wait_a_little(s);
        take_all(s);
        report_health(s);
        if (s->out.n && eti_monotonic(s->cx) - s->written >= FLUSH_SECONDS)
            write_out(s);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- for the training thread ---- */

/* A run that goes on from a checkpoint is given its commands again: none may be left
 * out, however many records a fast run has put before it. Its answer waits for the pipe
 * as well. */
static void
make_room(struct etd_sender *s)
{
    pthread_mutex_lock(&s->lock);
    take_all(s);
    pthread_mutex_unlock(&s->lock);
}

static void
sink_write(struct et_sink *sink, const struct et_record *r)
{
    struct etd_sender *s = (struct etd_sender *)sink;
    struct et_record own = *r;
    own.rank = s->rank;
    if (r->kind == ET_RECORD_COMMAND)
        make_room(s);
    (void)etd_ring_put(s->ring, &own);
}

void
etd_sender_put(struct etd_sender *s, enum etd_packet_kind kind, const void *body,
               size_t n)
{
    pthread_mutex_lock(&s->lock);
    take_all(s);
    etd_packet_add(&s->out, kind, body, n);
    write_out(s);
    pthread_mutex_unlock(&s->lock);
}

void
etd_sender_watch(struct etd_sender *s, etd_health_fn *fn, void *data)
{
    pthread_mutex_lock(&s->lock);
    s->health = fn;
    s->health_data = data;
    s->health_at = eti_monotonic(s->cx) + HEALTH_SECONDS;
    pthread_mutex_unlock(&s->lock);
}

struct et_sink *
etd_sender_sink(struct etd_sender *s)
{
    return &s->sink;
}

et_status
etd_sender_start(struct et_ctx *cx, int fd, int rank, struct etd_sender **out)
{
    void *block;
    pthread_condattr_t clock;
    *out = NULL;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct etd_sender *s = block;
    s->sink.write = sink_write;
    s->cx = cx;
    s->fd = fd;
    s->rank = rank;
    s->health_at = HUGE_VAL; /* nobody asks yet */
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &clock);
    pthread_condattr_destroy(&clock);
    et_status status = etd_ring_new(cx, &s->ring);
    if (status == ET_OK) {
        int error = eti_thread_begin(&s->thread, run, s);
        s->running = error == 0;
        if (error)
            status = ET_FAIL(cx, ET_EIO, "cannot start a thread: %s", strerror(error));
    }
    if (status != ET_OK)
        etd_sender_stop(&s);
    *out = s;
    return status;
}

void
etd_sender_stop(struct etd_sender **sender)
{
    struct etd_sender *s = *sender;
    *sender = NULL;
    if (!s)
        return;
    if (s->running) {
        pthread_mutex_lock(&s->lock);
        s->stop = true;
        pthread_cond_signal(&s->wake);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
        take_all(s);
        report_dropped(s);
        write_out(s);
    }
    etd_bytes_free(&s->out);
    etd_ring_free(&s->ring);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    et_free(s->cx, s);
}
