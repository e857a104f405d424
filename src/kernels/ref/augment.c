/* SPDX-License-Identifier: Apache-2.0 */
/* augment.c: pictures shown, turned and changed: see et_image_augment.
 *
 * A pixel is asked for, and asks for what it is made of: nothing is kept but a table of
 * 256 bytes a channel for each change, where a change has one. */
#include "kernels/ref/array.h"

enum { CHANNELS = 4, BYTES = 256, NEAREST = 0, BILINEAR = 1, BICUBIC = 2 };

struct picture {
    const struct etk_array *raw;
    struct et_shown row;
    struct et_pixel_change change[ET_MAX_CHANGES];
    int64_t C, H, W, h, w; /* of the raw image; of the result */
    uint8_t table[ET_MAX_CHANGES][CHANNELS][BYTES];
};

/* ---- one axis ---- */

struct axis {
    double origin, step;
    int64_t lo, hi, from, to;
    double filter_width; /* in pixels of the image, to each side */
    int filter;
};

static double
sane(double v)
{
    return fabs(v) <= ldexp(1, 30) ? v : 0;
}

static int64_t
bounded(double v, int64_t lo, int64_t hi)
{
    return !(v > (double)lo) ? lo : v < (double)hi ? (int64_t)v : hi;
}

static struct axis
axis_of(const struct et_shown_axis *a, int32_t filter, int64_t size)
{
    struct axis x = {.origin = sane(a->origin),
                     .step = sane(a->step),
                     .from = a->from,
                     .to = a->to,
                     .filter = filter == BILINEAR || filter == BICUBIC ? filter : 0};
    x.lo = bounded(a->lo, 0, size - 1);
    x.hi = bounded(a->hi, x.lo + 1, size);
    x.filter_width = fmax(1, fabs(x.step)) * (filter == BICUBIC ? 2 : 1);
    return x;
}

static double
middle(const struct axis *a, int64_t i)
{
    return a->origin + ((double)(i - a->from) + 0.5) * a->step;
}

static double
filter_at(int filter, double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (filter == BILINEAR)
        return x < 1 ? 1 - x : 0;
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/* The values [*FIRST, + returned) of the image make value I; what weights add up to. */
static int64_t
taps(const struct axis *a, int64_t i, int64_t *first, double *sum)
{
    double at = middle(a, i);
    *first = bounded(floor(at - a->filter_width + 0.5), a->lo, a->hi - 1);
    int64_t end = bounded(floor(at + a->filter_width + 0.5), *first + 1, a->hi);
    double scale = (a->filter == BICUBIC ? 2 : 1) / a->filter_width;
    *sum = 0;
    for (int64_t k = *first; k < end; k++)
        *sum += filter_at(a->filter, ((double)k - at + 0.5) * scale);
    return end - *first;
}

static int
weight_bits(const struct axis *a)
{
    return fabs(a->step) >= 8 ? 16 : fabs(a->step) >= 4 ? 15 : 14;
}

/* Of the image's value K, as a whole number. */
static int64_t
weight(const struct axis *a, int64_t i, int64_t k)
{
    int64_t first, n;
    double sum, at = middle(a, i), w;
    double scale = (a->filter == BICUBIC ? 2 : 1) / a->filter_width;
    n = taps(a, i, &first, &sum);
    if (fabs(sum) < 0.1) /* all that it is to see is out of sight */
        w = k == (at < (double)first ? first : first + n - 1);
    else
        w = filter_at(a->filter, ((double)k - at + 0.5) * scale) / sum;
    return (int16_t)lrint(ldexp(w, weight_bits(a)));
}

/* ---- what is shown ---- */

static int64_t
raw_byte(const struct picture *p, int64_t c, int64_t y, int64_t x)
{
    return etk_get_int(p->raw, etk_offset4(&p->raw->d, p->row.sample, c, y, x));
}

/* SUM / 2^BITS, rounded, at least 0 and at most MOST. */
static int64_t
shifted(int64_t sum, int bits, int64_t most)
{
    int64_t v = (sum + ((int64_t)1 << bits) / 2) >> bits;
    return v < 0 ? 0 : v > most ? most : v;
}

/* Bicubic: rows first, and a byte in between. Else columns first, and 14 bits. */
static int64_t
resampled(const struct picture *p, const struct axis *y, const struct axis *x,
          int64_t c, int64_t i, int64_t j)
{
    enum { KEPT = 6 };
    const bool rows_first = y->filter == BICUBIC;
    const struct axis *outer = rows_first ? y : x, *inner = rows_first ? x : y;
    int64_t o = rows_first ? i : j, n = rows_first ? j : i, first[2], sum = 0;
    double unused;
    int64_t n_outer = taps(outer, o, &first[0], &unused);
    int64_t n_inner = taps(inner, n, &first[1], &unused);
    for (int64_t a = first[0]; a < first[0] + n_outer; a++) {
        int64_t line = 0;
        for (int64_t b = first[1]; b < first[1] + n_inner; b++)
            line += weight(inner, n, b) *
                    (rows_first ? raw_byte(p, c, a, b) << KEPT : raw_byte(p, c, b, a));
        line = rows_first
                   ? shifted(line, weight_bits(inner) + KEPT, 255)
                   : shifted(line, weight_bits(inner) - KEPT, (int64_t)255 << KEPT);
        sum += weight(outer, o, a) * line;
    }
    if (!rows_first)
        return shifted(sum, weight_bits(outer) + KEPT, 255);
    sum = shifted(sum, weight_bits(outer) - KEPT, (int64_t)255 << KEPT);
    return shifted(sum, KEPT, 255);
}

static int64_t
byte_of_axes(const struct picture *p, int64_t c, int64_t i, int64_t j)
{
    struct axis y = axis_of(&p->row.y, p->row.filter, p->H);
    struct axis x = axis_of(&p->row.x, p->row.filter, p->W);
    if (i < y.from || i >= y.to || j < x.from || j >= x.to)
        return 0;
    if (y.filter != NEAREST)
        return resampled(p, &y, &x, c, i, j);
    return raw_byte(p, c, bounded(floor(middle(&y, i)), y.lo, y.hi - 1),
                    bounded(floor(middle(&x, j)), x.lo, x.hi - 1));
}

static int64_t
byte_before(const struct picture *p, int64_t c, int64_t y, int64_t x)
{
    bool inside = y >= 0 && y < p->row.h && x >= 0 && x < p->row.w;
    return inside ? byte_of_axes(p, c, y, x) : 0;
}

static int64_t
to_place(double v)
{
    double most = ldexp(1, 29);
    return llrint(ldexp(v < -most ? -most : v > most ? most : v, 32));
}

static int64_t
place(const double *m, int64_t i, int64_t j)
{
    double a = sane(m[0]), b = sane(m[1]), c = sane(m[2]);
    uint64_t begin = (uint64_t)to_place(a * 0.5 + b * ((double)i + 0.5) + c);
    return (int64_t)(begin + (uint64_t)j * (uint64_t)to_place(a));
}

static int64_t
byte_between(const struct picture *p, int64_t c, int64_t y, int64_t x)
{
    const uint64_t half = (uint64_t)1 << 31;
    y = (int64_t)((uint64_t)y - half);
    x = (int64_t)((uint64_t)x - half);
    int64_t i = y >> 32, j = x >> 32, down = y >> 22 & 1023, over = x >> 22 & 1023;
    int64_t sum = (1024 - down) * (1024 - over) * byte_before(p, c, i, j) +
                  (1024 - down) * over * byte_before(p, c, i, j + 1) +
                  down * (1024 - over) * byte_before(p, c, i + 1, j) +
                  down * over * byte_before(p, c, i + 1, j + 1);
    return shifted(sum, 20, 255);
}

static int64_t
shown_byte(const struct picture *p, int64_t c, int64_t i, int64_t j)
{
    const struct et_shown *v = &p->row;
    if (v->turned != 1 && v->turned != 2)
        return byte_of_axes(p, c, i, j);
    if (i < v->edge[0] || i >= v->edge[1] || j < v->edge[2] || j >= v->edge[3])
        return 0;
    int64_t y = place(v->turn + 3, i, j), x = place(v->turn, i, j);
    return v->turned == 1 ? byte_before(p, c, y >> 32, x >> 32)
                          : byte_between(p, c, y, x);
}

/* ---- changes ---- */

static uint8_t
cut(float v)
{
    return (uint8_t)(!(v >= 0) ? 0 : v < 255 ? (int)v : 255);
}

static uint8_t
grey_of(const uint8_t *p)
{
    return cut(0.2989f * p[0] + 0.587f * p[1] + 0.114f * p[2]);
}

static void
turn_hue(float shift, uint8_t *p)
{
    int high = p[0], low = p[0], sector = 0;
    for (int c = 1; c < 3; c++) {
        high = p[c] > high ? p[c] : high;
        low = p[c] < low ? p[c] : low;
    }
    float range = (float)(high - low), from[3], h = 0;
    for (int c = 0; c < 3; c++)
        from[c] = (float)(high - p[c]) / range;
    if (high > low)
        h = p[0] == high   ? from[2] - from[1]
            : p[1] == high ? 2 + from[0] - from[2]
                           : 4 + from[1] - from[0];
    h = (h < 0 ? h + 6 : h) + (fabsf(shift) <= 6 ? shift : 0);
    h -= 6 * floorf(h / 6);
    sector = (int)h;
    float s = high ? range / (float)high : 0, v = (float)high / 255;
    float f = h - (float)sector;
    float unit[] = {v, (1 - s * f) * v, (s * f + (1 - s)) * v, (1 - s) * v};
    static const char parts[6][4] = {"023", "103", "302", "310", "230", "031"};
    for (int c = 0; c < 3; c++)
        p[c] = cut(fminf(1, fmaxf(0, unit[parts[sector % 6][c] - '0'])) * 255.999f);
}

/* Change K of pixel (I, J) where it is not a table. */
static void
change_pixel(const struct picture *p, int k, int64_t i, int64_t j, uint8_t *v)
{
    const struct et_pixel_change *t = &p->change[k];
    bool inside =
        i >= t->y && i < (int64_t)t->y + t->h && j >= t->x && j < (int64_t)t->x + t->w;
    if (t->kind == ET_CHANGE_ERASE && inside)
        for (int64_t c = 0; c < p->C; c++)
            v[c] = (uint8_t)t->value;
    if (p->C != 3)
        return;
    float grey = grey_of(v);
    if (t->kind == ET_CHANGE_HUE)
        turn_hue(t->own, v);
    for (int c = 0; c < 3; c++)
        if (t->kind == ET_CHANGE_SATURATION)
            v[c] = cut(v[c] * t->own + grey * t->other);
        else if (t->kind == ET_CHANGE_GREY)
            v[c] = (uint8_t)grey;
}

static bool
is_table(int32_t kind)
{
    return kind != ET_CHANGE_SATURATION && kind != ET_CHANGE_HUE &&
           kind != ET_CHANGE_GREY && kind != ET_CHANGE_ERASE;
}

/* Pixel (I, J) after N changes. */
static void
pixel_at(const struct picture *p, int n, int64_t i, int64_t j, uint8_t *v)
{
    for (int64_t c = 0; c < p->C; c++)
        v[c] = (uint8_t)shown_byte(p, c, i, j);
    for (int k = 0; k < n; k++)
        for (int64_t c = 0; c < p->C; c++)
            if (is_table(p->change[k].kind))
                v[c] = p->table[k][c][v[c]];
            else if (c == 0)
                change_pixel(p, k, i, j, v);
}

static uint8_t
stretched(const int64_t *times, int v)
{
    int low = 255, high = 0;
    for (int i = 0; i < BYTES; i++)
        if (times[i]) {
            low = i < low ? i : low;
            high = i;
        }
    if (low >= high)
        return (uint8_t)v;
    return cut((float)(v - low) / ((float)(high - low) * (1.0f / 255)));
}

static uint8_t
evened(const int64_t *times, int64_t n, int v)
{
    int64_t below = 0, largest = 0;
    for (int i = 0; i < BYTES; i++) {
        largest = times[i] ? times[i] : largest;
        below += i < v ? times[i] : 0;
    }
    int64_t step = (n - largest) / 255;
    int64_t to = step ? (below + step / 2) / step : v;
    return (uint8_t)(to < 255 ? to : 255);
}

/* What change T makes of byte V, of a channel that has each byte so many TIMES, in a
 * picture of N pixels whose grey adds up to SUM. */
static uint8_t
changed(const struct et_pixel_change *t, const int64_t *times, int64_t n, int64_t sum,
        int v)
{
    int bits = t->value < 0 ? 0 : t->value > 8 ? 8 : t->value;
    switch (t->kind) {
    case ET_CHANGE_BLEND:
        return cut((float)v * t->own + t->other);
    case ET_CHANGE_CONTRAST:
        return cut((float)v * t->own + (float)((double)sum / (double)n) * t->other);
    case ET_CHANGE_INVERT:
        return (uint8_t)~v;
    case ET_CHANGE_POSTERIZE:
        return (uint8_t)(v >> (8 - bits) << (8 - bits));
    case ET_CHANGE_SOLARIZE:
        return (uint8_t)(v < t->value ? v : ~v);
    case ET_CHANGE_AUTOCONTRAST:
        return stretched(times, v);
    case ET_CHANGE_EQUALIZE:
        return evened(times, n, v);
    default:
        return (uint8_t)v;
    }
}

/* The table of change K, of all pixels before it. */
static void
make_table(struct picture *p, int k)
{
    int64_t times[CHANNELS][BYTES] = {{0}}, sum = 0;
    uint8_t v[CHANNELS];
    for (int64_t i = 0; i < p->h; i++)
        for (int64_t j = 0; j < p->w; j++) {
            pixel_at(p, k, i, j, v);
            sum += p->C == 3 ? grey_of(v) : v[0];
            for (int64_t c = 0; c < p->C; c++)
                times[c][v[c]]++;
        }
    for (int64_t c = 0; c < p->C; c++)
        for (int b = 0; b < BYTES; b++)
            p->table[k][c][b] = changed(&p->change[k], times[c], p->h * p->w, sum, b);
}

/* ---- the op ---- */

/* Row N, number by number. */
static void
read_row(const struct etk_array *rows, int64_t n, struct picture *p)
{
    int32_t v[ET_SHOWN_NUMBERS + ET_MAX_CHANGES * ET_CHANGE_NUMBERS] = {0};
    const int64_t numbers = rows->d.shape[1];
    for (int64_t k = 0; k < numbers; k++)
        v[k] =
            (int32_t)etk_get_int(rows, n * rows->d.stride[0] + k * rows->d.stride[1]);
    memcpy(&p->row, v, sizeof p->row);
    memcpy(p->change, v + ET_SHOWN_NUMBERS, sizeof p->change);
    p->row.n_changes = (int32_t)bounded(
        p->row.n_changes, 0, (numbers - ET_SHOWN_NUMBERS) / ET_CHANGE_NUMBERS);
}

void
etk_ref_image_augment(const struct etk_ref *r)
{
    const struct etk_array *raw = &r->in[0], *table = &r->in[2], *out = &r->out[0];
    struct picture p = {.raw = raw, .C = raw->d.shape[1]};
    uint8_t v[CHANNELS] = {0};
    p.H = raw->d.shape[2];
    p.W = raw->d.shape[3];
    p.h = out->d.shape[2];
    p.w = out->d.shape[3];
    for (int64_t n = 0; n < out->d.shape[0]; n++) {
        read_row(&r->in[1], n, &p);
        bool exists = p.row.sample >= 0 && p.row.sample < raw->d.shape[0];
        for (int k = 0; exists && k < p.row.n_changes; k++)
            if (is_table(p.change[k].kind))
                make_table(&p, k);
        for (int64_t at = 0; at < p.h * p.w; at++) {
            if (exists)
                pixel_at(&p, p.row.n_changes, at / p.w, at % p.w, v);
            for (int64_t c = 0; c < p.C; c++) {
                int64_t to = etk_offset4(&out->d, n, c, at / p.w, at % p.w);
                if (exists)
                    etk_move(out, to, table,
                             c * table->d.stride[0] + v[c] * table->d.stride[1]);
                else
                    etk_set_nothing(out, to);
            }
        }
    }
}
