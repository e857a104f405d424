/* SPDX-License-Identifier: Apache-2.0 */
/* Module trees: names, shared children, first values, initialisers, surgery, sizes,
 * blur. */
#include "etude/nn.h"
#include "t/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct et_ctx *cx;

/* Standard errors: one draw in two million lies beyond, and the seed is fixed. */
#define SIGMAS 5
/* Sums of nine products of small binary fractions are exact in f32. */
#define EXACT 1e-7

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s", et_error_get(cx)->message);
}

static struct et_module *
row(void)
{
    struct et_module *m;
    must(et_module_new(cx, &et_sequential_class, NULL, &m));
    return m;
}

static void
names(void)
{
    struct et_module *m = row();
    must(ET_ADD(cx, m, "stem", conv2d, .in_channels = 3, .out_channels = 8,
                .kernel = 3));
    must(ET_ADD(cx, m, NULL, batch_norm, .num_features = 8));
    must(ET_ADD(cx, m, "head", linear, .in_features = 8, .out_features = 2,
                .no_bias = true));
    struct et_leaves l;
    must(et_module_leaves(cx, m, ET_PARAM | ET_BUFFER, &l));
    const char *want[] = {"stem.weight",    "stem.bias",     "1.weight",   "1.bias",
                          "1.running_mean", "1.running_var", "head.weight"};
    is_int(l.n, 7, "a missing bias is no leaf");
    for (int i = 0; i < l.n && i < 7; i++)
        is_str(l.v[i].name, want[i], "leaf %d has its dotted path", i);
    et_leaves_release(&l);
    int64_t count;
    must(et_module_count(cx, m, &count));
    is_int(count, 8 * 3 * 9 + 8 + 16 + 16, "buffers are not counted as parameters");
    ok(et_module_find(m, "head") == m->items[2].module, "a path finds its module");
    ok(!et_module_find(m, "head.none"), "a wrong path finds none");
    et_module_free(&m);
}

static void
shared(void)
{
    struct et_module *m = row(), *inner;
    must(ET_ADD(cx, m, "a", linear, .in_features = 4, .out_features = 4));
    must(et_module_add(cx, m, "b", &et_sequential_class, NULL));
    inner = m->items[1].module;
    must(et_module_add(cx, inner, "a", &et_identity_class, NULL));
    et_module_free(&inner->items[0].module);
    inner->items[0].module = et_module_ref(m->items[0].module);
    int64_t count;
    must(et_module_count(cx, m, &count));
    is_int(count, 20, "a shared module's parameters count once");
    et_module_free(&m);
}

/* Mean and variance of a parameter's first value. */
static void
moments(struct et_param *p, const char *name, double *mean, double *var, double *low,
        double *high)
{
    int64_t n = et_desc_count(&p->desc);
    float *v = calloc((size_t)n, sizeof *v);
    must(et_param_read(cx, p, name, 17, v, n));
    *mean = *var = 0;
    *low = INFINITY, *high = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        *mean += v[i] / (double)n;
        *low = fmin(*low, v[i]);
        *high = fmax(*high, v[i]);
    }
    for (int64_t i = 0; i < n; i++)
        *var += (v[i] - *mean) * (v[i] - *mean) / (double)n;
    free(v);
}

static void
initialisers(void)
{
    struct et_module *m = row();
    must(ET_ADD(cx, m, "conv", conv2d, .in_channels = 32, .out_channels = 64,
                .kernel = 3));
    must(ET_ADD(cx, m, "bn", batch_norm, .num_features = 4096));
    must(ET_ADD(cx, m, "fc", linear, .in_features = 64, .out_features = 10));
    struct et_param *w = et_module_param(m->items[0].module, 0, NULL);
    struct et_param *bn = et_module_param(m->items[1].module, 0, NULL);
    struct et_param *bias = et_module_param(m->items[2].module, 1, NULL);
    const double fan_in = 32 * 9, fan_out = 64 * 9;
    const double n = 64 * fan_in, error = SIGMAS * sqrt(2 / n);
    double mean, var, low, high;
    moments(w, "conv.weight", &mean, &var, &low, &high);
    is_near(var * fan_in * 3, 1, error, "by default weights are U(+-1/sqrt(fan_in))");
    ok(low >= -1 / sqrt(fan_in) && high <= 1 / sqrt(fan_in), "and stay inside");
    struct {
        const char *name;
        double var;
    } rules[] = {
        {"kaiming_normal", 2 / fan_in},
        {"kaiming_uniform", 2 / fan_in},
        {"xavier_normal", 2 / (fan_in + fan_out)},
        {"xavier_uniform", 2 / (fan_in + fan_out)},
    };
    for (int i = 0; i < 4; i++) {
        must(et_module_initializer(cx, m, rules[i].name));
        moments(w, "conv.weight", &mean, &var, &low, &high);
        is_near(var / rules[i].var, 1, error, "%s has its variance", rules[i].name);
        ok(fabs(mean) < SIGMAS * sqrt(rules[i].var / n), "%s has mean 0",
           rules[i].name);
    }
    moments(bn, "bn.weight", &mean, &var, &low, &high);
    ok(low == 1 && high == 1, "batch norm starts at 1");
    must(et_module_initializer(cx, m, "bn_uniform"));
    moments(bn, "bn.weight", &mean, &var, &low, &high);
    ok(low >= 0 && high < 1, "bn_uniform lies in [0, 1)");
    is_near(mean, 0.5, SIGMAS * sqrt(1 / 12.0 / 4096), "bn_uniform has mean 1/2");
    must(et_module_initializer(cx, m, "linear_log_constant_bias"));
    moments(bias, "fc.bias", &mean, &var, &low, &high);
    is_near(low, -log(10), 1e-6, "linear_log_constant_bias is -log(outputs)");
    ok(et_module_initializer(cx, m, "kaiming") == ET_EINVAL,
       "an unknown name is refused");
    et_error_clear(cx);
    et_module_free(&m);
}

/* Each rule on each kind of layer: what it draws there, from the layer's own fans, and
 * what it leaves as it is. */
static void
initialisers_by_layer(void)
{
    enum { LINEAR, CONV, UP, CONV1D, KINDS };
    enum { FC = 1 << LINEAR | 1 << CONV1D, ALL = FC | 1 << CONV | 1 << UP };
    /* Inputs and outputs of a layer as PyTorch counts them: of a transposed
     * convolution's filters [in,out,..], axis 1 counts as inputs. */
    static const double fan[KINDS][2] = {
        {40, 90}, {12 * 9, 20 * 9}, {20 * 4, 12 * 4}, {40, 90}};
    static const struct {
        const char *name;
        unsigned of;
        double in, out, constant; /* the variance: constant / (in fan + out fan) */
    } rules[] = {
        {"kaiming_normal", ALL, 1, 0, 2},
        {"kaiming_uniform", ALL, 1, 0, 2},
        {"xavier_normal", ALL, 1, 1, 2},
        {"xavier_uniform", ALL, 1, 1, 2},
        {"conv_fan_out_normal", 1 << CONV, 0, 1, 2},
        {"conv_fan_in_normal", 1 << CONV, 1, 0, 2},
        {"linear_fan_out_uniform", FC, 0, 1, 1. / 3},
        {"linear_small_normal", FC, 0, 0, 0.02 * 0.02},
        {"linear_zero_bias", 0, 0, 0, 0},
        {"conv_zero_bias", 0, 0, 0, 0},
        {"linear_log_constant_bias", 0, 0, 0, 0},
        {"bn_ones", 0, 0, 0, 0},
        {"bn_uniform", 0, 0, 0, 0},
    };
    int n_rules = 0;
    while (et_initializer_names[n_rules])
        n_rules++;
    is_int((int64_t)(sizeof rules / sizeof *rules), n_rules, "every rule is tried");
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        struct et_module *m = row();
        must(ET_ADD(cx, m, "fc", linear, .in_features = 40, .out_features = 90));
        must(ET_ADD(cx, m, "conv", conv2d, .in_channels = 12, .out_channels = 20,
                    .kernel = 3));
        must(ET_ADD(cx, m, "up", conv_transpose2d, .in_channels = 12,
                    .out_channels = 20, .kernel = 2));
        must(ET_ADD(cx, m, "c1", conv1d, .in_features = 40, .out_features = 90));
        double mean, low, high, was[KINDS], var[KINDS];
        for (int k = 0; k < KINDS; k++)
            moments(et_module_param(m->items[k].module, 0, NULL), "w", &mean, &was[k],
                    &low, &high);
        must(et_module_initializer(cx, m, rules[i].name));
        int wrong = 0;
        for (int k = 0; k < KINDS; k++) {
            struct et_param *w = et_module_param(m->items[k].module, 0, NULL);
            const double fans = rules[i].in * fan[k][0] + rules[i].out * fan[k][1];
            const double error = SIGMAS * sqrt(2. / (double)et_desc_count(&w->desc));
            moments(w, "w", &mean, &var[k], &low, &high);
            if (!(rules[i].of >> k & 1))
                wrong += var[k] != was[k];
            else
                wrong += fabs(var[k] / (rules[i].constant / (fans > 0 ? fans : 1)) -
                              1) > error;
        }
        is_int(wrong, 0, "%s draws what it is for in each kind of layer",
               rules[i].name);
        et_module_free(&m);
    }
}

static void
draws(void)
{
    struct et_module *m = row();
    must(ET_ADD(cx, m, NULL, linear, .in_features = 4, .out_features = 4));
    struct et_param *p = et_module_param(m->items[0].module, 0, NULL);
    float a[16], b[16], c[16];
    must(et_param_read(cx, p, "x.weight", 1, a, 16));
    must(et_param_read(cx, p, "x.weight", 1, b, 16));
    ok(memcmp(a, b, sizeof a) == 0, "a seed and a name give the same values again");
    must(et_param_read(cx, p, "y.weight", 1, c, 16));
    ok(memcmp(a, c, sizeof a) != 0, "another name gives others");
    must(et_param_read(cx, p, "x.weight", 2, c, 16));
    ok(memcmp(a, c, sizeof a) != 0, "another seed gives others");
    must(et_param_write(cx, p, c, 16));
    must(et_param_read(cx, p, "x.weight", 1, a, 16));
    ok(memcmp(a, c, sizeof a) == 0, "a value written before binding stays");
    ok(et_param_write(cx, p, c, 15) == ET_ESHAPE,
       "a wrong number of values is refused");
    et_error_clear(cx);
    et_module_free(&m);
}

static void
refusals(void)
{
    struct et_module *m = NULL;
    ok(ET_NEW(cx, &m, conv2d, .in_channels = 3, .out_channels = 8, .kernel = 3,
              .groups = 2) == ET_EINVAL,
       "groups that do not divide the channels are refused");
    et_error_clear(cx);
    ok(ET_NEW(cx, &m, attention, .d_model = 10, .n_heads = 3) == ET_EINVAL,
       "heads that do not divide the width are refused");
    et_error_clear(cx);
    ok(!m, "a refused module is none");
}

/* ---- surgery ---- */

static et_status
widen(struct et_ctx *c, struct et_module *old, int index, void *data,
      struct et_module **out)
{
    struct et_linear_module *l = (struct et_linear_module *)old;
    int *seen = data;
    seen[index]++;
    if (index == 1)
        return ET_OK;
    return ET_NEW(c, out, linear, .in_features = l->o.in_features,
                  .out_features = l->o.out_features, .no_bias = true);
}

static et_status
wrap(struct et_ctx *c, struct et_module *old, int index, void *data,
     struct et_module **out)
{
    (void)index, (void)data;
    ET_TRY(et_module_new(c, &et_sequential_class, NULL, out));
    ET_TRY(et_module_add(c, *out, "inner", &et_identity_class, NULL));
    et_module_free(&(*out)->items[0].module);
    (*out)->items[0].module = et_module_ref(old);
    return ET_OK;
}

/* Of the first one met, the second child goes. */
static et_status
drop_second(struct et_ctx *c, struct et_module *old, int index, void *data,
            struct et_module **out)
{
    (void)c, (void)data, (void)out;
    if (index == 0)
        et_module_free(&old->items[1].module);
    return ET_OK;
}

static et_status
count(struct et_ctx *c, struct et_module *old, int index, void *data,
      struct et_module **out)
{
    (void)c, (void)old, (void)out;
    *(int *)data = index + 1;
    return ET_OK;
}

static void
surgery_drops(void)
{
    struct et_module *m = row(), *group;
    struct et_surgery s;
    int seen = 0;
    const struct et_surgery_policy policies[] = {{&et_sequential_class, drop_second},
                                                 {&et_linear_class, count}};
    must(et_module_add(cx, m, "a", &et_sequential_class, NULL));
    group = m->items[0].module;
    for (const char *const *name = (const char *const[]){"0", "1", "2", NULL}; *name;
         name++)
        must(ET_ADD(cx, group, *name, linear, .in_features = 2, .out_features = 2));
    must(et_module_replace(cx, m, policies, 2, &seen, &s));
    ok(!group->items[1].module && group->items[2].module,
       "a policy may drop a child of what it is given");
    is_int(seen, 2, "which is not visited then, as those beside it are");
    et_surgery_release(&s);
    et_module_free(&m);
}

static void
surgery(void)
{
    struct et_module *m = row(), *group;
    must(ET_ADD(cx, m, "a", linear, .in_features = 2, .out_features = 2));
    must(et_module_add(cx, m, "b", &et_sequential_class, NULL));
    group = m->items[1].module;
    must(ET_ADD(cx, group, "c", linear, .in_features = 2, .out_features = 2));
    must(et_module_add(cx, group, "again", &et_identity_class, NULL));
    et_module_free(&group->items[1].module);
    group->items[1].module = et_module_ref(m->items[0].module);
    must(ET_ADD(cx, m, "d", linear, .in_features = 2, .out_features = 2));
    struct et_module *first = m->items[0].module, *kept = group->items[0].module;
    int seen[4] = {0}, n;
    struct et_surgery s;
    struct et_surgery_policy policy = {&et_linear_class, widen};
    must(et_module_replace(cx, m, &policy, 1, seen, &s));
    ok(seen[0] == 1 && seen[1] == 1 && seen[2] == 1 && seen[3] == 0,
       "a shared module is visited once, and the index counts what is kept");
    is_int(s.n, 2, "two of three linear layers are replaced");
    ok(s.pair[0].before == first && m->items[0].module == s.pair[0].after &&
           group->items[1].module == s.pair[0].after,
       "all parents of a shared module are relinked");
    ok(group->items[0].module == kept, "what a policy keeps stays");
    et_surgery_release(&s);
    must(et_module_count_class(cx, m, &et_linear_class, &n));
    is_int(n, 3, "three linear layers are there afterwards");

    struct et_surgery_policy wrapping = {&et_sequential_class, wrap};
    must(et_module_replace(cx, m, &wrapping, 1, NULL, &s));
    is_int(s.n, 1, "the root is not replaced, and a replacement is not walked");
    ok(m->items[1].module->items[0].module == group,
       "a replacement may hold the old one");
    et_surgery_release(&s);
    struct et_surgery_policy twice[] = {{&et_linear_class, wrap},
                                        {&et_linear_class, wrap}};
    ok(et_module_replace(cx, m, twice, 2, NULL, &s) == ET_EINVAL,
       "two policies cannot both replace one module");
    et_error_clear(cx);
    et_surgery_release(&s);
    et_module_free(&m);
}

/* ---- with a device ---- */

static struct et_device *dev;

static struct et_tensor *
image(int n)
{
    struct et_tensor *x;
    float *v = calloc((size_t)(n * n), sizeof *v);
    must(et_tensor_new(cx, dev, ET_F32, 4, (int64_t[]){1, 1, n, n}, ET_CHANNELS_LAST,
                       "x", &x));
    for (int i = 0; i < n * n; i++)
        v[i] = (float)i;
    must(et_tensor_write(cx, x, v, (size_t)(n * n) * sizeof *v));
    free(v);
    return x;
}

static void
run(struct et_module *m, struct et_tensor *x, bool training, float *out, int64_t n)
{
    struct et_graph *g;
    must(et_module_bind(cx, m, dev, ET_PARAM | ET_BUFFER, 17));
    must(et_graph_new(cx, dev, &g));
    struct et_forward f = {.g = g, .training = training};
    struct et_tensor *y = et_forward(&f, m, x);
    must(et_eval(g, &y, 1));
    must(et_tensor_read(cx, y, out, (size_t)n * sizeof *out));
    et_graph_free(&g);
}

/* Layers behind a pool are made for what it says that it makes. */
static void
pool_sizes(void)
{
    struct et_graph *g;
    int wrong = 0, n = 0;
    must(et_graph_new(cx, dev, &g));
    for (int code = 0; code < 9 * 3 * 4 * 2 * 2; code++) {
        const int size = 1 + code % 9, kernel = 1 + code / 9 % 3,
                  stride = 1 + code / 27 % 4;
        struct et_pool2d_options o = {.kernel = kernel,
                                      .stride = stride,
                                      .padding = code / 108 % 2 && kernel > 1,
                                      .ceil_mode = code / 216};
        int64_t shape[] = {1, size, size}, image[] = {1, 1, size, size};
        struct et_module *m;
        struct et_tensor *x;
        if (et_max_pool2d_class.adapt(cx, &o, shape) != ET_OK) {
            et_error_clear(cx);
            continue;
        }
        must(et_module_new(cx, &et_max_pool2d_class, &o, &m));
        must(et_tensor_new(cx, dev, ET_F32, 4, image, ET_CHANNELS_LAST, NULL, &x));
        struct et_forward f = {.g = g};
        struct et_tensor *y = et_forward(&f, m, x);
        wrong += !y || y->desc.shape[2] != shape[1] || y->desc.shape[3] != shape[2];
        n++;
        et_graph_reset(g);
        et_tensor_free(&x);
        et_module_free(&m);
    }
    ok(wrong == 0 && n > 300, "the size that a pool says is that of what it makes (%d)",
       n);
    et_graph_free(&g);
}

/* With ceil_mode the remainder at the end has a window of its own. */
static void
pool_ends(void)
{
    static const struct {
        int ceil_mode;
        int64_t want[2];
    } rows[] = {{0, {2, 3}}, {1, {3, 4}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct et_pool2d_options o = {.kernel = 2,
                                            .ceil_mode = rows[i].ceil_mode};
        struct et_pool2d_options said = o;
        int64_t shape[] = {1, 5, 7};
        struct et_module *m;
        struct et_tensor *x;
        struct et_graph *g;
        must(et_max_pool2d_class.adapt(cx, &said, shape));
        must(et_module_new(cx, &et_max_pool2d_class, &o, &m));
        must(et_tensor_new(cx, dev, ET_F32, 4, (int64_t[]){1, 1, 5, 7},
                           ET_CHANNELS_LAST, NULL, &x));
        must(et_graph_new(cx, dev, &g));
        struct et_forward f = {.g = g};
        const struct et_tensor *y = et_forward(&f, m, x);
        ok(y && y->desc.shape[2] == rows[i].want[0] &&
               y->desc.shape[3] == rows[i].want[1] && shape[1] == rows[i].want[0] &&
               shape[2] == rows[i].want[1],
           "windows of two pool 5 x 7 to %lld x %lld, rounded %s",
           (long long)rows[i].want[0], (long long)rows[i].want[1],
           rows[i].ceil_mode ? "up" : "down");
        et_graph_free(&g);
        et_tensor_free(&x);
        et_module_free(&m);
    }
}

/* What attention adds to the score of a key: less the farther away the key is, by a
 * slope of each head. In causal attention one row serves all queries, as a number that
 * is the same for all keys has no effect. */
static void
distances(void)
{
    enum { HEADS = 2, MOST = 5 };
    struct et_attention_options causal = {.d_model = 4, .n_heads = HEADS};
    struct et_module *m;
    must(et_module_new(cx, &et_attention_class, &causal, &m));
    struct et_param *p = &((struct et_attention_module *)m)->alibi;
    for (int64_t most = MOST - 2; most <= MOST; most += 2) { /* the second replaces */
        int wrong = 0;
        must(et_attention_set_alibi(cx, m, most));
        const struct et_desc *d = &p->desc;
        ok(d->ndim == 4 && d->shape[0] == 1 && d->shape[1] == HEADS &&
               d->shape[2] == 1 && d->shape[3] == most,
           "alibi has %lld distances for each head", (long long)most);
        float got[HEADS * MOST];
        must(et_param_read(cx, p, "alibi", 0, got, HEADS * most));
        for (int head = 0; head < HEADS; head++)
            for (int64_t key = 0; key < most; key++)
                wrong += got[head * most + key] !=
                         (float)(exp2(-4.0 * (head + 1)) * (double)key);
        is_int(wrong, 0, "alibi adds the distance times the slope of each head");
    }
    et_module_free(&m);
}

/* Is what the residual block CLASS makes of X as large as it says? Its shortcut has
 * parameters where CHANGES, else it is the identity. */
static bool
block_fits(struct et_graph *g, struct et_tensor *x, const struct et_module_class *class,
           void *options, bool changes)
{
    struct et_module *m;
    struct et_forward f = {.g = g};
    int64_t shape[] = {x->desc.shape[1], x->desc.shape[2], x->desc.shape[3]};
    must(class->adapt(cx, options, shape));
    must(et_module_new(cx, class, options, &m));
    must(et_module_bind(cx, m, dev, ET_PARAM | ET_BUFFER, 17));
    struct et_tensor *y = et_forward(&f, m, x);
    bool fits = y && memcmp(y->desc.shape + 1, shape, sizeof shape) == 0 &&
                (et_module_find(m, "downsample.0") != NULL) == changes;
    if (!y)
        diag("%s: %s", class->info.name, et_error_get(cx)->message);
    et_error_clear(cx);
    et_graph_reset(g);
    et_module_free(&m);
    return fits;
}

static void
block_sizes(void)
{
    struct et_graph *g;
    struct et_tensor *x;
    int wrong = 0;
    must(et_graph_new(cx, dev, &g));
    must(et_tensor_new(cx, dev, ET_F32, 4, (int64_t[]){1, 4, 5, 8}, ET_CHANNELS_LAST,
                       NULL, &x));
    for (int code = 0; code < 6; code++) {
        const int times = 1 + code % 2, stride = 1 + code / 2;
        struct et_basic_block_options basic = {.channels = 4 * times, .stride = stride};
        struct et_bottleneck_options narrow = {.channels = times, .stride = stride};
        bool changes = times > 1 || stride > 1;
        wrong += !block_fits(g, x, &et_basic_block_class, &basic, changes);
        wrong += !block_fits(g, x, &et_bottleneck_class, &narrow, changes);
    }
    is_int(wrong, 0, "the size that a residual block says is that of what it makes");
    et_graph_free(&g);
    et_tensor_free(&x);
}

static void
blur(void)
{
    struct et_module *m, *pool, *conv;
    struct et_tensor *x = image(4);
    float y[16], ones[16];
    must(ET_NEW(cx, &m, blur_pool2d, .stride = 2));
    run(m, x, true, y, 4);
    is_near_array(y, (float[]){.9375f, 2.5f, 6.25f, 10}, 4, EXACT,
                  "blur with stride 2 gives the published values");
    et_module_free(&m);

    must(et_module_new(cx, &et_max_pool2d_class,
                       &(struct et_pool2d_options){.kernel = 2}, &pool));
    must(ET_NEW(cx, &m, blur_max_pool2d, .pool = pool));
    run(m, x, true, y, 4);
    is_near_array(y, (float[]){3.75f, 4.5f, 6.75f, 7.5f}, 4, EXACT,
                  "blurred max pool gives the published values");
    et_module_free(&m);
    et_module_free(&pool);

    for (int i = 0; i < 16; i++)
        ones[i] = 1;
    must(et_tensor_write(cx, x, ones, sizeof ones));
    must(ET_NEW(cx, &m, blur_pool2d, .stride = 1));
    run(m, x, true, y, 16);
    ok(y[0] == .5625f && y[1] == .75f && y[5] == 1, "zero padding darkens the border");
    et_module_free(&m);

    must(ET_NEW(cx, &conv, conv2d, .in_channels = 1, .out_channels = 2, .kernel = 3,
                .stride = 2, .padding = 1));
    must(et_module_bind(cx, conv, dev, ET_PARAM, 17));
    struct et_tensor *weight = et_module_param(conv, 0, NULL)->tensor;
    must(ET_NEW(cx, &m, blur_conv2d, .conv = conv));
    struct et_blur_conv2d_module *b = (struct et_blur_conv2d_module *)m;
    ok(et_module_param(b->conv, 0, NULL)->tensor == weight,
       "a blurred convolution keeps the weights");
    run(m, x, true, y, 8);
    et_module_free(&m);
    et_module_free(&conv);
    et_tensor_free(&x);
}

static void
statistics(void)
{
    struct et_module *m;
    struct et_graph *g;
    struct et_tensor *x;
    float mean, var;
    must(et_tensor_new(cx, dev, ET_F32, 4, (int64_t[]){4, 1, 1, 1}, ET_CHANNELS_LAST,
                       "x", &x));
    must(et_tensor_write(cx, x, (float[]){0, 2, 10, 14}, 16));
    must(ET_NEW(cx, &m, batch_norm, .num_features = 1));
    must(et_module_bind(cx, m, dev, ET_PARAM | ET_BUFFER, 17));
    must(et_graph_new(cx, dev, &g));
    struct et_batch_norm_module *bn = (struct et_batch_norm_module *)m;
    struct et_forward f = {.g = g, .training = true, .keep_stats = true};
    struct et_tensor *y = et_forward(&f, m, x);
    must(et_eval(g, &y, 1));
    must(et_tensor_read(cx, bn->running_var.tensor, &var, sizeof var));
    is_near(var, 1, 0, "keep_stats leaves the running variance");
    et_graph_reset(g);
    f.keep_stats = false;
    y = et_forward(&f, m, x);
    must(et_eval(g, &y, 1));
    must(et_tensor_read(cx, bn->running_mean.tensor, &mean, sizeof mean));
    must(et_tensor_read(cx, bn->running_var.tensor, &var, sizeof var));
    /* mean 6.5; squares about it 131, unbiased variance 131/3. */
    is_near(mean, 0.65, 1e-6, "the running mean follows with momentum 0.1");
    is_near(var, 0.9 + 0.1 * 131 / 3, 1e-6, "the running variance is unbiased");
    et_graph_reset(g);
    float frozen[4], evaluated[4], after;
    must(et_module_freeze_stats(cx, m, true));
    y = et_forward(&f, m, x);
    must(et_eval(g, &y, 1));
    must(et_tensor_read(cx, y, frozen, sizeof frozen));
    et_graph_reset(g);
    y = et_forward(&(struct et_forward){.g = g}, m, x);
    must(et_eval(g, &y, 1));
    must(et_tensor_read(cx, y, evaluated, sizeof evaluated));
    ok(memcmp(frozen, evaluated, sizeof frozen) == 0 && f.training,
       "frozen statistics make training normalise as evaluation does");
    must(et_tensor_read(cx, bn->running_var.tensor, &after, sizeof after));
    is_near(after, var, 0, "and stay as they are");
    et_graph_reset(g);
    must(et_module_freeze_stats(cx, m, false));
    y = et_forward(&f, m, x);
    must(et_eval(g, &y, 1));
    must(et_tensor_read(cx, bn->running_var.tensor, &after, sizeof after));
    ok(after != var, "until they are freed");
    et_graph_free(&g);
    et_module_free(&m);
    et_tensor_free(&x);
}

static void
padding(void)
{
    enum { V = 3, D = 2 };
    static const int32_t tokens[] = {0, 2, 0, 1, 2};
    struct et_module *m;
    struct et_graph *g;
    struct et_tensor *index, *grad;
    float table[V * D], dw[V * D];
    must(et_tensor_new(cx, dev, ET_I32, 1, (int64_t[]){5}, ET_ROW_MAJOR, "t", &index));
    must(et_tensor_write(cx, index, tokens, sizeof tokens));
    must(
        ET_NEW(cx, &m, embedding, .num_embeddings = V, .features = D, .padding = true));
    must(et_module_bind(cx, m, dev, ET_PARAM, 17));
    must(et_graph_new(cx, dev, &g));
    struct et_tensor *w = et_module_param(m, 0, NULL)->tensor;
    must(et_tensor_read(cx, w, table, sizeof table));
    ok(table[0] == 0 && table[1] == 0 && table[2] != 0 && table[5] != 0,
       "the row of the padding token begins as 0");
    must(et_tensor_write(cx, w, (float[]){5, 6, 1, 2, 3, 4}, sizeof table));
    struct et_forward f = {.g = g, .training = true};
    struct et_tensor *y = et_forward(&f, m, index);
    must(et_grad(g, et_sum(g, y, 0, false), &w, 1, &grad));
    must(et_eval(g, (struct et_tensor *[]){y, grad}, 2));
    float rows[5 * D];
    must(et_tensor_read(cx, y, rows, sizeof rows));
    must(et_tensor_read(cx, grad, dw, sizeof dw));
    is_near_array(rows, (float[]){5, 6, 3, 4, 5, 6, 1, 2, 3, 4}, 5 * D, 0,
                  "it is looked up like any other");
    is_near_array(dw, (float[]){0, 0, 1, 1, 2, 2}, V * D, 0,
                  "and no gradient comes back to it");
    et_graph_free(&g);
    et_module_free(&m);
    et_tensor_free(&index);
}

/* Which of M's parameters are trained, a letter each. */
static const char *
trained(struct et_module *m, char *buf)
{
    struct et_leaves l;
    must(et_module_leaves(cx, m, ET_PARAM, &l));
    for (int i = 0; i < l.n; i++)
        buf[i] = l.v[i].param->requires_grad ? 'y' : '-';
    buf[l.n] = '\0';
    et_leaves_release(&l);
    return buf;
}

static void
freezing(void)
{
    struct et_module *m = row();
    char buf[16];
    int n = 0;
    must(ET_ADD(cx, m, "stem", conv2d, .in_channels = 3, .out_channels = 8,
                .kernel = 3));
    must(ET_ADD(cx, m, "norm", batch_norm, .num_features = 8));
    must(et_module_add(cx, m, "relu", &et_relu_class, NULL));
    must(ET_ADD(cx, m, "body", linear, .in_features = 8, .out_features = 8));
    must(ET_ADD(cx, m, "head", linear, .in_features = 8, .out_features = 2));
    must(et_module_freeze(cx, m, &(struct et_module_range){.to = -2}, &n));
    is_str(trained(m, buf), "--yy--yy", "all but the last child, batch norms spared");
    is_int(n, 4, "four parameters are frozen");
    must(et_module_freeze(cx, m,
                          &(struct et_module_range){.to = 1, .batch_norms = true}, &n));
    is_str(trained(m, buf), "------yy", "batch norms too where that is wanted");
    is_int(n, 2, "those that were frozen already are not counted");
    must(et_module_unfreeze(cx, m, &(struct et_module_range){.from = -1, .to = 3}, &n));
    is_str(trained(m, buf), "----yyyy", "from the end on, in either order");
    must(et_module_unfreeze(cx, m, &(struct et_module_range){.from = -1}, NULL));
    is_str(trained(m, buf), "yyyyyyyy", "unfreezing spares nothing");
    must(et_module_freeze(cx, m, &(struct et_module_range){.to = 1, .as_eval = true},
                          NULL));
    ok(m->items[1].module->as_eval && !m->items[3].module->as_eval,
       "as_eval: what is in the range computes as in evaluation");
    is_str(trained(m, buf), "--yyyyyy", "and is frozen all the same");
    must(et_module_unfreeze(cx, m, &(struct et_module_range){.to = 1, .as_eval = true},
                            NULL));
    ok(!m->items[1].module->as_eval, "until it is not");
    for (int i = 0; i < 2; i++) {
        const struct et_module_range r = {.to = i ? -6 : 5};
        ok(et_module_freeze(cx, m, &r, NULL) == ET_EINVAL &&
               strstr(et_error_get(cx)->message, "the module has 5"),
           "a child that there is not is refused");
        et_error_clear(cx);
    }
    is_str(trained(m, buf), "yyyyyyyy", "and then nothing has changed");
    et_module_free(&m);
}

/* arXiv 2108.12409, and for other numbers of heads the code that came with it: those of
 * the next smaller power of two, then every second one of the next larger. */
static void
slopes(void)
{
    static const double exponent[] = {-1, -2, -3,  -4,   -5,   -6,
                                      -7, -8, -.5, -1.5, -2.5, -3.5};
    double got[12] = {0};
    int wrong = 0;
    et_alibi_slopes(8, got);
    for (int i = 0; i < 8; i++)
        wrong += got[i] != exp2(exponent[i]);
    is_int(wrong, 0, "the slopes of 8 heads halve from 1/2 to 1/256");
    et_alibi_slopes(12, got);
    for (int i = 0; i < 12; i++)
        wrong += got[i] != exp2(exponent[i]);
    is_int(wrong, 0, "12 heads have those, and four between them");
    et_alibi_slopes(1, got);
    ok(got[0] == 1.0 / 256, "one head has the least");
}

int
main(void)
{
    must(et_ctx_new(&cx));
    slopes();
    distances();
    names();
    shared();
    initialisers();
    initialisers_by_layer();
    draws();
    refusals();
    surgery();
    surgery_drops();
    freezing();
    must(et_device_open(cx, "ref", 0, 1, &dev));
    pool_sizes();
    pool_ends();
    block_sizes();
    blur();
    statistics();
    padding();
    et_device_close(&dev);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "every block is given back");
    et_ctx_free(&cx);
    return done();
}
