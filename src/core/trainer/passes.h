/* SPDX-License-Identifier: Apache-2.0 */
/* passes.h: what orders the algorithms that act at an event. */
#ifndef ETI_TRAINER_PASSES_H
#define ETI_TRAINER_PASSES_H

#include "etude/state.h"

enum { ETI_MAX_PASSES = 32 }; /* the built-in ones included */

/* The built-in passes and the N of PASSES, each where it says. EINVAL names what does
 * not fit. */
ET_NODISCARD et_status eti_passes_place(struct et_ctx *cx,
                                        const struct et_pass *const *passes, int n,
                                        const struct et_pass *out[ETI_MAX_PASSES],
                                        int *n_out);
/* Puts LIST in order by the N of PASSES; 0: by the built-in ones. EINVAL names a pass
 * that has dropped an algorithm, or added one. */
ET_NODISCARD et_status eti_passes_run(struct et_ctx *cx,
                                      const struct et_pass *const *passes, int n,
                                      struct et_algorithm **list, int n_list,
                                      enum et_event event);

#endif
