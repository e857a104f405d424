/* SPDX-License-Identifier: Apache-2.0 */
/* example.c: writes the run that the mock-ups of UX.md section 3 show, as its
 * supervisor would have: 8 ranks, ResNet-50, 38% done, rank 5 slow for its data.
 *
 *     t/tui/example FOLDER [RECORDS]    RECORDS: only those, as if it were going on
 *     t/tui/example FOLDER text         another: 2 ranks on processors, of tokens, with
 *                                       three evaluators, the last of which runs
 *     t/tui/example FOLDER saves        12 batches, and checkpoints that fail */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/journal/events.h"

enum {
    RANKS = 8,
    EPOCH = 625,
    EPOCHS = 16,
    BATCH = 2048,
    LAST = 3825,
    SLOW_FROM = 3500
};
static const double START = 1763646980; /* 2025-11-20 13:56:20 UTC */

struct writer {
    struct eti_events_writer log;
    double t;
    int64_t ba, most;
};

static void
need(struct et_ctx *cx, bool good)
{
    if (good)
        return;
    fprintf(stderr, "example: %s\n", et_error_get(cx)->message);
    exit(1);
}

/* A number between -1 and 1 that is another for each pair. */
static double
noise(int64_t a, int64_t b)
{
    uint64_t x = (uint64_t)(a * 2654435761 + b * 40503 + 12345);
    x ^= x >> 33;
    x *= UINT64_C(0xff51afd7ed558ccd);
    x ^= x >> 33;
    return (double)(x >> 11) / (double)(UINT64_C(1) << 52) - 1;
}

static void
put(struct writer *w, enum et_record_kind kind, const char *text, int rank,
    enum et_log_level level, const struct et_log_entry *entry, int n)
{
    const struct et_record r = {
        .kind = kind,
        .t = w->t,
        .ep = w->ba / EPOCH,
        .ba = w->ba,
        .sp = w->ba * BATCH,
        .text = text,
        .level = level,
        .rank = rank,
        .entry = entry,
        .n = n,
    };
    if (w->log.seq < w->most)
        eti_events_write(&w->log, &r);
}

static double
loss_of(int64_t ba)
{
    return 0.72 + 1.66 * exp(-(double)ba / 700) + 0.05 * noise(ba, 1);
}

static double
rate_of(int64_t ba)
{
    double top = 2.0, warm = 5 * EPOCH, all = EPOCH * EPOCHS;
    if ((double)ba < warm)
        return top * (double)ba / warm;
    return top * 0.5 * (1 + cos(M_PI * ((double)ba - warm) / (all - warm)));
}

static void
put_batch(struct writer *w)
{
    const struct et_log_entry e[] = {
        {"loss/train/total", loss_of(w->ba)},
        {"lr-DecoupledSGDW/group0", rate_of(w->ba)},
        {"l2_norm/grad/global", 1.2 + 0.3 * noise(w->ba, 2)},
        {"throughput/samples_per_sec",
         (w->ba < SLOW_FROM ? 20900 : 17210) + 300 * noise(w->ba / 20, 3)},
        {"throughput/device/mfu", 0.054 + 0.001 * noise(w->ba / 20, 4)},
        {"throughput/device/flops_per_sec", 0.054 * 989e12},
        {"memory/peak_allocated_mem", w->ba < 1875   ? 41
                                      : w->ba < 3000 ? 52
                                                     : 61},
    };
    put(w, ET_RECORD_BATCH, NULL, 0, ET_LOG_INFO, e, sizeof e / sizeof *e);
}

/* Rank 5 waits for its storage from batch SLOW_FROM on: the others wait for it. */
static void
put_health(struct writer *w, int rank)
{
    bool slow = w->ba >= SLOW_FROM && rank == 5;
    double own = slow ? 119.3 : 97.9 + 0.4 * noise(rank, w->ba / 8);
    double longest = w->ba >= SLOW_FROM ? 119.3 : 98.4, data = slow ? 23.4 : 2.0;
    const struct et_log_entry e[] = {
        {"own_ms", own},
        {"wait_ms", longest - own},
        {"data_ms", data},
        {"step_ms", own - data - 2.1 - 0.3},
        {"hooks_ms", 2.1},
        {"save_ms", 0.3},
        {"ba_per_s", 1000 / longest},
        {"cpu_util", 0.58},
        {"rss_gb", 38.9},
        {"read_mb_s", slow ? 212 : 412},
        {"write_mb_s", 0.3},
        {"net_mb_s", 200},
        {"gpu_util", slow ? 0.61 : 0.965 + 0.005 * noise(rank, 7)},
        {"mem_gb", 61},
        {"mem_total_gb", 80},
        {"temp_c", 64 + rank % 3},
        {"power_w", slow ? 412 : 612},
        {"sm_mhz", 1980},
        {"host_cpu", 0.58}, /* from here on: of the machine */
        {"ram_gb", 311},
        {"ram_total_gb", 1007},
    };
    put(w, ET_RECORD_HEALTH, NULL, rank, ET_LOG_INFO, e,
        (int)(sizeof e / sizeof *e) - (rank > 0 ? 3 : 0));
}

static void
put_algorithms(struct writer *w)
{
    static const struct {
        const char *name;
        int each; /* applied at one batch in so many; 0: once */
        double ms;
    } all[] = {
        {"blurpool", 0, 0},
        {"channels_last", 0, 0},
        {"ema", 1, 0.9},
        {"label_smoothing", 1, 0.1},
        {"mixup", 1, 0.6},
        {"gradient_clipping", 1, 0.2},
        {"progressive_resizing", 1, 0.3},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const struct et_log_entry e[] = {
            {"fired", all[i].each ? (double)w->ba : 1},
            {"applied", all[i].each ? (double)(w->ba / all[i].each) : 1},
            {"ms", all[i].ms},
            {"last_ba", all[i].each ? (double)w->ba : 0},
        };
        put(w, ET_RECORD_ALGORITHM, all[i].name, 0, ET_LOG_INFO, e, 4);
    }
}

static void
evaluate(struct writer *w)
{
    enum { BATCHES = 25 };
    static const double accuracy[] = {.2871, .4533, .5802, .6618, .7131, .7212};
    static const double ce[] = {3.2210, 2.3125, 1.7310, 1.3522, 1.1390, 1.1022};
    int ep = (int)(w->ba / EPOCH) - 1;
    struct et_log_entry e[] = {{"eval/eval/batch", 0}, {"eval/eval/batches", BATCHES}};
    for (int i = 0; i <= BATCHES; i += 5) {
        e[0].value = i;
        put(w, ET_RECORD_RUN, "evaluating", 0, ET_LOG_INFO, e, 2);
        w->t += 4.1 / 6;
    }
    const struct et_log_entry m[] = {{"metrics/eval/Accuracy", accuracy[ep]},
                                     {"metrics/eval/CrossEntropy", ce[ep]}};
    put(w, ET_RECORD_EVAL, "eval", 0, ET_LOG_INFO, m, 2);
    put(w, ET_RECORD_RUN, "running", 0, ET_LOG_INFO, NULL, 0);
    char label[64];
    snprintf(label, sizeof label, "ep%d-ba%d", ep + 1, (int)w->ba);
    w->t += 0.3;
    put(w, ET_RECORD_CHECKPOINT, label, 0, ET_LOG_INFO, NULL, 0);
}

static void
begin(struct writer *w)
{
    const struct et_log_entry e[] = {
        {"run/epochs", EPOCHS},       {"run/batches", EPOCH * EPOCHS},
        {"run/epoch_batches", EPOCH}, {"run/batch_size", BATCH},
        {"run/grad_accum", 1},
    };
    put(w, ET_RECORD_RUN, "starting", 0, ET_LOG_INFO, NULL, 0);
    w->t += 2;
    put(w, ET_RECORD_RUN, "running", 0, ET_LOG_INFO, e, sizeof e / sizeof *e);
}

static void
write_log(struct et_ctx *cx, const char *folder, int64_t most)
{
    static const unsigned char id[ETI_EVENTS_ID] = "brisk-otter";
    struct writer w = {.t = START, .most = most};
    double next = START + 3;
    need(cx, eti_events_begin(cx, folder, id, &w.log) == ET_OK);
    begin(&w);
    for (w.ba = 1; w.ba <= LAST; w.ba++) {
        w.t += w.ba < SLOW_FROM ? 0.098 : 0.119 + 0.002 * noise(w.ba, 9);
        put_batch(&w);
        if (w.t >= next) {
            next += 1;
            for (int rank = 0; rank < RANKS; rank++)
                put_health(&w, rank);
            put_algorithms(&w);
        }
        if (w.ba == SLOW_FROM + 40)
            put(&w, ET_RECORD_LOG,
                "own time 119 ms is 21% over the median for 40 batches; data wait 22 "
                "ms",
                5, ET_LOG_WARN, NULL, 0);
        if (w.ba == 2500)
            put(&w, ET_RECORD_ANNOTATION, "second loader \033[31mworker\033[0m added",
                0, ET_LOG_INFO, NULL, 0);
        if (w.ba == 3700)
            put(&w, ET_RECORD_LOG, "progressive_resizing  160 -> 176 px", 0,
                ET_LOG_INFO, NULL, 0);
        if (w.ba % EPOCH == 0) {
            put(&w, ET_RECORD_EPOCH, NULL, 0, ET_LOG_INFO, NULL, 0);
            evaluate(&w);
        }
    }
    eti_events_end(&w.log);
}

/* ---- the run of tokens ---- */

static void
put_text_health(struct writer *w, int rank)
{
    const struct et_log_entry e[] = {
        {"own_ms", 195 + 5 * rank},
        {"wait_ms", 5 - 5 * rank},
        {"data_ms", 20},
        {"ba_per_s", 5},
        {"cpu_util", 0.49},
        {"rss_gb", 1.9},
        {"read_mb_s", 4.2},
        {"net_mb_s", 96},
        {"host_cpu", 0.98},
        {"ram_gb", 6},
        {"ram_total_gb", 16},
        {"host_power_w", 90},
    };
    put(w, ET_RECORD_HEALTH, NULL, rank, ET_LOG_INFO, e,
        (int)(sizeof e / sizeof *e) - (rank > 0 ? 4 : 0));
}

/* An evaluator of 10 batches, and what it comes to; END false: it is at half. */
static void
evaluate_text(struct writer *w, const char *label, double ce, bool end)
{
    struct et_log_entry e[2] = {{"", end ? 10 : 5}, {"", 10}};
    snprintf(e[0].name, sizeof e[0].name, "eval/%s/batch", label);
    snprintf(e[1].name, sizeof e[1].name, "eval/%s/batches", label);
    put(w, ET_RECORD_RUN, "evaluating", 0, ET_LOG_INFO, e, 2);
    w->t += 1;
    if (!end)
        return;
    struct et_log_entry m = {"", ce};
    snprintf(m.name, sizeof m.name, "metrics/%s/LanguageCrossEntropy", label);
    put(w, ET_RECORD_EVAL, label, 0, ET_LOG_INFO, &m, 1);
}

static void
write_text_log(struct et_ctx *cx)
{
    enum { ALL = 1000, DONE = 600, EACH = 200, SAMPLES = 8, TOKENS = 1024 };
    static const unsigned char id[ETI_EVENTS_ID] = "quiet-wren";
    struct writer w = {.t = START, .most = INT64_MAX};
    const struct et_log_entry length[] = {
        {"run/batches", ALL}, {"run/batch_size", SAMPLES}, {"run/grad_accum", 1}};
    need(cx, eti_events_begin(cx, ".", id, &w.log) == ET_OK);
    put(&w, ET_RECORD_RUN, "running", 0, ET_LOG_INFO, length, 3);
    for (w.ba = 1; w.ba <= DONE; w.ba++) {
        const double ce = 3 + 4 * exp(-(double)w.ba / 200);
        const struct et_log_entry e[] = {
            {"loss/train/total", ce}, {"time/token", (double)w.ba * SAMPLES * TOKENS}};
        w.t += 0.2;
        put(&w, ET_RECORD_BATCH, NULL, 0, ET_LOG_INFO, e, 2);
        for (int rank = 0; rank < 2 && w.ba % 5 == 0; rank++)
            put_text_health(&w, rank);
        if (w.ba % EACH)
            continue;
        evaluate_text(&w, "eval", ce, true);
        evaluate_text(&w, "verse", ce - 0.25, true);
        evaluate_text(&w, "prose", ce + 0.5, w.ba < DONE);
        if (w.ba < DONE)
            put(&w, ET_RECORD_RUN, "running", 0, ET_LOG_INFO, NULL, 0);
    }
    eti_events_end(&w.log);
}

/* ---- checkpoints: two are saved, one fails, one is being written ---- */

static void
write_saves_log(struct et_ctx *cx)
{
    static const unsigned char id[ETI_EVENTS_ID] = "quiet-wren";
    static const struct {
        int ba;
        const char *text;
    } said[] = {
        {1, "begun ep1-ba1"},   {2, "saved ep1-ba1"},
        {4, "begun ep2-ba4"},   {6, "saved ep2-ba4"},
        {8, "begun ep3-ba8"},   {9, "failed ep3-ba8: No space left on device"},
        {12, "begun ep4-ba12"},
    };
    struct writer w = {.t = START, .most = INT64_MAX};
    const struct et_log_entry length = {"run/batches", 20};
    need(cx, eti_events_begin(cx, ".", id, &w.log) == ET_OK);
    put(&w, ET_RECORD_RUN, "running", 0, ET_LOG_INFO, &length, 1);
    for (w.ba = 1; w.ba <= 12; w.ba++) {
        const struct et_log_entry loss = {"loss/train/total", 1};
        w.t += 1;
        put(&w, ET_RECORD_BATCH, NULL, 0, ET_LOG_INFO, &loss, 1);
        for (size_t i = 0; i < sizeof said / sizeof *said; i++)
            if (said[i].ba == w.ba)
                put(&w, ET_RECORD_CHECKPOINT, said[i].text, 0, ET_LOG_INFO, NULL, 0);
    }
    eti_events_end(&w.log);
}

/* ---- ranks on processors, the third of which holds the others back ---- */

static const struct slow {
    const char *name;
    double own_ms, data_ms, hooks_ms, cpu_util, read_mb_s,
        host_cpu; /* the slow one's */
} slow_ranks[] = {
    {"data", 130, 40, 2, 0.20, 1, 0.60},
    {"algorithms", 130, 10, 32, 0.30, 1, 0.60},
    {"computing", 130, 10, 2, 0.28, 1, 0.60},
    {"load", 130, 10, 2, 0.20, 1, 0.99},
    {"files", 130, 10, 2, 0.15, 90, 0.60},
    {"still", 130, 10, 2, 0.15, 1, 0.60},
};

static void
write_slow_log(struct et_ctx *cx, const char *name)
{
    enum { WHO = 2, ALL = 4 };
    static const unsigned char id[ETI_EVENTS_ID] = "quiet-wren";
    const struct slow *slow = slow_ranks;
    struct writer w = {.t = START, .most = INT64_MAX};
    while (strcmp(slow->name, name) != 0)
        if (++slow == slow_ranks + sizeof slow_ranks / sizeof *slow_ranks)
            exit(64);
    need(cx, eti_events_begin(cx, ".", id, &w.log) == ET_OK);
    put(&w, ET_RECORD_RUN, "running", 0, ET_LOG_INFO, NULL, 0);
    for (w.ba = 1; w.ba <= 80; w.ba++) {
        const struct et_log_entry loss = {"loss/train/total", 1};
        w.t += 0.131;
        put(&w, ET_RECORD_BATCH, NULL, 0, ET_LOG_INFO, &loss, 1);
        for (int rank = 0; rank < ALL && w.ba % 8 == 0; rank++) {
            bool is = rank == WHO;
            double own = is ? slow->own_ms : 100;
            const struct et_log_entry e[] = {
                {"own_ms", own},
                {"wait_ms", 131 - own},
                {"data_ms", is ? slow->data_ms : 10},
                {"step_ms", 131},
                {"hooks_ms", is ? slow->hooks_ms : 2},
                {"ba_per_s", 7.6},
                {"cpu_util", is ? slow->cpu_util : 0.20},
                {"read_mb_s", is ? slow->read_mb_s : 1},
                {"host_cpu",
                 slow->host_cpu}, /* of the machine: the first rank says it */
            };
            put(&w, ET_RECORD_HEALTH, NULL, rank, ET_LOG_INFO, e,
                (int)(sizeof e / sizeof *e) - (rank > 0));
        }
    }
    eti_events_end(&w.log);
}

/* ---- the other files ---- */

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

static void
write_files(void)
{
    char path[64];
    FILE *f = create("run.json");
    fputs(
        "{\"name\": \"brisk-otter\", \"id\": \"6272697368-6f74746572\", "
        "\"recipe\": \"recipes/resnet50_imagenet_mild.yaml\", \"state\": \"running\", "
        "\"started\": 1763646980, \"pid\": 1, \"boot_id\": \"another\", "
        "\"version\": \"0.4.1\", \"threads\": 4}\n",
        f);
    fclose(f);
    f = create("recipe.resolved.yaml");
    fputs("max_duration: 16ep\nseed: 42\nprecision: amp_bf16\neval_interval: 1ep\n"
          "model: {name: resnet50}\n"
          "algorithms: {blurpool: {}, channels_last: {}, ema: {},\n"
          "  label_smoothing: {smoothing: 0.08}, mixup: {}, gradient_clipping: {},\n"
          "  progressive_resizing: {}}\n",
          f);
    fclose(f);
    mkdir("logs", 0700);
    for (int rank = 0; rank < RANKS; rank++) {
        snprintf(path, sizeof path, "logs/rank%d.txt", rank);
        f = create(path);
        for (int i = 0; i < 40; i++) {
            int s = 20 + i * 10 + rank % 2;
            fprintf(f, "2025-11-20T%02d:%02d:%02dZ %s step %d of rank %d%s\n",
                    13 + (56 * 60 + s) / 3600, (56 + s / 60) % 60, s % 60,
                    i % 13 == 12 && rank == 5 ? "warn"
                    : i == 20                 ? "debug"
                                              : "info",
                    i * 100, rank,
                    i % 13 == 12 && rank == 5 ? ": slow storage \033[2J" : "");
        }
        if (rank == 3)
            fputs("no time stands before this line\n", f);
        fclose(f);
    }
}

static void
write_text_files(void)
{
    FILE *f = create("run.json");
    fputs("{\"name\": \"quiet-wren\", \"id\": \"7175696574-7772656e\", "
          "\"recipe\": \"recipes/gpt_bible.yaml\", \"state\": \"running\", "
          "\"started\": 1763646980, \"pid\": 1, \"boot_id\": \"another\"}\n",
          f);
    fclose(f);
    f = create("recipe.resolved.yaml");
    fputs("max_duration: 1000ba\nseed: 1\nprecision: fp32\neval_interval: 200ba\n"
          "model: {name: gpt2}\n",
          f);
    fclose(f);
}

int
main(int argc, char **argv)
{
    struct et_ctx *cx;
    if (argc < 2 || et_ctx_new(&cx) != ET_OK) {
        fprintf(stderr,
                "usage: example FOLDER [RECORDS | text | saves | slow CAUSE]\n");
        return 64;
    }
    mkdir(argv[1], 0700);
    if (chdir(argv[1]) != 0) {
        perror(argv[1]);
        return 1;
    }
    if (argc > 2 && strcmp(argv[2], "text") == 0) {
        write_text_files();
        write_text_log(cx);
        et_ctx_free(&cx);
        return 0;
    }
    if (argc > 2 && strcmp(argv[2], "saves") == 0) {
        write_text_files();
        write_saves_log(cx);
        et_ctx_free(&cx);
        return 0;
    }
    if (argc > 3 && strcmp(argv[2], "slow") == 0) {
        write_text_files();
        write_slow_log(cx, argv[3]);
        et_ctx_free(&cx);
        return 0;
    }
    write_files();
    write_log(cx, ".", argc > 2 ? strtoll(argv[2], NULL, 10) : INT64_MAX);
    et_ctx_free(&cx);
    return 0;
}
