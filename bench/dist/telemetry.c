/* SPDX-License-Identifier: Apache-2.0 */
/* What it costs a step that its records are published: UX.md section 8 asks for less
 * than 0.5 % of it.
 *
 *     bench/dist/telemetry [RECIPE [WINDOWS [STEPS [WAY]]]]
 *                          default: a tiny net, 24 windows of 400 steps
 *
 * Two trainers of one recipe in one process, with the callbacks of that recipe and one
 * thread, in turns of STEPS batches: the records of one go nowhere, those of the other
 * as in a run of processes: into the ring, packed by the sender's thread, through a
 * pipe to a process that writes the log. Prints what a step takes, by the clock, of the
 * training thread's processor and of the whole process's, and the ratios with their
 * quartiles.
 *
 * WAY silent or published does that alone, without a comparison: under valgrind
 * --tool=callgrind the difference of two such runs is what publishing takes in
 * instructions. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/program.h"
#include "core/assemble/assemble.h"
#include "core/journal/events.h"
#include "dist/run/ring.h"
#include "dist/run/sender.h"
#include "etude/run.h"

enum { MOST = 200, CLOCKS = 3 };
enum way { SILENT, PUBLISHED, WAYS };

static const char tiny[] =
    "max_duration: 100000000ba\n"
    "seed: 17\n"
    "model: {name: mlp, hidden: 16, layers: 1}\n"
    "train_data: {name: synthetic_images, num_samples: 12800000, num_unique: 256,\n"
    "             channels: 1, resolution: 8, batch_size: 8, workers: 0}\n"
    "optimizer: {name: sgd, lr: 0.001}\n";

static const struct {
    clockid_t clock;
    const char *name;
} clocks[CLOCKS] = {
    {CLOCK_MONOTONIC, "the clock"},
    {CLOCK_THREAD_CPUTIME_ID, "training thread"},
    {CLOCK_PROCESS_CPUTIME_ID, "whole process"},
};

static struct et_ctx *cx;
static char folder[] = "/tmp/etude-telemetry-XXXXXX";

struct side {
    struct et_recipe *recipe;
    struct eti_assembly parts;
    struct et_trainer *trainer;
    double seconds[CLOCKS][MOST]; /* of a step */
};

/* ---- in the supervisor's place ---- */

static void
write_log(int fd)
{
    static const unsigned char id[ETI_EVENTS_ID];
    static struct et_log_entry entry[ETD_RING_NAMES];
    static char buf[64 << 10];
    struct eti_events_writer w;
    struct etd_bytes in = {0};
    ssize_t n;
    must(cx, eti_events_begin(cx, folder, id, &w));
    while ((n = read(fd, buf, sizeof buf)) > 0) {
        struct etd_packet p;
        struct et_record r;
        size_t at = 0, used;
        etd_bytes_add(&in, buf, (size_t)n);
        while (etd_packet_next(in.at + at, in.n - at, &p, &used) == 1) {
            if (etd_packet_record(&p, entry, ETD_RING_NAMES, &r))
                eti_events_write(&w, &r);
            at += used;
        }
        etd_bytes_drop(&in, at);
        eti_events_flush(&w);
    }
    eti_events_end(&w);
    _exit(0);
}

/* Returns the end of the pipe to a process that writes down what comes. */
static int
start_log(pid_t *pid)
{
    int pipes[2];
    if (pipe(pipes) != 0)
        exit(1);
    *pid = fork();
    if (*pid == 0) {
        close(pipes[1]);
        write_log(pipes[0]);
    }
    close(pipes[0]);
    return pipes[1];
}

/* ---- two trainers ---- */

static void
open_side(struct side *s, const char *path, struct et_sink *sink)
{
    struct et_diagnostics errors = {0};
    const struct eti_assemble_options options = {
        .device = "cpu", .threads = 1, .with_train = true};
    et_status status =
        path ? et_recipe_load(cx, path, NULL, 0, NULL, &s->recipe, &errors)
             : et_recipe_parse(cx, tiny, strlen(tiny), "telemetry.yaml", NULL, 0, NULL,
                               &s->recipe, &errors);
    if (status != ET_OK) {
        fprintf(stderr, "telemetry: %s\n",
                errors.n ? errors.v[0].message : et_error_get(cx)->message);
        exit(1);
    }
    must(cx, eti_assemble(cx, s->recipe, &options, &s->parts));
    must(cx, eti_assemble_callbacks(&s->parts, s->recipe, folder));
    s->parts.config.sink = sink;
    must(cx, et_trainer_new(cx, &s->parts.config, &s->trainer));
}

static void
close_side(struct side *s)
{
    et_trainer_free(&s->trainer);
    eti_assembly_release(&s->parts);
    et_recipe_free(&s->recipe);
}

static void
window(struct side *s, int steps, int i)
{
    struct timespec a[CLOCKS], b[CLOCKS];
    for (int k = 0; k < CLOCKS; k++)
        clock_gettime(clocks[k].clock, &a[k]);
    must(cx, et_trainer_fit(s->trainer, ET_BATCHES(steps)));
    for (int k = 0; k < CLOCKS; k++) {
        clock_gettime(clocks[k].clock, &b[k]);
        s->seconds[k][i] = ((double)(b[k].tv_sec - a[k].tv_sec) +
                            1e-9 * (double)(b[k].tv_nsec - a[k].tv_nsec)) /
                           steps;
    }
}

static void
compare(const struct side *side, int k, int n)
{
    double ratio[MOST], alone[MOST], more[MOST];
    for (int i = 0; i < n; i++) {
        alone[i] = side[SILENT].seconds[k][i];
        more[i] = side[PUBLISHED].seconds[k][i] - alone[i];
        ratio[i] = side[PUBLISHED].seconds[k][i] / alone[i];
    }
    qsort(alone, (size_t)n, sizeof *alone, by_size);
    qsort(more, (size_t)n, sizeof *more, by_size);
    qsort(ratio, (size_t)n, sizeof *ratio, by_size);
    printf("%-16s %9.2f us a step; published %+.2f us, %+.2f %% (%+.2f .. %+.2f)\n",
           clocks[k].name, 1e6 * part(alone, n, 0.5), 1e6 * part(more, n, 0.5),
           100 * (part(ratio, n, 0.5) - 1), 100 * (part(ratio, n, 0.25) - 1),
           100 * (part(ratio, n, 0.75) - 1));
}

int
main(int argc, char **argv)
{
    static struct side side[WAYS];
    const char *path = argc > 1 && strcmp(argv[1], "tiny") != 0 ? argv[1] : NULL;
    int windows = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 24;
    int steps = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 400;
    const char *only = argc > 4 ? argv[4] : "";
    bool does[WAYS] = {strcmp(only, "published") != 0, strcmp(only, "silent") != 0};
    char command[64];
    struct etd_sender *sender;
    pid_t log;
    if (windows < 1 || windows > MOST || steps < 1) {
        fprintf(stderr, "usage: telemetry [RECIPE [WINDOWS [STEPS [WAY]]]]\n");
        return 64;
    }
    setenv("OMP_NUM_THREADS", "1", 1);
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(folder))
        return 1;
    int fd = start_log(&log);
    must(cx, etd_sender_start(cx, fd, 0, &sender));
    for (int k = 0; k < WAYS; k++)
        if (does[k])
            open_side(&side[k], path, k == PUBLISHED ? etd_sender_sink(sender) : NULL);
    for (int i = 0; i <= windows; i++)
        for (int k = 0; k < WAYS; k++) {
            int turn = i % 2 ? WAYS - 1 - k : k; /* so that none is always first */
            if (does[turn]) /* the first is to warm up, and written over */
                window(&side[turn], steps, i ? i - 1 : 0);
        }
    if (does[SILENT] && does[PUBLISHED])
        for (int k = 0; k < CLOCKS; k++)
            compare(side, k, windows);
    for (int k = 0; k < WAYS; k++)
        if (does[k])
            close_side(&side[k]);
    etd_sender_stop(&sender);
    close(fd);
    waitpid(log, NULL, 0);
    et_ctx_free(&cx);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) != 0;
}
