/* SPDX-License-Identifier: Apache-2.0 */
/* sketch_impl.h: what sketch.c and sketch_file.c share. */
#ifndef ETI_SKETCH_IMPL_H
#define ETI_SKETCH_IMPL_H

#include <time.h>

#include "core/compose/sketch.h"

/* N bytes and a zero; the caller frees *OUT with et_free. */
ET_NODISCARD et_status eti_copy_bytes(struct et_ctx *cx, const char *bytes, size_t n,
                                      char **out);
/* Room for one more item of SIZE bytes in LIST [*ROOM], a pointer to them, which has
 * N. */
ET_NODISCARD et_status eti_sketch_room(struct et_ctx *cx, void *list, int n, int *room,
                                       size_t size);
/* TEXT after EDIT; the sketch is not changed. */
struct eti_edit;
struct eti_change;
ET_NODISCARD et_status eti_sketch_edited(struct eti_sketch *d, const char *text,
                                         const struct eti_edit *edit, char **out,
                                         struct eti_change *change);
/* sketch_algorithms.c: what was taken is forgotten; and what was taken from behind the
 * N_OLD bytes at AT, which are N_NOW by now, was taken from further on. */
void eti_sketch_forget_taken(struct eti_sketch *d);
void eti_sketch_shift_taken(struct eti_sketch *d, size_t at, size_t n_old,
                            size_t n_now);
/* *NOW (taken, also on failure) becomes the text, with a step of undo called WHAT. */
ET_NODISCARD et_status eti_sketch_commit(struct eti_sketch *d, char **now,
                                         const char *what);
/* Reads the text again: after it, or its folder, has changed. */
ET_NODISCARD et_status eti_sketch_read(struct eti_sketch *d);
/* The sketch begins anew with TEXT, NAME and PATH, which it takes. */
ET_NODISCARD et_status eti_sketch_take(struct eti_sketch *d, char *text, char *name,
                                       char *path);

#endif
