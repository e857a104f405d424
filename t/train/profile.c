/* SPDX-License-Identifier: Apache-2.0 */
/* A profile: which batches it holds, that its spans nest, and how many a step has. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "etude/run.h"
#include "etude/span.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"

enum { DEPTH = 32, MAX_COUNTS = 64 };

/* What a trace came to. */
struct trace {
    json_t *events;
    int begins, ends, depth, deepest;
    int bad_ends;  /* whose innermost open span has another name */
    int backwards; /* times before the one that precedes them */
    int threads;   /* that differ from the first event's */
    struct {
        char key[96]; /* "category/name", kernels as "kernel" */
        int n;
    } count[MAX_COUNTS];
    int n_counts;
};

static void
count(struct trace *t, const char *category, const char *name)
{
    char key[96];
    int i = 0;
    if (strcmp(category, "kernel") == 0)
        snprintf(key, sizeof key, "kernel");
    else
        snprintf(key, sizeof key, "%s/%s", category, name);
    while (i < t->n_counts && strcmp(t->count[i].key, key) != 0)
        i++;
    if (i == MAX_COUNTS)
        bail("more than %d kinds of spans", MAX_COUNTS);
    if (i == t->n_counts)
        memcpy(t->count[t->n_counts++].key, key, sizeof key);
    t->count[i].n++;
}

static int
count_of(const struct trace *t, const char *key)
{
    for (int i = 0; i < t->n_counts; i++)
        if (strcmp(t->count[i].key, key) == 0)
            return t->count[i].n;
    return 0;
}

static void
follow(struct trace *t)
{
    const char *open[DEPTH];
    double last = 0;
    json_int_t thread = -1;
    size_t i;
    json_t *e;
    json_array_foreach(t->events, i, e)
    {
        const char *how = json_string_value(json_object_get(e, "ph"));
        const char *name = json_string_value(json_object_get(e, "name"));
        const char *category = json_string_value(json_object_get(e, "cat"));
        if (strcmp(how, "M") == 0)
            continue;
        double at = json_number_value(json_object_get(e, "ts"));
        json_int_t tid = json_integer_value(json_object_get(e, "tid"));
        thread = thread < 0 ? tid : thread;
        t->threads += tid != thread;
        t->backwards += at < last;
        last = at;
        if (strcmp(how, "B") == 0) {
            count(t, category, name);
            t->begins++;
            if (t->depth < DEPTH)
                open[t->depth] = name;
            t->depth++;
            t->deepest = t->depth > t->deepest ? t->depth : t->deepest;
        } else if (strcmp(how, "E") == 0) {
            t->ends++;
            t->bad_ends += t->depth == 0 || strcmp(open[t->depth - 1], name) != 0;
            t->depth--;
        }
    }
}

static const char *
path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/traces/%s", scratch_folder(), name);
    return path;
}

/* The trace called NAME; its events are NULL when there is none. Removes it. */
static struct trace
take(const char *name)
{
    json_error_t why;
    struct trace t = {.events = json_load_file(path_of(name), 0, &why)};
    if (t.events)
        follow(&t);
    else if (access(path_of(name), F_OK) == 0)
        diag("%s: %s", name, why.text);
    unlink(path_of(name));
    return t;
}

/* What an active step of the run is known to have. Kernels are the reference's. */
static const struct {
    const char *key;
    int n;
} per_step[] = {
    {"event/dataloader", 1},    {"data/wait", 1},
    {"event/batch", 1},         {"event/train_batch", 1},
    {"event/forward", 1},       {"event/loss", 1},
    {"event/backward", 1},      {"graph/replay", 1},
    {"graph/plan", 0},          {"algorithm/label_smoothing", 2},
    {"callback/lr_monitor", 1}, {"kernel", 0}, /* as many as the graph says it ran */
};

struct watcher {
    uint64_t kernels[16]; /* run before each batch */
};

static et_status
watch(struct et_callback *self, enum et_event event, const struct et_state *s,
      struct et_log *log)
{
    struct watcher *w = self->state;
    struct et_graph_stats stats;
    (void)event;
    (void)log;
    et_graph_get_stats(s->graph, &stats);
    if (s->timestamp.batch < 16)
        w->kernels[s->timestamp.batch] = stats.kernels_run;
    return ET_OK;
}

static const struct et_callback_class watcher_class = {
    .info = {.name = "watcher", .class_name = "Watcher"},
    .state_size = sizeof(struct watcher),
    .events = ET_ON(BEFORE_DATALOADER) | ET_ON(FIT_END),
    .run = watch,
};

/* A run of 8 batches in two epochs under SCHEDULE. */
static struct watcher
profiled(struct et_ctx *cx, struct et_recipe_profiler schedule, bool evaluate)
{
    struct et_callback *callback[3];
    struct et_algorithm *smoothing;
    struct run r;
    need(cx, et_profiler_new(cx, &schedule, scratch_folder(), &callback[0]));
    need(cx,
         et_callback_new(cx, et_callback_find("lr_monitor"), NULL, NULL, &callback[1]));
    need(cx, et_callback_new(cx, &watcher_class, NULL, NULL, &callback[2]));
    need(cx,
         et_algorithm_new(cx, et_algorithm_find("label_smoothing"), NULL, &smoothing));
    run_open(&r, cx,
             &(struct run_setup){
                 .n = 16,
                 .evaluate = evaluate,
                 .max_duration = ET_EPOCHS(2),
                 .algorithms = &smoothing,
                 .n_algorithms = 1,
                 .callbacks = callback,
                 .n_callbacks = 3,
             });
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    ok(!et_ctx_tracer(cx), "behind its end nothing of a run is traced");
    struct watcher seen = *(struct watcher *)callback[2]->state;
    run_close(&r);
    et_algorithm_free(&smoothing);
    for (int i = 0; i < 3; i++)
        et_callback_free(&callback[i]);
    return seen;
}

static void
test_steps(struct et_ctx *cx)
{
    enum { ACTIVE = 2 };
    struct watcher w = profiled(
        cx, (struct et_recipe_profiler){.warmup = 1, .active = ACTIVE, .repeat = 1},
        false);
    struct trace t = take("ep0-ba2-rank0.json");
    ok(t.events != NULL, "one batch to warm up: the trace begins at the second");
    is_int(t.begins, t.ends, "every span that begins ends");
    is_int(t.bad_ends + t.depth, 0, "they nest");
    is_int(t.backwards, 0, "time never runs backwards");
    is_int(t.threads, 0, "all are of one thread");
    ok(t.deepest >= 3, "kernels are inside replays, those inside batches");
    for (size_t i = 0; i < sizeof per_step / sizeof *per_step; i++) {
        int n = strcmp(per_step[i].key, "kernel") == 0
                    ? (int)(w.kernels[1 + ACTIVE] - w.kernels[1])
                    : ACTIVE * per_step[i].n;
        is_int(count_of(&t, per_step[i].key), n, "%d steps: %s", ACTIVE,
               per_step[i].key);
    }
    json_decref(t.events);
    ok(access(path_of(""), F_OK) == 0 && rmdir(path_of("")) == 0,
       "repeat 1: there is no other trace");
}

static void
test_cycles(struct et_ctx *cx)
{
    profiled(cx, (struct et_recipe_profiler){.wait = 1, .active = 2}, false);
    struct trace first = take("ep0-ba2-rank0.json");
    struct trace second = take("ep1-ba5-rank0.json");
    struct trace third = take("ep1-ba8-rank0.json");
    is_int(count_of(&first, "event/batch"), 2,
           "a cycle of one idle batch and two traced");
    is_int(count_of(&second, "event/batch"), 2, "repeat 0: another, in the next epoch");
    is_int(count_of(&third, "event/batch"), 1, "and as much of one as the run has");
    is_int(third.begins, third.ends, "closed with the run");
    json_decref(first.events);
    json_decref(second.events);
    json_decref(third.events);
    rmdir(path_of(""));
}

static void
test_evaluation(struct et_ctx *cx)
{
    profiled(cx, (struct et_recipe_profiler){.skip_first = 3, .active = 1}, true);
    struct trace t = take("ep0-ba4-rank0.json");
    is_int(count_of(&t, "event/batch"), 1, "the last batch of an epoch");
    is_int(count_of(&t, "event/dataloader"), 2, "with the look at its loader's end");
    is_int(count_of(&t, "event/eval_all"), 1, "and its evaluation");
    is_int(count_of(&t, "event/eval_batch"), 4, "in all its batches");
    is_int(t.begins - t.ends + t.bad_ends, 0, "all of which end");
    json_decref(t.events);
    for (int ba = 5; ba <= 8; ba++) {
        char name[64];
        snprintf(name, sizeof name, "ep1-ba%d-rank0.json", ba);
        t = take(name);
        is_int(count_of(&t, "event/batch"), 1, "%s: its batch", name);
        is_int(count_of(&t, "event/eval_all"), ba == 8, "%s: the run's last evaluation",
               name);
        json_decref(t.events);
    }
    rmdir(path_of(""));
}

/* The batches that schedules choose of two epochs of four. */
static void
test_schedules(struct et_ctx *cx)
{
    static const struct {
        struct et_recipe_profiler schedule;
        const char *files; /* with how many batches each has */
    } rows[] = {
        {{.skip_first = 2, .wait = 1, .warmup = 1, .active = 2, .repeat = 1},
         "ep1-ba5:2"},
        {{.skip_first = 1, .wait = 1, .warmup = 2, .active = 1}, "ep1-ba5:1"},
        {{.active = 3, .repeat = 2}, "ep0-ba1:3 ep0-ba4:3"},
        {{.wait = 2, .active = 1, .repeat = 2}, "ep0-ba3:1 ep1-ba6:1"},
        {{.skip_first = 3, .warmup = 1, .active = 1, .repeat = 3},
         "ep1-ba5:1 ep1-ba7:1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char got[128] = "";
        profiled(cx, rows[i].schedule, false);
        for (int ba = 1; ba <= 8; ba++) {
            char name[64];
            const size_t used = strlen(got);
            snprintf(name, sizeof name, "ep%d-ba%d-rank0.json", (ba - 1) / 4, ba);
            struct trace t = take(name);
            if (t.events)
                snprintf(got + used, sizeof got - used, "%sep%d-ba%d:%d",
                         used ? " " : "", (ba - 1) / 4, ba,
                         count_of(&t, "event/batch"));
            json_decref(t.events);
        }
        is_str(got, rows[i].files, "schedule %d traces its batches", (int)i);
        ok(rmdir(path_of("")) == 0, "and no others");
    }
}

/* Where a run is made again its traces take the place of those before. */
static void
test_again(struct et_ctx *cx)
{
    for (int i = 0; i < 2; i++)
        profiled(cx, (struct et_recipe_profiler){.active = 1, .repeat = 1}, false);
    struct trace t = take("ep0-ba1-rank0.json");
    is_int(count_of(&t, "event/batch"), 1, "a trace is of the newest run alone");
    json_decref(t.events);
    rmdir(path_of(""));
}

/* ---- spans of one's own ---- */

/* Spans that lie deeper than is kept, and pairs of one name. */
static void
test_nesting(struct et_ctx *cx)
{
    enum { DEEP = 40 };
    struct et_callback *c;
    struct run r;
    const struct et_recipe_profiler all = {.active = 1, .repeat = 1};
    const char *inside = NULL;
    size_t i;
    json_t *e;
    int depth = 0;
    run_open(&r, cx, &(struct run_setup){0});
    need(cx, et_profiler_new(cx, &all, scratch_folder(), &c));
    need(cx, c->type->run(c, ET_EVENT_BEFORE_DATALOADER, r.state, r.state->log));
    et_span_begin(cx, "a", "one", NULL);
    et_span_begin(cx, "b", "one", "\x7f\x80");
    et_span_begin(cx, "b", "inner", NULL);
    et_span_end(cx, "a", "one");
    et_span_begin(cx, "c", "outside", NULL);
    for (int k = 0; k < DEEP; k++) {
        char name[16];
        snprintf(name, sizeof name, "deep %d", k);
        et_span_begin(cx, "d", name, NULL);
    }
    et_span_end(cx, "c", "outside");
    c->type->close(c);
    struct trace t = take("ep0-ba1-rank0.json");
    json_array_foreach(t.events, i, e)
    {
        const char *how = json_string_value(json_object_get(e, "ph"));
        const char *name = json_string_value(json_object_get(e, "name"));
        if (strcmp(name, "outside") == 0 && !inside)
            inside = depth ? "yes" : "no";
        depth += strcmp(how, "B") == 0;
        depth -= strcmp(how, "E") == 0;
        if (strcmp(name, "one") == 0 && json_object_get(e, "args"))
            is_str(json_string_value(
                       json_object_get(json_object_get(e, "args"), "detail")),
                   "??", "what is no plain text is shown as such");
    }
    is_str(inside, "no", "a span ends with the end of the one that it is in");
    is_int(t.begins, 3 + DEPTH, "spans are kept as deep as there is room");
    is_int(t.ends, 3 + DEPTH, "and all of them end");
    is_int(t.bad_ends + t.depth, 0, "in their order");
    json_decref(t.events);
    et_callback_free(&c);
    run_close(&r);
    rmdir(path_of(""));
}

static void
test_marks(struct et_ctx *cx)
{
    struct et_callback *c;
    struct run r;
    const struct et_recipe_profiler all = {.active = 1, .repeat = 1};
    run_open(&r, cx, &(struct run_setup){0});
    need(cx, et_profiler_new(cx, &all, scratch_folder(), &c));
    ok(et_ctx_tracer(cx) == NULL, "outside its batches a profile sees nothing");
    need(cx, c->type->run(c, ET_EVENT_BEFORE_DATALOADER, r.state, r.state->log));
    ok(et_ctx_tracer(cx) != NULL, "inside it does");
    et_span_begin(cx, "mine", "a \"quoted\\ name\n", "\xff");
    et_span_begin(cx, "mine", "left open", NULL);
    et_span_end(cx, "mine", "never begun");
    et_span_end(cx, "mine", "a \"quoted\\ name\n");
    for (int i = 0; i < 2000; i++) {
        et_span_begin(cx, "mine", "many", NULL);
        et_span_end(cx, "mine", "many");
    }
    /* What the system has of it by now, a kill would leave. */
    FILE *f = fopen(path_of("ep0-ba1-rank0.json"), "r");
    static char bytes[1 << 20];
    size_t n = f ? fread(bytes, 1, sizeof bytes - 1, f) : 0;
    if (f)
        fclose(f);
    ok(n > 100000 && bytes[n - 1] == '}',
       "what is written so far ends with a whole event");
    bytes[n] = ']';
    json_t *cut = json_loadb(bytes, n + 1, 0, NULL);
    ok(cut != NULL, "and lacks no more than its bracket");
    json_decref(cut);
    c->type->close(c);
    ok(et_ctx_tracer(cx) == NULL, "once closed it sees nothing");
    struct trace t = take("ep0-ba1-rank0.json");
    is_int(t.begins, 2002, "names are escaped, an end without a beginning is nothing");
    is_int(t.ends, 2002, "what was left open ends with what it was in");
    json_decref(t.events);
    et_callback_free(&c);
    run_close(&r);
    rmdir(path_of(""));
    is_int(et_profiler_new(cx, &all, NULL, &c), ET_EINVAL,
           "without a directory there is none");
    et_error_clear(cx);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct et_alloc_stats stats;
    test_steps(cx);
    test_cycles(cx);
    test_evaluation(cx);
    test_schedules(cx);
    test_again(cx);
    test_nesting(cx);
    test_marks(cx);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
