/* SPDX-License-Identifier: Apache-2.0 */
/* Algorithms that meet: spec/algorithms.md 3. */
#include "t/algorithms/fixture.h"

#include <string.h>

static const struct choice mixup = {"mixup", OPTIONS("alpha", "1")};
static const struct choice mixup_losses = {"mixup",
                                           OPTIONS("interpolate_loss", "true")};
static const struct choice smoothing = {"label_smoothing", OPTIONS()};
static const struct choice clipping = {
    "gradient_clipping", OPTIONS("clipping_type", "norm", "clipping_threshold", "0.1")};
static const struct choice ema = {"ema", OPTIONS("half_life", "2ba")};
static const struct choice sam = {"sam", OPTIONS("rho", "0.5")};
static const struct choice pruning = {"selective_backprop",
                                      OPTIONS("start", "0", "interrupt", "0")};

static const struct choice cutmix = {"cutmix", OPTIONS()};
static const struct choice cutout = {"cutout", OPTIONS("num_holes", "2")};
static const struct choice augmix = {"augmix", OPTIONS("severity", "5")};
static const struct choice randaugment = {"randaugment", OPTIONS()};

static void
check_pair(struct et_ctx *cx, const char *what, const struct choice *a,
           const struct choice *b)
{
    const struct choice both[] = {*a, *b};
    check_runs(cx, (struct run_setup){.n = 8, .max_duration = ET_BATCHES(3)}, what,
               both, 2);
}

static void
test_all(struct et_ctx *cx)
{
    const struct choice all[] = {mixup, smoothing, clipping, ema, sam, pruning};
    check_runs(
        cx,
        (struct run_setup){
            .n = 16, .batch_size = 8, .evaluate = true, .max_duration = ET_BATCHES(4)},
        "all at once", all, 6);
}

static int warnings;

static void
count_warnings(void *data, enum et_log_level level, const char *text)
{
    (void)data;
    warnings += level == ET_LOG_WARN && strstr(text, "interpolate the loss");
}

static void
test_two_mixes(struct et_ctx *cx)
{
    struct et_algorithm *list[2];
    et_ctx_set_log(cx, ET_LOG_WARN, count_warnings, NULL);
    for (int of_losses = 0; of_losses <= 2; of_losses++) {
        warnings = 0;
        for (int i = 0; i < 2; i++) {
            const struct choice *c = i < of_losses ? &mixup_losses : &mixup;
            list[i] = algorithm(cx, c->name, c->options);
        }
        train(cx, (struct run_setup){.n = 8}, list, 2);
        is_int(warnings, of_losses == 2,
               "two mixes, %d of which interpolate the loss, are %s", of_losses,
               of_losses == 2 ? "warned about" : "not warned about");
        for (int i = 0; i < 2; i++)
            et_algorithm_free(&list[i]);
    }
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    check_pair(cx, "mixup, label_smoothing", &mixup, &smoothing);
    check_pair(cx, "label_smoothing, mixup", &smoothing, &mixup);
    check_pair(cx, "mixup by losses, label_smoothing", &mixup_losses, &smoothing);
    check_pair(cx, "mixup, sam", &mixup, &sam);
    check_pair(cx, "sam, gradient_clipping", &sam, &clipping);
    check_pair(cx, "selective_backprop, mixup", &pruning, &mixup);
    check_pair(cx, "selective_backprop, sam", &pruning, &sam);
    check_pair(cx, "cutmix, label_smoothing", &cutmix, &smoothing);
    check_pair(cx, "mixup, cutmix", &mixup, &cutmix);
    check_pair(cx, "cutmix, sam", &cutmix, &sam);
    check_pair(cx, "selective_backprop, cutout", &pruning, &cutout);
    check_pair(cx, "selective_backprop, cutmix", &pruning, &cutmix);
    check_pair(cx, "augmix, randaugment", &augmix, &randaugment);
    test_all(cx);
    test_two_mixes(cx);
    return finish(cx);
}
