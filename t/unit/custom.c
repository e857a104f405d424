/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of the user's own: computed, differentiated, told apart in plans, cut into
 * parts, and refused with the class's name. On the reference and on the CPU. */
#include "etude/etude.h"
#include "t/tap.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

static struct et_ctx *cx;
static struct et_device *dev;
static struct et_graph *g;
static const char *where;

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s: %s", where, et_error_get(cx)->message);
}

static struct et_tensor *
leaf(int ndim, const int64_t *shape, enum et_format format, const float *values)
{
    struct et_tensor *t;
    must(et_tensor_new(cx, dev, ET_F32, ndim, shape, format, NULL, &t));
    must(et_tensor_write(cx, t, values, et_desc_bytes(&t->desc)));
    return t;
}

/* What is asked for, evaluated, into OUT. */
static void
get(struct et_tensor *t, float *out)
{
    must(et_eval(g, &t, 1));
    must(et_tensor_read(cx, t, out, et_desc_bytes(&t->desc)));
}

static void
start(void)
{
    et_graph_reset(g);
    et_error_clear(cx);
}

/* ---- y = a x + b, with a and b as attributes ---- */

struct line {
    double a, b;
};

static int runs; /* of line's host function on one thread */

static et_status
line_host(const struct et_custom_run *run)
{
    const struct line *o = run->attr;
    const float *x = run->x[0];
    float *y = run->y[0];
    runs++;
    for (int64_t i = 0; i < et_desc_count(&run->in[0]); i++)
        y[i] = (float)(o->a * (double)x[i] + o->b);
    return ET_OK;
}

static const struct et_custom_class line_class;

static et_status
line_gradient(struct et_graph *graph, const struct et_node *node,
              struct et_tensor *const *dy, const bool *want, struct et_tensor **dx)
{
    const struct line *o = node->attr, slope = {.a = o->a};
    if (want[0])
        dx[0] = et_custom(graph, &line_class, &dy[0], 1, &slope, NULL);
    return et_graph_status(graph);
}

#define LINE                                                                           \
    .size = sizeof(struct et_custom_class), .min_in = 1, .max_in = 1, .n_out = 1,      \
    .attr_size = sizeof(struct line)

static const struct et_custom_class line_class = {
    LINE, .name = "line", .gradient = line_gradient, .host = line_host};

static et_status
other_host(const struct et_custom_run *run)
{
    const float *x = run->x[0];
    float *y = run->y[0];
    for (int64_t i = 0; i < et_desc_count(&run->in[0]); i++)
        y[i] = -x[i];
    return ET_OK;
}

/* The same in all but its function. */
static const struct et_custom_class other_class = {LINE, .name = "other",
                                                   .host = other_host};

static const int64_t six[] = {2, 3};
static const float numbers[] = {1, 2, 3, 4, 5, 6};

static void
test_plans(void)
{
    struct et_tensor *x = leaf(2, six, ET_ROW_MAJOR, numbers);
    struct et_graph_stats before, after;
    float y[6];
    const struct line two = {2, 1}, three = {3, 1};
    for (int i = 0; i < 2; i++) {
        start();
        et_graph_get_stats(g, &before);
        get(et_custom(g, &line_class, &x, 1, &two, NULL), y);
        et_graph_get_stats(g, &after);
        ok(y[0] == 3 && y[5] == 13, "%s: a class's function computes its results",
           where);
        is_int((int64_t)(after.plans_built - before.plans_built), i == 0,
               "%s: evaluation %d of a class makes a plan, or finds it", where, i);
    }
    start();
    get(et_custom(g, &line_class, &x, 1, &three, NULL), y);
    ok(y[0] == 4 && y[5] == 19, "%s: other attributes are another plan", where);
    start();
    get(et_custom(g, &other_class, &x, 1, &two, NULL), y);
    ok(y[0] == -1 && y[5] == -6, "%s: another class is another plan", where);
    start();
    struct et_tensor *both[] = {et_custom(g, &line_class, &x, 1, &two, NULL),
                                et_custom(g, &line_class, &x, 1, &three, NULL)};
    get(et_add(g, et_relu(g, both[0]), et_relu(g, both[1])), y);
    ok(y[0] == 7 && y[5] == 32, "%s: nodes of one class keep their attributes apart",
       where);
    start();
    et_tensor_free(&x);
}

static void
test_unread(void)
{
    struct et_tensor *x = leaf(2, six, ET_ROW_MAJOR, numbers);
    const struct line two = {2, 1};
    float y[6];
    start();
    et_custom(g, &line_class, &x, 1, &two, NULL);
    runs = 0;
    get(et_neg(g, x), y);
    is_int(runs, 0, "%s: what nobody reads is not computed", where);
    start();
    et_graph_set_dry(g, true);
    struct et_tensor *want = et_custom(g, &line_class, &x, 1, &two, NULL);
    must(et_eval(g, &want, 1));
    et_graph_set_dry(g, false);
    is_int(runs, 0, "%s: a dry evaluation runs no function", where);
    start();
    et_tensor_free(&x);
}

static void
test_gradients(void)
{
    struct et_tensor *x = leaf(2, six, ET_ROW_MAJOR, numbers), *grad;
    const struct line o = {-3, 5};
    float dx[6];
    start();
    struct et_tensor *y = et_custom(g, &line_class, &x, 1, &o, NULL);
    must(et_grad(g, et_sum_squares(g, y), &x, 1, &grad));
    get(grad, dx); /* 2 y a */
    ok(dx[0] == -12 && dx[5] == 78, "%s: a class's gradient is part of a chain: %g %g",
       where, (double)dx[0], (double)dx[5]);
    start();
    y = et_custom(g, &other_class, &x, 1, &o, NULL);
    ok(et_grad(g, et_sum_squares(g, y), &x, 1, &grad) == ET_ENOTSUP,
       "%s: a class without a gradient is not differentiated", where);
    is_str(et_error_get(cx)->message, "other has no gradient", "%s: and is named",
           where);
    start();
    et_tensor_free(&x);
}

/* ---- several results ---- */

/* y0 = x + 1, y1 [rows] = sums of rows, y2 = number of results wanted. */
static et_status
several_infer(struct et_ctx *ctx, const struct et_call *call, struct et_desc *out)
{
    const struct et_desc *x = &call->in[0];
    if (x->ndim != 2)
        return ET_FAIL(ctx, ET_ESHAPE, "needs 2 axes, not %d", x->ndim);
    et_desc_init(&out[0], ET_F32, 2, x->shape, ET_ROW_MAJOR);
    et_desc_init(&out[1], ET_F32, 1, x->shape, ET_ROW_MAJOR);
    et_desc_init(&out[2], ET_I32, 0, NULL, ET_ROW_MAJOR);
    return ET_OK;
}

/* The numbers lie at the end of a large workspace. */
enum { BEFORE_THEM = 16 << 20 };

static size_t
several_workspace(const struct et_call *call)
{
    return BEFORE_THEM + et_desc_bytes(&call->in[0]);
}

static et_status
several_host(const struct et_custom_run *run)
{
    const struct et_desc *x = &run->in[0];
    const float *from = run->x[0];
    float *copy = (float *)((char *)run->workspace + BEFORE_THEM), *sums = run->y[1];
    memcpy(copy, from, et_desc_bytes(x));
    for (int64_t i = 0; i < x->shape[0]; i++) {
        float sum = 0;
        for (int64_t k = 0; k < x->shape[1]; k++) {
            sum += copy[i * x->shape[1] + k];
            if (run->y[0])
                ((float *)run->y[0])[i * x->shape[1] + k] =
                    copy[i * x->shape[1] + k] + 1;
        }
        if (sums)
            sums[i] = sum;
    }
    if (run->y[2])
        *(int32_t *)run->y[2] = (run->out[0].dtype != ET_NONE) +
                                (run->out[1].dtype != ET_NONE) +
                                (run->out[2].dtype != ET_NONE);
    return ET_OK;
}

static const struct et_custom_class several_class = {
    .size = sizeof(struct et_custom_class),
    .name = "several",
    .min_in = 1,
    .max_in = 2,
    .n_out = 3,
    .infer = several_infer,
    .workspace = several_workspace,
    .host = several_host,
};

static void
test_results(void)
{
    struct et_tensor *x = leaf(2, six, ET_ROW_MAJOR, numbers), *out[3];
    float y[6], sums[2];
    int32_t wanted;
    start();
    et_custom(g, &several_class, &x, 1, NULL, out);
    must(et_eval(g, out, 3));
    must(et_tensor_read(cx, out[0], y, sizeof y));
    must(et_tensor_read(cx, out[1], sums, sizeof sums));
    must(et_tensor_read(cx, out[2], &wanted, sizeof wanted));
    ok(y[0] == 2 && y[5] == 7 && sums[0] == 6 && sums[1] == 15 && wanted == 3,
       "%s: a class may have several results", where);
    start();
    et_custom(g, &several_class, &x, 1, NULL, out);
    must(et_eval(g, &out[2], 1));
    must(et_tensor_read(cx, out[2], &wanted, sizeof wanted));
    is_int(wanted, getenv("ETUDE_EAGER") ? 3 : 1,
           "%s: a result that nobody reads is left out", where);
    /* Columns of a turned array, as rows. */
    start();
    struct et_tensor *turned = et_transpose(g, x, 0, 1);
    et_custom(g, &several_class, &turned, 1, NULL, out);
    float three[3];
    get(out[1], three);
    ok(three[0] == 5 && three[1] == 7 && three[2] == 9,
       "%s: what does not lie row-major is copied first", where);
    start();
    et_tensor_free(&x);
}

/* ---- single elements ---- */

static et_status
product_host(const struct et_custom_run *run)
{
    const float *a = run->x[0], *b = run->x[1];
    float *y = run->y[0];
    for (int64_t i = 0; i < et_desc_count(&run->in[0]); i++)
        y[i] = a[i] * b[i];
    return ET_OK;
}

static const struct et_custom_class product_class = {
    .size = sizeof(struct et_custom_class),
    .name = "product",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .layout = ET_CUSTOM_ELEMENTS,
    .host = product_host,
};

static void
test_elements(void)
{
    static const int64_t image[] = {2, 3, 2, 2};
    float one[24], y[24];
    bool right = true;
    for (int i = 0; i < 24; i++)
        one[i] = (float)i + 1;
    struct et_tensor *a = leaf(4, image, ET_CHANNELS_LAST, one);
    struct et_tensor *b = leaf(4, image, ET_ROW_MAJOR, one);
    start();
    struct et_tensor *pair[] = {a, a}, *unlike[] = {a, b};
    struct et_tensor *same = et_custom(g, &product_class, pair, 2, NULL, NULL);
    ok(et_desc_is_contiguous(&same->desc, ET_CHANNELS_LAST),
       "%s: elements of channels-last arrays stay so", where);
    get(same, y);
    for (int i = 0; i < 24; i++)
        right &= y[i] == one[i] * one[i];
    get(et_custom(g, &product_class, unlike, 2, NULL, NULL), y);
    for (int i = 0; i < 24; i++)
        right &= y[i] == one[i] * one[i];
    ok(right, "%s: elements meet those of the same place", where);
    struct et_tensor *shapes[] = {a, et_sum(g, b, 1, true)};
    ok(!et_custom(g, &product_class, shapes, 2, NULL, NULL), "%s: shapes must agree",
       where);
    is_str(et_error_get(cx)->message,
           "product: operand 1 is f32[1,3,2,2]; it must have the shape of "
           "f32[2,3,2,2]",
           "%s: and the operand that does not is named", where);
    start();
    et_tensor_free(&a);
    et_tensor_free(&b);
}

/* ---- parts ---- */

enum { ROWS = 37, COLUMNS = 1000 };
static atomic_int seen[ROWS], parts;

static int64_t
rows_of(const struct et_call *call)
{
    return call->in[0].shape[0];
}

static et_status
rows_host(const struct et_custom_run *run)
{
    parts++;
    for (int64_t row = run->begin; row < run->end; row++) {
        seen[row]++;
        for (int64_t k = 0; k < COLUMNS; k++)
            ((float *)run->y[0])[row * COLUMNS + k] =
                ((const float *)run->x[0])[row * COLUMNS + k] + (float)row;
    }
    return ET_OK;
}

static const struct et_custom_class rows_class = {
    .size = sizeof(struct et_custom_class),
    .name = "rows",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .items = rows_of,
    .host = rows_host,
};

static void
test_parts(int threads)
{
    static float x[ROWS * COLUMNS], y[ROWS * COLUMNS];
    struct et_tensor *t = leaf(2, (int64_t[]){ROWS, COLUMNS}, ET_ROW_MAJOR, x);
    bool once = true, right = true;
    for (int i = 0; i < ROWS; i++)
        seen[i] = 0;
    parts = 0;
    start();
    get(et_custom(g, &rows_class, &t, 1, NULL, NULL), y);
    for (int i = 0; i < ROWS; i++)
        once &= seen[i] == 1;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        right &= y[i] == (float)(i / COLUMNS);
    ok(once && right, "%s: %d threads share the items, each of which is computed once",
       where, threads);
    is_int(parts, threads, "%s: each thread has one part", where);
    start();
    et_tensor_free(&t);
}

/* ---- what fails ---- */

static et_status
refuse_infer(struct et_ctx *ctx, const struct et_call *call, struct et_desc *out)
{
    (void)ctx, (void)call, (void)out;
    return ET_EDTYPE;
}

static et_status
nothing_infer(struct et_ctx *ctx, const struct et_call *call, struct et_desc *out)
{
    (void)ctx, (void)call, (void)out;
    return ET_OK;
}

static et_status
failing_host(const struct et_custom_run *run)
{
    snprintf(run->why, run->why_size, "row %d is not sorted", 4);
    return ET_EINVAL;
}

static et_status
mute_host(const struct et_custom_run *run)
{
    (void)run;
    return ET_EINVAL;
}

static et_status
wide_gradient(struct et_graph *graph, const struct et_node *node,
              struct et_tensor *const *dy, const bool *want, struct et_tensor **dx)
{
    (void)node, (void)want;
    dx[0] = et_sum(graph, dy[0], 1, false);
    return ET_OK;
}

static et_status
failing_gradient(struct et_graph *graph, const struct et_node *node,
                 struct et_tensor *const *dy, const bool *want, struct et_tensor **dx)
{
    (void)node, (void)dy, (void)want, (void)dx;
    return ET_FAIL(et_graph_ctx(graph), ET_ENOTSUP, "is not smooth");
}

#define FAILS                                                                          \
    .size = sizeof(struct et_custom_class), .name = "mine", .min_in = 1, .max_in = 1,  \
    .n_out = 1

static void
refused(const struct et_custom_class *type, struct et_tensor *x, et_status status,
        const char *message)
{
    start();
    struct et_tensor *y = et_custom(g, type, &x, 1, NULL, NULL);
    ok(!y && et_graph_status(g) == status, "%s: %s: that sticks as %s", where, message,
       et_status_name(status));
    is_str(et_error_get(cx)->message, message, "%s: and is said", where);
}

static void
not_differentiated(const struct et_custom_class *type, struct et_tensor *x,
                   const char *message)
{
    struct et_tensor *grad;
    start();
    struct et_tensor *y = et_custom(g, type, &x, 1, NULL, NULL);
    et_status status = et_grad(g, et_sum_squares(g, y), &x, 1, &grad);
    ok(status != ET_OK && et_graph_status(g) == status,
       "%s: %s: et_grad fails, and it sticks", where, message);
    is_str(et_error_get(cx)->message, message, "%s: and is said", where);
}

static void
test_refusals(void)
{
    struct et_tensor *x = leaf(2, six, ET_ROW_MAJOR, numbers);
    static const struct et_custom_class infer = {FAILS, .infer = refuse_infer,
                                                 .host = other_host};
    static const struct et_custom_class nothing = {FAILS, .infer = nothing_infer,
                                                   .host = other_host};
    static const struct et_custom_class wide = {FAILS, .host = other_host,
                                                .gradient = wide_gradient};
    static const struct et_custom_class rough = {FAILS, .host = other_host,
                                                 .gradient = failing_gradient};
    static const struct et_custom_class old = {
        .size = 8, .name = "old", .host = other_host};
    static const struct et_custom_class idle = {FAILS};
    static const struct et_custom_class two = {.size = sizeof two,
                                               .name = "two",
                                               .min_in = 2,
                                               .max_in = 2,
                                               .n_out = 1,
                                               .host = other_host};
    refused(&infer, x, ET_EDTYPE, "mine: its infer function gives \"dtype mismatch\"");
    refused(&nothing, x, ET_EINVAL,
            "mine: its infer function does not describe result 0");
    refused(&old, x, ET_EINVAL,
            "the operation old was made with other headers: its size is not that of "
            "struct et_custom_class");
    refused(&idle, x, ET_EINVAL,
            "the operation mine has neither a host function nor one for a GPU");
    refused(&two, x, ET_EINVAL, "two takes 2 to 2 operands, got 1");
    refused(&line_class, x, ET_EINVAL,
            "the operation line has attributes, and none were given");
    refused(NULL, x, ET_EINVAL, "the operation (null) has no name");
    start();
    struct et_tensor *one[] = {x, NULL};
    et_custom(g, &two, one, 2, NULL, NULL);
    is_str(et_error_get(cx)->message, "two: operand 2 is NULL",
           "%s: an operand that is left out is told by the class's name", where);
    start();
    struct et_tensor *flat = et_reshape(g, x, 1, (int64_t[]){6});
    et_custom(g, &several_class, &flat, 1, NULL, NULL);
    is_str(et_error_get(cx)->message, "several: needs 2 axes, not 1",
           "%s: a class's own words stand behind its name", where);
    not_differentiated(
        &wide, x, "mine: the gradient of operand 0 is f32[3]; it must be f32[2,3]");
    not_differentiated(&rough, x, "mine: is not smooth");
    start();
    et_tensor_free(&x);
}

static void
test_failing_run(void)
{
    struct et_tensor *x = leaf(2, six, ET_ROW_MAJOR, numbers);
    static const struct et_custom_class failing = {FAILS, .host = failing_host};
    static const struct et_custom_class mute = {FAILS, .host = mute_host};
    static const struct et_custom_class gpu = {FAILS, .gpu = other_host};
    char want[128];
    float after[6];
    start();
    et_assign(g, x, et_neg(g, x));
    struct et_tensor *y = et_custom(g, &failing, &x, 1, NULL, NULL);
    ok(et_eval(g, &y, 1) == ET_EINVAL, "%s: a function that fails fails the evaluation",
       where);
    snprintf(want, sizeof want, "mine failed on %s: row 4 is not sorted", where);
    is_str(et_error_get(cx)->message, want, "%s: with its name and its words", where);
    must((et_error_clear(cx), et_tensor_read(cx, x, after, sizeof after)));
    ok(!memcmp(after, numbers, sizeof after), "%s: and changes no leaf", where);
    start();
    y = et_custom(g, &mute, &x, 1, NULL, NULL);
    ok(et_eval(g, &y, 1) == ET_EINVAL, "%s: one that fails without a word, too", where);
    snprintf(want, sizeof want, "mine failed on %s", where);
    is_str(et_error_get(cx)->message, want, "%s: is not given another's words", where);
    start();
    y = et_custom(g, &gpu, &x, 1, NULL, NULL);
    ok(et_eval(g, &y, 1) == ET_ENOTSUP, "%s: a GPU's function alone will not do",
       where);
    ok(strstr(et_error_get(cx)->message, "its class has no host function") != NULL,
       "%s: that is said: %s", where, et_error_get(cx)->message);
    start();
    et_tensor_free(&x);
}

/* ---- mixed precision ---- */

static void
test_autocast(void)
{
    struct et_tensor *x = leaf(2, six, ET_ROW_MAJOR, numbers);
    const struct line two = {2, 1};
    start();
    must(et_graph_set_low_dtype(g, ET_BF16));
    bool was = et_autocast(g, true);
    struct et_tensor *y = et_custom(g, &line_class, &x, 1, &two, NULL);
    ok(y && y->node->in[0] == x, "%s: mixed precision casts no operand of a class",
       where);
    et_autocast(g, was);
    must(et_graph_set_low_dtype(g, ET_NONE));
    start();
    et_tensor_free(&x);
}

static void
test_all(const char *device, int threads)
{
    char text[64];
    snprintf(text, sizeof text, "%s", device);
    where = text;
    must(et_device_open(cx, device, 0, threads, &dev));
    must(et_graph_new(cx, dev, &g));
    test_plans();
    test_unread();
    test_gradients();
    test_results();
    test_elements();
    test_parts(threads);
    test_refusals();
    test_failing_run();
    test_autocast();
    et_graph_free(&g);
    et_device_close(&dev);
}

/* Each node computed where it is built. */
static void
test_eager(void)
{
    static const struct et_custom_class failing = {FAILS, .host = failing_host};
    setenv("ETUDE_EAGER", "1", 1);
    where = "eager";
    must(et_device_open(cx, "ref", 0, 1, &dev));
    must(et_graph_new(cx, dev, &g));
    test_gradients();
    test_results();
    struct et_tensor *x = leaf(2, six, ET_ROW_MAJOR, numbers);
    ok(!et_custom(g, &failing, &x, 1, NULL, NULL) && et_graph_status(g) == ET_EINVAL,
       "eager: a function that fails sticks to the graph");
    is_str(et_error_get(cx)->message, "mine failed on ref: row 4 is not sorted",
           "eager: with its name and its words");
    start();
    et_tensor_free(&x);
    et_graph_free(&g);
    et_device_close(&dev);
    unsetenv("ETUDE_EAGER");
}

int
main(void)
{
    unsetenv("ETUDE_EAGER");
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_all("ref", 1);
    if (et_device_open(cx, "cpu", 0, 3, &dev) == ET_OK) {
        et_device_close(&dev);
        test_all("cpu", 3);
    }
    et_error_clear(cx);
    test_eager();
    et_ctx_free(&cx);
    return done();
}
