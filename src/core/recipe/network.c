/* SPDX-License-Identifier: Apache-2.0 */
/* network.c: see network.h. A block's list is copied for each use of it, with what that
 * says in the places of $names, and read like any other list. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/recipe/network_impl.h"

const struct eti_network_word eti_network_words[ETI_NETWORK_WORDS] = {
    [ETI_NETWORK_RESIDUAL] =
        {
            .name = "residual",
            .help = "what its layers give plus what comes in, or what the shortcut's "
                    "layers make of that",
            .example = "[identity]",
            .keys = {"layers", "shortcut"},
        },
    [ETI_NETWORK_REPEAT] =
        {
            .name = "repeat",
            .help = "its layers so many times over, each time with weights of their "
                    "own",
            .example = "{times: 2, layers: [identity]}",
            .keys = {"times", "layers"},
        },
    [ETI_NETWORK_ADD] =
        {
            .name = "add",
            .help = "what comes in plus a value that has a name",
            .example = "input",
        },
    [ETI_NETWORK_MUL] =
        {
            .name = "mul",
            .help = "what comes in times a value that has a name",
            .example = "input",
        },
    [ETI_NETWORK_CONCAT] =
        {
            .name = "concat",
            .help = "what comes in, and the channels of a value that has a name behind",
            .example = "input",
        },
    [ETI_NETWORK_FROM] =
        {
            .name = "from",
            .help = "goes on from a value that has a name, or a field of the samples",
            .example = "input",
        },
};

/* ---- the words of an item ---- */

static bool
is_beside(const char *key)
{
    return strcmp(key, "as") == 0 || strcmp(key, "from") == 0;
}

struct et_value *
eti_network_says(const struct et_value *item)
{
    struct et_value *found = NULL;
    if (item->type == ET_VALUE_STRING)
        return (struct et_value *)item; /* the caller's to change or not */
    for (struct et_value *c = item->type == ET_VALUE_MAP ? item->first : NULL; c;
         c = c->next) {
        if (is_beside(c->key))
            continue;
        if (found)
            return NULL;
        found = c;
    }
    return found;
}

static int
word_of(const char *name)
{
    for (int i = 0; i < ETI_NETWORK_FROM; i++)
        if (strcmp(eti_network_words[i].name, name) == 0)
            return i;
    return -1;
}

const struct eti_network_word *
eti_network_word_find(const char *name)
{
    const int i = word_of(name);
    return i < 0 ? NULL : &eti_network_words[i];
}

/* ---- names that are ours ---- */

static void
name_item(struct et_value *item)
{
    struct et_value *says = eti_network_says(item);
    if (!says)
        return;
    const char **name = says == item ? &says->text : &says->key;
    const int word = says == item ? -1 : word_of(*name);
    if (word == ETI_NETWORK_RESIDUAL || word == ETI_NETWORK_REPEAT) {
        eti_network_name(says);
        eti_network_name(eti_value_get(says, "layers"));
        eti_network_name(eti_value_get(says, "shortcut"));
        return;
    }
    const struct et_component *type = et_registry_find(NULL, ET_KIND_LAYER, *name);
    if (!type)
        return;
    *name = type->name;
    struct et_diagnostics later = {0};
    const struct eti_fill fill = {.errors = &later};
    const struct eti_target target = {.table = type->options};
    if (says != item)
        eti_rename_keys(&fill, &target, 1, says, "");
}

void
eti_network_name(struct et_value *list)
{
    for (struct et_value *item = list && list->type == ET_VALUE_LIST ? list->first
                                                                     : NULL;
         item; item = item->next)
        name_item(item);
}

/* ---- blocks ---- */

/* MAPPING has no key but those of NAMES [N]. */
static bool
has_only(const struct eti_network_reading *r, const struct et_value *mapping,
         const char *path, const char *const *names, int n)
{
    bool fits = true;
    for (const struct et_value *c = mapping->first; c; c = c->next) {
        bool is_known = false;
        for (int i = 0; i < n; i++)
            is_known = is_known || strcmp(c->key, names[i]) == 0;
        struct et_place at = eti_value_key_place(c);
        if (!is_known)
            eti_network_unknown(r, &at, path, "key", c->key, names, n);
        fits = fits && is_known;
    }
    return fits;
}

enum { MOST_OPTIONS = 32 };

static bool
has_text(const char *const *names, int n, const char *text)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], text) == 0)
            return true;
    return false;
}

/* The $names in V, each once, without the $. */
static int
list_options(const struct et_value *v, const char **names, int n)
{
    if (v->type == ET_VALUE_STRING && v->text[0] == '$' && n < MOST_OPTIONS &&
        !has_text(names, n, v->text + 1))
        names[n++] = v->text + 1;
    for (const struct et_value *c = v->first; c; c = c->next)
        n = list_options(c, names, n);
    return n;
}

/* Puts what USE says in the places of $names. */
static void
put_in(struct et_value *v, const struct et_value *use)
{
    const struct et_value *now = v->type == ET_VALUE_STRING && v->text[0] == '$'
                                     ? eti_value_get(use, v->text + 1)
                                     : NULL;
    if (now) {
        eti_value_become(v, now);
        return; /* of what is around the block: it has been put in */
    }
    for (struct et_value *c = v->first; c; c = c->next)
        put_in(c, use);
}

/* Does USE say what the block needs, and nothing else? */
static bool
fits_block(const struct eti_network_reading *r, const struct et_value *block,
           const struct et_value *use, const struct et_place *at, const char *path)
{
    const char *names[MOST_OPTIONS];
    int n = list_options(block, names, 0);
    bool fits = use->type != ET_VALUE_MAP || has_only(r, use, path, names, n);
    for (int i = 0; i < n; i++)
        if (!eti_value_get(use, names[i])) {
            et_diagnostics_add(r->fill->errors, ET_E_MISSING, at, path, NULL,
                               "key '%s' is missing: the block %s has $%s", names[i],
                               block->key, names[i]);
            fits = false;
        }
    return fits;
}

static struct eti_network_block *
find_block(const struct eti_network_reading *r, const char *name)
{
    for (int i = 0; i < r->n_blocks; i++)
        if (strcmp(r->block[i].list->key, name) == 0)
            return &r->block[i];
    return NULL;
}

static bool
is_inside(const struct eti_network_reading *r, const struct eti_network_block *b,
          const struct et_place *at, const char *path)
{
    for (const struct eti_network_frame *f = r->frame; f; f = f->outer) {
        if (f->block != b->list)
            continue;
        et_diagnostics_add(r->fill->errors, ET_E_CONFLICT, at, path, NULL,
                           f == r->frame ? "the block %s is made of itself"
                                         : "the block %s is made of itself, by way of "
                                           "%s",
                           b->list->key, r->frame->block->key);
        return true;
    }
    return false;
}

static et_status read_list(struct eti_network_reading *r,
                           const struct eti_network_scope *outer,
                           const struct et_value *list, const char *path,
                           struct eti_network *out);

static et_status
read_block(struct eti_network_reading *r, const struct et_value *says,
           struct eti_network_block *b, const struct et_place *at, const char *path,
           struct eti_network_item *out)
{
    const int errors = r->fill->errors->total;
    out->kind = ETI_NETWORK_BLOCK;
    if (b->is_wrong || is_inside(r, b, at, path) ||
        !fits_block(r, b->list, says, at, path))
        return ET_OK;
    struct et_value *list = eti_value_copy(r->arena, b->list, NULL);
    if (!list)
        return ET_ENOMEM;
    put_in(list, says);
    const struct eti_network_frame frame = {.outer = r->frame, .block = b->list};
    r->frame = &frame;
    et_status status = read_list(r, NULL, list, path, &out->inner);
    r->frame = frame.outer;
    b->is_wrong = r->fill->errors->total > errors;
    return status;
}

static et_status
list_blocks(struct eti_network_reading *r, const struct et_value *blocks)
{
    if (!blocks || blocks->type == ET_VALUE_NULL)
        return ET_OK;
    if (blocks->type != ET_VALUE_MAP) {
        eti_bad_value(r->fill, blocks, "model.blocks", NULL,
                      "mapping from names to lists of layers");
        return ET_OK;
    }
    r->block = eti_arena_alloc(r->arena, sizeof *r->block * (size_t)(blocks->n + 1));
    if (!r->block)
        return ET_ENOMEM;
    for (const struct et_value *c = blocks->first; c; c = c->next) {
        char path[ETI_PATH_BYTES];
        struct et_place at = eti_value_key_place(c);
        eti_path_join(path, "model.blocks", c->key);
        if (word_of(c->key) >= 0 || is_beside(c->key) ||
            et_registry_find(r->fill->registry, ET_KIND_LAYER, c->key))
            et_diagnostics_add(r->fill->errors, ET_E_CONFLICT, &at, path, NULL,
                               "'%s' is the name of a layer, so no block can have it",
                               c->key);
        else if (!eti_network_is_name(c->key))
            et_diagnostics_add(r->fill->errors, ET_E_VALUE, &at, path, NULL,
                               "a block's name has letters, digits, _ and -");
        else
            r->block[r->n_blocks++].list = c;
    }
    return ET_OK;
}

static void
tell_unused_blocks(const struct eti_network_reading *r)
{
    for (int i = 0; i < r->n_blocks && !r->is_alone; i++) {
        char path[ETI_PATH_BYTES];
        struct et_place at = eti_value_key_place(r->block[i].list);
        if (!r->block[i].is_used)
            et_diagnostics_add(
                r->fill->errors, ET_E_CONFLICT, &at,
                eti_path_join(path, "model.blocks", r->block[i].list->key), NULL,
                "the block %s is used nowhere", r->block[i].list->key);
    }
}

/* ---- items ---- */

/* `residual: [...]`, `residual: {layers: [...], shortcut: [...]}`. */
static et_status
read_residual(struct eti_network_reading *r, const struct eti_network_scope *s,
              const struct et_value *says, const char *path,
              struct eti_network_item *out)
{
    const struct et_value *layers =
        says->type == ET_VALUE_LIST ? says : eti_value_get(says, "layers");
    const struct et_value *shortcut = eti_value_get(says, "shortcut");
    char below[ETI_PATH_BYTES];
    if (!layers) {
        eti_bad_value(r->fill, says, path, NULL,
                      "list of layers, or mapping with layers");
        return ET_OK;
    }
    if (says->type == ET_VALUE_MAP)
        (void)has_only(r, says, path, eti_network_words[ETI_NETWORK_RESIDUAL].keys, 2);
    ET_TRY(read_list(r, s, layers,
                     layers == says ? path : eti_path_join(below, path, "layers"),
                     &out->inner));
    if (!shortcut || shortcut->type == ET_VALUE_NULL)
        return ET_OK;
    return read_list(r, s, shortcut, eti_path_join(below, path, "shortcut"), &out->way);
}

static et_status
read_repeat(struct eti_network_reading *r, const struct eti_network_scope *s,
            const struct et_value *says, const char *path, struct eti_network_item *out)
{
    const struct et_value *times = eti_value_get(says, "times"),
                          *layers = eti_value_get(says, "layers");
    char below[ETI_PATH_BYTES];
    if (!times || !layers) {
        eti_bad_value(r->fill, says, path, NULL, "mapping with times and layers");
        return ET_OK;
    }
    (void)has_only(r, says, path, eti_network_words[ETI_NETWORK_REPEAT].keys, 2);
    if (times->type != ET_VALUE_INT || times->i < 1 || times->i > ETI_NETWORK_TIMES) {
        eti_bad_value(r->fill, times, eti_path_join(below, path, "times"), NULL,
                      "integer from 1 to 1000");
        return ET_OK;
    }
    const int64_t outer = r->times;
    out->times = times->i;
    r->times = outer > ETI_NETWORK_LAYERS ? outer : outer * times->i;
    et_status status =
        read_list(r, s, layers, eti_path_join(below, path, "layers"), &out->inner);
    r->times = outer;
    return status;
}

/* `add: deep`, `{from: [a, b], add: }`: the first of several is what comes in. */
static et_status
read_join(struct eti_network_reading *r, const struct eti_network_scope *s,
          const struct et_value *says, const char *path, struct eti_network_item *out)
{
    if (says->type != ET_VALUE_NULL)
        ET_TRY(eti_network_read_refs(r, s, says, path, &out->with));
    else if (out->from.n < 2)
        eti_bad_value(r->fill, says, path, "or give from: a list of names",
                      "name of a value");
    if (out->from.n < 2)
        return ET_OK;
    if (out->with.n > 0) {
        eti_bad_value(r->fill, says, path, NULL,
                      "nothing here where from: has several names");
        return ET_OK;
    }
    out->with = (struct eti_network_refs){out->from.v + 1, out->from.n - 1};
    out->from.n = 1;
    return ET_OK;
}

/* NAME is meant to be that of a block, or a word, which is told. */
static bool
is_near(const struct eti_network_reading *r, const char *name,
        const struct et_place *at, const char *path)
{
    const char *names[ETI_NETWORK_NAMES];
    int n = 0;
    for (; n < ETI_NETWORK_WORDS; n++)
        names[n] = eti_network_words[n].name;
    for (int i = 0; i < r->n_blocks && n < ETI_NETWORK_NAMES; i++)
        names[n++] = r->block[i].list->key;
    if (!et_nearest(name, names, n))
        return false;
    eti_network_unknown(r, at, path, "layer", name, names, n);
    return true;
}

static et_status
read_layer(struct eti_network_reading *r, const struct et_value *says,
           const struct et_place *at, const char *path, struct eti_network_item *out)
{
    const struct et_registry *known = r->fill->registry;
    struct eti_network_block *block = find_block(r, out->name);
    const bool is_map = says->type == ET_VALUE_MAP || says->type == ET_VALUE_NULL;
    if (block)
        block->is_used = true;
    if (says->key && says == out->at && !is_map &&
        (block || et_registry_find(known, ET_KIND_LAYER, out->name))) {
        eti_bad_value(r->fill, says, path, NULL, "mapping of options");
        return ET_OK;
    }
    if (block)
        return read_block(r, says, block, at, path, out);
    out->layer = et_registry_find(known, ET_KIND_LAYER, out->name);
    out->options = says;
    if (!out->layer && (r->is_alone || is_near(r, out->name, at, path)))
        return ET_OK;
    return eti_check_component(r->fill, ET_KIND_LAYER, out->name, at, says, path);
}

/* What SAYS, a key of the item with what is behind it, makes of it. */
static et_status
read_says(struct eti_network_reading *r, const struct eti_network_scope *s,
          const struct et_value *item, const struct et_value *says, const char *path,
          struct eti_network_item *out)
{
    const bool is_text = says == item;
    char below[ETI_PATH_BYTES];
    struct et_place at = is_text ? eti_value_place(item) : eti_value_key_place(says);
    const int word = word_of(out->name);
    eti_path_join(below, path, out->name);
    out->kind = word >= 0 ? (enum eti_network_kind)word : ETI_NETWORK_LAYER;
    if (is_text && word >= 0) {
        eti_bad_value(r->fill, item, below, eti_network_words[word].help,
                      "more than the word");
        return ET_OK;
    }
    switch (out->kind) {
    case ETI_NETWORK_RESIDUAL:
        return read_residual(r, s, says, below, out);
    case ETI_NETWORK_REPEAT:
        return read_repeat(r, s, says, below, out);
    case ETI_NETWORK_ADD:
    case ETI_NETWORK_MUL:
    case ETI_NETWORK_CONCAT:
        return read_join(r, s, says, below, out);
    default:
        return read_layer(r, says, &at, below, out);
    }
}

static void
refuse_item(const struct eti_network_reading *r, const struct et_value *item,
            const char *path)
{
    static const char *const beside[] = {"as", "from"};
    const bool is_map = item->type == ET_VALUE_MAP && item->n > 1;
    const char *near = NULL;
    const struct et_value *key = is_map ? item->first : NULL;
    for (; key && !near; key = near ? key : key->next)
        near = is_beside(key->key) ? NULL : et_nearest(key->key, beside, 2);
    struct et_place at = near ? eti_value_key_place(key) : eti_value_place(item);
    if (near)
        et_diagnostics_add(r->fill->errors, ET_E_UNKNOWN, &at, path, NULL,
                           "unknown key '%s' (did you mean '%s'?)", key->key, near);
    else
        eti_bad_value(r->fill, item, path,
                      is_map ? "beside that only as: and from: may stand" : NULL,
                      "name, or one name with its options");
}

static et_status
read_item(struct eti_network_reading *r, const struct eti_network_scope *s,
          const struct et_value *item, const char *path, struct eti_network_item *out)
{
    const struct et_value *says = eti_network_says(item);
    const struct et_value *from = eti_value_get(item, "from"),
                          *as = eti_value_get(item, "as");
    const bool is_from = !says && from && item->n == 1 + (as != NULL);
    if (!says && !is_from) {
        refuse_item(r, item, path);
        return ET_OK;
    }
    const int word = says && says != item ? word_of(says->key) : -1;
    const bool joins = word >= ETI_NETWORK_ADD;
    char below[ETI_PATH_BYTES];
    *out = (struct eti_network_item){
        .kind = ETI_NETWORK_FROM,
        .name = is_from        ? "from"
                : says == item ? item->text
                               : says->key,
        .at = is_from ? from : says,
    };
    if (from)
        ET_TRY(eti_network_read_refs(r, s, from, eti_path_join(below, path, "from"),
                                     &out->from));
    if (out->from.n > 1 && !joins)
        eti_bad_value(r->fill, from, eti_path_join(below, path, "from"),
                      "add, mul and concat put several together", "one name");
    if (says)
        ET_TRY(read_says(r, s, item, says, path, out));
    if (as)
        eti_network_read_as(r, s, as, eti_path_join(below, path, "as"), out);
    return ET_OK;
}

/* Too many layers are told once. */
static bool
has_room(struct eti_network_reading *r, const struct et_value *item, const char *path)
{
    const bool had = r->n_layers <= ETI_NETWORK_LAYERS;
    struct et_place at = eti_value_place(item);
    r->n_layers += r->times;
    if (had && r->n_layers > ETI_NETWORK_LAYERS)
        et_diagnostics_add(r->fill->errors, ET_E_LIMIT, &at, path, NULL,
                           "the network has more than %d layers", ETI_NETWORK_LAYERS);
    return r->n_layers <= ETI_NETWORK_LAYERS;
}

static et_status
read_list(struct eti_network_reading *r, const struct eti_network_scope *outer,
          const struct et_value *list, const char *path, struct eti_network *out)
{
    char number[16], below[ETI_PATH_BYTES];
    const struct eti_network_scope s = {.outer = outer, .list = list, .net = out};
    int i = 0, named = 0;
    if (list->type != ET_VALUE_LIST || list->n == 0) {
        eti_bad_value(r->fill, list, path, NULL, "list of layers");
        return ET_OK;
    }
    out->item = eti_arena_alloc(r->arena, sizeof *out->item * (size_t)list->n);
    if (!out->item)
        return ET_ENOMEM;
    for (const struct et_value *item = list->first; item; item = item->next, i++) {
        snprintf(number, sizeof number, "%d", i);
        eti_path_join(below, path, number);
        if (!has_room(r, item, below))
            return ET_OK;
        ET_TRY(read_item(r, &s, item, below, &out->item[i]));
        named += out->item[i].as || out->item[i].from.n > 0;
        out->n = i + 1;
    }
    if (named > ETI_NETWORK_NAMES)
        eti_bad_value(r->fill, list, path, NULL,
                      "at most 64 layers with as: or from: in one list");
    eti_network_tell_unused(r, out, path);
    return ET_OK;
}

et_status
eti_network_read(const struct eti_fill *fill, struct eti_arena *arena,
                 const struct et_value *list, const struct et_value *blocks,
                 bool is_alone, const char *path, struct eti_network *out)
{
    struct eti_network_reading r = {
        .fill = fill, .arena = arena, .is_alone = is_alone, .times = 1};
    *out = (struct eti_network){0};
    ET_TRY(list_blocks(&r, blocks));
    ET_TRY(read_list(&r, NULL, list, path, out));
    tell_unused_blocks(&r);
    return ET_OK;
}
