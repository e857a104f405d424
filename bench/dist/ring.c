/* ring.c: what a record costs the training thread: bench/dist/ring [RECORDS [NUMBERS]]
 *
 * A thread takes what is put, as a sender does, so that the ring is never full; the
 * budget is 200 ns (RELIABILITY.md 5.1). */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "bench/program.h"
#include "dist/ring.h"

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

int
main(int argc, char **argv)
{
    long n = argc > 1 ? strtol(argv[1], NULL, 10) : 300000;
    int numbers = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 12;
    struct et_log_entry entry[ETD_RING_NUMBERS];
    struct et_ctx *cx;
    pthread_t thread;
    double spent = 0, worst = 0;
    if (numbers < 0 || numbers > ETD_RING_NUMBERS || et_ctx_new(&cx) != ET_OK)
        return 64;
    must(cx, etd_ring_new(cx, &ring));
    for (int i = 0; i < numbers; i++)
        snprintf(entry[i].name, sizeof entry[i].name, "metrics/train/number-%d", i);
    if (pthread_create(&thread, NULL, take, NULL) != 0)
        return 1;
    for (long i = 0; i < n; i += BURST) {
        const struct timespec pause = {0, 3000000}; /* the taker has 3 of its looks */
        double start = now();
        for (int k = 0; k < BURST; k++) {
            const struct et_record r = {
                .kind = ET_RECORD_BATCH, .ba = i + k, .entry = entry, .n = numbers};
            (void)etd_ring_put(ring, &r);
        }
        double mean = (now() - start) / BURST;
        spent += mean * BURST;
        worst = mean > worst ? mean : worst;
        nanosleep(&pause, NULL);
    }
    over = true;
    pthread_join(thread, NULL);
    printf("%d numbers: %.0f ns a record, %.0f in the worst of %ld bursts; %llu left "
           "out\n",
           numbers, 1e9 * spent / (double)n, 1e9 * worst, n / BURST,
           (unsigned long long)etd_ring_dropped(ring));
    etd_ring_free(&ring);
    et_ctx_free(&cx);
    return 0;
}
