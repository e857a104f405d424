/* SPDX-License-Identifier: Apache-2.0 */
/* leaves.h: memory for leaves that are computed alike. */
#ifndef ETI_MODULES_LEAVES_H
#define ETI_MODULES_LEAVES_H

#include "etude/module.h"

/* Makes a tensor, described as the leaf is, for each of L that has none in OUT. They
 * lie in one storage, and those of one name (running_mean) one behind the other: then
 * one kernel updates all of them (graph/fuse_neighbours.c). NAME is the tensors'; NULL:
 * each has its leaf's. The caller frees what is in OUT, also where this fails. */
ET_NODISCARD et_status eti_leaves_allocate(struct et_ctx *cx, struct et_device *dev,
                                           const struct et_leaves *l, const char *name,
                                           struct et_tensor **out);

#endif
