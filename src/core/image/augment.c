/* SPDX-License-Identifier: Apache-2.0 */
/* augment.c: see augment.h.
 *
 *     lev = U(0.1, severity), I(m) = trunc(lev m / 10), F(m) = lev m / 10
 *     blend(a, b, f) = a + f (b - a), in float, cut off to a byte
 *
 * A pixel of a picture that is moved is between four of those that were, whose middles
 * are at a half; outside it is black. Source: Pillow's Geometry.c, Blend.c, ImageOps.py
 * and ImageEnhance.py. */
#include "core/image/augment.h"

#include <math.h>
#include <string.h>

#include "core/image/levels.h"

const char *const eti_augment_sets[] = {"all", "safe", "original", NULL};

et_status
eti_augment_check(struct et_ctx *cx, const char *who, int C)
{
    if (C == 1 || C == 3)
        return ET_OK;
    return ET_FAIL(cx, ET_EINVAL,
                   "%s changes pictures of 1 or 3 channels; these have %d", who, C);
}

static int64_t
count(const struct et_canvas *c)
{
    return c->H * c->W * c->C;
}

/* ---- by table ---- */

static void
autocontrast(struct et_canvas *c, double value, uint8_t *spare)
{
    (void)value, (void)spare;
    for (int k = 0; k < c->C; k++) {
        int low = 255, high = 0;
        for (int64_t i = k; i < count(c); i += c->C) {
            low = c->data[i] < low ? c->data[i] : low;
            high = c->data[i] > high ? c->data[i] : high;
        }
        double scale = high > low ? 255.0 / (high - low) : 1;
        double offset = high > low ? -low * scale : 0;
        for (int64_t i = k; i < count(c); i += c->C) {
            double v = c->data[i] * scale + offset;
            c->data[i] = v < 0 ? 0 : v > 255 ? 255 : (uint8_t)v;
        }
    }
}

static void
equalize(struct et_canvas *c, double value, uint8_t *spare)
{
    (void)value, (void)spare;
    eti_equalize(c);
}

static void
posterize(struct et_canvas *c, double value, uint8_t *spare)
{
    (void)spare;
    eti_posterize(c, (int)value);
}

static void
solarize(struct et_canvas *c, double value, uint8_t *spare)
{
    (void)spare;
    eti_solarize(c, value);
}

/* ---- by place ---- */

static int64_t
inside(int64_t i, int64_t n)
{
    return i < 0 ? 0 : i < n ? i : n - 1;
}

/* Writes the pixel of IN at (X, Y) to OUT. */
static void
sample(const struct et_canvas *c, const uint8_t *in, double x, double y, uint8_t *out)
{
    if (x < 0 || x >= (double)c->W || y < 0 || y >= (double)c->H) {
        memset(out, 0, (size_t)c->C);
        return;
    }
    double left = floor(x - 0.5), top = floor(y - 0.5);
    double dx = x - 0.5 - left, dy = y - 0.5 - top;
    int64_t x0 = inside((int64_t)left, c->W), x1 = inside((int64_t)left + 1, c->W);
    int64_t y0 = inside((int64_t)top, c->H), y1 = inside((int64_t)top + 1, c->H);
    const uint8_t *a = in + y0 * c->W * c->C, *b = in + y1 * c->W * c->C;
    for (int k = 0; k < c->C; k++) {
        int64_t i = x0 * c->C + k, j = x1 * c->C + k;
        double upper = a[i] + (a[j] - a[i]) * dx, lower = b[i] + (b[j] - b[i]) * dx;
        out[k] = (uint8_t)(upper + (lower - upper) * dy);
    }
}

/* What comes to (x, y) was at (m[0] x + m[1] y + m[2], m[3] x + m[4] y + m[5]). */
static void
move(struct et_canvas *c, const double m[6], uint8_t *spare)
{
    uint8_t *out = c->data;
    memcpy(spare, c->data, (size_t)count(c));
    for (int64_t i = 0; i < c->H; i++)
        for (int64_t j = 0; j < c->W; j++, out += c->C) {
            double x = (double)j + 0.5, y = (double)i + 0.5;
            sample(c, spare, m[0] * x + m[1] * y + m[2], m[3] * x + m[4] * y + m[5],
                   out);
        }
}

/* V with 15 digits behind the point: Pillow's sines are rounded so. */
static double
digits(double v)
{
    return nearbyint(v * 1e15) / 1e15;
}

static void
rotate(struct et_canvas *c, double value, uint8_t *spare)
{
    double angle = -value * (3.14159265358979323846 / 180);
    double cosine = digits(cos(angle)), sine = digits(sin(angle));
    double x = (double)c->W / 2, y = (double)c->H / 2;
    double m[] = {cosine, sine, 0, -sine, cosine, 0};
    m[2] = m[0] * -x + m[1] * -y + x;
    m[5] = m[3] * -x + m[4] * -y + y;
    if (value != 0)
        move(c, m, spare);
}

static void
shear_x(struct et_canvas *c, double value, uint8_t *spare)
{
    move(c, (const double[]){1, value, 0, 0, 1, 0}, spare);
}

static void
shear_y(struct et_canvas *c, double value, uint8_t *spare)
{
    move(c, (const double[]){1, 0, 0, value, 1, 0}, spare);
}

static void
translate_x(struct et_canvas *c, double value, uint8_t *spare)
{
    move(c, (const double[]){1, 0, value, 0, 1, 0}, spare);
}

static void
translate_y(struct et_canvas *c, double value, uint8_t *spare)
{
    move(c, (const double[]){1, 0, 0, 0, 1, value}, spare);
}

/* ---- between two pictures ---- */

/* A at FACTOR 0, B at 1. */
static uint8_t
blend(uint8_t a, uint8_t b, float factor)
{
    float v = (float)a + factor * (float)(b - a);
    return v <= 0 ? 0 : v >= 255 ? 255 : (uint8_t)v;
}

/* Between OTHER and the canvas. */
static void
blend_with(struct et_canvas *c, const uint8_t *other, double factor)
{
    int64_t n = count(c);
    for (int64_t i = 0; i < n; i++)
        c->data[i] = blend(other[i], c->data[i], (float)factor);
}

static void
color(struct et_canvas *c, double value, uint8_t *spare)
{
    int64_t n = c->H * c->W;
    if (c->C != 3)
        return;
    eti_grey_of_rgb(c->data, n, spare);
    for (int64_t i = n - 1; i >= 0; i--)
        memset(spare + 3 * i, spare[i], 3);
    blend_with(c, spare, value);
}

static void
contrast(struct et_canvas *c, double value, uint8_t *spare)
{
    int64_t n = c->H * c->W, sum = 0;
    const uint8_t *grey = c->data;
    if (c->C == 3) {
        eti_grey_of_rgb(c->data, n, spare);
        grey = spare;
    }
    for (int64_t i = 0; i < n; i++)
        sum += grey[i];
    memset(spare, (int)((double)sum / (double)n + 0.5), (size_t)count(c));
    blend_with(c, spare, value);
}

static void
brightness(struct et_canvas *c, double value, uint8_t *spare)
{
    memset(spare, 0, (size_t)count(c));
    blend_with(c, spare, value);
}

/* Eight neighbours and five times itself, over 13, rounded. */
static uint8_t
smooth(const uint8_t *p, int64_t row, int C)
{
    int sum = 4 * p[0];
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            sum += p[dy * row + dx * C];
    return (uint8_t)((2 * sum + 13) / 26); /* 13 is odd, so there is no half */
}

static void
sharpness(struct et_canvas *c, double value, uint8_t *spare)
{
    int64_t row = c->W * c->C;
    memcpy(spare, c->data, (size_t)count(c)); /* the outermost stay as they are */
    for (int64_t y = 1; y < c->H - 1; y++)
        for (int64_t i = c->C; i < row - c->C; i++)
            spare[y * row + i] = smooth(c->data + y * row + i, row, c->C);
    blend_with(c, spare, value);
}

/* ---- draws: U in [0, 1) each ---- */

static double
level(double severity, double most, double u)
{
    return (0.1 + (severity - 0.1) * u) * most / 10;
}

static double
with_sign(double v, double u)
{
    return u > 0.5 ? -v : v;
}

static double
bits(double severity, int64_t H, int64_t W, const double *u)
{
    (void)H, (void)W;
    return 4 - trunc(level(severity, 4, u[0]));
}

static double
degrees(double severity, int64_t H, int64_t W, const double *u)
{
    (void)H, (void)W;
    return with_sign(trunc(level(severity, 30, u[0])), u[1]);
}

static double
threshold(double severity, int64_t H, int64_t W, const double *u)
{
    (void)H, (void)W;
    return 256 - trunc(level(severity, 256, u[0]));
}

static double
slope(double severity, int64_t H, int64_t W, const double *u)
{
    (void)H, (void)W;
    return with_sign(level(severity, 0.3, u[0]), u[1]);
}

static double
columns(double severity, int64_t H, int64_t W, const double *u)
{
    (void)H;
    return with_sign(trunc(level(severity, (double)W / 3, u[0])), u[1]);
}

static double
rows(double severity, int64_t H, int64_t W, const double *u)
{
    return columns(severity, W, H, u);
}

/* Above and below 1 as often. */
static double
factor(double severity, int64_t H, int64_t W, const double *u)
{
    (void)H, (void)W;
    double least = 1 - 0.09 * severity;
    return u[0] > 0.5 ? 1 + (severity - 1) * u[1] : least + (1 - least) * u[1];
}

static double
brightness_factor(double severity, int64_t H, int64_t W, const double *u)
{
    double f = factor(severity, H, W, u);
    return f > 1 ? f * 0.75 : f;
}

static double
original_factor(double severity, int64_t H, int64_t W, const double *u)
{
    (void)H, (void)W;
    return level(severity, 1.8, u[0]) + 0.1;
}

/* ---- all of them ---- */

static const struct {
    int n; /* numbers that VALUE takes */
    double (*value)(double severity, int64_t H, int64_t W, const double *u);
    void (*apply)(struct et_canvas *c, double value, uint8_t *spare);
} kinds[ETI_AUGMENT_KINDS] = {
    [ETI_AUGMENT_AUTOCONTRAST] = {0, NULL, autocontrast},
    [ETI_AUGMENT_EQUALIZE] = {0, NULL, equalize},
    [ETI_AUGMENT_POSTERIZE] = {1, bits, posterize},
    [ETI_AUGMENT_ROTATE] = {2, degrees, rotate},
    [ETI_AUGMENT_SOLARIZE] = {1, threshold, solarize},
    [ETI_AUGMENT_SHEAR_X] = {2, slope, shear_x},
    [ETI_AUGMENT_SHEAR_Y] = {2, slope, shear_y},
    [ETI_AUGMENT_TRANSLATE_X] = {2, columns, translate_x},
    [ETI_AUGMENT_TRANSLATE_Y] = {2, rows, translate_y},
    [ETI_AUGMENT_COLOR] = {2, factor, color},
    [ETI_AUGMENT_CONTRAST] = {2, factor, contrast},
    [ETI_AUGMENT_BRIGHTNESS] = {2, brightness_factor, brightness},
    [ETI_AUGMENT_SHARPNESS] = {2, factor, sharpness},
    [ETI_AUGMENT_COLOR_ORIGINAL] = {1, original_factor, color},
    [ETI_AUGMENT_CONTRAST_ORIGINAL] = {1, original_factor, contrast},
    [ETI_AUGMENT_BRIGHTNESS_ORIGINAL] = {1, original_factor, brightness},
    [ETI_AUGMENT_SHARPNESS_ORIGINAL] = {1, original_factor, sharpness},
};

struct eti_augment
eti_augment_of(enum eti_augment_kind kind, double severity, int64_t H, int64_t W,
               const double u[2])
{
    return (struct eti_augment){
        .kind = kind,
        .value = kinds[kind].n ? kinds[kind].value(severity, H, W, u) : 0,
    };
}

struct eti_augment
eti_augment_draw(enum et_augmentation_set set, double severity, int64_t H, int64_t W,
                 struct et_rng *r)
{
    enum { SAFE = ETI_AUGMENT_COLOR, ALL = ETI_AUGMENT_COLOR_ORIGINAL };
    double u[2] = {0};
    int kind = (int)et_rng_below(r, set == ET_AUGMENT_SAFE ? SAFE : ALL);
    if (set == ET_AUGMENT_ORIGINAL && kind >= SAFE)
        kind += ALL - SAFE;
    for (int i = 0; i < kinds[kind].n; i++)
        u[i] = et_rng_uniform(r);
    return eti_augment_of((enum eti_augment_kind)kind, severity, H, W, u);
}

void
eti_augment_apply(struct et_canvas *c, const struct eti_augment *a, uint8_t *spare)
{
    kinds[a->kind].apply(c, a->value, spare);
}
