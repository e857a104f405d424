/* SPDX-License-Identifier: Apache-2.0 */
/* cases_augment.c: cases of pictures that are turned and changed. Results are exact: a
 * byte that is another one picks another number of the table. */
#include "etude/rng.h"
#include "etude/transform.h"
#include "t/kernels/families.h"

#include <math.h>
#include <string.h>

enum rows { AXES, TURNS, CHANGED, EACH, WILD };

struct augment_case {
    const char *what;
    enum rows rows;
    int64_t raw[4]; /* S, C, R, Q */
    int64_t n, h, w;
    int room;               /* for changes */
    double most;            /* steps along an axis are below it */
    enum layout lies;       /* the raw images */
    enum layout small, out; /* rows and table; the result */
};

static const struct augment_case cases[] = {
    {.what = "resized up and down",
     .rows = AXES,
     .raw = {3, 3, 11, 9},
     .n = 24,
     .h = 7,
     .w = 8,
     .most = 2,
     .out = LAST},
    {.what = "resized to much smaller",
     .rows = AXES,
     .raw = {2, 1, 40, 37},
     .n = 6,
     .h = 3,
     .w = 4,
     .most = 12,
     .out = LAST},
    {.what = "turned, of pixels whose channels are neighbours",
     .rows = TURNS,
     .raw = {3, 3, 8, 10},
     .n = 16,
     .h = 8,
     .w = 9,
     .most = 1.5,
     .lies = LAST,
     .out = LAST},
    {.what = "changed, three channels",
     .rows = CHANGED,
     .raw = {5, 3, 12, 13},
     .n = 40,
     .h = 12,
     .w = 12,
     .room = 5,
     .most = 1,
     .out = LAST},
    {.what = "changed, grey, many parts",
     .rows = CHANGED,
     .raw = {2, 1, 30, 31},
     .n = 2,
     .h = 40,
     .w = 41,
     .room = 3,
     .most = 1,
     .out = LAST},
    {.what = "changed, two channels",
     .rows = CHANGED,
     .raw = {2, 2, 6, 5},
     .n = 12,
     .h = 6,
     .w = 5,
     .room = 2,
     .most = 1,
     .out = LAST},
    {.what = "changed, four channels",
     .rows = CHANGED,
     .raw = {2, 4, 6, 5},
     .n = 12,
     .h = 6,
     .w = 5,
     .room = 2,
     .most = 1,
     .out = LAST},
    {.what = "each change alone, three channels",
     .rows = EACH,
     .raw = {3, 3, 20, 20},
     .n = 2 * ET_CHANGES,
     .h = 44, /* of so many pixels 255 parts have some each: equalize rounds */
     .w = 45,
     .room = 1,
     .most = 1,
     .out = LAST},
    {.what = "as many changes as there may be",
     .rows = CHANGED,
     .raw = {2, 3, 6, 5},
     .n = 8,
     .h = 6,
     .w = 5,
     .room = ET_MAX_CHANGES,
     .most = 1,
     .out = LAST},
    {.what = "none",
     .rows = AXES,
     .raw = {2, 3, 6, 5},
     .n = 0,
     .h = 4,
     .w = 4,
     .most = 1,
     .out = LAST},
    {.what = "everything with gaps",
     .rows = CHANGED,
     .raw = {2, 3, 6, 5},
     .n = 6,
     .h = 5,
     .w = 4,
     .room = 2,
     .most = 1,
     .lies = GAPS,
     .small = GAPS,
     .out = GAPS},
    {.what = "everything turned about",
     .rows = TURNS,
     .raw = {2, 3, 6, 5},
     .n = 6,
     .h = 5,
     .w = 4,
     .most = 1,
     .lies = TURNED,
     .small = TURNED,
     .out = TURNED},
    {.what = "into planes",
     .rows = AXES,
     .raw = {2, 3, 6, 5},
     .n = 6,
     .h = 5,
     .w = 4,
     .most = 1,
     .out = ROW},
    {.what = "anything in the rows",
     .rows = WILD,
     .raw = {4, 3, 7, 6},
     .n = 120,
     .h = 5,
     .w = 6,
     .room = 4,
     .out = LAST},
};

static double
between(struct et_rng *r, double low, double high)
{
    return low + (high - low) * et_rng_uniform(r);
}

/* An axis of SIZE pixels that makes N of them, in one direction or the other; most show
 * a part of it, some hang over. */
static struct et_shown_axis
draw_axis(const struct augment_case *v, int64_t size, int64_t n, struct et_rng *r)
{
    double step = between(r, v->most / 8, v->most), s = (double)size;
    struct et_shown_axis a = {.step = step};
    a.from = (int32_t)et_rng_below(r, 2);
    a.to = (int32_t)(n - (int64_t)et_rng_below(r, 2));
    a.lo = (int32_t)et_rng_below(r, 2);
    a.hi = (int32_t)(size - (int64_t)et_rng_below(r, 2));
    a.origin = between(r, -1, s - step * (double)n + 1);
    if (et_rng_below(r, 4) == 0) /* whole pixels */
        a.step = 1, a.origin = (double)(int64_t)a.origin;
    if (et_rng_below(r, 2) == 0) {
        a.origin += a.step * (double)n;
        a.step = -a.step;
    }
    return a;
}

static void
draw_turn(const struct augment_case *v, struct et_rng *r, struct et_shown *s)
{
    s->turned = 1 + (int32_t)et_rng_below(r, 2);
    for (int k = 0; k < 6; k++)
        s->turn[k] = k % 3 == 2 ? between(r, -2, 6) : between(r, -v->most, v->most);
    s->h = (int32_t)(v->h + (int64_t)et_rng_below(r, 3));
    s->w = (int32_t)(v->w + (int64_t)et_rng_below(r, 3));
    s->edge[0] = (int32_t)et_rng_below(r, 2);
    s->edge[1] = (int32_t)v->h - (int32_t)et_rng_below(r, 2);
    s->edge[2] = (int32_t)et_rng_below(r, 2);
    s->edge[3] = (int32_t)v->w - (int32_t)et_rng_below(r, 2);
}

static struct et_pixel_change
draw_change(const struct augment_case *v, int32_t kind, struct et_rng *r)
{
    struct et_pixel_change t = {.kind = kind};
    t.own = (float)between(r, 0, 2);
    t.other = kind == ET_CHANGE_BLEND ? (float)between(r, -40, 40) : 1 - t.own;
    if (kind == ET_CHANGE_HUE)
        t.own = (float)between(r, -3, 3);
    t.y = (int32_t)et_rng_below(r, (uint64_t)v->h);
    t.x = (int32_t)et_rng_below(r, (uint64_t)v->w);
    t.h = (int32_t)et_rng_below(r, (uint64_t)(v->h - t.y) + 1);
    t.w = (int32_t)et_rng_below(r, (uint64_t)(v->w - t.x) + 1);
    t.value = kind == ET_CHANGE_POSTERIZE ? (int32_t)et_rng_below(r, 9)
                                          : (int32_t)et_rng_below(r, 256);
    return t;
}

/* Numbers of all sizes, some of them none. */
static void
draw_anything(struct et_rng *r, int64_t n, int32_t *to)
{
    static const double odd[] = {0, -1, 1e300, -1e300, INFINITY, NAN, 1e-300, 2.5};
    for (int64_t k = 0; k < n; k++)
        to[k] = et_rng_below(r, 3) ? (int32_t)et_rng_below(r, 14) - 4
                                   : (int32_t)et_rng_u32(r);
    struct et_shown s;
    memcpy(&s, to, sizeof s);
    s.sample = (int32_t)et_rng_below(r, 6) - 1;
    double *const v[] = {&s.y.origin, &s.y.step, &s.x.origin, &s.x.step};
    for (int k = 0; k < 4; k++)
        *v[k] = et_rng_below(r, 3) ? between(r, -9, 9) : odd[et_rng_below(r, 8)];
    for (int k = 0; k < 6; k++)
        s.turn[k] = et_rng_below(r, 3) ? between(r, -9, 9) : odd[et_rng_below(r, 8)];
    memcpy(to, &s, sizeof s);
}

static void
draw_row(const struct augment_case *v, int64_t n, struct et_rng *r, int32_t *to)
{
    struct et_shown s = {.sample = (int32_t)et_rng_below(r, (uint64_t)v->raw[0])};
    s.filter = (int32_t)et_rng_below(r, 3);
    s.y = draw_axis(v, v->raw[2], v->h, r);
    s.x = draw_axis(v, v->raw[3], v->w, r);
    if (v->rows == TURNS)
        draw_turn(v, r, &s);
    s.n_changes = v->room - (int32_t)et_rng_below(r, 2) * (v->room > 1);
    memcpy(to, &s, sizeof s);
    for (int k = 0; k < v->room; k++) {
        int64_t kind =
            v->rows == EACH ? n % ET_CHANGES : (int64_t)et_rng_below(r, ET_CHANGES);
        struct et_pixel_change t = draw_change(v, (int32_t)kind, r);
        memcpy(to + ET_SHOWN_NUMBERS + k * ET_CHANGE_NUMBERS, &t, sizeof t);
    }
}

static struct operand *
rows_of(struct bench *b, const struct augment_case *v)
{
    int32_t row[ET_SHOWN_NUMBERS + ET_MAX_CHANGES * ET_CHANGE_NUMBERS];
    int64_t numbers = ET_SHOWN_NUMBERS + (int64_t)v->room * ET_CHANGE_NUMBERS;
    struct operand *o = operand(b, ET_I32, GIVEN, 0, v->small, SHAPE(v->n, numbers));
    struct et_rng r = et_rng_at(draws_seed(), ET_RNG_DATA, (uint64_t)(v - cases));
    int32_t *to = (int32_t *)(void *)o->block + o->base;
    for (int64_t n = 0; n < v->n; n++) {
        if (v->rows == WILD)
            draw_anything(&r, numbers, row);
        else
            draw_row(v, n, &r, row);
        for (int64_t k = 0; k < numbers; k++)
            to[n * o->d.stride[0] + k * o->d.stride[1]] = row[k];
    }
    return o;
}

/* DTYPE: NONE, or what a table in f32 is rounded to. */
static void
augmented(struct bench *b, const struct augment_case *v, enum et_dtype dtype)
{
    const struct et_image_batch_attr o = {.shape = {v->h, v->w},
                                          .dtype = (int32_t)dtype};
    int64_t table[2] = {v->raw[1], 256}, y[4] = {v->n, v->raw[1], v->h, v->w};
    struct operand *raw = operand(b, ET_U8, INDEX, 256, v->lies, 4, v->raw);
    struct operand *values = dtype ? wide_operand(b, NORMAL, v->small, 2, table)
                                   : normal(b, v->small, 2, table);
    check(b,
          TRIAL(ATTR(o), IN(raw, rows_of(b, v), values),
                OUT(result(b, dtype ? dtype : ET_F32, v->out, 4, y))),
          "%s%s%s", v->what, dtype ? ", rounded to " : "",
          dtype ? et_dtype_name(dtype) : "");
}

void
cases_image_augment(struct bench *b)
{
    augmented(b, &cases[0], ET_BF16);
    augmented(b, &cases[0], ET_F16);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        augmented(b, &cases[i], ET_NONE);
}
