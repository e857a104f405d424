/* SPDX-License-Identifier: Apache-2.0 */
/* own_loop.c: training with a loop of your own.
 *
 * Etude's trainer is one way to use the engine. This is the other: a dataset, a loader,
 * a model, its parameters in flat memory, an optimizer and a graph, and the dozen lines
 * that make a training step out of them. It trains a small network on images that a
 * seed makes up, so it needs no data, and fails when the loss does not fall.
 *
 *     cc own_loop.c $(pkg-config --cflags --libs etude) -o own_loop && ./own_loop
 *
 * Every fallible call returns an et_status. ET_TRY hands it upward; main prints the
 * sentence that the context has kept about the first thing that went wrong. */
#include <etude/etude.h>

#include <stdio.h>

enum { EPOCHS = 6 };
#define SEED 17

/* Everything a training run is made of. The order is the one in which things are made;
 * they are given back in the reverse order, and every free function takes NULL. */
struct run {
    struct et_ctx *cx;
    struct et_device *dev;
    void *data_options, *model_options, *optimizer_options;
    struct et_dataset *data;
    struct et_loader *loader;
    struct et_model *model;
    struct et_param_space *space; /* where parameters lie: one flat array */
    struct et_optimizer *optimizer;
    struct et_graph *graph;
    struct et_tensor *rng; /* I64 [2]: what dropout masks are drawn from */
};

/* Options are a plain struct described by a table: et_options_new fills one with its
 * defaults, then sets what should differ, by name and as text.
 *
 * A dataset knows how to read samples, a loader which ones and when. */
static et_status
open_data(struct run *r)
{
    /* clang-format off */
    static const char *const set[] = {
        "type", "separable", /* brighter images have higher labels */
        "channels", "1",
        "resolution", "28",
        "num_samples", "512",
        "num_unique", "512",
        "batch_size", "64",
        "transforms", "{normalize: {mean: [0.5], std: [0.2]}}",
        NULL,
    };
    /* clang-format on */
    const struct et_dataset_class *c = et_dataset_find("synthetic_images");
    const struct et_loader_config config = {.seed = SEED, .train = true, .dev = r->dev};
    ET_TRY(et_options_new(r->cx, &c->info, set, &r->data_options));
    ET_TRY(et_dataset_open(r->cx, c, r->data_options, &r->data));
    return et_loader_new(r->cx, r->data, &config, &r->loader);
}

/* A model declares its parameters; a parameter space gives them memory, all of it in
 * one array, so that an optimizer is a single pass; a bound parameter is a view of
 * it. */
static et_status
make_model(struct run *r)
{
    static const char *const set[] = {"hidden", "64", NULL};
    const struct et_model_class *c = et_model_class_find("mlp");
    struct et_loader_info info;
    et_loader_get_info(r->loader, &info); /* what the model will see: [N,C,H,W] */
    const struct et_model_facts facts = {
        .channels = info.desc[ET_FIELD_X].shape[1],
        .height = info.desc[ET_FIELD_X].shape[2],
        .width = info.desc[ET_FIELD_X].shape[3],
        .num_classes = et_facts_classes(&r->data->facts),
    };
    ET_TRY(et_options_new(r->cx, &c->info, set, &r->model_options));
    ET_TRY(et_model_new(r->cx, c, r->model_options, &facts, &r->model));
    return et_model_bind_space(r->model, r->dev, SEED, &r->space);
}

static et_status
make_optimizer(struct run *r)
{
    static const char *const set[] = {"lr", "0.05", "momentum", "0.9", NULL};
    const struct et_optimizer_class *c = et_optimizer_find("sgd");
    const int64_t two[] = {2};
    ET_TRY(et_options_new(r->cx, &c->info, set, &r->optimizer_options));
    ET_TRY(et_optimizer_new(r->cx, c, r->optimizer_options, r->space, &r->optimizer));
    ET_TRY(et_tensor_new(r->cx, r->dev, ET_I64, 1, two, ET_ROW_MAJOR, "rng", &r->rng));
    return et_graph_new(r->cx, r->dev, &r->graph);
}

/* One step. Until et_eval nothing is computed: each line appends nodes to the graph.
 * The first step's graph is planned; from the second on the plan is found again and
 * replayed. A line that goes wrong makes the graph remember why, and the later ones do
 * nothing. */
static et_status
train_step(struct run *r, const struct et_batch *b, double *loss)
{
    struct et_graph *g = r->graph;
    const int64_t rng[] = {(int64_t)et_rng_key(SEED, ET_RNG_DROPOUT), b->first};
    ET_TRY(et_tensor_write(r->cx, r->rng, rng, sizeof rng));

    const struct et_samples samples = et_batch_samples(g, b); /* x, target, others */
    struct et_forward f = {
        .g = g, .samples = &samples, .training = true, .rng = r->rng};
    struct et_tensor *outputs = et_model_forward(r->model, &f, samples.x);
    struct et_tensor *mean =
        et_model_loss(r->model, g, outputs, &samples, ET_REDUCE_MEAN);

    struct et_tensor *flat = et_param_space_gradient(g, r->space, mean);
    /* Here is the place for formulas on the gradient: clipping, averaging, noise. */
    ET_TRY(et_optimizer_update(g, r->optimizer, flat, NULL, NULL));

    ET_TRY(et_eval(g, &mean, 1)); /* runs everything; parameters change at its end */
    ET_TRY(et_item(g, mean, loss));
    et_optimizer_done(r->optimizer, false);
    et_graph_reset(g); /* the step's tensors end here; its plan stays */
    return ET_OK;
}

/* The mean loss of one pass over the data. */
static et_status
train_epoch(struct run *r, double *mean)
{
    double sum = 0;
    int64_t samples = 0;
    for (;;) {
        const struct et_batch *b;
        double loss;
        ET_TRY(et_loader_next(r->cx, r->loader, &b));
        if (!b)
            break;
        et_status status = train_step(r, b, &loss);
        sum += loss * (double)b->n_samples;
        samples += b->n_samples;
        et_loader_release(r->loader, b);
        ET_TRY(status);
    }
    *mean = sum / (double)samples;
    return ET_OK;
}

static et_status
train(struct run *r, double *first, double *last)
{
    /* The CPU device is a module that is loaded; the plain C reference is always
     * there. */
    if (et_device_open(r->cx, "cpu", 0, 0, &r->dev) != ET_OK) {
        et_error_clear(r->cx);
        ET_TRY(et_device_open(r->cx, "ref", 0, 0, &r->dev));
    }
    ET_TRY(open_data(r));
    ET_TRY(make_model(r));
    ET_TRY(make_optimizer(r));
    printf("training %lld parameters on device %s\n", (long long)r->space->total,
           et_device_name(r->dev));
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        ET_TRY(train_epoch(r, last));
        if (epoch == 0)
            *first = *last;
        printf("epoch %d: loss %.4f\n", epoch + 1, *last);
    }
    return ET_OK;
}

static void
release(struct run *r)
{
    et_graph_free(&r->graph);
    et_tensor_free(&r->rng);
    et_optimizer_free(&r->optimizer);
    et_model_free(&r->model);
    et_param_space_free(&r->space);
    et_loader_free(&r->loader);
    et_dataset_close(&r->data);
    et_options_free(&et_optimizer_find("sgd")->info, &r->optimizer_options);
    et_options_free(&et_model_class_find("mlp")->info, &r->model_options);
    et_options_free(&et_dataset_find("synthetic_images")->info, &r->data_options);
    et_device_close(&r->dev);
}

int
main(void)
{
    struct run r = {0};
    double first = 0, last = 0;
    if (et_ctx_new(&r.cx) != ET_OK) {
        fprintf(stderr, "own_loop: %s\n", et_error_get(NULL)->message);
        return 1;
    }
    et_ctx_set_checks(r.cx, true); /* says what is freed or closed too early */
    et_status status = train(&r, &first, &last);
    if (status != ET_OK)
        fprintf(stderr, "own_loop: %s\n", et_error_get(r.cx)->message);
    release(&r);
    et_ctx_free(&r.cx);
    if (status != ET_OK)
        return 1;
    if (!(last < 0.8 * first)) {
        fprintf(stderr, "own_loop: the loss did not fall (%g to %g)\n", first, last);
        return 1;
    }
    return 0;
}
