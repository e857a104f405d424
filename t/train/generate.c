/* SPDX-License-Identifier: Apache-2.0 */
/* Text from a language model whose scores are known: which tokens may be drawn, how
 * often, where a text ends, and how bytes become text. The model's scores of what
 * follows a token are that token's row of a table. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/trainer/generate.h"
#include "core/trainer/state.h"
#include "etude/callback.h"
#include "etude/logger.h"
#include "etude/nn.h"
#include "etude/trainer.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { V = 256, T = 24, DRAWS = 4000 };

static struct et_ctx *cx;
static struct et_device *dev;
static struct et_model *model;
static struct eti_generator *generator;
static float table[V][V];

struct table_options {
    struct et_model_options common;
};

static et_status
build(struct et_ctx *c, struct et_model *m, const void *options,
      const struct et_model_facts *facts)
{
    (void)options;
    m->num_classes = facts->vocab_size;
    return ET_NEW(c, &m->root, embedding, .num_embeddings = facts->vocab_size,
                  .features = facts->vocab_size);
}

static const struct et_model_class table_model = {
    .info =
        {
            .name = "table",
            .class_name = "Table",
            .summary = "a row of scores for each token",
            .options =
                (const struct et_option[]){
                    ET_MODEL_START_OPTIONS(table_options),
                    {0},
                },
            .options_size = sizeof(struct table_options),
        },
    .task = ET_TASK_LANGUAGE,
    .build = build,
};

/* TO follows FROM with the probability P, as far as its row says. */
static void
follow(int from, int to, double p)
{
    table[from][to] = (float)log(p);
}

static void
begin_table(void)
{
    for (int i = 0; i < V; i++)
        for (int k = 0; k < V; k++)
            table[i][k] = -60;
}

static void
set_table(void)
{
    need(cx, et_model_set_param(model, "weight", &table[0][0], V * V));
}

/* The likeliest text of N tokens behind TEXT. */
static bool
is_text(const char *text, int64_t n, const char *want)
{
    const struct eti_generate how = {.length = n, .top_p = 1};
    struct et_tokenizer *t;
    struct et_encoder *e;
    struct eti_generated made;
    need(cx, et_tokenizer_open(cx, "bytes", &t));
    need(cx, et_encoder_new(cx, t, &e));
    need(cx, eti_generator_text(generator, &how, t, e, text, strlen(text), &made));
    bool same = made.n == strlen(want) && strcmp(made.text, want) == 0 &&
                made.tokens == n && !made.ended;
    if (!same)
        diag("'%s', not '%s'", made.text, want);
    et_free(cx, made.text);
    et_encoder_free(&e);
    et_tokenizer_free(&t);
    return same;
}

static void
test_text(void)
{
    static const unsigned char chain[] = {'a', 0xe2, 0x82, 0xac, 0xff, 'b', 0xc3, 'c'};
    begin_table();
    for (size_t i = 0; i + 1 < sizeof chain; i++)
        follow(chain[i], chain[i + 1], 0.9);
    follow('c', 'd', 0.6);
    follow('c', 'e', 0.4);
    follow('d', 'd', 0.9);
    follow('x', 0xe2, 0.9);
    follow(0xe2, 'b', 0.05);
    follow('y', 0xf0, 0.9);
    follow(0xf0, 0x9f, 0.9);
    follow(0x9f, 0x98, 0.9);
    follow(0x98, 0x80, 0.9);
    set_table();
    ok(is_text("a", 3, "a\xe2\x82\xac"), "three bytes are one character");
    ok(is_text("a", 2, "a"), "one that was begun is left out");
    ok(is_text("a", 4, "a\xe2\x82\xac\xef\xbf\xbd"), "a byte that is none is U+FFFD");
    ok(is_text("a", 7,
               "a\xe2\x82\xac\xef\xbf\xbd"
               "b\xef\xbf\xbd"
               "c"),
       "as is a beginning that something else follows");
    ok(is_text("y", 4, "y\xf0\x9f\x98\x80"), "four bytes are one character too");
    ok(is_text("y", 3, "y"), "which may have begun");
    table[0xe2][0x82] = -60;
    set_table();
    ok(is_text("x", 2,
               "x\xef\xbf\xbd"
               "b"),
       "nothing behind a beginning is lost");
    ok(is_text("c", 3, "cddd"), "the likeliest comes at a temperature of 0");
    ok(is_text("abcabcabcabcabcabcabcabcabc", 1, "abcabcabcabcabcabcabcabcabcd"),
       "a prompt may be longer than the model looks back");
}

/* A model that has more tokens than the tokenizer: the others are never drawn. */
static void
test_more_tokens(void)
{
    enum { MORE = V + 4 };
    static float scores[MORE * MORE];
    const struct et_model_facts facts = {.vocab_size = MORE, .seq_len = T};
    struct et_model *other, *was = model;
    struct eti_generator *first = generator;
    need(cx, et_model_new(cx, &table_model, NULL, &facts, &other));
    need(cx, et_module_bind(cx, other->root, dev, ET_PARAM | ET_BUFFER, 3));
    for (int i = V; i < MORE; i++)
        scores['e' * MORE + i] = (float)i;
    scores['e' * MORE + 'f'] = 1;
    need(cx, et_model_set_param(other, "weight", scores, MORE * MORE));
    model = other;
    need(cx, eti_generator_new(cx, dev, other, T, &generator));
    ok(is_text("e", 1, "ef"), "tokens that have no text are not drawn");
    eti_generator_free(&generator);
    et_model_free(&other);
    model = was;
    generator = first;
}

static void
test_end(void)
{
    const struct eti_generate how = {.length = 10, .top_p = 1};
    int32_t token[16] = {1};
    int64_t made;
    begin_table();
    for (int i = 1; i < 9; i++)
        follow(i, i + 1, 0.9);
    set_table();
    need(cx, eti_generator_run(generator, &how, 4, token, 1, &made));
    ok(made == 3 && token[3] == 4, "it ends behind the token that ends a text");
    need(cx, eti_generator_run(generator, &how, -1, token, 1, &made));
    is_int(made, 10, "without one when the length is reached");
    ok(eti_generator_run(generator, &how, -1, token, 0, &made) == ET_EINVAL,
       "a prompt of no tokens is refused");
    (void)take_error(cx);
}

/* How often each of the first three tokens is drawn behind token 0. */
static void
count(const struct eti_generate *how, double share[3])
{
    int n[V] = {0};
    for (uint32_t seed = 0; seed < DRAWS; seed++) {
        struct eti_generate one = *how;
        int32_t token[2] = {0};
        int64_t made;
        one.length = 1;
        one.seed = seed;
        need(cx, eti_generator_run(generator, &one, -1, token, 1, &made));
        n[token[1]]++;
    }
    for (int i = 0; i < 3; i++)
        share[i] = (double)n[1 + i] / DRAWS;
}

static bool
near(const double share[3], double a, double b, double c)
{
    /* Four standard deviations of a share of 4,000 draws. */
    const double far = 4 * 0.5 / sqrt(DRAWS);
    bool same = fabs(share[0] - a) < far && fabs(share[1] - b) < far &&
                fabs(share[2] - c) < far && (share[1] == 0) == (b == 0) &&
                (share[2] == 0) == (c == 0);
    if (!same)
        diag("%.3f %.3f %.3f", share[0], share[1], share[2]);
    return same;
}

static void
test_draws(void)
{
    double share[3];
    begin_table();
    follow(0, 1, 0.5);
    follow(0, 2, 0.3);
    follow(0, 3, 0.2);
    set_table();
    count(&(struct eti_generate){.temperature = 1, .top_p = 1}, share);
    ok(near(share, 0.5, 0.3, 0.2), "tokens come as often as they are likely");
    count(&(struct eti_generate){.temperature = 0.5, .top_p = 1}, share);
    ok(near(share, 0.25 / 0.38, 0.09 / 0.38, 0.04 / 0.38),
       "a low temperature favours the likely ones");
    count(&(struct eti_generate){.temperature = 1, .top_p = 1, .top_k = 2}, share);
    ok(near(share, 0.625, 0.375, 0), "top-k 2 leaves two");
    count(&(struct eti_generate){.temperature = 1, .top_p = 0.6}, share);
    ok(near(share, 0.625, 0.375, 0), "as does a probability that takes two");
    count(&(struct eti_generate){.temperature = 1, .top_p = 0.4}, share);
    ok(near(share, 1, 0, 0), "one that the first has leaves it alone");
    count(&(struct eti_generate){.temperature = 1, .top_p = 0.7, .top_k = 2}, share);
    ok(near(share, 0.625, 0.375, 0), "top-p is of what top-k leaves");
    count(&(struct eti_generate){.temperature = 1, .top_p = 1, .top_k = 1}, share);
    ok(near(share, 1, 0, 0), "top-k 1 leaves the likeliest");
    follow(0, 1, 0.4);
    follow(0, 2, 0.4);
    set_table();
    count(&(struct eti_generate){.temperature = 1, .top_p = 1, .top_k = 1}, share);
    ok(near(share, 0.5, 0.5, 0), "or both of two");
    count(&(struct eti_generate){.temperature = 1, .top_p = 0.3}, share);
    ok(near(share, 0.5, 0.5, 0), "as does a probability that one of them has");
    table[0][0] = table[0][5] = NAN;
    follow(0, 3, 0.5);
    set_table();
    count(&(struct eti_generate){.temperature = 0, .top_p = 1}, share);
    ok(near(share, 0, 0, 1), "what is no number is not the likeliest");
    count(&(struct eti_generate){.temperature = 1, .top_p = 1}, share);
    ok(near(share, 0.4 / 1.3, 0.4 / 1.3, 0.5 / 1.3), "and is not drawn");
}

/* What is drawn follows from the seed and from how many were drawn before. */
static void
test_seeds(void)
{
    const struct eti_generate how = {
        .length = 12, .temperature = 1, .top_p = 1, .seed = 11};
    int32_t one[16] = {5}, two[16] = {7, 9, 5}, other[16] = {5};
    int64_t made;
    begin_table();
    for (int i = 0; i < V; i++)
        for (int k = 0; k < 8; k++)
            follow(i, (i + 3 * k) % V, 0.125);
    set_table();
    need(cx, eti_generator_run(generator, &how, -1, one, 1, &made));
    need(cx, eti_generator_run(generator, &how, -1, two, 3, &made));
    ok(memcmp(one + 1, two + 3, 12 * sizeof *one) == 0,
       "the same seed draws the same tokens behind a prompt of any length");
    struct eti_generate next = how;
    next.seed = 12;
    need(cx, eti_generator_run(generator, &next, -1, other, 1, &made));
    ok(memcmp(one, other, 13 * sizeof *one) != 0, "another one draws others");
}

/* ---- what is kept from token to token ---- */

enum { LONG = 3 * T };

static struct eti_generator *
gpt_generator(const char *options, struct et_model **gpt)
{
    const struct et_model_facts facts = {.vocab_size = 64, .seq_len = T};
    const struct et_model_class *type = et_model_class_find("gpt2");
    struct eti_generator *made;
    void *o;
    need(cx, et_options_new(cx, &type->info, NULL, &o));
    for (const char *name = options, *value; *name; name = value + strlen(value) + 1) {
        value = name + strlen(name) + 1;
        need(cx, et_options_set(cx, type->info.options, o, name, value));
    }
    need(cx, et_model_new(cx, type, o, &facts, gpt));
    et_options_free(&type->info, &o);
    need(cx, et_module_bind(cx, (*gpt)->root, dev, ET_PARAM | ET_BUFFER, 5));
    /* Larger than at the beginning, so that tokens differ by what stood before them. */
    struct et_leaves leaves;
    need(cx, et_module_leaves(cx, (*gpt)->root, ET_PARAM, &leaves));
    for (int i = 0; i < leaves.n; i++) {
        struct et_param *p = leaves.v[i].param;
        float value[8192];
        const int64_t n = et_desc_count(&p->desc);
        need(cx, et_param_read(cx, p, leaves.v[i].name, 5, value, n));
        for (int64_t j = 0; j < n; j++)
            value[j] *= p->desc.ndim > 1 ? 8 : 1;
        need(cx, et_param_write(cx, p, value, n));
    }
    et_leaves_release(&leaves);
    need(cx, eti_generator_new(cx, dev, *gpt, T, &made));
    return made;
}

#define TINY                                                                           \
    "n_layers\0"                                                                       \
    "2\0"                                                                              \
    "d_model\0"                                                                        \
    "32\0"                                                                             \
    "n_heads\0"                                                                        \
    "4\0"                                                                              \
    "max_seq_len\0"                                                                    \
    "24\0"                                                                             \
    "vocab_size\0"                                                                     \
    "64\0"

/* Are the LENGTH tokens behind a prompt of N the same with all kept as with nothing? */
static bool
is_same(struct eti_generator *g, int64_t n, int64_t length, double temperature)
{
    struct eti_generate how = {
        .length = length, .top_p = 1, .temperature = temperature, .seed = 3};
    int32_t quick[LONG + T], whole[LONG + T];
    int64_t made[2];
    for (int i = 0; i < n; i++)
        quick[i] = whole[i] = (7 * i + 3) % 64;
    need(cx, eti_generator_run(g, &how, -1, quick, n, &made[0]));
    how.recompute = true;
    need(cx, eti_generator_run(g, &how, -1, whole, n, &made[1]));
    int differs = 0;
    for (int64_t i = 0; i < n + length; i++)
        differs += quick[i] != whole[i];
    if (differs > 0)
        diag("%d of %d tokens differ", differs, (int)(n + length));
    return made[0] == made[1] && differs == 0;
}

static int64_t
cost(struct eti_generator *g, int64_t n, int64_t length)
{
    const struct eti_generate how = {.length = length, .top_p = 1};
    struct et_graph_stats before, after;
    int32_t token[T + 1] = {0};
    int64_t made;
    et_graph_get_stats(eti_generator_graph(g), &before);
    need(cx, eti_generator_run(g, &how, -1, token, n, &made));
    et_graph_get_stats(eti_generator_graph(g), &after);
    return after.flops - before.flops;
}

static void
test_kept(const char *what, const char *options)
{
    struct et_model *gpt;
    struct eti_generator *g = gpt_generator(options, &gpt);
    ok(is_same(g, 1, T - 1, 0) && is_same(g, 6, 9, 0) && is_same(g, T, 1, 0),
       "%s: greedy texts are those of whole windows", what);
    ok(is_same(g, 3, 12, 1), "%s: drawn ones too", what);
    ok(is_same(g, T - 2, LONG, 0) && is_same(g, T + 5, 4, 0),
       "%s: beyond what it looks back to as well", what);
    eti_generator_free(&g);
    et_model_free(&gpt);
}

static void
test_cost(void)
{
    struct et_model *gpt;
    struct eti_generator *g = gpt_generator(TINY, &gpt);
    const int64_t whole = cost(g, T - 4, 1);
    const int64_t each = (cost(g, T - 4, 4) - whole) / 3;
    ok(each * (T - 6) < whole, "a further token costs one position, not a window");
    diag("%lld FLOPs for a window, %lld for a token", (long long)whole,
         (long long)each);
    eti_generator_free(&g);
    et_model_free(&gpt);
}

/* ---- the callback ---- */

/* The last text that was written; the numbers of texts and of warnings. */
struct written {
    struct et_sink sink; /* first */
    char text[256];
    int n, warnings;
};

static void
keep_text(struct et_sink *sink, const struct et_record *r)
{
    struct written *w = (struct written *)sink;
    if (r->kind != ET_RECORD_LOG)
        return;
    w->warnings += r->level == ET_LOG_WARN;
    w->n += r->level == ET_LOG_INFO;
    snprintf(w->text, sizeof w->text, "%s", r->text);
}

/* Returns what the callback with these OPTIONS writes over two evaluations. */
static struct written
write_with(const char *const *options)
{
    const struct et_callback_class *class = et_callback_find("generate");
    const int64_t shape[] = {2, T};
    struct written w = {.sink = {.write = keep_text}};
    struct et_state s = {.cx = cx, .dev = dev, .model = model};
    struct et_callback *c;
    struct et_log *log;
    void *values;
    need(cx, et_options_new(cx, &class->info, options, &values));
    need(cx, et_callback_new(cx, class, values, NULL, &c));
    et_options_free(&class->info, &values);
    need(cx, et_log_new(cx, &w.sink, &log));
    need(cx, et_tensor_new(cx, dev, ET_I32, 2, shape, ET_ROW_MAJOR, "x", &s.batch.x));
    need(cx, class->evaluated(c, &s, log));
    ok(w.n == 0 && w.warnings == 0,
       "the callback writes nothing before it has seen text data");
    for (int i = 0; i < 2; i++) {
        need(cx, class->run(c, ET_EVENT_EVAL_BEFORE_FORWARD, &s, log));
        need(cx, class->evaluated(c, &s, log));
    }
    et_tensor_free(&s.batch.x);
    et_log_free(&log);
    class->close(c);
    et_callback_free(&c);
    return w;
}

/* All options, and all but one, which has its default. */
static void
test_callback(void)
{
    static const char *const all[][2] = {
        {"prompt", "b"},  {"length", "24"}, {"temperature", "1.7"}, {"top_k", "3"},
        {"top_p", "0.7"}, {"seed", "5"},    {"tokenizer", "bytes"},
    };
    enum { ALL = sizeof all / sizeof *all };
    static const double share[] = {.4, .3, .2, .1};
    struct eti_generate how = {
        .length = 24, .temperature = 1.7, .top_k = 3, .top_p = 0.7, .seed = 5};
    struct et_tokenizer *t;
    struct et_encoder *e;
    struct eti_generated made;
    struct written whole;
    char want[64];
    begin_table();
    for (int from = 0; from < V; from++)
        for (int i = 0; i < 4; i++)
            follow(from, 'b' + i, share[i]);
    set_table();
    need(cx, et_tokenizer_open(cx, "bytes", &t));
    need(cx, et_encoder_new(cx, t, &e));
    need(cx, eti_generator_text(generator, &how, t, e, "b", 1, &made));
    snprintf(want, sizeof want, "generate: %s", made.text);
    et_free(cx, made.text);
    et_encoder_free(&e);
    et_tokenizer_free(&t);
    for (int left_out = ALL - 1; left_out >= -1; left_out--) {
        const char *options[2 * ALL + 1] = {NULL};
        int n = 0;
        for (int i = 0; i < ALL; i++)
            if (i != left_out) {
                options[n++] = all[i][0];
                options[n++] = all[i][1];
            }
        whole = write_with(options);
        if (left_out == ALL - 1)
            ok(whole.n == 0 && whole.warnings == 1,
               "the callback without a tokenizer writes no text, and warns once");
        else if (left_out >= 0)
            ok(whole.n == 2 && strcmp(whole.text, want) != 0,
               "the text is another one without the option %s", all[left_out][0]);
    }
    ok(whole.n == 2 && strcmp(whole.text, want) == 0,
       "the callback writes the text of its options after each evaluation");
}

int
main(void)
{
    const struct et_model_facts facts = {.vocab_size = V, .seq_len = T};
    struct et_alloc_stats stats;
    cx = need_ctx();
    need(cx, et_device_open(cx, "ref", 0, 0, &dev));
    need(cx, et_model_new(cx, &table_model, NULL, &facts, &model));
    need(cx, et_module_bind(cx, model->root, dev, ET_PARAM | ET_BUFFER, 3));
    need(cx, eti_generator_new(cx, dev, model, T, &generator));
    test_text();
    test_more_tokens();
    test_end();
    test_draws();
    test_seeds();
    test_kept("positions", TINY);
    test_kept("ALiBi", TINY "position\0"
                            "alibi\0");
    test_cost();
    test_callback();
    eti_generator_free(&generator);
    et_model_free(&model);
    et_device_close(&dev);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
