/* SPDX-License-Identifier: Apache-2.0 */
/* Layers with a device: a parameter before and after it is bound, and what it takes;
 * how large a layer says that it is, what it refuses, and what two dropouts drop. */
#include "core/graph/graph_impl.h"
#include "etude/nn.h"
#include "t/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct et_ctx *cx;
static struct et_device *dev;

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s", et_error_get(cx)->message);
}

static struct et_module *
row(void)
{
    struct et_module *m;
    must(et_module_new(cx, &et_sequential_class, NULL, &m));
    return m;
}

/* A parameter has the value that it was drawn, or given, before it was bound,
 * whatever its size (from some size on it is drawn into its place) and its order in
 * memory. */
static void
first_values(void)
{
    enum { DRAWN_IN_PLACE = 1 << 15 };
    static const struct {
        int ndim;
        int64_t shape[4];
    } shapes[] = {
        {1, {5}},
        {1, {DRAWN_IN_PLACE - 1}},
        {2, {DRAWN_IN_PLACE / 256, 256}},
        {2, {257, 300}},
        {4, {3, 5, 2, 4}},
        {4, {32, 32, 8, 4}},
        {4, {40, 33, 5, 7}},
    };
    static const struct et_init inits[] = {
        {.kind = ET_INIT_UNIFORM, .a = -2, .b = 3},
        {.kind = ET_INIT_NORMAL, .b = 0.5, .zeros = 3},
        {.kind = ET_INIT_CONSTANT, .a = 7},
    };
    int wrong = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int k = 0; k < 6; k++) {
            struct et_param p = {0};
            struct et_tensor *t;
            et_param_declare(&p, inits[k % 3], shapes[i].ndim, shapes[i].shape);
            const int64_t n = et_desc_count(&p.desc);
            float *v = calloc((size_t)n, 2 * sizeof *v);
            must(et_param_read(cx, &p, "x.weight", 17, v, n));
            for (int64_t j = 0; j < p.init.zeros; j++)
                wrong += v[j] != 0;
            for (int64_t j = 0; k >= 3 && j < n; j++)
                v[j] = 1 - v[j];
            if (k >= 3)
                must(et_param_write(cx, &p, v, n));
            must(et_tensor_new(cx, dev, ET_F32, p.desc.ndim, p.desc.shape,
                               p.desc.ndim == 4 ? ET_CHANNELS_LAST : ET_ROW_MAJOR, NULL,
                               &t));
            must(et_param_bind(cx, &p, "x.weight", 17, &t));
            must(et_param_read(cx, &p, "x.weight", 17, v + n, n));
            wrong += memcmp(v, v + n, (size_t)n * sizeof *v) != 0;
            et_tensor_free(&p.tensor);
            free(v);
        }
    is_int(wrong, 0, "a parameter is after it was bound what it was before");
}

/* Buffers begin where kernels may read 16 bytes at once, and what is bound already is
 * left where it is. */
static void
buffers(void)
{
    struct et_module *m = row();
    struct et_leaves l;
    int wrong = 0;
    must(ET_ADD(cx, m, NULL, batch_norm, .num_features = 3));
    must(ET_ADD(cx, m, NULL, batch_norm, .num_features = 7));
    must(ET_ADD(cx, m, NULL, batch_norm, .num_features = 1));
    struct et_param *bound = et_module_param(m->items[1].module, 2, NULL);
    must(et_module_bind(cx, m->items[1].module, dev, ET_BUFFER, 17));
    struct et_tensor *was = bound->tensor;
    float v[7] = {1, 2, 3, 4, 5, 6, 7}, got[7] = {0};
    must(et_param_write(cx, bound, v, 7));
    must(et_module_bind(cx, m, dev, ET_PARAM | ET_BUFFER, 17));
    ok(bound->tensor == was, "a buffer that is bound is not bound again");
    must(et_param_read(cx, bound, "x", 17, got, 7));
    ok(memcmp(v, got, sizeof v) == 0, "and keeps its value");
    must(et_module_leaves(cx, m, ET_PARAM | ET_BUFFER, &l));
    for (int i = 0; i < l.n; i++)
        wrong += (uintptr_t)et_tensor_data(l.v[i].param->tensor) % 16 != 0;
    is_int(wrong, 0, "every leaf begins at a multiple of 16 bytes");
    et_leaves_release(&l);
    et_module_free(&m);
}

/* A parameter takes what fits it, by all ways in which it is given something. */
static void
parameter_refusals(void)
{
    struct et_param p = {0}, other = {0};
    struct et_tensor *t;
    float v[8] = {0};
    et_param_declare(&p, (struct et_init){.kind = ET_INIT_CONSTANT}, ET_SHAPE(2, 3));
    et_param_declare(&other, (struct et_init){.kind = ET_INIT_CONSTANT},
                     ET_SHAPE(3, 2));
    for (int n = 5; n < 8; n++) {
        is_int(et_param_read(cx, &p, "x", 1, v, n), n == 6 ? ET_OK : ET_ESHAPE,
               "%d of 6 values are read", n);
        is_int(et_param_write(cx, &p, v, n), n == 6 ? ET_OK : ET_ESHAPE,
               "%d of 6 are written", n);
        et_error_clear(cx);
    }
    is_int(et_param_move(cx, &p, &other), ET_ESHAPE, "a value does not change shape");
    static const struct {
        enum et_dtype dtype;
        int64_t shape[2];
        et_status want;
    } rows[] = {
        {ET_F64, {2, 3}, ET_ESHAPE},
        {ET_I32, {2, 3}, ET_ESHAPE},
        {ET_F32, {3, 2}, ET_ESHAPE},
        {ET_F32, {2, 3}, ET_OK},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        must(
            (et_error_clear(cx), et_tensor_new(cx, dev, rows[i].dtype, 2, rows[i].shape,
                                               ET_ROW_MAJOR, NULL, &t)));
        is_int(et_param_bind(cx, &p, "x.weight", 17, &t), rows[i].want,
               "%s[%d,%d] as a parameter of f32[2,3]", et_dtype_name(rows[i].dtype),
               (int)rows[i].shape[0], (int)rows[i].shape[1]);
        et_tensor_free(&t);
    }
    et_tensor_free(&p.tensor);
    struct et_module *m = row();
    is_int(et_module_initializer(cx, m, "none"), ET_EINVAL, "no rule has this name");
    int missing = 0;
    for (int i = 0; et_initializer_names[i]; i++)
        missing += !strstr(et_error_get(cx)->hint, et_initializer_names[i]);
    is_int(missing, 0, "and all that there are are named");
    et_error_clear(cx);
    et_module_free(&m);
}

static int copies_left; /* until the one that fails */
static const struct et_device_table *good;

static et_status
copy_or_fail(struct et_device_handle *h, void *dst, const void *src, size_t bytes,
             struct et_stream *stream)
{
    return copies_left-- == 0 ? ET_EIO : good->copy(h, dst, src, bytes, stream);
}

/* A parameter that is bound anew takes its values along; where they cannot be read, or
 * written, it stays as it was. */
static void
bind_again(void)
{
    const float v[6] = {1, 2, 3, 4, 5, 6};
    struct et_device_table table = *dev->table;
    good = dev->table;
    table.copy = copy_or_fail;
    for (int copies = 0; copies < 3; copies++) {
        struct et_param p = {0};
        struct et_tensor *first, *t;
        float got[6] = {0};
        et_param_declare(&p, (struct et_init){.kind = ET_INIT_CONSTANT},
                         ET_SHAPE(2, 3));
        must(
            et_tensor_new(cx, dev, ET_F32, ET_SHAPE(2, 3), ET_ROW_MAJOR, NULL, &first));
        must(et_tensor_new(cx, dev, ET_F32, ET_SHAPE(2, 3), ET_ROW_MAJOR, NULL, &t));
        struct et_tensor *was = first, *next = t;
        must(et_param_bind(cx, &p, "x", 17, &first));
        must(et_param_write(cx, &p, v, 6));
        copies_left = copies;
        dev->table = &table;
        et_status status = et_param_bind(cx, &p, "x", 17, &t);
        dev->table = good;
        et_error_clear(cx);
        is_int(status, copies < 2 ? ET_EIO : ET_OK, "bound again, %s",
               copies == 0   ? "what it has cannot be read"
               : copies == 1 ? "it cannot be written"
                             : "it has another place");
        ok(p.tensor == (copies < 2 ? was : next) && t == (copies < 2 ? next : NULL),
           "... %s", copies < 2 ? "the one it had" : "which is its own now");
        must(et_param_read(cx, &p, "x", 17, got, 6));
        ok(memcmp(got, v, sizeof v) == 0, "... with its values");
        et_tensor_free(&t);
        et_tensor_free(&p.tensor);
    }
}

/* How large a layer says that its result is, for what comes in as [C,H,W], and how
 * large it is. */
static bool
layer_fits(struct et_graph *g, const struct et_module_class *class, void *options,
           bool vectors)
{
    int64_t shape[] = {6, vectors ? 0 : 5, vectors ? 0 : 8};
    const int64_t in[] = {2, shape[0], shape[1], shape[2]};
    struct et_module *m;
    struct et_tensor *x;
    struct et_forward f = {.g = g};
    if (class->adapt)
        must(class->adapt(cx, options, shape));
    must(et_module_new(cx, class, options, &m));
    must(et_module_bind(cx, m, dev, ET_PARAM | ET_BUFFER, 17));
    must(et_tensor_new(cx, dev, ET_F32, vectors ? 2 : 4, in,
                       vectors ? ET_ROW_MAJOR : ET_CHANNELS_LAST, NULL, &x));
    struct et_tensor *y = et_forward(&f, m, x);
    bool fits = y && y->desc.ndim == (shape[1] ? 4 : 2);
    for (int i = 1; fits && i < y->desc.ndim; i++)
        fits = y->desc.shape[i] == shape[i - 1];
    if (!fits)
        diag("%s: %s", class->info.name, et_error_get(cx)->message);
    et_error_clear(cx);
    et_graph_reset(g);
    et_tensor_free(&x);
    et_module_free(&m);
    return fits;
}

static void
layer_sizes(void)
{
    const struct {
        enum { IMAGES, VECTORS } come_in;
        const struct et_module_class *class;
        void *options;
    } rows[] = {
        {IMAGES, &et_conv2d_class,
         &(struct et_conv2d_options){
             .out_channels = 4, .kernel = 3, .stride = 2, .padding = 1}},
        {IMAGES, &et_conv2d_class,
         &(struct et_conv2d_options){.out_channels = 12, .kernel = 2, .dilation = 3}},
        {IMAGES, &et_conv_transpose2d_class,
         &(struct et_conv_transpose2d_options){
             .out_channels = 4, .kernel = 3, .stride = 2, .output_padding = 1}},
        {IMAGES, &et_max_pool2d_class,
         &(struct et_pool2d_options){.kernel = 2, .padding = 1, .ceil_mode = true}},
        {IMAGES, &et_avg_pool2d_class,
         &(struct et_pool2d_options){.kernel = 3, .stride = 2}},
        {IMAGES, &et_adaptive_avg_pool2d_class,
         &(struct et_adaptive_avg_pool2d_options){.height = 2, .width = 3}},
        {IMAGES, &et_adaptive_avg_pool2d_class,
         &(struct et_adaptive_avg_pool2d_options){.width = 4}},
        {IMAGES, &et_batch_norm_class, &(struct et_batch_norm_options){0}},
        {IMAGES, &et_flatten_class, NULL},
        {IMAGES, &et_relu_class, NULL},
        {IMAGES, &et_identity_class, NULL},
        {IMAGES, &et_dropout_class, &(struct et_dropout_options){.p = 0.5}},
        {VECTORS, &et_flatten_class, NULL},
        {VECTORS, &et_linear_class, &(struct et_linear_options){.out_features = 9}},
    };
    struct et_graph *g;
    must(et_graph_new(cx, dev, &g));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ok(layer_fits(g, rows[i].class, rows[i].options, rows[i].come_in == VECTORS),
           "%s: what it says of its size is so", rows[i].class->info.name);
    et_graph_free(&g);
}

/* What a layer does not do is refused, and said. */
static void
layer_refusals(void)
{
    struct et_module *m = NULL;
    for (int dilation = 2; dilation < 4; dilation++) {
        is_int(et_module_new(
                   cx, &et_avg_pool2d_class,
                   &(struct et_pool2d_options){.kernel = 2, .dilation = dilation}, &m),
               ET_EINVAL, "an average pool is not dilated, by %d either", dilation);
        is_str(et_error_get(cx)->message, "avg_pool2d has no dilation", "it is said");
        et_error_clear(cx);
    }
    for (int kernel = 1; kernel < 5; kernel++)
        for (int padding = 0; padding < 4; padding++) {
            et_status want = 2 * padding > kernel ? ET_EINVAL : ET_OK;
            is_int(et_module_new(cx, &et_max_pool2d_class,
                                 &(struct et_pool2d_options){.kernel = kernel,
                                                             .padding = padding},
                                 &m),
                   want, "a pool of %d with padding %d: %s", kernel, padding,
                   want == ET_OK ? "taken" : "refused");
            et_error_clear(cx);
            et_module_free(&m);
        }
}

/* Which elements two dropouts keep, one behind the other. */
static void
dropped(double first, double second, bool training, float *out, int n)
{
    struct et_module *m = row();
    struct et_graph *g;
    struct et_tensor *x, *rng;
    float ones[64];
    for (int i = 0; i < n; i++)
        ones[i] = 1;
    must(ET_ADD(cx, m, NULL, dropout, .p = first));
    must(ET_ADD(cx, m, NULL, dropout, .p = second));
    must(et_tensor_new(cx, dev, ET_F32, 2, (int64_t[]){1, n}, ET_ROW_MAJOR, NULL, &x));
    must(et_tensor_write(cx, x, ones, (size_t)n * sizeof *ones));
    must(et_tensor_new(cx, dev, ET_I64, 1, (int64_t[]){2}, ET_ROW_MAJOR, NULL, &rng));
    must(et_tensor_write(cx, rng, (int64_t[]){99, 5}, 2 * sizeof(int64_t)));
    must(et_graph_new(cx, dev, &g));
    struct et_forward f = {.g = g, .training = training, .rng = rng};
    struct et_tensor *y = et_forward(&f, m, x);
    must(et_eval(g, &y, 1));
    must(et_tensor_read(cx, y, out, (size_t)n * sizeof *out));
    is_int((int64_t)f.ordinal, 2, "both dropouts are counted, with p %g and %g", first,
           second);
    et_graph_free(&g);
    et_tensor_free(&x);
    et_tensor_free(&rng);
    et_module_free(&m);
}

static void
dropouts(void)
{
    enum { N = 64 };
    float first[N], second[N], both[N], none[N];
    int wrong = 0, kept = 0;
    dropped(0.5, 0, true, first, N);
    dropped(0, 0.25, true, second, N);
    dropped(0.5, 0.25, true, both, N);
    dropped(0.5, 0.25, false, none, N);
    for (int i = 0; i < N; i++) {
        wrong += fabsf(both[i] - first[i] * second[i]) > 1e-6f;
        kept += both[i] != 0;
        wrong += none[i] != 1;
    }
    ok(wrong == 0 && kept > 0 && kept < N,
       "each drops what it drops whatever the other does; none in an evaluation");
}

/* Layers that are put in the place of others, with what they are made from. */
#define STAND_INS(X)                                                                   \
    X(blur_conv2d, conv)                                                               \
    X(blur_max_pool2d, pool)                                                           \
    X(squeeze_excite_conv2d, conv)                                                     \
    X(ghost_batch_norm, batchnorm)                                                     \
    X(factorized_conv2d, layer)                                                        \
    X(factorized_linear, layer)                                                        \
    X(standardized_conv2d, conv)                                                       \
    X(low_precision_layer_norm, norm)                                                  \
    X(low_precision_group_norm, norm)                                                  \
    X(bert_gated_output, output)

/* None is made from nothing, or from a layer of another kind. */
static void
stand_ins(void)
{
    struct et_module *other, *m = NULL;
    must(ET_NEW(cx, &other, dropout, .p = 0.5));
#define TRY(name, of)                                                                  \
    ok(ET_NEW(cx, &m, name) == ET_EINVAL && !m &&                                      \
           strstr(et_error_get(cx)->message, #name " is made from a"),                 \
       #name " is not made from nothing");                                             \
    et_error_clear(cx);                                                                \
    ok(ET_NEW(cx, &m, name, .of = other) == ET_EINVAL && !m &&                         \
           strstr(et_error_get(cx)->message, #name " is made from a"),                 \
       #name " is not made from a dropout");                                           \
    et_error_clear(cx);
    STAND_INS(TRY)
#undef TRY
    et_module_free(&other);
}

int
main(void)
{
    must(et_ctx_new(&cx));
    must(et_device_open(cx, "ref", 0, 1, &dev));
    first_values();
    buffers();
    parameter_refusals();
    bind_again();
    layer_sizes();
    layer_refusals();
    dropouts();
    stand_ins();
    et_device_close(&dev);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "every block is given back");
    et_ctx_free(&cx);
    return done();
}
