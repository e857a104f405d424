/* SPDX-License-Identifier: Apache-2.0 */
/* With deterministic: true or without it (on a GPU with it alone), the same recipe,
 * seed and thread count give bitwise the same run: losses and parameters, with one
 * thread and again with two, however many workers prepare the batches. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/recipe_run.h"
#include "t/train/recipes.h"

#define ALGORITHMS                                                                     \
    "algorithms:\n"                                                                    \
    "  mixup:\n"                                                                       \
    "  label_smoothing:\n"                                                             \
    "  ema: {half_life: 2ba}\n"

enum { BATCHES = 10 }; /* of 4 an epoch: three orders of the samples */
static const struct {
    const char *name, *text;
} recipes[] = {
    {"resnet8", RESNET("10ba")},
    {"resnet8 with algorithms", RESNET("10ba") ALGORITHMS},
    {"gpt2", GPT("10ba")},
};

struct result {
    double loss[MAX_LOSSES];
    void *params;
    size_t bytes;
};

static struct result
train(struct et_ctx *cx, const char *text, int threads, int64_t workers)
{
    struct recipe_run r;
    struct result out;
    struct et_device_info device;
    struct et_loader_info loader;
    recipe_open(&r, cx, text,
                &(struct recipe_choice){.device = "cpu",
                                        .repeats = true,
                                        .threads = threads,
                                        .workers = workers ? workers : -1});
    et_device_get_info(r.parts.dev, &device);
    et_loader_get_info(r.parts.train.loader, &loader);
    bool counts = device.threads > 0; /* a GPU has none to choose from */
    if ((counts && device.threads != threads) || loader.workers != workers)
        bail("%d threads, %d workers", device.threads, loader.workers);
    recipe_fit(&r);
    if (r.n_losses != BATCHES)
        bail("%d batches", r.n_losses);
    memcpy(out.loss, r.loss, sizeof r.loss);
    out.params = recipe_params(&r, &out.bytes);
    recipe_close(&r);
    return out;
}

static void
is_same(const struct result *a, const struct result *b, const char *name,
        const char *how)
{
    int same = 0;
    while (same < BATCHES && a->loss[same] == b->loss[same])
        same++;
    ok(same == BATCHES, "%s: the same losses %s", name, how);
    if (same < BATCHES)
        diag("batch %d: %.17g, then %.17g", same + 1, a->loss[same], b->loss[same]);
    ok(memcmp(a->params, b->params, a->bytes) == 0, "%s: the same parameters %s", name,
       how);
}

static void
check(struct et_ctx *cx, const char *name, const char *text)
{
    struct result one = train(cx, text, 1, 2), again = train(cx, text, 1, 2);
    is_same(&one, &again, name, "twice with one thread");
    free(again.params);
    again = train(cx, text, 1, 3);
    is_same(&one, &again, name, "with three workers as with two");
    free(again.params);
    struct result two = train(cx, text, 2, 2);
    again = train(cx, text, 2, 2);
    is_same(&two, &again, name, "twice with two threads");
    /* A loss is a sum of some hundred f32 numbers, taken in another order. */
    is_near(two.loss[0], one.loss[0], 1e-6,
            "%s: between one and two threads only rounding differs", name);
    free(one.params);
    free(two.params);
    free(again.params);
}

#define DETERMINISTIC "deterministic: true\n"

/* What is promised: the same bits for a thread count, whatever prepares the batches. */
static void
check_promise(struct et_ctx *cx, const char *name, const char *text)
{
    static const int workers[] = {0, 1, 3, 0};
    for (int threads = 1; threads <= 2; threads++) {
        struct result first = {0};
        char how[64];
        for (int i = 0; i < 4; i++) {
            struct result r = train(cx, text, threads, workers[i]);
            snprintf(how, sizeof how, "with %d threads and %d workers", threads,
                     workers[i]);
            if (i > 0)
                is_same(&r, &first, name, how);
            else
                first = r;
            if (i > 0)
                free(r.params);
        }
        free(first.params);
    }
}

static et_status
try_fit(struct et_ctx *cx, const char *text, bool short_of_memory, size_t *peak)
{
    struct recipe_run r;
    struct et_device_memory memory;
    recipe_open(&r, cx, text, &(struct recipe_choice){.device = "cpu"});
    if (short_of_memory)
        et_device_set_limit(r.parts.dev, *peak - 4096);
    et_status status = et_trainer_fit(r.trainer, ET_TIME_UNSET);
    et_device_get_memory(r.parts.dev, &memory);
    *peak = memory.peak_bytes;
    recipe_close(&r);
    return status;
}

static void
check_refusals(struct et_ctx *cx)
{
    size_t peak = 0;
    need(cx, try_fit(cx, DETERMINISTIC GPT("2ba"), false, &peak));
    is_int(try_fit(cx, DETERMINISTIC GPT("2ba"), true, &peak), ET_ENOMEM,
           "a deterministic run is not cut by the memory that is free");
    et_error_clear(cx);
    is_int(try_fit(cx,
                   DETERMINISTIC "max_duration: 90sec\nseed: 17\n" GPT_MODEL TOKEN_DATA
                                 "optimizer: {name: sgd, lr: 0.1}\n",
                   false, &peak),
           ET_EINVAL, "nor does the clock end it");
    is_str(take_error(cx),
           "max_duration 90sec: a deterministic run is not measured by the clock",
           "which a sentence says");
}

static void
check_seed(struct et_ctx *cx)
{
    struct result a = train(cx, GPT("10ba"), 1, 2);
    struct result b = train(cx, GPT_SEED("10ba", "18"), 1, 2);
    ok(a.loss[0] != b.loss[0], "another seed is another run");
    free(a.params);
    free(b.params);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    if (!have_device(cx, "cpu"))
        return done();
    for (size_t i = 0; i < sizeof recipes / sizeof recipes[0]; i++)
        check(cx, recipes[i].name, recipes[i].text);
    check_promise(cx, "deterministic resnet8", DETERMINISTIC RESNET("10ba") ALGORITHMS);
    check_promise(cx, "deterministic gpt2", DETERMINISTIC GPT("10ba"));
    check_refusals(cx);
    check_seed(cx);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
