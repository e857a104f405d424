/* Data-parallel training: several ranks are one, but for rounding; they stay alike, and
 * do together whatever ends or changes a run. */
#include "config.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "t/dist/group.h"
#include "t/tap.h"
#include "t/train/recipe_run.h"
#include "t/train/recipes.h"

/* A loss is a mean of numbers of its own size, each rounded by 2^-24 of it; ranks add
 * gradients up in another order, which moves parameters by as much of each update. Ten
 * updates of rates below 0.1 leave less than this of it. */
#define ROUNDING (32 * 0x1p-24)

/* Where products take f16 a gradient's order of sums moves what is then rounded by
 * 2^-11. */
#define ROUNDING_F16 (2 * 0x1p-11)

enum { METRICS = 8 };

/* What a rank's run came to; in memory that the test shares with its ranks. */
struct result {
    int status;
    char why[400];
    int64_t batches, samples, accum;
    int n_losses, n_metrics, outcome;
    double loss[MAX_LOSSES];
    struct et_metric_value metric[METRICS];
    uint64_t params; /* digest */
    double norm;
};

struct job {
    const char *recipe;
    struct recipe_choice choice;
    bool freeze;
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
    out->params = digest((unsigned char *)params, bytes);
    for (size_t i = 0; i < bytes / sizeof *params; i++)
        out->norm += (double)params[i] * (double)params[i];
    free(params);
    out->batches = s->timestamp.batch;
    out->samples = s->timestamp.sample;
    out->accum = s->grad_accum;
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
    recipe_prepare(&r, cx, job->recipe, &choice);
    if (job->prepare)
        job->prepare(&r, rank);
    et_status status = et_trainer_new(cx, &r.parts.config, &r.trainer);
    if (status == ET_OK) {
        r.state = et_trainer_state(r.trainer);
        if (job->freeze)
            status = et_module_freeze_stats(cx, r.parts.model->root, true);
    }
    if (status == ET_OK)
        status = et_trainer_fit(r.trainer, ET_TIME_UNSET);
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

int
main(void)
{
#ifndef ET_GLOO
    skip_all("built without Gloo");
#else
    job = mmap(NULL, sizeof *job, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
               -1, 0);
    if (job == MAP_FAILED)
        bail("no memory to share");
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        for (int world = 2; world <= (i < 4 ? 4 : 2); world += 2)
            test_same(world, same[i].name, same[i].recipe, same[i].accum);
#endif
    return done();
}
