/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks: what a run does by time follows the clock that only grows. The wall clock may
 * be set a day forward or back at any moment: only the times that people read show it
 * (RELIABILITY.md R27). */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/trainer/state.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/recipe_run.h"

#include "etude/run.h"

enum { SECONDS = 45, DAY = 86400 };

/* A second passes after each batch; who asks twice within one is told the same. */
static atomic_int seconds;

static double
counted(void)
{
    return 1000 + atomic_load(&seconds);
}

/* ---- wall clocks ---- */

static atomic_int asked;

static double
steady(void)
{
    return 1.8e9 + atomic_load(&seconds);
}

static double
forward(void)
{
    return steady() + (atomic_load(&seconds) >= 5 ? DAY : 0);
}

static double
back(void)
{
    return steady() - (atomic_load(&seconds) >= 5 ? DAY : 0);
}

/* Another day each time that somebody asks. */
static double
wild(void)
{
    return steady() + (atomic_fetch_add(&asked, 1) % 3 - 1) * (double)DAY;
}

/* ---- one run ---- */

/* What a run did, a line for each record, without the times of day. */
struct tape {
    struct et_sink sink; /* first */
    char *text;
    size_t bytes;
    FILE *out;
    int monitored;
    int64_t saved; /* batch of the first checkpoint; the others wait for a thread */
    double first, last; /* times of day of its records */
};

/* By time and nothing else; what this machine is busy with is none of it. */
static bool
is_timed(const char *name)
{
    return strncmp(name, "time/", 5) == 0 || strncmp(name, "throughput/", 11) == 0 ||
           strncmp(name, "wall_clock/", 11) == 0;
}

static void
record(struct et_sink *sink, const struct et_record *r)
{
    struct tape *t = (struct tape *)sink;
    t->first = t->first == 0 ? r->t : t->first;
    t->last = r->t;
    if (r->kind == ET_RECORD_CHECKPOINT) {
        t->saved = t->saved ? t->saved : r->ba;
        return;
    }
    fprintf(t->out, "%s %lld", et_record_name(r->kind), (long long)r->ba);
    for (int i = 0; i < r->n; i++) {
        t->monitored += strcmp(r->entry[i].name, "cpu_percentage") == 0;
        if (is_timed(r->entry[i].name))
            fprintf(t->out, " %s=%.17g", r->entry[i].name, r->entry[i].value);
    }
    fputc('\n', t->out);
    if (r->kind == ET_RECORD_BATCH)
        atomic_fetch_add(&seconds, 1);
}

static const char recipe[] =
    "max_duration: 45sec\n"
    "seed: 3\n"
    "model: {name: mlp, hidden: 8, layers: 1}\n"
    "train_data: {name: synthetic_images, batch_size: 4, num_samples: 32, workers: 0}\n"
    "optimizer: {name: sgd, lr: 0.1}\n"
    "callbacks:\n"
    "  speed_monitor: {window_size: 5}\n"
    "  runtime_estimator:\n"
    "  system_metrics_monitor: {interval: 7s}\n";

/* What it printed as it went, without the times of day. */
static int
count_lines(const char *text)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, " train ep=")) != NULL; p++)
        n++;
    return n;
}

/* What a run with that wall clock did, and how many lines it printed every 10 s. */
static void
train(double (*wall)(void), struct tape *t, int *lines)
{
    struct eti_seams seams = eti_system;
    struct et_ctx *cx = need_ctx();
    struct recipe_run r;
    char *shown = NULL;
    size_t n;
    FILE *out = open_memstream(&shown, &n);
    const struct et_checkpoint_config save = {
        .directory = "checkpoints",
        .interval = ET_TIME_UNSET,
        .keep = -1,
        .label = "ba{batch}",
    };
    const struct recipe_choice choice = {.device = "ref", .checkpoint = &save};
    const struct et_progress progress = {
        ET_PROGRESS_PLAIN, out, {10, ET_TIME_SECOND}, 0};
    atomic_store(&seconds, 0);
    atomic_store(&asked, 0);
    seams.monotonic = counted;
    seams.wall = wall;
    eti_ctx_set_seams(cx, &seams);
    *t = (struct tape){.sink.write = record};
    t->out = open_memstream(&t->text, &t->bytes);
    recipe_prepare(&r, cx, recipe, &choice);
    need(cx, et_progress_new(cx, &progress,
                             &r.parts.callback[r.parts.config.n_callbacks++]));
    r.parts.config.sink = &t->sink;
    recipe_start(&r);
    recipe_fit(&r);
    recipe_close(&r);
    et_ctx_free(&cx);
    fclose(t->out);
    fclose(out);
    *lines = count_lines(shown);
    free(shown);
}

/* ---- evaluations ---- */

static int waits; /* seconds that a batch of an evaluation takes */

static et_status
wait(struct et_callback *self, enum et_event event, const struct et_state *s,
     struct et_log *log)
{
    (void)self, (void)event, (void)s, (void)log;
    atomic_fetch_add(&seconds, waits);
    return ET_OK;
}

static const struct et_callback_class waiting_class = {
    .info = {.name = "waiting"}, .events = ET_ON(EVAL_BATCH_START), .run = wait};

static void
tick(struct et_sink *sink, const struct et_record *r)
{
    (void)sink;
    atomic_fetch_add(&seconds, r->kind == ET_RECORD_BATCH);
}

/* What a run of seven batches, evaluated behind every second one, says that it took. */
static struct et_timestamp
train_and_evaluate(int each, double *evaluated)
{
    static const char text[] =
        "max_duration: 7ba\n"
        "seed: 3\n"
        "model: {name: mlp, hidden: 8, layers: 1}\n"
        "train_data: {name: synthetic_images, batch_size: 4, num_samples: 32}\n"
        "eval_data: {name: synthetic_images, batch_size: 4, num_samples: 12}\n"
        "eval_interval: 2ba\n"
        "optimizer: {name: sgd, lr: 0.1}\n";
    struct eti_seams seams = eti_system;
    struct et_ctx *cx = need_ctx();
    struct et_callback waiting = {.type = &waiting_class, .cx = cx};
    struct et_callback *callbacks[] = {&waiting};
    struct et_sink sink = {.write = tick};
    struct recipe_run r;
    atomic_store(&seconds, 0);
    waits = each;
    seams.monotonic = counted;
    eti_ctx_set_seams(cx, &seams);
    recipe_prepare(&r, cx, text, &(struct recipe_choice){.device = "ref"});
    const struct et_trainer_config own = r.parts.config;
    r.parts.config.callbacks = callbacks;
    r.parts.config.n_callbacks = 1;
    r.parts.config.sink = &sink;
    recipe_start(&r);
    recipe_fit(&r);
    struct et_timestamp out = r.state->timestamp;
    *evaluated = r.state->eval_timestamp.total_wct;
    r.parts.config.callbacks = own.callbacks;
    r.parts.config.n_callbacks = own.n_callbacks;
    recipe_close(&r);
    et_ctx_free(&cx);
    return out;
}

static void
test_evaluations(void)
{
    double none, some;
    struct et_timestamp quick = train_and_evaluate(0, &none);
    struct et_timestamp slow = train_and_evaluate(100, &some);
    ok(none == 0 && some == 300, "an evaluation of three batches took 0 s, and 300 s");
    ok(quick.batch == 7 && quick.total_wct == 6 && quick.batch_wct == 1,
       "seven batches took 6 s between their ends");
    ok(slow.total_wct == quick.total_wct && slow.epoch_wct == quick.epoch_wct &&
           slow.batch_wct == quick.batch_wct,
       "and as long with slow evaluations among them: %g s", slow.total_wct);
}

int
main(void)
{
    static const struct {
        double (*wall)(void);
        const char *name;
        double gains; /* seconds between its first and its last record; NAN: whatever */
    } rows[] = {
        {forward, "set a day forward", SECONDS + DAY},
        {back, "set a day back", SECONDS - DAY},
        {wild, "set back and forth at every look", NAN},
    };
    struct tape as_ever;
    int lines;
    if (chdir(scratch_folder()) != 0)
        bail("cannot enter %s", scratch_folder());
    train(steady, &as_ever, &lines);
    ok(strstr(as_ever.text, "batch 46 ") && !strstr(as_ever.text, "batch 47 "),
       "a run of 45 s ends when batches of a second, after the first, have taken that");
    is_int(lines, 5, "a line every 10 s, from the first batch on");
    is_int(as_ever.monitored, 7, "the machine is looked at every 7 s");
    is_int(as_ever.saved, 20, "the first checkpoint comes after 20 s");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tape t;
        int n;
        train(rows[i].wall, &t, &n);
        ok(strcmp(t.text, as_ever.text) == 0,
           "the same when the wall clock is %s, every duration and estimate too",
           rows[i].name);
        is_int(n, lines, "and as many lines are printed");
        is_int(t.saved, as_ever.saved, "and the first checkpoint is as early");
        if (!isnan(rows[i].gains))
            is_near(t.last - t.first, rows[i].gains, 1e-3,
                    "only the times of its records jump");
        free(t.text);
    }
    free(as_ever.text);
    test_evaluations();
    return done();
}
