/* SPDX-License-Identifier: Apache-2.0 */
/* Layers made of others, in the cases that most models do not have: what takes the
 * place of a layer takes all of it, statistics of two values, a block that a step
 * leaves out, layers that are used twice. */
#include "etude/nn.h"
#include "t/tap.h"

#include <stdio.h>
#include <string.h>

#include "core/modules/kv_cache.h"

static struct et_ctx *cx;
static struct et_device *dev;
static struct et_graph *g;

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s", et_error_get(cx)->message);
}

static struct et_tensor *
leaf(int ndim, const int64_t *shape, const float *values)
{
    struct et_tensor *t;
    must(et_tensor_new(cx, dev, ET_F32, ndim, shape,
                       ndim == 4 ? ET_CHANNELS_LAST : ET_ROW_MAJOR, NULL, &t));
    if (values)
        must(et_tensor_write(cx, t, values, et_desc_bytes(&t->desc)));
    return t;
}

/* ---- what takes a layer's place ---- */

static void
test_blurred(void)
{
    for (int last = 0; last < 2; last++) {
        struct et_module *conv, *m;
        must(ET_NEW(cx, &conv, conv2d, .in_channels = 2, .out_channels = 3, .kernel = 3,
                    .stride = 2, .padding = 1));
        must(et_module_bind(cx, conv, dev, ET_PARAM, 17));
        struct et_tensor *weight = ((struct et_conv2d_module *)conv)->weight.tensor;
        struct et_tensor *bias = ((struct et_conv2d_module *)conv)->bias.tensor;
        must(ET_NEW(cx, &m, blur_conv2d, .conv = conv, .blur_last = last));
        struct et_blur_conv2d_module *b = (struct et_blur_conv2d_module *)m;
        struct et_conv2d_module *inner = (struct et_conv2d_module *)b->conv;
        ok(inner->weight.tensor == weight && inner->bias.tensor == bias && bias,
           "a convolution with a blur %s it keeps its weights and its bias",
           last ? "behind" : "before");
        is_int(b->blur_filter.desc.shape[0], last ? 3 : 2,
               "the blur is of the channels that it meets");
        et_module_free(&m);
        et_module_free(&conv);
    }
}

static void
test_groups(void)
{
    static const struct {
        int64_t in, out, groups;
        bool fits;
    } rows[] = {{4, 8, 4, true}, {4, 6, 4, false}, {6, 4, 4, false}, {6, 9, 3, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int up = 0; up < 2; up++) {
            struct et_module *m = NULL;
            et_status status =
                up ? ET_NEW(cx, &m, conv_transpose2d, .in_channels = rows[i].in,
                            .out_channels = rows[i].out, .kernel = 3,
                            .groups = rows[i].groups)
                   : ET_NEW(cx, &m, conv2d, .in_channels = rows[i].in,
                            .out_channels = rows[i].out, .kernel = 3,
                            .groups = rows[i].groups);
            is_int(status, rows[i].fits ? ET_OK : ET_EINVAL,
                   "%d to %d channels in %d groups%s: %s", (int)rows[i].in,
                   (int)rows[i].out, (int)rows[i].groups, up ? ", transposed" : "",
                   rows[i].fits ? "taken" : "refused");
            et_error_clear(cx);
            et_module_free(&m);
        }
}

/* What a step leaves out is left out whole, whatever a layer of it has become. */
static void
test_gates(void)
{
    const struct et_gate gate = {.at = 0};
    struct et_module *conv, *m;
    must(ET_NEW(cx, &conv, conv2d, .in_channels = 8, .out_channels = 8, .kernel = 3));
    struct et_conv2d_module *old = (struct et_conv2d_module *)conv;
    old->weight.gate = old->bias.gate = &gate;
    must(ET_NEW(cx, &m, factorized_conv2d, .layer = conv, .latent = 2));
    struct et_leaves l;
    must(et_module_leaves(cx, m, ET_PARAM, &l));
    is_int(l.n, 3, "a factorised convolution has two filters and a bias");
    for (int i = 0; i < l.n; i++)
        ok(l.v[i].param->gate == &gate, "%s is of the layer's part", l.v[i].name);
    et_leaves_release(&l);
    et_module_free(&m);
    must(ET_NEW(cx, &m, squeeze_excite_conv2d, .conv = conv, .latent_channels = 2));
    must(et_module_leaves(cx, m, ET_PARAM, &l));
    int without = 0;
    for (int i = 0; i < l.n; i++)
        without += l.v[i].param->gate != &gate;
    is_int(without, 0, "so are all %d of one with squeeze and excitation", l.n);
    et_leaves_release(&l);
    et_module_free(&m);
    et_module_free(&conv);
}

/* ---- statistics ---- */

/* Batch norm of N samples of 2 channels and PLACES places: the running statistics. */
static void
test_running(int64_t n, int64_t places)
{
    float x[24], got[2];
    double mean[2] = {0}, var[2] = {0};
    const int64_t count = n * places;
    for (int i = 0; i < 2 * count; i++)
        x[i] = (float)(i * i % 7);
    /* [N,C,L]: row-major */
    for (int c = 0; c < 2; c++) {
        for (int64_t i = 0; i < count; i++)
            mean[c] += (double)x[(i / places * 2 + c) * places + i % places];
        mean[c] /= (double)count;
        for (int64_t i = 0; i < count; i++) {
            double d = (double)x[(i / places * 2 + c) * places + i % places] - mean[c];
            var[c] += d * d / (double)(count - 1);
        }
    }
    struct et_module *m;
    must(ET_NEW(cx, &m, batch_norm, .num_features = 2, .momentum = 0.25));
    must(et_module_bind(cx, m, dev, ET_PARAM | ET_BUFFER, 17));
    struct et_batch_norm_module *bn = (struct et_batch_norm_module *)m;
    struct et_tensor *in = leaf(3, (const int64_t[]){n, 2, places}, x);
    struct et_forward f = {.g = g, .training = true};
    struct et_tensor *y = et_forward(&f, m, in);
    must(et_eval(g, &y, 1));
    must(et_tensor_read(cx, bn->running_mean.tensor, got, sizeof got));
    is_near(got[0], 0.25 * mean[0], 1e-6, "%d by %d: the running mean", (int)n,
            (int)places);
    is_near(got[1], 0.25 * mean[1], 1e-6, "of each channel");
    must(et_tensor_read(cx, bn->running_var.tensor, got, sizeof got));
    is_near(got[0], 0.75 + 0.25 * var[0], 1e-5, "the running variance is unbiased");
    is_near(got[1], 0.75 + 0.25 * var[1], 1e-5, "of each channel");
    et_graph_reset(g);
    et_tensor_free(&in);
    et_module_free(&m);
}

/* A batch norm behind a block that this step leaves out follows its batch, and those
 * in the block stay. */
static void
test_behind_gate(void)
{
    enum { C = 4 };
    float x[2 * C * 4], closed = 1, inner[C], outer[C];
    struct et_module *m;
    for (int i = 0; i < 2 * C * 4; i++)
        x[i] = (float)(i * i % 11);
    must(et_module_new(cx, &et_sequential_class, NULL, &m));
    must(ET_ADD(cx, m, NULL, bottleneck, .in_channels = C, .channels = 1));
    must(ET_ADD(cx, m, NULL, batch_norm, .num_features = C));
    must(et_module_bind(cx, m, dev, ET_PARAM | ET_BUFFER, 17));
    struct et_bottleneck_module *b = (struct et_bottleneck_module *)m->items[0].module;
    struct et_batch_norm_module *within = (struct et_batch_norm_module *)b->bn3;
    struct et_batch_norm_module *behind =
        (struct et_batch_norm_module *)m->items[1].module;
    struct et_gate gate = {.closed = leaf(1, (const int64_t[]){1}, &closed)};
    b->gate = &gate;
    struct et_tensor *in = leaf(4, (const int64_t[]){2, C, 2, 2}, x);
    struct et_forward f = {.g = g, .training = true};
    struct et_tensor *y = et_forward(&f, m, in);
    ok(!f.gate, "behind a block nothing is of it");
    must(et_eval(g, &y, 1));
    must(et_tensor_read(cx, within->running_mean.tensor, inner, sizeof inner));
    must(et_tensor_read(cx, behind->running_mean.tensor, outer, sizeof outer));
    int stayed = 0, moved = 0;
    for (int c = 0; c < C; c++) {
        stayed += inner[c] == 0;
        moved += outer[c] != 0;
    }
    is_int(stayed, C, "a block that a step leaves out keeps its statistics");
    is_int(moved, C, "the layer behind it follows the batch");
    et_graph_reset(g);
    et_tensor_free(&in);
    et_tensor_free(&gate.closed);
    et_module_free(&m);
}

/* ---- sizes, first values, moves ---- */

/* A norm takes as many features as it is told to, or as come in. */
static void
test_features(void)
{
    static const struct et_module_class *const norms[] = {
        &et_batch_norm_class, &et_layer_norm_class, &et_group_norm_class};
    for (int i = 0; i < 3; i++)
        for (int64_t own = 0; own <= 5; own += 5) {
            struct et_batch_norm_options b = {.num_features = own};
            struct et_layer_norm_options l = {.features = own};
            struct et_group_norm_options g_ = {.num_groups = 1, .num_channels = own};
            void *options = i == 0 ? (void *)&b : i == 1 ? (void *)&l : (void *)&g_;
            int64_t shape[3] = {7, 0, 0};
            must(norms[i]->adapt(cx, options, shape));
            is_int(i == 0   ? b.num_features
                   : i == 1 ? l.features
                            : g_.num_channels,
                   own ? own : 7, "%s has %s features", norms[i]->info.name,
                   own ? "its own" : "as many");
        }
}

/* What a rule says of a batch norm is of its weight; its bias begins as 0. */
static void
test_norm_rules(void)
{
    static const struct {
        const char *name;
        enum et_init_kind kind;
        bool changes;
    } rows[] = {{"bn_ones", ET_INIT_CONSTANT, true},
                {"bn_uniform", ET_INIT_UNIFORM, true},
                {"kaiming_normal", ET_INIT_CONSTANT, false}};
    for (int i = 0; i < 3; i++) {
        struct et_module *m;
        must(ET_NEW(cx, &m, batch_norm, .num_features = 3));
        struct et_batch_norm_module *b = (struct et_batch_norm_module *)m;
        b->weight.init = b->bias.init = (struct et_init){ET_INIT_CONSTANT, .a = 9};
        must(et_module_initializer(cx, m, rows[i].name));
        ok(b->weight.init.kind == rows[i].kind &&
               (b->weight.init.a != 9) == rows[i].changes &&
               b->bias.init.kind == ET_INIT_CONSTANT &&
               b->bias.init.a == (rows[i].changes ? 0 : 9),
           "%s %s a batch norm", rows[i].name, rows[i].changes ? "is for" : "leaves");
        et_module_free(&m);
    }
}

/* A parameter that moves is the same in its new place. */
static void
test_moved(void)
{
    const struct et_gate gate = {.at = 3};
    const float v[] = {1, 2, 3, 4, 5, 6};
    float got[6];
    struct et_param from = {0}, to = {0}, other = {0};
    et_param_declare(&from, (struct et_init){.a = 1}, ET_SHAPE(2, 3));
    et_param_declare(&to, (struct et_init){.a = 2}, ET_SHAPE(2, 3));
    et_param_declare(&other, (struct et_init){.a = 2}, ET_SHAPE(3, 2));
    must(et_param_write(cx, &from, v, 6));
    from.requires_grad = false;
    from.gate = &gate;
    from.init.a = 7;
    is_int(et_param_move(cx, &other, &from), ET_ESHAPE, "not to one of another shape");
    et_error_clear(cx);
    must(et_param_move(cx, &to, &from));
    must(et_param_read(cx, &to, "to", 1, got, 6));
    ok(memcmp(got, v, sizeof got) == 0 && !to.requires_grad && to.gate == &gate &&
           to.init.a == 7 && !from.value,
       "a parameter moves with its values, its gate, and whether it is trained");
    et_free(cx, to.value);
}

/* Averages of a padded image count what is outside as zeros. */
static void
test_border(void)
{
    const float x[] = {4, 4, 4, 4};
    float y[9];
    struct et_module *m;
    must(et_module_new(
        cx, &et_avg_pool2d_class,
        &(struct et_pool2d_options){.kernel = 2, .stride = 1, .padding = 1}, &m));
    struct et_tensor *in = leaf(4, (const int64_t[]){1, 1, 2, 2}, x);
    struct et_forward f = {.g = g};
    struct et_tensor *out = et_forward(&f, m, in);
    must(et_eval(g, &out, 1));
    must(et_tensor_read(cx, out, y, sizeof y));
    ok(y[0] == 1 && y[1] == 2 && y[4] == 4 && y[8] == 1,
       "a corner has a quarter, a side a half of what is inside");
    et_graph_reset(g);
    et_tensor_free(&in);
    et_module_free(&m);
}

/* What a residual block gives is never negative: it ends in a ReLU. */
static void
test_blocks(void)
{
    float x[2 * 4 * 9], y[2 * 4 * 9];
    for (int i = 0; i < 2 * 4 * 9; i++)
        x[i] = (float)(i * i % 13) - 8;
    for (int k = 0; k < 2; k++) {
        struct et_module *m;
        int negative = 0, positive = 0;
        if (k == 0)
            must(ET_NEW(cx, &m, basic_block, .in_channels = 4, .channels = 4));
        else
            must(ET_NEW(cx, &m, bottleneck, .in_channels = 4, .channels = 1));
        must(et_module_bind(cx, m, dev, ET_PARAM | ET_BUFFER, 17));
        struct et_tensor *in = leaf(4, (const int64_t[]){2, 4, 3, 3}, x);
        struct et_forward f = {.g = g};
        struct et_tensor *out = et_forward(&f, m, in);
        must(et_eval(g, &out, 1));
        must(et_tensor_read(cx, out, y, sizeof y));
        for (int i = 0; i < 2 * 4 * 9; i++) {
            negative += y[i] < 0;
            positive += y[i] > 0;
        }
        ok(negative == 0 && positive > 0, "%s gives what is not negative",
           m->type->info.name);
        et_graph_reset(g);
        et_tensor_free(&in);
        et_module_free(&m);
    }
}

/* ---- keys and values that are kept ---- */

static void
test_kept(void)
{
    struct eti_kv_cache *c;
    struct et_module *m;
    must(et_module_new(cx, &et_sequential_class, NULL, &m));
    must(ET_ADD(cx, m, NULL, attention, .d_model = 4, .n_heads = 2));
    must(ET_ADD(cx, m, NULL, attention, .d_model = 4, .n_heads = 2));
    must(eti_kv_cache_new(cx, dev, m, 8, &c));
    ok(c, "two attentions have their keys and values kept");
    struct et_tensor *at;
    must(et_tensor_new(cx, dev, ET_I32, 1, (const int64_t[]){1}, ET_ROW_MAJOR, NULL,
                       &at));
    is_int(eti_kv_keys(g, 1), 1, "without a cache a token sees what is given");
    for (int text = 0; text < 2; text++) {
        eti_kv_fill(g, c);
        ok(eti_kv_keys(g, 3) == 3 && !eti_kv_hide(g, NULL),
           "text %d begins with its own tokens", text);
        eti_kv_go_on(g, c, at);
        ok(eti_kv_keys(g, 1) == 8 && eti_kv_hide(g, NULL),
           "and goes on with those that are kept");
        eti_kv_end(g);
        is_int(eti_kv_keys(g, 1), 1, "until its end");
    }
    et_graph_reset(g);
    et_tensor_free(&at);
    eti_kv_cache_free(&c);
    et_module_free(&m->items[1].module);
    m->items[1].module = et_module_ref(m->items[0].module);
    must(eti_kv_cache_new(cx, dev, m, 8, &c));
    ok(!c, "one that is used twice has not");
    et_module_free(&m->items[1].module);
    must(ET_NEW(cx, &m->items[1].module, batch_norm, .num_features = 4));
    must(eti_kv_cache_new(cx, dev, m, 8, &c));
    ok(!c, "nor has one beside a layer that mixes positions");
    et_module_free(&m);
}

/* ---- sizes ---- */

static void
refused(const char *layer, const char *size, et_status status, struct et_module *m)
{
    char want[64];
    const char *got = status != ET_OK ? et_error_get(cx)->message : "it is made";
    snprintf(want, sizeof want, "needs %s >= 1, not 0", size);
    ok(status == ET_EINVAL && !m && strstr(got, want), "%s without %s is refused: %s",
       layer, size, got);
    et_error_clear(cx);
    et_module_free(&m);
}

#define WITHOUT(layer, size, ...)                                                      \
    do {                                                                               \
        struct et_module *m = NULL;                                                    \
        const et_status status = ET_NEW(cx, &m, layer, __VA_ARGS__);                   \
        refused(#layer, #size, status, m);                                             \
    } while (0)

static void
test_sizes(void)
{
    struct et_module *norm;
    WITHOUT(attention, d_model, .n_heads = 2);
    WITHOUT(attention, n_heads, .d_model = 8);
    WITHOUT(batch_norm, num_features, .eps = 1e-5);
    WITHOUT(conv1d, in_features, .out_features = 2);
    WITHOUT(conv1d, out_features, .in_features = 2);
    WITHOUT(conv2d, in_channels, .out_channels = 2, .kernel = 3);
    WITHOUT(conv2d, out_channels, .in_channels = 2, .kernel = 3);
    WITHOUT(conv2d, kernel, .in_channels = 2, .out_channels = 2);
    WITHOUT(conv_transpose2d, in_channels, .out_channels = 2, .kernel = 3);
    WITHOUT(conv_transpose2d, out_channels, .in_channels = 2, .kernel = 3);
    WITHOUT(conv_transpose2d, kernel, .in_channels = 2, .out_channels = 2);
    WITHOUT(embedding, num_embeddings, .features = 2);
    WITHOUT(embedding, features, .num_embeddings = 2);
    WITHOUT(group_norm, num_groups, .num_channels = 2);
    WITHOUT(group_norm, num_channels, .num_groups = 2);
    WITHOUT(layer_norm, features, .eps = 1e-5);
    WITHOUT(linear, in_features, .out_features = 2);
    WITHOUT(linear, out_features, .in_features = 2);
    WITHOUT(squeeze_excite2d, channels, .latent_channels = 2);
    WITHOUT(squeeze_excite2d, latent_channels, .channels = 2);
    must(ET_NEW(cx, &norm, batch_norm, .num_features = 2));
    WITHOUT(ghost_batch_norm, ghost_batch_size, .batchnorm = norm);
    et_module_free(&norm);
}

/* ---- what a layer of a network takes from what is before it ---- */

struct fitted {
    const struct et_module_class *c;
    const char *set[7]; /* options and their values */
    int64_t in[3], out[3];
    const char *size; /* the option that was left out, and what it becomes */
    int64_t becomes;
};

static int64_t
option_value(const struct et_module_class *c, const void *options, const char *name)
{
    for (const struct et_option *row = c->info.options; row->name; row++)
        if (strcmp(row->name, name) == 0)
            return *(const int64_t *)(const void *)((const char *)options +
                                                    row->offset);
    return -1;
}

static void
fit(const struct fitted *f)
{
    int64_t shape[3] = {f->in[0], f->in[1], f->in[2]};
    void *options;
    must(et_options_new(cx, &f->c->info, f->set, &options));
    et_status status = f->c->adapt(cx, options, shape);
    ok(f->out[0] ? status == ET_OK && memcmp(shape, f->out, sizeof shape) == 0
                 : status == ET_EINVAL,
       "%s%s%s of [%d,%d,%d] makes [%d,%d,%d]", f->c->info.name, f->set[0] ? " " : "",
       f->set[0] ? f->set[1] : "", (int)f->in[0], (int)f->in[1], (int)f->in[2],
       (int)shape[0], (int)shape[1], (int)shape[2]);
    et_error_clear(cx);
    if (f->size)
        is_int(option_value(f->c, options, f->size), f->becomes, "its %s", f->size);
    et_options_free(&f->c->info, &options);
}

static void
test_fitted(void)
{
#define C(name) &et_##name##_class
    /* Three sizes that are all different; out of 0: refused. */
    const struct fitted table[] = {
        {C(conv2d), {"out", "4", "kernel", "3"}, {3, 8, 6}, {4, 6, 4}, "in", 3},
        {C(conv2d),
         {"out", "5", "kernel", "3", "stride", "2"},
         {3, 9, 6},
         {5, 4, 2},
         "in",
         3},
        {C(conv2d), {"out", "4", "kernel", "7"}, {3, 8, 6}, {0}, NULL, 0},
        {C(conv2d), {"out", "4", "kernel", "7"}, {3, 6, 8}, {0}, NULL, 0},
        {C(conv2d), {"out", "4", "kernel", "1"}, {3, 0, 0}, {0}, NULL, 0},
        {C(conv2d), {"out", "4", "kernel", "1", "in", "2"}, {3, 8, 6}, {0}, NULL, 0},
        {C(conv_transpose2d),
         {"out", "5", "kernel", "3", "stride", "2"},
         {3, 8, 6},
         {5, 17, 13},
         "in",
         3},
        {C(conv_transpose2d),
         {"out", "5", "kernel", "4", "padding", "1"},
         {3, 8, 6},
         {5, 9, 7},
         "in",
         3},
        {C(conv_transpose2d), {"out", "5", "kernel", "2"}, {3, 0, 0}, {0}, NULL, 0},
        {C(batch_norm), {NULL}, {3, 8, 6}, {3, 8, 6}, "features", 3},
        {C(group_norm), {"groups", "1"}, {3, 8, 6}, {3, 8, 6}, "channels", 3},
        {C(layer_norm), {NULL}, {7, 0, 0}, {7, 0, 0}, "features", 7},
        {C(layer_norm), {NULL}, {3, 8, 6}, {0}, NULL, 0},
        {C(squeeze_excite2d),
         {"latent_channels", "2"},
         {3, 8, 6},
         {3, 8, 6},
         "channels",
         3},
        {C(squeeze_excite2d), {"latent_channels", "2"}, {7, 0, 0}, {0}, NULL, 0},
        {C(linear), {"out", "4"}, {7, 0, 0}, {4, 0, 0}, "in", 7},
        {C(linear), {"out", "4"}, {3, 8, 6}, {0}, NULL, 0},
        {C(max_pool2d), {"kernel", "2"}, {3, 8, 6}, {3, 4, 3}, NULL, 0},
        {C(avg_pool2d),
         {"kernel", "3", "stride", "2", "padding", "1"},
         {3, 8, 6},
         {3, 4, 3},
         NULL,
         0},
        {C(adaptive_avg_pool2d),
         {"height", "2", "width", "5"},
         {3, 8, 6},
         {3, 2, 5},
         NULL,
         0},
        {C(basic_block),
         {"channels", "5", "stride", "2"},
         {3, 9, 6},
         {5, 5, 3},
         "in",
         3},
        {C(bottleneck), {"channels", "5"}, {3, 8, 6}, {20, 8, 6}, "in", 3},
        {C(flatten), {NULL}, {3, 8, 6}, {144, 0, 0}, NULL, 0},
    };
#undef C
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        fit(&table[i]);
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    must(et_device_open(cx, "ref", 0, 1, &dev));
    must(et_graph_new(cx, dev, &g));
    test_blurred();
    test_groups();
    test_gates();
    test_running(2, 1);
    test_running(3, 1);
    test_running(1, 2);
    test_running(3, 4);
    test_behind_gate();
    test_features();
    test_norm_rules();
    test_moved();
    test_border();
    test_blocks();
    test_kept();
    test_sizes();
    test_fitted();
    et_graph_free(&g);
    et_device_close(&dev);
    et_ctx_free(&cx);
    return done();
}
