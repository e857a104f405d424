/* SPDX-License-Identifier: Apache-2.0 */
/* SAM: spec/algorithms.md 2.21. */
#include "t/algorithms/fixture.h"

#include <string.h>

/* ---- one step on w^2 / 2, whose gradient is w ---- */

struct parabola {
    struct formula f;
    struct et_param_space *space;
    struct et_tensor *w;
    struct et_optimizer *optimizer;
    void *options;
    struct et_state state;
    struct et_algorithm *sam;
    int fail_in; /* pass that fails; -1 = none */
    int passes;
};

static struct parabola *under_test;

static et_status
gradient(struct et_state *s, int pass)
{
    struct parabola *p = under_test;
    p->passes++;
    if (pass == p->fail_in)
        return ET_FAIL(s->cx, ET_ENOMEM, "pass %d does not fit", pass);
    s->grad = et_param_space_pack(s->graph, p->space, &p->w);
    return et_graph_status(s->graph);
}

static void
parabola_open(struct parabola *p, struct et_ctx *cx, const char *rho)
{
    const struct et_optimizer_class *sgd = et_optimizer_find("sgd");
    struct et_param_spec spec = {.name = "w"};
    const float one = 1;
    memset(p, 0, sizeof *p);
    p->fail_in = -1;
    formula_open(&p->f, cx);
    et_desc_init(&spec.desc, ET_F32, ET_SHAPE(1), ET_ROW_MAJOR);
    need(cx, et_param_space_new(cx, p->f.dev, &spec, 1, &p->space));
    need(cx, et_param_space_view(cx, p->space, -1, 0, &p->w));
    need(cx, et_tensor_write(cx, p->w, &one, sizeof one));
    need(cx, et_alloc(cx, sgd->info.options_size, &p->options));
    need(cx, et_options_init(cx, sgd->info.options, p->options));
    need(cx, et_options_set(cx, sgd->info.options, p->options, "lr", "0.1"));
    need(cx, et_optimizer_new(cx, sgd, p->options, p->space, &p->optimizer));
    p->sam = algorithm(cx, "sam", OPTIONS("rho", rho));
    p->state = (struct et_state){
        .cx = cx,
        .dev = p->f.dev,
        .graph = p->f.g,
        .params = p->space,
    };
    need(cx, p->sam->type->apply(p->sam, ET_EVENT_AFTER_LOAD, &p->state, NULL));
    under_test = p;
}

static void
parabola_close(struct parabola *p)
{
    p->sam->type->close(p->sam);
    et_algorithm_free(&p->sam);
    et_optimizer_free(&p->optimizer);
    et_free(p->f.cx, p->options);
    et_tensor_free(&p->w);
    et_param_space_free(&p->space);
    formula_close(&p->f);
}

static double
weight(struct parabola *p)
{
    float w;
    need(p->f.cx, et_tensor_read(p->f.cx, p->w, &w, sizeof w));
    return (double)w;
}

static void
test_step(struct et_ctx *cx)
{
    struct parabola p;
    parabola_open(&p, cx, "0.05");
    struct et_state *s = &p.state;
    need(cx, s->step(s, s->step_data, gradient));
    is_int(p.passes, 2, "a step has two passes");
    ok(weight(&p) == 1, "the update starts from the unperturbed weight");
    need(cx, et_optimizer_update(s->graph, p.optimizer, s->grad, NULL, NULL));
    need(cx, et_eval(s->graph, NULL, 0));
    is_near(weight(&p), 0.895, F32_TOL, "w = 1, lr .1, rho .05 becomes .895");
    parabola_close(&p);

    for (int pass = 0; pass < 2; pass++) {
        parabola_open(&p, cx, "0.05");
        p.fail_in = pass;
        ok(p.state.step(&p.state, p.state.step_data, gradient) == ET_ENOMEM,
           "pass %d may fail", pass);
        ok(weight(&p) == 1, "then the weight is what it was");
        is_str(take_error(cx), pass ? "pass 1 does not fit" : "pass 0 does not fit",
               "and its error stands");
        parabola_close(&p);
    }
}

/* ---- runs ---- */

static int closures[16], at;

static et_status
count(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    (void)self;
    (void)log;
    (void)s;
    if (event == ET_EVENT_BEFORE_TRAIN_BATCH)
        closures[at]++;
    else
        at++;
    return ET_OK;
}

static const struct et_algorithm_class counter_class = {
    .info = {.name = "counter"},
    .events = ET_ON(BEFORE_TRAIN_BATCH) | ET_ON(BATCH_END),
    .apply = count,
};

static void
test_interval(struct et_ctx *cx)
{
    struct et_algorithm counter = {.type = &counter_class, .cx = cx};
    struct et_algorithm *sam = algorithm(cx, "sam", OPTIONS("interval", "3"));
    struct et_algorithm *list[] = {sam, &counter};
    train(cx, (struct run_setup){.n = 8, .max_duration = ET_BATCHES(6)}, list, 2);
    for (int i = 0; i < 6; i++)
        is_int(closures[i], i % 3 == 2 ? 2 : 1, "interval 3: passes of step %d", i + 1);
    et_algorithm_free(&sam);
}

static void
test_nothing(struct et_ctx *cx)
{
    struct run_setup setup = {.n = 8, .max_duration = ET_EPOCHS(3)};
    struct et_algorithm *sam = algorithm(cx, "sam", OPTIONS("rho", "0"));
    struct losses plain = train(cx, setup, NULL, 0), none = train(cx, setup, &sam, 1);
    ok(difference(&plain, &none) == 0, "rho 0 is the base optimizer");
    et_algorithm_free(&sam);
}

static float
running_mean(struct et_ctx *cx, struct et_algorithm **list, int n)
{
    struct run r;
    float mean[16];
    struct run_setup setup = {.n = 4, .model = "resnet8"};
    setup.algorithms = list;
    setup.n_algorithms = n;
    run_open(&r, cx, &setup);
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    need(cx, et_model_get_param(r.model, "bn1.running_mean", 17, mean, 16));
    run_close(&r);
    return mean[0];
}

static void
test_statistics(struct et_ctx *cx)
{
    struct et_algorithm *sam = algorithm(cx, "sam", OPTIONS("rho", "1"));
    float with = running_mean(cx, &sam, 1), without = running_mean(cx, NULL, 0);
    ok(with == without && with != 0, "running statistics follow the first pass only");
    et_algorithm_free(&sam);
}

/* ---- memory ---- */

/* The passes of a run's batches, one after another, "|" between batches; and memory
 * that somebody else takes before the first second pass and gives back after it. */
struct passes {
    char text[64];
    size_t n;
    bool squeeze;
};
static struct passes passes;

static et_status
note_pass(struct et_algorithm *self, enum et_event event, struct et_state *s,
          struct et_log *log)
{
    struct et_device_memory memory;
    (void)self;
    (void)log;
    et_device_get_memory(s->dev, &memory);
    if (passes.squeeze && s->pass == 1) {
        et_device_set_limit(s->dev, memory.current_bytes / 4 * 3);
        passes.squeeze = false;
    } else if (passes.n == 2) {
        et_device_set_limit(s->dev, 0);
    }
    if (passes.n + 1 < sizeof passes.text)
        passes.text[passes.n++] =
            event == ET_EVENT_BATCH_END ? '|' : (char)('0' + s->pass);
    return ET_OK;
}

static const struct et_algorithm_class pass_class = {
    .info = {.name = "passes"},
    .events = ET_ON(BEFORE_TRAIN_BATCH) | ET_ON(BATCH_END),
    .apply = note_pass,
};

enum { WEIGHTS = 1 << 17 };
struct outcome {
    float weight[WEIGHTS];
    int64_t n, grad_accum;
    size_t peak;
};

/* A run of two batches; GRAD_ACCUM 0 = auto, LIMIT 0 = none. */
static void
run_within(struct et_ctx *cx, int64_t grad_accum, size_t limit, bool squeeze,
           struct outcome *out)
{
    struct et_algorithm noter = {.type = &pass_class, .cx = cx};
    struct et_algorithm *list[] = {algorithm(cx, "sam", OPTIONS("rho", "0.5")), &noter};
    struct run_setup setup = {
        .model = "resnet8",
        .n = 16,
        .batch_size = 16,
        .max_duration = ET_BATCHES(2),
        .grad_accum = grad_accum,
        .auto_accum = grad_accum == 0,
        .repeats = true,
        .algorithms = list,
        .n_algorithms = 2,
    };
    struct et_device_memory memory;
    struct run r;
    passes = (struct passes){.squeeze = squeeze};
    run_open(&r, cx, &setup);
    et_device_set_limit(r.dev, limit);
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    et_device_get_memory(r.dev, &memory);
    const struct et_tensor *all = r.state->params->values;
    out->n = et_desc_count(&all->desc);
    if (out->n > WEIGHTS)
        bail("%d weights", (int)out->n);
    need(cx, et_tensor_read(cx, all, out->weight, et_desc_bytes(&all->desc)));
    out->grad_accum = r.state->grad_accum;
    out->peak = memory.peak_bytes;
    run_close(&r);
    et_algorithm_free(&list[0]);
}

static bool
same_weights(const struct outcome *a, const struct outcome *b)
{
    return a->n == b->n &&
           memcmp(a->weight, b->weight, (size_t)a->n * sizeof(float)) == 0;
}

/* However little memory there is, down to what four microbatches need, the run is that
 * of the number found. */
static void
test_memory(struct et_ctx *cx)
{
    enum { LIMITS = 8 };
    static struct outcome fixed[5], found;
    int first = 0, same = 0;
    for (int k = 1; k <= 4; k++)
        run_within(cx, k, 0, false, &fixed[k]);
    size_t least = fixed[4].peak, most = fixed[1].peak;
    ok(least < most, "sam in four microbatches needs less memory (%zu, %zu)", least,
       most);
    for (int i = 0; i < LIMITS; i++) {
        run_within(cx, 0, least + (most - least) * (size_t)i / LIMITS, false, &found);
        bool is_one =
            found.grad_accum <= 4 && same_weights(&found, &fixed[found.grad_accum]);
        same += is_one;
        if (!is_one)
            diag("limit %d: grad_accum %d, passes %s", i, (int)found.grad_accum,
                 passes.text);
        first += found.grad_accum > 1;
    }
    is_int(same, LIMITS, "at each limit the weights are those of the number found");
    ok(first > 0 && first < LIMITS, "which at %d of %d is more than one", first,
       LIMITS);

    /* The second pass is the one that does not fit: by then the weights are moved. */
    run_within(cx, 0, 0, true, &found);
    is_str(passes.text, "0101|01|",
           "a second pass without memory begins the step again");
    ok(found.grad_accum == 2 && same_weights(&found, &fixed[2]),
       "from the weights as they were, in two microbatches");
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_step(cx);
    test_interval(cx);
    test_nothing(cx);
    test_statistics(cx);
    test_memory(cx);
    const char *why = refusal(cx, "sam", OPTIONS("rho", "-1"));
    ok(strstr(why, "rho"), "a negative rho is refused: %s", why);
    why = refusal(cx, "sam", OPTIONS("interval", "0"));
    ok(strstr(why, "interval"), "so is interval 0: %s", why);
    check_run(cx, (struct run_setup){.n = 8, .max_duration = ET_EPOCHS(3)}, "sam",
              OPTIONS("rho", "0.5"));
    return finish(cx);
}
