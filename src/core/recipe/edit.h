/* SPDX-License-Identifier: Apache-2.0 */
/* edit.h: single values and entries of a YAML text changed where they stand.
 *
 * Only the bytes of what changes are touched, so comments, order and the rest of the
 * layout stay. A comment that stands in what is removed stays too, on a line of its
 * own. */
#ifndef ETI_EDIT_H
#define ETI_EDIT_H

#include "core/recipe/value.h"

/* The N bytes of TEXT with the value at PATH ("ui.plot") set to VALUE, a YAML value:
 * only its bytes change, or a line is added, so comments, order and the rest of the
 * layout stay. NAME is the file's, for ERRORS. EINVAL and ERRORS: TEXT or VALUE is not
 * YAML, or PATH leads through what is no mapping. ENOTSUP: the text is written in a way
 * (aliases, odd layouts) in which that place cannot be changed alone. *OUT ends with a
 * zero; caller frees with et_free. A pure function of its arguments. */
ET_NODISCARD et_status eti_yaml_set(struct et_ctx *cx, const char *text, size_t n,
                                    const char *name, const char *path,
                                    const char *value, struct et_diagnostics *errors,
                                    char **out);

enum eti_edit_kind {
    ETI_EDIT_SET,    /* the value at the path, or a new entry behind its siblings */
    ETI_EDIT_REMOVE, /* the entry at the path; a mapping may be left with none */
    ETI_EDIT_INSERT, /* a new entry, which the path does not have yet */
    ETI_EDIT_MOVE,   /* the entry, with the lines of comment right above it */
};

struct eti_edit {
    enum eti_edit_kind kind;
    const char *path;
    const char *value; /* SET, INSERT: YAML; INSERT: "" = nothing behind the colon */
    const char *lines; /* INSERT: whole lines that say the same, put instead where the
                          mapping is in block style; NULL: VALUE alone */
    bool is_item;   /* INSERT: into a list, which may have items of that name already */
    int index;      /* INSERT, MOVE: place among the siblings, from 0; -1 = last */
    bool is_recipe; /* paths are read as overrides read them: items of lists have
                          numbers or names, and a component's name alone, or a switch,
                          becomes a mapping where an option is set in it */
};

/* What an edit did: the bytes from AT to AT + REMOVED of the old text gave way to those
 * from AT to AT + ADDED of the new one. */
struct eti_change {
    size_t at, removed, added;
};

/* Like eti_yaml_set, for one EDIT. ENOENT: there is nothing at the path (REMOVE, MOVE).
 * CHANGE may be NULL. */
ET_NODISCARD et_status eti_yaml_edit(struct et_ctx *cx, const char *text, size_t n,
                                     const char *name, const struct eti_edit *edit,
                                     struct et_diagnostics *errors, char **out,
                                     struct eti_change *change);

#endif
