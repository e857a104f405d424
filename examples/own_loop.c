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
    struct et_leaves leaves;      /* the model's parameters, by name */
    struct et_param_space *space; /* where their values lie: one flat array */
    struct et_optimizer *optimizer;
    struct et_graph *graph;
    struct et_tensor **param; /* [leaves.n]: what the gradient is asked for */
    struct et_tensor **grad;  /* [leaves.n]: the answer; handles of the step's graph */
    struct et_tensor *rng;    /* I64 [2]: what dropout masks are drawn from */
};

/* Options are a plain struct described by a table. Fill one with its defaults, then set
 * what should differ, by name and as text: SET is name, text, ..., NULL. */
static et_status
make_options(struct et_ctx *cx, const struct et_component *c, const char *const *set,
             void **out)
{
    ET_TRY(et_alloc(cx, c->options_size, out));
    ET_TRY(et_options_init(cx, c->options, *out));
    for (; *set; set += 2)
        ET_TRY(et_options_set(cx, c->options, *out, set[0], set[1]));
    return ET_OK;
}

static void
free_options(struct et_ctx *cx, const struct et_component *c, void *options)
{
    if (options)
        et_options_release(c->options, options);
    et_free(cx, options);
}

/* A dataset knows how to read samples, a loader which ones and when. */
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
    ET_TRY(make_options(r->cx, &c->info, set, &r->data_options));
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
        .channels = info.x_desc.shape[1],
        .height = info.x_desc.shape[2],
        .width = info.x_desc.shape[3],
        .num_classes = r->data->facts.num_classes,
    };
    ET_TRY(make_options(r->cx, &c->info, set, &r->model_options));
    ET_TRY(et_model_new(r->cx, c, r->model_options, &facts, &r->model));
    return et_module_leaves(r->cx, r->model->root, ET_PARAM, &r->leaves);
}

static et_status
bind_parameters(struct run *r)
{
    const struct et_leaf *leaf = r->leaves.v;
    const size_t n = (size_t)r->leaves.n;
    void *block;
    ET_TRY(et_alloc(r->cx, n * sizeof(struct et_param_spec), &block));
    struct et_param_spec *specs = block;
    for (int i = 0; i < r->leaves.n; i++)
        specs[i] = (struct et_param_spec){
            .name = leaf[i].name,
            .desc = leaf[i].param->desc,
            .role = et_model_param_role(r->model, &r->leaves, i),
        };
    et_status status = et_param_space_new(r->cx, r->dev, specs, r->leaves.n, &r->space);
    et_free(r->cx, specs);
    ET_TRY(status);
    ET_TRY(et_alloc(r->cx, n * sizeof *r->param, &block));
    r->param = block;
    ET_TRY(et_alloc(r->cx, n * sizeof *r->grad, &block));
    r->grad = block;
    for (int i = 0; i < r->leaves.n; i++) {
        struct et_tensor *view;
        ET_TRY(et_param_space_view(r->cx, r->space, -1, i, &view));
        status = et_param_bind(r->cx, leaf[i].param, leaf[i].name, SEED, &view);
        et_tensor_free(&view); /* NULL once the parameter has taken it over */
        ET_TRY(status);
        r->param[i] = leaf[i].param->tensor;
    }
    /* What no optimizer touches (running statistics of norms) gets memory of its
     * own. */
    return et_module_bind(r->cx, r->model->root, r->dev, ET_BUFFER, SEED);
}

static et_status
make_optimizer(struct run *r)
{
    static const char *const set[] = {"lr", "0.05", "momentum", "0.9", NULL};
    const struct et_optimizer_class *c = et_optimizer_find("sgd");
    const int64_t two[] = {2};
    ET_TRY(make_options(r->cx, &c->info, set, &r->optimizer_options));
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

    struct et_forward f = {.g = g, .training = true, .rng = r->rng};
    struct et_tensor *outputs = et_model_forward(r->model, &f, et_batch_x(g, b));
    struct et_tensor *mean =
        et_model_loss(r->model, g, outputs, b->target_tensor, ET_REDUCE_MEAN);

    ET_TRY(et_grad(g, mean, r->param, r->leaves.n, r->grad));
    struct et_tensor *flat = et_param_space_pack(g, r->space, r->grad);
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
    ET_TRY(bind_parameters(r));
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
    struct et_ctx *cx = r->cx;
    et_graph_free(&r->graph);
    et_tensor_free(&r->rng);
    et_optimizer_free(&r->optimizer);
    et_free(cx, r->grad);
    et_free(cx, r->param);
    et_leaves_release(&r->leaves);
    et_model_free(&r->model);
    et_param_space_free(&r->space);
    et_loader_free(&r->loader);
    et_dataset_close(&r->data);
    free_options(cx, &et_optimizer_find("sgd")->info, r->optimizer_options);
    free_options(cx, &et_model_class_find("mlp")->info, r->model_options);
    free_options(cx, &et_dataset_find("synthetic_images")->info, r->data_options);
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
