/* SPDX-License-Identifier: Apache-2.0 */
/* Products that take what follows them: which a plan joins, for a device that says what
 * it takes, and that the numbers stay. On the reference device. */
#include <math.h>
#include <string.h>

#include "core/graph/graph_impl.h"
#include "etude/etude.h"
#include "t/tap.h"

enum { ROWS = 5, IN = 4, OUT = 3, ALL = (1 << ET_EPILOGUES) - 1, MOST = 8 };

static struct et_ctx *cx;
static struct et_device *dev;
static const struct et_device_table *real;
static struct et_device_table table;

/* What was prepared since it was last asked for. */
static int products, fused[ET_EPILOGUES], gelus, gradients, sums;

static et_status
note_prepare(struct et_device_handle *h, const struct et_call *call,
             struct et_kernel **out, size_t *workspace, char *why, size_t why_size)
{
    products += call->op == ET_OP_matmul;
    gelus += call->op == ET_OP_gelu_tanh || call->op == ET_OP_gelu;
    gradients += call->op == ET_OP_gelu_tanh_grad;
    sums += call->op == ET_OP_sum;
    if (call->op == ET_OP_matmul_fused)
        fused[((const struct et_matmul_fused_attr *)call->attr)->form]++;
    return real->prepare(h, call, out, workspace, why, why_size);
}

/* ---- leaves ---- */

static struct et_tensor *
leaf(int ndim, const int64_t *shape, int seed)
{
    struct et_tensor *t;
    float v[256];
    if (et_tensor_new(cx, dev, ET_F32, ndim, shape, ET_ROW_MAJOR, NULL, &t) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    for (int i = 0; i < 256; i++)
        v[i] = sinf((float)(i * seed) + 1);
    if (et_tensor_write(cx, t, v, et_desc_bytes(&t->desc)) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    return t;
}

static struct et_tensor *x, *w, *bias, *w2, *bias2;

/* ---- graphs ---- */

/* Each fills WANT and returns how many. */
typedef int build_fn(struct et_graph *g, struct et_tensor *want[MOST]);

static int
forward(struct et_graph *g, struct et_tensor *want[MOST])
{
    want[0] = et_gelu_tanh(g, et_linear(g, x, w, bias));
    return 1;
}

static int
forward_and_pre(struct et_graph *g, struct et_tensor *want[MOST])
{
    want[1] = et_linear(g, x, w, NULL);
    want[0] = et_gelu_tanh(g, want[1]);
    return 2;
}

static int
exact_gelu(struct et_graph *g, struct et_tensor *want[MOST])
{
    want[0] = et_gelu(g, et_linear(g, x, w, bias));
    return 1;
}

/* The perceptron of a transformer, its weights as torch or as GPT-2 has them. */
static int
perceptron(struct et_graph *g, struct et_tensor *want[MOST], bool turned)
{
    struct et_tensor *h = et_linear(g, x, w, bias), *params[] = {w, bias, w2, bias2};
    struct et_tensor *y = et_gelu_tanh(g, h);
    y = turned
            ? et_add(g, et_matmul(g, y, et_transpose(g, w2, 0, 1), false, false), bias2)
            : et_linear(g, y, w2, bias2);
    struct et_tensor *loss = et_mean(g, et_square(g, y), 0, false);
    if (et_grad(g, loss, params, 4, want) != ET_OK)
        bail("%s", et_error_get(et_graph_ctx(g))->message);
    want[4] = loss;
    return 5;
}

static int
linear_perceptron(struct et_graph *g, struct et_tensor *want[MOST])
{
    return perceptron(g, want, false);
}

static int
turned_perceptron(struct et_graph *g, struct et_tensor *want[MOST])
{
    return perceptron(g, want, true);
}

/* dg, which the kernel would never store, is asked for. */
static int
read_twice(struct et_graph *g, struct et_tensor *want[MOST])
{
    struct et_tensor *h = et_linear(g, x, w, bias), *y = et_gelu_tanh(g, h), *dg;
    if (et_grad_from(g, et_linear(g, y, w2, bias2), NULL, &y, 1, &dg) != ET_OK ||
        et_grad_from(g, y, dg, &h, 1, want) != ET_OK)
        bail("%s", et_error_get(et_graph_ctx(g))->message);
    want[1] = dg;
    return 2;
}

/* dg is a product with a bias, which the kernel would not add. */
static int
biased_gradient(struct et_graph *g, struct et_tensor *want[MOST])
{
    struct et_tensor *h = et_linear(g, x, w, bias), *y = et_gelu_tanh(g, h);
    struct et_tensor *dg = et_linear(g, et_neg(g, x), w, bias);
    if (et_grad_from(g, y, dg, &h, 1, want) != ET_OK)
        bail("%s", et_error_get(et_graph_ctx(g))->message);
    return 1;
}

/* Rows of one memory: those that are summed and those that are multiplied. */
static int
other_rows(struct et_graph *g, struct et_tensor *want[MOST])
{
    want[0] = et_sum(g, et_slice(g, x, 0, 0, 2, 1), 1, false);
    want[1] = et_matmul(g, et_slice(g, x, 0, 2, 2, 1), et_slice(g, x, 0, 3, 2, 1), true,
                        false);
    return 2;
}

/* They begin alike, and one has more: all rows are summed, or multiplied. */
static int
fewer_products(struct et_graph *g, struct et_tensor *want[MOST])
{
    want[0] = et_sum(g, x, 1, false);
    want[1] = et_matmul(g, et_slice(g, x, 0, 0, 2, 1), et_slice(g, x, 0, 3, 2, 1), true,
                        false);
    return 2;
}

static int
fewer_sums(struct et_graph *g, struct et_tensor *want[MOST])
{
    want[0] = et_sum(g, et_slice(g, x, 0, 0, 2, 1), 1, false);
    want[1] = et_matmul(g, x, et_square(g, x), true, false);
    return 2;
}

static int
same_rows(struct et_graph *g, struct et_tensor *want[MOST])
{
    want[0] = et_sum(g, et_slice(g, x, 0, 2, 2, 1), 1, false);
    want[1] = et_matmul(g, et_slice(g, x, 0, 2, 2, 1), et_slice(g, x, 0, 3, 2, 1), true,
                        false);
    return 2;
}

/* The product for dw reads what the sum gives: together they would wait for each
 * other. */
static int
circle(struct et_graph *g, struct et_tensor *want[MOST])
{
    struct et_tensor *sum = et_sum(g, x, 1, false);
    want[0] = et_matmul(g, x, et_mul(g, x, sum), true, false);
    return 1;
}

/* Two products could take the one sum. */
static int
two_products(struct et_graph *g, struct et_tensor *want[MOST])
{
    want[0] = et_sum(g, x, 1, false);
    want[1] = et_matmul(g, x, et_square(g, x), true, false);
    want[2] = et_matmul(g, et_neg(g, x), x, true, false);
    return 3;
}

/* ---- runs ---- */

struct outcome {
    float v[MOST][64];
    int n, products, gelus, gradients, sums, fused[ET_EPILOGUES];
};

static void
evaluate(build_fn *build, uint32_t epilogues, struct outcome *out)
{
    struct et_graph *g;
    struct et_tensor *want[MOST] = {NULL};
    memset(out, 0, sizeof *out);
    table.epilogues = epilogues;
    products = gelus = gradients = sums = 0;
    memset(fused, 0, sizeof fused);
    if (et_graph_new(cx, dev, &g) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    out->n = build(g, want);
    if (et_eval(g, want, out->n) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    for (int i = 0; i < out->n; i++)
        if (et_tensor_read(cx, want[i], out->v[i], et_desc_bytes(&want[i]->desc)) !=
            ET_OK)
            bail("%s", et_error_get(cx)->message);
    et_graph_free(&g);
    out->products = products;
    out->gelus = gelus;
    out->gradients = gradients;
    out->sums = sums;
    memcpy(out->fused, fused, sizeof fused);
}

/* The reference rounds each result once to f32: sums of 15 terms of size 1 differ by
 * some units in the last place. */
static bool
is_same(const struct outcome *a, const struct outcome *b)
{
    for (int i = 0; i < a->n; i++)
        for (int k = 0; k < 64; k++)
            if (!(fabsf(a->v[i][k] - b->v[i][k]) <= 2e-6f * (1 + fabsf(a->v[i][k])))) {
                diag("value %d, element %d: %.9g, joined %.9g", i, k, a->v[i][k],
                     b->v[i][k]);
                return false;
            }
    return true;
}

/* Rows leave out what is 0. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
static const struct {
    const char *what;
    build_fn *build;
    uint32_t epilogues;
    int products, fused[ET_EPILOGUES], gelus, gradients, sums;
} cases[] = {
    {"a device that takes nothing gets the plain steps", linear_perceptron, 0,
     .products = 5, .gelus = 1, .gradients = 1, .sums = 3},
    {"a product, its bias and gelu are one kernel", forward, ALL, .fused = {1}},
    {"which gives what gelu was taken of, to who wants it", forward_and_pre, ALL,
     .fused = {1}},
    {"gelu's exact form stays by itself", exact_gelu, ALL, .products = 1, .gelus = 1},
    {"in training, so are the gradient through gelu and the bias before it, and the "
     "gradients of the last weight and bias",
     linear_perceptron, ALL, .products = 2, .fused = {1, 1, 1}, .sums = 1},
    {"a weight that lies the other way takes the sum from the other side",
     turned_perceptron, ALL, .products = 2, .fused = {1, 1, 0, 1}, .sums = 1},
    {"a device may take the gelu alone", linear_perceptron, 1 << ET_EPILOGUE_GELU,
     .products = 4, .fused = {1}, .gradients = 1, .sums = 3},
    {"or the gradients", linear_perceptron,
     1 << ET_EPILOGUE_GELU_GRAD | 1 << ET_EPILOGUE_SUM_A, .products = 3,
     .fused = {0, 1, 1}, .gelus = 1, .sums = 1},
    {"a gradient that is read twice is stored, and its product plain", read_twice, ALL,
     .products = 2, .gradients = 1},
    {"a sum is not joined where its product waits for it", circle, ALL, .products = 1,
     .sums = 1},
    {"a gradient that is a product with a bias is stored", biased_gradient, ALL,
     .products = 2, .gradients = 1},
    {"a sum of other rows of the same memory stays by itself", other_rows, ALL,
     .products = 1, .sums = 1},
    {"so does a sum of more rows than a product has", fewer_products, ALL,
     .products = 1, .sums = 1},
    {"and of fewer", fewer_sums, ALL, .products = 1, .sums = 1},
    {"a sum of the same rows of it is joined", same_rows, ALL, .fused = {0, 0, 1}},
    {"of two products one takes the sum", two_products, ALL, .products = 1,
     .fused = {0, 0, 1}},
};

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK || et_device_open(cx, "ref", 0, 0, &dev) != ET_OK)
        bail("no reference device");
    real = dev->table;
    table = *real;
    table.prepare = note_prepare;
    dev->table = &table;
    x = leaf(2, (int64_t[]){ROWS, IN}, 3);
    w = leaf(2, (int64_t[]){OUT, IN}, 5);
    bias = leaf(1, (int64_t[]){OUT}, 7);
    w2 = leaf(2, (int64_t[]){2, OUT}, 11);
    bias2 = leaf(1, (int64_t[]){2}, 13);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct outcome plain, joined;
        evaluate(cases[i].build, 0, &plain);
        evaluate(cases[i].build, cases[i].epilogues, &joined);
        bool counted =
            joined.products == cases[i].products && joined.gelus == cases[i].gelus &&
            joined.gradients == cases[i].gradients && joined.sums == cases[i].sums &&
            memcmp(joined.fused, cases[i].fused, sizeof joined.fused) == 0;
        ok(counted, "%s", cases[i].what);
        if (!counted)
            diag("%d products, %d %d %d %d joined, %d gelus, %d gradients, %d sums",
                 joined.products, joined.fused[0], joined.fused[1], joined.fused[2],
                 joined.fused[3], joined.gelus, joined.gradients, joined.sums);
        ok(is_same(&plain, &joined), "with the same numbers");
    }
    struct et_tensor **leaves[] = {&x, &w, &bias, &w2, &bias2};
    for (int i = 0; i < 5; i++)
        et_tensor_free(leaves[i]);
    dev->table = real;
    et_device_close(&dev);
    et_ctx_free(&cx);
    return done();
}
