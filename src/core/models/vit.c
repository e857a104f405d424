/* SPDX-License-Identifier: Apache-2.0 */
/* vit.c: vision transformers: patches of 16x16 as tokens, a class token in front.
 *
 * x = [cls; patches W] + pos; blocks h = x + attn(norm1 x), y = h + mlp(norm2 h); norm;
 * logits = head of the class token. Source: Dosovitskiy et al. 2020 (arXiv 2010.11929);
 * sizes from its table 1, and of Ti and S from Touvron et al. 2020 (2012.12877), table
 * 1; timm's names. */
#include "core/modules/common.h"
#include "etude/model.h"

#define POSITION_STD 0.02
#define CLASS_STD    1e-6

struct et_vit_options {
    struct et_model_options common;
    int64_t d_model, n_layers, n_heads, patch;
    double dropout, attention_dropout, eps;
    int64_t tokens; /* patches of an image; from the data */
};

/* ---- attention over all tokens ---- */

struct vit_attention_module {
    struct et_module base;
    struct et_module *qkv, *proj, *proj_drop;
    int64_t n_heads;
    double dropout; /* of the probabilities */
};

static et_status
attention_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct vit_attention_module *m = (struct vit_attention_module *)base;
    const struct et_vit_options *o = options;
    m->n_heads = o->n_heads;
    m->dropout = o->attention_dropout;
    ET_TRY(ET_NEW(cx, &m->qkv, linear, .in_features = o->d_model,
                  .out_features = 3 * o->d_model));
    ET_TRY(ET_NEW(cx, &m->proj, linear, .in_features = o->d_model,
                  .out_features = o->d_model));
    return ET_NEW(cx, &m->proj_drop, dropout, .p = o->dropout);
}

/* Part I of three of [B,T,3D], as [B,H,T,D/H]. */
static struct et_tensor *
heads(struct et_forward *f, struct et_tensor *qkv, int i, int64_t n)
{
    int64_t b = qkv->desc.shape[0], t = qkv->desc.shape[1], d = qkv->desc.shape[2] / 3;
    struct et_tensor *x = et_slice(f->g, qkv, 2, i * d, d, 1);
    x = et_reshape(f->g, x, ET_SHAPE(b, t, n, d / n));
    return et_permute(f->g, x, (const int[]){0, 2, 1, 3});
}

static struct et_tensor *
attention_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct vit_attention_module *m = (struct vit_attention_module *)base;
    struct et_tensor *qkv = et_forward(f, m->qkv, x);
    if (!qkv)
        return NULL;
    struct et_tensor *const parts[] = {heads(f, qkv, 0, m->n_heads),
                                       heads(f, qkv, 1, m->n_heads),
                                       heads(f, qkv, 2, m->n_heads)};
    struct et_tensor *y = eti_attend(f, parts, NULL, false, m->dropout);
    y = et_permute(f->g, y, (const int[]){0, 2, 1, 3});
    y = et_reshape(f->g, y, x->desc.ndim, x->desc.shape);
    return et_forward(f, m->proj_drop, et_forward(f, m->proj, y));
}

static const struct et_module_class vit_attention_class = {
    .info =
        {
            .name = "vit_attention",
            .class_name = "ViTAttention",
            .summary = "multi-head self-attention over all tokens",
            .source = "arXiv 1706.03762",
            .applies_to = "vision",
            .options_size = sizeof(struct et_vit_options),
        },
    .size = sizeof(struct vit_attention_module),
    .children =
        (const struct et_slot[]){
            ET_SLOT(vit_attention_module, qkv),
            ET_SLOT(vit_attention_module, proj),
            ET_SLOT(vit_attention_module, proj_drop),
            {0},
        },
    .init = attention_init,
    .forward = attention_forward,
};

/* ---- block ---- */

struct vit_block_module {
    struct et_module base;
    struct et_module *norm1, *attn, *norm2, *mlp;
};

static et_status
block_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct vit_block_module *m = (struct vit_block_module *)base;
    const struct et_vit_options *o = options;
    int64_t d = o->d_model;
    ET_TRY(ET_NEW(cx, &m->norm1, layer_norm, .features = d, .eps = o->eps));
    ET_TRY(et_module_new(cx, &vit_attention_class, o, &m->attn));
    ET_TRY(ET_NEW(cx, &m->norm2, layer_norm, .features = d, .eps = o->eps));
    ET_TRY(et_module_new(cx, &et_sequential_class, NULL, &m->mlp));
    ET_TRY(ET_ADD(cx, m->mlp, "fc1", linear, .in_features = d, .out_features = 4 * d));
    ET_TRY(et_module_add(cx, m->mlp, "act", &et_gelu_class, NULL));
    ET_TRY(ET_ADD(cx, m->mlp, "drop1", dropout, .p = o->dropout));
    ET_TRY(ET_ADD(cx, m->mlp, "fc2", linear, .in_features = 4 * d, .out_features = d));
    return ET_ADD(cx, m->mlp, "drop2", dropout, .p = o->dropout);
}

static struct et_tensor *
block_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct vit_block_module *m = (struct vit_block_module *)base;
    x = et_add(f->g, x, et_forward(f, m->attn, et_forward(f, m->norm1, x)));
    return et_add(f->g, x, et_forward(f, m->mlp, et_forward(f, m->norm2, x)));
}

static const struct et_module_class vit_block_class = {
    .info =
        {
            .name = "vit_block",
            .class_name = "ViTBlock",
            .summary = "attention and feed-forward part, each behind a norm",
            .source = "arXiv 2010.11929",
            .applies_to = "vision",
            .options_size = sizeof(struct et_vit_options),
        },
    .size = sizeof(struct vit_block_module),
    .children =
        (const struct et_slot[]){
            ET_SLOT(vit_block_module, norm1),
            ET_SLOT(vit_block_module, attn),
            ET_SLOT(vit_block_module, norm2),
            ET_SLOT(vit_block_module, mlp),
            {0},
        },
    .init = block_init,
    .forward = block_forward,
};

/* ---- the network ---- */

struct vit_module {
    struct et_module base;
    struct et_param cls_token, pos_embed; /* [1,1,D], [1,1+patches,D] */
    struct et_module *patch_embed, *pos_drop, *blocks, *norm, *head;
};

static et_status
vit_init(struct et_ctx *cx, struct et_module *base, const void *options)
{
    struct vit_module *m = (struct vit_module *)base;
    const struct et_vit_options *o = options;
    const struct et_init position = {.kind = ET_INIT_NORMAL, .b = POSITION_STD};
    const struct et_init class_token = {.kind = ET_INIT_NORMAL, .b = CLASS_STD};
    int64_t d = o->d_model;
    if (d % o->n_heads)
        return ET_FAIL(cx, ET_EINVAL, "%lld heads do not divide d_model %lld",
                       (long long)o->n_heads, (long long)d);
    et_param_declare(&m->cls_token, class_token, ET_SHAPE(1, 1, d));
    et_param_declare(&m->pos_embed, position, ET_SHAPE(1, 1 + o->tokens, d));
    ET_TRY(et_module_new(cx, &et_sequential_class, NULL, &m->patch_embed));
    ET_TRY(ET_ADD(cx, m->patch_embed, "proj", conv2d,
                  .in_channels = o->common.in_channels, .out_channels = d,
                  .kernel = o->patch, .stride = o->patch));
    ET_TRY(ET_NEW(cx, &m->pos_drop, dropout, .p = o->dropout));
    ET_TRY(et_module_new(cx, &et_sequential_class, NULL, &m->blocks));
    for (int64_t i = 0; i < o->n_layers; i++)
        ET_TRY(et_module_add(cx, m->blocks, NULL, &vit_block_class, o));
    ET_TRY(ET_NEW(cx, &m->norm, layer_norm, .features = d, .eps = o->eps));
    return ET_NEW(cx, &m->head, linear, .in_features = d,
                  .out_features = o->common.num_classes);
}

static struct et_tensor *
vit_forward(struct et_module *base, struct et_forward *f, struct et_tensor *x)
{
    struct vit_module *m = (struct vit_module *)base;
    struct et_graph *g = f->g;
    x = et_forward(f, m->patch_embed, x); /* [B,D,H,W] */
    if (!x)
        return NULL;
    int64_t b = x->desc.shape[0], d = x->desc.shape[1];
    x = et_permute(g, x, (const int[]){0, 2, 3, 1});
    x = et_reshape(g, x, ET_SHAPE(b, -1, d));
    struct et_tensor *cls = et_expand(g, m->cls_token.tensor, ET_SHAPE(b, 1, d));
    x = et_concat(g, (struct et_tensor *[]){cls, x}, 2, 1);
    x = et_forward(f, m->pos_drop, et_add(g, x, m->pos_embed.tensor));
    x = et_forward(f, m->norm, et_forward(f, m->blocks, x));
    x = et_reshape(g, et_slice(g, x, 1, 0, 1, 1), ET_SHAPE(b, d));
    return et_forward(f, m->head, x);
}

static const struct et_module_class vit_class = {
    .info =
        {
            .name = "vit",
            .class_name = "VisionTransformer",
            .summary = "transformer over patches of an image",
            .source = "arXiv 2010.11929",
            .applies_to = "vision",
            .options_size = sizeof(struct et_vit_options),
        },
    .size = sizeof(struct vit_module),
    .params =
        (const struct et_slot[]){
            ET_SLOT(vit_module, cls_token),
            ET_SLOT(vit_module, pos_embed),
            {0},
        },
    .children =
        (const struct et_slot[]){
            ET_SLOT(vit_module, patch_embed),
            ET_SLOT(vit_module, pos_drop),
            ET_SLOT(vit_module, blocks),
            ET_SLOT(vit_module, norm),
            ET_SLOT(vit_module, head),
            {0},
        },
    .init = vit_init,
    .forward = vit_forward,
};

static et_status
vit_build(struct et_ctx *cx, struct et_model *m, const void *options,
          const struct et_model_facts *facts)
{
    struct et_vit_options o = *(const struct et_vit_options *)options;
    if (facts->height < o.patch || facts->height % o.patch || facts->width % o.patch)
        return ET_FAIL(cx, ET_EINVAL,
                       "patches of %lldx%lld do not tile images of %lldx%lld",
                       (long long)o.patch, (long long)o.patch, (long long)facts->height,
                       (long long)facts->width);
    o.tokens = (facts->height / o.patch) * (facts->width / o.patch);
    o.common.in_channels = facts->channels;
    o.common.num_classes = facts->num_classes;
    return et_module_new(cx, &vit_class, &o, &m->root);
}

#define COUNT(field, deflt, text)                                                      \
    {                                                                                  \
        .name = #field, .type = ET_OPT_INT,                                            \
        .offset = offsetof(struct et_vit_options, field), .def = (deflt), .min = 1,    \
        .max = 1 << 16, .help = (text)                                                 \
    }

#define SHARE(field, deflt, more, text)                                                \
    {                                                                                  \
        .name = #field, .type = ET_OPT_FLOAT,                                          \
        .offset = offsetof(struct et_vit_options, field), .def = (deflt), .min = 0,    \
        .max = 1, .flags = ET_OPT_MAX_OPEN | (more), .help = (text)                    \
    }

/* timm.models.vision_transformer, weight_init "": trunc_normal_(std=.02) for linear
 * layers and positions. Its bounds are -2 and 2 themselves, not deviations: nothing is
 * cut off. The patches' convolution is left as nn.Conv2d makes it. */
static const char vit_beginning[] =
    "linear layers and positions N(0, 0.02^2), their biases 0, the class token N(0, "
    "1e-12), the patches' convolution U(+-1/sqrt(fan_in)), norms 1 and 0, as timm";
static const char *const vit_initializer[] = {"linear_small_normal", "linear_zero_bias",
                                              NULL};

/* One size of the family. */
#define VIT(id, class_text, summary_text, width, layers, heads)                        \
    const struct et_model_class et_##id##_model = {                                    \
        .info =                                                                        \
            {                                                                          \
                .name = #id,                                                           \
                .class_name = class_text,                                              \
                .summary = summary_text,                                               \
                .source = "arXiv 2010.11929",                                          \
                .applies_to = "vision",                                                \
                .options =                                                             \
                    (const struct et_option[]){                                        \
                        ET_MODEL_OPTIONS(et_vit_options),                              \
                        COUNT(d_model, width, "width of the residual stream"),         \
                        COUNT(n_layers, layers, "transformer blocks"),                 \
                        COUNT(n_heads, heads, "attention heads; they divide d_model"), \
                        COUNT(patch, "16", "height and width of a patch in pixels"),   \
                        SHARE(dropout, "0.1", 0,                                       \
                              "probability of zero behind embeddings and branches"),   \
                        SHARE(attention_dropout, "0", ET_OPT_LATER,                    \
                              "probability of zero of what attention gives a token"),  \
                        SHARE(eps, "1e-06", ET_OPT_LATER,                              \
                              "added to the variance in norms"),                       \
                        {0},                                                           \
                    },                                                                 \
                .options_size = sizeof(struct et_vit_options),                         \
            },                                                                         \
        .task = ET_TASK_CLASSIFICATION,                                                \
        .beginning = vit_beginning,                                                    \
        .initializer = vit_initializer,                                                \
        .build = vit_build,                                                            \
    };

VIT(vit_ti16, "ViTTi16", "tiny vision transformer over patches of an image", "192",
    "12", "3")
VIT(vit_s16, "ViTS16", "small vision transformer over patches of an image", "384", "12",
    "6")
VIT(vit_b16, "ViTB16", "base vision transformer over patches of an image", "768", "12",
    "12")
VIT(vit_l16, "ViTL16", "large vision transformer over patches of an image", "1024",
    "24", "16")
