/* best_model_saver: the file holds the weights that the best evaluation used. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/checkpoint/archive.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"

enum { MAX_EVALS = 16 };

/* What evaluations said, and whether somebody warned. */
struct notes {
    struct et_sink sink; /* first */
    double entropy[MAX_EVALS];
    int n, warnings, saved;
};

static void
note(struct et_sink *sink, const struct et_record *r)
{
    struct notes *notes = (struct notes *)sink;
    if (r->kind == ET_RECORD_LOG) {
        notes->warnings += r->level == ET_LOG_WARN;
        notes->saved += strstr(r->text, "the best so far") != NULL;
    }
    for (int i = 0; r->kind == ET_RECORD_EVAL && i < r->n && notes->n < MAX_EVALS; i++)
        if (strcmp(r->entry[i].name, "metrics/eval/CrossEntropy") == 0)
            notes->entropy[notes->n++] = r->entry[i].value;
}

static struct et_callback *
make(struct et_ctx *cx, const char *const *options)
{
    const struct et_callback_class *c = et_callback_find("best_model_saver");
    struct et_callback *out;
    void *values;
    need(cx, et_alloc(cx, c->info.options_size, &values));
    need(cx, et_options_init(cx, c->info.options, values));
    for (; *options; options += 2)
        need(cx, et_options_set(cx, c->info.options, values, options[0], options[1]));
    need(cx, et_callback_new(cx, c, values, scratch_folder(), &out));
    et_free(cx, values);
    return out;
}

#define MAKE(cx, ...) make(cx, (const char *const[]){__VA_ARGS__, NULL})

static const char *
path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", scratch_folder(), name);
    return path;
}

static double
extreme(const struct notes *notes, bool most)
{
    double best = notes->entropy[0];
    for (int i = 1; i < notes->n; i++)
        if (most ? notes->entropy[i] > best : notes->entropy[i] < best)
            best = notes->entropy[i];
    return best;
}

static void
fit(struct run *r, struct et_ctx *cx, struct et_callback *c, struct et_algorithm *a,
    struct notes *notes)
{
    *notes = (struct notes){.sink = {.write = note}};
    run_open(r, cx,
             &(struct run_setup){
                 .callbacks = &c,
                 .n_callbacks = 1,
                 .algorithms = &a,
                 .n_algorithms = a ? 1 : 0,
                 .evaluate = true,
                 .max_duration = ET_EPOCHS(4),
                 .sink = &notes->sink,
             });
    need(cx, et_trainer_fit(r->trainer, ET_TIME_UNSET));
}

/* What the cross entropy is with the model as it is. */
static double
entropy_now(struct run *r)
{
    double value;
    need(r->cx, et_trainer_eval(r->trainer));
    return et_state_metric(r->state, "metrics/eval/CrossEntropy", &value) ? value : NAN;
}

/* And with the file's weights. */
static double
entropy_of(struct et_ctx *cx, const char *name)
{
    struct run r;
    run_open(&r, cx, &(struct run_setup){.evaluate = true});
    need(cx, et_model_load_weights(cx, r.model, path_of(name)));
    double value = entropy_now(&r);
    run_close(&r);
    return value;
}

static void
test_least(struct et_ctx *cx)
{
    struct notes notes;
    struct run r;
    struct et_callback *c = MAKE(cx, "save_path", "least.safetensors");
    fit(&r, cx, c, NULL, &notes);
    ok(notes.n == 4 && notes.saved >= 1, "of four evaluations %d were the best so far",
       notes.saved);
    ok(entropy_of(cx, "least.safetensors") == extreme(&notes, false),
       "the file's weights have the least cross entropy of the run");
    run_close(&r);
    et_callback_free(&c);

    FILE *f = fopen(path_of("least.safetensors"), "r");
    char header[512] = "", want[64];
    size_t n = f ? fread(header, 1, sizeof header - 1, f) : 0;
    if (f)
        fclose(f);
    snprintf(want, sizeof want, "\"value\":\"%.9g\"", extreme(&notes, false));
    ok(n > 8 && strstr(header + 8, "\"metric\":\"metrics/eval/CrossEntropy\"") &&
           strstr(header + 8, want),
       "it says which metric and value they are of");
}

static void
test_greatest(struct et_ctx *cx)
{
    struct notes notes;
    struct run r;
    struct et_callback *c =
        MAKE(cx, "watch_metric", "crossentropy", "greater_is_better", "true",
             "load_at_end", "true", "save_path", "greatest.safetensors");
    fit(&r, cx, c, NULL, &notes);
    double most = extreme(&notes, true);
    ok(most != notes.entropy[3], "the last epoch is not the worst");
    ok(entropy_of(cx, "greatest.safetensors") == most,
       "greater_is_better wants the most, whatever the name");
    ok(entropy_now(&r) == most, "load_at_end: the model has these weights");
    need(cx, et_trainer_fit(r.trainer, ET_EPOCHS(1)));
    ok(entropy_of(cx, "greatest.safetensors") == notes.entropy[5],
       "another call of fit begins anew, by reset_on_train");
    run_close(&r);
    et_callback_free(&c);
}

static void
test_average(struct et_ctx *cx)
{
    const struct et_algorithm_class *ema = et_algorithm_find("ema");
    struct notes notes;
    struct run r;
    struct et_algorithm *a;
    struct et_callback *c = MAKE(cx, "save_path", "average.safetensors");
    need(cx, et_algorithm_new(cx, ema, NULL, &a));
    fit(&r, cx, c, a, &notes);
    ok(entropy_of(cx, "average.safetensors") == extreme(&notes, false),
       "what was evaluated is what is saved: the average of ema");
    run_close(&r);
    et_callback_free(&c);
    et_algorithm_free(&a);
}

static void
test_faults(struct et_ctx *cx)
{
    struct notes notes;
    struct run r;
    struct et_callback *c = MAKE(cx, "save_path", "nowhere/best.safetensors");
    fit(&r, cx, c, NULL, &notes);
    ok(notes.warnings >= 1 && notes.saved == 0 && notes.n == 4,
       "a file that cannot be written is warned about and the run goes on");
    run_close(&r);
    et_callback_free(&c);
    c = MAKE(cx, "watch_metric", "MIoU");
    fit(&r, cx, c, NULL, &notes);
    is_int(notes.warnings, 1, "a metric that no evaluation has is warned about");
    run_close(&r);
    et_callback_free(&c);
    need(cx, et_callback_new(cx, et_callback_find("best_model_saver"), NULL, NULL, &c));
    ok(c->type->run(c, ET_EVENT_INIT, NULL, NULL) == ET_EINVAL,
       "it needs a run directory");
    is_str(take_error(cx), "best_model_saver needs a run directory, and there is none",
           "and says so");
    et_callback_free(&c);
}

static void
test_archive(struct et_ctx *cx)
{
    struct notes notes;
    struct run r;
    struct et_archive a = {0};
    struct et_callback *c = MAKE(cx, "save_path", "resumed.safetensors");
    fit(&r, cx, c, NULL, &notes);
    eti_archive_begin(&a, cx);
    need(cx, c->type->archive(c, &a));
    need(cx, eti_archive_end(&a));
    need(cx, eti_archive_sort(&a));
    run_close(&r);
    et_callback_free(&c);
    double least = extreme(&notes, false);

    c = MAKE(cx, "save_path", "resumed.safetensors");
    a.mode = ET_ARCHIVE_LOAD;
    a.source = "test";
    need(cx, c->type->archive(c, &a));
    eti_archive_release(&a);
    fit(&r, cx, c, NULL, &notes); /* the same losses, none better */
    is_int(notes.saved, 0, "resumed, it knows the best value of before");
    ok(entropy_of(cx, "resumed.safetensors") == least, "and leaves the file alone");
    run_close(&r);
    et_callback_free(&c);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct et_alloc_stats stats;
    test_least(cx);
    test_greatest(cx);
    test_average(cx);
    test_faults(cx);
    test_archive(cx);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
