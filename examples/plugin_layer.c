/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_layer.c: a layer in a shared library, for the list `layers:` of a recipe.
 *
 * Global response normalisation (Woo et al. 2023, arXiv 2301.00808): channels compete
 * by how large they are in the whole image,
 *
 *     |x_c| = sqrt(sum over H, W of x_c^2)
 *     n_c = |x_c| / mean over channels of |x_c|
 *     y_c = w_c n_c x_c + b_c + x_c
 *
 * where w and b, one number for each channel, begin as 0: then y is x.
 *
 *     cc -shared -fPIC $(pkg-config --cflags etude) -o response.so plugin_layer.c
 *
 * Allowed as plugin.c says, it stands among other layers:
 *
 *     plugins: [response]
 *     model:
 *       name: layers
 *       layers: [conv2d: {out: 16, kernel: 3}, relu, response_norm,
 *                flatten, linear: {out: 10}]
 *
 * "response_norm: {eps: 1e-4}" sets its option. */
#include <etude/plugin.h>

struct response_options {
    double eps;
    int64_t channels; /* no row of the table: what comes in says it */
};

/* An instance; struct et_module is first. */
struct response {
    struct et_module base;
    struct et_param weight, bias;
    double eps;
};

/* What one sample is before the layer, SHAPE = C, H, W, and so becomes behind it: the
 * same. An option that depends on it is filled in here. */
static et_status
response_adapt(struct et_ctx *cx, void *options, int64_t shape[3])
{
    struct response_options *o = options;
    if (shape[1] == 0)
        return ET_FAIL(cx, ET_ESHAPE, "it normalises images, and not vectors");
    o->channels = shape[0];
    return ET_OK;
}

/* Declares the parameters: no memory is taken yet. */
static et_status
response_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct response *m = (struct response *)base;
    const struct response_options *o = options;
    const struct et_init zero = {.kind = ET_INIT_CONSTANT, .a = 0};
    (void)cx;
    m->eps = o->eps;
    et_param_declare(&m->weight, zero, ET_SHAPE(o->channels, 1, 1));
    et_param_declare(&m->bias, zero, ET_SHAPE(o->channels, 1, 1));
    return ET_OK;
}

/* The formula for X, f32 [N,C,H,W]. Its gradient follows from the operations'. */
static struct et_tensor *
response_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    const struct response *m = (const struct response *)base;
    struct et_graph *g = f->g;
    const unsigned channel = 1u << 1, image = 1u << 2 | 1u << 3;
    struct et_tensor *squares = et_sum(g, et_square(g, x), image, true);
    struct et_tensor *size = et_sqrt(g, et_add_scalar(g, squares, 1e-12));
    struct et_tensor *mean = et_add_scalar(g, et_mean(g, size, channel, true), m->eps);
    struct et_tensor *y = et_mul(g, x, et_div(g, size, mean));
    y = et_add(g, et_mul(g, y, m->weight.tensor), m->bias.tensor);
    return et_add(g, y, x);
}

static const struct et_option response_table[] = {
    {
        .name = "eps",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct response_options, eps),
        .def = "1e-6",
        .min = 0,
        .max = 1,
        .help = "added to the mean",
    },
    {.name = NULL},
};

/* They are called "2.weight" and "2.bias" in a model where it is the third layer. */
static const struct et_slot response_params[] = {
    ET_SLOT(response, weight),
    ET_SLOT(response, bias),
    {.name = NULL},
};

static const struct et_module_class response_norm = {
    .info =
        {
            ET_CLASS(module),
            .name = "response_norm",
            .class_name = "GlobalResponseNorm",
            .summary = "channels compete by how large they are in the image",
            .source = "Woo et al. 2023, arXiv 2301.00808",
            .applies_to = "vision",
            .options = response_table,
            .options_size = sizeof(struct response_options),
        },
    .size = sizeof(struct response),
    .params = response_params,
    .init = response_init,
    .forward = response_forward,
    .adapt = response_adapt,
};

static const struct et_module_class *const layers[] = {&response_norm, NULL};

ET_PLUGIN(.layers = layers)
