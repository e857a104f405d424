/* SPDX-License-Identifier: Apache-2.0 */
/* MixUp: spec/algorithms.md 2.18. */
#include "t/algorithms/fixture.h"

#include <math.h>
#include <string.h>

/* The same loss from two formulas, rounded differently (spec item 8c). */
#define MODES_TOL 1e-6

static void
test_values(struct et_ctx *cx)
{
    struct formula f;
    formula_open(&f, cx);
    struct et_tensor *x = reals(&f, (float[]){0, 10}, ET_SHAPE(2));
    struct et_tensor *y = reals(&f, (float[]){1, 0, 0, 1}, ET_SHAPE(2, 2));
    struct et_tensor *index = integers(&f, (int32_t[]){1, 0}, ET_SHAPE(2));
    struct et_tensor *m = reals(&f, (float[]){0.25f}, ET_SHAPE(1));
    float got[4];
    evaluate(&f, et_mixup_batch(f.g, x, x, index, m), got, 2);
    is_near_array(got, (float[]){2.5f, 7.5f}, 2, F32_TOL,
                  "inputs are mixed by the weight");
    evaluate(&f, et_mixup_batch(f.g, y, y, index, m), got, 4);
    is_near_array(got, (float[]){.75f, .25f, .25f, .75f}, 4, F32_TOL,
                  "labels likewise");
    et_graph_reset(f.g);
    struct et_tensor *one = reals(&f, (float[]){3.3f}, ET_SHAPE(1));
    struct et_tensor *self = integers(&f, (int32_t[]){0}, ET_SHAPE(1));
    evaluate(&f, et_mixup_batch(f.g, one, one, self, m), got, 1);
    ok(got[0] == 3.3f, "a batch of one sample stays as it is");
    struct et_tensor *all[] = {x, y, index, m, one, self};
    for (int i = 0; i < 6; i++)
        et_tensor_free(&all[i]);
    formula_close(&f);
}

static void
test_coefficient(void)
{
    enum { DRAWS = 4000 };
    struct et_rng rng = et_rng_at(17, ET_RNG_MIX, 0);
    double sum = 0, least = 1, most = 0;
    for (int i = 0; i < DRAWS; i++) {
        double m = et_mixup_coefficient(&rng, 1);
        least = fmin(least, m);
        most = fmax(most, m);
        sum += m;
    }
    ok(least >= 0 && most <= 0.5, "weights lie in [0, 0.5]");
    /* five standard errors of the mean of U(0, 0.5) */
    double error = 5 * 0.5 / sqrt(12. * DRAWS);
    ok(fabs(sum / DRAWS - 0.25) < error, "alpha 1 draws them evenly (mean %g)",
       sum / DRAWS);
    ok(et_mixup_coefficient(&rng, 0) == 0, "alpha 0 gives 0");
}

static void
test_runs(struct et_ctx *cx)
{
    struct run_setup setup = {.n = 8, .max_duration = ET_EPOCHS(3)};
    struct losses plain = train(cx, setup, NULL, 0), got[2];
    struct et_algorithm *a = algorithm(cx, "mixup", OPTIONS("alpha", "0"));
    got[0] = train(cx, setup, &a, 1);
    ok(difference(&plain, &got[0]) == 0,
       "mixup with alpha 0 leaves the batch unchanged");
    et_algorithm_free(&a);
    for (int k = 0; k < 2; k++) {
        a = algorithm(cx, "mixup", OPTIONS("interpolate_loss", k ? "true" : "false"));
        got[k] = train(cx, setup, &a, 1);
        ok(a->type->interpolates_loss(a) == k,
           "it says whether it interpolates the loss");
        et_algorithm_free(&a);
    }
    double worst = difference(&got[0], &got[1]);
    ok(worst < MODES_TOL, "mixing targets or losses trains alike (worst %.1e)", worst);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_values(cx);
    test_coefficient();
    test_runs(cx);
    const char *why = refusal(cx, "mixup", OPTIONS("alpha", "-0.5"));
    ok(strstr(why, "alpha"), "a negative alpha is refused: %s", why);
    check_run(cx, (struct run_setup){.n = 8}, "mixup", OPTIONS());
    check_run(cx, (struct run_setup){.n = 8}, "mixup",
              OPTIONS("interpolate_loss", "true"));
    return finish(cx);
}
