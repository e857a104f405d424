/* SPDX-License-Identifier: Apache-2.0 */
/* methods.c: see methods.h and methods.def. */
#include "config.h"

#include "core/algorithms/methods.h"
#include "core/base/sized.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    enum eti_sort sort;
} known[] = {
#define ET_METHOD(its_name, its_sort) {#its_name, ETI_SORT_##its_sort},
#define ET_CLASH(a, b, how, sentence)
#include "core/algorithms/methods.def"
#undef ET_METHOD
#undef ET_CLASH
};

enum how { ANY, BEFORE };
static const struct {
    const char *a, *b;
    enum how how;
    const char *sentence;
} clashes[] = {
#define ET_METHOD(its_name, its_sort)
#define ET_CLASH(its_a, its_b, its_how, its_sentence)                                  \
    {#its_a, #its_b, its_how, its_sentence},
#include "core/algorithms/methods.def"
#undef ET_METHOD
#undef ET_CLASH
};

enum { N_CLASHES = sizeof clashes / sizeof *clashes };
_Static_assert(sizeof known / sizeof *known == ETI_METHODS_KNOWN, "the 27 are 27");

const char *
eti_sort_word(enum eti_sort sort)
{
    static const char *const words[] = {
#define WORD(code, word) word,
        ETI_SORT_MAP(WORD)
#undef WORD
    };
    return words[sort];
}

static int
by_name(const void *a, const void *b)
{
    const struct eti_method *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* Of a plugin's: what acts when the model is made changes the model, what acts on
 * batches, or in the loader, the batch. */
static enum eti_sort
sort_by_events(const struct et_component *c)
{
    const struct et_algorithm_class *a = (const void *)c;
    if (a->events == ET_ON(INIT))
        return ETI_SORT_SURGERY;
    bool data = a->events & (ET_ON(AFTER_DATALOADER) | ET_ON(BEFORE_FORWARD)) ||
                ETI_HOOK(a, transform);
    return data ? ETI_SORT_DATA : ETI_SORT_LOOP;
}

static struct eti_method
method_of(const struct et_component *c)
{
    struct eti_method m = {
        .name = c->name,
        .summary = c->summary,
        .applies_to = c->applies_to ? c->applies_to : "any",
        .sort = sort_by_events(c),
        .class = c,
    };
    for (int i = 0; i < ETI_METHODS_KNOWN; i++)
        if (strcmp(known[i].name, c->name) == 0)
            m.sort = known[i].sort;
    return m;
}

int
eti_methods(const struct et_registry *registry, struct eti_method *out, int size)
{
    const struct et_component *c;
    int n = 0;
    const struct et_registry *r = registry ? registry : et_registry_core();
    for (int i = 0; (c = r->get(r, ET_KIND_ALGORITHM, i)) != NULL && n < size; i++)
        out[n++] = method_of(c);
    qsort(out, (size_t)n, sizeof *out, by_name);
    return n;
}

const char *
eti_methods_clash(const char *a, const char *b, bool *order_matters)
{
    for (int i = 0; i < N_CLASHES; i++) {
        bool straight = strcmp(clashes[i].a, a) == 0 && strcmp(clashes[i].b, b) == 0;
        bool turned = strcmp(clashes[i].a, b) == 0 && strcmp(clashes[i].b, a) == 0;
        *order_matters = clashes[i].how == BEFORE;
        if (straight || (turned && !*order_matters))
            return clashes[i].sentence;
    }
    return NULL;
}
