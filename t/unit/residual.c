/* SPDX-License-Identifier: Apache-2.0 */
/* Layer norm takes the sum before it and the casts around it (fuse_residual.c), batch
 * norm the sum and the ReLU behind it (fuse_norm.c): fewer kernels, and the bits that
 * each operation gives by itself (ETUDE_EAGER). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etude/ctx.h"
#include "etude/graph.h"
#include "etude/op.h"
#include "etude/tensor.h"
#include "t/tap.h"

enum { ROWS = 6, WIDTH = 24, COUNT = ROWS * WIDTH, MOST = 6 };

static struct et_ctx *cx;
static struct et_device *dev;

/* Leaves of a formula: the stream x, a branch r, weights w, gamma, beta. */
enum { X, R, W, GAMMA, BETA, LEAVES };

static struct et_tensor *
leaf(int i, int ndim, const int64_t *shape)
{
    float values[WIDTH * WIDTH];
    struct et_tensor *t;
    for (int k = 0; k < WIDTH * WIDTH; k++)
        values[k] = sinf(0.7f * (float)(k + 31 * i)) + 0.1f * cosf((float)(k * k));
    if (et_tensor_new(cx, dev, ET_F32, ndim, shape, ET_ROW_MAJOR, "leaf", &t) !=
            ET_OK ||
        et_tensor_write(cx, t, values, et_desc_bytes(&t->desc)) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    return t;
}

/* ---- formulas: values that are asked for; the first N_GRADS leaves' gradients are
 * those of the sum of all ---- */

typedef int formula(struct et_graph *g, struct et_tensor **in, struct et_tensor **out);

static struct et_tensor *
norm(struct et_graph *g, struct et_tensor **in, struct et_tensor *x)
{
    return et_layer_norm(g, x, in[GAMMA], in[BETA], 1, 1e-5);
}

static struct et_tensor *
product(struct et_graph *g, struct et_tensor **in, struct et_tensor *x)
{
    return et_matmul(g, x, in[W], false, false);
}

/* Two layers with their norms before them, and a last norm: a GPT-2 in small. */
static int
stream(struct et_graph *g, struct et_tensor **in, struct et_tensor **out)
{
    struct et_tensor *x = in[X];
    for (int i = 0; i < 2; i++)
        x = et_add(g, x, product(g, in, norm(g, in, x)));
    out[0] = product(g, in, norm(g, in, x));
    return 1;
}

/* A norm behind each layer: BERT. Its result goes on as the stream. */
static int
behind(struct et_graph *g, struct et_tensor **in, struct et_tensor **out)
{
    struct et_tensor *x = in[X];
    for (int i = 0; i < 2; i++)
        x = norm(g, in, et_add(g, product(g, in, x), x));
    out[0] = x;
    return 1;
}

/* The sum is asked for, and read by two norms. */
static int
asked_for(struct et_graph *g, struct et_tensor **in, struct et_tensor **out)
{
    out[0] = et_add(g, in[X], product(g, in, in[R]));
    out[1] = et_mul(g, norm(g, in, out[0]),
                    et_layer_norm(g, out[0], in[GAMMA], in[BETA], 1, 1e-3));
    return 2;
}

/* gamma is made of the sum, so it must be there before the norm. */
static int
conditioned(struct et_graph *g, struct et_tensor **in, struct et_tensor **out)
{
    struct et_tensor *x = et_add(g, in[X], in[R]);
    struct et_tensor *gamma =
        et_reshape(g, et_slice(g, x, 0, 0, 1, 1), 1, &(int64_t){WIDTH});
    out[0] = et_layer_norm(g, x, gamma, in[BETA], 1, 1e-5);
    return 1;
}

/* So is beta. */
static int
shifted(struct et_graph *g, struct et_tensor **in, struct et_tensor **out)
{
    struct et_tensor *x = et_add(g, in[X], in[R]);
    struct et_tensor *beta =
        et_reshape(g, et_slice(g, x, 0, 0, 1, 1), 1, &(int64_t){WIDTH});
    out[0] = et_layer_norm(g, x, in[GAMMA], beta, 1, 1e-5);
    return 1;
}

/* A row for all: that sum stays by itself. */
static int
repeated(struct et_graph *g, struct et_tensor **in, struct et_tensor **out)
{
    out[0] = norm(g, in, et_add(g, in[X], in[BETA]));
    return 1;
}

/* Two norms of the same stream, whose gradients meet. */
static int
parallel(struct et_graph *g, struct et_tensor **in, struct et_tensor **out)
{
    struct et_tensor *x = et_add(g, in[X], in[R]);
    out[0] = et_add(g, product(g, in, norm(g, in, x)),
                    product(g, in, et_layer_norm(g, x, NULL, NULL, 1, 1e-3)));
    return 1;
}

/* Batch norm, a shortcut with another, and ReLU: a ResNet's block. */
static int
shortcut(struct et_graph *g, struct et_tensor **in, struct et_tensor **out)
{
    struct et_tensor *mean, *var, *x = product(g, in, in[X]),
                                  *r = product(g, in, in[R]);
    x = et_batch_norm(g, x, in[GAMMA], in[BETA], 1e-5, &mean, &var);
    r = et_batch_norm(g, r, in[GAMMA], NULL, 1e-5, &mean, &var);
    out[0] = product(g, in, et_relu(g, et_add(g, x, r)));
    return 1;
}

static struct et_tensor *
batch_norm(struct et_graph *g, struct et_tensor **in, struct et_tensor *x)
{
    struct et_tensor *mean, *var;
    return et_batch_norm(g, x, in[GAMMA], in[BETA], 1e-3, &mean, &var);
}

/* Batch norms and sums that others read, or that are asked for: they stay, before a sum
 * and before a ReLU. */
static int
read_by_others(struct et_graph *g, struct et_tensor **in, struct et_tensor **out)
{
    struct et_tensor *x = batch_norm(g, in, in[X]), *r = batch_norm(g, in, in[R]);
    out[0] = et_relu(g, et_add(g, product(g, in, x), x));
    out[1] = et_add(g, in[X], r);
    out[2] = et_relu(g, out[1]);
    out[3] = batch_norm(g, in, out[0]);
    out[4] = et_relu(g, out[3]);
    return 5;
}

/* What has taken a sum and a ReLU takes no others, and a row for all is no shortcut. */
static int
taken_already(struct et_graph *g, struct et_tensor **in, struct et_tensor **out)
{
    struct et_tensor *x = product(g, in, in[X]), *r = product(g, in, in[R]);
    struct et_tensor *y = et_relu(g, et_add(g, r, batch_norm(g, in, x)));
    struct et_tensor *z = et_relu(g, et_add(g, batch_norm(g, in, r), x));
    out[0] = et_relu(g, et_add(g, y, x));
    out[1] = et_relu(g, z);
    out[2] = et_relu(g, et_add(g, batch_norm(g, in, out[0]), in[BETA]));
    return 3;
}

/* A sum whose rows do not lie one behind the other. */
static int
turned(struct et_graph *g, struct et_tensor **in, struct et_tensor **out)
{
    struct et_tensor *x = et_transpose(g, in[X], 0, 1);
    struct et_tensor *r = et_transpose(g, in[R], 0, 1);
    out[0] = et_layer_norm(g, et_add(g, x, r), NULL, NULL, 1, 1e-5);
    return 1;
}

/* ---- running ---- */

struct answers {
    float value[MOST + LEAVES][WIDTH * WIDTH];
    int64_t count[MOST + LEAVES];
    int n;
    uint64_t kernels;
};

struct row {
    const char *what;
    formula *f;
    int kernels[2]; /* of the plan: in f32, in mixed precision */
    int apart[2];   /* where norms take no sums and casts */
    bool no_grads;  /* the values alone, as in an evaluation */
};

static void
compute(const struct row *row, struct et_tensor **in, enum et_dtype low, bool eager,
        struct answers *a)
{
    struct et_graph *g;
    struct et_tensor *out[MOST + LEAVES] = {NULL}, *all = NULL, *want[MOST + LEAVES];
    setenv("ETUDE_EAGER", eager ? "1" : "0", 1);
    if (et_graph_new(cx, dev, &g) != ET_OK || et_graph_set_low_dtype(g, low) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    unsetenv("ETUDE_EAGER");
    et_autocast(g, low != ET_NONE);
    int n = row->f(g, in, out);
    for (int i = 0; i < n; i++) {
        struct et_tensor *part = et_sum(g, et_square(g, out[i]), 0, false);
        all = all ? et_add(g, all, part) : part;
    }
    if (!row->no_grads && et_grad(g, all, in, LEAVES, out + n) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    a->n = 0;
    for (int i = 0; i < n + LEAVES; i++)
        if (out[i])
            want[a->n++] = et_cast(g, out[i], ET_F32);
    if (et_eval(g, want, a->n) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    for (int i = 0; i < a->n; i++) {
        a->count[i] = et_desc_count(&want[i]->desc);
        if (et_tensor_read(cx, want[i], a->value[i], et_desc_bytes(&want[i]->desc)) !=
            ET_OK)
            bail("%s", et_error_get(cx)->message);
    }
    struct et_graph_stats stats;
    et_graph_get_stats(g, &stats);
    a->kernels = stats.kernels_run;
    et_graph_free(&g);
}

static const struct row rows[] = {
    {"a stream", stream, {19, 21}, {23, 32}, false},
    {"norms behind the sums", behind, {16, 19}, {18, 23}, false},
    {"a sum that is asked for", asked_for, {11, 15}, {12, 16}, false},
    {"a gamma made of the sum", conditioned, {6, 6}, {6, 6}, false},
    {"a beta made of the sum", shifted, {6, 6}, {6, 6}, false},
    {"a sum with a row for all", repeated, {6, 6}, {6, 6}, false},
    {"a sum that is not dense", turned, {2, 2}, {2, 2}, true},
    {"two norms of a sum", parallel, {11, 12}, {14, 19}, false},
    {"a shortcut", shortcut, {16, 22}, {18, 24}, false},
    {"batch norms that others read", read_by_others, {16, 19}, {16, 19}, false},
    {"batch norms that have a sum", taken_already, {8, 11}, {8, 11}, true},
};

static void
check(const struct row *row, struct et_tensor **in, enum et_dtype low,
      const char *where)
{
    static struct answers planned, eager;
    const char *dtype = low ? et_dtype_name(low) : "f32";
    compute(row, in, low, false, &planned);
    compute(row, in, low, true, &eager);
    bool same = planned.n == eager.n;
    for (int i = 0; i < planned.n && same; i++) {
        size_t bytes = (size_t)planned.count[i] * sizeof(float);
        same = memcmp(planned.value[i], eager.value[i], bytes) == 0;
        for (int64_t k = 0; k < planned.count[i] && !same; k++)
            if (memcmp(&planned.value[i][k], &eager.value[i][k], sizeof(float)) != 0) {
                diag("value %d, element %d: planned %.9g, eager %.9g", i, (int)k,
                     planned.value[i][k], eager.value[i][k]);
                break;
            }
    }
    ok(same, "%s in %s on %s: planned is eager, bit for bit", row->what, dtype, where);
    int n = row->kernels[low != ET_NONE], apart = row->apart[low != ET_NONE];
    is_int((int64_t)planned.kernels, n, "%s in %s on %s: %d kernels instead of %d",
           row->what, dtype, where, n, apart);
}

int
main(void)
{
    static const char *const devices[] = {"ref", "cpu", "gpusim"};
    static const enum et_dtype lows[] = {ET_NONE, ET_BF16, ET_F16};
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    for (int d = 0; d < 3; d++) {
        if (et_device_open(cx, devices[d], 0, 1, &dev) != ET_OK) {
            diag("%s", et_error_get(cx)->message);
            et_error_clear(cx);
            continue;
        }
        const int64_t x[] = {ROWS, WIDTH}, w[] = {WIDTH, WIDTH}, c[] = {WIDTH};
        struct et_tensor *in[LEAVES] = {leaf(X, 2, x), leaf(R, 2, x), leaf(W, 2, w),
                                        leaf(GAMMA, 1, c), leaf(BETA, 1, c)};
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
            for (int k = 0; k < 3; k++)
                check(&rows[i], in, lows[k], devices[d]);
        for (int i = 0; i < LEAVES; i++)
            et_tensor_free(&in[i]);
        et_device_close(&dev);
    }
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
