/* SPDX-License-Identifier: Apache-2.0 */
/* names.h: what the files of src/core/checkpoint share about the store's folder. */
#ifndef ETI_CHECKPOINT_NAMES_H
#define ETI_CHECKPOINT_NAMES_H

#include "core/base/seams.h"
#include "core/checkpoint/store.h"

enum { ETI_ASIDE_NAME = 64 };

/* ".tmp-000000003750-0123456789abcdef" for the prefix "tmp". EIO. */
ET_NODISCARD et_status eti_store_name_aside(struct et_ctx *cx, const char *prefix,
                                            int64_t step, char out[ETI_ASIDE_NAME]);
/* Removes the folder NAME in DIR and the files in it. EIO. */
ET_NODISCARD et_status eti_store_remove(struct et_ctx *cx, int dir, const char *name);
/* A number that nobody can foresee. EIO. */
ET_NODISCARD et_status eti_draw(struct et_ctx *cx, uint64_t *out);
/* Are these the bytes that MANIFEST promises of file F? Pure but for C's error.
 * EFORMAT. */
ET_NODISCARD et_status eti_checkpoint_check_file(struct eti_checkpoint *c,
                                                 const struct eti_manifest_file *f,
                                                 const void *bytes, int64_t n);
/* XXH3-128 as text, canonical (big-endian). */
void eti_hash_text(const void *bytes, size_t n, char out[ETI_DIGEST_TEXT]);
struct XXH3_state_s;
/* The same of what STATE has been given. */
void eti_hash_finish(const struct XXH3_state_s *state, char out[ETI_DIGEST_TEXT]);
/* The kind of file that an item of that path and sort goes to, and its name there. */
enum eti_shard eti_archive_item_shard(const struct eti_archive_item *item,
                                      const char **name);

#endif
