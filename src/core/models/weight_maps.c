/* SPDX-License-Identifier: Apache-2.0 */
/* weight_maps.c: see weight_maps.h. */
#include "core/models/weight_maps.h"

#include <ctype.h>
#include <fnmatch.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CAPTURES = 4 };

/* ---- Hugging Face transformers ---- */

/* ViTForImageClassification (models/vit/modeling_vit.py). */
static const struct eti_weight_rule hf_vit[] = {
    {"cls_token", "vit.embeddings.cls_token", 0, 0},
    {"pos_embed", "vit.embeddings.position_embeddings", 0, 0},
    {"patch_embed.proj.", "vit.embeddings.patch_embeddings.projection.", 0, 0},
    {"blocks.#.norm1.", "vit.encoder.layer.#.layernorm_before.", 0, 0},
    {"blocks.#.attn.qkv.", "vit.encoder.layer.#.attention.attention.query.", 0, 3},
    {"blocks.#.attn.qkv.", "vit.encoder.layer.#.attention.attention.key.", 1, 3},
    {"blocks.#.attn.qkv.", "vit.encoder.layer.#.attention.attention.value.", 2, 3},
    {"blocks.#.attn.proj.", "vit.encoder.layer.#.attention.output.dense.", 0, 0},
    {"blocks.#.norm2.", "vit.encoder.layer.#.layernorm_after.", 0, 0},
    {"blocks.#.mlp.fc1.", "vit.encoder.layer.#.intermediate.dense.", 0, 0},
    {"blocks.#.mlp.fc2.", "vit.encoder.layer.#.output.dense.", 0, 0},
    {"norm.", "vit.layernorm.", 0, 0},
    {"head.", "classifier.", 0, 0},
    {0},
};

/* ResNetForImageClassification (models/resnet/modeling_resnet.py). */
static const struct eti_weight_rule hf_resnet[] = {
    {"conv1.", "resnet.embedder.embedder.convolution.", 0, 0},
    {"bn1.", "resnet.embedder.embedder.normalization.", 0, 0},
#define LAYER "resnet.encoder.stages.-.layers.#."
    {"layer#.#.conv1.", LAYER "layer.0.convolution.", 0, 0},
    {"layer#.#.bn1.", LAYER "layer.0.normalization.", 0, 0},
    {"layer#.#.conv2.", LAYER "layer.1.convolution.", 0, 0},
    {"layer#.#.bn2.", LAYER "layer.1.normalization.", 0, 0},
    {"layer#.#.conv3.", LAYER "layer.2.convolution.", 0, 0},
    {"layer#.#.bn3.", LAYER "layer.2.normalization.", 0, 0},
    {"layer#.#.downsample.0.", LAYER "shortcut.convolution.", 0, 0},
    {"layer#.#.downsample.1.", LAYER "shortcut.normalization.", 0, 0},
#undef LAYER
    {"fc.", "classifier.1.", 0, 0},
    {0},
};

/* ---- torchvision ---- */

/* torchvision.models.vision_transformer.VisionTransformer. */
static const struct eti_weight_rule torchvision_vit[] = {
    {"cls_token", "class_token", 0, 0},
    {"pos_embed", "encoder.pos_embedding", 0, 0},
    {"patch_embed.proj.", "conv_proj.", 0, 0},
#define LAYER "encoder.layers.encoder_layer_#."
    {"blocks.#.norm1.", LAYER "ln_1.", 0, 0},
    {"blocks.#.attn.qkv.", LAYER "self_attention.in_proj_", 0, 0},
    {"blocks.#.attn.proj.", LAYER "self_attention.out_proj.", 0, 0},
    {"blocks.#.norm2.", LAYER "ln_2.", 0, 0},
    {"blocks.#.mlp.fc1.", LAYER "mlp.0.", 0, 0},
    {"blocks.#.mlp.fc2.", LAYER "mlp.3.", 0, 0},
#undef LAYER
    {"norm.", "encoder.ln.", 0, 0},
    {"head.", "heads.head.", 0, 0},
    {0},
};

/* ---- timm ---- */

/* timm's EfficientNet (models/efficientnet.py, _efficientnet_blocks.py): stage 0 is of
 * DepthwiseSeparableConv, the others of InvertedResidual; ours are torchvision's
 * names. */
static const struct eti_weight_rule timm_efficientnet[] = {
    {"features.0.0.", "conv_stem.", 0, 0},
    {"features.0.1.", "bn1.", 0, 0},
    {"features.8.0.", "conv_head.", 0, 0},
    {"features.8.1.", "bn2.", 0, 0},
    {"features.1.#.block.0.0.", "blocks.0.#.conv_dw.", 0, 0},
    {"features.1.#.block.0.1.", "blocks.0.#.bn1.", 0, 0},
    {"features.1.#.block.1.fc1.", "blocks.0.#.se.conv_reduce.", 0, 0},
    {"features.1.#.block.1.fc2.", "blocks.0.#.se.conv_expand.", 0, 0},
    {"features.1.#.block.2.0.", "blocks.0.#.conv_pw.", 0, 0},
    {"features.1.#.block.2.1.", "blocks.0.#.bn2.", 0, 0},
    {"features.#.#.block.0.0.", "blocks.-.#.conv_pw.", 0, 0},
    {"features.#.#.block.0.1.", "blocks.-.#.bn1.", 0, 0},
    {"features.#.#.block.1.0.", "blocks.-.#.conv_dw.", 0, 0},
    {"features.#.#.block.1.1.", "blocks.-.#.bn2.", 0, 0},
    {"features.#.#.block.2.fc1.", "blocks.-.#.se.conv_reduce.", 0, 0},
    {"features.#.#.block.2.fc2.", "blocks.-.#.se.conv_expand.", 0, 0},
    {"features.#.#.block.3.0.", "blocks.-.#.conv_pwl.", 0, 0},
    {"features.#.#.block.3.1.", "blocks.-.#.bn3.", 0, 0},
    {"classifier.1.", "classifier.", 0, 0},
    {0},
};

/* ---- all ---- */

#define RESNETS "resnet18 resnet34 resnet50 resnet101 resnet152"

const struct eti_weight_map eti_weight_maps[] = {
    {"hf", "gpt2", NULL, false},
    {"hf", "bert*", NULL, false},
    {"hf", "vit_*", hf_vit, false},
    {"hf", RESNETS, hf_resnet, true},
    {"torchvision", RESNETS, NULL, true},
    {"torchvision", "efficientnet_*", NULL, true},
    {"torchvision", "vit_b16 vit_l16", torchvision_vit, false},
    {"timm", RESNETS, NULL, true},
    {"timm", "efficientnet_*", timm_efficientnet, true},
    {"timm", "vit_*", NULL, false},
    {0},
};

bool
eti_weight_map_fits(const struct eti_weight_map *m, const char *model)
{
    char one[64];
    for (const char *at = m->models; *at;) {
        size_t n = strcspn(at, " ");
        snprintf(one, sizeof one, "%.*s", (int)n, at);
        if (fnmatch(one, model, 0) == 0)
            return true;
        at += n + (at[n] == ' ');
    }
    return false;
}

const struct eti_weight_map *
eti_weight_map_find(const char *form, const char *model)
{
    for (const struct eti_weight_map *m = eti_weight_maps; m->form; m++)
        if (strcmp(m->form, form) == 0 && eti_weight_map_fits(m, model))
            return m;
    return NULL;
}

/* ---- names ---- */

static bool
is_mark(char c)
{
    return c == '#' || c == '-';
}

bool
eti_weight_rewrite(const char *name, const char *from, const char *to,
                   char out[ETI_WEIGHT_NAME])
{
    long number[CAPTURES];
    int n = 0, taken = 0;
    for (; *from; from++) {
        if (!is_mark(*from)) {
            if (*name++ != *from)
                return false;
            continue;
        }
        char *end;
        if (n == CAPTURES || !isdigit((unsigned char)*name))
            return false;
        number[n] = strtol(name, &end, 10);
        if (number[n] >= INT_MAX) /* no layer has such a number */
            return false;
        number[n++] += *from == '-';
        name = end;
    }
    size_t used = 0;
    for (; *to && used < ETI_WEIGHT_NAME; to++)
        if (is_mark(*to) && taken < n) {
            long k = number[taken++] - (*to == '-');
            if (k < 0)
                return false;
            used += (size_t)snprintf(out + used, ETI_WEIGHT_NAME - used, "%ld", k);
        } else {
            used += (size_t)snprintf(out + used, ETI_WEIGHT_NAME - used, "%c", *to);
        }
    return used < ETI_WEIGHT_NAME &&
           (size_t)snprintf(out + used, ETI_WEIGHT_NAME - used, "%s", name) <
               ETI_WEIGHT_NAME - used;
}

bool
eti_weight_map_name(const struct eti_weight_map *m, const char *name, int part,
                    char out[ETI_WEIGHT_NAME], int *parts)
{
    *parts = 1;
    if (!m->rules)
        return snprintf(out, ETI_WEIGHT_NAME, "%s", name) < ETI_WEIGHT_NAME;
    for (const struct eti_weight_rule *r = m->rules; r->ours; r++)
        if (r->part == part && eti_weight_rewrite(name, r->ours, r->theirs, out)) {
            *parts = r->parts ? r->parts : 1;
            return true;
        }
    return false;
}
