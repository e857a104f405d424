/* SPDX-License-Identifier: Apache-2.0 */
/* What a step makes twice: large activations and norms that are read again much later,
 * where what they are made from is kept anyway. Gradients are those of eager mode, bit
 * for bit. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/graph_impl.h"
#include "t/tap.h"

/* A value [ROWS, WIDE] is 1 MiB, from which on it is worth it. A product with a weight
 * of MOST or HALF columns does enough with each element for a norm, or an activation,
 * to be made again. */
enum { ROWS = 1024, WIDE = 256, BLOCKS = 4, MOST = 1152, HALF = 384 };

static struct et_ctx *cx;
static struct et_device *dev;
static struct et_tensor *x, *w[BLOCKS][2], *gain, *shift;

static struct et_tensor *
leaf(int64_t rows, int64_t columns, float scale)
{
    const int64_t shape[] = {rows, columns};
    size_t n = (size_t)(rows * columns);
    struct et_tensor *t;
    float *v = malloc(n * sizeof *v);
    for (size_t i = 0; v && i < n; i++)
        v[i] = scale * sinf((float)(i % 1009));
    if (!v ||
        et_tensor_new(cx, dev, ET_F32, rows > 1 ? 2 : 1, rows > 1 ? shape : shape + 1,
                      ET_ROW_MAJOR, "leaf", &t) != ET_OK ||
        et_tensor_write(cx, t, v, n * sizeof *v) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    free(v);
    return t;
}

/* ---- blocks ---- */

typedef struct et_tensor *block(struct et_graph *g, struct et_tensor *x, int i);

/* By the first N columns of weight K of block I, and back to WIDE of them. */
static struct et_tensor *
product(struct et_graph *g, struct et_tensor *a, int i, int k, int64_t n)
{
    const int last = a ? a->desc.ndim - 1 : 0;
    a = et_matmul(g, a, et_slice(g, w[i][k], 1, 0, n, 1), false, false);
    return n == WIDE ? a : et_slice(g, a, last, 0, WIDE, 1);
}

static struct et_tensor *
of_gelu(struct et_graph *g, struct et_tensor *a, int i)
{
    return product(g, et_gelu(g, product(g, a, i, 0, WIDE)), i, 1, HALF);
}

/* Readers see the activation in another shape. */
static struct et_tensor *
of_views(struct et_graph *g, struct et_tensor *a, int i)
{
    const int64_t n = a->desc.shape[0], deep[] = {1, n, WIDE}, flat[] = {n, WIDE};
    struct et_tensor *y = et_reshape(g, et_silu(g, product(g, a, i, 0, WIDE)), 3, deep);
    return et_reshape(g, product(g, y, i, 1, HALF), 2, flat);
}

/* A product that does a little less with each element. */
static struct et_tensor *
of_narrow(struct et_graph *g, struct et_tensor *a, int i)
{
    return product(g, et_gelu(g, product(g, a, i, 0, WIDE)), i, 1, HALF - 1);
}

/* The gradient needs the result alone: what it was made from goes. */
static struct et_tensor *
of_relu(struct et_graph *g, struct et_tensor *a, int i)
{
    return product(g, et_relu(g, product(g, a, i, 0, WIDE)), i, 1, HALF);
}

static struct et_tensor *
norm_of_sum(struct et_graph *g, struct et_tensor *a, int i, int64_t n)
{
    struct et_tensor *sum = et_add(g, a, product(g, a, i, 0, WIDE));
    struct et_tensor *y = et_layer_norm(g, sum, gain, shift, 1, 1e-5);
    return et_add(g, a, product(g, y, i, 1, n));
}

static struct et_tensor *
of_norm(struct et_graph *g, struct et_tensor *a, int i)
{
    return norm_of_sum(g, a, i, MOST);
}

static struct et_tensor *
of_narrow_norm(struct et_graph *g, struct et_tensor *a, int i)
{
    return norm_of_sum(g, a, i, MOST - 1);
}

/* ---- a step ---- */

struct answer {
    struct et_plan_info info;
    float *grad; /* of all weights; for free() */
    size_t bytes;
};

/* Of the first N rows. */
static struct answer
compute(block *of, int64_t n, bool eager)
{
    struct et_graph *g;
    struct et_tensor *leaves[2 * BLOCKS], *grad[2 * BLOCKS];
    struct answer out = {0};
    const size_t one = (size_t)WIDE * MOST * sizeof(float);
    setenv("ETUDE_EAGER", eager ? "1" : "0", 1);
    if (et_graph_new(cx, dev, &g) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    unsetenv("ETUDE_EAGER");
    struct et_tensor *a = et_slice(g, x, 0, 0, n, 1);
    for (int i = 0; i < BLOCKS; i++)
        a = of(g, a, i);
    for (int i = 0; i < 2 * BLOCKS; i++)
        leaves[i] = w[i / 2][i % 2];
    if (et_grad(g, et_sum_squares(g, a), leaves, 2 * BLOCKS, grad) != ET_OK ||
        et_eval(g, grad, 2 * BLOCKS) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    et_graph_last_plan(g, &out.info);
    out.bytes = 2 * BLOCKS * one;
    out.grad = malloc(out.bytes);
    for (int i = 0; i < 2 * BLOCKS; i++)
        if (!out.grad || et_tensor_read(cx, grad[i], out.grad + (size_t)i * WIDE * MOST,
                                        one) != ET_OK)
            bail("%s", et_error_get(cx)->message);
    et_graph_free(&g);
    return out;
}

/* MADE: how many values are made twice where they are large. */
static void
test_block(const char *what, block *of, int made)
{
    struct answer planned = compute(of, ROWS, false), eager = compute(of, ROWS, true);
    struct answer small = compute(of, ROWS - 1, false);
    is_int(planned.info.kernels - small.info.kernels, made,
           "%s: %d values are made twice", what, made);
    ok(memcmp(planned.grad, eager.grad, planned.bytes) == 0,
       "with the gradients of eager mode");
    if (made > 0)
        ok(planned.info.slab_bytes + (size_t)(made - 1) * ROWS * WIDE * 4 <=
               small.info.slab_bytes,
           "which takes %zu kB instead of %zu", planned.info.slab_bytes / 1024,
           small.info.slab_bytes / 1024);
    else
        ok(planned.info.slab_bytes >= small.info.slab_bytes, "so it takes what it did");
    free(planned.grad);
    free(eager.grad);
    free(small.grad);
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    if (et_device_open(cx, "cpu", 0, 1, &dev) != ET_OK)
        skip_all("no device cpu");
    x = leaf(ROWS, WIDE, 1);
    gain = leaf(1, WIDE, 1);
    shift = leaf(1, WIDE, 0.5F);
    for (int i = 0; i < BLOCKS; i++)
        for (int k = 0; k < 2; k++)
            w[i][k] = leaf(WIDE, MOST, 0.05F);
    /* The last block is read again too soon for that. */
    test_block("gelu", of_gelu, 3);
    test_block("views of silu", of_views, 3);
    test_block("gelu before smaller products", of_narrow, 0);
    test_block("norms before smaller products", of_narrow_norm, 0);
    test_block("relu", of_relu, 0);
    test_block("norms of sums", of_norm, 3);
    et_tensor_free(&x);
    et_tensor_free(&gain);
    et_tensor_free(&shift);
    for (int i = 0; i < BLOCKS; i++)
        for (int k = 0; k < 2; k++)
            et_tensor_free(&w[i][k]);
    et_device_close(&dev);
    et_ctx_free(&cx);
    return done();
}
