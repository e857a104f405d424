/* SPDX-License-Identifier: Apache-2.0 */
/* network.h: a network as a recipe spells it: layers in order, and ways around them.
 *
 *     layers:
 *       - conv2d: {out: 16, kernel: 3, padding: 1}
 *         as: early
 *       - residual: {layers: [...], shortcut: [...]}
 *       - repeat: {times: 3, layers: [...]}
 *       - unit: {out: 32}                # one of the blocks, by its name
 *       - {from: [early, deep], add: }
 *
 * Everything that can be wrong before sizes are known is told while it is read. */
#ifndef ETI_NETWORK_H
#define ETI_NETWORK_H

#include "core/recipe/options.h"

/* What an item of a list is. The words, in this order, are in eti_network_words. */
enum eti_network_kind {
    ETI_NETWORK_RESIDUAL,
    ETI_NETWORK_REPEAT,
    ETI_NETWORK_ADD,
    ETI_NETWORK_MUL,
    ETI_NETWORK_CONCAT,
    ETI_NETWORK_FROM,
    ETI_NETWORK_WORDS, /* so many have words of their own; the others' are names */
    ETI_NETWORK_LAYER = ETI_NETWORK_WORDS,
    ETI_NETWORK_BLOCK,
};

struct eti_network_word {
    const char *name;
    const char *help;    /* one sentence, lower case, no full stop */
    const char *example; /* what may stand behind it, YAML */
    const char *keys[3]; /* of its mapping, where it may be one; ends with NULL */
};
extern const struct eti_network_word eti_network_words[ETI_NETWORK_WORDS];

enum {
    ETI_NETWORK_NAMES = 64,  /* values with names in one list, and items with from: */
    ETI_NETWORK_JOINED = 16, /* values that one item puts together */
    ETI_NETWORK_LAYERS = 10000,
    ETI_NETWORK_TIMES = 1000,
};

/* A value by its name: of item ITEM in the list that is UP lists further out; ITEM -1:
 * no item has this name, so it is a field of the samples. */
struct eti_network_ref {
    const char *name;
    const struct et_value *at;
    int up, item;
};

struct eti_network_refs {
    struct eti_network_ref *v;
    int n;
};

struct eti_network {
    struct eti_network_item *item;
    int n;
};

struct eti_network_item {
    enum eti_network_kind kind;
    const char *name;                 /* as written: "conv2d", "unit", "add" */
    const struct et_value *at;        /* where that stands: a key, or the item */
    const struct et_component *layer; /* LAYER */
    const struct et_value *options;   /* LAYER: its mapping; another value: none */
    struct eti_network_refs from; /* what it reads; none: what the one before gives */
    struct eti_network_refs with; /* ADD, MUL, CONCAT: what is joined to that */
    const char *as;               /* what it gives is called so; NULL: it has no name */
    const struct et_value *as_at;
    bool is_used;             /* by that name */
    struct eti_network inner; /* RESIDUAL, REPEAT, BLOCK */
    struct eti_network way;   /* RESIDUAL: the shortcut; empty: what comes in */
    int64_t times;            /* REPEAT */
};

/* Reads LIST into *OUT, which lies in ARENA; BLOCKS, a mapping from names to lists, may
 * be NULL. What is wrong goes to the errors of FILL, under PATH; the item is left out.
 * IS_ALONE: blocks may be elsewhere, so a name that no layer has is no error. */
ET_NODISCARD et_status eti_network_read(const struct eti_fill *fill,
                                        struct eti_arena *arena,
                                        const struct et_value *list,
                                        const struct et_value *blocks, bool is_alone,
                                        const char *path, struct eti_network *out);

/* Gives the layers in LIST, at any depth, and their options the names that we have for
 * them: a recipe may have PyTorch's. */
void eti_network_name(struct et_value *list);

/* The word of NAME that may begin an item (not from:); NULL: it is none. */
const struct eti_network_word *eti_network_word_find(const char *name);

/* The child of an item that says what it is (not as: or from:); the item itself where
 * it is a name; NULL: it says nothing else, or more than one thing. */
struct et_value *eti_network_says(const struct et_value *item);

#endif
