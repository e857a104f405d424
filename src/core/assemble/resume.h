/* SPDX-License-Identifier: Apache-2.0 */
/* resume.h: going on with a run: which checkpoint is meant, and what may have
 * changed. */
#ifndef ETI_RUN_RESUME_H
#define ETI_RUN_RESUME_H

#include "etude/checkpoint.h"
#include "etude/recipe.h"

enum { ETI_RUN_PATH = 3072, ETI_RECIPE_DIGEST = 65 };

/* What RUN|CKPT means. */
struct eti_origin_run {
    char directory[ETI_RUN_PATH]; /* of the run; "" where a checkpoint lies alone */
    char checkpoints[ETI_RUN_PATH + 32]; /* the folder that holds the checkpoints */
    char name[32];                       /* "step-..."; "": the newest that verifies */
};

/* TEXT is a run directory, a folder step-... , or a run directory with "/" and the name
 * or label of one of its checkpoints. ENOENT: it is none of these. */
ET_NODISCARD et_status eti_origin_find(struct et_ctx *cx, const char *text,
                                       struct eti_origin_run *out);
/* Does DIRECTORY hold a run: run.json, or checkpoints beside which it was lost? */
bool eti_is_run(struct et_ctx *cx, const char *directory);

/* NOW, where it leaves them open, gets the values that the run of THEN drew and chose:
 * nothing is drawn again. */
ET_NODISCARD et_status eti_resume_take_over(struct et_ctx *cx,
                                            const struct et_recipe *then,
                                            struct et_recipe *now);
/* Digest of all values that a resume may not change. */
ET_NODISCARD et_status eti_recipe_digest(struct et_ctx *cx,
                                         const struct et_recipe *recipe,
                                         char out[ETI_RECIPE_DIGEST]);
/* EINVAL where NOW differs from THEN in such a value: a line in ERRORS for each. */
ET_NODISCARD et_status eti_recipe_check_resume(struct et_ctx *cx,
                                               const struct et_recipe *then,
                                               const struct et_recipe *now,
                                               struct et_diagnostics *errors);
/* EINVAL, with a line in ERRORS, where RUN has trained more epochs or batches than NOW
 * gives it. */
ET_NODISCARD et_status eti_resume_check_length(struct et_ctx *cx,
                                               const struct eti_origin_run *run,
                                               const struct et_recipe *now,
                                               struct et_diagnostics *errors);

#endif
