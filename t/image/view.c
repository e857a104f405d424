/* SPDX-License-Identifier: Apache-2.0 */
/* Views: any number of cuts, flips and sizes at once show what they show one after the
 * other; a part of a picture is enough to show them; turns. */
#include "config.h"

#include <math.h>
#include <stdio.h>
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

/* ---- what a view says of itself ---- */

static void
is_axis(const struct et_view_axis *a, const char *want, const char *what)
{
    char got[128];
    snprintf(got, sizeof got, "%g by %g, of [%d, %d), not black in [%d, %d)", a->origin,
             a->step, (int)a->lo, (int)a->hi, (int)a->from, (int)a->to);
    is_str(got, want, "%s", what);
}

/* Resized to 4 of 10 pixels, cut to two of these, resized again. */
static void
axes(void)
{
    struct et_view v = et_view_of(20, 10);
    et_view_resize(&v, 20, 4, ET_BICUBIC);
    is_axis(&v.x, "0 by 2.5, of [0, 10), not black in [0, 4)", "a size that shrinks");
    is_axis(&v.y, "0 by 1, of [0, 20), not black in [0, 20)", "leaves the other side");
    is_int(v.filter, ET_BICUBIC, "and has its filter");
    et_view_crop(&v, 15, 1, 9, 2);
    is_axis(&v.x, "2.5 by 2.5, of [0, 10), not black in [0, 2)", "a cut moves it");
    is_axis(&v.y, "15 by 1, of [0, 20), not black in [0, 5)", "and may hang over");
    et_view_resize(&v, 18, 5, ET_BILINEAR);
    is_axis(&v.x, "2.5 by 1, of [2, 8), not black in [0, 5)",
            "all pixels that the cut touches are seen then");
    is_axis(&v.y, "15 by 0.5, of [15, 20), not black in [0, 10)",
            "and what hangs over grows with it");
    is_int(v.filter, ET_BILINEAR, "the last filter counts");
    struct et_view w = et_view_of(20, 10);
    et_view_resize(&w, 20, 4, ET_BICUBIC);
    et_view_crop(&w, 0, 1, 20, 2);
    et_view_resize(&w, 20, 5, ET_BICUBIC);
    ok(w.x.step == 1 && w.x.origin == 2.5 && !eti_view_is_whole(&w),
       "steps of one pixel from between two on are not whole");
    et_view_flip_y(&v);
    is_axis(&v.y, "24 by -0.5, of [15, 20), not black in [8, 18)", "a flip turns it");
}

/* Which filter stays when a view is turned: bilinear, if both are no nearest. */
static void
filters_of_turns(void)
{
    static const int want[3][3] = {{0, 1, 2}, {0, 1, 1}, {0, 2, 2}};
    int wrong = 0;
    for (int of = ET_NEAREST; of <= ET_BICUBIC; of++)
        for (int turn = ET_NEAREST; turn <= ET_BICUBIC; turn++) {
            struct et_view v = et_view_of(9, 7);
            v.filter = of;
            et_view_turn(&v, 30, 0, 0, 1, 0, 0, (enum et_filter)turn);
            wrong += v.filter != want[of][turn];
        }
    is_int(wrong, 0, "a turn by the nearest pixel is one, whatever the filter was");
}

/* What is decoded for a view, and where that lies in it. */
static void
onto(void)
{
    struct et_view v = et_view_of(90, 80);
    et_view_crop(&v, 10, 20, 64, 48);
    et_view_resize(&v, 16, 24, ET_BILINEAR);
    struct eti_picture_want want = eti_view_want(&v, 3);
    ok(want.C == 3 && want.y <= 10 && want.y + want.h >= 74 && want.x <= 20 &&
           want.x + want.w >= 68 && want.out_h == (want.h + 3) / 4 &&
           want.out_w == (want.w + 1) / 2,
       "a view wants what it sees, by its steps along either side");
    struct eti_picture p = {
        .pixels = {.H = 17, .W = 13, .C = 3}, .y = 8, .x = 16, .shrunk = 4};
    eti_view_onto(&v, &p);
    is_axis(&v.y, "0.5 by 1, of [0, 17), not black in [0, 16)",
            "of a picture that came smaller it counts the rows that came");
    is_axis(&v.x, "1 by 0.5, of [1, 13), not black in [0, 24)", "and the columns");
    v = et_view_of(90, 80);
    et_view_crop(&v, 10, 20, 64, 48);
    et_view_resize(&v, 16, 24, ET_BILINEAR);
    p = (struct eti_picture){
        .pixels = {.H = 80, .W = 70, .C = 3}, .y = 4, .x = 7, .shrunk = 1};
    eti_view_onto(&v, &p);
    is_axis(&v.y, "6 by 4, of [6, 70), not black in [0, 16)",
            "of a part it counts from the part's first row");
    is_axis(&v.x, "13 by 2, of [13, 61), not black in [0, 24)", "and column");
    v = et_view_of(90, 80);
    et_view_flip_x(&v);
    et_view_turn(&v, 30, 0, 0, 1, 0, 0, ET_BILINEAR);
    et_view_crop(&v, 1, 2, 30, 40);
    eti_view_onto(&v, &p);
    is_axis(&v.first_x, "73 by -1, of [0, 70), not black in [0, 80)",
            "of what is turned then, what was before the turn");
    is_axis(&v.x, "2 by 1, of [0, 80), not black in [0, 40)", "and not what is behind");
}

/* A view as a row of numbers. */
static void
told(void)
{
    struct et_shown s;
    struct et_view v = et_view_of(20, 30);
    v.filter = ET_BICUBIC;
    et_view_crop(&v, -2, 3, 10, 40);
    eti_view_tell(&v, &s);
    ok(s.filter == ET_NEAREST && s.turned == 0 && s.y.origin == 0 && s.y.step == 1 &&
           s.y.from == 2 && s.y.to == 10 && s.y.lo == 0 && s.y.hi == 20 &&
           s.x.origin == 3 && s.x.from == 0 && s.x.to == 27 && s.x.hi == 30,
       "a cut is told, from its first pixel that is not black, without a filter");
    et_view_resize(&v, 20, 20, ET_BICUBIC);
    et_view_turn(&v, 90, 0, 0, 1, 0, 0, ET_BILINEAR);
    et_view_crop(&v, -1, -3, 18, 33);
    eti_view_tell(&v, &s);
    ok(s.filter == ET_BICUBIC && s.turned == 2 && s.h == 20 && s.w == 20 &&
           s.y.step == 0.5 && s.x.step == 2 && s.y.from == 4 && s.x.to == 14,
       "what is before a turn is told with its filter and size");
    ok(s.edge[0] == 1 && s.edge[1] == 18 && s.edge[2] == 3 && s.edge[3] == 23,
       "and where it is black behind it: %d, %d, %d, %d", s.edge[0], s.edge[1],
       s.edge[2], s.edge[3]);
    ok(fabs(s.turn[1] - 1) < 1e-12 && fabs(s.turn[3] + 1) < 1e-12 &&
           fabs(s.turn[2] + 1) < 1e-12 && fabs(s.turn[5] - 23) < 1e-12,
       "and the turn, from the cut's corner on: %g, %g", s.turn[2], s.turn[5]);
}

/* Places of one axis beyond what may be seen show the nearest pixel that may. */
static void
out_of_sight(void)
{
    static const uint8_t line[] = {10, 20, 30, 40, 50, 60, 70, 80};
    struct eti_resampler r = {0};
    struct eti_axis x = {.n = 8, .origin = -12, .step = 4, .lo = 2, .hi = 6};
    struct eti_axis y = {.n = 1, .origin = 0, .step = 1, .lo = 0, .hi = 1};
    struct et_pixels p = pixels_of(line, 1, 1, 8);
    struct et_error why = {0};
    for (int f = ET_NEAREST; f <= ET_BICUBIC; f++) {
        uint8_t out[8];
        if (eti_resample(&r, &p, &y, &x, (enum et_filter)f, out, 8, &why) != ET_OK)
            bail("%s", why.message);
        ok(out[0] == 30 && out[1] == 30 && out[6] == 60 && out[7] == 60,
           "%s: beyond both ends of [2, 6) are the pixels at them (%d, %d)",
           et_filter_names[f], out[1], out[6]);
    }
    eti_resampler_free(&r);
}

/* ---- turns ---- */

/* A cut between two turns is done between them. */
static void
turns_and_cuts(void)
{
    static uint8_t out[MOST], step[2][MOST];
    enum { S = 21 };
    struct et_view all = et_view_of(S, S), one = all;
    struct et_pixels p = pixels_of(noise, 3, S, S), q = p;
    et_view_turn(&one, 90, 0, 0, 1, 0, 0, ET_NEAREST);
    look(&one, &q, grey, step[0]);
    q = pixels_of(step[0], 3, S, S);
    one = et_view_of(S, S);
    et_view_crop(&one, 2, 5, 15, 11);
    et_view_flip_y(&one);
    look(&one, &q, grey, step[1]);
    q = pixels_of(step[1], 3, 15, 11);
    one = et_view_of(15, 11);
    et_view_turn(&one, 180, 2, 1, 1, 0, 0, ET_NEAREST);
    look(&one, &q, grey, step[0]);
    et_view_turn(&all, 90, 0, 0, 1, 0, 0, ET_NEAREST);
    et_view_crop(&all, 2, 5, 15, 11);
    et_view_flip_y(&all);
    et_view_turn(&all, 180, 2, 1, 1, 0, 0, ET_NEAREST);
    look(&all, &p, grey, out);
    int wrong = 0;
    for (int y = 1; y < 15; y++) /* what the turn brings in from beyond may differ */
        for (int x = 2; x < 11; x++)
            wrong += memcmp(out + (y * 11 + x) * 3, step[0] + (y * 11 + x) * 3, 3) != 0;
    is_int(wrong, 0, "a turn, a cut and a turn show what they show one by one");
}

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
    axes();
    filters_of_turns();
    onto();
    told();
    out_of_sight();
    turns_and_cuts();
    turns();
    parts_of_files("rgb.png");
#ifdef ET_JPEG
    shrunk_files();
#endif
    eti_looker_free(&looker);
    return done();
}
