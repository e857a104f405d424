/* SPDX-License-Identifier: Apache-2.0 */
/* vocab.c: see vocab.h. */
#include "core/text/vocab.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#include "core/base/memory.h"

#define NO_TEXT UINT32_MAX

et_status
eti_text_append(struct et_ctx *cx, char **text, int64_t *at, int64_t *room,
                const char *more, size_t n)
{
    ET_TRY(eti_grow(cx, text, room, *at + (int64_t)n + 1, 1));
    memcpy(*text + *at, more, n);
    *at += (int64_t)n;
    return ET_OK;
}

static uint64_t
slot_of(const struct eti_vocab *v, const char *text, size_t n)
{
    uint64_t at = XXH3_64bits(text, n);
    for (;; at++) {
        int32_t id = v->slot[at & v->mask] - 1;
        if (id < 0 ||
            (v->word[id].n == n && memcmp(v->text + v->word[id].at, text, n) == 0))
            return at & v->mask;
    }
}

static et_status
grow_slots(struct eti_vocab *v)
{
    struct eti_vocab bigger = *v;
    if (v->slot && (uint64_t)v->n_used * 2 < v->mask)
        return ET_OK;
    bigger.mask = v->slot ? v->mask * 2 + 1 : 1023;
    ET_TRY(et_alloc(v->cx, (bigger.mask + 1) * sizeof *v->slot, (void **)&bigger.slot));
    for (uint64_t i = 0; v->slot && i <= v->mask; i++) {
        if (v->slot[i] == 0)
            continue;
        const struct eti_word *w = &v->word[v->slot[i] - 1];
        bigger.slot[slot_of(&bigger, v->text + w->at, w->n)] = v->slot[i];
    }
    et_free(v->cx, v->slot);
    *v = bigger;
    return ET_OK;
}

et_status
eti_vocab_add(struct eti_vocab *v, int64_t id, const char *text, size_t n)
{
    if (id < 0 || id >= ETI_VOCAB_MAX)
        return ET_FAIL(v->cx, ET_EFORMAT, "token %" PRId64 " is not in 0 .. %d", id,
                       ETI_VOCAB_MAX - 1);
    if (id < v->n && v->word[id].at != NO_TEXT)
        return ET_FAIL(v->cx, ET_EFORMAT, "two tokens have the number %" PRId64, id);
    if (v->n_text + (int64_t)n >= INT32_MAX)
        return ET_FAIL(v->cx, ET_EFORMAT, "the tokens' texts take more than 2 GiB");
    ET_TRY(grow_slots(v));
    ET_TRY(eti_grow(v->cx, &v->word, &v->word_room, id + 1, sizeof *v->word));
    int64_t at = v->n_text;
    ET_TRY(eti_text_append(v->cx, &v->text, &v->n_text, &v->text_room, text, n));
    for (; v->n <= id; v->n++)
        v->word[v->n] = (struct eti_word){.at = NO_TEXT};
    uint64_t slot = slot_of(v, text, n);
    v->n_used += v->slot[slot] == 0;
    v->slot[slot] = (int32_t)id + 1;
    v->word[id] = (struct eti_word){.at = (uint32_t)at, .n = (uint32_t)n};
    return ET_OK;
}

void
eti_vocab_release(struct eti_vocab *v)
{
    et_free(v->cx, v->text);
    et_free(v->cx, v->word);
    et_free(v->cx, v->slot);
    *v = (struct eti_vocab){.cx = v->cx};
}

int32_t
eti_vocab_find(const struct eti_vocab *v, const char *text, size_t n)
{
    return v->slot ? v->slot[slot_of(v, text, n)] - 1 : -1;
}

const char *
eti_vocab_text(const struct eti_vocab *v, int64_t id, size_t *n)
{
    *n = 0;
    if (id < 0 || id >= v->n || v->word[id].at == NO_TEXT)
        return NULL;
    *n = v->word[id].n;
    return v->text + v->word[id].at;
}

/* ---- the trie ---- */

static void
put_branch(struct eti_branch *all, uint64_t mask, struct eti_branch b)
{
    uint64_t at = (b.key * 0x9e3779b97f4a7c15u) >> 20;
    while (all[at & mask].key)
        at++;
    all[at & mask] = b;
}

static et_status
grow_branches(struct eti_trie *t)
{
    if (t->branch && (uint64_t)t->n * 2 < t->mask)
        return ET_OK;
    uint64_t mask = t->branch ? t->mask * 2 + 1 : 255;
    struct eti_branch *bigger;
    ET_TRY(et_alloc(t->cx, (mask + 1) * sizeof *bigger, (void **)&bigger));
    for (uint64_t i = 0; t->branch && i <= t->mask; i++)
        if (t->branch[i].key)
            put_branch(bigger, mask, t->branch[i]);
    et_free(t->cx, t->branch);
    t->branch = bigger;
    t->mask = mask;
    return ET_OK;
}

static et_status
new_node(struct eti_trie *t)
{
    ET_TRY(grow_branches(t));
    ET_TRY(eti_grow(t->cx, &t->value, &t->room, t->n + 1, sizeof *t->value));
    t->value[t->n++] = -1;
    return ET_OK;
}

et_status
eti_trie_add(struct eti_trie *t, const char *text, size_t n, int32_t id)
{
    uint32_t node = 0;
    if (t->n == 0)
        ET_TRY(new_node(t));
    for (size_t i = 0; i < n; i++) {
        uint8_t byte = (uint8_t)text[i];
        uint32_t next = eti_trie_step(t, node, byte);
        if (next == 0) {
            ET_TRY(new_node(t));
            next = (uint32_t)t->n - 1;
            put_branch(t->branch, t->mask,
                       (struct eti_branch){((uint64_t)node << 8 | byte) + 1, next});
        }
        node = next;
    }
    t->value[node] = id;
    if (n > 0)
        t->begins[(uint8_t)text[0]] = true;
    return ET_OK;
}

void
eti_trie_release(struct eti_trie *t)
{
    et_free(t->cx, t->branch);
    et_free(t->cx, t->value);
    *t = (struct eti_trie){.cx = t->cx};
}

size_t
eti_trie_longest(const struct eti_trie *t, const char *text, size_t n, int32_t *id)
{
    size_t longest = 0;
    uint32_t node = 0;
    for (size_t i = 0; t->n > 0 && i < n; i++) {
        node = eti_trie_step(t, node, (uint8_t)text[i]);
        if (node == 0)
            break;
        if (t->value[node] >= 0) {
            longest = i + 1;
            *id = t->value[node];
        }
    }
    return longest;
}
