/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions take the scale and shift of each channel, the sum and the ReLU that
 * follow them (fuse_conv.c) on a device that says it gains by it: fewer kernels, the
 * same numbers; and where somebody else reads what would not be stored, or the numbers
 * are not one for each channel, they do not. */
#include <math.h>
#include <stdlib.h>

#include "core/graph/graph_impl.h"
#include "etude/etude.h"
#include "t/tap.h"

enum { N = 2, C = 3, K = 4, H = 5, W = 6, COUNT = N * K * H * W, MOST = 3 };

static struct et_ctx *cx;
static struct et_device *dev;

/* Images, filters (of 3 and of 1 pixel), images like the result; for each channel a
 * gamma, a beta, a mean and a variance; for each column a number; and a vector that is
 * twice as long as there are channels. */
enum { X, FILTERS, POINTS, R, GAMMA, BETA, MEAN, VAR, COLUMNS, LONG, LEAVES };

static struct et_tensor *
leaf(int i)
{
    static const struct {
        int ndim;
        int64_t shape[4];
    } shapes[LEAVES] = {
        {4, {N, C, H, W}}, {4, {K, C, 3, 3}}, {4, {K, C, 1, 1}}, {4, {N, K, H, W}},
        {1, {K}},          {1, {K}},          {1, {K}},          {1, {K}},
        {1, {W}},          {1, {2 * K}},
    };
    float values[COUNT];
    struct et_tensor *t;
    for (int k = 0; k < COUNT; k++)
        values[k] = sinf(0.7f * (float)(k + 31 * i)) + (i == VAR ? 1.5f : 0);
    if (et_tensor_new(cx, dev, ET_F32, shapes[i].ndim, shapes[i].shape,
                      shapes[i].ndim == 4 ? ET_CHANNELS_LAST : ET_ROW_MAJOR, NULL,
                      &t) != ET_OK ||
        et_tensor_write(cx, t, values, et_desc_bytes(&t->desc)) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    return t;
}

/* ---- formulas: up to MOST values that are asked for ---- */

static struct et_tensor *
conv(struct et_graph *g, struct et_tensor **in, int filters)
{
    const struct et_conv2d_attr o = {.pad = {filters == FILTERS, filters == FILTERS}};
    return et_conv2d(g, in[X], in[filters], NULL, &o);
}

static struct et_tensor *
norm(struct et_graph *g, struct et_tensor **in, struct et_tensor *x)
{
    return et_batch_norm_eval(g, x, in[GAMMA], in[BETA], in[MEAN], in[VAR], 1e-5);
}

static int
normed(struct et_graph *g, struct et_tensor **in, struct et_tensor **out)
{
    out[0] = norm(g, in, conv(g, in, FILTERS));
    return 1;
}

static int
rectified(struct et_graph *g, struct et_tensor **in, struct et_tensor **out)
{
    out[0] = et_relu(g, norm(g, in, conv(g, in, FILTERS)));
    return 1;
}

static int
added(struct et_graph *g, struct et_tensor **in, struct et_tensor **out)
{
    out[0] = et_relu(g, et_add(g, in[R], norm(g, in, conv(g, in, FILTERS))));
    return 1;
}

/* Both sides of the sum are convolutions, the residual the later one. */
static int
with_shortcut(struct et_graph *g, struct et_tensor **in, struct et_tensor **out)
{
    struct et_tensor *y = norm(g, in, conv(g, in, FILTERS));
    out[0] = et_relu(g, et_add(g, y, norm(g, in, conv(g, in, POINTS))));
    return 1;
}

/* The sum is asked for as well as its ReLU: it is stored, by the add. */
static int
sum_wanted(struct et_graph *g, struct et_tensor **in, struct et_tensor **out)
{
    out[0] = et_add(g, norm(g, in, conv(g, in, FILTERS)), in[R]);
    out[1] = et_relu(g, out[0]);
    return 2;
}

static int
conv_wanted(struct et_graph *g, struct et_tensor **in, struct et_tensor **out)
{
    out[0] = conv(g, in, FILTERS);
    out[1] = et_relu(g, norm(g, in, out[0]));
    return 2;
}

static int
norm_wanted(struct et_graph *g, struct et_tensor **in, struct et_tensor **out)
{
    out[0] = norm(g, in, conv(g, in, FILTERS));
    out[1] = et_relu(g, et_add(g, out[0], in[R]));
    return 2;
}

/* Numbers for columns are not numbers for channels. */
static int
by_columns(struct et_graph *g, struct et_tensor **in, struct et_tensor **out)
{
    struct et_tensor *y = et_mul(g, conv(g, in, FILTERS), in[COLUMNS]);
    out[0] = et_relu(g, et_add(g, y, in[COLUMNS]));
    return 1;
}

static int
with_bias(struct et_graph *g, struct et_tensor **in, struct et_tensor **out)
{
    const struct et_conv2d_attr o = {.pad = {1, 1}};
    out[0] = et_relu(g, norm(g, in, et_conv2d(g, in[X], in[FILTERS], in[BETA], &o)));
    return 1;
}

/* The scales are a part of a longer vector, the second half of it. */
static int
by_a_part(struct et_graph *g, struct et_tensor **in, struct et_tensor **out)
{
    const int64_t three[] = {K, 1, 1};
    struct et_tensor *scale = et_slice(g, in[LONG], 0, K, K, 1);
    struct et_tensor *y =
        et_mul(g, conv(g, in, FILTERS), et_reshape(g, scale, 3, three));
    out[0] = et_relu(g, et_add(g, y, et_reshape(g, in[BETA], 3, three)));
    return 1;
}

/* Every other number of it. */
static int
by_every_other(struct et_graph *g, struct et_tensor **in, struct et_tensor **out)
{
    const int64_t three[] = {K, 1, 1};
    struct et_tensor *shift = et_slice(g, in[LONG], 0, 0, K, 2);
    struct et_tensor *y =
        et_mul(g, conv(g, in, FILTERS), et_reshape(g, in[GAMMA], 3, three));
    out[0] = et_relu(g, et_add(g, y, et_reshape(g, shift, 3, three)));
    return 1;
}

/* One number of a vector with as many as there are channels, for all of them. */
static int
by_one_of_them(struct et_graph *g, struct et_tensor **in, struct et_tensor **out)
{
    const int64_t one[] = {1, 1, 1}, three[] = {K, 1, 1};
    struct et_tensor *scale = et_reshape(g, et_slice(g, in[GAMMA], 0, 0, 1, 1), 3, one);
    struct et_tensor *y =
        et_mul(g, conv(g, in, FILTERS), et_expand(g, scale, 3, three));
    out[0] = et_relu(g, et_add(g, y, et_reshape(g, in[BETA], 3, three)));
    return 1;
}

/* What is added is the same for all images and pixels, or for all rows. */
static int
added_to_channels(struct et_graph *g, struct et_tensor **in, struct et_tensor **out)
{
    struct et_tensor *y = norm(g, in, conv(g, in, FILTERS));
    const int64_t three[] = {K, 1, 1};
    out[0] = et_relu(g, et_add(g, y, et_reshape(g, in[MEAN], 3, three)));
    return 1;
}

static int
added_to_columns(struct et_graph *g, struct et_tensor **in, struct et_tensor **out)
{
    struct et_tensor *y = norm(g, in, conv(g, in, FILTERS));
    out[0] = et_relu(g, et_add(g, in[COLUMNS], y));
    return 1;
}

/* The sum is of a convolution with itself. */
static int
added_to_itself(struct et_graph *g, struct et_tensor **in, struct et_tensor **out)
{
    struct et_tensor *y = norm(g, in, conv(g, in, FILTERS));
    out[0] = et_relu(g, et_add(g, y, y));
    return 1;
}

/* ---- how it is computed ---- */

struct outcome {
    float v[MOST][COUNT];
    int n, kernels;
};

typedef int formula(struct et_graph *, struct et_tensor **, struct et_tensor **);

static void
evaluate(formula *build, bool fuses, struct outcome *out)
{
    struct et_tensor *in[LEAVES], *want[MOST];
    struct et_graph *g;
    struct et_graph_stats stats;
    const struct et_device_table *real = dev->table;
    struct et_device_table table = *real;
    table.fuses_convolutions = fuses;
    dev->table = &table;
    for (int i = 0; i < LEAVES; i++)
        in[i] = leaf(i);
    if (et_graph_new(cx, dev, &g) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    out->n = build(g, in, want);
    if (et_eval(g, want, out->n) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    for (int i = 0; i < out->n; i++)
        if (et_tensor_read(cx, want[i], out->v[i], sizeof out->v[i]) != ET_OK)
            bail("%s", et_error_get(cx)->message);
    et_graph_get_stats(g, &stats);
    out->kernels = (int)stats.kernels_run;
    et_graph_free(&g);
    for (int i = 0; i < LEAVES; i++)
        et_tensor_free(&in[i]);
    dev->table = real;
}

/* A kernel for both may add terms up in another order: of 27, and what follows. */
#define NEAR 1e-5

static const struct {
    const char *what;
    formula *build;
    int fewer; /* kernels: what follows is one for all convolutions of a sum */
} cases[] = {
    {"batch norm", normed, 1},
    {"batch norm and ReLU", rectified, 1},
    {"batch norm, a sum and ReLU", added, 1},
    {"two of them, and the ReLU of their sum", with_shortcut, 1},
    {"a sum that is asked for", sum_wanted, 0},
    {"a convolution that is asked for", conv_wanted, 0},
    {"a batch norm that is asked for", norm_wanted, 0},
    {"numbers for columns", by_columns, 0},
    {"a convolution with a bias", with_bias, 0},
    {"scales that are a part of a vector", by_a_part, 0},
    {"shifts that are not neighbours", by_every_other, 0},
    {"a scale that all channels share", by_one_of_them, 0},
    {"a sum with a number for each channel", added_to_channels, 0},
    {"a sum with a number for each column", added_to_columns, 0},
    {"a sum with itself", added_to_itself, 0},
};

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    if (et_device_open(cx, "cpu", 0, 1, &dev) != ET_OK)
        skip_all(et_error_get(cx)->message);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static struct outcome apart, fused;
        double worst = 0;
        evaluate(cases[i].build, false, &apart);
        evaluate(cases[i].build, true, &fused);
        for (int k = 0; k < apart.n; k++)
            for (int j = 0; j < COUNT; j++)
                worst = fmax(worst, fabs(apart.v[k][j] - fused.v[k][j]));
        ok(worst < NEAR, "%s: the numbers are those of kernels apart (worst %.1e)",
           cases[i].what, worst);
        is_int(apart.kernels - fused.kernels, cases[i].fewer, "%s: kernels fewer",
               cases[i].what);
    }
    et_device_close(&dev);
    et_ctx_free(&cx);
    return done();
}
