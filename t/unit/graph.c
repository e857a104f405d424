/* SPDX-License-Identifier: Apache-2.0 */
/* The lazy graph: building, gradients, plans, commits, memory; on the reference
 * device. */
#include "core/base/seams.h"
#include "core/graph/graph_impl.h"
#include "etude/etude.h"
#include "t/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct et_ctx *cx;
static struct et_device *dev;

static struct et_tensor *
leaf(const float *values, int ndim, const int64_t *shape, enum et_format format)
{
    struct et_tensor *t;
    if (et_tensor_new(cx, dev, ET_F32, ndim, shape, format, NULL, &t) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    if (values && et_tensor_write(cx, t, values, et_desc_bytes(&t->desc)) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    return t;
}

static void
read_into(float *out, const struct et_tensor *t)
{
    if (et_tensor_read(cx, t, out, et_desc_bytes(&t->desc)) != ET_OK)
        bail("%s", et_error_get(cx)->message);
}

/* One SGD step with momentum and clipping on y = relu(x w^T + b), as formulas. */
static struct et_tensor *
build_step(struct et_graph *g, struct et_tensor *x, struct et_tensor *w,
           struct et_tensor *b, struct et_tensor *flat, struct et_tensor *momentum)
{
    struct et_tensor *y = et_relu(g, et_linear(g, x, w, b));
    struct et_tensor *loss =
        et_mean(g, et_square(g, et_add_scalar(g, y, -1)), 0, false);
    struct et_tensor *params[2] = {w, b}, *grads[2];
    if (et_grad(g, loss, params, 2, grads) != ET_OK)
        bail("%s", et_error_get(et_graph_ctx(g))->message);
    struct et_tensor *grad =
        et_pack(g, grads, (const int64_t[]){0, 64}, 2, 128, ET_F32);
    struct et_tensor *norm = et_sqrt(g, et_sum_squares(g, grad));
    struct et_tensor *coef =
        et_minimum(g, et_reciprocal(g, et_add_scalar(g, norm, 1e-6)),
                   et_fill(g, ET_F32, 0, NULL, 1));
    grad = et_mul(g, grad, coef);
    struct et_tensor *m = et_add(g, et_mul_scalar(g, momentum, 0.9), grad);
    et_assign(g, momentum, m);
    et_assign(g, flat, et_sub(g, flat, et_mul_scalar(g, m, 0.1)));
    return loss;
}

static void
test_training(void)
{
    enum { N = 4, I = 3, O = 2 };
    float xs[N * I], start[128] = {0};
    for (int i = 0; i < N * I; i++)
        xs[i] = sinf((float)i + 1);
    for (int i = 0; i < O * I; i++)
        start[i] = 0.3f * cosf((float)i);
    struct et_tensor *x = leaf(xs, 2, (const int64_t[]){N, I}, ET_ROW_MAJOR);
    struct et_tensor *flat = leaf(start, 1, (const int64_t[]){128}, ET_ROW_MAJOR);
    struct et_tensor *momentum = leaf(NULL, 1, (const int64_t[]){128}, ET_ROW_MAJOR);
    struct et_desc wd, bd;
    et_desc_init(&wd, ET_F32, 2, (const int64_t[]){O, I}, ET_ROW_MAJOR);
    et_desc_init(&bd, ET_F32, 1, (const int64_t[]){O}, ET_ROW_MAJOR);
    struct et_tensor *w, *b;
    ok(et_tensor_view(cx, flat->storage, 0, &wd, "w", &w) == ET_OK &&
           et_tensor_view(cx, flat->storage, 64, &bd, "b", &b) == ET_OK,
       "parameters are views of one flat buffer");

    struct et_graph *g;
    ok(et_graph_new(cx, dev, &g) == ET_OK && et_graph_device(g) == dev,
       "a graph is made for a device");
    double loss[30];
    struct et_graph_stats stats, warm = {0};
    for (int step = 0; step < 30; step++) {
        struct et_tensor *l = build_step(g, x, w, b, flat, momentum);
        if (et_eval(g, &l, 1) != ET_OK || et_item(g, l, &loss[step]) != ET_OK)
            bail("step %d: %s", step, et_error_get(cx)->message);
        et_graph_reset(g);
        if (step == 2)
            et_graph_get_stats(g, &warm);
    }
    et_graph_get_stats(g, &stats);
    ok(loss[29] < 0.75 * loss[0], "thirty steps lower the loss by a quarter (%g to %g)",
       loss[0], loss[29]);
    is_int((int64_t)stats.plans_built, 1, "thirty equal steps share one plan");
    is_int((int64_t)stats.allocs, (int64_t)warm.allocs,
           "evaluation allocates nothing once it is warm");

    /* The same by hand, in double. */
    double p[128], m[128] = {0};
    for (int i = 0; i < 128; i++)
        p[i] = start[i];
    for (int step = 0; step < 30; step++) {
        double gr[128] = {0}, l = 0, norm = 0;
        for (int n = 0; n < N; n++)
            for (int o = 0; o < O; o++) {
                double y = p[64 + o];
                for (int i = 0; i < I; i++)
                    y += p[o * I + i] * xs[n * I + i];
                double r = fmax(y, 0);
                l += (r - 1) * (r - 1) / (N * O);
                double d = y > 0 ? 2 * (r - 1) / (N * O) : 0;
                gr[64 + o] += d;
                for (int i = 0; i < I; i++)
                    gr[o * I + i] += d * xs[n * I + i];
            }
        if (step == 0 || step == 29)
            is_near(loss[step], l, 1e-5, "the loss of step %d is that of the formulas",
                    step);
        for (int i = 0; i < 128; i++)
            norm += gr[i] * gr[i];
        double coef = fmin(1, 1 / (sqrt(norm) + 1e-6));
        for (int i = 0; i < 128; i++) {
            m[i] = 0.9 * m[i] + coef * gr[i];
            p[i] -= 0.1 * m[i];
        }
    }
    float got[128], want[128];
    read_into(got, flat);
    for (int i = 0; i < 128; i++)
        want[i] = (float)p[i];
    /* f32 rounding of 30 steps */
    is_near_array(got, want, 128, 1e-5, "parameters end where the formulas say");
    et_graph_free(&g);
    et_tensor_free(&x);
    et_tensor_free(&w);
    et_tensor_free(&b);
    et_tensor_free(&flat);
    et_tensor_free(&momentum);
}

static void
test_commit(void)
{
    struct et_graph *g;
    if (et_graph_new(cx, dev, &g) != ET_OK)
        bail("no graph");
    float one[3] = {1, 2, 3}, two[3] = {10, 20, 30}, got[3];
    const int64_t shape[] = {3};
    struct et_tensor *a = leaf(one, 1, shape, ET_ROW_MAJOR),
                     *b = leaf(two, 1, shape, ET_ROW_MAJOR);
    et_assign(g, a, b);
    et_assign(g, b, a);
    ok(et_eval(g, NULL, 0) == ET_OK, "two leaves are assigned to each other");
    read_into(got, a);
    is_near_array(got, two, 3, 0, "the first has the second's old value");
    read_into(got, b);
    is_near_array(got, one, 3, 0, "the second has the first's old value");

    /* a <- 2a while another value still reads the old a */
    et_graph_reset(g);
    struct et_tensor *doubled = et_mul_scalar(g, a, 2),
                     *sum = et_sum(g, et_add(g, a, b), 0, false);
    et_assign(g, a, doubled);
    double s = 0;
    ok(et_item(g, sum, &s) == ET_OK, "a leaf is changed while it is read");
    is_near(s, 66, 0, "the reader sees the old value");
    read_into(got, a);
    is_near_array(got, (const float[]){20, 40, 60}, 3, 0, "the leaf has the new one");

    et_graph_reset(g);
    struct et_tensor *x = et_add_scalar(g, a, 1);
    et_assign(g, a, x);
    ok(et_eval(g, NULL, 0) == ET_OK, "a commit runs");
    ok(et_eval(g, &x, 1) == ET_EINVAL,
       "a value built before a commit cannot be asked for after");
    et_error_clear(cx);

    et_graph_reset(g);
    et_assign(g, a, b);
    et_assign(g, a, b);
    ok(et_graph_status(g) == ET_EINVAL, "assigning a leaf twice is an error");
    et_error_clear(cx);
    et_graph_free(&g);
    et_tensor_free(&a);
    et_tensor_free(&b);
}

static void
test_errors(void)
{
    struct et_graph *g;
    if (et_graph_new(cx, dev, &g) != ET_OK)
        bail("no graph");
    struct et_tensor *a = leaf(NULL, 2, (const int64_t[]){2, 3}, ET_ROW_MAJOR);
    struct et_tensor *bad = et_matmul(g, a, a, false, false);
    ok(!bad && et_graph_status(g) == ET_ESHAPE,
       "a wrong shape fails where it is written");
    ok(!et_relu(g, bad) && !et_relu(g, a),
       "operations after the first error do nothing");
    ok(et_eval(g, &a, 1) == ET_ESHAPE, "evaluation returns the first error");
    ok(strstr(et_error_get(cx)->message, "3") != NULL,
       "and the sentence has numbers: %s", et_error_get(cx)->message);
    et_error_clear(cx);
    et_graph_reset(g);
    struct et_tensor *old = et_relu(g, a);
    et_graph_reset(g);
    ok(!et_relu(g, old) && et_graph_status(g) == ET_EINVAL,
       "a value of an ended step is refused");
    et_error_clear(cx);
    et_graph_free(&g);
    et_tensor_free(&a);
}

/* relu(batch_norm(x) + r) with its gradients: fused in the plan, separate when
 * eager. */
static void
norm_chain(struct et_graph *g, struct et_tensor **in, struct et_tensor **out)
{
    struct et_tensor *mean, *var;
    struct et_tensor *bn = et_batch_norm(g, in[0], in[1], in[2], 1e-5, &mean, &var);
    struct et_tensor *y = et_relu(g, et_add(g, bn, in[3]));
    struct et_tensor *z = et_mul(g, y, et_sigmoid(g, y));
    out[0] = et_sum(g, z, 0, false);
    if (et_grad(g, out[0], in, 4, out + 1) != ET_OK)
        bail("%s", et_error_get(et_graph_ctx(g))->message);
}

static void
test_eager_agrees(void)
{
    const int64_t shape[] = {3, 5, 4, 4}, c[] = {5};
    float values[240];
    for (int i = 0; i < 240; i++)
        values[i] = sinf(0.7f * (float)i) + 0.1f * cosf((float)(i * i));
    struct et_tensor *in[4] = {
        leaf(values, 4, shape, ET_CHANNELS_LAST),
        leaf(values, 1, c, ET_ROW_MAJOR),
        leaf(values + 7, 1, c, ET_ROW_MAJOR),
        leaf(values, 4, shape, ET_CHANNELS_LAST),
    };
    float got[2][5][240];
    uint64_t kernels[2];
    for (int eager = 0; eager < 2; eager++) {
        struct et_graph *g;
        setenv("ETUDE_EAGER", eager ? "1" : "0", 1);
        if (et_graph_new(cx, dev, &g) != ET_OK)
            bail("no graph");
        struct et_tensor *out[5];
        norm_chain(g, in, out);
        if (et_eval(g, out, 5) != ET_OK)
            bail("%s", et_error_get(cx)->message);
        for (int i = 0; i < 5; i++)
            read_into(got[eager][i], out[i]);
        struct et_graph_stats stats;
        et_graph_get_stats(g, &stats);
        kernels[eager] = stats.kernels_run;
        et_graph_free(&g);
    }
    unsetenv("ETUDE_EAGER");
    static const int count[5] = {1, 240, 5, 5, 240};
    static const char *const names[5] = {"sum", "dx", "dgamma", "dbeta", "dresidual"};
    for (int i = 0; i < 5; i++)
        is_near_array(got[0][i], got[1][i], count[i], 0,
                      "%s is the same planned and eager", names[i]);
    ok(kernels[0] < kernels[1], "the plan runs fewer kernels (%d) than eager (%d)",
       (int)kernels[0], (int)kernels[1]);
    for (int i = 0; i < 4; i++)
        et_tensor_free(&in[i]);
}

/* Parts computed in their places, and zeros between them whatever the memory held. */
static void
test_pack(void)
{
    enum { FIRST = 37, SECOND = 64, AT = 128, TOTAL = 256 };
    static const int64_t apart[] = {0, AT}, close[] = {0, FIRST};
    float values[SECOND], got[TOTAL];
    struct et_graph *g;
    struct et_plan_info info;
    for (int i = 0; i < SECOND; i++)
        values[i] = (float)(i + 1);
    struct et_tensor *x[2] = {leaf(values, 1, (const int64_t[]){FIRST}, ET_ROW_MAJOR),
                              leaf(values, 1, (const int64_t[]){SECOND}, ET_ROW_MAJOR)};
    if (et_graph_new(cx, dev, &g) != ET_OK)
        bail("no graph");
    for (int round = 0; round < 2; round++) {
        struct et_tensor *part[] = {et_neg(g, x[0]), et_neg(g, x[1])};
        struct et_tensor *ones =
            et_sum(g, et_fill(g, ET_F32, 1, (const int64_t[]){4 * TOTAL}, 1), 1, true);
        if (et_eval(g, &ones, 1) != ET_OK) /* where the parts will lie */
            bail("%s", et_error_get(cx)->message);
        struct et_tensor *flat = et_neg(g, et_pack(g, part, apart, 2, TOTAL, ET_F32));
        if (et_eval(g, &flat, 1) != ET_OK)
            bail("%s", et_error_get(cx)->message);
        read_into(got, flat);
        int wrong = 0;
        for (int i = 0; i < TOTAL; i++)
            wrong += got[i] != (i < FIRST                    ? values[i]
                                : i >= AT && i < AT + SECOND ? values[i - AT]
                                                             : 0);
        is_int(wrong, 0, "parts of a pack are in their places, with zeros between");
        et_graph_last_plan(g, &info);
        is_int(info.kernels, 4, "which takes one kernel beside what computes them");
        et_graph_reset(g);
    }
    struct et_tensor *part[] = {et_neg(g, x[0]), et_neg(g, x[1])};
    struct et_tensor *flat = et_pack(g, part, close, 2, FIRST + SECOND, ET_F32);
    if (et_plan(g, &flat, 1, &info) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    is_int(info.kernels, 2, "and none where there are no gaps");
    et_graph_free(&g);
    et_tensor_free(&x[0]);
    et_tensor_free(&x[1]);
}

enum { SAMPLES = 2, POSITIONS = 3, HEADS = 2, HEAD = 4, WIDTH = 3 * HEADS * HEAD };

/* Heads I of packed rows: 0 queries, 1 keys, 2 values. */
static struct et_tensor *
heads(struct et_graph *g, struct et_tensor *rows, int i)
{
    struct et_tensor *x = et_slice(g, rows, 2, i * HEADS * HEAD, HEADS * HEAD, 1);
    x = et_reshape(g, x, 4, (const int64_t[]){SAMPLES, POSITIONS, HEADS, HEAD});
    return et_permute(g, x, (const int[]){0, 2, 1, 3});
}

/* Attention's gradients lie in the rows they were sliced from, with no copy. */
static void
test_heads(void)
{
    enum { COUNT = SAMPLES * POSITIONS * WIDTH };
    const int64_t shape[] = {SAMPLES, POSITIONS, WIDTH};
    float values[COUNT], got[2][COUNT];
    struct et_graph_stats stats;
    for (int i = 0; i < COUNT; i++)
        values[i] = cosf((float)i);
    struct et_tensor *x = leaf(values, 3, shape, ET_ROW_MAJOR);
    for (int eager = 0; eager < 2; eager++) {
        struct et_graph *g;
        struct et_tensor *dx;
        setenv("ETUDE_EAGER", eager ? "1" : "0", 1);
        if (et_graph_new(cx, dev, &g) != ET_OK)
            bail("no graph");
        struct et_tensor *y =
            et_sdpa(g, heads(g, x, 0), heads(g, x, 1), heads(g, x, 2), NULL, true, 0);
        et_status status = et_grad(g, et_sum(g, y, 0, false), &x, 1, &dx);
        dx = et_neg(g, dx);
        if (status != ET_OK || et_eval(g, &dx, 1) != ET_OK)
            bail("%s", et_error_get(cx)->message);
        read_into(got[eager], dx);
        if (!eager)
            et_graph_get_stats(g, &stats);
        et_graph_free(&g);
    }
    unsetenv("ETUDE_EAGER");
    is_near_array(got[0], got[1], COUNT, 0,
                  "attention's gradients are exact inside their rows");
    is_int((int64_t)stats.kernels_run, 3,
           "which need no kernel: there are sdpa, sdpa_grad, and neg; dy is constant");
    et_tensor_free(&x);
}

/* The gradient of slices that tile an axis is written as one concatenation. */
static void
test_slices(void)
{
    const int64_t shape[] = {3, 6};
    float values[18], got[2][18];
    for (int i = 0; i < 18; i++)
        values[i] = cosf((float)i);
    struct et_tensor *x = leaf(values, 2, shape, ET_ROW_MAJOR);
    uint64_t kernels[2];
    for (int eager = 0; eager < 2; eager++) {
        struct et_graph *g;
        setenv("ETUDE_EAGER", eager ? "1" : "0", 1);
        if (et_graph_new(cx, dev, &g) != ET_OK)
            bail("no graph");
        struct et_tensor *a = et_slice(g, x, 1, 0, 2, 1),
                         *b = et_slice(g, x, 1, 2, 3, 1);
        struct et_tensor *c = et_slice(g, x, 1, 5, 1, 1), *dx;
        struct et_tensor *y = et_add(
            g, et_sum(g, et_square(g, a), 0, false),
            et_add(g, et_sum(g, et_exp(g, b), 0, false), et_sum(g, c, 0, false)));
        if (et_grad(g, y, &x, 1, &dx) != ET_OK || et_eval(g, &dx, 1) != ET_OK)
            bail("%s", et_error_get(cx)->message);
        read_into(got[eager], dx);
        struct et_graph_stats stats;
        et_graph_get_stats(g, &stats);
        kernels[eager] = stats.kernels_run;
        et_graph_free(&g);
    }
    unsetenv("ETUDE_EAGER");
    is_near_array(got[0], got[1], 18, 0,
                  "slices that tile an axis have an exact gradient");
    for (int i = 0; i < 18; i++) {
        double want = i % 6 < 2 ? 2 * values[i] : i % 6 < 5 ? exp(values[i]) : 1;
        got[1][i] = (float)want;
    }
    is_near_array(got[0], got[1], 18, 1e-6, "which is that of the formulas");
    ok(kernels[0] + 4 <= kernels[1],
       "and no padded parts are summed (%d kernels, eager %d)", (int)kernels[0],
       (int)kernels[1]);
    et_tensor_free(&x);
}

/* Slices that leave a part of the axis out, at its begin, within it or at its end: the
 * gradient is 0 there. It is a sum and no concatenation, which would leave the end with
 * whatever the memory held. */
static void
test_slices_with_gaps(void)
{
    static const int64_t begin[] = {0, 2, 5}, length[] = {2, 3, 1};
    const int64_t shape[] = {3, 6};
    float values[18];
    struct et_graph_stats stats[3];
    for (int i = 0; i < 18; i++)
        values[i] = 1 + (float)i;
    struct et_tensor *x = leaf(values, 2, shape, ET_ROW_MAJOR);
    for (int out = 0; out < 3; out++) {
        struct et_graph *g;
        struct et_tensor *sum = NULL, *dx;
        float got[18];
        int wrong = 0;
        if (et_graph_new(cx, dev, &g) != ET_OK)
            bail("no graph");
        for (int k = 0; k < 3; k++) {
            struct et_tensor *part = et_slice(g, x, 1, begin[k], length[k], 1);
            if (k == out)
                continue;
            part = et_sum(g, et_square(g, part), 0, false);
            sum = sum ? et_add(g, sum, part) : part;
        }
        if (et_grad(g, sum, &x, 1, &dx) != ET_OK || et_eval(g, &dx, 1) != ET_OK)
            bail("%s", et_error_get(cx)->message);
        read_into(got, dx);
        for (int i = 0; i < 18; i++) {
            bool is_out = i % 6 >= begin[out] && i % 6 < begin[out] + length[out];
            wrong += got[i] != (is_out ? 0 : 2 * values[i]);
        }
        is_int(wrong, 0, "slices without part %d have a gradient of 0 there", out);
        et_graph_get_stats(g, &stats[out]);
        et_graph_free(&g);
    }
    is_int((int64_t)stats[2].kernels_run, (int64_t)stats[0].kernels_run,
           "in as many kernels where the end is left out as where the begin is");
    et_tensor_free(&x);
}

static void
test_memory(void)
{
    struct et_graph *g;
    if (et_graph_new(cx, dev, &g) != ET_OK)
        bail("no graph");
    struct et_tensor *x = leaf(NULL, 2, (const int64_t[]){64, 64}, ET_ROW_MAJOR),
                     *y = x;
    for (int i = 0; i < 10; i++)
        y = et_matmul(g, y, x, false, false);
    struct et_plan_info info;
    ok(et_plan(g, &y, 1, &info) == ET_OK, "a plan is made without running it");
    is_int((int64_t)info.slab_bytes, 2 * 64 * 64 * 4,
           "a chain needs the memory of two links");
    is_int(info.flops, 10 * 2 * 64 * 64 * 64, "flops are counted");
    struct et_tensor *small = leaf(NULL, 0, NULL, ET_ROW_MAJOR);
    struct et_device_memory before, after;
    et_device_get_memory(dev, &before);
    et_device_set_limit(dev, before.current_bytes + 1000);
    et_graph_reset(g);
    et_assign(g, small, et_add_scalar(g, small, 5));
    y = et_concat(g, (struct et_tensor *[]){x, x, x, x}, 4, 0);
    y = et_sum(g, et_exp(g, et_concat(g, (struct et_tensor *[]){y, y, y, y}, 4, 0)), 0,
               false);
    ok(et_eval(g, &y, 1) == ET_ENOMEM,
       "a plan that does not fit says so before it runs");
    et_device_get_memory(dev, &after);
    ok(after.current_bytes <= before.current_bytes, "and keeps no memory");
    et_error_clear(cx);
    double v = 0;
    ok(et_graph_status(g) == ET_OK &&
           et_item(g, et_add_scalar(g, small, 2), &v) == ET_OK && v == 2,
       "a plan that fits is then run on the same graph");
    ok(et_eval(g, NULL, 0) == ET_OK && et_item(g, small, &v) == ET_OK && v == 0,
       "and what was to be assigned with the failed one is forgotten");
    et_device_set_limit(dev, 0);
    ok(et_item(g, y, &v) == ET_OK, "with memory the same expression is evaluated");
    is_near(v, 16 * 64 * 64, 1e-6, "to the right value");
    et_graph_free(&g);
    et_tensor_free(&small);
    et_tensor_free(&x);
}

static struct et_tensor *
four_times(struct et_graph *g, struct et_tensor *x)
{
    return et_concat(g, (struct et_tensor *[]){x, x, x, x}, 4, 0);
}

static struct et_tensor *
cubed(struct et_graph *g, struct et_tensor *y, struct et_tensor *x)
{
    for (int i = 0; i < 3; i++)
        y = et_matmul(g, y, x, false, false);
    return y;
}

/* How many plans graph G makes for a small product, a large one, and the small one
 * again, where MORE bytes are left than the large plan needs besides what the small
 * one's holds. */
static int
plans_built(struct et_tensor *x, int more)
{
    struct et_plan_info small, large;
    struct et_device_memory memory;
    struct et_graph_stats stats;
    struct et_graph *g;
    struct et_tensor *y;
    if (et_graph_new(cx, dev, &g) != ET_OK)
        bail("no graph");
    y = cubed(g, four_times(g, x), x);
    if (et_plan(g, &y, 1, &large) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    et_graph_free(&g);
    if (et_graph_new(cx, dev, &g) != ET_OK)
        bail("no graph");
    y = cubed(g, x, x);
    if (et_eval(g, &y, 1) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    et_graph_last_plan(g, &small);
    et_device_get_memory(dev, &memory);
    et_device_set_limit(dev, memory.current_bytes + large.slab_bytes +
                                 large.workspace_bytes + large.output_bytes +
                                 (size_t)more - small.slab_bytes -
                                 small.workspace_bytes);
    et_graph_reset(g);
    y = cubed(g, four_times(g, x), x);
    bool good = et_eval(g, &y, 1) == ET_OK;
    et_device_set_limit(dev, 0);
    et_graph_reset(g);
    y = cubed(g, x, x);
    good = good && et_eval(g, &y, 1) == ET_OK;
    et_graph_get_stats(g, &stats);
    et_graph_free(&g);
    return good ? (int)stats.plans_built : -1;
}

/* The slab and workspace of a graph go for larger ones, and its other plans stay. */
static void
test_larger_plan(void)
{
    struct et_tensor *x = leaf(NULL, 2, (const int64_t[]){64, 64}, ET_ROW_MAJOR);
    is_int(plans_built(x, 0), 2, "a plan that fits in place of its graph's is made");
    is_int(plans_built(x, -1), 3, "for one that is a byte too large others go");
    et_tensor_free(&x);
}

/* x + VALUE, and how many plans G has built by then. */
static int
add_and_count(struct et_graph *g, struct et_tensor *x, int value)
{
    struct et_graph_stats stats;
    struct et_tensor *y = et_add_scalar(g, x, value);
    if (et_eval(g, &y, 1) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    et_graph_reset(g);
    et_graph_get_stats(g, &stats);
    return (int)stats.plans_built;
}

/* A graph that has as many plans as it keeps gives up the one not used for longest. */
static void
test_oldest(void)
{
    struct et_tensor *x = leaf(NULL, 1, (const int64_t[]){2}, ET_ROW_MAJOR);
    struct et_graph *g;
    int kept = 0;
    if (et_graph_new(cx, dev, &g) != ET_OK)
        bail("no graph");
    for (int i = 0; i < ETI_PLANS; i++)
        kept = add_and_count(g, x, i);
    is_int(add_and_count(g, x, 0), kept, "%d plans are kept", ETI_PLANS);
    is_int(add_and_count(g, x, 100), kept + 1, "one more takes the place");
    is_int(add_and_count(g, x, 0), kept + 1, "not of one that was used since");
    for (int i = 2; i < ETI_PLANS; i++)
        (void)add_and_count(g, x, i);
    is_int(add_and_count(g, x, 100), kept + 1, "nor of any other");
    is_int(add_and_count(g, x, 1), kept + 2, "but of the one not used for longest");
    et_graph_free(&g);
    et_tensor_free(&x);
}

/* Graphs that differ in nothing but the strides of a view follow each other. */
static void
test_views_apart(void)
{
    const float values[] = {1, 2, 3, 4};
    struct et_tensor *x = leaf(values, 1, (const int64_t[]){4}, ET_ROW_MAJOR);
    struct et_graph *g;
    if (et_graph_new(cx, dev, &g) != ET_OK)
        bail("no graph");
    for (int step = 1; step <= 2; step++) {
        float got[2];
        struct et_tensor *y = et_mul_scalar(g, et_slice(g, x, 0, 0, 2, step), 10);
        if (et_eval(g, &y, 1) != ET_OK)
            bail("%s", et_error_get(cx)->message);
        read_into(got, y);
        ok(got[0] == 10 && got[1] == 10 + 10 * (float)step,
           "two of four numbers, every %s one", step == 1 ? "single" : "second");
        et_graph_reset(g);
    }
    et_graph_free(&g);
    et_tensor_free(&x);
}

/* Or in nothing but what the view is a part of. */
static void
test_roots_apart(void)
{
    const float values[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
    struct et_tensor *x[2], *want[2];
    struct et_graph *g;
    for (int i = 0; i < 2; i++)
        x[i] = leaf(values[i], 1, (const int64_t[]){4}, ET_ROW_MAJOR);
    if (et_graph_new(cx, dev, &g) != ET_OK)
        bail("no graph");
    for (int i = 0; i < 2; i++) {
        float got[2];
        want[0] = et_add(g, x[0], x[1]);
        want[1] = et_mul_scalar(g, et_slice(g, x[i], 0, 0, 2, 1), 10);
        if (et_eval(g, want, 2) != ET_OK)
            bail("%s", et_error_get(cx)->message);
        read_into(got, want[1]);
        ok(got[0] == 10 * values[i][0] && got[1] == 10 * values[i][1],
           "a part of the %s of two arrays", i == 0 ? "first" : "second");
        et_graph_reset(g);
    }
    et_graph_free(&g);
    for (int i = 0; i < 2; i++)
        et_tensor_free(&x[i]);
}

/* A plan that was made and has not run yet is the oldest. */
static void
test_planned(void)
{
    struct et_tensor *x = leaf(NULL, 2, (const int64_t[]){2, 2}, ET_ROW_MAJOR);
    struct et_graph_stats stats;
    struct et_plan_info info;
    struct et_graph *g;
    if (et_graph_new(cx, dev, &g) != ET_OK)
        bail("no graph");
    for (int i = 0; i < 3; i++) {
        struct et_tensor *y = i == 1 ? et_exp(g, x) : et_abs(g, x);
        if (et_plan(g, &y, 1, &info) != ET_OK)
            bail("%s", et_error_get(cx)->message);
    }
    et_graph_get_stats(g, &stats);
    is_int((int64_t)stats.plans_built, 2,
           "a plan that has not run stays while there are places for others");
    et_graph_free(&g);
    et_tensor_free(&x);
}

/* What can be made again makes room: for a leaf, and for a plan of an earlier step
 * whose slab went to another's result. */
static void
test_caches(void)
{
    enum { LEAF_BYTES = 64 * 64 * 4 };
    const int64_t shape[] = {64, 64};
    struct et_device_memory memory;
    struct et_graph *g;
    if (et_graph_new(cx, dev, &g) != ET_OK)
        bail("no graph");
    struct et_tensor *x = leaf(NULL, 2, shape, ET_ROW_MAJOR), *late;
    et_device_get_memory(dev, &memory);
    et_device_set_limit(dev, memory.current_bytes + 6 * LEAF_BYTES);
    for (int step = 0; step < 3; step++) {
        struct et_tensor *wide = four_times(g, x);
        struct et_tensor *sum = et_sum(g, et_exp(g, four_times(g, x)), 0, false);
        double v;
        ok(et_item(g, sum, &v) == ET_OK && v == 4 * 64 * 64 &&
               et_eval(g, &wide, 1) == ET_OK,
           "step %d: two plans fit, one after the other", step);
        et_graph_reset(g);
    }
    et_device_get_memory(dev, &memory);
    et_device_set_limit(dev, memory.current_bytes);
    ok(et_tensor_new(cx, dev, ET_F32, 2, shape, ET_ROW_MAJOR, "late", &late) == ET_OK,
       "a leaf takes the memory of caches");
    et_device_set_limit(dev, 0);
    et_tensor_free(&late);
    et_tensor_free(&x);
    et_graph_free(&g);
}

/* What is asked for twice: rows of the same numbers, views of them, parts of the result
 * that only the second asks for. What is alike and not the same is computed twice. */
static void
test_same(void)
{
    enum { ROWS = 5, COLUMNS = 7 };
    const int64_t shape[] = {ROWS, COLUMNS}, rows[] = {ROWS};
    const int32_t labels[ROWS] = {3, 0, 6, 2, 2};
    float values[ROWS * COLUMNS], got[2], once;
    struct et_tensor *z, *target;
    struct et_plan_info info;
    struct et_graph *g;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = sinf(3 * (float)i);
    z = leaf(values, 2, shape, ET_ROW_MAJOR);
    if (et_tensor_new(cx, dev, ET_I32, 1, rows, ET_ROW_MAJOR, NULL, &target) != ET_OK ||
        et_tensor_write(cx, target, labels, sizeof labels) != ET_OK ||
        et_graph_new(cx, dev, &g) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    struct et_tensor *loss =
        et_cross_entropy(g, et_exp(g, z), target, NULL, -100, ET_REDUCE_SUM);
    if (et_plan(g, &loss, 1, &info) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    int alone = (int)info.kernels;
    /* The same through a view of the same elements, doubled. */
    struct et_tensor *e = et_exp(g, z);
    struct et_tensor *view =
        et_reshape(g, et_reshape(g, e, 1, (const int64_t[]){35}), 2, shape);
    struct et_tensor *first = et_cross_entropy(g, e, target, NULL, -100, ET_REDUCE_SUM);
    struct et_tensor *second =
        et_cross_entropy(g, view, target, NULL, -100, ET_REDUCE_SUM);
    struct et_tensor *both[] = {first, et_mul_scalar(g, second, 2)};
    if (et_eval(g, both, 2) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    et_graph_last_plan(g, &info);
    is_int(info.kernels, alone + 1, "a loss that is asked for twice is computed once");
    read_into(&got[0], both[0]);
    read_into(&got[1], both[1]);
    if (et_eval(g, &loss, 1) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    read_into(&once, loss);
    ok(got[0] == once && got[1] == 2 * once, "both readers have it");
    et_graph_reset(g);
    /* The first is asked for by name; others come and go before it is read. */
    e = et_exp(g, z);
    first = et_cross_entropy(g, e, target, NULL, -100, ET_REDUCE_SUM);
    struct et_tensor *last = et_cross_entropy(g, e, target, NULL, -100, ET_REDUCE_SUM);
    for (int i = 0; i < 6; i++)
        last =
            et_sum(g, et_exp(g, et_mul(g, z, et_mul_scalar(g, last, 1e-3))), 3, false);
    both[0] = first;
    both[1] = last;
    if (et_eval(g, both, 2) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    read_into(&got[0], both[0]);
    ok(got[0] == once, "the one that the caller wants stays until it is read");
    et_graph_reset(g);
    /* Both are asked for by name. */
    e = et_exp(g, z);
    both[0] = et_cross_entropy(g, e, target, NULL, -100, ET_REDUCE_SUM);
    both[1] = et_cross_entropy(g, e, target, NULL, -100, ET_REDUCE_SUM);
    if (et_eval(g, both, 2) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    et_graph_last_plan(g, &info);
    is_int(info.kernels, alone, "also where the caller wants both results");
    read_into(&got[0], both[0]);
    read_into(&got[1], both[1]);
    ok(got[0] == once && got[1] == once, "which are the same number");
    et_graph_reset(g);
    /* Another attribute, other operands. */
    e = et_exp(g, z);
    both[0] = et_cross_entropy(g, e, target, NULL, -100, ET_REDUCE_SUM);
    both[1] = et_cross_entropy(g, e, target, NULL, 2, ET_REDUCE_SUM);
    if (et_eval(g, both, 2) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    et_graph_last_plan(g, &info);
    is_int(info.kernels, 2 * alone - 1, "one that ignores a class is another loss");
    read_into(&got[0], both[0]);
    read_into(&got[1], both[1]);
    ok(got[0] == once && got[1] < once, "and another number");
    et_graph_free(&g);
    et_tensor_free(&z);
    et_tensor_free(&target);
}

static double
tick(void)
{
    static double now;
    return now += 1;
}

/* A clock that goes on by a second whenever it is read: parts that follow each other
 * take one each. */
static void
test_spent(void)
{
    const float values[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct eti_seams seams = eti_system;
    struct et_tensor *w = leaf(values, 2, (const int64_t[]){3, 3}, ET_ROW_MAJOR),
                     *y = w;
    struct et_graph *g;
    if (et_graph_new(cx, dev, &g) != ET_OK)
        bail("no graph");
    seams.monotonic = tick;
    eti_ctx_set_seams(cx, &seams);
    for (int part = ETI_SPENT_FORWARD; part < ETI_SPENTS; part++) {
        eti_graph_set_part(g, (enum eti_spent)part);
        y = et_linear(g, et_linear(g, y, w, NULL), w, NULL);
    }
    eti_graph_set_part(g, ETI_SPENT_NONE);
    y = et_linear(g, y, w, NULL);
    ok(et_eval(g, &y, 1) == ET_OK, "a graph in parts is evaluated");
    is_near(eti_graph_spent(g, ETI_SPENT_FORWARD), 1, 1e-9,
            "a part takes from its first kernel to the next part's");
    is_near(eti_graph_spent(g, ETI_SPENT_BACKWARD), 1, 1e-9, "and so does the next");
    is_near(eti_graph_spent(g, (enum eti_spent)(ETI_SPENTS - 1)), 1, 1e-9,
            "and the last one, to the end");
    is_near(eti_graph_spent(g, ETI_SPENT_NONE), 0, 0, "what is of no part is not told");
    eti_ctx_set_seams(cx, &eti_system);
    et_graph_free(&g);
    et_tensor_free(&w);
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK || et_device_open(cx, "ref", 0, 1, &dev) != ET_OK)
        bail("no reference device");
    test_training();
    test_commit();
    test_errors();
    test_eager_agrees();
    test_slices();
    test_slices_with_gaps();
    test_heads();
    test_pack();
    test_same();
    test_memory();
    test_larger_plan();
    test_planned();
    test_oldest();
    test_views_apart();
    test_roots_apart();
    test_caches();
    test_spent();
    et_device_close(&dev);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
