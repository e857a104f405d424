/* SPDX-License-Identifier: Apache-2.0 */
/* beside.h: what stands beside a recipe's file that it does not run without: recipes
 * that it includes, tokenizers, and the scripts that its comments tell to run. A copy
 * of the recipe in another folder needs them there. */
#ifndef ETI_RECIPE_BESIDE_H
#define ETI_RECIPE_BESIDE_H

#include <limits.h>

#include "etude/etude.h"

enum { ETI_BESIDE = 32 };

struct eti_beside {
    char folder[PATH_MAX];               /* of the recipe */
    char name[ETI_BESIDE][NAME_MAX + 1]; /* the recipe's own first */
    int n;                               /* 0: there is no such recipe */
};

/* Finds the files of the recipe at PATH. */
void eti_beside_find(const char *path, struct eti_beside *out);

/* EIO where another file stands in FOLDER in the way of one of the files from number
 * FROM on. One that is the same is not in the way, but for the recipe. */
ET_NODISCARD et_status eti_beside_check(struct et_ctx *cx, const struct eti_beside *k,
                                        int from, const char *folder);

/* Copies file I into FOLDER, unless it is there. TARGET becomes the copy's path; "": it
 * was there. ENOENT, EIO. */
ET_NODISCARD et_status eti_beside_copy(struct et_ctx *cx, const struct eti_beside *k,
                                       int i, const char *folder,
                                       char target[PATH_MAX]);

#endif
