/* SPDX-License-Identifier: Apache-2.0 */
/* Factorize: spec/algorithms.md 2.9. */
#include "t/algorithms/golden.h"

#include <string.h>

#include "etude/nn.h"

static void
test_most(void)
{
    static const struct {
        int64_t fan_in, out, want;
    } rows[] = {
        {512, 512, 255}, {512 * 9, 512, 460}, {768, 3072, 614}, {256, 1024, 204},
        {256, 256, 127}, {8, 8, 3},           {7, 5, 2},        {10, 10, 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t k = et_factorized_max(rows[i].fan_in, rows[i].out);
        int64_t sum = rows[i].fan_in + rows[i].out, all = rows[i].fan_in * rows[i].out;
        is_int(k, rows[i].want, "%d inputs and %d outputs", (int)rows[i].fan_in,
               (int)rows[i].out);
        ok(k * sum < all && (k + 1) * sum >= all, "that is the most with less work");
    }
}

/* One linear layer: is it replaced by the defaults of the class? */
static int
is_split(struct et_ctx *cx, int64_t in, int64_t out)
{
    struct et_module *m;
    struct et_surgery surgery;
    need(cx, et_module_new(cx, &et_sequential_class, NULL, &m));
    need(cx, ET_ADD(cx, m, NULL, linear, .in_features = in, .out_features = out));
    et_status status =
        et_apply_factorization(cx, m, true, true, 256, .25, 256, 128, &surgery);
    int n = replaced(cx, status, &surgery);
    et_module_free(&m);
    return n;
}

static struct et_module *
convs(struct et_ctx *cx)
{
    struct et_module *m;
    need(cx, et_module_new(cx, &et_sequential_class, NULL, &m));
    need(cx, ET_ADD(cx, m, "plain", conv2d, .in_channels = 8, .out_channels = 12,
                    .kernel = 3, .stride = 2, .padding = 1, .no_bias = true));
    need(cx, ET_ADD(cx, m, "grouped", conv2d, .in_channels = 12, .out_channels = 12,
                    .kernel = 3, .groups = 2));
    need(cx, ET_ADD(cx, m, "small", conv2d, .in_channels = 12, .out_channels = 7,
                    .kernel = 3));
    return m;
}

static void
test_convs(struct formula *f)
{
    struct et_surgery surgery;
    struct et_module *m = convs(f->cx);
    struct et_forward forward = {.g = f->g};
    int64_t before, after;
    need(f->cx, et_module_count(f->cx, m, &before));
    et_status status =
        et_apply_factorization(f->cx, m, true, true, 8, .5, 1, 1, &surgery);
    is_int(replaced(f->cx, status, &surgery), 1,
           "of three convolutions the large one of a single group is split");
    need(f->cx, et_module_count(f->cx, m, &after));
    is_int(before - after, 8 * 12 * 9 - (8 * 4 * 9 + 4 * 12 + 12),
           "into two of fewer weights, the second of which has a bias");
    status = et_apply_factorization(f->cx, m, true, true, 1, .5, 1, 1, &surgery);
    is_int(replaced(f->cx, status, &surgery), 1,
           "a second application leaves the thin ones");
    need(f->cx, et_module_bind(f->cx, m, f->dev, ET_PARAM, 17));
    struct et_tensor *x = reals(f, (float[8 * 9 * 9]){1}, ET_SHAPE(1, 8, 9, 9));
    struct et_tensor *y = et_forward(&forward, et_module_find(m, "plain"), x);
    ok(y && y->desc.shape[1] == 12 && y->desc.shape[2] == 5 && y->desc.shape[3] == 5,
       "stride and padding stay");
    et_graph_reset(f->g);
    et_tensor_free(&x);
    et_module_free(&m);
}

static void
test_choice(struct et_ctx *cx)
{
    is_int(is_split(cx, 256, 256), 0, "of 256 x 256 128 features are too many");
    is_int(is_split(cx, 256, 1024), 1, "of 256 x 1024 they are not");
    is_int(is_split(cx, 255, 1024), 0, "255 inputs are too few");
    struct et_surgery surgery;
    struct et_module *m = golden_vision(cx);
    et_status status =
        et_apply_factorization(cx, m, false, true, 1, .5, 4, 2, &surgery);
    is_int(replaced(cx, status, &surgery), 1, "convolutions may be spared");
    et_module_free(&m);
    m = golden_vision(cx);
    status = et_apply_factorization(cx, m, true, false, 3, .5, 4, 2, &surgery);
    is_int(replaced(cx, status, &surgery), 2, "so may linear layers");
    et_module_free(&m);
}

static void
test_golden(struct formula *f)
{
    struct et_surgery surgery;
    struct et_module *m = golden_vision(f->cx);
    et_status status =
        et_apply_factorization(f->cx, m, true, true, 3, .5, 4, 2, &surgery);
    is_int(replaced(f->cx, status, &surgery), 3, "three layers are split");
    golden_check(f, m, "factorize", F32_TOL);
    et_module_free(&m);
}

static void
test_refusals(struct et_ctx *cx)
{
    const struct {
        const char *const *options;
        const char *says;
    } rows[] = {
        {OPTIONS("latent_channels", "1.5"), "latent_channels"},
        {OPTIONS("latent_features", "0.5"), "below 0.5"},
        {OPTIONS("min_channels", "0"), "min_channels"},
        {OPTIONS("factorize_convs", "false", "factorize_linears", "false"), "both"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *why = refusal(cx, "factorize", rows[i].options);
        ok(strstr(why, rows[i].says), "%s = %s is refused: %s", rows[i].options[0],
           rows[i].options[1], why);
    }
    struct et_module *linear, *m;
    need(cx, ET_NEW(cx, &linear, linear, .in_features = 8, .out_features = 8));
    refused(cx, ET_NEW(cx, &m, factorized_linear, .layer = linear, .latent = 4),
            "so is a split that gives more work");
    et_module_free(&linear);
}

static void
test_logged(struct et_ctx *cx)
{
    static const char *const names[] = {"factorize/num_conv2d_replacements",
                                        "factorize/num_linear_replacements"};
    static const int want[] = {8, 0};
    for (int i = 0; i < 2; i++) {
        struct et_algorithm *a = algorithm(cx, "factorize",
                                           OPTIONS("min_channels", "16", "min_features",
                                                   "10", "latent_features", "0.25"));
        const struct run_setup setup = {
            .model = "resnet8", .n = 4, .algorithms = &a, .n_algorithms = 1};
        is_int((int64_t)last_logged(cx, setup, names[i]), want[i],
               "a network of nine convolutions and a small linear layer logs %s",
               names[i]);
        et_algorithm_free(&a);
    }
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct formula f;
    formula_open(&f, cx);
    test_most();
    test_choice(cx);
    test_convs(&f);
    test_golden(&f);
    test_refusals(cx);
    test_logged(cx);
    formula_close(&f);
    check_told(cx, "factorize", OPTIONS("min_channels", "16"), "resnet8",
               "factorize: 8 of 9 convolutions");
    return finish(cx);
}
