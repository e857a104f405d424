/* SPDX-License-Identifier: Apache-2.0 */
/* Alibi: spec/algorithms.md 2.1. The slopes: t/unit/modules.c. */
#include "t/algorithms/golden.h"

#include <math.h>
#include <string.h>

#include "etude/nn.h"

enum { LENGTH = 6 };

static struct et_module *
gpt2(struct et_ctx *cx)
{
    struct et_module *m;
    need(cx, et_module_new(cx, &et_gpt2_class,
                           &(const struct et_gpt2_options){.n_layers = 1,
                                                           .d_model = 12,
                                                           .n_heads = 3,
                                                           .max_seq_len = LENGTH,
                                                           .vocab_size = 11},
                           &m));
    return m;
}

static struct et_module *
bert(struct et_ctx *cx)
{
    struct et_module *m;
    need(cx, et_module_new(cx, &et_bert_class,
                           &(const struct et_bert_options){.n_layers = 1,
                                                           .d_model = 8,
                                                           .n_heads = 2,
                                                           .max_seq_len = LENGTH,
                                                           .vocab_size = 11},
                           &m));
    return m;
}

static void
test_golden(struct formula *f, struct et_module *m, const char *name)
{
    int n;
    need(f->cx, et_apply_alibi(f->cx, m, LENGTH, &n));
    is_int(n, 1, "one attention has a bias");
    golden_check(f, m, name, F32_TOL);
    need(f->cx, et_apply_alibi(f->cx, m, LENGTH, &n));
    is_int(n, 1, "and again: it is the same one");
    need(f->cx, et_module_bind(f->cx, m, f->dev, ET_PARAM | ET_BUFFER, 17));
    golden_check(f, m, name, F32_TOL);
    et_module_free(&m);
}

static void
test_bias(struct et_ctx *cx)
{
    struct et_module *m = bert(cx);
    struct et_leaves l;
    float v[2 * LENGTH * LENGTH];
    bool symmetric = true;
    int n;
    need(cx, et_apply_alibi(cx, m, LENGTH, &n));
    need(cx, et_module_leaves(cx, m, ET_BUFFER, &l));
    struct et_leaf *leaf =
        et_leaves_find(&l, "bert.encoder.layer.0.attention.self.alibi");
    need(cx, et_param_read(cx, leaf->param, leaf->name, 17, v, 2 * LENGTH * LENGTH));
    for (int i = 0; i < LENGTH; i++)
        for (int j = 0; j < LENGTH; j++)
            symmetric = symmetric && v[i * LENGTH + j] == v[j * LENGTH + i] &&
                        (v[i * LENGTH + j] == 0) == (i == j);
    ok(symmetric, "BERT's bias is symmetric, and 0 on its diagonal alone");
    ok(v[1] == -0.0625f && v[LENGTH * LENGTH + 5] == -5 * 0.00390625f,
       "it falls by 1/16 and 1/256 a token");
    et_leaves_release(&l);
    et_module_free(&m);
}

static void
test_batch(struct formula *f)
{
    int32_t v[16];
    float got[16], want[16];
    for (int i = 0; i < 16; i++)
        want[i] = (float)(v[i] = i);
    struct et_tensor *x = integers(f, v, ET_SHAPE(2, 8)), *y = x;
    need(f->cx, et_alibi_batch(f->g, &y, 0.25));
    ok(y->desc.ndim == 2 && y->desc.shape[0] == 8 && y->desc.shape[1] == 2,
       "two rows of 8 tokens become eight of 2");
    evaluate(f, et_cast(f->g, y, ET_F32), got, 16);
    ok(memcmp(got, want, sizeof got) == 0, "in their order");
    y = x;
    need(f->cx, et_alibi_batch(f->g, &y, 1));
    ok(y->desc.shape[0] == 2 && y->desc.shape[1] == 8, "1 leaves them");
    y = x;
    refused(f->cx, et_alibi_batch(f->g, &y, 0.3), "what does not divide is refused");
    y = x;
    refused(f->cx, et_alibi_batch(f->g, &y, 0.1), "as are pieces of no token");
    et_graph_reset(f->g);
    et_tensor_free(&x);
    /* 7 by 0.28 is a little below 25. */
    static int32_t few[7 * 25];
    x = y = integers(f, few, ET_SHAPE(7, 25));
    need(f->cx, et_alibi_batch(f->g, &y, 0.28));
    ok(y->desc.shape[0] == 25 && y->desc.shape[1] == 7, "seven rows become 25");
    et_graph_reset(f->g);
    et_tensor_free(&x);
    /* 100 times 0.29 is a little below 29, and 29 by it a little above 100. */
    static int32_t zeros[29 * 100];
    x = y = integers(f, zeros, ET_SHAPE(29, 100));
    need(f->cx, et_alibi_batch(f->g, &y, 0.29));
    ok(y->desc.shape[0] == 100 && y->desc.shape[1] == 29, "a fraction may be rounded");
    et_graph_reset(f->g);
    et_tensor_free(&x);
}

/* All fields of a batch are cut, and its rows counted. */
static void
test_fields(struct formula *f)
{
    static const struct et_model_class language = {.task = ET_TASK_LANGUAGE};
    static const struct et_model_class classifier = {.task = ET_TASK_CLASSIFICATION};
    struct et_model model = {.type = &language};
    struct et_algorithm *a = algorithm(
        f->cx, "alibi",
        OPTIONS("max_sequence_length", "8", "train_sequence_length_scaling", "0.5"));
    int32_t v[24];
    for (int i = 0; i < 24; i++)
        v[i] = 5 * i;
    struct et_tensor *x = integers(f, v, ET_SHAPE(3, 8));
    const struct et_samples all = {.x = x,
                                   .target = x,
                                   .n = 3,
                                   .other = {{"mask", x}, {"place", x}},
                                   .n_others = 2};
    struct et_state s = {.cx = f->cx, .graph = f->g, .model = &model, .batch = all};
    ok(a->type->match(a, ET_EVENT_AFTER_DATALOADER, &s), "sequences are cut");
    need(f->cx, a->type->apply(a, ET_EVENT_AFTER_DATALOADER, &s, NULL));
    struct et_tensor *got[] = {s.batch.x, s.batch.target, s.batch.other[0].tensor,
                               s.batch.other[1].tensor};
    int right = 0;
    for (int i = 0; i < 4; i++)
        right += got[i]->desc.shape[0] == 6 && got[i]->desc.shape[1] == 4;
    is_int(right, 4, "all fields of a batch become six rows of 4 tokens");
    is_int(s.batch.n, 6, "of which there are six");
    model.type = &classifier;
    ok(!a->type->match(a, ET_EVENT_AFTER_DATALOADER, &s),
       "batches of another task stay as they are");
    et_graph_reset(f->g);
    et_tensor_free(&x);
    et_algorithm_free(&a);
}

/* The length of the biases of ROOT's first attention; 0: it has none. */
static int64_t
length_of_bias(struct et_ctx *cx, struct et_module *root)
{
    int64_t length = 0;
    struct et_leaves l;
    need(cx, et_module_leaves(cx, root, ET_BUFFER, &l));
    for (int i = 0; i < l.n && !length; i++)
        if (strstr(l.v[i].name, "alibi"))
            length = l.v[i].param->desc.shape[3];
    et_leaves_release(&l);
    return length;
}

/* Where a model had biases before the method came, they are what they were when it
 * goes. */
static void
test_undo(struct et_ctx *cx)
{
    struct run r;
    int n;
    run_prepare(&r, cx, &(struct run_setup){.n = 4});
    struct et_module *mlp = r.model->root;
    run_start(&r);
    r.model->root = bert(cx);
    need(cx, et_apply_alibi(cx, r.model->root, LENGTH, &n));
    need(cx, et_state_follow_surgery(r.state));
    struct et_algorithm *a =
        algorithm(cx, "alibi", OPTIONS("max_sequence_length", "9"));
    need(cx, a->type->apply(a, ET_EVENT_INIT, r.state, NULL));
    is_int(length_of_bias(cx, r.model->root), 9, "a bias becomes longer");
    need(cx, a->type->undo(a, r.state));
    is_int(length_of_bias(cx, r.model->root), LENGTH, "and what it was before");
    a->type->close(a);
    et_algorithm_free(&a);
    et_module_free(&r.model->root);
    r.model->root = mlp;
    need(cx, et_state_follow_surgery(r.state));
    run_close(&r);
}

static int warnings;

static void
count_warnings(void *data, enum et_log_level level, const char *text)
{
    (void)data, (void)level;
    warnings += strstr(text, "alibi changed nothing") != NULL;
}

static void
test_others(struct et_ctx *cx)
{
    struct et_algorithm *a =
        algorithm(cx, "alibi", OPTIONS("max_sequence_length", "8"));
    struct run_setup setup = {.n = 4};
    et_ctx_set_log(cx, ET_LOG_WARN, count_warnings, NULL);
    struct losses plain = train(cx, setup, NULL, 0), with = train(cx, setup, &a, 1);
    et_ctx_set_log(cx, ET_LOG_WARN, NULL, NULL);
    is_int(warnings, 1, "a model without attention is warned of");
    ok(difference(&plain, &with) == 0, "and trained as it is");
    struct et_state s = {.cx = cx, .max_seq_len = 8};
    need(cx, a->type->apply(a, ET_EVENT_FIT_START, &s, NULL));
    s.max_seq_len = 9;
    refused(cx, a->type->apply(a, ET_EVENT_FIT_START, &s, NULL),
            "data with longer sequences are refused");
    et_algorithm_free(&a);
    const char *why = refusal(cx, "alibi", OPTIONS());
    ok(strstr(why, "max_sequence_length"), "the longest sequence must be given: %s",
       why);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct formula f;
    formula_open(&f, cx);
    test_golden(&f, gpt2(cx), "alibi_gpt2");
    test_golden(&f, bert(cx), "alibi_bert");
    test_bias(cx);
    test_batch(&f);
    test_fields(&f);
    formula_close(&f);
    test_others(cx);
    test_undo(cx);
    return finish(cx);
}
