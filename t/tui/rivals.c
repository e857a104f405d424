/* SPDX-License-Identifier: Apache-2.0 */
/* rivals.c: writes the runs of the mock-ups of Runs and Compare (UX.md section 3), as
 * if they had been trained: ./runs/<name>, with times that are always the same.
 *
 *     t/tui/rivals */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/journal/events.h"

enum { EPOCH = 625, BATCH = 2048 };
static const double DAY = 1763600400; /* 2025-11-20 01:00:00 UTC */

struct rival {
    const char *name, *state, *algorithms;
    double started;          /* hours behind DAY */
    double minutes, seconds; /* of all its epochs; to .765 */
    double best, lr;
    int epochs, done, seed;
    double speed, watts; /* 0: nobody measured it */
};

static const struct rival rivals[] = {
    {"brisk-otter", "stopped", "blurpool: {}, ema: {half_life: 100ba}", 13.9, 40, 0,
     .7212, 2.0, 16, 6, 42, 17210, 0},
    {"calm-heron", "finished",
     "blurpool: {}, ema: {half_life: 1000ba}, label_smoothing: {smoothing: 0.08}", 10.3,
     16.2, 891, .7668, 2.4, 16, 16, 42, 21340, 4848},
    {"dry-finch", "finished",
     "blurpool: {}, ema: {half_life: 100ba}, label_smoothing: {smoothing: 0.1}", 8,
     16.4, 962, .7659, 2.0, 16, 16, 42, 21101, 4320},
    {"early-mole", "finished",
     "blurpool: {}, ema: {half_life: 1000ba}, label_smoothing: {smoothing: 0.08}", -9,
     37, 1780, .7701, 2.0, 36, 36, 42, 20877, 0},
    {"base-r50", "finished", "", -12, 90, 4692, .7653, 2.0, 90, 90, 42, 18455, 4900},
    {"fond-lynx", "preempted", "mixup: {alpha: 0.2}", -14, 40, 0, .5120, 2.0, 16, 2, 42,
     0, 0},
    {"grim-toad", "failed", "sam: {}", -60, 40, 0, .7011, 1.0, 16, 8, 7, 0, 0},
};

static const char *metric = "metrics/eval/Accuracy"; /* or the argument */

static void
need(struct et_ctx *cx, bool good)
{
    if (good)
        return;
    fprintf(stderr, "rivals: %s\n", et_error_get(cx)->message);
    exit(1);
}

static FILE *
create(const char *name)
{
    FILE *f = fopen(name, "w");
    if (!f) {
        perror(name);
        exit(1);
    }
    return f;
}

/* Accuracy at PART of the run: .765 is reached at R->seconds, BEST at the end. */
static double
accuracy(const struct rival *r, double part)
{
    double at =
        r->seconds > 0 ? r->seconds / (r->minutes * 60) : (double)r->done / r->epochs;
    if (part < at - 1e-9)
        return (r->seconds > 0 ? .7649 : r->best) * (1 - exp(-5 * part / at)) /
               (1 - exp(-5));
    return r->best;
}

/* What two GPUs drew from second FROM of the run to TO: records that are EACH seconds
 * apart. */
static void
write_health(struct eti_events_writer *w, const struct rival *r, double from, double to)
{
    enum { EACH = 4 };
    const struct et_log_entry e[] = {{"power_w", r->watts / 2}};
    for (double s = floor(from / EACH) * EACH + EACH; s <= to && r->watts > 0;
         s += EACH)
        for (int rank = 0; rank < 2; rank++) {
            const struct et_record record = {
                .kind = ET_RECORD_HEALTH,
                .t = DAY + r->started * 3600 + s,
                .rank = rank,
                .entry = e,
                .n = 1,
            };
            eti_events_write(w, &record);
        }
}

static void
write_log(struct et_ctx *cx, const struct rival *r)
{
    enum { EVALS = 40 };
    unsigned char id[ETI_EVENTS_ID] = {0};
    struct eti_events_writer w;
    double start = DAY + r->started * 3600;
    memcpy(id, r->name, strlen(r->name) < sizeof id ? strlen(r->name) : sizeof id);
    need(cx, eti_events_begin(cx, ".", id, &w) == ET_OK);
    for (int i = 1; i <= EVALS; i++) {
        double part = (double)i / EVALS * r->done / r->epochs;
        int64_t ba = (int64_t)lround(part * r->epochs * EPOCH);
        const struct et_log_entry e[] = {
            {"loss/train/total", 1.2 + 5 * exp(-6 * part)},
            {"throughput/samples_per_sec", r->speed},
            {"time/sample", (double)ba * BATCH},
        };
        write_health(&w, r, part * r->minutes * 60 * (i - 1) / i,
                     part * r->minutes * 60);
        struct et_log_entry m[] = {{"", accuracy(r, part)}};
        snprintf(m[0].name, sizeof m[0].name, "%s", metric);
        struct et_record record = {
            .kind = ET_RECORD_BATCH,
            .t = start + part * r->minutes * 60,
            .ep = ba / EPOCH,
            .ba = ba,
            .sp = ba * BATCH,
            .entry = e,
            .n = r->speed > 0 ? 3 : 1,
        };
        eti_events_write(&w, &record);
        record.kind = ET_RECORD_EVAL;
        record.text = "eval";
        record.entry = m;
        record.n = 1;
        eti_events_write(&w, &record);
    }
    eti_events_end(&w);
}

static void
write_files(const struct rival *r)
{
    FILE *f = create("run.json");
    fprintf(
        f,
        "{\"name\": \"%s\", \"id\": \"%s\", \"recipe\": \"resnet50_imagenet_mild\", "
        "\"state\": \"%s\", \"started\": %.0f, \"pid\": 1, \"boot_id\": \"another\", "
        "\"version\": \"0.4.1\", \"threads\": 4}\n",
        r->name, r->name, r->state, DAY + r->started * 3600);
    fclose(f);
    f = create("report.json");
    fprintf(f, "{\"ep\": %d, \"ba\": %d, \"sp\": %d, \"train_seconds\": %.0f}\n",
            r->done, r->done * EPOCH, r->done * EPOCH * BATCH, r->minutes * 60);
    fclose(f);
    f = create("recipe.resolved.yaml");
    fprintf(f,
            "max_duration: %dep\nseed: %d\nmodel: {name: resnet50}\n"
            "optimizer: {name: decoupled_sgdw, lr: %.1f}\nalgorithms: {%s}\n",
            r->epochs, r->seed, r->lr, r->algorithms);
    fclose(f);
    f = create("recipe.yaml");
    fprintf(f,
            "# %s\nmax_duration: %dep\nseed: %d\nmodel: {name: resnet50}\n"
            "train_data: {name: synthetic_images, batch_size: 64}\n"
            "optimizer: {name: decoupled_sgdw, lr: %.1f}\nalgorithms: {%s}\n",
            r->name, r->epochs, r->seed, r->lr, r->algorithms);
    fclose(f);
}

int
main(int argc, char **argv)
{
    struct et_ctx *cx;
    char folder[64];
    if (argc > 1)
        metric = argv[1];
    if (et_ctx_new(&cx) != ET_OK)
        return 1;
    mkdir("runs", 0700);
    for (size_t i = 0; i < sizeof rivals / sizeof *rivals; i++) {
        snprintf(folder, sizeof folder, "runs/%s", rivals[i].name);
        mkdir(folder, 0700);
        if (chdir(folder) != 0) {
            perror(folder);
            return 1;
        }
        write_files(&rivals[i]);
        write_log(cx, &rivals[i]);
        if (chdir("../..") != 0)
            return 1;
    }
    et_ctx_free(&cx);
    return 0;
}
