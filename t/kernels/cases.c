/* SPDX-License-Identifier: Apache-2.0 */
/* cases.c: which cases each op has, and those of ops on single elements. */
#include "t/kernels/edges.h"
#include "t/kernels/judge.h"

#include <stdio.h>
#include <string.h>

#include "kernels/ref/array.h"
#include "t/tap.h"

/* ---- constants ---- */

static void
cases_fill(struct bench *b)
{
    struct et_shape_attr o = {
        .dtype = ET_F32, .ndim = 2, .shape = {3, 31}, .value = 0.1};
    check(b, TRIAL(ATTR(o), OUT(result(b, ET_F32, ROW, SHAPE(3, 31)))), "f32");
    o.dtype = ET_I64;
    o.value = -7;
    check(b, TRIAL(ATTR(o), OUT(result(b, ET_I64, ROW, SHAPE(3, 31)))), "i64");
    o.dtype = ET_U8;
    o.value = 1;
    check(b, TRIAL(ATTR(o), OUT(result(b, ET_U8, ROW, SHAPE(3, 31)))), "u8");
    struct et_shape_attr one = {.dtype = ET_F32, .value = -0.5};
    check(b, TRIAL(ATTR(one), OUT(result(b, ET_F32, ROW, SCALAR))), "a scalar");
    struct et_shape_attr great = {
        .dtype = ET_I64, .ndim = 1, .shape = {3}, .value = 0x1p40 + 1};
    check(b, TRIAL(ATTR(great), OUT(result(b, ET_I64, ROW, SHAPE(3)))),
          "i64 beyond f32");
    great.dtype = ET_F64;
    great.value = 0.1;
    check(b, TRIAL(ATTR(great), OUT(result(b, ET_F64, ROW, SHAPE(3)))), "f64");
}

static void
cases_iota(struct bench *b)
{
    struct et_shape_attr o = {.dtype = ET_F32, .ndim = 1, .shape = {33}};
    check(b, TRIAL(ATTR(o), OUT(result(b, ET_F32, ROW, SHAPE(33)))), "f32");
    o.dtype = ET_I32;
    check(b, TRIAL(ATTR(o), OUT(result(b, ET_I32, ROW, SHAPE(33)))), "i32");
    o.dtype = ET_I64;
    o.shape[0] = 1;
    check(b, TRIAL(ATTR(o), OUT(result(b, ET_I64, ROW, SHAPE(1)))), "one i64");
}

/* ---- element-wise ---- */

/* Attributes and contents an op needs to stay where it is smooth or defined. */
struct et_scalar_attr
scalars_of(enum et_op_id op)
{
    if (op == ET_OP_clamp)
        return (struct et_scalar_attr){.a = -0.5, .b = 0.75};
    return (struct et_scalar_attr){.a = op == ET_OP_pow_scalar ? 1.7 : -0.3};
}

enum contents
contents_of(enum et_op_id op)
{
    switch (op) {
    case ET_OP_log:
    case ET_OP_sqrt:
    case ET_OP_rsqrt:
    case ET_OP_reciprocal:
    case ET_OP_pow_scalar:
        return POSITIVE;
    case ET_OP_equal:
    case ET_OP_less:
    case ET_OP_less_equal:
    case ET_OP_sign:
        return COARSE;
    default:
        return NORMAL;
    }
}

static struct operand *
element_operand(struct bench *b, int k, enum layout layout, int ndim,
                const int64_t *shape)
{
    if (b->op == ET_OP_where && k == 0)
        return operand(b, ET_U8, INDEX, 2, layout, ndim, shape);
    enum contents c = b->op == ET_OP_div && k == 1 ? POSITIVE : contents_of(b->op);
    return operand(b, ET_F32, c, 0, layout, ndim, shape);
}

static enum et_dtype
element_dtype(enum et_op_id op)
{
    bool compares = op == ET_OP_equal || op == ET_OP_less || op == ET_OP_less_equal;
    return compares ? ET_U8 : ET_F32;
}

struct trial
element_trial(struct bench *b, const struct et_scalar_attr *o)
{
    struct trial t = {.n_in = etk_scalar_operands(b->op), .n_out = 1, .length = 1};
    bool has_scalars = b->op == ET_OP_add_scalar || b->op == ET_OP_mul_scalar ||
                       b->op == ET_OP_pow_scalar || b->op == ET_OP_clamp;
    if (has_scalars) {
        t.attr = o;
        t.attr_size = sizeof *o;
    }
    return t;
}

/* All operands of one shape and layout. */
static void
elements(struct bench *b, const char *what, enum layout layout, bool in_place, int ndim,
         const int64_t *shape)
{
    struct et_scalar_attr o = scalars_of(b->op);
    struct trial t = element_trial(b, &o);
    for (int k = 0; k < t.n_in; k++)
        t.in[k] = element_operand(b, k, layout, ndim, shape);
    t.out[0] = result_like(b, element_dtype(b->op), t.in[0]);
    t.in_place = in_place;
    check(b, &t, "%s", what);
}

/* Operand K has the shape, which is more than a block, the others that of a row or of a
 * channel. */
static void
broadcasts(struct bench *b, const char *what, int full, int ndim, const int64_t *small)
{
    struct et_scalar_attr o = scalars_of(b->op);
    struct trial t = element_trial(b, &o);
    for (int k = 0; k < t.n_in; k++)
        t.in[k] = k == full ? element_operand(b, k, LAST, SHAPE(12, 5, 3, 7))
                            : element_operand(b, k, ROW, ndim, small);
    t.out[0] = result(b, element_dtype(b->op), LAST, SHAPE(12, 5, 3, 7));
    check(b, &t, what, full);
}

/* NaN, infinities, zeros and denormals. */
static void
specials(struct bench *b)
{
    struct et_scalar_attr o = scalars_of(b->op);
    struct trial t = element_trial(b, &o);
    for (int k = 0; k < t.n_in; k++)
        t.in[k] = b->op == ET_OP_where && k == 0
                      ? element_operand(b, 0, ROW, SHAPE(97))
                      : operand(b, ET_F32, SPECIAL, 0, ROW, SHAPE(97));
    t.out[0] = result(b, element_dtype(b->op), ROW, SHAPE(97));
    check(b, &t, "NaN, infinity and zero go through");
}

static bool
defined_for_specials(enum et_op_id op)
{
    switch (op) {
    case ET_OP_neg:
    case ET_OP_abs:
    case ET_OP_relu:
    case ET_OP_clamp:
    case ET_OP_add:
    case ET_OP_sub:
    case ET_OP_mul:
    case ET_OP_maximum:
    case ET_OP_minimum:
    case ET_OP_equal:
    case ET_OP_less:
    case ET_OP_less_equal:
    case ET_OP_where:
    case ET_OP_relu_grad:
        return true;
    default:
        return false;
    }
}

/* Powers that have kernels of their own, and their neighbours that have none. */
static void
powers(struct bench *b)
{
    static const double power[] = {-2, -1, -0.5, 0, 0.5, 1, 2, 3};
    for (size_t k = 0; k < sizeof power / sizeof *power; k++) {
        struct et_scalar_attr o = {.a = power[k]};
        struct trial t = element_trial(b, &o);
        t.in[0] = element_operand(b, 0, ROW, SHAPE(67));
        t.out[0] = result_like(b, ET_F32, t.in[0]);
        check(b, &t, "to the power of %g", power[k]);
    }
}

/* Integers of 32 and 64 bits and doubles, as a whole, by rows, channels and numbers. */
static void
wide_elements(struct bench *b)
{
    static const enum et_dtype dtypes[] = {ET_I32, ET_I64, ET_F64};
    for (int i = 0; i < 3; i++)
        for (int small = 0; small < 4; small++) {
            struct trial t = {.n_in = 2, .n_out = 1, .may_refuse = true};
            const enum et_dtype d = dtypes[i];
            t.in[0] = operand(b, d, COARSE, 0, LAST, SHAPE(2, 5, 3, 7));
            t.in[1] = small == 0   ? operand(b, d, COARSE, 0, LAST, SHAPE(2, 5, 3, 7))
                      : small == 1 ? operand(b, d, COARSE, 0, ROW, SHAPE(7))
                      : small == 2 ? operand(b, d, COARSE, 0, ROW, SHAPE(1, 5, 1, 1))
                                   : operand(b, d, COARSE, 0, ROW, SCALAR);
            t.out[0] = result(b, element_dtype(b->op) == ET_U8 ? ET_U8 : d, LAST,
                              SHAPE(2, 5, 3, 7));
            check(b, &t, "%s, form %d of the second", et_dtype_name(d), small);
        }
}

/* Neighbours of 2^24 + 1, of which f32 has every second one, in rows that are longer
 * than a block of doubles. */
static void
great_elements(struct bench *b)
{
    enum { ROWS = 3, N = 900 };
    for (int i = 0; i < 2; i++) {
        const enum et_dtype d = i ? ET_I64 : ET_I32;
        struct trial t = {.n_in = 2, .n_out = 1, .may_refuse = true};
        t.in[0] = operand(b, d, GIVEN, 0, ROW, SHAPE(ROWS, N));
        t.in[1] = operand(b, d, GIVEN, 0, ROW, SHAPE(N));
        for (int k = 0; k < 2; k++) {
            struct etk_array a = array_of(t.in[k]);
            for (int at = 0; at < (k ? 1 : ROWS) * N; at++)
                etk_set(&a, at, 0x1p24 + (k ? at : at % N + at % 4 - 1));
        }
        t.out[0] =
            result(b, element_dtype(b->op) == ET_U8 ? ET_U8 : d, ROW, SHAPE(ROWS, N));
        check(b, &t, "%s beyond 2^24, a matrix and a long row", et_dtype_name(d));
    }
}

static void
cases_elementwise(struct bench *b)
{
    if (b->op == ET_OP_pow_scalar)
        powers(b);
    if (b->op == ET_OP_add || b->op == ET_OP_mul || b->op == ET_OP_maximum ||
        b->op == ET_OP_equal || b->op == ET_OP_less) {
        wide_elements(b);
        great_elements(b);
    }
    elements(b, "one", ROW, false, SHAPE(1));
    elements(b, "a scalar", ROW, false, SCALAR);
    elements(b, "none", ROW, false, SHAPE(0, 3));
    elements(b, "31", ROW, false, SHAPE(31));
    elements(b, "33 x 67", ROW, false, SHAPE(33, 67));
    elements(b, "70001", ROW, false, SHAPE(70001));
    elements(b, "channels-last", LAST, false, SHAPE(2, 5, 3, 7));
    elements(b, "every second element", GAPS, false, SHAPE(5, 31));
    elements(b, "turned", TURNED, false, SHAPE(2, 5, 33));
    elements(b, "heads beside each other", HEADS, false, SHAPE(2, 5, 3, 7));
    elements(b, "repeated rows", REPEAT, false, SHAPE(5, 33));
    if (b->op != ET_OP_where && element_dtype(b->op) == ET_F32)
        elements(b, "in place", ROW, true, SHAPE(13, 17));
    if (etk_scalar_operands(b->op) > 1)
        for (int k = 0; k < etk_scalar_operands(b->op); k++) {
            broadcasts(b, "operand %d full, the others by row", k, SHAPE(7));
            broadcasts(b, "operand %d full, the others by channel", k,
                       SHAPE(1, 5, 1, 1));
            broadcasts(b, "operand %d full, the others scalar", k, SCALAR);
        }
    if (defined_for_specials(b->op))
        specials(b);
}

/* Numbers halfway between two of a 16-bit format: some about 1, and the least of f16 or
 * small ones of bf16. */
static void
halves(struct bench *b, enum et_dtype to)
{
    enum { N = 64, MORE = 7 };
    /* Of f16: the largest number, and where the small ones begin. */
    static const float ends[MORE] = {65504,     -65519,          65520,      -65521,
                                     0x1.5p-15, 0x1.ffep-15 / 2, 0x1.ffep-15};
    struct et_cast_attr o = {.dtype = to};
    struct operand *x = operand(b, ET_F32, GIVEN, 0, ROW, SHAPE(2 * N + MORE));
    const double digit = to == ET_F16 ? 0x1p-11 : 0x1p-8;
    if (x->d.dtype != ET_F32) /* which has no such numbers */
        return;
    float *v = (float *)x->block + x->base;
    memcpy(v + 2 * N, ends, sizeof ends);
    for (int i = 0; i < N; i++) {
        v[i] = (float)((i % 2 ? -1 : 1) * (1 + (2 * i + 1) * digit));
        v[N + i] = to == ET_F16 ? (float)((2 * i + 1) * 0x1p-25) : v[i] * 0x1p-100f;
    }
    check(b, TRIAL(ATTR(o), IN(x), OUT(result(b, to, ROW, SHAPE(2 * N + MORE)))),
          "halfway between two numbers of %s", et_dtype_name(to));
}

static void
cases_cast(struct bench *b)
{
    halves(b, ET_BF16);
    halves(b, ET_F16);
    for (int from = ET_F32; from < ET_DTYPE_COUNT; from++)
        for (int to = ET_F32; to < ET_DTYPE_COUNT; to++) {
            struct et_cast_attr o = {.dtype = to};
            enum contents c = et_dtype_is_float((enum et_dtype)from) ? POSITIVE : INDEX;
            struct operand *x =
                operand(b, (enum et_dtype)from, c, 200, LAST, SHAPE(2, 5, 3, 3));
            struct operand *y = result_like(b, (enum et_dtype)to, x);
            check(b, TRIAL(ATTR(o), IN(x), OUT(y)), "%s to %s",
                  et_dtype_name((enum et_dtype)from), et_dtype_name((enum et_dtype)to));
        }
    for (int to = ET_BF16; to <= ET_F16; to++) {
        struct et_cast_attr o = {.dtype = to};
        struct operand *x = operand(b, ET_F32, SPECIAL, 0, GAPS, SHAPE(3, 67));
        check(b, TRIAL(ATTR(o), IN(x), OUT(result_like(b, (enum et_dtype)to, x))),
              "NaN and infinity to %s, every second element",
              et_dtype_name((enum et_dtype)to));
    }
}

static struct et_fused_step
step(enum et_op_id op, int n_src, int s0, int s1, int s2, double a)
{
    return (struct et_fused_step){
        .op = (uint16_t)op,
        .n_src = (uint8_t)n_src,
        .src = {(uint8_t)s0, (uint8_t)s1, (uint8_t)s2},
        .a = a,
    };
}

/* SGD with momentum: m = mu m + g; w = w - lr m; two results, rates broadcast. */
static void
fused_momentum(struct bench *b, bool in_place)
{
    struct et_fused_attr o = {.n_in = 4, .n_out = 2, .n_steps = 4, .out = {7, 5}};
    o.step[0] = step(ET_OP_mul_scalar, 1, 1, 0, 0, 0.9);
    o.step[1] = step(ET_OP_add, 2, 4, 2, 0, 0);
    o.step[2] = step(ET_OP_mul, 2, 5, 3, 0, 0);
    o.step[3] = step(ET_OP_sub, 2, 0, 6, 0, 0);
    struct operand *in[3];
    for (int k = 0; k < 3; k++)
        in[k] = normal(b, ROW, SHAPE(1013));
    struct operand *rate = operand(b, ET_F32, POSITIVE, 0, ROW, SCALAR);
    check(b,
          TRIAL(ATTR(o), IN(in[0], in[1], in[2], rate),
                OUT(result_like(b, ET_F32, in[0]), result_like(b, ET_F32, in[0])),
                .in_place = in_place, .length = 4),
          "momentum with two results%s", in_place ? ", one in place" : "");
}

/* Every unary op in turn, of (x^2 + 0.5) so that all are defined; one result each. */
/* Three results, of which the first takes the place of an operand that is read once
 * more, and the last is the first's number again. */
static void
fused_results(struct bench *b, bool in_place)
{
    struct et_fused_attr o = {.n_in = 2, .n_out = 3, .n_steps = 2, .out = {2, 3, 2}};
    o.step[0] = step(ET_OP_add, 2, 0, 1, 0, 0);
    o.step[1] = step(ET_OP_mul, 2, 0, 1, 0, 0);
    struct operand *x = normal(b, ROW, SHAPE(1013));
    check(b,
          TRIAL(ATTR(o), IN(x, normal(b, ROW, SHAPE(1013))),
                OUT(result_like(b, ET_F32, x), result_like(b, ET_F32, x),
                    result_like(b, ET_F32, x)),
                .in_place = in_place, .length = 2),
          "a sum, a product and the sum again%s", in_place ? ", in place" : "");
}

/* Two results in the places of both operands: the first step's takes that of the one
 * which the last reads. */
static void
fused_exchange(struct bench *b)
{
    struct et_fused_attr o = {.n_in = 2, .n_out = 2, .n_steps = 2, .out = {3, 2}};
    o.step[0] = step(ET_OP_add, 2, 0, 1, 0, 0);
    o.step[1] = step(ET_OP_square, 1, 1, 0, 0, 0);
    struct operand *x = normal(b, ROW, SHAPE(1013));
    check(b,
          TRIAL(ATTR(o), IN(x, normal(b, ROW, SHAPE(1013))),
                OUT(result_like(b, ET_F32, x), result_like(b, ET_F32, x)),
                .in_place = 2, .length = 1),
          "a square and a sum, each in place");
}

/* Whole numbers that f32 does not tell apart are compared, and what comes of it is
 * cast: a program of doubles, though its last operand is of floats. */
static void
fused_wide(struct bench *b)
{
    enum { N = 1013 };
    struct et_fused_attr o = {.n_in = 3, .n_out = 1, .n_steps = 3, .out = {5}};
    o.step[0] = step(ET_OP_less, 2, 0, 1, 0, 0);
    o.step[1] = step(ET_OP_cast, 1, 3, 0, 0, ET_F32);
    o.step[2] = step(ET_OP_mul, 2, 4, 2, 0, 0);
    struct operand *x[2], *z = normal(b, ROW, SHAPE(N));
    for (int k = 0; k < 2; k++) {
        x[k] = operand(b, ET_I64, GIVEN, 0, ROW, SHAPE(N));
        struct etk_array a = array_of(x[k]);
        for (int at = 0; at < N; at++)
            etk_set(&a, at, 0x1p40 + (k ? at : at + at % 3 - 1));
    }
    check(b,
          TRIAL(ATTR(o), IN(x[0], x[1], z), OUT(result_like(b, ET_F32, z)),
                .may_refuse = true),
          "numbers where one of i64 is less than another");
}

static void
fused_unary(struct bench *b)
{
    for (int op = ET_OP_neg; op <= ET_OP_softplus; op++) {
        struct et_fused_attr o = {.n_in = 1, .n_out = 1, .n_steps = 3, .out = {3}};
        o.step[0] = step(ET_OP_square, 1, 0, 0, 0, 0);
        o.step[1] = step(ET_OP_add_scalar, 1, 1, 0, 0, 0.5);
        o.step[2] = step((enum et_op_id)op, 1, 2, 0, 0, 0);
        if (op == ET_OP_floor) /* which jumps where rounding may fall on either side */
            o.step[0] = o.step[1] = step(ET_OP_neg, 1, 0, 0, 0, 0);
        struct operand *x = normal(b, LAST, SHAPE(2, 5, 3, 7));
        check(b, TRIAL(ATTR(o), IN(x), OUT(result_like(b, ET_F32, x)), .length = 4),
              "%s of a formula", op_name((enum et_op_id)op));
    }
}

static void
fused_binary(struct bench *b)
{
    for (int op = ET_OP_add; op <= ET_OP_tanh_grad; op++) {
        int n = etk_scalar_operands((enum et_op_id)op);
        bool compares = element_dtype((enum et_op_id)op) == ET_U8;
        struct et_fused_attr o = {.n_in = 3, .n_out = 1, .n_steps = 2, .out = {4}};
        o.step[0] = step((enum et_op_id)op, n, 0, 1, 2, 0);
        o.step[1] = compares ? step(ET_OP_cast, 1, 3, 0, 0, ET_F32)
                             : step(ET_OP_mul_scalar, 1, 3, 0, 0, 2);
        struct operand *x = op == ET_OP_where
                                ? operand(b, ET_U8, INDEX, 2, ROW, SHAPE(50, 37))
                                : normal(b, ROW, SHAPE(50, 37));
        struct operand *y =
            operand(b, ET_F32, op == ET_OP_div ? POSITIVE : NORMAL, 0, ROW, SHAPE(37));
        struct operand *z = normal(b, TURNED, SHAPE(50, 37));
        check(b,
              TRIAL(ATTR(o), IN(x, y, z), OUT(result(b, ET_F32, ROW, SHAPE(50, 37))),
                    .length = 2),
              "%s of a matrix, a row and a turned matrix", op_name((enum et_op_id)op));
    }
}

/* Rows that repeat after different lengths, in either order, of more than one block. */
static void
fused_rows(struct bench *b)
{
    for (int k = 0; k < 2; k++) {
        struct et_fused_attr o = {.n_in = 3, .n_out = 1, .n_steps = 2, .out = {4}};
        o.step[0] = step(ET_OP_add, 2, 0, 1 + k, 0, 0);
        o.step[1] = step(ET_OP_mul, 2, 3, 2 - k, 0, 0);
        struct operand *rows[] = {normal(b, ROW, SHAPE(6, 40)),
                                  normal(b, ROW, SHAPE(40))};
        check(b,
              TRIAL(ATTR(o), IN(normal(b, ROW, SHAPE(16, 6, 40)), rows[k], rows[1 - k]),
                    OUT(result(b, ET_F32, ROW, SHAPE(16, 6, 40))), .length = 2),
              "an array, %s", k ? "a row and a matrix" : "a matrix and a row");
    }
}

static void
cases_fused(struct bench *b)
{
    fused_momentum(b, false);
    fused_momentum(b, true);
    fused_results(b, false);
    fused_results(b, true);
    fused_exchange(b);
    fused_wide(b);
    fused_unary(b);
    fused_binary(b);
    fused_rows(b);
    struct et_fused_attr o = {.n_in = 2, .n_out = 1, .n_steps = 3, .out = {4}};
    o.step[0] = step(ET_OP_cast, 1, 0, 0, 0, ET_F32);
    o.step[1] = step(ET_OP_clamp, 1, 1, 0, 0, -0.5);
    o.step[1].b = 0.5;
    o.step[2] = step(ET_OP_mul, 2, 2, 3, 0, 0);
    check(b,
          TRIAL(ATTR(o),
                IN(operand(b, ET_U8, INDEX, 2, ROW, SHAPE(3, 11)),
                   normal(b, ROW, SHAPE(3, 11))),
                OUT(result(b, ET_F32, ROW, SHAPE(3, 11))), .length = 2),
          "a u8 mask, cast, times a clamped operand");
}

/* ---- the table ---- */

/* Views, the assignment and what ranks do together have no kernel, and custom has the
 * user's: t/unit/custom.c. */
static void
no_kernel(struct bench *b)
{
    (void)b;
}

static void (*const families[ET_OP_COUNT])(struct bench *) = {
    [ET_OP_assign] = no_kernel,
    [ET_OP_reshape] = no_kernel,
    [ET_OP_permute] = no_kernel,
    [ET_OP_expand] = no_kernel,
    [ET_OP_slice] = no_kernel,
    [ET_OP_detach] = no_kernel,
    [ET_OP_all_reduce] = no_kernel,
    [ET_OP_custom] = no_kernel,
    [ET_OP_fill] = cases_fill,
    [ET_OP_iota] = cases_iota,
    [ET_OP_cast] = cases_cast,
    [ET_OP_fused] = cases_fused,
    [ET_OP_sum] = cases_reduce,
    [ET_OP_amax] = cases_reduce,
    [ET_OP_amin] = cases_reduce,
    [ET_OP_sum_squares] = cases_sum_squares,
    [ET_OP_segment_sum_squares] = cases_segments,
    [ET_OP_argmax] = cases_argmax,
    [ET_OP_topk] = cases_topk,
    [ET_OP_sort] = cases_sort,
    [ET_OP_cumsum] = cases_cumsum,
    [ET_OP_matmul] = cases_matmul,
    [ET_OP_matmul_fused] = cases_matmul_fused,
    [ET_OP_conv2d] = cases_conv2d,
    [ET_OP_conv2d_fused] = cases_conv2d_fused,
    [ET_OP_conv2d_grad_input] = cases_conv2d_grad_input,
    [ET_OP_conv2d_grad_weight] = cases_conv2d_grad_weight,
    [ET_OP_sdpa] = cases_sdpa,
    [ET_OP_sdpa_grad] = cases_sdpa,
    [ET_OP_max_pool2d] = cases_pool,
    [ET_OP_max_pool2d_grad] = cases_pool,
    [ET_OP_avg_pool2d] = cases_pool,
    [ET_OP_avg_pool2d_grad] = cases_pool,
    [ET_OP_adaptive_avg_pool2d] = cases_adaptive_pool,
    [ET_OP_adaptive_avg_pool2d_grad] = cases_adaptive_pool,
    [ET_OP_resize2d] = cases_resize,
    [ET_OP_resize2d_grad] = cases_resize,
    [ET_OP_batch_norm] = cases_batch_norm,
    [ET_OP_batch_norm_grad] = cases_batch_norm,
    [ET_OP_layer_norm] = cases_row_norm,
    [ET_OP_layer_norm_grad] = cases_row_norm,
    [ET_OP_group_norm] = cases_row_norm,
    [ET_OP_group_norm_grad] = cases_row_norm,
    [ET_OP_softmax] = cases_softmax,
    [ET_OP_softmax_grad] = cases_softmax,
    [ET_OP_log_softmax] = cases_softmax,
    [ET_OP_log_softmax_grad] = cases_softmax,
    [ET_OP_cross_entropy] = cases_cross_entropy,
    [ET_OP_cross_entropy_grad] = cases_cross_entropy,
    [ET_OP_take] = cases_take,
    [ET_OP_take_grad] = cases_take,
    [ET_OP_gather] = cases_gather,
    [ET_OP_scatter_add] = cases_gather,
    [ET_OP_copy] = cases_copy,
    [ET_OP_concat] = cases_concat,
    [ET_OP_pack] = cases_pack,
    [ET_OP_pad] = cases_pad,
    [ET_OP_flip] = cases_flip,
    [ET_OP_dropout] = cases_dropout,
    [ET_OP_random] = cases_random,
    [ET_OP_image_batch] = cases_image_batch,
    [ET_OP_image_augment] = cases_image_augment,
};

static bool
named(const char *name, int n, char *const *only)
{
    for (int i = 0; i < n; i++)
        if (strcmp(only[i], name) == 0)
            return true;
    return n == 0;
}

static void
cases_of_op(struct bench *b)
{
    if (families[b->op])
        families[b->op](b);
    else if (etk_scalar(b->op))
        cases_elementwise(b);
    else
        ok(false, "%s has cases", op_name(b->op));
}

void
cases_each(struct bench *b, int n, char *const *only, cases_fn *cases)
{
    char why[256] = "";
    if (etk_ref_device()->open(0, 1, &b->reference, why, sizeof why) != ET_OK)
        bail("%s", why);
    for (int op = 0; op < ET_OP_COUNT; op++) {
        b->op = (enum et_op_id)op;
        if (!named(op_name(b->op), n, only))
            continue;
        cases(b);
        bench_clear(b);
    }
    etk_ref_device()->close(b->reference);
}

void
cases_run(const struct et_device_table *device, struct et_device_handle *handle,
          enum et_dtype narrow, int n, char *const *only)
{
    struct bench b = {.device = device, .handle = handle, .narrow = narrow};
    cases_each(&b, n, only, cases_of_op);
}

void
edges_run(const struct et_device_table *device, struct et_device_handle *handle,
          enum et_dtype narrow, int n, char *const *only)
{
    struct bench b = {
        .device = device, .handle = handle, .narrow = narrow, .once = true};
    cases_each(&b, n, only, edges_of_op);
}

struct tally
cases_tally(const struct et_device_table *device, struct et_device_handle *handle,
            enum et_dtype narrow, const char *op)
{
    char name[64], *only = name;
    struct tally t = {0};
    struct bench b = {
        .device = device, .handle = handle, .narrow = narrow, .tally = &t};
    snprintf(name, sizeof name, "%s", op);
    cases_each(&b, 1, &only, cases_of_op);
    return t;
}

void
cases_list(void)
{
    for (int op = 0; op < ET_OP_COUNT; op++)
        if (families[op] != no_kernel)
            printf("%s\n", op_name((enum et_op_id)op));
}
