/* SPDX-License-Identifier: Apache-2.0 */
/* SeqLengthWarmup: spec/algorithms.md 2.23. */
#include "t/algorithms/golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/train/recipe_run.h"
#include "t/train/recipes.h"
#include "t/unit/rig.h"

/* ---- lengths ---- */

static int64_t
length_at(struct et_ctx *cx, int64_t step)
{
    int64_t length;
    need(cx, et_seq_length(cx, step, 2540, .3, 8, 1024, 8, &length));
    return length;
}

static void
test_lengths(struct et_ctx *cx)
{
    static const int64_t rows[][2] = {{0, 8},     {5, 8},      {6, 16},
                                      {300, 408}, {762, 1024}, {2539, 1024}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        is_int(length_at(cx, rows[i][0]), rows[i][1], "length at batch %d",
               (int)rows[i][0]);
    int64_t length;
    need(cx, et_seq_length(cx, 0, 10, 0, 8, 64, 8, &length));
    is_int(length, 64, "duration 0 is no warm-up");
    need(cx, et_seq_length(cx, 0, 10, .5, 64, 64, 8, &length));
    is_int(length, 64, "nor are equal lengths");
    for (int i = 0; i < 5; i++) {
        need(cx, et_seq_length(cx, i, 10, .3, 8, 32, 8, &length));
        is_int(length, i < 3 ? 8 + 8 * i : 32,
               "with as many increments as batches each batch is longer");
    }
    refused(cx, et_seq_length(cx, 0, 100, .3, 8, 1024, 8, &length),
            "more increments than batches are refused");
    refused(cx, et_seq_length(cx, 0, 100, .3, 8, 16, 32, &length),
            "so is a step that is too large");
    refused(cx, et_seq_length(cx, 0, 100, .3, 64, 16, 8, &length),
            "and a way downwards");
}

/* "seq_length steps duration min max step_size batch length" by Composer. */
static void
test_golden_lengths(struct et_ctx *cx)
{
    char line[256];
    FILE *file = rig_golden("methods.txt");
    int cases = 0, right = 0;
    while (fgets(line, sizeof line, file)) {
        long long steps, min, max, step_size, batch, want;
        double duration;
        int64_t got;
        if (sscanf(line, "seq_length %lld %lf %lld %lld %lld %lld %lld", &steps,
                   &duration, &min, &max, &step_size, &batch, &want) != 7)
            continue;
        need(cx, et_seq_length(cx, batch, steps, duration, min, max, step_size, &got));
        right += got == want;
        cases++;
    }
    fclose(file);
    is_int(right, cases, "lengths are Composer's");
    is_int(cases, 60, "sixty of them");
}

/* ---- batches ---- */

enum { N = 3, T = 7 };

/* A batch of tokens, labels and masks, as make_methods.py's: rows end behind 7, 3 and 1
 * tokens. */
static struct et_samples
batch_of(struct formula *f)
{
    static const int ends[N] = {7, 3, 1};
    int32_t tokens[N * T], labels[N * T], mask[N * T];
    for (int i = 0; i < N * T; i++) {
        tokens[i] = 10 + i;
        labels[i] = 100 + i;
        mask[i] = i % T < ends[i / T];
    }
    return (struct et_samples){
        .x = integers(f, tokens, ET_SHAPE(N, T)),
        .target = integers(f, labels, ET_SHAPE(N, T)),
        .n = N,
        .other = {{"attention_mask", integers(f, mask, ET_SHAPE(N, T))}},
        .n_others = 1,
    };
}

static void
release(struct et_samples *s)
{
    et_tensor_free(&s->x);
    et_tensor_free(&s->target);
    et_tensor_free(&s->other[0].tensor);
}

/* " rows length v v ..." of X appended to TEXT. */
static void
append(struct formula *f, struct et_tensor *x, char *text, size_t size)
{
    int32_t v[N * T];
    size_t at = strlen(text);
    need(f->cx, et_eval(f->g, &x, 1));
    need(f->cx, et_tensor_read(f->cx, x, v, et_desc_bytes(&x->desc)));
    at += (size_t)snprintf(text + at, size - at, " %d %d", (int)x->desc.shape[0],
                           (int)x->desc.shape[1]);
    for (int i = 0; i < et_desc_count(&x->desc); i++)
        at += (size_t)snprintf(text + at, size - at, " %d", (int)v[i]);
}

/* "seq_batch length truncate preserve rows length v v ..." of tokens, labels, masks. */
static void
test_golden_batches(struct formula *f)
{
    char line[1024], got[1024];
    FILE *file = rig_golden("methods.txt");
    int cases = 0;
    while (fgets(line, sizeof line, file)) {
        int length, truncate, preserve, used;
        if (sscanf(line, "seq_batch %d %d %d%n", &length, &truncate, &preserve,
                   &used) != 3)
            continue;
        struct et_samples all = batch_of(f), s = all;
        need(f->cx, et_set_batch_sequence_length(f->g, &s, length, truncate, preserve));
        snprintf(got, sizeof got, "%.*s", used, line);
        append(f, s.x, got, sizeof got);
        append(f, s.target, got, sizeof got);
        append(f, s.other[0].tensor, got, sizeof got);
        line[strcspn(line, "\n")] = '\0';
        is_str(got, line, "length %d, truncate %d, preserve %d: Composer's batch",
               length, truncate, preserve);
        is_int(s.n, s.x->desc.shape[0], "rows are counted");
        et_graph_reset(f->g);
        release(&all);
        cases++;
    }
    fclose(file);
    is_int(cases, 9, "nine batches");
}

static void
test_batches(struct formula *f)
{
    struct et_samples all = batch_of(f), s = all;
    need(f->cx, et_set_batch_sequence_length(f->g, &s, T, true, true));
    ok(s.x == all.x && s.target == all.target,
       "what is short enough is the same tensor");
    int32_t none[N * T] = {1};
    need(f->cx, et_tensor_write(f->cx, all.other[0].tensor, none, sizeof none));
    refused(f->cx, et_set_batch_sequence_length(f->g, &s, 4, true, true),
            "a sample without an end is refused");
    et_graph_reset(f->g);
    s = all;
    s.n_others = 0;
    refused(f->cx, et_set_batch_sequence_length(f->g, &s, 4, true, true),
            "so are data without a mask");
    struct et_tensor *classes = integers(f, none, ET_SHAPE(N));
    s.target = classes;
    refused(f->cx, et_set_batch_sequence_length(f->g, &s, 4, true, false),
            "and one label a sample");
    et_graph_reset(f->g);
    et_tensor_free(&classes);
    release(&all);
}

/* A field that has six numbers for each token, of batch_of's rows. */
static void
test_wide_fields(struct formula *f)
{
    enum { WIDE = 6, LENGTH = 3 };
    static const int end[N] = {6, 2, 0}, place[N] = {2, 2, 0};
    float v[N * T * WIDE], got[N * LENGTH * WIDE];
    struct et_samples all = batch_of(f), s;
    int right = 0;
    for (int i = 0; i < N * T * WIDE; i++)
        v[i] = (float)i;
    struct et_tensor *wide = reals(f, v, ET_SHAPE(N, T, WIDE));
    struct et_tensor *square = et_reshape(f->g, wide, ET_SHAPE(N, T, 3, 2));
    all.other[1] = (struct et_named_tensor){"wide", square};
    all.n_others = 2;
    s = all;
    need(f->cx, et_set_batch_sequence_length(f->g, &s, LENGTH, true, true));
    struct et_tensor *cut = s.other[1].tensor;
    ok(cut->desc.ndim == 4 && cut->desc.shape[2] == 3 && cut->desc.shape[3] == 2,
       "a token's numbers keep their shape");
    evaluate(f, et_reshape(f->g, cut, ET_SHAPE(N * LENGTH * WIDE)), got,
             N * LENGTH * WIDE);
    for (int i = 0; i < N * LENGTH * WIDE; i++) {
        int row = i / (LENGTH * WIDE), column = i / WIDE % LENGTH;
        int from = column == place[row] ? end[row] : column;
        right += got[i] == v[(row * T + from) * WIDE + i % WIDE];
    }
    is_int(right, N * LENGTH * WIDE, "those of a row's end move with it");
    et_graph_reset(f->g);
    all.other[1].tensor = wide;
    s = all;
    refused(f->cx, et_set_batch_sequence_length(f->g, &s, LENGTH, false, false),
            "segments have one number for each token");
    struct et_tensor *mask = all.other[0].tensor;
    s = all;
    s.other[0].tensor = wide;
    refused(f->cx, et_set_batch_sequence_length(f->g, &s, LENGTH, true, true),
            "and so has a mask");
    et_graph_reset(f->g);
    s = all;
    s.n_others = 0;
    s.target = integers(f, (int32_t[(N + 1) * T]){0}, ET_SHAPE(N + 1, T));
    refused(f->cx, et_set_batch_sequence_length(f->g, &s, LENGTH, false, false),
            "segments need as many rows of each field");
    et_graph_reset(f->g);
    et_tensor_free(&s.target);
    s.target = all.target;
    need(f->cx, et_set_batch_sequence_length(f->g, &s, LENGTH, false, true));
    is_int(s.n, N * T / LENGTH, "segments have no end to keep, and need no mask");
    et_graph_reset(f->g);
    et_tensor_free(&wide);
    all.other[0].tensor = mask;
    release(&all);
}

/* Of 10 batches 8 are longer and longer, from 2 tokens to 6 by 2. */
static void
test_told(struct formula *f, const char *truncate, int64_t rows)
{
    struct et_algorithm *a =
        algorithm(f->cx, "seq_length_warmup",
                  OPTIONS("duration", "0.8", "min_seq_length", "2", "max_seq_length",
                          "6", "step_size", "2", "truncate", truncate));
    struct et_samples all = batch_of(f);
    struct et_state s = {.cx = f->cx,
                         .graph = f->g,
                         .max_duration = ET_BATCHES(10),
                         .timestamp = {.batch = 5, .batch_in_epoch = 1},
                         .batch = all,
                         .full = all};
    struct et_log *log;
    double length = 0, n = 0;
    need(f->cx, et_log_new(f->cx, NULL, &log));
    need(f->cx, a->type->apply(a, ET_EVENT_AFTER_DATALOADER, &s, log));
    (void)et_log_find(log, "seq_length_warmup/curr_seq_len", &length);
    (void)et_log_find(log, "seq_length_warmup/curr_bs", &n);
    is_int((int64_t)length, 4, "the sixth batch of the run has sequences of four");
    is_int((int64_t)n, rows, "truncate %s: in so many rows", truncate);
    is_int(s.batch.n, rows, "which is what the batch has");
    et_log_free(&log);
    et_graph_reset(f->g);
    release(&all);
    et_algorithm_free(&a);
}

/* ---- a run ---- */

#define WARMUP                                                                         \
    "algorithms:\n  seq_length_warmup: {duration: 0.8, min_seq_length: 4,\n"           \
    "    max_seq_length: 16, step_size: 4"

/* Of each batch: work, and plans so far. */
static int64_t flops[16], plans[16];
static int n_batches;

static et_status
watch(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    struct et_graph_stats stats;
    (void)self, (void)event, (void)log;
    et_graph_get_stats(s->graph, &stats);
    plans[n_batches] = (int64_t)stats.plans_built;
    flops[n_batches++] = s->batch_flops;
    return ET_OK;
}

/* 10 batches of TEXT; the time when they are over. */
static struct et_timestamp
run(struct et_ctx *cx, const char *text)
{
    static const struct et_algorithm_class spy = {
        .info = {.name = "spy"}, .events = ET_ON(BATCH_END), .apply = watch};
    struct et_algorithm *list[2], watching = {.type = &spy, .cx = cx};
    struct recipe_run r;
    n_batches = 0;
    recipe_prepare(&r, cx, text,
                   &(struct recipe_choice){.grad_accum = 1, .workers = -1});
    list[0] = r.parts.config.algorithms[0];
    list[1] = &watching;
    r.parts.config.algorithms = list;
    r.parts.config.n_algorithms = 2;
    recipe_start(&r);
    recipe_fit(&r);
    if (n_batches != 10)
        bail("%d batches", n_batches);
    struct et_timestamp clock = r.state->timestamp;
    recipe_close(&r);
    return clock;
}

/* 10 batches: 8 of warm-up, 3 increments, every 2. */
static void
test_run(struct et_ctx *cx)
{
    int late = 0;
    struct et_timestamp clock = run(cx, GPT("10ba") WARMUP "}\n");
    for (int i = 1; i < 10; i++)
        late += (i % 2 == 1 || i > 6) && plans[i] > plans[i - 1];
    is_int(late, 0, "a length has its plan at its first batch");
    is_int(plans[9] - plans[1], 3, "three more lengths are three more plans");
    ok(flops[0] == flops[1] && flops[1] < flops[2] && flops[3] < flops[4] &&
           flops[5] < flops[6] && flops[6] == flops[9],
       "work grows with the length: 4, 8, 12, 16");
    is_int(clock.sample, 160, "samples are counted as the loader gave them");
    clock = run(cx, GPT("10ba") WARMUP ", truncate: false}\n");
    ok(flops[0] > flops[9] * 3 / 4, "segments keep the tokens");
    is_int(clock.token, 2560, "and tokens are counted as before");
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct formula f;
    test_lengths(cx);
    test_golden_lengths(cx);
    formula_open(&f, cx);
    test_golden_batches(&f);
    test_batches(&f);
    test_wide_fields(&f);
    test_told(&f, "true", N);
    test_told(&f, "false", N * T / 4);
    formula_close(&f);
    test_run(cx);
    ok(strstr(refusal(cx, "seq_length_warmup",
                      OPTIONS("min_seq_length", "64", "max_seq_length", "32")),
              "32"),
       "max_seq_length below min_seq_length is refused");
    return finish(cx);
}
