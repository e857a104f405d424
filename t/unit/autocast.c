/* SPDX-License-Identifier: Apache-2.0 */
/* Mixed precision: where casts are put, and where not; on the reference device. */
#include "etude/etude.h"
#include "t/tap.h"

#include <stdlib.h>
#include <string.h>

static struct et_ctx *cx;
static struct et_device *dev;
static struct et_graph *g;
static struct et_tensor *x, *w, *scale; /* f32 [4,8], [8,8], [8] */

static struct et_tensor *
leaf(enum et_dtype dtype, int ndim, const int64_t *shape)
{
    struct et_tensor *t;
    if (et_tensor_new(cx, dev, dtype, ndim, shape, ET_ROW_MAJOR, NULL, &t) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    for (int64_t i = 0; dtype == ET_F32 && i < et_desc_count(&t->desc); i++)
        ((float *)et_tensor_data(t))[i] = 0.1f * (float)(i % 7 - 3);
    return t;
}

static void
start(enum et_dtype low)
{
    et_graph_reset(g);
    if (et_graph_set_low_dtype(g, low) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    et_autocast(g, true);
}

static struct et_tensor *
product(struct et_tensor *a)
{
    return et_matmul(g, a, w, false, false);
}

/* Kernels of a plan for Y. */
static int
kernels(struct et_tensor *y)
{
    struct et_plan_info info;
    if (et_plan(g, &y, 1, &info) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    return info.kernels;
}

static void
test_classes(enum et_dtype low)
{
    const char *name = et_dtype_name(low);
    start(low);
    struct et_tensor *y = product(x);
    ok(y && y->desc.dtype == low, "%s: a product gives the low dtype", name);
    ok(y->node->in[0] != x && y->node->in[0]->desc.dtype == low &&
           y->node->in[1]->desc.dtype == low,
       "%s: and takes operands of it", name);
    ok(w->desc.dtype == ET_F32, "%s: the weight stays f32", name);
    is_int(et_relu(g, y)->desc.dtype, low, "%s: an activation stays as it is", name);
    is_int(et_softmax(g, y, 1)->desc.dtype, ET_F32, "%s: softmax is f32", name);
    is_int(et_layer_norm(g, y, scale, scale, 1, 1e-5)->desc.dtype, ET_F32,
           "%s: a norm is f32", name);
    is_int(et_batch_norm_eval(g, y, scale, scale, scale, scale, 1e-5)->desc.dtype,
           ET_F32, "%s: so is one by running statistics", name);
    is_int(et_mean(g, y, 0, false)->desc.dtype, ET_F32, "%s: a mean is f32", name);
    is_int(et_exp(g, y)->desc.dtype, ET_F32, "%s: e^x is f32", name);
    is_int(et_add(g, y, x)->desc.dtype, ET_F32, "%s: a sum of both dtypes is f32",
           name);
    is_int(et_add(g, y, y)->desc.dtype, low, "%s: a sum of low ones stays low", name);
    struct et_tensor *both[] = {y, x};
    is_int(et_concat(g, both, 2, 0)->desc.dtype, ET_F32,
           "%s: a concatenation of both is f32", name);
    et_autocast(g, false);
    is_int(product(x)->desc.dtype, ET_F32, "%s: outside, a product is f32", name);
    is_int(et_softmax(g, y, 1)->desc.dtype, low, "%s: outside, softmax is as written",
           name);
    is_int(et_mul(g, x, y)->desc.dtype, ET_F32,
           "%s: outside, unlike dtypes meet in f32", name);
    ok(et_graph_status(g) == ET_OK, "%s: and nothing is refused", name);
}

/* ---- whole numbers ---- */

static struct et_tensor *
apply_to(int which, struct et_tensor *n)
{
    switch (which) {
    case 0:
        return et_exp(g, n);
    case 1:
        return et_square(g, n);
    case 2:
        return et_softmax(g, n, 1);
    case 3:
        return et_log_softmax(g, n, 1);
    case 4:
        return et_matmul(g, n, n, false, false);
    case 5:
        return et_sum(g, n, 2, false);
    case 6:
        return et_cumsum(g, n, 1, false);
    default:
        return et_softplus(g, n);
    }
}

/* What an operation says of whole numbers is the same in autocast: they are taken as
 * they are, or refused. */
static void
test_whole_numbers(void)
{
    static const char *const names[] = {"exp",    "square", "softmax", "log_softmax",
                                        "matmul", "sum",    "cumsum",  "softplus"};
    struct et_tensor *n = leaf(ET_I32, 2, (const int64_t[]){4, 4});
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
        enum et_dtype got[2];
        et_status status[2];
        for (int k = 0; k < 2; k++) {
            start(ET_BF16);
            et_autocast(g, k == 1);
            const struct et_tensor *y = apply_to(i, n);
            got[k] = y ? y->desc.dtype : ET_NONE;
            status[k] = et_graph_status(g);
            et_error_clear(cx);
        }
        is_int(status[1], status[0], "%s of whole numbers is %s, in autocast too",
               names[i], status[0] == ET_OK ? "taken" : "refused");
        is_int(got[1], got[0], "and gives the same dtype");
    }
    et_graph_reset(g);
    et_tensor_free(&n);
}

/* ---- every operation's rule ---- */

enum rule { AS_IS, WIDE, PROMOTE };

/* torch.autocast's lists, of operations on single elements; the others are AS_IS. */
static enum rule
rule_of(const struct et_op *op)
{
    static const char *const wide[] = {"exp",        "log",        "rsqrt",    "square",
                                       "reciprocal", "pow_scalar", "softplus", NULL};
    static const char *const promote[] = {"add",        "sub",     "mul",   "div",
                                          "maximum",    "minimum", "equal", "less",
                                          "less_equal", "where",   NULL};
    for (int i = 0; wide[i]; i++)
        if (strcmp(op->name, wide[i]) == 0)
            return WIDE;
    for (int i = 0; promote[i]; i++)
        if (strcmp(op->name, promote[i]) == 0)
            return PROMOTE;
    return AS_IS;
}

/* The dtype in which OP reads its last operand of N, of which the last is LAST and the
 * others are FIRST; NONE: it is refused. */
static enum et_dtype
reads(const struct et_op *op, enum et_dtype first, enum et_dtype last)
{
    static const struct et_scalar_attr one = {1, 1};
    struct et_tensor *in[3], *y;
    start(ET_BF16);
    for (int i = 0; i < op->min_in; i++)
        in[i] = et_cast(g, scale, i + 1 < op->min_in ? first : last);
    y = et_apply(g, op->id, in, op->min_in, op->attr_size ? &one : NULL, op->attr_size,
                 NULL);
    et_error_clear(cx);
    return y ? y->node->in[op->min_in - 1]->desc.dtype : ET_NONE;
}

static void
test_elements(void)
{
    for (int id = 0; id < ET_OP_COUNT; id++) {
        const struct et_op *op = et_op_get((enum et_op_id)id);
        if (!(op->flags & ET_OPF_ELEMENTWISE) || id == ET_OP_fused || id == ET_OP_cast)
            continue;
        enum rule rule = rule_of(op);
        ok(reads(op, ET_BF16, ET_BF16) == (rule == WIDE ? ET_F32 : ET_BF16) &&
               reads(op, ET_F32, ET_F32) == ET_F32,
           "%s reads bf16 %s", op->name, rule == WIDE ? "in f32" : "as it is");
        if (op->min_in > 1)
            ok(reads(op, ET_F32, ET_BF16) == (rule == PROMOTE ? ET_F32 : ET_NONE),
               "%s of f32 and bf16 is %s", op->name,
               rule == PROMOTE ? "one of f32" : "refused");
    }
}

/* Products, sums and norms; MASK, which an attention adds, and a residual stay. */
static void
test_others(void)
{
    static const int64_t four[] = {1, 2, 4, 8}, square[] = {1, 1, 4, 4};
    const struct et_conv2d_attr plain = {0};
    start(ET_BF16);
    struct et_tensor *image = leaf(ET_F32, 4, four), *mask = leaf(ET_F32, 4, square);
    struct et_tensor *filter = leaf(ET_F32, 4, (const int64_t[]){2, 2, 1, 1});
    struct et_tensor *low = et_cast(g, image, ET_BF16);
    struct et_tensor *y = et_sdpa(g, image, image, image, mask, false, 1);
    ok(y && y->node->in[2]->desc.dtype == ET_BF16, "an attention reads its values low");
    struct et_tensor *bias = y->node->in[3];
    is_int(bias->desc.dtype, ET_F32, "and its mask as it is");
    is_int(et_conv2d(g, image, filter, NULL, &plain)->desc.dtype, ET_BF16,
           "a convolution is computed low");
    is_int(et_conv_transpose2d(g, image, filter, NULL, &plain)->desc.dtype, ET_BF16,
           "so is a transposed one");
    const struct {
        const char *name;
        struct et_tensor *y;
        enum et_dtype dtype;
    } rows[] = {
        {"a sum", et_sum(g, low, 1, false), ET_F32},
        {"a sum of squares", et_sum_squares(g, low), ET_F32},
        {"softmax", et_softmax(g, low, 3), ET_F32},
        {"its logarithm", et_log_softmax(g, low, 3), ET_F32},
        {"a group norm", et_group_norm(g, low, NULL, NULL, 2, 1e-5), ET_F32},
        {"a layer norm", et_layer_norm(g, low, NULL, NULL, 1, 1e-5), ET_F32},
        {"a batch norm", et_batch_norm(g, low, NULL, NULL, 1e-5, NULL, NULL), ET_BF16},
        {"the largest", et_amax(g, low, 1, false), ET_BF16},
        {"the smallest", et_amin(g, low, 1, false), ET_BF16},
        {"a pad", et_pad(g, low, (const int64_t[4]){0}, (const int64_t[4]){1}, 0),
         ET_BF16},
        {"a flip", et_flip(g, low, 1), ET_BF16},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        is_int(rows[i].y ? rows[i].y->desc.dtype : ET_NONE, rows[i].dtype,
               "%s of bf16 is %s", rows[i].name, et_dtype_name(rows[i].dtype));
    et_graph_reset(g);
    et_tensor_free(&image);
    et_tensor_free(&mask);
    et_tensor_free(&filter);
}

/* Three operands, each of one dtype or the other, in any order. */
static void
test_any_order(void)
{
    for (int k = 0; k < 8; k++) {
        struct et_tensor *in[3];
        char dtypes[4] = "";
        start(ET_BF16);
        for (int i = 0; i < 3; i++) {
            bool wide = k >> i & 1;
            in[i] = wide ? x : et_cast(g, x, ET_BF16);
            dtypes[i] = wide ? 'f' : 'b';
        }
        struct et_tensor *y = et_concat(g, in, 3, 0);
        is_int(y ? y->desc.dtype : ET_NONE, k ? ET_F32 : ET_BF16,
               "a concatenation of '%s' (f32, bf16) is %s", dtypes, k ? "f32" : "bf16");
        et_error_clear(cx);
    }
}

/* f64, integers and truth values are what they were. */
static void
test_spared(void)
{
    struct et_tensor *wide = leaf(ET_F64, 2, (const int64_t[]){4, 8});
    struct et_tensor *whole = leaf(ET_I32, 2, (const int64_t[]){4, 8});
    struct et_tensor *square = leaf(ET_F64, 2, (const int64_t[]){8, 8});
    start(ET_BF16);
    struct et_tensor *y = et_matmul(g, wide, square, false, false);
    is_int(y ? y->desc.dtype : ET_NONE, ET_F64, "a product of f64 is f64");
    y = et_exp(g, wide);
    is_int(y ? y->desc.dtype : ET_NONE, ET_F64, "and so is e^x");
    ok(!et_add(g, wide, x) && et_graph_status(g) == ET_EDTYPE,
       "f64 and f32 do not meet by themselves");
    et_error_clear(cx);
    start(ET_BF16);
    ok(!et_mul(g, whole, x) && et_graph_status(g) == ET_EDTYPE,
       "nor do integers and f32");
    et_error_clear(cx);
    et_graph_reset(g);
    et_tensor_free(&wide);
    et_tensor_free(&whole);
    et_tensor_free(&square);
}

static void
test_once(void)
{
    start(ET_BF16);
    /* Another product of the same operands: w^T x^T. */
    struct et_tensor *a = product(x), *b = et_matmul(g, w, x, true, true);
    ok(a->node->in[1] == b->node->in[0] && a->node->in[0] == b->node->in[1],
       "what is used twice is cast once");
    is_int(kernels(et_add(g, a, et_transpose(g, b, 0, 1))), 5,
           "two casts, two products and a sum are planned");
    struct et_tensor *f = et_cast(g, a, ET_F32), *back = product(f);
    ok(back->node->in[0] == a, "bf16 to f32 and back is no cast at all");
    struct et_tensor *rounded = et_cast(g, x, ET_BF16), *again = et_exp(g, rounded);
    ok(again->node->in[0] != x && again->node->in[0]->desc.dtype == ET_F32,
       "f32 to bf16 and back is the number that was rounded");
    struct et_tensor *twice = product(et_cast(g, x, ET_F32));
    ok(twice->node->in[0]->desc.dtype == ET_BF16,
       "f32 to bf16 rounds, and stays where it is needed");
    et_assign(g, w, et_add_scalar(g, w, 1));
    if (et_eval(g, NULL, 0) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    struct et_tensor *fresh = product(x);
    ok(fresh && fresh->node->in[1] != a->node->in[1],
       "after a commit the weight is cast anew");
    float before, after;
    ok(et_eval(g, &fresh, 1) == ET_OK, "and can be asked for");
    uint16_t bits[32];
    ok(et_tensor_read(cx, fresh, bits, sizeof bits) == ET_OK, "and read");
    uint32_t wide = (uint32_t)bits[0] << 16;
    memcpy(&after, &wide, sizeof after);
    before = 0;
    for (int k = 0; k < 8; k++)
        before += ((float *)et_tensor_data(x))[k] * ((float *)et_tensor_data(w))[8 * k];
    /* Two roundings of 2^-9 each for operands of up to 1.3, and one of the result. */
    is_near(after, before, 8 * 1.3 * 0.3 * 0x1p-8 + 0x1p-8, "the product is x w's");
}

/* Three pieces of a step, then one with other weights. */
static void
test_kept(bool eager)
{
    const char *how = eager ? "eager" : "planned";
    struct et_graph *plain = g;
    setenv("ETUDE_EAGER", eager ? "1" : "0", 1);
    if (et_graph_new(cx, dev, &g) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    unsetenv("ETUDE_EAGER");
    struct et_tensor *sum = leaf(ET_F32, 0, NULL);
    const struct et_node *cast[4];
    start(ET_BF16);
    for (int i = 0; i < 4; i++) {
        struct et_tensor *y = et_sum(g, product(et_add_scalar(g, x, i)), 0, false);
        cast[i] = y->node->in[0]->node->in[0]->node->in[1]->node;
        if (eager)
            ok(y->data, "%s: piece %d is computed", how, i);
        else
            is_int(kernels(y), i == 0 || i == 3 ? 5 : 4,
                   "%s: piece %d casts the weight%s", how, i,
                   i == 0 || i == 3 ? "" : " no more");
        et_assign(g, sum, et_add(g, sum, y));
        if (i == 2)
            et_assign(g, w, et_mul_scalar(g, w, 1));
        if (et_eval_keeping_casts(g) != ET_OK)
            bail("%s", et_error_get(cx)->message);
    }
    ok(cast[1] == cast[0] && cast[2] == cast[0],
       "%s: the first cast serves three pieces", how);
    ok(cast[3] != cast[0], "%s: new weights are cast anew", how);
    et_tensor_free(&sum);
    et_graph_free(&g);
    g = plain;
}

static void
test_gradient(void)
{
    start(ET_BF16);
    struct et_tensor *params[] = {w, scale}, *grads[2];
    struct et_tensor *h = et_layer_norm(g, product(x), scale, scale, 1, 1e-5);
    struct et_tensor *y = et_mean(g, et_square(g, product(h)), 0, false);
    is_int(y->desc.dtype, ET_F32, "a loss is f32");
    ok(et_grad(g, y, params, 2, grads) == ET_OK, "it has gradients");
    ok(grads[0] && grads[0]->desc.dtype == ET_F32 && grads[1]->desc.dtype == ET_F32,
       "which arrive in f32 at the parameters");
    ok(grads[0]->node->op->id == ET_OP_cast &&
           grads[0]->node->in[0]->desc.dtype == ET_BF16,
       "a weight's was computed in bf16");
    ok(et_autocast(g, true), "and building the forward pass goes on as before");
    et_autocast(g, false);
    struct et_tensor *apart = et_mean(g, et_square(g, product(x)), 0, false);
    et_autocast(g, true);
    ok(et_grad(g, apart, params, 1, grads) == ET_OK && grads[0]->desc.dtype == ET_F32 &&
           grads[0]->node->in[1]->desc.dtype == ET_F32,
       "what was built in f32 has its gradient computed in f32");
}

static void
test_plain(void)
{
    struct et_tensor *half = leaf(ET_BF16, 2, (const int64_t[]){4, 8});
    start(ET_NONE);
    is_int(product(x)->desc.dtype, ET_F32, "without a low dtype a product is f32");
    struct et_plan_info info;
    struct et_tensor *y = product(x);
    ok(et_plan(g, &y, 1, &info) == ET_OK && info.kernels == 1, "and nothing is cast");
    ok(!et_add(g, x, half) && et_graph_status(g) == ET_EDTYPE,
       "unlike dtypes are refused");
    et_error_clear(cx);
    et_graph_reset(g);
    ok(et_graph_set_low_dtype(g, ET_F64) == ET_EDTYPE, "f64 is no low dtype");
    et_error_clear(cx);
    et_tensor_free(&half);
}

static void
test_signature(void)
{
    struct et_graph_stats before, after;
    const enum et_dtype order[] = {ET_BF16, ET_F16, ET_NONE, ET_BF16};
    et_graph_get_stats(g, &before);
    for (int i = 0; i < 4; i++) {
        start(order[i]);
        struct et_tensor *y = et_relu(g, et_sum(g, product(x), 2, false));
        if (et_eval(g, &y, 1) != ET_OK)
            bail("%s", et_error_get(cx)->message);
    }
    et_graph_get_stats(g, &after);
    is_int((int64_t)(after.plans_built - before.plans_built), 3,
           "each precision has a plan of its own, which is found again");
}

/* More casts than the first table of them holds. */
static void
test_many(void)
{
    start(ET_F16);
    struct et_tensor *y = x;
    int wrong = 0;
    for (int i = 0; i < 500; i++) {
        struct et_tensor *f = et_add_scalar(g, y, 1), *a = product(f), *b = product(f);
        wrong += !b || a->node->in[0] != b->node->in[0];
        y = x;
    }
    is_int(wrong, 0, "of five hundred values each is cast once");
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK || et_device_open(cx, "ref", 0, 1, &dev) != ET_OK ||
        et_graph_new(cx, dev, &g) != ET_OK)
        bail("no device");
    x = leaf(ET_F32, 2, (const int64_t[]){4, 8});
    w = leaf(ET_F32, 2, (const int64_t[]){8, 8});
    scale = leaf(ET_F32, 1, (const int64_t[]){8});
    test_classes(ET_BF16);
    test_classes(ET_F16);
    test_whole_numbers();
    test_elements();
    test_others();
    test_any_order();
    test_spared();
    test_once();
    test_kept(false);
    test_kept(true);
    test_gradient();
    test_plain();
    test_signature();
    test_many();
    et_tensor_free(&x);
    et_tensor_free(&w);
    et_tensor_free(&scale);
    et_graph_free(&g);
    et_device_close(&dev);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
