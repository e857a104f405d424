/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin with a component of each kind, and, by the macros that t/cli/plugins.t sets,
 * one with every fault that a plugin can have. */
#include <etude/nn.h>
#include <etude/plugin.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef MISSING_FUNCTION
void nobody_has_this(void);
#endif

/* What the components' names begin with. */
#ifndef WORD
#define WORD "test"
#endif

/* What runs when the library is loaded shows whether it was. */
__attribute__((constructor)) static void
loaded(void)
{
    const char *mark = getenv("PLUGIN_MARK");
    FILE *f = mark ? fopen(mark, "w") : NULL;
    if (f)
        fclose(f);
#ifdef EXIT_AT_LOAD
    exit(0);
#endif
#ifdef CRASH_AT_LOAD
    abort();
#endif
#ifdef MISSING_FUNCTION
    nobody_has_this();
#endif
}

/* ---- a model: one linear layer ---- */

struct line_options {
    struct et_model_options common;
};

static struct et_tensor *
line_forward(struct et_module *m, struct et_forward *f, struct et_tensor *x)
{
    const char *name;
    int64_t shape[2] = {0, -1};
    if (!x)
        return NULL;
    shape[0] = x->desc.shape[0];
    return et_forward(f, *et_module_child(m, 0, &name), et_reshape(f->g, x, 2, shape));
}

static const struct et_module_class line_module = {
    .info = {ET_CLASS(module), .name = WORD "_line", .class_name = "Line",
             .summary = "a linear layer"},
    .size = sizeof(struct et_module),
    .forward = line_forward,
};

static et_status
line_build(struct et_ctx *cx, struct et_model *m, const void *options,
           const struct et_model_facts *facts)
{
    (void)options;
    ET_TRY(et_module_new(cx, &line_module, NULL, &m->root));
    return ET_ADD(cx, m->root, "fc", linear,
                  .in_features = facts->channels * facts->height * facts->width,
                  .out_features = facts->num_classes);
}

static const struct et_model_class line = {
    .info =
        {
            ET_CLASS(model),
            .name = WORD "_line",
            .class_name = "TestLine",
            .summary = "one linear layer",
            .applies_to = "vision",
            .options = (const struct et_option[]){ET_MODEL_OPTIONS(line_options), {0}},
            .options_size = sizeof(struct line_options),
        },
    .task = ET_TASK_CLASSIFICATION,
    .build = line_build,
};

/* ---- data: images whose brightness is their label ---- */

enum { SIDE = 4, SAMPLES = 32, CLASSES = 4 };

struct shades_options {
    struct et_data_options common;
};

static et_status
shades_open(struct et_ctx *cx, struct et_dataset *self)
{
    (void)cx;
    et_facts_images(&self->facts, SAMPLES, 1, SIDE, SIDE, CLASSES);
    return ET_OK;
}

static et_status
shades_sample(const struct et_dataset *self, int64_t at, struct et_sample *out,
              struct et_error *why)
{
    const int label = (int)(at % CLASSES);
    uint8_t *pixels = et_sample_room(out, ET_FIELD_X, SIDE * SIDE);
    (void)self;
    (void)why;
#ifdef CRASH_IN_WORKER
    static _Atomic int calls; /* of which the first 64 are for the fingerprint */
    if (++calls > 64 && at == SAMPLES - 1)
        *(volatile int *)8 = 0;
#endif
    if (!pixels)
        return ET_ENOMEM;
    memset(pixels, 60 * label + 20, SIDE * SIDE);
    out->v[ET_FIELD_X].pixels = et_pixels_hwc(pixels, 1, SIDE, SIDE);
    et_sample_number(out, ET_FIELD_TARGET, label);
    return ET_OK;
}

static const struct et_dataset_class shades = {
    .info =
        {
            ET_CLASS(dataset),
            .name = WORD "_shades",
            .class_name = "TestShades",
            .summary = "images whose brightness is their label",
            .applies_to = "vision",
            .options =
                (const struct et_option[]){
                    ET_DATA_OPTIONS(struct shades_options),
                    ET_DATA_IMAGE_OPTIONS(struct shades_options),
                    {0},
                },
            .options_size = sizeof(struct shades_options),
        },
    .open = shades_open,
    .sample = shades_sample,
};

/* ---- a transform that mirrors every image ---- */

static void
mirror_geometry(const void *options, struct et_rng *r, struct et_view *v)
{
    (void)options;
    (void)r;
    et_view_flip_x(v);
}

static const struct et_transform_class mirror = {
    .info =
        {
            ET_CLASS(transform),
            .name = WORD "_mirror",
            .class_name = "TestMirror",
            .summary = "exchanges left and right",
            .applies_to = "vision",
        },
    .geometry = mirror_geometry,
    .cuts = true,
};

/* ---- a schedule: 1, 1/2, 1/3 ... ---- */

struct harmonic_options {
    struct et_scheduler_options common;
    double power;
};

static et_status
harmonic_alpha(struct et_ctx *cx, const void *options, const struct et_timestamp *ts,
               const struct et_run_length *length, double *out)
{
    const struct harmonic_options *o = options;
    (void)cx;
    (void)length;
    *out = pow(1 / (double)(ts->batch + 1), o->power);
    return ET_OK;
}

#ifdef REFUSES
/* Checks that refuse whatever the options are: with a sentence, or without. */
static et_status
harmonic_check(struct et_ctx *cx, const void *options,
               const struct et_run_length *length)
{
    (void)options;
    (void)length;
    return ET_FAIL(cx, ET_EINVAL, "power is of another day");
}

static et_status
silent_check(struct et_ctx *cx, const void *options)
{
    (void)cx;
    (void)options;
    return ET_EINVAL;
}
#endif

static const struct et_scheduler_class harmonic = {
    .info =
        {
            ET_CLASS(scheduler),
            .name = WORD "_harmonic",
            .class_name = "TestHarmonic",
            .summary = "one over the number of the batch",
            .applies_to = "any",
            .options =
                (const struct et_option[]){
                    {
                        .name = "power",
                        .type = ET_OPT_FLOAT,
                        .offset = offsetof(struct harmonic_options, power),
                        .def = "1",
                        .help = "to which it is taken",
                    },
                    {0},
                },
            .options_size = sizeof(struct harmonic_options),
        },
    .alpha = harmonic_alpha,
#ifdef REFUSES
    .check = harmonic_check,
#endif
};

/* ---- an algorithm: targets are left alone, calls are counted ---- */

struct counter {
    double calls;
};

static et_status
count_apply(struct et_algorithm *self, enum et_event event, struct et_state *state,
            struct et_log *log)
{
    struct counter *own = self->state;
    (void)event;
    (void)state;
    own->calls++;
    et_log_metric(log, "test/calls", own->calls);
#ifdef CRASH_IN_CALL
    if (et_state_get_timestamp(state)->batch == 2)
        *(volatile int *)8 = 0;
#endif
#ifdef CRASH_ONCE
    FILE *once = et_state_get_timestamp(state)->batch == 5
                     ? fopen(getenv("PLUGIN_ONCE"), "wx")
                     : NULL;
    if (once)
        *(volatile int *)8 = 0;
#endif
#ifdef EXIT_IN_CALL
    if (et_state_get_timestamp(state)->batch == 2)
        exit(0);
#endif
    return ET_OK;
}

static et_status
count_archive(struct et_algorithm *self, struct et_state *state, struct et_archive *a)
{
    struct counter *own = self->state;
    (void)state;
    return et_archive_f64(a, "calls", &own->calls, 1);
}

static const struct et_algorithm_class counting = {
    .info =
        {
#ifndef NO_CLASS_SIZE
            ET_CLASS(algorithm),
#endif
#ifdef TAKEN_NAME
            .name = "mixup",
#else
            .name = WORD "_count",
#endif
            .class_name = "TestCount",
            .summary = "counts the batches it sees",
            .applies_to = "any",
        },
    .state_size = sizeof(struct counter),
    .events = ET_ON(BEFORE_FORWARD),
#ifdef REFUSES
    .check = silent_check,
#endif
    .apply = count_apply,
    .archive = count_archive,
};

static const struct et_algorithm_class counting_too = {
    .info =
        {
            ET_CLASS(algorithm),
            .name = WORD "_count_too",
            .class_name = "TestCountToo",
            .summary = "counts the batches it sees, too",
            .applies_to = "any",
        },
    .state_size = sizeof(struct counter),
    .events = ET_ON(BEFORE_FORWARD),
    .apply = count_apply,
    .archive = count_archive,
};

/* ---- a logger: a line for each batch ---- */

static et_status
lines_run(struct et_callback *self, enum et_event event, const struct et_state *state,
          struct et_log *log)
{
    char path[4096];
    double calls = 0;
    (void)event;
    (void)et_log_find(log, "test/calls", &calls);
    snprintf(path, sizeof path, "%s/lines.txt", self->run_directory);
    FILE *f = fopen(path, "a");
    if (!f)
        return ET_FAIL(et_state_get_ctx(state), ET_EIO, "cannot write %s", path);
    fprintf(f, "%lld %g\n", (long long)et_state_get_timestamp(state)->batch, calls);
    fclose(f);
    return ET_OK;
}

static const struct et_callback_class lines = {
    .info =
        {
            ET_CLASS(callback),
            .name = WORD "_lines",
            .class_name = "TestLines",
            .summary = "a line for each batch",
            .applies_to = "any",
        },
    .is_logger = true,
#ifdef REFUSES
    .check = silent_check,
#endif
    .events = ET_ON(BATCH_END),
    .run = lines_run,
};

/* ---- a metric: how far the largest logit is from SHIFT, on average ---- */

struct height_options {
    struct et_metric_options common;
    double shift;
};

static struct et_tensor *
height_update(struct et_graph *g, const struct et_metric_options *options,
              struct et_tensor *outputs, const struct et_samples *samples)
{
    const struct height_options *o = (const void *)options;
    (void)samples;
    if (!outputs)
        return NULL;
    const int64_t one = 1;
    struct et_tensor *top = et_amax(g, outputs, 1u << 1, false);
    struct et_tensor *sum = et_sum(g, et_add_scalar(g, top, -o->shift), 0, false);
    struct et_tensor *both[] = {
        et_reshape(g, sum, 1, &one),
        et_fill(g, ET_F32, 1, &one, (double)outputs->desc.shape[0]),
    };
    return et_concat(g, both, 2, 0);
}

static double
height_compute(const double *sums, int n)
{
    (void)n;
    return sums[1] > 0 ? sums[0] / sums[1] : NAN;
}

static const struct et_metric_class height = {
    .info =
        {
            ET_CLASS(metric),
            .name = "Height_" WORD,
            .class_name = "TestHeight",
            .summary = "mean of the largest logit",
            .applies_to = "vision",
            .options =
                (const struct et_option[]){
                    {
                        .name = "shift",
                        .type = ET_OPT_FLOAT,
                        .offset = offsetof(struct height_options, shift),
                        .def = "0",
                        .help = "taken off",
                    },
                    {0},
                },
            .options_size = sizeof(struct height_options),
        },
    .n_sums = 2,
    .update = height_update,
    .compute = height_compute,
};

/* ---- a loss: cross entropy, SCALE times ---- */

struct scaled_options {
    double scale;
};

static struct et_tensor *
scaled_each(struct et_graph *g, const void *options, struct et_tensor *outputs,
            const struct et_samples *samples)
{
    const struct scaled_options *o = options;
    struct et_tensor *each = et_cross_entropy(g, outputs, samples->target, NULL,
                                              ET_IGNORE_INDEX, ET_REDUCE_NONE);
#ifdef LOSS_OF_ALL
    each = et_mean(g, each, 0, false);
#endif
    return et_mul_scalar(g, each, o->scale);
}

static const struct et_loss_class scaled = {
    .info =
        {
            ET_CLASS(loss),
            .name = WORD "_scaled",
            .class_name = "TestScaled",
            .summary = "cross entropy times a number",
            .applies_to = "any",
            .options =
                (const struct et_option[]){
                    {
                        .name = "scale",
                        .type = ET_OPT_FLOAT,
                        .offset = offsetof(struct scaled_options, scale),
                        .def = "1",
                        .help = "the number",
                    },
                    {0},
                },
            .options_size = sizeof(struct scaled_options),
        },
    .each = scaled_each,
};

/* ---- a layer: each channel times a weight, POWER times ---- */

struct gain_options {
    int64_t power, channels;
};

struct gain_module {
    struct et_module base;
    struct et_param weight;
    int64_t power;
};

static et_status
gain_init(struct et_ctx *cx, struct et_module *m, const void *options)
{
    const struct gain_options *o = options;
    struct gain_module *own = (struct gain_module *)m;
    (void)cx;
    own->power = o->power;
    et_param_declare(&own->weight, (struct et_init){.a = 0.5},
                     ET_SHAPE(o->channels, 1, 1));
    return ET_OK;
}

static et_status
gain_adapt(struct et_ctx *cx, void *options, int64_t shape[3])
{
    struct gain_options *o = options;
    (void)cx;
    o->channels = shape[0];
    return ET_OK;
}

static struct et_tensor *
gain_forward(struct et_module *m, struct et_forward *f, struct et_tensor *x)
{
    const struct gain_module *own = (const struct gain_module *)m;
    for (int64_t i = 0; i < own->power; i++)
        x = et_mul(f->g, x, own->weight.tensor);
    return x;
}

static const struct et_module_class gain = {
    .info =
        {
            ET_CLASS(module),
            .name = WORD "_gain",
            .class_name = "Gain",
            .summary = "each channel times a weight",
            .applies_to = "vision",
            .options =
                (const struct et_option[]){
                    {
                        .name = "power",
                        .type = ET_OPT_INT,
                        .offset = offsetof(struct gain_options, power),
                        .def = "1",
                        .min = 1,
                        .max = 4,
                        .help = "how often",
                    },
                    {0},
                },
            .options_size = sizeof(struct gain_options),
        },
    .size = sizeof(struct gain_module),
    .params = (const struct et_slot[]){ET_SLOT(gain_module, weight), {0}},
    .init = gain_init,
    .adapt = gain_adapt,
    .forward = gain_forward,
};

static const struct et_metric_class *const metrics[] = {&height, NULL};
static const struct et_loss_class *const losses[] = {&scaled, NULL};
static const struct et_module_class *const layers[] = {&gain, NULL};
static const struct et_model_class *const models[] = {&line, NULL};
static const struct et_dataset_class *const datasets[] = {&shades, NULL};
static const struct et_transform_class *const transforms[] = {&mirror, NULL};
static const struct et_scheduler_class *const schedulers[] = {&harmonic, NULL};
static const struct et_algorithm_class *const algorithms[] = {&counting, &counting_too,
                                                              NULL};
static const struct et_callback_class *const loggers[] = {&lines, NULL};

#define LISTS                                                                          \
    .models = models, .datasets = datasets, .transforms = transforms,                  \
    .schedulers = schedulers, .algorithms = algorithms, .loggers = loggers,            \
    .metrics = metrics, .losses = losses, .layers = layers
#if defined WRONG_ABI || defined WRONG_SIZE || defined NO_LAYOUTS || defined LONGER
/* LONGER: as a later Etude may have it, with one more list, empty or not. */
struct longer {
    struct et_plugin plugin;
    const struct et_algorithm_class *const *more;
};
#ifndef LONGER
#define LONGER NULL
#endif
#ifndef NO_LAYOUTS
extern const struct et_layout et_plugin_layouts[];
ET_PLUGIN_LAYOUTS
#endif
const struct longer et_plugin = {
    .plugin =
        {
#ifdef WRONG_ABI
            .abi = ET_PLUGIN_ABI + 1,
#else
            .abi = ET_PLUGIN_ABI,
#endif
#ifdef WRONG_SIZE
            .size = sizeof(struct et_plugin),
#else
            .size = sizeof(struct longer),
#endif
            LISTS,
        },
    .more = LONGER,
};
#elif defined SHORTER
/* SHORTER: as an earlier Etude may have had it. */
extern const struct et_layout et_plugin_layouts[];
ET_PLUGIN_LAYOUTS
const struct {
    uint32_t abi, size;
    const struct et_model_class *const *models;
    const struct et_dataset_class *const *datasets;
} et_plugin = {ET_PLUGIN_ABI, sizeof et_plugin, models, datasets};
const void *const others[] = {transforms, schedulers, algorithms, loggers,
                              metrics,    losses,     layers};
#elif defined NO_SYMBOL
const void *const somebody_else[] = {models,     datasets,   transforms,
                                     schedulers, algorithms, loggers,
                                     metrics,    losses,     layers};
#elif defined FUNCTION_SYMBOL
const void *
et_plugin(int i)
{
    const void *const all[] = {models,  datasets, transforms, schedulers, algorithms,
                               loggers, metrics,  losses,     layers};
    return all[i];
}
#else
ET_PLUGIN(LISTS)
#endif
