/* SPDX-License-Identifier: Apache-2.0 */
/* When a trainer evaluates, on what, with which metrics, and in how much memory. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"
#include "t/train/recipe_run.h"
#include "t/train/recipes.h"

/* ---- when ---- */

/* Says after which batch whom it saw evaluated, and after how many batches of his: "4
 * eval 2" and a full stop. Every batch takes 0.6 s by its clock. */
static char seen[512];

static et_status
watch(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    (void)self;
    (void)log;
    size_t at = strlen(seen);
    if (event == ET_EVENT_BATCH_END) {
        s->timestamp.total_wct = 0.6 * (double)s->timestamp.batch;
        return ET_OK;
    }
    snprintf(seen + at, sizeof seen - at, "%d %s %d. ", (int)s->timestamp.batch,
             s->dataloader_label, (int)s->eval_timestamp.batch);
    return ET_OK;
}

static const struct et_algorithm_class watch_class = {
    .info = {.name = "watch"},
    .events = ET_ON(BATCH_END) | ET_ON(EVAL_END),
    .apply = watch,
};

static struct et_algorithm watcher, *watchers[] = {&watcher};

static struct run_setup
watched(struct et_ctx *cx, struct run_setup setup)
{
    watcher = (struct et_algorithm){.type = &watch_class, .cx = cx};
    setup.algorithms = watchers;
    setup.n_algorithms = 1;
    seen[0] = '\0';
    return setup;
}

/* Epochs have 2 batches of 4 samples, and an evaluation 2 batches. */
static void
test_intervals(struct et_ctx *cx)
{
    static const struct {
        struct et_time interval, max, iteration;
        const char *want, *what;
    } rows[] = {
        {{2, ET_TIME_EPOCH},
         {3, ET_TIME_EPOCH},
         {0, ET_TIME_EPOCH},
         "4 eval 2. 6 eval 2. ",
         "every second epoch, and at the end"},
        {{3, ET_TIME_BATCH},
         {3, ET_TIME_EPOCH},
         {0, ET_TIME_EPOCH},
         "3 eval 2. 6 eval 2. ",
         "every third batch, and not again at the end"},
        {{10, ET_TIME_SAMPLE},
         {4, ET_TIME_EPOCH},
         {0, ET_TIME_EPOCH},
         "3 eval 2. 5 eval 2. 8 eval 2. ",
         "with the batch that crosses a multiple of 10 samples"},
        {{1, ET_TIME_SECOND},
         {6, ET_TIME_BATCH},
         {0, ET_TIME_EPOCH},
         "2 eval 2. 4 eval 2. 5 eval 2. 6 eval 2. ",
         "with the batch that crosses a second of training"},
        {{0.25, ET_TIME_DURATION},
         {4, ET_TIME_EPOCH},
         {0, ET_TIME_EPOCH},
         "2 eval 2. 4 eval 2. 6 eval 2. 8 eval 2. ",
         "every quarter of some epochs"},
        {{0.4, ET_TIME_DURATION},
         {5, ET_TIME_BATCH},
         {0, ET_TIME_EPOCH},
         "2 eval 2. 4 eval 2. 5 eval 2. ",
         "every .4 of some batches"},
        {{0.3, ET_TIME_DURATION},
         {24, ET_TIME_SAMPLE},
         {0, ET_TIME_EPOCH},
         "2 eval 2. 4 eval 2. 6 eval 2. ",
         "every .3 of some samples"},
        {{0.3, ET_TIME_DURATION},
         {7, ET_TIME_BATCH},
         {0, ET_TIME_EPOCH},
         "3 eval 2. 6 eval 2. 7 eval 2. ",
         "every .3 of 7 batches, which are 3"},
        {{1, ET_TIME_ITERATION},
         {5, ET_TIME_EPOCH},
         {2, ET_TIME_EPOCH},
         "4 eval 2. 8 eval 2. 10 eval 2. ",
         "every iteration of two epochs"},
        {{3, ET_TIME_EPOCH},
         {1, ET_TIME_BATCH},
         {0, ET_TIME_EPOCH},
         "1 eval 2. ",
         "at the end, where that comes first"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct run r;
        struct run_setup setup =
            watched(cx, (struct run_setup){.evaluate = true,
                                           .eval_interval = rows[i].interval,
                                           .max_duration = rows[i].max,
                                           .iteration_length = rows[i].iteration});
        run_open(&r, cx, &setup);
        need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
        is_str(seen, rows[i].want, "evaluates %s", rows[i].what);
        run_close(&r);
    }
}

#define EVAL_TOKENS                                                                    \
    GPT_REST "eval_data: {name: synthetic_tokens, num_samples: 32,\n"                  \
             "  vocab_size: 64, seq_len: 16, batch_size: 16}\n"

/* What a run of TEXT is seen to evaluate. */
static void
watch_recipe(struct et_ctx *cx, const char *text, const struct recipe_choice *choice)
{
    struct recipe_run r;
    recipe_prepare(&r, cx, text, choice);
    watched(cx, (struct run_setup){0});
    r.parts.algorithm[0] = &watcher;
    r.parts.config.n_algorithms = 1;
    recipe_start(&r);
    recipe_fit(&r);
    r.parts.config.n_algorithms = 0;
    recipe_close(&r);
}

/* 4 batches of 256 tokens. */
static void
test_tokens(struct et_ctx *cx)
{
    watch_recipe(cx, "max_duration: 1ep\neval_interval: 600tok\n" EVAL_TOKENS,
                 &(struct recipe_choice){.device = "ref"});
    is_str(seen, "3 eval 2. 4 eval 2. ",
           "evaluates when 600 tokens are done, and at the end");
}

/* A run that goes on from the checkpoint of batch 3 begins with the end of iteration 3,
 * which was not due. */
static void
test_iterations(struct et_ctx *cx)
{
    static const char text[] = "max_duration: 5ba\niteration_length: 256tok\n"
                               "eval_interval: 2iter\n" EVAL_TOKENS;
    char folder[512];
    snprintf(folder, sizeof folder, "%s/iterations", scratch_folder());
    const struct et_checkpoint_config save = {.directory = folder,
                                              .interval = ET_BATCHES(3),
                                              .keep = -1,
                                              .run_id = "17",
                                              .incarnation = 1};
    const struct et_load_config load = {.directory = folder,
                                        .name = "step-000000000003"};
    watch_recipe(cx, text,
                 &(struct recipe_choice){.device = "ref", .checkpoint = &save});
    is_str(seen, "2 eval 2. 4 eval 2. 5 eval 2. ", "evaluates every second iteration");
    watch_recipe(cx, text, &(struct recipe_choice){.device = "ref", .load = &load});
    is_str(seen, "4 eval 2. 5 eval 2. ", "also behind a checkpoint between them");
}

/* ---- on what ---- */

static const char *const only_accuracy[] = {"^acc", NULL};
static const char *const both[] = {"nothing", "ross", "accuracy", NULL};
static const char *const none[] = {"^Cross$", NULL};
static const char *const bad[] = {"(", NULL};

static int
count_metrics(const struct run *r, const char *label)
{
    int n = 0;
    char start[64];
    snprintf(start, sizeof start, "metrics/%s/", label);
    for (int i = 0; i < r->state->n_eval_metrics; i++)
        n += strncmp(r->state->eval_metrics[i].name, start, strlen(start)) == 0;
    return n;
}

static et_status
start_with(struct run *r, const char *const *metrics)
{
    struct et_trainer *t;
    r->evaluator.metrics = metrics;
    et_status status = et_trainer_new(r->cx, &r->config, &t);
    et_trainer_free(&t);
    return status;
}

static void
test_many(struct et_ctx *cx)
{
    struct run r, small;
    struct run_setup setup = watched(cx, (struct run_setup){.n = 8, .with = &small});
    double value;
    run_open(&small, cx, &(struct run_setup){.n = 4});
    run_prepare(&r, cx, &setup);
    const struct et_evaluator list[] = {
        {.label = "every",
         .loader = r.eval,
         .interval = ET_BATCHES(1),
         .metrics = both},
        {.loader = small.eval, .metrics = only_accuracy}, /* the trainer's interval */
        {.label = "never", .loader = r.eval, .interval = ET_NEVER},
        {.label = "late", .loader = small.eval, .interval = ET_EPOCHS(5)},
    };
    r.config.evaluators = list;
    r.config.n_evaluators = 4;
    run_start(&r);
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    is_str(seen, "1 every 2. 2 every 2. 2 eval 1. 2 late 1. ",
           "evaluators keep their own intervals and data, in their order");
    is_int(count_metrics(&r, "every"), 2, "any of the expressions keeps a metric");
    ok(count_metrics(&r, "eval") == 1 &&
           et_state_metric(r.state, "metrics/eval/Accuracy", &value),
       "one that has no label is called eval; an expression fits anywhere, in any "
       "case");
    is_int(count_metrics(&r, "late"), 2, "without expressions all metrics are kept");
    is_int(count_metrics(&r, "never"), 0, "ET_NEVER is never, not even at the end");

    seen[0] = '\0';
    const struct et_evaluator now = {.label = "now", .loader = small.eval};
    need(cx, et_trainer_eval_on(r.trainer, &now, 1));
    is_str(seen, "2 now 1. ", "other data are evaluated on for once");
    is_int(count_metrics(&r, "now"), 2, "their metrics stay");
    seen[0] = '\0';
    need(cx, et_trainer_eval(r.trainer));
    is_str(seen, "2 every 2. 2 eval 1. 2 never 2. 2 late 1. ",
           "by itself a trainer evaluates on all that it was made with");
    run_close(&r);

    run_prepare(&r, cx, &(struct run_setup){.evaluate = true});
    is_int(start_with(&r, none), ET_EINVAL, "expressions that fit nothing are refused");
    is_str(take_error(cx), "no metric of evaluator 'eval' matches", "by a sentence");
    is_int(start_with(&r, bad), ET_EINVAL, "as is what is no expression");
    is_str(take_error(cx), "'(' is not a regular expression", "by another");
    r.evaluator.metrics = NULL;
    r.evaluator.interval = ET_BATCHES(0);
    is_int(start_with(&r, NULL), ET_EINVAL, "an interval of no batches is refused");
    is_str(
        take_error(cx),
        "evaluator 'eval': an interval of 0ba: ET_NEVER is never, and one that is not "
        "set is the trainer's",
        "by a third, which says how never is said");
    r.evaluator.interval = ET_TIME_UNSET;
    run_start(&r);
    run_close(&r);
    run_close(&small);
}

/* Who interrupts waits for no evaluator that has not begun. */
static void
test_interrupted(struct et_ctx *cx)
{
    static volatile int interrupt;
    struct run r;
    struct run_setup setup = watched(cx, (struct run_setup){.n = 8, .evaluate = true});
    run_prepare(&r, cx, &setup);
    const struct et_evaluator list[] = {{.label = "first", .loader = r.eval},
                                        {.label = "second", .loader = r.eval}};
    r.config.evaluators = list;
    r.config.n_evaluators = 2;
    r.config.interrupt = &interrupt;
    run_start(&r);
    interrupt = 0;
    need(cx, et_state_evaluate(r.state, "all of "));
    is_str(seen, "0 all of first 2. 0 all of second 2. ",
           "a hook may evaluate on all that there is");
    seen[0] = '\0';
    interrupt = 1;
    need(cx, et_state_evaluate(r.state, "part of "));
    is_str(seen, "0 part of first 0. ", "who interrupts that waits for no more of it");
    run_close(&r);
}

static void
keep_warning(void *data, enum et_log_level level, const char *text)
{
    (void)level;
    snprintf(data, 256, "%s", text);
}

static void
test_most(struct et_ctx *cx)
{
    enum { MOST = 16 };
    struct run r;
    struct et_evaluator list[MOST + 1];
    char label[MOST + 1][8];
    struct et_trainer *t;
    struct run_setup setup = watched(cx, (struct run_setup){.n = 4});
    run_prepare(&r, cx, &setup);
    for (int i = 0; i <= MOST; i++) {
        snprintf(label[i], sizeof label[i], "e%d", i);
        list[i] = (struct et_evaluator){.label = label[i],
                                        .loader = r.eval,
                                        .interval = ET_TIME_UNSET,
                                        .metrics = only_accuracy};
    }
    r.config.evaluators = list;
    r.config.n_evaluators = MOST + 1;
    is_int(et_trainer_new(cx, &r.config, &t), ET_EINVAL, "17 evaluators are refused");
    is_str(take_error(cx), "more than 16 evaluators", "by a sentence");
    et_trainer_free(&t);
    char twin[] = "e0", said[256] = "";
    list[1].label = twin;
    r.config.n_evaluators = 2;
    et_ctx_set_log(cx, ET_LOG_WARN, keep_warning, said);
    need(cx, et_trainer_new(cx, &r.config, &t));
    et_ctx_set_log(cx, ET_LOG_WARN, NULL, NULL);
    et_trainer_free(&t);
    is_str(said, "two evaluators are called 'e0': the later one's metrics stand",
           "two of one name are told of");
    list[1].label = label[1];
    r.config.n_evaluators = MOST;
    run_start(&r);
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    is_str(seen,
           "1 e0 1. 1 e1 1. 1 e2 1. 1 e3 1. 1 e4 1. 1 e5 1. 1 e6 1. 1 e7 1. 1 e8 1. "
           "1 e9 1. 1 e10 1. 1 e11 1. 1 e12 1. 1 e13 1. 1 e14 1. 1 e15 1. ",
           "a trainer takes 16, and each is evaluated");
    is_int(r.state->n_eval_metrics, MOST, "with its metric");
    run_close(&r);
}

/* A mean of eight losses, in other pieces. */
static void
test_further(struct et_ctx *cx)
{
    static const char *const names[] = {"^loss$", "cross", "matthews", NULL};
    static const char *const usual[] = {"oss", NULL}; /* CrossEntropy, and Loss */
    struct run r;
    run_prepare(&r, cx, &(struct run_setup){.n = 10, .evaluate = true});
    r.evaluator.metrics = usual;
    run_start(&r);
    need(cx, et_trainer_eval(r.trainer));
    is_int(count_metrics(&r, "eval"), 1,
           "an expression that fits a usual metric chooses no further one");
    run_close(&r);
    double loss, entropy, correlation;
    run_prepare(&r, cx, &(struct run_setup){.n = 10, .evaluate = true});
    r.evaluator.metrics = names;
    run_start(&r);
    need(cx, et_trainer_eval(r.trainer));
    is_int(count_metrics(&r, "eval"), 3,
           "an expression that fits no usual metric chooses a further one");
    ok(et_state_metric(r.state, "metrics/eval/Loss", &loss) &&
           et_state_metric(r.state, "metrics/eval/CrossEntropy", &entropy) &&
           fabs(loss - entropy) < 1e-6 * entropy,
       "the loss of a classifier is its cross entropy, by samples, in uneven batches "
       "too");
    ok(et_state_metric(r.state, "metrics/eval/MatthewsCorrCoef", &correlation) &&
           fabs(correlation) <= 1,
       "a correlation is one");
    run_close(&r);
    static const char *const first[] = {"accuracy|corrcoef", NULL};
    run_prepare(&r, cx, &(struct run_setup){.evaluate = true});
    r.evaluator.metrics = first;
    run_start(&r);
    need(cx, et_trainer_eval(r.trainer));
    is_int(count_metrics(&r, "eval"), 1,
           "one that fits a usual metric, the first of them, chooses no further one");
    run_close(&r);
}

/* The samples of a batch: a metric that has no options. */
static struct et_tensor *
count_samples(struct et_graph *g, const struct et_metric_options *options,
              struct et_tensor *outputs, const struct et_samples *samples)
{
    const int64_t one = 1;
    (void)outputs;
    ok(options->ignore_index == ET_IGNORE_INDEX && options->num_classes > 0 &&
           options->model,
       "a metric without options is told what to ignore, the classes and the model");
    return et_fill(g, ET_F32, 1, &one, (double)samples->target->desc.shape[0]);
}

static double
only_sum(const double *sums, int n)
{
    (void)n;
    return sums[0];
}

static void
test_without_options(struct et_ctx *cx)
{
    static const struct et_metric_class counted = {
        .info = {.name = "Counted", .class_name = "Counted"},
        .n_sums = 1,
        .update = count_samples,
        .compute = only_sum,
    };
    const struct et_metric_use use = {.type = &counted};
    struct run r;
    double value = 0;
    run_prepare(&r, cx, &(struct run_setup){.n = 10, .evaluate = true});
    r.config.metrics = &use;
    r.config.n_metrics = 1;
    run_start(&r);
    need(cx, et_trainer_eval(r.trainer));
    ok(et_state_metric(r.state, "metrics/eval/Counted", &value) && value == 10,
       "a metric of a class that has no options is measured");
    run_close(&r);
}

/* ---- memory ---- */

/* Metrics are sums of some hundred numbers, now taken in another order. */
#define ROUNDING 1e-6

static void
test_memory(struct et_ctx *cx)
{
    struct run whole, cut;
    struct et_device_memory peak;
    struct run_setup setup = watched(
        cx, (struct run_setup){.n = 512, .batch_size = 512, .auto_accum = true});
    run_prepare(&whole, cx, &setup);
    const struct et_evaluator list[] = {{.label = "eval", .loader = whole.eval}};
    run_start(&whole);
    need(cx, et_trainer_eval_on(whole.trainer, list, 1));
    et_device_get_memory(whole.dev, &peak);

    run_prepare(&cut, cx, &setup);
    const struct et_evaluator same[] = {{.label = "eval", .loader = cut.eval}};
    run_start(&cut);
    et_device_set_limit(cut.dev, peak.peak_bytes - 20000);
    need(cx, et_trainer_eval_on(cut.trainer, same, 1));
    is_str(seen, "0 eval 1. 0 eval 1. ",
           "a batch that does not fit is evaluated in pieces");
    for (int i = 0; i < 2; i++)
        is_near(cut.state->eval_metrics[i].value, whole.state->eval_metrics[i].value,
                ROUNDING, "%s is what it is in one piece",
                whole.state->eval_metrics[i].name);
    run_close(&cut);

    setup.auto_accum = false;
    run_prepare(&cut, cx, &setup);
    const struct et_evaluator fixed[] = {{.label = "eval", .loader = cut.eval}};
    run_start(&cut);
    et_device_set_limit(cut.dev, peak.peak_bytes - 20000);
    is_int(et_trainer_eval_on(cut.trainer, fixed, 1), ET_ENOMEM,
           "unless grad_accum is fixed");
    et_error_clear(cx);
    run_close(&cut);
    run_close(&whole);
}

/* What the trainer says of pieces: the last number, and how often there was one. */
struct pieces {
    int last, said;
};

static void
hear_pieces(void *data, enum et_log_level level, const char *text)
{
    struct pieces *p = data;
    const char *at = strstr(text, "evaluating batches in ");
    (void)level;
    if (at && sscanf(at, "evaluating batches in %d pieces", &p->last) == 1)
        p->said++;
}

/* What a new trainer comes to within LIMIT bytes; then, where that is not 0, within
 * TIGHTER. */
static struct pieces
cut_within(struct et_ctx *cx, size_t limit, size_t tighter)
{
    struct run r;
    struct pieces p = {.last = 1};
    struct run_setup setup = {.n = 512, .batch_size = 512, .auto_accum = true};
    run_prepare(&r, cx, &setup);
    const struct et_evaluator list[] = {{.label = "eval", .loader = r.eval}};
    run_start(&r);
    et_ctx_set_log(cx, ET_LOG_WARN, hear_pieces, &p);
    for (int i = 0; i < 1 + (tighter > 0); i++) {
        p.said = 0;
        et_device_set_limit(r.dev, i == 0 ? limit : tighter);
        if (et_trainer_eval_on(r.trainer, list, 1) != ET_OK) {
            et_error_clear(cx);
            p = (struct pieces){0}; /* not in any */
            break;
        }
    }
    et_ctx_set_log(cx, ET_LOG_WARN, NULL, NULL);
    run_close(&r);
    return p;
}

/* From a batch that just does not fit down, until it is cut in three. */
static void
test_pieces(struct et_ctx *cx)
{
    enum { TRIES = 64 };
    struct run whole;
    struct et_device_memory peak;
    struct run_setup setup = {.n = 512, .batch_size = 512, .auto_accum = true};
    run_prepare(&whole, cx, &setup);
    const struct et_evaluator list[] = {{.label = "eval", .loader = whole.eval}};
    run_start(&whole);
    need(cx, et_trainer_eval_on(whole.trainer, list, 1));
    et_device_get_memory(whole.dev, &peak);
    run_close(&whole);

    size_t at[4] = {0}; /* the first limit that made so many */
    int asked = 0;
    for (int i = 1; i < TRIES && !at[3]; i++) {
        size_t limit = peak.peak_bytes / TRIES * (size_t)(TRIES - i);
        struct pieces p = cut_within(cx, limit, 0);
        if (p.last == 2 || p.last == 3) {
            asked = p.last == 3 ? p.said : asked;
            at[p.last] = at[p.last] ? at[p.last] : limit;
        }
    }
    ok(at[2] && at[3], "where two pieces do not fit three are tried, not four");
    is_int(asked, 1, "which the planner says before any has run");
    is_int(cut_within(cx, at[2], at[3]).last, 3, "two would not have fitted there");
}

/* ---- what hooks see of an evaluation ---- */

/* The loader's number of batches as hooks see it: in training, in an evaluation, after
 * an evaluation; and the seconds, of which only evaluations take any. */
static struct {
    int64_t in_training, in_evaluation, behind;
    double took, trained;
    struct own_clock *clock;
} shown;

static et_status
show(struct et_callback *self, enum et_event event, const struct et_state *s,
     struct et_log *log)
{
    (void)self;
    (void)log;
    switch (event) {
    case ET_EVENT_BATCH_START:
        shown.in_training = s->dataloader_len;
        return ET_OK;
    case ET_EVENT_EVAL_BATCH_END:
        shown.in_evaluation = s->dataloader_len;
        shown.clock->now += 5;
        return ET_OK;
    case ET_EVENT_EVAL_END:
        shown.took = s->eval_timestamp.total_wct;
        return ET_OK;
    default:
        shown.behind = s->dataloader_len;
        shown.trained = s->timestamp.total_wct;
        return ET_OK;
    }
}

static const struct et_callback_class show_class = {
    .info = {.name = "show", .class_name = "Show"},
    .events = ET_ON(BATCH_START) | ET_ON(EVAL_BATCH_END) | ET_ON(EVAL_END) |
              ET_ON(EPOCH_CHECKPOINT) | ET_ON(FIT_END),
    .run = show,
};

/* Two batches of training an epoch, and one batch of evaluation. */
static void
test_shown(struct et_ctx *cx)
{
    struct run r, small;
    struct et_callback own = {.type = &show_class, .cx = cx}, *callbacks[] = {&own};
    run_open(&small, cx, &(struct run_setup){.n = 4});
    run_prepare(&r, cx,
                &(struct run_setup){.with = &small,
                                    .callbacks = callbacks,
                                    .n_callbacks = 1,
                                    .max_duration = ET_EPOCHS(2)});
    const struct et_evaluator one = {.loader = small.eval};
    r.config.evaluators = &one;
    r.config.n_evaluators = 1;
    shown.clock = own_clock(cx);
    run_start(&r);
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    is_int(shown.in_training * 100 + shown.in_evaluation * 10 + shown.behind, 212,
           "hooks see the number of batches of the loader that is being read");
    is_near(shown.took, 5, 1e-6, "hooks see how long an evaluation took");
    is_near(shown.trained, 0, 1e-6, "an evaluation takes no time of training");
    run_close(&r);
    run_close(&small);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_intervals(cx);
    test_tokens(cx);
    test_iterations(cx);
    test_many(cx);
    test_interrupted(cx);
    test_most(cx);
    test_further(cx);
    test_without_options(cx);
    test_memory(cx);
    test_pieces(cx);
    test_shown(cx);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
