/* SPDX-License-Identifier: Apache-2.0 */
/* flight_recorder.c: see flight_recorder.h. */
#include "config.h"

#include <time.h>

#include "dist/run/flight_recorder.h"
#include "etude/event.h"

static int64_t
now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The next slot, marked as not whole; *NUMBER is what marks it whole. */
static struct etd_flight_entry *
begin(struct etd_flight_recorder *f, uint64_t *number)
{
    *number = atomic_fetch_add_explicit(&f->n, 1, memory_order_relaxed) + 1;
    struct etd_flight_entry *e = &f->entry[(*number - 1) % ETD_FLIGHT_EVENTS];
    /* (An exchange, as a fence would be unknown to ThreadSanitizer.) */
    atomic_exchange_explicit(&e->number, 0, memory_order_acquire);
    e->t_ns = now_ns();
    return e;
}

static void
end(struct etd_flight_entry *e, uint64_t number)
{
    atomic_store_explicit(&e->number, number, memory_order_release);
}

void
etd_flight_event(struct etd_flight_recorder *f, int event, int64_t ba)
{
    uint64_t number;
    struct etd_flight_entry *e = begin(f, &number);
    e->kind = ETD_FLIGHT_EVENT;
    e->what = (int16_t)event;
    e->ba = ba;
    end(e, number);
}

void
etd_flight_collective(struct etd_flight_recorder *f, enum etd_flight_kind kind,
                      const struct et_comm_look *look)
{
    uint64_t number;
    struct etd_flight_entry *e = begin(f, &number);
    e->kind = (int16_t)kind;
    e->what = (int16_t)look->kind;
    e->dtype = (int32_t)look->dtype;
    e->seq = look->seq;
    e->n = look->n;
    e->step = look->mark.step;
    e->which = look->mark.which;
    e->ba = -1;
    end(e, number);
}

const char *
etd_collective_text(const struct et_comm_look *look, char *buf, size_t size)
{
    int n = snprintf(buf, size, "%s %llu", et_comm_kind_name(look->kind),
                     (unsigned long long)look->seq);
    if (look->kind != ET_COMM_BARRIER && n > 0 && (size_t)n < size)
        n += snprintf(buf + n, size - (size_t)n, " of %lld %s", (long long)look->n,
                      et_dtype_name(look->dtype));
    if (look->mark.which > 0 && n > 0 && (size_t)n < size)
        snprintf(buf + n, size - (size_t)n, " [%lld.%d]", (long long)look->mark.step,
                 look->mark.which);
    return buf;
}

static void
print_one(FILE *to, const struct etd_flight_entry *e, int64_t now)
{
    static const char *const verbs[] = {"", " begins", " ends", " fails"};
    char text[96];
    const struct et_comm_look look = {
        .kind = (enum et_comm_kind)e->what,
        .dtype = (enum et_dtype)e->dtype,
        .seq = e->seq,
        .n = e->n,
        .mark = {.step = e->step, .which = e->which},
    };
    fprintf(to, "%12.6f  ", 1e-9 * (double)(e->t_ns - now));
    if (e->kind == ETD_FLIGHT_EVENT)
        fprintf(to, "ba %lld  %s\n", (long long)e->ba,
                et_event_name((enum et_event)e->what));
    else
        fprintf(to, "%s%s\n", etd_collective_text(&look, text, sizeof text),
                verbs[e->kind]);
}

void
etd_flight_print(FILE *to, const struct etd_flight_recorder *f)
{
    uint64_t n = atomic_load_explicit(&f->n, memory_order_acquire);
    uint64_t first = n > ETD_FLIGHT_EVENTS ? n - ETD_FLIGHT_EVENTS : 0;
    int64_t now = now_ns();
    fprintf(to, "-- what it did last, %llu of %llu, in seconds before this --\n",
            (unsigned long long)(n - first), (unsigned long long)n);
    for (uint64_t i = first; i < n; i++) {
        const struct etd_flight_entry *e = &f->entry[i % ETD_FLIGHT_EVENTS];
        /* One that was being written when the rank ended is left out. */
        if (atomic_load_explicit(&e->number, memory_order_acquire) == i + 1)
            print_one(to, e, now);
    }
}
