/* SPDX-License-Identifier: Apache-2.0 */
/* Images that lie on a device: its batches are those of the host, bit for bit, whatever
 * the transforms; on the simulated GPU, and where the recipe asks for it on the CPU and
 * the reference. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/loader_impl.h"
#include "core/graph/tensor.h"
#include "etude/graph.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;
static struct et_device *gpu; /* the device that is asked */
static struct et_graph *graph;

/* ---- data sets that are held in memory ---- */

/* UNLIKE: from image ODD on there are gaps. */
enum layout { PLANES, PIXELS, GAPS, UNLIKE };

struct options {
    struct et_data_options common;
    int64_t n, bad; /* sample BAD cannot be read */
    int C;
    enum layout layout;
};

static const struct et_option table[] = {
    ET_DATA_IMAGE_OPTIONS(struct options),
    {.name = NULL},
};

struct state {
    uint8_t *bytes; /* samples, each behind a byte that is none of it, as in CIFAR's */
};

enum { H = 9, W = 11, ODD = 5 };

static et_status
open_images(struct et_ctx *c, struct et_dataset *self)
{
    const struct options *o = self->options;
    struct state *s = self->state;
    et_facts_images(&self->facts, o->n, o->C, H, W, 1000);
    size_t n = (size_t)(o->n * (o->C * H * W + H + 1));
    ET_TRY(et_alloc(c, n, (void **)&s->bytes));
    struct et_rng r = et_rng_at(3, ET_RNG_DATA, 0);
    for (size_t i = 0; i < n; i++)
        s->bytes[i] = (uint8_t)et_rng_u32(&r);
    return ET_OK;
}

static et_status
read_image(const struct et_dataset *self, int64_t at, struct et_sample *out,
           struct et_error *why)
{
    const struct options *o = self->options;
    const struct state *s = self->state;
    if (at == o->bad) {
        snprintf(why->message, sizeof why->message, "image %d is damaged", (int)at);
        return ET_EFORMAT;
    }
    const uint8_t *bytes = s->bytes + at * (o->C * H * W + H + 1) + 1;
    struct et_pixels *p = &out->v[0].pixels;
    *p = (o->layout == PLANES ? et_pixels_chw : et_pixels_hwc)(bytes, o->C, H, W);
    p->stride_y += o->layout == GAPS || (o->layout == UNLIKE && at >= ODD);
    et_sample_number(out, 1, (double)(at * 7 % 1000));
    return ET_OK;
}

static void
close_images(struct et_dataset *self)
{
    struct state *s = self->state;
    et_free(self->cx, s->bytes);
}

static const struct et_dataset_class stored_images = {
    .info = {.name = "stored_images",
             .options = table,
             .options_size = sizeof(struct options)},
    .state_size = sizeof(struct state),
    .open = open_images,
    .sample = read_image,
    .close = close_images,
};

/* ---- one set, read twice ---- */

struct setup {
    struct options options;
    struct et_loader_config config;
    struct et_dataset *data;
    struct et_loader *host, *device;
};

static struct setup
setup(int64_t n, int C, enum layout layout, const char *transforms)
{
    struct setup s = {
        .options =
            {.common = common_options(10), .n = n, .bad = -1, .C = C, .layout = layout},
        .config = {.seed = 17, .train = true},
    };
    if (transforms)
        need(cx, et_options_set(cx, table, &s.options, "transforms", transforms));
    return s;
}

static void
begin(struct setup *s)
{
    need(cx, et_dataset_open(cx, &stored_images, &s->options, &s->data));
    s->config.dev = NULL;
    need(cx, et_loader_new(cx, s->data, &s->config, &s->host));
    s->config.dev = gpu;
    need(cx, et_loader_new(cx, s->data, &s->config, &s->device));
}

static void
end(struct setup *s)
{
    et_loader_free(&s->host);
    et_loader_free(&s->device);
    et_dataset_close(&s->data);
    et_options_release(table, &s->options);
}

static bool
holds(const struct et_tensor *t, const void *want, const struct et_desc *d)
{
    size_t bytes = et_desc_bytes(d);
    void *got = malloc(bytes);
    need(cx, eti_tensor_copy_out(cx, t, got));
    bool same = et_desc_equal(&t->desc, d) && memcmp(got, want, bytes) == 0;
    free(got);
    return same;
}

/* Of the next N calls of both loaders: how many gave the same. RESIDENT: as many are
 * made on the device. */
static int
alike(struct setup *s, int n, int *resident)
{
    int same = 0;
    *resident = 0;
    for (int i = 0; i < n; i++) {
        const struct et_batch *want, *got;
        need(cx, et_loader_next(cx, s->host, &want));
        need(cx, et_loader_next(cx, s->device, &got));
        if (!want || !got) {
            same += !want && !got;
            *resident += !want;
            continue;
        }
        struct et_tensor *x = et_batch_x(graph, got);
        if (x->node)
            need(cx, et_eval(graph, &x, 1));
        same += holds(x, want->field[0].host.any, &want->field[0].desc) &&
                holds(got->field[1].tensor, want->field[1].host.any,
                      &want->field[1].desc) &&
                got->first == want->first && got->epoch == want->epoch &&
                got->n_samples == want->n_samples;
        *resident += x->node && !got->field[0].host.any && !got->field[0].tensor;
        et_graph_reset(graph);
        et_loader_release(s->host, want);
        et_loader_release(s->device, got);
    }
    return same;
}

/* ---- the tests ---- */

static void
transforms(void)
{
    static const char *const lists[] = {
        NULL,
        "[normalize: {mean: [0.5, 0.4, 0.3], std: [0.2, 0.3, 0.1]}]",
        "[random_crop: {size: 9, padding: 4}, horizontal_flip]",
        "[horizontal_flip, random_crop: {size: 7, padding: 2}, center_crop: {size: 5}, "
        "normalize: {mean: [0.5], std: [0.25]}]",
        "[center_crop: {size: 6}, random_crop: {size: 8, padding: 5}, horizontal_flip: "
        "{p: 1}, "
        "random_crop: {size: 3, padding: 1}]",
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (int layout = PLANES; layout <= PIXELS; layout++) {
            struct setup s = setup(23, 3, (enum layout)layout, lists[i]);
            int resident;
            begin(&s);
            is_int(alike(&s, 16, &resident), 16, "%s: four epochs as on the host, %s",
                   lists[i] ? lists[i] : "no transforms",
                   layout == PLANES ? "from planes" : "from pixels");
            is_int(resident, 16, "and made on the device");
            end(&s);
        }
}

/* Lists that a row of what is shown has to say. */
static const char *const told[] = {
    "[resize: {size: 6}]",
    "[resize: {size: 20}, random_crop: {size: 17, padding: 2}]",
    "[resize: {size: 4, filter: bicubic}]",
    "[resize: {size: 25, filter: bicubic}, horizontal_flip]",
    "[resize: {size: 1}]",
    "[resize: {size: 23, filter: nearest}, vertical_flip]",
    "[resize_short: {size: 7}, center_crop: {size: 7}]",
    "[vertical_flip, horizontal_flip]",
    "[random_resized_crop: {size: 8}, horizontal_flip]",
    "[random_resized_crop: {size: 12, filter: nearest}]",
    "[random_resized_crop: {size: 5, filter: bicubic}, random_crop: {size: 5, padding: "
    "2}]",
    "[random_crop: {size: 11, padding: 4}, resize: {size: 9}]",
    "[random_rotation: {degrees: 30}]",
    "[random_rotation: {degrees: 180, filter: nearest}, center_crop: {size: 7}]",
    "[random_affine: {degrees: 20, translate: 0.2, scale: [0.7, 1.5], shear: 15}]",
    "[random_crop: {size: 9, padding: 3}, random_rotation: {degrees: 40}, "
    "random_crop: {size: 8, padding: 2}, horizontal_flip]",
    "[random_resized_crop: {size: 10}, random_affine: {degrees: 20, translate: 0.1}, "
    "resize: {size: 8}]",
    "[random_rotation: {degrees: 30}, random_rotation: {degrees: 30}, resize: {size: "
    "14}]",
    "[color_jitter: {brightness: 0.5}]",
    "[color_jitter: {contrast: 0.9}]",
    "[color_jitter: {saturation: 0.9}]",
    "[color_jitter: {hue: 0.5}]",
    "[color_jitter: {brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.1}, "
    "random_grayscale: {p: 0.3}]",
    "[random_posterize: {bits: 3}]",
    "[random_solarize: {threshold: 99.5}]",
    "[random_equalize, random_autocontrast]",
    "[random_invert]",
    "[random_erasing: {p: 0.8, value: 7}]",
    "[random_resized_crop: {size: 8}, horizontal_flip, color_jitter: {brightness: 0.4, "
    "contrast: 0.4, saturation: 0.4, hue: 0.1}, random_equalize, random_erasing, "
    "normalize: {mean: [0.5, 0.4, 0.3], std: [0.2, 0.3, 0.1]}]",
};

static void
turned_and_changed(const char *where)
{
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        for (int C = 3; C >= 1; C -= 2) {
            const bool means = strstr(told[i], "mean") != NULL;
            if (C == 1 && means)
                continue;
            struct setup s = setup(23, C, C == 1 ? PIXELS : PLANES, told[i]);
            int resident;
            s.options.common.transforms_on = ET_TRANSFORMS_ON_DEVICE;
            begin(&s);
            is_int(alike(&s, 12, &resident), 12, "%s, of %d, on %s: as on the host",
                   told[i], C, where);
            is_int(resident, 12, "and made on the device");
            end(&s);
        }
}

static void
sizes(void)
{
    int resident;
    struct setup s = setup(23, 3, PLANES, "[random_rotation: {degrees: 9}]");
    s.options.common.resolution = 16;
    begin(&s);
    is_int(alike(&s, 8, &resident), 8, "resolution is part of what is shown");
    is_int(resident, 8, "on the device");
    end(&s);
    for (int rank = 0; rank < 2; rank++)
        for (int workers = 0; workers <= 2; workers++) {
            s = setup(21, 3, PLANES,
                      "[random_resized_crop: {size: 8}, color_jitter: "
                      "{contrast: 0.5}]");
            s.config.rank = rank;
            s.config.world_size = 2;
            s.options.common.workers = workers;
            begin(&s);
            is_int(alike(&s, 6, &resident), 6,
                   "rank %d of 2, %d workers: its slices, changed as alone", rank,
                   workers);
            need(cx, et_loader_seek(cx, s.host, 4, 1));
            need(cx, et_loader_seek(cx, s.device, 4, 1));
            is_int(alike(&s, 6, &resident), 6, "and from the middle of an epoch");
            end(&s);
        }
}

/* Does a loader on the device refuse S, which says that the device is to do it? */
static void
refused(struct setup *s, const char *sentence)
{
    s->options.common.transforms_on = ET_TRANSFORMS_ON_DEVICE;
    need(cx, et_dataset_open(cx, &stored_images, &s->options, &s->data));
    s->config.dev = gpu;
    et_status status = et_loader_new(cx, s->data, &s->config, &s->device);
    is_int(status, ET_EINVAL, "transforms that the device cannot do are refused");
    is_str(et_error_get(cx)->message, sentence, "%s", sentence);
    et_error_clear(cx);
    end(s);
}

#define REFUSED(why) "stored_images: transforms_on is device, and " why

static void
refusals(void)
{
    struct setup s = setup(23, 3, PLANES, "[gaussian_blur: {kernel_size: 3}]");
    refused(&s, REFUSED("gaussian_blur is done by the host alone"));
    s = setup(23, 3, PLANES, "[random_erasing: {fill: noise}]");
    refused(&s, REFUSED("random_erasing with these options is done by the host alone"));
    s = setup(23, 3, PLANES, "[random_invert, random_crop: {size: 8}]");
    refused(&s, REFUSED("random_crop comes after random_invert, which changes pixels"));
    s = setup(23, 2, PLANES, "[random_invert]");
    refused(&s,
            REFUSED("random_invert is for pictures of 1 or 3 channels there, not 2"));
    s = setup(23, 3, PLANES,
              "[color_jitter: {brightness: 1, contrast: 1, saturation: 1, hue: 0.5}, "
              "color_jitter: {brightness: 1, contrast: 1, saturation: 1, hue: 0.5}, "
              "color_jitter: {brightness: 1, contrast: 1, saturation: 1, hue: 0.5}, "
              "random_invert]");
    refused(&s,
            REFUSED("there are more than 12 changes of pixels up to random_invert"));
    s = setup(23, 3, GAPS, NULL);
    refused(&s, REFUSED("its images do not lie one behind the other"));
    s = setup(23, 3, PLANES, NULL);
    s.options.bad = 20;
    s.options.common.max_corrupt = 0.1;
    refused(&s, REFUSED("one of its images cannot be read, or is not as the first"));
}

/* Transforms that algorithms add while a run goes on, and take away again. */
static void
added(void)
{
    const struct et_parts none = {0};
    struct setup more = setup(1, 3, PLANES, "[gaussian_blur: {kernel_size: 3}]");
    const struct et_parts *blur = &more.options.common.transforms;
    struct setup s = setup(23, 3, PLANES, "[random_rotation: {degrees: 9}]");
    int resident;
    int64_t size[2];
    begin(&s);
    is_int(alike(&s, 3, &resident), 3, "batches as on the host");
    is_int(resident, 3, "are made on the device");
    need(cx, eti_loader_add(cx, s.host, blur));
    need(cx, eti_loader_add(cx, s.device, blur));
    is_int(alike(&s, 4, &resident), 4, "with what the host alone does added, alike");
    is_int(resident, 1, "and sent; one call is an epoch's end");
    need(cx, eti_loader_add(cx, s.host, &none));
    need(cx, eti_loader_add(cx, s.device, &none));
    is_int(alike(&s, 4, &resident), 4, "without it again, alike");
    is_int(resident, 4, "and on the device again");
    end(&s);
    s = setup(23, 3, PLANES, "[random_rotation: {degrees: 9}]");
    s.options.common.transforms_on = ET_TRANSFORMS_ON_DEVICE;
    begin(&s);
    is_int(eti_loader_try(cx, s.device, blur, size), ET_EINVAL,
           "where the device is to do all, that is refused");
    is_str(et_error_get(cx)->message,
           "stored_images: transforms_on is device, and gaussian_blur is done by the "
           "host alone",
           "and said");
    et_error_clear(cx);
    end(&s);
    et_options_release(table, &more.options);
}

static void
channels(void)
{
    for (int C = 1; C <= ET_MAX_CHANNELS; C++) {
        struct setup s = setup(701, C, PIXELS, "[random_crop: {size: 8, padding: 1}]");
        int resident;
        s.options.common.batch_size = 64;
        begin(&s);
        is_int(alike(&s, 24, &resident), 24, "%d channels", C);
        end(&s);
    }
}

static void
orders(void)
{
    int resident;
    for (int workers = 0; workers <= 3; workers++) {
        struct setup s = setup(103, 3, PLANES, "[horizontal_flip]");
        s.options.common.workers = workers;
        begin(&s);
        is_int(alike(&s, 30, &resident), 30, "%d workers prepare the same", workers);
        need(cx, et_loader_seek(cx, s.host, 5, 4));
        need(cx, et_loader_seek(cx, s.device, 5, 4));
        is_int(alike(&s, 20, &resident), 20, "and from the middle of a later epoch");
        end(&s);
    }
    for (int rank = 0; rank < 2; rank++) {
        struct setup s = setup(21, 3, PLANES, "[horizontal_flip]");
        s.config.rank = rank;
        s.config.world_size = 2;
        begin(&s);
        is_int(alike(&s, 2, &resident), 2, "rank %d of 2 has its slices", rank);
        end(&s);
    }
    struct setup s = setup(23, 3, PLANES, NULL);
    s.config.train = s.options.common.shuffle = false;
    begin(&s);
    is_int(alike(&s, 8, &resident), 8, "in order, to evaluate");
    end(&s);
}

/* The cast of batch B to DTYPE by G, and the batch itself if WHOLE; the kernels it
 * took. */
static int
cast_batch(struct et_graph *g, const struct et_batch *b, enum et_dtype dtype,
           bool whole, void *out)
{
    struct et_graph_stats before, after;
    et_graph_get_stats(g, &before);
    struct et_tensor *x = et_batch_x(g, b), *want[2] = {et_cast(g, x, dtype), x};
    need(cx, et_eval(g, want, whole ? 2 : 1));
    et_graph_get_stats(g, &after);
    need(cx, eti_tensor_copy_out(cx, want[0], out));
    et_graph_reset(g);
    return (int)(after.kernels_run - before.kernels_run);
}

static void
narrow(void)
{
    enum { COUNT = 10 * 3 * 8 * 8 };
    uint16_t want[COUNT], got[COUNT];
    struct et_graph *eager;
    setenv("ETUDE_EAGER", "1", 1);
    need(cx, et_graph_new(cx, gpu, &eager));
    unsetenv("ETUDE_EAGER");
    struct setup s = setup(23, 3, PLANES,
                           "[random_crop: {size: 8, padding: 3}, horizontal_flip, "
                           "normalize: {mean: [0.5], std: [0.23]}]");
    begin(&s);
    for (int to = ET_BF16; to <= ET_F16; to++) {
        const char *name = et_dtype_name((enum et_dtype)to);
        const struct et_batch *b;
        need(cx, et_loader_next(cx, s.device, &b));
        is_int(cast_batch(eager, b, (enum et_dtype)to, false, want), 2,
               "a batch in %s is a batch, and a cast of it", name);
        memset(got, 0, sizeof got);
        is_int(cast_batch(graph, b, (enum et_dtype)to, false, got), 1,
               "for which a plan has one kernel");
        ok(memcmp(got, want, sizeof got) == 0, "with the same bits");
        is_int(cast_batch(graph, b, (enum et_dtype)to, true, got), 2,
               "but two where the batch is read in f32, too");
        ok(memcmp(got, want, sizeof got) == 0, "with the same bits");
        et_loader_release(s.device, b);
    }
    /* Neither is written as it is made. */
    static const enum et_dtype wide[] = {ET_I32, ET_F64};
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        static double whole[COUNT], joined[COUNT];
        const struct et_batch *b;
        do
            need(cx, et_loader_next(cx, s.device, &b));
        while (!b); /* an epoch's end */
        is_int(cast_batch(eager, b, wide[i], false, whole), 2,
               "a batch in %s is a batch, and a cast of it", et_dtype_name(wide[i]));
        is_int(cast_batch(graph, b, wide[i], false, joined), 2, "for a plan, too");
        ok(memcmp(joined, whole, COUNT * et_dtype_size(wide[i])) == 0,
           "with the same bits");
        et_loader_release(s.device, b);
    }
    end(&s);
    et_graph_free(&eager);
}

/* Twice the batch, in steps that are not waited for: batches are given back at once. */
static void
recorded(void)
{
    struct setup s = setup(200, 3, PLANES, "[random_crop: {size: 8, padding: 3}]");
    struct et_tensor *twice;
    struct et_loader_info info;
    struct et_graph_stats stats;
    int same = 0;
    begin(&s);
    et_loader_get_info(s.device, &info);
    const int64_t *shape = info.desc[0].shape;
    need(cx, et_tensor_new(cx, gpu, ET_F32, 4, shape, ET_CHANNELS_LAST, "y", &twice));
    for (int step = 0; step < 40; step++) {
        const struct et_batch *want, *got;
        do
            need(cx, et_loader_next(cx, s.host, &want));
        while (!want);
        do
            need(cx, et_loader_next(cx, s.device, &got));
        while (!got);
        et_assign(graph, twice, et_mul_scalar(graph, et_batch_x(graph, got), 2));
        need(cx, et_eval(graph, NULL, 0));
        et_graph_reset(graph);
        et_loader_release(s.device, got);
        float *x = want->field[0].host.any;
        for (int64_t i = 0; i < et_desc_count(&want->field[0].desc); i++)
            x[i] *= 2;
        same += holds(twice, x, &want->field[0].desc);
        et_loader_release(s.host, want);
    }
    et_graph_get_stats(graph, &stats);
    is_int(same, 40, "forty steps see the batch that was theirs");
    ok(stats.captures > 0 && stats.launches > 20,
       "and make it within what is recorded (%d replays)", (int)stats.launches);
    et_tensor_free(&twice);
    end(&s);
}

static size_t
in_use(void)
{
    struct et_device_memory m;
    et_device_get_memory(gpu, &m);
    return m.current_bytes;
}

static void
sharing(void)
{
    size_t before = in_use(), one, two;
    struct setup s = setup(500, 3, PLANES, "[horizontal_flip]");
    struct et_loader *second;
    begin(&s);
    one = in_use();
    s.options.common.batch_size = 20;
    need(cx, et_loader_new(cx, s.data, &s.config, &second));
    two = in_use();
    const struct et_batch *a, *b;
    need(cx, et_loader_next(cx, s.device, &a));
    need(cx, et_loader_next(cx, second, &b));
    ok(a->raw && a->raw == b->raw, "two loaders of a set share its images");
    ok(one - before >= 500 * 3 * H * W && two - one < 500 * 3 * H * W,
       "which lie on the device once");
    et_loader_release(second, b);
    et_loader_release(s.device, a);
    et_loader_free(&s.device);
    need(cx, et_loader_next(cx, second, &b));
    struct et_tensor *x = et_batch_x(graph, b);
    need(cx, et_eval(graph, &x, 1));
    ok(in_use() > before, "and stay for the one that is left");
    et_graph_reset(graph);
    et_loader_release(second, b);
    et_loader_free(&second);
    end(&s);
    s = setup(23, 3, PLANES, NULL);
    begin(&s);
    need(cx, et_loader_next(cx, s.device, &a));
    ok(a->raw && a->raw->desc.shape[0] == 23, "another set has its own");
    et_loader_release(s.device, a);
    end(&s);
}

static void
heard(void *data, enum et_log_level level, const char *text)
{
    char *line = data;
    if (level == ET_LOG_DEBUG && strstr(text, "lie on the device"))
        snprintf(line + strlen(line), 512 - strlen(line), "%s\n", text);
}

static void
telling(void)
{
    char line[512] = "";
    struct setup s = setup(500, 3, PLANES, NULL);
    struct et_loader *second;
    et_ctx_set_log(cx, ET_LOG_DEBUG, heard, line);
    begin(&s);
    need(cx, et_loader_new(cx, s.data, &s.config, &second));
    is_str(line,
           "stored_images: 500 images lie on the device (145.0 KiB), which makes the "
           "batches\n",
           "it is said once");
    et_ctx_set_log(cx, ET_LOG_WARN, NULL, NULL);
    et_loader_free(&second);
    end(&s);
}

/* What is not left on the device is sent, as ever. */
static void
sent(struct setup *s, const char *what)
{
    int resident;
    begin(s);
    int same = alike(s, 4, &resident);
    ok(same == 4 && resident <= 1, "%s: batches are sent (%d alike)", what, same);
    end(s);
}

static void
exceptions(void)
{
    struct setup s = setup(23, 3, PLANES, "[gaussian_blur: {kernel_size: 3}]");
    sent(&s, "a set that is blurred");
    s = setup(23, 3, PLANES, NULL);
    s.options.common.transforms_on = ET_TRANSFORMS_ON_HOST;
    sent(&s, "a set whose transforms are to run on the host");
    s = setup(23, 3, GAPS, NULL);
    sent(&s, "one whose rows have gaps");
    s = setup(23, 3, UNLIKE, NULL);
    sent(&s, "one of whose images the rows have gaps");
    s = setup(23, 3, PLANES, NULL);
    s.options.bad = 20;
    s.options.common.max_corrupt = 0.1;
    sent(&s, "one with a damaged image");

    s = setup(10000, 3, PLANES, NULL); /* 3 MB */
    et_device_set_limit(gpu, in_use() + 200000);
    sent(&s, "one that memory is too short for after all");
    et_device_set_limit(gpu, 0);
}

/* A card of 64 MiB, most of it free: a data set may have 8. */
static void
share(void)
{
    int resident;
    struct setup s = setup(20000, 3, PIXELS, NULL); /* 5.9 MB */
    begin(&s);
    is_int(alike(&s, 2, &resident), 2, "less than an eighth of the memory: alike");
    is_int(resident, 2, "and on the device");
    end(&s);
    s = setup(30000, 3, PIXELS, NULL); /* 8.9 MB */
    begin(&s);
    is_int(alike(&s, 2, &resident), 2, "more than an eighth of the memory: alike");
    is_int(resident, 0, "and sent");
    end(&s);
}

/* A device that works in the host's memory has images where it is told to. */
static void
elsewhere(const char *name)
{
    if (et_device_open(cx, name, 0, 1, &gpu) != ET_OK) {
        et_error_clear(cx);
        skip(1, "the device is not built");
        return;
    }
    need(cx, et_graph_new(cx, gpu, &graph));
    turned_and_changed(name);
    int resident;
    struct setup s = setup(23, 3, PLANES, "[horizontal_flip]");
    begin(&s);
    is_int(alike(&s, 3, &resident), 3, "%s: batches that are cut, alike", name);
    is_int(resident, 0, "and not made by the step unless it is asked for");
    end(&s);
    et_graph_free(&graph);
    et_device_close(&gpu);
}

int
main(void)
{
    cx = need_ctx();
    elsewhere("ref");
    elsewhere("cpu");
    setenv("GPUSIM_MEMORY", "67108864", 1);
    if (et_device_open(cx, "gpusim", 0, 1, &gpu) != ET_OK) {
        et_error_clear(cx);
        skip(1, "the simulated GPU is not built");
        return done();
    }
    need(cx, et_graph_new(cx, gpu, &graph));
    transforms();
    turned_and_changed("gpusim");
    sizes();
    refusals();
    added();
    channels();
    orders();
    narrow();
    recorded();
    sharing();
    telling();
    exceptions();
    share();
    et_graph_free(&graph);
    et_device_close(&gpu);
    et_ctx_free(&cx);
    return done();
}
