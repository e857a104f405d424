/* SPDX-License-Identifier: Apache-2.0 */
/* BlurPool: spec/algorithms.md 2.3. */
#include "t/algorithms/fixture.h"

#include <stdlib.h>
#include <string.h>

#include "etude/nn.h"

static struct et_model *
resnet18(struct et_ctx *cx, struct et_device *dev)
{
    static const struct et_model_facts facts = {
        .channels = 3, .height = 64, .width = 64, .num_classes = 10};
    const struct et_model_class *c = et_model_class_find("resnet18");
    struct et_model *m;
    void *options;
    need(cx, et_alloc(cx, c->info.options_size, &options));
    need(cx, et_options_init(cx, c->info.options, options));
    need(cx, et_model_new(cx, c, options, &facts, &m));
    et_options_release(c->info.options, options);
    et_free(cx, options);
    need(cx, et_module_bind(cx, m->root, dev, ET_PARAM | ET_BUFFER, 17));
    return m;
}

static void
check_model(struct et_ctx *cx, struct formula *f, bool blur_first)
{
    enum { FILTER = 128 * 64 * 9 };
    static float before[FILTER], after[FILTER];
    struct et_model *m = resnet18(cx, f->dev);
    struct et_surgery surgery, again;
    struct et_tensor *x;
    const char *order = blur_first ? "blur first" : "blur last";
    need(cx, et_tensor_new(cx, f->dev, ET_F32, ET_SHAPE(2, 3, 64, 64), ET_CHANNELS_LAST,
                           NULL, &x));
    need(cx, et_model_get_param(m, "layer2.0.conv1.weight", 17, before, FILTER));
    need(cx, et_apply_blurpool(cx, m->root, true, true, blur_first, 16, &surgery));
    /* A ResNet-18 has a stem, three strided 3x3 filters, three shortcuts, one pool. */
    is_int(surgery.n, 7, "%s: six convolutions and the pool are replaced", order);
    ok(et_module_is(et_module_find(m->root, "conv1"), &et_conv2d_class),
       "%s: the stem of three channels stays", order);
    ok(et_module_is(et_module_find(m->root, "maxpool"), &et_blur_max_pool2d_class),
       "%s: the pool behind it does not", order);
    need(cx, et_model_get_param(m, "layer2.0.conv1.conv.weight", 17, after, FILTER));
    ok(memcmp(before, after, sizeof before) == 0, "%s: weights are bit by bit the same",
       order);
    /* As Composer's BlurConv2d and BlurMaxPool2d register them; the filter of a
     * convolution is repeated for each channel that it blurs. */
    int64_t channels = blur_first ? 64 : 128;
    float filters[128 * 9], pool[9];
    bool named = et_model_get_param(m, "layer2.0.conv1.blur_filter", 17, filters,
                                    channels * 9) == ET_OK &&
                 et_model_get_param(m, "layer2.0.downsample.0.blur_filter", 17, filters,
                                    channels * 9) == ET_OK &&
                 et_model_get_param(m, "maxpool.filt2d", 17, pool, 9) == ET_OK;
    ok(named, "%s: filters have Composer's names and shapes", order);
    if (!named)
        diag("%s", et_error_get(cx)->message);
    et_error_clear(cx);
    ok(named && pool[4] == .25f && filters[(channels - 1) * 9 + 1] == .125f,
       "%s: and are the binomial one", order);
    need(cx, et_module_bind(cx, m->root, f->dev, ET_PARAM | ET_BUFFER, 17));
    struct et_forward forward = {.g = f->g};
    struct et_tensor *y = et_model_forward(m, &forward, x);
    ok(y && y->desc.shape[0] == 2 && y->desc.shape[1] == 10,
       "%s: outputs keep their shape", order);
    need(cx, et_apply_blurpool(cx, m->root, true, true, blur_first, 16, &again));
    is_int(again.n, 0, "%s: a second application finds nothing to do", order);
    et_graph_reset(f->g);
    et_surgery_release(&surgery);
    et_surgery_release(&again);
    et_model_free(&m);
    et_tensor_free(&x);
}

/* ---- runs ---- */

static int warnings;

static void
count_warnings(void *data, enum et_log_level level, const char *text)
{
    (void)data;
    warnings += level == ET_LOG_WARN && strstr(text, "blurpool changed nothing");
}

static double convs = -1, pools = -1;

static void
note(struct et_sink *sink, const struct et_record *r)
{
    (void)sink;
    for (int i = 0; i < r->n; i++) {
        if (strcmp(r->entry[i].name, "blurpool/num_blurconv_layers") == 0)
            convs = r->entry[i].value;
        if (strcmp(r->entry[i].name, "blurpool/num_blurpool_layers") == 0)
            pools = r->entry[i].value;
    }
}

static void
test_run(struct et_ctx *cx, const char *model, const char *const *options)
{
    struct et_sink sink = {.write = note};
    struct et_algorithm *a = algorithm(cx, "blurpool", options);
    struct run r;
    run_open(&r, cx,
             &(struct run_setup){.model = model,
                                 .n = 4,
                                 .algorithms = &a,
                                 .n_algorithms = 1,
                                 .sink = &sink});
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    run_close(&r);
    et_algorithm_free(&a);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct formula f;
    formula_open(&f, cx);
    check_model(cx, &f, true);
    check_model(cx, &f, false);
    formula_close(&f);
    et_ctx_set_log(cx, ET_LOG_WARN, count_warnings, NULL);
    test_run(cx, "resnet8", OPTIONS());
    is_int((int64_t)convs, 4, "a run says how many convolutions are blurred");
    is_int((int64_t)pools, 0, "and how many pools");
    is_int(warnings, 0, "without a warning");
    test_run(cx, "resnet8", OPTIONS("replace_convs", "false"));
    is_int(warnings, 1, "a run in which nothing is replaced warns");
    test_run(cx, "resnet8", OPTIONS("min_channels", "32"));
    is_int((int64_t)convs, 2, "min_channels spares the others");
    const char *why = refusal(
        cx, "blurpool", OPTIONS("replace_convs", "false", "replace_maxpools", "false"));
    ok(strstr(why, "both"), "replacing nothing is refused: %s", why);
    return finish(cx);
}
