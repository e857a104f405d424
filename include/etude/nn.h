/* SPDX-License-Identifier: Apache-2.0 */
/* nn.h: the layers models are built from. Instances are open, because surgery reads and
 * rebuilds them; make them with ET_NEW and change them through surgery only.
 *
 * In options a 0 means the default named here; counts and sizes are in elements.
 * Letters as in op.h. Every layer that takes [N,C,H,W] keeps it in channels-last
 * memory. */
#ifndef ETUDE_NN_H
#define ETUDE_NN_H

#include "etude/module.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One row per class: ET_MODULE(conv2d) gives et_conv2d_class. */
#define ET_MODULE(name) extern const struct et_module_class et_##name##_class;
#include "etude/modules.def"
#undef ET_MODULE

/* ---- convolution and linear ---- */

struct et_conv2d_options {
    int64_t in_channels, out_channels, kernel; /* required */
    int64_t stride, padding, dilation, groups; /* 1, 0, 1, 1; in both directions */
    bool no_bias;
};

/* Zero padding is the only padding. */
struct et_conv2d_module {
    struct et_module base;
    struct et_conv2d_options o; /* defaults filled in */
    struct et_conv2d_attr attr;
    struct et_param weight; /* [K, C/groups, R, S] */
    struct et_param bias;   /* [K] */
};

struct et_conv_transpose2d_options {
    int64_t in_channels, out_channels, kernel;       /* required */
    int64_t stride, padding, output_padding, groups; /* 1, 0, 0, 1 */
    bool no_bias;
};

struct et_conv_transpose2d_module {
    struct et_module base;
    struct et_conv_transpose2d_options o;
    struct et_conv2d_attr attr;
    struct et_param weight; /* [in, out/groups, R, S] */
    struct et_param bias;   /* [out] */
};

struct et_linear_options {
    int64_t in_features, out_features; /* required */
    bool no_bias;
};

struct et_linear_module {
    struct et_module base;
    struct et_linear_options o;
    struct et_param weight; /* [out, in] */
    struct et_param bias;   /* [out] */
};

/* Linear with the weight stored [in, out], as GPT-2's weight files have it. */
struct et_conv1d_options {
    int64_t in_features, out_features;
    double std; /* of the initial weights, 0.02; bias 0 */
};

struct et_conv1d_module {
    struct et_module base;
    struct et_conv1d_options o;
    struct et_param weight; /* [in, out] */
    struct et_param bias;   /* [out] */
};

/* ---- normalisation ---- */

/* Also for [N,C] and [N,C,L]. Running statistics follow a step in its commit:
 * r <- (1 - momentum) r + momentum s, the variance unbiased. */
struct et_batch_norm_options {
    int64_t num_features;
    double eps, momentum; /* 1e-5, 0.1 */
    bool no_affine;
};

struct et_batch_norm_module {
    struct et_module base;
    struct et_batch_norm_options o;
    struct et_param weight, bias;              /* [C] */
    struct et_param running_mean, running_var; /* [C] buffers */
};

/* What a step's batch says: queues r <- (1 - momentum) r + momentum s. MEAN and VAR
 * (biased) are [C]; COUNT elements went into each. Nothing when F keeps statistics. */
void et_batch_norm_update(struct et_batch_norm_module *m, struct et_forward *f,
                          struct et_tensor *mean, struct et_tensor *var, int64_t count,
                          double momentum);

/* Over the last axis. */
struct et_layer_norm_options {
    int64_t features;
    double eps; /* 1e-5 */
    bool no_affine, no_bias;
};

struct et_layer_norm_module {
    struct et_module base;
    struct et_layer_norm_options o;
    struct et_param weight, bias; /* [D] */
};

struct et_group_norm_options {
    int64_t num_groups, num_channels;
    double eps; /* 1e-5 */
    bool no_affine;
};

struct et_group_norm_module {
    struct et_module base;
    struct et_group_norm_options o;
    struct et_param weight, bias; /* [C] */
};

/* ---- element-wise, shape ---- */

/* relu, gelu (erf), gelu_tanh, silu, tanh, sigmoid, identity, flatten (to [N, rest])
 * and sequential (children added with ET_ADD, in order) take no options: such a one is
 * added by et_module_add(cx, root, NULL, &et_relu_class, NULL). */

struct et_dropout_options {
    double p; /* of zeroing; 0 = the identity */
};

struct et_dropout_module {
    struct et_module base;
    struct et_dropout_options o;
};

/* Dropout with masks of a fixed pool, made by et_apply_gyro_dropout (functional.h). X
 * is [N,F]. While no step has been begun it is the Dropout that it replaced. */
struct et_gyro_dropout;

struct et_gyro_dropout_options {
    double p;                      /* of the Dropout that it replaces */
    struct et_gyro_dropout *masks; /* borrowed; required */
    int layer;                     /* which of the layers of MASKS it is, from 0 */
};

struct et_gyro_dropout_module {
    struct et_module base;
    struct et_gyro_dropout_options o; /* masks NULL: they were freed */
};

struct et_embedding_options {
    int64_t num_embeddings, features;
    double std;   /* of the initial rows, 1 */
    bool padding; /* row 0 stands for no token: it begins as 0, and looking it up gives
                     it no gradient (torch's padding_idx 0); a tied head may still train
                     it */
};

struct et_embedding_module {
    struct et_module base;
    struct et_embedding_options o;
    struct et_param weight; /* [V, D] */
};

/* ---- pooling ---- */

struct et_pool2d_options {
    int64_t kernel, stride, padding, dilation; /* stride: the kernel's */
    bool ceil_mode;
};

/* max_pool2d, and avg_pool2d, which counts the zeros of the padding and has no
 * dilation. */
struct et_pool2d_module {
    struct et_module base;
    struct et_pool2d_options o;
    struct et_pool2d_attr attr;
};

struct et_adaptive_avg_pool2d_options {
    int64_t height, width; /* 1, 1 */
};

struct et_adaptive_avg_pool2d_module {
    struct et_module base;
    struct et_adaptive_avg_pool2d_options o;
};

/* ---- anti-aliasing: Zhang, "Making convolutional networks shift-invariant again",
 * 2019 (1904.11486) ---- */

/* Depthwise [1 2 1] x [1 2 1] / 16 with zero padding 1. */
struct et_blur_pool2d_options {
    int64_t stride; /* 1 */
};

struct et_blur_pool2d_module {
    struct et_module base;
    struct et_blur_pool2d_options o;
    struct et_param filt2d; /* [1,1,3,3] buffer */
};

/* A strided convolution with a blur: before it at stride 1, or behind it with the
 * stride moved into the blur. Takes over CONV's weights. */
struct et_blur_conv2d_options {
    struct et_module *conv; /* Conv2d to imitate; borrowed, its values are moved out */
    bool blur_last;         /* blur_first: false */
};

struct et_blur_conv2d_module {
    struct et_module base;
    struct et_module *conv;
    struct et_param blur_filter; /* [C,1,3,3] buffer: the blur of each channel */
    bool blur_last;
    int64_t stride; /* of the blur */
};

struct et_blur_max_pool2d_options {
    struct et_module *pool; /* MaxPool2d to imitate; borrowed */
};

struct et_blur_max_pool2d_module {
    struct et_module base;
    struct et_module *pool;
    struct et_param filt2d; /* [1,1,3,3] buffer */
    int64_t stride;         /* of the blur */
};

/* ---- residual blocks ---- */

/* y = relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x)) */
struct et_basic_block_options {
    int64_t in_channels, channels, stride;
    double momentum; /* of the norms, 0.1 */
};

struct et_basic_block_module {
    struct et_module base;
    struct et_module *conv1, *bn1, *relu, *conv2, *bn2, *downsample; /* or NULL */
};

/* y = relu(bn3(conv3(relu(bn2(conv2(relu(bn1(conv1(x)))))))) + shortcut(x)), 1x1, 3x3
 * with the stride, 1x1 to 4 CHANNELS. */
struct et_bottleneck_options {
    int64_t in_channels, channels, stride;
    int64_t dilation; /* of the 3x3 convolution, 1 */
};

/* With F what bn3 gives and S the shortcut's, StochasticDepth makes it, in training:
 * where the gate is closed relu(S), or x itself without a downsample; with
 * drops_samples relu(m F + S), m [N] 0 with the probability drop_rate, else 1. In
 * evaluation it is relu((1 - drop_rate) F + S). */
struct et_bottleneck_module {
    struct et_module base;
    struct et_module *conv1, *bn1, *conv2, *bn2, *conv3, *bn3, *relu, *downsample;
    const struct et_gate *gate; /* borrowed; NULL: the block is never left out */
    double drop_rate;           /* 0: as it is without all this */
    bool drops_samples;
};

/* ---- transformer ---- */

/* Multi-head causal attention on x [B,T,D]; projections c_attn [D, 3D] and c_proj [D,
 * D]. */
struct et_attention_options {
    int64_t d_model, n_heads;
    double dropout, out_std;  /* 0; std of c_proj's initial weights, 0.02 */
    double attention_dropout; /* of the probabilities, 0 */
};

struct et_attention_module {
    struct et_module base;
    struct et_attention_options o;
    struct et_module *c_attn, *c_proj, *resid_dropout;
    struct et_param alibi; /* [1,H,1,S] buffer added to the scores; absent unless set */
};

/* m_h for head h of N_HEADS, into SLOPES [N_HEADS]: Press et al., "Train short, test
 * long: attention with linear biases", 2022 (2108.12409), section 3. */
void et_alibi_slopes(int64_t n_heads, double *slopes);
/* Gives an attention for keys j < MAX_SEQ_LEN the ALiBi bias: a causal one m_h * j, one
 * of BERT -m_h |i - j|. */
ET_NODISCARD et_status et_attention_set_alibi(struct et_ctx *cx,
                                              struct et_module *attention,
                                              int64_t max_seq_len);

/* c_proj(gelu_tanh(c_fc(x))) */
struct et_gpt2_mlp_options {
    int64_t d_model, d_hidden; /* d_hidden: 4 d_model */
    double dropout, out_std;
};

struct et_gpt2_mlp_module {
    struct et_module base;
    struct et_module *c_fc, *act, *c_proj, *dropout;
};

/* h = x + attn(ln_1(x)); y = h + mlp(ln_2(h)) */
struct et_gpt2_block_options {
    int64_t d_model, n_heads;
    double dropout, out_std;
    double attention_dropout; /* 0 */
};

struct et_gpt2_block_module {
    struct et_module base;
    struct et_module *ln_1, *attn, *ln_2, *mlp;
};

/* Of the language model: both classes take them. */
struct et_gpt2_options {
    int64_t n_layers, d_model, n_heads, max_seq_len, vocab_size;
    double dropout;
    bool alibi;               /* a bias on the scores instead of the table wpe */
    double attention_dropout; /* of the attention's probabilities, 0 */
};

/* Tokens I32 [B,T] -> [B,T,D]. */
struct et_gpt2_transformer_module {
    struct et_module base;
    struct et_module *wte, *wpe, *drop, *h, *ln_f; /* wpe: or NULL. h: the blocks */
};

/* Tokens I32 [B,T] -> logits [B,T,V]; the head is wte's table. */
struct et_gpt2_module {
    struct et_module base;
    struct et_module *transformer;
};

/* ---- BERT: every class of it takes these ---- */

struct et_bert_options {
    int64_t n_layers, d_model, n_heads, max_seq_len, vocab_size;
    double dropout;
    double attention_dropout; /* of the attention's probabilities, 0 */
    int64_t token_types;      /* rows of their table, 2 */
};

/* Tokens I32 [B,T] -> [B,T,D]. */
struct et_bert_embeddings_module {
    struct et_module base;
    struct et_module *word_embeddings;
    struct et_module *position_embeddings; /* or NULL */
    struct et_module *token_type_embeddings, *LayerNorm, *dropout;
};

struct et_bert_self_attention_module {
    struct et_module base;
    int64_t n_heads;
    struct et_param alibi; /* [1,H,S,S] buffer added to the scores; absent unless set */
    struct et_module *query, *key, *value;
    double attention_dropout;
};

/* LN(dropout(dense(h)) + f->residual). Two classes: bert_self_output ends an attention
 * branch, bert_output a feed-forward one. */
struct et_bert_output_module {
    struct et_module base;
    struct et_module *dense, *LayerNorm, *dropout;
};

struct et_bert_attention_module {
    struct et_module base;
    struct et_module *self, *output;
};

struct et_bert_intermediate_module {
    struct et_module base;
    struct et_module *dense, *intermediate_act_fn;
};

struct et_bert_layer_module {
    struct et_module base;
    struct et_module *attention, *intermediate, *output;
};

struct et_bert_predictions_module {
    struct et_module base;
    struct et_param bias;        /* [V] */
    struct et_module *transform; /* dense, GELU, norm */
};

/* Tokens I32 [B,T] -> logits [B,T,V]; the head is the table of words. */
struct et_bert_module {
    struct et_module base;
    struct et_module *bert, *cls;
};

/* ---- what methods make of layers (functional.h) ---- */

/* y = a x per channel, a = sigmoid(W2 relu(W1 mean of each channel)): Hu et al.,
 * "Squeeze-and-excitation networks", 2018 (1709.01507). */
struct et_squeeze_excite2d_options {
    int64_t channels, latent_channels;
};

struct et_squeeze_excite2d_module {
    struct et_module base;
    struct et_module *pool_and_mlp;
};

struct et_squeeze_excite_conv2d_options {
    struct et_module *conv; /* Conv2d to put it behind; becomes a child */
    int64_t latent_channels;
};

struct et_squeeze_excite_conv2d_module {
    struct et_module base;
    struct et_module *conv, *se;
};

/* In training, batch norm of ghost_batch_size samples at a time: of N samples ceil(N /
 * size) parts of one length, but for the last. EINVAL, of the graph, for a smaller
 * batch. */
struct et_ghost_batch_norm_options {
    struct et_module *batchnorm; /* becomes a child */
    int64_t ghost_batch_size;
};

struct et_ghost_batch_norm_module {
    struct et_module base;
    struct et_module *batchnorm;
    int64_t ghost_batch_size;
};

/* The most latent channels or features with which two layers multiply and add less
 * than one of FAN_IN inputs and OUT outputs. */
int64_t et_factorized_max(int64_t fan_in, int64_t out);

/* LAYER's place is taken by one to LATENT channels or features and one from these, both
 * with new weights. EINVAL: LATENT is above et_factorized_max. */
struct et_factorized_conv2d_options {
    struct et_module *layer; /* Conv2d of one group to imitate; borrowed */
    int64_t latent;
};

struct et_factorized_linear_options {
    struct et_module *layer; /* Linear to imitate; borrowed */
    int64_t latent;
};

/* Of both classes. */
struct et_factorized_module {
    struct et_module base;
    struct et_module *module0, *module1;
    bool no_bias; /* the layer in whose place they are had none */
};

/* A Conv2d, also to surgery, that uses et_standardize_weight(weight). */
struct et_standardized_conv2d_options {
    struct et_module *conv; /* Conv2d to imitate; borrowed, its values are moved out */
};
/* (w - mean) / sqrt(var + 1e-10) over each filter of W [K,C,R,S]. */
struct et_tensor *et_standardize_weight(struct et_graph *g, struct et_tensor *w);

/* A LayerNorm, also to surgery, that a graph of mixed precision computes in its low
 * dtype. */
struct et_low_precision_layer_norm_options {
    struct et_module *norm; /* to imitate; borrowed, its values are moved out */
};

/* The same of a GroupNorm. */
struct et_low_precision_group_norm_options {
    struct et_module *norm;
};

/* LN(wo(dropout(act(gated_layer x) * (non_gated_layer x))) + f->residual), in the place
 * of a BertOutput whose sizes, dropout and eps it takes: Shazeer, "GLU variants improve
 * transformer", 2020 (2002.05202). */
struct et_bert_gated_output_options {
    struct et_module *output;          /* BertOutput to imitate; borrowed */
    const struct et_module_class *act; /* one without options */
    bool gated_layer_bias, non_gated_layer_bias;
};

struct et_bert_gated_output_module {
    struct et_module base;
    struct et_module *gated_layer, *non_gated_layer, *act, *wo, *dropout, *layernorm;
};

#ifdef __cplusplus
}
#endif
#endif
