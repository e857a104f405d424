/* SPDX-License-Identifier: Apache-2.0 */
/* checks.h: remarks on a valid recipe: what deserves a second look, and what is as it
 * should be. */
#ifndef ETI_CHECKS_H
#define ETI_CHECKS_H

#include "core/compose/sketch.h"

enum eti_fix {
    ETI_FIX_NONE,
    ETI_FIX_TURN_OFF, /* WHO */
    ETI_FIX_MOVE_UP,  /* WHO, BY places */
    ETI_FIX_SET,      /* the key WHO becomes BY */
};

struct eti_check {
    bool is_warning;
    bool is_fatal;  /* (a warning) the run would not start: not to be ignored */
    char text[240]; /* one sentence */
    enum eti_fix fix;
    char who[64]; /* algorithm */
    int by;
    int line, column; /* 0: nowhere in the text */
};

/* Fills OUT [SIZE], warnings first. Returns their number. A pure function of the
 * recipe. */
int eti_checks(struct et_ctx *cx, const struct et_recipe *recipe, struct eti_check *out,
               int size);
/* What a recipe alone does not tell: its data, opened, and the disk. */
enum { ETI_FOUND_DATA = 4 };
struct eti_found {
    struct {
        char name[48]; /* of the dataset */
        bool is_text;
        int64_t n, kinds;   /* images and classes; tokens and words of the vocabulary */
    } data[ETI_FOUND_DATA]; /* to train on, then to evaluate with */
    int n_data;
    double checkpoint_bytes; /* of one as the recipe asks for it; NaN: not known */
    double free_bytes;       /* where they are to be; NaN: not known */
    char run[64];            /* of this recipe, the newest; "": none is known */
    char problem[200];       /* why it cannot be estimated, as with data that cannot be
                                read; "": it can, or that is not known */
    bool is_refused;         /* for that problem, training would not begin either */
    int64_t microbatches;    /* that its last batch was done in; 0: not known */
};
/* The same as eti_checks of what was found. */
int eti_checks_found(struct et_ctx *cx, const struct et_recipe *recipe,
                     const struct eti_found *found, struct eti_check *out, int size);
/* "vision" or "text", as the model says; "any". */
const char *eti_recipe_domain(const struct et_recipe *recipe);
enum { ETI_CHECKS_MAX = 24 };

#endif
