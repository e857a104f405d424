/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint.h: how a trainer saves what it has come to, and begins from it.
 *
 * A checkpoint is a folder step-<12 digits> of safetensors files with a MANIFEST of
 * digests; it exists as soon as it has that name, and then it is whole. Saving copies
 * the state to host memory between two steps and writes it while training goes on.
 * A run that is loaded from one goes on as if it had never stopped: the same bits. */
#ifndef ETUDE_CHECKPOINT_H
#define ETUDE_CHECKPOINT_H

#include <stdint.h>

#include "etude/ctx.h"
#include "etude/time.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is saved where, and when. All text is borrowed. */
struct et_checkpoint_config {
    const char *directory; /* that holds the folders; made if it is missing */
    bool only_at_end;      /* when the run stops or ends, and not before */
    /* in any unit; unset or zeroed: as often as 3.5 % of time allows, not more than
     * every 5 s; ET_NEVER: when the run stops or ends */
    struct et_time interval;
    const struct et_time *at; /* [n_at]: and at these times, not of seconds; what is
                                 saved then stays */
    int n_at;
    int64_t keep;         /* newest ones that stay; -1: all */
    const char *label;    /* see et_checkpoint_label; NULL: "ep{epoch}-ba{batch}" */
    bool weights_only;    /* the model alone: nothing can be resumed from it */
    bool stop_on_failure; /* after three failures in a row the run ends */
    const char *run_id;   /* hexadecimal; NULL: "" */
    int64_t incarnation;  /* how often the run has been started, from 1 */
    const char *recipe;   /* digest of what a resume may not change; NULL: "" */
    volatile int *asked;  /* set to 0 once what it asked for is saved; NULL */
    const char *const *ignore; /* patterns of paths left out of what is saved, as of
                                  et_load_config; NULL-terminated; NULL */
    const char *latest; /* a symbolic link in DIRECTORY to the newest, by this name;
                           NULL: none */
};

/* What to begin from. All text is borrowed. */
struct et_load_config {
    const char *directory; /* that holds the step-... folders */
    const char *name;      /* one of them; NULL: the newest that verifies */
    bool weights_only;     /* of the model alone: training begins at 0 */
    bool lenient;          /* parameters that are missing or unlike keep their values */
    const char *const *ignore;  /* patterns of paths left out, NULL-terminated; NULL */
    const char *const *exclude; /* algorithms not to be applied again; likewise */
    const char *recipe;         /* digest that a resumed run must have; NULL: any */
    bool set_aside; /* what does not verify is renamed to .bad-... once an older one is
                       loaded, what is later than NAME to .old-... */
};

/* Fills a template: {run_name} {rank} {local_rank} {world_size} {local_world_size}
 * {node_rank} {epoch} {batch} {batch_in_epoch} {sample} {sample_in_epoch} {token}
 * {token_in_epoch} {iteration} {total_wct} {epoch_wct} {batch_wct}. EINVAL names a
 * placeholder that is none of these, and a result of SIZE bytes or more. */
ET_NODISCARD et_status et_checkpoint_label(struct et_ctx *cx, const char *pattern,
                                           const char *run_name,
                                           const struct et_timestamp *ts, char *buf,
                                           size_t size);

/* A checkpoint as a list shows it. */
struct et_checkpoint_info {
    int64_t step, epoch;
    double saved;    /* wall clock, seconds since the epoch of 1970 */
    char name[32];   /* "step-000000003750" */
    char label[128]; /* "ep6-ba3750" */
    bool weights_only;
};
/* Those in DIRECTORY whose MANIFEST is whole, newest first: free *OUT with et_free.
 * *DAMAGED: how many others have such a name; *UNFINISHED: .tmp- folders. */
ET_NODISCARD et_status et_checkpoint_list(struct et_ctx *cx, const char *directory,
                                          struct et_checkpoint_info **out, int *n,
                                          int *damaged, int *unfinished);

#ifdef __cplusplus
}
#endif
#endif
