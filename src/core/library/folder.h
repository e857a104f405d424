/* SPDX-License-Identifier: Apache-2.0 */
/* folder.h: files of a run's directory, as a whole or not at all. */
#ifndef ETI_RUN_FOLDER_H
#define ETI_RUN_FOLDER_H

#include <sys/types.h>

#include "etude/ctx.h"

struct json_t;

/* Makes the folder PATH; one that is there is as good. EIO. */
ET_NODISCARD et_status eti_make_directory(struct et_ctx *cx, const char *path,
                                          mode_t mode);
/* Makes the folders that PATH lies in. EIO. */
ET_NODISCARD et_status eti_make_parents(struct et_ctx *cx, const char *path);

/* Makes NAME in DIRECTORY a file with these bytes, or leaves what was there. EIO. */
ET_NODISCARD et_status eti_write_whole(struct et_ctx *cx, const char *directory,
                                       const char *name, const char *bytes, size_t n);
/* The same with JSON, which it takes over. EIO, ENOMEM. */
ET_NODISCARD et_status eti_write_json(struct et_ctx *cx, const char *directory,
                                      const char *name, struct json_t *json);
/* Makes run.json of DIRECTORY say FACTS, on a full disk in the blocks that it has. EIO,
 * ENOMEM. */
ET_NODISCARD et_status eti_save_facts(struct et_ctx *cx, const char *directory,
                                      struct json_t *facts);

#endif
