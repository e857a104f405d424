/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient ops of the reference against central differences, in f64.
 *
 * For a random direction v of operand x and a random dy,
 *   sum dy (f(x + h v) - f(x - h v)) / 2h = sum dx v + O(h^2). */
#include "t/kernels/compare.h"

#include "kernels/ref/array.h"
#include "kernels/ref/ref.h"
#include "t/tap.h"

/* The third derivative times h^2/6, and rounding 2^-53/h of sums of a few hundred. */
#define H   1e-5
#define TOL 1e-7

/* Above the numbers of all operands: those of the directions. */
enum { DIRECTIONS = 100 };

/* How a gradient op takes its operands and what its results belong to: 'd' is dy, a
 * digit an operand of the forward op, a letter from 'a' one of its results, '-'
 * nothing. */
struct slope {
    const char *name;
    enum et_op_id forward, gradient;
    const char *takes, *gives;
    const void *attr;
    size_t attr_size;
    int n_in, n_out;
    struct {
        int ndim;
        int64_t shape[4];
        enum contents contents;
        int64_t limit;
    } in[4], out[3];
};

static const struct et_conv2d_attr conv = {
    .stride = {2, 1}, .pad = {1, 2}, .dilation = {1, 2}, .groups = 2};
static const struct et_conv2d_attr conv_dx = {.stride = {2, 1},
                                              .pad = {1, 2},
                                              .dilation = {1, 2},
                                              .groups = 2,
                                              .shape = {2, 4, 7, 6}};
static const struct et_pool2d_attr pool = {.kernel = {3, 2},
                                           .stride = {2, 1},
                                           .pad = {1, 1},
                                           .dilation = {1, 1},
                                           .shape = {2, 3, 7, 5}};
static const struct et_pool2d_attr adaptive = {0};
static const struct et_resize_attr bilinear = {.mode = ET_RESIZE_BILINEAR,
                                               .scale = {7 / 4., 5 / 8.}};
static const struct et_resize_attr nearest = {.scale = {7 / 4., 5 / 8.}};
static const struct et_norm_attr batch = {.eps = 1e-3};
static const struct et_norm_attr batch_relu = {.eps = 1e-3, .relu = 1};
static const struct et_norm_attr layer = {.eps = 1e-3, .axes = 2};
static const struct et_norm_attr group = {.eps = 1e-3, .groups = 2};
static const struct et_axis_attr axis = {.axis = 1, .n = 5};
static const struct et_cross_entropy_attr entropy = {.ignore_index = 5};
static const struct et_sdpa_attr causal = {.scale = 0.4, .causal = 1};

/* clang-format off */
#define ELEMENT(op, from)                                                      \
    {.name = #op, .forward = ET_OP_##op, .gradient = ET_OP_##op##_grad,        \
     .takes = from, .gives = "0", .n_in = 1, .n_out = 1,                       \
     .in = {{1, {31}, NORMAL, 0}}, .out = {{1, {31}, NORMAL, 0}}}
/* clang-format on */
#define A(a) .attr = &(a), .attr_size = sizeof(a)
#define SAME(op, back, from, to)                                                       \
    .forward = ET_OP_##op, .gradient = ET_OP_##back, .takes = from, .gives = to

/* Operands that hold normal numbers leave that out. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
static const struct slope slopes[] = {
    ELEMENT(relu, "da"),
    ELEMENT(gelu, "d0"),
    ELEMENT(gelu_tanh, "d0"),
    ELEMENT(silu, "d0"),
    ELEMENT(sigmoid, "da"),
    ELEMENT(tanh, "da"),
    {.name = "conv2d input",
     SAME(conv2d, conv2d_grad_input, "d1-", "0"),
     A(conv_dx),
     .n_in = 2,
     .n_out = 1,
     .in = {{4, {2, 4, 7, 6}}, {4, {6, 2, 3, 3}}},
     .out = {{4, {2, 6, 4, 6}}}},
    {.name = "conv2d weight",
     SAME(conv2d, conv2d_grad_weight, "0d", "1"),
     A(conv),
     .n_in = 2,
     .n_out = 1,
     .in = {{4, {2, 4, 7, 6}}, {4, {6, 2, 3, 3}}},
     .out = {{4, {2, 6, 4, 6}}}},
    {.name = "max_pool2d",
     SAME(max_pool2d, max_pool2d_grad, "db", "0"),
     A(pool),
     .n_in = 1,
     .n_out = 2,
     .in = {{4, {2, 3, 7, 5}}},
     .out = {{4, {2, 3, 4, 6}}, {4, {2, 3, 4, 6}, INDEX, 1}}},
    {.name = "avg_pool2d",
     SAME(avg_pool2d, avg_pool2d_grad, "d", "0"),
     A(pool),
     .n_in = 1,
     .n_out = 1,
     .in = {{4, {2, 3, 7, 5}}},
     .out = {{4, {2, 3, 4, 6}}}},
    {.name = "adaptive_avg_pool2d",
     SAME(adaptive_avg_pool2d, adaptive_avg_pool2d_grad, "d", "0"),
     A(adaptive),
     .n_in = 1,
     .n_out = 1,
     .in = {{4, {2, 3, 7, 5}}},
     .out = {{4, {2, 3, 3, 2}}}},
    {.name = "resize2d bilinear",
     SAME(resize2d, resize2d_grad, "d", "0"),
     A(bilinear),
     .n_in = 1,
     .n_out = 1,
     .in = {{4, {2, 3, 7, 5}}},
     .out = {{4, {2, 3, 4, 8}}}},
    {.name = "resize2d nearest",
     SAME(resize2d, resize2d_grad, "d", "0"),
     A(nearest),
     .n_in = 1,
     .n_out = 1,
     .in = {{4, {2, 3, 7, 5}}},
     .out = {{4, {2, 3, 4, 8}}}},
    {.name = "batch_norm",
     SAME(batch_norm, batch_norm_grad, "d01bc-", "0123"),
     A(batch),
     .n_in = 4,
     .n_out = 3,
     .in = {{4, {3, 2, 3, 4}}, {1, {2}}, {1, {2}}, {4, {3, 2, 3, 4}}},
     .out = {{4, {3, 2, 3, 4}}, {1, {2}}, {1, {2}}}},
    {.name = "batch_norm with relu",
     SAME(batch_norm, batch_norm_grad, "d01bca", "0123"),
     A(batch_relu),
     .n_in = 4,
     .n_out = 3,
     .in = {{4, {3, 2, 3, 4}}, {1, {2}}, {1, {2}}, {4, {3, 2, 3, 4}}},
     .out = {{4, {3, 2, 3, 4}}, {1, {2}}, {1, {2}}}},
    {.name = "layer_norm",
     SAME(layer_norm, layer_norm_grad, "d01bc", "012"),
     A(layer),
     .n_in = 3,
     .n_out = 3,
     .in = {{3, {3, 4, 5}}, {2, {4, 5}}, {2, {4, 5}}},
     .out = {{3, {3, 4, 5}}, {1, {3}}, {1, {3}}}},
    {.name = "group_norm",
     SAME(group_norm, group_norm_grad, "d01bc", "012"),
     A(group),
     .n_in = 3,
     .n_out = 3,
     .in = {{4, {3, 4, 2, 3}}, {1, {4}}, {1, {4}}},
     .out = {{4, {3, 4, 2, 3}}, {2, {3, 2}}, {2, {3, 2}}}},
    {.name = "softmax",
     SAME(softmax, softmax_grad, "da", "0"),
     A(axis),
     .n_in = 1,
     .n_out = 1,
     .in = {{3, {3, 5, 4}}},
     .out = {{3, {3, 5, 4}}}},
    {.name = "log_softmax",
     SAME(log_softmax, log_softmax_grad, "da", "0"),
     A(axis),
     .n_in = 1,
     .n_out = 1,
     .in = {{3, {3, 5, 4}}},
     .out = {{3, {3, 5, 4}}}},
    {.name = "cross_entropy of indices, some ignored",
     SAME(cross_entropy, cross_entropy_grad, "d01b2", "0"),
     A(entropy),
     .n_in = 3,
     .n_out = 2,
     .in = {{3, {3, 5, 4}}, {2, {3, 4}, INDEX, 6}, {1, {5}, POSITIVE, 0}},
     .out = {{2, {3, 4}}, {2, {3, 4}}}},
    {.name = "cross_entropy of weighted distributions",
     SAME(cross_entropy, cross_entropy_grad, "d01b2", "0"),
     A(entropy),
     .n_in = 3,
     .n_out = 2,
     .in = {{3, {3, 5, 4}}, {3, {3, 5, 4}, POSITIVE, 0}, {1, {5}, POSITIVE, 0}},
     .out = {{2, {3, 4}}, {2, {3, 4}}}},
    {.name = "sdpa",
     SAME(sdpa, sdpa_grad, "d012ab3", "012"),
     A(causal),
     .n_in = 4,
     .n_out = 2,
     .in = {{4, {2, 2, 4, 3}}, {4, {2, 2, 5, 3}}, {4, {2, 2, 5, 3}}, {4, {1, 2, 1, 5}}},
     .out = {{4, {2, 2, 4, 3}}, {3, {2, 2, 4}}}},
    {.name = "take",
     SAME(take, take_grad, "d1", "0"),
     A(axis),
     .n_in = 2,
     .n_out = 1,
     .in = {{3, {3, 5, 4}}, {1, {7}, INDEX, 5}},
     .out = {{3, {3, 7, 4}}}},
    {.name = "gather",
     SAME(gather, scatter_add, "d1", "0"),
     A(axis),
     .n_in = 2,
     .n_out = 1,
     .in = {{3, {3, 5, 4}}, {3, {3, 7, 4}, INDEX, 5}},
     .out = {{3, {3, 7, 4}}}},
};

static struct etk_array
array_of(const struct operand *o)
{
    return (struct etk_array){.d = o->d, .p = o->block};
}

static double
dot(const struct operand *a, const struct operand *b)
{
    struct etk_array x = array_of(a), y = array_of(b);
    double sum = 0;
    for (struct etk_pos i = etk_begin(&a->d); !i.end; etk_next(&a->d, &i))
        sum +=
            etk_get(&x, etk_offset(&a->d, i.ix)) * etk_get(&y, etk_offset(&b->d, i.ix));
    return sum;
}

/* x += factor v */
static void
shift(struct operand *x, const struct operand *v, double factor)
{
    struct etk_array a = array_of(x), b = array_of(v);
    for (struct etk_pos i = etk_begin(&x->d); !i.end; etk_next(&x->d, &i)) {
        int64_t at = etk_offset(&x->d, i.ix);
        etk_set(&a, at, etk_get(&a, at) + factor * etk_get(&b, at));
    }
}

/* sum dy f, f anew from the operands as they are. */
static double
value(struct bench *b, const struct slope *s, const struct trial *f,
      const struct operand *dy)
{
    compute(b, s->forward, f, "%s", s->name);
    return dot(dy, f->out[0]);
}

static struct operand *
taken(const struct trial *f, struct operand *dy, char code)
{
    if (code == 'd')
        return dy;
    if (code == '-')
        return NULL;
    return code >= 'a' ? f->out[code - 'a'] : f->in[code - '0'];
}

static void
test(struct bench *b, const struct slope *s)
{
    struct trial f = {
        .attr = s->attr, .attr_size = s->attr_size, .n_in = s->n_in, .n_out = s->n_out};
    struct trial g = {.attr = s->attr, .attr_size = s->attr_size};
    b->op = s->forward;
    for (int k = 0; k < s->n_in; k++)
        f.in[k] =
            operand(b, s->in[k].contents == INDEX ? ET_I32 : ET_F64, s->in[k].contents,
                    s->in[k].limit, ROW, s->in[k].ndim, s->in[k].shape);
    for (int k = 0; k < s->n_out; k++)
        f.out[k] = result(b, s->out[k].contents == INDEX ? ET_I32 : ET_F64, ROW,
                          s->out[k].ndim, s->out[k].shape);
    struct operand *dy =
        operand(b, ET_F64, NORMAL, 0, ROW, s->out[0].ndim, s->out[0].shape);
    compute(b, s->forward, &f, "%s", s->name);
    for (const char *c = s->takes; *c; c++)
        g.in[g.n_in++] = taken(&f, dy, *c);
    for (const char *c = s->gives; *c; c++)
        g.out[g.n_out++] = result_like(b, ET_F64, f.in[*c - '0']);
    compute(b, s->gradient, &g, "%s", s->name);
    for (int k = 0; k < g.n_out; k++) {
        struct operand *x = f.in[s->gives[k] - '0'];
        struct operand *v = operand(b, ET_F64, NORMAL, 0, ROW, x->d.ndim, x->d.shape);
        fill_operand(v, s->gradient, s->name, DIRECTIONS + k);
        double slope = dot(g.out[k], v);
        shift(x, v, H);
        double above = value(b, s, &f, dy);
        shift(x, v, -2 * H);
        double below = value(b, s, &f, dy);
        shift(x, v, H);
        is_near(slope, (above - below) / (2 * H), TOL, "%s: gradient of operand %c",
                s->name, s->gives[k]);
    }
    bench_clear(b);
}

int
main(void)
{
    struct bench b = {0};
    char why[256] = "";
    if (etk_ref_device()->open(0, 1, &b.reference, why, sizeof why) != ET_OK)
        bail("%s", why);
    for (size_t i = 0; i < sizeof slopes / sizeof slopes[0]; i++)
        test(&b, &slopes[i]);
    etk_ref_device()->close(b.reference);
    return done();
}
