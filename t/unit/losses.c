/* SPDX-License-Identifier: Apache-2.0 */
/* Losses by name: their values and gradients are PyTorch's (t/golden/losses.txt), and
 * the gradients those of the values; which of them fit what there is to learn. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/tensor.h"
#include "core/losses/losses.h"
#include "t/device.h"
#include "t/tap.h"
#include "t/unit/rig.h"

enum { CASES = 21, MOST = 64 };
/* Sums of some 50 terms below 10, rounded to f32; PyTorch's own f32 is 3e-7 off. */
static const double ROUNDED = 2e-6;

static struct et_ctx *cx;
static struct et_device *dev;

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s: %s", et_status_name(status), et_error_get(cx)->message);
}

struct learned {
    char name[64];
    int64_t shape[4];
    int ndim;
    struct et_tensor *z, *target;
    struct et_model m; /* as far as a loss looks at one */
    void *options;
    struct et_model_class type;
};

static struct et_tensor *
leaf(enum et_dtype dtype, int ndim, const int64_t *shape, const void *values)
{
    struct et_tensor *t;
    must(et_tensor_new(cx, dev, dtype, ndim, shape, ET_ROW_MAJOR, NULL, &t));
    must(et_tensor_write(cx, t, values, et_desc_bytes(&t->desc)));
    return t;
}

/* make_losses.py's targets. */
static struct et_tensor *
make_target(const struct learned *l, const char *kind)
{
    const bool last = strcmp(l->name, "masked_language") == 0;
    float v[MOST];
    int32_t class[MOST];
    int64_t shape[4] = {l->shape[0]}, n = 1, C = last ? l->shape[2] : l->shape[1];
    if (strcmp(kind, "numbers") == 0 || strcmp(kind, "shares") == 0) {
        n = et_desc_count(&l->z->desc);
        rig_values(2, n, v);
        for (int64_t i = 0; i < n; i++)
            v[i] *= 2;
        for (int64_t r = 0; strcmp(kind, "shares") == 0 && r < n; r += C) {
            double sum = 0;
            for (int64_t c = 0; c < C; c++)
                sum += exp(v[r + c]);
            for (int64_t c = 0; c < C; c++)
                v[r + c] = (float)(exp(v[r + c]) / sum);
        }
        /* One number a sample may come without its axis. */
        return leaf(ET_F32, l->shape[1] == 1 ? 1 : l->ndim, l->shape, v);
    }
    for (int i = 1; i < l->ndim - 1; i++)
        shape[i] = l->shape[last ? i : i + 1];
    for (int i = 0; i < l->ndim - 1; i++)
        n *= shape[i];
    for (int64_t i = 0; i < n; i++)
        class[i] = i % 5 == 4 && kind[0] == 'c' ? -100 : (int32_t)(7 * i % C);
    return leaf(ET_I32, l->ndim - 1, shape, class);
}

/* TEXT: what the target is, the outputs' shape, the loss and its options. */
static void
learn(struct learned *l, const char *text)
{
    char kind[16], shape[32], options[128] = "", *save = NULL;
    float v[MOST];
    memset(l, 0, sizeof *l);
    if (sscanf(text, "%15s %31s %63s %127[^\n]", kind, shape, l->name, options) < 3)
        bail("cannot read '%s'", text);
    for (char *at = strtok_r(shape, "x", &save); at; at = strtok_r(NULL, "x", &save))
        l->shape[l->ndim++] = strtol(at, NULL, 10);
    const struct et_loss_class *c = et_loss_find(l->name);
    if (!c)
        bail("no loss is named %s", l->name);
    must(et_options_new(cx, &c->info, NULL, &l->options));
    for (char *item = strtok_r(options, " ", &save); item;
         item = strtok_r(NULL, " ", &save)) {
        char *value = strchr(item, '=');
        *value++ = '\0';
        must(et_options_set(cx, c->info.options, l->options, item, value));
    }
    l->m = (struct et_model){.type = &l->type, .cx = cx};
    et_model_set_loss(&l->m, c, l->options);
    int64_t n = 1;
    for (int i = 0; i < l->ndim; i++)
        n *= l->shape[i];
    rig_values(1, n, v);
    for (int64_t i = 0; i < n; i++)
        v[i] *= 3;
    l->z = leaf(ET_F32, l->ndim, l->shape, v);
    l->target = make_target(l, kind);
}

static void
forget(struct learned *l)
{
    et_options_free(&l->m.loss->info, &l->options);
    et_tensor_free(&l->z);
    et_tensor_free(&l->target);
}

static int left_another; /* losses that left autocast otherwise than it was */

static void
keeps_autocast(struct learned *l, struct et_graph *g, const struct et_samples *samples)
{
    for (int on = 0; on < 2; on++) {
        (void)et_autocast(g, on);
        (void)et_model_loss(&l->m, g, l->z, samples, ET_REDUCE_MEAN);
        left_another += et_autocast(g, false) != on;
    }
    et_graph_reset(g);
}

/* The loss and its gradient, [count]; EACH: a value for each sample, too. */
static double
measure(struct learned *l, float *grad, double *each_mean)
{
    const struct et_samples samples = {.x = l->z, .target = l->target};
    struct et_graph *g;
    struct et_tensor *want[3] = {NULL}, *dz;
    double loss, sum = 0;
    float each[MOST];
    must(et_graph_new(cx, dev, &g));
    keeps_autocast(l, g, &samples);
    want[0] = et_model_loss(&l->m, g, l->z, &samples, ET_REDUCE_MEAN);
    want[1] = et_model_loss(&l->m, g, l->z, &samples, ET_REDUCE_NONE);
    must(et_grad(g, want[0], &l->z, 1, &dz));
    want[2] = dz;
    must(et_eval(g, want, 3));
    must(et_item(g, want[0], &loss));
    must(et_tensor_read(cx, dz, grad, et_desc_bytes(&dz->desc)));
    must(et_tensor_read(cx, want[1], each, et_desc_bytes(&want[1]->desc)));
    for (int64_t i = 0; i < l->shape[0]; i++)
        sum += each[i];
    *each_mean = want[1]->desc.ndim == 1 ? sum / (double)l->shape[0] : NAN;
    et_graph_free(&g);
    return loss;
}

/* By how much the loss changes where one output does, and what the gradient says. */
static double
find_worst_slope(struct learned *l, const float *grad)
{
    const double step = 0x1p-6;
    int64_t n = et_desc_count(&l->z->desc);
    float v[MOST], unused[MOST];
    double worst = 0, ignored;
    must(et_tensor_read(cx, l->z, v, et_desc_bytes(&l->z->desc)));
    for (int64_t i = 0; i < n; i++) {
        float was = v[i];
        double at[2];
        for (int k = 0; k < 2; k++) {
            v[i] = was + (float)(k ? step : -step);
            must(et_tensor_write(cx, l->z, v, et_desc_bytes(&l->z->desc)));
            at[k] = measure(l, unused, &ignored);
        }
        v[i] = was;
        worst = fmax(worst, fabs((at[1] - at[0]) / (2 * step) - (double)grad[i]));
    }
    must(et_tensor_write(cx, l->z, v, et_desc_bytes(&l->z->desc)));
    return worst;
}

/* The loss of the batch from those of its first FIRST samples and of the others, each
 * weighed by what counts of it. */
static double
join_parts(struct learned *l, int64_t first, bool masked)
{
    const int64_t from[2] = {0, first}, n[2] = {first, l->shape[0] - first};
    struct et_graph *g;
    double sum = 0, all = 0;
    must(et_graph_new(cx, dev, &g));
    for (int i = 0; i < 2; i++) {
        double loss, weight = (double)n[i];
        const struct et_samples part = {
            .x = et_slice(g, l->z, 0, from[i], n[i], 1),
            .target = et_slice(g, l->target, 0, from[i], n[i], 1),
        };
        struct et_tensor *v = et_model_loss(&l->m, g, part.x, &part, ET_REDUCE_MEAN);
        struct et_tensor *counted = eti_model_counted(&l->m, g, &part, masked);
        must(et_graph_status(g));
        must(et_item(g, v, &loss));
        if (counted)
            must(et_item(g, counted, &weight));
        sum += weight > 0 ? weight * loss : 0;
        all += weight;
        et_graph_reset(g);
    }
    et_graph_free(&g);
    return sum / all;
}

static void
compare_case(FILE *f, const char *text)
{
    struct learned l;
    float grad[MOST];
    double want, each, worst = 0;
    learn(&l, text);
    double loss = measure(&l, grad, &each);
    if (fscanf(f, "%lf", &want) != 1)
        bail("losses.txt ends early");
    is_near(loss, want, ROUNDED * fmax(1, want), "%s: the loss", text);
    for (int64_t i = 0; i < et_desc_count(&l.z->desc); i++) {
        if (fscanf(f, "%lf", &want) != 1)
            bail("losses.txt ends early");
        worst = fmax(worst, fabs(want - (double)grad[i]));
    }
    ok(worst < ROUNDED, "%s: its gradient, %.1g off", text, worst);
    /* Differences of losses of 1 to 4 in f32, over 2^-5: 2^-23 32; the third
     * derivatives, below 1, add 2^-12 / 6. l1 and huber have a kink, and no value lies
     * within a step of it. */
    double slope = find_worst_slope(&l, grad);
    ok(slope < 1e-4, "%s: which is that of its values, %.1g off", text, slope);
    ok(isfinite(each), "%s: and each sample has a loss of its own", text);
    if (!strstr(text, "classes") && !strstr(text, "ignore_index"))
        is_near(each, loss, ROUNDED * fmax(1, loss), "%s: of which it is the mean",
                text);
    double off = 0;
    for (int64_t k = 1; k < l.shape[0]; k++)
        off =
            fmax(off, fabs(join_parts(&l, k, strstr(text, "classes") != NULL) - loss));
    ok(off < ROUNDED * fmax(1, loss),
       "%s: and that of parts of the batch, wherever it is cut, %.1g off", text, off);
    forget(&l);
}

/* What takes what: the target's type, its kind, and the loss. */
static void
test_fits(void)
{
    static const struct et_field field[] = {
        {.name = "target", .kind = ET_FIELD_VALUES, .dtype = ET_I32, .below = 3},
        {.name = "target", .kind = ET_FIELD_VALUES, .dtype = ET_F32, .ndim = 1},
        {.name = "target", .kind = ET_FIELD_VALUES, .dtype = ET_F32},
        {.name = "target", .kind = ET_FIELD_TOKENS, .dtype = ET_I32, .ndim = 1},
    };
    static const char *const takes[4][10] = {
        {"soft_cross_entropy", "binary_cross_entropy_with_logits", "dice", "focal",
         "cross_entropy"},
        {"soft_cross_entropy", "binary_cross_entropy_with_logits", "dice", "focal",
         "cross_entropy", "mse", "l1", "huber"},
        {"mse", "l1", "huber"},
        {"masked_language"},
    };
    struct et_model_class type = {.task = ET_TASK_LANGUAGE};
    struct et_model m = {.type = &type, .cx = cx};
    int wrong = 0;
    for (int k = 0; k < 4; k++)
        for (int i = 0; et_loss_classes[i]; i++) {
            bool fits = false;
            for (int j = 0; takes[k][j]; j++)
                fits |= strcmp(takes[k][j], et_loss_names[i]) == 0;
            et_model_set_loss(&m, et_loss_classes[i], NULL);
            wrong += (et_model_check_loss(&m, &field[k]) == ET_OK) != fits;
            et_error_clear(cx);
        }
    is_int(wrong, 0, "each loss takes what it is for, and nothing else");
    et_model_set_loss(&m, et_loss_find("huber"), NULL);
    is_int(et_model_check_loss(&m, &field[0]), ET_EINVAL,
           "huber does not take classes");
    is_str(et_error_get(cx)->message,
           "loss huber takes numbers, and the data's target is classes", "it is said");
    ok(strstr(et_error_get(cx)->hint, "cross_entropy") != NULL, "and which do: %s",
       et_error_get(cx)->hint);
    et_error_clear(cx);
    is_int(et_model_check_loss(&m, NULL), ET_EINVAL, "nor data without a target");
    et_error_clear(cx);
}

/* There are as many weights as classes, or it is said. */
static void
test_weights(void)
{
    static const char *const weights[] = {"weight=[1,2,3]", "weight=[1,2,3,4]",
                                          "weight=[1,2,3,4,5]", "weight=[1]"};
    for (int i = 0; i < 4; i++) {
        struct learned l;
        struct et_graph *g;
        char text[128], want[128];
        const int n = i == 3 ? 1 : 3 + i;
        snprintf(text, sizeof text, "all 6x4 cross_entropy %s", weights[i]);
        learn(&l, text);
        must(et_graph_new(cx, dev, &g));
        const struct et_samples samples = {.x = l.z, .target = l.target};
        struct et_tensor *v = et_model_loss(&l.m, g, l.z, &samples, ET_REDUCE_MEAN);
        is_int(et_graph_status(g), n == 4 ? ET_OK : ET_EINVAL,
               "%d weights for 4 classes", n);
        ok((v != NULL) == (n == 4), "a loss of them is %s", n == 4 ? "made" : "none");
        snprintf(want, sizeof want,
                 "loss cross_entropy has %d weights, and there are 4 classes", n);
        if (n != 4)
            ok(strncmp(et_error_get(cx)->message, want, strlen(want)) == 0,
               "it is said: %s", et_error_get(cx)->message);
        et_error_clear(cx);
        et_graph_free(&g);
        forget(&l);
    }
}

/* Weights, smoothing and an index that is ignored, all at once: the mean, the sum, and
 * each sample's. */
static void
test_smoothing(void)
{
    enum { N = 6, C = 4 };
    static const double w[C] = {1, 2, 0.5, 3};
    static const int target[N] = {0, 3, 2, 1, 0, 3}; /* as make_target has them */
    const double s = 0.3;
    struct learned l;
    struct et_graph *g;
    float z[N * C], each[N];
    double want[N], sum = 0, all = 0, got;
    learn(&l, "all 6x4 cross_entropy smoothing=0.3 ignore_index=2 "
              "weight=[1,2,0.5,3]");
    must(et_tensor_read(cx, l.z, z, sizeof z));
    for (int i = 0; i < N; i++) {
        double e = 0, soft = 0;
        for (int c = 0; c < C; c++)
            e += exp((double)z[i * C + c]);
        for (int c = 0; c < C; c++)
            soft += w[c] * (log(e) - (double)z[i * C + c]) / C;
        double hard = w[target[i]] * (log(e) - (double)z[i * C + target[i]]);
        want[i] = target[i] == 2 ? 0 : (1 - s) * hard + s * soft;
        sum += want[i];
        all += target[i] == 2 ? 0 : w[target[i]];
    }
    must(et_graph_new(cx, dev, &g));
    const struct et_samples samples = {.x = l.z, .target = l.target};
    must(et_item(g, et_model_loss(&l.m, g, l.z, &samples, ET_REDUCE_MEAN), &got));
    is_near(got, sum / all, ROUNDED * 10,
            "the mean is over the weights of what counts");
    must(et_item(g, et_model_loss(&l.m, g, l.z, &samples, ET_REDUCE_SUM), &got));
    is_near(got, sum, ROUNDED * 10, "the sum is over nothing");
    struct et_tensor *v = et_model_loss(&l.m, g, l.z, &samples, ET_REDUCE_NONE);
    must(et_eval(g, &v, 1));
    must(et_tensor_read(cx, v, each, sizeof each));
    double off = 0;
    for (int i = 0; i < N; i++)
        off = fmax(off, fabs((double)each[i] - want[i]));
    is_near(off, 0, ROUNDED * 10, "each sample has its own");
    et_graph_free(&g);
    forget(&l);
}

/* The loss of each sample is what it is alone. */
static void
test_each(void)
{
    static const char *const cases[] = {
        "all 3x4 soft_cross_entropy",
        "all 3x4x2 cross_entropy",
        "all 3x4x2 cross_entropy smoothing=0.2",
        "all 2x3x4 masked_language",
        "all 3x4 focal",
        "all 3x4 binary_cross_entropy_with_logits",
        "all 2x3x2x2 dice",
        "numbers 3x2 mse",
        "numbers 3x2 l1",
        "numbers 3x2 huber delta=0.5",
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct learned l;
        struct et_graph *g;
        float each[MOST];
        double off = 0, sum = 0, mean, total;
        learn(&l, cases[k]);
        must(et_graph_new(cx, dev, &g));
        const struct et_samples samples = {.x = l.z, .target = l.target};
        struct et_tensor *v = et_model_loss(&l.m, g, l.z, &samples, ET_REDUCE_NONE);
        must(et_eval(g, &v, 1));
        must(et_tensor_read(cx, v, each, et_desc_bytes(&v->desc)));
        for (int64_t i = 0; i < l.shape[0]; i++) {
            double alone;
            const struct et_samples one = {.x = et_slice(g, l.z, 0, i, 1, 1),
                                           .target = et_slice(g, l.target, 0, i, 1, 1)};
            v = et_model_loss(&l.m, g, one.x, &one, ET_REDUCE_MEAN);
            must(et_item(g, v, &alone));
            off = fmax(off, fabs(alone - (double)each[i]));
            sum += alone;
        }
        is_near(off, 0, ROUNDED * 10, "%s: of each sample as it is alone", cases[k]);
        must(et_item(g, et_model_loss(&l.m, g, l.z, &samples, ET_REDUCE_MEAN), &mean));
        must(et_item(g, et_model_loss(&l.m, g, l.z, &samples, ET_REDUCE_SUM), &total));
        is_near(mean, sum / (double)l.shape[0], ROUNDED * 10, "%s: their mean",
                cases[k]);
        ok(total > 1.5 * mean, "%s: the sum is more", cases[k]);
        et_graph_free(&g);
        forget(&l);
    }
}

/* 256 classes may have weights, and no more. */
static void
test_most_weights(void)
{
    enum { LARGEST = 257 };
    static float zeros[LARGEST];
    static char weights[2 * LARGEST + 2];
    const int32_t target = 5;
    for (int n = LARGEST - 1; n <= LARGEST; n++) {
        struct learned l;
        struct et_graph *g;
        double loss;
        learn(&l, "all 1x4 cross_entropy");
        weights[0] = '[';
        for (int i = 0; i < n; i++)
            weights[1 + 2 * i] = '1', weights[2 + 2 * i] = i + 1 < n ? ',' : ']';
        must(et_options_set(cx, l.m.loss->info.options, l.options, "weight", weights));
        struct et_tensor *z = leaf(ET_F32, 2, (const int64_t[]){1, n}, zeros);
        struct et_tensor *t = leaf(ET_I32, 1, (const int64_t[]){1}, &target);
        const struct et_samples samples = {.x = z, .target = t};
        must(et_graph_new(cx, dev, &g));
        struct et_tensor *v = et_model_loss(&l.m, g, z, &samples, ET_REDUCE_MEAN);
        ok((v != NULL) == (n < LARGEST), "%d classes may %shave weights", n,
           n < LARGEST ? "" : "not ");
        if (v) {
            must(et_item(g, v, &loss));
            is_near(loss, log(n), ROUNDED * 10, "of 1, which change nothing");
        }
        et_error_clear(cx);
        et_graph_free(&g);
        et_tensor_free(&z);
        et_tensor_free(&t);
        forget(&l);
    }
}

/* What counts of a part of a batch, where that is not each sample alike. */
static void
test_counted(void)
{
    static const int32_t classes[] = {0, 1, -100, 2};
    static const float shares[] = {0.5f, 0.25f, 0, 0, 0.125f, 0}, w[] = {3, 5, 7};
    static const struct {
        bool dense, weighted, masked;
        int64_t ignored;
        double want; /* NAN: the number of samples */
    } rows[] = {
        {false, false, false, -100, NAN}, {false, false, true, -100, 3},
        {false, false, false, 0, 3},      {false, false, false, 1, 3},
        {false, true, true, -100, 15},    {false, true, false, -100, 15},
        {true, false, false, 0, NAN},     {true, false, true, -100, 0.875},
        {true, true, false, -100, NAN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_graph *g;
        double got = NAN;
        struct et_tensor *t = rows[i].dense
                                  ? leaf(ET_F32, 2, (const int64_t[]){2, 3}, shares)
                                  : leaf(ET_I32, 1, (const int64_t[]){4}, classes);
        struct et_tensor *weight = leaf(ET_F32, 1, (const int64_t[]){3}, w);
        must(et_graph_new(cx, dev, &g));
        struct et_tensor *v = eti_loss_counted(g, t, rows[i].weighted ? weight : NULL,
                                               rows[i].ignored, rows[i].masked);
        if (v)
            must(et_item(g, v, &got));
        ok(isnan(rows[i].want) ? !v : got == rows[i].want,
           "%s%s%s, %d ignored: %g count", rows[i].dense ? "shares" : "classes",
           rows[i].weighted ? ", weighted" : "", rows[i].masked ? ", masked" : "",
           (int)rows[i].ignored, rows[i].want);
        et_graph_free(&g);
        et_tensor_free(&t);
        et_tensor_free(&weight);
    }
}

/* A classifier that is given numbers learns them. */
static void
test_task(void)
{
    static const struct et_field fields[] = {
        {.name = "values",
         .kind = ET_FIELD_VALUES,
         .dtype = ET_F32,
         .ndim = 1,
         .shape = {5}},
        {.name = "target",
         .kind = ET_FIELD_VALUES,
         .dtype = ET_F32,
         .ndim = 1,
         .shape = {2}},
    };
    const struct et_model_facts facts = {.channels = 5, .field = fields, .n_fields = 2};
    struct et_model *m;
    must(et_model_new(cx, et_model_class_find("mlp"), NULL, &facts, &m));
    ok(m->task == ET_TASK_REGRESSION && m->num_classes == 2 &&
           strcmp(m->loss->info.name, "mse") == 0,
       "an MLP on numbers has as many outputs, and learns by mse");
    et_model_set_loss(m, et_loss_find("cross_entropy"), NULL);
    ok(m->task == ET_TASK_CLASSIFICATION, "or they are shares of classes, by its loss");
    et_model_free(&m);
}

int
main(void)
{
    must(et_ctx_new(&cx));
    must(et_device_open(cx, test_device("ref"), 0, 1, &dev));
    is_int(rig_cases("losses.txt", compare_case), CASES,
           "every case of losses.txt was compared");
    is_int(left_another, 0, "autocast is behind a loss as it was before");
    test_fits();
    test_weights();
    test_smoothing();
    test_each();
    test_most_weights();
    test_counted();
    test_task();
    et_device_close(&dev);
    et_ctx_free(&cx);
    return done();
}
