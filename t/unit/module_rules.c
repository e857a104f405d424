/* SPDX-License-Identifier: Apache-2.0 */
/* Modules whose axes, groups and strides all differ: what a convolution gives, how
 * large its first values are, what a blurred one computes; and what a walk finds. */
#include "core/modules/common.h"
#include "etude/nn.h"
#include "t/data/fixture.h"
#include "t/tap.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { IN = 4, HEIGHT = 7, WIDTH = 10, MOST = 4096 };

static struct et_ctx *cx;
static struct et_device *dev;

/* A picture of IN channels whose numbers have no pattern. */
static struct et_tensor *
picture(void)
{
    static float v[IN * HEIGHT * WIDTH];
    struct et_tensor *x;
    for (int i = 0; i < IN * HEIGHT * WIDTH; i++)
        v[i] = (float)(i * i % 31) / 16 - 1;
    need(cx, et_tensor_new(cx, dev, ET_F32, 4, (const int64_t[]){1, IN, HEIGHT, WIDTH},
                           ET_CHANNELS_LAST, "x", &x));
    need(cx, et_tensor_write(cx, x, v, sizeof v));
    return x;
}

/* What M gives for X, of DESC, into OUT. */
static void
run(struct et_module *m, struct et_tensor *x, struct et_desc *desc, float *out)
{
    struct et_graph *g;
    need(cx, et_module_bind(cx, m, dev, ET_PARAM | ET_BUFFER, 17));
    need(cx, et_graph_new(cx, dev, &g));
    struct et_forward f = {.g = g};
    struct et_tensor *y = et_forward(&f, m, x);
    need(cx, et_eval(g, &y, 1));
    *desc = y->desc;
    if (et_desc_count(&y->desc) > MOST)
        bail("more numbers than there is room for");
    need(cx, et_tensor_read(cx, y, out, (size_t)et_desc_count(&y->desc) * sizeof *out));
    et_graph_free(&g);
}

/* ---- convolutions ---- */

/* The greatest of the first values of P is just below BOUND. */
static bool
is_within(struct et_param *p, double bound)
{
    static float v[MOST];
    const int64_t n = et_desc_count(&p->desc);
    double most = 0;
    need(cx, et_param_read(cx, p, "weight", 3, v, n));
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs(v[i]));
    return most <= bound * (1 + 1e-6) && most > bound * (n > 100 ? 0.95 : 0.3);
}

/* The first values of a layer of groups are as many as each group's inputs ask for. */
static void
first_values(void)
{
    struct et_module *m;
    need(cx, ET_NEW(cx, &m, conv2d, .in_channels = 12, .out_channels = 40, .kernel = 3,
                    .groups = 4));
    struct et_param *w = et_module_param(m, 0, NULL), *b = et_module_param(m, 1, NULL);
    ok(w->desc.shape[0] == 40 && w->desc.shape[1] == 3 && w->desc.shape[2] == 3 &&
           b->desc.shape[0] == 40,
       "a filter reads the channels of its group");
    ok(is_within(w, 1 / sqrt(3 * 9)) && is_within(b, 1 / sqrt(3 * 9)),
       "its first values and those of its bias are bounded by them");
    et_module_free(&m);
    need(cx, ET_NEW(cx, &m, conv_transpose2d, .in_channels = 12, .out_channels = 40,
                    .kernel = 2, .groups = 4));
    w = et_module_param(m, 0, NULL), b = et_module_param(m, 1, NULL);
    ok(w->desc.shape[0] == 12 && w->desc.shape[1] == 10 && w->desc.shape[2] == 2 &&
           b->desc.shape[0] == 40,
       "a transposed one gives the channels of its group");
    ok(is_within(w, 1 / sqrt(10 * 4)) && is_within(b, 1 / sqrt(10 * 4)),
       "and is bounded by those, as PyTorch's");
    et_module_free(&m);
}

/* Each option of a convolution, in what comes out and in what its options say of that;
 * 0: as the default. */
static void
sizes(void)
{
    static const struct {
        bool is_transposed;
        int kernel, stride, padding, dilation, groups, output_padding, height, width;
    } row[] = {
        {false, 3, 0, 0, 0, 0, 0, 5, 8},  {false, 3, 2, 0, 0, 0, 0, 3, 4},
        {false, 3, 0, 1, 0, 0, 0, 7, 10}, {false, 3, 0, 0, 2, 0, 0, 3, 6},
        {false, 3, 0, 0, 3, 0, 0, 1, 4},  {false, 2, 3, 1, 4, 2, 0, 2, 3},
        {true, 2, 0, 0, 0, 0, 0, 8, 11},  {true, 3, 2, 0, 0, 0, 0, 15, 21},
        {true, 3, 2, 1, 0, 0, 0, 13, 19}, {true, 3, 2, 1, 0, 2, 1, 14, 20},
    };
    struct et_tensor *x = picture();
    static float y[MOST];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const struct et_conv2d_options plain = {.in_channels = IN,
                                                .out_channels = 6,
                                                .kernel = row[i].kernel,
                                                .stride = row[i].stride,
                                                .padding = row[i].padding,
                                                .dilation = row[i].dilation,
                                                .groups = row[i].groups};
        const struct et_conv_transpose2d_options turned = {.in_channels = IN,
                                                           .out_channels = 6,
                                                           .kernel = row[i].kernel,
                                                           .stride = row[i].stride,
                                                           .padding = row[i].padding,
                                                           .groups = row[i].groups,
                                                           .output_padding =
                                                               row[i].output_padding,
                                                           .no_bias = true};
        const struct et_module_class *type =
            row[i].is_transposed ? &et_conv_transpose2d_class : &et_conv2d_class;
        struct et_conv2d_options own = plain;
        struct et_conv_transpose2d_options own_turned = turned;
        int64_t shape[] = {IN, HEIGHT, WIDTH}, params;
        struct et_module *m;
        struct et_desc d;
        need(cx,
             et_module_new(cx, type,
                           row[i].is_transposed ? (const void *)&turned : &plain, &m));
        run(m, x, &d, y);
        need(cx,
             type->adapt(cx, row[i].is_transposed ? (void *)&own_turned : &own, shape));
        ok(d.shape[1] == 6 && d.shape[2] == row[i].height && d.shape[3] == row[i].width,
           "row %zu gives %d x %d: %d x %d", i, row[i].height, row[i].width,
           (int)d.shape[2], (int)d.shape[3]);
        ok(shape[0] == 6 && shape[1] == row[i].height && shape[2] == row[i].width,
           "and says so: %d x %d", (int)shape[1], (int)shape[2]);
        need(cx, et_module_count(cx, m, &params));
        const int groups = row[i].groups ? row[i].groups : 1;
        is_int(params,
               6 * IN / groups * row[i].kernel * row[i].kernel +
                   (row[i].is_transposed ? 0 : 6),
               "with a bias unless it is to have none");
        ok(et_module_param(m, 0, NULL)->tensor->desc.stride[1] == 1,
           "filters lie with their channels last");
        et_module_free(&m);
    }
    et_tensor_free(&x);
}

/* ---- blurs ---- */

/* A strided convolution of 6 channels with a bias, as it would be with STRIDE. */
static struct et_module *
conv(int stride)
{
    struct et_module *m;
    need(cx, ET_NEW(cx, &m, conv2d, .in_channels = IN, .out_channels = 6, .kernel = 3,
                    .stride = stride, .padding = 1));
    need(cx, et_module_bind(cx, m, dev, ET_PARAM, 17));
    return m;
}

/* Behind the convolution the blur strides in its place; before it, it does not. */
static void
blurred(bool blur_last)
{
    static float want[MOST], got[MOST], between[MOST];
    struct et_tensor *x = picture(), *z;
    struct et_module *old = conv(2), *plain = conv(blur_last ? 1 : 2), *blur, *m;
    struct et_desc d;
    need(cx, ET_NEW(cx, &blur, blur_pool2d, .stride = blur_last ? 2 : 1));
    run(blur_last ? plain : blur, x, &d, between);
    need(cx, et_tensor_new(cx, dev, ET_F32, 4, d.shape, ET_ROW_MAJOR, "z", &z));
    need(cx,
         et_tensor_write(cx, z, between, (size_t)et_desc_count(&d) * sizeof *between));
    run(blur_last ? blur : plain, z, &d, want);
    const struct et_tensor *bias = et_module_param(old, 1, NULL)->tensor;
    need(cx, ET_NEW(cx, &m, blur_conv2d, .conv = old, .blur_last = blur_last));
    struct et_blur_conv2d_module *b = (struct et_blur_conv2d_module *)m;
    ok(et_module_param(b->conv, 1, NULL)->tensor == bias, "its bias is the one it had");
    ok(m->marked && b->conv->marked, "neither it nor what is in it is replaced again");
    is_int(b->blur_filter.desc.shape[0], blur_last ? 6 : IN,
           "each channel that is blurred has its filter");
    run(m, x, &d, got);
    ok(d.shape[1] == 6 && d.shape[2] == 4 && d.shape[3] == 5, "it strides once");
    is_near_array(got, want, et_desc_count(&d), 1e-5,
                  blur_last ? "a blur behind a convolution" : "a blur before one");
    et_module_free(&m);
    et_module_free(&old);
    et_module_free(&plain);
    et_module_free(&blur);
    et_tensor_free(&x);
    et_tensor_free(&z);
}

static void
blurred_pool(void)
{
    static float want[MOST], got[MOST], between[MOST];
    struct et_tensor *x = picture(), *z;
    struct et_module *pool, *inner, *blur, *m;
    struct et_desc d;
    need(cx, et_module_new(
                 cx, &et_max_pool2d_class,
                 &(struct et_pool2d_options){.kernel = 3, .stride = 2, .padding = 1},
                 &pool));
    need(cx, et_module_new(
                 cx, &et_max_pool2d_class,
                 &(struct et_pool2d_options){.kernel = 3, .stride = 1, .padding = 1},
                 &inner));
    need(cx, ET_NEW(cx, &blur, blur_pool2d, .stride = 2));
    run(inner, x, &d, between);
    need(cx, et_tensor_new(cx, dev, ET_F32, 4, d.shape, ET_ROW_MAJOR, "z", &z));
    need(cx,
         et_tensor_write(cx, z, between, (size_t)et_desc_count(&d) * sizeof *between));
    run(blur, z, &d, want);
    need(cx, ET_NEW(cx, &m, blur_max_pool2d, .pool = pool));
    ok(m->marked && ((struct et_blur_max_pool2d_module *)m)->pool->marked,
       "a blurred pool is not replaced again");
    run(m, x, &d, got);
    ok(d.shape[2] == 4 && d.shape[3] == 5, "it strides once");
    is_near_array(got, want, et_desc_count(&d), 1e-5, "behind the pool");
    et_module_free(&m);
    et_module_free(&pool);
    et_module_free(&inner);
    et_module_free(&blur);
    et_tensor_free(&x);
    et_tensor_free(&z);
}

/* ---- what modules are made of ---- */

/* M's leaves as text, "weight[6,4,3,3] bias[6]"; with its norms' momentum where that is
 * not the usual one. M is freed. */
static const char *
leaves(struct et_module *m)
{
    static char text[2048];
    struct et_leaves l;
    size_t used = 0;
    text[0] = '\0';
    need(cx, et_module_leaves(cx, m, ET_PARAM, &l));
    for (int i = 0; i < l.n; i++) {
        const struct et_desc *d = &l.v[i].param->desc;
        const char *name = l.v[i].name;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s",
                                 used ? " " : "", name);
        for (int k = 0; k < d->ndim; k++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%d",
                                     k ? "," : "[", (int)d->shape[k]);
        used += (size_t)snprintf(text + used, sizeof text - used, "]");
        if (et_module_is(l.v[i].module, &et_batch_norm_class)) {
            const double momentum =
                ((struct et_batch_norm_module *)l.v[i].module)->o.momentum;
            if (momentum != 0.1)
                used +=
                    (size_t)snprintf(text + used, sizeof text - used, "@%g", momentum);
        }
    }
    et_leaves_release(&l);
    et_module_free(&m);
    return text;
}

static void
parts(void)
{
    struct et_module *m, *of;
    need(cx, ET_NEW(cx, &m, basic_block, .in_channels = 4, .channels = 6, .stride = 2,
                    .momentum = 0.25));
    is_str(leaves(m),
           "conv1.weight[6,4,3,3] bn1.weight[6]@0.25 bn1.bias[6]@0.25 "
           "conv2.weight[6,6,3,3] bn2.weight[6]@0.25 bn2.bias[6]@0.25 "
           "downsample.0.weight[6,4,1,1] downsample.1.weight[6]@0.25 "
           "downsample.1.bias[6]@0.25",
           "a block of two convolutions");
    need(cx, ET_NEW(cx, &m, basic_block, .in_channels = 6, .channels = 6));
    is_str(leaves(m),
           "conv1.weight[6,6,3,3] bn1.weight[6] bn1.bias[6] conv2.weight[6,6,3,3] "
           "bn2.weight[6] bn2.bias[6]",
           "one without a shortcut");
    need(cx, ET_NEW(cx, &m, basic_block, .in_channels = 6, .channels = 6, .stride = 2));
    ok(strstr(leaves(m), " downsample.0.weight[6,6,1,1] ") != NULL,
       "one that strides has a shortcut");
    need(cx, ET_NEW(cx, &m, bottleneck, .in_channels = 4, .channels = 3, .stride = 2));
    is_str(leaves(m),
           "conv1.weight[3,4,1,1] bn1.weight[3] bn1.bias[3] conv2.weight[3,3,3,3] "
           "bn2.weight[3] bn2.bias[3] conv3.weight[12,3,1,1] bn3.weight[12] "
           "bn3.bias[12] downsample.0.weight[12,4,1,1] downsample.1.weight[12] "
           "downsample.1.bias[12]",
           "a bottleneck");
    need(cx, ET_NEW(cx, &m, bottleneck, .in_channels = 12, .channels = 3));
    ok(strstr(leaves(m), "downsample") == NULL, "one without a shortcut");
    need(cx, ET_NEW(cx, &of, conv2d, .in_channels = 4, .out_channels = 6, .kernel = 3,
                    .no_bias = true));
    need(cx, ET_NEW(cx, &m, squeeze_excite_conv2d, .conv = of, .latent_channels = 2));
    is_str(leaves(m),
           "conv.weight[6,4,3,3] se.pool_and_mlp.2.weight[2,6] "
           "se.pool_and_mlp.4.weight[6,2]",
           "a convolution whose channels are weighed");
    for (int latent = 4; latent < 7; latent++) {
        et_status status =
            ET_NEW(cx, &m, factorized_conv2d, .layer = of, .latent = latent);
        ok((status == ET_OK) == (latent <= 5), "a convolution of 36 by 6 in %d",
           latent);
        et_error_clear(cx);
        if (status == ET_OK && latent == 5)
            is_str(leaves(m),
                   "module0.weight[5,4,3,3] module1.weight[6,5,1,1] module1.bias[6]",
                   "is two, and the second has a bias");
        else
            et_module_free(&m);
    }
    et_module_free(&of);
    for (int no_bias = 0; no_bias < 2; no_bias++) {
        need(cx, ET_NEW(cx, &of, linear, .in_features = 12, .out_features = 4,
                        .no_bias = no_bias));
        need(cx, ET_NEW(cx, &m, factorized_linear, .layer = of, .latent = 2));
        is_str(leaves(m),
               no_bias ? "module0.weight[2,12] module1.weight[4,2]"
                       : "module0.weight[2,12] module1.weight[4,2] module1.bias[4]",
               "a linear layer in two has a bias where it had one");
        ok(ET_NEW(cx, &m, factorized_linear, .layer = of, .latent = 3) == ET_EINVAL,
           "as much work as before is refused");
        et_error_clear(cx);
        et_module_free(&of);
    }
    need(cx, ET_NEW(cx, &of, conv2d, .in_channels = 4, .out_channels = 6, .kernel = 3));
    need(cx, et_module_bind(cx, of, dev, ET_PARAM, 17));
    const struct et_tensor *bias = et_module_param(of, 1, NULL)->tensor;
    need(cx, ET_NEW(cx, &m, standardized_conv2d, .conv = of));
    ok(et_module_param(m, 1, NULL)->tensor == bias,
       "a convolution of standardised filters has the bias that it had");
    is_str(leaves(m), "parametrizations.weight.original[6,4,3,3] bias[6]",
           "and its filters by another name");
    et_module_free(&of);
}

/* Sizes behind a block are those that it says, dilated or not. */
static void
blocks(void)
{
    struct et_tensor *x = picture();
    static float y[MOST];
    for (int i = 0; i < 4; i++) {
        const int stride = 1 + i % 2, dilation = 1 + i / 2;
        struct et_bottleneck_options o = {
            .in_channels = IN, .channels = 2, .stride = stride, .dilation = dilation};
        struct et_basic_block_options basic = {
            .in_channels = IN, .channels = 5, .stride = stride};
        int64_t shape[2][3] = {{IN, HEIGHT, WIDTH}, {IN, HEIGHT, WIDTH}};
        struct et_module *m;
        struct et_desc d;
        need(cx, et_module_new(cx, &et_bottleneck_class, &o, &m));
        run(m, x, &d, y);
        need(cx, et_bottleneck_class.adapt(cx, &o, shape[0]));
        ok(d.shape[1] == 8 && d.shape[2] == shape[0][1] && d.shape[3] == shape[0][2] &&
               shape[0][0] == 8 && d.shape[2] == (HEIGHT - 1) / stride + 1 &&
               d.shape[3] == (WIDTH - 1) / stride + 1,
           "a bottleneck of stride %d, dilation %d gives what it says", stride,
           dilation);
        et_module_free(&m);
        need(cx, et_basic_block_class.adapt(cx, &basic, shape[1]));
        ok(shape[1][0] == 5 && shape[1][1] == (HEIGHT - 1) / stride + 1 &&
               shape[1][2] == (WIDTH - 1) / stride + 1,
           "and so does a basic one");
    }
    et_tensor_free(&x);
}

/* Which of M's four children are trained ('t') or not, and evaluated ('E', 'F'). A
 * range names children from either end, in either order. */
static void
ranges(void)
{
    static const struct {
        struct et_module_range range;
        bool unfreeze;
        int n; /* that changed; -1: refused */
        const char *want;
    } row[] = {
        {{.from = 1, .to = 2}, false, 4, "t..t"},
        {{.from = 1, .to = 2}, false, 0, "t..t"},
        {{.from = 0, .to = 1}, false, 2, "...t"},
        {{.from = -1, .to = -4}, true, 6, "tttt"},
        {{.from = 2, .to = 1, .as_eval = true}, false, 4, "tEEt"},
        {{.from = 2, .to = 2}, true, 2, "tEFt"},
        {{.from = -2, .to = -3, .as_eval = true}, true, 2, "tttt"},
        {{.from = 1, .to = 1}, true, 0, "tttt"},
        {{.from = 4, .to = 0}, false, -1, "tttt"},
        {{.from = 0, .to = -5}, false, -1, "tttt"},
        {{.from = -4, .to = 3}, false, 6, "...t"},
        {{.from = 0, .to = 3}, true, 6, "tttt"},
        {{.from = 3, .to = 3}, false, 0, "tttt"},
        {{.from = 3, .to = 3, .batch_norms = true}, false, 2, "ttt."},
        {{.from = 3, .to = 3}, true, 2, "tttt"},
    };
    struct et_module *m;
    need(cx, et_module_new(cx, &et_sequential_class, NULL, &m));
    for (int i = 0; i < 3; i++)
        need(cx, ET_ADD(cx, m, NULL, linear, .in_features = 2, .out_features = 2));
    need(cx, ET_ADD(cx, m, NULL, batch_norm, .num_features = 2));
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char got[5] = "";
        int n = -1;
        et_status status = row[i].unfreeze
                               ? et_module_unfreeze(cx, m, &row[i].range, &n)
                               : et_module_freeze(cx, m, &row[i].range, &n);
        for (int k = 0; k < 4; k++) {
            const struct et_module *child = m->items[k].module;
            bool trains = et_module_param(m->items[k].module, 0, NULL)->requires_grad;
            got[k] = child->as_eval ? (trains ? 'F' : 'E') : (trains ? 't' : '.');
        }
        is_int(status == ET_OK ? n : -1, row[i].n, "range %zu changes so many", i);
        is_str(got, row[i].want, "and leaves these trained");
        et_error_clear(cx);
    }
    et_module_free(&m);
}

/* ---- walks ---- */

static void
note(void *data, struct et_graph *g, struct et_module *m, struct et_tensor *x,
     struct et_tensor *y)
{
    (void)g;
    (void)x;
    int *seen = data;
    seen[0] += y != NULL;
    seen[1] += y == NULL;
    seen[2] += m->as_eval;
}

/* A module that is evaluated leaves those behind it in training. */
static void
frozen(void)
{
    struct et_module *m;
    struct et_tensor *x = picture();
    struct et_graph *g;
    int seen[3] = {0};
    need(cx, et_module_new(cx, &et_sequential_class, NULL, &m));
    need(cx, ET_ADD(cx, m, "bn1", batch_norm, .num_features = IN));
    need(cx, ET_ADD(cx, m, "bn2", batch_norm, .num_features = IN));
    need(cx, et_module_bind(cx, m, dev, ET_PARAM | ET_BUFFER, 17));
    struct et_batch_norm_module *bn[] = {
        (struct et_batch_norm_module *)m->items[0].module,
        (struct et_batch_norm_module *)m->items[1].module};
    m->items[0].module->as_eval = true;
    need(cx, et_graph_new(cx, dev, &g));
    struct et_forward f = {.g = g, .training = true, .look = note, .look_data = seen};
    struct et_tensor *y = et_forward(&f, m, x);
    need(cx, et_eval(g, &y, 1));
    float mean[2][IN];
    for (int i = 0; i < 2; i++)
        need(cx,
             et_tensor_read(cx, bn[i]->running_mean.tensor, mean[i], sizeof mean[i]));
    ok(mean[0][0] == 0 && mean[0][IN - 1] == 0, "one that is evaluated learns nothing");
    ok(mean[1][0] != 0, "the one behind it does");
    ok(f.training, "and what comes behind both is training");
    ok(seen[0] == 3 && seen[1] == 0 && seen[2] == 1,
       "each that was gone through is told");
    et_graph_free(&g);
    need(cx, et_module_freeze_stats(cx, m, true));
    ok(m->items[0].module->as_eval && m->items[1].module->as_eval && !m->as_eval,
       "statistics are frozen where there are some");
    need(cx, et_module_freeze_stats(cx, m, false));
    ok(!m->items[0].module->as_eval && !m->items[1].module->as_eval, "and freed again");
    et_module_free(&m);
    et_tensor_free(&x);
}

static void
walks(void)
{
    struct et_module *m, *inner;
    int64_t count;
    need(cx, et_module_new(cx, &et_sequential_class, NULL, &m));
    need(cx, et_module_add(cx, m, "part1", &et_sequential_class, NULL));
    need(cx, ET_ADD(cx, m, "part", linear, .in_features = 3, .out_features = 5));
    need(cx, ET_ADD(cx, m, "bn", batch_norm, .num_features = 7));
    inner = m->items[0].module;
    need(cx, ET_ADD(cx, inner, "part", batch_norm, .num_features = 2));
    need(cx, ET_ADD(cx, inner, NULL, linear, .in_features = 2, .out_features = 2));
    ok(et_module_find(m, "part") == m->items[1].module,
       "a module is found by its name, not by the beginning of another's");
    ok(et_module_find(m, "part1") == inner, "nor the longer by the shorter");
    ok(et_module_find(m, "part1.part") == inner->items[0].module,
       "below others as well");
    ok(et_module_find(m, "part1.1") == inner->items[1].module, "and by its number");
    ok(!et_module_find(m, "par") && !et_module_find(m, "part.part") &&
           !et_module_find(m, "part1.2"),
       "what is not there is not found");
    ok(et_module_find(m, "") == m, "nothing is the module itself");
    need(cx, et_module_count(cx, m, &count));
    is_int(count, 3 * 5 + 5 + 2 * 7 + 2 * 2 + 2 * 2 + 2,
           "parameters are counted without running statistics");
    need(cx, et_module_bind(cx, m, dev, ET_PARAM | ET_BUFFER, 17));
    struct et_param *p = et_module_param(m->items[1].module, 0, NULL);
    struct et_tensor *first = p->tensor;
    need(cx, et_module_bind(cx, m, dev, ET_PARAM | ET_BUFFER, 18));
    ok(p->tensor == first, "what is bound stays as it is");
    struct et_module *shared = et_module_ref(inner);
    et_module_free(&m);
    ok(!m && shared->n_items == 2 && et_module_find(shared, "part"),
       "what two have lives until both are gone");
    et_module_free(&shared);
}

int
main(void)
{
    cx = need_ctx();
    need(cx, et_device_open(cx, "ref", 0, 0, &dev));
    first_values();
    sizes();
    blurred(true);
    blurred(false);
    blurred_pool();
    parts();
    blocks();
    ranges();
    frozen();
    walks();
    et_device_close(&dev);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
    return done();
}
