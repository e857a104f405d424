/* SPDX-License-Identifier: Apache-2.0 */
/* LabelSmoothing: spec/algorithms.md 2.14. */
#include "t/algorithms/fixture.h"

#include <string.h>

static void
smooth(struct formula *f, struct et_tensor *target, double smoothing, float out[30])
{
    static const float zeros[30];
    struct et_tensor *logits = reals(f, zeros, ET_SHAPE(3, 10));
    evaluate(f, et_smooth_labels(f->g, logits, target, smoothing), out, 30);
    et_graph_reset(f->g);
    et_tensor_free(&logits);
}

static void
test_values(struct et_ctx *cx)
{
    struct formula f;
    formula_open(&f, cx);
    static const int32_t labels[] = {2, -1, 9};
    struct et_tensor *target = integers(&f, labels, ET_SHAPE(3));
    float got[30], again[30];
    smooth(&f, target, 0.1, got);
    is_near(got[2], 0.91, F32_TOL, "the label's class has 1 - s + s / C");
    is_near(got[3], 0.01, F32_TOL, "another class has s / C");
    double sum = 0, ignored = 0;
    for (int i = 0; i < 10; i++) {
        sum += got[20 + i];
        ignored += got[10 + i];
    }
    is_near(sum, 1, F32_TOL, "a row sums to 1");
    ok(ignored == 0, "the row of an ignored label stays zero");
    smooth(&f, target, 0, got);
    ok(got[2] == 1 && got[3] == 0, "smoothing 0 gives one-hot rows");
    smooth(&f, target, 1, got);
    is_near(got[2], 0.1, F32_TOL, "smoothing 1 gives the uniform distribution");
    et_tensor_free(&target);

    smooth(&f, target = integers(&f, labels, ET_SHAPE(3)), 0, got);
    et_tensor_free(&target);
    target = reals(&f, got, ET_SHAPE(3, 10));
    smooth(&f, target, 0.1, again);
    is_near(again[2], 0.91, F32_TOL, "dense targets are smoothed as indices are");
    ok(again[10] == 0, "and rows without any mass stay without");
    et_tensor_free(&target);
    formula_close(&f);
}

/* Notes the target before and behind the loss. */
static const struct et_tensor *seen[3];

static et_status
look(struct et_algorithm *self, enum et_event event, struct et_state *s,
     struct et_log *log)
{
    (void)self;
    (void)log;
    seen[event == ET_EVENT_BEFORE_FORWARD ? 0
         : event == ET_EVENT_AFTER_LOSS   ? 1
                                          : 2] = s->batch.target;
    return ET_OK;
}

static const struct et_algorithm_class spy_class = {
    .info = {.name = "spy"},
    .events = ET_ON(BEFORE_FORWARD) | ET_ON(AFTER_LOSS) | ET_ON(BEFORE_BACKWARD),
    .apply = look,
};

static void
test_events(struct et_ctx *cx)
{
    struct et_algorithm spy = {.type = &spy_class, .cx = cx};
    struct et_algorithm *a = algorithm(cx, "label_smoothing", OPTIONS());
    struct et_algorithm *list[] = {a, &spy};
    train(cx, (struct run_setup){.n = 4}, list, 2);
    ok(seen[1] != seen[0], "the loss sees other targets");
    ok(seen[2] == seen[0], "after it the target is the one there was");
    et_algorithm_free(&a);
}

static void
test_refusals(struct et_ctx *cx)
{
    const char *why = refusal(cx, "label_smoothing", OPTIONS("smoothing", "1.5"));
    ok(strstr(why, "smoothing") && strstr(why, "1.5"), "1.5 is refused: %s", why);
    struct et_algorithm *a;
    struct {
        double smoothing;
    } wrong = {-0.1};
    ok(et_algorithm_new(cx, et_algorithm_find("label_smoothing"), &wrong, &a) ==
           ET_EINVAL,
       "so is a struct with -0.1: %s", take_error(cx));
    ok(wrong.smoothing == -0.1, "which stays the caller's");
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_values(cx);
    test_events(cx);
    test_refusals(cx);
    check_run(cx, (struct run_setup){.n = 8}, "label_smoothing", OPTIONS());
    return finish(cx);
}
