/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints at listed times: when they are saved, and that they stay. */
#include <stdio.h>
#include <string.h>

#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/recipe_run.h"

static const char recipe[] =
    "max_duration: 5ep\nseed: 3\n"
    "model: {name: mlp, hidden: 8, layers: 1}\n"
    "train_data: {name: synthetic_images, batch_size: 8, num_samples: 32,\n"
    "  num_unique: 32, resolution: 8, workers: 0}\n"
    "optimizer: {name: sgd, lr: 0.1}\n";

/* Trains up to batch STOP (0: all 20), from a checkpoint where RESUMED. */
static void
train(struct et_ctx *cx, const struct et_checkpoint_config *save, int64_t stop,
      bool resumed)
{
    struct recipe_run r;
    const struct et_load_config from = {.directory = save->directory};
    recipe_open(&r, cx, recipe,
                &(struct recipe_choice){.device = "ref",
                                        .checkpoint = save,
                                        .stop_after = stop,
                                        .load = resumed ? &from : NULL});
    recipe_fit(&r);
    recipe_close(&r);
}

/* The steps of the checkpoints that there are, newest first. */
static void
are(struct et_ctx *cx, const char *directory, const char *want, const char *what)
{
    struct et_checkpoint_info *list;
    int n, damaged, unfinished;
    char got[256] = "";
    need(cx, et_checkpoint_list(cx, directory, &list, &n, &damaged, &unfinished));
    for (int i = 0; i < n; i++) {
        size_t used = strlen(got);
        snprintf(got + used, sizeof got - used, "%s%d", i > 0 ? " " : "",
                 (int)list[i].step);
    }
    et_free(cx, list);
    is_str(got, want, "%s", what);
}

static struct et_checkpoint_config
saving(const char *folder, struct et_time interval, const struct et_time *at, int n)
{
    static char path[4][400];
    static int used;
    char *to = path[used++ % 4];
    snprintf(to, sizeof path[0], "%s/%s", scratch_folder(), folder);
    return (struct et_checkpoint_config){
        .directory = to,
        .interval = interval,
        .at = at,
        .n_at = n,
        .keep = 1,
        .run_id = "17",
        .incarnation = 1,
    };
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    const struct et_time some[] = {
        ET_EPOCHS(2), ET_BATCHES(7), {.5, ET_TIME_DURATION}, {96, ET_TIME_SAMPLE}};
    struct et_checkpoint_config to = saving("some", ET_BATCHES(3), some, 4);
    train(cx, &to, 9, false);
    are(cx, to.directory, "9 8 7", "2 epochs and 7 batches have been, and the newest");
    train(cx, &to, 0, true);
    are(cx, to.directory, "20 12 10 8 7",
        "half of the run and 96 samples too, when it was resumed between");

    /* Saved for its interval behind the last batch of the epoch. */
    const struct et_time one[] = {ET_EPOCHS(1)};
    to = saving("both", ET_BATCHES(4), one, 1);
    train(cx, &to, 0, false);
    are(cx, to.directory, "20 4", "what its interval saved is not saved twice");
    to = saving("never", ET_NEVER, one, 1);
    train(cx, &to, 0, false);
    are(cx, to.directory, "20 4", "a list needs no interval");
    const struct et_time between[] = {{90, ET_TIME_SAMPLE}, {.36, ET_TIME_DURATION}};
    to = saving("between", ET_NEVER, between, 2);
    train(cx, &to, 0, false);
    are(cx, to.directory, "20 12 8",
        "a time between two batches has come with the second of them");
    to = saving("all", ET_EPOCHS(1), one, 1);
    to.keep = -1;
    train(cx, &to, 0, false);
    are(cx, to.directory, "20 16 12 8 4", "where all are kept it adds none");
    et_ctx_free(&cx);
    return done();
}
