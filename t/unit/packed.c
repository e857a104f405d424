/* SPDX-License-Identifier: Apache-2.0 */
/* Several texts in one sequence: with the fields document and position each is computed
 * as if it stood alone, forward and back. */
#include <math.h>
#include <string.h>

#include "etude/functional.h"
#include "etude/model.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { T = 8, FIRST = 5, WORDS = 11, COUNT = T * WORDS };

static struct et_ctx *cx;
static struct et_device *dev;

struct sequence {
    int64_t n;
    const int32_t *token, *document, *position, *mask; /* all but token may be NULL */
};

/* What the model computes of a sequence, and how its sum of squares pulls at the token
 * table. */
struct computed {
    float y[COUNT], d_table[WORDS * 16];
};

static struct et_model *
make_model(const char *name, const char *key, const char *value)
{
    static const char *const set[][2] = {
        {"n_layers", "2"},    {"d_model", "16"},    {"n_heads", "2"},
        {"max_seq_len", "8"}, {"vocab_size", "11"}, {"dropout", "0"},
    };
    const struct et_model_class *type = et_model_class_find(name);
    struct et_model *m;
    void *options;
    need(cx, et_options_new(cx, &type->info, NULL, &options));
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        need(cx, et_options_set(cx, type->info.options, options, set[i][0], set[i][1]));
    if (key)
        need(cx, et_options_set(cx, type->info.options, options, key, value));
    need(cx, et_model_new(cx, type, options, NULL, &m));
    et_options_free(&type->info, &options);
    need(cx, et_module_bind(cx, m->root, dev, ET_PARAM | ET_BUFFER, 3));
    return m;
}

static struct et_tensor *
row_of(const int32_t *values, int64_t n)
{
    struct et_tensor *x;
    need(cx, et_tensor_new(cx, dev, ET_I32, 2, (const int64_t[]){1, n}, ET_ROW_MAJOR,
                           "row", &x));
    need(cx, et_tensor_write(cx, x, values, (size_t)n * sizeof *values));
    return x;
}

static void
compute(struct et_model *m, const struct sequence *s, bool training,
        struct computed *out)
{
    const int64_t key[2] = {12345, 0};
    struct et_graph *g;
    struct et_tensor *rng, *x = row_of(s->token, s->n), *document = NULL,
                           *position = NULL, *mask = NULL;
    struct et_samples samples = {.x = x, .n = 1};
    need(cx, et_graph_new(cx, dev, &g));
    need(cx, et_tensor_new(cx, dev, ET_I64, 1, (const int64_t[]){2}, ET_ROW_MAJOR,
                           "rng", &rng));
    need(cx, et_tensor_write(cx, rng, key, sizeof key));
    if (s->document) {
        document = row_of(s->document, s->n);
        samples.other[samples.n_others++] =
            (struct et_named_tensor){"document", document};
    }
    if (s->position) {
        position = row_of(s->position, s->n);
        samples.other[samples.n_others++] =
            (struct et_named_tensor){"position", position};
    }
    if (s->mask) {
        mask = row_of(s->mask, s->n);
        samples.other[samples.n_others++] =
            (struct et_named_tensor){"attention_mask", mask};
    }
    struct et_forward f = {
        .g = g, .training = training, .rng = rng, .samples = &samples};
    struct et_tensor *y = et_model_forward(m, &f, x);
    struct et_leaves l;
    need(cx, et_module_leaves(cx, m->root, ET_PARAM, &l));
    struct et_tensor *table = l.v[0].param->tensor, *loss, *d_table;
    loss = et_sum(g, et_mul(g, y, y), 0, false);
    need(cx, et_grad(g, loss, &table, 1, &d_table));
    need(cx, et_eval(g, (struct et_tensor *[]){y, d_table}, 2));
    need(cx, et_tensor_read(cx, y, out->y, (size_t)s->n * WORDS * sizeof *out->y));
    need(cx, et_tensor_read(cx, d_table, out->d_table, sizeof out->d_table));
    et_leaves_release(&l);
    et_graph_free(&g);
    et_tensor_free(&x);
    et_tensor_free(&document);
    et_tensor_free(&position);
    et_tensor_free(&mask);
    et_tensor_free(&rng);
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
one_model(const char *what, const char *name, const char *key, const char *value,
          bool training)
{
    static const int32_t token[T] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const int32_t document[T] = {1, 1, 1, 1, 1, 2, 2, 2};
    static const int32_t position[T] = {0, 1, 2, 3, 4, 0, 1, 2};
    static struct computed packed, whole, first, second;
    struct et_model *m = make_model(name, key, value);
    compute(m, &(struct sequence){T, token, document, position, NULL}, training,
            &packed);
    compute(m, &(struct sequence){T, token, NULL, NULL, NULL}, training, &whole);
    compute(m, &(struct sequence){FIRST, token, NULL, NULL, NULL}, training, &first);
    compute(m, &(struct sequence){T - FIRST, token + FIRST, NULL, NULL, NULL}, training,
            &second);
    et_model_free(&m);
    ok(distance(packed.y, first.y, FIRST * WORDS) < 1e-5 &&
           distance(packed.y + FIRST * WORDS, second.y, (T - FIRST) * WORDS) < 1e-5,
       "%s: each text is as if it stood alone", what);
    for (int i = 0; i < WORDS * 16; i++)
        first.d_table[i] += second.d_table[i];
    ok(distance(packed.d_table, first.d_table, WORDS * 16) < 1e-4,
       "%s: its gradients are, too", what);
    ok(distance(whole.y + FIRST * WORDS, second.y, (T - FIRST) * WORDS) > 1e-3,
       "%s: without the fields the second sees the first", what);
}

/* Padding behind a text, and between two, is not attended to, beside whatever else
 * hides tokens or weighs how far they are apart. */
static void
padded(bool alibi)
{
    static const int32_t token[T] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const int32_t document[T] = {1, 1, 1, 1, 1, 2, 2, 2};
    static const int32_t position[T] = {0, 1, 2, 3, 4, 0, 1, 2};
    static const int32_t behind[T] = {1, 1, 1, 1, 1, 0, 0, 0};
    static const int32_t within[T] = {1, 1, 1, 0, 0, 1, 1, 1};
    static struct computed end, both, whole, first, third, second;
    const char *what = alibi ? "bert with ALiBi" : "bert";
    struct et_model *m = make_model("bert", NULL, NULL);
    int n;
    if (alibi) {
        need(cx, et_apply_alibi(cx, m->root, T, &n));
        need(cx, et_module_bind(cx, m->root, dev, ET_PARAM | ET_BUFFER, 3));
    }
    compute(m, &(struct sequence){T, token, NULL, NULL, behind}, false, &end);
    compute(m, &(struct sequence){T, token, document, position, within}, false, &both);
    compute(m, &(struct sequence){T, token, NULL, NULL, NULL}, false, &whole);
    compute(m, &(struct sequence){FIRST, token, NULL, NULL, NULL}, false, &first);
    compute(m, &(struct sequence){3, token, NULL, NULL, NULL}, false, &third);
    compute(m, &(struct sequence){T - FIRST, token + FIRST, NULL, NULL, NULL}, false,
            &second);
    et_model_free(&m);
    ok(distance(end.y, first.y, FIRST * WORDS) < 1e-5,
       "%s: a text with padding is as without", what);
    const double counts = distance(end.y, whole.y, FIRST * WORDS);
    ok(counts > 1e-4, "%s: which otherwise would count (%g)", what, counts);
    ok(distance(both.y, third.y, 3 * WORDS) < 1e-5 &&
           distance(both.y + FIRST * WORDS, second.y, (T - FIRST) * WORDS) < 1e-5,
       "%s: so is each of two texts in a row", what);
}

int
main(void)
{
    cx = need_ctx();
    need(cx, et_device_open(cx, "ref", 0, 0, &dev));
    one_model("gpt2", "gpt2", NULL, NULL, false);
    one_model("gpt2 with ALiBi", "gpt2", "position", "alibi", false);
    one_model("gpt2 with scores as an array", "gpt2", "attention_dropout", "1e-12",
              true);
    one_model("bert", "bert", NULL, NULL, false);
    padded(false);
    padded(true);
    et_device_close(&dev);
    et_ctx_free(&cx);
    return done();
}
