/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of the loop that a user may replace, and predictions. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"

enum { BATCHES = 4, SAMPLES = 8 };

/* A batch's loss is a sum of four f32 numbers, 2^-24 each. */
#define ROUNDING 1e-6

struct result {
    double loss[BATCHES], part[2][BATCHES];
    double accuracy;
    int n;
    float *params, *start; /* for free() */
    int64_t count;
};

struct tape {
    struct et_sink sink; /* first */
    struct result *to;
};

static void
record(struct et_sink *sink, const struct et_record *r)
{
    struct result *to = ((struct tape *)sink)->to;
    if (r->kind != ET_RECORD_BATCH || to->n == BATCHES)
        return;
    for (int i = 0; i < r->n; i++) {
        const struct et_log_entry *e = &r->entry[i];
        if (strcmp(e->name, "loss/train/total") == 0)
            to->loss[to->n] = e->value;
        if (strcmp(e->name, "loss/train/data") == 0)
            to->part[0][to->n] = e->value;
        if (strcmp(e->name, "loss/train/extra") == 0)
            to->part[1][to->n] = e->value;
    }
    to->n++;
}

static float *
parameters(struct run *r, int64_t *count)
{
    const struct et_tensor *all = r->state->params->values;
    size_t bytes = et_desc_bytes(&all->desc);
    float *copy = malloc(bytes);
    if (!copy)
        bail("no memory");
    need(r->cx, et_tensor_read(r->cx, all, copy, bytes));
    *count = et_desc_count(&all->desc);
    return copy;
}

/* Two epochs of two batches, in K microbatches each, with STEPS; evaluated at the
 * end. */
static struct result
train(struct et_ctx *cx, const struct et_trainer_steps *steps, int k)
{
    struct result out = {0};
    struct tape tape = {.sink = {.write = record}, .to = &out};
    struct run r;
    run_prepare(&r, cx,
                &(struct run_setup){.n = SAMPLES,
                                    .max_duration = ET_EPOCHS(2),
                                    .eval_interval = ET_EPOCHS(2),
                                    .evaluate = true,
                                    .grad_accum = k,
                                    .sink = &tape.sink});
    r.config.steps = steps;
    run_start(&r);
    out.start = parameters(&r, &out.count);
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    out.params = parameters(&r, &out.count);
    if (!et_state_metric(r.state, "metrics/eval/Accuracy", &out.accuracy))
        bail("no accuracy");
    run_close(&r);
    return out;
}

static void
release(struct result *r)
{
    free(r->params);
    free(r->start);
}

static bool
is_same_run(const struct result *a, const struct result *b)
{
    return memcmp(a->loss, b->loss, sizeof a->loss) == 0 &&
           memcmp(a->params, b->params, (size_t)a->count * sizeof(float)) == 0;
}

static double
farthest(const float *a, const float *b, int64_t n)
{
    double worst = 0;
    for (int64_t i = 0; i < n; i++)
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
    return worst;
}

/* Positive where A's parameters went the way that B's did. */
static double
along(const struct result *a, const struct result *b)
{
    double sum = 0;
    for (int64_t i = 0; i < a->count; i++)
        sum += ((double)a->params[i] - (double)a->start[i]) *
               ((double)b->params[i] - (double)b->start[i]);
    return sum;
}

/* ---- steps ---- */

static struct et_tensor *
forward(void *data, struct et_state *s, struct et_forward *f)
{
    ++*(int *)data;
    return et_model_forward(s->model, f, s->batch.x);
}

static struct et_tensor *
loss(void *data, struct et_state *s)
{
    (void)data;
    return et_state_loss(s, s->outputs, s->batch.target, ET_REDUCE_MEAN);
}

static struct et_tensor *
doubled_loss(void *data, struct et_state *s)
{
    return et_mul_scalar(s->graph, loss(data, s), 2);
}

/* The loss and 0.01 times the mean square of the outputs. */
static struct et_tensor *
loss_of_parts(void *data, struct et_state *s)
{
    struct et_graph *g = s->graph;
    struct et_tensor *of_data = loss(data, s);
    struct et_tensor *squares = et_mul(g, s->outputs, s->outputs);
    struct et_tensor *extra = et_mul_scalar(g, et_mean(g, squares, 3, false), 0.01);
    if (et_state_log_loss(s, "data", of_data) != ET_OK ||
        et_state_log_loss(s, "extra", extra) != ET_OK)
        return NULL;
    return et_add(g, of_data, extra);
}

static et_status
backward(void *data, struct et_state *s, struct et_tensor *of,
         struct et_tensor *const *params, int n, struct et_tensor **grads)
{
    (void)data;
    ET_TRY(et_grad(s->graph, of, params, n, grads));
    for (int i = 0; i < n; i++)
        grads[i] = grads[i] ? et_neg(s->graph, grads[i]) : NULL;
    return et_graph_status(s->graph);
}

static struct et_tensor *
clip(void *data, struct et_state *s, struct et_tensor *grad)
{
    double most = *(const double *)data;
    return et_clamp(s->graph, grad, -most, most);
}

/* Plain gradient descent, without the optimizer. */
static et_status
descend(void *data, struct et_state *s, struct et_tensor *grad, struct et_tensor *skip)
{
    struct et_graph *g = s->graph;
    struct et_tensor *p = s->params->values;
    struct et_tensor *next =
        et_sub(g, p, et_mul_scalar(g, grad, *(const double *)data));
    et_assign(g, p, et_where(g, skip, p, next));
    return et_graph_status(g);
}

static et_status
rate(void *data, struct et_state *s, double *factor)
{
    *factor = s->timestamp.batch < 2 ? 1 : *(const double *)data;
    return ET_OK;
}

static struct et_tensor *
know_all(void *data, struct et_state *s, struct et_forward *f)
{
    (void)data;
    (void)f;
    return et_one_hot(s->graph, s->batch.target, s->model->num_classes);
}

static void
test_defaults(struct et_ctx *cx)
{
    int calls = 0;
    const struct et_trainer_steps none = {0};
    const struct et_trainer_steps same = {.data = &calls,
                                          .train_forward = forward,
                                          .eval_forward = forward,
                                          .train_loss = loss};
    struct result plain = train(cx, NULL, 1), empty = train(cx, &none, 1);
    struct result own = train(cx, &same, 1);
    ok(is_same_run(&plain, &empty), "steps that are NULL are the loop's own");
    ok(is_same_run(&plain, &own), "steps that do what the loop does change nothing");
    is_int(calls, 4 + 2, "and are called for each batch of training and evaluation");
    release(&plain);
    release(&empty);
    release(&own);
}

static void
test_replaced(struct et_ctx *cx)
{
    double tiny = 1e-3, lr = 0.1, zero = 0;
    struct result plain = train(cx, NULL, 1);
    struct result r =
        train(cx, &(struct et_trainer_steps){.train_loss = doubled_loss}, 1);
    is_near(r.loss[0], 2 * plain.loss[0], ROUNDING,
            "a loss of one's own is trained with");
    release(&r);
    r = train(cx, &(struct et_trainer_steps){.backward = backward}, 1);
    ok(r.loss[0] == plain.loss[0] && along(&r, &plain) < 0,
       "a backward pass of one's own, the wrong way, takes the parameters the other "
       "way");
    release(&r);
    r = train(cx, &(struct et_trainer_steps){.data = &tiny, .clip_gradients = clip}, 1);
    /* Parameters below 1 round by 2^-25 in each of the four updates. */
    double moved = farthest(r.params, r.start, r.count);
    ok(moved > 0 && moved <= 4 * (0.1 * tiny + 0x1p-25),
       "clipped gradients move no parameter by more than lr times their bound");
    release(&r);
    r = train(cx, &(struct et_trainer_steps){.data = &lr, .optimizer_step = descend},
              1);
    is_near_array(r.params, plain.params, r.count, ROUNDING,
                  "an update of one's own by -lr g is what sgd does");
    release(&r);
    r = train(cx, &(struct et_trainer_steps){.data = &zero, .scheduler_step = rate}, 1);
    ok(r.loss[1] == plain.loss[1] && r.loss[2] == plain.loss[2] &&
           r.loss[3] != plain.loss[3],
       "a schedule of one's own sets each update's rate");
    release(&r);
    r = train(cx, &(struct et_trainer_steps){.eval_forward = know_all}, 1);
    ok(memcmp(r.loss, plain.loss, sizeof r.loss) == 0 && r.accuracy == 1,
       "an evaluation of one's own is measured, and training goes on as ever");
    release(&r);
    release(&plain);
}

static void
test_parts(struct et_ctx *cx)
{
    for (int k = 1; k <= 4; k *= 2) {
        struct result r =
            train(cx, &(struct et_trainer_steps){.train_loss = loss_of_parts}, k);
        double worst = 0;
        bool apart = true;
        for (int i = 0; i < BATCHES; i++) {
            worst = fmax(worst, fabs(r.part[0][i] + r.part[1][i] - r.loss[i]));
            apart &= r.part[0][i] > 0 && r.part[1][i] > 0;
        }
        ok(worst < ROUNDING && apart,
           "named parts of a loss are logged and add up to it, in %d microbatches", k);
        release(&r);
    }
}

/* ---- events ---- */

static char order[256];

static et_status
step_at(void *data, struct et_state *s, enum et_event event)
{
    (void)s;
    if (ET_ON_ALL & *(const uint64_t *)data & (UINT64_C(1) << event))
        snprintf(order + strlen(order), sizeof order - strlen(order), "%s ",
                 et_event_name(event));
    return ET_OK;
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    (void)self;
    (void)event;
    (void)s;
    (void)log;
    snprintf(order + strlen(order), sizeof order - strlen(order), "algorithm ");
    return ET_OK;
}

static void
test_events(struct et_ctx *cx)
{
    static const struct et_algorithm_class class = {.info = {.name = "last"},
                                                    .events = ET_ON(EPOCH_START) |
                                                              ET_ON(FIT_END),
                                                    .apply = apply};
    uint64_t events = ET_ON(FIT_START) | ET_ON(EPOCH_START) | ET_ON(FIT_END);
    const struct et_trainer_steps steps = {.data = &events, .at_event = step_at};
    struct et_algorithm a = {.type = &class, .cx = cx}, *list[] = {&a};
    struct run r;
    run_prepare(&r, cx, &(struct run_setup){.algorithms = list, .n_algorithms = 1});
    r.config.steps = &steps;
    run_start(&r);
    order[0] = '\0';
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    is_str(order, "fit_start epoch_start algorithm fit_end algorithm ",
           "a user's step at an event goes before the algorithms");
    run_close(&r);
}

/* ---- predictions ---- */

struct seen {
    int batches, samples, right, classes;
    bool order;
    int64_t batch_of_state;
    char label[16];
    et_status answer;
};

static et_status
look(void *data, const struct et_state *s, const struct et_prediction *p)
{
    struct seen *seen = data;
    int classes = (int)p->desc.shape[1];
    for (int64_t i = 0; i < p->batch->n_samples; i++) {
        const float *row = p->outputs + i * classes;
        int best = 0;
        for (int c = 1; c < classes; c++)
            best = row[c] > row[best] ? c : best;
        seen->right += best == p->batch->field[ET_FIELD_TARGET].host.i32[i];
        seen->order &= p->batch->first == seen->samples;
    }
    seen->classes = classes;
    seen->batches++;
    seen->samples += (int)p->desc.shape[0];
    seen->batch_of_state = s->predict_timestamp.batch;
    snprintf(seen->label, sizeof seen->label, "%s", s->dataloader_label);
    return seen->answer;
}

/* Outputs as an algorithm leaves them are what is handed over. */
static et_status
negate(struct et_algorithm *self, enum et_event event, struct et_state *s,
       struct et_log *log)
{
    (void)self;
    (void)event;
    (void)log;
    s->outputs = et_neg(s->graph, s->outputs);
    return ET_OK;
}

static et_status
keep_first(void *data, const struct et_state *s, const struct et_prediction *p)
{
    (void)s;
    if (p->batch->batch == 0)
        *(float *)data = p->outputs[0];
    return ET_OK;
}

static void
test_outputs(struct et_ctx *cx)
{
    static const struct et_algorithm_class class = {.info = {.name = "negate"},
                                                    .events =
                                                        ET_ON(PREDICT_AFTER_FORWARD),
                                                    .apply = negate};
    struct et_algorithm a = {.type = &class, .cx = cx}, *list[] = {&a};
    struct run r;
    float first[2];
    for (int i = 0; i < 2; i++) {
        run_open(&r, cx, &(struct run_setup){.algorithms = list, .n_algorithms = i});
        need(cx, et_trainer_predict(r.trainer, r.eval, keep_first, &first[i]));
        run_close(&r);
    }
    ok(first[0] != 0 && first[1] == -first[0],
       "outputs are handed over as hooks leave them");
}

static void
test_predict(struct et_ctx *cx)
{
    struct run r;
    double accuracy;
    struct seen seen = {.order = true, .answer = ET_OK};
    run_open(
        &r, cx,
        &(struct run_setup){.n = 10, .max_duration = ET_EPOCHS(8), .evaluate = true});
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    if (!et_state_metric(r.state, "metrics/eval/Accuracy", &accuracy))
        bail("no accuracy");
    r.state->dataloader_len = 77; /* the loaders here have as many batches each */
    need(cx, et_trainer_predict(r.trainer, r.eval, look, &seen));
    is_int(r.state->dataloader_len, 77, "an epoch is as long as it was before");
    ok(seen.batches == 3 && seen.samples == 10 && seen.classes == 10 && seen.order,
       "predictions come batch by batch, in the loader's order, the last batch too");
    is_near(seen.right / 10.0, accuracy, 1e-6,
            "they are right as often as evaluation says");
    is_str(seen.label, "predict", "the loader's label is predict");
    is_int(seen.batch_of_state, 2, "batches are counted");
    is_str(r.state->dataloader_label, "train", "after it the trainer is where it was");
    is_int(r.state->timestamp.batch, 24, "no training time has passed");
    seen.batches = 0;
    seen.answer = ET_ECANCELED;
    is_int(et_trainer_predict(r.trainer, r.eval, look, &seen), ET_ECANCELED,
           "a receiver may end it");
    is_int(seen.batches, 1, "at once");
    ok(et_trainer_predict(r.trainer, r.eval, NULL, NULL) == ET_OK,
       "without a receiver hooks alone see outputs");
    run_close(&r);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_defaults(cx);
    test_replaced(cx);
    test_parts(cx);
    test_events(cx);
    test_predict(cx);
    test_outputs(cx);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
