/* SPDX-License-Identifier: Apache-2.0 */
/* weight_names.c: see weight_names.h.
 *
 * A name is tried as it is, without the prefixes of wrappers, with that of the whole
 * model where a file holds the body alone, and as the hubs' tables rewrite it
 * (weight_maps.c). The first that is a leaf counts. */
#include "core/models/weight_names.h"

#include <stdio.h>
#include <string.h>

#include "core/models/weight_maps.h"

/* Last parts of names that nothing is computed from. */
static const char *const unused[] = {
    "num_batches_tracked",         /* torch: batches that batch norm saw */
    "attn.bias",                   /* Hugging Face: GPT-2's causal mask */
    "attn.masked_bias",            /* likewise: what masked scores were */
    "position_ids",                /* likewise: 0, 1, 2, ... */
    "pooler.dense.weight",         /* BERT: what guesses the next sentence, which */
    "pooler.dense.bias",           /* BertForMaskedLM has not either; ViTModel */
    "cls.seq_relationship.weight", /* (transformers, BertForPreTraining) */
    "cls.seq_relationship.bias",
    NULL,
};

/* Prefixes that wrappers add: DataParallel, torch.compile, Lightning and Composer. */
static const char *const wrappers[] = {"module.", "_orig_mod.", "model.", NULL};

/* Prefixes that a file of the body alone lacks: transformers saves GPT2Model,
 * BertModel, ViTModel and ResNetModel without the base_model_prefix of what has a head.
 */
static const char *const bodies[] = {"",     "transformer.", "bert.",
                                     "vit.", "resnet.",      NULL};

/* Copies of a leaf in files of libraries that tie the two (transformers,
 * _tied_weights_keys). */
static const struct {
    const char *copy, *leaf;
} tied[] = {
    {"lm_head.weight", "transformer.wte.weight"},
    {"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
    {"cls.predictions.decoder.bias", "cls.predictions.bias"},
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

/* With each prefix of a body. */
static const struct et_leaf *
find_in_bodies(const struct et_leaves *l, const char *name)
{
    char full[ETI_WEIGHT_NAME];
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
find_named(const struct et_leaves *l, const char *name)
{
    char other[ETI_WEIGHT_NAME];
    const struct et_leaf *leaf = find_in_bodies(l, name);
    for (size_t i = 0; !leaf && i < sizeof endings / sizeof *endings; i++) {
        const char *end = ends_with(name, endings[i].from);
        if (end && snprintf(other, sizeof other, "%.*s%s", (int)(end - name), name,
                            endings[i].to) < (int)sizeof other)
            leaf = find_in_bodies(l, other);
    }
    return leaf;
}

/* As one of M's rules has it, or without the prefix BODY that these begin with. */
static bool
find_by_rules(const struct et_leaves *l, const struct eti_weight_map *m,
              const char *name, const char *body, struct eti_weight_place *out)
{
    char other[ETI_WEIGHT_NAME];
    size_t skip = strlen(body);
    for (const struct eti_weight_rule *r = m->rules; r && r->ours; r++) {
        if (strncmp(r->theirs, body, skip) != 0 ||
            !eti_weight_rewrite(name, r->theirs + skip, r->ours, other))
            continue;
        out->leaf = et_leaves_find(l, other);
        out->part = r->part;
        out->parts = r->parts ? r->parts : 1;
        if (out->leaf)
            return true;
    }
    return false;
}

static bool
find_in_maps(const struct et_leaves *l, const char *model, const char *name,
             struct eti_weight_place *out)
{
    for (const struct eti_weight_map *m = eti_weight_maps; m->form; m++)
        for (const char *const *b = bodies; *b && eti_weight_map_fits(m, model); b++)
            if (find_by_rules(l, m, name, *b, out))
                return true;
    return false;
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

bool
eti_weight_place(const struct et_leaves *l, const char *model, const char *name,
                 struct eti_weight_place *out)
{
    for (; name; name = unwrap(name)) {
        *out = (struct eti_weight_place){.parts = 1};
        out->leaf = find_named(l, name);
        if (out->leaf || find_in_maps(l, model, name, out))
            return true;
        *out = (struct eti_weight_place){.parts = 1};
        out->leaf = find_tied(l, name);
        out->is_tied = out->leaf != NULL;
        if (out->leaf)
            return true;
    }
    return false;
}
