/* SPDX-License-Identifier: Apache-2.0 */
/* form.h: a recipe as rows that a person can fill in, made of the option tables. */
#ifndef ETI_FORM_H
#define ETI_FORM_H

#include "core/compose/sketch.h"

struct eti_form_row {
    const char *path;  /* "optimizer.lr": what eti_sketch_set takes */
    const char *label; /* its last part */
    const char *value; /* as it was written, or the default; of a section its sum */
    const struct et_option *row; /* of the table; of a name and a section the part's */
    const struct et_component *part; /* whose name the value is; NULL: it is no name */
    int depth;                       /* of sections around it */
    int parent;                      /* its section's place in the list; -1 = none */
    bool is_section;                 /* the rows below it are its */
    bool is_set;                     /* the recipe says so; else it is the default */
    int line, column;                /* where in the text; 0 = not there */
};

/* Rows lie in ARENA, texts too; borrowed from the recipe: tables alone. */
struct eti_form {
    struct eti_arena arena;
    struct eti_form_row *row;
    int n, size;
    et_status status;
};

/* Everything of RECIPE but its algorithms. Release *OUT in any case. ENOMEM. */
ET_NODISCARD et_status eti_form_of_recipe(struct et_ctx *cx,
                                          const struct et_recipe *recipe,
                                          struct eti_form *out);
/* The options of algorithm C: RECIPE's, where it is on there, else its defaults. */
ET_NODISCARD et_status eti_form_of_algorithm(struct et_ctx *cx,
                                             const struct et_recipe *recipe,
                                             const struct et_component *c,
                                             struct eti_form *out);
void eti_form_release(struct eti_form *form);

/* May VALUE, a YAML value as it is being typed, stand in ROW? EINVAL with the sentence
 * that `validate` would say, in the context's error. For a name REGISTRY (NULL: the
 * core's) is asked. */
ET_NODISCARD et_status eti_form_try(struct et_ctx *cx,
                                    const struct et_registry *registry,
                                    const struct eti_form_row *row, const char *value);

#endif
