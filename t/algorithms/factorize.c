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

/* The numbers of one linear layer that is split with LATENT. */
static int64_t
numbers_of(struct et_ctx *cx, int64_t in, int64_t out, double latent)
{
    struct et_module *m;
    struct et_surgery surgery;
    int64_t n;
    need(cx, et_module_new(cx, &et_sequential_class, NULL, &m));
    need(cx, ET_ADD(cx, m, NULL, linear, .in_features = in, .out_features = out));
    et_status status =
        et_apply_factorization(cx, m, true, true, 1, .5, 1, latent, &surgery);
    (void)replaced(cx, status, &surgery);
    need(cx, et_module_count(cx, m, &n));
    et_module_free(&m);
    return n;
}

static void
test_latent(struct et_ctx *cx)
{
    is_int(numbers_of(cx, 40, 10, .2), 2 * 40 + 10 * 2 + 10,
           "a fraction is one of the outputs, where they are fewer");
    is_int(numbers_of(cx, 10, 40, .2), 2 * 10 + 40 * 2 + 40, "or of the inputs");
    is_int(numbers_of(cx, 40, 10, .05), 40 + 10 + 10, "and one at least");
    struct et_surgery surgery;
    struct et_module *m;
    need(cx, et_module_new(cx, &et_sequential_class, NULL, &m));
    need(cx, ET_ADD(cx, m, NULL, conv2d, .in_channels = 8, .out_channels = 12,
                    .kernel = 3));
    et_status status = et_apply_factorization(cx, m, true, true, 8, 9, 1, 1, &surgery);
    is_int(replaced(cx, status, &surgery), 1,
           "nine channels are less than eight of nine numbers");
    et_module_free(&m);
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

/* ---- taken back ---- */

struct layers {
    int n;
    struct et_conv2d_options o[16];
    int32_t stride[16];
    bool marked[16];
};

static et_status
list_layer(struct et_ctx *cx, struct et_module *m, int index, void *data,
           struct et_module **out)
{
    struct layers *l = data;
    const struct et_conv2d_module *conv = (const struct et_conv2d_module *)m;
    (void)cx, (void)index, (void)out;
    if (l->n == 16)
        bail("too many layers");
    l->o[l->n] = conv->o;
    l->marked[l->n] = m->marked;
    l->stride[l->n++] = conv->attr.stride[0] * 100 + conv->attr.stride[1];
    return ET_OK;
}

static void
list_layers(struct et_ctx *cx, struct et_module *root, struct layers *l)
{
    static const struct et_surgery_policy policy = {&et_conv2d_class, list_layer};
    struct et_surgery none;
    memset(l, 0, sizeof *l);
    need(cx, et_module_replace(cx, root, &policy, 1, l, &none));
    et_surgery_release(&none);
}

/* Methods that have put layers into layers of theirs, and are taken back in the order
 * in which they came, or in the other. */
static void
test_undo(struct et_ctx *cx)
{
#define SPLIT "factorize", OPTIONS("min_channels", "16", "latent_channels", "0.25")
#define WEIGH "squeeze_excite", OPTIONS("min_channels", "16", "latent_channels", "4")
    const struct {
        const char *first;
        const char *const *first_options;
        const char *second;
        const char *const *second_options;
    } rows[] = {
        {SPLIT, NULL, NULL},
        {SPLIT, "blurpool", OPTIONS("blur_first", "false")},
        {"blurpool", OPTIONS("blur_first", "false"), SPLIT},
        {"blurpool", OPTIONS(), SPLIT},
        {WEIGH, "blurpool", OPTIONS("blur_first", "false")},
        {"blurpool", OPTIONS("blur_first", "false"), WEIGH},
        {"weight_standardization", OPTIONS(), "blurpool", OPTIONS()},
    };
    static struct layers before, after;
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        const size_t k = i / 2, turned = i % 2;
        struct et_algorithm *a[2] = {
            algorithm(cx, rows[k].first, rows[k].first_options),
            rows[k].second ? algorithm(cx, rows[k].second, rows[k].second_options)
                           : NULL};
        struct run r;
        struct et_log *log;
        run_open(&r, cx, &(struct run_setup){.model = "resnet8", .n = 4});
        need(cx, et_log_new(cx, NULL, &log));
        list_layers(cx, r.model->root, &before);
        for (int m = 0; m < 2 && a[m]; m++)
            need(cx, a[m]->type->apply(a[m], ET_EVENT_INIT, r.state, log));
        for (size_t m = 0; m < 2; m++)
            if (a[m ^ turned])
                need(cx, a[m ^ turned]->type->undo(a[m ^ turned], r.state));
        list_layers(cx, r.model->root, &after);
        ok(memcmp(&before, &after, sizeof before) == 0,
           "%s, %s: taken back, %s first, layers are what they were", rows[k].first,
           rows[k].second ? rows[k].second : "-", turned ? "the second" : "the first");
        need(cx, et_trainer_fit(r.trainer, ET_BATCHES(1)));
        et_log_free(&log);
        run_close(&r);
        et_algorithm_free(&a[0]);
        et_algorithm_free(&a[1]);
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
    test_latent(cx);
    test_convs(&f);
    test_golden(&f);
    test_refusals(cx);
    test_logged(cx);
    test_undo(cx);
    formula_close(&f);
    check_told(cx, "factorize", OPTIONS("min_channels", "16"), "resnet8",
               "factorize: 8 of 9 convolutions");
    check_told(cx, "factorize",
               OPTIONS("min_channels", "4096", "factorize_linears", "false"), "resnet8",
               "factorize changed nothing: none of 9 convolutions and linear layers is "
               "one for its options");
    return finish(cx);
}
