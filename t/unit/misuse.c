/* SPDX-License-Identifier: Apache-2.0 */
/* What a program does wrong with graphs, tensors, devices and contexts is refused, with
 * a sentence that says which of its calls is wrong. */
#include "etude/etude.h"
#include "t/tap.h"

#include <stdio.h>
#include <string.h>

static struct et_ctx *cx;
static struct et_device *dev, *dev2;

static struct et_graph *
graph_on(struct et_device *d)
{
    struct et_graph *g;
    if (et_graph_new(cx, d, &g) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    return g;
}

static struct et_tensor *
leaf_on(struct et_device *d, enum et_dtype dtype, int ndim, const char *name)
{
    static const int64_t shape[] = {2, 2, 2, 2};
    struct et_tensor *t;
    if (et_tensor_new(cx, d, dtype, ndim, shape, ET_ROW_MAJOR, name, &t) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    return t;
}

/* The context's sentence is WANT, in which @ is the second device. G, where there is
 * one, has the error, and forgets it. */
static void
says(struct et_graph *g, const char *want)
{
    const char *at = strchr(want, '@');
    char message[200];
    snprintf(message, sizeof message, "%.*s%s%s", (int)(at ? at - want : 199), want,
             at ? et_device_name(dev2) : "", at ? at + 1 : "");
    if (g)
        ok(et_graph_status(g) == ET_EINVAL, "the error sticks to the graph");
    is_str(et_error_get(cx)->message, message, "it is said: %s", message);
    et_error_clear(cx);
    if (g)
        et_graph_reset(g);
}

/* ---- operands that are NULL ---- */

/* Function, operand that is NULL (from 1), a call of it. x, i: f32 and i32 [2, 2]; v:
 * f32 [2]; p: f32 [2, 2, 2, 2]. */
#define NULL_CALLS(X)                                                                  \
    X(et_reshape, 1, et_reshape(g, NULL, 1, n))                                        \
    X(et_permute, 1, et_permute(g, NULL, axes))                                        \
    X(et_transpose, 1, et_transpose(g, NULL, 0, 1))                                    \
    X(et_expand, 1, et_expand(g, NULL, 1, n))                                          \
    X(et_slice, 1, et_slice(g, NULL, 0, 0, 1, 1))                                      \
    X(et_detach, 1, et_detach(g, NULL))                                                \
    X(et_relu, 1, et_relu(g, NULL))                                                    \
    X(et_add, 1, et_add(g, NULL, x))                                                   \
    X(et_add, 2, et_add(g, x, NULL))                                                   \
    X(et_add_scalar, 1, et_add_scalar(g, NULL, 1))                                     \
    X(et_clamp, 1, et_clamp(g, NULL, 0, 1))                                            \
    X(et_cast, 1, et_cast(g, NULL, ET_F64))                                            \
    X(et_where, 1, et_where(g, NULL, x, x))                                            \
    X(et_where, 2, et_where(g, x, NULL, x))                                            \
    X(et_where, 3, et_where(g, x, x, NULL))                                            \
    X(et_sum, 1, et_sum(g, NULL, 0, false))                                            \
    X(et_mean, 1, et_mean(g, NULL, 0, false))                                          \
    X(et_amax, 1, et_amax(g, NULL, 0, false))                                          \
    X(et_var, 1, et_var(g, NULL, 0, false, false))                                     \
    X(et_sum_squares, 1, et_sum_squares(g, NULL))                                      \
    X(et_norm2, 1, et_norm2(g, NULL))                                                  \
    X(et_segment_sum_squares, 1, et_segment_sum_squares(g, NULL, i))                   \
    X(et_segment_sum_squares, 2, et_segment_sum_squares(g, x, NULL))                   \
    X(et_argmax, 1, et_argmax(g, NULL, 0))                                             \
    X(et_topk, 1, et_topk(g, NULL, 1, NULL))                                           \
    X(et_sum_to, 1, et_sum_to(g, NULL, 1, n))                                          \
    X(et_matmul, 1, et_matmul(g, NULL, x, false, false))                               \
    X(et_matmul, 2, et_matmul(g, x, NULL, false, false))                               \
    X(et_linear, 1, et_linear(g, NULL, x, NULL))                                       \
    X(et_linear, 2, et_linear(g, x, NULL, NULL))                                       \
    X(et_conv2d, 1, et_conv2d(g, NULL, p, NULL, NULL))                                 \
    X(et_conv2d, 2, et_conv2d(g, p, NULL, NULL, NULL))                                 \
    X(et_conv_transpose2d, 1, et_conv_transpose2d(g, NULL, p, NULL, NULL))             \
    X(et_conv_transpose2d, 2, et_conv_transpose2d(g, p, NULL, NULL, NULL))             \
    X(et_sdpa, 1, et_sdpa(g, NULL, p, p, NULL, false, 0))                              \
    X(et_sdpa, 2, et_sdpa(g, p, NULL, p, NULL, false, 0))                              \
    X(et_sdpa, 3, et_sdpa(g, p, p, NULL, NULL, false, 0))                              \
    X(et_max_pool2d, 1, et_max_pool2d(g, NULL, &pool))                                 \
    X(et_avg_pool2d, 1, et_avg_pool2d(g, NULL, &pool))                                 \
    X(et_adaptive_avg_pool2d, 1, et_adaptive_avg_pool2d(g, NULL, 1, 1))                \
    X(et_resize2d, 1, et_resize2d(g, NULL, ET_RESIZE_NEAREST, 1, 1))                   \
    X(et_resize2d_by, 1, et_resize2d_by(g, NULL, ET_RESIZE_NEAREST, 1, 1, 1))          \
    X(et_all_reduce, 1, et_all_reduce(g, NULL, NULL))                                  \
    X(et_batch_norm, 1, et_batch_norm(g, NULL, NULL, NULL, 0, NULL, NULL))             \
    X(et_batch_norm_eval, 1, et_batch_norm_eval(g, NULL, NULL, NULL, v, v, 0))         \
    X(et_batch_norm_eval, 2, et_batch_norm_eval(g, x, NULL, NULL, NULL, v, 0))         \
    X(et_batch_norm_eval, 3, et_batch_norm_eval(g, x, NULL, NULL, v, NULL, 0))         \
    X(et_layer_norm, 1, et_layer_norm(g, NULL, NULL, NULL, 1, 0))                      \
    X(et_group_norm, 1, et_group_norm(g, NULL, NULL, NULL, 1, 0))                      \
    X(et_softmax, 1, et_softmax(g, NULL, 0))                                           \
    X(et_log_softmax, 1, et_log_softmax(g, NULL, 0))                                   \
    X(et_cross_entropy, 1, et_cross_entropy(g, NULL, i, NULL, -100, ET_REDUCE_SUM))    \
    X(et_cross_entropy, 2, et_cross_entropy(g, x, NULL, NULL, -100, ET_REDUCE_SUM))    \
    X(et_bce_with_logits, 1, et_bce_with_logits(g, NULL, x, ET_REDUCE_SUM))            \
    X(et_bce_with_logits, 2, et_bce_with_logits(g, x, NULL, ET_REDUCE_SUM))            \
    X(et_one_hot, 1, et_one_hot(g, NULL, 2))                                           \
    X(et_take, 1, et_take(g, NULL, i, 0))                                              \
    X(et_take, 2, et_take(g, x, NULL, 0))                                              \
    X(et_embedding, 1, et_embedding(g, NULL, i))                                       \
    X(et_embedding, 2, et_embedding(g, x, NULL))                                       \
    X(et_gather, 1, et_gather(g, NULL, i, 0))                                          \
    X(et_gather, 2, et_gather(g, x, NULL, 0))                                          \
    X(et_scatter_add, 1, et_scatter_add(g, NULL, i, 0, 2))                             \
    X(et_scatter_add, 2, et_scatter_add(g, x, NULL, 0, 2))                             \
    X(et_contiguous, 1, et_contiguous(g, NULL, ET_ROW_MAJOR))                          \
    X(et_concat, 2, et_concat(g, pair, 2, 0))                                          \
    X(et_pad, 1, et_pad(g, NULL, n, n, 0))                                             \
    X(et_flip, 1, et_flip(g, NULL, 1))                                                 \
    X(et_dropout, 1, et_dropout(g, NULL, i, 0.5, 0))                                   \
    X(et_dropout, 2, et_dropout(g, x, NULL, 0.5, 0))                                   \
    X(et_image_batch, 1, et_image_batch(g, NULL, i, x, 1, 1))                          \
    X(et_image_batch, 2, et_image_batch(g, p, NULL, x, 1, 1))                          \
    X(et_image_batch, 3, et_image_batch(g, p, i, NULL, 1, 1))                          \
    X(et_image_augment, 1, et_image_augment(g, NULL, i, x, 1, 1))                      \
    X(et_image_augment, 2, et_image_augment(g, p, NULL, x, 1, 1))                      \
    X(et_image_augment, 3, et_image_augment(g, p, i, NULL, 1, 1))                      \
    X(et_smooth_labels, 1, et_smooth_labels(g, NULL, i, 0.1))                          \
    X(et_smooth_labels, 2, et_smooth_labels(g, x, NULL, 0.1))                          \
    X(et_mixup_batch, 1, et_mixup_batch(g, NULL, x, i, v))                             \
    X(et_mixup_batch, 2, et_mixup_batch(g, x, NULL, i, v))                             \
    X(et_mixup_batch, 3, et_mixup_batch(g, x, x, NULL, v))                             \
    X(et_mixup_batch, 4, et_mixup_batch(g, x, x, i, NULL))                             \
    X(et_compute_ema, 1, et_compute_ema(g, NULL, x, 0.1))                              \
    X(et_compute_ema, 2, et_compute_ema(g, x, NULL, 0.1))                              \
    X(et_resize_batch, 1, et_resize_batch(g, NULL, ET_RESIZE_NEAREST, 1, 1, 1))        \
    X(et_crop_batch, 1, et_crop_batch(g, NULL, i, i))                                  \
    X(et_crop_batch, 2, et_crop_batch(g, p, NULL, i))                                  \
    X(et_crop_batch, 3, et_crop_batch(g, p, i, NULL))                                  \
    X(et_forward, 1, et_forward(&(struct et_forward){.g = g}, NULL, NULL))

static void
test_null_operands(void)
{
    static const int64_t n[ET_MAX_DIMS] = {1, 1, 1, 1};
    static const int axes[] = {0};
    const struct et_pool2d_attr pool = {.kernel = {1, 1}};
    struct et_graph *g = graph_on(dev);
    struct et_tensor *x = leaf_on(dev, ET_F32, 2, "x"),
                     *i = leaf_on(dev, ET_I32, 2, "i");
    struct et_tensor *v = leaf_on(dev, ET_F32, 1, "v"),
                     *p = leaf_on(dev, ET_F32, 4, "p");
    struct et_tensor *const pair[] = {x, NULL};
    char want[100];
#define TRY(name, operand, call)                                                       \
    ok(!(call) && et_graph_status(g) == ET_EINVAL,                                     \
       #name " without operand %d is an error of the graph", operand);                 \
    snprintf(want, sizeof want, #name ": operand %d is NULL", operand);                \
    is_str(et_error_get(cx)->message, want, "which names the function");               \
    et_error_clear(cx);                                                                \
    et_graph_reset(g);
    NULL_CALLS(TRY)
#undef TRY
    ok(!et_matmul(g, x, v, false, true) && et_graph_status(g) == ET_ESHAPE,
       "an error of another kind sticks");
    et_error_clear(cx);
    ok(!et_add(g, NULL, x) && !et_linear(g, x, NULL, NULL) &&
           et_graph_status(g) == ET_ESHAPE && !et_error_get(cx)->message[0],
       "NULL on a graph that has an error says nothing more");
    et_graph_free(&g);
    et_tensor_free(&x);
    et_tensor_free(&i);
    et_tensor_free(&v);
    et_tensor_free(&p);
}

static void
test_null_elsewhere(void)
{
    struct et_graph *g = graph_on(dev);
    struct et_tensor *x = leaf_on(dev, ET_F32, 1, "x"), *grad;
    struct et_tensor *const none = NULL;
    double number;
    et_assign(g, NULL, x);
    says(g, "et_assign: the leaf is NULL");
    et_assign(g, x, NULL);
    says(g, "et_assign: the value is NULL");
    ok(et_grad(g, NULL, &x, 1, &grad) == ET_EINVAL, "a loss that is NULL is refused");
    says(g, "et_grad: the output is NULL");
    ok(et_grad(g, et_sum(g, x, 0, false), &none, 1, &grad) == ET_EINVAL,
       "and so is a parameter");
    says(g, "et_grad: parameter 1 is NULL");
    ok(et_item(g, NULL, &number) == ET_EINVAL, "no number is read of NULL");
    says(NULL, "et_item: the tensor is NULL");
    struct et_tensor *const parts[] = {NULL, x};
    struct et_tensor *flat =
        et_pack(g, parts, (const int64_t[]){0, 64}, 2, 128, ET_F32);
    ok(flat && et_eval(g, &flat, 1) == ET_OK, "et_pack takes NULL, as it says");
    et_graph_free(&g);
    et_tensor_free(&x);
}

/* Whoever asks a graph that has an error for something is given the error. */
static void
test_failed_graph(void)
{
    struct et_graph *g = graph_on(dev);
    struct et_tensor *x = leaf_on(dev, ET_F32, 1, "x"), *grad = x;
    struct et_tensor *sum = et_sum(g, x, 0, false);
    struct et_plan_info info;
    double number = 7;
    ok(et_eval(g, &sum, 1) == ET_OK, "a sum is evaluated");
    et_add(g, NULL, x);
    const struct {
        et_status status;
        const char *what;
    } rows[] = {
        {et_graph_status(g), "et_graph_status"},
        {et_item(g, sum, &number), "et_item"},
        {et_eval(g, &sum, 1), "et_eval"},
        {et_eval(g, NULL, 0), "et_eval of nothing"},
        {et_eval_keeping_casts(g), "et_eval_keeping_casts"},
        {et_plan(g, &sum, 1, &info), "et_plan"},
        {et_grad(g, sum, &x, 1, &grad), "et_grad"},
        {et_grad_from(g, sum, NULL, &x, 1, &grad), "et_grad_from"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        is_int(rows[i].status, ET_EINVAL, "%s gives the error of the graph",
               rows[i].what);
    ok(number == 0, "and no number");
    et_error_clear(cx);
    et_graph_abandon(g);
    ok(et_item(g, sum, &number) == ET_OK, "until it is forgotten");
    et_graph_free(&g);
    et_tensor_free(&x);
}

/* Of any op: its results are NULL where it has none, on a graph that has an error
 * too. */
static void
test_refused_results(void)
{
    enum { MOST = 16 };
    struct et_graph *g = graph_on(dev);
    struct et_tensor *x = leaf_on(dev, ET_F32, 1, "x"), *out[MOST];
    int tried = 0, left = 0;
    for (int id = 0; id < ET_OP_COUNT; id++) {
        const struct et_op *op = et_op_get((enum et_op_id)id);
        if (op->min_in < 1 || op->n_out > MOST)
            continue;
        for (int again = 0; again < 2; again++) {
            for (int i = 0; i < op->n_out; i++)
                out[i] = x;
            left += et_apply(g, op->id, NULL, 0, NULL, 0, out) != NULL;
            for (int i = 0; i < op->n_out; i++)
                left += out[i] != NULL;
            tried++;
        }
        et_error_clear(cx);
        et_graph_reset(g);
    }
    ok(tried > 100 && left == 0, "results of ops that are refused are NULL (%d, of %d)",
       left, tried);
    et_graph_free(&g);
    et_tensor_free(&x);
}

/* ---- what belongs elsewhere ---- */

static void
test_other_graph(void)
{
    struct et_graph *g = graph_on(dev), *other = graph_on(dev), *far = graph_on(dev2);
    struct et_tensor *x = leaf_on(dev, ET_F32, 1, "x"),
                     *y = leaf_on(dev2, ET_F32, 1, "y");
    struct et_tensor *theirs = et_exp(other, x), *grad;
    ok(!et_add(g, x, theirs), "a value of another graph is no operand");
    says(g, "et_add: operand 2 is a value of another graph (on the device 'ref', this "
            "one is on 'ref')");
    ok(et_eval(g, &theirs, 1) == ET_EINVAL, "nor is it evaluated");
    says(NULL, "et_eval: tensor 1 is a value of another graph (on the device 'ref', "
               "this one is on 'ref')");
    et_assign(g, x, theirs);
    says(g, "et_assign: the value is a value of another graph (on the device 'ref', "
            "this one is on 'ref')");
    ok(et_grad(g, et_sum(other, theirs, 0, false), &x, 1, &grad) == ET_EINVAL,
       "nor has it a gradient here");
    says(g, "et_grad: the output is a value of another graph (on the device 'ref', "
            "this one is on 'ref')");
    ok(et_grad(g, et_sum(g, x, 0, false), &theirs, 1, &grad) == ET_EINVAL,
       "nor is it a parameter");
    says(g, "et_grad: parameter 1 is a value of another graph (on the device 'ref', "
            "this one is on 'ref')");
    ok(!et_relu(g, et_exp(far, y)), "nor is one of another device");
    says(g, "et_relu: operand 1 is a value of another graph (on the device '@', this "
            "one is on 'ref')");

    struct et_tensor *old = et_exp(g, x);
    et_graph_reset(g);
    ok(!et_relu(g, old), "a value of an earlier step is no operand");
    says(g, "et_relu: operand 1 is a value of a step that has ended");
    ok(et_exp(other, theirs) && et_eval(other, &theirs, 1) == ET_OK,
       "resetting one graph leaves the values of others as they are");
    et_graph_free(&far);
    et_graph_free(&other);
    et_graph_free(&g);
    et_tensor_free(&x);
    et_tensor_free(&y);
}

static void
test_other_device(void)
{
    struct et_graph *g = graph_on(dev);
    struct et_tensor *x = leaf_on(dev, ET_F32, 1, "x"),
                     *y = leaf_on(dev2, ET_F32, 1, "y");
    struct et_tensor *unnamed = leaf_on(dev2, ET_F32, 1, NULL), *grad;
    ok(!et_add(g, x, y), "a leaf on another device is no operand");
    says(g, "et_add: operand 2 (y) is on another device, '@'; the graph is on 'ref'");
    ok(!et_exp(g, unnamed), "nor is one without a name");
    says(g, "et_exp: operand 1 (a leaf) is on another device, '@'; the graph is on "
            "'ref'");
    et_assign(g, y, x);
    says(g, "et_assign: the leaf (y) is on another device, '@'; the graph is on 'ref'");
    et_assign(g, x, y);
    says(g, "et_assign: the value (y) is on another device, '@'; the graph is on "
            "'ref'");
    ok(et_grad(g, et_sum(g, x, 0, false), &y, 1, &grad) == ET_EINVAL,
       "nor is it a parameter");
    says(g,
         "et_grad: parameter 1 (y) is on another device, '@'; the graph is on 'ref'");
    ok(et_eval(g, &y, 1) == ET_EINVAL, "nor is it evaluated");
    says(NULL, "et_eval: tensor 1 (y) is on another device, '@'; the graph is on "
               "'ref'");
    et_graph_free(&g);
    et_tensor_free(&x);
    et_tensor_free(&y);
    et_tensor_free(&unnamed);
}

/* ---- update rules that forget a result ---- */

enum { NOTHING, P, MOMENT, BOTH, KEEPS };
static int writes; /* what the rule below does, of these */

static void
no_numbers(const void *options, const struct et_optimizer_group *group, int64_t n,
           double *hyper)
{
    (void)options;
    (void)group;
    (void)n;
    hyper[0] = 0.5;
}

static void
forget(struct et_graph *g, struct et_update *u)
{
    if (writes & P || writes == KEEPS)
        u->new_p = et_sub(g, u->p, u->grad);
    if (writes & MOMENT && writes != KEEPS)
        u->new_moment[0] = et_add(g, u->moment[0], u->grad);
    if (writes == KEEPS)
        u->new_moment[0] = u->moment[0];
}

static const char *const moments[] = {"momentum", NULL};
static const struct et_optimizer_class forgetful = {
    .info = {.name = "forgetful", .options_size = sizeof(struct et_optimizer_options)},
    .moments = moments,
    .hyper = no_numbers,
    .update = forget,
};

/* One update by a rule that writes WHAT. */
static et_status
update(struct et_graph *g, int what, float *w)
{
    static const int64_t n = 2;
    const struct et_optimizer_options options = {.lr = 1};
    struct et_param_spec spec = {.name = "w"};
    struct et_param_space *space;
    struct et_optimizer *opt;
    struct et_tensor *view;
    et_desc_init(&spec.desc, ET_F32, 1, &n, ET_ROW_MAJOR);
    writes = what;
    if (et_param_space_new(cx, dev, &spec, 1, &space) != ET_OK ||
        et_optimizer_new(cx, &forgetful, &options, space, &opt) != ET_OK ||
        et_param_space_view(cx, space, -1, 0, &view) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    struct et_tensor *grad = et_fill(g, ET_F32, 1, &n, 1);
    struct et_tensor *flat = et_param_space_pack(g, space, &grad);
    et_status status = et_optimizer_update(g, opt, flat, NULL, NULL);
    if (status == ET_OK)
        status = et_eval(g, NULL, 0);
    if (status == ET_OK)
        status = et_tensor_read(cx, view, w, (size_t)n * sizeof *w);
    if (status == ET_OK)
        et_graph_reset(g);
    et_tensor_free(&view);
    et_optimizer_free(&opt);
    et_param_space_free(&space);
    return status;
}

static void
test_optimizer(void)
{
    struct et_graph *g = graph_on(dev);
    float w[2] = {0};
    ok(update(g, NOTHING, w) == ET_EINVAL && update(g, MOMENT, w) == ET_EINVAL,
       "an update that leaves the parameters unwritten is refused");
    says(g, "optimizer forgetful: its update does not write new_p: what stays as it is "
            "has to be assigned, too");
    ok(update(g, P, w) == ET_EINVAL, "as is one that leaves a moment unwritten");
    says(g,
         "optimizer forgetful: its update does not write new_moment of momentum: what "
         "stays as it is has to be assigned, too");
    ok(update(g, BOTH, w) == ET_OK && w[1] == -1, "one that writes all goes through");
    ok(update(g, KEEPS, w) == ET_OK && w[1] == -1,
       "and so does one that says that a moment stays");
    et_graph_free(&g);
}

/* ---- classes and options ---- */

/* A find function gives NULL for a name that it does not know. */
static void
test_unknown_names(void)
{
    static const char *const set[] = {"lr", "0.1", NULL};
    const struct et_optimizer_class *none = et_optimizer_find("adamm");
    const struct et_component *component = (const void *)none;
    struct et_module *m;
    void *made;
#define UNKNOWN(result, call, ...)                                                     \
    result = (void *)dev;                                                              \
    ok(call(cx, __VA_ARGS__) == ET_EINVAL && !result,                                  \
       #call " refuses a class that is NULL");                                         \
    says(NULL, #call ": the class is NULL: no class has the name that was looked for")
    UNKNOWN(made, et_options_new, component, set, &made);
    UNKNOWN(made, et_dataset_open, NULL, NULL, (struct et_dataset **)&made);
    UNKNOWN(made, et_model_new, NULL, NULL, NULL, (struct et_model **)&made);
    UNKNOWN(made, et_optimizer_new, none, NULL, NULL, (struct et_optimizer **)&made);
    UNKNOWN(made, et_algorithm_new, NULL, NULL, (struct et_algorithm **)&made);
    UNKNOWN(made, et_callback_new, NULL, NULL, NULL, (struct et_callback **)&made);
    UNKNOWN(made, et_metric_new, dev, NULL, NULL, (struct et_metric **)&made);
    UNKNOWN(m, et_module_new, NULL, NULL, &m);
#undef UNKNOWN
    if (et_module_new(cx, &et_sequential_class, NULL, &m) != ET_OK)
        bail("no module");
    ok(et_module_add(cx, m, NULL, NULL, NULL) == ET_EINVAL,
       "and so does et_module_add");
    et_error_clear(cx);
    et_module_free(&m);
}

static void
test_lists_of_options(void)
{
    static const char *const odd[] = {"lr", "0.1", "eps", NULL};
    static const char *const any[] = {"mean", "0.1", NULL};
    static const struct et_component plain = {.name = "plain"};
    void *made;
    ok(et_options_new(cx, &et_optimizer_find("adam")->info, odd, &made) == ET_EINVAL &&
           !made,
       "a list of options that ends with a name is refused");
    says(NULL, "adam: no text behind 'eps'");
    ok(et_options_new(cx, &plain, any, &made) == ET_EINVAL && !made,
       "and so are options of a component without any");
    says(NULL, "plain has no options, 'mean' neither");
}

/* ---- what ends too early ---- */

struct heard {
    int lines;
    char text[200];
};

static void
hear(void *data, enum et_log_level level, const char *text)
{
    struct heard *h = data;
    h->lines += level == ET_LOG_ERROR;
    snprintf(h->text, sizeof h->text, "%s", text);
}

static void
test_freed_leaf(void)
{
    struct et_graph *g = graph_on(dev), *other = graph_on(dev);
    struct et_tensor *x = leaf_on(dev, ET_F32, 1, "x"),
                     *y = leaf_on(dev, ET_F32, 1, "y");
    struct et_tensor *z = et_exp(g, x), *also = et_exp(g, y), *t = x;
    et_tensor_free(&x);
    ok(et_eval(g, &z, 1) == ET_EINVAL,
       "an evaluation does not read a leaf that was freed");
    says(NULL, "et_eval: a leaf that it reads (x) has been freed");
    ok(!et_relu(g, t), "nor can more be built on it");
    says(NULL, "et_relu: operand 1 (x) has been freed");
    et_graph_abandon(g);
    ok(et_eval(g, &also, 1) == ET_OK, "what does not depend on it is evaluated");
    et_graph_reset(g);

    x = leaf_on(dev, ET_F32, 1, "x");
    et_assign(g, x, et_exp(g, y));
    et_tensor_free(&x);
    ok(et_eval(g, NULL, 0) == ET_EINVAL, "nor does a commit write to one");
    says(NULL, "et_eval: a leaf that it reads (x) has been freed");
    et_graph_reset(g);

    x = leaf_on(dev, ET_F32, 1, "x");
    z = et_exp(g, x);
    ok(et_eval(g, &z, 1) == ET_OK, "a leaf is evaluated with");
    et_tensor_free(&x);
    struct et_tensor *w = et_relu(g, z);
    ok(et_eval(g, &w, 1) == ET_OK, "what was computed outlives the leaf");
    struct et_tensor *kept = et_exp(other, y);
    et_graph_reset(g);
    ok(et_eval(other, &kept, 1) == ET_OK, "and so do other graphs");
    et_graph_free(&other);
    et_graph_free(&g);
    et_tensor_free(&y);
}

static void
test_closing(void)
{
    struct heard heard = {0};
    struct et_ctx *own = NULL;
    struct et_device *d = NULL;
    struct et_graph *g = NULL, *g2 = NULL;
    struct et_tensor *t = NULL;
    const int64_t one = 1;
    if (et_ctx_new(&own) != ET_OK || et_device_open(own, "ref", 0, 1, &d) != ET_OK ||
        et_graph_new(own, d, &g) != ET_OK || et_graph_new(own, d, &g2) != ET_OK ||
        et_tensor_new(own, d, ET_F32, 1, &one, ET_ROW_MAJOR, NULL, &t) != ET_OK)
        bail("nothing to close");
    et_ctx_set_checks(own, true);
    et_ctx_set_log(own, ET_LOG_INFO, hear, &heard);

    et_device_close(&d);
    ok(d && heard.lines == 1, "a device is not closed before its graphs");
    is_str(
        heard.text,
        "et_device_close: 2 graphs and 1 storages of tensors on the device 'ref' are "
        "not freed",
        "which the log says, with what is left");
    is_str(et_error_get(own)->message, heard.text, "and the context, with an error");
    et_error_clear(own);
    et_graph_free(&g);
    et_graph_free(&g2);
    et_device_close(&d);
    ok(d && heard.lines == 2, "nor before its tensors");
    et_error_clear(own);
    et_ctx_free(&own);
    ok(own && heard.lines == 3, "a context is not freed before its devices");
    ok(strncmp(heard.text, "et_ctx_free: 1 open devices and ", 32) == 0,
       "which is said likewise: %s", heard.text);
    et_tensor_free(&t);
    et_device_close(&d);
    ok(!d, "then the device is closed");
    void *block = NULL;
    et_error_clear(own);
    ok(et_alloc(own, 8, &block) == ET_OK, "memory is taken");
    et_ctx_free(&own);
    is_str(heard.text, "et_ctx_free: 0 open devices and 1 blocks of memory are left",
           "and so a context with memory");
    et_free(own, block);
    et_ctx_free(&own);
    ok(!own && heard.lines == 4, "then it is freed, without a word");
}

/* A context that logs nowhere and checks nothing says nothing. */
static void
test_without_checks(void)
{
    struct et_ctx *own = NULL;
    struct et_device *d = NULL;
    struct et_tensor *t = NULL;
    const int64_t one = 1;
    if (et_ctx_new(&own) != ET_OK || et_device_open(own, "ref", 0, 1, &d) != ET_OK ||
        et_tensor_new(own, d, ET_F32, 1, &one, ET_ROW_MAJOR, NULL, &t) != ET_OK)
        bail("nothing to close");
    et_ctx_set_checks(own, false);
    struct et_alloc_stats before, after;
    struct et_graph *g = NULL;
    if (et_graph_new(own, d, &g) != ET_OK || !et_exp(g, t))
        bail("no graph");
    et_alloc_get_stats(own, &before);
    et_tensor_free(&t);
    et_alloc_get_stats(own, &after);
    is_int((int64_t)(before.live - after.live), 2,
           "without checks a leaf's handle is freed at once");
    et_graph_free(&g);
    et_device_close(&d);
    et_ctx_free(&own);
    ok(!d && !own, "and all is closed");
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK || et_device_open(cx, "ref", 0, 1, &dev) != ET_OK ||
        (et_device_open(cx, "cpu", 0, 1, &dev2) != ET_OK &&
         et_device_open(cx, "ref", 0, 1, &dev2) != ET_OK))
        bail("%s", cx ? et_error_get(cx)->message : "no context");
    et_error_clear(cx); /* a build without "cpu" */
    et_ctx_set_checks(cx, true);
    test_null_operands();
    test_null_elsewhere();
    test_failed_graph();
    test_refused_results();
    test_other_graph();
    test_other_device();
    test_optimizer();
    test_unknown_names();
    test_lists_of_options();
    test_freed_leaf();
    test_closing();
    test_without_checks();
    et_device_close(&dev2);
    et_device_close(&dev);
    et_ctx_free(&cx);
    ok(!cx && !dev && !dev2, "nothing is left at the end");
    return done();
}
