/* SPDX-License-Identifier: Apache-2.0 */
/* methods.h: all training methods by name, and those that clash. */
#ifndef ETI_METHODS_H
#define ETI_METHODS_H

#include "etude/algorithm.h"
#include "etude/recipe.h"

/* code, word on screens */
#define ETI_SORT_MAP(X)                                                                \
    X(SURGERY, "surgery")                                                              \
    X(DATA, "data")                                                                    \
    X(LOOP, "loop")

enum eti_sort {
#define ETI_SORT_ENUM(code, word) ETI_SORT_##code,
    ETI_SORT_MAP(ETI_SORT_ENUM)
#undef ETI_SORT_ENUM
};
const char *eti_sort_word(enum eti_sort sort);

struct eti_method {
    const char *name, *summary;
    const char *applies_to;           /* "vision", "text", "any" */
    enum eti_sort sort;               /* what it changes */
    const struct et_component *class; /* of the algorithm */
};

/* Fills OUT [SIZE] with the methods by name: the 27, and what else REGISTRY (NULL: the
 * core's) has. Returns their number, at most SIZE. */
int eti_methods(const struct et_registry *registry, struct eti_method *out, int size);
enum { ETI_METHODS_MAX = 96, ETI_METHODS_KNOWN = 27 };

/* Why A, which stands before B in a recipe, does not go with B; NULL: it does. */
const char *eti_methods_clash(const char *a, const char *b, bool *order_matters);

/* True where a run of DURATION never comes to something that OPTIONS of C ask for,
 * since it is in epochs: OUT [SIZE] says what. */
bool eti_method_misses(const struct et_component *c, const void *options,
                       struct et_time duration, char *out, size_t size);

#endif
