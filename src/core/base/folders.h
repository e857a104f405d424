/* SPDX-License-Identifier: Apache-2.0 */
/* folders.h: folders of the user's, for settings, keys, lists and caches. */
#ifndef ETI_FOLDERS_H
#define ETI_FOLDERS_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "etude/ctx.h"

/* Makes the folders that PATH lies in, with MODE. It never makes the home directory
 * ($HOME) or a folder above it: if that is missing, nobody wants files there. False
 * with errno if a folder could not be made. */
bool eti_make_user_folders(const char *path, mode_t mode);

/* A stream of the file at PATH, to read. NULL with errno, EINVAL unless it is a regular
 * one: opening a pipe would wait for who never writes there. */
FILE *eti_open_regular(const char *path);

/* The folder that PATH lies in, locked until *DIR is closed. Of two who change a file
 * one waits for the other, or its change would be lost: who replaces a file has what
 * stood there before. The folder is what is locked, as the file is another one
 * afterwards. ECANCELED: another process has had it for ten seconds. */
ET_NODISCARD et_status eti_lock_parent(struct et_ctx *cx, const char *path, int *dir);

#endif
