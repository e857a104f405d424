/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown of a run's steps. Their parts, from what ranks say of themselves once a
 * second: the part that nobody measures, the median of the ranks, the series that a
 * record adds points to. And when the run will have ended, as its batches have gone. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dist/hub/step.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;

/* RANK says the N numbers of ENTRY. */
static void
say(struct etd_model *m, int rank, const struct et_log_entry *entry, int n)
{
    const struct et_record r = {.kind = ET_RECORD_HEALTH,
                                .seq = m->seq + 1,
                                .t = 1e9,
                                .ba = 5,
                                .rank = rank,
                                .entry = entry,
                                .n = n};
    need(cx, etd_model_apply(m, &r));
}

/* ETD_COMPUTE of a rank that says this. */
static double
compute_of(const struct et_log_entry *entry, int n)
{
    struct etd_model *m;
    need(cx, etd_model_new(cx, &m));
    say(m, 0, entry, n);
    const double x = etd_step_number(&m->rank[0], ETD_COMPUTE);
    etd_model_free(&m);
    return x;
}

static void
test_compute(void)
{
    /* First a rank's own time, then its six measured parts, then times that are not
     * parts of it. */
    static const struct et_log_entry all[] = {
        {"own_ms", 1000}, {"data_ms", 1},   {"h2d_ms", 2},        {"loss_ms", 4},
        {"comm_ms", 8},   {"hooks_ms", 16}, {"optimizer_ms", 32}, {"wait_ms", 64},
        {"save_ms", 128}, {"step_ms", 256}, {"forward_ms", 0.5},
    };
    enum { ALL = sizeof all / sizeof *all, MEASURED = 6, NO_FORWARD = ALL - 1 };
    struct et_log_entry entry[ALL];
    is_near(compute_of(all, NO_FORWARD), 1000 - 63, 0,
            "compute is own time without each part of it that is measured");
    for (int left_out = 1; left_out <= MEASURED; left_out++) {
        int n = 0;
        for (int i = 0; i < NO_FORWARD; i++)
            if (i != left_out)
                entry[n++] = all[i];
        is_near(compute_of(entry, n), 1000 - 63 + all[left_out].value, 0,
                "without %s it has that too", all[left_out].name);
    }
    ok(isnan(compute_of(all, ALL)), "where the forward pass is measured, all is");
    ok(isnan(compute_of(all + 1, NO_FORWARD - 1)), "without own time it is not known");
    memcpy(entry, all, sizeof all);
    entry[0].value = 62;
    is_near(compute_of(entry, NO_FORWARD), 0, 0, "it is not below 0");
    entry[0].value = 64;
    is_near(compute_of(entry, NO_FORWARD), 1, 0, "but as little as 1");
}

static void
test_median(void)
{
    static const double value[] = {70, 10, 30, 50};
    static const double median[] = {70, 40, 30, 40};
    struct etd_model *m;
    need(cx, etd_model_new(cx, &m));
    ok(isnan(etd_step_median(m, "data_ms")), "of no ranks there is no median");
    say(m, 0, &(struct et_log_entry){"own_ms", 900}, 1);
    ok(isnan(etd_step_median(m, "data_ms")), "nor of those that do not say it");
    for (int i = 0; i < 4; i++) {
        say(m, i + 1, &(struct et_log_entry){"data_ms", value[i]}, 1);
        is_near(etd_step_median(m, "data_ms"), median[i], 0, "the median of %d ranks",
                i + 1);
    }
    is_near(etd_step_median(m, ETD_COMPUTE), 900, 0, "and that of what is left");
    is_near(etd_step_number(&m->rank[3], "data_ms"), 30, 0, "a rank has its own");
    ok(isnan(etd_step_number(&m->rank[3], "own_ms")), "and nothing else");
    etd_model_free(&m);
}

static void
test_names(void)
{
    static const struct {
        const char *series, *name;
    } row[] = {
        {"step/data_ms", "data wait"},
        {"step/h2d_ms", "h2d copy"},
        {"step/forward_ms", "forward"},
        {"step/loss_ms", "loss"},
        {"step/backward_ms", "backward"},
        {"step/compute_ms", "compute"},
        {"step/comm_ms", "allreduce"},
        {"step/wait_ms", "wait for ranks"},
        {"step/optimizer_ms", "optimizer"},
        {"step/hooks_ms", "algorithms"},
        {"step/save_ms", "checkpoints"},
        {"step/step_ms", "step"},
        {"step/own_ms", NULL},
        {"step/", NULL},
        {"step/step_ms/x", NULL},
        {"data_ms", NULL},
        {"steps/data_ms", NULL},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *name = etd_step_name(row[i].series);
        is_str(name ? name : "none", row[i].name ? row[i].name : "none", "%s",
               row[i].series);
    }
    for (const struct etd_step_part *q = etd_step_parts; q->number; q++)
        ok(q->is_waiting == (strcmp(q->number, "wait_ms") == 0), "%s is %s time",
           q->number, q->is_waiting ? "others'" : "own");
}

static void
test_series(void)
{
    static const struct et_log_entry measured[] = {
        {"step_ms", 9},    {"own_ms", 8},       {"data_ms", 1},  {"h2d_ms", 1},
        {"forward_ms", 1}, {"loss_ms", 1},      {"comm_ms", 1},  {"backward_ms", 1},
        {"wait_ms", 1},    {"optimizer_ms", 1}, {"hooks_ms", 1}, {"save_ms", 1},
        {"queue_ms", 1},
    };
    static const struct et_log_entry plain[] = {
        {"own_ms", 8}, {"wait_ms", 1}, {"step_ms", 9}};
    static const struct {
        const char *what;
        struct et_record r;
        const char *names;
    } row[] = {
        {"a rank that measures all",
         {.kind = ET_RECORD_HEALTH, .entry = measured, .n = 13},
         " step_ms data_ms h2d_ms forward_ms loss_ms backward_ms comm_ms wait_ms"
         " optimizer_ms hooks_ms save_ms"},
        {"one that does not, whose compute is what is left",
         {.kind = ET_RECORD_HEALTH, .entry = plain, .n = 3},
         " step_ms compute_ms wait_ms"},
        {"one whose own time is not known",
         {.kind = ET_RECORD_HEALTH, .entry = plain + 1, .n = 2},
         " step_ms wait_ms"},
        {"a second without a step",
         {.kind = ET_RECORD_HEALTH, .entry = plain, .n = 2},
         ""},
        {"another rank",
         {.kind = ET_RECORD_HEALTH, .rank = 1, .entry = plain, .n = 3},
         ""},
        {"a time before the first batch",
         {.kind = ET_RECORD_HEALTH, .ba = -1, .entry = plain, .n = 3},
         ""},
        {"a record of a batch", {.kind = ET_RECORD_BATCH, .entry = plain, .n = 3}, ""},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct et_log_entry entry[ETD_STEP_ROOM];
        char names[512] = "";
        const size_t begin = strlen(ETD_STEP);
        const int n = etd_step_name_all(&row[i].r, entry);
        for (int k = 0; k < n; k++)
            if (strncmp(entry[k].name, ETD_STEP, begin) == 0)
                snprintf(names + strlen(names), sizeof names - strlen(names), " %s",
                         entry[k].name + begin);
        is_str(names, row[i].names, "the series of %s", row[i].what);
    }
}

/* ---- when the run ends ---- */

/* A model of a run that trains and is to have so many of NUMBER ("run/batches"). */
static struct etd_model *
begin_run(const char *number, double all)
{
    struct etd_model *m;
    need(cx, etd_model_new(cx, &m));
    snprintf(m->state, sizeof m->state, "running");
    m->t = m->state_since = 1000;
    m->n_length = 1;
    snprintf(m->length->name, sizeof m->length->name, "%s", number);
    m->length->value = all;
    return m;
}

/* Batch BA ends, SECONDS after what was last. */
static void
end_batch(struct etd_model *m, int64_t ba, double seconds)
{
    const struct et_record r = {
        .kind = ET_RECORD_BATCH, .t = m->t + seconds, .ba = ba, .sp = 32 * ba};
    m->ba = ba;
    m->t = r.t;
    etd_model_progress(m, &r);
}

static double
left_of(const struct etd_model *m)
{
    bool settled;
    return etd_model_left(m, &settled);
}

static void
test_left(void)
{
    struct etd_model *m = begin_run("run/batches", 1000);
    for (int ba = 1; ba <= 10; ba++)
        end_batch(m, ba, 5);
    ok(isnan(left_of(m)), "the first ten batches tell nothing of the others");
    end_batch(m, 11, 1);
    ok(isnan(left_of(m)), "nor does one");
    end_batch(m, 12, 1);
    is_near(left_of(m), 988, 1e-9, "two do");
    for (int i = 1; i <= 5; i++)
        end_batch(m, 12 + 4 * i, 12);
    is_near(left_of(m), 968 * 3, 1e-9, "where one in four is told, each has a quarter");
    m->n_evaluated = 4;
    m->eval_s = 26;
    is_near(left_of(m), 968 * 3 + 4.0 / 32 * 968 * 6.5, 1e-9,
            "as many evaluations are to come as there were, each as long");
    m->ba = 1000;
    is_near(left_of(m), 0, 0, "at the last batch nothing is left");
    m->ba = 1010;
    is_near(left_of(m), 0, 0, "nor behind it");
    m->ba = 0;
    ok(isnan(left_of(m)), "before the first it is not known");
    m->ba = 32;
    m->n_length = 0;
    ok(isnan(left_of(m)), "nor where no length is");
    etd_model_free(&m);

    m = begin_run("run/batches", 1000);
    for (int ba = 1; ba <= 200; ba++)
        end_batch(m, ba, ba);
    is_near(left_of(m), 800 * 137, 1e-6,
            "the median is that of the newest 127: of batches 74 to 200");
    etd_model_free(&m);
}

/* Seconds that it trained: without pauses, and without what came before a pause. */
static void
test_trained(void)
{
    struct etd_model *m = begin_run("run/seconds", 100);
    is_near(left_of(m), 100, 0, "a run of 100 s has as many left");
    end_batch(m, 1, 3);
    end_batch(m, 2, 4);
    end_batch(m, 3, 5);
    is_near(m->train_s, 9, 1e-9, "it trained from its first batch on");
    is_near(left_of(m), 91, 1e-9, "the rest is left");
    snprintf(m->state, sizeof m->state, "paused");
    end_batch(m, 4, 20);
    is_near(m->train_s, 9, 1e-9, "a pause is none of it");
    snprintf(m->state, sizeof m->state, "running");
    m->state_since = m->t + 30;
    end_batch(m, 5, 32);
    is_near(m->train_s, 11, 1e-9, "after it, time counts from its end");
    m->state_since = m->t + 50;
    end_batch(m, 6, 10);
    is_near(m->train_s, 11, 1e-9, "and not before");
    m->state_since = 0;
    end_batch(m, 7, 200);
    is_near(left_of(m), 0, 0, "after its end nothing is left");
    etd_model_free(&m);
}

/* The estimate is kept every eighth batch, and settled where the last four agree. */
static void
test_settled(void)
{
    static const struct {
        double off;
        int64_t ba;
        bool settled;
        const char *what;
    } row[] = {
        {0, 100, true, "where all agree"},
        {10.9, 100, true, "up to a tenth, and a second, later"},
        {-10.9, 100, true, "and earlier"},
        {11.1, 100, false, "not where one is later"},
        {-11.1, 100, false, "nor earlier"},
        {0.9, 200, true, "by a second at the end"},
        {1.1, 200, false, "not by more"},
        {NAN, 100, false, "nor where one is missing"},
    };
    struct etd_model *m = begin_run("run/batches", 200);
    bool settled = true;
    double kept[5] = {0};
    for (int ba = 1; ba <= 60; ba++) {
        end_batch(m, ba, ba <= 40 ? 1 : 3);
        if (ba >= 24 && ba % 8 == 0)
            kept[(ba - 24) / 8] = m->t + left_of(m);
    }
    for (int i = 0; i < 4; i++)
        is_near(m->finish[i], kept[i + 1], 1e-9, "estimate %d is that of batch %d", i,
                32 + 8 * i);
    ok(!isnan(etd_model_left(m, &settled)) && !settled, "they differ");
    for (int ba = 61; ba <= 100; ba++)
        end_batch(m, ba, 1);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (int k = 0; k < 4; k++) {
            m->ba = row[i].ba;
            const double left = left_of(m);
            for (int other = 0; other < 4; other++)
                m->finish[other] = m->t + left + (other == k ? row[i].off : 0);
            (void)etd_model_left(m, &settled);
            ok(settled == row[i].settled, "the end is settled %s (%d)", row[i].what, k);
        }
    m->n_length = 0;
    ok(isnan(etd_model_left(m, &settled)) && !settled, "what is not known is not");
    etd_model_free(&m);
}

static void
test_done(void)
{
    static const struct {
        const char *number;
        double all, done;
    } row[] = {
        {"run/batches", 40, 0.25},  {"run/batches", 10, 1},
        {"run/batches", 9, 1},      {"run/epochs", 20, 0.15},
        {"run/epochs", 2, 1},       {"run/samples", 1000, 0.32},
        {"run/seconds", 100, 0.07}, {"run/batches", 0, NAN},
        {"run/other", 7, NAN},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct etd_model *m = begin_run(row[i].number, row[i].all);
        m->ba = 10;
        m->ep = 3;
        m->sp = 320;
        m->train_s = 7;
        const double done = etd_model_done(m);
        ok(isnan(row[i].done) ? isnan(done) : fabs(done - row[i].done) < 1e-12,
           "of %s %g, %g is done", row[i].number, row[i].all, done);
        etd_model_free(&m);
    }
    struct etd_model *m = begin_run("run/epochs", 4);
    m->ep = 1;
    m->ba = 10;
    m->n_length = 2;
    m->length[1] = (struct etd_number){"run/batches", 20};
    is_near(etd_model_done(m), 0.5, 0, "batches are asked before epochs");
    etd_model_free(&m);
}

int
main(void)
{
    cx = need_ctx();
    test_compute();
    test_median();
    test_names();
    test_series();
    test_left();
    test_trained();
    test_settled();
    test_done();
    et_ctx_free(&cx);
    return done();
}
