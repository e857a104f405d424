/* SPDX-License-Identifier: Apache-2.0 */
/* image_visualizer: the pictures that it writes, pixel by pixel. prediction_tracker:
 * which samples it follows. */
#include <dirent.h>
#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/image/class_color.h"
#include "core/library/tracked.h"
#include "core/trainer/log.h"
#include "core/trainer/trainer_impl.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"

struct picture {
    int width, height;
    unsigned char *rgb;
};

static const char *
path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/images/%s", scratch_folder(), name);
    return path;
}

static bool
picture_open(struct picture *p, const char *name)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    memset(p, 0, sizeof *p);
    if (!png_image_begin_read_from_file(&image, path_of(name)))
        return false;
    image.format = PNG_FORMAT_RGB;
    p->width = (int)image.width;
    p->height = (int)image.height;
    p->rgb = malloc(PNG_IMAGE_SIZE(image));
    if (!p->rgb || !png_image_finish_read(&image, NULL, p->rgb, 0, NULL))
        bail("%s: %s", name, image.message);
    return true;
}

static const unsigned char *
at(const struct picture *p, int row, int column)
{
    return p->rgb + 3 * (row * p->width + column);
}

static bool
is_colour(const struct picture *p, int row, int column, int r, int g, int b)
{
    const unsigned char *v = at(p, row, column);
    return v[0] == r && v[1] == g && v[2] == b;
}

static struct et_callback *
make_of(struct et_ctx *cx, const char *name, const char *const *options)
{
    const struct et_callback_class *c = et_callback_find(name);
    struct et_callback *out;
    void *values;
    need(cx, et_alloc(cx, c->info.options_size, &values));
    need(cx, et_options_init(cx, c->info.options, values));
    for (; *options; options += 2)
        need(cx, et_options_set(cx, c->info.options, values, options[0], options[1]));
    need(cx, et_callback_new(cx, c, values, scratch_folder(), &out));
    et_options_release(c->info.options, values);
    et_free(cx, values);
    return out;
}

#define MAKE(cx, ...)                                                                  \
    make_of(cx, "image_visualizer", (const char *const[]){__VA_ARGS__, NULL})

/* Pixels of counted image I that differ from what P shows of it, stretched from its
 * least value to its greatest; rounding may take them one apart. */
static int
wrong_pixels(const struct picture *p, int i)
{
    int least = 255, most = 0, wrong = 0;
    for (int k = 0; k < 48; k++) {
        int v = (7 * i + 8 * (k / 8) + k % 8) % 256;
        least = v < least ? v : least;
        most = v > most ? v : most;
    }
    for (int k = 0; k < 48; k++) {
        double v = (7 * i + 8 * (k / 8) + k % 8) % 256;
        double want = 255 * (v - least) / (most - least);
        const unsigned char *got = at(p, k / 8, 10 * i + k % 8);
        wrong += got[0] - want > 1 || want - got[0] > 1 || got[1] != got[0] ||
                 got[2] != got[0];
    }
    return wrong;
}

static void
test_run(struct et_ctx *cx, int64_t accum)
{
    struct et_callback *c = MAKE(cx, "interval", "2ba", "num_images", "4");
    struct picture p;
    struct run r;
    run_open(&r, cx,
             &(struct run_setup){
                 .n = 10,
                 .batch_size = 5,
                 .callbacks = &c,
                 .n_callbacks = 1,
                 .grad_accum = accum,
                 .evaluate = true,
             });
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(4)));
    ok(picture_open(&p, "eval-ba000000002.png"),
       "an evaluation's first batch is there");
    ok(p.width == 4 * 8 + 3 * 2 && p.height == 6, "four images side by side");
    for (int i = 0; i < 4; i++)
        is_int(wrong_pixels(&p, i), 0, "image %d shows sample %d", i, i);
    free(p.rgb);
    ok(picture_open(&p, "train-ba000000001.png"), "so is batch 1 of training");
    is_int(p.width, (int)(accum == 2 ? 3 : 4) * 10 - 2,
           "with as many images as the first microbatch has, at most four");
    free(p.rgb);
    ok(access(path_of("train-ba000000003.png"), F_OK) == 0 &&
           access(path_of("train-ba000000002.png"), F_OK) != 0 &&
           access(path_of("train-ba000000004.png"), F_OK) != 0,
       "every second batch, no other");
    run_close(&r);
    et_callback_free(&c);
}

/* The batches of two epochs of two that have pictures, a bit each. */
static int
pictures_every(struct et_ctx *cx, const char *interval)
{
    struct et_callback *c = MAKE(cx, "interval", interval);
    struct run r;
    char name[64];
    int shown = 0;
    run_open(&r, cx, &(struct run_setup){.callbacks = &c, .n_callbacks = 1});
    for (int ba = 1; ba <= 4; ba++) {
        snprintf(name, sizeof name, "train-ba%09d.png", ba);
        unlink(path_of(name));
    }
    need(cx, et_trainer_fit(r.trainer, ET_EPOCHS(2)));
    for (int ba = 1; ba <= 4; ba++) {
        snprintf(name, sizeof name, "train-ba%09d.png", ba);
        shown |= (access(path_of(name), F_OK) == 0) << (ba - 1);
    }
    run_close(&r);
    et_callback_free(&c);
    return shown;
}

static void
test_intervals(struct et_ctx *cx)
{
    is_int(pictures_every(cx, "1ba"), 15, "each batch has a picture");
    is_int(pictures_every(cx, "3ba"), 9, "each third has");
    is_int(pictures_every(cx, "1ep"), 5, "of each epoch the first batch has");
    is_int(pictures_every(cx, "2ep"), 1, "of each second one");
}

/* Batches of 5 are evaluated in pieces of 3 and 2, as where memory is short. */
static void
test_pieces(struct et_ctx *cx)
{
    struct et_callback *c = MAKE(cx, "num_images", "4");
    struct picture p;
    struct run r;
    run_open(&r, cx,
             &(struct run_setup){.n = 10,
                                 .batch_size = 5,
                                 .callbacks = &c,
                                 .n_callbacks = 1,
                                 .evaluate = true});
    r.trainer->evaluation.split = 2;
    need(cx, et_trainer_eval(r.trainer));
    ok(picture_open(&p, "eval-ba000000000.png") && p.width == 3 * 8 + 2 * 2,
       "of a batch in pieces the first one is shown");
    free(p.rgb);
    run_close(&r);
    et_callback_free(&c);
}

static struct et_tensor *
leaf(struct et_state *s, enum et_dtype dtype, int ndim, const int64_t *shape,
     const void *values)
{
    struct et_tensor *t;
    need(s->cx,
         et_tensor_new(s->cx, s->dev, dtype, ndim, shape, ET_ROW_MAJOR, "leaf", &t));
    need(s->cx, et_tensor_write(s->cx, t, values, et_desc_bytes(&t->desc)));
    return t;
}

/* Two images of 3 channels and 1 x 2 pixels, four classes. */
static void
test_segmentation(struct et_ctx *cx)
{
    static const float x[] = {0, 1, .5f, 1, 1, .25f, 4, 4, 4, 4, 4, 4};
    static const float y[] = {0, 0, 1, 0, 0, 3, 0, 0, 9, 0, 0, 0, 0, 0, 1, 2};
    static const int32_t target[] = {1, -100, 3, 0};
    struct et_callback *c = MAKE(cx, "mode", "segmentation");
    struct picture p;
    struct run r;
    run_open(&r, cx, &(struct run_setup){0});
    struct et_state s = *r.state;
    struct et_tensor *leaves[] = {
        leaf(&s, ET_F32, ET_SHAPE(2, 3, 1, 2), x),
        leaf(&s, ET_F32, ET_SHAPE(2, 4, 1, 2), y),
        leaf(&s, ET_I32, ET_SHAPE(2, 1, 2), target),
    };
    s.batch = (struct et_samples){.x = leaves[0], .target = leaves[2], .n = 2};
    s.outputs = leaves[1];
    s.dataloader_label = "masks";
    need(cx, c->type->run(c, ET_EVENT_INIT, &s, s.log));
    et_graph_reset(s.graph);
    need(cx, c->type->run(c, ET_EVENT_EVAL_AFTER_FORWARD, &s, s.log));
    need(cx, et_eval(s.graph, NULL, 0));
    need(cx, c->type->run(c, ET_EVENT_EVAL_BATCH_END, &s, s.log));
    ok(picture_open(&p, "masks-ba000000000.png") && p.width == 6 && p.height == 7,
       "three rows of two images");
    ok(is_colour(&p, 0, 0, 0, 128, 255) && is_colour(&p, 0, 1, 255, 255, 64),
       "three channels are red, green and blue");
    ok(is_colour(&p, 0, 4, 0, 0, 0), "an image of one value is black");
    ok(is_colour(&p, 3, 0, 128, 0, 0) && is_colour(&p, 3, 1, 0, 128, 0),
       "the classes 1 and 2 that the model gave");
    ok(is_colour(&p, 3, 4, 0, 0, 0) && is_colour(&p, 3, 5, 128, 128, 0),
       "0 and 3 for the other image");
    ok(is_colour(&p, 6, 0, 128, 0, 0) && is_colour(&p, 6, 1, 255, 255, 255) &&
           is_colour(&p, 6, 4, 128, 128, 0),
       "what it should have given; ignored pixels are white");
    free(p.rgb);
    c->type->close(c);
    et_callback_free(&c);
    for (int i = 0; i < 3; i++)
        et_tensor_free(&leaves[i]);
    run_close(&r);
}

/* Value K of image I, on channel C of it: no two are the same, and none is 0. */
static float
value_of(int i, int c, int k)
{
    return (float)(3 + i + (7 * k + 31 * c + 13 * i) % 61);
}

/* The bytes of a pixel of image I that differ from its value, stretched from the
 * image's least to its greatest. */
static int
wrong_bytes(const struct picture *p, int i, int channels, int k, int width)
{
    float least = 1e9f, most = 0;
    int wrong = 0;
    for (int c = 0; c < channels; c++)
        for (int m = 0; m < 9 * width; m++) {
            least = fminf(least, value_of(i, c, m));
            most = fmaxf(most, value_of(i, c, m));
        }
    const unsigned char *got = at(p, k / width, (width + 2) * i + k % width);
    for (int b = 0; b < 3; b++) {
        const float v = value_of(i, channels < 3 ? 0 : b, k);
        wrong += fabsf((float)got[b] - 255 * (v - least) / (most - least)) > 1;
    }
    return wrong;
}

/* Two images of 9 x 3 pixels, with classes of 4 x 5 pixels. */
static void
test_shapes(struct et_ctx *cx, int channels)
{
    enum { N = 2, H = 9, W = 3, PIXELS = H * W };
    float x[N * 4 * PIXELS];
    int32_t classes[N * 20];
    float scores[N * 7 * 20] = {0};
    const struct eti_logged_picture *logged;
    struct et_callback *c = MAKE(cx, "mode", "segmentation");
    struct picture p;
    struct run r;
    int wrong = 0, n;
    for (int i = 0; i < N * channels * PIXELS; i++)
        x[i] = value_of(i / PIXELS / channels, i / PIXELS % channels, i % PIXELS);
    for (int i = 0; i < N * 20; i++)
        classes[i] = i % 21;
    for (int i = 0; i < N * 20; i++) /* the model gives 5, 6, 0, 1... */
        scores[(i / 20 * 7 + (i + 5) % 7) * 20 + i % 20] = 2;
    run_open(&r, cx, &(struct run_setup){0});
    struct et_state s = *r.state;
    struct et_tensor *leaves[] = {
        leaf(&s, ET_F32, ET_SHAPE(N, channels, H, W), x),
        leaf(&s, ET_I32, ET_SHAPE(N, 4, 5), classes),
        leaf(&s, ET_F32, ET_SHAPE(N, 7, 4, 5), scores),
    };
    s.batch = (struct et_samples){.x = leaves[0], .target = leaves[1], .n = N};
    s.outputs = leaves[2];
    s.dataloader_label = "odd";
    s.timestamp.batch = channels;
    need(cx, c->type->run(c, ET_EVENT_INIT, &s, s.log));
    et_graph_reset(s.graph);
    need(cx, c->type->run(c, ET_EVENT_EVAL_AFTER_FORWARD, &s, s.log));
    need(cx, et_eval(s.graph, NULL, 0));
    need(cx, c->type->run(c, ET_EVENT_EVAL_BATCH_END, &s, s.log));
    char name[64];
    snprintf(name, sizeof name, "odd-ba%09d.png", channels);
    ok(picture_open(&p, name) && p.width == 12 && p.height == 21,
       "%d channels: as wide and high as its rows are", channels);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < PIXELS; k++)
            wrong += wrong_bytes(&p, i, channels, k, W);
    is_int(wrong, 0, "each pixel of two images is where and what it was");
    for (int i = 0; i < N * 20; i++) {
        uint8_t want[3];
        eti_voc_color((i + 5) % 7, want);
        wrong += memcmp(at(&p, 11 + i % 20 / 5, i / 20 * 7 + i % 5), want, 3) != 0;
        eti_voc_color(classes[i], want);
        wrong += memcmp(at(&p, 17 + i % 20 / 5, i / 20 * 7 + i % 5), want, 3) != 0;
    }
    is_int(wrong, 0, "so is each class");
    logged = eti_log_pictures(s.log, &n);
    ok(n > 0 && logged[n - 1].width == 12 && logged[n - 1].height == 21,
       "and loggers are told of the picture");
    free(p.rgb);
    s.timestamp.batch = 900 + channels; /* a batch of which nothing was taken */
    need(cx, c->type->run(c, ET_EVENT_EVAL_BATCH_END, &s, s.log));
    snprintf(name, sizeof name, "odd-ba%09d.png", 900 + channels);
    ok(access(path_of(name), F_OK) != 0, "no batch shows another's picture");
    c->type->close(c);
    et_callback_free(&c);
    for (int i = 0; i < 3; i++)
        et_tensor_free(&leaves[i]);
    run_close(&r);
}

/* What is no image, or has no classes, has no picture; one that cannot be written is
 * said once. */
static int warnings;

static void
count_texts(struct et_sink *sink, const struct et_record *r)
{
    (void)sink;
    warnings += r->kind == ET_RECORD_LOG && r->level == ET_LOG_WARN;
}

static void
test_none(struct et_ctx *cx)
{
    static const float x[24] = {1, 2, 3};
    static struct et_sink sink = {.write = count_texts};
    struct et_callback *c = MAKE(cx, "mode", "segmentation");
    struct run r;
    run_open(&r, cx, &(struct run_setup){.sink = &sink});
    struct et_state s = *r.state;
    struct et_tensor *leaves[] = {
        leaf(&s, ET_F32, ET_SHAPE(2, 1, 1, 1), x),
        leaf(&s, ET_F32, ET_SHAPE(2, 3, 2, 2), x),
        leaf(&s, ET_I32, ET_SHAPE(2, 2, 2), x),
    };
    s.dataloader_label = "none";
    need(cx, c->type->run(c, ET_EVENT_INIT, &s, s.log));
    for (int i = 0; i < 3; i++) {
        s.batch = (struct et_samples){
            .x = leaves[i == 0 ? 0 : 1], .target = i == 1 ? NULL : leaves[2], .n = 2};
        s.outputs = leaves[1];
        if (i == 2)
            s.dataloader_label = "no/where";
        et_graph_reset(s.graph);
        need(cx, c->type->run(c, ET_EVENT_EVAL_AFTER_FORWARD, &s, s.log));
        need(cx, et_eval(s.graph, NULL, 0));
        need(cx, c->type->run(c, ET_EVENT_EVAL_BATCH_END, &s, s.log));
        ok(access(path_of("none-ba000000000.png"), F_OK) != 0, "case %d has no picture",
           i);
        is_int(warnings, i == 2, "and is said if somebody should know");
        is_int(et_error_get(cx)->status, ET_OK, "without an error");
    }
    et_graph_reset(s.graph);
    need(cx, c->type->run(c, ET_EVENT_EVAL_AFTER_FORWARD, &s, s.log));
    need(cx, et_eval(s.graph, NULL, 0));
    need(cx, c->type->run(c, ET_EVENT_EVAL_BATCH_END, &s, s.log));
    is_int(warnings, 1, "once");
    c->type->close(c);
    et_callback_free(&c);
    for (int i = 0; i < 3; i++)
        et_tensor_free(&leaves[i]);
    run_close(&r);
}

/* Does LINE have this epoch and batch, and the labels WANT in any order? */
static bool
is_line(const json_t *line, int epoch, int batch, const int32_t want[3])
{
    const json_t *labels = json_object_get(line, "label");
    bool same = json_integer_value(json_object_get(line, "ep")) == epoch &&
                json_integer_value(json_object_get(line, "ba")) == batch &&
                json_array_size(labels) == 3;
    for (int i = 0; same && i < 3; i++) {
        size_t at = 0;
        while (at < 3 && json_integer_value(json_array_get(labels, at)) != want[i])
            at++;
        same = at < 3;
    }
    if (!same) {
        char *text = json_dumps(line, 0);
        diag("%s", text ? text : "no line");
        free(text);
    }
    return same;
}

/* Two epochs of two batches, with an evaluation of two batches after each. */
static void
test_tracker(struct et_ctx *cx)
{
    char path[512];
    struct run r;
    struct et_callback *c = make_of(cx, "prediction_tracker",
                                    (const char *const[]){"num_samples", "3", NULL});
    run_open(&r, cx,
             &(struct run_setup){.callbacks = &c,
                                 .n_callbacks = 1,
                                 .evaluate = true,
                                 .max_duration = ET_EPOCHS(2)});
    const struct et_batch *first;
    int32_t want[3];
    need(cx, et_loader_seek(cx, r.eval, 0, 0));
    need(cx, et_loader_next(cx, r.eval, &first));
    memcpy(want, first->field[ET_FIELD_TARGET].host.any, sizeof want);
    et_loader_release(r.eval, first);
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    snprintf(path, sizeof path, "%s/predictions/eval.track.jsonl", scratch_folder());
    json_t *lines = eti_tracked_read(path);
    is_int((int64_t)json_array_size(lines), 2,
           "prediction_tracker writes a line for each evaluation");
    ok(is_line(json_array_get(lines, 0), 1, 2, want) &&
           is_line(json_array_get(lines, 1), 2, 4, want),
       "a line has the first samples of the evaluation's first batch, its epoch and "
       "its batch");
    json_decref(lines);
    run_close(&r);
    et_callback_free(&c);
}

/* The fixture removes its folder, but no folder in it. */
static void
remove_folder(const char *name)
{
    char path[512], file[1024];
    snprintf(path, sizeof path, "%s/%s", scratch_folder(), name);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        unlink(file);
    }
    if (d)
        closedir(d);
    rmdir(path);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct et_alloc_stats stats;
    test_run(cx, 1);
    test_run(cx, 2);
    test_intervals(cx);
    test_pieces(cx);
    test_none(cx);
    test_segmentation(cx);
    for (int channels = 1; channels <= 4; channels++)
        test_shapes(cx, channels);
    test_tracker(cx);
    remove_folder("images");
    remove_folder("predictions");
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
