/* SPDX-License-Identifier: Apache-2.0 */
/* RandAugment: spec/algorithms.md 2.20; what it does to pixels is in augment.c. */
#include "t/algorithms/fixture.h"

#include <math.h>
#include <string.h>

#include "core/image/augment.h"

/* How often each kind is drawn, and whether its values are those that there may be. */
static void
test_draws(void)
{
    enum { DRAWS = 13000, KINDS = ETI_AUGMENT_KINDS };
    static const struct {
        enum et_augmentation_set set;
        int n;
    } sets[] = {{ET_AUGMENT_ALL, 13}, {ET_AUGMENT_SAFE, 9}, {ET_AUGMENT_ORIGINAL, 13}};
    for (int k = 0; k < 3; k++) {
        struct et_rng rng = et_rng_at(17, ET_RNG_USER, (uint64_t)k);
        int times[KINDS] = {0}, wrong = 0, found = 0, strangers = 0;
        double chi = 0, each = (double)DRAWS / sets[k].n;
        for (int i = 0; i < DRAWS; i++) {
            struct eti_augment a = eti_augment_draw(sets[k].set, 10, 30, 60, &rng);
            times[a.kind]++;
            wrong += a.kind == ETI_AUGMENT_ROTATE && fabs(a.value) > 30;
            wrong += a.kind == ETI_AUGMENT_POSTERIZE && (a.value < 1 || a.value > 4);
            wrong += a.kind == ETI_AUGMENT_TRANSLATE_X && fabs(a.value) > 20;
            wrong += a.kind == ETI_AUGMENT_TRANSLATE_Y && fabs(a.value) > 10;
        }
        for (int i = 0; i < KINDS; i++) {
            found += times[i] > 0;
            chi += times[i] ? (times[i] - each) * (times[i] - each) / each : 0;
        }
        is_int(found, sets[k].n, "set %s has %d kinds", eti_augment_sets[k], sets[k].n);
        ok(chi < 40, "which are drawn as often (chi square %.1f)", chi); /* p < 1e-4 */
        is_int(wrong, 0, "30 degrees, 4 bits, a third of the picture at most");
        for (int i = ETI_AUGMENT_COLOR; i <= ETI_AUGMENT_SHARPNESS; i++) {
            const int original = i - ETI_AUGMENT_COLOR + ETI_AUGMENT_COLOR_ORIGINAL;
            strangers += (times[i] > 0) != (k == 0);
            strangers += (times[original] > 0) != (k == 2);
        }
        is_int(strangers, 0, "with the colours that belong to it");
    }
}

static void
fill(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(i * 37 % 256);
}

static void
test_function(struct et_ctx *cx)
{
    enum { N = 12 * 10 * 3 };
    uint8_t x[N], y[N], as_it_was[N];
    struct et_rng a = et_rng_at(1, ET_RNG_USER, 0), b = a;
    fill(x, N);
    memcpy(y, x, N);
    memcpy(as_it_was, x, N);
    need(cx, et_randaugment_image(cx, x, 3, 12, 10, 9, 0, ET_AUGMENT_ALL, &a));
    ok(memcmp(x, as_it_was, N) == 0, "depth 0 leaves a picture as it is");
    need(cx, et_randaugment_image(cx, x, 3, 12, 10, 9, 4, ET_AUGMENT_ALL, &a));
    need(cx, et_randaugment_image(cx, y, 3, 12, 10, 9, 4, ET_AUGMENT_ALL, &b));
    ok(memcmp(x, as_it_was, N) != 0, "depth 4 does not");
    ok(memcmp(x, y, N) == 0, "the same draws make the same picture");
    et_status status =
        et_randaugment_image(cx, x, 3, 12, 10, 11, 2, ET_AUGMENT_ALL, &a);
    ok(status == ET_EINVAL, "severity 11 is refused: %s", take_error(cx));
    status = et_randaugment_image(cx, x, 2, 12, 10, 9, 2, ET_AUGMENT_ALL, &a);
    ok(status == ET_EINVAL, "so are two channels: %s", take_error(cx));
    status =
        et_randaugment_image(cx, x, 3, 12, 10, 9, 2, (enum et_augmentation_set)7, &a);
    ok(status == ET_EINVAL, "so is a set that there is not: %s", take_error(cx));
}

/* Pictures as if each draw were made and done by hand: tall ones and broad ones, whose
 * sides limit how far they move. */
static void
test_sides(struct et_ctx *cx)
{
    enum { LONG = 24, SHORT = 6, N = LONG * SHORT * 3, PICTURES = 200 };
    for (int tall = 0; tall < 2; tall++) {
        const int64_t H = tall ? LONG : SHORT, W = tall ? SHORT : LONG;
        int unlike = 0;
        for (int k = 0; k < PICTURES; k++) {
            uint8_t x[N], y[N], spare[N];
            struct et_rng a = et_rng_at(k, ET_RNG_USER, 0), b = a;
            struct et_canvas c = {.data = y, .H = H, .W = W, .C = 3};
            fill(x, N);
            fill(y, N);
            need(cx, et_randaugment_image(cx, x, 3, H, W, 10, 2, ET_AUGMENT_ALL, &a));
            for (int i = 0; i < 2; i++) {
                struct eti_augment one = eti_augment_draw(ET_AUGMENT_ALL, 10, H, W, &b);
                eti_augment_apply(&c, &one, spare);
            }
            unlike += memcmp(x, y, N) != 0;
        }
        is_int(unlike, 0, "%s pictures are what their draws make of them",
               tall ? "tall" : "broad");
    }
}

int
main(void)
{
    static const char *const wrong[][2] = {
        {"severity", "11"}, {"depth", "-1"}, {"augmentation_set", "x"}};
    struct et_ctx *cx = need_ctx();
    test_draws();
    test_function(cx);
    test_sides(cx);
    for (int i = 0; i < 3; i++) {
        const char *why = refusal(cx, "randaugment", OPTIONS(wrong[i][0], wrong[i][1]));
        ok(strstr(why, wrong[i][0]), "%s %s is refused: %s", wrong[i][0], wrong[i][1],
           why);
    }
    check_run(cx, (struct run_setup){.n = 8}, "randaugment", OPTIONS());
    check_told(cx, "randaugment", OPTIONS(), "mlp",
               "randaugment: the loader changes pictures to train on");
    return finish(cx);
}
