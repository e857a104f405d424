/* SPDX-License-Identifier: Apache-2.0 */
/* custom_op.c: an operation of your own.
 *
 * Mish, x tanh(log(1 + e^x)) (Misra 2019), in one pass over memory, and its gradient
 *
 *     dx = dy (t + x s (1 - t^2))    t = tanh(log(1 + e^x)), s = 1 / (1 + e^-x)
 *
 * in another. A small network with it learns a curve; the same network with Mish made
 * of the engine's operations learns the same numbers, or the program fails.
 *
 *     cc custom_op.c $(pkg-config --cflags --libs etude) -lm -o custom_op
 *
 * A class for a GPU has a gpu function besides, which launches kernels of its own on
 * run->stream. */
#include <etude/etude.h>

#include <math.h>
#include <stdio.h>

/* ---- the operation ---- */

/* A run may be cut into parts of so many elements, for threads. */
enum { ITEM = 1024 };

static int64_t
items(const struct et_call *call)
{
    return (et_desc_count(&call->in[0]) + ITEM - 1) / ITEM;
}

/* The elements of this part: BEGIN to END - 1. */
static void
elements_of(const struct et_custom_run *run, int64_t *begin, int64_t *end)
{
    int64_t n = et_desc_count(&run->in[0]);
    *begin = run->begin * ITEM;
    *end = run->end * ITEM < n ? run->end * ITEM : n;
}

static et_status
mish_host(const struct et_custom_run *run)
{
    const float *x = run->x[0];
    float *y = run->y[0];
    int64_t i, end;
    elements_of(run, &i, &end);
    for (; i < end; i++)
        y[i] = x[i] * tanhf(log1pf(expf(x[i])));
    return ET_OK;
}

/* Operands: dy, x. */
static et_status
mish_gradient_host(const struct et_custom_run *run)
{
    const float *dy = run->x[0], *x = run->x[1];
    float *dx = run->y[0];
    int64_t i, end;
    elements_of(run, &i, &end);
    for (; i < end; i++) {
        float t = tanhf(log1pf(expf(x[i]))), s = 1 / (1 + expf(-x[i]));
        dx[i] = dy[i] * (t + x[i] * s * (1 - t * t));
    }
    return ET_OK;
}

/* What these functions compute: f32 as operand 0 is. Without infer, et_custom would
 * take any dtype. */
static et_status
f32_infer(struct et_ctx *cx, const struct et_call *call, struct et_desc *out)
{
    if (call->in[0].dtype != ET_F32)
        return ET_FAIL(cx, ET_EDTYPE, "takes f32, not %s",
                       et_dtype_name(call->in[0].dtype));
    out[0] = call->in[0];
    return ET_OK;
}

static const struct et_custom_class mish_gradient_class = {
    .size = sizeof(struct et_custom_class),
    .name = "mish_gradient",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .layout = ET_CUSTOM_ELEMENTS,
    .infer = f32_infer,
    .items = items,
    .host = mish_gradient_host,
};

static et_status
mish_gradient(struct et_graph *g, const struct et_node *node,
              struct et_tensor *const *dy, const bool *want, struct et_tensor **dx)
{
    struct et_tensor *in[] = {dy[0], node->in[0]};
    if (want[0])
        dx[0] = et_custom(g, &mish_gradient_class, in, 2, NULL, NULL);
    return et_graph_status(g);
}

static const struct et_custom_class mish_class = {
    .size = sizeof(struct et_custom_class),
    .name = "mish",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .layout = ET_CUSTOM_ELEMENTS,
    .infer = f32_infer,
    .gradient = mish_gradient,
    .items = items,
    .host = mish_host,
};

/* ---- a network with it ---- */

enum { SAMPLES = 64, WIDTH = 32, STEPS = 200, PARAMS = 4 };
#define RATE 0.05

/* Which Mish: the operation above, or one made of the engine's. */
static struct et_tensor *
mish(struct et_graph *g, struct et_tensor *x, bool own)
{
    return own ? et_custom(g, &mish_class, &x, 1, NULL, NULL)
               : et_mul(g, x, et_tanh(g, et_softplus(g, x)));
}

struct net {
    struct et_ctx *cx;
    struct et_device *dev;
    struct et_graph *g;
    struct et_tensor *x, *y;         /* the curve's points */
    struct et_tensor *param[PARAMS]; /* weight and bias, twice */
};

static et_status
make_leaf(struct net *net, int64_t rows, int64_t columns, const float *values,
          struct et_tensor **out)
{
    const int64_t shape[] = {rows, columns};
    ET_TRY(et_tensor_new(net->cx, net->dev, ET_F32, 2, shape, ET_ROW_MAJOR, NULL, out));
    return et_tensor_write(net->cx, *out, values,
                           (size_t)(rows * columns) * sizeof *values);
}

/* y = sin 3x on [-1, 1), and small random weights: the same for every network. */
static et_status
make_net(struct net *net)
{
    float x[SAMPLES], y[SAMPLES], w[PARAMS][WIDTH];
    struct et_rng rng = et_rng_at(17, ET_RNG_USER, 0);
    for (int i = 0; i < SAMPLES; i++) {
        x[i] = 2.0f * (float)i / SAMPLES - 1;
        y[i] = sinf(3 * x[i]);
    }
    for (int i = 0; i < PARAMS; i++)
        for (int k = 0; k < WIDTH; k++)
            w[i][k] = (float)et_rng_normal(&rng) * (i == 2 ? 0.2f : 1.0f);
    ET_TRY(et_graph_new(net->cx, net->dev, &net->g));
    ET_TRY(make_leaf(net, SAMPLES, 1, x, &net->x));
    ET_TRY(make_leaf(net, SAMPLES, 1, y, &net->y));
    ET_TRY(make_leaf(net, WIDTH, 1, w[0], &net->param[0]));
    ET_TRY(make_leaf(net, 1, WIDTH, w[1], &net->param[1]));
    ET_TRY(make_leaf(net, 1, WIDTH, w[2], &net->param[2]));
    return make_leaf(net, 1, 1, w[3], &net->param[3]);
}

static void
free_net(struct net *net)
{
    et_graph_free(&net->g);
    for (int i = 0; i < PARAMS; i++)
        et_tensor_free(&net->param[i]);
    et_tensor_free(&net->x);
    et_tensor_free(&net->y);
}

/* One step of gradient descent; LOSS is what it was before. */
static et_status
step(struct net *net, bool own, double *loss)
{
    struct et_graph *g = net->g;
    struct et_tensor *const *p = net->param, *grad[PARAMS];
    et_graph_reset(g);
    struct et_tensor *hidden = et_add(g, et_linear(g, net->x, p[0], NULL), p[1]);
    struct et_tensor *out = et_linear(g, mish(g, hidden, own), p[2], NULL);
    struct et_tensor *off = et_sub(g, et_add(g, out, p[3]), net->y);
    struct et_tensor *mean = et_mean(g, et_square(g, off), 0, false);
    ET_TRY(et_grad(g, mean, p, PARAMS, grad));
    for (int i = 0; i < PARAMS; i++)
        et_assign(g, p[i], et_sub(g, p[i], et_mul_scalar(g, grad[i], RATE)));
    ET_TRY(et_eval(g, &mean, 1));
    return et_item(g, mean, loss);
}

static et_status
train(struct et_ctx *cx, struct et_device *dev, bool own, double *loss)
{
    struct net net = {.cx = cx, .dev = dev};
    et_status status = make_net(&net);
    for (int i = 0; status == ET_OK && i < STEPS; i++)
        status = step(&net, own, &loss[i]);
    free_net(&net);
    return status;
}

int
main(void)
{
    struct et_ctx *cx;
    struct et_device *dev = NULL;
    double own[STEPS], made[STEPS], apart = 0;
    if (et_ctx_new(&cx) != ET_OK)
        return 1;
    et_status status = et_device_open(cx, "cpu", 0, 0, &dev);
    if (status != ET_OK) { /* built without it */
        et_error_clear(cx);
        status = et_device_open(cx, "ref", 0, 0, &dev);
    }
    if (status == ET_OK)
        status = train(cx, dev, true, own);
    if (status == ET_OK)
        status = train(cx, dev, false, made);
    if (status != ET_OK)
        fprintf(stderr, "custom_op: %s\n", et_error_get(cx)->message);
    et_device_close(&dev);
    et_ctx_free(&cx);
    if (status != ET_OK)
        return 1;
    for (int i = 0; i < STEPS; i++)
        apart = fmax(apart, fabs(own[i] - made[i]) / made[i]);
    printf("loss %.4f to %.4f; made of other operations, %.2g off at most\n", own[0],
           own[STEPS - 1], apart);
    /* Both round f32 in another order, 200 times. */
    return own[STEPS - 1] < 0.2 * own[0] && apart < 1e-3 ? 0 : 1;
}
