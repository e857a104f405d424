/* SPDX-License-Identifier: Apache-2.0 */
/* own_epoch.c: an epoch of your own in Etude's trainer.
 *
 * The trainer's loop over the batches of an epoch is a function like any other: here it
 * is written out, and does one thing more. It ends an epoch as soon as the loss has not
 * improved for a while; checkpoints, evaluations, events and records are the trainer's
 * as ever. pytorch-accelerated's Trainer has _run_train_epoch for this.
 *
 *     cc own_epoch.c $(pkg-config --cflags --libs etude) -o own_epoch && ./own_epoch */
#include <etude/etude.h>

#include <stdio.h>

enum { PATIENCE = 6 };

/* What the epoch keeps from batch to batch. */
struct patience {
    double best;
    int since; /* batches without a better loss */
};

static et_status
run_epoch(void *data, struct et_trainer *t)
{
    struct patience *p = data;
    const struct et_state *s = et_trainer_state(t);
    bool got;
    p->best = 1e30;
    p->since = 0;
    while (p->since < PATIENCE) {
        ET_TRY(et_trainer_next_batch(t, &got)); /* EPOCH_START, BATCH_START ... */
        if (!got)
            return ET_OK; /* the data are at their end, or the run is */
        ET_TRY(et_trainer_train_batch(t)); /* forward, backward, update */
        ET_TRY(et_trainer_end_batch(t));   /* BATCH_END, records, evaluations */
        double loss = et_state_get_loss_value(s);
        p->since = loss < p->best ? 0 : p->since + 1;
        p->best = loss < p->best ? loss : p->best;
    }
    printf("epoch %lld ends after %lld batches: the best loss was %.4f\n",
           (long long)et_state_get_timestamp(s)->epoch + 1,
           (long long)et_state_get_timestamp(s)->batch_in_epoch, p->best);
    return ET_OK;
}

struct run {
    struct et_ctx *cx;
    struct et_device *dev;
    void *data_options, *model_options, *optimizer_options;
    struct et_dataset *data;
    struct et_loader *loader;
    struct et_model *model;
    struct et_trainer *trainer;
};

static et_status
open_data(struct run *r)
{
    /* clang-format off */
    static const char *const set[] = {
        "type", "separable",
        "channels", "1",
        "resolution", "8",
        "num_samples", "512",
        "num_unique", "512",
        "batch_size", "8",
        NULL,
    };
    /* clang-format on */
    const struct et_dataset_class *c = et_dataset_find("synthetic_images");
    const struct et_loader_config config = {.seed = 17, .train = true, .dev = r->dev};
    ET_TRY(et_options_new(r->cx, &c->info, set, &r->data_options));
    ET_TRY(et_dataset_open(r->cx, c, r->data_options, &r->data));
    return et_loader_new(r->cx, r->data, &config, &r->loader);
}

static et_status
train(struct run *r, struct patience *p)
{
    static const char *const hidden[] = {"hidden", "16", "layers", "1", NULL};
    static const char *const rate[] = {"lr", "0.1", NULL};
    const struct et_model_class *c = et_model_class_find("mlp");
    const struct et_optimizer_class *sgd = et_optimizer_find("sgd");
    if (et_device_open(r->cx, "cpu", 0, 0, &r->dev) != ET_OK) {
        et_error_clear(r->cx);
        ET_TRY(et_device_open(r->cx, "ref", 0, 0, &r->dev));
    }
    ET_TRY(open_data(r));
    const struct et_model_facts facts = {
        .channels = 1,
        .height = 8,
        .width = 8,
        .num_classes = et_facts_classes(&r->data->facts),
    };
    ET_TRY(et_options_new(r->cx, &c->info, hidden, &r->model_options));
    ET_TRY(et_model_new(r->cx, c, r->model_options, &facts, &r->model));
    ET_TRY(et_options_new(r->cx, &sgd->info, rate, &r->optimizer_options));
    const struct et_trainer_config config = {
        .dev = r->dev,
        .model = r->model,
        .train = r->loader,
        .optimizer = sgd,
        .optimizer_options = r->optimizer_options,
        .max_duration = ET_EPOCHS(3),
        .seed = 17,
        .epoch = run_epoch,
        .epoch_data = p,
    };
    ET_TRY(et_trainer_new(r->cx, &config, &r->trainer));
    return et_trainer_fit(r->trainer, ET_TIME_UNSET);
}

static void
release(struct run *r)
{
    et_trainer_free(&r->trainer);
    et_model_free(&r->model);
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
    struct patience p = {0};
    if (et_ctx_new(&r.cx) != ET_OK) {
        fprintf(stderr, "own_epoch: %s\n", et_error_get(NULL)->message);
        return 1;
    }
    et_ctx_set_checks(r.cx, true); /* says what is freed or closed too early */
    et_status status = train(&r, &p);
    if (status != ET_OK)
        fprintf(stderr, "own_epoch: %s\n", et_error_get(r.cx)->message);
    else
        printf("best loss of the last epoch: %.4f\n", p.best);
    release(&r);
    et_ctx_free(&r.cx);
    return status == ET_OK && p.best < 2.2 ? 0 : 1;
}
