/* SPDX-License-Identifier: Apache-2.0 */
/* image_visualizer.c: what the model is shown, and how it paints it, as pictures.
 *
 *     images/train-ba000000400.png     in the run directory, after so many batches
 *     images/<label>-ba000000400.png   of the first batch of each evaluation
 *
 * Loggers that show pictures have them as images/train, images/<label>.
 *
 * num_images of the batch side by side, after everything that algorithms did to it,
 * each stretched from its least value to its greatest. With mode "segmentation" two
 * rows more: the classes that the model gives to pixels and those it should have given,
 * in the colours of Pascal VOC; ignored pixels are white.
 *
 * Source: spec/trainer.md 9.3, ImageVisualizer. Differs: files, not entries of a
 * cloud's table, hence no use_table; batches have one layout and one input and target,
 * hence no channels_last, input_key and target_key. Values come with the step's own
 * evaluation. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/callbacks/callbacks.h"
#include "core/image/class_color.h"
#include "core/image/encode.h"
#include "core/trainer/log.h"

enum mode { INPUT, SEGMENTATION };
static const char *const modes[] = {"input", "segmentation", NULL};

struct options {
    struct et_time interval;
    int mode;
    int64_t num_images;
};

static const struct et_option option_table[] = {
    {
        .name = "interval",
        .type = ET_OPT_TIME,
        .offset = offsetof(struct options, interval),
        .def = "100ba",
        .max = -1,
        .flags = ET_OPT_MIN_OPEN,
        .units = 1u << ET_TIME_EPOCH | 1u << ET_TIME_BATCH,
        .help = "pictures of the training batches whose number is a multiple",
    },
    {
        .name = "mode",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct options, mode),
        .def = "input",
        .choices = modes,
        .help = "the input alone, or the classes of its pixels too",
    },
    {
        .name = "num_images",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, num_images),
        .def = "8",
        .min = 1,
        .max = 64,
        .help = "images of a batch, or as many as it has",
    },
    {.name = NULL},
};

enum { PATH_BYTES = 4096, GAP = 2 /* pixels between images */ };
enum { IMAGES, PREDICTION, TARGET, LEAVES };

struct visualizer {
    struct et_tensor *leaf[LEAVES]; /* f32 [n,C,H,W]; i32 [n,H,W] of the others */
    bool taken[LEAVES];             /* will be there at the batch's end */
    int64_t batch;                  /* training batches that were finished then */
    double last;                    /* the counter's value of the last picture */
    bool warned;
};

/* ---- taking ---- */

static et_status
take(struct et_callback *self, const struct et_state *s, int which, struct et_tensor *x)
{
    struct visualizer *v = self->state;
    struct et_tensor *leaf = v->leaf[which];
    if (!x)
        return et_graph_status(s->graph);
    if (!leaf || !et_desc_same_shape(&leaf->desc, &x->desc)) {
        et_tensor_free(&v->leaf[which]);
        ET_TRY(et_tensor_new(self->cx, s->dev, x->desc.dtype, x->desc.ndim,
                             x->desc.shape, ET_ROW_MAJOR, "image_visualizer",
                             &v->leaf[which]));
    }
    et_assign(s->graph, v->leaf[which], x);
    v->taken[which] = true;
    return et_graph_status(s->graph);
}

static struct et_tensor *
first_rows(struct et_graph *g, struct et_tensor *x, int64_t n)
{
    int64_t rows = x->desc.shape[0] < n ? x->desc.shape[0] : n;
    return et_slice(g, x, 0, 0, rows, 1);
}

/* Classes of pixels: X as it is, or where the largest of its scores [n,C,H,W] are. */
static struct et_tensor *
classes_of(struct et_graph *g, struct et_tensor *x)
{
    if (et_dtype_is_float(x->desc.dtype))
        return et_argmax(g, x, 1);
    return et_cast(g, x, ET_I32);
}

static bool
is_image(const struct et_tensor *x)
{
    return x && x->desc.ndim == 4 && et_desc_count(&x->desc) > x->desc.shape[0];
}

static et_status
take_all(struct et_callback *self, const struct et_state *s)
{
    const struct options *o = self->options;
    struct et_graph *g = s->graph;
    struct et_tensor *x = s->batch.x, *y = s->outputs, *target = s->batch.target;
    if (!is_image(x) || (o->mode == SEGMENTATION && (!is_image(y) || !target)))
        return ET_OK;
    ET_TRY(take(self, s, IMAGES, et_cast(g, first_rows(g, x, o->num_images), ET_F32)));
    if (o->mode == INPUT)
        return ET_OK;
    ET_TRY(take(self, s, PREDICTION, classes_of(g, first_rows(g, y, o->num_images))));
    return take(self, s, TARGET, classes_of(g, first_rows(g, target, o->num_images)));
}

/* ---- painting ---- */

struct canvas {
    uint8_t *rgb;
    int64_t width, height;
};

static uint8_t *
pixel(const struct canvas *c, int64_t row, int64_t column)
{
    return c->rgb + 3 * (row * c->width + column);
}

/* Image X [C,H,W] at TOP, LEFT: its first channel in grey, or its first three. */
static void
paint_image(const struct canvas *c, const float *x, const struct et_desc *d,
            int64_t top, int64_t left)
{
    int64_t channels = d->shape[1], h = d->shape[2], w = d->shape[3];
    float least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < channels * h * w; i++) {
        least = fminf(least, x[i]);
        most = fmaxf(most, x[i]);
    }
    float scale = most > least ? 255 / (most - least) : 0;
    for (int64_t row = 0; row < h; row++)
        for (int64_t column = 0; column < w; column++)
            for (int k = 0; k < 3; k++) {
                int64_t channel = channels < 3 ? 0 : k;
                float v = scale * (x[(channel * h + row) * w + column] - least);
                pixel(c, top + row, left + column)[k] =
                    (uint8_t)(v > 0 ? lrintf(fminf(v, 255)) : 0); /* NaN is black */
            }
}

static void
paint_classes(const struct canvas *c, const int32_t *x, const struct et_desc *d,
              int64_t top, int64_t left)
{
    for (int64_t row = 0; row < d->shape[1]; row++)
        for (int64_t column = 0; column < d->shape[2]; column++)
            eti_voc_color(x[row * d->shape[2] + column],
                          pixel(c, top + row, left + column));
}

static et_status
paint_row(struct et_callback *self, int which, const struct canvas *c, int64_t top)
{
    const struct visualizer *v = self->state;
    const struct et_desc *d = &v->leaf[which]->desc;
    const int64_t n = d->shape[0], each = et_desc_count(d) / n;
    const int64_t step = d->shape[d->ndim - 1] + GAP;
    void *block;
    ET_TRY(et_alloc(self->cx, et_desc_bytes(d), &block));
    et_status status =
        et_tensor_read(self->cx, v->leaf[which], block, et_desc_bytes(d));
    for (int64_t i = 0; i < n && status == ET_OK; i++)
        if (which == IMAGES)
            paint_image(c, (const float *)block + i * each, d, top, i * step);
        else
            paint_classes(c, (const int32_t *)block + i * each, d, top, i * step);
    et_free(self->cx, block);
    return status;
}

static et_status
paint(struct et_callback *self, struct et_log *log, const char *whose, const char *path)
{
    const struct visualizer *v = self->state;
    const struct et_desc *d = &v->leaf[IMAGES]->desc;
    struct canvas c = {0};
    int64_t top[LEAVES], height;
    char tag[ET_METRIC_NAME];
    void *block;
    snprintf(tag, sizeof tag, "images/%.80s", whose);
    c.width = d->shape[0] * (d->shape[3] + GAP) - GAP;
    for (int i = 0; i < LEAVES; i++) {
        if (!v->taken[i])
            continue;
        const struct et_desc *row = &v->leaf[i]->desc;
        int64_t width = row->shape[0] * (row->shape[row->ndim - 1] + GAP) - GAP;
        height = row->shape[row->ndim - 2];
        top[i] = c.height;
        c.height += height + GAP;
        c.width = width > c.width ? width : c.width;
    }
    c.height -= GAP;
    ET_TRY(et_alloc(self->cx, 3 * (size_t)c.width * (size_t)c.height, &block));
    c.rgb = block;
    et_status status = ET_OK;
    for (int i = 0; i < LEAVES && status == ET_OK; i++)
        if (v->taken[i])
            status = paint_row(self, i, &c, top[i]);
    if (status == ET_OK)
        status = eti_png_write(self->cx, path, c.rgb, c.width, c.height);
    if (status == ET_OK)
        eti_log_picture(log, tag, path, c.width, c.height);
    et_free(self->cx, c.rgb);
    return status;
}

/* A picture that cannot be written is missed; the first is warned about. */
static et_status
write_picture(struct et_callback *self, const char *whose, const struct et_state *s,
              struct et_log *log)
{
    struct visualizer *v = self->state;
    char path[PATH_BYTES];
    if (!v->taken[IMAGES])
        return ET_OK;
    int n = snprintf(path, sizeof path, "%s/images/%s-ba%09" PRId64 ".png",
                     self->run_directory, whose, s->timestamp.batch);
    et_status status = n >= (int)sizeof path
                           ? ET_FAIL(self->cx, ET_EINVAL, "a path is too long")
                           : paint(self, log, whose, path);
    memset(v->taken, 0, sizeof v->taken);
    if (status == ET_OK || status == ET_ENOMEM)
        return status;
    if (!v->warned)
        et_log_text(log, ET_LOG_WARN, &s->timestamp, "image_visualizer: %s",
                    et_error_get(self->cx)->message);
    v->warned = true;
    et_error_clear(self->cx);
    return ET_OK;
}

/* ---- events ---- */

/* Is this the first piece of an evaluation's first batch? */
static bool
is_first(const struct et_state *s)
{
    return s->eval_timestamp.batch == 0 && s->batch.first_row == 0;
}

static et_status
open_folder(struct et_callback *self)
{
    struct visualizer *v = self->state;
    char path[PATH_BYTES];
    v->last = -1;
    if (!self->run_directory)
        return ET_FAIL(self->cx, ET_EINVAL,
                       "image_visualizer needs a run directory, and there is none");
    snprintf(path, sizeof path, "%s/images", self->run_directory);
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return ET_FAIL(self->cx, ET_EIO, "cannot make %s: %s", path, strerror(errno));
    return ET_OK;
}

static et_status
train_forward(struct et_callback *self, const struct et_state *s)
{
    const struct options *o = self->options;
    struct visualizer *v = self->state;
    double now;
    bool due;
    if (s->pass > 0 || s->batch.first_row > 0)
        return ET_OK;
    memset(v->taken, 0, sizeof v->taken);
    ET_TRY(eti_at_interval(self->cx, &s->timestamp, o->interval, &now, &due));
    if (!due || now == v->last)
        return ET_OK;
    v->batch = s->timestamp.batch;
    return take_all(self, s);
}

static et_status
end_batch(struct et_callback *self, const struct et_state *s, struct et_log *log)
{
    const struct options *o = self->options;
    struct visualizer *v = self->state;
    struct et_time now;
    /* Where the host ran ahead, batches before that of the picture are shown first. */
    if (!v->taken[IMAGES] || s->timestamp.batch != v->batch + 1)
        return ET_OK;
    ET_TRY(et_timestamp_get(self->cx, &s->timestamp, o->interval.unit, &now));
    v->last = now.value - (o->interval.unit == ET_TIME_BATCH); /* as it was taken */
    return write_picture(self, "train", s, log);
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *s,
    struct et_log *log)
{
    const struct options *o = self->options;
    switch (event) {
    case ET_EVENT_INIT:
        return open_folder(self);
    case ET_EVENT_BEFORE_FORWARD:
        return o->mode == INPUT ? train_forward(self, s) : ET_OK;
    case ET_EVENT_BEFORE_LOSS:
        return o->mode == SEGMENTATION ? train_forward(self, s) : ET_OK;
    case ET_EVENT_BATCH_END:
        return end_batch(self, s, log);
    case ET_EVENT_EVAL_BEFORE_FORWARD:
        return o->mode == INPUT && is_first(s) ? take_all(self, s) : ET_OK;
    case ET_EVENT_EVAL_AFTER_FORWARD:
        return o->mode == SEGMENTATION && is_first(s) ? take_all(self, s) : ET_OK;
    default:
        return write_picture(self, s->dataloader_label, s, log);
    }
}

static et_status
archive(struct et_callback *self, struct et_archive *a)
{
    struct visualizer *v = self->state;
    return et_archive_f64(a, "last", &v->last, 1);
}

static void
release(struct et_callback *self)
{
    struct visualizer *v = self->state;
    for (int i = 0; i < LEAVES; i++)
        et_tensor_free(&v->leaf[i]);
}

/* The picture is overwritten by the next. */
static bool
trails(const struct et_callback *self, const struct et_state *state)
{
    const struct visualizer *v = self->state;
    (void)state;
    return !v->taken[IMAGES];
}

const struct et_callback_class et_callback_image_visualizer = {
    .info =
        {
            .name = "image_visualizer",
            .class_name = "ImageVisualizer",
            .summary = "pictures of what the model is shown, and of its segmentation",
            .source = "MosaicML Composer, ImageVisualizer",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct visualizer),
    .events = ET_ON(INIT) | ET_ON(BEFORE_FORWARD) | ET_ON(BEFORE_LOSS) |
              ET_ON(BATCH_END) | ET_ON(EVAL_BEFORE_FORWARD) |
              ET_ON(EVAL_AFTER_FORWARD) | ET_ON(EVAL_BATCH_END),
    .run = run,
    .trails = trails,
    .archive = archive,
    .close = release,
};
