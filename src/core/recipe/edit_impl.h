/* SPDX-License-Identifier: Apache-2.0 */
/* edit_impl.h: what edit.c and edit_text.c share. */
#ifndef ETI_EDIT_IMPL_H
#define ETI_EDIT_IMPL_H

#include "core/recipe/edit.h"
#include "core/recipe/recipe.h"

/* What is edited, and the replacement: bytes FROM to TO become the text. */
struct eti_editor {
    struct et_ctx *cx;
    const struct eti_edit *what;
    struct eti_arena arena;
    struct et_diagnostics *errors;
    const char *text, *name;
    size_t n;
    struct et_value *root, *value;
    size_t from, to;
    struct eti_text now;
};

/* Where a path leads. */
struct eti_spot {
    struct et_value *parent; /* the mapping or list; or what is to become one */
    struct et_value *child;  /* the value; NULL: the path leads nowhere yet */
    struct et_value *entry;  /* of the parent: the child, or the item that names it */
    const char *rest;        /* of the path: from the key that is missing on */
};

/* ENOTSUP, with the sentence. */
ET_NODISCARD et_status eti_edit_unsupported(const struct eti_editor *e);
bool eti_edit_is_flow(const struct eti_editor *e, const struct et_value *v);
/* The first key of PATH. */
void eti_edit_key(const char *path, char key[ETI_PATH_BYTES]);
/* Is a new entry to have nothing behind its colon? */
bool eti_edit_is_empty(const struct eti_editor *e);
/* Where among N entries the edit wants one. */
int eti_edit_index(const struct eti_editor *e, int n);
int eti_edit_index_of(const struct et_value *parent, const struct et_value *entry);

/* Each settles FROM, TO and NOW. */

/* V becomes the value, or a mapping with what is left of PATH below it. */
void eti_edit_replace(struct eti_editor *e, const struct et_value *v, const char *path);
/* What the spot lacks, in its parent. */
void eti_edit_insert(struct eti_editor *e, const struct eti_spot *s);
/* The spot's entry goes. ENOTSUP where a comment would go with it. */
ET_NODISCARD et_status eti_edit_cut(struct eti_editor *e, const struct eti_spot *s);
/* Entry I of the spot's parent becomes entry J, which is another. */
void eti_edit_move(struct eti_editor *e, const struct eti_spot *s, int i, int j);

#endif
