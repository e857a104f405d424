/* SPDX-License-Identifier: Apache-2.0 */
/* Every gradient against central differences, in double on the reference device.
 *
 *   dL/dx_i ~ (L(x + h e_i) - L(x - h e_i)) / 2h
 *   L = sum of y times fixed random weights
 *
 * One row per case; every op of ops.def that has a gradient needs one. Of a case's
 * leaves those of dtype f64 are differentiated; f32 ones are constants (class weights),
 * i32 are indices below 3, u8 conditions, i64 the state of a generator. */
#include "etude/etude.h"
#include "t/ops/text.h"
#include "t/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The difference is off by h^2/6 of a third derivative and by rounding, eps |L| / h:
 * both near 1e-10 for values near 1. */
static const double h = 1e-5;
/* Leaves room for third derivatives and losses in the hundreds, and is far below what
 * any term left out would make. */
static const double tolerance = 1e-6;

enum { MOST = 5, LARGEST = 512 }; /* leaves, elements of one */

/* Flattens and joins what an op gives, so that all of it counts. */
static struct et_tensor *
join(struct et_graph *g, struct et_tensor *const *part, int n)
{
    struct et_tensor *flat[MOST];
    for (int i = 0; i < n; i++)
        flat[i] = et_reshape(g, part[i], 1, (int64_t[]){-1});
    return et_concat(g, flat, n, 0);
}

static struct et_tensor *
swap(struct et_graph *g, struct et_tensor *x)
{
    return et_transpose(g, x, -2, -1);
}

/* The generic form, for attributes that no builder sets. */
static struct et_tensor *
cast_to_itself(struct et_graph *g, struct et_tensor *x)
{
    const struct et_cast_attr o = {.dtype = ET_F64};
    return et_apply(g, ET_OP_cast, &x, 1, &o, sizeof o, NULL);
}

static struct et_tensor *
normalise(struct et_graph *g, struct et_tensor *x, struct et_tensor *gamma,
          struct et_tensor *beta)
{
    struct et_tensor *out[3];
    out[0] = et_batch_norm(g, x, gamma, beta, 0.1, &out[1], &out[2]);
    return join(g, out, 3);
}

static struct et_tensor *
normalise_add_relu(struct et_graph *g, struct et_tensor *const *x)
{
    const struct et_norm_attr o = {.eps = 0.1, .relu = 1};
    return et_apply(g, ET_OP_batch_norm, x, 4, &o, sizeof o, NULL);
}

/* norm(x + r), joined with the sum; or the sum alone. */
static struct et_tensor *
normalise_sum(struct et_graph *g, struct et_tensor *const *x, bool norm)
{
    const struct et_norm_attr o = {.eps = 0.1, .axes = 1};
    struct et_tensor *out[4];
    et_apply(g, ET_OP_layer_norm, x, 4, &o, sizeof o, out);
    out[1] = out[3];
    return norm ? join(g, out, 2) : out[3];
}

static struct et_tensor *
box(struct et_graph *g, struct et_tensor *x)
{
    x = et_slice(g, x, 0, 1, 2, 3);
    x = et_slice(g, x, 1, 0, 3, 2);
    return et_slice(g, x, -1, 1, 2, 1);
}

#define CONV(...)  (&(struct et_conv2d_attr){__VA_ARGS__})
#define POOL(...)  (&(struct et_pool2d_attr){__VA_ARGS__})
#define SHAPE(...) ((int64_t[]){__VA_ARGS__})
#define LIST(...)  ((struct et_tensor *[]){__VA_ARGS__})

/* Functions of positive numbers, of any, and of two operands. */
#define UNARY_CASE(op)  CASE(op, op, "f64[2,3,1]", 0.3, 2, et_##op(g, x[0]))
#define SIGNED_CASE(op) CASE(op, op, "f64[3,5]", -2, 2, et_##op(g, swap(g, x[0])))
#define BINARY_CASE(op)                                                                \
    CASE(op, op, "f64[3,4] f64[3,4]", 0.5, 2, et_##op(g, x[0], x[1]))                  \
    CASE(op##_broadcasts, op, "f64[2,1,3] f64[5,1]", 0.5, 2, et_##op(g, x[0], x[1]))   \
    CASE(op##_of_a_scalar, op, "f64[] f64[3,2]", 0.5, 2,                               \
         et_##op(g, x[0], swap(g, x[1])))                                              \
    CASE(op##_of_one_twice, op, "f64[3]", 0.5, 2,                                      \
         et_##op(g, x[0], et_mul_scalar(g, et_square(g, x[0]), 0.9)))

struct test {
    const char *says;
    enum et_op_id op;
    const char *leaves;
    double low, high;
    struct et_tensor *(*build)(struct et_graph *g, struct et_tensor *const *x);
};

#define CASE(name, op, leaves, low, high, y)                                           \
    static struct et_tensor *build_##name(struct et_graph *g,                          \
                                          struct et_tensor *const *x)                  \
    {                                                                                  \
        return y;                                                                      \
    }
#include "t/ops/gradients.def"
#undef CASE

static const struct test tests[] = {
#define CASE(name, op, leaves, low, high, y)                                           \
    {#name, ET_OP_##op, leaves, low, high, build_##name},
#include "t/ops/gradients.def"
#undef CASE
};

static struct et_ctx *cx;
static struct et_device *dev;
static struct et_graph *g;

/* The leaves of one case and their values in row-major order. */
struct leaves {
    int n;
    struct et_tensor *x[MOST];
    double value[MOST][LARGEST];
    struct et_tensor *weight; /* of y, made when its shape is known */
    struct et_rng rng;
};

static void
need(et_status status)
{
    if (status != ET_OK)
        bail("%s", et_error_get(cx)->message);
}

/* Writes the value of a leaf; of one that is not f64, in its own dtype. */
static void
write_leaf(struct leaves *l, struct et_tensor *x, const double *value)
{
    int64_t n = et_desc_count(&x->desc);
    float f32[LARGEST];
    int32_t i32[LARGEST];
    uint8_t u8[LARGEST];
    for (int64_t i = 0; i < n; i++) {
        f32[i] = (float)value[i];
        i32[i] = (int32_t)et_rng_below(&l->rng, 3);
        u8[i] = (uint8_t)et_rng_below(&l->rng, 2);
    }
    const int64_t i64[2] = {0x123456789, 5};
    const void *from = x->desc.dtype == ET_F64   ? (const void *)value
                       : x->desc.dtype == ET_F32 ? (const void *)f32
                       : x->desc.dtype == ET_I32 ? (const void *)i32
                       : x->desc.dtype == ET_U8  ? (const void *)u8
                                                 : (const void *)i64;
    need(et_tensor_write(cx, x, from, et_desc_bytes(&x->desc)));
}

static struct et_tensor *
new_leaf(const struct et_desc *d)
{
    struct et_tensor *x;
    enum et_format format =
        et_desc_is_contiguous(d, ET_ROW_MAJOR) ? ET_ROW_MAJOR : ET_CHANNELS_LAST;
    if (et_desc_count(d) > LARGEST)
        bail("more than %d elements", LARGEST);
    need(et_tensor_new(cx, dev, d->dtype, d->ndim, d->shape, format, NULL, &x));
    return x;
}

static void
make_leaves(struct leaves *l, const struct test *t, uint64_t number)
{
    struct et_desc d[MOST];
    memset(l, 0, sizeof *l);
    l->rng = et_rng_at(1, ET_RNG_MIX, number);
    l->n = read_descs(t->leaves, d, MOST);
    for (int i = 0; i < l->n; i++) {
        l->x[i] = new_leaf(&d[i]);
        for (int64_t k = 0; k < et_desc_count(&d[i]); k++)
            l->value[i][k] = t->low + (t->high - t->low) * et_rng_uniform(&l->rng);
        write_leaf(l, l->x[i], l->value[i]);
    }
}

static void
free_leaves(struct leaves *l)
{
    for (int i = 0; i < l->n; i++)
        et_tensor_free(&l->x[i]);
    et_tensor_free(&l->weight);
}

/* y, and L for it, in a graph begun anew. */
static struct et_tensor *
build(struct leaves *l, const struct test *t, struct et_tensor **loss)
{
    et_graph_reset(g);
    struct et_tensor *y = t->build(g, l->x);
    need(et_graph_status(g));
    if (!l->weight) {
        double w[LARGEST];
        for (int i = 0; i < LARGEST; i++)
            w[i] = 0.5 + et_rng_uniform(&l->rng);
        l->weight = new_leaf(&y->desc);
        write_leaf(l, l->weight, w);
    }
    *loss = et_sum(g, et_mul(g, y, l->weight), 0, false);
    need(et_graph_status(g));
    return y;
}

static double
loss_with(struct leaves *l, const struct test *t, int i, int64_t k, double value)
{
    double saved = l->value[i][k], got;
    struct et_tensor *loss;
    l->value[i][k] = value;
    write_leaf(l, l->x[i], l->value[i]);
    l->value[i][k] = saved;
    build(l, t, &loss);
    need(et_item(g, loss, &got));
    return got;
}

/* Compares the gradient of leaf I; false names the element. */
static bool
check_leaf(struct leaves *l, const struct test *t, int i, const double *gradient)
{
    bool good = true;
    for (int64_t k = 0; good && k < et_desc_count(&l->x[i]->desc); k++) {
        double x = l->value[i][k];
        double slope =
            (loss_with(l, t, i, k, x + h) - loss_with(l, t, i, k, x - h)) / (2 * h);
        good = fabs(gradient[k] - slope) <= tolerance * fmax(1, fabs(slope));
        if (!good)
            diag("leaf %d, element %lld: gradient %.9g, difference %.9g", i,
                 (long long)k, gradient[k], slope);
    }
    write_leaf(l, l->x[i], l->value[i]);
    return good;
}

static bool
depends_on(const struct et_tensor *y, enum et_op_id op)
{
    if (!y || !y->node)
        return false;
    if (y->node->op->id == op)
        return true;
    for (int i = 0; i < y->node->n_in; i++)
        if (depends_on(y->node->in[i], op))
            return true;
    return false;
}

/* Is the gradient of each leaf the same where no other is asked for? */
static bool
check_alone(struct leaves *l, const struct test *t, double (*gradient)[LARGEST])
{
    static double got[LARGEST];
    struct et_tensor *loss, *dx;
    for (int i = 0; i < l->n; i++) {
        const size_t bytes = et_desc_bytes(&l->x[i]->desc);
        if (l->n == 1 || l->x[i]->desc.dtype != ET_F64)
            continue;
        et_graph_reset(g);
        build(l, t, &loss);
        need(et_grad(g, loss, &l->x[i], 1, &dx));
        memset(got, 0, sizeof got);
        need(et_eval(g, &dx, 1));
        if (dx)
            need(et_tensor_read(cx, dx, got, bytes));
        if (memcmp(got, gradient[i], bytes) != 0) {
            diag("leaf %d alone has another gradient", i);
            return false;
        }
    }
    return true;
}

static void
check(const struct test *t, uint64_t number)
{
    static struct leaves l;
    static double gradient[MOST][LARGEST];
    struct et_tensor *loss, *dx[MOST];

    make_leaves(&l, t, number);
    bool good = depends_on(build(&l, t, &loss), t->op);
    if (!good)
        diag("the case does not use %s", et_op_get(t->op)->name);
    need(et_grad(g, loss, l.x, l.n, dx));
    need(et_eval(g, dx, l.n));
    for (int i = 0; i < l.n; i++) {
        memset(gradient[i], 0, sizeof gradient[i]);
        if (dx[i] && !et_desc_same_shape(&dx[i]->desc, &l.x[i]->desc))
            bail("%s: leaf %d has a gradient of another shape", t->says, i);
        if (dx[i] && l.x[i]->desc.dtype == ET_F64)
            need(et_tensor_read(cx, dx[i], gradient[i], et_desc_bytes(&l.x[i]->desc)));
    }
    for (int i = 0; good && i < l.n; i++)
        if (l.x[i]->desc.dtype == ET_F64)
            good = check_leaf(&l, t, i, gradient[i]);
    ok(good && check_alone(&l, t, gradient), "%s: gradients are slopes", t->says);
    free_leaves(&l);
}

/* What differences cannot show: equals share the gradient. */
static void
check_equals(void)
{
    double got[4];
    const double x[4] = {1, 3, 3, 3};
    struct leaves l = {.rng = et_rng_at(1, ET_RNG_MIX, 0)};
    struct et_desc d;
    read_descs("f64[4]", &d, 1);
    struct et_tensor *leaf = new_leaf(&d), *dx;
    write_leaf(&l, leaf, x);

    et_graph_reset(g);
    need(et_grad(g, et_amax(g, leaf, 0, false), &leaf, 1, &dx));
    need(et_eval(g, &dx, 1));
    need(et_tensor_read(cx, dx, got, sizeof got));
    ok(got[0] == 0 && got[1] == 1.0 / 3 && got[2] == got[1] && got[3] == got[1],
       "the largest of equals share the gradient of amax");

    et_graph_reset(g);
    struct et_tensor *three = et_fill(g, ET_F64, 0, NULL, 3);
    struct et_tensor *y = et_sum(g, et_maximum(g, leaf, three), 0, false);
    need(et_grad(g, y, &leaf, 1, &dx));
    need(et_eval(g, &dx, 1));
    need(et_tensor_read(cx, dx, got, sizeof got));
    ok(got[0] == 0 && got[1] == 0.5 && got[3] == 0.5,
       "equals halve the gradient of maximum");
    et_tensor_free(&leaf);
}

/* Where a slope is one of two, by what elementwise.c says: at 0 and at bounds. */
static void
check_corners(void)
{
    static const double x[4] = {0, 1, 2, 3};
    static const struct {
        const char *says;
        double want[4];
    } rows[] = {
        {"both bounds of clamp are inside", {0, 1, 1, 0}},
        {"x^0 has no slope, at 0 neither", {0, 0, 0, 0}},
        {"|x| is flat at 0", {0, 1, 1, 1}},
        {"relu is flat at 0", {0, 1, 1, 1}},
        {"of minimum equals have a half", {1, 0.5, 0, 0}},
        {"x^2 by its power is that by itself", {0, 2, 4, 6}},
    };
    struct leaves l = {.rng = et_rng_at(1, ET_RNG_MIX, 0)};
    struct et_desc d;
    read_descs("f64[4]", &d, 1);
    struct et_tensor *leaf = new_leaf(&d);
    write_leaf(&l, leaf, x);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double got[4], wrong = 0;
        et_graph_reset(g);
        struct et_tensor *one = et_fill(g, ET_F64, 0, NULL, 1), *dx;
        struct et_tensor *y[] = {
            et_clamp(g, leaf, 1, 2),  et_pow_scalar(g, leaf, 0),
            et_abs(g, leaf),          et_relu(g, leaf),
            et_minimum(g, leaf, one), et_pow_scalar(g, leaf, 2),
        };
        /* x besides, so that there is a gradient. */
        struct et_tensor *sum = et_sum(g, et_add(g, y[i], leaf), 0, false);
        need(et_grad(g, sum, &leaf, 1, &dx));
        need(et_eval(g, &dx, 1));
        need(et_tensor_read(cx, dx, got, sizeof got));
        for (int k = 0; k < 4; k++)
            wrong += got[k] != rows[i].want[k] + 1;
        ok(wrong == 0, "%s", rows[i].says);
    }
    et_tensor_free(&leaf);
}

int
main(void)
{
    need(et_ctx_new(&cx));
    need(et_device_open(cx, "ref", 0, 1, &dev));
    need(et_graph_new(cx, dev, &g));
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        check(&tests[i], i);
    check_equals();
    check_corners();
    for (int id = 0; id < ET_OP_COUNT; id++) {
        const struct et_op *op = et_op_get((enum et_op_id)id);
        bool tested = !op->gradient;
        for (size_t i = 0; !tested && i < sizeof tests / sizeof *tests; i++)
            tested = tests[i].op == op->id;
        ok(tested, "%s has no gradient, or a case here", op->name);
    }
    et_graph_free(&g);
    et_device_close(&dev);
    et_ctx_free(&cx);
    return done();
}
