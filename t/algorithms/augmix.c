/* SPDX-License-Identifier: Apache-2.0 */
/* AugMix: spec/algorithms.md 2.2; what it does to pixels is in augment.c. */
#include "t/algorithms/fixture.h"

#include <math.h>
#include <string.h>

static void
test_weights(void)
{
    enum { DRAWS = 4000, N = 3 };
    static const double alphas[] = {1e-3, 1, 50};
    for (int k = 0; k < 3; k++) {
        struct et_rng rng = et_rng_at(17, ET_RNG_USER, (uint64_t)k);
        double w[N], mean[N] = {0}, square = 0, wrong = 0;
        for (int i = 0; i < DRAWS; i++) {
            et_rng_dirichlet(&rng, alphas[k], w, N);
            wrong += !(fabs(w[0] + w[1] + w[2] - 1) < 1e-12);
            for (int c = 0; c < N; c++) {
                mean[c] += w[c] / DRAWS;
                square += w[c] * w[c] / (DRAWS * N);
            }
        }
        is_int((int64_t)wrong, 0, "weights of alpha %g sum to 1", alphas[k]);
        /* Mean 1/3, variance 2/9 / (3 alpha + 1); 5 standard errors. */
        double variance = 2. / 9 / (3 * alphas[k] + 1),
               error = 5 * sqrt(variance / DRAWS);
        ok(fabs(mean[0] - 1. / 3) < error && fabs(mean[2] - 1. / 3) < error,
           "each is a third in the mean (%g, %g)", mean[0], mean[2]);
        is_near(square - 1. / 9, variance, 0.1 * variance, "and varies by %g",
                variance);
    }
}

static void
test_function(struct et_ctx *cx)
{
    enum { N = 12 * 10 };
    uint8_t x[N], y[N], as_it_was[N];
    struct et_rng a = et_rng_at(1, ET_RNG_USER, 0), b = a;
    for (int i = 0; i < N; i++)
        x[i] = y[i] = as_it_was[i] = (uint8_t)(i * 37 % 256);
    need(cx, et_augmix_image(cx, x, 1, 12, 10, 3, -1, 3, 1, ET_AUGMENT_ALL, &a));
    need(cx, et_augmix_image(cx, y, 1, 12, 10, 3, -1, 3, 1, ET_AUGMENT_ALL, &b));
    ok(memcmp(x, as_it_was, N) != 0, "a picture changes");
    ok(memcmp(x, y, N) == 0, "the same draws make the same picture");
    for (int depth = -7; depth <= 0; depth += 7) {
        memcpy(y, as_it_was, N);
        b = et_rng_at(1, ET_RNG_USER, 0);
        need(cx, et_augmix_image(cx, y, 1, 12, 10, 3, depth, 3, 1, ET_AUGMENT_ALL, &b));
        ok(memcmp(x, y, N) == 0, "a depth of %d is drawn, as -1 is", depth);
    }
    memset(x, 77, N);
    need(cx, et_augmix_image(cx, x, 1, 12, 10, 0, 3, 64, 1, ET_AUGMENT_SAFE, &a));
    int far = 0;
    for (int i = 0; i < N; i++)
        far += x[i] > 77;
    is_int(far, 0, "one colour without its colours changed becomes no brighter");
    et_status status =
        et_augmix_image(cx, x, 1, 12, 10, 3, -1, 0, 1, ET_AUGMENT_ALL, &a);
    ok(status == ET_EINVAL, "no chain is refused: %s", take_error(cx));
    status = et_augmix_image(cx, x, 1, 12, 10, 3, -1, 3, 0, ET_AUGMENT_ALL, &a);
    ok(status == ET_EINVAL, "so is alpha 0: %s", take_error(cx));
}

int
main(void)
{
    static const char *const wrong[][2] = {
        {"severity", "11"}, {"width", "0"}, {"alpha", "0"}, {"augmentation_set", "x"}};
    struct et_ctx *cx = need_ctx();
    test_weights();
    test_function(cx);
    for (int i = 0; i < 4; i++) {
        const char *why = refusal(cx, "augmix", OPTIONS(wrong[i][0], wrong[i][1]));
        ok(strstr(why, wrong[i][0]), "%s %s is refused: %s", wrong[i][0], wrong[i][1],
           why);
    }
    check_run(cx, (struct run_setup){.n = 8}, "augmix", OPTIONS());
    check_told(cx, "augmix", OPTIONS(), "mlp",
               "augmix: the loader changes pictures to train on");
    return finish(cx);
}
