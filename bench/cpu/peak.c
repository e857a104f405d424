/* SPDX-License-Identifier: Apache-2.0 */
/* peak.c: how many f32 operations a second the processor's multiply-adds reach at most.
 *
 *   peak THREADS
 *
 * Answers each line "run N" of standard input with a line of JSON: seconds that N times
 * a million rounds took on all threads at once, and flops, what they computed. A round
 * is twelve multiply-adds of the widest vectors that the processor has, which do not
 * wait for each other: no product of matrices is faster. Ends at end of input, or with
 * 77 where it does not know the processor's vectors. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/program.h"

enum { CHAINS = 12, MOST_THREADS = 256 };

#ifdef __x86_64__
#include <immintrin.h>

/* CHAINS numbers per lane that stay near 1, so that none becomes a denormal. */
#define CHAIN(vector, set, fma, store)                                                 \
    vector x[CHAINS], shrink = set(0.999f), add = set(0.001f);                         \
    float lanes[sizeof(vector) / sizeof(float)], sum = 0;                              \
    for (int i = 0; i < CHAINS; i++)                                                   \
        x[i] = set(1.0f + (float)i);                                                   \
    for (long r = 0; r < rounds; r++)                                                  \
        _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) x[i] =               \
            fma(x[i], shrink, add);                                                    \
    for (int i = 0; i < CHAINS; i++) {                                                 \
        store(lanes, x[i]);                                                            \
        sum += lanes[0];                                                               \
    }                                                                                  \
    return sum

__attribute__((target("avx2,fma"))) static float
rounds_avx2(long rounds)
{
    CHAIN(__m256, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_storeu_ps);
}

__attribute__((target("avx512f"))) static float
rounds_avx512(long rounds)
{
    CHAIN(__m512, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_storeu_ps);
}
#endif

typedef float rounds_fn(long rounds);

static rounds_fn *
widest(int *lanes)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f")) {
        *lanes = 16;
        return rounds_avx512;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        *lanes = 8;
        return rounds_avx2;
    }
#endif
    *lanes = 0;
    return NULL;
}

struct work {
    rounds_fn *fn;
    long rounds;
    float sum; /* so that the compiler leaves nothing out */
    pthread_t thread;
};

static void *
run(void *data)
{
    struct work *w = data;
    w->sum = w->fn(w->rounds);
    return NULL;
}

int
main(int argc, char **argv)
{
    static struct work work[MOST_THREADS];
    int lanes, threads = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1;
    rounds_fn *fn = widest(&lanes);
    char line[64];
    if (!fn) {
        fprintf(stderr, "peak: this processor's vectors are not known here\n");
        return 77;
    }
    if (threads < 1 || threads > MOST_THREADS) {
        fprintf(stderr, "peak: 1 to %d threads\n", MOST_THREADS);
        return 64;
    }
    while (fgets(line, sizeof line, stdin)) {
        long n = 0;
        if (sscanf(line, "run %ld", &n) != 1 || n < 1) {
            fprintf(stderr, "peak: not \"run N\": %s", line);
            return 64;
        }
        double start = now();
        for (int i = 0; i < threads; i++) {
            work[i] = (struct work){.fn = fn, .rounds = n * 1000000};
            if (pthread_create(&work[i].thread, NULL, run, &work[i])) {
                fprintf(stderr, "peak: no thread\n");
                return 1;
            }
        }
        for (int i = 0; i < threads; i++)
            pthread_join(work[i].thread, NULL);
        printf("{\"seconds\": %.9f, \"flops\": %.0f}\n", now() - start,
               2e6 * CHAINS * lanes * (double)n * threads);
        fflush(stdout);
    }
    return 0;
}
