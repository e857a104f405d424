/* checks.h: what of a right recipe deserves a second look, and what is as it should be.
 */
#ifndef ETI_CHECKS_H
#define ETI_CHECKS_H

#include "core/compose/sketch.h"

enum eti_fix {
    ETI_FIX_NONE,
    ETI_FIX_TURN_OFF, /* WHO */
    ETI_FIX_MOVE_UP,  /* WHO, BY places */
};

struct eti_check {
    bool is_warning;
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
/* "vision" or "text", as the model says; "any". */
const char *eti_recipe_domain(const struct et_recipe *recipe);
enum { ETI_CHECKS_MAX = 24 };

#endif
