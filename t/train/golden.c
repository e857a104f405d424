/* SPDX-License-Identifier: Apache-2.0 */
/* Training, step for step, against losses of the same networks in PyTorch: t/golden
 * holds the programs that wrote them and one line a step. */
#include "t/device.h"
#include "t/tap.h"
#include "t/train/golden_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Relative, at every step. Rounding alone carries PyTorch's own f32 less than 3e-6 from
 * its f64, which is what we compare with; a wrong formula goes past 1e-4 at once. */
#define TOLERANCE 1e-4

/* Of amp_bf16, against PyTorch's autocast, which rounds in other places and another
 * order: P products in a row round two operands and a result to 2^-9 each, errors that
 * add up like a random walk, and the loss is the mean of N samples; two runs that are
 * each so far from the exact one are at most twice that apart. (PyTorch's
 * own comes 2.9e-3 from its f64 in these steps of ResNet-20, where this allows 7.6e-3,
 * and 2.1e-4 in those of GPT-2, of 3.0e-3.) */
static double
mixed_tolerance(int products, int samples)
{
    return 2 * sqrt(3.0 * products / samples) * 0x1p-9;
}

enum { STEPS = 50, MIXED_STEPS = 12 };

static struct et_ctx *cx;
static struct et_device *dev;

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s", et_error_get(cx)->message);
}

static void
check(const struct golden *r)
{
    double loss[STEPS], low[STEPS], exact[STEPS], mixed[STEPS], all[STEPS][3], worst;
    const char *device = et_device_name(dev);
    golden_load(r->file, STEPS, 3, all[0]); /* in f64, in f32, under autocast */
    for (int i = 0; i < STEPS; i++) {
        exact[i] = all[i][0];
        mixed[i] = all[i][2];
    }
    is_int(golden_train(cx, dev, NULL, r, ET_NONE, STEPS, loss), 1,
           "%s: one plan serves all steps", r->model);
    int bad = golden_compare(loss, exact, STEPS, TOLERANCE, &worst);
    ok(bad < 0, "%s on %s: %d losses are PyTorch's (worst %.1e)", r->model, device,
       STEPS, worst);
    ok(loss[STEPS - 1] < loss[0] / 2, "and fall by more than half (%.3f to %.3f)",
       loss[0], loss[STEPS - 1]);
    is_int(golden_train(cx, dev, NULL, r, ET_BF16, MIXED_STEPS, low), 1,
           "%s: in bf16 too", r->model);
    bad = golden_compare(low, mixed, MIXED_STEPS,
                         mixed_tolerance(r->products, r->samples), &worst);
    ok(bad < 0, "%s in bf16 on %s: %d losses are autocast's (worst %.1e)", r->model,
       device, MIXED_STEPS, worst);
    (void)golden_compare(low, loss, MIXED_STEPS, 1, &worst);
    ok(worst > TOLERANCE, "and not those of f32 (%.1e apart)", worst);
}

int
main(void)
{
    must(et_ctx_new(&cx));
    must(et_device_open(cx, "ref", 0, 1, &dev));
    check(&golden_resnet20);
    check(&golden_gpt);
    et_device_close(&dev);
    if (et_device_open(cx, test_device("cpu"), 0, 1, &dev) != ET_OK) {
        skip(12, et_error_get(cx)->message);
        et_error_clear(cx);
    } else {
        check(&golden_resnet20);
        check(&golden_gpt);
        et_device_close(&dev);
    }
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "every block is given back");
    et_ctx_free(&cx);
    return done();
}
