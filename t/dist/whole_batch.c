/* SPDX-License-Identifier: Apache-2.0 */
/* What is a mean over the batch is one over that of all ranks, however it is cut: the
 * loss where some targets do not count, and the statistics of sync_batch_norm. */
#include "config.h"

#include <ftw.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/trainer/trainer_impl.h"
#include "t/dist/group.h"
#include "t/tap.h"
#include "t/train/masked.h"
#include "t/train/recipe_run.h"

/* Sums of f32 in another order; six updates. Gradients through a batch norm are small
 * differences of larger numbers. */
#define ROUNDING (64 * 0x1p-24)

enum { MOST_NUMBERS = 200000 };

/* In memory that the test shares with its ranks. */
struct result {
    int status, n_losses;
    bool finds_pieces; /* it cuts its batches as memory goes */
    char why[400];
    double loss[MAX_LOSSES];
    int64_t n; /* parameters, and running statistics behind them */
    float number[MOST_NUMBERS];
};

struct job {
    const char *recipe;
    int64_t accum;
    struct result result[4];
};

static struct job *job;

static int
be_rank(struct et_ctx *cx, struct et_comm *c, void *data)
{
    struct recipe_run r;
    struct result *out = &job->result[et_comm_rank(c)];
    (void)data;
    recipe_open(
        &r, cx, job->recipe,
        &(struct recipe_choice){.device = "cpu", .comm = c, .grad_accum = job->accum});
    out->finds_pieces = r.trainer->pieces.is_auto;
    out->status = (int)et_trainer_fit(r.trainer, ET_TIME_UNSET);
    if (out->status != ET_OK)
        snprintf(out->why, sizeof out->why, "%.399s", et_error_get(cx)->message);
    et_error_clear(cx);
    size_t bytes;
    float *numbers = recipe_params(&r, &bytes);
    out->n = (int64_t)(bytes / sizeof(float));
    if (out->n > MOST_NUMBERS)
        bail("the model has %lld numbers", (long long)out->n);
    memcpy(out->number, numbers, bytes);
    free(numbers);
    out->n_losses = r.n_losses;
    memcpy(out->loss, r.loss, sizeof out->loss);
    recipe_close(&r);
    return 0;
}

/* RECIPE on WORLD ranks; what rank 0's came to is *OUT. */
static void
run(int world, const char *recipe, int64_t accum, struct result *out)
{
    memset(job, 0, sizeof *job);
    job->recipe = recipe;
    job->accum = accum;
    if (!group_run(world, be_rank, NULL))
        diag("a rank did not end well");
    *out = job->result[0];
    if (out->status != ET_OK)
        diag("%s", out->why);
}

static bool
ranks_are_alike(int world)
{
    for (int i = 1; i < world; i++)
        if (memcmp(job->result[i].number, job->result[0].number,
                   (size_t)job->result[0].n * sizeof(float)) != 0)
            return false;
    return true;
}

/* The worst distance of losses, as parts of them, and of numbers. */
static double
distance(const struct result *a, const struct result *b)
{
    double worst = a->n == b->n && a->n_losses == b->n_losses && a->n_losses > 3 &&
                           a->status == ET_OK && b->status == ET_OK
                       ? 0
                       : INFINITY;
    for (int i = 0; i < a->n_losses; i++)
        worst = fmax(worst, fabs(a->loss[i] / b->loss[i] - 1));
    for (int64_t i = 0; i < a->n && i < b->n; i++)
        worst = fmax(worst, (double)fabsf(a->number[i] - b->number[i]));
    return isnan(a->loss[0] + b->loss[0]) ? INFINITY : worst;
}

static struct result one, many;

/* ---- what counts ---- */

static void
test_counted(const char *name, const char *recipe)
{
    run(1, recipe, 1, &one);
    for (int world = 1; world <= 4; world *= 2)
        for (int64_t accum = 1; accum <= 2; accum++) {
            if (world * accum == 1)
                continue;
            run(world, recipe, accum, &many);
            double far = distance(&many, &one);
            ok(far <= ROUNDING && ranks_are_alike(world),
               "%s: %d ranks, %d microbatches each, learn as one from the whole batch",
               name, world, (int)accum);
            if (!(far <= ROUNDING))
                diag("they differ by %g", far);
        }
}

/* ---- batch norm ---- */

/* Nothing with a kink; a last batch of 3 rows, of which one of 4 ranks has none. */
#define NORMED                                                                         \
    "max_duration: 8ba\nseed: 17\nmodel:\n  name: layers\n  layers:\n"                 \
    "    - conv2d: {out: 6, kernel: 3, padding: 1}\n    - batch_norm\n    - silu\n"    \
    "    - conv2d: {out: 8, kernel: 3, stride: 2, padding: 1}\n"                       \
    "    - batch_norm: {no_affine: true}\n    - silu\n    - flatten\n"                 \
    "    - linear: {out: 10}\n"                                                        \
    "train_data: {name: synthetic_images, type: separable, num_samples: 27,\n"         \
    "  num_unique: 27, batch_size: 8, workers: 0, resolution: 12}\n"                   \
    "optimizer: {name: sgd, lr: 0.05, momentum: 0.9}\n"
#define SYNC "sync_batch_norm: true\n"
/* Of 4 ranks each has one vector, of which it alone would have no variance. */
#define VECTORS                                                                        \
    "max_duration: 6ba\nseed: 17\nmodel:\n  name: layers\n  layers:\n"                 \
    "    - flatten\n    - linear: {out: 12}\n    - batch_norm\n    - silu\n"           \
    "    - linear: {out: 10}\n"                                                        \
    "train_data: {name: synthetic_images, type: separable, num_samples: 32,\n"         \
    "  num_unique: 32, batch_size: 4, workers: 0, resolution: 12}\n"                   \
    "optimizer: {name: sgd, lr: 0.05}\n"

static void
test_batch_norm(void)
{
    run(1, NORMED SYNC, 1, &one);
    for (int world = 2; world <= 4; world += 2) {
        run(world, NORMED SYNC, 1, &many);
        double far = distance(&many, &one);
        ok(far <= ROUNDING && ranks_are_alike(world),
           "batch norms of %d ranks are those of one, running statistics too", world);
        diag("they differ by %g", far);
        run(world, NORMED, 1, &many);
        ok(distance(&many, &one) > 100 * ROUNDING, "... and are not where not asked");
    }
    run(1, VECTORS SYNC, 1, &one);
    run(4, VECTORS SYNC, 1, &many);
    double far = distance(&many, &one);
    ok(far <= ROUNDING && ranks_are_alike(4), "ranks may have one vector each");
    diag("they differ by %g", far);
    run(2, NORMED SYNC "algorithms:\n  sam: {rho: 0.05}\n", 1, &many);
    ok(many.status == ET_OK && isfinite(many.loss[7]) && ranks_are_alike(2),
       "sam's two passes exchange them too");
    run(1, NORMED SYNC "precision: amp_bf16\n", 1, &one);
    run(2, NORMED SYNC "precision: amp_bf16\n", 1, &many);
    ok(fabs(many.loss[0] / one.loss[0] - 1) < 0x1p-8 && ranks_are_alike(2),
       "in amp_bf16 they are taken in f32 (%g)", fabs(many.loss[0] / one.loss[0] - 1));
}

/* Ranks that meet within a step cannot each cut their part as memory goes. */
static void
test_pieces(void)
{
    static const struct {
        const char *recipe;
        int world;
        bool finds;
    } rows[] = {{NORMED SYNC, 1, true},
                {NORMED SYNC, 2, false},
                {NORMED, 2, true},
                {NORMED "deterministic: true\n", 2, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        run(rows[i].world, rows[i].recipe, -1, &many);
        ok(many.status == ET_OK && many.finds_pieces == rows[i].finds,
           "%d ranks, grad_accum auto, recipe %d: pieces are%s found", rows[i].world,
           (int)i, rows[i].finds ? "" : " not");
    }
}

static void
test_refused(void)
{
    run(1, NORMED SYNC, 2, &one);
    ok(one.status == ET_OK, "one rank may have microbatches");
    memset(job, 0, sizeof *job);
    job->recipe = NORMED SYNC;
    job->accum = 2;
    (void)group_run(2, be_rank, NULL);
    ok(job->result[0].status == ET_ENOTSUP && job->result[1].status == ET_ENOTSUP &&
           strstr(job->result[0].why, "microbatches"),
       "with two ranks they are refused: %s", job->result[0].why);
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
    char folder[256];
    if (!group_possible())
        skip_all("built without Gloo");
    job = mmap(NULL, sizeof *job, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
               -1, 0);
    if (job == MAP_FAILED)
        bail("no memory to share");
    /* Not the fixture's folder, which the first rank that ends would remove. */
    snprintf(folder, sizeof folder, "%s/etude-whole-XXXXXX", P_tmpdir);
    if (!mkdtemp(folder))
        bail("no folder");
    test_counted("answers alone", asked_recipe(folder));
    test_counted("few tokens to guess", guessed_recipe(folder));
    test_counted("weighed classes", WEIGHED);
    test_counted("weighed classes, smoothed", WEIGHED_SMOOTH);
    test_counted("a class that is left out", LEFT_OUT);
    test_batch_norm();
    test_pieces();
    test_refused();
    (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return done();
}
