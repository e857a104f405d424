/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints from which parts are left out: what is in them, and what goes on from
 * them; and the link to the newest. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/checkpoint/store.h"
#include "core/trainer/state.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/recipe_run.h"

static const char recipe[] =
    "max_duration: 8ba\nseed: 3\n"
    "model: {name: mlp, hidden: 8, layers: 1}\n"
    "train_data: {name: synthetic_images, batch_size: 8, num_samples: 32,\n"
    "  num_unique: 32, resolution: 8, workers: 0}\n"
    "optimizer: {name: adam, lr: 0.01}\n";

static char said[512];
static int n_said;

static void
keep_warning(void *data, enum et_log_level level, const char *text)
{
    (void)data;
    if (level != ET_LOG_WARN)
        return;
    snprintf(said, sizeof said, "%s", text);
    n_said++;
}

/* Trains up to batch STOP (0: all 8), from a checkpoint where RESUMED. Returns how fit
 * ended. */
static et_status
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
    bool ended = r.state->timestamp.batch == (stop ? stop : 8);
    recipe_close(&r);
    return ended ? ET_OK : ET_EINTERNAL;
}

/* How many values of the newest checkpoint have a path that begins with PREFIX. */
static int
count(struct et_ctx *cx, const char *directory, const char *prefix)
{
    struct eti_checkpoint c;
    char name[ETI_STEP_NAME];
    int n = 0;
    need(cx, eti_store_read(cx, directory, eti_step_name(4, name), &c));
    for (int64_t i = 0; i < c.archive.n; i++)
        n += strncmp(c.archive.item[i].path, prefix, strlen(prefix)) == 0;
    eti_checkpoint_release(&c);
    return n;
}

static struct et_checkpoint_config
saving(const char *folder, const char *const *ignore, const char *latest)
{
    static char path[8][400];
    static int used;
    char *to = path[used++ % 8];
    snprintf(to, sizeof path[0], "%s/%s", scratch_folder(), folder);
    return (struct et_checkpoint_config){
        .directory = to,
        .interval = ET_BATCHES(4),
        .keep = -1,
        .run_id = "17",
        .incarnation = 1,
        .ignore = ignore,
        .latest = latest,
    };
}

static void
test_left_out(struct et_ctx *cx)
{
    static const char *const some[] = {"state/optimizer/exp_avg*", NULL},
                             *const wrong[] = {"optimiser/*", NULL},
                             *const two[] = {"state/optimizer/exp_avg*", "optimiser/*",
                                             NULL};
    struct et_checkpoint_config all = saving("all", NULL, NULL),
                                less = saving("less", some, NULL),
                                none = saving("none", wrong, NULL),
                                both = saving("both", two, NULL);
    need(cx, train(cx, &all, 4, false));
    need(cx, train(cx, &less, 4, false));
    ok(count(cx, all.directory, "optimizer/exp_avg") > 0 &&
           count(cx, less.directory, "optimizer/exp_avg") == 0,
       "what a pattern fits is not in the checkpoint");
    is_int(count(cx, less.directory, "optimizer/updates"),
           count(cx, all.directory, "optimizer/updates"), "the rest is");
    is_int(count(cx, less.directory, "model/"), count(cx, all.directory, "model/"),
           "the model among it");
    ok(train(cx, &less, 0, true) == ET_OK,
       "a run goes on from it, and has anew what is not there");
    said[0] = '\0';
    need(cx, train(cx, &none, 4, false));
    is_str(said, "checkpoint.ignore_keys: nothing is called 'optimiser/*'",
           "a pattern that fits nothing is said");
    n_said = 0;
    need(cx, train(cx, &both, 0, false));
    is_str(said, "checkpoint.ignore_keys: nothing is called 'optimiser/*'",
           "also beside one that fits");
    is_int(n_said, 1, "and once, however often is saved");
}

static void
is_link(const char *directory, const char *want, const char *what)
{
    char path[512], target[64] = "";
    snprintf(path, sizeof path, "%s/newest", directory);
    if (readlink(path, target, sizeof target - 1) < 0)
        target[0] = '\0';
    is_str(target, want, "%s", what);
}

static void
test_latest(struct et_ctx *cx)
{
    struct et_checkpoint_config to = saving("linked", NULL, "newest");
    need(cx, train(cx, &to, 4, false));
    is_link(to.directory, "step-000000000004", "the link leads to the newest");
    need(cx, train(cx, &to, 0, true));
    is_link(to.directory, "step-000000000008", "and to the next, when that is whole");
}

/* A link that would stand in the way of a checkpoint, or elsewhere. */
static void
test_names(struct et_ctx *cx)
{
    static const struct {
        const char *latest;
        bool fine;
    } row[] = {{NULL, true},    {"newest", true},
               {"step", true},  {"", false},
               {".new", false}, {"a/b", false},
               {"/tmp", false}, {"step-000000000004", false},
               {"st.ep", true}, {"..", false}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct et_checkpoint_config to = saving("names", NULL, row[i].latest);
        struct recipe_run r;
        recipe_prepare(&r, cx, recipe,
                       &(struct recipe_choice){.device = "ref", .checkpoint = &to});
        const et_status status = et_trainer_new(cx, &r.parts.config, &r.trainer);
        is_int(status, row[i].fine ? ET_OK : ET_EINVAL, "a link called '%s'",
               row[i].latest ? row[i].latest : "NULL");
        et_error_clear(cx);
        recipe_close(&r);
    }
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    et_ctx_set_log(cx, ET_LOG_WARN, keep_warning, NULL);
    test_left_out(cx);
    test_latest(cx);
    test_names(cx);
    et_ctx_free(&cx);
    return done();
}
