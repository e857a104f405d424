/* SPDX-License-Identifier: Apache-2.0 */
/* First values of the models: shape, mean, deviation, kind and extremes of each
 * tensor's draw, against what the libraries that published them do. */
#include "etude/model.h"
#include "t/tap.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

/* A sample's mean lies within 6 deviations of its own of what is expected in all but
 * one of 10^9 draws; its deviation and fourth moment are held to the same. */
#define SIGMAS 6.0
/* The largest of 10^8 normal draws is at 5.7 deviations. */
#define FARTHEST 7.0

static struct et_ctx *cx;

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s", et_error_get(cx)->message);
}

/* What a tensor is drawn from, by its shape: of [out,in,...], fan_in = in ... and
 * fan_out = out ..., whatever the groups
 * (torch.nn.init._calculate_fan_in_and_fan_out). */
enum draw {
    ONE,
    ZERO,
    NORMAL,         /* deviation `std` */
    RESIDUAL,       /* deviation std / sqrt(2 `layers`) */
    FAN_OUT_NORMAL, /* deviation sqrt(2 / fan_out) */
    FAN_IN_NORMAL,
    UP_NORMAL,       /* of [in,out,2,2] with stride 2: one tap of each input enters */
    FAN_IN_UNIFORM,  /* +-1/sqrt(fan_in): torch's default of linear and convolution */
    FAN_IN_BIAS,     /* the same bound; the weight is the tensor before it */
    FAN_OUT_UNIFORM, /* +-1/sqrt(fan_out) */
    TABLE,           /* NORMAL, but row 0 is zero */
};

struct rule {
    const char *names; /* glob(7) over full names; the first that matches counts */
    enum draw draw;
    double std;
    int layers;
};

/* torchvision/models/resnet.py, ResNet.__init__: kaiming_normal_(mode="fan_out",
 * nonlinearity="relu") for Conv2d; BatchNorm2d 1 and 0; nn.Linear as it is made. */
static const struct rule resnet[] = {
    {"fc.weight", FAN_IN_UNIFORM},
    {"fc.bias", FAN_IN_BIAS},
    {"*bn*.weight", ONE},
    {"*downsample.1.weight", ONE},
    {"*.bias", ZERO},
    {"*.weight", FAN_OUT_NORMAL},
    {0},
};

/* torchvision/models/efficientnet.py, EfficientNet.__init__: kaiming_normal_(mode=
 * "fan_out") and zero biases for Conv2d; BatchNorm2d 1 and 0; Linear U(+-1/sqrt(
 * out_features)) and 0. Norms are the second of each Conv2dNormActivation. */
static const struct rule efficientnet[] = {
    {"classifier.1.weight", FAN_OUT_UNIFORM},
    {"*.fc?.weight", FAN_OUT_NORMAL},
    {"*.bias", ZERO},
    {"features.[08].1.weight", ONE},
    {"*.block.?.1.weight", ONE},
    {"*.weight", FAN_OUT_NORMAL},
    {0},
};

/* timm/models/vision_transformer.py, init_weights(""): trunc_normal_(std=.02) for
 * pos_embed and Linear, whose bounds -2 and 2 are absolute; zero biases; cls_token
 * normal_(std=1e-6); PatchEmbed's Conv2d and LayerNorm as they are made. */
static const struct rule vit[] = {
    {"cls_token", NORMAL, 1e-6},
    {"pos_embed", NORMAL, 0.02},
    {"patch_embed.proj.weight", FAN_IN_UNIFORM},
    {"patch_embed.proj.bias", FAN_IN_BIAS},
    {"*norm*.weight", ONE},
    {"*.bias", ZERO},
    {"*.weight", NORMAL, 0.02},
    {0},
};

/* arXiv 1505.04597, section 3: deviation sqrt(2/N), N the incoming nodes of a
 * neuron. */
static const struct rule unet[] = {
    {"up*.weight", UP_NORMAL}, {"head.weight", FAN_IN_NORMAL}, {"*.[14].weight", ONE},
    {"*.bias", ZERO},          {"*.weight", FAN_IN_NORMAL},    {0},
};

enum { LAYERS = 3 };

/* transformers/models/gpt2/modeling_gpt2.py, _init_weights: normal_(std=.02) for
 * Linear, Conv1D and Embedding; c_proj.weight normal_(std=.02/sqrt(2 n_layer)). */
static const struct rule gpt2[] = {
    {"*.c_proj.weight", RESIDUAL, 0.02, LAYERS},
    {"*.ln_*.weight", ONE},
    {"*.bias", ZERO},
    {"*.weight", NORMAL, 0.02},
    {0},
};

/* transformers/models/bert/modeling_bert.py, _init_weights: normal_(std=.02) for Linear
 * and Embedding, and zero for the row of padding_idx 0 (word_embeddings alone has
 * one). */
static const struct rule bert[] = {
    {"*.word_embeddings.weight", TABLE, 0.02},
    {"*.LayerNorm.weight", ONE},
    {"*.bias", ZERO},
    {"*.weight", NORMAL, 0.02},
    {0},
};

/* Nothing was published for these: torch.nn.Linear and Conv2d, reset_parameters. */
static const struct rule plain[] = {
    {"bn.weight", ONE},
    {"bn.bias", ZERO},
    {"*.bias", FAN_IN_BIAS},
    {"*.weight", FAN_IN_UNIFORM},
    {0},
};

static const struct model {
    const char *name;
    const struct rule *rules;
    const char *set[13]; /* options, in pairs */
} models[] = {
    {"resnet8", resnet},
    {"resnet20", resnet},
    {"resnet9", resnet},
    {"resnet18", resnet},
    {"resnet50", resnet},
    {"efficientnet_b0", efficientnet},
    {"vit_s16", vit, {"n_layers", "3"}},
    {"unet", unet},
    {"gpt2", gpt2, {"n_layers", "3", "d_model", "192", "vocab_size", "500"}},
    {"bert", bert, {"n_layers", "3", "d_model", "192", "vocab_size", "500"}},
    {"mlp", plain},
    {"lenet", plain},
    {"mnist_classifier", plain},
};

static struct et_model *
make(const char *name, const char *const *set)
{
    static const struct et_model_facts facts = {
        .channels = 3, .height = 64, .width = 64, .num_classes = 100};
    const struct et_model_class *type = et_model_class_find(name);
    struct et_model *m;
    if (!type)
        bail("there is no model %s", name);
    void *options = calloc(1, type->info.options_size);
    must(et_options_init(cx, type->info.options, options));
    for (int i = 0; set && set[i]; i += 2)
        must(et_options_set(cx, type->info.options, options, set[i], set[i + 1]));
    must(et_model_new(cx, type, options, &facts, &m));
    et_options_release(type->info.options, options);
    free(options);
    return m;
}

struct expected {
    double std, low, high; /* of all values but those that must be 0 */
    double kurtosis;       /* fourth moment over the squared variance; 0: constant */
    int64_t zeros;         /* values in front that are 0 */
};

static struct expected
normal(double std)
{
    return (struct expected){std, -FARTHEST * std, FARTHEST * std, 3, 0};
}

static struct expected
uniform(double bound)
{
    return (struct expected){bound / sqrt(3), -bound, bound, 1.8, 0};
}

/* FAN_IN_OF: the weight whose fan_in a bias goes by. */
static struct expected
expect(const struct rule *r, const struct et_desc *d, const struct et_desc *fan_in_of)
{
    double taps = 1, fan_in = 1;
    for (int i = 2; i < d->ndim; i++)
        taps *= (double)d->shape[i];
    for (int i = 1; i < fan_in_of->ndim; i++)
        fan_in *= (double)fan_in_of->shape[i];
    double fan_out = (double)d->shape[0] * taps;
    switch (r->draw) {
    case ONE:
        return (struct expected){.low = 1, .high = 1};
    case ZERO:
        return (struct expected){0};
    case NORMAL:
        return normal(r->std);
    case RESIDUAL:
        return normal(r->std / sqrt(2 * r->layers));
    case FAN_OUT_NORMAL:
        return normal(sqrt(2 / fan_out));
    case FAN_IN_NORMAL:
        return normal(sqrt(2 / fan_in));
    case UP_NORMAL:
        return normal(sqrt(2 / (double)d->shape[0]));
    case FAN_IN_UNIFORM:
    case FAN_IN_BIAS:
        return uniform(1 / sqrt(fan_in));
    case FAN_OUT_UNIFORM:
        return uniform(1 / sqrt(fan_out));
    case TABLE:;
        struct expected e = normal(r->std);
        e.zeros = d->shape[1];
        return e;
    }
    bail("no such draw");
}

struct found {
    double mean, std, low, high, kurtosis;
};

static struct found
measure(const float *v, int64_t n)
{
    struct found f = {.low = INFINITY, .high = -INFINITY};
    double second = 0, fourth = 0;
    for (int64_t i = 0; i < n; i++) {
        f.mean += (double)v[i] / (double)n;
        f.low = fmin(f.low, (double)v[i]);
        f.high = fmax(f.high, (double)v[i]);
    }
    for (int64_t i = 0; i < n; i++) {
        double d = (double)v[i] - f.mean;
        second += d * d / (double)n;
        fourth += d * d * d * d / (double)n;
    }
    f.std = sqrt(second);
    f.kurtosis = second > 0 ? fourth / (second * second) : 0;
    return f;
}

/* F against E for N values: NULL, or what is wrong. */
static const char *
fault(const struct expected *e, const struct found *f, int64_t n)
{
    if (e->kurtosis == 0)
        return f->low == e->low && f->high == e->high ? NULL : "value";
    double root = sqrt((double)n);
    if (fabs(f->mean) > SIGMAS * e->std / root)
        return "mean";
    /* Var(s^2) = sigma^4 (kurtosis - 1) / n; of s, half of that. */
    if (fabs(f->std / e->std - 1) >
        SIGMAS * sqrt(e->kurtosis - 1) / 2 / root + 1 / root)
        return "deviation";
    if (f->low < e->low || f->high > e->high)
        return "extreme";
    /* The fourth moment of a sample has a deviation of sqrt(24 / n) for a normal
     * one. */
    if (n >= 4096 && fabs(f->kurtosis - e->kurtosis) > SIGMAS * sqrt(24 / (double)n))
        return "kind (fourth moment)";
    return NULL;
}

/* The leaf of L whose fan_in goes for leaf I: itself, or the one before a bias. */
static const struct et_desc *
weight_of(const struct et_leaves *l, int i)
{
    const char *dot = strrchr(l->v[i].name, '.');
    bool is_bias = dot && strcmp(dot, ".bias") == 0;
    return &l->v[is_bias && i > 0 ? i - 1 : i].param->desc;
}

/* How many tensors of MODEL are not drawn as its rules say. */
static int
check_model(const struct model *model, uint32_t seed)
{
    struct et_model *m = make(model->name, model->set);
    struct et_leaves l;
    int wrong = 0;
    must(et_module_leaves(cx, m->root, ET_PARAM, &l));
    for (int i = 0; i < l.n; i++) {
        const char *name = l.v[i].name;
        const struct rule *r = model->rules;
        int64_t n = et_desc_count(&l.v[i].param->desc);
        while (r->names && fnmatch(r->names, name, 0) != 0)
            r++;
        if (!r->names) {
            diag("%s: no rule for %s", model->name, name);
            wrong++;
            continue;
        }
        float *v = malloc((size_t)n * sizeof *v);
        must(et_param_read(cx, l.v[i].param, name, seed, v, n));
        struct expected e = expect(r, &l.v[i].param->desc, weight_of(&l, i));
        int64_t nonzero = 0;
        for (int64_t k = 0; k < e.zeros; k++)
            nonzero += v[k] != 0;
        struct found f = measure(v + e.zeros, n - e.zeros);
        const char *what = nonzero ? "rows of zeros" : fault(&e, &f, n - e.zeros);
        if (what) {
            diag(
                "%s of %s %s: got mean %g, deviation %g, %g to %g, kurtosis %g; wanted "
                "deviation %g, %g to %g, kurtosis %g",
                what, model->name, name, f.mean, f.std, f.low, f.high, f.kurtosis,
                e.std, e.low, e.high, e.kurtosis);
            wrong++;
        }
        free(v);
    }
    et_leaves_release(&l);
    et_model_free(&m);
    return wrong;
}

/* The deviation of a model's first convolution. */
static double
stem_deviation(const char *const *set)
{
    struct et_model *m = make("resnet50", set);
    enum { N = 64 * 3 * 7 * 7 };
    static float v[N];
    must(et_model_get_param(m, "conv1.weight", 17, v, N));
    et_model_free(&m);
    return measure(v, N).std;
}

int
main(void)
{
    must(et_ctx_new(&cx));
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        is_int(check_model(&models[i], 17), 0, "%s begins as published",
               models[i].name);
    is_near(stem_deviation(NULL), sqrt(2 / (64 * 49.0)), 0.002,
            "ResNet-50's first convolution has deviation sqrt(2/fan_out)");
    is_near(
        stem_deviation((const char *const[]){"initializer", "kaiming_normal", NULL}),
        sqrt(2 / (3 * 49.0)), 0.01, "an initializer of the recipe goes before");
    for (const struct et_model_class *const *c = et_model_classes; *c; c++)
        ok(!(*c)->initializer || (*c)->beginning,
           "%s says in words how it begins, if it has rules", (*c)->info.name);
    et_ctx_free(&cx);
    return done();
}
