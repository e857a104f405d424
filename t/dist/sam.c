/* SPDX-License-Identifier: Apache-2.0 */
/* What sam does with several ranks: each looks around in the direction of its own
 * gradient, all learn from the mean of what they have found, and end alike. The loss is
 * one whose gradient is known: rank r is drawn to the number that is its own, so that
 * every step can be computed here. */
#include "config.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "t/data/fixture.h"
#include "t/dist/group.h"
#include "t/tap.h"
#include "t/train/recipe_run.h"
#include "core/trainer/state.h"

enum {
    RANKS = 2,
    IN = 8 * 8,
    OUT = 4,
    WEIGHTS = (IN + 1) * OUT,
    BATCHES = 4,
    SEED = 17
};
static const double LR = 0.25, RHO = 5, drawn_to[RANKS] = {0.5, -0.25};
/* A handful of operations on numbers of about 1, each rounded by 2^-24 of it, and a sum
 * of WEIGHTS squares; BATCHES times. */
#define ROUNDING (64 * 0x1p-24)

static const char recipe[] =
    "max_duration: 4ba\nseed: 17\nmodel:\n  name: layers\n  layers:\n    - flatten\n"
    "    - linear: {out: 4}\n"
    "train_data: {name: synthetic_images, num_samples: 32, num_unique: 32,\n"
    "  batch_size: 8, workers: 0, resolution: 8, channels: 1, num_classes: 4}\n"
    "optimizer: {name: sgd, lr: 0.25}\nalgorithms:\n  sam: {rho: 5, interval: %d}\n";

/* In memory that the test shares with its ranks. */
struct shared {
    int interval;
    float first[WEIGHTS], last[RANKS][WEIGHTS];
};
static struct shared *shared;

/* The gradient of |w - drawn_to|^2 / 2. */
static et_status
draw(void *data, struct et_state *s, struct et_tensor *loss,
     struct et_tensor *const *params, int n, struct et_tensor **grads)
{
    (void)data;
    (void)loss;
    for (int i = 0; i < n; i++)
        grads[i] = et_add_scalar(s->graph, params[i], -drawn_to[s->rank]);
    return et_graph_status(s->graph);
}

static void
read_weights(struct recipe_run *r, float *out)
{
    struct et_model *m = r->state->model;
    need(r->cx, et_model_get_param(m, "1.weight", SEED, out, IN * OUT));
    need(r->cx, et_model_get_param(m, "1.bias", SEED, out + IN * OUT, OUT));
}

static int
be_rank(struct et_ctx *cx, struct et_comm *c, void *data)
{
    char text[sizeof recipe + 16];
    const struct recipe_choice choice = {.device = "cpu", .grad_accum = 1, .comm = c};
    int rank = et_comm_rank(c);
    struct recipe_run r;
    (void)data;
    snprintf(text, sizeof text, recipe, shared->interval);
    recipe_prepare(&r, cx, text, &choice);
    r.steps.backward = draw;
    recipe_start(&r);
    if (rank == 0)
        read_weights(&r, shared->first);
    recipe_fit(&r);
    read_weights(&r, shared->last[rank]);
    recipe_close(&r);
    return 0;
}

/* W after a step; LOOKS: with sam. */
static void
step(double *w, bool looks)
{
    double mean[WEIGHTS] = {0};
    for (int r = 0; r < RANKS; r++) {
        double squares = 0;
        for (int i = 0; i < WEIGHTS; i++)
            squares += (w[i] - drawn_to[r]) * (w[i] - drawn_to[r]);
        double scale = looks ? RHO / sqrt(squares) : 0;
        for (int i = 0; i < WEIGHTS; i++)
            mean[i] += (1 + scale) * (w[i] - drawn_to[r]) / RANKS;
    }
    for (int i = 0; i < WEIGHTS; i++)
        w[i] -= LR * mean[i];
}

static void
test_interval(int interval)
{
    double w[WEIGHTS];
    float want[WEIGHTS];
    shared->interval = interval;
    ok(group_run(RANKS, be_rank, NULL), "2 ranks train with sam, interval %d",
       interval);
    for (int i = 0; i < WEIGHTS; i++)
        w[i] = (double)shared->first[i];
    for (int ba = 1; ba <= BATCHES; ba++)
        step(w, ba % interval == 0);
    for (int i = 0; i < WEIGHTS; i++)
        want[i] = (float)w[i];
    is_near_array(shared->last[0], want, WEIGHTS, ROUNDING,
                  "... each looks along its own gradient, and the mean of what both "
                  "find moves the weights that there were");
    ok(memcmp(shared->last[0], shared->last[1], sizeof shared->last[0]) == 0,
       "... of both alike, to the bit");
}

int
main(void)
{
    if (!group_possible())
        skip_all("built without Gloo");
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        bail("no memory to share");
    test_interval(1);
    test_interval(2);
    return done();
}
