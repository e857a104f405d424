/* recipe.h: what a recipe can name. */
#ifndef ETUDE_RECIPE_H
#define ETUDE_RECIPE_H

#include "etude/diagnostic.h"
#include "etude/option.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- registries ---- */

struct et_registry {
    /* The I-th component of the kind in its folder's order; NULL past the end.
     * NULL: this build has none. */
    const struct et_component *(*get[ET_KIND_COUNT])(int i);
    /* Also knows other names for them. (optional: names alone) */
    const struct et_component *(*find[ET_KIND_COUNT])(const char *name);
};

/* The core's own: what this build was made with. */
const struct et_registry *et_registry_core(void);
/* The component of KIND called NAME; NULL if there is none. REGISTRY NULL = the core's. */
const struct et_component *et_registry_find(const struct et_registry *registry,
                                            enum et_kind kind, const char *name);
const char *et_kind_word(enum et_kind kind);

#ifdef __cplusplus
}
#endif
#endif
