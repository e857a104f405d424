/* SPDX-License-Identifier: Apache-2.0 */
/* A whole training with methods, alone and six at once, against that of Composer's own
 * trainer: t/golden/training.txt, by make_training.py, in f64, with the same draws. The
 * networks have no kinks, so that rounding does not grow. Methods for text:
 * training_text.c. */
#include "t/algorithms/fixture.h"

#include <math.h>
#include <string.h>

#include "etude/nn.h"
#include "t/algorithms/weights.h"

enum { SAMPLES = 16, BATCH = 4, STEPS = 12, CHOICES = 6 };
#define FILE_NAME "training.txt"

/* Of a weight, which is below 1: twelve updates round it, and what they come from. */
#define TOLERANCE 2e-6
/* In bf16, whose numbers are 2^-8 apart: twelve gradients of which each differs by so
 * much have moved weights by up to 0.3. */
#define LOW_TOLERANCE 5e-3

/* ---- the network ---- */

struct net_options {
    struct et_model_options common;
};

/* make_training.py's plain() from its second module on, behind the norm. */
static et_status
add_rest(struct et_ctx *cx, struct et_module *root, bool drops)
{
    ET_TRY(et_module_add(cx, root, NULL, &et_silu_class, NULL));
    ET_TRY(ET_ADD(cx, root, NULL, conv2d, .in_channels = 4, .out_channels = 6,
                  .kernel = 3, .stride = 2, .padding = 1, .no_bias = true));
    ET_TRY(et_module_add(cx, root, NULL, &et_silu_class, NULL));
    ET_TRY(ET_ADD(cx, root, NULL, adaptive_avg_pool2d, .height = 1));
    ET_TRY(et_module_add(cx, root, NULL, &et_flatten_class, NULL));
    if (drops)
        ET_TRY(ET_ADD(cx, root, NULL, dropout, .p = 0.1));
    return ET_ADD(cx, root, NULL, linear, .in_features = 6, .out_features = SAMPLES);
}

/* Begins the network with a convolution to CHANNELS. */
static et_status
begin(struct et_ctx *cx, struct et_model *m, int64_t channels)
{
    ET_TRY(et_module_new(cx, &et_sequential_class, NULL, &m->root));
    return ET_ADD(cx, m->root, NULL, conv2d, .in_channels = 1, .out_channels = channels,
                  .kernel = 3, .padding = 1);
}

#define BUILD                                                                          \
    struct et_ctx *cx, struct et_model *m, const void *options,                        \
        const struct et_model_facts *facts

static et_status
build(BUILD)
{
    (void)options, (void)facts;
    ET_TRY(begin(cx, m, 4));
    ET_TRY(ET_ADD(cx, m->root, NULL, batch_norm, .num_features = 4));
    return add_rest(cx, m->root, false);
}

static et_status
build_with_dropout(BUILD)
{
    (void)options, (void)facts;
    ET_TRY(begin(cx, m, 4));
    ET_TRY(ET_ADD(cx, m->root, NULL, batch_norm, .num_features = 4));
    return add_rest(cx, m->root, true);
}

static et_status
build_with_groups(BUILD)
{
    (void)options, (void)facts;
    ET_TRY(et_module_new(cx, &et_sequential_class, NULL, &m->root));
    ET_TRY(ET_ADD(cx, m->root, NULL, group_norm, .num_groups = 1, .num_channels = 1,
                  .no_affine = true));
    ET_TRY(ET_ADD(cx, m->root, NULL, conv2d, .in_channels = 1, .out_channels = 4,
                  .kernel = 3, .padding = 1));
    ET_TRY(ET_ADD(cx, m->root, NULL, group_norm, .num_groups = 2, .num_channels = 4));
    return add_rest(cx, m->root, false);
}

static et_status
silu_for_relu(struct et_ctx *cx, struct et_module *old, int index, void *data,
              struct et_module **out)
{
    (void)old, (void)index, (void)data;
    return et_module_new(cx, &et_silu_class, NULL, out);
}

static et_status
build_bottlenecks(BUILD)
{
    static const struct et_surgery_policy smooth = {&et_relu_class, silu_for_relu};
    struct et_surgery replaced;
    (void)options, (void)facts;
    ET_TRY(begin(cx, m, 8));
    ET_TRY(et_module_add(cx, m->root, NULL, &et_silu_class, NULL));
    ET_TRY(ET_ADD(cx, m->root, NULL, bottleneck, .in_channels = 8, .channels = 2));
    ET_TRY(ET_ADD(cx, m->root, NULL, bottleneck, .in_channels = 8, .channels = 4,
                  .stride = 2));
    ET_TRY(et_module_replace(cx, m->root, &smooth, 1, NULL, &replaced));
    et_surgery_release(&replaced);
    ET_TRY(ET_ADD(cx, m->root, NULL, adaptive_avg_pool2d, .height = 1));
    ET_TRY(et_module_add(cx, m->root, NULL, &et_flatten_class, NULL));
    return ET_ADD(cx, m->root, NULL, linear, .in_features = 16,
                  .out_features = SAMPLES);
}

static const struct et_option net_table[] = {ET_MODEL_START_OPTIONS(net_options), {0}};
#define NET(name_, build_)                                                             \
    {                                                                                  \
        .info = {.name = name_,                                                        \
                 .class_name = "Net",                                                  \
                 .summary = "two convolutions or more",                                \
                 .options = net_table,                                                 \
                 .options_size = sizeof(struct net_options)},                          \
        .task = ET_TASK_CLASSIFICATION, .build = build_,                               \
    }
static const struct et_model_class net = NET("net", build),
                                   dropping = NET("dropping", build_with_dropout),
                                   grouped = NET("grouped", build_with_groups),
                                   bottlenecks = NET("bottlenecks", build_bottlenecks);

/* Adds 96: make_training.py says why. */
#define OFFSET "[normalize: {mean: [-96], std: [1]}]"

/* What case NAME trains; low precision is autocast's. */
static const struct {
    const char *name;
    const struct et_model_class *net;
    bool mixed;
    const char *transforms;
} nets[] = {
    {"gyro_dropout", &dropping, false, NULL},
    {"bottlenecks", &bottlenecks, false, NULL},
    {"stochastic_depth", &bottlenecks, false, NULL},
    {"stochastic_depth_samples", &bottlenecks, false, NULL},
    {"low_precision_groupnorm", &grouped, true, OFFSET},
};

static void
open_net(struct run *r, const char *name)
{
    const struct et_model_facts facts = {
        .channels = 1, .height = 6, .width = 8, .num_classes = SAMPLES};
    const struct et_model_class *type = &net;
    void *options;
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++)
        if (strcmp(nets[i].name, name) == 0) {
            type = nets[i].net;
            if (nets[i].mixed)
                r->config.precision = ET_PRECISION_AMP_BF16;
        }
    et_model_free(&r->model);
    need(r->cx, et_options_new(r->cx, &type->info, NULL, &options));
    need(r->cx, et_model_new(r->cx, type, options, &facts, &r->model));
    et_options_free(&type->info, &options);
    r->config.model = r->model;
}

/* The samples in order, as case NAME changes them. */
static void
open_data(struct run *r, const char *name)
{
    const struct et_loader_config config = {.seed = 17, .train = true, .dev = r->dev};
    et_loader_free(&r->train);
    et_loader_free(&r->eval);
    et_dataset_close(&r->data);
    r->data_options.common.shuffle = false;
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++)
        if (nets[i].transforms && strcmp(nets[i].name, name) == 0)
            need(r->cx,
                 et_options_set(r->cx, counted_images.info.options, &r->data_options,
                                "transforms", nets[i].transforms));
    need(r->cx, et_dataset_open(r->cx, &counted_images, &r->data_options, &r->data));
    need(r->cx, et_loader_new(r->cx, r->data, &config, &r->train));
    need(r->cx, et_loader_new(r->cx, r->data, &(struct et_loader_config){.dev = r->dev},
                              &r->eval));
    r->config.train = r->train;
    r->evaluator.loader = r->eval;
}

/* ---- one training ---- */

/* What an evaluation sees, which is at the end of the run. */
static struct {
    struct run *run;
    struct et_leaves *leaves;
    const char *name;
    double worst;
} seen;

static et_status
look(struct et_algorithm *self, enum et_event event, struct et_state *s,
     struct et_log *log)
{
    (void)self, (void)event, (void)s, (void)log;
    seen.worst = weights_compare(seen.run->cx, seen.leaves, FILE_NAME, seen.name);
    return ET_OK;
}

static const struct et_algorithm_class looks = {
    .info = {.name = "looks"},
    .events = ET_ON(EVAL_BATCH_START),
    .apply = look,
};

/* The largest difference from case NAME: of the weights, or of those that are
 * EVALUATED. */
static double
train_as(struct et_ctx *cx, const char *name, const struct choice *choice, int n,
         bool evaluated)
{
    struct et_algorithm *list[CHOICES + 1];
    struct et_leaves l;
    struct run r;
    for (int i = 0; i < n; i++)
        list[i] = algorithm(cx, choice[i].name, choice[i].options);
    struct et_algorithm eyes = {.type = &looks, .cx = cx};
    list[n] = &eyes;
    run_prepare(&r, cx,
                &(struct run_setup){
                    .n = SAMPLES,
                    .batch_size = BATCH,
                    .max_duration = ET_BATCHES(STEPS),
                    .optimizer_options = OPTIONS("momentum", "0.9"),
                    .algorithms = list,
                    .n_algorithms = n + 1,
                    .evaluate = evaluated,
                });
    open_data(&r, name);
    open_net(&r, name);
    run_start(&r);
    need(cx, et_module_leaves(cx, r.model->root, ET_PARAM, &l));
    weights_fill(cx, &l, FILE_NAME, name);
    seen.run = &r;
    seen.leaves = &l;
    seen.name = name;
    seen.worst = INFINITY;
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    double worst = evaluated ? seen.worst : weights_compare(cx, &l, FILE_NAME, name);
    et_leaves_release(&l);
    run_close(&r);
    et_options_release(counted_images.info.options, &r.data_options);
    for (int i = 0; i < n; i++)
        et_algorithm_free(&list[i]);
    return worst;
}

/* A training with what CHOICE has is Composer's case NAME. */
static void
check(struct et_ctx *cx, const char *name, const struct choice *choice, int n)
{
    double worst = train_as(cx, name, choice, n, false);
    ok(worst <= TOLERANCE, "%s: %d steps come to Composer's weights (worst %.1e)", name,
       STEPS, worst);
}

static const struct choice blurpool = {"blurpool", OPTIONS("min_channels", "1")};
static const struct choice squeeze_excite = {
    "squeeze_excite", OPTIONS("latent_channels", "0.5", "min_channels", "3")};
static const struct choice ghost = {"ghost_batchnorm",
                                    OPTIONS("ghost_batch_size", "2")};
static const struct choice factorize = {
    "factorize", OPTIONS("min_channels", "3", "latent_channels", "0.5", "min_features",
                         "4", "latent_features", "2")};
static const struct choice standardization = {"weight_standardization",
                                              OPTIONS("n_last_layers_ignore", "1")};
static const struct choice smoothing = {"label_smoothing", OPTIONS("smoothing", "0.2")};
static const struct choice clipping = {
    "gradient_clipping", OPTIONS("clipping_type", "norm", "clipping_threshold", "0.1")};
static const struct choice resizing = {
    "progressive_resizing", OPTIONS("initial_scale", "0.5", "finetune_fraction", "0.2",
                                    "delay_fraction", "0.3", "size_increment", "2")};
static const struct choice sam = {"sam", OPTIONS("rho", "0.1")};
static const struct choice freezing = {
    "layer_freezing", OPTIONS("freeze_start", "0.2", "freeze_level", "0.9")};
static const struct choice ema = {
    "ema", OPTIONS("half_life", "2ba", "update_interval", "1ba")};
static const struct choice swa = {"swa", OPTIONS("swa_start", "0.25dur", "swa_end",
                                                 "0.75dur", "update_interval", "1ba")};
static const struct choice channels_last = {"channels_last", OPTIONS()};
static const struct choice mixup = {"mixup", OPTIONS("alpha", "1")};
static const struct choice mixup_losses = {
    "mixup", OPTIONS("alpha", "1", "interpolate_loss", "true")};
static const struct choice cutmix = {"cutmix", OPTIONS("alpha", "1")};
static const struct choice cutmix_losses = {
    "cutmix", OPTIONS("alpha", "1", "interpolate_loss", "true")};
static const struct choice cutout = {"cutout",
                                     OPTIONS("num_holes", "1", "length", "0.5")};
static const struct choice colout = {"colout", OPTIONS("p_row", "0.3", "p_col", "0.2")};
static const struct choice selection = {
    "selective_backprop",
    OPTIONS("start", "0.2", "end", "0.9", "keep", "0.5", "interrupt", "3")};
static const struct choice augmix = {"augmix", OPTIONS("severity", "9")};
static const struct choice randaugment = {"randaugment", OPTIONS("severity", "9")};
static const struct choice gyro = {"gyro_dropout",
                                   OPTIONS("p", "0.5", "sigma", "4", "tau", "2")};
static const struct choice depth = {
    "stochastic_depth",
    OPTIONS("target_layer_name", "ResNetBottleneck", "drop_rate", "0.5")};
static const struct choice depth_samples = {
    "stochastic_depth", OPTIONS("target_layer_name", "ResNetBottleneck",
                                "stochastic_method", "sample", "drop_rate", "0.25")};
static const struct choice low_groupnorm = {"low_precision_groupnorm", OPTIONS()};

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    const struct choice *alone[] = {&blurpool,
                                    &squeeze_excite,
                                    &ghost,
                                    &factorize,
                                    &standardization,
                                    &smoothing,
                                    &clipping,
                                    &resizing,
                                    &sam,
                                    &freezing,
                                    &ema,
                                    &swa,
                                    &channels_last,
                                    &mixup,
                                    &cutmix,
                                    &cutout,
                                    &colout,
                                    &selection,
                                    &augmix,
                                    &randaugment,
                                    &gyro,
                                    &depth};
    const struct choice six[] = {blurpool,  squeeze_excite, ghost,
                                 smoothing, resizing,       clipping};
    check(cx, "none", NULL, 0);
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
        check(cx, alone[i]->name, alone[i], 1);
    check(cx, "mixup_losses", &mixup_losses, 1);
    check(cx, "cutmix_losses", &cutmix_losses, 1);
    check(cx, "bottlenecks", NULL, 0);
    check(cx, "stochastic_depth_samples", &depth_samples, 1);
    check(cx, "six", six, CHOICES);
    double low = train_as(cx, "low_precision_groupnorm", &low_groupnorm, 1, false);
    ok(low <= LOW_TOLERANCE, "low_precision_groupnorm: as near as bf16 comes (%.1e)",
       low);
    double average = train_as(cx, "ema_average", &ema, 1, true);
    ok(average <= TOLERANCE, "ema: what is evaluated are Composer's averages (%.1e)",
       average);
    ok(train_as(cx, "label_smoothing", NULL, 0, false) > 1e-3 &&
           train_as(cx, "gradient_clipping", NULL, 0, false) > 1e-3 &&
           train_as(cx, "swa", NULL, 0, false) > 1e-3 &&
           train_as(cx, "randaugment", NULL, 0, false) > 1e-3 &&
           train_as(cx, "gyro_dropout", NULL, 0, false) > 1e-3 &&
           train_as(cx, "stochastic_depth", NULL, 0, false) > 1e-3 &&
           train_as(cx, "ema_average", NULL, 0, true) > 1e-3 &&
           train_as(cx, "low_precision_groupnorm", NULL, 0, false) > 4 * LOW_TOLERANCE,
       "without its method a training comes to other weights");
    return finish(cx);
}
