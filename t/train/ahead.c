/* SPDX-License-Identifier: Apache-2.0 */
/* A run gives the same bits whether its steps are recorded or not and whether the host
 * runs ahead or not, with updates that are skipped among them: on the simulated GPU, or
 * on the one that ETUDE_DEVICE names. */
#include <stdlib.h>
#include <string.h>

#include "core/trainer/trainer_impl.h"
#include "t/data/fixture.h"
#include "t/device.h"
#include "t/tap.h"
#include "t/train/recipe_run.h"
#include "t/train/recipes.h"

enum { BATCHES = 10 };

static const char *name; /* of the device */

/* What the host may do differently, each by an environment variable. */
static const struct way {
    const char *what, *variable;
} ways[] = {
    {"recorded, the host ahead", "ETUDE_NONE"},
    {"one kernel at a time", "ETUDE_CAPTURE"},
    {"each batch waited for", "ETUDE_AHEAD"},
};

struct result {
    double loss[MAX_LOSSES];
    int n_losses, skipped;
    void *params;
    size_t bytes;
};

static struct result
train(struct et_ctx *cx, const char *text, const struct way *way, int64_t grad_accum)
{
    struct recipe_run r;
    struct result out;
    setenv(way->variable, "0", 1);
    recipe_prepare(&r, cx, text,
                   &(struct recipe_choice){
                       .device = name, .repeats = true, .grad_accum = grad_accum});
    r.parts.config.loss_scaling.initial = 0x1p22; /* overflows until it has come down */
    recipe_start(&r);
    recipe_fit(&r);
    memcpy(out.loss, r.loss, sizeof r.loss);
    out.n_losses = r.n_losses;
    out.skipped = r.n_losses - (int)r.state->params->slot[0].updates;
    out.params = recipe_params(&r, &out.bytes);
    recipe_close(&r);
    unsetenv(way->variable);
    return out;
}

static void
compare(struct et_ctx *cx, const char *what, const char *text, int64_t grad_accum,
        bool skips)
{
    struct result first = train(cx, text, &ways[0], grad_accum);
    is_int(first.n_losses, BATCHES, "%s: every batch has its record", what);
    ok((first.skipped > 0) == skips && first.skipped < BATCHES,
       "%s: %d updates are skipped", what, first.skipped);
    for (size_t i = 1; i < sizeof ways / sizeof ways[0]; i++) {
        struct result other = train(cx, text, &ways[i], grad_accum);
        int same = 0;
        while (same < BATCHES && first.loss[same] == other.loss[same])
            same++;
        is_int(same, BATCHES, "%s: the losses are those of %s", what, ways[i].what);
        ok(memcmp(first.params, other.params, first.bytes) == 0,
           "%s: and so are the parameters", what);
        free(other.params);
    }
    free(first.params);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    name = test_device("gpusim");
    if (strcmp(name, "gpusim") == 0) { /* where compiling and timing take longest */
        setenv("ETUDE_TUNE", "0", 0);
        setenv("ETUDE_RTC", "0", 0);
    }
    if (!have_device(cx, name))
        skip_all("the device is not there");
    compare(cx, "lenet with adamw", LENET("10ba"), 1, false);
    compare(cx, "lenet in amp_fp16", LENET("10ba") "precision: amp_fp16\n", 1, true);
    compare(cx, "lenet in amp_fp16, two microbatches",
            LENET("10ba") "precision: amp_fp16\n", 2, true);
    compare(cx, "layers in amp_bf16", LAYERS("10ba") "precision: amp_bf16\n", 1, false);
    compare(cx, "gpt2 in amp_bf16, two microbatches",
            GPT("10ba") "precision: amp_bf16\n", 2, false);
    et_ctx_free(&cx);
    return done();
}
