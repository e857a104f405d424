/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of every form against what Pillow finds in them: whole, as grey, in parts,
 * shrunk; and what is refused. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/image/decode.h"
#include "etude/rng.h"
#include "t/image/pictures.h"
#include "t/tap.h"

static struct eti_decoder decoder;
static struct picture_file file;

static const struct form {
    const char *name, *format;
    int C, tolerance;
} forms[] = {
#ifdef ET_JPEG
    {"420.jpg", "JPEG", 3, 1},         {"444.jpg", "JPEG", 3, 1},
    {"422.jpg", "JPEG", 3, 1}, /* EXIF says that it lies on its side */
    {"progressive.jpg", "JPEG", 3, 1}, {"grey.jpg", "JPEG", 1, 1},
    {"cmyk.jpg", "JPEG", 3, 1},
#endif
    {"rgb.png", "PNG", 3, 0},          {"alpha.png", "PNG", 3, 0},
    {"grey.png", "PNG", 1, 0},         {"bits.png", "PNG", 1, 0},
    {"palette.png", "PNG", 3, 0},      {"deep.png", "PNG", 3, 0},
    {"interlaced.png", "PNG", 3, 0},
#ifdef ET_WEBP
    {"lossy.webp", "WebP", 3, 1},      {"lossless.webp", "WebP", 3, 0},
#endif
};
enum { N_FORMS = sizeof forms / sizeof *forms };

static uint8_t
at(const struct et_pixels *p, int64_t y, int64_t x, int c)
{
    return p->data[y * p->stride_y + x * p->stride_x + c * p->stride_c];
}

/* Reads a part of FILE; the end of the test where that fails. */
static struct eti_picture
read_part(struct eti_picture_want want)
{
    struct et_error why = {0};
    struct eti_picture p = {.shrunk = 0};
    if (eti_decoder_open(&decoder, file.bytes, file.n, &why) != ET_OK ||
        eti_decoder_read(&decoder, &want, &p, &why) != ET_OK)
        bail("%s", why.message);
    return p;
}

/* How far P, all of FILE, is from Pillow's pixels, or from their grey: at most, and on
 * average. */
static int
distance(const struct et_pixels *p, double *mean)
{
    int worst = 0, sum = 0;
    for (int64_t y = 0; y < p->H; y++)
        for (int64_t x = 0; x < p->W; x++) {
            const uint8_t *v = file.rgb + (y * file.W + x) * 3;
            uint8_t grey;
            eti_grey_of_rgb(v, 1, &grey);
            for (int c = 0; c < p->C; c++) {
                int d = abs(at(p, y, x, c) - (p->C == 1 ? grey : v[c]));
                worst = d > worst ? d : worst;
                sum += d;
            }
        }
    *mean = (double)sum / (double)(p->H * p->W * p->C);
    return worst;
}

static void
whole(const struct form *f)
{
    picture_load(&file, f->name);
    struct eti_picture p = read_part((struct eti_picture_want){.C = 3});
    const struct eti_picture_info *info = &decoder.info;
    ok(strcmp(info->format, f->format) == 0 && info->C == f->C && info->H == file.H &&
           info->W == file.W && p.pixels.H == file.H && p.pixels.W == file.W,
       "%s is a %s picture of %d x %d pixels and %d channels", f->name, f->format,
       file.W, file.H, f->C);
    double mean;
    int off = distance(&p.pixels, &mean);
    ok(off <= f->tolerance, "its pixels are Pillow's (%d off)", off);
    p = read_part((struct eti_picture_want){.C = 1});
    off = distance(&p.pixels, &mean);
    /* A JPEG's luma is not that of colours which are cut off at 0 and 255. */
    bool luma = strcmp(f->format, "JPEG") == 0;
    ok(p.pixels.C == 1 && (luma ? mean < 0.5 : off <= f->tolerance),
       "and so is its grey (%d off, %.2f on average)", off, mean);
}

/* Parts have the pixels that they have in the whole picture, to the bit. */
static void
parts(const struct form *f)
{
    static uint8_t all[1 << 14];
    struct et_rng r = et_rng_at(5, ET_RNG_USER, 0);
    picture_load(&file, f->name);
    struct eti_picture p = read_part((struct eti_picture_want){.C = 3});
    eti_pixels_copy(&p.pixels, all);
    int wrong = 0;
    for (int i = 0; i < 200; i++) {
        struct eti_picture_want want = {.C = 3};
        want.h = 1 + (int64_t)et_rng_below(&r, (uint64_t)file.H);
        want.w = 1 + (int64_t)et_rng_below(&r, (uint64_t)file.W);
        want.y = (int64_t)et_rng_below(&r, (uint64_t)(file.H - want.h + 1));
        want.x = (int64_t)et_rng_below(&r, (uint64_t)(file.W - want.w + 1));
        p = read_part(want);
        wrong += p.pixels.H != want.h || p.pixels.W != want.w;
        wrong += p.y != (double)want.y || p.x != (double)want.x || p.shrunk != 1;
        for (int64_t y = 0; y < want.h; y++)
            for (int64_t x = 0; x < want.w; x++)
                for (int c = 0; c < 3; c++)
                    wrong += at(&p.pixels, y, x, c) !=
                             all[((want.y + y) * file.W + want.x + x) * 3 + c];
    }
    is_int(wrong, 0, "%s: 200 parts of it are what they are of the whole", f->name);
    p = read_part((struct eti_picture_want){.C = 3, .y = 2, .x = 3, .w = 4});
    uint8_t again[1 << 14];
    eti_pixels_copy(&p.pixels, again);
    ok(p.pixels.H == file.H && p.pixels.W == file.W && p.y == 0 && p.x == 0 &&
           memcmp(again, all, (size_t)(file.H * file.W * 3)) == 0,
       "%s: a part of no rows is all of it", f->name);
}

#ifdef ET_JPEG

/* The mean of a block of the picture, channel C. */
static double
block_mean(int64_t y, int64_t x, int size, int c)
{
    double sum = 0;
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++)
            sum += file.rgb[((y + i) * file.W + x + j) * 3 + c];
    return sum / (size * size);
}

/* The root of the mean square of what a shrunk picture's pixels are off the means of
 * what they cover. */
static double
shrunk_distance(const struct eti_picture *p, const struct eti_picture_want *want)
{
    double sum = 0;
    int n = 0;
    for (int64_t y = 0; y < p->pixels.H; y++)
        for (int64_t x = 0; x < p->pixels.W; x++) {
            int64_t top = (int64_t)p->y + y * p->shrunk,
                    left = (int64_t)p->x + x * p->shrunk;
            if (top < want->y || left < want->x ||
                top + p->shrunk > want->y + want->h ||
                left + p->shrunk > want->x + want->w)
                continue;
            double d = at(&p->pixels, y, x, 1) - block_mean(top, left, p->shrunk, 1);
            sum += d * d;
            n++;
        }
    return n ? sqrt(sum / n) : 1e9;
}

static void
shrinks(void)
{
    static const struct {
        int64_t y, x, h, w, out_h, out_w;
        int by;
    } cases[] = {
        {0, 0, 37, 50, 18, 25, 2}, {0, 0, 37, 50, 19, 25, 1}, {5, 3, 32, 40, 8, 10, 4},
        {9, 17, 24, 32, 3, 4, 8},  {9, 17, 24, 32, 3, 5, 4},  {1, 1, 9, 9, 1, 1, 8},
    };
    picture_load(&file, "444.jpg");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct eti_picture_want want = {.C = 3,
                                        .y = cases[i].y,
                                        .x = cases[i].x,
                                        .h = cases[i].h,
                                        .w = cases[i].w,
                                        .out_h = cases[i].out_h,
                                        .out_w = cases[i].out_w};
        struct eti_picture p = read_part(want);
        double by = p.shrunk;
        is_int(p.shrunk, cases[i].by, "%lld x %lld for %lld x %lld come smaller by %d",
               (long long)want.h, (long long)want.w, (long long)want.out_h,
               (long long)want.out_w, cases[i].by);
        ok(p.y <= (double)want.y && p.x <= (double)want.x &&
               p.y + by * (double)p.pixels.H >= (double)(want.y + want.h) &&
               p.x + by * (double)p.pixels.W >= (double)(want.x + want.w),
           "and they cover the part");
        /* The transform to fewer values is no mean; green is a ramp, which both keep.
         */
        double off = shrunk_distance(&p, &want);
        ok(p.shrunk == 1 || off < 3 || cases[i].h < 16,
           "each is the mean of what it covers (%.2f off)", off);
    }
}

/* Bytes that belong nowhere, before the frame's header, are passed over. */
static void
warned(void)
{
    static struct picture_file was;
    struct eti_picture_want want = {.C = 3};
    struct eti_picture p;
    struct et_error why = {0};
    picture_load(&was, "444.jpg");
    picture_load(&file, "444.jpg");
    size_t at = 2;
    while (at + 4 < was.n && was.bytes[at] == 0xff &&
           (was.bytes[at + 1] & 0xf0) != 0xc0)
        at += 2 + (size_t)(was.bytes[at + 2] << 8 | was.bytes[at + 3]);
    memcpy(file.bytes + at, "\0\0\0", 3);
    memcpy(file.bytes + at + 3, was.bytes + at, was.n - at);
    ok(eti_decoder_open(&decoder, file.bytes, was.n + 3, &why) == ET_OK &&
           eti_decoder_read(&decoder, &want, &p, &why) == ET_OK && p.pixels.H == was.H,
       "what a library only warns of is read %s", why.message);
}

#endif

/* Masks: what the file holds, and not what it shows. */
static void
masks(void)
{
    struct et_error why = {0};
    struct eti_picture_want want = {.C = 1, .classes = true};
    picture_load(&file, "palette.png");
    struct eti_picture p = read_part(want);
    int most = 0, shown = 0;
    for (int64_t y = 0; y < p.pixels.H; y++)
        for (int64_t x = 0; x < p.pixels.W; x++) {
            const uint8_t *v = file.rgb + (y * file.W + x) * 3;
            most = at(&p.pixels, y, x, 0) > most ? at(&p.pixels, y, x, 0) : most;
            /* Equal numbers, equal colours: against the pixel before. */
            if (x > 0)
                shown += (at(&p.pixels, y, x, 0) == at(&p.pixels, y, x - 1, 0)) !=
                         (memcmp(v, v - 3, 3) == 0);
        }
    ok(most == 11 && shown == 0, "of a palette a mask has the numbers (largest %d)",
       most);
    picture_load(&file, "bits.png");
    p = read_part(want);
    bool bits = true;
    for (int64_t i = 0; i < file.H * file.W; i++)
        bits = bits && p.pixels.data[i] * 255 == file.rgb[3 * i];
    ok(bits, "of one bit 0 and 1");
    picture_load(&file, "rgb.png");
    ok(eti_decoder_open(&decoder, file.bytes, file.n, &why) == ET_OK &&
           eti_decoder_read(&decoder, &want, &p, &why) == ET_EFORMAT &&
           strstr(why.message, "colours"),
       "colours are no mask: %s", why.message);
}

/* What opening or reading the first N bytes of FILE says. */
static const char *
refusal(size_t n, et_status want_status)
{
    static struct et_error why;
    struct eti_picture_want want = {.C = 3};
    struct eti_picture p;
    why = (struct et_error){0};
    uint8_t *exact = malloc(n ? n : 1);
    memcpy(exact, file.bytes, n);
    et_status status = eti_decoder_open(&decoder, exact, n, &why);
    if (status == ET_OK)
        status = eti_decoder_read(&decoder, &want, &p, &why);
    free(exact);
    return status == want_status ? why.message : "another status";
}

static void
refusals(void)
{
    for (int i = 0; i < N_FORMS; i++) {
        picture_load(&file, forms[i].name);
        const char *said = refusal(file.n * 2 / 3, ET_EFORMAT);
        ok(strstr(said, forms[i].format) && strstr(said, "cannot be read"),
           "%s cut to two thirds: %s", forms[i].name, said);
    }
    ok(strstr(refusal(0, ET_EFORMAT), "empty"), "an empty file is no picture");
    memcpy(file.bytes, "GIF89a", 6);
    ok(strstr(refusal(file.n, ET_EFORMAT), "does not begin as"),
       "nor is what begins otherwise");
    picture_load(&file, "rgb.png");
    decoder.max_pixels = file.H * file.W - 1;
    ok(strstr(refusal(file.n, ET_EFORMAT), "21 x 15"),
       "a picture of more pixels than are read is refused");
    decoder.max_pixels = 0;
    struct et_error why = {0};
    struct eti_picture p;
    ok(eti_decoder_open(&decoder, file.bytes, file.n, &why) == ET_OK &&
           eti_decoder_read(&decoder, &(struct eti_picture_want){.C = 4}, &p, &why) ==
               ET_EINVAL,
       "four channels cannot be had: %s", why.message);
}

int
main(void)
{
    for (int i = 0; i < N_FORMS; i++)
        whole(&forms[i]);
    for (int i = 0; i < N_FORMS; i++)
        parts(&forms[i]);
#ifdef ET_JPEG
    shrinks();
    warned();
#endif
    masks();
    refusals();
    eti_decoder_free(&decoder);
    return done();
}
