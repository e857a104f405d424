/* SPDX-License-Identifier: Apache-2.0 */
/* custom_algorithm.c: the trainer, with a training method of your own.
 *
 * The method is a simple augmentation: the pixels of each batch are multiplied by
 *
 *     f ~ U[1 - strength, 1 + strength]
 *
 * so that the network does not lean on how bright its images are. The first half of the
 * file is the algorithm as it would stand in src/core/algorithms/ (where it would need
 * one row in algorithms.def and nothing else); the second half trains with it.
 *
 *     cc custom_algorithm.c $(pkg-config --cflags --libs etude) -o custom && ./custom
 */
#include <etude/etude.h>

#include <stdio.h>
#include <string.h>

/* ---- the algorithm ---- */

/* What a user may set: a plain struct, and one row for each field. Recipes, help texts
 * and checks are made from the rows, so an option exists in one place only. */
struct brightness_options {
    double strength;
};

static const struct et_option brightness_table[] = {
    {
        .name = "strength",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct brightness_options, strength),
        .def = "0.2",
        .min = 0,
        .max = 1,
        .flags = ET_OPT_MAX_OPEN,
        .help = "most by which brightness changes, as a fraction",
    },
    {.name = NULL},
};

/* What it keeps between events; zeroed when it is made. */
struct brightness {
    struct et_tensor *factor; /* f32 [1]: this batch's */
};

/* Called at the events named below; STATE is ours to change. A step is an expression
 * that is planned once and replayed: what changes from batch to batch is therefore the
 * contents of a small leaf, and the expression that uses it stays the same. The draw is
 * a function of the seed and of the batch's place in the run, so a batch that has to be
 * repeated, or a run that is resumed, gets the same one. */
static et_status
brightness_apply(struct et_algorithm *self, enum et_event event, struct et_state *state,
                 struct et_log *log)
{
    const struct brightness_options *o = self->options;
    struct brightness *own = self->state;
    struct et_ctx *cx = et_state_get_ctx(state);
    const int64_t one[] = {1};
    if (event == ET_EVENT_INIT)
        return et_tensor_new(cx, et_state_get_device(state), ET_F32, 1, one,
                             ET_ROW_MAJOR, "brightness", &own->factor);
    struct et_rng r = et_rng_at(et_state_get_seed(state), ET_RNG_USER,
                                (uint64_t)et_state_get_timestamp(state)->sample);
    float factor = (float)(1 + o->strength * (2 * et_rng_uniform(&r) - 1));
    ET_TRY(et_tensor_write(cx, own->factor, &factor, sizeof factor));
    et_log_metric(log, "brightness/factor", (double)factor);
    struct et_graph *g = et_state_get_graph(state);
    struct et_samples batch = *et_state_get_batch(state);
    batch.x = et_mul(g, batch.x, own->factor);
    et_state_set_batch(state, &batch);
    return et_graph_status(g);
}

/* With strength 0 there is nothing to do. INIT is passed on, or there is no leaf. */
static bool
brightness_match(struct et_algorithm *self, enum et_event event,
                 const struct et_state *state)
{
    const struct brightness_options *o = self->options;
    (void)state;
    return o->strength > 0 || event == ET_EVENT_INIT;
}

static void
brightness_close(struct et_algorithm *self)
{
    struct brightness *own = self->state;
    et_tensor_free(&own->factor);
}

static const struct et_algorithm_class brightness_class = {
    .info =
        {
            ET_CLASS(algorithm),
            .name = "brightness",
            .class_name = "Brightness",
            .summary = "multiplies the pixels of each batch by a random factor",
            .source = "an example",
            .applies_to = "vision",
            .options = brightness_table,
            .options_size = sizeof(struct brightness_options),
        },
    .state_size = sizeof(struct brightness),
    .events = ET_ON(INIT) | ET_ON(BEFORE_FORWARD),
    .match = brightness_match,
    .apply = brightness_apply,
    .close = brightness_close,
};

/* ---- a run with it ---- */

/* Where records go: the trainer calls write for each batch and each evaluation. */
struct printer {
    struct et_sink sink; /* first: the trainer knows only this part */
    double first, last;  /* loss of the first and of the newest batch */
};

static void
print_record(struct et_sink *sink, const struct et_record *record)
{
    struct printer *p = (struct printer *)sink;
    for (int i = 0; i < record->n; i++) {
        const struct et_log_entry *e = &record->entry[i];
        if (record->kind == ET_RECORD_BATCH &&
            strcmp(e->name, "loss/train/total") == 0) {
            p->last = e->value;
            if (record->ba == 1)
                p->first = e->value;
        }
        if (record->kind == ET_RECORD_EVAL &&
            strcmp(e->name, "metrics/eval/Accuracy") == 0)
            printf("epoch %lld: loss of the last batch %.4f, accuracy %.4f\n",
                   (long long)record->ep, p->last, e->value);
    }
}

struct run {
    struct et_ctx *cx;
    struct et_device *dev;
    void *data_options, *model_options, *optimizer_options, *brightness_options;
    struct et_dataset *data;
    struct et_loader *train, *eval;
    struct et_model *model;
    struct et_algorithm *brightness;
    struct et_trainer *trainer;
    struct printer printer;
};

static et_status
open_data(struct run *r)
{
    /* clang-format off */
    static const char *const set[] = {
        "type", "separable", /* brighter images have higher labels: a hard case */
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
    const struct et_loader_config train = {.seed = 17, .train = true, .dev = r->dev};
    const struct et_loader_config eval = {.dev = r->dev};
    ET_TRY(et_options_new(r->cx, &c->info, set, &r->data_options));
    ET_TRY(et_dataset_open(r->cx, c, r->data_options, &r->data));
    ET_TRY(et_loader_new(r->cx, r->data, &train, &r->train));
    return et_loader_new(r->cx, r->data, &eval, &r->eval);
}

static et_status
make_model(struct run *r)
{
    static const char *const set[] = {"hidden", "64", NULL};
    const struct et_model_class *c = et_model_class_find("mlp");
    struct et_loader_info info;
    et_loader_get_info(r->train, &info);
    const struct et_model_facts facts = {
        .channels = info.desc[ET_FIELD_X].shape[1],
        .height = info.desc[ET_FIELD_X].shape[2],
        .width = info.desc[ET_FIELD_X].shape[3],
        .num_classes = et_facts_classes(&r->data->facts),
    };
    ET_TRY(et_options_new(r->cx, &c->info, set, &r->model_options));
    return et_model_new(r->cx, c, r->model_options, &facts, &r->model);
}

static et_status
make_trainer(struct run *r)
{
    static const char *const set[] = {"lr", "0.05", "momentum", "0.9", NULL};
    static const char *const mild[] = {"strength", "0.05", NULL};
    const struct et_optimizer_class *sgd = et_optimizer_find("sgd");
    const struct et_evaluator evaluator = {
        .label = "eval",
        .loader = r->eval,
        .interval = ET_TIME_UNSET, /* as the trainer says: after each epoch */
    };
    ET_TRY(et_options_new(r->cx, &sgd->info, set, &r->optimizer_options));
    ET_TRY(et_options_new(r->cx, &brightness_class.info, mild, &r->brightness_options));
    ET_TRY(et_algorithm_new(r->cx, &brightness_class, r->brightness_options,
                            &r->brightness));
    r->printer.sink.write = print_record;
    const struct et_trainer_config config = {
        .dev = r->dev,
        .model = r->model,
        .train = r->train,
        .evaluators = &evaluator,
        .n_evaluators = 1,
        .optimizer = sgd,
        .optimizer_options = r->optimizer_options,
        .algorithms = &r->brightness, /* an array of one */
        .n_algorithms = 1,
        .sink = &r->printer.sink,
        .max_duration = ET_EPOCHS(6),
        .eval_interval = ET_EPOCHS(1),
        .iteration_length = ET_TIME_UNSET,
        .grad_accum = 1,
        .seed = 17,
    };
    return et_trainer_new(r->cx, &config, &r->trainer);
}

static et_status
train(struct run *r)
{
    /* The CPU device is a module that is loaded; the plain C reference is always
     * there. */
    if (et_device_open(r->cx, "cpu", 0, 0, &r->dev) != ET_OK) {
        et_error_clear(r->cx);
        ET_TRY(et_device_open(r->cx, "ref", 0, 0, &r->dev));
    }
    ET_TRY(open_data(r));
    ET_TRY(make_model(r));
    ET_TRY(make_trainer(r));
    return et_trainer_fit(r->trainer, ET_TIME_UNSET);
}

static void
release(struct run *r)
{
    et_trainer_free(&r->trainer);
    et_algorithm_free(&r->brightness);
    et_model_free(&r->model);
    et_loader_free(&r->eval);
    et_loader_free(&r->train);
    et_dataset_close(&r->data);
    et_options_free(&brightness_class.info, &r->brightness_options);
    et_options_free(&et_optimizer_find("sgd")->info, &r->optimizer_options);
    et_options_free(&et_model_class_find("mlp")->info, &r->model_options);
    et_options_free(&et_dataset_find("synthetic_images")->info, &r->data_options);
    et_device_close(&r->dev);
}

int
main(void)
{
    struct run r = {0};
    if (et_ctx_new(&r.cx) != ET_OK) {
        fprintf(stderr, "custom_algorithm: %s\n", et_error_get(NULL)->message);
        return 1;
    }
    et_ctx_set_checks(r.cx, true); /* says what is freed or closed too early */
    et_status status = train(&r);
    if (status != ET_OK)
        fprintf(stderr, "custom_algorithm: %s\n", et_error_get(r.cx)->message);
    release(&r);
    et_ctx_free(&r.cx);
    if (status != ET_OK)
        return 1;
    if (!(r.printer.last < 0.8 * r.printer.first)) {
        fprintf(stderr, "custom_algorithm: the loss did not fall (%g to %g)\n",
                r.printer.first, r.printer.last);
        return 1;
    }
    return 0;
}
