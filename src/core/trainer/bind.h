/* SPDX-License-Identifier: Apache-2.0 */
/* bind.h: the model's parameters in a trainer, and the space they lie in (bind.c,
 * kept.c). */
#ifndef ETI_TRAINER_BIND_H
#define ETI_TRAINER_BIND_H

#include "etude/trainer.h"

/* The space from before a change of the model that may be taken back (kept.c). */
struct eti_kept {
    bool wanted; /* the next space that another takes the place of is kept */
    struct et_param_space *space; /* NULL: none is */
    struct eti_kept_copy {
        struct et_param_copy *copy; /* borrowed: it is the present space's now */
        struct et_tensor *values;   /* that it had */
    } * copy;
    int n_copies;
};

struct eti_params {
    struct et_param **v;      /* [n]: the model's, in the order of state->params */
    struct et_tensor **grads; /* [n]: of the pass under way; NULL: frozen */
    int n;
    struct eti_trained {
        struct et_tensor **leaf; /* [n]: tensors of what is not frozen, borrowed */
        struct et_tensor **grad; /* [n]: of the pass under way */
        int *slot;               /* [n]: their places in the space */
        int n;
    } trained;
    struct eti_kept kept;
};

/* What a precision other than fp8 multiplies in; NONE: f32. */
enum et_dtype eti_low_dtype(int precision);
/* The flat parameter space of the model as it is now: the one there is, with other
 * parameters frozen, where these are the same. */
ET_NODISCARD et_status eti_bind_parameters(struct et_trainer *t);
/* What is frozen in the space becomes so in the model, and is no longer differentiated.
 */
ET_NODISCARD et_status eti_follow_frozen(struct et_trainer *t);
void eti_unbind_parameters(struct et_trainer *t);

/* ---- kept.c ---- */

/* From here on the space there is is kept when another takes its place, until
 * eti_forget_kept. ENOMEM, with nothing changed, where there is no room for another. */
ET_NODISCARD et_status eti_keep_space(struct et_trainer *t);
void eti_forget_kept(struct et_trainer *t);
/* Between the making of another space and the optimizer's move there: notes what copies
 * there are. */
ET_NODISCARD et_status eti_note_copies(struct et_trainer *t);
/* Another space took its place: keeps the OLD one where that is wanted, or frees it. */
void eti_replaced_space(struct et_trainer *t, struct et_param_space *old);
/* Is what is kept the space of LEAVES? */
bool eti_kept_fits(const struct et_trainer *t, const struct et_leaves *leaves);
/* The parameters, which are LEAVES, the optimizer and the copies go back to what is
 * kept: values, moments and counts of then. */
ET_NODISCARD et_status eti_take_kept(struct et_trainer *t);

#endif
