/* SPDX-License-Identifier: Apache-2.0 */
/* ring.c: what a record costs the training thread: bench/dist/ring [RECORDS [NUMBERS]]
 *
 * A thread takes what is put, as a sender does, so that the ring is never full; the
 * budget is 200 ns (RELIABILITY.md 5.1). Times are of the processor, the putting
 * thread's alone; the median burst is one that no other program broke into. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "bench/program.h"
#include "dist/run/ring.h"

enum { BURST = 1000 };

static struct etd_ring *ring;
static atomic_bool over;

static void *
take(void *data)
{
    struct et_record r;
    (void)data;
    while (!over) {
        const struct timespec pause = {0, 1000000};
        while (etd_ring_take(ring, &r))
            ;
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static double
own_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int
main(int argc, char **argv)
{
    long n = argc > 1 ? strtol(argv[1], NULL, 10) : 300000;
    int numbers = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 12;
    struct et_log_entry entry[ETD_RING_NUMBERS];
    struct et_ctx *cx;
    pthread_t thread;
    long bursts = (n + BURST - 1) / BURST;
    double *burst = calloc((size_t)(bursts > 0 ? bursts : 1), sizeof *burst);
    if (!burst || bursts < 1 || numbers < 0 || numbers > ETD_RING_NUMBERS ||
        et_ctx_new(&cx) != ET_OK)
        return 64;
    must(cx, etd_ring_new(cx, &ring));
    for (int i = 0; i < numbers; i++)
        snprintf(entry[i].name, sizeof entry[i].name, "metrics/train/number-%d", i);
    if (pthread_create(&thread, NULL, take, NULL) != 0)
        return 1;
    for (long i = 0; i < bursts; i++) {
        const struct timespec pause = {0, 3000000}; /* the taker has 3 of its looks */
        double start = own_time();
        for (int k = 0; k < BURST; k++) {
            const struct et_record r = {.kind = ET_RECORD_BATCH,
                                        .ba = i * BURST + k,
                                        .entry = entry,
                                        .n = numbers};
            (void)etd_ring_put(ring, &r);
        }
        burst[i] = 1e9 * (own_time() - start) / BURST;
        nanosleep(&pause, NULL);
    }
    over = true;
    pthread_join(thread, NULL);
    qsort(burst, (size_t)bursts, sizeof *burst, by_size);
    printf(
        "%d numbers: %.0f ns a record in the median of %ld bursts, %.0f in the best, "
        "%.0f in the worst; %llu left out\n",
        numbers, burst[bursts / 2], bursts, burst[0], burst[bursts - 1],
        (unsigned long long)etd_ring_dropped(ring));
    free(burst);
    etd_ring_free(&ring);
    et_ctx_free(&cx);
    return 0;
}
