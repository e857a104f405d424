/* SPDX-License-Identifier: Apache-2.0 */
/* ReduceLROnPlateau: judged as PyTorch judges, and what it does to rates. */
#include "t/algorithms/fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/checkpoint/archive.h"
#include "core/trainer/trainer_impl.h"
#include "t/unit/rig.h"

/* Rates are written with nine digits. */
#define WRITTEN 5.1e-9
enum { EPOCHS = 60 };
#define WATCHED "monitor", "Accuracy", "dataloader_label", "eval"

/* make_plateau.py's. */
static double
metric(int k)
{
    return k == 7 || k == 8 ? NAN : fabs(sin(1.7 * k)) / (1 + .05 * k);
}

/* A trainer that has nothing but a metric and one rate, which is 1. */
struct scene {
    struct et_trainer t;
    struct et_metric_value metric;
};

static void
scene_open(struct scene *sc, struct et_ctx *cx)
{
    memset(sc, 0, sizeof *sc);
    snprintf(sc->metric.name, sizeof sc->metric.name, "metrics/eval/Accuracy");
    struct et_state *s = &sc->t.state;
    s->cx = cx;
    s->dataloader_label = "eval";
    s->eval_metrics = &sc->metric;
    s->n_eval_metrics = 1;
    need(cx, et_log_new(cx, NULL, &s->log));
}

/* What A has the rate multiplied by, and its lower bound. */
static double
scale(struct scene *sc, struct et_algorithm *a, double *min_rate)
{
    struct et_state *s = &sc->t.state;
    eti_groups_begin(&sc->t);
    need(s->cx, a->type->apply(a, ET_EVENT_BATCH_START, s, s->log));
    *min_rate = sc->t.groups.min_rate;
    return sc->t.groups.scale;
}

static void
judge(struct scene *sc, struct et_algorithm *a, double value)
{
    struct et_state *s = &sc->t.state;
    sc->metric.value = value;
    if (a->type->match(a, ET_EVENT_EVAL_END, s))
        need(s->cx, a->type->apply(a, ET_EVENT_EVAL_END, s, s->log));
}

/* A line of plateau.txt. */
static void
check_line(struct et_ctx *cx, char *line)
{
    static const char *const names[] = {"comp",   "threshold_mode", "threshold",
                                        "factor", "patience",       "cooldown",
                                        "min_lr"};
    enum { N = sizeof names / sizeof *names };
    const char *options[5 + 2 * N] = {WATCHED};
    char *save, *word = strtok_r(line, " ", &save);
    int n = 4, same = 0, falls = 0;
    for (int i = 0; i < N; i++, word = strtok_r(NULL, " ", &save)) {
        options[n++] = names[i];
        options[n++] = i > 0 ? word : strcmp(word, "min") == 0 ? "less" : "greater";
    }
    struct et_algorithm *a = algorithm(cx, "reduce_lr_on_plateau", options);
    struct scene sc;
    scene_open(&sc, cx);
    double last = 1;
    for (int k = 0; k < EPOCHS; k++, word = strtok_r(NULL, " ", &save)) {
        double min_rate, want = strtod(word, NULL);
        double rate = scale(&sc, a, &min_rate);
        rate = fmax(rate, min_rate);
        same += fabs(rate - want) <= WRITTEN * want;
        falls += want < last;
        last = want;
        judge(&sc, a, metric(k));
    }
    is_int(same, EPOCHS, "%s, %s: rates fall when PyTorch's do, %d times", options[5],
           options[7], falls);
    et_log_free(&sc.t.state.log);
    et_algorithm_free(&a);
}

static void
test_golden(struct et_ctx *cx)
{
    static char line[2048];
    FILE *file = rig_golden("plateau.txt");
    int cases = 0;
    while (fgets(line, sizeof line, file))
        if (line[0] != '#') {
            check_line(cx, line);
            cases++;
        }
    fclose(file);
    is_int(cases, 4, "in four settings");
}

/* A relative threshold is a share of the best value's size, whatever its sign. */
static void
test_negative(struct et_ctx *cx)
{
    static const struct {
        const char *comp, *mode;
        double best, near, far;
    } row[] = {
        {"less", "rel", -10, -10.5, -11.5},   {"less", "rel", 10, 9.5, 8.5},
        {"greater", "rel", -10, -9.5, -8.5},  {"greater", "rel", 10, 10.5, 11.5},
        {"less", "abs", -10, -10.05, -10.15}, {"greater", "abs", -10, -9.95, -9.85},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        double got[2], min_rate;
        for (int far = 0; far < 2; far++) {
            struct et_algorithm *a = algorithm(
                cx, "reduce_lr_on_plateau",
                OPTIONS(WATCHED, "comp", row[i].comp, "threshold_mode", row[i].mode,
                        "threshold", "0.1", "factor", "0.5", "patience", "0"));
            struct scene sc;
            scene_open(&sc, cx);
            scale(&sc, a, &min_rate);
            judge(&sc, a, row[i].best);
            judge(&sc, a, far ? row[i].far : row[i].near);
            got[far] = scale(&sc, a, &min_rate);
            et_log_free(&sc.t.state.log);
            et_algorithm_free(&a);
        }
        ok(got[0] == 0.5 && got[1] == 1,
           "%s than %g, %s: %g is within the threshold, %g beyond it", row[i].comp,
           row[i].best, row[i].mode, row[i].near, row[i].far);
    }
}

/* A value that is better by the threshold and no more is no better. */
static void
test_edges(struct et_ctx *cx)
{
    static const double values[] = {NAN, 1, 1.25, 1.5, NAN, 1.5};
    static const double want[] = {.5, .5, .25, .25, .125, .0625};
    struct et_algorithm *a =
        algorithm(cx, "reduce_lr_on_plateau",
                  OPTIONS(WATCHED, "comp", "greater", "threshold_mode", "abs",
                          "threshold", "0.25", "factor", "0.5", "patience", "0"));
    struct scene sc;
    double min_rate;
    scene_open(&sc, cx);
    scale(&sc, a, &min_rate);
    for (int i = 0; i < 6; i++) {
        judge(&sc, a, values[i]);
        is_near(scale(&sc, a, &min_rate), want[i], 0, "behind value %d, which is %g", i,
                values[i]);
    }
    et_log_free(&sc.t.state.log);
    et_algorithm_free(&a);
}

/* *A saved, and another one in its place that goes on from there. */
static void
resume(struct et_ctx *cx, struct et_state *s, struct et_algorithm **a,
       const char *const *options)
{
    struct et_algorithm *next = algorithm(cx, "reduce_lr_on_plateau", options);
    struct et_archive saved = {0};
    eti_archive_begin(&saved, cx);
    need(cx, (*a)->type->archive(*a, s, &saved));
    need(cx, eti_archive_end(&saved));
    need(cx, eti_archive_sort(&saved));
    saved.mode = ET_ARCHIVE_LOAD;
    need(cx, next->type->archive(next, s, &saved));
    eti_archive_release(&saved);
    et_algorithm_free(a);
    *a = next;
}

/* A run that goes on behind any of its values has the rates that it would have had. */
static void
test_resumed(struct et_ctx *cx)
{
    enum { N = 12 };
    static const double values[N] = {.6, .5, .7, .6, .5, .4, .3, .5, .6, .5, .65, .65};
    const char *const *o = OPTIONS(WATCHED, "comp", "greater", "factor", "0.5",
                                   "patience", "2", "cooldown", "2", "min_lr", "0.01");
    double want[N], min_rate;
    for (int stop = -1; stop < N; stop++) {
        struct et_algorithm *a = algorithm(cx, "reduce_lr_on_plateau", o);
        struct scene sc;
        int same = 0;
        scene_open(&sc, cx);
        scale(&sc, a, &min_rate);
        for (int i = 0; i < N; i++) {
            judge(&sc, a, values[i]);
            if (i == stop)
                resume(cx, &sc.t.state, &a, o);
            double got = scale(&sc, a, &min_rate);
            want[i] = stop < 0 ? got : want[i];
            same += got == want[i];
        }
        is_int(same, N, "stopped behind value %d the rates are the same", stop);
        et_log_free(&sc.t.state.log);
        et_algorithm_free(&a);
    }
    ok(want[4] == 1 && want[5] == .5 && want[N - 1] == .25, "they fall twice: %g %g %g",
       want[4], want[5], want[N - 1]);
}

static char told[256];

static void
keep_text(struct et_sink *sink, const struct et_record *r)
{
    (void)sink;
    snprintf(told, sizeof told, "%s", r->text ? r->text : "");
}

static void
test_told(struct et_ctx *cx)
{
    struct et_algorithm *a = algorithm(
        cx, "reduce_lr_on_plateau",
        OPTIONS(WATCHED, "comp", "greater", "factor", "0.25", "patience", "0"));
    struct et_sink sink = {.write = keep_text};
    struct scene sc;
    double min_rate;
    scene_open(&sc, cx);
    et_log_free(&sc.t.state.log);
    need(cx, et_log_new(cx, &sink, &sc.t.state.log));
    scale(&sc, a, &min_rate);
    judge(&sc, a, .625);
    judge(&sc, a, .5);
    ok(strstr(told, "Accuracy of eval ") && strstr(told, " 0.625;") &&
           strstr(told, " 0.25 "),
       "the log has the metric, its best value and what is left of the rate: %s", told);
    et_log_free(&sc.t.state.log);
    et_algorithm_free(&a);
}

/* ---- a run ---- */

enum { MOST = 16 };
static double rates[MOST][2];
static int n_rates;

static et_status
spy(struct et_algorithm *self, enum et_event event, struct et_state *s,
    struct et_log *log)
{
    (void)self, (void)log;
    static struct et_metric_value worse;
    if (event == ET_EVENT_EVAL_END) {
        snprintf(worse.name, sizeof worse.name, "metrics/eval/Accuracy");
        worse.value = -(double)s->timestamp.epoch;
        s->eval_metrics = &worse;
        s->n_eval_metrics = 1;
        return ET_OK;
    }
    for (int i = 0; n_rates < MOST && i < s->params->n_groups; i++)
        rates[n_rates][i] = et_optimizer_group(s->optimizer, i)->lr;
    n_rates += n_rates < MOST;
    return ET_OK;
}

static const struct et_algorithm_class spy_class = {
    .info = {.name = "spy"},
    .events = ET_ON(EVAL_END) | ET_ON(AFTER_TRAIN_BATCH),
    .flags = ET_ALG_FIRST,
    .apply = spy,
};

/* Two batches an epoch, and a metric that gets worse each time. */
static void
test_rates(struct et_ctx *cx)
{
    struct et_algorithm watch = {.type = &spy_class, .cx = cx};
    struct et_algorithm *a =
        algorithm(cx, "reduce_lr_on_plateau",
                  OPTIONS(WATCHED, "patience", "1", "factor", "0.5", "min_lr", "0.03"));
    struct et_algorithm *list[] = {&watch, a};
    n_rates = 0;
    train(cx,
          (struct run_setup){.n = 8,
                             .evaluate = true,
                             .max_duration = ET_EPOCHS(8),
                             .optimizer_options = OPTIONS("lr", "0.1")},
          list, 2);
    static const double want[] = {.1, .1, .1, .05, .05, .03, .03, .03};
    int same = 0;
    for (int i = 0; i < n_rates; i++)
        same += fabs(rates[i][0] - want[i / 2]) < 1e-12;
    is_int(same, 16, "the rate is halved every second epoch, down to min_lr");
    et_algorithm_free(&a);
}

static void
test_scales(struct et_ctx *cx)
{
    struct et_trainer t;
    (void)cx;
    memset(&t, 0, sizeof t);
    eti_groups_begin(&t);
    et_state_scale_rate(&t.state, .5, .1);
    et_state_scale_rate(&t.state, .5, .2);
    is_near(t.groups.scale, .25, 0, "factors of several algorithms multiply");
    is_near(t.groups.min_rate, .2, 0, "and the largest lower bound holds");
    eti_groups_begin(&t);
    is_near(t.groups.scale, 1, 0, "for one batch");
    is_near(t.groups.min_rate, 0, 0, "a new batch begins without a lower bound, too");
    et_state_scale_rate(&t.state, .5, .2);
    et_state_scale_rate(&t.state, .5, .1);
    is_near(t.groups.min_rate, .2, 0,
            "the largest lower bound holds in whichever order the bounds come");
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_golden(cx);
    test_negative(cx);
    test_edges(cx);
    test_resumed(cx);
    test_told(cx);
    test_rates(cx);
    test_scales(cx);
    const char *why =
        refusal(cx, "reduce_lr_on_plateau", OPTIONS(WATCHED, "factor", "1"));
    ok(strstr(why, "factor"), "a factor of 1 is refused: %s", why);
    return finish(cx);
}
