/* SPDX-License-Identifier: Apache-2.0 */
/* Microbatches are a matter of memory alone: the gradients of 1, 2, 3 or 4 add up to
 * the same step, and `grad_accum: auto` under a limit gives the run of the fixed
 * number. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/masked.h"
#include "t/train/recipe_run.h"
#include "t/train/recipes.h"
#include "core/trainer/state.h"

/* Six steps change a parameter by some 1e-2; a gradient's sum in another order by a few
 * times 2^-24 of that. Parameters are below 4, so storing one rounds by 2^-23 a
 * step. */
#define ROUNDING 1e-6

/* Statistics of a batch norm depend on how a batch is split: there is none here. SGD,
 * for Adam divides by a gradient's size, also where that is nothing but rounding. */
#define HEAD "max_duration: 6ba\nseed: 17\n"
#define POOLED                                                                         \
    "model:\n"                                                                         \
    "  name: layers\n"                                                                 \
    "  layers:\n"                                                                      \
    "    - conv2d: {out: 8, kernel: 3, padding: 1}\n"                                  \
    "    - group_norm: {groups: 2}\n"                                                  \
    "    - gelu\n"                                                                     \
    "    - conv2d: {out: 8, kernel: 3, padding: 1}\n"                                  \
    "    - gelu\n"                                                                     \
    "    - dropout: {p: 0.2}\n"                                                        \
    "    - adaptive_avg_pool2d\n"                                                      \
    "    - flatten\n"                                                                  \
    "    - linear: {out: 10}\n"

static const char gpt[] = HEAD GPT_MODEL TOKEN_DATA SGD;
static const char lenet[] = HEAD "model: {name: lenet}\n" IMAGE_DATA SGD;
static const char pooled[] = HEAD POOLED IMAGE_DATA SGD;
/* Images grow after the first epoch, and memory with them. */
static const char growing[] =
    "max_duration: 3ep\nseed: 17\n" POOLED IMAGE_DATA SGD "algorithms:\n"
    "  progressive_resizing: {initial_scale: 0.5, finetune_fraction: 0.5,\n"
    "                         delay_fraction: 0.4, size_increment: 2}\n";
#define SAM "algorithms:\n  sam: {rho: 0.1}\n"
static const char gpt_sam[] = HEAD GPT_MODEL TOKEN_DATA SGD SAM;
static const char pooled_sam[] = HEAD POOLED IMAGE_DATA SGD SAM;

struct result {
    int n_losses;
    double loss[MAX_LOSSES];
    float *params;
    size_t bytes, peak;
    int64_t grad_accum;
};

/* GRAD_ACCUM -1 is auto; LIMIT in bytes, 0 = none. */
static struct result
train(struct et_ctx *cx, const char *text, const char *device, int64_t grad_accum,
      size_t limit)
{
    struct recipe_run r;
    struct result out;
    struct et_device_memory memory;
    recipe_open(&r, cx, text,
                &(struct recipe_choice){.device = device, .grad_accum = grad_accum});
    et_device_set_limit(r.parts.dev, limit);
    recipe_fit(&r);
    et_device_get_memory(r.parts.dev, &memory);
    out.n_losses = r.n_losses;
    memcpy(out.loss, r.loss, sizeof r.loss);
    out.params = recipe_params(&r, &out.bytes);
    out.peak = memory.peak_bytes;
    out.grad_accum = r.state->grad_accum;
    recipe_close(&r);
    return out;
}

static void
test_split(struct et_ctx *cx, const char *name, const char *text, const char *device)
{
    struct result one = train(cx, text, device, 1, 0);
    for (int64_t k = 2; k <= 4; k++) {
        struct result split = train(cx, text, device, k, 0);
        is_near_array(split.params, one.params, (int64_t)(one.bytes / sizeof(float)),
                      ROUNDING, "%s on %s: %d microbatches give the parameters of one",
                      name, device, (int)k);
        free(split.params);
    }
    free(one.params);
}

/* Where targets do not count alike the losses, too, are those of the whole batch; a
 * mean of means is far from them. */
static void
test_counted(struct et_ctx *cx, const char *name, const char *text, const char *device)
{
    struct result one = train(cx, text, device, 1, 0);
    for (int64_t k = 2; k <= 8; k *= 2) {
        struct result split = train(cx, text, device, k, 0);
        is_near_array(split.params, one.params, (int64_t)(one.bytes / sizeof(float)),
                      ROUNDING, "%s on %s: %d microbatches give the parameters of one",
                      name, device, (int)k);
        double worst = 0;
        for (int i = 0; i < one.n_losses; i++)
            worst = fmax(worst, fabs(split.loss[i] / one.loss[i] - 1));
        ok(one.n_losses == 6 && split.n_losses == 6 && worst < ROUNDING,
           "%s on %s: and its losses (%g)", name, device, worst);
        free(split.params);
    }
    free(one.params);
}

/* The memory that two microbatches need is enough for auto to find them. */
static void
test_auto(struct et_ctx *cx, const char *name, const char *text, const char *device)
{
    struct result one = train(cx, text, device, 1, 0);
    struct result two = train(cx, text, device, 2, 0);
    struct result found = train(cx, text, device, -1, two.peak);
    ok(two.peak < one.peak, "%s on %s: two microbatches need less memory (%zu, %zu)",
       name, device, two.peak, one.peak);
    is_int(found.grad_accum, 2, "%s on %s: auto finds them where one is too large",
           name, device);
    ok(memcmp(found.loss, two.loss, (size_t)two.n_losses * sizeof two.loss[0]) == 0 &&
           found.n_losses == two.n_losses,
       "%s on %s: and gives their losses, bit for bit", name, device);
    ok(memcmp(found.params, two.params, two.bytes) == 0,
       "%s on %s: and their parameters", name, device);
    free(one.params);
    free(two.params);
    free(found.params);
}

static void
test_growth(struct et_ctx *cx, const char *device)
{
    struct result two = train(cx, growing, device, 2, 0);
    struct result found = train(cx, growing, device, -1, two.peak);
    is_int(found.grad_accum, 2, "on %s, a batch that has grown is split", device);
    is_near_array(found.params, two.params, (int64_t)(two.bytes / sizeof(float)),
                  ROUNDING, "and the run goes on as if it always had been");
    free(two.params);
    free(found.params);
}

int
main(void)
{
    static const char *const devices[] = {"ref", "cpu"};
    struct et_ctx *cx = need_ctx();
    for (int d = 0; d < 2; d++) {
        const char *device = devices[d];
        if (!have_device(cx, device))
            continue;
        test_split(cx, "gpt2", gpt, device);
        test_split(cx, "lenet", lenet, device);
        test_split(cx, "layers", pooled, device);
        test_auto(cx, "gpt2", gpt, device);
        test_auto(cx, "layers", pooled, device);
        test_auto(cx, "gpt2 with sam", gpt_sam, device);
        test_auto(cx, "layers with sam", pooled_sam, device);
        test_growth(cx, device);
        test_counted(cx, "answers alone", asked_recipe(scratch_folder()), device);
        test_counted(cx, "few tokens to guess", guessed_recipe(scratch_folder()),
                     device);
        test_counted(cx, "weighed classes", WEIGHED, device);
        test_counted(cx, "weighed classes, smoothed", WEIGHED_SMOOTH, device);
        test_counted(cx, "a class that is left out", LEFT_OUT, device);
    }
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
