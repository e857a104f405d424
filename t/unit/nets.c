/* SPDX-License-Identifier: Apache-2.0 */
/* What small networks compute, operation by operation, with the shape and the
 * attributes of each: a layer that is missing, or another stride, padding or share,
 * shows. Nothing is computed. (Networks that other libraries have as well are compared
 * with these in t/unit/hubs.c.) */
#include "core/graph/graph_impl.h"
#include "core/models/outline.h"
#include "etude/attr.h"
#include "etude/model.h"
#include "etude/nn.h"
#include "t/tap.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct et_ctx *cx;
static struct et_device *dev;

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s", et_error_get(cx)->message);
}

static char listed[16384];
static size_t used;

static void put(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void
put(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    used += (size_t)vsnprintf(listed + used, sizeof listed - used, fmt, args);
    va_end(args);
    if (used >= sizeof listed)
        bail("more operations than there is room for");
}

/* Adds a node as "conv2d 8x4x4 s1x1 p1x1 k3;", with what tells networks apart. */
static void
put_node(const struct et_node *n)
{
    const struct et_desc *y = &n->out[0].desc;
    if (n->op->flags & ET_OPF_VIEW)
        return;
    put("%s%s", n->op->name, y->ndim > 1 ? " " : "");
    for (int i = 1; i < y->ndim; i++)
        put("%s%lld", i > 1 ? "x" : "", (long long)y->shape[i]);
    if (n->op->id == ET_OP_conv2d || n->op->id == ET_OP_conv2d_grad_input) {
        const struct et_conv2d_attr *o = n->attr;
        put(" s%dx%d p%dx%d", o->stride[0], o->stride[1], o->pad[0], o->pad[1]);
        put(" k%lld", (long long)n->in[1]->desc.shape[3]);
        if (o->dilation[0] != 1 || o->dilation[1] != 1)
            put(" d%dx%d", o->dilation[0], o->dilation[1]);
        if (o->groups != 1)
            put(" g%d", o->groups);
    } else if (n->op->id == ET_OP_max_pool2d) {
        const struct et_pool2d_attr *o = n->attr;
        put(" k%d s%d p%d", o->kernel[0], o->stride[0], o->pad[0]);
    } else if (n->op->id == ET_OP_dropout) {
        const struct et_dropout_attr *o = n->attr;
        put(" %g #%llu", o->p, (unsigned long long)o->ordinal);
    } else if (n->op->id == ET_OP_layer_norm) {
        put(" %g", ((const struct et_norm_attr *)n->attr)->eps);
    } else if (n->op->id == ET_OP_sdpa) {
        put("%s", ((const struct et_sdpa_attr *)n->attr)->causal ? " causal" : "");
    } else if (n->op->id == ET_OP_concat) {
        const int64_t first = n->in[0]->desc.shape[1];
        for (int i = 1; i < n->n_in; i++)
            if (n->in[i]->desc.shape[1] != first)
                put(" %lld+%lld", (long long)first, (long long)n->in[i]->desc.shape[1]);
    } else if (n->op->id == ET_OP_resize2d) {
        put(" mode %d", ((const struct et_resize_attr *)n->attr)->mode);
    }
    put("; ");
}

/* Is NAME among the words of ONLY, or that NULL? */
static bool
is_listed(const char *name, const char *only)
{
    const size_t n = strlen(name);
    for (const char *at = only; at && (at = strstr(at, name)); at += n)
        if ((at == only || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return true;
    return !only;
}

/* What M's leaves begin as: "weight N(0.02) bias 0 table N(0.02) z16". */
static void
put_beginnings(struct et_model *m)
{
    struct et_leaves l;
    must(et_module_leaves(cx, m->root, ET_PARAM, &l));
    used = 0;
    for (int i = 0; i < l.n; i++) {
        const struct et_init *init = &l.v[i].param->init;
        put("%s ", l.v[i].name);
        if (init->kind == ET_INIT_NORMAL)
            put("N(%.3g)", init->b);
        else if (init->kind == ET_INIT_UNIFORM)
            put("U(%.3g,%.3g)", init->a, init->b);
        else
            put("%.3g", init->a);
        if (init->zeros)
            put(" z%lld", (long long)init->zeros);
        put("; ");
    }
    et_leaves_release(&l);
}

/* Lists the operations of MODEL on two images or texts of FACTS in training, those in
 * ONLY or all; BEGINS: what its parameters begin as. */
static void
list(const char *model, const struct et_model_facts *facts, const char *const *set,
     const char *only, bool begins)
{
    const struct et_model_class *type = et_model_class_find(model);
    const int64_t images[] = {2, facts->channels, facts->height, facts->width},
                  texts[] = {2, facts->seq_len}, numbers[] = {2};
    struct et_model *m;
    struct et_tensor *x, *rng;
    struct eti_outline outline;
    void *options;
    must(et_options_new(cx, &type->info, set, &options));
    must(et_model_new(cx, type, options, facts, &m));
    must(eti_model_outline(cx, m, dev, &outline)); /* binds parameters of zeros */
    if (facts->seq_len)
        must(et_tensor_new(cx, dev, ET_I32, 2, texts, ET_ROW_MAJOR, NULL, &x));
    else
        must(et_tensor_new(cx, dev, ET_F32, 4, images, ET_CHANNELS_LAST, NULL, &x));
    must(et_tensor_new(cx, dev, ET_I64, 1, numbers, ET_ROW_MAJOR, NULL, &rng));
    struct et_forward f = {.training = true, .rng = rng};
    must(et_graph_new(cx, dev, &f.g));
    (void)et_model_forward(m, &f, x);
    must(et_graph_status(f.g));
    used = 0;
    for (int i = 0; i < f.g->n_nodes; i++)
        if (is_listed(f.g->node[i]->op->name, only))
            put_node(f.g->node[i]);
    if (begins)
        put_beginnings(m);
    et_graph_free(&f.g);
    eti_outline_release(&outline);
    et_tensor_free(&x);
    et_tensor_free(&rng);
    et_model_free(&m);
    et_options_free(&type->info, &options);
}

static const struct {
    const char *model, *set[17];
    struct et_model_facts facts;
    const char *want, *only, *begins;
} rows[] = {
    {"unet",
     {"width", "3", "depth", "2", NULL},
     {.channels = 2, .height = 8, .width = 12, .num_classes = 5},
     "conv2d 3x8x12 s1x1 p1x1 k3; batch_norm 3x8x12; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; relu 3x8x12; "
     "conv2d 3x8x12 s1x1 p1x1 k3; batch_norm 3x8x12; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; relu 3x8x12; "
     "max_pool2d 3x4x6 k2 s2 p0; conv2d 6x4x6 s1x1 p1x1 k3; "
     "batch_norm 6x4x6; mul_scalar; mul_scalar; add; mul_scalar; "
     "mul_scalar; add; relu 6x4x6; conv2d 6x4x6 s1x1 p1x1 k3; "
     "batch_norm 6x4x6; mul_scalar; mul_scalar; add; mul_scalar; "
     "mul_scalar; add; relu 6x4x6; max_pool2d 6x2x3 k2 s2 p0; "
     "conv2d 12x2x3 s1x1 p1x1 k3; batch_norm 12x2x3; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; relu 12x2x3; "
     "conv2d 12x2x3 s1x1 p1x1 k3; batch_norm 12x2x3; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; relu 12x2x3; "
     "conv2d_grad_input 6x4x6 s2x2 p0x0 k2; concat 12x4x6; "
     "conv2d 6x4x6 s1x1 p1x1 k3; batch_norm 6x4x6; mul_scalar; mul_scalar; "
     "add; mul_scalar; mul_scalar; add; relu 6x4x6; "
     "conv2d 6x4x6 s1x1 p1x1 k3; batch_norm 6x4x6; mul_scalar; mul_scalar; "
     "add; mul_scalar; mul_scalar; add; relu 6x4x6; "
     "conv2d_grad_input 3x8x12 s2x2 p0x0 k2; concat 6x8x12; "
     "conv2d 3x8x12 s1x1 p1x1 k3; batch_norm 3x8x12; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; relu 3x8x12; "
     "conv2d 3x8x12 s1x1 p1x1 k3; batch_norm 3x8x12; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; relu 3x8x12; "
     "conv2d 5x8x12 s1x1 p0x0 k1; ",
     NULL,
     NULL},
    {"resnet9",
     {NULL},
     {.channels = 3, .height = 32, .width = 48, .num_classes = 7},
     "conv2d 64x32x48 s1x1 p1x1 k3; batch_norm 64x32x48; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; relu 64x32x48; "
     "conv2d 128x32x48 s1x1 p1x1 k3; batch_norm 128x32x48; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; relu 128x32x48; "
     "max_pool2d 128x16x24 k2 s2 p0; conv2d 128x16x24 s1x1 p1x1 k3; "
     "batch_norm 128x16x24; mul_scalar; mul_scalar; add; mul_scalar; "
     "mul_scalar; add; relu 128x16x24; conv2d 128x16x24 s1x1 p1x1 k3; "
     "batch_norm 128x16x24; mul_scalar; mul_scalar; add; mul_scalar; "
     "mul_scalar; add; add 128x16x24; relu 128x16x24; "
     "conv2d 256x16x24 s1x1 p1x1 k3; batch_norm 256x16x24; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; relu 256x16x24; "
     "max_pool2d 256x8x12 k2 s2 p0; conv2d 256x8x12 s1x1 p1x1 k3; "
     "batch_norm 256x8x12; mul_scalar; mul_scalar; add; mul_scalar; "
     "mul_scalar; add; relu 256x8x12; max_pool2d 256x4x6 k2 s2 p0; "
     "conv2d 256x4x6 s1x1 p1x1 k3; batch_norm 256x4x6; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; relu 256x4x6; "
     "conv2d 256x4x6 s1x1 p1x1 k3; batch_norm 256x4x6; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; add 256x4x6; "
     "relu 256x4x6; adaptive_avg_pool2d 256x1x1; matmul 7; ",
     NULL,
     NULL},
    {"resnet8",
     {NULL},
     {.channels = 3, .height = 16, .width = 24, .num_classes = 7},
     "conv2d 16x16x24 s1x1 p1x1 k3; batch_norm 16x16x24; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; relu 16x16x24; "
     "conv2d 16x16x24 s1x1 p1x1 k3; batch_norm 16x16x24; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; relu 16x16x24; "
     "conv2d 16x16x24 s1x1 p1x1 k3; batch_norm 16x16x24; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; add 16x16x24; "
     "relu 16x16x24; conv2d 32x8x12 s2x2 p1x1 k3; batch_norm 32x8x12; "
     "mul_scalar; mul_scalar; add; mul_scalar; mul_scalar; add; "
     "relu 32x8x12; conv2d 32x8x12 s1x1 p1x1 k3; batch_norm 32x8x12; "
     "mul_scalar; mul_scalar; add; mul_scalar; mul_scalar; add; "
     "conv2d 32x8x12 s2x2 p0x0 k1; batch_norm 32x8x12; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; add 32x8x12; "
     "relu 32x8x12; conv2d 64x4x6 s2x2 p1x1 k3; batch_norm 64x4x6; "
     "mul_scalar; mul_scalar; add; mul_scalar; mul_scalar; add; "
     "relu 64x4x6; conv2d 64x4x6 s1x1 p1x1 k3; batch_norm 64x4x6; "
     "mul_scalar; mul_scalar; add; mul_scalar; mul_scalar; add; "
     "conv2d 64x4x6 s2x2 p0x0 k1; batch_norm 64x4x6; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; add 64x4x6; "
     "relu 64x4x6; adaptive_avg_pool2d 64x1x1; matmul 7; ",
     NULL,
     NULL},
    {"lenet",
     {NULL},
     {.channels = 1, .height = 28, .width = 28, .num_classes = 7},
     "conv2d 6x28x28 s1x1 p2x2 k5; relu 6x28x28; "
     "max_pool2d 6x14x14 k2 s2 p0; conv2d 16x10x10 s1x1 p0x0 k5; "
     "relu 16x10x10; max_pool2d 16x5x5 k2 s2 p0; copy 16x5x5; matmul 120; "
     "relu 120; matmul 84; relu 84; matmul 7; ",
     NULL,
     NULL},
    {"mnist_classifier",
     {NULL},
     {.channels = 1, .height = 28, .width = 28, .num_classes = 7},
     "conv2d 16x26x26 s1x1 p0x0 k3; relu 16x26x26; "
     "conv2d 32x24x24 s1x1 p0x0 k3; batch_norm 32x24x24; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; relu 32x24x24; "
     "adaptive_avg_pool2d 32x4x4; copy 32x4x4; matmul 32; relu 32; "
     "matmul 7; ",
     NULL,
     NULL},
    {"mlp",
     {"hidden", "5", "layers", "3", NULL},
     {.channels = 2, .height = 3, .width = 4, .num_classes = 7},
     "copy 2x3x4; matmul 5; relu 5; matmul 5; relu 5; matmul 5; relu 5; "
     "matmul 7; ",
     NULL,
     NULL},
    {"gpt2",
     {"n_layers", "1", "d_model", "8", "n_heads", "2", "max_seq_len", "6", "dropout",
      "0.25", "attention_dropout", "0.125", NULL},
     {.vocab_size = 11, .seq_len = 6},
     "take 6x8; add 6x8; dropout 6x8 0.25 #0; layer_norm 6x8 1e-05; "
     "matmul 6x24; mul_scalar 2x6x4; matmul 2x6x6; iota; iota; fill; "
     "less_equal 6; where 2x6x6; softmax 2x6x6; dropout 2x6x6 0.125 #1; "
     "matmul 2x6x4; copy 6x2x4; matmul 6x8; dropout 6x8 0.25 #2; "
     "add 6x8; layer_norm 6x8 1e-05; matmul 6x32; gelu_tanh 6x32; "
     "matmul 6x8; dropout 6x8 0.25 #3; add 6x8; layer_norm 6x8 1e-05; "
     "matmul 6x11; ",
     NULL,
     "transformer.wte.weight N(0.02); transformer.wpe.weight N(0.02); "
     "transformer.h.0.ln_1.weight 1; transformer.h.0.ln_1.bias 0; "
     "transformer.h.0.attn.c_attn.weight N(0.02); "
     "transformer.h.0.attn.c_attn.bias 0; "
     "transformer.h.0.attn.c_proj.weight N(0.0141); "
     "transformer.h.0.attn.c_proj.bias 0; "
     "transformer.h.0.ln_2.weight 1; transformer.h.0.ln_2.bias 0; "
     "transformer.h.0.mlp.c_fc.weight N(0.02); "
     "transformer.h.0.mlp.c_fc.bias 0; "
     "transformer.h.0.mlp.c_proj.weight N(0.0141); "
     "transformer.h.0.mlp.c_proj.bias 0; transformer.ln_f.weight 1; "
     "transformer.ln_f.bias 0; "},
    {"gpt2",
     {"n_layers", "2", "d_model", "8", "n_heads", "2", "max_seq_len", "6", "position",
      "alibi", "dropout", "0", "attention_dropout", "0", NULL},
     {.vocab_size = 11, .seq_len = 6},
     "take 6x8; layer_norm 6x8 1e-05; matmul 6x24; sdpa 2x6x4 causal; "
     "matmul 6x8; add 6x8; layer_norm 6x8 1e-05; matmul 6x32; "
     "gelu_tanh 6x32; matmul 6x8; add 6x8; layer_norm 6x8 1e-05; "
     "matmul 6x24; sdpa 2x6x4 causal; matmul 6x8; add 6x8; "
     "layer_norm 6x8 1e-05; matmul 6x32; gelu_tanh 6x32; matmul 6x8; "
     "add 6x8; layer_norm 6x8 1e-05; matmul 6x11; ",
     NULL,
     "transformer.wte.weight N(0.02); transformer.h.0.ln_1.weight 1; "
     "transformer.h.0.ln_1.bias 0; "
     "transformer.h.0.attn.c_attn.weight N(0.02); "
     "transformer.h.0.attn.c_attn.bias 0; "
     "transformer.h.0.attn.c_proj.weight N(0.01); "
     "transformer.h.0.attn.c_proj.bias 0; "
     "transformer.h.0.ln_2.weight 1; transformer.h.0.ln_2.bias 0; "
     "transformer.h.0.mlp.c_fc.weight N(0.02); "
     "transformer.h.0.mlp.c_fc.bias 0; "
     "transformer.h.0.mlp.c_proj.weight N(0.01); "
     "transformer.h.0.mlp.c_proj.bias 0; transformer.h.1.ln_1.weight 1; "
     "transformer.h.1.ln_1.bias 0; "
     "transformer.h.1.attn.c_attn.weight N(0.02); "
     "transformer.h.1.attn.c_attn.bias 0; "
     "transformer.h.1.attn.c_proj.weight N(0.01); "
     "transformer.h.1.attn.c_proj.bias 0; "
     "transformer.h.1.ln_2.weight 1; transformer.h.1.ln_2.bias 0; "
     "transformer.h.1.mlp.c_fc.weight N(0.02); "
     "transformer.h.1.mlp.c_fc.bias 0; "
     "transformer.h.1.mlp.c_proj.weight N(0.01); "
     "transformer.h.1.mlp.c_proj.bias 0; transformer.ln_f.weight 1; "
     "transformer.ln_f.bias 0; "},
    {"bert",
     {"n_layers", "1", "d_model", "8", "n_heads", "2", "max_seq_len", "6", "dropout",
      "0.25", "attention_dropout", "0.125", NULL},
     {.vocab_size = 11, .seq_len = 6},
     "take 6x8; fill; equal 6; where 6x8; add 6x8; add 6x8; "
     "layer_norm 6x8 1e-12; dropout 6x8 0.25 #0; matmul 6x8; "
     "matmul 6x8; matmul 6x8; mul_scalar 2x6x4; matmul 2x6x6; "
     "softmax 2x6x6; dropout 2x6x6 0.125 #1; matmul 2x6x4; copy 6x2x4; "
     "matmul 6x8; dropout 6x8 0.25 #2; add 6x8; layer_norm 6x8 1e-12; "
     "matmul 6x32; gelu 6x32; matmul 6x8; dropout 6x8 0.25 #3; add 6x8; "
     "layer_norm 6x8 1e-12; matmul 6x8; gelu 6x8; layer_norm 6x8 1e-12; "
     "matmul 6x11; ",
     NULL,
     "bert.embeddings.word_embeddings.weight N(0.02) z8; "
     "bert.embeddings.position_embeddings.weight N(0.02); "
     "bert.embeddings.token_type_embeddings.weight N(0.02); "
     "bert.embeddings.LayerNorm.weight 1; "
     "bert.embeddings.LayerNorm.bias 0; "
     "bert.encoder.layer.0.attention.self.query.weight N(0.02); "
     "bert.encoder.layer.0.attention.self.query.bias 0; "
     "bert.encoder.layer.0.attention.self.key.weight N(0.02); "
     "bert.encoder.layer.0.attention.self.key.bias 0; "
     "bert.encoder.layer.0.attention.self.value.weight N(0.02); "
     "bert.encoder.layer.0.attention.self.value.bias 0; "
     "bert.encoder.layer.0.attention.output.dense.weight N(0.02); "
     "bert.encoder.layer.0.attention.output.dense.bias 0; "
     "bert.encoder.layer.0.attention.output.LayerNorm.weight 1; "
     "bert.encoder.layer.0.attention.output.LayerNorm.bias 0; "
     "bert.encoder.layer.0.intermediate.dense.weight N(0.02); "
     "bert.encoder.layer.0.intermediate.dense.bias 0; "
     "bert.encoder.layer.0.output.dense.weight N(0.02); "
     "bert.encoder.layer.0.output.dense.bias 0; "
     "bert.encoder.layer.0.output.LayerNorm.weight 1; "
     "bert.encoder.layer.0.output.LayerNorm.bias 0; "
     "cls.predictions.bias 0; "
     "cls.predictions.transform.dense.weight N(0.02); "
     "cls.predictions.transform.dense.bias 0; "
     "cls.predictions.transform.LayerNorm.weight 1; "
     "cls.predictions.transform.LayerNorm.bias 0; "},
    {"bert_classifier",
     {"n_layers", "1", "d_model", "8", "n_heads", "2", "max_seq_len", "6", "dropout",
      "0.25", "attention_dropout", "0.125", "token_types", "3", NULL},
     {.vocab_size = 11, .seq_len = 6, .num_classes = 3},
     "layer_norm 6x8 1e-12; dropout 6x8 0.25 #0; matmul 6x8; "
     "matmul 6x8; matmul 6x8; matmul 2x6x6; dropout 2x6x6 0.125 #1; "
     "matmul 2x6x4; matmul 6x8; dropout 6x8 0.25 #2; "
     "layer_norm 6x8 1e-12; matmul 6x32; matmul 6x8; "
     "dropout 6x8 0.25 #3; layer_norm 6x8 1e-12; matmul 8; tanh 8; "
     "dropout 8 0.25 #4; matmul 3; ",
     "dropout layer_norm matmul tanh",
     "bert.embeddings.word_embeddings.weight N(0.02) z8; "
     "bert.embeddings.position_embeddings.weight N(0.02); "
     "bert.embeddings.token_type_embeddings.weight N(0.02); "
     "bert.embeddings.LayerNorm.weight 1; "
     "bert.embeddings.LayerNorm.bias 0; "
     "bert.encoder.layer.0.attention.self.query.weight N(0.02); "
     "bert.encoder.layer.0.attention.self.query.bias 0; "
     "bert.encoder.layer.0.attention.self.key.weight N(0.02); "
     "bert.encoder.layer.0.attention.self.key.bias 0; "
     "bert.encoder.layer.0.attention.self.value.weight N(0.02); "
     "bert.encoder.layer.0.attention.self.value.bias 0; "
     "bert.encoder.layer.0.attention.output.dense.weight N(0.02); "
     "bert.encoder.layer.0.attention.output.dense.bias 0; "
     "bert.encoder.layer.0.attention.output.LayerNorm.weight 1; "
     "bert.encoder.layer.0.attention.output.LayerNorm.bias 0; "
     "bert.encoder.layer.0.intermediate.dense.weight N(0.02); "
     "bert.encoder.layer.0.intermediate.dense.bias 0; "
     "bert.encoder.layer.0.output.dense.weight N(0.02); "
     "bert.encoder.layer.0.output.dense.bias 0; "
     "bert.encoder.layer.0.output.LayerNorm.weight 1; "
     "bert.encoder.layer.0.output.LayerNorm.bias 0; "
     "bert.pooler.dense.weight N(0.02); bert.pooler.dense.bias 0; "
     "classifier.weight N(0.02); classifier.bias 0; "},
    {"vit_ti16",
     {"n_layers", "1", "d_model", "8", "n_heads", "2", "dropout", "0.25",
      "attention_dropout", "0.125", NULL},
     {.channels = 3, .height = 32, .width = 48, .num_classes = 5},
     "conv2d 8x2x3 s16x16 p0x0 k16; concat 7x8 1+6; add 7x8; "
     "dropout 7x8 0.25 #0; layer_norm 7x8 1e-06; matmul 7x24; "
     "mul_scalar 2x7x4; matmul 2x7x7; softmax 2x7x7; "
     "dropout 2x7x7 0.125 #1; matmul 2x7x4; copy 7x2x4; matmul 7x8; "
     "dropout 7x8 0.25 #2; add 7x8; layer_norm 7x8 1e-06; matmul 7x32; "
     "gelu 7x32; dropout 7x32 0.25 #3; matmul 7x8; dropout 7x8 0.25 #4; "
     "add 7x8; layer_norm 7x8 1e-06; matmul 5; ",
     NULL,
     "cls_token N(1e-06); pos_embed N(0.02); "
     "patch_embed.proj.weight U(-0.0361,0.0361); "
     "patch_embed.proj.bias U(-0.0361,0.0361); blocks.0.norm1.weight 1; "
     "blocks.0.norm1.bias 0; blocks.0.attn.qkv.weight N(0.02); "
     "blocks.0.attn.qkv.bias 0; blocks.0.attn.proj.weight N(0.02); "
     "blocks.0.attn.proj.bias 0; blocks.0.norm2.weight 1; "
     "blocks.0.norm2.bias 0; blocks.0.mlp.fc1.weight N(0.02); "
     "blocks.0.mlp.fc1.bias 0; blocks.0.mlp.fc2.weight N(0.02); "
     "blocks.0.mlp.fc2.bias 0; norm.weight 1; norm.bias 0; "
     "head.weight N(0.02); head.bias 0; "},
    {"efficientnet_b1",
     {NULL},
     {.channels = 3, .height = 64, .width = 96, .num_classes = 5},
     "conv2d 32x32x48 s2x2 p1x1 k3; conv2d 32x32x48 s1x1 p1x1 k3 g32; "
     "conv2d 8x1x1 s1x1 p0x0 k1; conv2d 32x1x1 s1x1 p0x0 k1; "
     "conv2d 16x32x48 s1x1 p0x0 k1; conv2d 16x32x48 s1x1 p1x1 k3 g16; "
     "conv2d 4x1x1 s1x1 p0x0 k1; conv2d 16x1x1 s1x1 p0x0 k1; "
     "conv2d 16x32x48 s1x1 p0x0 k1; dropout 1x1x1 0.00869565 #1; "
     "conv2d 96x32x48 s1x1 p0x0 k1; conv2d 96x16x24 s2x2 p1x1 k3 g96; "
     "conv2d 4x1x1 s1x1 p0x0 k1; conv2d 96x1x1 s1x1 p0x0 k1; "
     "conv2d 24x16x24 s1x1 p0x0 k1; conv2d 144x16x24 s1x1 p0x0 k1; "
     "conv2d 144x16x24 s1x1 p1x1 k3 g144; conv2d 6x1x1 s1x1 p0x0 k1; "
     "conv2d 144x1x1 s1x1 p0x0 k1; conv2d 24x16x24 s1x1 p0x0 k1; "
     "dropout 1x1x1 0.026087 #3; conv2d 144x16x24 s1x1 p0x0 k1; "
     "conv2d 144x16x24 s1x1 p1x1 k3 g144; conv2d 6x1x1 s1x1 p0x0 k1; "
     "conv2d 144x1x1 s1x1 p0x0 k1; conv2d 24x16x24 s1x1 p0x0 k1; "
     "dropout 1x1x1 0.0347826 #4; conv2d 144x16x24 s1x1 p0x0 k1; "
     "conv2d 144x8x12 s2x2 p2x2 k5 g144; conv2d 6x1x1 s1x1 p0x0 k1; "
     "conv2d 144x1x1 s1x1 p0x0 k1; conv2d 40x8x12 s1x1 p0x0 k1; "
     "conv2d 240x8x12 s1x1 p0x0 k1; conv2d 240x8x12 s1x1 p2x2 k5 g240; "
     "conv2d 10x1x1 s1x1 p0x0 k1; conv2d 240x1x1 s1x1 p0x0 k1; "
     "conv2d 40x8x12 s1x1 p0x0 k1; dropout 1x1x1 0.0521739 #6; "
     "conv2d 240x8x12 s1x1 p0x0 k1; conv2d 240x8x12 s1x1 p2x2 k5 g240; "
     "conv2d 10x1x1 s1x1 p0x0 k1; conv2d 240x1x1 s1x1 p0x0 k1; "
     "conv2d 40x8x12 s1x1 p0x0 k1; dropout 1x1x1 0.0608696 #7; "
     "conv2d 240x8x12 s1x1 p0x0 k1; conv2d 240x4x6 s2x2 p1x1 k3 g240; "
     "conv2d 10x1x1 s1x1 p0x0 k1; conv2d 240x1x1 s1x1 p0x0 k1; "
     "conv2d 80x4x6 s1x1 p0x0 k1; conv2d 480x4x6 s1x1 p0x0 k1; "
     "conv2d 480x4x6 s1x1 p1x1 k3 g480; conv2d 20x1x1 s1x1 p0x0 k1; "
     "conv2d 480x1x1 s1x1 p0x0 k1; conv2d 80x4x6 s1x1 p0x0 k1; "
     "dropout 1x1x1 0.0782609 #9; conv2d 480x4x6 s1x1 p0x0 k1; "
     "conv2d 480x4x6 s1x1 p1x1 k3 g480; conv2d 20x1x1 s1x1 p0x0 k1; "
     "conv2d 480x1x1 s1x1 p0x0 k1; conv2d 80x4x6 s1x1 p0x0 k1; "
     "dropout 1x1x1 0.0869565 #10; conv2d 480x4x6 s1x1 p0x0 k1; "
     "conv2d 480x4x6 s1x1 p1x1 k3 g480; conv2d 20x1x1 s1x1 p0x0 k1; "
     "conv2d 480x1x1 s1x1 p0x0 k1; conv2d 80x4x6 s1x1 p0x0 k1; "
     "dropout 1x1x1 0.0956522 #11; conv2d 480x4x6 s1x1 p0x0 k1; "
     "conv2d 480x4x6 s1x1 p2x2 k5 g480; conv2d 20x1x1 s1x1 p0x0 k1; "
     "conv2d 480x1x1 s1x1 p0x0 k1; conv2d 112x4x6 s1x1 p0x0 k1; "
     "conv2d 672x4x6 s1x1 p0x0 k1; conv2d 672x4x6 s1x1 p2x2 k5 g672; "
     "conv2d 28x1x1 s1x1 p0x0 k1; conv2d 672x1x1 s1x1 p0x0 k1; "
     "conv2d 112x4x6 s1x1 p0x0 k1; dropout 1x1x1 0.113043 #13; "
     "conv2d 672x4x6 s1x1 p0x0 k1; conv2d 672x4x6 s1x1 p2x2 k5 g672; "
     "conv2d 28x1x1 s1x1 p0x0 k1; conv2d 672x1x1 s1x1 p0x0 k1; "
     "conv2d 112x4x6 s1x1 p0x0 k1; dropout 1x1x1 0.121739 #14; "
     "conv2d 672x4x6 s1x1 p0x0 k1; conv2d 672x4x6 s1x1 p2x2 k5 g672; "
     "conv2d 28x1x1 s1x1 p0x0 k1; conv2d 672x1x1 s1x1 p0x0 k1; "
     "conv2d 112x4x6 s1x1 p0x0 k1; dropout 1x1x1 0.130435 #15; "
     "conv2d 672x4x6 s1x1 p0x0 k1; conv2d 672x2x3 s2x2 p2x2 k5 g672; "
     "conv2d 28x1x1 s1x1 p0x0 k1; conv2d 672x1x1 s1x1 p0x0 k1; "
     "conv2d 192x2x3 s1x1 p0x0 k1; conv2d 1152x2x3 s1x1 p0x0 k1; "
     "conv2d 1152x2x3 s1x1 p2x2 k5 g1152; conv2d 48x1x1 s1x1 p0x0 k1; "
     "conv2d 1152x1x1 s1x1 p0x0 k1; conv2d 192x2x3 s1x1 p0x0 k1; "
     "dropout 1x1x1 0.147826 #17; conv2d 1152x2x3 s1x1 p0x0 k1; "
     "conv2d 1152x2x3 s1x1 p2x2 k5 g1152; conv2d 48x1x1 s1x1 p0x0 k1; "
     "conv2d 1152x1x1 s1x1 p0x0 k1; conv2d 192x2x3 s1x1 p0x0 k1; "
     "dropout 1x1x1 0.156522 #18; conv2d 1152x2x3 s1x1 p0x0 k1; "
     "conv2d 1152x2x3 s1x1 p2x2 k5 g1152; conv2d 48x1x1 s1x1 p0x0 k1; "
     "conv2d 1152x1x1 s1x1 p0x0 k1; conv2d 192x2x3 s1x1 p0x0 k1; "
     "dropout 1x1x1 0.165217 #19; conv2d 1152x2x3 s1x1 p0x0 k1; "
     "conv2d 1152x2x3 s1x1 p2x2 k5 g1152; conv2d 48x1x1 s1x1 p0x0 k1; "
     "conv2d 1152x1x1 s1x1 p0x0 k1; conv2d 192x2x3 s1x1 p0x0 k1; "
     "dropout 1x1x1 0.173913 #20; conv2d 1152x2x3 s1x1 p0x0 k1; "
     "conv2d 1152x2x3 s1x1 p1x1 k3 g1152; conv2d 48x1x1 s1x1 p0x0 k1; "
     "conv2d 1152x1x1 s1x1 p0x0 k1; conv2d 320x2x3 s1x1 p0x0 k1; "
     "conv2d 1920x2x3 s1x1 p0x0 k1; conv2d 1920x2x3 s1x1 p1x1 k3 g1920; "
     "conv2d 80x1x1 s1x1 p0x0 k1; conv2d 1920x1x1 s1x1 p0x0 k1; "
     "conv2d 320x2x3 s1x1 p0x0 k1; dropout 1x1x1 0.191304 #22; "
     "conv2d 1280x2x3 s1x1 p0x0 k1; dropout 1280 0.2 #23; ",
     "conv2d dropout",
     NULL},
    {"deeplabv3plus_resnet50",
     {"dropout", "0.25", NULL},
     {.channels = 3, .height = 64, .width = 96, .num_classes = 5},
     "conv2d 64x32x48 s2x2 p3x3 k7; conv2d 64x16x24 s1x1 p0x0 k1; "
     "conv2d 64x16x24 s1x1 p1x1 k3; conv2d 256x16x24 s1x1 p0x0 k1; "
     "conv2d 256x16x24 s1x1 p0x0 k1; conv2d 64x16x24 s1x1 p0x0 k1; "
     "conv2d 64x16x24 s1x1 p1x1 k3; conv2d 256x16x24 s1x1 p0x0 k1; "
     "conv2d 64x16x24 s1x1 p0x0 k1; conv2d 64x16x24 s1x1 p1x1 k3; "
     "conv2d 256x16x24 s1x1 p0x0 k1; conv2d 128x16x24 s1x1 p0x0 k1; "
     "conv2d 128x8x12 s2x2 p1x1 k3; conv2d 512x8x12 s1x1 p0x0 k1; "
     "conv2d 512x8x12 s2x2 p0x0 k1; conv2d 128x8x12 s1x1 p0x0 k1; "
     "conv2d 128x8x12 s1x1 p1x1 k3; conv2d 512x8x12 s1x1 p0x0 k1; "
     "conv2d 128x8x12 s1x1 p0x0 k1; conv2d 128x8x12 s1x1 p1x1 k3; "
     "conv2d 512x8x12 s1x1 p0x0 k1; conv2d 128x8x12 s1x1 p0x0 k1; "
     "conv2d 128x8x12 s1x1 p1x1 k3; conv2d 512x8x12 s1x1 p0x0 k1; "
     "conv2d 256x8x12 s1x1 p0x0 k1; conv2d 256x4x6 s2x2 p1x1 k3; "
     "conv2d 1024x4x6 s1x1 p0x0 k1; conv2d 1024x4x6 s2x2 p0x0 k1; "
     "conv2d 256x4x6 s1x1 p0x0 k1; conv2d 256x4x6 s1x1 p1x1 k3; "
     "conv2d 1024x4x6 s1x1 p0x0 k1; conv2d 256x4x6 s1x1 p0x0 k1; "
     "conv2d 256x4x6 s1x1 p1x1 k3; conv2d 1024x4x6 s1x1 p0x0 k1; "
     "conv2d 256x4x6 s1x1 p0x0 k1; conv2d 256x4x6 s1x1 p1x1 k3; "
     "conv2d 1024x4x6 s1x1 p0x0 k1; conv2d 256x4x6 s1x1 p0x0 k1; "
     "conv2d 256x4x6 s1x1 p1x1 k3; conv2d 1024x4x6 s1x1 p0x0 k1; "
     "conv2d 256x4x6 s1x1 p0x0 k1; conv2d 256x4x6 s1x1 p1x1 k3; "
     "conv2d 1024x4x6 s1x1 p0x0 k1; conv2d 512x4x6 s1x1 p0x0 k1; "
     "conv2d 512x4x6 s1x1 p1x1 k3; conv2d 2048x4x6 s1x1 p0x0 k1; "
     "conv2d 2048x4x6 s1x1 p0x0 k1; conv2d 512x4x6 s1x1 p0x0 k1; "
     "conv2d 512x4x6 s1x1 p2x2 k3 d2x2; conv2d 2048x4x6 s1x1 p0x0 k1; "
     "conv2d 512x4x6 s1x1 p0x0 k1; conv2d 512x4x6 s1x1 p2x2 k3 d2x2; "
     "conv2d 2048x4x6 s1x1 p0x0 k1; conv2d 256x4x6 s1x1 p0x0 k1; "
     "conv2d 256x4x6 s1x1 p6x6 k3 d6x6; "
     "conv2d 256x4x6 s1x1 p12x12 k3 d12x12; "
     "conv2d 256x4x6 s1x1 p18x18 k3 d18x18; "
     "conv2d 256x1x1 s1x1 p0x0 k1; resize2d 256x4x6 mode 1; "
     "concat 1280x4x6; conv2d 256x4x6 s1x1 p0x0 k1; "
     "dropout 256x4x6 0.25 #0; resize2d 256x16x24 mode 1; "
     "conv2d 48x16x24 s1x1 p0x0 k1; concat 304x16x24 256+48; "
     "conv2d 256x16x24 s1x1 p1x1 k3; conv2d 256x16x24 s1x1 p1x1 k3; "
     "conv2d 5x16x24 s1x1 p0x0 k1; resize2d 5x64x96 mode 1; ",
     "conv2d dropout resize2d concat",
     NULL},
};

int
main(void)
{
    must(et_ctx_new(&cx));
    must(et_device_open(cx, "ref", 0, 1, &dev));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        list(rows[i].model, &rows[i].facts, rows[i].set, rows[i].only, false);
        is_str(listed, rows[i].want, "%s computes the operations of its definition",
               rows[i].model);
        if (!rows[i].begins)
            continue;
        list(rows[i].model, &rows[i].facts, rows[i].set, rows[i].only, true);
        is_str(listed, rows[i].begins, "%s begins as its definition says",
               rows[i].model);
    }
    et_device_close(&dev);
    et_ctx_free(&cx);
    return done();
}
