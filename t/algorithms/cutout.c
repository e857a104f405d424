/* SPDX-License-Identifier: Apache-2.0 */
/* CutOut: spec/algorithms.md 2.7. */
#include "t/algorithms/fixture.h"

#include <string.h>

/* ---- what a batch looks like ---- */

enum { PIXELS = 6 * 8, BATCHES = 12 };

static struct {
    int batches, apart; /* pictures whose holes are elsewhere than the first one's */
    int holes, places;  /* pixels of all batches' first picture; batches that differ */
    bool last[PIXELS];
} seen;

/* Puts ones, and looks at what has become of them. */
static et_status
put_ones(struct et_algorithm *self, enum et_event event, struct et_state *s,
         struct et_log *log)
{
    (void)self, (void)event, (void)log;
    s->batch.x = et_add_scalar(s->graph, et_mul_scalar(s->graph, s->batch.x, 0), 1);
    return et_graph_status(s->graph);
}

static et_status
look(struct et_algorithm *self, enum et_event event, struct et_state *s,
     struct et_log *log)
{
    float x[4 * PIXELS];
    bool hole[PIXELS];
    (void)self, (void)event, (void)log;
    need(s->cx, et_eval(s->graph, &s->batch.x, 1));
    need(s->cx, et_tensor_read(s->cx, s->batch.x, x, sizeof x));
    for (int i = 0; i < 4 * PIXELS; i++)
        seen.apart += x[i] != x[i % PIXELS];
    for (int i = 0; i < PIXELS; i++) {
        hole[i] = x[i] == 0;
        seen.holes += hole[i];
    }
    seen.places += memcmp(hole, seen.last, sizeof hole) != 0;
    memcpy(seen.last, hole, sizeof hole);
    seen.batches++;
    return ET_OK;
}

static const struct et_algorithm_class put_class = {
    .info = {.name = "put"},
    .events = ET_ON(AFTER_DATALOADER),
    .apply = put_ones,
};
static const struct et_algorithm_class look_class = {
    .info = {.name = "look"},
    .events = ET_ON(BATCH_START),
    .apply = look,
};

static void
run(struct et_ctx *cx, const char *const *options)
{
    struct et_algorithm put = {.type = &put_class, .cx = cx};
    struct et_algorithm eye = {.type = &look_class, .cx = cx};
    struct et_algorithm *a = algorithm(cx, "cutout", options);
    struct et_algorithm *list[] = {&eye, a, &put}; /* the last one acts first */
    memset(&seen, 0, sizeof seen);
    (void)train(cx,
                (struct run_setup){
                    .n = 8, .batch_size = 4, .max_duration = ET_BATCHES(BATCHES)},
                list, 3);
    et_algorithm_free(&a);
}

static void
test_batches(struct et_ctx *cx)
{
    run(cx, OPTIONS("length", "0.7", "uniform_sampling", "true"));
    is_int(seen.batches, BATCHES, "of %d batches", BATCHES);
    is_int(seen.apart, 0, "all pictures have the same hole");
    ok(seen.places > BATCHES / 2, "at another place each step (%d)", seen.places);
    ok(seen.holes > 0 && seen.holes <= BATCHES * 16,
       "of 4 x 4 pixels at most (%d in all)", seen.holes);
    int one = seen.holes;
    run(cx, OPTIONS("length", "0.7", "uniform_sampling", "true", "num_holes", "3"));
    ok(seen.holes > 2 * one, "three holes are more than one (%d)", seen.holes);
    run(cx, OPTIONS("num_holes", "0"));
    is_int(seen.holes, 0, "no hole leaves the batch as it is");
}

int
main(void)
{
    static const char *const wrong[][2] = {
        {"length", "0"}, {"length", "1"}, {"num_holes", "-1"}};
    struct et_ctx *cx = need_ctx();
    test_batches(cx);
    for (int i = 0; i < 3; i++) {
        const char *why = refusal(cx, "cutout", OPTIONS(wrong[i][0], wrong[i][1]));
        ok(strstr(why, wrong[i][0]), "%s %s is refused: %s", wrong[i][0], wrong[i][1],
           why);
    }
    check_run(cx, (struct run_setup){.n = 8}, "cutout", OPTIONS());
    check_run(cx, (struct run_setup){.n = 8}, "cutout",
              OPTIONS("num_holes", "3", "length", "0.4"));
    return finish(cx);
}
