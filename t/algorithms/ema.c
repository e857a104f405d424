/* SPDX-License-Identifier: Apache-2.0 */
/* EMA: spec/algorithms.md 2.8. */
#include "core/trainer/average.h"
#include "etude/functional.h"
#include "etude/nn.h"
#include "t/algorithms/fixture.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

static void
test_values(struct et_ctx *cx)
{
    /* The spec's figures have ten digits. */
    is_near(et_ema_smoothing(1000, 1), .9993070929904525, 1e-15, "1000ba by 1ba");
    is_near(et_ema_smoothing(1000, 10), .9930924954, 1e-10, "1000ba by 10ba");
    is_near(et_ema_smoothing(1, 1), .5, 0, "1ba by 1ba");
    struct formula f;
    formula_open(&f, cx);
    struct et_tensor *shadow = reals(&f, (float[]){0}, ET_SHAPE(1));
    struct et_tensor *weight = reals(&f, (float[]){1}, ET_SHAPE(1));
    static const float want[] = {.5f, .75f, .875f};
    for (int i = 0; i < 3; i++) {
        float got;
        et_assign(f.g, shadow, et_compute_ema(f.g, shadow, weight, .5));
        need(cx, et_eval(f.g, NULL, 0));
        need(cx, et_tensor_read(cx, shadow, &got, sizeof got));
        ok(got == want[i], "update %d of s = .5 gives %g", i + 1, (double)want[i]);
        et_graph_reset(f.g);
    }
    et_tensor_free(&shadow);
    et_tensor_free(&weight);
    formula_close(&f);
}

/* ---- a run, watched from behind the EMA ---- */

enum { ROOM = 1 << 17 }; /* the MLP of the fixture has 80448 */
static float trained[ROOM], average[ROOM], now[ROOM];
static int64_t n_weights;
static int updates, evaluations, differ;
static double s_of_run = 0.5;
static bool save_at_epochs, saved;

static void
read_weights(struct et_state *s)
{
    n_weights = s->params->total;
    if (n_weights > ROOM)
        bail("%d weights", (int)n_weights);
    need(s->cx, et_tensor_read(s->cx, s->params->values, now,
                               (size_t)n_weights * sizeof *now));
}

static bool
same(const float *a, const float *b)
{
    return memcmp(a, b, (size_t)n_weights * sizeof *a) == 0;
}

static et_status
watch(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    (void)self;
    (void)log;
    size_t bytes;
    read_weights(s);
    bytes = (size_t)n_weights * sizeof *now;
    switch (event) {
    case ET_EVENT_BATCH_END:
        memcpy(trained, now, bytes);
        for (int64_t i = 0; i < n_weights; i++)
            average[i] =
                updates ? (float)s_of_run * average[i] + (1 - (float)s_of_run) * now[i]
                        : now[i];
        updates++;
        break;
    case ET_EVENT_EVAL_BATCH_START:
        is_near_array(now, average, n_weights, F32_TOL, "evaluation uses the average");
        differ += !same(now, trained);
        break;
    case ET_EVENT_EVAL_END:
        evaluations++;
        ok(same(now, trained), "behind it the weights are bit by bit what they were");
        break;
    case ET_EVENT_EPOCH_CHECKPOINT:
        saved = save_at_epochs;
        if (saved)
            is_near_array(now, average, n_weights, F32_TOL,
                          "a checkpoint holds the average");
        else
            ok(same(now, trained), "without a checkpoint nothing is exchanged");
        break;
    default: /* BATCH_START */
        if (saved)
            ok(same(now, trained), "the next batch trains on with the weights");
        saved = false;
    }
    return ET_OK;
}

static const struct et_algorithm_class watcher_class = {
    .info = {.name = "watcher"},
    .events = ET_ON(BATCH_START) | ET_ON(BATCH_END) | ET_ON(EPOCH_END) |
              ET_ON(EVAL_BATCH_START) | ET_ON(EVAL_END) | ET_ON(EPOCH_CHECKPOINT),
    .apply = watch,
};

static void
test_run(struct et_ctx *cx, bool save)
{
    struct et_algorithm watcher = {.type = &watcher_class, .cx = cx};
    struct et_algorithm *ema = algorithm(cx, "ema", OPTIONS("half_life", "1ba"));
    struct et_algorithm *list[] = {ema, &watcher};
    char folder[300];
    snprintf(folder, sizeof folder, "%s/checkpoints", scratch_folder());
    const struct et_checkpoint_config to = {
        .directory = folder, .interval = ET_EPOCHS(1), .keep = 1};
    struct run_setup setup = {.n = 8, .evaluate = true, .max_duration = ET_EPOCHS(2)};
    updates = evaluations = differ = 0;
    save_at_epochs = save;
    struct losses plain = train(cx, setup, NULL, 0);
    setup.checkpoint = save ? &to : NULL;
    struct losses with = train(cx, setup, list, 2);
    ok(difference(&plain, &with) == 0, "training does not notice");
    is_int(evaluations, 2, "each epoch was evaluated");
    is_int(differ, 4, "the average is not the weights");
    et_algorithm_free(&ema);
}

/* ---- surgery ---- */

/* A linear layer with the weights of OLD. */
static et_status
copy_linear(struct et_ctx *cx, struct et_module *old, int index, void *data,
            struct et_module **out)
{
    struct et_linear_module *from = (struct et_linear_module *)old, *to;
    (void)index, (void)data;
    ET_TRY(et_module_new(cx, &et_linear_class, &from->o, out));
    to = (struct et_linear_module *)*out;
    to->weight.tensor = from->weight.tensor;
    to->bias.tensor = from->bias.tensor;
    from->weight.tensor = from->bias.tensor = NULL;
    return ET_OK;
}

/* Behind the second batch convolutions with a stride are replaced, or where there are
 * none linear layers: the weights stay, some with other names, and lie elsewhere from
 * then on. */
static et_status
replace(struct et_algorithm *self, enum et_event event, struct et_state *s,
        struct et_log *log)
{
    static const struct et_surgery_policy linear = {&et_linear_class, copy_linear};
    struct et_surgery surgery;
    struct et_module *root = s->model->root;
    (void)self, (void)event, (void)log;
    if (s->timestamp.batch != 2)
        return ET_OK;
    need(s->cx, et_apply_blurpool(s->cx, root, true, true, true, 1, &surgery));
    if (surgery.n == 0) {
        et_surgery_release(&surgery);
        need(s->cx, et_module_replace(s->cx, root, &linear, 1, NULL, &surgery));
    }
    ok(surgery.n > 0, "%d layers are replaced in the midst of a run", surgery.n);
    et_surgery_release(&surgery);
    return et_state_follow_surgery(s);
}

static const struct et_algorithm_class replacing_class = {
    .info = {.name = "replacing"}, .events = ET_ON(BATCH_END), .apply = replace};

static void
test_surgery(struct et_ctx *cx, const char *model)
{
    struct et_algorithm watcher = {.type = &watcher_class, .cx = cx};
    struct et_algorithm replacing = {.type = &replacing_class, .cx = cx};
    struct et_algorithm *ema = algorithm(cx, "ema", OPTIONS("half_life", "1ba"));
    struct et_algorithm *list[] = {ema, &watcher, &replacing};
    updates = evaluations = differ = 0;
    save_at_epochs = saved = false;
    train(cx,
          (struct run_setup){
              .model = model, .n = 16, .evaluate = true, .max_duration = ET_EPOCHS(2)},
          list, 3);
    is_int(evaluations, 2, "%s: the average is that of all batches", model);
    et_algorithm_free(&ema);
}

/* A buffer that has another shape has another average. */
static void
test_other_buffer(struct et_ctx *cx)
{
    struct eti_average a = {0};
    struct et_leaves l;
    struct run r;
    run_open(&r, cx, &(struct run_setup){.model = "resnet8"});
    need(cx, eti_average_copy(&a, r.state));
    need(cx, et_module_leaves(cx, r.model->root, ET_BUFFER, &l));
    struct et_param *p = l.v[0].param;
    const int64_t more = 3 + et_desc_count(&p->desc);
    et_tensor_free(&p->tensor);
    et_desc_init(&p->desc, ET_F32, 1, &more, ET_ROW_MAJOR);
    need(cx,
         et_tensor_new(cx, r.dev, ET_F32, 1, &more, ET_ROW_MAJOR, "other", &p->tensor));
    et_leaves_release(&l);
    r.state->surgeries++;
    is_int(eti_average_add(&a, r.state, 0.5), ET_OK,
           "an average follows a buffer that has another shape");
    et_error_clear(cx);
    eti_average_release(&a, cx);
    run_close(&r);
}

/* How many of the buffers L are NUMBER throughout, or are not. */
static int
filled(struct et_ctx *cx, const struct et_leaves *l, float number, bool are)
{
    static float v[ROOM];
    int n = 0;
    for (int i = 0; i < l->n; i++) {
        const struct et_tensor *t = l->v[i].param->tensor;
        const int64_t count = et_desc_count(&t->desc);
        bool all = true;
        need(cx, et_tensor_read(cx, t, v, (size_t)count * sizeof *v));
        for (int64_t k = 0; k < count; k++)
            all = all && v[k] == number;
        n += all == are;
    }
    return n;
}

/* Evaluations see the average of each buffer, and the training its own again. */
static void
test_all_buffers(struct et_ctx *cx)
{
    enum { TRAINED = 7 };
    static float v[ROOM];
    struct eti_average a = {0};
    struct et_leaves l;
    struct run r;
    run_open(&r, cx, &(struct run_setup){.model = "resnet8"});
    need(cx, eti_average_copy(&a, r.state));
    need(cx, et_module_leaves(cx, r.model->root, ET_BUFFER, &l));
    for (int i = 0; i < ROOM; i++)
        v[i] = TRAINED;
    for (int i = 0; i < l.n; i++) {
        const struct et_tensor *t = l.v[i].param->tensor;
        need(cx, et_tensor_write(cx, l.v[i].param->tensor, v,
                                 (size_t)et_desc_count(&t->desc) * sizeof *v));
    }
    need(cx, eti_average_use(&a, r.state, true, NULL, 0));
    is_int(filled(cx, &l, TRAINED, false), l.n, "in use, all %d buffers are averages",
           l.n);
    need(cx, eti_average_use(&a, r.state, false, NULL, 0));
    is_int(filled(cx, &l, TRAINED, true), l.n, "behind it, all are what they were");
    et_leaves_release(&l);
    eti_average_release(&a, cx);
    run_close(&r);
}

/* ---- when it starts ---- */

static int active_evaluations;

static et_status
compare(struct et_algorithm *self, enum et_event event, struct et_state *s,
        struct et_log *log)
{
    (void)self;
    (void)log;
    read_weights(s);
    if (event == ET_EVENT_EPOCH_END)
        memcpy(trained, now, (size_t)n_weights * sizeof *now);
    else
        active_evaluations += !same(now, trained);
    return ET_OK;
}

static const struct et_algorithm_class comparer_class = {
    .info = {.name = "comparer"},
    .events = ET_ON(EPOCH_END) | ET_ON(EVAL_BATCH_START),
    .apply = compare,
};

static void
test_start(struct et_ctx *cx, const char *const *options, int want, const char *what)
{
    struct et_algorithm comparer = {.type = &comparer_class, .cx = cx};
    struct et_algorithm *ema = algorithm(cx, "ema", options);
    struct et_algorithm *list[] = {ema, &comparer};
    active_evaluations = 0;
    train(cx,
          (struct run_setup){.n = 4, .evaluate = true, .max_duration = ET_EPOCHS(4)},
          list, 2);
    is_int(active_evaluations, want, "%s", what);
    et_algorithm_free(&ema);
}

/* ---- with the update, or behind it ---- */

/* What evaluations saw, weights and running statistics, one after another. */
struct seen {
    float v[1 << 20];
    int64_t n;
};
static struct seen seen[2], *into;

static void
see(struct et_state *s, const struct et_tensor *t)
{
    int64_t n = et_desc_count(&t->desc);
    if (into->n + n > (int64_t)(sizeof into->v / sizeof *into->v))
        bail("too many numbers");
    need(s->cx, et_tensor_read(s->cx, t, into->v + into->n, (size_t)n * sizeof(float)));
    into->n += n;
}

static et_status
see_all(struct et_algorithm *self, enum et_event event, struct et_state *s,
        struct et_log *log)
{
    struct et_leaves buffers;
    (void)self;
    (void)event;
    (void)log;
    see(s, s->params->values);
    need(s->cx, et_module_leaves(s->cx, s->model->root, ET_BUFFER, &buffers));
    for (int i = 0; i < buffers.n; i++)
        if (buffers.v[i].param->tensor->desc.dtype == ET_F32)
            see(s, buffers.v[i].param->tensor);
    et_leaves_release(&buffers);
    return ET_OK;
}

static const struct et_algorithm_class seer_class = {
    .info = {.name = "seer"},
    .events = ET_ON(EVAL_START),
    .apply = see_all,
};

/* The first parameter has no gradient in every other batch, so that the weights are
 * updated in stretches. */
static et_status
backward_in_part(void *data, struct et_state *s, struct et_tensor *loss,
                 struct et_tensor *const *params, int n, struct et_tensor **grads)
{
    (void)data;
    ET_TRY(et_grad(s->graph, loss, params, n, grads));
    if (s->timestamp.batch % 2 == 1)
        grads[0] = grads[2] = NULL;
    return ET_OK;
}

/* A step of one's own that assigns whole layers. */
static et_status
halve_layers(void *data, struct et_state *s, struct et_tensor *grad,
             struct et_tensor *skip)
{
    struct et_leaves params;
    (void)data;
    (void)grad;
    (void)skip;
    ET_TRY(et_module_leaves(s->cx, s->model->root, ET_PARAM, &params));
    for (int i = 0; i < params.n; i++) {
        struct et_tensor *p = params.v[i].param->tensor;
        et_assign(s->graph, p, et_mul_scalar(s->graph, p, 0.5));
    }
    et_leaves_release(&params);
    return et_graph_status(s->graph);
}

static uint64_t
train_seen(struct et_ctx *cx, struct run_setup setup, const char *const *options,
           const struct et_trainer_steps *steps, bool with_update)
{
    struct et_algorithm seer = {.type = &seer_class, .cx = cx};
    struct et_algorithm *ema = algorithm(cx, "ema", options);
    struct et_algorithm_class behind = *ema->type;
    struct et_graph_stats stats;
    struct run r;
    behind.update = NULL;
    if (!with_update)
        ema->type = &behind;
    setup.algorithms = (struct et_algorithm *[]){ema, &seer};
    setup.n_algorithms = 2;
    into = &seen[with_update];
    into->n = 0;
    run_prepare(&r, cx, &setup);
    r.config.steps = steps;
    run_start(&r);
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    et_graph_get_stats(r.state->graph, &stats);
    run_close(&r);
    et_algorithm_free(&ema);
    return stats.replays;
}

static void
test_with_update(struct et_ctx *cx)
{
    static const struct et_trainer_steps part = {.backward = backward_in_part};
    static const struct et_trainer_steps own = {.optimizer_step = halve_layers};
    const struct run_setup usual = {.n = 16,
                                    .repeats = true,
                                    .evaluate = true,
                                    .max_duration = ET_EPOCHS(2),
                                    .eval_interval = ET_BATCHES(2)};
    struct way {
        const char *what, *model, *optimizer;
        int64_t grad_accum;
        const char *const *options;
        const struct et_trainer_steps *steps;
        int fewer; /* evaluations: the averages of 8 batches, less the first */
    } const ways[] = {
        {"adamw", "mlp", "adamw", 1, OPTIONS("half_life", "2ba"), NULL, 7},
        {"each parameter apart", "mlp", "lamb", 1, OPTIONS("half_life", "2ba"), NULL,
         7},
        {"running statistics", "resnet8", "sgd", 1, OPTIONS("half_life", "2ba"), NULL,
         7},
        {"microbatches", "resnet8", "sgd", 2, OPTIONS("half_life", "2ba"), NULL, 7},
        {"every third batch", "mlp", "sgd", 1,
         OPTIONS("half_life", "6ba", "update_interval", "3ba"), NULL, 2},
        {"from the fifth batch on", "mlp", "sgd", 1,
         OPTIONS("half_life", "2ba", "ema_start", "5ba"), NULL, 3},
        {"parameters without a gradient", "mlp", "adamw", 1,
         OPTIONS("half_life", "2ba"), &part, 7},
        {"an update that assigns layers", "mlp", "sgd", 1, OPTIONS("half_life", "2ba"),
         &own, 7},
        {"an update that assigns filters", "resnet8", "sgd", 1,
         OPTIONS("half_life", "2ba"), &own, 0},
        {"averages of epochs", "mlp", "sgd", 1, OPTIONS("half_life", "2ep"), NULL, 0},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const struct way *w = &ways[i];
        struct run_setup setup = usual;
        setup.model = w->model;
        setup.optimizer = w->optimizer;
        setup.grad_accum = w->grad_accum;
        uint64_t behind = train_seen(cx, setup, w->options, w->steps, false);
        uint64_t with = train_seen(cx, setup, w->options, w->steps, true);
        ok(seen[0].n > 0 && seen[0].n == seen[1].n &&
               memcmp(seen[0].v, seen[1].v, (size_t)seen[0].n * sizeof(float)) == 0,
           "%s: an average taken with the update is the one taken behind it", w->what);
        is_int((int64_t)(behind - with), w->fewer, "%s: by %d evaluations less",
               w->what, w->fewer);
    }
}

static void
test_refusals(struct et_ctx *cx)
{
    const char *why = refusal(cx, "ema", OPTIONS("smoothing", "0.9"));
    ok(strstr(why, "not both"), "half_life and smoothing are refused: %s", why);
    why = refusal(cx, "ema", OPTIONS("half_life", "null"));
    ok(strstr(why, "needs"), "so is neither: %s", why);
    why = refusal(cx, "ema", OPTIONS("half_life", "10ba", "update_interval", "1ep"));
    ok(strstr(why, "one unit"), "and two units: %s", why);
    why = refusal(cx, "ema", OPTIONS("half_life", "0ba"));
    ok(strstr(why, "half_life"), "and a half_life of 0: %s", why);
    why = refusal(cx, "ema", OPTIONS("half_life", "100sp"));
    ok(strstr(why, "half_life"), "and samples: %s", why);
    is_str(refusal(cx, "ema", OPTIONS("half_life", "null", "smoothing", "0.9")), "",
           "smoothing alone is enough");
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_values(cx);
    test_run(cx, false);
    test_run(cx, true);
    test_surgery(cx, "resnet8");
    test_surgery(cx, "mlp");
    test_other_buffer(cx);
    test_all_buffers(cx);
    test_start(cx, OPTIONS("half_life", "2ba"), 3,
               "by default it starts with the first step");
    test_start(cx, OPTIONS("half_life", "2ba", "ema_start", "0.5dur"), 1,
               "ema_start 0.5dur of 4ep starts when two epochs are done");
    test_start(cx, OPTIONS("half_life", "2ba", "ema_start", "3ba"), 1,
               "ema_start 3ba starts with step 3");
    test_start(cx, OPTIONS("half_life", "1ep", "update_interval", "2ep"), 3,
               "a half_life in epochs updates at their ends");
    test_with_update(cx);
    test_refusals(cx);
    return finish(cx);
}
