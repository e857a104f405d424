/* SPDX-License-Identifier: Apache-2.0 */
/* module.h: where device modules are (private to src/core/graph). */
#ifndef ETI_GRAPH_MODULE_H
#define ETI_GRAPH_MODULE_H

#include <limits.h>

#include "etude/ctx.h"

/* The first libetude-NAME.so of: the folders of et_ctx_set_module_path, those of
 * ETUDE_MODULE_PATH, the build tree that this code runs in, the folder of modules where
 * the library or program is now, and the one where it was installed. Where none has it,
 * PATH is in the last. */
void eti_module_find(const struct et_ctx *cx, const char *name, char path[PATH_MAX]);

#endif
