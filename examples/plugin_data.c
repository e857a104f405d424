/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_data.c: a data set of one's own, with a loss and a metric that read more of a
 * sample than its target.
 *
 * A sample is a signal of 32 numbers, a sine with noise; what is to be learned is its
 * frequency; and a third field, "trust", says how little noise there was. The loss
 * weighs each sample by its trust, the metric counts those within a tolerance, likewise
 * weighed.
 *
 *     cc -shared -fPIC $(pkg-config --cflags etude) -o waves.so plugin_data.c
 *
 * plugin.c says how a library is allowed. A recipe then has
 *
 *     plugins: [waves]
 *     train_data: {name: waves, batch_size: 32}
 *     eval_data: {name: waves}
 *     model: mlp
 *     loss: trusted_mse
 *     metrics: [{WithinTolerance: {tolerance: 0.05}}]
 *
 * and nothing else knows of it: the MLP has one output, since the target is one number,
 * and 32 inputs. */
#include <etude/plugin.h>

#include <math.h>

/* ---- the data ---- */

enum { LENGTH = 32, TRAIN = 2048, TEST = 256 };

struct waves_options {
    struct et_data_options common; /* split, batch_size ...: of every data set */
    double noise;
};

/* What a sample consists of. The first field is what the model reads, the second is
 * called "target", and others are found by their names. */
static et_status
waves_open(struct et_ctx *cx, struct et_dataset *self)
{
    struct et_data_facts *f = &self->facts;
    const struct et_field signal = {.name = "signal",
                                    .kind = ET_FIELD_VALUES,
                                    .dtype = ET_F32,
                                    .ndim = 1,
                                    .shape = {LENGTH}};
    const struct et_field number = {
        .name = "target", .kind = ET_FIELD_VALUES, .dtype = ET_F32};
    struct et_field trust = number;
    trust.name = "trust";
    (void)cx;
    f->n_samples = self->common->split == ET_SPLIT_TRAIN ? TRAIN : TEST;
    et_facts_add(f, &signal);
    et_facts_add(f, &number);
    et_facts_add(f, &trust);
    return ET_OK;
}

/* Called from any thread at once, and the same for the same AT: all that it draws is a
 * function of the sample's number. */
static et_status
waves_sample(const struct et_dataset *self, int64_t at, struct et_sample *out,
             struct et_error *why)
{
    const struct waves_options *o = self->options;
    const int64_t split = self->common->split;
    struct et_rng r = et_rng_at(1, ET_RNG_DATA, (uint64_t)(at + split * TRAIN));
    float *signal = et_sample_room(out, 0, LENGTH * sizeof *signal);
    const double frequency = et_rng_uniform(&r), trust = et_rng_uniform(&r);
    const double phase = 6.283185307179586 * et_rng_uniform(&r);
    (void)why;
    if (!signal)
        return ET_ENOMEM;
    for (int i = 0; i < LENGTH; i++)
        signal[i] = (float)(sin(phase + (0.2 + frequency) * i) +
                            o->noise * (1 - trust) * (2 * et_rng_uniform(&r) - 1));
    out->v[0].data = signal;
    et_sample_number(out, 1, frequency);
    et_sample_number(out, 2, trust);
    return ET_OK;
}

/* `etude validate` builds a step of a recipe without its data: this is what it would
 * find. */
static void
waves_describe(const void *options, struct et_data_facts *out)
{
    struct et_data_options common = {.split = ET_SPLIT_TRAIN};
    struct et_dataset self = {.common = &common};
    (void)options;
    (void)!waves_open(NULL, &self);
    *out = self.facts;
}

static const struct et_option waves_table[] = {
    ET_DATA_OPTIONS(struct waves_options),
    {
        .name = "noise",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct waves_options, noise),
        .def = "0.5",
        .max = 10,
        .help = "of signals that are trusted least",
    },
    {.name = NULL},
};

static const struct et_dataset_class waves = {
    .info =
        {
            ET_CLASS(dataset),
            .name = "waves",
            .class_name = "Waves",
            .summary = "sines with noise, and their frequencies",
            .applies_to = "any",
            .options = waves_table,
            .options_size = sizeof(struct waves_options),
        },
    .open = waves_open,
    .sample = waves_sample,
    .describe = waves_describe,
};

/* ---- the loss ---- */

/* OUTPUTS - target, and each sample's trust, both [N]. */
static struct et_tensor *
differences(struct et_graph *g, struct et_tensor *outputs,
            const struct et_samples *samples, struct et_tensor **trust)
{
    struct et_tensor *target = samples->target;
    *trust = et_samples_find(samples, "trust");
    if (!outputs || !target || !*trust)
        return NULL;
    return et_sub(g, et_reshape(g, outputs, 1, target->desc.shape), target);
}

/* A value for each sample, whose mean is minimised. */
static struct et_tensor *
trusted_each(struct et_graph *g, const void *options, struct et_tensor *outputs,
             const struct et_samples *samples)
{
    struct et_tensor *trust, *d = differences(g, outputs, samples, &trust);
    (void)options;
    return et_mul(g, et_square(g, d), trust);
}

static const struct et_loss_class trusted_mse = {
    .info =
        {
            ET_CLASS(loss),
            .name = "trusted_mse",
            .class_name = "TrustedMSE",
            .summary = "squared differences, weighed by the field trust",
            .applies_to = "any",
        },
    .each = trusted_each,
    .takes = ET_TAKES_NUMBERS,
};

/* ---- the metric ---- */

struct within_options {
    struct et_metric_options common;
    double tolerance;
};

/* Two numbers that are added up over batches: the trust of those within the tolerance,
 * and of all. */
static struct et_tensor *
within_update(struct et_graph *g, const struct et_metric_options *options,
              struct et_tensor *outputs, const struct et_samples *samples)
{
    const struct within_options *o = (const void *)options;
    const int64_t one = 1;
    struct et_tensor *trust, *d = differences(g, outputs, samples, &trust);
    struct et_tensor *most = et_fill(g, ET_F32, 0, NULL, o->tolerance);
    struct et_tensor *hit = et_cast(g, et_less_equal(g, et_abs(g, d), most), ET_F32);
    struct et_tensor *both[] = {
        et_reshape(g, et_sum(g, et_mul(g, hit, trust), 0, false), 1, &one),
        et_reshape(g, et_sum(g, trust, 0, false), 1, &one),
    };
    return et_concat(g, both, 2, 0);
}

static double
within_compute(const double *sums, int n)
{
    (void)n;
    return sums[1] > 0 ? sums[0] / sums[1] : NAN;
}

static const struct et_metric_class within = {
    .info =
        {
            ET_CLASS(metric),
            .name = "WithinTolerance",
            .class_name = "WithinTolerance",
            .summary = "part of the samples, by trust, within a tolerance",
            .applies_to = "any",
            .options =
                (const struct et_option[]){
                    {
                        .name = "tolerance",
                        .type = ET_OPT_FLOAT,
                        .offset = offsetof(struct within_options, tolerance),
                        .def = "0.1",
                        .max = 1,
                        .help = "largest difference that counts as right",
                    },
                    {.name = NULL},
                },
            .options_size = sizeof(struct within_options),
        },
    .n_sums = 2,
    .update = within_update,
    .compute = within_compute,
};

/* ---- the plugin ---- */

static const struct et_dataset_class *const datasets[] = {&waves, NULL};
static const struct et_loss_class *const losses[] = {&trusted_mse, NULL};
static const struct et_metric_class *const metrics[] = {&within, NULL};

ET_PLUGIN(.datasets = datasets, .losses = losses, .metrics = metrics)
