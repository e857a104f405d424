/* SPDX-License-Identifier: Apache-2.0 */
/* fit called again: durations add, time goes on, schedules see the new length, and what
 * a call brings with it takes the place of what was there. An epoch has two batches. */
#include <math.h>
#include <string.h>

#include "core/data/loader_impl.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"

enum { MAX_BATCHES = 32 };

/* What each batch's update was given and came to. */
struct tape {
    struct et_callback callback; /* first */
    int n;
    double rate[MAX_BATCHES], loss[MAX_BATCHES];
    int64_t batch[MAX_BATCHES], first[MAX_BATCHES];
    int evals;
};

static et_status
note(struct et_callback *self, enum et_event event, const struct et_state *s,
     struct et_log *log)
{
    struct tape *t = (struct tape *)self;
    (void)log;
    t->evals += event == ET_EVENT_EVAL_END;
    if (event != ET_EVENT_BATCH_END || t->n == MAX_BATCHES)
        return ET_OK;
    t->rate[t->n] = s->lr_factor;
    t->loss[t->n] = s->loss_value;
    t->batch[t->n] = s->timestamp.batch;
    t->first[t->n++] = s->first_sample;
    return ET_OK;
}

static const struct et_callback_class note_class = {
    .info = {.name = "note"},
    .events = ET_ON(BATCH_END) | ET_ON(EVAL_END),
    .run = note,
};

/* A run that is on TAPE. */
static void
prepare(struct run *r, struct et_ctx *cx, struct tape *tape, struct run_setup setup)
{
    static struct et_callback *list[1];
    *tape = (struct tape){.callback = {.type = &note_class, .cx = cx}};
    list[0] = &tape->callback;
    setup.callbacks = list;
    setup.n_callbacks = 1;
    run_prepare(r, cx, &setup);
}

static void
fit(struct run *r, const struct et_fit_options *o)
{
    need(r->cx, et_trainer_fit_with(r->trainer, o));
}

/* ---- time ---- */

static void
is_at(const struct run *r, int64_t epoch, int64_t in_epoch, int64_t batch,
      const char *what)
{
    const struct et_timestamp *ts = &r->state->timestamp;
    ok(ts->epoch == epoch && ts->batch_in_epoch == in_epoch && ts->batch == batch,
       "%s: epoch %d, batch %d of it, %d in all", what, (int)epoch, (int)in_epoch,
       (int)batch);
    if (ts->epoch != epoch || ts->batch_in_epoch != in_epoch || ts->batch != batch)
        diag("got %d, %d, %d", (int)ts->epoch, (int)ts->batch_in_epoch, (int)ts->batch);
}

static void
test_sequence(struct et_ctx *cx)
{
    struct run r;
    struct tape tape;
    prepare(&r, cx, &tape, (struct run_setup){.n = 8});
    run_start(&r);
    fit(&r, &(struct et_fit_options){.duration = ET_TIME_UNSET});
    is_at(&r, 1, 0, 2, "to max_duration");
    fit(&r, &(struct et_fit_options){.reset_time = true});
    is_at(&r, 1, 0, 2, "again from the start");
    ok(tape.loss[2] != tape.loss[0] && tape.first[2] == 0,
       "with the first samples, and parameters as they are");
    fit(&r, &(struct et_fit_options){.duration = ET_EPOCHS(1)});
    is_at(&r, 2, 0, 4, "an epoch more");
    fit(&r, &(struct et_fit_options){.duration = ET_BATCHES(1)});
    is_at(&r, 2, 1, 5, "a batch more");
    is_int(et_trainer_fit(r.trainer, ET_TIME_UNSET), ET_EINVAL,
           "nothing is left to do, which is an error");
    is_str(take_error(cx),
           "max_duration 5ba has passed already: no training would occur",
           "that says so");
    fit(&r, &(struct et_fit_options){.reset_time = true, .duration = ET_EPOCHS(3)});
    is_at(&r, 3, 0, 6, "three epochs from the start");
    run_close(&r);
}

/* Cut into calls of PIECE batches, a run of four batches stays the same run. */
static void
test_pieces(struct et_ctx *cx)
{
    struct tape whole, cut;
    struct run r;
    prepare(&r, cx, &whole, (struct run_setup){.n = 8, .max_duration = ET_EPOCHS(2)});
    run_start(&r);
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    run_close(&r);
    for (int piece = 1; piece <= 3; piece += 2) {
        prepare(&r, cx, &cut, (struct run_setup){.n = 8});
        r.config.max_duration = ET_TIME_UNSET;
        run_start(&r);
        for (int done = 0; done < 4; done += piece)
            need(cx, et_trainer_fit(r.trainer,
                                    ET_BATCHES(4 - done < piece ? 4 - done : piece)));
        run_close(&r);
        ok(cut.n == 4 && memcmp(cut.loss, whole.loss, 4 * sizeof cut.loss[0]) == 0 &&
               memcmp(cut.first, whole.first, 4 * sizeof cut.first[0]) == 0,
           "calls of %d batches give the samples and losses of one call", piece);
    }
}

/* ---- schedules ---- */

/* linear, from 1 to 0 over 1dur, by batch or by epoch. */
static void
make_linear(struct et_ctx *cx, const char *every, struct et_scheduler *out)
{
    const struct et_scheduler_class *c = et_scheduler_find("linear");
    void *options;
    need(cx, et_alloc(cx, c->info.options_size, &options));
    need(cx, et_options_init(cx, c->info.options, options));
    need(cx, et_options_set(cx, c->info.options, options, "step_every", every));
    *out = (struct et_scheduler){.type = c, .options = options};
}

static void
free_scheduler(struct et_ctx *cx, struct et_scheduler *s)
{
    et_options_release(s->type->info.options, (void *)s->options);
    et_free(cx, (void *)s->options);
}

static void
are_rates(const struct tape *t, const double *want, int n, const char *what)
{
    int same = 0;
    while (same < n && same < t->n && fabs(t->rate[same] - want[same]) < 1e-12)
        same++;
    ok(same == n && t->n == n, "%s", what);
    if (same < n)
        diag("update %d of %d: %g, wanted %g", same, t->n, t->rate[same], want[same]);
}

static void
test_rates(struct et_ctx *cx)
{
    struct et_scheduler linear;
    struct tape tape;
    struct run r;
    for (int by_epoch = 0; by_epoch < 2; by_epoch++) {
        make_linear(cx, by_epoch ? "epoch" : "batch", &linear);
        prepare(&r, cx, &tape, (struct run_setup){.n = 8});
        r.config.max_duration = ET_TIME_UNSET; /* known only to fit */
        r.config.schedulers = &linear;
        r.config.n_schedulers = 1;
        run_start(&r);
        for (int i = 0; i < 2; i++)
            need(cx, et_trainer_fit(r.trainer, ET_EPOCHS(1)));
        need(cx, et_trainer_fit(r.trainer, ET_BATCHES(1)));
        need(cx, et_trainer_fit(r.trainer, ET_BATCHES(5)));
        run_close(&r);
        if (by_epoch)
            are_rates(&tape, (double[]){1, 1, .5, .5, .2, .6, .4, .4, .2, .2}, 10,
                      "by epoch a rate stands for the epoch, of the length it now has");
        else
            are_rates(&tape, (double[]){1, .5, .5, .25, .2, .5, .4, .3, .2, .1}, 10,
                      "by batch the schedule goes on over the length it now has");
        free_scheduler(cx, &linear);
    }
}

static void
test_new_schedule(struct et_ctx *cx)
{
    struct et_scheduler linear;
    struct tape tape;
    struct run r;
    make_linear(cx, "batch", &linear);
    prepare(&r, cx, &tape, (struct run_setup){.n = 8});
    run_start(&r);
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    fit(&r, &(struct et_fit_options){.reset_time = true,
                                     .duration = ET_EPOCHS(4),
                                     .schedulers = &linear,
                                     .n_schedulers = 1,
                                     .scale_schedule_ratio = .5});
    is_at(&r, 2, 0, 4, "a ratio of .5 makes two epochs of four");
    are_rates(&tape, (double[]){1, 1, 1, .75, .5, .25}, 6,
              "over which the schedule that came with it runs");
    is_int(et_trainer_fit_with(r.trainer,
                               &(struct et_fit_options){.duration = ET_EPOCHS(1),
                                                        .scale_schedule_ratio = 2}),
           ET_EINVAL, "a ratio without schedules is refused");
    et_error_clear(cx);
    run_close(&r);
    free_scheduler(cx, &linear);
}

/* ---- the rest ---- */

static void
test_parts(struct et_ctx *cx)
{
    struct tape tape;
    struct run r, other;
    double value;
    prepare(&other, cx, &tape, (struct run_setup){.n = 8});
    run_start(&other);
    prepare(
        &r, cx, &tape,
        (struct run_setup){
            .n = 12, .with = &other, .evaluate = true, .eval_interval = ET_EPOCHS(9)});
    run_start(&r);
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    is_int(tape.evals, 1, "the end of fit evaluates");
    fit(&r, &(struct et_fit_options){.reset_time = true});
    is_int(tape.evals, 2, "and so does the next, at the same batch from a new start");

    const struct et_evaluator evaluator = {
        .label = "other", .loader = other.eval, .interval = ET_EPOCHS(1)};
    fit(&r, &(struct et_fit_options){.duration = ET_EPOCHS(1),
                                     .train = other.train,
                                     .evaluators = &evaluator,
                                     .n_evaluators = 1,
                                     .grad_accum = 2});
    is_at(&r, 2, 0, 5, "other data make shorter epochs");
    struct et_loader_info info;
    et_loader_get_info(other.train, &info);
    ok(r.state->train_set == other.train->data &&
           r.state->train_len == info.batches_per_epoch &&
           r.state->train_samples == info.samples_per_epoch &&
           r.state->batch_size == info.batch_size,
       "and callbacks are told what these hold, how many there are, in which batches");
    is_int(tape.evals, 3, "another evaluator has another interval");
    ok(et_state_metric(r.state, "metrics/other/Accuracy", &value) &&
           !et_state_metric(r.state, "metrics/eval/Accuracy", &value),
       "its metrics take the place of the former's");
    is_int(r.state->grad_accum, 2, "batches are cut as the call says");
    is_int(et_trainer_fit_with(r.trainer,
                               &(struct et_fit_options){.duration = ET_EPOCHS(1),
                                                        .grad_accum = 2,
                                                        .microbatch_size = 2}),
           ET_EINVAL, "but not in two ways at once");
    et_error_clear(cx);
    run_close(&r);
    run_close(&other);
}

/* A run whose end is counted in what it does not have would go on for ever. */
static void
test_uncounted(struct et_ctx *cx)
{
    static const struct et_time tokens = {100, ET_TIME_TOKEN},
                                iterations = {2, ET_TIME_ITERATION};
    const struct et_checkpoint_config often = {.directory = "none", .interval = tokens},
                                      listed = {.directory = "none",
                                                .interval = ET_NEVER,
                                                .at = &tokens,
                                                .n_at = 1};
    const struct {
        struct run_setup setup;
        const char *why;
    } rows[] = {
        {{.n = 8, .max_duration = tokens},
         "max_duration 100tok counts tokens, and the training data have none"},
        {{.n = 8, .max_duration = iterations},
         "max_duration 2iter counts iterations: it needs an iteration_length"},
        {{.n = 8, .evaluate = true, .eval_interval = tokens},
         "evaluator 'eval': an interval of 100tok counts tokens, and the training data "
         "have none"},
        {{.n = 8, .evaluate = true, .eval_interval = iterations},
         "evaluator 'eval': an interval of 2iter counts iterations: it needs an "
         "iteration_length"},
        {{.n = 8, .checkpoint = &often},
         "checkpoint: an interval of 100tok counts tokens, and the training data have "
         "none"},
        {{.n = 8, .checkpoint = &listed},
         "checkpoint: a save at 100tok counts tokens, and the training data have none"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct run r;
        struct tape tape;
        prepare(&r, cx, &tape, rows[i].setup);
        run_start(&r);
        et_status status = et_trainer_fit(r.trainer, ET_TIME_UNSET);
        const char *why = take_error(cx);
        ok(status == ET_EINVAL && strcmp(why, rows[i].why) == 0, "%s", rows[i].why);
        run_close(&r);
    }
}

/* An algorithm of somebody's, which none of the core's is like. */
static et_status
wait_longer(struct et_algorithm *self, enum et_event event, struct et_state *s,
            struct et_log *log)
{
    (void)self;
    (void)event;
    (void)s;
    (void)log;
    return ET_OK;
}
static const struct et_option waiting_table[] = {
    {.name = "until", .type = ET_OPT_TIME, .def = "1ba", .help = "when it begins"},
    {.name = NULL},
};
static const struct et_algorithm_class waiting = {
    .info = {.name = "waiting",
             .options = waiting_table,
             .options_size = sizeof(struct et_time)},
    .events = ET_ON(BATCH_START),
    .apply = wait_longer,
};

/* The same of a component's options: NAME's OPTION, of a schedule or of what has
 * hooks. */
static et_status
fit_with(struct et_ctx *cx, const char *kind, const char *name, const char *option,
         const char *value)
{
    struct et_scheduler schedule = {.type = et_scheduler_find(name)};
    const struct et_algorithm_class *a = &waiting;
    const struct et_callback_class *c = et_callback_find(name);
    const struct et_component *is = kind[0] == 's'   ? &schedule.type->info
                                    : kind[0] == 'a' ? &a->info
                                                     : &c->info;
    const char *const pairs[] = {option, value, NULL};
    struct run_setup setup = {.n = 8};
    struct et_algorithm *algorithm = NULL;
    struct et_callback *callback = NULL;
    struct run r;
    void *options;
    need(cx, et_options_new(cx, is, pairs, &options));
    if (kind[0] == 'a')
        need(cx, et_algorithm_new(cx, a, options, &algorithm));
    if (kind[0] == 'c')
        need(cx, et_callback_new(cx, c, options, scratch_folder(), &callback));
    setup.algorithms = &algorithm;
    setup.n_algorithms = algorithm != NULL;
    setup.callbacks = &callback;
    setup.n_callbacks = callback != NULL;
    run_prepare(&r, cx, &setup);
    schedule.options = options;
    r.config.schedulers = &schedule;
    r.config.n_schedulers = kind[0] == 's';
    run_start(&r);
    et_status status = et_trainer_fit(r.trainer, ET_TIME_UNSET);
    run_close(&r);
    et_algorithm_free(&algorithm);
    et_callback_free(&callback);
    et_options_free(is, &options);
    return status;
}

static void
test_uncounted_options(struct et_ctx *cx)
{
    static const struct {
        const char *kind, *name, *option, *value, *why;
    } rows[] = {
        {"callback", "weights_saver", "interval", "100tok",
         "weights_saver: interval 100tok counts tokens, and the training data have "
         "none"},
        {"callback", "weights_saver", "at", "[1ba, 2iter]",
         "weights_saver: at 2iter counts iterations: it needs an iteration_length"},
        {"scheduler", "multistep", "milestones", "[1ba, 100tok]",
         "multistep: milestones 100tok counts tokens, and the training data have none"},
        {"algorithm", "waiting", "until", "100tok",
         "waiting: until 100tok counts tokens, and the training data have none"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        et_status status =
            fit_with(cx, rows[i].kind, rows[i].name, rows[i].option, rows[i].value);
        const char *why = take_error(cx);
        ok(status == ET_EINVAL && strcmp(why, rows[i].why) == 0, "%s", why);
    }
}

/* ---- parts that are not trained ---- */

enum { MOST_VALUES = 1 << 18 };

/* All of the model's parameters into OUT; how many are in the layers before the
 * last. */
static int
read_parameters(const struct run *r, float *out)
{
    struct et_leaves l;
    int n = 0, before = 0;
    need(r->cx, et_module_leaves(r->cx, r->model->root, ET_PARAM, &l));
    for (int i = 0; i < l.n; i++) {
        struct et_tensor *t = l.v[i].param->tensor;
        int64_t count = et_desc_count(&t->desc);
        if (n + count > MOST_VALUES)
            bail("the model is too large");
        need(r->cx, et_tensor_read(r->cx, t, out + n, et_desc_bytes(&t->desc)));
        n += (int)count;
        if (strncmp(l.v[i].name, "fc.", 3) != 0)
            before = n;
    }
    et_leaves_release(&l);
    return before;
}

/* With an optimizer that would let every parameter decay. */
static void
test_frozen(struct et_ctx *cx)
{
    static const char *const decay[] = {"lr", "0.01", "weight_decay", "0.1", NULL};
    static float at_first[MOST_VALUES], tuned[MOST_VALUES], again[MOST_VALUES];
    const struct et_module_range rest = {.to = -2, .as_eval = true};
    struct run r;
    struct tape tape;
    prepare(&r, cx, &tape,
            (struct run_setup){
                .n = 8, .optimizer = "decoupled_adamw", .optimizer_options = decay});
    need(cx, et_module_freeze(cx, r.model->root, &rest, NULL));
    run_start(&r);
    size_t last = (size_t)read_parameters(&r, at_first) * sizeof *at_first;
    fit(&r, &(struct et_fit_options){.duration = ET_EPOCHS(1)});
    read_parameters(&r, tuned);
    ok(memcmp(at_first, tuned, last) == 0, "what is frozen keeps its bits");
    ok(memcmp((char *)at_first + last, (char *)tuned + last, sizeof(float)) != 0,
       "the rest is trained");

    need(cx, et_module_unfreeze(cx, r.model->root, &rest, NULL));
    need(cx, et_state_follow_surgery(r.state));
    read_parameters(&r, again);
    ok(memcmp(tuned, again, sizeof tuned) == 0, "unfreezing changes no value");
    fit(&r, &(struct et_fit_options){.duration = ET_EPOCHS(1)});
    read_parameters(&r, again);
    ok(memcmp(tuned, again, sizeof(float)) != 0, "and then all is trained");
    run_close(&r);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_sequence(cx);
    test_pieces(cx);
    test_rates(cx);
    test_new_schedule(cx);
    test_parts(cx);
    test_uncounted(cx);
    test_uncounted_options(cx);
    test_frozen(cx);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
