/* SPDX-License-Identifier: Apache-2.0 */
/* cases_scan.c: lines along an axis, in order and summed up, and numbers drawn. */
#include "t/kernels/families.h"

#include "kernels/ref/words.h"
#include "t/kernels/judge.h"

/* ---- lines ---- */

struct line {
    const char *what;
    int axis, reverse;
    enum layout layout;
    enum contents contents;
    int ndim;
    int64_t shape[4];
};

static const struct line lines[] = {
    {"one element", 0, 0, ROW, NORMAL, 1, {1}},
    {"none", 1, 0, ROW, NORMAL, 2, {3, 0}},
    {"one line", 0, 0, ROW, NORMAL, 1, {37}},
    {"rows of 16", 1, 0, ROW, NORMAL, 2, {5, 16}},
    {"rows of 17, reversed", 1, 1, ROW, NORMAL, 2, {5, 17}},
    {"rows of 100", 1, 0, ROW, NORMAL, 2, {7, 100}},
    {"columns", 0, 0, ROW, NORMAL, 2, {33, 70}},
    {"columns, reversed", 0, 1, ROW, NORMAL, 2, {33, 70}},
    {"the middle axis", 1, 0, ROW, NORMAL, 3, {3, 40, 65}},
    {"channels-last", 1, 0, LAST, NORMAL, 4, {2, 5, 3, 7}},
    {"channels-last, along rows", 3, 1, LAST, NORMAL, 4, {2, 5, 3, 7}},
    {"turned", 1, 0, TURNED, NORMAL, 2, {11, 21}},
    {"every second element", 1, 1, GAPS, NORMAL, 2, {3, 40}},
    {"repeated rows", 0, 0, REPEAT, NORMAL, 2, {9, 20}},
    {"equals", 1, 0, ROW, COARSE, 2, {4, 67}},
    {"equals, reversed", 1, 1, ROW, COARSE, 2, {4, 67}},
    {"long rows", 1, 0, ROW, NORMAL, 2, {2, 2100}},
    {"long rows, reversed", 1, 1, ROW, NORMAL, 2, {2, 2100}},
};

void
cases_cumsum(struct bench *b)
{
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const struct line *l = &lines[i];
        struct et_axis_attr o = {.axis = l->axis, .reverse = l->reverse};
        struct operand *x =
            operand(b, ET_F32, l->contents, 0, l->layout, l->ndim, l->shape);
        check(b,
              TRIAL(ATTR(o), IN(x), OUT(result(b, ET_F32, ROW, l->ndim, l->shape)),
                    .length = l->shape[l->axis] + 1),
              "%s", l->what);
    }
    struct et_axis_attr o = {.axis = 1};
    check(b,
          TRIAL(ATTR(o), IN(normal(b, ROW, SHAPE(5, 33))),
                OUT(result(b, ET_F32, TURNED, SHAPE(5, 33))), .length = 34),
          "a turned result");
    /* Beside a sum of 2^24 an f32 loses each 1 that is added to it. */
    enum { N = 2000 };
    struct operand *x = operand(b, ET_F32, GIVEN, 0, ROW, SHAPE(1, N));
    if (x->d.dtype != ET_F32)
        return;
    for (int i = 0; i < N; i++)
        ((float *)x->block)[x->base + i] = i ? 1 : 0x1p24f;
    check(b,
          TRIAL(ATTR(o), IN(x), OUT(result(b, ET_F32, ROW, SHAPE(1, N))), .length = N),
          "small numbers behind a great one");
}

/* Which of the results are wanted: bits. */
static void
order(struct bench *b, const struct line *l, int wanted)
{
    struct et_axis_attr o = {.axis = l->axis, .reverse = l->reverse};
    struct operand *x =
        operand(b, ET_F32, l->contents, 0, l->layout, l->ndim, l->shape);
    struct operand *value = result(b, ET_F32, ROW, l->ndim, l->shape);
    struct operand *place = result(b, ET_I32, ROW, l->ndim, l->shape);
    check(b,
          TRIAL(ATTR(o), IN(x),
                OUT(wanted & 1 ? value : NULL, wanted & 2 ? place : NULL),
                .signs = true),
          "%s%s", l->what,
          wanted == 1   ? ", values only"
          : wanted == 2 ? ", places only"
                        : "");
}

void
cases_sort(struct bench *b)
{
    static const struct line specials[] = {
        {"NaN and zeros", 1, 0, ROW, SPECIAL, 2, {3, 70}},
        {"NaN and zeros, reversed", 1, 1, ROW, SPECIAL, 2, {3, 70}},
        {"NaN and zeros in columns", 0, 0, TURNED, SPECIAL, 2, {70, 3}},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        order(b, &lines[i], 3);
    for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++)
        for (int wanted = 1; wanted < 4; wanted++)
            order(b, &specials[i], wanted);
}

/* ---- random ---- */

struct operand *
draw_key(struct bench *b)
{
    struct operand *key = operand(b, ET_I64, GIVEN, 0, ROW, SHAPE(2));
    int64_t *v = (int64_t *)key->block + key->base;
    v[0] = INT64_C(0x7edcba9876543211);
    v[1] = INT64_C(1234567890123);
    return key;
}

double
first_drawn(const struct operand *key, uint32_t ordinal)
{
    struct etk_array rng = array_of(key);
    return etk_word24(&rng, 0, ordinal, 0) * 0x1p-24;
}

static void
drawn(struct bench *b, const char *what, enum et_random_kind kind, double p,
      enum layout layout, int ndim, const int64_t *shape)
{
    struct et_random_attr o = {.kind = kind, .ndim = ndim, .p = p, .ordinal = 5};
    for (int i = 0; i < ndim; i++)
        o.shape[i] = shape[i];
    struct operand *rng = draw_key(b);
    struct et_desc d;
    et_desc_init(&d, ET_F32, ndim, shape, ET_ROW_MAJOR);
    struct operand *y =
        layout == ROW ? result_as(b, &d) : result(b, ET_F32, layout, ndim, shape);
    check(b,
          TRIAL(ATTR(o), IN(rng), OUT(y),
                .may_refuse = b->narrow != ET_NONE && layout != ROW,
                .length = kind == ET_RANDOM_NORMAL),
          "%s", what);
}

void
cases_random(struct bench *b)
{
    drawn(b, "uniform, odd rows", ET_RANDOM_UNIFORM, 0, ROW, SHAPE(7, 1001));
    drawn(b, "normal, odd rows", ET_RANDOM_NORMAL, 0, ROW, SHAPE(7, 1001));
    drawn(b, "Bernoulli, odd rows", ET_RANDOM_BERNOULLI, 0.3, ROW, SHAPE(7, 1001));
    const double p = first_drawn(draw_key(b), 5);
    drawn(b, "Bernoulli, p that is drawn", ET_RANDOM_BERNOULLI, p, ROW, SHAPE(3, 33));
    drawn(b, "Bernoulli, p just above", ET_RANDOM_BERNOULLI, p + 0x1p-25, ROW,
          SHAPE(3, 33));
    drawn(b, "Bernoulli, always 0", ET_RANDOM_BERNOULLI, 0, ROW, SHAPE(3, 33));
    drawn(b, "Bernoulli, always 1", ET_RANDOM_BERNOULLI, 1, ROW, SHAPE(3, 33));
    drawn(b, "normal, one element a sample", ET_RANDOM_NORMAL, 0, ROW, SHAPE(70));
    drawn(b, "uniform, no samples", ET_RANDOM_UNIFORM, 0, ROW, SHAPE(0, 3));
    drawn(b, "uniform, turned", ET_RANDOM_UNIFORM, 0, TURNED, SHAPE(3, 5, 33));
    drawn(b, "normal, channels-last", ET_RANDOM_NORMAL, 0, LAST, SHAPE(2, 5, 3, 7));
}
