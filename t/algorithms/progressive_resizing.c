/* SPDX-License-Identifier: Apache-2.0 */
/* ProgressiveResizing: spec/algorithms.md 2.19. */
#include "t/algorithms/fixture.h"

#include <string.h>

static void
test_sizes(void)
{
    static const struct {
        int64_t width;
        double elapsed;
        int64_t want;
    } rows[] = {
        {224, 0, 112}, {224, .65, 168}, {224, .8, 224}, {224, 1, 224},
        {20, 0, 8},    {36, 0, 16},     {30, 0, 16},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t size[] = {rows[i].width, rows[i].width};
        et_resize_size(et_resize_scale(rows[i].elapsed, .5, .5, .2), 4, size);
        is_int(size[1], rows[i].want, "%d pixels after %g of the run",
               (int)rows[i].width, rows[i].elapsed);
        is_int(size[0], size[1], "and as many in height");
    }
    int64_t size[] = {44, 22};
    et_resize_size(15 / 22., 1, size);
    ok(size[0] == 30 && size[1] == 15, "no pixel is lost to rounding");
}

static void
test_pixels(struct et_ctx *cx)
{
    struct formula f;
    float image[16], got[4];
    int32_t mask[16];
    formula_open(&f, cx);
    for (int i = 0; i < 16; i++) {
        image[i] = (float)i;
        mask[i] = i;
    }
    struct et_tensor *x = reals(&f, image, ET_SHAPE(1, 1, 4, 4));
    struct et_tensor *y = integers(&f, mask, ET_SHAPE(1, 4, 4));
    struct et_tensor *rows = integers(&f, (int32_t[]){1, 2}, ET_SHAPE(2));
    struct et_tensor *columns = integers(&f, (int32_t[]){0, 1}, ET_SHAPE(2));
    evaluate(&f, et_resize_batch(f.g, x, ET_RESIZE_NEAREST, 2, 2, 2), got, 4);
    is_near_array(got, (float[]){0, 2, 8, 10}, 4, 0,
                  "the nearest pixel is the one above left");
    evaluate(&f, et_resize_batch(f.g, x, ET_RESIZE_BILINEAR, 2, 2, 2), got, 4);
    is_near_array(got, (float[]){2.5f, 4.5f, 10.5f, 12.5f}, 4, F32_TOL,
                  "bilinear takes the mean of four");
    evaluate(&f, et_crop_batch(f.g, x, rows, columns), got, 4);
    is_near_array(got, (float[]){4, 5, 8, 9}, 4, 0, "a crop is a window of pixels");
    struct et_tensor *labels = et_crop_batch(f.g, y, rows, columns);
    ok(labels->desc.dtype == ET_I32, "masks stay integers");
    evaluate(&f, et_cast(f.g, labels, ET_F32), got, 4);
    is_near_array(got, (float[]){4, 5, 8, 9}, 4, 0, "and are cropped alike");
    labels = et_resize_batch(f.g, y, ET_RESIZE_BILINEAR, 2, 2, 2);
    evaluate(&f, et_cast(f.g, labels, ET_F32), got, 4);
    is_near_array(got, (float[]){0, 2, 8, 10}, 4, 0, "labels are never mixed");
    /* 9x8 pixels become 6x6: every 8/6 pixels down too, not every 9/6, which would be
     * rows 0, 1, 3, 4, 6, 7; as torch's interpolate(x, scale_factor=0.75). */
    float tall[72], small[36], want[36];
    static const int from[] = {0, 1, 2, 4, 5, 6};
    for (int i = 0; i < 72; i++)
        tall[i] = (float)i;
    for (int i = 0; i < 36; i++)
        want[i] = tall[from[i / 6] * 8 + from[i % 6]];
    struct et_tensor *oblong = reals(&f, tall, ET_SHAPE(1, 1, 9, 8));
    int64_t size[] = {9, 8};
    et_resize_size(.75, 2, size);
    ok(size[0] == 6 && size[1] == 6,
       "an image that is not square keeps its proportion");
    evaluate(&f, et_resize_batch(f.g, oblong, ET_RESIZE_NEAREST, 6, 6, 8 / 6.), small,
             36);
    is_near_array(small, want, 36, 0, "both axes are sampled at the width's steps");
    et_graph_reset(f.g);
    et_tensor_free(&oblong);
    struct et_tensor *all[] = {x, y, rows, columns};
    for (int i = 0; i < 4; i++)
        et_tensor_free(&all[i]);
    formula_close(&f);
}

/* ---- runs ---- */

static struct {
    int64_t h[16], w[16];
    bool is_leaf[16];
    float first_pixel[16];
    uint64_t plans[16];
    int at;
} seen;

static et_status
look(struct et_algorithm *self, enum et_event event, struct et_state *s,
     struct et_log *log)
{
    struct et_graph_stats stats;
    float x[4 * 48];
    (void)self;
    (void)event;
    (void)log;
    const struct et_desc *d = &s->batch.x->desc;
    et_graph_get_stats(s->graph, &stats);
    seen.is_leaf[seen.at] = !s->batch.x->node;
    need(s->cx, et_eval(s->graph, &s->batch.x, 1));
    need(s->cx, et_tensor_read(s->cx, s->batch.x, x, et_desc_bytes(d)));
    seen.h[seen.at] = d->shape[2];
    seen.w[seen.at] = d->shape[3];
    seen.plans[seen.at] = stats.plans_built;
    seen.first_pixel[seen.at++] = x[0];
    return ET_OK;
}

static const struct et_algorithm_class spy_class = {
    .info = {.name = "spy"},
    .events = ET_ON(BATCH_START),
    .apply = look,
};

static void
run(struct et_ctx *cx, const char *const *options, int batches)
{
    struct et_algorithm spy = {.type = &spy_class, .cx = cx};
    struct et_algorithm *a = algorithm(cx, "progressive_resizing", options);
    struct et_algorithm *list[] = {a, &spy};
    struct run r;
    memset(&seen, 0, sizeof seen);
    run_open(&r, cx,
             &(struct run_setup){.n = 4,
                                 .model = "resnet8",
                                 .max_duration = ET_BATCHES(batches),
                                 .algorithms = list,
                                 .n_algorithms = 2});
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    run_close(&r);
    et_algorithm_free(&a);
}

static void
test_run(struct et_ctx *cx)
{
    /* 6x8 images in steps of 2: widths 4, then 6, then 8 */
    run(cx, OPTIONS("size_increment", "2"), 10);
    static const int64_t w[] = {4, 4, 4, 4, 4, 4, 6, 6, 8, 8};
    static const int64_t h[] = {3, 3, 3, 3, 3, 3, 4, 4, 6, 6};
    for (int i = 0; i < 10; i++)
        ok(seen.w[i] == w[i] && seen.h[i] == h[i], "batch %d is %dx%d (%dx%d)", i,
           (int)h[i], (int)w[i], (int)seen.h[i], (int)seen.w[i]);
    ok(!seen.is_leaf[0] && seen.is_leaf[9],
       "at full size the batch is the loader's own");

    static const char *const logged[] = {"progressive_resizing/height",
                                         "progressive_resizing/width",
                                         "progressive_resizing/scale_factor"};
    static const double want[] = {3, 4, .5};
    for (int i = 0; i < 3; i++) {
        struct et_algorithm *a =
            algorithm(cx, "progressive_resizing", OPTIONS("size_increment", "2"));
        const struct run_setup setup = {.n = 4,
                                        .model = "resnet8",
                                        .max_duration = ET_BATCHES(2),
                                        .algorithms = &a,
                                        .n_algorithms = 1};
        is_near(last_logged(cx, setup, logged[i]), want[i], 1e-12,
                "a run logs %s of its last batch", logged[i]);
        et_algorithm_free(&a);
    }

    run(cx, OPTIONS("mode", "crop", "size_increment", "2", "delay_fraction", "0.7"),
        10);
    is_int(seen.w[5], 4, "a crop has the same size");
    int corners = 0;
    for (int i = 1; i < 6; i++)
        corners += seen.first_pixel[i] != seen.first_pixel[0];
    ok(corners > 0, "its place changes from batch to batch");
    is_int((int64_t)(seen.plans[5] - seen.plans[1]), 0, "without new plans");
}

/* Before images are resized a batch gets masks: each pixel, of image and mask, says
 * where it was. Afterwards both must show the same window. */
enum { IMAGES = 4, PIXELS = IMAGES * 6 * 8 };
static struct {
    struct et_tensor *x, *mask, *target; /* TARGET: the loader's, which comes back */
    int batches, apart, places;
    float last;
} masked;

static et_status
put_masks(struct et_algorithm *self, enum et_event event, struct et_state *s,
          struct et_log *log)
{
    (void)self, (void)event, (void)log;
    masked.target = s->batch.target;
    s->batch.x = masked.x;
    s->batch.target = masked.mask;
    return ET_OK;
}

static et_status
compare_masks(struct et_algorithm *self, enum et_event event, struct et_state *s,
              struct et_log *log)
{
    float x[PIXELS];
    int32_t mask[PIXELS];
    (void)self, (void)event, (void)log;
    struct et_tensor *want[] = {s->batch.x, s->batch.target};
    const int64_t n = et_desc_count(&want[1]->desc);
    need(s->cx, et_eval(s->graph, want, 2));
    need(s->cx, et_tensor_read(s->cx, want[0], x, (size_t)n * sizeof *x));
    need(s->cx, et_tensor_read(s->cx, want[1], mask, (size_t)n * sizeof *mask));
    bool same = n == et_desc_count(&want[0]->desc);
    for (int64_t i = 0; i < n && same; i++)
        same = x[i] == (float)mask[i];
    masked.batches++;
    masked.apart += !same;
    masked.places += x[0] != masked.last;
    masked.last = x[0];
    s->batch.target = masked.target;
    return ET_OK;
}

static const struct et_algorithm_class put_masks_class = {
    .info = {.name = "put_masks"},
    .events = ET_ON(AFTER_DATALOADER),
    .apply = put_masks,
};
static const struct et_algorithm_class compare_masks_class = {
    .info = {.name = "compare_masks"},
    .events = ET_ON(BATCH_START),
    .apply = compare_masks,
};

static void
test_masks(struct et_ctx *cx)
{
    float x[PIXELS];
    int32_t mask[PIXELS];
    struct run r;
    struct et_algorithm put = {.type = &put_masks_class, .cx = cx};
    struct et_algorithm compare = {.type = &compare_masks_class, .cx = cx};
    struct et_algorithm *a =
        algorithm(cx, "progressive_resizing",
                  OPTIONS("mode", "crop", "size_increment", "2", "resize_targets",
                          "true", "delay_fraction", "0.7"));
    /* The last one acts first after the loader. */
    struct et_algorithm *list[] = {&compare, a, &put};
    run_open(&r, cx,
             &(struct run_setup){.n = 4,
                                 .batch_size = IMAGES,
                                 .model = "resnet8",
                                 .max_duration = ET_BATCHES(16),
                                 .algorithms = list,
                                 .n_algorithms = 3});
    for (int i = 0; i < PIXELS; i++)
        x[i] = (float)(mask[i] = i);
    need(cx, et_tensor_new(cx, r.dev, ET_F32, ET_SHAPE(IMAGES, 1, 6, 8), ET_ROW_MAJOR,
                           "x", &masked.x));
    need(cx, et_tensor_new(cx, r.dev, ET_I32, ET_SHAPE(IMAGES, 6, 8), ET_ROW_MAJOR,
                           "mask", &masked.mask));
    need(cx, et_tensor_write(cx, masked.x, x, sizeof x));
    need(cx, et_tensor_write(cx, masked.mask, mask, sizeof mask));
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(10)));
    is_int(masked.batches, 10, "of ten batches with masks");
    is_int(masked.apart, 0, "each mask is cut where its image is, which is no square");
    ok(masked.places > 5, "at %d places", masked.places);
    et_tensor_free(&masked.x);
    et_tensor_free(&masked.mask);
    run_close(&r);
    et_algorithm_free(&a);
}

static void
test_refusals(struct et_ctx *cx)
{
    static const char *const rows[][3] = {
        {"mode", "foo", "crop"},
        {"initial_scale", "1.2", "initial_scale"},
        {"finetune_fraction", "0.6", "sum"},
        {"finetune_fraction", "0.5", "sum"},
        {"size_increment", "0", "size_increment"},
    };
    for (int i = 0; i < 5; i++) {
        const char *why =
            refusal(cx, "progressive_resizing", OPTIONS(rows[i][0], rows[i][1]));
        ok(strstr(why, rows[i][2]), "%s %s is refused: %s", rows[i][0], rows[i][1],
           why);
    }
    const char *why = refusal(cx, "progressive_resizing",
                              OPTIONS("mode", "crop", "bilinear", "true"));
    ok(strstr(why, "bilinear"), "bilinear crops are refused: %s", why);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_sizes();
    test_pixels(cx);
    test_run(cx);
    test_masks(cx);
    test_refusals(cx);
    return finish(cx);
}
