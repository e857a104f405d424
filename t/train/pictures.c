/* SPDX-License-Identifier: Apache-2.0 */
/* A run whose pictures are turned and changed in the step has the bits of one where the
 * host does it: the losses and parameters, in one piece or several, on each device. */
#include <stdlib.h>
#include <string.h>

#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/recipe_run.h"
#include "t/train/recipes.h"

enum { BATCHES = 6 };

#define PICTURES(where, rest)                                                          \
    "max_duration: 6ba\nseed: 17\nmodel: {name: lenet}\n" ADAMW                        \
    "train_data: {name: synthetic_images, num_samples: 32, num_unique: 32,\n"          \
    "             type: separable, resolution: 16, batch_size: 8, workers: 2,\n"       \
    "             transforms_on: " where ",\n"                                         \
    "             transforms: [random_resized_crop: {size: 12}, "                      \
    "random_rotation: {degrees: 9},\n"                                                 \
    "                          color_jitter: {contrast: 0.4, hue: 0.1}, "              \
    "random_erasing]}\n" rest

struct result {
    double loss[MAX_LOSSES];
    int n_losses;
    void *params;
    size_t bytes;
};

static struct result
train(struct et_ctx *cx, const char *name, const char *text, int64_t grad_accum)
{
    struct recipe_run r;
    struct result out;
    recipe_open(&r, cx, text,
                &(struct recipe_choice){.device = name, .grad_accum = grad_accum});
    recipe_fit(&r);
    memcpy(out.loss, r.loss, sizeof r.loss);
    out.n_losses = r.n_losses;
    out.params = recipe_params(&r, &out.bytes);
    recipe_close(&r);
    return out;
}

static void
compare(struct et_ctx *cx, const char *name, int64_t grad_accum)
{
    struct result host = train(cx, name, PICTURES("host", ""), grad_accum);
    struct result device = train(cx, name, PICTURES("device", ""), grad_accum);
    is_int(host.n_losses, BATCHES, "%s, %d pieces: batches are trained", name,
           (int)grad_accum);
    ok(memcmp(host.loss, device.loss, sizeof(double) * BATCHES) == 0,
       "the losses do not depend on where pictures are changed");
    ok(host.bytes == device.bytes &&
           memcmp(host.params, device.params, host.bytes) == 0,
       "nor do the parameters");
    free(host.params);
    free(device.params);
}

/* An algorithm adds what a device cannot do: it is done by the host. */
static void
added(struct et_ctx *cx, const char *name)
{
    struct result automatic =
        train(cx, name, PICTURES("auto", "algorithms: {augmix: }\n"), 1);
    struct result host =
        train(cx, name, PICTURES("host", "algorithms: {augmix: }\n"), 1);
    is_int(automatic.n_losses, BATCHES, "%s: auto leaves what augmix does to the host",
           name);
    ok(memcmp(host.loss, automatic.loss, sizeof(double) * BATCHES) == 0,
       "with the losses of a run that has all there");
    free(automatic.params);
    free(host.params);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    setenv("ETUDE_TUNE", "0", 0); /* compiling and timing take longest on gpusim */
    setenv("ETUDE_RTC", "0", 0);
    static const char *const names[] = {"cpu", "gpusim"};
    for (int i = 0; i < 2; i++)
        if (have_device(cx, names[i])) {
            compare(cx, names[i], 1);
            compare(cx, names[i], 2);
            added(cx, names[i]);
        }
    et_ctx_free(&cx);
    return done();
}
