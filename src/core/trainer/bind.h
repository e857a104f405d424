/* SPDX-License-Identifier: Apache-2.0 */
/* bind.h: the model's parameters in a trainer, and the space they lie in (bind.c). */
#ifndef ETI_TRAINER_BIND_H
#define ETI_TRAINER_BIND_H

#include "etude/trainer.h"

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

#endif
