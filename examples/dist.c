/* SPDX-License-Identifier: Apache-2.0 */
/* dist.c: a training loop of your own on several ranks.
 *
 * The program is one of several processes that share every batch: each has a copy of
 * the model, computes the gradient of its part of the batch, and all update by the mean
 * of these. examples/own_loop.c is the same with one process, and has more words about
 * the engine; here they are about what is different.
 *
 *     cc dist.c $(pkg-config --cflags --libs etude) -o dist
 *     ./dist                        alone
 *     etude launch -n 2 ./dist      as two ranks (or torchrun, mpirun, srun)
 *
 * It ends with an error when the loss does not fall, or when the ranks have come to
 * different weights. */
#include <etude/etude.h>

#include <stdio.h>
#include <string.h>

enum { EPOCHS = 8 };
#define SEED 17

struct run {
    struct et_ctx *cx;
    struct et_dist *dist;
    struct et_device *dev;
    void *data_options, *model_options, *optimizer_options;
    struct et_dataset *data;
    struct et_loader *loader;
    struct et_model *model;
    struct et_param_space *space;
    struct et_optimizer *optimizer;
    struct et_graph *graph;
    struct et_tensor *rng;   /* I64 [2]: what dropout masks are drawn from */
    struct et_tensor *share; /* F32 [1]: of the batch, that this rank has */
};

/* batch_size is that of all ranks together; the loader gives each rank its part. */
static et_status
open_data(struct run *r)
{
    /* clang-format off */
    static const char *const set[] = {
        "type", "separable",
        "channels", "1",
        "resolution", "16",
        "num_samples", "480",
        "num_unique", "480",
        "batch_size", "48",
        NULL,
    };
    /* clang-format on */
    const struct et_dataset_class *c = et_dataset_find("synthetic_images");
    const struct et_loader_config config = {
        .seed = SEED,
        .train = true,
        .world_size = et_dist_world_size(r->dist),
        .rank = et_dist_global_rank(r->dist),
        .dev = r->dev,
    };
    ET_TRY(et_options_new(r->cx, &c->info, set, &r->data_options));
    ET_TRY(et_dataset_open(r->cx, c, r->data_options, &r->data));
    return et_loader_new(r->cx, r->data, &config, &r->loader);
}

/* The same seed makes the same weights on all ranks. Weights that come from elsewhere
 * would go to all of them from rank 0, by et_dist_broadcast. */
static et_status
make_model(struct run *r)
{
    static const char *const set[] = {"hidden", "32", NULL};
    const struct et_model_class *c = et_model_class_find("mlp");
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
    return et_model_bind_space(r->model, r->dev, SEED, &r->space);
}

/* The graph is told whose ranks et_all_reduce is of. */
static et_status
make_optimizer(struct run *r)
{
    static const char *const set[] = {"lr", "0.05", "momentum", "0.9", NULL};
    const struct et_optimizer_class *c = et_optimizer_find("sgd");
    const int64_t one[] = {1}, two[] = {2};
    ET_TRY(et_options_new(r->cx, &c->info, set, &r->optimizer_options));
    ET_TRY(et_optimizer_new(r->cx, c, r->optimizer_options, r->space, &r->optimizer));
    ET_TRY(et_tensor_new(r->cx, r->dev, ET_I64, 1, two, ET_ROW_MAJOR, "rng", &r->rng));
    ET_TRY(
        et_tensor_new(r->cx, r->dev, ET_F32, 1, one, ET_ROW_MAJOR, "share", &r->share));
    ET_TRY(et_graph_new(r->cx, r->dev, &r->graph));
    et_graph_set_comm(r->graph, et_dist_comm(r->dist));
    return ET_OK;
}

/* The mean over the batch is the sum of the ranks' means, each with its share. */
static et_status
train_step(struct run *r, const struct et_batch *b, double *loss)
{
    struct et_graph *g = r->graph;
    const int64_t rng[] = {(int64_t)et_rng_key(SEED, ET_RNG_DROPOUT), b->first};
    const float share = (float)b->n_samples / (float)b->all_samples;
    ET_TRY(et_tensor_write(r->cx, r->rng, rng, sizeof rng));
    ET_TRY(et_tensor_write(r->cx, r->share, &share, sizeof share));

    const struct et_samples samples = et_batch_samples(g, b);
    struct et_forward f = {
        .g = g, .samples = &samples, .training = true, .rng = r->rng};
    struct et_tensor *outputs = et_model_forward(r->model, &f, samples.x);
    struct et_tensor *mean =
        et_model_loss(r->model, g, outputs, &samples, ET_REDUCE_MEAN);
    struct et_tensor *flat = et_param_space_gradient(g, r->space, mean);
    flat = et_all_reduce(g, flat, r->share);
    ET_TRY(et_optimizer_update(g, r->optimizer, flat, NULL, NULL));

    ET_TRY(et_eval(g, &mean, 1));
    ET_TRY(et_item(g, mean, loss));
    et_optimizer_done(r->optimizer, false);
    et_graph_reset(g);
    return ET_OK;
}

/* The mean loss of one pass over the data, of all ranks. */
static et_status
train_epoch(struct run *r, double *mean)
{
    double sum[2] = {0, 0}; /* loss, samples */
    for (;;) {
        const struct et_batch *b;
        double loss;
        ET_TRY(et_loader_next(r->cx, r->loader, &b));
        if (!b)
            break;
        et_status status = train_step(r, b, &loss);
        sum[0] += loss * (double)b->n_samples;
        sum[1] += (double)b->n_samples;
        et_loader_release(r->loader, b);
        ET_TRY(status);
    }
    ET_TRY(et_dist_all_reduce(r->cx, r->dist, sum, 2, ET_F64, ET_DIST_SUM));
    *mean = sum[0] / sum[1];
    return ET_OK;
}

/* Have all ranks the weights of rank 0? Each sends its own, as bytes. */
static et_status
compare_weights(struct run *r)
{
    size_t bytes = et_desc_bytes(&r->space->values->desc);
    struct et_dist_object *all = NULL;
    void *own;
    ET_TRY(et_alloc(r->cx, bytes, &own));
    et_status status = et_tensor_read(r->cx, r->space->values, own, bytes);
    if (status == ET_OK)
        status = et_dist_all_gather_object(r->cx, r->dist, own, bytes, &all);
    for (int k = 1; k < et_dist_world_size(r->dist) && status == ET_OK; k++)
        if (memcmp(all[k].data, all[0].data, bytes) != 0)
            status = ET_FAIL(r->cx, ET_EINTERNAL, "rank %d has other weights", k);
    et_free(r->cx, all);
    et_free(r->cx, own);
    return status;
}

static et_status
train(struct run *r, double *first, double *last)
{
    ET_TRY(et_dist_init(r->cx, 0, &r->dist));
    bool speaks = et_dist_global_rank(r->dist) == 0;
    if (et_device_open(r->cx, "cpu", 0, 0, &r->dev) != ET_OK) {
        et_error_clear(r->cx);
        ET_TRY(et_device_open(r->cx, "ref", 0, 0, &r->dev));
    }
    ET_TRY(open_data(r));
    ET_TRY(make_model(r));
    ET_TRY(make_optimizer(r));
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        ET_TRY(train_epoch(r, last));
        if (epoch == 0)
            *first = *last;
        if (speaks)
            printf("epoch %d of %d ranks: loss %.6f\n", epoch + 1,
                   et_dist_world_size(r->dist), *last);
    }
    return compare_weights(r);
}

static void
release(struct run *r)
{
    et_graph_free(&r->graph);
    et_tensor_free(&r->share);
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
    et_dist_end(&r->dist);
}

int
main(void)
{
    struct run r = {0};
    double first = 0, last = 0;
    if (et_ctx_new(&r.cx) != ET_OK) {
        fprintf(stderr, "dist: %s\n", et_error_get(NULL)->message);
        return 1;
    }
    et_status status = train(&r, &first, &last);
    if (status != ET_OK)
        fprintf(stderr, "dist: rank %d: %s\n", et_dist_global_rank(r.dist),
                et_error_get(r.cx)->message);
    release(&r);
    et_ctx_free(&r.cx);
    if (status != ET_OK)
        return 1;
    if (!(last < 0.9 * first)) {
        fprintf(stderr, "dist: the loss did not fall (%g to %g)\n", first, last);
        return 1;
    }
    return 0;
}
