/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of language models as they are made: where their first weights are drawn from,
 * how often they drop, what their norms add. Every option has a value of its own. */
#include "etude/nn.h"
#include "t/tap.h"

#include <math.h>
#include <string.h>

enum { LAYERS = 3, WIDTH = 8, HEADS = 2, LENGTH = 5, WORDS = 11 };
static const double DROPOUT = 0.25, ATTENTION_DROPOUT = 0.125;

static struct et_ctx *cx;

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s", et_error_get(cx)->message);
}

/* ---- first weights ---- */

/* A leaf whose name ends so: normal of STD, or where that is NAN the constant VALUE. */
struct first {
    const char *end;
    double std, value;
    int64_t zeros;
};

static bool
ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* Each leaf of M is as the first of ROWS says whose end it has. */
static void
check_first(struct et_module *m, const struct first *rows, int n, const char *what)
{
    struct et_leaves l;
    int used[16] = {0};
    must(et_module_leaves(cx, m, ET_PARAM, &l));
    for (int i = 0; i < l.n; i++) {
        const struct et_init *init = &l.v[i].param->init;
        int k = 0;
        while (k < n && !ends_in(l.v[i].name, rows[k].end))
            k++;
        if (!ok(k < n, "%s: %s is known", what, l.v[i].name))
            continue;
        used[k]++;
        bool right = isnan(rows[k].std)
                         ? init->kind == ET_INIT_CONSTANT && init->a == rows[k].value
                         : init->kind == ET_INIT_NORMAL && init->a == 0 &&
                               fabs(init->b - rows[k].std) < 1e-12;
        ok(right && init->zeros == rows[k].zeros,
           "%s: %s begins as it should: %g %g, %d zeros", what, l.v[i].name, init->a,
           init->b, (int)init->zeros);
    }
    for (int k = 0; k < n; k++)
        ok(used[k] > 0, "%s has a leaf .. %s", what, rows[k].end);
    et_leaves_release(&l);
}

static struct et_module *
part(struct et_module *root, const char *path)
{
    struct et_module *m = et_module_find(root, path);
    if (!m)
        bail("there is no %s", path);
    return m;
}

/* Drops with probability P. */
static void
drops(struct et_module *root, const char *path, double p)
{
    const struct et_module *m = part(root, path);
    is_near(((const struct et_dropout_module *)m)->o.p, p, 0, "%s drops %g", path, p);
}

static void
adds(struct et_module *root, const char *path, double eps)
{
    const struct et_module *m = part(root, path);
    is_near(((const struct et_layer_norm_module *)m)->o.eps, eps, 0, "%s adds %g", path,
            eps);
}

static void
test_gpt2(void)
{
    const double small = 0.02 / sqrt(2.0 * LAYERS);
    const struct first rows[] = {
        {"wte.weight", 0.02, 0, 0},          {"wpe.weight", 0.02, 0, 0},
        {"c_attn.weight", 0.02, 0, 0},       {"c_fc.weight", 0.02, 0, 0},
        {"attn.c_proj.weight", small, 0, 0}, {"mlp.c_proj.weight", small, 0, 0},
        {"ln_1.weight", NAN, 1, 0},          {"ln_2.weight", NAN, 1, 0},
        {"ln_f.weight", NAN, 1, 0},          {".bias", NAN, 0, 0},
    };
    struct et_module *m;
    must(ET_NEW(cx, &m, gpt2, .n_layers = LAYERS, .d_model = WIDTH, .n_heads = HEADS,
                .max_seq_len = LENGTH, .vocab_size = WORDS, .dropout = DROPOUT,
                .attention_dropout = ATTENTION_DROPOUT));
    check_first(m, rows, sizeof rows / sizeof *rows, "gpt2");
    drops(m, "transformer.drop", DROPOUT);
    drops(m, "transformer.h.1.attn.resid_dropout", DROPOUT);
    drops(m, "transformer.h.1.mlp.dropout", DROPOUT);
    const struct et_attention_module *a =
        (struct et_attention_module *)part(m, "transformer.h.1.attn");
    is_near(a->o.attention_dropout, ATTENTION_DROPOUT, 0, "probabilities are dropped");
    adds(m, "transformer.h.1.ln_1", 1e-5);
    adds(m, "transformer.ln_f", 1e-5);
    et_module_free(&m);
}

static void
test_bert(void)
{
    const struct first rows[] = {
        {"word_embeddings.weight", 0.02, 0, WIDTH},
        {"position_embeddings.weight", 0.02, 0, 0},
        {"token_type_embeddings.weight", 0.02, 0, 0},
        {"query.weight", 0.02, 0, 0},
        {"key.weight", 0.02, 0, 0},
        {"value.weight", 0.02, 0, 0},
        {"dense.weight", 0.02, 0, 0},
        {"LayerNorm.weight", NAN, 1, 0},
        {"bias", NAN, 0, 0},
    };
    static const char *const norms[] = {
        "bert.embeddings.LayerNorm", "bert.encoder.layer.2.attention.output.LayerNorm",
        "bert.encoder.layer.2.output.LayerNorm", "cls.predictions.transform.LayerNorm"};
    static const char *const dropouts[] = {
        "bert.embeddings.dropout", "bert.encoder.layer.2.attention.output.dropout",
        "bert.encoder.layer.2.output.dropout"};
    struct et_module *m;
    must(ET_NEW(cx, &m, bert, .n_layers = LAYERS, .d_model = WIDTH, .n_heads = HEADS,
                .max_seq_len = LENGTH, .vocab_size = WORDS, .dropout = DROPOUT,
                .attention_dropout = ATTENTION_DROPOUT));
    check_first(m, rows, sizeof rows / sizeof *rows, "bert");
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
        adds(m, norms[i], 1e-12);
    for (size_t i = 0; i < sizeof dropouts / sizeof *dropouts; i++)
        drops(m, dropouts[i], DROPOUT);
    const struct et_bert_self_attention_module *a =
        (struct et_bert_self_attention_module *)part(
            m, "bert.encoder.layer.2.attention.self");
    is_near(a->attention_dropout, ATTENTION_DROPOUT, 0, "probabilities are dropped");
    const struct et_embedding_module *kinds =
        (struct et_embedding_module *)part(m, "bert.embeddings.token_type_embeddings");
    is_int(kinds->o.num_embeddings, 2, "there are two kinds of tokens");
    et_module_free(&m);
    must(et_module_new(cx, &et_bert_embeddings_class,
                       &(struct et_bert_options){.d_model = WIDTH,
                                                 .max_seq_len = LENGTH,
                                                 .vocab_size = WORDS,
                                                 .token_types = 4},
                       &m));
    kinds = (struct et_embedding_module *)part(m, "token_type_embeddings");
    is_int(kinds->o.num_embeddings, 4, "or as many as are asked for");
    et_module_free(&m);
}

/* A gated output imitates the one that it is made from. */
static void
test_gated(void)
{
    for (int k = 0; k < 4; k++) {
        struct et_module *old, *m;
        must(et_module_new(
            cx, &et_bert_output_class,
            &(struct et_bert_options){.d_model = WIDTH, .dropout = DROPOUT}, &old));
        ((struct et_layer_norm_module *)part(old, "LayerNorm"))->o.eps = 1e-6;
        must(ET_NEW(cx, &m, bert_gated_output, .output = old, .act = &et_relu_class,
                    .gated_layer_bias = k & 1, .non_gated_layer_bias = k >> 1));
        const struct et_linear_module *gated =
            (struct et_linear_module *)part(m, "gated_layer");
        const struct et_linear_module *other =
            (struct et_linear_module *)part(m, "non_gated_layer");
        ok(gated->o.no_bias == !(k & 1) && other->o.no_bias == !(k >> 1),
           "the gated layer has %s bias, the other %s", k & 1 ? "a" : "no",
           k >> 1 ? "one" : "none");
        ok(gated->o.in_features == WIDTH && gated->o.out_features == 4 * WIDTH &&
               other->o.out_features == 4 * WIDTH,
           "both are as wide as what they stand for");
        drops(m, "dropout", DROPOUT);
        adds(m, "layernorm", 1e-6);
        et_module_free(&m);
        et_module_free(&old);
    }
}

/* What has other layers than a BertOutput's is not imitated. */
static void
test_not_gated(void)
{
    static const char *const paths[] = {"dense", "LayerNorm", "dropout"};
    for (int k = 0; k < 4; k++) {
        struct et_module *old, *m = NULL;
        must(et_module_new(
            cx, &et_bert_output_class,
            &(struct et_bert_options){.d_model = WIDTH, .dropout = DROPOUT}, &old));
        if (k < 3) {
            struct et_bert_output_module *o = (struct et_bert_output_module *)old;
            struct et_module **slot = k == 0   ? &o->dense
                                      : k == 1 ? &o->LayerNorm
                                               : &o->dropout;
            et_module_free(slot);
            must(et_module_new(cx, &et_identity_class, NULL, slot));
        }
        et_status status =
            ET_NEW(cx, &m, bert_gated_output, .output = old, .act = &et_relu_class);
        is_int(status, k < 3 ? ET_ENOTSUP : ET_OK, "a gated output of one %s %s",
               k < 3 ? "with another" : "as it", k < 3 ? paths[k] : "was made");
        et_error_clear(cx);
        et_module_free(&m);
        et_module_free(&old);
    }
}

/* ALiBi may be set anew, for another length. */
static void
test_alibi(void)
{
    struct et_module *m;
    must(ET_NEW(cx, &m, attention, .d_model = WIDTH, .n_heads = HEADS));
    const struct et_param *p = &((struct et_attention_module *)m)->alibi;
    for (int64_t n = 3; n <= 6; n += 3) {
        float v[HEADS * 6];
        must(et_attention_set_alibi(cx, m, n));
        is_int(p->desc.shape[3], n, "a bias for %d places", (int)n);
        must(et_param_read(cx, p, "alibi", 1, v, HEADS * n));
        /* Of two heads the slopes are 2^-4 and 2^-8. */
        ok(v[0] == 0 && v[1] == 0x1p-4f && v[n] == 0 &&
               v[2 * n - 1] == (float)(n - 1) * 0x1p-8f,
           "of the slopes of two heads");
    }
    et_module_free(&m);
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_gpt2();
    test_bert();
    test_gated();
    test_not_gated();
    test_alibi();
    et_ctx_free(&cx);
    return done();
}
