/* SPDX-License-Identifier: Apache-2.0 */
/* store.h: the folder checkpoints/ of a run: what is in it, adding one, finding one.
 *
 *     step-000000003750/   MANIFEST and safetensors files; complete, by its name
 *     .tmp-<step>-<nonce>  being written; of a dead process: removed at the next start
 *     .del-<step>-<nonce>  being removed
 *     .bad-<step>-<nonce>  did not verify; kept, for whoever wants to know why
 *     .old-<step>-<nonce>  later than the one a run was taken back to; kept
 *
 * A checkpoint comes into being by one rename, after everything in it has reached the
 * disk, and nothing of an older one is touched before that (RELIABILITY.md section
 * 3). */
#ifndef ETI_CHECKPOINT_STORE_H
#define ETI_CHECKPOINT_STORE_H

#include "core/checkpoint/archive.h"
#include "core/checkpoint/manifest.h"

enum { ETI_STORE_PATH = 4096, ETI_STEP_NAME = 32 };

/* "step-000000003750"; returns BUF. */
const char *eti_step_name(int64_t step, char buf[ETI_STEP_NAME]);
/* The step of such a name, -1 for any other. */
int64_t eti_step_parse(const char *name);

/* The steps in DIRECTORY, newest first; free with et_free. No folder: none. EIO. */
ET_NODISCARD et_status eti_store_list(struct et_ctx *cx, const char *directory,
                                      int64_t **steps, int64_t *n);

/* How many .tmp- are in it. EIO. */
ET_NODISCARD et_status eti_store_count_unfinished(struct et_ctx *cx,
                                                  const char *directory, int *n);

/* Writes the contents of A as a checkpoint with the facts of M (files and JSON are
 * filled in here), then removes all but the KEEP newest (-1: removes none), the new
 * one included. Makes DIRECTORY if it is missing. A checkpoint of the same step
 * becomes .old-. EINVAL if a number is not finite: such a state is never committed.
 * EIO. A failure leaves nothing behind, except when the very last fsync failed: then
 * the checkpoint stands, whole, and nothing older was removed. *BYTES is what was
 * written. */
ET_NODISCARD et_status eti_store_write(struct et_ctx *cx, const char *directory,
                                       const struct et_archive *a,
                                       struct eti_manifest *m, int64_t keep,
                                       int64_t *bytes);

/* Makes NAME in DIRECTORY a symbolic link to the checkpoint of STEP, in one rename: who
 * follows it finds a whole one at any time. EIO: where NAME is something else, too. */
ET_NODISCARD et_status eti_store_link(struct et_ctx *cx, const char *directory,
                                      const char *name, int64_t step);

/* A checkpoint in memory, verified. */
struct eti_checkpoint {
    struct et_ctx *cx;
    struct et_archive archive; /* its items, to be loaded */
    struct eti_manifest manifest;
    char name[ETI_STEP_NAME];
    void *buffer[ETI_MANIFEST_FILES]; /* whole files */
};

/* Reads DIRECTORY/NAME whole and verifies it: MANIFEST, sizes, digests, headers.
 * EFORMAT when it is not what was written, EINVAL when it is and cannot be parsed,
 * ENOTSUP for a later format, EIO and ENOMEM when it could
 * not be read. Release in any case. */
ET_NODISCARD et_status eti_store_read(struct et_ctx *cx, const char *directory,
                                      const char *name, struct eti_checkpoint *out);
/* The MANIFEST alone. */
ET_NODISCARD et_status eti_store_read_manifest(struct et_ctx *cx, const char *directory,
                                               const char *name,
                                               struct eti_manifest *out);
void eti_checkpoint_release(struct eti_checkpoint *c);

/* Takes DIRECTORY/step-STEP out of the way as ".bad-..." or ".old-..." (PREFIX).
 * EIO. */
ET_NODISCARD et_status eti_store_set_aside(struct et_ctx *cx, const char *directory,
                                           int64_t step, const char *prefix);
/* Removes what dead processes left, .tmp- and .del-. *N: how many. EIO for a folder
 * that cannot be read. */
ET_NODISCARD et_status eti_store_clean(struct et_ctx *cx, const char *directory,
                                       int *n);

#endif
