/* SPDX-License-Identifier: Apache-2.0 */
/* SelectiveBackprop: spec/algorithms.md 2.22. */
#include "t/algorithms/fixture.h"

#include <math.h>
#include <string.h>

static void
test_weights(struct et_ctx *cx)
{
    /* The spec's figures have six digits. */
    static const double half[] = {.0625, .1875, .3125, .4375};
    static const double quarter[] = {.002016, .054435, .252016, .691532};
    double w[4];
    et_selection_weights(4, .5, w);
    for (int i = 0; i < 4; i++)
        is_near(w[i], half[i], 1e-12, "keep .5: weight of rank %d of 4", i);
    et_selection_weights(4, .25, w);
    for (int i = 0; i < 4; i++)
        is_near(w[i], quarter[i], 1e-6, "keep .25: weight of rank %d of 4", i);
    is_int(et_selection_size(4, .5), 2, "keep .5 of 4 is 2");
    is_int(et_selection_size(4, .25), 1, "keep .25 of 4 is 1");
    is_int(et_selection_size(1, .5), 1, "of one sample one is kept");
    (void)cx;
}

static void
test_choice(struct et_ctx *cx)
{
    enum { N = 10, DRAWS = 4000 };
    static const float loss[N] = {5, 1, 9, NAN, 0, 2, 8, 4, 3, 7};
    static const int order[N] = {4, 1, 5, 8, 7, 0, 9, 6, 2, 3}; /* ascending */
    int often[N] = {0};
    bool distinct = true;
    struct et_rng rng = et_rng_at(17, ET_RNG_SELECT, 0);
    for (int i = 0; i < DRAWS; i++) {
        int32_t rows[5];
        unsigned seen = 0;
        need(cx, et_select_using_loss(cx, loss, N, .5, &rng, rows));
        for (int k = 0; k < 5; k++) {
            distinct &= rows[k] >= 0 && rows[k] < N && !(seen >> rows[k] & 1);
            seen |= 1u << rows[k];
            often[rows[k]]++;
        }
    }
    ok(distinct, "no row is kept twice, none is made up");
    ok(often[order[0]] < often[order[4]] && often[order[4]] < often[order[8]],
       "hard samples are kept more often (%d, %d, %d)", often[order[0]],
       often[order[4]], often[order[8]]);
    ok(often[3] > often[order[7]], "a loss that is not a number counts as hardest");

    /* One draw of four: the frequencies are the weights, to five standard errors. */
    double w[4], worst = 0;
    int first[4] = {0};
    et_selection_weights(4, .25, w);
    for (int i = 0; i < DRAWS; i++) {
        int32_t row;
        need(cx, et_select_using_loss(cx, (float[]){0, 1, 2, 3}, 4, .25, &rng, &row));
        first[row]++;
    }
    for (int i = 0; i < 4; i++)
        worst = fmax(worst, fabs(first[i] - w[i] * DRAWS) / sqrt(w[i] * DRAWS));
    ok(worst < 5, "single draws follow the weights (%.1f standard errors)", worst);

    int32_t few[2];
    float same[2000];
    for (int i = 0; i < 2000; i++)
        same[i] = 1;
    need(cx, et_select_using_loss(cx, same, 2000, .001, &rng, few));
    ok(few[0] != few[1], "weights too small for a double are no endless search");
}

static void
test_pattern(void)
{
    static const struct {
        int64_t interrupt;
        const char *pattern;
    } rows[] = {{2, "TFTF"}, {3, "TTFT"}, {1, "FFFF"}, {0, "TTTT"}};
    for (int k = 0; k < 4; k++) {
        char got[5] = "";
        for (int i = 0; i < 4; i++)
            got[i] = et_should_selective_backprop(.6, i, .5, .9, .5, rows[k].interrupt)
                         ? 'T'
                         : 'F';
        is_str(got, rows[k].pattern, "interrupt %d: which batches are pruned",
               (int)rows[k].interrupt);
    }
    ok(!et_should_selective_backprop(.4, 0, .5, .9, .5, 0), "none before the start");
    ok(!et_should_selective_backprop(.9, 0, .5, .9, .5, 0), "none from the end on");
    ok(!et_should_selective_backprop(.6, 0, .5, .9, 1, 0), "none when all are kept");
}

/* ---- runs ---- */

static struct {
    int64_t n[16], height;
    int at;
    bool aligned;
} seen;

/* The pixels of sample i are 7 i + ...: the first says which sample it is. */
static et_status
look(struct et_algorithm *self, enum et_event event, struct et_state *s,
     struct et_log *log)
{
    (void)self;
    (void)log;
    (void)event;
    struct et_tensor *want[] = {s->batch.x, s->batch.target};
    float x[8 * 48];
    int32_t y[8];
    int64_t n = s->batch.x->desc.shape[0];
    need(s->cx, et_eval(s->graph, want, 2));
    need(s->cx, et_tensor_read(s->cx, want[0], x, (size_t)n * 48 * sizeof *x));
    need(s->cx, et_tensor_read(s->cx, want[1], y, (size_t)n * sizeof *y));
    for (int64_t i = 0; i < n; i++)
        seen.aligned &= fabsf(x[48 * i] * 255 - 7 * (float)y[i]) < 0.01f;
    seen.height = s->batch.x->desc.shape[2];
    seen.n[seen.at++] = n;
    return ET_OK;
}

static const struct et_algorithm_class spy_class = {
    .info = {.name = "spy"},
    .events = ET_ON(BATCH_START),
    .apply = look,
};

static void
test_run(struct et_ctx *cx)
{
    struct et_algorithm spy = {.type = &spy_class, .cx = cx};
    struct et_algorithm *a =
        algorithm(cx, "selective_backprop",
                  OPTIONS("start", "0.5", "end", "1", "scale_factor", "0.5"));
    struct et_algorithm *list[] = {&spy, a};
    struct run r;
    seen.aligned = true;
    run_open(&r, cx,
             &(struct run_setup){.n = 24,
                                 .batch_size = 8,
                                 .model = "resnet8",
                                 .max_duration = ET_BATCHES(8),
                                 .algorithms = list,
                                 .n_algorithms = 2});
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    static const int64_t want[] = {8, 8, 8, 8, 8, 4, 4, 8}; /* 3 an epoch */
    for (int i = 0; i < 8; i++)
        is_int(seen.n[i], want[i], "samples of batch %d", i);
    is_int(seen.height, 6, "images are trained on at their own size");
    ok(seen.aligned, "inputs and targets stay together");
    is_int(r.state->timestamp.sample, 64, "the clock counts whole batches");
    run_close(&r);
    et_algorithm_free(&a);
}

static void
test_modes(struct et_ctx *cx)
{
    struct run_setup setup = {.n = 8, .max_duration = ET_BATCHES(4)};
    static const char *const modes[] = {"eval_mode", "compat"};
    struct et_algorithm *a =
        algorithm(cx, "selective_backprop", OPTIONS("start", "0", "interrupt", "0"));
    struct losses plain = train(cx, setup, &a, 1);
    et_algorithm_free(&a);
    for (int i = 0; i < 2; i++) {
        a = algorithm(cx, "selective_backprop",
                      OPTIONS("start", "0", "interrupt", "0", modes[i], "true"));
        struct losses other = train(cx, setup, &a, 1);
        ok(difference(&plain, &other) == 0,
           "without dropout, statistics and other algorithms %s selects the same",
           modes[i]);
        et_algorithm_free(&a);
    }
}

static void
test_refusals(struct et_ctx *cx)
{
    static const char *const rows[][3] = {
        {"keep", "0", "keep"},
        {"scale_factor", "1.5", "scale_factor"},
        {"interrupt", "-1", "interrupt"},
        {"end", "0.2", "before"},
    };
    for (int i = 0; i < 4; i++) {
        const char *why =
            refusal(cx, "selective_backprop", OPTIONS(rows[i][0], rows[i][1]));
        ok(strstr(why, rows[i][2]), "%s %s is refused: %s", rows[i][0], rows[i][1],
           why);
    }
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_weights(cx);
    test_choice(cx);
    test_pattern();
    test_run(cx);
    test_modes(cx);
    test_refusals(cx);
    check_run(cx, (struct run_setup){.n = 16, .batch_size = 8}, "selective_backprop",
              OPTIONS("start", "0", "interrupt", "0"));
    return finish(cx);
}
