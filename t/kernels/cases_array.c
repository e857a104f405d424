/* SPDX-License-Identifier: Apache-2.0 */
/* cases_array.c: cases of reductions, matrix products and movement. */
#include "t/kernels/families.h"

#include <string.h>

/* ---- reductions ---- */

static void
reduction(struct bench *b, enum layout layout, uint32_t axes, bool keepdim, int ndim,
          const int64_t *shape)
{
    struct et_reduce_attr o = {.axes = axes, .keepdim = keepdim};
    int64_t left[ET_MAX_DIMS], length = 1;
    int n = 0;
    for (int k = 0; k < ndim; k++) {
        bool gone = axes >> k & 1;
        length *= gone ? shape[k] : 1;
        if (!gone || keepdim)
            left[n++] = gone ? 1 : shape[k];
    }
    struct operand *x = normal(b, layout, ndim, shape);
    struct operand *y = result(b, ET_F32, keepdim ? layout : ROW, n, left);
    char text[96];
    bool sums = b->op == ET_OP_sum;
    check(b, TRIAL(ATTR(o), IN(x), OUT(y), .length = sums ? length : 0),
          "%s, axes 0x%x%s, layout %d", et_desc_text(&x->d, text, sizeof text), axes,
          keepdim ? " kept" : "", (int)layout);
}

void
cases_reduce(struct bench *b)
{
    for (uint32_t axes = 1; axes < 8; axes++)
        for (int keepdim = 0; keepdim < 2; keepdim++)
            reduction(b, ROW, axes, keepdim, SHAPE(5, 33, 7));
    for (uint32_t axes = 1; axes < 16; axes++)
        reduction(b, LAST, axes, axes & 1, SHAPE(3, 5, 2, 31));
    reduction(b, GAPS, 2, false, SHAPE(5, 31));
    reduction(b, TURNED, 1, false, SHAPE(17, 31));
    reduction(b, REPEAT, 1, false, SHAPE(17, 31));
    reduction(b, ROW, 1, false, SHAPE(1));
    reduction(b, ROW, 1, false, SHAPE(70001));
    /* Packs of 16 bytes, parts that a second stage adds up, and rows for a block. */
    reduction(b, ROW, 1, false, SHAPE(4001, 48));
    reduction(b, ROW, 1, true, SHAPE(2000, 7));
    reduction(b, ROW, 2, false, SHAPE(3, 17000));
    reduction(b, ROW, 5, false, SHAPE(70, 2, 320));
    reduction(b, LAST, 13, true, SHAPE(3, 16, 40, 50));
    reduction(b, ROW, 5, false, SHAPE(3, 2, 4100));
    reduction(b, GAPS, 3, false, SHAPE(130, 131));
    /* Two axes of rows, the inner one of more than are summed at once. */
    reduction(b, ROW, 5, false, SHAPE(3, 4, 45, 6));
    reduction(b, SHIFTED, 1, false, SHAPE(150, 48));
    reduction(b, SHIFTED, 2, true, SHAPE(3, 1000));
    reduction(b, SHIFTED, 5, false, SHAPE(7, 2, 320));
    if (b->op == ET_OP_sum)
        reduction(b, ROW, 1, false, SHAPE(0, 3));
    struct et_reduce_attr o = {.axes = 1};
    if (b->op != ET_OP_sum)
        check(b,
              TRIAL(ATTR(o), IN(operand(b, ET_F32, SPECIAL, 0, ROW, SHAPE(5, 13))),
                    OUT(result(b, ET_F32, ROW, SHAPE(13)))),
              "NaN wins");
}

void
cases_sum_squares(struct bench *b)
{
    check(b,
          TRIAL(IN(normal(b, ROW, SHAPE(1))), OUT(wide_result(b, SCALAR)), .length = 1),
          "one");
    check(b,
          TRIAL(IN(normal(b, ROW, SHAPE(0))), OUT(wide_result(b, SCALAR)), .length = 1),
          "none");
    check(b,
          TRIAL(IN(normal(b, LAST, SHAPE(3, 5, 7, 11))), OUT(wide_result(b, SCALAR)),
                .length = 1155),
          "channels-last");
    check(b,
          TRIAL(IN(normal(b, GAPS, SHAPE(31, 33))), OUT(wide_result(b, SCALAR)),
                .length = 1023),
          "every second element");
    check(b,
          TRIAL(IN(normal(b, ROW, SHAPE(70001))), OUT(wide_result(b, SCALAR)),
                .length = 70001),
          "70001");
}

/* N stretches; LAYOUT of X. The longest has LENGTH elements. */
static void
segments(struct bench *b, const char *what, enum layout layout, int64_t length, int n,
         const int32_t *first, int ndim, const int64_t *shape)
{
    const int64_t rows = n + 1;
    struct operand *table = operand(b, ET_I32, GIVEN, 0, ROW, 1, &rows);
    memcpy(table->block + table->base * 4, first, (size_t)rows * sizeof *first);
    check(b,
          TRIAL(IN(normal(b, layout, ndim, shape), table),
                OUT(wide_result(b, SHAPE(n))), .length = length),
          "%s", what);
}

void
cases_segments(struct bench *b)
{
    enum { MANY = 1500, LONG = 3 };
    static int32_t first[MANY + 1];
    segments(b, "one stretch of one", ROW, 1, 1, (int32_t[]){0, 1}, SHAPE(1));
    segments(b, "no stretch", ROW, 1, 0, (int32_t[]){2}, SHAPE(5));
    segments(b, "no rows", ROW, 1, 2, (int32_t[]){0, 0, 0}, SHAPE(0, 64));
    segments(b, "rows of nothing", ROW, 1, 2, (int32_t[]){0, 1, 3}, SHAPE(3, 0));
    segments(b, "empty ones, gaps before and behind", ROW, 31, 5,
             (int32_t[]){3, 3, 34, 34, 60, 61}, SHAPE(64));
    segments(b, "a table that goes on outside", ROW, 33, 4,
             (int32_t[]){-7, 0, 2, 50, 60}, SHAPE(35));
    /* Flat memory: rows of 64, vectors and matrices in turn, as long as parts and one
     * more or less. */
    segments(b, "parameters", ROW, 64 * 1094, 9,
             (int32_t[]){0, 1, 129, 130, 258, 387, 388, 1482, 1483, 1500},
             SHAPE(1500, 64));
    segments(b, "unaligned beginnings", ROW, 70001 - 16384, 4,
             (int32_t[]){0, 1, 8193, 16384, 70001}, SHAPE(70001));
    segments(b, "all from the second element on", SHIFTED, 9000, 3,
             (int32_t[]){0, 3, 1003, 1999}, SHAPE(2000, 9));
    for (int i = 0; i <= MANY; i++)
        first[i] = i / LONG;
    segments(b, "more stretches than rows", ROW, 7, MANY, first, SHAPE(500, 7));
    for (int i = 0; i <= MANY; i++)
        first[i] = i + (i > 700 ? 9000 : 0);
    segments(b, "one long among many short ones", ROW, 9001, MANY, first,
             SHAPE(10500, 1));
    segments(b, "every second element", GAPS, 4000, 3, (int32_t[]){0, 5, 130, 131},
             SHAPE(131, 33));
    segments(b, "turned", TURNED, 9000, 2, (int32_t[]){0, 3, 300}, SHAPE(300, 31));
    segments(b, "channels-last", LAST, 2200, 3, (int32_t[]){0, 1, 2, 5},
             SHAPE(5, 7, 9, 11));
    segments(b, "heads", HEADS, 3000, 2, (int32_t[]){0, 3, 4}, SHAPE(4, 5, 6, 33));
    segments(b, "one row, repeated", REPEAT, 310, 2, (int32_t[]){0, 7, 17},
             SHAPE(17, 31));
    struct operand *table = operand(b, ET_I32, GIVEN, 0, GAPS, SHAPE(4));
    for (int i = 0; i < 4; i++)
        ((int32_t *)table->block)[table->base + 2 * i] = 5 * i + i % 2;
    check(b,
          TRIAL(IN(normal(b, ROW, SHAPE(17, 9)), table), OUT(wide_result(b, SHAPE(3))),
                .length = 60, .may_refuse = true),
          "a table with gaps");
}

void
cases_argmax(struct bench *b)
{
    for (int axis = 0; axis < 3; axis++) {
        int64_t shape[3] = {5, 33, 7}, left[2];
        for (int k = 0, n = 0; k < 3; k++)
            if (k != axis)
                left[n++] = shape[k];
        struct et_axis_attr o = {.axis = axis};
        check(b,
              TRIAL(ATTR(o), IN(normal(b, ROW, 3, shape)),
                    OUT(result(b, ET_I32, ROW, 2, left))),
              "axis %d", axis);
        check(b,
              TRIAL(ATTR(o), IN(operand(b, ET_F32, COARSE, 0, ROW, 3, shape)),
                    OUT(result(b, ET_I32, ROW, 2, left))),
              "axis %d with equals", axis);
    }
    struct et_axis_attr o = {.axis = 1};
    check(b,
          TRIAL(ATTR(o), IN(operand(b, ET_F32, SPECIAL, 0, ROW, SHAPE(7, 40))),
                OUT(result(b, ET_I32, ROW, SHAPE(7)))),
          "the first NaN wins");
    check(b,
          TRIAL(ATTR(o), IN(operand(b, ET_F32, COARSE, 0, ROW, SHAPE(2, 3001))),
                OUT(result(b, ET_I32, ROW, SHAPE(2)))),
          "a vocabulary with equals");
    for (int axis = 0; axis < 4; axis++) {
        static const int64_t shape[4] = {4, 5, 3, 7};
        int64_t left[3];
        for (int k = 0, n = 0; k < 4; k++)
            if (k != axis)
                left[n++] = shape[k];
        o.axis = axis;
        check(b,
              TRIAL(ATTR(o), IN(normal(b, LAST, 4, shape)),
                    OUT(result(b, ET_I32, ROW, 3, left))),
              "channels-last, axis %d", axis);
    }
    o.axis = 1;
    check(b,
          TRIAL(ATTR(o), IN(normal(b, GAPS, SHAPE(3, 10))),
                OUT(result(b, ET_I32, ROW, SHAPE(3)))),
          "every second element");
}

void
cases_topk(struct bench *b)
{
    static const int64_t sizes[][2] = {{10, 1},   {10, 5}, {7, 7},    {1000, 13},
                                       {2500, 3}, {1, 1},  {300, 40}, {65, 65}};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        struct et_axis_attr o = {.axis = 1, .n = sizes[k][1]};
        check(b,
              TRIAL(ATTR(o), IN(normal(b, ROW, SHAPE(3, sizes[k][0]))),
                    OUT(result(b, ET_F32, ROW, SHAPE(3, sizes[k][1])),
                        result(b, ET_I32, ROW, SHAPE(3, sizes[k][1])))),
              "%d of %d", (int)sizes[k][1], (int)sizes[k][0]);
    }
    struct et_axis_attr o = {.axis = 1, .n = 3};
    check(b,
          TRIAL(ATTR(o), IN(normal(b, TURNED, SHAPE(5, 11))),
                OUT(result(b, ET_F32, ROW, SHAPE(5, 3)), NULL)),
          "turned, values only");
    check(b,
          TRIAL(ATTR(o), IN(normal(b, TURNED, SHAPE(70, 300))),
                OUT(NULL, result(b, ET_I32, ROW, SHAPE(70, 3)))),
          "turned, places only");
    for (o.n = 3; o.n < 60; o.n += 40)
        check(b,
              TRIAL(ATTR(o), IN(operand(b, ET_F32, SPECIAL, 0, ROW, SHAPE(3, 70))),
                    OUT(result(b, ET_F32, ROW, SHAPE(3, o.n)),
                        result(b, ET_I32, ROW, SHAPE(3, o.n)))),
              "%d of NaN and equals", (int)o.n);
}

/* ---- matmul ---- */

/* A row of N that a product adds: beside operands that do not lie row by row it has
 * gaps itself. */
static struct operand *
bias_beside(struct bench *b, enum layout operands, int64_t n)
{
    return normal(b, operands == ROW ? ROW : GAPS, 1, &n);
}

static void
product(struct bench *b, const char *what, int64_t m, int64_t k, int64_t n, int turns,
        bool bias, enum layout layout)
{
    struct et_matmul_attr o = {.trans_a = turns & 1, .trans_b = turns >> 1};
    struct operand *x =
        o.trans_a ? normal(b, layout, SHAPE(k, m)) : normal(b, layout, SHAPE(m, k));
    struct operand *y =
        o.trans_b ? normal(b, layout, SHAPE(n, k)) : normal(b, layout, SHAPE(k, n));
    check(b,
          TRIAL(ATTR(o), IN(x, y, bias ? bias_beside(b, layout, n) : NULL),
                OUT(result(b, ET_F32, ROW, SHAPE(m, n))), .length = k),
          "%s%dx%dx%d%s%s%s", what, (int)m, (int)k, (int)n,
          o.trans_a ? ", a turned" : "", o.trans_b ? ", b turned" : "",
          bias ? ", bias" : "");
}

static void
batched(struct bench *b, const char *what, bool shared, enum layout layout, int turns)
{
    struct et_matmul_attr o = {.trans_a = turns & 1, .trans_b = turns >> 1};
    int64_t m = 7, k = 31, n = 5;
    struct operand *x = o.trans_a ? normal(b, layout, SHAPE(2, 3, k, m))
                                  : normal(b, layout, SHAPE(2, 3, m, k));
    int64_t w[4] = {2, 3, o.trans_b ? n : k, o.trans_b ? k : n};
    struct operand *y = shared ? normal(b, layout, 2, w + 2) : normal(b, layout, 4, w);
    check(b,
          TRIAL(ATTR(o), IN(x, y, shared ? bias_beside(b, layout, n) : NULL),
                OUT(result(b, ET_F32, ROW, SHAPE(2, 3, m, n))), .length = k),
          "%s, batched%s, turns %d", what, shared ? ", b shared" : "", turns);
}

/* More than blocks of a grid, along axes that do not run on. */
static void
many_matrices(struct bench *b)
{
    struct et_matmul_attr o = {0};
    check(b,
          TRIAL(ATTR(o),
                IN(normal(b, HEADS, SHAPE(61, 71, 2, 3)),
                   normal(b, HEADS, SHAPE(61, 71, 3, 1)), NULL),
                OUT(result(b, ET_F32, ROW, SHAPE(61, 71, 2, 1))), .length = 3),
          "4331 small matrices, heads beside each other");
}

/* Axes of length 1, whose strides mean nothing and may be anything: the three sizes of
 * a product and two leading axes, each 1 or not, in every layout, with a b for each
 * leading index and with one for all. */
static void
axes_of_one(struct bench *b)
{
    static const enum layout layouts[] = {LAST, GAPS, TURNED, HEADS};
    static const char *const names[] = {"channels-last", "every second element",
                                        "turned memory", "heads beside each other"};
    for (int which = 0; which < 32 * 4 * 4; which++) {
        int layout = which >> 5 & 3, turn = which >> 7 & 1, shared = which >> 8;
        struct et_matmul_attr o = {.trans_a = turn, .trans_b = turn};
        int64_t d[5];
        for (int i = 0; i < 5; i++)
            d[i] = which >> i & 1 ? 1 : i + 2;
        int64_t x[4] = {d[0], d[1], d[2 + turn], d[3 - turn]};
        int64_t y[4] = {d[0], d[1], d[3 + turn], d[4 - turn]};
        check(b,
              TRIAL(ATTR(o),
                    IN(normal(b, layouts[layout], 4, x),
                       shared ? normal(b, layouts[layout], 2, y + 2)
                              : normal(b, layouts[layout], 4, y),
                       NULL),
                    OUT(result(b, ET_F32, ROW, SHAPE(d[0], d[1], d[2], d[4]))),
                    .length = d[3]),
              "%dx%d of %dx%dx%d, %s%s%s", (int)d[0], (int)d[1], (int)d[2], (int)d[3],
              (int)d[4], names[layout], turn ? ", turned" : "",
              shared ? ", b shared" : "");
    }
}

/* Matrices of M rows whose results, or operands, lie as heads do: the step to the next
 * row is longer than that to the next matrix, also where each has one row. (Results of
 * more rows are not asked for: the simulated cuBLASLt takes none that lie within each
 * other.) */
static void
rows_apart(struct bench *b, int64_t m, bool shared)
{
    struct et_matmul_attr o = {0};
    for (int which = 1; which < (m == 1 ? 4 : 2); which++) {
        enum layout x = which & 1 ? HEADS : ROW, y = which & 2 ? HEADS : ROW;
        check(b,
              TRIAL(ATTR(o),
                    IN(normal(b, x, SHAPE(2, 5, m, 8)),
                       shared ? normal(b, ROW, SHAPE(8, 12))
                              : normal(b, ROW, SHAPE(2, 5, 8, 12)),
                       NULL),
                    OUT(result(b, ET_F32, y, SHAPE(2, 5, m, 12))), .length = 8,
                    .may_refuse = true),
              "%d rows, %s%s as heads lie%s", (int)m, which & 1 ? "a" : "",
              which & 2 ? "y" : "", shared ? ", b shared" : "");
    }
}

/* Results of another dtype than the operands, or of f64; Y is of 33 x 24. */
static void
product_of_dtypes(struct bench *b, enum et_dtype in, struct operand *y, bool bias)
{
    struct et_matmul_attr o = {.trans_b = 1};
    check(b,
          TRIAL(ATTR(o),
                IN(operand(b, in, NORMAL, 0, ROW, SHAPE(33, 40)),
                   operand(b, in, NORMAL, 0, ROW, SHAPE(24, 40)),
                   bias ? operand(b, y->d.dtype, NORMAL, 0, ROW, SHAPE(24)) : NULL),
                OUT(y), .length = 40, .may_refuse = true),
          "of %s to %s%s", et_dtype_name(in), et_dtype_name(y->d.dtype),
          bias ? ", bias" : "");
}

void
cases_matmul(struct bench *b)
{
    for (int turns = 0; turns < 4; turns++) {
        product(b, "", 33, 31, 17, turns, turns & 1, ROW);
        product(b, "turned memory, ", 5, 7, 3, turns, true, TURNED);
        product(b, "every second element, ", 5, 7, 3, turns, false, GAPS);
        product(b, "many rows, ", 1031, 7, 37, turns, turns & 1, ROW);
        product(b, "many terms, ", 5, 1031, 37, turns, turns >> 1, ROW);
        batched(b, "row-major", false, ROW, turns);
        batched(b, "row-major", true, ROW, turns);
        batched(b, "turned memory", false, TURNED, turns);
        batched(b, "every second element", true, GAPS, turns);
        batched(b, "heads beside each other", false, HEADS, turns);
        batched(b, "repeated axis 0", false, REPEAT, turns);
    }
    product(b, "", 1, 1, 1, 0, true, ROW);
    product(b, "", 1, 784, 10, 2, true, ROW);
    product(b, "", 64, 3, 1, 0, false, ROW);
    product(b, "", 128, 257, 127, 2, true, ROW);
    product(b, "several tiles, ", 65, 129, 193, 0, true, GAPS);
    product(b, "many columns, ", 3, 17, 5003, 2, true, ROW);
    many_matrices(b);
    axes_of_one(b);
    for (int i = 0; i < 4; i++)
        rows_apart(b, i & 1 ? 3 : 1, i >> 1);
    for (int bias = 0; bias < 2; bias++) {
        product_of_dtypes(b, ET_F64, result(b, ET_F64, ROW, SHAPE(33, 24)), bias);
        product_of_dtypes(b, ET_BF16, wide_result(b, SHAPE(33, 24)), bias);
        product_of_dtypes(b, ET_F16, wide_result(b, SHAPE(33, 24)), bias);
    }
    product(b, "empty, ", 0, 3, 5, 0, true, ROW);
    product(b, "no terms, ", 3, 0, 5, 0, true, ROW);
    struct et_matmul_attr o = {0};
    check(b,
          TRIAL(ATTR(o),
                IN(normal(b, ROW, SHAPE(2, 3, 4, 0)), normal(b, ROW, SHAPE(0, 5)),
                   normal(b, ROW, SHAPE(5))),
                OUT(result(b, ET_F32, ROW, SHAPE(2, 3, 4, 5)))),
          "no terms, batched, bias");
    if (b->device->stream_new) /* the simulated cuBLASLt takes none of these */
        return;
    for (int shared = 0; shared < 2; shared++)
        check(b,
              TRIAL(ATTR(o),
                    IN(normal(b, ROW, SHAPE(2, 5, 3, 8)),
                       shared ? normal(b, ROW, SHAPE(8, 12))
                              : normal(b, ROW, SHAPE(2, 5, 8, 12)),
                       NULL),
                    OUT(result(b, ET_F32, HEADS, SHAPE(2, 5, 3, 12))), .length = 8),
              "results that lie as heads do%s", shared ? ", b shared" : "");
}

/* ---- products and what follows them ---- */

/* A product of M x K x N, of BATCH of them with one b where that is not 0. */
struct fused_case {
    const char *what;
    int64_t batch, m, k, n;
    enum layout layout;
};

static const struct fused_case fused_cases[] = {
    {"", 0, 33, 32, 24, ROW},
    {"what cuBLASLt's tables do not take, ", 0, 33, 31, 17, ROW},
    {"every second element, ", 0, 5, 8, 16, GAPS},
    {"turned memory, ", 0, 16, 24, 8, TURNED},
    {"one row, ", 0, 1, 8, 8, ROW},
    {"many rows, ", 0, 1031, 8, 40, ROW},
    {"many terms, ", 0, 8, 1032, 16, ROW},
    {"no terms, ", 0, 3, 0, 8, ROW},
    {"batched, ", 3, 7, 16, 24, ROW},
};

static struct operand *
side(struct bench *b, const struct fused_case *v, bool left, bool turn)
{
    int64_t rows = left ? v->m : v->k, columns = left ? v->k : v->n;
    int64_t shape[3] = {v->batch, turn ? columns : rows, turn ? rows : columns};
    bool batched = left && v->batch;
    return normal(b, v->layout, batched ? 3 : 2, batched ? shape : shape + 1);
}

static void
fused_product(struct bench *b, const struct fused_case *v, int form, int turns,
              bool biased, bool wanted)
{
    static const char *const names[ET_EPILOGUES] = {
        [ET_EPILOGUE_GELU] = "gelu",
        [ET_EPILOGUE_GELU_GRAD] = "gelu's gradient",
        [ET_EPILOGUE_SUM_A] = "sums of a",
        [ET_EPILOGUE_SUM_B] = "sums of b",
    };
    struct et_matmul_fused_attr o = {
        .trans_a = turns & 1, .trans_b = turns >> 1, .form = form};
    int64_t shape[3] = {v->batch, v->m, v->n}, *of = v->batch ? shape : shape + 1;
    int ndim = v->batch ? 3 : 2;
    bool grad = form == ET_EPILOGUE_GELU_GRAD, gelu = form == ET_EPILOGUE_GELU;
    struct operand *more =
        !wanted ? NULL
        : gelu  ? result(b, ET_F32, ROW, ndim, of)
                : result(b, ET_F32, ROW, 1, form == ET_EPILOGUE_SUM_A ? &v->m : &v->n);
    check(b,
          TRIAL(ATTR(o),
                IN(side(b, v, true, o.trans_a), side(b, v, false, o.trans_b),
                   biased ? bias_beside(b, v->layout, v->n) : NULL,
                   grad ? normal(b, ROW, ndim, of) : NULL),
                OUT(result(b, ET_F32, ROW, ndim, of), more),
                .length =
                    (v->k ? v->k : 1) + (grad ? v->m * (v->batch ? v->batch : 1) : 0),
                .narrow_terms = true,
                .may_refuse = !(b->device->epilogues >> form & 1)),
          "%s%s of %dx%dx%d, turns %d%s%s", v->what, names[form], (int)v->m, (int)v->k,
          (int)v->n, turns, biased ? ", bias" : "", wanted ? "" : ", one result");
}

void
cases_matmul_fused(struct bench *b)
{
    for (size_t i = 0; i < sizeof fused_cases / sizeof fused_cases[0]; i++)
        for (int form = 0; form < ET_EPILOGUES; form++)
            for (int turns = 0; turns < 4; turns++) {
                const struct fused_case *v = &fused_cases[i];
                bool gelu = form == ET_EPILOGUE_GELU;
                if (v->batch && form != ET_EPILOGUE_GELU &&
                    form != ET_EPILOGUE_GELU_GRAD)
                    continue; /* sums are of one matrix */
                fused_product(b, v, form, turns, gelu && turns < 2, turns != 1);
                if (gelu)
                    fused_product(b, v, form, turns, turns >= 2, turns == 1);
            }
}

/* ---- movement ---- */

void
cases_copy(struct bench *b)
{
    for (int dtype = ET_F32; dtype < ET_DTYPE_COUNT; dtype++)
        for (int layout = ROW; layout <= REPEAT; layout++) {
            struct operand *x = operand(b, (enum et_dtype)dtype, INDEX, 100,
                                        (enum layout)layout, SHAPE(2, 5, 3, 7));
            struct et_copy_attr last = {.format = ET_CHANNELS_LAST}, row = {0};
            check(b,
                  TRIAL(ATTR(last), IN(x),
                        OUT(result(b, (enum et_dtype)dtype, LAST, SHAPE(2, 5, 3, 7)))),
                  "%s from layout %d to channels-last",
                  et_dtype_name((enum et_dtype)dtype), layout);
            check(b,
                  TRIAL(ATTR(row), IN(x),
                        OUT(result(b, (enum et_dtype)dtype, ROW, SHAPE(2, 5, 3, 7)))),
                  "%s from layout %d to row-major", et_dtype_name((enum et_dtype)dtype),
                  layout);
        }
    struct et_copy_attr row = {0};
    for (int dtype = ET_F64; dtype < ET_DTYPE_COUNT; dtype++)
        check(b,
              TRIAL(ATTR(row),
                    IN(operand(b, (enum et_dtype)dtype, INDEX, 250, TURNED,
                               SHAPE(2, 35, 19))),
                    OUT(result(b, (enum et_dtype)dtype, ROW, SHAPE(2, 35, 19)))),
              "turned matrices of %s", et_dtype_name((enum et_dtype)dtype));
    check(b,
          TRIAL(ATTR(row), IN(normal(b, TURNED, SHAPE(67, 131))),
                OUT(result(b, ET_F32, ROW, SHAPE(67, 131)))),
          "a turned matrix");
    check(b,
          TRIAL(ATTR(row), IN(normal(b, TURNED, SHAPE(5, 32, 19))),
                OUT(result(b, ET_F32, ROW, SHAPE(5, 32, 19)))),
          "turned matrices of whole tiles");
    check(b,
          TRIAL(ATTR(row), IN(normal(b, GAPS, SHAPE(40000))),
                OUT(result(b, ET_F32, ROW, SHAPE(40000)))),
          "every second element of a long row");
    check(b,
          TRIAL(ATTR(row), IN(normal(b, ROW, SCALAR)),
                OUT(result(b, ET_F32, ROW, SCALAR))),
          "a scalar");
    check(b,
          TRIAL(ATTR(row), IN(normal(b, ROW, SHAPE(3, 0))),
                OUT(result(b, ET_F32, ROW, SHAPE(3, 0)))),
          "none");
}

void
cases_concat(struct bench *b)
{
    for (int axis = 0; axis < 4; axis++)
        for (int layout = ROW; layout <= TURNED; layout++) {
            struct et_axis_attr o = {.axis = axis};
            int64_t shape[3][4] = {{2, 3, 5, 7}, {2, 3, 5, 7}, {2, 3, 5, 7}}, all[4];
            memcpy(all, shape[0], sizeof all);
            shape[1][axis] = 1;
            shape[2][axis] = 4;
            all[axis] += 5;
            struct operand *x[3];
            for (int k = 0; k < 3; k++)
                x[k] = normal(b, (enum layout)layout, 4, shape[k]);
            check(b,
                  TRIAL(ATTR(o), IN(x[0], x[1], x[2]),
                        OUT(result(b, ET_F32, layout == LAST ? LAST : ROW, 4, all))),
                  "axis %d, layout %d", axis, layout);
        }
    struct et_axis_attr o = {.axis = 0};
    check(b,
          TRIAL(ATTR(o),
                IN(operand(b, ET_U8, INDEX, 9, ROW, SHAPE(3)),
                   operand(b, ET_U8, INDEX, 9, ROW, SHAPE(0))),
                OUT(result(b, ET_U8, ROW, SHAPE(3)))),
          "u8 with an empty operand");
    check(b,
          TRIAL(ATTR(o), IN(operand(b, ET_I64, INDEX, 9, ROW, SHAPE(3, 2))),
                OUT(result(b, ET_I64, ROW, SHAPE(3, 2)))),
          "one i64 operand");
}

void
cases_pack(struct bench *b)
{
    int64_t o[] = {400, 0, 112, 320, 333}; /* struct et_pack_attr: total, offsets */
    check(b,
          TRIAL(ATTR(o),
                IN(normal(b, ROW, SHAPE(3, 37)), normal(b, LAST, SHAPE(2, 5, 3, 7)),
                   NULL, normal(b, TURNED, SHAPE(5, 13))),
                OUT(result(b, ET_F32, ROW, SHAPE(400)))),
          "memory order, gaps and a missing operand");
    struct {
        int64_t total, offset[20];
    } many = {.total = 2000};
    struct trial t = {.attr = &many, .attr_size = sizeof many, .n_in = 20, .n_out = 1};
    for (int k = 0; k < 20; k++) { /* from the end to the beginning, 100 - n apart */
        int64_t n = k == 7 ? 0 : 1 + 13 * k % 97;
        many.offset[k] = 1900 - 100 * k + k % 4;
        t.in[k] = normal(b, ROW, SHAPE(n));
    }
    t.out[0] = result(b, ET_F32, ROW, SHAPE(2000));
    check(b, &t, "20 parts in the order of their use, gaps between all");
    int64_t shared[] = {60, 7, 50, 7, 50, 7}; /* by parts of nothing */
    check(b,
          TRIAL(ATTR(shared),
                IN(normal(b, ROW, SHAPE(0)), normal(b, ROW, SHAPE(9)),
                   normal(b, ROW, SHAPE(41)), normal(b, ROW, SHAPE(0, 3)),
                   normal(b, ROW, SHAPE(2, 0))),
                OUT(result(b, ET_F32, ROW, SHAPE(60)))),
          "parts of nothing in the places of others");
    o[0] = 3;
    check(b,
          TRIAL(.attr = &o, .attr_size = 2 * sizeof *o, IN(normal(b, ROW, SCALAR)),
                OUT(result(b, ET_F32, ROW, SHAPE(3)))),
          "a scalar");
}

void
cases_pad(struct bench *b)
{
    struct et_pad_attr o = {
        .before = {0, 0, 2, 1}, .after = {0, 0, 1, 3}, .value = -1.5};
    struct et_pad_attr cut = {.before = {-1, 2}, .after = {1, -3}};
    for (int layout = ROW; layout <= TURNED; layout++)
        check(b,
              TRIAL(ATTR(o), IN(normal(b, (enum layout)layout, SHAPE(2, 5, 3, 7))),
                    OUT(result(b, ET_F32, layout == LAST ? LAST : ROW,
                               SHAPE(2, 5, 6, 11)))),
              "images, layout %d", layout);
    check(b,
          TRIAL(ATTR(cut), IN(normal(b, ROW, SHAPE(3, 8))),
                OUT(result(b, ET_F32, ROW, SHAPE(3, 7)))),
          "negative amounts cut");
    struct et_pad_attr gone = {.before = {7, 0}, .after = {-5, 0}, .value = 2};
    struct et_pad_attr behind = {.before = {-4, 1}, .after = {6, 0}, .value = 2};
    check(b,
          TRIAL(ATTR(gone), IN(normal(b, ROW, SHAPE(3, 4))),
                OUT(result(b, ET_F32, ROW, SHAPE(5, 4)))),
          "a border that ends behind the result");
    check(b,
          TRIAL(ATTR(behind), IN(normal(b, ROW, SHAPE(3, 4))),
                OUT(result(b, ET_F32, ROW, SHAPE(5, 5)))),
          "an operand that is cut off as a whole");
    struct et_pad_attr one = {.before = {1}, .after = {1}, .value = 3};
    check(b,
          TRIAL(ATTR(one), IN(operand(b, ET_I32, INDEX, 9, ROW, SHAPE(5))),
                OUT(result(b, ET_I32, ROW, SHAPE(7)))),
          "i32");
    check(b,
          TRIAL(ATTR(one), IN(normal(b, ROW, SHAPE(0))),
                OUT(result(b, ET_F32, ROW, SHAPE(2)))),
          "an empty operand");
}

void
cases_flip(struct bench *b)
{
    for (uint32_t axes = 0; axes < 16; axes++) {
        struct et_flip_attr o = {.axes = axes};
        enum layout layout = axes & 1 ? LAST : ROW;
        check(b,
              TRIAL(ATTR(o), IN(normal(b, layout, SHAPE(2, 5, 3, 7))),
                    OUT(result(b, ET_F32, layout, SHAPE(2, 5, 3, 7)))),
              "axes 0x%x", axes);
    }
    struct et_flip_attr o = {.axes = 2};
    check(b,
          TRIAL(ATTR(o), IN(operand(b, ET_I32, INDEX, 99, GAPS, SHAPE(5, 31))),
                OUT(result(b, ET_I32, ROW, SHAPE(5, 31)))),
          "i32, every second element");
    for (int dtype = ET_F64; dtype < ET_DTYPE_COUNT; dtype++)
        check(b,
              TRIAL(ATTR(o),
                    IN(operand(b, (enum et_dtype)dtype, INDEX, 250, ROW, SHAPE(5, 31))),
                    OUT(result(b, (enum et_dtype)dtype, ROW, SHAPE(5, 31)))),
              "rows of %s", et_dtype_name((enum et_dtype)dtype));
}

/* Rows of COLUMNS elements of a table of WORDS rows, by TOKENS indices, of which some
 * are outside. */
static void
take_rows(struct bench *b, const char *what, enum layout layout, int64_t words,
          int64_t tokens, int64_t columns)
{
    bool grad = b->op == ET_OP_take_grad;
    struct et_axis_attr o = {.axis = 0, .n = words};
    struct operand *index =
        operand(b, ET_I32, INDEX, words + words / 8, ROW, SHAPE(tokens));
    check(b,
          grad ? TRIAL(ATTR(o), IN(normal(b, layout, SHAPE(tokens, columns)), index),
                       OUT(result(b, ET_F32, layout, SHAPE(words, columns))),
                       .length = tokens)
               : TRIAL(ATTR(o), IN(normal(b, layout, SHAPE(words, columns)), index),
                       OUT(result(b, ET_F32, layout, SHAPE(tokens, columns)))),
          "%s", what);
}

/* As many indices as there are elements, so that only the strides of the two arrays
 * and the axis tell what has to be copied how. */
static void
take_as_many(struct bench *b)
{
    static const int64_t shape[] = {4, 6, 3, 5};
    for (int axis = 0; axis < 4; axis++)
        for (int from = ROW; from <= HEADS; from++)
            for (int to = ROW; to <= HEADS; to++) {
                struct et_axis_attr o = {.axis = axis, .n = shape[axis]};
                struct operand *index =
                    operand(b, ET_I32, INDEX, shape[axis] + 1, ROW, SHAPE(shape[axis]));
                check(b,
                      TRIAL(ATTR(o), IN(normal(b, (enum layout)from, 4, shape), index),
                            OUT(result(b, ET_F32, (enum layout)to, 4, shape))),
                      "as many along axis %d, layout %d to %d", axis, from, to);
            }
    struct et_axis_attr o = {.axis = 0, .n = 7};
    check(b,
          TRIAL(ATTR(o),
                IN(normal(b, TURNED, SHAPE(7, 5)),
                   operand(b, ET_I32, INDEX, 7, ROW, SHAPE(7))),
                OUT(result(b, ET_F32, TURNED, SHAPE(7, 5)))),
          "as many columns of turned matrices");
    struct operand *apart = normal(b, GAPS, SHAPE(7, 5));
    apart->d.stride[1] = 1;
    check(b,
          TRIAL(ATTR(o), IN(apart, operand(b, ET_I32, INDEX, 7, ROW, SHAPE(7))),
                OUT(result(b, ET_F32, ROW, SHAPE(7, 5)))),
          "rows that lie apart");
}

/* What an index just outside, or far away, reads of arrays of all dtypes. */
static void
reads_outside(struct bench *b)
{
    static const int32_t places[] = {-1, 0, 5, 6, 3, INT32_MAX, INT32_MIN, 1};
    enum { N = sizeof places / sizeof *places, WORDS = 6, COLUMNS = 3 };
    const bool whole = b->op == ET_OP_take;
    struct et_axis_attr o = {.axis = 0, .n = WORDS};
    for (int dtype = ET_F32; dtype < ET_DTYPE_COUNT; dtype++) {
        const enum et_dtype d = (enum et_dtype)dtype;
        struct operand *x = operand(b, d, INDEX, 250, ROW, SHAPE(WORDS, COLUMNS));
        struct operand *index = whole ? operand(b, ET_I32, GIVEN, 0, ROW, SHAPE(N))
                                      : operand(b, ET_I32, GIVEN, 0, ROW, SHAPE(N, 3));
        for (int i = 0; i < (whole ? N : N * COLUMNS); i++)
            ((int32_t *)index->block)[index->base + i] =
                whole ? places[i] : places[(i + i / COLUMNS) % N];
        check(b,
              TRIAL(ATTR(o), IN(x, index), OUT(result(b, d, ROW, SHAPE(N, COLUMNS))),
                    .may_refuse = true),
              "outside of an array of %s", et_dtype_name(d));
    }
}

/* One axis of x [4, 11, 6] through an index [3, 5]: repeats occur; some are outside. */
void
cases_take(struct bench *b)
{
    bool grad = b->op == ET_OP_take_grad;
    for (int axis = 0; axis < 3; axis++)
        for (int outside = 0; outside < 2; outside++) {
            int64_t x[3] = {4, 11, 6}, y[4];
            int n = 0;
            for (int k = 0; k < 3; k++)
                if (k == axis) {
                    y[n++] = 3;
                    y[n++] = 5;
                } else {
                    y[n++] = x[k];
                }
            struct et_axis_attr o = {.axis = axis, .n = x[axis]};
            struct operand *index =
                operand(b, ET_I32, INDEX, x[axis] + 3 * outside, ROW, SHAPE(3, 5));
            struct operand *in =
                normal(b, axis == 2 ? TURNED : ROW, grad ? 4 : 3, grad ? y : x);
            check(b,
                  TRIAL(ATTR(o), IN(in, index),
                        OUT(result(b, ET_F32, ROW, grad ? 3 : 4, grad ? x : y)),
                        .length = grad ? 15 : 0),
                  "axis %d%s", axis, outside ? ", some indices outside" : "");
        }
    struct et_axis_attr o = {.axis = 0, .n = 97};
    struct operand *index = operand(b, ET_I32, INDEX, 97, ROW, SHAPE(70));
    check(b,
          grad ? TRIAL(ATTR(o), IN(normal(b, ROW, SHAPE(70, 33)), index),
                       OUT(result(b, ET_F32, ROW, SHAPE(97, 33))), .length = 70)
               : TRIAL(ATTR(o), IN(normal(b, ROW, SHAPE(97, 33)), index),
                       OUT(result(b, ET_F32, ROW, SHAPE(70, 33)))),
          "an embedding");
    take_rows(b, "many tokens of few words", ROW, 3, 300, 16);
    take_rows(b, "many tokens of many words", ROW, 70000, 2500, 8);
    take_rows(b, "one word", ROW, 1, 1100, 24);
    take_rows(b, "every second element", GAPS, 40, 150, 8);
    take_rows(b, "from the second element on", SHIFTED, 40, 150, 16);
    take_rows(b, "no token", ROW, 5, 0, 8);
    if (!grad) {
        take_as_many(b);
        reads_outside(b);
    }
}

void
cases_gather(struct bench *b)
{
    bool scatter = b->op == ET_OP_scatter_add;
    for (int axis = 0; axis < 3; axis++)
        for (int outside = 0; outside < 2; outside++) {
            int64_t x[3] = {4, 11, 6}, y[3] = {4, 11, 6};
            y[axis] = 8;
            struct et_axis_attr o = {.axis = axis, .n = x[axis]};
            struct operand *index =
                operand(b, ET_I32, INDEX, x[axis] + 3 * outside, ROW, 3, y);
            struct operand *in =
                normal(b, axis == 2 ? TURNED : ROW, 3, scatter ? y : x);
            check(b,
                  TRIAL(ATTR(o), IN(in, index),
                        OUT(result(b, ET_F32, ROW, 3, scatter ? x : y)),
                        .length = scatter ? 8 : 0),
                  "axis %d%s", axis, outside ? ", some indices outside" : "");
        }
    /* Few long lines, and many short ones. */
    static const int64_t sizes[][3] = {{2, 1500, 40}, {1, 700, 70000}, {2100, 3, 5}};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        const int64_t *v = sizes[k];
        struct et_axis_attr o = {.axis = 1, .n = v[2]};
        struct operand *index =
            operand(b, ET_I32, INDEX, v[2] + 1, ROW, SHAPE(v[0], v[1]));
        struct operand *in = scatter ? normal(b, ROW, SHAPE(v[0], v[1]))
                                     : normal(b, ROW, SHAPE(v[0], v[2]));
        check(b,
              TRIAL(ATTR(o), IN(in, index),
                    OUT(scatter ? result(b, ET_F32, ROW, SHAPE(v[0], v[2]))
                                : result(b, ET_F32, ROW, SHAPE(v[0], v[1]))),
                    .length = scatter ? v[1] : 0),
              "%d lines of %d into %d", (int)v[0], (int)v[1], (int)v[2]);
    }
    if (!scatter)
        reads_outside(b);
}

void
cases_dropout(struct bench *b)
{
    struct et_dropout_attr o = {.p = 0.3, .ordinal = 5};
    struct operand *rng = draw_key(b);
    check(b,
          TRIAL(ATTR(o), IN(normal(b, ROW, SHAPE(7, 1001)), rng),
                OUT(result(b, ET_F32, ROW, SHAPE(7, 1001))), .length = 1),
          "odd rows");
    check(b,
          TRIAL(ATTR(o), IN(normal(b, LAST, SHAPE(2, 5, 3, 7)), rng),
                OUT(result(b, ET_F32, LAST, SHAPE(2, 5, 3, 7))), .length = 1),
          "channels-last");
    check(b,
          TRIAL(ATTR(o), IN(normal(b, ROW, SHAPE(3, 4, 6)), rng),
                OUT(result(b, ET_F32, ROW, SHAPE(3, 4, 6))), .length = 1,
                .in_place = true),
          "in place");
    check(b,
          TRIAL(ATTR(o), IN(normal(b, TURNED, SHAPE(3, 5, 33)), rng),
                OUT(result(b, ET_F32, ROW, SHAPE(3, 5, 33))), .length = 1),
          "turned");
    check(b,
          TRIAL(ATTR(o), IN(normal(b, ROW, SHAPE(70)), rng),
                OUT(result(b, ET_F32, ROW, SHAPE(70))), .length = 1),
          "one element a sample");
    o.p = 0;
    check(b,
          TRIAL(ATTR(o), IN(normal(b, ROW, SHAPE(3, 33)), rng),
                OUT(result(b, ET_F32, ROW, SHAPE(3, 33)))),
          "p = 0 keeps all");
    for (int above = 0; above < 2; above++) {
        o.p = first_drawn(rng, (uint32_t)o.ordinal) + above * 0x1p-25;
        check(b,
              TRIAL(ATTR(o), IN(normal(b, ROW, SHAPE(3, 33)), rng),
                    OUT(result(b, ET_F32, ROW, SHAPE(3, 33))), .length = 1),
              "p %s", above ? "just above what is drawn" : "that is drawn");
    }
}
