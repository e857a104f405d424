/* SPDX-License-Identifier: Apache-2.0 */
/* saving.h: where a run's checkpoints go and what it begins from, made from a
 * recipe. */
#ifndef ETI_RUN_SAVING_H
#define ETI_RUN_SAVING_H

#include "core/assemble/resume.h"
#include "etude/run.h"
#include "etude/trainer.h"

/* A recipe's interval, in which 0 is never, as a trainer takes it. */
static inline struct et_time
eti_interval(struct et_time t)
{
    return et_time_is_set(t) && t.value == 0 ? ET_NEVER : t;
}

/* Everything the two configurations point to. Kept until the trainer is gone. */
struct eti_saving {
    struct et_checkpoint_config checkpoint;
    struct et_load_config load;
    char directory[ETI_RUN_PATH + 32];
    struct eti_origin_run from;
    const char **ignore, **exclude, **left_out; /* owned */
    struct et_ctx *cx;
};

/* The run RUN saves as RECIPE, of that DIGEST, says, and begins as its `load` does. All
 * are borrowed. ENOENT: there is nothing under load.path. Release in any case. */
ET_NODISCARD et_status eti_saving_init(struct eti_saving *s, struct et_ctx *cx,
                                       const struct et_recipe *recipe,
                                       const char *digest, const struct et_run *run);
/* The same of a run in DIRECTORY that another process keeps. */
ET_NODISCARD et_status eti_saving_init_at(struct eti_saving *s, struct et_ctx *cx,
                                          const struct et_recipe *recipe,
                                          const char *digest, const char *directory,
                                          const char *run_id, int64_t incarnation);
/* Instead: it goes on from its own checkpoint NAME, or from the newest ("" or NULL). */
void eti_saving_resume(struct eti_saving *s, const char *name);
/* Both into CONFIG; without RESUME or `load` the run begins at 0. */
void eti_saving_apply(const struct eti_saving *s, struct et_trainer_config *config);
void eti_saving_release(struct eti_saving *s);

#endif
