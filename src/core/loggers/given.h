/* SPDX-License-Identifier: Apache-2.0 */
/* given.h: what a run was given, for the loggers whose readers show it beside the
 * numbers: its name and id, and the values of its recipe. */
#ifndef ETI_LOGGERS_GIVEN_H
#define ETI_LOGGERS_GIVEN_H

#include "core/recipe/value.h"
#include "etude/ctx.h"

struct eti_given {
    char id[40];      /* 32 hexadecimal digits */
    char name[128];   /* "brisk-otter" */
    char recipe[128]; /* without folder and ending; "run": none is known */
};
/* Of the run in DIRECTORY, as run.json says; without one it has the id of its path. */
void eti_given_read(const char *directory, struct eti_given *out);

/* Calls FN with each scalar of the resolved recipe in DIRECTORY, KEY being
 * "optimizer.lr". Nothing where it cannot be read; ENOMEM. */
typedef void eti_given_fn(void *data, const char *key, const struct et_value *v);
ET_NODISCARD et_status eti_given_recipe(struct et_ctx *cx, const char *directory,
                                        eti_given_fn *fn, void *data);
/* The same of a tree. */
void eti_given_walk(const struct et_value *root, eti_given_fn *fn, void *data);

#endif
