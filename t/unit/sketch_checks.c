/* SPDX-License-Identifier: Apache-2.0 */
/* What Compose warns of and does not warn of in a recipe, and in what it found out
 * about data, disk and earlier runs: each rule from both sides. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/compose/checks.h"
#include "core/compose/command.h"
#include "core/compose/sketch.h"
#include "etude/ctx.h"
#include "t/tap.h"

static struct et_ctx *cx;

#define LEAST                                                                          \
    "max_duration: 2ep\nmodel: lenet\n"                                                \
    "train_data: {name: synthetic_images, batch_size: 8}\n"
#define WHOLE LEAST "optimizer: {name: sgd, lr: 0.1}\nseed: 1\ncheckpoint: false\n"

static struct eti_sketch *
sketch_of(const char *text)
{
    struct eti_sketch *d;
    if (eti_sketch_new(cx, NULL, &d) != ET_OK ||
        eti_sketch_begin(d, text, strlen(text), "r.yaml") != ET_OK)
        bail("no sketch");
    return d;
}

/* The first of N checks whose text contains PART; NULL: none does. */
static const struct eti_check *
find(const struct eti_check *c, int n, const char *part)
{
    for (int i = 0; i < n; i++)
        if (strstr(c[i].text, part))
            return &c[i];
    return NULL;
}

static void
test_rules(void)
{
    static const struct {
        const char *what, *lines, *part;
        bool is_said;
        const char *who; /* the method that its fix turns off; "": none */
        int line;
    } row[] = {
        {"a method for text beside pictures",
         "algorithms:\n  ema:\n  seq_length_warmup:\n",
         "seq_length_warmup is for text, the model is of vision", true,
         "seq_length_warmup", 9},
        {"no method that is turned off", "algorithms:\n  seq_length_warmup: false\n",
         "seq_length_warmup", false, "", 0},
        {"two methods that mix losses",
         "algorithms:\n  mixup: {interpolate_loss: true}\n  ema:\n"
         "  cutmix: {interpolate_loss: true}\n",
         "mixup and cutmix", true, "mixup", 10},
        {"no two methods of which the second is turned off",
         "algorithms:\n  mixup: {interpolate_loss: true}\n  cutmix: false\n",
         "mixup and cutmix", false, "", 0},
        {"no two methods of which the first is turned off",
         "algorithms:\n  mixup: false\n  cutmix: {interpolate_loss: true}\n",
         "mixup and cutmix", false, "", 0},
        {"evaluation data of another name", "eval_data: fashion_mnist\n",
         "eval_data is fashion_mnist, train_data is synthetic_images", true, "", 7},
        {"evaluation data of another kind", "eval_data: bible_kjv\n",
         "eval_data bible_kjv is for text, train_data synthetic_images for vision",
         true, "", 7},
        {"no evaluation data of the same name", "eval_data: synthetic_images\n",
         "eval_data", false, "", 0},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char text[512];
        struct eti_check c[ETI_CHECKS_MAX];
        snprintf(text, sizeof text, WHOLE "%s", row[i].lines);
        struct eti_sketch *d = sketch_of(text);
        int n = eti_checks(cx, d->recipe, c, ETI_CHECKS_MAX);
        const struct eti_check *said = find(c, n, row[i].part);
        bool fits = row[i].is_said
                        ? said && said->is_warning && said->line == row[i].line &&
                              strcmp(said->who, row[i].who) == 0 &&
                              (said->fix == ETI_FIX_TURN_OFF) == (*row[i].who != '\0')
                        : !said;
        if (!ok(fits, "Compose warns of %s", row[i].what))
            for (int k = 0; k < n; k++)
                diag("%s: %s @%d", c[k].text, c[k].who, c[k].line);
        eti_sketch_free(&d);
    }
}

/* A list with room for fewer checks has the first of them. */
static void
test_room(void)
{
    struct eti_check all[ETI_CHECKS_MAX], some[ETI_CHECKS_MAX];
    struct eti_sketch *d = sketch_of(LEAST);
    int n = eti_checks(cx, d->recipe, all, ETI_CHECKS_MAX);
    ok(n > 3, "the least recipe has more than three checks");
    for (int room = 0; room <= n; room++) {
        int wrong = eti_checks(cx, d->recipe, some, room) != room;
        for (int i = 0; i < room; i++)
            wrong += strcmp(all[i].text, some[i].text) != 0;
        is_int(wrong, 0, "a list with room for %d has the first checks", room);
    }
    eti_sketch_free(&d);
}

static void
test_found(void)
{
    static const struct {
        const char *what, *lines;
        struct eti_found found;
        const char *says; /* text of the first check; "": no check */
        bool is_warning, is_fatal;
    } row[] = {
        {"a problem with which a run would begin",
         "",
         {.problem = "no estimate", .checkpoint_bytes = NAN},
         "no estimate",
         true,
         false},
        {"a problem with which a run would not begin",
         "",
         {.problem = "no data", .is_refused = true, .checkpoint_bytes = NAN},
         "no data",
         true,
         true},
        {"numbers of classes that differ",
         "",
         {.data = {{"a", false, 5, 10}, {"b", false, 6, 12}},
          .n_data = 2,
          .checkpoint_bytes = NAN},
         "a has 10 classes, b has 12",
         true,
         false},
        {"no difference where the evaluation's number of classes is unknown",
         "",
         {.data = {{"a", false, 5, 10}, {"b", false, 6, 0}},
          .n_data = 2,
          .checkpoint_bytes = NAN},
         "a: 5 images, 10 classes",
         false,
         false},
        {"no difference where the training's number of classes is unknown",
         "",
         {.data = {{"a", false, 5, 0}, {"b", false, 6, 12}},
          .n_data = 2,
          .checkpoint_bytes = NAN},
         "a: 5 images, 0 classes",
         false,
         false},
        {"one checkpoint, where only the end of the run saves one",
         "",
         {.checkpoint_bytes = 1e6, .free_bytes = 2e6},
         "disk: 1 checkpoint needs 1.0 MB, 2.0 MB free",
         false,
         false},
        {"no number of pieces where the recipe gives it",
         "grad_accum: 3\n",
         {.checkpoint_bytes = NAN, .microbatches = 2, .run = "yak"},
         "",
         false,
         false},
        {"no number of pieces where the recipe gives their size",
         "microbatch_size: 4\n",
         {.checkpoint_bytes = NAN, .microbatches = 2, .run = "yak"},
         "",
         false,
         false},
        {"the number of pieces that an earlier run found",
         "",
         {.checkpoint_bytes = NAN, .microbatches = 6, .run = "yak"},
         "grad_accum is auto, and yak came to 6: save that?",
         true,
         false},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char text[512];
        struct eti_check c[ETI_CHECKS_MAX] = {{0}};
        snprintf(text, sizeof text, WHOLE "%s", row[i].lines);
        struct eti_sketch *d = sketch_of(text);
        int n = eti_checks_found(cx, d->recipe, &row[i].found, c, ETI_CHECKS_MAX);
        bool fits = *row[i].says ? n > 0 && strcmp(c[0].text, row[i].says) == 0 &&
                                       c[0].is_warning == row[i].is_warning &&
                                       c[0].is_fatal == row[i].is_fatal
                                 : n == 0;
        if (!ok(fits, "Compose tells of %s", row[i].what))
            diag("%d: %s", n, c[0].text);
        eti_sketch_free(&d);
    }
}

/* ---- the command line of changes ---- */

/* The sketch of the file c.yaml, which has OLD, with the text NOW. */
static struct eti_sketch *
changed(const char *old, const char *now)
{
    struct eti_sketch *d;
    void *copy;
    FILE *f = fopen("c.yaml", "w");
    if (!f || fputs(old, f) == EOF || fclose(f) != 0 ||
        eti_sketch_new(cx, NULL, &d) != ET_OK ||
        eti_sketch_open(d, "c.yaml") != ET_OK ||
        et_alloc(cx, strlen(now) + 1, &copy) != ET_OK)
        bail("no sketch");
    unlink("c.yaml");
    et_free(cx, d->text);
    d->text = memcpy(copy, now, strlen(now) + 1);
    d->n = strlen(now);
    if (eti_sketch_put_line(d, 1, "max_duration: 2ep") != ET_OK)
        bail("%s", et_error_get(cx)->message);
    return d;
}

static void
test_commands(void)
{
    static const struct {
        const char *old, *now, *want, *what;
    } row[] = {
        {"algorithms: {ema: false, mixup: }\n", "algorithms: {mixup: }\n", "",
         "one that was off and has gone changes nothing"},
        {"algorithms: {mixup: , sam: , ema: false}\n", "algorithms: {sam: , mixup: }\n",
         " --unset algorithms.mixup --unset algorithms.sam --alg sam --alg mixup",
         "nor does it where others have moved"},
        {"algorithms: {mixup: , ema: , sam: }\n", "algorithms: {sam: , mixup: }\n",
         " --unset algorithms.mixup --no-alg ema --unset algorithms.sam --alg sam "
         "--alg "
         "mixup",
         "one that was on is turned off"},
        {"algorithms: \n", "algorithms: {ema: }\n", " --alg ema",
         "a list of nothing gets one"},
        {"algorithms: {ema: }\n", "algorithms: \n", " --no-alg ema", "or loses it"},
        {"algorithms: {ema: {half_life: 3ba, smoothing: null}}\n",
         "algorithms: {ema: {half_life: 4ba}}\n",
         " algorithms.ema.half_life=4ba --unset algorithms.ema.smoothing",
         "an option that has gone is unset"},
        {"", "tags: [\"a$b\", \"c{d}\", \"e;f\", \"g*\", \"h~\"]\n",
         " 'tags=[a$b, \"c{d}\", \"e;f\", g*, \"h~\"]'",
         "what a shell would read is quoted"},
        {"", "tags: [a]\n", " 'tags=[a]'", "brackets are"},
        {"", "run_name: a-b_c.d\n", " run_name=a-b_c.d", "what it would not is not"},
        {"checkpoint: {keep: 2}\n", "checkpoint: false\n", " checkpoint=false",
         "what was a mapping may be a word"},
        {"checkpoint: false\n", "checkpoint: {keep: 2}\n", " 'checkpoint={keep: 2}'",
         "and the other way round"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char old[512], now[512], want[512];
        char *text = NULL;
        struct eti_command c;
        snprintf(old, sizeof old, LEAST "%s", row[i].old);
        snprintf(now, sizeof now, LEAST "%s", row[i].now);
        snprintf(want, sizeof want, "etude train c.yaml%s", row[i].want);
        struct eti_sketch *d = changed(old, now);
        et_status status = eti_command_new(d, &c);
        if (status == ET_OK)
            status = eti_command_text(&c, "train", &text);
        is_str(status == ET_OK ? text : et_error_get(cx)->message, want, "%s",
               row[i].what);
        et_error_clear(cx);
        et_free(cx, text);
        eti_command_release(&c);
        eti_sketch_free(&d);
    }
}

int
main(void)
{
    struct et_alloc_stats stats;
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_rules();
    test_room();
    test_found();
    test_commands();
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "no memory is left allocated");
    et_ctx_free(&cx);
    return done();
}
