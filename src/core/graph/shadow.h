/* SPDX-License-Identifier: Apache-2.0 */
/* shadow.h: a copy of a storage's f32 elements in a low dtype, beside it.
 *
 * Mixed precision reads it instead of casting each weight at every step: the cast that
 * autocast puts before a product is there, for the gradient, but its value lies in the
 * shadow and costs nothing. It cannot go stale, whoever changes the storage:
 *
 *   - et_assign to a leaf of the storage assigns the cast of the value to the shadow,
 *     in the same commit. Where an element-wise chain computes the value (an
 *     optimizer's, SAM's, an exchange with an average), the cast is one more output of
 *     that pass.
 *   - et_tensor_write marks it. An evaluation that reads a marked shadow first makes it
 *     anew, whole.
 *
 * Who writes device memory in other ways calls eti_shadow_mark. An eager graph computes
 * each cast instead (and assigns both): its answers tell whether a shadow was right. */
#ifndef ETI_GRAPH_SHADOW_H
#define ETI_GRAPH_SHADOW_H

#include "core/graph/graph_impl.h"

/* STORAGE, of f32 elements, has a shadow in DTYPE from now on; ET_NONE: none. Between
 * steps. ENOMEM. */
ET_NODISCARD et_status eti_shadow_set(struct et_ctx *cx, struct et_storage *storage,
                                      enum et_dtype dtype);
void eti_shadow_free(struct et_storage *storage);

/* Elements of STORAGE were written other than by an assignment. */
void eti_shadow_mark(struct et_storage *storage);

/* TO, a cast of LEAF that is not computed, lies in the shadow where there is one. */
void eti_shadow_read(const struct et_graph *g, const struct et_tensor *leaf,
                     struct et_tensor *to);
/* The leaf that is LEAF's shadow, valid until the reset; NULL where it has none. */
struct et_tensor *eti_shadow_leaf(struct et_graph *g, const struct et_tensor *leaf);
/* Makes those anew that IR reads and that are marked. */
ET_NODISCARD et_status eti_shadow_refresh(struct et_graph *g, const struct eti_ir *ir);

#endif
