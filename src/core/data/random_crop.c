/* SPDX-License-Identifier: Apache-2.0 */
/* random_crop.c: a square anywhere in the image and a black border around it.
 *
 * The corner is uniform over all places at which the square fits. Source: the
 * augmentation of He, Zhang, Ren, Sun, 2015, arXiv 1512.03385, section 4.2. */
#include "core/data/transform_rows.h"

struct options {
    int64_t size, padding;
};

static const struct et_option option_table[] = {
    ETI_TRANSFORM_SIZE(struct options),
    {
        .name = "padding",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, padding),
        .def = "0",
        .max = 4096,
        .unit = "pixels",
        .help = "width of the black border added to each side before",
    },
    {.name = NULL},
};

static et_status
check(struct et_ctx *cx, const void *options, int C, int64_t *h, int64_t *w)
{
    const struct options *o = options;
    (void)C;
    if ((*h > 0 && o->size > *h + 2 * o->padding) ||
        (*w > 0 && o->size > *w + 2 * o->padding))
        return ET_FAIL(
            cx, ET_EINVAL,
            "random_crop: size %lld exceeds the image, %lldx%lld with %lld of "
            "padding on each side",
            (long long)o->size, (long long)*h, (long long)*w, (long long)o->padding);
    *h = *w = o->size;
    return ET_OK;
}

/* Where SIZE of N may begin. Of pictures that differ in size one may be too small: it
 * is in the middle. */
static int64_t
draw(const struct options *o, int64_t n, struct et_rng *r)
{
    int64_t places = n + 2 * o->padding - o->size + 1;
    if (places < 1)
        return (n - o->size) / 2;
    return (int64_t)et_rng_below(r, (uint64_t)places) - o->padding;
}

static void
geometry(const void *options, struct et_rng *r, struct et_view *v)
{
    const struct options *o = options;
    int64_t y = draw(o, v->h, r), x = draw(o, v->w, r);
    et_view_crop(v, y, x, o->size, o->size);
}

const struct et_transform_class et_transform_random_crop = {
    .info =
        {
            .name = "random_crop",
            .class_name = "RandomCrop",
            .summary = "pads with black, then cuts a square at a random place",
            .source = "He, Zhang, Ren, Sun, 2015, arXiv 1512.03385, section 4.2",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .check = check,
    .geometry = geometry,
    .cuts = true,
};
