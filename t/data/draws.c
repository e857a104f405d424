/* SPDX-License-Identifier: Apache-2.0 */
/* What transforms draw: each option's range, to both ends and no further; how often;
 * what is refused. By their own functions, without a loader. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/resident.h"
#include "core/data/transform_rows.h"
#include "core/image/blur.h"
#include "core/image/levels.h"
#include "core/image/pixels.h"
#include "etude/option.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { DRAWS = 2000 };

static struct et_ctx *cx;
static struct eti_scratch scratch;

/* A transform and its options, "name=value name=value". */
struct made {
    const struct et_transform_class *type;
    void *options;
};

static struct made
make(const char *name, const char *settings)
{
    char text[256], *at = text, *pair;
    struct made m = {.type = et_transform_find(name)};
    if (!m.type)
        bail("no transform %s", name);
    need(cx, et_options_new(cx, &m.type->info, NULL, &m.options));
    snprintf(text, sizeof text, "%s", settings);
    while ((pair = strsep(&at, " ")) != NULL) {
        char *value = strchr(pair, '=');
        if (!value)
            continue;
        *value++ = 0;
        need(cx, et_options_set(cx, m.type->info.options, m.options, pair, value));
    }
    return m;
}

static void
drop(struct made *m)
{
    et_options_free(&m->type->info, &m->options);
}

/* The view of an H x W picture by draw I. */
static struct et_view
view_of(const struct made *m, int64_t h, int64_t w, uint64_t i)
{
    struct et_rng r = et_rng_at(3, ET_RNG_AUGMENT, i);
    struct et_view v = et_view_of(h, w);
    m->type->geometry(m->options, &r, &v);
    return v;
}

/* ---- a number that is drawn evenly ---- */

struct range {
    double low, high, sum;
    int n;
};

static void
take(struct range *r, double v)
{
    r->low = r->n == 0 || v < r->low ? v : r->low;
    r->high = r->n == 0 || v > r->high ? v : r->high;
    r->sum += v;
    r->n++;
}

/* From LOW to HIGH, to a fiftieth of that at both ends, in the middle on average. */
static void
is_range(const struct range *r, double low, double high, const char *what)
{
    double near = (high - low) / 50 + 1e-9;
    bool good = r->low >= low - 1e-9 && r->low <= low + near &&
                r->high <= high + 1e-9 && r->high >= high - near &&
                fabs(r->sum / r->n - (low + high) / 2) <= 2 * near;
    ok(good, "%s is drawn from %g to %g", what, low, high);
    if (!good)
        diag("%g to %g, %g on average", r->low, r->high, r->sum / r->n);
}

/* ---- turns ---- */

static void
test_turns(void)
{
    enum { H = 40, W = 400 }; /* far from a square */
    static const struct {
        const char *name, *settings;
        double angle, dx, dy, low, high, shear;
    } rows[] = {
        {"random_rotation", "degrees=30", 30, 0, 0, 1, 1, 0},
        {"random_rotation", "degrees=180", 180, 0, 0, 1, 1, 0},
        {"random_affine", "degrees=90", 90, 0, 0, 1, 1, 0},
        {"random_affine", "translate=0.5", 0, 200, 20, 1, 1, 0},
        {"random_affine", "scale=[0.5,2]", 0, 0, 0, 0.5, 2, 0},
        {"random_affine", "shear=30", 0, 0, 0, 1, 1, 30},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct made m = make(rows[i].name, rows[i].settings);
        struct range angle = {0}, dx = {0}, dy = {0}, scale = {0}, shear = {0};
        double worst = 0;
        for (int k = 0; k < DRAWS; k++) {
            struct et_view v = view_of(&m, H, W, (uint64_t)k);
            const double *t = v.turn;
            /* The inverse of a turn, times 1 / scale, and a shear along x. */
            take(&angle, atan2(-t[3], t[0]) * 180 / M_PI);
            take(&scale, 1 / hypot(t[0], t[3]));
            take(&shear, rows[i].shear > 0 ? atan(t[1] / t[0]) * 180 / M_PI : 0);
            take(&dx, W / 2.0 - (t[0] * W / 2 + t[1] * H / 2 + t[2]));
            take(&dy, H / 2.0 - (t[3] * W / 2 + t[4] * H / 2 + t[5]));
            worst = fmax(worst,
                         fabs(t[0] * t[4] - t[1] * t[3] - t[0] * t[0] - t[3] * t[3]));
        }
        char what[128];
        snprintf(what, sizeof what, "%s %s: the angle", rows[i].name, rows[i].settings);
        is_range(&angle, -rows[i].angle, rows[i].angle, what);
        is_range(&scale, rows[i].low, rows[i].high, "the scale");
        is_range(&shear, -rows[i].shear, rows[i].shear, "the shear along x");
        is_range(&dx, -rows[i].dx, rows[i].dx, "the way along x");
        is_range(&dy, -rows[i].dy, rows[i].dy, "the way along y");
        ok(worst < 1e-9, "and nothing is sheared along y");
        drop(&m);
    }
}

/* ---- parts ---- */

static void
test_parts(void)
{
    enum { H = 60, W = 90 };
    struct et_floats scale = {.v = (double[]){0.1, 0.4}, .n = 2},
                     ratio = {.v = (double[]){0.5, 3}, .n = 2};
    struct et_rng r = et_rng_at(1, ET_RNG_AUGMENT, 0);
    struct range area = {0}, shape = {0}, y_at = {0}, x_at = {0};
    int tops = 0, bottoms = 0, lefts = 0, rights = 0;
    for (int i = 0; i < 10 * DRAWS; i++) {
        int64_t y, x, h, w;
        if (!eti_transform_part(&scale, &ratio, H, W, &r, &y, &x, &h, &w))
            continue;
        take(&area, (double)(h * w) / (H * W));
        take(&shape, log((double)w / (double)h));
        take(&y_at, (double)y / (double)(H - h > 0 ? H - h : 1));
        take(&x_at, (double)x / (double)(W - w > 0 ? W - w : 1));
        tops += h < H && y == 0;
        bottoms += h < H && y == H - h;
        lefts += w < W && x == 0;
        rights += w < W && x == W - w;
    }
    ok(area.low > 0.09 && area.low < 0.11 && area.high > 0.39 && area.high < 0.41,
       "a part's area is a fraction of the picture's, from %.3f to %.3f", area.low,
       area.high);
    /* A side is a whole number of pixels: of one of 20 a 40th is half a pixel. */
    ok(shape.low > log(0.5) - 0.07 && shape.low < log(0.5) + 0.07 &&
           shape.high > log(3) - 0.07 && shape.high < log(3) + 0.07,
       "its width over its height lies from %.2f to %.2f", exp(shape.low),
       exp(shape.high));
    ok(tops > 100 && bottoms > 100 && abs(tops - bottoms) < tops / 2 && lefts > 100 &&
           rights > 100 && abs(lefts - rights) < lefts / 2,
       "it lies at each edge as often as at the other (%d %d, %d %d)", tops, bottoms,
       lefts, rights);
}

/* Where no part fits the largest in the middle whose shape is allowed is taken. */
static void
test_middle(void)
{
    static const struct {
        const char *settings;
        int64_t H, W, h, w;
    } rows[] = {
        {"size=7 scale=[1,1] ratio=[0.5,2]", 50, 50, 50, 50},
        {"size=7 scale=[1,1] ratio=[0.5,2]", 40, 70, 40, 70},
        {"size=7 scale=[1,1] ratio=[0.5,2]", 30, 100, 30, 60},
        {"size=7 scale=[1,1] ratio=[0.5,2]", 101, 30, 60, 30},
        {"size=7 scale=[1,1] ratio=[4,4]", 60, 60, 15, 60},
        {"size=7 scale=[1,1] ratio=[0.25,0.25]", 60, 60, 60, 15},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct made m = make("random_resized_crop", rows[i].settings);
        struct et_view v = view_of(&m, rows[i].H, rows[i].W, 0);
        const int64_t y = (rows[i].H - rows[i].h) / 2, x = (rows[i].W - rows[i].w) / 2;
        ok(v.h == 7 && v.w == 7 && v.y.lo == y && v.y.hi == y + rows[i].h &&
               v.x.lo == x && v.x.hi == x + rows[i].w,
           "of %lld x %lld %lld x %lld in the middle, by %s", (long long)rows[i].W,
           (long long)rows[i].H, (long long)rows[i].w, (long long)rows[i].h,
           rows[i].settings);
        drop(&m);
    }
}

/* ---- how often ---- */

static bool
changes_view(const struct made *m, uint64_t i, bool *rows_alone)
{
    struct et_view was = et_view_of(5, 6), v = view_of(m, 5, 6, i);
    bool rows = memcmp(&was.y, &v.y, sizeof v.y) != 0,
         columns = memcmp(&was.x, &v.x, sizeof v.x) != 0;
    *rows_alone &= !columns;
    return rows || columns;
}

static bool
changes_pixels(const struct made *m, uint64_t i)
{
    uint8_t data[5 * 6 * 3], was[sizeof data];
    struct et_rng r = et_rng_at(3, ET_RNG_AUGMENT, i);
    struct et_canvas c = {.data = data, .C = 3, .H = 5, .W = 6, .room = &scratch};
    struct et_error why = {0};
    for (size_t k = 0; k < sizeof data; k++)
        data[k] = (uint8_t)(40 + k * 37 % 190);
    memcpy(was, data, sizeof data);
    if (m->type->pixels(m->options, &r, &c, &why) != ET_OK)
        bail("%s", why.message);
    return memcmp(was, data, sizeof data) != 0;
}

static void
test_often(void)
{
    static const char *const names[] = {
        "vertical_flip",    "horizontal_flip",     "gaussian_blur",   "gaussian_noise",
        "random_sharpness", "random_posterize",    "random_solarize", "random_invert",
        "random_grayscale", "random_autocontrast", "random_equalize"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        for (int tenths = 0; tenths <= 10; tenths += tenths == 0 ? 2 : 8) {
            char p[64];
            /* A narrow Gaussian changes little. */
            snprintf(p, sizeof p, "p=%g%s", tenths / 10.0,
                     k == 2 ? " sigma=[1,1]" : "");
            struct made m = make(names[k], p);
            int n = 0;
            bool rows_alone = true;
            for (int i = 0; i < DRAWS; i++)
                n += m.type->pixels ? changes_pixels(&m, (uint64_t)i)
                                    : changes_view(&m, (uint64_t)i, &rows_alone);
            /* Equalize changes no picture of so few pixels. */
            bool none = strcmp(names[k], "random_equalize") == 0;
            double want = none ? 0 : DRAWS * tenths / 10.0;
            ok(fabs(n - want) < 5 * sqrt(DRAWS * 0.25) * (tenths % 10 != 0) + 0.5,
               "%s of p %d tenths changes %d of %d pictures", names[k], tenths, n,
               DRAWS);
            if (k == 0)
                ok(rows_alone, "and leaves left and right where they are");
            drop(&m);
        }
}

/* ---- what the options come to ---- */

static int
told_value(const char *name, const char *settings, enum et_change_kind kind)
{
    struct made m = make(name, settings);
    struct et_rng r = et_rng_at(3, ET_RNG_AUGMENT, 0);
    struct et_pixel_change change[ET_MAX_CHANGES] = {{0}};
    int n = m.type->changes(m.options, &r, 5, 6, change);
    int value = n == 1 && change[0].kind == (int)kind ? change[0].value : -1;
    drop(&m);
    return value;
}

static void
test_told(void)
{
    int wrong = 0;
    for (int bits = 1; bits <= 8; bits++) {
        char text[32];
        snprintf(text, sizeof text, "p=1 bits=%d", bits);
        wrong += told_value("random_posterize", text, ET_CHANGE_POSTERIZE) != bits;
    }
    is_int(wrong, 0, "posterize keeps as many bits as it is to");
    is_int(told_value("random_solarize", "p=1 threshold=128", ET_CHANGE_SOLARIZE), 128,
           "values from a threshold on are inverted");
    is_int(told_value("random_solarize", "p=1 threshold=127.5", ET_CHANGE_SOLARIZE),
           128, "of one between two values, from the upper");
    is_int(told_value("random_solarize", "p=1 threshold=127.001", ET_CHANGE_SOLARIZE),
           128, "however near it is to the lower");
}

/* The kernel is no wider than what can be mirrored of the picture's shorter side. */
static void
test_small_blur(void)
{
    static const int64_t sizes[][2] = {{30, 2}, {2, 30}, {1, 9}, {5, 4}, {30, 30}};
    int wrong = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int64_t h = sizes[i][0], w = sizes[i][1], side = h < w ? h : w;
        uint8_t data[900], want[900];
        struct et_rng r = et_rng_at(3, ET_RNG_AUGMENT, i);
        struct et_canvas c = {.data = data, .C = 1, .H = h, .W = w, .room = &scratch};
        struct et_canvas d = {.data = want, .C = 1, .H = h, .W = w, .room = &scratch};
        struct et_error why = {0};
        for (int64_t k = 0; k < h * w; k++)
            data[k] = want[k] = (uint8_t)(k * 97);
        struct made m = make("gaussian_blur", "p=1 kernel_size=23 sigma=[1.5,1.5]");
        int size = 2 * side - 1 < 23 ? (int)(2 * side - 1) : 23;
        wrong += m.type->pixels(m.options, &r, &c, &why) != ET_OK ||
                 eti_gaussian_blur(&d, size, 1.5, &why) != ET_OK ||
                 memcmp(data, want, (size_t)(h * w)) != 0;
        drop(&m);
    }
    is_int(wrong, 0, "pictures of any shape are blurred by what can be mirrored");
}

/* ---- sizes, and what is refused ---- */

static void
test_checks(void)
{
    static const struct {
        const char *name, *settings;
        int64_t h, w;
        const char *says; /* NULL: nothing */
    } rows[] = {
        {"gaussian_blur", "kernel_size=2", 9, 9, "kernel_size 2 is not odd"},
        {"gaussian_blur", "kernel_size=4", 9, 9, "kernel_size 4 is not odd"},
        {"gaussian_blur", "kernel_size=6", 9, 9, "kernel_size 6 is not odd"},
        {"gaussian_blur", "kernel_size=5", 3, 9, NULL},
        {"gaussian_blur", "kernel_size=7", 3, 9, "kernel_size 7 for images of 3 x 9"},
        {"gaussian_blur", "kernel_size=7", 9, 3, "kernel_size 7 for images of 9 x 3"},
        {"gaussian_blur", "kernel_size=7", -1, -1, NULL},
        {"gaussian_blur", "sigma=[2,1]", 9, 9, "the smaller one first"},
        {"gaussian_blur", "sigma=[1]", 9, 9, "sigma is two numbers"},
        {"gaussian_blur", "sigma=[1,2,3]", 9, 9, "sigma is two numbers"},
        {"gaussian_blur", "sigma=[0.0001,2]", 9, 9, "from 0.001 to 1000"},
        {"gaussian_blur", "sigma=[1,1001]", 9, 9, "from 0.001 to 1000"},
        {"gaussian_blur", "sigma=[0.001,1000]", 9, 9, NULL},
        {"random_affine", "scale=[2,1]", 9, 9, "scale is two numbers from 0.01 to 100"},
        {"random_resized_crop", "size=4 scale=[0.5,1.5]", 9, 9, "scale is two numbers"},
        {"random_resized_crop", "size=4 ratio=[0.001,1]", 9, 9, "ratio is two numbers"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct made m = make(rows[i].name, rows[i].settings);
        int64_t h = rows[i].h, w = rows[i].w;
        et_status s = m.type->check(cx, m.options, 3, &h, &w);
        const char *said = take_error(cx);
        ok(rows[i].says ? s == ET_EINVAL && strstr(said, rows[i].says) &&
                              strstr(said, rows[i].name)
                        : s == ET_OK,
           "%s %s for %lld x %lld: %s", rows[i].name, rows[i].settings,
           (long long)rows[i].h, (long long)rows[i].w, said);
        drop(&m);
    }
    static const char *const squares[] = {"resize", "random_resized_crop"};
    for (int i = 0; i < 2; i++) {
        struct made m = make(squares[i], "size=13");
        int64_t h = 40, w = 50;
        need(cx, m.type->check(cx, m.options, 3, &h, &w));
        struct et_view v = view_of(&m, 40, 50, 1);
        ok(h == 13 && w == 13 && v.h == 13 && v.w == 13, "%s leaves the square it says",
           squares[i]);
        drop(&m);
    }
}

/* ---- where they run ---- */

static void
test_where(void)
{
    static const struct {
        const char *on, *transforms, *says;
    } rows[] = {
        {"host", "[horizontal_flip]", "host"},
        {"device", "[horizontal_flip]", "device"},
        {"auto", "[horizontal_flip]", "a GPU with free memory"},
        {"host", "[gaussian_noise]", "host"},
        {"device", "[gaussian_noise]", "nowhere: "},
        {"auto", "[gaussian_noise]", "host: "},
    };
    const struct et_dataset_class *type = et_dataset_find("cifar10");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *options;
        char text[256];
        need(cx, et_options_new(cx, &type->info, NULL, &options));
        need(cx, et_options_set(cx, type->info.options, options, "transforms",
                                rows[i].transforms));
        need(cx, et_options_set(cx, type->info.options, options, "transforms_on",
                                rows[i].on));
        eti_transforms_where(cx, type, options, text, sizeof text);
        ok(strncmp(text, rows[i].says, strlen(rows[i].says)) == 0 &&
               (text[strlen(rows[i].says)] != 0) == (strchr(rows[i].says, ' ') != NULL),
           "%s on %s run: %s", rows[i].transforms, rows[i].on, text);
        et_options_free(&type->info, &options);
    }
}

int
main(void)
{
    cx = need_ctx();
    test_where();
    test_turns();
    test_parts();
    test_middle();
    test_often();
    test_told();
    test_small_blur();
    test_checks();
    eti_scratch_free(&scratch);
    et_ctx_free(&cx);
    return done();
}
