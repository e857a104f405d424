/* SPDX-License-Identifier: Apache-2.0 */
/* An algorithm that the recipe does not name joins a run that goes on: it is the run
 * that it would be had the recipe named it, and it been off so far; a run that goes on
 * from a checkpoint does the same again; and what cannot join changes nothing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/desk.h"
#include "t/train/recipes.h"

#define PLAIN            RESNET("12ba")
#define WITH(algorithms) PLAIN "algorithms:\n" algorithms

static int
replay_of(const struct result *r, struct et_request *list)
{
    int n = 0;
    struct et_request q;
    for (int i = 0; i < r->n_commands; i++)
        if (et_request_replay(r->command[i], r->ba[i], &q))
            n = et_request_add(list, n, &q);
    return n;
}

/* ---- the run that it would be ---- */

static const struct {
    const char *name, *named, *base, *on;
} joining[] = {
    {"mixup", WITH("  label_smoothing:\n  mixup:\n"), WITH("  label_smoothing:\n"),
     "algo mixup on"},
    {"label_smoothing", WITH("  mixup:\n  label_smoothing: {smoothing: 0.3}\n"),
     WITH("  mixup:\n"), "algo label_smoothing on smoothing=0.3"},
    {"gradient_clipping",
     WITH("  ema:\n  gradient_clipping: {clipping_type: norm, clipping_threshold: "
          "0.5}\n"),
     WITH("  ema:\n"),
     "algo gradient_clipping on clipping_type=norm clipping_threshold=0.5"},
    {"ema", WITH("  mixup:\n  ema: {half_life: 3ba}\n"), WITH("  mixup:\n"),
     "algo ema on half_life=3ba"},
    {"progressive_resizing", WITH("  mixup:\n  progressive_resizing:\n"),
     WITH("  mixup:\n"), "algo progressive_resizing on"},
    {"swa", WITH("  mixup:\n  swa: {swa_start: 0dur, update_interval: 1ba}\n"),
     WITH("  mixup:\n"), "algo swa on swa_start=0dur update_interval=1ba"},
    {"layer_freezing", WITH("  mixup:\n  layer_freezing: {freeze_start: 0}\n"),
     WITH("  mixup:\n"), "algo layer_freezing on freeze_start=0"},
    {"selective_backprop", WITH("  mixup:\n  selective_backprop: {start: 0.2}\n"),
     WITH("  mixup:\n"), "algo selective_backprop on start=0.2"},
    {"cutmix", WITH("  label_smoothing:\n  cutmix:\n"), WITH("  label_smoothing:\n"),
     "algo cutmix on"},
    {"cutout", WITH("  mixup:\n  cutout: {num_holes: 2}\n"), WITH("  mixup:\n"),
     "algo cutout on num_holes=2"},
    {"colout", WITH("  mixup:\n  colout:\n"), WITH("  mixup:\n"), "algo colout on"},
    {"augmix", WITH("  mixup:\n  augmix: {severity: 5}\n"), WITH("  mixup:\n"),
     "algo augmix on severity=5"},
    {"randaugment", WITH("  augmix:\n  randaugment:\n"), WITH("  augmix:\n"),
     "algo randaugment on"},
    {"colout", WITH("  mixup:\n  colout: {batch: false, p_row: 0.3}\n"),
     WITH("  mixup:\n"), "algo colout on batch=false p_row=0.3"},
};
enum { JOINING = sizeof joining / sizeof *joining };

static void
test_same(struct et_ctx *cx)
{
    char off[80], on[80];
    for (int i = 0; i < JOINING; i++) {
        snprintf(off, sizeof off, "algo %s off", joining[i].name);
        snprintf(on, sizeof on, "algo %s on", joining[i].name);
        const struct ask named[] = {{0, off}, {5, on}};
        const struct ask joins[] = {{5, joining[i].on}};
        struct result without, was_off, joined;
        (void)desk_train(cx, &(struct how){.text = joining[i].base, .saved = true},
                         &without);
        (void)desk_train(
            cx,
            &(struct how){
                .text = joining[i].named, .ask = named, .n = 2, .saved = true},
            &was_off);
        struct desk d = desk_train(
            cx,
            &(struct how){.text = joining[i].base, .ask = joins, .n = 1, .saved = true},
            &joined);
        ok(d.n_refused == 0 && strncmp(d.answer[0], "joined", 6) == 0, "%s joins: %s",
           joining[i].name, d.answer[0]);
        ok(same_params(&joined, &was_off) && same_losses(&joined, &was_off) == BATCHES,
           "as if it had been there, and off: same bits");
        ok(!same_params(&joined, &without), "it does something");
        free(without.params);
        free(was_off.params);
        free(joined.params);
    }
}

/* What a loader's threads do follows the options that are set. */
static void
test_set(struct et_ctx *cx)
{
    static const struct ask set[] = {{5, "set algorithms.randaugment.severity 1"}};
    static const char text[] = WITH("  randaugment:\n");
    struct result without, with;
    (void)desk_train(cx, &(struct how){.text = text, .saved = true}, &without);
    struct desk d = desk_train(
        cx, &(struct how){.text = text, .ask = set, .n = 1, .saved = true}, &with);
    is_str(d.answer[0], "was 9", "the severity of randaugment is set");
    int same = same_losses(&with, &without);
    ok(same >= 5 && same < BATCHES && !same_params(&with, &without),
       "which changes the batches after that, and none before (%d are the same)", same);
    free(without.params);
    free(with.params);
}

/* ---- going on ---- */

#define BASE WITH("  label_smoothing:\n")

static const struct ask asks[] = {
    {3, "algo mixup on"},
    {5, "algo ema on half_life=2ba"},
    {5, "algo gradient_clipping on clipping_type=norm clipping_threshold=0.5"},
    {7, "set algorithms.mixup.alpha 0.4"},
    {7, "set algorithms.gradient_clipping.clipping_threshold 0.4"},
    {9, "algo ema off"},
    {10, "algo ema on"},
};
enum { ASKS = sizeof asks / sizeof *asks };

static void
test_resume(struct et_ctx *cx)
{
    struct result whole, first, rest;
    struct et_request replay[ROOM];
    struct desk d = desk_train(
        cx, &(struct how){.text = BASE, .ask = asks, .n = ASKS, .saved = true}, &whole);
    is_int(d.n_refused, 0, "three join; their options are set, one is switched");
    is_str(whole.command[1], "uid:7 algo ema on half_life=2ba -> joined",
           "the log says who asked, and that it joined");
    int n = replay_of(&whole, replay);
    is_int(n, ASKS, "which a run that goes on is given again");
    for (int64_t stop = 2; stop <= 11; stop += 1) {
        (void)desk_train(
            cx,
            &(struct how){
                .text = BASE, .ask = asks, .n = ASKS, .stop = stop, .saved = true},
            &first);
        d = desk_train(cx,
                       &(struct how){.text = BASE,
                                     .saved = true,
                                     .resumed = true,
                                     .replay = replay,
                                     .n_replay = n},
                       &rest);
        ok(same_params(&rest, &whole) && rest.batches == BATCHES,
           "stopped after %d batches and resumed: same bits", (int)stop);
        is_int(d.n_done + rest.n_commands, 0, "nothing is answered or logged twice");
        free(first.params);
        free(rest.params);
    }
    free(whole.params);
}

/* A log that is lost takes what was set with it, and not what joined. */
static void
test_lost_log(struct et_ctx *cx)
{
    static const struct ask joins[] = {{3, "algo ema on half_life=2ba"},
                                       {3, "algo mixup on alpha=0.4"}};
    struct result whole, first, rest;
    (void)desk_train(
        cx, &(struct how){.text = BASE, .ask = joins, .n = 2, .saved = true}, &whole);
    (void)desk_train(
        cx, &(struct how){.text = BASE, .ask = joins, .n = 2, .stop = 6, .saved = true},
        &first);
    (void)desk_train(cx, &(struct how){.text = BASE, .saved = true, .resumed = true},
                     &rest);
    ok(same_params(&rest, &whole), "a checkpoint knows what had joined without a log");
    free(whole.params);
    free(first.params);
    free(rest.params);
}

/* A batch that is no number, and the newest checkpoint is from before it joined. */
static void
test_back(struct et_ctx *cx)
{
    static const struct ask joins[] = {{4, "algo ema on half_life=2ba"}};
    struct how how = {.text = BASE,
                      .ask = joins,
                      .n = 1,
                      .every = 3,
                      .saved = true,
                      .spoil = 5,
                      .goes_back = true};
    struct result whole, first, rest;
    struct et_request replay[ROOM];
    (void)desk_train(cx, &how, &whole);
    is_str(whole.warned, "batch 5: went back to the parameters of batch 3",
           "a run goes back to before an algorithm joined");
    const float *v = whole.params;
    int finite = 0, n = (int)(whole.bytes / sizeof *v);
    for (int i = 0; i < n; i++)
        finite += isfinite(v[i]) != 0;
    ok(whole.outcome == ET_OUTCOME_FINISHED && finite == n,
       "which stays, and begins anew");
    how.stop = 8;
    (void)desk_train(cx, &how, &first);
    how.stop = 0;
    how.n = 0;
    how.resumed = true;
    how.replay = replay;
    how.n_replay = replay_of(&whole, replay);
    (void)desk_train(cx, &how, &rest);
    ok(same_params(&rest, &whole), "stopped after that and resumed: same bits");
    free(whole.params);
    free(first.params);
    free(rest.params);
}

/* ---- what cannot join ---- */

static void
test_refusals(struct et_ctx *cx)
{
    static const struct {
        struct ask ask;
        const char *why;
    } wrong[] = {
        {{2, "algo zzz on"},
         "refused: unknown algorithm 'zzz': etude algorithms lists them"},
        {{2, "algo gradient_clipping on"},
         "refused: gradient_clipping has options without a default: etude algo RUN "
         "gradient_clipping on clipping_type=VALUE clipping_threshold=VALUE"},
        {{3, "algo mixup on alpha=-1"}, "refused: alpha: "},
        {{3, "algo mixup on beta=1"}, "refused: "},
        {{3, "algo mixup on alpha"}, "refused: 'alpha' is no option=value"},
        {{3, "algo ema on smoothing=0.9"},
         "refused: ema takes half_life or smoothing, not both"},
        {{3, "algo progressive_resizing on resize_targets=true"},
         "refused: progressive_resizing: resize_targets needs targets [N,H,W]"},
        {{3, "algo colout on batch=false p_row=0.999"},
         "refused: colout: p_row 0.999 leaves none of "},
        {{3, "algo mixup off"}, "refused: the run has no algorithm mixup"},
        {{3, "algo label_smoothing on smoothing=0.2"},
         "refused: the run has label_smoothing: its options are changed with etude "
         "set"},
    };
    enum { N = sizeof wrong / sizeof *wrong };
    struct ask list[N];
    struct result plain, r;
    for (int i = 0; i < N; i++)
        list[i] = wrong[i].ask;
    (void)desk_train(cx, &(struct how){.text = BASE}, &plain);
    struct desk d =
        desk_train(cx, &(struct how){.text = BASE, .ask = list, .n = N}, &r);
    is_int(d.n_refused, N, "all are refused");
    for (int i = 0; i < N; i++)
        if (!ok(strncmp(d.answer[i], wrong[i].why, strlen(wrong[i].why)) == 0, "%s",
                wrong[i].ask.text))
            diag("got '%s'", d.answer[i]);
    ok(same_params(&r, &plain) && same_losses(&r, &plain) == BATCHES,
       "and the run is what it would have been, bit for bit");
    free(plain.params);
    free(r.params);
}

/* Of a run with microbatches, whose running statistics have a copy from before the last
 * batch. */
static void
test_refusal_within_batch(struct et_ctx *cx)
{
    static const struct ask list[] = {
        {3, "algo progressive_resizing on resize_targets=true"}};
    struct result plain, r;
    const struct how how = {.text = PLAIN "grad_accum: 2\n"};
    struct how asked = how;
    asked.ask = list;
    asked.n = 1;
    (void)desk_train(cx, &how, &plain);
    struct desk d = desk_train(cx, &asked, &r);
    ok(d.n_refused == 1 && same_params(&r, &plain),
       "a batch that it refuses leaves running statistics as they were");
    free(plain.params);
    free(r.params);
}

/* What only the first batch with it would find. */
static void
test_model(struct et_ctx *cx)
{
    static const struct ask list[] = {{3, "algo mixup on"},
                                      {3, "algo label_smoothing on"}};
    struct result plain, r;
    (void)desk_train(cx, &(struct how){.text = GPT("12ba")}, &plain);
    struct desk d =
        desk_train(cx, &(struct how){.text = GPT("12ba"), .ask = list, .n = 2}, &r);
    is_str(d.answer[0], "refused: mixup needs inputs of real numbers, not i32",
           "a model of text refuses mixup in its first batch's words");
    is_str(d.answer[1],
           "refused: label_smoothing: the loss of a language model takes indices only",
           "and label smoothing");
    ok(same_params(&r, &plain), "and goes on as it was");
    free(plain.params);
    free(r.params);
}

/* ---- memory ---- */

static void
test_memory(struct et_ctx *cx)
{
    static const struct ask list[] = {{3, "algo ema on"}};
    static const char text[] = PLAIN "grad_accum: 1\n";
    struct result plain, with, r;
    (void)desk_train(cx, &(struct how){.text = text}, &plain);
    (void)desk_train(cx, &(struct how){.text = text, .ask = list, .n = 1}, &with);
    ok(with.peak > plain.peak, "an average takes memory");
    size_t limit = plain.peak + (with.peak - plain.peak) / 2;
    struct desk d = desk_train(
        cx, &(struct how){.text = text, .ask = list, .n = 1, .memory_limit = limit},
        &r);
    if (!ok(d.n_refused == 1 && r.batches == BATCHES,
            "where there is too little it is refused, and the run goes on"))
        diag("%s", d.answer[0]);
    ok(same_params(&r, &plain), "without it");
    free(plain.params);
    free(with.params);
    free(r.params);
}

/* ---- the run's own weights ---- */

#define AVERAGED WITH("  ema: {half_life: 2ba}\n")

/* A checkpoint leaves the average in place of the weights until the next batch begins:
 * a run that is paused there must not go on with it. */
static void
test_pause(struct et_ctx *cx)
{
    static const struct ask plain[] = {{4, "algo ema off"}};
    static const struct ask paused[] = {
        {4, "pause"}, {6, "algo ema off"}, {6, "continue"}};
    static const struct ask joins[] = {
        {4, "pause"}, {6, "algo mixup on"}, {6, "continue"}};
    static const struct ask joined[] = {{4, "algo mixup on"}};
    struct result a, b;
    (void)desk_train(cx, &(struct how){.text = AVERAGED, .ask = plain, .n = 1}, &a);
    (void)desk_train(
        cx,
        &(struct how){
            .text = AVERAGED, .ask = paused, .n = 3, .every = 4, .saved = true},
        &b);
    ok(same_params(&a, &b), "an average that is switched off in a pause is put away");
    free(a.params);
    free(b.params);
    (void)desk_train(cx, &(struct how){.text = AVERAGED, .ask = joined, .n = 1}, &a);
    struct desk d = desk_train(
        cx,
        &(struct how){
            .text = AVERAGED, .ask = joins, .n = 3, .every = 4, .saved = true},
        &b);
    is_str(d.answer[1], "joined", "one joins in a pause");
    ok(same_losses(&a, &b) == BATCHES, "and finds the run's own weights");
    free(a.params);
    free(b.params);
}

static void
test_off(struct et_ctx *cx)
{
    static const struct ask list[] = {{4, "algo ema off"}, {11, "algo ema on"}};
    struct result always, r;
    (void)desk_train(cx, &(struct how){.text = AVERAGED, .saved = true}, &always);
    (void)desk_train(
        cx, &(struct how){.text = AVERAGED, .ask = list, .n = 2, .saved = true}, &r);
    ok(!same_params(&r, &always), "an average that is off stands still");
    ok(same_losses(&r, &always) == BATCHES, "which changes no batch");
    free(always.params);
    free(r.params);
}

/* ---- what shortens sequences, and what changes layers ---- */

#define SHORT                                                                          \
    GPT("12ba")                                                                        \
    "algorithms:\n  seq_length_warmup: {duration: 1.0, min_seq_length: 4,\n"           \
    "    max_seq_length: 16, step_size: 4}\n"

static void
test_lengths(struct et_ctx *cx)
{
    static const struct ask never[] = {{0, "algo seq_length_warmup off"}},
                            pause[] = {{4, "algo seq_length_warmup off"},
                                       {7, "algo seq_length_warmup on"}},
                            joins[] = {{0, "algo seq_length_warmup on duration=1.0 "
                                           "min_seq_length=4 max_seq_length=16 "
                                           "step_size=4"}};
    struct result plain, always, off, paused, joined;
    (void)desk_train(cx, &(struct how){.text = GPT("12ba")}, &plain);
    (void)desk_train(cx, &(struct how){.text = SHORT}, &always);
    struct desk d =
        desk_train(cx, &(struct how){.text = SHORT, .ask = never, .n = 1}, &off);
    ok(d.n_refused == 0 && same_params(&off, &plain),
       "seq_length_warmup that is switched off leaves whole sequences");
    d = desk_train(cx, &(struct how){.text = SHORT, .ask = pause, .n = 2}, &paused);
    ok(d.n_refused == 0 && same_losses(&paused, &always) == 4 &&
           !same_params(&paused, &always) && paused.batches == BATCHES,
       "for some batches alone, and goes on with the length that it then has");
    d = desk_train(cx, &(struct how){.text = GPT("12ba"), .ask = joins, .n = 1},
                   &joined);
    ok(d.n_refused == 0 && same_params(&joined, &always), "it may join: %s",
       d.answer[0]);
    struct result *all[] = {&plain, &always, &off, &paused, &joined};
    for (int i = 0; i < 5; i++)
        free(all[i]->params);
}

#define BLOCKS                                                                         \
    "max_duration: 12ba\nseed: 17\nmodel:\n  name: layers\n  layers:\n"                \
    "    - bottleneck: {channels: 2}\n    - adaptive_avg_pool2d\n    - flatten\n"      \
    "    - dropout: {p: 0.2}\n    - linear: {out: 10}\n" IMAGE_DATA SGD

/* Their layers are there from the beginning or never; off, they are as if not. */
static void
test_layers(struct et_ctx *cx)
{
    static const struct {
        const char *name, *options;
    } rows[] = {
        {"stochastic_depth", "target_layer_name: ResNetBottleneck, drop_rate: 0.5"},
        {"gyro_dropout", "sigma: 4, tau: 2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[1024], off[64], on[64];
        snprintf(text, sizeof text, "%salgorithms:\n  %s: {%s}\n", BLOCKS, rows[i].name,
                 rows[i].options);
        snprintf(off, sizeof off, "algo %s off", rows[i].name);
        snprintf(on, sizeof on, "algo %s on", rows[i].name);
        const struct ask list[] = {{3, off}, {8, on}}, joins[] = {{3, on}};
        struct result always, r;
        (void)desk_train(cx, &(struct how){.text = text}, &always);
        struct desk d =
            desk_train(cx, &(struct how){.text = text, .ask = list, .n = 2}, &r);
        int same = same_losses(&r, &always);
        ok(d.n_refused == 0 && same >= 3 && same < BATCHES && r.batches == BATCHES &&
               isfinite(r.loss[BATCHES - 1]) && !same_params(&r, &always),
           "%s is switched off and on again (%d losses are the same)", rows[i].name,
           same);
        free(always.params);
        free(r.params);
        (void)desk_train(cx, &(struct how){.text = BLOCKS}, &always);
        d = desk_train(cx, &(struct how){.text = BLOCKS, .ask = joins, .n = 1}, &r);
        ok(d.n_refused == 1 && same_params(&r, &always),
           "and joins with options alone that fit: %s", d.answer[0]);
        free(always.params);
        free(r.params);
    }
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    if (have_device(cx, "cpu")) {
        test_same(cx);
        test_set(cx);
        test_resume(cx);
        test_lost_log(cx);
        test_back(cx);
        test_refusals(cx);
        test_refusal_within_batch(cx);
        test_model(cx);
        test_memory(cx);
        test_pause(cx);
        test_off(cx);
        test_lengths(cx);
        test_layers(cx);
    }
    desk_clear();
    et_ctx_free(&cx);
    return done();
}
