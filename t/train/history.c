/* SPDX-License-Identifier: Apache-2.0 */
/* run_history: what a run came to, epoch by epoch. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/checkpoint/archive.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"

/* A mean of three numbers in double, added in another order. */
#define ROUNDING 1e-12

/* What was logged: losses of batches with their samples, results of evaluations. */
struct notes {
    struct et_sink sink; /* first */
    double loss[16], samples[16], before, entropy[8];
    int batches, evals;
};

static void
note(struct et_sink *sink, const struct et_record *r)
{
    struct notes *n = (struct notes *)sink;
    for (int i = 0; i < r->n; i++) {
        const struct et_log_entry *e = &r->entry[i];
        if (r->kind == ET_RECORD_BATCH && strcmp(e->name, "loss/train/total") == 0) {
            n->samples[n->batches] = (double)r->sp - n->before;
            n->before = (double)r->sp;
            n->loss[n->batches++] = e->value;
        }
        if (r->kind == ET_RECORD_EVAL &&
            strcmp(e->name, "metrics/eval/CrossEntropy") == 0)
            n->entropy[n->evals++] = e->value;
    }
}

/* The mean loss over the samples of EPOCH, from 0, of 3 batches: 4, 4 and 2 samples. */
static double
epoch_loss(const struct notes *n, int epoch)
{
    double sum = 0, weight = 0;
    for (int i = 3 * epoch; i < 3 * epoch + 3; i++) {
        sum += n->samples[i] * n->loss[i];
        weight += n->samples[i];
    }
    return sum / weight;
}

static bool
has_name(const struct et_callback *h, const char *name)
{
    const char *one;
    for (int64_t i = 0; (one = et_history_name(h, i)); i++)
        if (strcmp(one, name) == 0)
            return true;
    return false;
}

static void
test_run(struct et_ctx *cx, struct et_callback *h, struct et_archive *a)
{
    struct notes notes = {.sink = {.write = note}};
    struct run r;
    const double *v;
    double latest = 0;
    int64_t n;
    run_open(&r, cx,
             &(struct run_setup){
                 .callbacks = &h,
                 .n_callbacks = 1,
                 .n = 10,
                 .evaluate = true,
                 .max_duration = ET_EPOCHS(2),
                 .sink = &notes.sink,
             });
    is_int(et_history_epoch(h), 1, "the first epoch is 1");
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    ok(notes.batches == 6 && notes.samples[2] == 2, "a short batch ends an epoch");
    ok(has_name(h, "loss/train/total") && has_name(h, "metrics/train/Accuracy") &&
           has_name(h, "metrics/eval/CrossEntropy") && !has_name(h, "time/epoch"),
       "the loss and all metrics are there, and nothing else");
    ok(et_history_values(h, "loss/train/total", &v, &n) && n == 2,
       "an epoch is a value");
    for (int i = 0; i < 2 && n == 2; i++)
        is_near(v[i], epoch_loss(&notes, i), ROUNDING,
                "the mean over the samples of epoch %d", i + 1);
    ok(et_history_values(h, "metrics/eval/CrossEntropy", &v, &n) && n == 2 &&
           v[0] == notes.entropy[0] && v[1] == notes.entropy[1],
       "an evaluation is another");
    ok(et_history_latest(h, "metrics/eval/CrossEntropy", &latest) == ET_OK &&
           latest == notes.entropy[1],
       "the latest is the last");
    is_int(et_history_epoch(h), 3, "the epoch under way would be the third");
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(1)));
    eti_archive_begin(a, cx);
    need(cx, h->type->archive(h, a));
    need(cx, eti_archive_end(a));
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(2)));
    ok(et_history_values(h, "loss/train/total", &v, &n) && n == 3,
       "fit again goes on where it was");
    is_near(n == 3 ? v[2] : NAN, epoch_loss(&notes, 2), ROUNDING,
            "with the epoch that was begun before");
    run_close(&r);
}

/* The archive was taken after one batch of the third epoch. */
static void
test_archive(struct et_ctx *cx, struct et_archive *a)
{
    struct et_callback *h;
    const double *v;
    int64_t n;
    need(cx, et_callback_new(cx, et_callback_find("run_history"), NULL, NULL, &h));
    need(cx, eti_archive_sort(a));
    a->source = "test";
    for (int twice = 0; twice < 2; twice++) {
        a->mode = ET_ARCHIVE_CHECK;
        need(cx, h->type->archive(h, a));
        a->mode = ET_ARCHIVE_LOAD;
        need(cx, h->type->archive(h, a));
    }
    ok(et_history_values(h, "loss/train/total", &v, &n) && n == 2,
       "a checkpoint has the epochs so far");
    is_int(et_history_epoch(h), 3, "and which one is under way");
    struct et_state s = {.loss_value = 100, .batch = {.n = 1000000}};
    need(cx, h->type->run(h, ET_EVENT_BATCH_END, &s, NULL));
    need(cx, h->type->run(h, ET_EVENT_EPOCH_END, &s, NULL));
    double mean = 0;
    need(cx, et_history_latest(h, "loss/train/total", &mean));
    ok(mean < 100 && mean > 99.9, "and what of it has been done");
    h->type->close(h);
    et_callback_free(&h);
}

static void
test_own(struct et_ctx *cx, struct et_callback *h)
{
    char name[ET_METRIC_NAME];
    double value = 0;
    const double *v;
    int64_t n;
    et_history_set_prefix(h, "ema_model_");
    need(cx, et_history_update(h, "score", 1));
    et_history_set_prefix(h, "");
    for (int i = 0; i < 100; i++)
        need(cx, et_history_update(h, "score", i));
    ok(et_history_values(h, "score", &v, &n) && n == 100 && v[42] == 42,
       "one's own values are kept");
    need(cx, et_history_latest(h, "ema_model_score", &value));
    ok(value == 1, "under the prefix that was set");
    ok(et_history_latest(h, "nothing", &value) == ET_EINVAL, "others are an error");
    is_str(take_error(cx), "the history has no nothing", "which says so");
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    et_history_set_prefix(h, "y");
    ok(et_history_update(h, name, 1) == ET_EINVAL, "a name must fit");
    (void)take_error(cx);
    et_history_set_prefix(h, "");
    need(cx, et_history_update(h, "a score behind it", 7));
    et_history_delete(h, "score");
    et_history_delete(h, "score");
    ok(!has_name(h, "score") && has_name(h, "ema_model_score"), "one can be deleted");
    ok(et_history_values(h, "a score behind it", &v, &n) && n == 1 && v[0] == 7,
       "a series keeps its values when another one before it is deleted");
    et_history_reset(h);
    ok(!et_history_name(h, 0) && et_history_epoch(h) == 1, "a reset forgets all");
}

/* The event ends a batch whose loss is VALUE, or an evaluation, or an epoch. */
static void
ends(struct et_callback *h, enum et_event event, struct et_state *s, double value)
{
    s->loss_value = value;
    s->batch.n = 4;
    need(h->cx, h->type->run(h, event, s, NULL));
}

/* A state has the values of two evaluators, of which one has run. */
static void
test_evaluators(struct et_ctx *cx)
{
    struct et_callback *h, *next;
    struct et_archive a = {.source = "test"};
    struct et_metric_value values[] = {{"metrics/one/Accuracy", 1},
                                       {"metrics/two/Accuracy", 2}};
    struct et_state s = {
        .eval_metrics = values, .n_eval_metrics = 2, .dataloader_label = "two"};
    double value = 0;
    const double *v;
    int64_t n;
    need(cx, et_callback_new(cx, et_callback_find("run_history"), NULL, NULL, &h));
    ends(h, ET_EVENT_INIT, &s, 0);
    ends(h, ET_EVENT_EVAL_END, &s, 0);
    ok(!has_name(h, "metrics/one/Accuracy") &&
           et_history_values(h, "metrics/two/Accuracy", &v, &n) && n == 1 && v[0] == 2,
       "the history takes the values of the evaluator that ran, not of the other");
    s.interrupted = true;
    ends(h, ET_EVENT_EVAL_END, &s, 0);
    s.interrupted = false;
    ok(et_history_values(h, "metrics/two/Accuracy", &v, &n) && n == 1,
       "an interrupted evaluation leaves no value in the history");
    ends(h, ET_EVENT_BATCH_END, &s, 100);
    et_history_reset(h);
    ends(h, ET_EVENT_BATCH_END, &s, 4);
    ends(h, ET_EVENT_EPOCH_END, &s, 0);
    need(cx, et_history_latest(h, "loss/train/total", &value));
    ok(value == 4, "the loss of an epoch counts no batch from before a reset");
    need(cx, et_history_update(h, "later", 8));
    need(cx, et_history_update(h, "later", 9));
    et_history_set_prefix(h, "mine_");
    eti_archive_begin(&a, cx);
    need(cx, h->type->archive(h, &a));
    need(cx, eti_archive_end(&a));
    need(cx, eti_archive_sort(&a));
    need(cx, et_callback_new(cx, et_callback_find("run_history"), NULL, NULL, &next));
    a.mode = ET_ARCHIVE_LOAD;
    need(cx, next->type->archive(next, &a));
    eti_archive_release(&a);
    ok(et_history_values(next, "loss/train/total", &v, &n) && n == 1 && v[0] == 4 &&
           et_history_values(next, "later", &v, &n) && n == 2 && v[0] == 8 && v[1] == 9,
       "a checkpoint has all values of each series");
    need(cx, et_history_update(next, "own", 3));
    ok(has_name(next, "mine_own"), "a checkpoint has the prefix of names");
    next->type->close(next);
    et_callback_free(&next);
    h->type->close(h);
    et_callback_free(&h);
}

/* The list called NAME of A. */
static int64_t *
list_of(struct et_archive *a, const char *name)
{
    for (int64_t i = 0; i < a->n; i++)
        if (strcmp(a->item[i].path, name) == 0)
            return a->item[i].data;
    bail("there is no %s", name);
}

/* Counts of values that are not there are refused; means are over samples. */
static void
test_lists(struct et_ctx *cx)
{
    static const int64_t wrong[][3] = {{-1, 1, 3}, {4, 0, 0}, {1, 3, 0}, {2, 1, 1}};
    struct et_metric_value train = {"metrics/train/Accuracy", 1};
    struct et_state s = {.train_metrics = &train, .n_train_metrics = 1};
    struct et_archive a = {.source = "test"};
    struct et_callback *h;
    double value = 0;
    need(cx, et_callback_new(cx, et_callback_find("run_history"), NULL, NULL, &h));
    need(cx, et_history_update(h, "a", 1));
    need(cx, et_history_update(h, "b", 2));
    need(cx, et_history_update(h, "c", 3));
    eti_archive_begin(&a, cx);
    need(cx, h->type->archive(h, &a));
    need(cx, eti_archive_end(&a));
    need(cx, eti_archive_sort(&a));
    a.mode = ET_ARCHIVE_LOAD;
    int64_t *counts = list_of(&a, "counts");
    for (int i = 0; i < 4; i++) {
        memcpy(counts, wrong[i], sizeof wrong[i]);
        is_int(h->type->archive(h, &a), ET_EFORMAT, "%d, %d and %d of 3 are refused",
               (int)wrong[i][0], (int)wrong[i][1], (int)wrong[i][2]);
        et_error_clear(cx);
    }
    eti_archive_release(&a);
    et_history_reset(h);
    s.batch.n = 1;
    need(cx, h->type->run(h, ET_EVENT_BATCH_END, &s, NULL));
    train.value = 4;
    s.batch.n = 2;
    need(cx, h->type->run(h, ET_EVENT_BATCH_END, &s, NULL));
    need(cx, h->type->run(h, ET_EVENT_EPOCH_END, &s, NULL));
    need(cx, et_history_latest(h, "metrics/train/Accuracy", &value));
    ok(value == 3, "metrics of an epoch are means over its samples (%g)", value);
    h->type->close(h);
    et_callback_free(&h);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct et_alloc_stats stats;
    struct et_archive a = {0};
    struct et_callback *h, *other;
    need(cx, et_callback_new(cx, et_callback_find("run_history"), NULL, NULL, &h));
    test_run(cx, h, &a);
    test_archive(cx, &a);
    eti_archive_release(&a);
    test_own(cx, h);
    test_evaluators(cx);
    test_lists(cx);
    h->type->close(h);
    et_callback_free(&h);
    need(cx, et_callback_new(cx, et_callback_find("lr_monitor"), NULL, NULL, &other));
    ok(!et_history_name(other, 0) && et_history_update(other, "x", 1) == ET_EINVAL,
       "another callback has no history");
    (void)take_error(cx);
    et_callback_free(&other);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
