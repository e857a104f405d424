/* The same recipe, seed and thread count give bitwise the same run: losses and
 * parameters, with one thread and again with two, however many workers prepare the
 * batches. */
#include <math.h>
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
                &(struct recipe_choice){
                    .device = "cpu", .threads = threads, .workers = workers});
    et_device_get_info(r.parts.dev, &device);
    et_loader_get_info(r.parts.train.loader, &loader);
    if (device.threads != threads || loader.workers != workers)
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
    check_seed(cx);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
