/* SPDX-License-Identifier: Apache-2.0 */
/* GatedLinearUnits: spec/algorithms.md 2.10. */
#include "t/algorithms/golden.h"

#include <string.h>

#include "etude/nn.h"

enum { LAYERS = 2, D = 8, WIDE = 4 * D };

static struct et_module *
bert(struct et_ctx *cx, int64_t layers)
{
    struct et_module *m;
    need(cx, et_module_new(cx, &et_bert_class,
                           &(const struct et_bert_options){.n_layers = layers,
                                                           .d_model = D,
                                                           .n_heads = 2,
                                                           .max_seq_len = 6,
                                                           .vocab_size = 11},
                           &m));
    return m;
}

static int
gate(struct et_ctx *cx, struct et_module *m, const struct et_module_class *act)
{
    struct et_surgery surgery;
    et_status status = et_apply_gated_linear_units(cx, m, act, false, false, &surgery);
    return replaced(cx, status, &surgery);
}

static int
count(struct et_ctx *cx, struct et_module *m, const struct et_module_class *type)
{
    int n;
    need(cx, et_module_count_class(cx, m, type, &n));
    return n;
}

static void
test_counts(struct et_ctx *cx)
{
    struct et_module *m = bert(cx, LAYERS);
    int64_t before, after;
    need(cx, et_module_count(cx, m, &before));
    is_int(gate(cx, m, NULL), 2 * LAYERS, "both halves of each layer are replaced");
    is_int(count(cx, m, &et_bert_intermediate_class), 0, "no intermediate is left");
    is_int(count(cx, m, &et_bert_output_class), 0, "no output");
    need(cx, et_module_count(cx, m, &after));
    is_int(after - before, LAYERS * (D * WIDE - WIDE),
           "a layer has D x 4D parameters more, and no bias of 4D");
    ok(et_module_is(et_module_find(m, "bert.encoder.layer.1.output.act"),
                    &et_gelu_class),
       "the gate has the model's activation");
    is_int(gate(cx, m, NULL), 0, "a second application changes nothing");
    et_module_free(&m);
}

static void
test_activations(struct et_ctx *cx)
{
    struct et_surgery surgery;
    struct et_module *m = bert(cx, LAYERS), *net = golden_vision(cx);
    struct et_bert_intermediate_module *i =
        (struct et_bert_intermediate_module *)et_module_find(
            m, "bert.encoder.layer.1.intermediate");
    et_module_free(&i->intermediate_act_fn);
    need(cx, et_module_new(cx, &et_relu_class, NULL, &i->intermediate_act_fn));
    refused(cx, et_apply_gated_linear_units(cx, m, NULL, false, false, &surgery),
            "activations of two kinds are refused");
    et_surgery_release(&surgery);
    is_int(gate(cx, m, &et_silu_class), 2 * LAYERS, "unless one is named");
    ok(et_module_is(et_module_find(m, "bert.encoder.layer.0.output.act"),
                    &et_silu_class),
       "which the gates have");
    refused(cx, et_apply_gated_linear_units(cx, net, NULL, false, false, &surgery),
            "a model that is no BERT is refused");
    et_surgery_release(&surgery);
    et_module_free(&m);
    et_module_free(&net);
}

static void
test_golden(struct formula *f)
{
    struct et_surgery surgery;
    struct et_module *m = bert(f->cx, 1);
    et_status status =
        et_apply_gated_linear_units(f->cx, m, NULL, false, true, &surgery);
    is_int(replaced(f->cx, status, &surgery), 2, "one layer is replaced");
    golden_check(f, m, "gated_linear_units", F32_TOL);
    et_module_free(&m);
}

/* What the old block had is taken over. */
static void
test_options(struct et_ctx *cx)
{
    struct et_module *old, *m;
    need(cx, et_module_new(
                 cx, &et_bert_output_class,
                 &(const struct et_bert_options){.d_model = D, .dropout = .25}, &old));
    need(cx, ET_NEW(cx, &m, bert_gated_output, .output = old, .act = &et_relu_class,
                    .gated_layer_bias = true));
    struct et_bert_gated_output_module *g = (struct et_bert_gated_output_module *)m;
    ok(((struct et_dropout_module *)g->dropout)->o.p == .25, "dropout is the block's");
    ok(((struct et_layer_norm_module *)g->layernorm)->o.eps == 1e-12, "so is eps");
    ok(!((struct et_linear_module *)g->gated_layer)->o.no_bias &&
           ((struct et_linear_module *)g->non_gated_layer)->o.no_bias &&
           !((struct et_linear_module *)g->wo)->o.no_bias,
       "biases are where they are asked for, and behind the product");
    et_module_free(&m);
    et_module_free(&old);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct formula f;
    formula_open(&f, cx);
    test_counts(cx);
    test_activations(cx);
    test_options(cx);
    test_golden(&f);
    formula_close(&f);
    return finish(cx);
}
