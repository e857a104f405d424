/* SPDX-License-Identifier: Apache-2.0 */
/* CutMix: spec/algorithms.md 2.6. */
#include "t/algorithms/fixture.h"

#include <math.h>
#include <string.h>

/* The same loss from two formulas, rounded differently. */
#define MODES_TOL 1e-6

enum { H = 8, W = 10, DRAWS = 200000 };

/* How often each pixel lies in a box of 4 x 5 pixels. */
static void
count_cover(bool uniform_sampling, double share[H][W])
{
    struct et_rng rng = et_rng_at(17, ET_RNG_MIX, uniform_sampling);
    int32_t b[4];
    memset(share, 0, sizeof(double[H][W]));
    for (int i = 0; i < DRAWS; i++) {
        et_box_draw(&rng, 4, 5, H, W, uniform_sampling, b);
        for (int y = b[0]; y < b[2]; y++)
            for (int x = b[1]; x < b[3]; x++)
                share[y][x] += 1. / DRAWS;
    }
}

static void
test_places(void)
{
    double share[H][W], least = 1, most = 0;
    count_cover(false, share);
    ok(share[H / 2][W / 2] > 1.5 * share[0][0],
       "by default the middle is covered more often than a corner (%.3f, %.3f)",
       share[H / 2][W / 2], share[0][0]);
    count_cover(true, share);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            least = fmin(least, share[y][x]);
            most = fmax(most, share[y][x]);
        }
    /* 4 x 4 of (8 + 4) x (10 + 5) places cover a pixel: an odd side loses one. */
    double p = 16. / 180, error = 5 * sqrt(p * (1 - p) / DRAWS);
    ok(fabs(least - p) < error && fabs(most - p) < error,
       "uniform_sampling covers all alike (%.4f to %.4f)", least, most);
}

static void
test_lambda(void)
{
    struct et_rng rng = et_rng_at(17, ET_RNG_MIX, 0);
    double sum = 0;
    int64_t height = -1, width = -1;
    for (int i = 0; i < DRAWS; i++)
        sum += et_cutmix_lambda(&rng, 1);
    ok(fabs(sum / DRAWS - 0.5) < 5 / sqrt(12. * DRAWS),
       "alpha 1 draws the share evenly (mean %g)", sum / DRAWS);
    ok(et_cutmix_lambda(&rng, 0) == 0, "alpha 0 gives 0");
    et_cutmix_sides(1, H, W, &height, &width);
    ok(height == 0 && width == 0, "a share of 1 leaves no box");
    static const struct {
        double lambda;
        int64_t height, width;
    } sides[] = {{0, 8, 10}, {0.75, 4, 5}, {0.19, 7, 9}, {0.3, 6, 8}, {0.99, 0, 1}};
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        et_cutmix_sides(sides[i].lambda, 8, 10, &height, &width);
        ok(height == sides[i].height && width == sides[i].width,
           "of 8 x 10 pixels a share of %g leaves %d x %d", sides[i].lambda,
           (int)height, (int)width);
    }
    is_near(et_cutmix_adjusted_lambda((const int32_t[]){1, 2, 3, 8}, 8, 10), 0.85,
            1e-15, "a box of 2 x 6 pixels leaves the rest of the area");
    is_near(et_cutmix_adjusted_lambda((const int32_t[]){2, 5, 2, 9}, 8, 10), 1, 0,
            "and one without a pixel all of it");
}

/* Pixel I of picture N is 100 n + i; so is its mask. */
static void
test_masks(struct et_ctx *cx)
{
    enum { PIXELS = 4 * 5 };
    struct formula f;
    float x[2 * PIXELS], got[2 * PIXELS];
    int32_t y[2 * PIXELS];
    formula_open(&f, cx);
    for (int i = 0; i < 2 * PIXELS; i++)
        x[i] = (float)(y[i] = i / PIXELS * 100 + i % PIXELS);
    struct et_tensor *image = reals(&f, x, ET_SHAPE(2, 1, 4, 5));
    struct et_tensor *mask = integers(&f, y, ET_SHAPE(2, 4, 5));
    struct et_tensor *index = integers(&f, (int32_t[]){1, 0}, ET_SHAPE(2));
    struct et_tensor *box = integers(&f, (int32_t[]){1, 2, 3, 5}, ET_SHAPE(1, 4));
    struct et_tensor *cut = et_cutmix_batch(f.g, mask, mask, index, box);
    ok(cut->desc.dtype == ET_I32, "masks stay integers");
    evaluate(&f, et_cutmix_batch(f.g, image, image, index, box), x, 2 * PIXELS);
    evaluate(&f, et_cast(f.g, cut, ET_F32), got, 2 * PIXELS);
    is_near_array(got, x, 2 * PIXELS, 0, "and have the box that their images have");
    int wrong = 0;
    for (int i = 0; i < 2 * PIXELS; i++) {
        int row = i % PIXELS / 5, column = i % 5, n = i / PIXELS;
        bool inside = row >= 1 && row < 3 && column >= 2;
        wrong += x[i] != (float)((inside ? 1 - n : n) * 100 + i % PIXELS);
    }
    is_int(wrong, 0, "which is the partner's, bit for bit, and the rest the own");
    et_graph_reset(f.g);
    struct et_tensor *all[] = {image, mask, index, box};
    for (int i = 0; i < 4; i++)
        et_tensor_free(&all[i]);
    formula_close(&f);
}

static void
test_runs(struct et_ctx *cx)
{
    struct run_setup setup = {.n = 8, .max_duration = ET_EPOCHS(3)};
    struct losses got[2];
    for (int k = 0; k < 2; k++) {
        struct et_algorithm *a =
            algorithm(cx, "cutmix", OPTIONS("interpolate_loss", k ? "true" : "false"));
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
    test_places();
    test_lambda();
    test_masks(cx);
    test_runs(cx);
    const char *why = refusal(cx, "cutmix", OPTIONS("alpha", "-0.5"));
    ok(strstr(why, "alpha"), "a negative alpha is refused: %s", why);
    check_run(cx, (struct run_setup){.n = 8}, "cutmix", OPTIONS());
    check_run(cx, (struct run_setup){.n = 8}, "cutmix",
              OPTIONS("interpolate_loss", "true", "uniform_sampling", "true"));
    return finish(cx);
}
