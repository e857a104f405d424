/* SPDX-License-Identifier: Apache-2.0 */
/* picture_cache.h: pictures of a list that were decoded and resized once, in a file. */
#ifndef ETI_DATA_PICTURE_CACHE_H
#define ETI_DATA_PICTURE_CACHE_H

#include "core/data/picture_list.h"

/* Opens the cache of SELF, whose list and facts are complete, and fills it first where
 * it is not there, or where a file, its time, or an option has changed. How large it
 * gets is reported before. EIO: the folder, or no room in it. With O->only_told *OUT is
 * NULL where it would be filled, after the same report and check of the room. */
ET_NODISCARD et_status eti_picture_cache_open(struct et_ctx *cx,
                                              struct et_dataset *self,
                                              const struct eti_cache_options *o,
                                              struct eti_picture_cache **out);
/* Sample AT of L from its cache. *FOUND false: it could not be read when the cache was
 * made, and its file says why. Called from any thread at once. */
ET_NODISCARD et_status eti_picture_cache_sample(const struct eti_picture_list *l,
                                                int64_t at, struct et_sample *out,
                                                bool *found, struct et_error *why);
void eti_picture_cache_close(struct et_ctx *cx, struct eti_picture_cache **cache);

#endif
