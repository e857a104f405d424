/* SPDX-License-Identifier: Apache-2.0 */
/* ColOut: spec/algorithms.md 2.5. */
#include "t/algorithms/fixture.h"

#include <string.h>

#include "core/data/loader_impl.h"

/* ---- functions ---- */

static void
test_draw(void)
{
    enum { N = 20, KEPT = 17, DRAWS = 4000 };
    struct et_rng rng = et_rng_at(17, ET_RNG_MIX, 0);
    int32_t index[N];
    int times[N] = {0}, wrong = 0;
    for (int k = 0; k < DRAWS; k++) {
        et_colout_draw(&rng, N, KEPT, index);
        for (int i = 0; i < KEPT; i++) {
            wrong += index[i] < 0 || index[i] >= N || (i && index[i] <= index[i - 1]);
            times[index[i] % N]++;
        }
    }
    is_int(wrong, 0, "what is kept ascends, and no row comes twice");
    for (int i = 0; i < N; i++) /* 5 sqrt(4000 * .85 * .15) = 113 */
        wrong += times[i] < DRAWS * KEPT / N - 113 || times[i] > DRAWS * KEPT / N + 113;
    is_int(wrong, 0, "every row is kept as often");
}

static void
test_kept(void)
{
    static const struct {
        double p;
        int64_t n, kept;
    } rows[] = {{0, 7, 7},   {0.15, 10, 8}, {0.5, 7, 3},
                {0.4, 6, 3}, {0.9, 10, 0},  {1, 7, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        is_int(et_colout_kept(rows[i].p, rows[i].n), rows[i].kept,
               "without %g of %d rows", rows[i].p, (int)rows[i].n);
}

/* ---- a batch with masks ---- */

/* Before rows are left out a batch gets masks: each pixel, of image and mask, says
 * where it was. */
enum { IMAGES = 4, PIXELS = IMAGES * 6 * 8 };
static struct {
    struct et_tensor *x, *mask, *target; /* TARGET: the loader's, which comes back */
    int64_t h, w;
    int batches, apart, others, places;
    float sum;
} masked;

static et_status
put_masks(struct et_algorithm *self, enum et_event event, struct et_state *s,
          struct et_log *log)
{
    (void)self, (void)event, (void)log;
    masked.target = s->batch.target;
    s->batch.x = masked.x;
    s->batch.target = masked.mask;
    s->batch.other[0] = (struct et_named_tensor){"mask", masked.mask};
    s->batch.n_others = 1;
    return ET_OK;
}

static et_status
compare_masks(struct et_algorithm *self, enum et_event event, struct et_state *s,
              struct et_log *log)
{
    float x[PIXELS], sum = 0;
    int32_t mask[PIXELS];
    (void)self, (void)event, (void)log;
    struct et_tensor *want[] = {s->batch.x, s->batch.target, s->batch.other[0].tensor};
    masked.h = want[0]->desc.shape[2];
    masked.w = want[0]->desc.shape[3];
    const int64_t n = et_desc_count(&want[0]->desc);
    bool same = n == et_desc_count(&want[1]->desc);
    need(s->cx, et_eval(s->graph, want, 3));
    need(s->cx, et_tensor_read(s->cx, want[0], x, (size_t)n * sizeof *x));
    if (same)
        need(s->cx, et_tensor_read(s->cx, want[1], mask, (size_t)n * sizeof *mask));
    for (int64_t i = 0; i < n; i++) {
        same = same && x[i] == (float)mask[i];
        sum += x[i];
    }
    masked.batches++;
    masked.apart += !same;
    masked.places += sum != masked.sum;
    masked.sum = sum;
    bool followed = n == et_desc_count(&want[2]->desc);
    if (followed)
        need(s->cx, et_tensor_read(s->cx, want[2], mask, (size_t)n * sizeof *mask));
    for (int64_t i = 0; i < n; i++)
        followed = followed && x[i] == (float)mask[i];
    masked.others += followed;
    s->batch.n_others = 0;
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
run_masked(struct et_ctx *cx, const char *const *options)
{
    float x[PIXELS];
    int32_t mask[PIXELS];
    struct run r;
    struct et_algorithm put = {.type = &put_masks_class, .cx = cx};
    struct et_algorithm compare = {.type = &compare_masks_class, .cx = cx};
    struct et_algorithm *a = algorithm(cx, "colout", options);
    struct et_algorithm *list[] = {&compare, a, &put}; /* the last one acts first */
    run_open(&r, cx,
             &(struct run_setup){.n = 8,
                                 .batch_size = IMAGES,
                                 .model = "resnet8",
                                 .max_duration = ET_BATCHES(10),
                                 .algorithms = list,
                                 .n_algorithms = 3});
    memset(&masked, 0, sizeof masked);
    for (int i = 0; i < PIXELS; i++)
        x[i] = (float)(mask[i] = i);
    need(cx, et_tensor_new(cx, r.dev, ET_F32, ET_SHAPE(IMAGES, 1, 6, 8), ET_ROW_MAJOR,
                           "x", &masked.x));
    need(cx, et_tensor_new(cx, r.dev, ET_I32, ET_SHAPE(IMAGES, 6, 8), ET_ROW_MAJOR,
                           "mask", &masked.mask));
    need(cx, et_tensor_write(cx, masked.x, x, sizeof x));
    need(cx, et_tensor_write(cx, masked.mask, mask, sizeof mask));
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    et_tensor_free(&masked.x);
    et_tensor_free(&masked.mask);
    run_close(&r);
    et_algorithm_free(&a);
}

static void
test_masks(struct et_ctx *cx)
{
    run_masked(cx, OPTIONS("p_row", "0.4", "p_col", "0.3"));
    is_int(masked.batches, 10, "of ten batches with masks");
    ok(masked.h == 3 && masked.w == 5, "6x8 pixels become 3x5 (%dx%d)", (int)masked.h,
       (int)masked.w);
    is_int(masked.apart, 0, "each mask loses what its image loses");
    is_int(masked.others, 10, "also one that is no target");
    ok(masked.places > 5, "which is something else each step (%d)", masked.places);
    run_masked(cx, OPTIONS("resize_target", "false"));
    is_int(masked.apart, 10, "resize_target: false leaves masks as they are");
    is_int(masked.others, 0, "all of them");
    run_masked(cx, OPTIONS("resize_target", "true"));
    ok(masked.apart == 0 && masked.others == 10, "and true does not");
    run_masked(cx, OPTIONS("p_row", "0", "p_col", "0"));
    ok(masked.h == 6 && masked.w == 8 && masked.apart == 0 && masked.places == 1,
       "p_row and p_col 0 leave the batch as it is");
}

/* ---- in the loader ---- */

static void
test_sample(struct et_ctx *cx)
{
    struct run r;
    const struct et_batch *b;
    struct et_algorithm *a =
        algorithm(cx, "colout", OPTIONS("batch", "false", "p_row", "0.5"));
    run_open(&r, cx,
             &(struct run_setup){.n = 8,
                                 .model = "resnet8",
                                 .max_duration = ET_BATCHES(2),
                                 .algorithms = &a,
                                 .n_algorithms = 1});
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    need(cx, et_loader_seek(cx, r.train, 0, 0));
    need(cx, et_loader_next(cx, r.train, &b));
    const struct et_desc *d = &b->field[0].desc;
    ok(d->shape[2] == 3 && d->shape[3] == 6, "batch: false has the loader give %dx%d",
       (int)d->shape[2], (int)d->shape[3]);
    /* Pixel (y, x) of image i is 7 i + 8 y + x: the rest says which row. */
    int rows[4][3], wrong = 0, apart = 0;
    for (int i = 0; i < 4; i++)
        for (int y = 0; y < 3; y++) {
            int v = (int)(b->field[0].host.f32[(i * 3 + y) * 6] * 255 + 0.5f);
            rows[i][y] = (v - 7 * b->field[1].host.i32[i]) / 8;
            wrong +=
                rows[i][y] < 0 || rows[i][y] > 5 || (y && rows[i][y] <= rows[i][y - 1]);
            apart += rows[i][y] != rows[0][y];
        }
    is_int(wrong, 0, "rows keep their order");
    ok(apart > 0, "and each picture has its own");
    et_loader_release(r.train, b);
    run_close(&r);
    et_algorithm_free(&a);
}

/* (t/train/spacetime splits batches, with a model that stands it.) */
static void
test_twice(struct et_ctx *cx, const char *const *options)
{
    struct run_setup setup = {.n = 8, .model = "resnet8", .max_duration = ET_EPOCHS(2)};
    struct losses plain = train(cx, setup, NULL, 0), got[2];
    for (int i = 0; i < 2; i++) {
        struct et_algorithm *a = algorithm(cx, "colout", options);
        got[i] = train(cx, setup, &a, 1);
        et_algorithm_free(&a);
    }
    ok(difference(&got[0], &plain) > 0, "the run is another");
    ok(difference(&got[0], &got[1]) == 0, "twice it has the same bits");
}

static void
test_refusals(struct et_ctx *cx)
{
    struct run r;
    struct et_algorithm *a = algorithm(cx, "colout", OPTIONS("p_row", "0.9"));
    const char *why =
        refusal(cx, "colout", OPTIONS("batch", "false", "resize_target", "true"));
    ok(strstr(why, "mask"), "masks of single pictures are refused: %s", why);
    why = refusal(cx, "colout", OPTIONS("p_col", "1.5"));
    ok(strstr(why, "p_col"), "p_col above 1 is refused: %s", why);
    run_open(
        &r, cx,
        &(struct run_setup){.model = "resnet8", .algorithms = &a, .n_algorithms = 1});
    et_status status = et_trainer_fit(r.trainer, ET_TIME_UNSET);
    ok(status == ET_EINVAL, "what leaves no row is refused: %s", take_error(cx));
    run_close(&r);
    et_algorithm_free(&a);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_draw();
    test_kept();
    test_masks(cx);
    test_sample(cx);
    test_refusals(cx);
    test_twice(cx, OPTIONS("p_row", "0.3"));
    test_twice(cx, OPTIONS("batch", "false", "p_col", "0.3"));
    return finish(cx);
}
