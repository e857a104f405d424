/* SPDX-License-Identifier: Apache-2.0 */
/* Training time: the grammar, arithmetic that never converts units, counters, and the
 * units schedules count in. */
#include "etude/ctx.h"
#include "etude/time.h"
#include "t/tap.h"

#include <string.h>

static struct et_ctx *cx;

/* A literal in a test; "unset" when it does not parse. */
static struct et_time
time_of(const char *text)
{
    struct et_time t = {0, ET_TIME_UNIT_COUNT};
    if (et_time_parse(cx, text, &t) != ET_OK)
        et_error_clear(cx);
    return t;
}

static void
is_time(struct et_time got, const char *want, const char *name)
{
    char buf[ET_TIME_TEXT_BYTES];
    is_str(et_time_text(got, buf, sizeof buf), want, "%s", name);
}

/* The call failed with EINVAL and a sentence that holds PART. */
static void
fails(et_status status, const char *part, const char *name)
{
    if (!ok(status == ET_EINVAL && strstr(et_error_get(cx)->message, part), "%s", name))
        diag("status %s, message '%s'", et_status_name(status),
             et_error_get(cx)->message);
    et_error_clear(cx);
}

static void
text(void)
{
    static const struct {
        const char *text, *want;
    } good[] = {
        {"10ep", "10ep"},
        {"0.7dur", "0.7dur"},
        {"1e2BA", "100ba"},
        {"2.0ep", "2ep"},
        {"1e3ba", "1000ba"},
        {"1e6tok", "1000000tok"},
        {"5EP", "5ep"},
        {"3iter", "3iter"},
        {"90sec", "90sec"},
        {"1h20m30s", "4830sec"},
        {"25h", "90000sec"},
        {"90s", "90sec"},
        {"5m", "300sec"},
        {"1H30M", "5400sec"},
        {".5dur", "0.5dur"},
        {"50e-1ep", "5ep"},
        {"1e+3ba", "1000ba"},
        {"12", "12ep"},
        {"0ba", "0ba"},
        {"1e-3dur", "0.001dur"},
        {"9007199254740992sp", "9007199254740992sp"},
        {"0.30000000000000004dur", "0.30000000000000004dur"},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char buf[ET_TIME_TEXT_BYTES];
        struct et_time t = time_of(good[i].text);
        is_str(et_time_text(t, buf, sizeof buf), good[i].want, "'%s' is read",
               good[i].text);
    }
    static const char *const bad[] = {
        "",         "ba",     " 1ba",  "1 ba",   "1ba ",  "-1ba", "+1ba",
        "1.2.3dur", ".ep",    "inf",   "nandur", "0x1ep", "1e",   "1eep",
        "1e+ba",    "1.5",    "ep10",  "1m1h",   "1h1h",  "1.5h", "h",
        "10epp",    "1epoch", "1e-ba", "12e0",   "1h30",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct et_time t = {0, ET_TIME_UNIT_COUNT};
        fails(et_time_parse(cx, bad[i], &t), "is not a time",
              bad[i][0] ? bad[i] : "(empty)");
    }
    static const struct {
        const char *text, *hint;
    } placeholders[] = {
        {"NUM_UPDATE_STEPS_PER_EPOCH", "write 1ep"},
        {"NUM_UPDATE_STEPS_PER_EPOCH*2", "write 2ep"},
        {"TRAIN_DATALOADER_LEN*3", "write 3ep"},
        {"PER_PROCESS_NUM_UPDATE_STEPS_PER_EPOCH*4", "write 4ep"},
        {"NUM_EPOCHS", "write 1dur"},
        {"NUM_EPOCHS*0.1", "write 0.1dur"},
        {"NUM_EPOCHS+3", ""},
        {"EVAL_DATALOADER_LEN", ""},
    };
    struct et_time t;
    for (size_t i = 0; i < sizeof placeholders / sizeof *placeholders; i++) {
        ok(et_time_parse(cx, placeholders[i].text, &t) == ET_EINVAL, "%s is no time",
           placeholders[i].text);
        is_str(et_error_get(cx)->hint, placeholders[i].hint,
               "and the hint is the unit that says the same, if any does");
        et_error_clear(cx);
    }
    fails(et_time_parse(cx, "1.5ba", &t), "whole number of batches",
          "half a batch is refused");
    fails(et_time_parse(cx, "1.5ep", &t), "whole number of epochs",
          "half an epoch is refused");
    fails(et_time_parse(cx, "1e17tok", &t), "2^53",
          "more than 2^53 tokens are refused");
    fails(et_time_parse(cx, "1e999dur", &t), "2^53", "an infinite fraction is refused");

    enum et_time_unit unit = ET_TIME_UNIT_COUNT;
    ok(et_time_unit_find(cx, "Epoch", &unit) == ET_OK && unit == ET_TIME_EPOCH,
       "a unit is found by its name in any case");
    ok(et_time_unit_find(cx, "TOK", &unit) == ET_OK && unit == ET_TIME_TOKEN,
       "a unit is found by its suffix in any case");
    fails(et_time_unit_find(cx, "fortnight", &unit), "iter, ep, ba",
          "units are a closed list");
    is_time((struct et_time){1e300, ET_TIME_DURATION}, "1e300dur",
            "text has no plus sign");
}

static void
arithmetic(void)
{
    struct et_time t = {0, ET_TIME_UNIT_COUNT};
    int order = 7;
    is_time(et_time_scale(time_of("10ba"), 0.25), "2ba", "10ba * 0.25 is truncated");
    is_time(et_time_scale(time_of("0.5dur"), 0.5), "0.25dur", "a dur is not truncated");
    ok(et_time_div(cx, time_of("10ba"), time_of("4ba"), &t) == ET_OK,
       "equal units divide");
    is_time(t, "2.5dur", "10ba / 4ba is a fraction");
    ok(et_time_mul(cx, time_of("0.5dur"), time_of("90ep"), &t) == ET_OK,
       "a dur multiplies");
    is_time(t, "45ep", "0.5dur * 90ep has the unit of the other");
    ok(et_time_mul(cx, time_of("7ep"), time_of("0.5dur"), &t) == ET_OK,
       "from either side");
    is_time(t, "3ep", "and is truncated");
    ok(et_time_mul(cx, time_of("0.5dur"), time_of("0.5dur"), &t) == ET_OK,
       "two durs multiply");
    is_time(t, "0.25dur", "into a dur");
    ok(et_time_add(cx, time_of("3sp"), time_of("4sp"), &t) == ET_OK, "equal units add");
    is_time(t, "7sp", "3sp + 4sp");
    ok(et_time_sub(cx, time_of("3sp"), time_of("4sp"), &t) == ET_OK,
       "equal units subtract");
    ok(t.value == -1 && t.unit == ET_TIME_SAMPLE, "a difference may be negative");
    ok(et_time_mod(cx, time_of("10ba"), time_of("4ba"), &t) == ET_OK,
       "equal units have a rest");
    is_time(t, "2ba", "10ba % 4ba");
    ok(et_time_over(cx, time_of("49ep"), 49, &t) == ET_OK, "a number divides");
    is_time(t, "1ep", "49ep / 49 does not lose an epoch to rounding");
    ok(et_time_over(cx, time_of("50ep"), 7, &t) == ET_OK, "whatever is over");
    is_time(t, "7ep", "50ep / 7 is truncated");
    ok(et_time_over(cx, time_of("0.5dur"), 4, &t) == ET_OK, "and durs are divided");
    is_time(t, "0.125dur", "0.5dur / 4 is not truncated");
    ok(et_time_compare(cx, time_of("3ba"), time_of("10ba"), &order) == ET_OK &&
           order < 0,
       "3ba is before 10ba");

    struct et_time none = {0, ET_TIME_UNIT_COUNT};
    fails(et_time_compare(cx, time_of("10ba"), time_of("3ep"), &order),
          "10ba and 3ep have different units", "10ba < 3ep is an error");
    fails(et_time_compare(cx, none, none, &order), "unset",
          "unset times do not compare");
    fails(et_time_add(cx, time_of("10ba"), time_of("3ep"), &t), "added",
          "nor do they add");
    fails(et_time_sub(cx, time_of("10ba"), time_of("3ep"), &t), "subtracted",
          "nor subtract");
    fails(et_time_div(cx, time_of("10ba"), time_of("0.5dur"), &t), "divided",
          "a time is not divided by a dur");
    fails(et_time_div(cx, time_of("10ba"), time_of("0ba"), &t), "by 0",
          "nor by nothing");
    fails(et_time_mod(cx, time_of("10ba"), time_of("0ba"), &t), "by 0",
          "no rest by nothing");
    fails(et_time_over(cx, time_of("10ba"), 0, &t), "by 0", "nor by the number 0");
    fails(et_time_mul(cx, time_of("10ba"), time_of("3ba"), &t), "neither is a dur",
          "two counts do not multiply");
}

static void
counters(void)
{
    struct et_timestamp ts = {0};
    struct et_time t;
    int order = 7;
    double elapsed = 7;
    for (int i = 0; i < 5; i++)
        et_timestamp_next_batch(&ts, 32, 1000, 0.5);
    ok(ts.batch == 5 && ts.batch_in_epoch == 5 && ts.sample == 160 &&
           ts.token == 5000 && ts.sample_in_epoch == 160 && ts.token_in_epoch == 5000 &&
           ts.token_in_iteration == 5000 && ts.epoch == 0,
       "a batch counts itself, its samples and tokens");
    ok(ts.total_wct == 2.5 && ts.epoch_wct == 2.5 && ts.iteration_wct == 2.5 &&
           ts.batch_wct == 0.5,
       "the clocks add up; the batch's is its own");
    ok(et_timestamp_compare(cx, &ts, time_of("5ba"), &order) == ET_OK && order == 0,
       "after five batches 5ba is reached");
    ok(et_timestamp_compare(cx, &ts, time_of("161sp"), &order) == ET_OK && order < 0,
       "and 161 samples are not");
    et_timestamp_next_epoch(&ts);
    ok(ts.epoch == 1 && ts.epoch_in_iteration == 1 && ts.batch == 5 &&
           ts.sample == 160 && ts.batch_in_epoch == 0 && ts.sample_in_epoch == 0 &&
           ts.token_in_epoch == 0 && ts.epoch_wct == 0 && ts.batch_wct == 0 &&
           ts.total_wct == 2.5 && ts.iteration_wct == 2.5 &&
           ts.token_in_iteration == 5000,
       "a new epoch restarts only what is counted within an epoch");
    et_timestamp_next_batch(&ts, 32, 1000, 0.5);
    et_timestamp_next_iteration(&ts);
    ok(ts.iteration == 1 && ts.epoch_in_iteration == 0 && ts.token_in_iteration == 0 &&
           ts.iteration_wct == 0 && ts.epoch == 1 && ts.batch_in_epoch == 1 &&
           ts.total_wct == 3,
       "a new iteration restarts only what is counted within an iteration");

    static const struct {
        enum et_time_unit unit;
        const char *want;
    } counts[] = {
        {ET_TIME_ITERATION, "1iter"}, {ET_TIME_EPOCH, "1ep"},
        {ET_TIME_BATCH, "6ba"},       {ET_TIME_SAMPLE, "192sp"},
        {ET_TIME_TOKEN, "6000tok"},   {ET_TIME_SECOND, "3sec"},
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        ok(et_timestamp_get(cx, &ts, counts[i].unit, &t) == ET_OK, "%s has a counter",
           et_time_unit_name(counts[i].unit));
        is_time(t, counts[i].want, "which says");
    }
    fails(et_timestamp_get(cx, &ts, ET_TIME_DURATION, &t), "'dur'",
          "a dur is no counter");
    fails(et_timestamp_compare(cx, &ts, time_of("0.5dur"), &order), "'dur'",
          "and nothing is compared with one");

    ok(et_timestamp_elapsed(cx, &ts, time_of("12ba"), &elapsed) == ET_OK &&
           elapsed == 0.5,
       "6 of 12 batches are half the run");
    ok(et_timestamp_elapsed(cx, &ts, time_of("4ep"), &elapsed) == ET_OK &&
           elapsed == 0.25,
       "in a run of epochs only whole epochs have elapsed");
    ok(et_timestamp_elapsed(cx, &ts, time_of("100sp"), &elapsed) == ET_OK &&
           elapsed == 1,
       "no more than the whole run elapses");
    fails(et_timestamp_elapsed(cx, &ts, (struct et_time){0, ET_TIME_UNIT_COUNT},
                               &elapsed),
          "without max_duration", "an endless run has no fraction");
}

static void
schedule_units(void)
{
    struct et_time t = {0, ET_TIME_UNIT_COUNT};
    struct et_run_length run = {
        .max_duration = ET_EPOCHS(10),
        .dataloader_len = 100,
        .scale_schedule_ratio = 1,
    };
    static const struct {
        const char *max, *text;
        double ratio;
        const char *want;
    } rows[] = {
        {"10ep", "0.3dur", 1, "300ba"},  {"10ep", "2ep", 1, "200ba"},
        {"10ep", "2ep", 0.5, "100ba"},   {"10ep", "0.3dur", 0.5, "300ba"},
        {"10ep", "15ba", 0.5, "7ba"},    {"1000ba", "0.25dur", 1, "250ba"},
        {"10ep", "100sp", 2, "200sp"},   {"999tok", "0.5dur", 2, "499tok"},
        {"60sec", "0.5dur", 1, "30sec"}, {"10ep", "0.5127dur", 1, "512ba"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        run.max_duration = time_of(rows[i].max);
        run.scale_schedule_ratio = rows[i].ratio;
        ok(et_time_resolve(cx, time_of(rows[i].text), &run, &t) == ET_OK,
           "%s of %s at ratio %g is a schedule unit", rows[i].text, rows[i].max,
           rows[i].ratio);
        is_time(t, rows[i].want, "namely");
    }
    fails(et_time_resolve(cx, time_of("90sec"), &run, &t), "seconds",
          "schedules are not written in seconds");
    run = (struct et_run_length){ET_EPOCHS(10), -1, 1};
    fails(et_time_resolve(cx, time_of("2ep"), &run, &t), "length is not known",
          "epochs need the length of the data");
    fails(et_time_resolve(cx, time_of("0.2dur"), &run, &t), "length is not known",
          "and so do fractions of epochs");
    run.max_duration.unit = ET_TIME_UNIT_COUNT;
    fails(et_time_resolve(cx, time_of("0.2dur"), &run, &t), "needs a max_duration",
          "a fraction needs a whole");

    ok(et_time_scale_duration(cx, ET_EPOCHS(10), 0.25, &t) == ET_OK,
       "a run is shortened");
    is_time(t, "2ep", "to whole epochs");
    fails(et_time_scale_duration(cx, ET_EPOCHS(1), 0.5, &t), "leaves no training",
          "but not to nothing");
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no memory");
    text();
    arithmetic();
    counters();
    schedule_units();
    et_ctx_free(&cx);
    return done();
}
