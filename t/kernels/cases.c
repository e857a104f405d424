/* cases.c: the cases of ops on single elements, of movement, reductions and products;
 * images.c has those of pooling, convolution and the like. */
#include "t/kernels/families.h"

#include <string.h>

#include "kernels/ref/array.h"
#include "t/tap.h"

/* ---- constants ---- */

static void
cases_fill(struct bench *b)
{
    struct et_shape_attr o = {.dtype = ET_F32, .ndim = 2, .shape = {3, 31}, .value = 0.1};
    check(b, TRIAL(ATTR(o), OUT(result(b, ET_F32, ROW, SHAPE(3, 31)))), "f32");
    o.dtype = ET_I64;
    o.value = -7;
    check(b, TRIAL(ATTR(o), OUT(result(b, ET_I64, ROW, SHAPE(3, 31)))), "i64");
    o.dtype = ET_U8;
    o.value = 1;
    check(b, TRIAL(ATTR(o), OUT(result(b, ET_U8, ROW, SHAPE(3, 31)))), "u8");
    struct et_shape_attr one = {.dtype = ET_F32, .value = -0.5};
    check(b, TRIAL(ATTR(one), OUT(result(b, ET_F32, ROW, SCALAR))), "a scalar");
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
static struct et_scalar_attr
scalars_of(enum et_op_id op)
{
    if (op == ET_OP_clamp)
        return (struct et_scalar_attr){.a = -0.5, .b = 0.75};
    return (struct et_scalar_attr){.a = op == ET_OP_pow_scalar ? 1.7 : -0.3};
}

static enum contents
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
element_operand(struct bench *b, int k, enum layout layout, int ndim, const int64_t *shape)
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

static struct trial
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

/* Operand K has the shape, the others that of a row or of a channel. */
static void
broadcasts(struct bench *b, const char *what, int full, int ndim, const int64_t *small)
{
    struct et_scalar_attr o = scalars_of(b->op);
    struct trial t = element_trial(b, &o);
    for (int k = 0; k < t.n_in; k++)
        t.in[k] = k == full ? element_operand(b, k, LAST, SHAPE(2, 5, 3, 7))
                            : element_operand(b, k, ROW, ndim, small);
    t.out[0] = result(b, element_dtype(b->op), LAST, SHAPE(2, 5, 3, 7));
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

static void
cases_elementwise(struct bench *b)
{
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
            broadcasts(b, "operand %d full, the others by channel", k, SHAPE(1, 5, 1, 1));
            broadcasts(b, "operand %d full, the others scalar", k, SCALAR);
        }
    if (defined_for_specials(b->op))
        specials(b);
}

static void
cases_cast(struct bench *b)
{
    for (int from = ET_F32; from < ET_DTYPE_COUNT; from++)
        for (int to = ET_F32; to < ET_DTYPE_COUNT; to++) {
            struct et_cast_attr o = {.dtype = to};
            enum contents c = et_dtype_is_float((enum et_dtype)from) ? POSITIVE : INDEX;
            struct operand *x = operand(b, (enum et_dtype)from, c, 200, LAST, SHAPE(2, 5, 3, 3));
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
                                ? operand(b, ET_U8, INDEX, 2, ROW, SHAPE(5, 37))
                                : normal(b, ROW, SHAPE(5, 37));
        struct operand *y = operand(b, ET_F32, op == ET_OP_div ? POSITIVE : NORMAL, 0, ROW,
                                    SHAPE(37));
        struct operand *z = normal(b, TURNED, SHAPE(5, 37));
        check(b,
              TRIAL(ATTR(o), IN(x, y, z), OUT(result(b, ET_F32, ROW, SHAPE(5, 37))),
                    .length = 2),
              "%s of a matrix, a row and a turned matrix", op_name((enum et_op_id)op));
    }
}

static void
cases_fused(struct bench *b)
{
    fused_momentum(b, false);
    fused_momentum(b, true);
    fused_unary(b);
    fused_binary(b);
    struct et_fused_attr o = {.n_in = 2, .n_out = 1, .n_steps = 3, .out = {4}};
    o.step[0] = step(ET_OP_cast, 1, 0, 0, 0, ET_F32);
    o.step[1] = step(ET_OP_clamp, 1, 1, 0, 0, -0.5);
    o.step[1].b = 0.5;
    o.step[2] = step(ET_OP_mul, 2, 2, 3, 0, 0);
    check(b,
          TRIAL(ATTR(o), IN(operand(b, ET_U8, INDEX, 2, ROW, SHAPE(3, 11)),
                            normal(b, ROW, SHAPE(3, 11))),
                OUT(result(b, ET_F32, ROW, SHAPE(3, 11))), .length = 2),
          "a u8 mask, cast, times a clamped operand");
}

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

static void
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
    if (b->op == ET_OP_sum)
        reduction(b, ROW, 1, false, SHAPE(0, 3));
    struct et_reduce_attr o = {.axes = 1};
    if (b->op != ET_OP_sum)
        check(b, TRIAL(ATTR(o), IN(operand(b, ET_F32, SPECIAL, 0, ROW, SHAPE(5, 13))),
                       OUT(result(b, ET_F32, ROW, SHAPE(13)))),
              "NaN wins");
}

static void
cases_sum_squares(struct bench *b)
{
    check(b, TRIAL(IN(normal(b, ROW, SHAPE(1))), OUT(result(b, ET_F32, ROW, SCALAR)),
                   .length = 1), "one");
    check(b, TRIAL(IN(normal(b, ROW, SHAPE(0))), OUT(result(b, ET_F32, ROW, SCALAR)),
                   .length = 1), "none");
    check(b, TRIAL(IN(normal(b, LAST, SHAPE(3, 5, 7, 11))), OUT(result(b, ET_F32, ROW, SCALAR)),
                   .length = 1155), "channels-last");
    check(b, TRIAL(IN(normal(b, GAPS, SHAPE(31, 33))), OUT(result(b, ET_F32, ROW, SCALAR)),
                   .length = 1023), "every second element");
    check(b, TRIAL(IN(normal(b, ROW, SHAPE(70001))), OUT(result(b, ET_F32, ROW, SCALAR)),
                   .length = 70001), "70001");
}

static void
cases_argmax(struct bench *b)
{
    for (int axis = 0; axis < 3; axis++) {
        int64_t shape[3] = {5, 33, 7}, left[2];
        for (int k = 0, n = 0; k < 3; k++)
            if (k != axis)
                left[n++] = shape[k];
        struct et_axis_attr o = {.axis = axis};
        check(b, TRIAL(ATTR(o), IN(normal(b, ROW, 3, shape)),
                       OUT(result(b, ET_I32, ROW, 2, left))), "axis %d", axis);
        check(b, TRIAL(ATTR(o), IN(operand(b, ET_F32, COARSE, 0, ROW, 3, shape)),
                       OUT(result(b, ET_I32, ROW, 2, left))), "axis %d with equals", axis);
    }
    struct et_axis_attr o = {.axis = 1};
    check(b, TRIAL(ATTR(o), IN(normal(b, LAST, SHAPE(2, 5, 3, 7))),
                   OUT(result(b, ET_I32, ROW, SHAPE(2, 3, 7)))), "channels-last");
    check(b, TRIAL(ATTR(o), IN(normal(b, GAPS, SHAPE(3, 10))),
                   OUT(result(b, ET_I32, ROW, SHAPE(3)))), "every second element");
}

static void
cases_topk(struct bench *b)
{
    static const int64_t sizes[][2] = {{10, 1}, {10, 5}, {7, 7}, {1000, 13}, {1, 1}};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        struct et_axis_attr o = {.axis = 1, .n = sizes[k][1]};
        check(b, TRIAL(ATTR(o), IN(normal(b, ROW, SHAPE(3, sizes[k][0]))),
                       OUT(result(b, ET_F32, ROW, SHAPE(3, sizes[k][1])),
                           result(b, ET_I32, ROW, SHAPE(3, sizes[k][1])))),
              "%d of %d", (int)sizes[k][1], (int)sizes[k][0]);
    }
    struct et_axis_attr o = {.axis = 1, .n = 3};
    check(b, TRIAL(ATTR(o), IN(normal(b, TURNED, SHAPE(5, 11))),
                   OUT(result(b, ET_F32, ROW, SHAPE(5, 3)), NULL)),
          "turned, values only");
}

/* ---- matmul ---- */

static void
product(struct bench *b, const char *what, int64_t m, int64_t k, int64_t n, int turns,
        bool bias, enum layout layout)
{
    struct et_matmul_attr o = {.trans_a = turns & 1, .trans_b = turns >> 1};
    struct operand *x = o.trans_a ? normal(b, layout, SHAPE(k, m))
                                  : normal(b, layout, SHAPE(m, k));
    struct operand *y = o.trans_b ? normal(b, layout, SHAPE(n, k))
                                  : normal(b, layout, SHAPE(k, n));
    check(b,
          TRIAL(ATTR(o), IN(x, y, bias ? normal(b, ROW, SHAPE(n)) : NULL),
                OUT(result(b, ET_F32, ROW, SHAPE(m, n))), .length = k),
          "%s%dx%dx%d%s%s%s", what, (int)m, (int)k, (int)n, o.trans_a ? ", a turned" : "",
          o.trans_b ? ", b turned" : "", bias ? ", bias" : "");
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
          TRIAL(ATTR(o), IN(x, y, shared ? normal(b, ROW, SHAPE(n)) : NULL),
                OUT(result(b, ET_F32, ROW, SHAPE(2, 3, m, n))), .length = k),
          "%s, batched%s, turns %d", what, shared ? ", b shared" : "", turns);
}

static void
cases_matmul(struct bench *b)
{
    for (int turns = 0; turns < 4; turns++) {
        product(b, "", 33, 31, 17, turns, turns & 1, ROW);
        product(b, "turned memory, ", 5, 7, 3, turns, true, TURNED);
        product(b, "every second element, ", 5, 7, 3, turns, false, GAPS);
        batched(b, "row-major", false, ROW, turns);
        batched(b, "row-major", true, ROW, turns);
        batched(b, "turned memory", false, TURNED, turns);
        batched(b, "heads beside each other", false, HEADS, turns);
        batched(b, "repeated axis 0", false, REPEAT, turns);
    }
    product(b, "", 1, 1, 1, 0, true, ROW);
    product(b, "", 1, 784, 10, 2, true, ROW);
    product(b, "", 64, 3, 1, 0, false, ROW);
    product(b, "", 128, 257, 127, 2, true, ROW);
    product(b, "empty, ", 0, 3, 5, 0, true, ROW);
    product(b, "no terms, ", 3, 0, 5, 0, true, ROW);
}

/* ---- movement ---- */

static void
cases_copy(struct bench *b)
{
    for (int dtype = ET_F32; dtype < ET_DTYPE_COUNT; dtype++)
        for (int layout = ROW; layout <= REPEAT; layout++) {
            struct operand *x = operand(b, (enum et_dtype)dtype, INDEX, 100,
                                        (enum layout)layout, SHAPE(2, 5, 3, 7));
            struct et_copy_attr last = {.format = ET_CHANNELS_LAST}, row = {0};
            check(b, TRIAL(ATTR(last), IN(x), OUT(result(b, (enum et_dtype)dtype, LAST,
                                                         SHAPE(2, 5, 3, 7)))),
                  "%s from layout %d to channels-last", et_dtype_name((enum et_dtype)dtype),
                  layout);
            check(b, TRIAL(ATTR(row), IN(x), OUT(result(b, (enum et_dtype)dtype, ROW,
                                                        SHAPE(2, 5, 3, 7)))),
                  "%s from layout %d to row-major", et_dtype_name((enum et_dtype)dtype),
                  layout);
        }
    struct et_copy_attr row = {0};
    check(b, TRIAL(ATTR(row), IN(normal(b, TURNED, SHAPE(67, 131))),
                   OUT(result(b, ET_F32, ROW, SHAPE(67, 131)))), "a turned matrix");
    check(b, TRIAL(ATTR(row), IN(normal(b, ROW, SCALAR)), OUT(result(b, ET_F32, ROW, SCALAR))),
          "a scalar");
    check(b, TRIAL(ATTR(row), IN(normal(b, ROW, SHAPE(3, 0))),
                   OUT(result(b, ET_F32, ROW, SHAPE(3, 0)))), "none");
}

static void
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
    check(b, TRIAL(ATTR(o), IN(operand(b, ET_U8, INDEX, 9, ROW, SHAPE(3)),
                               operand(b, ET_U8, INDEX, 9, ROW, SHAPE(0))),
                   OUT(result(b, ET_U8, ROW, SHAPE(3)))), "u8 with an empty operand");
    check(b, TRIAL(ATTR(o), IN(operand(b, ET_I64, INDEX, 9, ROW, SHAPE(3, 2))),
                   OUT(result(b, ET_I64, ROW, SHAPE(3, 2)))), "one i64 operand");
}

static void
cases_pack(struct bench *b)
{
    struct {
        struct et_pack_attr fixed;
        int64_t offset[4];
    } o = {.fixed.total = 400, .offset = {0, 112, 320, 333}};
    check(b,
          TRIAL(ATTR(o), IN(normal(b, ROW, SHAPE(3, 37)), normal(b, LAST, SHAPE(2, 5, 3, 7)),
                            NULL, normal(b, TURNED, SHAPE(5, 13))),
                OUT(result(b, ET_F32, ROW, SHAPE(400)))),
          "memory order, gaps and a missing operand");
    o.fixed.total = 3;
    check(b, TRIAL(.attr = &o, .attr_size = sizeof o.fixed + sizeof(int64_t),
                   IN(normal(b, ROW, SCALAR)), OUT(result(b, ET_F32, ROW, SHAPE(3)))),
          "a scalar");
}

static void
cases_pad(struct bench *b)
{
    struct et_pad_attr o = {.before = {0, 0, 2, 1}, .after = {0, 0, 1, 3}, .value = -1.5};
    struct et_pad_attr cut = {.before = {-1, 2}, .after = {1, -3}};
    for (int layout = ROW; layout <= TURNED; layout++)
        check(b,
              TRIAL(ATTR(o), IN(normal(b, (enum layout)layout, SHAPE(2, 5, 3, 7))),
                    OUT(result(b, ET_F32, layout == LAST ? LAST : ROW, SHAPE(2, 5, 6, 11)))),
              "images, layout %d", layout);
    check(b, TRIAL(ATTR(cut), IN(normal(b, ROW, SHAPE(3, 8))),
                   OUT(result(b, ET_F32, ROW, SHAPE(3, 7)))), "negative amounts cut");
    struct et_pad_attr one = {.before = {1}, .after = {1}, .value = 3};
    check(b, TRIAL(ATTR(one), IN(operand(b, ET_I32, INDEX, 9, ROW, SHAPE(5))),
                   OUT(result(b, ET_I32, ROW, SHAPE(7)))), "i32");
    check(b, TRIAL(ATTR(one), IN(normal(b, ROW, SHAPE(0))),
                   OUT(result(b, ET_F32, ROW, SHAPE(2)))), "an empty operand");
}

static void
cases_flip(struct bench *b)
{
    for (uint32_t axes = 0; axes < 16; axes++) {
        struct et_flip_attr o = {.axes = axes};
        enum layout layout = axes & 1 ? LAST : ROW;
        check(b, TRIAL(ATTR(o), IN(normal(b, layout, SHAPE(2, 5, 3, 7))),
                       OUT(result(b, ET_F32, layout, SHAPE(2, 5, 3, 7)))), "axes 0x%x", axes);
    }
    struct et_flip_attr o = {.axes = 2};
    check(b, TRIAL(ATTR(o), IN(operand(b, ET_I32, INDEX, 99, GAPS, SHAPE(5, 31))),
                   OUT(result(b, ET_I32, ROW, SHAPE(5, 31)))), "i32, every second element");
}

/* One axis of x [4, 11, 6] through an index [3, 5]: repeats occur; some may be outside. */
static void
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
            struct operand *index = operand(b, ET_I32, INDEX, x[axis] + 3 * outside, ROW, SHAPE(3, 5));
            struct operand *in = normal(b, axis == 2 ? TURNED : ROW, grad ? 4 : 3, grad ? y : x);
            check(b,
                  TRIAL(ATTR(o), IN(in, index),
                        OUT(result(b, ET_F32, ROW, grad ? 3 : 4, grad ? x : y)),
                        .length = grad ? 15 : 0),
                  "axis %d%s", axis, outside ? ", some indices outside" : "");
        }
    struct et_axis_attr o = {.axis = 0, .n = 97};
    struct operand *index = operand(b, ET_I32, INDEX, 97, ROW, SHAPE(70));
    check(b, grad ? TRIAL(ATTR(o), IN(normal(b, ROW, SHAPE(70, 33)), index),
                          OUT(result(b, ET_F32, ROW, SHAPE(97, 33))), .length = 70)
                  : TRIAL(ATTR(o), IN(normal(b, ROW, SHAPE(97, 33)), index),
                          OUT(result(b, ET_F32, ROW, SHAPE(70, 33)))),
          "an embedding");
}

static void
cases_gather(struct bench *b)
{
    bool scatter = b->op == ET_OP_scatter_add;
    for (int axis = 0; axis < 3; axis++)
        for (int outside = 0; outside < 2; outside++) {
            int64_t x[3] = {4, 11, 6}, y[3] = {4, 11, 6};
            y[axis] = 8;
            struct et_axis_attr o = {.axis = axis, .n = x[axis]};
            struct operand *index = operand(b, ET_I32, INDEX, x[axis] + 3 * outside, ROW, 3, y);
            struct operand *in = normal(b, axis == 2 ? TURNED : ROW, 3, scatter ? y : x);
            check(b,
                  TRIAL(ATTR(o), IN(in, index),
                        OUT(result(b, ET_F32, ROW, 3, scatter ? x : y)),
                        .length = scatter ? 8 : 0),
                  "axis %d%s", axis, outside ? ", some indices outside" : "");
        }
}

static void
cases_dropout(struct bench *b)
{
    struct et_dropout_attr o = {.p = 0.3, .ordinal = 5};
    struct operand *rng = operand(b, ET_I64, INDEX, INT64_C(1) << 40, ROW, SHAPE(2));
    check(b, TRIAL(ATTR(o), IN(normal(b, ROW, SHAPE(7, 1001)), rng),
                   OUT(result(b, ET_F32, ROW, SHAPE(7, 1001))), .length = 1), "odd rows");
    check(b, TRIAL(ATTR(o), IN(normal(b, LAST, SHAPE(2, 5, 3, 7)), rng),
                   OUT(result(b, ET_F32, LAST, SHAPE(2, 5, 3, 7))), .length = 1),
          "channels-last");
    check(b, TRIAL(ATTR(o), IN(normal(b, ROW, SHAPE(3, 4, 6)), rng),
                   OUT(result(b, ET_F32, ROW, SHAPE(3, 4, 6))), .length = 1,
                   .in_place = true), "in place");
    check(b, TRIAL(ATTR(o), IN(normal(b, TURNED, SHAPE(3, 5, 33)), rng),
                   OUT(result(b, ET_F32, ROW, SHAPE(3, 5, 33))), .length = 1), "turned");
    check(b, TRIAL(ATTR(o), IN(normal(b, ROW, SHAPE(70)), rng),
                   OUT(result(b, ET_F32, ROW, SHAPE(70))), .length = 1),
          "one element a sample");
    o.p = 0;
    check(b, TRIAL(ATTR(o), IN(normal(b, ROW, SHAPE(3, 33)), rng),
                   OUT(result(b, ET_F32, ROW, SHAPE(3, 33)))), "p = 0 keeps all");
}

/* ---- the table ---- */

/* Views and the assignment have no kernel. */
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
    [ET_OP_fill] = cases_fill,
    [ET_OP_iota] = cases_iota,
    [ET_OP_cast] = cases_cast,
    [ET_OP_fused] = cases_fused,
    [ET_OP_sum] = cases_reduce,
    [ET_OP_amax] = cases_reduce,
    [ET_OP_amin] = cases_reduce,
    [ET_OP_sum_squares] = cases_sum_squares,
    [ET_OP_argmax] = cases_argmax,
    [ET_OP_topk] = cases_topk,
    [ET_OP_matmul] = cases_matmul,
    [ET_OP_conv2d] = cases_conv2d,
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
};

static bool
named(const char *name, int n, char *const *only)
{
    for (int i = 0; i < n; i++)
        if (strcmp(only[i], name) == 0)
            return true;
    return n == 0;
}

void
cases_run(const struct et_device_table *device, struct et_device_handle *handle, int n,
          char *const *only)
{
    struct bench b = {.device = device, .handle = handle};
    char why[256] = "";
    if (etk_ref_device()->open(0, 1, &b.reference, why, sizeof why) != ET_OK)
        bail("%s", why);
    for (int op = 0; op < ET_OP_COUNT; op++) {
        b.op = (enum et_op_id)op;
        if (!named(op_name(b.op), n, only))
            continue;
        if (families[op])
            families[op](&b);
        else if (etk_scalar(b.op))
            cases_elementwise(&b);
        else
            ok(false, "%s has cases", op_name(b.op));
        bench_clear(&b);
    }
    etk_ref_device()->close(b.reference);
}
