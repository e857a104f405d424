/* SPDX-License-Identifier: Apache-2.0 */
/* pace.c: when a run saves by itself, what it says of saves that fail, and what they
 * make of its outcome. A second passes with each batch, and every save has ended before
 * the next one. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/trainer/trainer_impl.h"
#include "t/fault/fixture.h"
#include "t/tap.h"

static char dir[512];
static struct eti_seams seams;
static struct et_ctx *cx;

/* ---- a clock, and a disk ---- */

static pthread_t trains;
static double now, beside;   /* of the thread that trains, and of those that write */
static int saves;            /* that have begun */
static bool beside_training; /* nobody waits for a save before the next one */

/* What the test wants of save I, from 0: how long training stands, how many seconds of
 * a processor it takes beside, and the error that its disk has; 0: none. */
struct plan {
    double stall, cpu;
    int error;
};
static const struct plan *plans;
static int n_plans;

static const struct plan *
plan_of(int save)
{
    static const struct plan none = {0, 0, 0};
    return save >= 0 && save < n_plans ? &plans[save] : &none;
}

/* Half a second passes whenever a thread that writes looks. */
static double
look(void)
{
    return pthread_equal(pthread_self(), trains) ? now : (beside += .5);
}

static double
wall(void)
{
    return 5000.25;
}

static void
reach(const char *point)
{
    if (strcmp(point, "checkpoint.snapshot") == 0)
        now += plan_of(saves++)->stall;
}

static int
sync_or_not(int fd)
{
    (void)fd;
    if (beside_training)
        (void)nanosleep(&(struct timespec){0, 2000000}, NULL);
    errno = plan_of(saves - 1)->error;
    return errno ? -1 : 0;
}

static void
work(double seconds)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    const double end = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec + seconds;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    while ((double)t.tv_sec + 1e-9 * (double)t.tv_nsec < end);
}

static int
rename_slowly(int from_dir, const char *from, int to_dir, const char *to)
{
    static int last;
    if (last != saves) /* its first file */
        work(plan_of(saves - 1)->cpu);
    last = saves;
    return eti_system.file.rename(from_dir, from, to_dir, to);
}

/* ---- runs ---- */

static struct saving_run run;

/* What was said, an entry each: "E3 ..." with the batch behind the level. */
static char said[2048];

static void
keep(void *data, enum et_log_level level, const char *text)
{
    const size_t used = strlen(said);
    const char *why = strstr(text, " was not saved ");
    (void)data;
    if (level < ET_LOG_WARN || !run.r.state)
        return;
    text = why ? why + strlen(" was not saved ") : text;
    snprintf(said + used, sizeof said - used, "%s%c%d %.*s", used ? "\n" : "",
             level == ET_LOG_WARN ? 'W' : 'E', (int)run.r.state->timestamp.batch,
             (int)strcspn(text, ":"), text);
}

/* The records of checkpoints: "saved@20", and what the last of them counted. */
static char told[2048];
static double stall, seconds, bytes;

static void
record(struct et_sink *sink, const struct et_record *r)
{
    const size_t used = strlen(told);
    (void)sink;
    if (r->kind != ET_RECORD_CHECKPOINT)
        return;
    snprintf(told + used, sizeof told - used, "%s%.*s@%d", used ? " " : "",
             (int)strcspn(r->text, " "), r->text, (int)r->ba);
    for (int i = 0; i < r->n; i++) {
        double *to = strcmp(r->entry[i].name, "checkpoint/stall_seconds") == 0 ? &stall
                     : strcmp(r->entry[i].name, "checkpoint/seconds") == 0 ? &seconds
                     : strcmp(r->entry[i].name, "checkpoint/bytes") == 0   ? &bytes
                                                                           : NULL;
        if (to)
            *to = r->entry[i].value;
    }
}

/* A second has passed, and what was being written is there. */
static et_status
tick(struct et_callback *self, enum et_event event, const struct et_state *s,
     struct et_log *log)
{
    (void)self, (void)event, (void)s, (void)log;
    now += 1;
    if (!beside_training)
        (void)eti_settle_save(run.r.trainer);
    return ET_OK;
}

static const struct et_callback_class ticking = {
    .info = {.name = "ticking"}, .events = ET_ON(BATCH_END), .run = tick};

/* A run that saves as TO says, and to which the saves PLAN happen. */
static void
prepare_run(const struct et_checkpoint_config *to, const struct plan *plan, int n)
{
    static struct et_callback *callbacks[1];
    static struct et_sink sink = {.write = record};
    now = 1000;
    beside = 5;
    saves = 0;
    plans = plan;
    n_plans = n;
    told[0] = said[0] = '\0';
    remove_tree(dir);
    need(cx, et_callback_new(cx, &ticking, NULL, NULL, &callbacks[0]));
    run.r.state = NULL;
    saving_prepare(&run, cx, &(struct saving_setup){.checkpoint = to, .sink = &sink});
    run.r.config.callbacks = callbacks;
    run.r.config.n_callbacks = 1;
}

static void
start_run(void)
{
    et_status status;
    if (!saving_start(&run, &status))
        bail("%s", take_error(cx));
}

static void
open_run(const struct et_checkpoint_config *to, const struct plan *plan, int n)
{
    prepare_run(to, plan, n);
    start_run();
}

static void
close_run(void)
{
    struct et_callback *c = (struct et_callback *)run.r.config.callbacks[0];
    saving_close(&run);
    run.r.state = NULL;
    et_callback_free(&c);
}

/* ---- when ---- */

/* A save may cost 3.5 % of the time: the next one waits for that, for 5 s at least, and
 * for 20 s after one that failed. */
static void
test_pace(void)
{
    static const struct plan plan[] = {
        {1.41, 0, 0},   /* at 20; it is heard of at 21, and 40.3 s go by */
        {.001, 0, 0},   /* at 62: 5 s */
        {.001, 0, EIO}, /* at 68: 20 s */
        {.35, .045, 0}, /* at 89: 11.3 s, of which the processor's are 1.3 */
        {2.25, 0, 0},   /* 64.3 s */
    };
    struct et_checkpoint_config to = saves_to(dir, 2);
    to.only_at_end = false;
    open_run(&to, plan, sizeof plan / sizeof *plan);
    need(cx, et_trainer_fit(run.r.trainer, ET_BATCHES(150)));
    is_str(told,
           "begun@20 saved@21 begun@62 saved@63 begun@68 failed@69 begun@89 saved@90 "
           "begun@102 saved@103 begun@150 saved@150",
           "a run saves as often as saves are cheap");
    close_run();
}

static void
test_numbers(void)
{
    static const struct plan plan[] = {{1.25, 0, 0}};
    struct et_checkpoint_config to = saves_to(dir, 2);
    open_run(&to, plan, 1);
    need(cx, et_trainer_fit(run.r.trainer, ET_BATCHES(3)));
    is_str(told, "begun@3 saved@3",
           "a save is told when it begins and when it is there");
    ok(fabs(stall - 1.25) < 1e-9, "with the time for which training stood (%g)", stall);
    is_near(seconds, .5, 1e-9, "and that of writing it");
    ok(bytes > 1000 && bytes == floor(bytes), "and its bytes (%g)", bytes);
    close_run();
}

/* ---- what asks for a save ---- */

static int asked;                 /* by a signal, */
static int64_t signal_at;         /* in that batch; */
static int64_t ask_at, epoch_ask; /* by the program; at an epoch's end, after that */
static int64_t first_bad, last_bad;
static char due[128]; /* batches at whose end a hook was told of a save */

static et_status
ask(void *data, struct et_state *s, enum et_event event)
{
    const int64_t batch = s->timestamp.batch;
    const size_t used = strlen(due);
    (void)data;
    if (s->checkpoint_due)
        snprintf(due + used, sizeof due - used, "%s%s@%d", used ? " " : "",
                 event == ET_EVENT_BATCH_CHECKPOINT ? "batch" : et_event_name(event),
                 (int)batch);
    if (event == ET_EVENT_BATCH_END && batch == ask_at)
        ok(eti_ask_to_save(run.r.trainer), "a run that saves can be asked to");
    if (event == ET_EVENT_EPOCH_END && batch == epoch_ask)
        (void)eti_ask_to_save(run.r.trainer);
    if (event == ET_EVENT_BATCH_END && batch == signal_at)
        asked = 1;
    return ET_OK;
}

static et_status
spoil(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    const int64_t batch = s->timestamp.batch + 1;
    (void)self, (void)event, (void)log;
    if (batch >= first_bad && batch <= last_bad)
        s->loss = et_add_scalar(s->graph, s->loss, INFINITY);
    return ET_OK;
}

static const struct et_algorithm_class spoiling = {
    .info = {.name = "spoiling"}, .events = ET_ON(AFTER_LOSS), .apply = spoil};

static void
open_asked(struct et_checkpoint_config *to, struct et_algorithm **algorithms)
{
    static const struct et_trainer_steps steps = {.at_event = ask};
    due[0] = '\0';
    asked = 0;
    to->asked = &asked;
    prepare_run(to, NULL, 0);
    run.r.config.steps = &steps;
    run.r.config.algorithms = algorithms;
    run.r.config.n_algorithms = 1;
    run.r.config.nonfinite_action = ET_NONFINITE_SKIP;
    start_run();
}

static void
test_reasons(void)
{
    struct et_algorithm own = {.type = &spoiling, .cx = cx}, *algorithms[] = {&own};
    struct et_checkpoint_config to = saves_to(dir, -1);
    ask_at = 3;
    signal_at = 5;
    epoch_ask = 14;
    first_bad = last_bad = 0;
    to.only_at_end = false;
    to.interval = ET_BATCHES(7);
    open_asked(&to, algorithms);
    need(cx, et_trainer_fit(run.r.trainer, ET_BATCHES(16)));
    is_str(due, "batch@3 batch@5 batch@7 batch@14 batch@16",
           "a save is due for its interval, when a signal or the program asks, and at "
           "the end");
    is_int(asked, 0, "a signal that was heeded is taken back");
    close_run();

    /* Batches 4 to 6 are not finite; an interval that was missed is not made up
     * for, but a time of the list is. */
    const struct et_time at[] = {ET_BATCHES(5), ET_BATCHES(9)};
    ask_at = epoch_ask = signal_at = 0;
    first_bad = 4;
    last_bad = 6;
    to.interval = ET_BATCHES(4);
    to.at = at;
    to.n_at = 2;
    open_asked(&to, algorithms);
    need(cx, et_trainer_fit(run.r.trainer, ET_BATCHES(11)));
    is_str(due, "batch@7 batch@8 batch@9 batch@11",
           "what is due behind a batch that is not finite waits for one that is");
    close_run();
    first_bad = 1;
    last_bad = 100;
    open_asked(&to, algorithms);
    need(cx, et_trainer_fit(run.r.trainer, ET_BATCHES(3)));
    is_str(due, "", "a run that has learned nothing saves nothing at its end");
    close_run();
    to.interval = ET_NEVER;
    first_bad = last_bad = 0;
    to.n_at = 0;
    open_asked(&to, algorithms);
    need(cx, et_trainer_fit(run.r.trainer, ET_BATCHES(9)));
    is_str(due, "batch@9", "without an interval a run is saved at its end");
    close_run();
}

/* ---- what a checkpoint says of itself ---- */

static void
test_manifest(void)
{
    struct et_checkpoint_config to = saves_to(dir, 2);
    struct eti_checkpoint c;
    char name[ETI_STEP_NAME];
    to.incarnation = 3;
    to.label = "{run_name}-{batch}";
    to.recipe = "0123";
    prepare_run(&to, NULL, 0);
    run.r.config.run_name = "calm-heron";
    start_run();
    need(cx, et_trainer_fit(run.r.trainer, ET_BATCHES(10)));
    need(cx, eti_store_read(cx, dir, eti_step_name(10, name), &c));
    const struct eti_manifest *m = &c.manifest;
    const int64_t counts[] = {m->incarnation,    m->step,   m->epoch,
                              m->batch_in_epoch, m->sample, m->world_size};
    static const int64_t want[] = {3, 10, 1, 3, 40, 1};
    for (int i = 0; i < 6; i++)
        is_int(counts[i], want[i], "number %d of a manifest is its own", i);
    is_near(m->saved, 5000.25, 1e-9, "it has the time of day");
    is_str(m->run_id, to.run_id, "the run's id");
    is_str(m->run_name, "calm-heron", "its name");
    is_str(m->recipe, "0123", "its recipe");
    is_str(m->label, "calm-heron-10", "and a label");
    eti_checkpoint_release(&c);
    close_run();
}

/* ---- what is said of failures ---- */

static void
test_failures(void)
{
    enum { SAVES = 130 };
    static struct plan plan[SAVES];
    struct et_checkpoint_config to = saves_to(dir, 2);
    to.only_at_end = false;
    to.interval = ET_BATCHES(1);
    for (int i = 0; i < SAVES; i++) { /* of batch I + 1 */
        plan[i].error = i == 5 || i == 6 || i == 7 ? ENOSPC : EIO;
        if (i == 3 || i == 16 || i >= 117)
            plan[i].error = 0;
    }
    open_run(&to, plan, SAVES);
    need(cx, et_trainer_fit(run.r.trainer, ET_BATCHES(SAVES)));
    is_str(said,
           "W2 (1 in a row)\nW3 (2 in a row)\nE4 (3 in a row)\n"
           "W6 (1 in a row)\nW7 (2 in a row)\nE8 (3 in a row)\nE10 (5 in a row)\n"
           "E15 (10 in a row)\n"
           "W18 12 checkpoints in a row were not saved before ep2-ba17\n"
           "W19 (1 in a row)\nW20 (2 in a row)\nE21 (3 in a row)\nE28 (10 in a row)\n"
           "E118 (100 in a row)\n"
           "W119 100 checkpoints in a row were not saved before ep16-ba118",
           "three failures are told, others with a reason of their own or a number to "
           "tell");
    close_run();
    to.stop_on_failure = true;
    open_run(&to, plan + 4, SAVES - 4);
    need(cx, et_trainer_fit(run.r.trainer, ET_BATCHES(SAVES)));
    is_int(run.r.state->timestamp.batch, 4,
           "the third in a row, which is heard of after a batch, ends a run that asks "
           "for that");
    is_int(et_trainer_outcome(run.r.trainer), ET_OUTCOME_UNSAVED,
           "whose end is not saved");
    close_run();
}

/* A save that is due waits for the one before, and hears what became of that. */
static void
test_behind_each_other(void)
{
    static const struct plan plan[] = {{0, 0, EIO}, {0, 0, 0}, {0, 0, EIO}};
    struct et_checkpoint_config to = saves_to(dir, 2);
    to.only_at_end = false;
    to.interval = ET_BATCHES(1);
    open_run(&to, plan, 3);
    beside_training = true;
    need(cx, et_trainer_fit(run.r.trainer, ET_BATCHES(3)));
    beside_training = false;
    is_str(told, "begun@1 failed@2 begun@2 saved@3 begun@3 failed@3",
           "a save that is due hears of the one before");
    close_run();
}

/* ---- outcomes ---- */

static volatile int interrupt;

static et_status
end_it(void *data, struct et_state *s, enum et_event event)
{
    const int *way = data;
    if (event != ET_EVENT_BATCH_END || s->timestamp.batch < 3)
        return ET_OK;
    if (*way == 1)
        interrupt = 1;
    if (*way == 2)
        et_state_stop(s, "a hook asks for it");
    return ET_OK;
}

/* A run whose last state could not be saved says so, however it ended. */
static void
test_outcomes(void)
{
    static const struct {
        int way;
        const char *target;
        enum et_outcome outcome;
    } row[] = {
        {0, NULL, ET_OUTCOME_FINISHED},
        {1, NULL, ET_OUTCOME_STOPPED},
        {2, NULL, ET_OUTCOME_FINISHED},
        {0, "accuracy>=0", ET_OUTCOME_TARGET_REACHED},
        {0, "accuracy>2", ET_OUTCOME_TARGET_MISSED},
    };
    static const struct plan good[] = {{0, 0, 0}}, bad[] = {{0, 0, EIO}};
    const struct et_checkpoint_config to = saves_to(dir, 2);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (int fails = 0; fails < 2; fails++) {
            int way = row[i].way;
            const struct et_trainer_steps steps = {.data = &way, .at_event = end_it};
            interrupt = 0;
            prepare_run(&to, fails ? bad : good, 1);
            run.r.config.interrupt = &interrupt;
            run.r.config.steps = &steps;
            run.r.config.target = row[i].target;
            run.r.config.n_evaluators = row[i].target != NULL;
            start_run();
            need(cx, et_trainer_fit(run.r.trainer, ET_BATCHES(5)));
            is_int(et_trainer_outcome(run.r.trainer),
                   fails ? ET_OUTCOME_UNSAVED : row[i].outcome,
                   "a run that ends in way %d and whose save %s", (int)i,
                   fails ? "fails is not saved" : "works has its outcome");
            close_run();
        }
}

static et_status
fail(void *data, struct et_state *s, enum et_event event)
{
    (void)data;
    if (event != ET_EVENT_BATCH_END || s->timestamp.batch != 2)
        return ET_OK;
    et_status status = ET_FAIL(s->cx, ET_EINVAL, "a hook of batch 2 fails");
    et_error_set_code(s->cx, ET_E_CHECKPOINT);
    et_hint(s->cx, "ask another one");
    return status;
}

/* What ends a run is told whole, whatever a save that goes on has to say. */
static void
test_broken_off(void)
{
    static const struct plan plan[] = {{0, 0, EIO}, {0, 0, EIO}};
    static const struct et_trainer_steps steps = {.at_event = fail};
    struct et_checkpoint_config to = saves_to(dir, 2);
    to.only_at_end = false;
    to.interval = ET_BATCHES(1);
    beside_training = true;
    prepare_run(&to, plan, 2);
    run.r.config.steps = &steps;
    start_run();
    is_int(et_trainer_fit(run.r.trainer, ET_BATCHES(5)), ET_EINVAL, "a run fails");
    beside_training = false;
    is_str(told, "begun@1 failed@2", "while it saves, which fails as well");
    const struct et_error *error = et_error_get(cx);
    is_str(error->message, "a hook of batch 2 fails", "and says why it did");
    is_str(error->hint, "ask another one", "with what to do");
    is_int((int)error->code, ET_E_CHECKPOINT, "and the code");
    et_error_clear(cx);
    close_run();
}

/* ---- by the program ---- */

/* et_trainer_save says what became of it, and saves nothing twice. */
static void
test_asked(void)
{
    static const struct plan plan[] = {{0, 0, EIO}};
    const struct et_checkpoint_config to = saves_to(dir, 2);
    open_run(&to, plan, 1);
    is_int(et_trainer_save(run.r.trainer), ET_EIO, "a save that fails says so");
    ok(strstr(take_error(cx), "cannot write") != NULL, "and why");
    is_int(et_trainer_save(run.r.trainer), ET_OK, "the next one works");
    is_int(et_trainer_save(run.r.trainer), ET_OK, "another of the same state");
    is_str(told, "begun@0 failed@0 begun@0 saved@0", "is the one that is there");
    need(cx, et_trainer_fit(run.r.trainer, ET_BATCHES(1)));
    is_int(et_trainer_outcome(run.r.trainer), ET_OUTCOME_FINISHED,
           "a save that works makes up for one that failed");
    close_run();
}

int
main(void)
{
    struct et_alloc_stats stats;
    trains = pthread_self();
    cx = need_ctx();
    seams = eti_system;
    seams.monotonic = look;
    seams.wall = wall;
    seams.reach = reach;
    seams.file.sync = sync_or_not;
    seams.file.rename = rename_slowly;
    eti_ctx_set_seams(cx, &seams);
    et_ctx_set_log(cx, ET_LOG_WARN, keep, NULL);
    snprintf(dir, sizeof dir, "%s", path_to(scratch_folder(), "checkpoints"));
    test_pace();
    test_numbers();
    test_reasons();
    test_manifest();
    test_failures();
    test_behind_each_other();
    test_outcomes();
    test_broken_off();
    test_asked();
    remove_tree(dir);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
