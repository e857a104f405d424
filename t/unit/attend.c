/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout of what attention gives: none of it in evaluation, and in training the
 * formula that has the scores as an array computes what the operation without them
 * does. */
#include <math.h>
#include <string.h>

#include "etude/model.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { B = 2, T = 6, WORDS = 11, COUNT = B * T * WORDS };

static struct et_ctx *cx;
static struct et_device *dev;

/* What a small model NAME makes of TOKENS with a probability P. */
static void
compute(const char *name, const char *p, bool training, const int32_t tokens[B * T],
        float out[COUNT])
{
    static const char *const set[][2] = {
        {"n_layers", "2"},    {"d_model", "16"},    {"n_heads", "2"},
        {"max_seq_len", "8"}, {"vocab_size", "11"}, {"dropout", "0"},
    };
    const struct et_model_class *type = et_model_class_find(name);
    struct et_model *m;
    struct et_graph *g;
    struct et_tensor *x, *rng;
    void *options;
    const int64_t key[2] = {12345, 0};
    need(cx, et_options_new(cx, &type->info, NULL, &options));
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        need(cx, et_options_set(cx, type->info.options, options, set[i][0], set[i][1]));
    need(cx, et_options_set(cx, type->info.options, options, "attention_dropout", p));
    need(cx, et_model_new(cx, type, options, NULL, &m));
    et_options_free(&type->info, &options);
    need(cx, et_module_bind(cx, m->root, dev, ET_PARAM | ET_BUFFER, 3));
    need(cx, et_graph_new(cx, dev, &g));
    need(cx, et_tensor_new(cx, dev, ET_I32, 2, (const int64_t[]){B, T}, ET_ROW_MAJOR,
                           "x", &x));
    need(cx, et_tensor_new(cx, dev, ET_I64, 1, (const int64_t[]){2}, ET_ROW_MAJOR,
                           "rng", &rng));
    need(cx, et_tensor_write(cx, x, tokens, B * T * sizeof *tokens));
    need(cx, et_tensor_write(cx, rng, key, sizeof key));
    struct et_forward f = {.g = g, .training = training, .rng = rng};
    struct et_tensor *y = et_model_forward(m, &f, x);
    need(cx, et_eval(g, &y, 1));
    need(cx, et_tensor_read(cx, y, out, COUNT * sizeof *out));
    et_graph_free(&g);
    et_tensor_free(&x);
    et_tensor_free(&rng);
    et_model_free(&m);
}

static double
distance(const float *a, const float *b, int n)
{
    double worst = 0;
    for (int i = 0; i < n; i++)
        worst = fmax(worst, fabs(a[i] - b[i]));
    return worst;
}

static void
one_model(const char *name, bool causal)
{
    static const int32_t tokens[B * T] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2};
    int32_t other[B * T];
    float plain[COUNT], now[COUNT], again[COUNT];
    compute(name, "0", true, tokens, plain);
    compute(name, "1e-12", true, tokens, now); /* nothing is drawn as rarely */
    ok(distance(plain, now, COUNT) < 1e-6, "%s: scores as an array give the same",
       name);
    compute(name, "0.5", false, tokens, now);
    ok(distance(plain, now, COUNT) == 0, "%s: evaluation drops nothing", name);
    compute(name, "0.5", true, tokens, now);
    compute(name, "0.5", true, tokens, again);
    ok(distance(plain, now, COUNT) > 1e-4 && distance(now, again, COUNT) == 0,
       "%s: training drops some, the same ones for one key", name);
    memcpy(other, tokens, sizeof other);
    other[T - 1] = 9; /* the last token of the first sample */
    compute(name, "0.5", true, other, again);
    ok((distance(now, again, (T - 1) * WORDS) == 0) == causal,
       "%s: earlier tokens %s a later one", name, causal ? "do not see" : "see");
}

int
main(void)
{
    cx = need_ctx();
    need(cx, et_device_open(cx, "ref", 0, 0, &dev));
    one_model("gpt2", true);
    one_model("bert", false);
    et_device_close(&dev);
    et_ctx_free(&cx);
    return done();
}
