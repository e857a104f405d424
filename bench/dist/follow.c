/* SPDX-License-Identifier: Apache-2.0 */
/* How long a run's log takes to become a screen's model: a day at ten records a second,
 * read from its beginning, and as a snapshot.
 *
 *     bench/dist/follow [RECORDS [SERIES]]    default 864000 10, in $TMPDIR
 *
 * The file was just written and lies in the page cache. Times are of the processor,
 * this process's alone, so that others on the machine count little; the digest tells
 * whether two builds read the same. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core/journal/events.h"
#include "dist/hub/follow.h"

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void
need(struct et_ctx *cx, et_status status)
{
    if (status == ET_OK)
        return;
    fprintf(stderr, "follow: %s\n", et_error_get(cx)->message);
    exit(1);
}

static void
write_log(struct et_ctx *cx, int64_t records, int series)
{
    static const unsigned char id[ETI_EVENTS_ID];
    struct eti_events_writer w;
    struct et_log_entry entry[64];
    need(cx, eti_events_begin(cx, ".", id, &w));
    for (int s = 0; s < series; s++)
        snprintf(entry[s].name, sizeof entry->name, "loss/train/part%d", s);
    for (int64_t i = 1; i <= records; i++) {
        for (int s = 0; s < series; s++)
            entry[s].value = 1.0 / (double)(i + s);
        eti_events_write(&w, &(struct et_record){.kind = ET_RECORD_BATCH,
                                                 .t = 1e9 + 0.1 * (double)i,
                                                 .ba = i,
                                                 .entry = entry,
                                                 .n = series});
    }
    eti_events_end(&w);
}

int
main(int argc, char **argv)
{
    int64_t records = argc > 1 ? strtoll(argv[1], NULL, 10) : 864000, left;
    int series = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 10;
    char directory[256];
    struct et_ctx *cx;
    struct etd_follow *f;
    struct etd_model *m;
    struct rusage use;
    unsigned char digest[16];
    char *bytes;
    size_t n;
    if (series < 1 || series > 64 || records < 1)
        return fprintf(stderr, "follow: 1 to 64 series, 1 record or more\n"), 64;
    snprintf(directory, sizeof directory, "%s/etude-follow-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(directory) || chdir(directory) != 0)
        return 1;
    write_log(cx, records, series);
    double start = now();
    need(cx, etd_follow_open(cx, ".", &f));
    need(cx, etd_follow_read(f, 1e9, 0, &left));
    double read = now();
    need(cx, etd_model_save(etd_follow_model(f), &bytes, &n));
    double saved = now();
    need(cx, etd_model_new(cx, &m));
    need(cx, etd_model_load(m, bytes, n));
    double loaded = now();
    need(cx, etd_model_digest(m, digest));
    getrusage(RUSAGE_SELF, &use);
    printf("%lld records of %d series: read in %.3f s; snapshot %.2f MB, saved in %.1f "
           "ms, "
           "loaded in %.1f ms; %.0f MB at most; digest ",
           (long long)records, series, read - start, (double)n / 1e6,
           1e3 * (saved - read), 1e3 * (loaded - saved), (double)use.ru_maxrss / 1e3);
    for (int i = 0; i < 8; i++)
        printf("%02x", digest[i]);
    printf("\n");
    et_free(cx, bytes);
    etd_model_free(&m);
    etd_follow_close(&f);
    et_ctx_free(&cx);
    return unlink("events.log") != 0 || chdir("/") != 0 || rmdir(directory) != 0;
}
