/* SPDX-License-Identifier: Apache-2.0 */
/* What the end of a batch leaves: the metrics of training, each by its own counts, and
 * a checkpoint, but not while losses are no numbers. */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/trainer/state.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/recipe_run.h"
#include "t/train/recipes.h"

enum { BATCHES = 6 };

#define MLP "max_duration: 6ba\nseed: 17\nmodel: mlp\n" IMAGE_DATA SGD

/* ---- metrics ---- */

/* Of each batch: its loss, and each metric by its name. */
static double loss[BATCHES], accuracy[2][BATCHES], entropy[BATCHES];
static int n_seen;

static et_status
note(void *data, struct et_state *s, enum et_event event)
{
    const int *order = data;
    int n;
    if (event != ET_EVENT_BATCH_END || n_seen == BATCHES)
        return ET_OK;
    const struct et_metric_value *v = et_state_get_train_metrics(s, &n);
    loss[n_seen] = s->loss_value;
    entropy[n_seen] = accuracy[*order][n_seen] = NAN;
    for (int i = 0; i < n; i++) {
        if (strcmp(v[i].name, "metrics/train/CrossEntropy") == 0)
            entropy[n_seen] = v[i].value;
        if (strcmp(v[i].name, "metrics/train/Accuracy") == 0)
            accuracy[*order][n_seen] = v[i].value;
    }
    n_seen++;
    return ET_OK;
}

/* Trains with METRICS beside the task's. */
static void
train(struct et_ctx *cx, const char *metrics, int order, int64_t accum)
{
    char text[2048];
    struct recipe_run r;
    snprintf(text, sizeof text, MLP "%s", metrics);
    n_seen = 0;
    recipe_prepare(&r, cx, text, &(struct recipe_choice){.grad_accum = accum});
    r.steps.at_event = note;
    r.steps.data = &order;
    recipe_start(&r);
    recipe_fit(&r);
    recipe_close(&r);
}

static void
test_metrics(struct et_ctx *cx)
{
    for (int accum = 1; accum < 3; accum++) {
        int same = 0, near = 0;
        train(cx, "", 0, accum);
        train(cx, "metrics: [CrossEntropy]\n", 1, accum);
        for (int i = 0; i < BATCHES; i++) {
            same += accuracy[0][i] == accuracy[1][i];
            near += fabs(entropy[i] - loss[i]) < 1e-5;
        }
        is_int(same, BATCHES, "%d pieces: a metric beside it leaves accuracy alone",
               accum);
        is_int(near, BATCHES, "%d pieces: cross entropy is the loss", accum);
    }
}

/* ---- checkpoints ---- */

static struct et_tensor *
spoil(void *data, struct et_state *s)
{
    struct et_tensor *mean =
        et_state_loss(s, s->outputs, s->batch.target, ET_REDUCE_MEAN);
    (void)data;
    return s->timestamp.batch == 2 || s->timestamp.batch == 3
               ? et_mul_scalar(s->graph, mean, (double)NAN)
               : mean;
}

static bool is_saved[BATCHES + 1];

/* Looks for folders of saves, whose names end in the number of batches. */
static void
look_at_saves(const char *folder)
{
    struct dirent *entry;
    DIR *d = opendir(folder);
    if (!d)
        bail("%s: cannot be read", folder);
    while ((entry = readdir(d)) != NULL) {
        const char *digits = entry->d_name + strcspn(entry->d_name, "0123456789");
        long step = strtol(digits, NULL, 10);
        if (*digits && step <= BATCHES)
            is_saved[step] = true;
    }
    closedir(d);
}

static void
test_saves(struct et_ctx *cx)
{
    char folder[600];
    struct recipe_run r;
    snprintf(folder, sizeof folder, "%s/saves", scratch_folder());
    const struct et_checkpoint_config save = {
        .directory = folder, .interval = ET_BATCHES(1), .keep = 100, .incarnation = 1};
    recipe_prepare(&r, cx, MLP "nonfinite: {action: skip}\n",
                   &(struct recipe_choice){.grad_accum = 1, .checkpoint = &save});
    r.steps.train_loss = spoil;
    recipe_start(&r);
    recipe_fit(&r);
    recipe_close(&r);
    look_at_saves(folder);
    for (int i = 1; i <= BATCHES; i++)
        ok(is_saved[i] == (i != 3 && i != 4), "after batch %d there is %s", i,
           i == 3 || i == 4 ? "no checkpoint: its loss was no number" : "a checkpoint");
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_metrics(cx);
    test_saves(cx);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
