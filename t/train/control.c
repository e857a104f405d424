/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a run that is under way: when they are applied, what they change, what is
 * written down of them, and that a run that goes on does the same again, bit for
 * bit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/desk.h"
#include "t/train/recipes.h"

#define RUN                                                                            \
    RESNET("12ba")                                                                     \
    "algorithms:\n  mixup:\n  label_smoothing:\n  blurpool:\n"

static void
test_text(struct et_ctx *cx)
{
    static const char *const wrong[] = {
        "", "jump", "set", "set optimizer.lr", "algo mixup", "pause now", "loglevel"};
    struct et_request r;
    char text[ET_REQUEST_TEXT];
    int refused = 0, n = sizeof wrong / sizeof *wrong;
    for (int i = 0; i < n; i++) {
        refused += et_request_parse(cx, wrong[i], &r) == ET_EINVAL;
        et_error_clear(cx);
    }
    is_int(refused, n, "what is no request is refused");
    need(cx, et_request_parse(cx, "set optimizer.betas [0.9, 0.95]", &r));
    is_str(et_request_text(&r, text, sizeof text), "set optimizer.betas [0.9, 0.95]",
           "a request is the text it was read from");
    ok(et_request_replay("key:ab set optimizer.lr 0.05 -> was 0.1", 7, &r) &&
           r.step == 7 && strcmp(r.who, "key:ab") == 0 && strcmp(r.value, "0.05") == 0,
       "a record of the log is the request again");
    ok(!et_request_replay("uid:1 set optimizer.lr -1 -> refused: too small", 7, &r),
       "but not one that was refused");
    ok(!et_request_replay("uid:1 stop -> stopping", 7, &r) &&
           !et_request_replay("uid:1 pause -> paused", 7, &r),
       "and nobody is stopped or paused twice");
}

/* Each request as text, and what a log has of it; a value may hold an arrow. */
static void
test_records(struct et_ctx *cx)
{
    static const struct {
        const char *text;
        bool is_given; /* again, to a run that goes on */
    } rows[] = {
        {"set optimizer.lr 0.1", true},
        {"set algorithms.ema.half_life 10 -> 20", true},
        {"algo mixup on", true},
        {"algo mixup off", true},
        {"algo ema on half_life=10ba smoothing=null", true},
        {"pause", false},
        {"continue", false},
        {"stop", false},
        {"checkpoint", false},
        {"loglevel warn", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_request r, again = {.step = -1};
        char text[ET_REQUEST_TEXT], record[ET_REQUEST_TEXT];
        need(cx, et_request_parse(cx, rows[i].text, &r));
        is_str(et_request_text(&r, text, sizeof text), rows[i].text, "a request: %s",
               rows[i].text);
        snprintf(record, sizeof record, "uid:7 %s -> was 3", rows[i].text);
        bool is_given = et_request_replay(record, 9, &again);
        ok(is_given == rows[i].is_given &&
               (!is_given || (again.op == r.op && strcmp(again.key, r.key) == 0 &&
                              strcmp(again.value, r.value) == 0 && again.step == 9)),
           "which is %s",
           rows[i].is_given ? "given again as it was" : "not given again");
        snprintf(record, sizeof record, "uid:7 %s -> refused: no", rows[i].text);
        ok(!et_request_replay(record, 9, &again), "nor where it was refused");
    }
}

/* The list "1a=x 2b=y" of requests, op, key and value, as numbers of batches and
 * letters. */
static const char *
list_of(const char *const *asks, int n)
{
    static char text[256];
    struct et_request list[ROOM];
    int kept = 0;
    size_t used = 0;
    for (int i = 0; i < n; i++) {
        struct et_request r = {.op = ET_REQUEST_SET, .step = asks[i][0] - '0'};
        r.op = asks[i][1] == 'A' ? ET_REQUEST_ALGO : ET_REQUEST_SET;
        snprintf(r.key, sizeof r.key, "%c", asks[i][2]);
        snprintf(r.value, sizeof r.value, "%c", asks[i][3]);
        kept = et_request_add(list, kept, &r);
    }
    text[0] = '\0';
    for (int i = 0; i < kept; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%d%c%s%s",
                                 i ? " " : "", (int)list[i].step,
                                 list[i].op == ET_REQUEST_ALGO ? 'A' : 'S', list[i].key,
                                 list[i].value);
    return text;
}

static void
test_lists(void)
{
    static const struct {
        const char *asks[5], *want, *what;
    } rows[] = {
        {{"2Sax", "4Sbx", "3Scx"}, "2Sax 3Scx 4Sbx", "come in the order of batches"},
        {{"2Sax", "2Say"}, "2Sax 2Say", "of one batch stay, of one setting too"},
        {{"2Sax", "2Sbx", "2Say"}, "2Sax 2Sbx 2Say", "in the order of asking"},
        {{"2Sax", "4Sax", "3Say"}, "2Sax 3Say", "of later batches are undone"},
        {{"4Sax", "5Sax", "6Say", "3Saz"}, "3Saz", "all that there are"},
        {{"4Sbx", "4Aax", "3Say"}, "3Say 4Sbx 4Aax", "but no other setting's"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int n = 0;
        while (n < 5 && rows[i].asks[n])
            n++;
        is_str(list_of(rows[i].asks, n), rows[i].want, "requests %s", rows[i].what);
    }
}

static void
test_levels(struct et_ctx *cx)
{
    for (int i = ET_LOG_DEBUG; i <= ET_LOG_ERROR; i++) {
        char text[64];
        const struct ask ask = {1, text};
        struct result r;
        const char *name = et_log_level_name((enum et_log_level)i);
        snprintf(text, sizeof text, "loglevel %s", name);
        struct desk d = desk_train(
            cx, &(struct how){.text = RUN, .ask = &ask, .n = 1, .stop = 2}, &r);
        ok(d.n_done == 1 && d.n_refused == 0 && d.level == (enum et_log_level)i,
           "the level %s can be asked for", name);
        free(r.params);
    }
}

static void
test_settings(struct et_ctx *cx, const struct result *plain)
{
    static const struct ask asks[] = {
        {3, "set optimizer.lr 0.004"},
        {5, "algo mixup off"},
        {8, "algo mixup on"},
        {8, "set algorithms.label_smoothing.smoothing 0.3"},
    };
    struct result r;
    struct desk d = desk_train(cx, &(struct how){.text = RUN, .ask = asks, .n = 4}, &r);
    is_int(d.n_done, 4, "all requests are applied");
    is_int(d.step[0] * 100 + d.step[1] * 10 + d.step[3], 358,
           "each after the batch it was there at");
    is_int(same_losses(&r, plain), 4,
           "losses are the same up to the first batch after a new rate");
    is_str(r.command[0], "uid:7 set optimizer.lr 0.004 -> was 0.01",
           "the log has who, what, and what was there before");
    is_str(r.command[1], "uid:7 algo mixup off -> was on", "likewise of a switch");
    is_str(r.command[3],
           "uid:7 set algorithms.label_smoothing.smoothing 0.3 -> was 0.1",
           "and of an algorithm's option");
    is_int(r.ba[0] * 100 + r.ba[1] * 10 + r.ba[2], 358, "with the batch");
    free(r.params);
}

static void
test_refusals(struct et_ctx *cx, const struct result *plain)
{
    static const struct ask asks[] = {
        {1, "set optimizer.lr -1"},
        {1, "set optimizer.lr 0"},
        {1, "set optimizer.lr fast"},
        {1, "set optimizer.momentum 0.5"},
        {1, "set optimizer.lrr 1"},
        {1, "set model.name gpt2"},
        {1, "set algorithms.ema.smoothing 1"},
        {1, "algo blurpool on min_channels=1"},
        {1, "algo ema off"},
        {1, "algo mixup maybe"},
        {1, "loglevel loud"},
        {1, "checkpoint"},
    };
    enum { N = sizeof asks / sizeof *asks };
    struct result r;
    struct desk d = desk_train(cx, &(struct how){.text = RUN, .ask = asks, .n = N}, &r);
    is_int(d.n_refused, N,
           "values out of range, options that may not change, "
           "algorithms that are not there: all refused");
    is_int(r.n_commands, N, "each is in the log");
    is_str(d.answer[3],
           "refused: optimizer.momentum cannot be set while a run is under way",
           "with the reason");
    ok(same_params(&r, plain), "and the run is what it would have been");
    free(r.params);
}

static void
test_pause(struct et_ctx *cx, const struct result *plain)
{
    /* The desk counts each wait as a batch: 5 of them, then it may go on. */
    static const struct ask asks[] = {
        {4, "pause"}, {9, "continue"}, {9, "loglevel info"}};
    struct result r;
    struct desk d = desk_train(cx, &(struct how){.text = RUN, .ask = asks, .n = 3}, &r);
    is_int(d.waits, 5, "a paused run asks again and again");
    is_int(d.waited_at, 4, "and no batch is trained meanwhile");
    is_str(r.states, "paused:4 running:4 ", "it says that it is paused, and goes on");
    ok(same_params(&r, plain), "to the same end");
    ok(r.seconds < DESK_WAIT, "and the pause is no time that it has trained");
    is_int(d.level, ET_LOG_INFO, "loglevel reaches who shows the log");
    free(r.params);
}

static void
test_stop(struct et_ctx *cx, const struct result *plain)
{
    static const struct ask stop[] = {{5, "stop"}};
    static const struct ask paused[] = {{5, "pause"}, {7, "stop"}};
    struct result r, rest;
    (void)desk_train(cx, &(struct how){.text = RUN, .ask = stop, .n = 1, .saved = true},
                     &r);
    ok(r.batches == 5 && r.outcome == ET_OUTCOME_STOPPED,
       "stop ends it after this batch");
    is_str(r.states, "stopping:5 ", "and is said");
    free(r.params);
    (void)desk_train(cx, &(struct how){.text = RUN, .saved = true, .resumed = true},
                     &rest);
    ok(same_params(&rest, plain), "it was saved: the rest comes to the same end");
    free(rest.params);
    struct desk d = desk_train(
        cx, &(struct how){.text = RUN, .ask = paused, .n = 2, .saved = true}, &r);
    ok(r.batches == 5 && r.outcome == ET_OUTCOME_STOPPED && d.waits == 2,
       "so does a stop while it is paused");
    free(r.params);
    (void)desk_train(cx, &(struct how){.text = RUN, .saved = true, .resumed = true},
                     &rest);
    ok(rest.batches == BATCHES && same_params(&rest, plain),
       "and it was saved as well");
    free(rest.params);
}

/* A rate may be 10, and no more. */
static void
test_greatest_rate(struct et_ctx *cx)
{
    static const struct ask asks[] = {{BATCHES - 1, "set optimizer.lr 10"},
                                      {BATCHES - 1, "set optimizer.lr 10.001"},
                                      {BATCHES - 1, "set optimizer.lr 0.1"}};
    struct result r;
    struct desk d = desk_train(cx, &(struct how){.text = RUN, .ask = asks, .n = 3}, &r);
    is_int(d.n_refused, 1,
           "of rates of 10, of a little more and of 0.1 one is refused");
    is_str(d.answer[1],
           "refused: optimizer.lr 10.001 outside (0, 10]: etude rerun takes any",
           "the one beyond 10");
    is_str(d.answer[2], "was 10", "and 10 was taken");
    free(r.params);
}

/* A recipe whose rate is above the usual limit has it as the limit. */
static void
test_great_recipe(struct et_ctx *cx)
{
    static const char text[] =
        "max_duration: 12ba\nseed: 17\n"
        "model: {name: resnet8}\n" IMAGE_DATA "optimizer: {name: sgd, lr: 20}\n";
    static const struct ask asks[] = {{1, "set optimizer.lr 20.001"},
                                      {1, "set optimizer.lr 15"},
                                      {1, "set optimizer.lr 15.001"}};
    struct result r;
    struct desk d =
        desk_train(cx, &(struct how){.text = text, .ask = asks, .n = 3, .stop = 2}, &r);
    is_str(d.answer[0],
           "refused: optimizer.lr 20.001 outside (0, 20]: etude rerun takes any",
           "a rate above the recipe's 20 is refused");
    is_str(d.answer[1], "was 20", "a rate below the recipe's 20 is taken");
    is_str(d.answer[2],
           "refused: optimizer.lr 15.001 outside (0, 15]: etude rerun takes any",
           "a rate above the one that was set is refused from then on");
    free(r.params);
}

/* What one may set on the way acts on what is trained then. */
static void
test_effects(struct et_ctx *cx, const struct result *plain)
{
    static const char *const sets[] = {"set optimizer.lr 0.004",
                                       "set optimizer.weight_decay 0.3",
                                       "set algorithms.label_smoothing.smoothing 0.3"};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        const struct ask early = {2, sets[i]}, late = {BATCHES - 1, sets[i]};
        struct result a, b;
        (void)desk_train(cx, &(struct how){.text = RUN, .ask = &early, .n = 1}, &a);
        (void)desk_train(cx, &(struct how){.text = RUN, .ask = &late, .n = 1}, &b);
        ok(!same_params(&a, plain) && !same_params(&b, plain) && !same_params(&a, &b),
           "%s: what is trained from then on", sets[i]);
        free(a.params);
        free(b.params);
    }
}

/* Commands at 2, 6 and 9; a checkpoint at 4 or 7, and on from there. */
static void
test_replay(struct et_ctx *cx)
{
    static const struct ask asks[] = {
        {2, "set optimizer.lr 0.004"}, {2, "set optimizer.weight_decay 0.01"},
        {6, "algo mixup off"},         {9, "set optimizer.lr 0.02"},
        {9, "algo mixup on"},
    };
    struct et_request replay[ROOM];
    struct result whole, first, rest;
    int n = 0;
    (void)desk_train(cx, &(struct how){.text = RUN, .ask = asks, .n = 5}, &whole);
    for (int i = 0; i < whole.n_commands; i++)
        n += et_request_replay(whole.command[i], whole.ba[i], &replay[n]);
    is_int(n, 5, "the log holds what a resumed run is to be given");
    for (int64_t stop = 4; stop <= 7; stop += 3) {
        (void)desk_train(
            cx,
            &(struct how){
                .text = RUN, .ask = asks, .n = 5, .stop = stop, .saved = true},
            &first);
        struct desk d = desk_train(
            cx,
            &(struct how){
                .text = RUN, .resumed = true, .replay = replay, .n_replay = n},
            &rest);
        ok(same_params(&rest, &whole),
           "stopped after %d batches and resumed: same bits", (int)stop);
        is_int(d.n_done + rest.n_commands, 0, "nothing is answered or logged twice");
        free(first.params);
        free(rest.params);
    }
    free(whole.params);
}

/* A crash at 8, back to a checkpoint at 4, and a new rate at 5: the one that was given
 * at 6, on the way to the crash, was said before it. */
static void
test_newest(struct et_ctx *cx)
{
    static const struct ask before[] = {{2, "set optimizer.lr 0.004"},
                                        {6, "set optimizer.lr 0.02"},
                                        {6, "algo mixup off"}};
    static const struct ask anew[] = {{5, "set optimizer.lr 0.01"}};
    static const struct ask all[] = {{2, "set optimizer.lr 0.004"},
                                     {5, "set optimizer.lr 0.01"},
                                     {6, "algo mixup off"}};
    struct et_request replay[ROOM], r;
    struct result whole, first, rest;
    int n = 0;
    (void)desk_train(cx, &(struct how){.text = RUN, .ask = all, .n = 3}, &whole);
    for (int i = 0; i < 3; i++) {
        if (et_request_parse(cx, before[i].text, &r) != ET_OK)
            bail("%s", before[i].text);
        r.step = before[i].at;
        n = et_request_add(replay, n, &r);
    }
    is_int(n, 3, "requests of a run, as its log has them");
    (void)desk_train(
        cx, &(struct how){.text = RUN, .ask = before, .n = 1, .stop = 4, .saved = true},
        &first);
    (void)desk_train(cx,
                     &(struct how){.text = RUN,
                                   .ask = anew,
                                   .n = 1,
                                   .resumed = true,
                                   .replay = replay,
                                   .n_replay = n},
                     &rest);
    ok(same_params(&rest, &whole),
       "what is asked after a crash is not undone by what was asked on the way to it");
    free(rest.params);
    free(first.params);
    if (et_request_parse(cx, anew[0].text, &r) != ET_OK)
        bail("%s", anew[0].text);
    r.step = anew[0].at;
    n = et_request_add(replay, n, &r);
    ok(n == 3 && replay[0].step == 2 && replay[1].step == 5 && replay[2].step == 6 &&
           replay[2].op == ET_REQUEST_ALGO,
       "nor when the run is resumed once more");
    (void)desk_train(
        cx, &(struct how){.text = RUN, .ask = before, .n = 1, .stop = 4, .saved = true},
        &first);
    (void)desk_train(
        cx,
        &(struct how){.text = RUN, .resumed = true, .replay = replay, .n_replay = n},
        &rest);
    ok(same_params(&rest, &whole), "to the same bits");
    free(rest.params);
    free(first.params);
    free(whole.params);
}

/* As above, but the request at batch 5 is refused: the log's request at batch 6 still
 * holds. */
static void
test_refused_newest(struct et_ctx *cx)
{
    static const struct ask all[] = {{2, "set optimizer.lr 0.004"},
                                     {6, "set optimizer.lr 0.02"}};
    static const struct ask anew[] = {{5, "set optimizer.lr 11"}};
    struct et_request replay[ROOM];
    struct result whole, first, rest;
    int n = 0;
    (void)desk_train(cx, &(struct how){.text = RUN, .ask = all, .n = 2}, &whole);
    for (int i = 0; i < whole.n_commands; i++)
        n += et_request_replay(whole.command[i], whole.ba[i], &replay[n]);
    (void)desk_train(
        cx, &(struct how){.text = RUN, .ask = all, .n = 1, .stop = 4, .saved = true},
        &first);
    struct desk d = desk_train(cx,
                               &(struct how){.text = RUN,
                                             .ask = anew,
                                             .n = 1,
                                             .resumed = true,
                                             .replay = replay,
                                             .n_replay = n},
                               &rest);
    ok(d.n_refused == 1 && same_params(&rest, &whole),
       "a refused request does not keep the log's request from being replayed");
    free(rest.params);
    free(first.params);
    free(whole.params);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct result plain;
    test_text(cx);
    test_records(cx);
    test_lists();
    if (have_device(cx, "cpu")) {
        (void)desk_train(cx, &(struct how){.text = RUN}, &plain);
        test_settings(cx, &plain);
        test_refusals(cx, &plain);
        test_levels(cx);
        test_pause(cx, &plain);
        test_greatest_rate(cx);
        test_great_recipe(cx);
        test_stop(cx, &plain);
        test_effects(cx, &plain);
        test_replay(cx);
        test_newest(cx);
        test_refused_newest(cx);
        free(plain.params);
    }
    desk_clear();
    et_ctx_free(&cx);
    return done();
}
