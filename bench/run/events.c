/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a log of events, opens it and draws from it: the figures of DESIGN.md
 * section 6.
 *
 *     bench/run/events [RECORDS [SERIES]]    default 1000000 10, in $TMPDIR
 *
 * The file was just written and lies in the page cache. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench/program.h"
#include "core/journal/events.h"

enum { POINTS = 4096 };

static void
write_log(struct et_ctx *cx, int64_t records, int series)
{
    static const unsigned char id[ETI_EVENTS_ID];
    struct eti_events_writer w;
    struct et_log_entry *entry = calloc((size_t)series, sizeof *entry);
    if (!entry)
        exit(1);
    for (int i = 0; i < series; i++)
        snprintf(entry[i].name, sizeof entry[i].name, "loss/train/part%d", i);
    must(cx, eti_events_begin(cx, ".", id, &w));
    for (int64_t ba = 1; ba <= records; ba++) {
        for (int i = 0; i < series; i++)
            entry[i].value = (double)(ba * (i + 3) % 1009);
        const struct et_record r = {.kind = ET_RECORD_BATCH,
                                    .t = 1.7e9 + 0.1 * (double)ba,
                                    .ba = ba,
                                    .sp = 32 * ba,
                                    .entry = entry,
                                    .n = series};
        eti_events_write(&w, &r);
    }
    eti_events_end(&w);
    free(entry);
}

static void
say(const char *what, double seconds, struct et_events *e)
{
    printf("%-34s %8.1f ms   %10.1f MB read in all\n", what, 1e3 * seconds,
           1e-6 * (double)et_events_bytes_read(e));
}

int
main(int argc, char **argv)
{
    static struct et_series_point p[POINTS];
    int64_t records = argc > 1 ? strtoll(argv[1], NULL, 10) : 1000000;
    int series = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 10, n;
    const char *folder = getenv("TMPDIR");
    const struct et_series *list;
    char directory[4096];
    struct et_events *e;
    struct et_ctx *cx;
    struct stat st;
    snprintf(directory, sizeof directory, "%s/events-XXXXXX", folder ? folder : "/tmp");
    if (records < 1 || series < 1 || !mkdtemp(directory) || chdir(directory) != 0)
        return 1;
    must(NULL, et_ctx_new(&cx));
    double start = now();
    write_log(cx, records, series);
    double took = now() - start;
    if (stat("events.log", &st) != 0)
        return 1;
    printf("%lld records of %d numbers: %.1f MB, %.2f us a record to write\n",
           (long long)records, series, 1e-6 * (double)st.st_size,
           1e6 * took / (double)records);
    start = now();
    must(cx, et_events_open(cx, "events.log", &e));
    must(cx, et_events_series(e, &list, &n));
    say("open, names and totals of all", now() - start, e);
    for (int i = 0; i < 2; i++) {
        start = now();
        must(cx, et_events_fetch(e, list[i % n].name, 0, INT64_MAX, POINTS, p, &n));
        say("a series, whole, at most 4096", now() - start, e);
    }
    start = now();
    must(cx, et_events_fetch(e, list[0].name, records / 2, records / 2 + records / 100,
                             POINTS, p, &n));
    say("a hundredth of it", now() - start, e);
    et_events_close(&e);
    et_ctx_free(&cx);
    return unlink("events.log") != 0 || chdir("/") != 0 || rmdir(directory) != 0;
}
