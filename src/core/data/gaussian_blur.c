/* SPDX-License-Identifier: Apache-2.0 */
/* gaussian_blur.c: blurred by a Gaussian, with probability p. */
#include "core/data/transform_rows.h"
#include "core/image/blur.h"

struct options {
    double p;
    int64_t kernel_size;
    struct et_floats sigma;
};

static const struct et_option option_table[] = {
    ETI_TRANSFORM_P(struct options, "1"),
    {
        .name = "kernel_size",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, kernel_size),
        .def = "5",
        .min = 1,
        .max = ETI_BLUR_MOST,
        .unit = "pixels",
        .help = "width of the kernel, odd",
    },
    ETI_TRANSFORM_RANGE(struct options, sigma, "[0.1, 2]", "pixels, drawn evenly"),
    {.name = NULL},
};

static et_status
check(struct et_ctx *cx, const void *options, int C, int64_t *h, int64_t *w)
{
    const struct options *o = options;
    int64_t side = *h < *w ? *h : *w;
    (void)C;
    if (o->kernel_size % 2 == 0)
        return ET_FAIL(cx, ET_EINVAL, "gaussian_blur: kernel_size %lld is not odd",
                       (long long)o->kernel_size);
    if (side > 0 && o->kernel_size / 2 >= side)
        return ET_FAIL(cx, ET_EINVAL,
                       "gaussian_blur: kernel_size %lld for images of %lld x %lld",
                       (long long)o->kernel_size, (long long)*h, (long long)*w);
    return eti_transform_range(cx, "gaussian_blur", "sigma", &o->sigma, 1e-3, 1e3);
}

static et_status
pixels(const void *options, struct et_rng *r, struct et_canvas *c, struct et_error *why)
{
    const struct options *o = options;
    if (et_rng_uniform(r) >= o->p)
        return ET_OK;
    double sigma = eti_transform_draw(&o->sigma, r);
    int64_t most = 2 * (c->H < c->W ? c->H : c->W) - 1; /* that can be mirrored */
    int64_t size = o->kernel_size < most ? o->kernel_size : most;
    return eti_gaussian_blur(c, (int)size, sigma, why);
}

const struct et_transform_class et_transform_gaussian_blur = {
    .info =
        {
            .name = "gaussian_blur",
            .class_name = "GaussianBlur",
            .summary = "blurs a picture by a Gaussian of random width",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .check = check,
    .pixels = pixels,
};
