/* SPDX-License-Identifier: Apache-2.0 */
/* recipe_read.h: recipes read from text by tests, with the made-up components of
 * recipe_fakes.h; and what came of it. */
#ifndef ETUDE_T_RECIPE_READ_H
#define ETUDE_T_RECIPE_READ_H

#include "etude/recipe.h"

extern struct et_ctx *cx;
extern struct et_recipe *recipe; /* the last that was read; NULL: it was refused */
extern struct et_diagnostics errors;

/* The least that is a recipe. */
#define LEAST                                                                          \
    "max_duration: 5ep\n"                                                              \
    "model: {name: resnet8, num_classes: 10}\n"                                        \
    "train_data: {name: fashion_mnist, batch_size: 100}\n"

void begin_reading(void);
/* Frees what there is; a test: nothing is left allocated. */
void end_reading(void);
/* Reads TEXT with N changes, where ITS_VARIABLES (NULL: none) are in the environment,
 * of which recipes may use DATA, N and ABSENT. */
et_status parse_with(const char *text, const struct et_override *o, int n,
                     const char *const *its_variables);
et_status parse(const char *text);
/* The same of the file at PATH. */
et_status load(const char *path);
/* The line of `explain --origin` for PATH, or why there is no recipe. */
const char *line_of(const char *path);
/* A test: TEXT is refused with the one error WANT. */
void refuses(const char *text, const char *want);
void put_file(const char *folder, const char *name, const char *text);

#endif
