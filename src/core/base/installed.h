/* SPDX-License-Identifier: Apache-2.0 */
/* installed.h: where what "make install" put somewhere is now: the prefix may have been
 * moved. */
#ifndef ETI_INSTALLED_H
#define ETI_INSTALLED_H

#include <limits.h>
#include <stdbool.h>

#include "etude/ctx.h"

/* The folder of the file that holds this code, with links followed: libetude.so.1, or
 * the program, then *IS_PROGRAM. False: it is not known. */
bool eti_own_folder(char folder[PATH_MAX], bool *is_program);
/* Where the file or folder is now that was to be installed at PATH, a place below the
 * prefix: below the present prefix, where this code is in the bin or lib folder of one
 * and PATH's successor exists; else PATH itself. */
void eti_installed(const char *path, char now[PATH_MAX]);
/* What et_ctx_set_module_path was given; NULL: nothing (ctx.c). */
const char *eti_ctx_module_path(const struct et_ctx *cx);

#endif
