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

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_step(cx);
    test_interval(cx);
    test_nothing(cx);
    test_statistics(cx);
    const char *why = refusal(cx, "sam", OPTIONS("rho", "-1"));
    ok(strstr(why, "rho"), "a negative rho is refused: %s", why);
    why = refusal(cx, "sam", OPTIONS("interval", "0"));
    ok(strstr(why, "interval"), "so is interval 0: %s", why);
    check_run(cx, (struct run_setup){.n = 8, .max_duration = ET_EPOCHS(3)}, "sam",
              OPTIONS("rho", "0.5"));
    return finish(cx);
}
