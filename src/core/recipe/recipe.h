/* SPDX-License-Identifier: Apache-2.0 */
/* recipe.h: the steps of reading a recipe. Internal half of etude/recipe.h. */
#ifndef ETI_RECIPE_H
#define ETI_RECIPE_H

#include "core/recipe/options.h"
#include "etude/recipe.h"

/* A recipe and the tree it was filled from, which its NODEs and origins point into. */
struct eti_recipe {
    struct et_recipe recipe; /* first: what the caller sees */
    struct et_ctx *cx;
    struct eti_arena arena;
    struct et_value *root;
    const char *text; /* the file's bytes, in the arena; NULL: of no file */
    size_t size;
    bool is_sketch; /* it is being written: what is chosen for it is not announced */
    bool is_filled; /* as far as it is right: see eti_recipe_sketch */
    const struct et_registry *registry; /* that its components are of */
};

/* Whose components RECIPE has: the core's, and those of the plugins it names. */
const struct et_registry *eti_recipe_registry(const struct et_recipe *recipe);

/* Like et_recipe_parse, for a recipe that is being written: it has the folder of PATH
 * (NULL: none), and *OUT is there also when ERRORS has some, what is wrong being as if
 * it were not written. NULL: the text is no mapping of keys. ENOMEM is the only
 * failure but for those of tables. */
ET_NODISCARD et_status eti_recipe_sketch(struct et_ctx *cx, const char *text,
                                         size_t size, const char *name,
                                         const char *path,
                                         const struct et_override *overrides, int n,
                                         const struct et_recipe_env *env,
                                         struct et_recipe **out,
                                         struct et_diagnostics *errors);

/* While reading. */
struct eti_loader {
    struct et_ctx *cx;
    struct eti_arena *arena;
    const struct et_recipe_env *env; /* never NULL */
    struct et_diagnostics *errors;
    int folder;        /* open directory of the recipe; -1 = none, no includes */
    int files, orders; /* read so far; given out so far */
    size_t from_env;   /* bytes of the values of variables so far */
    struct eti_recipe_files *gather; /* keeps the files, variables as they stand in the
                                        text; NULL: does not */
};

enum { ETI_MAX_INCLUDE_DEPTH = 4, ETI_MAX_FILES = 64 };

/* The files that a recipe is made of, as they lie: to be sent elsewhere. */
struct eti_recipe_files {
    struct eti_arena arena; /* holds what follows */
    int n;                  /* each is there once; the recipe is the first */
    struct eti_recipe_file {
        const char *name; /* of includes: beneath the recipe's folder; else its path */
        const char *text;
        size_t size;
    } file[ETI_MAX_FILES + 1];
};
/* Reads them, includes beneath FOLDER (NULL: the recipe's); what the recipe says is not
 * looked at but for its form, its includes and what looks like a secret. EINVAL and
 * ENOENT with ERRORS as et_recipe_load has them; release in any case. */
ET_NODISCARD et_status eti_recipe_gather(struct et_ctx *cx, const char *path,
                                         const char *folder,
                                         struct eti_recipe_files *out,
                                         struct et_diagnostics *errors);
void eti_recipe_files_release(struct eti_recipe_files *files);

/* load.c: TEXT as a mapping, its includes merged below it, environment put in. *OUT is
 * NULL where there is no tree. */
ET_NODISCARD et_status eti_load_text(struct eti_loader *l, const char *text,
                                     size_t size, const char *name, int depth,
                                     const char *below, struct et_value **out);
/* Reads the whole of FD (at most a byte more than the limit) into the arena. */
ET_NODISCARD et_status eti_load_bytes(struct eti_loader *l, int fd, char **text,
                                      size_t *size);
/* Keeps a file that was read, whose TEXT is in the arena, in l->gather. */
ET_NODISCARD et_status eti_gather_file(struct eti_loader *l, const char *name,
                                       const char *text, size_t size);
/* Puts mapping ABOVE over mapping BELOW, whose children it then has: mappings merge,
 * the rest is replaced. */
void eti_value_merge(struct et_value *below, struct et_value *above);
/* Reports each text of V, which is at PATH, and of what is in it, that looks like a
 * secret. */
void eti_refuse_secrets(struct eti_loader *l, const struct et_value *v,
                        const char *path);
/* Why a file could not be read: CODE is errno's. */
const char *eti_read_reason(int code);

/* from.c: what the folder at model.from says of the model of ROOT, put in below what
 * ROOT says, in place of that key. FOLDER: of relative paths, or NULL. */
ET_NODISCARD et_status eti_model_from(struct eti_loader *l, struct et_value *root,
                                      const char *folder);

/* override.c: ETUDE_SET_* variables, then the command line, upon ROOT (a mapping). */
ET_NODISCARD et_status eti_apply_overrides(struct eti_loader *l, struct et_value *root,
                                           const struct et_override *overrides, int n);
/* The child of V that a path's KEY means: of a mapping by its name, of a list by number
 * or, of components, by name; a component where a list of them may stand is its own
 * item 0. NULL: V has no such child. */
struct et_value *eti_path_child(struct et_value *v, const char *key);
/* Makes V a mapping if it is nothing, a component's name or another value that stands
 * for a mapping, or a switch. ENOMEM. */
ET_NODISCARD et_status eti_path_open(struct eti_arena *arena, struct et_value *v);
struct eti_source *eti_source_new(struct eti_loader *l, enum eti_origin origin,
                                  const char *name);

/* check.c: what tables cannot say. */
ET_NODISCARD et_status eti_recipe_check(struct eti_recipe *r,
                                        struct et_diagnostics *errors);

/* ---- walk.c: every value of a recipe in order, for the writers ---- */

struct eti_line {
    const char *path;          /* "eval_data.0.label" */
    const char *key;           /* its last part */
    int depth;                 /* of nesting, 0 = top level */
    bool is_item;              /* first line of a list's item */
    const char *value;         /* text in flow style; NULL: the lines below are its */
    const struct et_value *at; /* where it was given; NULL = a default */
    bool chosen; /* nobody gave it, and it is not the default: a drawn seed */
    const struct et_option *top;     /* the row of the top-level key it belongs to */
    const struct et_option *row;     /* its own; of a part's name the row of the part */
    const struct et_component *part; /* whose name it is; NULL: it is no name */
};
typedef void eti_line_fn(void *data, const struct eti_line *line);
/* ENOMEM is the only failure. */
ET_NODISCARD et_status eti_recipe_walk(struct et_ctx *cx,
                                       const struct et_recipe *recipe, eti_line_fn *fn,
                                       void *data);
/* "recipe.yaml:14:7", "default", "environment ETUDE_SET_seed". Returns BUF. */
const char *eti_origin_text(const struct et_value *at, char *buf, size_t size);

#endif
