/* SPDX-License-Identifier: Apache-2.0 */
/* SqueezeExcite: spec/algorithms.md 2.24. */
#include "t/algorithms/golden.h"

#include <math.h>
#include <string.h>

#include "etude/nn.h"

/* One pixel each of the weights W1 [1,2] and W2 [2,1]: y of x = [1, 3]. */
static void
weigh(struct formula *f, const float *w1, const float *w2, float *out)
{
    struct et_module *m;
    struct et_forward forward = {.g = f->g};
    struct et_tensor *x = reals(f, (float[]){1, 3}, ET_SHAPE(1, 2, 1, 1));
    need(f->cx,
         ET_NEW(f->cx, &m, squeeze_excite2d, .channels = 2, .latent_channels = 1));
    struct et_module *first = et_module_find(m, "pool_and_mlp.2");
    struct et_module *second = et_module_find(m, "pool_and_mlp.4");
    need(f->cx,
         et_param_write(f->cx, &((struct et_linear_module *)first)->weight, w1, 2));
    need(f->cx,
         et_param_write(f->cx, &((struct et_linear_module *)second)->weight, w2, 2));
    need(f->cx, et_module_bind(f->cx, m, f->dev, ET_PARAM, 17));
    evaluate(f, et_forward(&forward, m, x), out, 2);
    et_graph_reset(f->g);
    et_tensor_free(&x);
    et_module_free(&m);
}

static void
test_values(struct formula *f)
{
    float got[2];
    weigh(f, (float[]){1, 1}, (float[]){0, (float)log(3)}, got);
    is_near_array(got, (float[]){.5f, 2.96341463f}, 2, F32_TOL,
                  "channels are weighed by sigmoid(W2 relu(W1 mean))");
    weigh(f, (float[]){1, 1}, (float[]){0, 0}, got);
    ok(got[0] == .5f && got[1] == 1.5f, "with W2 = 0 by one half exactly");
    weigh(f, (float[]){-1, -1}, (float[]){5, 5}, got);
    ok(got[0] == .5f && got[1] == 1.5f, "a sum below 0 counts as 0");
}

static struct et_module *
two_convs(struct et_ctx *cx, int64_t in, int64_t out)
{
    struct et_module *m;
    need(cx, et_module_new(cx, &et_sequential_class, NULL, &m));
    need(cx, ET_ADD(cx, m, "a", conv2d, .in_channels = in, .out_channels = out,
                    .kernel = 1));
    need(cx, ET_ADD(cx, m, "b", conv2d, .in_channels = out, .out_channels = in,
                    .kernel = 1, .stride = 2));
    return m;
}

static void
test_choice(struct et_ctx *cx)
{
    static const struct {
        int64_t in, out;
        int want;
    } rows[] = {{128, 128, 2}, {127, 128, 0}, {128, 127, 0}};
    struct et_surgery surgery;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_module *m = two_convs(cx, rows[i].in, rows[i].out);
        et_status status = et_apply_squeeze_excite(cx, m, 64, 128, &surgery);
        is_int(replaced(cx, status, &surgery), rows[i].want,
               "of two convolutions between %d and %d channels", (int)rows[i].in,
               (int)rows[i].out);
        status = et_apply_squeeze_excite(cx, m, 64, 128, &surgery);
        is_int(replaced(cx, status, &surgery), 0, "a second time nothing is replaced");
        et_module_free(&m);
    }
}

/* A convolution that is weighed may be blurred, and the reverse. */
static void
test_blurpool(struct formula *f)
{
    static const char *const want[] = {"b.conv.conv.weight", "b.conv.conv.weight"};
    static const char *const block[] = {"b.se", "b.conv.se"};
    for (int blur_first = 0; blur_first < 2; blur_first++) {
        struct et_surgery surgery;
        struct et_leaves l;
        struct et_module *m = two_convs(f->cx, 4, 4);
        for (int i = 0; i < 2; i++) {
            bool blur = i != blur_first;
            et_status status =
                blur ? et_apply_blurpool(f->cx, m, true, true, true, 1, &surgery)
                     : et_apply_squeeze_excite(f->cx, m, 2, 1, &surgery);
            is_int(replaced(f->cx, status, &surgery), blur ? 1 : 2, "%s replaces",
                   blur ? "blurpool" : "squeeze_excite");
        }
        need(f->cx, et_module_leaves(f->cx, m, ET_PARAM, &l));
        ok(et_leaves_find(&l, want[blur_first]) && et_module_find(m, block[blur_first]),
           "one is within the other");
        et_leaves_release(&l);
        et_module_free(&m);
    }
}

static void
test_golden(struct formula *f)
{
    struct et_surgery surgery;
    struct et_module *m = golden_vision(f->cx);
    et_status status = et_apply_squeeze_excite(f->cx, m, 0.5, 3, &surgery);
    is_int(replaced(f->cx, status, &surgery), 2, "two convolutions are replaced");
    golden_check(f, m, "squeeze_excite", F32_TOL);
    et_module_free(&m);
}

static void
test_refusals(struct et_ctx *cx)
{
    const char *why = refusal(cx, "squeeze_excite", OPTIONS("latent_channels", "1.5"));
    ok(strstr(why, "whole number"), "one and a half channels are refused: %s", why);
    ok(*refusal(cx, "squeeze_excite", OPTIONS("latent_channels", "0")), "none too");
    struct et_surgery surgery;
    struct et_module *m = two_convs(cx, 4, 4);
    refused(cx, et_apply_squeeze_excite(cx, m, 0.1, 1, &surgery),
            "so is a tenth of four");
    et_surgery_release(&surgery);
    et_module_free(&m);
}

static double blocks = -1;

static void
note(struct et_sink *sink, const struct et_record *r)
{
    (void)sink;
    for (int i = 0; i < r->n; i++)
        if (strcmp(r->entry[i].name, "squeeze_excite/num_squeeze_excite_layers") == 0)
            blocks = r->entry[i].value;
}

static void
test_run(struct et_ctx *cx)
{
    struct et_sink sink = {.write = note};
    struct et_algorithm *a =
        algorithm(cx, "squeeze_excite", OPTIONS("min_channels", "17"));
    struct run r;
    run_open(&r, cx,
             &(struct run_setup){.model = "resnet8",
                                 .n = 4,
                                 .algorithms = &a,
                                 .n_algorithms = 1,
                                 .sink = &sink});
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    run_close(&r);
    et_algorithm_free(&a);
    is_int((int64_t)blocks, 4, "a run says how many layers were replaced");
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct formula f;
    formula_open(&f, cx);
    test_values(&f);
    test_choice(cx);
    test_blurpool(&f);
    test_golden(&f);
    test_refusals(cx);
    test_run(cx);
    formula_close(&f);
    is_str(refusal(cx, "squeeze_excite", OPTIONS("latent_channels", "0.25")), "",
           "a fraction of channels is allowed");
    struct et_module *m;
    struct et_surgery surgery;
    need(cx, et_module_new(cx, &et_sequential_class, NULL, &m));
    need(cx,
         ET_ADD(cx, m, NULL, conv2d, .in_channels = 3, .out_channels = 8, .kernel = 1));
    et_status status = et_apply_squeeze_excite(cx, m, .125, 1, &surgery);
    is_int(replaced(cx, status, &surgery), 1, "also if it is one channel");
    et_module_free(&m);
    check_told(cx, "squeeze_excite", OPTIONS("min_channels", "16"), "resnet8",
               "squeeze_excite: 8 of 9 convolutions");
    return finish(cx);
}
