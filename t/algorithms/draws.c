/* SPDX-License-Identifier: Apache-2.0 */
/* What methods for images draw on several ranks, and in parts of a batch. */
#include "t/algorithms/fixture.h"

#include <string.h>

#include "core/algorithms/algorithms.h"

enum { ROWS = 6, DOWN = 12, ACROSS = 10, PLACES = DOWN * ACROSS, ALL = ROWS * PLACES };

static const struct et_model_class classifier = {.task = ET_TASK_CLASSIFICATION};

/* A batch of six images, and a field beside them that has the same numbers. */
struct scene {
    struct et_state s;
    struct et_model model;
    struct et_tensor *x, *target, *beside;
};

/* Image I has 1 at its place I, or all numbers are different ones. */
static void
scene_open(struct scene *c, struct formula *f, bool single, bool whole_numbers)
{
    static const int32_t classes[ROWS] = {4, 2, 0, 5, 1, 3};
    float v[ALL];
    int32_t whole[ALL];
    for (int i = 0; i < ALL; i++) {
        whole[i] = single ? i / PLACES == i % PLACES : 1 + i;
        v[i] = (float)whole[i];
    }
    *c = (struct scene){.model = {.type = &classifier, .task = classifier.task}};
    c->x = reals(f, v, ET_SHAPE(ROWS, 1, DOWN, ACROSS));
    c->target = integers(f, classes, ET_SHAPE(ROWS));
    c->beside = whole_numbers ? integers(f, whole, ET_SHAPE(ROWS, DOWN, ACROSS))
                              : reals(f, v, ET_SHAPE(ROWS, DOWN, ACROSS));
    c->s = (struct et_state){.cx = f->cx,
                             .dev = f->dev,
                             .graph = f->g,
                             .seed = 17,
                             .max_duration = ET_EPOCHS(4)};
}

static void
scene_close(struct scene *c)
{
    et_graph_reset(c->s.graph);
    et_tensor_free(&c->x);
    et_tensor_free(&c->target);
    et_tensor_free(&c->beside);
}

/* A sees N rows from FIRST on. */
static et_status
show(struct scene *c, struct et_algorithm *a, int64_t first, int64_t n)
{
    struct et_state *s = &c->s;
    const bool early = a->type->events & ET_ON(AFTER_DATALOADER);
    et_graph_reset(s->graph);
    s->model = &c->model;
    s->full = (struct et_samples){.x = c->x,
                                  .target = c->target,
                                  .n = ROWS,
                                  .other = {{"beside", c->beside}},
                                  .n_others = 1};
    s->batch = s->full;
    if (n < ROWS) {
        s->batch.x = et_slice(s->graph, c->x, 0, first, n, 1);
        s->batch.target = et_slice(s->graph, c->target, 0, first, n, 1);
        s->batch.other[0].tensor = et_slice(s->graph, c->beside, 0, first, n, 1);
    }
    s->batch.first_row = first;
    s->batch.n = n;
    return a->type->apply(
        a, early ? ET_EVENT_AFTER_DATALOADER : ET_EVENT_BEFORE_FORWARD, s, NULL);
}

static void
forget(struct et_algorithm *a)
{
    if (a->type->close)
        a->type->close(a);
    et_algorithm_free(&a);
}

/* What METHOD makes of the images on the rank whose part of a batch begins with sample
 * FIRST, where the batch begins with SAMPLE. */
static void
images_of(struct formula *f, const char *method, const char *const *options,
          int64_t sample, int64_t first, float out[ALL])
{
    const bool mixes = strcmp(method, "mixup") == 0;
    struct et_algorithm *a = algorithm(f->cx, method, options);
    struct scene c;
    scene_open(&c, f, mixes, !mixes);
    c.s.timestamp.sample = sample;
    c.s.first_sample = first;
    need(f->cx, show(&c, a, 0, ROWS));
    memset(out, 0, ALL * sizeof *out);
    evaluate(f, c.s.batch.x, out, et_desc_count(&c.s.batch.x->desc));
    scene_close(&c);
    forget(a);
}

static void
test_same_on_ranks(struct formula *f)
{
    static float here[ALL], there[ALL], later[ALL];
    const struct {
        const char *method;
        const char *const *options;
    } rows[] = {
        {"cutout", OPTIONS("length", "0.3", "num_holes", "2")},
        {"colout", OPTIONS("p_row", "0.4", "p_col", "0.3")},
        {"progressive_resizing",
         OPTIONS("mode", "crop", "delay_fraction", "0.2", "size_increment", "1")},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const *o = rows[i].options;
        images_of(f, rows[i].method, o, 48, 48, here);
        images_of(f, rows[i].method, o, 48, 54, there);
        images_of(f, rows[i].method, o, 60, 48, later);
        ok(memcmp(here, there, sizeof here) == 0, "%s: all ranks draw alike",
           rows[i].method);
        ok(memcmp(here, later, sizeof here) != 0, "%s: and anew for each batch",
           rows[i].method);
    }
}

/* The one hole of an image is where it was drawn: its side is a part of the shorter
 * one of the image's. */
static void
test_hole(struct formula *f, bool uniform, int64_t sample)
{
    static float v[ALL];
    int32_t want[4];
    int wrong = 0, holes = 0;
    const struct et_algorithm a = {.type = et_algorithm_find("cutout")};
    const struct et_state s = {.seed = 17};
    struct et_rng rng = eti_draws(&a, &s, ET_RNG_MIX, sample, 0);
    et_box_draw(&rng, 4, 4, DOWN, ACROSS, uniform, want);
    images_of(f, "cutout",
              OPTIONS("length", "0.41", "uniform_sampling", uniform ? "true" : "false"),
              sample, 0, v);
    for (int i = 0; i < ALL; i++) {
        const int y = i % PLACES / ACROSS, x = i % ACROSS;
        const bool inside = y >= want[0] && y < want[2] && x >= want[1] && x < want[3];
        holes += inside;
        wrong += v[i] != (inside ? 0 : (float)(1 + i));
    }
    ok(holes > 0 && wrong == 0, "cutout%s: of batch %d the hole is at %d, %d",
       uniform ? ", sampling evenly" : "", (int)sample, (int)want[0], (int)want[1]);
}

/* Where the numbers of each image come from: PARTNER of it, and BOX of all. */
static void
find_sources(const float v[ALL], int partner[ROWS], int32_t box[4])
{
    memcpy(box, (int32_t[]){DOWN, ACROSS, 0, 0}, 4 * sizeof *box);
    for (int i = 0; i < ALL; i++) {
        const int own = i / PLACES, y = i % PLACES / ACROSS, x = i % ACROSS;
        const int of = ((int)v[i] - 1) / PLACES;
        if (i % PLACES == 0)
            partner[own] = own;
        if (of == own)
            continue;
        partner[own] = of;
        box[0] = y < box[0] ? y : box[0];
        box[1] = x < box[1] ? x : box[1];
        box[2] = y + 1 > box[2] ? y + 1 : box[2];
        box[3] = x + 1 > box[3] ? x + 1 : box[3];
    }
}

static void
test_cutmix_on_ranks(struct formula *f, bool uniform)
{
    static float v[ALL];
    int here[ROWS], there[ROWS], later[ROWS];
    int32_t box[4], there_box[4], later_box[4], want[4];
    const char *const *o =
        OPTIONS("alpha", "2", "uniform_sampling", uniform ? "true" : "false");
    const char *what = uniform ? "cutmix, sampling evenly" : "cutmix";
    images_of(f, "cutmix", o, 90, 90, v);
    find_sources(v, here, box);
    images_of(f, "cutmix", o, 90, 54, v);
    find_sources(v, there, there_box);
    images_of(f, "cutmix", o, 60, 90, v);
    find_sources(v, later, later_box);
    ok(memcmp(box, there_box, sizeof box) == 0, "%s: all ranks have one box", what);
    ok(memcmp(here, there, sizeof here) != 0, "%s: each rank its own partners", what);
    ok(memcmp(box, later_box, sizeof box) != 0, "%s: each batch its own box", what);
    const struct et_algorithm a = {.type = et_algorithm_find("cutmix")};
    const struct et_state s = {.seed = 17};
    struct et_rng rng = eti_draws(&a, &s, ET_RNG_MIX, 90, 0);
    int64_t height, width;
    et_cutmix_sides(et_cutmix_lambda(&rng, 2), DOWN, ACROSS, &height, &width);
    et_box_draw(&rng, height, width, DOWN, ACROSS, uniform, want);
    ok(memcmp(box, want, sizeof box) == 0,
       "%s: the box has the sides that lambda gives it: %d %d %d %d, not %d %d %d %d",
       what, (int)want[0], (int)want[1], (int)want[2], (int)want[3], (int)box[0],
       (int)box[1], (int)box[2], (int)box[3]);
}

/* M of a mixed batch whose image I was 1 at place I; where all are their own: 0. */
static double
find_m(const float v[ALL], int partner[ROWS])
{
    double m = 0;
    for (int i = 0; i < ROWS; i++) {
        partner[i] = i;
        for (int k = 0; k < ROWS; k++)
            if (k != i && v[i * PLACES + k] > 0) {
                partner[i] = k;
                m = (double)v[i * PLACES + k];
            }
    }
    return m;
}

static void
test_mixup_on_ranks(struct formula *f)
{
    static float v[ALL];
    int here[ROWS], there[ROWS], later[ROWS];
    const char *const *o = OPTIONS("alpha", "0.7");
    images_of(f, "mixup", o, 48, 48, v);
    const double m = find_m(v, here);
    images_of(f, "mixup", o, 48, 54, v);
    const double m_there = find_m(v, there);
    images_of(f, "mixup", o, 60, 48, v);
    const double m_later = find_m(v, later);
    ok(m == m_there && m != m_later, "mixup: all ranks mix a batch by one weight");
    ok(memcmp(here, there, sizeof here) != 0, "mixup: each rank its own partners");
    const struct et_algorithm a = {.type = et_algorithm_find("mixup")};
    const struct et_state s = {.seed = 17};
    struct et_rng rng = eti_draws(&a, &s, ET_RNG_MIX, 48, 0);
    is_near(m, et_mixup_coefficient(&rng, 0.7), F32_TOL, "mixup: by alpha's");
}

/* In parts of 2, 3 and 1 rows images and what is beside them have the partners that
 * they have in one. */
static void
test_parts(struct formula *f, const char *method, bool whole_numbers)
{
    static const int64_t first[] = {0, 2, 5}, n[] = {2, 3, 1};
    static float whole[ALL], x[ALL], beside[ALL];
    struct et_algorithm *a = algorithm(f->cx, method, OPTIONS("alpha", "2"));
    struct scene c;
    scene_open(&c, f, false, whole_numbers);
    need(f->cx, show(&c, a, 0, ROWS));
    evaluate(f, c.s.batch.x, whole, ALL);
    for (int i = 0; i < 3; i++) {
        const int64_t count = n[i] * PLACES;
        need(f->cx, show(&c, a, first[i], n[i]));
        struct et_tensor *t = et_cast(f->g,
                                      et_reshape(f->g, c.s.batch.other[0].tensor,
                                                 ET_SHAPE(n[i], 1, DOWN, ACROSS)),
                                      ET_F32);
        struct et_tensor *both[] = {c.s.batch.x, t};
        need(f->cx, et_eval(f->g, both, 2));
        need(f->cx, et_tensor_read(f->cx, both[0], x, (size_t)count * sizeof *x));
        need(f->cx, et_tensor_read(f->cx, t, beside, (size_t)count * sizeof *x));
        ok(memcmp(x, whole + first[i] * PLACES, (size_t)count * sizeof *x) == 0,
           "%s: part %d has the partners of the whole batch", method, i);
        is_near_array(beside, x, count, 1e-4, "and what is beside the images too");
    }
    scene_close(&c);
    scene_open(&c, f, false, !whole_numbers);
    if (whole_numbers) { /* no picture of the images' size */
        et_tensor_free(&c.beside);
        c.beside = reals(f, (float[ROWS * 2]){0}, ET_SHAPE(ROWS, 2));
    }
    is_int(show(&c, a, 0, ROWS), ET_ENOTSUP, "%s: what it cannot mix is refused",
           method);
    const char *why = take_error(f->cx);
    ok(strstr(why, "'beside'"), "by its name: %s", why);
    scene_close(&c);
    forget(a);
}

/* ---- fields of the images' size, and of others ---- */

/* A sees the images with masks of them, and OTHER, which is larger one way. */
static void
show_masks(struct formula *f, struct et_algorithm *a, struct scene *c,
           struct et_tensor *target, struct et_tensor *const other[2])
{
    struct et_state *s = &c->s;
    et_graph_reset(f->g);
    s->model = &c->model;
    s->batch = (struct et_samples){
        .x = c->x,
        .target = target,
        .n = ROWS,
        .other = {{"beside", c->beside}, {"tall", other[0]}, {"wide", other[1]}},
        .n_others = 3};
    s->full = s->batch;
    need(f->cx, a->type->apply(a, ET_EVENT_AFTER_DATALOADER, s, NULL));
}

/* T, which is a mask or a batch of images, on the host; how many numbers. */
static int64_t
read(struct formula *f, struct et_tensor *t, float *out, int64_t most)
{
    const int64_t n = et_desc_count(&t->desc);
    if (n > most)
        bail("%d numbers", (int)n);
    evaluate(f, et_cast(f->g, t, ET_F32), out, n);
    return n;
}

/* Masks of images change with them: FOLLOWS says whether those beside them
 * do, TARGET_FOLLOWS whether targets do, of twice the height and three times the width
 * where a method knows such. */
static void
test_masks(struct formula *f, const char *method, const char *const *options,
           bool follows, bool target_follows)
{
    enum { DOWN2 = 2 * DOWN, ACROSS3 = 3 * ACROSS, LARGE = ROWS * DOWN2 * ACROSS3 };
    static float x[LARGE], mask[LARGE];
    static int32_t v[LARGE];
    struct et_algorithm *a = algorithm(f->cx, method, options);
    struct scene c;
    scene_open(&c, f, false, true);
    struct et_tensor *other[] = {integers(f, v, ET_SHAPE(ROWS, DOWN2, ACROSS)),
                                 integers(f, v, ET_SHAPE(ROWS, DOWN, ACROSS3))};
    for (int i = 0; i < LARGE; i++) {
        int image = i / (DOWN2 * ACROSS3), y = i / ACROSS3 % DOWN2, at = i % ACROSS3;
        v[i] = 1 + image * PLACES + y / 2 * ACROSS + at / 3;
    }
    const bool large = strcmp(method, "progressive_resizing") == 0;
    struct et_tensor *target =
        large ? integers(f, v, ET_SHAPE(ROWS, DOWN2, ACROSS3)) : c.beside;
    show_masks(f, a, &c, target, other);
    const int64_t h = c.s.batch.x->desc.shape[2], w = c.s.batch.x->desc.shape[3];
    ok(h < DOWN && w < ACROSS, "%s: images become %dx%d", method, (int)h, (int)w);
    ok(c.s.batch.other[1].tensor == other[0] && c.s.batch.other[2].tensor == other[1],
       "%s: fields of other sizes stay as they are", method);
    struct et_samples b = c.s.batch;
    const int64_t n = read(f, b.x, x, LARGE);
    if (follows)
        ok(read(f, b.other[0].tensor, mask, LARGE) == n &&
               memcmp(x, mask, (size_t)n * sizeof *x) == 0,
           "%s: a field of the images' size shows what they show", method);
    else
        ok(b.other[0].tensor == c.beside, "%s: a field stays as it is", method);
    if (!target_follows) {
        ok(b.target == target, "%s: the target stays as it is", method);
    } else if (!large) {
        ok(read(f, b.target, mask, LARGE) == n &&
               memcmp(x, mask, (size_t)n * sizeof *x) == 0,
           "%s: a target shows what they show", method);
    } else {
        int64_t right = 0, all = read(f, b.target, mask, LARGE);
        for (int64_t i = 0; i < all && all == 6 * n; i++) {
            const int64_t image = i / (6 * h * w), y = i / (3 * w) % (2 * h);
            right += mask[i] == x[(image * h + y / 2) * w + i % (3 * w) / 3];
        }
        is_int(right, 6 * n, "%s: a larger target shows what they show", method);
    }
    scene_close(&c);
    if (large)
        et_tensor_free(&target);
    et_tensor_free(&other[0]);
    et_tensor_free(&other[1]);
    forget(a);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct formula f;
    formula_open(&f, cx);
    test_same_on_ranks(&f);
    for (int64_t sample = 0; sample < 30; sample += ROWS) {
        test_hole(&f, false, sample);
        test_hole(&f, true, sample);
    }
    test_cutmix_on_ranks(&f, false);
    test_cutmix_on_ranks(&f, true);
    test_mixup_on_ranks(&f);
    test_parts(&f, "cutmix", true);
    test_parts(&f, "mixup", false);
#define LESS "p_row", "0.4", "p_col", "0.3", "resize_target"
    test_masks(&f, "colout", OPTIONS(LESS, "auto"), true, true);
    test_masks(&f, "colout", OPTIONS(LESS, "true"), true, true);
    test_masks(&f, "colout", OPTIONS(LESS, "false"), false, false);
#define SMALL "delay_fraction", "0.2", "size_increment", "5", "mode"
    test_masks(&f, "progressive_resizing", OPTIONS(SMALL, "crop"), true, false);
    test_masks(&f, "progressive_resizing",
               OPTIONS(SMALL, "crop", "resize_targets", "true"), true, true);
    test_masks(&f, "progressive_resizing", OPTIONS(SMALL, "resize"), true, false);
    formula_close(&f);
    return finish(cx);
}
