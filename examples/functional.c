/* SPDX-License-Identifier: Apache-2.0 */
/* functional.c: training methods in a loop of your own.
 *
 * A recipe names training methods, and the trainer calls them. Here the same methods
 * are functions (etude/functional.h) that a loop calls where it wants them: some change
 * the network before training, some the batch, the labels, the gradient or the weights
 * of a step, and some say how far a schedule has come. own_loop.c explains the loop
 * itself.
 *
 *     cc functional.c $(pkg-config --cflags --libs etude) -o functional && ./functional
 */
#include <etude/etude.h>

#include <stdio.h>

enum { EPOCHS = 8, BATCH = 32, SAMPLES = 256, STEPS = EPOCHS * SAMPLES / BATCH };
#define SEED 17

/* A residual network small enough for a test. */
static const char network[] =
    "[{conv2d: {out: 16, kernel: 3, padding: 1}}, batch_norm, relu,"
    " {bottleneck: {channels: 8}}, {bottleneck: {channels: 8}},"
    " {bottleneck: {channels: 8, stride: 2}}, adaptive_avg_pool2d, flatten,"
    " {dropout: {p: 0.1}}, {linear: {out: 10}}]";

struct run {
    struct et_ctx *cx;
    struct et_device *dev;
    void *data_options, *model_options, *optimizer_options;
    struct et_dataset *data;
    struct et_loader *loader;
    struct et_model *model;
    struct et_stochastic_depth *depth;
    struct et_gyro_dropout *masks;
    struct et_param_space *space;
    struct et_optimizer *optimizer;
    struct et_graph *graph;
    struct et_tensor *rng;              /* I64 [2]: of dropout */
    struct et_tensor *partner, *weight; /* mixup's: I32 [BATCH], f32 [1] */
    struct et_param_copy *average;      /* EMA's weights */
    int64_t step;
};

static et_status
open_data(struct run *r)
{
    static const char *const set[] = {
        "type",        "separable",
        "resolution",  "16",
        "num_samples", "256",
        "num_unique",  "256",
        "batch_size",  "32",
        "drop_last",   "true",
        "transforms",  "{normalize: {mean: [0.5, 0.5, 0.5], std: [0.2, 0.2, 0.2]}}",
        NULL,
    };
    const struct et_dataset_class *c = et_dataset_find("synthetic_images");
    const struct et_loader_config config = {.seed = SEED, .train = true, .dev = r->dev};
    ET_TRY(et_options_new(r->cx, &c->info, set, &r->data_options));
    ET_TRY(et_dataset_open(r->cx, c, r->data_options, &r->data));
    return et_loader_new(r->cx, r->data, &config, &r->loader);
}

static void
say(const char *what, int n)
{
    printf("  %s: %d\n", what, n);
}

/* ---- before training: what the network is ---- */

/* Says how many modules were replaced, and forgets which. */
static et_status
replaced(et_status status, const char *what, struct et_surgery *surgery)
{
    if (status == ET_OK)
        say(what, surgery->n);
    et_surgery_release(surgery);
    return status;
}

/* The order is that in which the methods should meet: what makes new convolutions
 * before what changes all there are. */
static et_status
change_network(struct run *r)
{
    struct et_module *root = r->model->root;
    struct et_surgery s;
    printf("changed in the network:\n");
    et_status status = et_apply_blurpool(r->cx, root, true, true, true, 8, &s);
    ET_TRY(replaced(status, "strided convolutions blurred (BlurPool)", &s));
    status = et_apply_squeeze_excite(r->cx, root, 0.25, 32, &s);
    ET_TRY(replaced(status, "channels weighed (SqueezeExcite)", &s));
    status = et_apply_ghost_batchnorm(r->cx, root, BATCH / 2, &s);
    ET_TRY(replaced(status, "norms over half a batch (GhostBatchNorm)", &s));
    status = et_apply_weight_standardization(r->cx, root, 0, &s);
    ET_TRY(replaced(status, "weights standardized (WeightStandardization)", &s));
    ET_TRY(et_apply_stochastic_depth(r->cx, root, r->dev, ET_STOCHASTIC_BLOCK, 0.1,
                                     ET_DROP_LINEAR, &r->depth));
    say("blocks left out at random (StochasticDepth)",
        et_stochastic_depth_blocks(r->depth));
    ET_TRY(
        et_apply_gyro_dropout(r->cx, root, r->dev, STEPS, 0.1, 16, 4, SEED, &r->masks));
    say("layers with masks that stay (GyroDropout)", et_gyro_dropout_layers(r->masks));
    return ET_OK;
}

static et_status
make_model(struct run *r)
{
    static const char *const set[] = {"layers", network, NULL};
    const struct et_model_class *c = et_model_class_find("layers");
    struct et_loader_info info;
    et_loader_get_info(r->loader, &info);
    const struct et_model_facts facts = {
        .channels = info.desc[ET_FIELD_X].shape[1],
        .height = info.desc[ET_FIELD_X].shape[2],
        .width = info.desc[ET_FIELD_X].shape[3],
        .num_classes = et_facts_classes(&r->data->facts),
    };
    ET_TRY(et_options_new(r->cx, &c->info, set, &r->model_options));
    ET_TRY(et_model_new(r->cx, c, r->model_options, &facts, &r->model));
    ET_TRY(change_network(r));
    return et_model_bind_space(r->model, r->dev, SEED, &r->space);
}

static et_status
make_rest(struct run *r)
{
    static const char *const set[] = {"lr", "0.05", "momentum", "0.9", NULL};
    const struct et_optimizer_class *c = et_optimizer_find("sgd");
    const int64_t one[] = {1}, two[] = {2}, batch[] = {BATCH};
    ET_TRY(et_options_new(r->cx, &c->info, set, &r->optimizer_options));
    ET_TRY(et_optimizer_new(r->cx, c, r->optimizer_options, r->space, &r->optimizer));
    ET_TRY(et_param_copy_new(r->space, "average", &r->average));
    ET_TRY(et_tensor_new(r->cx, r->dev, ET_I64, 1, two, ET_ROW_MAJOR, "rng", &r->rng));
    ET_TRY(et_tensor_new(r->cx, r->dev, ET_I32, 1, batch, ET_ROW_MAJOR, "partner",
                         &r->partner));
    ET_TRY(et_tensor_new(r->cx, r->dev, ET_F32, 1, one, ET_ROW_MAJOR, "weight",
                         &r->weight));
    return et_graph_new(r->cx, r->dev, &r->graph);
}

/* ---- a step ---- */

/* What is drawn for a step is written into small leaves, so that its formulas, and with
 * them its plan, stay the same. */
static et_status
draw(struct run *r, const struct et_batch *b)
{
    struct et_rng mix = et_rng_at(SEED, ET_RNG_MIX, (uint64_t)b->first);
    struct et_rng depth = et_rng_at(SEED, ET_RNG_USER, (uint64_t)r->step);
    const int64_t rng[] = {(int64_t)et_rng_key(SEED, ET_RNG_DROPOUT), b->first};
    int32_t partner[BATCH];
    float weight = (float)et_mixup_coefficient(&mix, 0.2);
    et_rng_permutation(&mix, partner, BATCH);
    ET_TRY(et_tensor_write(r->cx, r->weight, &weight, sizeof weight));
    ET_TRY(et_tensor_write(r->cx, r->partner, partner, sizeof partner));
    ET_TRY(et_tensor_write(r->cx, r->rng, rng, sizeof rng));
    ET_TRY(et_stochastic_depth_draw(r->depth, &depth));
    return et_gyro_dropout_begin(r->masks, r->step, b->n_samples);
}

/* ProgressiveResizing: half of the size at the start, all of it for the last
 * quarter. */
static struct et_tensor *
resize(struct run *r, struct et_tensor *x)
{
    double elapsed = (double)r->step / STEPS;
    int64_t size[] = {x->desc.shape[2], x->desc.shape[3]};
    et_resize_size(et_resize_scale(elapsed, 0.5, 0.25, 0.25), 4, size);
    if (size[1] == x->desc.shape[3])
        return x;
    return et_resize_batch(r->graph, x, ET_RESIZE_NEAREST, size[0], size[1],
                           (double)x->desc.shape[3] / (double)size[1]);
}

static et_status
train_step(struct run *r, const struct et_batch *b, double *loss)
{
    struct et_graph *g = r->graph;
    struct et_samples samples = et_batch_samples(g, b);
    ET_TRY(draw(r, b));
    samples.x = resize(r, samples.x);
    samples.x = et_mixup_batch(g, samples.x, samples.x, r->partner, r->weight);

    struct et_forward f = {
        .g = g, .samples = &samples, .training = true, .rng = r->rng};
    struct et_tensor *outputs = et_model_forward(r->model, &f, samples.x);
    struct et_tensor *labels = et_smooth_labels(g, outputs, samples.target, 0.1);
    samples.target = et_mixup_batch(g, labels, labels, r->partner, r->weight);
    struct et_tensor *mean =
        et_model_loss(r->model, g, outputs, &samples, ET_REDUCE_MEAN);

    struct et_tensor *grad = et_param_space_gradient(g, r->space, mean);
    grad = et_apply_gradient_clipping(g, grad, r->space, ET_CLIP_NORM, 1, 0);
    ET_TRY(et_optimizer_update(g, r->optimizer, grad, NULL, NULL));
    et_assign(g, r->average->values,
              et_compute_ema(g, r->average->values, et_pending(g, r->space->values),
                             et_ema_smoothing(8, 1)));
    ET_TRY(et_eval(g, &mean, 1));
    ET_TRY(et_item(g, mean, loss));
    et_optimizer_done(r->optimizer, false);
    et_graph_reset(g);
    r->step++;
    return ET_OK;
}

static et_status
train_epoch(struct run *r, double *mean)
{
    const struct et_batch *b;
    int n = 0;
    *mean = 0;
    for (;;) {
        double loss;
        ET_TRY(et_loader_next(r->cx, r->loader, &b));
        if (!b)
            break;
        et_status status = train_step(r, b, &loss);
        *mean += loss;
        n++;
        et_loader_release(r->loader, b);
        ET_TRY(status);
    }
    *mean /= n;
    return ET_OK;
}

/* LayerFreezing: from half of the run on, early layers are trained no more. */
static void
freeze(struct run *r)
{
    int frozen, layers;
    double elapsed = (double)r->step / STEPS;
    et_freeze_layers(r->model->root, et_freeze_fraction(elapsed, 0.5, 0.5), &frozen,
                     &layers);
    struct et_leaves leaves;
    if (et_module_leaves(r->cx, r->model->root, ET_PARAM, &leaves) != ET_OK)
        return;
    for (int i = 0; i < leaves.n; i++) {
        int slot = et_param_space_find(r->space, leaves.v[i].name);
        if (slot >= 0)
            r->space->slot[slot].frozen = !leaves.v[i].param->requires_grad;
    }
    et_leaves_release(&leaves);
    printf("  %d of %d layers frozen\n", frozen, layers);
}

static et_status
train(struct run *r, double *first, double *last)
{
    if (et_device_open(r->cx, "cpu", 0, 0, &r->dev) != ET_OK) {
        et_error_clear(r->cx);
        ET_TRY(et_device_open(r->cx, "ref", 0, 0, &r->dev));
    }
    ET_TRY(open_data(r));
    ET_TRY(make_model(r));
    ET_TRY(make_rest(r));
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        ET_TRY(train_epoch(r, last));
        if (epoch == 0)
            *first = *last;
        printf("epoch %d: loss %.4f\n", epoch + 1, *last);
        freeze(r);
    }
    return ET_OK;
}

static void
release(struct run *r)
{
    et_graph_free(&r->graph);
    et_stochastic_depth_free(&r->depth);
    et_gyro_dropout_free(&r->masks);
    et_tensor_free(&r->rng);
    et_tensor_free(&r->partner);
    et_tensor_free(&r->weight);
    et_param_copy_free(&r->average);
    et_optimizer_free(&r->optimizer);
    et_model_free(&r->model);
    et_param_space_free(&r->space);
    et_loader_free(&r->loader);
    et_dataset_close(&r->data);
    et_options_free(&et_optimizer_find("sgd")->info, &r->optimizer_options);
    et_options_free(&et_model_class_find("layers")->info, &r->model_options);
    et_options_free(&et_dataset_find("synthetic_images")->info, &r->data_options);
    et_device_close(&r->dev);
}

int
main(void)
{
    struct run r = {0};
    double first = 0, last = 0;
    if (et_ctx_new(&r.cx) != ET_OK) {
        fprintf(stderr, "functional: %s\n", et_error_get(NULL)->message);
        return 1;
    }
    et_ctx_set_checks(r.cx, true);
    et_status status = train(&r, &first, &last);
    if (status != ET_OK)
        fprintf(stderr, "functional: %s\n", et_error_get(r.cx)->message);
    release(&r);
    et_ctx_free(&r.cx);
    if (status != ET_OK)
        return 1;
    if (!(last < first)) {
        fprintf(stderr, "functional: the loss did not fall (%g to %g)\n", first, last);
        return 1;
    }
    return 0;
}
