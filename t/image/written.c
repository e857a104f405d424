/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures that are written and read again, the colours of classes, and files at the
 * edges of what is read: as many pixels and scans as may be, masks of more bits. */
#include "config.h"

#include <math.h>
#include <png.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef ET_JPEG
#include <jpeglib.h>
#endif

#include "core/image/class_color.h"
#include "core/image/decode.h"
#include "core/image/encode.h"
#include "etude/rng.h"
#include "t/image/pictures.h"
#include "t/tap.h"

enum { MOST = 1 << 16 };

static struct et_ctx *cx;
static struct eti_decoder decoder;
static char dir[] = "/tmp/etude-written-XXXXXX";

/* Reads BYTES as WANT says; false with WHY's message. */
static bool
reads(const uint8_t *bytes, size_t n, const struct eti_picture_want *want,
      struct eti_picture *out, struct et_error *why)
{
    *why = (struct et_error){0};
    return eti_decoder_open(&decoder, bytes, n, why) == ET_OK &&
           eti_decoder_read(&decoder, want, out, why) == ET_OK;
}

static size_t
load(const char *path, uint8_t *out)
{
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(out, 1, MOST, f) : 0;
    if (f)
        fclose(f);
    return n;
}

/* ---- written, and read again ---- */

static bool
same_back(const char *path, const uint8_t *want, int64_t w, int64_t h, int C,
          bool classes)
{
    static uint8_t file[MOST], got[MOST];
    struct eti_picture p;
    struct et_error why;
    size_t n = load(path, file);
    if (!reads(file, n, &(struct eti_picture_want){.C = C, .classes = classes}, &p,
               &why)) {
        diag("%s", why.message);
        return false;
    }
    eti_pixels_copy(&p.pixels, got);
    return p.pixels.W == w && p.pixels.H == h &&
           memcmp(got, want, (size_t)(w * h * C)) == 0;
}

static void
test_back(void)
{
    static const int64_t sizes[][2] = {{1, 1},   {7, 3},  {3, 7},
                                       {60, 41}, {1, 90}, {90, 1}};
    static uint8_t rgb[MOST], mask[MOST];
    struct et_rng r = et_rng_at(1, ET_RNG_USER, 0);
    char path[512];
    int wrong = 0, masks = 0, shown = 0;
    snprintf(path, sizeof path, "%s/a.png", dir);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int64_t w = sizes[i][0], h = sizes[i][1];
        for (int64_t k = 0; k < w * h * 3; k++)
            rgb[k] = (uint8_t)et_rng_u32(&r);
        wrong += eti_png_write(cx, path, rgb, w, h) != ET_OK ||
                 !same_back(path, rgb, w, h, 3, false);
        for (int64_t k = 0; k < w * h; k++) {
            mask[k] = (uint8_t)et_rng_u32(&r);
            eti_voc_color(mask[k], rgb + 3 * k);
        }
        bool written = eti_png_write_mask(cx, path, mask, w, h) == ET_OK;
        masks += !written || !same_back(path, mask, w, h, 1, true);
        shown += !written || !same_back(path, rgb, w, h, 3, false);
    }
    is_int(wrong, 0,
           "pictures that are written are what they were, whatever their shape");
    is_int(masks, 0, "masks have the numbers that they had");
    is_int(shown, 0, "and show them in Pascal VOC's colours");
    unlink(path);
}

static bool
is_there(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

/* What cannot be written leaves what was there, and nothing else. */
static void
test_not_written(void)
{
    static const int64_t sizes[][2] = {{0, 1}, {1, 0}, {65537, 1}, {1, 65537}};
    static uint8_t rgb[MOST], before[MOST], after[MOST];
    char path[512];
    struct rlimit was, little;
    int wrong = 0;
    struct et_rng r = et_rng_at(2, ET_RNG_USER, 0);
    for (int k = 0; k < MOST; k++)
        rgb[k] = (uint8_t)et_rng_u32(&r);
    snprintf(path, sizeof path, "%s/a.png", dir);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char size[64];
        snprintf(size, sizeof size, "%lld x %lld", (long long)sizes[i][0],
                 (long long)sizes[i][1]);
        wrong += eti_png_write(cx, path, rgb, sizes[i][0], sizes[i][1]) != ET_EINVAL ||
                 !strstr(et_error_get(cx)->message, size);
        et_error_clear(cx);
    }
    is_int(wrong, 0, "pictures without pixels, and wider than 65536, are refused");
    bool written = eti_png_write(cx, path, rgb, 10, 10) == ET_OK;
    size_t n = load(path, before);
    getrlimit(RLIMIT_FSIZE, &was);
    little = was;
    little.rlim_cur = 1000;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &little);
    et_status s = eti_png_write(cx, path, rgb, 100, 100);
    setrlimit(RLIMIT_FSIZE, &was);
    ok(written && s == ET_EIO && strstr(et_error_get(cx)->message, "a.png") &&
           load(path, after) == n && memcmp(before, after, n) == 0,
       "a picture that there is no room for leaves the one that was there");
    ok(!is_there("a.png.tmp"), "and nothing of its own");
    et_error_clear(cx);
    unlink(path);
    snprintf(path, sizeof path, "%s/folder", dir);
    mkdir(path, 0777);
    s = eti_png_write(cx, path, rgb, 10, 10);
    ok(s == ET_EIO && is_there("folder") && !is_there("folder.tmp"),
       "a folder is not replaced by a picture");
    et_error_clear(cx);
    rmdir(path);
    snprintf(path, sizeof path, "%s/none/a.png", dir);
    ok(eti_png_write(cx, path, rgb, 10, 10) == ET_EIO &&
           strstr(et_error_get(cx)->message, "none/a.png"),
       "a folder that is not there is named");
    et_error_clear(cx);
}

/* ---- colours ---- */

/* As Pascal VOC's labelcolormap has it. */
static void
voc_reference(int class, int *rgb)
{
    rgb[0] = rgb[1] = rgb[2] = 0;
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 3; k++)
            rgb[k] += (class >> (3 * i + k) & 1) << (7 - i);
}

static void
test_voc(void)
{
    int wrong = 0;
    uint8_t got[3];
    for (int class = 0; class < 256; class ++) {
        int want[3];
        voc_reference(class, want);
        eti_voc_color(class, got);
        for (int k = 0; k < 3; k++)
            wrong += got[k] != want[k];
    }
    is_int(wrong, 0, "256 classes have Pascal VOC's colours");
    eti_voc_color(15, got);
    ok(got[0] == 192 && got[1] == 128 && got[2] == 128, "a person is 192, 128, 128");
    eti_voc_color(-1, got);
    ok(got[0] == 255 && got[1] == 255 && got[2] == 255, "what counts nothing is white");
}

/* Of HSV with saturation and value 1, H in [0, 6). */
static double
channel_of(double h, int k)
{
    double from_own = fmod(h - 2 * k + 9, 6) - 3;
    return fmin(1, fmax(0, 2 - fabs(from_own)));
}

static void
test_class_colors(void)
{
    uint8_t got[3];
    int wrong = 0;
    for (int class = 1; class < 500; class ++) {
        double h = 6 * fmod(class * 0.618033988749895, 1);
        wrong += !eti_class_color(class, got);
        for (int k = 0; k < 3; k++)
            wrong += fabs(got[k] - 255 * channel_of(h, k)) > 1;
    }
    is_int(wrong, 0,
           "classes have bright colours, a golden part of a turn from each other");
    ok(!eti_class_color(0, got) && got[0] == 0 && got[1] == 0 && got[2] == 0,
       "the ground has none");
    ok(!eti_class_color(-1, got) && got[0] == 96 && got[2] == 96,
       "and what counts nothing is grey");
}

/* ---- edges of what is read ---- */

static void
test_most(void)
{
    static struct picture_file file;
    struct et_error why = {0};
    struct eti_picture p;
    picture_load(&file, "rgb.png");
    decoder.max_pixels = file.H * file.W;
    ok(reads(file.bytes, file.n, &(struct eti_picture_want){.C = 3}, &p, &why),
       "a picture of as many pixels as may be is read");
    decoder.max_pixels = 0;
    int refused = 0;
    for (int C = -1; C < 6; C++)
        refused +=
            !reads(file.bytes, file.n, &(struct eti_picture_want){.C = C}, &p, &why) &&
            strstr(why.message, "1 or 3 channels");
    is_int(refused, 5, "pictures have one channel, or three, and no other number");
    picture_load(&file, "444.jpg");
    struct eti_picture_want want = {.C = 3, .out_h = 3};
    ok(!reads(file.bytes, file.n, &want, &p, &why) || p.shrunk == 1,
       "a height alone is no size to shrink to");
    want = (struct eti_picture_want){.C = 3, .out_w = 3};
    ok(!reads(file.bytes, file.n, &want, &p, &why) || p.shrunk == 1, "nor is a width");
}

/* Grey of 16 bits, which a mask has not. */
static void
test_deep_mask(void)
{
    static uint8_t file[MOST];
    uint16_t grey[5 * 4];
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = 5,
                       .height = 4,
                       .format = PNG_FORMAT_LINEAR_Y};
    png_alloc_size_t n = sizeof file;
    struct eti_picture p;
    struct et_error why;
    for (int i = 0; i < 20; i++)
        grey[i] = (uint16_t)(i * 256);
    if (!png_image_write_to_memory(&image, file, &n, 0, grey, 0, NULL))
        bail("no PNG");
    ok(reads(file, n, &(struct eti_picture_want){.C = 1}, &p, &why) &&
           !reads(file, n, &(struct eti_picture_want){.C = 1, .classes = true}, &p,
                  &why) &&
           strstr(why.message, "up to 8 bits"),
       "grey of 16 bits is a picture, and no mask");
}

#ifdef ET_WEBP

/* The header of an animation of 7 x 5 pixels. */
static void
test_animation(void)
{
    uint8_t file[30] = "RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\x02\0\0\0\x06\0\0\x04";
    struct eti_picture p;
    struct et_error why;
    ok(!reads(file, sizeof file, &(struct eti_picture_want){.C = 3}, &p, &why) &&
           strstr(why.message, "animation"),
       "a WebP animation is no picture: %s", why.message);
}

#endif

#ifdef ET_JPEG

/* A progressive picture in SCANS: the first for the means, then each frequency of each
 * channel apart, without its last bit and then with it. */
static size_t
many_scans(int scans, uint8_t *out)
{
    static jpeg_scan_info script[400];
    struct jpeg_compress_struct j;
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL;
    unsigned long n = 0;
    uint8_t row[16 * 3];
    JSAMPROW rows[] = {row};
    int k = 1;
    script[0] = (jpeg_scan_info){.comps_in_scan = 3, .component_index = {0, 1, 2}};
    for (int low = 1; low >= 0; low--)
        for (int c = 0; c < 3; c++)
            for (int at = 1; at < 64; at++)
                script[k++] = (jpeg_scan_info){.comps_in_scan = 1,
                                               .component_index = {c},
                                               .Ss = at,
                                               .Se = at,
                                               .Ah = low ? 0 : 1,
                                               .Al = low};
    j.err = jpeg_std_error(&errors);
    jpeg_create_compress(&j);
    jpeg_mem_dest(&j, &bytes, &n);
    j.image_width = j.image_height = 16;
    j.input_components = 3;
    j.in_color_space = JCS_RGB;
    jpeg_set_defaults(&j);
    j.scan_info = script;
    j.num_scans = scans;
    jpeg_start_compress(&j, TRUE);
    for (int y = 0; y < 16; y++) {
        for (int i = 0; i < 48; i++)
            row[i] = (uint8_t)(y * 37 + i * 91);
        jpeg_write_scanlines(&j, rows, 1);
    }
    jpeg_finish_compress(&j);
    jpeg_destroy_compress(&j);
    if (n > MOST)
        bail("a JPEG of %lu bytes", n);
    memcpy(out, bytes, n);
    free(bytes);
    return n;
}

static void
test_scans(void)
{
    static uint8_t file[MOST];
    struct eti_picture_want want = {.C = 3};
    struct eti_picture p;
    struct et_error why;
    ok(reads(file, many_scans(200, file), &want, &p, &why),
       "a JPEG of 200 scans is read");
    ok(!reads(file, many_scans(260, file), &want, &p, &why) &&
           strstr(why.message, "too many scans"),
       "one of 260 is refused: %s", why.message);
}

#endif

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(dir))
        bail("no context or folder");
    test_back();
    test_not_written();
    test_voc();
    test_class_colors();
    test_most();
    test_deep_mask();
#ifdef ET_WEBP
    test_animation();
#endif
#ifdef ET_JPEG
    test_scans();
#endif
    eti_decoder_free(&decoder);
    rmdir(dir);
    et_ctx_free(&cx);
    return done();
}
