/* SPDX-License-Identifier: Apache-2.0 */
/* weight_names.c: see weight_names.h.
 *
 * A name is tried as it is, without the prefixes of wrappers, with that of the whole
 * model where a file holds the body alone, and as the rules below rewrite it. The first
 * that is a leaf counts. */
#include "core/models/weight_names.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 512, CAPTURES = 4 };

/* Last parts of names that nothing is computed from. */
static const char *const unused[] = {
    "num_batches_tracked",         /* torch: batches that batch norm saw */
    "attn.bias",                   /* Hugging Face: GPT-2's causal mask */
    "attn.masked_bias",            /* likewise: what masked scores were */
    "position_ids",                /* likewise: 0, 1, 2, ... */
    "pooler.dense.weight",         /* BERT: what guesses the next sentence, which */
    "pooler.dense.bias",           /* BertForMaskedLM has not either */
    "cls.seq_relationship.weight", /* (transformers, BertForPreTraining) */
    "cls.seq_relationship.bias",
    NULL,
};

/* Prefixes that wrappers add: DataParallel, torch.compile, Lightning and Composer. */
static const char *const wrappers[] = {"module.", "_orig_mod.", "model.", NULL};

/* Prefixes that a file of the body alone lacks: transformers saves GPT2Model and
 * BertModel without the base_model_prefix of GPT2LMHeadModel and BertForMaskedLM. */
static const char *const bodies[] = {"", "transformer.", "bert.", NULL};

/* Copies of a leaf in files of libraries that tie the two (transformers,
 * _tied_weights_keys). */
static const struct {
    const char *copy, *leaf;
} tied[] = {
    {"lm_head.weight", "transformer.wte.weight"},
    {"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
    {"cls.predictions.decoder.bias", "cls.predictions.bias"},
};

/* Beginnings of names and what stands for them here. '#' is a number, in its turn; '+'
 * is one more than it.
 *
 * timm's efficientnet_b0 (timm/models/efficientnet.py, _efficientnet_blocks.py): stage
 * 0 is of DepthwiseSeparableConv, the others of InvertedResidual; ours are
 * torchvision's names. A rule counts only where what comes of it is a leaf: in a ResNet
 * "bn1." is one as it is. */
static const struct {
    const char *from, *to;
} rules[] = {
    {"conv_stem.", "features.0.0."},
    {"bn1.", "features.0.1."},
    {"blocks.0.#.conv_dw.", "features.1.#.block.0.0."},
    {"blocks.0.#.bn1.", "features.1.#.block.0.1."},
    {"blocks.0.#.se.conv_reduce.", "features.1.#.block.1.fc1."},
    {"blocks.0.#.se.conv_expand.", "features.1.#.block.1.fc2."},
    {"blocks.0.#.conv_pw.", "features.1.#.block.2.0."},
    {"blocks.0.#.bn2.", "features.1.#.block.2.1."},
    {"blocks.#.#.conv_pw.", "features.+.#.block.0.0."},
    {"blocks.#.#.bn1.", "features.+.#.block.0.1."},
    {"blocks.#.#.conv_dw.", "features.+.#.block.1.0."},
    {"blocks.#.#.bn2.", "features.+.#.block.1.1."},
    {"blocks.#.#.se.conv_reduce.", "features.+.#.block.2.fc1."},
    {"blocks.#.#.se.conv_expand.", "features.+.#.block.2.fc2."},
    {"blocks.#.#.conv_pwl.", "features.+.#.block.3.0."},
    {"blocks.#.#.bn3.", "features.+.#.block.3.1."},
    {"conv_head.", "features.8.0."},
    {"bn2.", "features.8.1."},
    {"classifier.", "classifier.1."},
};

/* Endings of TensorFlow's BERT, which google-bert/bert-base-uncased still has. */
static const struct {
    const char *from, *to;
} endings[] = {
    {"LayerNorm.gamma", "LayerNorm.weight"},
    {"LayerNorm.beta", "LayerNorm.bias"},
};

/* What follows END in NAME, if that ends with it as a whole part; else NULL. */
static const char *
ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    bool whole = n == k || (n > k && name[n - k - 1] == '.');
    return whole && strcmp(name + n - k, end) == 0 ? name + n - k : NULL;
}

bool
eti_weight_is_unused(const char *name)
{
    for (const char *const *u = unused; *u; u++)
        if (ends_with(name, *u))
            return true;
    return false;
}

/* NAME rewritten by rule FROM -> TO into OUT; false: it does not begin so. */
static bool
rewrite(const char *name, const char *from, const char *to, char out[NAME_BYTES])
{
    long number[CAPTURES];
    int n = 0, taken = 0;
    for (; *from; from++) {
        if (*from != '#') {
            if (*name++ != *from)
                return false;
            continue;
        }
        char *end;
        if (n == CAPTURES || !isdigit((unsigned char)*name))
            return false;
        number[n] = strtol(name, &end, 10);
        if (number[n++] == LONG_MAX) /* or more: no layer has such a number */
            return false;
        name = end;
    }
    size_t used = 0;
    for (; *to && used < NAME_BYTES; to++)
        if ((*to == '#' || *to == '+') && taken < n)
            used += (size_t)snprintf(out + used, NAME_BYTES - used, "%ld",
                                     number[taken++] + (*to == '+'));
        else
            used += (size_t)snprintf(out + used, NAME_BYTES - used, "%c", *to);
    return used < NAME_BYTES && (size_t)snprintf(out + used, NAME_BYTES - used, "%s",
                                                 name) < NAME_BYTES - used;
}

/* With each prefix of a body. */
static const struct et_leaf *
find_in_bodies(const struct et_leaves *l, const char *name)
{
    char full[NAME_BYTES];
    for (const char *const *b = bodies; *b; b++) {
        const struct et_leaf *leaf = NULL;
        if (snprintf(full, sizeof full, "%s%s", *b, name) < (int)sizeof full)
            leaf = et_leaves_find(l, full);
        if (leaf)
            return leaf;
    }
    return NULL;
}

static const struct et_leaf *
find_rewritten(const struct et_leaves *l, const char *name)
{
    char other[NAME_BYTES];
    const struct et_leaf *leaf = find_in_bodies(l, name);
    for (size_t i = 0; !leaf && i < sizeof endings / sizeof *endings; i++) {
        const char *end = ends_with(name, endings[i].from);
        if (end && snprintf(other, sizeof other, "%.*s%s", (int)(end - name), name,
                            endings[i].to) < (int)sizeof other)
            leaf = find_in_bodies(l, other);
    }
    for (size_t i = 0; !leaf && i < sizeof rules / sizeof *rules; i++)
        if (rewrite(name, rules[i].from, rules[i].to, other))
            leaf = et_leaves_find(l, other);
    return leaf;
}

static const struct et_leaf *
find_tied(const struct et_leaves *l, const char *name)
{
    for (size_t i = 0; i < sizeof tied / sizeof *tied; i++)
        if (strcmp(name, tied[i].copy) == 0)
            return et_leaves_find(l, tied[i].leaf);
    return NULL;
}

/* NAME without the first wrapper's prefix, or NULL. */
static const char *
unwrap(const char *name)
{
    for (const char *const *w = wrappers; *w; w++)
        if (strncmp(name, *w, strlen(*w)) == 0)
            return name + strlen(*w);
    return NULL;
}

const struct et_leaf *
eti_weight_leaf(const struct et_leaves *l, const char *name, bool *is_tied)
{
    const struct et_leaf *leaf = NULL;
    *is_tied = false;
    for (; name && !leaf; name = unwrap(name)) {
        leaf = find_rewritten(l, name);
        if (!leaf) {
            leaf = find_tied(l, name);
            *is_tied = leaf != NULL;
        }
    }
    return leaf;
}
