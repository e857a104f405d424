/* SPDX-License-Identifier: Apache-2.0 */
/* options.h: option structs from values, and back. Internal half of etude/option.h. */
#ifndef ETI_OPTIONS_H
#define ETI_OPTIONS_H

#include "core/recipe/text.h"
#include "core/recipe/value.h"
#include "etude/option.h"
#include "etude/recipe.h"

/* A name used elsewhere for what has another name here: what to suggest. */
struct eti_foreign {
    const char *path;   /* of the key's mapping, "" = top level; or of the value */
    const char *theirs; /* key or value */
    const char *ours;
};

/* How to fill options from values. */
struct eti_fill {
    struct et_ctx *cx;
    const struct et_registry *registry; /* NULL: the core's */
    const char *folder;                 /* of relative paths; NULL: left as they are */
    const struct eti_foreign *foreign;  /* ends with THEIRS NULL; may be NULL */
    const struct et_value *beside; /* the mapping that is being read; NULL: none is */
    struct et_diagnostics *errors;
    bool takes_formulas; /* a schedule's, of how long the run is (placeholder.h): they
                            are checked, and the option keeps its default */
    bool is_brief; /* the values end with the call: trees are copied, not borrowed */
};

/* Fills OPTIONS (zeroed by the caller) with TABLE's defaults and then with MAPPING,
 * whose keys are all in TABLE and which may be NULL or null. PATH ("" at the top)
 * begins the paths in messages. What is wrong is added to the errors, all of it, and
 * keeps its default; what is wrong is no reason to fail. NODEs and places are borrowed
 * from MAPPING unless it is brief. Release with et_options_release, also after a
 * failure (ENOMEM, or EINVAL for a table with a wrong default). */
ET_NODISCARD et_status eti_options_from_value(const struct eti_fill *fill,
                                              const struct et_option *table,
                                              void *options,
                                              const struct et_value *mapping,
                                              const char *path);

/* What every *_new does with the options it is given: *OUT is a copy of FROM, of C's
 * defaults where that is NULL. NULL where C has no options, and after a failure. */
ET_NODISCARD et_status eti_options_new(struct et_ctx *cx, const struct et_component *c,
                                       const void *from, void **out);
void eti_options_free(struct et_ctx *cx, const struct et_component *c, void **options);

/* ---- shared by options.c, fill.c, parts.c ---- */

struct eti_target;

/* Memory that option fields own: it remembers its context. */
ET_NODISCARD et_status eti_own(struct et_ctx *cx, size_t bytes, void *out);
void eti_disown(void *block);

void *eti_option_field(const struct et_option *row, const void *options);
const struct et_option *eti_option_find(const struct et_option *table,
                                        const char *name);
/* ---- also.c: other names of options ---- */

/* Is NAME another name of ROW? *MARK: '!' of its opposite, '~' of something like it
 * that it is not, else 0. */
bool eti_option_has_name(const struct et_option *row, const char *name, char *mark);
/* The row of TABLE that NAME is another name of, likewise; or NULL. */
const struct et_option *eti_option_also(const struct et_option *table, const char *name,
                                        char *mark);
/* Is KEY another name of an option NAME of any component of the core's? */
bool eti_is_other_name(const char *key, const char *name);
/* What keys can be called: names of options, and other names for them. */
enum { ETI_NAMES = 256 };
struct eti_names {
    const char *v[ETI_NAMES];
    int n;
    size_t used;
    char text[6144];
};
/* Appends those of TABLE (NULL: none), as far as there is room. */
void eti_names_add(struct eti_names *names, const struct et_option *table);
/* Gives the keys of MAPPING that are other names of options in the N targets the names
 * of these. Of two for one option that in the later text counts, as for one key; two in
 * one text are reported. */
void eti_rename_keys(const struct eti_fill *fill, const struct eti_target *targets,
                     int n, const struct et_value *mapping, const char *path);
/* The row of TABLE that the key of V names, which is the key then; NULL: none. */
const struct et_option *eti_rename_key(const struct et_option *table,
                                       struct et_value *v);

void eti_option_unset(const struct et_option *row, void *field);
void eti_option_release(const struct et_option *row, void *field);
void eti_part_release(const struct et_option *row, struct et_part *part);

/* TEXT as a tree with an arena of its own, which eti_value_free ends. *OUT is NULL
 * where TEXT is not YAML (added to ERRORS). */
ET_NODISCARD et_status eti_value_read(struct et_ctx *cx, const char *text,
                                      struct et_diagnostics *errors,
                                      struct et_value **out);
/* V as such a tree; its places are lost. */
ET_NODISCARD et_status eti_value_own(struct et_ctx *cx, const struct et_value *v,
                                     struct et_diagnostics *errors,
                                     struct et_value **out);
void eti_value_free(const struct et_value *v); /* does nothing to borrowed trees */

/* A value as a table's default writes it. */
ET_NODISCARD et_status eti_default_value(struct eti_arena *arena, const char *text,
                                         struct et_value **out);
ET_NODISCARD et_status eti_fill_default(const struct eti_fill *fill,
                                        const struct et_option *row, void *options);
/* Fills one option; a wrong value leaves it as it was. */
ET_NODISCARD et_status eti_fill_option(const struct eti_fill *fill,
                                       const struct et_option *row, void *options,
                                       const struct et_value *v, const char *path);
/* Where the keys of a mapping go: rows of one table into one struct. */
struct eti_target {
    const struct et_option *table; /* rows of type ET_OPT_COUNT are read elsewhere */
    void *options;
};
/* Fills the options that MAPPING names (null: none) in the N targets; a key is in one
 * of them, and what is required is there. */
ET_NODISCARD et_status eti_fill_mapping(const struct eti_fill *fill,
                                        const struct eti_target *targets, int n,
                                        const struct et_value *mapping,
                                        const char *path);
ET_NODISCARD et_status eti_fill_part(const struct eti_fill *fill,
                                     const struct et_option *row, struct et_part *part,
                                     const struct et_value *v, const char *path);
ET_NODISCARD et_status eti_fill_parts(const struct eti_fill *fill,
                                      const struct et_option *row,
                                      struct et_parts *parts, const struct et_value *v,
                                      const char *path);

/* The faults of a component that is not made go to the errors: NAME, which stands at
 * AT, with OPTIONS (not a mapping: none). */
ET_NODISCARD et_status eti_check_component(const struct eti_fill *fill,
                                           enum et_kind kind, const char *name,
                                           const struct et_place *at,
                                           const struct et_value *options,
                                           const char *path);
/* The faults of V, a list of what ROW (ET_OPT_ITEMS) lists, go to the errors. Layers
 * are a network (network.h), whose blocks stand beside them. */
ET_NODISCARD et_status eti_check_items(const struct eti_fill *fill,
                                       const struct et_option *row,
                                       const struct et_value *v, const char *path);

bool eti_option_in_range(const struct et_option *row, double x);
/* Reports V as no value for ROW, with a hint where there is one. ET_OK. */
ET_NODISCARD et_status eti_refuse(const struct eti_fill *fill,
                                  const struct et_option *row, const struct et_value *v,
                                  const char *path);
/* "expected number > 0, got \"fast\"". */
void eti_bad_value(const struct eti_fill *fill, const struct et_value *v,
                   const char *path, const char *hint, const char *expected);
/* The key of V is in neither table (B may be NULL). */
void eti_unknown_key(const struct eti_fill *fill, const struct et_value *v,
                     const char *path, const struct et_option *a,
                     const struct et_option *b);
bool eti_looks_secret(const char *key);
const struct eti_foreign *eti_foreign_find(const struct eti_fill *fill,
                                           const char *path, const char *theirs);

/* PATH + "." + KEY into BUF; KEY alone where PATH is "". */
enum { ETI_PATH_BYTES = 160 };
const char *eti_path_join(char buf[ETI_PATH_BYTES], const char *path, const char *key);

/* Is FIELD, of the TABLE ROW, written as the value of its first row (ET_OPT_BRIEF)? */
ET_NODISCARD et_status eti_table_is_brief(struct et_ctx *cx,
                                          const struct et_option *row,
                                          const void *field, bool *out);
/* The value of ROW in OPTIONS in flow style. */
void eti_text_add_option(struct eti_text *t, const struct et_option *row,
                         const void *options);

#endif
