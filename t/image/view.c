/* SPDX-License-Identifier: Apache-2.0 */
/* Views: any number of cuts, flips and sizes at once show what they show one after the
 * other; a part of a picture is enough to show them; turns. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/image/view.h"
#include "etude/rng.h"
#include "t/image/pictures.h"
#include "t/tap.h"

enum { H = 23, W = 31, MOST = 1 << 16 };

static struct eti_looker looker;
static uint8_t noise[H * W * 3];
static const uint8_t black[3], grey[3] = {7, 8, 9};

static struct et_pixels
pixels_of(const uint8_t *data, int C, int64_t h, int64_t w)
{
    return (struct et_pixels){data, C, h, w, 1, w * C, C};
}

static void
look(const struct et_view *v, const struct et_pixels *p, const uint8_t *fill,
     uint8_t *out)
{
    struct et_error why = {0};
    if (eti_view_look(&looker, v, p, v->filter, fill, out, &why) != ET_OK)
        bail("%s", why.message);
}

/* ---- cuts and flips ---- */

/* One of them, at random. */
static void
cut(struct et_rng *r, struct et_view *v)
{
    int64_t h, w;
    switch (et_rng_below(r, 3)) {
    case 0:
        et_view_flip_x(v);
        break;
    case 1:
        et_view_flip_y(v);
        break;
    default:
        h = 1 + (int64_t)et_rng_below(r, 30);
        w = 1 + (int64_t)et_rng_below(r, 30);
        et_view_crop(v, (int64_t)et_rng_below(r, 20) - 10,
                     (int64_t)et_rng_below(r, 20) - 10, h, w);
    }
}

static void
cuts_at_once(void)
{
    static uint8_t once[MOST], step[2][MOST];
    struct et_rng r = et_rng_at(1, ET_RNG_USER, 0);
    int same = 0, whole = 0;
    for (int i = 0; i < 300; i++) {
        struct et_pixels p = pixels_of(noise, 3, H, W), q = p;
        struct et_view all = et_view_of(H, W);
        int n = 1 + (int)et_rng_below(&r, 5);
        for (int k = 0; k < n; k++) {
            struct et_rng again = r;
            struct et_view one = et_view_of(q.H, q.W);
            cut(&r, &all);
            cut(&again, &one);
            look(&one, &q, grey, step[k % 2]);
            q = pixels_of(step[k % 2], 3, one.h, one.w);
        }
        look(&all, &p, grey, once);
        same += all.h == q.H && all.w == q.W &&
                memcmp(once, q.data, (size_t)(q.H * q.W * 3)) == 0;
        whole += eti_view_is_whole(&all);
    }
    is_int(same, 300, "cuts and flips at once show what they show one by one");
    is_int(whole, 300, "and no pixel of theirs lies between two");
}

/* ---- sizes ---- */

static void
cut_of_a_size(void)
{
    static uint8_t all[MOST], part[MOST];
    struct et_pixels p = pixels_of(noise, 3, H, W);
    for (int f = ET_NEAREST; f <= ET_BICUBIC; f++) {
        struct et_view v = et_view_of(H, W);
        int wrong = 0;
        et_view_resize(&v, 15, 40, (enum et_filter)f);
        look(&v, &p, black, all);
        et_view_crop(&v, 3, 9, 10, 20);
        look(&v, &p, black, part);
        for (int i = 0; i < 10 * 20 * 3; i++)
            wrong += part[i] != all[((i / 60 + 3) * 40 + 9) * 3 + i % 60];
        is_int(wrong, 0, "a cut of a resized picture is a part of it (%s)",
               et_filter_names[f]);
    }
    /* What is cut off first is not seen by the filter. */
    uint8_t halves[20 * 20];
    for (int i = 0; i < 400; i++)
        halves[i] = i % 20 < 10 ? 0 : 200;
    struct et_pixels q = pixels_of(halves, 1, 20, 20);
    struct et_view v = et_view_of(20, 20);
    int other = 0;
    et_view_crop(&v, 0, 10, 20, 10);
    et_view_resize(&v, 7, 30, ET_BILINEAR);
    look(&v, &q, black, part);
    for (int i = 0; i < 7 * 30; i++)
        other += part[i] != 200;
    is_int(other, 0, "what was cut off before does not shine through");
    v = et_view_of(20, 20);
    et_view_crop(&v, 0, -10, 20, 40);
    et_view_resize(&v, 10, 20, ET_BILINEAR);
    look(&v, &q, grey, part);
    ok(part[4] == 7 && part[5] == 0 && part[14] == 200 && part[15] == 7,
       "a border is resized with the picture");
}

/* ---- turns ---- */

static void
turns(void)
{
    static uint8_t out[MOST], want[MOST];
    enum { S = 21 };
    struct et_pixels p = pixels_of(noise, 1, S, S);
    struct et_view v = et_view_of(S, S);
    int wrong = 0;
    et_view_turn(&v, 90, 0, 0, 1, 0, 0, ET_NEAREST);
    look(&v, &p, black, out);
    for (int y = 0; y < S; y++)
        for (int x = 0; x < S; x++)
            wrong += out[y * S + x] != noise[(S - 1 - x) * S + y];
    is_int(wrong, 0, "90 degrees are a quarter turn, clockwise");
    for (int i = 0; i < 3; i++)
        et_view_turn(&v, 90, 0, 0, 1, 0, 0, ET_NEAREST);
    look(&v, &p, black, out);
    ok(memcmp(out, noise, S * S) == 0, "and four of them none");

    et_view_turn(&v, 90, 0, 0, 1, 0, 0, ET_NEAREST);
    et_view_turn(&v, 0, 3, -2, 1, 0, 0, ET_NEAREST);
    look(&v, &p, black, out);
    wrong = 0;
    for (int y = 0; y < S - 2; y++)
        for (int x = 3; x < S; x++)
            wrong += out[y * S + x] != noise[(S - 1 - (x - 3)) * S + y + 2];
    is_int(wrong, 0, "a turn and then a move are done in that order");

    /* Moved by whole pixels, then flipped and cut: as without a turn. */
    v = et_view_of(S, S);
    et_view_turn(&v, 0, 3, -2, 1, 0, 0, ET_BILINEAR);
    et_view_flip_x(&v);
    et_view_crop(&v, 1, -2, 15, 20);
    look(&v, &p, grey, out);
    struct et_view w = et_view_of(S, S);
    et_view_crop(&w, 2, -3, S, S);
    et_view_flip_x(&w);
    et_view_crop(&w, 1, -2, 15, 20);
    look(&w, &p, grey, want);
    ok(v.turned && !w.turned && memcmp(out, want, 15 * 20) == 0,
       "what follows a move is done with it");

    /* Resized, then turned by nothing. */
    v = w = et_view_of(S, S);
    et_view_resize(&v, 11, 17, ET_BICUBIC);
    et_view_resize(&w, 11, 17, ET_BICUBIC);
    et_view_turn(&v, 0, 0, 0, 1, 0, 0, ET_BILINEAR);
    look(&v, &p, black, out);
    look(&w, &p, black, want);
    ok(memcmp(out, want, 11 * 17) == 0, "and what comes before it, before it");
}

/* ---- parts of files ---- */

static void
view_at_random(struct et_rng *r, int64_t h, int64_t w, bool may_turn, struct et_view *v)
{
    *v = et_view_of(h, w);
    int64_t y = (int64_t)et_rng_below(r, (uint64_t)(h / 2));
    int64_t x = (int64_t)et_rng_below(r, (uint64_t)(w / 2));
    et_view_crop(v, y, x, h / 2, w / 2);
    if (et_rng_below(r, 2))
        et_view_flip_x(v);
    if (et_rng_below(r, 4))
        et_view_resize(v, h / 3, w / 3 + 9, (enum et_filter)et_rng_below(r, 3));
    if (et_rng_below(r, 2))
        et_view_crop(v, 2, -3, 9, 11);
    if (may_turn)
        et_view_turn(v, 30, 1, 0, 1.2, 0, 0, ET_BILINEAR);
}

/* V of what is decoded for it, at the size that it comes in. */
static int
look_at_file(struct eti_decoder *d, const struct picture_file *file,
             const struct et_view *v, uint8_t *out)
{
    struct et_error why = {0};
    struct eti_picture p;
    struct et_view onto = *v;
    struct eti_picture_want want = eti_view_want(v, 3);
    if (eti_decoder_open(d, file->bytes, file->n, &why) != ET_OK ||
        eti_decoder_read(d, &want, &p, &why) != ET_OK)
        bail("%s", why.message);
    eti_view_onto(&onto, &p);
    look(&onto, &p.pixels, black, out);
    return p.shrunk;
}

static void
parts_of_files(const char *name)
{
    static struct picture_file file;
    static uint8_t got[MOST], want[MOST];
    struct et_rng r = et_rng_at(2, ET_RNG_USER, 0);
    struct eti_decoder d = {.codec = NULL};
    int same = 0;
    picture_load(&file, name);
    struct et_pixels p = pixels_of(file.rgb, 3, file.H, file.W);
    for (int i = 0; i < 200; i++) {
        struct et_view v;
        view_at_random(&r, p.H, p.W, i % 2, &v);
        (void)look_at_file(&d, &file, &v, got);
        look(&v, &p, black, want);
        same += memcmp(got, want, (size_t)(v.h * v.w * 3)) == 0;
    }
    is_int(same, 200, "%s: of what a view does not look at nothing is needed", name);
    eti_decoder_free(&d);
}

#ifdef ET_JPEG

static void
shrunk_files(void)
{
    static struct picture_file file;
    static uint8_t got[MOST], want[MOST];
    struct eti_decoder d = {.codec = NULL};
    struct et_view v = et_view_of(37, 50);
    double sum = 0;
    picture_load(&file, "444.jpg");
    struct et_pixels p = pixels_of(file.rgb, 3, file.H, file.W);
    et_view_crop(&v, 3, 5, 30, 42);
    et_view_flip_x(&v);
    et_view_resize(&v, 7, 10, ET_BILINEAR);
    int by = look_at_file(&d, &file, &v, got);
    look(&v, &p, black, want);
    /* Green, a ramp of five a pixel: a pixel beside itself would show. */
    for (int i = 1; i < 7 * 10 * 3; i += 3)
        sum += (got[i] - want[i]) * (got[i] - want[i]);
    ok(by == 4 && sqrt(sum / 70) < 2.5,
       "a file that comes smaller by %d shows the same (%.2f off)", by, sqrt(sum / 70));
    eti_decoder_free(&d);
}

#endif

int
main(void)
{
    struct et_rng r = et_rng_at(3, ET_RNG_USER, 0);
    for (int i = 0; i < H * W * 3; i++)
        noise[i] = (uint8_t)et_rng_u32(&r);
    cuts_at_once();
    cut_of_a_size();
    turns();
    parts_of_files("rgb.png");
#ifdef ET_JPEG
    shrunk_files();
#endif
    eti_looker_free(&looker);
    return done();
}
