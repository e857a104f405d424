/* SPDX-License-Identifier: Apache-2.0 */
/* sketch.h: a recipe while it is being written: its text, what it means, undo, its
 * file.
 *
 * The text is the user's; every change is one of bytes (recipe/edit.h), so comments,
 * order and layout stay, and undo gives the very bytes back. After each change the text
 * is read again, as `train` would read it.
 *
 * One thread. No function but open, save and is_stale touches the disk, if the recipe
 * includes no files. */
#ifndef ETI_SKETCH_H
#define ETI_SKETCH_H

#include <time.h>

#include "core/recipe/recipe.h"

struct eti_undo_step;
struct eti_taken;

/* Read-only for others. */
struct eti_sketch {
    struct et_ctx *cx;
    const struct et_recipe_env *env; /* borrowed */
    char *path;                      /* its file; NULL: it has none yet */
    char *place; /* the file beside which relative paths begin, where PATH is NULL;
                    NULL: the working directory */
    char *name;  /* in messages: the path, or what it was made of */
    char *text;  /* N bytes and a zero */
    size_t n;
    char *saved; /* the file's text when it was read or written; NULL: no file */
    size_t n_saved;
    struct et_recipe *recipe;     /* of the text, what is wrong left out; NULL: the text
                                     is no mapping of keys */
    struct et_recipe *last;       /* of the last text without faults, while this one has
                                     some; NULL: there was none */
    struct et_diagnostics errors; /* of the text */
    int changes; /* grows with each: for who keeps what was made of it */

    struct eti_undo_step *step; /* what was done, and may be undone and done again */
    int n_steps, at_step, size_steps;
    struct eti_taken *taken; /* algorithms that were turned off, with their options */
    int n_taken, size_taken;
    struct timespec stamp; /* of the file, when it was read or written */
};

/* An empty text without a file. ENV is borrowed and may be NULL. */
ET_NODISCARD et_status eti_sketch_new(struct et_ctx *cx,
                                      const struct et_recipe_env *env,
                                      struct eti_sketch **out);
void eti_sketch_free(struct eti_sketch **draft);

/* Takes the file at PATH; what was in the sketch is forgotten. What is wrong in it is
 * in the errors, with ET_OK. ENOENT, EIO: it cannot be read, and the sketch is as it
 * was. */
ET_NODISCARD et_status eti_sketch_open(struct eti_sketch *d, const char *path);
/* The same with TEXT, which has no file yet and is called NAME. */
ET_NODISCARD et_status eti_sketch_begin(struct eti_sketch *d, const char *text,
                                        size_t n, const char *name);

/* The text has no file, but its relative paths begin beside the file PLACE; they are
 * read again. */
ET_NODISCARD et_status eti_sketch_put_place(struct eti_sketch *d, const char *place);
/* The file beside which its relative paths begin; NULL: the working directory. */
const char *eti_sketch_place(const struct eti_sketch *d);

bool eti_sketch_is_valid(const struct eti_sketch *d);
/* The recipe to show where a right one is needed: this, or the last right one. */
const struct et_recipe *eti_sketch_shown(const struct eti_sketch *d);
/* Has the text changed since it was saved? */
bool eti_sketch_is_changed(const struct eti_sketch *d);

/* ---- changes: each is one step of undo. Statuses of eti_yaml_edit; on failure nothing
 * has changed. Values may be wrong: that is in the errors then. ---- */

/* The value at PATH, a YAML value. */
ET_NODISCARD et_status eti_sketch_set(struct eti_sketch *d, const char *path,
                                      const char *value);
/* Line LINE, from 1, becomes TEXT: for texts that are no YAML. */
ET_NODISCARD et_status eti_sketch_put_line(struct eti_sketch *d, int line,
                                           const char *text);
/* Another component at PATH ("optimizer"), of which KIND is: options that it does not
 * have go, and the path of a dataset; with them and the old name go the comments
 * behind them. */
ET_NODISCARD et_status eti_sketch_choose(struct eti_sketch *d, const char *path,
                                         enum et_kind kind, const char *name);
/* The default again: the entry goes. ENOENT: it is not in the text. */
ET_NODISCARD et_status eti_sketch_default(struct eti_sketch *d, const char *path);
/* Turns the algorithm NAME on or off. Off keeps its options, so that on brings them
 * back, where they stood. */
ET_NODISCARD et_status eti_sketch_toggle(struct eti_sketch *d, const char *name);
bool eti_sketch_is_on(const struct eti_sketch *d, const char *name);
/* The algorithm NAME BY places up (-1) or down (1) in the order. ENOENT: it is not in
 * the text, or there is no such place. */
ET_NODISCARD et_status eti_sketch_move(struct eti_sketch *d, const char *name, int by);
/* What was last done ("lr 0.2"), which is undone or done again; NULL: nothing. WHAT is
 * borrowed until the next change. */
ET_NODISCARD et_status eti_sketch_undo(struct eti_sketch *d, const char **what);
ET_NODISCARD et_status eti_sketch_redo(struct eti_sketch *d, const char **what);

/* ---- its file ---- */

/* Is its file another than the one that was read or written? */
bool eti_sketch_is_stale(const struct eti_sketch *d);
/* Writes the text to PATH, which is its file from then on (NULL: it has one): beside it
 * first, then in its place. ECANCELED, and nothing is written: the file is stale, or
 * another one is there, and OVER does not allow that. */
ET_NODISCARD et_status eti_sketch_save(struct eti_sketch *d, const char *path,
                                       bool over);

#endif
