/* SPDX-License-Identifier: Apache-2.0 */
/* Methods that change the model or the step are switched on and off while a run goes
 * on: what the model has with and without them keeps values, moments and averages; a
 * run that goes on from a checkpoint is the same run; what is refused changes
 * nothing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/desk.h"
#include "t/train/recipes.h"

#define AVERAGED    "algorithms:\n  ema: {half_life: 3ba}\n"
#define PICTURES    RESNET("12ba") AVERAGED
#define WORDS       GPT("12ba") AVERAGED
#define MASKS       BERT("12ba") AVERAGED
#define MANY_KINDS  LAYERS("12ba") AVERAGED
#define LOW(recipe) recipe "precision: amp_bf16\n"
#define BLOCKS                                                                         \
    "max_duration: 12ba\nseed: 17\nmodel:\n  name: layers\n  layers:\n"                \
    "    - bottleneck: {channels: 2}\n    - adaptive_avg_pool2d\n    - flatten\n"      \
    "    - dropout: {p: 0.2}\n    - linear: {out: 10}\n" IMAGE_DATA SGD AVERAGED

/* BEGINS_ANEW: parameters that the model has without the method alone are new when it
 * is off again. IDLE: it changes no number. */
static const struct {
    const char *name, *text, *options;
    bool begins_anew, idle;
} methods[] = {
    {"alibi", WORDS, "max_sequence_length=16 train_sequence_length_scaling=0.5", true,
     false},
    {"alibi", MASKS, "max_sequence_length=16", true, false},
    {"blurpool", PICTURES, "min_channels=1", false, false},
    {"blurpool", PICTURES, "min_channels=1 blur_first=false", false, false},
    {"blurpool", MANY_KINDS, "replace_convs=false", false, false},
    {"channels_last", PICTURES, "", false, true},
    {"factorize", PICTURES, "min_channels=4 min_features=4 latent_features=2", true,
     false},
    {"gated_linear_units", MASKS, "", true, false},
    {"ghost_batchnorm", PICTURES, "ghost_batch_size=4", false, false},
    {"gyro_dropout", BLOCKS, "sigma=4 tau=2", false, false},
    {"low_precision_groupnorm", LOW(MANY_KINDS), "", false, false},
    {"low_precision_layernorm", LOW(WORDS), "apply_at=after_load", false, false},
    {"low_precision_layernorm", LOW(MANY_KINDS), "", false, false},
    {"sam", PICTURES, "interval=2", false, false},
    {"squeeze_excite", PICTURES, "latent_channels=2 min_channels=1", false, false},
    {"stochastic_depth", BLOCKS, "target_layer_name=ResNetBottleneck drop_rate=0.5",
     false, false},
    {"stochastic_depth", BLOCKS,
     "target_layer_name=ResNetBottleneck drop_rate=0.5 stochastic_method=sample", false,
     false},
    {"weight_standardization", PICTURES, "", false, false},
};
enum { METHODS = sizeof methods / sizeof *methods };

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

/* Stopped after STOP batches of WHOLE, which was HOW, and resumed: the same bits? */
static bool
resumes(struct et_ctx *cx, struct how how, const struct result *whole, int64_t stop)
{
    struct result first, rest;
    struct et_request replay[ROOM];
    how.stop = stop;
    (void)desk_train(cx, &how, &first);
    how.stop = 0;
    how.n = 0;
    how.resumed = true;
    how.replay = replay;
    how.n_replay = replay_of(whole, replay);
    (void)desk_train(cx, &how, &rest);
    bool same =
        same_params(&rest, whole) && rest.loss[BATCHES - 1] == whole->loss[BATCHES - 1];
    if (!same)
        diag("stopped after %d: last losses %.9g and %.9g", (int)stop,
             rest.loss[BATCHES - 1], whole->loss[BATCHES - 1]);
    free(first.params);
    free(rest.params);
    return same;
}

/* ---- each ---- */

static void
test_each(struct et_ctx *cx, int i)
{
    const char *name = methods[i].name;
    char on[160], off[64];
    struct result plain, back, r;
    snprintf(on, sizeof on, "algo %s on %s", name, methods[i].options);
    snprintf(off, sizeof off, "algo %s off", name);
    const struct ask at_once[] = {{5, on}, {5, off}}, later[] = {{4, on}, {8, off}};
    struct how how = {.text = methods[i].text, .saved = true};
    (void)desk_train(cx, &how, &plain);
    how.ask = at_once;
    how.n = 2;
    struct desk d = desk_train(cx, &how, &back);
    ok(d.n_refused == 0 && back.batches == BATCHES && same_losses(&back, &plain) >= 5 &&
           (methods[i].begins_anew ? back.bytes == plain.bytes
                                   : same_params(&back, &plain)),
       "%s %s, switched on and off at once, %s", name, methods[i].options,
       methods[i].begins_anew ? "leaves as many numbers" : "changes no bit");
    if (d.n_refused)
        diag("%s; %s", d.answer[0], d.answer[1]);
    how.ask = later;
    d = desk_train(cx, &how, &r);
    int same = same_losses(&r, &plain);
    ok(d.n_refused == 0 && r.batches == BATCHES && isfinite(r.loss[BATCHES - 1]) &&
           (methods[i].idle ? same == BATCHES : same >= 4 && same < 8),
       "for four batches: the first %d are as without it", same);
    ok(resumes(cx, how, &r, 6) && resumes(cx, how, &r, 10),
       "a run that was stopped with it, or behind it, and resumed: same bits");
    free(plain.params);
    free(back.params);
    free(r.params);
}

/* ---- what the run had ---- */

/* Ghost batches of the whole batch are batches: it is the same run, bit for bit, if
 * moments and running statistics went along to other names. */
static void
test_moments(struct et_ctx *cx)
{
    static const struct ask asks[] = {
        {4, "algo ghost_batchnorm on ghost_batch_size=8"}};
    struct result plain, r;
    double most = 0;
    (void)desk_train(cx, &(struct how){.text = PICTURES, .saved = true}, &plain);
    (void)desk_train(
        cx, &(struct how){.text = PICTURES, .ask = asks, .n = 1, .saved = true}, &r);
    for (int i = 0; i < BATCHES; i++)
        most = fmax(most, fabs(r.loss[i] - plain.loss[i]) / plain.loss[i]);
    ok(most == 0 && same_losses(&r, &plain) == BATCHES,
       "weights, moments and statistics go along (losses differ by %.1e)", most);
    free(plain.params);
    free(r.params);
}

/* The product of two thin layers is the layer that comes back: the batch behind that
 * has the loss that it would have had. */
static void
test_product(struct et_ctx *cx)
{
    static const struct ask stays[] = {{2, "algo factorize on min_channels=4 "
                                           "min_features=4 latent_features=2"}};
    static const struct ask goes[] = {{2, "algo factorize on min_channels=4 "
                                          "min_features=4 latent_features=2"},
                                      {7, "algo factorize off"}};
    struct result with, r;
    (void)desk_train(
        cx, &(struct how){.text = PICTURES, .ask = stays, .n = 1, .saved = true},
        &with);
    (void)desk_train(
        cx, &(struct how){.text = PICTURES, .ask = goes, .n = 2, .saved = true}, &r);
    double off = fabs(r.loss[7] - with.loss[7]) / with.loss[7];
    /* A product in another order: measured 0 to 2e-7. */
    ok(same_losses(&r, &with) >= 7 && off < 1e-5 && !same_params(&r, &with),
       "factorize leaves the product of its layers (a loss differs by %.1e)", off);
    free(with.params);
    free(r.params);
}

/* ---- several ---- */

/* Methods put layers into one another; which into which depends on the order. */
static void
test_order(struct et_ctx *cx)
{
    static const struct ask asks[] = {
        {1, "algo squeeze_excite on latent_channels=2 min_channels=1"},
        {2, "algo blurpool off"},
        {2, "algo blurpool on"},
        {3, "algo blurpool off"},
        {3, "algo weight_standardization on"},
        {4, "algo blurpool on"},
        {5, "algo factorize on min_channels=4 min_features=4 latent_features=2"},
        {6, "algo squeeze_excite off"},
        {7, "algo ghost_batchnorm on ghost_batch_size=4"},
        {8, "algo factorize off"},
        {9, "algo blurpool off"},
        {10, "algo squeeze_excite on"},
    };
    enum { N = sizeof asks / sizeof *asks };
    static const char *const firsts[] = {"true", "false"};
    for (int k = 0; k < 2; k++) {
        char text[2048];
        struct result r;
        snprintf(text, sizeof text, "%s  blurpool: {min_channels: 1, blur_first: %s}\n",
                 PICTURES, firsts[k]);
        const struct how how = {.text = text, .ask = asks, .n = N, .saved = true};
        struct desk d = desk_train(cx, &how, &r);
        ok(d.n_refused == 0 && r.batches == BATCHES,
           "methods that change the same layers are switched in turns");
        for (int i = 0; i < d.n_done + d.n_refused && d.n_refused; i++)
            diag("%s: %s", asks[i].text, d.answer[i]);
        bool same = true;
        for (int stop = 2; stop <= 11; stop++)
            same &= resumes(cx, how, &r, stop);
        ok(same, "stopped behind any of them and resumed: same bits");
        free(r.params);
    }
}

/* A block without a layer on its way around. */
#define GATED                                                                          \
    "max_duration: 12ba\nseed: 17\nmodel:\n  name: layers\n  layers:\n"                \
    "    - conv2d: {out: 16, kernel: 3}\n    - bottleneck: {channels: 4}\n"            \
    "    - adaptive_avg_pool2d\n    - flatten\n    - linear: {out: 10}\n" IMAGE_DATA   \
        SGD AVERAGED

/* A gate leaves out what surgery has put into its part, too: layers that are there for
 * some steps of a closed gate, or for more, are what they were when they came. */
static void
test_gates(struct et_ctx *cx)
{
#define CLOSED                                                                         \
    {                                                                                  \
        2, "algo stochastic_depth on target_layer_name=ResNetBottleneck drop_rate=1 "  \
           "drop_distribution=uniform"                                                 \
    }
#define THIN    "algo factorize on min_channels=4 latent_channels=1"
#define EXCITED "algo squeeze_excite on latent_channels=2 min_channels=4"
    static const struct ask asks[][3] = {
        {CLOSED, {2, THIN}, {10, "algo factorize off"}},
        {CLOSED, {2, THIN}, {3, "algo factorize off"}},
        {CLOSED, {2, EXCITED}, {9, "algo ema off"}},
        {CLOSED, {9, EXCITED}, {9, "algo ema off"}},
    };
    struct result r[4];
    int refused = 0;
    for (int i = 0; i < 4; i++) {
        struct how how = {.text = GATED, .ask = asks[i], .n = 3, .saved = true};
        struct desk d = desk_train(cx, &how, &r[i]);
        refused += d.n_refused;
        if (d.n_refused)
            diag("%s; %s; %s", d.answer[0], d.answer[1], d.answer[2]);
    }
    ok(refused == 0 && same_params(&r[0], &r[1]),
       "thin layers of a part that is left out are not trained");
    ok(same_params(&r[2], &r[3]), "nor is what weighs its channels");
    for (int i = 0; i < 4; i++)
        free(r[i].params);
}

/* Positions come back as zeros: they had been taken from the sum. */
static void
test_positions(struct et_ctx *cx)
{
    static const struct ask asks[] = {{5, "algo alibi on max_sequence_length=16"},
                                      {5, "algo alibi off"}};
    struct result plain, r;
    struct how how = {.text = WORDS, .stop = 5, .saved = true};
    int zeros[2] = {0};
    (void)desk_train(cx, &how, &plain);
    how.ask = asks;
    how.n = 2;
    (void)desk_train(cx, &how, &r);
    for (size_t i = 0; i < plain.bytes / sizeof(float); i++)
        zeros[0] += ((const float *)plain.params)[i] == 0;
    for (size_t i = 0; i < r.bytes / sizeof(float); i++)
        zeros[1] += ((const float *)r.params)[i] == 0;
    is_int(zeros[1] - zeros[0], 16 * 32, "positions of alibi that is off are 0");
    free(plain.params);
    free(r.params);
}

/* ---- what is refused ---- */

static void
test_refused(struct et_ctx *cx)
{
    static const struct {
        const char *text, *on, *why;
    } rows[] = {
        {WORDS, "algo alibi on max_sequence_length=8",
         "refused: alibi: max_sequence_length 8 is less than the data's 16"},
        {PICTURES, "algo ghost_batchnorm on ghost_batch_size=16", "refused: "},
        {PICTURES, "algo squeeze_excite on latent_channels=0.01 min_channels=1",
         "refused: squeeze_excite: latent_channels 0.01 of a convolution's "},
        {PICTURES, "algo gated_linear_units on",
         "refused: gated_linear_units needs a BERT model"},
        {BLOCKS, "algo gyro_dropout on sigma=4 tau=3", "refused: gyro_dropout: tau 3 "},
        {PICTURES "  sam:\n", "algo sam on rho=1", "refused: the run has sam"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct ask asks[] = {{4, rows[i].on}};
        struct result plain, r;
        (void)desk_train(cx, &(struct how){.text = rows[i].text, .saved = true},
                         &plain);
        struct desk d = desk_train(
            cx, &(struct how){.text = rows[i].text, .ask = asks, .n = 1, .saved = true},
            &r);
        ok(d.n_refused == 1 &&
               strncmp(d.answer[0], rows[i].why, strlen(rows[i].why)) == 0 &&
               same_params(&r, &plain) && same_losses(&r, &plain) == BATCHES,
           "%s: refused, and no bit is another", rows[i].on);
        if (d.n_refused != 1 || strncmp(d.answer[0], rows[i].why, strlen(rows[i].why)))
            diag("%s", d.answer[0]);
        free(plain.params);
        free(r.params);
    }
}

/* %d: wide enough that its parameters take more memory than its steps. */
#define WIDE                                                                           \
    "max_duration: 12ba\nseed: 17\ngrad_accum: 1\nmodel:\n  name: layers\n  layers:\n" \
    "    - flatten\n    - linear: {out: %d}\n    - relu\n    - linear: {out: "         \
    "10}\n" IMAGE_DATA SGD AVERAGED

/* Whatever there is room for: it changes, or it is refused and changes nothing. */
static void
test_memory(struct et_ctx *cx)
{
    static const struct ask asks[] = {{4, "algo factorize on min_features=4 "
                                          "latent_features=2"}};
    char text[sizeof WIDE + 16];
    struct result plain = {0}, with = {0}, r;
    /* On a GPU a library's workspaces are larger than a small model's parameters. */
    for (int width = 512; with.peak <= plain.peak && width <= 32768; width *= 8) {
        free(plain.params);
        free(with.params);
        snprintf(text, sizeof text, WIDE, width);
        (void)desk_train(cx, &(struct how){.text = text}, &plain);
        (void)desk_train(cx, &(struct how){.text = text, .ask = asks, .n = 1}, &with);
    }
    ok(with.peak > plain.peak, "a change takes memory while it is tried");
    bool right = true;
    int refused = 0;
    for (int k = 0; k < 8; k++) {
        size_t limit = plain.peak + (with.peak - plain.peak) * (size_t)k / 8;
        struct desk d = desk_train(
            cx, &(struct how){.text = text, .ask = asks, .n = 1, .memory_limit = limit},
            &r);
        refused += d.n_refused;
        right &= r.batches == BATCHES && same_params(&r, d.n_refused ? &plain : &with);
        if (!right)
            diag("limit %zu of %zu to %zu: %s", limit, plain.peak, with.peak,
                 d.answer[0]);
        free(r.params);
    }
    ok(right && refused > 0, "where there is too little it is refused, of %d 8 times",
       refused);
    free(plain.params);
    free(with.params);
}

/* A batch that is no number, where the last checkpoint that was due is of a model
 * without the method, or with it. */
static void
test_back(struct et_ctx *cx)
{
    static const struct {
        const char *what;
        struct ask asks[2];
        int n;
    } rows[] = {
        {"on", {{4, "algo squeeze_excite on latent_channels=0.5 min_channels=4"}}, 1},
        {"on and off",
         {{2, "algo squeeze_excite on latent_channels=0.5 min_channels=4"},
          {4, "algo squeeze_excite off"}},
         2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct result r;
        struct how how = {.text = PICTURES,
                          .ask = rows[i].asks,
                          .n = rows[i].n,
                          .every = 3,
                          .saved = true,
                          .spoil = 5,
                          .goes_back = true};
        (void)desk_train(cx, &how, &r);
        const float *v = r.params;
        size_t finite = 0, n = r.bytes / sizeof *v;
        while (finite < n && isfinite(v[finite]))
            finite++;
        ok(r.outcome == ET_OUTCOME_FINISHED && finite == n &&
               strstr(r.warned, "went back to the parameters of batch 4"),
           "%s: a run goes back to the checkpoint that came with the switch",
           rows[i].what);
        free(r.params);
    }
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    if (have_device(cx, "cpu")) {
        for (int i = 0; i < METHODS; i++)
            test_each(cx, i);
        test_moments(cx);
        test_product(cx);
        test_order(cx);
        test_gates(cx);
        test_positions(cx);
        test_refused(cx);
        test_memory(cx);
        test_back(cx);
    }
    desk_clear();
    et_ctx_free(&cx);
    return done();
}
