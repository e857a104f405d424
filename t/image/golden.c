/* SPDX-License-Identifier: Apache-2.0 */
/* What is done with pictures, against Pillow and torchvision: t/golden/pictures.txt, by
 * make_pictures.py, and that the loops do not depend on how a picture lies. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/image/affine.h"
#include "core/image/blur.h"
#include "core/image/levels.h"
#include "t/image/noise.h"
#include "t/image/pictures.h"
#include "t/tap.h"

enum { MOST = 4096, MAX_ARGS = 8 };

static struct eti_resampler resampler;
static struct eti_scratch scratch;

/* ---- the operations ---- */

/* One line of the file. */
struct golden {
    char op[32], picture[16];
    double a[MAX_ARGS];
    int H, W, C;
    uint8_t bytes[MOST];
};

/* Does G to C, in place or to OUT. */
typedef void operation(const struct golden *g, struct et_canvas *c, uint8_t *out);

static void
do_resize(const struct golden *g, struct et_canvas *c, uint8_t *out)
{
    struct et_error why = {0};
    struct et_pixels p = eti_canvas_view(c);
    struct eti_axis y = eti_axis_of((int64_t)g->a[3], (int64_t)g->a[5], g->H);
    struct eti_axis x = eti_axis_of((int64_t)g->a[4], (int64_t)g->a[6], g->W);
    if (eti_resample(&resampler, &p, &y, &x, (enum et_filter)g->a[0], out, g->W * c->C,
                     &why) != ET_OK)
        bail("%s", why.message);
}

static void
do_affine(const struct golden *g, struct et_canvas *c, uint8_t *out)
{
    static const uint8_t black[4];
    const double *a = g->a;
    struct et_pixels p = eti_canvas_view(c);
    struct eti_affine m = eti_affine_of((double)c->W / 2, (double)c->H / 2, a[1], a[2],
                                        a[3], a[4], a[5], a[6]);
    eti_affine_sample(&p, &m, c->H, c->W, (enum et_filter)a[0], black, out);
}

static void
do_blur(const struct golden *g, struct et_canvas *c, uint8_t *out)
{
    struct et_error why = {0};
    (void)out;
    if (eti_gaussian_blur(c, (int)g->a[0], g->a[1], &why) != ET_OK)
        bail("%s", why.message);
}

static void
do_sharpness(const struct golden *g, struct et_canvas *c, uint8_t *out)
{
    struct et_error why = {0};
    (void)out;
    if (eti_sharpness(c, g->a[0], &why) != ET_OK)
        bail("%s", why.message);
}

static void
do_posterize(const struct golden *g, struct et_canvas *c, uint8_t *out)
{
    (void)out;
    eti_posterize(c, (int)g->a[0]);
}

/* What has one number, or none, and works in place. */
#define IN_PLACE(name, ...)                                                            \
    static void do_##name(const struct golden *g, struct et_canvas *c, uint8_t *out)   \
    {                                                                                  \
        (void)g;                                                                       \
        (void)out;                                                                     \
        eti_##name(c __VA_ARGS__);                                                     \
    }
IN_PLACE(brightness, , g->a[0])
IN_PLACE(contrast, , g->a[0])
IN_PLACE(saturation, , g->a[0])
IN_PLACE(hue, , g->a[0])
IN_PLACE(solarize, , g->a[0])
IN_PLACE(grey)
IN_PLACE(invert)
IN_PLACE(autocontrast)
IN_PLACE(equalize)

/* TOLERANCE: 0 where whole numbers decide, 1 where a float may fall on either side of
 * one. */
static const struct {
    const char *name;
    operation *fn;
    int tolerance;
} operations[] = {
    {"resize", do_resize, 1},
    {"affine", do_affine, 1},
    {"brightness", do_brightness, 1},
    {"contrast", do_contrast, 1},
    {"saturation", do_saturation, 1},
    {"hue", do_hue, 1},
    {"grey", do_grey, 1},
    {"invert", do_invert, 0},
    {"posterize", do_posterize, 0},
    {"solarize", do_solarize, 0},
    {"equalize", do_equalize, 0},
    {"autocontrast", do_autocontrast, 1},
    {"sharpness", do_sharpness, 1},
    {"blur", do_blur, 1},
};
enum { N_OPERATIONS = sizeof operations / sizeof *operations };

/* ---- the file ---- */

static bool
parse(char *line, struct golden *g)
{
    char *numbers = strchr(line, '='), *at;
    int used;
    memset(g, 0, sizeof *g);
    if (line[0] == '#' || !numbers ||
        sscanf(line, "%31s %15s%n", g->op, g->picture, &used) != 2)
        return false;
    *numbers++ = 0;
    at = line + used;
    for (int i = 0; i < MAX_ARGS; i++)
        g->a[i] = strtod(at, &at);
    if (sscanf(numbers, "%d %d %d %n", &g->H, &g->W, &g->C, &used) != 3 ||
        g->H * g->W * g->C > MOST)
        bail("a line of %s is not understood", g->op);
    for (int i = 0; i < g->H * g->W * g->C; i++) {
        unsigned v;
        if (sscanf(numbers + used + 2 * i, "%2x", &v) != 1)
            bail("a line of %s ends early", g->op);
        g->bytes[i] = (uint8_t)v;
    }
    return true;
}

static void
check(const struct golden *g, char *text)
{
    uint8_t data[MOST], other[MOST];
    struct et_canvas c = noise_picture(g->picture, data, &scratch);
    int k = 0, worst = 0, differ = 0, n = g->H * g->W * g->C;
    while (k < N_OPERATIONS && strcmp(operations[k].name, g->op) != 0)
        k++;
    if (k == N_OPERATIONS)
        bail("no operation %s", g->op);
    bool moves = k < 2;
    operations[k].fn(g, &c, other);
    for (int i = 0; i < n; i++) {
        int d = abs((moves ? other : data)[i] - g->bytes[i]);
        worst = d > worst ? d : worst;
        differ += d != 0;
    }
    ok(worst <= operations[k].tolerance, "%s: %d of %d bytes differ, by %d", text,
       differ, n, worst);
}

static int
goldens(void)
{
    static char line[3 * MOST];
    static struct golden g;
    int n = 0;
    FILE *f = fopen(source_path("t/golden/pictures.txt"), "r");
    if (!f)
        bail("no t/golden/pictures.txt");
    while (fgets(line, sizeof line, f))
        if (parse(line, &g)) {
            check(&g, line);
            n++;
        }
    fclose(f);
    return n;
}

/* ---- how a picture lies ---- */

static void
layouts(void)
{
    enum { H = 13, W = 11, C = 3, h = 7, w = 6 };
    uint8_t data[MOST], planes[MOST], want[MOST], got[MOST];
    struct et_error why = {0};
    struct et_canvas c = noise_picture("rgb", data, &scratch);
    struct et_pixels p = eti_canvas_view(&c);
    for (int i = 0; i < H * W * C; i++)
        planes[i % C * H * W + i / C] = data[i];
    struct et_pixels q = {planes, C, H, W, H * W, W, 1};
    struct eti_axis y = eti_axis_of(1, 12, h), x = eti_axis_of(0, 9, w);
    bool fine =
        eti_resample(&resampler, &p, &y, &x, ET_BICUBIC, want, w * C, &why) == ET_OK &&
        eti_resample(&resampler, &q, &y, &x, ET_BICUBIC, got, w * C, &why) == ET_OK;
    ok(fine && memcmp(got, want, h * w * C) == 0,
       "a picture channel by channel is resized to the same bits");
    struct et_pixels flipped = eti_pixels_flip_x(&p);
    struct eti_axis back = {w, W, -9.0 / w, W - 9, W};
    fine = eti_resample(&resampler, &flipped, &y, &back, ET_BICUBIC, got, w * C,
                        &why) == ET_OK;
    ok(fine && memcmp(got, want, h * w * C) == 0,
       "a flipped picture, flipped again by its axis, likewise");
    memset(data, 201, sizeof data);
    y = eti_axis_of(0, H, 29);
    x = eti_axis_of(0, W, 23);
    fine = eti_resample(&resampler, &p, &y, &x, ET_BICUBIC, got, 23 * C, &why) == ET_OK;
    for (int i = 0; i < 29 * 23 * C; i++)
        fine = fine && got[i] == 201;
    ok(fine, "a plane stays a plane");
    void *rooms[] = {resampler.line.data, resampler.taps[0].data, scratch.data};
    fine =
        eti_resample(&resampler, &q, &y, &x, ET_BILINEAR, got, x.n * C, &why) == ET_OK;
    ok(fine && rooms[0] == resampler.line.data && rooms[1] == resampler.taps[0].data,
       "the next picture takes the memory of the last one");
}

/* Draws of noise and holes. */
static void
draws(void)
{
    enum { H = 20, W = 18, C = 3 };
    uint8_t data[MOST], again[MOST];
    struct et_rng r = et_rng_at(3, ET_RNG_AUGMENT, 9), s = r;
    struct et_canvas c = {data, C, H, W, NULL}, d = {again, C, H, W, NULL};
    double sum = 0, square = 0;
    memset(data, 128, sizeof data);
    memset(again, 128, sizeof again);
    eti_noise(&c, 0, 0.1, &r);
    eti_noise(&d, 0, 0.1, &s);
    for (int i = 0; i < H * W * C; i++) {
        sum += data[i] - 128;
        square += (data[i] - 128.0) * (data[i] - 128.0);
    }
    double n = H * W * C, sigma = 25.5;
    is_near(sum / n / sigma, 0, 5 / sqrt(n), "noise has the mean that it is to have");
    is_near(sqrt(square / n), sigma, 5 / sqrt(2 * n), "and the deviation");
    ok(memcmp(data, again, H * W * C) == 0, "the same draws make the same noise");
    memset(data, 9, sizeof data);
    eti_erase(&c, 3, 4, 5, 6, (const uint8_t[]){1, 2, 3}, NULL);
    int inside = 0, outside = 0;
    for (int i = 0; i < H * W * C; i++) {
        int y = i / C / W, x = i / C % W;
        bool in = y >= 3 && y < 8 && x >= 4 && x < 10;
        inside += in && data[i] == i % C + 1;
        outside += !in && data[i] == 9;
    }
    ok(inside == 90 && inside + outside == H * W * C,
       "erase fills its part, and nothing else");
}

int
main(void)
{
    is_int(goldens(), 40, "all lines of the file are tried");
    layouts();
    draws();
    eti_resampler_free(&resampler);
    eti_scratch_free(&scratch);
    return done();
}
