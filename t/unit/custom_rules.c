/* SPDX-License-Identifier: Apache-2.0 */
/* What an operation of the user's own may be: the bounds of what its class describes,
 * and how an error of its functions arrives. On the reference. */
#include "etude/etude.h"
#include "t/tap.h"

#include <stdio.h>
#include <string.h>

static struct et_ctx *cx;
static struct et_device *dev;
static struct et_graph *g;

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s", et_error_get(cx)->message);
}

static const int64_t six[] = {2, 3};

static void
start(void)
{
    et_graph_reset(g);
    et_error_clear(cx);
}

/* ---- what a class describes ---- */

static struct et_desc described[ET_CUSTOM_MOST_OUT];
static int n_described;

static et_status
describe(struct et_ctx *ctx, const struct et_call *call, struct et_desc *out)
{
    (void)ctx, (void)call;
    memcpy(out, described, (size_t)n_described * sizeof *out);
    return ET_OK;
}

static et_status
nothing(const struct et_custom_run *run)
{
    (void)run;
    return ET_OK;
}

#define MINE                                                                           \
    .size = sizeof(struct et_custom_class), .name = "mine", .min_in = 1, .max_in = 2,  \
    .host = nothing

/* Is a class of N results taken, of which result AT is D and the others [2,3]? */
static bool
takes(int n, int at, const struct et_desc *d, struct et_tensor *x)
{
    const struct et_custom_class type = {MINE, .n_out = n, .infer = describe};
    n_described = n;
    for (int i = 0; i < n && i < ET_CUSTOM_MOST_OUT; i++)
        et_desc_init(&described[i], ET_F32, 2, six, ET_ROW_MAJOR);
    if (d)
        described[at] = *d;
    start();
    return et_custom(g, &type, &x, 1, NULL, NULL) != NULL;
}

static void
test_descriptions(struct et_tensor *x)
{
    static const struct {
        enum et_dtype dtype;
        int ndim;
        bool fits;
    } rows[] = {
        {ET_NONE + 1, 2, true},
        {ET_DTYPE_COUNT - 1, 2, true},
        {ET_NONE, 2, false},
        {ET_DTYPE_COUNT, 2, false},
        {ET_F32, 0, true},
        {ET_F32, ET_MAX_DIMS, true},
        {ET_F32, ET_MAX_DIMS + 1, false},
        {ET_F32, -1, false},
    };
    static const int64_t ones[] = {1, 1, 1, 1, 1, 1};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int at = 0; at < 3; at++) {
            struct et_desc d;
            bool small = rows[i].ndim >= 0 && rows[i].ndim <= ET_MAX_DIMS;
            et_desc_init(&d, ET_F32, small ? rows[i].ndim : 1, ones, ET_ROW_MAJOR);
            d.dtype = rows[i].dtype;
            d.ndim = rows[i].ndim;
            ok(takes(3, at, &d, x) == rows[i].fits,
               "result %d of dtype %d and %d axes is %s", at, (int)rows[i].dtype,
               rows[i].ndim, rows[i].fits ? "taken" : "refused");
            if (rows[i].fits)
                continue;
            char want[64];
            snprintf(want, sizeof want,
                     "mine: its infer function does not describe result %d", at);
            is_str(et_error_get(cx)->message, want, "which is said of it");
        }
    struct et_desc apart;
    et_desc_init(&apart, ET_F32, 2, six, ET_ROW_MAJOR);
    apart.stride[0] = 4;
    for (int at = 0; at < 2; at++) {
        char want[64];
        snprintf(want, sizeof want, "mine: result %d, f32[2,3], is not dense", at);
        ok(!takes(2, at, &apart, x), "result %d must be dense", at);
        is_str(et_error_get(cx)->message, want, "which is said of it");
    }
    ok(!takes(0, 0, NULL, x) && takes(1, 0, NULL, x) &&
           takes(ET_CUSTOM_MOST_OUT, 0, NULL, x) &&
           !takes(ET_CUSTOM_MOST_OUT + 1, 0, NULL, x),
       "a class has one result to eight");
    struct et_custom_class same = {MINE, .n_out = 2};
    struct et_tensor *out[2] = {x, x};
    start();
    ok(et_custom(g, &same, &x, 1, NULL, out) && out[1]->desc.shape[1] == 3,
       "without infer all results are as the operand is");
    same.min_in = 0;
    start();
    out[0] = out[1] = x;
    ok(!et_custom(g, &same, &x, 1, NULL, out), "one that need not be there is none");
    same.min_in = 1;
    same.infer = describe;
    n_described = 2;
    described[0].dtype = ET_NONE;
    start();
    out[0] = out[1] = x;
    ok(!et_custom(g, &same, &x, 1, NULL, out) && !out[0] && !out[1],
       "where one is refused there are no results");
    start();
}

/* ---- work ---- */

static int64_t
flops_of(const struct et_call *call)
{
    const double *factor = call->attr;
    return (int64_t)*factor * et_desc_count(&call->in[0]);
}

static void
test_work(struct et_tensor *x)
{
    const double factor = 7;
    const struct et_custom_class types[] = {
        {MINE, .n_out = 2, .attr_size = sizeof factor},
        {MINE, .n_out = 2, .attr_size = sizeof factor, .flops = flops_of},
    };
    struct et_graph_stats before, after;
    for (int k = 0; k < 2; k++) {
        start();
        et_graph_get_stats(g, &before);
        struct et_tensor *out[2];
        et_custom(g, &types[k], &x, 1, &factor, out);
        must(et_eval(g, out, 2));
        et_graph_get_stats(g, &after);
        is_int(after.flops - before.flops, k ? 42 : 6,
               k ? "work is what the class says"
                 : "or one for each number of the first result");
    }
    start();
}

/* ---- errors ---- */

enum { CODE = 4321 };

static et_status
say_much(struct et_ctx *ctx, const struct et_call *call, struct et_desc *out)
{
    (void)call, (void)out;
    et_status status = ET_FAIL(ctx, ET_ESHAPE, "is too long");
    et_error_set_code(ctx, CODE);
    et_hint(ctx, "cut it");
    return status;
}

static et_status
say_little(struct et_ctx *ctx, const struct et_call *call, struct et_desc *out)
{
    (void)call, (void)out;
    return ET_FAIL(ctx, ET_ESHAPE, "is too long");
}

static void
test_errors(struct et_tensor *x)
{
    const struct et_custom_class much = {MINE, .n_out = 1, .infer = say_much};
    const struct et_custom_class little = {MINE, .n_out = 1, .infer = say_little};
    start();
    ok(!et_custom(g, &much, &x, 1, NULL, NULL), "a class may refuse");
    const struct et_error *e = et_error_get(cx);
    is_int(e->status, ET_ESHAPE, "its status arrives");
    is_str(e->message, "mine: is too long", "its words, behind its name");
    is_int(e->code, CODE, "its code");
    is_str(e->hint, "cut it", "and its hint");
    start();
    ok(!et_custom(g, &little, &x, 1, NULL, NULL), "one that has no more to say");
    is_int(et_error_get(cx)->code, 0, "has no code");
    is_str(et_error_get(cx)->hint, "", "and no hint");
    start();
    et_status first = ET_FAIL(cx, ET_EIO, "the disk is full");
    ok(!et_custom(g, &little, &x, 1, NULL, NULL), "an error may stand already");
    ok(et_error_get(cx)->status == first &&
           strcmp(et_error_get(cx)->message, "the disk is full") == 0,
       "then it stays");
    start();
}

/* ---- gradients ---- */

static enum et_dtype gives;

static et_status
cast_gradient(struct et_graph *graph, const struct et_node *node,
              struct et_tensor *const *dy, const bool *want, struct et_tensor **dx)
{
    for (int i = 0; i < node->n_in; i++)
        if (want[i])
            dx[i] = i == 1 ? et_cast(graph, dy[0], gives) : dy[0];
    return et_graph_status(graph);
}

static void
test_gradients(struct et_tensor *x)
{
    const struct et_custom_class type = {MINE, .n_out = 1, .gradient = cast_gradient};
    for (int k = 0; k < 2; k++) {
        struct et_tensor *in[] = {x, x}, *grad;
        gives = k ? ET_BF16 : ET_F32;
        start();
        struct et_tensor *y = et_custom(g, &type, in, 2, NULL, NULL);
        et_status status = et_grad(g, et_sum_squares(g, y), &x, 1, &grad);
        is_int(status, k ? ET_ESHAPE : ET_OK, "a gradient of %s is %s",
               et_dtype_name(gives), k ? "refused" : "taken");
        if (k)
            is_str(et_error_get(cx)->message,
                   "mine: the gradient of operand 1 is bf16[2,3]; it must be f32[2,3]",
                   "which is said of it");
    }
    start();
}

int
main(void)
{
    struct et_tensor *x;
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    must(et_device_open(cx, "ref", 0, 1, &dev));
    must(et_graph_new(cx, dev, &g));
    must(et_tensor_new(cx, dev, ET_F32, 2, six, ET_ROW_MAJOR, NULL, &x));
    test_descriptions(x);
    test_work(x);
    test_errors(x);
    test_gradients(x);
    et_tensor_free(&x);
    et_graph_free(&g);
    et_device_close(&dev);
    et_ctx_free(&cx);
    return done();
}
