/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms: which pixels a crop, a flip and a resize show, what they become, and that
 * draws belong to samples and to nothing else. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/data/pipeline.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;

/* What sample I of the counted images has at (Y, X, C); black outside. */
static float
counted(int i, int y, int x, int c)
{
    if (y < 0 || y >= 6 || x < 0 || x >= 8)
        return 0;
    return (float)(((7 * i + 8 * y + x + 50 * c) & 255) / 255.0);
}

/* How many of N samples of H x W x C in X show a frame of the counted image whose
 * corner is (y, x) with y in [Y0, Y1], x in [X0, X1], flipped or not; which, goes to
 * SEEN. */
static int
match(const float *x, int n, int h, int w, int C, int y0, int y1, int x0, int x1,
      int *seen)
{
    int found = 0;
    for (int i = 0; i < n; i++, x += h * w * C)
        for (int k = 0; k < 2 * (y1 - y0 + 1) * (x1 - x0 + 1); k++) {
            int flip = k % 2, dy = y0 + k / 2 / (x1 - x0 + 1);
            int dx = x0 + k / 2 % (x1 - x0 + 1);
            bool same = true;
            for (int at = 0; at < h * w * C && same; at++) {
                int c = at % C, col = at / C % w, row = at / C / w;
                same =
                    x[at] == counted(i, dy + row, dx + (flip ? w - 1 - col : col), c);
            }
            if (same) {
                seen[k]++;
                found++;
                break;
            }
        }
    return found;
}

static void
crops(void)
{
    static int seen[512];
    struct counted_loader s = counted_loader(
        cx, 32, 32, 3, "[random_crop: {size: 6, padding: 2}, horizontal_flip]");
    s.options.common.batch_size = 32;
    need(cx, counted_begin(cx, &s));
    const struct et_batch *b = counted_next(cx, &s);
    ok(b->field[0].desc.shape[1] == 3 && b->field[0].desc.shape[2] == 6 &&
           b->field[0].desc.shape[3] == 6 && b->field[0].desc.stride[1] == 1,
       "a crop sets the size of the batch, channels last");
    is_int(match(b->field[0].host.any, 32, 6, 6, 3, -2, 2, -2, 4, seen), 32,
           "every sample is a frame of its image, black where it hangs over, flipped "
           "or not");
    et_loader_release(s.loader, b);
    int flipped = 0, places = 0, total = 32;
    for (int epoch = 1; epoch < 60; epoch++) {
        while (!(b = counted_next(cx, &s)))
            ;
        total += match(b->field[0].host.any, 32, 6, 6, 3, -2, 2, -2, 4, seen);
        et_loader_release(s.loader, b);
    }
    for (int k = 0; k < 70; k++) {
        flipped += k % 2 ? seen[k] : 0;
        places += seen[k] > 0;
    }
    is_int(total, 60 * 32, "in all epochs");
    is_int(places, 70, "and all 35 corners occur, both ways round");
    is_near((double)flipped / total, 0.5, 5 * 0.5 / sqrt(total),
            "half of them flipped");
    counted_end(&s);

    s = counted_loader(cx, 2, 2, 1,
                       "[center_crop: {size: 4}, random_crop: {size: 6, padding: 1}]");
    need(cx, counted_begin(cx, &s));
    b = counted_next(cx, &s);
    const float *x = b->field[0].host.any;
    int black = 0, inner = 0;
    for (int at = 0; at < 36; at++) {
        int row = at / 6, col = at % 6;
        bool edge = row % 5 == 0 || col % 5 == 0;
        black += edge && x[at] == 0;
        inner += !edge && x[at] == counted(0, row, col + 1, 0);
    }
    ok(black == 20 && inner == 16,
       "what a crop cut off stays away when the next one pads");
    et_loader_release(s.loader, b);
    counted_end(&s);

    s = counted_loader(cx, 2, 2, 1,
                       "[horizontal_flip: {p: 1}, center_crop: {size: 3}]");
    need(cx, counted_begin(cx, &s));
    b = counted_next(cx, &s);
    x = b->field[0].host.any;
    /* Flipped first: columns 7 .. 0; the middle three of those begin at 2. */
    is_near(x[0], counted(0, 1, 5, 0), 0, "a crop after a flip cuts the flipped image");
    is_near(x[8], counted(0, 3, 3, 0), 0, "to its last pixel");
    et_loader_release(s.loader, b);
    counted_end(&s);
}

static void
values(void)
{
    struct counted_loader s = counted_loader(
        cx, 3, 3, 3, "[normalize: {mean: [0.5, 0.25, 0.1], std: [0.2, 0.5, 0.3]}]");
    need(cx, counted_begin(cx, &s));
    const struct et_batch *b = counted_next(cx, &s);
    const float *x = b->field[0].host.any;
    double mean[] = {0.5, 0.25, 0.1}, std[] = {0.2, 0.5, 0.3};
    float want[3 * 48 * 3];
    for (int at = 0; at < 3 * 144; at++) {
        int c = at % 3;
        want[at] =
            (float)((counted(at / 144, at % 144 / 3 / 8, at / 3 % 8, c) - mean[c]) /
                    std[c]);
    }
    /* One rounding of the value and one of the pixel: 2 * 2^-24, times 1 / std. */
    is_near_array(x, want, 3 * 144, 1e-6,
                  "normalize gives (x / 255 - mean) / std by channel");
    et_loader_release(s.loader, b);
    counted_end(&s);

    s = counted_loader(cx, 1, 1, 2, "[resize: {size: 6}]");
    need(cx, counted_begin(cx, &s));
    b = counted_next(cx, &s);
    x = b->field[0].host.any;
    float worst = 0;
    for (int at = 0; at < 72; at++) {
        int c = at % 2, col = at / 2 % 6, row = at / 12;
        double px =
            (col + 0.5) * 8 / 6 - 0.5; /* the image is linear: so is the result */
        double v = floor(8 * row + (px < 0 ? 0 : px > 7 ? 7 : px) + 50 * c + 0.5) / 255;
        worst = fmaxf(worst, fabsf((float)(x[at] - v)));
    }
    ok(b->field[0].desc.shape[2] == 6 && b->field[0].desc.shape[3] == 6 &&
           worst < 1e-6f,
       "resize is bilinear with half-pixel centres (%g off)", worst);
    et_loader_release(s.loader, b);
    counted_end(&s);
    s = counted_loader(cx, 1, 1, 2, NULL);
    s.options.common.resolution = 12;
    need(cx, counted_begin(cx, &s));
    b = counted_next(cx, &s);
    ok(b->field[0].desc.shape[2] == 12 && b->field[0].desc.shape[3] == 12,
       "resolution resizes first");
    et_loader_release(s.loader, b);
    counted_end(&s);
}

/* The floats of samples [FROM, TO) of two epochs, whatever the batches are. */
static void
gather(struct counted_loader *s, float *out, size_t sample)
{
    need(cx, counted_begin(cx, s));
    const struct et_batch *b;
    for (int epoch = 0; epoch < 2; epoch++)
        while ((b = counted_next(cx, s))) {
            memcpy(out + (size_t)b->first * sample, b->field[0].host.any,
                   (size_t)b->n_samples * sample * sizeof *out);
            et_loader_release(s->loader, b);
        }
    et_loader_free(&s->loader);
    et_dataset_close(&s->data);
}

static void
draws(void)
{
    enum { N = 24, SAMPLE = 36 };
    static float want[2 * N * SAMPLE], got[2 * N * SAMPLE];
    struct counted_loader s = counted_loader(
        cx, N, N, 1, "[random_crop: {size: 6, padding: 2}, horizontal_flip]");
    s.options.common.shuffle = true;
    gather(&s, want, SAMPLE);
    ok(memcmp(want, want + N * SAMPLE, sizeof want / 2) != 0, "epochs differ");
    for (int batch = 1; batch <= 8; batch *= 2)
        for (int workers = 0; workers < 3; workers++) {
            memset(got, 0, sizeof got);
            s.options.common.batch_size = batch;
            s.options.common.workers = workers;
            gather(&s, got, SAMPLE);
            ok(memcmp(want, got, sizeof want) == 0,
               "crops and flips are the same in batches of %d with %d workers", batch,
               workers);
        }
    memset(got, 0, sizeof got);
    s.options.common.batch_size = 8;
    s.config.world_size = 4;
    for (s.config.rank = 0; s.config.rank < 4; s.config.rank++)
        gather(&s, got, SAMPLE);
    ok(memcmp(want, got, sizeof want) == 0, "and on four ranks");
    counted_end(&s);
}

static void
refusals(void)
{
    static const struct {
        const char *transforms, *message;
    } bad[] = {
        {"[normalize: {mean: [0.5], std: [1]}, horizontal_flip]",
         "transforms: normalize must be last, it is number 1 of 2"},
        {"[random_resized_crop: {size: 4, scale: [0.5, 0.1]}]",
         "random_resized_crop: scale is two numbers from 1e-06 to 1, the smaller one "
         "first"},
        {"[gaussian_blur: {kernel_size: 4}]",
         "gaussian_blur: kernel_size 4 is not odd"},
        {"[gaussian_blur: {kernel_size: 13}]",
         "gaussian_blur: kernel_size 13 for images of 6 x 8"},
        {"[center_crop: {size: 7}]", "center_crop: size 7 exceeds the image, 6x8"},
        {"[random_crop: {size: 9, padding: 1}]",
         "random_crop: size 9 exceeds the image, 6x8 with 1 of padding on each side"},
        {"[normalize: {mean: [0.5, 0.5], std: [1]}]",
         "normalize: 2 means and 1 stds for images of 3 channels"},
        {"[normalize: {mean: [0.5], std: [0]}]", "normalize: std 0 is not above 0"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct counted_loader s = counted_loader(cx, 4, 4, 3, bad[i].transforms);
        is_int(counted_begin(cx, &s), ET_EINVAL, "%s is refused", bad[i].transforms);
        is_str(take_error(cx), bad[i].message, "and the sentence says why");
        counted_end(&s);
    }
    int names = 0, n = 0;
    for (; et_transform_classes[n]; n++)
        names += et_transform_find(et_transform_classes[n]->info.name) ==
                 et_transform_classes[n];
    ok(n == names && n >= 5 && !et_transform_find("mixup"),
       "transforms are found by name");
}

/* Which squares a crop takes of images H x W: as long as the shorter side at most, with
 * what random_crop pads. */
static void
crops_fit(void)
{
    static const struct {
        const char *name, *padding;
        int64_t h, w, most;
    } row[] = {
        {"center_crop", NULL, 6, 8, 6}, {"center_crop", NULL, 8, 6, 6},
        {"random_crop", "0", 6, 8, 6},  {"random_crop", "0", 8, 6, 6},
        {"random_crop", "1", 6, 8, 8},  {"random_crop", "1", 8, 6, 8},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const struct et_transform_class *c = et_transform_find(row[i].name);
        int64_t taken = 0;
        bool are_square = true;
        for (int64_t size = 1; size <= 12; size++) {
            char text[16];
            void *o;
            int64_t h = row[i].h, w = row[i].w;
            snprintf(text, sizeof text, "%d", (int)size);
            need(cx, et_alloc(cx, c->info.options_size, &o));
            need(cx, et_options_init(cx, c->info.options, o));
            need(cx, et_options_set(cx, c->info.options, o, "size", text));
            if (row[i].padding)
                need(cx,
                     et_options_set(cx, c->info.options, o, "padding", row[i].padding));
            if (c->check(cx, o, 3, &h, &w) == ET_OK) {
                taken = size == taken + 1 ? size : -100;
                are_square = are_square && h == size && w == size;
            }
            et_error_clear(cx);
            et_options_release(c->info.options, o);
            et_free(cx, o);
        }
        is_int(taken, row[i].most, "%s of images %dx%d, padded by %s: all sizes to",
               row[i].name, (int)row[i].h, (int)row[i].w,
               row[i].padding ? row[i].padding : "nothing");
        ok(are_square, "and what it leaves is a square");
    }
}

/* What color_jitter draws is from one end of its range to the other. */
static void
jitters(void)
{
    static const struct {
        const char *option, *value;
        int kind;
        double scale, low, high; /* of what is drawn, by SCALE */
        bool keeps;              /* grey is what it was: the weights' sum is 1 */
    } rows[] = {
        {"brightness", "0.4", ET_CHANGE_BLEND, 1, 0.6, 1.4, false},
        {"brightness", "3", ET_CHANGE_BLEND, 1, 0, 4, false},
        {"contrast", "0.4", ET_CHANGE_CONTRAST, 1, 0.6, 1.4, true},
        {"saturation", "0.25", ET_CHANGE_SATURATION, 1, 0.75, 1.25, true},
        {"hue", "0.2", ET_CHANGE_HUE, 6, -0.2, 0.2, false}, /* sixths of a turn */
    };
    const struct et_transform_class *c = et_transform_find("color_jitter");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        enum { DRAWS = 2000 };
        const double wide = rows[i].high - rows[i].low;
        double least = rows[i].high, most = rows[i].low, sum = 0;
        int wrong = 0, unlike = 0;
        void *options;
        need(cx,
             et_options_new(cx, &c->info,
                            (const char *const[]){rows[i].option, rows[i].value, NULL},
                            &options));
        for (int k = 0; k < DRAWS; k++) {
            struct et_rng r = et_rng_at(17, ET_RNG_AUGMENT, (uint64_t)k);
            struct et_pixel_change change[4];
            wrong += c->changes(options, &r, 8, 8, change) != 1 ||
                     change[0].kind != rows[i].kind;
            const double own = (double)change[0].own, v = own / rows[i].scale;
            unlike +=
                fabs((double)change[0].other - (rows[i].keeps ? 1 - own : 0)) > 1e-6;
            least = v < least ? v : least;
            most = v > most ? v : most;
            sum += v;
        }
        et_options_free(&c->info, &options);
        is_int(wrong, 0, "%s %s changes this alone", rows[i].option, rows[i].value);
        is_int(unlike, 0,
               rows[i].keeps ? "and leaves grey as it is" : "and adds nothing");
        /* The mean of 2000 is within five deviations, of 0.0065 of the range. */
        ok(least >= rows[i].low - 1e-6 && least < rows[i].low + 0.01 * wide &&
               most <= rows[i].high + 1e-6 && most > rows[i].high - 0.01 * wide &&
               fabs(sum / DRAWS - (rows[i].low + rows[i].high) / 2) < 0.033 * wide,
           "from %g to %g, evenly: %g to %g, %g in the mean", rows[i].low, rows[i].high,
           least, most, sum / DRAWS);
    }
}

int
main(void)
{
    cx = need_ctx();
    jitters();
    crops();
    crops_fit();
    values();
    draws();
    refusals();
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "all memory is given back");
    et_ctx_free(&cx);
    return done();
}
