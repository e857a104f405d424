/* SPDX-License-Identifier: Apache-2.0 */
/* Data-parallel training: several ranks are one, but for rounding; they stay alike, and
 * do together whatever ends or changes a run. */
#include "config.h"

#include <errno.h>
#include <ftw.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "core/base/seams.h"
#include "t/data/fixture.h"
#include "t/dist/group.h"
#include "t/tap.h"
#include "t/train/recipe_run.h"
#include "t/train/recipes.h"
#include "core/trainer/state.h"

/* A loss is a mean of numbers of its own size, each rounded by 2^-24 of it; ranks add
 * gradients up in another order, which moves parameters by as much of each update. Ten
 * updates of rates below 0.1 leave less than this of it. */
#define ROUNDING (32 * 0x1p-24)

/* Where products take f16 a gradient's order of sums moves what is then rounded by
 * 2^-11. */
#define ROUNDING_F16 (2 * 0x1p-11)

/* Where they take bf16, by 2^-9. */
#define ROUNDING_BF16 0x1p-9

#define OWN INFINITY

enum { METRICS = 8 };

/* What a rank's run came to; in memory that the test shares with its ranks. */
struct result {
    int status;
    char why[400];
    int64_t batches, samples, accum;
    int n_losses, n_metrics, outcome;
    double loss[MAX_LOSSES];
    struct et_metric_value metric[METRICS];
    uint64_t params;    /* digest */
    double norm, scale; /* of the parameters; the loss's */
    size_t peak;        /* bytes of the device */
    int64_t wait_ns;
};

struct job {
    const char *recipe;
    struct recipe_choice choice;
    struct et_checkpoint_config save;
    struct et_load_config load;
    size_t limit;
    /* What a test does to a rank's run before it starts. */
    void (*prepare)(struct recipe_run *r, int rank);
    struct result result[GROUP_MOST];
};

static struct job *job;

static uint64_t
digest(const unsigned char *bytes, size_t n)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ bytes[i]) * 1099511628211u;
    return h;
}

static void
note(struct recipe_run *r, struct result *out)
{
    const struct et_state *s = r->state;
    size_t bytes;
    float *params = recipe_params(r, &bytes);
    /* Without the running statistics behind them, which are each rank's own: rank 0's
     * are evaluated and saved. */
    bytes = et_desc_bytes(&s->params->values->desc);
    out->params = digest((unsigned char *)params, bytes);
    for (size_t i = 0; i < bytes / sizeof *params; i++)
        out->norm += (double)params[i] * (double)params[i];
    free(params);
    out->batches = s->timestamp.batch;
    out->samples = s->timestamp.sample;
    out->accum = s->grad_accum;
    out->scale = s->loss_scale;
    struct et_device_memory memory;
    struct et_comm_look look;
    et_device_get_memory(r->parts.dev, &memory);
    et_comm_get_look(r->parts.config.comm, &look);
    out->peak = memory.peak_bytes;
    out->wait_ns = look.wait_ns;
    out->outcome = (int)et_trainer_outcome(r->trainer);
    out->n_losses = r->n_losses;
    memcpy(out->loss, r->loss, sizeof out->loss);
    out->n_metrics = s->n_eval_metrics < METRICS ? s->n_eval_metrics : METRICS;
    memcpy(out->metric, s->eval_metrics, (size_t)out->n_metrics * sizeof *out->metric);
}

static int
be_rank(struct et_ctx *cx, struct et_comm *c, void *data)
{
    struct recipe_run r;
    int rank = et_comm_rank(c);
    struct result *out = &job->result[rank];
    struct recipe_choice choice = job->choice;
    (void)data;
    choice.device = "cpu";
    choice.comm = c;
    choice.checkpoint = job->save.directory ? &job->save : NULL;
    choice.load = job->load.directory ? &job->load : NULL;
    recipe_prepare(&r, cx, job->recipe, &choice);
    if (job->prepare)
        job->prepare(&r, rank);
    et_status status = et_trainer_new(cx, &r.parts.config, &r.trainer);
    if (status == ET_OK) {
        r.state = et_trainer_state(r.trainer);
        status = et_trainer_fit(r.trainer, ET_TIME_UNSET);
    }
    if (status == ET_OK)
        note(&r, out);
    else
        snprintf(out->why, sizeof out->why, "%.399s", et_error_get(cx)->message);
    out->status = (int)status;
    et_error_clear(cx);
    recipe_close(&r);
    return 0;
}

/* RECIPE with WORLD ranks; their results in *OUT. */
static void
run(int world, const struct job *what, struct job *out)
{
    *job = *what;
    memset(job->result, 0, sizeof job->result);
    if (!group_run(world, be_rank, NULL))
        diag("a rank did not end well");
    *out = *job;
    for (int i = 0; i < world; i++)
        if (out->result[i].status != ET_OK)
            diag("rank %d: %s", i, out->result[i].why);
}

static bool
all_alike(const struct job *j, int world)
{
    for (int i = 0; i < world; i++)
        if (j->result[i].status != ET_OK ||
            j->result[i].params != j->result[0].params ||
            j->result[i].batches != j->result[0].batches ||
            memcmp(j->result[i].loss, j->result[0].loss, sizeof j->result[0].loss) != 0)
            return false;
    return true;
}

/* The worst relative distance of the losses and evaluations. */
static double
distance(const struct result *a, const struct result *b)
{
    double worst =
        a->n_losses == b->n_losses && a->n_losses > 0 && a->n_metrics == b->n_metrics
            ? 0
            : INFINITY;
    for (int i = 0; i < a->n_losses; i++)
        worst = fmax(worst, fabs(a->loss[i] - b->loss[i]) / fabs(b->loss[i]));
    for (int i = 0; i < a->n_metrics; i++)
        worst = fmax(worst, fabs(a->metric[i].value - b->metric[i].value) /
                                fmax(fabs(b->metric[i].value), 1e-3));
    return worst;
}

/* ---- several ranks are one ---- */

#define EVALUATED                                                                      \
    "eval_interval: 4ba\neval_data:\n  name: synthetic_images\n  num_samples: 13\n"    \
    "  type: separable\n  resolution: 16\n  batch_size: 4\n"                           \
    "  transforms: [center_crop: {size: 12}]\n"
#define IMAGES(n)                                                                      \
    "train_data: {name: synthetic_images, type: separable, num_samples: " #n ",\n"     \
    "  num_unique: " #n ", batch_size: 8, workers: 0, resolution: 12}\n"
#define MLP(n) "max_duration: 10ba\nseed: 5\nmodel: mlp\n" IMAGES(n) SGD

/* Blocks, and vectors with dropout. */
#define BLOCKS                                                                         \
    "max_duration: 8ba\nseed: 17\nmodel:\n  name: layers\n  layers:\n"                 \
    "    - bottleneck: {channels: 2}\n    - bottleneck: {channels: 2}\n"               \
    "    - adaptive_avg_pool2d\n    - flatten\n    - dropout: {p: 0.2}\n"              \
    "    - linear: {out: 10}\n" IMAGE_DATA SGD "algorithms:\n  "

static const struct {
    const char *name, *recipe;
    int64_t accum;
} same[] = {
    {"mlp, an evaluation of 13 samples",
     "max_duration: 10ba\nseed: 5\nmodel: mlp\n" IMAGE_DATA SGD EVALUATED, 1},
    {"mlp, last batches of 3 samples", MLP(27), 1},
    {"mlp, last batches of 1 sample", MLP(25), 1},
    {"mlp, in microbatches", MLP(27), 2},
    {"mlp, drop_last",
     "max_duration: 10ba\nseed: 5\nmodel: mlp\n"
     "train_data: {name: synthetic_images, type: separable, num_samples: 27,\n"
     "  num_unique: 27, batch_size: 8, workers: 0, resolution: 12, drop_last: "
     "true}\n" SGD,
     1},
    {"lenet with crops, flips and workers", LENET("10ba"), 1},
    {"stochastic depth by samples, batch norms in step",
     "sync_batch_norm: true\n" BLOCKS "stochastic_depth: {drop_rate: 0.5,\n"
     "    stochastic_method: sample, target_layer_name: ResNetBottleneck}\n",
     1},
    {"gpt2 with dropout", GPT("10ba"), 1},
    {"gpt2 with dropout, in microbatches", GPT("10ba"), 2},
    {"gpt2, amp_fp16", GPT("10ba") "precision: amp_fp16\n", 1},
};

static void
test_same(int world, const char *name, const char *recipe, int64_t accum)
{
    struct job one, many, again;
    const struct job what = {.recipe = recipe, .choice = {.grad_accum = accum}};
    run(1, &what, &one);
    run(world, &what, &many);
    run(world, &what, &again);
    double far = distance(&many.result[0], &one.result[0]);
    bool moved =
        one.result[0].n_losses > 1 && one.result[0].loss[0] != one.result[0].loss[1];
    double bound = strstr(recipe, "amp_fp16") ? ROUNDING_F16 : ROUNDING;
    ok(far <= bound && moved, "%s: %d ranks give the losses and metrics of one", name,
       world);
    if (far > bound)
        diag("they differ by %g of their size", far);
    ok(all_alike(&many, world) && many.result[0].samples == one.result[0].samples,
       "... and all of them the same parameters, after as many samples");
    ok(again.result[0].params == many.result[0].params,
       "... the same bits in each run");
}

/* ---- algorithms ---- */

/* Without batch norm, whose statistics are a rank's own, and without chance. */
#define PLAIN                                                                          \
    "max_duration: 8ba\nseed: 17\nmodel:\n  name: layers\n  layers:\n"                 \
    "    - conv2d: {out: 8, kernel: 3, padding: 1}\n    - group_norm: {groups: 2}\n"   \
    "    - relu\n    - conv2d: {out: 8, kernel: 3, stride: 2, padding: 1}\n"           \
    "    - relu\n    - max_pool2d: {kernel: 2}\n    - adaptive_avg_pool2d\n"           \
    "    - flatten\n    - linear: {out: 10}\n" IMAGE_DATA                              \
    "optimizer: {name: sgd, lr: 0.02}\n"                                               \
    "eval_interval: 4ba\neval_data:\n  name: synthetic_images\n  num_samples: 13\n"    \
    "  type: separable\n  resolution: 12\n  batch_size: 4\nalgorithms:\n  "

/* Much of its memory is for the batch. */
#define WIDE                                                                           \
    "max_duration: 6ba\nseed: 17\nmodel:\n  name: layers\n  layers:\n"                 \
    "    - conv2d: {out: 8, kernel: 3, padding: 1}\n    - group_norm: {groups: 2}\n"   \
    "    - gelu\n    - conv2d: {out: 8, kernel: 3, padding: 1}\n    - gelu\n"          \
    "    - adaptive_avg_pool2d\n    - flatten\n    - linear: {out: 10}\n"              \
    "train_data: {name: synthetic_images, type: separable, num_samples: 32,\n"         \
    "  num_unique: 32, batch_size: 16, workers: 0, resolution: 32}\n"                  \
    "optimizer: {name: sgd, lr: 0.02}\n"

static const struct {
    const char *name, *options;
    /* How far several ranks may be from one. OWN: it pairs, picks or looks around
     * within a rank's batch, so that they do something else. */
    double bound;
} algorithms[] = {
    {"blurpool", "{min_channels: 1}", ROUNDING},
    {"ema", "{half_life: 2ba}", ROUNDING},
    {"gradient_clipping", "{clipping_type: norm, clipping_threshold: 0.1}", ROUNDING},
    {"label_smoothing", "{smoothing: 0.2}", ROUNDING},
    {"mixup", "{alpha: 1.0}", OWN},
    {"cutmix", "{alpha: 1.0}", OWN},
    {"cutout", "{num_holes: 2}", ROUNDING},
    {"colout", "{p_row: 0.3}", ROUNDING},
    {"augmix", "", ROUNDING},
    {"randaugment", "{depth: 3}", ROUNDING},
    {"progressive_resizing", "{initial_scale: 0.5, finetune_fraction: 0.1}", ROUNDING},
    {"reduce_lr_on_plateau",
     "{monitor: Accuracy, dataloader_label: train, patience: 0, "
     "threshold: 10, threshold_mode: abs, factor: 0.5}",
     ROUNDING},
    {"sam", "{rho: 0.1, interval: 2}", OWN},
    {"squeeze_excite", "{min_channels: 3, latent_channels: 2}", ROUNDING},
    {"swa", "{swa_start: 0dur, swa_end: 0.75dur, update_interval: 1ba}", ROUNDING},
    {"layer_freezing", "{freeze_start: 0.0}", ROUNDING},
    {"ghost_batchnorm", "{ghost_batch_size: 2}", OWN},
    {"channels_last", "", ROUNDING},
    {"factorize",
     "{min_channels: 3, latent_channels: 1, min_features: 4, latent_features: 2}",
     ROUNDING},
    {"weight_standardization", "", ROUNDING},
    {"low_precision_layernorm", "", ROUNDING_BF16},
    {"low_precision_groupnorm", "", ROUNDING_BF16},
    {"gated_linear_units", "", ROUNDING},
    {"alibi", "{max_sequence_length: 16}", OWN},
    {"selective_backprop", "{start: 0.0, keep: 0.5, interrupt: 3}", OWN},
    {"stochastic_depth", "{target_layer_name: ResNetBottleneck, drop_rate: 0.5}",
     ROUNDING},
    {"gyro_dropout", "{sigma: 4, tau: 2}", OWN},
    {"seq_length_warmup",
     "{duration: 0.8, min_seq_length: 4, max_seq_length: 16, step_size: 4}", ROUNDING},
};

/* With which recipe, where it is not PLAIN. */
static const struct {
    const char *name, *text;
} bases[] = {
    {"ghost_batchnorm", RESNET("8ba") EVALUATED "algorithms:\n  "},
    {"low_precision_layernorm", "precision: amp_bf16\n" GPT("8ba") "algorithms:\n  "},
    {"low_precision_groupnorm", "precision: amp_bf16\n" PLAIN},
    {"gated_linear_units", BERT("8ba") "algorithms:\n  "},
    {"alibi", GPT("8ba") "algorithms:\n  "},
    {"stochastic_depth", "sync_batch_norm: true\n" BLOCKS},
    {"gyro_dropout", BLOCKS},
    {"seq_length_warmup", GPT("8ba") "algorithms:\n  "},
};

/* The recipe of algorithm I. */
static void
write_recipe(size_t i, char text[2048])
{
    const char *base = PLAIN;
    for (size_t k = 0; k < sizeof bases / sizeof *bases; k++)
        if (strcmp(bases[k].name, algorithms[i].name) == 0)
            base = bases[k].text;
    snprintf(text, 2048, "%s%s: %s\n", base, algorithms[i].name, algorithms[i].options);
}

/* WORLD ranks have 8 / WORLD rows of a batch each. */
static void
test_ranks(size_t i, int world, const struct job *what, const struct job *one)
{
    const char *name = algorithms[i].name;
    const double bound = algorithms[i].bound;
    struct job many, again;
    run(world, what, &many);
    run(world, what, &again);
    double far = distance(&many.result[0], &one->result[0]);
    ok(all_alike(&many, world) && isfinite(many.result[0].norm) &&
           again.result[0].params == many.result[0].params,
       "%s leaves %d ranks alike, the same in each run", name, world);
    ok(far <= bound && many.result[0].loss[0] > 0, "... %s",
       bound == OWN ? "each within its own batch" : "and is what it is with one rank");
    if (far > bound)
        diag("they differ by %g of their size", far);
}

/* Those that four ranks train each time; the others do where there is a night. */
static bool
is_for_four(const char *name)
{
    static const char *const some[] = {
        "label_smoothing",   "ema",    "randaugment",
        "gradient_clipping", "swa",    "factorize",
        "stochastic_depth",  "augmix", "seq_length_warmup"};
    bool found = getenv("ETUDE_LONG") != NULL;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        found |= strcmp(some[i], name) == 0;
    return found;
}

static void
test_algorithm(size_t i)
{
    char text[2048];
    struct job one;
    write_recipe(i, text);
    const struct job what = {.recipe = text, .choice = {.grad_accum = 1}};
    run(1, &what, &one);
    test_ranks(i, 2, &what, &one);
    if (is_for_four(algorithms[i].name))
        test_ranks(i, 4, &what, &one);
}

static const struct et_algorithm_class *
untested(void)
{
    for (int i = 0; et_algorithm_classes[i]; i++) {
        bool found = false;
        for (size_t k = 0; k < sizeof algorithms / sizeof *algorithms; k++)
            found |=
                strcmp(algorithms[k].name, et_algorithm_classes[i]->info.name) == 0;
        if (!found)
            return et_algorithm_classes[i];
    }
    return NULL;
}

/* ---- one rank alone has a reason ---- */

static void
stop_rank_1(struct recipe_run *r, int rank)
{
    r->stop_after = rank == 1 ? 3 : 0;
}

static struct et_tensor *
spoil(void *data, struct et_state *s)
{
    struct et_tensor *loss =
        et_state_loss(s, s->outputs, s->batch.target, ET_REDUCE_MEAN);
    (void)data;
    return s->timestamp.batch == 3 ? et_mul_scalar(s->graph, loss, (double)NAN) : loss;
}

static void
spoil_rank_1(struct recipe_run *r, int rank)
{
    r->parts.config.nonfinite_action = ET_NONFINITE_SKIP;
    if (rank == 1)
        r->steps.train_loss = spoil;
}

static void
limit_rank_1(struct recipe_run *r, int rank)
{
    r->parts.config.memory_limit = rank == 1 ? job->limit : 0;
}

static void
other_seed(struct recipe_run *r, int rank)
{
    r->parts.config.seed += (uint32_t)rank;
}

static void
another_accum(struct recipe_run *r, int rank)
{
    r->parts.config.grad_accum = rank;
}

static et_status
drift(void *data, struct et_state *s, enum et_event event)
{
    float p[16];
    (void)data;
    if (event != ET_EVENT_BATCH_START || s->timestamp.batch != 990)
        return ET_OK;
    struct et_tensor first = *s->params->values;
    first.desc.shape[0] = 16;
    ET_TRY(et_tensor_read(s->cx, &first, p, sizeof p));
    p[3] += 1e-3f;
    return et_tensor_write(s->cx, &first, p, sizeof p);
}

static void
drift_rank_1(struct recipe_run *r, int rank)
{
    if (rank == 1)
        r->steps.at_event = drift;
}

static et_status
die(void *data, struct et_state *s, enum et_event event)
{
    (void)data;
    if (event == ET_EVENT_BEFORE_BACKWARD && s->timestamp.batch == 3)
        raise(SIGKILL);
    return ET_OK;
}

static void
kill_rank_1(struct recipe_run *r, int rank)
{
    if (rank == 1)
        r->steps.at_event = die;
}

/* ---- a gradient that overflows on one rank alone, in either pass of sam ---- */

enum { FIRST_SCALE = 1024 };
static int passes; /* of the batch that overflows, in this rank */

/* f16 ends at 65504; the loss itself is a number. */
static struct et_tensor *
overflow_pass(struct et_state *s, int pass)
{
    struct et_tensor *loss =
        et_state_loss(s, s->outputs, s->batch.target, ET_REDUCE_MEAN);
    if (s->timestamp.batch != 3 || passes++ != pass)
        return loss;
    return et_mul_scalar(s->graph, loss, 1e30);
}

static struct et_tensor *
overflow_first(void *data, struct et_state *s)
{
    (void)data;
    return overflow_pass(s, 0);
}

static struct et_tensor *
overflow_second(void *data, struct et_state *s)
{
    (void)data;
    return overflow_pass(s, 1);
}

static void
scale_all(struct recipe_run *r, int rank)
{
    (void)rank;
    r->parts.config.loss_scaling.initial = FIRST_SCALE;
}

static void
overflow_first_1(struct recipe_run *r, int rank)
{
    scale_all(r, rank);
    if (rank == 1)
        r->steps.train_loss = overflow_first;
}

static void
overflow_second_1(struct recipe_run *r, int rank)
{
    scale_all(r, rank);
    if (rank == 1)
        r->steps.train_loss = overflow_second;
}

static void
test_overflow(void)
{
    static const struct {
        void (*prepare)(struct recipe_run *r, int rank);
        const char *what;
    } rows[] = {
        {overflow_first_1, "the pass that looks around"},
        {overflow_second_1, "the pass that is learned from"},
    };
    struct job plain, j,
        what = {
            .recipe = GPT("6ba") "precision: amp_fp16\nalgorithms:\n  sam:\n",
            .choice = {.grad_accum = 1},
            .prepare = scale_all,
        };
    run(2, &what, &plain);
    ok(all_alike(&plain, 2) && plain.result[0].scale == FIRST_SCALE,
       "sam in amp_fp16 with 2 ranks: the scale stays where nothing overflows");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        what.prepare = rows[i].prepare;
        run(2, &what, &j);
        ok(all_alike(&j, 2) && isfinite(j.result[0].norm) && j.result[0].batches == 6,
           "rank 1 alone overflows in %s: the ranks stay alike", rows[i].what);
        ok(j.result[0].scale == FIRST_SCALE / 2 && j.result[1].scale == FIRST_SCALE / 2,
           "... both halve the scale, once (%g, %g)", j.result[0].scale,
           j.result[1].scale);
        ok(j.result[0].loss[2] == plain.result[0].loss[2] &&
               isfinite(j.result[0].loss[4]) && isfinite(j.result[0].loss[5]) &&
               j.result[0].params != plain.result[0].params,
           "... and neither makes that step");
    }
}

static void
test_reasons(void)
{
    const struct job plain = {.recipe = GPT("10ba"), .choice = {.grad_accum = 1}};
    struct job j, what = plain;
    what.prepare = stop_rank_1;
    run(2, &what, &j);
    ok(all_alike(&j, 2) && j.result[0].batches >= 3 && j.result[0].batches <= 4 &&
           j.result[0].outcome == ET_OUTCOME_STOPPED &&
           j.result[1].outcome == ET_OUTCOME_STOPPED,
       "one rank is interrupted: all stop after the same batch (%lld)",
       (long long)j.result[0].batches);
    what.prepare = spoil_rank_1;
    run(2, &what, &j);
    ok(all_alike(&j, 2) && isnan(j.result[0].loss[3]) && isfinite(j.result[0].norm) &&
           isfinite(j.result[0].loss[4]),
       "one rank's loss is no number: no rank updates, and all go on");

    const struct job free_run = {.recipe = WIDE, .choice = {.grad_accum = -1}};
    struct job unlimited;
    run(2, &free_run, &unlimited);
    what = free_run;
    what.prepare = limit_rank_1;
    what.limit = unlimited.result[1].peak * 19 / 20;
    run(2, &what, &j);
    ok(all_alike(&j, 2) && j.result[0].accum > 1 &&
           j.result[0].accum == j.result[1].accum,
       "one rank has less memory: all cut their batches into %lld",
       (long long)j.result[0].accum);
    double far = distance(&j.result[0], &unlimited.result[0]);
    ok(far <= ROUNDING, "... and learn the same");
    if (far > ROUNDING)
        diag("they differ by %g of their size", far);

    what = plain;
    what.prepare = other_seed;
    *job = what;
    memset(job->result, 0, sizeof job->result);
    (void)group_run(2, be_rank, NULL);
    ok(job->result[0].status == ET_EPEER && job->result[1].status == ET_EPEER,
       "ranks with other seeds do not begin");
    ok(strstr(job->result[0].why, "rank 1: its seed, recipe or data"), "... %s",
       job->result[0].why);

    job->prepare = another_accum;
    memset(job->result, 0, sizeof job->result);
    (void)group_run(2, be_rank, NULL);
    ok(job->result[0].status == ET_EPEER && job->result[1].status == ET_EPEER,
       "nor do ranks of which one was told how many microbatches there are");

    *job = (struct job){
        .recipe = "max_duration: 1010ba\nseed: 5\nmodel: mlp\n" IMAGES(24) SGD,
        .choice = {.grad_accum = 1},
        .prepare = drift_rank_1,
    };
    (void)group_run(2, be_rank, NULL);
    for (int r = 0; r < 2; r++)
        if (!ok(job->result[r].status == ET_EPEER &&
                    strstr(job->result[r].why,
                           "rank 1: its parameters are not those of rank 0 "
                           "after batch 1000"),
                "a rank that has gone astray is found within 1000 batches: rank %d", r))
            diag("rank %d: %s", r, job->result[r].why);

    struct group g;
    *job = plain;
    job->prepare = kill_rank_1;
    group_start(&g, 2, 3600, be_rank, NULL);
    group_wait(&g, 300, -1);
    ok(job->result[0].status == ET_EPEER &&
           strstr(job->result[0].why, "rank 1 is gone"),
       "a rank is killed: the other's run ends with %s", job->result[0].why);
}

/* ---- requests ---- */

/* Asked of rank 0: another rate after batch 3; a pause after 5, until it has waited
 * twice; the end after 7. */
struct asked {
    struct et_control control; /* first */
    int next, waited, told, rank;
};

static bool
next_request(struct et_control *c, int64_t step, struct et_request *out)
{
    struct asked *a = (struct asked *)c;
    static const struct et_request list[] = {
        {.op = ET_REQUEST_SET, .step = 3, .key = "optimizer.lr", .value = "0.5"},
        {.op = ET_REQUEST_PAUSE, .step = 5},
        {.op = ET_REQUEST_CONTINUE, .step = 5},
        {.op = ET_REQUEST_STOP, .step = 7},
    };
    if (a->rank != 0)
        bail("rank %d was asked for a request", a->rank);
    if (a->next == 4 || step < list[a->next].step || (a->next == 2 && a->waited < 2))
        return false;
    *out = list[a->next++];
    return true;
}

static void
note_done(struct et_control *c, const struct et_request *r, int64_t step, bool applied,
          const char *answer)
{
    struct asked *a = (struct asked *)c;
    a->told++;
    if (a->rank != 0 || !applied)
        bail("rank %d, %s after %lld: %s", a->rank, et_request_name(r->op),
             (long long)step, answer);
}

static void
wait_a_little(struct et_control *c)
{
    ((struct asked *)c)->waited++;
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void
ask_rank_0(struct recipe_run *r, int rank)
{
    static struct asked asked;
    asked = (struct asked){
        .control = {.next = next_request, .done = note_done, .wait = wait_a_little},
        .rank = rank,
    };
    r->parts.config.control = &asked.control;
}

static void
test_requests(void)
{
    struct job plain, j, what = {.recipe = LENET("12ba"), .choice = {.grad_accum = 1}};
    run(2, &what, &plain);
    what.prepare = ask_rank_0;
    run(2, &what, &j);
    ok(all_alike(&j, 2) && j.result[0].batches >= 7 && j.result[0].batches <= 8 &&
           j.result[0].outcome == ET_OUTCOME_STOPPED &&
           j.result[1].outcome == ET_OUTCOME_STOPPED,
       "what rank 0 is asked all ranks do after the same batch: set, pause, stop "
       "(%lld)",
       (long long)j.result[0].batches);
    ok(j.result[0].loss[2] == plain.result[0].loss[2] &&
           j.result[1].loss[6] != plain.result[0].loss[6],
       "... and it has been done");
}

/* ---- checkpoints ---- */

static char folder[256];

static struct et_checkpoint_config
saving(const char *name)
{
    static char path[sizeof folder + 100];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return (struct et_checkpoint_config){
        .directory = path,
        .interval = ET_BATCHES(100),
        .keep = 1,
        .incarnation = 1,
    };
}

static void
stop_after_5(struct recipe_run *r, int rank)
{
    r->stop_after = rank == 0 ? 5 : 0;
}

static void
test_resume(const char *name, const char *recipe)
{
    struct job whole, first, rest,
        what = {.recipe = recipe, .choice = {.grad_accum = 1}};
    char other[96];
    snprintf(other, sizeof other, "%s-whole", name);
    what.save = saving(other); /* ema saves, and then is, its averages */
    run(2, &what, &whole);
    what.prepare = stop_after_5;
    what.save = saving(name);
    run(2, &what, &first);
    what.prepare = NULL;
    what.load = (struct et_load_config){.directory = what.save.directory};
    run(2, &what, &rest);
    int64_t at = first.result[0].batches;
    ok(all_alike(&first, 2) && at >= 5 && at < whole.result[0].batches,
       "%s: 2 ranks stop after batch %lld, and save", name, (long long)at);
    ok(all_alike(&rest, 2) && rest.result[0].params == whole.result[0].params &&
           rest.result[0].n_losses == whole.result[0].n_losses - at &&
           memcmp(rest.result[0].loss, whole.result[0].loss + at,
                  (size_t)rest.result[0].n_losses * sizeof(double)) == 0,
       "... and go on to the same bits");
    ok(memcmp(rest.result[0].metric, whole.result[0].metric,
              sizeof whole.result[0].metric) == 0,
       "... of evaluations too");
}

/* Saved by the last of the above. */
static void
test_other_world(const char *name, const char *recipe)
{
    for (int world = 1; world <= 4; world += 3) {
        char want[96];
        snprintf(want, sizeof want, "saved with 2 ranks, started with %d: use -n 2",
                 world);
        *job = (struct job){.recipe = recipe, .choice = {.grad_accum = 1}};
        job->load.directory = saving(name).directory;
        (void)group_run(world, be_rank, NULL);
        int refused = 0;
        for (int i = 0; i < world; i++)
            refused += job->result[i].status == (i ? ET_EPEER : ET_EINVAL);
        is_int(refused, world, "%d ranks do not go on from what 2 have saved", world);
        ok(strstr(job->result[0].why, want), "... %s", job->result[0].why);
    }
}

/* Opens no file. */
static int
refuse(int dir, const char *path, int flags, mode_t mode)
{
    (void)dir, (void)path, (void)flags, (void)mode;
    errno = EACCES;
    return -1;
}

static void
go_back_by_rank_1(struct recipe_run *r, int rank)
{
    spoil_rank_1(r, rank);
    r->parts.config.nonfinite_action = ET_NONFINITE_ROLLBACK;
    r->parts.config.nonfinite_grace = 1;
}

/* Rank 1 cannot read what rank 0 goes back to. */
static void
go_back_without_rank_1(struct recipe_run *r, int rank)
{
    static struct eti_seams seams;
    go_back_by_rank_1(r, rank);
    seams = eti_system;
    seams.file.open = refuse;
    if (rank == 1)
        eti_ctx_set_seams(r->cx, &seams);
}

static void
test_going_back(void)
{
    struct job j, what = {.recipe = GPT("8ba"), .choice = {.grad_accum = 1}};
    what.save = saving("back");
    what.save.interval = ET_BATCHES(2);
    what.prepare = go_back_by_rank_1;
    run(2, &what, &j);
    ok(all_alike(&j, 2) && j.result[0].batches == 8 && isfinite(j.result[1].norm) &&
           j.result[1].outcome == ET_OUTCOME_FINISHED,
       "one rank's loss is no number: all go back to the newest checkpoint, and on");
    what.save = saving("back-alone");
    what.save.interval = ET_BATCHES(2);
    what.prepare = go_back_without_rank_1;
    run(2, &what, &j);
    ok(j.result[0].batches == 4 && j.result[1].batches == 4 &&
           j.result[0].outcome == ET_OUTCOME_DIVERGED &&
           j.result[1].outcome == ET_OUTCOME_DIVERGED,
       "where one cannot read it the run ends on all of them");
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

int
main(void)
{
    if (!group_possible())
        skip_all("built without Gloo");
    job = mmap(NULL, sizeof *job, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
               -1, 0);
    if (job == MAP_FAILED)
        bail("no memory to share");
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        for (int world = 2; world <= (i < 4 ? 4 : 2); world += 2)
            test_same(world, same[i].name, same[i].recipe, same[i].accum);
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++)
        test_algorithm(i);
    ok(!untested(), "every algorithm has a case");
    test_overflow();
    test_reasons();
    test_requests();
    snprintf(folder, sizeof folder, "%s/etude-ranks-XXXXXX", P_tmpdir);
    if (!mkdtemp(folder))
        bail("no folder");
    test_going_back();
    test_resume("gpt2", GPT("10ba"));
    test_resume("mixup, ema and batch norm", RESNET("10ba") EVALUATED
                "algorithms:\n  mixup:\n  ema: {half_life: 2ba}\n");
    test_resume("sam", LENET("10ba") "algorithms:\n  sam: {interval: 2}\n");
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++) {
        char text[2048], name[64];
        write_recipe(i, text);
        snprintf(name, sizeof name, "alone-%s", algorithms[i].name);
        test_resume(name, text);
    }
    test_other_world("gpt2", GPT("10ba"));
    (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return done();
}
