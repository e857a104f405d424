/* SPDX-License-Identifier: Apache-2.0 */
/* Muon on the reference device and on the CPU: PyTorch's numbers (t/golden/muon.txt),
 * what the iteration promises, and which parameters of a model it is for. */
#include "t/tap.h"
#include "t/unit/rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parameters are below 2 and four updates are some eight roundings of them in f32;
 * PyTorch's own f32 is 1.5e-7 off. A rule that differs is off by a good part of lr,
 * 2e-2. */
static const double ROUNDED = 8 * 1.2e-7;

enum { STEPS = 4 };

static struct et_ctx *cx;
static struct et_device *dev;

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s: %s", et_status_name(status), et_error_get(cx)->message);
}

/* ---- PyTorch's numbers ---- */

static const struct et_param_spec *
golden_specs(int *n)
{
    static struct et_param_spec s[5];
    s[0] = rig_spec("tall", ET_ROLE_MATRIX, 2, (const int64_t[]){6, 4});
    s[1] = rig_spec("wide", ET_ROLE_MATRIX, 2, (const int64_t[]){4, 7});
    s[2] = rig_spec("filter", ET_ROLE_MATRIX, 4, (const int64_t[]){3, 2, 3, 3});
    s[3] = rig_spec("bias", ET_ROLE_OTHER, 1, (const int64_t[]){5});
    s[4] = rig_spec("embedding", ET_ROLE_OTHER, 2, (const int64_t[]){6, 4});
    *n = 5;
    return s;
}

static void
compare_case(FILE *f, const char *text)
{
    int n;
    const struct et_param_spec *specs = golden_specs(&n);
    struct rig r;
    rig_begin(&r, cx, dev, "muon", text, specs, n);
    for (int k = 1; k <= STEPS; k++) {
        float grad[5][RIG_MOST];
        for (int i = 0; i < n; i++)
            rig_values((uint32_t)(100 * k + i), r.space->slot[i].count, grad[i]);
        rig_step(&r, grad);
    }
    rig_compare(&r, specs, f, ROUNDED, text);
    struct et_graph_stats stats;
    et_graph_get_stats(r.g, &stats);
    is_int((int64_t)stats.plans_built, 1, "and all of them replay one plan");
    rig_end(&r);
}

static void
golden(void)
{
    is_int(rig_cases("muon.txt", compare_case), 4,
           "every case of muon.txt was compared");
}

/* ---- properties ---- */

/* The first steps of N parameters with those gradients, in units of lr. */
static void
first_steps(const struct et_param_spec *specs, int n, float (*grad)[RIG_MOST],
            float (*step)[RIG_MOST])
{
    struct rig r;
    float after[RIG_MOST];
    rig_begin(&r, cx, dev, "muon", "lr=1", specs, n);
    for (int i = 0; i < n; i++)
        rig_get(&r, i, step[i]);
    rig_step(&r, grad);
    for (int i = 0; i < n; i++) {
        rig_get(&r, i, after);
        for (int64_t k = 0; k < r.space->slot[i].count; k++)
            step[i][k] -= after[k];
    }
    rig_end(&r);
}

/* That of one [ROWS, COLS] parameter of ROLE. */
static void
first_step(enum et_param_role role, int64_t rows, int64_t cols, float (*grad)[RIG_MOST],
           float *out)
{
    struct et_param_spec s = rig_spec("w", role, 2, (const int64_t[]){rows, cols});
    float step[1][RIG_MOST];
    first_steps(&s, 1, grad, step);
    memcpy(out, step[0], sizeof *out * (size_t)(rows * cols));
}

static void
properties(void)
{
    enum { N = 6 };
    float grad[1][RIG_MOST] = {{0}}, x[RIG_MOST], y[RIG_MOST], big[1][RIG_MOST];
    /* singular values 1, 1/2, ... 1/6, divided by their norm: the slope at zero of five
     * iterations lifts all of them into the band around 1 */
    for (int i = 0; i < N; i++)
        grad[0][i * N + i] = 1 / (float)(i + 1);
    first_step(ET_ROLE_MATRIX, N, N, grad, x);
    double least = INFINITY, most = 0, beside = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double v = fabs(x[i * N + j]);
            if (i != j)
                beside = fmax(beside, v);
            else
                least = fmin(least, v), most = fmax(most, v);
        }
    ok(least > 0.65 && most < 1.25 && beside < 4 * ROUNDED,
       "the singular values of a step are near 1 (%.3f to %.3f), the directions kept",
       least, most);

    rig_values(7, 20, grad[0]);
    first_step(ET_ROLE_MATRIX, 5, 4, grad, x);
    for (int i = 0; i < 20; i++)
        big[0][i] = 1000 * grad[0][i];
    first_step(ET_ROLE_MATRIX, 5, 4, big, y);
    is_near_array(y, x, 20, 4 * ROUNDED, "the size of a gradient does not matter");
    for (int i = 0; i < 20; i++)
        big[0][i] = ldexpf(grad[0][i], -16);
    first_step(ET_ROLE_MATRIX, 5, 4, big, y);
    is_near_array(y, x, 20, 4 * ROUNDED, "nor that it is small");
    float turned[1][RIG_MOST], back[RIG_MOST];
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 4; j++)
            turned[0][j * 5 + i] = grad[0][i * 4 + j];
    first_step(ET_ROLE_MATRIX_IN_OUT, 4, 5, turned, y);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 4; j++)
            back[i * 4 + j] = y[j * 5 + i];
    is_near_array(back, x, 20, 4 * ROUNDED,
                  "a matrix stored the other way round takes the same step");

    memset(grad, 0, sizeof grad);
    first_step(ET_ROLE_MATRIX, 5, 4, grad, x);
    bool still = true;
    for (int i = 0; i < 20; i++)
        still &= x[i] == 0;
    ok(still, "a gradient of zeros changes nothing");
    grad[0][3] = 0.5f;
    first_step(ET_ROLE_OTHER, 5, 4, grad, x);
    /* Adam's first step is adamw_lr whatever the gradient */
    ok(fabs(x[3] - 3e-4) < 2 * ROUNDED && x[0] == 0,
       "a matrix that is none of a hidden layer takes AdamW's step");
}

/* Those of one shape are iterated as a batch: beside the two of 5x4, and a filter that
 * is flattened to it, there are some that have but as many elements, or as many
 * rows. */
static void
together(void)
{
    enum { N = 7 };
    struct et_param_spec s[N] = {
        rig_spec("tall", ET_ROLE_MATRIX, 2, (const int64_t[]){5, 4}),
        rig_spec("wide", ET_ROLE_MATRIX, 2, (const int64_t[]){4, 5}),
        rig_spec("embedding", ET_ROLE_OTHER, 2, (const int64_t[]){5, 4}),
        rig_spec("tall too", ET_ROLE_MATRIX, 2, (const int64_t[]){5, 4}),
        rig_spec("flat", ET_ROLE_MATRIX, 2, (const int64_t[]){2, 10}),
        rig_spec("short", ET_ROLE_MATRIX, 2, (const int64_t[]){5, 3}),
        rig_spec("filter", ET_ROLE_MATRIX, 4, (const int64_t[]){5, 1, 2, 2}),
    };
    float grad[N][RIG_MOST], step[N][RIG_MOST], alone[1][RIG_MOST];
    for (int i = 0; i < N; i++)
        rig_values((uint32_t)(60 + i), 20, grad[i]);
    first_steps(s, N, grad, step);
    for (int i = 0; i < N; i++) {
        first_steps(&s[i], 1, &grad[i], alone);
        is_near_array(step[i], alone[0], et_desc_count(&s[i].desc), 4 * ROUNDED,
                      "beside others %s takes the step that it takes alone", s[i].name);
    }
}

/* The schedule scales both rates alike. */
static void
schedule(void)
{
    struct et_param_spec s[] = {
        rig_spec("w", ET_ROLE_MATRIX, 2, (const int64_t[]){3, 4}),
        rig_spec("b", ET_ROLE_OTHER, 1, (const int64_t[]){3})};
    struct rig r;
    float grad[2][RIG_MOST], w[RIG_MOST], b[RIG_MOST], w2[RIG_MOST], b2[RIG_MOST];
    rig_values(50, 12, grad[0]);
    rig_values(51, 3, grad[1]);
    rig_begin(&r, cx, dev, "muon", "lr=0.5 adamw_lr=0.1", s, 2);
    et_optimizer_set_alpha(r.opt, 0);
    rig_get(&r, 0, w);
    rig_get(&r, 1, b);
    rig_step(&r, grad);
    rig_get(&r, 0, w2);
    rig_get(&r, 1, b2);
    ok(memcmp(w, w2, 12 * sizeof *w) == 0 && memcmp(b, b2, 3 * sizeof *b) == 0,
       "at rate 0 of the schedule nothing moves");
    float gaps[128];
    et_optimizer_set_alpha(r.opt, 1);
    rig_step(&r, grad);
    must(et_tensor_read(cx, r.space->values, gaps, sizeof gaps));
    bool zero = true;
    for (int i = 12; i < 64; i++)
        zero &= gaps[i] == 0;
    ok(zero, "the gap behind a matrix stays zero");
    must(et_tensor_read(cx, r.space->moment[1], gaps, sizeof gaps));
    int matrix = 0, other = 0;
    for (int i = 0; i < 64; i++) {
        matrix += gaps[i] != 0;
        other += gaps[64 + i] != 0;
    }
    ok(matrix == 0 && other == 3, "the second moment is of what is no matrix alone");
    rig_end(&r);

    /* Adam's first step is its rate. */
    rig_begin(&r, cx, dev, "muon", "lr=0 adamw_lr=0.25", s, 2);
    rig_get(&r, 1, b);
    rig_step(&r, grad);
    rig_get(&r, 1, b2);
    is_near(fabs(b2[0] - b[0]), .25, 2 * ROUNDED,
            "without a rate of matrices the others have theirs");
    rig_end(&r);
}

/* A group's decay, which need not be that of the options, is what takes off. */
static void
decay_of_group(void)
{
    struct et_param_spec s[] = {
        rig_spec("w", ET_ROLE_MATRIX, 2, (const int64_t[]){3, 4}),
        rig_spec("b", ET_ROLE_OTHER, 1, (const int64_t[]){3})};
    float grad[2][RIG_MOST], by[2][2][RIG_MOST];
    rig_values(50, 12, grad[0]);
    rig_values(51, 3, grad[1]);
    for (int k = 0; k < 2; k++) {
        struct rig r;
        rig_begin(&r, cx, dev, "muon",
                  k ? "lr=0.5 adamw_lr=0.1 weight_decay=0.25"
                    : "lr=0.5 adamw_lr=0.1 weight_decay=0.75",
                  s, 2);
        et_optimizer_group(r.opt, 0)->weight_decay = 0.25;
        rig_step(&r, grad);
        for (int i = 0; i < 2; i++)
            rig_get(&r, i, by[k][i]);
        rig_end(&r);
    }
    ok(memcmp(by[0][0], by[1][0], 12 * sizeof(float)) == 0 &&
           memcmp(by[0][1], by[1][1], 3 * sizeof(float)) == 0,
       "weights decay as their group says");
}

/* ---- which parameters ---- */

static void
roles_are(const char *name, const char *const *option,
          const struct et_model_facts *facts, const char *const *want)
{
    const struct et_model_class *c = et_model_class_find(name);
    struct et_model *m;
    struct et_leaves l;
    void *options;
    must(et_alloc(cx, c->info.options_size, &options));
    must(et_options_init(cx, c->info.options, options));
    for (int i = 0; option[i]; i += 2)
        must(et_options_set(cx, c->info.options, options, option[i], option[i + 1]));
    must(et_model_new(cx, c, options, facts, &m));
    must(et_module_leaves(cx, m->root, ET_PARAM, &l));
    for (; want[0]; want += 2) {
        const struct et_leaf *leaf = et_leaves_find(&l, want[0]);
        static const char *const words[] = {"other", "matrix", "matrix_in_out"};
        is_str(leaf ? words[et_model_param_role(m, &l, (int)(leaf - l.v))] : "missing",
               want[1], "%s: %s", name, want[0]);
    }
    et_leaves_release(&l);
    et_model_free(&m);
    et_options_release(c->info.options, options);
    et_free(cx, options);
}

static void
roles(void)
{
    struct et_model_facts images = {
        .channels = 3, .height = 8, .width = 8, .num_classes = 16};
    /* 16 classes: the first layers are 16 wide too */
    roles_are("resnet20", (const char *const[]){NULL}, &images,
              (const char *const[]){"conv1.weight", "matrix", "layer1.0.conv1.weight",
                                    "matrix", "bn1.weight", "other", "fc.weight",
                                    "other", "fc.bias", "other", NULL});
    struct et_model_facts text = {.vocab_size = 32, .seq_len = 8};
    roles_are("gpt2",
              (const char *const[]){"n_layers", "1", "d_model", "16", "n_heads", "2",
                                    "max_seq_len", "8", NULL},
              &text,
              (const char *const[]){
                  "transformer.wte.weight", "other", "transformer.wpe.weight", "other",
                  "transformer.h.0.attn.c_attn.weight", "matrix_in_out",
                  "transformer.h.0.mlp.c_proj.weight", "matrix_in_out",
                  "transformer.ln_f.weight", "other", NULL});
    /* what gives the classes of pixels may have its outputs in its second axis */
    static const struct et_field fields[] = {
        {.name = "image", .dtype = ET_F32, .ndim = 3, .shape = {4, 8, 6}},
        {.name = "mask",
         .kind = ET_FIELD_MASK,
         .dtype = ET_I32,
         .ndim = 2,
         .shape = {8, 6}}};
    const struct et_model_facts masks = {.channels = 4,
                                         .height = 8,
                                         .width = 6,
                                         .num_classes = 3,
                                         .field = fields,
                                         .n_fields = 2};
    roles_are(
        "layers",
        (const char *const[]){
            "layers",
            "[conv_transpose2d: {out: 3, kernel: 1}, batch_norm, conv2d: {out: 5, "
            "kernel: 1}, conv_transpose2d: {out: 3, kernel: 1}]",
            NULL},
        &masks,
        (const char *const[]){"0.weight", "matrix_in_out", "1.weight", "other",
                              "2.weight", "matrix", "3.weight", "other", NULL});
}

static void
on_device(const char *name)
{
    diag("on %s", name);
    golden();
    properties();
    together();
    schedule();
    decay_of_group();
    et_device_close(&dev);
}

int
main(void)
{
    must(et_ctx_new(&cx));
    must(et_device_open(cx, "ref", 0, 0, &dev));
    on_device("ref");
    if (et_device_open(cx, "cpu", 0, 1, &dev) == ET_OK)
        on_device("cpu");
    else
        skip(1, et_error_get(cx)->message);
    et_error_clear(cx);
    roles();
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
    return done();
}
