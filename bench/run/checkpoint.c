/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint.c: saving and loading a state, against dd on the same disk.
 *
 *   checkpoint [FOLDER] [MB] [ROUNDS]
 *
 * A state of MB megabytes (100), a third each of parameters and two moments, is written
 * as a checkpoint and read again in FOLDER (.), in turns with what dd does for the same
 * bytes: "dd if=/dev/zero bs=1M conv=fsync" and "dd of=/dev/null" of what it wrote. The
 * cache of pages is left as it is: both read what was just written. Prints medians and
 * ratios; PERFORMANCE.md wants 80 % of dd. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "bench/program.h"
#include "core/checkpoint/store.h"
#include "etude/ctx.h"

enum { MOST = 100, PARTS = 3, PIECES = 48 };

static struct et_ctx *cx;

static double
time_command(const char *command)
{
    double start = now();
    if (system(command) != 0) {
        fprintf(stderr, "checkpoint: failed: %s\n", command);
        exit(1);
    }
    return now() - start;
}

static double
median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_size);
    return v[n / 2];
}

/* Matrices of random numbers, as many bytes as asked for. */
static void
fill(struct et_archive *a, int64_t bytes)
{
    static const char *const part[] = {"model", "optimizer/exp_avg",
                                       "optimizer/exp_avg_sq"};
    int64_t shape[2] = {bytes / PARTS / PIECES / 4 / 512, 512};
    struct et_desc desc;
    et_desc_init(&desc, ET_F32, 2, shape, ET_ROW_MAJOR);
    for (int k = 0; k < PARTS * PIECES; k++) {
        char path[64];
        float *v = malloc(et_desc_bytes(&desc));
        for (int64_t i = 0; i < et_desc_count(&desc); i++)
            v[i] = (float)((i * 7919 + k) % 10007) / 10007;
        snprintf(path, sizeof path, "%s/layer.%d.weight", part[k / PIECES], k % PIECES);
        must(cx, eti_archive_add(a, path, &desc, v));
    }
}

int
main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : ".";
    int64_t mb = argc > 2 ? strtoll(argv[2], NULL, 10) : 100;
    int rounds = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 9;
    double save[MOST], load[MOST], dd_write[MOST], dd_read[MOST];
    char directory[512], write[1200], read[1200], clear[1200];
    struct et_archive a = {0};
    if (mb < 1 || rounds < 1 || rounds > MOST || et_ctx_new(&cx) != ET_OK)
        return 64;
    a.cx = cx;
    fill(&a, mb * 1000000);
    snprintf(directory, sizeof directory, "%s/etude-bench-checkpoints", folder);
    snprintf(write, sizeof write,
             "dd if=/dev/zero of='%s.dd' bs=1M count=%lld conv=fsync 2>/dev/null",
             directory, (long long)mb * 1000000 / (1 << 20));
    snprintf(read, sizeof read, "dd if='%s.dd' of=/dev/null bs=1M 2>/dev/null",
             directory);
    snprintf(clear, sizeof clear, "rm -rf '%s' '%s.dd'; sync", directory, directory);
    for (int i = -1; i < rounds; i++) {
        int at = i < 0 ? 0 : i;
        struct eti_manifest m = {.format = ETI_MANIFEST_FORMAT,
                                 .step = 1,
                                 .world_size = 1,
                                 .algorithms = json_array()};
        struct eti_checkpoint c;
        int64_t bytes;
        (void)time_command(clear);
        double start = now();
        must(cx, eti_store_write(cx, directory, &a, &m, 1, &bytes));
        save[at] = now() - start;
        dd_write[at] = time_command(write);
        start = now();
        must(cx, eti_store_read(cx, directory, "step-000000000001", &c));
        load[at] = now() - start;
        eti_checkpoint_release(&c);
        dd_read[at] = time_command(read);
        json_decref(m.algorithms);
    }
    (void)time_command(clear);
    double s = median(save, rounds), l = median(load, rounds);
    double w = median(dd_write, rounds), r = median(dd_read, rounds);
    printf("save %.3f s, %.0f MB/s; dd with fsync %.3f s, %.0f MB/s: %.0f %%\n", s,
           (double)mb / s, w, (double)mb / w, 100 * w / s);
    printf("load %.3f s, %.0f MB/s; dd %.3f s, %.0f MB/s: %.0f %%\n", l, (double)mb / l,
           r, (double)mb / r, 100 * r / l);
    return 0;
}
